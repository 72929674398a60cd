//! The past of an engine, from its recording: the pictures around a moment.
//!
//! Owned by a source, on the console thread. Bounds: [`WINDOW`] of pictures at a time. What is asked for outside the recording is answered
//! with its nearest moment.

use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::record::tape::{Tape, TapeError};
use pinwheel_engine::units::Nanos;

/// Pictures before the moment that come with it, for rates and trends.
const WINDOW: Nanos = Nanos(3_000_000_000);

/// A note of the operator: nanoseconds since the engine's start, and its words.
pub type Note = (u64, String);

/// A moment of the past and what led to it.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Pictures, oldest first; the last one is the moment.
    pub pictures: Vec<Snapshot>,
    /// First moment that can be looked at, nanoseconds since the engine's start.
    pub from_ns: u64,
    /// Last moment that can be looked at.
    pub to_ns: u64,
    /// Notes, in time's order.
    pub notes: Vec<Note>,
}

/// The moment at `at_ns` of `tape`, in one sentence why not.
pub fn look(tape: &mut Tape, at_ns: u64, notes: &[Note]) -> Result<Past, String> {
    let said = |error: TapeError| error.to_string();
    let Some((first, last)) = tape.span() else {
        return Err("found no picture in the recording yet, expected one each tenth of a second; try again".to_owned());
    };
    let at = tape.tick_at(Nanos(at_ns)).clamp(first, last);
    let mut pictures = Vec::new();
    let from = tape.tick_at(Nanos(tape.since_start(at).0.saturating_sub(WINDOW.0)));
    tape.play(from, at, |moment| pictures.extend(moment.snapshot().ok().flatten())).map_err(said)?;
    let moment = tape.at(at).map_err(said)?;
    let exact = moment.map(|moment| moment.snapshot()).transpose().map_err(|error| error.to_string())?.flatten();
    // Between two pictures lies a fast sample; on one, it is the picture itself.
    pictures.extend(exact.filter(|exact| pictures.last().is_none_or(|last| last.at_ns < exact.at_ns)));
    let span = (tape.since_start(first).0, tape.since_start(last).0);
    Ok(Past { pictures, from_ns: span.0, to_ns: span.1, notes: notes.to_vec() })
}
