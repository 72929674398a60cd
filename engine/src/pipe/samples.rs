//! Copies of shots for a thread that no shot waits for.
//!
//! Owns blocks of records, in the hands of a hot thread or of the reader. The hot thread fills a block
//! and hands it over; while the reader has all of them, records are left out. So at a high rate the
//! reader sees a part of the records. Never allocates after construction, never waits. Edges: the rings'
//! R1 and R2 order every access.

use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use pinwheel_edge::sync::{DataWord, DataWords, read_words};
use std::sync::Arc;

/// Sizes of the copies' memory.
#[derive(Clone, Copy, Debug)]
pub struct SampleRoom {
    /// Blocks.
    pub blocks: usize,
    /// Records of a block.
    pub records: usize,
    /// Words of a record.
    pub words: usize,
}

/// A block with its number of records.
#[derive(Clone, Copy)]
struct Filled {
    block: u32,
    records: u32,
}

/// The hot thread's end.
pub struct SampleWriter {
    room: SampleRoom,
    words: Arc<DataWords>,
    filled: Producer<Filled>,
    empty: Consumer<u32>,
    now: Option<Filled>,
}

/// The reader's end.
pub struct SampleReader {
    room: SampleRoom,
    words: Arc<DataWords>,
    filled: Consumer<Filled>,
    empty: Producer<u32>,
    record: Vec<u64>,
}

/// Both ends.
pub fn samples(room: SampleRoom) -> (SampleWriter, SampleReader) {
    let words = Arc::new(DataWords::new(room.blocks * room.records, room.words));
    let ((filled, takes), (mut gives, empty)) = (channel(room.blocks), channel(room.blocks));
    for block in 0..room.blocks as u32 {
        assert!(gives.push(block).is_ok(), "the ring holds every block");
    }
    let writer = SampleWriter { room, words: Arc::clone(&words), filled, empty, now: None };
    (writer, SampleReader { room, words, filled: takes, empty: gives, record: vec![0; room.words] })
}

impl SampleWriter {
    /// Lets `write` write the words of a record, if there is room. Returns whether there was.
    #[inline]
    pub fn offer(&mut self, write: impl FnOnce(&[DataWord])) -> bool {
        if self.now.is_none() {
            self.now = self.empty.pop().map(|block| Filled { block, records: 0 });
        }
        let Some(now) = &mut self.now else { return false };
        write(self.words.record(now.block as usize * self.room.records + now.records as usize));
        now.records += 1;
        if now.records as usize == self.room.records {
            self.hand_over();
        }
        true
    }

    /// Hands the records over that were written.
    pub fn hand_over(&mut self) {
        if let Some(now) = self.now.take_if(|now| now.records > 0) {
            assert!(self.filled.push(now).is_ok(), "the ring holds every block");
        }
    }
}

impl SampleReader {
    /// Takes the records of a block. Returns whether there was one.
    pub fn read(&mut self, mut take: impl FnMut(&[u64])) -> bool {
        let Some(Filled { block, records }) = self.filled.pop() else { return false };
        for place in 0..records as usize {
            read_words(self.words.record(block as usize * self.room.records + place), &mut self.record);
            take(&self.record);
        }
        assert!(self.empty.push(block).is_ok(), "the ring holds every block");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{SampleRoom, samples};
    use pinwheel_edge::sync::write_words;

    #[test]
    fn records_come_in_order_until_all_blocks_are_full() {
        let room = SampleRoom { blocks: 8, records: 16, words: 2 };
        let (mut writer, mut reader) = samples(room);
        let most = (room.blocks * room.records) as u64;
        for record in 0..most + 10 {
            assert_eq!(writer.offer(|words| write_words(words, &[record, !record])), record < most);
        }
        let mut next = 0;
        let mut check = |record: &[u64]| {
            assert_eq!(record, [next, !next]);
            next += 1;
        };
        while reader.read(&mut check) {}
        assert_eq!(next, most);
        assert!(writer.offer(|words| write_words(words, &[1, 2])));
        assert!(!reader.read(|_| ()), "a block that is not full is handed over when asked");
        writer.hand_over();
        writer.hand_over();
        let mut seen = Vec::new();
        assert!(reader.read(|record| seen.push(record.to_vec())));
        assert!(!reader.read(|_| ()));
        assert_eq!(seen, [vec![1, 2]]);
    }
}
