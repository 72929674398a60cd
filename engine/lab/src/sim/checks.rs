//! Invariants of a silo between any two steps of its roles.

use super::SHOTS;
use crate::board::{self, Board};
use crate::silo::Silo;
use pinwheel_edge::slot::workers::WorkerState;

/// Describes the first invariant that is violated now.
pub(super) fn broken(silo: &Silo, board: &Board, streams: u32) -> Option<String> {
    slots(silo, board, streams).or_else(|| workers_and_jobs(silo, board))
}

/// As [`broken`], for a silo whose path is dead: only its slots are still in use.
pub(super) fn slots(silo: &Silo, board: &Board, streams: u32) -> Option<String> {
    let table = &silo.pipe.table;
    let stamps = board.slots(silo.pipe.silo);
    let shot = |slot: u32| {
        let stamps = &stamps[slot as usize];
        (board::get(&stamps.stream), board::get(&stamps.sequence))
    };
    let held = || (0..table.geometry().slots).filter(|slot| !table.is_idle(*slot));
    let (mut count, mut seen) = (0, [0u64; SHOTS.div_ceil(64) as usize]);
    for slot in held() {
        let (stream, sequence) = shot(slot);
        let index = sequence * u64::from(streams) + stream;
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        count += 1;
        if seen[word] & bit != 0 {
            let other = held().find(|other| shot(*other) == (stream, sequence));
            return Some(format!("shot {sequence} of stream {stream} is in slots {other:?} and {slot}"));
        }
        seen[word] |= bit;
    }
    let outstanding =
        board::get(&board.feed(silo.pipe.silo).position) - board::get(&board.harvest(silo.pipe.silo).position);
    (count != outstanding).then(|| format!("{count} slots are taken, {outstanding} shots are outstanding"))
}

fn workers_and_jobs(silo: &Silo, board: &Board) -> Option<String> {
    let (bank, pipe) = (&silo.workers, &silo.pipe);
    let (dispatch, poll) = (board.dispatch(pipe.silo), board.poll(pipe.silo));
    let passed = board::get(&dispatch.ready_pushed) + board::get(&poll.ready_pushed);
    let mut held = passed + board::get(&poll.jobs_returned);
    for w in 0..bank.len() {
        let (_, state) = bank.state(w);
        let is_idle = bank.idle_mask() & 1 << w != 0;
        if is_idle != (state == WorkerState::Free) {
            return Some(format!("worker {w} is {state:?} but its idle bit is {is_idle}"));
        }
        held += u64::from(matches!(state, WorkerState::Running | WorkerState::Quarantined));
    }
    let taken = board::get(&dispatch.jobs_taken);
    (held != taken).then(|| format!("{held} of {taken} job buffers accounted for"))
}

/// Jobs that the task graph has taken and not returned.
pub(super) fn in_graph(silo: &Silo, board: &Board) -> u64 {
    let graph = board.graph(silo.pipe.silo);
    let given = [&graph.answered, &graph.claims_lost, &graph.refused].map(board::get);
    board::get(&graph.jobs) - given.iter().sum::<u64>()
}

/// Sequence numbers committed in `silo`, over all streams.
pub(super) fn committed(board: &Board, silo: usize) -> u64 {
    let graph = board.graph(silo);
    board::get(&graph.committed) + board::get(&graph.skipped)
}
