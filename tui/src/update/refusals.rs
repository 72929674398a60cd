//! Refusals of a read-only console, and of one that shows a recording.

use super::notice;
use crate::model::{Model, NoticeKind};
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
