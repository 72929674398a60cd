//! Drills: real faults, provoked on purpose, and the verdicts that they must get.
//!
//! Owns the list, the engines that it provokes, and the judgement. Run by the command line on a cold thread. Bounds: one drill
//! at a time, [`VERDICT_LIMIT`] for each verdict; what a drill changes it changes back. Never fakes an observation: a drill
//! that this machine does not permit says why and is not run.
//!
//! ```text
//!   engine (in this process, or in a child that can be stopped) ─ LIVE ─▶ fault ─▶ alarm with a cause ─▶ expected = given?
//! ```

mod deeds;
mod outer;
mod quota;
mod stage;
mod victim;

pub use victim::{Program, be_victim};

use crate::board::alarms::Confidence;
use crate::stall::Cause;
use serde::Serialize;
use std::time::Duration;

/// Longest wait for a verdict.
pub const VERDICT_LIMIT: Duration = Duration::from_secs(4);

macro_rules! drills {
    ($( $(#[$meta:meta])* $drill:ident = $name:literal, $cause:ident, $what:literal; )*) => {
        /// A fault that can be provoked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Drill { $( $(#[$meta])* $drill, )* }

        impl Drill {
            /// All of them.
            pub const ALL: &[Drill] = &[ $( Drill::$drill, )* ];

            /// Name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Drill::$drill => $name, )* }
            }

            /// The verdict that it must get.
            #[must_use]
            pub const fn expected(self) -> Cause {
                match self { $( Drill::$drill => Cause::$cause, )* }
            }

            /// What it does.
            #[must_use]
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
    /// A role touches fresh memory.
    PageFaults = "page-faults", PageFaults, "dispatch touches fresh pages for 60 ms";
    /// Another program has the core.
    Competitor = "competitor", Descheduled, "a shell takes a hot thread's core";
    /// The control group is held back.
    CpuQuota = "cpu-quota", Quota, "a control group allows 20 ms of each 100 ms";
    /// The process is stopped.
    Sigstop = "sigstop", Stopped, "SIGSTOP of an engine, judged from outside";
    /// One thread is held by a debugger.
    PtraceStop = "ptrace-stop", Stopped, "a tracer holds one hot thread";
    /// A cold thread unmaps memory without end.
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
    /// Nobody reads the answers.
    FullRing = "full-ring", RingFull, "the reader of the answers does not read";
    /// Harvest dawdles.
    SlowHarvest = "slow-harvest", SlowStage, "harvest takes 3 ms for each batch";
    /// A role claims work that moves nothing.
    ClaimsWork = "claims-work", ClaimsWork, "poll reports work in each frame";
}

impl Drill {
    /// By name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Drill> {
        Drill::ALL.iter().copied().find(|drill| drill.name() == name)
    }
}

/// What came of one drill.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub drill: &'static str,
    /// Whether it could be run here.
    pub permitted: bool,
    /// Why not; or what went wrong.
    pub reason: Option<String>,
    /// The cause that it must get.
    pub expected: &'static str,
    /// The cause that it got.
    pub given: Option<String>,
    /// How sure the verdict was.
    pub confidence: Option<Confidence>,
    /// From the fault to the verdict.
    pub time_to_verdict_ms: Option<f64>,
    /// The verdict's sentence.
    pub sentence: Option<String>,
    /// The line to blame, where a stack was taken.
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
            sentence: None,
            culprit: None,
            stack: Vec::new(),
        }
    }

    /// Whether it got what it must, or could not be run.
    #[must_use]
    pub fn is_right(&self) -> bool {
        !self.permitted || self.given.as_deref() == Some(self.expected)
    }
}

/// Why a drill was not run, or did not come to a verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Not here.
    #[error("{0}")]
    NotPermitted(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
}

/// Runs one drill. `program` is what a child engine is started with.
#[must_use]
pub fn run(drill: Drill, program: &Program) -> Row {
    let row = Row::of(drill);
    let done = match drill {
        Drill::Sigstop => outer::sigstop(program),
        Drill::PtraceStop => outer::ptrace_stop(program),
        Drill::CpuQuota => outer::cpu_quota(program),
        Drill::LostAck => Err(Trouble::NotPermitted(
            "no drill takes a letter out of the arbiter's way between two silos; the rehearsal loses, doubles and delays them (pinwheel sim)"
                .into(),
        )),
        _ => on_a_thread_of_its_own(|| deeds::inside(drill)),
    };
    match done {
        Ok(given) => Row {
            given: Some(given.cause),
            confidence: Some(given.confidence),
            time_to_verdict_ms: Some(given.after_ns as f64 / 1e6),
            sentence: Some(given.sentence),
            culprit: given.culprit,
            stack: given.stack,
            ..row
        },
        Err(Trouble::NotPermitted(why)) => Row { permitted: false, reason: Some(why), ..row },
        Err(Trouble::Failed(why)) => Row { reason: Some(why), ..row },
    }
}

/// A drill stays off the hot cores by confining its thread, and what it starts inherits that: on a thread that goes on, the
/// next drill would find a machine of one core.
fn on_a_thread_of_its_own(drill: impl FnOnce() -> Result<Given, Trouble> + Send) -> Result<Given, Trouble> {
    std::thread::scope(|scope| scope.spawn(drill).join())
        .unwrap_or_else(|_| Err(Trouble::Failed("the drill itself panicked".into())))
}

/// A verdict that a drill got.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) cause: String,
    pub(crate) confidence: Confidence,
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
            assert_eq!(Drill::from_name(drill.name()), Some(*drill));
            assert!(!drill.what().is_empty());
        }
        assert_eq!(Drill::from_name("all"), None);
    }
}
