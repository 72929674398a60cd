//! Observations of one stall: what the verdict is made from, and nothing else.
//!
//! Plain data. Every difference lies inside the stall, or between the looks nearest to it. What was not visible is `None`.

use super::account::{Closer, CoreAccount, Pressure, ThreadAccount};
use super::switches::Switched;
use pinwheel_edge::spin::SpinPolicy;

/// The kernel's unit in `/proc/stat`, nanoseconds.
pub const JIFFY_NS: u64 = 10_000_000;

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
pub struct Other {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub command: String,
    /// Time it ran on the core, nanoseconds; 0: it only stood ready there.
    pub ran_ns: u64,
    /// It belongs to this process.
    pub is_own: bool,
}

/// What became of the signal that asks for a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// None was sent.
    #[default]
    Not,
    /// It was taken inside the stall.
    Answered,
    /// It was not taken while the stall lasted.
    Unanswered,
}

/// One stall of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// The thread's name.
    pub thread: String,
    /// The role it is in; `None`: between roles.
    pub role: Option<&'static str>,
    /// The policy that it acknowledged.
    pub policy: Option<SpinPolicy>,
    /// Core by plan.
    pub core: Option<u32>,
    /// That core was offline in the stall, or just before.
    pub core_offline: bool,
    /// Length of the stall, so far.
    pub stall_ns: u64,
    /// Between the two looks.
    pub span_ns: u64,
    /// Both looks lie inside the stall.
    pub is_inside: bool,
    /// Time run between the looks.
    pub ran_ns: Option<u64>,
    /// Time ready and not run between them.
    pub waited_ns: Option<u64>,
    /// State letter at the second.
    pub state: Option<char>,
    /// Faults between them.
    pub minor_faults: Option<u64>,
    /// Faults that waited for a disk.
    pub major_faults: Option<u64>,
    /// Core at the second.
    pub found_core: Option<u32>,
    /// From a closer look at the second.
    pub closer: Closer,
    /// Steal on its core between them.
    pub steal_ns: Option<u64>,
    /// In interrupts on its core between them.
    pub interrupts_ns: Option<u64>,
    /// Shoot-downs on its core between them.
    pub shootdowns: Option<u64>,
    /// Ticks of its core's own timer between them.
    pub timer_ticks: Option<u64>,
    /// Time that all cores together account for, by core.
    pub machine_ns: Option<u64>,
    /// Times, and time, that the control group was held back.
    pub throttled: Option<(u64, u64)>,
    /// Times that heat slowed the core.
    pub thermal: Option<u64>,
    /// Frequency of its core, and the highest it has, kHz, at the second.
    pub frequency: Option<(u64, u64)>,
    /// What the machine waited for in the last ten seconds.
    pub pressure: Option<Pressure>,
    /// What the kernel's records say of its switches, inside the stall.
    pub switched: Option<Switched>,
    /// How much the watchdog itself was late.
    pub watcher_late_ns: u64,
    /// Hot threads that stood still at the same time, this one included, of how many.
    pub still: (usize, usize),
    /// Who else had the core.
    pub others: Vec<Other>,
    /// The role of this thread that panicked, and where.
    pub died: Option<(String, String)>,
    /// Jump of the counter against monotonic time.
    pub clock_step_ns: i64,
    /// What became of the signal.
    pub asked: Asked,
    /// Line that the stack names.
    pub culprit: Option<String>,
    /// What is not visible here.
    pub hidden: Vec<Hidden>,
}

fn less<T: Copy>(before: Option<T>, after: Option<T>, minus: impl Fn(T, T) -> T) -> Option<T> {
    Some(minus(after?, before?))
}

impl Observations {
    /// Takes in two accounts of the thread.
    pub fn between(&mut self, before: &ThreadAccount, after: &ThreadAccount) {
        self.span_ns = after.at_ns.saturating_sub(before.at_ns);
        self.ran_ns = less(before.ran_ns, after.ran_ns, u64::saturating_sub).map(|ran| ran.min(self.span_ns));
        let counted = less(before.waited_ns, after.waited_ns, u64::saturating_sub);
        // The kernel adds what it waited when it runs again: one that stands ready at both looks and has had no turn
        // has waited all the time.
        let is_ready = before.state == Some('R') && after.state == Some('R');
        let has_stood = is_ready && before.turns.is_some() && before.turns == after.turns;
        let off_ns = self.ran_ns.map(|ran| self.span_ns - ran);
        self.waited_ns = match off_ns {
            Some(off_ns) if has_stood && off_ns > self.span_ns / 2 => Some(off_ns),
            _ => counted.map(|waited| waited.min(self.span_ns)),
        };
        self.state = after.state;
        self.minor_faults = less(before.minor_faults, after.minor_faults, u64::saturating_sub);
        self.major_faults = less(before.major_faults, after.major_faults, u64::saturating_sub);
        self.found_core = after.core;
    }

