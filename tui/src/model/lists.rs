//! The lists of the views: their rows, filters, orders and columns.
//!
//! Pure, on the console thread. A list consists of columns. Each column is a function from the
//! model and a row to a cell; sorting, filtering, drawing and CSV call the same functions. Bounded
//! by the rows of the picture; a cell is computed when it is drawn.
//!
//! # Why rows keep their places
//!
//! A reader cannot follow a row that moves. So a list is sorted once, when the user requests it:
//! the rows' keys keep that order, and later rows are appended.

pub mod actions;
mod alarms;
mod compare;
mod cores;
mod environment;
mod filter;
mod hosts;
mod log;
mod rings;
mod slots;
mod streams;
mod threads;
mod workers;

pub use compare::{Pair, pairs};
pub use rings::{at as ring_at, reader as ring_reader};
pub use slots::{is_listed as are_slots_listed, word as slot_word};
pub use streams::health as stream_health;
pub use threads::policy as thread_policy;

use super::{Cursor, Model, View};
use crate::theme::Tone;
use crate::widgets::format::is_control;
use filter::Filter;
use std::collections::BTreeMap;

/// Longest filter, in characters.
pub const FILTER_MAX: usize = 80;
/// Width of a column that takes the rest of the screen.
pub const REST: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Threads,
    /// Slots of the silo shown, in place of the slot map while a filter is set.
    Slots,
    /// Workers of the silo shown.
    Workers,
    Streams,
    /// Rings of all silos.
    Rings,
    Alarms,
    /// Findings about the machine at the start of the run.
    Environment,
    /// Cores and their users.
    Cores,
    /// Hosts that share streams with the engine, and the engine's own.
    Hosts,
    /// Events of the run, with its alarms.
    Log,
    /// Actions of operators and of the engine, with their effects.
    Actions,
    /// Values at the mark beside values at the moment shown.
    Compare,
}

impl List {
    /// All lists, in the order of the variants.
    pub const ALL: [List; 12] = [
        List::Threads,
        List::Slots,
        List::Workers,
        List::Streams,
        List::Rings,
        List::Alarms,
        List::Environment,
        List::Cores,
        List::Hosts,
        List::Log,
        List::Actions,
        List::Compare,
    ];

    /// The list that `view` shows, if it shows a list.
    pub fn of(view: View) -> Option<List> {
        List::ALL.into_iter().find(|list| list.view() == view)
    }

    /// The view that shows this list.
    pub fn view(self) -> View {
        match self {
            List::Threads => View::Threads,
            List::Slots => View::Slots,
            List::Workers => View::Workers,
            List::Streams => View::Streams,
            List::Rings => View::Rings,
            List::Alarms => View::Alarms,
            List::Environment => View::Environment,
            List::Cores => View::Cores,
            List::Hosts => View::Hosts,
            List::Log => View::Log,
            List::Actions => View::Actions,
            List::Compare => View::Compare,
        }
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
            List::Hosts => &hosts::SPEC,
            List::Log => &log::SPEC,
            List::Actions => &actions::SPEC,
            List::Compare => &compare::SPEC,
        }
    }

    pub fn columns(self) -> &'static [Column] {
        self.spec().columns
    }

    /// Number of rows before filtering.
    pub fn len(self, model: &Model) -> usize {
        (self.spec().len)(model)
    }

    /// The row's key: it stays the same while rows come and go.
    pub fn key(self, model: &Model, row: usize) -> u64 {
        (self.spec().key)(model, row)
    }

    /// The row's details, one entry per line.
    pub fn details(self, model: &Model, row: usize) -> Vec<Line> {
        (self.spec().details)(model, row)
    }

    /// The index of this list's row in `cursor`.
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
            List::Hosts => &mut cursor.host,
            List::Log => &mut cursor.event,
            List::Actions => &mut cursor.action,
            List::Compare => &mut cursor.fact,
        }
    }
}

/// The functions and columns of a list.
struct Spec {
    columns: &'static [Column],
    len: fn(&Model) -> usize,
    key: fn(&Model, usize) -> u64,
    details: fn(&Model, usize) -> Vec<Line>,
}

