//! When answers of a silo are due, and whether its decode workers are behind.
//!
//! Owns the deadlines of a profile, in ticks. Made by cold code, read by the graph role and by harvest. Bounded by
//! the streams. The graph role writes whether the workers are behind; they read it.

use crate::hot::Settings;
use crate::profile::{Profile, ShotOrder};
use crate::units::{Nanos, TickRate, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// When the answers of each stream are due.
#[derive(Debug)]
pub struct AnswerDeadlines {
    /// Which waiting shot is decoded next.
    pub order: ShotOrder,
    /// By stream, from write; all ones: at the limit of all shots.
    streams: Box<[Ticks]>,
    rate: TickRate,
    /// Relaxed: it stands alone and is advisory.
    is_behind: AtomicBool,
}

impl AnswerDeadlines {
    /// Those of `profile`; `None` if it sets none.
    pub fn of(profile: &Profile, rate: TickRate) -> Option<Arc<AnswerDeadlines>> {
        let set = &profile.deadlines;
        if !set.are_set() {
            return None;
        }
        let ticks = |us: u32| rate.ticks(Nanos::from_micros(u64::from(us)));
        let all = set.answer_us.map_or(Ticks(u64::MAX), ticks);
        let mut streams: Box<[Ticks]> = vec![all; profile.input.streams as usize].into();
        for named in &set.streams {
            streams[named.stream as usize] = ticks(named.answer_us);
        }
        Some(Arc::new(AnswerDeadlines { order: set.order, streams, rate, is_behind: AtomicBool::new(false) }))
    }

    /// Whether a shot waits that will be late if each before it is answered by its own decoder.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Sets whether such a shot waits. Called by the graph role only.
    pub(crate) fn set_behind(&self, is_behind: bool) {
        // A store would take the line from the workers.
        if self.is_behind() != is_behind {
            self.is_behind.store(is_behind, Ordering::Relaxed);
        }
    }

    /// Time from the write of a shot of `stream` until its answer is due; `None` for warm-up shots.
    #[inline]
    pub fn after_write(&self, stream: u32, settings: &Settings) -> Option<Ticks> {
        let own = self.streams.get(stream as usize)?;
        // The limit may have become shorter while the engine runs.
        Some((*own).min(self.rate.ticks(Nanos(settings.shot_deadline_ns()))))
    }
}
