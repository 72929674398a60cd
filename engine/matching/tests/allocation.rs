//! A counting allocator: it sees no allocation while shots of every kind are matched, and as many bytes
//! in use as each part of the crate says.
#![allow(clippy::unwrap_used, unsafe_code, reason = "harness")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use pinwheel_matching::{
    BlockFusion, BlockMatcher, BlockModel, CorrelatedMatcher, CorrelatedModel, Correlation, Edge, Lookup, LookupModel,
    Matcher, MatchingModel, StreamMatcher, StreamModel, TABLE_BYTES_MAX, UnionFind,
};

struct Counting;

thread_local! {
    /// Of this thread: the harness's own threads allocate when they like.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size().cast_signed()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() - layout.size().cast_signed()));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIDE: u32 = 12;

/// A square of `SIDE` by `SIDE` detectors with diagonals, a boundary on two sides, weights in a
/// narrow range, so that blossoms form and come apart.
fn model(words: usize, table_bytes_max: usize) -> MatchingModel {
    let bits = vec![5u64; words];
    MatchingModel::with_tables(SIDE * SIDE, words, edges(&bits), table_bytes_max).unwrap()
}

fn edges(bits: &[u64]) -> Vec<Edge<'_>> {
    let mut edges = Vec::new();
    for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
        let at = row * SIDE + column;
        let weight = 4.0 + f64::from(at * 7 % 13) / 8.0;
        let mut add = |b: Option<u32>, weight| edges.push(Edge { a: at, b, weight, observables: bits });
        if column + 1 < SIDE {
            add(Some(at + 1), weight);
        }
        if row + 1 < SIDE {
            add(Some(at + SIDE), weight + 0.5);
        }
        if column + 1 < SIDE && row + 1 < SIDE {
            add(Some(at + SIDE + 1), weight + 1.0);
        }
        if column == 0 || column + 1 == SIDE {
            add(None, weight);
        }
    }
    edges
}

#[test]
fn nothing_is_allocated_after_construction() {
    for (words, table_bytes_max) in [(1, TABLE_BYTES_MAX), (1, 0), (3, TABLE_BYTES_MAX), (3, 0)] {
        let model = Arc::new(model(words, table_bytes_max));
        let mut matcher = Matcher::new(Arc::clone(&model));
        // Each edge makes three others lighter.
        let correlation = |index| Correlation {
            edge: index / 3,
            other: (index * 37 + 5) % model.edges(),
            weight: f64::from(index % 9) / 4.0,
        };
        let correlations = (0..3 * model.edges()).map(correlation);
        let correlated = CorrelatedModel::new(Arc::clone(&model), correlations).unwrap();
        let mut correlated = CorrelatedMatcher::new(Arc::new(correlated));
        let mut union_find = UnionFind::new(Arc::clone(&model));
        let mut observables = vec![0; words];
        let mut state = 1u64;
        let before = allocations();
        let mut weight = 0.0;
        for shot in 0..2_000u64 {
            // From a few defects to every detector.
            let density = 1 + shot % 64;
            let mut fired = |_: &u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 64 < density
            };
            weight += matcher.decode((0..SIDE * SIDE).filter(&mut fired), &mut observables).unwrap().weight;
            weight += union_find.decode((0..SIDE * SIDE).filter(&mut fired), &mut observables).unwrap().weight;
            if shot % 8 == 0 {
                union_find.edges(|edge| weight += f64::from(edge));
                assert!(union_find.decode([SIDE * SIDE], &mut observables).is_err());
                matcher.edges(|edge| weight += f64::from(edge));
                let weights = (0..20).map(|edge| (edge, f64::from(edge) - 10.0));
                let twice = (0..SIDE * SIDE).chain(0..9).chain(0..SIDE * SIDE).filter(&mut fired);
                weight += matcher.decode_weighted(twice, weights, &mut observables).unwrap().weight;
                let few = (0..shot as u32 % 5).map(|edge| (edge * 19, 0.5));
                weight += matcher.decode_weighted([3, 17, 40, 91], few, &mut observables).unwrap().weight;
                let fired = (0..SIDE * SIDE).filter(&mut fired);
                weight += correlated.decode(fired, &mut observables).unwrap().weight;
                assert!(matcher.decode([SIDE * SIDE], &mut observables).is_err());
            }
        }
        let after = allocations();
        assert_eq!(after - before, 0, "{words} words, tables of {table_bytes_max} bytes, weight {weight}");
    }
}

