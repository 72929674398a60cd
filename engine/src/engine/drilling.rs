//! Drills in the running engine: their permission, start and end.
//!
//! Owns the drill in progress. Part of the command state, which the engine's cold threads share; a
//! role of silo 0 carries out the misbehaviour ([`crate::hot::drill_role`]). Bounds: one drill at a
//! time, of at most [`SPAN_MAX`]; it ends within a control tick of its time, and at the start of a
//! drain. Never permitted in an engine that spins as `Prod`, or without a watchdog to give the
//! verdict.
//!
//! # Why only drills that a role can carry out
//! The other drills stop the process or take its memory or core. They need an engine of their own,
//! which `pinwheel drill` starts.

use crate::board::{self, Board, Phase};
use crate::host::memory::mib_left;
use crate::hot::drill_role::{DrillCommand, Misbehaviour};
use crate::profile::{Diagnostics, Profile, SpinPolicy};
use crate::roles::RoleKind;
use crate::stall::Cause;
use crate::units::Ticks;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest drill of the kind that lasts until it is stopped.
const SPAN_MAX: Duration = Duration::from_secs(10);
/// Longest one-time misbehaviour.
const MISBEHAVIOUR_MAX: Duration = crate::hot::drill_role::MISBEHAVIOUR_MAX;
/// Shortest drill of either kind.
const SPAN_MIN: Duration = Duration::from_millis(10);
/// Default time of a drill that lasts until it is stopped.
const SPAN_DEFAULT: Duration = Duration::from_secs(2);
/// Default time of a one-time misbehaviour: the longer of `ONCE_MIN` and `ONCE_LIMITS` heartbeat
/// limits.
const ONCE_MIN: Duration = Duration::from_millis(60);
const ONCE_LIMITS: u32 = 3;
/// A one-time misbehaviour may still run this long after its time.
const GRACE: Duration = Duration::from_millis(500);
/// Delay of harvest for each batch.
const HARVEST_DELAY: Duration = Duration::from_millis(3);
/// Memory whose first touch causes the page faults, and the free memory required for it.
const PAGES_BYTES: usize = 512 << 20;
const FREE_MIB_MIN: u64 = 2_048;

macro_rules! drills {
    ($( $(#[$meta:meta])* $drill:ident = $name:literal, $role:ident, $misbehaviour:ident, $cause:ident, $what:literal; )*) => {
        /// A drill for a running engine. Names as in `pinwheel drill`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LiveDrill { $( $(#[$meta])* $drill, )* }

        pinwheel_edge::names! { LiveDrill: $($drill $name),* }

        impl LiveDrill {
            /// Description for a menu.
            pub const fn what(self) -> &'static str {
                match self { $( LiveDrill::$drill => $what, )* }
            }

            /// The expected cause of the alarm.
            pub const fn expected(self) -> Cause {
                match self { $( LiveDrill::$drill => Cause::$cause, )* }
            }

            /// The role of silo 0 that carries it out.
            pub const fn role(self) -> RoleKind {
                match self { $( LiveDrill::$drill => RoleKind::$role, )* }
            }

            const fn misbehaviour(self) -> Misbehaviour {
                match self { $( LiveDrill::$drill => Misbehaviour::$misbehaviour, )* }
            }
        }
    };
}

drills! {
    /// A role computes too long.
    LongHandler = "long-handler", Dispatch, Compute, LongHandler, "dispatch computes for three heartbeat limits";
    /// A role sleeps.
    Sleep = "sleep", Dispatch, Sleep, Blocked, "dispatch sleeps for three heartbeat limits";
    /// A role touches fresh memory.
    PageFaults = "page-faults", Dispatch, TouchPages, PageFaults, "dispatch touches fresh pages for three heartbeat limits";
    /// A role panics: the engine drains and ends.
    RolePanic = "role-panic", Poll, Panic, Died, "poll panics, and the run ends with that";
    /// The device completes nothing for a while.
    DeviceHang = "device-hang", Device, StandStill, DeviceHung, "the device completes nothing for 2 s";
    /// Harvest is slow.
    SlowHarvest = "slow-harvest", Harvest, SlowDown, SlowStage, "harvest takes 3 ms for each batch, for 2 s";
    /// A role reports work without making progress.
    ClaimsWork = "claims-work", Poll, ClaimWork, ClaimsWork, "poll reports work in each frame, for 2 s";
}

impl LiveDrill {
    /// Finds a drill by its name.
    pub fn from_name(name: &str) -> Option<LiveDrill> {
        LiveDrill::ALL.into_iter().find(|drill| drill.name() == name)
    }

    /// Whether it ends the run.
    pub const fn ends_the_run(self) -> bool {
        matches!(self, LiveDrill::RolePanic)
    }

    /// Longest time; `None`: the drill has no duration.
    pub const fn span_max(self) -> Option<Duration> {
        match self {
            LiveDrill::RolePanic => None,
            LiveDrill::LongHandler | LiveDrill::Sleep | LiveDrill::PageFaults => Some(MISBEHAVIOUR_MAX),
            LiveDrill::DeviceHang | LiveDrill::SlowHarvest | LiveDrill::ClaimsWork => Some(SPAN_MAX),
        }
    }

    const fn is_once(self) -> bool {
        matches!(self, LiveDrill::LongHandler | LiveDrill::Sleep | LiveDrill::PageFaults | LiveDrill::RolePanic)
    }
}

/// Why a drill was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DrillRefused {
    #[error(
        "profile {profile} spins as Prod, and drills would disturb production; switch to a profile with spin Lab or \
         Shared"
    )]
    Prod { profile: String },
    #[error("this run has no watchdog to give the verdict; start it with diagnostics: On")]
    NoDiagnostics,
    #[error("this engine's roles take no drill commands; start it with a profile of spin Lab or Shared")]
    NotPrepared,
    #[error("the engine is in {found}; drills need LIVE")]
    Phase { found: &'static str },
    #[error("drill {name} is still running; it ends by itself within {limit_s} s", limit_s = SPAN_MAX.as_secs())]
    Busy { name: &'static str },
    #[error(
        "{found} is not a drill for a running engine, which are {}; other drills need an engine of their own: pinwheel \
         drill {found}",
        names()
    )]
    Unknown { found: String },
    #[error("a drill of {found_ms} ms is not possible: give {} to {limit_ms} ms, or no time for the default", SPAN_MIN.as_millis())]
    Span { found_ms: u64, limit_ms: u64 },
    #[error("role-panic takes no time: a panic has no duration")]
    Timed,
    #[error("no thread of this engine runs {role} of silo 0, which this drill needs; this device has none")]
    NoRole { role: RoleKind },
    #[error(
        "only {found_mib} MiB of memory are free for this process, and this drill needs {FREE_MIB_MIN}; free some, or \
         raise the limit of its control group"
    )]
    Memory { found_mib: u64 },
}

