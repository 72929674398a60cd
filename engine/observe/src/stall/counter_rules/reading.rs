//! Counters at one moment, and their differences.
//!
//! Plain copies of the board's words. On the watchdog's thread. Bounded by the shape.

use crate::board::layout::{ANSWER_READERS_MAX, ERRORS_MAX};
use crate::board::{self, Board, Stage, get};
use crate::roles::RoleKind;
use crate::units::{TickRate, Ticks};
use std::path::Path;

/// The board's states of a worker word.
const QUARANTINED: u64 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct SiloReading {
    pub(super) scheduled: u64,
    pub(super) submitted: u64,
    pub(super) submitted_ever: u64,
    pub(super) dispatched_ever: u64,
    pub(super) answered: u64,
    pub(super) harvested: u64,
    pub(super) late: u64,
    pub(super) duplicated: u64,
    pub(super) device_state: u64,
    pub(super) quarantined: u32,
    quarantined_mask: u64,
    pub(super) workers: u32,
    pub(super) errors: Vec<u64>,
    pub(super) sink_is_full: bool,
    pub(super) answered_slots: u64,
    /// Sum and count of each stage.
    stages: Vec<(u64, u64)>,
}

impl SiloReading {
    /// Late answers or answers with errors since `then`, whichever are more.
    fn hit_since(&self, then: &SiloReading) -> u64 {
        let errors = |reading: &SiloReading| reading.errors.iter().sum::<u64>();
        self.late.saturating_sub(then.late).max(errors(self).saturating_sub(errors(then)))
    }

    pub(super) fn backlog(&self) -> u64 {
        self.scheduled.saturating_sub(self.submitted)
    }

    /// Time of shots in a stage since `then`, nanoseconds, and their number.
    fn spent_since(&self, then: &SiloReading, stage: Stage) -> (u64, u64) {
        let ((old_sum, old_count), (sum, count)) = (then.stages[stage as usize], self.stages[stage as usize]);
        (sum.saturating_sub(old_sum), count.saturating_sub(old_count))
    }

    /// Shots in slots. None if the feed died in a frame: its counts of that frame are missing.
    pub(super) fn in_path(&self) -> u64 {
        self.submitted_ever.saturating_sub(self.harvested)
    }

    /// Shots that dispatch has not taken; none as above.
    pub(super) fn in_rx_ring(&self) -> u64 {
        self.submitted_ever.saturating_sub(self.dispatched_ever)
    }

    pub(super) fn is_all_quarantined(&self) -> bool {
        self.quarantined == self.workers && self.workers > 0
    }

    pub(super) fn quarantined_workers(&self) -> impl Iterator<Item = u32> {
        (0..64).filter(|worker| self.quarantined_mask >> worker & 1 != 0)
    }

