//! The board's alarms and incidents as the console counts them: how many need attention, and how
//! severe.
//!
//! Pure functions of a picture, on the console thread. Bounded by the board's alarm log. Raises no
//! alarm of its own: the board alone defines alarms, so that every reader sees the same.

use super::Model;
use super::derived::utc_ns;
use super::lookups::Event;
use crate::theme::Tone;
use crate::widgets::format::{count, time, time_of_day, utc};
use pinwheel_engine::board::alarms::Confidence;
use pinwheel_engine::board::snapshot::{AlarmView, IncidentView, Snapshot};
use pinwheel_engine::profile::Severity;
use std::collections::BTreeSet;

/// Which rows the list of alarms has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlarmRows {
    /// The root of each incident.
    #[default]
    Incidents,
    All,
}

impl AlarmRows {
    pub fn other(self) -> AlarmRows {
        match self {
            AlarmRows::Incidents => AlarmRows::All,
            AlarmRows::All => AlarmRows::Incidents,
        }
    }

    /// Whether the list has this alarm. One whose incident is not known yet is in both.
    pub fn has(self, alarm: &AlarmView) -> bool {
        self == AlarmRows::All || alarm.incident == 0 || alarm.incident == alarm.number
    }
}

/// Counts of the active incidents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncidentCounts {
    /// Active incidents above the severity of a note.
    pub active: usize,
    /// Of these, the ones with an alarm that is neither acknowledged nor snoozed.
    pub calling: usize,
    /// The highest severity among the alarms that are not acknowledged, or among all active ones if
    /// each is.
    pub worst: Option<Severity>,
}

/// Counts the active incidents of `snapshot`.
pub fn incident_counts(snapshot: &Snapshot) -> IncidentCounts {
    let active = || snapshot.alarms.iter().filter(|alarm| alarm.is_active() && alarm.severity > Severity::Note);
    let calling = || active().filter(|alarm| alarm.calls(snapshot.at_ns));
    let incidents = |alarms: &mut dyn Iterator<Item = &AlarmView>| alarms.map(root).collect::<BTreeSet<u64>>().len();
    let worst = calling().map(|alarm| alarm.severity).max().or_else(|| active().map(|alarm| alarm.severity).max());
    IncidentCounts { active: incidents(&mut active()), calling: incidents(&mut calling()), worst }
}

/// Number of the root of an alarm's incident.
fn root(alarm: &AlarmView) -> u64 {
    if alarm.incident == 0 { alarm.number } else { alarm.incident }
}

/// The incident of which `alarm` is the root.
pub fn incident<'a>(snapshot: &'a Snapshot, alarm: &AlarmView) -> Option<&'a IncidentView> {
    snapshot.incidents.iter().find(|incident| incident.number == alarm.number)
}

/// Place of the alarm `number` among the snapshot's alarms, or of its root if `rows` do not have
/// it.
pub fn place_of(snapshot: &Snapshot, number: u64, rows: AlarmRows) -> Option<usize> {
    let at = |number: u64| snapshot.alarms.iter().position(|alarm| alarm.number == number);
    let place = at(number)?;
    let alarm = &snapshot.alarms[place];
    if rows.has(alarm) { Some(place) } else { at(alarm.incident) }
}

/// Place of the alarm under the cursor; that of the root of its incident if the list has no row for
/// it.
pub fn selected_row(model: &Model, snapshot: &Snapshot) -> Option<usize> {
    place_of(snapshot, snapshot.alarms.get(model.cursor.alarm)?.number, model.alarm_rows)
}

/// The alarm there.
pub fn selected<'a>(model: &Model, snapshot: &'a Snapshot) -> Option<&'a AlarmView> {
    snapshot.alarms.get(selected_row(model, snapshot)?)
}

