"""Circuits, models and shots of the tests."""

import functools
import math
import os
import random
import tempfile

import numpy as np
import stim

# Boards, regions and runs of the tests lie in a directory of their own: other engines of this machine are not found.
_OWN = tempfile.TemporaryDirectory()
os.environ.update(PINWHEEL_SHM=f"{_OWN.name}/shm", XDG_STATE_HOME=f"{_OWN.name}/state")
os.makedirs(f"{_OWN.name}/shm", mode=0o700)

# On a busy machine a shot may take longer than the second that profile lab allows.
PATIENT = f"{_OWN.name}/patient.ron"
with open(PATIENT, "w", encoding="ascii") as _file:
    _limits = "(launch_deadline_us: 10000000, shot_deadline_us: 60000000)"
    _file.write(f'(base: "lab", summary: "waits for a busy machine", limits: {_limits})')


def experiment(distance, p):
    """The circuit of a memory experiment with all four noise parameters p."""
    return stim.Circuit.generated(
        "surface_code:rotated_memory_z",
        distance=distance,
        rounds=distance,
        after_clifford_depolarization=p,
        before_round_data_depolarization=p,
        before_measure_flip_probability=p,
        after_reset_flip_probability=p,
    )


@functools.lru_cache(maxsize=None)
def memory(distance, p, shots=0):
    """Its model, packed shots and true observables."""
    circuit = experiment(distance, p)
    sampler = circuit.compile_detector_sampler(seed=distance)
    packed, truth = sampler.sample(shots, separate_observables=True, bit_packed=True)
    return circuit.detector_error_model(decompose_errors=True), packed, truth


def random_model(seed):
    """Edges between any detectors and to the boundary, some parallel, some likelier than not; and shots."""
    draws = random.Random(seed)
    detectors, observables = draws.choice([3, 17, 64, 90]), draws.choice([1, 3, 70])
    # A path from the boundary through all detectors explains every shot.
    ends = [[0]] + [[end - 1, end] for end in range(1, detectors)]
    ends += [draws.sample(range(detectors), draws.choice([1, 2])) for _ in range(2 * detectors)]
    lines = [f"logical_observable L{observables - 1}"]
    for pair in ends:
        weight = draws.uniform(0.1, 6) * draws.choice([1] * 19 + [-1])
        flipped = [f" L{draws.randrange(observables)}"] if draws.random() < 0.3 else []
        lines.append(f"error({1 / (1 + math.exp(weight))!r})" + "".join(f" D{end}" for end in pair) + "".join(flipped))
    shots = np.random.default_rng(seed).random((300, detectors)) < draws.choice([0.02, 0.2, 0.5])
    return stim.DetectorErrorModel("\n".join(lines)), np.packbits(shots, axis=1, bitorder="little")
