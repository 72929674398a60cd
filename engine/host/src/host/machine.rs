//! Identity, processor, memory and quota of the machine.
//!
//! Cold, before start. Each function reads one file, [`quota`] up to [`DEPTH_MAX`] control groups.
//! Never fails: what cannot be read is not visible.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{parse_cpu_list, read_text};

/// Deepest nesting of control groups followed.
const DEPTH_MAX: usize = 32;

/// The CPU time that the control group allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    /// No visible group has a limit.
    Unlimited,
    /// At most `quota_us` of CPU time in every `period_us`, over all threads; the tightest of the
    /// groups.
    Limited {
        /// CPU time, µs.
        quota_us: u64,
        /// Its period, µs.
        period_us: u64,
    },
    /// No group shows whether there is a limit.
    NotVisible,
}

impl Quota {
    /// The number of cores that the quota corresponds to.
    pub fn cores(self) -> Option<f64> {
        match self {
            // A quota is far below 2^53 µs: no digit is lost.
            Self::Limited { quota_us, period_us } if period_us > 0 => Some(quota_us as f64 / period_us as f64),
            _ => None,
        }
    }
}

/// The first line of a file without the blanks around it.
pub(super) fn word(root: &Path, path: &str) -> Option<String> {
    let text = read_text(&root.join(path))?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The user of `proc/self/status`, by `etc/passwd`.
pub(super) fn user(root: &Path) -> Option<String> {
    user_of(root, "self")
}

/// The cores that the process of `proc/self/status` may use, ascending.
pub(super) fn allowed(root: &Path) -> Option<Vec<u32>> {
    let status = read_text(&root.join("proc/self/status"))?;
    parse_cpu_list(status_field(&status, "Cpus_allowed_list")?)
}

/// The value of a field of a `status` file.
pub(super) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The user of process `pid`, by `etc/passwd`.
pub(super) fn user_of(root: &Path, pid: &str) -> Option<String> {
    let status = read_text(&root.join("proc").join(pid).join("status"))?;
    let uid = status_field(&status, "Uid")?.split_whitespace().next()?.to_owned();
    let passwd = read_text(&root.join("etc/passwd")).unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid {uid}")))
}

/// Bytes of a row of `proc/meminfo`: `MemTotal`, `MemAvailable`.
pub(super) fn memory_bytes(root: &Path, row: &str) -> Option<u64> {
    let text = read_text(&root.join("proc/meminfo"))?;
    let kib = status_field(&text, row)?.strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

pub(super) struct Cpu {
    pub(super) model: Option<String>,
    pub(super) hypervisor: Option<bool>,
}

/// The processor, from `proc/cpuinfo`. Only x86 shows a hypervisor there; elsewhere
/// `sys/hypervisor` may.
pub(super) fn cpu(root: &Path) -> Cpu {
    let text = read_text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let arm = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    let flagged = field("flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let shown = root.join("sys/hypervisor/type").exists().then_some(true);
    Cpu { model: field("model name").or_else(arm), hypervisor: flagged.or(shown) }
}

/// The tightest quota of this process's control group and the groups above it, of either version.
pub(super) fn quota(root: &Path) -> Quota {
    quota_and_file(root).0
}

/// As [`quota`], with the file that sets it.
pub(super) fn quota_and_file(root: &Path) -> (Quota, PathBuf) {
    let mut found = (Quota::NotVisible, PathBuf::new());
    for (version, dir) in versioned_cpu_groups(root, "self") {
        let (quota, file) = match version {
            GroupVersion::First => (version_1(&dir), "cpu.cfs_quota_us"),
            GroupVersion::Second => (version_2(&dir), "cpu.max"),
        };
        found = tighter(found, (quota, dir.join(file)));
    }
    found
}

/// The directories of the control groups that may limit the CPU time of `process`, `self` or its
/// number: its own group and those around it, of either version.
pub fn cpu_groups(root: &Path, process: &str) -> Vec<PathBuf> {
    versioned_cpu_groups(root, process).into_iter().map(|(_, dir)| dir).collect()
}

#[derive(Clone, Copy)]
enum GroupVersion {
    First,
    Second,
}

fn versioned_cpu_groups(root: &Path, process: &str) -> Vec<(GroupVersion, PathBuf)> {
    let mounted = root.join("sys/fs/cgroup");
    let of_group = |(controllers, group): &(String, String)| {
        if controllers.is_empty() {
            return ancestors(&mounted, group).into_iter().map(|dir| (GroupVersion::Second, dir)).collect();
        }
        if !controllers.split(',').any(|name| name == "cpu") {
            return Vec::new();
        }
        // These names may lead to one place.
        let mut mounts = [controllers, "cpu", "cpu,cpuacct"].into_iter().map(|name| mounted.join(name));
        let Some(mount) = mounts.find(|mount| mount.is_dir()) else { return Vec::new() };
        ancestors(&mount, group).into_iter().map(|dir| (GroupVersion::First, dir)).collect::<Vec<_>>()
    };
    control_groups(root, process).iter().flat_map(of_group).collect()
}

/// The control groups of `process`, `self` or its number: the controllers of each, empty for
/// version 2, and its path; empty if they are not visible.
pub(super) fn control_groups(root: &Path, process: &str) -> Vec<(String, String)> {
    let text = read_text(&root.join("proc").join(process).join("cgroup")).unwrap_or_default();
    let group = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some((controllers.to_owned(), path.to_owned()))
    };
    text.lines().filter_map(group).collect()
}

/// The directories of a group and of all groups around it, the innermost first.
pub(super) fn ancestors(mount: &Path, group: &str) -> Vec<PathBuf> {
    let names: Vec<&str> = group.split('/').filter(|name| !matches!(*name, "" | "." | "..")).take(DEPTH_MAX).collect();
    (0..=names.len()).rev().map(|depth| mount.join(names[..depth].join("/"))).collect()
}

/// `cpu.max`: `max 100000` or `150000 100000`.
fn version_2(dir: &Path) -> Quota {
    let text = read_text(&dir.join("cpu.max")).unwrap_or_default();
    let mut words = text.split_whitespace();
    match (words.next(), words.next().map(str::parse)) {
        (Some("max"), _) => Quota::Unlimited,
        (Some(quota), Some(Ok(period_us))) => {
            quota.parse().map_or(Quota::NotVisible, |quota_us| Quota::Limited { quota_us, period_us })
        }
        _ => Quota::NotVisible,
    }
}

/// `cpu.cfs_quota_us`, where -1 means none, and `cpu.cfs_period_us`.
fn version_1(dir: &Path) -> Quota {
    let number = |name: &str| read_text(&dir.join(name))?.trim().parse::<i64>().ok();
    match (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us").map(u64::try_from)) {
        (Some(quota), Some(Ok(period_us))) => {
            u64::try_from(quota).map_or(Quota::Unlimited, |quota_us| Quota::Limited { quota_us, period_us })
        }
        _ => Quota::NotVisible,
    }
}

fn tighter(a: (Quota, PathBuf), b: (Quota, PathBuf)) -> (Quota, PathBuf) {
    match (a.0, b.0) {
        (_, Quota::NotVisible) => a,
        (Quota::NotVisible, _) => b,
        (_, Quota::Unlimited) => a,
        (Quota::Unlimited, _) => b,
        (of_a, of_b) if of_b.cores() < of_a.cores() => b,
        _ => a,
    }
}
