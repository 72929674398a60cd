//! A rig: a device prepared for one silo, with context, kernels, tables, and one captured graph per
//! group of workers.
//!
//! Owns everything in the context. Captured on the dispatcher's thread at Init (on a cold thread
//! after a loss), launched only by the dispatcher, closed on a cold thread. Bounds: [`CLOSE_LIMIT`]
//! for closing, after which all of it is leaked rather than freed under a running graph. Never
//! queries a stream on the engine's path. Longer than 500 lines so that creation and release stand
//! side by side.
//!
//! ```text
//!   seats ─┐                    group 0: stream ── one kernel   (a block for each of its workers)
//!   tables ┼─ frozen into ────▶ group 1: stream ── …
//!   mapped ┘  each graph
//! ```
//!
//! # Why a graph serves a group
//! A launch costs the host microseconds regardless of its size. With `batch_shots` above 1 a graph
//! takes the mail of several workers, each with its own mailbox, ready word and job, and skips
//! workers without new mail. Words and edges are the same for every size.

use super::context::{Context, Kernels, OpenError};
use super::driver::{Driver, Failure, done};
use super::layout::{Seat, Silo};
use super::mapped::Mapped;
use crate::predecode::Tables;
use cudarc::driver::sys::{CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUstream};
use pinwheel_edge::slot::jobs::JobBank;
use pinwheel_edge::slot::table::SlotTable;
use pinwheel_edge::slot::workers::WorkerBank;
use pinwheel_edge::sync::{DataWord, DataWords, Span};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for graphs that still run when a rig is closed.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// The first interval between two checks for running graphs.
const CLOSE_LOOK: Duration = Duration::from_millis(1);

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const CAPTURE_THREAD_LOCAL: i32 = 1;
/// `CUDA_ERROR_NOT_READY`.
pub(super) const NOT_READY: i32 = 600;
/// Maximum number of threads of a block.
const THREADS_MAX: u32 = 1024;
/// Words of a worker's report: a cache line of its own.
const REPORT_WORDS: usize = 16;

/// Host memory of a silo's graphs: allocated before any device is opened, and kept longer.
#[derive(Clone)]
pub struct Works {
    /// Payloads.
    pub table: Arc<SlotTable>,
    /// Outputs.
    pub jobs: Arc<JobBank>,
    /// Mailboxes and ready words.
    pub bank: Arc<WorkerBank>,
    /// The predecoder's tables.
    pub tables: Arc<Tables>,
    /// The graphs' own reports.
    pub reports: Arc<Reports>,
    /// Workers of one graph.
    pub batch_shots: u32,
}

/// Each worker's report, in memory that the device writes.
#[derive(Debug)]
pub struct Reports(DataWords);

impl Reports {
    /// Creates the reports of `workers` workers.
    pub fn new(workers: usize) -> Reports {
        Reports(DataWords::in_pages(workers, REPORT_WORDS))
    }

    /// Duration of the last graph from taking the mail to the outputs, by the device's clock, ns.
    pub fn graph_ns(&self, worker: usize) -> u64 {
        self.0.record(worker)[0].load()
    }

    /// Detection events that worker `worker` has removed since its context was created.
    pub fn removed(&self, worker: usize) -> u64 {
        self.0.record(worker)[1].load()
    }

    /// When the last graph took its mail and when it had written its outputs, by the device's
    /// clock, ns.
    pub(super) fn stamps(&self, worker: usize) -> (u64, u64) {
        let words = self.0.record(worker);
        (words[2].load(), words[3].load())
    }

    /// The memory of worker `worker`'s report.
    pub(super) fn line(&self, worker: usize) -> Span {
        Span::of(self.0.record(worker))
    }

    /// A word that no graph touches.
    pub(super) fn gate(&self) -> &DataWord {
        &self.0.record(0)[REPORT_WORDS / 2]
    }

    fn clear(&self) {
        self.0.all().iter().for_each(|word| word.store(0));
    }
}

impl Works {
    /// Number of graphs.
    pub fn groups(&self) -> usize {
        self.bank.len().div_ceil(self.batch_shots as usize)
    }

    fn spans(&self) -> [Span; 5] {
        let jobs = &self.jobs;
        let reports = self.reports.0.span();
        [self.table.payload_span(), self.bank.span(), jobs.detectors_span(), jobs.observables_span(), reports]
    }
}

struct Group {
    stream: CUstream,
    graph: CUgraphExec,
}

/// See the header.
pub struct Rig {
    context: ManuallyDrop<Context>,
    mapped: Mapped,
    works: Works,
    groups: Vec<Group>,
    kernel: Option<ShotKernel>,
    /// Enclose a launch that is sampled.
    events: [CUevent; 2],
    device_bytes: u64,
}

// SAFETY: the handles are valid on every thread of the process. One thread at a time uses a rig,
// and a ring moves it between two.
unsafe impl Send for Rig {}

