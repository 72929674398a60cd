//! The supervisor of three silos whose roles do not run: the test moves streams as feeds do.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{PathControl, SiloState, SiloSupervisor, Step, SupervisorParts, Transition};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board, Place, Shape};
use crate::clock::Clock;
use crate::code::Model;
use crate::feed::Share;
use crate::feed::requests::MoveRequests;
use crate::feed::source::Source;
use crate::feed::stage::stage;
use crate::hot::{RoleSpec, Settings};
use crate::pipe::home;
use crate::profile::{Decoder, Device, Latency, Predecoder, Profile, Silos, TakesPart, Window};
use crate::silo::{Answers, Common, Decoding, Silo, SiloCommand, SiloCommands, connect, wire};
use crate::units::{Nanos, Ticks};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

const SILOS: u32 = 3;
const STREAMS: u32 = 6;

/// Paths that end at once; a role of those named has died.
#[derive(Default)]
struct Paths {
    died: Vec<usize>,
}

impl PathControl for Paths {
    fn stop(&mut self, _: usize) {}
    fn fenced(&self, silo: usize) -> Option<Fenced> {
        Some(Fenced::joined(Owner::new(silo as u8), Vec::<JoinHandle<()>>::new()).0)
    }
    fn died(&self, silo: usize) -> Option<String> {
        self.died.contains(&silo).then(|| "a role of it died".to_owned())
    }
    fn restart(&mut self, _: usize, _: Vec<RoleSpec>) {}
    fn restarted(&mut self, _: usize) -> Option<Result<(), String>> {
        Some(Ok(()))
    }
}

struct Bench {
    supervisor: SiloSupervisor,
    silos: Vec<Silo>,
    paths: Paths,
    board: Arc<Board>,
    moves: Arc<MoveRequests>,
    now: Ticks,
    /// By silo: requests that its feed has taken.
    taken: [u64; SILOS as usize],
}

impl Bench {
    /// Live silos; `placed`: the streams that the placement director places.
    fn new(placed: TakesPart) -> Bench {
        let mut profile = Profile::load("lab", None).unwrap().0;
        (profile.silos, profile.slots, profile.input.streams) = (Silos::Count(SILOS), 16, STREAMS);
        profile.device = Device::Sim { latency: Latency::None };
        profile.input.joint_every = None;
        profile.placement.streams = placed;
        let model = Arc::new(Model::parse(b"error(0.1) D0 L0\n").unwrap());
        let decoding = Decoding::new(Arc::clone(&model), Decoder::Matching, Predecoder::None, Window::None).unwrap();
        let (slots, workers) = (profile.slots, profile.device_workers());
        let shape = Shape { threads: 1, silos: SILOS, slots, workers, decoders: 1, streams: STREAMS };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let moves = Arc::new(MoveRequests::new(STREAMS, SILOS, false));
        let common = Common {
            board: Arc::clone(&board),
            settings: Arc::new(Settings::new(&profile.limits)),
            clock: Clock::virtual_time(Arc::new(AtomicU64::new(1))),
            decoders: decoding.changes(),
            decoding,
            moves: Arc::clone(&moves),
            joints: None,
        };
        let connected = connect(SILOS, &model, &moves);
        let wired = |(silo, attached)| {
            let (share, source) = (Share::of(silo, SILOS, STREAMS, None), Source::Stage(stage(1).1));
            wire(&profile, share, 1, source, Answers::Counted, attached, &common).unwrap()
        };
        let silos = (0..).zip(connected.pieces).map(wired).collect();
        let (decoders, commands) = (vec![1; SILOS as usize], Arc::new(SiloCommands::new(SILOS)));
        let notifiers = connected.notifiers;
        let supervisor = SiloSupervisor::new(SupervisorParts { profile, common, decoders, notifiers, commands });
        let bench = Bench { supervisor, silos, paths: Paths::default(), board, moves, now: Ticks(1), taken: [0; 3] };
        (0..STREAMS).for_each(|stream| bench.point(stream, home(stream, SILOS)));
        bench
    }

    /// The shots of `stream` go to `silo` from now on.
    fn point(&self, stream: u32, silo: usize) {
        board::set(&self.board.stream_feed(stream as usize).silo, silo as u64);
    }

    fn step(&mut self) {
        let later = self.supervisor.parts.common.clock.rate().ticks(Nanos::from_millis(100));
        self.now = self.now.plus(later);
        self.supervisor.step(&mut self.silos, &mut self.paths, self.now);
    }

    /// Steps for 10 s. The moves that the supervisor asks for, which are made at once: stream, silo.
    fn moved(&mut self) -> Vec<(u32, u32)> {
        let mut moved = Vec::new();
        for _ in 0..100 {
            self.step();
            self.make_moves(&mut moved);
        }
        moved
    }

    fn make_moves(&mut self, moved: &mut Vec<(u32, u32)>) {
        for silo in 0..SILOS as usize {
            while let Some(request) = self.moves.take(silo, self.taken[silo]) {
                self.taken[silo] += 1;
                self.point(request.stream, request.to as usize);
                self.moves.end(request.stream);
                moved.push((request.stream, request.to));
            }
        }
    }

    fn ask(&mut self, silo: u32, command: SiloCommand) {
        self.supervisor.commands().ask(silo, command).unwrap();
        self.step();
    }

