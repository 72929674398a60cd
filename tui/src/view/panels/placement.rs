//! Placement: which silo is full, and which stream should move? Limits and moves in progress; the
//! silos side by side with a bar for each queue and its limit; then shots without a slot, then the
//! last decisions with the numbers behind them.

use super::{lifecycle_look, scrolled};
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{
    CandidateView, DecisionView, MovesView, OverflowView, PlacementView, QueueView, SiloDepthView, SiloView,
};
use pinwheel_engine::streams::MoveStage;

/// Fewest columns of a silo; it grows with the room.
const SILO: u16 = 26;
const SILO_MAX: u16 = 50;
/// Columns of a silo besides its bars.
const BESIDE: u16 = 16;
/// Fewest columns for two sentences side by side.
const ROOMY: u16 = 140;
/// Rows of one silo.
const ROWS: u16 = 10;
/// Rows above the silos.
const HEAD: u16 = 6;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, View::Placement.heading());
    let Some(placement) = &picture.snapshot.placement else {
        pen.put(
            1,
            1,
            "No director runs: each stream keeps the silo of its number, and queues are not sampled.",
            Tone::Plain,
        );
        pen.put(1, 2, "It runs with diagnostics: On, or with streams in the profile's block placement.", Tone::Dim);
        moves(&picture.snapshot.silos, None, 3, pen);
        overflows(&picture.snapshot.silos, 4, pen);
        return;
    };
    head(placement, pen);
    moves(&picture.snapshot.silos, Some(placement), 4, pen);
    if placement.snapshot == 0 {
        let wait = time(placement.refresh_ns);
        pen.put(1, HEAD, &format!("No snapshot yet: the first comes {wait} after the start."), Tone::Warn);
        return;
    }
    let all = u16::try_from(placement.silos.len()).unwrap_or(u16::MAX).max(1);
    let width = (pen.width() / all).clamp(SILO, SILO_MAX);
    let shown = usize::from(pen.width() / width).max(1);
    let first = scrolled(model.cursor.silo, shown, placement.silos.len());
    let silos = placement.silos.iter().enumerate().skip(first).take(shown);
    for (x, (at, depth)) in (0..).step_by(usize::from(width)).zip(silos) {
        let height = ROWS.min(pen.height().saturating_sub(HEAD));
        let mut part = pen.part(x, HEAD, width, height);
        part.target_all(Some(Target::Silo(at)));
        silo(depth, placement, &mut part);
        lifecycle_line(picture.snapshot.silos.get(at), &mut part);
        // With one silo there is no choice.
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

/// Placement policy, limits, and the age of the snapshot.
fn head(placement: &PlacementView, pen: &mut Pen<'_>) {
    let PlacementView { strategy, streams, samples, .. } = placement;
    let who = match (streams, placement.rebalances) {
        (0, _) => "no stream is placed, each keeps the silo of its number".to_owned(),
        (_, true) => format!("{} streams are placed, and may move later", count(*streams)),
        (_, false) => format!("{} streams are placed, and do not move later", count(*streams)),
    };
    pen.put(1, 1, &format!("strategy {strategy}: {who}"), Tone::Plain);
    let [over, under, mean, one] = [placement.enter, placement.leave, placement.high, placement.critical]
        .map(|share| format!("{:.0}", share * 100.0));
    let mut limits =
        format!("limits %: queue over {over} (│) until under {under}; silo closed: mean {mean}, one queue {one}");
    if pen.width() >= ROOMY {
        limits += &format!("; preferred where no queue is over {:.0}", placement.preferred_max * 100.0);
    }
    pen.put(1, 2, &limits, Tone::Dim);
    let is_old = placement.age_ns > 2 * placement.refresh_ns;
    let tone = if is_old { Tone::Warn } else { Tone::Plain };
    let age = time(placement.age_ns);
    let reading = format!("reading {} ({samples} samples) {age} old", count(placement.snapshot));
    let x = pen.put(1, 3, &reading, tone);
    let spread = placement.spread_points.map_or("–".to_owned(), |points| format!("{points:.1} points"));
    let x = pen.put(x + 2, 3, &format!("spread {spread}"), Tone::Plain);
    let [up, down] = placement.crossings;
    pen.put(x + 2, 3, &format!("queues over {}, back {}", count(up), count(down)), Tone::Plain);
}

/// Moves by stage and their outcomes; then placements, and why a needed move is not made.
fn moves(silos: &[SiloView], placement: Option<&PlacementView>, top: u16, pen: &mut Pen<'_>) {
    let known: Vec<&MovesView> = silos.iter().filter_map(|silo| silo.moves.as_ref()).collect();
    let sum = |part: fn(&MovesView) -> u64| known.iter().map(|moves| part(moves)).sum::<u64>();
    let open = || known.iter().flat_map(|moves| &moves.open);
    let mut x = pen.put(1, top, "moves", Tone::Title) + 1;
    if known.is_empty() {
        x = pen.put(x, top, "with one silo there is no target for a move", Tone::Dim);
    }
    for stage in MoveStage::ALL {
        let now = open().filter(|one| one.stage == stage).count() as u64;
        if now > 0 {
            x = pen.put(x, top, &format!("{} {}", stage.name(), count(now)), Tone::Accent) + 1;
        }
    }
    if !known.is_empty() && open().next().is_none() {
        x = pen.put(x, top, "none in progress", Tone::Dim) + 1;
    }
    let given_up = sum(|moves| moves.failed);
    let refused = placement.map_or(0, |placement| placement.moves_refused);
    let asked = placement.map_or(0, |placement| placement.moves_asked);
    for (name, times, tone) in [
        ("made", sum(|moves| moves.done), Tone::Plain),
        ("given up", given_up, if given_up > 0 { Tone::Warn } else { Tone::Dim }),
        ("by placement", asked, Tone::Plain),
        ("refused", refused, if refused > 0 { Tone::Warn } else { Tone::Dim }),
    ] {
        if !known.is_empty() {
            x = pen.put(x + 1, top, &format!("{name} {}", count(times)), tone);
        }
    }
    let Some(placement) = placement else { return };
    if let Some(hindrance) = placement.hindrance.as_ref().filter(|_| pen.width() < ROOMY) {
        pen.put(1, top + 1, hindrance, Tone::Warn);
        return;
    }
    let tone = if placement.placed_high > 0 { Tone::Warn } else { Tone::Plain };
    let placed = format!("placed {}, with every silo closed {}", count(placement.placed), count(placement.placed_high));
    let x = pen.put(1, top + 1, &placed, tone);
    let tone = if placement.refused > 0 { Tone::Warn } else { Tone::Dim };
    let x = pen.put(x + 2, top + 1, &format!("refused {}", count(placement.refused)), tone);
    let oldest = open().max_by_key(|one| one.age_ns);
    match (&placement.hindrance, oldest) {
        (Some(hindrance), _) => {
            pen.put(x + 2, top + 1, hindrance, Tone::Warn);
        }
        (None, Some(one)) => {
            let (stage, age) = (one.stage.name(), time(one.age_ns));
            let text = format!("oldest: stream {}, silo {} → {}, {stage} for {age}", one.stream, one.from, one.to);
            pen.put(x + 2, top + 1, &text, Tone::Accent);
        }
        (None, None) => {}
    }
}

/// One silo: its summary, then its queues, then waiting shots.
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
        let (width, cells) = (pen.width(), usize::from(pen.width().saturating_sub(BESIDE)));
        pen.put(8, y, &bar(queue.utilization, placement.enter, cells), tone);
        pen.put_right(width.saturating_sub(7), width.saturating_sub(1), y, &percent(queue.utilization), tone);
    }
    let y = 1 + depth.queues.len() as u16;
    let charge = if depth.charge > 0.0 { format!("+{}", percent(depth.charge)) } else { String::new() };
    let (mean, max) = (percent(depth.average), percent(depth.max));
    pen.put(1, y, &format!("mean {mean}{charge}, fullest {max}"), Tone::Plain);
    let waits = match depth.waiting {
        0 => "nothing waits".to_owned(),
        waiting => format!("{} wait: {} of work", count(waiting), time(depth.backlog_ns)),
    };
    let x = pen.put(1, y + 1, &waits, Tone::Dim);
    if depth.errors > 0 {
        pen.put(x, y + 1, &format!(", errors {}", count(depth.errors)), Tone::Warn);
    }
}

