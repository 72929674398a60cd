//! What a batch of answers adds to the board.
//!
//! Owns the counts and the unpublished parts of the latency histograms of one silo and its streams,
//! until the end of the call that took the answers. Part of harvest, on its thread. Bounds:
//! [`BUDGET_ITEMS`] answers between two publications; the streams.
//!
//! # Why shots with equal times are counted as one
//! Each role but decode reads the clock once for a batch of shots. The shots of a batch that stay
//! together therefore have the same times but for the begin of the decode, and the same value in
//! each histogram but those of the two stages beside it.

use crate::board::histogram::{Measured, Recorder};
use crate::board::{self, Board, LatencyBlock, Stage, StreamHarvestBlock};
use crate::hot::BUDGET_ITEMS;
use crate::pipe::AnsweredBy;
use crate::units::{TickRate, Ticks};
use pinwheel_edge::slot::table::Answered;

/// Times of a shot: the bounds of its stages, and when the whole shot had arrived.
#[derive(Clone, Copy)]
pub(super) struct Times {
    bounds: [Ticks; Stage::ALL.len() + 1],
    whole: Ticks,
}

impl Times {
    /// The times of an answer that is harvested at `now`. Latency counts from the arrival of the
    /// whole shot: of its last round if it arrives by rounds.
    #[inline(always)]
    pub(super) fn of(answered: &Answered, now: Ticks) -> Times {
        let Answered { header, times, dispatched, .. } = answered;
        let whole = if times.arrived == Ticks(0) { header.scheduled } else { times.arrived };
        let bounds =
            [header.scheduled, header.submitted, *dispatched, times.completed, times.decoding, times.answered, now];
        Times { bounds, whole }
    }

    /// Whether all times but the begin of the decode are equal. Looks first at the time that
    /// differs most often.
    #[inline(always)]
    fn is_beside_decoding(&self, other: &Times) -> bool {
        const DECODING: usize = Stage::Decode as usize;
        self.bounds[DECODING + 1..] == other.bounds[DECODING + 1..]
            && self.bounds[..DECODING] == other.bounds[..DECODING]
            && self.whole == other.whole
    }

    /// Time in a stage. Of a shot that arrived by rounds, the part after the last round.
    #[inline(always)]
    fn stage(&self, stage: Stage, rate: TickRate) -> Measured {
        let [from, to] = [stage as usize, stage as usize + 1].map(|bound| self.bounds[bound].max(self.whole));
        Measured::of(rate.nanos(to.since(from)).0)
    }

    /// From submission, or from the arrival of the whole shot if that is later, to harvest.
    #[inline(always)]
    fn since_submit(&self, rate: TickRate) -> Measured {
        let now = self.bounds[Stage::ALL.len()];
        Measured::of(rate.nanos(now.since(self.bounds[1].max(self.whole))).0)
    }

    /// From the arrival of the whole shot to harvest.
    pub(super) fn latency(&self, rate: TickRate) -> Measured {
        Measured::of(rate.nanos(self.bounds[Stage::ALL.len()].since(self.whole)).0)
    }
}

/// Stages that depend on when the decode began.
const BESIDE_DECODING: [Stage; 2] = [Stage::Queue, Stage::Decode];
/// The others.
const APART: [Stage; 4] = [Stage::Feed, Stage::Dispatch, Stage::Device, Stage::Harvest];

/// Counts of one stream; a line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct StreamTally {
    answered: u32,
    errors: u32,
    late: u32,
    judged: u32,
    wrong: u32,
    missed: u8,
    rescued: u8,
    refused: u8,
    /// What gave its last answer, and what was counted before the first answer of that decoder.
    by: AnsweredBy,
    decoded_before: u8,
    judged_before: u8,
    /// Change of its Pauli frame.
    frame: u64,
    latency: Recorder,
}

const _: () = assert!(size_of::<StreamTally>() == 64 && BUDGET_ITEMS <= u8::MAX as u32);

impl StreamTally {
    /// Publishes what its decoder has answered; `by` gives the next answers.
    fn end_decoder(&mut self, block: &StreamHarvestBlock, by: AnsweredBy) {
        let (decoded, judged) = ((self.answered - self.errors) as u8, self.judged as u8);
        if let Some(decoder) = self.by.decoder() {
            board::add(&block.decoded_by[decoder as usize], u64::from(decoded - self.decoded_before));
            board::add(&block.judged_by[decoder as usize], u64::from(judged - self.judged_before));
        }
        (self.by, self.decoded_before, self.judged_before) = (by, decoded, judged);
    }
}

