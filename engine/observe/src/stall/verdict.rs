//! From the observations of a stall to its cause, one sentence with numbers, and the confidence.
//!
//! Pure: the same observations give the same verdict, here, in another process, or later from a
//! recording. A cause that only remains after others are excluded is *likely* at most. If nothing
//! explains a stall, it is *unexplained*, with its evidence.
//!
//! # Why this order
//! First what excludes everything else (stopped, frozen), then what a counter proves
//! (quota, affinity, blocked, steal), then shares of time (descheduled, faults), and last the
//! thread's own work.

use super::account::OtherThread;
use super::core_availability::predicate;
use super::observe::{JIFFY_NS, Observations, SignalState};
use super::procfs;
use super::switches::{self, Switched};
use crate::board::alarms::Confidence;
use crate::host::check::ranges;
use crate::host::usable::CoreLoss;

/// More faults from memory than this for each millisecond run are the cause.
const FAULTS_PER_MS: u64 = 100;
/// More shootdowns than this for each millisecond are the cause.
const SHOOTDOWNS_PER_MS: u64 = 50;
/// Most bytes of evidence.
const EVIDENCE_MAX: usize = 1536;

/// The cause of a stall or of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A role computed too long.
    LongHandler,
    /// Other threads had its core.
    Descheduled,
    /// The control group's CPU quota was used up.
    Quota,
    /// It slept in a system call.
    Blocked,
    /// It accessed memory that was not mapped yet.
    PageFaults,
    /// Interrupts ran on its core.
    Interrupts,
    /// The hypervisor gave its core to others.
    Steal,
    /// Low frequency or heat slowed the core.
    Heat,
    /// A signal or a tracer stopped it.
    Stopped,
    /// Everything stood still.
    Frozen,
    /// It does not run on the core that it was pinned to.
    Affinity,
    /// Its core is offline.
    Offline,
    /// Its core is not in the process's cpuset.
    OutsideCpuset,
    /// A clock jumped.
    Clock,
    /// A role panicked.
    Died,
    /// The device answers nothing.
    DeviceHung,
    /// A kernel failed: the driver opens the device in this process no more.
    DeviceError,
    /// Launches fail.
    LaunchesFail,
    /// A worker never completed its launch.
    WorkerLost,
    /// A ring is full because nobody reads it.
    RingFull,
    /// One stage takes most of the time.
    SlowStage,
    /// More shots arrive than can be decoded.
    Overload,
    /// A role claims work that moves nothing.
    ClaimsWork,
    /// Shots are answered with errors.
    Errors,
    /// The input does not fit the model.
    Input,
    /// A live source sends nothing, or loses shots.
    Source,
    /// A hot thread allocated memory.
    Allocation,
    /// The disk is full, or events were lost.
    Records,
    /// A resource ends soon.
    RunningOut,
    /// A defect of this program.
    Defect,
    /// Something below the kernel, which it does not see.
    Invisible,
    /// No observation explains it.
    Unexplained,
}

pinwheel_edge::names! { Cause:
    LongHandler "long handler", Descheduled "descheduled", Quota "CPU quota", Blocked "blocked in a system call",
    PageFaults "page faults", Interrupts "interrupts", Steal "hypervisor steal", Heat "frequency or thermal",
    Stopped "stopped or debugged", Frozen "frozen", Affinity "affinity lost", Offline "core offline",
    OutsideCpuset "core outside cpuset", Clock "clock problem", Died "died", DeviceHung "device hung",
    DeviceError "device error", LaunchesFail "launches fail", WorkerLost "worker never ends", RingFull "full ring",
    SlowStage "slow stage", Overload "overload", ClaimsWork "claims work for ever", Errors "answered with errors",
    Input "input off the model", Source "silent or losing source", Allocation "allocation", Records "records lost",
    RunningOut "running out", Defect "defect", Invisible "invisible to the kernel", Unexplained "unexplained",
}

impl Cause {
    /// Inverse of [`Cause::name`].
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// The cause that is the loss of a thread's core.
    pub(super) const fn of_loss(loss: CoreLoss) -> Cause {
        match loss {
            CoreLoss::Offline => Cause::Offline,
            CoreLoss::OutsideCpuset => Cause::OutsideCpuset,
        }
    }

