//! The engine of a drill: small, at a fixed rate, without faults until one is provoked.
//!
//! Owns its configuration, and waits for what its board should show. On the drill's thread.
//! [`LIVE_LIMIT`] to become Live, [`super::VERDICT_LIMIT`] for a verdict.

use super::{DrillError, DrillVerdict, VERDICT_LIMIT};
use crate::board::snapshot::{AlarmView, Snapshot};
use crate::board::{self, Phase};
use crate::clock::Clock;
use crate::code::bundled_named;
use crate::engine::{Config, Engine, Input};
use crate::host::pin;
use crate::hot::drill_role::DrillCommand;
use crate::profile::{Priority, Profile, Rate, SpinPolicy};
use crate::record::AnswerSink;
use crate::roles::RoleKind;
use crate::stall::Cause;
use crate::units::Nanos;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for Live.
const LIVE_LIMIT: Duration = Duration::from_secs(40);
/// Time between two readings of the board.
const LOOK: Duration = Duration::from_millis(2);
/// After the right cause has appeared: time in which the watchdog may still change it.
const SETTLE: Duration = Duration::from_millis(120);
/// Longest wait until the alarm's incident is known.
const GROUP_LIMIT: Duration = Duration::from_secs(2);
/// Memory reserved for page faults.
const PAGES_BYTES: usize = 768 << 20;

/// A running engine that can be provoked.
pub(crate) struct DrillEngine {
    pub(crate) running: Engine,
    pub(crate) drill_command: Arc<DrillCommand>,
    pub(crate) clock: Clock,
    /// When it became Live, nanoseconds since its start.
    pub(crate) live_ns: u64,
}

/// The profile of drills: Prod, 2,000 shots a second, a device that takes 60 µs, deadlines as in
/// the field.
pub(crate) fn profile() -> Result<Profile, DrillError> {
    let (mut profile, _) = Profile::load("lab", None).map_err(|error| DrillError::Failed(error.to_string()))?;
    // A thread that yields may lose its core on a busy machine. Only the provoked fault should
    // disturb it.
    profile.spin = SpinPolicy::Prod;
    profile.input.rate = Rate::Hz(2_000.0);
    profile.limits.heartbeat_ms = 10;
    profile.limits.launch_deadline_us = 20_000;
    profile.limits.shot_deadline_us = 400_000;
    profile.limits.drain_grace_s = 1;
    profile.slots = 256;
    profile.courtesy = None;
    // If this is permitted, other programs do not disturb the drill; if not, they may cause a
    // verdict.
    profile.priority = Priority::Nice(-19);
    Ok(profile)
}

/// The engine's configuration for this profile.
pub(crate) fn config(profile: Profile, sink: Option<AnswerSink>) -> Result<Config, DrillError> {
    let model = bundled_named("surface_d3").map_err(|error| DrillError::Failed(error.to_string()))?;
    Ok(Config {
        profile_name: "drill".into(),
        profile,
        label: "drill".into(),
        input: Input::Sampler { model: Arc::new(model), name: "surface_d3".into(), seed: 7 },
        count: None,
        duration: None,
        sink,
        run_dir: None,
        events: None,
        environment: None,
        notes: Vec::new(),
        drill_command: None,
        bridge: None,
        boards: board::directory(),
        takes_inputs: false,
        profiles: None,
    })
}

impl DrillEngine {
    /// Starts one and waits until it is Live.
    pub(crate) fn start(profile: Profile, sink: Option<AnswerSink>, pages: Pages) -> Result<DrillEngine, DrillError> {
        DrillEngine::start_with(config(profile, sink)?, pages)
    }

    /// The same, whose run is kept in `directory`.
    pub(crate) fn start_in(profile: Profile, directory: &Path) -> Result<DrillEngine, DrillError> {
        let config = Config { run_dir: Some(directory.to_owned()), ..config(profile, None)? };
        DrillEngine::start_with(config, Pages::None)
    }

    fn start_with(config: Config, pages: Pages) -> Result<DrillEngine, DrillError> {
        let drill_command = DrillCommand::new(if pages == Pages::Reserved { PAGES_BYTES } else { 0 });
        let config = Config { drill_command: Some(Arc::clone(&drill_command)), ..config };
        let engine = Engine::start(config).map_err(|error| DrillError::Failed(error.to_string()))?;
        // Threads and processes that the drill starts must not run on hot cores.
        let _ = pin::confine_current_thread(&engine.plan().cold_cores);
        let mut engine = DrillEngine { running: engine, drill_command, clock: Clock::machine(), live_ns: 0 };
        let live = engine.until(LIVE_LIMIT, |now| (now.engine.phase >= Phase::Live).then_some(now.at_ns));
        let late = || DrillError::Failed(format!("the engine was not live after {} s", LIVE_LIMIT.as_secs()));
        engine.live_ns = live.ok_or_else(late)?;
        // Gaps during warm-up do not belong to the drill.
        rest(Duration::from_millis(250));
        Ok(engine)
    }

