//! Recorded moments: seeking, results, and notes.
//!
//! Pure, on the console thread. Each step requests one moment; the result replaces the frozen scene
//! as a whole.

use super::refusals::refuse_while_watching;
use super::{lists, moves, notice, refused};
use crate::effect::Effect;
use crate::keymap::{Action, End, Scope};
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
    let at_ns = here_ns.saturating_add_signed(by_ms.saturating_mul(MS));
    if by_ms <= 0 {
        return vec![Effect::LookAt(at_ns)];
    }
    if model.frozen.is_none() {
        let back = model.keymap.first_key(Scope::Views, Action::Scrub(-100));
        return refused(model, format!("this is the newest moment; {back} steps back"));
    }
    vec![Effect::LookAfter { shown_ns: here_ns, at_ns }]
}

/// Steps to the first or the last moment.
pub(super) fn to_end(model: &mut Model, end: End) -> Vec<Effect> {
    stop(model);
    match end {
        // The recording shown may be that of the last minutes only: an older one is on the disk.
        End::First => vec![Effect::LookAt(0)],
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
        None => refused(model, "no alarm began before this moment"),
    }
}

/// Plays a replay, or stops it.
pub(super) fn play(model: &mut Model) {
    model.mode = match model.mode {
        Mode::Replay { running_since_ns: None } => Mode::Replay { running_since_ns: Some(model.now_ns) },
        Mode::Replay { .. } => Mode::Replay { running_since_ns: None },
        Mode::Live => {
            let now = model.keymap.first_key(Scope::Views, Action::Freeze);
            notice(model, NoticeKind::Refused, format!("the engine is live; {now} returns to now"));
            Mode::Live
        }
    };
}

fn stop(model: &mut Model) {
    if let Mode::Replay { running_since_ns } = &mut model.mode {
        *running_since_ns = None;
    }
}

/// Advances a playing replay by the time passed since the moment shown.
pub(super) fn run_on(model: &mut Model) -> Vec<Effect> {
    let Mode::Replay { running_since_ns: Some(since_ns) } = model.mode else { return Vec::new() };
    let Some(line) = model.timeline.as_ref() else { return Vec::new() };
    let next_ns = line.at_ns.saturating_add(model.now_ns.saturating_sub(since_ns));
    if next_ns >= line.to_ns {
        stop(model);
    }
    vec![Effect::LookAt(next_ns)]
}

/// Counts the time of a playing replay from `at_ns`, the moment now shown. The time up to a moment
/// that is not reached yet goes on: pictures may be farther apart than two turns.
fn go_on_from(model: &mut Model, at_ns: u64) {
    let before_ns = model.timeline.as_ref().map(|line| line.at_ns);
    if let Mode::Replay { running_since_ns: Some(since_ns) } = &mut model.mode {
        let moved_ns = before_ns.and_then(|before_ns| at_ns.checked_sub(before_ns));
        *since_ns = moved_ns.map_or(model.now_ns, |moved_ns| since_ns.saturating_add(moved_ns).min(model.now_ns));
    }
}

/// Shows a moment that was read as the frozen scene.
pub(super) fn arrived(model: &mut Model, result: Result<Box<Past>, String>) {
    let past = match result {
        Ok(past) => past,
        Err(said) => return notice(model, NoticeKind::Refused, said),
    };
    let Past { pictures, from_ns, to_ns, notes } = *past;
    let at_ns = pictures.last().map_or(from_ns, |picture| picture.at_ns);
    let (mut scene, mut marks) = (Scene::default(), Marks::default());
    for snapshot in pictures {
        let derived = marks.derive(&snapshot);
        scene.history.push(&derived);
        scene.picture = Some(Rc::new(Picture { snapshot, derived, received_ns: model.now_ns }));
    }
    if scene.picture.is_none() {
        return notice(model, NoticeKind::Refused, "nothing was recorded there".to_owned());
    }
    go_on_from(model, at_ns);
    let alarm = lists::alarm_under_cursor(model);
    let since_ns = model.frozen.as_ref().map_or(model.now_ns, |(_, since_ns)| *since_ns);
    model.timeline = Some(Timeline { from_ns, to_ns, at_ns, notes });
    model.frozen = Some((scene, since_ns));
    lists::stay_on_alarm(model, alarm);
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
