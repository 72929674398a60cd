//! What is looked up beside the board: the run's environment and events, the machine's cores.
//!
//! Plain data, on the console thread; a thread of its own reads it (`term::lookup`). Bounded by [`EVENTS_MAX`] events and
//! by the machine.

use super::deeds::Measured;
use pinwheel_engine::host::check::Row;
use pinwheel_engine::host::usage::CoreUse;

/// Most events kept: the newest.
pub const EVENTS_MAX: usize = 2_000;

/// What can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `environment.json` of the run.
    Environment,
    /// Claims, pins and load of this machine.
    Cores,
    /// `events.jsonl` of the run.
    Log,
    /// The same, and the effect of the actions in it, from the run's recording.
    Actions,
}

/// What a look-up brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Brought {
    /// The environment's rows.
    Environment(Result<Vec<Row>, String>),
    /// The cores.
    Cores(Result<Vec<CoreUse>, String>),
    /// The events.
    Log(Result<Vec<Event>, String>),
    /// The events, and by the numbers of actions their effects.
    Actions(Result<Vec<Event>, String>, Vec<(u64, Measured)>),
}

/// One event of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where it begins in the file, bytes: its key.
    pub number: u64,
    /// When, as the file says.
    pub utc: String,
    /// Nanoseconds after the engine's start, where that can be told.
    pub at_ns: Option<u64>,
    /// On which thread.
    pub thread: String,
    /// Its name.
    pub event: String,
    /// In words.
    pub text: String,
    /// Its numbers.
    pub numbers: Vec<u64>,
}

/// One thing that is looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Lookup<T> {
    /// Not asked for yet, or under way.
    #[default]
    Pending,
    /// Found.
    Found(Vec<T>),
    /// Not to be had, in one sentence.
    Refused(String),
}

impl<T> Lookup<T> {
    /// The rows found; none otherwise.
    pub fn rows(&self) -> &[T] {
        match self {
            Lookup::Found(rows) => rows,
            Lookup::Pending | Lookup::Refused(_) => &[],
        }
    }

    /// Why there are no rows.
    pub fn why_empty<'a>(&'a self, pending: &'a str, none: &'a str) -> &'a str {
        match self {
            Lookup::Pending => pending,
            Lookup::Found(_) => none,
            Lookup::Refused(why) => why,
        }
    }

    fn take(&mut self, result: Result<Vec<T>, String>) {
        *self = match result {
            Ok(rows) => Lookup::Found(rows),
            Err(why) => Lookup::Refused(why),
        };
    }
}

/// All that was looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The run's environment.
    pub environment: Lookup<Row>,
    /// The machine's cores.
    pub cores: Lookup<CoreUse>,
    /// The run's events, oldest first.
    pub log: Lookup<Event>,
    /// Places of those among them that are actions: a list asks for each of its cells.
    pub actions: Vec<usize>,
    /// What the recording says of their effects, by their numbers.
    pub effects: Vec<(u64, Measured)>,
    /// What was asked for last, and when, console clock.
    pub asked: Option<(Wanted, u64)>,
}

impl Found {
    /// Takes in what a look-up brought; among the run's events stand its alarms.
    pub fn take(&mut self, brought: Brought, alarms: Vec<Event>) {
        match brought {
            Brought::Environment(result) => self.environment.take(result),
            Brought::Cores(result) => self.cores.take(result),
            Brought::Log(result) => self.take_log(result, alarms),
            Brought::Actions(result, effects) => {
                self.take_log(result, alarms);
                self.effects = effects;
            }
        }
    }

    fn take_log(&mut self, result: Result<Vec<Event>, String>, alarms: Vec<Event>) {
        self.log.take(result.map(|mut events| {
            events.extend(alarms);
            // Where an event's moment cannot be told, the file's order is all that is known of it.
            if events.iter().all(|event| event.at_ns.is_some()) {
                events.sort_by_key(|event| event.at_ns);
            }
            events
        }));
        let is_action = |(_, event): &(usize, &Event)| event.event == "operated";
        self.actions = self.log.rows().iter().enumerate().filter(is_action).map(|(place, _)| place).collect();
    }
}