fn names() -> String {
    LiveDrill::ALL.iter().map(|drill| drill.name()).collect::<Vec<_>>().join(", ")
}

/// A drill that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drilled {
    /// The drill.
    pub(super) drill: LiveDrill,
    /// Name of the thread that carries it out.
    pub(super) thread: String,
    /// Its time; zero: it has no duration.
    pub(super) span: Duration,
}

impl Drilled {
    /// Text for the actions log.
    pub(super) fn words(&self) -> String {
        let role = self.drill.role();
        let span = if self.span.is_zero() { String::new() } else { format!(" for {} ms", self.span.as_millis()) };
        format!(
            "drill {}: {role} on {}{span}, expecting \"{}\"",
            self.drill.name(),
            self.thread,
            self.drill.expected().name()
        )
    }
}

/// The drill commands of an engine that starts with `profile`; `None` if the profile permits no
/// drills: the roles then bear no cost.
pub fn prepared(profile: &Profile) -> Option<Arc<DrillCommand>> {
    let permits = profile.spin != SpinPolicy::Prod && profile.diagnostics == Diagnostics::On;
    permits.then(|| DrillCommand::new(0))
}

/// The drills of one engine.
pub(super) struct Drilling {
    drill_command: Option<Arc<DrillCommand>>,
    running: Option<(LiveDrill, Ticks)>,
}

/// Result of a drill.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The role did as commanded.
    Done(LiveDrill),
    /// The role never started.
    NeverTaken(LiveDrill),
}

impl Drilling {
    pub(super) fn new(drill_command: Option<Arc<DrillCommand>>) -> Drilling {
        Drilling { drill_command, running: None }
    }

    /// Checks whether a drill may start now, in an engine that runs `profile` called `name`.
    pub(super) fn check_permitted(
        &self,
        name: &str,
        profile: &Profile,
        board: &Board,
    ) -> Result<&Arc<DrillCommand>, DrillRefused> {
        if profile.spin == SpinPolicy::Prod {
            return Err(DrillRefused::Prod { profile: name.to_owned() });
        }
        if profile.diagnostics == Diagnostics::Off {
            return Err(DrillRefused::NoDiagnostics);
        }
        let drill_command = self.drill_command.as_ref().ok_or(DrillRefused::NotPrepared)?;
        match Phase::from_code(board::get(&board.header().phase)) {
            Phase::Live => {}
            phase => return Err(DrillRefused::Phase { found: phase.name() }),
        }
        match self.running {
            Some((running, _)) => Err(DrillRefused::Busy { name: running.name() }),
            None => Ok(drill_command),
        }
    }

