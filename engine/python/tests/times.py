"""Time of a shot beside PyMatching's, on the same arrays in the same process. Called by `check times`."""

import argparse
import os
import statistics
import time

import numpy as np
import pinwheel
import pymatching
import sinter
from conftest import experiment, memory

PEER = f"pymatching-{pymatching.__version__}"


def lap(work):
    before = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - before


def bench(name, unit, per, ours, theirs, turns):
    """Both in turns. The line has the median of each; the note the least, and the median of the ratios of the turns."""
    laps = []
    for turn in range(turns):
        # Who goes first alternates.
        pair = [(0, ours), (1, theirs)][:: 1 if turn % 2 else -1]
        took = {side: lap(work) / per for side, work in pair}
        laps.append((took[0], took[1]))
    ours, theirs = (statistics.median(side) for side in zip(*laps))
    least = [min(side) for side in zip(*laps)]
    ratio = statistics.median(their / our for our, their in laps)
    print(
        f"BENCH name=python/{name} unit={unit} ours={ours:.1f} peer={PEER} theirs={theirs:.1f} "
        f"ratio={theirs / ours:.2f} floor=-\n"
        f"  least {least[0]:.1f} and {least[1]:.1f}: {least[1] / least[0]:.2f}; median of {turns} ratios {ratio:.2f}; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def batches(turns, scale):
    """Batches of some milliseconds at least."""
    packed = {"bit_packed_shots": True, "bit_packed_predictions": True}
    for p in [0.001, 0.005]:
        for distance in [3, 5, 7, 9]:
            dem, detections, _ = memory(distance, p, int(scale * {3: 400_000, 5: 80_000, 7: 20_000, 9: 20_000}[distance]))
            ours, theirs = pinwheel.Matching.from_dem(dem), pymatching.Matching.from_detector_error_model(dem)
            weights = [each.decode_batch(detections, return_weights=True, **packed)[1] for each in [ours, theirs]]
            np.testing.assert_allclose(*weights, rtol=0, atol=2e-6 * dem.num_detectors)
            bench(
                f"decode_batch-d{distance}-p{p}",
                "ns/shot",
                len(detections),
                lambda: ours.decode_batch(detections, **packed),
                lambda: theirs.decode_batch(detections, **packed),
                turns,
            )


def collections(turns, seconds):
    """Shots that one worker process samples and decodes; and the decoder's part of it."""
    for distance, p in [(3, 0.001), (5, 0.001), (5, 0.005), (7, 0.005), (9, 0.005)]:
        stats = {"pinwheel": [], "pymatching": []}
        for turn in range(turns):
            for decoder in list(stats)[:: 1 if turn % 2 else -1]:
                (found,) = sinter.collect(
                    num_workers=1,
                    tasks=[sinter.Task(circuit=experiment(distance, p))],
                    decoders=[decoder],
                    custom_decoders=pinwheel.sinter_decoders(),
                    max_shots=int(seconds * {3: 3e6, 5: 6e5, 7: 8e4, 9: 2.5e4}[distance]),
                )
                stats[decoder].append(found)
        # The time that sinter itself measured in the worker: sampling and decoding, without the start of the process.
        rates = {who: [each.shots / each.seconds for each in found] for who, found in stats.items()}
        ours, theirs = (statistics.median(rates[who]) for who in stats)
        best = [max(rates[who]) for who in stats]
        wrong = {who: sum(each.errors for each in found) / sum(each.shots for each in found) for who, found in stats.items()}
        print(
            f"BENCH name=python/sinter-d{distance}-p{p} unit=shots/s ours={ours:.0f} peer={PEER} theirs={theirs:.0f} "
            f"ratio={ours / theirs:.2f} floor=-\n"
            f"  most {best[0]:.0f} and {best[1]:.0f}: {best[0] / best[1]:.2f}; logical error rates {wrong}; "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    batches(3 if is_quick else 15, 0.2 if is_quick else 1)
    collections(1 if is_quick else 5, 0.3 if is_quick else 2)


if __name__ == "__main__":
    main()
