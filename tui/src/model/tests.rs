//! Alarms: which call, and which only hold.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use super::alarms::{Standing, place, standing};
use crate::source::synthetic::{Trouble, snapshot};
use pinwheel_engine::profile::Severity;

#[test]
fn a_note_never_calls_and_an_acknowledged_or_snoozed_alarm_holds_without_calling() {
    let mut picture = snapshot(20, Trouble::All);
    let all = standing(&picture);
    assert_eq!(all.worst, Some(Severity::Critical));
    assert!(all.calling > 1 && all.active == all.calling);
    let worst = picture.alarms.iter().position(|alarm| alarm.severity == Severity::Critical).unwrap();
    picture.alarms[worst].acknowledged_ns = Some(1);
    let less = standing(&picture);
    assert_eq!((less.calling, less.active, less.worst), (all.calling - 1, all.active, Some(Severity::Warn)));
    for alarm in &mut picture.alarms {
        alarm.snoozed_until_ns = Some(picture.at_ns + 1);
    }
    let none = standing(&picture);
    assert_eq!((none.calling, none.active, none.worst), (0, all.active, Some(Severity::Critical)));
    assert_eq!(standing(&snapshot(20, Trouble::None)), Standing::default());
    assert_eq!(place(&picture.alarms[worst]), "silo 0");
}