/// The handles that a cold thread needs to monitor a rig launched by another thread. Valid until
/// the rig is closed, which the monitoring thread does itself.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) driver: &'static Driver,
    pub(super) context: CUcontext,
    pub(super) events: [CUevent; 2],
}

// SAFETY: handles, valid on every thread of the process.
unsafe impl Send for Watched {}

impl Rig {
    /// Prepares `context` for `works` and binds it to the calling thread. Skips mail that the
    /// doorbells show now: it belongs to earlier launches.
    ///
    /// # Errors
    /// The step that the device refused; nothing remains allocated.
    pub fn capture(context: Context, works: Works) -> Result<Rig, OpenError> {
        context.bind().map_err(context.refused("binding it"))?;
        // SAFETY: the rig keeps `works`, all of it atomics, until it has released the registration.
        let mapped = unsafe { Mapped::register(&context, &works.spans()) }?;
        let context = ManuallyDrop::new(context);
        let mut rig =
            Rig { context, mapped, works, groups: Vec::new(), kernel: None, events: [null_mut(); 2], device_bytes: 0 };
        rig.works.reports.clear();
        let silo = rig.silo()?;
        let kernels = rig.context.load().map_err(rig.context.refused("loading the kernels"))?;
        rig.capture_all(&kernels, silo).map_err(rig.context.refused("capturing the graphs"))?;
        Ok(rig)
    }

    /// Builds the kernels' argument: all addresses translated and checked, tables and scratch in
    /// device memory.
    fn silo(&mut self) -> Result<Silo, OpenError> {
        let Works { table, jobs, bank, tables, .. } = &self.works;
        let geometry = table.geometry();
        let (words, flips) = (u64::from(geometry.detector_words), u64::from(geometry.observable_words));
        let device = |span: Span| self.mapped.device(&self.context, span.address, span.bytes);
        let payload = table.payload_span();
        let (payload_device, residuals_out) = (device(payload)?, device(jobs.detectors_span())?);
        let flips_out = device(jobs.observables_span())?;
        let seats = (0..bank.len()).map(|w| self.seat(w)).collect::<Result<Vec<_>, _>>()?;
        let workers = bank.len() as u64;
        let context = &self.context;
        let upload = || -> Result<Silo, Failure> {
            Ok(Silo {
                payload: payload_device,
                payload_host: payload.address,
                payload_words: payload.bytes / 8,
                residuals_out,
                flips_out,
                syndromes: context.zeroed(workers * words * 8)?,
                residuals: context.zeroed(workers * words * 8)?,
                flips: context.zeroed(workers * flips * 8)?,
                seats: context.uploaded(&seats)?,
                near_from: context.uploaded(&tables.near_from)?,
                near_word: context.uploaded(&tables.near_word)?,
                near_mask: context.uploaded(&tables.near_mask)?,
                way_from: context.uploaded(&tables.way_from)?,
                way_partner: context.uploaded(&tables.way_partner)?,
                way_flips: context.uploaded(&tables.way_flips)?,
                words: geometry.detector_words,
                observable_words: geometry.observable_words,
                detectors: tables.detectors(),
                jobs: jobs.len() as u32,
            })
        };
        let silo = upload().map_err(context.refused("giving it the tables"))?;
        let rows = (tables.near_from.len() + tables.near_word.len() + tables.way_from.len()) as u64 * 4;
        let masks = (tables.near_mask.len() + tables.way_flips.len()) as u64 * 8 + tables.way_partner.len() as u64 * 4;
        self.device_bytes = workers * (2 * words + flips) * 8 + size_of_val(&*seats) as u64 + rows + masks;
        Ok(silo)
    }

    fn seat(&self, w: usize) -> Result<Seat, OpenError> {
        let word = |address: u64| self.mapped.device(&self.context, address, 8);
        let words = self.works.bank.device_words(w);
        let report = self.works.reports.line(w);
        Ok(Seat {
            address: word(words.address)?,
            job: word(words.job)?,
            doorbell: word(words.doorbell)?,
            ready: word(words.ready)?,
            report: self.mapped.device(&self.context, report.address, report.bytes)?,
            seen: self.works.bank.rung(w),
            ..Seat::default()
        })
    }

    fn capture_all(&mut self, kernels: &Kernels, silo: Silo) -> Result<(), Failure> {
        let kernel = ShotKernel::new(kernels, silo)?;
        let (workers, batch) = (self.works.bank.len() as u32, self.works.batch_shots);
        for first in (0..workers).step_by(batch as usize) {
            let blocks = batch.min(workers - first);
            let stream = stream(self.context.driver)?;
            let graph =
                capture(self.context.driver, stream, || kernel.launch(self.context.driver, stream, first, blocks))?;
            self.groups.push(Group { stream, graph });
        }
        self.kernel = Some(kernel);
        for event in &mut self.events {
            // SAFETY: a place for the handle; flags 0: with times.
            done("cuEventCreate", unsafe { (self.context.driver.event_create)(event, 0) })?;
        }
        Ok(())
    }

