//! Rows on isolation and power: the kernel's command line, governors, idle states.
//!
//! Pure; bounded by the hot cores.
//!
//! # Why the kernel's lists precede its command line
//! The kernel may not do what its command line asks for: with flags and without `domain`, `isolcpus`
//! leaves the cores to the scheduler, and `nohz_full` is refused for want of a reliable clock.

use super::{IdleState, Observations, Row, Rule, Verdict, leaves_no_core, ranges};
use crate::host::{CORES_MAX, isolated_outside};

/// Longest wake-up time that a hot core's idle state may have.
const WAKE_US_MAX: u64 = 10;

pub(super) fn rows(seen: &Observations) -> Vec<Row> {
    vec![isolated(seen), tickless(seen), callbacks(seen), governor(seen), idle_states(seen), idle_poll(seen)]
}

/// The value of an option on the kernel's command line.
fn option<'a>(seen: &'a Observations, name: &str) -> Option<&'a str> {
    let words = seen.command_line.as_deref()?.split_whitespace();
    words.filter_map(|word| word.split_once('=')).filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
}

/// The cores of an option, without flags such as `managed_irq` in `managed_irq,domain,2-5`. As the
/// kernel reads them: `N` is the last core, and of `0-31:2/8` the first two of each eight count.
fn cores_of(seen: &Observations, name: &str) -> Vec<u32> {
    let known = [&seen.hot, &seen.siblings, &seen.allowed].into_iter().chain(&seen.spare);
    let last = known.flatten().copied().max().unwrap_or(0);
    let number = |word: &str| if word == "N" { Some(last) } else { word.parse().ok().filter(|core| *core < CORES_MAX) };
    let part = |part: &str| {
        let (range, group) = part.split_once(':').unwrap_or((part, "1/1"));
        let (used, of) = group.split_once('/')?;
        let (used, of): (usize, usize) = (used.parse().ok()?, of.parse().ok()?);
        let (first, end) = range.split_once('-').unwrap_or((range, range));
        let cores = number(first)?..=number(end)?;
        Some(cores.enumerate().filter(move |(at, _)| at % of.max(1) < used).map(|(_, core)| core))
    };
    match option(seen, name).unwrap_or_default() {
        "all" => (0..CORES_MAX).collect(),
        value => value.split(',').filter_map(part).flatten().collect(),
    }
}

/// What starts the engine on the isolated cores that it may not use, if there are some.
fn start_on_isolated(seen: &Observations) -> Option<String> {
    let (_, all) = isolated_outside(seen.isolated.as_ref()?, seen.spare.as_ref()?, &seen.allowed)?;
    Some(format!("start pinwheel on the isolated cores too: taskset -c {} pinwheel …", ranges(&all)))
}

