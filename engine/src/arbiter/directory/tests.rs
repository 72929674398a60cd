//! Several directories on one thread, over a channel that the test controls.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use super::{Context, OPEN_MAX, OwnershipDirectory};
use crate::arbiter::deadlines::Timebase;
use crate::arbiter::driver::{Asked, Gva, PAGE_BYTES, Released};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Cause;
use crate::arbiter::page::{
    Authority, Epoch, Hint, Limits, PageTable, Request, Response, Role, Routes, Signals, Silo, State, WriteBuffer,
};
use crate::arbiter::ports::OFFERS_MAX;
use crate::arbiter::protocol::{Change, Message};
use crate::arbiter::retry::BackOff;
use crate::board::{Board, Place, Shape};
use crate::clock::Clock;
use crate::units::{TickRate, Ticks};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const SILOS: usize = 3;
const PAGES: u32 = 300;

type Sent = (Silo, Silo, u32, Message, u64);

/// Bytes, clock and outgoing messages of one silo.
struct Plain {
    me: Silo,
    now_ns: u64,
    values: Vec<u64>,
    incoming: u64,
    takeovers: Vec<Vec<u64>>,
    out: VecDeque<Sent>,
}

impl Context for Plain {
    fn signals(&self, _: u32) -> Signals {
        Signals { write_buffer: WriteBuffer::Drained }
    }
    fn put(&mut self, page: u32) {
        self.values[page as usize] = self.incoming;
    }
    fn take_over(&mut self, page: u32, dead: Silo) {
        self.values[page as usize] = self.takeovers[dead.number() as usize][page as usize];
    }
    fn send(&mut self, to: Silo, page: u32, message: Message) {
        let value = self.values[page as usize];
        self.out.push_back((self.me, to, page, message, value));
    }
    fn ticks(&self) -> Ticks {
        Ticks(self.now_ns)
    }
}

struct World {
    silos: Vec<(OwnershipDirectory, Plain)>,
    tables: Vec<Arc<PageTable>>,
    dead: Vec<Silo>,
}

impl World {
    /// Silo 1 owns all pages.
    fn new() -> World {
        let base = Timebase { rate: TickRate::NANOS, start: Ticks(0) };
        let tables: Vec<_> = (0..SILOS as u8)
            .map(|silo| Arc::new(PageTable::new(Silo::new(silo), PAGES, Limits::SEED, |_| Silo::new(1))))
            .collect();
        let silo = |table: &Arc<PageTable>| {
            let routes = Arc::new(Routes::new(PAGES, |_| Silo::new(1)));
            let (values, takeovers) = (vec![0; PAGES as usize], vec![Vec::new(); SILOS]);
            let plain = Plain { me: table.silo(), now_ns: 1_000, values, incoming: 0, takeovers, out: VecDeque::new() };
            (OwnershipDirectory::new(Arc::clone(table), routes, base, |_| 0), plain)
        };
        World { silos: tables.iter().map(silo).collect(), tables, dead: Vec::new() }
    }

    fn ask(&mut self, silo: usize, page: u32, hint: Hint) -> Asked {
        let (directory, plain) = &mut self.silos[silo];
        let gva = Gva(u64::from(page) * PAGE_BYTES);
        directory.request_ownership(plain, gva, (hint, 50), &BackOff::new(1)).unwrap()
    }

    /// Delivers one message, or drops it unless `keeps`.
    fn deliver(&mut self, from: usize, keeps: bool) -> Option<Change> {
        let (from, to, page, message, value) = self.silos[from].1.out.pop_front()?;
        if !keeps || self.dead.contains(&to) {
            return None;
        }
        let (directory, plain) = &mut self.silos[to.number() as usize];
        plain.incoming = value;
        let change = directory.receive(plain, page, from, &message);
        directory.decide(plain);
        Some(change)
    }

    fn settle(&mut self) {
        for _ in 0..40 {
            for silo in (0..SILOS).filter(|silo| !self.dead.contains(&Silo::new(*silo as u8))) {
                let (directory, plain) = &mut self.silos[silo];
                plain.now_ns += 5_000;
                directory.look(plain);
            }
            for silo in 0..SILOS {
                while !self.silos[silo].1.out.is_empty() {
                    self.deliver(silo, true);
                }
            }
        }
    }

