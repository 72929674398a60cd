//! Overlays over a view: questions, the profile chooser, the drain.

pub mod ask;
pub mod chooser;
pub mod columns;
pub mod drain;
pub mod palette;

use crate::widgets::pen::Pen;

/// The middle of `pen`, at most `width`×`height`, blanked.
fn middle<'a>(pen: &'a mut Pen<'_>, width: u16, height: u16) -> Pen<'a> {
    let width = width.min(pen.width());
    let height = height.min(pen.height());
    let (x, y) = ((pen.width() - width) / 2, (pen.height() - height) / 2);
    let mut part = pen.part(x, y, width, height);
    part.blank();
    part.target_all(None);
    part
}
