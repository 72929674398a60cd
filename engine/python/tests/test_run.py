"""What a run left, as dictionaries and arrays."""

import os

import numpy as np
import pinwheel
import pytest
from conftest import PATIENT, memory


@pytest.fixture(scope="module")
def run():
    dem, packed, _ = memory(3, 0.005, 4000)
    with pinwheel.Engine(PATIENT, model=dem, label="a recording") as engine:
        engine.decode(packed, bit_packed_shots=True)
        engine.note("pump\u2028on")
    return pinwheel.open_run(engine.run_dir)


def test_report_events_and_boards_are_dictionaries(run):
    assert (run.report["answered"], run.report["label"], run.report["lost"]) == (4000, "a recording", 0)
    assert run.report["run_dir"] == run.path
    assert {"utc", "ticks", "thread", "event", "text", "numbers"} <= set(run.events[0])
    last = run.board()
    assert last["answered"] == 4000 and last["replay"]["at_ns"] == last["replay"]["to_ns"]
    assert run.board(0.0)["replay"]["at_ns"] <= run.board(1e6)["replay"]["at_ns"] == last["replay"]["at_ns"]
    assert run._repr_html_().startswith("<iframe sandbox")


def test_an_event_whose_text_has_a_separator_of_lines_is_one_event(run):
    assert any("pump\u2028on" in event["text"] for event in run.events)


def test_samples_are_the_counters_of_each_recorded_board(run):
    samples = run.samples()
    assert (
        samples.ndim == 1
        and len(samples) >= 2
        and set(samples.dtype.fields[name][0] for name in samples.dtype.names) == {np.dtype(np.uint64)}
    )
    assert (np.diff(samples["at_ns"].astype(np.int64)) > 0).all()
    assert samples["answered"][-1] == samples["submitted"][-1] == 4000
    assert samples["p99_ns"].max() >= samples["p50_ns"].max() > 0


def test_a_run_without_a_shadow_has_no_recorded_shots(run):
    shots, answers = run.disagreements()
    assert shots.shape == (0, 24) and shots.dtype == np.uint8 and answers == []


def test_shots_on_which_a_shadow_disagreed_are_an_array(tmp_path):
    profile = tmp_path / "shadowed.ron"
    profile.write_text('(base: "lab", summary: "a shadow", shadow: Some((decoder: UnionFind, one_in: 1)))')
    dem, packed, _ = memory(5, 0.02, 4000)
    with pinwheel.Engine(profile, model=dem) as engine:
        for part in np.array_split(packed, 20):
            engine.decode(part, bit_packed_shots=True)
    run = pinwheel.open_run(engine.run_dir)
    shots, answers = run.disagreements()
    assert 0 < len(shots) == len(answers) == run.report["shadow"]["disagreements"]
    assert shots.shape == (len(answers), 120)
    known = {shot.tobytes() for shot in packed}
    assert all(np.packbits(shot, bitorder="little").tobytes() in known for shot in shots)


def test_a_run_is_found_by_its_name_and_the_newest_as_last(run, tmp_path):
    assert pinwheel.open_run(os.path.basename(run.path)).path == run.path
    made = []
    for _ in range(2):
        with pinwheel.Engine(PATIENT, model="surface_d3", logs=tmp_path) as engine:
            made.append(engine.run_dir)
    assert pinwheel.open_run("last", logs=tmp_path).path == made[1]
    assert pinwheel.open_run(os.path.basename(made[0]), logs=str(tmp_path)).path == made[0]
    with pytest.raises(FileNotFoundError, match=f"run none: found .*, its name in {tmp_path}, or last"):
        pinwheel.open_run("none", logs=tmp_path)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="none: found no such directory, expected a run's"):
        pinwheel.open_run(tmp_path / "none")
    with pytest.raises(
        ValueError, match="found neither report.json nor manifest.json nor a recording that can be read"
    ):
        pinwheel.open_run(tmp_path)
    with pytest.raises(TypeError, match=r"expected open_run\(path\)"):
        pinwheel.Run()
