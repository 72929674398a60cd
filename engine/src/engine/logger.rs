//! The logger: takes the hot threads' records from their rings and writes them to the log of
//! events.
//!
//! Owns the reading end of the rings, the file, and a wall clock that follows the clock pairs on
//! the board. Runs on a cold thread of its own, so that a disk that hangs delays no other thread.
//! Bounds: [`LOOK_MAX`] records a pass, [`HELD_MAX`] held back. Never ends a run: records that
//! cannot be written are counted, and reported once at the end.
//!
//! # Why records are held back for one pass
//! Each lane is ordered by ticks, but the lanes together are not. A record stamped before the
//! previous pass is in its lane by this pass; so records older than the previous pass can be
//! written in the order of their ticks.

use super::NOTE_CHARS_MAX;
use super::cold::{self, ColdThreads, Stop};
use crate::board::{self, Board};
use crate::clock::{Clock, Correlation, Step, WallClock};
use crate::fault::EventCode;
use crate::record::{Event, EventSink};
use crate::units::Ticks;
use pinwheel_edge::ring::log::{Reader, Record};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Records taken in one pass.
const LOOK_MAX: usize = 64;
/// Records held back; beyond this the oldest are written, whatever their age.
const HELD_MAX: usize = 256;
/// Pause between two passes without records.
const NOTHING: Duration = Duration::from_millis(2);
/// Capacity of one thread's lane: several times the records of a lost device with all its workers,
/// between two passes.
pub(super) const LANE: usize = 1024;

/// An event with a text, from a cold thread or the operator.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub(super) at: Ticks,
    pub(super) who: &'static str,
    pub(super) code: EventCode,
    pub(super) text: String,
    pub(super) numbers: Vec<u64>,
}

/// The text of a note on one line, cut to [`NOTE_CHARS_MAX`] characters.
pub(super) fn one_line(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(NOTE_CHARS_MAX).collect()
}

/// Events with a text that wait to be written.
pub(super) const ENTRIES_MAX: usize = 64;

/// The logger of one engine.
pub(super) struct Logger {
    reader: Reader,
    sink: EventSink,
    /// Names of the hot threads, by number.
    names: Vec<String>,
    board: Arc<Board>,
    clock: Clock,
    pair: Correlation,
    utc: WallClock,
    held: Vec<Record>,
    looked: Ticks,
    entries: Receiver<LogEntry>,
}

impl Logger {
    /// A logger for threads called `names`; needs the first clock pair on the board.
    pub(super) fn new(
        (reader, entries): (Reader, Receiver<LogEntry>),
        sink: EventSink,
        names: Vec<String>,
        board: Arc<Board>,
        clock: Clock,
    ) -> Logger {
        let pair = board.clock().pair().unwrap_or_else(|| Correlation::take(&clock));
        let utc = WallClock::new(pair, clock.rate());
        Logger { reader, sink, names, board, clock, pair, utc, held: Vec::new(), looked: Ticks(0), entries }
    }

    /// Starts its thread. The receiver yields the result of the file.
    pub(super) fn spawn(mut self, threads: &ColdThreads, stop: Stop) -> io::Result<Receiver<Result<(), String>>> {
        let (sender, receiver) = channel();
        threads.spawn("events", move || {
            loop {
                // The flag is read first: records written before it was raised are then taken
                // below.
                let stopped = stop.is_stopped();
                let taken = self.look();
                if taken < LOOK_MAX {
                    self.sink.flush();
                    if stopped {
                        break;
                    }
                    cold::sleep(NOTHING);
                }
            }
            self.write_entries();
            self.write_down(|_| true);
            let _ = sender.send(self.sink.finish());
        })?;
        Ok(receiver)
    }

    /// Takes new records, and writes those older than the previous pass; returns how many it took.
    fn look(&mut self) -> usize {
        let now = self.clock.ticks();
        self.follow();
        self.write_entries();
        let held = &mut self.held;
        let taken = self.reader.drain(LOOK_MAX, |record| held.push(record));
        self.held.sort_by_key(|record| record.ticks);
        let (looked, surplus) = (self.looked, self.held.len().saturating_sub(HELD_MAX));
        let until = surplus.checked_sub(1).map_or(looked, |last| looked.max(self.held[last].ticks));
        self.write_down(|record| record.ticks <= until);
        self.looked = now;
        taken
    }

    /// Writes the held records, oldest first, for as long as `ripe`.
    fn write_down(&mut self, ripe: impl Fn(&Record) -> bool) {
        let count = self.held.iter().take_while(|record| ripe(record)).count();
        let mut held = std::mem::take(&mut self.held);
        for record in held.drain(..count) {
            self.keep(&record);
        }
        self.held = held;
    }

    fn keep(&mut self, record: &Record) {
        let Some(code) = EventCode::from_number(record.code) else { return };
        let thread = self.names.get(usize::from(record.thread)).map_or("?", String::as_str);
        let (utc, ticks) = (self.utc.utc(record.ticks), record.ticks);
        let kept = self.sink.accept(&Event { utc, ticks, thread, code, numbers: record.numbers() });
        self.count(kept);
    }

    fn count(&self, kept: bool) {
        let block = self.board.log();
        board::add(if kept { &block.written } else { &block.unkept }, 1);
    }

    /// Writes the events with a text: they are rare, and arrive in order.
    fn write_entries(&mut self) {
        for LogEntry { at, who, code, text, numbers } in self.entries.try_iter().take(ENTRIES_MAX).collect::<Vec<_>>() {
            let event = Event { utc: self.utc.utc(at), ticks: at, thread: who, code, numbers: &numbers };
            let kept = self.sink.say(&event, text);
            self.count(kept);
        }
    }

