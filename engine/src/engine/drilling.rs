//! Drills in the running engine: which deeds can be done in it, who may ask for one, and its end.
//!
//! Owns the one drill that runs. Part of the steering, which the engine's cold threads share; the deed itself is done by a
//! role of silo 0 ([`crate::hot::provoke`]). Bounds: one drill at a time; a deed lasts [`SPAN_MAX`] at most and ends by itself
//! within a control tick of its time, at the start of a drain too. Never in an engine that spins as `Prod`, never where nobody
//! would say why it stalled.
//!
//! # Why only what a role can do
//! The other drills stop the process, take its memory or its core: they need an engine of their own, and `pinwheel drill`
//! gives them one.

use crate::board::layout::ROLES_MAX;
use crate::board::{self, Board, Phase};
use crate::hot::provoke::{Deed, Provocation};
use crate::profile::{Diagnostics, Profile, RoleKind, SpinPolicy};
use crate::stall::Cause;
use crate::units::Ticks;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that a deed lasts which ends when it is told to.
const SPAN_MAX: Duration = Duration::from_secs(10);
/// Longest deed that is done once, and the shortest of either kind.
const DEED_MAX: Duration = crate::hot::provoke::DEED_MAX;
/// See [`DEED_MAX`].
const SPAN_MIN: Duration = Duration::from_millis(10);
/// Time of a deed that lasts, unless it is said.
const LASTS: Duration = Duration::from_secs(2);
/// A deed done once is at least so long, and so many heartbeat limits, unless it is said.
const ONCE: Duration = Duration::from_millis(60);
const ONCE_LIMITS: u32 = 3;
/// After its time a deed done once may still be under way.
const GRACE: Duration = Duration::from_millis(500);
/// What harvest takes for each batch.
const DAWDLE: Duration = Duration::from_millis(3);
/// Memory that page faults are made in, and what must be free for it.
const PAGES_BYTES: usize = 512 << 20;
const FREE_MIB_MIN: u64 = 2_048;

