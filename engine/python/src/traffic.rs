//! The client of an engine's live source: sends shots, receives answers, and gives each answer to the call that waits
//! for it.
//!
//! Owns the connection and the numbers of the shots. Several Python threads share it behind a lock
//! that nobody holds longer than [`SLICE`]. Bounds: [`IN_FLIGHT_MAX`] shots without an answer,
//! [`OVERDUE_MAX`] more that a socket may have lost, [`KEPT_MAX`] answers that nobody took.
//!
//! ```text
//!  submit ─▶ next number of the stream ─▶ client ─▶ engine
//!  answers ◀─ kept answers ◀───┐              │
//!  decode ◀─ its own answers ◀─┴── receive ◀──┘
//! ```
#![expect(clippy::disallowed_types, reason = "a lock for several Python threads, none of which is a hot thread")]

use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::client::{Client, Received as Answer};
use pinwheel_engine::feed::packet::{Status, Welcome, status_name};
use pyo3::types::PyByteArray;
use pyo3::{Bound, Python, pyclass, pymethods};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that one call keeps the lock, and between two looks at signals.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// Most shots without an answer: the slots of a region.
const IN_FLIGHT_MAX: usize = 1024;
/// The same through a socket, which loses what its buffer does not hold: as many as `pinwheel send`.
const IN_FLIGHT_SOCKET_MAX: usize = 64;
/// Time without an answer after which a socket may have lost the shots that have none.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// Most of these shots whose answers are still taken if they come.
const OVERDUE_MAX: usize = 1024;
/// Most answers of submitted shots that are kept until they are taken.
pub(crate) const KEPT_MAX: usize = 1 << 20;
/// Shots between two looks at the clock.
const SHOTS_PER_LOOK: usize = 64;
/// Rest of a thread that waits for answers.
const REST: Duration = Duration::from_micros(50);

/// A moment of the caller's thread.
#[expect(clippy::disallowed_methods, reason = "limits of calls on a user's thread, which is no part of a run")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets the processor do something else.
#[expect(clippy::disallowed_methods, reason = "a user's thread that waits")]
pub(crate) fn rest() {
    std::thread::sleep(REST);
}

/// Regions that this process uses as a client, each with the process of its engine: another engine makes a region of
/// its own by the same name. The lock of a region's file keeps other processes out, not this one.
static CLAIMED: Mutex<BTreeSet<(u32, String)>> = Mutex::new(BTreeSet::new());

/// A region that belongs to one connection of this process; or a socket, which several may use.
pub(crate) struct RegionClaim(Option<(u32, String)>);

impl RegionClaim {
    /// Claims the region at `place` of the engine of process `pid`, if it is one.
    pub(crate) fn of(place: &LivePlace, pid: u32) -> io::Result<RegionClaim> {
        let LivePlace::Shm { name, .. } = place else { return Ok(RegionClaim(None)) };
        let region = (pid, name.clone());
        if CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).insert(region.clone()) {
            return Ok(RegionClaim(Some(region)));
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "the region is in use by another client of this process"))
    }
}

impl Drop for RegionClaim {
    fn drop(&mut self) {
        if let Some(region) = &self.0 {
            CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).remove(region);
        }
    }
}

/// The answers of one call of `decode`, in the order of its shots.
struct Call {
    answers: Vec<Option<Answer>>,
    left: usize,
}

/// Who waits for a shot's answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The next call of `answers`.
    Anyone,
    /// The call of `decode` of this number; the place of the shot in it.
    Call(u64, usize),
}

/// Packed shots of one stream, on their way.
pub(crate) struct Batch<'a> {
    pub(crate) stream: u32,
    pub(crate) shots: &'a [u8],
    pub(crate) width: usize,
    /// Soft bytes of all shots, and of one; empty: none.
    pub(crate) soft: &'a [u8],
    pub(crate) soft_width: usize,
    pub(crate) count: usize,
    /// The call of `decode` that waits for the answers; `None`: [`Waits::Anyone`].
    pub(crate) call: Option<u64>,
    /// The numbers of the shots sent so far.
    pub(crate) sent: Vec<u64>,
}

