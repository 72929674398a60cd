//! Drills: real faults that are provoked on purpose, to check the watchdog's verdicts.
//!
//! Owns the list of drills, their engines, and the comparison. Run by the command line on a cold
//! thread. One drill at a time, [`VERDICT_LIMIT`] for each verdict. A drill undoes its changes. A
//! drill that this machine does not permit gives the reason and is not run; nothing is simulated.
//!
//! ```text
//!   engine (in this process or in a child) ─ LIVE ─▶ fault ─▶ alarm with a cause ─▶ as expected?
//! ```

mod own_process;
mod control_group;
mod resources;
mod other_process;
mod pipe;
mod drill_engine;
mod child_engine;

pub use child_engine::{Program, run_as_child};

use crate::board::alarms::Confidence;
use crate::stall::Cause;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set when drills are to end.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Has the drill in progress undo its changes and end without a verdict, and each later one of this process.
pub fn end() {
    IS_OVER.store(true, Ordering::Relaxed);
}

fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

/// Longest wait for a verdict.
pub const VERDICT_LIMIT: Duration = Duration::from_secs(4);

macro_rules! drills {
    ($( $(#[$meta:meta])* $drill:ident = $name:literal, $cause:ident, $what:literal; )*) => {
        /// A fault that can be provoked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Drill { $( $(#[$meta])* $drill, )* }

        pinwheel_edge::names! { Drill: $($drill $name),* }

        impl Drill {
            /// The cause that the watchdog must find.
            pub const fn expected(self) -> Cause {
                match self { $( Drill::$drill => Cause::$cause, )* }
            }

            /// The fault, in words.
            pub const fn what(self) -> &'static str {
                match self { $( Drill::$drill => $what, )* }
            }
        }
    };
}

drills! {
    /// A role computes too long.
    LongHandler = "long-handler", LongHandler, "dispatch computes for 60 ms";
    /// A role sleeps.
    Sleep = "sleep", Blocked, "dispatch sleeps for 60 ms";
    /// A role accesses memory that was not used before.
    PageFaults = "page-faults", PageFaults, "dispatch touches fresh pages for 60 ms";
    /// Another program has the core.
    Competitor = "competitor", Descheduled, "a shell takes a hot thread's core";
    /// The control group's quota is used up.
    CpuQuota = "cpu-quota", Quota, "a control group allows 20 ms of each 100 ms";
    /// The process is stopped.
    Sigstop = "sigstop", Stopped, "SIGSTOP of an engine, judged from outside";
    /// One thread is held by a debugger.
    PtraceStop = "ptrace-stop", Stopped, "a tracer holds one hot thread";
    /// A cold thread maps and unmaps memory all the time.
    AllocationStorm = "allocation-storm", Interrupts, "a cold thread maps and unmaps memory";
    /// A hot thread is moved.
    LostAffinity = "lost-affinity", Affinity, "a hot thread's affinity is changed";
    /// A role panics.
    RolePanic = "role-panic", Died, "poll panics";
    /// The device stops working.
    DeviceHang = "device-hang", DeviceHung, "the device completes nothing";
    /// Launches fail.
    LaunchFailures = "launch-failures", LaunchesFail, "one launch in five is refused";
    /// A worker never comes back.
    WorkerNeverEnds = "worker-never-ends", WorkerLost, "one launch in a thousand never completes";
    /// A transfer's acknowledgement is lost.
    LostAck = "lost-ack", Unexplained, "the arbiter's ACK is dropped";
    /// No reader takes the answers.
    FullRing = "full-ring", RingFull, "the reader of the answers does not read";
    /// Harvest is slow.
    SlowHarvest = "slow-harvest", SlowStage, "harvest takes 3 ms for each batch";
    /// A role claims work that moves nothing.
    ClaimsWork = "claims-work", ClaimsWork, "poll reports work in each frame";
    /// Programs that end while the thread still waits have its core one after the other.
    ManyCompetitors = "many-competitors", Descheduled, "eight short shells take a hot thread's core in turn";
    /// A core is taken out of the process's cpuset.
    CoreOutsideCpuset = "core-outside-cpuset", OutsideCpuset, "a hot thread's core leaves the cpuset";
    /// A core goes offline.
    CoreOffline = "core-offline", Offline, "a hot thread's core goes offline";
    /// Two independent faults.
    TwoCauses = "two-causes", DeviceHung, "the device completes nothing while a shell takes a hot thread's core";
    /// Shots take slots and none is given back.
    SlotsFill = "slots-fill", RunningOut, "the device completes nothing while 8 shots a second come";
    /// The run's disk fills.
    DiskFills = "disk-fills", RunningOut, "a file grows by 4 MiB a second on the run's disk";
    /// Memory is used up.
    MemoryFills = "memory-fills", RunningOut, "32 MiB of memory are taken each second";
    /// UTC and the engine's counter drift apart.
    ClockDrifts = "clock-drifts", RunningOut, "the machine's clock is slewed by 0.5 ms a second";
}

impl Drill {
    /// The drill with this name.
    pub fn from_name(name: &str) -> Option<Drill> {
        Drill::ALL.into_iter().find(|drill| drill.name() == name)
    }
}

/// The result of one drill.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub drill: &'static str,
    /// Whether it could be run here.
    pub permitted: bool,
    /// Why it could not be run, or what went wrong.
    pub reason: Option<String>,
    /// The cause that the watchdog must find.
    pub expected: &'static str,
    /// The cause that it found.
    pub given: Option<String>,
    /// How certain the verdict was.
    pub confidence: Option<Confidence>,
    /// Time from the fault to the verdict, milliseconds.
    pub time_to_verdict_ms: Option<f64>,
    /// Cause of the root of the incident that the alarm is a part of.
    pub root: Option<String>,
    /// Rules of the alarms that the root explained by then.
    pub consequences: Vec<String>,
    /// The verdict's sentence.
    pub sentence: Option<String>,
    /// The source line that the stack names, if a stack was taken.
    pub culprit: Option<String>,
    /// That stack, innermost first.
    pub stack: Vec<String>,
}