macro_rules! drills {
    ($( $(#[$meta:meta])* $drill:ident = $name:literal, $role:ident, $deed:ident, $cause:ident, $what:literal; )*) => {
        /// A drill that can be done in a running engine. Names are those of `pinwheel drill`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LiveDrill { $( $(#[$meta])* $drill, )* }

        impl LiveDrill {
            /// All of them.
            pub const ALL: &[LiveDrill] = &[ $( LiveDrill::$drill, )* ];

            /// Name, on the command line and in the log.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( LiveDrill::$drill => $name, )* }
            }

            /// What it does, for a menu.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $( LiveDrill::$drill => $what, )* }
            }

            /// The verdict that it must get.
            #[must_use]
            pub const fn expected(self) -> Cause {
                match self { $( LiveDrill::$drill => Cause::$cause, )* }
            }

            /// The role of silo 0 that does it.
            #[must_use]
            pub const fn role(self) -> RoleKind {
                match self { $( LiveDrill::$drill => RoleKind::$role, )* }
            }

            const fn deed(self) -> Deed {
                match self { $( LiveDrill::$drill => Deed::$deed, )* }
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
    /// The device stops working for a while.
    DeviceHang = "device-hang", Device, StandStill, DeviceHung, "the device completes nothing for 2 s";
    /// Harvest dawdles.
    SlowHarvest = "slow-harvest", Harvest, Dawdle, SlowStage, "harvest takes 3 ms for each batch, for 2 s";
    /// A role claims work that moves nothing.
    ClaimsWork = "claims-work", Poll, ClaimWork, ClaimsWork, "poll reports work in each frame, for 2 s";
}

impl LiveDrill {
    /// By name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<LiveDrill> {
        LiveDrill::ALL.iter().copied().find(|drill| drill.name() == name)
    }

    /// Whether the run ends with it.
    #[must_use]
    pub const fn ends_the_run(self) -> bool {
        matches!(self, LiveDrill::RolePanic)
    }

    /// Longest time that can be asked for; `None`: it has none.
    #[must_use]
    pub const fn span_max(self) -> Option<Duration> {
        match self {
            LiveDrill::RolePanic => None,
            LiveDrill::LongHandler | LiveDrill::Sleep | LiveDrill::PageFaults => Some(DEED_MAX),
            LiveDrill::DeviceHang | LiveDrill::SlowHarvest | LiveDrill::ClaimsWork => Some(SPAN_MAX),
        }
    }

    const fn is_once(self) -> bool {
        matches!(self, LiveDrill::LongHandler | LiveDrill::Sleep | LiveDrill::PageFaults | LiveDrill::RolePanic)
    }
}

/// Why a drill was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrillRefused {
    /// It runs for others.
    #[error(
        "found profile {profile}, which spins as Prod, expected Lab or Shared: no drill disturbs an engine that works"
    )]
    Prod {
        /// The profile in force.
        profile: String,
    },
    /// Nobody would say why it stalled.
    #[error("found no watchdog in this run, expected one to give the verdict; start it with diagnostics: On")]
    NoDiagnostics,
    /// It was started without.
    #[error(
        "found an engine whose roles take no commands, expected one that was started with a profile of spin Lab or Shared; start it again with one"
    )]
    NotPrepared,
    /// Too early or too late.
    #[error("found the engine in {found}, expected LIVE")]
    Phase {
        /// Its phase.
        found: &'static str,
    },
    /// One at a time.
    #[error("found drill {name} still running, expected none; it ends by itself within {limit_s} s", limit_s = SPAN_MAX.as_secs())]
    Busy {
        /// The one that runs.
        name: &'static str,
    },
    /// No such name.
    #[error(
        "found {found}, expected one of {}; the others need an engine of their own: pinwheel drill {found}",
        names()
    )]
    Unknown {
        /// As it was asked for.
        found: String,
    },
    /// A time that cannot be had.
    #[error("found {found_ms} ms, expected {} to {limit_ms} ms; leave the time out for the drill's own", SPAN_MIN.as_millis())]
    Span {
        /// As it was asked for.
        found_ms: u64,
        /// The drill's longest.
        limit_ms: u64,
    },
    /// It has no time.
    #[error("found a time for role-panic, expected none: a panic has no length")]
    Timed,
    /// Nobody does it here.
    #[error("found no {role} of silo 0 in this engine's threads, expected one to do it; this device has none")]
    NoRole {
        /// The role.
        role: RoleKind,
    },
    /// Too little memory.
    #[error("found {found_mib} MiB of free memory, expected {FREE_MIB_MIN} to touch some of it; free some")]
    Memory {
        /// Free.
        found_mib: u64,
    },
}

fn names() -> String {
    LiveDrill::ALL.iter().map(|drill| drill.name()).collect::<Vec<_>>().join(", ")
}

/// A drill that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drilled {
    /// Which.
    pub drill: LiveDrill,
    /// The thread that does it.
    pub thread: String,
    /// For so long; zero for one that has no length.
    pub span: Duration,
}

impl Drilled {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
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

/// What takes commands in an engine that is started with `profile`; `None` where the profile permits no drills: it then
/// costs its roles nothing.
#[must_use]
pub fn prepared(profile: &Profile) -> Option<Arc<Provocation>> {
    let permits = profile.spin != SpinPolicy::Prod && profile.diagnostics == Diagnostics::On;
    permits.then(|| Provocation::new(0))
}

/// The drills of one engine.
pub(super) struct Drilling {
    provocation: Option<Arc<Provocation>>,
    running: Option<(LiveDrill, Ticks)>,
}

/// What a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It did what it was told.
    Done(LiveDrill),
    /// Its role never took it up.
    NeverTaken(LiveDrill),
}