    /// Takes in two accounts of its core.
    pub fn on_core(&mut self, before: &CoreAccount, after: &CoreAccount) {
        let times = before.times.zip(after.times);
        self.steal_ns = times.map(|(b, a)| a.steal.saturating_sub(b.steal) * JIFFY_NS);
        self.interrupts_ns = times.map(|(b, a)| a.interrupts.saturating_sub(b.interrupts) * JIFFY_NS);
        let all = before.all.zip(after.all);
        self.machine_ns = all.map(|(b, a)| a.total.saturating_sub(b.total) * JIFFY_NS);
        let interrupts = before.interrupts.zip(after.interrupts);
        self.shootdowns = interrupts.map(|(b, a)| a.shootdowns.saturating_sub(b.shootdowns));
        self.timer_ticks = interrupts.map(|(b, a)| a.timer.saturating_sub(b.timer));
        self.throttled = less(before.throttled, after.throttled, |a: (u64, u64), b| {
            (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1))
        });
        self.thermal = less(before.thermal, after.thermal, u64::saturating_sub);
        self.frequency = after.frequency;
        self.pressure = after.pressure;
    }

    /// The observations one a line, for who wants to judge for himself.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        let seen = |value: Option<u64>, what: &str| match value {
            Some(ns) => format!("{what} {}", ms(ns)),
            None => format!("{what} not visible"),
        };
        let count = |value: Option<u64>, what: &str| {
            value.map_or_else(|| format!("{what} not visible"), |n| format!("{n} {what}"))
        };
        let inside = if self.is_inside { "inside the stall" } else { "around the stall" };
        let mut lines = vec![
            format!("stood still {}; looked at for {} {inside}", ms(self.stall_ns), ms(self.span_ns)),
            format!("{}, {}", seen(self.ran_ns, "ran"), seen(self.waited_ns, "ready and not run")),
            format!(
                "state {}, core {}, {}, {}",
                self.state.map_or_else(|| "not visible".to_owned(), String::from),
                self.found_core.map_or_else(|| "not visible".to_owned(), |core| core.to_string()),
                count(self.minor_faults, "faults from memory"),
                count(self.major_faults, "from disk"),
            ),
            format!(
                "{}, {}, {}, {}",
                seen(self.steal_ns, "stolen by the hypervisor"),
                seen(self.interrupts_ns, "in interrupts"),
                count(self.shootdowns, "shoot-downs"),
                count(self.timer_ticks, "timer ticks of the core"),
            ),
        ];
        if let Some(core) = self.core.filter(|_| self.core_offline) {
            lines.push(format!("core {core} was offline"));
        }
        if let Some((times, ns)) = self.throttled.filter(|held| held.0 + held.1 > 0) {
            lines.push(format!("control group held back {times} times, {}", ms(ns)));
        }
        lines.extend(self.machine_lines());
        if let Some((number, _, _)) = self.closer.call {
            let place = self.closer.sleeps_in.as_deref().unwrap_or("a place not visible");
            lines.push(format!("in {} (kernel: {place})", super::procfs::call_name(number)));
        }
        if self.watcher_late_ns > 0 {
            lines.push(format!("the watchdog itself was {} late", ms(self.watcher_late_ns)));
        }
        if self.still.1 > 0 {
            lines.push(format!("{} of {} hot threads stood still", self.still.0, self.still.1));
        }
        for other in self.others.iter().take(4) {
            let whose = if other.is_own { "own thread" } else { "process" };
            lines.push(format!("{whose} {} ({}) ran {} there", other.command, other.pid, ms(other.ran_ns)));
        }
        match self.asked {
            Asked::Not => {}
            Asked::Answered => lines.push("its stack was taken inside the stall".to_owned()),
            Asked::Unanswered => lines.push("it took no signal while the stall lasted".to_owned()),
        }
        lines.extend(self.hidden.iter().map(|hidden| format!("not visible: {}; {} shows it", hidden.what, hidden.how)));
        lines
    }

    /// What the machine's newer accounts say, where it has them.
    fn machine_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Switched { out_ns, taken_ns, taken, by }) = &self.switched {
            let ms = |ns: u64| ns as f64 / 1e6;
            // A task of another namespace, or one that is gone, has no number here: the kernel says -1.
            let who = |pid: u32, tid: u32| match [pid, tid].map(|number| (number != u32::MAX).then_some(number)) {
                [Some(pid), Some(tid)] => format!("{pid}/{tid}"),
                [Some(pid), None] => format!("a thread of process {pid}"),
                [None, _] => "a process that is not visible from here".to_owned(),
            };
            let told = by.iter().map(|(pid, tid, ns)| format!("{} {:.1} ms", who(*pid, *tid), ms(*ns)));
            let by = told.collect::<Vec<_>>().join(", ");
            let by = if by.is_empty() { String::new() } else { format!("; there ran {by}") };
            lines.push(format!(
                "switches by record: without its core {:.1} ms, of this taken from it {:.1} ms in {taken} times{by}",
                ms(*out_ns),
                ms(*taken_ns)
            ));
        }
        if let Some((now, most)) = self.frequency {
            lines.push(format!("core at {:.2} of {:.2} GHz", now as f64 / 1e6, most as f64 / 1e6));
        }
        if let Some(Pressure { cpu, memory, io }) = self.pressure {
            let percent = |share: u32| f64::from(share) / 100.0;
            lines.push(format!(
                "pressure in the last 10 s: something waited for a core {:.1} %, for memory {:.1} %, for a disk {:.1} % of the time",
                percent(cpu),
                percent(memory),
                percent(io)
            ));
        }
        lines
    }
}
