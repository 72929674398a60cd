//! Director: which silo a new stream goes to.
//!
//! Owns the charges since the newest snapshot, a random generator, and the next silo in turn. Reads
//! no clock and no board. Bounds: [`SILOS_MAX`] silos; a placement draws [`TRIES`] pairs and, if
//! those are too full, compares every silo once. Source: seed 003,
//! `QueueDepthAwarePlacementDirector`; DESIGN §9.
//!
//! # Why
//! *Best of two, not the best.* A snapshot is out of date when it is used, and each placement that
//! takes its minimum takes the same silo. The better of two silos drawn at random spreads the
//! placements. A charge for each placement corrects the table until the next snapshot (100
//! placements on one snapshot: 100/0/0 without, 33/34/33 with).
//!
//! *A stream that runs already has its own silo as one of the two.* Its known load is subtracted
//! there before the comparison. Otherwise three streams in four would move at the start, because
//! each stream's own load counts against its silo.
//!
//! *Average, maximum and backlog together.* A low average can hide one full queue; a low maximum
//! can hide that the whole silo is slow; both can hide a backlog before the first queue.

use super::decision::{Candidate, Decision, Made, Refusal};
use super::depth::{Reading, Snapshot};
use crate::profile::{AllHigh, PlaceBy};
use crate::units::Nanos;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Most silos that a director compares.
pub const SILOS_MAX: usize = 1_024;
/// Pairs drawn before every silo is compared.
pub const TRIES: usize = 4;
/// Least load that a placement is expected to add.
pub const CHARGE_MIN: f64 = 0.01;
/// Most load that a placement is expected to add.
pub const CHARGE_MAX: f64 = 0.25;
/// A move must lower the cost by more than this.
const STAYS: f64 = 0.05;
/// Silos whose fullest queue is within this of the lowest count as equally full.
const LEAST_WITHIN: f64 = 0.05;

/// A stream is placed preferably in a silo whose fullest queue is below this.
pub const PREFERRED_MAX: f64 = 0.7;

/// Rules of a director.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// How it chooses.
    pub by: PlaceBy,
    /// A silo with this average or more is excluded.
    pub high: f64,
    /// A silo with a queue this full is excluded.
    pub critical: f64,
    /// What it does when every silo is excluded.
    pub all_high: AllHigh,
    /// A backlog of this length costs as much as a full queue.
    pub horizon: Nanos,
}

impl Rules {
    /// The values of seed 003, with best of two.
    pub const SEED: Rules = Rules {
        by: PlaceBy::BestOfTwo,
        high: 0.80,
        critical: 0.95,
        all_high: AllHigh::Random,
        horizon: Nanos::from_millis(1_000),
    };
}

/// The director's table.
#[derive(Debug)]
pub struct Director {
    rules: Rules,
    random: Xoshiro256PlusPlus,
    /// By silo; `None`: not known.
    silos: Vec<Option<Candidate>>,
    /// Silos below both limits.
    open: Vec<u32>,
    /// Expected load of one placement until the next snapshot.
    charge: f64,
    turn: usize,
}

impl Director {
    /// A director without a snapshot.
    pub fn new(rules: Rules, seed: u64) -> Director {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (silos, open) = (Vec::with_capacity(SILOS_MAX), Vec::with_capacity(SILOS_MAX));
        Director { rules, random, silos, open, charge: CHARGE_MIN, turn: 0 }
    }

    /// Takes over a new snapshot of silos with `streams` streams in all, and clears the charges.
    ///
    /// # Panics
    /// If there are more than [`SILOS_MAX`] silos.
    pub fn refresh(&mut self, snapshot: &Snapshot, streams: usize) {
        assert!(snapshot.silos.len() <= SILOS_MAX, "{} silos, at most {SILOS_MAX}", snapshot.silos.len());
        let candidate = |(silo, reading): (usize, &Reading)| Some(Candidate::of(silo as u32, reading.known()?));
        self.silos.clear();
        self.silos.extend(snapshot.silos.iter().enumerate().map(candidate));
        self.open.clear();
        let rules = self.rules;
        self.open.extend(self.silos.iter().flatten().filter(|one| rules.takes(one)).map(|one| one.silo));
        let load: f64 = self.silos.iter().flatten().map(|one| one.max).sum();
        self.charge = (load / streams.max(1) as f64).clamp(CHARGE_MIN, CHARGE_MAX);
    }

