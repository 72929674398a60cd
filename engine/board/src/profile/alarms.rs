//! Alarm rules: the condition, its severity and limit, and the action.
//!
//! Plain data and the bundled rules; read by cold threads. A profile names only the rules that
//! differ from the bundled ones. Bounded: each rule has an identity, so there are at most
//! [`RuleId::ALL`] of them.
//!
//! # Why a limit has the unit of its rule
//! "3 % of the answers" and "twice the heartbeat limit" cannot share a unit. [`RuleId::unit`] gives
//! the unit of each rule, which lists, refusals and alarms show beside the number.

use serde::{Deserialize, Serialize};

/// Whether the engine watches itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Diagnostics {
    /// A watchdog on a cold thread checks the board, explains stalls and keeps the alarms.
    On,
    /// No watchdog: no alarms, no verdicts; hot threads still publish.
    Off,
}

/// Additional action of an alarm, once, at its onset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnAlarm {
    /// Only the record on the board.
    None,
    /// Runs this program on a cold thread with the alarm as JSON on its standard input: at most one
    /// a second, each for at most 5 s.
    Exec(String),
}

/// Severity of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all(serialize = "lowercase"))]
pub enum Severity {
    /// Recorded with its verdict; never alarms.
    #[serde(alias = "note")]
    Note,
    /// The operator should look at it.
    #[serde(alias = "warn")]
    Warn,
    /// The engine does not work correctly.
    #[serde(alias = "critical")]
    Critical,
}

pinwheel_edge::names! { Severity: Note "note", Warn "warn", Critical "critical" }

impl Severity {
    /// Number on the board.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// From the board; an unknown number is the highest severity.
    pub const fn from_code(code: u64) -> Severity {
        match code {
            0 => Severity::Note,
            1 => Severity::Warn,
            _ => Severity::Critical,
        }
    }
}

/// What an alarm does to the engine at its onset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AlarmAction {
    /// Nothing.
    None,
    /// Drains the engine and ends the run.
    Drain,
    /// Applies the live fields of this profile.
    SwitchProfile(String),
    /// Decodes the alarm's stream by this error model, a file or a bundled one; all streams if the alarm names none.
    /// Needs `window: None` and `predecoder: None`.
    SwitchModel(String),
    /// Accepts no further shots; shots in progress are answered.
    StopFeed,
}

/// One rule of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmRule {
    /// The condition.
    pub id: RuleId,
    /// How bad it is.
    pub severity: Severity,
    /// Limit from which the alarm starts, 0..=1e9 in the rule's unit.
    pub limit: f64,
    /// The alarm lasts while the value is above this share of the limit, 0..=1.
    pub hysteresis: f64,
    /// Action at the onset.
    pub action: AlarmAction,
    /// One line of instructions for the operator, up to 160 characters.
    pub runbook: String,
}