    /// Uploads the graphs to the device. Called in Warmup, on the thread that launches.
    ///
    /// # Errors
    /// The step that the device refused.
    pub fn upload(&self) -> Result<(), OpenError> {
        let uploaded = || {
            self.context.bind()?;
            for group in &self.groups {
                // SAFETY: both handles are alive; the context is bound.
                let code = unsafe { (self.context.driver.graph_upload)(group.graph, group.stream) };
                done("cuGraphUpload", code)?;
            }
            self.context.synchronize()
        };
        uploaded().map_err(self.context.refused("uploading the graphs"))
    }

    /// Binds its context to the calling thread.
    ///
    /// # Errors
    /// The driver's error.
    pub fn bind(&self) -> Result<(), Failure> {
        self.context.bind()
    }

    /// Launches group `group`; returns the driver's code, 0 for success.
    #[inline]
    pub fn launch(&self, group: usize) -> i32 {
        if let Err(failure) = self.context.ensure_bound() {
            return failure.code;
        }
        let Group { stream, graph } = self.groups[group];
        // SAFETY: both handles are alive, and used by this thread only.
        unsafe { (self.context.driver.graph_launch)(graph, stream) }
    }

    /// As [`Rig::launch`], between two events.
    pub fn launch_timed(&self, group: usize) -> i32 {
        if let Err(failure) = self.context.ensure_bound() {
            return failure.code;
        }
        let (driver, stream) = (self.context.driver, self.groups[group].stream);
        // SAFETY: all handles are alive. A failed record shows when the event is read.
        let _ = unsafe { (driver.event_record)(self.events[0], stream) };
        let code = self.launch(group);
        // SAFETY: as above.
        let _ = unsafe { (driver.event_record)(self.events[1], stream) };
        code
    }

    /// Launches the kernel of group `group` without its graph: for comparison only.
    pub(super) fn launch_kernel(&self, group: usize) -> Result<(), Failure> {
        let (workers, batch) = (self.works.bank.len() as u32, self.works.batch_shots);
        let first = group as u32 * batch;
        let Some(kernel) = &self.kernel else { return Ok(()) };
        kernel.launch(self.context.driver, self.groups[group].stream, first, batch.min(workers - first))
    }

    /// The time between the two events of [`Rig::launch_timed`], both of which have occurred.
    pub(super) fn elapsed_ns(&self) -> Result<u64, Failure> {
        let mut ms = 0f32;
        // SAFETY: a place for the number; events of this context.
        let code = unsafe { (self.context.driver.event_elapsed)(&raw mut ms, self.events[0], self.events[1]) };
        done("cuEventElapsedTime", code).map(|()| (f64::from(ms) * 1e6) as u64)
    }

    /// Whether group `group`'s stream is empty: for comparison only, never on the engine's path.
    pub(super) fn is_stream_idle(&self, group: usize) -> Result<bool, Failure> {
        // SAFETY: the stream is alive, its context bound.
        match unsafe { (self.context.driver.stream_query)(self.groups[group].stream) } {
            NOT_READY => Ok(false),
            code => done("cuStreamQuery", code).map(|()| true),
        }
    }

    /// The device's address of the word that the check's kernels wait for, see [`Reports::gate`].
    pub(super) fn gate(&self) -> Result<u64, OpenError> {
        let gate = Span::of(std::slice::from_ref(self.works.reports.gate()));
        self.mapped.device(&self.context, gate.address, gate.bytes)
    }

    /// The device's address of the engine's memory at `span`.
    pub(super) fn device_address(&self, span: Span) -> Result<u64, OpenError> {
        self.mapped.device(&self.context, span.address, span.bytes)
    }

    /// The device.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The stream of group `group`, for measurements.
    pub(super) fn stream(&self, group: usize) -> CUstream {
        self.groups[group].stream
    }

    /// Bytes of the engine's memory mapped by the device, and bytes of device memory.
    pub fn bytes(&self) -> (u64, u64) {
        (self.mapped.bytes(), self.device_bytes)
    }

    pub(super) fn watched(&self) -> Watched {
        Watched { driver: self.context.driver, context: self.context.handle(), events: self.events }
    }

    /// Whether every graph has ended, by the event recorded behind each; a device that returns an
    /// error runs nothing.
    fn is_idle(&self, behind: &[CUevent]) -> bool {
        // SAFETY: events of this context, recorded.
        behind.iter().all(|event| unsafe { (self.context.driver.event_query)(*event) } != NOT_READY)
    }