/// A line of details and its tone.
pub type Line = (String, Tone);

fn plain(text: String) -> Line {
    (text, Tone::Plain)
}

/// No details: the view draws its own.
fn drawn_by_the_view(_model: &Model, _row: usize) -> Vec<Line> {
    Vec::new()
}

/// Key of a list whose rows never change places: the row's index.
fn by_place(_model: &Model, row: usize) -> u64 {
    row as u64
}

pub struct Column {
    pub name: &'static str,
    /// Widths on a screen below 100 columns, below 160, and from 160 on; 0: shown on request only;
    /// [`REST`]: the rest of the screen.
    pub widths: [u16; 3],
    /// Computes the cell of a row.
    pub cell: fn(&Model, usize) -> Cell,
}

const fn column(name: &'static str, widths: [u16; 3], cell: fn(&Model, usize) -> Cell) -> Column {
    Column { name, widths, cell }
}

/// Sort key of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rank {
    Number(f64),
    Words,
    /// Unknown: sorted after all known values.
    Absent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    /// Colour and weight of the text.
    pub tone: Tone,
    pub rank: Rank,
    /// Glyphs with a tone each; the screen shows them in place of the text.
    pub marks: Vec<(char, Tone)>,
}

impl Cell {
    fn words(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain, rank: Rank::Words, marks: Vec::new() }
    }

    fn line((text, tone): Line) -> Cell {
        Cell::words(text).toned(tone)
    }

    /// A cell that shows `text` and sorts by `number`.
    fn number(text: impl Into<String>, number: f64) -> Cell {
        Cell { rank: Rank::Number(number), ..Cell::words(text) }
    }

    /// A cell of a number that may be unknown.
    fn maybe(number: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
        number.map_or_else(Cell::absent, |number| Cell::number(text(number), number))
    }

    /// A cell of a time that may be unknown.
    fn time(ns: Option<u64>) -> Cell {
        ns.map_or_else(Cell::absent, |ns| Cell::number(crate::widgets::format::time(ns), ns as f64))
    }

    fn count(count: u64) -> Cell {
        Cell::number(crate::widgets::format::count(count), count as f64)
    }

    /// A cell of an unknown value.
    fn absent() -> Cell {
        Cell { text: "–".to_owned(), tone: Tone::Dim, rank: Rank::Absent, marks: Vec::new() }
    }

    fn toned(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
}

/// The user's arrangement of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arranged {
    /// The filter as written; empty: all rows.
    pub filter: String,
    /// The order in force; `None`: the engine's.
    pub order: Option<Order>,
    /// Columns whose visibility the user has toggled, one bit each.
    pub toggled: u32,
    /// Column and direction saved by an earlier start, or of an engine before this one. The list is
    /// sorted by them as soon as it has rows.
    pub wanted: Option<(usize, Direction)>,
}

/// An order of rows, fixed at the time of sorting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Index of the column sorted by.
    pub column: usize,
    pub direction: Direction,
    /// The rows' keys in that order.
    keys: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first; words alphabetically.
    Up,
    /// Largest first.
    Down,
}

