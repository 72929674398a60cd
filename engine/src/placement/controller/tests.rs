//! The controller on a board and a clock that a test has.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{ControllerHandles, PLACE_TRIES, PlacementController, SAMPLES};
use crate::board::{self, Board, Phase, Place, Shape};
use crate::clock::Clock;
use crate::placement::decision::Decision;
use crate::profile::{PlacementRules, Profile, TakesPart};
use crate::roles::RoleKind;
use crate::roles::SiloState;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHAPE: Shape = Shape { threads: 2, silos: 2, slots: 64, workers: 8, decoders: 1, streams: 4 };
const LOOK_NS: u64 = 50_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Made,
    UnderWay,
    Failed,
}

struct Bench {
    board: Arc<Board>,
    clock: Clock,
    nanos: Arc<AtomicU64>,
    controller: PlacementController,
    asked: Vec<Decision>,
    /// Shots that become due in a look at silo 0, where 4 are taken up.
    due: u64,
    /// What the mover says.
    refusal: Option<String>,
    /// What becomes of a move that it takes, and of a placement.
    fate: Fate,
    placing: Fate,
    under_way: Rc<RefCell<Vec<u32>>>,
}

fn bench(change: impl FnOnce(&mut PlacementRules)) -> Bench {
    let board = Arc::new(Board::create(SHAPE, Place::Private).unwrap());
    let nanos = Arc::new(AtomicU64::new(LOOK_NS));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let mut rules = Profile::load("lab", None).unwrap().0.placement;
    rules.streams = TakesPart::All;
    rules.rebalance = true;
    change(&mut rules);
    for silo in 0..2 {
        let thread = board.thread(silo);
        board::set(&thread.state, 1);
        board::set(&thread.roles_count, 1);
        board::set(&thread.roles[0].identity, RoleKind::Decode as u64 | (silo as u64) << 8);
        board::set(&board.poll(silo).idle_mask, 0xff);
    }
    for stream in 0..4 {
        board::set(&board.stream_feed(stream).silo, stream as u64 % 2);
    }
    board::set(&board.header().phase, Phase::Live as u64);
    let controller = PlacementController::new(Arc::clone(&board), clock.clone(), rules);
    let (fate, placing, under_way) = (Fate::UnderWay, Fate::Failed, Rc::default());
    Bench { board, clock, nanos, controller, asked: Vec::new(), due: 4, refusal: None, fate, placing, under_way }
}

impl Bench {
    /// One snapshot long; silo 0 is busy for `busy` of it, and its streams 0 and 2 answer three to one.
    fn pass(&mut self, busy: f64) {
        for _ in 0..SAMPLES {
            let now = self.nanos.fetch_add(LOOK_NS, Ordering::Relaxed) + LOOK_NS;
            for silo in 0..2 {
                board::set(&self.board.thread(silo).heartbeat, now);
            }
            board::add(&self.board.decode(0, 0).busy_ticks, (busy * LOOK_NS as f64) as u64);
            board::add(&self.board.decode(1, 0).busy_ticks, LOOK_NS / 5);
            board::add(&self.board.stream_harvest(0).answered, 1);
            board::add(&self.board.stream_harvest(2).answered, 3);
            board::add(&self.board.harvest(0).answered, 4);
            board::add(&self.board.feed(0).submitted, 4);
            board::add(&self.board.feed(0).scheduled, self.due);
            self.hand(|controller, handles| controller.step(handles));
        }
    }