    /// Waits, for [`CLOSE_LIMIT`] at most, until no graph runs or can write; returns whether that
    /// was reached.
    pub(super) fn settle(&self) -> bool {
        if self.context.bind().is_err() {
            return true;
        }
        let mut behind = Vec::new();
        for group in &self.groups {
            let mut event = null_mut();
            // SAFETY: a place for the handle, a stream that is alive. A context that refuses has a
            // sticky error and runs nothing.
            let code = unsafe {
                match (self.context.driver.event_create)(&raw mut event, 0) {
                    0 => (self.context.driver.event_record)(event, group.stream),
                    code => code,
                }
            };
            if code == 0 {
                behind.push(event);
            }
        }
        // Few sleeps, each twice as long as the last: on a busy machine every sleep is longer than
        // requested.
        let (mut slept, mut next) = (Duration::ZERO, CLOSE_LOOK);
        while !self.is_idle(&behind) {
            if slept >= CLOSE_LIMIT {
                return false;
            }
            nap(next);
            slept += next;
            next = (2 * next).min(CLOSE_LIMIT.saturating_sub(slept));
        }
        true
    }
}

#[expect(clippy::disallowed_methods, reason = "a rig is closed on a cold thread")]
fn nap(span: Duration) {
    std::thread::sleep(span);
}

impl Drop for Rig {
    /// Closes the rig: waits, unregisters the engine's memory, and destroys the context with its
    /// contents. If a graph does not end, both are kept: it may still write.
    fn drop(&mut self) {
        if self.settle() {
            self.mapped.release(&self.context);
            self.context.unbind();
            // SAFETY: nothing touches the context after this.
            unsafe { ManuallyDrop::drop(&mut self.context) };
        } else {
            std::mem::forget(self.works.clone());
        }
    }
}

/// The kernel of a graph with its arguments.
pub(super) struct ShotKernel {
    function: CUfunction,
    threads: u32,
    silo: Silo,
}

impl ShotKernel {
    fn new(kernels: &Kernels, silo: Silo) -> Result<ShotKernel, Failure> {
        let threads = silo.detectors.max(silo.words).next_multiple_of(32).clamp(32, THREADS_MAX);
        Ok(ShotKernel { function: kernels.function(c"pinwheel_shot")?, threads, silo })
    }

    /// Launches the kernel in `stream` for `blocks` workers from `first` on.
    fn launch(&self, driver: &Driver, stream: CUstream, first: u32, blocks: u32) -> Result<(), Failure> {
        let (mut silo, mut first) = (self.silo, first);
        let mut arguments = [(&raw mut silo).cast(), (&raw mut first).cast()];
        // SAFETY: the arguments are those of the kernel in predecoder.cu.
        unsafe { launch(driver, self.function, (blocks, self.threads), stream, &mut arguments) }
    }
}

/// Launches `kernel` in `stream` with that many blocks and threads per block.
///
/// # Safety
/// `arguments` point to values of the kernel's own types, which the call copies; addresses among
/// them are device addresses.
pub(super) unsafe fn launch(
    driver: &Driver,
    kernel: CUfunction,
    (blocks, threads): (u32, u32),
    stream: CUstream,
    arguments: &mut [*mut c_void],
) -> Result<(), Failure> {
    // SAFETY: guaranteed by the caller; all handles are alive.
    let code = unsafe {
        let arguments = arguments.as_mut_ptr();
        (driver.kernel_launch)(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, null_mut())
    };
    done("cuLaunchKernel", code)
}

pub(super) fn stream(driver: &Driver) -> Result<CUstream, Failure> {
    let mut stream = null_mut();
    // SAFETY: a place for the handle.
    done("cuStreamCreate", unsafe { (driver.stream_create)(&raw mut stream, NON_BLOCKING) })?;
    Ok(stream)
}

/// Captures the launches of `launches` in `stream`, and instantiates the graph with flags 0.
fn capture(
    driver: &Driver,
    stream: CUstream,
    launches: impl FnOnce() -> Result<(), Failure>,
) -> Result<CUgraphExec, Failure> {
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (null_mut(), null_mut());
    // SAFETY: the stream is alive.
    done("cuStreamBeginCapture", unsafe { (driver.capture_begin)(stream, CAPTURE_THREAD_LOCAL) })?;
    let launched = launches();
    // End the capture in any case; otherwise the stream would stay in capture mode.
    // SAFETY: a place for the handle.
    let ended = done("cuStreamEndCapture", unsafe { (driver.capture_end)(stream, &raw mut graph) });
    launched.and(ended)?;
    // SAFETY: a place for the handle; a graph that was captured.
    let made = done("cuGraphInstantiate", unsafe { (driver.graph_instantiate)(&raw mut executable, graph, 0) });
    // SAFETY: the executable graph does not depend on it.
    let _ = unsafe { (driver.graph_destroy)(graph) };
    made.map(|()| executable)
}
