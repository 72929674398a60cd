//! Refusals of a read-only console.

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
