//! Decoders of others: shared libraries with the `deq` decoder interface, version 1.
//!
//! Owns [`PluginModel`], made once by cold code, and its matchers. A plugin gets the model as a hypergraph
//! and each syndrome packed; it answers with mechanisms, which are checked and projected to observables
//! here ([`problem`]). Whole shots only. Bounds: the model; the time that a plugin in a process of its own
//! has for a shot.
//!
//! ```text
//!  trusted:      worker ── call ─▶ library                                  in this process
//!  otherwise:    worker ─▶ shot ══ lane (shared memory) ══▶ process ── call ─▶ library
//!                       ◀─ mechanisms ══════════════════════
//!  spoiled:      worker ── seat ─▶ supervisor (cold) ── ends it, makes another ── seat ─▶ worker
//! ```
//!
//! A *seat* is what a matcher decodes by: a decoder of the library, or a lane to a process. One that has
//! failed for good goes back to the supervisor's thread, which ends it and makes another. Until that one has
//! come, shots are answered with the same error. So no hot thread loads, creates, starts or ends anything.
//!
//! # Why the allocator's guard permits nothing here
//! A plugin allocates, if it does, from its own allocator or the system's, which the guard does not see. The
//! calls around it allocate nothing and remain under the guard. So nobody hears of a plugin that allocates
//! on the path except by its latency; the run's notes say that a trusted plugin is on the path.
//!
//! # Why a process of its own does not protect from malice
//! It has the rights of the engine's user. It keeps a plugin's faults, hangs and crashes away, no more.

mod supervisor;
mod lane;
mod library;
mod problem;
mod process;

use super::{DecodeError, Decoded, Matcher};
use crate::clock::Clock;
use crate::code::Model;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender};
use crate::units::{Nanos, Ticks};
use library::Handle;
use pinwheel_edge::slot::word::ErrorCode;
use problem::Problem;
pub use process::{HOST_COMMAND, host, set_host};
use std::sync::Arc;
use std::time::Duration;
use supervisor::{Recipe, Seat, Supervisor};

/// Time for a shot where neither the plugin nor a profile's limits name one.
const LIMIT_US: u32 = 10_000;
/// Longest wait for a seat: twice as long as one process may take to get ready.
const WAIT_LIMIT: Nanos = Nanos(60_000_000_000);
/// Pause between two looks for a seat.
const WAIT_PAUSE: Duration = Duration::from_millis(1);

/// Why a plugin cannot be used; the decoder before stays in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PluginRefused {
    #[error("the plugin {path:?} cannot be read: {found}; name a shared library")]
    File { path: String, found: String },
    #[error(
        "the plugin {path:?} is not loaded, because other users may change it: {who}; keep it where only you and root \
         may write"
    )]
    Others { path: String, who: String },
    #[error("{path:?} cannot be loaded as a shared library: {found}")]
    Load { path: String, found: String },
    #[error(
        "the plugin {path:?} is not loaded again, because its file was written to after this process had loaded it; \
         move a new build there as a file of its own (mv), or start the run again"
    )]
    Overwritten { path: String },
    #[error("{path:?} is no decoder plugin: it has no {symbol}; the interface is that of deq-decoder-abi, version 1")]
    Symbol { path: String, symbol: String },
    #[error("the plugin {path:?} has version {found} of the decoder interface, expected {expected}; build it for that")]
    Version { path: String, found: u32, expected: u32 },
    #[error("the plugin refuses the model or its configuration: {found}")]
    Create { found: String },
    /// A plugin's process refuses, in a sentence.
    #[error("{said}")]
    Said { said: String },
    #[error("mechanism {mechanism} of the model has probability 1, which the interface of plugins excludes")]
    Certain {
        /// Its number, from 0.
        mechanism: usize,
    },
    #[error("the plugin's process {found}")]
    Process { found: String },
}

