//! One seed's world of several silos: streams move between them under load, at random.
//!
//! Owns the silos' roles and calls one per step, chosen by the seed; now and then a role stands still for longer than a move is waited for,
//! and silos are killed, struck, drained and come back, pairs of their streams read jointly or not. Bounds: see the parent; [`SILOS_MAX`] silos. All words, rings and roles are the real ones.

use super::cast::Cast;
use super::mail::Mail;
use super::world::{Drawn, Script, draw_settings, outcome, virtual_clock};
use super::{RehearsalError, Rehearsed, SHOTS, STEPS_MAX, Violation, checks};
use crate::arbiter::page::{Authority, Silo as Owner};
use crate::board::snapshot::{LifeView, OverflowOutcome, SiloState};
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::dispatch::Answer;
use crate::feed::Share;
use crate::feed::requests::{MoveRequest, MoveRequests};
use crate::feed::source::Source;
use crate::hot::{Frame, Scratch};
use crate::profile::Silos;
use crate::silo::{self, Answers, Attached, Common, Connected, HotSide, Lives, LivesParts, Silo, SiloDeed, SiloWishes};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::ring::broadcast::Reader;
use pinwheel_edge::spin::Phase;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STREAMS: u32 = 5;
/// Most silos of a seed; the least is two.
const SILOS_MAX: u32 = 3;
/// Steps from one request for a move to the next, on the average.
const MOVE_EVERY: u64 = 300;
/// How long a role stands still, and how many steps lie between two such on the average.
const STUN: Nanos = Nanos::from_millis(150);
const STUN_EVERY: u64 = 30_000;
/// Steps from one silo's fate to the next, on the average.
const FATE_EVERY: u64 = 500;

/// One seed.
pub(super) struct Moving<'a> {
    seed: u64,
    random: Xoshiro256PlusPlus,
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Arc<Board>,
    silos: Vec<Silo>,
    moves: Arc<MoveRequests>,
    /// Between the arbiters, in half of the seeds.
    mail: Mail,
    /// All silos' roles, and which of them live.
    cast: Cast,
    lives: Lives,
    wishes: Arc<SiloWishes>,
    stunned: Option<(usize, Ticks)>,
    answers: Vec<Reader<Answer>>,
    expected: &'a [Vec<u64>],
    answered: Vec<u32>,
    /// Of each stream: answers with an error, and the parity of all others.
    errors: [u64; STREAMS as usize],
    frames: [Vec<u64>; STREAMS as usize],
    jobs: Vec<u64>,
    decoders: u64,
    steps: u64,
    refused: u64,
    /// No silo dies or comes back any more.
    is_ending: bool,
    /// Of each stream: the last number that was answered without an error.
    last: [Option<u64>; STREAMS as usize],
    scratch: Scratch,
}

