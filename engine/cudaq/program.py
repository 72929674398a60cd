"""A distance-3 surface code kept for three rounds, with its decoder, on CUDA-Q's `stim` target.

    python program.py decoders.yaml [SHOTS [SEED]]

Writes the configuration of its decoder, and prints the correction and the readout of each shot, then the sums.
"""

import sys

import cudaq
import cudaq_qec as qec

DISTANCE, ROUNDS, DEPOLARIZED = 3, 3, 0.005


@cudaq.kernel
def measure_checks(data: cudaq.qview, checks: cudaq.qview, x_pairs: list[int],
                   z_pairs: list[int]) -> list[cudaq.measure_handle]:
    """One round: the checks of Z, then those of X. A pair is the number of a check and that of a data qubit."""
    half = checks.size() // 2
    reset(checks)
    for at in range(half):
        h(checks[half + at])
    for at in range(len(x_pairs) // 2):
        x.ctrl(checks[half + x_pairs[2 * at]], data[x_pairs[2 * at + 1]])
    for at in range(half):
        h(checks[half + at])
    for at in range(len(z_pairs) // 2):
        x.ctrl(data[z_pairs[2 * at + 1]], checks[z_pairs[2 * at]])
    return mz(checks)


@cudaq.kernel
def model(qubits: int, rounds: int, x_pairs: list[int], z_pairs: list[int], logical: list[int], weights: list[int]):
    """What a shot of `memory` measures, with its detectors and its observable."""
    data = cudaq.qvector(qubits)
    checks = cudaq.qvector(qubits - 1)
    half = checks.size() // 2
    before = measure_checks(data, checks, x_pairs, z_pairs)
    for check in range(half):
        cudaq.detector(before[check])
    for _ in range(rounds - 1):
        now = measure_checks(data, checks, x_pairs, z_pairs)
        for check in range(half):
            cudaq.detector(before[check], now[check])
        before = now
    last = mz(data)
    first = 0
    for check in range(half):
        if weights[check] == 2:
            cudaq.detector(before[check], last[z_pairs[first + 1]], last[z_pairs[first + 3]])
        else:
            cudaq.detector(before[check], last[z_pairs[first + 1]], last[z_pairs[first + 3]],
                           last[z_pairs[first + 5]], last[z_pairs[first + 7]])
        first += 2 * weights[check]
    cudaq.logical_observable(last[logical[0]], last[logical[1]], last[logical[2]])


@cudaq.kernel
def memory(shots: int, qubits: int, rounds: int, x_pairs: list[int], z_pairs: list[int],
           logical: list[int]) -> list[int]:
    """Of each shot, the decoder's correction plus twice the readout of the logical qubit."""
    data = cudaq.qvector(qubits)
    checks = cudaq.qvector(qubits - 1)
    found = [0 for _ in range(shots)]
    for at in range(shots):
        reset(data)
        qec.reset_decoder(0)
        for _ in range(rounds):
            measured = measure_checks(data, checks, x_pairs, z_pairs)
            qec.enqueue_syndromes(0, measured, 0)
        last = mz(data)
        qec.enqueue_syndromes(0, last, 0)
        corrections = qec.get_corrections(0, 1, True)
        if corrections[0]:
            found[at] += 1
        readout = False
        for place in range(len(logical)):
            if last[logical[place]]:
                readout = not readout
        if readout:
            found[at] += 2
    return found


def configuration(arguments, weights, noise):
    """What the decoder has to know, from the errors of `model` and their detectors."""
    found = cudaq.dem_from_kernel(model, *arguments, weights, noise_model=noise)
    errors = qec.dem_from_stim_text(found.dem)
    decoder = qec.decoder_config()
    decoder.id = 0
    decoder.type = "pymatching"
    decoder.syndrome_size, decoder.block_size = errors.detector_error_matrix.shape
    decoder.H_sparse = qec.pcm_to_sparse_vec(errors.detector_error_matrix)
    decoder.O_sparse = qec.pcm_to_sparse_vec(errors.observables_flips_matrix)
    decoder.D_sparse = qec.d_sparse(found.m2d)
    decoder.decoder_custom_args = {"error_rate_vec": errors.error_rates, "merge_strategy": "smallest_weight"}
    decoders = qec.multi_decoder_config()
    decoders.decoders = [decoder]
    return decoders


def main(path, shots=1000, seed=7):
    cudaq.set_target("stim")
    grid = qec.stabilizer_grid(DISTANCE)
    code = qec.get_code("surface_code", distance=DISTANCE)
    logical = code.get_observables_z()[0].nonzero()[0].tolist()
    weights = code.get_parity_z().sum(axis=1).tolist()
    arguments = (DISTANCE**2, ROUNDS, grid.get_cnot_schedule_pairs_x(), grid.get_cnot_schedule_pairs_z(), logical)
    noise = cudaq.NoiseModel()
    noise.add_all_qubit_channel("x", cudaq.Depolarization2(DEPOLARIZED), 1)
    decoders = configuration(arguments, weights, noise)
    with open(path, "w") as file:
        file.write(decoders.to_yaml_str())
    assert qec.configure_decoders_from_file(path) == 0
    cudaq.set_random_seed(int(seed))
    # One run with all shots: a kernel that calls a decoder is compiled again for each shot of a run.
    [answers] = cudaq.run(memory, int(shots), *arguments, shots_count=1, noise_model=noise)
    qec.finalize_decoders()
    for answer in answers:
        print(answer % 2, answer // 2)
    corrections = sum(answer % 2 for answer in answers)
    logical_errors = sum(answer in (1, 2) for answer in answers)
    print(f"shots={len(answers)} corrections={corrections} logical_errors={logical_errors}")


if __name__ == "__main__":
    main(*sys.argv[1:])
