"""`pinwheel collect` beside sinter with Stim and PyMatching: the same model, shots and cores, whole processes in turns."""

import json
import pathlib
import statistics
import subprocess
import sys
import time

import sinter
import stim

DISTANCE, P, WORKERS, TURNS = 5, 0.001, 2, 5


def circuit() -> stim.Circuit:
    return stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=DISTANCE, rounds=DISTANCE, after_clifford_depolarization=P,
        before_round_data_depolarization=P, before_measure_flip_probability=P, after_reset_flip_probability=P,
    )


def ours(program: str, shots: int) -> tuple[float, float]:
    pathlib.Path("ours.csv").unlink(missing_ok=True)
    command = [program, "collect", "--dem", "m.dem", "--max-shots", str(shots), "--threads", str(WORKERS)]
    begin = time.monotonic()
    out = subprocess.run([*command, "-o", "ours.csv", "--json"], check=True, stdout=subprocess.PIPE).stdout
    took = time.monotonic() - begin
    return took / shots, json.loads(out)[0]["rate"]


def theirs(shots: int) -> tuple[float, float]:
    task = sinter.Task(circuit=circuit(), json_metadata={"d": DISTANCE})
    begin = time.monotonic()
    [stats] = sinter.collect(num_workers=WORKERS, tasks=[task], decoders=["pymatching"], max_shots=shots)
    took = time.monotonic() - begin
    return took / stats.shots, stats.errors / stats.shots


def main(program: str, shots: int) -> None:
    circuit().detector_error_model(decompose_errors=True).to_file("m.dem")
    turns = [(ours(program, 4 * shots), theirs(shots)) for _ in range(TURNS)]
    [mine, peer] = [[turn[side][0] * 1e9 for turn in turns] for side in (0, 1)]
    rates = [statistics.mean(turn[side][1] for turn in turns) for side in (0, 1)]
    print(f"BENCH collect,ns_per_shot,{statistics.median(mine):.1f},sinter,{statistics.median(peer):.1f}")
    print(f"BENCH collect,ratio,{statistics.median(p / m for m, p in zip(mine, peer)):.2f}")
    print(f"BENCH collect,errors_per_shot,{rates[0]:.3e},sinter,{rates[1]:.3e}")
    print(f"BENCH collect,core_minutes_for_1e9_shots,{statistics.median(mine) * WORKERS / 60:.1f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
