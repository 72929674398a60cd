//! The kernel's accounts of threads and cores, read through descriptors that stay open.
//!
//! Owns the descriptors for one process's hot threads. On a cold thread. Files are read whole, up
//! to [`TEXT_MAX`] bytes. A value that cannot be read is `None`, never zero, and is listed with the
//! way to make it visible.

use super::procfs::{self, CoreTimes, Interrupts, MachineTimes};
use crate::board::snapshot::OWN;
use crate::clock::Clock;
use crate::host::cpu_groups;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Something that cannot be seen here, and what would show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// What.
    pub what: &'static str,
    /// The sysctl, capability or flag.
    pub how: &'static str,
}

/// Another thread that had the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherThread {
    /// Its process; of several, the one that ran most.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// Time it ran on the core, nanoseconds; 0: it only stood ready there.
    pub ran_ns: u64,
    /// It belongs to this process.
    pub is_own: bool,
    /// It ran there by record of each switch.
    pub is_recorded: bool,
    /// Processes of this name and parent that ran there.
    pub processes: usize,
    /// Whose they are: parent and user, as far as they say more than the name.
    pub whose: String,
    /// Their control group; empty: the root, or not visible.
    pub control_group: String,
}

impl OtherThread {
    /// One that was seen on the core.
    pub fn seen(pid: u32, command: String, ran_ns: u64, is_own: bool) -> OtherThread {
        let (whose, control_group) = (String::new(), String::new());
        OtherThread { pid, command, ran_ns, is_own, is_recorded: false, processes: 1, whose, control_group }
    }

    /// Who it is, as sentences say it.
    pub fn who(&self) -> String {
        let OtherThread { pid, command, whose, .. } = self;
        match self.processes {
            1 if self.is_own => format!("{OWN}thread {command} ({pid})"),
            1 => format!("{command} ({pid}){whose}"),
            count => format!("{command} ×{count}{whose}"),
        }
    }
}

/// Bytes that are read of a file at first.
const TEXT_BYTES: usize = 256 << 10;
/// A longer file is not visible. `/proc/interrupts` of a thousand cores has some 20 MB.
const TEXT_MAX: usize = 64 << 20;

/// The kernel's account of a thread at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadAccount {
    /// When, nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// Time it has run, nanoseconds.
    pub ran_ns: Option<u64>,
    /// Time it was ready without running, nanoseconds, up to its last run.
    pub waited_ns: Option<u64>,
    /// Number of times it was given a core.
    pub turns: Option<u64>,
    /// Its state letter.
    pub state: Option<char>,
    /// Page faults served from memory.
    pub minor_faults: Option<u64>,
    /// Page faults served from disk.
    pub major_faults: Option<u64>,
    /// The core it runs on or ran on last.
    pub core: Option<u32>,
}

/// The kernel's account of one core at one moment, and of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreAccount {
    /// When, nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// Its times from `/proc/stat`.
    pub times: Option<CoreTimes>,
    /// The time of all cores.
    pub all: Option<MachineTimes>,
    /// Its interrupts.
    pub interrupts: Option<Interrupts>,
    /// Number of times, and nanoseconds, that the control group was throttled.
    pub throttled: Option<(u64, u64)>,
    /// Number of times that heat slowed the core.
    pub thermal: Option<u64>,
    /// Its frequency, and its highest frequency, kHz.
    pub frequency: Option<(u64, u64)>,
    /// The machine's pressure values.
    pub pressure: Option<Pressure>,
    /// Page faults from memory, of all threads of the process.
    pub process_faults: Option<u64>,
}

/// Share of the last ten seconds in which some task waited, in hundredths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Waited for a core.
    pub cpu: u32,
    /// Waited for memory to be reclaimed or read back.
    pub memory: u32,
    /// Waited for a disk.
    pub io: u32,
}

struct ThreadFiles {
    tid: u32,
    stat: Option<File>,
    schedstat: Option<File>,
}