    /// Starts `drill` at `now`; `ticks` converts a duration to ticks.
    pub(super) fn start(
        &mut self,
        drill: LiveDrill,
        span: Option<Duration>,
        (name, profile): (&str, &Profile),
        board: &Board,
        (now, ticks): (Ticks, impl Fn(Duration) -> Ticks),
    ) -> Result<Drilled, DrillRefused> {
        let drill_command = Arc::clone(self.check_permitted(name, profile, board)?);
        let span = span_of(drill, span, Duration::from_millis(u64::from(profile.limits.heartbeat_ms)))?;
        let thread = thread_of(board, drill.role()).ok_or(DrillRefused::NoRole { role: drill.role() })?;
        if drill == LiveDrill::PageFaults {
            if let Some(found_mib) = mib_left(Path::new("/")).filter(|free| *free < FREE_MIB_MIN) {
                return Err(DrillRefused::Memory { found_mib });
            }
            drill_command.set_pages(PAGES_BYTES);
        }
        let each = if drill == LiveDrill::SlowHarvest { HARVEST_DELAY } else { span };
        drill_command.request(drill.role(), drill.misbehaviour(), each);
        let over = if drill.is_once() { span + GRACE } else { span };
        self.running = Some((drill, now.plus(ticks(over))));
        Ok(Drilled { drill, thread, span })
    }

    /// Ends a drill whose time is over, or during which a drain began.
    pub(super) fn step(&mut self, now: Ticks, phase: Phase) -> Option<Ended> {
        let (drill, until) = self.running?;
        if now < until && phase == Phase::Live {
            return None;
        }
        let drill_command = self.drill_command.as_ref()?;
        let was_taken = !drill.is_once() || drill_command.is_taken();
        drill_command.end();
        drill_command.set_pages(0);
        self.running = None;
        Some(if was_taken { Ended::Done(drill) } else { Ended::NeverTaken(drill) })
    }
}

fn span_of(drill: LiveDrill, span: Option<Duration>, heartbeat: Duration) -> Result<Duration, DrillRefused> {
    match (drill.span_max(), span) {
        (None, None) => Ok(Duration::ZERO),
        (None, Some(_)) => Err(DrillRefused::Timed),
        (Some(_), None) if !drill.is_once() => Ok(SPAN_DEFAULT),
        (Some(limit), None) => Ok(ONCE_MIN.max(heartbeat * ONCE_LIMITS).min(limit)),
        (Some(limit), Some(span)) if span < SPAN_MIN || span > limit => {
            let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            Err(DrillRefused::Span { found_ms: ms(span), limit_ms: ms(limit) })
        }
        (Some(_), Some(span)) => Ok(span),
    }
}

