//! Samples the board's words and makes a snapshot of the means.
//!
//! Owns the sums of the samples since the last snapshot, and the totals at that snapshot. Run by
//! the controller on a cold thread. Bounds: a sample reads some hundred words of each silo. Relaxed
//! loads, as every reader of the board. A consumer's cursor is read before its producer's, and a
//! depth is capped at its capacity.

use super::{QUEUES, Queue, Reading, SiloDepth, Snapshot, Unknown};
use crate::arbiter::directory::OPEN_MAX;
use crate::board::{Board, RoleBlock, ThreadBlock, get};
use crate::roles::RoleKind;
use crate::roles::SiloState;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::workers::mask;

/// Longest backlog that is shown.
const BACKLOG_MAX: Nanos = Nanos(60_000_000_000);
/// Slots read in one sample.
const SLOTS_LOOKED_AT: usize = 1_024;
/// Code of a running thread.
const RUNNING: u64 = 1;

/// Limits of a monitor.
#[derive(Clone, Copy, Debug)]
pub struct MonitorLimits {
    /// The silos of a thread whose heartbeat is older are unknown.
    pub silent: Nanos,
    /// Fewest samples of a mean.
    pub samples_min: u32,
}

/// Sums of one silo since its last snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sums: [f64; QUEUES],
    is_there: [bool; QUEUES],
    samples: u32,
    /// Totals at the last snapshot and at the last sample.
    before: Totals,
    last: Totals,
    last_activity: Ticks,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Unanswered shots.
    waiting: u64,
    answered: u64,
    errored: u64,
    /// Ticks that decode workers spent in tasks.
    busy: u64,
    /// Requests that found all ports of a frame in use.
    unheard: u64,
    at: Ticks,
}

/// The monitor of all silos of a board.
#[derive(Debug)]
pub struct Monitor {
    limits: MonitorLimits,
    rate: TickRate,
    silos: Vec<Seen>,
    number: u64,
}

impl Monitor {
    /// For the silos of `board`.
    pub fn new(board: &Board, limits: MonitorLimits, rate: TickRate) -> Monitor {
        let silos = vec![Seen::default(); board.shape().silos as usize];
        Monitor { limits, rate, silos, number: 0 }
    }

    /// Takes one sample of every silo.
    pub fn look(&mut self, board: &Board, now: Ticks) {
        for (silo, seen) in self.silos.iter_mut().enumerate() {
            let totals = totals(board, silo, now);
            if seen.last.at == Ticks(0) {
                // Counts from before the first sample belong to no interval.
                (seen.before, seen.last) = (totals, totals);
                continue;
            }
            let decoders = decoders(board, silo);
            for (at, share) in shares(board, silo).into_iter().enumerate() {
                seen.is_there[at] = share.is_some();
                seen.sums[at] += share.unwrap_or(0.0);
            }
            seen.is_there[Queue::Decode as usize] = decoders > 0;
            // A server's utilization is its share of the time since the last sample.
            let span = (totals.at.since(seen.last.at).0 * decoders).max(1) as f64;
            let busy = totals.busy.saturating_sub(seen.last.busy) as f64 / span;
            seen.sums[Queue::Decode as usize] += busy.clamp(0.0, 1.0);
            seen.samples += 1;
            if totals.unheard > seen.last.unheard {
                // A request was refused in between: the ports were full, however few are in use now.
                seen.sums[Queue::Ports as usize] = f64::from(seen.samples);
            }
            if totals.answered > seen.last.answered {
                seen.last_activity = now;
            }
            seen.last = totals;
        }
    }

    /// Marks silos of `snapshot` unknown whose readings are no longer valid at `now`.
    pub fn recheck(&self, board: &Board, snapshot: &mut Snapshot, now: Ticks) {
        for (silo, reading) in snapshot.silos.iter_mut().enumerate() {
            if let Some(why) = trouble(board, silo, now, self.limits.silent, self.rate) {
                *reading = Reading::Unknown(why);
            }
        }
    }

