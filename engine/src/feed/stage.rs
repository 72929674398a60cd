//! The stage between a cold reader and a feed: a buffer of shots, passed through two rings.
//!
//! Owns the buffers. The reader fills a free buffer and passes its number; the feed empties it and
//! passes it back. Bounds: [`STAGE_SHOTS`]; a reader without a free buffer waits on its own, cold
//! thread. R1 of each ring orders the words.

use pinwheel_edge::ring::spsc::{self, Consumer, Producer};
use pinwheel_edge::sync::{DataWords, read_words, write_words};
use std::sync::Arc;

/// Capacity of a stage in shots.
pub const STAGE_SHOTS: usize = 4096;
const END: u32 = u32::MAX;
const BROKEN: u32 = u32::MAX - 1;

/// The receiving end, owned by the feed.
pub struct StageEnd {
    words: Arc<DataWords>,
    full: Consumer<u32>,
    free: Producer<u32>,
    ended: Option<Staged>,
}

/// The sending end, owned by the reader.
pub struct StageFill {
    words: Arc<DataWords>,
    full: Producer<u32>,
    free: Consumer<u32>,
}

/// Result of taking a shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// A shot was copied.
    Shot,
    /// No shot is available yet.
    Empty,
    /// The input has ended.
    End,
    /// The input failed.
    Broken,
}

/// How the reader's input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The reader reached the end.
    End,
    /// The reader failed.
    Broken,
}

/// A stage for shots of `detector_words` words.
pub fn stage(detector_words: usize) -> (StageFill, StageEnd) {
    let words = Arc::new(DataWords::new(STAGE_SHOTS, detector_words));
    // One entry more than shots, for the end marker.
    let (full, full_end) = spsc::channel(STAGE_SHOTS + 1);
    let (mut free_end, free) = spsc::channel(STAGE_SHOTS);
    for number in 0..STAGE_SHOTS as u32 {
        assert!(free_end.push(number).is_ok(), "the free ring holds every buffer");
    }
    (
        StageFill { words: Arc::clone(&words), full, free },
        StageEnd { words, full: full_end, free: free_end, ended: None },
    )
}

impl StageFill {
    /// Offers a shot; `false` if no buffer is free yet.
    pub fn offer(&mut self, shot: &[u64]) -> bool {
        let Some(number) = self.free.pop() else { return false };
        write_words(self.words.record(number as usize), shot);
        assert!(self.full.push(number).is_ok(), "the full ring holds every buffer");
        true
    }

    /// Ends the input.
    pub fn end(mut self, ending: Ending) {
        let marker = if ending == Ending::End { END } else { BROKEN };
        assert!(self.full.push(marker).is_ok(), "the full ring has room for the end marker");
    }
}

impl StageEnd {
    /// Shots in the stage, or its end; all ones if it is full: its reader may have more.
    pub(super) fn available(&self) -> u64 {
        let depth = self.full.depth();
        if depth < STAGE_SHOTS as u64 { depth } else { u64::MAX }
    }

    /// Takes and copies the next shot.
    pub fn take(&mut self, shot: &mut [u64]) -> Staged {
        if let Some(ended) = self.ended {
            return ended;
        }
        match self.full.pop() {
            None => Staged::Empty,
            Some(END) => *self.ended.insert(Staged::End),
            Some(BROKEN) => *self.ended.insert(Staged::Broken),
            Some(number) => {
                read_words(self.words.record(number as usize), shot);
                assert!(self.free.push(number).is_ok(), "the free ring holds every buffer");
                Staged::Shot
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, STAGE_SHOTS, Staged, stage};

    #[test]
    fn a_full_stage_refuses_and_an_end_comes_after_the_last_shot() {
        let (mut fill, mut end) = stage(2);
        let mut shot = [0; 2];
        assert_eq!(end.take(&mut shot), Staged::Empty);
        for n in 0..STAGE_SHOTS as u64 {
            assert!(fill.offer(&[n, !n]));
        }
        assert!(!fill.offer(&[0, 0]));
        fill.end(Ending::Broken);
        for n in 0..STAGE_SHOTS as u64 {
            assert_eq!(end.take(&mut shot), Staged::Shot);
            assert_eq!(shot, [n, !n]);
        }
        assert_eq!(end.take(&mut shot), Staged::Broken);
        assert_eq!(end.take(&mut shot), Staged::Broken);
    }
}
