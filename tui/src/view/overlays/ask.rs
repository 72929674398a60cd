//! Questions before what cannot be taken back.

use super::middle;
use crate::model::commands::said;
use crate::model::deeds::Deed;
use crate::model::lists::Line;
use crate::model::{Asked, Model};
use crate::source::{Bond, Hold};
use crate::theme::Tone;
use crate::view::panels::profiles;
use crate::widgets::format::count;
use crate::widgets::pen::Pen;
use pinwheel_engine::profile::SpinPolicy;

/// "Apply this profile?" with what would change, and who would mind.
pub fn apply(model: &Model, asked: &Asked, pen: &mut Pen<'_>) {
    let offer = &asked.offer;
    let mut checks = checks(model, asked);
    if !model.why.is_empty() {
        checks.push((format!("why: {}", model.why), Tone::Plain));
    }
    let rows = offer.body.as_ref().map_or(1, |body| body.changes.len()) + checks.len();
    let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(6);
    let mut part = middle(pen, 76, height);
    let mut inside = part.framed("apply a profile?");
    let from = model.in_force().map_or("?", |(name, _)| name);
    let span = asked.span.map_or_else(String::new, |span| format!(" for {}, then {from} again", said(span)));
    let x = inside.put(1, 0, &format!("{from} → {}{span}", offer.name), Tone::Accent) + 2;
    inside.put(x, 0, "y or enter applies, n or esc does not, w: why", Tone::Dim);
    let mut y = 1;
    for (text, tone) in &checks {
        inside.put(1, y, text, *tone);
        y += 1;
    }
    let rows = inside.height();
    profiles::changes(offer, &mut inside.rows(y, rows));
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

/// "Drain and quit?"
pub fn quit(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed("drain and quit?");
    inside.put(1, 0, "The feed stops; every shot that was accepted is answered.", Tone::Plain);
    inside.put(1, 1, &format!("{} shots are in the path now.", count(open)), Tone::Plain);
    reason(model, 2, &mut inside);
    inside.put(1, 3, "y or enter: drain and quit    n or esc: go on    w: why", Tone::Accent);
}

/// "Quit with shots unanswered?"
pub fn force(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed("quit before the drain is over?");
    inside.put(1, 0, &format!("✖ {} shots are not answered yet and would not be.", count(open)), Tone::Bad);
    inside.put(1, 3, "y or enter: quit now    n or esc: let it finish", Tone::Accent);
}

/// "Drain and end the engine of another process?"
pub fn end(model: &Model, pen: &mut Pen<'_>) {
    let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
    let whose = match model.bond {
        Bond::Own => "this process".to_owned(),
        Bond::Attached { pid, .. } => format!("process {pid}"),
    };
    let mut part = middle(pen, 62, 6);
    let mut inside = part.framed(&format!("drain and end the engine of {whose}?"));
    inside.put(1, 0, "Its feed stops for everybody; accepted shots are answered.", Tone::Warn);
    inside.put(1, 1, &format!("{} shots are in the path now. q only leaves.", count(open)), Tone::Plain);
    reason(model, 2, &mut inside);
    inside.put(1, 3, "y or enter: drain and end it    n or esc: go on    w: why", Tone::Accent);
}

/// "Hold the feed?", or let it go.
pub fn hold(model: &Model, hold: Hold, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 62, 6);
    let (title, what) = match hold {
        Hold::Hold => ("hold the feed?", "No shot is taken until it is let go; what is under way finishes."),
        Hold::Release => ("let the feed go?", "Shots are taken again, at the rate in force."),
    };
    let mut inside = part.framed(title);
    inside.put(1, 0, what, Tone::Plain);
    reason(model, 2, &mut inside);
    inside.put(1, 3, "y or enter: yes    n or esc: no    w: why", Tone::Accent);
}

/// "Do this to a silo, a stream, the input?"
pub fn deed(model: &Model, deed: &Deed, pen: &mut Pen<'_>) {
    let mut part = middle(pen, 76, 7);
    let mut inside = part.framed(&format!("{}?", deed.label()));
    let y = meaning(model, deed, &mut inside);
    reason(model, y, &mut inside);
    inside.put(1, y + 1, "y or enter: do it    n or esc: do not    w: why", Tone::Accent);
}

/// The same, where a word must be typed.
pub fn typed(model: &Model, deed: &Deed, text: &str, pen: &mut Pen<'_>) {
    let word = deed.word().unwrap_or_default();
    let mut part = middle(pen, 76, 8);
    let mut inside = part.framed(&format!("{}?", deed.label()));
    let y = meaning(model, deed, &mut inside);
    line(text, y, &mut inside);
    inside.put(1, y + 2, &format!("type {word}, a reason too if you like, then enter    esc: do not"), Tone::Accent);
}

fn meaning(model: &Model, deed: &Deed, pen: &mut Pen<'_>) -> u16 {
    let mut y = 0;
    for (text, tone) in deed.meaning(model) {
        pen.put(1, y, &text, tone);
        y += 1;
    }
    y + 1
}

/// Why, as far as it was written.
fn reason(model: &Model, y: u16, pen: &mut Pen<'_>) {
    if !model.why.is_empty() {
        pen.put(1, y, &format!("why: {}", model.why), Tone::Plain);
    }
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
    let mut part = middle(pen, 76, 5);
    let mut inside = part.framed(title);
    line(text, 0, &mut inside);
    inside.put(1, 2, keys, Tone::Accent);
}

/// The end of what is being written: that is where the next letter goes.
fn line(text: &str, y: u16, pen: &mut Pen<'_>) {
    let room = usize::from(pen.width().saturating_sub(3));
    let hidden = text.chars().count().saturating_sub(room);
    let shown: String = text.chars().skip(hidden).collect();
    let x = pen.put(1, y, &shown, Tone::Plain);
    pen.put(x, y, "_", Tone::Accent);
}