/// What the details of the selected alarm say, a line each.
pub fn detail_lines(model: &Model) -> Vec<String> {
    let Some((picture, alarm)) =
        model.picture().and_then(|picture| Some((picture, selected(model, &picture.snapshot)?)))
    else {
        return Vec::new();
    };
    let mut lines = vec![alarm.sentence.clone()];
    if let Some(incident) = incident(&picture.snapshot, alarm) {
        lines.extend(incident.consequences.iter().map(|alarm| format!("so {}: {}", alarm.rule, alarm.sentence)));
    }
    lines.extend(alarm.stack.iter().enumerate().map(|(depth, frame)| format!("#{depth} {frame}")));
    lines.extend(alarm.evidence.iter().cloned());
    lines
}

/// Rows of the list of alarms, in its order: that of the incidents, or that of the alarms.
pub fn rows(model: &Model) -> Vec<usize> {
    let Some(picture) = model.picture() else { return Vec::new() };
    let Snapshot { alarms, incidents, .. } = &picture.snapshot;
    let mut rows: Vec<usize> = (0..alarms.len()).filter(|row| model.alarm_rows.has(&alarms[*row])).collect();
    if model.alarm_rows == AlarmRows::Incidents {
        rows.sort_by_key(|row| incidents.iter().position(|incident| incident.number == alarms[*row].number));
    }
    rows
}

/// Numbers of the active alarms that the row of `alarm` stands for: of an incident, all of its
/// alarms.
pub fn stood_for(snapshot: &Snapshot, alarm: &AlarmView, rows: AlarmRows) -> Vec<u64> {
    let is_meant = |other: &&AlarmView| {
        other.number == alarm.number
            || rows == AlarmRows::Incidents && other.incident == alarm.number && other.is_active()
    };
    snapshot.alarms.iter().filter(is_meant).map(|other| other.number).collect()
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

/// Glyph and tone of an incident: as of its worst active alarm, subdued once it has ended or each alarm
/// above a note is acknowledged or snoozed.
pub fn incident_look(incident: &IncidentView, snapshot: &Snapshot) -> (char, Tone) {
    if incident.ended_ns.is_some() {
        return ('○', Tone::Dim);
    }
    let alarms = || snapshot.alarms.iter().filter(|alarm| alarm.incident == incident.number && alarm.is_active());
    let severity = alarms().map(|alarm| alarm.severity).max().unwrap_or(incident.severity);
    let (glyph, tone) = severity_look(severity);
    let is_silent = severity > Severity::Note && !alarms().any(|alarm| alarm.calls(snapshot.at_ns));
    (glyph, if is_silent { Tone::Dim } else { tone })
}

/// The alarms as events of the run, each with its onset and its end. The run's event file holds the
/// events of threads and operators; the board holds the alarms.
pub fn events(snapshot: &Snapshot) -> Vec<Event> {
    let event = |alarm: &AlarmView, at_ns: u64, event: &str, place_in_pair: u64, text: String| Event {
        // Above any byte offset of a file, so the keys do not collide.
        number: 1 << 63 | alarm.number << 1 | place_in_pair,
        utc: utc(utc_ns(snapshot, at_ns)),
        at_ns: Some(at_ns),
        thread: place(alarm),
        event: event.to_owned(),
        text,
        numbers: Vec::new(),
    };
    let mut events = Vec::new();
    for alarm in &snapshot.alarms {
        let because = match snapshot.incidents.iter().find(|incident| incident.number == alarm.incident) {
            Some(incident) if alarm.number != incident.number => format!(" (because of {})", incident.root.rule),
            _ => String::new(),
        };
        // The board holds the latest episode of each.
        let earlier = if alarm.first_ns < alarm.onset_ns {
            let first = time_of_day(utc_ns(snapshot, alarm.first_ns) / 1_000_000_000);
            format!("; {} times since {first}", count(alarm.count))
        } else {
            String::new()
        };
        let text = format!("{}: {}{because}{earlier}", alarm.rule, alarm.sentence);
        events.push(event(alarm, alarm.onset_ns, "alarm_onset", 0, text));
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