/// The process whose threads are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process: its threads' clocks have nanosecond resolution.
    Own,
    /// Another process.
    Process(u32),
}

/// Open descriptors of one process's threads and of the machine.
pub struct Accounts {
    task: PathBuf,
    owner: Owner,
    threads: Vec<ThreadFiles>,
    stat: Option<File>,
    interrupts: Option<File>,
    /// Of the process's control group and those around it: a limit of any of them holds its threads
    /// back.
    cpu_stats: Vec<File>,
    /// Of cpu, memory and disk.
    pressure: [Option<File>; 3],
    /// Of the process as a whole.
    process: Option<File>,
    cores: Vec<CoreFiles>,
    text: Vec<u8>,
}

/// Open files on a core's frequency and thermal throttling.
struct CoreFiles {
    core: u32,
    now: Option<File>,
    most_khz: Option<u64>,
    heat: Option<File>,
}

impl CoreFiles {
    fn open(core: u32) -> CoreFiles {
        let place = PathBuf::from(format!("/sys/devices/system/cpu/cpu{core}"));
        let most = std::fs::read_to_string(place.join("cpufreq/cpuinfo_max_freq"));
        CoreFiles {
            core,
            now: File::open(place.join("cpufreq/scaling_cur_freq")).ok(),
            most_khz: most.ok().as_deref().and_then(procfs::frequency),
            heat: File::open(place.join("thermal_throttle/core_throttle_count")).ok(),
        }
    }
}

impl Accounts {
    /// Opens what is visible for the threads `tids` of `owner`.
    pub fn open(owner: Owner, tids: &[u32]) -> Accounts {
        let process = match owner {
            Owner::Own => "self".to_owned(),
            Owner::Process(pid) => pid.to_string(),
        };
        let root = PathBuf::from(format!("/proc/{process}"));
        let task = root.join("task");
        let open = |tid: &u32| {
            let file = |name: &str| File::open(task.join(format!("{tid}/{name}"))).ok();
            ThreadFiles { tid: *tid, stat: file("stat"), schedstat: file("schedstat") }
        };
        let threads = tids.iter().map(open).collect();
        let cpu_stats = cpu_stats(Path::new("/"), &process);
        let (stat, interrupts) = (File::open("/proc/stat").ok(), File::open("/proc/interrupts").ok());
        let pressure = ["cpu", "memory", "io"].map(|what| File::open(format!("/proc/pressure/{what}")).ok());
        let process = File::open(root.join("stat")).ok();
        let (cores, text) = (Vec::new(), Vec::new());
        Accounts { task, owner, threads, stat, interrupts, cpu_stats, pressure, process, cores, text }
    }

    /// The account of thread number `index`; `at_ns` is now.
    pub fn thread(&mut self, index: usize, at_ns: u64) -> ThreadAccount {
        let Some(files) = self.threads.get(index) else { return ThreadAccount::default() };
        let stat = read(files.stat.as_ref(), &mut self.text).and_then(procfs::stat);
        let times = read(files.schedstat.as_ref(), &mut self.text).and_then(procfs::schedstat);
        // The thread's clock counts up to now; the file up to the scheduler's last update.
        let own = (self.owner == Owner::Own).then(|| Clock::ran(files.tid)).flatten();
        ThreadAccount {
            at_ns,
            ran_ns: own.map(|ran| ran.0).or(times.map(|times| times.0)),
            waited_ns: times.map(|times| times.1),
            turns: times.map(|times| times.2),
            state: stat.map(|stat| stat.state),
            minor_faults: stat.map(|stat| stat.minor_faults),
            major_faults: stat.map(|stat| stat.major_faults),
            core: stat.map(|stat| stat.core),
        }
    }

