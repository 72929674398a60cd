//! The simulated device, on the CPU: for profiles with `Sim`, and for injected faults of launches.
//!
//! Owns the launcher that dispatch calls and the role that simulates the device. After the drawn
//! latency it executes the three steps of a worker's graph: input by mailbox, predecode, outputs
//! then ready flag. The launcher draws faults from one seed and passes them with the mail. Bounds:
//! one launch per worker. Never reads a payload address that dispatch has not validated.
//!
//! ```text
//!  launch (dispatch's thread)                         role (device's thread)
//!  fate, mailbox ──S3 doorbell──▶ rung → due = now + latency ──due──▶ predecode → outputs ──S4 ready──▶ poll
//! ```

use super::{Launch, Launched};
use crate::board::{self, Board};
use crate::fault::{Injector, LaunchFate};
use crate::hot::{Frame, Role, Work};
use crate::predecode::Predecoder;
use crate::profile::Latency;
use crate::roles::RoleKind;
use crate::units::{Nanos, TickRate, Ticks};
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::jobs::{Job, JobBank};
use pinwheel_edge::slot::table::SlotTable;
use pinwheel_edge::slot::workers::{DeviceWorkers, Mail, WorkerBank};
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::{AtomicU64, DataWords, Ordering, read_words, write_words};
use std::f64::consts::TAU;
use std::sync::Arc;

const FATE_NORMAL: u64 = 0;
const FATE_NEVER: u64 = 1;
const FATE_LATE: u64 = 2;

/// State shared by launcher and role.
#[derive(Debug)]
pub struct SimShared {
    /// The fault of each worker's launch in progress; ordered by S3 like the mailbox.
    fates: DataWords,
    /// The device is lost until it is reset. Relaxed: it only decides when faults begin and
    /// publishes no data.
    lost: AtomicU64,
}

impl SimShared {
    /// Creates the state for `workers` workers.
    pub fn new(workers: usize) -> SimShared {
        SimShared { fates: DataWords::new(workers, 1), lost: AtomicU64::new(0) }
    }
}

/// The graph of a worker: its three steps.
pub struct Graph {
    table: Arc<SlotTable>,
    jobs: Arc<JobBank>,
    bank: Arc<WorkerBank>,
    predecoder: Box<dyn Predecoder>,
    syndrome: Vec<u64>,
    residual: Vec<u64>,
    observables: Vec<u64>,
}

impl Graph {
    /// Builds a graph for one thread.
    pub fn new(
        table: Arc<SlotTable>,
        jobs: Arc<JobBank>,
        bank: Arc<WorkerBank>,
        predecoder: Box<dyn Predecoder>,
    ) -> Graph {
        let geometry = table.geometry();
        Graph {
            syndrome: vec![0; geometry.detector_words as usize],
            residual: vec![0; geometry.detector_words as usize],
            observables: vec![0; geometry.observable_words as usize],
            table,
            jobs,
            bank,
            predecoder,
        }
    }

    /// Runs the graph for `mail` on worker `w`; returns the number of detection events removed by
    /// the predecoder.
    fn run(&mut self, w: usize, mail: Mail) -> u32 {
        // Dispatch validated the address; should it be wrong nevertheless, it reads as an empty
        // syndrome.
        match self.table.payload_at(mail.address) {
            Some(words) => read_words(words, &mut self.syndrome),
            None => self.syndrome.fill(0),
        }
        let predecoded = self.predecoder.predecode(&self.syndrome, &mut self.residual, &mut self.observables);
        let job = Job::from_number(mail.job);
        write_words(self.jobs.detectors(&job), &self.residual);
        write_words(self.jobs.observables(&job), &self.observables);
        self.bank.complete(w, mail.generation);
        predecoded.resolved
    }
}

/// The launcher, called by dispatch.
pub struct SimLauncher {
    shared: Arc<SimShared>,
    injector: Injector,
    graph: Graph,
}

impl SimLauncher {
    /// Builds a launcher with its own graph (for launches that complete before they return) and its
    /// own draws.
    pub fn new(shared: Arc<SimShared>, injector: Injector, graph: Graph) -> SimLauncher {
        SimLauncher { shared, injector, graph }
    }

    fn ring(&self, worker: usize, generation: u64, fate: u64) {
        self.shared.fates.record(worker)[0].store(fate);
        self.graph.bank.ring(worker, generation);
    }
}

