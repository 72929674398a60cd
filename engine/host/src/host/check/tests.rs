//! Rows of recorded machines.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::{Interrupts, Observations, Row, Verdict, judge, ranges, refuses_strict};
use crate::host::HostFacts;
use crate::host::trees::{MACHINES, machine, write};

use Verdict::{Fail, NotVisible, Pass, Warn};

/// Every row but those of single cores, in the order of a report.
const IDS: [&str; 20] = [
    "machine",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "governor",
    "c_states",
    "idle_poll",
    "interrupts",
    "thp",
    "invariant_counter",
    "clocksource",
    "numa_balancing",
    "rt_throttling",
    "cpu_quota",
    "cpuset",
    "swap",
    "memlock",
    "smt",
    "hypervisor",
    "busy_poll",
];

fn rows(name: &str, hot: &[u32]) -> Vec<Row> {
    let dir = machine(name);
    let host = HostFacts::read_recorded(dir.path()).unwrap();
    judge(&Observations::read(dir.path(), &host, hot))
}

fn verdicts(rows: &[Row], verdict: Verdict) -> Vec<&str> {
    rows.iter().filter(|row| row.verdict == verdict).map(|row| row.id.as_str()).collect()
}

fn row<'a>(rows: &'a [Row], id: &str) -> &'a Row {
    rows.iter().find(|row| row.id == id).unwrap()
}

#[test]
fn every_machine_has_every_row_once_and_only_what_is_wrong_has_a_fix() {
    for (name, _) in MACHINES {
        let rows = rows(name, &[1]);
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, [&IDS[..], &["gap_probe_core_1"]].concat(), "{name}");
        for row in &rows {
            assert_eq!(row.fix.is_empty(), matches!(row.verdict, Pass | NotVisible), "{name}: {row:?}");
            assert!([&row.found, &row.expected, &row.why].iter().all(|text| !text.is_empty()), "{name}: {row:?}");
        }
    }
}

#[test]
fn a_server_set_up_for_hot_threads_passes_what_can_be_read_from_a_tree() {
    let rows = rows("server64", &[32, 33, 34]);
    assert_eq!(verdicts(&rows, Fail), Vec::<&str>::new());
    // The siblings of hot cores spin under idle=poll, although nothing else may run on them.
    assert_eq!(verdicts(&rows, Warn), ["idle_poll"]);
    assert_eq!(row(&rows, "smt").found, "siblings 96-98 isolated");
    assert!(!refuses_strict(&rows));
}

#[test]
fn a_plain_virtual_machine_fails_isolation_and_warns_of_the_rest() {
    let rows = rows("vm2", &[1]);
    assert_eq!(verdicts(&rows, Fail), ["isolcpus", "nohz_full", "rcu_nocbs"]);
    assert_eq!(verdicts(&rows, Warn), ["thp", "clocksource", "rt_throttling", "memlock", "hypervisor", "busy_poll"]);
    assert!(refuses_strict(&rows));
    let isolated = row(&rows, "isolcpus");
    assert_eq!(
        (isolated.found.as_str(), isolated.expected.as_str()),
        ("core 1 not in it", "isolcpus=managed_irq,domain,1")
    );
    assert!(isolated.fix.contains("isolcpus=managed_irq,domain,1 ") && isolated.fix.ends_with("sudo reboot"));
    assert_eq!(row(&rows, "thp").found, "always");
    assert_eq!(row(&rows, "memlock").found, "8192 KiB");
}

/// Other engines have claimed them all.
#[test]
fn without_a_hot_core_no_row_about_hot_cores_passes_and_a_strict_start_is_refused() {
    let dir = machine("vm2");
    let host = HostFacts::read_recorded(dir.path()).unwrap();
    let interrupts = || Interrupts::read(dir.path()).unwrap();
    let seen = Observations {
        interrupts: Some((interrupts(), interrupts(), 1_000_000_000)),
        ..Observations::read(dir.path(), &host, &[])
    };
    let rows = judge(&seen);
    for id in ["isolcpus", "nohz_full", "rcu_nocbs", "interrupts", "smt"] {
        let row = row(&rows, id);
        assert_eq!((row.verdict, row.found.as_str()), (NotVisible, "no core is left for hot threads"), "{id}");
    }
    assert_eq!(verdicts(&rows, Fail), ["cpuset"]);
    assert!(row(&rows, "cpuset").fix.contains("pinwheel cores") && refuses_strict(&rows));
}

#[test]
fn where_every_core_is_a_hot_one_the_remedy_is_to_leave_one_to_the_system() {
    let rows = rows("vm2", &[0, 1]);
    for id in ["isolcpus", "nohz_full", "rcu_nocbs"] {
        assert_eq!(row(&rows, id).fix, "leave a core to the system: max_cores: Some(1) in the profile", "{id}");
    }
}