    /// Index of the thread that runs `role` of silo 0, its system id, and its core.
    pub(crate) fn thread_of(&self, role: RoleKind) -> Result<(usize, u32, Option<u32>), DrillError> {
        let snapshot = self.running.snapshot();
        let runs = |roles: &[crate::board::snapshot::RoleView]| roles.iter().any(|r| r.kind == role && r.silo == 0);
        let found = snapshot.threads.iter().enumerate().find(|(_, thread)| runs(&thread.roles));
        let (index, thread) = found.ok_or_else(|| DrillError::Failed(format!("no thread runs {role}")))?;
        Ok((index, thread.tid, thread.core.filter(|_| thread.pinned)))
    }

    /// Waits until `shows` returns a value.
    pub(crate) fn until<T>(&self, limit: Duration, mut shows: impl FnMut(&Snapshot) -> Option<T>) -> Option<T> {
        let from = self.clock.ticks();
        loop {
            if let Some(found) = shows(&self.running.snapshot()) {
                return Some(found);
            }
            if self.waited(from) >= limit || self.running.is_finished() || super::is_over() {
                return shows(&self.running.snapshot());
            }
            rest(LOOK);
        }
    }

    fn waited(&self, from: crate::units::Ticks) -> Duration {
        let Nanos(ns) = self.clock.rate().nanos(self.clock.ticks().since(from));
        Duration::from_nanos(ns)
    }

    /// Nanoseconds since the engine's start.
    pub(crate) fn now_ns(&self) -> u64 {
        self.running.snapshot().at_ns
    }

    /// The verdict on the fault provoked at `from_ns`: the expected one once it is stable, else the
    /// most severe other one.
    pub(crate) fn verdict(
        &self,
        expected: Cause,
        from_ns: u64,
        about: impl Fn(&AlarmView) -> bool,
    ) -> Result<DrillVerdict, DrillError> {
        let came = |alarm: &&AlarmView| alarm.last_ns + 1_000_000 >= from_ns && about(alarm) && !alarm.cause.is_empty();
        let mut looks = 0;
        let right = self.until(VERDICT_LIMIT, |now| {
            looks += 1;
            let alarm = now.alarms.iter().filter(came).find(|alarm| alarm.cause == expected.name())?;
            // A verdict from before the first reading tells itself when it was made.
            let judged_ns = alarm.onset_ns + alarm.judged_after_ns.unwrap_or(0);
            let at_ns = if looks == 1 { judged_ns } else { now.at_ns };
            Some((alarm.number, at_ns.saturating_sub(from_ns)))
        });
        if let Some((number, after_ns)) = right {
            rest(SETTLE);
            let judged = |now: &Snapshot| {
                let alarm = now.alarms.iter().find(|alarm| alarm.number == number && alarm.incident != 0)?;
                Some(given(now, alarm, after_ns))
            };
            if let Some(given) = self.until(GROUP_LIMIT, judged) {
                return Ok(given);
            }
        }
        let now = self.running.snapshot();
        let other = now.alarms.iter().find(came);
        let after_ns =
            |alarm: &AlarmView| (alarm.onset_ns + alarm.judged_after_ns.unwrap_or(0)).saturating_sub(from_ns);
        other.map(|alarm| given(&now, alarm, after_ns(alarm))).ok_or_else(|| {
            let later = now.alarms.iter().filter(|alarm| alarm.last_ns >= from_ns);
            let others: Vec<&str> = later.map(|alarm| alarm.sentence.as_str()).collect();
            let others = if others.is_empty() { "none at all".to_owned() } else { others.join("; ") };
            let (limit_s, expected) = (VERDICT_LIMIT.as_secs(), expected.name());
            DrillError::Failed(format!("no such alarm within {limit_s} s, expected {expected}; others: {others}"))
        })
    }

    pub(crate) fn end(self) {
        self.drill_command.end();
        self.running.request_drain();
        let _ = self.running.finish();
    }
}

/// Whether memory is reserved for page faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Yes.
    Reserved,
    /// No.
    None,
}

fn given(now: &Snapshot, alarm: &AlarmView, after_ns: u64) -> DrillVerdict {
    let incident = now.incidents.iter().find(|incident| incident.number == alarm.incident);
    let consequences = incident.map(|incident| &incident.consequences[..]).unwrap_or_default();
    DrillVerdict {
        root: incident.map(|incident| incident.root.cause.clone()),
        consequences: consequences.iter().map(|alarm| alarm.rule.clone()).collect(),
        cause: alarm.cause.clone(),
        confidence: alarm.confidence,
        sentence: alarm.sentence.clone(),
        culprit: alarm.culprit.clone(),
        stack: alarm.stack.clone(),
        after_ns,
    }
}

#[expect(clippy::disallowed_methods, reason = "cold: a drill waits for what it provoked")]
pub(crate) fn rest(span: Duration) {
    std::thread::sleep(span);
}
