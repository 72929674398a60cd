//! The bundled graphs: five for comparison with other runtimes, and three with real bodies, one of
//! which uses a device.
//!
//! Pure. In the first five every task writes a granule of its own and reads those of its
//! predecessors, half of them only partly, so that dependencies follow from overlaps.

use super::graph_spec::{GraphSpec, Kernel, Row, Tile};
use crate::graph::Shape;

/// Names of the bundled graphs.
pub const NAMES: [&str; 8] = ["chain", "independent", "tree", "wavefront", "random", "matmul", "attention", "offload"];

/// Most tasks of a bundled graph.
pub const TASKS_MAX: u32 = 1 << 20;
/// Bytes that each task of the first five graphs writes.
const OWN: u32 = 64;
/// Elements along the side of a tile, in graphs with real bodies.
const SIDE: u32 = 16;

/// The bundled graph `name` of about `tasks` tasks, if there is one.
///
/// # Panics
/// If `tasks` is 0 or above [`TASKS_MAX`].
pub fn bundled(name: &str, tasks: u32) -> Option<GraphSpec> {
    assert!((1..=TASKS_MAX).contains(&tasks), "{tasks} tasks, expected 1..={TASKS_MAX}");
    let root = |power: u32| (f64::from(tasks).powf(1.0 / f64::from(power)).round() as u32).max(1);
    Some(match name {
        "matmul" => matmul(root(3)),
        "attention" => attention(f64::from(tasks.div_ceil(3)).sqrt().round() as u32),
        "offload" => offload(tasks.div_ceil(3)),
        _ => of_predecessors(name, &predecessors(name, tasks)?),
    })
}

/// Predecessors of each task of the first five graphs; at most two each.
pub fn predecessors(name: &str, tasks: u32) -> Option<Vec<Vec<u32>>> {
    let side = f64::from(tasks).sqrt().round() as u32;
    Some(match name {
        "chain" => (0..tasks).map(|task| task.checked_sub(1).into_iter().collect()).collect(),
        "independent" => vec![Vec::new(); tasks as usize],
        "tree" => (0..tasks).map(|task| task.checked_sub(1).map(|before| before / 2).into_iter().collect()).collect(),
        "wavefront" => (0..side * side)
            .map(|task| {
                let left = (!task.is_multiple_of(side)).then(|| task - 1);
                left.into_iter().chain(task.checked_sub(side)).collect()
            })
            .collect(),
        "random" => random(tasks),
        _ => return None,
    })
}

/// Up to two predecessors among the last thousand.
fn random(tasks: u32) -> Vec<Vec<u32>> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move |bound: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 32) as u32) % bound
    };
    (0..tasks)
        .map(|task| {
            let count = if task == 0 { 0 } else { next(3) };
            let mut before: Vec<u32> = (0..count).map(|_| task - 1 - next(task.min(1_000))).collect();
            before.dedup();
            before
        })
        .collect()
}

fn of_predecessors(name: &str, predecessors: &[Vec<u32>]) -> GraphSpec {
    let row = |(task, before): (usize, &Vec<u32>)| {
        let read = |before: &u32| match before % 2 {
            0 => Tile(0, 0, before * OWN + OWN / 4, 1, OWN / 2),
            _ => Tile(0, 0, before * OWN, 1, OWN),
        };
        let reads = before.iter().map(read).collect();
        Row { reads, writes: vec![Tile(0, 0, task as u32 * OWN, 1, OWN)], ..Row::default() }
    };
    let columns = predecessors.len() as u32 * OWN;
    let tensors = vec![Shape { rows: 1, columns, element_bytes: 1, granule_bytes: OWN }];
    GraphSpec { name: name.to_owned(), tensors, tasks: predecessors.iter().enumerate().map(row).collect() }
}

/// A column of tiles, each a block of whole rows, so that a tile is one byte range.
fn tiles(count: u32) -> Shape {
    Shape { rows: count * SIDE, columns: SIDE, element_bytes: 4, granule_bytes: SIDE * SIDE * 4 }
}

fn tile(tensor: u32, index: u32) -> Tile {
    Tile(tensor, index * SIDE, 0, SIDE, SIDE)
}

/// C += A B, with `side` by `side` tiles.
fn matmul(side: u32) -> GraphSpec {
    let mut tasks = Vec::new();
    for (i, j, k) in (0..side * side * side).map(|at| (at / side / side, at / side % side, at % side)) {
        let reads = vec![tile(0, i * side + k), tile(1, k * side + j)];
        let updates = vec![tile(2, i * side + j)];
        tasks.push(Row { kernel: Kernel::MultiplyAdd, reads, updates, stream: j, ..Row::default() });
    }
    GraphSpec { name: "matmul".to_owned(), tensors: vec![tiles(side * side); 3], tasks }
}

/// For each block of queries: scores with each block of keys, a copy instead of the softmax, then
/// the sum over the blocks of values.
fn attention(blocks: u32) -> GraphSpec {
    // Queries, keys, values, scores, weights, outputs.
    let tensors = [blocks, blocks, blocks, blocks * blocks, blocks * blocks, blocks].map(tiles).to_vec();
    let mut tasks = Vec::new();
    for (query, key) in (0..blocks * blocks).map(|at| (at / blocks, at % blocks)) {
        let at = query * blocks + key;
        let task =
            |kernel, reads, updates, writes| Row { kernel, reads, updates, writes, stream: query, ..Row::default() };
        let (scores, weights) = (tile(3, at), tile(4, at));
        tasks.push(task(Kernel::MultiplyAdd, vec![tile(0, query), tile(1, key)], vec![scores], vec![]));
        tasks.push(task(Kernel::Copy, vec![scores], vec![], vec![weights]));
        tasks.push(task(Kernel::MultiplyAdd, vec![weights, tile(2, key)], vec![tile(5, query)], vec![]));
    }
    GraphSpec { name: "attention".to_owned(), tensors, tasks }
}

/// Four streams of launches. The processor copies a tile in, the device multiplies it into the
/// stream's sum, and the processor copies the sum out while the device works on the next stream.
fn offload(launches: u32) -> GraphSpec {
    const STREAMS: u32 = 4;
    // For each stream: input, staged tile, factor, sum, output.
    let tensors = [STREAMS; 5].map(tiles).to_vec();
    let mut tasks = Vec::new();
    for stream in (0..launches).map(|launch| launch % STREAMS) {
        let of = |tensor| tile(tensor, stream);
        let copy = |from, to| Row {
            kernel: Kernel::Copy,
            reads: vec![of(from)],
            writes: vec![of(to)],
            stream,
            ..Row::default()
        };
        tasks.push(copy(0, 1));
        let (reads, updates) = (vec![of(1), of(2)], vec![of(3)]);
        tasks.push(Row { kernel: Kernel::MultiplyAdd, reads, updates, stream, on_device: true, ..Row::default() });
        tasks.push(copy(3, 4));
    }
    GraphSpec { name: "offload".to_owned(), tensors, tasks }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, bundled};

    #[test]
    fn every_bundled_graph_is_sound_and_of_about_the_size_asked_for() {
        for name in NAMES {
            for tasks in [1, 100, 1_000] {
                let graph = bundled(name, tasks).unwrap_or_else(|| panic!("{name} is bundled"));
                assert_eq!(graph.check(), Ok(()), "{name}");
                let found = graph.tasks.len();
                assert!(found <= 2 + 5 * tasks as usize / 4 && found >= 4 * tasks as usize / 5, "{name}: {found}");
            }
        }
        assert_eq!(bundled("nonsense", 10), None);
    }
}