#[test]
fn a_desktop_shows_its_governor_idle_states_clock_and_swap() {
    let rows = rows("desktop8", &[2, 3, 5]);
    assert_eq!(verdicts(&rows, Fail), ["isolcpus", "nohz_full", "rcu_nocbs", "governor", "clocksource"]);
    let governor = row(&rows, "governor");
    assert_eq!(governor.found, "powersave on core 2-3,5");
    assert_eq!(governor.fix, "sudo cpupower -c 2-3,5 frequency-set -g performance");
    assert_eq!(row(&rows, "c_states").found, "C3 (350 µs) enabled on core 2-3,5");
    assert_eq!(row(&rows, "clocksource").found, "hpet");
    assert_eq!(row(&rows, "swap").found, "16777212 KiB, 20480 KiB in use");
    assert_eq!(row(&rows, "smt").found, "siblings 10-11,13 open to all");
    assert_eq!(row(&rows, "idle_poll").verdict, Warn);
}

#[test]
fn an_arm_node_has_an_invariant_counter_and_balances_pages() {
    let rows = rows("grace72", &[2]);
    assert_eq!((row(&rows, "invariant_counter").verdict, row(&rows, "clocksource").verdict), (Pass, Pass));
    assert_eq!(row(&rows, "numa_balancing").found, "1 with 2 nodes");
    assert_eq!((row(&rows, "smt").verdict, row(&rows, "hypervisor").verdict), (Pass, NotVisible));
}

#[test]
fn a_container_is_checked_by_quota_and_cpuset_and_hidden_rows_are_not_visible() {
    let rows = rows("container4", &[9, 10]);
    assert_eq!(verdicts(&rows, Fail), ["isolcpus", "nohz_full", "rcu_nocbs", "cpu_quota"]);
    assert_eq!(row(&rows, "cpu_quota").found, "2.0 cores' worth");
    assert_eq!(row(&rows, "cpuset").verdict, Pass);
    for id in ["governor", "c_states", "thp", "swap", "memlock", "busy_poll", "rt_throttling", "interrupts"] {
        assert_eq!(row(&rows, id).verdict, NotVisible, "{id}");
    }
    let rows = self::rows("container4", &[2, 9]);
    assert_eq!((row(&rows, "cpuset").verdict, row(&rows, "cpuset").found.as_str()), (Fail, "core 2 not allowed"));
}

#[test]
fn cores_that_the_kernel_shows_count_and_not_those_that_its_command_line_asks_for() {
    let dir = machine("server64");
    let host = HostFacts::read_recorded(dir.path()).unwrap();
    let verdict = |id: &str| row(&judge(&Observations::read(dir.path(), &host, &[33])), id).verdict;
    // With flags and without domain among them, the scheduler still uses the cores.
    write(dir.path(), "proc/cmdline", "isolcpus=managed_irq,32-63 nohz_full=32-63");
    write(dir.path(), "sys/devices/system/cpu/isolated", "\n");
    // Refused, for want of a reliable clock for example.
    write(dir.path(), "sys/devices/system/cpu/nohz_full", "(null)\n");
    assert_eq!((verdict("isolcpus"), verdict("nohz_full")), (Fail, Fail));
    std::fs::remove_file(dir.path().join("sys/devices/system/cpu/isolated")).unwrap();
    std::fs::remove_file(dir.path().join("sys/devices/system/cpu/nohz_full")).unwrap();
    assert_eq!((verdict("isolcpus"), verdict("nohz_full")), (Pass, Pass), "where only the command line is visible");
}

#[test]
fn a_quota_is_lifted_in_the_group_that_has_it_by_the_word_of_its_version() {
    let dir = machine("server64");
    let fix = || {
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        row(&judge(&Observations::read(dir.path(), &host, &[32, 33])), "cpu_quota").fix.clone()
    };
    write(dir.path(), "proc/self/cgroup", "0::/lab.slice/run.scope\n");
    write(dir.path(), "sys/fs/cgroup/lab.slice/run.scope/cpu.max", "max 100000\n");
    write(dir.path(), "sys/fs/cgroup/lab.slice/cpu.max", "150000 100000\n");
    assert_eq!(fix(), "echo max | sudo tee /sys/fs/cgroup/lab.slice/cpu.max");
    write(dir.path(), "proc/self/cgroup", "4:cpu,cpuacct:/lab\n0::/\n");
    write(dir.path(), "sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_period_us", "100000\n");
    write(dir.path(), "sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_quota_us", "150000\n");
    assert_eq!(fix(), "echo -1 | sudo tee /sys/fs/cgroup/cpu,cpuacct/lab/cpu.cfs_quota_us");
}

