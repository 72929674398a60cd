//! The flight recorder: records the board ten times a second, and some of its words every
//! millisecond around an alarm.
//!
//! Owns the writing side of the recording and the last minutes in memory. A cold thread of the
//! engine steps it every millisecond. Memory is bounded by [`MEMORY_MAX`] and [`MEMORY_SPAN`], fast
//! samples by [`BEFORE`]. Never touches a hot thread. If the disk fails, this is reported once, and
//! recording goes on in memory.
//!
//! ```text
//!   every ms:      fast words of the board -> current burst; full burst -> bursts of the last 5 s
//!   every 100 ms:  the whole board -> a snapshot -> memory and disk
//!   alarm onset:   those bursts -> disk, and every burst of the next five seconds
//! ```

mod store;

pub use store::RecentRecording;

use super::tape::{self, Burst, Detail, Encoder, FastSet, Head, Kind, Packer};
use crate::board::{self, Board, get};
use crate::clock::Clock;
use crate::roles::RecorderState;
use crate::units::{Nanos, Ticks};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use store::Store;

/// Time between two snapshots.
pub const SNAPSHOT_PERIOD: Nanos = Nanos(100_000_000);
/// Time between two fast samples.
pub const SAMPLE_PERIOD: Nanos = Nanos(1_000_000);
/// Length of a burst.
const BURST: Nanos = Nanos(1_000_000_000);
/// Fast samples are kept this long before an alarm, and written this long after it.
const BEFORE: Nanos = Nanos(5_000_000_000);
/// Most bytes of snapshots in memory.
pub const MEMORY_MAX: usize = 48 << 20;
/// Longest time that snapshots are kept in memory.
pub const MEMORY_SPAN: Nanos = Nanos(600_000_000_000);

/// Records one board.
pub struct Recorder {
    board: Arc<Board>,
    clock: Clock,
    encoder: Encoder,
    packer: Packer,
    fast: FastSet,
    store: Store,
    snapshot_due: Ticks,
    number: u32,
    burst: Burst,
    /// Packed bursts, oldest first, that are not yet written.
    recent: VecDeque<(Ticks, Vec<u8>)>,
    /// Alarm versions at the last step, the newest onset, and the time until which bursts are
    /// written.
    versions: u64,
    onset: Ticks,
    write_until: Ticks,
}

impl Recorder {
    /// Records `board` into the run's directory; without one only into memory.
    pub fn new(board: Arc<Board>, clock: Clock, run: Option<&Path>) -> Recorder {
        let store = Store::open(&board, &clock, run);
        Recorder::with(board, clock, store)
    }

    pub(super) fn with(board: Arc<Board>, clock: Clock, store: Store) -> Recorder {
        let (encoder, fast, now) = (Encoder::new(&board), FastSet::of(&board), clock.ticks());
        let burst = Burst::begin(now, &fast);
        let (recent, onset, versions) = (VecDeque::new(), newest_onset(&board, &clock), versions(&board));
        let mut recorder = Recorder {
            board,
            clock,
            encoder,
            packer: Packer::new(),
            fast,
            store,
            snapshot_due: now,
            number: 0,
            burst,
            recent,
            versions,
            onset,
            write_until: Ticks(0),
        };
        recorder.publish();
        recorder
    }

    /// The last minutes, for another thread to read.
    pub fn recent_recording(&self) -> RecentRecording {
        self.store.recent_recording()
    }

    /// Why it does not write to disk; returned once.
    pub fn take_error(&mut self) -> Option<String> {
        self.store.take_error()
    }

    /// Does what is due now; called every millisecond.
    pub fn step(&mut self) {
        let now = self.clock.ticks();
        if now.plus(self.clock.rate().ticks(SNAPSHOT_PERIOD)) < self.snapshot_due {
            self.restart(now);
        }
        self.burst.sample(now, &self.board, &self.fast);
        board::add(&self.board.recorder().samples, 1);
        let versions = versions(&self.board);
        if versions != self.versions {
            self.versions = versions;
            let onset = newest_onset(&self.board, &self.clock);
            if onset > self.onset {
                self.onset = onset;
                self.keep_fast(now);
            }
        }
        if self.span(self.burst.at(), now) >= BURST {
            self.end_burst(now);
        }
        if now >= self.snapshot_due {
            // A late snapshot delays the following ones; catching up would record nothing new.
            self.snapshot_due = now.plus(self.clock.rate().ticks(SNAPSHOT_PERIOD));
            self.record_snapshot(now, false);
        }
        self.cost(now);
    }

