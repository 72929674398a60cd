//! Models of the spin-policy word and the phase word: P1, P2, P3.

use loom::thread;
use pinwheel_edge::spin::{Phase, PhaseWord, SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
use pinwheel_edge::sync::DataWord;
use std::sync::Arc;

fn budgets(n: u64) -> SpinBudgets {
    SpinBudgets { lab_spin_ticks: n, shared_spin_ticks: n, shared_sleep_ns: n }
}

fn order(epoch: u64) -> SpinOrder {
    SpinOrder { policy: SpinPolicy::Lab, epoch }
}

/// Whoever sees a request sees its budgets, or newer ones. Red without P1.release, P1.acquire.
#[test]
fn order_carries_its_budgets() {
    loom::model(|| {
        let word = Arc::new(SpinWord::new(SpinPolicy::Lab, budgets(1)));
        let requester = {
            let word = Arc::clone(&word);
            thread::spawn(move || word.request(order(2), budgets(2)))
        };
        let (seen, with) = word.requested();
        let oldest = with.lab_spin_ticks.min(with.shared_spin_ticks).min(with.shared_sleep_ns);
        assert!(oldest >= seen.epoch, "epoch {} came with budgets of {oldest}", seen.epoch);
        requester.join().unwrap();
    });
}

/// What a thread did under the old policy comes before its acknowledgement of the new one. Red
/// without P2.release, P2.acquire.
#[test]
fn acknowledgement_is_last() {
    loom::model(|| {
        let word = Arc::new(SpinWord::new(SpinPolicy::Prod, budgets(1)));
        let work = Arc::new(DataWord::new(0));
        let hot = {
            let (word, work) = (Arc::clone(&word), Arc::clone(&work));
            thread::spawn(move || {
                work.store(1);
                word.acknowledge(order(2));
            })
        };
        if word.acknowledged().epoch == 2 {
            assert_eq!(work.load(), 1);
        }
        hot.join().unwrap();
    });
}

/// A thread that sees a phase sees all that earlier phases built, by whichever mover. Red without
/// P3.release, P3.acquire.
#[test]
fn live_sees_what_init_built() {
    loom::model(|| {
        let phase = Arc::new(PhaseWord::new());
        let built = Arc::new(DataWord::new(0));
        let init = {
            let (phase, built) = (Arc::clone(&phase), Arc::clone(&built));
            thread::spawn(move || {
                built.store(1);
                assert!(phase.advance(Phase::Warmup));
            })
        };
        let mover = {
            let phase = Arc::clone(&phase);
            thread::spawn(move || {
                if phase.current() == Phase::Warmup {
                    phase.advance(Phase::Live);
                }
            })
        };
        if phase.current() >= Phase::Warmup {
            assert_eq!(built.load(), 1);
        }
        init.join().unwrap();
        mover.join().unwrap();
    });
}

/// Of two movers the later phase wins, whatever the order. Logic of the `fetch_max`; no edge is
/// involved.
#[test]
fn a_phase_never_goes_back() {
    loom::model(|| {
        let phase = Arc::new(PhaseWord::new());
        let drain = {
            let phase = Arc::clone(&phase);
            thread::spawn(move || assert!(phase.advance(Phase::Drain)))
        };
        let live = phase.advance(Phase::Live);
        let seen = phase.current();
        assert!(if live { seen >= Phase::Live } else { seen == Phase::Drain });
        drain.join().unwrap();
        assert_eq!(phase.current(), Phase::Drain);
    });
}
