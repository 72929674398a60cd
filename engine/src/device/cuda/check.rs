//! `pinwheel gpu-check`: checks and measures every step of the device path on this machine.
//!
//! Owns the list of steps and their results. Runs on one cold thread that pins itself; contexts are
//! opened from the other cores. Each step has a context of its own, so that a failed step does not
//! affect the next. Bounds: each loop of a step ends at its count or at [`Scale::limit`], whichever
//! comes first, and reports its progress. A step that measured nothing has failed. No engine runs: one
//! loop performs the roles on the engine's words and edges.
//!
//! | step | shows |
//! |---|---|
//! | open | context, registered memory, graphs |
//! | bit_exact | the kernel's result is the CPU predecoder's, bit for bit |
//! | launches | each launch completes once; what a launch call takes |
//! | rx_to_ready | from the shot's write to its claim, and the host's own share |
//! | graph_time | the graph by the device's events |
//! | batch_N | shots a second with N shots to a launch, and what that costs in latency |
//! | compare | the same work without graphs, and with a loop of stream queries |
//! | litmus_out, litmus_in | no older word behind a newer ready word or doorbell |
//! | fault_… | what can be provoked: late, hung, refused, sticky, no memory, two at once, no such device |
//! | teardown | nothing is left on the device |

mod compare;
mod faults;
mod line;
mod litmus;
mod measure;

use super::{Context, DriverFacts, OpenError, probe};
use crate::board::histogram::Histogram;
use crate::clock::Clock;
use crate::code::Model;
use crate::host::pin;
use crate::units::{Nanos, Ticks};
use serde::Serialize;

/// The parameters of a check.
pub struct CheckConfig {
    /// The driver's number of the device.
    pub index: u32,
    /// The core to run on; `None` selects the last allowed core.
    pub core: Option<u32>,
    /// The model of small shots, and its name.
    pub small: (Model, String),
    /// The model of large shots, and its name.
    pub large: (Model, String),
    /// Amount of work.
    pub scale: Scale,
}

/// Amount of work of the steps.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Shots compared bit for bit.
    pub shots: u64,
    /// Launches to count.
    pub launches: u64,
    /// Shots sent one at a time.
    pub rounds: u64,
    /// Duration of each batch size with all workers busy.
    pub busy: Nanos,
    /// Hand-overs of each litmus test.
    pub hand_overs: u64,
    /// Maximum duration of one loop.
    pub limit: Nanos,
    /// Maximum duration of the check: after it each loop ends at its first reading of the clock.
    pub total: Nanos,
}

impl Scale {
    /// A full check: a minute on an H100.
    pub const FULL: Scale = Scale {
        shots: 100_000,
        launches: 1_000_000,
        rounds: 100_000,
        busy: Nanos(3_000_000_000),
        hand_overs: 100_000_000,
        limit: Nanos(60_000_000_000),
        total: Nanos(420_000_000_000),
    };
    /// A quick check: half a minute, most of it to open contexts.
    pub const QUICK: Scale = Scale {
        shots: 2_000,
        launches: 5_000,
        rounds: 1_000,
        busy: Nanos(200_000_000),
        hand_overs: 20_000,
        limit: Nanos(2_000_000_000),
        total: Nanos(60_000_000_000),
    };
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The step's name.
    pub name: String,
    /// Whether the step passed.
    pub ok: bool,
    /// Findings of the step.
    pub detail: String,
}

/// Throughput with several shots to a launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Batch {
    /// Shots per launch.
    pub shots: u32,
    /// Shots completed per second, with every worker busy.
    pub shots_per_s: f64,
    /// From the shot's write to its claim, with every worker busy, ns.
    pub rx_to_ready_ns: Histogram,
}

/// Times of the same work done by another method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodTimes {
    /// Name of the method.
    pub name: &'static str,
    /// Duration of the host's call or calls, ns.
    pub launch_ns: Histogram,
    /// From the shot's write until its end is detected, ns.
    pub rx_to_ready_ns: Histogram,
}

