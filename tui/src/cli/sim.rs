//! `pinwheel sim`: simulates the roles in virtual time, one run per seed.
//!
//! Runs on the main thread until every seed is done. Exit status 1 if a guarantee was violated.

use super::refusal::Refusal;
use super::say::{Print, counted};
use clap::Args as ClapArgs;
use pinwheel_lab::sim::{SimulationResult, Violation, simulate};
use pinwheel_report::report::grouped;
use std::fmt::Write;
use std::ops::Range;

/// Most violations that are listed; the JSON has all.
const VIOLATIONS_SHOWN_MAX: usize = 10;

#[derive(Debug, ClapArgs)]
pub struct SimArgs {
    /// Range of seeds to simulate, B excluded
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    pub seeds: Range<u64>,
    #[command(flatten)]
    pub print: Print,
}

/// `A..B`, B excluded and above A.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.filter(|range: &Range<u64>| !range.is_empty()).ok_or_else(|| {
        "expected two whole numbers, the second above the first; write it like --seeds 0..1000".to_owned()
    })
}

pub fn sim(args: &SimArgs) -> Result<u8, Refusal> {
    let found = simulate(args.seeds.clone())?;
    Ok(args.print.to_stdout(&found, || text(&found), u8::from(!found.violations.is_empty())))
}

fn text(found: &SimulationResult) -> String {
    let SimulationResult { seeds, shots, steps, faults, violations } = found;
    let mut text = format!(
        "{}, {}, {}; {} violated\n",
        counted(*seeds, "seed"),
        counted(*shots, "shot"),
        counted(*steps, "step"),
        counted(violations.len() as u64, "guarantee")
    );
    // Writing to a String cannot fail.
    for (name, count) in faults {
        let _ = writeln!(text, "  {name:<24} {:>13}", grouped(*count));
    }
    for Violation { seed, step, what } in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
        let _ = writeln!(
            text,
            "  seed {seed}, step {step}: {what}; replay it with --seeds {seed}..{}",
            seed.saturating_add(1)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{seeds, text};
    use pinwheel_lab::sim::{SimulationResult, Violation};

    #[test]
    fn a_violation_names_the_seed_that_replays_it() {
        let violation = Violation { seed: 7, step: 41, what: "shot 3 answered twice".to_owned() };
        let printed = text(&SimulationResult { seeds: 10, violations: vec![violation], ..SimulationResult::default() });
        assert!(printed.contains("1 guarantee violated") && printed.contains("--seeds 7..8"), "{printed}");
    }

    #[test]
    fn seeds_are_a_range_that_holds_some() {
        assert_eq!(seeds("0..1000"), Ok(0..1000));
        for text in ["5", "5..5", "6..5", "..5", "5..", "-1..3", "a..b"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }
}
