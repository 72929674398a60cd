//! Two rows: engine, phase and age of the picture; rates and latency.

use crate::keymap::Action;
use crate::model::alarms::{incident_counts, severity_look};
use crate::model::derived::utc_ns;
use crate::model::target::Target;
use crate::model::{Leaving, Model, Picture, STALE_NS, View};
use crate::msg::Finished;
use crate::source::{Access, Ownership};
use crate::theme::Tone;
use crate::widgets::format::{clock, count, number, probability, rate, time, time_of_day, time_or_dash};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::EngineView;
use pinwheel_engine::profile::NO_DEVICE;

pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    let Some(picture) = model.picture() else {
        pen.put(1, 0, "pinwheel", Tone::Title);
        pen.put(11, 0, "no picture yet", Tone::Warn);
        return;
    };
    identity(model, picture, pen);
    facts(picture, pen);
}

fn identity(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let engine = &picture.snapshot.engine;
    let seconds = picture.snapshot.at_ns / 1_000_000_000;
    let right = pen.width().saturating_sub(1);
    let utc_s = utc_ns(&picture.snapshot, picture.snapshot.at_ns) / 1_000_000_000;
    let right = pen.put_right(0, right, 0, &time_of_day(utc_s), Tone::Plain);
    let (text, tone) = alarm_summary(model);
    let end = right;
    let right = pen.put_right(0, right.saturating_sub(2), 0, &text, tone);
    pen.target(right, 0, end.saturating_sub(right + 2), Target::Do(Action::Show(View::Alarms)));
    let mut left = pen.part(0, 0, right.saturating_sub(1), 1);
    let mut x = left.put(1, 0, "pinwheel", Tone::Title) + 2;
    x = left.put(x, 0, engine.phase.name(), phase_tone(engine.phase)) + 1;
    x = left.put(x, 0, &clock(seconds), Tone::Plain) + 2;
    x = badges(model, &mut left, x);
    let begin = x;
    // Beside a badge the word may have no room: the name matters more.
    let name = u16::try_from(engine.profile.chars().count()).unwrap_or(u16::MAX);
    if x.saturating_add(8).saturating_add(name) <= left.width() {
        x = left.put(x, 0, "profile ", Tone::Dim);
    }
    x = left.put(x, 0, &engine.profile, Tone::Accent) + 2;
    left.target(begin, 0, x.saturating_sub(begin + 2), Target::Do(Action::Show(View::Profiles)));
    if let Some(revert) = &picture.snapshot.control.revert {
        let text = format!("{} in {}", revert.to, clock(revert.in_ns.div_ceil(1_000_000_000)));
        x = left.put(x.saturating_sub(1), 0, &format!("→ {text}"), Tone::Warn) + 2;
    }
    x = left.put(x, 0, &engine.input, Tone::Plain) + 2;
    // Whole parts only: a cut part is misleading.
    for part in tail(engine) {
        let length = u16::try_from(part.chars().count()).unwrap_or(u16::MAX);
        if part.is_empty() || x.saturating_add(length) > left.width() {
            break;
        }
        x = left.put(x, 0, &part, Tone::Dim) + 2;
    }
}

fn tail(engine: &EngineView) -> [String; 4] {
    let rate = engine.rate_hz.map_or_else(|| "unlimited".to_owned(), |hz| format!("{}/s", number(hz)));
    [
        if engine.device == NO_DEVICE { "no device".to_owned() } else { engine.device.clone() },
        format!("{} + {}", engine.predecoder, engine.decoder),
        format!("rate {rate} ({})", engine.rate_origin),
        engine.label.clone(),
    ]
}

/// Badges for every difference from "live and current".
pub fn badges(model: &Model, pen: &mut Pen<'_>, mut x: u16) -> u16 {
    let mut pen = pen.fresh();
    if let Some(line) = model.timeline.as_ref().filter(|_| model.is_replay()) {
        let (at_s, to_s) = (line.at_ns as f64 / 1e9, line.to_ns as f64 / 1e9);
        return pen.put(x, 0, &format!(" REPLAY {at_s:.1} of {to_s:.1} s "), Tone::Badge) + 2;
    }
    if let Some(line) = &model.timeline {
        let back = time(model.behind_ns(line));
        x = pen.put(x, 0, &format!(" PAST -{back} "), Tone::Badge) + 2;
    } else if let Some((_, since_ns)) = model.frozen {
        let age = time(model.now_ns.saturating_sub(since_ns));
        x = pen.put(x, 0, &format!(" FROZEN {age} "), Tone::Badge) + 2;
    } else if model.age_ns() > STALE_NS && model.finished == Finished::No {
        x = pen.put(x, 0, &format!(" STALE {} ", time(model.age_ns())), Tone::Badge) + 2;
    }
    if model.lost.is_some() {
        x = pen.put(x, 0, " GONE ", Tone::Badge) + 2;
        return whose(model, &mut pen, x);
    }
    if model.silence_ns() > STALE_NS && model.finished == Finished::No {
        x = pen.put(x, 0, &format!(" SILENT {} ", time(model.silence_ns())), Tone::Badge) + 2;
    }
    if model.picture().is_some_and(|picture| picture.snapshot.control.held.is_some()) {
        x = pen.put(x, 0, " HELD ", Tone::Badge) + 2;
    }
    if model.finished == Finished::Yes {
        x = pen.put(x, 0, " ENDED ", Tone::Badge) + 2;
    } else if model.leaving != Leaving::No {
        x = pen.put(x, 0, " DRAINING ", Tone::Badge) + 2;
    }
    whose(model, &mut pen, x)
}