    /// Discards a snapshot that has become too old.
    pub fn forget(&mut self) {
        self.silos.iter_mut().for_each(|silo| *silo = None);
        self.open.clear();
    }

    /// Charge of `silo` since the snapshot.
    pub fn charge(&self, silo: usize) -> f64 {
        self.silos.get(silo).copied().flatten().map_or(0.0, |one| one.charge)
    }

    /// Places `stream`, preferably in a silo whose fullest queue is below `preferred_max`.
    pub fn place(&mut self, stream: u32, preferred_max: f64) -> Made {
        if self.silos.iter().all(Option::is_none) {
            return refused(stream, Refusal::NothingKnown);
        }
        let (chosen, other) = match self.rules.by {
            // Every silo is excluded: no rule chooses.
            _ if self.open_silos().next().is_none() => (None, None),
            PlaceBy::BestOfTwo => self.best_of_two(preferred_max),
            PlaceBy::LowestAverage => (self.lowest_average(), None),
            PlaceBy::RoundRobin => (self.next_in_turn(), None),
            PlaceBy::Random => (self.any(), None),
        };
        let is_high = chosen.is_none();
        let Some(chosen) = chosen.or_else(|| self.least_critical()) else {
            return refused(stream, Refusal::AllHigh);
        };
        if let Some(silo) = &mut self.silos[chosen.silo as usize] {
            silo.charge += self.charge;
        }
        Made { decision: Decision::Place { stream, silo: chosen.silo, is_high }, on: [Some(chosen), other] }
    }

    /// Places `stream`, which is at a silo already and puts `share` on it: by best of two it goes
    /// only where clearly less is to be done than at its own without it; by the other rules as if
    /// it were nowhere.
    pub fn place_known(&mut self, stream: u32, preferred_max: f64, (at, share): (u32, f64)) -> Made {
        let own = self.silos.get(at as usize).copied().flatten();
        let Some(own) = own.filter(|_| self.rules.by == PlaceBy::BestOfTwo && share > 0.0) else {
            return self.place(stream, preferred_max);
        };
        let without = Candidate { charge: own.charge - share, ..own };
        self.silos[at as usize] = Some(without);
        let (rules, other) = (self.rules, self.best_of_two(preferred_max).0);
        let other = other.filter(|other| rules.cost(other) + STAYS < rules.cost(&without));
        let chosen = other.unwrap_or(without);
        if let Some(silo) = &mut self.silos[chosen.silo as usize] {
            silo.charge += share;
        }
        let is_high = !rules.takes(&chosen);
        let decision = Decision::Place { stream, silo: chosen.silo, is_high };
        Made { decision, on: [Some(chosen), other.map(|_| without)] }
    }

    fn draw(&mut self, below: usize) -> usize {
        // Multiply and shift: the bias is negligible for a few thousand silos, and it needs no division.
        ((u128::from(self.random.next_u64()) * below as u128) >> 64) as usize
    }

    /// The open silo at index `place` of the list. A silo that its charges have filled is removed
    /// until the next snapshot.
    fn open_at(&mut self, place: usize) -> Option<Candidate> {
        let one = self.silos[self.open[place] as usize]?;
        if self.rules.takes(&one) {
            return Some(one);
        }
        self.open.swap_remove(place);
        None
    }

