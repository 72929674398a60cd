//! Models of fan-out lists and countdowns: T1, T2, T3, C1.

use loom::thread;
use pinwheel_edge::queue::countdown::Countdown;
use pinwheel_edge::queue::fanout::{Fanout, LinkSlot};
use pinwheel_edge::sync::DataWords;
use std::sync::Arc;

/// A successor added while its predecessor ends is handed over with its record, or refused with all
/// that the predecessor did. Red without T1.release, T1.seal, T2.seen, T2.refused.
#[test]
fn a_successor_is_handed_over_or_refused() {
    loom::model(|| {
        let fanout = Arc::new(Fanout::new(2, 0));
        let work = Arc::new(DataWords::new(1, 1));
        fanout.open(0, 1, 1, &[0; 4]);
        let runner = {
            let (fanout, work) = (Arc::clone(&fanout), Arc::clone(&work));
            thread::spawn(move || {
                work.all()[0].store(9);
                let waiting: Vec<_> = fanout.seal(0).collect();
                for successor in &waiting {
                    assert!(fanout.release(successor.task));
                    assert_eq!(fanout.payload(successor.task), [1, 2, 3, 4]);
                }
                waiting.len()
            })
        };
        fanout.open(1, 1, 1, &[1, 2, 3, 4]);
        let is_linked = fanout.link(0, 1, LinkSlot::Inline(0), true);
        if !is_linked {
            assert_eq!(work.all()[0].load(), 9);
        }
        assert_eq!(runner.join().unwrap(), usize::from(is_linked));
    });
}

/// Two successors in one list: both links are read whole. Red without T1.release, T1.seal.
#[test]
fn a_list_of_two_comes_out_whole() {
    loom::model(|| {
        let fanout = Arc::new(Fanout::new(3, 1));
        (0..3).for_each(|task| fanout.open(task, 1, 1, &[u64::from(task); 4]));
        let runner = {
            let fanout = Arc::clone(&fanout);
            thread::spawn(move || {
                let found: Vec<_> = fanout.seal(0).map(|successor| successor.task).collect();
                found
            })
        };
        let linked = [fanout.link(0, 1, LinkSlot::Inline(2), true), fanout.link(0, 2, LinkSlot::Spill(0), false)];
        let expected: &[u32] = match linked {
            [true, true] => &[2, 1],
            [true, false] => &[1],
            _ => &[],
        };
        assert_eq!(runner.join().unwrap(), expected);
    });
}

/// Of two predecessors one releases the task, and sees what both did. Red without T3.release,
/// T3.last.
#[test]
fn two_predecessors_release_once() {
    loom::model(|| {
        let fanout = Arc::new(Fanout::new(1, 0));
        let work = Arc::new(DataWords::new(1, 2));
        fanout.open(0, 1, 2, &[0; 4]);
        let end = |index: usize, fanout: &Fanout, work: &DataWords| {
            work.all()[index].store(1);
            let is_last = fanout.release(0);
            if is_last {
                assert_eq!(work.all()[0].load() + work.all()[1].load(), 2);
            }
            is_last
        };
        let other = {
            let (fanout, work) = (Arc::clone(&fanout), Arc::clone(&work));
            thread::spawn(move || end(0, &fanout, &work))
        };
        let mine = end(1, &fanout, &work);
        assert!(mine != other.join().unwrap());
    });
}

/// The submitter gives a position out again only after its task's record was read. Red without
/// T1.seal, T2.reuse.
#[test]
fn a_record_is_reused_only_after_it_was_read() {
    loom::model(|| {
        let fanout = Arc::new(Fanout::new(1, 0));
        fanout.open(0, 1, 1, &[1; 4]);
        let runner = {
            let fanout = Arc::clone(&fanout);
            thread::spawn(move || {
                assert_eq!(fanout.payload(0), [1; 4]);
                assert_eq!(fanout.seal(0).count(), 0);
            })
        };
        if fanout.is_sealed(0) {
            fanout.open(0, 2, 1, &[2; 4]);
        }
        runner.join().unwrap();
    });
}

/// Of two predecessors in a recorded graph the last sees what both did. Red without C1.release,
/// C1.last.
#[test]
fn the_last_release_sees_all_work() {
    loom::model(|| {
        let countdown = Arc::new(Countdown::new(&[2]));
        let work = Arc::new(DataWords::new(1, 2));
        let end = |index: usize, countdown: &Countdown, work: &DataWords| {
            work.all()[index].store(1);
            let is_last = countdown.release(0);
            if is_last {
                assert_eq!(work.all()[0].load() + work.all()[1].load(), 2);
            }
            is_last
        };
        let other = {
            let (countdown, work) = (Arc::clone(&countdown), Arc::clone(&work));
            thread::spawn(move || end(0, &countdown, &work))
        };
        let mine = end(1, &countdown, &work);
        assert!(mine != other.join().unwrap());
    });
}

/// Counts that are handed in together: the last of a round sees what all did. Red without C1.many.
#[test]
fn the_last_of_a_round_sees_all_work() {
    loom::model(|| {
        let countdown = Arc::new(Countdown::new(&[5]));
        let work = Arc::new(DataWords::new(1, 2));
        let end = |index: usize, count: u32, countdown: &Countdown, work: &DataWords| {
            work.all()[index].store(1);
            let is_last = countdown.release_many(0, count);
            if is_last {
                assert_eq!(work.all()[0].load() + work.all()[1].load(), 2);
            }
            is_last
        };
        let other = {
            let (countdown, work) = (Arc::clone(&countdown), Arc::clone(&work));
            thread::spawn(move || end(0, 3, &countdown, &work))
        };
        let mine = end(1, 2, &countdown, &work);
        assert!(mine != other.join().unwrap());
    });
}

/// One predecessor ended before it could be linked, another one ends meanwhile: the task starts
/// once, and sees what both did. Red without T1.seal, T2.refused, T2.seen, T3.release, T3.refused.
#[test]
fn a_refused_predecessor_and_a_linked_one_release_once() {
    loom::model(|| {
        let fanout = Arc::new(Fanout::new(3, 0));
        let work = Arc::new(DataWords::new(1, 2));
        (0..2).for_each(|task| fanout.open(task, 1, 1, &[0; 4]));
        let runner = {
            let (fanout, work) = (Arc::clone(&fanout), Arc::clone(&work));
            thread::spawn(move || {
                let mut is_mine = false;
                for task in 0..2 {
                    work.all()[task as usize].store(1);
                    for successor in fanout.seal(task) {
                        is_mine |= fanout.release(successor.task);
                    }
                }
                is_mine
            })
        };
        fanout.open(2, 1, 2, &[0; 4]);
        let linked = [0, 1].map(|index| fanout.link(index, 2, LinkSlot::Inline(index), true));
        let refused = linked.iter().filter(|linked| !**linked).count() as u32;
        let is_mine = refused == 2 || (refused > 0 && fanout.release_refused(2, refused));
        if is_mine {
            assert_eq!(work.all()[0].load() + work.all()[1].load(), 2);
        }
        assert!(is_mine != runner.join().unwrap());
    });
}
