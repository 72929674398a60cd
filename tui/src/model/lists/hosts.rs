//! The list of the hosts that share streams with the engine, as the engine sees them.

use super::{Cell, Line, REST, Spec, by_place, column, plain};
use crate::model::Model;
use crate::theme::Tone;
use crate::widgets::format::{count, time};
use pinwheel_hosts::membership::State;
use pinwheel_hosts::status::HostRow;

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("host", [13, 16, 24], |m, row| on(m, row, |host| Cell::words(&host.name))),
        column("state", [8, 8, 8], |m, row| on(m, row, |host| Cell::words(host.state.word()).toned(tone(host)))),
        column("decodes", [7, 7, 8], |m, row| known(m, row, |host| Cell::count(host.streams.into()))),
        column("ours", [4, 4, 6], |m, row| known(m, row, |host| Cell::count(host.given.len() as u64))),
        column("senders", [0, 7, 8], |m, row| known(m, row, |host| Cell::count(host.own.into()))),
        column("fullest", [7, 7, 8], |m, row| known(m, row, fullest)),
        column("link p50", [8, 8, 8], |m, row| known(m, row, |host| Cell::time(host.link_ns.map(|trip| trip.p50)))),
        column("link p99", [8, 8, 8], |m, row| known(m, row, |host| Cell::time(host.link_ns.map(|trip| trip.p99)))),
        column("gone", [4, 4, 5], |m, row| on(m, row, |host| Cell::count(host.losses))),
        column("answered", [0, 0, 10], |m, row| on(m, row, |host| Cell::count(host.answered))),
        column("taken back", [0, 0, 10], |m, row| on(m, row, |host| Cell::count(host.taken_back))),
        column("taken in", [0, 0, 10], |m, row| on(m, row, |host| Cell::count(host.sent.shots))),
        column("why no shots", [REST, REST, REST], |m, row| {
            on(m, row, |host| Cell::words(host.why_not.as_deref().unwrap_or_default()))
        }),
    ],
    len: |model| model.lookups.hosts.rows().len(),
    key: by_place,
    details,
};

fn on(model: &Model, row: usize, cell: impl Fn(&HostRow) -> Cell) -> Cell {
    model.lookups.hosts.rows().get(row).map_or_else(Cell::absent, cell)
}

/// A cell of what a host said last, unless it is gone.
fn known(model: &Model, row: usize, cell: impl Fn(&HostRow) -> Cell) -> Cell {
    on(model, row, |host| if host.state == State::Gone { Cell::absent() } else { cell(host) })
}

fn tone(host: &HostRow) -> Tone {
    match host.state {
        State::Up => Tone::Good,
        State::Suspect | State::Draining => Tone::Warn,
        State::Gone => Tone::Bad,
    }
}

fn fullest(host: &HostRow) -> Cell {
    Cell::number(format!("{:.0}%", host.load.max * 100.0), host.load.max)
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let Some(host) = model.lookups.hosts.rows().get(row) else { return Vec::new() };
    let HostRow { name, state, own, streams, load, given, sent, .. } = host;
    let mut lines = vec![(format!("{name}: {}, version {}", state.word(), host.version), tone(host))];
    if *state != State::Gone {
        let waits = time(load.backlog_ns);
        lines.push(plain(format!(
            "It decodes {streams} streams and has the senders of {own}; shots in its slowest silo wait {waits}."
        )));
    }
    if host.is_self {
        lines.push(plain("This engine. Its shots and answers are counted at the hosts that they went to.".to_owned()));
        return lines;
    }
    lines.push(match host.link_ns {
        Some(trip) => {
            let (p50, p99, heard) = (time(trip.p50), time(trip.p99), time(host.heard_ns));
            plain(format!("A question to it takes {p50} at p50, {p99} at p99; its last answer is {heard} old."))
        }
        None => ("No question to it was answered yet.".to_owned(), Tone::Dim),
    });
    if let Some(why) = &host.why_not {
        lines.push((format!("It is given no shots: {why}"), Tone::Warn));
    }
    let (answered, back) = (count(host.answered), count(host.taken_back));
    lines.push(plain(match given.as_slice() {
        [] => format!("It decodes no stream of this host; it answered {answered} shots, {back} were taken back."),
        _ => format!("It decodes streams {given:?} of this host: {answered} shots answered, {back} taken back."),
    }));
    lines.push(plain(format!("This host took {} of its shots.", count(sent.shots))));
    if sent.refused + sent.full > 0 {
        let (refused, full) = (count(sent.refused), count(sent.full));
        let what = format!("Of its messages {refused} were malformed or repeated, {full} found no room.");
        lines.push((what, Tone::Warn));
    }
    if host.losses > 0 {
        lines.push((format!("Times that it was gone: {}.", count(host.losses)), Tone::Warn));
    }
    lines.push((
        format!(":hosts move STREAM {name} lets it decode a stream; pinwheel ctl --host {name} commands it."),
        Tone::Dim,
    ));
    lines
}