    /// The account of `core`, the one that a thread is pinned to; `at_ns` is now. Without a core
    /// only that of the machine: no core's counters tell of a thread that may run on any.
    pub fn core(&mut self, core: Option<u32>, at_ns: u64) -> CoreAccount {
        let times = read(self.stat.as_ref(), &mut self.text)
            .map(|text| (core.and_then(|core| procfs::core_times(text, core)), procfs::machine_times(text)));
        let interrupts = core.and_then(|core| {
            read(self.interrupts.as_ref(), &mut self.text).and_then(|text| procfs::interrupts(text, core))
        });
        let throttled = throttled(&self.cpu_stats, &mut self.text);
        let (thermal, frequency) = core.map_or((None, None), |core| self.slowed(core));
        let process = read(self.process.as_ref(), &mut self.text).and_then(procfs::stat);
        CoreAccount {
            at_ns,
            times: times.and_then(|times| times.0),
            all: times.and_then(|times| times.1),
            interrupts,
            throttled,
            thermal,
            frequency,
            pressure: self.pressure(),
            process_faults: process.map(|stat| stat.minor_faults),
        }
    }

    /// Number of times that heat slowed `core`; its frequency and its highest frequency.
    fn slowed(&mut self, core: u32) -> (Option<u64>, Option<(u64, u64)>) {
        let place = self.cores.iter().position(|files| files.core == core).unwrap_or_else(|| {
            self.cores.push(CoreFiles::open(core));
            self.cores.len() - 1
        });
        let files = &self.cores[place];
        let thermal = read(files.heat.as_ref(), &mut self.text).and_then(|text| text.trim().parse().ok());
        let now = read(files.now.as_ref(), &mut self.text).and_then(procfs::frequency);
        (thermal, now.zip(files.most_khz))
    }

    fn pressure(&mut self) -> Option<Pressure> {
        let [cpu, memory, io] = &self.pressure;
        let mut share = |file: &Option<File>| read(file.as_ref(), &mut self.text).and_then(procfs::pressure);
        Some(Pressure { cpu: share(cpu)?, memory: share(memory)?, io: share(io)? })
    }

    /// Facts that are read only at an alarm: tracer, allowed cores, system call, kernel function in
    /// which it sleeps.
    pub fn detail(&self, index: usize) -> ThreadDetail {
        let Some(files) = self.threads.get(index) else { return ThreadDetail::default() };
        let text = |name: &str| crate::files::read_lossy(self.task.join(format!("{}/{name}", files.tid))).ok();
        let (tracer, allowed) = procfs::status(&text("status").unwrap_or_default());
        ThreadDetail {
            tracer,
            allowed,
            call: text("syscall").as_deref().and_then(procfs::syscall),
            sleeps_in: text("wchan").filter(|place| place != "0" && !place.is_empty()),
        }
    }

    /// What is not visible here, and how to make it visible.
    pub fn hidden(&self) -> Vec<Hidden> {
        let mut hidden = Vec::new();
        let mut note = |is_seen: bool, what: &'static str, how: &'static str| {
            if !is_seen {
                hidden.push(Hidden { what, how });
            }
        };
        let schedstat = self.threads.iter().all(|files| files.schedstat.is_some());
        note(
            schedstat,
            "time spent ready and not run",
            "a kernel with CONFIG_SCHED_INFO, or mount /proc without hidepid",
        );
        note(!self.cpu_stats.is_empty(), "CPU quota", "mount the cpu control group (docker: --cgroupns=host)");
        note(self.interrupts.is_some(), "interrupts by core", "run with /proc/interrupts readable");
        let frequency = Path::new("/sys/devices/system/cpu/cpu0/cpufreq").exists();
        note(frequency, "core frequency", "a host that shows /sys/devices/system/cpu/cpu*/cpufreq to its guests");
        let heat = Path::new("/sys/devices/system/cpu/cpu0/thermal_throttle").exists();
        note(heat, "thermal throttling", "a host that shows thermal_throttle to its guests");
        let pressure = self.pressure.iter().all(Option::is_some);
        note(pressure, "pressure on cores, memory and disk", "a kernel with CONFIG_PSI, started with psi=1");
        hidden
    }
}

