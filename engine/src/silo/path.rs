//! What lies between a silo's doors: dispatch, device, poll, graph and decode, wired.
//!
//! Owns nothing that runs. Runs once at Init and once at each return of the silo, on a cold thread.

use super::{Common, Decoding, Draws, Gpu, Owner, cuda, recovery, spec, timebase};
use crate::arbiter::errand::ArbiterDesk;
use crate::board;
use crate::decode::carries::Carries;
use crate::decode::joint::{JointCells, Joints};
use crate::decode::moves::Moves;
use crate::decode::orchestrator::{Orchestrator, OrchestratorParts};
use crate::decode::pool::Pool;
use crate::decode::state::StreamStates;
use crate::decode::steward::{Link, Post, Steward};
use crate::decode::worker::{Decoder, DecoderParts};
use crate::device::Recovery;
use crate::device::sim::{Graph, SimDevice, SimLauncher, SimShared, SimTimes};
use crate::dispatch::{Dispatcher, Pipe, Poller, Tombstones};
use crate::graph::{Brought, CompileError, Config, Event, Worker};
use crate::hot::RoleSpec;
use crate::profile::{Device, Latency, Profile, RoleKind};
use crate::units::Nanos;
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::slot::jobs::JobBank;
use pinwheel_edge::slot::table::{DispatchEnd, Geometry};
use pinwheel_edge::slot::workers::{DeviceWorkers, DispatchWorkers, WorkerBank, bank};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What a path is made of beside what it makes itself.
pub(super) struct PathParts<'a> {
    pub(super) pipe: &'a Pipe,
    pub(super) states: &'a Arc<StreamStates>,
    pub(super) end: DispatchEnd,
    pub(super) arbiter: ArbiterParts,
    pub(super) joints: (Option<Joints>, Option<Arc<JointCells>>),
    pub(super) gpu: Option<Gpu>,
    pub(super) draws: Draws<'a>,
    /// Where decode workers leave the times of their tasks, if somebody asks for them.
    pub(super) times: Option<Sender<Vec<Event>>>,
}

/// What an arbiter has of other silos.
pub(super) struct ArbiterParts {
    pub(super) links: Vec<Link>,
    pub(super) desk: Option<ArbiterDesk>,
    pub(super) post: Option<Post>,
    /// Silos that are dead, and their heirs.
    pub(super) heirs: Vec<(Owner, Owner)>,
}

/// What lies between a silo's doors: from dispatch to decode.
pub(super) struct Path {
    pub(super) workers: Arc<WorkerBank>,
    /// In the order of the path, decode last.
    pub(super) specs: Vec<RoleSpec>,
    pub(super) recovery: Recovery,
}

pub(super) fn path(
    profile: &Profile,
    decoders: u32,
    parts: PathParts<'_>,
    carries: Option<Arc<Carries>>,
    common: &Common,
) -> Result<Path, CompileError> {
    let PathParts { pipe, states, end, arbiter, joints: (joints, cells), gpu, draws, times } = parts;
    let (silo, base, jobs) = (pipe.silo, timebase(common), pipe.jobs.len() as u32);
    let (dispatch_workers, device_workers, poll_workers, workers) = bank(profile.workers as usize);
    let (refused, refused_end) = Tombstones::channel(profile.slots);
    let (expired, expired_end) = Tombstones::channel(profile.slots);
    let (dispatch_ends, bank_of) = ((end, dispatch_workers, refused), (pipe, &workers));
    let (mut specs, recovery, tap) = match gpu {
        Some(gpu) => cuda::specs(profile, bank_of, gpu, dispatch_ends, recovery(profile, pipe), common),
        None => {
            (stand_in(profile, bank_of, device_workers, dispatch_ends, &draws, common), recovery(profile, pipe), None)
        }
    };
    let poller = Poller::new(pipe.clone(), poll_workers, expired, profile.free_worker, base.rate).tapped(tap);
    let config = Config { streams: pipe.streams, ..Config::from(&profile.graph) };
    let pool = Pool::new(config, decoders, jobs, pipe.streams, carries.as_deref(), &common.clock)?;
    show(&pool, profile, pipe);
    let ArbiterParts { links, desk, post, heirs } = arbiter;
    let orchestrator = Orchestrator::new(OrchestratorParts {
        pipe: pipe.clone(),
        bank: Arc::clone(&workers),
        submitter: pool.submitter,
        regions: pool.regions,
        tombstones: vec![refused_end, expired_end],
        decoders,
        carries: carries.clone(),
        steward: Steward::new(Arc::clone(states), base, links, post).after(&heirs),
        joints,
        moves: desk.map(|desk| Moves::new(desk, Arc::clone(&pipe.turns))),
        states: Arc::clone(states),
    });
    specs.push(spec(RoleKind::Poll, silo, 0, move |_| Ok(Box::new(poller))));
    specs.push(spec(RoleKind::Graph, silo, 0, move |_| Ok(Box::new(orchestrator))));
    let (bank, decoding) = (&workers, &common.decoding);
    let bench = Bench { pipe, bank, states, carries, joints: cells, draws: &draws, decoding, times };
    specs.extend((0..).zip(pool.workers).map(|(index, worker)| bench.decoder(index, worker)));
    Ok(Path { workers, specs, recovery })
}