/// What an answer without an error says.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    /// Change of its stream's Pauli frame.
    pub(super) frame: u64,
    /// Whether an observable is wrong; `None`: the true ones are not known.
    pub(super) is_wrong: Option<bool>,
    /// What gave it.
    pub(super) by: AnsweredBy,
}

/// What became of a shot's deadline.
#[derive(Clone, Copy, Default)]
pub(super) struct DeadlineOutcome {
    /// It had no answer by then.
    pub(super) is_missed: bool,
    /// It was answered with an error, because nothing could have answered it by then.
    pub(super) is_refused: bool,
}

/// What was counted since the last publication.
pub(super) struct Tally {
    /// Times of the last shot that was decoded, and its latency.
    times: Times,
    latency: Measured,
    /// Shots with these times, but for the begin of the decode, that are in no histogram but those of
    /// the stages beside it.
    run: u64,
    total: Recorder,
    from_submit: Recorder,
    stages: [Recorder; Stage::ALL.len()],
    streams: Box<[StreamTally]>,
    /// Streams that were counted.
    touched: Vec<u32>,
}

impl Tally {
    pub(super) fn new(streams: u32) -> Tally {
        // No shot has these.
        let times = Times { bounds: [Ticks(0); Stage::ALL.len() + 1], whole: Ticks(u64::MAX) };
        Tally {
            times,
            latency: Measured::default(),
            run: 0,
            total: Recorder::default(),
            from_submit: Recorder::default(),
            stages: [Recorder::default(); Stage::ALL.len()],
            streams: vec![StreamTally::default(); streams as usize].into(),
            touched: Vec::with_capacity(BUDGET_ITEMS as usize),
        }
    }

    /// Counts an answer to a shot of `stream`; `None`: an error, which has a latency but no stages.
    /// Returns the latency.
    #[inline]
    pub(super) fn enter(
        &mut self,
        (board, silo): (&Board, usize),
        stream: u32,
        (times, rate): (Times, TickRate),
        (verdict, late_ns, deadline): (Option<Verdict>, u64, DeadlineOutcome),
    ) -> u64 {
        let block = board.latency(silo);
        let latency = if verdict.is_none() {
            let latency = times.latency(rate);
            self.total.record(&block.total, latency, 1);
            self.from_submit.record(&block.from_submit, times.since_submit(rate), 1);
            latency
        } else {
            if !times.is_beside_decoding(&self.times) {
                self.end_run(block, rate);
                self.times = times;
                self.latency = times.latency(rate);
            }
            self.run += 1;
            for stage in BESIDE_DECODING {
                self.stages[stage as usize].record(&block.stages[stage as usize], times.stage(stage, rate), 1);
            }
            self.latency
        };
        let block = board.stream_harvest(stream as usize);
        if verdict.is_none_or(|verdict| verdict.is_wrong == Some(true))
            && let Some(deadline) = latency.first_deadline()
        {
            board::add(&block.wrong_in[deadline], 1);
        }
        let tally = &mut self.streams[stream as usize];
        if tally.answered == 0 {
            self.touched.push(stream);
        }
        if let Some(verdict) = verdict
            && verdict.by.origin() != tally.by
        {
            tally.end_decoder(block, verdict.by.origin());
        }
        tally.answered += 1;
        tally.late += u32::from(latency.ns() > late_ns);
        tally.missed += u8::from(deadline.is_missed);
        tally.refused += u8::from(deadline.is_refused);
        tally.latency.record(&block.latency, latency, 1);
        match verdict {
            None => tally.errors += 1,
            Some(Verdict { frame, is_wrong, by }) => {
                if by.is_rescued() {
                    tally.rescued += 1;
                    board::add(&block.rescued_wrong, u64::from(is_wrong == Some(true)));
                }
                tally.frame ^= frame;
                tally.judged += u32::from(is_wrong.is_some());
                tally.wrong += u32::from(is_wrong == Some(true));
                if let (Some(true), Some(decoder)) = (is_wrong, by.decoder()) {
                    board::add(&block.wrong_by[decoder as usize], 1);
                }
            }
        }
        latency.ns()
    }

