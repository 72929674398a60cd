//! Interrupts on hot cores: the counts of `proc/interrupts` over a time window.
//!
//! Pure except for one read; bounded by the lines of one file. A rate holds only for its window.

use std::path::Path;

use crate::host::read_text;

/// Counts by source and core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    cores: Vec<u32>,
    pub(super) sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The number or the name before the colon.
    pub(super) id: String,
    /// The words after the counts.
    pub(super) name: String,
    /// One count for each of [`Interrupts::cores`].
    counts: Vec<u64>,
}

impl Interrupts {
    /// Reads `proc/interrupts` under `root`; `None` if it cannot be seen.
    pub fn read(root: &Path) -> Option<Interrupts> {
        Interrupts::parse(&read_text(&root.join("proc/interrupts"))?)
    }

    pub(super) fn parse(text: &str) -> Option<Interrupts> {
        let mut lines = text.lines();
        let cores: Vec<u32> =
            lines.next()?.split_whitespace().map_while(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        let source = |line: &str| {
            let (id, rest) = line.split_once(':')?;
            let words: Vec<&str> = rest.split_whitespace().collect();
            let counts: Vec<u64> = words.iter().take(cores.len()).map_while(|word| word.parse().ok()).collect();
            // Counters of the whole machine, such as ERR, have one number and no core.
            let per_core = counts.len() == cores.len();
            let name = words[counts.len()..].join(" ");
            per_core.then(|| Source { id: id.trim().to_owned(), name, counts })
        };
        let sources: Vec<Source> = lines.filter_map(source).collect();
        (!cores.is_empty()).then_some(Interrupts { cores, sources })
    }

    /// Reads `proc/softirqs` under `root`, which has the same form.
    pub fn read_soft(root: &Path) -> Option<Interrupts> {
        Interrupts::parse(&read_text(&root.join("proc/softirqs"))?)
    }

    /// Each source's number or name, its words, and its count on `core`.
    pub fn of_core(&self, core: u32) -> impl Iterator<Item = (&str, &str, u64)> {
        let at = self.cores.iter().position(|&number| number == core);
        self.sources.iter().map(move |source| {
            let count = at.and_then(|at| source.counts.get(at).copied()).unwrap_or(0);
            (source.id.as_str(), source.name.as_str(), count)
        })
    }

    pub(super) fn count(&self, id: &str, core: u32) -> u64 {
        let at = self.cores.iter().position(|&number| number == core);
        let source = self.sources.iter().find(|source| source.id == id);
        at.zip(source).and_then(|(at, source)| source.counts.get(at).copied()).unwrap_or(0)
    }
}

/// The first number of a device's interrupt at an Arm interrupt controller; lower ones are each
/// core's own.
const ARM_SHARED_FROM: u32 = 32;

impl Source {
    /// Devices have numbers; the kernel's own interrupts have names, except that on Arm a core's
    /// timer has a number, too: `11: 7 8 GICv3 27 Level arch_timer`.
    pub(super) fn is_device(&self) -> bool {
        let mut words = self.name.split(' ');
        let is_arm = words.next().is_some_and(|controller| controller.starts_with("GIC"));
        let number = words.next().and_then(|number| number.parse::<u32>().ok());
        let is_cores_own = is_arm && number.is_some_and(|number| number < ARM_SHARED_FROM);
        self.id.bytes().all(|byte| byte.is_ascii_digit()) && !is_cores_own
    }
}
