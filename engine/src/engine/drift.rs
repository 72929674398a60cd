//! The cold thread that watches the streams for errors whose frequency drifts from the model's.
//!
//! Owns the reading ends of the feeds' samples, the counts of each stream that has sent shots, and the
//! words of their drift on the board. A stream that gets another model is counted anew. Runs on a cold thread, confined to cold cores. Bounds: at most
//! the samples of [`NOTHING`] at a time, so about 100,000 shots a second and silo; a stream's counts.

use super::cold::{self, Stop};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::code::Model;
use crate::code::drift::{BLOCK, Drift, Drifted, SHOTS_MAX};
use crate::code::pairs::PairCounts;
use crate::decode::changes::DecoderChanges;
use crate::decode::prepared::{Models, NumberedModel};
use crate::host::pin;
use crate::pipe::samples::SampleReader;
use crate::units::Ticks;
use std::collections::{BTreeMap, VecDeque};
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
    /// The model that it is decoded by, and compared with.
    pub model: Arc<Model>,
    /// The error that differs most from the model, if one does at the end.
    pub drifted: Option<Drifted>,
    /// Since it differs; otherwise since the start.
    pub counts: PairCounts,
}

/// Parts of the engine that the thread needs.
pub(super) struct DriftWatch {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) decoders: DecoderChanges,
    pub(super) samples: Vec<SampleReader>,
    pub(super) cold_cores: Vec<u32>,
}

/// One stream.
struct Watched {
    of: NumberedModel,
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
    pub(super) fn spawn(self, stop: Stop) -> io::Result<Receiver<Vec<StreamCounts>>> {
        let (sender, receiver) = channel();
        cold::spawn("drift", move || {
            // Keeps off the hot cores; if the system refuses, the scheduler decides.
            let _ = pin::confine_current_thread(&self.cold_cores);
            let _ = sender.send(self.run(&stop));
        })?;
        Ok(receiver)
    }

    fn run(mut self, stop: &Stop) -> Vec<StreamCounts> {
        let mut streams: Vec<Option<Watched>> = (0..self.board.shape().streams).map(|_| None).collect();
        let (mut epoch, mut models) = (self.decoders.epoch(), self.decoders.models_in_force());
        let mut fresh = BTreeMap::new();
        loop {
            // Read first: samples that were handed over before it was raised are then taken below.
            let is_last = stop.is_stopped();
            if self.decoders.epoch() != epoch {
                (epoch, models) = (self.decoders.epoch(), self.decoders.models_in_force());
                self.forget_other_models(&mut streams, &models);
                fresh.clear();
            }
            let now = self.clock.ticks();
            for samples in &mut self.samples {
                while samples.read(|record| {
                    let (stream, shot) = (record[0] as u32, &record[1..]);
                    let Some(place) = streams.get_mut(stream as usize) else { return };
                    let watched = place.get_or_insert_with(|| Watched::new(models.at(stream), &mut fresh, now));
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
        (0..).zip(streams).filter_map(|(stream, watched)| Some(watched?.counted(stream))).collect()
    }

    /// Forgets what was counted of streams that now have another model.
    fn forget_other_models(&self, streams: &mut [Option<Watched>], models: &Models) {
        for (stream, place) in (0..).zip(streams) {
            if place.take_if(|watched| watched.of.number != models.at(stream).number).is_some() {
                board::set(&self.board.stream_feed(stream as usize).drifted, 0);
            }
        }
    }
}

impl Watched {
    /// Nothing is counted yet; `fresh` has what models predict, by their numbers.
    fn new(of: &NumberedModel, fresh: &mut BTreeMap<u16, Drift>, now: Ticks) -> Watched {
        let drift = fresh.entry(of.number).or_insert_with(|| Drift::new(&of.model)).clone();
        Watched { of: of.clone(), drift, counted: 0, completed: VecDeque::new(), began: now, verdict: None }
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
        StreamCounts { stream, model: self.of.model, drifted: self.verdict, counts }
    }
}
