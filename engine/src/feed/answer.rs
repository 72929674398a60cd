//! An answer as harvest passes it on: to the sink of answers, and to the source that the shot came from.

use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Stream.
    pub stream: u32,
    /// The engine's own sequence number within the stream: one after another, from 0.
    pub sequence: u64,
    /// Who gets it, and under which sequence number it was sent.
    pub reply_to: ReplyTo,
    /// The error, if it is one.
    pub error: Option<ErrorCode>,
    /// From scheduled arrival to harvest, nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables; zero in an error.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}
