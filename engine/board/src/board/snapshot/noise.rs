//! What takes a hot thread's core away: how much, whose it is, and what would mend it.
//!
//! Pure.

use super::CompetitorView;
use serde::Serialize;

/// Before the name of a thread of the engine's own process.
pub const OWN: &str = "this process's own ";
/// Less than this share of the time is not worth a remedy.
const WORTH: f64 = 1e-4;

/// What took a hot thread's core away, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NoiseView {
    /// Time that `ready_ns`, `stolen_ns` and `interrupts` account for; 0: not measured.
    pub span_ns: u64,
    /// Time that the thread was ready while another thread had its core, by the scheduler's account.
    pub ready_ns: u64,
    /// Time that the hypervisor took from its core, by the kernel's account, in steps of 10 ms.
    pub stolen_ns: u64,
    /// Interrupts of its core.
    pub interrupts: u64,
    /// Time in frames that found no work and then spun. What takes the core meanwhile shows as a gap.
    pub polling_ns: u64,
    /// Number of these frames that took longer than 5 µs, and four times as long as the others.
    pub gaps: u64,
    /// Their time.
    pub gap_ns: u64,
    /// The longest of them.
    pub longest_gap_ns: u64,
    /// Who had its core for longest of all others; empty: nobody, or not visible.
    pub taken_by: String,
    /// For how long.
    pub taken_by_ns: u64,
}

impl NoiseView {
    /// Its account since `before`; the longest gap, and who had the core, are those since the start.
    pub fn since(&self, before: &NoiseView) -> NoiseView {
        NoiseView {
            span_ns: self.span_ns.saturating_sub(before.span_ns),
            ready_ns: self.ready_ns.saturating_sub(before.ready_ns),
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            polling_ns: self.polling_ns.saturating_sub(before.polling_ns),
            gaps: self.gaps.saturating_sub(before.gaps),
            gap_ns: self.gap_ns.saturating_sub(before.gap_ns),
            ..self.clone()
        }
    }

    /// Its shares of the time; `None` if they are not measured.
    pub fn shares(&self) -> Option<NoiseShares> {
        let share = |part_ns: u64, of_ns: u64| if of_ns == 0 { 0.0 } else { part_ns as f64 / of_ns as f64 };
        let (ready, stolen) = (share(self.ready_ns, self.span_ns), share(self.stolen_ns, self.span_ns));
        // A gap while polling contains what the scheduler and the hypervisor took in it.
        let rest = (share(self.gap_ns, self.polling_ns) - ready - stolen).max(0.0);
        (self.span_ns > 0).then_some(NoiseShares { ready, stolen, rest })
    }

    /// Who had `core` for longest since the start, or without records who was `seen` there, and what
    /// would mend the largest share; empty if there is nothing to say.
    pub fn source_text(&self, seen: Option<&CompetitorView>, core: Option<u32>) -> String {
        let NoiseView { taken_by, taken_by_ns, .. } = self;
        let recorded =
            (!taken_by.is_empty()).then(|| format!("{taken_by} had the core for {:.1} ms", *taken_by_ns as f64 / 1e6));
        let who = recorded.or_else(|| seen.map(|seen| format!("{} ({}) was seen there last", seen.command, seen.pid)));
        let remedy = core.and_then(|core| self.remedy(core));
        who.into_iter().chain(remedy).collect::<Vec<_>>().join("; ")
    }

    /// What would mend the largest share; `None` if it is not worth it.
    fn remedy(&self, core: u32) -> Option<String> {
        let NoiseShares { ready, stolen, rest } = self.shares()?;
        let most = ready.max(stolen).max(rest);
        if most < WORTH {
            None
        } else if most == rest {
            Some(format!("pinwheel noise says which interrupts, when core {core} is free"))
        } else if most == stolen {
            Some(MEND_STEAL.to_owned())
        } else if self.taken_by.starts_with(OWN) {
            Some("one core more for the engine keeps its own cold threads off this one".to_owned())
        } else {
            Some(mend_tasks(core))
        }
    }
}

