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
    /// The graph's window was full and the profile wants no shot to wait for it.
    WindowFull = 11,
    /// The stream's state was not this silo's to write by the shot's total deadline.
    PageAway = 12,
    /// It came by rounds, and its source gave up on the rest.
    RoundsMissing = 13,
    /// It arrived, found no slot, and waited for longer than the profile lets it.
    OverflowDeadline = 14,
    /// It was the oldest of too many that waited for a slot.
    DroppedOldest = 15,
    /// It arrived when no slot was free.
    DroppedNew = 16,
    /// The silo that had it died.
    SiloDied = 17,
    /// A decoder plugin reported an error.
    PluginFailed = 18,
    /// A decoder plugin refused the shot as an invalid argument.
    PluginArgument = 19,
    /// A decoder plugin panicked.
    PluginPanicked = 20,
    /// A decoder plugin said that it had panicked before.
    PluginPoisoned = 21,
    /// A decoder plugin asked for room for more mechanisms than the model has.
    PluginNoRoom = 22,
    /// A decoder plugin wrote past the room for its answer, or said that it did.
    PluginPastRoom = 23,
    /// A decoder plugin named a mechanism that the model does not have.
    PluginNoMechanism = 24,
    /// The mechanisms that a decoder plugin named do not explain the syndrome.
    PluginUnexplained = 25,
    /// A decoder plugin did not answer within its time limit.
    PluginLate = 26,
    /// The process of a decoder plugin ended.
    PluginGone = 27,
    /// No decoder could answer it by its deadline.
    DeadlineTooNear = 28,
}

impl ErrorCode {
    /// All codes, ascending.
    pub const ALL: [ErrorCode; 28] = [
        ErrorCode::LaunchFailed,
        ErrorCode::LaunchUnknown,
        ErrorCode::BadAddress,
        ErrorCode::UnknownStream,
        ErrorCode::LaunchDeadline,
        ErrorCode::ShotDeadline,
        ErrorCode::DeviceLost,
        ErrorCode::DecoderPanic,
        ErrorCode::Drained,
        ErrorCode::Unmatchable,
        ErrorCode::WindowFull,
        ErrorCode::PageAway,
        ErrorCode::RoundsMissing,
        ErrorCode::OverflowDeadline,
        ErrorCode::DroppedOldest,
        ErrorCode::DroppedNew,
        ErrorCode::SiloDied,
        ErrorCode::PluginFailed,
        ErrorCode::PluginArgument,
        ErrorCode::PluginPanicked,
        ErrorCode::PluginPoisoned,
        ErrorCode::PluginNoRoom,
        ErrorCode::PluginPastRoom,
        ErrorCode::PluginNoMechanism,
        ErrorCode::PluginUnexplained,
        ErrorCode::PluginLate,
        ErrorCode::PluginGone,
        ErrorCode::DeadlineTooNear,
    ];

    /// Name as answer files and reports spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::LaunchFailed => "launch_failed",
            ErrorCode::LaunchUnknown => "launch_unknown",
            ErrorCode::BadAddress => "bad_address",
            ErrorCode::UnknownStream => "unknown_stream",
            ErrorCode::LaunchDeadline => "launch_deadline",
            ErrorCode::ShotDeadline => "shot_deadline",
            ErrorCode::DeviceLost => "device_lost",
            ErrorCode::DecoderPanic => "decoder_panic",
            ErrorCode::Drained => "drained",
            ErrorCode::Unmatchable => "unmatchable",
            ErrorCode::WindowFull => "window_full",
            ErrorCode::PageAway => "page_away",
            ErrorCode::RoundsMissing => "rounds_missing",
            ErrorCode::OverflowDeadline => "overflow_deadline",
            ErrorCode::DroppedOldest => "dropped_oldest",
            ErrorCode::DroppedNew => "dropped_new",
            ErrorCode::SiloDied => "silo_died",
            ErrorCode::PluginFailed => "plugin_failed",
            ErrorCode::PluginArgument => "plugin_argument",
            ErrorCode::PluginPanicked => "plugin_panicked",
            ErrorCode::PluginPoisoned => "plugin_poisoned",
            ErrorCode::PluginNoRoom => "plugin_no_room",
            ErrorCode::PluginPastRoom => "plugin_past_room",
            ErrorCode::PluginNoMechanism => "plugin_no_mechanism",
            ErrorCode::PluginUnexplained => "plugin_unexplained",
            ErrorCode::PluginLate => "plugin_late",
            ErrorCode::PluginGone => "plugin_gone",
            ErrorCode::DeadlineTooNear => "deadline_too_near",
        }
    }

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
