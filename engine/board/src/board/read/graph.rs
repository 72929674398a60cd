//! The graph's part of the picture.

use super::super::DecodeBlock;
use super::super::get;
use super::super::histogram::{Histogram, HistogramBlock};
use super::super::snapshot::{
    FlushesView, GraphView, GraphWorkerView, HeldView, OldestView, ReadyView, RunningView, WaitsOn,
};
use super::Reader;

/// Names of the pools, by number.
const POOLS: [&str; 4] = ["cpu", "device", "vector", "cube"];

/// A worker's counts that are shown, with their places: those of the graph's own list.
#[derive(Clone, Copy)]
enum Shown {
    Ran = 0,
    Stolen = 3,
    StealsEmpty = 4,
    StealsLost = 5,
    GateWaits = 7,
    FlushesFull = 8,
    FlushesLate = 9,
    FlushesIdle = 10,
    FlushesTurn = 11,
}

impl Reader<'_> {
    pub(super) fn graph(&self, silo: usize) -> GraphView {
        let block = self.board.graph(silo);
        let decoders = || (0..self.board.shape().decoders as usize).map(|index| self.board.decode(silo, index));
        let sum = |word: fn(&DecodeBlock) -> u64| decoders().map(word).sum::<u64>();
        let all = |what: Shown| decoders().map(|block| get(&block.counts[what as usize])).sum::<u64>();
        let merged = |of: fn(&DecodeBlock) -> &HistogramBlock| {
            let mut merged = Histogram::default();
            decoders().for_each(|block| merged.merge(&of(block).snapshot()));
            merged
        };
        let capacity = get(&block.ready_tasks);
        let ready = POOLS.iter().zip(&block.ready).map(|(pool, depth)| ReadyView { pool, depth: get(depth), capacity });
        GraphView {
            policy: block.policy.read(),
            submitted: get(&block.submitted),
            ran: all(Shown::Ran),
            retired: get(&block.retired),
            window_used: get(&block.window_used),
            window_tasks: get(&block.window_tasks),
            window_stalls: get(&block.stalls),
            // The decode pool is of the processor; of another one only what waits there would be news.
            ready: ready.filter(|ready| ready.pool == POOLS[0] || ready.depth > 0).collect(),
            permits_used: get(&block.permits_used),
            permits: get(&block.permits),
            parked: get(&block.parked),
            gate_waits: all(Shown::GateWaits),
            flushes: FlushesView {
                full: all(Shown::FlushesFull),
                late: all(Shown::FlushesLate),
                idle: all(Shown::FlushesIdle),
                turn: all(Shown::FlushesTurn),
            },
            committed: sum(|block| get(&block.committed)),
            tombstones: sum(|block| get(&block.tombstones)),
            arriving: get(&block.arriving),
            refused: get(&block.refused),
            workers: decoders().map(|block| self.graph_worker(block)).collect(),
            submit: block.submit.snapshot(),
            wake: merged(|block| &block.wake),
            release: merged(|block| &block.release),
            window: merged(|block| &block.window),
            oldest: self.oldest(silo),
            held: get(&block.held_stream).checked_sub(1).map(|stream| HeldView {
                stream: stream as u32,
                sequence: get(&block.held_sequence),
                age_ns: self.age_ns(&block.held_since),
            }),
            waiting: get(&block.waiting),
        }
    }

    fn graph_worker(&self, block: &DecodeBlock) -> GraphWorkerView {
        let count = |what: Shown| get(&block.counts[what as usize]);
        GraphWorkerView {
            ran: count(Shown::Ran),
            stolen: count(Shown::Stolen),
            steals_failed: count(Shown::StealsEmpty) + count(Shown::StealsLost),
            depth: get(&block.deque_depth),
            task: self.running(block),
        }
    }

    fn running(&self, block: &DecodeBlock) -> Option<RunningView> {
        let (id, what) = (get(&block.task), get(&block.task_what));
        (id != 0).then(|| RunningView {
            id,
            kernel: GraphView::kernel(what),
            stream: (what >> 32) as u32,
            age_ns: self.age_ns(&block.task_since),
        })
    }

    fn oldest(&self, silo: usize) -> Option<OldestView> {
        let block = self.board.graph(silo);
        let (id, what, holdup) = (get(&block.oldest), get(&block.oldest_what), get(&block.oldest_holdup));
        let mut workers = (0..self.board.shape().decoders).zip(0..);
        (id != 0).then(|| OldestView {
            id,
            kernel: GraphView::kernel(what),
            stream: (what >> 32) as u32,
            age_ns: self.age_ns(&block.oldest_since),
            waits_on: match holdup & 0xff {
                1 => WaitsOn::Predecessors(holdup >> 8),
                2 => WaitsOn::Permit(holdup >> 8),
                _ => WaitsOn::Worker,
            },
            worker: workers.find(|(_, at)| get(&self.board.decode(silo, *at).task) == id).map(|(number, _)| number),
        })
    }
}
