//! Why no further picture will arrive, over the last rows: the last picture must not be taken for a
//! current one.

use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Draws the sentence, one clause per row.
pub fn draw(why: &str, pen: &mut Pen<'_>) {
    let height = pen.height();
    pen.blank();
    pen.rule(0, "✖ the engine is gone");
    for (y, clause) in (1..height).zip(why.splitn(2, "; ")) {
        pen.put(1, y, clause, Tone::Bad);
    }
}