/// Why a plugin gave a shot no answer that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[repr(u8)]
pub enum PluginFault {
    /// Status -1, or one that the interface does not have.
    #[error("the plugin reported an error")]
    Failed = 1,
    /// Status -2.
    #[error("the plugin refused the shot as an invalid argument")]
    Argument = 2,
    /// Status -3.
    #[error("the plugin panicked; another decoder of it takes its place")]
    Panicked = 3,
    /// Status -4.
    #[error("the plugin reported that it had panicked before; another decoder of it takes its place")]
    Poisoned = 4,
    /// Status 1.
    #[error("the plugin asked for room for more mechanisms than the model has")]
    NoRoom = 5,
    /// More indices than there was room for.
    #[error(
        "the plugin wrote past the room for its answer, or said that it did; another decoder of it takes its place"
    )]
    PastRoom = 6,
    /// An index past the model's.
    #[error("the plugin named a mechanism that the model does not have")]
    NoMechanism = 7,
    /// Other detectors than those that fired.
    #[error("the plugin's mechanisms do not explain the syndrome")]
    Unexplained = 8,
    /// No answer within the limit.
    #[error("the plugin did not answer within its time limit; its process is started again")]
    Late = 9,
    /// Its process has ended.
    #[error("the plugin's process ended; it is started again")]
    Gone = 10,
}

impl PluginFault {
    const ALL: [PluginFault; 10] = [
        PluginFault::Failed,
        PluginFault::Argument,
        PluginFault::Panicked,
        PluginFault::Poisoned,
        PluginFault::NoRoom,
        PluginFault::PastRoom,
        PluginFault::NoMechanism,
        PluginFault::Unexplained,
        PluginFault::Late,
        PluginFault::Gone,
    ];

    /// The error that its shot is answered with.
    pub const fn code(self) -> ErrorCode {
        match self {
            PluginFault::Failed => ErrorCode::PluginFailed,
            PluginFault::Argument => ErrorCode::PluginArgument,
            PluginFault::Panicked => ErrorCode::PluginPanicked,
            PluginFault::Poisoned => ErrorCode::PluginPoisoned,
            PluginFault::NoRoom => ErrorCode::PluginNoRoom,
            PluginFault::PastRoom => ErrorCode::PluginPastRoom,
            PluginFault::NoMechanism => ErrorCode::PluginNoMechanism,
            PluginFault::Unexplained => ErrorCode::PluginUnexplained,
            PluginFault::Late => ErrorCode::PluginLate,
            PluginFault::Gone => ErrorCode::PluginGone,
        }
    }

    /// Whether the seat that it came from can decode no more.
    const fn is_for_good(self) -> bool {
        match self {
            PluginFault::Panicked
            | PluginFault::Poisoned
            | PluginFault::PastRoom
            | PluginFault::Late
            | PluginFault::Gone => true,
            PluginFault::Failed
            | PluginFault::Argument
            | PluginFault::NoRoom
            | PluginFault::NoMechanism
            | PluginFault::Unexplained => false,
        }
    }

    fn from_number(number: u8) -> Option<PluginFault> {
        PluginFault::ALL.into_iter().find(|fault| *fault as u8 == number)
    }
}

/// What a profile says of a plugin.
pub(super) struct PluginSettings {
    pub(super) path: String,
    pub(super) config: String,
    pub(super) trusted: bool,
    /// `None`: [`LIMIT_US`].
    pub(super) limit_us: Option<u32>,
}

/// A plugin, checked with a model; every worker gets its matcher from it.
pub struct PluginModel {
    recipe: Arc<Recipe>,
    supervisor: Supervisor,
    name: String,
    clock: Clock,
    limit: Ticks,
}

