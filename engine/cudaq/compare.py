"""Compares a decoder's answers in process with those at a port, and both with the explanations of least weight.

    python compare.py decoders.yaml IN_PROCESS AT_A_PORT measurements.b8

The answers are what `program.py` printed, the measurements those that the engine kept. Where the least weight is the
same with and without a flip of the observable, either answer is right: such a shot is a tie. Exit status 1: the
programs measured different things, or an answer is wrong.
"""

import sys

import cudaq_qec as qec
import numpy as np

# Explanations whose weights differ by less weigh the same. The rates have six digits, which makes equal sums of weights
# differ by up to 1e-4; other sums differ by 0.01 or more.
EQUAL = 1e-3


def rows(sparse):
    found = [[]]
    for column in sparse:
        if column < 0:
            found.append([])
        else:
            found[-1].append(column)
    return found[:-1]


def least_weights(decoder):
    """The least weight of errors, by what they flip: a bit for each detector, and above them the observable."""
    rates = np.array(decoder.decoder_custom_args["error_rate_vec"])
    flips = np.zeros(len(rates), dtype=np.int64)
    for bit, columns in enumerate(rows(decoder.H_sparse) + rows(decoder.O_sparse)):
        flips[columns] |= 1 << bit
    every = np.arange(2 ** (decoder.syndrome_size + 1))
    least = np.full(len(every), np.inf)
    least[0] = 0
    # No explanation that weighs least has an error twice, so that each error is tried until nothing becomes less.
    before = None
    while before is None or not np.array_equal(before, least):
        before = least
        for flip, weight in zip(flips, np.log(1 / rates - 1)):
            least = np.minimum(least, least[every ^ flip] + weight)
    return least.reshape(2, -1)


def answers(path):
    with open(path) as file:
        return np.array([line.split() for line in file if "=" not in line], dtype=int)


def main(configuration, in_process, at_a_port, measurements):
    with open(configuration) as file:
        [decoder] = qec.multi_decoder_config.from_yaml_str(file.read()).decoders
    here, there = answers(in_process), answers(at_a_port)
    width = 1 + max(decoder.D_sparse)
    kept = np.fromfile(measurements, dtype=np.uint8).reshape(-1, (width + 7) // 8)
    kept = np.unpackbits(kept, axis=1, bitorder="little")
    if not len(here) == len(there) == len(kept) > 0:
        sys.exit(f"compare.py: found {len(here)}, {len(there)} and {len(kept)} shots, expected one number")
    if (here[:, 1] != there[:, 1]).any():
        sys.exit("compare.py: found other readouts at a port, expected those in process; run both with one seed")
    syndromes = sum((kept[:, columns].sum(axis=1) & 1).astype(np.int64) << bit
                    for bit, columns in enumerate(rows(decoder.D_sparse)))
    least = least_weights(decoder)[:, syndromes]
    is_tie = abs(least[0] - least[1]) < EQUAL
    is_flip = least[1] < least[0]
    wrong = [int((found[:, 0] != is_flip)[~is_tie].sum()) for found in (here, there)]
    differ = here[:, 0] != there[:, 0]
    errors = [int((found[:, 0] != found[:, 1]).sum()) for found in (here, there)]
    corrections = [int(found[:, 0].sum()) for found in (here, there)]
    print(f"CUDAQ shots={len(here)} corrections={corrections[0]} at_port={corrections[1]} logical_errors={errors[0]} "
          f"at_port={errors[1]} differ={differ.sum()} ties={is_tie.sum()} wrong={wrong[0]} wrong_at_port={wrong[1]}")
    if any(wrong) or (differ & ~is_tie).any():
        sys.exit("compare.py: found an answer that is not of least weight, expected none")


if __name__ == "__main__":
    main(*sys.argv[1:])
