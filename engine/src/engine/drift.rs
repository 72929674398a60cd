//! The cold thread that watches the streams for errors whose frequency drifts from the model's.
//!
//! Owns the reading ends of the feeds' samples, the counts of each stream that has sent shots, and the
//! words of their drift on the board. A stream that gets another model is counted anew. Runs on a cold
//! thread, confined to cold cores. Bounds: at most the samples of [`NOTHING`] at a time, so about 100,000
//! shots a second and silo; a stream's counts, which it writes to the run's directory at most once in
//! [`KEEP`], so that a model can be fitted to a run that goes on.

use super::cold::{self, ColdThreads, Stop};
use super::detections::{StreamCounts, detection_files};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::code::Model;
use crate::code::drift::{BLOCK, Drift, Drifted, SHOTS_MAX};
use crate::decode::changes::DecoderChanges;
use crate::decode::prepared::{Models, NumberedModel};
use crate::pipe::samples::SampleReader;
use crate::record::write_file;
use crate::units::{Nanos, Ticks};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Pause while there are no samples.
const NOTHING: Duration = Duration::from_millis(20);

/// Time between two writings of the counts.
const KEEP: Nanos = Nanos(5_000_000_000);

/// Parts of the engine that the thread needs.
pub(super) struct DriftWatch {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) decoders: DecoderChanges,
    pub(super) samples: Vec<SampleReader>,
    pub(super) threads: ColdThreads,
    /// The run's directory.
    pub(super) directory: Option<PathBuf>,
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
        let threads = self.threads.clone();
        threads.spawn("drift", move || {
            let _ = sender.send(self.run(&stop));
        })?;
        Ok(receiver)
    }

    fn run(mut self, stop: &Stop) -> Vec<StreamCounts> {
        let mut streams: Vec<Option<Watched>> = (0..self.board.shape().streams).map(|_| None).collect();
        let (mut epoch, mut models) = (self.decoders.epoch(), self.decoders.models_in_force());
        let mut fresh = BTreeMap::new();
        let keep_every = self.clock.rate().ticks(KEEP);
        let (mut kept, mut has_news) = (None, false);
        let mut kept_models = Vec::new();
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
                        has_news = true;
                    }
                }) {}
            }
            if is_last {
                return counted(&streams);
            }
            if has_news && kept.is_none_or(|kept| now.since(kept) >= keep_every) {
                (kept, has_news) = (Some(now), false);
                self.keep(&counted(&streams), &mut kept_models);
            }
            cold::sleep(NOTHING);
        }
    }

    /// Writes the counts so far, and models that are not in the directory yet. What cannot be written is written, or
    /// reported, at the end of the run.
    fn keep(&self, counted: &[StreamCounts], kept_models: &mut Vec<Arc<Model>>) {
        let Some(directory) = &self.directory else { return };
        for (name, content) in detection_files(counted, kept_models) {
            let _ = write_file(directory, &name, &content);
        }
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

fn counted(streams: &[Option<Watched>]) -> Vec<StreamCounts> {
    (0..).zip(streams).filter_map(|(stream, watched)| Some(watched.as_ref()?.counted(stream))).collect()
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

    fn counted(&self, stream: u32) -> StreamCounts {
        let counts = self.drift.newest(self.verdict.map_or(u64::MAX, |verdict| verdict.shots));
        StreamCounts { stream, model: Arc::clone(&self.of.model), drifted: self.verdict, counts }
    }
}