impl PluginModel {
    /// Loads the plugin and has it prepare itself for `model` once, which may take as long as it likes, or
    /// 30 s in a process of its own. Starts the supervisor's thread.
    ///
    /// # Errors
    ///
    /// If it is no sound plugin, or refuses.
    pub(super) fn new(model: &Model, settings: PluginSettings) -> Result<PluginModel, PluginRefused> {
        let PluginSettings { path, config, trusted, limit_us } = settings;
        let problem = Problem::new(model).map_err(|mechanism| PluginRefused::Certain { mechanism })?;
        let rooted = library::checked(&path)?;
        let file = rooted.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let where_it_runs = if trusted { "in this process" } else { "in its own process" };
        let library = trusted.then(|| library::load(&rooted)).transpose()?;
        let recipe = Arc::new(Recipe { problem, path: rooted, config, library });
        let clock = Clock::machine();
        let supervisor = Supervisor::start(Arc::clone(&recipe), clock.clone())?;
        let limit = clock.rate().ticks(Nanos(u64::from(limit_us.unwrap_or(LIMIT_US)) * 1_000));
        Ok(PluginModel { recipe, supervisor, name: format!("plugin {file} {where_it_runs}"), clock, limit })
    }

    /// A matcher, once its seat is there.
    pub(super) fn matcher(&self) -> PluginMatcher {
        let place = self.supervisor.place();
        let problem = &self.recipe.problem;
        PluginMatcher {
            seat: None,
            absent: PluginFault::Gone,
            seats: place.seats,
            returns: place.returns,
            _alive: place.alive,
            clock: self.clock.clone(),
            limit: self.limit,
            rest: vec![0; problem.detector_words()],
            recipe: Arc::clone(&self.recipe),
        }
    }

    /// Has the plugin's processes run on these cores only.
    pub(super) fn confine(&self, cores: &[u32]) {
        self.supervisor.confine(cores);
    }

    /// Whether the plugin runs in this process.
    pub(super) fn is_trusted(&self) -> bool {
        self.recipe.library.is_some()
    }

    /// The name in reports.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes on the heap that all matchers share.
    pub(super) fn bytes(&self) -> usize {
        self.recipe.problem.bytes()
    }

    /// Bytes of a matcher, without the plugin's own.
    pub(super) fn matcher_bytes(&self) -> usize {
        let problem = &self.recipe.problem;
        8 * problem.detector_words() + if self.is_trusted() { Handle::bytes_for(problem) } else { 0 }
    }
}

/// One worker's matcher.
pub(super) struct PluginMatcher {
    recipe: Arc<Recipe>,
    seat: Option<Seat>,
    /// Why there is no seat.
    absent: PluginFault,
    seats: MailboxReceiver<Seat>,
    returns: MailboxSender<Seat>,
    /// The supervisor ends the seats of a matcher that is gone.
    _alive: Arc<()>,
    clock: Clock,
    limit: Ticks,
    /// What the chosen mechanisms have still to explain.
    rest: Vec<u64>,
}

impl PluginMatcher {
    /// Gives a seat to the supervisor. There is room: it makes a new one only after it has taken out the last.
    fn give_back(&mut self, seat: Option<Seat>) {
        if let Some(seat) = seat {
            let _ = self.returns.push(seat);
        }
    }

    /// Takes the newest seat that has come: the processes of those before it have ended. Whether there is one.
    fn take_seat(&mut self) -> bool {
        while let Some(seat) = self.seats.pop() {
            let old = self.seat.replace(seat);
            self.give_back(old);
        }
        self.seat.is_some()
    }

