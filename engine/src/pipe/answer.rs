//! An answer from harvest, for the answer sink and for the source of the shot; and what gave it.

use crate::profile::{DecoderKind, Rescue};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::{BY_BITS, ErrorCode};

/// Most error models of one run: their numbers travel with the answers.
pub const MODELS_MAX: usize = 1 << (ORIGIN_BITS - MODEL_FROM);
const DECODER_BITS: u32 = 4;
const RESCUED: u32 = 1 << DECODER_BITS;
const MODEL_FROM: u32 = DECODER_BITS + 1;
/// Decoder, rescue and model.
const ORIGIN_BITS: u32 = 16;

/// What gave an answer: a decoder by an error model, whether it rescued the shot; and the answer's gap, if it
/// was asked for. Travels with the answer as one number; 0 stands for none.
///
/// ```text
///  gap, dB + 1 (8 bits; 0: not known) | number of the model (11) | rescued (1) | number of the decoder + 1, or 0 (4)
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy(pub u32);

const _: () = assert!(ORIGIN_BITS + u8::BITS == BY_BITS);

/// Largest gap that is told, decibels; it stands for larger ones, too.
pub const GAP_DB_MAX: u8 = u8::MAX - 1;

impl AnsweredBy {
    /// This decoder by the model of this number.
    ///
    /// # Panics
    /// If the number is [`MODELS_MAX`] or above.
    pub const fn new(decoder: DecoderKind, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        AnsweredBy((model as u32) << MODEL_FROM | (decoder as u32 + 1))
    }

    /// The rescue decoder, or the predecoder alone, by the model of this number.
    ///
    /// # Panics
    /// If the number is [`MODELS_MAX`] or above.
    pub const fn rescue(rescue: Rescue, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        let decoder = match rescue.decoder() {
            Some(decoder) => decoder as u32 + 1,
            None => 0,
        };
        AnsweredBy((model as u32) << MODEL_FROM | RESCUED | decoder)
    }

    /// Whether the rescue decoder gave it, because the shot's own decoder could not by the deadline.
    pub const fn is_rescued(self) -> bool {
        self.0 & RESCUED != 0
    }

    /// Number of the model.
    pub const fn model(self) -> u16 {
        (self.0 as u16) >> MODEL_FROM
    }

    /// The same with a gap in natural units, the logarithm of how much likelier the answer's class is
    /// than the best other one.
    #[must_use]
    pub fn with_gap(self, gap: Option<f64>) -> AnsweredBy {
        let Some(gap) = gap else { return self };
        AnsweredBy(self.origin().0 | (u32::from(gap_db(gap)) + 1) << ORIGIN_BITS)
    }

    /// The gap, decibels, rounded down and at most 254; `None`: it was not asked for.
    pub const fn gap_db(self) -> Option<u8> {
        ((self.0 >> ORIGIN_BITS) as u8).checked_sub(1)
    }

    /// The same by the model of this number.
    ///
    /// # Panics
    /// If the number is [`MODELS_MAX`] or above.
    #[must_use]
    pub const fn of_model(self, model: u16) -> AnsweredBy {
        assert!((model as usize) < MODELS_MAX);
        let models = (MODELS_MAX as u32 - 1) << MODEL_FROM;
        AnsweredBy(self.0 & !models | (model as u32) << MODEL_FROM)
    }

    /// The same without the gap.
    pub const fn origin(self) -> AnsweredBy {
        AnsweredBy(self.0 & ((1 << ORIGIN_BITS) - 1))
    }

    /// The decoder; `None`: no decoder gave the answer, or the predecoder alone did.
    pub fn decoder(self) -> Option<DecoderKind> {
        let number = self.0 & ((1 << DECODER_BITS) - 1);
        DecoderKind::ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

impl AnsweredBy {
    /// Name of what gave it, as a command line and JSON spell it.
    pub fn name(self) -> Option<&'static str> {
        let alone = || self.is_rescued().then_some("predecoder");
        self.decoder().map(DecoderKind::name).or_else(alone)
    }
}

/// A gap in natural units as decibels, rounded down, 0 to [`GAP_DB_MAX`].
pub fn gap_db(gap: f64) -> u8 {
    (gap * 10.0 / std::f64::consts::LN_10).clamp(0.0, f64::from(GAP_DB_MAX)) as u8
}

/// The answer to one shot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Whether its gap is below the run's bound: it is not to be trusted.
    pub abstained: bool,
    /// From scheduled arrival to harvest, in nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables; zero for an error.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}

#[cfg(test)]
mod tests {
    use super::{AnsweredBy, GAP_DB_MAX, MODELS_MAX};
    use crate::profile::DecoderKind;

    #[test]
    fn decoder_model_and_gap_travel_together() {
        let by = AnsweredBy::new(DecoderKind::Lookup, MODELS_MAX as u16 - 1);
        assert_eq!((by.gap_db(), by.with_gap(None)), (None, by));
        // Ten decibels are ten times as likely.
        for (nats, db) in
            [(0.0, 0), (-3.0, 0), (10f64.ln(), 10), (10.9f64.ln(), 10), (1e9, GAP_DB_MAX), (f64::INFINITY, GAP_DB_MAX)]
        {
            let told = by.with_gap(Some(nats + 1e-9));
            assert_eq!((told.gap_db(), told.origin()), (Some(db), by), "{nats}");
            assert_eq!((told.model(), told.decoder()), (MODELS_MAX as u16 - 1, Some(DecoderKind::Lookup)));
            let other = told.of_model(5);
            assert_eq!((other.model(), other.of_model(told.model())), (5, told));
        }
    }
}
