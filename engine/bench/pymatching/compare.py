"""Our matching beside PyMatching. Called by `run`, which says what for."""

import argparse
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pymatching
import stim

# Weights are rounded: each of ours by up to 2^-19 of a unit, PyMatching's by 2^-25 of the heaviest. An
# answer has at most about one edge for each detector.
ROUNDING = 2e-6
# Larger than both roundings: moves the minimum only among matchings that weigh the same.
PERTURBATION = 3e-5
PERTURBATIONS = 300
SHOTS_OF_A_MODEL = 1_000
DIRECTORY = tempfile.TemporaryDirectory(prefix="pymatching-")
WORK = pathlib.Path(DIRECTORY.name)


class Case:
    """A model with shots, in files that our program reads."""

    def __init__(self, program, dem, detections):
        self.program, self.dem, self.detections = program, dem, detections
        dem.to_file(WORK / "model.dem")
        detections.tofile(WORK / "shots.b8")

    def ours(self, *options):
        """Runs our program: predictions (packed), weights, and what it printed."""
        command = [self.program, WORK / "model.dem", WORK / "shots.b8", WORK / "ours", *options]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        width = max(1, -(-self.dem.num_observables // 8))
        predictions = np.fromfile(WORK / "ours.b8", dtype=np.uint8)
        weights = np.fromfile(WORK / "ours.f64", dtype="<f8")
        if self.dem.num_observables == 0:
            predictions = np.zeros((len(weights), width), dtype=np.uint8)
        return predictions.reshape(len(weights), width), weights, [float(word) for word in said.split()]


def code(kind, distance, p):
    """One of Stim's memory experiments, all four noise parameters p, as many rounds as the distance."""
    circuit = stim.Circuit.generated(
        kind,
        distance=distance,
        rounds=distance,
        after_clifford_depolarization=p,
        before_round_data_depolarization=p,
        before_measure_flip_probability=p,
        after_reset_flip_probability=p,
    )
    return circuit, circuit.detector_error_model(decompose_errors=True)


def random_model(draws):
    """A connected graph of any shape with a boundary: parallel edges, some likelier than not."""
    detectors = draws.choice([2, 5, 12, 30, 60])
    observables = draws.choice([1, 1, 3, 70])
    spread = draws.choice([0.1, 1.0, 3.0])
    likely = draws.choice([0.0, 0.0, 0.1])

    def line(ends):
        weight = draws.uniform(0.2, 0.2 + spread * 2) * (-1 if draws.random() < likely else 1)
        probability = 1 / (1 + math.exp(weight))
        flipped = [f"L{index}" for index in range(observables) if draws.random() < 2 / (1 + observables)]
        return " ".join([f"error({probability!r})", *[f"D{end}" for end in ends], *flipped])

    # A path through all detectors from the boundary, so that every shot can be matched.
    lines = [line([0])] + [line([end - 1, end]) for end in range(1, detectors)]
    for _ in range(draws.randrange(3 * detectors)):
        a, b = draws.randrange(detectors), draws.randrange(detectors + 3)
        if a != b:
            lines.append(line([a, b] if b < detectors else [a]))
    draws.shuffle(lines)
    lines.append(f"logical_observable L{observables - 1}")
    return stim.DetectorErrorModel("\n".join(lines))


def random_case(program, seed):
    """A model of its own kind for each seed; the shots of errors, and of detectors that fire at random."""
    draws = random.Random(seed)
    if draws.random() < 0.3:
        kinds = ["surface_code:rotated_memory_z", "surface_code:unrotated_memory_x", "repetition_code:memory"]
        kind, p = draws.choice(kinds), draws.choice([0.002, 0.01, 0.04])
        _, dem = code(kind, draws.choice([3, 5]), p)
    else:
        dem = random_model(draws)
    sampled, _, _ = dem.compile_sampler(seed=seed).sample(SHOTS_OF_A_MODEL // 2)
    density = draws.choice([0.05, 0.2, 0.5])
    uniform = np.random.default_rng(seed).random((SHOTS_OF_A_MODEL // 2, dem.num_detectors)) < density
    shots = np.packbits(np.concatenate([sampled, uniform]), axis=1, bitorder="little")
    return Case(program, dem, shots)


def perturbed(dem, draws):
    """The model with slightly other weights."""
    changed = stim.DetectorErrorModel()
    for instruction in dem.flattened():
        if instruction.type == "error" and 0 < instruction.args_copy()[0] < 1:
            probability = instruction.args_copy()[0]
            weight = math.log((1 - probability) / probability)
            weight += PERTURBATION * draws.uniform(-1, 1)
            changed.append("error", [1 / (1 + math.exp(weight))], instruction.targets_copy())
        else:
            changed.append(instruction)
    return changed


def without_tie(case, ours, differing, seed):
    """Of the shots that differ, those on which PyMatching gives our answer for no perturbed weights."""
    draws, left = random.Random(seed), set(differing)
    for _ in range(PERTURBATIONS):
        if not left:
            break
        rows = sorted(left)
        matching = pymatching.Matching.from_detector_error_model(perturbed(case.dem, draws))
        theirs = decode(matching, case.detections[rows])
        left -= {row for row, their in zip(rows, theirs) if (their == ours[row]).all()}
    return sorted(left)


def decode(matching, shots, **options):
    return matching.decode_batch(shots, bit_packed_shots=True, bit_packed_predictions=True, **options)


def oracle(program, arguments):
    """Equal weights on every shot; equal predictions, or a tie."""
    ties, wrong, seed, done = 0, 0, arguments.seed, 0
    while done < arguments.shots:
        case = random_case(program, seed)
        ours, weights, _ = case.ours()
        matching = pymatching.Matching.from_detector_error_model(case.dem)
        theirs, their_weights = decode(matching, case.detections, return_weights=True)
        # Not a number where ours found no matching: off, too.
        off = ~(np.abs(weights - their_weights) <= ROUNDING * case.dem.num_detectors)
        differing = np.nonzero((ours != theirs).any(axis=1))[0].tolist()
        unexplained = without_tie(case, ours, differing, seed)
        if off.any() or unexplained:
            shots = np.nonzero(off)[0].tolist()
            print(f"seed {seed}: weights differ on shots {shots[:5]}, predictions without a tie on {unexplained[:5]}")
            wrong += 1
        ties += len(differing) - len(unexplained)
        done += len(ours)
        seed += 1
    print(f"ORACLE shots={done} models={seed - arguments.seed} last_seed={seed - 1} ties={ties} wrong_models={wrong}")
    return wrong == 0


def interval(errors, shots):
    """Wilson's 95 % interval."""
    z, rate = 1.96, errors / shots
    middle = rate + z * z / 2 / shots
    half = z * math.sqrt(rate * (1 - rate) / shots + z * z / 4 / shots / shots)
    return (middle - half) / (1 + z * z / shots), (middle + half) / (1 + z * z / shots)


def correlated(program, arguments):
    """Logical errors within PyMatching's interval, predictions that differ, and times."""
    agrees = True
    for distance in [3, 5, 7]:
        for p in [0.001, 0.005]:
            circuit, dem = code("surface_code:rotated_memory_z", distance, p)
            sampler = circuit.compile_detector_sampler(seed=distance)
            shots, truth = sampler.sample(arguments.shots, separate_observables=True, bit_packed=True)
            case = Case(program, dem, shots)
            matching = pymatching.Matching.from_detector_error_model(dem, enable_correlations=True)
            predictions = {}

            def ours():
                predictions["ours"], _, lap = case.ours("--correlated")
                return lap[0]

            def theirs():
                before = time.perf_counter_ns()
                predictions["theirs"] = decode(matching, shots, enable_correlations=True)
                return (time.perf_counter_ns() - before) / len(shots)

            bench(f"correlated-d{distance}-p{p}", ours, theirs, 3)
            wrong = {who: int((found != truth).any(axis=1).sum()) for who, found in predictions.items()}
            differing = int((predictions["ours"] != predictions["theirs"]).any(axis=1).sum())
            low, high = interval(wrong["theirs"], len(shots))
            is_within = low <= wrong["ours"] / len(shots) <= high
            agrees &= is_within and differing <= len(shots) // 1_000
            print(
                f"CORRELATED d={distance} p={p} shots={len(shots)} ours={wrong['ours']} theirs={wrong['theirs']} "
                f"interval={low:.2e}..{high:.2e} within={is_within} differing={differing}",
                flush=True,
            )
    return agrees


def bench(name, ours, theirs, turns):
    """Both in turn; the median of each."""
    pairs = [(ours(), theirs()) for _ in range(turns)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    print(
        f"BENCH name=matching/{name} unit=ns/shot ours={ours:.1f} peer=pymatching-{pymatching.__version__} "
        f"theirs={theirs:.1f} ratio={theirs / ours:.2f} floor=-",
        flush=True,
    )


def times(program, arguments):
    """Times of whole batches, and of one shot at a time."""
    surface, unrotated = "surface_code:rotated_memory_", "surface_code:unrotated_memory_z"
    cases = [(surface + "z", distance, 0.001) for distance in [3, 5, 7, 9, 13, 17]]
    cases += [(surface + "z", distance, 0.005) for distance in [3, 5, 7, 9]]
    cases += [(surface + "x", distance, 0.005) for distance in [5, 9]]
    cases += [(unrotated, distance, p) for distance, p in [(5, 0.001), (5, 0.005), (9, 0.005)]]
    cases += [("repetition_code:memory", 13, p) for p in [0.001, 0.005]]
    turns = 3 if arguments.quick else 7
    for kind, distance, p in cases:
        circuit, dem = code(kind, distance, p)
        count = (2_000_000 if arguments.quick else 20_000_000) // distance**3 // 10
        shots = circuit.compile_detector_sampler(seed=1).sample(min(count, 100_000), bit_packed=True)
        case = Case(program, dem, shots)
        matching = pymatching.Matching.from_detector_error_model(dem)

        def theirs():
            before = time.perf_counter_ns()
            decode(matching, shots)
            return (time.perf_counter_ns() - before) / len(shots)

        name = kind.replace("surface_code:", "").replace("_memory", "").replace("_code:memory", "").replace("code:", "")
        bench(f"{name}-d{distance}-p{p}", lambda: case.ours()[2][0], theirs, turns)
    return single(program, turns)


def single(program, turns):
    """The slowest of a thousand shots over the median, one shot at a time, d = 9, p = 0.005. Of each
    shot the least of several times: what another program of the machine took is not the shot's. PyMatching
    is called from Python, which an empty shot takes, too: its ratio is printed with that and without."""
    circuit, dem = code("surface_code:rotated_memory_z", 9, 0.005)
    shots = circuit.compile_detector_sampler(seed=2).sample(20_000)
    case = Case(program, dem, np.packbits(shots, axis=1, bitorder="little"))
    matching = pymatching.Matching.from_detector_error_model(dem)
    ours = case.ours("--single", "--laps", str(turns))[2]
    least = [math.inf] * len(shots)

    def taken(shot):
        before = time.perf_counter_ns()
        matching.decode(shot)
        return time.perf_counter_ns() - before

    for _ in range(turns):
        for index, shot in enumerate(shots):
            least[index] = min(least[index], taken(shot))
    least.sort()
    theirs = least[len(least) // 2], least[len(least) * 999 // 1000]
    call = min(taken(np.zeros_like(shots[0])) for _ in range(1_000))
    rows = [("ours", ours), ("theirs", theirs), ("theirs, without the call", [time - call for time in theirs])]
    for who, (median, slow) in rows:
        print(f"SINGLE {who}: median {median:.0f} ns, p99.9 {slow:.0f} ns, ratio {slow / median:.2f}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("what", choices=["oracle", "correlated", "times"])
    parser.add_argument("--shots", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    arguments.shots = arguments.shots or {"oracle": 10_000, "correlated": 100_000, "times": 0}[arguments.what]
    does = {"oracle": oracle, "correlated": correlated, "times": times}[arguments.what]
    sys.exit(0 if does(arguments.program, arguments) else 1)


main()
