//! Models of the single-producer single-consumer ring: R1, R2, R3.

use loom::thread;
use pinwheel_edge::ring::spsc;

/// An item that was popped was written. Red without R1.release, R1.acquire.
#[test]
fn pop_never_sees_an_unwritten_slot() {
    loom::model(|| {
        let (mut tx, mut rx) = spsc::channel::<[u64; 2]>(2);
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

/// A slot is rewritten only after it was read, and a full ring gives the item back. Red without
/// R2.release, R2.acquire.
#[test]
fn push_never_overwrites_an_unread_slot() {
    loom::model(|| {
        let (mut tx, mut rx) = spsc::channel::<u64>(1);
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

/// An end seen abandoned hides no item: after it, empty means empty for ever. Red without
/// R3.release, R3.acquire.
#[test]
fn an_abandoned_ring_shows_its_last_item() {
    loom::model(|| {
        let (mut tx, mut rx) = spsc::channel::<u64>(2);
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

/// A batch is written before it shows, as far as it goes in. Red without R1.release, R1.acquire.
#[test]
fn a_batch_is_whole() {
    loom::model(|| {
        let (mut tx, mut rx) = spsc::channel::<u64>(4);
        let producer = thread::spawn(move || {
            assert_eq!(tx.push_slice(&[1, 2, 3]), 3);
            tx
        });
        let mut all = Vec::new();
        let first = rx.drain(3, |item| all.push(item));
        assert!(first == 0 || first == 3, "a batch shows at once");
        let _tx = producer.join().unwrap();
        rx.drain(3 - first, |item| all.push(item));
        assert_eq!(all, [1, 2, 3]);
    });
}

/// A drained batch gives its slots back after it was read, over the end of the array too. Red
/// without R2.release, R2.acquire.
#[test]
fn a_batch_never_overwrites_unread_slots() {
    loom::model(|| {
        let (mut tx, mut rx) = spsc::channel::<u64>(2);
        assert_eq!(tx.push(0).map(|()| rx.pop()), Ok(Some(0)));
        assert_eq!(tx.push_slice(&[1, 2, 3]), 2);
        let consumer = thread::spawn(move || {
            let mut got = Vec::new();
            rx.drain(2, |item| got.push(item));
            assert_eq!(got, [1, 2]);
            rx
        });
        let pushed = tx.push_slice(&[3, 4]);
        let mut rx = consumer.join().unwrap();
        let mut rest = Vec::new();
        rx.drain(2, |item| rest.push(item));
        assert_eq!(rest, [3, 4][..pushed]);
    });
}