impl Row {
    fn of(drill: Drill) -> Row {
        Row {
            drill: drill.name(),
            permitted: true,
            reason: None,
            expected: drill.expected().name(),
            given: None,
            confidence: None,
            time_to_verdict_ms: None,
            root: None,
            consequences: Vec::new(),
            sentence: None,
            culprit: None,
            stack: Vec::new(),
        }
    }

    /// Whether the cause and the root of the incident were as expected, or the drill could not be run.
    pub fn is_right(&self) -> bool {
        let is_root_right = self.root.as_deref().is_none_or(|root| root == self.expected);
        !self.permitted || self.given.as_deref() == Some(self.expected) && is_root_right
    }
}

/// Why a drill was not run, or did not come to a verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrillError {
    /// The machine does not permit it.
    #[error("{0}")]
    NotPermitted(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// Runs one drill. `program` starts child engines.
pub fn run(drill: Drill, program: &Program) -> Row {
    let row = Row::of(drill);
    let done = match drill {
        Drill::Sigstop => other_process::sigstop(program),
        Drill::PtraceStop => other_process::ptrace_stop(program),
        Drill::CpuQuota => other_process::cpu_quota(program),
        Drill::LostAck => Err(DrillError::NotPermitted(
            "no drill can drop a message between two silos' arbiters; the simulation drops, duplicates and \
            delays them (pinwheel sim)"
                .into(),
        )),
        Drill::CoreOffline => Err(DrillError::NotPermitted(
            "a drill would take a core from every program of the machine; tests take it from recorded files".into(),
        )),
        Drill::ClockDrifts => Err(DrillError::NotPermitted(
            "a drill would change the clock of the whole machine; a test slews a clock of its own".into(),
        )),
        Drill::SlotsFill => on_a_thread_of_its_own(resources::slots_fill),
        Drill::DiskFills => on_a_thread_of_its_own(resources::disk_fills),
        Drill::MemoryFills => on_a_thread_of_its_own(resources::memory_fills),
        _ => on_a_thread_of_its_own(|| own_process::inside(drill)),
    };
    match done {
        Ok(given) => Row {
            given: Some(given.cause),
            confidence: Some(given.confidence),
            time_to_verdict_ms: Some(given.after_ns as f64 / 1e6),
            root: given.root,
            consequences: given.consequences,
            sentence: Some(given.sentence),
            culprit: given.culprit,
            stack: given.stack,
            ..row
        },
        Err(DrillError::NotPermitted(why)) => Row { permitted: false, reason: Some(why), ..row },
        Err(DrillError::Failed(why)) => Row { reason: Some(why), ..row },
    }
}

/// Runs a drill on a new thread. A drill moves its thread off the hot cores, and new threads
/// take over that; on a reused thread the next drill would see a machine with one core.
fn on_a_thread_of_its_own(
    drill: impl FnOnce() -> Result<DrillVerdict, DrillError> + Send,
) -> Result<DrillVerdict, DrillError> {
    std::thread::scope(|scope| scope.spawn(drill).join())
        .unwrap_or_else(|_| Err(DrillError::Failed("the drill itself panicked".into())))
}

/// The verdict that a drill got.
#[derive(Clone, Debug)]
pub(crate) struct DrillVerdict {
    pub(crate) cause: String,
    pub(crate) confidence: Confidence,
    /// Cause of the incident's root; `None` if it is not judged by the engine.
    pub(crate) root: Option<String>,
    pub(crate) consequences: Vec<String>,
    pub(crate) sentence: String,
    pub(crate) culprit: Option<String>,
    pub(crate) stack: Vec<String>,
    pub(crate) after_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::Drill;

    #[test]
    fn drills_are_found_by_names_of_their_own() {
        for drill in Drill::ALL {
            assert_eq!(Drill::from_name(drill.name()), Some(drill));
            assert!(!drill.what().is_empty());
        }
        assert_eq!(Drill::from_name("all"), None);
    }
}