impl Batch<'_> {
    /// Whether all shots were sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent.len() == self.count
    }
}

/// The connection to a live source.
pub(crate) struct Traffic {
    client: Box<dyn Client>,
    pub(crate) welcome: Welcome,
    in_flight_max: usize,
    /// The next number of each stream.
    next: Vec<u64>,
    /// Shots without an answer, by stream and number.
    unanswered: BTreeMap<(u32, u64), Waits>,
    /// Submitted shots that a socket may have lost: nobody waits for their answers, and they take no room.
    overdue: BTreeMap<(u32, u64), Waits>,
    /// When a shot was sent or an answer came.
    heard: Instant,
    kept: VecDeque<Answer>,
    calls: BTreeMap<u64, Call>,
    calls_so_far: u64,
    /// Declared after the client, whose end of the region goes first.
    _claim: RegionClaim,
}

impl Traffic {
    /// A connection that was welcomed.
    pub(crate) fn new(client: Box<dyn Client>, welcome: Welcome, claim: RegionClaim) -> Traffic {
        Traffic {
            client,
            welcome,
            in_flight_max: if claim.0.is_some() { IN_FLIGHT_MAX } else { IN_FLIGHT_SOCKET_MAX },
            next: vec![0; welcome.streams as usize],
            unanswered: BTreeMap::new(),
            overdue: BTreeMap::new(),
            heard: now(),
            kept: VecDeque::new(),
            calls: BTreeMap::new(),
            calls_so_far: 0,
            _claim: claim,
        }
    }

    /// Whether submitted shots, without those of `decode`, have no answer yet.
    pub(crate) fn is_open(&self) -> bool {
        self.unanswered.values().any(|waits| *waits == Waits::Anyone)
    }

    /// Number of shots without an answer.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Answers that nobody took.
    pub(crate) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Sends shots of `batch` until all are sent, there is no room, or [`SLICE`] is over.
    pub(crate) fn send(&mut self, batch: &mut Batch<'_>) -> io::Result<()> {
        let end = now() + SLICE;
        while !batch.is_sent() {
            let place = batch.sent.len();
            let waits = batch.call.map_or(Waits::Anyone, |call| Waits::Call(call, place));
            let has_room =
                self.unanswered.len() < self.in_flight_max && (waits != Waits::Anyone || self.kept.len() < KEPT_MAX);
            let next = &mut self.next[batch.stream as usize];
            let shot = &batch.shots[place * batch.width..][..batch.width];
            let soft = &batch.soft[place * batch.soft_width..][..batch.soft_width];
            if has_room && self.client.send_soft(batch.stream, *next, shot, soft)? {
                self.unanswered.insert((batch.stream, *next), waits);
                self.heard = now();
                batch.sent.push(*next);
                *next += 1;
                if batch.sent.len().is_multiple_of(SHOTS_PER_LOOK) {
                    self.receive()?;
                    if now() >= end {
                        break;
                    }
                }
            } else if self.receive()? == 0 {
                // Another shot may be sent before this one goes on, of which only parts were: it takes another number.
                self.next[batch.stream as usize] += u64::from(has_room && self.client.has_begun());
                break;
            }
        }
        Ok(())
    }

