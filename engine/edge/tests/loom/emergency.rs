//! Models of the ring with a reserve, over the edges of its two rings.

use loom::thread;
use pinwheel_edge::ring::emergency;

/// A stop gets through a full ring, whole, and before what was there; an end seen abandoned hides
/// neither. Red without R3.release, R3.acquire.
#[test]
fn a_stop_gets_through_a_full_ring() {
    loom::model(|| {
        let (mut tx, mut rx) = emergency::channel::<u64>(1, 1);
        tx.push(1).unwrap();
        let producer = thread::spawn(move || {
            assert!(tx.push(2).is_err(), "nobody reads before the end");
            tx.push_urgent(9).unwrap();
        });
        let is_abandoned = rx.is_abandoned();
        if is_abandoned {
            assert_eq!([rx.pop(), rx.pop()], [Some(9), Some(1)]);
            producer.join().unwrap();
        } else {
            producer.join().unwrap();
            assert_eq!([rx.pop(), rx.pop()], [Some(9), Some(1)]);
        }
        assert_eq!(rx.pop(), None);
    });
}
