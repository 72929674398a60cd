//! Alarm rules: what is judged, how bad it is, from where on, and what is done about it.
//!
//! Plain data and the bundled rules; read by cold threads. A profile names only the rules that it wants otherwise; the
//! others hold as bundled. Bounded: each rule has an identity, so there are at most [`RuleId::ALL`] of them.
//!
//! # Why a limit has the unit of its rule
//! "3 % of the answers" and "twice the heartbeat limit" cannot share a unit. Each identity says its own in
//! [`RuleId::unit`], which lists, refusals and alarms show beside the number.

use serde::{Deserialize, Serialize};

/// Whether the engine watches itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Diagnostics {
    /// A watchdog on a cold thread judges the board, explains stalls and keeps the alarms.
    On,
    /// No watchdog: no alarms, no verdicts; hot threads still publish.
    Off,
}

/// What an alarm also does, once, at its onset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnAlarm {
    /// Nothing beyond the board.
    None,
    /// Runs this program on a cold thread with the alarm as JSON on its standard input: at most one a second, each at
    /// most 5 s long.
    Exec(String),
}

/// How bad an alarm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all(serialize = "lowercase"))]
pub enum Severity {
    /// Written down with its verdict; never alarms.
    #[serde(alias = "note")]
    Note,
    /// Wants an eye on it.
    #[serde(alias = "warn")]
    Warn,
    /// Wrong.
    #[serde(alias = "critical")]
    Critical,
}

impl Severity {
    /// Number on the board.
    #[must_use]
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// From the board; an unknown number is the worst.
    #[must_use]
    pub const fn from_code(code: u64) -> Severity {
        match code {
            0 => Severity::Note,
            1 => Severity::Warn,
            _ => Severity::Critical,
        }
    }

    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warn => "warn",
            Severity::Critical => "critical",
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
    /// Puts what applies live of this profile into force.
    SwitchProfile(String),
    /// Lets no further shot in; those under way are answered.
    StopFeed,
}

/// One rule of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmRule {
    /// What is judged.
    pub id: RuleId,
    /// How bad it is.
    pub severity: Severity,
    /// From where on, 0..=1e9 in the rule's unit.
    pub limit: f64,
    /// The alarm lasts while the value is above this share of the limit, 0..=1.
    pub hysteresis: f64,
    /// What is done about it.
    pub action: AlarmAction,
    /// One line for who is called at night, up to 160 characters.
    pub runbook: String,
}

