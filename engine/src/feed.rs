//! The feed: brings shots into a silo, at their scheduled times.
//!
//! Owns the source, the schedule and the writer's end of the slots of one silo. Runs as a role;
//! each rx ring has exactly one feed. The [`link`] of a live source is part of the first silo's
//! feed, and the feeds of all silos take its shots from their lanes. A stream that is decoded in
//! another silo keeps its feed, which hands its shots on ([`cross_silo`]). Bounds: 64 shots a
//! frame. A shot's latency counts from its scheduled arrival, even if no slot was free then. Never
//! blocks: without a free slot it returns, and the schedule goes on.

pub mod assembly;
pub mod client;
pub mod cross_silo;
pub mod cudaq;
pub mod bridge;
mod intake;
pub mod health_changes;
pub mod lane;
pub mod link;
mod live;
mod mover;
pub mod order;
mod overflow;
mod pace;
pub mod packet;
pub mod address;
pub mod requests;
mod schedule;
mod share;
#[cfg(target_os = "linux")]
pub mod shm;
#[cfg(target_os = "linux")]
mod socket;
pub mod source;
pub mod stage;
mod wire;

pub use live::SLOTS_PER_STREAM;
pub use pace::Cadence;
pub use share::{OwnTurns, Share};

use crate::board::{self, Board, FeedBlock};
use crate::code::Model;
use crate::code::health::InputHealth;
use crate::code::sampler::Sampler;
use crate::fault::{FaultCode, Injector};
use crate::hot::{BUDGET_ITEMS, BatchClock, Flow, Frame, Role, Settings, WARM_STREAM, Work};
use crate::pipe::samples::{SampleReader, SampleRoom, SampleWriter, samples};
use crate::pipe::{Pressure, Watermarks};
use crate::profile::OverflowStrategy;
use crate::roles::RoleKind;
use crate::streams::OverflowOutcome;
use crate::units::{Nanos, TickRate, Ticks};
use cross_silo::{CrossSilo, CrossSiloParts};
use health_changes::HealthChanges;
use lane::{Head, Piece};
use overflow::{Bound, Overflow};
use pace::Pace;
use pinwheel_edge::slot::table::{FeedEnd, OpenShot, ReplyTo, ShotHeader};
use pinwheel_edge::slot::word::{self, ErrorCode};
use pinwheel_edge::spin::Phase;
use pinwheel_edge::sync::write_words;
use schedule::Schedule;
use share::{Due, Turn};
use source::{Drawn, Source};
use std::sync::Arc;

/// How often the input health of one stream is assessed and published.
const HEALTH_EVERY: Nanos = Nanos(20_000_000);
/// Added to a slot's address to make it invalid: misaligned, and beyond the payload.
const BAD_ADDRESS_OFFSET: u64 = (1 << 40) + 1;

/// Copies of a feed's shots, each a stream and its detectors: blocks of 256, because at 100,000 shots a
/// second a block for each would be too much work for the feed.
pub fn shot_samples(detector_words: usize) -> (SampleWriter, SampleReader) {
    samples(SampleRoom { blocks: 8, records: 256, words: 1 + detector_words })
}

/// The parts of the engine that a feed uses.
pub struct FeedContext {
    /// Live limits and rate.
    pub settings: Arc<Settings>,
    /// The board.
    pub board: Arc<Board>,
    /// Signals to dispatch that shots wait for a slot.
    pub pressure: Arc<Pressure>,
    /// Tick rate of the engine's clock.
    pub rate: TickRate,
}

