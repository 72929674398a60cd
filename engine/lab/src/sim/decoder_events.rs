//! Changes of decoders while shots are decoded.
//!
//! Draws from a sequence of its own, so that a seed's other draws do not depend on it. Whole shots
//! only: windows keep their decoder. Bounds: one change in [`STEPS_A_CHANGE`] steps on average.

use crate::board::{self, Board};
use crate::decode::changes::DecoderChanges;
use crate::decode::prepared::Prepared;
use crate::profile::{Decoder, DecoderKind, Profile, StreamDecoder};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Decoders that a change draws from.
pub(super) const DRAWN: [Decoder; 3] = [Decoder::Matching, Decoder::Correlated, Decoder::UnionFind];
const STEPS_A_CHANGE: u64 = 2_000;
/// The control thread's ticks, in steps.
const STEPS_A_TICK: u64 = 50;

/// The changes of one seed.
pub(super) struct DecoderEvents {
    changes: DecoderChanges,
    profile: Profile,
    /// All of [`DRAWN`].
    ready: Prepared,
    random: Xoshiro256PlusPlus,
    changed: u64,
}

impl DecoderEvents {
    /// `ready` has the decoders of [`DRAWN`], prepared.
    pub(super) fn new(seed: u64, profile: &Profile, ready: &Prepared, changes: DecoderChanges) -> DecoderEvents {
        let profile = Profile { decoder: DRAWN[0].clone(), streams: Vec::new(), ..profile.clone() };
        let random = Xoshiro256PlusPlus::seed_from_u64(!seed);
        DecoderEvents { changes, profile, ready: ready.clone(), random, changed: 0 }
    }

    /// One step: the control thread's tick, or another decoder of all streams or of one, if drawn.
    pub(super) fn draw(&mut self) {
        let draw = self.random.next_u64();
        if draw.is_multiple_of(STEPS_A_TICK) {
            self.changes.step();
        }
        if !(draw / STEPS_A_TICK).is_multiple_of(STEPS_A_CHANGE) {
            return;
        }
        let decoder = DRAWN[(self.random.next_u64() % DRAWN.len() as u64) as usize].clone();
        let streams = u64::from(self.profile.input.streams);
        match self.random.next_u64() % (streams + 1) {
            stream if stream < streams => {
                let stream = stream as u32;
                self.profile.streams.retain(|named| named.stream != stream);
                self.profile.streams.push(StreamDecoder { stream, decoder });
            }
            _ => (self.profile.decoder, self.profile.streams) = (decoder, Vec::new()),
        }
        let change = self.changes.prepare(&self.profile, Some(&self.ready));
        let begun = change.and_then(|change| self.changes.begin(change));
        self.changed += u64::from(begun.is_ok());
    }

    /// The changes, and the answers by decoders other than the first, by name.
    pub(super) fn counts(&self, board: &Board) -> [(&'static str, u64); 3] {
        let by = |decoder: DecoderKind| {
            let streams = (0..self.profile.input.streams as usize).map(|stream| board.stream_harvest(stream));
            streams.map(|block| board::get(&block.decoded_by[decoder as usize])).sum()
        };
        [
            ("decoder_changed", self.changed),
            ("answered_by_correlated", by(DecoderKind::Correlated)),
            ("answered_by_union_find", by(DecoderKind::UnionFind)),
        ]
    }
}
