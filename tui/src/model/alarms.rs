//! Alarms: what is wrong now, since when, how often.
//!
//! Owns one pure function from a snapshot to conditions, and the book that turns conditions into alarms. On the console
//! thread; the book holds at most [`ALARMS_MAX`] alarms and lets the one that ended longest ago go first.
//!
//! # Why two thresholds and a hold
//!
//! An alarm that comes and goes with every sample says nothing. A condition raises its alarm when it fires, keeps it
//! while it is merely near, and the alarm ends only when the condition was away for [`HOLD_NS`].

use pinwheel_engine::board::snapshot::{
    DeviceState, HealthVerdict, SiloView, Snapshot, SourceState, SourceView, StreamView, ThreadView,
};

/// Most alarms kept.
pub const ALARMS_MAX: usize = 128;
/// How long a condition must be away before its alarm ends, nanoseconds.
pub const HOLD_NS: u64 = 3_000_000_000;
/// A heartbeat alarm is kept while the age is above this share of the limit.
const HEARTBEAT_NEAR: u64 = 2;

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A role panicked.
    RoleDied,
    /// A heartbeat is older than the engine's limit.
    HeartbeatOld,
    /// The device takes no launches.
    DeviceLost,
    /// Workers are in quarantine.
    Quarantined,
    /// A stream's input does not look like the model's.
    InputHealth,
    /// A sequence number was answered twice.
    Duplicated,
    /// Shots are being answered with errors.
    AnswersErrored,
    /// A hot thread called the allocator in Live.
    HotAllocation,
    /// A hot thread ran on a core that it is not pinned to.
    AffinityLost,
    /// A clock was set, jumped, or is not the one it should be.
    Clock,
    /// Events were lost.
    Log,
    /// A live source is silent, or loses shots.
    Source,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Wants an eye on it.
    Warning,
    /// Wrong.
    Critical,
}

/// Whether a condition holds or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Not enough to raise an alarm, enough to keep one.
    Near,
    /// Raises one.
    Firing,
}

/// What a snapshot says of one rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which rule.
    pub rule: Rule,
    /// Number of the thread, silo or stream, or a code that tells two conditions of one rule apart.
    pub place: (u32, u32),
    /// Holds or near.
    pub level: Level,
    /// How bad.
    pub severity: Severity,
    /// How often it happened, where the board counts it.
    pub count: Option<u64>,
    /// One sentence.
    pub text: String,
}

/// One alarm. Times are nanoseconds since the engine's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Which rule.
    pub rule: Rule,
    /// Where, see [`Condition::place`].
    pub place: (u32, u32),
    /// How bad.
    pub severity: Severity,
    /// Start of the latest episode.
    pub onset_ns: u64,
    /// Last time the condition held.
    pub last_ns: u64,
    /// The board's count, or the number of episodes.
    pub count: u64,
    /// Whether it holds (or did within the hold).
    pub active: bool,
    /// The latest sentence.
    pub text: String,
}

/// All alarms of this run, worst and newest first.
#[derive(Clone, Debug, Default)]
pub struct AlarmBook(Vec<Alarm>);

impl AlarmBook {
    /// The alarms, active ones first, then by severity and onset.
    pub fn alarms(&self) -> &[Alarm] {
        &self.0
    }

    /// Number of active alarms, and the worst severity among them.
    pub fn active(&self) -> (usize, Option<Severity>) {
        let active = self.0.iter().filter(|alarm| alarm.active);
        (active.clone().count(), active.map(|alarm| alarm.severity).max())
    }

    /// Takes in what the snapshot at `at_ns` says.
    pub fn observe(&mut self, conditions: Vec<Condition>, at_ns: u64) {
        for condition in conditions {
            let key = (condition.rule, condition.place);
            match self.0.iter_mut().find(|alarm| (alarm.rule, alarm.place) == key) {
                Some(alarm) => alarm.observe(condition, at_ns),
                None if condition.level == Level::Firing => self.raise(condition, at_ns),
                None => {}
            }
        }
        for alarm in &mut self.0 {
            alarm.active = alarm.active && at_ns.saturating_sub(alarm.last_ns) <= HOLD_NS;
        }
        self.0.sort_by_key(|alarm| {
            (
                !alarm.active,
                std::cmp::Reverse(alarm.severity),
                std::cmp::Reverse(alarm.onset_ns),
                alarm.rule,
                alarm.place,
            )
        });
    }

