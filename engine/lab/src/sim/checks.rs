//! What must hold of a silo between any two steps of its roles.

use crate::board::{self, Board};
use crate::silo::Silo;
use pinwheel_edge::slot::workers::State;

/// The first promise that is broken now, in words.
pub(super) fn broken(silo: &Silo, board: &Board, jobs: u64, decoders: u64) -> Option<String> {
    slots(silo, board).or_else(|| workers_and_jobs(silo, board, jobs, decoders))
}

/// As [`broken`], of a silo whose path is dead: only its slots are anybody's.
pub(super) fn slots(silo: &Silo, board: &Board) -> Option<String> {
    let table = &silo.pipe.table;
    let held: Vec<u32> = (0..table.geometry().slots).filter(|slot| !table.is_idle(*slot)).collect();
    let number = silo.pipe.silo;
    let outstanding = board::get(&board.feed(number).position) - board::get(&board.harvest(number).position);
    if held.len() as u64 != outstanding {
        return Some(format!("{} slots are taken, {outstanding} shots are outstanding", held.len()));
    }
    let stamps = board.slots(number);
    let shot = |slot: u32| {
        let stamps = &stamps[slot as usize];
        (board::get(&stamps.stream), board::get(&stamps.sequence))
    };
    for (place, one) in held.iter().enumerate() {
        if let Some(other) = held[place + 1..].iter().find(|other| shot(**other) == shot(*one)) {
            return Some(format!("shot {:?} is in slots {one} and {other}", shot(*one)));
        }
    }
    None
}

fn workers_and_jobs(silo: &Silo, board: &Board, jobs: u64, decoders: u64) -> Option<String> {
    let (bank, pipe) = (&silo.workers, &silo.pipe);
    let mut held = pipe.jobs.free() + pipe.ready.depth() + in_graph(silo, board, decoders);
    for w in 0..bank.len() {
        let (_, state) = bank.state(w);
        let is_idle = bank.idle_mask() & 1 << w != 0;
        if is_idle != (state == State::Free) {
            return Some(format!("worker {w} is {state:?} with its idle bit {is_idle}"));
        }
        held += u64::from(matches!(state, State::Running | State::Quarantined));
    }
    (held != jobs).then(|| format!("{held} of {jobs} job buffers accounted for"))
}

/// Jobs that the graph has taken up and not given back.
pub(super) fn in_graph(silo: &Silo, board: &Board, decoders: u64) -> u64 {
    let graph = board.graph(silo.pipe.silo);
    let given = |index| {
        let block = board.decode(silo.pipe.silo, index as usize);
        board::get(&block.answered) + board::get(&block.claims_lost)
    };
    let given: u64 = (0..decoders).map(given).sum();
    board::get(&graph.jobs) - board::get(&graph.claims_lost) - board::get(&graph.refused) - given
}

/// Sequence numbers that were committed in `silo`, of all streams.
pub(super) fn committed(board: &Board, silo: usize, decoders: u64) -> u64 {
    let by_decoders: u64 = (0..decoders).map(|index| board::get(&board.decode(silo, index as usize).committed)).sum();
    by_decoders + board::get(&board.graph(silo).buried)
}
