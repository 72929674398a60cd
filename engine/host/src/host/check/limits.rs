//! Rows on time, memory, limits and virtualisation.
//!
//! Pure; bounded by the hot cores.

use super::{Observations, Row, Rule, Verdict, ranges};

use Verdict::{Fail, Pass, Warn};

/// Locked memory, bytes, that a strict start needs for arenas, rings and the board.
const MEMLOCK_BYTES_MIN: u64 = 64 << 20;
/// Clock sources that read the time counter directly.
const COUNTER_SOURCES: [&str; 2] = ["tsc", "arch_sys_counter"];
/// Clock sources of hypervisors that scale the counter.
const SCALED_SOURCES: [&str; 3] = ["kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// The machine and the moment, which a signature covers too.
pub(super) fn machine(seen: &Observations) -> Row {
    let rule = Rule::new("machine", "the machine that is meant", "a report is valid for one machine and one boot", "");
    match &seen.machine {
        None => rule.hidden(),
        Some(words) => rule.found(Pass, words.clone()),
    }
}

pub(super) fn rows(seen: &Observations) -> Vec<Row> {
    vec![
        huge_pages(seen),
        counter(seen),
        clocksource(seen),
        numa_balancing(seen),
        realtime(seen),
        quota(seen),
        cpuset(seen),
        swap(seen),
        memlock(seen),
        smt(seen),
        hypervisor(seen),
        busy_poll(seen),
    ]
}

fn huge_pages(seen: &Observations) -> Row {
    let rule = Rule::new(
        "thp",
        "madvise",
        "with always the kernel merges pages of running programs, which stalls them; with never arenas cannot ask for \
         huge pages",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    );
    match seen.huge_pages.as_deref() {
        None => rule.hidden(),
        Some("madvise") => rule.found(Pass, "madvise"),
        Some(other) => rule.found(Warn, other),
    }
}

fn counter(seen: &Observations) -> Row {
    let why = "all time is read from that counter; one that stops or changes its rate shows wrong latencies";
    let rule =
        Rule::new("invariant_counter", "a counter of one rate in all states", why, "run it on a newer processor");
    match seen.invariant_counter {
        None => rule.hidden(),
        Some(true) => rule.found(Pass, "invariant"),
        Some(false) => rule.found(Fail, "not invariant"),
    }
}

fn clocksource(seen: &Observations) -> Row {
    let rule = Rule::new(
        "clocksource",
        "tsc (x86) or arch_sys_counter (Arm)",
        "another source shows that the kernel found the counter unreliable, and costs a call for each read",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    );
    match seen.clocksource.as_deref() {
        None => rule.hidden(),
        Some(name) if COUNTER_SOURCES.contains(&name) => rule.found(Pass, name),
        Some(name) if SCALED_SOURCES.contains(&name) => rule.found(Warn, name),
        Some(name) => rule.found(Fail, name),
    }
}

fn numa_balancing(seen: &Observations) -> Row {
    let rule = Rule::new(
        "numa_balancing",
        "0, or one node",
        "the kernel unmaps pages to see who uses them; each costs a hot thread a fault",
        "sudo sysctl kernel.numa_balancing=0",
    );
    match seen.numa_balancing {
        None if seen.nodes <= 1 => rule.found(Pass, "one node"),
        None => rule.hidden(),
        Some(0) => rule.found(Pass, "0"),
        Some(mode) if seen.nodes <= 1 => rule.found(Pass, format!("{mode}, one node")),
        Some(mode) => rule.found(Warn, format!("{mode} with {} nodes", seen.nodes)),
    }
}

fn realtime(seen: &Observations) -> Row {
    let rule = Rule::new(
        "rt_throttling",
        "-1",
        "a thread of priority Fifo is stopped for the rest of each second",
        "sudo sysctl kernel.sched_rt_runtime_us=-1",
    );
    match seen.realtime_us {
        None => rule.hidden(),
        Some(-1) => rule.found(Pass, "-1"),
        Some(us) => rule.found(Warn, format!("{us} µs of each second")),
    }
}

fn quota(seen: &Observations) -> Row {
    let wanted = seen.hot.len() + 1;
    let file = seen.quota_file.as_deref().unwrap_or_default();
    // Control groups of version 1 have no word for it.
    let none = if file.ends_with("cpu.max") { "max" } else { "-1" };
    let rule = Rule::new(
        "cpu_quota",
        format!("no CPU limit, or at least {wanted} cores' worth"),
        "a spinning thread uses all its time; when the group's is used up, all its threads stop until the next period",
        format!("echo {none} | sudo tee {file}"),
    );
    match seen.quota {
        None => rule.hidden(),
        Some(quota) => match quota.cores() {
            None => rule.found(Pass, "no limit"),
            Some(cores) if cores < wanted as f64 => rule.found(Fail, format!("{cores:.1} cores' worth")),
            Some(cores) => rule.found(Warn, format!("{cores:.1} cores' worth")),
        },
    }
}

fn cpuset(seen: &Observations) -> Row {
    let why = "a thread cannot be pinned to a core outside the process's set";
    let (hot, allowed) = (ranges(&seen.hot), ranges(&seen.allowed));
    if seen.hot.is_empty() {
        let fix = "free a core, or let this process use another one; pinwheel cores says who has them";
        return Rule::new("cpuset", "a core", why, fix)
            .found(Fail, format!("none of {allowed} is left for hot threads"));
    }
    let missing: Vec<u32> = seen.hot.iter().copied().filter(|core| !seen.allowed.contains(core)).collect();
    let rule = Rule::new("cpuset", format!("core {hot} allowed"), why, format!("taskset -cp {hot} $$"));
    match missing.is_empty() {
        true => rule.found(Pass, format!("{allowed} allowed")),
        false => rule.found(Fail, format!("core {} not allowed", ranges(&missing))),
    }
}

fn swap(seen: &Observations) -> Row {
    let rule = Rule::new("swap", "none", "a page on disk costs a hot thread milliseconds", "sudo swapoff -a");
    match seen.swap_kib {
        None => rule.hidden(),
        Some((_, 0)) => rule.found(Pass, "none"),
        Some((used, all)) => rule.found(Warn, format!("{all} KiB, {used} KiB in use")),
    }
}

fn memlock(seen: &Observations) -> Row {
    let rule = Rule::new(
        "memlock",
        format!("at least {} MiB", MEMLOCK_BYTES_MIN >> 20),
        "memory that is not locked may be paged out; the next access is a page fault",
        "sudo prlimit --memlock=unlimited --pid $$",
    );
    match seen.memlock_bytes {
        None => rule.hidden(),
        Some(u64::MAX) => rule.found(Pass, "unlimited"),
        Some(bytes) if bytes >= MEMLOCK_BYTES_MIN => rule.found(Pass, format!("{} MiB", bytes >> 20)),
        Some(bytes) => rule.found(Warn, format!("{} KiB", bytes >> 10)),
    }
}

fn smt(seen: &Observations) -> Row {
    let open: Vec<u32> = match &seen.isolated {
        Some(isolated) => seen.siblings.iter().copied().filter(|core| !isolated.contains(core)).collect(),
        None => seen.siblings.clone(),
    };
    let rule = Rule::new(
        "smt",
        "off, or the siblings of hot cores isolated",
        "whatever runs on a sibling takes up to half of the hot core",
        "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    );
    if seen.hot.is_empty() {
        return rule.without_hot_cores();
    }
    match (seen.smt, seen.siblings.is_empty(), open.is_empty()) {
        (None, true, _) => rule.hidden(),
        (Some(_), true, _) => rule.found(Pass, "hot cores have no siblings"),
        (_, false, true) => rule.found(Pass, format!("siblings {} isolated", ranges(&seen.siblings))),
        (_, false, false) => rule.found(Warn, format!("siblings {} open to all", ranges(&open))),
    }
}

fn hypervisor(seen: &Observations) -> Row {
    let why = "the hypervisor may stop a core; only the lost time shows it";
    let rule =
        Rule::new("hypervisor", "none", why, "run it on the machine itself, or pin the virtual cores on the host");
    match seen.hypervisor {
        None => rule.hidden(),
        Some(false) => rule.found(Pass, "none"),
        Some(true) => rule.found(Warn, "virtual machine"),
    }
}

fn busy_poll(seen: &Observations) -> Row {
    let rule = Rule::new(
        "busy_poll",
        "busy_poll and busy_read 50 µs, where shots come over a socket",
        "without it a shot that comes over a socket waits for an interrupt",
        "sudo sysctl net.core.busy_poll=50 net.core.busy_read=50",
    );
    match seen.busy_poll_us {
        None => rule.hidden(),
        Some((poll, read)) if poll > 0 && read > 0 => rule.found(Pass, format!("{poll} and {read} µs")),
        Some((poll, read)) => rule.found(Warn, format!("{poll} and {read} µs")),
    }
}
