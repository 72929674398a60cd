"""sinter with our decoders, in its worker processes."""

import math
import pickle
import subprocess
import sys

import numpy as np
import pinwheel
import pytest
import sinter
import stim
from conftest import experiment, memory

NAMES = ["pinwheel", "pinwheel-correlated", "pinwheel-union-find"]


def collect(decoders, custom_decoders):
    return {
        stats.decoder: stats
        for stats in sinter.collect(
            num_workers=2,
            tasks=[sinter.Task(circuit=experiment(5, 0.006))],
            decoders=decoders,
            custom_decoders=custom_decoders,
            max_shots=60_000,
        )
    }


def rate(stats):
    return stats.errors / (stats.shots - stats.discards)


def deviation(stats):
    return math.sqrt(rate(stats) / (stats.shots - stats.discards))


def test_error_rates_through_worker_processes_are_those_of_the_built_in_decoders():
    found = collect([*NAMES, "pymatching", "pymatching-correlated"], pinwheel.sinter_decoders())
    for ours, theirs in [("pinwheel", "pymatching"), ("pinwheel-correlated", "pymatching-correlated")]:
        ours, theirs = found[ours], found[theirs]
        assert ours.shots >= 60_000 and ours.discards == 0
        # Other shots: five standard deviations are exceeded once in 1.7 million runs.
        assert abs(rate(ours) - rate(theirs)) < 5 * math.hypot(deviation(ours), deviation(theirs))
    assert rate(found["pinwheel-correlated"]) < rate(found["pinwheel"]) < 1.5 * rate(found["pinwheel-union-find"])


def test_answers_of_little_confidence_are_discarded():
    found = collect(["pinwheel", "plain"], {**pinwheel.sinter_decoders(abstain_below_db=10), "plain": pinwheel.sinter_decoders()["pinwheel"]})
    assert 0.005 < found["pinwheel"].discards / found["pinwheel"].shots < 0.2
    assert rate(found["pinwheel"]) < 0.5 * rate(found["plain"])


@pytest.mark.parametrize("bound, discarded", [(0, [0, 0]), (9.5, [0, 0]), (9.6, [0, 1]), (28.5, [0, 1]), (28.7, [1, 1])])
@pytest.mark.parametrize("name", NAMES)
def test_the_bound_is_the_ratio_of_the_two_best_answers(name, bound, discarded):
    # Three errors of one in ten: the answer is 9 times likelier than the other one with a detection event (9.54 dB),
    # and 729 times without (28.63 dB).
    dem = stim.DetectorErrorModel("error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1")
    compiled = pinwheel.sinter_decoders(abstain_below_db=bound)[name].compile_decoder_for_dem(dem=dem)
    shots = np.array([[0b00], [0b01]], np.uint8)
    found = compiled.decode_shots_bit_packed(bit_packed_detection_event_data=shots)
    assert found.dtype == np.uint8 and found.tolist() == [[0, discarded[0]], [1, discarded[1]]]


def test_a_decoder_survives_pickling_and_decodes_files(tmp_path):
    dem, shots, truth = memory(3, 0.005, 1_000)
    decoders = pickle.loads(pickle.dumps(pinwheel.sinter_decoders()))
    assert list(decoders) == NAMES and decoders == pinwheel.sinter_decoders()
    dem.to_file(tmp_path / "model.dem")
    shots.tofile(tmp_path / "shots.b8")
    sinter.predict_on_disk(
        decoder="pinwheel",
        dem_path=tmp_path / "model.dem",
        dets_path=tmp_path / "shots.b8",
        dets_format="b8",
        obs_out_path=tmp_path / "predictions.b8",
        obs_out_format="b8",
        custom_decoders=decoders,
    )
    expected = pinwheel.Matching.from_dem(dem).decode_batch(shots, bit_packed_shots=True, bit_packed_predictions=True)
    assert (tmp_path / "predictions.b8").read_bytes() == expected.tobytes()


def test_a_bound_that_is_none_and_a_model_without_gaps_are_refused():
    for bound in [-1, float("nan"), float("inf")]:
        with pytest.raises(ValueError, match=f"found abstain_below_db={bound}, expected a finite number of decibels"):
            pinwheel.sinter_decoders(abstain_below_db=bound)
    # The observable of a ring: no boundary tells its two classes apart.
    ring = stim.DetectorErrorModel("error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.1) D0 D2 L0")
    with pytest.raises(ValueError, match="closes a cycle that flips observable 0"):
        pinwheel.sinter_decoders(abstain_below_db=10)["pinwheel"].compile_decoder_for_dem(dem=ring)


def test_the_package_is_imported_without_sinter_and_stim():
    code = "import pinwheel, sys; assert not {'sinter', 'stim', 'pymatching'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
