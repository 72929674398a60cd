//! Shots of this engine's senders that other hosts decode: each is answered from here, once and in the
//! order of its stream, whatever becomes of those hosts.
//!
//! Pure: shots, answers and losses in; messages, answers and returned shots out. Used by the bridge's
//! thread. Bounds: [`UNDER_WAY_MAX`] shots sent to one host and not answered, fewer to a slow one
//! ([`Window`]); what waits to be sent is bounded by the lane from the engine, which is read only while
//! [`Outgoing::has_room`]. The bridge takes a stream back whose shots wait too long for their turn
//! ([`Outgoing::longest_wait`]).
//!
//! ```text
//!  lane ─▶ waiting ── all earlier ones of its stream are answered here ──▶ sent ── answer ─▶ answered
//!             │                                                              │
//!             └────────────── the stream is taken back ──────────────────────┴─▶ back ─▶ engine
//! ```
//!
//! # Why a taken-back shot cannot be answered twice
//! An answer counts only if it names a shot in `sent`: its stream, the epoch of the loan, and the number
//! in it. Taking a stream back empties `sent`, and the next loan has another epoch.

use crate::message::{Answered, Name, Shot, Widths};
use pinwheel_engine::feed::lane::Head;
use pinwheel_engine::units::Ticks;
use std::collections::VecDeque;

/// Most shots sent to one host and not answered.
pub const UNDER_WAY_MAX: usize = 512;
/// Most shots that wait here before the lane is left alone.
const WAITING_MAX: usize = 4_096;

/// How many shots may be under way to a host before one of its answers was timed.
const WINDOW_START: usize = 16;

/// How many shots may be under way to one host: as many as it has answered in half of its time. More would be late
/// although it works on them, and would be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(usize);

impl Default for Window {
    fn default() -> Window {
        Window(WINDOW_START)
    }
}

impl Window {
    /// Shots that may be under way.
    pub fn shots(self) -> usize {
        self.0
    }

    /// Some were not answered in time.
    pub fn failed(&mut self) {
        self.0 = self.0.div_ceil(2);
    }

    /// The last of `under_way` shots was answered after `took_ns` of `limit_ns`, without the link's time. What is sent
    /// before an answer comes changes nothing, so the window at most doubles in the time of one.
    pub fn timed(&mut self, under_way: usize, took_ns: u64, limit_ns: u64) {
        let window = match took_ns.saturating_mul(100) / limit_ns.max(1) {
            0..=12 => self.0.max(2 * under_way),
            13..=40 => self.0.max(under_way + under_way.div_ceil(4)),
            41..=60 => self.0,
            _ => self.0.min(under_way / 2),
        };
        self.0 = window.clamp(1, UNDER_WAY_MAX);
    }
}

/// A shot with its recipient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Away {
    head: Head,
    detectors: Vec<u64>,
    observables: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    away: Away,
    answer: Option<Answered>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Stream {
    /// The host that decodes it; `None`: this one.
    at: Option<String>,
    epoch: u32,
    /// Number of the next shot sent in this epoch.
    next: u64,
    /// When a shot of this epoch was first seen that all before it were answered here.
    may_leave: Option<Ticks>,
    waiting: VecDeque<Away>,
    sent: VecDeque<Sent>,
    back: VecDeque<Away>,
    /// Shots moved to `back` since the start.
    returned: u64,
}

/// All streams of this engine's senders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outgoing {
    streams: Vec<Stream>,
    widths: Widths,
    /// Shots in `waiting` and `back`, of all streams.
    kept: usize,
    /// The stream whose turn it is to leave.
    turn: usize,
}

impl Outgoing {
    /// Without a stream away.
    pub fn new(streams: u32, widths: Widths) -> Outgoing {
        Outgoing { streams: (0..streams).map(|_| Stream::default()).collect(), widths, kept: 0, turn: 0 }
    }

    /// Whether more shots can be taken from the lane.
    pub fn has_room(&self) -> bool {
        self.kept < WAITING_MAX
    }

    /// Whether shots wait to be sent or put back.
    pub fn has_waiting(&self) -> bool {
        self.kept > 0
    }

    /// Whether no shot is here or under way.
    pub fn is_empty(&self) -> bool {
        self.kept == 0 && self.streams.iter().all(|stream| stream.sent.is_empty())
    }

    /// The host that decodes `stream`; `None`: this one.
    pub fn at(&self, stream: u32) -> Option<&str> {
        self.streams[stream as usize].at.as_deref()
    }

    /// Streams that `host` decodes.
    pub fn streams_at<'a>(&'a self, host: &'a str) -> impl Iterator<Item = u32> + 'a {
        let at = move |stream: &Stream| stream.at.as_deref() == Some(host);
        self.streams.iter().enumerate().filter(move |(_, stream)| at(stream)).map(|(stream, _)| stream as u32)
    }

    /// Number of streams that other hosts decode.
    pub fn away(&self) -> u32 {
        self.streams.iter().filter(|stream| stream.at.is_some()).count() as u32
    }

