//! The decoders of CUDA-Q's clients: a row each, with its state, its calls and replies, and who
//! called last.

use crate::theme::Tone;
use crate::widgets::format::{count, rate};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{SourceStream, SourceView};
use pinwheel_engine::streams::DecoderState;

pub(super) const COLUMNS: [(u16, &str); 12] = [
    (1, "decoder"),
    (10, "state"),
    (23, "shots"),
    (30, "enqueue"),
    (38, "get"),
    (45, "reset"),
    (51, "ok"),
    (58, "bad request"),
    (70, "internal error"),
    (85, "not ready"),
    (95, "port"),
    (102, "last caller"),
];

/// A decoder that needs its client's attention.
pub(super) fn failed(source: &SourceView) -> Option<i64> {
    let mut decoders = source.streams.iter().filter_map(|stream| stream.decoder);
    decoders.find(|decoder| decoder.state == DecoderState::Failed).map(|decoder| decoder.number)
}

/// Draws a row; `per_s`: its shots a second.
pub(super) fn row(stream: &SourceStream, per_s: Option<f64>, source: &SourceView, pen: &mut Pen<'_>, y: u16) {
    let Some(decoder) = &stream.decoder else { return };
    let (glyph, tone) = match decoder.state {
        DecoderState::Collecting => ('○', Tone::Plain),
        DecoderState::Decoding => ('◐', Tone::Plain),
        DecoderState::Ready => ('●', Tone::Good),
        DecoderState::Failed => ('▲', Tone::Bad),
    };
    let caller = decoder.caller.and_then(|row| source.peers.get(row as usize));
    let plain = |number: u64| (count(number), Tone::Plain);
    let fault = |number: u64| (count(number), if number == 0 { Tone::Plain } else { Tone::Warn });
    let cells = [
        (decoder.number.to_string(), Tone::Plain),
        (format!("  {}", decoder.state.name()), tone),
        (rate(per_s), Tone::Plain),
        plain(decoder.enqueues),
        plain(decoder.gets),
        plain(decoder.resets),
        plain(decoder.ok),
        fault(decoder.bad_request),
        fault(decoder.internal_error),
        fault(decoder.not_ready),
        (decoder.port.to_string(), Tone::Plain),
        (caller.map_or_else(String::new, |peer| peer.address.clone()), Tone::Plain),
    ];
    for ((x, _), (text, tone)) in COLUMNS.into_iter().zip(cells) {
        pen.put(x, y, &text, tone);
    }
    pen.dot(10, y, glyph, tone);
}