/// Each row of the square is a round.
#[test]
fn nothing_is_allocated_in_a_stream() {
    let round_of: Vec<u32> = (0..SIDE * SIDE).map(|detector| detector / SIDE).collect();
    for (commit, buffer) in [(1, 1), (2, 3), (3, SIDE)] {
        let model = StreamModel::new(&round_of, 1, edges(&[5]), commit, buffer).unwrap();
        let mut matcher = StreamMatcher::new(Arc::new(model));
        let mut state = 1u64;
        let before = allocations();
        let mut weight = 0.0;
        for shot in 0..4_000u64 {
            let mut fired = |_: &u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % 64 < 1 + shot % 64
            };
            matcher.begin();
            for round in 0..SIDE {
                let _ = matcher.round(round, (round * SIDE..(round + 1) * SIDE).filter(&mut fired));
                if round % 3 == 0 {
                    let _ = matcher.advance();
                }
            }
            weight += matcher.finish(&mut [0]).map_or(0.0, |matched| matched.weight);
        }
        let after = allocations();
        assert_eq!(after - before, 0, "commit {commit}, buffer {buffer}, weight {weight}");
    }
}

/// Each row of the square is a round.
#[test]
fn nothing_is_allocated_in_blocks() {
    let round_of: Vec<u32> = (0..SIDE * SIDE).map(|detector| detector / SIDE).collect();
    for block_rounds in [1, 5, SIDE] {
        let model = Arc::new(BlockModel::new(&round_of, 1, edges(&[5]), block_rounds).unwrap());
        let block = |index| BlockMatcher::new(Arc::clone(&model), index);
        let mut blocks: Vec<BlockMatcher> = (0..model.blocks()).map(block).collect();
        let mut fusion = BlockFusion::new(Arc::clone(&model));
        let mut state = 1u64;
        let before = allocations();
        let mut weight = 0.0;
        for shot in 0..2_000u64 {
            for block in &mut blocks {
                block.decode(|round| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let drawn = state;
                    let fired = move |at: &u32| drawn.rotate_right(*at) % 64 < 1 + shot % 64;
                    (round * SIDE..(round + 1) * SIDE).filter(fired)
                });
                fusion.take(block);
            }
            weight += fusion.finish(&mut [0]).map_or(0.0, |matched| matched.weight);
        }
        let after = allocations();
        assert_eq!(after - before, 0, "blocks of {block_rounds}, weight {weight}");
    }
}

#[test]
fn nothing_is_allocated_in_a_look_up() {
    let ring = (0..12).map(|at| Edge { a: at, b: (at != 5).then_some((at + 1) % 12), weight: 1.0, observables: &[5] });
    let table = LookupModel::new(Arc::new(MatchingModel::new(13, 1, ring).unwrap()), 1 << 20).unwrap();
    let mut lookup = Lookup::new(Arc::new(table));
    let before = allocations();
    let mut answered = 0;
    for shot in 0..1u32 << 13 {
        answered += u32::from(lookup.decode((0..13).filter(|at| shot >> at & 1 == 1), &mut [0]).is_ok());
    }
    assert!(lookup.decode([13], &mut [0]).is_err());
    assert_eq!((allocations() - before, answered), (0, 1 << 12));
}

/// What `make` makes, and the bytes on the heap that it leaves in use.
fn held<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.with(Cell::get);
    let made = make();
    (made, (BYTES.with(Cell::get) - before).cast_unsigned())
}

/// `bytes` is what a part says of itself.
#[track_caller]
fn says<T>(make: impl FnOnce() -> T, bytes: impl FnOnce(&T) -> usize) -> Arc<T> {
    let (made, held) = held(make);
    assert_eq!(bytes(&made), held);
    assert!(held > 0);
    Arc::new(made)
}

/// Most bytes of a matcher of distance 13 over 13 rounds, those included that all workers share.
const BYTES_MAX_D13: usize = 4_000_000;