    fn raise(&mut self, condition: Condition, at_ns: u64) {
        if self.0.len() == ALARMS_MAX {
            self.0.pop();
        }
        self.0.push(Alarm {
            rule: condition.rule,
            place: condition.place,
            severity: condition.severity,
            onset_ns: at_ns,
            last_ns: at_ns,
            count: condition.count.unwrap_or(1),
            active: true,
            text: condition.text,
        });
    }
}

impl Alarm {
    fn observe(&mut self, condition: Condition, at_ns: u64) {
        match (condition.level, self.active) {
            (Level::Near, false) => {}
            (Level::Near, true) => self.last_ns = at_ns,
            (Level::Firing, was_active) => {
                self.count = condition.count.unwrap_or(self.count + u64::from(!was_active));
                if !was_active {
                    self.onset_ns = at_ns;
                }
                self.active = true;
                self.last_ns = at_ns;
                self.severity = condition.severity;
                self.text = condition.text;
            }
        }
    }
}

/// What `now` says is wrong; `before` is the snapshot before it, for what only counts while it grows.
pub fn conditions(now: &Snapshot, before: Option<&Snapshot>) -> Vec<Condition> {
    let mut found = Vec::new();
    for (i, thread) in (0..).zip(&now.threads) {
        thread_conditions(i, thread, now.engine.heartbeat_limit_ns, &mut found);
    }
    engine_conditions(now, before, &mut found);
    for silo in &now.silos {
        let earlier = before.and_then(|before| before.silos.iter().find(|s| s.id == silo.id));
        silo_conditions(silo, earlier, &mut found);
    }
    for stream in &now.streams {
        found.extend(stream_condition(stream));
    }
    for (i, source) in (0..).zip(&now.sources) {
        let earlier = before.and_then(|before| before.sources.get(i as usize));
        source_conditions(i, source, earlier, &mut found);
    }
    found
}

fn source_conditions(i: u32, source: &SourceView, earlier: Option<&SourceView>, found: &mut Vec<Condition>) {
    let warning = |place, count, text| condition(Rule::Source, (i, place), Severity::Warning, count, text);
    if source.state == SourceState::Silent {
        let text = format!("{} is silent: see its senders in the sources view", source.name);
        found.push(warning(0, None, text));
    }
    let lost = |source: &SourceView| source.kernel_drops + source.answers_dropped;
    if lost(source) > earlier.map_or(0, lost) {
        let text = format!(
            "{}: {} datagrams dropped by the system, {} answers not taken",
            source.name, source.kernel_drops, source.answers_dropped
        );
        found.push(warning(1, Some(lost(source)), text));
    }
}

fn engine_conditions(now: &Snapshot, before: Option<&Snapshot>, found: &mut Vec<Condition>) {
    let clock = &now.clock;
    if let Some(why) = &clock.degraded {
        found.push(condition(
            Rule::Clock,
            (0, 0),
            Severity::Warning,
            None,
            format!("time is read from {}: {why}", clock.source),
        ));
    }
    let steps = |snapshot: &Snapshot| (snapshot.clock.utc_steps, snapshot.clock.counter_steps);
    let (utc, counter) = before.map_or((0, 0), steps);
    if clock.utc_steps > utc {
        let text = format!(
            "UTC was set while running ({} times): latencies are not touched, written times are",
            clock.utc_steps
        );
        found.push(condition(Rule::Clock, (1, 0), Severity::Warning, Some(clock.utc_steps), text));
    }
    if clock.counter_steps > counter {
        let text = format!(
            "the tick counter jumped ({} times): a suspend or another host; times around it are wrong",
            clock.counter_steps
        );
        found.push(condition(Rule::Clock, (2, 0), Severity::Critical, Some(clock.counter_steps), text));
    }
    let lost = now.log.dropped + now.log.unkept;
    if lost > 0 {
        let text = format!(
            "{lost} events are not in the log: {} found no room, {} could not be written",
            now.log.dropped, now.log.unkept
        );
        found.push(condition(Rule::Log, (0, 0), Severity::Warning, Some(lost), text));
    }
}

