//! The filter of a list.
//!
//! Terms are separated by blanks, and a row must match each: `word` is in one of its cells, `!word`
//! in none, `one|other` at least one of the two, `core:3` is in a cell of a column whose heading
//! begins with `core`. Case is ignored. Pure; parsed anew for each use, bounded by
//! [`super::FILTER_MAX`].

use super::{Column, List};
use crate::model::Model;

/// A parsed filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    presence: Presence,
    /// First letters of the headings searched; empty: all columns.
    heading: String,
    /// Alternatives; one must match.
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Wanted,
    Unwanted,
}

impl Filter {
    /// Parses `text` for a list of these columns. An incomplete term matches every row.
    pub fn read(text: &str, columns: &[Column]) -> Filter {
        Filter(text.split_whitespace().filter_map(|term| Term::read(&term.to_lowercase(), columns)).collect())
    }

    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `row` passes.
    pub fn passes(&self, model: &Model, list: List, row: usize) -> bool {
        let cell = |column: &Column| (column.name, (column.cell)(model, row).text.to_lowercase());
        let cells: Vec<(&str, String)> = list.columns().iter().map(cell).collect();
        self.0.iter().all(|term| term.holds(&cells))
    }
}

impl Term {
    fn read(text: &str, columns: &[Column]) -> Option<Term> {
        let (presence, text) = match text.strip_prefix('!') {
            Some(rest) => (Presence::Unwanted, rest),
            None => (Presence::Wanted, text),
        };
        let named = |heading: &str| columns.iter().any(|column| begins(column.name, heading));
        // Addresses and times contain colons too: a term names a column only if a heading matches.
        let (heading, words) = match text.split_once(':') {
            Some((heading, words)) if !heading.is_empty() && named(heading) => (heading, words),
            _ => ("", text),
        };
        let words: Vec<String> = words.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        (!words.is_empty()).then(|| Term { presence, heading: heading.to_owned(), words })
    }

    fn holds(&self, cells: &[(&str, String)]) -> bool {
        let meant = cells.iter().filter(|(name, _)| begins(name, &self.heading));
        let is_there = meant.map(|(_, text)| text).any(|text| self.words.iter().any(|word| text.contains(word)));
        is_there == (self.presence == Presence::Wanted)
    }
}

/// Whether a heading begins with these lower-case letters.
fn begins(name: &str, heading: &str) -> bool {
    name.to_lowercase().starts_with(heading)
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use crate::model::Model;
    use crate::model::lists::{List, shown};
    use crate::msg::{Finished, Msg};
    use crate::tests::synthetic::{SyntheticFaults, snapshot};
    use crate::theme::Theme;
    use crate::update::update;
    use pinwheel_engine::profile::OnHangup;

    fn watched() -> Model {
        let mut model = Model::new(Theme::from_variables(|_| None), (120, 40), OnHangup::Detach);
        let snapshot = Some(Box::new(snapshot(20, SyntheticFaults::All)));
        update(&mut model, Msg::Snapshot { now_ns: 1, snapshot, finished: Finished::No });
        model
    }

    /// The rows of `list` that pass `filter`, by the text of their column `heading`.
    fn left(list: List, heading: &str, filter: &str) -> Vec<String> {
        let mut model = watched();
        model.lists.of_mut(list).filter = filter.to_owned();
        let column = list.columns().iter().find(|column| column.name == heading).expect("that heading");
        shown(&model, list).into_iter().map(|row| (column.cell)(&model, row).text).collect()
    }

    #[test]
    fn words_are_all_wanted_or_unwanted_or_one_of_several() {
        let rings = |filter| left(List::Rings, "ring", filter);
        let all = rings("");
        assert!(all.len() > 2, "{all:?}");
        let rx = rings("rx");
        assert!(!rx.is_empty() && rx.len() < all.len() && rx.iter().all(|ring| ring.contains("rx")), "{rx:?}");
        let others = rings("!RX");
        assert_eq!(others.len() + rx.len(), all.len());
        assert!(others.iter().all(|ring| !ring.contains("rx")), "{others:?}");
        assert_eq!(rings("rx !rx"), Vec::<String>::new());
        assert_eq!(rings("rx|tx").len(), rx.len() + rings("ring:tx").len());
        assert_eq!(rings("!rx !tx"), rings("!rx|tx"));
    }

    #[test]
    fn a_heading_says_where_the_word_is_to_be() {
        let workers = |filter| left(List::Workers, "state", filter);
        let running = workers("state:running");
        assert!(!running.is_empty() && running.iter().all(|state| state.contains("running")), "{running:?}");
        assert_eq!(running, workers("st:running"));
        assert!(workers("slot:running").is_empty());
        assert_eq!(workers("!state:running").len() + running.len(), workers("").len());
    }

    #[test]
    fn what_is_not_written_to_its_end_hides_nothing_and_a_colon_may_be_a_letter() {
        let columns = List::Rings.columns();
        for text in ["", "!", "|", "!|", "ring:", "  ! |"] {
            assert!(Filter::read(text, columns).is_empty(), "{text:?}");
        }
        let address = Filter::read("udp:127.0.0.1:7000", columns);
        assert_eq!((address.0[0].heading.as_str(), address.0[0].words[0].as_str()), ("", "udp:127.0.0.1:7000"));
    }
}
