//! Alarms: which are unacknowledged, which merely active, and their order among the run's events.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use super::alarms::{
    AlarmRows, IncidentCounts, events, incident_counts, incident_look, place, place_of, severity_look, stood_for,
};
use super::derived::Marks;
use super::lookups::{LookedUp, LookupResult};
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::theme::Tone;
use pinwheel_engine::board::alarms::AlarmState;
use pinwheel_engine::board::snapshot::{AlarmView, PairView, Snapshot};
use pinwheel_engine::profile::Severity;

/// As in a recording, which has the gaps of a thread in every second snapshot.
#[test]
fn a_snapshot_without_the_gaps_of_a_thread_has_the_silence_of_the_one_before() {
    let (mut marks, mut silences) = (Marks::default(), Vec::new());
    let gaps = [20, 21, 21, 22, 22].map(|step| snapshot(step, SyntheticFaults::None).threads[0].frame_gap.clone());
    for (step, gaps) in (20..).zip(gaps) {
        let mut picture = snapshot(step, SyntheticFaults::None);
        (picture.threads[0].frame_gap, picture.threads[0].heartbeat_age_ns) = (gaps, 0);
        silences.push(marks.derive(&picture).threads[0].silence_ns);
    }
    assert!(silences[1] > 0 && silences[3] > 0, "{silences:?}");
    assert_eq!((silences[2], silences[4]), (silences[1], silences[3]), "{silences:?}");
}

#[test]
fn a_note_never_calls_and_an_acknowledged_or_snoozed_alarm_holds_without_calling() {
    let mut picture = snapshot(20, SyntheticFaults::All);
    let all = incident_counts(&picture);
    assert_eq!(all.worst, Some(Severity::Critical));
    assert!(all.calling > 1 && all.active == all.calling);
    let worst = picture.alarms.iter().position(|alarm| alarm.severity == Severity::Critical).unwrap();
    picture.alarms[worst].acknowledged_ns = Some(1);
    // What it explains still calls.
    assert_eq!(incident_counts(&picture).calling, all.calling);
    for number in stood_for(&picture, &picture.alarms[worst], AlarmRows::Incidents) {
        let alarm = picture.alarms.iter_mut().find(|alarm| alarm.number == number).unwrap();
        alarm.acknowledged_ns = Some(1);
    }
    let less = incident_counts(&picture);
    assert_eq!((less.calling, less.active, less.worst), (all.calling - 1, all.active, Some(Severity::Warn)));
    for alarm in &mut picture.alarms {
        alarm.snoozed_until_ns = Some(picture.at_ns + 1);
    }
    let none = incident_counts(&picture);
    assert_eq!((none.calling, none.active, none.worst), (0, all.active, Some(Severity::Critical)));
    assert_eq!(incident_counts(&snapshot(20, SyntheticFaults::None)), IncidentCounts::default());
    assert_eq!(place(&picture.alarms[worst]), "silo 0");
}

#[test]
fn an_incident_of_which_only_a_note_is_active_looks_like_a_note() {
    let mut picture = snapshot(20, SyntheticFaults::All);
    let incident = picture.incidents.iter().find(|incident| !incident.consequences.is_empty()).unwrap().clone();
    let of_it = |alarm: &&mut AlarmView| alarm.incident == incident.number;
    assert_eq!(incident_look(&incident, &picture).1, Tone::Bad);
    for (place, alarm) in picture.alarms.iter_mut().filter(of_it).enumerate() {
        match place {
            0 => alarm.severity = Severity::Note,
            _ => alarm.state = AlarmState::Ended,
        }
    }
    assert_eq!(incident_counts(&picture).worst, Some(Severity::Warn));
    assert_eq!(incident_look(&incident, &picture), severity_look(Severity::Note));
}

#[test]
fn a_consequence_is_a_row_of_its_own_only_among_all_alarms() {
    let picture = snapshot(20, SyntheticFaults::All);
    let late = picture.alarms.iter().find(|alarm| alarm.rule == "late_answers").unwrap();
    let at = |rows| picture.alarms[place_of(&picture, late.number, rows).unwrap()].rule;
    assert_eq!([at(AlarmRows::Incidents), at(AlarmRows::All)], ["device_lost", "late_answers"]);
    assert_eq!(place_of(&picture, 999, AlarmRows::All), None);
    let onset = events(&picture).into_iter().find(|event| event.text.starts_with("late_answers")).unwrap();
    assert!(onset.text.contains("(because of device_lost)"), "{}", onset.text);
}

