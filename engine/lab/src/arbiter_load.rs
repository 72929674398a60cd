//! A contention load on the arbiter alone: each thread is a silo with an arbiter; all request the
//! same pages; no other role runs.
//!
//! A silo picks a page at random. It writes a page that it owns (or locks and releases it, one time
//! in eight). It requests any other page (7 of 16 DEFAULT, 4 LOCK, 3 LEASE of [`LEASE_US`], 2
//! MIGRATE) and repeats the request as each refusal advises, up to the limit of
//! [`BackOff`](crate::arbiter::retry::BackOff). Messages travel by bounded rings; a full ring loses
//! them, like any channel. Runs on cold threads of its own until its time is over and no transfer
//! is open; publishes to a board. Bounds: [`SAMPLES_MAX`] latencies kept, [`GRACE`] to settle, an
//! update of the board each [`PUBLISH_EVERY`].
//!
//! # Why
//! Two values outside of the protocol are recorded for each page: its current writer and its last
//! value. Violations are a second writer, a lost value, and a page with no owner or two at the end.

mod member;
mod outcome;

use crate::arbiter::deadlines::Timebase;
use crate::arbiter::directory::OwnershipDirectory;
use crate::arbiter::page::{Limits, PageTable, Routes, SILOS_MAX, Silo};
use crate::board::{self, Board, BoardError, Phase, Place, Shape};
use crate::clock::Clock;
use crate::units::Nanos;
use member::{Envelope, Member, MemberContext, Tally};
pub use outcome::LoadResult;
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Requested lease, microseconds.
pub const LEASE_US: u32 = 20;
/// Latencies kept of each kind and thread; later ones are only counted.
pub const SAMPLES_MAX: usize = 1 << 20;
/// How long transfers may stay open after the end.
pub const GRACE: Nanos = Nanos(2_000_000_000);
/// Interval between two updates of the board.
pub const PUBLISH_EVERY: Nanos = Nanos(1_000_000);
const RING_SLOTS: usize = 256;

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Pages: 1 to 2²⁰.
    pub pages: u32,
    /// Silos, a thread each: 2 to 64.
    pub silos: u8,
    /// Duration of the load.
    pub duration: Nanos,
    /// Page whose history the board shows; `None` selects the page in doubt, or the last that
    /// moved.
    pub watched: Option<u32>,
}

/// The actual state of a page, independent of the protocol. Relaxed: one writer at a time passes
/// the values to the next, ordered after it by the page's word; if the protocol fails, the values
/// show it.
#[derive(Default)]
struct Truth {
    writer: AtomicU32,
    last: AtomicU64,
}

/// State shared by all silos of a load.
struct Shared {
    load: Load,
    clock: Clock,
    board: Arc<Board>,
    truth: Vec<Truth>,
    is_over: AtomicBool,
    quiet: Vec<AtomicBool>,
}

/// A running load. Dropping it does not stop its threads: they run for their duration.
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Member>>,
}

/// Starts `load`, with its board in `place`.
///
/// # Errors
/// If the board cannot be created there.
///
/// # Panics
/// If pages or silos are out of bounds; the command line checks them first.
#[expect(clippy::disallowed_methods, reason = "a load's silos are threads of no engine")]
pub fn start(load: Load, clock: Clock, place: Place) -> Result<Running, BoardError> {
    assert!((2..=SILOS_MAX).contains(&load.silos) && load.pages > 0, "a load needs at least two silos and a page");
    let silos = u32::from(load.silos);
    let shape = Shape { threads: silos, silos, slots: 0, workers: 0, decoders: 0, streams: 0 };
    let board = Arc::new(Board::create(shape, place)?);
    describe(&board, load, &clock);
    let truth = (0..load.pages).map(|_| Truth::default()).collect();
    let quiet = (0..load.silos).map(|_| AtomicBool::new(false)).collect();
    let is_over = AtomicBool::new(false);
    let shared = Arc::new(Shared { load, clock, board, truth, is_over, quiet });
    let members = members(&shared);
    shared.board.publish();
    let threads = members.into_iter().map(|member| std::thread::spawn(move || member.live())).collect();
    Ok(Running { shared, threads })
}

impl Running {
    /// Its board.
    pub fn board(&self) -> &Board {
        &self.shared.board
    }

    /// A handle to its board that stays valid after its end.
    pub fn board_handle(&self) -> Arc<Board> {
        Arc::clone(&self.shared.board)
    }

    /// The clock of its board's timestamps.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Requests an early end.
    pub fn request_end(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        board::set(&self.shared.board.header().phase, Phase::Drain as u64);
    }

    /// Whether all silos have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the end and returns the result.
    #[must_use]
    pub fn finish(self) -> LoadResult {
        let members: Vec<Member> = self.threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        outcome::sum_up(&members, &self.shared)
    }
}

