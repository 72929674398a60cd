//! The effect of actions, read from the run's recording: whoever took them, whenever this console came.
//!
//! Owned by who looks things up, on the look-up thread: a long recording holds up no key. Bounds: [`EFFECTS_MAX`] actions, the
//! newest; a few seconds of pictures for each, read once. What the recorder has not written yet is read at a later look.

use crate::model::deeds::{AFTER_NS, Facts, Measured, parts};
use crate::model::derived::Marks;
use crate::model::found::Event;
use pinwheel_engine::record::tape::Tape;
use pinwheel_engine::units::Nanos;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most actions whose effect is read.
pub const EFFECTS_MAX: usize = 64;
/// Pictures of so long before a moment, nanoseconds: percentiles and rates are of the last second of them.
const WINDOW_NS: u64 = 1_100_000_000;
/// The picture before an action is older than it by so much at least: an event's clock and a picture's may differ a little.
const CLEAR_NS: u64 = 50_000_000;

/// What was read of a run's recording so far.
#[derive(Default)]
pub struct Effects {
    run: Option<(PathBuf, Tape)>,
    /// By the action's number; those with both sides are not read again.
    known: BTreeMap<u64, Measured>,
}

impl Effects {
    /// The effects of the actions among `events`, each with its action's number, as far as the recording of `run_dir` tells.
    pub fn of(&mut self, run_dir: &Path, events: &[Event]) -> Vec<(u64, Measured)> {
        let Some(tape) = recording(&mut self.run, run_dir) else { return Vec::new() };
        let actions = events.iter().filter(|event| event.event == "operated");
        let actions: Vec<(&Event, u64)> = actions.filter_map(|event| Some((event, event.at_ns?))).collect();
        let mut known = BTreeMap::new();
        for (place, (event, at_ns)) in actions.iter().enumerate().skip(actions.len().saturating_sub(EFFECTS_MAX)) {
            // What nobody did (a drill that ends) is part of the effect of what somebody did.
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

/// The recording of `run_dir` as it stands now; `None`: there is none.
fn recording<'a>(run: &'a mut Option<(PathBuf, Tape)>, run_dir: &Path) -> Option<&'a mut Tape> {
    if run.as_ref().is_none_or(|(dir, _)| dir != run_dir) {
        *run = Some((run_dir.to_owned(), Tape::open(run_dir).ok()?));
    }
    let (_, tape) = run.as_mut()?;
    tape.refresh().ok()?;
    Some(tape)
}

/// Before and after an action at `at_ns`; `None`: nothing of before it was recorded. Where another action at `next_ns` came
/// before its effect could be read there is none.
fn effect(tape: &mut Tape, what: &str, at_ns: u64, next_ns: Option<u64>) -> Option<Measured> {
    let before = facts(tape, at_ns.saturating_sub(CLEAR_NS))?;
    let after_ns = at_ns.saturating_add(AFTER_NS);
    let is_recorded = tape.span().is_some_and(|(_, to)| tape.since_start(to) >= Nanos(after_ns));
    let is_its_own = next_ns.is_none_or(|next_ns| next_ns >= after_ns);
    let after = if is_recorded && is_its_own { facts(tape, after_ns) } else { None };
    Some(Measured { at_ns, what: what.to_owned(), before, after })
}

/// The second up to the last picture at or before `to_ns`.
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
