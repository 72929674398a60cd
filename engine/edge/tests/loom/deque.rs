//! Models of the work-stealing deque: D1, D2, D3.

use loom::thread;
use pinwheel_edge::queue::deque::{Steal, Thief, deque};
use pinwheel_edge::sync::DataWords;
use std::sync::Arc;

/// A thief of one id, which names a 7.
fn steals_what_is_named(thief: Thief, named: &Arc<DataWords>) -> impl FnOnce() + 'static {
    let named = Arc::clone(named);
    move || {
        if let Steal::Success(id) = thief.steal() {
            assert_eq!(named.all()[id as usize].load(), 7);
        }
    }
}

/// An id that is stolen comes with what it names. Red without D1.release, D1.acquire.
#[test]
fn a_stolen_id_comes_with_what_it_names() {
    loom::model(|| {
        let named = Arc::new(DataWords::new(1, 2));
        let (mut owner, thief) = deque(2);
        let stealing = thread::spawn(steals_what_is_named(thief, &named));
        named.all()[1].store(7);
        owner.push(1).unwrap();
        stealing.join().unwrap();
    });
}

/// So does an id that the owner left when it took a newer one. Red without D1.release, D1.acquire,
/// D1.pop.
#[test]
fn an_id_that_a_pop_leaves_comes_with_what_it_names() {
    loom::model(|| {
        let named = Arc::new(DataWords::new(1, 2));
        let (mut owner, thief) = deque(2);
        let stealing = thread::spawn(steals_what_is_named(thief, &named));
        named.all()[1].store(7);
        assert_eq!(owner.push_slice(&[1, 0]), 2);
        assert_eq!(owner.pop(), Some(0));
        stealing.join().unwrap();
    });
}

/// Owner and thief never both get the last id, and never neither. Red without D2.owner, D2.thief.
#[test]
fn the_last_id_goes_to_one() {
    loom::model(|| {
        let (mut owner, thief) = deque(2);
        owner.push(1).unwrap();
        owner.push(2).unwrap();
        let stealing = thread::spawn(move || [thief.steal(), thief.steal()]);
        let popped = [owner.pop(), owner.pop()];
        let stolen = stealing.join().unwrap();
        let mut all: Vec<_> = popped.into_iter().flatten().collect();
        all.extend(stolen.iter().filter_map(|steal| match steal {
            Steal::Success(id) => Some(*id),
            Steal::Empty | Steal::Retry => None,
        }));
        all.extend(owner.pop());
        all.sort_unstable();
        assert_eq!(all, [1, 2], "popped {popped:?}, stolen {stolen:?}");
    });
}

/// Whoever finds room sees what the thief did before it made that room. Red without D3.acquire.
#[test]
fn room_comes_with_what_the_thief_did_before() {
    loom::model(|| {
        let word = Arc::new(DataWords::new(1, 1));
        let (mut owner, thief) = deque(2);
        assert_eq!(owner.push_slice(&[1, 2]), 2);
        let stealing = {
            let word = Arc::clone(&word);
            thread::spawn(move || {
                word.all()[0].store(5);
                assert_eq!(thief.steal(), Steal::Success(1));
            })
        };
        if owner.push(3).is_ok() {
            assert_eq!(word.all()[0].load(), 5);
        }
        stealing.join().unwrap();
    });
}

/// A thief that was overtaken while the owner wrapped never brings home what it read then.
#[test]
fn a_stale_thief_loses_against_a_wrapped_push() {
    loom::model(|| {
        let (mut owner, thief) = deque(2);
        assert_eq!(owner.push_slice(&[1, 2]), 2);
        let other = thief.clone();
        let stealing = thread::spawn(move || thief.steal());
        let mine = other.steal();
        let pushed = owner.push(3).is_ok();
        let theirs = stealing.join().unwrap();
        let mut all: Vec<_> = [mine, theirs].into_iter().filter_map(success).collect();
        all.extend(std::iter::from_fn(|| success(other.steal())));
        all.sort_unstable();
        assert_eq!(all, if pushed { vec![1, 2, 3] } else { vec![1, 2] });
    });
}

fn success(steal: Steal) -> Option<u64> {
    match steal {
        Steal::Success(id) => Some(id),
        Steal::Empty | Steal::Retry => None,
    }
}
