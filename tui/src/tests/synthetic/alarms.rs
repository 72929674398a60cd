//! Synthetic alarms: one unacknowledged, one that was worse, one that has ended.

use pinwheel_engine::board::alarms::{AlarmState, Confidence, Site};
use pinwheel_engine::board::snapshot::AlarmView;
use pinwheel_engine::profile;

/// An unacknowledged alarm, one that was worse, one that has ended.
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
        cause: cause.to_owned(),
        sentence: sentence.to_owned(),
        evidence: vec!["ran 31.0 ms, ready and not run 0.0 ms".to_owned(), "state R, core 1".to_owned()],
        stack: Vec::new(),
        culprit: None,
        runbook: "open the alarm: its verdict names the cause".to_owned(),
    };
    let lost = "silo 0: device lost, no worker answers; 7 shots predecoded on the CPU";
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
            thread: Some("work-0".to_owned()),
            state: AlarmState::Ended,
            ended_ns: Some(at_ns / 2 + 14_200_000),
            duration_ns: 14_200_000,
            confidence: Confidence::Likely,
            ..alarm(3, "frame_gap", Site::Thread(1), profile::Severity::Note, "descheduled", gap)
        },
    ]
}