impl Direction {
    pub fn other(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Arrangements([Arranged; List::ALL.len()]);

impl Arrangements {
    pub fn of(&self, list: List) -> &Arranged {
        &self.0[list as usize]
    }

    /// Has each list that is sorted sorted anew: its rows are others.
    pub fn sort_again(&mut self) {
        for arranged in &mut self.0 {
            let order = arranged.order.take().map(|order| (order.column, order.direction));
            arranged.wanted = order.or(arranged.wanted);
        }
    }

    /// The arrangement of `list`, to change.
    pub fn of_mut(&mut self, list: List) -> &mut Arranged {
        &mut self.0[list as usize]
    }
}

/// Indexes of the rows of `list` that pass its filter, in display order.
pub fn shown(model: &Model, list: List) -> Vec<usize> {
    let arranged = model.lists.of(list);
    let mut rows: Vec<usize> = match list {
        List::Alarms => super::alarms::rows(model),
        _ => (0..list.len(model)).collect(),
    };
    if let Some(order) = &arranged.order {
        let place: BTreeMap<u64, usize> = order.keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
        rows.sort_by_key(|row| place.get(&list.key(model, *row)).copied().unwrap_or(usize::MAX));
    }
    let filter = Filter::read(&arranged.filter, list.columns());
    if !filter.is_empty() {
        rows.retain(|row| filter.passes(model, list, *row));
    }
    rows
}

/// The row under the cursor as text: the visible cells, then its details. Control letters of
/// outside names become blanks, so that nothing happens where it is pasted.
pub fn copied(model: &Model, list: List) -> Option<String> {
    let row = match list {
        List::Alarms => super::alarms::selected_row(model, &model.picture()?.snapshot)?,
        _ => *list.cursor(&mut model.cursor.clone()),
    };
    if row >= list.len(model) {
        return None;
    }
    let cells = list.columns().iter().map(|column| (column.cell)(model, row).text);
    let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    let details = match list {
        List::Alarms => super::alarms::detail_lines(model),
        _ => list.details(model, row).into_iter().map(|(text, _)| text).collect(),
    };
    let clean = |line: String| line.replace(|letter| is_control(letter) || letter == '\n', " ");
    let lines = std::iter::once(cells.into_iter().map(clean).collect::<Vec<_>>().join("\t"));
    Some(lines.chain(details.into_iter().map(clean)).map(|line| line + "\n").collect())
}

/// What is wrong with an expression in the filter of `list`, and where.
pub fn filter_trouble(model: &Model, list: List) -> Option<String> {
    Filter::read(&model.lists.of(list).filter, list.columns()).trouble().map(str::to_owned)
}

/// Sorts `list` by `column` once. Later rows are appended.
pub fn sort(model: &mut Model, list: List, column: usize, direction: Direction) {
    let Some(spec) = list.columns().get(column) else { return };
    let mut rows: Vec<(Cell, usize)> = (0..list.len(model)).map(|row| ((spec.cell)(model, row), row)).collect();
    rows.sort_by(|(a, _), (b, _)| compare(a, b, direction));
    let keys = rows.into_iter().map(|(_, row)| list.key(model, row)).collect();
    let arranged = model.lists.of_mut(list);
    (arranged.order, arranged.wanted) = (Some(Order { column, direction, keys }), None);
}

fn compare(a: &Cell, b: &Cell, direction: Direction) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let found = match (a.rank, b.rank) {
        (Rank::Absent, Rank::Absent) => return Ordering::Equal,
        (Rank::Absent, _) => return Ordering::Greater,
        (_, Rank::Absent) => return Ordering::Less,
        (Rank::Number(a), Rank::Number(b)) => a.total_cmp(&b),
        (Rank::Number(_), Rank::Words) => Ordering::Less,
        (Rank::Words, Rank::Number(_)) => Ordering::Greater,
        (Rank::Words, Rank::Words) => a.text.cmp(&b.text),
    };
    if direction == Direction::Up { found } else { found.reverse() }
}

/// Direction of the first sort by a column: numbers descend, words ascend.
pub fn first_direction(model: &Model, list: List, column: usize) -> Direction {
    let cell = |row| list.columns().get(column).map(|spec| (spec.cell)(model, row).rank);
    let is_number = (0..list.len(model)).any(|row| matches!(cell(row), Some(Rank::Number(_))));
    if is_number { Direction::Down } else { Direction::Up }
}

/// Indexes and widths of the columns shown on a screen `width` columns wide.
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

/// Whether a line of headings precedes the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headings {
    Shown,
    /// The values follow others that have headings.
    Hidden,
}

/// `list` as comma-separated values after RFC 4180: every column of every row that passes the
/// filter. With `at_s`, each row begins with that moment.
pub fn csv(model: &Model, list: List, at_s: Option<f64>, heads: Headings) -> String {
    let quoted = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let columns = list.columns().iter().filter(|column| !column.name.is_empty());
    let row = |first: Option<String>, cells: Vec<String>| {
        first.into_iter().chain(cells).collect::<Vec<_>>().join(",") + "\r\n"
    };
    let mut text = String::new();
    if heads == Headings::Shown {
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
