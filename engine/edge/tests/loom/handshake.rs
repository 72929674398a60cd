//! Models of the handshake between domains: X1, X2.

use loom::thread;
use pinwheel_edge::queue::handshake::handshake;

/// Jobs and results cross whole, and a job's word is rewritten only after it was read. Red without
/// X1.release, X1.acquire, X2.release, X2.acquire.
#[test]
fn jobs_and_results_cross_whole() {
    loom::model(|| {
        let (mut caller, mut domain) = handshake();
        let working = thread::spawn(move || {
            for _ in 0..2 {
                if let Some((number, job)) = domain.take() {
                    assert_eq!(job, 10 * number);
                    domain.finish(job + 1);
                }
            }
        });
        assert_eq!(caller.post(10), Ok(1));
        if let Some((number, result)) = caller.collect() {
            assert_eq!((number, result), (1, 11));
            assert_eq!(caller.post(20), Ok(2));
        }
        working.join().unwrap();
    });
}
