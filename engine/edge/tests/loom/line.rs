//! Models of the ring whose slots carry their turn: L1, L2, L3.

use loom::thread;
use pinwheel_edge::ring::line;

/// An item that was popped was written. Red without L1.release, L1.acquire.
#[test]
fn pop_never_sees_an_unwritten_slot() {
    loom::model(|| {
        let (mut tx, mut rx) = line::channel::<[u64; 2]>(2);
        let producer = thread::spawn(move || {
            tx.push([1, 1]).unwrap();
            tx.push([2, 2]).unwrap();
            tx
        });
        let first = rx.pop();
        let second = rx.pop();
        let _tx = producer.join().unwrap();
        let rest = [rx.pop(), rx.pop()];
        let all: Vec<_> = [first, second].into_iter().chain(rest).flatten().collect();
        assert_eq!(all, [[1, 1], [2, 2]]);
    });
}

/// A batch is written from its end, and read from its beginning. Red without L1.release,
/// L1.acquire.
#[test]
fn a_batch_comes_in_order_and_whole() {
    loom::model(|| {
        let (mut tx, mut rx) = line::channel::<[u64; 2]>(4);
        let producer = thread::spawn(move || {
            assert_eq!(tx.push_slice(&[[1, 1], [2, 2]]), 2);
            assert_eq!(tx.push_slice(&[[3, 3]]), 1);
        });
        let early = [rx.pop(), rx.pop()];
        assert!(early[0].is_none() || early[1].is_some(), "who sees the first sees them all");
        producer.join().unwrap();
        let mut all: Vec<_> = early.into_iter().flatten().collect();
        rx.drain(8, |item| all.push(item));
        assert_eq!(all, [[1, 1], [2, 2], [3, 3]]);
    });
}

/// A slot is rewritten only after it was read, and a full ring gives the item back. Red without
/// L2.release, L2.acquire.
#[test]
fn push_never_overwrites_an_unread_slot() {
    loom::model(|| {
        let (mut tx, mut rx) = line::channel::<u64>(1);
        tx.push(1).unwrap();
        let consumer = thread::spawn(move || {
            assert_eq!(rx.pop(), Some(1));
            rx
        });
        let pushed = tx.push(2).is_ok();
        let mut rx = consumer.join().unwrap();
        assert_eq!(rx.pop(), pushed.then_some(2));
    });
}

/// Slots go back a quarter at a time, and when the ring is found empty; never before they were
/// read. Red without L2.release, L2.acquire.
#[test]
fn slots_go_back_by_quarters() {
    loom::model(|| {
        let (mut tx, mut rx) = line::channel::<u64>(8);
        assert_eq!(tx.push_slice(&[1, 2, 3, 4, 5, 6, 7]), 7);
        let consumer = thread::spawn(move || {
            let mut all = Vec::new();
            // Two quarters, then one item more than may be known.
            rx.drain(4, |item| all.push(item));
            (rx, all)
        });
        let pushed = tx.push_slice(&[8, 9]);
        assert!(pushed >= 1, "one slot was free from the start");
        let (mut rx, mut all) = consumer.join().unwrap();
        rx.drain(8, |item| all.push(item));
        assert_eq!(all, [1, 2, 3, 4, 5, 6, 7, 8, 9][..7 + pushed]);
        assert_eq!(rx.pop(), None);
        assert_eq!(tx.push_slice(&[0; 8]), 8, "a ring found empty has gone back whole");
    });
}

/// An end seen abandoned hides no item: after it, empty means empty for ever. Red without
/// L3.release, L3.acquire.
#[test]
fn an_abandoned_ring_shows_its_last_item() {
    loom::model(|| {
        let (mut tx, mut rx) = line::channel::<u64>(2);
        let producer = thread::spawn(move || {
            tx.push(1).unwrap();
            drop(tx);
        });
        if rx.is_abandoned() {
            assert_eq!(rx.pop(), Some(1));
        }
        producer.join().unwrap();
    });
}
