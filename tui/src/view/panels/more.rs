//! Views of one list each: streams, rings, environment, cores, log, comparison. What each says when it is empty.

use super::table::{self, Empty};
use crate::keymap::{Action, Scope};
use crate::model::lists::List;
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Which logical qubit is late, or wrong?
pub fn streams(model: &Model, pen: &mut Pen<'_>) {
    let empty = Empty {
        why: "No stream yet: the engine is in its first phase.",
        fill: "A stream appears with its first shot; --streams N says how many there are.",
    };
    table::view(model, List::Streams, empty, pen);
}

/// Which queue is full, and who empties it?
pub fn rings(model: &Model, pen: &mut Pen<'_>) {
    let empty = Empty {
        why: "No ring yet: the engine is in its first phase.",
        fill: "Rings are made before the first shot; nothing needs to be pressed.",
    };
    table::view(model, List::Rings, empty, pen);
}

/// What of this machine costs latency?
pub fn environment(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let none = "The run's start looked at nothing: environment: Ignore in its profile.";
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run keeps no directory, so what its start found was not kept.",
        Some(_) => model.found.environment.why_empty("Reading what the run's start found of this machine.", none),
    };
    let empty = Empty { why, fill: "pinwheel check looks at this machine at any time, and says what to change." };
    table::view(model, List::Environment, empty, pen);
}

/// Who uses which core?
pub fn cores(model: &Model, pen: &mut Pen<'_>) {
    let why = model.found.cores.why_empty("Looking at this machine's cores.", "No core is online, the system says.");
    let empty = Empty { why, fill: "pinwheel cores prints the same without a console." };
    table::view(model, List::Cores, empty, pen);
}

/// What happened in this run, and when?
pub fn log(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run keeps no directory, so its events are kept nowhere.",
        Some(_) => model.found.log.why_empty("Reading the run's events.", "Nothing has happened yet."),
    };
    let empty = Empty { why, fill: "Phases, switches, alarms, faults and notes (n writes one) are events." };
    table::view(model, List::Log, empty, pen);
}

/// Who did what, why, and with what effect?
pub fn actions(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let none = "Nobody has done anything to this engine yet.";
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run keeps no directory, so its actions are kept nowhere.",
        Some(_) => model.found.log.why_empty("Reading the run's actions.", none),
    };
    let fill = "Switches, holds, rates, answers to alarms, moves, silos: from here, by ctl, or by a rule.";
    table::view(model, List::Actions, Empty { why, fill }, pen);
}

/// What is other than at the mark?
pub fn compare(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let key = model.keymap.first_key(Scope::Views, Action::Mark);
    let fill = format!("Press {key} now, or at a moment of the past; then this page shows both side by side.");
    let empty = Empty { why: "No moment is marked: there is nothing to compare with.", fill: &fill };
    let height = pen.height();
    let Some(mark) = &model.mark else { return table::view(model, List::Compare, empty, pen) };
    table::view(model, List::Compare, empty, &mut pen.rows(0, height.saturating_sub(1)));
    let (then_s, now_s) = (mark.snapshot.at_ns as f64 / 1e9, picture.snapshot.at_ns as f64 / 1e9);
    let text = format!("mark at {then_s:.1} s, shown {now_s:.1} s after the start; {key} marks what is shown");
    pen.put(1, height.saturating_sub(1), &text, Tone::Plain);
}