    /// Whether the engine itself is the cause. Such a stall raises an alarm at once, others only if
    /// they last.
    pub const fn is_ours(self) -> bool {
        matches!(
            self,
            Cause::LongHandler | Cause::Blocked | Cause::PageFaults | Cause::Died | Cause::ClaimsWork | Cause::Affinity
        )
    }
}

/// A cause with its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// One sentence with numbers.
    pub sentence: String,
    /// How certain the cause is.
    pub confidence: Confidence,
    /// Who did it, if that is somebody outside the thread: a program and its number; else empty.
    pub who: String,
    /// The observations that it is based on, one a line.
    pub evidence: String,
}

/// The verdict on one stall.
pub fn verdict(seen: &Observations) -> Verdict {
    let rules: [fn(&Observations) -> Option<Explanation>; 7] =
        [excluding, moved, held_back, blocked, waiting, running, below];
    let unexplained = || (Cause::Unexplained, Confidence::Unexplained, "nothing observed explains it".to_owned());
    let (cause, confidence, why) = rules.iter().find_map(|rule| rule(seen)).unwrap_or_else(unexplained);
    let place = match (cause, seen.role) {
        (Cause::Frozen, _) | (_, None) => String::new(),
        (_, Some(role)) => format!(" in {role}"),
    };
    let who = if cause == Cause::Frozen { "everything" } else { &seen.thread };
    let sentence = format!("{who} stood still {}{place}: {why}", ms(seen.stall_ns));
    let who = match cause {
        Cause::Descheduled => who_ran(seen).iter().map(|(who, _)| who.as_str()).collect::<Vec<_>>().join(" and "),
        Cause::Stopped => seen.detail.tracer.map_or_else(String::new, |tracer| format!("process {tracer}")),
        _ => String::new(),
    };
    Verdict { cause, sentence, confidence, who, evidence: joined(&seen.lines()) }
}

/// Those who had the thread's core for most of the time, and how long: by record, else the one that
/// ran there most.
fn who_ran(seen: &Observations) -> Vec<(String, u64)> {
    let named = |other: &OtherThread| (other.who(), other.ran_ns);
    let taken = seen.switched.as_ref().filter(|switched| is_taken(seen, switched)).map(|switched| switched.taken_ns);
    let most = || seen.others.first().map(named).into_iter().collect();
    let Some(out_ns) = taken.or_else(|| yielded(seen).map(|switched| switched.out_ns)) else { return most() };
    // The first three of those that ran at least a quarter of that time.
    let had_much = |other: &&OtherThread| other.is_recorded && other.ran_ns >= out_ns / 4;
    let found: Vec<_> = seen.others.iter().filter(had_much).take(3).map(named).collect();
    if found.is_empty() && taken.is_none() { most() } else { found }
}

/// Who had the thread's core, each with its time, and which core that is; `unknown` says why nobody is named.
fn by_whom(seen: &Observations, unknown: impl FnOnce() -> &'static str) -> String {
    let core = seen.found_core.or(seen.core).map_or_else(String::new, |core| format!(" on core {core}"));
    let ran = |ns: u64| if ns > 0 { format!(", which ran {}", ms(ns)) } else { String::new() };
    let each: Vec<String> = who_ran(seen).iter().map(|(who, ns)| format!("{who}{}", ran(*ns))).collect();
    if each.is_empty() { format!("{core}; {}", unknown()) } else { format!(" by {}{core}", each.join(" and ")) }
}

/// The records that show it off its core for at least half of the stall, of which less than half was
/// taken from it: it had yielded its core.
fn yielded(seen: &Observations) -> Option<&Switched> {
    let switched = seen.switched.as_ref().filter(|switched| !is_taken(seen, switched))?;
    (seen.stall_ns > 0 && switched.out_ns >= seen.stall_ns / 2).then_some(switched)
}

/// Whether the records show that the core was taken for half of the stall. They cover the stall
/// itself, not the time between the readings.
fn is_taken(seen: &Observations, switched: &Switched) -> bool {
    seen.stall_ns > 0 && switched.taken_ns >= seen.stall_ns / 2
}

type Explanation = (Cause, Confidence, String);

