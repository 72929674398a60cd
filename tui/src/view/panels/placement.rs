//! Placement: which silo is full, and which stream should move? Silos side by side, a bar for each queue with its limit; then
//! shots that found no slot, then the last decisions with the numbers that they were made on.

use super::scrolled;
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{
    CandidateView, DecisionView, OverflowView, PlacementView, QueueView, SiloDepthView, SiloState, SiloView,
};

/// Columns of one silo.
const SILO: u16 = 26;
/// Rows of one silo.
const ROWS: u16 = 10;
/// Rows above the silos.
const HEAD: u16 = 4;
/// Cells of a bar; a mark stands where a queue is over.
const CELLS: usize = 10;

/// Draws the view.
pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, View::Placement.title());
    let Some(placement) = &picture.snapshot.placement else {
        pen.put(
            1,
            1,
            "No director runs: each stream keeps the silo of its number, and nobody reads the queues.",
            Tone::Plain,
        );
        pen.put(1, 2, "One runs with diagnostics: On, or with streams in the profile's block placement.", Tone::Dim);
        overflows(&picture.snapshot.silos, 3, pen);
        return;
    };
    head(placement, pen);
    if placement.snapshot == 0 {
        let wait = time(placement.refresh_ns);
        pen.put(1, HEAD, &format!("No snapshot yet: the first comes {wait} after the start."), Tone::Warn);
        return;
    }
    let shown = usize::from(pen.width() / SILO).max(1);
    let first = scrolled(model.cursor.silo, shown, placement.silos.len());
    let silos = placement.silos.iter().enumerate().skip(first).take(shown);
    for (x, (at, depth)) in (0..).step_by(usize::from(SILO)).zip(silos) {
        let height = ROWS.min(pen.height().saturating_sub(HEAD));
        let mut part = pen.part(x, HEAD, SILO, height);
        part.target_all(Some(Target::Silo(at)));
        silo(depth, placement, &mut part);
        life(picture.snapshot.silos.get(at), &mut part);
        // With one silo there is nothing to choose.
        if at == model.cursor.silo && placement.silos.len() > 1 {
            part.highlight(0);
        }
    }
    if first + shown < placement.silos.len() {
        let more = format!("{} more →", placement.silos.len() - first - shown);
        pen.put_right(0, pen.width().saturating_sub(1), HEAD, &more, Tone::Dim);
    }
    let y = overflows(&picture.snapshot.silos, HEAD + ROWS, pen);
    decisions(placement, y, pen);
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn head(placement: &PlacementView, pen: &mut Pen<'_>) {
    let PlacementView { strategy, streams, looks, .. } = placement;
    let moves = if placement.rebalances { "streams move" } else { "nothing moves" };
    let limits = [placement.high, placement.critical, placement.preferred_max];
    let limits = limits.map(|share| format!("{:.0}", share * 100.0)).join("/");
    let text = format!("{strategy} places {} streams, {moves}; high/critical/preferred {limits} %", count(*streams));
    pen.put(1, 1, &text, Tone::Plain);
    let is_old = placement.age_ns > 2 * placement.refresh_ns;
    let tone = if is_old { Tone::Warn } else { Tone::Plain };
    let age = time(placement.age_ns);
    let x = pen.put(1, 2, &format!("snapshot {} of {looks} looks, {age} old", count(placement.snapshot)), tone);
    let spread = placement.spread_points.map_or("–".to_owned(), |points| format!("{points:.1} points"));
    let x = pen.put(x + 2, 2, &format!("spread {spread}"), Tone::Plain);
    let [up, down] = placement.crossings;
    pen.put(x + 2, 2, &format!("crossed ↑{} ↓{}", count(up), count(down)), Tone::Plain);
    let high =
        if placement.placed_high > 0 { format!(" ({} high)", count(placement.placed_high)) } else { String::new() };
    let placed = format!("placed {}{high}", count(placement.placed));
    let mut x = pen.put(1, 3, &placed, if high.is_empty() { Tone::Plain } else { Tone::Warn });
    for (name, times) in [("refused", placement.refused), ("moves refused", placement.moves_refused)] {
        let tone = if times == 0 { Tone::Dim } else { Tone::Warn };
        x = pen.put(x + 2, 3, &format!("{name} {}", count(times)), tone);
    }
    x = pen.put(x + 2, 3, &format!("moves asked {}", count(placement.moves_asked)), Tone::Plain);
    if let Some(hindrance) = &placement.hindrance {
        pen.put(x + 2, 3, hindrance, Tone::Warn);
    }
}

