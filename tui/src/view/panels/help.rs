//! Help: first steps, the key table, and a legend of the glyphs.

use crate::keymap::bound::Help;
use crate::keymap::{Action, Scope};
use crate::model::{Model, View};
use crate::theme::Tone;
use crate::widgets::format::{bytes_per_s, number, percent};
use crate::widgets::pen::Pen;
use crate::widgets::wrap;

/// Fewest columns for rows side by side.
const TWO_COLUMNS: u16 = 160;
/// Column of the help texts.
const WHAT: u16 = 16;
/// The legend of the glyphs.
const LEGEND: [&str; 7] = [
    "heat   · ░ ▒ ▓ █   age of a heartbeat against the limit: below 1 %, 10 %, 32 %, 100 %, above",
    "slots  . idle  w written  I in flight  c completed; the overview has a dot for each that is not idle",
    "idle   ▮ worker free  ▯ busy; in hexadecimal worker 0 is the lowest bit",
    "times  from the scheduled arrival; rates and percentiles are of the last second; – is not known, not zero; \
     since the start: percentiles of streams, tasks, moves, arbiter and GPU",
    "waits  since the start: how often dispatch found no free worker, and the feed no free slot",
    "full   in placement: │ marks the limit, +2% is the expected load of streams just placed there",
    "filter hot live: rows with both words · !hot: without it · hot|cold: with one of them · core:3: in that column",
];

/// The last row that a page of this size can begin with.
pub fn scroll_last(model: &Model, (width, height): (u16, u16)) -> usize {
    let columns = columns(width);
    let visible = usize::from(height.saturating_sub(1)) * usize::from(columns);
    rows(model, usize::from(width / columns).saturating_sub(4)).len().saturating_sub(visible)
}

fn columns(width: u16) -> u16 {
    if width >= TWO_COLUMNS { 2 } else { 1 }
}

pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    pen.rule(0, View::Help.heading());
    let width = pen.width();
    let columns = columns(width);
    let rows = rows(model, usize::from(width / columns).saturating_sub(4));
    let visible = usize::from(pen.height().saturating_sub(1));
    let first = model.cursor.help.min(rows.len().saturating_sub(visible * usize::from(columns)));
    let mut rows = rows.iter().skip(first);
    for column in 0..columns {
        let mut pen = pen.part(column * (width / columns), 1, width / columns, u16::MAX);
        for (y, row) in (0..).zip(rows.by_ref().take(visible)) {
            one(row, &mut pen, y);
        }
    }
}

fn one(row: &Row<'_>, pen: &mut Pen<'_>, y: u16) {
    match row {
        Row::Heading(text) => {
            pen.put(1, y, text, Tone::Title);
        }
        Row::Key(help, what) => {
            pen.put(3, y, &help.keys(), Tone::Accent);
            pen.put(WHAT, y, what, Tone::Plain);
        }
        Row::More(what) => {
            pen.put(WHAT, y, what, Tone::Plain);
        }
        Row::Text(text) => {
            pen.put(3, y, text, Tone::Plain);
        }
    }
}

enum Row<'a> {
    Heading(&'static str),
    /// Keys and the first row of their help text.
    Key(Help<'a>, &'static str),
    /// A further row of the help text.
    More(&'static str),
    Text(String),
}

/// First steps for new users: the input, the profile and the main keys.
fn first_minutes(model: &Model) -> Vec<String> {
    let key = |action| model.keymap.first_key(Scope::Views, action);
    let mut lines = match model.picture() {
        None => vec!["The engine is starting; its first picture appears without a key.".to_owned()],
        Some(picture) => {
            let engine = &picture.snapshot.engine;
            let rate = arrival(engine.rate_hz, &engine.rate_origin, !picture.snapshot.sources.is_empty());
            vec![
                format!(
                    "Shots of {} arrive {rate}. Device: {}; decoder: {}.",
                    engine.input, engine.device, engine.decoder
                ),
                format!("Profile {} defines how threads wait for work and on which cores they run.", engine.profile),
            ]
        }
    };
    lines.push(format!(
        "{} begins a tour: six steps on this engine, with a fault to find.",
        model.keymap.first_key(Scope::Help, Action::Tour)
    ));
    lines.push(format!(
        "{} {} {} change the view; each title is the question that the view answers.",
        key(Action::NextView),
        key(Action::Show(View::Threads)),
        key(Action::Show(View::Slots))
    ));
    lines.push(format!(
        "{} finds a command by name; {} follows a row's link, {} goes back.",
        key(Action::Palette),
        key(Action::Follow),
        key(Action::Back)
    ));
    lines.push(format!(
        "{} freezes the picture, {} steps back in time, {} switches the profile, {} asks, then quits.",
        key(Action::Freeze),
        key(Action::Scrub(-100)),
        key(Action::Choose),
        key(Action::Quit)
    ));
    lines
}

/// How shots arrive: by a rate, by their senders, or without a pause.
fn arrival(rate_hz: Option<f64>, origin: &str, is_live: bool) -> String {
    match rate_hz {
        _ if is_live => "when their senders send them".to_owned(),
        Some(hz) => format!("at {} shots a second ({origin})", number(hz)),
        None => "as fast as possible".to_owned(),
    }
}

/// A text in rows of at most `room` characters.
fn wrapped<'a>(text: &str, room: usize) -> impl Iterator<Item = Row<'a>> {
    wrap::rows(text, room, room).map(|row| Row::Text(row.to_owned()))
}

fn rows(model: &Model, room: usize) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    rows.push(Row::Heading("first minutes"));
    rows.extend(first_minutes(model).iter().flat_map(|text| wrapped(text, room)));
    for scope in Scope::ALL {
        rows.push(Row::Heading(scope.heading()));
        for help in model.keymap.help(scope) {
            let columns = (room + 4).saturating_sub(usize::from(WHAT));
            let mut what = wrap::rows(help.what(), columns, columns);
            rows.push(Row::Key(help, what.next().unwrap_or("")));
            rows.extend(what.map(Row::More));
        }
    }
    rows.push(Row::Heading("reading the screen"));
    rows.extend(LEGEND.iter().flat_map(|text| wrapped(text, room)));
    let cost = &model.console_cost;
    let (cpu, bytes) = (percent(cost.cpu_ms_per_s / 1e3), bytes_per_s(cost.bytes_per_s));
    rows.push(Row::Heading("this console (the end of the last row)"));
    let text = format!("{cpu} of a core, {bytes} to the terminal, {:.0} frames a second", cost.draws_per_s);
    rows.extend(wrapped(&text, room));
    rows
}

#[cfg(test)]
mod tests {
    use super::arrival;

    #[test]
    fn shots_of_a_live_source_arrive_when_they_are_sent() {
        assert_eq!(arrival(None, "", true), "when their senders send them");
        assert_eq!(arrival(None, "max", false), "as fast as possible");
        assert_eq!(arrival(Some(500.0), "--rate", false), "at 500 shots a second (--rate)");
    }
}