/// Shares of a thread's time for which its core was away, 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseShares {
    /// The thread was ready, and another thread had the core.
    pub ready: f64,
    /// The hypervisor had it.
    pub stolen: f64,
    /// Interrupts, and what lies below the kernel: seen only while the thread polls.
    pub rest: f64,
}

impl NoiseShares {
    /// All of it.
    pub fn lost(self) -> f64 {
        self.ready + self.stolen + self.rest
    }

    /// The shares in words, the sum first.
    pub fn text(self) -> String {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        format!(
            "{}: other threads {}, hypervisor {}, interrupts and the rest {}",
            percent(self.lost()),
            percent(self.ready),
            percent(self.stolen),
            percent(self.rest)
        )
    }
}

/// What keeps other threads off `core`.
pub fn mend_tasks(core: u32) -> String {
    format!(
        "keep it off: a program with taskset, a kernel thread by booting with isolcpus={core}; pinwheel check says how"
    )
}

/// What keeps the hypervisor from taking a core.
pub const MEND_STEAL: &str = "the host runs something else on this core: ask for dedicated cores";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{CompetitorView, NoiseView, OWN};

    const NOISE: NoiseView = NoiseView {
        span_ns: 1_000_000_000,
        ready_ns: 18_000_000,
        stolen_ns: 0,
        interrupts: 251,
        polling_ns: 500_000_000,
        gaps: 40,
        gap_ns: 10_500_000,
        longest_gap_ns: 4_100_000,
        taken_by: String::new(),
        taken_by_ns: 0,
    };

    fn source(noise: &NoiseView) -> String {
        noise.source_text(None, Some(1))
    }

    #[test]
    fn a_gap_while_polling_is_what_the_scheduler_took_and_the_rest() {
        let said = NOISE.shares().unwrap().text();
        assert_eq!(said, "2.10 %: other threads 1.80 %, hypervisor 0.00 %, interrupts and the rest 0.30 %");
        // A thread that never polls shows what the scheduler took, and no more.
        let busy = NoiseView { polling_ns: 0, gap_ns: 0, ..NOISE }.shares().unwrap();
        assert_eq!((busy.ready, busy.rest), (0.018, 0.0));
        assert_eq!(NoiseView { span_ns: 0, ..NOISE }.shares(), None);
    }

    #[test]
    fn the_largest_share_has_its_remedy_and_whoever_had_the_core_is_named_by_record_or_as_seen() {
        assert!(source(&NOISE).starts_with("keep it off") && source(&NOISE).contains("isolcpus=1"));
        let interrupts = NoiseView { ready_ns: 0, ..NOISE };
        assert!(source(&interrupts).contains("pinwheel noise"));
        assert!(source(&NoiseView { ready_ns: 0, stolen_ns: 30_000_000, ..NOISE }).contains("dedicated cores"));
        assert_eq!(source(&NoiseView { gap_ns: 0, ..interrupts }), "");
        assert_eq!(source(&NoiseView::default()), "");
        let noise = NoiseView { taken_by: "cc1 ×14".to_owned(), taken_by_ns: 20_000_000, ..NOISE };
        assert!(source(&noise).starts_with("cc1 ×14 had the core for 20.0 ms; keep it off"));
        let own = NoiseView { taken_by: format!("{OWN}watchdog (9)"), ..noise };
        assert!(source(&own).ends_with("keeps its own cold threads off this one"));
        let (command, user) = ("sh".to_owned(), String::new());
        let seen = CompetitorView { pid: 7, user, command, waited_ns: 1, ran_ns: 1, span_ns: 2, age_ns: 0, samples: 1 };
        assert_eq!(NOISE.source_text(Some(&seen), None), "sh (7) was seen there last");
    }
}