    /// The counter went back (a suspend, another host): what was due by its old values is due now.
    fn restart(&mut self, now: Ticks) {
        self.end_burst(now);
        self.recent.iter_mut().for_each(|(at, _)| *at = now.min(*at));
        self.write_until = self.write_until.min(now.plus(self.clock.rate().ticks(BEFORE)));
        self.onset = newest_onset(&self.board, &self.clock);
        self.snapshot_due = now;
        self.store.end_index();
    }

    /// Keeps the fast samples of the five seconds before `now` and those of the five after it.
    pub fn keep_fast(&mut self, now: Ticks) {
        board::add(&self.board.recorder().bursts, 1);
        self.end_burst(now);
        for (_, frame) in std::mem::take(&mut self.recent) {
            self.store.put(&frame, None);
        }
        self.write_until = now.plus(self.clock.rate().ticks(BEFORE));
        self.publish();
    }

    fn end_burst(&mut self, now: Ticks) {
        let head = Head { number: 0, kind: Kind::Burst, at: self.burst.at() };
        let frame = tape::pack(head, &self.burst.payload());
        self.burst = Burst::begin(now, &self.fast);
        if now <= self.write_until {
            self.store.put(&frame, None);
            return;
        }
        self.recent.push_back((head.at, frame));
        while self.recent.front().is_some_and(|(at, _)| self.span(*at, now) > Nanos(BEFORE.0 + 2 * BURST.0)) {
            self.recent.pop_front();
        }
    }

    fn record_snapshot(&mut self, now: Ticks, is_last: bool) {
        let is_key = self.number.is_multiple_of(tape::KEY_EVERY);
        let (kind, raw) = if is_key {
            (Kind::Key, self.encoder.key(&self.board, now))
        } else if is_last {
            (Kind::Delta, self.encoder.last(&self.board, now))
        } else {
            let detail = if now <= self.write_until { Detail::Full } else { Detail::Thin };
            (Kind::Delta, self.encoder.delta(&self.board, now, detail))
        };
        // A decode worker may share the core: it gets it between the parts of this work.
        std::thread::yield_now();
        let frame = self.packer.pack(Head { number: self.number, kind, at: now }, &raw);
        std::thread::yield_now();
        self.number = self.number.wrapping_add(1);
        self.store.put(&frame, is_key.then_some(now));
        board::add(&self.board.recorder().frames, 1);
        self.publish();
    }

    /// Records the last snapshot and ends. Returns an error that was not reported yet.
    pub fn finish(mut self) -> Option<String> {
        let now = self.clock.ticks();
        if now <= self.write_until {
            self.end_burst(now);
        }
        board::set(&self.board.recorder().state, RecorderState::Ended.code());
        self.record_snapshot(now, true);
        board::set(&self.board.recorder().state, RecorderState::Ended.code());
        self.store.take_error()
    }

    fn span(&self, from: Ticks, to: Ticks) -> Nanos {
        self.clock.rate().nanos(to.since(from))
    }

    fn publish(&mut self) {
        let block = self.board.recorder();
        board::set(&block.bytes, self.store.bytes());
        if get(&block.state) != RecorderState::Ended.code() {
            board::set(&block.state, self.store.state().code());
        }
        if let Some(said) = self.store.take_unpublished_error() {
            block.trouble.write(&said);
        }
    }

    fn cost(&self, from: Ticks) {
        let block = self.board.recorder();
        let spent = self.span(from, self.clock.ticks()).0;
        board::add(&block.step_ns, spent);
        board::set(&block.step_ns_max, get(&block.step_ns_max).max(spent));
    }
}

/// Changes whenever an alarm is written. One word for each alarm; [`newest_onset`] reads whole
/// records.
fn versions(board: &Board) -> u64 {
    board.alarms().iter().map(|row| get(&row.versions)).sum()
}

/// The onset of the newest alarm that is more than a note. It triggers fast samples. An onset in
/// the future is from before the counter went back.
fn newest_onset(board: &Board, clock: &Clock) -> Ticks {
    let rows = board.alarms().iter().filter(|row| get(&row.versions) != 0);
    let alarms = rows.filter_map(board::AlarmRow::read).filter(|alarm| alarm.severity > crate::profile::Severity::Note);
    alarms.map(|alarm| alarm.onset).filter(|onset| *onset <= clock.ticks()).max().unwrap_or(Ticks(0))
}

#[cfg(test)]
mod tests;