    fn best_of_two(&mut self, preferred_max: f64) -> (Option<Candidate>, Option<Candidate>) {
        let rules = self.rules;
        let mut best: (Option<Candidate>, Option<Candidate>) = (None, None);
        for _ in 0..TRIES {
            let count = self.open.len();
            if count == 0 {
                break;
            }
            let first = self.draw(count);
            // A different index, each equally likely.
            let second = (count > 1).then(|| (first + 1 + self.draw(count - 1)) % count);
            let Some(one) = self.open_at(first) else { continue };
            let two = second.and_then(|place| self.open_at(place));
            let pair = match two {
                Some(two) if rules.cost(&two) < rules.cost(&one) => (Some(two), Some(one)),
                two => (Some(one), two),
            };
            if pair.0.is_some_and(|one| one.max + one.charge < preferred_max) {
                return pair;
            }
            let is_better = |new: &Candidate, old: &Candidate| rules.cost(new) < rules.cost(old);
            if pair.0.zip(best.0).is_none_or(|(new, old)| is_better(&new, &old)) {
                best = pair;
            }
        }
        let preferred = self.open_silos().filter(|one| one.max + one.charge < preferred_max);
        match (self.cheapest(preferred), best) {
            (Some(one), _) => (Some(one), best.0),
            // Each draw met a silo that its charges have filled.
            (None, (None, _)) => (self.cheapest(self.open_silos()), None),
            (None, best) => best,
        }
    }

    /// Silos below both limits, charges included.
    fn open_silos(&self) -> impl Iterator<Item = &Candidate> {
        self.silos.iter().flatten().filter(|one| self.rules.takes(one))
    }

    fn cheapest<'a>(&self, silos: impl Iterator<Item = &'a Candidate>) -> Option<Candidate> {
        silos.min_by(|one, other| self.rules.cost(one).total_cmp(&self.rules.cost(other))).copied()
    }

    /// The rule of seed 003. Its known weakness: on one snapshot each placement takes the same silo.
    fn lowest_average(&self) -> Option<Candidate> {
        let below = self.silos.iter().flatten().filter(|one| one.average < self.rules.high);
        below.min_by(|one, other| one.average.total_cmp(&other.average)).copied()
    }

    fn next_in_turn(&mut self) -> Option<Candidate> {
        let count = self.silos.len();
        let found = (0..count).map(|step| (self.turn + step) % count).find_map(|at| self.silos[at])?;
        self.turn = found.silo as usize + 1;
        Some(found)
    }

    fn any(&mut self) -> Option<Candidate> {
        let known = self.silos.iter().flatten().count();
        let at = self.draw(known.max(1));
        self.silos.iter().flatten().nth(at).copied()
    }

    /// With every silo above the limit: one of the least full, or none, as the profile says.
    fn least_critical(&mut self) -> Option<Candidate> {
        if self.rules.all_high == AllHigh::Refuse {
            return None;
        }
        let filled = |one: &Candidate| one.max + one.charge;
        let least = self.silos.iter().flatten().map(filled).min_by(f64::total_cmp)?;
        let is_least = |one: &&Candidate| filled(one) <= least + LEAST_WITHIN;
        let count = self.silos.iter().flatten().filter(is_least).count();
        let at = self.draw(count.max(1));
        self.silos.iter().flatten().filter(is_least).nth(at).copied()
    }
}

impl Rules {
    /// Whether a silo is below both limits, charges included.
    fn takes(&self, one: &Candidate) -> bool {
        one.average + one.charge < self.high && one.max + one.charge < self.critical
    }

    /// Cost of placing one more stream there: a full silo, a full queue and a backlog of the horizon cost the same.
    fn cost(&self, one: &Candidate) -> f64 {
        let late = one.backlog.0 as f64 / self.horizon.0.max(1) as f64;
        one.average + one.max + 2.0 * one.charge + late
    }
}

fn refused(stream: u32, why: Refusal) -> Made {
    Made { decision: Decision::Refuse { stream, why }, on: [None, None] }
}

#[cfg(test)]
mod tests;