/// The silo's lifecycle state, if it is not live, over its first line.
fn lifecycle_line(silo: Option<&SiloView>, pen: &mut Pen<'_>) {
    let Some((silo, (mark, state, tone))) = silo.and_then(|silo| Some((silo, lifecycle_look(silo)?))) else { return };
    let width = pen.width().saturating_sub(1);
    pen.part(0, 0, width, 1).blank();
    let text = format!("silo {} {mark} {state}", silo.id);
    let x = pen.put(1, 0, &text, tone);
    if let Some(successor) = silo.lifecycle.successor {
        pen.put(x + 1, 0, &format!("successor {successor}"), Tone::Plain);
    }
}

fn tone_of(queue: &QueueView, placement: &PlacementView) -> Tone {
    match (queue.utilization >= placement.critical, queue.is_over) {
        (true, _) => Tone::Bad,
        (false, true) => Tone::Warn,
        (false, false) => Tone::Plain,
    }
}

/// `▮▮▮▮▮▯▯▯│▯▯`: the mark shows the limit.
fn bar(share: f64, limit: f64, cells: usize) -> String {
    let filled = (share * cells as f64).round() as usize;
    let mark = (limit * cells as f64).round() as usize;
    let cell = |at: usize| if at < filled { '▮' } else { '▯' };
    (0..cells).flat_map(|at| (at == mark).then_some('│').into_iter().chain([cell(at)])).collect()
}

