//! Synthetic alarms: a lost device with late answers, a stall, and a gap that has ended.

use pinwheel_engine::board::alarms::{AlarmState, Confidence, Site};
use pinwheel_engine::board::snapshot::{AlarmView, Consequence, IncidentRoot, IncidentView};
use pinwheel_engine::profile;

/// An unacknowledged alarm, one that was worse with what it explains, one that has ended.
pub(super) fn alarms(at_ns: u64) -> Vec<AlarmView> {
    let alarm = |number, rule, site, severity, cause: &str, sentence: &str| AlarmView {
        number,
        rule,
        site,
        thread: None,
        severity,
        state: AlarmState::Active,
        first_ns: at_ns / 4,
        onset_ns: at_ns / 2,
        last_ns: at_ns,
        ended_ns: None,
        duration_ns: at_ns / 2,
        judged_after_ns: Some(21_000_000),
        count: 3,
        acknowledged_ns: None,
        snoozed_until_ns: None,
        confidence: Confidence::Certain,
        incident: number,
        cause: cause.to_owned(),
        who: String::new(),
        sentence: sentence.to_owned(),
        evidence: vec!["ran 31.0 ms, ready and not run 0.0 ms".to_owned(), "state R, core 1".to_owned()],
        stack: Vec::new(),
        culprit: None,
        runbook: "open the alarm: its verdict names the cause".to_owned(),
    };
    let lost = "silo 0: device lost, no worker answers; 7 shots predecoded on the CPU";
    let late = "silo 0: 45 of 100 answers late (45 %): silo 0: device lost, no worker answers";
    let long = "hot-0 stood still 31.0 ms in poll: long handler: poll computes, at poller.rs:88 (ran 31.0 ms)";
    let gap = "work-0 stood still 14.2 ms: descheduled 13.9 ms by cargo (8123) on core 0, which ran 13.1 ms";
    vec![
        alarm(2, "device_lost", Site::Silo(0, 0), profile::Severity::Critical, "device hung", lost),
        AlarmView {
            thread: Some("hot-0".to_owned()),
            stack: vec!["compute (poller.rs:88)".to_owned(), "work (poller.rs:41)".to_owned()],
            culprit: Some("poller.rs:88 (compute)".to_owned()),
            ..alarm(1, "heartbeat", Site::Thread(0), profile::Severity::Warn, "long handler", long)
        },
        AlarmView {
            incident: 2,
            confidence: Confidence::Likely,
            ..alarm(4, "late_answers", Site::Silo(0, 0), profile::Severity::Warn, "device hung", late)
        },
        AlarmView {
            thread: Some("work-0".to_owned()),
            state: AlarmState::Ended,
            ended_ns: Some(at_ns / 2 + 14_200_000),
            duration_ns: 14_200_000,
            confidence: Confidence::Likely,
            who: "cargo (8123)".to_owned(),
            ..alarm(3, "frame_gap", Site::Thread(1), profile::Severity::Note, "descheduled", gap)
        },
    ]
}

/// The incidents of `alarms`, in their order.
pub(super) fn incidents(alarms: &[AlarmView]) -> Vec<IncidentView> {
    let explained = |root: &AlarmView| {
        let others = alarms.iter().filter(|alarm| alarm.incident == root.number && alarm.number != root.number);
        others.map(|alarm| Consequence { rule: alarm.rule.to_owned(), sentence: alarm.sentence.clone() }).collect()
    };
    let incident = |root: &AlarmView| IncidentView {
        number: root.number,
        root: IncidentRoot {
            rule: root.rule,
            cause: root.cause.clone(),
            sentence: root.sentence.clone(),
            who: root.who.clone(),
        },
        consequences: explained(root),
        severity: root.severity,
        state: root.state,
        onset_ns: root.onset_ns,
        ended_ns: root.ended_ns,
        duration_ns: root.duration_ns,
        shots_hit: if root.number == 2 { 412 } else { 0 },
        count: root.count,
    };
    alarms.iter().filter(|alarm| alarm.incident == alarm.number).map(incident).collect()
}
