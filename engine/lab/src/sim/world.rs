//! The simulation of one seed: one or several silos, their clock, their scheduler.
//!
//! Owns the roles and calls one per step, drawn from the seed. Time advances between steps by small
//! draws and, rarely, by 20 ms as on a suspended machine. Bounds: see the parent; [`SILOS_MAX`]
//! silos.

use super::checks;
use super::decoder_events::DecoderEvents;
use super::inputs::{Drawn, Inputs, draw_settings, virtual_clock};
use super::neighbour::Neighbour;
use super::network::Network;
use super::role_set::RoleSet;
use super::silo_events::SiloEvents;
use super::{SHOTS, STEPS_MAX, SimulationError, Violation};
use crate::arbiter::page::Silo as Owner;
use crate::board::snapshot::{ArbiterView, LifecycleView, MovesView, SiloView, Snapshot};
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::fault::FaultCode;
use crate::feed::Share;
use crate::feed::requests::MoveRequests;
use crate::feed::source::Source;
use crate::hot::{Frame, Scratch};
use crate::pipe::Answer;
use crate::profile::{DecoderKind, Silos};
use crate::silo::{self, Answers, Attached, Common, Connected, Silo, SiloCommands, SupervisorParts};
use crate::streams::OverflowOutcome;
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::spin::Phase;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of silos of a seed.
const SILOS_MAX: u32 = 3;

/// Source of a seed's faults, in addition to those of its profile.
enum FaultSource {
    /// The arbiter of a second silo takes pages from the only silo.
    Neighbour(Box<Neighbour>),
    /// Streams move between silos, which stop and rejoin.
    SiloEvents(Box<SiloEvents>),
}

/// The simulation of one seed.
pub(super) struct World<'a> {
    seed: u64,
    random: Xoshiro256PlusPlus,
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Arc<Board>,
    silos: Vec<Silo>,
    /// The roles of all silos, and which of them run.
    role_set: RoleSet,
    network: Network,
    fault_source: FaultSource,
    answers: Vec<Reader<Answer>>,
    expected: &'a [Vec<u64>],
    others: &'a [(DecoderKind, Vec<Vec<u64>>)],
    decoder_events: Option<DecoderEvents>,
    answered: Vec<u32>,
    streams: Vec<Stream>,
    /// By silo and stream, at the end of the last step.
    pages_before: Vec<Vec<PageBefore>>,
    steps: u64,
    scratch: Scratch,
}

/// A stream's page in one silo.
#[derive(Clone, Copy, Default)]
struct PageBefore {
    /// The silo does not have the page.
    is_away: bool,
    /// The last sequence number committed there.
    committed: u64,
}

/// Expected state of a stream, from its answers.
#[derive(Clone)]
struct Stream {
    errors: u64,
    /// Parity of all answers without an error.
    frame: Vec<u64>,
    /// The last sequence number answered without an error.
    last: Option<u64>,
}

