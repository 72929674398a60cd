//! Harvest: takes answers in any order, accounts for them, passes them to the sink.
//!
//! Owns the harvester's end of tx, the ledger and all latency histograms of its silo. Bounds: 64 answers a frame. With a
//! sink it checks for room before it takes an answer: a reader that stops reading stops the engine, it loses nothing.
//!
//! # Why an answer that overtakes is left for the next pass
//! Commits of a stream are in its order, so its answers are given in sequence. A pass looks at one slot after the other: one
//! that it found in flight may be answered behind its back, and the one after it too, which it then finds. Whoever took that
//! one let a stream's answers leave in another order than they were given. The next pass finds the older one first. An error is
//! given out of order on purpose, and leaves when it is given.

use super::Pipe;
use super::joints::JointCheck;
use super::ledger::{Ledger, Outcome};
use crate::board::{self, HarvestBlock, Stage};
use crate::fault::FaultCode;
use crate::feed::Answer;
use crate::hot::{BUDGET_ITEMS, Frame, Role, RoleError, WARM_STREAM, Work};
use crate::profile::RoleKind;
use crate::units::Ticks;
use pinwheel_edge::ring::broadcast::Writer;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::{Answered, HarvestEnd, ShotHeader};
use pinwheel_edge::sync::read_words;

/// What a harvester is made of.
pub struct HarvesterParts {
    /// The silo's shared parts.
    pub pipe: Pipe,
    /// Its end of the slots.
    pub end: HarvestEnd,
    /// Where answers go, if anybody wants them.
    pub sink: Option<Writer<Answer>>,
    /// Checks joint readouts, if there are any.
    pub joints: Option<JointCheck>,
}

/// When all of the shot was there: latency counts from then. Of one that came by rounds, with the last of them.
fn whole_at(answered: &Answered) -> Ticks {
    let Answered { header, times, .. } = answered;
    if times.arrived == Ticks(0) { header.scheduled } else { times.arrived }
}

/// The role.
pub struct Harvester {
    pipe: Pipe,
    end: HarvestEnd,
    sink: Option<Writer<Answer>>,
    /// A reader had something to read when the lags were last published.
    lagging: bool,
    ledger: Ledger,
    joints: Option<JointCheck>,
    taken: u64,
}

impl Harvester {
    /// The role with its end.
    #[must_use]
    pub fn new(parts: HarvesterParts) -> Harvester {
        let HarvesterParts { pipe, end, sink, joints } = parts;
        let ledger = Ledger::new(pipe.streams as usize, pipe.table.geometry().slots);
        if let Some(sink) = &sink {
            let block = pipe.board.harvest(pipe.silo);
            board::set(&block.sink_capacity, sink.capacity());
            board::set(&block.sink_readers, sink.readers() as u64);
        }
        Harvester { pipe, end, sink, lagging: false, ledger, joints, taken: 0 }
    }

    fn account(&mut self, answered: &Answered, now: Ticks, frame: &Frame<'_>) {
        let rate = frame.clock().rate();
        let latency_ns = rate.nanos(now.since(whole_at(answered))).0;
        let stream = answered.header.stream as usize;
        if stream >= self.pipe.streams as usize {
            // Refused by dispatch as unknown: answered, counted in total, belongs to no stream's ledger.
            self.count(answered, latency_ns);
            return;
        }
        self.ledger.resume(stream, self.pipe.turns.begins.get(answered.header.stream));
        let outcome = self.ledger.enter(stream, answered.header.sequence);
        match outcome {
            Outcome::InOrder => {}
            Outcome::OutOfOrder => board::add(&self.block().out_of_order, 1),
            Outcome::Duplicate => {
                board::add(&self.block().duplicated, 1);
                self.pipe.board.fault(self.pipe.silo, FaultCode::Duplicate, now, answered.header.sequence);
            }
        }
        if let Some(joints) = self.joints.as_ref().filter(|_| outcome != Outcome::Duplicate) {
            let observables = answered.error.is_none().then(|| self.end.observables(answered));
            joints.enter(answered.header.stream, answered.header.sequence, observables);
        }
        if outcome != Outcome::Duplicate && answered.error.is_none() {
            let frame = &self.pipe.board.stream_harvest(stream).frame;
            board::set(frame, board::get(frame) ^ self.end.observables(answered)[0].load());
        }
        self.count(answered, latency_ns);
        self.judge(answered, latency_ns);
        self.measure(answered, now, latency_ns, frame);
        self.pass_on(answered, latency_ns);
        // Last of all: with this the stream may go on elsewhere.
        self.pipe.turns.answered.set(answered.header.stream, self.ledger.next(stream));
    }

    /// Whether an older answer of its stream has been given that this pass went by.
    fn overtakes(&self, answered: &Answered) -> bool {
        let ShotHeader { stream, sequence, .. } = answered.header;
        if answered.error.is_some() || answered.oldest || stream >= self.pipe.streams {
            return false;
        }
        sequence > self.ledger.next(stream as usize).max(self.pipe.turns.begins.get(stream))
    }

