//! Models of the broadcast ring: B1, B2, B3.

use loom::thread;
use pinwheel_edge::ring::broadcast;

/// Each reader sees each item, whole and in order. Red without B1.release, B1.acquire.
#[test]
fn every_reader_sees_every_item() {
    loom::model(|| {
        let (mut tx, readers) = broadcast::channel::<[u64; 2]>(2, 2);
        let readers: Vec<_> = readers
            .into_iter()
            .map(|mut rx| {
                thread::spawn(move || {
                    let seen: Vec<_> = [rx.read(), rx.read()].into_iter().flatten().collect();
                    (rx, seen)
                })
            })
            .collect();
        assert_eq!(tx.try_write([1, 1]), Ok(()));
        assert_eq!(tx.try_write([2, 2]), Ok(()));
        for reader in readers {
            let (mut rx, mut seen) = reader.join().unwrap();
            rx.drain(2, |item| seen.push(item));
            assert_eq!(seen, [[1, 1], [2, 2]]);
            assert_eq!(rx.lag(), 0);
        }
    });
}

/// A slot is rewritten only after the slowest reader read it; until then the item comes back and is
/// counted. Red without B2.release, B2.acquire.
#[test]
fn a_slot_is_rewritten_after_every_reader() {
    loom::model(|| {
        let (mut tx, mut readers) = broadcast::channel::<u64>(1, 2);
        tx.try_write(1).unwrap();
        let mut quick = readers.pop().unwrap();
        assert_eq!(quick.read(), Some(1));
        let mut slow = readers.pop().unwrap();
        let reader = thread::spawn(move || {
            assert_eq!(slow.drain(1, |item| assert_eq!(item, 1)), 1);
            slow
        });
        let is_written = tx.try_write(2).is_ok();
        assert_eq!(tx.refused(), u64::from(!is_written));
        let mut slow = reader.join().unwrap();
        let expected = is_written.then_some(2);
        assert_eq!((quick.read(), slow.read()), (expected, expected));
    });
}

/// A reader that leaves no longer holds the writer back, once it has read what it was reading. Red
/// without B2.release, B2.leave, B2.acquire.
#[test]
fn a_reader_that_leaves_frees_its_slots() {
    loom::model(|| {
        let (mut tx, mut readers) = broadcast::channel::<u64>(2, 1);
        let mut rx = readers.pop().unwrap();
        tx.try_write(1).unwrap();
        tx.try_write(2).unwrap();
        let reader = thread::spawn(move || {
            assert_eq!(rx.read(), Some(1));
            drop(rx);
        });
        let _ = [3, 4].map(|item| tx.try_write(item));
        reader.join().unwrap();
        assert_eq!([5, 6].map(|item| tx.try_write(item)), [Ok(()); 2], "the reader has left");
        assert_eq!(tx.lag(0), None);
    });
}

/// A writer seen gone hides no item: after it, nothing to read means nothing for ever. Red without
/// B3.release, B3.acquire.
#[test]
fn an_abandoned_ring_shows_its_last_item() {
    loom::model(|| {
        let (mut tx, mut readers) = broadcast::channel::<u64>(2, 1);
        let writer = thread::spawn(move || {
            tx.try_write(1).unwrap();
            drop(tx);
        });
        let mut rx = readers.pop().unwrap();
        if rx.is_abandoned() {
            assert_eq!(rx.read(), Some(1));
        }
        writer.join().unwrap();
    });
}
