//! What a screen says must not read as something else: values, names and states that were misread.

use super::{COLOUR, MONO, drawn, keys, text, watched};
use crate::keymap::key::Key;
use crate::model::lookups::{LookupResult, Point};
use crate::model::{Model, View};
use crate::msg::{Finished, Msg};
use crate::source::{Access, Offer, Ownership};
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::update::update;
use pinwheel_engine::board::snapshot::{SlotState, Snapshot};
use pinwheel_engine::profile::OnHangup;
use pinwheel_engine::roles::SiloState;

/// The screen of a view after a picture that `change` has changed.
fn seen(size: (u16, u16), view: char, change: impl FnOnce(&mut Snapshot)) -> String {
    let mut model = watched(COLOUR, size, SyntheticFaults::None);
    let mut changed = snapshot(21, SyntheticFaults::None);
    change(&mut changed);
    let snapshot = Some(Box::new(changed));
    update(&mut model, Msg::Snapshot { now_ns: 2_100_000_000, snapshot, finished: Finished::No });
    model.notice = None;
    keys(&mut model, &[Key::Char(view)]);
    text(&drawn(&model))
}

fn row<'a>(screen: &'a str, word: &str) -> &'a str {
    screen.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word}: {screen}"))
}

#[test]
fn shots_that_wait_for_harvest_are_in_the_path() {
    let screen = seen((80, 24), '1', |snapshot| {
        for slot in &mut snapshot.silos[0].slots {
            slot.state = SlotState::Completed;
            slot.times.submitted_ns = snapshot.at_ns - 1_500_000_000;
        }
    });
    assert!(row(&screen, "overview:").contains("in path, oldest 1.5s"), "{screen}");
    assert!(row(&screen, " completed ").contains("oldest 1.5s: slot 0, harvest"), "{screen}");
}

#[test]
fn a_silo_that_does_not_run_is_not_shown_as_online() {
    for (state, word) in [(SiloState::Dead, "dead"), (SiloState::Draining, "draining")] {
        let screen = seen((80, 24), '1', |snapshot| {
            snapshot.silos[0].lifecycle.state = state;
            snapshot.silos[0].lifecycle.age_ns = 24_000_000_000;
        });
        let title = row(&screen, "─ silo 0");
        assert!(title.contains(&format!("{word} 24s")) && !title.contains("device online"), "{title}");
        let screen = seen((80, 24), '1', |snapshot| {
            let mut other = snapshot.silos[0].clone();
            (other.id, other.lifecycle.state) = (1, state);
            other.lifecycle.age_ns = 24_000_000_000;
            snapshot.silos.push(other);
        });
        assert!(row(&screen, " silo 1 ").contains(&format!("{word} 24s")), "{screen}");
    }
}

#[test]
fn without_a_device_nothing_is_shown_of_one() {
    let without = |view| {
        seen((200, 60), view, |snapshot| {
            snapshot.engine.device = "none".to_owned();
            for silo in &mut snapshot.silos {
                silo.workers.clear();
                (silo.counters.launched, silo.counters.worker_waits, silo.counters.completed) = (0, 0, 0);
            }
        })
    };
    let overview = without('1');
    assert!(overview.contains("● no device") && overview.contains("  no device  "), "{overview}");
    assert!(overview.contains("frames waited: ") && overview.contains("0 queue "), "{overview}");
    for of_device in ["device online", "launches", "for a worker", "0/0", "0 device "] {
        assert!(!overview.contains(of_device), "{of_device}: {overview}");
    }
    let workers = without('4');
    assert!(workers.contains("This silo has no device: its decode workers predecode."), "{workers}");
    assert!(!workers.contains("in quarantine"), "{workers}");
}

#[test]
fn a_role_that_ended_with_its_silo_did_not_panic() {
    let screen = seen((80, 24), '2', |snapshot| snapshot.threads[0].roles[0].died_frame = Some(5_094_112));
    assert!(screen.contains("feed 0 of silo 0 ended with its silo") && !screen.contains("panicked"), "{screen}");
}

