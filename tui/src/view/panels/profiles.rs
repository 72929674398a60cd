//! Profiles: what would change, and has it arrived?
//!
//! The list, the changes of the selected profile, and each thread's acknowledgement of the last
//! switch. The acknowledgements are always live, also while frozen: they show the result of the
//! operator's switch.

use super::{rows_of, scrolled};
use crate::keymap::{Action, Scope};
use crate::model::lists;
use crate::model::measured::Facts;
use crate::model::switch::{self, Switch};
use crate::model::target::Target;
use crate::model::{Model, Picture, View, Zoom};
use crate::source::{Offer, OfferBody, Ownership};
use crate::theme::Tone;
use crate::widgets::format::time;
use crate::widgets::pen::Pen;
use pinwheel_engine::profile::{Applies, Change};

pub fn draw(model: &Model, pen: &mut Pen<'_>) {
    pen.rule(0, View::Profiles.heading());
    let height = pen.height();
    let Some(offers) = model.offers.as_ref().filter(|offers| !offers.is_empty()) else {
        pen.put_wrapped(1, 1, &none(model), Tone::Dim);
        return;
    };
    let key = model.keymap.first_key(Scope::Views, Action::Zoom);
    if let (Zoom::Details, Some(offer)) = (model.zoom, offers.get(model.cursor.profile)) {
        return changes(offer, "", &mut pen.rows(1, height));
    }
    let list_rows = u16::try_from(offers.len()).unwrap_or(u16::MAX).min(height / 3).max(1);
    list(model, offers, &mut pen.rows(1, 1 + list_rows));
    let acks = model.live.picture.as_deref();
    let ack_rows = acks.map_or(1, |p| u16::try_from(p.snapshot.threads.len()).unwrap_or(u16::MAX)).min(height / 3) + 1;
    let ack_top = height.saturating_sub(ack_rows);
    let past = u16::try_from(switch::history(model).count()).unwrap_or(u16::MAX);
    let past_rows = if past == 0 { 0 } else { (past + 1).min(height / 4) };
    if let Some(offer) = offers.get(model.cursor.profile) {
        let bottom = ack_top.saturating_sub(past_rows);
        changes(offer, &format!(": {key} shows them"), &mut pen.rows(1 + list_rows, bottom));
    }
    history(model, &mut pen.rows(ack_top.saturating_sub(past_rows), ack_top).fresh());
    acknowledgements(model, acks, &mut pen.rows(ack_top, height).fresh());
}

/// Why no profile is listed.
pub fn none(model: &Model) -> String {
    match &model.ownership {
        _ if model.is_replay() => "A recording takes no profile: no engine runs.".to_owned(),
        Ownership::OtherHost(host) => {
            format!("The profiles of host {host} are not listed here; use pinwheel ctl --host {host}.")
        }
        _ => "No profile is listed yet: the engine has not said which one is in force. One without a control socket \
              says it only in its header."
            .to_owned(),
    }
}

/// The list of offers, with the selected row marked.
pub fn list(model: &Model, offers: &[Offer], pen: &mut Pen<'_>) {
    let in_force = model.in_force().map_or("", |(name, _)| name);
    let visible = rows_of(pen, 0);
    let first = scrolled(model.cursor.profile, visible, offers.len());
    for (y, (i, offer)) in (0..).zip(offers.iter().enumerate().skip(first)).take(visible) {
        pen.target_row(y, Target::Offer(i));
        let mark = if offer.name == in_force { '●' } else { '○' };
        pen.dot(1, y, mark, if offer.name == in_force { Tone::Good } else { Tone::Dim });
        // A long name moves the summary: two profiles may differ in the last letter.
        let x = pen.put(3, y, &format!("{:>2} {}", i + 1, offer.name), Tone::Plain).max(16) + 2;
        match &offer.body {
            Ok(body) => {
                pen.put(x, y, &body.profile.summary, Tone::Plain);
            }
            Err(why) => {
                pen.put(x, y, &format!("✖ {why}"), Tone::Bad);
            }
        }
        if i == model.cursor.profile {
            pen.highlight(y);
        }
    }
}

/// The changes of an offer: live fields first, then those that need a restart; `more` names the key
/// that shows the rest.
pub fn changes(offer: &Offer, more: &str, pen: &mut Pen<'_>) {
    pen.rule(0, &format!("{} ({})", offer.name, offer.origin));
    match &offer.body {
        Err(why) => {
            pen.put_wrapped(1, 1, why, Tone::Bad);
        }
        Ok(body) if body.changes.is_empty() => {
            pen.put(1, 1, "No changes: it is in force.", Tone::Good);
        }
        Ok(body) => fields(body, more, pen),
    }
}

/// Rows that [`changes`] needs in `width` columns.
pub fn changes_rows(offer: &Offer, width: u16) -> u16 {
    let rows = match &offer.body {
        Err(why) => Pen::rows_wrapped(width, 1, why),
        Ok(body) if body.changes.is_empty() => 1,
        Ok(body) => body.changes.iter().map(|change| Pen::rows_wrapped(width, FIELD, &changed(change))).sum(),
    };
    rows.saturating_add(1)
}

/// Column of the name of a changed field.
const FIELD: u16 = 12;

fn changed(change: &Change) -> String {
    format!("{}: {} → {}", change.field, change.from, change.to)
}

