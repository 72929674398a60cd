//! The tour for newcomers: six steps through the console, on the engine that it shows.
//!
//! Pure, on the console thread. A step is done when its key or its effect is seen in the model, so a
//! user who takes another way comes to the same end.

use super::{Model, NoticeKind, Overlay, View};
use crate::keymap::{Action, Scope, Step};
use pinwheel_engine::profile::RuleId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TourStep {
    Path,
    Threads,
    Slots,
    Fault,
    Cause,
    Past,
}

impl TourStep {
    /// All, in their order.
    pub const ALL: [TourStep; 6] =
        [TourStep::Path, TourStep::Threads, TourStep::Slots, TourStep::Fault, TourStep::Cause, TourStep::Past];

    pub fn heading(self) -> &'static str {
        match self {
            TourStep::Path => "the path of a shot",
            TourStep::Threads => "the threads",
            TourStep::Slots => "the slots",
            TourStep::Fault => "a fault on purpose",
            TourStep::Cause => "its cause",
            TourStep::Past => "the past",
        }
    }
}

/// A tour under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tour {
    pub step: TourStep,
    /// When the step began, nanoseconds since the engine's start.
    since_ns: u64,
    /// Whether a moment of the past was shown in this step.
    has_seen_past: bool,
}

/// Said at the end.
const END: &str = "that was the tour; help has the keys of every view";

impl Tour {
    /// Step `step` of a tour, from now on.
    fn at(step: TourStep, model: &Model) -> Tour {
        let live = model.live.picture.as_ref();
        Tour { step, since_ns: live.map_or(0, |picture| picture.snapshot.at_ns), has_seen_past: false }
    }

    /// The number of its step, from 1.
    pub fn number(self) -> usize {
        TourStep::ALL.iter().position(|step| *step == self.step).unwrap_or(0) + 1
    }
}

/// Begins the tour in the overview, or goes to its next step. Returns what to say at its end.
pub fn go_on(model: &mut Model) -> Option<(NoticeKind, String)> {
    let Some(tour) = model.tour else {
        model.tour = Some(Tour::at(TourStep::Path, model));
        model.view = View::Overview;
        return None;
    };
    model.tour = TourStep::ALL.get(tour.number()).map(|step| Tour::at(*step, model));
    model.tour.is_none().then(|| (NoticeKind::Done, END.to_owned()))
}

/// Goes to the next step if this one is done. Returns what to say at the end of the tour.
pub fn follow(model: &mut Model) -> Option<(NoticeKind, String)> {
    let tour = model.tour.as_mut()?;
    tour.has_seen_past |= model.timeline.is_some();
    let tour = *tour;
    let is_done = match tour.step {
        TourStep::Path => model.view == View::Threads,
        TourStep::Threads => model.view == View::Slots,
        TourStep::Slots => matches!(model.overlay, Some(Overlay::Palette(_))),
        TourStep::Fault => model.live.picture.as_ref().is_some_and(|picture| {
            let is_of_drill = |rule: &str| [RuleId::LateAnswers.name(), RuleId::Backlog.name()].contains(&rule);
            picture.snapshot.alarms.iter().any(|alarm| alarm.onset_ns >= tour.since_ns && is_of_drill(alarm.rule))
        }),
        TourStep::Cause => model.view == View::Alarms && model.overlay.is_none(),
        TourStep::Past => tour.has_seen_past && model.frozen.is_none(),
    };
    if is_done { go_on(model) } else { None }
}

/// The text of a step, with the user's own keys.
pub fn text(model: &Model, step: TourStep) -> String {
    let key = |action| model.keymap.first_key(Scope::Views, action);
    match step {
        TourStep::Path => format!(
            "Each shot goes through feed, dispatch, device, poll, graph, decode and harvest. This view has their rates \
             and times, and how many shots are answered, late or lost. Press {} for the threads that do the work.",
            key(Action::Show(View::Threads))
        ),
        TourStep::Threads => format!(
            "Each row is a thread with its core, its roles, the age of its heartbeat and its longest gap. {} moves the \
             cursor, and the details follow. Press {} for the slots, in which shots wait.",
            key(Action::Move(Step::Down)),
            key(Action::Show(View::Slots))
        ),
        TourStep::Slots => format!(
            "Each cell is a slot, and its letter says where its shot is. The cursor is on the shot that has waited \
             longest; the details name what it waits for. Press {} to find a command by name.",
            key(Action::Palette)
        ),
        TourStep::Fault if model.is_replay() || model.is_watching() => {
            let what = if model.is_replay() { "shows a recording" } else { "is read-only" };
            format!(
                "A fault can be provoked on purpose, but not here: this console {what}. Take the tour once more beside \
                 pinwheel run, or go on: {} {}.",
                key(Action::Show(View::Help)),
                model.keymap.first_key(Scope::Help, Action::Tour)
            )
        }
        TourStep::Fault => format!(
            "Write slow-harvest after {} to find a drill; enter asks, and y runs it. Harvest then takes 3 ms for each \
             batch, for two seconds, and the watchdog has to find out why answers are late.",
            key(Action::Palette)
        ),
        TourStep::Cause => format!(
            "The header counts what is wrong. Press {} for what it is, since when, and why: the sentence has the cause \
             with its numbers, and {} follows it to the thread.",
            key(Action::Show(View::Alarms)),
            key(Action::Follow)
        ),
        TourStep::Past => format!(
            "Everything is recorded. {} shows the moment at which the alarm began; {} and {} step by a tenth of a \
             second in every view. {} returns to the present, and the tour ends.",
            key(Action::ToOnset),
            key(Action::Scrub(-100)),
            key(Action::Scrub(100)),
            key(Action::Freeze)
        ),
    }
}