    /// Publishes everything, and calls `note` for each stream that was counted, after what was
    /// counted of it.
    pub(super) fn publish(&mut self, (board, silo): (&Board, usize), rate: TickRate, mut note: impl FnMut(u32)) {
        if self.touched.is_empty() {
            return;
        }
        let latency = board.latency(silo);
        self.end_run(latency, rate);
        self.total.publish(&latency.total);
        self.from_submit.publish(&latency.from_submit);
        self.stages.iter_mut().zip(&latency.stages).for_each(|(recorder, block)| recorder.publish(block));
        let mut all = StreamTally::default();
        for stream in self.touched.drain(..) {
            let tally = &mut self.streams[stream as usize];
            let block = board.stream_harvest(stream as usize);
            tally.latency.publish(&block.latency);
            tally.end_decoder(block, AnsweredBy::default());
            board::set(&block.frame, board::get(&block.frame) ^ tally.frame);
            let counts = [
                (&block.answered, tally.answered, &mut all.answered),
                (&block.errors, tally.errors, &mut all.errors),
                (&block.late, tally.late, &mut all.late),
                (&block.judged, tally.judged, &mut all.judged),
                (&block.logical_errors, tally.wrong, &mut all.wrong),
            ];
            for (word, count, all) in counts {
                board::add(word, u64::from(count));
                *all += count;
            }
            // Most runs have none of these.
            if (tally.missed, tally.rescued, tally.refused) != (0, 0, 0) {
                let counts =
                    [(&block.missed, tally.missed), (&block.rescued, tally.rescued), (&block.refused, tally.refused)];
                counts.iter().for_each(|(word, count)| board::add(word, u64::from(*count)));
                let silo = board.harvest(silo);
                board::add(&silo.missed, u64::from(tally.missed));
                board::add(&silo.rescued, u64::from(tally.rescued));
                board::add(&silo.refused, u64::from(tally.refused));
            }
            *tally = StreamTally::default();
            note(stream);
        }
        let block = board.harvest(silo);
        board::add(&block.errored, u64::from(all.errors));
        board::add(&block.late, u64::from(all.late));
        board::add(&block.judged, u64::from(all.judged));
        board::add(&block.logical_errors, u64::from(all.wrong));
        // Last: who waits for a number of answers then finds what was counted of them.
        board::add(&block.answered, u64::from(all.answered));
    }

