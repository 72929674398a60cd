//! Facts from trees that are not this machine's.
#![allow(clippy::unwrap_used, reason = "harness")]

use std::path::Path;

use proptest::prelude::{any, proptest};
use proptest::test_runner::Config;
use tempfile::TempDir;

use super::{CORES_MAX, HostFacts, Quota, parse_cpu_list};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    dir
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn quota(files: &[(&str, &str)]) -> Quota {
    HostFacts::read_at(tree(files).path(), &[0]).cpu_quota
}

#[test]
fn cores_have_their_node_and_siblings() {
    let dir = tree(&[
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,64\n"),
        ("sys/devices/system/cpu/cpu0/node0/meminfo", ""),
        ("sys/devices/system/cpu/cpu3/topology/core_cpus_list", "2-3\n"),
        ("sys/devices/system/cpu/cpu3/node1/meminfo", ""),
    ]);
    let facts = HostFacts::read_at(dir.path(), &[3, 0, 3]);
    let rows: Vec<(u32, u32, &[u32])> = facts.cores.iter().map(|c| (c.core, c.node, c.siblings.as_slice())).collect();
    assert_eq!(rows, [(0, 0, [64].as_slice()), (3, 1, [2].as_slice())]);
    assert_eq!(facts.core(3).unwrap().node, 1);
    assert_eq!(facts.core(1), None);
}

#[test]
fn a_machine_that_shows_nothing_is_not_visible() {
    let facts = HostFacts::read_at(tree(&[]).path(), &[0, 1]);
    assert_eq!(facts.cpu_quota, Quota::NotVisible);
    assert_eq!((facts.hostname, facts.cpu_model, facts.hypervisor), (None, None, None));
    assert_eq!((facts.memory_bytes, facts.user), (None, None));
    assert_eq!(facts.cores.len(), 2);
}

#[test]
fn identity_comes_from_the_tree() {
    let dir = tree(&[
        ("proc/sys/kernel/hostname", "rack7\n"),
        ("proc/sys/kernel/osrelease", "6.8.0\n"),
        ("proc/sys/kernel/random/boot_id", "0d9c814b\n"),
        ("proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n"),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\n"),
        ("proc/meminfo", "MemTotal:       24684096 kB\nMemFree: 1 kB\n"),
        ("proc/cpuinfo", "model name\t: AMD EPYC\nflags\t\t: fpu hypervisor avx\n"),
    ]);
    let facts = HostFacts::read_at(dir.path(), &[0]);
    assert_eq!(facts.hostname.as_deref(), Some("rack7"));
    assert_eq!(facts.kernel_release.as_deref(), Some("6.8.0"));
    assert_eq!(facts.boot_id.as_deref(), Some("0d9c814b"));
    assert_eq!(facts.user.as_deref(), Some("ada"));
    assert_eq!(facts.cpu_model.as_deref(), Some("AMD EPYC"));
    assert_eq!(facts.hypervisor, Some(true));
    assert_eq!(facts.memory_bytes, Some(24_684_096 * 1024));
    write(dir.path(), "etc/passwd", "");
    assert_eq!(HostFacts::read_at(dir.path(), &[0]).user.as_deref(), Some("uid 1000"));
}

#[test]
fn an_arm_processor_has_a_model_and_hides_its_hypervisor() {
    let dir = tree(&[("proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")]);
    let facts = HostFacts::read_at(dir.path(), &[0]);
    assert_eq!(facts.cpu_model.as_deref(), Some("implementer 0x41 part 0xd4f"));
    assert_eq!(facts.hypervisor, None);
}

#[test]
fn the_tightest_quota_of_the_groups_counts() {
    let group = ("proc/self/cgroup", "0::/a/b\n");
    assert_eq!(quota(&[group, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), Quota::Unlimited);
    let found = quota(&[
        group,
        ("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
    ]);
    assert_eq!(found, Quota::Limited { quota_us: 150_000, period_us: 100_000 });
    assert_eq!(found.cores(), Some(1.5));
    assert_eq!(quota(&[group, ("sys/fs/cgroup/a/cpu.max", "junk\n")]), Quota::NotVisible);
}

#[test]
fn quotas_of_the_first_version_are_read() {
    let group = ("proc/self/cgroup", "2:cpu,cpuacct:/x\n1:name=systemd:/\n");
    let period = ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    let file = "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us";
    assert_eq!(quota(&[group, period, (file, "-1\n")]), Quota::Unlimited);
    let found = quota(&[group, period, (file, "50000\n")]);
    assert_eq!(found, Quota::Limited { quota_us: 50_000, period_us: 100_000 });
}

#[test]
fn lists_of_cores_are_read() {
    assert_eq!(parse_cpu_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
    assert_eq!(parse_cpu_list("3,1-3"), Some(vec![1, 2, 3]));
    assert_eq!(parse_cpu_list("\n"), Some(vec![]));
    for bad in ["a", "3-1", "1-", "-1", "0-1024", "1024"] {
        assert_eq!(parse_cpu_list(bad), None, "{bad}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_has_a_core_to_run_on() {
    let facts = HostFacts::read().unwrap();
    assert!(!facts.cores.is_empty());
    assert!(facts.kernel_release.is_some());
    assert_eq!(serde_json::to_value(&facts).unwrap()["cores"].as_array().unwrap().len(), facts.cores.len());
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_list_of_cores_is_sorted_and_bounded_or_refused(text in "[0-9,\\- \n]{0,60}") {
        if let Some(cores) = parse_cpu_list(&text) {
            assert!(cores.is_sorted() && cores.len() <= CORES_MAX as usize);
        }
    }

    #[test]
    fn any_text_in_any_file_is_survived(text in any::<String>()) {
        let files = ["proc/cpuinfo", "proc/meminfo", "proc/self/cgroup", "proc/self/status", "etc/passwd"];
        let files: Vec<(&str, &str)> = files.iter().map(|file| (*file, text.as_str())).collect();
        assert_eq!(HostFacts::read_at(tree(&files).path(), &[0]).cores.len(), 1);
    }
}

#[test]
fn isolated_cores_that_the_kernel_left_out_are_named_with_the_command_that_uses_them() {
    let said = |isolated: &str, allowed: &[u32]| {
        let dir = tree(&[("sys/devices/system/cpu/online", "0-7\n"), ("sys/devices/system/cpu/isolated", isolated)]);
        HostFacts::read_at(dir.path(), allowed).isolated_left_out(dir.path())
    };
    let note = "isolated core 2-7 left out; start with taskset -c 0-7 to use it";
    assert_eq!(said("2-7\n", &[0, 1]).as_deref(), Some(note));
    assert_eq!((said("2-7\n", &[0]), said("\n", &[0, 1])), (None, None), "something else restricts it");
    assert_eq!(said("2-7\n", &[0, 1, 2, 3, 4, 5, 6, 7]), None);
}

/// Nobody needs to know who has cores that this process may not use.
#[test]
#[cfg(target_os = "linux")]
fn only_claims_of_cores_that_the_process_could_use_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let _claims = super::claims::Claims::take(folder.path(), &[900, 905, 906]).unwrap();
    let mut host = HostFacts::read_at(Path::new("/no/such"), &[904, 905]);
    host.cores[1].siblings = vec![906];
    let (left, notes) = host.without_used_cores(folder.path());
    assert_eq!(left.cores.iter().map(|facts| facts.core).collect::<Vec<_>>(), [904]);
    assert!(notes[0].starts_with("core 905,906 left to process "), "{notes:?}");
}
