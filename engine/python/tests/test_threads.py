"""The interpreter lock: other threads go on during a batch, several decode at once, and Ctrl-C ends one."""

import _thread
import threading
import time

import numpy as np
import pinwheel
import pytest
from conftest import memory


def batch(times):
    """Many shots, and a decoder that takes some seconds for 100 times as many."""
    dem, shots, _ = memory(7, 0.01, 1_000)
    return pinwheel.Matching.from_dem(dem), np.tile(shots, (times, 1))


def test_another_thread_goes_on_while_a_batch_is_decoded():
    matching, shots = batch(50)
    span = []

    def work():
        span.append(time.perf_counter())
        matching.decode_batch(shots, bit_packed_shots=True)
        span.append(time.perf_counter())

    worker = threading.Thread(target=work)
    worker.start()
    seen = []
    while worker.is_alive():
        seen.append(time.perf_counter())
    start, end = span
    margin = (end - start) / 4
    assert sum(start + margin < at < end - margin for at in seen) > 100


def test_threads_share_a_decoder():
    matching, shots = batch(3)
    expected = matching.decode_batch(shots, bit_packed_shots=True)
    found = [None] * 4

    def work(index):
        found[index] = matching.decode_batch(shots, bit_packed_shots=True)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((answers == expected).all() for answers in found)


def test_ctrl_c_ends_a_batch():
    matching, shots = batch(5_000)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    before = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        matching.decode_batch(shots, bit_packed_shots=True)
    took = time.perf_counter() - before
    timer.join()
    assert took < 5, took
    assert len(matching.decode_batch(shots[:10], bit_packed_shots=True)) == 10
