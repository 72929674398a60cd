//! Copies of answered shots, with their answers, for a thread that no shot waits for.
//!
//! Owns the choice of the shots, and the words of a copy. Harvest writes it while it holds the slot, so
//! that shot, truth and answer belong together without a search. Bounds: [`SHOTS`] copies that the reader
//! has not read; further ones are left out and counted. Never waits.
//!
//! ```text
//!  stream | error << 32, sequence, sender's sequence, latency, truth known | what gave the answer << 32,
//!  observables, true observables, detectors
//! ```

use crate::pipe::AnsweredBy;
use crate::pipe::samples::{SampleReader, SampleRoom, SampleWriter, samples};
use pinwheel_edge::slot::table::{Answered, HarvestEnd, ShotHeader};

/// Copies that wait for the reader, at most. Each is handed over at once, because few shots are copied.
const SHOTS: usize = 512;
/// Words before the observables.
const HEADER_WORDS: usize = 5;

/// Whether this shot is copied, where one in `n` is: `below` is 2⁶⁴ / `n`. The same shots in each run.
#[inline]
pub fn is_sampled(stream: u32, sequence: u64, below: u64) -> bool {
    // The finalizer of SplitMix64 (G. L. Steele et al., OOPSLA 2014): each bit depends on all bits.
    let mut hash = (u64::from(stream) << 40).wrapping_add(sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)) <= below
}

/// Harvest's end.
pub struct AnswerSamples {
    writer: SampleWriter,
    observable_words: usize,
}

/// The reader's end.
pub struct AnswerSampleReader {
    reader: SampleReader,
    observable_words: usize,
}

/// A copied shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledShot<'a> {
    /// Its stream.
    pub stream: u32,
    /// Its sequence number in the stream.
    pub sequence: u64,
    /// The sequence number that its sender gave it; otherwise the same.
    pub sent_as: u64,
    /// What gave the answer; without meaning for an error.
    pub by: AnsweredBy,
    /// The code of the error that it was answered with; 0: none. An error has no detectors.
    pub error: u16,
    /// From scheduled arrival to harvest, nanoseconds.
    pub latency_ns: u64,
    /// Predicted observables.
    pub observables: &'a [u64],
    /// True observables, where they are known.
    pub truth: Option<&'a [u64]>,
    /// Its detectors.
    pub detectors: &'a [u64],
}

/// Both ends, for shots of these widths in words.
pub fn answer_samples(detector_words: usize, observable_words: usize) -> (AnswerSamples, AnswerSampleReader) {
    let words = HEADER_WORDS + 2 * observable_words + detector_words;
    let (writer, reader) = samples(SampleRoom { blocks: SHOTS, records: 1, words });
    (AnswerSamples { writer, observable_words }, AnswerSampleReader { reader, observable_words })
}

impl AnswerSamples {
    /// Copies the shot in an answered slot. Returns whether there was room.
    pub(super) fn offer(&mut self, end: &HarvestEnd, answered: &Answered, latency_ns: u64) -> bool {
        let Answered { header: ShotHeader { stream, sequence, reply_to, .. }, error, by, has_truth, .. } = *answered;
        let error = error.map_or(0, |error| error as u16);
        let first = u64::from(stream) | u64::from(error) << 32;
        let last = u64::from(has_truth) | u64::from(by) << 32;
        let words = self.observable_words;
        self.writer.offer(|record| {
            let (header, rest) = record.split_at(HEADER_WORDS);
            let (observables, rest) = rest.split_at(words);
            let (truth, detectors) = rest.split_at(words);
            let values = [first, sequence, reply_to.sequence, latency_ns, last];
            header.iter().zip(values).for_each(|(word, value)| word.store(value));
            if error == 0 {
                let pairs = observables.iter().zip(end.observables(answered));
                let pairs = pairs.chain(truth.iter().zip(end.truth(answered)));
                let pairs = pairs.chain(detectors.iter().zip(end.detectors(answered)));
                pairs.for_each(|(to, from)| to.store(from.load()));
            }
        })
    }
}

impl AnswerSampleReader {
    /// Takes the oldest copy. Returns whether there was one.
    pub fn read(&mut self, mut take: impl FnMut(SampledShot<'_>)) -> bool {
        let words = self.observable_words;
        self.reader.read(|record| {
            let (header, rest) = record.split_at(HEADER_WORDS);
            let (observables, rest) = rest.split_at(words);
            let (truth, detectors) = rest.split_at(words);
            take(SampledShot {
                stream: header[0] as u32,
                sequence: header[1],
                sent_as: header[2],
                by: AnsweredBy((header[4] >> 32) as u32),
                error: (header[0] >> 32) as u16,
                latency_ns: header[3],
                observables,
                truth: (header[4] & 1 != 0).then_some(truth),
                detectors,
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_sampled;

    #[test]
    fn one_shot_in_so_many_is_sampled_in_every_stream() {
        for one_in in [1u64, 2, 100, 1_000] {
            for stream in [0, 1, 17, 1_023] {
                let taken: Vec<u64> =
                    (0..100_000).filter(|sequence| is_sampled(stream, *sequence, u64::MAX / one_in)).collect();
                let expected = 100_000.0 / one_in as f64;
                let spread = 5.0 * expected.sqrt();
                assert!((taken.len() as f64 - expected).abs() <= spread, "{} of {expected}", taken.len());
                let rarer = |sequence: &u64| is_sampled(stream, *sequence, u64::MAX / (10 * one_in));
                assert!((0..100_000).filter(rarer).all(|sequence| taken.binary_search(&sequence).is_ok()));
            }
        }
        let both = (0..10_000u64).filter(|sequence| is_sampled(0, *sequence, u64::MAX / 10));
        let both = both.filter(|sequence| is_sampled(1, *sequence, u64::MAX / 10)).count();
        assert!((50..=160).contains(&both), "streams are sampled independently: {both} of about 100");
    }
}