fn thread_conditions(i: u32, thread: &ThreadView, limit_ns: u64, found: &mut Vec<Condition>) {
    for (r, role) in (0..).zip(&thread.roles) {
        let Some(frame) = role.died_frame else { continue };
        let text = format!(
            "{} {} of silo {} on {} died in frame {frame} at {}: it is never called again",
            role.kind,
            role.index,
            role.silo,
            thread.name,
            thread.panic_site.as_deref().unwrap_or("an unknown place")
        );
        found.push(condition(Rule::RoleDied, (i, r), Severity::Critical, Some(1), text));
    }
    if let Some(calls) = thread.memory.allocations.filter(|calls| *calls > 0) {
        let site = thread.memory.first_site.as_deref().unwrap_or("a place being looked up");
        let text = format!("{}: {calls} calls of the allocator in Live, the first from {site}", thread.name);
        found.push(condition(Rule::HotAllocation, (i, 0), Severity::Warning, Some(calls), text));
    }
    if thread.frames_elsewhere > 0 {
        let (name, core) =
            (&thread.name, thread.core.map_or_else(|| "its core".to_owned(), |core| format!("core {core}")));
        let text = format!(
            "{name}: {} frames elsewhere than on {core}; something changes affinities (a control group, taskset)",
            thread.frames_elsewhere
        );
        found.push(condition(Rule::AffinityLost, (i, 0), Severity::Warning, Some(thread.frames_elsewhere), text));
    }
    // A thread that has not run a frame yet has no heartbeat that could be old.
    let beats = thread.state == pinwheel_engine::board::snapshot::ThreadState::Running && thread.frames > 0;
    if beats && thread.heartbeat_age_ns > limit_ns / HEARTBEAT_NEAR {
        let age_ms = thread.heartbeat_age_ns as f64 / 1e6;
        let stage = thread.stage.map_or("between roles", |stage| stage.name());
        let text = format!(
            "{}: no heartbeat for {age_ms:.1} ms, limit {:.1} ms, in {stage}",
            thread.name,
            limit_ns as f64 / 1e6
        );
        let mut old = condition(Rule::HeartbeatOld, (i, 0), Severity::Warning, None, text);
        if thread.heartbeat_age_ns <= limit_ns {
            old.level = Level::Near;
        }
        found.push(old);
    }
}

fn silo_conditions(silo: &SiloView, before: Option<&SiloView>, found: &mut Vec<Condition>) {
    let id = silo.id;
    let counters = &silo.counters;
    if silo.device != DeviceState::Online {
        let doing = if silo.device == DeviceState::Lost { "lost" } else { "being brought back" };
        let text = format!("silo {id}: device {doing}; {} shots predecoded on the CPU", counters.cpu_fallbacks);
        found.push(condition(Rule::DeviceLost, (id, 0), Severity::Critical, Some(counters.device_losses.max(1)), text));
    }
    let quarantined =
        silo.workers.iter().filter(|w| w.state == pinwheel_engine::board::snapshot::WorkerState::Quarantined);
    let quarantined = quarantined.count();
    if quarantined > 0 {
        let text = format!("silo {id}: {quarantined} of {} workers in quarantine", silo.workers.len());
        found.push(condition(Rule::Quarantined, (id, 0), Severity::Warning, Some(counters.quarantined), text));
    }
    if counters.duplicated > 0 {
        let text = format!("silo {id}: {} shots answered more than once: a defect, please report", counters.duplicated);
        found.push(condition(Rule::Duplicated, (id, 0), Severity::Critical, Some(counters.duplicated), text));
    }
    for error in &silo.errors {
        let earlier = before.and_then(|b| b.errors.iter().find(|e| e.code == error.code)).map_or(0, |e| e.count);
        if error.count > earlier {
            let text = format!("silo {id}: {} shots answered with {}", error.count, error.name);
            let place = (id, u32::from(error.code));
            found.push(condition(Rule::AnswersErrored, place, Severity::Warning, Some(error.count), text));
        }
    }
}

fn stream_condition(stream: &StreamView) -> Option<Condition> {
    let health = &stream.input_health;
    let (severity, word) = match health.verdict {
        HealthVerdict::TooFew | HealthVerdict::Good => return None,
        HealthVerdict::Suspect => (Severity::Warning, "suspect"),
        HealthVerdict::Bad => (Severity::Critical, "bad: wrong model, noise or bit order"),
    };
    let text = format!(
        "stream {}: input {word}; {:.2} % of detectors fire, the model says {:.2} %",
        stream.id,
        health.fraction_found * 100.0,
        health.fraction_expected * 100.0
    );
    Some(condition(Rule::InputHealth, (stream.id, 0), severity, None, text))
}

fn condition(rule: Rule, place: (u32, u32), severity: Severity, count: Option<u64>, text: String) -> Condition {
    Condition { rule, place, level: Level::Firing, severity, count, text }
}
