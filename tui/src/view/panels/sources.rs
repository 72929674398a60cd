//! Sources: who sends, how fast, and what is missing? One source's state, then its streams, then
//! its senders.

mod decoders;

use super::{rows_of, scrolled};
use crate::keymap::{Action, Scope};
use crate::model::derived::SourceRates;
use crate::model::target::Target;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time, time_or_dash};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{SourcePeer, SourceState, SourceStream, SourceView};
use pinwheel_engine::streams::SourceKind;

/// Rows of senders at the bottom with their heading, if the screen has them.
const PEER_ROWS: u16 = 5;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, View::Sources.heading());
    let Some(source) = picture.snapshot.sources.first() else {
        pen.put(
            1,
            1,
            &format!("Shots come from {}: no other process sends shots.", picture.snapshot.engine.input),
            Tone::Dim,
        );
        let key = model.keymap.first_key(Scope::Views, Action::Input);
        let live = format!("{key} takes them live: udp:127.0.0.1:7000, unix:PATH or shm:NAME (or run --input)");
        pen.put(1, 2, &live, Tone::Plain);
        pen.put(1, 3, "From another terminal: pinwheel send FILE udp:127.0.0.1:7000 --rate 10000", Tone::Plain);
        return;
    };
    let rates = picture.derived.sources.first().and_then(Option::as_ref);
    let y = summary(source, rates, pen);
    let peers = u16::try_from(source.peers.len()).unwrap_or(0) + 2;
    let room = pen.height().saturating_sub(y);
    // The streams get the rows that the senders leave.
    let below = if source.kind == SourceKind::Shm { 0 } else { peers.min(PEER_ROWS).min(room / 2) };
    let height = pen.height();
    let table = &mut pen.rows(y, height - below);
    match source.kind {
        SourceKind::Cudaq => {
            let row = |stream: &SourceStream, per_s, pen: &mut Pen<'_>, y| decoders::row(stream, per_s, source, pen, y);
            streams((model, source), rates, &decoders::COLUMNS, table, row);
        }
        SourceKind::Udp | SourceKind::Unix | SourceKind::Shm => streams((model, source), rates, &COLUMNS, table, row),
    }
    senders(source, rates, &mut pen.rows(height - below, height));
}

/// State, counters and advice; returns the row after them.
fn summary(source: &SourceView, rates: Option<&SourceRates>, pen: &mut Pen<'_>) -> u16 {
    let (glyph, word, tone) = look(source.state);
    let x = pen.put(1, 1, &source.name, Tone::Accent) + 2;
    pen.dot(x, 1, glyph, tone);
    let x = pen.put(x + 2, 1, word, tone) + 2;
    let last = format!("last part {} ago", time_or_dash(source.silent_ns));
    let x = pen.put(x, 1, &last, Tone::Plain) + 2;
    if let Some(client) = &source.client {
        let beat = format!(
            "client {} (number {}), heartbeat {} ago",
            client.pid,
            client.attached,
            time(client.heartbeat_age_ns)
        );
        pen.put(x, 1, &beat, if client.heartbeat_age_ns < 1_000_000_000 { Tone::Plain } else { Tone::Warn });
    }
    let text = format!(
        "shots {}  taken {}  answered {}  bits {}  epoch {:x}",
        rate(rates.map(|rates| rates.accepted)),
        count(source.accepted),
        count(source.answered),
        source.width_bits,
        source.epoch
    );
    pen.put(1, 2, &text, Tone::Plain);
    let mut x = 1;
    let is_wide = pen.width() >= 110;
    for (word, brief, value) in [
        ("kernel drops", "drops", source.kernel_drops),
        ("answers not taken", "untaken", source.answers_dropped),
        ("malformed", "malformed", source.malformed),
        ("foreign", "foreign", source.foreign),
        ("other epoch", "epoch", source.other_epoch),
        ("no such stream", "stream", source.unknown_streams),
        ("errors", "errors", source.errors),
        ("no room", "full", source.lane_waits),
    ] {
        let word = if is_wide { word } else { brief };
        x = pen.put(x, 3, word, Tone::Dim) + 1;
        x = pen.put(x, 3, &count(value), if value == 0 { Tone::Plain } else { Tone::Warn }) + 1;
    }
    let tone = if source.state == SourceState::Flowing { Tone::Dim } else { Tone::Warn };
    pen.put(1, 4, &advice(source), tone);
    5
}

/// Advice for the operator, in one line.
fn advice(source: &SourceView) -> String {
    if let (SourceState::Flowing | SourceState::Silent, Some(number)) = (source.state, decoders::failed(source)) {
        return format!("Decoder {number} has failed: INTERNAL_ERROR until its client calls reset_decoder.");
    }
    match (source.state, source.kind) {
        (SourceState::Waiting, _) => "Warming up: shots sent now wait for Live.".to_owned(),
        (SourceState::Closed, _) => "The engine accepts no more shots: it drains, or has reached its count.".to_owned(),
        (SourceState::Unused, SourceKind::Cudaq) => {
            "No client yet. Point CUDA-Q's client here: udp-host and udp-port, or udp-port.ID for each decoder."
                .to_owned()
        }
        (SourceState::Unused, _) => format!("No sender yet. Try: pinwheel send FILE {}", source.name),
        (SourceState::Silent, SourceKind::Shm) => {
            "Silent: check that the client runs and updates its heartbeat. A restarted client gets the ring.".to_owned()
        }
        (SourceState::Silent, SourceKind::Cudaq) => {
            format!("Silent: does a client still run? Test: pinwheel send FILE {} --cudaq-config F", source.name)
        }
        (SourceState::Silent, _) => {
            format!("Silent: does a sender still run? Test: pinwheel send FILE {}", source.name)
        }
        (SourceState::Flowing, _) if source.kernel_drops > 0 => format!(
            "The system dropped datagrams: buffer {} KiB; raise net.core.rmem_max, or send slower.",
            source.buffer_bytes / 1024
        ),
        (SourceState::Flowing, _) if source.foreign > 0 => {
            "A sender without permission sends here: allow its network with --allow, or stop it.".to_owned()
        }
        (SourceState::Flowing, SourceKind::Cudaq) => {
            "Each call gets one reply; a datagram that is no call gets none.".to_owned()
        }
        (SourceState::Flowing, _) => {
            "Missing numbers were skipped by their sender, or lost on the way here.".to_owned()
        }
    }
}

