//! The flight recorder: pictures of the board ten times a second, fast samples around an alarm.
//!
//! Owns the recording's writing end and the memory of the last minutes. Stepped every millisecond by a cold thread of the
//! engine. Bounds: [`MEMORY_MAX`] of pictures or ten minutes, [`BEFORE`] of fast samples, whichever ends first. Never touches a hot
//! thread, never ends a run: a disk that refuses is said once, and memory goes on.
//!
//! ```text
//!   every ms:      fast words of the board -> the burst being made; a full one -> the last five seconds' bursts
//!   every 100 ms:  the whole board -> a picture -> memory, and disk
//!   an alarm's onset: those bursts -> disk, and every burst made in the five seconds after it
//! ```

mod store;

pub use store::LookBack;

use super::tape::{self, Burst, Detail, Encoder, FastSet, Head, Kind, Packer};
use crate::board::snapshot::RecorderState;
use crate::board::{self, Board, get};
use crate::clock::Clock;
use crate::units::{Nanos, Ticks};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use store::Store;

/// Between two pictures.
pub const PICTURE: Nanos = Nanos(100_000_000);
/// Between two fast samples.
pub const SAMPLE: Nanos = Nanos(1_000_000);
/// Length of a burst.
const BURST: Nanos = Nanos(1_000_000_000);
/// Fast samples are kept for so long before an alarm, and written for so long after it.
const BEFORE: Nanos = Nanos(5_000_000_000);
/// Bytes of pictures kept in memory.
pub const MEMORY_MAX: usize = 48 << 20;
/// Time that pictures are kept in memory.
pub const MEMORY_SPAN: Nanos = Nanos(600_000_000_000);

/// A recorder of one board.
pub struct Recorder {
    board: Arc<Board>,
    clock: Clock,
    encoder: Encoder,
    packer: Packer,
    fast: FastSet,
    store: Store,
    picture_due: Ticks,
    number: u32,
    burst: Burst,
    /// Packed, oldest first; not yet written.
    recent: VecDeque<(Ticks, Vec<u8>)>,
    /// Versions of alarms seen so far, the newest onset among them, and until when bursts are written.
    versions: u64,
    onset: Ticks,
    write_until: Ticks,
}

impl Recorder {
    /// Records `board` into the run's directory; into memory alone where there is none.
    #[must_use]
    pub fn new(board: Arc<Board>, clock: Clock, run: Option<&Path>) -> Recorder {
        let store = Store::open(&board, &clock, run);
        Recorder::with(board, clock, store)
    }

    pub(super) fn with(board: Arc<Board>, clock: Clock, store: Store) -> Recorder {
        let (encoder, fast, now) = (Encoder::new(&board), FastSet::of(&board), clock.ticks());
        let burst = Burst::begin(now, &fast);
        let (recent, onset, versions) = (VecDeque::new(), newest_onset(&board), versions(&board));
        let mut recorder = Recorder {
            board,
            clock,
            encoder,
            packer: Packer::new(),
            fast,
            store,
            picture_due: now,
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

    /// What looks back at the last minutes.
    #[must_use]
    pub fn look_back(&self) -> LookBack {
        self.store.look_back()
    }

    /// Why it does not write to disk, once.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.store.take_trouble()
    }

    /// Whatever is due now.
    pub fn step(&mut self) {
        let now = self.clock.ticks();
        self.burst.sample(now, &self.board, &self.fast);
        board::add(&self.board.recorder().samples, 1);
        let versions = versions(&self.board);
        if versions != self.versions {
            self.versions = versions;
            let onset = newest_onset(&self.board);
            if onset > self.onset {
                self.onset = onset;
                self.keep_fast(now);
            }
        }
        if self.span(self.burst.at(), now) >= BURST {
            self.end_burst(now);
        }
        if now >= self.picture_due {
            // A picture that came late moves those after it: a burst of pictures would tell nothing more.
            self.picture_due = now.plus(self.clock.rate().ticks(PICTURE));
            self.picture(now, false);
        }
        self.cost(now);
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

    fn picture(&mut self, now: Ticks, is_last: bool) {
        let is_key = self.number.is_multiple_of(tape::KEY_EVERY);
        let (kind, raw) = if is_key {
            (Kind::Key, self.encoder.key(&self.board, now))
        } else if is_last {
            (Kind::Delta, self.encoder.last(&self.board, now))
        } else {
            let detail = if now <= self.write_until { Detail::Full } else { Detail::Thin };
            (Kind::Delta, self.encoder.delta(&self.board, now, detail))
        };
        let frame = self.packer.pack(Head { number: self.number, kind, at: now }, &raw);
        self.number = self.number.wrapping_add(1);
        self.store.put(&frame, is_key.then_some(now));
        board::add(&self.board.recorder().frames, 1);
        self.publish();
    }

    /// What the reader of this recording sees at its newest picture.
    #[must_use]
    pub fn shadow(&self) -> &board::image::Image {
        self.encoder.shadow()
    }

    /// The last picture, and the end.
    pub fn finish(mut self) -> Option<String> {
        let now = self.clock.ticks();
        if now <= self.write_until {
            self.end_burst(now);
        }
        board::set(&self.board.recorder().state, RecorderState::Ended.code());
        self.picture(now, true);
        board::set(&self.board.recorder().state, RecorderState::Ended.code());
        self.store.take_trouble()
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
        if let Some(said) = self.store.news() {
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

/// Moves whenever an alarm is written: a look at one word each, where [`newest_onset`] reads whole records.
fn versions(board: &Board) -> u64 {
    board.alarms().iter().map(|row| get(&row.versions)).sum()
}

/// The trigger of fast samples: the onset of the newest alarm that is more than a note.
fn newest_onset(board: &Board) -> Ticks {
    let rows = board.alarms().iter().filter(|row| get(&row.versions) != 0);
    let alarms = rows.filter_map(board::AlarmRow::read).filter(|alarm| alarm.severity > crate::profile::Severity::Note);
    alarms.map(|alarm| alarm.onset).max().unwrap_or(Ticks(0))
}

#[cfg(test)]
mod tests;
