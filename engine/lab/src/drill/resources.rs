//! Drills that let a resource run out at a known rate, and compare the time left that the watchdog
//! says with the true one.
//!
//! On the drill's thread; disk and memory are filled by another one. Each stops long before the
//! resource ends, and gives back what it took.

use super::control_group::ControlGroup;
use super::drill_engine::{DrillEngine, Pages, profile, rest};
use super::{Drill, DrillError, DrillVerdict};
use crate::board::alarms::Site;
use crate::board::snapshot::AlarmView;
use crate::hot::drill_role::Misbehaviour;
use crate::profile::{Profile, Rate, RuleId};
use crate::roles::RoleKind;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest wait for the warning: a trend takes ten seconds.
const WARNING_LIMIT: Duration = Duration::from_secs(25);
/// The time left may be wrong by this share of it, and by a second.
const WRONG_SHARE: f64 = 0.3;
/// Pause between two pieces, and what is filled in a second.
const PAUSE: Duration = Duration::from_millis(100);
const DISK_EACH_S: u64 = 4 << 20;
const MEMORY_EACH_S: u64 = 32 << 20;
/// Where the rule about the disk begins, and what the drill's disk has above it.
const DISK_LIMIT: u64 = 256 << 20;
const DISK_ROOM: u64 = 96 << 20;
/// Limit of the drill's control group.
const MEMORY_LIMIT: u64 = 1 << 30;
/// Shots in a second while the device completes none, and the slots that they fill.
const SLOTS_EACH_S: f64 = 8.0;
const SLOTS: u32 = 256;
/// No shot is given up before the slots are full, µs: a profile's longest deadline.
const PATIENCE_US: u32 = 60_000_000;

/// Slots fill because the device completes nothing.
pub(super) fn slots_fill() -> Result<DrillVerdict, DrillError> {
    let engine = DrillEngine::start(profile_of_slots()?, None, Pages::None)?;
    let from_ns = engine.now_ns();
    engine.drill_command.request(RoleKind::Device, Misbehaviour::StandStill, Duration::ZERO);
    let left_s = |now_ns: u64| f64::from(SLOTS) / SLOTS_EACH_S - now_ns.saturating_sub(from_ns) as f64 / 1e9;
    let given = warning(&engine, Drill::SlotsFill, Site::Silo(0, 0), from_ns, left_s);
    engine.end();
    given
}

fn profile_of_slots() -> Result<Profile, DrillError> {
    let mut profile = profile()?;
    profile.input.rate = Rate::Hz(SLOTS_EACH_S);
    (profile.limits.launch_deadline_us, profile.limits.shot_deadline_us) = (PATIENCE_US, PATIENCE_US);
    profile.slots = SLOTS;
    Ok(profile)
}

/// A file grows on a small disk on which the run is kept.
pub(super) fn disk_fills() -> Result<DrillVerdict, DrillError> {
    let disk = SmallDisk::mount()?;
    let engine = DrillEngine::start_in(profile()?, &disk.0)?;
    let given = filling(DISK_EACH_S, write_file(&disk.0.join("filling")), |filled| {
        let left_s = |_| DISK_ROOM.saturating_sub(filled.load(Ordering::Relaxed)) as f64 / DISK_EACH_S as f64;
        warning(&engine, Drill::DiskFills, Site::Engine(0), engine.now_ns(), left_s)
    });
    engine.end();
    given
}

/// Memory is taken in a control group with a limit.
pub(super) fn memory_fills() -> Result<DrillVerdict, DrillError> {
    let limit = ("memory.limit_in_bytes", "memory.max");
    let group = ControlGroup::make("memory", limit)?;
    group.set(limit, &MEMORY_LIMIT.to_string())?;
    group.take(std::process::id())?;
    let engine = DrillEngine::start(profile()?, None, Pages::None)?;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    let take = move |bytes: usize| {
        // Each page is touched.
        taken.push(vec![1; bytes]);
        Ok(())
    };
    let given = filling(MEMORY_EACH_S, take, |_| {
        let left_s = |_| {
            let used = group.read(("memory.usage_in_bytes", "memory.current")).parse().unwrap_or(0);
            MEMORY_LIMIT.saturating_sub(used) as f64 / MEMORY_EACH_S as f64
        };
        warning(&engine, Drill::MemoryFills, Site::Engine(1), engine.now_ns(), left_s)
    });
    engine.end();
    given
}

