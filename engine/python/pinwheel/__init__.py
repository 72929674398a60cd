"""Decoders and engines for quantum error correction, on NumPy arrays.

A model is a detector error model as Stim writes it. `Matching` decodes shots by it:

    matching = pinwheel.Matching.from_dem(circuit.detector_error_model(decompose_errors=True))
    predictions = matching.decode_batch(shots)

`sinter_decoders()` has the same decoders for `sinter.collect`.

`Engine` runs a real-time engine in this process, and `attach` finds a running one:

    with pinwheel.Engine("lab", model="surface_d5") as engine:
        predictions = engine.decode(shots)

`open_run` reads what a run recorded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._engine import Engine, attach
from ._run import Run, open_run
from ._shots import Bits, model_text, packed_shots

if TYPE_CHECKING:
    from ._sinter import SinterDecoder

__all__ = ["Engine", "Matching", "Run", "attach", "open_run", "sinter_decoders"]

DecoderName = Literal["matching", "correlated", "union-find", "lookup"]
Weights = npt.NDArray[np.float64]


class Matching:
    """A decoder of one model. Made by `from_dem` or `from_file`.

    Decoding releases the interpreter lock, and several threads may decode by one `Matching`.
    """

    __slots__ = ("_core",)
    _core: _core.Decoder

    def __init__(self) -> None:
        raise TypeError("found a call of Matching(), expected Matching.from_dem(model) or Matching.from_file(path)")

    @classmethod
    def from_dem(cls, dem: Any, *, decoder: DecoderName = "matching") -> Matching:
        """Prepares a model for decoding.

        dem: the model's text or bytes, or an object whose `str()` is that text (`stim.DetectorErrorModel`). Each part
            of an error flips at most two detectors: make it by `circuit.detector_error_model(decompose_errors=True)`.
        decoder: "matching" finds an error of least weight. "correlated" matches twice, the second time with the
            weights that the first answer implies (PyMatching's `enable_correlations`). "union-find" is faster on large
            models, and its answers are not always of least weight. "lookup" reads matching's answers from a table,
            for models of at most about 22 detectors in each connected part.

        Raises ValueError for a text that is no such model, with line and column, and for a decoder that cannot
        decode it.
        """
        return cls._of(model_text(dem), decoder)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, decoder: DecoderName = "matching") -> Matching:
        """As `from_dem`, of a file. Raises OSError if it cannot be read."""
        with open(path, "rb") as file:
            text = file.read()
        try:
            return cls._of(text, decoder)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def _of(cls, text: bytes, decoder: str) -> Matching:
        made = cls.__new__(cls)
        made._core = _core.Decoder(text, decoder, False)
        return made

    @property
    def num_detectors(self) -> int:
        """Number of detectors of a shot."""
        return self._core.num_detectors

    @property
    def num_observables(self) -> int:
        """Number of observables of a prediction."""
        return self._core.num_observables

    @overload
    def decode(self, syndrome: npt.ArrayLike, *, return_weight: Literal[False] = ...) -> Bits: ...
    @overload
    def decode(self, syndrome: npt.ArrayLike, *, return_weight: Literal[True]) -> tuple[Bits, float]: ...
    def decode(self, syndrome: npt.ArrayLike, *, return_weight: bool = False) -> Bits | tuple[Bits, float]:
        """Decodes one shot.

        syndrome: shape (num_detectors,), bool or integers: 1 where a detector fired, 0 elsewhere.
        return_weight: also returns the weight of the answer.

        Returns the flipped observables, uint8 of shape (num_observables,). The weight is the sum of ln((1 - p) / p)
        over the edges of the answer; of "correlated" the second matching's.

        Raises TypeError for another dtype, and ValueError for another shape, other values, or a shot that no
        errors of the model explain.
        """
        one = np.asarray(syndrome)
        if one.shape != (self.num_detectors,):
            remedy = "" if one.ndim == 1 else "; decode_batch takes many shots"
            raise ValueError(f"found a syndrome of shape {one.shape}, expected ({self.num_detectors},){remedy}")
        answers = self._core.decode(packed_shots(one[np.newaxis], False, self.num_detectors).tobytes(), 1)
        observables = self.num_observables
        packed = np.ndarray(-(-observables // 8), np.uint8, answers.predictions())
        prediction = np.unpackbits(packed, count=observables, bitorder="little")
        return (prediction, float(np.ndarray(1, np.float64, answers.weights())[0])) if return_weight else prediction

    @overload
    def decode_batch(
        self,
        shots: npt.ArrayLike,
        *,
        bit_packed_shots: bool = ...,
        bit_packed_predictions: bool = ...,
        return_weights: Literal[False] = ...,
    ) -> Bits: ...
    @overload
    def decode_batch(
        self,
        shots: npt.ArrayLike,
        *,
        bit_packed_shots: bool = ...,
        bit_packed_predictions: bool = ...,
        return_weights: Literal[True],
    ) -> tuple[Bits, Weights]: ...
    def decode_batch(
        self,
        shots: npt.ArrayLike,
        *,
        bit_packed_shots: bool = False,
        bit_packed_predictions: bool = False,
        return_weights: bool = False,
    ) -> Bits | tuple[Bits, Weights]:
        """Decodes many shots.

        shots: shape (shots, num_detectors), bool or integers: 1 where a detector fired, 0 elsewhere. With
            `bit_packed_shots` uint8 of shape (shots, ceil(num_detectors / 8)): detector d is bit d % 8 of byte d // 8,
            as by `numpy.packbits(shots, axis=1, bitorder="little")`.
        bit_packed_predictions: packs the answer in the same way.
        return_weights: also returns the weight of each answer.

        Returns the flipped observables, uint8 of shape (shots, num_observables); with `bit_packed_predictions` of
        shape (shots, ceil(num_observables / 8)). Weights are float64 of shape (shots,), in the unit that `decode` names.

        Raises as `decode`; the message names the first shot that is wrong. Ctrl-C stops it.
        """
        packed = packed_shots(np.asarray(shots), bit_packed_shots, self.num_detectors)
        answers = self._core.decode(packed.tobytes(), len(packed))
        observables = self.num_observables
        shape = (len(packed), -(-observables // 8))
        predictions = np.ndarray(shape, np.uint8, answers.predictions())
        if not bit_packed_predictions:
            predictions = np.unpackbits(predictions, axis=1, count=observables, bitorder="little")
        if return_weights:
            return predictions, np.ndarray(len(packed), np.float64, answers.weights())
        return predictions


def sinter_decoders(*, abstain_below_db: float | None = None) -> dict[str, SinterDecoder]:
    """Decoders for sinter: `sinter.collect(..., custom_decoders=pinwheel.sinter_decoders())`.

    abstain_below_db: sinter counts a shot as discarded if its answer is less than so many decibels likelier than the
        best answer with other observables. 10 dB are ten times, 20 dB a hundred times.

    Returns decoders named "pinwheel" (matching), "pinwheel-correlated" and "pinwheel-union-find". Needs sinter.

    Raises ValueError for a bound that is negative or not finite.
    """
    from ._sinter import SinterDecoder

    if abstain_below_db is not None and not 0 <= abstain_below_db < float("inf"):
        raise ValueError(f"found abstain_below_db={abstain_below_db}, expected a finite number of decibels, 0 or more")
    names = {"pinwheel": "matching", "pinwheel-correlated": "correlated", "pinwheel-union-find": "union-find"}
    return {name: SinterDecoder(decoder, abstain_below_db) for name, decoder in names.items()}
