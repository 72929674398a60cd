"""Answers: PyMatching's, the same for every form of the shots, and better or quicker where another decoder is chosen."""

import numpy as np
import pinwheel
import pymatching
import pytest
import stim
from conftest import memory, random_model

# Weights are rounded: ours by up to 2^-19 of a unit for each edge, of which an answer has one a detector at most.
ROUNDING = 2e-6


def errors(predictions, truth):
    return int((predictions != truth).any(axis=1).sum())


def compare(dem, shots):
    """Equal weights. Predictions may differ where several answers weigh the same: says in how many shots."""
    options = {"bit_packed_shots": True, "bit_packed_predictions": True, "return_weights": True}
    ours, our_weights = pinwheel.Matching.from_dem(dem).decode_batch(shots, **options)
    theirs, their_weights = pymatching.Matching.from_detector_error_model(dem).decode_batch(shots, **options)
    np.testing.assert_allclose(our_weights, their_weights, rtol=0, atol=ROUNDING * dem.num_detectors)
    assert (ours.shape, ours.dtype, our_weights.dtype) == (theirs.shape, theirs.dtype, their_weights.dtype)
    return int((ours != theirs).any(axis=1).sum())


@pytest.mark.parametrize("distance", [3, 5, 7])
@pytest.mark.parametrize("p", [0.001, 0.005])
def test_weights_of_surface_codes_are_pymatchings(distance, p):
    dem, shots, _ = memory(distance, p, 20_000)
    assert compare(dem, shots) <= 20


def test_weights_of_random_models_are_pymatchings():
    # No two answers of these models weigh the same but by chance.
    assert sum(compare(*random_model(seed)) for seed in range(60)) <= 3


@pytest.mark.parametrize("decoder", ["matching", "correlated", "union-find", "lookup"])
def test_packed_and_unpacked_shots_have_the_same_answers(decoder):
    dem, packed, _ = memory(3, 0.01, 2_000)
    matching = pinwheel.Matching.from_dem(dem, decoder=decoder)
    shots = np.unpackbits(packed, axis=1, count=dem.num_detectors, bitorder="little")
    expected, weights = matching.decode_batch(shots, return_weights=True)
    assert (expected.shape, expected.dtype) == ((2_000, 1), np.uint8)
    for same in [shots.astype(bool), shots.astype(np.int64), np.asfortranarray(shots), np.repeat(shots, 2, axis=1)[:, ::2]]:
        assert (matching.decode_batch(same) == expected).all()
    from_packed = matching.decode_batch(packed, bit_packed_shots=True)
    to_packed = matching.decode_batch(np.asfortranarray(packed), bit_packed_shots=True, bit_packed_predictions=True)
    assert (from_packed == expected).all() and (to_packed == np.packbits(expected, axis=1, bitorder="little")).all()
    for shot in range(200):
        one, weight = matching.decode(shots[shot], return_weight=True)
        assert (one == expected[shot]).all() and weight == weights[shot]
    assert (matching.decode(shots[0].tolist()) == expected[0]).all()


def test_answers_belong_to_the_caller():
    dem, shots, _ = memory(3, 0.01, 2_000)
    matching = pinwheel.Matching.from_dem(dem)
    predictions, weights = matching.decode_batch(shots, bit_packed_shots=True, return_weights=True)
    predictions ^= 1
    weights *= 2


def test_correlated_matching_is_pymatchings_and_errs_less():
    dem, shots, truth = memory(5, 0.008, 40_000)
    packed = {"bit_packed_shots": True, "bit_packed_predictions": True}
    plain = pinwheel.Matching.from_dem(dem).decode_batch(shots, **packed)
    ours = pinwheel.Matching.from_dem(dem, decoder="correlated").decode_batch(shots, **packed)
    other = pymatching.Matching.from_detector_error_model(dem, enable_correlations=True)
    theirs = other.decode_batch(shots, enable_correlations=True, **packed)
    assert errors(ours, theirs) <= 40
    assert errors(ours, truth) < 0.9 * errors(plain, truth)


def test_union_find_explains_every_shot_with_little_more_weight():
    dem, shots, truth = memory(7, 0.005, 20_000)
    packed = {"bit_packed_shots": True, "bit_packed_predictions": True, "return_weights": True}
    best, least = pinwheel.Matching.from_dem(dem).decode_batch(shots, **packed)
    found, weights = pinwheel.Matching.from_dem(dem, decoder="union-find").decode_batch(shots, **packed)
    assert (weights >= least - ROUNDING * dem.num_detectors).all() and weights.sum() < 1.1 * least.sum()
    assert errors(best, truth) <= errors(found, truth) < 1.6 * errors(best, truth)


def test_a_table_has_the_answers_of_matching():
    dem, shots, _ = memory(3, 0.01, 2_000)
    weights = [
        pinwheel.Matching.from_dem(dem, decoder=decoder).decode_batch(shots, bit_packed_shots=True, return_weights=True)[1]
        for decoder in ["matching", "lookup"]
    ]
    assert (weights[0] == weights[1]).all()


def test_a_model_comes_as_text_object_or_file(tmp_path):
    dem, shots, _ = memory(3, 0.005, 100)
    (tmp_path / "model.dem").write_text(str(dem))
    made = [
        pinwheel.Matching.from_dem(dem),
        pinwheel.Matching.from_dem(str(dem)),
        pinwheel.Matching.from_dem(str(dem).encode()),
        pinwheel.Matching.from_file(tmp_path / "model.dem"),
        pinwheel.Matching.from_file(str(tmp_path / "model.dem")),
    ]
    for matching in made:
        assert (matching.num_detectors, matching.num_observables) == (dem.num_detectors, dem.num_observables)
        assert (matching.decode_batch(shots, bit_packed_shots=True) == made[0].decode_batch(shots, bit_packed_shots=True)).all()


@pytest.mark.parametrize(
    "text, detectors, observables",
    [("", 0, 0), ("detector D0", 1, 0), ("logical_observable L0", 0, 1), ("error(0.1) D8", 9, 0), ("error(0.9) D0 L8", 1, 9)],
)
@pytest.mark.parametrize("shots", [0, 3])
def test_the_smallest_models_and_batches_have_their_shapes(text, detectors, observables, shots):
    matching = pinwheel.Matching.from_dem(text)
    assert (matching.num_detectors, matching.num_observables) == (detectors, observables)
    none = np.zeros((shots, detectors), np.uint8)
    packed = np.zeros((shots, -(-detectors // 8)), np.uint8)
    expected = np.zeros((shots, observables), np.uint8)
    expected[:, 8:] = 0
    predictions, weights = matching.decode_batch(none, return_weights=True)
    assert predictions.shape == (shots, observables) and weights.shape == (shots,)
    again = matching.decode_batch(packed, bit_packed_shots=True, bit_packed_predictions=True)
    assert again.shape == (shots, -(-observables // 8))
    if text.startswith("error(0.9)"):
        # Likelier than not: without a detection event both of two explanations contain it.
        theirs = pymatching.Matching.from_detector_error_model(stim.DetectorErrorModel(text)).decode_batch(none)
        assert (predictions == theirs).all()
