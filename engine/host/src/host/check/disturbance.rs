//! The rows of what takes a hot core away: interrupts by their counts, and anything at all by the gap probe.
//!
//! Pure. Bounded by what was observed. Judges rates, so a quiet window proves only itself.

use super::interrupts::Source;
use super::probe::{GAP_NS, Gaps};
use super::{Observations, Row, Rule, Verdict, leaves_no_core, ranges};

/// Interrupts a second that a hot core may take: the kernel's own leftovers under `nohz_full`.
const PER_SECOND_MAX: u64 = 10;
/// Most sources named in a row.
const NAMED_MAX: usize = 3;
/// Gaps a second that pass.
const GAPS_PER_SECOND_MAX: u64 = 10;

pub(super) fn interrupts(seen: &Observations) -> Row {
    let expected = format!("at most {PER_SECOND_MAX} a second on each hot core");
    let why = "each one takes a hot core away for 1 to 50 µs";
    let Some((before, after, window_ns)) = &seen.interrupts else {
        return Rule::new("interrupts", expected, why, "").hidden();
    };
    if seen.hot.is_empty() {
        return Rule::new("interrupts", expected, why, "").without_hot_cores();
    }
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
    if let Some(why_not) = leaves_no_core(seen) {
        return why_not;
    }
    let hot = ranges(&seen.hot);
    let words = format!("nohz_full={hot} rcu_nocbs={hot}");
    let edit = format!("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
    format!("{edit} && sudo update-grub && sudo reboot")
}

/// What moves a device's interrupt to the other cores, best to those that the process may use.
fn steer(source: &Source, seen: &Observations) -> String {
    if let Some(why_not) = leaves_no_core(seen) {
        return why_not;
    }
    let is_taken = |core: &u32| seen.hot.contains(core) || seen.siblings.contains(core);
    let cold: Vec<u32> = seen.allowed.iter().copied().filter(|core| !is_taken(core)).collect();
    let to = if cold.is_empty() { seen.spare.as_deref().unwrap_or(&[0]) } else { &cold };
    format!("echo {} | sudo tee /proc/irq/{}/smp_affinity_list", ranges(to), source.id)
}

/// A row for each hot core.
pub(super) fn gaps(seen: &Observations) -> Vec<Row> {
    let row = |core: u32| {
        let gaps = seen.gaps.iter().find(|(watched, _)| *watched == core).map(|(_, gaps)| gaps);
        judge(core, gaps, seen.isolated.as_ref().is_some_and(|isolated| isolated.contains(&core)))
    };
    seen.hot.iter().map(|&core| row(core)).collect()
}

/// Where a core is isolated the promise is made, so breaking it is a failure; elsewhere it is a warning.
fn judge(core: u32, gaps: Option<&Result<Gaps, String>>, isolated: bool) -> Row {
    let rule = Rule::new(
        "gap_probe",
        format!("p99.99 below {} µs, at most {GAPS_PER_SECOND_MAX} gaps above it a second", GAP_NS / 1_000),
        "what takes the core away for longer shows in every latency above the median",
        "see the rows that warn or fail above",
    );
    let mut row = match gaps {
        None => rule.hidden(),
        Some(Err(why)) => rule.found(Verdict::NotVisible, why.clone()),
        Some(Ok(gaps)) => {
            let per_second = u128::from(gaps.count) * 1_000_000_000 / u128::from(gaps.span_ns).max(1);
            // One gap in a short watch is no rate.
            let keeps = gaps.p9999_ns < GAP_NS && (gaps.count <= 1 || per_second <= u128::from(GAPS_PER_SECOND_MAX));
            let verdict = match (keeps, isolated) {
                (true, _) => Verdict::Pass,
                (false, true) => Verdict::Fail,
                (false, false) => Verdict::Warn,
            };
            let share = gaps.lost_ns as f64 / gaps.span_ns.max(1) as f64;
            let micros = |ns: u64| ns as f64 / 1e3;
            let found = format!(
                "watched for {} ms: {per_second} gaps above {} µs a second, {:.3} % of the time, max {:.1} µs, p99.99 {:.2} µs",
                gaps.span_ns / 1_000_000,
                GAP_NS / 1_000,
                share * 100.0,
                micros(gaps.max_ns),
                micros(gaps.p9999_ns)
            );
            rule.found(verdict, found)
        }
    };
    row.id = format!("gap_probe_core_{core}");
    row
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{interrupts as row, judge};
    use crate::host::check::probe::Gaps;
    use crate::host::check::{Interrupts, Observations, Verdict};
    use crate::host::trees::{machine, write};

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
    fn an_interrupt_is_sent_to_another_core_and_to_none_where_all_are_hot() {
        let steered = |hot: &[u32], spare: Option<&[u32]>| {
            let spare = spare.map(<[u32]>::to_vec);
            row(&Observations { spare, ..seen(&[("900", "1000")], hot) }).fix
        };
        let to = |cores: &str| format!("echo {cores} | sudo tee /proc/irq/25/smp_affinity_list");
        assert_eq!(steered(&[1], Some(&[0, 2])), to("0"), "which the process may use");
        assert_eq!(steered(&[0, 1], Some(&[2, 3])), to("2-3"));
        assert_eq!(steered(&[0, 1], None), to("0"));
        let none = "leave a core to the system: max_cores: Some(1) in the profile";
        assert_eq!(steered(&[0, 1], Some(&[])), none);
    }

    #[test]
    fn the_kernels_own_ticks_warn_and_other_cores_do_not_count() {
        let row = row(&seen(&[("120000", "120125"), ("123456", "999999")], &[1]));
        assert_eq!(row.verdict, Verdict::Warn);
        assert!(row.found.starts_with("up to 250 a second: LOC Local timer"), "{}", row.found);
        assert!(row.fix.contains("nohz_full=1 rcu_nocbs=1"), "{}", row.fix);
    }

    #[test]
    fn on_arm_the_timer_of_a_core_is_no_device_though_it_has_a_number() {
        let read = |timer: u32, disk: u32| {
            let rows = format!("11: 0 {timer} GICv3 27 Level arch_timer\n40: 0 {disk} GICv3 152 Edge nvme0q1\n");
            Interrupts::parse(&format!(" CPU0 CPU1\n{rows}IPI0: 5 6 Rescheduling interrupts\n")).unwrap()
        };
        let judged = |timer, disk| {
            let interrupts = Some((read(0, 0), read(timer, disk), 1_000_000_000));
            let seen = Observations { hot: vec![1], allowed: vec![0, 1], interrupts, ..Observations::default() };
            row(&seen)
        };
        let ticks = judged(250, 0);
        assert!(ticks.verdict == Verdict::Warn && ticks.fix.contains("nohz_full=1"), "{ticks:?}");
        assert_eq!(judged(250, 250).fix, "echo 0 | sudo tee /proc/irq/40/smp_affinity_list");
    }

    #[test]
    fn without_a_window_nothing_is_claimed() {
        assert_eq!(row(&Observations::default()).verdict, Verdict::NotVisible);
        assert_eq!(Interrupts::parse(""), None);
    }

    /// The kernel's own rows come after those of all devices.
    #[test]
    fn interrupts_of_very_many_cores_and_devices_are_read_to_the_end() {
        let (cores, devices) = (512, 1_000);
        let row = |id: &str, count: u32| format!("{id}: {}\n", format!("{count:10} ").repeat(cores));
        let head: String = (0..cores).map(|core| format!(" CPU{core}")).collect();
        let rows: String = (0..devices).map(|id| row(&id.to_string(), 0)).collect();
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "proc/interrupts", &format!("{head}\n{rows}{}", row("LOC", 7)));
        assert_eq!(Interrupts::read(dir.path()).unwrap().count("LOC", 511), 7);
    }

    #[test]
    fn a_disturbance_fails_on_an_isolated_core_and_warns_on_others() {
        let quiet = Gaps { span_ns: 1_000_000_000, count: 3, lost_ns: 30_000, max_ns: 12_000, p9999_ns: 60 };
        let noisy = Gaps { count: 400, lost_ns: 4_000_000, p9999_ns: 7_000, ..quiet };
        for (gaps, isolated, verdict) in [
            (quiet, true, Verdict::Pass),
            (quiet, false, Verdict::Pass),
            (noisy, true, Verdict::Fail),
            (noisy, false, Verdict::Warn),
        ] {
            assert_eq!(judge(4, Some(&Ok(gaps)), isolated).verdict, verdict);
        }
        let row = judge(4, Some(&Ok(noisy)), true);
        assert_eq!(row.id, "gap_probe_core_4");
        assert_eq!(
            row.found,
            "watched for 1000 ms: 400 gaps above 5 µs a second, 0.400 % of the time, max 12.0 µs, p99.99 7.00 µs"
        );
        assert_eq!(judge(4, None, true).verdict, Verdict::NotVisible);
        assert_eq!(judge(4, Some(&Err("no such core".to_owned())), true).verdict, Verdict::NotVisible);
    }

    #[test]
    fn one_gap_in_a_short_watch_is_no_rate_and_two_are() {
        let one = Gaps { span_ns: 50_000_000, count: 1, lost_ns: 9_000, max_ns: 9_000, p9999_ns: 60 };
        assert_eq!(judge(4, Some(&Ok(one)), true).verdict, Verdict::Pass);
        assert_eq!(judge(4, Some(&Ok(Gaps { count: 2, ..one })), true).verdict, Verdict::Fail);
    }
}
