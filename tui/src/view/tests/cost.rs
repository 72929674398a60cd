//! Cost of a picture: time relative to a plain screen of the library's own widgets, allocator
//! calls, memory over an hour.

use super::{COLOUR, VIEWS, keys, watched};
use crate::keymap::key::Key;
use crate::model::View;
use crate::msg::{Finished, Msg};
use crate::term::output::{Frames, Gather, gathered};
use crate::tests::synthetic::{SyntheticFaults, snapshot};
use crate::update::update;
use crate::view::{draw, view};
use pinwheel_engine::board::snapshot::ActionView;
use pinwheel_engine::engine::calls_of;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, List, Paragraph, Sparkline};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use std::time::Instant;

/// Most time of a view, as a multiple of the plain screen's.
const RATIO_MAX: f64 = 1.5;
/// Most allocator calls for a picture of 80×24.
const CALLS_MAX: u64 = 500;
/// Most allocator calls for a picture of 200×60.
const CALLS_MAX_LARGE: u64 = 950;

fn terminal((columns, rows): (u16, u16)) -> (Terminal<CrosstermBackend<Gather>>, Frames) {
    let options = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, columns, rows)) };
    let (gather, frames) = gathered();
    (Terminal::with_options(CrosstermBackend::new(gather), options).unwrap(), frames)
}

/// Areas of ten panels of equal size, two per row. Computed once, by plain arithmetic: the
/// library's solver costs more than all the drawing, and no frame needs it.
fn areas((columns, rows): (u16, u16)) -> Vec<Rect> {
    let (width, height) = (columns / 2, rows / 5);
    (0..10).map(|at| Rect::new(at % 2 * width, at / 2 * height, width, height)).collect()
}

