//! Harvest: takes answers in any order, accounts for them, passes them to the sink.
//!
//! Owns the harvester's end of tx, the ledger and all latency histograms of its silo. Bounds: 64
//! answers a frame. With a sink it checks for room before it takes an answer: a reader that stops
//! reading stops the engine; no answer is lost.
//!
//! # Why an overtaking answer waits for the next pass
//! Commits of a stream are in order, so its answers are given in sequence. A pass visits one slot
//! after the other. A shot that it found in flight may be answered after the visit, and so may its
//! successor, which the pass then finds. Taking the successor would release the stream's answers
//! out of order. The next pass finds the older one first. An error is given out of order on
//! purpose, and leaves when it is given.
//!
//! # When counts appear
//! A call counts its answers in its own memory, and writes to the board once, at its end: also if
//! it panics. The mark that another silo may continue a stream follows the stream's counts.

mod tally;

use super::sampled::{self, AnswerSamples};
use crate::board::{self, HarvestBlock};
use crate::commit::JointCheck;
use crate::commit::{Ledger, Outcome};
use crate::fault::FaultCode;
use crate::hot::{BUDGET_ITEMS, Frame, Role, WARM_STREAM, Work};
use crate::pipe::{Answer, AnsweredBy, Pipe};
use crate::roles::RoleKind;
use crate::units::{TickRate, Ticks};
use pinwheel_edge::ring::broadcast::Writer;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::{Answered, HarvestEnd, ShotHeader};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::sync::read_words;
use tally::{DeadlineOutcome, Tally, Times, Verdict};

/// The parts of a harvester.
pub struct HarvesterParts {
    /// The parts shared within the silo.
    pub pipe: Pipe,
    /// Its endpoint of the slots.
    pub end: HarvestEnd,
    /// Destination of answers, if there is one.
    pub sink: Option<Writer<Answer>>,
    /// Checks joint readouts, if there are any.
    pub joints: Option<JointCheck>,
    /// Copies of answered shots, for the shadow.
    pub samples: AnswerSamples,
}

/// The harvest role.
pub struct Harvester {
    pipe: Pipe,
    end: HarvestEnd,
    sink: Option<Writer<Answer>>,
    /// Whether a reader had unread answers when the lags were last published.
    lagging: bool,
    ledger: Ledger,
    joints: Option<JointCheck>,
    samples: AnswerSamples,
    /// Bound below which lie the hashes of the shots to copy; 0: none.
    shadow_below: u64,
    /// Answers of this call have no deadlines, are given whatever their gap, and are not copied: as in most runs.
    is_plain: bool,
    tally: Tally,
    taken: u64,
}

/// The answers of one call; publishes what they add to the board when it is dropped.
struct Batch<'a> {
    harvester: &'a mut Harvester,
    rate: TickRate,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.harvester.publish(self.rate);
    }
}

impl Harvester {
    /// Builds the role from its parts.
    pub fn new(parts: HarvesterParts) -> Harvester {
        let HarvesterParts { pipe, end, sink, joints, samples } = parts;
        let ledger = Ledger::new(pipe.streams as usize, pipe.table.geometry().slots);
        if let Some(sink) = &sink {
            let block = pipe.board.harvest(pipe.silo);
            board::set(&block.sink_capacity, sink.capacity());
            board::set(&block.sink_readers, sink.readers() as u64);
        }
        let tally = Tally::new(pipe.streams);
        Harvester {
            pipe,
            end,
            sink,
            lagging: false,
            ledger,
            joints,
            samples,
            shadow_below: 0,
            is_plain: true,
            tally,
            taken: 0,
        }
    }

