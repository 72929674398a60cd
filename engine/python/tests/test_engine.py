"""An engine in this process: shots, answers, commands, and its end."""

import gc
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pinwheel
import pytest
from conftest import PATIENT, memory

SHOTS = 4000


@pytest.fixture(scope="module")
def engine():
    with pinwheel.Engine(PATIENT, model=memory(3, 0.005)[0]) as started:
        yield started
    report = started.report
    assert report["submitted"] == report["answered"] and report["lost"] == report["duplicated"] == 0, report
    assert report["ended_by"] == "drained"


def shots(count=SHOTS):
    _, packed, _ = memory(3, 0.005, SHOTS)
    return packed[:count]


def run(program, **options):
    """A Python program in a process of its own, which must end well and silently."""
    done = subprocess.run([sys.executable, "-c", program, PATIENT], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done


def test_answers_are_those_of_matching_in_the_order_of_the_shots(engine):
    dem, packed, truth = memory(3, 0.005, SHOTS)
    expected = pinwheel.Matching.from_dem(dem).decode_batch(packed, bit_packed_shots=True)
    plain = np.unpackbits(packed, axis=1, count=24, bitorder="little")
    assert (engine.shot_bits, engine.num_observables, engine.num_streams) == (24, 1, 4)
    for given, options in [(packed, {"bit_packed_shots": True}), (plain, {}), (plain.astype(bool), {"stream": 3})]:
        found = engine.decode(given, **options)
        assert found.dtype == np.uint8 and found.shape == (SHOTS, 1)
        assert (found == expected).all()
    again = engine.decode(packed, bit_packed_shots=True, bit_packed_predictions=True)
    assert again.shape == (SHOTS, 1) and (again == np.packbits(expected, axis=1, bitorder="little")).all()
    assert 0 < (found != truth).mean() < 0.1
    assert engine.decode(plain[:0]).shape == (0, 1)


def test_a_shadow_a_drill_and_a_snooze_are_commands_and_an_input_is_refused(engine):
    assert "union-find" in json.dumps(engine.shadow("union-find", one_in=2, why="to compare"))
    engine.decode(shots(100), bit_packed_shots=True)
    assert engine.board()["board"]["shadow"]["one_in"] == 2
    assert engine.shadow_off()
    assert engine.snooze(for_s=1)
    assert engine.drill("sleep", for_ms=10)
    with pytest.raises(RuntimeError, match="no-such"):
        engine.drill("no-such")
    with pytest.raises(RuntimeError, match="found an engine of this process"):
        engine.input("sampler")


def test_answers_with_their_status_and_latency_are_a_structured_array(engine):
    answers = engine.decode(shots(100), bit_packed_shots=True, return_answers=True, stream=2)
    assert answers.dtype.names == ("stream", "sequence", "status", "latency_ns", "predictions")
    assert answers.shape == (100,) and answers["predictions"].shape == (100, 1)
    assert (answers["stream"] == 2).all() and (np.diff(answers["sequence"].astype(int)) == 1).all()
    assert (answers["status"] == 0).all() and (answers["latency_ns"] > 0).all()


def test_each_submitted_shot_is_answered_once_and_a_decode_meanwhile_takes_its_own_answers(engine):
    first = engine.submit(shots(3000), bit_packed_shots=True, stream=0)
    decoded = engine.decode(shots(10), bit_packed_shots=True)
    second = engine.submit(shots(500), bit_packed_shots=True, stream=1)
    assert first.dtype == np.uint64 and first.shape == (3000,) and decoded.shape == (10, 1)
    answers = np.concatenate([engine.answers(1000), engine.answers()])
    for stream, numbers in [(0, first), (1, second)]:
        found = answers["sequence"][answers["stream"] == stream]
        assert (np.sort(found) == numbers).all()
    assert len(engine.answers()) == 0 and len(engine.answers(2**70, timeout=0)) == 0


def test_threads_share_an_engine_and_each_takes_its_own_answers(engine):
    dem, packed, _ = memory(3, 0.005, SHOTS)
    matching, failed = pinwheel.Matching.from_dem(dem), []

    def decode(part):
        for stream in (0, part):
            mine = packed[part::4]
            expected = matching.decode_batch(mine, bit_packed_shots=True)
            if not (engine.decode(mine, bit_packed_shots=True, stream=stream) == expected).all():
                failed.append(part)

    threads = [threading.Thread(target=decode, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_decoder_plugin_runs_in_a_process_of_its_own(tmp_path):
    source, library = pathlib.Path(__file__).parents[2] / "plugins/single_mechanisms.c", tmp_path / "single.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-o", library, source], check=True)
    model, named = "error(0.1) D0 L0\nerror(0.1) D1\n", f"plugin:{library}"
    # A plugin has half of a heartbeat for a shot: 10 ms in lab, in which a busy machine may not run its process.
    profile = tmp_path / "patient.ron"
    limits = "limits: (launch_deadline_us: 10000000, shot_deadline_us: 60000000, heartbeat_ms: 10000)"
    profile.write_text(f'(base: "lab", summary: "waits for a plugin", {limits})')
    with pinwheel.Engine(profile, model=model, decoder=named) as engine:
        assert engine.decode([[0, 0], [1, 0], [0, 1], [1, 1]]).tolist() == [[0], [1], [0], [1]]
        assert engine.decoder("matching")["acknowledged"] and engine.decoder(named)["acknowledged"]
        assert engine.decode([[1, 0]]).tolist() == [[1]]
    assert engine.report["decoder"] == "plugin single.so in its own process"
    assert engine.report["answered"] == 5 and not engine.report["errors"]


def test_two_threads_that_wait_for_an_answer_each_get_one(tmp_path):
    profile = tmp_path / "slow.ron"
    limits = "limits: (launch_deadline_us: 10000000, shot_deadline_us: 60000000)"
    profile.write_text(f'(base: "lab", summary: "one by one", workers: 1, device: Sim(latency: Fixed(us: 30000.0)), {limits})')
    with pinwheel.Engine(profile, model="surface_d3") as slow:
        for _ in range(3):
            found = []
            slow.pause()
            slow.submit(np.zeros((2, 24), bool))
            threads = [threading.Thread(target=lambda: found.append(len(slow.answers(1, timeout=60)))) for _ in range(2)]
            for thread in threads:
                thread.start()
            slow.resume()
            # Busy: a thread that has its answer waits for the interpreter lock while the other one looks.
            while any(thread.is_alive() for thread in threads):
                pass
            assert found == [1, 1]


@pytest.mark.parametrize(
    "given, options, kind, sentence",
    [
        (np.zeros((2, 23), np.uint8), {}, ValueError, "found shots of shape (2, 23), expected (shots, 24) for 24 detectors"),
        (np.zeros((2, 3), np.uint8), {}, ValueError, "expected (shots, 24) for 24 detectors; pass bit_packed_shots=True"),
        (np.zeros(24, np.uint8), {}, ValueError, "found shots of shape (24,), expected (shots, 24)"),
        (np.zeros((2, 24)), {}, TypeError, "found shots of dtype float64, expected bool or an integer dtype"),
        (np.zeros((2, 3), np.int8), {"bit_packed_shots": True}, TypeError, "found bit-packed shots of dtype int8, expected"),
        (np.full((2, 24), 2), {}, ValueError, "shot 0: found 2 at detector 0, expected 0 or 1"),
        (np.zeros((2, 24), bool), {"stream": 4}, ValueError, "found stream 4, expected one of 4, counted from 0"),
        (np.zeros((2, 24), bool), {"stream": -1}, ValueError, "found stream -1, expected one of 4, counted from 0"),
        (np.zeros((2, 24), bool), {"stream": 2**70}, ValueError, f"found stream {2**70}, expected one of 4, counted from 0"),
        (np.zeros((2, 24), bool), {"stream": -(2**70)}, ValueError, f"found stream {-(2**70)}, expected one of 4"),
        (np.zeros((2, 24), bool), {"stream": 1.0}, TypeError, "integer"),
    ],
)
def test_bad_shots_are_refused_with_what_was_found_and_what_is_expected(engine, given, options, kind, sentence):
    for call in (engine.decode, engine.submit):
        with pytest.raises(kind, match=re.escape(sentence)):
            call(given, **options)
    assert len(engine.answers(timeout=0)) == 0


@pytest.mark.parametrize(
    "arguments, kind, sentence",
    [
        ({"profile": "labb"}, ValueError, "labb"),
        ({"model": "no_such.dem"}, ValueError, "model no_such.dem: found "),
        ({"model": "error(0.1) D0\nerror(1.5) D1\n"}, ValueError, "model: line 2, column 6: found probability 1.5"),
        ({"model": "error(0.1) D0 D1 D2"}, RuntimeError, "with a part of 3 detectors, expected at most 2 in each part"),
        ({"model": "logical_observable L0\n"}, ValueError, "model: found no detectors, expected a model with at least one"),
        ({"streams": 4096}, ValueError, "streams: found 4096, expected 1..=1024"),
        ({"streams": -1}, ValueError, "streams: found -1, expected 1..=1024"),
        ({"streams": 2**33}, ValueError, "streams: found 8589934592, expected 1..=1024"),
        ({"silos": 2**40}, ValueError, "silos: found 1099511627776, expected 1..=64"),
        ({"silos": 2**70}, ValueError, f"silos: found {2**70}, expected 1..=64"),
        ({"streams": -(2**70)}, ValueError, f"streams: found {-(2**70)}, expected 1..=1024"),
        ({"decoder": "best"}, ValueError, 'found decoder "best", expected matching, correlated, union-find, lookup'),
        ({"decoder": "lookup", "model": memory(5, 0.005)[0]}, RuntimeError, "choose another decoder"),
        ({"logs": "/proc/no/such"}, RuntimeError, "/proc/no"),
        ({"logs": ""}, ValueError, "logs: found an empty name, expected a directory"),
        ({"profiles": ""}, ValueError, "profiles: found an empty name, expected a directory"),
    ],
)
def test_an_engine_that_cannot_start_says_why_and_leaves_nothing(arguments, kind, sentence):
    state = pathlib.Path(os.environ["XDG_STATE_HOME"])
    before, threads = sorted(state.rglob("*")), threading.active_count()
    with pytest.raises(kind, match=re.escape(sentence)):
        pinwheel.Engine(**arguments)
    assert (sorted(state.rglob("*")), threading.active_count()) == (before, threads)


def test_a_full_region_blocks_until_the_timeout_and_accepted_shots_are_answered_later(engine):
    assert engine.pause(why="full")["held"]
    with pytest.raises(TimeoutError, match=r"found no room for shot \d+ of 4000 within 0.3 s .*: call resume\(\)") as full:
        engine.submit(shots(), bit_packed_shots=True, timeout=0.3)
    accepted = int(re.search(r"shot (\d+) of", str(full.value))[1])
    with pytest.raises(TimeoutError, match="the feed is held by .*: full: call resume"):
        engine.decode(shots(1), bit_packed_shots=True, timeout=0.1)
    assert not engine.resume()["held"]
    assert accepted > 0 and len(engine.answers()) == accepted
    assert engine.decode(shots(10), bit_packed_shots=True).shape == (10, 1)


def test_other_threads_go_on_while_a_call_waits(engine):
    steps, is_over = 0, threading.Event()

    def wait():
        with pytest.raises(TimeoutError):
            engine.decode(shots(1), bit_packed_shots=True, timeout=0.5)
        is_over.set()

    engine.pause()
    waiting = threading.Thread(target=wait)
    waiting.start()
    while not is_over.is_set():
        steps += 1
    waiting.join()
    engine.resume()
    assert steps > 1000


def test_commands_are_acknowledged_or_refused_and_recorded_with_their_author_and_reason(engine):
    status = engine.status()
    assert (status["phase"], status["pid"], status["run_dir"]) == ("LIVE", os.getpid(), engine.run_dir)
    assert engine.decoder("union-find", why="a trial")["acknowledged"]
    assert engine.decoder("matching")["acknowledged"]
    assert engine.profile("shared", for_s=60)["to"] == "shared"
    assert engine.profile("lab")["acknowledged"]
    assert engine.note("pump on")["text"] == "pump on"
    assert engine.ack()["acknowledged"]
    for call, sentence in [
        (lambda: engine.decoder("best"), 'there is no decoder "best"'),
        (lambda: engine.model("no_such.dem"), "model no_such.dem cannot be read"),
        (lambda: engine.model("surface_d5"), "surface_d5"),
        (lambda: engine.silo("kill", 7), "silo"),
        (lambda: engine.rate(-1.0), "rate"),
    ]:
        with pytest.raises(RuntimeError, match=f"engine of process {os.getpid()}: .*{sentence}"):
            call()
    with pytest.raises(ValueError, match="found profile|no/such.ron"):
        engine.profile("no/such.ron")
    with pytest.raises(ValueError, match="^unknown variant `burn`, expected one of `drain`, `kill`, `rejoin`$"):
        engine.silo("burn", 0)
    with pytest.raises(ValueError, match="found count=-1, expected 0 or more, or None"):
        engine.answers(-1)
    with pytest.raises(ValueError, match="found rate nan, expected a finite number or None"):
        engine.rate(float("nan"))
    texts = [event["text"] for event in pinwheel.open_run(engine.run_dir).events]
    assert any(f"process {os.getpid()}" in text and text.endswith(": a trial") for text in texts), texts
    assert "pump on" in texts


def test_the_board_is_a_dictionary_with_the_names_of_the_report(engine):
    engine.decode(shots(10), bit_packed_shots=True)
    board = engine.board()
    assert board["attach"]["pid"] == os.getpid() and board["answered"] >= 10
    assert board["board"]["engine"]["detectors"] == 24 and board["threads"][0]["name"]
    assert "exit_status" not in board


def test_the_page_stands_in_a_frame_of_its_own_and_runs_nothing_of_others():
    with pinwheel.Engine(PATIENT, model=memory(3, 0.005)[0], label='"><script>alert(1)</script>') as engine:
        engine.decode(shots(10), bit_packed_shots=True)
        now = engine._repr_html_()
    for page in (now, engine._repr_html_(), pinwheel.open_run(engine.run_dir)._repr_html_()):
        assert re.fullmatch(r'<iframe sandbox style="[^"<>]*" srcdoc="[^"<>]*"></iframe>', page)
        assert "alert(1)" in page and "&lt;script" not in page and "&amp;lt;script" in page
    assert repr(engine) == "<pinwheel.Engine in this process, ended>"


def test_the_end_of_a_block_drains_and_a_closed_engine_says_that_it_has_ended():
    with pinwheel.Engine(PATIENT, model="surface_d3", streams=1) as engine:
        bits = engine.shot_bits
        engine.submit(np.zeros((1000, bits), bool))
    assert engine.report["answered"] == 1000 and engine.report["streams"][0]["answered"] == 1000
    assert len(engine.answers()) == 1000
    engine.close()
    for call in (engine.decode, engine.submit):
        with pytest.raises(ConnectionError, match=f"the engine of process {os.getpid()} has ended; start another one"):
            call(np.zeros((1, bits), bool))
    with pytest.raises(ZeroDivisionError), pinwheel.Engine(PATIENT, model="surface_d3") as engine:
        1 / 0
    assert engine.report["ended_by"] == "drained"


def test_an_engine_without_a_block_ends_with_its_last_reference():
    engine = pinwheel.Engine(PATIENT, model="surface_d3")
    directory, tasks = engine.run_dir, "/proc/self/task"
    while_running = len(os.listdir(tasks))
    del engine
    gc.collect()
    report = json.loads(pathlib.Path(directory, "report.json").read_text())
    assert report["ended_by"] == "drained" and len(os.listdir(tasks)) < while_running


def test_the_interpreter_ends_the_engine_and_nothing_is_printed():
    program = "import pinwheel; engine = pinwheel.Engine(model='surface_d3'); open('dir', 'w').write(engine.run_dir)"
    directory = os.environ["XDG_STATE_HOME"]
    done = run(program, cwd=directory)
    assert (done.stdout, done.stderr) == ("", "")
    left = pathlib.Path(directory, "dir").read_text()
    assert json.loads(pathlib.Path(left, "report.json").read_text())["ended_by"] == "drained"


@pytest.mark.parametrize("model", [b"error(0.1) D0 L0\n", b"error(0.1) D0 L0", "ERROR(0.1) d0 l0", "error(0.1) D0 L0"])
def test_a_model_is_a_text_in_letters_of_either_case_or_bytes(model):
    with pinwheel.Engine(PATIENT, model=model) as engine:
        assert engine.decode([[0], [1]]).tolist() == [[0], [1]]


def test_soft_bytes_without_a_map_are_refused(engine):
    assert engine.soft_bytes == 0
    for call in (engine.decode, engine.submit):
        with pytest.raises(ValueError, match="found soft bytes, expected none: the engine has no map of them"):
            call(shots(2), bit_packed_shots=True, soft=np.zeros((2, 1), np.uint8))


def test_no_signal_handler_is_installed():
    run(
        """
import pinwheel, re, sys
def caught():
    return re.search(r"SigCgt:\\s*(\\S+)", open("/proc/self/status").read())[1]
before = caught()
with pinwheel.Engine(sys.argv[1], model="surface_d3") as engine:
    assert caught() == before
assert caught() == before
"""
    )


def test_ctrl_c_ends_a_drain_and_leaves_the_report():
    run(
        """
import numpy, pinwheel, signal, sys, threading
engine = pinwheel.Engine(sys.argv[1], model="surface_d5@r500")
# Half of the detectors fire: a shot takes milliseconds.
engine.submit(numpy.random.default_rng(1).integers(0, 2, (512, engine.shot_bits)).astype(bool))
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
try:
    engine.close()
except KeyboardInterrupt:
    report = engine.report
    # A machine without a core to spare may not answer all within the limit of the end; those are lost, and said to be.
    assert 0 < report["answered"] == report["submitted"] - report["lost"], report
    engine.close()
else:
    raise SystemExit("not interrupted")
"""
    )


def test_ctrl_c_ends_a_call_and_the_engine_goes_on():
    run(
        """
import numpy, pinwheel, signal, sys, threading
with pinwheel.Engine(sys.argv[1], model="surface_d3") as engine:
    shots = numpy.zeros((10, engine.shot_bits), bool)
    engine.pause()
    for call in (lambda: engine.decode(shots, timeout=100), lambda: engine.answers(timeout=100)):
        engine.submit(shots)
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        try:
            call()
        except KeyboardInterrupt:
            continue
        raise SystemExit("not interrupted")
    engine.resume()
    assert len(engine.answers()) == 20
    assert engine.decode(shots).shape == (10, 1)
assert engine.report["answered"] == 40
"""
    )


def test_two_engines_run_in_one_process_and_a_region_has_one_client():
    with pinwheel.Engine(PATIENT, model="surface_d3") as one, pinwheel.Engine(PATIENT, model="surface_d3") as other:
        assert one.run_dir != other.run_dir
        for engine in (one, other):
            assert engine.decode(np.zeros((100, 24), bool)).shape == (100, 1)
        again = pinwheel.attach(one.run_dir)
        assert again.board()["answered"] == 100
        with pytest.raises(ConnectionError, match="in use by another client of this process at shm:python-"):
            again.decode(np.zeros((1, 24), bool))
        assert one.decode(np.zeros((100, 24), bool)).shape == (100, 1)
    assert (one.report["answered"], other.report["answered"]) == (200, 100)


def test_engines_one_after_the_other_leave_no_thread_file_or_mapping():
    def left():
        return [len(os.listdir(f"/proc/self/{part}")) for part in ("task", "fd", "map_files")]

    found = []
    for _ in range(4):
        with pinwheel.Engine(PATIENT, model="surface_d3") as engine:
            engine.decode(np.zeros((10, 24), bool))
        del engine
        gc.collect()
        found.append(left())
    # The first start keeps what the process has once.
    assert all(last <= first for first, last in zip(found[1], found[3])), found


def test_a_forked_child_cannot_use_the_engine_and_harms_nothing(engine):
    child = os.fork()
    if child == 0:
        try:
            engine.decode(shots(1), bit_packed_shots=True)
        except RuntimeError as error:
            engine.close()
            os._exit(0 if "which has the engine's threads; attach to it" in str(error) else 2)
        os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert engine.decode(shots(10), bit_packed_shots=True).shape == (10, 1)
