//! Two counts for each of some numbers, as a row of results names them: `errors_with_faults=3`,
//! `E12`.
//!
//! Pure. Bounds: the numbers that the caller counts.

use std::collections::BTreeMap;

/// Names of the two counts in a row, before the number.
pub(crate) type Names = [&'static str; 2];

/// Two counts for each number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tallies(Vec<[u64; 2]>);

impl Tallies {
    /// The counts of `number`, to change them.
    pub(crate) fn at(&mut self, number: usize) -> &mut [u64; 2] {
        if self.0.len() <= number {
            self.0.resize(number + 1, [0; 2]);
        }
        &mut self.0[number]
    }

    /// Those of 0, 1, … up to the largest number that was counted.
    pub(crate) fn each(&self) -> &[[u64; 2]] {
        &self.0
    }

    /// Adds those of others.
    pub(crate) fn merge(&mut self, other: &Tallies) {
        for (number, counts) in other.0.iter().enumerate() {
            self.at(number).iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        }
    }

    /// As in a row; counts of 0 are left out.
    pub(crate) fn named(&self, names: Names) -> BTreeMap<String, u64> {
        let counts = self.0.iter().enumerate();
        let named = counts.flat_map(|(number, counts)| {
            names.into_iter().zip(counts).map(move |(name, count)| (format!("{name}{number}"), *count))
        });
        named.filter(|(_, count)| *count > 0).collect()
    }

    /// Those of a row with one of `names`, counted at the number that `place` gives them, if it
    /// does.
    pub(crate) fn of_row(
        counts: &BTreeMap<String, u64>,
        names: Names,
        place: impl Fn(usize) -> Option<usize>,
    ) -> Tallies {
        let mut found = Tallies::default();
        for (name, count) in counts {
            for (which, prefix) in names.iter().enumerate() {
                let number = name.strip_prefix(prefix).and_then(|number| number.parse().ok());
                if let Some(at) = number.and_then(&place) {
                    let sum = &mut found.at(at)[which];
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        found
    }
}