#[test]
fn a_held_or_silent_engine_says_so_before_whose_it_is() {
    let mut model = watched(COLOUR, (80, 24), SyntheticFaults::All);
    model.ownership = Ownership::Attached { pid: 4_194_303, uid: 0, access: Access::Watch };
    let mut silent = snapshot(21, SyntheticFaults::All);
    silent.threads.iter_mut().for_each(|thread| thread.heartbeat_age_ns = 3_200_000_000);
    let snapshot = Some(Box::new(silent));
    update(&mut model, Msg::Snapshot { now_ns: 2_100_000_000, snapshot, finished: Finished::No });
    let screen = text(&drawn(&model));
    assert!(screen.lines().next().unwrap().contains("SILENT 3.2s"), "{screen}");
    let what = row(&screen, "no hot thread of process 4194303 has run for 3.2s");
    assert!(!what.contains(';') && screen.contains("pinwheel dump 4194303 does"), "{screen}");
    keys(&mut model, &[Key::Char('f')]);
    update(&mut model, Msg::Lost("process 4194303 is gone".to_owned()));
    let screen = text(&drawn(&model));
    assert!(screen.lines().next().unwrap().contains("GONE"), "{screen}");
}

#[test]
fn profiles_whose_names_begin_alike_are_told_apart() {
    for open in ['5', 'p'] {
        let mut model = watched(COLOUR, (80, 24), SyntheticFaults::None);
        let mut offers: Vec<Offer> = model.offers.clone().unwrap();
        for (offer, name) in offers.iter_mut().zip(["cryostat_north_a", "cryostat_north_b"]) {
            offer.name = name.to_owned();
        }
        keys(&mut model, &[Key::Char(open)]);
        update(&mut model, Msg::Offers(offers));
        let screen = text(&drawn(&model));
        assert!(screen.contains("1 cryostat_north_a ") && screen.contains("2 cryostat_north_b "), "{screen}");
    }
}

#[test]
fn a_long_address_and_a_long_number_are_not_run_into_the_next_column() {
    let address = "[2001:db8:85a3::8a2e:370:7334]:54321";
    let screen = seen((120, 40), '8', |snapshot| {
        snapshot.sources = super::snapshot(21, SyntheticFaults::All).sources;
        let source = &mut snapshot.sources[0];
        source.peers[0].address = address.to_owned();
        source.streams[0].accepted_last = 12_345_678_901;
    });
    assert!(screen.contains(&format!("{address}  ")), "{screen}");
    let stream = screen.lines().skip_while(|line| !line.contains("taken  ")).nth(1).unwrap();
    assert_eq!(stream.split_whitespace().nth(4), Some("…45678901"), "{stream}");
}

/// A chart of one point with these rates of late and wrong answers.
fn charted(late: f64, errored: f64) -> String {
    let mut model = watched(MONO, (80, 24), SyntheticFaults::None);
    keys(&mut model, &[Key::Char('w')]);
    let point = Point { from_ns: 0, to_ns: 10_000_000_000, answered: 100.0, late, errored, latency: None, backlog: 0 };
    update(&mut model, Msg::LookedUp(LookupResult::Chart(Ok((vec![point], (0, 10_000_000_000))))));
    assert_eq!(model.view, View::Chart);
    text(&drawn(&model))
}

#[test]
fn a_curve_of_late_answers_and_errors_is_named_after_both() {
    let screen = charted(30.0, 12.0);
    assert!(screen.contains("late 30/s  errors 12/s"), "{screen}");
    let label = screen.lines().position(|line| line.starts_with(" late+err/s")).unwrap();
    assert!(screen.lines().nth(label + 1).unwrap().starts_with(" 42"), "{screen}");
}

#[test]
fn rates_below_one_a_second_are_not_zero_in_the_chart() {
    let screen = charted(0.2, 0.01);
    assert!(screen.contains("late 0.2/s  errors 1.0e-2/s"), "{screen}");
    assert!(screen.lines().any(|line| line.starts_with(" 0.2 ")), "{screen}");
    assert!(charted(0.0, 0.0).contains("late 0/s  errors 0/s"));
}

