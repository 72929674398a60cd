"""Recorded runs."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._engine import framed
from ._shots import Bits


class Run:
    """What a run left in its directory. Made by `open_run`."""

    __slots__ = ("_core",)
    _core: _core.Run

    def __init__(self) -> None:
        raise TypeError("found a call of Run(), expected open_run(path)")

    def __repr__(self) -> str:
        return f"<pinwheel.Run {self.path}>"

    def _repr_html_(self) -> str:
        """The page of the run, as `pinwheel report` makes it, in a frame of its own."""
        return framed(self._core.page())

    @property
    def path(self) -> str:
        """The run's directory."""
        return str(self._core.path)

    @property
    def report(self) -> dict[str, Any]:
        """The report as `pinwheel run --json` prints it; of a run without one, the same fields of its last board."""
        report: dict[str, Any] = json.loads(self._core.report()) or {}
        return report

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in their order: utc, ticks, thread, event, text, numbers."""
        return [json.loads(line) for line in _lines(self._core.events())]

    def board(self, at_s: float | None = None) -> dict[str, Any]:
        """The board at a moment, as `pinwheel replay --at --json` prints it.

        at_s: seconds after the engine's start; the last recorded moment until then counts, or the first one. None: the
            last one.

        Raises ValueError if the run has no recording.
        """
        board: dict[str, Any] = json.loads(self._core.board(at_s))
        return board

    def samples(self) -> npt.NDArray[np.void]:
        """The counters of each recorded board, ten a second.

        Returns a structured array of shape (boards,), all fields uint64: at_ns, the moment in nanoseconds since the
        engine's start; p50_ns and p99_ns, quantiles of the latencies since the board before, 0 without answers; and
        each counter of the path by its name (submitted, answered, late, logical_errors, ...), counted from the start.

        Raises ValueError if the run has no recording.
        """
        names, rows = self._core.samples()
        dtype = np.dtype([(name, np.uint64) for name in names])
        return np.ndarray(len(rows) // max(dtype.itemsize, 1), dtype, rows)

    def disagreements(self) -> tuple[Bits, list[dict[str, Any]]]:
        """Shots on which a shadow disagreed: the only shots that a recording holds.

        Returns the shots, uint8 of shape (shots, detectors), and for each a dict with both answers. Both are empty if
        the run had no shadow.
        """
        shots, detectors, answers = self._core.disagreements()
        rows = [json.loads(line) for line in _lines(answers)]
        width = -(-detectors // 8)
        # The last shot of a run that was killed may have no answers yet, or be cut off.
        rows = rows[: len(shots) // width if width else 0]
        packed = np.ndarray((len(rows), width), np.uint8, shots)
        return np.unpackbits(packed, axis=1, count=detectors, bitorder="little"), rows


def _lines(text: str) -> list[str]:
    """The whole lines of JSON. `splitlines` would end a line within a text that has another separator."""
    return [line for line in text.split("\n") if line.endswith("}")]


def open_run(path: str | os.PathLike[str], *, logs: str | os.PathLike[str] | None = None) -> Run:
    """Opens the run in a directory, or of a recording.

    path: a directory; or the name of a run in `logs`, "last" for the newest.
    logs: a directory of runs. None: $XDG_STATE_HOME/pinwheel, else ~/.local/state/pinwheel.

    Raises FileNotFoundError if there is no such run, and ValueError if nothing of a run can be read in it.
    """
    run = Run.__new__(Run)
    run._core = _core.Run(os.fspath(path), None if logs is None else os.fspath(logs))
    return run
