//! An engine in this process, or a running one of another process: the same handle for both.
//!
//! Owns the engine of this process with its run directory, the followed board, and the connection to the live source.
//! Both kinds of engine are read and operated as `pinwheel attach` and `pinwheel ctl` do it: by the board, the control
//! socket and the live source. Any thread may call; no lock is held longer than a slice of [`traffic::SLICE`], and none
//! while the interpreter lock is waited for.
//!
//! # Why a process that was forked cannot use the handle
//! The engine's threads do not exist there. Waiting for them would never end.
#![expect(clippy::disallowed_types, reason = "locks for several Python threads, none of which is a hot thread")]

mod start;

use crate::packed;
use crate::traffic::{self, Batch, KEPT_MAX, Received, RegionClaim, Traffic};
use pinwheel_engine::board::image::BoardFile;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::board::{self, OwnerState, Phase};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::engine::{Actor, Command, LivePlace};
use pinwheel_engine::feed::client::connect;
use pinwheel_engine::feed::packet::Welcome;
use pinwheel_engine::files::our_uid;
use pinwheel_report::control::{CommandError, ControlSocket, rooted};
use pinwheel_report::evidence::Evidence;
use pinwheel_report::moment::attached;
use pinwheel_report::page::page;
use pinwheel_report::recorded::{EndedRun, RecordedRun};
use pinwheel_report::report::Context;
use pinwheel_report::running::{self, RunningEngine};
use pinwheel_report::unusable::Unusable;
use pyo3::exceptions::{PyConnectionError, PyOverflowError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyAnyMethods, PyByteArray};
use pyo3::{Bound, PyAny, PyErr, PyResult, Python, pyclass, pymethods};
use start::Settings;
pub(crate) use start::state;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for an engine to become live and to welcome its client.
const WELCOME_LIMIT: Duration = Duration::from_secs(60);

/// Longest time without an answer before an engine of this process is drained.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);

/// An engine.
#[pyclass(frozen, module = "pinwheel._core")]
pub(crate) struct Engine {
    /// The process that made this handle.
    process: u32,
    control: ControlSocket,
    run_dir: Option<PathBuf>,
    /// Its live source, as its board names it.
    input: String,
    board: Mutex<RunningEngine>,
    traffic: Mutex<Option<Traffic>>,
    /// Whether a thread makes the connection. Relaxed: the connection itself lies behind its lock.
    is_connecting: AtomicBool,
    /// The engine of this process, until it has ended.
    own: Mutex<Option<RecordedRun>>,
}

/// The report of a run that has ended, what could not be written, and what interrupted the drain.
type Ended = (String, Option<String>, Option<PyErr>);

/// What a look at the connection brought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The call has what it waits for.
    Done,
    /// Shots were sent, or answers came.
    Moved,
    /// Nothing.
    Idle,
}

impl Step {
    /// What `count` sent shots or received answers are.
    const fn moved(count: usize) -> Step {
        if count > 0 { Step::Moved } else { Step::Idle }
    }
}

/// A whole number as the caller gave it.
struct Whole {
    /// The nearest that it has room for.
    number: i64,
    text: String,
}

