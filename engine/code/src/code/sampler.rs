//! Draws shots from a detector error model.
//!
//! Owns the random state of one source; called by one feed. Allocates only in [`Sampler::new`]. A
//! draw's work is bounded by the model: one step per class and one per candidate event. Never reads
//! a clock: equal seeds draw equal shots.
//!
//! # Why classes and skips
//!
//! Mechanisms are grouped into at most 64 classes by the binary exponent of their probability. In
//! each class a geometric skip at the class's largest probability selects the next candidate, which
//! is kept with the ratio of its own probability to the largest; the ratio is above one half. Skips
//! continue from one shot to the next (they are memoryless), so a class without an event costs one
//! subtraction. A model with all different probabilities costs no more than a uniform one.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Model, flip};

/// Most classes: one per binary exponent down to 2⁻⁶³; smaller probabilities share the last.
const CLASSES_MAX: usize = 64;

/// The detectors and observables that one mechanism flips, and the probability to keep it as a
/// candidate.
struct Event {
    keep: f64,
    detectors: Box<[u32]>,
    observables: Box<[u32]>,
}

struct Class {
    events: Vec<Event>,
    /// `1 / ln(1 - p)` of the largest probability; -0 where that is 1.
    inverse_log: f64,
    /// Candidates to skip from the start of the next shot.
    skip: u64,
}

/// Draws shots; see the module's text.
pub struct Sampler {
    random: Xoshiro256PlusPlus,
    classes: Vec<Class>,
    has_observables: bool,
}

impl Sampler {
    /// A sampler whose shots are determined by `model` and `seed`.
    pub fn new(model: &Model, seed: u64) -> Self {
        let mut by_exponent: Vec<Vec<(f64, Event)>> = Vec::new();
        by_exponent.resize_with(CLASSES_MAX, Vec::new);
        for error in model.errors.iter().filter(|error| error.probability > 0.0) {
            let effect = error.effect();
            if effect.detectors.is_empty() && effect.observables.is_empty() {
                continue;
            }
            let (detectors, observables) = (effect.detectors.into(), effect.observables.into());
            let event = Event { keep: 1.0, detectors, observables };
            by_exponent[exponent_class(error.probability)].push((error.probability, event));
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let classes = by_exponent.into_iter().filter(|class| !class.is_empty());
        let classes = classes.map(|class| Class::new(class, &mut random)).collect();
        Self { random, classes, has_observables: model.observables > 0 }
    }

    /// Whether its shots have observables, by which an answer can be judged.
    pub fn has_observables(&self) -> bool {
        self.has_observables
    }

    /// Begins again with `seed`: draws what a new sampler with it draws, and is made sooner.
    pub fn restart(&mut self, seed: u64) {
        self.random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for class in &mut self.classes {
            class.skip = gap(class.inverse_log, &mut self.random);
        }
    }

    /// Draws the next shot. Returns how many mechanisms happened, of those that flip anything.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than the model's words.
    pub fn draw(&mut self, detectors: &mut [u64], observables: &mut [u64]) -> u32 {
        detectors.fill(0);
        observables.fill(0);
        let mut happened = 0;
        for class in &mut self.classes {
            let count = class.events.len() as u64;
            let mut candidate = class.skip;
            while candidate < count {
                #[expect(clippy::cast_possible_truncation, reason = "below a Vec's length")]
                let event = &class.events[candidate as usize];
                if event.keep >= 1.0 || uniform(&mut self.random) <= event.keep {
                    happened += 1;
                    event.detectors.iter().for_each(|&index| flip(detectors, index));
                    event.observables.iter().for_each(|&index| flip(observables, index));
                }
                candidate = candidate.saturating_add(1).saturating_add(gap(class.inverse_log, &mut self.random));
            }
            class.skip = candidate - count;
        }
        happened
    }
}

impl Class {
    fn new(members: Vec<(f64, Event)>, random: &mut Xoshiro256PlusPlus) -> Self {
        let largest = members.iter().map(|&(probability, _)| probability).fold(0.0, f64::max);
        let keep = |(probability, event)| Event { keep: probability / largest, ..event };
        let inverse_log = (-largest).ln_1p().recip();
        Self { events: members.into_iter().map(keep).collect(), inverse_log, skip: gap(inverse_log, random) }
    }
}

/// The class of a probability in (0, 1]: half the probability is one class further.
fn exponent_class(probability: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "-log2 of 2^-1074..=1 is 0..=1074")]
    let class = (-probability.log2()).floor().max(0.0) as usize;
    class.min(CLASSES_MAX - 1)
}

/// Uniform in (0, 1], 53 bits.
fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
    ((random.next_u64() >> 11) + 1) as f64 * UNIT
}

/// Failures before the next success, geometric; a probability too small for 64 bits saturates.
fn gap(inverse_log: f64, random: &mut Xoshiro256PlusPlus) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    let gap = (uniform(random).ln() * inverse_log) as u64;
    gap
}

#[cfg(test)]
mod tests;
