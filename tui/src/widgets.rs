//! Drawing primitives of the panels: the pen, strips, maps and number formats.
//!
//! Pure, on the console thread; every write is clipped to its panel, so that no size of the
//! terminal causes a panic.

pub mod pen;
pub mod strip;
pub mod wrap;

pub use pinwheel_report::format;