impl Drilling {
    pub(super) fn new(provocation: Option<Arc<Provocation>>) -> Drilling {
        Drilling { provocation, running: None }
    }

    /// Whether a drill may be started now, in an engine that runs `profile` called `name`.
    pub(super) fn may(&self, name: &str, profile: &Profile, board: &Board) -> Result<&Arc<Provocation>, DrillRefused> {
        if profile.spin == SpinPolicy::Prod {
            return Err(DrillRefused::Prod { profile: name.to_owned() });
        }
        if profile.diagnostics == Diagnostics::Off {
            return Err(DrillRefused::NoDiagnostics);
        }
        let provocation = self.provocation.as_ref().ok_or(DrillRefused::NotPrepared)?;
        match Phase::from_code(board::get(&board.header().phase)) {
            Phase::Live => {}
            phase => return Err(DrillRefused::Phase { found: phase.name() }),
        }
        match self.running {
            Some((running, _)) => Err(DrillRefused::Busy { name: running.name() }),
            None => Ok(provocation),
        }
    }

    /// Starts `drill` at `now`; `ticks` makes ticks of a span.
    pub(super) fn start(
        &mut self,
        drill: LiveDrill,
        span: Option<Duration>,
        (name, profile): (&str, &Profile),
        board: &Board,
        (now, ticks): (Ticks, impl Fn(Duration) -> Ticks),
    ) -> Result<Drilled, DrillRefused> {
        let provocation = Arc::clone(self.may(name, profile, board)?);
        let span = span_of(drill, span, Duration::from_millis(u64::from(profile.limits.heartbeat_ms)))?;
        let thread = thread_of(board, drill.role()).ok_or(DrillRefused::NoRole { role: drill.role() })?;
        if drill == LiveDrill::PageFaults {
            if let Some(found_mib) = free_mib().filter(|free| *free < FREE_MIB_MIN) {
                return Err(DrillRefused::Memory { found_mib });
            }
            provocation.set_pages(PAGES_BYTES);
        }
        let each = if drill == LiveDrill::SlowHarvest { DAWDLE } else { span };
        provocation.order(drill.role(), drill.deed(), each);
        let over = if drill.is_once() { span + GRACE } else { span };
        self.running = Some((drill, now.plus(ticks(over))));
        Ok(Drilled { drill, thread, span })
    }

    /// Ends a drill whose time is over, or that a drain has met.
    pub(super) fn step(&mut self, now: Ticks, phase: Phase) -> Option<Ended> {
        let (drill, until) = self.running?;
        if now < until && phase == Phase::Live {
            return None;
        }
        let provocation = self.provocation.as_ref()?;
        let was_taken = !drill.is_once() || provocation.is_taken();
        provocation.cease();
        provocation.set_pages(0);
        self.running = None;
        Some(if was_taken { Ended::Done(drill) } else { Ended::NeverTaken(drill) })
    }
}

fn span_of(drill: LiveDrill, span: Option<Duration>, heartbeat: Duration) -> Result<Duration, DrillRefused> {
    match (drill.span_max(), span) {
        (None, None) => Ok(Duration::ZERO),
        (None, Some(_)) => Err(DrillRefused::Timed),
        (Some(_), None) if !drill.is_once() => Ok(LASTS),
        (Some(limit), None) => Ok(ONCE.max(heartbeat * ONCE_LIMITS).min(limit)),
        (Some(limit), Some(span)) if span < SPAN_MIN || span > limit => {
            let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            Err(DrillRefused::Span { found_ms: ms(span), limit_ms: ms(limit) })
        }
        (Some(_), Some(span)) => Ok(span),
    }
}

/// Name of the thread that runs the first `role` of silo 0.
fn thread_of(board: &Board, role: RoleKind) -> Option<String> {
    (0..board.shape().threads as usize).map(|thread| board.thread(thread)).find_map(|block| {
        let count = (board::get(&block.roles_count) as usize).min(ROLES_MAX);
        let runs = block.roles[..count].iter().any(|place| board::get(&place.identity) == role as u64);
        runs.then(|| block.name.read())
    })
}