    /// Takes over the newest clock pair; a step of the clock is an event.
    fn follow(&mut self) {
        let Some(pair) = self.board.clock().pair().filter(|pair| *pair != self.pair) else { return };
        self.pair = pair;
        let (code, by_ns) = match self.utc.note(pair) {
            None => return,
            Some(Step::Utc { by_ns }) => (EventCode::UtcStepped, by_ns),
            Some(Step::Counter { by_ns }) => (EventCode::CounterStepped, by_ns),
        };
        let numbers = [by_ns.unsigned_abs(), u64::from(by_ns < 0)];
        let kept =
            self.sink.accept(&Event { utc: pair.utc, ticks: pair.ticks, thread: "control", code, numbers: &numbers });
        self.count(kept);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{ENTRIES_MAX, HELD_MAX, LOOK_MAX, LogEntry, Logger};
    use crate::board::{Board, Place, Shape};
    use crate::clock::{Clock, Correlation};
    use crate::fault::EventCode;
    use crate::record::EventSink;
    use crate::units::{Nanos, Ticks};
    use pinwheel_edge::ring::log::{self, Writer};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{SyncSender, sync_channel};

    /// A logger of two threads under virtual time.
    struct Bench {
        nanos: Arc<AtomicU64>,
        board: Arc<Board>,
        logger: Logger,
        folder: tempfile::TempDir,
        say: SyncSender<LogEntry>,
    }

    fn bench(lane: usize) -> (Bench, Writer, Writer) {
        let nanos = Arc::new(AtomicU64::new(1_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 2, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        board.clock().publish(&Correlation::take(&clock));
        let (one, reader) = log::channel(2, lane, 0);
        let other = one.try_clone(1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let sink = EventSink::create(&folder.path().join("events.jsonl"));
        let names = ["one", "other"].map(str::to_string).to_vec();
        let (say, said) = sync_channel(ENTRIES_MAX);
        let logger = Logger::new((reader, said), sink, names, Arc::clone(&board), clock);
        (Bench { nanos, board, logger, folder, say }, one, other)
    }

    impl Bench {
        fn look(&mut self) -> usize {
            self.nanos.fetch_add(1_000, Ordering::Relaxed);
            self.logger.look()
        }

        /// Ticks, thread and name of each event in the file.
        fn written(&mut self) -> Vec<(u64, String, String)> {
            self.logger.sink.flush();
            let text = std::fs::read_to_string(self.folder.path().join("events.jsonl")).unwrap();
            let line = |line: &str| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let word = |key: &str| line[key].as_str().unwrap().to_string();
                (line["ticks"].as_u64().unwrap(), word("thread"), word("event"))
            };
            text.lines().map(line).collect()
        }
    }

    #[test]
    fn events_of_several_threads_are_written_in_the_order_of_their_ticks() {
        let (mut bench, mut one, mut other) = bench(8);
        for ticks in [1_300, 1_500] {
            one.write(Ticks(ticks), EventCode::PhaseEntered as u16, [1]);
        }
        assert_eq!(bench.look(), 2);
        assert_eq!(
            bench.written(),
            [],
            "the other thread may have stamped an earlier record that is not in its lane yet"
        );
        for ticks in [1_200, 1_400] {
            other.write(Ticks(ticks), EventCode::PhaseEntered as u16, [1]);
        }
        assert_eq!(bench.look(), 2);
        let written: Vec<_> = bench.written().into_iter().map(|(ticks, thread, _)| (ticks, thread)).collect();
        let expected = [(1_200, "other"), (1_300, "one"), (1_400, "other"), (1_500, "one")];
        assert_eq!(written, expected.map(|(ticks, thread)| (ticks, thread.to_string())));
    }

    #[test]
    fn a_step_of_utc_is_logged_as_an_event() {
        let (mut bench, _one, _other) = bench(8);
        let pair = Correlation { ticks: Ticks(3_000), monotonic: Nanos(3_000), utc: Nanos(5_003_000), width: Ticks(1) };
        bench.board.clock().publish(&pair);
        bench.look();
        bench.look();
        assert_eq!(bench.written(), [(3_000, "control".to_string(), "utc_stepped".to_string())]);
        assert_eq!(bench.board.snapshot(&bench.logger.clock).log.written, 1);
    }

    #[test]
    fn the_number_of_held_records_is_bounded_for_any_ticks() {
        let (mut bench, mut one, _other) = bench(1_024);
        (0..600).for_each(|number| one.write(Ticks(u64::MAX - 1_000 + number), EventCode::DeviceLost as u16, [number]));
        while bench.look() == LOOK_MAX {
            assert!(bench.logger.held.len() <= HELD_MAX);
        }
        assert_eq!(bench.written().len(), 600 - HELD_MAX);
        bench.logger.write_down(|_| true);
        assert_eq!(bench.written().len(), 600);
    }

    #[test]
    fn a_note_is_logged_with_its_text() {
        let (mut bench, _one, _other) = bench(8);
        let text = "cooled down \"again\"".to_string();
        bench
            .say
            .send(LogEntry { at: Ticks(1_500), who: "operator", code: EventCode::Note, text, numbers: Vec::new() })
            .unwrap();
        bench.look();
        assert_eq!(bench.written(), [(1_500, "operator".to_string(), "note".to_string())]);
        let file = std::fs::read_to_string(bench.folder.path().join("events.jsonl")).unwrap();
        assert!(file.contains(r#""text":"cooled down \"again\"""#), "{file}");
    }
}
