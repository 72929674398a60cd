//! Lists: what a view's rows are, which of them are shown, in which order, with which columns.
//!
//! Pure, on the console thread. A list is columns, each a function from the model and a row to a cell; sorting, filtering,
//! drawing and CSV ask the same functions. Bounded by what the picture holds; a cell is made when it is drawn.
//!
//! # Why rows stay put
//!
//! A row that moves while one reads it cannot be read. So sorting happens once, when the user asks: the order found then
//! is kept by the rows' keys, and what comes later is added at the end.

pub mod actions;
mod alarms;
mod compare;
mod cores;
mod environment;
mod filter;
mod log;
mod rings;
mod slots;
mod streams;
mod threads;
mod workers;

pub use compare::{Pair, pairs};
pub use rings::{at as ring_at, reader as ring_reader};

use super::{Cursor, Model, View};
use crate::theme::Tone;
use filter::Filter;
use std::collections::BTreeMap;

/// Longest filter, characters.
pub const FILTER_MAX: usize = 80;
/// A column of that width takes what is left.
pub const REST: u16 = u16::MAX;

/// A view's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Hot threads.
    Threads,
    /// Slots of the silo shown, where they are filtered.
    Slots,
    /// Workers of the silo shown.
    Workers,
    /// Streams.
    Streams,
    /// Rings of all silos.
    Rings,
    /// Alarms.
    Alarms,
    /// What the machine is like.
    Environment,
    /// Cores and their users.
    Cores,
    /// Events of the run.
    Log,
    /// What was done to the engine.
    Actions,
    /// The mark beside what is shown.
    Compare,
}

impl List {
    /// All, in the order of their states.
    pub const ALL: [List; 11] = [
        List::Threads,
        List::Slots,
        List::Workers,
        List::Streams,
        List::Rings,
        List::Alarms,
        List::Environment,
        List::Cores,
        List::Log,
        List::Actions,
        List::Compare,
    ];

    /// The list of a view; `None`: it has none.
    pub fn of(view: View) -> Option<List> {
        Some(match view {
            View::Threads => List::Threads,
            View::Slots => List::Slots,
            View::Workers => List::Workers,
            View::Streams => List::Streams,
            View::Rings => List::Rings,
            View::Alarms => List::Alarms,
            View::Environment => List::Environment,
            View::Cores => List::Cores,
            View::Log => List::Log,
            View::Actions => List::Actions,
            View::Compare => List::Compare,
            _ => return None,
        })
    }

    fn spec(self) -> &'static Spec {
        match self {
            List::Threads => &threads::SPEC,
            List::Slots => &slots::SPEC,
            List::Workers => &workers::SPEC,
            List::Streams => &streams::SPEC,
            List::Rings => &rings::SPEC,
            List::Alarms => &alarms::SPEC,
            List::Environment => &environment::SPEC,
            List::Cores => &cores::SPEC,
            List::Log => &log::SPEC,
            List::Actions => &actions::SPEC,
            List::Compare => &compare::SPEC,
        }
    }

    /// Its columns.
    pub fn columns(self) -> &'static [Column] {
        self.spec().columns
    }

    /// Rows there are.
    pub fn len(self, model: &Model) -> usize {
        (self.spec().len)(model)
    }

    /// What a row stays known by while rows come and go.
    pub fn key(self, model: &Model, row: usize) -> u64 {
        (self.spec().key)(model, row)
    }

    /// The row's details, a line each.
    pub fn details(self, model: &Model, row: usize) -> Vec<Line> {
        (self.spec().details)(model, row)
    }

    /// Where the cursor is in it.
    pub fn cursor(self, cursor: &mut Cursor) -> &mut usize {
        match self {
            List::Threads => &mut cursor.thread,
            List::Slots => &mut cursor.slot,
            List::Workers => &mut cursor.worker,
            List::Streams => &mut cursor.stream,
            List::Rings => &mut cursor.ring,
            List::Alarms => &mut cursor.alarm,
            List::Environment => &mut cursor.environment,
            List::Cores => &mut cursor.core,
            List::Log => &mut cursor.event,
            List::Actions => &mut cursor.action,
            List::Compare => &mut cursor.fact,
        }
    }
}