    /// Lets the controller do something.
    fn hand(&mut self, mut act: impl FnMut(&mut PlacementController, ControllerHandles<'_>)) {
        let (asked, refusal, board) = (&mut self.asked, &self.refusal, &self.board);
        let (fate, placing) = (self.fate, self.placing);
        let under_way = Rc::clone(&self.under_way);
        let mut ask = |decision: &Decision| {
            asked.push(*decision);
            if let Some(refusal) = refusal {
                return Err(refusal.clone());
            }
            let (stream, to, fate) = match *decision {
                Decision::Place { stream, silo, .. } => (stream, silo, placing),
                Decision::Move { stream, to, .. } => (stream, to, fate),
                Decision::Refuse { .. } => panic!("{decision:?}"),
            };
            match fate {
                Fate::Made => board::set(&board.stream_feed(stream as usize).silo, to.into()),
                Fate::UnderWay => under_way.borrow_mut().push(stream),
                Fate::Failed => {}
            }
            Ok(())
        };
        let moving = Rc::clone(&self.under_way);
        let is_moving = |stream: u32| moving.borrow().contains(&stream);
        act(&mut self.controller, ControllerHandles { at_rest: &|_, _| true, under_way: &is_moving, ask: &mut ask });
    }

    fn moves(&self) -> Vec<(u32, u32, u32)> {
        let moves = self.asked.iter().filter_map(|decision| match decision {
            Decision::Move { stream, from, to, .. } => Some((*stream, *from, *to)),
            _ => None,
        });
        moves.collect()
    }
}

#[test]
fn a_silo_that_stays_hot_gives_the_stream_away_that_closes_the_gap() {
    let mut bench = bench(|_| ());
    (0..3).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves(), [(0, 0, 1)], "of a gap of 0.7, 0.225 closes more than 0.675");
    let view = bench.board.snapshot(&bench.clock).placement.unwrap();
    assert_eq!((view.snapshot, view.moves_asked, view.crossings), (3, 1, [1, 0]));
    let made = &view.decisions[0];
    assert_eq!((made.what, made.why, made.stream, made.from, made.to), ("move", Some("hot"), 0, Some(0), Some(1)));
    assert!(made.on[0].max > 0.85 && made.on[1].max < 0.25, "{made:?}");
    assert!(view.spread_points.unwrap() > 30.0);
    assert!(view.silos[0].pressed_for_ns.is_some() && view.silos[1].unknown.is_none());
    let crossing = view.crossing.unwrap();
    assert_eq!((crossing.silo, crossing.queue, crossing.is_over), (0, "decode", true));
}

#[test]
fn a_silo_that_falls_behind_gives_away_what_comes_and_not_what_it_manages() {
    let mut bench = bench(|_| ());
    // Twice as much comes as is answered: 1.8 against 0.2, and half of the difference is its larger stream's 1.35.
    bench.due = 8;
    (0..3).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves(), [(0, 0, 1)], "0.45 fits; with 1.35 the other one would be far over");
    let view = bench.board.snapshot(&bench.clock).placement.unwrap();
    assert!((view.decisions[0].share - 0.45).abs() < 0.05, "{:?}", view.decisions[0]);
    // What had waited is worked off: full as it is, no more comes for it than for the other.
    let mut bench = self::bench(|_| ());
    bench.due = 1;
    (0..3).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves(), []);
}

#[test]
fn a_move_that_is_refused_is_counted_with_its_reason_and_asked_for_again() {
    let mut bench = bench(|_| ());
    bench.refusal = Some("there is no mover; wait until it starts".to_owned());
    (0..4).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves().len(), 2);
    let view = bench.board.snapshot(&bench.clock).placement.unwrap();
    assert_eq!((view.moves_asked, view.moves_refused), (0, 2));
    assert!(view.hindrance.unwrap().contains("no mover"));
    assert_eq!(view.decisions[0].what, "move_refused");
}

#[test]
fn new_streams_are_placed_once_and_those_that_take_no_part_keep_their_silo() {
    let mut bench = bench(|rules| (rules.streams, rules.rebalance) = (TakesPart::Only(vec![0, 2]), false));
    bench.placing = Fate::Made;
    (0..6).for_each(|_| bench.pass(0.5));
    let view = bench.board.snapshot(&bench.clock).placement.unwrap();
    assert_eq!((view.streams, view.placed), (2, 2));
    assert!(bench.asked.iter().all(|decision| matches!(decision, Decision::Place { stream: 0 | 2, silo: 1, .. })));
    assert!(!bench.asked.is_empty() && bench.moves().is_empty());
    assert_eq!(view.decision_ns.count(), 2);
}

