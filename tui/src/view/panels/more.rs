//! Views of one list each: streams, rings, environment, cores, hosts, log, comparison; and their texts
//! when the list is empty.

use super::table::{self, Empty};
use crate::keymap::{Action, Scope};
use crate::model::lists::List;
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Which logical qubit is late, or wrong?
pub fn streams(model: &Model, pen: &mut Pen<'_>) {
    let empty = Empty {
        why: "No stream yet: the engine is starting.",
        fill: "A stream appears with its first shot; --streams N says how many there are.",
    };
    table::view(model, List::Streams, empty, pen);
}

/// Which queue is full, and who empties it?
pub fn rings(model: &Model, pen: &mut Pen<'_>) {
    let empty = Empty {
        why: "No ring yet: the engine is starting.",
        fill: "Rings are created before the first shot; no key is needed.",
    };
    table::view(model, List::Rings, empty, pen);
}

/// What of this machine costs latency?
pub fn environment(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let none = "The machine was not checked at the start: environment: Ignore in the profile.";
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run has no directory, so the results of the start checks are not saved.",
        Some(_) => model.lookups.environment.why_empty("Reading the results of the start checks.", none),
    };
    let empty = Empty { why, fill: "pinwheel check checks this machine at any time, and advises changes." };
    table::view(model, List::Environment, empty, pen);
}

/// Who uses which core?
pub fn cores(model: &Model, pen: &mut Pen<'_>) {
    let why = model.lookups.cores.why_empty("Looking at this machine's cores.", "The system reports no online core.");
    let empty = Empty { why, fill: "pinwheel cores prints the same without a console." };
    table::view(model, List::Cores, empty, pen);
}

/// Which host is up, and who decodes for whom?
pub fn hosts(model: &Model, pen: &mut Pen<'_>) {
    let empty = Empty {
        why: model.lookups.hosts.why_empty("Asking the engine about its hosts.", "The engine names no host."),
        fill: "pinwheel run --hosts FILE shares the streams of a live source with engines of other machines.",
    };
    table::view(model, List::Hosts, empty, pen);
}

/// What happened in this run, and when?
pub fn log(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run has no directory, so its events are not saved.",
        Some(_) => model.lookups.log.why_empty("Reading the run's events.", "Nothing has happened yet."),
    };
    let key = model.keymap.first_key(Scope::Views, Action::Note);
    let fill = format!("Phases, switches, alarms, faults and notes ({key} writes one) are events.");
    let empty = Empty { why, fill: &fill };
    table::view(model, List::Log, empty, pen);
}

/// Who did what, why, and with what effect?
pub fn actions(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let none = "No action on this engine yet.";
    let why = match &picture.snapshot.recorder.run_dir {
        None => "This run has no directory, so its actions are not saved.",
        Some(_) => model.lookups.log.why_empty("Reading the run's actions.", none),
    };
    let fill = "Switches, holds, rates, answers to alarms, moves, silos: from here, by ctl, or by a rule.";
    table::view(model, List::Actions, Empty { why, fill }, pen);
}

/// What is other than at the mark?
pub fn compare(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let key = model.keymap.first_key(Scope::Views, Action::Mark);
    let fill = format!("Press {key} now, or at a recorded moment; then this page compares it with the moment shown.");
    let empty = Empty { why: "No moment is marked for comparison.", fill: &fill };
    let height = pen.height();
    let Some(mark) = &model.mark else { return table::view(model, List::Compare, empty, pen) };
    table::view(model, List::Compare, empty, &mut pen.rows(0, height.saturating_sub(1)));
    let (then_s, now_s) = (mark.snapshot.at_ns as f64 / 1e9, picture.snapshot.at_ns as f64 / 1e9);
    let text = format!("mark at {then_s:.1} s, shown {now_s:.1} s after the start; {key} marks what is shown");
    pen.put(1, height.saturating_sub(1), &text, Tone::Plain);
}
