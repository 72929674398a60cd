//! The engine of a drill: small, steady, at a fixed rate, with nothing wrong until something is provoked.
//!
//! Owns its configuration and the waiting for what it should show. On the drill's thread. Bounds: [`LIVE_LIMIT`] to get Live,
//! [`super::VERDICT_LIMIT`] for a verdict.

use super::{Given, Trouble, VERDICT_LIMIT};
use crate::board::Phase;
use crate::board::snapshot::{AlarmView, Snapshot};
use crate::clock::Clock;
use crate::code::bundled_named;
use crate::engine::{Config, Engine, Input};
use crate::host::pin;
use crate::hot::provoke::Provocation;
use crate::profile::{Priority, Profile, Rate, RoleKind, SpinPolicy};
use crate::record::AnswerSink;
use crate::stall::Cause;
use crate::units::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for Live.
const LIVE_LIMIT: Duration = Duration::from_secs(40);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);
/// After the right cause came: time for a second look of the watchdog to change its mind.
const SETTLE: Duration = Duration::from_millis(120);
/// Memory that may be touched.
const PAGES_BYTES: usize = 768 << 20;

/// A running engine that can be provoked.
pub(crate) struct Staged {
    pub(crate) engine: Engine,
    pub(crate) provocation: Arc<Provocation>,
    pub(crate) clock: Clock,
    /// When it was Live, nanoseconds since its start.
    pub(crate) live_ns: u64,
}

/// The profile of drills: Prod, 2,000 shots a second, a device that takes 60 µs, deadlines as in the field.
pub(crate) fn profile() -> Result<Profile, Trouble> {
    let (mut profile, _) = Profile::load("lab", None).map_err(|error| Trouble::Failed(error.to_string()))?;
    // A thread that yields goes behind everybody else on a busy machine: what is provoked should be all that disturbs it.
    profile.spin = SpinPolicy::Prod;
    profile.input.rate = Rate::Hz(2_000.0);
    profile.limits.heartbeat_ms = 10;
    profile.limits.launch_deadline_us = 20_000;
    profile.limits.shot_deadline_us = 400_000;
    profile.limits.drain_grace_s = 1;
    profile.slots = 256;
    profile.courtesy = None;
    // Where it is permitted, neighbours do not disturb what is provoked; where it is not, a verdict may be theirs.
    profile.priority = Priority::Nice(-19);
    Ok(profile)
}

/// The engine's configuration, by a drill's own changes.
pub(crate) fn config(profile: Profile, sink: Option<AnswerSink>) -> Result<Config, Trouble> {
    let model = bundled_named("surface_d3").map_err(|error| Trouble::Failed(error.to_string()))?;
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
        provocation: None,
        profiles: None,
    })
}

impl Staged {
    /// Starts one and waits until it is Live.
    pub(crate) fn start(profile: Profile, sink: Option<AnswerSink>, pages: Pages) -> Result<Staged, Trouble> {
        let provocation = Provocation::new(if pages == Pages::Wanted { PAGES_BYTES } else { 0 });
        let config = Config { provocation: Some(Arc::clone(&provocation)), ..config(profile, sink)? };
        let engine = Engine::start(config).map_err(|error| Trouble::Failed(error.to_string()))?;
        // What drills start should not stand on a hot core by chance.
        let _ = pin::confine_current_thread(&engine.plan().cold_cores);
        let mut staged = Staged { engine, provocation, clock: Clock::machine(), live_ns: 0 };
        let live = staged.until(LIVE_LIMIT, |now| (now.engine.phase >= Phase::Live).then_some(now.at_ns));
        let late = || Trouble::Failed(format!("the engine was not live after {} s", LIVE_LIMIT.as_secs()));
        staged.live_ns = live.ok_or_else(late)?;
        // Gaps of the warm-up are none of the drill's.
        rest(Duration::from_millis(250));
        Ok(staged)
    }

    /// Number of the thread that runs `role` of silo 0, and its system's number and core.
    pub(crate) fn thread_of(&self, role: RoleKind) -> Result<(usize, u32, Option<u32>), Trouble> {
        let snapshot = self.engine.snapshot();
        let runs = |roles: &[crate::board::snapshot::RoleView]| roles.iter().any(|r| r.kind == role && r.silo == 0);
        let found = snapshot.threads.iter().enumerate().find(|(_, thread)| runs(&thread.roles));
        let (index, thread) = found.ok_or_else(|| Trouble::Failed(format!("no thread runs {role}")))?;
        Ok((index, thread.tid, thread.core.filter(|_| thread.pinned)))
    }

    /// Waits until `shows` says so.
    pub(crate) fn until<T>(&self, limit: Duration, mut shows: impl FnMut(&Snapshot) -> Option<T>) -> Option<T> {
        let from = self.clock.ticks();
        loop {
            if let Some(found) = shows(&self.engine.snapshot()) {
                return Some(found);
            }
            if self.waited(from) >= limit || self.engine.is_finished() {
                return shows(&self.engine.snapshot());
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
        self.engine.snapshot().at_ns
    }

    /// The verdict on what was provoked at `from_ns`: the right one once it is there and stays, else the worst of what came.
    pub(crate) fn verdict(
        &self,
        expected: Cause,
        from_ns: u64,
        about: impl Fn(&AlarmView) -> bool,
    ) -> Result<Given, Trouble> {
        let came = |alarm: &&AlarmView| alarm.last_ns + 1_000_000 >= from_ns && about(alarm) && !alarm.cause.is_empty();
        let mut looks = 0;
        let right = self.until(VERDICT_LIMIT, |now| {
            looks += 1;
            let alarm = now.alarms.iter().filter(came).find(|alarm| alarm.cause == expected.name())?;
            // What was judged before we began to look tells itself when.
            let judged_ns = alarm.onset_ns + alarm.judged_after_ns.unwrap_or(0);
            let at_ns = if looks == 1 { judged_ns } else { now.at_ns };
            Some((alarm.number, at_ns.saturating_sub(from_ns)))
        });
        if let Some((number, after_ns)) = right {
            rest(SETTLE);
            let now = self.engine.snapshot();
            if let Some(alarm) = now.alarms.iter().find(|alarm| alarm.number == number) {
                return Ok(given(alarm, after_ns));
            }
        }
        let now = self.engine.snapshot();
        let other = now.alarms.iter().find(came);
        other.map(|alarm| given(alarm, alarm.judged_after_ns.unwrap_or(0))).ok_or_else(|| {
            Trouble::Failed(format!("no alarm within {} s, expected {}", VERDICT_LIMIT.as_secs(), expected.name()))
        })
    }

    /// Ends it.
    pub(crate) fn end(self) {
        self.provocation.cease();
        self.engine.request_drain();
        let _ = self.engine.finish();
    }
}

/// Whether memory is set aside to be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Yes.
    Wanted,
    /// No.
    Spared,
}

fn given(alarm: &AlarmView, after_ns: u64) -> Given {
    Given {
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
