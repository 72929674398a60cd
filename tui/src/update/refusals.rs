//! Refusals of a read-only console, of one that shows a recording, and while the engine ends.

use super::notice;
use crate::model::{Leaving, Model, NoticeKind};
use crate::msg::Finished;
use crate::source::Ownership;

/// Refuses with a notice if this console is read-only.
pub(super) fn refuse_while_watching(model: &mut Model, what: &str) -> bool {
    if model.is_watching() {
        let remedy = match &model.ownership {
            Ownership::OtherHost(host) => format!("use pinwheel ctl --host {host}"),
            _ => "attach again with --control, as the engine's user".to_owned(),
        };
        let text = format!("{what} refused: this console is read-only; {remedy}");
        notice(model, NoticeKind::Refused, text);
    }
    model.is_watching()
}

/// Refuses with a notice if this console shows a recording.
pub(super) fn refuse_in_recording(model: &mut Model, what: &str) -> bool {
    if model.is_replay() {
        notice(model, NoticeKind::Refused, format!("{what} refused: this is a recording, no engine runs"));
    }
    model.is_replay()
}

/// Refuses with a notice if the engine is draining or has ended.
pub(super) fn refuse_while_leaving(model: &mut Model, what: &str) -> bool {
    let is_leaving = model.finished == Finished::Yes || model.leaving != Leaving::No;
    if is_leaving {
        notice(model, NoticeKind::Refused, format!("{what} refused: the engine is draining or has ended"));
    }
    is_leaving
}
