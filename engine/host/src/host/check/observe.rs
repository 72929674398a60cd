//! Reads the observations of the check.
//!
//! Cold. Reads files under a root, so that trees of other machines can be read too. Bounded by the
//! hot cores and by [`STATES_MAX`] idle states each. Never judges. What cannot be read is `None`.

use std::path::Path;

use super::Interrupts;
use super::probe::Gaps;
use crate::host::machine::{quota_and_file, word};
use crate::host::{HostFacts, Quota, parse_cpu_list, read_text, topology};

/// Most idle states of a core that are looked at.
const STATES_MAX: usize = 16;

/// One idle state of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Time to wake from it, µs.
    pub latency_us: u64,
    /// Whether the core may enter it.
    pub enabled: bool,
}

/// All observations of the check.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// The machine and the moment, as text.
    pub machine: Option<String>,
    /// The hot cores of the plan, ascending.
    pub hot: Vec<u32>,
    /// The SMT siblings of hot cores, ascending.
    pub siblings: Vec<u32>,
    /// The cores that the process may use, ascending.
    pub allowed: Vec<u32>,
    /// The machine's other cores, ascending: neither hot nor a sibling of one.
    pub spare: Option<Vec<u32>>,
    /// The kernel's command line.
    pub command_line: Option<String>,
    /// Cores without load balancing, ascending.
    pub isolated: Option<Vec<u32>>,
    /// Cores without a periodic tick, ascending.
    pub tickless: Option<Vec<u32>>,
    /// The frequency governor of each hot core.
    pub governors: Vec<(u32, Option<String>)>,
    /// The idle states of each hot core.
    pub idle_states: Vec<(u32, Vec<IdleState>)>,
    /// The mode of transparent huge pages.
    pub huge_pages: Option<String>,
    /// Whether the time counter runs at one rate in all states.
    pub invariant_counter: Option<bool>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// The kernel's mode of moving pages between nodes.
    pub numa_balancing: Option<i64>,
    /// NUMA nodes.
    pub nodes: usize,
    /// CPU time of each second that real-time threads may use, µs; -1 for all.
    pub realtime_us: Option<i64>,
    /// The control group's CPU quota.
    pub quota: Option<Quota>,
    /// The file that sets it.
    pub quota_file: Option<String>,
    /// Swap in use and in total, KiB.
    pub swap_kib: Option<(u64, u64)>,
    /// Memory that may be locked, bytes; `u64::MAX` without a limit.
    pub memlock_bytes: Option<u64>,
    /// Whether SMT is on.
    pub smt: Option<bool>,
    /// Whether the machine is virtual.
    pub hypervisor: Option<bool>,
    /// Busy polling of sockets: poll and read, µs.
    pub busy_poll_us: Option<(u64, u64)>,
    /// Interrupt counts before and after a window, and its length in nanoseconds.
    pub interrupts: Option<(Interrupts, Interrupts, u64)>,
    /// The probe's result on each hot core, or why there is none.
    pub gaps: Vec<(u32, Result<Gaps, String>)>,
}

impl Observations {
    /// Reads the tree under `root` for threads on `hot`. Leaves out interrupts and gaps, which take
    /// time to measure.
    pub fn read(root: &Path, host: &HostFacts, hot: &[u32]) -> Observations {
        let mut hot = hot.to_vec();
        hot.sort_unstable();
        hot.dedup();
        let mut siblings = host.with_siblings(&hot);
        siblings.retain(|core| !hot.contains(core));
        let spare = |cores: Vec<u32>| cores.into_iter().filter(|core| !hot.contains(core) && !siblings.contains(core));
        let spare = Some(topology::online(root)).filter(|cores| !cores.is_empty()).map(|cores| spare(cores).collect());
        let cpu = |core: u32, name: &str| word(root, &format!("sys/devices/system/cpu/cpu{core}/{name}"));
        let number = |path: &str| word(root, path)?.parse::<u64>().ok();
        let signed = |path: &str| word(root, path)?.parse::<i64>().ok();
        let cores = |name: &str| match read_text(&root.join("sys/devices/system/cpu").join(name))?.trim() {
            // The kernel has made no such list.
            "(null)" => Some(Vec::new()),
            list => parse_cpu_list(list),
        };
        Observations {
            machine: machine_words(host),
            governors: hot.iter().map(|&core| (core, cpu(core, "cpufreq/scaling_governor"))).collect(),
            idle_states: hot.iter().map(|&core| (core, idle_states(root, core))).collect(),
            siblings,
            allowed: host.cores.iter().map(|facts| facts.core).collect(),
            spare,
            command_line: word(root, "proc/cmdline"),
            isolated: cores("isolated"),
            tickless: cores("nohz_full"),
            huge_pages: huge_pages(root),
            invariant_counter: invariant_counter(root),
            clocksource: word(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
            numa_balancing: signed("proc/sys/kernel/numa_balancing"),
            nodes: topology::nodes(root),
            realtime_us: signed("proc/sys/kernel/sched_rt_runtime_us"),
            quota: Some(host.cpu_quota).filter(|quota| *quota != Quota::NotVisible),
            quota_file: quota_and_file(root).1.strip_prefix(root).ok().map(|file| format!("/{}", file.display())),
            swap_kib: swap_kib(root),
            memlock_bytes: memlock_bytes(root),
            smt: number("sys/devices/system/cpu/smt/active").map(|active| active != 0),
            hypervisor: host.hypervisor,
            busy_poll_us: number("proc/sys/net/core/busy_poll").zip(number("proc/sys/net/core/busy_read")),
            interrupts: None,
            gaps: Vec::new(),
            hot,
        }
    }
}

fn machine_words(host: &HostFacts) -> Option<String> {
    let name = host.hostname.as_deref()?;
    let kernel = host.kernel_release.as_deref().unwrap_or("unknown");
    let boot = host.boot_id.as_deref().unwrap_or("unknown");
    Some(format!("{name}, kernel {kernel}, boot {boot}"))
}

fn idle_states(root: &Path, core: u32) -> Vec<IdleState> {
    let state = |index: usize| {
        let text = |name: &str| word(root, &format!("sys/devices/system/cpu/cpu{core}/cpuidle/state{index}/{name}"));
        let latency_us = text("latency")?.parse().ok()?;
        Some(IdleState { name: text("name")?, latency_us, enabled: text("disable").is_none_or(|word| word == "0") })
    };
    (0..STATES_MAX).map_while(state).collect()
}

/// The word in brackets of `always [madvise] never`.
fn huge_pages(root: &Path) -> Option<String> {
    let line = word(root, "sys/kernel/mm/transparent_hugepage/enabled")?;
    Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// From the processor's flags on x86; the architecture guarantees it on AArch64.
fn invariant_counter(root: &Path) -> Option<bool> {
    let text = read_text(&root.join("proc/cpuinfo"))?;
    if text.lines().any(|line| line.starts_with("CPU implementer")) {
        return Some(true);
    }
    let flags = text.lines().find(|line| line.starts_with("flags"))?;
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    Some(has("constant_tsc") && has("nonstop_tsc"))
}

fn swap_kib(root: &Path) -> Option<(u64, u64)> {
    let text = read_text(&root.join("proc/swaps"))?;
    let field = |line: &str, at: usize| line.split_whitespace().nth(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    Some(text.lines().skip(1).fold((0, 0), |(used, all), line| (used + field(line, 3), all + field(line, 2))))
}

fn memlock_bytes(root: &Path) -> Option<u64> {
    let text = read_text(&root.join("proc/self/limits"))?;
    let soft = text.lines().find_map(|line| line.strip_prefix("Max locked memory"))?.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}
