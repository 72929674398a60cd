//! Recorded moments: seeking, results, and notes.
//!
//! Pure, on the console thread. Each step requests one moment; the result replaces the frozen scene
//! as a whole.

use super::refusals::refuse_while_watching;
use super::{moves, notice};
use crate::effect::Effect;
use crate::keymap::End;
use crate::model::derived::Marks;
use crate::model::{Mode, Model, NoticeKind, Overlay, Picture, Scene, Timeline};
use crate::source::past::Past;
use std::rc::Rc;

const MS: i64 = 1_000_000;

/// The moment shown, nanoseconds after the engine's start.
fn here(model: &Model) -> Option<u64> {
    model.picture().map(|picture| picture.snapshot.at_ns)
}

/// Steps by `ms` milliseconds.
pub(super) fn scrub(model: &mut Model, by_ms: i64) -> Vec<Effect> {
    stop(model);
    let Some(here_ns) = here(model) else { return Vec::new() };
    let asked = here_ns.saturating_add_signed(by_ms.saturating_mul(MS));
    if model.frozen.is_none() && by_ms > 0 {
        notice(model, NoticeKind::Refused, "this is the newest moment; [ steps back".to_owned());
        return Vec::new();
    }
    vec![Effect::LookAt(clamped(model, asked))]
}

fn clamped(model: &Model, at_ns: u64) -> u64 {
    match &model.timeline {
        // A live recording grows: only its beginning bounds the step.
        Some(line) if model.is_replay() => at_ns.clamp(line.from_ns, line.to_ns.max(line.from_ns)),
        Some(line) => at_ns.max(line.from_ns.min(at_ns)),
        None => at_ns,
    }
}

/// Steps to the first or the last moment.
pub(super) fn to_end(model: &mut Model, end: End) -> Vec<Effect> {
    stop(model);
    match end {
        End::First => vec![Effect::LookAt(model.timeline.as_ref().map_or(0, |line| line.from_ns))],
        End::Last => vec![Effect::LookAt(u64::MAX / 64)],
    }
}

/// Steps to the last alarm onset before the moment shown.
pub(super) fn to_onset(model: &mut Model) -> Vec<Effect> {
    stop(model);
    let Some(here_ns) = here(model) else { return Vec::new() };
    let pictures = [model.picture(), model.live.picture.as_deref()];
    let onsets = pictures.into_iter().flatten().flat_map(|picture| &picture.snapshot.alarms);
    let onsets = onsets.flat_map(|alarm| [alarm.first_ns, alarm.onset_ns]);
    // A sample lies a little before or after its onset: skip the onset of the moment shown.
    match onsets.filter(|onset_ns| onset_ns.saturating_add(2 * MS.unsigned_abs()) < here_ns).max() {
        Some(onset_ns) => vec![Effect::LookAt(onset_ns)],
        None => {
            notice(model, NoticeKind::Refused, "no alarm began before this moment".to_owned());
            Vec::new()
        }
    }
}

/// Plays a replay, or stops it.
pub(super) fn play(model: &mut Model) {
    model.mode = match model.mode {
        Mode::Replay { running_since_ns: None } => Mode::Replay { running_since_ns: Some(model.now_ns) },
        Mode::Replay { .. } => Mode::Replay { running_since_ns: None },
        Mode::Live => {
            notice(model, NoticeKind::Refused, "the engine is live; f returns to now".to_owned());
            Mode::Live
        }
    };
}

fn stop(model: &mut Model) {
    if let Mode::Replay { running_since_ns } = &mut model.mode {
        *running_since_ns = None;
    }
}

/// Advances a playing replay by the time passed.
pub(super) fn run_on(model: &mut Model) -> Vec<Effect> {
    let Mode::Replay { running_since_ns: Some(since_ns) } = model.mode else { return Vec::new() };
    let Some(line) = model.timeline.as_ref() else { return Vec::new() };
    let next_ns = line.at_ns.saturating_add(model.now_ns.saturating_sub(since_ns));
    let is_over = next_ns >= line.to_ns;
    model.mode = Mode::Replay { running_since_ns: (!is_over).then_some(model.now_ns) };
    vec![Effect::LookAt(next_ns)]
}

/// Shows a moment that was read as the frozen scene.
pub(super) fn arrived(model: &mut Model, result: Result<Box<Past>, String>) {
    let past = match result {
        Ok(past) => past,
        Err(said) => return notice(model, NoticeKind::Refused, said),
    };
    let Past { pictures, from_ns, to_ns, notes } = *past;
    let asked_ns = pictures.last().map_or(from_ns, |picture| picture.at_ns);
    let (mut scene, mut marks) = (Scene::default(), Marks::default());
    for snapshot in pictures {
        let derived = marks.derive(&snapshot);
        scene.history.push(&derived);
        scene.picture = Some(Rc::new(Picture { snapshot, derived, received_ns: model.now_ns }));
    }
    if scene.picture.is_none() {
        return notice(model, NoticeKind::Refused, "nothing was recorded there".to_owned());
    }
    let since_ns = model.frozen.as_ref().map_or(model.now_ns, |(_, since_ns)| *since_ns);
    model.timeline = Some(Timeline { from_ns, to_ns, at_ns: asked_ns, notes });
    model.frozen = Some((scene, since_ns));
    moves::clamp(model);
}

/// Opens the input of a note.
pub(super) fn begin_note(model: &mut Model) {
    if model.is_replay() {
        let said = "a recording takes no notes; make them while the engine runs".to_owned();
        return notice(model, NoticeKind::Refused, said);
    }
    if !refuse_while_watching(model, "note") {
        model.overlay = Some(Overlay::Note(String::new()));
    }
}
