//! The board's alarms as the console counts them: how many need attention, and how severe.
//!
//! Pure functions of a picture, on the console thread. Bounded by the board's alarm log. Raises no
//! alarm of its own: the board alone defines alarms, so that every reader sees the same.

use super::lookups::Event;
use crate::theme::Tone;
use crate::widgets::format::{time, utc};
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::board::snapshot::{AlarmView, Snapshot};
use pinwheel_engine::profile::Severity;

/// Counts of the active alarms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Active alarms above the severity of a note.
    pub active: usize,
    /// Active alarms that are neither acknowledged nor snoozed.
    pub calling: usize,
    /// The highest severity among the unacknowledged alarms, or among all active alarms if none is
    /// unacknowledged.
    pub worst: Option<Severity>,
}

/// Counts the active alarms of `snapshot`.
pub fn standing(snapshot: &Snapshot) -> Standing {
    let active = || snapshot.alarms.iter().filter(|alarm| alarm.is_active() && alarm.severity > Severity::Note);
    let calling = || active().filter(|alarm| alarm.calls(snapshot.at_ns));
    let worst = calling().chain(active()).map(|alarm| alarm.severity);
    let worst = if calling().next().is_some() { calling().map(|alarm| alarm.severity).max() } else { worst.max() };
    Standing { active: active().count(), calling: calling().count(), worst }
}

/// The site of an alarm in a few words.
pub fn place(alarm: &AlarmView) -> String {
    use pinwheel_engine::board::alarms::Site;
    match (alarm.site, &alarm.thread) {
        (_, Some(thread)) => thread.clone(),
        (Site::Engine(_), _) => "engine".to_owned(),
        (Site::Thread(thread), _) => format!("thread {thread}"),
        (Site::Silo(silo, _), _) => format!("silo {silo}"),
        (Site::Stream(stream), _) => format!("stream {stream}"),
    }
}

/// Glyph and tone of a severity.
pub fn severity_look(severity: Severity) -> (char, Tone) {
    match severity {
        Severity::Critical => ('✖', Tone::Bad),
        Severity::Warn => ('▲', Tone::Warn),
        Severity::Note => ('·', Tone::Plain),
    }
}

/// Glyph and tone of an alarm: ended, snoozed and acknowledged alarms are subdued.
pub fn look(alarm: &AlarmView, at_ns: u64) -> (char, Tone) {
    let (glyph, tone) = severity_look(alarm.severity);
    match (alarm.is_active(), alarm.calls(at_ns)) {
        (false, _) => ('○', Tone::Dim),
        (true, false) if alarm.severity > Severity::Note => (glyph, Tone::Dim),
        _ => (glyph, tone),
    }
}

/// The alarms as events of the run, each with its onset and its end. The run's event file holds the
/// events of threads and operators; the board holds the alarms.
pub fn events(snapshot: &Snapshot) -> Vec<Event> {
    let started_ns = snapshot.engine.started_utc_s.saturating_mul(1_000_000_000);
    let event = |alarm: &AlarmView, at_ns: u64, event: &str, place_in_pair: u64, text: String| Event {
        // Above any byte offset of a file, so the keys do not collide.
        number: 1 << 63 | alarm.number << 1 | place_in_pair,
        utc: utc(started_ns.saturating_add(at_ns)),
        at_ns: Some(at_ns),
        thread: place(alarm),
        event: event.to_owned(),
        text,
        numbers: Vec::new(),
    };
    let mut events = Vec::new();
    for alarm in &snapshot.alarms {
        events.push(event(alarm, alarm.onset_ns, "alarm_onset", 0, format!("{}: {}", alarm.rule, alarm.sentence)));
        if let Some(ended_ns) = alarm.ended_ns {
            let lasted = time(ended_ns.saturating_sub(alarm.onset_ns));
            events.push(event(alarm, ended_ns, "alarm_ended", 1, format!("{}, after {lasted}", alarm.rule)));
        }
    }
    events
}

/// The confidence of a verdict in words.
pub fn sureness(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Unexplained => "unexplained",
    }
}