/// The badge of an engine of another process. It comes last: a narrow screen must not cut the engine's state.
fn whose(model: &Model, pen: &mut Pen<'_>, x: u16) -> u16 {
    let text = match &model.ownership {
        Ownership::Own => return x,
        Ownership::OtherHost(host) => format!(" READ-ONLY {host} "),
        Ownership::Attached { pid, access: Access::Act, .. } => format!(" ATTACHED {pid} "),
        Ownership::Attached { pid, access: Access::Watch, .. } => format!(" READ-ONLY {pid} "),
    };
    pen.put(x, 0, &text, Tone::Badge) + 2
}

/// "2 incidents" with the worst one's glyph and tone; acknowledged and snoozed ones are counted
/// separately.
pub fn alarm_summary(model: &Model) -> (String, Tone) {
    let counts = model.picture().map(|picture| incident_counts(&picture.snapshot)).unwrap_or_default();
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    match (counts.calling, counts.worst) {
        (0, Some(worst)) => {
            let (n, glyph) = (counts.active, severity_look(worst).0);
            (format!("{glyph} {n} incident{} seen", plural(n)), Tone::Dim)
        }
        (n, Some(worst)) => {
            let (glyph, tone) = severity_look(worst);
            (format!("{glyph} {n} incident{}", plural(n)), tone)
        }
        (_, None) => ("● no alarm".to_owned(), Tone::Good),
    }
}

fn phase_tone(phase: Phase) -> Tone {
    match phase {
        Phase::Live => Tone::Good,
        Phase::Init | Phase::Warmup | Phase::Drain => Tone::Warn,
        Phase::Shutdown => Tone::Dim,
    }
}

fn facts(picture: &Picture, pen: &mut Pen<'_>) {
    let derived = &picture.derived;
    let totals = &derived.totals;
    let latency = derived.latency;
    let zero_is_good = |n: u64| if n == 0 { Tone::Good } else { Tone::Bad };
    let warn_if = |n: u64| if n == 0 { Tone::Good } else { Tone::Warn };
    let ler = if totals.shots_with_observables == 0 {
        "–".to_owned()
    } else {
        probability(totals.logical_errors as f64 / totals.shots_with_observables as f64)
    };
    let behind = derived.rates.is_some_and(|r| derived.backlog as f64 > r.scheduled.max(100.0) * 0.1);
    // Only where shots have deadlines and a rescue decoder.
    let rescued = (totals.rescued > 0).then(|| ("rescued", count(totals.rescued), Tone::Plain));
    let missed = (totals.missed > 0).then(|| ("missed", count(totals.missed), Tone::Warn));
    // Only where answers of a small gap are abstained from.
    let abstained = (totals.abstained > 0).then(|| ("not trusted", count(totals.abstained), Tone::Warn));
    let entries = [
        ("answered", rate(derived.rates.map(|rates| rates.answered)), Tone::Accent),
        ("backlog", count(derived.backlog), if behind { Tone::Warn } else { Tone::Good }),
        ("p50", time_or_dash(latency.map(|l| l.p50_ns)), Tone::Accent),
        ("p99.9", time_or_dash(latency.map(|l| l.p999_ns)), Tone::Accent),
        ("err", count(totals.errored), warn_if(totals.errored)),
        ("late", count(totals.late), warn_if(totals.late)),
        ("LER", ler, Tone::Plain),
        ("dup", count(totals.duplicated), zero_is_good(totals.duplicated)),
        ("max", time_or_dash(latency.map(|l| l.max_ns)), Tone::Plain),
        ("in path", count(derived.open), Tone::Plain),
        ("answered in all", count(totals.answered), Tone::Plain),
        ("out of order", count(totals.out_of_order), Tone::Plain),
    ];
    let (first, rest) = entries.split_at(6);
    let mut x = 1u16;
    for (name, value, tone) in first.iter().chain(&missed).chain(&rescued).chain(&abstained).chain(rest) {
        let length = u16::try_from(name.len() + 1 + value.chars().count()).unwrap_or(u16::MAX);
        if x.saturating_add(length) > pen.width() {
            break;
        }
        x = pen.put(x, 1, name, Tone::Dim) + 1;
        x = pen.put(x, 1, value, *tone) + 2;
    }
}
