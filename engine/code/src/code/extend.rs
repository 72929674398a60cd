//! Models of longer experiments: adds rounds to a model by repeating one round of its bulk.
//!
//! Pure and cold. Bounded by [`ROUNDS_MAX`] and by the limits of [`dem`](super::dem). Adds only
//! copies of the model's own mechanisms, shifted in time.
//!
//! # The rule
//!
//! A mechanism belongs to the round of its earliest detector. The bulk begins where two successive
//! rounds have the same mechanisms except for the time: equal positions of detectors, parts,
//! observables and probabilities. Copies of the first such round and its mechanisms are inserted
//! behind it; later rounds move back. So every mechanism of the result is surrounded by the same
//! rounds as in the model, also where copies meet originals.
//!
//! # Why two rounds that agree
//!
//! One round does not show that it repeats. In a memory experiment the mechanisms of the first
//! round differ from the bulk's (half of the checks have no predecessor), and so do those of the
//! last two. Stim's surface codes have two equal rounds from 5 rounds of measurement on. A test
//! compares the results with models generated for the same number of rounds.

use std::ops::Range;

use super::dem::{DETECTORS_MAX, Mechanism};
use super::rounds::{MissingTime, Rounds};
use super::{Component, Model};

/// Most rounds of measurement.
pub const ROUNDS_MAX: u32 = 10_000;

/// Relative difference up to which two probabilities are equal: rounding of sums in another order.
const SAME_PROBABILITY: f64 = 1e-9;

/// Why a model cannot be extended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ExtendError {
    #[error(transparent)]
    MissingTime(#[from] MissingTime),
    #[error("found {asked} rounds, expected {least}..={most}; {remedy}")]
    Rounds { asked: u32, least: u32, most: u32, remedy: &'static str },
    #[error(
        "the model's {rounds} rounds have no two successive ones with the same mechanisms, expected a bulk \
         to repeat; make the model for at least 5 rounds of one and the same circuit"
    )]
    NoBulk { rounds: u32 },
}

/// `model` extended to `rounds` rounds of measurement, one less than its rounds of detectors.
/// Returned unchanged if it has that many.
///
/// # Errors
///
/// See [`ExtendError`].
pub fn extended(model: &Model, rounds: u32) -> Result<Model, ExtendError> {
    let old = Rounds::new(model)?;
    let least = old.count().saturating_sub(1);
    if !(least..=ROUNDS_MAX.max(least)).contains(&rounds) {
        let remedy = "a model can be extended, not shortened; ask for rounds in this range";
        return Err(ExtendError::Rounds { asked: rounds, least, most: ROUNDS_MAX.max(least), remedy });
    }
    if rounds == least {
        return Ok(model.clone());
    }
    let cut = bulk(model, &old).ok_or(ExtendError::NoBulk { rounds: old.count() })?;
    let added = rounds - least;
    let width = old.members(cut).len() as u64;
    let detectors = u64::from(model.detectors) + u64::from(added) * width;
    if detectors > u64::from(DETECTORS_MAX) {
        #[expect(clippy::cast_possible_truncation, reason = "below the rounds asked for")]
        let most = least + (u64::from(DETECTORS_MAX - model.detectors) / width) as u32;
        let remedy = "the result would have too many detectors; ask for fewer rounds";
        return Err(ExtendError::Rounds { asked: rounds, least, most, remedy });
    }
    Ok(Extension { model, old: &old, cut, added }.model())
}

/// The first round whose mechanisms equal those of the next round.
fn bulk(model: &Model, rounds: &Rounds) -> Option<u32> {
    // Numbering by rounds is what lets a copy of a round be a shift of its numbers.
    if (1..model.detectors).any(|detector| rounds.of(detector) < rounds.of(detector - 1)) {
        return None;
    }
    let mut begun: Vec<Vec<&Mechanism>> = vec![Vec::new(); rounds.count() as usize];
    for error in &model.errors {
        if let Some(span) = span(error, rounds) {
            begun[span.start as usize].push(error);
        }
    }
    (1..rounds.count().saturating_sub(1)).find(|&cut| {
        let (here, next) = (&begun[cut as usize], &begun[cut as usize + 1]);
        // Copies reach one round further than the mechanisms; all these rounds look alike.
        let Some(last) = here.iter().filter_map(|error| span(error, rounds)).map(|span| span.end).max() else {
            return false;
        };
        let Some(width) = width(model, rounds, cut..last + 1) else { return false };
        same_but_for(width, here, next)
    })
}

/// The rounds of a mechanism's detectors; `None` without detectors.
fn span(error: &Mechanism, rounds: &Rounds) -> Option<Range<u32>> {
    let mut of = error.components.iter().flat_map(|part| &part.detectors).map(|&detector| rounds.of(detector));
    let first = of.next()?;
    Some(of.fold(first..first + 1, |span, round| span.start.min(round)..span.end.max(round + 1)))
}