/// The feed role of one silo.
pub struct Feed {
    share: Share,
    end: FeedEnd,
    source: Source,
    schedule: Schedule,
    pace: Option<Pace>,
    /// For each own stream: the open shot whose pieces are still arriving, and how many of its
    /// words have arrived.
    open: Vec<Option<OpenShot>>,
    open_words: Vec<u32>,
    settings: Arc<Settings>,
    board: Arc<Board>,
    pressure: Arc<Pressure>,
    overflow: Overflow,
    injector: Injector,
    warmer: Sampler,
    health: Vec<InputHealth>,
    /// Brings counters of streams that get another model, in an engine where they can.
    health_changes: Option<HealthChanges>,
    /// Copies of its shots, if somebody wants them.
    samples: Option<SampleWriter>,
    health_next: usize,
    health_judged: Ticks,
    /// Shots submitted in Live.
    submitted: u64,
    /// The turn of the next one, if the source holds complete shots.
    turn: Turn,
    clock: BatchClock,
    /// For each stream: the sequence number of its next shot.
    next: Vec<u64>,
    /// Traffic with other silos; `None` in an engine of one silo.
    crossings: Option<CrossSilo>,
    crosses_first: bool,
    exhausted: bool,
    draining: bool,
    /// Words of a shot's detectors, before its soft bytes.
    detector_words: usize,
    /// Buffers of the shot that is being written.
    detectors: Vec<u64>,
    observables: Vec<u64>,
}

impl Feed {
    /// A feed that writes into `end` the shots of `source`.
    pub fn new(
        share: Share,
        end: FeedEnd,
        source: Source,
        model: &Model,
        context: FeedContext,
        injector: Injector,
        cross_silo: Option<(CrossSiloParts, Arc<Watermarks>)>,
    ) -> Feed {
        let FeedContext { settings, board, pressure, rate } = context;
        for stream in &share.own {
            board::set(&board.stream_feed(*stream as usize).silo, share.silo as u64);
        }
        let health = vec![InputHealth::one_of(model, share.own.len()); share.own.len()];
        let fraction = share.fraction();
        let widths = (model.shot_words(), model.observable_words());
        let crossings = cross_silo
            .map(|(cross_silo, watermarks)| CrossSilo::new(cross_silo, watermarks, share.silo, share.streams, widths));
        let overflow = Overflow::new(rate, crossings.as_ref().map_or(1, |crossings| crossings.silos as usize));
        Feed {
            health,
            health_changes: None,
            samples: None,
            end,
            source,
            schedule: Schedule::new(fraction),
            pace: None,
            open: vec![None; share.own.len()],
            open_words: vec![0; share.own.len()],
            settings,
            board,
            pressure,
            overflow,
            injector,
            warmer: Sampler::new(model, 0x5741_524d),
            health_next: 0,
            health_judged: Ticks(0),
            submitted: 0,
            turn: Turn::default(),
            clock: BatchClock::new(),
            next: vec![0; share.streams as usize],
            crossings,
            crosses_first: false,
            exhausted: share.own.is_empty(),
            draining: false,
            detector_words: model.detector_words(),
            detectors: vec![0; model.shot_words()],
            observables: vec![0; model.observable_words()],
            share,
        }
    }

    /// Delivers the shots of a source that holds complete shots round by round.
    #[must_use]
    pub fn at(mut self, cadence: Option<Cadence>) -> Feed {
        let slots = self.end.slots() as usize;
        self.pace = cadence.map(|cadence| Pace::new(cadence, slots));
        self
    }

    /// Follows the streams' models.
    #[must_use]
    pub fn following(self, health_changes: HealthChanges) -> Feed {
        Feed { health_changes: Some(health_changes), ..self }
    }

    /// Copies the shots for a reader.
    #[must_use]
    pub fn sampled(self, samples: Option<SampleWriter>) -> Feed {
        Feed { samples, ..self }
    }

    fn warm(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        while items < BUDGET_ITEMS && !frame.is_spent(frame.ticks()) {
            let Some(vacant) = self.end.vacant() else { break };
            self.warmer.draw(&mut self.detectors, &mut self.observables);
            let now = frame.ticks();
            let reply_to = ReplyTo::default();
            let header = ShotHeader { stream: WARM_STREAM, sequence: 0, scheduled: now, submitted: now, reply_to };
            vacant.submit(&header, &self.detectors, None);
            items += 1;
        }
        items
    }

