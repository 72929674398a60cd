//! Plain data that the console and an engine exchange besides pictures.

use pinwheel_engine::profile::{Change, Profile};
use std::rc::Rc;

/// The engine's owner, and the console's rights to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This process runs the engine: leaving the console ends it.
    Own,
    /// Another process runs the engine: leaving the console does not affect it.
    Attached {
        pid: u32,
        uid: u32,
        /// The console's rights.
        access: Access,
    },
    /// The engine of the host of this name: read only.
    OtherHost(String),
}

/// Rights to another process's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Watch,
    /// Whatever its own console may.
    Act,
}

/// Reply of another process to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command was carried out.
    Done(String),
    /// The command was refused, with the reason.
    Refused(String),
    /// The switch to this profile was refused, with the reason.
    SwitchRefused { name: String, why: String },
    /// It has said which profile is in force: what the profiles on offer would change may be other.
    InForce,
}

/// A profile on offer.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub name: String,
    /// Where it was read from ("built in", a path).
    pub origin: String,
    /// The profile, or the reason why it is invalid, in one sentence.
    pub body: Result<OfferBody, String>,
}

/// A valid profile.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferBody {
    pub profile: Rc<Profile>,
    pub in_force: Rc<Profile>,
    /// Differences to the profile in force; empty: none.
    pub changes: Vec<Change>,
}
