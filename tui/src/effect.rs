//! What `update` wants done, as data; only the console's loop acts.

use crate::model::Mouse;
use crate::model::deeds::Deed;
use crate::model::found::Wanted;
use crate::source::Hold;
use pinwheel_engine::profile::{Profile, Rate};
use std::rc::Rc;
use std::time::Duration;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// List the profiles again.
    ListOffers,
    /// Apply a profile to the running engine.
    Apply {
        /// Its name.
        name: String,
        /// The profile.
        profile: Rc<Profile>,
        /// For so long only.
        lent: Option<Duration>,
        /// Why.
        why: String,
    },
    /// Stop the feed and let accepted shots finish; why.
    Drain(String),
    /// Hold the feed, or let it go; why.
    Hold(Hold, String),
    /// Another rate; why.
    Rate(Rate, String),
    /// Do something to a silo, a stream, the input; why.
    Act(Deed, String),
    /// Look at the recorded moment so long after the engine's start, nanoseconds.
    LookAt(u64),
    /// Keep a note.
    Note(String),
    /// Acknowledge the alarm of that number; 0: all that hold.
    Acknowledge(u64),
    /// Snooze the alarm of that number.
    Snooze(u64),
    /// Read something that is not on the board.
    LookUp(Wanted),
    /// Write what the screen shows to a text file.
    DumpScreen,
    /// Take the mouse, or leave it to the terminal.
    Capture(Mouse),
    /// Draw the whole screen anew.
    Redraw,
    /// Give the terminal back and return.
    Leave(ConsoleEnd),
}

/// Why the console returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEnd {
    /// The operator quit and the engine had finished.
    Finished,
    /// The operator quit with shots unanswered, after being asked.
    Forced,
    /// SIGTERM; the engine was drained.
    Terminated,
    /// SIGINT; the engine was drained.
    Interrupted,
    /// A second signal came before the drain was over.
    Killed,
    /// The terminal went away; the engine goes on without it.
    HungUp,
}
