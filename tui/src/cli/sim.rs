//! `pinwheel sim`: rehearses the roles under virtual time, one run per seed.
//!
//! Runs on the main thread until every seed is done. Exit status 1 if a promise was broken.

use super::args::SimArgs;
use super::refusal::Refusal;
use super::{say, written};
use crate::report::grouped;
use pinwheel_lab::sim::{Rehearsal, rehearse};
use std::fmt::Write;
use std::io;

/// Violations told one by one; the JSON has them all.
const VIOLATIONS_SHOWN_MAX: usize = 10;

pub fn sim(args: &SimArgs) -> Result<u8, Refusal> {
    let found = rehearse(args.seeds.clone())?;
    let out = &mut io::stdout().lock();
    let told = if args.json { say::json(out, &found) } else { say::text(out, &text(&found)) };
    Ok(written(told, u8::from(!found.violations.is_empty())))
}

fn text(found: &Rehearsal) -> String {
    let Rehearsal { seeds, shots, steps, faults, violations } = found;
    let mut text = format!(
        "{} seeds, {} shots, {} steps; {} promises broken\n",
        grouped(*seeds),
        grouped(*shots),
        grouped(*steps),
        grouped(violations.len() as u64)
    );
    // Writing to a String cannot fail.
    for (name, count) in faults {
        let _ = writeln!(text, "  injected {name:<24} {:>13}", grouped(*count));
    }
    for violation in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
        let (seed, step, what) = (violation.seed, violation.step, &violation.what);
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
    use super::text;
    use pinwheel_lab::sim::{Rehearsal, Violation};

    #[test]
    fn a_violation_names_the_seed_that_replays_it() {
        let violation = Violation { seed: 7, step: 41, what: "shot 3 answered twice".to_owned() };
        let told = text(&Rehearsal { seeds: 10, violations: vec![violation], ..Rehearsal::default() });
        assert!(told.contains("1 promises broken") && told.contains("--seeds 7..8"), "{told}");
    }
}
