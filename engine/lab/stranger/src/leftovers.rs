//! What a stranger that is killed leaves: its directories, mounts in them, a control group, and
//! programs that run there.
//!
//! Removed by a process of its own, which waits for the stranger's end; a signal to the stranger's
//! group does not reach it. Nothing is left to it when the stranger ends by itself. Bounds:
//! [`TRIES`] looks for programs.
//!
//! # Why no handler of signals
//! Signal 9 has none, and a round waits in many places.

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Names the stranger to the process that removes what it leaves.
const VARIABLE: &str = "PINWHEEL_STRANGER";
/// Most looks for programs that still run.
const TRIES: u32 = 200;
/// Between two.
const LOOK: Duration = Duration::from_millis(10);

/// The directory in memory, if there is one.
pub const MEMORY: &str = "/dev/shm";

/// What each name of this process's directories begins with.
pub fn prefix(pid: u32) -> String {
    format!("pinwheel-stranger-{pid}-")
}

/// The control group of a process's rounds.
pub fn group(pid: u32) -> PathBuf {
    PathBuf::from(format!("/sys/fs/cgroup/memory/pinwheel-stranger-{pid}"))
}

/// The process that removes what this one leaves, from now on.
pub struct Remover(Child);

impl Remover {
    /// Starts it.
    pub fn start() -> io::Result<Remover> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, std::process::id().to_string()).process_group(0);
        Ok(Remover(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Whether this process is there to remove what another leaves; then it has done so.
pub fn removed() -> bool {
    let Some(pid) = std::env::var(VARIABLE).ok().and_then(|pid| pid.parse().ok()) else { return false };
    // The stranger writes nothing: this ends with it.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    remove(pid);
    true
}

fn remove(pid: u32) {
    let prefix = format!("/{}", prefix(pid));
    for _ in 0..TRIES {
        let running = programs(&prefix);
        if running.is_empty() {
            break;
        }
        for program in running {
            let _ = kill_process(program, Signal::KILL);
        }
        thread::sleep(LOOK);
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for place in mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|place| place.contains(&prefix)) {
        let _ = unmount(place, UnmountFlags::DETACH);
    }
    for parent in [std::env::temp_dir(), PathBuf::from(MEMORY)] {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| path.to_string_lossy().contains(&prefix)) {
            let _ = (fs::remove_file(&path), fs::remove_dir_all(&path));
        }
    }
    let _ = fs::remove_dir(group(pid));
}

/// Processes with a variable that names a directory of this prefix, as
/// [`World::dress`](crate::world::World::dress) sets some.
fn programs(prefix: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = processes.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let variables = fs::read(entry.path().join("environ")).ok()?;
        String::from_utf8_lossy(&variables).contains(prefix).then_some(pid)
    });
    found.collect()
}
