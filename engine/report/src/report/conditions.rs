//! Problems at the end of a run, and the resulting exit status.
//!
//! Pure: made from the final snapshot, whose size bounds the list. Conditions that hold at the end
//! come first; the alarms of the board's log follow, ended ones included.

use super::{Context, errors, sum};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::alarms::{AlarmState, Confidence, Site};
use pinwheel_engine::board::snapshot::{AlarmView, Counters, DeviceState, SiloView, Snapshot, StreamView, ThreadView};
use pinwheel_engine::engine::{EndedBy, Outcome};
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::profile::{Faults, Severity};
use pinwheel_engine::roles::{SiloState, ThreadState};
use pinwheel_engine::streams::HealthVerdict;
use serde::Serialize;

/// A condition that holds at the end, or an alarm of the board's log. Both have the same fields in
/// JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// Name of the alarm, stable for scripts.
    pub alarm: &'static str,
    /// The finding in one sentence.
    pub what: String,
    /// Whether this alarm alone makes the run unsound (exit status 1).
    pub unsound: bool,
    /// The fields of an alarm of the board's log.
    #[serde(flatten)]
    pub record: Record,
}

/// Origin of an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Record {
    /// From the board's alarm log.
    Logged(AlarmView),
    /// Found at the end of the run.
    AtEnd(AtEnd),
}

/// Rule name of conditions found at the end. It differs from every rule of a profile, so that a
/// search for a profile's rule finds the alarm of the log.
const END_OF_RUN: &str = "end_of_run";

/// A condition found at the end. Its fields mean what those of [`AlarmView`] mean; those of an episode are `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtEnd {
    number: Option<u64>,
    rule: &'static str,
    site: Option<Site>,
    thread: Option<String>,
    severity: Severity,
    state: AlarmState,
    first_ns: Option<u64>,
    onset_ns: Option<u64>,
    last_ns: Option<u64>,
    ended_ns: Option<u64>,
    duration_ns: Option<u64>,
    judged_after_ns: Option<u64>,
    count: u64,
    acknowledged_ns: Option<u64>,
    snoozed_until_ns: Option<u64>,
    confidence: Confidence,
    incident: Option<u64>,
    cause: String,
    who: String,
    sentence: String,
    evidence: Vec<String>,
    stack: Vec<String>,
    culprit: Option<String>,
    runbook: String,
}

impl Alarm {
    /// An alarm of the board's log, also when it has ended. It alone makes no run unsound.
    pub fn logged(view: &AlarmView) -> Alarm {
        let record = Record::Logged(view.clone());
        Alarm { alarm: view.rule, what: view.sentence.clone(), unsound: false, record }
    }

    /// Whether it is an alarm of the board's log.
    pub fn is_logged(&self) -> bool {
        matches!(self.record, Record::Logged(_))
    }
}

fn alarm(alarm: &'static str, unsound: bool, what: String) -> Alarm {
    let record = Record::AtEnd(AtEnd {
        number: None,
        rule: END_OF_RUN,
        site: None,
        thread: None,
        severity: if unsound { Severity::Critical } else { Severity::Warn },
        state: AlarmState::Active,
        first_ns: None,
        onset_ns: None,
        last_ns: None,
        ended_ns: None,
        duration_ns: None,
        judged_after_ns: None,
        count: 1,
        acknowledged_ns: None,
        snoozed_until_ns: None,
        confidence: Confidence::Certain,
        incident: None,
        cause: String::new(),
        who: String::new(),
        sentence: what.clone(),
        evidence: Vec::new(),
        stack: Vec::new(),
        culprit: None,
        runbook: String::new(),
    });
    Alarm { alarm, what, unsound, record }
}

/// A condition found after the outcome that makes the run unsound.
pub fn unsound(name: &'static str, what: String) -> Alarm {
    alarm(name, true, what)
}

