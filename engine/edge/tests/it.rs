//! Ordinary tests of the protocol: what holds on one thread, and that nothing is lost on two real
//! ones.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "harness")]

#[path = "it/names.rs"]
mod names;
#[path = "it/pages.rs"]
mod pages;
#[path = "it/rings.rs"]
mod rings;
#[path = "it/slots.rs"]
mod slots;
#[path = "it/stress.rs"]
mod stress;
#[path = "it/words.rs"]
mod words;
#[path = "it/workers.rs"]
mod workers;

/// Whether `f` panics. The message goes to the test's captured output.
fn panics<R>(f: impl FnOnce() -> R) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err()
}

/// A small deterministic generator (xorshift64*): tests replay from their seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}