/// See [`Accounts::detail`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadDetail {
    /// The process that traces it.
    pub tracer: Option<u32>,
    /// The cores that it may use.
    pub allowed: Option<Vec<u32>>,
    /// The system call in which it blocks: number, stack pointer, instruction pointer.
    pub call: Option<(i64, u64, u64)>,
    /// The kernel function in which it sleeps.
    pub sleeps_in: Option<String>,
}

fn read<'t>(file: Option<&File>, text: &'t mut Vec<u8>) -> Option<&'t str> {
    let file = file?;
    text.resize(text.len().max(TEXT_BYTES), 0);
    let mut filled = 0;
    loop {
        match read_at(file, &mut text[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(_) => return None,
        }
        if filled == TEXT_MAX {
            return None;
        }
        if filled == text.len() {
            text.resize(2 * filled, 0);
        }
    }
    // A name in it may contain any bytes; the rest is ASCII.
    text[..filled].iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
    std::str::from_utf8(&text[..filled]).ok()
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, at)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The accounts of the control groups that may limit the CPU time of `process`.
fn cpu_stats(root: &Path, process: &str) -> Vec<File> {
    cpu_groups(root, process).into_iter().filter_map(|group| File::open(group.join("cpu.stat")).ok()).collect()
}

/// How often, and for how many nanoseconds, these groups together were held back; `None` if none of
/// them counts it.
fn throttled(cpu_stats: &[File], text: &mut Vec<u8>) -> Option<(u64, u64)> {
    let each = cpu_stats.iter().filter_map(|file| read(Some(file), text).and_then(procfs::throttled));
    each.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Accounts, Owner, TEXT_BYTES, cpu_stats, read, throttled};
    use crate::trees;
    use std::fs::File;

    #[test]
    fn a_file_is_read_to_its_end_whatever_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("interrupts");
        let mut text = Vec::new();
        for length in [2 * TEXT_BYTES + 1, TEXT_BYTES, 10] {
            std::fs::write(&path, "x".repeat(length - 1) + "e").unwrap();
            let found =
                read(Some(&File::open(&path).unwrap()), &mut text).map(|text| (text.len(), text.ends_with('e')));
            assert_eq!(found, Some((length, true)));
        }
    }

    #[test]
    fn without_a_core_there_is_the_machines_account_alone() {
        let mut accounts = Accounts::open(Owner::Own, &[]);
        let found = accounts.core(None, 7);
        assert_eq!((found.at_ns, found.times, found.interrupts), (7, None, None));
        assert_eq!((found.thermal, found.frequency), (None, None));
        let here = std::path::Path::new("/proc/stat").exists();
        assert_eq!((found.all.is_some(), found.process_faults.is_some()), (here, here));
    }

    #[test]
    fn a_quota_of_a_group_around_the_process_holds_it_back_as_its_own_does() {
        let held = |files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            files.iter().for_each(|(path, text)| trees::write(root.path(), path, text));
            throttled(&cpu_stats(root.path(), "7"), &mut Vec::new())
        };
        let stat = |times: u64| format!("usage_usec 9\nnr_periods 8\nnr_throttled {times}\nthrottled_usec 20\n");
        let (own, pod) = ("sys/fs/cgroup/pods/a/cpu.stat", "sys/fs/cgroup/pods/cpu.stat");
        let root = ("sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        let group = ("proc/7/cgroup", "0::/pods/a\n");
        assert_eq!(held(&[group, root, (own, &stat(0)), (pod, &stat(3))]), Some((3, 40_000)));
        // A container sees its own group as the root of the mount.
        assert_eq!(held(&[group, ("sys/fs/cgroup/cpu.stat", &stat(2))]), Some((2, 20_000)));
        let first = "nr_periods 1\nnr_throttled 4\nthrottled_time 30\n";
        let in_pod = ("sys/fs/cgroup/cpu/pods/cpu.stat", first);
        assert_eq!(held(&[("proc/7/cgroup", "3:cpu,cpuacct:/pods/a\n0::/\n"), in_pod, root]), Some((4, 30)));
        assert_eq!((held(&[group, root]), held(&[])), (None, None));
    }
}
