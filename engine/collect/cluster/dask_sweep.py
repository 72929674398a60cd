"""Collects a sweep on the workers of a dask cluster: a shard each, then one file."""

import subprocess
import sys

from dask.distributed import Client


def collect(shard: int, shards: int) -> str:
    path = f"shard-{shard}.csv"
    command = ["pinwheel", "collect", "--dem", "surface_d3", "--decoder", "matching,union-find", "--max-shots", "2e6"]
    subprocess.run([*command, "--seed", "1", "--threads", "1", "--shard", f"{shard}/{shards}", "-o", path], check=True)
    return path


def main(workers: int) -> None:
    # `Client(address)` for a cluster that runs; the workers and this program share a directory.
    with Client(n_workers=workers, threads_per_worker=1) as client:
        paths = client.gather(client.map(collect, range(1, workers + 1), shards=workers, pure=False))
    subprocess.run(["pinwheel", "collect", "merge", *paths, "-o", "sweep.csv"], check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
