//! The board's alarms as the console counts them: how many call, and how badly.
//!
//! Pure functions of a picture. On the console thread. Bounded by the board's alarm log. Judges nothing: what is an alarm is
//! said on the board alone, so that every reader sees the same.

use crate::theme::Tone;
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::board::snapshot::{AlarmView, Snapshot};
use pinwheel_engine::profile::Severity;

/// How alarms stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Hold, and are no notes.
    pub active: usize,
    /// Of these, neither acknowledged nor snoozed.
    pub calling: usize,
    /// The worst of those that call; of all that hold where none calls.
    pub worst: Option<Severity>,
}

/// How the alarms of `snapshot` stand.
pub fn standing(snapshot: &Snapshot) -> Standing {
    let active = || snapshot.alarms.iter().filter(|alarm| alarm.is_active() && alarm.severity > Severity::Note);
    let calling = || active().filter(|alarm| alarm.calls(snapshot.at_ns));
    let worst = calling().chain(active()).map(|alarm| alarm.severity);
    let worst = if calling().next().is_some() { calling().map(|alarm| alarm.severity).max() } else { worst.max() };
    Standing { active: active().count(), calling: calling().count(), worst }
}

/// Where an alarm is, in a word.
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

/// Glyph and tone of an alarm: what is over, snoozed or acknowledged does not shout.
pub fn look(alarm: &AlarmView, at_ns: u64) -> (char, Tone) {
    let (glyph, tone) = severity_look(alarm.severity);
    match (alarm.is_active(), alarm.calls(at_ns)) {
        (false, _) => ('○', Tone::Dim),
        (true, false) if alarm.severity > Severity::Note => (glyph, Tone::Dim),
        _ => (glyph, tone),
    }
}

/// How sure a verdict is.
pub fn sureness(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Unexplained => "unexplained",
    }
}
