//! Parses the kernel's files on threads and the machine.
//!
//! Pure: text in, numbers out. A field that is missing is `None`, never zero.

/// Fields of `/proc/PID/task/TID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// One letter: R S D T t Z X.
    pub state: char,
    /// Faults served from memory.
    pub minor_faults: u64,
    /// Page faults served from disk.
    pub major_faults: u64,
    /// Core that it runs or last ran on.
    pub core: u32,
}

/// Parses `stat`. proc(5) numbers fields from 1; field 3 is the first after the name, which may
/// contain anything.
pub fn stat(text: &str) -> Option<Stat> {
    let words: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| words.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: words.first()?.chars().next()?,
        minor_faults: number(10)?,
        major_faults: number(12)?,
        core: u32::try_from(number(39)?).ok()?,
    })
}

/// Parses `schedstat`: time run, time ready without running, times given a core. The second grows
/// only when it runs again.
pub fn schedstat(text: &str) -> Option<(u64, u64, u64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??, words.next()??))
}

/// Parses `status`: tracing process, allowed cores.
pub fn status(text: &str) -> (Option<u32>, Option<Vec<u32>>) {
    let field = |name: &str| text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()));
    let tracer = field("TracerPid").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    (tracer, field("Cpus_allowed_list").map(cores))
}

/// `0-3,7`.
fn cores(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Parses `/proc/PID/task/TID/syscall`: the call's number, stack pointer, instruction pointer;
/// `None` while it runs.
pub fn syscall(text: &str) -> Option<(i64, u64, u64)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let (sp, pc) = (hex(words.get(words.len().checked_sub(2)?)?)?, hex(words.last()?)?);
    Some((words.first()?.parse().ok()?, sp, pc))
}

/// One core's line of `/proc/stat`, in the kernel's units of 1/100 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTimes {
    /// Time in hard and soft interrupts.
    pub interrupts: u64,
    /// Time stolen by the hypervisor.
    pub steal: u64,
}

/// Time of all cores together, in the kernel's units of 1/100 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTimes {
    /// Their sum, with that of cores that are offline now.
    pub total: u64,
    /// Number of cores that are online.
    pub cores: u64,
}

/// The line of `core`. Steal can go backwards, so subtract saturating.
pub fn core_times(text: &str, core: u32) -> Option<CoreTimes> {
    let numbers = times(text, &format!("cpu{core}"))?;
    Some(CoreTimes { interrupts: numbers[5] + numbers[6], steal: numbers[7] })
}

/// The line of all cores, and how many there are.
pub fn machine_times(text: &str) -> Option<MachineTimes> {
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let cores = text.lines().filter(is_core).count().max(1) as u64;
    Some(MachineTimes { total: times(text, "cpu")?.iter().sum(), cores })
}

/// user nice system idle iowait irq softirq steal of the line `name`; guest time is in user
/// already.
fn times(text: &str, name: &str) -> Option<[u64; 8]> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    let mut numbers = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok());
    Some(std::array::from_fn(|_| numbers.next().unwrap_or(0)))
}

/// Interrupts of one core by `/proc/interrupts`. Which rows there are depends on the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// TLB shootdowns; `None` without such a row.
    pub shootdowns: Option<u64>,
    /// The core's own timer interrupts; `None` without such a row.
    pub timer: Option<u64>,
    /// All others.
    pub others: u64,
}

impl Interrupts {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.shootdowns.unwrap_or(0) + self.timer.unwrap_or(0) + self.others
    }
}

/// The interrupts of `core`.
pub fn interrupts(text: &str, core: u32) -> Option<Interrupts> {
    let mut lines = text.lines();
    let column = lines.next()?.split_whitespace().position(|name| name == format!("CPU{core}"))?;
    let mut found = Interrupts::default();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let Some(count) = words.nth(column).and_then(|word| word.parse::<u64>().ok()) else { continue };
        match name.trim_end_matches(':') {
            "TLB" => found.shootdowns = Some(count),
            "LOC" => found.timer = Some(count),
            _ => found.others += count,
        }
    }
    Some(found)
}

/// Parses a control group's `cpu.stat`, of either version: times throttled, nanoseconds throttled.
pub fn throttled(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let of = |line: &str| line.split_once(' ').filter(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok();
        text.lines().find_map(of)
    };
    Some((field("nr_throttled")?, field("throttled_usec").map(|us| us * 1_000).or(field("throttled_time"))?))
}

/// Parses `/proc/pressure/*`: share of the last ten seconds in which some task waited, in
/// hundredths of a percent. The total in these files changes only every two seconds, too slowly for
/// stalls of milliseconds.
pub fn pressure(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let share = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?;
    let (whole, part) = share.split_once('.')?;
    (part.len() == 2).then_some(())?;
    Some(whole.parse::<u32>().ok()?.checked_mul(100)? + part.parse::<u32>().ok()?)
}

/// Parses a frequency file of `cpufreq`, kHz.
pub fn frequency(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|khz| *khz > 0)
}

