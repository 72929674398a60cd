//! `pinwheel noise`: what takes each core away from a thread that only reads the clock, and for how long.
//!
//! Runs on the main thread, which reads the kernel's counters; each measured core has a thread of its own. Claims the
//! cores meanwhile, so that no engine is disturbed; cores that others have claimed are left out and named.

use super::refusal::Refusal;
use super::say::{self, Print};
use super::values::duration;
use clap::Args as ClapArgs;
use pinwheel_engine::board;
use pinwheel_engine::board::snapshot::{MEND_STEAL, mend_tasks};
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::host::claims::{ClaimError, Claims};
use pinwheel_engine::host::pin::allowed_cores;
use pinwheel_engine::noise::{CoreNoise, GAP_NS, Kind, Noise, Share, measure};
use std::fmt::Write;
use std::time::Duration;

/// Longest measurement: what was counted in each millisecond is kept until its end.
const SPAN_MAX: Duration = Duration::from_secs(600);
/// Shares listed for a core.
const LISTED_MAX: usize = 8;

#[derive(Debug, ClapArgs)]
pub struct NoiseArgs {
    /// How long each core is measured, at most 10m
    #[arg(long, value_name = "D", value_parser = span, default_value = "5s", allow_hyphen_values = true)]
    pub duration: Duration,
    #[command(flatten)]
    pub print: Print,
}

fn span(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    if span > SPAN_MAX {
        Err(format!("found {text}, expected at most 10m; measure again for longer"))
    } else {
        Ok(span)
    }
}

pub fn noise(args: &NoiseArgs) -> Result<u8, Refusal> {
    let allowed = allowed_cores()?;
    let directory = board::directory();
    let host = HostFacts::read()?;
    let (mut held, mut cores, mut left) = (Vec::new(), Vec::new(), allowed.clone());
    // What runs on a core slows the threads of its siblings.
    while let Some(group) = left.first().map(|core| host.with_siblings(&[*core])) {
        let (members, others): (Vec<u32>, Vec<u32>) = left.iter().partition(|core| group.contains(core));
        left = others;
        match Claims::take(&directory, &group) {
            Ok(claims) => held.push(claims),
            Err(ClaimError::Conflict(conflict)) => {
                members
                    .iter()
                    .for_each(|core| say::people(&format!("pinwheel: noise: core {core} is left out: {conflict}")));
                continue;
            }
            // Without a directory of claims, the cores are measured without a claim.
            Err(ClaimError::Unavailable { .. }) => {}
        }
        cores.extend(members);
    }
    if cores.is_empty() {
        let remedy = "end the engines that hold them, or wait";
        return Err(Refusal::unusable("noise", "no free core", "a core that no engine has claimed", remedy));
    }
    let found = measure(&cores, &allowed, args.duration).map_err(|error| {
        Refusal::unusable("noise", error.to_string(), "a thread on each core", "see pinwheel cores")
    })?;
    Ok(args.print.to_stdout(&found, || text(&found), 0))
}

/// The account in words.
fn text(found: &Noise) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for core in &found.cores {
        let CoreNoise { core: number, span_ns, gaps, gap_ns, longest_ns, .. } = core;
        let _ = writeln!(
            text,
            "core {number}: {:.3} % of {:.1} s lost in {gaps} gaps above {} µs, the longest {:.1} µs; {:.0} % of it attributed, \
             interrupts by {}",
            percent(*gap_ns, *span_ns),
            *span_ns as f64 / 1e9,
            GAP_NS / 1_000,
            *longest_ns as f64 / 1e3,
            core.attributed_share * 100.0,
            if core.by_tracepoints { "tracepoints" } else { "their counts" }
        );
        for share in core.by.iter().take(LISTED_MAX) {
            // Of one that began before the gaps there may be time, and no number.
            let each = share.count.filter(|count| *count > 0).map_or_else(String::new, |count| {
                format!(
                    ", {:.0} a second, {:.1} µs each",
                    count as f64 * 1e9 / *span_ns as f64,
                    share.ns as f64 / 1e3 / count as f64
                )
            });
            let _ = writeln!(
                text,
                "  {:7.3} %  {:<25}  {}{each}",
                percent(share.ns, *span_ns),
                share.what.name(),
                share.who
            );
        }
        if core.by.len() > LISTED_MAX {
            let rest = core.by[LISTED_MAX..].iter().map(|share| share.ns).sum();
            let _ = writeln!(text, "  {:7.3} %  {} others", percent(rest, *span_ns), core.by.len() - LISTED_MAX);
        }
        for hidden in &core.hidden {
            let _ = writeln!(text, "  not visible: {hidden}");
        }
    }
    if let Some((core, share)) = found.worst() {
        let _ = writeln!(text, "worst: {} on core {}: {}", share.what.name(), core.core, share.who);
        let _ = writeln!(text, "  {}", mend(share, core.core));
    }
    text
}