#[test]
fn a_new_stream_is_placed_when_it_is_there_and_asked_for_again_when_its_move_fails() {
    let mut bench = bench(|rules| (rules.streams, rules.rebalance) = (TakesPart::Only(vec![0]), false));
    let placed = |bench: &Bench| bench.board.snapshot(&bench.clock).placement.unwrap().placed;
    bench.placing = Fate::UnderWay;
    bench.pass(0.9);
    bench.pass(0.9);
    assert_eq!((bench.asked.len(), placed(&bench)), (1, 0), "its move is under way");
    bench.under_way.borrow_mut().clear();
    bench.pass(0.9);
    assert_eq!((bench.asked.len(), placed(&bench)), (2, 0), "it has failed");
    (bench.placing, bench.refusal) = (Fate::Made, Some("found it full".to_owned()));
    bench.under_way.borrow_mut().clear();
    bench.pass(0.9);
    bench.refusal = None;
    bench.pass(0.9);
    assert_eq!((bench.asked.len(), placed(&bench)), (4, 0), "nor was it refused for good");
    bench.pass(0.9);
    assert_eq!((bench.asked.len(), placed(&bench)), (4, 1));
    let mut hopeless = self::bench(|rules| (rules.streams, rules.rebalance) = (TakesPart::Only(vec![0]), false));
    (0..2 * PLACE_TRIES).for_each(|_| hopeless.pass(0.9));
    assert_eq!((hopeless.asked.len(), placed(&hopeless)), (PLACE_TRIES as usize, 0));
}

#[test]
fn a_move_that_fails_is_asked_for_again_and_holds_nothing_up() {
    let mut bench = bench(|_| ());
    bench.fate = Fate::Failed;
    (0..3).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves(), [(0, 0, 1)]);
    (0..3).for_each(|_| bench.pass(0.9));
    assert_eq!(bench.moves().len(), 2, "a token would be out for four snapshots, and its pair rest for two");
}

/// Shots wait for silo 0 at its feed, more and more.
fn overflow(bench: &Bench, ms: u64) {
    board::set(&bench.board.feed(0).overflow_since, 1);
    board::add(&bench.board.feed(0).scheduled, 100);
    bench.nanos.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    let now = bench.nanos.load(Ordering::Relaxed);
    (0..2).for_each(|silo| board::set(&bench.board.thread(silo).heartbeat, now));
}

#[test]
fn relief_goes_by_no_old_reading_and_asks_nothing_of_a_silo_that_has_died() {
    let mut bench = bench(|rules| (rules.rebalance, rules.refresh_ms) = (false, 60_000));
    (bench.fate, bench.placing) = (Fate::Made, Fate::Made);
    // A virtual minute passes in the samples of a snapshot, and two more without one.
    (0..2).for_each(|_| bench.pass(0.1));
    bench.asked.clear();
    (0..4).for_each(|stream| board::set(&bench.board.stream_feed(stream).silo, 0));
    overflow(&bench, 120_000);
    bench.hand(|controller, handles| controller.relieve(handles));
    overflow(&bench, 10);
    bench.hand(|controller, handles| controller.relieve(handles));
    assert_eq!(bench.moves(), [], "two minutes old");
    board::set(&bench.board.lifecycle(1).state, SiloState::Dead as u64);
    for _ in 0..30 {
        overflow(&bench, 10);
        bench.hand(|controller, handles| controller.relieve(handles));
    }
    assert_eq!(bench.moves(), [], "the other one is dead");
    let hindrance = |bench: &Bench| bench.board.snapshot(&bench.clock).placement.unwrap().hindrance;
    assert!(hindrance(&bench).unwrap().contains("no other silo"));
    // Whoever writes over it: it holds.
    super::publish::hindrance(&bench.board, None);
    overflow(&bench, 10);
    bench.hand(|controller, handles| controller.relieve(handles));
    assert!(hindrance(&bench).unwrap().contains("no other silo"));
    board::set(&bench.board.lifecycle(1).state, SiloState::Live as u64);
    for _ in 0..30 {
        overflow(&bench, 10);
        bench.hand(|controller, handles| controller.relieve(handles));
    }
    assert!(!bench.moves().is_empty(), "by samples of its own");
}

#[test]
fn before_live_the_queues_are_read_and_nothing_is_decided() {
    let mut bench = bench(|_| ());
    board::set(&bench.board.header().phase, Phase::Warmup as u64);
    (0..5).for_each(|_| bench.pass(0.95));
    assert!(bench.asked.is_empty());
    let view = bench.board.snapshot(&bench.clock).placement.unwrap();
    assert_eq!((view.snapshot, view.decisions.len()), (5, 0));
    assert!(view.silos[0].max > 0.9);
}
