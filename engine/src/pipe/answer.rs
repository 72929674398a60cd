//! An answer from harvest, for the answer sink and for the source of the shot; and what gave it.

use crate::profile::DecoderKind;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;

/// Most error models of one run: their numbers travel with the answers.
pub const MODELS_MAX: usize = 1 << (u16::BITS - DECODER_BITS);
const DECODER_BITS: u32 = 4;

/// What gave an answer: a decoder by an error model. Travels with the answer as one number; 0 stands
/// for none.
///
/// ```text
///  number of the model (12 bits) | number of the decoder + 1 (4 bits)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy(pub u16);

impl AnsweredBy {
    /// This decoder by the model of this number.
    #[must_use]
    pub const fn new(decoder: DecoderKind, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        AnsweredBy(model << DECODER_BITS | (decoder as u16 + 1))
    }

    /// Number of the model.
    #[must_use]
    pub const fn model(self) -> u16 {
        self.0 >> DECODER_BITS
    }

    /// The decoder; `None`: no decoder gave the answer.
    #[must_use]
    pub fn decoder(self) -> Option<DecoderKind> {
        let number = self.0 & ((1 << DECODER_BITS) - 1);
        DecoderKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The answer to one shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Stream.
    pub stream: u32,
    /// The engine's own sequence number within the stream: consecutive, from 0.
    pub sequence: u64,
    /// Recipient, and the sender's sequence number.
    pub reply_to: ReplyTo,
    /// The error code, if decoding failed.
    pub error: Option<ErrorCode>,
    /// What gave it; without meaning for an error.
    pub by: AnsweredBy,
    /// From scheduled arrival to harvest, in nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables; zero for an error.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}