/// Detectors of each round of `alike`, if all of these rounds have them at the same positions.
fn width(model: &Model, rounds: &Rounds, mut alike: Range<u32>) -> Option<u32> {
    let place = |detector: &u32| model.coordinates[*detector as usize].split_last().map(|(_, place)| place);
    let first = rounds.members(alike.start);
    let same = |round: u32| rounds.members(round).iter().map(place).eq(first.iter().map(place));
    (alike.end <= rounds.count() && alike.all(same)).then(|| u32::try_from(first.len()).ok()).flatten()
}

/// Whether `next` equals `here` with all detector numbers increased by `width`.
fn same_but_for(width: u32, here: &[&Mechanism], next: &[&Mechanism]) -> bool {
    let sorted = |errors: &[&Mechanism], by: u32| {
        let moved = errors.iter().map(|error| (moved(&error.components, by), error.probability));
        let mut moved: Vec<(Vec<Component>, f64)> = moved.collect();
        moved.sort_by(|a, b| key(&a.0).cmp(&key(&b.0)));
        moved
    };
    let close = |a: f64, b: f64| (a - b).abs() <= SAME_PROBABILITY * a.max(b);
    here.len() == next.len()
        && sorted(here, width).iter().zip(&sorted(next, 0)).all(|(a, b)| a.0 == b.0 && close(a.1, b.1))
}

fn key(components: &[Component]) -> Vec<(&[u32], &[u32])> {
    components.iter().map(|part| (&part.detectors[..], &part.observables[..])).collect()
}

fn moved(components: &[Component], by: u32) -> Vec<Component> {
    let part = |part: &Component| Component {
        detectors: part.detectors.iter().map(|detector| detector + by).collect(),
        observables: part.observables.clone(),
    };
    components.iter().map(part).collect()
}

/// A model, the round to repeat, and the number of copies.
struct Extension<'a> {
    model: &'a Model,
    old: &'a Rounds,
    cut: u32,
    added: u32,
}

impl Extension<'_> {
    fn model(&self) -> Model {
        let width = u32::try_from(self.old.members(self.cut).len()).unwrap_or(u32::MAX);
        let mut errors = Vec::new();
        for error in &self.model.errors {
            let begins = span(error, self.old).map(|span| span.start);
            let copies = match begins {
                Some(round) if round == self.cut => 0..=self.added,
                Some(round) if round > self.cut => self.added..=self.added,
                _ => 0..=0,
            };
            // In place, so that the parts of one edge come in the same order in each copied round.
            let copy = |by| Mechanism { components: moved(&error.components, by * width), ..*error };
            errors.extend(copies.map(copy));
        }
        let detectors = self.model.detectors + self.added * width;
        let (coordinates, heralds) = (self.coordinates(), self.heralds());
        Model { detectors, observables: self.model.observables, errors, coordinates, heralds, soft: None }
    }

    /// Heralds of the rounds in the order of [`Self::coordinates`].
    fn heralds(&self) -> Vec<u32> {
        let copies = (0..=self.added).map(|_| self.cut);
        let rounds = (0..self.cut).chain(copies).chain(self.cut + 1..self.old.count());
        let is_herald = |detector: &u32| self.model.heralds.binary_search(detector).is_ok();
        let all = (0..).zip(rounds.flat_map(|round| self.old.members(round)));
        all.filter(|(_, detector)| is_herald(detector)).map(|(index, _)| index).collect()
    }

    /// Coordinates up to the repeated round, of its copies, and of the rounds after them. Each copy
    /// is one time step later.
    fn coordinates(&self) -> Vec<Vec<f64>> {
        let of =
            |round: u32| self.old.members(round).iter().map(|&detector| &self.model.coordinates[detector as usize]);
        let later = |coordinates: &Vec<f64>, by: f64| {
            let mut coordinates = coordinates.clone();
            coordinates.iter_mut().rev().take(1).for_each(|time| *time += by);
            coordinates
        };
        let time = |round: u32| of(round).next().and_then(|coordinates| coordinates.last()).copied().unwrap_or(0.0);
        let step = time(self.cut + 1) - time(self.cut);
        let mut all: Vec<Vec<f64>> = (0..self.cut).flat_map(of).cloned().collect();
        for copy in 0..=self.added {
            all.extend(of(self.cut).map(|coordinates| later(coordinates, step * f64::from(copy))));
        }
        let rest = (self.cut + 1..self.old.count()).flat_map(of);
        all.extend(rest.map(|coordinates| later(coordinates, step * f64::from(self.added))));
        all
    }
}

#[cfg(test)]
mod tests;
