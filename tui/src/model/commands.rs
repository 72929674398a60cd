//! The command palette: finds every action with its key, every profile, theme and column by a few
//! letters.
//!
//! Pure, on the console thread. Bounded by the key table and by the profiles on offer. Executes
//! nothing: `update` runs a chosen entry as its key would, with the same questions.

use super::choices::Panel;
use super::lists::{self, Direction, List};
use super::span::{said, span};
use super::{Model, questions};
use crate::keymap::{Action, Scope};
use crate::theme::{Glyphs, Palette};
use pinwheel_engine::engine::Command;
use pinwheel_hosts::local_socket::Wanted;
use std::time::Duration;

/// Palette input, and the index of the selected match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The input so far.
    pub text: String,
    /// Index of the selected line among the matches.
    pub at: usize,
}

/// Effect of a palette line.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    Do(Action),
    /// Takes the profile of that index, for that time or permanently.
    Profile(usize, Option<Duration>),
    /// Asks for confirmation, then executes.
    Execute(Command),
    CommandHosts(Wanted),
    Theme(Palette),
    Glyphs(Glyphs),
    /// Shows a panel of the overview, or hides it.
    Panel(Panel),
    /// Sorts the view's list by that column.
    Sort(usize, Direction),
    /// Clears filter and order of the view's list.
    Unarrange,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub label: String,
    /// The keys with the same effect; empty: no key.
    pub keys: String,
    pub choice: Choice,
    /// Indexes of the label's letters that match the input.
    pub found: Vec<usize>,
}

/// The palette's lines for the input `typed`, best match first.
pub fn found(model: &Model, typed: &str) -> Vec<Entry> {
    // A command written in full comes first: a search cannot find a file name.
    if let Some(command) = questions::parse(typed).filter(|_| !model.is_replay()) {
        let label = match &command {
            Command::Drill { for_ms: Some(ms), .. } => format!("{command} for {}", said(Duration::from_millis(*ms))),
            command => command.to_string(),
        };
        return vec![Entry { label, keys: String::new(), choice: Choice::Execute(command), found: Vec::new() }];
    }
    if let Some(wanted) = questions::parse_about_hosts(typed).filter(|_| !model.is_replay()) {
        let label = typed.split_whitespace().collect::<Vec<_>>().join(" ");
        return vec![Entry { label, keys: String::new(), choice: Choice::CommandHosts(wanted), found: Vec::new() }];
    }
    let (words, span) = split_span(typed);
    let mut ranked: Vec<(i64, Entry)> = Vec::new();
    // Only a profile is taken for a time: another command would ignore it.
    let takes_span = |entry: &Entry| span.is_none() || matches!(entry.choice, Choice::Profile(..));
    for mut entry in all(model, span).into_iter().filter(takes_span) {
        if let Some((score, places)) = score(&words, &entry.label) {
            entry.found = places;
            ranked.push((score, entry));
        }
    }
    // A stable sort: equal scores keep the table's order.
    ranked.sort_by_key(|(score, _)| -score);
    ranked.into_iter().map(|(_, entry)| entry).collect()
}

/// Splits `profile prod for 20m` into `profile prod` and a time span.
fn split_span(typed: &str) -> (String, Option<Duration>) {
    let Some((before, after)) = typed.rsplit_once(" for ") else { return (typed.to_owned(), None) };
    match span(after.trim()) {
        Some(span) => (before.to_owned(), Some(span)),
        None => (typed.to_owned(), None),
    }
}

fn all(model: &Model, span: Option<Duration>) -> Vec<Entry> {
    let entry = |label: String, keys: String, choice| Entry { label, keys, choice, found: Vec::new() };
    let mut entries = Vec::new();
    let own = Some(model.view_scope()).filter(|own| *own != Scope::Views);
    let past = model.frozen.is_some().then_some(Scope::Past);
    for scope in own.into_iter().chain(past).chain([Scope::Views]) {
        for (action, keys, what) in model.keymap.commands(scope) {
            if !entries.iter().any(|entry: &Entry| entry.choice == Choice::Do(action)) {
                let name = crate::keymap::name::action(action);
                // The question of a view already begins with the view's name.
                let label = if what.starts_with(name) { what.to_owned() } else { format!("{name}: {what}") };
                entries.push(entry(label, keys, Choice::Do(action)));
            }
        }
    }
    for (place, offer) in model.offers.iter().flatten().enumerate() {
        let for_how_long = span.map_or_else(String::new, |span| format!(" for {}", said(span)));
        let summary = offer.body.as_ref().map_or_else(|_| "cannot be used", |body| body.profile.summary.as_str());
        let label = format!("profile {}{for_how_long}: {summary}", offer.name);
        entries.push(entry(label, String::new(), Choice::Profile(place, span)));
    }
    let live = model.live.picture.as_deref().filter(|_| !model.is_replay());
    let offered = live.map(|picture| questions::offered(&picture.snapshot, model.cursor.stream));
    for command in offered.into_iter().flatten() {
        entries.push(entry(command.to_string(), String::new(), Choice::Execute(command)));
    }
    for palette in model.theme.palettes() {
        entries.push(entry(format!("theme {}", palette.name()), String::new(), Choice::Theme(palette)));
    }
    for (name, glyphs) in [("utf-8", Glyphs::Utf8), ("ascii", Glyphs::Ascii)] {
        entries.push(entry(format!("glyphs {name}"), String::new(), Choice::Glyphs(glyphs)));
    }
    for panel in Panel::ALL {
        let verb = if model.chosen.hides(panel) { "show" } else { "hide" };
        let label = format!("layout: {verb} {} in the overview: {}", panel.name(), panel.heading());
        entries.push(entry(label, String::new(), Choice::Panel(panel)));
    }
    if let Some(list) = List::of(model.view) {
        let named = list.columns().iter().enumerate().filter(|(_, column)| !column.name.is_empty());
        for (place, column) in named {
            let direction = lists::first_direction(model, list, place);
            let order = if direction == Direction::Up { "smallest first" } else { "largest first" };
            let label = format!("sort by {}, {order}", column.name);
            entries.push(entry(label, String::new(), Choice::Sort(place, direction)));
        }
        entries.push(entry("all rows, as the engine orders them".to_owned(), String::new(), Choice::Unarrange));
    }
    entries
}