macro_rules! rules {
    ($( $(#[$meta:meta])* $id:ident = $code:literal, $name:literal, $unit:literal, $severity:ident, $limit:literal, $hysteresis:literal, $runbook:literal; )*) => {
        /// What a rule judges.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RuleId { $( $(#[$meta])* $id = $code, )* }

        impl RuleId {
            /// All of them.
            pub const ALL: &[RuleId] = &[ $( RuleId::$id, )* ];

            /// Number on the board, never 0.
            #[must_use]
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// Name, stable for scripts.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( RuleId::$id => $name, )* }
            }

            /// What its limit counts.
            #[must_use]
            pub const fn unit(self) -> &'static str {
                match self { $( RuleId::$id => $unit, )* }
            }

            /// The rule as bundled.
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
        "open the alarm: its verdict names the cause, its stack the line";
    /// A hot thread found a long gap between two of its frames.
    FrameGap = 2, "frame_gap", "times limits.heartbeat_ms", Note, 1.0, 0.5,
        "healed itself; if it comes often, read the verdict and the environment check";
    /// Answers came late.
    LateAnswers = 3, "late_answers", "% of the answers of 0.5 s", Warn, 20.0, 0.5,
        "look at the stage with the longest p99; lower the rate or add decoders";
    /// The backlog grows.
    Backlog = 4, "backlog", "% of the scheduled shots of 0.5 s, for 2 s", Warn, 10.0, 0.5,
        "more arrives than is decoded: lower the rate, add decoders or cores";
    /// Shots are answered with error words.
    Errors = 5, "errors", "errored answers in 0.5 s", Warn, 1.0, 1.0,
        "the faults on the board name the code; see what the device and the decoders say";
    /// Device workers are in quarantine.
    Quarantine = 6, "quarantine", "workers", Warn, 1.0, 1.0,
        "a launch never came back: look at the device; the worker returns when its launch does";
    /// The device takes no launches.
    DeviceLost = 7, "device_lost", "devices", Critical, 1.0, 1.0,
        "shots go to the CPU predecoder; the device is being brought back, look at its own log";
    /// A stream's detection events are not the model's.
    InputHealth = 8, "input_health", "standing: 1 suspect, 2 bad", Warn, 1.0, 1.0,
        "wrong model, noise or bit order: compare the hottest detectors with the experiment";
    /// The disk of the run's directory is nearly full, or does not take what is written.
    Disk = 9, "disk", "MiB missing to 256 MiB free", Warn, 1.0, 1.0,
        "free some space or move --logs; the run goes on, its records do not";
    /// A thread has not idled once: a role claims work for ever.
    NeverIdle = 10, "never_idle", "s without an idle frame and without an item that moved", Warn, 0.1, 1.0,
        "a role reports work in every frame: the thread never yields; see which role's items grow";
    /// A hot thread stands ready and does not run.
    Scheduler = 11, "scheduler", "% of 0.5 s waiting for its core", Note, 20.0, 0.5,
        "somebody else runs on its core: see who on the threads view, or plan other cores";
    /// A role panicked.
    RoleDied = 12, "role_died", "roles", Critical, 1.0, 1.0,
        "its streams go to another silo, or, where there is none, the run drains; the panic's place is in the alarm: please report it";
    /// A hot thread called the allocator in Live.
    HotAllocation = 13, "hot_allocation", "calls", Warn, 1.0, 1.0,
        "the first caller is in the alarm; hot_allocations: Abort stops at it";
    /// A hot thread ran on a core that is not its own.
    Affinity = 14, "affinity", "frames elsewhere in 0.1 s", Warn, 1.0, 1.0,
        "a control group or taskset moved it: see who changes affinities";
    /// A clock was set, jumped, or is not the one that it should be.
    Clock = 15, "clock", "steps", Warn, 1.0, 1.0,
        "times around the step are wrong; latencies come from the counter";
    /// Events are missing from the log.
    Events = 16, "events", "events lost", Warn, 1.0, 1.0,
        "the log is full, cannot be written, or something floods it: read its last lines";
    /// A shot was answered twice.
    Duplicates = 17, "duplicates", "answers", Critical, 1.0, 1.0,
        "a defect of this program: keep the run's directory and report it";
    /// A ring stands full and does not move.
    RingFull = 18, "ring_full", "ms without a move of a full ring", Warn, 100.0, 1.0,
        "its reader does not read: look at who takes from it";
    /// Everything stood still at once.
    Frozen = 19, "frozen", "times limits.heartbeat_ms", Note, 1.0, 1.0,
        "the process, the machine or its host stood still: nothing in here could run";
    /// A hot core is interrupted.
    Interrupts = 20, "interrupts", "shoot-downs a second on a hot core", Warn, 2000.0, 0.5,
        "some thread of this process unmaps memory: find it in the evidence, let it keep its memory";
    /// A live source is silent, or loses shots.
    Source = 21, "source", "1 s of silence, or losses in 0.5 s", Warn, 1.0, 1.0,
        "see its senders in the sources view: who is silent, what is dropped, and by whom";
}

impl RuleId {
    /// Inverse of [`RuleId::code`].
    #[must_use]
    pub fn from_code(code: u64) -> Option<RuleId> {
        RuleId::ALL.iter().copied().find(|id| id.code() == code)
    }
}

impl std::fmt::Display for RuleId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The rule of that identity: the profile's where it names one, else as bundled.
#[must_use]
pub fn rule(rules: &[AlarmRule], id: RuleId) -> AlarmRule {
    rules.iter().find(|rule| rule.id == id).cloned().unwrap_or_else(|| id.bundled())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{AlarmRule, RuleId, Severity, rule};

    #[test]
    fn codes_lead_back_to_their_rules_and_names_are_their_own() {
        for id in RuleId::ALL {
            assert_eq!(RuleId::from_code(id.code()), Some(*id));
            assert_eq!(RuleId::ALL.iter().filter(|other| other.name() == id.name()).count(), 1);
            assert!(!id.unit().is_empty() && (1..=160).contains(&id.bundled().runbook.chars().count()), "{id}");
        }
        assert_eq!(RuleId::from_code(0), None);
    }

    #[test]
    fn a_profiles_rule_goes_before_the_bundled_one() {
        let mine = AlarmRule { severity: Severity::Critical, limit: 3.0, ..RuleId::Errors.bundled() };
        assert_eq!(rule(std::slice::from_ref(&mine), RuleId::Errors), mine);
        assert_eq!(rule(&[mine], RuleId::Backlog), RuleId::Backlog.bundled());
    }

    #[test]
    fn severities_are_ordered_and_an_unknown_one_is_the_worst() {
        assert!(Severity::Note < Severity::Warn && Severity::Warn < Severity::Critical);
        for severity in [Severity::Note, Severity::Warn, Severity::Critical] {
            assert_eq!(Severity::from_code(severity.code()), severity);
        }
        assert_eq!(Severity::from_code(77), Severity::Critical);
    }
}