impl<'a> Moving<'a> {
    pub(super) fn new(script: &'a Script, seed: u64) -> Result<Moving<'a>, RehearsalError> {
        let Drawn { mut random, mut profile, decoding, expected, decoders } = Drawn::of(script, seed, 2);
        let silos = 2 + (random.next_u64() % u64::from(SILOS_MAX - 1)) as u32;
        profile.silos = Silos::Count(silos);
        profile.input.streams = STREAMS;
        if random.next_u64().is_multiple_of(2) {
            profile.input.joint_every = None;
        }
        let (nanos, clock) = virtual_clock();
        let (slots, workers) = (profile.slots, profile.workers);
        let shape = Shape { threads: 1, silos, slots, workers, decoders, streams: STREAMS };
        let board = Arc::new(Board::create(shape, Place::Private)?);
        let settings = draw_settings(&mut random, &profile);
        let moves = Arc::new(MoveRequests::new(STREAMS, silos, profile.input.joint_every.is_some()));
        let common = Common {
            board: Arc::clone(&board),
            settings,
            clock: clock.clone(),
            decoding: decoding.clone(),
            moves: Arc::clone(&moves),
            joints: silo::tally(&profile, &decoding.model),
        };
        let (mut wired, mut cast, mut answers) = (Vec::new(), Cast::new(&board, &clock), Vec::new());
        let Connected { pieces: mut attached, told } = silo::connect(silos, &common.decoding.model, &moves);
        let mut mail = Mail::new();
        if random.next_u64().is_multiple_of(2) {
            by_mail(&mut attached, &mut mail);
        }
        for (number, attached) in (0..).zip(attached) {
            let source = Source::Replay { shots: Arc::clone(&script.shots), observables: None };
            let share = Share::of(number, silos, STREAMS, Some(SHOTS));
            let passed_on = Answers::PassedOn { readers: 1 };
            let mut silo = silo::wire(&profile, share, decoders, source, passed_on, attached, &common)?;
            silo.specs.drain(..).try_for_each(|spec| cast.add(spec))?;
            answers.extend(silo.answers.pop());
            wired.push(silo);
        }
        let wishes = Arc::new(SiloWishes::new(silos));
        let decoders_of = vec![decoders; silos as usize];
        let parts = LivesParts { profile, common, decoders: decoders_of, told, wishes: Arc::clone(&wishes) };
        let words = wired[0].pipe.table.geometry().observable_words as usize;
        Ok(Moving {
            seed,
            random,
            nanos,
            clock,
            board,
            jobs: wired.iter().map(|silo| silo.pipe.jobs.free()).collect(),
            silos: wired,
            moves,
            mail,
            cast,
            lives: Lives::new(parts),
            wishes,
            stunned: None,
            answers,
            expected,
            answered: vec![0; SHOTS as usize],
            errors: [0; STREAMS as usize],
            frames: std::array::from_fn(|_| vec![0; words]),
            decoders: u64::from(decoders),
            steps: 0,
            refused: 0,
            is_ending: false,
            last: [None; STREAMS as usize],
            scratch: Scratch::new(),
        })
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
                && checks::in_graph(&self.silos[silo], &self.board, self.decoders) == 0
        };
        (0..self.silos.len()).all(is_harvested)
            && self.sum(|silo| checks::committed(&self.board, silo, self.decoders)) == SHOTS
            && self.cast.is_drained()
    }

    fn run(&mut self, phase: Phase, done: impl Fn(&Moving<'_>) -> bool) -> Option<String> {
        while !done(self) {
            if self.steps == STEPS_MAX {
                let states: Vec<_> = (0..self.silos.len()).map(|silo| self.lives.state(silo)).collect();
                let moves = self.board.snapshot(&self.clock).silos.into_iter().filter_map(|silo| silo.moves);
                let moves: Vec<_> = moves.map(|moves| moves.open).collect();
                let answered = self.answered.iter().filter(|times| **times > 0).count();
                return Some(format!(
                    "not through {phase:?} after {STEPS_MAX} steps: {answered} answered; {states:?}; not drained: {}; {moves:?}",
                    self.cast.left()
                ));
            }
            let before = self.away();
            self.step(phase);
            if let Some((silo, stream, committed)) = before.into_iter().find(|(silo, stream, committed)| {
                let states = &self.silos[*silo].states;
                let word = states.pages().word(*stream);
                // Of a page that a dead silo may have granted, the heir keeps the bytes, too.
                states.committed(*stream) != *committed && !word.is_writable() && !word.awaits()
            }) {
                return Some(format!("silo {silo} committed to stream {stream} beyond {committed} without its page"));
            }
            if let Some(what) = self.broken().or_else(|| self.take_answers()) {
                return Some(what);
            }
        }
        None
    }

    /// Streams that a silo has no page of, and how far their states were committed there.
    fn away(&self) -> Vec<(usize, u32, u64)> {
        let of = |silo: usize| {
            let states = &self.silos[silo].states;
            let is_away = |stream: &u32| !states.pages().word(*stream).is_writable();
            (0..STREAMS).filter(is_away).map(move |stream| (silo, stream, states.committed(stream)))
        };
        (0..self.silos.len()).flat_map(of).collect()
    }

    fn owners(&self, stream: u32) -> Vec<usize> {
        // What a dead silo left says what it was.
        let owns = |silo: &usize| self.has_path(*silo) && self.silos[*silo].states.pages().word(stream).is_writable();
        (0..self.silos.len()).filter(owns).collect()
    }

    /// Whether nothing of what lies between the doors of `silo` is dead, or about to be.
    fn has_path(&self, silo: usize) -> bool {
        matches!(self.lives.state(silo), SiloState::Live | SiloState::Draining | SiloState::Drained)
    }

    /// Each stream's page as each silo knows it, and where its shots go.
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
        let rescue = |silo: usize| {
            let (feed, harvest) =
                (board::get(&self.board.feed(silo).position), board::get(&self.board.harvest(silo).position));
            let rescue = board::get(&self.board.moves(silo).rescue);
            format!("silo {silo} {:?}: rescue {rescue:x}, {feed} written, {harvest} harvested", self.lives.state(silo))
        };
        let rescues = (0..self.silos.len()).map(rescue);
        rescues.chain((0..STREAMS).map(stream)).collect::<Vec<_>>().join("; ")
    }