    fn live(&mut self, frame: &Frame<'_>) -> u32 {
        let pace = (self.settings.rate_hz(), self.settings.flow());
        self.schedule.follow(pace, frame.clock().rate(), frame.now, self.submitted);
        let (mut items, mut clock) = (0, self.clock);
        let mut readings = clock.begin(frame);
        while items < BUDGET_ITEMS {
            let now = readings.next(frame);
            if frame.is_spent(now) || !self.submit_next(now, frame) {
                break;
            }
            items += 1;
        }
        self.clock = clock;
        let block = self.block();
        let arrived = self.schedule.arrived(frame.now, self.submitted);
        board::set(&block.scheduled, arrived.min(self.submitted.saturating_add(self.source.available())));
        items
    }

    /// Submits the next shot if it is due and a slot is free.
    fn submit_next(&mut self, now: Ticks, frame: &Frame<'_>) -> bool {
        let Some(Due { index, own, stream, sequence }) = self.share.due(self.turn) else {
            self.exhausted = true;
            return false;
        };
        let block = self.board.feed(self.share.silo);
        let Some(scheduled) = self.schedule.due(self.submitted, now) else {
            self.overflow.clear(now, block, &self.pressure);
            return false;
        };
        let available = self.source.available();
        if available == 0 {
            self.schedule.interrupt();
            self.overflow.clear(now, block, &self.pressure);
            return false;
        }
        if !self.schedule.has_rate() {
            // Without a rate every shot is due now, including the backlog of an earlier rate.
            self.overflow.clear(now, block, &self.pressure);
        }
        let bound = self.bound(stream);
        // Unpaced shots are never early, so they cannot overflow.
        if !self.has_room(bound, stream, (scheduled < now).then_some(now)) {
            return false;
        }
        let Some(truth_known) = self.draw(index, frame) else { return false };
        let (schedule, submitted) = (&self.schedule, self.submitted);
        let waiting = || schedule.arrived(now, submitted).saturating_sub(submitted).min(available);
        let refused = match self.overflow.judge(scheduled, bound, waiting, now, &self.settings) {
            Some(outcome) => self.refuse(stream, outcome),
            None => None,
        };
        let (reply_to, piece) = (ReplyTo { peer: 0, sequence }, Piece::Whole);
        let head = Head { stream, epoch: 0, sequence, reply_to, arrived: scheduled, truth_known, piece, refused };
        if bound.is_direct {
            self.write(&head, now)
        } else {
            self.send(&head)
        }
        self.observe(own, stream);
        self.submitted += 1;
        self.turn = self.share.after(self.turn);
        // A stream number beyond the engine's streams has no entry; no move can ask for it.
        self.next.get_mut(stream as usize).into_iter().for_each(|next| *next = sequence + 1);
        true
    }

    /// Counts the current shot, of this stream, for what is said of the input.
    #[inline]
    fn observe(&mut self, own: usize, stream: u32) {
        let detectors = &self.detectors[..self.detector_words];
        self.health[own].observe(detectors);
        if let Some(samples) = &mut self.samples {
            samples.offer(|record| {
                record[0].store(u64::from(stream));
                write_words(&record[1..], detectors);
            });
        }
    }

    /// Draws the shot at index `index` of the input. Returns whether its true observables are
    /// known; `None` if no shot was drawn.
    fn draw(&mut self, index: u64, frame: &Frame<'_>) -> Option<bool> {
        match self.source.draw(index, &mut self.detectors, &mut self.observables) {
            Drawn::Shot { truth_known } => Some(truth_known),
            Drawn::NotYet => None,
            Drawn::End => {
                self.exhausted = true;
                None
            }
            Drawn::Broken => {
                self.exhausted = true;
                self.board.fault(self.share.silo, FaultCode::InputBroken, frame.now, self.submitted);
                None
            }
        }
    }

