//! The tour: each step ends when its key or effect is seen; in help a key goes on, another one ends it.

use super::Bench;
use crate::keymap::key::Key;
use crate::model::tour::{TourStep, text};
use crate::model::{Overlay, View};
use crate::msg::{Finished, Msg};
use crate::source::{Access, Ownership};
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::widgets::wrap;

impl Bench {
    fn step(&self) -> Option<TourStep> {
        self.model.tour.map(|tour| tour.step)
    }
}

#[test]
fn a_tour_ends_in_the_present_after_six_steps() {
    let mut bench = Bench::new();
    bench.keys(&[Key::Char('?'), Key::Char('t')]);
    assert_eq!((bench.model.view, bench.step()), (View::Overview, Some(TourStep::Path)));
    bench.keys(&[Key::Char('9')]);
    assert_eq!(bench.step(), Some(TourStep::Path), "another view is no progress");
    bench.keys(&[Key::Char('2')]);
    assert_eq!(bench.step(), Some(TourStep::Threads));
    bench.keys(&[Key::Char('3')]);
    assert_eq!(bench.step(), Some(TourStep::Slots));
    bench.keys(&[Key::Char(':')]);
    assert_eq!(bench.step(), Some(TourStep::Fault));
    bench.keys(&"slow-harvest".chars().map(Key::Char).collect::<Vec<_>>());
    bench.keys(&[Key::Enter]);
    assert!(
        matches!(&bench.model.overlay, Some(Overlay::Ask(command)) if command.to_string().contains("slow-harvest"))
    );
    bench.keys(&[Key::Char('y')]);
    bench.data();
    assert_eq!(bench.step(), Some(TourStep::Fault), "alarms from before do not count");
    let later = Some(Box::new(snapshot(600, SyntheticFaults::All)));
    bench.take(Msg::Snapshot { now_ns: bench.now_ns, snapshot: later, finished: Finished::No });
    assert_eq!(bench.step(), Some(TourStep::Cause));
    bench.keys(&[Key::Char('9')]);
    assert_eq!(bench.step(), Some(TourStep::Past));
    bench.keys(&[Key::Char('f'), Key::Char('f')]);
    assert_eq!(bench.step(), Some(TourStep::Past), "a frozen present is not the past");
    bench.keys(&[Key::Char('[')]);
    assert!(bench.model.timeline.is_some());
    bench.keys(&[Key::Char('f')]);
    assert_eq!(bench.step(), None);
    assert!(bench.model.notice.as_ref().unwrap().text.contains("that was the tour"));
}

#[test]
fn in_help_a_key_goes_to_the_next_step_and_another_one_ends_the_tour() {
    let mut bench = Bench::new();
    for step in TourStep::ALL {
        bench.keys(&[Key::Char('?'), Key::Char('t')]);
        assert_eq!(bench.step(), Some(step));
    }
    bench.keys(&[Key::Char('?'), Key::Char('t')]);
    assert_eq!(bench.step(), None);
    bench.keys(&[Key::Char('t')]);
    assert_eq!(bench.step(), Some(TourStep::Path));
    bench.keys(&[Key::Esc]);
    assert_eq!(bench.step(), Some(TourStep::Path), "only in help");
    bench.keys(&[Key::Char('?'), Key::Esc]);
    assert_eq!(bench.step(), None);
    bench.model.ownership = Ownership::Attached { pid: 7, uid: 0, access: Access::Watch };
    assert!(text(&bench.model, TourStep::Fault).contains("this console is read-only"));
}

#[test]
fn each_step_fits_its_rows_in_eighty_columns() {
    let bench = Bench::new();
    for step in TourStep::ALL {
        let text = text(&bench.model, step);
        assert!(wrap::rows(&text, 78, 78).count() <= 4, "{}: {text}", step.heading());
    }
}
