"""The text of a model; checks and packs arrays of shots."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]


def model_text(model: Any) -> bytes:
    """The text of a model."""
    # What is no text of Unicode is no model either, but may stand in a comment.
    return model if isinstance(model, bytes) else str(model).encode(errors="replace")


def packed_shots(shots: npt.NDArray[Any], is_packed: bool, detectors: int) -> Bits:
    """The shots, checked and packed: uint8 of shape (shots, ceil(detectors / 8))."""
    width = -(-detectors // 8) if is_packed else detectors
    if is_packed and shots.dtype != np.uint8:
        raise TypeError(f"found bit-packed shots of dtype {shots.dtype}, expected uint8")
    if shots.dtype.kind not in "bui":
        raise TypeError(f"found shots of dtype {shots.dtype}, expected bool or an integer dtype")
    if shots.ndim != 2 or shots.shape[1] != width:
        other = shots.ndim == 2 and shots.shape[1] == (detectors if is_packed else -(-detectors // 8))
        remedy = f"; pass bit_packed_shots={not is_packed}" if other else ""
        packing = ", 8 in a byte" if is_packed else ""
        raise ValueError(
            f"found shots of shape {shots.shape}, expected (shots, {width}) for {detectors} detectors{packing}{remedy}"
        )
    if is_packed:
        return shots
    is_wrong = shots.dtype.kind != "b" and np.maximum.reduce(shots, axis=None, initial=0) > 1
    if is_wrong or (shots.dtype.kind == "i" and np.minimum.reduce(shots, axis=None, initial=0) < 0):
        shot, detector = np.argwhere((shots != 0) & (shots != 1))[0]
        raise ValueError(f"shot {shot}: found {shots[shot, detector]} at detector {detector}, expected 0 or 1")
    return np.packbits(shots, axis=1, bitorder="little")