fn percent(part_ns: u64, span_ns: u64) -> f64 {
    part_ns as f64 * 100.0 / span_ns.max(1) as f64
}

/// What would take this share away from a core.
fn mend(share: &Share, core: u32) -> String {
    let id = share.who.split(' ').next().unwrap_or_default();
    match share.what {
        Kind::Task => mend_tasks(core),
        Kind::Interrupt if id.bytes().all(|byte| byte.is_ascii_digit()) && !share.who.ends_with("arch_timer") => {
            format!("send it to other cores: /proc/irq/{id}/smp_affinity_list; pinwheel check writes the command")
        }
        Kind::Interrupt => format!("boot with nohz_full={core} rcu_nocbs={core}; pinwheel check says how"),
        Kind::InterProcessor => {
            "threads of one process on this core and on others cause it, by unmapping memory or waking each other; keep \
             that process off this core"
                .to_owned()
        }
        Kind::Softirq => "send the interrupt that begins it to other cores; pinwheel check says how".to_owned(),
        Kind::Steal => MEND_STEAL.to_owned(),
        Kind::BelowKernel | Kind::Unattributed => {
            "hypervisor, firmware or hardware, or the kernel where it counts nothing: rtla osnoise sees more".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use pinwheel_engine::noise::{CoreNoise, Kind, Noise, Share};

    fn share(what: Kind, who: &str, ns: u64, count: Option<u64>) -> Share {
        Share { what, who: who.to_owned(), ns, share: ns as f64 / 30_000_000.0, count }
    }

    #[test]
    fn an_account_names_the_worst_and_what_mends_it() {
        let by = vec![
            share(Kind::Task, "cc1 ×14, children of make (4711), user ann", 20_000_000, None),
            share(Kind::Interrupt, "36 PCI-MSI eth0", 9_000_000, Some(1_000)),
            share(Kind::Softirq, "RCU", 2_000, Some(0)),
            share(Kind::Unattributed, "no source explains it", 1_000_000, None),
        ];
        let core = CoreNoise {
            core: 1,
            span_ns: 1_000_000_000,
            gaps: 1_200,
            gap_ns: 30_000_000,
            longest_ns: 4_100_000,
            attributed_share: 29.0 / 30.0,
            by_tracepoints: true,
            by,
            hidden: vec!["who had the core: CAP_PERFMON".to_owned()],
        };
        let said = text(&Noise { utc_s: 0, cores: vec![core] });
        for part in [
            "core 1: 3.000 % of 1.0 s lost in 1200 gaps above 5 µs, the longest 4100.0 µs; 97 % of it attributed, interrupts by tracepoints",
            "2.000 %  task                       cc1 ×14",
            "0.900 %  interrupt                  36 PCI-MSI eth0, 1000 a second, 9.0 µs each",
            "softirq                    RCU\n",
            "not visible: who had the core: CAP_PERFMON",
            "worst: task on core 1: cc1 ×14",
            "isolcpus=1",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(text(&Noise { utc_s: 0, cores: Vec::new() }), "");
    }
}