/// What a list is made of.
struct Spec {
    columns: &'static [Column],
    len: fn(&Model) -> usize,
    key: fn(&Model, usize) -> u64,
    details: fn(&Model, usize) -> Vec<Line>,
}

/// A line of details and how it looks.
pub type Line = (String, Tone);

/// A line like any other.
fn plain(text: String) -> Line {
    (text, Tone::Plain)
}

/// No details: the view draws its own.
fn drawn_by_the_view(_model: &Model, _row: usize) -> Vec<Line> {
    Vec::new()
}

/// The row's own number as its key.
fn by_place(_model: &Model, row: usize) -> u64 {
    row as u64
}

/// One column.
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Columns of the screen below 100, below 160 and from there on; 0: only if asked for; [`REST`]: what is left.
    pub widths: [u16; 3],
    /// A row's cell.
    pub cell: fn(&Model, usize) -> Cell,
}

const fn column(name: &'static str, widths: [u16; 3], cell: fn(&Model, usize) -> Cell) -> Column {
    Column { name, widths, cell }
}

/// By what a cell is sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rank {
    /// A number.
    Number(f64),
    /// Its words.
    Words,
    /// Not known: after all that is.
    Absent,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How that looks.
    pub tone: Tone,
    /// How it sorts.
    pub rank: Rank,
    /// Glyphs each with a look of its own, in place of the text on the screen.
    pub marks: Vec<(char, Tone)>,
}

impl Cell {
    /// Words.
    fn words(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain, rank: Rank::Words, marks: Vec::new() }
    }

    /// A number as people read it.
    fn number(text: impl Into<String>, number: f64) -> Cell {
        Cell { rank: Rank::Number(number), ..Cell::words(text) }
    }

    /// A number that may not be known.
    fn maybe(number: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
        number.map_or_else(Cell::absent, |number| Cell::number(text(number), number))
    }

    /// A time that may not be known.
    fn time(ns: Option<u64>) -> Cell {
        ns.map_or_else(Cell::absent, |ns| Cell::number(crate::widgets::format::time(ns), ns as f64))
    }

    /// A count.
    fn count(count: u64) -> Cell {
        Cell::number(crate::widgets::format::count(count), count as f64)
    }

    /// What is not known.
    fn absent() -> Cell {
        Cell { text: "–".to_owned(), tone: Tone::Dim, rank: Rank::Absent, marks: Vec::new() }
    }

    fn toned(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
}

/// How the user arranged a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arranged {
    /// Which rows are shown, as it was written; empty: all.
    pub filter: String,
    /// The order asked for.
    pub order: Option<Order>,
    /// Columns shown or hidden other than by themselves, a bit each.
    pub toggled: u32,
    /// The order of an earlier start: by which column, which way. It is sorted so once there are rows.
    pub wanted: Option<(usize, Way)>,
}

/// An order, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By which column.
    pub column: usize,
    /// Which way.
    pub way: Way,
    /// The rows' keys in that order.
    keys: Vec<u64>,
}

/// Which way a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Smallest first, or by the alphabet.
    Up,
    /// Largest first.
    Down,
}

impl Way {
    /// The other one.
    pub fn other(self) -> Way {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        }
    }
}

/// The arrangements of all lists.
#[derive(Clone, Debug, Default)]
pub struct Arrangements([Arranged; List::ALL.len()]);

impl Arrangements {
    /// That list's.
    pub fn of(&self, list: List) -> &Arranged {
        &self.0[list as usize]
    }

    /// That list's, to change.
    pub fn of_mut(&mut self, list: List) -> &mut Arranged {
        &mut self.0[list as usize]
    }
}