    /// Whether a role has died, and nobody has seen it yet.
    fn is_struck(&self) -> bool {
        (0..self.silos.len()).any(|silo| self.has_path(silo) && self.cast.died(silo).is_some())
    }

    fn broken(&self) -> Option<String> {
        if let Some(why) = self.lives.broken() {
            return Some(format!("{why}; {}", self.pages()));
        }
        let in_silo = |silo: usize| {
            let broken = if self.has_path(silo) {
                checks::broken(&self.silos[silo], &self.board, self.jobs[silo], self.decoders)
            } else {
                checks::slots(&self.silos[silo], &self.board)
            };
            broken.map(|what| format!("silo {silo}: {what}"))
        };
        (0..self.silos.len()).find_map(in_silo).or_else(|| {
            let owners = |stream: u32| (stream, self.owners(stream));
            let (stream, owners) = (0..STREAMS).map(owners).find(|(_, owners)| owners.len() > 1)?;
            Some(format!("stream {stream} has {} owners: {owners:?}", owners.len()))
        })
    }

    fn step(&mut self, phase: Phase) {
        self.steps += 1;
        let draw = self.random.next_u64();
        let pass = if draw.is_multiple_of(1_000) { 20_000_000 } else { draw % 2_000 };
        self.nanos.fetch_add(pass, Ordering::Relaxed);
        if phase == Phase::Live && self.random.next_u64().is_multiple_of(MOVE_EVERY) {
            let draw = self.random.next_u64();
            let (stream, to) = ((draw % u64::from(STREAMS)) as u32, (draw >> 8) as u32 % self.silos.len() as u32);
            let lease_ms = if (draw >> 40).is_multiple_of(4) { 1 } else { 0 };
            let by = if (draw >> 50).is_multiple_of(8) { Authority::Operator } else { Authority::Port };
            self.refused += u64::from(self.moves.ask(MoveRequest { stream, to, lease_ms, by }).is_err());
        }
        if phase == Phase::Live && !self.is_ending && self.random.next_u64().is_multiple_of(FATE_EVERY) {
            self.decide_fate();
        }
        self.mail.carry(&mut self.random);
        let now = self.clock.ticks();
        if self.random.next_u64().is_multiple_of(STUN_EVERY) {
            let role = (self.random.next_u64() % self.cast.len() as u64) as usize;
            self.stunned = Some((role, now.plus(self.clock.rate().ticks(STUN))));
        }
        self.stunned = self.stunned.filter(|(_, until)| now < *until);
        let pick = (self.random.next_u64() % (self.cast.len() as u64 + 2)) as usize;
        if pick == self.cast.len() {
            let silo = (self.random.next_u64() % self.silos.len() as u64) as usize;
            self.silos[silo].recovery.step(now, self.clock.rate());
            return;
        }
        if pick > self.cast.len() {
            // Who dies in Drain is nobody's heir's matter, as in the engine.
            if phase == Phase::Live {
                self.lives.step(&mut self.silos, &mut self.cast, now);
            }
            return;
        }
        if self.stunned.is_some_and(|(role, _)| role == pick) {
            return;
        }
        let random = &mut self.random;
        let mut split = || random.next_u64().is_multiple_of(4);
        let mut frame = Frame::rehearsed(&self.clock, phase, &mut self.scratch, &mut split);
        self.cast.play(pick, &mut frame);
    }

