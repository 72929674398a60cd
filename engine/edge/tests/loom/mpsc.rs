//! Models of the ring with a lane for each producer: M1, over the edges of the lanes.

use loom::thread;
use pinwheel_edge::ring::mpsc;

/// Items of two producers come out once and whole. Red without R1.release, R1.acquire.
#[test]
fn two_producers_lose_and_double_nothing() {
    loom::model(|| {
        let (mut a, mut rx) = mpsc::channel::<u64>(2, 1);
        let mut b = a.try_clone().unwrap();
        let first = thread::spawn(move || {
            a.push(1).unwrap();
            a
        });
        let second = thread::spawn(move || {
            b.push(2).unwrap();
            b
        });
        let mut all: Vec<_> = rx.pop().into_iter().collect();
        let (_a, _b) = (first.join().unwrap(), second.join().unwrap());
        rx.drain(2, |item| all.push(item));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A lane that its producer dropped is taken over with its items in it, and only then. Red without
/// M1.release, M1.acquire.
#[test]
fn a_lane_is_handed_on_whole() {
    loom::model(|| {
        let (a, mut rx) = mpsc::channel::<u64>(2, 2);
        let mut b = a.try_clone().unwrap();
        let lane = b.lane();
        let leaving = thread::spawn(move || {
            b.push(1).unwrap();
            drop(b);
        });
        let successor = a.try_clone();
        let took_over = successor.is_some();
        if let Some(mut successor) = successor {
            assert_eq!(successor.lane(), lane, "the only one that anybody gave back");
            successor.push(2).unwrap();
            assert!(successor.push(3).is_err(), "the earlier owner's item takes its room");
        }
        leaving.join().unwrap();
        let mut all = Vec::new();
        rx.drain(4, |item| all.push(item));
        assert_eq!(all, [1, 2][..1 + usize::from(took_over)]);
    });
}

/// A ring without producers hides no item: after it, empty means empty for ever. Red without
/// M1.release, M1.view.
#[test]
fn an_abandoned_ring_shows_its_last_item() {
    loom::model(|| {
        let (mut a, mut rx) = mpsc::channel::<u64>(2, 1);
        let mut b = a.try_clone().unwrap();
        let first = thread::spawn(move || {
            a.push(1).unwrap();
            drop(a);
        });
        let second = thread::spawn(move || {
            b.push(2).unwrap();
            drop(b);
        });
        if rx.is_abandoned() {
            let mut all = [rx.pop(), rx.pop()];
            all.sort_unstable();
            assert_eq!(all, [Some(1), Some(2)]);
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}
