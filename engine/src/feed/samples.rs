//! Copies of shots for a thread that no shot waits for.
//!
//! Owns [`BLOCKS`] blocks of [`SHOTS`] shots, in the hands of the feed or of the reader. The feed fills a
//! block and hands it over; while the reader has all of them, shots are left out. So at a high rate
//! the reader sees stretches of the shots. Never allocates after construction, never waits. Edges:
//! the rings' R1 and R2 order every access.

use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use pinwheel_edge::sync::{DataWords, read_words, write_words};
use std::sync::Arc;

/// Shots of a block.
const SHOTS: usize = 256;
/// Blocks.
const BLOCKS: usize = 8;

/// A block with its number of shots.
#[derive(Clone, Copy)]
struct Filled {
    block: u32,
    shots: u32,
}

/// The feed's end.
pub struct ShotSamples {
    /// By block and place: the stream, then the detectors.
    shots: Arc<DataWords>,
    filled: Producer<Filled>,
    empty: Consumer<u32>,
    now: Option<Filled>,
}

/// The reader's end.
pub struct SampleReader {
    shots: Arc<DataWords>,
    filled: Consumer<Filled>,
    empty: Producer<u32>,
    detectors: Vec<u64>,
}

/// Both ends, for shots of so many words.
#[must_use]
pub fn samples(detector_words: usize) -> (ShotSamples, SampleReader) {
    let shots = Arc::new(DataWords::new(BLOCKS * SHOTS, 1 + detector_words));
    let ((filled, takes), (mut gives, empty)) = (channel(BLOCKS), channel(BLOCKS));
    for block in 0..BLOCKS as u32 {
        assert!(gives.push(block).is_ok(), "the ring holds every block");
    }
    let feed = ShotSamples { shots: Arc::clone(&shots), filled, empty, now: None };
    (feed, SampleReader { shots, filled: takes, empty: gives, detectors: vec![0; detector_words] })
}

impl ShotSamples {
    /// Copies a shot, if there is room.
    #[inline]
    pub(super) fn offer(&mut self, stream: u32, detectors: &[u64]) {
        if self.now.is_none() {
            self.now = self.empty.pop().map(|block| Filled { block, shots: 0 });
        }
        let Some(now) = &mut self.now else { return };
        let record = self.shots.record(now.block as usize * SHOTS + now.shots as usize);
        record[0].store(u64::from(stream));
        write_words(&record[1..], detectors);
        now.shots += 1;
        if now.shots as usize == SHOTS {
            self.hand_over();
        }
    }

    /// Hands the shots over that were copied.
    pub(super) fn hand_over(&mut self) {
        if let Some(now) = self.now.take_if(|now| now.shots > 0) {
            assert!(self.filled.push(now).is_ok(), "the ring holds every block");
        }
    }
}

impl SampleReader {
    /// Takes the shots of a block, each with its stream. Returns whether there was one.
    pub fn read(&mut self, mut take: impl FnMut(u32, &[u64])) -> bool {
        let Some(Filled { block, shots }) = self.filled.pop() else { return false };
        for place in 0..shots as usize {
            let record = self.shots.record(block as usize * SHOTS + place);
            read_words(&record[1..=self.detectors.len()], &mut self.detectors);
            take(record[0].load() as u32, &self.detectors);
        }
        assert!(self.empty.push(block).is_ok(), "the ring holds every block");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS, SHOTS, samples};

    #[test]
    fn shots_come_in_order_until_all_blocks_are_full() {
        let (mut feed, mut reader) = samples(2);
        let room = (BLOCKS * SHOTS) as u64;
        (0..room + 10).for_each(|shot| feed.offer(shot as u32 % 3, &[shot, !shot]));
        let mut next = 0;
        let mut check = |stream: u32, detectors: &[u64]| {
            assert_eq!((stream, detectors), (next as u32 % 3, &[next, !next][..]));
            next += 1;
        };
        while reader.read(&mut check) {}
        assert_eq!(next, room);
        feed.offer(7, &[1, 2]);
        assert!(!reader.read(|_, _| ()), "a block that is not full is handed over when asked");
        feed.hand_over();
        feed.hand_over();
        let mut seen = Vec::new();
        assert!(reader.read(|stream, detectors| seen.push((stream, detectors.to_vec()))));
        assert!(!reader.read(|_, _| ()));
        assert_eq!(seen, [(7, vec![1, 2])]);
    }
}
