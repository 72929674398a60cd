//! The cold side of a silo's device: recovers it after a loss, monitors it in operation, closes it
//! at the end.
//!
//! Owns one thread for each silo, and the rings that carry a rig to and from the dispatcher.
//! Bounds: one rig on each ring; a renewal waits [`RETRY_FIRST`] to [`RETRY_MAX`] between attempts
//! and ends with the engine. Closing a rig takes as long as its graphs run; the engine waits
//! [`END_LIMIT`] for the thread and then abandons it. Never touches a rig that the dispatcher
//! holds.
//!
//! ```text
//!  dispatcher ── give_back ──▶ supervisor: nothing runs any more? ─▶ close ─▶ open, capture ── take_renewed ──▶ dispatcher
//!                                └── no: wait; what still runs may still write, and is never replaced
//! ```
//!
//! # Why a thread of its own
//! Opening a context is slow and starts driver threads, a hung device blocks its caller forever,
//! and the control thread has deadlines.

use super::context::Context;
use super::facts::DeviceFacts;
use super::nvml::Clocks;
use super::rig::{NOT_READY, Rig, Watched, Works};
use super::transit::Transits;
use crate::board::{self, Board, DeviceBlock};
use crate::device::Renew;
use crate::host::pin;
use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::spin::Phase;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// Interval between two checks of a working device.
const LOOK: Duration = Duration::from_millis(100);
/// Checks between two readings of memory and clocks.
const LOOKS_PER_READING: u64 = 10;
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the thread at the end: one check of a closing rig, with a margin.
const END_LIMIT: Duration = Duration::from_secs(3);

/// A rig in transit between two threads: in one place at a time.
#[derive(Clone, Copy)]
struct Carried(NonNull<Rig>);

// SAFETY: a rig may move between threads, and this is the only pointer to it in transit.
unsafe impl Send for Carried {}

impl Carried {
    fn load(rig: Box<Rig>) -> Carried {
        Carried(NonNull::from(Box::leak(rig)))
    }

    /// Recovers the box. Called once: by the receiver, or by the sender if there is no receiver.
    fn unload(self) -> Box<Rig> {
        // SAFETY: made by `load` from a box, and popped from a ring that delivers each item to one
        // thread once, or left in a ring whose other end has been dropped.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

/// State of a timing sample: 0 none, 1 requested, 2 taken. Relaxed: the driver orders the events.
#[derive(Debug, Default)]
struct Sample(AtomicU64);

const ASKED: u64 = 1;
const TAKEN: u64 = 2;

/// The dispatcher's end of the rings.
pub struct RigLease {
    back: Producer<Carried>,
    renewed: Consumer<Carried>,
    sample: Arc<Sample>,
}

impl RigLease {
    pub(super) fn give_back(&mut self, rig: Box<Rig>) {
        let carried = Carried::load(rig);
        // A silo has one rig, so there is room. Otherwise the rig would leak, which is harmless.
        let _ = self.back.push(carried);
    }

    pub(super) fn take_renewed(&mut self) -> Option<Box<Rig>> {
        self.renewed.pop().map(Carried::unload)
    }

    /// Whether this launch is to be timed.
    #[inline]
    pub(super) fn take_sample(&self) -> bool {
        self.sample.0.load(Ordering::Relaxed) == ASKED
    }

    pub(super) fn sampled(&self) {
        self.sample.0.store(TAKEN, Ordering::Relaxed);
    }
}

/// A silo's supervisor. Dropping it ends its thread.
pub struct Supervisor {
    orders: Option<Sender<()>>,
    renewed: Receiver<()>,
    ended: Receiver<()>,
    has_ended: bool,
}

/// State of the supervisor's thread.
struct SupervisorThread {
    silo: usize,
    index: u32,
    works: Works,
    board: Arc<Board>,
    back: Consumer<Carried>,
    fresh: Producer<Carried>,
    sample: Arc<Sample>,
    first: Receiver<Watched>,
    orders: Receiver<()>,
    transits: Transits,
    watched: Option<Watched>,
    /// The device's place on the bus.
    pci: String,
    /// `None` until the first rig; the count is then that of the previous supervisor.
    removed: Option<Removed>,
    /// The latest rig.
    last: Option<Carried>,
}

/// Detection events removed, over all contexts, without those of warm-up.
#[derive(Debug, Default)]
struct Removed {
    before: u64,
    now: u64,
    warm: u64,
}

/// Registers the rig that the dispatcher captured at Init.
pub struct Introduce(Sender<Watched>);

impl Introduce {
    /// Registers `rig` with the supervisor.
    pub fn rig(self, rig: &Rig) {
        // A supervisor that has ended monitors nothing.
        let _ = self.0.send(rig.watched());
    }
}

/// Starts the supervisor of silo `silo` on the device described by `facts`; its thread runs on
/// `cores`.
#[expect(clippy::disallowed_methods, reason = "a cold thread that calls the driver, which may block it")]
pub fn supervise(
    silo: usize,
    facts: &DeviceFacts,
    works: Works,
    board: Arc<Board>,
    transits: Transits,
    cores: Vec<u32>,
) -> (Supervisor, RigLease, Introduce) {
    let (back, took_back) = spsc::channel(2);
    let (fresh, renewed_rigs) = spsc::channel(2);
    let (introduce, first) = channel();
    let (orders, ordered) = channel();
    let (say_renewed, renewed) = channel();
    let (say_ended, ended) = channel();
    let sample = Arc::new(Sample::default());
    let lent = RigLease { back, renewed: renewed_rigs, sample: Arc::clone(&sample) };
    let keeping = SupervisorThread {
        silo,
        index: facts.index,
        works,
        board,
        back: took_back,
        fresh,
        sample,
        first,
        orders: ordered,
        transits,
        watched: None,
        pci: facts.pci.clone(),
        removed: None,
        last: None,
    };
    let named = std::thread::Builder::new().name(format!("cuda-{silo}"));
    // Without the thread a lost device stays lost; everything else works.
    let _ = named.spawn(move || {
        // As for all cold threads: if pinning is not permitted the scheduler places it. Driver
        // threads inherit the cores.
        let _ = pin::confine_current_thread(&cores);
        keeping.run(&say_renewed);
        let _ = say_ended.send(());
    });
    (Supervisor { orders: Some(orders), renewed, ended, has_ended: false }, lent, Introduce(introduce))
}

impl Renew for Supervisor {
    fn begin(&mut self) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(());
        }
    }