    fn write(&mut self, silo: usize, page: u32, value: u64) {
        let (directory, plain) = &mut self.silos[silo];
        let moment = directory.moment(plain.ticks());
        directory.table().begin_write(page).unwrap().commit(moment);
        plain.values[page as usize] = value;
    }

    /// Silo 1's thread has ended; silo 0 is its successor.
    fn skip(&mut self) {
        let (fenced, _) = Fenced::joined(Silo::new(1), [std::thread::spawn(|| ())]);
        self.dead.push(Silo::new(1));
        let left = self.silos[1].1.values.clone();
        for silo in [0, 2] {
            let (directory, plain) = &mut self.silos[silo];
            plain.takeovers[1] = left.clone();
            directory.take_over_pages(plain, &fenced, &self.tables[1], Silo::new(0));
        }
    }

    fn owners(&self, page: u32) -> Vec<usize> {
        let owns = |silo: &usize| self.tables[*silo].word(page).is_writable();
        (0..SILOS).filter(|silo| !self.dead.contains(&Silo::new(*silo as u8))).filter(owns).collect()
    }
}

#[test]
fn a_requested_page_arrives_with_its_bytes_and_flips_the_route_at_both_ends() {
    let mut world = World::new();
    world.write(1, 7, 41);
    world.silos[1].1.now_ns += 2_000;
    assert!(matches!(world.ask(0, 7, Hint::Lock), Asked::Send { to, page: 7, .. } if to == Silo::new(1)));
    world.deliver(0, true).unwrap();
    assert_eq!(world.silos[1].0.routes.route(7).role(Silo::new(1)), Role::Owner, "not before the ACK");
    assert_eq!(world.deliver(1, true), Some(Change::Arrived(Epoch::new(1))));
    world.deliver(0, true).unwrap();
    assert_eq!((world.owners(7), world.silos[0].1.values[7]), (vec![0], 41));
    for silo in [0, 1] {
        let route = world.silos[silo].0.routes.route(7);
        assert_eq!((route.to, route.from, route.epoch), (Silo::new(0), Silo::new(1), Epoch::new(1)), "at silo {silo}");
    }
    assert!(matches!(world.ask(0, 7, Hint::Lock), Asked::Here(Response::LeaseYours { .. })));
    let now = world.silos[0].1.ticks();
    assert_eq!(world.silos[0].0.release_ownership(Gva(7 * PAGE_BYTES), now), Ok(Released::Given));
    let causes: Vec<_> = world.silos[0].0.history(7).map(|transition| transition.cause).collect();
    assert_eq!(causes, [Cause::Arrived, Cause::Released]);
    let causes: Vec<_> = world.silos[1].0.history(7).map(|transition| transition.cause).collect();
    assert_eq!(causes, [Cause::Granted, Cause::Left]);
}

#[test]
fn a_lost_ack_leaves_a_transfer_in_doubt_until_a_cancel() {
    let mut world = World::new();
    let _ = world.ask(0, 7, Hint::Default);
    world.deliver(0, true).unwrap();
    world.deliver(1, true).unwrap();
    world.deliver(0, false);
    assert_eq!(world.silos[1].0.transfers_open(), 1);
    world.settle();
    assert_eq!((world.owners(7), world.silos[1].0.transfers_open()), (vec![0], 0));
    let counts = world.silos[1].0.counts();
    assert_eq!((counts.doubted, counts.left, counts.kept, counts.cancels), (1, 1, 0, 1));
}

#[test]
fn a_lost_grant_comes_back_and_the_page_is_written_again() {
    let mut world = World::new();
    let _ = world.ask(0, 7, Hint::Default);
    world.deliver(0, true).unwrap();
    world.deliver(1, false);
    world.settle();
    assert_eq!((world.owners(7), world.silos[1].0.counts().kept), (vec![1], 1));
    let causes: Vec<_> = world.silos[0].0.history(7).map(|transition| transition.cause).collect();
    assert_eq!(causes, [Cause::Fenced]);
    world.write(1, 7, 5);
    world.silos[1].1.now_ns += 2_000;
    let _ = world.ask(0, 7, Hint::Default);
    world.settle();
    assert_eq!((world.owners(7), world.silos[0].1.values[7]), (vec![0], 5), "the fence was for one grant");
}

