//! The command palette: every action with its key, every profile, theme and column, found by a few of its letters.
//!
//! Pure, on the console thread. Bounded by the key table and by the profiles on offer. Does nothing by itself: a command is
//! done as its key would do it, with the same questions.

use super::deeds::{self, Deed};
use super::lists::{self, List, Way};
use super::{Model, View};
use crate::keymap::{Action, Scope};
use crate::theme::{Glyphs, Palette};
use pinwheel_engine::engine::{LENT_MAX, LiveDrill, SiloDeed};
use std::time::Duration;

/// Longest line written into the palette, characters.
pub const TYPED_MAX: usize = 80;

/// What was written into the palette, and which of what it finds is under the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The words.
    pub text: String,
    /// Place among what is found.
    pub at: usize,
}

/// What a line of the palette does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// What a key does.
    Do(Action),
    /// Takes the profile of that place, for that long or for good.
    Profile(usize, Option<Duration>),
    /// Asks for something to be done to a silo, a stream, the input.
    Deed(Deed),
    /// Changes the colours.
    Theme(Palette),
    /// Changes the glyphs.
    Glyphs(Glyphs),
    /// Sorts the view's list by that column.
    Sort(usize, Way),
    /// All rows of the view's list again, as the engine orders them.
    Unarrange,
}

/// A line of the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its words.
    pub label: String,
    /// The keys that do the same; empty: none does.
    pub keys: String,
    /// What it does.
    pub command: Command,
    /// Which letters of the label were found, by their places.
    pub found: Vec<usize>,
}

/// The lines that `model`'s palette shows, best first.
pub fn found(model: &Model, typed: &str) -> Vec<Entry> {
    // What is written out whole is meant: no search would find a file's name.
    if let Some(deed) = deeds::parse(typed).filter(|_| !model.is_replay()) {
        let label = deed.label();
        return vec![Entry { label, keys: String::new(), command: Command::Deed(deed), found: Vec::new() }];
    }
    let (words, span) = split_span(typed);
    let mut ranked: Vec<(i64, Entry)> = Vec::new();
    for mut entry in all(model, span) {
        if let Some((score, places)) = score(&words, &entry.label) {
            entry.found = places;
            ranked.push((score, entry));
        }
    }
    // A stable sort: lines that are as good stay in the table's order.
    ranked.sort_by_key(|(score, _)| -score);
    ranked.into_iter().map(|(_, entry)| entry).collect()
}

/// `profile prod for 20m` is `profile prod` with a span.
fn split_span(typed: &str) -> (String, Option<Duration>) {
    let Some((before, after)) = typed.rsplit_once(" for ") else { return (typed.to_owned(), None) };
    match span(after.trim()) {
        Some(span) => (before.to_owned(), Some(span)),
        None => (typed.to_owned(), None),
    }
}

/// `90s`, `20m`, `2h`: whole numbers above 0 and at most a day.
pub fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let span = Duration::from_secs(number.checked_mul(seconds)?);
    (!span.is_zero() && span <= LENT_MAX).then_some(span)
}

fn all(model: &Model, span: Option<Duration>) -> Vec<Entry> {
    let entry = |label: String, keys: String, command| Entry { label, keys, command, found: Vec::new() };
    let mut entries = Vec::new();
    let own = match model.view {
        View::Profiles => Some(Scope::Profiles),
        View::Alarms => Some(Scope::Alarms),
        View::Placement => Some(Scope::Placement),
        View::Streams => Some(Scope::Streams),
        _ => None,
    };
    let past = model.frozen.is_some().then_some(Scope::Past);
    for scope in own.into_iter().chain(past).chain([Scope::Views]) {
        for (action, keys, what) in model.keymap.commands(scope) {
            if !entries.iter().any(|entry: &Entry| entry.command == Command::Do(action)) {
                let name = crate::keymap::name::action(action);
                // A view's question begins with its name.
                let label = if what.starts_with(name) { what.to_owned() } else { format!("{name}: {what}") };
                entries.push(entry(label, keys, Command::Do(action)));
            }
        }
    }
    for (place, offer) in model.offers.iter().flatten().enumerate() {
        let for_how_long = span.map_or_else(String::new, |span| format!(" for {}", said(span)));
        let summary = offer.body.as_ref().map_or_else(|_| "cannot be used", |body| body.profile.summary.as_str());
        let label = format!("profile {}{for_how_long}: {summary}", offer.name);
        entries.push(entry(label, String::new(), Command::Profile(place, span)));
    }
    for deed in offered(model) {
        entries.push(entry(deed.label(), String::new(), Command::Deed(deed)));
    }
    for palette in Palette::ALL {
        entries.push(entry(format!("theme {}", palette.name()), String::new(), Command::Theme(palette)));
    }
    for (name, glyphs) in [("utf-8", Glyphs::Utf8), ("ascii", Glyphs::Ascii)] {
        entries.push(entry(format!("glyphs {name}"), String::new(), Command::Glyphs(glyphs)));
    }
    if let Some(list) = List::of(model.view) {
        let named = list.columns().iter().enumerate().filter(|(_, column)| !column.name.is_empty());
        for (place, column) in named {
            let way = lists::first_way(model, list, place);
            let order = if way == Way::Up { "smallest first" } else { "largest first" };
            let label = format!("sort by {}, {order}", column.name);
            entries.push(entry(label, String::new(), Command::Sort(place, way)));
        }
        entries.push(entry("all rows, as the engine orders them".to_owned(), String::new(), Command::Unarrange));
    }
    entries
}