    #[inline(always)]
    fn account(&mut self, answered: &Answered, now: Ticks, frame: &Frame<'_>) {
        let ShotHeader { stream, sequence, .. } = answered.header;
        let (times, rate) = (Times::of(answered, now), frame.clock().rate());
        if let Some(error) = answered.error {
            board::add(&self.block().errors[error as usize], 1);
        }
        if stream >= self.pipe.streams {
            self.count_unknown(times.latency(rate).ns(), answered.error);
            return;
        }
        self.ledger.resume(stream as usize, self.pipe.watermarks.begins.get(stream));
        let outcome = self.ledger.enter(stream as usize, sequence);
        match outcome {
            Outcome::InOrder => {}
            Outcome::OutOfOrder => board::add(&self.block().out_of_order, 1),
            Outcome::Duplicate => {
                board::add(&self.block().duplicated, 1);
                self.pipe.board.fault(self.pipe.silo, FaultCode::Duplicate, now, sequence);
            }
        }
        if let Some(joints) = self.joints.as_ref().filter(|_| outcome != Outcome::Duplicate) {
            let observables = answered.error.is_none().then(|| self.end.observables(answered));
            joints.enter(stream, sequence, observables);
        }
        let verdict = answered.error.is_none().then(|| self.judge(answered, outcome));
        let board = (&*self.pipe.board, self.pipe.silo);
        let late_ns = self.pipe.settings.late_ns();
        let (abstained, deadline) = match self.is_plain {
            true => (false, DeadlineOutcome::default()),
            // Whole answers go by copy: one whose address is taken is no longer kept in registers.
            false => self.look_closer(*answered, verdict),
        };
        let latency_ns = self.tally.enter(board, stream, (times, rate), (verdict, late_ns, deadline));
        self.pass_on(answered, latency_ns, abstained);
        if !self.is_plain && outcome != Outcome::Duplicate {
            self.sample(*answered, latency_ns);
        }
    }

    /// Whether an answer is abstained from, and what became of its deadline.
    #[cold]
    fn look_closer(&self, answered: Answered, verdict: Option<Verdict>) -> (bool, DeadlineOutcome) {
        let abstained = verdict.is_some_and(|verdict| self.abstains(&verdict));
        (abstained, self.deadline(&answered))
    }

    /// Copies an answered shot for the shadow, if it is one of its sample and there is room.
    #[cold]
    fn sample(&mut self, answered: Answered, latency_ns: u64) {
        let ShotHeader { stream, sequence, .. } = answered.header;
        if !sampled::is_sampled(stream, sequence, self.shadow_below) {
            return;
        }
        let has_room = self.samples.offer(&self.end, &answered, latency_ns);
        let block = self.block();
        board::add(if has_room { &block.shadow_sampled } else { &block.shadow_left_out }, 1);
    }

    /// What became of its deadline, where deadlines are set.
    #[inline]
    fn deadline(&self, answered: &Answered) -> DeadlineOutcome {
        let Some(deadlines) = &self.pipe.deadlines else { return DeadlineOutcome::default() };
        let Answered { header, times, error, .. } = answered;
        let after = deadlines.after_write(header.stream, &self.pipe.settings);
        let is_late = after.is_some_and(|after| times.answered.since(header.submitted) > after);
        DeadlineOutcome {
            is_missed: error.is_some() || is_late,
            is_refused: *error == Some(ErrorCode::DeadlineTooNear),
        }
    }

    /// Whether an older answer of its stream was given in a slot that this pass has already
    /// visited.
    fn overtakes(&self, answered: &Answered) -> bool {
        let ShotHeader { stream, sequence, .. } = answered.header;
        if answered.error.is_some() || answered.oldest || stream >= self.pipe.streams {
            return false;
        }
        sequence > self.ledger.next(stream as usize).max(self.pipe.watermarks.begins.get(stream))
    }

    /// Dispatch refused its stream as unknown: counts in the total, and in no stream's ledger.
    fn count_unknown(&self, latency_ns: u64, error: Option<ErrorCode>) {
        let block = self.block();
        board::add(&block.errored, error.is_some().into());
        board::add(&block.late, (latency_ns > self.pipe.settings.late_ns()).into());
        board::add(&block.answered, 1);
    }

