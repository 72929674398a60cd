//! The columns shown at each width.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{Cell, Direction, List, REST, columns_shown, compare};
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

/// A column may have numbers beside words and unknown values; a sort whose order contradicts itself panics.
#[test]
fn cells_of_all_kinds_have_one_order_and_unknown_ones_come_last() {
    let number = |number: f64| Cell::number(format!("{number}"), number);
    let mut cells: Vec<Cell> = [10.0, 9.0, 100.0].map(number).to_vec();
    cells.extend(["1", "95", "a"].map(Cell::words));
    cells.push(Cell::absent());
    for (direction, expected) in [(Direction::Up, "9 10 100 1 95 a –"), (Direction::Down, "a 95 1 100 10 9 –")] {
        let mut sorted = cells.clone();
        sorted.rotate_left(3);
        sorted.sort_by(|a, b| compare(a, b, direction));
        let texts: Vec<&str> = sorted.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts.join(" "), expected);
    }
}
