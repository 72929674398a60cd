//! Answers, latency and waiting shots over time, from the recording.
//!
//! Pure. Bounded by the moments taken of the recording.

use super::incidents::{Incident, class, extents};
use super::latency::power_text;
use super::markup::Markup;
use super::plot::{LogAxis, Plot, round_up, time_ticks};
use crate::evidence::{Evidence, Interval};
use crate::format::number;

/// Height of a plot, pixels.
const HEIGHT_PX: f64 = 110.0;

/// Writes the section; none without a recording.
pub fn write(run: &Evidence, incidents: &[Incident], page: &mut Markup) {
    if run.history.len() < 2 {
        return;
    }
    page.section("Over time");
    let to_ns = run.to_ns();
    let answers = counted("Answers per second", &run.history, |interval| interval.answered_per_s, incidents, to_ns);
    let latency = latency(&run.history, incidents, to_ns);
    let waiting =
        counted("Shots that wait for a slot", &run.history, |interval| interval.waiting as f64, incidents, to_ns);
    for (title, plot) in [answers, latency, waiting].into_iter().flatten() {
        page.open("figure", "");
        page.element("figcaption", "title", title);
        page.made(&plot);
        page.close("figure");
    }
    page.caption("Amber and red: an alarm was active. Time since the engine's start.");
    page.close("section");
}

fn empty(title: &str, incidents: &[Incident], to_ns: u64) -> Plot {
    let mut plot = Plot::new(HEIGHT_PX, title);
    for severity in ["warn", "critical"] {
        for (from, to) in bands(incidents, severity, to_ns) {
            plot.band(from, to, class(severity));
        }
    }
    plot.ticks(&time_ticks(to_ns));
    plot
}

/// When at least one incident of a severity was seen.
fn bands(incidents: &[Incident], severity: &str, to_ns: u64) -> Vec<(f64, f64)> {
    let of_severity = incidents.iter().filter(|incident| incident.severity == severity);
    let mut all: Vec<(f64, f64)> = of_severity.flat_map(|incident| extents(incident, to_ns)).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut bands: Vec<(f64, f64)> = Vec::new();
    for (from, to) in all {
        match bands.last_mut().filter(|band| from <= band.1) {
            Some(band) => band.1 = band.1.max(to),
            None => bands.push((from, to)),
        }
    }
    bands
}

fn place(interval: &Interval, to_ns: u64) -> f64 {
    interval.to_ns as f64 / to_ns.max(1) as f64
}

/// A curve over a linear axis from 0; `None` if it is 0 all the time.
fn counted(
    title: &'static str,
    history: &[Interval],
    value: impl Fn(&Interval) -> f64,
    incidents: &[Incident],
    to_ns: u64,
) -> Option<(&'static str, String)> {
    let most = history.iter().map(&value).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    let (most, mut plot) = (round_up(most), empty(title, incidents, to_ns));
    plot.level(LEVEL_MAX, &level_text(most));
    if most > 1.0 {
        plot.level(LEVEL_MAX / 2.0, &level_text(most / 2.0));
    }
    let points = history.iter().map(|interval| (place(interval, to_ns), Some(value(interval) / most * LEVEL_MAX)));
    plot.curve(&points.collect::<Vec<_>>(), "one");
    Some((title, plot.into_markup()))
}

/// A level: 1, 2 or 5 times a power of ten, or half of that.
fn level_text(value: f64) -> String {
    if value < 10.0 && value.fract() > 0.0 { value.to_string() } else { number(value) }
}

/// Height of the highest level: its name stands above it.
const LEVEL_MAX: f64 = 0.86;

/// Median and p99 over a logarithmic axis.
fn latency(history: &[Interval], incidents: &[Incident], to_ns: u64) -> Option<(&'static str, String)> {
    let title = "Latency: p50 (lower) and p99 (upper)";
    let axis = LogAxis::of(history.iter().filter_map(|interval| interval.latency_ns).flatten().map(|ns| ns as f64))?;
    let mut plot = empty(title, incidents, to_ns);
    for (height, ns) in axis.powers() {
        plot.level(height * LEVEL_MAX, &power_text(ns));
    }
    for (index, class) in ["one", "two"].into_iter().enumerate() {
        let height = |interval: &Interval| interval.latency_ns.map(|both| axis.place(both[index] as f64) * LEVEL_MAX);
        let points = history.iter().map(|interval| (place(interval, to_ns), height(interval)));
        plot.curve(&points.collect::<Vec<_>>(), class);
    }
    Some((title, plot.into_markup()))
}

#[cfg(test)]
mod tests {
    use super::{bands, level_text};
    use crate::page::incidents::{Incident, Root};

    #[test]
    fn a_level_is_named_by_its_value_not_by_the_next_whole_number() {
        let named = [0.05, 0.5, 1.0, 2.5, 25.0, 2_500.0].map(level_text);
        assert_eq!(named, ["0.05", "0.5", "1", "2.5", "25", "2.5k"]);
    }

    #[test]
    fn alarms_at_one_time_are_one_band() {
        let incident = |severity: &str, episodes: &[[u64; 2]]| {
            let text = String::new;
            let root =
                Root { rule: text(), place: text(), cause: text(), sentence: text(), who: text(), runbook: text() };
            let severity = severity.to_owned();
            let episodes = episodes.to_vec();
            Incident { root, consequences: Vec::new(), severity, episodes, ended_ns: None, shots_hit: None }
        };
        let all = [
            incident("warn", &[[0, 20], [80, 100]]),
            incident("note", &[[5, 100]]),
            incident("warn", &[[10, 15]]),
            incident("warn", &[[20, 30]]),
        ];
        assert_eq!(bands(&all, "warn", 100), [(0.0, 0.3), (0.8, 1.0)]);
        assert_eq!(bands(&all, "critical", 100), []);
    }
}
