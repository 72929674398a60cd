//! How the engine is acted on, from the board's words.

use super::Reader;
use crate::board::get;
use crate::board::snapshot::{ActionView, ControlView, HeldFeedView, RevertView};
use crate::units::Ticks;

impl Reader<'_> {
    pub(super) fn control(&self) -> ControlView {
        let block = self.board.control();
        let socket = block.socket.read();
        let (revert, actions) = (get(&block.revert_ticks), get(&block.actions));
        ControlView {
            socket: (!socket.is_empty()).then_some(socket),
            clients: get(&block.clients),
            requests: get(&block.requests),
            refused: get(&block.refused),
            dropped: get(&block.dropped),
            held: (get(&block.held) != 0)
                .then(|| HeldFeedView { for_ns: self.age_ns(&block.held_since), by: block.held_by.read() }),
            revert: (revert != 0).then(|| RevertView {
                to: block.revert_to.read(),
                in_ns: self.span_ns(Ticks(revert).since(self.now).0),
            }),
            drains_on_hangup: get(&block.drains_on_hangup) != 0,
            actions,
            actions_unlogged: get(&block.actions_unlogged),
            last: (actions != 0)
                .then(|| ActionView { what: block.action.read(), at_ns: self.at_ns(get(&block.action_ticks)) }),
        }
    }
}