/// Whether a state letter means that a signal or a tracer has stopped the thread.
pub const fn is_stopped(state: char) -> bool {
    matches!(state, 'T' | 't')
}

/// Name of a system call that may block; its number for others.
pub fn call_name(number: i64) -> String {
    #[cfg(target_arch = "x86_64")]
    const NAMES: [(i64, &str); 22] = [
        (0, "read"),
        (1, "write"),
        (7, "poll"),
        (17, "pread64"),
        (18, "pwrite64"),
        (20, "writev"),
        (23, "select"),
        (24, "sched_yield"),
        (35, "nanosleep"),
        (42, "connect"),
        (43, "accept"),
        (44, "sendto"),
        (45, "recvfrom"),
        (47, "recvmsg"),
        (61, "wait4"),
        (74, "fsync"),
        (202, "futex"),
        (230, "clock_nanosleep"),
        (232, "epoll_wait"),
        (257, "openat"),
        (9, "mmap"),
        (11, "munmap"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const NAMES: [(i64, &str); 10] = [
        (63, "read"),
        (64, "write"),
        (22, "epoll_pwait"),
        (73, "ppoll"),
        (82, "fsync"),
        (98, "futex"),
        (101, "nanosleep"),
        (115, "clock_nanosleep"),
        (124, "sched_yield"),
        (222, "mmap"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{
        CoreTimes, Interrupts, MachineTimes, Stat, core_times, frequency, interrupts, machine_times, pressure,
        schedstat, stat, status, syscall, throttled,
    };

    #[test]
    fn a_threads_files_are_read_whatever_its_name_holds() {
        let line = "7 (a) R (b) S 1 2 3 4 -1 64 500 0 7 0 12 5 1 6 20 0 2 0 99 9 9 1 2 3 4 5 6 7 8 9 10 0 0 0 17 3 0 0";
        assert_eq!(stat(line), Some(Stat { state: 'S', minor_faults: 500, major_faults: 7, core: 3 }));
        assert_eq!(stat("7 (a"), None);
        assert_eq!(schedstat("5 6 7\n"), Some((5, 6, 7)));
        assert_eq!(schedstat("5 6"), None);
        let text = "State:\tR\nTracerPid:\t44\nCpus_allowed_list:\t0-2,5\n";
        assert_eq!(status(text), (Some(44), Some(vec![0, 1, 2, 5])));
        assert_eq!(status("TracerPid:\t0\n").0, None);
        assert_eq!(syscall("230 0x1 0x0 0x2 0x3 0x4 0x5 0x7ffd 0x7f1a\n"), Some((230, 0x7ffd, 0x7f1a)));
        assert_eq!(syscall("running\n"), None);
    }

    #[test]
    fn pressure_and_frequency_are_read_and_what_is_no_number_is_not_visible() {
        let text = "some avg10=4.79 avg60=43.93 avg300=80.31 total=2014485314\nfull avg10=0.00 avg60=0.00 \
            avg300=0.00 total=0\n";
        assert_eq!(pressure(text), Some(479));
        assert_eq!(pressure("some avg10=100.00 avg60=0.00 avg300=0.00 total=9\n"), Some(10_000));
        for text in ["", "full avg10=1.00 avg60=0.00 avg300=0.00 total=0\n", "some avg10=x.00\n", "some avg10=1\n"] {
            assert_eq!(pressure(text), None, "{text}");
        }
        assert_eq!((frequency("2400000\n"), frequency("<unknown>\n"), frequency("0\n")), (Some(2_400_000), None, None));
    }

    #[test]
    fn the_machines_files_are_read_by_core() {
        let text = "cpu 10 0 10 10 0 1 2 5 0 0\ncpu1 4 0 4 4 0 1 1 3 9 9\n";
        assert_eq!(core_times(text, 1), Some(CoreTimes { interrupts: 2, steal: 3 }));
        assert_eq!(machine_times(text), Some(MachineTimes { total: 38, cores: 1 }));
        assert_eq!(core_times(text, 0), None);
        let text =
            "           CPU0       CPU1\n 24:  1  0  IO-APIC\nLOC: 100 200 Local\nTLB: 3 40 TLB shootdowns\nERR: 0\n";
        assert_eq!(interrupts(text, 1), Some(Interrupts { shootdowns: Some(40), timer: Some(200), others: 0 }));
        assert_eq!(interrupts(text, 5), None);
        let text = " CPU0 CPU1\n 11: 7 8 GICv3 27 Level arch_timer\nIPI1: 5 6 Function call interrupts\n";
        assert_eq!(interrupts(text, 1), Some(Interrupts { shootdowns: None, timer: None, others: 14 }), "on AArch64");
        assert_eq!(throttled("nr_periods 1\nnr_throttled 2\nthrottled_time 30\n"), Some((2, 30)));
        assert_eq!(throttled("nr_throttled 2\nthrottled_usec 30\n"), Some((2, 30_000)));
        assert_eq!(throttled(""), None);
    }
}
