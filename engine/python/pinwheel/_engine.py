"""Engines: one in this process, or a running one of another process."""

from __future__ import annotations

import atexit
import html
import json
import math
import os
import re
import sys
import warnings
import weakref
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._shots import Bits, model_text, packed_shots

# The beginning of a model's text: an instruction, or several lines. Anything else is a name.
_IS_MODEL = re.compile(
    r"\s*(error|detector|logical_observable|repeat|shift_detectors)(\s*[(\[]|\s+[DL\d])|[^\n]*\n", re.IGNORECASE
)
# Engines of this process that may still run when the interpreter ends.
_RUNNING: weakref.WeakSet[Engine] = weakref.WeakSet()

# The process of a decoder plugin; by itself an engine would start this process's own program with words of pinwheel's.
if sys.executable:
    _core.set_plugin_host(sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "_plugin_host.py"))


class Engine:
    """A real-time engine. Made by a call, in this process; or by `attach`, of another process.

    Each accepted shot is answered exactly once. Waiting calls release the interpreter lock, several threads may use one
    `Engine`, and Ctrl-C ends a call. The engine's threads take cores of this process, and may spin on them.

    Use it in a `with` block: leaving it drains the engine, and then `report` has the report of the run. `close`, the
    end of the last reference, and the end of the interpreter do the same. A forked child cannot use it.
    """

    __slots__ = ("__weakref__", "_core", "_owns", "report")
    _core: _core.Engine
    _owns: bool
    report: dict[str, Any] | None
    """The report of the run as `pinwheel run --json` prints it, once an engine of this process has ended."""

    def __init__(
        self,
        profile: str | os.PathLike[str] = "lab",
        *,
        model: Any = None,
        streams: int | None = None,
        decoder: str | None = None,
        silos: int | None = None,
        label: str = "",
        logs: str | os.PathLike[str] | None = None,
        profiles: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts an engine in this process, and returns when it takes shots.

        profile: a name of a profile, or a path that ends in .ron.
        model: a file of a detector error model or the name of a bundled one; or the model's text or bytes; or an object
            whose `str()` is that text (`stim.DetectorErrorModel`). None: the model of the profile. A file whose name
            begins like a text needs a `pathlib.Path`.
        streams: number of streams (logical qubits), each with a decoder state and an order of its own.
        decoder: "matching", "correlated", "union-find", "lookup" or "plugin:PATH".
        silos: number of complete pipelines.
        label: a name of the run, for people.
        logs: the directory of runs, in which the run's own is made. None: $XDG_STATE_HOME/pinwheel, else
            ~/.local/state/pinwheel.
        profiles: a directory of profiles, searched before the built-in ones.

        streams, decoder and silos are those of the profile if they are None.

        Raises ValueError for a profile, a model or a setting that cannot be used, RuntimeError if the machine cannot
        run the engine, and ConnectionError or TimeoutError if it does not become live.
        """
        text, path = (None, None) if model is None else _text_or_path(model)
        self._owns = True
        self.report = None
        self._core = _core.Engine.start(
            os.fspath(profile),
            profiles=None if profiles is None else os.fspath(profiles),
            model_text=text,
            model_path=path,
            logs=None if logs is None else os.fspath(logs),
            label=label,
            streams=streams,
            decoder=decoder,
            silos=silos,
        )
        _RUNNING.add(self)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None and self._owns:
            self.close()

    def __repr__(self) -> str:
        place = "in this process" if self._owns else f"in process {self.pid}"
        return f"<pinwheel.Engine {place}{'' if self.report is None else ', ended'}>"

    def _repr_html_(self) -> str | None:
        """The page of the run until now, as `pinwheel report` makes it, in a frame of its own; None without one."""
        try:
            page = self._core.page()
        except RuntimeError:
            return None
        return None if page is None else framed(page)

    @property
    def pid(self) -> int:
        """The engine's process."""
        return self._core.pid

    @property
    def run_dir(self) -> str | None:
        """The run's directory, for `open_run`; None if the engine keeps none."""
        return None if self._core.run_dir is None else str(self._core.run_dir)

    @property
    def shot_bits(self) -> int:
        """Bits of a shot: the detectors of its model, or the measurements if its input is measurements."""
        return self._core.width()[0]

    @property
    def num_observables(self) -> int:
        """Number of observables of a prediction."""
        return self._core.width()[1]

    @property
    def num_streams(self) -> int:
        """Number of streams."""
        return self._core.width()[2]

    @property
    def soft_bytes(self) -> int:
        """Soft bytes that a shot may have: 0 if the engine has no map of them."""
        return self._core.width()[3]

    def close(self) -> None:
        """Drains and ends an engine of this process, and keeps its report in `report`.

        Waits for the answers of submitted shots first, unless the feed is held or none comes for 10 s; `answers` has
        what nobody took. A second call does nothing. Of an engine of another process it ends the connection alone, and
        leaves its region to other clients; answers that nobody took are gone.
        Ctrl-C during the drain ends the engine at once: shots under way are answered with an error. `report` has its
        report then, too.
        """
        if not self._owns:
            self._core.disconnect()
            return
        ended = self._core.end()
        _RUNNING.discard(self)
        if ended is not None:
            report, trouble, interrupted = ended
            self.report = json.loads(report)
            if interrupted is not None:
                raise interrupted
            if trouble is not None:
                warnings.warn(trouble, RuntimeWarning, stacklevel=2)

    # Shots.

    def submit(
        self,
        shots: npt.ArrayLike,
        *,
        stream: int = 0,
        bit_packed_shots: bool = False,
        soft: npt.ArrayLike | None = None,
        timeout: float = 10.0,
    ) -> npt.NDArray[np.uint64]:
        """Sends shots of a stream, and returns before they are answered.

        shots: shape (shots, shot_bits), bool or integers: 1 where a detector fired, 0 elsewhere. With
            `bit_packed_shots` uint8 of shape (shots, ceil(shot_bits / 8)), as `Matching.decode_batch` takes them.
        stream: the stream, below num_streams.
        soft: uint8 of shape (shots, soft_bytes): how sure each readout is. None: nothing is said of them.
        timeout: longest wait for room, in seconds.

        Returns the shots' sequence numbers, uint64 of shape (shots,). `answers` has the answers.

        Raises TypeError for another dtype; ValueError for another shape, other values, or a stream that the engine does
        not have; TimeoutError if there is no room, with the number of accepted shots; ConnectionError if the engine has
        ended or cannot be reached.
        """
        packed = self._packed(shots, bit_packed_shots)
        numbers = self._core.submit(packed.tobytes(), self._soft(soft, len(packed)), len(packed), stream, timeout)
        return np.ndarray(len(packed), np.uint64, numbers)

    def answers(self, count: int | None = None, *, timeout: float = 10.0) -> npt.NDArray[np.void]:
        """Takes the answers of submitted shots, in the order in which they came.

        count: waits for so many answers, and returns at most so many. None: for all.
        timeout: longest wait, in seconds. 0: takes what is there.

        Returns a structured array of shape (answers,), which has fewer when the time is over or fewer shots were
        submitted:

            stream, sequence     uint32, uint64: the shot
            status               uint16: 0 if it was decoded, 260 if the decoder abstained, else why it has no answer:
                                 an error's code, or from 256 on why the engine refused it
            latency_ns           uint64: from its arrival in the engine to its answer
            predictions          uint8 of shape (num_observables,): the flipped observables; zeros after an error

        Raises ValueError for a negative count, and ConnectionError if the engine has ended before an answer came.
        """
        if count is not None and count < 0:
            raise ValueError(f"found count={count}, expected 0 or more, or None")
        most = None if count is None else min(count, sys.maxsize)
        return _table(self._core.answers(most, timeout), self.num_observables)

    @overload
    def decode(
        self,
        shots: npt.ArrayLike,
        *,
        stream: int = ...,
        bit_packed_shots: bool = ...,
        bit_packed_predictions: bool = ...,
        soft: npt.ArrayLike | None = ...,
        return_answers: Literal[False] = ...,
        timeout: float = ...,
    ) -> Bits: ...
    @overload
    def decode(
        self,
        shots: npt.ArrayLike,
        *,
        stream: int = ...,
        bit_packed_shots: bool = ...,
        soft: npt.ArrayLike | None = ...,
        return_answers: Literal[True],
        timeout: float = ...,
    ) -> npt.NDArray[np.void]: ...
    def decode(
        self,
        shots: npt.ArrayLike,
        *,
        stream: int = 0,
        bit_packed_shots: bool = False,
        bit_packed_predictions: bool = False,
        soft: npt.ArrayLike | None = None,
        return_answers: bool = False,
        timeout: float = 10.0,
    ) -> Bits | npt.NDArray[np.void]:
        """Sends shots of a stream, and waits for their answers.

        shots, stream, soft: as `submit`.
        bit_packed_predictions: packs the predictions as the shots.
        return_answers: returns the structured array of `answers`, in the order of the shots.
        timeout: longest time without an answer or an accepted shot, in seconds.

        Returns the flipped observables, uint8 of shape (shots, num_observables); with `bit_packed_predictions` of shape
        (shots, ceil(num_observables / 8)).

        Raises as `submit`; TimeoutError also if an answer does not come. A shot that was answered with an error raises
        RuntimeError, unless `return_answers` is set.
        """
        packed = self._packed(shots, bit_packed_shots)
        received = self._core.decode(packed.tobytes(), self._soft(soft, len(packed)), len(packed), stream, timeout)
        observables = self.num_observables
        if return_answers:
            return _table(received, observables)
        error = received.error()
        if error is not None:
            raise RuntimeError(f"{error}; pass return_answers=True to take the other answers")
        predictions = np.ndarray((len(packed), -(-observables // 8)), np.uint8, received.predictions())
        if bit_packed_predictions:
            return predictions
        return np.unpackbits(predictions, axis=1, count=observables, bitorder="little")

    def _packed(self, shots: npt.ArrayLike, is_packed: bool) -> Bits:
        return packed_shots(np.asarray(shots), is_packed, self.shot_bits)

    def _soft(self, soft: npt.ArrayLike | None, count: int) -> bytes:
        if soft is None:
            return b""
        rows, width = np.asarray(soft), self.soft_bytes
        if width == 0:
            raise ValueError("found soft bytes, expected none: the engine has no map of them; start it with --soft-map")
        if rows.dtype != np.uint8:
            raise TypeError(f"found soft bytes of dtype {rows.dtype}, expected uint8")
        if rows.shape != (count, width):
            raise ValueError(f"found soft bytes of shape {rows.shape}, expected ({count}, {width})")
        return rows.tobytes()

    # The board and commands, as `pinwheel attach --json` and `pinwheel ctl` have them.

    def board(self) -> dict[str, Any]:
        """The board now: the fields of `pinwheel attach --json`. Times are nanoseconds."""
        board: dict[str, Any] = json.loads(self._core.board())
        return board

    def status(self) -> dict[str, Any]:
        """Phase, profile, rates and open alarms, as `pinwheel ctl status` prints them."""
        return self._execute("status")

    def pause(self, *, why: str = "") -> dict[str, Any]:
        """Holds the feed: accepted shots finish, and no more are accepted. `why` is kept in the run's events.

        This and each command below return what was acknowledged, as `pinwheel ctl` prints it. They raise RuntimeError
        with the sentence of a refusal, and ConnectionError if the engine cannot be reached.
        """
        return self._execute("pause", why=why)

    def resume(self, *, why: str = "") -> dict[str, Any]:
        """Releases the feed."""
        return self._execute("resume", why=why)

    def rate(self, hz: float | None, *, why: str = "") -> dict[str, Any]:
        """Sets the rate of an engine that draws its shots, in shots per second of all streams. None: no limit."""
        if hz is not None and not math.isfinite(hz):
            raise ValueError(f"found rate {hz}, expected a finite number or None, which is no limit")
        return self._execute({"rate": {"hz": hz}}, why=why)

    def profile(self, name: str | os.PathLike[str], *, for_s: int | None = None, why: str = "") -> dict[str, Any]:
        """Applies the live fields of another profile: a name that the engine knows, or a path that ends in .ron.

        for_s: seconds until the present profile returns. None: permanently.
        """
        return self._execute({"profile": {"name": os.fspath(name), "text": None, "for_s": for_s}}, why=why)

    def decoder(self, name: str, *, stream: int | None = None, why: str = "") -> dict[str, Any]:
        """Changes the decoder, of one stream or of all. Each worker changes between two shots."""
        return self._execute({"decoder": {"decoder": name, "stream": stream}}, why=why)

    def model(self, file: str | os.PathLike[str] | None, *, stream: int | None = None, why: str = "") -> dict[str, Any]:
        """Decodes by another error model of the same widths, of one stream or of all.

        file: a file, or the name of a bundled model. None: takes the last change back.
        """
        name = None if file is None else os.fspath(file)
        return self._execute({"model": {"file": name, "stream": stream}}, why=why)

    def shadow(
        self, decoder: str, *, one_in: int = 100, model: str | os.PathLike[str] | None = None, why: str = ""
    ) -> dict[str, Any]:
        """Gives one shot in `one_in` to a second decoder too, off the path. `model`: by its own error model."""
        name = None if model is None else os.fspath(model)
        return self._execute({"shadow": {"decoder": decoder, "one_in": one_in, "model": name}}, why=why)

    def shadow_off(self, *, why: str = "") -> dict[str, Any]:
        """Gives shots to no second decoder."""
        return self._execute("shadow_off", why=why)

    def input(
        self,
        source: str | os.PathLike[str],
        *,
        dem: str | os.PathLike[str] | None = None,
        observables: str | os.PathLike[str] | None = None,
        format: Literal["b8", "01", "dets"] | None = None,
        why: str = "",
    ) -> dict[str, Any]:
        """Takes shots from elsewhere: "sampler", a file, udp:ADDRESS:PORT, unix:PATH or shm:NAME.

        The engine drains, and its process starts again on that input, with a run of its own. An engine of this process
        cannot: RuntimeError.
        """
        if self._owns:
            raise RuntimeError("found an engine of this process, expected one that can start again; close it and start another")
        files = {"dem": dem, "observables": observables}
        named = {name: None if file is None else os.fspath(file) for name, file in files.items()}
        return self._execute({"input": {"from": os.fspath(source), **named, "format": format}}, why=why)

    def drill(self, name: str, *, for_ms: int | None = None, why: str = "") -> dict[str, Any]:
        """Provokes a stall, to check its verdict; only where hot threads spin as Lab or Shared.

        name: "long-handler", "sleep", "page-faults", "role-panic" (ends the run), "device-hang", "slow-harvest" or
        "claims-work". for_ms: None is the drill's own duration.
        """
        return self._execute({"drill": {"name": name, "for_ms": for_ms}}, why=why)

    def silo(self, command: Literal["drain", "kill", "rejoin"], silo: int, *, why: str = "") -> dict[str, Any]:
        """Drains, kills or restarts a silo."""
        return self._execute({"silo": {"silo": silo, "command": command}}, why=why)

    def move(self, stream: int, silo: int, *, why: str = "") -> dict[str, Any]:
        """Moves a stream to another silo."""
        return self._execute({"move": {"stream": stream, "to": silo}}, why=why)

    def ack(self, number: int = 0, *, why: str = "") -> dict[str, Any]:
        """Acknowledges an alarm; 0: all active ones."""
        return self._execute({"acknowledge": {"number": number}}, why=why)

    def snooze(self, number: int = 0, *, for_s: int, why: str = "") -> dict[str, Any]:
        """Silences an alarm for a while; 0: all active ones."""
        return self._execute({"snooze": {"number": number, "for_s": for_s}}, why=why)

    def note(self, text: str) -> dict[str, Any]:
        """Writes a note into the run's events."""
        return self._execute({"note": {"text": text}})

    def drain(self, *, why: str = "") -> dict[str, Any]:
        """Ends the engine: accepted shots are answered, and no more are accepted."""
        return self._execute("drain", why=why)

    def stop(self, *, why: str = "") -> dict[str, Any]:
        """Ends the engine at once: shots under way are answered with an error."""
        return self._execute("stop", why=why)

    def _execute(self, command: str | dict[str, Any], *, why: str = "") -> dict[str, Any]:
        done: dict[str, Any] = json.loads(self._core.command(json.dumps(command), why))
        return {**done, "pid": self.pid}


def attach(run: int | str | os.PathLike[str] | None = None) -> Engine:
    """A running engine of this machine, as `pinwheel attach` finds it.

    run: its process number, its run's name or directory. None: the only running engine.

    Its live source takes shots if it is shm:NAME, unix:PATH or udp:ADDRESS:PORT. A region has one client at a time: the
    first call that needs it connects. A datagram may be lost, and then the shot has no answer.

    Raises ConnectionError if there is no such engine, or several.
    """
    name = None if run is None else str(run) if isinstance(run, int) else os.fspath(run)
    attached = Engine.__new__(Engine)
    attached._owns = False
    attached.report = None
    attached._core = _core.Engine.attach(name)
    if attached._core.uid != os.getuid():
        said = f"the engine of process {attached.pid} belongs to user {attached._core.uid}"
        warnings.warn(said, RuntimeWarning, stacklevel=2)
    return attached


def framed(page: str) -> str:
    """A page in a frame of its own, which cannot run scripts or change what is around it."""
    style = "width: 100%; height: 40em; border: 1px solid #8888"
    return f'<iframe sandbox style="{style}" srcdoc="{html.escape(page)}"></iframe>'


def _text_or_path(model: Any) -> tuple[bytes | None, str | None]:
    """The text of a model, or its file."""
    if isinstance(model, os.PathLike):
        return None, os.fspath(model)
    if isinstance(model, str) and not _IS_MODEL.match(model):
        return None, model
    return model_text(model), None


def _table(received: _core.Received, observables: int) -> npt.NDArray[np.void]:
    columns = [
        ("stream", np.uint32, ()),
        ("sequence", np.uint64, ()),
        ("status", np.uint16, ()),
        ("latency_ns", np.uint64, ()),
        ("predictions", np.uint8, (observables,)),
    ]
    count = len(received)
    table = np.zeros(count, columns)
    for name, dtype, _ in columns[:-1]:
        table[name] = np.ndarray(count, dtype, getattr(received, name)())
    packed = np.ndarray((count, -(-observables // 8)), np.uint8, received.predictions())
    table["predictions"] = np.unpackbits(packed, axis=1, count=observables, bitorder="little")
    return table


@atexit.register
def _end_all() -> None:
    for engine in list(_RUNNING):
        engine.close()
