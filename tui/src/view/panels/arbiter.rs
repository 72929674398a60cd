//! Arbiter: who may write which page, and who waits? Left: decisions and ports. Right: grants in
//! progress, leases, the history of one page.

use super::{rows_of, shown_silo, which_silo};
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time};
use crate::widgets::pen::Pen;
use crate::widgets::wrap;
use pinwheel_edge::page::Hint;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{ArbiterView, MovesView, TransferView};

/// Columns of the left part.
const LEFT: u16 = 34;
/// Rows above the two parts.
const HEAD: u16 = 4;
/// Fewest columns for full names of the states.
const ROOMY: u16 = 100;
/// Refusals in a row from which a port is marked.
const AGE_MARKED: u64 = 4;

/// A line of the right part.
type Line = (String, Tone);

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let x = pen.rule(0, View::Arbiter.heading());
    let Some((silo, derived)) = shown_silo(model, picture, "Pages appear with their arbiter.", pen) else { return };
    let Some(arbiter) = &silo.arbiter else {
        no_arbiter(silo.id, pen);
        return;
    };
    let right = pen.width().saturating_sub(1);
    pen.put_right(x, right, 0, &format!(" {} ", which_silo(model, silo.id)), Tone::Accent);
    head(silo.id, arbiter, pen);
    let (width, height) = (pen.width(), pen.height());
    left(arbiter, &derived.decisions_per_s, &mut pen.part(0, HEAD, LEFT, height.saturating_sub(HEAD)));
    let mut right = pen.part(LEFT, HEAD, width.saturating_sub(LEFT), height.saturating_sub(HEAD));
    let lines = lines(arbiter, silo.moves.as_ref(), usize::from(right.width()).saturating_sub(1));
    let rows = rows_of(&right, 0);
    let first = model.cursor.arbiter.min(lines.len().saturating_sub(rows));
    let below = lines.len().saturating_sub(first + rows);
    let shown = if below > 0 { rows.saturating_sub(1) } else { rows };
    for (y, (text, tone)) in (0..).zip(lines.iter().skip(first)).take(shown) {
        right.put(0, y, text, *tone);
    }
    if below > 0 {
        right.put(0, shown as u16, &format!("{} more lines below", below + 1), Tone::Accent);
    }
}

fn no_arbiter(silo: u32, pen: &mut Pen<'_>) {
    let why = format!("No arbiter runs in silo {silo}: each stream stays with it, and no page moves.");
    pen.put(1, 1, &why, Tone::Plain);
    pen.put(1, 2, "pinwheel arbiter runs an arbiter alone, and shows it here.", Tone::Dim);
}

fn head(silo: u32, arbiter: &ArbiterView, pen: &mut Pen<'_>) {
    let mut x = pen.put(1, 1, &format!("silo {silo}: {} pages", count(arbiter.pages)), Tone::Plain);
    // Doubtful grants come first, so that no width cuts them off.
    let (doubt, rest): (Vec<_>, Vec<_>) = arbiter.states.iter().partition(|(name, _)| *name == "IN_DOUBT");
    for (name, pages) in doubt.into_iter().chain(rest) {
        let tone = if name == "IN_DOUBT" && pages > 0 { Tone::Bad } else { Tone::Plain };
        let name = if pen.width() < ROOMY { short(name) } else { name };
        x = pen.put(x + 2, 1, &format!("{name} {}", count(pages)), tone);
    }
    let mut x = pen.put(1, 2, "pages", Tone::Dim) + 1;
    // Errors come first, for the same reason.
    for (name, times, tone) in [
        ("torn", arbiter.torn, Tone::Bad),
        ("doubted", arbiter.doubted, Tone::Warn),
        ("forced", arbiter.forced, Tone::Warn),
        ("taken over", arbiter.taken_over, Tone::Warn),
        ("unheard", arbiter.unheard, Tone::Warn),
        ("left", arbiter.left, Tone::Plain),
        ("arrived", arbiter.arrived, Tone::Plain),
        ("kept", arbiter.kept, Tone::Plain),
    ] {
        if times > 0 || tone == Tone::Plain {
            x = pen.put(x, 2, &format!("{name} {}", count(times)), tone) + 1;
        }
    }
    let (of, counted) = (shown_quantiles(pen.width()), time(arbiter.counted_age_ns));
    let names = of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("/");
    let (decision, transfer) = (quantiles(&arbiter.decision, of), quantiles(&arbiter.transfer, of));
    let text = format!("{names}: decision {decision}, grant to its ACK {transfer}; read {counted} ago");
    pen.put(1, 3, &text, Tone::Dim);
}