    /// Some silo is killed, struck, drained or comes back, if that can be.
    fn decide_fate(&mut self) {
        let draw = self.random.next_u64();
        let silo = draw as u32 % self.silos.len() as u32;
        if self.lives.state(silo as usize) == SiloState::Dead {
            let _ = self.wishes.ask(silo, SiloDeed::Rejoin);
            return;
        }
        // A second death before the first is through ends a run: that is no promise to rehearse.
        let is_quiet = self.lives.is_settled() && !self.is_struck();
        let can_die = is_quiet && self.wishes.check(silo, SiloDeed::Kill).is_ok();
        let deed = match draw >> 32 & 7 {
            0 if can_die => {
                self.cast.strike(silo as usize, draw >> 40);
                return;
            }
            1 | 2 => SiloDeed::Kill,
            3 => SiloDeed::Drain,
            _ => SiloDeed::Rejoin,
        };
        // What cannot be now is as well not done.
        let _ = self.wishes.ask(silo, deed);
    }

    fn take_answers(&mut self) -> Option<String> {
        for reader in &mut self.answers {
            while let Some(answer) = reader.read() {
                let index = answer.sequence * u64::from(STREAMS) + u64::from(answer.stream);
                let times = self.answered.get_mut(index as usize)?;
                *times += 1;
                if *times > 1 {
                    return Some(format!("shot {index} was answered {times} times"));
                }
                let (expected, stream) = (&self.expected[index as usize], answer.stream as usize);
                match answer.error {
                    Some(_) => self.errors[stream] += 1,
                    None if self.last[stream].is_some_and(|last| last > answer.sequence) => {
                        return Some(format!(
                            "stream {stream}: {} is answered behind {:?}",
                            answer.sequence, self.last[stream]
                        ));
                    }
                    None if answer.observables[..expected.len()] != expected[..] => {
                        return Some(format!("the answer of shot {index} is not the decode of that shot"));
                    }
                    None => {
                        self.last[stream] = Some(answer.sequence);
                        self.frames[stream].iter_mut().zip(expected).for_each(|(parity, word)| *parity ^= word);
                    }
                }
            }
        }
        None
    }

    /// What is wrong with `stream` after its last shot: its owner, or the state that the owner has.
    fn misjudged(&self, stream: u32) -> Option<String> {
        let owners = self.owners(stream);
        let [owner] = owners[..] else { return Some(format!("stream {stream} ends with owners {owners:?}")) };
        let state = self.silos[owner].states.read(stream);
        let own = |index: &u64| index % u64::from(STREAMS) == u64::from(stream);
        let shots = (0..SHOTS).filter(own).count() as u64;
        let (errors, frame) = (self.errors[stream as usize], &self.frames[stream as usize]);
        let is_right = (state.committed, state.tombstones, &state.frame) == (shots, errors, frame);
        (!is_right).then(|| {
            format!(
                "stream {stream}: found {state:?}, expected {shots} committed, {errors} tombstones, frame {frame:?}"
            )
        })
    }
}