    /// `silo` dies, and `successor` has its streams.
    fn die(&mut self, silo: usize, successor: usize) {
        self.supervisor.begin_death(silo, "", &mut self.paths, self.now);
        let transition = self.supervisor.transition.take().unwrap();
        let streams: Vec<u32> = self.supervisor.streams_of(silo).collect();
        streams.iter().for_each(|stream| self.point(*stream, successor));
        self.supervisor.end_death(&transition, streams.len(), self.now);
    }

    /// The path of `silo` is built again.
    fn rejoin(&mut self, silo: usize) {
        let transition = Transition { silo, step: Step::BuildingRoles, began: self.now, since: self.now };
        self.supervisor.records[silo].successor = None;
        self.supervisor.end_return(&transition, self.now);
    }
}

#[test]
fn streams_of_a_silo_that_failed_return_unless_someone_has_moved_them() {
    // When stream 1 is moved elsewhere: before the failure, while the silo is dead, or when it has returned.
    for moved in 0..4 {
        let mut bench = Bench::new(TakesPart::Nobody);
        if moved == 1 {
            bench.point(1, 2);
        }
        bench.die(1, 0);
        assert_eq!(bench.moved(), [], "it is dead");
        if moved == 2 {
            bench.point(1, 2);
        }
        bench.rejoin(1);
        let mut returned = Vec::new();
        bench.step();
        bench.make_moves(&mut returned);
        if moved == 3 {
            bench.step();
            bench.point(1, 2);
        }
        assert_eq!(bench.moved(), [], "{moved}: each is asked once");
        let expected: &[_] = if moved == 1 || moved == 2 { &[(4, 1)] } else { &[(1, 1), (4, 1)] };
        assert_eq!(returned, expected, "{moved}");
    }
}

#[test]
fn streams_of_a_failed_silo_return_to_it_after_their_next_silo_has_failed_too() {
    let mut bench = Bench::new(TakesPart::Nobody);
    bench.die(1, 0);
    assert_eq!(bench.moved(), []);
    bench.die(0, 2);
    assert_eq!(bench.moved(), []);
    bench.rejoin(1);
    assert_eq!(bench.moved(), [(1, 1), (4, 1)]);
    bench.rejoin(0);
    assert_eq!(bench.moved(), [(0, 0), (3, 0)]);
}

#[test]
fn a_stream_that_still_leaves_a_drained_silo_when_that_rejoins_returns() {
    let mut bench = Bench::new(TakesPart::Nobody);
    bench.ask(1, SiloCommand::Drain);
    assert!(bench.moves.is_under_way(1));
    bench.ask(1, SiloCommand::Rejoin);
    bench.step();
    assert_eq!(bench.moved(), [(1, 0), (4, 2), (1, 1), (4, 1)]);
}

#[test]
fn a_stream_that_arrives_at_a_drained_silo_leaves_it_and_returns_when_that_rejoins() {
    let mut bench = Bench::new(TakesPart::Nobody);
    bench.point(4, 2);
    bench.ask(1, SiloCommand::Drain);
    assert_eq!(bench.moved(), [(1, 0)]);
    assert_eq!(bench.supervisor.state(1), SiloState::Drained);
    bench.point(4, 1);
    assert_eq!(bench.moved(), [(4, 2)]);
    bench.ask(1, SiloCommand::Rejoin);
    assert_eq!(bench.moved(), [(1, 1), (4, 1)]);
}

#[test]
fn streams_that_the_director_does_not_place_return() {
    let mut bench = Bench::new(TakesPart::Only(vec![4]));
    bench.die(1, 0);
    bench.rejoin(1);
    assert_eq!(bench.moved(), [(1, 1)]);
}

#[test]
fn a_dead_silo_is_no_successor() {
    for (dead, died, expected) in [(2, None, Some(0)), (0, None, Some(2)), (2, Some(0), None), (0, Some(2), None)] {
        let mut bench = Bench::new(TakesPart::Nobody);
        bench.die(dead, 1);
        // All streams are at other silos: the dead one has the fewest.
        (0..STREAMS).for_each(|stream| bench.point(stream, if stream == 0 { 1 } else { 2 - dead }));
        bench.paths.died.extend(died);
        assert_eq!(bench.supervisor.successor_of(1, &bench.paths), expected, "{dead} is dead, {died:?} has died");
    }
}

#[test]
fn a_dead_silos_pages_are_taken_over_only_after_its_last_answers_are_counted() {
    let mut bench = Bench::new(TakesPart::Nobody);
    bench.supervisor.begin_death(1, "", &mut bench.paths, bench.now);
    let step_of = |bench: &Bench| bench.supervisor.transition.as_ref().map(|transition| transition.step.awaited());
    // Its slots are free already, of which harvest has counted all but one.
    bench.supervisor.transition.as_mut().unwrap().step = Step::EmptyingSlots { written: 9 };
    board::set(&bench.board.harvest(1).position, 8);
    bench.step();
    assert_eq!(step_of(&bench), Some("its last answers to be harvested"));
    board::set(&bench.board.harvest(1).position, 9);
    bench.step();
    assert_eq!(step_of(&bench), Some("every arbiter to settle its pages"));
}
