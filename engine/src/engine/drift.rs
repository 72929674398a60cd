//! The cold thread that watches the streams for errors whose frequency drifts from the model's.
//!
//! Owns the reading ends of the feeds' samples, the counts of each stream that has sent shots, and the
//! words of their drift on the board. Runs on a cold thread, confined to cold cores. Bounds: at most
//! the samples of [`NOTHING`] at a time, so about 100,000 shots a second and silo; a stream's counts.

use super::cold::{self, Stop};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::code::Model;
use crate::code::drift::{BLOCK, Drift, Drifted, SHOTS_MAX};
use crate::code::pairs::PairCounts;
use crate::feed::samples::SampleReader;
use crate::host::pin;
use crate::units::Ticks;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Pause while there are no samples.
const NOTHING: Duration = Duration::from_millis(20);

/// What was counted of a stream.
#[derive(Clone, Debug)]
pub struct StreamCounts {
    /// The stream.
    pub stream: u32,
    /// The error that differs most from the model, if one does at the end.
    pub drifted: Option<Drifted>,
    /// Since it differs; otherwise since the start.
    pub counts: PairCounts,
}

/// What was counted of all streams.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The model that they were compared with.
    pub model: Arc<Model>,
    /// Streams that sent shots.
    pub streams: Vec<StreamCounts>,
}

/// Parts of the engine that the thread needs.
pub(super) struct DriftWatch {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) model: Arc<Model>,
    pub(super) samples: Vec<SampleReader>,
    pub(super) cold_cores: Vec<u32>,
}

/// One stream.
struct Watched {
    drift: Drift,
    /// Shots.
    counted: u64,
    /// When the newest blocks were complete, the newest first.
    completed: VecDeque<Ticks>,
    /// The first shot.
    began: Ticks,
    verdict: Option<Drifted>,
}

impl DriftWatch {
    /// Starts the thread, which ends once it is stopped and has read all samples. The receiver
    /// yields what it counted.
    pub(super) fn spawn(self, stop: Stop) -> io::Result<Receiver<Counted>> {
        let (sender, receiver) = channel();
        cold::spawn("drift", move || {
            // Keeps off the hot cores; if the system refuses, the scheduler decides.
            let _ = pin::confine_current_thread(&self.cold_cores);
            let _ = sender.send(self.run(&stop));
        })?;
        Ok(receiver)
    }

    fn run(mut self, stop: &Stop) -> Counted {
        let fresh = Drift::new(&self.model);
        let mut streams: Vec<Option<Watched>> = (0..self.board.shape().streams).map(|_| None).collect();
        loop {
            // Read first: samples that were handed over before it was raised are then taken below.
            let is_last = stop.is_stopped();
            let now = self.clock.ticks();
            for samples in &mut self.samples {
                while samples.read(|stream, shot| {
                    let Some(place) = streams.get_mut(stream as usize) else { return };
                    let watched = place.get_or_insert_with(|| Watched::new(&fresh, now));
                    if watched.observe(shot, now) {
                        watched.publish(&self.board, stream);
                    }
                }) {}
            }
            if is_last {
                break;
            }
            cold::sleep(NOTHING);
        }
        let streams = (0..).zip(streams).filter_map(|(stream, watched)| Some(watched?.counted(stream))).collect();
        Counted { model: self.model, streams }
    }
}

impl Watched {
    fn new(fresh: &Drift, now: Ticks) -> Watched {
        Watched { drift: fresh.clone(), counted: 0, completed: VecDeque::new(), began: now, verdict: None }
    }

    /// Counts a shot. Returns whether there is a verdict.
    fn observe(&mut self, shot: &[u64], now: Ticks) -> bool {
        self.counted += 1;
        if !self.drift.observe(shot) {
            return false;
        }
        self.completed.truncate((SHOTS_MAX / BLOCK) as usize);
        self.completed.push_front(now);
        self.verdict = self.drift.verdict();
        true
    }

    fn publish(&self, board: &Board, stream: u32) {
        let block = board.stream_feed(stream as usize);
        // A reader during the update sees no drift rather than a mixture of two.
        board::set(&block.drifted, 0);
        board::set(&block.drift_shots, self.counted);
        let Some(Drifted { detector, partner, ratio, shots, .. }) = self.verdict else { return };
        let since = self.completed.get((shots / BLOCK) as usize).copied().unwrap_or(self.began);
        board::set(&block.drift_ratio_bits, ratio.to_bits());
        board::set(&block.drift_since, since.0);
        let partner = partner.map_or(0, |partner| u64::from(partner) + 1);
        board::set(&block.drifted, (u64::from(detector) + 1) | (partner << 32));
    }

    fn counted(self, stream: u32) -> StreamCounts {
        let counts = self.drift.newest(self.verdict.map_or(u64::MAX, |verdict| verdict.shots));
        StreamCounts { stream, drifted: self.verdict, counts }
    }
}