/// One file of the server changed, and the row that must see it.
#[test]
fn each_row_follows_its_file() {
    let dir = machine("server64");
    for (path, text, id, verdict) in [
        ("proc/cmdline", "isolcpus=domain,2-31 nohz_full=2-63 rcu_nocbs=all", "isolcpus", Pass),
        ("sys/devices/system/cpu/isolated", "2-31", "smt", Warn),
        ("proc/cmdline", "quiet", "rcu_nocbs", Fail),
        ("proc/cmdline", "nohz_full=all", "rcu_nocbs", Pass),
        ("proc/cmdline", "idle=poll", "idle_poll", Warn),
        ("proc/cmdline", "idle=halt", "idle_poll", Pass),
        ("sys/devices/system/cpu/cpu33/cpufreq/scaling_governor", "ondemand", "governor", Fail),
        ("sys/devices/system/cpu/cpu33/cpuidle/state1/disable", "0", "c_states", Warn),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]", "thp", Warn),
        ("proc/cpuinfo", "flags : tsc constant_tsc", "invariant_counter", Fail),
        ("proc/cpuinfo", "flags : tsc hypervisor", "hypervisor", Warn),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm", "clocksource", Fail),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock", "clocksource", Warn),
        ("proc/sys/kernel/numa_balancing", "1", "numa_balancing", Warn),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000", "rt_throttling", Warn),
        ("sys/fs/cgroup/pinwheel.slice/cpu.max", "200000 100000", "cpu_quota", Fail),
        ("sys/fs/cgroup/pinwheel.slice/cpu.max", "3200000 100000", "cpu_quota", Warn),
        ("proc/self/status", "Cpus_allowed_list: 0-32", "cpuset", Fail),
        ("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1024 0 -2", "swap", Warn),
        ("proc/self/limits", "Max locked memory 67108864 67108864 bytes", "memlock", Pass),
        ("proc/self/limits", "Max locked memory 67108863 67108864 bytes", "memlock", Warn),
        ("proc/sys/net/core/busy_read", "0", "busy_poll", Warn),
    ] {
        let before = std::fs::read_to_string(dir.path().join(path)).unwrap();
        write(dir.path(), path, text);
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        let rows = judge(&Observations::read(dir.path(), &host, &[32, 33]));
        assert_eq!(row(&rows, id).verdict, verdict, "{path}: {text}: {:?}", row(&rows, id));
        write(dir.path(), path, &before);
    }
}

#[test]
fn a_machine_that_shows_nothing_passes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let host = HostFacts::read_at(dir.path(), &[0, 1]);
    let rows = judge(&Observations::read(dir.path(), &host, &[1]));
    // One node without a directory of nodes, and a mask that the system did tell.
    assert_eq!(verdicts(&rows, Pass), ["numa_balancing", "cpuset"]);
    assert!(verdicts(&rows, Fail).is_empty() && verdicts(&rows, Warn).is_empty());
}

#[test]
fn lists_of_cores_are_printed_as_ranges() {
    assert_eq!(ranges(&[0, 2, 3, 4, 8]), "0,2-4,8");
    assert_eq!(ranges(&[]), "none");
}

/// The mask of a process leaves isolated cores out, unless it asks for them.
#[test]
fn on_a_machine_with_isolated_cores_the_remedy_is_to_start_there_and_not_to_isolate_others() {
    let dir = machine("server64");
    let fix = |allowed: &str, id: &str| {
        write(dir.path(), "proc/self/status", &format!("Cpus_allowed_list: {allowed}"));
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        row(&judge(&Observations::read(dir.path(), &host, &[1])), id).fix.clone()
    };
    let start = "start pinwheel on the isolated cores too: taskset -c 0-64,66-127 pinwheel …";
    for id in ["isolcpus", "nohz_full", "rcu_nocbs"] {
        assert_eq!(fix("0-1,64", id), start, "{id}");
    }
    // Here a cpuset or the operator says which cores it may use.
    assert!(fix("0-1", "isolcpus").contains("sudo reboot"));
}

#[test]
fn cores_of_the_command_line_are_read_as_the_kernel_reads_them() {
    let dir = machine("server64");
    let verdict = |words: &str, list: &str| {
        write(dir.path(), "proc/cmdline", words);
        write(dir.path(), "sys/devices/system/cpu/nohz_full", list);
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        row(&judge(&Observations::read(dir.path(), &host, &[32, 33])), "rcu_nocbs").verdict
    };
    assert_eq!(verdict("rcu_nocbs=2-N", "\n"), Pass);
    assert_eq!((verdict("rcu_nocbs=N", "\n"), verdict("rcu_nocbs=2-x", "\n")), (Fail, Fail));
    // Two of each four, beginning with core 0; then one.
    assert_eq!((verdict("rcu_nocbs=0-63:2/4", "\n"), verdict("rcu_nocbs=0-63:1/4", "\n")), (Pass, Fail));
    // The kernel's own list of cores without a tick, whatever was asked for.
    assert_eq!((verdict("nohz_full=2-N", "2-127\n"), verdict("nohz_full=2-63", "(null)\n")), (Pass, Fail));
}
