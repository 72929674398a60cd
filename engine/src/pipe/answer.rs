//! An answer from harvest, for the answer sink and for the source of the shot; and what gave it.

use crate::profile::{Decoder, Rescue};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;

/// Most error models of one run: their numbers travel with the answers.
pub const MODELS_MAX: usize = 1 << (u16::BITS - MODEL_FROM);
const DECODER_BITS: u32 = 4;
const RESCUED: u16 = 1 << DECODER_BITS;
const MODEL_FROM: u32 = DECODER_BITS + 1;

/// What gave an answer: a decoder by an error model, and whether it rescued the shot. Travels with the
/// answer as one number; 0 stands for none.
///
/// ```text
///  number of the model (11 bits) | rescued (1 bit) | number of the decoder + 1, or 0 (4 bits)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy(pub u16);

impl AnsweredBy {
    /// This decoder by the model of this number.
    #[must_use]
    pub const fn new(decoder: Decoder, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        AnsweredBy(model << MODEL_FROM | (decoder as u16 + 1))
    }

    /// The rescue decoder, or the predecoder alone, by the model of this number.
    #[must_use]
    pub const fn rescue(rescue: Rescue, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        let decoder = match rescue.decoder() {
            Some(decoder) => decoder as u16 + 1,
            None => 0,
        };
        AnsweredBy(model << MODEL_FROM | RESCUED | decoder)
    }

    /// Whether the rescue decoder gave it, because the shot's own decoder could not by the deadline.
    #[must_use]
    pub const fn is_rescued(self) -> bool {
        self.0 & RESCUED != 0
    }

    /// Number of the model.
    #[must_use]
    pub const fn model(self) -> u16 {
        self.0 >> MODEL_FROM
    }

    /// The decoder; `None`: no decoder gave the answer, or the predecoder alone did.
    #[must_use]
    pub fn decoder(self) -> Option<Decoder> {
        let number = self.0 & ((1 << DECODER_BITS) - 1);
        Decoder::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

impl AnsweredBy {
    /// Name of what gave it, as a command line and JSON spell it.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let alone = || self.is_rescued().then_some("predecoder");
        self.decoder().map(Decoder::name).or_else(alone)
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
