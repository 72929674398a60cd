//! `events.jsonl`: one line for each event of a run, with a sentence for people and numbers for
//! scripts.
//!
//! Owns the file and the sentences. Run by the engine's logger, a cold thread. Bounded by
//! [`EVENTS_BYTES_MAX`]; a last line says when the file is full. Never fails a run: the first error
//! is kept as one sentence, and no later event is written.

use crate::clock::utc_text_ns;
use crate::fault::EventCode;
use crate::roles::RoleKind;
use crate::streams::MoveStage;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::spin::{Phase, SpinOrder};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Most bytes of a run's event file.
pub const EVENTS_BYTES_MAX: u64 = 64 << 20;
/// Bytes reserved for the last line.
const LAST_LINE_BYTES: u64 = 512;

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When, nanoseconds since 1970.
    pub utc: Nanos,
    /// When, in the engine's ticks.
    pub ticks: Ticks,
    /// The thread that reported it.
    pub thread: &'a str,
    /// Its kind.
    pub code: EventCode,
    /// Its numbers; their meaning depends on the kind.
    pub numbers: &'a [u64],
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    utc: String,
    ticks: u64,
    thread: &'a str,
    event: &'static str,
    text: String,
    numbers: &'a [u64],
}

/// The event file of one run.
#[derive(Debug)]
pub struct EventSink {
    path: PathBuf,
    out: Option<BufWriter<File>>,
    bytes: u64,
    bytes_max: u64,
    trouble: Option<String>,
}

impl EventSink {
    /// Makes the file. If it cannot be made, [`EventSink::finish`] returns the error.
    pub fn create(path: &Path) -> EventSink {
        let mut sink =
            EventSink { path: path.to_owned(), out: None, bytes: 0, bytes_max: EVENTS_BYTES_MAX, trouble: None };
        match File::create_new(path) {
            Ok(file) => sink.out = Some(BufWriter::new(file)),
            Err(error) => sink.give_up(&error),
        }
        sink
    }

    /// Writes `event`; returns whether it was written.
    pub fn accept(&mut self, event: &Event<'_>) -> bool {
        self.say(event, text(event.code, event.numbers))
    }

    /// Writes `event` with a sentence of the caller's; returns whether it was written.
    pub fn say(&mut self, event: &Event<'_>, said: String) -> bool {
        if self.out.is_none() {
            return false;
        }
        let line = rendered(event, said);
        if self.bytes + line.len() as u64 + LAST_LINE_BYTES > self.bytes_max {
            let numbers = [self.bytes_max];
            let last = Event { code: EventCode::LogFull, numbers: &numbers, ..*event };
            let last = rendered(&last, text(last.code, last.numbers));
            self.put(&last);
            self.flush();
            self.out = None;
            return false;
        }
        self.put(&line);
        self.out.is_some()
    }

