//! Fast samples: the words that are recorded a thousand times a second around an alarm.
//!
//! Owns the list of these words, and their encoding. Cold. Bounded by the shape. A fast sample
//! extends the last snapshot before it: all other words are as in that snapshot.

use super::{put_varint, take_varint, unzigzag, zigzag};
use crate::board::image::Image;
use crate::board::{Board, get, set};
use crate::units::Ticks;
use std::sync::atomic::AtomicU64;

/// The words of fast samples, by their indices on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastSet(Vec<usize>);

impl FastSet {
    /// The fast words of `board`: heartbeats, stages and counts of threads, cursors and depths of
    /// rings, states of workers.
    pub fn of(board: &Board) -> FastSet {
        let shape = board.shape();
        let mut places = Vec::new();
        let mut add = |words: &[&AtomicU64]| places.extend(words.iter().map(|word| board.place_of(word)));
        add(&[&board.header().phase]);
        for thread in (0..shape.threads as usize).map(|index| board.thread(index)) {
            add(&[&thread.heartbeat, &thread.frames, &thread.stage, &thread.frames_busy, &thread.items]);
            add(&[&thread.busy_ticks, &thread.yields, &thread.policy_acknowledged, &thread.state]);
        }
        for silo in 0..shape.silos as usize {
            let (feed, dispatch) = (board.feed(silo), board.dispatch(silo));
            let (poll, harvest) = (board.poll(silo), board.harvest(silo));
            add(&[&feed.scheduled, &feed.submitted, &feed.position, &feed.slot_waits]);
            add(&[&dispatch.dispatched, &dispatch.position, &dispatch.launched, &dispatch.worker_waits]);
            add(&[&dispatch.device_state, &poll.completed, &poll.ready_depth, &poll.ready_pushed, &poll.idle_mask]);
            add(&[&harvest.answered, &harvest.position, &harvest.errored, &harvest.late]);
            for decoder in 0..shape.decoders as usize {
                let decode = board.decode(silo, decoder);
                add(&[&decode.decoding, &decode.decoded]);
            }
        }
        places.sort_unstable();
        FastSet(places)
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the words of a sample into a snapshot.
    pub(super) fn apply_sample(&self, image: &mut Image, sample: &[u64]) {
        let words = image.words_mut();
        for (place, value) in self.0.iter().zip(sample) {
            if let Some(word) = words.get_mut(*place) {
                *word = *value;
            }
        }
    }

    /// Writes the words of a sample into a board.
    pub(super) fn show(&self, board: &Board, sample: &[u64]) {
        let words = board.words();
        for (place, value) in self.0.iter().zip(sample) {
            if let Some(word) = words.get(*place) {
                set(word, *value);
            }
        }
    }
}

/// The burst that is being recorded: up to a second of samples.
#[derive(Debug)]
pub(in crate::record) struct Burst {
    at: Ticks,
    last_at: Ticks,
    last: Vec<u64>,
    samples: u64,
    out: Vec<u8>,
}

impl Burst {
    pub(in crate::record) fn begin(at: Ticks, set: &FastSet) -> Burst {
        Burst { at, last_at: at, last: vec![0; set.len()], samples: 0, out: Vec::new() }
    }

    /// The time of its first sample.
    pub(in crate::record) fn at(&self) -> Ticks {
        self.at
    }

    /// Adds a sample of `board`.
    pub(in crate::record) fn sample(&mut self, at: Ticks, board: &Board, set: &FastSet) {
        let words = board.words();
        put_varint(&mut self.out, at.since(self.last_at).0);
        self.last_at = self.last_at.max(at);
        // Only words that changed, then a terminator: most words of most samples do not change.
        let mut next = 0;
        for (index, (last, place)) in self.last.iter_mut().zip(&set.0).enumerate() {
            let now = get(&words[*place]);
            let difference = now.wrapping_sub(*last);
            if difference != 0 {
                put_varint(&mut self.out, (index - next) as u64 + 1);
                put_varint(&mut self.out, zigzag(difference));
                (*last, next) = (now, index + 1);
            }
        }
        put_varint(&mut self.out, 0);
        self.samples += 1;
    }

    /// Its encoded samples.
    pub(in crate::record) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.out.len() + 4);
        put_varint(&mut payload, self.samples);
        payload.extend_from_slice(&self.out);
        payload
    }
}

/// Calls `visit` with the tick and the words of each sample, until `visit` stops it. `None` if the
/// payload is not a burst of this board.
pub(super) fn samples(
    set: &FastSet,
    from: Ticks,
    mut payload: &[u8],
    mut visit: impl FnMut(Ticks, &[u64]) -> Next,
) -> Option<()> {
    let bytes = &mut payload;
    let (mut at, mut words) = (from, vec![0u64; set.len()]);
    for _ in 0..take_varint(bytes)? {
        at = Ticks(at.0.checked_add(take_varint(bytes)?)?);
        let mut index = 0usize;
        loop {
            match take_varint(bytes)? {
                0 => break,
                gap => {
                    index = index.checked_add(usize::try_from(gap - 1).ok()?)?;
                    let word = words.get_mut(index)?;
                    *word = word.wrapping_add(unzigzag(take_varint(bytes)?));
                    index += 1;
                }
            }
        }
        if visit(at, &words) == Next::Stop {
            break;
        }
    }
    Some(())
}

/// Whether `samples` continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Continue.
    Go,
    Stop,
}