const COLUMNS: [(u16, &str); 13] = [
    (1, "stream"),
    (8, "shots"),
    (16, "taken"),
    (24, "lag"),
    (30, "last"),
    (40, "missing"),
    (48, "again"),
    (54, "late"),
    (60, "broken"),
    (67, "stale"),
    (73, "silent"),
    (82, "misfits"),
    (92, "restarts"),
];

/// Draws the headings, and with `row` the streams for which there is room. `row` takes a stream
/// and its shots a second.
fn streams(
    (model, source): (&Model, &SourceView),
    rates: Option<&SourceRates>,
    headings: &[(u16, &str)],
    pen: &mut Pen<'_>,
    row: impl Fn(&SourceStream, Option<f64>, &mut Pen<'_>, u16),
) {
    if pen.height() < 2 {
        return;
    }
    for (x, heading) in headings {
        pen.put(*x, 0, heading, Tone::Dim);
    }
    let visible = rows_of(pen, 1);
    let first = scrolled(model.cursor.source, visible, source.streams.len());
    for (y, stream) in (1..).zip(source.streams.iter().skip(first)).take(visible) {
        let per_s = rates.and_then(|rates| rates.streams.get(stream.id as usize).copied());
        pen.target_row(y, Target::Sender(stream.id as usize));
        row(stream, per_s, pen, y);
        if stream.id as usize == model.cursor.source {
            pen.highlight(y);
        }
    }
}

fn row(stream: &SourceStream, per_s: Option<f64>, pen: &mut Pen<'_>, y: u16) {
    // A number that arrived late is not missing any more.
    let missing = stream.gaps.saturating_sub(stream.reordered);
    let texts = [
        stream.id.to_string(),
        rate(per_s),
        count(stream.accepted),
        count(stream.lag),
        sequence(stream.accepted_last),
        count(missing),
        count(stream.duplicates),
        count(stream.reordered),
        count(stream.incomplete),
        count(stream.stale),
        time_or_dash(stream.silent_ns),
        count(stream.malformed),
        count(stream.restarts),
    ];
    let SourceStream { duplicates, reordered, incomplete, stale, malformed, restarts, .. } = *stream;
    let faults = [0, 0, 0, 0, 0, missing, duplicates, reordered, incomplete, stale, 0, malformed, restarts];
    for (((x, _), text), fault) in COLUMNS.into_iter().zip(texts).zip(faults) {
        pen.put(x, y, &text, if fault == 0 { Tone::Plain } else { Tone::Warn });
    }
}

/// A shot's number in nine columns: of a longer one its last digits, which change.
fn sequence(number: u64) -> String {
    let text = number.to_string();
    match text.len() {
        0..=9 => text,
        length => format!("…{}", &text[length - 8..]),
    }
}

fn senders(source: &SourceView, rates: Option<&SourceRates>, pen: &mut Pen<'_>) {
    if pen.height() < 2 {
        return;
    }
    let more = source.peers_count.saturating_sub(source.peers.len() as u64);
    let title = if more > 0 { format!("senders, and {more} more") } else { "senders".to_owned() };
    pen.rule(0, &title);
    if source.peers.is_empty() {
        pen.put(1, 1, "none yet", Tone::Dim);
    }
    for ((y, peer), at) in (1..pen.height()).zip(&source.peers).zip(0..) {
        sender(source.kind, peer, rates.and_then(|rates| rates.peers.get(at).copied()), pen, y);
    }
}

fn sender(kind: SourceKind, peer: &SourcePeer, per_s: Option<f64>, pen: &mut Pen<'_>, y: u16) {
    let x = pen.put(1, y, &peer.address, Tone::Accent).max(24) + 2;
    let text = format!(
        "{}  {} {}  {} answers  last {} ago",
        rate(per_s),
        count(peer.shots),
        if kind == SourceKind::Cudaq { "calls" } else { "shots" },
        count(peer.answers),
        time(peer.silent_ns)
    );
    let x = pen.put(x, y, &text, Tone::Plain) + 2;
    if peer.dropped > 0 {
        pen.put(x, y, &format!("{} not taken", count(peer.dropped)), Tone::Warn);
    }
}

fn look(state: SourceState) -> (char, &'static str, Tone) {
    match state {
        SourceState::Waiting => ('○', "waiting for Live", Tone::Dim),
        SourceState::Unused => ('○', "nobody sends", Tone::Warn),
        SourceState::Flowing => ('●', "flowing", Tone::Good),
        SourceState::Silent => ('▲', "silent", Tone::Warn),
        SourceState::Closed => ('◆', "closed", Tone::Dim),
    }
}
