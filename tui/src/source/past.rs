//! The past of an engine, from its recording: the pictures before a moment.
//!
//! Owned by a source, on the console thread. Bounds: [`WINDOW`] of pictures at a time. A time
//! outside the recording is clamped to it.

use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::record::tape::{Tape, TapeError};
use pinwheel_engine::units::Nanos;

/// Length of the pictures before the moment, for rates and trends.
const WINDOW: Nanos = Nanos(3_000_000_000);

/// A note of the operator: nanoseconds since the engine's start, and its text.
pub type Note = (u64, String);

/// A recorded moment and the pictures before it.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Pictures, oldest first; the last one is the moment.
    pub pictures: Vec<Snapshot>,
    /// First recorded moment, nanoseconds since the engine's start.
    pub from_ns: u64,
    /// Last recorded moment, nanoseconds since the engine's start.
    pub to_ns: u64,
    /// Notes, in order of time.
    pub notes: Vec<Note>,
}

/// The moment at `at_ns` of `tape`, or an error in one sentence.
pub fn look(tape: &mut Tape, at_ns: u64, notes: &[Note]) -> Result<Past, String> {
    let said = |error: TapeError| error.to_string();
    let Some((first, last)) = tape.span() else {
        return Err("the recording has no picture yet; it gets one each tenth of a second, so try again".to_owned());
    };
    // A tick is shorter than a nanosecond, so the time of the last snapshot names a tick before it.
    let is_last = at_ns >= tape.since_start(last).0;
    let at = if is_last { last } else { tape.tick_at(Nanos(at_ns)).clamp(first, last) };
    let mut pictures = Vec::new();
    let from = tape.tick_at(Nanos(tape.since_start(at).0.saturating_sub(WINDOW.0)));
    let board = tape.board().map_err(|error| error.to_string())?;
    tape.play(from, at, |moment| pictures.extend(moment.snapshot_on(&board))).map_err(said)?;
    let exact = tape.at(at).map_err(said)?.and_then(|moment| moment.snapshot_on(&board));
    // Between two pictures a fast sample is added; at a picture, the sample is that picture.
    pictures.extend(exact.filter(|exact| pictures.last().is_none_or(|last| last.at_ns < exact.at_ns)));
    let span = (tape.since_start(first).0, tape.since_start(last).0);
    Ok(Past { pictures, from_ns: span.0, to_ns: span.1, notes: notes.to_vec() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::look;
    use pinwheel_engine::record::tape::Tape;
    use std::path::Path;

    /// It alone has all words: those before it lack histograms and slots.
    #[test]
    fn the_end_of_a_recording_is_its_last_snapshot() {
        let mut tape = Tape::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).unwrap();
        let last_ns = tape.since_start(tape.span().unwrap().1).0;
        for at_ns in [last_ns, last_ns + 1, u64::MAX] {
            assert_eq!(look(&mut tape, at_ns, &[]).unwrap().pictures.last().unwrap().at_ns, last_ns);
        }
        assert!(look(&mut tape, last_ns - 1_000, &[]).unwrap().pictures.last().unwrap().at_ns < last_ns);
    }
}