    /// Flushes what was written.
    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.out.as_mut().map(Write::flush) {
            self.give_up(&error);
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error, in one sentence.
    pub fn finish(mut self) -> Result<(), String> {
        self.flush();
        self.trouble.map_or(Ok(()), Err)
    }

    fn put(&mut self, line: &str) {
        self.bytes += line.len() as u64;
        if let Some(Err(error)) = self.out.as_mut().map(|out| out.write_all(line.as_bytes())) {
            self.give_up(&error);
        }
    }

    fn give_up(&mut self, error: &std::io::Error) {
        let path = self.path.display();
        self.trouble.get_or_insert(format!("events: cannot write {path} ({error}); the run went on without them"));
        // Dropping the buffer would try to write it again.
        if let Some(out) = self.out.take() {
            let _ = out.into_parts();
        }
    }
}

fn rendered(event: &Event<'_>, text: String) -> String {
    let line = Line {
        utc: utc_text_ns(event.utc.0),
        ticks: event.ticks.0,
        thread: event.thread,
        event: event.code.name(),
        text,
        numbers: event.numbers,
    };
    // Strings and numbers always serialise.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// The sentence of an event. A missing number reads as zero.
fn text(code: EventCode, numbers: &[u64]) -> String {
    let number = |place: usize| numbers.get(place).copied().unwrap_or(0);
    let (first, second, third, fourth) = (number(0), number(1), number(2), number(3));
    let direction = if second == 0 { "forwards" } else { "backwards" };
    match code {
        EventCode::PhaseEntered => format!("entered {}", Phase::from_code(first).name()),
        EventCode::PolicyAcknowledged => {
            let order = SpinOrder::unpack(first);
            format!("runs spin policy {}, epoch {}", order.policy.name(), order.epoch)
        }
        EventCode::WorkerQuarantined => {
            let error = u16::try_from(fourth).ok().and_then(ErrorCode::from_number).map_or("an error", ErrorCode::name);
            format!("worker {second} of silo {first} quarantined, its shot in slot {third} answered with {error}")
        }
        EventCode::LaunchDeadline => {
            let us = fourth / 1_000;
            format!("worker {second} of silo {first} quarantined {us} µs after its launch for slot {third}")
        }
        EventCode::LateCompletion => format!("worker {second} of silo {first} completed after its shot was answered"),
        EventCode::DeviceLost => format!("device of silo {first} lost after {second} launches, the CPU predecodes"),
        EventCode::DeviceRecovered => format!("device of silo {first} back after {second} launches"),
        EventCode::RoleDied => {
            let role = RoleKind::ALL.into_iter().find(|kind| *kind as u64 == first).map_or("role", RoleKind::name);
            format!("{role} of silo {second} panicked in frame {third}, line {fourth}; it is not called again")
        }
        EventCode::DrainFinished => format!("nothing left to do after {first} frames"),
        EventCode::UtcStepped => format!("UTC was set {direction} by {first} ns: times of day jump here"),
        EventCode::CounterStepped => format!("the counter jumped {direction} by {first} ns against monotonic time"),
        EventCode::Operated => format!("acted on by process {second} of user {first}"),
        EventCode::Note => "a note without words".to_owned(),
        EventCode::RecorderInMemory => "the recording goes on in memory only".to_owned(),
        EventCode::RunsRemoved => format!("{first} earlier runs removed, to keep within the profile's recorder bounds"),
        EventCode::StreamMoved => {
            let us = fourth / 1_000;
            format!("stream {first} moved from silo {second} to silo {third}, after a pause of {us} µs")
        }
        EventCode::MoveGivenUp => {
            let stage =
                MoveStage::ALL.into_iter().find(|stage| *stage as u64 == fourth).map_or("a step", MoveStage::name);
            format!("stream {first} stays in silo {second}: its move to silo {third} was given up in {stage}")
        }
        EventCode::LogFull => format!("found {first} bytes of events, expected fewer; later ones are not kept"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Event, EventCode, EventSink, text};
    use crate::units::{Nanos, Ticks};
    use std::collections::BTreeSet;
    use std::path::Path;

    fn event(numbers: &[u64]) -> Event<'_> {
        let (utc, ticks) = (Nanos(1_770_000_000_000_000_042), Ticks(7));
        Event { utc, ticks, thread: "hot-0", code: EventCode::LateCompletion, numbers }
    }

    #[test]
    fn a_line_has_time_thread_event_text_and_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut sink = EventSink::create(&path);
        assert!(sink.accept(&event(&[0, 5])));
        assert_eq!(sink.finish(), Ok(()));
        let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let expected = serde_json::json!({
            "utc": "2026-02-02T02:40:00.000000042Z",
            "ticks": 7,
            "thread": "hot-0",
            "event": "late_completion",
            "text": "worker 5 of silo 0 completed after its shot was answered",
            "numbers": [0, 5],
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn every_code_has_a_text_of_its_own_whatever_its_numbers() {
        for numbers in [&[][..], &[u64::MAX; 4]] {
            let texts: BTreeSet<String> = EventCode::ALL.into_iter().map(|code| text(code, numbers)).collect();
            assert_eq!(texts.len(), EventCode::ALL.len(), "{texts:?}");
        }
    }

    #[test]
    fn a_full_file_ends_with_a_line_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut sink = EventSink::create(&path);
        sink.bytes_max = 2_000;
        let kept = (0..100).filter(|_| sink.accept(&event(&[1, 2]))).count();
        assert_eq!(sink.finish(), Ok(()), "full is no trouble");
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written.len() <= 2_000 && written.lines().count() == kept + 1 && kept > 5, "{kept}");
        let last = written.lines().last().unwrap();
        assert!(last.contains("log_full") && last.contains("2000 bytes"), "{last}");
    }

    #[test]
    fn an_unwritable_directory_is_reported_once_and_keeps_nothing() {
        for path in ["/nowhere/events.jsonl", "/dev/full"] {
            let mut sink = EventSink::create(Path::new(path));
            assert!(!sink.accept(&event(&[])));
            let said = sink.finish().unwrap_err();
            assert!(said.contains(path) && said.contains("cannot write") && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_disk_that_fills_up_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = EventSink::create(&folder.path().join("events.jsonl"));
        sink.out = Some(std::io::BufWriter::new(std::fs::File::create("/dev/full").unwrap()));
        let kept = (0..1_000).filter(|_| sink.accept(&event(&[1, 2]))).count();
        assert!(kept < 1_000, "the buffer was written at some time");
        assert!(sink.finish().unwrap_err().starts_with("events: cannot write "));
    }
}
