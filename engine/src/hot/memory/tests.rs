#![allow(clippy::disallowed_methods, reason = "harness")]
use super::region::{ARENA_BYTES_MAX, owner_of};
use super::{Allocator, Arena, account, arm, disarm, excused, first_callers, is_seen, lend};
use crate::profile::HotAllocations;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn is_lent<T>(block: *const T) -> bool {
    owner_of(block as usize).is_some()
}

#[test]
fn what_is_made_within_an_arena_lies_in_it_and_the_rest_does_not() {
    let mut arena = Arena::new();
    let inside = arena.within(|| vec![7u64; 1000]);
    let outside = vec![7u64; 1000];
    assert!(is_lent(inside.as_ptr()) && !is_lent(outside.as_ptr()));
    assert_eq!(inside, outside);
    let usage = arena.usage();
    assert!(usage.used_bytes >= 8000 && usage.touched_bytes >= usage.used_bytes, "{usage:?}");
    assert!(usage.locked_bytes <= usage.touched_bytes);
}

#[test]
fn a_block_outlives_its_arena_and_may_be_dropped_on_another_thread() {
    let made = Arena::new().within(|| (0..100).map(|n| vec![n; 50]).collect::<Vec<Vec<usize>>>());
    std::thread::spawn(move || assert!(made.iter().enumerate().all(|(n, row)| row.iter().all(|x| *x == n))))
        .join()
        .expect("the rows are whole");
}

#[test]
fn places_are_used_again_when_their_last_block_is_gone() {
    for _ in 0..2_000 {
        let mut arena = Arena::new();
        let block = arena.within(|| Box::new(5u8));
        assert!(is_lent(&raw const *block));
        drop(arena);
        drop(block);
    }
}

#[test]
fn a_sealed_arena_takes_nothing_more() {
    let mut arena = Arena::new();
    let _ = arena.within(|| vec![0u8; 100]);
    arena.seal();
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| arena.within(|| vec![0u8; 100])));
    assert!(refused.is_err() && arena.is_sealed());
}

#[test]
fn growing_moves_contents_and_small_blocks_are_used_again() {
    let mut arena = Arena::new();
    let grown: Vec<u32> = arena.within(|| (0..100_000).collect());
    assert!(is_lent(grown.as_ptr()) && grown.iter().copied().eq(0..100_000));
    let before = arena.usage().used_bytes;
    arena.within(|| (0..100_000u64).for_each(|n| assert_eq!(*std::hint::black_box(Box::new(n)), n)));
    assert!(arena.usage().used_bytes <= before + 16, "one block serves all");
    let zeroed = arena.within(|| vec![0u64; 100]);
    assert!(zeroed.iter().all(|word| *word == 0));
}

#[test]
fn what_finds_no_room_comes_from_the_system() {
    let mut arena = Arena::new();
    let large = arena.within(|| vec![1u8; ARENA_BYTES_MAX + 1]);
    assert!(!is_lent(large.as_ptr()) && large[ARENA_BYTES_MAX] == 1);
}

#[test]
fn any_mix_of_sizes_alignments_and_scopes_keeps_every_block_whole() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut arenas = [Arena::new(), Arena::new()];
    let mut held: Vec<Vec<u64>> = Vec::new();
    for step in 0..50_000u64 {
        let draw = random.next_u64();
        let length = 1 + (draw >> 8) as usize % if draw.is_multiple_of(50) { 5_000 } else { 100 };
        let block = || vec![step; length];
        match draw % 5 {
            0 | 1 => held.push(arenas[(draw >> 40) as usize % 2].within(block)),
            2 => held.push(block()),
            3 if !held.is_empty() => {
                let at = (draw >> 32) as usize % held.len();
                let arena = &mut arenas[(draw >> 40) as usize % 2];
                let mark = held[at][0];
                arena.within(|| held[at].resize(length, mark));
            }
            _ if !held.is_empty() => {
                let gone = held.swap_remove((draw >> 32) as usize % held.len());
                assert!(gone.iter().all(|word| *word == gone[0]));
            }
            _ => {}
        }
        if held.len() > 500 {
            held.truncate(100);
        }
    }
    assert!(held.iter().all(|block| block.iter().all(|word| *word == block[0])));
}

/// On a thread of its own, since accounts are per thread.
fn alone<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(body).join().expect("no assertion inside")
}

#[inline(never)]
fn an_offender() -> Vec<u8> {
    std::hint::black_box(vec![1; 300])
}

#[test]
fn calls_of_an_armed_thread_are_counted_and_the_first_is_named() {
    let (calls, callers) = alone(|| {
        assert!(is_seen());
        drop(an_offender());
        arm(HotAllocations::Count);
        drop(an_offender());
        drop(an_offender());
        disarm();
        drop(an_offender());
        (account().calls, first_callers())
    });
    assert_eq!(calls, 4, "two allocations, two frees");
    let said = super::described(&callers);
    assert!(said.contains("an_offender") && said.contains("tests.rs:"), "{said}");
}

#[test]
fn what_the_own_reserve_serves_is_lent_and_no_offence() {
    let found = alone(|| {
        let attached = Arena::new().attach();
        let mut attached = attached;
        attached.arena.reserve(100_000);
        attached.arena.seal();
        arm(HotAllocations::Count);
        lend(|| drop(an_offender()));
        let within = account();
        lend(|| drop(std::hint::black_box(vec![0u8; 10_000_000])));
        disarm();
        (within.calls, within.lent, account().calls)
    });
    assert_eq!(found, (0, 1, 2), "what the sealed reserve has no room for is an offence");
}

#[test]
fn a_panic_and_what_is_excused_are_no_offence() {
    let calls = alone(|| {
        super::super::install_hook();
        super::super::panics::mark_hot();
        arm(HotAllocations::Count);
        let payload = std::panic::catch_unwind(|| panic!("{}", std::hint::black_box("on purpose"))).unwrap_err();
        excused(|| {
            drop(payload);
            drop(an_offender());
        });
        disarm();
        account().calls
    });
    assert_eq!(calls, 0);
}