/// The results of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GpuCheck {
    /// The driver's API version.
    pub driver: String,
    /// The device.
    pub device: Option<super::DeviceFacts>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Duration of a launch call, ns.
    pub launch_ns: Histogram,
    /// From the shot's write to its claim, one shot at a time, ns.
    pub rx_to_ready_ns: Histogram,
    /// The host's own work from write to harvest, without waiting, ns.
    pub host_overhead_ns: Histogram,
    /// The graph by the device's clock, from taking the mail to the ready word, ns.
    pub graph_device_ns: Histogram,
    /// The graph by events around its launch, ns.
    pub graph_events_ns: Histogram,
    /// Results by number of shots per launch.
    pub batches: Vec<Batch>,
    /// Other methods, and the engine's method in the same loop.
    pub compared: Vec<MethodTimes>,
    /// The provoked faults, also listed in `steps`.
    pub faults: Vec<Step>,
}

impl GpuCheck {
    /// Whether every step passed.
    pub fn is_sound(&self) -> bool {
        self.steps.iter().all(|step| step.ok)
    }
}

/// Findings of a step; `Err` if it failed.
type StepResult = Result<String, String>;

/// The function of a step.
type Run = fn(&mut Bench<'_>) -> StepResult;

/// State shared by all steps.
struct Bench<'a> {
    config: &'a CheckConfig,
    clock: Clock,
    /// Cores for the driver's threads.
    others: Vec<u32>,
    began: Ticks,
    found: GpuCheck,
}

impl Bench<'_> {
    fn ns(&self, from: Ticks, to: Ticks) -> u64 {
        self.clock.rate().nanos(to.since(from)).0
    }

    /// Opens a context from the cores that the check does not use, which the driver's threads
    /// inherit.
    fn open(&self) -> Result<Context, OpenError> {
        self.open_index(self.config.index)
    }

    fn open_index(&self, index: u32) -> Result<Context, OpenError> {
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| {
                let _ = pin::confine_current_thread(&self.others);
                Context::open(index)
            });
            opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether a loop that began at `from` must end.
    fn is_over(&self, from: Ticks) -> bool {
        let (now, scale) = (self.clock.ticks(), &self.config.scale);
        self.ns(from, now) >= scale.limit.0 || self.ns(self.began, now) >= scale.total.0
    }
}

/// The steps in order.
const STEPS: [(&str, Run); 18] = [
    ("open", measure::open),
    ("bit_exact", measure::bit_exact),
    ("launches", measure::launches),
    ("rx_to_ready", measure::rx_to_ready),
    ("graph_time", measure::graph_time),
    ("batch_1", |bench| measure::batch(bench, 1)),
    ("batch_4", |bench| measure::batch(bench, 4)),
    ("batch_16", |bench| measure::batch(bench, 16)),
    ("compare", compare::compare),
    ("litmus_out", litmus::out),
    ("litmus_in", litmus::inward),
    ("fault_refused", faults::refused),
    ("fault_late", faults::late),
    ("fault_hung", faults::hung),
    ("fault_no_memory", faults::no_memory),
    ("fault_two_at_once", faults::two_at_once),
    ("teardown", faults::teardown),
    // Last: a driver that does not recover from it would fail the following steps.
    ("fault_sticky", faults::sticky),
];

/// Runs every step and passes each result to `say`.
///
/// # Errors
/// If there is no device to check.
pub fn check(config: &CheckConfig, clock: &Clock, mut say: impl FnMut(&Step)) -> Result<GpuCheck, OpenError> {
    let DriverFacts { driver, devices, .. } = probe()?;
    let others = place(config.core);
    let found = GpuCheck { driver, ..GpuCheck::default() };
    let mut bench = Bench { config, clock: clock.clone(), others, began: clock.ticks(), found };
    // A device that cannot be opened counts as missing.
    drop(bench.open()?);
    bench.found.device = devices.into_iter().find(|device| device.index == config.index);
    for (name, run) in STEPS {
        let (ok, detail) = match run(&mut bench) {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        let step = Step { name: name.to_owned(), ok, detail };
        say(&step);
        bench.found.steps.push(step);
    }
    let faults = bench.found.steps.iter().filter(|step| step.name.starts_with("fault_"));
    bench.found.faults = faults.cloned().collect();
    Ok(bench.found)
}

/// Pins the calling thread if permitted; returns the other allowed cores.
fn place(core: Option<u32>) -> Vec<u32> {
    let allowed = pin::allowed_cores().unwrap_or_default();
    let Some(core) = core.or_else(|| allowed.last().copied()) else { return allowed };
    let _ = pin::pin_current_thread(core);
    let others: Vec<u32> = allowed.iter().copied().filter(|other| *other != core).collect();
    if others.is_empty() { allowed } else { others }
}
