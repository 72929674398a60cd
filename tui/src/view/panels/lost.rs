//! Why no further picture will arrive, or why pictures do not change, over the last rows: the last picture must not be
//! taken for a current one.

use crate::model::Model;
use crate::msg::Finished;
use crate::source::Ownership;
use crate::theme::Tone;
use crate::widgets::format::time;
use crate::widgets::pen::Pen;

/// A silence of this long says what to do about it.
const SILENT_NS: u64 = 2_000_000_000;

/// The title and the sentence, if the engine is gone, or stands still in another process.
pub fn why(model: &Model) -> Option<(&'static str, String)> {
    if let Some(why) = &model.lost {
        return Some(("✖ the engine is gone", why.clone()));
    }
    let Ownership::Attached { pid, .. } = model.ownership else { return None };
    let silence_ns = model.silence_ns();
    (silence_ns > SILENT_NS && model.finished == Finished::No && model.frozen.is_none()).then(|| {
        let silence = time(silence_ns);
        let why = format!(
            "no hot thread of process {pid} has run for {silence}; if no alarm says why, pinwheel dump {pid} does"
        );
        ("✖ the engine stands still", why)
    })
}

/// Draws the sentence, one clause per row.
pub fn draw(title: &str, why: &str, pen: &mut Pen<'_>) {
    let height = pen.height();
    pen.blank();
    pen.rule(0, title);
    for (y, clause) in (1..height).zip(why.splitn(2, "; ")) {
        pen.put(1, y, clause, Tone::Bad);
    }
}
