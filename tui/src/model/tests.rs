//! Alarms: onset, hold, near.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use super::alarms::{AlarmBook, Condition, HOLD_NS, Level, Rule, Severity, conditions};
use crate::source::synthetic::{Trouble, snapshot};
use std::collections::BTreeSet;

fn condition(level: Level) -> Condition {
    Condition {
        rule: Rule::HeartbeatOld,
        place: (0, 0),
        level,
        severity: Severity::Warning,
        count: None,
        text: "old".to_owned(),
    }
}

#[test]
fn every_rule_fires_in_trouble_and_none_without() {
    let bad = conditions(&snapshot(9, Trouble::All), Some(&snapshot(8, Trouble::All)));
    let rules: BTreeSet<Rule> = bad.iter().map(|condition| condition.rule).collect();
    let all = [
        Rule::RoleDied,
        Rule::HeartbeatOld,
        Rule::DeviceLost,
        Rule::Quarantined,
        Rule::InputHealth,
        Rule::Duplicated,
        Rule::AnswersErrored,
        Rule::HotAllocation,
        Rule::AffinityLost,
        Rule::Clock,
        Rule::Log,
        Rule::Source,
    ];
    assert_eq!(rules, BTreeSet::from(all));
    assert!(conditions(&snapshot(9, Trouble::None), None).is_empty());
}

#[test]
fn errors_that_no_longer_grow_stop_firing() {
    let now = snapshot(9, Trouble::All);
    let firing = |before| conditions(&now, before).iter().any(|c| c.rule == Rule::AnswersErrored);
    assert!(firing(None) && !firing(Some(&now)));
}

#[test]
fn a_condition_that_comes_and_goes_is_one_alarm() {
    let mut book = AlarmBook::default();
    for tenth in 0..20 {
        let seen = if tenth % 2 == 0 { vec![condition(Level::Firing)] } else { Vec::new() };
        book.observe(seen, tenth * 100_000_000);
        assert_eq!(book.active().0, 1);
    }
    assert_eq!((book.alarms()[0].count, book.alarms()[0].onset_ns), (1, 0));
}

#[test]
fn near_keeps_an_alarm_and_raises_none() {
    let mut book = AlarmBook::default();
    book.observe(vec![condition(Level::Near)], 0);
    assert!(book.alarms().is_empty());
    book.observe(vec![condition(Level::Firing)], 1);
    book.observe(vec![condition(Level::Near)], HOLD_NS);
    book.observe(Vec::new(), 2 * HOLD_NS);
    assert_eq!(book.active().0, 1);
    book.observe(Vec::new(), 2 * HOLD_NS + 1);
    assert_eq!((book.active().0, book.alarms().len()), (0, 1));
}

#[test]
fn a_second_episode_has_its_own_onset_and_is_counted() {
    let mut book = AlarmBook::default();
    book.observe(vec![condition(Level::Firing)], 0);
    book.observe(Vec::new(), 2 * HOLD_NS);
    book.observe(vec![condition(Level::Firing)], 3 * HOLD_NS);
    let alarm = &book.alarms()[0];
    assert_eq!((alarm.count, alarm.onset_ns, alarm.active), (2, 3 * HOLD_NS, true));
}

#[test]
fn the_book_is_bounded_and_keeps_what_is_active() {
    let mut book = AlarmBook::default();
    for place in 0..1_000 {
        let mut raised = condition(Level::Firing);
        raised.place = (place, 0);
        book.observe(vec![raised], u64::from(place) * HOLD_NS * 2);
    }
    assert_eq!(book.alarms().len(), super::alarms::ALARMS_MAX);
    assert_eq!(book.alarms()[0].place, (999, 0));
}
