//! Effects that `update` requests, as data; only the console's loop carries them out.

pub use crate::model::leaving::ConsoleEnd;

use crate::model::choices::Mouse;
use crate::model::lookups::LookupRequest;
use pinwheel_engine::engine::Command;
use pinwheel_hosts::local_socket::Wanted;

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// List the profiles again.
    ListOffers,
    /// Have the engine execute a command, with a reason.
    Execute(Command, String),
    /// Show the recorded moment at that many nanoseconds after the engine's start.
    LookAt(u64),
    /// Show the recorded moment at `at_ns`; where that is not after `shown_ns`, the next one.
    LookAfter {
        shown_ns: u64,
        at_ns: u64,
    },
    /// Read data that is not on the board.
    LookUp(LookupRequest),
    /// Have the engine place a stream at a host, or take shots of others or not.
    CommandHosts(Wanted),
    /// Write the screen's text to a file.
    DumpScreen,
    /// Take the mouse, or leave it to the terminal.
    Capture(Mouse),
    /// Give the terminal this text for its clipboard.
    Copy(String),
    Redraw,
    /// Restore the terminal and return.
    Leave(ConsoleEnd),
}
