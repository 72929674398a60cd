//! Tests of the mover against two scripted arbiters.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{FailingOver, Mover, MoverParts, STEP_LIMIT};
use crate::arbiter::page::{Authority, Epoch, Response};
use crate::arbiter::requests::{ArbiterEndpoint, ArbiterReport, ArbiterRequest, endpoints};
use crate::board::snapshot::MovesView;
use crate::board::{Board, Place, Shape, get, set};
use crate::clock::Clock;
use crate::feed::lane::{Head, Piece};
use crate::feed::requests::{MoveRequest, MoveRequests};
use crate::hot::{Frame, Scratch};
use crate::streams::{MoveStage, OverflowOutcome};
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_edge::spin::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The feed of silo 0, the home of stream 2, and both arbiters' endpoints.
struct Bench {
    nanos: Arc<AtomicU64>,
    clock: Clock,
    board: Board,
    scratch: Scratch,
    requests: Arc<MoveRequests>,
    mover: Mover,
    arbiters: Vec<ArbiterEndpoint>,
    deadline: Nanos,
}

impl Bench {
    fn new() -> Bench {
        let nanos = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 4 };
        let board = Board::create(shape, Place::Private).unwrap();
        let requests = Arc::new(MoveRequests::new(4, 2, false));
        let (mut feeds, arbiters): (Vec<_>, Vec<_>) = endpoints(2).into_iter().unzip();
        let (endpoint, widths) = (feeds.remove(0), (1, 1));
        let mover = Mover::new(MoverParts { silo: 0, streams: 4, endpoint, requests: Arc::clone(&requests), widths });
        let (scratch, deadline) = (Scratch::new(), Nanos(0));
        Bench { nanos, clock, board, scratch, requests, mover, arbiters, deadline }
    }

    fn step(&mut self) {
        self.nanos.fetch_add(1_000, Ordering::Relaxed);
        let frame = Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch);
        let board = &self.board;
        self.mover.step(&frame, (true, FailingOver::No), (board, self.deadline), |_| 5);
    }

    /// Silo `dead` dies, and `successor` takes its streams over.
    fn die(&mut self, dead: usize, successor: usize) {
        let frame = Frame::new(&self.clock, self.clock.ticks(), Phase::Live, &mut self.scratch);
        self.mover.settle_transfer((dead, successor), &frame, self.board.moves(0), &mut |_, _| ());
    }

    /// The next request to silo `silo`, after a step of the mover.
    fn request(&mut self, silo: usize) -> Option<ArbiterRequest> {
        self.step();
        self.arbiters[silo].take(0)
    }

    fn ask(&mut self, to: u32) {
        self.requests.ask(MoveRequest { stream: 2, to, lease_ms: 3, by: Authority::Port }).unwrap();
    }

    fn view(&self) -> MovesView {
        self.board.snapshot(&self.clock).silos[0].moves.clone().unwrap()
    }

    fn stage(&self) -> Option<MoveStage> {
        self.view().open.first().map(|one| one.stage)
    }

    /// Puts the shot of number `sequence` into the stage.
    fn put(&mut self, sequence: u64) {
        let reply_to = ReplyTo { peer: 0, sequence };
        let head = Head {
            stream: 2,
            epoch: 0,
            sequence,
            reply_to,
            arrived: Ticks(1),
            truth_known: false,
            piece: Piece::Whole,
            refused: None,
        };
        assert!(self.mover.stage(2).unwrap().put(&head, &[sequence], &[0]));
    }
}

