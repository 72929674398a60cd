//! The observations of one stall, from which the verdict is made.
//!
//! Plain data. Every difference lies inside the stall, or between the nearest readings. What was
//! not visible is `None`.

use super::account::{CoreAccount, Hidden, OtherThread, Pressure, ThreadAccount, ThreadDetail};
use super::procfs::MachineTimes;
use super::switches::Switched;
use crate::host::usable::CoreLoss;
use pinwheel_edge::spin::SpinPolicy;

/// The kernel's unit in `/proc/stat`, nanoseconds.
pub const JIFFY_NS: u64 = 10_000_000;

/// State of the signal that asks the thread for its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalState {
    /// No signal was sent.
    #[default]
    NotSent,
    /// The thread answered during the stall.
    Answered,
    /// The thread did not answer during the stall.
    Unanswered,
}

/// The observations of one stall of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// The thread's name.
    pub thread: String,
    /// The role it is in; `None` between roles.
    pub role: Option<&'static str>,
    /// The spin policy that it acknowledged.
    pub policy: Option<SpinPolicy>,
    /// The core that it is planned on.
    pub core: Option<u32>,
    /// How that core was lost during the stall or just before; `None` if it was not.
    pub core_loss: Option<CoreLoss>,
    /// Length of the stall so far, nanoseconds.
    pub stall_ns: u64,
    /// Time between the two readings, nanoseconds.
    pub span_ns: u64,
    /// Whether both readings lie inside the stall.
    pub is_inside: bool,
    /// Time run between the readings.
    pub ran_ns: Option<u64>,
    /// Time ready without running between the readings.
    pub waited_ns: Option<u64>,
    /// State letter at the second reading.
    pub state: Option<char>,
    /// Page faults from memory between the readings.
    pub minor_faults: Option<u64>,
    /// Page faults from disk between the readings.
    pub major_faults: Option<u64>,
    /// Core at the second reading.
    pub found_core: Option<u32>,
    /// Facts read only at an alarm, at the second reading.
    pub detail: ThreadDetail,
    /// Steal time on its core between the readings.
    pub steal_ns: Option<u64>,
    /// Time in interrupts on its core between the readings.
    pub interrupts_ns: Option<u64>,
    /// TLB shootdowns on its core between the readings.
    pub shootdowns: Option<u64>,
    /// Timer ticks of its core between the readings.
    pub timer_ticks: Option<u64>,
    /// Time that the machine accounts for between the readings; the mean of its cores.
    pub machine_ns: Option<u64>,
    /// Number of times, and nanoseconds, that the control group was throttled.
    pub throttled: Option<(u64, u64)>,
    /// Number of times that heat slowed the core.
    pub thermal: Option<u64>,
    /// Frequency of its core and its highest frequency, kHz, at the second reading.
    pub frequency: Option<(u64, u64)>,
    /// The machine's pressure in the last ten seconds.
    pub pressure: Option<Pressure>,
    /// The kernel's records of the thread's context switches during the stall.
    pub switched: Option<Switched>,
    /// How late the watchdog itself was.
    pub watcher_late_ns: u64,
    /// Number of hot threads that stood still at the same time, this one included, and of all that
    /// run.
    pub still: (usize, usize),
    /// Other threads that used the core.
    pub others: Vec<OtherThread>,
    /// State of the signal that asked for a stack.
    pub asked: SignalState,
    /// The source line that the stack names.
    pub culprit: Option<String>,
    /// What is not visible on this machine.
    pub hidden: Vec<Hidden>,
}

fn less<T: Copy>(before: Option<T>, after: Option<T>, minus: impl Fn(T, T) -> T) -> Option<T> {
    Some(minus(after?, before?))
}

impl Observations {
    /// Adds the difference of two accounts of the thread.
    pub fn between(&mut self, before: &ThreadAccount, after: &ThreadAccount) {
        self.span_ns = after.at_ns.saturating_sub(before.at_ns);
        self.ran_ns = less(before.ran_ns, after.ran_ns, u64::saturating_sub).map(|ran| ran.min(self.span_ns));
        let counted = less(before.waited_ns, after.waited_ns, u64::saturating_sub);
        // The kernel adds waiting time when the thread runs again. A thread that is ready at both
        // readings without a turn in between waited all the time.
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

    /// Adds the difference of two accounts of its core.
    pub fn on_core(&mut self, before: &CoreAccount, after: &CoreAccount) {
        let times = before.times.zip(after.times);
        self.steal_ns = times.map(|(b, a)| a.steal.saturating_sub(b.steal) * JIFFY_NS);
        self.interrupts_ns = times.map(|(b, a)| a.interrupts.saturating_sub(b.interrupts) * JIFFY_NS);
        let all = before.all.zip(after.all);
        // The mean of the cores, so that a second is a second. Where a core went offline or came
        // back between the readings, the larger number.
        let mean = |b: MachineTimes, a: MachineTimes| {
            a.total.saturating_sub(b.total).saturating_mul(JIFFY_NS) / a.cores.max(b.cores).max(1)
        };
        self.machine_ns = all.map(|(b, a)| mean(b, a));
        let interrupts = before.interrupts.zip(after.interrupts);
        self.shootdowns = interrupts.and_then(|(b, a)| less(b.shootdowns, a.shootdowns, u64::saturating_sub));
        self.timer_ticks = interrupts.and_then(|(b, a)| less(b.timer, a.timer, u64::saturating_sub));
        self.throttled = less(before.throttled, after.throttled, |a: (u64, u64), b| {
            (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1))
        });
        self.thermal = less(before.thermal, after.thermal, u64::saturating_sub);
        self.frequency = after.frequency;
        self.pressure = after.pressure;
    }