/// Percentiles with their names.
type Percentiles = &'static [(&'static str, f64)];

/// The percentiles that have room.
fn shown_quantiles(width: u16) -> Percentiles {
    const ALL: Percentiles = &[("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];
    if width < ROOMY { &ALL[..2] } else { ALL }
}

/// The short name of a state.
fn short(name: &'static str) -> &'static str {
    match name {
        "LOCAL_HOT" => "HOT",
        "TRANSFERRING" => "MOVING",
        "NOT_OWNER" => "AWAY",
        name => name,
    }
}

fn quantiles(times: &Histogram, of: Percentiles) -> String {
    match times.count() {
        0 => "–".to_owned(),
        _ => of.iter().map(|(_, share)| time(times.quantile_ns(*share))).collect::<Vec<_>>().join("/"),
    }
}

/// Decisions by response, then ports.
fn left(arbiter: &ArbiterView, rates: &[f64], pen: &mut Pen<'_>) {
    pen.put(1, 0, "answer", Tone::Dim);
    pen.put_right(16, 24, 0, "times", Tone::Dim);
    pen.put_right(25, 33, 0, "per s", Tone::Dim);
    let mut y = 1;
    for (i, (name, times)) in arbiter.decisions.iter().enumerate() {
        let tone = if *times == 0 { Tone::Dim } else { Tone::Plain };
        pen.put(1, y, name, tone);
        pen.put_right(16, 24, y, &count(*times), tone);
        let per_s = rate(rates.get(i).copied());
        pen.put_right(25, 33, y, per_s.trim_end_matches("/s"), tone);
        y += 1;
    }
    if arbiter.ports.is_empty() {
        pen.put(1, y, "no request from another silo yet", Tone::Dim);
        return;
    }
    for (x, heading) in [(1, "port"), (12, "wins"), (20, "refused"), (30, "age")] {
        pen.put(x, y, heading, Tone::Dim);
    }
    for port in &arbiter.ports {
        y += 1;
        let tone = if port.age >= AGE_MARKED { Tone::Warn } else { Tone::Plain };
        pen.put(1, y, &format!("silo {}", port.silo), tone);
        pen.put_right(8, 16, y, &count(port.wins), tone);
        pen.put_right(18, 27, y, &count(port.refusals), tone);
        pen.put_right(28, 33, y, &count(port.age), tone);
    }
}

/// The last line that the right part of a view of this size can begin with.
pub fn scroll_last(model: &Model, (width, height): (u16, u16)) -> usize {
    let Some((silo, arbiter)) = model.silo().and_then(|silo| Some((silo, silo.arbiter.as_ref()?))) else { return 0 };
    let lines = lines(arbiter, silo.moves.as_ref(), usize::from(width.saturating_sub(LEFT + 1)));
    lines.len().saturating_sub(usize::from(height.saturating_sub(HEAD)))
}

fn lines(arbiter: &ArbiterView, moves: Option<&MovesView>, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let heading = format!("grants out {}: page, receiver, epoch, age", arbiter.transfers_open);
    lines.push((heading, Tone::Dim));
    // Doubtful grants first.
    let (doubted, open): (Vec<_>, Vec<_>) = arbiter.transfers.iter().partition(|transfer| transfer.remedy.is_some());
    for transfer in doubted.into_iter().chain(open) {
        grant(transfer, width, &mut lines);
    }
    moved(moves, width, &mut lines);
    lines.push((format!("leases here {}: page, for, left", arbiter.leases.len()), Tone::Dim));
    for lease in &arbiter.leases {
        let hint = if lease.hint == Hint::Lock { "LOCK" } else { "LEASE" };
        let left = if lease.left_ns == 0 { "expired, no request".to_owned() } else { time(lease.left_ns) };
        lines.push((format!("{:>7}  {hint:<6} {left}", lease.page), Tone::Plain));
    }
    let Some(page) = arbiter.history_page else {
        lines.push(("no page has moved yet".to_owned(), Tone::Dim));
        return lines;
    };
    lines.push((format!("page {page}: before, why, state, owner, epoch"), Tone::Dim));
    let newest_ns = arbiter.history.last().map_or(0, |seen| seen.at_ns);
    for seen in arbiter.history.iter().rev() {
        let before = time(newest_ns.saturating_sub(seen.at_ns));
        let tone = if seen.state == "IN_DOUBT" { Tone::Bad } else { Tone::Plain };
        let (why, state) = (seen.cause.words(), seen.state);
        lines.push((format!("{before:>6} {why:<16} {state:<12} {:>2} {}", seen.owner, seen.epoch), tone));
    }
    lines
}

/// Moves of streams of this silo's feed; nothing before the first request.
fn moved(moves: Option<&MovesView>, width: usize, lines: &mut Vec<Line>) {
    let Some(moves) = moves.filter(|moves| moves.asked > 0) else { return };
    let pause = quantiles(&moves.pause, shown_quantiles(u16::MAX));
    let (done, failed) = (count(moves.done), count(moves.failed));
    let heading = format!("moves made {done}, given up {failed}; pause p50/p99/p99.9 {pause}");
    lines.extend(broken(&heading, width, Tone::Dim));
    for one in &moves.open {
        let (stage, age) = (one.stage.name(), time(one.age_ns));
        lines.push((format!("{:>7}  silo {} to {}  {stage} {age}", one.stream, one.from, one.to), Tone::Plain));
    }
    if let Some(failure) = &moves.last_failure {
        let (stage, age) = (failure.stage.name(), time(failure.age_ns));
        let text = format!("stream {} stayed, {stage} {age} ago: {}", failure.stream, failure.why);
        lines.extend(broken(&text, width, Tone::Warn));
    }
}

fn grant(transfer: &TransferView, width: usize, lines: &mut Vec<Line>) {
    let TransferView { page, receiver, epoch, age_ns, remedy, .. } = transfer;
    let row = format!("{page:>7}  silo {receiver:<2} {epoch:>6}  {}", time(*age_ns));
    let Some(remedy) = remedy else {
        lines.push((row, Tone::Plain));
        return;
    };
    lines.push((format!("{row}  ✖ IN_DOUBT"), Tone::Bad));
    lines.extend(broken(remedy, width, Tone::Bad));
}

/// A sentence as lines, at least as wide as legible text needs.
fn broken(text: &str, width: usize, tone: Tone) -> impl Iterator<Item = Line> {
    let width = width.max(20);
    wrap::rows(text, width, width).map(move |row| (row.to_owned(), tone))
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::tests::synthetic::{SyntheticFaults, arbiter};
    use crate::theme::Tone;
    use pinwheel_engine::board::histogram::Histogram;
    use pinwheel_engine::board::snapshot::{MoveFailure, MoveView, MovesView};
    use pinwheel_engine::streams::MoveStage;

    #[test]
    fn a_page_in_doubt_stands_first_in_red_and_says_what_to_do() {
        let view = arbiter(20, SyntheticFaults::All);
        let shown = lines(&view, None, 44);
        assert!(shown[1].0.contains("IN_DOUBT") && shown[1].1 == Tone::Bad, "{:?}", shown[1]);
        let remedy: String =
            shown.iter().filter(|(_, tone)| *tone == Tone::Bad).map(|(text, _)| text.as_str()).collect();
        assert!(remedy.contains("join its"), "{remedy}");
        assert!(shown.len() >= 1 + 2 + 1 + 2 + 1 + 16);
    }

    #[test]
    fn a_move_is_shown_by_its_stage_and_one_given_up_by_its_reason() {
        let (mut moves, none) = (moves(), arbiter(20, SyntheticFaults::None));
        let before = lines(&none, Some(&moves), 44).len();
        assert_eq!(before, lines(&none, None, 44).len(), "nothing was asked for");
        moves.asked = 2;
        moves.open = vec![MoveView { stream: 5, from: 0, to: 2, stage: MoveStage::Transfer, age_ns: 40_000 }];
        let why =
            "silo 1 did not receive the page before the move's deadline (last response of silo 0: lease_active); \
                   lease_active: repeat the move after the lease ends; nothing: check the threads of both silos"
                .to_owned();
        let (stream, from, to, stage, age_ns) = (3, 0, 1, MoveStage::Transfer, 7);
        moves.last_failure = Some(MoveFailure { stream, from, to, stage, age_ns, why });
        let shown = lines(&none, Some(&moves), 44);
        assert!(shown.iter().any(|(line, _)| line.contains("5  silo 0 to 2  transfer")), "{shown:?}");
        let warned: Vec<_> = shown.iter().filter(|(_, tone)| *tone == Tone::Warn).map(|(text, _)| &**text).collect();
        assert!(
            warned.join(" ").contains("stream 3 stayed") && warned.join(" ").contains("lease_active"),
            "{warned:?}"
        );
    }

    fn moves() -> MovesView {
        MovesView {
            asked: 0,
            needless: 0,
            done: 0,
            failed: 0,
            last_failure: None,
            open: Vec::new(),
            staged: 0,
            stage_waits: 0,
            handed_on: 0,
            lane_waits: 0,
            taken_in: 0,
            sent_back: 0,
            pause: Histogram::default(),
            quiesce: Histogram::default(),
            transfer: Histogram::default(),
        }
    }
}
