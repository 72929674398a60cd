//! An answer from harvest, for the answer sink and for the source of the shot.

use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::slot::word::ErrorCode;

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
    /// From scheduled arrival to harvest, in nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables; zero for an error.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}
