//! What is done to silos, streams and the input: asked, typed where it hurts others, and only then an effect.
//!
//! Pure, on the console thread. The only place that makes [`Effect::Act`]; reasons for any action are written here too.

use super::actions::refuse_while_watching;
use super::{notice, profile};
use crate::effect::Effect;
use crate::model::deeds::Deed;
use crate::model::{Model, NoticeKind, Overlay, View};
use pinwheel_engine::engine::SiloDeed;
use pinwheel_engine::engine::wire::InputSpec;

/// Asks whether `deed` is to be done.
pub(super) fn ask(model: &mut Model, deed: Deed) -> Vec<Effect> {
    if refuse(model, &deed.label()) {
        return Vec::new();
    }
    model.overlay = Some(match deed.word() {
        None => Overlay::AskDeed(deed),
        Some(_) => Overlay::TypeDeed(deed, String::new()),
    });
    Vec::new()
}

/// Says so where nothing can be done.
fn refuse(model: &mut Model, what: &str) -> bool {
    if model.is_replay() {
        notice(model, NoticeKind::Refused, format!("{what} refused: this is a recording, nothing runs"));
        return true;
    }
    refuse_while_watching(model, what) || profile::refuse_while_leaving(model)
}

/// About the silo under the cursor.
pub(super) fn silo(model: &mut Model, deed: SiloDeed) -> Vec<Effect> {
    let silo = model.picture().and_then(|picture| picture.snapshot.silos.get(model.cursor.silo)).map(|silo| silo.id);
    match silo {
        Some(silo) => ask(model, Deed::Silo { silo, deed }),
        None => {
            notice(model, NoticeKind::Refused, "there is no silo yet".to_owned());
            Vec::new()
        }
    }
}

/// Begins to write which stream goes where; among the streams it is the one under the cursor.
pub(super) fn begin_move(model: &mut Model) -> Vec<Effect> {
    if !refuse(model, "move") {
        let streams = model.picture().map(|picture| picture.snapshot.streams.as_slice()).unwrap_or_default();
        let here = streams.get(model.cursor.stream).filter(|_| model.view == View::Streams);
        let text = here.map_or_else(String::new, |stream| format!("{} ", stream.id));
        model.overlay = Some(Overlay::Move(text));
    }
    Vec::new()
}

/// Begins to write another input.
pub(super) fn begin_input(model: &mut Model) -> Vec<Effect> {
    if !refuse(model, "another input") {
        model.overlay = Some(Overlay::Input(String::new()));
    }
    Vec::new()
}

/// A move that was written, `STREAM SILO`.
pub(super) fn moved(model: &mut Model, text: &str) -> Vec<Effect> {
    let words: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    match words.as_deref() {
        Some([stream, to]) => ask(model, Deed::Move { stream: *stream, to: *to }),
        _ => {
            let said = format!("found {text:?}, expected a stream and the silo where it is to go, like 3 1");
            notice(model, NoticeKind::Refused, said);
            Vec::new()
        }
    }
}

/// An input that was written.
pub(super) fn another_input(model: &mut Model, text: &str) -> Vec<Effect> {
    match InputSpec::parse(text) {
        _ if text.is_empty() => Vec::new(),
        Ok(spec) => ask(model, Deed::Input(spec)),
        Err(said) => {
            notice(model, NoticeKind::Refused, format!("input refused: {said}"));
            Vec::new()
        }
    }
}

/// It was said yes to.
pub(super) fn act(model: &mut Model, deed: Deed) -> Vec<Effect> {
    let why = std::mem::take(&mut model.why);
    if profile::refuse_while_leaving(model) { Vec::new() } else { vec![Effect::Act(deed, why)] }
}

/// What must be typed was typed, with a reason after it; else the question stays.
pub(super) fn typed(model: &mut Model, deed: Deed, text: String) -> Vec<Effect> {
    let word = deed.word().unwrap_or_default();
    match text.trim().strip_prefix(&word) {
        Some(why) if why.is_empty() || why.starts_with(' ') => {
            model.why = why.trim().to_owned();
            act(model, deed)
        }
        _ => {
            model.overlay = Some(Overlay::TypeDeed(deed, text));
            Vec::new()
        }
    }
}

/// Begins to write why, at a question.
pub(super) fn begin_why(model: &mut Model) {
    if let Some(question) = model.overlay.take() {
        model.overlay = Some(Overlay::Why(Box::new(question), model.why.clone()));
    }
}

/// The question again, with the reason that was written; `None`: as it was.
pub(super) fn end_why(model: &mut Model, question: Overlay, text: Option<String>) {
    if let Some(text) = text {
        model.why = text;
    }
    model.overlay = Some(question);
}
