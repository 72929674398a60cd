//! The columns shown at each width.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{List, REST, columns_shown};
use crate::model::Model;
use crate::theme::{Colour, Glyphs, Palette, Theme};
use pinwheel_engine::profile::OnHangup;

#[test]
fn columns_fit_their_width_and_at_most_the_last_takes_what_is_left() {
    let theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
    let model = Model::new(theme, (80, 24), OnHangup::Drain);
    for list in List::ALL {
        for width in [80, 100, 120, 160, 200] {
            let columns = columns_shown(&model, list, width);
            let (last, fixed) = columns.split_last().unwrap();
            assert_eq!(last.1, REST, "{list:?} at {width}");
            assert!(fixed.iter().all(|(_, width)| *width != REST), "{list:?} at {width}");
            let taken: u16 = fixed.iter().map(|(_, width)| width + 1).sum();
            assert!(taken + 8 < width, "{list:?} at {width}: {taken} columns before the last");
        }
    }
}

#[test]
fn every_column_can_be_shown_at_some_width() {
    for list in List::ALL {
        assert!(list.columns().len() <= 32, "a bit each");
        let mut names: Vec<_> = list.columns().iter().map(|column| column.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list.columns().len(), "{list:?}");
    }
}
