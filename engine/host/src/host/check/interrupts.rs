//! Interrupts on hot cores: what `proc/interrupts` counted over a window.
//!
//! Pure beyond one read; bounded by the lines of one file. Judges a rate, so a quiet window proves only itself.

use std::path::Path;

use super::{Observations, Row, Rule, Verdict, ranges};
use crate::host::read_text;

/// Interrupts a second that a hot core may take: the kernel's own leftovers under `nohz_full`.
const PER_SECOND_MAX: u64 = 10;
/// Most sources named in a row.
const NAMED_MAX: usize = 3;

/// Counts by source and core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    cores: Vec<u32>,
    sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    /// The number or the name before the colon.
    id: String,
    /// The words after the counts.
    name: String,
    /// One for each of [`Interrupts::cores`].
    counts: Vec<u64>,
}

impl Interrupts {
    /// Reads `proc/interrupts` under `root`; `None` if it cannot be seen.
    #[must_use]
    pub fn read(root: &Path) -> Option<Interrupts> {
        Interrupts::parse(&read_text(&root.join("proc/interrupts"))?)
    }

    fn parse(text: &str) -> Option<Interrupts> {
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

    fn count(&self, id: &str, core: u32) -> u64 {
        let at = self.cores.iter().position(|&number| number == core);
        let source = self.sources.iter().find(|source| source.id == id);
        at.zip(source).and_then(|(at, source)| source.counts.get(at).copied()).unwrap_or(0)
    }
}

impl Source {
    /// Devices have numbers; the kernel's own interrupts have names.
    fn is_device(&self) -> bool {
        self.id.bytes().all(|byte| byte.is_ascii_digit())
    }
}

pub(super) fn row(seen: &Observations) -> Row {
    let expected = format!("at most {PER_SECOND_MAX} a second on each hot core");
    let why = "each one takes a hot core away for 1 to 50 µs";
    let Some((before, after, window_ns)) = &seen.interrupts else {
        return Rule::new("interrupts", expected, why, "").hidden();
    };
    let rate = |count: u64| u128::from(count) * 1_000_000_000 / u128::from(*window_ns).max(1);
    let mut loud: Vec<(&Source, u32, u128)> = Vec::new();
    let mut worst = 0;
    for &core in &seen.hot {
        let counted = |source: &Source| after.count(&source.id, core).saturating_sub(before.count(&source.id, core));
        worst = worst.max(rate(after.sources.iter().map(counted).sum()));
        let over = after.sources.iter().map(|source| (source, core, rate(counted(source))));
        loud.extend(over.filter(|(_, _, rate)| *rate > u128::from(PER_SECOND_MAX)));
    }
    loud.sort_by_key(|(_, core, rate)| (std::cmp::Reverse(*rate), *core));
    let device = loud.iter().find(|(source, _, _)| source.is_device());
    let rule =
        Rule::new("interrupts", expected, why, device.map_or_else(|| quiet(seen), |(source, ..)| steer(source, seen)));
    let verdict = match (worst > u128::from(PER_SECOND_MAX), device) {
        (false, _) => return rule.found(Verdict::Pass, format!("at most {worst} a second")),
        (true, None) => Verdict::Warn,
        (true, Some(_)) => Verdict::Fail,
    };
    let named = loud.iter().take(NAMED_MAX);
    let named = named.map(|(source, core, rate)| format!("{} {} on core {core} {rate}/s", source.id, source.name));
    let named: Vec<String> = named.collect();
    let sources = if named.is_empty() { "many sources".to_owned() } else { named.join("; ") };
    rule.found(verdict, format!("up to {worst} a second: {sources}"))
}

/// What keeps the kernel's own interrupts away.
fn quiet(seen: &Observations) -> String {
    let hot = ranges(&seen.hot);
    let words = format!("nohz_full={hot} rcu_nocbs={hot}");
    let edit = format!("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
    format!("{edit} && sudo update-grub && sudo reboot")
}

/// What moves a device's interrupt to the other cores.
fn steer(source: &Source, seen: &Observations) -> String {
    let taken = |core: &u32| seen.hot.contains(core) || seen.siblings.contains(core);
    let cold: Vec<u32> = seen.allowed.iter().copied().filter(|core| !taken(core)).collect();
    let to = if cold.is_empty() { "0".to_owned() } else { ranges(&cold) };
    format!("echo {to} | sudo tee /proc/irq/{}/smp_affinity_list", source.id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Interrupts, row};
    use crate::host::check::{Observations, Verdict};
    use crate::host::trees::machine;

    fn seen(change: &[(&str, &str)], hot: &[u32]) -> Observations {
        let dir = machine("vm2");
        let before = std::fs::read_to_string(dir.path().join("proc/interrupts")).unwrap();
        let after = change.iter().fold(before.clone(), |text, (from, to)| text.replace(from, to));
        let read = |text: &str| Interrupts::parse(text).unwrap();
        let interrupts = Some((read(&before), read(&after), 500_000_000));
        Observations { hot: hot.to_vec(), allowed: vec![0, 1], interrupts, ..Observations::default() }
    }

    #[test]
    fn a_quiet_window_passes() {
        let row = row(&seen(&[("120000", "120005")], &[1]));
        assert_eq!((row.verdict, row.found.as_str(), row.fix.as_str()), (Verdict::Pass, "at most 10 a second", ""));
    }

    #[test]
    fn a_device_on_a_hot_core_fails_and_is_steered_away() {
        let row = row(&seen(&[("900", "1000")], &[1]));
        assert_eq!(row.verdict, Verdict::Fail);
        assert!(row.found.contains("25 PCI-MSI-0000:00:03.0 0-edge virtio2-input.0 on core 1 200/s"), "{}", row.found);
        assert_eq!(row.fix, "echo 0 | sudo tee /proc/irq/25/smp_affinity_list");
    }

    #[test]
    fn the_kernels_own_ticks_warn_and_other_cores_do_not_count() {
        let row = row(&seen(&[("120000", "120125"), ("123456", "999999")], &[1]));
        assert_eq!(row.verdict, Verdict::Warn);
        assert!(row.found.starts_with("up to 250 a second: LOC Local timer"), "{}", row.found);
        assert!(row.fix.contains("nohz_full=1 rcu_nocbs=1"), "{}", row.fix);
    }

    #[test]
    fn without_a_window_nothing_is_claimed() {
        assert_eq!(row(&Observations::default()).verdict, Verdict::NotVisible);
        assert_eq!(Interrupts::parse(""), None);
    }
}