#[test]
fn a_largest_value_of_nothing_is_not_zero() {
    let screen = charted(0.0, 0.0);
    let label = screen.lines().position(|line| line.starts_with(" p99.9")).unwrap();
    assert!(screen.lines().nth(label + 1).unwrap().starts_with(" – "), "{screen}");
    let mut model = Model::new(COLOUR, (80, 24), OnHangup::Detach);
    let snapshot = Some(Box::new(snapshot(1, SyntheticFaults::None)));
    update(&mut model, Msg::Snapshot { now_ns: 1, snapshot, finished: Finished::No });
    let screen = text(&drawn(&model));
    for trend in ["\n answered  ", "\n p99.9  "] {
        let row = screen.split_once(trend).unwrap().1.lines().next().unwrap();
        assert_eq!(row.trim(), "–", "{screen}");
    }
}

#[test]
fn help_names_the_percentiles_that_are_not_of_the_last_second() {
    let mut model = watched(COLOUR, (200, 200), SyntheticFaults::None);
    keys(&mut model, &[Key::Char('?')]);
    let screen = text(&drawn(&model));
    assert!(screen.contains("since the start: percentiles of streams"), "{screen}");
}

/// The rows of help below its title.
fn help_rows(model: &Model) -> String {
    text(&drawn(model)).lines().skip(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn help_is_read_to_its_end_and_a_step_back_moves_it_at_once() {
    for size in [(40, 10), (80, 24), (120, 40), (200, 60)] {
        let mut model = watched(COLOUR, size, SyntheticFaults::None);
        model.notice = None;
        keys(&mut model, &[Key::Char('?'), Key::End]);
        let end = help_rows(&model);
        assert!(end.contains("a second"), "{size:?}: {end}");
        keys(&mut model, &[Key::Down]);
        assert_eq!(help_rows(&model), end);
        keys(&mut model, &[Key::Up]);
        assert_ne!(help_rows(&model), end, "{size:?}: the first step back moves the page");
    }
}

#[test]
fn a_step_back_from_the_last_lines_of_the_arbiter_moves_them_at_once() {
    let mut model = watched(COLOUR, (80, 24), SyntheticFaults::All);
    model.notice = None;
    keys(&mut model, &[Key::Char('7'), Key::End]);
    let end = text(&drawn(&model));
    assert!(!end.contains("more lines below"), "{end}");
    keys(&mut model, &[Key::Up]);
    assert_ne!(text(&drawn(&model)), end);
}

#[test]
fn a_sentence_in_letters_of_two_columns_is_wrapped_and_not_cut() {
    let sentence: String = ('一'..).take(60).collect();
    let screen = seen((80, 24), '9', |snapshot| {
        *snapshot = super::snapshot(21, SyntheticFaults::All);
        snapshot.alarms.iter_mut().for_each(|alarm| alarm.sentence.clone_from(&sentence));
    });
    // The buffer has a blank cell after each of these letters.
    let details = screen.split_once("judged after").unwrap().0.replace(' ', "");
    assert!(details.replace('\n', "").contains(&sentence), "{screen}");
}

#[test]
fn where_no_profile_is_listed_the_view_says_why() {
    let attached = Ownership::Attached { pid: 7, uid: 0, access: Access::Watch };
    for (ownership, is_replay, why) in [
        (Ownership::Own, true, "no engine runs"),
        (Ownership::OtherHost("lab2".to_owned()), false, "pinwheel ctl --host lab2"),
        (attached, false, "has not said which one is in force"),
    ] {
        let mut model = watched(MONO, (80, 24), SyntheticFaults::None);
        update(&mut model, Msg::Offers(Vec::new()));
        (model.ownership, model.notice) = (ownership, None);
        if is_replay {
            update(&mut model, Msg::Replay(0));
        }
        keys(&mut model, &[Key::Char('5')]);
        assert!(text(&drawn(&model)).contains(why), "{}", text(&drawn(&model)));
        keys(&mut model, &[Key::Char('p')]);
        assert!(text(&drawn(&model)).contains(why));
    }
}
