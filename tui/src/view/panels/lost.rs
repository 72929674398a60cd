//! Why no picture will come any more, over the last rows: nobody is to take the last one for the present.

use crate::theme::Tone;
use crate::widgets::pen::Pen;

/// Draws the sentence, a clause a row.
pub fn draw(why: &str, pen: &mut Pen<'_>) {
    let height = pen.height();
    pen.blank();
    pen.rule(0, "✖ the engine is gone");
    for (y, clause) in (1..height).zip(why.splitn(2, "; ")) {
        pen.put(1, y, clause, Tone::Bad);
    }
}
