//! Questions before commands: asked, confirmed with a word for dangerous commands, then executed.
//!
//! Pure, on the console thread. Input of reasons for commands is here too.

use super::refusals::{refuse_in_recording, refuse_while_leaving, refuse_while_watching};
use super::refused;
use crate::effect::Effect;
use crate::model::questions::{missing, word};
use crate::model::{Model, Overlay, View};
use pinwheel_engine::engine::{Command, InputSpec, SiloCommand};
use pinwheel_hosts::local_socket::Wanted;

/// Asks for confirmation of `command`, unless the engine has no such silo or stream.
pub(super) fn ask(model: &mut Model, command: Command) -> Vec<Effect> {
    if refuse(model, &command.to_string()) {
        return Vec::new();
    }
    if let Some(said) = model.live.picture.as_deref().and_then(|live| missing(&command, &live.snapshot)) {
        return refused(model, format!("{command} refused: {said}"));
    }
    model.overlay = Some(match word(&command) {
        None => Overlay::Ask(command),
        Some(_) => Overlay::Type(command, String::new()),
    });
    Vec::new()
}

/// Executes a command about hosts. It was written in full, and another one takes it back: no question.
pub(super) fn about_hosts(model: &mut Model, wanted: Wanted) -> Vec<Effect> {
    if refuse(model, "the command about hosts") { Vec::new() } else { vec![Effect::CommandHosts(wanted)] }
}

/// Refuses with a notice in a recording, in a read-only console, and while leaving.
pub(super) fn refuse(model: &mut Model, what: &str) -> bool {
    refuse_in_recording(model, what) || refuse_while_watching(model, what) || refuse_while_leaving(model, what)
}

/// Asks about the silo under the cursor.
pub(super) fn silo(model: &mut Model, command: SiloCommand) -> Vec<Effect> {
    match model.silo().map(|silo| silo.id) {
        Some(silo) => ask(model, Command::Silo { silo, command }),
        None => refused(model, "there is no silo yet"),
    }
}

/// Opens the input of a move; in the streams view it begins with the stream under the cursor.
pub(super) fn begin_move(model: &mut Model) {
    if !refuse(model, "move") {
        let streams = model.picture().map(|picture| picture.snapshot.streams.as_slice()).unwrap_or_default();
        let here = streams.get(model.cursor.stream).filter(|_| model.view == View::Streams);
        let text = here.map_or_else(String::new, |stream| format!("{} ", stream.id));
        model.overlay = Some(Overlay::Move(text));
    }
}

/// Opens the input of another shot source.
pub(super) fn begin_input(model: &mut Model) {
    if !refuse(model, "another input") {
        model.overlay = Some(Overlay::Input(String::new()));
    }
}

/// Parses the move written, `STREAM SILO`.
pub(super) fn moved(model: &mut Model, text: &str) -> Vec<Effect> {
    let words: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    match words.as_deref() {
        Some([stream, to]) => ask(model, Command::Move { stream: *stream, to: *to }),
        _ => {
            let said = format!("invalid move {text:?}: give a stream and its target silo, like 3 1");
            refused(model, said)
        }
    }
}

/// Parses the input written.
pub(super) fn another_input(model: &mut Model, text: &str) -> Vec<Effect> {
    match InputSpec::parse(text) {
        _ if text.is_empty() => Vec::new(),
        Ok(spec) => ask(model, Command::Input(spec)),
        Err(said) => refused(model, format!("input refused: {said}")),
    }
}

pub(super) fn confirmed(model: &mut Model, command: Command) -> Vec<Effect> {
    let why = std::mem::take(&mut model.why);
    if refuse_while_leaving(model, &command.to_string()) { Vec::new() } else { vec![Effect::Execute(command, why)] }
}

/// Executes if the word is right, with the reason that follows it; else the question stays.
pub(super) fn typed(model: &mut Model, command: Command, text: String) -> Vec<Effect> {
    match text.trim().strip_prefix(&word(&command).unwrap_or_default()) {
        Some(why) if why.is_empty() || why.starts_with(' ') => {
            model.why = why.trim().to_owned();
            confirmed(model, command)
        }
        _ => {
            model.overlay = Some(Overlay::Type(command, text));
            Vec::new()
        }
    }
}

/// Opens the input of a reason for a question.
pub(super) fn begin_why(model: &mut Model) {
    if let Some(question) = model.overlay.take() {
        model.overlay = Some(Overlay::Why(Box::new(question), model.why.clone()));
    }
}

/// Returns to the question, with the reason written; `None`: unchanged.
pub(super) fn end_why(model: &mut Model, question: Overlay, text: Option<String>) {
    if let Some(text) = text {
        model.why = text;
    }
    model.overlay = Some(question);
}