    /// Decodes by the seat that is there.
    fn attempt(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<f64, PluginFault> {
        let problem = &self.recipe.problem;
        self.rest.copy_from_slice(syndrome);
        match &mut self.seat {
            None => Err(self.absent),
            Some(Seat::Here(handle)) => {
                let chosen = handle.decode(problem, syndrome)?;
                problem.explain(chosen.iter().copied(), &mut self.rest, observables)
            }
            Some(Seat::Apart(lane)) => {
                let chosen = lane.decode(syndrome, &self.clock, self.limit)?;
                problem.explain(chosen.iter().map(|word| word.load()), &mut self.rest, observables)
            }
        }
    }
}

impl Matcher for PluginMatcher {
    fn decode(&mut self, syndrome: &[u64], observables: &mut [u64]) -> Result<Decoded, DecodeError> {
        let problem = &self.recipe.problem;
        assert_eq!(syndrome.len(), problem.detector_words(), "the syndrome must be as wide as the model");
        assert_eq!(observables.len(), problem.observable_words(), "observables must be as wide as the model");
        self.take_seat();
        observables.fill(0);
        match self.attempt(syndrome, observables) {
            Ok(weight) => Ok(Decoded { weight: Some(weight), gap: None }),
            Err(fault) => {
                observables.fill(0);
                if fault.is_for_good() && self.seat.is_some() {
                    self.absent = fault;
                    let spoiled = self.seat.take();
                    self.give_back(spoiled);
                }
                Err(DecodeError::Plugin(fault))
            }
        }
    }

    fn bytes(&self) -> usize {
        8 * self.rest.capacity()
            + if self.recipe.library.is_some() { Handle::bytes_for(&self.recipe.problem) } else { 0 }
    }

    fn wait(&mut self) -> Result<(), DecodeError> {
        let (began, limit) = (self.clock.ticks(), self.clock.rate().ticks(WAIT_LIMIT));
        while !self.take_seat() {
            if self.clock.ticks().since(began) > limit {
                return Err(DecodeError::Plugin(self.absent));
            }
            std::thread::park_timeout(WAIT_PAUSE);
        }
        Ok(())
    }

    fn recover(&mut self) -> bool {
        let spoiled = self.seat.take();
        self.absent = PluginFault::Panicked;
        self.give_back(spoiled);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::lane::{self, Lane, added};
    use super::{Arc, Clock, DecodeError, Matcher, Model, Nanos, PluginFault, PluginMatcher, Problem, Recipe, Seat};
    use crate::hot::mailbox::mailbox;
    use pinwheel_edge::slot::outside::EngineEnd;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_shot_is_decoded_by_the_newest_seat_that_came_while_there_were_no_shots() {
        let problem = || Problem::new(&Model::parse(b"error(0.1) D0 L0\n").unwrap()).unwrap();
        let lane_of = |number| {
            let (mut lane, file) = Lane::new(&problem(), "", "", number).unwrap();
            let (mapping, mut end) = (lane::open(&file).unwrap(), EngineEnd::new(1));
            assert!(end.take(&mapping, &mut [0]).is_some() && end.answer(&mapping, 0, added(0, 0), &[]));
            assert_eq!(lane.readiness(), Some(Ok(())));
            (lane, mapping, end)
        };
        let ((mut gives, seats), (returns, mut taken)) = (mailbox(2), mailbox(2));
        let (first, ..) = lane_of(1);
        // Its process ended before the first shot, and another one was started.
        first.gone().store(true, Ordering::Relaxed);
        let (second, mapping, mut end) = lane_of(2);
        assert!(gives.push(Seat::Apart(first)).is_ok() && gives.push(Seat::Apart(second)).is_ok());
        let process = std::thread::spawn(move || {
            while end.take(&mapping, &mut [0]).is_none() {
                std::hint::spin_loop();
            }
            assert!(end.answer(&mapping, 0, added(0, 1), &[0]));
        });
        let clock = Clock::machine();
        let limit = clock.rate().ticks(Nanos(300_000_000_000));
        let recipe = Arc::new(Recipe { problem: problem(), path: "".into(), config: String::new(), library: None });
        let (absent, _alive, rest) = (PluginFault::Gone, Arc::new(()), vec![0]);
        let mut matcher = PluginMatcher { recipe, seat: None, absent, seats, returns, _alive, clock, limit, rest };
        let mut observables = [0];
        let decoded: Result<_, DecodeError> = matcher.decode(&[1], &mut observables);
        assert_eq!((decoded.map(|_| observables), taken.pop().is_some()), (Ok([1]), true));
        process.join().unwrap();
    }
}
