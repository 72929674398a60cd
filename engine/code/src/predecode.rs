//! The CPU predecoder: takes the easy part of a syndrome away before matching.
//!
//! Owns the [`Predecoder`] contract, [`Passthrough`] and [`Local`]. One instance per caller, on its thread; nothing is
//! allocated after construction, and a call's work is bounded by the fired detectors and their neighbourhoods.
//!
//! What is taken away and the observables it flips, together with the matching of the rest, must explain the shot: for
//! every predecoder `residual = syndrome ⊕ (detectors of what was resolved)`.

mod local;
mod paths;
mod tables;

pub use local::Local;
pub use tables::{BOUNDARY, Tables};

/// What a predecoder did with one shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecoded {
    /// Fired detectors that the residual no longer has.
    pub resolved: u32,
}

/// Takes the easy part of a syndrome away.
pub trait Predecoder: Send {
    /// Writes what is left of `syndrome` to `residual`, and the observables flipped by what was resolved to
    /// `observables`; both are overwritten. The prediction is these observables, XORed with those of the residual.
    ///
    /// # Panics
    ///
    /// If a slice is not as long as the model's words.
    fn predecode(&mut self, syndrome: &[u64], residual: &mut [u64], observables: &mut [u64]) -> Predecoded;

    /// The predecoder's name, as profiles and reports spell it.
    fn name(&self) -> &'static str;
}

/// Hands everything on: the predecoder `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passthrough;

impl Predecoder for Passthrough {
    fn predecode(&mut self, syndrome: &[u64], residual: &mut [u64], observables: &mut [u64]) -> Predecoded {
        residual.copy_from_slice(syndrome);
        observables.fill(0);
        Predecoded { resolved: 0 }
    }

    fn name(&self) -> &'static str {
        "none"
    }
}

#[cfg(test)]
mod tests;
