//! Models of permits: G1.

use loom::thread;
use pinwheel_edge::queue::gate::Gate;
use pinwheel_edge::sync::DataWords;
use std::sync::Arc;

/// With one permit two never write at once, and each sees what the last holder wrote. Red without
/// G1.release, G1.acquire.
#[test]
fn a_permit_carries_what_was_done_under_it() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        let buffer = Arc::new(DataWords::new(1, 1));
        let add = |gate: &Gate, buffer: &DataWords| {
            let entered = gate.enter().map(|permit| {
                let word = &buffer.all()[0];
                word.store(word.load() + 1);
                drop(permit);
            });
            u64::from(entered.is_some())
        };
        let other = {
            let (gate, buffer) = (Arc::clone(&gate), Arc::clone(&buffer));
            thread::spawn(move || add(&gate, &buffer))
        };
        let mine = add(&gate, &buffer);
        let entered = mine + other.join().unwrap();
        assert_eq!(buffer.all()[0].load(), entered);
        assert!(entered > 0 && gate.in_use() == 0);
    });
}
