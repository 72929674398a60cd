//! Inference against brute force: every byte remembers who wrote and who read it.

use super::super::overlap::Overlap;
use super::super::predecessors::{Predecessors, WindowState};
use super::super::region::{Access, Mode, Region, Shape, TensorLayout, Tile};
use super::super::{Config, Deps, Ready, Start, Task, Tensor, Workload};
use super::{Log, Seeded, clock, drive, of_workload, small};

const BYTES: u32 = 96;

/// Rows of 24 bytes, granules of 16: tiles straddle granules, and rows do not begin with one.
fn shape() -> Shape {
    Shape { rows: 4, columns: 12, element_bytes: 2, granule_bytes: 16 }
}

/// What each byte remembers.
#[derive(Clone, Default)]
struct Byte {
    writer: Option<u32>,
    readers: Vec<u32>,
}

struct Oracle {
    bytes: Vec<Byte>,
    /// Of each task: all that it waits for, directly or not, as bits.
    closure: Vec<u64>,
}

fn bytes_of(region: &Region) -> impl Iterator<Item = usize> + use<> {
    let Tile { row, column, rows, columns, .. } = region.tile;
    (row..row + rows)
        .flat_map(move |row| (column * 2..(column + columns) * 2).map(move |byte| (row * 24 + byte) as usize))
}

impl Oracle {
    fn new() -> Oracle {
        Oracle { bytes: vec![Byte::default(); BYTES as usize], closure: Vec::new() }
    }

    /// Predecessors by data and by order of the next task, as bits.
    fn submit(&mut self, accesses: &[Access]) -> (u64, u64) {
        let task = self.closure.len() as u32;
        let (mut data, mut order) = (0, 0);
        for access in accesses {
            for byte in bytes_of(&access.region) {
                let byte = &self.bytes[byte];
                let writer = byte.writer.map_or(0, |writer| 1u64 << writer);
                if access.mode != Mode::Out {
                    data |= writer;
                }
                if access.mode != Mode::In {
                    order |= writer | byte.readers.iter().fold(0, |all, reader| all | 1u64 << reader);
                }
            }
        }
        for access in accesses {
            for byte in bytes_of(&access.region) {
                let byte = &mut self.bytes[byte];
                match access.mode {
                    Mode::In if byte.writer != Some(task) => byte.readers.push(task),
                    Mode::In => {}
                    Mode::Out | Mode::InOut => *byte = Byte { writer: Some(task), readers: Vec::new() },
                }
            }
        }
        let direct = data | order;
        let all =
            (0..task).filter(|one| direct >> one & 1 == 1).fold(direct, |all, one| all | self.closure[one as usize]);
        self.closure.push(all);
        (data, order)
    }
}

fn random_accesses(seeded: &mut Seeded, tensor: Tensor) -> Vec<Access> {
    (0..1 + seeded.below(3))
        .map(|_| {
            let (row, column) = (seeded.below(4), seeded.below(12));
            let (rows, columns) = (1 + seeded.below(4 - row), 1 + seeded.below(12 - column));
            let mode = [Mode::In, Mode::Out, Mode::InOut][seeded.below(3) as usize];
            Access { region: tensor.tile(row, column, rows, columns), mode }
        })
        .collect()
}