impl Launch for SimLauncher {
    fn launch(&mut self, worker: usize, mail: Mail, frame: &Frame<'_>) -> Launched {
        // Warm-up shots get no faults: they have no recipient.
        let fate = if frame.phase == Phase::Warmup { LaunchFate::Sound } else { self.injector.launch() };
        // As on a real device, every call after the loss reports it.
        if self.shared.lost.load(Ordering::Relaxed) != 0 {
            return Launched::Lost;
        }
        match fate {
            LaunchFate::Sound => self.ring(worker, mail.generation, FATE_NORMAL),
            LaunchFate::NeverReady => self.ring(worker, mail.generation, FATE_NEVER),
            LaunchFate::LateReady => self.ring(worker, mail.generation, FATE_LATE),
            LaunchFate::InsideLaunch => {
                self.graph.run(worker, mail);
            }
            LaunchFate::NotStarted => return Launched::NotStarted,
            LaunchFate::Unknown { runs } => {
                if runs {
                    self.ring(worker, mail.generation, FATE_NORMAL);
                }
                return Launched::Unknown;
            }
            LaunchFate::LosesDevice => {
                self.shared.lost.store(1, Ordering::Relaxed);
                return Launched::Lost;
            }
        }
        Launched::Started
    }
}

/// Draws launch latencies.
#[derive(Debug)]
struct LatencyDraw {
    latency: Latency,
    rate: TickRate,
    injector: Injector,
}

impl LatencyDraw {
    fn draw(&mut self) -> Ticks {
        let us = match self.latency {
            Latency::None => return Ticks(0),
            Latency::Fixed { us } => us,
            Latency::Uniform { min_us, max_us } => min_us + (max_us - min_us) * self.injector.uniform(),
            Latency::LogNormal { median_us, sigma } => {
                // Box and Muller, 1958; 1 - u keeps the logarithm finite.
                let (u, v) = (1.0 - self.injector.uniform(), self.injector.uniform());
                (median_us * (sigma * (-2.0 * u.ln()).sqrt() * (TAU * v).cos()).exp()).min(1e6)
            }
        };
        self.rate.ticks(Nanos((us * 1e3) as u64))
    }
}

/// The simulated device, a role.
pub struct SimDevice {
    silo: usize,
    shared: Arc<SimShared>,
    health: Arc<HealthWord>,
    workers: DeviceWorkers,
    graph: Graph,
    board: Arc<Board>,
    latency: LatencyDraw,
    late_by: Ticks,
    /// By worker: the launch in progress and when it is due.
    pending: Box<[Option<(Mail, Ticks)>]>,
}

/// Latencies of the stand-in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimTimes {
    /// From launch to ready.
    pub latency: Latency,
    /// Additional time of a late launch.
    pub late_by: Nanos,
}

impl SimDevice {
    /// Builds the role of silo `silo`; `injector` seeds the latency draws.
    pub fn new(
        silo: usize,
        (shared, health): (Arc<SimShared>, Arc<HealthWord>),
        workers: DeviceWorkers,
        graph: Graph,
        (board, rate): (Arc<Board>, TickRate),
        times: SimTimes,
        injector: Injector,
    ) -> SimDevice {
        let pending = vec![None; workers.len()].into();
        let latency = LatencyDraw { latency: times.latency, rate, injector };
        let late_by = rate.ticks(times.late_by);
        SimDevice { silo, shared, health, workers, graph, board, latency, late_by, pending }
    }

    fn reset(&mut self) {
        for w in 0..self.pending.len() {
            let _ = self.workers.rung(w);
            self.pending[w] = None;
        }
        self.shared.lost.store(0, Ordering::Relaxed);
        self.health.advance(Health::Resetting);
    }

    fn take_mail(&mut self, w: usize, now: Ticks) {
        let Some(mail) = self.workers.rung(w) else { return };
        let due = now.plus(self.latency.draw());
        self.pending[w] = match self.shared.fates.record(w)[0].load() {
            FATE_NEVER => None,
            FATE_LATE => Some((mail, due.plus(self.late_by))),
            _ => Some((mail, due)),
        };
    }
}

impl Role for SimDevice {
    fn kind(&self) -> RoleKind {
        RoleKind::Device
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        if self.health.current() == Health::Resetting {
            self.reset();
            return Work(1);
        }
        // A lost device accepts and completes nothing until it is reset.
        if self.shared.lost.load(Ordering::Relaxed) != 0 {
            return Work(0);
        }
        let mut items = 0;
        for w in 0..self.pending.len() {
            self.take_mail(w, frame.now);
            if let Some((mail, due)) = self.pending[w]
                && due <= frame.now
            {
                self.pending[w] = None;
                let removed = self.graph.run(w, mail);
                let block = self.board.device(self.silo);
                board::add(&block.completed, 1);
                if removed > 0 && frame.phase != Phase::Warmup {
                    board::add(&block.predecoded_events, u64::from(removed));
                }
                items += 1;
            }
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        // Launches of a lost device never end, and only a further launch reveals a reset.
        self.shared.lost.load(Ordering::Relaxed) != 0 || self.pending.iter().all(Option::is_none)
    }
}