/// Memory that a program may still take, MiB; `None` where the system does not say.
fn free_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().split(' ').next()?.parse::<u64>().ok()? / 1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DrillRefused, Drilling, Ended, GRACE, LASTS, LiveDrill, ONCE, SPAN_MAX, prepared};
    use crate::board::{self, Board, Phase, Place, Shape};
    use crate::hot::provoke::Provocation;
    use crate::profile::{Diagnostics, Profile, RoleKind, SpinPolicy};
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
    fn a_drill_is_refused_in_prod_without_a_watchdog_unprepared_and_out_of_live() {
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
        assert_eq!(start(&mut drilling, &world), Ok(ONCE.as_millis() as u64));
        assert_eq!(start(&mut drilling, &world), Err(DrillRefused::Busy { name: "sleep" }));
    }

    #[test]
    fn a_drill_lasts_as_long_as_it_may_and_needs_the_role_that_does_it() {
        let world = live();
        let mut drilling = Drilling::new(prepared(&world.1));
        let found = at(&mut drilling, LiveDrill::ClaimsWork, Some(10_001), &world);
        assert_eq!(found, Err(DrillRefused::Span { found_ms: 10_001, limit_ms: SPAN_MAX.as_millis() as u64 }));
        assert_eq!(at(&mut drilling, LiveDrill::RolePanic, Some(10), &world), Err(DrillRefused::Timed));
        assert_eq!(
            at(&mut drilling, LiveDrill::Sleep, Some(2), &world).unwrap_err().to_string().get(..4),
            Some("foun")
        );
        let none = at(&mut drilling, LiveDrill::SlowHarvest, None, &world);
        assert_eq!(none, Err(DrillRefused::NoRole { role: RoleKind::Harvest }));
        assert_eq!(at(&mut drilling, LiveDrill::ClaimsWork, None, &world), Ok(LASTS.as_millis() as u64));
    }

    #[test]
    fn what_lasts_ends_by_itself_and_with_a_drain_and_what_was_never_taken_up_is_told() {
        let world = live();
        let provocation = Provocation::new(0);
        let mut drilling = Drilling::new(Some(provocation.clone()));
        at(&mut drilling, LiveDrill::ClaimsWork, Some(100), &world).unwrap();
        assert_eq!(drilling.step(Ticks(99_000_000), Phase::Live), None);
        assert!(!provocation.is_taken(), "it goes on");
        assert_eq!(drilling.step(Ticks(100_000_000), Phase::Live), Some(Ended::Done(LiveDrill::ClaimsWork)));
        assert!(provocation.is_taken());
        at(&mut drilling, LiveDrill::DeviceHang, None, &world).unwrap_err();
        at(&mut drilling, LiveDrill::ClaimsWork, None, &world).unwrap();
        assert_eq!(drilling.step(Ticks(1), Phase::Drain), Some(Ended::Done(LiveDrill::ClaimsWork)));
        at(&mut drilling, LiveDrill::Sleep, Some(50), &world).unwrap();
        let over = Ticks(50_000_000 + GRACE.as_nanos() as u64);
        assert_eq!(drilling.step(over, Phase::Live), Some(Ended::NeverTaken(LiveDrill::Sleep)));
        assert_eq!(drilling.step(over, Phase::Live), None);
    }

    #[test]
    fn drills_are_found_by_the_names_that_pinwheel_drill_has_for_them() {
        for drill in LiveDrill::ALL {
            assert_eq!(LiveDrill::from_name(drill.name()), Some(*drill));
            assert!(!drill.what().is_empty());
        }
        let said = DrillRefused::Unknown { found: "competitor".into() }.to_string();
        assert!(said.contains("pinwheel drill competitor") && said.contains("slow-harvest"), "{said}");
    }
}
