//! Profile switches: choose, confirm, apply, undo. The engine itself ends a temporary switch.
//!
//! Pure, on the console thread. The only place that makes a [`Command::Profile`]: after a confirmed
//! question, or for a step down, which takes no resources from other users.

use super::refusals::{refuse_in_recording, refuse_while_leaving, refuse_while_watching};
use super::{notice, refused};
use crate::effect::Effect;
use crate::model::measured::{AFTER_NS, Facts};
use crate::model::span::said;
use crate::model::switch::{Switch, Why};
use crate::model::{Asked, Model, NoticeKind, Overlay, Picture, SWITCHES_MAX};
use crate::source::{Offer, OfferBody};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::{self, Applies};
use std::rc::Rc;
use std::time::Duration;

/// What is refused.
pub(super) const SWITCH: &str = "profile switch";

pub(super) fn choose(model: &mut Model) -> Vec<Effect> {
    if refuse_in_recording(model, "another profile") || refuse_while_leaving(model, SWITCH) {
        return Vec::new();
    }
    model.overlay = Some(Overlay::Chooser);
    vec![Effect::ListOffers]
}

/// Takes the profile of that index: a step down from the chooser at once, others after a question.
pub(super) fn take(model: &mut Model, index: usize, span: Option<Duration>) -> Vec<Effect> {
    if refuse_while_leaving(model, SWITCH) {
        model.overlay = None;
        return Vec::new();
    }
    let Some(offer) = model.offers.iter().flatten().nth(index).cloned() else { return Vec::new() };
    model.cursor.profile = index;
    if refuse_while_watching(model, SWITCH) {
        model.overlay = None;
        return Vec::new();
    }
    let at_once = if model.overlay == Some(Overlay::Chooser) { AtOnce::StepsDown } else { AtOnce::Never };
    ask(model, Asked { offer, span, why: Why::Asked }, at_once)
}

/// Takes the last switch back.
pub(super) fn undo(model: &mut Model) -> Vec<Effect> {
    if refuse_while_leaving(model, SWITCH) || refuse_while_watching(model, SWITCH) {
        return Vec::new();
    }
    let in_force = model.offers.iter().flatten().find_map(|offer| Some(Rc::clone(&offer.body.as_ref().ok()?.in_force)));
    let (Some(switch), Some(in_force)) = (&model.switch, in_force) else {
        return refused(model, "no switch to take back: none was made at this console");
    };
    let profile = Rc::clone(&switch.before_profile);
    let changes = profile::diff(&in_force, &profile);
    let body = Ok(OfferBody { profile, in_force, changes });
    let offer = Offer { name: switch.from.clone(), origin: "before the last switch".to_owned(), body };
    ask(model, Asked { offer, span: None, why: Why::Undone }, AtOnce::StepsDown)
}

/// Whether a switch may happen without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtOnce {
    Never,
    StepsDown,
}

fn ask(model: &mut Model, asked: Asked, at_once: AtOnce) -> Vec<Effect> {
    let offer = &asked.offer;
    let body = match &offer.body {
        Ok(body) => body,
        Err(why) => return refused(model, format!("profile {} cannot be used: {why}", offer.name)),
    };
    if body.changes.is_empty() {
        model.overlay = None;
        notice(model, NoticeKind::Done, format!("profile {} is in force already", offer.name));
        return Vec::new();
    }
    if at_once == AtOnce::StepsDown && steps_down(model, offer) {
        model.overlay = None;
        return apply(model, &asked);
    }
    model.overlay = Some(Overlay::AskApply(Box::new(asked)));
    Vec::new()
}

/// Whether the offer uses less of the machine than the profile in force and decodes as it does. If
/// unknown, no: the console asks.
fn steps_down(model: &Model, offer: &Offer) -> bool {
    let (Some((_, in_force)), Ok(body)) = (model.in_force(), &offer.body) else { return false };
    let is_decoder = |field: &str| field == "decoder" || field.starts_with("streams");
    if body.changes.iter().any(|change| is_decoder(&change.field) && change.applies == Applies::Live) {
        return false;
    }
    hunger(body.profile.spin) < hunger(in_force)
}

/// How much of the machine a policy occupies.
fn hunger(policy: SpinPolicy) -> u8 {
    match policy {
        SpinPolicy::Prod => 2,
        SpinPolicy::Lab => 1,
        SpinPolicy::Shared => 0,
    }
}

/// Applies the profile and records the previous one.
pub(super) fn apply(model: &mut Model, asked: &Asked) -> Vec<Effect> {
    let Ok(body) = &asked.offer.body else { return Vec::new() };
    let command = match Command::profile(&asked.offer.name, &body.profile, asked.span) {
        Ok(command) => command,
        Err(why) => return refused(model, format!("profile {} refused: {why}", asked.offer.name)),
    };
    let live = model.live.picture.as_ref();
    let engine = live.map(|picture| &picture.snapshot.engine);
    let switch = Switch {
        from: engine.map_or_else(String::new, |engine| engine.profile.clone()),
        before_profile: Rc::clone(&body.in_force),
        to: asked.offer.name.clone(),
        at_ns: model.now_ns,
        engine_ns: live.map_or(0, |picture| picture.snapshot.at_ns),
        epoch_before: engine.map_or(0, |engine| engine.spin_epoch_requested),
        why: asked.why,
        lent: asked.span,
        before: live.map(|picture| Facts::of(&picture.derived)).unwrap_or_default(),
        after: None,
        reason: model.why.clone(),
    };
    let effect = Effect::Execute(command, std::mem::take(&mut model.why));
    if let Some(before) = model.switch.replace(switch) {
        if model.switches.len() == SWITCHES_MAX {
            model.switches.remove(0);
        }
        model.switches.push(before);
    }
    vec![effect]
}

/// Measures the effect of the last switch a while after all threads have acknowledged it.
pub(super) fn measure(model: &mut Model, picture: &Picture) {
    let Some(switch) = model.switch.as_mut().filter(|switch| switch.after.is_none()) else { return };
    let is_over = picture.snapshot.at_ns >= switch.engine_ns + AFTER_NS;
    let seen = picture.snapshot.threads.iter().all(|thread| thread.epoch_acknowledged > switch.epoch_before);
    if is_over && seen {
        switch.after = Some(Facts::of(&picture.derived));
    }
}

/// Forgets the last switch to the profile `name`: it was not made.
fn forget(model: &mut Model, name: &str) {
    if model.switch.as_ref().is_some_and(|switch| switch.to == name) {
        model.switch = model.switches.pop();
    } else if let Some(place) = model.switches.iter().rposition(|switch| switch.to == name) {
        model.switches.remove(place);
    }
}

/// Reports the outcome of a switch.
pub(super) fn applied(model: &mut Model, name: &str, result: Result<(), String>) -> Vec<Effect> {
    match result {
        Ok(()) => {
            let lent = model.switch.as_ref().and_then(|switch| Some((&switch.from, switch.lent?)));
            let back = lent.map_or_else(String::new, |(from, span)| format!("; {from} comes back in {}", said(span)));
            let text = format!("profile {name} requested; threads acknowledge it one by one{back}");
            notice(model, NoticeKind::Done, text);
        }
        Err(why) => {
            forget(model, name);
            notice(model, NoticeKind::Refused, format!("profile {name} refused: {why}"));
        }
    }
    vec![Effect::ListOffers]
}