    /// Compares the observables of an answer without an error.
    fn judge(&self, answered: &Answered, outcome: Outcome) -> Verdict {
        let observables = self.end.observables(answered);
        let is_wrong = answered.has_truth.then(|| {
            let mut pairs = observables.iter().zip(self.end.truth(answered));
            pairs.any(|(found, truth)| found.load() != truth.load())
        });
        let frame = if outcome == Outcome::Duplicate { 0 } else { observables[0].load() };
        Verdict { frame, is_wrong, by: AnsweredBy(answered.by) }
    }

    /// Whether an answer is not to be trusted, because its gap is below the run's bound, or because the
    /// rescue decoder gave it, which tells no gap; counts it then.
    #[inline]
    fn abstains(&self, verdict: &Verdict) -> bool {
        let below_db = self.pipe.settings.abstain_below_db();
        let is_small = || verdict.by.gap_db().map_or(verdict.by.is_rescued(), |gap_db| u64::from(gap_db) < below_db);
        let abstained = below_db > 0 && is_small();
        if abstained {
            let block = self.block();
            board::add(&block.abstained, 1);
            board::add(&block.abstained_judged, verdict.is_wrong.is_some().into());
            board::add(&block.abstained_wrong, (verdict.is_wrong == Some(true)).into());
        }
        abstained
    }

    fn pass_on(&mut self, answered: &Answered, latency_ns: u64, abstained: bool) {
        let Some(sink) = &mut self.sink else { return };
        let Answered { header: ShotHeader { stream, sequence, reply_to, .. }, error, by, .. } = *answered;
        let by = AnsweredBy(by);
        let observables = self.end.observables(answered);
        // Beyond the model's words an answer stays as it was made: zero.
        let none = [0; OBSERVABLE_WORDS_MAX];
        let blank = || Answer { stream, sequence, reply_to, error, by, abstained, latency_ns, observables: none };
        let is_written = sink.try_write_over(blank, |answer| {
            (answer.stream, answer.sequence, answer.reply_to) = (stream, sequence, reply_to);
            (answer.error, answer.by, answer.latency_ns) = (error, by, latency_ns);
            answer.abstained = abstained;
            // An error's are zero.
            read_words(observables, &mut answer.observables);
        });
        assert!(is_written, "the sink's room was checked before the answer was taken");
    }

    fn has_room(&mut self) -> bool {
        let room = self.sink.as_mut().is_none_or(Writer::has_room);
        if !room {
            board::add(&self.block().sink_waits, 1);
        }
        room
    }

    /// Takes the answers that are given, within the budget. Returns how many.
    fn take(&mut self, frame: &Frame<'_>) -> u32 {
        let mut items = 0;
        let settings = &self.pipe.settings;
        self.shadow_below = settings.shadow_below();
        self.is_plain = self.shadow_below == 0 && self.pipe.deadlines.is_none() && settings.abstain_below_db() == 0;
        self.end.begin();
        // One clock reading for the whole batch: all answers given before the frame's start are
        // harvested in it.
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
            // An answer of this batch may be younger than the clock reading.
            let now = now.max(answered.times.answered);
            if answered.header.stream != WARM_STREAM {
                self.account(&answered, now, frame);
            }
            board::set(&self.pipe.board.slots(self.pipe.silo)[answered.slot as usize].harvested, now.0);
            self.end.take(&answered);
            self.taken += 1;
            items += 1;
        }
        items
    }

    /// Publishes what was taken.
    fn publish(&mut self, rate: TickRate) {
        let Harvester { pipe, ledger, tally, .. } = self;
        let position = &pipe.board.harvest(pipe.silo).position;
        // In an idle frame the line stays with its readers.
        if board::get(position) == self.taken {
            return;
        }
        let answered = &pipe.watermarks.answered;
        // From then on another silo may continue the stream.
        let note = |stream| answered.set(stream, ledger.next(stream as usize));
        tally.publish((&pipe.board, pipe.silo), rate, note);
        board::set(position, self.taken);
    }

    /// Publishes how far each reader lags, while at least one does.
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

    fn work(&mut self, frame: &mut Frame<'_>) -> Work {
        let items = Batch { rate: frame.clock().rate(), harvester: self }.harvester.take(frame);
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