    /// Lets `host` decode `stream` from its next shot on.
    pub fn give(&mut self, stream: u32, host: &str) {
        if self.at(stream) == Some(host) {
            return;
        }
        self.take_back(stream);
        let stream = &mut self.streams[stream as usize];
        (stream.at, stream.next, stream.may_leave) = (Some(host.to_owned()), 0, None);
        stream.epoch = stream.epoch.wrapping_add(1);
    }

    /// Decodes `stream` here again; shots without an answer go back to the engine. Returns how many of them
    /// were sent.
    pub fn take_back(&mut self, stream: u32) -> u64 {
        let stream = &mut self.streams[stream as usize];
        let sent = stream.sent.len();
        stream.at = None;
        stream.returned += (sent + stream.waiting.len()) as u64;
        stream.back.extend(stream.sent.drain(..).map(|sent| sent.away));
        stream.back.append(&mut stream.waiting);
        self.kept += sent;
        sent as u64
    }

    /// Takes a shot from the lane.
    pub fn take(&mut self, head: Head, detectors: &[u64], observables: &[u64]) {
        let away = Away { head, detectors: detectors.to_vec(), observables: observables.to_vec() };
        let stream = &mut self.streams[head.stream as usize];
        if stream.at.is_some() {
            stream.waiting.push_back(away);
        } else {
            // The intake sends shots after those that are still away, until they are back.
            stream.returned += 1;
            stream.back.push_back(away);
        }
        self.kept += 1;
    }

    /// Shots sent to `host` and not answered.
    pub fn under_way(&self, host: &str) -> usize {
        self.streams.iter().filter(|stream| stream.at.as_deref() == Some(host)).map(|stream| stream.sent.len()).sum()
    }

    /// The next shots for `host`, at most `limit`; its streams take turns. `answered_here` counts the shots of a
    /// stream that this engine has answered: a shot leaves when all before it are.
    pub fn next_message(&mut self, host: &str, limit: usize, answered_here: impl Fn(u32) -> u64) -> Vec<Shot> {
        let room = limit.min(UNDER_WAY_MAX.saturating_sub(self.under_way(host)));
        let from_turn = (self.turn..self.streams.len()).chain(0..self.turn);
        let is_of_host = |number: &usize| self.streams[*number].at.as_deref() == Some(host);
        let mut turns: VecDeque<usize> = from_turn.filter(is_of_host).collect();
        let mut shots = Vec::new();
        while shots.len() < room
            && let Some(number) = turns.pop_front()
        {
            let stream = &mut self.streams[number];
            if let Some(away) = stream.waiting.front()
                && answered_here(number as u32) == away.head.sequence + stream.returned
                && let Some(away) = stream.waiting.pop_front()
            {
                let name = Name { stream: number as u32, epoch: stream.epoch, number: stream.next };
                stream.next += 1;
                let truth = away.head.truth_known.then(|| away.observables.clone());
                shots.push(Shot { name, detectors: away.detectors.clone(), truth });
                stream.sent.push_back(Sent { away, answer: None });
                self.turn = (number + 1) % self.streams.len();
                turns.push_back(number);
            }
        }
        self.kept -= shots.len();
        shots
    }

    /// The longest that a shot has waited for its turn at `host` until `now`: since it came, and
    /// since those before it are answered here. `answered_here` as in [`Outgoing::next_message`].
    pub fn longest_wait(&mut self, host: &str, now: Ticks, answered_here: impl Fn(u32) -> u64) -> Ticks {
        let mut longest = Ticks(0);
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let Some(first) = stream.waiting.front().filter(|_| stream.at.as_deref() == Some(host)) else { continue };
            if stream.may_leave.is_none() && answered_here(number as u32) == first.head.sequence + stream.returned {
                stream.may_leave = Some(now);
            }
            let waited = stream.may_leave.map(|since| now.0.saturating_sub(since.max(first.head.arrived).0));
            longest = longest.max(Ticks(waited.unwrap_or_default()));
        }
        longest
    }

    /// Takes answers of a host; passes on those whose turn it is, with the heads of their shots.
    pub fn answered(&mut self, answers: Vec<Answered>, mut pass_on: impl FnMut(&Head, &Answered)) {
        for answer in answers {
            let Name { stream, epoch, number } = answer.name;
            let Some(stream) = self.streams.get_mut(stream as usize).filter(|one| one.epoch == epoch) else { continue };
            let first = stream.next - stream.sent.len() as u64;
            let place = number.checked_sub(first).and_then(|place| stream.sent.get_mut(place as usize));
            if let Some(sent) = place {
                sent.answer = Some(answer);
            }
            while let Some(Sent { answer: Some(answer), away }) = stream.sent.front() {
                pass_on(&away.head, answer);
                stream.sent.pop_front();
            }
        }
    }

    /// Hands shots that came back to `put`, in the order of their streams, until it refuses one.
    pub fn put_back(&mut self, mut put: impl FnMut(&Head, &[u64], &[u64]) -> bool) {
        for stream in &mut self.streams {
            while let Some(away) = stream.back.front() {
                if !put(&away.head, &away.detectors, &away.observables) {
                    return;
                }
                stream.back.pop_front();
                self.kept -= 1;
            }
        }
    }

    /// Widths of the shots.
    pub fn widths(&self) -> Widths {
        self.widths
    }
}

#[cfg(test)]
mod tests;