/// Every condition that holds, most severe first.
pub fn alarms(outcome: &Outcome, context: &Context) -> Vec<Alarm> {
    let snapshot = &outcome.snapshot;
    let Counters { submitted, answered, duplicated, joint_read, joint_consistent, .. } = snapshot.totals();
    let mut found = Vec::new();
    if submitted != answered {
        let what = format!("{submitted} shots were submitted and {answered} answered");
        found.push(alarm(if answered < submitted { "lost" } else { "answered_too_often" }, true, what));
    }
    if duplicated > 0 {
        found.push(alarm("duplicated", true, format!("{duplicated} shots were answered a second time")));
    }
    if joint_consistent != joint_read {
        let what =
            format!("only {joint_consistent} of {joint_read} joint readouts agree with the answers of both streams");
        found.push(alarm("joint_inconsistent", true, what));
    }
    if outcome.ended_by == EndedBy::Fault {
        found.push(alarm("fault", true, "a fault forced the engine to drain".to_owned()));
    }
    found.extend(died(snapshot));
    found.extend(snapshot.silos.iter().filter_map(dead));
    found.extend(snapshot.threads.iter().filter_map(allocating));
    found.extend(snapshot.threads.iter().filter_map(moved));
    let broken = snapshot.faults.iter().any(|fault| fault.code == FaultCode::InputBroken.number());
    if let Some(said) = &outcome.input_error {
        found.push(alarm("input_broken", true, said.clone()));
    } else if broken {
        found.push(alarm(
            "input_broken",
            true,
            "the input ended with an error: check the file for damage, and --format".to_owned(),
        ));
    }
    found.extend(snapshot.silos.iter().filter(|silo| silo.device != DeviceState::Online).map(|silo| {
        let restart = silo.gpu.as_ref().map_or(0, |gpu| gpu.needs_restart_code);
        let state = match silo.device {
            _ if restart != 0 => "is lost: the driver opens it only in a new process; start the engine again",
            DeviceState::Lost => "is lost",
            _ => "was lost and is not back yet",
        };
        alarm("device_lost", false, format!("the device of silo {} {state}", silo.id))
    }));
    if let Some(Err(said)) = &outcome.sink {
        found.push(alarm("output", true, said.clone()));
    }
    found.extend(errored(snapshot, context));
    found.extend(snapshot.streams.iter().filter_map(health));
    found.extend(snapshot.alarms.iter().map(Alarm::logged));
    found
}

/// Answers with an error. Errors that the profile's `faults` inject are expected and do not count,
/// unless predictions were requested: there they are zeros.
fn errored(snapshot: &Snapshot, context: &Context) -> Option<Alarm> {
    let counts = errors(&snapshot.silos);
    let is_injected = |code: u16| {
        let (code, faults) = (ErrorCode::from_number(code), context.faults.as_ref());
        code.zip(faults).is_some_and(|(code, faults)| injects(faults, code))
    };
    let (mut total, mut parts) = (0, Vec::new());
    for (code, count) in counts {
        // The profile asks for these by `deadlines.order`.
        let is_asked_for = code == ErrorCode::DeadlineTooNear as u16;
        if context.predictions_asked || !(is_injected(code) || is_asked_for) {
            total = sum([total, count]);
            parts.push(format!(
                "{count} {}",
                ErrorCode::from_number(code).map_or("of an unknown kind", ErrorCode::name)
            ));
        }
    }
    let zeros = if context.predictions_asked { "; their predictions are zeros" } else { "" };
    let what = format!("{total} shots were answered with an error: {}{zeros}", parts.join(", "));
    (total > 0).then(|| alarm("errored", true, what))
}

