//! The CPU predecoder: resolves the easy part of a syndrome before matching.
//!
//! Owns the [`Predecoder`] contract, [`Passthrough`] and [`Local`]. Each caller has its own
//! instance on its thread. Nothing is allocated after construction. A call's work is bounded by the
//! fired detectors and their neighbourhoods.
//!
//! The resolved part and the matching of the rest together explain the shot: for every predecoder
//! `residual = syndrome ⊕ (resolved detectors)`.

mod local;
mod paths;
mod tables;

pub use local::Local;
pub use tables::{BOUNDARY, Tables};

/// The result of predecoding one shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecoded {
    /// Number of fired detectors that were resolved.
    pub resolved: u32,
}

/// Resolves the easy part of a syndrome.
pub trait Predecoder: Send {
    /// Writes the unresolved part of `syndrome` to `residual`, and the observables that the
    /// resolved part flips to `observables`. Overwrites both. The prediction is these observables
    /// XOR those of the residual's matching.
    ///
    /// # Panics
    ///
    /// If a slice is not as long as the model's words; [`Local`] also if a bit past the detectors is set.
    fn predecode(&mut self, syndrome: &[u64], residual: &mut [u64], observables: &mut [u64]) -> Predecoded;
}

/// The predecoder `None`: resolves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passthrough;

impl Predecoder for Passthrough {
    fn predecode(&mut self, syndrome: &[u64], residual: &mut [u64], observables: &mut [u64]) -> Predecoded {
        residual.copy_from_slice(syndrome);
        observables.fill(0);
        Predecoded { resolved: 0 }
    }
}

#[cfg(test)]
mod tests;
