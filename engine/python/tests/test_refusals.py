"""Bad input: an exception that says what was found and what is expected."""

import re

import numpy as np
import pinwheel
import pytest
from conftest import memory


@pytest.mark.parametrize(
    "text, sentence",
    [
        (
            "error(0.1) D0\nerror(nan) D1\n",
            "line 2, column 7: found 'n', expected a number; write a decimal number",
        ),
        (
            "error(0.1) D0\nerror(1.5) D1\n",
            "line 2, column 6: found probability 1.5, expected 0 to 1; correct the probability",
        ),
        ("repeat 3 {\n", None),
        ("model.dem", None),
        ("error(0.1) D0 \ud800", None),
        ("error(0.1) D0 D1 D2", "found an error mechanism (number 0) with a part of 3 detectors, expected at most 2 in each"
         " part; decompose the model (stim: decompose_errors=True)"),
        (None, None),
        (3, None),
    ],
)
def test_a_text_that_is_no_model_is_refused_where_it_goes_wrong(text, sentence):
    with pytest.raises(ValueError) as refused:
        pinwheel.Matching.from_dem(text)
    said = str(refused.value)
    assert said == sentence if sentence else re.match(r"line \d+, column \d+: found .+, expected .+; .+", said), said


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.dem"):
        pinwheel.Matching.from_file(tmp_path / "none.dem")
    (tmp_path / "bad.dem").write_bytes(b"error(0.1) D0\n\xff\n")
    with pytest.raises(ValueError, match=r"bad\.dem: line 2, column 1: found "):
        pinwheel.Matching.from_file(tmp_path / "bad.dem")


def test_a_decoder_that_is_none_or_does_not_fit_is_refused():
    dem, _, _ = memory(5, 0.005)
    for name in ["blossom", "plugin", ""]:
        with pytest.raises(ValueError, match=f'found decoder "{name}", expected matching, correlated, union-find or lookup'):
            pinwheel.Matching.from_dem(dem, decoder=name)
    with pytest.raises(ValueError, match="a look-up table of this model takes .*; choose another decoder"):
        pinwheel.Matching.from_dem(dem, decoder="lookup")
    with pytest.raises(TypeError, match=r"expected Matching\.from_dem"):
        pinwheel.Matching()


SHAPE, TYPE = ValueError, TypeError


@pytest.mark.parametrize(
    "shots, packed, kind, sentence",
    [
        (np.zeros((2, 23), np.uint8), False, SHAPE, r"found shots of shape (2, 23), expected (shots, 24) for 24 detectors"),
        (np.zeros((2, 4), np.uint8), True, SHAPE, r"shape (2, 4), expected (shots, 3) for 24 detectors, 8 in a byte"),
        (np.zeros((2, 3), np.uint8), False, SHAPE, r"expected (shots, 24) for 24 detectors; pass bit_packed_shots=True"),
        (np.zeros((2, 24), np.uint8), True, SHAPE, r"8 in a byte; pass bit_packed_shots=False"),
        (np.zeros(24, np.uint8), False, SHAPE, r"found shots of shape (24,), expected (shots, 24)"),
        (np.zeros((1, 2, 24), np.uint8), False, SHAPE, r"found shots of shape (1, 2, 24), expected"),
        (np.uint8(3), False, SHAPE, r"found shots of shape (), expected"),
        (np.zeros((2, 24)), False, TYPE, "found shots of dtype float64, expected bool or an integer dtype"),
        (np.full((2, 24), np.nan), False, TYPE, "found shots of dtype float64"),
        (np.zeros((2, 24), complex), False, TYPE, "found shots of dtype complex128"),
        (np.zeros((2, 24), object), False, TYPE, "found shots of dtype object"),
        ("shots", False, TYPE, "found shots of dtype <U5"),
        (np.zeros((2, 3), np.int8), True, TYPE, "found bit-packed shots of dtype int8, expected uint8"),
        (np.zeros((2, 3), bool), True, TYPE, "found bit-packed shots of dtype bool, expected uint8"),
        (np.eye(2, 24, 5, np.int64) * 2, False, SHAPE, "shot 0: found 2 at detector 5, expected 0 or 1"),
        (np.eye(2, 24, 5, np.int64) * -1, False, SHAPE, "shot 0: found -1 at detector 5, expected 0 or 1"),
    ],
)
def test_shots_of_another_type_shape_or_value_are_refused(shots, packed, kind, sentence):
    dem, _, _ = memory(3, 0.005)
    with pytest.raises(kind, match=re.escape(sentence)):
        pinwheel.Matching.from_dem(dem).decode_batch(shots, bit_packed_shots=packed)


def test_a_syndrome_of_another_shape_is_refused():
    matching = pinwheel.Matching.from_dem(memory(3, 0.005)[0])
    with pytest.raises(ValueError, match=re.escape("found a syndrome of shape (1, 24), expected (24,); decode_batch")):
        matching.decode(np.zeros((1, 24), np.uint8))
    # decode takes no packed shots, so that it advises none: 24 detectors are three bytes.
    for syndrome in ([0, 1, 0, 0, 0], np.zeros(3, np.uint8)):
        with pytest.raises(ValueError, match=rf"^found a syndrome of shape \({len(syndrome)},\), expected \(24,\)$"):
            matching.decode(syndrome)
    with pytest.raises(TypeError, match="found shots of dtype float64"):
        matching.decode([float("nan")] * 24)


def test_a_shot_without_an_answer_is_named_and_the_next_batch_is_decoded():
    matching = pinwheel.Matching.from_dem("error(0.1) D0 D1 L0\ndetector D11")
    shots = np.zeros((5, 12), np.uint8)
    shots[:, :2] = 1
    assert matching.decode_batch(shots).all()
    shots[3, 1] = 0
    with pytest.raises(ValueError, match="shot 3: no set of mechanisms explains this syndrome; check that model and shots"):
        matching.decode_batch(shots)
    shots[3, 1] = 1
    assert matching.decode_batch(shots).all()
    packed = np.full((2, 2), 0b1111_0000, np.uint8)
    with pytest.raises(ValueError, match="shot 0: found a bit set behind those of the 12 detectors, expected zeros"):
        matching.decode_batch(packed, bit_packed_shots=True)


def test_a_batch_too_large_for_memory_is_refused():
    shots = np.zeros((1 << 50, 0), np.uint8)
    with pytest.raises(MemoryError, match=f"found no memory for the answers of {1 << 50} shots"):
        pinwheel.Matching.from_dem("logical_observable L0").decode_batch(shots, bit_packed_shots=True)