/// Describes the load in the board's header.
fn describe(board: &Board, load: Load, clock: &Clock) {
    let header = board.header();
    board::set(&header.started_utc_s, clock.started_utc().as_secs());
    board::set(&header.start_ticks, clock.start().0);
    board::set(&header.nanos_per_tick_q32, clock.rate().nanos_per_tick_q32());
    board::set(&header.phase, Phase::Live as u64);
    // A load has no shots, so no answer is late, and its threads are not hot threads.
    board::set(&header.late_ns, u64::MAX);
    board::set(&header.heartbeat_limit_ns, u64::MAX);
    // No console can attach to a load to end it, so it ends with its terminal.
    board::set(&board.control().drains_on_hangup, 1);
    header.version.write(env!("CARGO_PKG_VERSION"));
    header.profile.write("none");
    header.input.write(&format!("arbiter load: {} silos, {} pages", load.silos, load.pages));
    header.device.write("none");
    header.decoder.write("none");
    header.predecoder.write("none");
    for silo in 0..load.silos {
        let block = board.thread(usize::from(silo));
        block.name.write(&format!("arbiter-{silo}"));
        board::set(&block.heartbeat, clock.ticks().0);
        board::set(&block.state, 1);
    }
}

fn members(shared: &Arc<Shared>) -> Vec<Member> {
    let silos = shared.load.silos;
    let mut outs: Vec<Vec<Option<Producer<Envelope>>>> =
        (0..silos).map(|_| (0..silos).map(|_| None).collect()).collect();
    let mut ins: Vec<Vec<Consumer<Envelope>>> = (0..silos).map(|_| Vec::new()).collect();
    for (from, outs) in outs.iter_mut().enumerate() {
        for to in (0..silos as usize).filter(|to| *to != from) {
            let (producer, consumer) = channel(RING_SLOTS);
            outs[to] = Some(producer);
            ins[to].push(consumer);
        }
    }
    let member = |(at, (outs, ins)): (usize, (_, _))| member(shared, at, outs, ins);
    outs.into_iter().zip(ins).enumerate().map(member).collect()
}

fn member(
    shared: &Arc<Shared>,
    at: usize,
    outs: Vec<Option<Producer<Envelope>>>,
    ins: Vec<Consumer<Envelope>>,
) -> Member {
    let (me, load) = (Silo::new(at as u8), shared.load);
    let owner = |page: u32| Silo::new((page % u32::from(load.silos)) as u8);
    let table = Arc::new(PageTable::new(me, load.pages, Limits::SEED, owner));
    let routes = Arc::new(Routes::new(load.pages, owner));
    let base = Timebase { rate: shared.clock.rate(), start: shared.clock.start() };
    let mut directory = OwnershipDirectory::new(table, routes, base, |_| 0);
    directory.watch(load.watched);
    Member {
        directory,
        context: MemberContext {
            me,
            clock: shared.clock.clone(),
            values: vec![0; load.pages as usize],
            incoming: 0,
            outs,
            lost: 0,
        },
        shared: Arc::clone(shared),
        ins,
        asked: None,
        random: 0x9E37_79B9_7F4A_7C15 ^ (at as u64 + 1) << 32,
        tally: Tally::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Load, start};
    use crate::board::Place;
    use crate::clock::Clock;
    use crate::units::Nanos;

    /// Durations, ms: a longer one follows if the machine's threads waited longer than the load
    /// lasted.
    const TRIES: [u64; 5] = [200, 1_000, 5_000, 20_000, 60_000];

    #[test]
    fn three_silos_contending_for_the_same_pages_violate_no_invariant() {
        let is_seen = |millis: u64| {
            let load = Load { pages: 3, silos: 3, duration: Nanos::from_millis(millis), watched: None };
            let found = start(load, Clock::machine(), Place::Private).unwrap().finish();
            assert!(found.violations.is_empty(), "{:?}", found.violations);
            assert_eq!(found.responses.values().sum::<u64>(), found.decisions);
            found.transfers > 0 && found.commits > found.transfers && found.responses.contains_key("granted")
        };
        assert!(TRIES.into_iter().any(is_seen), "no page was granted and moved");
    }

    #[test]
    fn the_board_of_a_load_says_what_the_load_has_found() {
        assert!(TRIES.into_iter().any(says_what_it_found), "no transfer of the watched page by both silos");
    }

    /// Whether each silo produced results.
    fn says_what_it_found(millis: u64) -> bool {
        let load = Load { pages: 5, silos: 2, duration: Nanos::from_millis(millis), watched: Some(4) };
        let running = start(load, Clock::machine(), Place::Private).unwrap();
        while !running.is_finished() {
            std::thread::yield_now();
        }
        let snapshot = running.board().snapshot(running.clock());
        let found = running.finish();
        let views: Vec<_> = snapshot.silos.iter().map(|silo| silo.arbiter.clone().unwrap()).collect();
        let decisions: u64 = views.iter().flat_map(|view| &view.decisions).map(|(_, times)| times).sum();
        assert_eq!(decisions, found.decisions);
        assert_eq!(views.iter().map(|view| view.arrived).sum::<u64>(), found.transfers);
        assert_eq!(views.iter().map(|view| view.doubted).sum::<u64>(), found.in_doubt);
        for view in &views {
            assert_eq!((view.pages, view.history_page), (5, Some(4)));
            assert_eq!(view.states.iter().map(|(_, pages)| pages).sum::<u64>(), 5, "{view:?}");
        }
        views.iter().all(|view| !view.history.is_empty() && view.transfer.count() > 0)
    }
}