/// The detectors of one kind and the edges of a rotated surface code, a layer for each round and
/// one more. A qubit is an edge in each layer. Faults within a round are the edges from one layer
/// to the next.
fn surface_code(distance: u32, rounds: u32) -> (u32, Vec<Edge<'static>>) {
    let (half, corners) = (distance.div_ceil(2), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    // Every second place where qubits meet has a detector, but not on two opposite sides.
    let detector = |(row, column): (u32, u32)| {
        let is_one = (1..distance).contains(&row) && (row + column).is_multiple_of(2);
        is_one.then(|| (row - 1) * half + column / 2)
    };
    let count = (distance - 1) * half;
    let mut edges = Vec::new();
    for (layer, next) in (0..=rounds).map(|round| (round * count, (round < rounds).then_some((round + 1) * count))) {
        let mut add = |a: u32, b: Option<u32>| {
            let weight = 4.0 + f64::from(edges.len() as u32 * 7 % 13) / 8.0;
            edges.push(Edge { a, b, weight, observables: &[1] });
        };
        for (row, column) in (0..distance).flat_map(|row| (0..distance).map(move |column| (row, column))) {
            let ends: Vec<u32> = corners.into_iter().filter_map(|(y, x)| detector((row + y, column + x))).collect();
            add(layer + ends[0], ends.get(1).map(|end| layer + end));
            if let (Some(next), [a, b]) = (next, &ends[..]) {
                add(layer + a, Some(next + b));
                add(layer + b, Some(next + a));
            }
        }
        for (at, next) in (0..count).filter_map(|at| Some((at, next?))) {
            add(layer + at, Some(next + at));
            // Faults that spread to two qubits.
            [at + 1, at + 2 * half]
                .into_iter()
                .filter(|to| *to < count)
                .for_each(|to| add(layer + at, Some(next + to)));
        }
    }
    (count * (rounds + 1), edges)
}

#[test]
fn a_matcher_of_distance_13_takes_at_most_4_mb() {
    let (detectors, edges) = surface_code(13, 13);
    assert!(detectors == 1_176 && edges.len() > 8_500, "{} edges", edges.len());
    let model = Arc::new(MatchingModel::new(detectors, 1, edges).unwrap());
    let one_pass = Matcher::new(Arc::clone(&model)).bytes() + model.bytes();
    let correlation = |index| Correlation { edge: index / 4, other: (index * 37 + 5) % model.edges(), weight: 2.0 };
    let correlated = (0..4 * model.edges()).map(correlation);
    let correlated = Arc::new(CorrelatedModel::new(Arc::clone(&model), correlated).unwrap());
    let two_passes = CorrelatedMatcher::new(Arc::clone(&correlated)).bytes() + correlated.bytes() + model.bytes();
    assert!(one_pass.max(two_passes) <= BYTES_MAX_D13, "{one_pass} and {two_passes} bytes");
}

#[test]
fn each_part_says_how_many_bytes_it_has_on_the_heap() {
    for (words, table_bytes_max) in [(1, TABLE_BYTES_MAX), (3, 0)] {
        let shared = says(|| model(words, table_bytes_max), MatchingModel::bytes);
        says(|| Matcher::new(Arc::clone(&shared)), Matcher::bytes);
        says(|| UnionFind::new(Arc::clone(&shared)), UnionFind::bytes);
        let correlation = |edge| Correlation { edge, other: edge + 1, weight: 0.5 };
        let make = || CorrelatedModel::new(Arc::clone(&shared), (0..20).map(correlation)).unwrap();
        let correlated = says(make, CorrelatedModel::bytes);
        says(|| CorrelatedMatcher::new(Arc::clone(&correlated)), CorrelatedMatcher::bytes);
    }
    let ring = (0..12).map(|at| Edge { a: at, b: (at != 5).then_some((at + 1) % 12), weight: 1.0, observables: &[5] });
    let ring = Arc::new(MatchingModel::new(13, 1, ring).unwrap());
    let table = says(|| LookupModel::new(Arc::clone(&ring), 1 << 20).unwrap(), LookupModel::bytes);
    says(|| Lookup::new(Arc::clone(&table)), Lookup::bytes);
}

/// Each row of the square is a round.
#[test]
fn streams_and_blocks_say_how_many_bytes_they_have_on_the_heap() {
    let round_of: Vec<u32> = (0..SIDE * SIDE).map(|detector| detector / SIDE).collect();
    let stream = says(|| StreamModel::new(&round_of, 1, edges(&[5]), 2, 3).unwrap(), StreamModel::bytes);
    says(|| StreamMatcher::new(Arc::clone(&stream)), StreamMatcher::bytes);
    let blocks = says(|| BlockModel::new(&round_of, 1, edges(&[5]), 4).unwrap(), BlockModel::bytes);
    for index in 0..blocks.blocks() {
        says(|| BlockMatcher::new(Arc::clone(&blocks), index), BlockMatcher::bytes);
    }
    says(|| BlockFusion::new(Arc::clone(&blocks)), BlockFusion::bytes);
}