    fn count(&self, answered: &Answered, latency_ns: u64) {
        let block = self.block();
        board::add(&block.answered, 1);
        if let Some(error) = answered.error {
            board::add(&block.errored, 1);
            board::add(&block.errors[error as usize], 1);
        }
        if latency_ns > self.pipe.settings.late_ns() {
            board::add(&block.late, 1);
        }
    }

    fn judge(&self, answered: &Answered, latency_ns: u64) {
        let (block, stream) = (self.block(), self.pipe.board.stream_harvest(answered.header.stream as usize));
        board::add(&stream.answered, 1);
        stream.latency.record(latency_ns);
        if answered.error.is_some() {
            board::add(&stream.errors, 1);
        }
        if latency_ns > self.pipe.settings.late_ns() {
            board::add(&stream.late, 1);
        }
        if answered.has_truth && answered.error.is_none() {
            let pairs = || self.end.observables(answered).iter().zip(self.end.truth(answered));
            let wrong = pairs().any(|(found, truth)| found.load() != truth.load());
            board::add(&block.judged, 1);
            board::add(&stream.judged, 1);
            if wrong {
                board::add(&block.logical_errors, 1);
                board::add(&stream.logical_errors, 1);
            }
        }
    }

    /// Stage times of a shot that went the whole way; errors have no stages, only a latency.
    fn measure(&self, answered: &Answered, now: Ticks, latency_ns: u64, frame: &Frame<'_>) {
        let rate = frame.clock().rate();
        let latency = self.pipe.board.latency(self.pipe.silo);
        latency.total.record(latency_ns);
        let whole = whole_at(answered);
        latency.from_submit.record(rate.nanos(now.since(answered.header.submitted.max(whole))).0);
        if answered.error.is_some() {
            return;
        }
        let times = [
            answered.header.scheduled,
            answered.header.submitted,
            answered.dispatched,
            answered.times.completed,
            answered.times.decoding,
            answered.times.answered,
            now,
        ];
        for stage in Stage::ALL {
            // Of one that came by rounds: what of the stage came after the last of them.
            let from = times[stage as usize].max(whole);
            let span = times[stage as usize + 1].max(whole).since(from);
            latency.stages[stage as usize].record(rate.nanos(span).0);
        }
    }

    fn pass_on(&mut self, answered: &Answered, latency_ns: u64) {
        let Some(sink) = &mut self.sink else { return };
        let mut answer = Answer {
            stream: answered.header.stream,
            sequence: answered.header.sequence,
            reply_to: answered.header.reply_to,
            error: answered.error,
            latency_ns,
            observables: [0; OBSERVABLE_WORDS_MAX],
        };
        if answered.error.is_none() {
            read_words(self.end.observables(answered), &mut answer.observables);
        }
        assert!(sink.try_write(answer).is_ok(), "room was checked before the answer was taken");
    }

    fn has_room(&mut self) -> bool {
        let room = self.sink.as_mut().is_none_or(Writer::has_room);
        if !room {
            board::add(&self.block().sink_waits, 1);
        }
        room
    }

    /// How far behind each reader is, for as long as one is.
    fn publish_lags(&mut self) {
        let Some(sink) = &self.sink else { return };
        let words = &self.pipe.board.harvest(self.pipe.silo).sink_lags;
        self.lagging = false;
        for (reader, word) in words.iter().enumerate().take(sink.readers()) {
            let lag = sink.lag(reader);
            self.lagging |= lag.is_some_and(|lag| lag > 0);
            board::set(word, lag.unwrap_or(u64::MAX));
        }
    }

    fn block(&self) -> &HarvestBlock {
        self.pipe.board.harvest(self.pipe.silo)
    }
}

impl Role for Harvester {
    fn kind(&self) -> RoleKind {
        RoleKind::Harvest
    }

    fn warm_up(&mut self, _frame: &mut Frame<'_>) -> Result<(), RoleError> {
        Ok(())
    }

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let mut items = 0;
        self.end.begin();
        // One reading for the whole batch: what is answered at the frame's start is harvested in it.
        let mut now = None;
        while items < BUDGET_ITEMS {
            if !self.has_room() {
                break;
            }
            let Some(answered) = self.end.next_answered() else { break };
            if self.overtakes(&answered) {
                self.end.leave();
                continue;
            }
            let now = *now.get_or_insert_with(|| frame.ticks());
            // An answer of this very batch may be younger than the batch's reading.
            let now = now.max(answered.times.answered);
            if answered.header.stream != WARM_STREAM {
                self.account(&answered, now, frame);
            }
            board::set(&self.pipe.board.slots(self.pipe.silo)[answered.slot as usize].harvested, now.0);
            self.end.take(&answered);
            self.taken += 1;
            items += 1;
        }
        if items > 0 {
            board::set(&self.block().position, self.taken);
        }
        if let Some(joints) = &mut self.joints {
            joints.look(self.pipe.board.harvest(self.pipe.silo));
        }
        if items > 0 || self.lagging {
            self.publish_lags();
        }
        Work(items)
    }

    fn is_drained(&self) -> bool {
        board::get(&self.pipe.board.feed(self.pipe.silo).position) == self.taken
            && self.joints.as_ref().is_none_or(JointCheck::is_quiet)
    }
}
