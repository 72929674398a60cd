//! Where threads cannot be sampled by signal: no stack is taken, and the verdict goes without.

use super::Sample;

/// Takes no samples.
#[derive(Debug)]
pub struct Sampler(());

impl Sampler {
    /// There is none here.
    #[must_use]
    pub fn install() -> Option<Sampler> {
        None
    }

    /// Asks for nothing.
    pub fn ask(&mut self, _tid: u32, _stack_top: u64) -> bool {
        false
    }

    /// Nothing comes.
    pub fn take(&mut self) -> Option<Sample> {
        None
    }

    /// Nothing to withdraw.
    pub fn withdraw(&mut self) {}
}