/// Name of the thread that runs the first `role` of silo 0.
fn thread_of(board: &Board, role: RoleKind) -> Option<String> {
    board.threads().iter().find_map(|block| {
        let runs = block.own_roles().iter().any(|place| board::get(&place.identity) == role as u64);
        runs.then(|| block.name.read())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DrillRefused, Drilling, Ended, GRACE, LiveDrill, ONCE_MIN, SPAN_DEFAULT, SPAN_MAX, prepared};
    use crate::board::{self, Board, Phase, Place, Shape};
    use crate::hot::drill_role::DrillCommand;
    use crate::profile::{Diagnostics, Profile, SpinPolicy};
    use crate::roles::RoleKind;
    use crate::units::Ticks;
    use std::time::Duration;

    fn live() -> (Board, Profile) {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let block = board.thread(0);
        block.name.write("hot-0");
        board::set(&block.roles_count, 2);
        for (place, role) in block.roles.iter().zip([RoleKind::Dispatch, RoleKind::Poll]) {
            board::set(&place.identity, role as u64);
        }
        board::set(&board.header().phase, Phase::Live as u64);
        (board, Profile::load("lab", None).unwrap().0)
    }

    fn at(
        drilling: &mut Drilling,
        drill: LiveDrill,
        span: Option<u64>,
        world: &(Board, Profile),
    ) -> Result<u64, DrillRefused> {
        let ticks = |span: Duration| Ticks(span.as_nanos() as u64);
        let span = span.map(Duration::from_millis);
        let started = drilling.start(drill, span, ("lab", &world.1), &world.0, (Ticks(0), ticks))?;
        assert_eq!(started.thread, "hot-0");
        Ok(started.span.as_millis() as u64)
    }

    #[test]
    fn a_drill_is_refused_in_prod_without_watchdog_or_preparation_and_outside_live() {
        let mut world = live();
        let mut drilling = Drilling::new(prepared(&world.1));
        let start = |drilling: &mut Drilling, world: &(Board, Profile)| at(drilling, LiveDrill::Sleep, None, world);
        assert_eq!(start(&mut Drilling::new(None), &world), Err(DrillRefused::NotPrepared));
        world.1.spin = SpinPolicy::Prod;
        assert_eq!(start(&mut drilling, &world), Err(DrillRefused::Prod { profile: "lab".into() }));
        assert!(prepared(&world.1).is_none(), "and its roles take no commands");
        world.1.spin = SpinPolicy::Lab;
        world.1.diagnostics = Diagnostics::Off;
        assert_eq!(start(&mut drilling, &world), Err(DrillRefused::NoDiagnostics));
        assert!(prepared(&world.1).is_none());
        world.1.diagnostics = Diagnostics::On;
        board::set(&world.0.header().phase, Phase::Drain as u64);
        assert_eq!(start(&mut drilling, &world), Err(DrillRefused::Phase { found: Phase::Drain.name() }));
        board::set(&world.0.header().phase, Phase::Live as u64);
        assert_eq!(start(&mut drilling, &world), Ok(ONCE_MIN.as_millis() as u64));
        assert_eq!(start(&mut drilling, &world), Err(DrillRefused::Busy { name: "sleep" }));
    }

    #[test]
    fn a_drill_has_a_bounded_time_and_needs_its_role() {
        let world = live();
        let mut drilling = Drilling::new(prepared(&world.1));
        let found = at(&mut drilling, LiveDrill::ClaimsWork, Some(10_001), &world);
        assert_eq!(found, Err(DrillRefused::Span { found_ms: 10_001, limit_ms: SPAN_MAX.as_millis() as u64 }));
        assert_eq!(at(&mut drilling, LiveDrill::RolePanic, Some(10), &world), Err(DrillRefused::Timed));
        assert_eq!(
            at(&mut drilling, LiveDrill::Sleep, Some(2), &world).unwrap_err().to_string().get(..4),
            Some("a dr")
        );
        let none = at(&mut drilling, LiveDrill::SlowHarvest, None, &world);
        assert_eq!(none, Err(DrillRefused::NoRole { role: RoleKind::Harvest }));
        assert_eq!(at(&mut drilling, LiveDrill::ClaimsWork, None, &world), Ok(SPAN_DEFAULT.as_millis() as u64));
    }

    #[test]
    fn a_drill_ends_at_its_time_or_at_a_drain_and_reports_if_it_never_started() {
        let world = live();
        let drill_command = DrillCommand::new(0);
        let mut drilling = Drilling::new(Some(drill_command.clone()));
        at(&mut drilling, LiveDrill::ClaimsWork, Some(100), &world).unwrap();
        assert_eq!(drilling.step(Ticks(99_000_000), Phase::Live), None);
        assert!(!drill_command.is_taken(), "it goes on");
        assert_eq!(drilling.step(Ticks(100_000_000), Phase::Live), Some(Ended::Done(LiveDrill::ClaimsWork)));
        assert!(drill_command.is_taken());
        at(&mut drilling, LiveDrill::DeviceHang, None, &world).unwrap_err();
        at(&mut drilling, LiveDrill::ClaimsWork, None, &world).unwrap();
        assert_eq!(drilling.step(Ticks(1), Phase::Drain), Some(Ended::Done(LiveDrill::ClaimsWork)));
        at(&mut drilling, LiveDrill::Sleep, Some(50), &world).unwrap();
        let over = Ticks(50_000_000 + GRACE.as_nanos() as u64);
        assert_eq!(drilling.step(over, Phase::Live), Some(Ended::NeverTaken(LiveDrill::Sleep)));
        assert_eq!(drilling.step(over, Phase::Live), None);
    }

    #[test]
    fn drills_are_found_by_their_names() {
        for drill in LiveDrill::ALL {
            assert_eq!(LiveDrill::from_name(drill.name()), Some(drill));
            assert!(!drill.what().is_empty());
        }
        let said = DrillRefused::Unknown { found: "competitor".into() }.to_string();
        assert!(said.contains("pinwheel drill competitor") && said.contains("slow-harvest"), "{said}");
    }
}