    /// Whether a slot, or a route to one, has room for a shot of `stream`. A shot that has already
    /// arrived and finds no room overflows at `overflows_at`.
    fn has_room(&mut self, bound: Bound, stream: u32, overflows_at: Option<Ticks>) -> bool {
        let has_room = if bound.is_direct { self.end.vacant().is_some() } else { self.has_route(stream) };
        let block = self.board.feed(self.share.silo);
        if !has_room && bound.is_direct {
            board::add(&block.slot_waits, 1);
        }
        match overflows_at.filter(|_| !has_room) {
            Some(now) if bound.is_staged => self.overflow.stage_full(now),
            Some(now) => self.overflow.full(bound, now, block, &self.pressure),
            None => {}
        }
        has_room
    }

    /// Counts the outcome of the wait of a shot of `stream` that now has room. Returns the error
    /// that the shot is answered with, if any.
    fn refuse(&mut self, stream: u32, outcome: OverflowOutcome) -> Option<ErrorCode> {
        let migrates =
            outcome == OverflowOutcome::Waited && self.settings.overflow_strategy() == OverflowStrategy::Migrate;
        // The shot's destination is known when the move ends.
        if migrates && self.crossings.as_mut().is_some_and(|crossings| crossings.mover.defer(stream)) {
            return None;
        }
        overflow::count(outcome, 1, self.block(), self.board.stream_feed(stream as usize));
        overflow::error_of(outcome)
    }

    /// Writes the current shot into a slot; one is vacant.
    fn write(&mut self, head: &Head, submitted: Ticks) {
        let Some(vacant) = self.end.vacant() else { unreachable!("the caller checked for a vacant slot") };
        let Head { stream, sequence, reply_to, arrived: scheduled, truth_known, .. } = *head;
        let header = ShotHeader { stream, sequence, scheduled, submitted, reply_to };
        let truth = truth_known.then_some(self.observables.as_slice());
        let own = |stream| self.share.own.binary_search(stream);
        let slot = if let Some(code) = head.refused {
            // Further pieces of the shot find no open shot and are dropped.
            vacant.submit_at(word::error(code), &header, &self.detectors, truth)
        } else if let Piece::Opens(words) = head.piece
            && let Ok(own) = own(&stream)
        {
            let shot = vacant.open(&header, &self.detectors, words, truth);
            (self.open[own], self.open_words[own]) = (Some(shot), words);
            shot.slot
        } else if let Some(pace) = &mut self.pace {
            let shot = vacant.open(&header, &self.detectors, pace.first_words(), truth);
            pace.begin(shot, scheduled);
            shot.slot
        } else if self.injector.address_is_bad() {
            vacant.submit_at(BAD_ADDRESS_OFFSET, &header, &self.detectors, truth)
        } else {
            vacant.submit(&header, &self.detectors, truth)
        };
        self.stamp(slot, &header);
    }

    fn stamp(&self, slot: u32, header: &ShotHeader) {
        let stamps = &self.board.slots(self.share.silo)[slot as usize];
        board::set(&stamps.stream, u64::from(header.stream));
        board::set(&stamps.sequence, header.sequence);
        board::set(&stamps.scheduled, header.scheduled.0);
        board::set(&stamps.submitted, header.submitted.0);
    }

    /// Assesses the input of one stream in each period, in turn.
    fn publish_health(&mut self, now: Ticks, every: Ticks) {
        if self.health.is_empty() || now.since(self.health_judged) < every {
            return;
        }
        self.health_judged = now;
        self.samples.iter_mut().for_each(SampleWriter::hand_over);
        self.health_next = (self.health_next + 1) % self.health.len();
        let report = self.health[self.health_next].assess();
        let block = self.board.stream_feed(self.share.own[self.health_next] as usize);
        board::set(&block.verdict, report.verdict.code());
        board::set(&block.examined, report.shots_examined);
        board::set(&block.found_bits, report.fraction_found.to_bits());
        board::set(&block.expected_bits, report.fraction_expected.to_bits());
        for (place, hottest) in report.hottest.iter().take(block.hottest.len()).enumerate() {
            let (detector, fraction) = hottest.map_or((0, 0.0), |(detector, fraction)| (detector + 1, fraction));
            board::set(&block.hottest[place], u64::from(detector));
            board::set(&block.hottest_bits[place], fraction.to_bits());
        }
    }