#[test]
fn a_dead_silos_pages_go_to_its_successor_alone() {
    let mut world = World::new();
    for page in 0..PAGES {
        world.write(1, page, u64::from(page) + 1);
    }
    world.settle();
    // Page 3: granted to silo 2, which installed it; page 4: the grant is lost; page 5: granted to
    // the successor, and lost.
    for (silo, page, arrives) in [(2, 3, true), (2, 4, false), (0, 5, false)] {
        let _ = world.ask(silo, page, Hint::Default);
        world.deliver(silo, true).unwrap();
        world.deliver(1, arrives);
        world.silos[silo].1.out.clear();
    }
    std::mem::forget(world.tables[1].begin_write(6).unwrap());
    world.skip();
    assert!(world.owners(9).is_empty());
    world.settle();
    for page in 0..PAGES {
        let owner = if page == 3 { 2 } else { 0 };
        assert_eq!(world.owners(page), [owner], "page {page}");
        assert_eq!(world.silos[owner].1.values[page as usize], u64::from(page) + 1, "page {page}");
    }
    let counts = world.silos[0].0.counts();
    assert_eq!((counts.torn, counts.taken_over, counts.kept), (1, u64::from(PAGES) - 2, 1));
    // A silo that still has the dead silo as owner reaches the successor.
    let Asked::Send { to, .. } = world.ask(2, 200, Hint::Migrate) else { panic!("page 200 is not silo 2's") };
    assert_eq!(to, Silo::new(0));
    world.settle();
    let _ = world.ask(2, 200, Hint::Migrate);
    world.settle();
    assert_eq!(world.owners(200), [2]);
}

#[test]
fn a_requested_page_is_taken_over_at_once() {
    let mut world = World::new();
    world.write(1, 290, 7);
    world.skip();
    let Asked::Here(response) = world.ask(0, 290, Hint::Default) else {
        panic!("the successor decides its own request")
    };
    assert!(response.is_granted() && world.silos[0].1.values[290] == 7, "{response:?}");
    assert!(world.owners(291).is_empty(), "it is taken over later");
}

#[test]
fn a_transfer_to_a_dead_silo_ends_with_its_last_message() {
    let mut world = World::new();
    let _ = world.ask(2, 8, Hint::Default);
    world.settle();
    assert_eq!(world.owners(8), [2]);
    // Back to silo 1, which dies before the grant arrives.
    let _ = world.ask(1, 8, Hint::Default);
    world.deliver(1, true).unwrap();
    world.silos[2].1.out.clear();
    world.skip();
    assert_eq!((world.owners(8), world.silos[2].0.transfers_open()), (vec![2], 0));
    world.settle();
    assert_eq!(world.owners(8), [2], "the successor did not take it");
}

#[test]
fn a_page_granted_to_a_silo_that_died_before_the_decision_comes_back() {
    let mut world = World::new();
    let _ = world.ask(0, 8, Hint::Default);
    world.settle();
    assert_eq!((world.owners(8), world.silos[0].0.counts().kept), (vec![0], 0));
    let epoch = world.tables[0].word(8).epoch();
    let asked = Message::Request(Request { epoch, ..request(1, Hint::Default) });
    let (directory, plain) = &mut world.silos[0];
    let _ = directory.receive(plain, 8, Silo::new(1), &asked);
    world.skip();
    let (directory, plain) = &mut world.silos[0];
    directory.decide(plain);
    assert!(world.owners(8).is_empty(), "it is granted to silo 1");
    world.settle();
    assert_eq!((world.owners(8), world.silos[0].0.counts().kept), (vec![0], 1));
}

