//! Data read from outside the board: the run's environment, events and recording, the machine's
//! cores, and the hosts that share streams.
//!
//! Plain data, on the console thread; a separate thread reads the data (`term::lookup`). Bounded by
//! [`EVENTS_MAX`] events and by the size of the machine.

use super::derived::Quantiles;
use super::measured::Measured;
use pinwheel_engine::host::check::Row;
use pinwheel_engine::host::usage::CoreUse;
use pinwheel_hosts::status::HostRow;

/// Most events kept; older ones are dropped.
pub const EVENTS_MAX: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupRequest {
    /// `environment.json` of the run.
    Environment,
    /// Claims, pins and load of this machine.
    Cores,
    /// The hosts that share streams with the engine.
    Hosts,
    /// `events.jsonl` of the run.
    Log,
    /// `events.jsonl`, and the effects of its actions from the run's recording.
    Actions,
    /// Points of a chart from the run's recording, at most `bins`.
    Chart {
        /// Nanoseconds since the engine's start.
        from_ns: u64,
        /// The same; beyond the recording: up to its end.
        to_ns: u64,
        bins: u16,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum LookupResult {
    Environment(Result<Vec<Row>, String>),
    Cores(Result<Vec<CoreUse>, String>),
    Hosts(Result<Vec<HostRow>, String>),
    /// What the engine said to a command about hosts.
    HostsCommand(Result<String, String>),
    Log(Result<Vec<Event>, String>),
    /// The events, and the effects of the actions by event number.
    Actions(Result<Vec<Event>, String>, Vec<(u64, Measured)>),
    /// The points, and from when to when the recording reaches.
    Chart(Result<(Vec<Point>, (u64, u64)), String>),
}

impl LookupResult {
    /// Why nothing was found, in one sentence.
    pub fn refusal(&self) -> Option<&str> {
        let why = match self {
            LookupResult::Environment(result) => result.as_ref().err(),
            LookupResult::Cores(result) => result.as_ref().err(),
            LookupResult::Hosts(result) => result.as_ref().err(),
            LookupResult::HostsCommand(result) => result.as_ref().err(),
            LookupResult::Log(result) | LookupResult::Actions(result, _) => result.as_ref().err(),
            LookupResult::Chart(result) => result.as_ref().err(),
        };
        why.map(String::as_str)
    }
}

/// One event of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's key: its byte offset in the file.
    pub number: u64,
    /// Time as written in the file.
    pub utc: String,
    /// Nanoseconds after the engine's start, where known.
    pub at_ns: Option<u64>,
    /// Name of the thread that logged the event.
    pub thread: String,
    pub event: String,
    pub text: String,
    pub numbers: Vec<u64>,
}

/// A point of a chart: what happened between two moments of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Nanoseconds since the engine's start.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Per second: answers, late answers, answers with errors.
    pub answered: f64,
    pub late: f64,
    pub errored: f64,
    /// Latency of the answers between the two moments; `None`: there were none.
    pub latency: Option<Quantiles>,
    /// Shots due and not submitted at the end.
    pub backlog: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Lookup<T> {
    /// Not requested yet, or in progress.
    #[default]
    Pending,
    Found(Vec<T>),
    /// Failed, with the reason in one sentence.
    Refused(String),
}

impl<T> Lookup<T> {
    /// The rows found, or no rows.
    pub fn rows(&self) -> &[T] {
        match self {
            Lookup::Found(rows) => rows,
            Lookup::Pending | Lookup::Refused(_) => &[],
        }
    }

    /// The reason why there are no rows.
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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookedUp {
    pub environment: Lookup<Row>,
    pub cores: Lookup<CoreUse>,
    /// The hosts, the engine's own first.
    pub hosts: Lookup<HostRow>,
    /// The run's events, oldest first.
    pub log: Lookup<Event>,
    /// Indexes of the events in `log` that are actions, cached because a list reads them for each
    /// of its cells.
    pub actions: Vec<usize>,
    /// The points of the chart, oldest first.
    pub chart: Lookup<Point>,
    /// From when to when the recording reached then, nanoseconds since the engine's start.
    pub chart_run_ns: Option<(u64, u64)>,
    /// Effects from the recording, by event number.
    pub effects: Vec<(u64, Measured)>,
    /// The last look-up requested, and its time by the console's clock.
    pub asked: Option<(LookupRequest, u64)>,
}

impl LookedUp {
    /// Stores a result. `alarms` are merged into the run's events.
    pub fn take(&mut self, brought: LookupResult, alarms: Vec<Event>) {
        match brought {
            LookupResult::Environment(result) => self.environment.take(result),
            LookupResult::Cores(result) => self.cores.take(result),
            LookupResult::Hosts(result) => self.hosts.take(result),
            // A notice says it.
            LookupResult::HostsCommand(_) => {}
            LookupResult::Log(result) => self.take_log(result, alarms),
            LookupResult::Chart(result) => {
                self.chart_run_ns = result.as_ref().ok().map(|(_, run_ns)| *run_ns);
                self.chart.take(result.map(|(points, _)| points));
            }
            LookupResult::Actions(result, effects) => {
                self.take_log(result, alarms);
                self.effects = effects;
            }
        }
    }

    fn take_log(&mut self, result: Result<Vec<Event>, String>, alarms: Vec<Event>) {
        self.log.take(result.map(|mut events| {
            events.extend(alarms);
            // An event without a known time keeps its place in the file's order.
            if events.iter().all(|event| event.at_ns.is_some()) {
                events.sort_by_key(|event| event.at_ns);
            }
            events
        }));
        let is_action = |(_, event): &(usize, &Event)| event.event == "operated";
        self.actions = self.log.rows().iter().enumerate().filter(is_action).map(|(place, _)| place).collect();
    }
}