    /// Takes a snapshot: the means of the samples since the last one.
    pub fn take(&mut self, board: &Board, now: Ticks) -> Snapshot {
        self.number += 1;
        let (limits, rate) = (self.limits, self.rate);
        let reading = |(silo, seen): (usize, &mut Seen)| {
            let trouble = trouble(board, silo, now, limits.silent, rate);
            let reading = match trouble {
                Some(why) => Reading::Unknown(why),
                None if seen.samples < limits.samples_min => Reading::Unknown(Unknown::New),
                None => Reading::Known(seen.depth(rate)),
            };
            *seen = Seen { sums: [0.0; QUEUES], samples: 0, before: seen.last, ..*seen };
            reading
        };
        let silos = self.silos.iter_mut().enumerate().map(reading).collect();
        Snapshot { number: self.number, taken: now, silos }
    }
}

impl Seen {
    fn depth(&self, rate: TickRate) -> SiloDepth {
        let samples = f64::from(self.samples);
        let share = |at: usize| self.is_there[at].then(|| (self.sums[at] / samples).clamp(0.0, 1.0));
        let processed = self.last.answered.saturating_sub(self.before.answered);
        let waiting = self.last.waiting;
        let span = rate.nanos(self.last.at.since(self.before.at)).0;
        // With no answer in the interval, assume one: the backlog takes at least that long.
        let backlog = u128::from(waiting) * u128::from(span) / u128::from(processed.max(1));
        SiloDepth {
            waiting,
            backlog: Nanos(u64::try_from(backlog).unwrap_or(u64::MAX)).min(BACKLOG_MAX),
            processed,
            errors: self.last.errored.saturating_sub(self.before.errored),
            last_activity: self.last_activity,
            ..SiloDepth::of(std::array::from_fn(share))
        }
    }
}

fn totals(board: &Board, silo: usize, now: Ticks) -> Totals {
    let harvest = board.harvest(silo);
    let (answered, errored) = (get(&harvest.answered), get(&harvest.errored));
    // Shots in its slots, of any stream, and shots that have arrived at its feed and were not taken
    // up. The smaller count is read first, so that the difference is never negative, at worst a
    // little too large.
    let (harvested, feed) = (get(&harvest.position), board.feed(silo));
    let in_slots = get(&feed.position).saturating_sub(harvested);
    let taken_up = get(&feed.submitted);
    let waiting = in_slots + get(&feed.scheduled).saturating_sub(taken_up);
    let busy = (0..board.shape().decoders as usize).map(|index| get(&board.decode(silo, index).busy_ticks)).sum();
    Totals { waiting, answered, errored, busy, unheard: get(&board.arbiter(silo).unheard), at: now }
}

/// Number of decode workers that have a thread.
fn decoders(board: &Board, silo: usize) -> u64 {
    let is_one = |role: &&RoleBlock| role.kind() == RoleKind::Decode && role.silo() as usize == silo;
    board.threads().iter().flat_map(ThreadBlock::own_roles).filter(is_one).count() as u64
}

/// Utilization of each queue at this moment. Decode workers have none: theirs is a share of time.
fn shares(board: &Board, silo: usize) -> [Option<f64>; QUEUES] {
    let (dispatch, feed, poll) = (board.dispatch(silo), board.feed(silo), board.poll(silo));
    let (graph, arbiter) = (board.graph(silo), board.arbiter(silo));
    let slots = u64::from(board.shape().slots);
    let (taken, written) = (get(&dispatch.position), get(&feed.position));
    let workers = board.shape().workers;
    let in_flight = u64::from((!get(&poll.idle_mask) & mask(workers)).count_ones());
    let pool = get(&graph.ready_tasks);
    let mut shares = [None; QUEUES];
    let mut set = |queue: Queue, depth: u64, capacity: u64| {
        shares[queue as usize] = (capacity > 0).then(|| depth.min(capacity) as f64 / capacity as f64);
    };
    set(Queue::Rx, written.saturating_sub(taken), slots);
    set(Queue::Device, in_flight, workers.into());
    set(Queue::Ready, get(&poll.ready_depth), get(&poll.ready_capacity));
    set(Queue::Pool, graph.ready.iter().map(get).sum(), pool);
    set(Queue::Tx, completed(board, silo), slots);
    let has_ports = get(&arbiter.pages) > 0;
    set(Queue::Ports, get(&arbiter.open_count), if has_ports { OPEN_MAX as u64 } else { 0 });
    shares
}

