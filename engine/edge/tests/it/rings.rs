//! What the rings promise on one thread, and that nothing is lost or doubled on real ones.

use crate::{Seeded, panics};
use pinwheel_edge::ring::{BATCH, Full, broadcast, line, log, mpsc, spsc};
use pinwheel_edge::units::Ticks;

/// Items of the tests that cross threads; few where Miri runs them, a hundred times slower.
const ITEMS: u64 = if cfg!(miri) { 600 } else { 300_000 };

/// Retries until `attempt` succeeds; lets others run, because the cores are shared.
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        match attempt() {
            Some(found) => return found,
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn a_full_ring_gives_the_item_back() {
    let (mut tx, mut rx) = spsc::channel::<u32>(2);
    assert_eq!([tx.push(1), tx.push(2), tx.push(3)], [Ok(()), Ok(()), Err(Full(3))]);
    assert_eq!(rx.pop(), Some(1));
    assert_eq!(tx.push(3), Ok(()));
    assert_eq!([rx.pop(), rx.pop(), rx.pop()], [Some(2), Some(3), None]);
    let (mut tx, mut rx) = line::channel::<u32>(2);
    assert_eq!([tx.push(1), tx.push(2), tx.push(3)], [Ok(()), Ok(()), Err(Full(3))]);
    assert_eq!(rx.pop(), Some(1));
    assert_eq!(tx.push(3), Ok(()));
    assert_eq!([rx.pop(), rx.pop(), rx.pop()], [Some(2), Some(3), None]);
}

#[test]
fn a_ring_of_no_slots_or_of_too_many_is_refused() {
    for capacity in [0, (1 << 24) + 1] {
        assert!(panics(|| spsc::channel::<u64>(capacity)));
        assert!(panics(|| line::channel::<u64>(capacity)));
        assert!(panics(|| mpsc::channel::<u64>(1, capacity)));
        assert!(panics(|| broadcast::channel::<u64>(capacity, 1)));
    }
    assert!(panics(|| mpsc::channel::<u64>(0, 1)) && panics(|| mpsc::channel::<u64>(65, 1)));
    assert!(panics(|| broadcast::channel::<u64>(1, 0)) && panics(|| broadcast::channel::<u64>(1, 65)));
}

#[test]
fn a_batch_is_bounded_and_wraps() {
    let (mut tx, mut rx) = spsc::channel::<u64>(128);
    let items: Vec<u64> = (0..100).collect();
    let mut expected = 0;
    for _ in 0..7 {
        assert_eq!(tx.push_slice(&items), BATCH);
        assert_eq!(tx.push_slice(&items[BATCH..]), 36);
        assert_eq!(tx.push_slice(&items), 28, "as many as there is room for");
        let mut taken = Vec::new();
        assert_eq!(rx.drain(usize::MAX, |item| taken.push(item)), BATCH);
        assert_eq!(rx.drain(1000, |item| taken.push(item)), BATCH);
        assert_eq!(rx.drain(1000, |item| taken.push(item)), 0);
        assert_eq!(taken, (0..100).chain(0..28).collect::<Vec<_>>());
        // Shifts the next round over the end of the array.
        expected += 1;
        assert_eq!(tx.push(expected), Ok(()));
        assert_eq!(rx.pop(), Some(expected));
    }
    assert_eq!((tx.push_slice(&[]), rx.drain(0, |_| ()), tx.depth(), rx.depth()), (0, 0, 0, 0));
}

#[test]
fn a_taker_that_panics_loses_its_own_item_only() {
    let (mut tx, mut rx) = spsc::channel::<u64>(4);
    tx.push_slice(&[1, 2, 3]);
    assert!(panics(|| rx.drain(3, |item| assert_ne!(item, 2))));
    assert_eq!([rx.pop(), rx.pop()], [Some(3), None]);
    assert_eq!(tx.push_slice(&[4, 5, 6, 7]), 4, "all slots came back");
}

#[test]
fn a_line_ring_gives_slots_back_by_quarters_or_when_empty() {
    let (mut tx, mut rx) = line::channel::<[u64; 7]>(16);
    let item = |i: u64| [i; 7];
    for i in 0..16 {
        assert_eq!(tx.push(item(i)), Ok(()));
    }
    for i in 0..3 {
        assert_eq!(rx.pop(), Some(item(i)));
    }
    assert_eq!(tx.push(item(16)), Err(Full(item(16))), "three slots are not a quarter");
    assert_eq!(rx.pop(), Some(item(3)));
    assert_eq!(tx.room(), 4);
    assert_eq!(rx.drain(BATCH, |_| ()), 12);
    assert_eq!((tx.depth(), tx.pushed(), tx.capacity()), (0, 16, 16));
}

#[test]
fn a_busy_producer_neither_fills_the_ring_of_another_nor_delays_it() {
    let (mut loud, mut rx) = mpsc::channel::<u64>(2, 256);
    let mut quiet = loud.try_clone().unwrap();
    assert!(loud.try_clone().is_none(), "the ring was made for two");
    while loud.push(0).is_ok() {}
    assert_eq!((loud.room(), quiet.room()), (0, 256));
    quiet.push_slice(&[1, 1]);
    assert_eq!(rx.depth(), 258);
    // One at a time: after a batch of the loud one it is the quiet one's turn.
    let first: Vec<_> = (0..BATCH + 1).map(|_| rx.pop().unwrap()).collect();
    assert_eq!(first.iter().position(|item| *item == 1), Some(BATCH));
    // A batch at a time: each call begins with the next lane.
    quiet.push(1).unwrap();
    let mut is_served = false;
    for _ in 0..2 {
        rx.drain(BATCH, |item| is_served |= item == 1);
    }
    assert!(is_served);
    while rx.drain(BATCH, |_| ()) > 0 {}
    assert_eq!((rx.depth(), rx.pop()), (0, None));
}

#[test]
fn a_lane_goes_to_the_next_producer_with_its_items() {
    let (a, mut rx) = mpsc::channel::<u64>(2, 4);
    for round in 0..10 {
        let mut b = a.try_clone().unwrap();
        assert_eq!((b.lane(), b.push(round)), (1, Ok(())));
        drop(b);
        assert!(!rx.is_abandoned(), "one is left");
        if round % 3 == 2 {
            let mut taken = Vec::new();
            rx.drain(BATCH, |item| taken.push(item));
            assert_eq!(taken, [round - 2, round - 1, round]);
        }
    }
    drop(a);
    assert!(rx.is_abandoned());
    assert_eq!([rx.pop(), rx.pop()], [Some(9), None]);
}

#[test]
fn the_slowest_reader_gates_the_writer_and_refusals_are_counted() {
    let (mut tx, mut readers) = broadcast::channel::<u32>(4, 2);
    assert_eq!([1, 2, 3].map(|item| tx.try_write(item)), [Ok(()); 3]);
    assert_eq!(readers[0].drain(BATCH, |_| ()), 3);
    assert_eq!((tx.lag(0), tx.lag(1), readers[1].lag()), (Some(0), Some(3), 3));
    assert_eq!((tx.capacity(), tx.readers()), (4, 2));
    assert_eq!([4, 5].map(|item| tx.try_write(item)), [Ok(()), Err(Full(5))]);
    assert_eq!((tx.refused(), tx.written()), (1, 4));
    assert_eq!(readers[1].read(), Some(1));
    assert_eq!(tx.try_write(5), Ok(()));
    let slow = readers.pop().unwrap();
    assert_eq!(slow.number(), 1);
    drop(slow);
    assert_eq!(tx.lag(1), None);
    let mut seen = Vec::new();
    readers[0].drain(BATCH, |item| seen.push(item));
    assert_eq!(seen, [4, 5]);
    assert_eq!([6, 7, 8, 9].map(|item| tx.try_write(item)), [Ok(()); 4], "only the quick one counts now");
    readers.clear();
    assert_eq!([0; 9].map(|item| tx.try_write(item)), [Ok(()); 9], "nobody to wait for");
}

#[test]
fn an_item_changed_in_place_keeps_what_its_slot_held_a_lap_before() {
    let (mut tx, mut readers) = broadcast::channel::<[u64; 2]>(2, 1);
    for n in 0..6 {
        assert!(tx.try_write_over(|| [0, 100 + n], |item| item[0] = n));
        assert_eq!(readers[0].read(), Some([n, 100 + n % 2]), "the second word is the first lap's");
    }
    assert!(tx.try_write([7, 7]).is_ok() && tx.try_write_over(|| [0, 0], |item| item[0] = 8));
    assert!(!tx.try_write_over(|| [0, 0], |_| panic!("no room")) && tx.refused() == 1);
    assert_eq!((readers[0].read(), readers[0].read()), (Some([7, 7]), Some([8, 101])));
}

#[test]
fn a_log_drops_and_counts_what_finds_no_room() {
    let (mut a, mut reader) = log::channel(2, 2, 10);
    let mut b = a.try_clone(11).unwrap();
    assert!(a.try_clone(12).is_none());
    for i in 0..5 {
        a.write(Ticks(i), 1, [i, i * 2]);
    }
    b.write(Ticks(9), 2, []);
    assert_eq!(reader.dropped(), 3);
    let mut records = Vec::new();
    assert_eq!(reader.drain(BATCH, |record| records.push(record)), 3);
    records.sort_by_key(|record| record.ticks);
    let told: Vec<_> = records.iter().map(|r| (r.ticks.0, r.code, r.thread, r.numbers().to_vec())).collect();
    assert_eq!(told, [(0, 1, 10, vec![0, 0]), (1, 1, 10, vec![1, 2]), (9, 2, 11, vec![])]);
    drop((a, b));
    assert!(reader.is_abandoned());
    assert_eq!(reader.drain(BATCH, |_| ()), 0);
}

#[test]
fn batches_of_any_size_cross_threads_in_order() {
    let (mut tx, mut rx) = spsc::channel::<u64>(64);
    let (mut line_tx, mut line_rx) = line::channel::<[u64; 7]>(32);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut seeded, mut sent, mut items) = (Seeded(1), 0, Vec::new());
            while sent < ITEMS {
                items.clear();
                items.extend(sent..(sent + 1 + seeded.below(80)).min(ITEMS));
                sent += until(|| Some(tx.push_slice(&items)).filter(|count| *count > 0)) as u64;
            }
            for i in 0..ITEMS {
                until(|| line_tx.push([i, !i, 0, 0, 0, 0, i]).ok());
            }
        });
        let (mut seeded, mut expected) = (Seeded(2), 0);
        while expected < ITEMS {
            let limit = 1 + seeded.below(80) as usize;
            let check = |expected: &mut u64, item| {
                assert_eq!(item, *expected);
                *expected += 1;
            };
            until(|| Some(rx.drain(limit, |item| check(&mut expected, item))).filter(|count| *count > 0));
        }
        let mut expected = 0;
        while expected < ITEMS {
            let check = |item: [u64; 7]| {
                assert_eq!(item, [expected, !expected, 0, 0, 0, 0, expected]);
                expected += 1;
            };
            if line_rx.drain(BATCH, check) == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!((rx.pop(), line_rx.pop()), (None, None));
    });
}