/// Drills; and what can be done to silos and to the stream under the cursor, where there are several silos.
fn offered(model: &Model) -> Vec<Deed> {
    let Some(picture) = model.live.picture.as_deref().filter(|_| !model.is_replay()) else { return Vec::new() };
    let mut deeds: Vec<Deed> = LiveDrill::ALL.iter().copied().map(Deed::Drill).collect();
    let silos: Vec<u32> = picture.snapshot.silos.iter().map(|silo| silo.id).collect();
    if silos.len() < 2 {
        return deeds;
    }
    let on_silo = |silo| SiloDeed::ALL.map(|deed| Deed::Silo { silo, deed });
    deeds.extend(silos.iter().copied().flat_map(on_silo));
    if let Some(stream) = picture.snapshot.streams.get(model.cursor.stream) {
        let others = silos.iter().filter(|silo| **silo != stream.silo);
        deeds.extend(others.map(|to| Deed::Move { stream: stream.id, to: *to }));
    }
    deeds
}

/// A span as one writes it.
pub fn said(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

/// How well `label` holds the letters of `typed` in their order, and where; `None`: it does not. Letters that follow each
/// other, and letters that begin a word, count more; a short label beats a long one.
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
    return Some((total - label.len() as i64 / 16, places));

    /// The best of the matches that begin at each place where the first letter is.
    fn best(word: &[char], label: &[char]) -> Option<(i64, Vec<usize>)> {
        let starts = label.iter().enumerate().filter(|(_, letter)| Some(*letter) == word.first());
        starts.filter_map(|(start, _)| from(start, word, label)).max_by_key(|(score, _)| *score)
    }

    fn from(start: usize, word: &[char], label: &[char]) -> Option<(i64, Vec<usize>)> {
        // What stands first in a label is its name: the same word further on is said in passing.
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

    use super::{score, span};
    use pinwheel_engine::engine::LENT_MAX;
    use std::time::Duration;

    #[test]
    fn letters_in_their_order_are_found_and_others_are_not() {
        assert_eq!(score("frz", "freeze: the picture").unwrap().1, [0, 1, 4]);
        assert!(score("zf", "freeze").is_none());
        assert!(score("prof prod", "profile prod: for the machine").is_some());
        assert_eq!(score("", "anything").unwrap().1, Vec::<usize>::new());
    }

    #[test]
    fn the_beginnings_of_words_count_more_than_letters_that_happen_to_be_there() {
        let of = |label| score("th", label).unwrap().0;
        assert!(of("threads: which") > of("with a thing"));
        let profile = |label| score("profile prod", label).unwrap().0;
        assert!(profile("profile prod: for the machine") > profile("profile drill: faults, on prod's plan"));
        assert!(score("log", "log: what happened").unwrap().0 > score("log", "slots: look long").unwrap().0);
    }

    #[test]
    fn a_span_is_a_number_with_its_unit_and_at_most_thirty_days() {
        assert_eq!(span("20m"), Some(Duration::from_secs(1_200)));
        assert_eq!(span("720h"), Some(LENT_MAX));
        for text in ["", "m", "0s", "721h", "20", "-1m", "1.5h", "18446744073709551615h", "20µ"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_the_search_panic(typed in "\\PC{0,20}", label in "\\PC{0,40}") {
            if let Some((_, places)) = score(&typed, &label) {
                let letters = label.chars().flat_map(char::to_lowercase).count();
                proptest::prop_assert!(places.iter().all(|place| *place < letters));
            }
            let _ = span(&typed);
        }
    }
}