/// The rows of `list` that are shown, in the order in which they are.
pub fn shown(model: &Model, list: List) -> Vec<usize> {
    let arranged = model.lists.of(list);
    let mut rows: Vec<usize> = (0..list.len(model)).collect();
    if let Some(order) = &arranged.order {
        let place: BTreeMap<u64, usize> = order.keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        rows.sort_by_key(|row| place.get(&list.key(model, *row)).copied().unwrap_or(usize::MAX));
    }
    let filter = Filter::read(&arranged.filter, list.columns());
    if !filter.is_empty() {
        rows.retain(|row| filter.leaves(model, list, *row));
    }
    rows
}

/// Sorts `list` by `column`, once.
pub fn sort(model: &mut Model, list: List, column: usize, way: Way) {
    let Some(spec) = list.columns().get(column) else { return };
    let mut rows: Vec<(Cell, usize)> = (0..list.len(model)).map(|row| ((spec.cell)(model, row), row)).collect();
    rows.sort_by(|(a, _), (b, _)| compare(a, b, way));
    let keys = rows.into_iter().map(|(_, row)| list.key(model, row)).collect();
    let arranged = model.lists.of_mut(list);
    (arranged.order, arranged.wanted) = (Some(Order { column, way, keys }), None);
}

fn compare(a: &Cell, b: &Cell, way: Way) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let found = match (a.rank, b.rank) {
        (Rank::Absent, Rank::Absent) => return Ordering::Equal,
        (Rank::Absent, _) => return Ordering::Greater,
        (_, Rank::Absent) => return Ordering::Less,
        (Rank::Number(a), Rank::Number(b)) => a.total_cmp(&b),
        _ => a.text.cmp(&b.text),
    };
    if way == Way::Up { found } else { found.reverse() }
}

/// The way in which a column is sorted at first: the largest number first, words by the alphabet.
pub fn first_way(model: &Model, list: List, column: usize) -> Way {
    let cell = |row| list.columns().get(column).map(|spec| (spec.cell)(model, row).rank);
    let is_number = (0..list.len(model)).any(|row| matches!(cell(row), Some(Rank::Number(_))));
    if is_number { Way::Down } else { Way::Up }
}

/// Which columns are shown on a screen of that many columns: their places and widths.
pub fn columns_shown(model: &Model, list: List, width: u16) -> Vec<(usize, u16)> {
    let class = match width {
        0..=99 => 0,
        100..=159 => 1,
        _ => 2,
    };
    let toggled = model.lists.of(list).toggled;
    let mut shown = Vec::new();
    for (place, column) in list.columns().iter().enumerate() {
        let (own, is_toggled) = (column.widths[class], toggled >> place & 1 == 1);
        match (own, is_toggled) {
            (0, false) => {}
            (0, true) => shown.push((place, column.widths.into_iter().find(|width| *width > 0).unwrap_or(12))),
            (own, false) => shown.push((place, own)),
            (_, true) => {}
        }
    }
    shown
}

/// Whether values have a line of headings before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// They have.
    Shown,
    /// They follow others that have.
    Hidden,
}

/// `list` as comma-separated values after RFC 4180: every column, every row that is shown; before them its moment, `at_s`,
/// where there is one for each.
pub fn csv(model: &Model, list: List, at_s: Option<f64>, heads: Heads) -> String {
    let quoted = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let columns = list.columns().iter().filter(|column| !column.name.is_empty());
    let row = |first: Option<String>, cells: Vec<String>| {
        first.into_iter().chain(cells).collect::<Vec<_>>().join(",") + "\r\n"
    };
    let mut text = String::new();
    if heads == Heads::Shown {
        let names = columns.clone().map(|column| quoted(column.name)).collect();
        text += &row(at_s.map(|_| "at_s".to_owned()), names);
    }
    for at in shown(model, list) {
        let cell = |column: &Column| match (column.cell)(model, at) {
            Cell { rank: Rank::Number(number), .. } => number.to_string(),
            Cell { rank: Rank::Absent, .. } => String::new(),
            Cell { text, .. } => quoted(&text),
        };
        text += &row(at_s.map(|at_s| format!("{at_s:.3}")), columns.clone().map(cell).collect());
    }
    text
}

#[cfg(test)]
mod tests;
