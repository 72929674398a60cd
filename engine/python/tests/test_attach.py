"""A running engine of another process."""

import itertools
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pinwheel
import pytest
from conftest import PATIENT, memory

BINARY = os.environ.get("PINWHEEL_BINARY")
OTHER = "import pinwheel, sys; e = pinwheel.Engine(sys.argv[1], model='surface_d3'); print(e.run_dir, flush=True); input()"


@pytest.fixture
def other():
    """An engine in another Python process, and its run's directory."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, PATIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        yield started, started.stdout.readline().strip()
        started.kill()


def test_without_an_engine_the_sentence_is_that_of_the_program():
    with pytest.raises(
        ConnectionError, match="boards in .*: found none, expected a running engine; start one with pinwheel"
    ):
        pinwheel.attach()
    with pytest.raises(ConnectionError, match="expected the engine of process 1; "):
        pinwheel.attach(1)


def test_an_engine_is_found_by_process_run_or_directory_and_is_read_and_operated(other):
    process, directory = other
    for run in (None, process.pid, str(process.pid), directory, os.path.basename(directory)):
        engine = pinwheel.attach(run)
        assert (engine.pid, engine.run_dir) == (process.pid, directory)
    board = engine.board()
    assert (board["attach"]["pid"], board["board"]["engine"]["phase"]) == (process.pid, "Live")
    assert engine.pause(why="from outside")["acknowledged"]
    events = pinwheel.open_run(directory).events
    assert any(f"process {os.getpid()}" in event["text"] and "from outside" in event["text"] for event in events)
    assert engine._repr_html_().startswith("<iframe sandbox")
    assert repr(engine) == f"<pinwheel.Engine in process {process.pid}>"
    # Its region has a client.
    with pytest.raises(
        ConnectionError, match="in use by another client at shm:python-.*a region has one client at a time"
    ):
        engine.decode(np.zeros((1, 24), bool))
    engine.drain()
    engine.close()
    assert engine.report is None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(30) == 0


def test_an_engine_that_was_killed_is_an_exception_with_a_sentence(other):
    process, _ = other
    engine = pinwheel.attach()
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    with pytest.raises(ConnectionError, match="control socket"):
        engine.status()
    with pytest.raises(ConnectionError, match=f"process {process.pid} ended; see pinwheel postmortem"):
        pinwheel.attach(process.pid)


def started(*options, cwd=None, model=None):
    """An engine of the program, which takes shots of `model`, or of memory(3, …)."""
    if model is None:
        model = os.path.join(os.environ["XDG_STATE_HOME"], "d3.dem")
        os.makedirs(os.path.dirname(model), exist_ok=True)
        memory(3, 0.005)[0].to_file(model)
    command = [BINARY, "run", "--headless", "--profile", PATIENT, "--dem", model, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd)
    for _ in range(600):
        try:
            return process, pinwheel.attach(process.pid)
        except ConnectionError:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
    raise AssertionError("the program did not start an engine")


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
@pytest.mark.parametrize("place", ["shm:attached", "unix:{}/in", "udp:127.0.0.1:0"])
def test_shots_go_to_an_engine_of_the_program(place):
    process, engine = started("--input", place.format(os.environ["XDG_STATE_HOME"]))
    try:
        dem, packed, _ = memory(3, 0.005, 4000)
        expected = pinwheel.Matching.from_dem(dem).decode_batch(packed, bit_packed_shots=True)
        assert (engine.decode(packed, bit_packed_shots=True, stream=1) == expected).all()
        numbers = engine.submit(packed[:50], bit_packed_shots=True)
        answers = engine.answers()
        assert (np.sort(answers["sequence"]) == numbers).all()
        assert engine.board()["answered"] == 4050
        engine.drain()
        assert process.wait(30) == 0, process.stderr.read()
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
@pytest.mark.parametrize("place", ["shm:soft", "unix:{}/soft"])
def test_soft_bytes_go_with_the_shots_to_an_engine_with_a_map(place, tmp_path):
    # Both detectors fire because a readout was wrong, or else, if it was surely right, by two other errors, of which
    # one flips the observable.
    (tmp_path / "m.dem").write_text("error(0.1) D0 D1\nerror(0.05) D0 L0\nerror(0.05) D1\n")
    (tmp_path / "map").write_text("soft 1\nS0 0.1 D0 D1\n")
    options = ["--input", place.format(tmp_path), "--soft-map", tmp_path / "map"]
    process, engine = started(*options, model=tmp_path / "m.dem")
    try:
        shots, soft = np.ones((4, 2), bool), np.array([[0], [255], [1], [120]], np.uint8)
        assert engine.soft_bytes == 1
        assert engine.decode(shots, soft=soft).ravel().tolist() == [0, 1, 0, 1]
        assert engine.decode(shots).ravel().tolist() == [0] * 4
        assert engine.decode(shots[:0], soft=soft[:0]).shape == (0, 1)
        numbers = engine.submit(shots, soft=soft)
        answers = np.sort(engine.answers(), order="sequence")
        assert (answers["sequence"] == numbers).all() and answers["predictions"].ravel().tolist() == [0, 1, 0, 1]
        for wrong, kind, sentence in [
            (soft[:3], ValueError, r"found soft bytes of shape \(3, 1\), expected \(4, 1\)"),
            (soft.ravel(), ValueError, r"found soft bytes of shape \(4,\), expected \(4, 1\)"),
            (soft.astype(int), TypeError, "found soft bytes of dtype int64, expected uint8"),
        ]:
            with pytest.raises(kind, match=sentence):
                engine.submit(shots, soft=wrong)
        assert len(engine.answers(timeout=0)) == 0
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_answers_before_the_first_shot_are_none_and_the_engine_has_not_ended():
    process, engine = started("--input", "shm:asked")
    try:
        assert engine.answers(timeout=0).shape == (0,)
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_a_socket_with_a_relative_path_is_found_from_another_directory():
    process, engine = started("--input", "unix:relative", cwd=os.environ["XDG_STATE_HOME"])
    try:
        assert engine.decode(np.zeros((10, 24), bool)).shape == (10, 1)
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_shots_that_a_socket_lost_take_no_room_of_later_ones():
    process, engine = started("--input", "udp:127.0.0.1:0")
    try:
        host, port = engine.board()["board"]["sources"][0]["name"].removeprefix("udp:").split(":")
        other, is_over = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), threading.Event()

        def keep_stream_0():
            # A newer session has the stream. The engine counts shots of the older one, and answers none.
            for number in itertools.count():
                head = struct.pack("<4s4BQQQ4I", b"PWL1", 1, 1, 1, 0, 0, 1 << 63, number, 0, 0, 0, 24)
                other.sendto(head + bytes(3), (host, int(port)))
                if is_over.wait(0.01):
                    return

        assert engine.shot_bits == 24
        keeping = threading.Thread(target=keep_stream_0)
        keeping.start()
        try:
            while engine.board()["answered"] == 0:
                pass
            engine.submit(np.zeros((200, 24), bool), timeout=30)
        finally:
            is_over.set()
            keeping.join()
        assert len(engine.answers(timeout=2)) == 0
        numbers = engine.submit(np.zeros((100, 24), bool), stream=1)
        answers = engine.answers(100, timeout=60)
        assert (np.sort(answers["sequence"]) == numbers).all() and (answers["stream"] == 1).all()
        # Nobody waits for the lost ones.
        before = time.monotonic()
        assert len(engine.answers(timeout=300)) == 0 and time.monotonic() - before < 100
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_a_socket_that_is_gone_is_not_taken_for_a_region():
    path = os.path.join(os.environ["XDG_STATE_HOME"], "gone")
    process, engine = started("--input", f"unix:{path}")
    try:
        os.unlink(path)
        sentence = f"at unix:{path}, expected its live source; see whether .* socket is there"
        with pytest.raises(ConnectionError, match=sentence):
            engine.decode(np.zeros((1, 24), bool))
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_an_engine_of_the_program_starts_again_on_another_input():
    process, engine = started("--input", "shm:before")
    try:
        before = engine.run_dir
        assert engine.input("shm:after", why="a second client")
        for _ in range(600):
            try:
                engine = pinwheel.attach(process.pid)
                if engine.run_dir != before and engine.shot_bits == 24:
                    break
            except ConnectionError:
                pass
            time.sleep(0.05)
        dem, packed, _ = memory(3, 0.005, 100)
        expected = pinwheel.Matching.from_dem(dem).decode_batch(packed, bit_packed_shots=True)
        assert (engine.decode(packed, bit_packed_shots=True) == expected).all()
        engine.stop()
        process.wait(30)
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_a_region_is_left_to_the_next_handle_by_close_and_by_the_end_of_its_engine():
    shots = np.zeros((1, 24), bool)
    process, first = started("--input", "shm:handed")
    try:
        with first:
            first.decode(shots)
        second = pinwheel.attach(process.pid)
        second.decode(shots)
        with pytest.raises(ConnectionError, match="in use by another client of this process"):
            first.decode(shots)
        process.kill()
        process.wait(30)
        process, third = started("--input", "shm:handed")
        third.decode(shots)
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_a_call_that_waits_for_a_killed_engine_raises_a_sentence():
    process, engine = started("--input", "shm:killed")
    try:
        assert engine.shot_bits == 24
        engine.pause()
        threading.Timer(0.3, process.kill).start()
        sentence = rf"process {process.pid} ended [\d.]+ s after its start, before the end of its run; .* postmortem"
        with pytest.raises(ConnectionError, match=sentence):
            engine.decode(np.zeros((1, 24), bool), timeout=60)
        with pytest.raises(ConnectionError, match=sentence):
            engine.submit(np.zeros((5000, 24), bool), timeout=60)
        assert engine.board()["attach"]["pid"] == process.pid
    finally:
        process.kill()


@pytest.mark.skipif(not BINARY, reason="the program is not built: PINWHEEL_BINARY names none")
def test_an_engine_that_draws_its_shots_takes_none_and_its_rate_can_be_set():
    process, engine = started("--rate", "500")
    try:
        sentence = "expected shm:NAME, unix:PATH or udp:ADDRESS:PORT; start it with"
        with pytest.raises(ValueError, match=re.escape(sentence)):
            engine.submit(np.zeros((1, 24), bool))
        done = engine.rate(700.0, why="faster")
        assert (done["hz"], done["pid"]) == (700.0, process.pid)
        assert engine.stop()["action"] == "end"
        process.wait(30)
    finally:
        process.kill()