/// Shots without a slot, a line for each silo that has some; returns the first row below.
fn overflows(silos: &[SiloView], top: u16, pen: &mut Pen<'_>) -> u16 {
    let strategy = silos.first().map_or("", |silo| silo.overflow.strategy);
    let x = pen.put(1, top, &format!("shots without a slot ({strategy})"), Tone::Title);
    let mut y = top;
    for silo in silos.iter().filter(|silo| silo.overflow.episodes > 0).take(4) {
        let tone = if silo.overflow.full_for_ns.is_some() { Tone::Warn } else { Tone::Plain };
        y = pen.put_wrapped(1, y + 1, &overflow(silo.id, &silo.overflow), tone) - 1;
    }
    if y == top {
        pen.put(x + 1, y, "none: every shot found a slot", Tone::Dim);
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
    pen.put(1, top, "last decisions, and their numbers", Tone::Title);
    if placement.decisions.is_empty() {
        let why = "none yet: one is made for each new stream, and when a silo stays too full while another has room";
        pen.put_wrapped(1, top + 1, why, Tone::Dim);
    }
    let mut y = top + 1;
    for made in &placement.decisions {
        if y >= pen.height() {
            break;
        }
        let tone = match made.what {
            "placed" | "move" => Tone::Plain,
            _ => Tone::Warn,
        };
        y = pen.put_wrapped(1, y, &decision(made), tone);
    }
}

fn decision(made: &DecisionView) -> String {
    let DecisionView { number, stream, .. } = made;
    let age = time(made.age_ns);
    let silo = |silo: Option<u32>| silo.map_or("–".to_owned(), |silo| silo.to_string());
    let what = match made.what {
        "placed" => format!("stream {stream} to silo {}", silo(made.to)),
        "placed_high" => format!("stream {stream} to silo {}, all silos too full", silo(made.to)),
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
    let (average, max) = (percent(one.average), percent(one.max));
    format!("silo {} mean {average} fullest {max}{charge} {}", one.silo, time(one.backlog_ns))
}

#[cfg(test)]
mod tests {
    use super::{bar, decision};
    use crate::tests::synthetic::{SyntheticFaults, placement};

    #[test]
    fn a_bar_has_a_mark_at_the_limit_whatever_is_filled() {
        assert_eq!(bar(0.0, 0.8, 10), "▯▯▯▯▯▯▯▯│▯▯");
        assert_eq!(bar(0.5, 0.8, 10), "▮▮▮▮▮▯▯▯│▯▯");
        assert_eq!(bar(1.0, 0.8, 10), "▮▮▮▮▮▮▮▮│▮▮");
    }

    #[test]
    fn a_decision_is_shown_with_the_numbers_it_is_based_on() {
        let view = placement(20, SyntheticFaults::All);
        let told = decision(&view.decisions[0]);
        assert!(told.contains("move stream 3, silo 0 → 1, hot; silo 0 mean 41% fullest 92%"), "{told}");
    }
}
