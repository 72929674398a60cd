//! The effects of actions, read from the run's recording: those of every author, also before this
//! console started.
//!
//! Owned by the look-up state, on the look-up thread: a long recording delays no key. Bounds:
//! [`EFFECTS_MAX`] newest actions; a few seconds of pictures for each, read once. Pictures that the
//! recorder has not written yet are read at a later look-up.

use crate::model::derived::Marks;
use crate::model::lookups::Event;
use crate::model::measured::{AFTER_NS, Facts, Measured, parts};
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most actions whose effect is read.
pub const EFFECTS_MAX: usize = 64;
/// Length of the pictures read before a moment, nanoseconds: percentiles and rates cover their last
/// second.
const WINDOW_NS: u64 = 1_100_000_000;
/// Least age of the picture before an action, at the action: an event's clock and a picture's may
/// differ a little.
const CLEAR_NS: u64 = 50_000_000;

/// The recording of the run shown, kept open between look-ups.
#[derive(Default)]
pub struct OpenRecording(Option<(PathBuf, Tape)>);

impl OpenRecording {
    /// The recording of `run_dir` as it is now; `None`: there is none.
    pub fn of(&mut self, run_dir: &Path) -> Option<&mut Tape> {
        if self.0.as_ref().is_none_or(|(dir, _)| dir != run_dir) {
            self.0 = Some((run_dir.to_owned(), Tape::open(run_dir).ok()?));
        }
        let (_, tape) = self.0.as_mut()?;
        tape.refresh().ok()?;
        Some(tape)
    }
}

/// Results from a run's recording so far.
#[derive(Default)]
pub struct Effects {
    /// By the action's number; complete effects are not read again.
    known: BTreeMap<u64, Measured>,
}

impl Effects {
    /// The effects of the actions among `events`, by action number, as far as the recording of
    /// `run_dir` has them.
    pub fn of(&mut self, recording: &mut OpenRecording, run_dir: &Path, events: &[Event]) -> Vec<(u64, Measured)> {
        let Some(tape) = recording.of(run_dir) else { return Vec::new() };
        let actions = events.iter().filter(|event| event.event == "operated");
        let actions: Vec<(&Event, u64)> = actions.filter_map(|event| Some((event, event.at_ns?))).collect();
        let mut known = BTreeMap::new();
        for (place, (event, at_ns)) in actions.iter().enumerate().skip(actions.len().saturating_sub(EFFECTS_MAX)) {
            // Actions without an author (the end of a drill) are part of the effect of the
            // operator's action.
            let next = actions[place + 1..].iter().find(|(event, _)| !parts(&event.text).1.is_empty());
            let next_ns = next.map(|(_, at_ns)| *at_ns);
            let read = self.known.remove(&event.number).filter(|measured| measured.after.is_some());
            if let Some(measured) = read.or_else(|| effect(tape, &event.text, *at_ns, next_ns)) {
                known.insert(event.number, measured);
            }
        }
        self.known.clone_from(&known);
        known.into_iter().collect()
    }
}

/// Figures before and after an action at `at_ns`; `None`: nothing before it was recorded. There is
/// no figure after it if another action at `next_ns` came before the measurement.
fn effect(tape: &mut Tape, what: &str, at_ns: u64, next_ns: Option<u64>) -> Option<Measured> {
    let before = facts(tape, at_ns.saturating_sub(CLEAR_NS))?;
    let after_ns = at_ns.saturating_add(AFTER_NS);
    let is_recorded = tape.span().is_some_and(|(_, to)| tape.since_start(to) >= Nanos(after_ns));
    let is_its_own = next_ns.is_none_or(|next_ns| next_ns >= after_ns);
    let after = if is_recorded && is_its_own { facts(tape, after_ns) } else { None };
    Some(Measured { at_ns, what: what.to_owned(), before, after })
}

/// Figures of the second up to the last picture at or before `to_ns`.
fn facts(tape: &mut Tape, to_ns: u64) -> Option<Facts> {
    let (from, to) = (tape.tick_at(Nanos(to_ns.saturating_sub(WINDOW_NS))), tape.tick_at(Nanos(to_ns)));
    let (mut marks, mut derived) = (Marks::default(), None);
    let read = tape.play(from, to, |moment| {
        if let Ok(Some(snapshot)) = moment.snapshot() {
            derived = Some(marks.derive(&snapshot));
        }
    });
    read.ok()?;
    derived.map(|derived| Facts::of(&derived))
}
