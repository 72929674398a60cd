//! Counts by the gap of an answer: how much likelier it is than the best answer with other observables.
//!
//! Pure. Bounds: 255 gaps, 0 to 254 dB, rounded down. The names of the counts in a row are those that the field
//! uses: `C12` counts correct answers with a gap of 12 dB, `E12` wrong ones.

use crate::intervals::interval_95;
use crate::tallies::{Names, Tallies};
use pinwheel_engine::pipe::GAP_DB_MAX;
use std::collections::BTreeMap;

/// Names of the counts in a row, before the gap: correct answers, wrong ones.
const NAMES: Names = ["C", "E"];
/// Distance between two bounds of [`GapCounts::kept`], decibels.
const STEP_DB: usize = 5;

/// Correct and wrong answers by gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapCounts(Tallies);

/// Answers with one gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GapCount {
    /// The gap, decibels, rounded down; 254: 254 dB or more.
    pub gap_db: usize,
    /// Shots with this gap.
    pub shots: u64,
    /// Wrong answers among them.
    pub errors: u64,
}

/// What is left of the shots without those of small gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Smallest gap that is kept, decibels.
    pub from_db: usize,
    /// Part of the shots that is kept.
    pub part: f64,
    /// Rate of wrong answers among them.
    pub rate: f64,
    /// The 95 % Wilson interval of that rate.
    pub ci95: [f64; 2],
}

/// As a list of [`GapCount`].
impl serde::Serialize for GapCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.each())
    }
}

impl GapCounts {
    /// Counts an answer.
    pub fn add(&mut self, gap_db: u8, is_wrong: bool) {
        self.0.at(usize::from(gap_db))[usize::from(is_wrong)] += 1;
    }

    /// Adds the counts of others.
    pub fn merge(&mut self, other: &GapCounts) {
        self.0.merge(&other.0);
    }

    /// The counts of a row, by name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        self.0.named(NAMES)
    }

    /// Those that [`GapCounts::named`] has named; names of others are left out.
    pub fn of_row(counts: &BTreeMap<String, u64>) -> GapCounts {
        let is_gap = |gap_db: &usize| *gap_db <= usize::from(GAP_DB_MAX);
        GapCounts(Tallies::of_row(counts, NAMES, |gap_db| Some(gap_db).filter(is_gap)))
    }

    /// Shots counted.
    pub fn shots(&self) -> u64 {
        self.at_least(0).0
    }

    /// The gaps that answers have, smallest first.
    pub fn each(&self) -> Vec<GapCount> {
        let counts = self.0.each().iter().enumerate();
        let each = counts.map(|(gap_db, [correct, wrong])| GapCount {
            gap_db,
            shots: correct.saturating_add(*wrong),
            errors: *wrong,
        });
        each.filter(|count| count.shots > 0).collect()
    }

    /// What is left without gaps below 5, 10, 15 … dB, up to the first bound that leaves no wrong answer.
    pub fn kept(&self) -> Vec<Kept> {
        let mut kept = Vec::new();
        for from_db in (STEP_DB..self.0.each().len()).step_by(STEP_DB) {
            let (shots, errors) = self.at_least(from_db);
            let Some(ci95) = interval_95(errors, shots) else { break };
            let (part, rate) = (shots as f64 / self.shots() as f64, errors as f64 / shots as f64);
            kept.push(Kept { from_db, part, rate, ci95 });
            if errors == 0 {
                break;
            }
        }
        kept
    }

    /// Shots with at least this gap, and wrong answers among them.
    fn at_least(&self, gap_db: usize) -> (u64, u64) {
        let counts = self.0.each().iter().skip(gap_db);
        counts.fold((0_u64, 0_u64), |(shots, errors), [correct, wrong]| {
            (shots.saturating_add(*correct).saturating_add(*wrong), errors.saturating_add(*wrong))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{GapCount, GapCounts};
    use std::collections::BTreeMap;

    fn counted() -> GapCounts {
        let mut counts = GapCounts::default();
        let mut add = |times, gap_db, is_wrong| (0..times).for_each(|_| counts.add(gap_db, is_wrong));
        add(10, 0, true);
        add(30, 4, false);
        add(2, 7, true);
        add(58, 12, false);
        add(900, 254, false);
        counts
    }

    #[test]
    fn counts_come_back_from_their_names_and_names_of_others_are_left_out() {
        let mut named = counted().named();
        assert_eq!((named["E0"], named["C4"], named.len()), (10, 30, 5));
        let others = [("C255", 3), ("C", 3), ("E-1", 3), ("shots_with_faults=2", 3), ("C2,E", 3)];
        named.extend(others.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(GapCounts::of_row(&named), counted());
        let full = BTreeMap::from(["C1", "E1", "C01"].map(|name| (name.to_owned(), u64::MAX)));
        assert_eq!(GapCounts::of_row(&full).shots(), u64::MAX);
        let mut twice = counted();
        twice.merge(&counted());
        assert_eq!((twice.shots(), twice.each()[0]), (2_000, GapCount { gap_db: 0, shots: 20, errors: 20 }));
    }

    #[test]
    fn fewer_shots_are_kept_with_each_bound_until_none_is_wrong() {
        let kept = counted().kept();
        let found: Vec<(usize, f64, f64)> = kept.iter().map(|one| (one.from_db, one.part, one.rate)).collect();
        assert_eq!(found, [(5, 0.96, 2.0 / 960.0), (10, 0.958, 0.0)]);
        assert!(kept[1].ci95[0] == 0.0 && kept[1].ci95[1] > 0.0);
        assert!(GapCounts::default().kept().is_empty());
    }
}