/// One silo: a line of its own, then its queues, then what waits.
fn silo(depth: &SiloDepthView, placement: &PlacementView, pen: &mut Pen<'_>) {
    if let Some(why) = &depth.unknown {
        pen.put(1, 0, &format!("silo {} ✖ unknown", depth.silo), Tone::Bad);
        pen.put(1, 1, why, Tone::Bad);
        pen.put(1, 2, "takes no stream", Tone::Dim);
        return;
    }
    let (mark, tone) = match depth.pressed_for_ns {
        Some(_) => ("▲", Tone::Warn),
        None => ("●", Tone::Good),
    };
    let x = pen.put(1, 0, &format!("silo {}", depth.silo), Tone::Plain);
    let x = pen.put(x + 1, 0, mark, tone);
    let streams = if depth.streams == 1 { "stream" } else { "streams" };
    let x = pen.put(x + 1, 0, &format!("{} {streams}", count(depth.streams)), Tone::Plain);
    if let Some(for_ns) = depth.pressed_for_ns {
        pen.put(x + 1, 0, &time(for_ns), Tone::Warn);
    }
    for (y, queue) in (1..).zip(&depth.queues) {
        let tone = tone_of(queue, placement);
        pen.put(1, y, queue.queue, Tone::Dim);
        pen.put(8, y, &bar(queue.utilization, placement.enter), tone);
        pen.put_right(19, SILO - 1, y, &percent(queue.utilization), tone);
    }
    let y = 1 + depth.queues.len() as u16;
    let charge = if depth.charge > 0.0 { format!(" +{}", percent(depth.charge)) } else { String::new() };
    pen.put(1, y, &format!("avg {}{charge}  max {}", percent(depth.average), percent(depth.max)), Tone::Plain);
    let waits = format!("waits {}, {}", count(depth.waiting), time(depth.backlog_ns));
    let tone = if depth.errors > 0 { Tone::Warn } else { Tone::Dim };
    pen.put(1, y + 1, &format!("{waits}  err {}", count(depth.errors)), tone);
}

/// What is other than that it lives, over its first line.
fn life(silo: Option<&SiloView>, pen: &mut Pen<'_>) {
    let Some(silo) = silo.filter(|silo| silo.life.state != SiloState::Live) else { return };
    let (mark, tone) = match silo.life.state {
        SiloState::Dying | SiloState::Dead => ("✖", Tone::Bad),
        _ => ("▲", Tone::Warn),
    };
    let width = pen.width().saturating_sub(1);
    pen.part(0, 0, width, 1).blank();
    let text = format!("silo {} {mark} {} {}", silo.id, silo.life.state.name(), time(silo.life.age_ns));
    let x = pen.put(1, 0, &text, tone);
    if let Some(heir) = silo.life.heir {
        pen.put(x + 1, 0, &format!("heir {heir}"), Tone::Plain);
    }
}

fn tone_of(queue: &QueueView, placement: &PlacementView) -> Tone {
    match (queue.utilization >= placement.critical, queue.is_over) {
        (true, _) => Tone::Bad,
        (false, true) => Tone::Warn,
        (false, false) => Tone::Plain,
    }
}

/// `▮▮▮▮▮▯▯▯│▯▯`: a mark where the limit is.
fn bar(share: f64, limit: f64) -> String {
    let filled = (share * CELLS as f64).round() as usize;
    let mark = (limit * CELLS as f64).round() as usize;
    let cell = |at: usize| if at < filled { '▮' } else { '▯' };
    (0..CELLS).flat_map(|at| (at == mark).then_some('│').into_iter().chain([cell(at)])).collect()
}

