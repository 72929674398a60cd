//! The filter of a list.
//!
//! Terms are separated by blanks, and a row must match each: `word` is in one of its cells, `!word`
//! in none, `one|other` at least one of the two, `core:3` is in a cell of a column whose heading
//! begins with `core`. In place of words, `/gap|hea.*t/` is a regular expression, which may contain
//! blanks. Case is ignored. Pure; parsed anew for each use, bounded by [`super::FILTER_MAX`] and by
//! [`REGEX_BYTES`] for each expression, which matches in linear time.

use super::{Column, List};
use crate::model::Model;
use regex::bytes::{Regex, RegexBuilder};

/// Most bytes of a compiled expression.
const REGEX_BYTES: usize = 1 << 18;

#[derive(Clone, Debug, Default)]
pub struct Filter(Vec<Term>);

#[derive(Clone, Debug)]
struct Term {
    presence: Presence,
    /// First letters of the headings searched; empty: all columns.
    heading: String,
    wanted: Wanted,
}

/// What a cell must contain.
#[derive(Clone, Debug)]
enum Wanted {
    Words(Vec<String>),
    Regex(Regex),
    /// Nothing: the expression is wrong, as this sentence says.
    Wrong(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Wanted,
    Unwanted,
}

impl Filter {
    /// Parses `text` for a list of these columns. An incomplete term matches every row.
    pub fn read(text: &str, columns: &[Column]) -> Filter {
        Filter(terms(text).into_iter().filter_map(|term| Term::read(term, columns)).collect())
    }

    /// What is wrong with its first wrong expression, and where.
    pub fn trouble(&self) -> Option<&str> {
        self.0.iter().find_map(|term| match &term.wanted {
            Wanted::Wrong(why) => Some(why.as_str()),
            _ => None,
        })
    }

    /// Whether every row passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

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
        let named = |heading: &str| columns.iter().any(|column| begins(column.name, &heading.to_lowercase()));
        // Addresses and times contain colons too: a term names a column only if a heading matches.
        let (heading, words) = match text.split_once(':') {
            Some((heading, words)) if !heading.is_empty() && named(heading) => (heading, words),
            _ => ("", text),
        };
        let wanted = match words.strip_prefix('/') {
            Some(expression) => expressed(expression.strip_suffix('/').filter(|inside| !inside.is_empty())?),
            None => {
                let words = words.to_lowercase();
                let words: Vec<String> = words.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect();
                (!words.is_empty()).then_some(Wanted::Words(words))?
            }
        };
        Some(Term { presence, heading: heading.to_lowercase(), wanted })
    }

    fn holds(&self, cells: &[(&str, String)]) -> bool {
        let meant = cells.iter().filter(|(name, _)| begins(name, &self.heading));
        let has = |text: &str| match &self.wanted {
            Wanted::Words(words) => words.iter().any(|word| text.contains(word)),
            Wanted::Regex(regex) => regex.is_match(text.as_bytes()),
            Wanted::Wrong(_) => false,
        };
        let is_there = meant.map(|(_, text)| text).any(|text| has(text));
        let is_wrong = matches!(self.wanted, Wanted::Wrong(_));
        !is_wrong && is_there == (self.presence == Presence::Wanted)
    }
}

/// The terms of a filter: separated by blanks, of which an expression may contain some.
fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        // An expression begins a term, or follows `!` or a heading.
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let begin = rest[..word_end].find('/').filter(|at| *at == 0 || rest[..*at].ends_with(['!', ':']));
        let end = match begin {
            Some(begin) => closing(&rest[begin + 1..]).map_or(rest.len(), |end| begin + 1 + end),
            None => word_end,
        };
        terms.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    terms
}

/// The end of an expression, behind its closing slash; `\\/` closes none.
fn closing(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, letter)| {
        let closes = letter == '/' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        closes.then_some(at + 1)
    })
}

fn expressed(expression: &str) -> Wanted {
    // Letters of ASCII alone have classes and cases: the tables of all others are a megabyte of
    // program.
    match RegexBuilder::new(expression).unicode(false).case_insensitive(true).size_limit(REGEX_BYTES).build() {
        Ok(regex) => Wanted::Regex(regex),
        Err(error) => Wanted::Wrong(explained(&error.to_string())),
    }
}

/// The library draws the place below the expression; here it is a number.
fn explained(error: &str) -> String {
    let caret = error.lines().find(|line| line.trim_start().starts_with('^'));
    let place = caret.and_then(|line| line.find('^')).map(|at| format!(" at letter {}", at.saturating_sub(3)));
    let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("the regular expression is wrong{}: {why}", place.unwrap_or_default())
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
        let super::Wanted::Words(words) = &address.0[0].wanted else { panic!("words") };
        assert_eq!((address.0[0].heading.as_str(), words[0].as_str()), ("", "udp:127.0.0.1:7000"));
    }

    #[test]
    fn an_expression_may_have_blanks_and_slashes_and_stands_where_words_do() {
        let rings = |filter| left(List::Rings, "ring", filter);
        assert_eq!(rings("/^(rx|tx)$/"), rings("/^RX$|^TX$/"));
        assert!(!rings("/^r.$/").is_empty() && rings("/^r.$/").len() < rings("").len());
        assert_eq!(rings("!/x/ ring:/y/"), rings("!x ring:y"));
        assert_eq!((rings(r"/^\w+.*$/").len(), rings("/^–$/").len()), (rings("").len(), rings("").len()));
        assert_eq!(
            super::terms(r"a /b c\/d/ !/e f/ ring:/g h/ i/j /k l"),
            ["a", r"/b c\/d/", "!/e f/", "ring:/g h/", "i/j", "/k l"]
        );
        // Not closed yet, or empty: nothing is hidden while it is written.
        for text in ["/", "/(", "//", "!/", "ring:/a"] {
            assert!(Filter::read(text, List::Rings.columns()).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_wrong_expression_matches_no_row_and_says_where_it_is_wrong() {
        let read = |text| Filter::read(text, List::Rings.columns());
        let trouble = |text| read(text).trouble().map(str::to_owned);
        assert_eq!(trouble("/a(b/"), Some("the regular expression is wrong at letter 2: unclosed group".to_owned()));
        assert_eq!(trouble("/a/ b"), None);
        assert!(
            trouble("/(a{200}){200}/").is_some_and(|why| why.contains("size limit")),
            "{:?}",
            trouble("/(a{200}){200}/")
        );
        assert_eq!(left(List::Rings, "ring", "!/a(b/"), Vec::<String>::new());
    }
}
