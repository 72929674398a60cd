"""The decoders as sinter takes them. Imported by `sinter_decoders` only: the package does not need sinter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import sinter

from . import _core

if TYPE_CHECKING:
    import stim


@dataclass(frozen=True)
class SinterDecoder(sinter.Decoder):
    """A decoder by its name. sinter sends it to its worker processes, which prepare it there."""

    decoder: str
    abstain_below_db: float | None

    def compile_decoder_for_dem(self, *, dem: stim.DetectorErrorModel) -> sinter.CompiledDecoder:
        """Prepares a model. Raises ValueError as `Matching.from_dem`, and if the model has no gaps."""
        with_gaps = self.abstain_below_db is not None
        core = _core.Decoder(str(dem).encode(), self.decoder, with_gaps)
        return _Compiled(core, self.abstain_below_db)


class _Compiled(sinter.CompiledDecoder):
    def __init__(self, core: _core.Decoder, abstain_below_db: float | None) -> None:
        self._core = core
        self._abstain_below_db = abstain_below_db

    def decode_shots_bit_packed(
        self, *, bit_packed_detection_event_data: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint8]:
        shots = bit_packed_detection_event_data
        answers = self._core.decode(shots.tobytes(), len(shots))
        shape = (len(shots), -(-self._core.num_observables // 8))
        predictions = np.ndarray(shape, np.uint8, answers.predictions())
        if self._abstain_below_db is None:
            return predictions
        # sinter discards the shots in which a byte behind the observables is not zero.
        is_discarded = np.ndarray(len(shots), np.float64, answers.gaps_db()) < self._abstain_below_db
        return np.column_stack([predictions, is_discarded.astype(np.uint8)])
