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

/// What `look` finds at `at_ns`; where that is not after `shown_ns`, the next moment.
///
/// # Why a step forward may look farther
/// A moment stands for the time up to the next one. Pictures are about a tenth of a second apart,
/// often a little more, and much more where the recorder had no turn: a step of a tenth would end
/// where it began, and so would each one after it.
pub fn after(shown_ns: u64, at_ns: u64, mut look: impl FnMut(u64) -> Result<Past, String>) -> Result<Past, String> {
    let is_after = |past: &Past| past.pictures.last().is_some_and(|picture| picture.at_ns > shown_ns);
    let step_ns = at_ns.saturating_sub(shown_ns).max(1);
    let (mut before_ns, mut far_ns) = (shown_ns, at_ns);
    let mut past = look(far_ns)?;
    while !is_after(&past) && far_ns < past.to_ns {
        before_ns = far_ns;
        far_ns = shown_ns.saturating_add((far_ns.saturating_sub(shown_ns)).max(step_ns).saturating_mul(2));
        past = look(far_ns)?;
    }
    while far_ns.saturating_sub(before_ns) > step_ns {
        let middle_ns = before_ns.midpoint(far_ns);
        let nearer = look(middle_ns)?;
        if is_after(&nearer) {
            (far_ns, past) = (middle_ns, nearer);
        } else {
            before_ns = middle_ns;
        }
    }
    Ok(past)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Past, after, look};
    use crate::tests::synthetic::{SyntheticFaults, snapshot};
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

    /// Steps of a tenth of a second through pictures that are a little more apart.
    #[test]
    fn steps_forward_lead_through_a_whole_recording() {
        let mut tape = Tape::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).unwrap();
        let (first, last) = tape.span().unwrap();
        let (mut shown_ns, last_ns) = (tape.since_start(first).0, tape.since_start(last).0);
        let mut steps = 0;
        while shown_ns < last_ns {
            let past = after(shown_ns, shown_ns + 100_000_000, |at_ns| look(&mut tape, at_ns, &[])).unwrap();
            let next_ns = past.pictures.last().unwrap().at_ns;
            assert!(next_ns > shown_ns, "it stands at {shown_ns} ns");
            (shown_ns, steps) = (next_ns, steps + 1);
        }
        assert!(steps >= (last_ns - tape.since_start(first).0) / 200_000_000, "{steps} steps");
        let end = after(last_ns, last_ns + 1, |at_ns| look(&mut tape, at_ns, &[])).unwrap();
        assert_eq!(end.pictures.last().unwrap().at_ns, last_ns);
    }

    #[test]
    fn a_step_over_a_gap_ends_at_the_first_moment_behind_it() {
        let mut pictures: Vec<_> = [0, 1, 2].map(|tenths| snapshot(tenths, SyntheticFaults::None)).into();
        let second_ns = 1_000_000_000;
        pictures.iter_mut().zip([0, 9 * second_ns, 9 * second_ns + 150_000_000]).for_each(|(one, at)| one.at_ns = at);
        let look = |at_ns: u64| {
            let upto = pictures.iter().filter(|one| one.at_ns <= at_ns).cloned().collect();
            Ok(Past { pictures: upto, to_ns: 9_150_000_000, ..Past::default() })
        };
        let stepped = |shown_ns, by_ns| after(shown_ns, shown_ns + by_ns, look).unwrap().pictures.last().unwrap().at_ns;
        for by_ns in [1_000_000, 100_000_000] {
            assert_eq!(stepped(0, by_ns), 9 * second_ns);
            assert_eq!(stepped(9 * second_ns, by_ns), 9_150_000_000);
        }
        assert_eq!(stepped(0, 10 * second_ns), 9_150_000_000, "a step of ten seconds is not shortened");
        assert_eq!(stepped(9_150_000_000, 1), 9_150_000_000);
    }
}