/// Whether these faults cause answers with this code: directly, or because shots wait for a late or
/// lost device.
fn injects(faults: &Faults, code: ErrorCode) -> bool {
    let is_late = faults.unknown + faults.never_ready + faults.late_ready > 0.0 || faults.lose_device_every.is_some();
    match code {
        ErrorCode::LaunchFailed => faults.not_started > 0.0,
        ErrorCode::LaunchUnknown => faults.unknown > 0.0,
        ErrorCode::BadAddress => faults.bad_address > 0.0,
        ErrorCode::DecoderPanic => faults.decoder_panic > 0.0,
        ErrorCode::LaunchDeadline
        | ErrorCode::ShotDeadline
        | ErrorCode::DeviceLost
        | ErrorCode::OverflowDeadline
        | ErrorCode::DroppedOldest
        | ErrorCode::DroppedNew => is_late,
        ErrorCode::UnknownStream
        | ErrorCode::Drained
        | ErrorCode::Unmatchable
        | ErrorCode::WindowFull
        | ErrorCode::PageAway
        | ErrorCode::RoundsMissing
        | ErrorCode::SiloDied
        | ErrorCode::PluginFailed
        | ErrorCode::PluginArgument
        | ErrorCode::PluginPanicked
        | ErrorCode::PluginPoisoned
        | ErrorCode::PluginNoRoom
        | ErrorCode::PluginPastRoom
        | ErrorCode::PluginNoMechanism
        | ErrorCode::PluginUnexplained
        | ErrorCode::PluginLate
        | ErrorCode::PluginGone
        | ErrorCode::DeadlineTooNear => false,
    }
}

/// Roles that panicked. A role that ended without a panic ended with its silo, see [`dead`].
fn died(snapshot: &Snapshot) -> impl Iterator<Item = Alarm> + '_ {
    let is_outside = |thread: &&ThreadView| thread.state == ThreadState::Panicked;
    let outside = snapshot.threads.iter().filter(is_outside).map(|thread| {
        let (site, roles) = (thread.panic_site.as_deref().unwrap_or("an unknown place"), thread.roles.len());
        let what = format!("{} panicked at {site}, outside its roles: all its {roles} roles ended", thread.name);
        alarm("role_died", true, what)
    });
    let panicked = move |thread: &&ThreadView| thread.panic_site.is_some() && !is_outside(thread);
    let inside = snapshot.threads.iter().filter(panicked).flat_map(|thread| {
        thread.roles.iter().filter_map(|role| {
            let frame = role.died_frame?;
            let what = format!(
                "{} {} of silo {} panicked on {} in frame {frame}",
                role.kind, role.index, role.silo, thread.name
            );
            Some(alarm("role_died", true, what))
        })
    });
    outside.chain(inside)
}

/// A silo that is dead at the end. A silo killed on request is no problem, and a panic has its own
/// alarm.
fn dead(silo: &SiloView) -> Option<Alarm> {
    let is_dead = matches!(silo.lifecycle.state, SiloState::Dying | SiloState::Dead);
    is_dead.then(|| {
        alarm(
            "silo_dead",
            false,
            format!("silo {} was {} at the end: {}", silo.id, silo.lifecycle.state.name(), silo.lifecycle.why),
        )
    })
}

fn allocating(thread: &ThreadView) -> Option<Alarm> {
    let calls = thread.memory.allocations.filter(|calls| *calls > 0)?;
    let site = thread.memory.first_site.as_deref().unwrap_or("an unknown place");
    let what = format!("{} called the allocator {calls} times in Live, first from {site}", thread.name);
    Some(alarm("hot_allocation", false, what))
}

fn moved(thread: &ThreadView) -> Option<Alarm> {
    let core = thread.core.filter(|_| thread.frames_elsewhere > 0)?;
    let what = format!("{} ran {} frames elsewhere than on core {core}", thread.name, thread.frames_elsewhere);
    Some(alarm("affinity_lost", false, what))
}

fn health(stream: &StreamView) -> Option<Alarm> {
    let health = &stream.input_health;
    let (name, unsound) = match health.verdict {
        HealthVerdict::Bad => ("input_bad", true),
        HealthVerdict::Suspect => ("input_suspect", false),
        HealthVerdict::Good | HealthVerdict::TooFew => return None,
    };
    let what = format!(
        "stream {}: {:.3} % of its detectors fire, the model predicts {:.3} %; check the bit order, and that model and shots belong together",
        stream.id,
        health.fraction_found * 100.0,
        health.fraction_expected * 100.0
    );
    Some(alarm(name, unsound, what))
}

/// 1 if an alarm makes the run unsound, else 128 + signal if a signal ended it, else 0.
pub fn exit_status(ended_by: &EndedBy, alarms: &[Alarm]) -> u8 {
    if alarms.iter().any(|alarm| alarm.unsound) {
        return 1;
    }
    match ended_by {
        EndedBy::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
        _ => 0,
    }
}
