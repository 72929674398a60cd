//! Data shared by kernels and host: `engine/kernels/layout.h` in Rust.
//!
//! Plain data, written by cold code and frozen into graphs. Bounded by a silo's workers. Every
//! address in it has been translated and checked.
//!
//! ```text
//! Seat, 56 bytes:   address job doorbell ready report | seen removed
//! Silo, 136 bytes:  15 addresses and sizes of 8 bytes | words observable_words detectors jobs
//! ```

/// One worker; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    pub(super) address: u64,
    pub(super) job: u64,
    pub(super) doorbell: u64,
    pub(super) ready: u64,
    pub(super) report: u64,
    pub(super) seen: u64,
    pub(super) removed: u64,
}

/// One silo; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silo {
    pub(super) payload: u64,
    pub(super) payload_host: u64,
    pub(super) payload_words: u64,
    pub(super) residuals_out: u64,
    pub(super) flips_out: u64,
    pub(super) syndromes: u64,
    pub(super) residuals: u64,
    pub(super) flips: u64,
    pub(super) seats: u64,
    pub(super) near_from: u64,
    pub(super) near_word: u64,
    pub(super) near_mask: u64,
    pub(super) way_from: u64,
    pub(super) way_partner: u64,
    pub(super) way_flips: u64,
    pub(super) words: u32,
    pub(super) observable_words: u32,
    pub(super) detectors: u32,
    pub(super) jobs: u32,
}

const _: () = assert!(size_of::<Seat>() == 56 && size_of::<Silo>() == 136);
