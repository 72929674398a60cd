//! The page word: writers, a sender, a receiver.

use loom::thread;
use pinwheel_edge::page::{
    Authority, Due, Epoch, Failed, Grant, Hint, How, Limits, Marks, Moment, PageTable, Receipt, Request, Response,
    Role, Routes, Signals, Silo, State, Takeover, Word, WriteBuffer,
};
use pinwheel_edge::sync::DataWord;
use std::sync::Arc;

const HERE: Silo = Silo::new(0);
const THERE: Silo = Silo::new(1);
const NOW: Moment = Moment::from_micros(100);
const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

fn request(from: Silo) -> Request {
    let (epoch, hint, authority) = (Epoch::default(), Hint::Migrate, Authority::Port);
    Request { from, epoch, hint, ttl_us: 0, refusals: 0, authority }
}

fn page(owner: Silo) -> Arc<(PageTable, DataWord)> {
    Arc::new((PageTable::new(HERE, 1, Limits::SEED, |_| owner), DataWord::new(0)))
}

fn is_move(response: Response) -> bool {
    matches!(response, Response::Granted { how: How::Moves, .. })
}

/// One attempt to write `value`; whether it was committed.
fn write(page: &(PageTable, DataWord), value: u64) -> bool {
    let Ok(writing) = page.0.begin_write(0) else { return false };
    page.1.store(page.1.load() + value);
    writing.commit(NOW);
    true
}

/// A worker commits while the arbiter decides: either the commit is in the bytes that are sent, or
/// it was refused; none slips in between check and mark. Red without O1.release, O1.acquire.
#[test]
fn a_commit_is_sent_or_refused() {
    loom::model(|| {
        let page = page(HERE);
        let worker = {
            let page = Arc::clone(&page);
            thread::spawn(move || write(&page, 1))
        };
        let sent = is_move(page.0.decide(0, &request(THERE), DRAINED, NOW)).then(|| page.1.load());
        let is_committed = worker.join().unwrap();
        if let Some(sent) = sent {
            assert_eq!(sent, u64::from(is_committed));
            assert_eq!(page.0.word(0).state(), State::Transferring);
            assert!(!page.0.word(0).is_busy());
        }
    });
}

/// Two workers write one page: each sees what the other left, and both writes count. Red without
/// O1.release, O2.acquire.
#[test]
fn two_writers_lose_no_write() {
    loom::model(|| {
        let page = page(HERE);
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || u64::from(write(&page, 1)))
        };
        let mine = u64::from(write(&page, 1));
        let committed = mine + other.join().unwrap();
        assert!(committed >= 1);
        assert_eq!(page.1.load(), committed);
    });
}

/// The arbiter puts a granted page's bytes in place and installs it; a worker that may write it
/// reads them. Red without O2.release, O2.acquire.
#[test]
fn installed_bytes_are_read_by_the_next_writer() {
    loom::model(|| {
        let page = page(THERE);
        let arbiter = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                let grant = Grant { epoch: Epoch::new(1), hint: Hint::Default, ttl_us: 0 };
                assert_eq!(page.0.install(0, &grant, NOW, || page.1.store(7)), Ok(Receipt::Installed));
            })
        };
        if let Ok(writing) = page.0.begin_write(0) {
            assert_eq!(page.1.load(), 7);
            drop(writing);
        }
        arbiter.join().unwrap();
    });
}

/// The arbiter sends a page, the receiver is fenced, the page is reclaimed: a worker writes it only
/// after the arbiter has read it. Red without O3.release, O2.acquire.
#[test]
fn a_reclaimed_page_is_written_after_it_was_sent() {
    loom::model(|| {
        let page = page(HERE);
        assert!(is_move(page.0.decide(0, &request(THERE), DRAINED, NOW)));
        let arbiter = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                assert_eq!(page.1.load(), 0);
                let epoch = Epoch::new(1);
                assert_eq!(page.0.due(0, NOW.plus(Limits::SEED.ack_us)), Ok(Due::Cancel(THERE, epoch)));
                assert_eq!(page.0.reclaim(0, Failed::Cancelled { from: THERE, epoch }), Ok(true));
            })
        };
        write(&page, 1);
        arbiter.join().unwrap();
    });
}

/// Two silos ask for one page at once: one gets it.
#[test]
fn one_of_two_requests_is_granted() {
    loom::model(|| {
        let page = page(HERE);
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.0.decide(0, &request(Silo::new(2)), DRAINED, NOW))
        };
        let mine = page.0.decide(0, &request(THERE), DRAINED, NOW);
        let granted = [mine, other.join().unwrap()].map(is_move);
        assert!(granted[0] != granted[1], "{granted:?}");
        let word = page.0.word(0);
        assert_eq!(word.owner(), if granted[0] { THERE } else { Silo::new(2) });
    });
}

/// An successor puts a dead silo's bytes in place and takes the page over; a worker that may write it
/// reads them. Red without O4.release, O2.acquire.
#[test]
fn inherited_bytes_are_read_by_the_next_writer() {
    loom::model(|| {
        let page = page(THERE);
        let successor = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                let last = Word::owned(THERE, Epoch::new(3));
                let got = page.0.take_over(0, (THERE, last), NOW, || page.1.store(7));
                assert_eq!(got, Ok(Takeover::Owned { is_torn: false }));
            })
        };
        if let Ok(writing) = page.0.begin_write(0) {
            assert_eq!(page.1.load(), 7);
            drop(writing);
        }
        successor.join().unwrap();
    });
}

/// The arbiter hands on what was staged and flips the route twice; whoever routes sees one route or
/// another, never parts of both, and by a flipped one what was staged before it. Red without
/// O5.release, O5.acquire.
#[test]
fn a_flipped_route_shows_what_was_staged_before() {
    loom::model(|| {
        let routes = Arc::new((Routes::new(1, |_| HERE), DataWord::new(0)));
        let arbiter = {
            let routes = Arc::clone(&routes);
            thread::spawn(move || {
                routes.1.store(7);
                assert!(routes.0.flip(0, THERE, Epoch::new(1)));
                assert!(routes.0.flip(0, Silo::new(2), Epoch::new(2)));
                assert!(!routes.0.flip(0, THERE, Epoch::new(1)), "old news turn nothing back");
            })
        };
        let route = routes.0.route(0);
        let seen = (route.epoch.number(), route.role(HERE), route.role(THERE));
        assert!(
            [(0, Role::Owner, Role::Other), (1, Role::Former, Role::Owner), (2, Role::Other, Role::Former)]
                .contains(&seen),
            "{seen:?}"
        );
        if route.epoch > Epoch::default() {
            assert_eq!(routes.1.load(), 7);
        }
        arbiter.join().unwrap();
    });
}

/// Who sees a mark sees what was done up to it. Red without O6.release, O6.acquire.
#[test]
fn a_mark_shows_what_was_done_up_to_it() {
    loom::model(|| {
        let marks = Arc::new((Marks::new(1, |_| 0), DataWord::new(0)));
        let sets = {
            let marks = Arc::clone(&marks);
            thread::spawn(move || {
                marks.1.store(7);
                marks.0.set(0, 1);
            })
        };
        if marks.0.get(0) == 1 {
            assert_eq!(marks.1.load(), 7);
        }
        sets.join().unwrap();
    });
}
