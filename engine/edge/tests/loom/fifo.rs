//! Models of the bounded queue: F1, F2.

use loom::thread;
use pinwheel_edge::queue::fifo::Fifo;
use std::sync::Arc;

/// Items cross once, whole and in order, and a cell is rewritten only after it was read. Red
/// without F1.release, F1.acquire, F2.release, F2.acquire.
#[test]
fn items_cross_once_and_whole() {
    loom::model(|| {
        let queue = Arc::new(Fifo::<[u64; 2]>::new(2));
        queue.push([1, 1]).unwrap();
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || [queue.pop(), queue.pop()])
        };
        let pushed = [queue.push([2, 2]).is_ok(), queue.push([3, 3]).is_ok()];
        let mut all: Vec<_> = popper.join().unwrap().into_iter().flatten().collect();
        all.extend([queue.pop(), queue.pop()].into_iter().flatten());
        assert!(pushed[0], "the second cell was free from the start");
        let expected: &[_] = if pushed[1] { &[[1, 1], [2, 2], [3, 3]] } else { &[[1, 1], [2, 2]] };
        assert_eq!(all, expected);
    });
}

/// Two poppers never get the same item. The CAS on the head decides; a cell's sequence shows the
/// loser a newer head. Red without F1.acquire, F2.release.
#[test]
fn two_poppers_never_share_an_item() {
    loom::model(|| {
        let queue = Arc::new(Fifo::<u64>::new(2));
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        };
        let mine = queue.pop();
        let mut both = [mine, popper.join().unwrap()];
        both.sort_unstable();
        assert_eq!(both, [Some(1), Some(2)]);
    });
}

/// Two pushers never take the same cell, and both items come out. Red without F1.release,
/// F1.acquire, F2.release, F2.acquire.
#[test]
fn two_pushers_never_share_a_cell() {
    loom::model(|| {
        let queue = Arc::new(Fifo::<u64>::new(2));
        let pusher = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(1).unwrap())
        };
        let popper = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        };
        queue.push(2).unwrap();
        pusher.join().unwrap();
        let mut all: Vec<_> = [popper.join().unwrap(), queue.pop(), queue.pop()].into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}