/// Job buffers, all free, and the queue that holds every one of them.
pub(super) fn job_bank(profile: &Profile, decoders: u32, geometry: Geometry) -> (Arc<JobBank>, Arc<Fifo<u32>>) {
    let jobs = profile.slots as usize + profile.workers as usize + decoders as usize;
    let bank = JobBank::new(jobs, geometry.detector_words as usize, geometry.observable_words as usize);
    (Arc::new(bank), Arc::new(Fifo::new(jobs)))
}

/// The CPU stand-in: dispatch with its launcher, and the role that plays the device.
fn stand_in(
    profile: &Profile,
    (pipe, workers): (&Pipe, &Arc<WorkerBank>),
    device_workers: DeviceWorkers,
    (end, dispatch_workers, refused): (DispatchEnd, DispatchWorkers, Tombstones),
    draws: &Draws<'_>,
    common: &Common,
) -> Vec<RoleSpec> {
    let graph = || {
        let predecoder = common.decoding.predecoder();
        Graph::new(Arc::clone(&pipe.table), Arc::clone(&pipe.jobs), Arc::clone(workers), predecoder)
    };
    let latency = match profile.device {
        Device::Sim { latency } => latency,
        Device::Auto | Device::Cuda { .. } => Latency::None,
    };
    let late_by = Nanos::from_micros(u64::from(profile.faults.late_by_us));
    let shared = Arc::new(SimShared::new(profile.workers as usize));
    let launcher = SimLauncher::new(Arc::clone(&shared), draws.of(1), graph());
    let device = SimDevice::new(
        pipe.silo,
        (shared, Arc::clone(&pipe.health)),
        device_workers,
        graph(),
        (Arc::clone(&common.board), common.clock.rate()),
        SimTimes { latency, late_by },
        draws.of(2),
    );
    let dispatcher = Dispatcher::new(pipe.clone(), end, dispatch_workers, launcher, refused, common.clock.rate());
    vec![
        spec(RoleKind::Dispatch, pipe.silo, 0, move |_| Ok(Box::new(dispatcher))),
        spec(RoleKind::Device, pipe.silo, 0, move |_| Ok(Box::new(device))),
    ]
}

/// What all decoders of a silo are made from.
struct Bench<'a> {
    pipe: &'a Pipe,
    bank: &'a Arc<WorkerBank>,
    states: &'a Arc<StreamStates>,
    carries: Option<Arc<Carries>>,
    joints: Option<Arc<JointCells>>,
    draws: &'a Draws<'a>,
    decoding: &'a Decoding,
    times: Option<Sender<Vec<Event>>>,
}

impl Bench<'_> {
    fn decoder(&self, index: u32, worker: Worker<Brought>) -> RoleSpec {
        let (pipe, bank, states) = (self.pipe.clone(), Arc::clone(self.bank), Arc::clone(self.states));
        let (carries, joints, times) = (self.carries.clone(), self.joints.clone(), self.times.clone());
        let (decoding, injector) = (self.decoding.clone(), self.draws.of(16 + u64::from(index)));
        spec(RoleKind::Decode, self.pipe.silo, index, move |_| {
            let predecoder = decoding.predecoder();
            let (index, matching) = (index as usize, decoding.matching);
            let parts =
                DecoderParts { pipe, bank, index, matching, predecoder, injector, states, carries, joints, times };
            Ok(Box::new(Decoder::new(parts, worker)))
        })
    }
}

/// What of a pool never changes.
fn show(pool: &Pool, profile: &Profile, pipe: &Pipe) {
    let block = pipe.board.graph(pipe.silo);
    board::set(&block.window_tasks, profile.graph.window_tasks.into());
    board::set(&block.ready_tasks, profile.graph.ready_tasks.into());
    block.policy.write(pool.policy());
}