#[test]
fn the_successor_learns_from_the_dead_silo_who_has_its_former_pages() {
    let mut world = World::new();
    let _ = world.ask(2, 8, Hint::Default);
    world.settle();
    assert_eq!(world.tables[0].word(8).owner(), Silo::new(1), "nobody told silo 0 of the move");
    world.skip();
    world.settle();
    assert_eq!((world.owners(8), world.tables[0].word(8).owner()), (vec![2], Silo::new(2)));
}

#[test]
fn requests_beyond_the_open_transfers_get_try_later() {
    let mut world = World::new();
    for page in 0..OPEN_MAX as u32 + 1 {
        let _ = world.ask(0, page, Hint::Default);
        world.deliver(0, true);
    }
    assert_eq!(world.silos[1].0.transfers_open(), OPEN_MAX);
    let (.., refused, _) = world.silos[1].1.out.pop_back().unwrap();
    assert_eq!(refused, Message::Refused(Response::TryLater));
}

#[test]
fn a_page_that_the_silo_grants_itself_makes_no_room_for_a_transfer() {
    let mut world = World::new();
    for page in 0..OPEN_MAX as u32 {
        let _ = world.ask(0, page, Hint::Default);
        world.deliver(0, true);
    }
    let (directory, plain) = &mut world.silos[1];
    plain.out.clear();
    for (page, from) in [(200, 1), (201, 0)] {
        let _ = directory.receive(plain, page, Silo::new(from), &Message::Request(request(from, Hint::Default)));
    }
    directory.decide(plain);
    let answers: Vec<_> = plain.out.iter().map(|(_, to, page, message, _)| (to.number(), *page, *message)).collect();
    assert_eq!(answers[1], (0, 201, Message::Refused(Response::TryLater)));
    assert!(matches!(answers[0], (1, 200, Message::Refused(response)) if response.is_granted()), "{answers:?}");
}

#[test]
fn a_takeover_brings_more_transfers_than_are_awaited_at_once_and_all_of_them_end() {
    let mut world = World::new();
    let _ = world.ask(0, 200, Hint::Default);
    world.settle();
    let _ = world.ask(2, 200, Hint::Default);
    world.settle();
    // The successor awaits one transfer, the silo that dies as many as it can; all grants are lost.
    for page in (0..OPEN_MAX as u32).chain([200]) {
        let _ = world.ask(2, page, Hint::Default);
        world.deliver(2, true);
    }
    (0..2).for_each(|silo| world.silos[silo].1.out.clear());
    assert_eq!([0, 1].map(|silo| world.silos[silo].0.transfers_open()), [1, OPEN_MAX]);
    world.skip();
    let (directory, plain) = &mut world.silos[0];
    directory.look(plain);
    assert_eq!(directory.transfers_open(), OPEN_MAX);
    plain.out.clear();
    let _ = directory.receive(plain, 250, Silo::new(2), &Message::Request(request(2, Hint::Default)));
    directory.decide(plain);
    let (.., refused, _) = plain.out.pop_back().unwrap();
    assert_eq!(refused, Message::Refused(Response::TryLater));
    // A sweep takes 100 ms.
    for _ in 0..600 {
        world.settle();
    }
    assert!((0..PAGES).all(|page| world.owners(page) == [0]));
    assert_eq!(world.silos[0].0.transfers_open(), 0);
}

#[test]
fn requests_beyond_what_a_frame_holds_are_not_heard_and_counted() {
    let mut world = World::new();
    let (directory, plain) = &mut world.silos[1];
    for page in 0..OFFERS_MAX as u32 + 2 {
        let _ = directory.receive(plain, page, Silo::new(0), &Message::Request(request(0, Hint::Default)));
    }
    assert_eq!(directory.counts().unheard, 2);
}

#[test]
fn an_operators_move_breaks_a_lease_and_is_recorded_as_such() {
    let mut world = World::new();
    assert!(matches!(world.ask(1, 9, Hint::Lease), Asked::Here(response) if response.is_granted()));
    let request = Request {
        from: Silo::new(0),
        epoch: Epoch::default(),
        hint: Hint::Migrate,
        ttl_us: 0,
        refusals: 0,
        authority: Authority::Operator,
    };
    let (directory, plain) = &mut world.silos[1];
    let _ = directory.receive(plain, 9, Silo::new(0), &Message::Request(request));
    directory.decide(plain);
    assert_eq!((directory.counts().forced, directory.table().word(9).state()), (1, State::Transferring));
    assert_eq!(directory.history(9).next_back().unwrap().cause, Cause::Forced);
}