    /// Receives answers that have come; returns how many.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        let Traffic { client, unanswered, overdue, heard, kept, calls, .. } = self;
        let mut count = 0;
        client.receive(&mut |answer| {
            let shot = (answer.stream, answer.sequence);
            // Through a socket an answer may come twice, or to a shot of nobody.
            let Some(waits) = unanswered.remove(&shot).or_else(|| overdue.remove(&shot)) else { return };
            count += 1;
            match waits {
                Waits::Anyone => kept.push_back(*answer),
                Waits::Call(number, place) => {
                    // A call that was interrupted takes no answers.
                    let Some(call) = calls.get_mut(&number) else { return };
                    call.left -= usize::from(call.answers[place].is_none());
                    call.answers[place] = Some(*answer);
                }
            }
        })?;
        if count > 0 {
            *heard = now();
        }
        Ok(count)
    }

    /// Gives up the wait for submitted shots, if a socket may have lost them.
    pub(crate) fn give_up_lost(&mut self) {
        // A region loses none.
        if self.in_flight_max == IN_FLIGHT_MAX || now().duration_since(self.heard) < LOST_AFTER {
            return;
        }
        let unanswered = std::mem::take(&mut self.unanswered);
        let (submitted, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            unanswered.into_iter().partition(|(_, waits)| *waits == Waits::Anyone);
        self.unanswered = others;
        self.overdue.extend(submitted);
        while self.overdue.len() > OVERDUE_MAX {
            self.overdue.pop_first();
        }
    }

    /// Takes kept answers, in the order in which they came, at most `count`.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Answer> {
        self.kept.drain(..count.min(self.kept.len())).collect()
    }

    /// Begins a call of `decode` with `count` shots; returns its number.
    pub(crate) fn begin(&mut self, count: usize) -> u64 {
        self.calls_so_far += 1;
        self.calls.insert(self.calls_so_far, Call { answers: vec![None; count], left: count });
        self.calls_so_far
    }

    /// Number of shots of a call without an answer.
    pub(crate) fn left(&self, call: u64) -> usize {
        self.calls.get(&call).map_or(0, |call| call.left)
    }

    /// Ends a call; its answers, in the order of its shots, as far as they have come.
    pub(crate) fn end(&mut self, call: u64) -> Vec<Answer> {
        let Some(Call { answers, left }) = self.calls.remove(&call) else { return Vec::new() };
        if left > 0 {
            // What a socket lost takes no room of later shots.
            self.unanswered.retain(|_, waits| !matches!(waits, Waits::Call(number, _) if *number == call));
        }
        answers.into_iter().flatten().collect()
    }
}

/// Answers as columns.
#[pyclass(frozen, module = "pinwheel._core")]
pub(crate) struct Received {
    answers: Vec<Answer>,
    /// Bytes of a shot's packed observables.
    width: usize,
}

impl Received {
    pub(crate) fn new(answers: Vec<Answer>, observables: u32) -> Received {
        Received { answers, width: observables.div_ceil(8) as usize }
    }

    fn column<'py, const BYTES: usize>(
        &self,
        py: Python<'py>,
        of: fn(&Answer) -> [u8; BYTES],
    ) -> Bound<'py, PyByteArray> {
        let bytes: Vec<u8> = self.answers.iter().flat_map(of).collect();
        PyByteArray::new(py, &bytes)
    }
}

#[pymethods]
impl Received {
    fn __len__(&self) -> usize {
        self.answers.len()
    }

    /// The first answer that is an error, in a sentence.
    fn error(&self) -> Option<String> {
        let (place, answer) = self.answers.iter().enumerate().find(|(_, answer)| !Status::is_decoded(answer.status))?;
        let name = status_name(answer.status).unwrap_or("unknown");
        Some(format!("shot {place}: found status {} ({name}), expected an answer", answer.status))
    }

    /// Streams, an unsigned integer of 32 bits for each answer.
    fn stream<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        self.column(py, |answer| answer.stream.to_ne_bytes())
    }

    /// Numbers of the shots, of 64 bits.
    fn sequence<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        self.column(py, |answer| answer.sequence.to_ne_bytes())
    }

    /// Statuses, of 16 bits.
    fn status<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        self.column(py, |answer| answer.status.to_ne_bytes())
    }

    /// Latencies in nanoseconds, of 64 bits.
    fn latency_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        self.column(py, |answer| answer.latency_ns.to_ne_bytes())
    }

    /// Packed observables, `ceil(observables / 8)` bytes for each answer.
    fn predictions<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        let bytes = |answer: &Answer| answer.observables.into_iter().flat_map(u64::to_le_bytes).take(self.width);
        let bytes: Vec<u8> = self.answers.iter().flat_map(bytes).collect();
        PyByteArray::new(py, &bytes)
    }
}