/// Shots that found no slot, a line for each silo that has any; returns the first row below.
fn overflows(silos: &[SiloView], top: u16, pen: &mut Pen<'_>) -> u16 {
    let strategy = silos.first().map_or("", |silo| silo.overflow.strategy);
    pen.put(1, top, &format!("no slot: {strategy}"), Tone::Title);
    let mut y = top;
    for silo in silos.iter().filter(|silo| silo.overflow.episodes > 0).take(4) {
        y += 1;
        let tone = if silo.overflow.full_for_ns.is_some() { Tone::Warn } else { Tone::Plain };
        pen.put(1, y, &overflow(silo.id, &silo.overflow), tone);
    }
    if y == top {
        pen.put(1 + 9 + strategy.len() as u16 + 2, y, "every shot found one", Tone::Dim);
    }
    y + 1
}

fn overflow(silo: u32, overflow: &OverflowView) -> String {
    let waits_for =
        overflow.full_silo.filter(|full| *full != silo).map_or(String::new(), |full| format!(" (silo {full})"));
    let now = overflow.full_for_ns.map_or(String::new(), |ns| format!(" ▲ full for {}{waits_for}", time(ns)));
    let outcomes: Vec<String> =
        overflow.outcomes.iter().map(|outcome| format!("{} {}", outcome.outcome, count(outcome.count))).collect();
    let (episodes, longest, recovery) =
        (count(overflow.episodes), time(overflow.longest_ns), time(overflow.recovery_ns_max));
    let outcomes = outcomes.join(" ");
    format!("silo {silo}{now}: {episodes} times, longest {longest}, over {recovery} after a slot; {outcomes}")
}

fn decisions(placement: &PlacementView, top: u16, pen: &mut Pen<'_>) {
    pen.put(1, top, "last decisions, and what they were made on", Tone::Title);
    if placement.decisions.is_empty() {
        pen.put(1, top + 1, "none yet", Tone::Dim);
    }
    let room = usize::from(pen.height().saturating_sub(top + 1));
    for (y, made) in (top + 1..).zip(placement.decisions.iter().take(room)) {
        let tone = match made.what {
            "placed" | "move" => Tone::Plain,
            _ => Tone::Warn,
        };
        pen.put(1, y, &decision(made), tone);
    }
}

fn decision(made: &DecisionView) -> String {
    let DecisionView { number, stream, .. } = made;
    let age = time(made.age_ns);
    let silo = |silo: Option<u32>| silo.map_or("–".to_owned(), |silo| silo.to_string());
    let what = match made.what {
        "placed" => format!("stream {stream} to silo {}", silo(made.to)),
        "placed_high" => format!("stream {stream} to silo {}, all silos high", silo(made.to)),
        "move" => format!("move stream {stream}, silo {} → {}", silo(made.from), silo(made.to)),
        "move_refused" => format!("no move of stream {stream}, silo {} → {}", silo(made.from), silo(made.to)),
        _ => format!("stream {stream} refused"),
    };
    let why = made.why.map_or(String::new(), |why| format!(", {why}"));
    let on: Vec<String> = made.on.iter().map(candidate).collect();
    format!("#{number} {age} ago: {what}{why}; {}", on.join(" against "))
}

fn candidate(one: &CandidateView) -> String {
    let charge = if one.charge == 0.0 { String::new() } else { format!("{:+.0}%", one.charge * 100.0) };
    let (average, max, late) = (percent(one.average), percent(one.max), time(one.backlog_ns));
    format!("{}: avg {average} max {max}{charge} {late}", one.silo)
}

#[cfg(test)]
mod tests {
    use super::{bar, decision};
    use crate::source::synthetic::{Trouble, placement};

    #[test]
    fn a_bar_has_a_mark_at_the_limit_whatever_is_filled() {
        assert_eq!(bar(0.0, 0.8), "▯▯▯▯▯▯▯▯│▯▯");
        assert_eq!(bar(0.5, 0.8), "▮▮▮▮▮▯▯▯│▯▯");
        assert_eq!(bar(1.0, 0.8), "▮▮▮▮▮▮▮▮│▮▮");
    }

    #[test]
    fn a_decision_is_told_with_the_numbers_that_it_was_made_on() {
        let view = placement(20, Trouble::All);
        let told = decision(&view.decisions[0]);
        assert!(told.contains("move stream 3, silo 0 → 1, hot; 0: avg 41% max 92%"), "{told}");
    }
}
