//! An answer from harvest, for the answer sink and for the source of the shot; and what gave it.

use crate::profile::Decoder;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;

/// What gave an answer: a decoder. Travels with the answer as one number; 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy(pub u16);

impl AnsweredBy {
    /// This decoder.
    #[must_use]
    pub const fn new(decoder: Decoder) -> AnsweredBy {
        AnsweredBy(decoder as u16 + 1)
    }

    /// The decoder; `None`: no decoder gave the answer.
    #[must_use]
    pub fn decoder(self) -> Option<Decoder> {
        Decoder::ALL.get(usize::from(self.0).checked_sub(1)?).copied()
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