/// Score and indexes of a match of `typed` in `label`, letters in order; `None`: no match. Adjacent
/// letters and letters that begin a word score higher; a short label scores higher than a long one.
pub fn score(typed: &str, label: &str) -> Option<(i64, Vec<usize>)> {
    const FOLLOWS: i64 = 8;
    const BEGINS: i64 = 6;
    const FIRST: i64 = 10;
    const WHOLE: i64 = 12;
    let label: Vec<char> = label.chars().flat_map(char::to_lowercase).collect();
    let (mut total, mut places) = (0, Vec::new());
    for word in typed.split_whitespace() {
        let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        let (score, mut found) = best(&word, &label)?;
        total += score;
        places.append(&mut found);
    }
    places.sort_unstable();
    places.dedup();
    // Without input all labels match alike, and the list keeps the table's order.
    let long = if places.is_empty() { 0 } else { label.len() as i64 / 16 };
    return Some((total - long, places));

    /// The best match over all positions of the first letter.
    fn best(word: &[char], label: &[char]) -> Option<(i64, Vec<usize>)> {
        let starts = label.iter().enumerate().filter(|(_, letter)| Some(*letter) == word.first());
        starts.filter_map(|(start, _)| from(start, word, label)).max_by_key(|(score, _)| *score)
    }

    fn from(start: usize, word: &[char], label: &[char]) -> Option<(i64, Vec<usize>)> {
        // A label begins with its name, so an early match scores higher than a late one.
        let late = start.min(64) as i64 / 2;
        let (mut at, mut score, mut places) = (start, -late, Vec::with_capacity(word.len()));
        for letter in word {
            let next = at + label.get(at..)?.iter().position(|found| found == letter)?;
            let begins = next == 0 || !label[next - 1].is_alphanumeric();
            let follows = places.last().is_some_and(|last| last + 1 == next);
            score += 1 + if follows { FOLLOWS } else { 0 } + if begins { BEGINS } else { 0 };
            score += if next == 0 { FIRST } else { 0 };
            score -= (next - at).min(5) as i64;
            places.push(next);
            at = next + 1;
        }
        let is_whole = at - start == word.len();
        let ends = !label.get(at).is_some_and(|letter| letter.is_alphanumeric());
        score += if is_whole { WHOLE } else { 0 } + if is_whole && ends { WHOLE } else { 0 };
        Some((score, places))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::score;

    #[test]
    fn letters_in_their_order_are_found_and_others_are_not() {
        assert_eq!(score("frz", "freeze: the picture").unwrap().1, [0, 1, 4]);
        assert!(score("zf", "freeze").is_none());
        assert!(score("prof prod", "profile prod: for the machine").is_some());
        assert_eq!(score("", "anything").unwrap().1, Vec::<usize>::new());
    }

    #[test]
    fn without_input_a_short_label_is_no_better_than_a_long_one() {
        assert_eq!(score("", "drill sleep"), score("", "overview: is every shot answered, and how fast?"));
        assert!(score("o", "overview").unwrap().0 > score("o", "overview: is every shot answered?").unwrap().0);
    }

    #[test]
    fn the_beginnings_of_words_count_more_than_letters_that_happen_to_be_there() {
        let of = |label| score("th", label).unwrap().0;
        assert!(of("threads: which") > of("with a thing"));
        let profile = |label| score("profile prod", label).unwrap().0;
        assert!(profile("profile prod: for the machine") > profile("profile drill: faults, on prod's plan"));
        assert!(score("log", "log: what happened").unwrap().0 > score("log", "slots: look long").unwrap().0);
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_the_search_panic(typed in "\\PC{0,20}", label in "\\PC{0,40}") {
            if let Some((_, places)) = score(&typed, &label) {
                let letters = label.chars().flat_map(char::to_lowercase).count();
                proptest::prop_assert!(places.iter().all(|place| *place < letters));
            }
        }
    }
}
