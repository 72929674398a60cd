//! Systems on which threads cannot be sampled by signal: verdicts have no stack.

use super::Sample;

/// Always `None`.
pub fn last_stack_word() -> Option<u64> {
    None
}

/// Never samples.
#[derive(Debug)]
pub struct Sampler(());

impl Sampler {
    /// Always `None`.
    pub fn install() -> Option<Sampler> {
        None
    }

    /// Changes nothing.
    pub fn forbid() {}

    /// Never called.
    pub fn ask(&mut self, _tid: u32, _stack_top: u64) -> bool {
        false
    }

    /// Never called.
    pub fn take(&mut self) -> Option<Sample> {
        None
    }

    /// Never called.
    pub fn withdraw(&mut self) {}
}
