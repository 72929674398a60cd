//! A silo's path between ingress and egress: dispatch, device, poll, graph and decode.
//!
//! Owns nothing that runs. Runs once at Init and once at each restart of the silo, on a cold
//! thread.

use super::{Common, Decoding, DispatchEnds, Draws, Gpu, Owner, cuda, recovery, spec, timebase};
use crate::arbiter::requests::ArbiterEndpoint;
use crate::board;
use crate::commit::arbiter_driver::{ArbiterDriver, Link, MembershipEndpoint};
use crate::commit::joint_readouts::{JointCells, Joints};
use crate::commit::moves::Moves;
use crate::commit::orchestrator::{Orchestrator, OrchestratorParts};
use crate::commit::state::StreamStates;
use crate::decode::changes::DecoderChanges;
use crate::decode::worker::{Decoder, DecoderParts};
use crate::device::sim::{Graph, SimDevice, SimLauncher, SimShared, SimTimes};
use crate::device::{NoDevice, Recovery};
use crate::dispatch::{Dispatcher, Poller};
use crate::graph::{CallerBody, CompileError, Config, Event, Start, Worker};
use crate::hot::RoleSpec;
use crate::pipe::Carries;
use crate::pipe::lanes::{DecodeLanes, WorkerLane};
use crate::pipe::pool::Pool;
use crate::pipe::{Pipe, ToGraph};
use crate::profile::{Device, Latency, Profile};
use crate::roles::RoleKind;
use crate::units::Nanos;
use pinwheel_edge::slot::jobs::{FreeJobs, JobBank};
use pinwheel_edge::slot::table::{DispatchEnd, Geometry};
use pinwheel_edge::slot::workers::{DeviceWorkers, WorkerBank, WorkerEnds, bank};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Parts of a path that are made elsewhere.
pub(super) struct PathParts<'a> {
    pub(super) pipe: &'a Pipe,
    pub(super) states: &'a Arc<StreamStates>,
    pub(super) end: DispatchEnd,
    pub(super) arbiter: ArbiterParts,
    pub(super) joints: (Option<Joints>, Option<Arc<JointCells>>),
    pub(super) gpu: Option<Gpu>,
    pub(super) draws: Draws<'a>,
    /// Where decode workers send their task times, if the profile asks for a trace.
    pub(super) times: Option<Sender<Vec<Event>>>,
}

/// An arbiter's connections to other silos.
pub(super) struct ArbiterParts {
    pub(super) links: Vec<Link>,
    pub(super) endpoint: Option<ArbiterEndpoint>,
    pub(super) membership: Option<MembershipEndpoint>,
    /// Dead silos, each with its successor.
    pub(super) successors: Vec<(Owner, Owner)>,
}

/// A path from dispatch to decode.
pub(super) struct Path {
    pub(super) workers: Arc<WorkerBank>,
    /// Its roles in the order of the path, decode last.
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
    let WorkerEnds { dispatch: dispatch_workers, device: device_workers, poll: poll_workers, release, words: workers } =
        bank(profile.device_workers() as usize);
    let (from_dispatch, dispatch_input) = ToGraph::channel(pipe.jobs.len(), profile.slots);
    let (from_poll, poll_input) = ToGraph::channel(pipe.jobs.len(), profile.slots);
    let (free, [polls_return, returns]) = FreeJobs::new(pipe.jobs.len());
    let (dispatch_ends, bank_of) = ((end, dispatch_workers, free, from_dispatch), (pipe, &workers));
    let (mut specs, recovery, tap) = match gpu {
        Some(gpu) => cuda::specs(profile, bank_of, gpu, dispatch_ends, recovery(profile, pipe), common),
        None => {
            let specs = match profile.device {
                Device::None => vec![without_device(pipe, dispatch_ends, common)],
                _ => stand_in(profile, bank_of, device_workers, dispatch_ends, &draws, common),
            };
            (specs, recovery(profile, pipe), None)
        }
    };
    let poller =
        Poller::new(pipe.clone(), poll_workers, polls_return, from_poll, profile.free_worker, base.rate).tapped(tap);
    let mut config = Config { streams: pipe.streams, ..Config::from(&profile.graph) };
    if carries.is_none() {
        // Whole shots are no tasks, so a readout would wait for a threshold for ever.
        config.start = Start::Immediate;
    }
    let (window_tasks, ready_tasks) = (config.window_tasks, config.ready_tasks);
    let pool = Pool::new(config, decoders, jobs, pipe.streams, carries.as_deref(), &common.clock)?;
    let (lanes, ends) = DecodeLanes::new(decoders, profile.deadlines.order, base.rate);
    show(&pool, (window_tasks, ready_tasks), pipe);
    let ArbiterParts { links, endpoint, membership, successors } = arbiter;
    let orchestrator = Orchestrator::new(OrchestratorParts {
        pipe: pipe.clone(),
        release,
        lanes,
        submitter: pool.submitter,
        regions: pool.regions,
        inputs: [dispatch_input, poll_input],
        returns,
        carries: carries.clone(),
        arbiter: ArbiterDriver::new(Arc::clone(states), base, links, membership).after(&successors),
        joints,
        moves: endpoint.map(|endpoint| Moves::new(endpoint, Arc::clone(&pipe.watermarks))),
        states: Arc::clone(states),
        has_rescue: profile.deadlines.rescue.is_some(),
    });
    specs.push(spec(RoleKind::Poll, silo, 0, move |_| Ok(Box::new(poller))));
    specs.push(spec(RoleKind::Graph, silo, 0, move |_| Ok(Box::new(orchestrator))));
    let decoding = &common.decoding;
    let decoders = &common.decoders;
    let context = DecoderContext { pipe, states, carries, joints: cells, draws: &draws, decoding, decoders, times };
    let workers_of_pool = (0..).zip(pool.workers.into_iter().zip(ends));
    specs.extend(workers_of_pool.map(|(index, (worker, lane))| context.decoder(index, worker, lane)));
    Ok(Path { workers, specs, recovery })
}