    /// The observations as text, one a line, for people who want to judge themselves.
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
        if let Some((core, loss)) = self.core.zip(self.core_loss) {
            lines.push(match loss {
                CoreLoss::Offline => format!("core {core} was offline"),
                CoreLoss::OutsideCpuset => format!("core {core} was outside the cpuset of this process"),
            });
        }
        if let Some((times, ns)) = self.throttled.filter(|held| held.0 + held.1 > 0) {
            lines.push(format!("control group held back {times} times, {}", ms(ns)));
        }
        lines.extend(self.machine_lines());
        if let Some((number, _, _)) = self.detail.call {
            let place = self.detail.sleeps_in.as_deref().unwrap_or("a place not visible");
            lines.push(format!("in {} (kernel: {place})", super::procfs::call_name(number)));
        }
        if self.watcher_late_ns > 0 {
            lines.push(format!("the watchdog itself was {} late", ms(self.watcher_late_ns)));
        }
        if self.still.1 > 0 {
            lines.push(format!("{} of {} hot threads stood still", self.still.0, self.still.1));
        }
        for other in self.others.iter().take(4) {
            let group = match other.control_group.as_str() {
                "" => String::new(),
                group => format!(", control group {group}"),
            };
            lines.push(format!("{} ran {} there{group}", other.who(), ms(other.ran_ns)));
        }
        match self.asked {
            SignalState::NotSent => {}
            SignalState::Answered => lines.push("its stack was taken inside the stall".to_owned()),
            SignalState::Unanswered => lines.push("it took no signal while the stall lasted".to_owned()),
        }
        lines.extend(self.hidden.iter().map(|hidden| format!("not visible: {}; {} shows it", hidden.what, hidden.how)));
        lines
    }

    /// The observations that only some machines have.
    fn machine_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Switched { out_ns, taken_ns, taken, by, .. }) = &self.switched {
            let ms = |ns: u64| ns as f64 / 1e6;
            // The kernel gives -1 for a thread of another namespace, or one that has ended.
            let who = |pid: u32, tid: u32| match [pid, tid].map(|number| (number != u32::MAX).then_some(number)) {
                [Some(pid), Some(tid)] => format!("{pid}/{tid}"),
                [Some(pid), None] => format!("a thread of process {pid}"),
                [None, _] => "a process that is not visible from here".to_owned(),
            };
            let told = by.iter().take(8).map(|(pid, tid, ns)| format!("{} {:.1} ms", who(*pid, *tid), ms(*ns)));
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
                "pressure in the last 10 s: something waited for a core {:.1} %, for memory {:.1} %, for a \
                disk {:.1} % of the time",
                percent(cpu),
                percent(memory),
                percent(io)
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{JIFFY_NS, Observations};
    use crate::stall::account::CoreAccount;
    use crate::stall::procfs::{Interrupts, MachineTimes};

    #[test]
    fn the_machines_time_is_a_mean_also_if_a_core_goes_offline_or_comes_back_between_the_readings() {
        let machine_ns = |before: (u64, u64), after: (u64, u64)| {
            let at =
                |(total, cores)| CoreAccount { all: Some(MachineTimes { total, cores }), ..CoreAccount::default() };
            let mut seen = Observations::default();
            seen.on_core(&at(before), &at(after));
            seen.machine_ns
        };
        let second = 100 * JIFFY_NS;
        assert_eq!(machine_ns((4_000_000, 4), (4_000_400, 4)), Some(second));
        assert_eq!(machine_ns((4_000_000, 4), (4_000_400, 3)), Some(second));
        assert_eq!(machine_ns((4_000_000, 3), (4_000_400, 4)), Some(second));
    }

    #[test]
    fn interrupts_that_a_processor_does_not_count_are_not_visible() {
        let at = |others| {
            let interrupts = Interrupts { shootdowns: None, timer: Some(others), others };
            CoreAccount { interrupts: Some(interrupts), ..CoreAccount::default() }
        };
        let mut seen = Observations::default();
        seen.on_core(&at(5), &at(8));
        assert_eq!((seen.shootdowns, seen.timer_ticks), (None, Some(3)));
    }
}