#[test]
fn the_board_shows_states_transfers_leases_ports_and_a_pages_history() {
    let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Private).unwrap();
    let mut world = World::new();
    assert!(matches!(world.ask(1, 20, Hint::Lock), Asked::Here(response) if response.is_granted()));
    let _ = world.ask(0, 7, Hint::Default);
    world.deliver(0, true).unwrap();
    let _ = world.ask(2, 7, Hint::Default);
    world.deliver(2, true).unwrap();
    let (directory, plain) = &mut world.silos[1];
    // No silo answers; the sweep comes round in steps shorter than any lease.
    for step in 0..3_000 {
        plain.now_ns += 100_000;
        directory.look(plain);
        if step == 0 {
            let lease = Request { ttl_us: 4_000_000, ..request(1, Hint::Lease) };
            let _ = directory.receive(plain, 21, Silo::new(1), &Message::Request(lease));
            directory.decide(plain);
        }
    }
    directory.publish(board.arbiter(1));
    let clock = Clock::virtual_time(Arc::new(AtomicU64::new(plain.now_ns)));
    let view = board.snapshot(&clock).silos[1].arbiter.clone().unwrap();
    let states: Vec<_> = view.states.iter().filter(|(_, pages)| *pages > 0).copied().collect();
    assert_eq!(states, [("IDLE", 298), ("LEASED", 1), ("IN_DOUBT", 1)]);
    assert_eq!((view.leases[0].page, view.leases.len()), (21, 1));
    let [transfer] = &view.transfers[..] else { panic!("{:?}", view.transfers) };
    assert_eq!((transfer.page, transfer.receiver, transfer.epoch), (7, 0, 1));
    assert!(transfer.remedy.is_some() && transfer.cancels > 200 && transfer.age_ns > 2_900_000, "{transfer:?}");
    assert_eq!(
        view.ports.iter().map(|port| (port.silo, port.wins, port.refusals, port.age)).collect::<Vec<_>>(),
        [(0, 1, 0, 0), (1, 1, 0, 0), (2, 0, 1, 1)]
    );
    assert_eq!(view.history_page, Some(7));
    assert_eq!(
        view.history.iter().map(|seen| (seen.cause, seen.state)).collect::<Vec<_>>(),
        [(Cause::Granted, "TRANSFERRING"), (Cause::Doubted, "IN_DOUBT")]
    );
    directory.watch(Some(20));
    directory.publish(board.arbiter(1));
    let watched = board.snapshot(&clock).silos[1].arbiter.clone().unwrap();
    assert_eq!((watched.history_page, watched.history[0].cause), (Some(20), Cause::LeaseBegan));
    // A page that does not exist: as if none was named.
    directory.watch(Some(PAGES));
    directory.publish(board.arbiter(1));
    assert_eq!(board.snapshot(&clock).silos[1].arbiter.as_ref().unwrap().history_page, Some(7));
    let of = |name| view.decisions.iter().find(|(found, _)| *found == name).unwrap().1;
    assert_eq!((of("granted"), of("try_later"), view.decision.count()), (3, 1, 4));
}

fn request(from: u8, hint: Hint) -> Request {
    let (from, epoch, authority) = (Silo::new(from), Epoch::default(), Authority::Port);
    Request { from, epoch, hint, ttl_us: 0, refusals: 0, authority }
}

#[test]
fn durations_are_kept_while_there_is_room_and_allocate_nothing() {
    let base = Timebase { rate: TickRate::NANOS, start: Ticks(0) };
    let mut times = Vec::with_capacity(4);
    let room = times.capacity();
    (0..room as u64 + 3).for_each(|ns| super::push(&mut times, base, Ticks(ns)));
    assert_eq!((times.len(), times.capacity(), times[1]), (room, room, 1));
}