    fn is_done(&mut self) -> bool {
        self.renewed.try_recv().is_ok()
    }

    fn retire(&mut self) {
        self.orders = None;
    }

    fn has_ended(&mut self) -> bool {
        self.has_ended |= !matches!(self.ended.try_recv(), Err(TryRecvError::Empty));
        self.has_ended
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.orders = None;
        // A thread that the driver blocks is abandoned.
        if !self.has_ended {
            let _ = self.ended.recv_timeout(END_LIMIT);
        }
    }
}

/// Closes `rig` when none of its graphs runs. A graph that never ends blocks the thread: until it
/// ends the silo gets no other rig, and at the end of the engine the thread is abandoned.
fn close(rig: Box<Rig>) {
    while !rig.settle() {}
    drop(rig);
}

impl SupervisorThread {
    fn block(&self) -> &DeviceBlock {
        self.board.device(self.silo)
    }

    fn run(mut self, renewed: &Sender<()>) {
        // Here, because a driver in trouble may hold it up for ever.
        let clocks = Clocks::of(&self.pci);
        let mut looks = 0;
        loop {
            match self.orders.recv_timeout(LOOK) {
                Ok(()) => {
                    self.watched = None;
                    match self.renew() {
                        Some(rig) => {
                            self.watched = Some(rig.watched());
                            let rig = Carried::load(Box::new(rig));
                            self.last = Some(rig);
                            let _ = self.fresh.push(rig);
                            let _ = renewed.send(());
                        }
                        None => return,
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.watch((looks % LOOKS_PER_READING == 0).then_some(clocks.as_ref()));
                    looks += 1;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // The dispatcher has ended: its rig was returned, never captured, or never taken from the
        // ring.
        self.watched = None;
        if self.fresh.depth() > 0
            && let Some(rig) = self.last.take()
        {
            close(rig.unload());
        }
        while let Some(rig) = self.back.pop() {
            close(rig.unload());
        }
    }

    /// Closes the lost rig and captures another; `None` if the engine ends first. After an error of
    /// a kernel there is no other in this process: says so on the board and waits for the end.
    fn renew(&mut self) -> Option<Rig> {
        let mut lost = self.back.pop().map(Carried::unload);
        self.begin_count();
        self.count_removed();
        if let Some(removed) = &mut self.removed {
            (removed.before, removed.now) = (removed.before + removed.now, 0);
        }
        let mut retry = RETRY_FIRST;
        loop {
            if let Some(rig) = lost.take() {
                // A running graph may still write into buffers that a new rig would use.
                if rig.settle() { drop(rig) } else { lost = Some(rig) }
            }
            if lost.is_none() {
                match Context::open(self.index).and_then(|context| Rig::capture(context, self.works.clone())) {
                    Ok(rig) => {
                        rig.context().unbind();
                        board::add(&self.block().renewals, 1);
                        return Some(rig);
                    }
                    Err(error) => {
                        board::add(&self.block().renewals_failed, 1);
                        if let Some(code) = error.process_error() {
                            board::set(&self.block().needs_restart_code, u64::from(code.unsigned_abs()));
                            while self.orders.recv().is_ok() {}
                            return None;
                        }
                    }
                }
            }
            match self.orders.recv_timeout(retry) {
                Err(RecvTimeoutError::Disconnected) => return None,
                Ok(()) | Err(RecvTimeoutError::Timeout) => retry = (retry * 2).min(RETRY_MAX),
            }
        }
    }

    /// Checks a working device once; `clocks`: with a reading of its memory, and of its clocks if there are any.
    fn watch(&mut self, reading: Option<Option<&Clocks>>) {
        if let Ok(first) = self.first.try_recv() {
            self.watched = Some(first);
            self.begin_count();
        }
        self.count_removed();
        let Some(watched) = self.watched else { return };
        self.read_sample(&watched);
        self.judge_transits();
        if let Some(clocks) = reading {
            self.read_memory(&watched);
            if let Some(clocks) = clocks {
                let (sm, memory) = clocks.read_mhz();
                board::set(&self.block().clock_sm_mhz, sm);
                board::set(&self.block().clock_memory_mhz, memory);
            }
        }
    }

    /// Starts counting at its first rig, when the previous supervisor has ended; continues the
    /// counts of previous paths.
    fn begin_count(&mut self) {
        let before = board::get(&self.block().predecoded_events);
        self.removed.get_or_insert(Removed { before, ..Removed::default() });
    }

    fn count_removed(&mut self) {
        let board = &self.board;
        let Some(removed) = &mut self.removed else { return };
        let workers = 0..self.works.bank.len();
        removed.now = workers.map(|worker| self.works.reports.removed(worker)).sum();
        let total = removed.before + removed.now;
        if board::get(&board.header().phase) < Phase::Live as u64 {
            removed.warm = total;
        }
        board::set(&board.device(self.silo).predecoded_events, total.saturating_sub(removed.warm));
    }

    /// Reads the time between the two events, if a launch was timed, and requests the next sample.
    fn read_sample(&self, watched: &Watched) {
        if self.sample.0.load(Ordering::Relaxed) == TAKEN {
            let mut elapsed_ms = 0f32;
            // SAFETY: a place for the number; events that live until this thread closes their rig.
            // Events of a context that was lost meanwhile return an error.
            let code = unsafe {
                (watched.driver.context_set)(watched.context);
                (watched.driver.event_elapsed)(&raw mut elapsed_ms, watched.events[0], watched.events[1])
            };
            if code == NOT_READY {
                return;
            }
            if code == 0 && elapsed_ms >= 0.0 {
                self.block().graph.record((f64::from(elapsed_ms) * 1e6) as u64);
            }
        }
        self.sample.0.store(ASKED, Ordering::Relaxed);
    }

    /// Records the time from completions to poll's claims, as far as two clocks allow.
    fn judge_transits(&mut self) {
        let block = self.board.device(self.silo);
        if let Some(wrong_by_ns) = self.transits.judge(|ns| block.transit.record(ns)) {
            board::set(&block.transit_error_ns, wrong_by_ns);
        }
    }

    fn read_memory(&self, watched: &Watched) {
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for the numbers; the context lives until this thread closes its rig.
        let code = unsafe {
            (watched.driver.context_set)(watched.context);
            (watched.driver.memory_info)(&raw mut free, &raw mut total)
        };
        if code == 0 {
            board::set(&self.block().memory_free_bytes, free as u64);
            board::set(&self.block().memory_total_bytes, total as u64);
        }
    }
}