#[test]
fn overlap_finds_what_brute_force_finds_in_a_hundred_thousand_programs() {
    let layout = TensorLayout { shape: shape(), first_granule: 0, granule_shift: 4, pitch_bytes: 24 };
    let tensor = Tensor { number: 0, layout };
    let mut predecessors = Predecessors::new(64);
    for seed in 1..=100_000u64 {
        let mut seeded = Seeded(seed);
        let mut map = Overlap::new(vec![layout].into_boxed_slice(), 6, 512);
        let mut oracle = Oracle::new();
        // Numbers start so that they wrap in some programs.
        let base = 0u32.wrapping_sub(seeded.below(16));
        let mut window = WindowState { now: base, under_way: 0, failed: Vec::new() };
        let mut retired = 0;
        for task in 0..2 + seeded.below(14) {
            (window.now, window.under_way) = (base.wrapping_add(task), task - retired);
            let accesses = random_accesses(&mut seeded, tensor);
            predecessors.clear();
            assert!(map.infer(&accesses, &window, &mut predecessors).is_ok(), "seed {seed}");
            let (data, order) = oracle.submit(&accesses);
            let under_way = !0u64 << retired;
            let bits = |is_data: bool| {
                let wanted = predecessors.list().iter().filter(|one| !is_data || one.is_data);
                wanted.fold(0u64, |all, one| all | 1 << one.task.wrapping_sub(base))
            };
            assert_eq!(bits(true), data & under_way, "seed {seed} task {task}: data, {accesses:?}");
            let all = bits(false);
            let missed = (data | order) & under_way & !all;
            assert_eq!(missed, 0, "seed {seed} task {task}: missed, {accesses:?}");
            let invented = all & !oracle.closure[task as usize];
            assert_eq!(invented, 0, "seed {seed} task {task}: invented, {accesses:?}");
            let failed = window.failed.iter().fold(0, |all, (one, _)| all | 1u64 << one.wrapping_sub(base));
            assert_eq!(
                predecessors.failed_outcome != 0,
                data & failed != 0,
                "seed {seed} task {task}: a failure that retired"
            );
            if retired < task && seeded.below(3) == 0 {
                if seeded.below(4) == 0 {
                    window.failed.push((base.wrapping_add(retired), 1));
                }
                retired += 1;
            }
            if seeded.below(8) == 0 {
                (window.now, window.under_way) = (base.wrapping_add(task + 1), task + 1 - retired);
                map.sweep_some(&window);
            }
        }
    }
}

fn threaded_program(seed: u64, ready: Ready, window_tasks: u32) {
    let mut seeded = Seeded(seed);
    let tasks = 60;
    let start = [Start::Immediate, Start::AfterOrchestration, Start::Threshold(7)][seeded.below(3) as usize];
    let config = Config { deps: Deps::InferBytesOverlap, start, window_tasks, ..small(2, ready) };
    let mut workload = Workload::new(config);
    let tensor: Tensor = workload.tensor(shape()).unwrap();
    let log = Log::new(tasks);
    let compiled = of_workload(workload, clock(), log.body());
    let mut oracle = Oracle::new();
    let summary = drive(compiled, |graph| {
        for index in 0..tasks {
            let accesses = random_accesses(&mut seeded, tensor);
            oracle.submit(&accesses);
            let id = graph.submit(&Task::new(0, [index as u64, 0, 0]), &accesses, &[]).unwrap();
            assert_eq!(id.0, index as u64 + 1);
        }
        graph.finish()
    });
    assert_eq!((summary.retired, summary.failed), (tasks as u64, 0));
    for task in 0..tasks {
        for before in (0..task).filter(|before| oracle.closure[task] >> before & 1 == 1) {
            assert!(log.is_before(before, task), "seed {seed} {ready:?}: {task} ran before {before} had ended");
        }
    }
}

#[test]
fn random_programs_on_two_threads_keep_every_order() {
    for seed in 1..=600 {
        for ready in [Ready::WorkSteal, Ready::Fifo, Ready::FifoPerStream] {
            threaded_program(seed, ready, [4, 16, 64][seed as usize % 3]);
        }
    }
}

#[test]
fn the_exact_map_finds_the_last_writer_of_the_same_region_and_nothing_else() {
    for seed in 1..=300u64 {
        let mut seeded = Seeded(seed);
        let config = Config { deps: Deps::InferTensorMapExact, map_entries: 16, ..small(1, Ready::WorkSteal) };
        let mut workload = Workload::new(Config { start: Start::AfterOrchestration, ..config });
        let tensor = workload.tensor(shape()).unwrap();
        let (mut graph, _, _) = of_workload(workload, clock(), |_: &super::Work| super::Ended::Done);
        let mut last: Vec<(Region, u32)> = Vec::new();
        for number in 1..=12u32 {
            let region = |seeded: &mut Seeded| tensor.tile(0, seeded.below(2), 1, 1 + seeded.below(2));
            let (read, written) = (region(&mut seeded), region(&mut seeded));
            graph.try_submit(&super::task(0), &[read.read(), written.write()], &[]).unwrap();
            let expected = last.iter().rev().find(|(region, _)| *region == read).map(|(_, task)| *task);
            let found: Vec<u32> = graph.predecessors.list().iter().map(|one| one.task).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "seed {seed} task {number}");
            last.push((written, number));
        }
        assert_eq!(graph.finish().retired, 12);
    }
}