#[test]
fn the_log_has_the_alarms_at_their_moments_under_keys_that_stay() {
    let picture = snapshot(20, SyntheticFaults::All);
    let mut found = LookedUp::default();
    let logs = || {
        crate::tests::synthetic::looked_up(SyntheticFaults::All)
            .into_iter()
            .find(|one| matches!(one, LookupResult::Log(_)))
    };
    found.take(logs().unwrap(), events(&picture));
    let rows = found.log.rows().to_vec();
    assert!(rows.iter().map(|event| event.at_ns).is_sorted(), "{rows:?}");
    let ended = picture.alarms.iter().filter(|alarm| alarm.ended_ns.is_some()).count();
    let named = |name: &str| rows.iter().filter(|event| event.event == name).count();
    assert_eq!((named("alarm_onset"), named("alarm_ended")), (picture.alarms.len(), ended));
    assert!(ended > 0 && named("operated") == 1, "{rows:?}");
    // The list of actions finds the actions among them.
    assert!(found.actions.iter().all(|place| rows[*place].event == "operated"));
    let onset = rows.iter().find(|event| event.text.starts_with("heartbeat")).unwrap();
    assert_eq!(
        crate::source::lookup::unix_ns(&onset.utc),
        Some(picture.engine.started_utc_s * 1_000_000_000 + onset.at_ns.unwrap())
    );
    found.take(logs().unwrap(), events(&picture));
    assert_eq!(found.log.rows(), rows);
    // A file of events without known times keeps its order.
    let unplaced = rows.iter().filter(|event| event.event == "phase").cloned();
    let unplaced: Vec<_> = unplaced.map(|event| super::lookups::Event { at_ns: None, ..event }).collect();
    found.take(LookupResult::Log(Ok(unplaced.clone())), events(&picture));
    assert_eq!(found.log.rows()[..unplaced.len()], unplaced);
}

#[test]
fn an_alarm_in_the_log_says_how_often_it_came_before_because_only_its_latest_episode_is_a_row() {
    let mut picture = snapshot(20, SyntheticFaults::All);
    let text =
        |picture: &Snapshot| events(picture).into_iter().find(|event| event.event == "alarm_onset").unwrap().text;
    (picture.alarms[0].count, picture.alarms[0].first_ns) = (19, picture.alarms[0].onset_ns);
    assert!(!text(&picture).contains("19 times"), "{}", text(&picture));
    picture.alarms[0].onset_ns += 2_000_000_000;
    let first = super::derived::utc_ns(&picture, picture.alarms[0].first_ns) / 1_000_000_000;
    let said = format!("; 19 times since {}", crate::widgets::format::time_of_day(first));
    assert!(text(&picture).ends_with(&said), "{}", text(&picture));
}

/// The engine's start is known to a second only; the pair of clocks tells the moment.
#[test]
fn an_alarm_in_the_log_has_the_time_of_the_systems_clock() {
    let mut picture = snapshot(20, SyntheticFaults::All);
    let started_ns = picture.engine.started_utc_s * 1_000_000_000 + 700_000_000;
    let (at_ns, width_ns) = (picture.at_ns, 100);
    let pair = PairView { at_ns, monotonic_ns: 0, utc_ns: started_ns + at_ns, width_ns };
    picture.clock.pair = Some(pair);
    for event in events(&picture) {
        assert_eq!(crate::source::lookup::unix_ns(&event.utc), Some(started_ns + event.at_ns.unwrap()), "{event:?}");
    }
}

/// The board of another host comes five times a second or more seldom.
#[test]
fn rates_and_percentiles_are_of_one_second_however_often_pictures_come() {
    let answered = |every: usize| {
        let mut marks = Marks::default();
        let derived = (20..80).step_by(every).map(|tenths| marks.derive(&snapshot(tenths, SyntheticFaults::None)));
        derived.last().unwrap().latency.unwrap().count
    };
    let second = answered(1);
    for every in [2, 3, 5] {
        assert!(answered(every) * 10 <= second * 13, "{every}: {} of {second}", answered(every));
    }
}
