//! One window of a shot as a task: a decode worker decodes it between two states of the shot's
//! carry, adds it to the shot's stream, or matches a block of it.
//!
//! Each decode worker has its own [`WindowBench`], on its thread. Bounded by the window. Allocates
//! nothing once warm.
//!
//! # Why the device sees whole shots only
//! Predecoding inspects a detector's neighbours, some of which are rounds away. A whole shot passes
//! the device, which sees all of it and takes microseconds; the residual syndrome is cut into
//! windows here. For a shot that arrives by rounds the neighbours have not arrived yet, and a
//! launch for each window would take longer than its matching. Such a shot goes straight to the
//! graph, and the worker that matches a window also predecodes it. A stream is not predecoded: its
//! rounds are matched as they come.

use super::blocks::BlockedModel;
use super::stream::StreamedModel;
use super::window::{WindowModel, WindowWorker};
use super::{DecodeError, MatcherModel, Ready};
use crate::pipe::Carries;
use crate::units::Ticks;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWord, read_words, write_words};
use std::sync::Arc;

/// One decode worker's matchers and buffers for windows.
pub(super) struct WindowBench {
    carries: Arc<Carries>,
    kind: Kind,
}

enum Kind {
    Sliding {
        model: Arc<WindowModel>,
        worker: WindowWorker,
        /// The carry in the form that a window needs: the words of the current window of the
        /// current shot.
        carry: Vec<u64>,
    },
    Stream(Arc<StreamedModel>),
    Blocks(Arc<BlockedModel>),
}

impl WindowBench {
    /// `None` if shots are decoded whole.
    pub(super) fn new(matching: &MatcherModel, carries: Arc<Carries>) -> Option<WindowBench> {
        let kind = match &matching.0 {
            Ready::Whole(_) | Ready::Plugin(_) | Ready::Guess(..) => return None,
            #[cfg(test)]
            Ready::Made(_) => return None,
            Ready::Windows(model) => Kind::Sliding {
                model: Arc::clone(model),
                worker: WindowWorker::new(Arc::clone(model)),
                carry: vec![0; carries.stride_words() as usize],
            },
            Ready::Stream(model) => Kind::Stream(Arc::clone(model)),
            Ready::Blocks(model) => Kind::Blocks(Arc::clone(model)),
        };
        Some(WindowBench { carries, kind })
    }

    /// Rebuilds what a panic in a decode has left.
    pub(super) fn renew(&mut self) {
        match &mut self.kind {
            Kind::Sliding { model, worker, .. } => *worker = WindowWorker::new(Arc::clone(model)),
            Kind::Stream(_) | Kind::Blocks(_) => self.carries.renew(),
        }
    }

    pub(super) fn is_last(&self, index: u32) -> bool {
        index + 1 == self.carries.windows()
    }

    /// Begins the shot of `job` with its `syndrome`, and XORs the always-flipped bits into
    /// `observables`. Streams have no such shots.
    pub(super) fn begin(&mut self, syndrome: &[u64], observables: &mut [u64], always: &mut [u64]) {
        let Kind::Sliding { worker, carry, .. } = &mut self.kind else { return };
        worker.begin(syndrome, carry, always);
        observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
    }

    /// Begins a shot that arrives by rounds, and XORs the always-flipped bits into `observables`.
    pub(super) fn begin_by_rounds(&mut self, observables: &mut [u64], always: &mut [u64]) {
        match &mut self.kind {
            Kind::Sliding { worker, carry, .. } => {
                worker.begin_by_rounds(carry, always);
                observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
            }
            Kind::Stream(model) => model.begin(observables),
            Kind::Blocks(_) => {}
        }
    }

    /// Decodes window `index` of the shot of `job`, and XORs its committed flips into
    /// `observables`. `payload`: the shot's own words, if it arrives by rounds; the window's words
    /// have arrived. Returns the number of detection events that predecoding explained.
    pub(super) fn decode(
        &mut self,
        job: &Job,
        index: u32,
        payload: Option<&[DataWord]>,
        observables: &mut [u64],
    ) -> Result<u32, ErrorCode> {
        let Self { carries, kind } = self;
        let decoded = match (kind, payload, carries.streams()) {
            (Kind::Sliding { worker, carry, .. }, ..) => {
                slide(carries, worker, carry, (job, index), payload, observables)
            }
            (Kind::Stream(model), Some(payload), Some(shots)) => {
                let word = |word: u32| payload[word as usize].load();
                let decode = |matcher: &mut _| model.decode(matcher, index, word, observables).map(|_| 0);
                shots.with(carries.matcher_of(job), decode).unwrap_or(Err(DecodeError::Declined))
            }
            // A stream's whole shots are no tasks, and blocks are not decoded one after the other.
            (Kind::Stream(_) | Kind::Blocks(_), ..) => Err(DecodeError::Declined),
        };
        decoded.map_err(|_| ErrorCode::Unmatchable)
    }

    /// Whether the windows of a shot are blocks, of which several workers decode some at the same time.
    pub(super) const fn are_blocks(&self) -> bool {
        matches!(self.kind, Kind::Blocks(_))
    }

    /// Decodes block `index` of the shot of `job`, or fuses all blocks if there is none of that index: then it
    /// XORs the shot's flips into `observables`, and returns when the first block began. `word` reads a word
    /// of the shot.
    pub(super) fn block(
        &self,
        job: &Job,
        index: u32,
        began: Ticks,
        word: impl Fn(u32) -> u64 + Copy,
        observables: &mut [u64],
    ) -> Result<Ticks, ErrorCode> {
        let (Kind::Blocks(model), Some(shots)) = (&self.kind, self.carries.blocks()) else {
            return Err(ErrorCode::Unmatchable);
        };
        let set = self.carries.matcher_of(job);
        if !self.is_last(index) {
            let is_decoded = shots.decode(set, index, began, |matcher| model.decode(matcher, word));
            return if is_decoded { Ok(began) } else { Err(ErrorCode::DecoderPanic) };
        }
        let fused = shots.fuse(set, |fusion| model.finish(fusion, observables));
        let (finished, began) = fused.ok_or(ErrorCode::DecoderPanic)?;
        finished.map(|_| began).map_err(|_| ErrorCode::Unmatchable)
    }
}

/// Decodes a sliding window between two states of its shot's carry.
fn slide(
    carries: &Carries,
    worker: &mut WindowWorker,
    carry: &mut [u64],
    (job, index): (&Job, u32),
    payload: Option<&[DataWord]>,
    observables: &mut [u64],
) -> Result<u32, DecodeError> {
    let region = carries.region(index);
    let (first, end) = (region.start as usize, region.end as usize);
    let record = carries.record(job);
    if index > 0 {
        read_words(&record[first..end], &mut carry[first..end]);
    }
    let explained = match payload {
        Some(payload) => {
            worker.take_rounds(index, |word| payload[word as usize].load(), carry);
            worker.window_by_rounds(index, carry, observables)?
        }
        None => worker.window(index, carry, observables).map(|_| 0)?,
    };
    write_words(&record[first..end], &carry[first..end]);
    Ok(explained)
}
