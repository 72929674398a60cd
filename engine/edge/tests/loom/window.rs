//! Models of the window: V1.

use loom::thread;
use pinwheel_edge::queue::window::Window;
use pinwheel_edge::sync::DataWords;
use std::sync::Arc;

/// A position is given out again only after its last user is done with it. Red without V1.release,
/// V1.acquire.
#[test]
fn a_position_is_given_again_only_after_its_user_is_done() {
    loom::model(|| {
        let window = Arc::new(Window::new(1, 0));
        let record = Arc::new(DataWords::new(1, 1));
        assert_eq!(window.reserve(1), Some(0..1));
        let user = {
            let (window, record) = (Arc::clone(&window), Arc::clone(&record));
            thread::spawn(move || {
                record.all()[0].store(1);
                window.retire_to(1);
            })
        };
        if window.reserve(1).is_some() {
            record.all()[0].store(2);
        }
        user.join().unwrap();
    });
}

/// Two submitters never get the same position, and no more than there are.
#[test]
fn two_submitters_share_no_position() {
    loom::model(|| {
        let window = Arc::new(Window::new(3, 0));
        let other = {
            let window = Arc::clone(&window);
            thread::spawn(move || window.reserve(2))
        };
        let mine = window.reserve(2);
        let mut all: Vec<u64> = [mine, other.join().unwrap()].into_iter().flatten().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(window.reserve(1), None);
    });
}
