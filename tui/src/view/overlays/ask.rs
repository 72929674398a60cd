//! Questions before dangerous commands, and input lines.

use super::middle;
use crate::keymap::{Action, Scope};
use crate::model::lists::Line;
use crate::model::questions::{meaning, word};
use crate::model::span::said;
use crate::model::{Asked, Model, View};
use crate::source::Ownership;
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::format::count;
use crate::widgets::pen::Pen;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::{Rate, SpinPolicy};

/// Columns of a question, if the screen has them.
const WIDTH: u16 = 76;
/// Columns of a short question, if the screen has them.
const NARROW: u16 = 62;

/// "Apply this profile?", with its changes and the other users of the cores.
pub fn apply(model: &Model, asked: &Asked, pen: &mut Pen<'_>) {
    let offer = &asked.offer;
    let from = model.in_force().map_or("?", |(name, _)| name);
    let span = asked.span.map_or_else(String::new, |span| format!(" for {}, then {from} again", said(span)));
    let mut lines = vec![(format!("{from} → {}{span}", offer.name), Tone::Accent)];
    lines.extend(own_rate(asked));
    lines.extend(checks(model, asked));
    lines.extend(reason(model));
    let keys = &answers(model, "apply", "do not", WHY);
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

/// The rate after the switch, if the operator set one and the profile leaves the rate to the run.
fn own_rate(asked: &Asked) -> Option<Line> {
    let body = asked.offer.body.as_ref().ok()?;
    let changes = body.changes.iter().any(|change| change.field == "input.rate");
    (changes && body.profile.input.rate == Rate::Auto).then(|| {
        let words = "rate: the run's own, as set at its start or measured in warm-up";
        (words.to_owned(), Tone::Plain)
    })
}

/// Rows of `lines` in `width` columns.
fn rows(lines: &[Line], width: u16) -> u16 {
    lines.iter().map(|(text, _)| Pen::rows_wrapped(width, 1, text)).sum()
}

/// Draws `lines`, and the keys below them; the keys always have a row.
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

/// A question in the middle of the screen, as high as its lines need. A title too long for the
/// frame is repeated as the first line.
fn question(title: &str, columns: u16, mut lines: Vec<Line>, keys: &str, pen: &mut Pen<'_>) {
    let width = columns.min(pen.width());
    if title.chars().count() + 6 > usize::from(width) {
        lines.insert(0, (title.to_owned(), Tone::Title));
    }
    let inner = width.saturating_sub(2);
    let height = rows(&lines, inner) + Pen::rows_wrapped(inner, 1, keys) + 2;
    // A blank row before the keys, if there is room.
    let height = if height < pen.height() { height + 1 } else { height };
    let mut part = middle(pen, columns, height);
    question_in(&lines, keys, &mut part.framed(title));
}

/// Threads that would run another policy than the profile's, and other users of the cores.
fn checks(model: &Model, asked: &Asked) -> Vec<Line> {
    let (Ok(body), Some(picture)) = (&asked.offer.body, model.live.picture.as_deref()) else { return Vec::new() };
    let threads = &picture.snapshot.threads;
    let mut lines = Vec::new();
    if body.profile.spin == SpinPolicy::Prod {
        let shared = threads.iter().filter(|thread| !thread.exclusive).map(|thread| thread.name.as_str());
        let shared: Vec<&str> = shared.collect();
        lines.push(match shared.is_empty() {
            true => ("● every hot thread is alone on its core: all would accept Prod".to_owned(), Tone::Good),
            false => (
                format!("▲ these threads share their core and run Lab instead of Prod: {}", shared.join(", ")),
                Tone::Warn,
            ),
        });
    }
    let planned = |core: u32| threads.iter().any(|thread| thread.core == Some(core));
    let own = Some(picture.snapshot.engine.pid);
    for core in model.lookups.cores.rows().iter().filter(|core| planned(core.core)) {
        let pins = core.pinned_by.iter().filter(|pin| Some(pin.pid) != own);
        lines.extend(pins.take(1).map(|pin| {
            let user = pin.user.as_deref().unwrap_or("user not visible");
            (format!("▲ core {} is also used by {} ({}, {user})", core.core, pin.name, pin.pid), Tone::Warn)
        }));
    }
    let competitors = threads.iter().filter_map(|thread| Some((thread, thread.contended_by.as_ref()?)));
    lines.extend(competitors.take(2).map(|(thread, competitor)| {
        (format!("▲ {} ({}) competes for the core of {}", competitor.command, competitor.pid, thread.name), Tone::Warn)
    }));
    lines
}

/// Number of shots in the path.
fn open(model: &Model) -> u64 {
    model.live.picture.as_ref().map_or(0, |picture| picture.derived.open)
}

/// The reason, as far as it is written.
fn reason(model: &Model) -> Option<Line> {
    (!model.why.is_empty()).then(|| (format!("why: {}", model.why), Tone::Plain))
}

pub fn quit(model: &Model, pen: &mut Pen<'_>) {
    let mut lines = vec![
        ("The feed stops; every shot that was accepted is answered.".to_owned(), Tone::Plain),
        (format!("{} shots are in the path now.", count(open(model))), Tone::Plain),
    ];
    lines.extend(reason(model));
    question("drain and quit?", NARROW, lines, &answers(model, "drain and quit", "go on", WHY), pen);
}

pub fn force(model: &Model, pen: &mut Pen<'_>) {
    let lines = vec![(format!("✖ {} shots would stay unanswered.", count(open(model))), Tone::Bad)];
    let title = "quit before the drain is over?";
    question(title, NARROW, lines, &answers(model, "quit now", "let it finish", None), pen);
}

pub fn command(model: &Model, command: &Command, pen: &mut Pen<'_>) {
    let mut lines = meaning(command, open(model), &model.keymap);
    lines.extend(reason(model));
    let columns = if matches!(command, Command::Drain) { NARROW } else { WIDTH };
    let title = match command {
        Command::Drain => format!("drain and end the engine of {}?", whose(model)),
        Command::Pause => "hold the feed?".to_owned(),
        Command::Resume => "resume the feed?".to_owned(),
        command => format!("{command}?"),
    };
    let (yes, no) = match command {
        Command::Drain => ("drain and end it", "go on"),
        Command::Pause | Command::Resume => ("yes", "no"),
        _ => ("do it", "do not"),
    };
    question(&title, columns, lines, &answers(model, yes, no, WHY), pen);
}

/// The word for the key that takes a reason.
const WHY: Option<&str> = Some("why");

/// The keys that answer a question, each with what it does.
fn answers(model: &Model, yes: &str, no: &str, why: Option<&str>) -> String {
    let answers = [(Action::Confirm, Some(yes)), (Action::Cancel, Some(no)), (Action::Why, why)];
    let said = |(action, what): (Action, Option<&str>)| {
        what.map(|what| format!("{}: {what}", model.keymap.any_key(Scope::Question, action)))
    };
    answers.into_iter().filter_map(said).collect::<Vec<_>>().join("    ")
}

fn whose(model: &Model) -> String {
    match &model.ownership {
        Ownership::Own => "this process".to_owned(),
        Ownership::OtherHost(host) => format!("host {host}"),
        Ownership::Attached { pid, .. } => format!("process {pid}"),
    }
}

/// As [`command`], for one that takes a typed word.
pub fn typed(model: &Model, command: &Command, text: &str, pen: &mut Pen<'_>) {
    let word = word(command).unwrap_or_default();
    let mut lines = meaning(command, open(model), &model.keymap);
    lines.push((written(text, pen), Tone::Plain));
    let (keep, back) = note_keys(model);
    let keys = format!("type {word}, a reason too if you like, then {keep}    {back}: do not");
    question(&format!("{command}?"), WIDTH, lines, &keys, pen);
}

/// Input of a stream and its target silo.
pub fn moved(model: &Model, text: &str, pen: &mut Pen<'_>) {
    writing(model, "which stream, and to which silo: 3 1", text, ["ask", "nothing moves"], pen);
}

/// The keys that keep a written text and discard it.
fn note_keys(model: &Model) -> (String, String) {
    let key = |action| model.keymap.first_key(Scope::Note, action);
    (key(Action::Confirm), key(Action::Cancel))
}

pub fn input(model: &Model, text: &str, pen: &mut Pen<'_>) {
    let title = "input: sampler, a file of shots, udp:ADDRESS:PORT, unix:PATH, shm:NAME";
    writing(model, title, text, ["ask", "stay    also --dem F, --observables F, --format F"], pen);
}

pub fn why(model: &Model, text: &str, pen: &mut Pen<'_>) {
    writing(model, "reason, kept with the action", text, ["back to the question", "as it was"], pen);
}

pub fn note(model: &Model, text: &str, pen: &mut Pen<'_>) {
    writing(model, "a note, kept with the run", text, ["keep", "no note"], pen);
}

pub fn rate(model: &Model, text: &str, pen: &mut Pen<'_>) {
    let now = model.live.picture.as_ref().and_then(|picture| picture.snapshot.engine.rate_hz);
    let stay = now.map_or_else(|| "stay at unlimited".to_owned(), |hz| format!("stay at {hz:.0}/s"));
    let title = "shots per second of all streams, or max; then why, if you like";
    writing(model, title, text, ["take it", &stay], pen);
}

/// An input line; below it, what keeps the text and what discards it.
fn writing(model: &Model, title: &str, text: &str, [kept, discarded]: [&str; 2], pen: &mut Pen<'_>) {
    let (keep, back) = note_keys(model);
    let lines = vec![(written(text, pen), Tone::Plain)];
    question(title, WIDTH, lines, &format!("{keep}: {kept}    {back}: {discarded}"), pen);
}

/// The end of the input in one row: the next letter appears there.
fn written(text: &str, pen: &Pen<'_>) -> String {
    let room = usize::from(WIDTH.min(pen.width()).saturating_sub(6));
    let hidden = text.chars().count().saturating_sub(room);
    let mark = if hidden > 0 { "…" } else { "" };
    mark.chars().chain(text.chars().skip(hidden)).chain(['_']).collect()
}