macro_rules! rules {
    ($( $(#[$meta:meta])* $id:ident = $code:literal, $name:literal, $unit:literal, $severity:ident, $limit:literal, $hysteresis:literal, $runbook:literal; )*) => {
        /// Condition that a rule checks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RuleId { $( $(#[$meta])* $id = $code, )* }

        pinwheel_edge::names! { RuleId: $($id $name),* }

        impl RuleId {
            /// Number on the board, never 0.
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// Unit of its limit.
            pub const fn unit(self) -> &'static str {
                match self { $( RuleId::$id => $unit, )* }
            }

            /// The bundled rule.
            #[must_use]
            pub fn bundled(self) -> AlarmRule {
                match self {
                    $( RuleId::$id => AlarmRule {
                        id: RuleId::$id,
                        severity: Severity::$severity,
                        limit: $limit,
                        hysteresis: $hysteresis,
                        action: AlarmAction::None,
                        runbook: $runbook.to_owned(),
                    }, )*
                }
            }
        }
    };
}

rules! {
    /// A hot thread publishes no heartbeat.
    Heartbeat = 1, "heartbeat", "times limits.heartbeat_ms", Warn, 1.0, 0.5,
        "its verdict has the cause, its stack the source line; for a descheduled thread run pinwheel cores";
    /// A hot thread found a long gap between two of its frames.
    FrameGap = 2, "frame_gap", "times limits.heartbeat_ms", Note, 1.0, 0.5,
        "the thread runs again; if it repeats, read the verdict and run pinwheel check";
    /// Answers came late.
    LateAnswers = 3, "late_answers", "% of the answers of 0.5 s, from 20 answers on", Warn, 20.0, 0.5,
        "find the stage with the longest p99; lower the rate or add decoders";
    /// The backlog grows.
    Backlog = 4, "backlog", "% of the scheduled shots of 0.5 s, for 2 s", Warn, 10.0, 0.5,
        "shots arrive faster than they are decoded: lower the rate, or add decoders or cores";
    /// Shots are answered with error words.
    Errors = 5, "errors", "errored answers in 0.5 s", Warn, 1.0, 1.0,
        "the alarm names the error, and the report counts each by its code: check the device, the decoders and the limits";
    /// Device workers are in quarantine.
    Quarantine = 6, "quarantine", "workers", Warn, 1.0, 1.0,
        "a launch did not complete: check the device; the worker is used again when its launch completes";
    /// The device takes no launches.
    DeviceLost = 7, "device_lost", "devices", Critical, 1.0, 1.0,
        "the CPU predecoder decodes the shots meanwhile; read the device's log, and restart the engine if the alarm says so";
    /// A stream's detection events do not fit the model.
    InputHealth = 8, "input_health", "verdict: 1 suspect, 2 bad", Warn, 1.0, 1.0,
        "the model, its noise or the bit order is wrong: compare the detectors with the most events with the experiment";
    /// The disk of the run's directory is nearly full, or the recording could not be written to it.
    Disk = 9, "disk", "MiB missing to 256 MiB free; 256 if the recording cannot be written", Warn, 1.0, 1.0,
        "free some space or name another directory with --logs; the run continues, but its records are incomplete";
    /// A thread has no idle frame: a role reports work in every frame.
    NeverIdle = 10, "never_idle", "s without an idle frame and without an item that moved", Warn, 0.1, 1.0,
        "a role reports work in every frame, so the thread never yields: find the role whose items grow";
    /// A hot thread is ready and does not run.
    Scheduler = 11, "scheduler", "% of 0.5 s waiting for its core", Note, 20.0, 0.5,
        "the alarm or pinwheel cores names who runs on its core: keep it off (pinwheel check says how), or plan other cores";
    /// A role panicked.
    RoleDied = 12, "role_died", "roles", Critical, 1.0, 1.0,
        "its streams move to another silo; without another one the run drains; report the source line that the alarm names";
    /// A hot thread called the allocator in Live.
    HotAllocation = 13, "hot_allocation", "calls", Warn, 1.0, 1.0,
        "the alarm names the first caller; hot_allocations: Abort ends the process at the next call";
    /// A hot thread ran on a core that is not its own.
    Affinity = 14, "affinity", "frames elsewhere in 0.1 s", Warn, 1.0, 1.0,
        "a control group or taskset moved it: find the program that changes affinities";
    /// A clock was set, jumped, or is not the one that it should be.
    Clock = 15, "clock", "steps", Warn, 1.0, 1.0,
        "times of day around a step of UTC are wrong; latencies are right, except across a jump of the counter";
    /// Events are missing from the log.
    Events = 16, "events", "events lost", Warn, 1.0, 1.0,
        "the log is full, cannot be written, or receives too many events: read its last lines";
    /// A shot was answered twice.
    Duplicates = 17, "duplicates", "answers", Critical, 1.0, 1.0,
        "a defect of this program: keep the run's directory and report it";
    /// A ring is full, and nothing is read from it.
    RingFull = 18, "ring_full", "ms without a move of a full ring", Warn, 100.0, 1.0,
        "its reader does not read: check the role that reads it, or the program that takes the answers";
    /// All threads stood still at once.
    Frozen = 19, "frozen", "times limits.heartbeat_ms", Note, 1.0, 1.0,
        "the process, the machine or its host stood still: check what else runs on the host";
    /// A hot core is interrupted.
    Interrupts = 20, "interrupts", "shoot-downs a second on a hot core", Warn, 2000.0, 0.5,
        "a thread of this process unmaps memory: find it in the evidence and let it reuse its memory";
    /// A live source is silent, or loses shots.
    Source = 21, "source", "1 s of silence, or losses in 0.5 s", Warn, 1.0, 1.0,
        "check its senders in the sources view: which is silent, and which shots are lost where";
    /// An error of a stream is more or less frequent than the model says.
    ModelDrift = 22, "model_drift", "times as often as the model says, or as rare", Warn, 1.25, 1.0,
        "refit the model to the run's shots (pinwheel fit last -o new.dem), and decode with it";
    /// A resource runs out within a minute, by the trend of its last ten seconds.
    RunningOut = 23, "running_out", "s by which the time left is below 60 s", Note, 1.0, 0.5,
        "the alarm says which resource and when: free some, or find what takes it before it ends";
}

impl RuleId {
    /// Inverse of [`RuleId::code`].
    pub fn from_code(code: u64) -> Option<RuleId> {
        RuleId::ALL.into_iter().find(|id| id.code() == code)
    }
}

impl std::fmt::Display for RuleId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The rule of that identity: the profile's if it names one, otherwise the bundled one.
pub fn rule(rules: &[AlarmRule], id: RuleId) -> AlarmRule {
    rules.iter().find(|rule| rule.id == id).cloned().unwrap_or_else(|| id.bundled())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{AlarmRule, RuleId, Severity, rule};

    #[test]
    fn codes_and_names_of_rules_are_unique() {
        for id in RuleId::ALL {
            assert_eq!(RuleId::from_code(id.code()), Some(id));
            assert_eq!(RuleId::ALL.iter().filter(|other| other.name() == id.name()).count(), 1);
            assert!(!id.unit().is_empty() && (1..=160).contains(&id.bundled().runbook.chars().count()), "{id}");
        }
        assert_eq!(RuleId::from_code(0), None);
    }

    #[test]
    fn a_profiles_rule_overrides_the_bundled_one() {
        let mine = AlarmRule { severity: Severity::Critical, limit: 3.0, ..RuleId::Errors.bundled() };
        assert_eq!(rule(std::slice::from_ref(&mine), RuleId::Errors), mine);
        assert_eq!(rule(&[mine], RuleId::Backlog), RuleId::Backlog.bundled());
    }

    #[test]
    fn severities_are_ordered_and_an_unknown_code_is_critical() {
        assert!(Severity::Note < Severity::Warn && Severity::Warn < Severity::Critical);
        for severity in [Severity::Note, Severity::Warn, Severity::Critical] {
            assert_eq!(Severity::from_code(severity.code()), severity);
        }
        assert_eq!(Severity::from_code(77), Severity::Critical);
    }
}