/// Puts the mail between the arbiters, which were linked directly.
fn by_mail(attached: &mut [Attached], mail: &mut Mail) {
    attached.iter_mut().for_each(|attached| attached.links.clear());
    for low in 0..attached.len() {
        for high in low + 1..attached.len() {
            let (one, other) = mail.join(Owner::new(low as u8), Owner::new(high as u8));
            attached[low].links.push(one);
            attached[high].links.push(other);
        }
    }
}

impl Rehearsed for Moving<'_> {
    fn steps(&self) -> u64 {
        self.steps
    }

    fn play(&mut self) -> Option<Violation> {
        let what = self.run(Phase::Live, |world| world.is_fed());
        let what = what.or_else(|| {
            // A drain begins when nobody dies or comes back.
            self.is_ending = true;
            self.run(Phase::Live, |world| world.lives.is_settled() && !world.is_struck())
        });
        let what = what.or_else(|| self.run(Phase::Drain, |world| world.is_drained()));
        let is_settled = |world: &Moving<'_>| (0..STREAMS).all(|stream| world.owners(stream).len() == 1);
        let what = what.or_else(|| self.run(Phase::Drain, is_settled));
        let what = what.or_else(|| {
            let doubled = self.sum(|silo| board::get(&self.board.harvest(silo).duplicated));
            (doubled > 0).then(|| format!("{doubled} answers look doubled to harvest"))
        });
        let what = what.or_else(|| {
            let read = self.sum(|silo| board::get(&self.board.harvest(silo).joint_read));
            let consistent = self.sum(|silo| board::get(&self.board.harvest(silo).joint_consistent));
            (read != consistent).then(|| format!("of {read} joint readouts {consistent} are what both streams say"))
        });
        let what = what.or_else(|| {
            let (index, times) = self.answered.iter().enumerate().find(|(_, times)| **times != 1)?;
            Some(format!("shot {index} was answered {times} times"))
        });
        let what = what.or_else(|| (0..STREAMS).find_map(|stream| self.misjudged(stream)));
        what.map(|what| Violation { seed: self.seed, step: self.steps, what })
    }

    fn faults(&self) -> Vec<(String, u64)> {
        let snapshot = self.board.snapshot(&self.clock);
        let silos = snapshot.silos.iter();
        let errors = silos.flat_map(|silo| silo.errors.iter().map(|error| (error.name.clone(), error.count)));
        let moves = |of: fn(&crate::board::snapshot::MovesView) -> u64| {
            snapshot.silos.iter().filter_map(|silo| silo.moves.as_ref()).map(of).sum::<u64>()
        };
        let pages = |of: fn(&crate::board::snapshot::ArbiterView) -> u64| {
            snapshot.silos.iter().filter_map(|silo| silo.arbiter.as_ref()).map(of).sum::<u64>()
        };
        let elsewhere = snapshot.silos.iter().map(|silo| outcome(silo, OverflowOutcome::SentElsewhere)).sum();
        let lives = |of: fn(&LifeView) -> u64| snapshot.silos.iter().map(|silo| of(&silo.life)).sum::<u64>();
        let named = [
            ("silo_death", lives(|life| life.deaths)),
            ("silo_rejoin", lives(|life| life.rejoins)),
            ("silo_drain", lives(|life| life.drains)),
            ("moving_joint_read", self.sum(|silo| board::get(&self.board.harvest(silo).joint_read))),
            ("moving_joint_refused", self.sum(|silo| board::get(&self.board.harvest(silo).joint_refused))),
            ("stream_inherited", lives(|life| life.left)),
            ("moving_page_in_doubt", pages(|pages| pages.doubted)),
            ("moving_page_kept", pages(|pages| pages.kept)),
            ("stream_moved", moves(|moves| moves.done)),
            ("move_given_up", moves(|moves| moves.failed)),
            ("shot_staged", moves(|moves| moves.staged)),
            ("shot_handed_on", moves(|moves| moves.handed_on)),
            ("sent_elsewhere", elsewhere),
            ("move_refused", self.refused),
        ];
        errors.chain(named.map(|(name, count)| (name.to_string(), count))).collect()
    }
}