/// A plain screen of ten framed panels in the library's usual style: changing numbers, built anew
/// for each frame.
fn plain(tenth: u64, areas: &[Rect], frame: &mut Frame<'_>) {
    let value = |i: u64| (tenth * 7 + i * 13) % 97;
    let style = |i: u64| Style::new().fg(if value(i) > 80 { Color::Red } else { Color::Green });
    let fact = |i: u64| format!("fact {i}: {}.{}k/s, {}us", value(i), value(i + 1) % 10, value(i + 2));
    for (at, area) in (0..).zip(areas) {
        let block = Block::bordered().title(format!(" panel {at} ")).border_style(Style::new().fg(Color::Cyan));
        let facts = (0..u64::from(area.height - 2)).map(|i| Line::styled(fact(at + i), style(at + i)));
        match at % 5 {
            0 | 1 => frame.render_widget(Paragraph::new(facts.collect::<Vec<_>>()).block(block), *area),
            2 => frame.render_widget(List::new(facts).block(block), *area),
            3 => {
                let gauge = Gauge::default().ratio(value(at) as f64 / 97.0).gauge_style(style(at));
                frame.render_widget(gauge.block(block), *area);
            }
            _ => {
                let data: Vec<u64> = (0..u64::from(area.width - 2)).map(|x| value(x + at)).collect();
                frame.render_widget(Sparkline::default().data(data).style(style(at)).block(block), *area);
            }
        }
    }
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// An hour of different pictures at ten a second. Measures the memory of the process, so it runs
/// alone; the engine's allocator counts the calls of hot threads, not the memory in use.
#[test]
#[ignore = "36,000 pictures: run in release, by itself"]
#[expect(clippy::print_stderr, reason = "a measurement is printed")]
fn an_hour_of_pictures_holds_no_more_memory_than_its_first_minutes() {
    let (mut terminal, mut frames) = terminal((200, 60));
    let mut model = watched(COLOUR, (200, 60), SyntheticFaults::All);
    let pictures: Vec<_> = (0..100).map(|tenth| snapshot(100 + tenth, SyntheticFaults::All)).collect();
    let (mut spare, mut early) = (Vec::new(), 0);
    for at in 0..36_000u64 {
        let mut snapshot = pictures[at as usize % pictures.len()].clone();
        snapshot.at_ns = (100 + at) * 100_000_000;
        snapshot.control.actions = at / 50;
        snapshot.control.last = (at >= 50).then(|| ActionView { what: format!("deed {at}"), at_ns: snapshot.at_ns });
        let message =
            Msg::Snapshot { now_ns: snapshot.at_ns, snapshot: Some(Box::new(snapshot)), finished: Finished::No };
        update(&mut model, message);
        if at % 20 == 0 {
            let key = VIEWS[at as usize / 20 % VIEWS.len()];
            keys(&mut model, &[Key::Char(key), Key::Down, Key::Char('m'), Key::Enter]);
        }
        terminal.draw(|frame| view(&model, frame)).unwrap();
        spare = frames.take(spare);
        spare.clear();
        if at == 3_000 {
            early = resident();
        }
    }
    let (late, grown) = (resident(), resident().saturating_sub(early));
    eprintln!("resident after 5 minutes {} KiB, after an hour {} KiB", early >> 10, late >> 10);
    assert!(grown < 2 << 20, "{grown} bytes more");
}

/// Calls of the allocator (blocks taken, given back, grown) that a picture may make: its texts, twice each. They repeat
/// exactly where times do not, so that this is what notices a view that begins to cost more.
#[test]
#[expect(clippy::print_stderr, reason = "a measurement is printed")]
fn a_picture_asks_the_allocator_for_little_more_than_its_texts() {
    for (size, limit) in [((80, 24), CALLS_MAX), ((200, 60), CALLS_MAX_LARGE)] {
        for (shown, key) in View::ALL.into_iter().zip(VIEWS) {
            let mut model = watched(COLOUR, size, SyntheticFaults::All);
            keys(&mut model, &[Key::Char(key)]);
            let area = Rect::new(0, 0, size.0, size.1);
            let mut buffer = Buffer::empty(area);
            draw(&model, area, &mut buffer);
            let ((), calls) = calls_of(|| draw(&model, area, &mut buffer));
            eprintln!("{}x{} {shown:?}: {calls} calls", size.0, size.1);
            assert!((1..=limit).contains(&calls), "{shown:?} {size:?}: {calls} calls");
        }
    }
}

/// The median: a frame disturbed by the machine does not count.
fn median(mut ns: Vec<u128>) -> f64 {
    ns.sort_unstable();
    ns[ns.len() / 2] as f64 / 1e3
}

/// Times each view against the plain screen, with frames of both in turn.
#[test]
#[ignore = "a measurement: run in release"]
#[expect(clippy::print_stderr, reason = "a measurement is printed")]
fn frame_cost() {
    let snapshots: Vec<_> = (100..400).map(|tenth| (tenth, Box::new(snapshot(tenth, SyntheticFaults::All)))).collect();
    for size in [(80, 24), (200, 60)] {
        let areas = areas(size);
        for (shown, key) in View::ALL.into_iter().zip(VIEWS) {
            let mut model = watched(COLOUR, size, SyntheticFaults::All);
            keys(&mut model, &[Key::Char(key)]);
            let ((mut terminal, mut frames), (mut peer, mut peers)) = (self::terminal(size), self::terminal(size));
            let (mut updates, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
            let (mut spare, mut spare_peer) = (Vec::new(), Vec::new());
            for (tenth, snapshot) in snapshots.clone() {
                let now_ns = tenth * 100_000_000;
                let begun = Instant::now();
                update(&mut model, Msg::Snapshot { now_ns, snapshot: Some(snapshot), finished: Finished::No });
                let updated = Instant::now();
                terminal.draw(|frame| view(&model, frame)).unwrap();
                spare = frames.take(spare);
                spare.clear();
                let drawn = Instant::now();
                peer.draw(|frame| plain(tenth, &areas, frame)).unwrap();
                spare_peer = peers.take(spare_peer);
                spare_peer.clear();
                theirs.push(drawn.elapsed().as_nanos());
                ours.push(drawn.duration_since(updated).as_nanos());
                updates.push(updated.duration_since(begun).as_nanos());
            }
            let (update_us, us, peer_us) = (median(updates), median(ours), median(theirs));
            let (bytes, ratio) = (frames.bytes() / snapshots.len() as u64, us / peer_us);
            let mark = if ratio > RATIO_MAX { "OVER" } else { "" };
            eprintln!(
                "{}x{} {shown:?}: update {update_us:.0}, frame {us:.0} us, plain {peer_us:.0} us, {ratio:.2} times, \
                 {bytes} bytes {mark}",
                size.0, size.1
            );
        }
    }
}