/// A command that adds words to the kernel's command line, if that can help.
fn boot_with(words: &str, seen: &Observations) -> String {
    if let Some(why_not) = leaves_no_core(seen) {
        return why_not;
    }
    let edit = format!("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
    format!("{edit} && sudo update-grub && sudo reboot")
}

/// A row that needs every hot core in `set`.
fn covers(mut rule: Rule, seen: &Observations, set: &[u32], verdict: Verdict) -> Row {
    if seen.hot.is_empty() {
        return rule.without_hot_cores();
    }
    if let Some(start) = start_on_isolated(seen) {
        rule.fix = start;
    }
    let missing: Vec<u32> = seen.hot.iter().copied().filter(|core| !set.contains(core)).collect();
    if missing.is_empty() {
        rule.found(Verdict::Pass, format!("all hot cores ({})", ranges(&seen.hot)))
    } else {
        rule.found(verdict, format!("core {} not in it", ranges(&missing)))
    }
}

fn isolated(seen: &Observations) -> Row {
    let hot = ranges(&seen.hot);
    let rule = Rule::new(
        "isolcpus",
        format!("isolcpus=managed_irq,domain,{hot}"),
        "the scheduler may run other programs' threads on hot cores",
        boot_with(&format!("isolcpus=managed_irq,domain,{hot}"), seen),
    );
    if seen.command_line.is_none() && seen.isolated.is_none() {
        return rule.hidden();
    }
    let set = seen.isolated.clone().unwrap_or_else(|| cores_of(seen, "isolcpus"));
    covers(rule, seen, &set, Verdict::Fail)
}

fn tickless(seen: &Observations) -> Row {
    let hot = ranges(&seen.hot);
    let rule = Rule::new(
        "nohz_full",
        format!("nohz_full={hot}"),
        "the kernel's periodic tick interrupts each hot core 100 to 1000 times a second",
        boot_with(&format!("nohz_full={hot}"), seen),
    );
    if seen.command_line.is_none() && seen.tickless.is_none() {
        return rule.hidden();
    }
    let set = seen.tickless.clone().unwrap_or_else(|| cores_of(seen, "nohz_full"));
    covers(rule, seen, &set, Verdict::Fail)
}

fn callbacks(seen: &Observations) -> Row {
    let hot = ranges(&seen.hot);
    let rule = Rule::new(
        "rcu_nocbs",
        format!("rcu_nocbs={hot}"),
        "the kernel's deferred frees run on hot cores",
        boot_with(&format!("rcu_nocbs={hot}"), seen),
    );
    if seen.command_line.is_none() {
        return rule.hidden();
    }
    let mut set = cores_of(seen, "rcu_nocbs");
    // Cores without a tick are offloaded by the kernel itself, unless it refused to stop their
    // tick.
    let in_effect = |core: &u32| seen.tickless.as_ref().is_none_or(|tickless| tickless.contains(core));
    set.extend(cores_of(seen, "nohz_full").into_iter().filter(in_effect));
    covers(rule, seen, &set, Verdict::Fail)
}

fn governor(seen: &Observations) -> Row {
    let rule = Rule::new(
        "governor",
        "performance on every hot core",
        "the clock rate ramps up only after load was seen, and falls again in between",
        format!("sudo cpupower -c {} frequency-set -g performance", ranges(&seen.hot)),
    );
    let shown: Vec<(u32, &str)> =
        seen.governors.iter().filter_map(|(core, name)| Some((*core, name.as_deref()?))).collect();
    if shown.is_empty() {
        return rule.hidden();
    }
    match shown.iter().find(|(_, name)| *name != "performance") {
        None => rule.found(Verdict::Pass, "performance"),
        Some((_, name)) => {
            let other: Vec<u32> = shown.iter().filter(|(_, n)| *n != "performance").map(|(core, _)| *core).collect();
            rule.found(Verdict::Fail, format!("{name} on core {}", ranges(&other)))
        }
    }
}

fn idle_states(seen: &Observations) -> Row {
    let rule = Rule::new(
        "c_states",
        format!("no idle state of a hot core that takes more than {WAKE_US_MAX} µs to leave"),
        "under spin Shared a hot thread sleeps; waking the core takes that long",
        format!("sudo cpupower -c {} idle-set -D {WAKE_US_MAX}", ranges(&seen.hot)),
    );
    if seen.idle_states.iter().all(|(_, states)| states.is_empty()) {
        return rule.hidden();
    }
    let is_deep = |state: &&IdleState| state.enabled && state.latency_us > WAKE_US_MAX;
    let deep = seen.idle_states.iter().filter_map(|(core, states)| {
        let deepest = states.iter().filter(is_deep).max_by_key(|state| state.latency_us)?;
        Some((*core, deepest))
    });
    let deep: Vec<(u32, &IdleState)> = deep.collect();
    match deep.first() {
        None => rule.found(Verdict::Pass, "none enabled"),
        Some((_, state)) => {
            let cores: Vec<u32> = deep.iter().map(|(core, _)| *core).collect();
            let found = format!("{} ({} µs) enabled on core {}", state.name, state.latency_us, ranges(&cores));
            rule.found(Verdict::Warn, found)
        }
    }
}

fn idle_poll(seen: &Observations) -> Row {
    let rule = Rule::new(
        "idle_poll",
        "idle=poll only without SMT",
        "with idle=poll the idle SMT siblings of hot cores spin, and take half of each",
        "sudo sed -i 's/ *idle=poll//' /etc/default/grub && sudo update-grub && sudo reboot",
    );
    if seen.command_line.is_none() {
        return rule.hidden();
    }
    match (option(seen, "idle") == Some("poll"), seen.siblings.is_empty()) {
        (false, _) => rule.found(Verdict::Pass, "not set"),
        (true, true) => rule.found(Verdict::Pass, "set, hot cores have no siblings"),
        (true, false) => rule.found(Verdict::Warn, format!("set, siblings {} spin", ranges(&seen.siblings))),
    }
}