/// The lines that fit into [`EVIDENCE_MAX`], each complete.
pub fn joined(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() + 1 > EVIDENCE_MAX {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    text
}

/// `once`, or `3 times`.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

impl Observations {
    /// Whether `part` is at least `percent` of the time between the readings.
    fn is_share(&self, part: Option<u64>, percent: u64) -> bool {
        let whole = if self.is_inside { self.span_ns } else { self.stall_ns.min(self.span_ns) };
        whole > 0 && part.is_some_and(|part| part.saturating_mul(100) >= whole.saturating_mul(percent))
    }

    /// A part of the time between the readings, which may have begun before the stall. The kernel adds a wait when it
    /// ends, so that one which began before the first reading makes the part longer than the whole.
    fn within(&self, part_ns: u64) -> String {
        let part_ns = part_ns.min(self.span_ns.max(self.stall_ns));
        let around = format!(" of the {} around it", ms(self.span_ns));
        format!("{}{}", ms(part_ns), if part_ns > self.stall_ns { around.as_str() } else { "" })
    }

    /// Whether it ran for at least `percent` of the time between the readings.
    fn ran_on(&self, percent: u64) -> bool {
        let least = self.span_ns.saturating_mul(percent);
        self.span_ns > 0 && self.ran_ns.is_some_and(|ran| ran.saturating_mul(100) >= least)
    }
}

/// Causes that exclude all others: tracer, stop, frozen process or machine.
fn excluding(seen: &Observations) -> Option<Explanation> {
    let held = seen.state.is_some_and(procfs::is_stopped);
    match (seen.detail.tracer, held) {
        (Some(tracer), true) => {
            return Some((Cause::Stopped, Confidence::Certain, format!("process {tracer} traces it and holds it")));
        }
        (None, true) => {
            let why = "the process is stopped by a signal (SIGSTOP or SIGTSTP); SIGCONT lets it go on";
            return Some((Cause::Stopped, Confidence::Certain, why.to_owned()));
        }
        (Some(tracer), false) if !seen.ran_on(50) && !seen.is_share(seen.waited_ns, 50) => {
            return Some((Cause::Stopped, Confidence::Likely, format!("process {tracer} traces it")));
        }
        _ => {}
    }
    // If the quota was used up, the process was not frozen.
    if seen.throttled.is_some_and(|(times, _)| times > 0) {
        return None;
    }
    let all_still = seen.still.0 == seen.still.1 && seen.still.1 > 0;
    if seen.watcher_late_ns < seen.stall_ns / 2 || !all_still || seen.is_share(seen.waited_ns, 50) {
        return None;
    }
    let late = ms(seen.watcher_late_ns);
    // The readings may lie around the stall, and the machine ran beside it: what it does not account for tells, but
    // for the last unit.
    Some(match seen.machine_ns {
        Some(ns) if seen.span_ns.saturating_sub(ns) >= seen.watcher_late_ns / 2 + JIFFY_NS => (
            Cause::Frozen,
            Confidence::Likely,
            format!(
                "the watchdog too, for {late}, and the machine accounts for only {} of {}: the machine or its host \
                stood still",
                ms(ns),
                ms(seen.span_ns)
            ),
        ),
        Some(ns) => (
            Cause::Frozen,
            Confidence::Likely,
            format!(
                "the whole process, watchdog included ({late}), while the machine ran on ({}): a stop signal, a debugger or a freezer",
                ms(ns)
            ),
        ),
        None => (Cause::Frozen, Confidence::Likely, format!("the watchdog too, for {late}")),
    })
}

/// Whether the thread runs where it was pinned.
fn moved(seen: &Observations) -> Option<Explanation> {
    let planned = seen.core?;
    let allowed = seen.detail.allowed.as_ref();
    if let Some(loss) = seen.core_loss {
        let what = predicate(loss);
        let why = format!("core {planned} {what}; the thread is pinned to it again when it is back");
        return Some((Cause::of_loss(loss), Confidence::Certain, why));
    }
    if let Some(allowed) = allowed.filter(|cores| !cores.contains(&planned)) {
        let why = format!(
            "it may run on core {} only, its plan says core {planned}: something changed its affinity",
            ranges(allowed)
        );
        return Some((Cause::Affinity, Confidence::Certain, why));
    }
    None
}

/// CPU quota and heat.
fn held_back(seen: &Observations) -> Option<Explanation> {
    if let Some((count, ns)) = seen.throttled.filter(|(count, _)| *count > 0)
        && !(seen.is_inside && seen.ran_on(60))
    {
        let sure = if ns >= seen.stall_ns / 2 { Confidence::Certain } else { Confidence::Likely };
        let why = format!(
            "the control group's CPU quota held it back {}, {}; raise cpu.max or cpu.cfs_quota_us",
            times(count),
            ms(ns)
        );
        return Some((Cause::Quota, sure, why));
    }
    let heat = seen.thermal.filter(|count| *count > 0)?;
    let why = format!("heat slowed its core {} while it ran", times(heat));
    seen.ran_on(50).then_some((Cause::Heat, Confidence::Likely, why))
}

/// Whether it sleeps in the kernel, other than by its policy.
fn blocked(seen: &Observations) -> Option<Explanation> {
    let asleep = seen.state.is_some_and(|state| matches!(state, 'S' | 'D'));
    if !asleep || seen.ran_on(60) && seen.is_inside {
        return None;
    }
    if seen.state == Some('D') && seen.major_faults.is_some_and(|faults| faults > 0) {
        let faults = seen.major_faults.unwrap_or(0);
        return Some((Cause::PageFaults, Confidence::Certain, format!("{faults} page faults waited for a disk")));
    }
    // Between roles the policy lets it sleep. That it did not wake up is another cause.
    seen.role?;
    let call = seen.detail.call.map(|(number, _, _)| procfs::call_name(number));
    let kernel = seen.detail.sleeps_in.as_ref().map(|place| format!(" (kernel: {place})")).unwrap_or_default();
    let line = seen.culprit.as_ref().map(|line| format!(", at {line}")).unwrap_or_default();
    let sure = if call.is_some() && seen.is_inside { Confidence::Certain } else { Confidence::Likely };
    let hidden = "a system call that is not visible (CAP_SYS_PTRACE, or kernel.yama.ptrace_scope=0, shows it)";
    let why = format!("it sleeps in {}{kernel}{line}", call.as_deref().unwrap_or(hidden));
    Some((Cause::Blocked, sure, why))
}

/// Steal is counted in units of 10 ms, and the last unit may have begun long before: `n` units
/// prove `n - 1`. If only the last one explains the stall it is likely, unless the scheduler's
/// account, which is exact, contradicts it.
fn stolen(seen: &Observations) -> Option<Explanation> {
    let ns = seen.steal_ns.filter(|ns| seen.is_share(Some(*ns), 50) || *ns >= seen.stall_ns.max(1))?;
    let is_proven = seen.is_inside && seen.is_share(Some(ns.saturating_sub(JIFFY_NS)), 50);
    let has_waited = seen.is_share(seen.waited_ns, 50);
    let has_worked = seen.is_inside && seen.ran_on(60) && (seen.culprit.is_some() || many_faults(seen).is_some());
    if !is_proven && (has_waited || has_worked) {
        return None;
    }
    let sure = if is_proven { Confidence::Certain } else { Confidence::Likely };
    Some((Cause::Steal, sure, format!("the hypervisor took {} of its core for others", seen.within(ns))))
}

/// Faults that are the cause, and the milliseconds run; `None` if there are too few.
fn many_faults(seen: &Observations) -> Option<(u64, u64)> {
    let ran_ms = seen.ran_ns.unwrap_or(0) / 1_000_000;
    let faults = seen.minor_faults.filter(|faults| ran_ms > 0 && faults / ran_ms >= FAULTS_PER_MS)?;
    Some((faults, ran_ms))
}

/// Whether the kernel's records show that its core was taken, and by whom. This is certain.
fn taken(seen: &Observations) -> Option<Explanation> {
    let switched = seen.switched.as_ref().filter(|switched| is_taken(seen, switched))?;
    let (taken, times) = (ms(switched.taken_ns), times(switched.taken));
    let whom = by_whom(seen, || {
        if switched.is_of_core {
            "by many, of which none had a quarter of it"
        } else if seen.core.is_none() {
            "by whom is not visible (who has a core is recorded only for a pinned thread)"
        } else {
            "by whom is not visible (sysctl kernel.perf_event_paranoid=0 or CAP_PERFMON shows it)"
        }
    });
    Some((
        Cause::Descheduled,
        Confidence::Certain,
        format!("descheduled {taken}{whom}; its core was taken {times}, by record"),
    ))
}

/// Whether it was ready but did not run.
fn waiting(seen: &Observations) -> Option<Explanation> {
    if let Some(found) = taken(seen).or_else(|| stolen(seen)) {
        return Some(found);
    }
    let waited = seen.waited_ns.filter(|_| seen.is_share(seen.waited_ns, 50))?;
    let (long, how) = match yielded(seen) {
        Some(Switched { out_ns, taken: 0, .. }) => (ms(*out_ns), "; it had yielded its core, by record"),
        Some(switched) => (ms(switched.out_ns), ", by record"),
        None => (seen.within(waited), ""),
    };
    let whom = by_whom(seen, || switches::unknown(&seen.hidden));
    Some((Cause::Descheduled, Confidence::Likely, format!("descheduled {long}{whom}{how}")))
}

/// What it did while it ran.
fn running(seen: &Observations) -> Option<Explanation> {
    let percent = if seen.is_inside { 60 } else { 80 };
    if !seen.ran_on(percent) {
        return None;
    }
    if let Some((faults, ran_ms)) = many_faults(seen) {
        let line = seen.culprit.as_ref().map(|line| format!(", at {line}")).unwrap_or_default();
        return Some((Cause::PageFaults, Confidence::Certain, format!("{faults} page faults in {ran_ms} ms{line}")));
    }
    let shot = seen.shootdowns.filter(|count| *count * 1_000_000 / seen.span_ns.max(1) >= SHOOTDOWNS_PER_MS);
    if seen.is_share(seen.interrupts_ns, 50) || shot.is_some() {
        let time = seen.interrupts_ns.map(|ns| format!("{} of time", ms(ns)));
        let shootdowns = seen.shootdowns.map(|count| format!("{count} shoot-downs"));
        let visible: Vec<String> = time.into_iter().chain(shootdowns).collect();
        return Some((
            Cause::Interrupts,
            Confidence::Likely,
            format!("interrupts on its core: {}", visible.join(", ")),
        ));
    }
    if let Some((now, most)) = seen.frequency.filter(|(now, most)| *now < most / 2) {
        let ghz = |khz: u64| khz as f64 / 1e6;
        let why = format!(
            "it ran, on a core at {:.2} of its {:.2} GHz: look at governor, power limit and heat",
            ghz(now),
            ghz(most)
        );
        return Some((Cause::Heat, Confidence::Likely, why));
    }
    if seen.asked == SignalState::Unanswered && seen.span_ns > 5_000_000 {
        let why =
            "the kernel says that it ran, and it took no signal: its core was taken from below, without steal shown";
        return Some((Cause::Invisible, Confidence::Likely, why.to_owned()));
    }
    let role = match seen.role {
        Some(role) => role,
        None => {
            let why = "the kernel says that it ran, its loop did not turn: taken from below, without steal shown";
            return Some((Cause::Invisible, Confidence::Likely, why.to_owned()));
        }
    };
    let ran = ms(seen.ran_ns.unwrap_or(0));
    Some(match &seen.culprit {
        Some(line) => {
            (Cause::LongHandler, Confidence::Certain, format!("long handler: {role} computes, at {line} (ran {ran})"))
        }
        None => (Cause::LongHandler, Confidence::Likely, format!("long handler: {role} computes (ran {ran})")),
    })
}

/// Whether the machine itself stood still.
fn below(seen: &Observations) -> Option<Explanation> {
    let machine = seen.machine_ns?;
    let is_long = seen.span_ns > 5 * JIFFY_NS;
    (is_long && machine < seen.span_ns / 2).then(|| {
        let why =
            format!("the machine accounts for {} of {}: it or its host stood still", ms(machine), ms(seen.span_ns));
        (Cause::Frozen, Confidence::Likely, why)
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod limits;