/// Waits for the warning about `site`, and compares the time left that it says with `left_s` of that moment.
fn warning(
    engine: &DrillEngine,
    drill: Drill,
    site: Site,
    from_ns: u64,
    left_s: impl Fn(u64) -> f64,
) -> Result<DrillVerdict, DrillError> {
    let is_it = |alarm: &AlarmView| alarm.rule == RuleId::RunningOut.name() && alarm.site == site;
    let first = engine.until(WARNING_LIMIT, |now| {
        let alarm = now.alarms.iter().find(|alarm| is_it(alarm))?;
        Some((alarm.sentence.clone(), left_s(now.at_ns)))
    });
    let late = || DrillError::Failed(format!("no warning within {} s", WARNING_LIMIT.as_secs()));
    let (sentence, left_s) = first.ok_or_else(late)?;
    let said_s = sentence.rsplit(' ').nth(1).and_then(|seconds| seconds.parse::<f64>().ok()).unwrap_or(f64::NAN);
    if (said_s - left_s).abs() <= WRONG_SHARE * left_s + 1.0 {
        return engine.verdict(drill.expected(), from_ns, is_it);
    }
    Err(DrillError::Failed(format!("{left_s:.0} s were left when it said: {sentence}")))
}

/// Runs `body` while another thread fills the resource by `fill`, so many bytes a second; `body` gets what is filled.
fn filling<T>(
    each_s: u64,
    mut fill: impl FnMut(usize) -> std::io::Result<()> + Send,
    body: impl FnOnce(&AtomicU64) -> T,
) -> T {
    let (filled, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    let piece = (each_s * PAUSE.as_millis() as u64 / 1_000) as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) && fill(piece).is_ok() {
                filled.fetch_add(piece as u64, Ordering::Relaxed);
                rest(PAUSE);
            }
        });
        let done = body(&filled);
        ends.store(true, Ordering::Relaxed);
        done
    })
}

fn write_file(path: &Path) -> impl FnMut(usize) -> std::io::Result<()> + Send + use<> {
    let file = File::create(path);
    move |bytes| file.as_ref().map_err(|error| std::io::Error::from(error.kind()))?.write_all(&vec![1; bytes])
}

/// A file system in memory. Unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount() -> Result<SmallDisk, DrillError> {
        let place = std::env::temp_dir().join(format!("pinwheel-drill-disk-{}", std::process::id()));
        let refused = |error: &dyn std::fmt::Display| {
            DrillError::NotPermitted(format!("cannot mount a small disk at {}: {error}", place.display()))
        };
        fs::create_dir_all(&place).map_err(|error| refused(&error))?;
        let disk = SmallDisk(place.clone());
        imp::mount(&place, DISK_LIMIT + DISK_ROOM).map_err(|error| refused(&error))?;
        Ok(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        imp::unmount(&self.0);
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use rustix::mount::{MountFlags, UnmountFlags, mount as mount_at, unmount as unmount_at};
    use std::ffi::CString;
    use std::path::Path;

    pub(super) fn mount(place: &Path, bytes: u64) -> std::io::Result<()> {
        let options = CString::new(format!("size={bytes}"))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount_at("tmpfs", place, "tmpfs", flags, &*options)?)
    }

    pub(super) fn unmount(place: &Path) {
        let _ = unmount_at(place, UnmountFlags::DETACH);
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::path::Path;

    pub(super) fn mount(_: &Path, _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(super) fn unmount(_: &Path) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{SLOTS, SLOTS_EACH_S, profile, profile_of_slots};

    /// An engine refuses a profile with a value outside its range, and with it the drill.
    #[test]
    fn drills_have_profiles_that_an_engine_takes() {
        assert_eq!(profile().unwrap().validate(), []);
        let of_slots = profile_of_slots().unwrap();
        assert_eq!(of_slots.validate(), []);
        let expires_s = f64::from(of_slots.limits.shot_deadline_us) / 1e6;
        assert!(f64::from(SLOTS) / SLOTS_EACH_S < expires_s, "a shot expires before the slots are full");
    }
}