    fn of(board: &Board, silo: usize) -> SiloReading {
        let (feed, dispatch, harvest) = (board.feed(silo), board.dispatch(silo), board.harvest(silo));
        let words = board.poll(silo).worker_words.iter().take(board.shape().workers as usize);
        let is_quarantined = |(worker, word)| (get(word) & 3 == QUARANTINED).then_some(1u64 << worker);
        let quarantined_mask: u64 = words.enumerate().filter_map(is_quarantined).sum();
        let capacity = get(&harvest.sink_capacity);
        let readers = (get(&harvest.sink_readers) as usize).min(ANSWER_READERS_MAX);
        let lags = harvest.sink_lags[..readers].iter().map(get).filter(|lag| *lag != u64::MAX);
        let stages = board.latency(silo).stages.iter().map(|stage| (get(&stage.sum_ns), stage.count()));
        // The consumer's cursor first, so that no difference is negative.
        let harvested = get(&harvest.position);
        let dispatched_ever = get(&dispatch.position);
        let slots = board.slots(silo).iter();
        let is_answered = |stamps: &&board::SlotStamps| {
            let (submitted, answered) = (get(&stamps.submitted), get(&stamps.answered));
            answered >= submitted && get(&stamps.harvested) < submitted
        };
        SiloReading {
            harvested,
            dispatched_ever,
            submitted_ever: get(&feed.position),
            submitted: get(&feed.submitted),
            scheduled: get(&feed.scheduled),
            answered: get(&harvest.answered),
            late: get(&harvest.late),
            duplicated: get(&harvest.duplicated),
            device_state: get(&dispatch.device_state),
            quarantined: quarantined_mask.count_ones(),
            quarantined_mask,
            workers: board.shape().workers,
            errors: harvest.errors[..ERRORS_MAX].iter().map(get).collect(),
            sink_is_full: capacity > 0 && lags.max().is_some_and(|lag| lag >= capacity),
            answered_slots: slots.filter(is_answered).count() as u64,
            stages: stages.collect(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RoleReading {
    pub(super) kind: usize,
    pub(super) items: u64,
    /// The counter that should grow with `items`.
    pub(super) moved: u64,
    /// The frame in which it died, plus 1; 0: it has not.
    pub(super) died: u64,
    busy_ticks: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ThreadReading {
    pub(super) frames: u64,
    pub(super) frames_busy: u64,
    pub(super) allocations: u64,
    pub(super) roles: Vec<RoleReading>,
}

impl ThreadReading {
    fn of(board: &Board, index: usize) -> ThreadReading {
        let block = board.thread(index);
        let role = |block: &board::RoleBlock| {
            let (kind, silo, index) = (block.kind() as usize, block.silo() as usize, block.index() as usize);
            RoleReading {
                kind,
                items: get(&block.items),
                // A role without a known counter is not judged.
                moved: moved(board, kind, silo, index).unwrap_or_else(|| get(&block.items)),
                died: get(&block.died),
                busy_ticks: get(&block.busy_ticks),
            }
        };
        ThreadReading {
            // Busy frames first: a frame between the two loads makes the thread look less busy,
            // never more.
            frames_busy: get(&block.frames_busy),
            frames: get(&block.frames),
            allocations: get(&block.allocations).saturating_sub(1),
            roles: block.own_roles().iter().map(role).collect(),
        }
    }
}

/// The counter that grows with a role's items.
pub(super) fn moved(board: &Board, kind: usize, silo: usize, index: usize) -> Option<u64> {
    let shape = board.shape();
    if silo >= shape.silos as usize {
        return None;
    }
    match RoleKind::ALL.get(kind)? {
        RoleKind::Feed => Some(get(&board.feed(silo).position)),
        RoleKind::Dispatch => Some(get(&board.dispatch(silo).position)),
        RoleKind::Device => Some(get(&board.device(silo).completed) + get(&board.dispatch(silo).launched)),
        RoleKind::Poll => {
            let poll = board.poll(silo);
            let claimed = get(&poll.completed) + get(&poll.late_completions);
            Some(claimed + get(&poll.ready_pushed) + get(&poll.quarantined))
        }
        RoleKind::Decode if index < shape.decoders as usize => {
            let decode = board.decode(silo, index);
            Some(get(&decode.decoding) + get(&decode.decoded))
        }
        RoleKind::Harvest => Some(get(&board.harvest(silo).position)),
        // The graph role, and decoders beyond the board's, have no counter of their own.
        RoleKind::Graph | RoleKind::Decode => None,
    }
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub(super) struct CounterReading {
    pub(super) at_ns: u64,
    pub(super) silos: Vec<SiloReading>,
    pub(super) threads: Vec<ThreadReading>,
    pub(super) clock_steps: [u64; 2],
    pub(super) events_lost: u64,
    /// When a live source last sent something, nanoseconds since the start.
    pub(super) source_at_ns: Option<u64>,
    /// Shots that the source lost.
    pub(super) source_lost: u64,
}

impl CounterReading {
    /// Shots of all silos that were hit since `then`.
    pub(super) fn hit_since(&self, then: &CounterReading) -> u64 {
        self.silos.iter().zip(&then.silos).map(|(now, then)| now.hit_since(then)).sum()
    }

    pub(super) fn of(board: &Board, at_ns: u64, rate: TickRate) -> CounterReading {
        let (shape, clock) = (board.shape(), board.clock());
        let (source, start) = (board.source(), Ticks(get(&board.header().start_ticks)));
        let received = get(&source.received_ticks);
        let dropped: u64 = (0..shape.threads as usize).map(|index| get(&board.thread(index).events_dropped)).sum();
        CounterReading {
            at_ns,
            silos: (0..shape.silos as usize).map(|silo| SiloReading::of(board, silo)).collect(),
            threads: (0..shape.threads as usize).map(|index| ThreadReading::of(board, index)).collect(),
            clock_steps: [get(&clock.steps[0]), get(&clock.steps[1])],
            events_lost: dropped + get(&board.log().unkept),
            source_at_ns: (received > 0).then(|| rate.nanos(Ticks(received).since(start)).0),
            source_lost: get(&source.kernel_drops) + get(&source.answers_dropped),
        }
    }
}

/// The role with most busy time between two readings.
pub(super) struct Busy {
    pub(super) thread: String,
    pub(super) role: &'static str,
    pub(super) ticks: u64,
    pub(super) items: u64,
}

pub(super) fn busiest(board: &Board, then: &CounterReading, now: &CounterReading) -> Option<Busy> {
    let mut most: Option<(usize, usize, u64, u64)> = None;
    for (index, (old, new)) in then.threads.iter().zip(&now.threads).enumerate() {
        for (old, new) in old.roles.iter().zip(&new.roles) {
            let ticks = new.busy_ticks - old.busy_ticks;
            if most.is_none_or(|(_, _, before, _)| ticks > before) {
                most = Some((index, new.kind, ticks, new.items - old.items));
            }
        }
    }
    let (index, kind, ticks, items) = most?;
    let role = RoleKind::ALL.get(kind)?.name();
    Some(Busy { thread: board.thread(index).name.read(), role, ticks, items })
}

/// The stage of a silo in which shots spent most of their time between two readings: its mean, nanoseconds, and its
/// share of all stages in percent.
pub(super) fn longest_stage(then: &SiloReading, now: &SiloReading) -> Option<(Stage, f64, f64)> {
    let all: u64 = Stage::ALL.into_iter().map(|stage| now.spent_since(then, stage).0).sum();
    let longest = Stage::ALL.into_iter().max_by_key(|stage| now.spent_since(then, *stage).0)?;
    let (sum, count) = now.spent_since(then, longest);
    // Sums are published after counts.
    (count > 0 && sum > 0).then(|| (longest, sum as f64 / count as f64, sum as f64 * 100.0 / all as f64))
}

/// Mean time of each stage between two readings.
pub(super) fn stage_lines(then: &CounterReading, now: &CounterReading) -> Vec<String> {
    let mut lines = Vec::new();
    for (silo, (old, new)) in then.silos.iter().zip(&now.silos).enumerate() {
        let mean = |stage: Stage| {
            let (sum, count) = new.spent_since(old, stage);
            format!("{} {:.1} µs", stage.name(), sum as f64 / count.max(1) as f64 / 1e3)
        };
        let means: Vec<String> = Stage::ALL.into_iter().map(mean).collect();
        lines.push(format!("silo {silo}, means: {}", means.join(", ")));
    }
    lines
}

/// Free space for users on the file system of `path`, MiB.
#[cfg(unix)]
pub(super) fn free_mib(path: &Path) -> Option<f64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail as f64 * found.f_frsize as f64 / f64::from(1u32 << 20))
}

#[cfg(not(unix))]
pub(super) fn free_mib(_: &Path) -> Option<f64> {
    None
}