impl Whole {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Whole> {
        let number = match given.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                if given.lt(0)? {
                    i64::MIN
                } else {
                    i64::MAX
                }
            }
            number => number?,
        };
        Ok(Whole { number, text: given.to_string() })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime_error(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Engine {
    /// Starts an engine in this process. `model`: its text, a file or a bundled name; else the profile's.
    #[staticmethod]
    #[pyo3(signature = (profile, *, profiles, model_text, model_path, logs, label, streams, decoder, silos))]
    #[expect(clippy::too_many_arguments, reason = "the settings of a run, each by its name")]
    fn start(
        py: Python<'_>,
        profile: String,
        profiles: Option<PathBuf>,
        model_text: Option<PyBackedBytes>,
        model_path: Option<PathBuf>,
        logs: Option<PathBuf>,
        label: String,
        streams: Option<Bound<'_, PyAny>>,
        decoder: Option<String>,
        silos: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Engine> {
        let [streams, silos] = [streams, silos].map(|given| given.as_ref().map(Whole::of).transpose());
        let (streams, silos) = (streams?, silos?);
        let model_text = model_text.map(|text| text.to_vec());
        let settings = Settings { profile, profiles, model_text, model_path, logs, label, streams, decoder, silos };
        let engine = py.detach(|| settings.start().and_then(Engine::own))?;
        if let Err(error) = engine.connected(py) {
            // Interrupted, or it did not become live. Its report is kept.
            let _ = engine.end(py);
            return Err(error);
        }
        Ok(engine)
    }

    /// Attaches to a running engine: the only one, or that of a process or a run.
    #[staticmethod]
    fn attach(py: Python<'_>, run: Option<String>) -> PyResult<Engine> {
        let found = py
            .detach(|| running::find(run.as_deref()))
            .map_err(|error| PyConnectionError::new_err(error.to_string()))?;
        Ok(Engine::of(found))
    }

    /// Its process.
    #[getter]
    fn pid(&self) -> u32 {
        self.control.pid
    }

    /// Its user.
    #[getter]
    fn uid(&self) -> u32 {
        self.control.uid
    }

    /// The run's directory.
    #[getter]
    fn run_dir(&self) -> Option<PathBuf> {
        self.run_dir.clone()
    }

    /// Bits of a shot, observables of an answer, number of streams, and soft bytes that a shot may
    /// have.
    fn width(&self, py: Python<'_>) -> PyResult<(u32, u32, u32, u32)> {
        self.check_process()?;
        self.connected(py)?;
        let traffic = locked(&self.traffic);
        let welcome = traffic.as_ref().map(|traffic| traffic.welcome);
        let of = |welcome: Welcome| (welcome.bits, welcome.observables, welcome.streams, welcome.soft_bytes);
        welcome.map(of).ok_or_else(|| self.ended())
    }

    /// Sends `count` packed shots, with the soft bytes of each if there are some; returns their
    /// numbers, an unsigned integer of 64 bits for each.
    fn submit<'py>(
        &self,
        py: Python<'py>,
        shots: PyBackedBytes,
        soft: PyBackedBytes,
        count: usize,
        stream: &Bound<'_, PyAny>,
        timeout_s: f64,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let mut batch = self.batch(py, (&shots, &soft), count, &Whole::of(stream)?, None)?;
        self.drive(py, &mut batch, timeout_s, |_| 0)?;
        let numbers: Vec<u8> = batch.sent.iter().flat_map(|number| number.to_ne_bytes()).collect();
        Ok(PyByteArray::new(py, &numbers))
    }

    /// Sends `count` packed shots and waits for their answers, which are in the order of the shots.
    fn decode(
        &self,
        py: Python<'_>,
        shots: PyBackedBytes,
        soft: PyBackedBytes,
        count: usize,
        stream: &Bound<'_, PyAny>,
        timeout_s: f64,
    ) -> PyResult<Received> {
        let mut batch = self.batch(py, (&shots, &soft), count, &Whole::of(stream)?, Some(count))?;
        let call = batch.call.unwrap_or_default();
        let done = self.drive(py, &mut batch, timeout_s, |traffic| traffic.left(call));
        let answers = locked(&self.traffic).as_mut().map(|traffic| (traffic.end(call), traffic.welcome.observables));
        done?;
        let (answers, observables) = answers.ok_or_else(|| self.ended())?;
        Ok(Received::new(answers, observables))
    }

    /// Waits until `count` answers of submitted shots have come, or those of all; at most `timeout_s`.
    fn answers(&self, py: Python<'_>, count: Option<usize>, timeout_s: f64) -> PyResult<Received> {
        self.check_process()?;
        self.connected(py)?;
        let (end, count) = (deadline(timeout_s), count.unwrap_or(usize::MAX));
        let is_over = || end.is_some_and(|end| traffic::now() >= end);
        let (mut kept, mut taken, mut is_short) = (0, Vec::new(), false);
        // They are taken where they are counted: another thread may wait for answers, too.
        while !self.slice(py, |traffic| {
            let step = Step::moved(traffic.receive()?);
            kept = traffic.kept();
            is_short = kept < count && traffic.is_open();
            if is_short && !is_over() {
                return Ok(step);
            }
            taken = traffic.take(count);
            Ok(Step::Done)
        })? {
            py.check_signals()?;
            match self.check_alive(py) {
                Err(error) if kept == 0 => return Err(error),
                Err(_) => {
                    taken = locked(&self.traffic).as_mut().map_or_else(Vec::new, |traffic| traffic.take(count));
                    break;
                }
                Ok(()) => {}
            }
        }
        if is_short {
            self.give_up_lost(py);
        }
        let observables = locked(&self.traffic).as_ref().map(|traffic| traffic.welcome.observables);
        Ok(Received::new(taken, observables.ok_or_else(|| self.ended())?))
    }

    /// The board now, as `pinwheel attach --json` prints it.
    fn board(&self, py: Python<'_>) -> PyResult<String> {
        self.check_process()?;
        let (_, snapshot) = py.detach(|| self.look());
        let snapshot = snapshot
            .ok_or_else(|| runtime_error("found a board whose clock was never set, expected a moment of it"))?;
        Ok(attached(&snapshot, self.control.pid).to_string())
    }

    /// Executes a command of the control socket, and returns what was acknowledged.
    fn command(&self, py: Python<'_>, command: &str, why: &str) -> PyResult<String> {
        self.check_process()?;
        let command: Command = serde_json::from_str(command).map_err(|error| {
            // The place is one in a text that the caller has not seen.
            let said = error.to_string();
            value_error(said.split(" at line ").next().unwrap_or_default())
        })?;
        let done = py.detach(|| {
            let command = rooted(command).map_err(value_error)?;
            self.control.execute(command, why).map_err(|error| match error {
                CommandError::Unusable(error) => PyConnectionError::new_err(error.to_string()),
                CommandError::Refused { .. } => runtime_error(error),
            })
        })?;
        serde_json::to_string(&done).map_err(runtime_error)
    }

    /// The page of the run until now; `None` if it has no directory.
    fn page(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.check_process()?;
        let Some(run_dir) = self.run_dir.clone() else { return Ok(None) };
        py.detach(|| {
            let (owner_state, snapshot) = self.look();
            let now = snapshot.filter(|_| owner_state == OwnerState::Alive);
            let evidence = Evidence::of(run_dir, now).map_err(runtime_error)?;
            Ok(Some(page(&evidence, |_| ())))
        })
    }

    /// Ends the connection to the live source; a later call makes another one.
    fn disconnect(&self) {
        if self.check_process().is_ok() {
            *locked(&self.traffic) = None;
        }
    }

    /// Drains and ends the engine of this process; its report, what could not be written, and what interrupted the
    /// drain. `None`: there is no such engine, or it has ended before. Ctrl-C ends it at once.
    fn end(&self, py: Python<'_>) -> PyResult<Option<Ended>> {
        if self.check_process().is_err() {
            return Ok(None);
        }
        let Some(run) = locked(&self.own).take() else { return Ok(None) };
        let mut interrupted = self.settle(py, &run).err();
        if interrupted.is_some() {
            let _ = run.engine().execute(Command::Stop, &Actor::this_process("interrupted"));
        }
        run.engine().request_drain();
        while !run.engine().is_finished() {
            // Answers leave the region, so that the last shots find room. An error here loses no report.
            py.detach(|| {
                let moved = locked(&self.traffic)
                    .as_mut()
                    .map(|traffic| if traffic.kept() < KEPT_MAX { traffic.receive() } else { Ok(0) });
                if !matches!(moved, Some(Ok(1..))) {
                    traffic::rest();
                }
            });
            if interrupted.is_none()
                && let Err(error) = py.check_signals()
            {
                interrupted = Some(error);
                let _ = run.engine().execute(Command::Stop, &Actor::this_process("interrupted"));
            }
        }
        let EndedRun { report, trouble, .. } = py.detach(|| {
            let _ = locked(&self.traffic).as_mut().map(Traffic::receive);
            run.end(None, Context::default())
        });
        let report = serde_json::to_string(&report).map_err(runtime_error)?;
        Ok(Some((report, trouble, interrupted)))
    }
}

impl Engine {
    fn of(found: RunningEngine) -> Engine {
        Engine {
            process: std::process::id(),
            control: found.control_socket(),
            run_dir: found.run_dir.clone(),
            input: found.follow.board().header().input.read(),
            board: Mutex::new(found),
            traffic: Mutex::new(None),
            is_connecting: AtomicBool::new(false),
            own: Mutex::new(None),
        }
    }

    /// The engine of `run`, which is of this process.
    fn own(run: RecordedRun) -> PyResult<Engine> {
        let path = run.engine().snapshot().engine.board_path;
        let path =
            path.ok_or_else(|| runtime_error("found no shared memory for the board, expected some; see df /dev/shm"))?;
        let file = BoardFile { path: PathBuf::from(path), pid: std::process::id(), owner: our_uid() };
        let found = RunningEngine::open(&file).map_err(runtime_error)?;
        let mut engine = Engine::of(found);
        engine.run_dir = Some(run.path().to_owned());
        *locked(&engine.own) = Some(run);
        Ok(engine)
    }

    /// Waits for the answers of this handle's shots, as long as they come: from a drain on the engine takes none that
    /// still lies in the region. An error only if Ctrl-C ends it.
    fn settle(&self, py: Python<'_>, run: &RecordedRun) -> PyResult<()> {
        let (mut before, mut moved) = (usize::MAX, traffic::now());
        loop {
            let mut waiting = 0;
            let has_ended = self.slice(py, |traffic| {
                let come = if traffic.kept() < KEPT_MAX { traffic.receive()? } else { 0 };
                waiting = traffic.unanswered();
                Ok(if waiting == 0 || run.engine().is_finished() { Step::Done } else { Step::moved(come) })
            });
            if !matches!(has_ended, Ok(false)) {
                return Ok(());
            }
            py.check_signals()?;
            if waiting < before {
                (before, moved) = (waiting, traffic::now());
            }
            let is_held = py.detach(|| run.engine().snapshot().control.held.is_some());
            if is_held || traffic::now().duration_since(moved) >= SETTLE_LIMIT {
                return Ok(());
            }
        }
    }

    fn check_process(&self) -> PyResult<()> {
        let (found, expected) = (std::process::id(), self.process);
        if found == expected {
            return Ok(());
        }
        Err(runtime_error(format!(
            "found a call in process {found}, expected one in process {expected}, which has the engine's threads; \
             attach to it, or start processes by multiprocessing's \"spawn\""
        )))
    }

    /// The board, and whether its process is alive.
    fn look(&self) -> (OwnerState, Option<Snapshot>) {
        running::look(&mut locked(&self.board).follow, &Clock::machine())
    }

    fn ended(&self) -> PyErr {
        PyConnectionError::new_err(format!("the engine of process {} has ended; start another one", self.control.pid))
    }

    /// An error if no answer can come any more.
    fn check_alive(&self, py: Python<'_>) -> PyResult<()> {
        let (owner_state, snapshot) = py.detach(|| self.look());
        let Some(snapshot) = snapshot else { return Ok(()) };
        let pid = self.control.pid;
        match (snapshot.engine.phase, owner_state) {
            (Phase::Shutdown, _) => Err(self.ended()),
            (_, OwnerState::Dead) => Err(PyConnectionError::new_err(format!(
                "process {pid} ended {:.1} s after its start, before the end of its run; read its board with pinwheel \
                 postmortem {pid}",
                snapshot.at_ns as f64 / 1e9
            ))),
            _ => Ok(()),
        }
    }

    /// Connects to the live source, unless it is connected, and waits until it is live.
    fn connected(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            if locked(&self.traffic).is_some() {
                return Ok(());
            }
            if !self.is_connecting.swap(true, Ordering::Relaxed) {
                break;
            }
            py.detach(traffic::rest);
            py.check_signals()?;
        }
        let connected = self.connect(py).map(|traffic| *locked(&self.traffic) = Some(traffic));
        self.is_connecting.store(false, Ordering::Relaxed);
        connected
    }

    /// A new connection to the live source.
    fn connect(&self, py: Python<'_>) -> PyResult<Traffic> {
        let about = format!("engine of process {}", self.control.pid);
        let place = match LivePlace::parse(&self.input) {
            Ok(place) if !matches!(place, LivePlace::Cudaq { .. }) => place,
            _ => {
                let (found, expected) = (format!("input {}", self.input), "shm:NAME, unix:PATH or udp:ADDRESS:PORT");
                let remedy = "start it with pinwheel run --input shm:NAME";
                return Err(value_error(Unusable::new(about, found, expected, remedy)));
            }
        };
        let refused = |error: io::Error| {
            let remedy = match &place {
                LivePlace::Shm { .. } => "a region has one client at a time",
                _ => "see whether the engine runs and its socket is there (ss -lxu)",
            };
            let found = format!("{error} at {place}");
            PyConnectionError::new_err(Unusable::new(&about, found, "its live source", remedy).to_string())
        };
        let claim = RegionClaim::of(&place, self.control.pid).map_err(refused)?;
        // Numbers of sessions grow with each start.
        let session = Clock::machine().started_utc().as_nanos() as u64;
        let end = traffic::now() + WELCOME_LIMIT;
        let mut client = connect(&place, &board::directory(), session, 1).map_err(refused)?;
        loop {
            let welcome = py.detach(|| {
                let until = traffic::now() + traffic::SLICE;
                loop {
                    match client.welcome() {
                        Ok(None) if traffic::now() < until => traffic::rest(),
                        welcome => return welcome,
                    }
                }
            });
            if let Some(welcome) = welcome.map_err(refused)? {
                return Ok(Traffic::new(client, welcome, claim));
            }
            py.check_signals()?;
            self.check_alive(py)?;
            if traffic::now() >= end {
                let found = format!("no welcome within {} s", WELCOME_LIMIT.as_secs());
                return Err(refused(io::Error::new(io::ErrorKind::TimedOut, found)));
            }
        }
    }

    fn batch<'a>(
        &self,
        py: Python<'_>,
        (shots, soft): (&'a [u8], &'a [u8]),
        count: usize,
        stream: &Whole,
        call: Option<usize>,
    ) -> PyResult<Batch<'a>> {
        self.check_process()?;
        self.connected(py)?;
        let mut traffic = locked(&self.traffic);
        let traffic = traffic.as_mut().ok_or_else(|| self.ended())?;
        let streams = traffic.welcome.streams;
        let expected = || format!("found stream {}, expected one of {streams}, counted from 0", stream.text);
        let number = u32::try_from(stream.number).ok().filter(|stream| *stream < streams);
        let stream = number.ok_or_else(|| value_error(expected()))?;
        let width = packed::width(shots, count, traffic.welcome.bits).map_err(value_error)?;
        let soft_width = if soft.is_empty() { 0 } else { traffic.welcome.soft_bytes as usize };
        if Some(soft.len()) != count.checked_mul(soft_width) {
            let bytes = soft.len();
            let found = format!("found {bytes} soft bytes, expected {soft_width} for each of {count} shots");
            return Err(value_error(found));
        }
        let call = call.map(|count| traffic.begin(count));
        Ok(Batch { stream, shots, width, soft, soft_width, count, call, sent: Vec::new() })
    }

    /// Runs `body` without the interpreter lock until it is done, or a slice is over; whether it is done.
    fn slice(&self, py: Python<'_>, mut body: impl FnMut(&mut Traffic) -> io::Result<Step> + Send) -> PyResult<bool> {
        py.detach(|| {
            let until = traffic::now() + traffic::SLICE;
            loop {
                let step = match locked(&self.traffic).as_mut() {
                    Some(traffic) => body(traffic).map_err(|error| PyConnectionError::new_err(error.to_string()))?,
                    None => return Err(self.ended()),
                };
                if step == Step::Done || traffic::now() >= until {
                    return Ok(step == Step::Done);
                }
                if step == Step::Idle {
                    traffic::rest();
                }
            }
        })
    }

    /// Sends `batch`, and goes on until `left` is 0.
    fn drive(
        &self,
        py: Python<'_>,
        batch: &mut Batch<'_>,
        timeout_s: f64,
        left: impl Fn(&Traffic) -> usize + Send + Sync,
    ) -> PyResult<()> {
        let mut end = deadline(timeout_s);
        let (mut before, mut open) = ((0, usize::MAX), 0);
        loop {
            let is_done = self.slice(py, |traffic| {
                let (sent, waiting) = (batch.sent.len(), left(traffic));
                traffic.send(batch)?;
                traffic.receive()?;
                open = left(traffic);
                Ok(match (batch.sent.len(), open) {
                    (_, 0) if batch.is_sent() => Step::Done,
                    now if now == (sent, waiting) => Step::Idle,
                    _ => Step::Moved,
                })
            })?;
            if is_done {
                return Ok(());
            }
            py.check_signals()?;
            let now = (batch.sent.len(), open);
            if now != before {
                (before, end) = (now, deadline(timeout_s));
                continue;
            }
            self.check_alive(py)?;
            self.give_up_lost(py);
            if end.is_some_and(|end| traffic::now() >= end) {
                return Err(self.timed_out(py, batch, open, timeout_s));
            }
        }
    }

    /// Gives up the wait for submitted shots that a socket may have lost, unless the feed is held.
    fn give_up_lost(&self, py: Python<'_>) {
        let is_held = py.detach(|| self.look()).1.is_some_and(|snapshot| snapshot.control.held.is_some());
        if let Some(traffic) = locked(&self.traffic).as_mut().filter(|_| !is_held) {
            traffic.give_up_lost();
        }
    }

    /// The sentence for a batch that did not get on.
    fn timed_out(&self, py: Python<'_>, batch: &Batch<'_>, left: usize, timeout_s: f64) -> PyErr {
        let snapshot = py.detach(|| self.look()).1;
        let (held, phase) =
            snapshot.map_or((None, Phase::Live), |snapshot| (snapshot.control.held, snapshot.engine.phase));
        let kept = locked(&self.traffic).as_ref().map_or(0, Traffic::kept);
        let (sent, count) = (batch.sent.len(), batch.count);
        let found = if batch.is_sent() {
            format!("found no answer to {left} of {count} shots within {timeout_s} s")
        } else {
            format!("found no room for shot {sent} of {count} within {timeout_s} s (those before it are accepted)")
        };
        let remedy = match held {
            Some(held) => format!("the feed is held by {}: call resume()", held.by),
            None if phase >= Phase::Drain => "the engine drains and takes no more shots: start another one".to_owned(),
            None if kept >= KEPT_MAX => format!("{kept} answers wait to be taken: call answers()"),
            None => "board() shows what the engine does; give a longer timeout".to_owned(),
        };
        PyTimeoutError::new_err(format!("{found}; {remedy}"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            std::mem::forget(locked(&self.own).take());
        }
    }
}

/// The moment `timeout_s` from now; `None`: never.
fn deadline(timeout_s: f64) -> Option<Instant> {
    let timeout = Duration::try_from_secs_f64(timeout_s.max(0.0)).ok()?;
    traffic::now().checked_add(timeout)
}