/// Number of slots whose answer has not been harvested.
fn completed(board: &Board, silo: usize) -> u64 {
    let is_completed = |stamps: &&crate::board::SlotStamps| {
        // The last step is read first: a slot that is reused in between then counts as harvested.
        let (harvested, answered) = (get(&stamps.harvested), get(&stamps.answered));
        let submitted = get(&stamps.submitted);
        submitted != 0 && answered >= submitted && harvested < submitted
    };
    // Of very many slots only a sample is read.
    let slots = board.slots(silo);
    let step = (slots.len() / SLOTS_LOOKED_AT).max(1);
    (slots.iter().step_by(step).filter(is_completed).count() * step) as u64
}

/// Why the readings of a silo are not valid, if so.
fn trouble(board: &Board, silo: usize, now: Ticks, silent: Nanos, rate: TickRate) -> Option<Unknown> {
    // A drained or dead silo is never chosen.
    if get(&board.lifecycle(silo).state) != SiloState::Live as u64 {
        return Some(Unknown::NotRunning);
    }
    let mut is_run = false;
    for block in board.threads() {
        let mine = block.own_roles().iter().filter(|role| role.silo() as usize == silo);
        let mut has_role = false;
        for role in mine {
            has_role = true;
            if get(&role.died) != 0 {
                return Some(Unknown::Died(role.kind()));
            }
        }
        if !has_role {
            continue;
        }
        if get(&block.state) != RUNNING {
            return Some(Unknown::NotRunning);
        }
        let age = rate.nanos(now.since(Ticks(get(&block.heartbeat))));
        if age > silent {
            return Some(Unknown::Silent(age));
        }
        is_run = true;
    }
    (!is_run).then_some(Unknown::NotRunning)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Monitor, MonitorLimits};
    use crate::board::{self, Board, Place, Shape};
    use crate::placement::depth::{Queue, Reading, SiloDepth, Unknown};
    use crate::roles::RoleKind;
    use crate::units::{Nanos, TickRate, Ticks};

    const SHAPE: Shape = Shape { threads: 2, silos: 2, slots: 1_024, workers: 8, decoders: 2, streams: 2 };
    const LIMITS: MonitorLimits = MonitorLimits { silent: Nanos(1_000_000), samples_min: 2 };

    fn board() -> Board {
        let board = Board::create(SHAPE, Place::Private).unwrap();
        for silo in 0..2 {
            let thread = board.thread(silo);
            board::set(&thread.state, 1);
            board::set(&thread.roles_count, 2);
            board::set(&thread.roles[0].identity, RoleKind::Poll as u64 | (silo as u64) << 8);
            board::set(&thread.roles[1].identity, RoleKind::Decode as u64 | (silo as u64) << 8);
            board::set(&board.poll(silo).idle_mask, 0xff);
            board::set(&board.poll(silo).ready_capacity, 1_000);
        }
        board
    }

    /// Three samples, 100 µs apart, the last of them and the heartbeats at `end`; then a snapshot.
    fn watched(board: &Board, monitor: &mut Monitor, end: u64) -> Vec<Reading> {
        for now in [end - 200_000, end - 100_000, end] {
            (0..2).for_each(|thread| board::set(&board.thread(thread).heartbeat, now));
            monitor.look(board, Ticks(now));
        }
        monitor.take(board, Ticks(end)).silos
    }

    fn known(readings: &[Reading], silo: usize) -> SiloDepth {
        *readings[silo].known().unwrap()
    }

    /// The seed's test: 450 messages in a queue of 1,000.
    #[test]
    fn the_monitor_returns_the_right_utilization() {
        let board = board();
        board::set(&board.poll(0).ready_depth, 450);
        let readings = watched(&board, &mut Monitor::new(&board, LIMITS, TickRate::NANOS), 1_000_000);
        let depth = known(&readings, 0);
        assert_eq!((depth.max, depth.fullest), (0.45, Queue::Ready));
        assert_eq!(depth.utilization[Queue::Ready as usize], Some(0.45));
        assert_eq!(depth.utilization[Queue::Ports as usize], None, "no arbiter runs here");
        assert!((depth.average - 0.45 / 5.0).abs() < 1e-9, "five queues are there: {depth:?}");
        assert_eq!(known(&readings, 1).max, 0.0);
    }

    #[test]
    fn a_full_ring_reads_as_full_and_reserved_places_count_as_used() {
        let board = board();
        board::set(&board.feed(0).position, 5_000);
        board::set(&board.dispatch(0).position, 5_000 - 1_024);
        board::set(&board.poll(0).idle_mask, 0b1);
        board::set(&board.decode(0, 0).busy_ticks, 7);
        let mut monitor = Monitor::new(&board, LIMITS, TickRate::NANOS);
        let depth = known(&watched(&board, &mut monitor, 1_000_000), 0);
        assert_eq!(depth.utilization[Queue::Rx as usize], Some(1.0));
        assert_eq!(depth.utilization[Queue::Device as usize], Some(0.875));
        assert_eq!(depth.utilization[Queue::Decode as usize], Some(0.0), "busy before the first look");
        board::set(&board.decode(0, 0).busy_ticks, 7 + 100_000);
        let depth = known(&watched(&board, &mut monitor, 2_000_000), 0);
        assert!(depth.utilization[Queue::Decode as usize].unwrap() > 0.0);
    }

    #[test]
    fn what_waits_is_counted_in_time_at_the_pace_of_the_interval() {
        let board = board();
        let mut monitor = Monitor::new(&board, LIMITS, TickRate::NANOS);
        let _ = watched(&board, &mut monitor, 1_000_000);
        board::set(&board.feed(0).scheduled, 900);
        // Of the 700 taken up 50 were handed on to another silo, which is not this one's to answer.
        board::set(&board.feed(0).submitted, 700);
        board::set(&board.feed(0).position, 750);
        board::set(&board.harvest(0).position, 650);
        board::set(&board.harvest(0).answered, 600);
        board::set(&board.harvest(0).errored, 5);
        let depth = known(&watched(&board, &mut monitor, 1_600_000), 0);
        assert_eq!((depth.processed, depth.errors, depth.waiting), (600, 5, 300));
        // 600 answers in the 600 µs since the last snapshot: 300 more take 300 µs.
        assert_eq!(depth.backlog, Nanos(300_000));
        assert!(depth.last_activity >= Ticks(1_400_000));
        let depth = known(&watched(&board, &mut monitor, 2_600_000), 0);
        assert_eq!(depth.processed, 0);
        assert_eq!(depth.backlog, Nanos(300 * 1_000_000), "with nothing answered it takes longer than with one");
    }

    #[test]
    fn a_silo_that_died_or_fell_silent_or_was_hardly_seen_is_unknown_and_never_idle() {
        let board = board();
        let mut monitor = Monitor::new(&board, LIMITS, TickRate::NANOS);
        monitor.look(&board, Ticks(1_000));
        assert_eq!(monitor.take(&board, Ticks(1_000)).silos[0], Reading::Unknown(Unknown::New));
        assert!(watched(&board, &mut monitor, 1_000_000)[0].known().is_some());
        board::set(&board.thread(0).roles[0].died, 9);
        let readings = watched(&board, &mut monitor, 2_000_000);
        assert_eq!(readings[0], Reading::Unknown(Unknown::Died(RoleKind::Poll)));
        assert!(readings[1].known().is_some());
        let silent = monitor.take(&board, Ticks(4_000_000)).silos[1];
        assert_eq!(silent, Reading::Unknown(Unknown::Silent(Nanos(2_000_000))));
        board::set(&board.thread(1).state, 2);
        assert_eq!(watched(&board, &mut monitor, 5_000_000)[1], Reading::Unknown(Unknown::NotRunning));
    }
}