#[test]
fn three_producers_that_come_and_go_lose_and_double_nothing() {
    let (first, mut rx) = mpsc::channel::<[u64; 2]>(4, 32);
    std::thread::scope(|scope| {
        for who in 0..3u64 {
            let mut tx = first.try_clone().unwrap();
            let spare = first.try_clone();
            drop(spare);
            scope.spawn(move || {
                for i in 0..ITEMS / 3 {
                    if i % 1000 == 0 {
                        // Another lane, or the same one again: order is a lane's own, so wait until
                        // it is read out.
                        until(|| (tx.depth() == 0).then_some(()));
                        if let Some(next) = tx.try_clone() {
                            tx = next;
                        }
                    }
                    until(|| tx.push([who, i]).ok());
                }
            });
        }
        drop(first);
        let mut next = [0; 3];
        while !(rx.is_abandoned() && rx.depth() == 0) {
            let taken = rx.drain(BATCH, |[who, i]| {
                assert_eq!(i, next[who as usize], "each producer's items come in its order");
                next[who as usize] += 1;
            });
            if taken == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(next, [ITEMS / 3; 3]);
    });
}

#[test]
fn every_reader_sees_every_item_in_order() {
    let (mut tx, readers) = broadcast::channel::<u64>(64, 3);
    std::thread::scope(|scope| {
        for mut reader in readers {
            scope.spawn(move || {
                // The last one leaves early; the others must not be held back by it.
                let end = if reader.number() == 2 { ITEMS / 3 } else { ITEMS };
                let mut expected = 0;
                while expected < end {
                    let limit = BATCH.min((end - expected) as usize);
                    let taken = reader.drain(limit, |item| {
                        assert_eq!(item, expected);
                        expected += 1;
                    });
                    if taken == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for i in 0..ITEMS {
            until(|| tx.try_write(i).ok());
        }
    });
}

#[test]
fn a_batch_whose_making_panics_leaves_nothing_behind() {
    let (mut spsc_tx, mut spsc_rx) = spsc::channel::<u64>(8);
    let (mut line_tx, mut line_rx) = line::channel::<u64>(8);
    let bomb = |index: usize| if index == 1 { panic!("on purpose") } else { index as u64 };
    assert!(panics(|| spsc_tx.push_each(4, bomb)));
    assert!(panics(|| line_tx.push_each(4, bomb)));
    assert_eq!((spsc_rx.pop(), line_rx.pop()), (None, None));
    // Of the line ring's batch the last two were written: none of them is found behind what comes
    // now.
    assert_eq!((spsc_tx.push_each(1, |_| 70), line_tx.push_each(1, |_| 70)), (1, 1));
    assert_eq!([spsc_rx.pop(), spsc_rx.pop()], [Some(70), None]);
    assert_eq!([line_rx.pop(), line_rx.pop()], [Some(70), None]);
    assert_eq!((spsc_tx.push_each(9, |i| i as u64), line_tx.push_each(9, |i| i as u64)), (8, 8));
    assert_eq!((0..8).map(|_| spsc_rx.pop()).collect::<Vec<_>>(), (0..8).map(Some).collect::<Vec<_>>());
    assert_eq!((0..8).map(|_| line_rx.pop()).collect::<Vec<_>>(), (0..8).map(Some).collect::<Vec<_>>());
}
