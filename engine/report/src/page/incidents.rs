//! Alarms, grouped by cause, on a time line, and each group with its sentence, cause and consequences
//! below it.
//!
//! Pure. Bounded by [`SHOWN_MAX`] incidents.

use super::markup::Markup;
use super::plot::{LANE_PX, Plot, time_ticks};
use crate::evidence::Evidence;
use crate::report::{duration_text, grouped};
use serde_json::Value;

/// What the time line shows.
const LEGEND: &str = "Time since the engine's start. A bar is an episode. Red: critical; amber: warning; grey: note.";
/// Most incidents that are drawn.
pub const SHOWN_MAX: usize = 200;

/// Alarms of one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub root: Root,
    pub consequences: Vec<Consequence>,
    pub severity: String,
    /// Onset and end of each known episode, in order; nanoseconds since the engine's start.
    pub episodes: Vec<[u64; 2]>,
    /// `None`: it held to the end.
    pub ended_ns: Option<u64>,
    /// Shots that were late or answered with an error; `None` if not known.
    pub shots_hit: Option<u64>,
}

/// The alarm that explains the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub rule: String,
    /// Thread, silo or stream; empty for the engine as a whole.
    pub place: String,
    /// Empty if none was found.
    pub cause: String,
    pub sentence: String,
    /// Who caused it, if that is somebody outside the engine; else empty.
    pub who: String,
    /// What to do; may be empty.
    pub runbook: String,
}

/// An alarm that another one explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    pub rule: String,
    pub sentence: String,
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

/// The incidents of a run, in order of onset. The report of an earlier version has only alarms: each
/// is one of its own then.
pub fn of(run: &Evidence) -> Vec<Incident> {
    let to_ns = run.to_ns();
    let mut found: Vec<Incident> = match run.report.get("incidents") {
        None => run.alarms.iter().filter_map(|alarm| of_alarm(alarm, to_ns)).collect(),
        Some(_) => run.incidents.iter().filter_map(|incident| of_incident(incident, run, to_ns)).collect(),
    };
    found.sort_by_key(|incident| incident.episodes.first().map(|[onset, _]| *onset));
    found
}

fn of_alarm(alarm: &Value, to_ns: u64) -> Option<Incident> {
    let ended_ns = number(alarm, "ended_ns");
    Some(Incident {
        root: root(alarm, Some(alarm)),
        consequences: Vec::new(),
        severity: text(alarm, "severity"),
        episodes: vec![[number(alarm, "onset_ns")?, ended_ns.unwrap_or(to_ns)]],
        ended_ns,
        shots_hit: None,
    })
}

fn of_incident(incident: &Value, run: &Evidence, to_ns: u64) -> Option<Incident> {
    let own = number(incident, "number")?;
    let alarm = run.alarms.iter().find(|alarm| number(alarm, "number") == Some(own));
    let ended_ns = number(incident, "ended_ns");
    let mut episodes = run.episodes.get(&own).cloned().unwrap_or_default();
    episodes.insert(number(incident, "onset_ns")?, ended_ns.unwrap_or(to_ns));
    let follows = incident.get("consequences").and_then(Value::as_array).into_iter().flatten();
    Some(Incident {
        root: root(incident.get("root")?, alarm),
        consequences: follows
            .map(|row| Consequence { rule: text(row, "rule"), sentence: text(row, "sentence") })
            .collect(),
        severity: text(incident, "severity"),
        episodes: episodes.into_iter().map(|(onset, end)| [onset, end.max(onset)]).collect(),
        ended_ns,
        shots_hit: number(incident, "shots_hit"),
    })
}

/// A root; its place and what to do are those of its alarm.
fn root(root: &Value, alarm: Option<&Value>) -> Root {
    Root {
        rule: text(root, "rule"),
        place: alarm.map(place).unwrap_or_default(),
        cause: text(root, "cause"),
        sentence: text(root, "sentence"),
        who: text(root, "who"),
        runbook: alarm.map(|alarm| text(alarm, "runbook")).unwrap_or_default(),
    }
}

