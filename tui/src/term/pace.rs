//! The pace of frames.
//!
//! At most one frame per [`FRAME_NS`] on average, a few at once after a pause, fewer over a slow
//! link. Owns three numbers; on the console thread; reads no clock.
//!
//! # Why a few frames may come at once
//!
//! With a fixed interval, a key pressed just after a frame would wait the whole interval: a third
//! of the time allowed for a response. Nobody presses thirty keys a second for long.
//!
//! # Why a link counts as slow from its second slow frame
//!
//! The writing thread may lose its core in the middle of a write, which does not show a slow
//! terminal. A slow link delays every frame.

use super::screen::FrameSent;

/// Time between two frames, on average.
pub const FRAME_NS: u64 = 33_000_000;
/// Frames that may come at once.
const AT_ONCE: u64 = 4;
/// After two slow frames the pause is this many times the time of the faster of the two.
const SLOW_LINK_PAUSE: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Time at which all frames so far would have been drawn at one per [`FRAME_NS`].
    paid_ns: u64,
    /// End of the pause after slow frames.
    pause_ns: u64,
    /// How long the last frame took to write.
    took_ns: u64,
}

impl Pace {
    /// Earliest time of the next frame.
    pub fn due_ns(&self) -> u64 {
        self.paid_ns.saturating_sub((AT_ONCE - 1) * FRAME_NS).max(self.pause_ns)
    }

    /// Accounts for a frame drawn.
    pub fn drawn(&mut self, now_ns: u64) {
        self.paid_ns = self.paid_ns.max(now_ns) + FRAME_NS;
    }

    /// Accounts for a frame that has gone out.
    pub fn sent(&mut self, FrameSent { took_ns, ended_ns }: FrameSent) {
        let slow_ns = took_ns.min(std::mem::replace(&mut self.took_ns, took_ns));
        self.pause_ns = ended_ns + slow_ns * SLOW_LINK_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, FRAME_NS, FrameSent, Pace};

    /// Frames drawn in that time if every frame has content and takes no time.
    fn drawn(from_ns: u64, to_ns: u64, pace: &mut Pace) -> u64 {
        let mut frames = 0;
        for now_ns in (from_ns..to_ns).step_by(1_000_000) {
            if now_ns >= pace.due_ns() {
                pace.drawn(now_ns);
                frames += 1;
            }
        }
        frames
    }

    #[test]
    fn a_second_has_thirty_frames_and_a_pause_earns_a_few_at_once() {
        let mut pace = Pace::default();
        let second = 1_000_000_000;
        assert!(drawn(0, second, &mut pace) <= 30 + AT_ONCE);
        assert!((29..=31).contains(&drawn(second, 2 * second, &mut pace)));
        // A hundred milliseconds after the last frame at least three may come at once, and never
        // more than four.
        let later = 2 * second + 100_000_000;
        assert!((3..=AT_ONCE).contains(&drawn(later, later + FRAME_NS / 2, &mut pace)));
        assert_eq!(drawn(9 * second, 9 * second + FRAME_NS / 2, &mut pace), AT_ONCE);
    }

    #[test]
    fn one_slow_frame_is_an_accident_and_two_are_a_slow_link() {
        let mut pace = Pace::default();
        pace.sent(FrameSent { took_ns: 20_000_000, ended_ns: 100_000_000 });
        assert_eq!(pace.due_ns(), 100_000_000);
        pace.sent(FrameSent { took_ns: 30_000_000, ended_ns: 200_000_000 });
        assert_eq!(pace.due_ns(), 280_000_000);
        pace.sent(FrameSent { took_ns: 50_000, ended_ns: 300_000_000 });
        assert_eq!(pace.due_ns(), 300_200_000);
    }
}