impl<'a> World<'a> {
    /// Alternates between one silo with an unreliable neighbour and several silos that exchange
    /// streams.
    pub(super) fn new(inputs: &'a Inputs, seed: u64) -> Result<World<'a>, SimulationError> {
        let is_alone = seed.is_multiple_of(2);
        let (streams, decoders_max) = if is_alone { (3, 3) } else { (5, 2) };
        let Drawn { mut random, mut profile, decoding, expected, others, ready, decoders } =
            Drawn::of(inputs, seed, decoders_max);
        let silos = if is_alone { 1 } else { 2 + (random.next_u64() % u64::from(SILOS_MAX - 1)) as u32 };
        profile.silos = Silos::Count(silos);
        profile.input.streams = streams;
        if !is_alone && random.next_u64().is_multiple_of(2) {
            profile.input.joint_every = None;
        }
        let (nanos, clock) = virtual_clock();
        let (slots, workers) = (profile.slots, profile.device_workers());
        // A neighbour's arbiter uses the blocks of a second silo.
        let shape = Shape { threads: 1, silos: silos.max(2), slots, workers, decoders, streams };
        let board = Arc::new(Board::create(shape, Place::Private)?);
        let common = Common {
            board: Arc::clone(&board),
            settings: draw_settings(&mut random, &profile),
            clock: clock.clone(),
            decoders: decoding.changes(),
            decoding: decoding.clone(),
            moves: Arc::new(MoveRequests::new(streams, silos, profile.input.joint_every.is_some())),
            joints: silo::tally(&profile, &decoding.model),
        };
        let decoder_events = ready.map(|ready| DecoderEvents::new(seed, &profile, ready, common.decoders.clone()));
        let Connected { pieces: mut attached, notifiers } = silo::connect(silos, &decoding.model, &common.moves);
        let mut network = Network::new();
        let draw = random.next_u64().is_multiple_of(2);
        let neighbour = is_alone.then(|| {
            let (neighbour, link) =
                Neighbour::new((&clock, streams, decoding.model.observable_words()), draw, &mut network);
            attached[0].links.push(link);
            neighbour
        });
        if !is_alone && draw {
            by_network(&mut attached, &mut network);
        }
        let (mut wired, mut role_set, mut answers) = (Vec::new(), RoleSet::new(&board, &clock), Vec::new());
        for (number, attached) in (0..).zip(attached) {
            let source = Source::Replay { shots: Arc::clone(&inputs.shots), observables: None };
            let share = Share::of(number, silos, streams, Some(SHOTS));
            let passed_on = Answers::PassedOn { readers: 1 };
            let mut silo = silo::wire(&profile, share, decoders, source, passed_on, attached, &common)?;
            silo.specs.drain(..).try_for_each(|spec| role_set.add(spec))?;
            answers.extend(silo.answers.pop());
            wired.push(silo);
        }
        let fault_source = match neighbour {
            Some(neighbour) => FaultSource::Neighbour(Box::new(neighbour)),
            None => {
                let (decoders, commands) = (vec![decoders; silos as usize], Arc::new(SiloCommands::new(silos)));
                FaultSource::SiloEvents(Box::new(SiloEvents::new(SupervisorParts {
                    profile,
                    common,
                    decoders,
                    notifiers,
                    commands,
                })))
            }
        };
        let words = wired[0].pipe.table.geometry().observable_words as usize;
        Ok(World {
            seed,
            random,
            nanos,
            clock,
            board,
            silos: wired,
            role_set,
            network,
            fault_source,
            answers,
            expected,
            others,
            decoder_events,
            answered: vec![0; SHOTS as usize],
            pages_before: vec![vec![PageBefore::default(); streams as usize]; silos as usize],
            streams: vec![Stream { errors: 0, frame: vec![0; words], last: None }; streams as usize],
            steps: 0,
            scratch: Scratch::new(),
        })
    }

    /// Number of role calls so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Runs to the end; returns the first violation, if there is one.
    pub(super) fn run_seed(&mut self) -> Option<Violation> {
        let what = self.run_through().or_else(|| self.judge());
        what.map(|what| Violation { seed: self.seed, step: self.steps, what })
    }

    fn run_through(&mut self) -> Option<String> {
        let what = self.run(Phase::Live, World::is_fed);
        let what = what.or_else(|| {
            // A drain begins only when no silo is stopping or rejoining.
            if let FaultSource::SiloEvents(silo_events) = &mut self.fault_source {
                silo_events.is_over = true;
            }
            self.run(Phase::Live, |world| match &world.fault_source {
                FaultSource::Neighbour(_) => true,
                FaultSource::SiloEvents(silo_events) => silo_events.is_settled(&world.role_set),
            })
        });
        let what = what.or_else(|| self.run(Phase::Drain, World::is_drained));
        what.or_else(|| {
            if let FaultSource::Neighbour(neighbour) = &mut self.fault_source {
                neighbour.rest();
            }
            let lost = self.run(Phase::Drain, |world| match &world.fault_source {
                FaultSource::Neighbour(neighbour) => neighbour.is_settled(&world.silos[0].states),
                FaultSource::SiloEvents(_) => (0..world.streams()).all(|stream| world.owners(stream).count() == 1),
            });
            lost.map(|what| format!("page lost: {what}"))
        })
    }

    /// Checks the invariants at the end of a run.
    fn judge(&self) -> Option<String> {
        let doubled = self.sum(|silo| board::get(&self.board.harvest(silo).duplicated));
        if doubled > 0 {
            return Some(format!("harvest counted {doubled} duplicate answers"));
        }
        let read = self.sum(|silo| board::get(&self.board.harvest(silo).joint_read));
        let consistent = self.sum(|silo| board::get(&self.board.harvest(silo).joint_consistent));
        if read != consistent {
            return Some(format!("only {consistent} of {read} joint readouts agree with both streams"));
        }
        if let Some((index, times)) = self.answered.iter().enumerate().find(|(_, times)| **times != 1) {
            return Some(format!("shot {index} was answered {times} times"));
        }
        let counted = [
            self.sum(|silo| board::get(&self.board.harvest(silo).answered)),
            self.sum(|silo| board::get(&self.board.harvest(silo).errored)),
            self.sum(|silo| self.board.harvest(silo).errors.iter().map(board::get).sum()),
        ];
        let errors = self.streams.iter().map(|stream| stream.errors).sum();
        if counted != [SHOTS, errors, errors] {
            return Some(format!(
                "answers, errors and errors by code: counted {counted:?}, found {SHOTS} and {errors}"
            ));
        }
        (0..self.streams()).find_map(|stream| self.misjudged(stream))
    }

    fn streams(&self) -> u32 {
        self.streams.len() as u32
    }

    fn sum(&self, of: impl Fn(usize) -> u64) -> u64 {
        (0..self.silos.len()).map(of).sum()
    }

    fn is_fed(&self) -> bool {
        (0..self.silos.len()).all(|silo| board::get(&self.board.feed(silo).exhausted) != 0)
    }

    fn is_drained(&self) -> bool {
        let is_harvested = |silo: usize| {
            board::get(&self.board.feed(silo).position) == board::get(&self.board.harvest(silo).position)
                && checks::in_graph(&self.silos[silo], &self.board) == 0
        };
        (0..self.silos.len()).all(is_harvested)
            && self.sum(|silo| checks::committed(&self.board, silo)) == SHOTS
            && self.role_set.is_drained()
    }

    fn run(&mut self, phase: Phase, done: impl Fn(&World<'a>) -> bool) -> Option<String> {
        while !done(self) {
            if self.steps == STEPS_MAX {
                let answered = self.answered.iter().filter(|times| **times > 0).count();
                let (left, pages) = (self.role_set.left(), self.pages());
                return Some(format!(
                    "still in {phase:?} after {STEPS_MAX} steps: {answered} answered; not drained: {left}; {pages}"
                ));
            }
            self.step(phase);
            let broken = self.committed_elsewhere();
            if let Some(what) = broken.or_else(|| self.broken()).or_else(|| self.take_answers()) {
                return Some(what);
            }
        }
        None
    }

    /// Compares with the last step: the first stream that a silo committed to without its page, before and now.
    fn committed_elsewhere(&mut self) -> Option<String> {
        let has_successors = matches!(self.fault_source, FaultSource::SiloEvents(_));
        for (silo, pages) in self.pages_before.iter_mut().enumerate() {
            let states = &self.silos[silo].states;
            for (stream, before) in (0..).zip(pages) {
                let word = states.pages().word(stream);
                let now = PageBefore { is_away: !word.is_writable(), committed: states.committed(stream) };
                let before = std::mem::replace(before, now);
                // The successor keeps the bytes of a page that a dead silo may have granted.
                let may_be_inherited = has_successors && word.awaits();
                if before.is_away && now.is_away && now.committed != before.committed && !may_be_inherited {
                    let committed = before.committed;
                    return Some(format!(
                        "silo {silo} committed to stream {stream} beyond {committed} without its page"
                    ));
                }
            }
        }
        None
    }

    fn owners(&self, stream: u32) -> impl Iterator<Item = usize> {
        // A dead silo's words keep their last state.
        let owns =
            move |silo: &usize| self.has_path(*silo) && self.silos[*silo].states.pages().word(stream).is_writable();
        (0..self.silos.len()).filter(owns)
    }

    fn has_path(&self, silo: usize) -> bool {
        match &self.fault_source {
            FaultSource::Neighbour(_) => true,
            FaultSource::SiloEvents(silo_events) => silo_events.has_path(silo),
        }
    }

    /// Each stream's page as recorded by each silo, and the silo that receives its shots.
    fn pages(&self) -> String {
        let word = |silo: usize, stream: u32| {
            let word = self.silos[silo].states.pages().word(stream);
            format!("{} of {} in {}", word.state().name(), word.owner().number(), word.epoch().number())
        };
        let stream = |stream: u32| {
            let words: Vec<_> = (0..self.silos.len()).map(|silo| word(silo, stream)).collect();
            let at = board::get(&self.board.stream_feed(stream as usize).silo);
            format!("stream {stream} at {at}: {}", words.join(", "))
        };
        let snapshot = self.board.snapshot(&self.clock);
        let silo = |silo: usize| {
            let (feed, harvest) =
                (board::get(&self.board.feed(silo).position), board::get(&self.board.harvest(silo).position));
            let state = &snapshot.silos[silo].lifecycle.state;
            let moves = snapshot.silos[silo].moves.as_ref().map_or(&[][..], |moves| &moves.open);
            format!("silo {silo} {state:?}: {feed} written, {harvest} harvested, {moves:?}")
        };
        let silos = (0..self.silos.len()).map(silo);
        silos.chain((0..self.streams()).map(stream)).collect::<Vec<_>>().join("; ")
    }

    /// Describes the first invariant that is violated now.
    fn broken(&self) -> Option<String> {
        if let FaultSource::SiloEvents(silo_events) = &self.fault_source
            && let Some(why) = silo_events.supervisor.broken()
        {
            return Some(format!("{why}; {}", self.pages()));
        }
        let in_silo = |silo: usize| {
            let broken = if self.has_path(silo) {
                checks::broken(&self.silos[silo], &self.board, self.streams())
            } else {
                checks::slots(&self.silos[silo], &self.board, self.streams())
            };
            broken.map(|what| format!("silo {silo}: {what}"))
        };
        (0..self.silos.len()).find_map(in_silo).or_else(|| match &self.fault_source {
            FaultSource::Neighbour(neighbour) => neighbour.broken(&self.silos[0].states),
            FaultSource::SiloEvents(_) => {
                let stream = (0..self.streams()).find(|stream| self.owners(*stream).nth(1).is_some())?;
                Some(format!("stream {stream} has several owners: {:?}", self.owners(stream).collect::<Vec<_>>()))
            }
        })
    }

    fn step(&mut self, phase: Phase) {
        self.steps += 1;
        let draw = self.random.next_u64();
        // Usually a few hundred nanoseconds; once in a thousand steps the machine is suspended for
        // 20 ms.
        let pass = if draw.is_multiple_of(1_000) { 20_000_000 } else { draw % 2_000 };
        self.nanos.fetch_add(pass, Ordering::Relaxed);
        let (now, rate, roles) = (self.clock.ticks(), self.clock.rate(), self.role_set.len());
        if let FaultSource::SiloEvents(silo_events) = &mut self.fault_source
            && phase == Phase::Live
        {
            silo_events.draw(&mut self.random, &mut self.role_set);
        }
        if phase == Phase::Live {
            self.decoder_events.iter_mut().for_each(DecoderEvents::draw);
        }
        self.network.carry(&mut self.random);
        let suspended = match &mut self.fault_source {
            FaultSource::Neighbour(_) => None,
            FaultSource::SiloEvents(silo_events) => silo_events.suspended(&mut self.random, roles, (now, rate)),
        };
        let pick = (self.random.next_u64() % (roles as u64 + 2)) as usize;
        if pick == roles {
            let several = self.silos.len() > 1;
            let silo = if several { self.random.next_u64() % self.silos.len() as u64 } else { 0 };
            self.silos[silo as usize].recovery.step(now, rate);
        } else if pick > roles {
            match &mut self.fault_source {
                FaultSource::Neighbour(neighbour) => {
                    let frame = Frame::new(&self.clock, self.clock.ticks(), phase, &mut self.scratch);
                    neighbour.step(&frame, self.board.arbiter(1), &mut self.random);
                }
                // As in the engine, a silo that fails in Drain gets no successor.
                FaultSource::SiloEvents(silo_events) if phase == Phase::Live => {
                    silo_events.supervisor.step(&mut self.silos, &mut self.role_set, now);
                }
                FaultSource::SiloEvents(_) => {}
            }
        } else if suspended != Some(pick) {
            let mut frame = Frame::new(&self.clock, self.clock.ticks(), phase, &mut self.scratch);
            self.role_set.call(pick, &mut frame);
        }
    }

    fn take_answers(&mut self) -> Option<String> {
        let streams = u64::from(self.streams());
        for reader in &mut self.answers {
            while let Some(answer) = reader.read() {
                let Answer { stream, sequence, .. } = answer;
                let index = sequence.saturating_mul(streams).saturating_add(stream.into());
                let submitted = self.answered.get_mut(index as usize).filter(|_| u64::from(stream) < streams);
                let Some(times) = submitted else {
                    return Some(format!("stream {stream}: {sequence} was answered and never submitted"));
                };
                *times += 1;
                if *times > 1 {
                    return Some(format!("shot {index} was answered {times} times"));
                }
                let others = self.others.iter().find(|(decoder, _)| Some(*decoder) == answer.by.decoder());
                let expected = &others.map_or(self.expected, |(_, answers)| answers)[index as usize];
                let stream = &mut self.streams[answer.stream as usize];
                if answer.error.is_some() {
                    stream.errors += 1;
                    continue;
                }
                if stream.last.is_some_and(|last| last > answer.sequence) {
                    let (number, sequence, last) = (answer.stream, answer.sequence, stream.last);
                    return Some(format!("stream {number}: {sequence} was answered after {last:?}"));
                }
                if answer.observables[..expected.len()] != expected[..] {
                    return Some(format!("the answer of shot {index} is not its decode"));
                }
                stream.last = Some(answer.sequence);
                stream.frame.iter_mut().zip(expected).for_each(|(parity, word)| *parity ^= word);
            }
        }
        None
    }

    /// Describes an error in `stream` after its last shot: in its owner, or in the owner's state of
    /// it.
    fn misjudged(&self, stream: u32) -> Option<String> {
        let owner = match (&self.fault_source, &self.owners(stream).collect::<Vec<_>>()[..]) {
            // The neighbour commits nothing, so its copy of a page is what the silo wrote.
            (FaultSource::Neighbour(_), _) => 0,
            (FaultSource::SiloEvents(_), [owner]) => *owner,
            (FaultSource::SiloEvents(_), owners) => {
                return Some(format!("stream {stream} ends with owners {owners:?}"));
            }
        };
        let state = self.silos[owner].states.read(stream);
        let own = |index: &u64| index % u64::from(self.streams()) == u64::from(stream);
        let shots = (0..SHOTS).filter(own).count() as u64;
        let Stream { errors, frame, .. } = &self.streams[stream as usize];
        let is_right = (state.committed, state.tombstones, &state.frame) == (shots, *errors, frame);
        (!is_right).then(|| {
            format!(
                "stream {stream}: found {state:?}, expected {shots} committed, {errors} tombstones, frame {frame:?}"
            )
        })
    }

    /// Faults of this seed, by name.
    pub(super) fn faults(&self) -> Vec<(String, u64)> {
        let snapshot = self.board.snapshot(&self.clock);
        let errors = snapshot.silos.iter().flat_map(|silo| &silo.errors);
        let errors: Vec<_> = errors.map(|error| (error.name.clone(), error.count)).collect();
        let named = match &self.fault_source {
            FaultSource::Neighbour(_) => self.faults_of_one(&snapshot),
            FaultSource::SiloEvents(silo_events) => self.faults_of_several(&snapshot, silo_events.refused),
        };
        let decoders = self.decoder_events.iter().flat_map(|events| events.counts(&self.board));
        let named = named.into_iter().chain(decoders).map(|(name, count)| (name.to_owned(), count));
        errors.into_iter().chain(named).collect()
    }

    fn faults_of_one(&self, snapshot: &Snapshot) -> Vec<(&'static str, u64)> {
        let silo = &snapshot.silos[0];
        let counters = &silo.counters;
        let recoveries = snapshot.faults.iter().filter(|fault| fault.code == FaultCode::DeviceRecovered.number());
        let named = [
            ("late_completion", counters.late_completions),
            ("device_loss", counters.device_losses),
            ("worker_quarantined", counters.quarantined),
            ("cpu_fallback", counters.cpu_fallbacks),
            ("rescued", counters.rescued),
            ("refused", counters.refused),
            ("missed", counters.missed),
            ("came_by_rounds", board::get(&self.board.dispatch(0).by_rounds)),
            ("claim_lost", counters.claims_lost),
            ("device_recovered", recoveries.map(|fault| fault.count).sum()),
            ("joint_read", counters.joint_read),
            ("joint_refused", counters.joint_refused),
            ("waited", outcome(silo, OverflowOutcome::Waited)),
            ("sent_to_cpu", outcome(silo, OverflowOutcome::SentToCpu)),
        ];
        let pages = silo.arbiter.iter().flat_map(|pages| {
            let names = ["page_left", "page_back", "page_kept", "page_in_doubt"];
            names.into_iter().zip([pages.left, pages.arrived, pages.kept, pages.doubted])
        });
        named.into_iter().chain(pages).collect()
    }

    fn faults_of_several(&self, snapshot: &Snapshot, refused: u64) -> Vec<(&'static str, u64)> {
        let silos = &snapshot.silos;
        let moves = |of: fn(&MovesView) -> u64| silos.iter().filter_map(|silo| silo.moves.as_ref()).map(of).sum();
        let pages = |of: fn(&ArbiterView) -> u64| silos.iter().filter_map(|silo| silo.arbiter.as_ref()).map(of).sum();
        let supervisor = |of: fn(&LifecycleView) -> u64| silos.iter().map(|silo| of(&silo.lifecycle)).sum();
        vec![
            ("silo_death", supervisor(|life| life.deaths)),
            ("silo_rejoin", supervisor(|life| life.rejoins)),
            ("silo_drain", supervisor(|life| life.drains)),
            ("moving_joint_read", silos.iter().map(|silo| silo.counters.joint_read).sum()),
            ("moving_joint_refused", silos.iter().map(|silo| silo.counters.joint_refused).sum()),
            ("stream_taken_over", supervisor(|life| life.left)),
            ("moving_page_in_doubt", pages(|pages| pages.doubted)),
            ("moving_page_kept", pages(|pages| pages.kept)),
            ("stream_moved", moves(|moves| moves.done)),
            ("move_given_up", moves(|moves| moves.failed)),
            ("shot_staged", moves(|moves| moves.staged)),
            ("shot_handed_on", moves(|moves| moves.handed_on)),
            ("sent_elsewhere", silos.iter().map(|silo| outcome(silo, OverflowOutcome::SentElsewhere)).sum()),
            ("move_refused", refused),
        ]
    }
}

/// Routes the arbiters' direct links through the simulated network.
fn by_network(attached: &mut [Attached], network: &mut Network) {
    attached.iter_mut().for_each(|attached| attached.links.clear());
    for low in 0..attached.len() {
        for high in low + 1..attached.len() {
            let (one, other) = network.join(Owner::new(low as u8), Owner::new(high as u8));
            attached[low].links.push(one);
            attached[high].links.push(other);
        }
    }
}

fn outcome(silo: &SiloView, outcome: OverflowOutcome) -> u64 {
    let counted = silo.overflow.outcomes.iter().find(|counted| counted.outcome == outcome.name());
    counted.map_or(0, |counted| counted.count)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Answer, Inputs, SHOTS, World};
    use pinwheel_edge::ring::broadcast::channel;

    #[test]
    fn an_answer_to_a_shot_that_was_not_submitted_is_a_violation() {
        let inputs = Inputs::new().unwrap();
        let mut world = World::new(&inputs, 0).unwrap();
        for (stream, sequence) in [(0, SHOTS), (0, u64::MAX), (3, 0)] {
            let (mut sink, readers) = channel(8, 1);
            world.answers = readers;
            assert!(
                sink.try_write_over(Answer::default, |answer| (answer.stream, answer.sequence) = (stream, sequence))
            );
            assert!(world.take_answers().is_some_and(|what| what.contains("never submitted")), "{stream} {sequence}");
        }
    }
}
