//! The answer word: what `tx` can hold, and the error codes in it.
//!
//! Owns the encoding only. A READY word can equal neither 0 (free), nor IN_FLIGHT, nor an error
//! word, because its top eight bits are a constant of its own.
//!
//! ```text
//!  READY: 0x0A (8 bits) | what gave the answer (24 bits) | generation (32 bits)
//!  error: 0xDEAD (16 bits) | 0 (32 bits) | code (16 bits)
//! ```

/// The slot is free or not yet dispatched.
pub const EMPTY: u64 = 0;
/// Dispatched, not yet answered.
pub const IN_FLIGHT: u64 = 0xEEEE_EEEE_EEEE_EEEE;
const ERROR_PREFIX: u64 = 0xDEAD;
const READY_PREFIX: u64 = 0x0A;
const LOW_32: u64 = (1 << 32) - 1;
/// Bits of what gave an answer.
pub const BY_BITS: u32 = 24;

const _: () = assert!(READY_PREFIX != ERROR_PREFIX >> 8 && READY_PREFIX != IN_FLIGHT >> 56 && READY_PREFIX != 0);

/// Why a shot was answered with an error. The numbers are stable: they stand in answer files and
/// reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum ErrorCode {
    /// The device refused the launch; the graph did not run.
    LaunchFailed = 1,
    /// The launch reported an error although the graph may have run.
    LaunchUnknown = 2,
    /// The slot's payload address lies outside the payload memory or is misaligned.
    BadAddress = 3,
    /// The header names a stream that this silo does not own.
    UnknownStream = 4,
    /// The device did not finish by the launch deadline.
    LaunchDeadline = 5,
    /// The shot was not answered within its total deadline.
    ShotDeadline = 6,
    /// The device was lost and the shot could not go to the CPU.
    DeviceLost = 7,
    /// The decoder panicked on this shot.
    DecoderPanic = 8,
    /// The engine stopped before the shot was answered.
    Drained = 9,
    /// No matching explains the syndrome (a detector fired that the model cannot explain).
    Unmatchable = 10,
    /// The graph's window was full, and by the profile no shot waits for it.
    WindowFull = 11,
    /// The silo did not own the stream's state by the shot's total deadline.
    PageAway = 12,
    /// The shot came by rounds, and its source did not send the rest.
    RoundsMissing = 13,
    /// The shot found no free slot, and waited for one for longer than the profile allows.
    OverflowDeadline = 14,
    /// The shot was the oldest of too many that waited for a slot.
    DroppedOldest = 15,
    /// The shot arrived when no slot was free.
    DroppedNew = 16,
    /// The silo that had the shot failed.
    SiloDied = 17,
    /// A decoder plugin reported an error.
    PluginFailed = 18,
    /// A decoder plugin refused the shot as an invalid argument.
    PluginArgument = 19,
    /// A decoder plugin panicked.
    PluginPanicked = 20,
    /// A decoder plugin reported that it had panicked before.
    PluginPoisoned = 21,
    /// A decoder plugin asked for room for more mechanisms than the model has.
    PluginNoRoom = 22,
    /// A decoder plugin wrote past the room for its answer, or reported that it did.
    PluginPastRoom = 23,
    /// A decoder plugin named a mechanism that the model does not have.
    PluginNoMechanism = 24,
    /// The mechanisms that a decoder plugin named do not explain the syndrome.
    PluginUnexplained = 25,
    /// A decoder plugin did not answer within its time limit.
    PluginLate = 26,
    /// The process of a decoder plugin ended.
    PluginGone = 27,
    /// No decoder could answer the shot by its deadline.
    DeadlineTooNear = 28,
}

crate::names! { ErrorCode:
    LaunchFailed "launch_failed",
    LaunchUnknown "launch_unknown",
    BadAddress "bad_address",
    UnknownStream "unknown_stream",
    LaunchDeadline "launch_deadline",
    ShotDeadline "shot_deadline",
    DeviceLost "device_lost",
    DecoderPanic "decoder_panic",
    Drained "drained",
    Unmatchable "unmatchable",
    WindowFull "window_full",
    PageAway "page_away",
    RoundsMissing "rounds_missing",
    OverflowDeadline "overflow_deadline",
    DroppedOldest "dropped_oldest",
    DroppedNew "dropped_new",
    SiloDied "silo_died",
    PluginFailed "plugin_failed",
    PluginArgument "plugin_argument",
    PluginPanicked "plugin_panicked",
    PluginPoisoned "plugin_poisoned",
    PluginNoRoom "plugin_no_room",
    PluginPastRoom "plugin_past_room",
    PluginNoMechanism "plugin_no_mechanism",
    PluginUnexplained "plugin_unexplained",
    PluginLate "plugin_late",
    PluginGone "plugin_gone",
    DeadlineTooNear "deadline_too_near",
}

impl ErrorCode {
    /// The code with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|code| *code as u16 == number)
    }
}

/// The word that answers generation `generation`; `by`: what gave the answer, in the numbers of
/// whoever decodes, below 2²⁴.
#[must_use]
#[inline(always)]
pub const fn ready(generation: u64, by: u32) -> u64 {
    debug_assert!(by >> BY_BITS == 0);
    READY_PREFIX << 56 | (by as u64) << 32 | generation & LOW_32
}

/// What gave the answer of a READY word.
#[must_use]
#[inline(always)]
pub const fn answered_by(word: u64) -> u32 {
    (word >> 32) as u32 & ((1 << BY_BITS) - 1)
}

/// The word that answers with `code`.
#[must_use]
pub const fn error(code: ErrorCode) -> u64 {
    ERROR_PREFIX << 48 | code as u64
}

/// The error in `word`, if it is an error word. An unknown number reads as `DecoderPanic`, which
/// nothing writes that way: words come from [`error`] only.
#[must_use]
pub fn error_in(word: u64) -> Option<ErrorCode> {
    (word >> 48 == ERROR_PREFIX)
        .then(|| ErrorCode::from_number((word & 0xffff) as u16).unwrap_or(ErrorCode::DecoderPanic))
}

#[cfg(test)]
mod tests {
    use super::{EMPTY, ErrorCode, IN_FLIGHT, answered_by, error, error_in, ready};

    #[test]
    fn an_answer_word_is_never_a_sentinel_nor_an_error() {
        for generation in [0, 1, super::LOW_32, u64::MAX, 0xEEEE_EEEE_EEEE_EEEE, 0xDEAD_0000_0000_0001] {
            for by in [0, 1, 0xEE_EEEE, 0xDE_AD00, 0xFF_FFFF] {
                let word = ready(generation, by);
                assert!(word != EMPTY && word != IN_FLIGHT && error_in(word).is_none());
                assert_eq!(answered_by(word), by);
            }
        }
    }

    #[test]
    fn every_error_word_carries_its_code() {
        for code in ErrorCode::ALL {
            assert_eq!(error_in(error(code)), Some(code));
            assert!(error(code) != IN_FLIGHT && error(code) != EMPTY);
        }
    }
}
