//! Questions before what cannot be taken back.

use super::middle;
use crate::keymap::{Action, Scope};
use crate::model::commands::said;
use crate::model::deeds::Deed;
use crate::model::lists::Line;
use crate::model::{Asked, Model, View};
use crate::source::{Bond, Hold};
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::format::count;
use crate::widgets::pen::Pen;
use pinwheel_engine::profile::{Rate, SpinPolicy};

/// Columns of a question, where there are as many.
const WIDTH: u16 = 76;
/// And of a short one.
const NARROW: u16 = 62;

/// "Apply this profile?" with what would change, and who would mind.
pub fn apply(model: &Model, asked: &Asked, pen: &mut Pen<'_>) {
    let offer = &asked.offer;
    let from = model.in_force().map_or("?", |(name, _)| name);
    let span = asked.span.map_or_else(String::new, |span| format!(" for {}, then {from} again", said(span)));
    let mut lines = vec![(format!("{from} → {}{span}", offer.name), Tone::Accent)];
    lines.extend(own_rate(asked));
    lines.extend(checks(model, asked));
    lines.extend(reason(model));
    let keys = "y or enter: apply    n or esc: do not    w: why";
    let width = WIDTH.min(pen.width()).saturating_sub(2);
    let question = rows(&lines, width) + Pen::rows_wrapped(width, 1, keys);
    let changes = profiles::changes_rows(offer, width);
    let mut part = middle(pen, WIDTH, question.saturating_add(changes).saturating_add(2));
    let mut inside = part.framed("apply a profile?");
    let (height, kept) = (inside.height(), question.min(inside.height()));
    question_in(&lines, keys, &mut inside.rows(0, kept));
    let key = model.keymap.first_key(Scope::Views, Action::Show(View::Profiles));
    profiles::changes(offer, &format!(": view {key} has all"), &mut inside.rows(kept, height));
}

/// What becomes of a rate that was set since, where the profile leaves it to the run.
fn own_rate(asked: &Asked) -> Option<Line> {
    let body = asked.offer.body.as_ref().ok()?;
    let changes = body.changes.iter().any(|change| change.field == "input.rate");
    (changes && body.profile.input.rate == Rate::Auto).then(|| {
        let words = "rate: the run's own, as it was started with or as warm-up measured it";
        (words.to_owned(), Tone::Plain)
    })
}

/// Rows of `lines` in `width` columns.
fn rows(lines: &[Line], width: u16) -> u16 {
    lines.iter().map(|(text, _)| Pen::rows_wrapped(width, 1, text)).sum()
}

/// Lines, and below them the keys, which have a row whatever there is.
fn question_in(lines: &[Line], keys: &str, pen: &mut Pen<'_>) {
    let height = pen.height();
    let top = height.saturating_sub(Pen::rows_wrapped(pen.width(), 1, keys));
    let mut body = pen.rows(0, top);
    let mut y = 0;
    for (text, tone) in lines {
        y = body.put_wrapped(1, y, text, *tone);
    }
    pen.rows(top, height).put_wrapped(1, 0, keys, Tone::Accent);
}

/// A question in the middle of the screen, as high as its lines are. A title that has no room is its first line, too.
fn question(title: &str, columns: u16, mut lines: Vec<Line>, keys: &str, pen: &mut Pen<'_>) {
    let width = columns.min(pen.width());
    if title.chars().count() + 6 > usize::from(width) {
        lines.insert(0, (title.to_owned(), Tone::Title));
    }
    let inner = width.saturating_sub(2);
    let height = rows(&lines, inner) + Pen::rows_wrapped(inner, 1, keys) + 2;
    // A blank row before the keys, where there is one.
    let height = if height < pen.height() { height + 1 } else { height };
    let mut part = middle(pen, columns, height);
    question_in(&lines, keys, &mut part.framed(title));
}

/// Which threads it would be refused to, and who else is on the cores.
fn checks(model: &Model, asked: &Asked) -> Vec<Line> {
    let (Ok(body), Some(picture)) = (&asked.offer.body, model.live.picture.as_deref()) else { return Vec::new() };
    let threads = &picture.snapshot.threads;
    let mut lines = Vec::new();
    if body.profile.spin == SpinPolicy::Prod {
        let shared = threads.iter().filter(|thread| !thread.exclusive).map(|thread| thread.name.as_str());
        let shared: Vec<&str> = shared.collect();
        lines.push(match shared.is_empty() {
            true => ("● every hot thread is alone on its core: Prod would be taken by all".to_owned(), Tone::Good),
            false => (format!("▲ not alone on their cores, so Prod is refused to: {}", shared.join(", ")), Tone::Warn),
        });
    }
    let planned = |core: u32| threads.iter().any(|thread| thread.core == Some(core));
    let own = Some(picture.snapshot.engine.pid);
    for core in model.found.cores.rows().iter().filter(|core| planned(core.core)) {
        let pins = core.pinned_by.iter().filter(|pin| Some(pin.pid) != own);
        lines.extend(pins.take(1).map(|pin| {
            let user = pin.user.as_deref().unwrap_or("user not visible");
            (format!("▲ core {} is also used by {} ({}, {user})", core.core, pin.name, pin.pid), Tone::Warn)
        }));
    }
    let rivals = threads.iter().filter_map(|thread| Some((thread, thread.contended_by.as_ref()?)));
    lines.extend(rivals.take(2).map(|(thread, rival)| {
        (format!("▲ {} ({}) wants the core of {}", rival.command, rival.pid, thread.name), Tone::Warn)
    }));
    lines
}