    /// Slots and lane entries ever used.
    fn used(&self) -> u64 {
        let handed_on = |_| board::get(&self.board.moves(self.share.silo).handed_on);
        self.end.submitted() + self.crossings.as_ref().map_or(0, handed_on)
    }

    fn block(&self) -> &FeedBlock {
        self.board.feed(self.share.silo)
    }

    /// Whether the feed is not held. In Drain it never is: every shot must be answered.
    fn runs(&self, frame: &Frame<'_>) -> bool {
        frame.phase == Phase::Drain || self.settings.flow() == Flow::Runs
    }
}

impl Role for Feed {
    fn kind(&self) -> RoleKind {
        RoleKind::Feed
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        // A pause is a gap: afterwards a shot that waited has the rest of its deadline.
        if self.runs(frame) {
            self.overflow.note(frame.now);
        }
        if let Some(changes) = &mut self.health_changes {
            changes.exchange(&mut self.health);
        }
        let linked = self.work_link(frame);
        let shown = self.pace.as_mut().map_or(0, |pace| pace.show(&mut self.end, frame.now));
        // Shots from other silos and shots from the source take turns to look first for a free
        // slot. The side that looked first and got a slot looks second next time. Alternating by
        // frame would starve one side if slots came free only in every second frame.
        let (crosses_first, used) = (self.crosses_first || self.has_stopped(), self.used());
        let mut crossed = if crosses_first { self.cross(frame) } else { 0 };
        let used_by_crossed = self.used();
        let mut items = match frame.phase {
            Phase::Warmup if self.settings.is_warming() => self.warm(frame),
            Phase::Live | Phase::Drain if self.is_live() => self.forward(frame),
            Phase::Live if !self.exhausted => self.live(frame),
            _ => 0,
        };
        let has_had_turn = if crosses_first { used_by_crossed != used } else { self.used() != used };
        self.crosses_first = crosses_first != has_had_turn;
        if !crosses_first {
            crossed = self.cross(frame);
        }
        items += crossed;
        if items > 0 {
            board::set(&self.block().submitted, self.submitted);
            board::set(&self.block().position, self.end.submitted());
            board::set(&self.block().overflow_strategy, self.settings.overflow_strategy() as u64);
        }
        if frame.phase == Phase::Drain && !self.draining {
            // Scheduled shots that were not accepted stay outside: the backlog ends here.
            self.draining = true;
            if !self.is_live() {
                board::set(&self.block().scheduled, self.submitted);
                self.overflow.clear(frame.now, self.board.feed(self.share.silo), &self.pressure);
            }
            // Publishes the final health of every stream, even in a short run.
            for _ in 0..self.health.len() {
                self.publish_health(frame.now, Ticks(0));
            }
        }
        if self.exhausted && board::get(&self.block().exhausted) == 0 {
            self.overflow.clear(frame.now, self.board.feed(self.share.silo), &self.pressure);
            board::set(&self.block().scheduled, self.submitted);
            board::set(&self.block().exhausted, 1);
        }
        self.publish_health(frame.now, frame.clock().rate().ticks(HEALTH_EVERY));
        Work(items + linked + shown)
    }

    fn send_answers(&mut self, frame: &mut Frame<'_>) -> Work {
        Work(self.send_link_answers(frame))
    }

    fn is_drained(&self) -> bool {
        let has_shown_all = self.pace.as_ref().is_none_or(Pace::is_idle);
        self.draining && self.has_forwarded_all() && has_shown_all && self.has_crossed_all()
    }
}

#[cfg(test)]
mod tests;