#[test]
fn a_stream_moves_by_quiesce_fetch_and_flip_and_its_staged_shots_go_before_direct_ones() {
    let mut bench = Bench::new();
    bench.ask(1);
    let Some(ArbiterRequest::Quiesce { number, page: 2, below: 5 }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    assert!(!bench.mover.is_direct(2) && bench.mover.is_direct(0), "only its shots are staged");
    assert_eq!(bench.stage(), Some(MoveStage::Quiesce));
    bench.put(5);
    bench.put(6);
    bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
    assert_eq!(
        bench.request(1),
        Some(ArbiterRequest::Fetch { number, page: 2, lease_us: 3_000, authority: Authority::Port })
    );
    assert!(bench.mover.resuming(0).is_none() && bench.mover.route(2) == (0, 0), "not before the page is there");
    bench.arbiters[1].send(0, ArbiterReport::Here { number, epoch: Epoch::new(7) });
    bench.step();
    assert_eq!((bench.mover.route(2), bench.stage()), ((1, 7), Some(MoveStage::Resume)));
    assert_eq!(bench.board.snapshot(&bench.clock).streams[2].silo, 1);
    assert!(bench.mover.stage_room(2).is_some_and(|room| room > 0));
    bench.put(7);
    bench.mover.note_staged(2);
    assert_eq!(bench.mover.stage_room(2), Some(0), "the stage must empty");
    for sequence in [5, 6, 7] {
        let (stream, stage) = bench.mover.resuming(0).unwrap();
        let (mut detectors, mut observables) = ([0], [0]);
        let head = stage.take(&mut detectors, &mut observables).unwrap();
        bench.mover.note_gone(2);
        assert_eq!((stream, head.sequence, detectors), (2, sequence, [sequence]));
        assert!(bench.mover.stage(2).is_some(), "later ones queue up behind");
        bench.step();
    }
    assert!(bench.mover.stage(2).is_none() && bench.mover.is_quiet() && !bench.mover.is_direct(2));
    let view = bench.view();
    assert_eq!((view.asked, view.done, view.failed, view.pause.count(), view.open.len()), (1, 1, 0, 1, 0));
    bench.ask(1);
    bench.step();
    assert_eq!((bench.view().needless, bench.mover.is_quiet()), (1, true), "it is there already");
}

#[test]
fn a_failed_transfer_returns_the_page_and_the_board_shows_the_refusal() {
    let mut bench = Bench::new();
    bench.ask(1);
    let Some(ArbiterRequest::Quiesce { number, .. }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
    assert!(matches!(bench.request(1), Some(ArbiterRequest::Fetch { .. })));
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    assert_eq!(bench.request(1), Some(ArbiterRequest::Cancel { number, page: 2 }));
    assert_eq!(bench.request(1), None, "cancelled once");
    let refusal = Some(Response::LeaseActive { left_us: 9 });
    bench.arbiters[1].send(0, ArbiterReport::Cancelled { number, refusal });
    assert_eq!(
        bench.request(0),
        Some(ArbiterRequest::Fetch { number, page: 2, lease_us: 0, authority: Authority::Port })
    );
    assert_eq!(bench.stage(), Some(MoveStage::Return));
    bench.arbiters[0].send(0, ArbiterReport::Here { number, epoch: Epoch::new(9) });
    bench.step();
    bench.step();
    assert!(bench.mover.is_quiet() && bench.mover.is_direct(2));
    let view = bench.view();
    assert_eq!((view.done, view.failed), (0, 1));
    assert!(view.last_failure.unwrap().why.contains("silo 0: lease_active"));
}

#[test]
fn an_owner_that_does_not_finish_keeps_its_stream_and_a_late_page_counts() {
    let mut bench = Bench::new();
    bench.ask(1);
    let Some(ArbiterRequest::Quiesce { number, .. }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    assert_eq!(bench.request(0), Some(ArbiterRequest::Cancel { number, page: 2 }));
    bench.arbiters[0].send(0, ArbiterReport::Cancelled { number, refusal: None });
    bench.step();
    bench.step();
    assert!(bench.mover.is_direct(2) && bench.view().failed == 1);
    bench.ask(1);
    let Some(ArbiterRequest::Quiesce { number, .. }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
    bench.step();
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    bench.step();
    // The page arrives before the cancel.
    bench.arbiters[1].send(0, ArbiterReport::Here { number, epoch: Epoch::new(3) });
    bench.step();
    assert!(!bench.mover.is_quiet(), "the answer to the cancel is due");
    bench.arbiters[1].send(0, ArbiterReport::Cancelled { number, refusal: None });
    bench.step();
    assert!(bench.mover.is_quiet() && bench.mover.route(2) == (1, 3) && bench.view().done == 1);
}

/// Begins a move of stream 2 to silo 1, whose owner is asked to cancel.
fn overdue(bench: &mut Bench) -> u32 {
    let number = begun(bench, 0);
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    assert_eq!(bench.request(0), Some(ArbiterRequest::Cancel { number, page: 2 }));
    number
}

#[test]
fn a_move_goes_on_whose_owner_was_quiet_and_died_before_it_answered_the_cancel() {
    let mut bench = Bench::new();
    let number = overdue(&mut bench);
    bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
    assert_eq!(bench.request(1), None, "the answer to the cancel is due");
    bench.die(0, 1);
    let fetch = ArbiterRequest::Fetch { number, page: 2, lease_us: 3_000, authority: Authority::Port };
    assert_eq!(bench.request(1), Some(fetch));
    bench.arbiters[1].send(0, ArbiterReport::Here { number, epoch: Epoch::new(4) });
    bench.step();
    bench.step();
    assert!(bench.mover.is_quiet() && bench.mover.route(2) == (1, 4));
}

/// Both would answer, and the later answer would lead the shots to the dead silo.
#[test]
fn where_the_owner_takes_over_from_the_destination_and_dies_one_request_goes_to_its_successor() {
    let mut bench = Bench::new();
    let number = begun(&mut bench, 0);
    bench.die(1, 0);
    bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
    bench.die(0, 1);
    assert!(bench.mover.is_unassigned(2, 0));
    assert_eq!(bench.request(1), None, "the takeover request follows");
    assert!(bench.mover.take_over_stream(2, 1, 5));
    assert_eq!(bench.request(1), Some(ArbiterRequest::TakeOver { number: number + 1, page: 2, below: 5 }));
    bench.arbiters[1].send(0, ArbiterReport::Here { number: number + 1, epoch: Epoch::new(4) });
    bench.step();
    bench.step();
    assert!(bench.mover.is_quiet() && bench.mover.route(2) == (1, 4));
}

#[test]
fn a_living_owner_is_asked_to_cancel_once_although_the_destination_dies() {
    let mut bench = Bench::new();
    let number = overdue(&mut bench);
    bench.die(1, 0);
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    assert_eq!(bench.request(0), None, "its answer is due");
    bench.arbiters[0].send(0, ArbiterReport::Cancelled { number, refusal: None });
    bench.step();
    bench.step();
    assert!(bench.mover.is_quiet() && bench.mover.is_direct(2));
}

/// Begins a move of stream 2 to silo 1, with `slots` shots in the slots of silo 0.
fn begun(bench: &mut Bench, slots: u64) -> u32 {
    set(&bench.board.feed(0).position, slots);
    bench.ask(1);
    let Some(ArbiterRequest::Quiesce { number, .. }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    number
}

#[test]
fn a_move_waits_while_the_owner_answers_its_backlog_and_is_cancelled_when_it_stalls() {
    let mut bench = Bench::new();
    let number = begun(&mut bench, 20);
    for answered in 1..=20 {
        bench.nanos.fetch_add(STEP_LIMIT.0 * 9 / 10, Ordering::Relaxed);
        set(&bench.board.harvest(0).position, answered);
        assert_eq!(bench.request(0), None, "{answered} of 20 are answered, of {STEP_LIMIT:?} each");
    }
    // Later answers are for later shots; the owner makes no progress with this stream's shots.
    bench.nanos.fetch_add(STEP_LIMIT.0 * 9 / 10, Ordering::Relaxed);
    set(&bench.board.harvest(0).position, 21);
    assert_eq!(bench.request(0), None);
    bench.nanos.fetch_add(STEP_LIMIT.0 * 2 / 10, Ordering::Relaxed);
    assert_eq!(bench.request(0), Some(ArbiterRequest::Cancel { number, page: 2 }));
}

#[test]
fn an_owner_has_at_least_the_deadline_of_a_shot() {
    let mut bench = Bench::new();
    bench.deadline = Nanos::from_millis(900);
    let number = begun(&mut bench, 20);
    bench.nanos.fetch_add(bench.deadline.0, Ordering::Relaxed);
    assert_eq!(bench.request(0), None, "the last of its shots may be answered just now");
    bench.nanos.fetch_add(STEP_LIMIT.0, Ordering::Relaxed);
    assert_eq!(bench.request(0), Some(ArbiterRequest::Cancel { number, page: 2 }));
}

#[test]
fn a_failed_move_differs_from_one_under_way() {
    let mut bench = Bench::new();
    assert!(!bench.requests.is_under_way(2));
    bench.ask(1);
    assert!(bench.requests.is_under_way(2) && !bench.requests.is_under_way(0), "pending requests count as under way");
    let Some(ArbiterRequest::Quiesce { number, .. }) = bench.request(0) else {
        panic!("the owner is asked to quiesce")
    };
    bench.arbiters[0].send(0, ArbiterReport::Cancelled { number, refusal: None });
    assert!(bench.requests.is_under_way(2));
    bench.step();
    bench.step();
    assert!(!bench.requests.is_under_way(2) && bench.view().failed == 1);
    bench.ask(0);
    bench.step();
    assert!(!bench.requests.is_under_way(2) && bench.view().needless == 1, "it is there");
}

#[test]
fn staged_shots_count_as_sent_elsewhere_only_if_the_move_succeeds() {
    for moves in [true, false] {
        let mut bench = Bench::new();
        assert!(!bench.mover.defer(2), "it does not move");
        let number = begun(&mut bench, 0);
        bench.put(5);
        assert!(bench.mover.defer(2) && !bench.mover.defer(0));
        if moves {
            bench.arbiters[0].send(0, ArbiterReport::Quiet { number });
            bench.step();
            bench.arbiters[1].send(0, ArbiterReport::Here { number, epoch: Epoch::new(7) });
        } else {
            bench.arbiters[0].send(0, ArbiterReport::Cancelled { number, refusal: None });
        }
        bench.step();
        assert!(!bench.mover.defer(2), "its destination is known");
        assert_eq!(bench.mover.bound(2).routed_since != Ticks(0), moves);
        let (_, stage) = bench.mover.resuming(0).unwrap();
        let _ = stage.take(&mut [0], &mut [0]).unwrap();
        bench.step();
        let outcome = if moves { OverflowOutcome::SentElsewhere } else { OverflowOutcome::Waited };
        for counted in [&bench.board.feed(0).overflow, &bench.board.stream_feed(2).overflow] {
            let total: u64 = counted.iter().map(get).sum();
            assert_eq!((get(&counted[outcome as usize]), total), (1, 1), "{outcome:?}");
        }
    }
}