fn open(model: &Model) -> String {
    count(model.live.picture.as_ref().map_or(0, |picture| picture.derived.open))
}

/// Why, as far as it was written.
fn reason(model: &Model) -> Option<Line> {
    (!model.why.is_empty()).then(|| (format!("why: {}", model.why), Tone::Plain))
}

/// "Drain and quit?"
pub fn quit(model: &Model, pen: &mut Pen<'_>) {
    let mut lines = vec![
        ("The feed stops; every shot that was accepted is answered.".to_owned(), Tone::Plain),
        (format!("{} shots are in the path now.", open(model)), Tone::Plain),
    ];
    lines.extend(reason(model));
    question("drain and quit?", NARROW, lines, "y or enter: drain and quit    n or esc: go on    w: why", pen);
}

/// "Quit with shots unanswered?"
pub fn force(model: &Model, pen: &mut Pen<'_>) {
    let lines = vec![(format!("✖ {} shots are not answered yet and would not be.", open(model)), Tone::Bad)];
    let title = "quit before the drain is over?";
    question(title, NARROW, lines, "y or enter: quit now    n or esc: let it finish", pen);
}

/// "Drain and end the engine of another process?"
pub fn end(model: &Model, pen: &mut Pen<'_>) {
    let whose = match model.bond {
        Bond::Own => "this process".to_owned(),
        Bond::Attached { pid, .. } => format!("process {pid}"),
    };
    let mut lines = vec![
        ("Its feed stops for everybody; accepted shots are answered.".to_owned(), Tone::Warn),
        (format!("{} shots are in the path now. q only leaves.", open(model)), Tone::Plain),
    ];
    lines.extend(reason(model));
    let title = format!("drain and end the engine of {whose}?");
    question(&title, NARROW, lines, "y or enter: drain and end it    n or esc: go on    w: why", pen);
}

/// "Hold the feed?", or let it go.
pub fn hold(model: &Model, hold: Hold, pen: &mut Pen<'_>) {
    let (title, what) = match hold {
        Hold::Hold => ("hold the feed?", "No shot is taken until it is let go; what is under way finishes."),
        Hold::Release => ("let the feed go?", "Shots are taken again, at the rate in force."),
    };
    let mut lines = vec![(what.to_owned(), Tone::Plain)];
    lines.extend(reason(model));
    question(title, WIDTH, lines, "y or enter: yes    n or esc: no    w: why", pen);
}

/// "Do this to a silo, a stream, the input?"
pub fn deed(model: &Model, deed: &Deed, pen: &mut Pen<'_>) {
    let mut lines = deed.meaning(model);
    lines.extend(reason(model));
    let keys = "y or enter: do it    n or esc: do not    w: why";
    question(&format!("{}?", deed.label()), WIDTH, lines, keys, pen);
}

/// The same, where a word must be typed.
pub fn typed(model: &Model, deed: &Deed, text: &str, pen: &mut Pen<'_>) {
    let word = deed.word().unwrap_or_default();
    let mut lines = deed.meaning(model);
    lines.push((written(text, pen), Tone::Plain));
    let keys = format!("type {word}, a reason too if you like, then enter    esc: do not");
    question(&format!("{}?", deed.label()), WIDTH, lines, &keys, pen);
}

/// Which stream goes where, being written.
pub fn moved(text: &str, pen: &mut Pen<'_>) {
    writing("which stream, and to which silo: 3 1", text, "enter: ask    esc: nothing moves", pen);
}

/// Another input being written.
pub fn input(text: &str, pen: &mut Pen<'_>) {
    let title = "input: sampler, a file of shots, udp:ADDRESS:PORT, unix:PATH, shm:NAME";
    let keys = "enter: ask    esc: stay    also --dem F, --observables F, --format F";
    writing(title, text, keys, pen);
}

/// Why, being written.
pub fn why(text: &str, pen: &mut Pen<'_>) {
    writing("why, kept with the action", text, "enter: back to the question    esc: as it was", pen);
}

/// A note being written.
pub fn note(text: &str, pen: &mut Pen<'_>) {
    writing("a note, kept with the run", text, "enter: keep    esc: no note", pen);
}

/// A rate being written.
pub fn rate(model: &Model, text: &str, pen: &mut Pen<'_>) {
    let now = model.live.picture.as_ref().and_then(|picture| picture.snapshot.engine.rate_hz);
    let now = now.map_or_else(|| "as fast as it goes".to_owned(), |hz| format!("{hz:.0}/s"));
    let keys = format!("enter: take it    esc: stay at {now}");
    writing("shots per second of all streams together, or max; then why, if you like", text, &keys, pen);
}

fn writing(title: &str, text: &str, keys: &str, pen: &mut Pen<'_>) {
    let lines = vec![(written(text, pen), Tone::Plain)];
    question(title, WIDTH, lines, keys, pen);
}

/// The end of what is being written, in one row: that is where the next letter goes.
fn written(text: &str, pen: &Pen<'_>) -> String {
    let room = usize::from(WIDTH.min(pen.width()).saturating_sub(6));
    let hidden = text.chars().count().saturating_sub(room);
    let mark = if hidden > 0 { "…" } else { "" };
    mark.chars().chain(text.chars().skip(hidden)).chain(['_']).collect()
}