    /// Enters the shots of the run.
    #[inline(always)]
    fn end_run(&mut self, block: &LatencyBlock, rate: TickRate) {
        let (times, run) = (self.times, std::mem::take(&mut self.run));
        if run == 0 {
            return;
        }
        self.total.record(&block.total, self.latency, run);
        self.from_submit.record(&block.from_submit, times.since_submit(rate), run);
        for stage in APART {
            self.stages[stage as usize].record(&block.stages[stage as usize], times.stage(stage, rate), run);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DeadlineOutcome, Tally, Times, Verdict};
    use crate::board::histogram::{DEADLINES_NS, HistogramBlock, Measured};
    use crate::board::{self, Board, Place, Shape, Stage};
    use crate::pipe::AnsweredBy;
    use crate::profile::{DecoderKind, Rescue};
    use crate::units::{TickRate, Ticks};
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    const STREAMS: u32 = 3;
    const LATE_NS: u64 = 60;

    /// New times, those of the shot before, or those with another begin of the decode.
    fn times((at, step, kind): (u64, u64, u8), before: Option<Times>) -> Times {
        let again = before.filter(|_| kind > 0).map(|mut times| {
            let [before, decoding, after] = &mut times.bounds[Stage::Queue as usize..=Stage::Harvest as usize] else {
                unreachable!("three bounds")
            };
            if kind == 2 {
                decoding.0 = before.0 + at % (after.0 - before.0 + 1);
            }
            times
        });
        let bounds = std::array::from_fn(|bound| Ticks(at + bound as u64 * step));
        again.unwrap_or(Times { bounds, whole: Ticks(at + step / 2) })
    }

    fn verdict(kind: u64) -> Option<Verdict> {
        let is_wrong = [None, Some(false), Some(true)][kind as usize % 3];
        let by = if kind == 8 { AnsweredBy::rescue(Rescue::UnionFind, 0) } else { AnsweredBy((kind % 5) as u32) };
        (kind < 9).then_some(Verdict { frame: kind, is_wrong, by })
    }

    proptest! {
        #[test]
        fn a_batch_adds_what_its_answers_would_have_added_one_by_one(
            batches in prop::collection::vec(prop::collection::vec(
                ((0u64..1000, 0u64..40, 0u8..3), 0..STREAMS, 0u64..11), 0..40), 0..6),
        ) {
            let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: STREAMS };
            let board = Board::create(shape, Place::Private).unwrap();
            let histogram = HistogramBlock::new_zeroed;
            let (total, from_submit, stages) = (histogram(), histogram(), [(); 6].map(|()| histogram()));
            let streams = [(); STREAMS as usize].map(|()| histogram());
            let mut counts = [[0u64; 10]; STREAMS as usize];
            let mut by = [[[0u64; 3]; DecoderKind::ALL.len()]; STREAMS as usize];
            let mut wrong_in = [[0u64; DEADLINES_NS.len()]; STREAMS as usize];
            let (mut tally, mut last) = (Tally::new(STREAMS), None);
            for batch in batches {
                let mut seen = [false; STREAMS as usize];
                for (shot, stream, kind) in batch {
                    let times = times(shot, last);
                    last = Some(times);
                    let (of, verdict) = (stream as usize, verdict(kind));
                    let deadline = DeadlineOutcome { is_missed: kind % 2 == 0, is_refused: kind == 10 };
                    let latency_ns = tally.enter((&board, 0), stream, (times, TickRate::NANOS), (verdict, LATE_NS, deadline));
                    let (bounds, whole) = (times.bounds.map(|at| at.0), times.whole.0);
                    let harvested = bounds[Stage::ALL.len()];
                    prop_assert_eq!(latency_ns, harvested.saturating_sub(whole));
                    [&total, &streams[of]].iter().for_each(|block| block.record(latency_ns));
                    from_submit.record(harvested.saturating_sub(bounds[1].max(whole)));
                    if verdict.is_some() {
                        let from_to = bounds.windows(2).map(|pair| pair[1].max(whole) - pair[0].max(whole));
                        stages.iter().zip(from_to).for_each(|(block, span)| block.record(span));
                    }
                    let is_wrong = verdict.and_then(|verdict| verdict.is_wrong);
                    let first = Measured::of(latency_ns).first_deadline();
                    if let Some(first) = first.filter(|_| verdict.is_none() || is_wrong == Some(true)) {
                        wrong_in[of][first] += 1;
                    }
                    if let Some((decoder, is_wrong)) =
                        verdict.and_then(|verdict| Some((verdict.by.decoder()?, verdict.is_wrong)))
                    {
                        let more = [true, is_wrong.is_some(), is_wrong == Some(true)];
                        by[of][decoder as usize].iter_mut().zip(more).for_each(|(count, more)| *count += u64::from(more));
                    }
                    let more = [true, verdict.is_none(), latency_ns > LATE_NS, is_wrong.is_some(), is_wrong == Some(true)];
                    counts[of].iter_mut().zip(more).for_each(|(count, more)| *count += u64::from(more));
                    counts[of][5] ^= verdict.map_or(0, |verdict| verdict.frame);
                    let is_rescued = verdict.is_some_and(|verdict| verdict.by.is_rescued());
                    let more = [deadline.is_missed, is_rescued, deadline.is_refused, is_rescued && is_wrong == Some(true)];
                    counts[of][6..].iter_mut().zip(more).for_each(|(count, more)| *count += u64::from(more));
                    seen[of] = true;
                }
                tally.publish((&board, 0), TickRate::NANOS, |stream| seen[stream as usize] ^= true);
                prop_assert_eq!(seen, [false; STREAMS as usize], "each stream that was counted is noted once");
                let latency = board.latency(0);
                prop_assert_eq!(latency.total.snapshot(), total.snapshot());
                prop_assert_eq!(latency.from_submit.snapshot(), from_submit.snapshot());
                for (found, stage) in latency.stages.iter().zip(&stages) {
                    prop_assert_eq!(found.snapshot(), stage.snapshot());
                }
                for (stream, wanted) in counts.iter().enumerate() {
                    let block = board.stream_harvest(stream);
                    let words = [&block.answered, &block.errors, &block.late, &block.judged, &block.logical_errors];
                    prop_assert_eq!(&words.map(board::get)[..], &wanted[..5]);
                    prop_assert_eq!(board::get(&block.frame), wanted[5]);
                    let words = [&block.missed, &block.rescued, &block.refused, &block.rescued_wrong];
                    prop_assert_eq!(&words.map(board::get)[..], &wanted[6..]);
                    prop_assert_eq!(block.wrong_in.each_ref().map(board::get), wrong_in[stream]);
                    for (decoder, wanted) in by[stream].iter().enumerate() {
                        let words = [&block.decoded_by, &block.judged_by, &block.wrong_by];
                        prop_assert_eq!(&words.map(|words| board::get(&words[decoder])), wanted);
                    }
                    prop_assert_eq!(block.latency.snapshot(), streams[stream].snapshot());
                }
                let block = board.harvest(0);
                let words = [
                    &block.answered,
                    &block.errored,
                    &block.late,
                    &block.judged,
                    &block.logical_errors,
                    &block.missed,
                    &block.rescued,
                    &block.refused,
                ];
                let places = [0, 1, 2, 3, 4, 6, 7, 8];
                let sums = places.map(|at| counts.iter().map(|counts| counts[at]).sum::<u64>());
                prop_assert_eq!(words.map(board::get), sums);
            }
        }
    }
}
