//! One window of a shot as a task: a decode worker decodes it between two states of the shot's
//! carry.
//!
//! Each decode worker has its own [`WindowBench`], on its thread. Bounded by the window. Allocates
//! nothing once warm.
//!
//! # Why the device sees whole shots only
//! Predecoding inspects a detector's neighbours, some of which are rounds away. A whole shot passes
//! the device, which sees all of it and takes microseconds; the residual syndrome is cut into
//! windows here. For a shot that arrives by rounds the neighbours have not arrived yet, and a
//! launch for each window would take longer than its matching. Such a shot goes straight to the
//! graph, and the worker that matches a window also predecodes it.

use super::window::{WindowModel, WindowWorker};
use crate::pipe::Carries;
use pinwheel_edge::slot::jobs::Job;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::{DataWord, read_words, write_words};
use std::sync::Arc;

/// One decode worker's matchers and buffers for windows.
pub(super) struct WindowBench {
    model: Arc<WindowModel>,
    worker: WindowWorker,
    carries: Arc<Carries>,
    /// The carry in the form that a window needs: the words of the current window of the current
    /// shot.
    carry: Vec<u64>,
}

impl WindowBench {
    pub(super) fn new(model: Arc<WindowModel>, carries: Arc<Carries>) -> WindowBench {
        let carry = vec![0; carries.stride_words() as usize];
        WindowBench { worker: WindowWorker::new(Arc::clone(&model)), model, carry, carries }
    }

    /// Rebuilds the window worker after a panic in it.
    pub(super) fn renew(&mut self) {
        self.worker = WindowWorker::new(Arc::clone(&self.model));
    }

    pub(super) fn is_last(&self, index: u32) -> bool {
        index + 1 == self.carries.windows()
    }

    /// Begins the shot of `job` with its `syndrome`, and XORs the always-flipped bits into
    /// `observables`.
    pub(super) fn begin(&mut self, syndrome: &[u64], observables: &mut [u64], always: &mut [u64]) {
        self.worker.begin(syndrome, &mut self.carry, always);
        observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
    }

    /// Begins a shot that arrives by rounds, and XORs the always-flipped bits into `observables`.
    pub(super) fn begin_by_rounds(&mut self, observables: &mut [u64], always: &mut [u64]) {
        self.worker.begin_by_rounds(&mut self.carry, always);
        observables.iter_mut().zip(always).for_each(|(word, by)| *word ^= *by);
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
        let region = self.carries.region(index);
        let (first, end) = (region.start as usize, region.end as usize);
        let record = self.carries.record(job);
        if index > 0 {
            read_words(&record[first..end], &mut self.carry[first..end]);
        }
        let decoded = match payload {
            Some(payload) => {
                self.worker.take_rounds(index, |word| payload[word as usize].load(), &mut self.carry);
                self.worker.window_predecoded(index, &mut self.carry, observables)
            }
            None => self.worker.window(index, &mut self.carry, observables).map(|_| 0),
        };
        let explained = decoded.map_err(|_| ErrorCode::Unmatchable)?;
        write_words(&record[first..end], &self.carry[first..end]);
        Ok(explained)
    }
}