/// Job buffers for all slots and spares.
pub(super) fn job_bank(profile: &Profile, decoders: u32, geometry: Geometry) -> Arc<JobBank> {
    let jobs = (profile.slots + profile.device_workers() + decoders) as usize;
    Arc::new(JobBank::new(jobs, geometry.detector_words as usize, geometry.observable_words as usize))
}

/// Dispatch, without a device.
fn without_device(pipe: &Pipe, (end, workers, free, to_graph): DispatchEnds, common: &Common) -> RoleSpec {
    let rate = common.clock.rate();
    let dispatcher = Dispatcher::new(pipe.clone(), end, workers, NoDevice, free, to_graph, rate);
    spec(RoleKind::Dispatch, pipe.silo, 0, move |_| Ok(Box::new(dispatcher)))
}

/// The CPU stand-in: dispatch with its launcher, and the role that simulates the device.
fn stand_in(
    profile: &Profile,
    (pipe, workers): (&Pipe, &Arc<WorkerBank>),
    device_workers: DeviceWorkers,
    (end, dispatch_workers, free, to_graph): DispatchEnds,
    draws: &Draws<'_>,
    common: &Common,
) -> Vec<RoleSpec> {
    let graph = || {
        let predecoder = common.decoding.predecoder();
        Graph::new(Arc::clone(&pipe.table), Arc::clone(&pipe.jobs), Arc::clone(workers), predecoder)
    };
    let latency = match profile.device {
        Device::Sim { latency } => latency,
        Device::Auto | Device::None | Device::Cuda { .. } => Latency::None,
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
    let dispatcher =
        Dispatcher::new(pipe.clone(), end, dispatch_workers, launcher, free, to_graph, common.clock.rate());
    vec![
        spec(RoleKind::Dispatch, pipe.silo, 0, move |_| Ok(Box::new(dispatcher))),
        spec(RoleKind::Device, pipe.silo, 0, move |_| Ok(Box::new(device))),
    ]
}

/// Parts shared by all decoders of a silo.
struct DecoderContext<'a> {
    pipe: &'a Pipe,
    states: &'a Arc<StreamStates>,
    carries: Option<Arc<Carries>>,
    joints: Option<Arc<JointCells>>,
    draws: &'a Draws<'a>,
    decoding: &'a Decoding,
    decoders: &'a DecoderChanges,
    times: Option<Sender<Vec<Event>>>,
}

impl DecoderContext<'_> {
    fn decoder(&self, index: u32, worker: Worker<CallerBody>, lane: WorkerLane) -> RoleSpec {
        let (pipe, states) = (self.pipe.clone(), Arc::clone(self.states));
        let (carries, joints, times) = (self.carries.clone(), self.joints.clone(), self.times.clone());
        let (decoding, injector) = (self.decoding.clone(), self.draws.of(16 + u64::from(index)));
        let (silo, index) = (self.pipe.silo, index as usize);
        let changes = self.decoders.join(silo, index);
        spec(RoleKind::Decode, silo, index as u32, move |_| {
            let predecoder = decoding.predecoder();
            let parts =
                DecoderParts { pipe, index, lane, changes, predecoder, injector, states, carries, joints, times };
            Ok(Box::new(Decoder::new(parts, worker)))
        })
    }
}

/// Writes the pool's constants to the board.
fn show(pool: &Pool, (window_tasks, ready_tasks): (u32, u32), pipe: &Pipe) {
    let block = pipe.board.graph(pipe.silo);
    board::set(&block.window_tasks, window_tasks.into());
    board::set(&block.ready_tasks, ready_tasks.into());
    block.policy.write(pool.policy());
}
