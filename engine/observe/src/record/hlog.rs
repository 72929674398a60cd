//! Latency histograms of a recording as an HdrHistogram interval log (`.hlog`), which common
//! viewers open.
//!
//! Cold. One interval for each key snapshot, see [`super::tape::KEY_EVERY`]. Values are
//! nanoseconds, the upper bounds of the board's buckets (at most 6.25 % above the true values).

use super::tape::{Moment, Tape, TapeError};
use crate::board::histogram::Histogram;
use crate::board::snapshot::Snapshot;
use crate::units::Nanos;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// Longest latency of the log: an hour.
const MAX_NS: u64 = 3_600_000_000_000;

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HlogError {
    /// The recording cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The output cannot be written.
    #[error("histograms: cannot write the output ({0}); free some space or check the reader")]
    Output(#[from] io::Error),
}

/// Writes the intervals of `tape`. Each has a histogram of the latency, of the latency from
/// submission, and of each stage.
///
/// # Errors
/// [`HlogError`], one sentence.
pub fn write(tape: &mut Tape, out: &mut dyn Write) -> Result<(), HlogError> {
    let (start, rate) = (tape.start(), tape.rate());
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new();
    log.add_comment("[Latency of Pinwheel's shots; values are nanoseconds]").with_max_value_divisor(1e6);
    let mut out = ErrorCapture { out, error: None };
    let mut writer = None;
    let mut before: Option<(Nanos, Vec<(String, Histogram)>)> = None;
    let mut unopened = Some((log, &mut out, &mut serializer));
    let board = tape.board().map_err(TapeError::from)?;
    let mut add = |moment: &Moment| -> Result<(), HlogError> {
        let Some(snapshot) = moment.snapshot_on(&board) else { return Ok(()) };
        let (now, all) = (rate.nanos(moment.time().since(start)), histograms(&snapshot));
        if let Some((mut log, out, serializer)) = unopened.take() {
            // Another program may have written any number.
            let started = Duration::from_secs(snapshot.engine.started_utc_s);
            let start = SystemTime::UNIX_EPOCH.checked_add(started).unwrap_or(SystemTime::UNIX_EPOCH);
            log.with_start_time(start).with_base_time(start);
            writer = Some(log.begin_log_with(out, serializer)?);
        }
        if let (Some((then, earlier)), Some(writer)) = (&before, &mut writer) {
            for ((name, later), (_, earlier)) in all.iter().zip(earlier) {
                let interval = later.since(earlier);
                if interval.count() == 0 {
                    continue;
                }
                let span = Duration::from_nanos(now.0.saturating_sub(then.0));
                let start = Duration::from_nanos(then.0);
                let written = writer.write_histogram(&hdr(&interval), start, span, Tag::new(name));
                written.map_err(|error| io::Error::other(format!("{error:?}")))?;
            }
        }
        before = Some((now, all));
        Ok(())
    };
    let mut written = Ok(());
    tape.play_keys(1, |moment| {
        if written.is_ok() {
            written = add(moment);
        }
    })?;
    written?;
    let last = tape.span().map(|(_, last)| last).filter(|last| tape.keys().last() != Some(last));
    if let Some(moment) = last.map(|last| tape.at(last)).transpose()?.flatten() {
        add(&moment)?;
    }
    drop(writer);
    out.error.map_or(Ok(()), |error| Err(error.into()))
}

/// Keeps the output's error, which the log writer does not return.
struct ErrorCapture<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Write for ErrorCapture<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|error| {
            self.error.get_or_insert(error.kind().into());
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The histograms by name, summed over all silos.
fn histograms(snapshot: &Snapshot) -> Vec<(String, Histogram)> {
    let mut all: Vec<(String, Histogram)> = Vec::new();
    let mut add = |name: &str, histogram: &Histogram| match all.iter_mut().find(|(known, _)| known == name) {
        Some((_, sum)) => sum.merge(histogram),
        None => all.push((name.to_owned(), histogram.clone())),
    };
    for silo in &snapshot.silos {
        add("latency", &silo.latency);
        add("latency_from_submit", &silo.latency_from_submit);
        silo.stages.iter().for_each(|stage| add(stage.name, &stage.time));
    }
    all
}

fn hdr(interval: &Histogram) -> hdrhistogram::Histogram<u64> {
    let mut hdr = hdrhistogram::Histogram::new_with_bounds(1, MAX_NS, 2).expect("an hour with two digits");
    for (top_ns, count) in interval.buckets() {
        hdr.saturating_record_n(top_ns.max(1), count);
    }
    hdr
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use crate::board::{Board, Place, Shape, set};
    use crate::record::tape::{Encoder, FileHead, Head, Kind, Tape, pack};
    use crate::units::{TickRate, Ticks};

    #[test]
    fn a_recording_of_another_program_with_any_start_and_any_order_is_a_log() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        set(&board.header().started_utc_s, u64::MAX);
        let mut encoder = Encoder::new(&board);
        let mut bytes = FileHead::new(shape, TickRate::NANOS, Ticks(0)).bytes();
        for (number, at) in [(0, 9_000), (1, 5_000), (2, 1_000)] {
            board.latency(0).total.record(100);
            let head = Head { number, kind: Kind::Key, at: Ticks(at) };
            bytes.extend(pack(head, &encoder.key(&board, Ticks(at))));
        }
        let mut log = Vec::new();
        super::write(&mut Tape::from_bytes(bytes).unwrap(), &mut log).unwrap();
        let log = String::from_utf8(log).unwrap();
        assert!(log.contains("[StartTime: 0") && log.contains("Tag=latency"), "{log}");
    }
}