/// The alarm's thread, silo or stream.
fn place(alarm: &Value) -> String {
    if let Some(thread) = alarm.get("thread").and_then(Value::as_str) {
        return thread.to_owned();
    }
    let site = alarm.get("site").and_then(Value::as_object).and_then(|site| site.iter().next());
    let Some((kind, number)) = site else { return String::new() };
    let number = number.as_u64().or_else(|| number.get(0)?.as_u64());
    match (kind.as_str(), number) {
        ("thread" | "silo" | "stream", Some(number)) => format!("{kind} {number}"),
        _ => String::new(),
    }
}

/// Style of a severity; other texts never become a class.
pub fn class(severity: &str) -> &'static str {
    match severity {
        "critical" => "critical",
        "warn" => "warn",
        _ => "note",
    }
}

/// Writes the section.
pub fn write(run: &Evidence, incidents: &[Incident], page: &mut Markup) {
    page.section("Incidents");
    if incidents.is_empty() {
        page.paragraph("No alarm was raised.");
    } else {
        let shown = &incidents[..incidents.len().min(SHOWN_MAX)];
        time_line(shown, run.to_ns(), page);
        page.open("ol", "incidents");
        for (index, incident) in shown.iter().enumerate() {
            describe(index + 1, incident, page);
        }
        page.close("ol");
        if incidents.len() > shown.len() {
            page.caption(&format!("{} later ones are not shown.", incidents.len() - shown.len()));
        }
    }
    if !run.notes.is_empty() {
        page.element("h3", "", "Notes of operators");
        let note = |(at_ns, text): &(u64, String)| format!("{}: {text}", duration_text(*at_ns));
        page.list(&run.notes.iter().take(SHOWN_MAX).map(note).collect::<Vec<_>>());
    }
    page.close("section");
}

fn time_line(incidents: &[Incident], to_ns: u64, page: &mut Markup) {
    let height_px = LANE_PX * incidents.len() as f64 + 4.0;
    let mut plot = Plot::new(height_px, "Incidents on a time line, numbered as in the list below");
    plot.ticks(&time_ticks(to_ns));
    for (row, incident) in incidents.iter().enumerate() {
        plot.lane(row, row + 1, &extents(incident, to_ns), class(&incident.severity));
    }
    page.open("figure", "");
    page.made(&plot.into_markup());
    page.element("figcaption", "", LEGEND);
    page.close("figure");
}

/// Where the episodes of an incident lie on the time line.
pub fn extents(incident: &Incident, to_ns: u64) -> Vec<(f64, f64)> {
    let place = |ns: u64| (ns as f64 / to_ns.max(1) as f64).clamp(0.0, 1.0);
    incident.episodes.iter().map(|[onset, end]| (place(*onset), place(*end))).collect()
}

fn describe(index: usize, incident: &Incident, page: &mut Markup) {
    let Incident { root, consequences, severity, episodes, ended_ns, shots_hit } = incident;
    page.open("li", "");
    page.open("p", "what");
    page.element("span", class(severity), &index.to_string());
    page.element("strong", "", &root.rule);
    page.text(&format!(" {}", root.place));
    page.close("p");
    page.paragraph(&root.sentence);
    let times = episodes.last().map(|[onset, _]| {
        let until = ended_ns.map_or_else(|| "to the end".to_owned(), |end| format!("to {}", duration_text(end)));
        let earlier = match episodes.len() {
            1 => String::new(),
            n => format!("{n} episodes seen, the last "),
        };
        format!("{earlier}from {} {until}", duration_text(*onset))
    });
    let named = |what: &str, text: &str| Some(format!("{what}{text}")).filter(|_| !text.is_empty());
    let shots =
        shots_hit.filter(|shots| *shots > 0).map(|shots| format!("{} shots late or with an error", grouped(shots)));
    let facts = [named("", severity), times, named("cause: ", &root.cause), named("by ", &root.who), shots];
    page.caption(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    if !consequences.is_empty() {
        page.caption("What follows from it:");
    }
    let follows = |Consequence { rule, sentence }: &Consequence| format!("{rule}: {sentence}");
    page.list(&consequences.iter().map(follows).collect::<Vec<_>>());
    if !root.runbook.is_empty() {
        page.caption(&format!("What to do: {}.", root.runbook.trim_end_matches('.')));
    }
    page.close("li");
}