/// Each changed field with both values in full, as far as rows reach, then the number of hidden
/// fields.
fn fields(body: &OfferBody, more: &str, pen: &mut Pen<'_>) {
    let live = body.changes.iter().filter(|change| change.applies == Applies::Live);
    let restart = body.changes.iter().filter(|change| change.applies == Applies::Restart);
    let (mut y, mut hidden) = (1, body.changes.len());
    for change in live.chain(restart) {
        let (word, tone) = match change.applies {
            Applies::Live => ("▶ live", Tone::Good),
            Applies::Restart => ("○ restart", Tone::Dim),
        };
        let text = changed(change);
        let end = y + Pen::rows_wrapped(pen.width(), FIELD, &text);
        // The last row holds the number of hidden fields, unless only one field is left.
        if end + u16::from(hidden > 1) > pen.height() && y > 1 {
            break;
        }
        pen.put(1, y, word, tone);
        y = pen.put_wrapped(FIELD, y, &text, Tone::Plain);
        hidden -= 1;
    }
    if hidden > 0 {
        let last = pen.height().saturating_sub(1);
        let mut row = pen.rows(last, last + 1);
        row.blank();
        row.put(1, 0, &format!("… and {hidden} more{more}"), Tone::Warn);
    }
}

/// The switches made at this console, newest first: time, old and new profile, reason and effect.
fn history(model: &Model, pen: &mut Pen<'_>) {
    if pen.height() == 0 {
        return;
    }
    pen.rule(0, "switches made here");
    for (y, switch) in (1..pen.height()).zip(switch::history(model)) {
        let ago = time(model.now_ns.saturating_sub(switch.at_ns));
        let x = pen.put(1, y, &format!("{ago:>5} ago"), Tone::Dim) + 2;
        let x = pen.put(x, y, &format!("{} → {}", switch.from, switch.to), Tone::Accent) + 2;
        let why = if switch.reason.is_empty() { switch.why.said() } else { &switch.reason };
        let effect = effect(switch);
        // The effect takes precedence: a long reason is cut.
        let room = usize::from(pen.width().saturating_sub(x + 2)).saturating_sub(effect.chars().count());
        let why: String = why.chars().take(room).collect();
        let x = pen.put(x, y, &why, Tone::Plain) + 2;
        pen.put(x, y, &effect, Tone::Plain);
    }
}

/// Latency and load before and after.
fn effect(switch: &Switch) -> String {
    let ns = |facts: Option<Facts>| facts.and_then(|facts| facts.p999_ns).map_or_else(|| "–".to_owned(), time);
    let busy = |facts: Option<Facts>| {
        facts.and_then(|facts| facts.busy).map_or_else(|| "–".to_owned(), |busy| format!("{busy:.2}"))
    };
    let (before, after) = (Some(switch.before), switch.after);
    format!("p99.9 {} → {}  busy cores {} → {}", ns(before), ns(after), busy(before), busy(after))
}

/// Acknowledgements of the last change of decoders; empty before the first.
fn decoders_acknowledged(picture: &Picture) -> String {
    let wanted = picture.snapshot.engine.decoder_epoch_requested;
    if wanted < 2 {
        return String::new();
    }
    let workers = || picture.snapshot.silos.iter().flat_map(|silo| &silo.graph.workers);
    let all = workers().filter(|worker| worker.decoder_epoch > 0).count();
    let seen = workers().filter(|worker| worker.decoder_epoch >= wanted).count();
    format!(", decoders {wanted} by {seen} of {all} workers")
}

fn acknowledgements(model: &Model, picture: Option<&Picture>, pen: &mut Pen<'_>) {
    let Some(picture) = picture else {
        pen.rule(0, "acknowledged");
        return;
    };
    let engine = &picture.snapshot.engine;
    let seen = acknowledged(picture);
    let all = picture.snapshot.threads.len();
    let switch = model.switch.as_ref().map_or_else(|| "no switch yet".to_owned(), |switch| said(model, switch));
    let decoders = decoders_acknowledged(picture);
    let text =
        format!("epoch {} acknowledged by {seen} of {all} threads{decoders}; {switch}", engine.spin_epoch_requested);
    pen.rule(0, &text);
    for (y, thread) in (1..pen.height()).zip(&picture.snapshot.threads) {
        let (text, tone) = lists::thread_policy(engine, thread);
        let done = thread.epoch_acknowledged >= engine.spin_epoch_requested;
        pen.dot(1, y, if done { '✔' } else { '…' }, tone);
        pen.part(3, y, 12, 1).put(0, 0, &thread.name, Tone::Plain);
        let x = pen.put(16, y, &format!("epoch {}", thread.epoch_acknowledged), Tone::Plain) + 2;
        let x = pen.put(x.max(28), y, &text, tone) + 2;
        pen.put(x, y, thread.policy_refusal.as_deref().unwrap_or(""), Tone::Warn);
    }
}

fn said(model: &Model, switch: &Switch) -> String {
    format!("{} → {} {} ago", switch.from, switch.to, time(model.now_ns.saturating_sub(switch.at_ns)))
}

/// Number of threads that run the requested epoch.
pub fn acknowledged(picture: &Picture) -> usize {
    let wanted = picture.snapshot.engine.spin_epoch_requested;
    picture.snapshot.threads.iter().filter(|thread| thread.epoch_acknowledged >= wanted).count()
}
