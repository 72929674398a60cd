//! Refusals of a read-only console.

use super::notice;
use crate::model::{Model, NoticeKind};

/// Refuses with a notice if this console is read-only.
pub(super) fn refuse_while_watching(model: &mut Model, what: &str) -> bool {
    if model.is_watching() {
        let text =
            format!("{what} refused: this console is read-only; attach again with --control, as the engine's user");
        notice(model, NoticeKind::Refused, text);
    }
    model.is_watching()
}
