//! Rebuilds the path of a dead silo.
//!
//! Owns nothing that runs. Runs on a cold thread, once a restart. The slots, the page words, the
//! streams' records and the silo's marks keep their memory and start afresh. Job buffers, device
//! workers, the pool, the arbiter and all rings of the path are made again, in an arena of their
//! own. Bounds: as at the start.

use super::path::{ArbiterParts, Path, PathParts, job_bank, path};
use super::{Common, Profile, connect::SiloNotifiers};
use super::{Draws, Gpu, Owner, Pipe, Silo, joints_of};
use crate::arbiter::page::{PageTable, Silo as PageSilo, Word};
use crate::arbiter::requests::{EndpointEnds, endpoint};
use crate::board::{self, Board};
use crate::commit::arbiter_driver::{Link, MembershipEndpoint};
use crate::hot::RoleSpec;
use crate::hot::memory::Arena;
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::table::DispatchEnd;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::slot::workers::mask;
use std::sync::Arc;

/// Parts of a rebuilt path that others need before it runs.
pub(super) struct RebuiltPath {
    /// Each living silo's link to it.
    pub(super) links: Vec<(usize, Link)>,
    /// Each feed's ends of its arbiter's endpoint.
    pub(super) endpoints: Vec<EndpointEnds>,
    pub(super) specs: Vec<RoleSpec>,
}

/// Parameters of a rebuild.
pub(super) struct RebuildParts<'a> {
    pub(super) profile: &'a Profile,
    pub(super) common: &'a Common,
    pub(super) decoders: u32,
    /// Number of restarts of the silo.
    pub(super) epoch: u64,
    /// By silo: its successor, if it is dead.
    pub(super) successors: &'a [Option<usize>],
}

/// Rebuilds the path of `silos[back]`, with dispatch at `end`.
///
/// # Errors
/// The reason in words, if its graph cannot be created, although it was created at the start.
pub(super) fn rebuild(
    silos: &mut [Silo],
    back: usize,
    (end, notifiers): (DispatchEnd, &mut SiloNotifiers),
    parts: &RebuildParts<'_>,
) -> Result<RebuiltPath, String> {
    let RebuildParts { profile, common, decoders, epoch, successors } = *parts;
    restart_pages(silos, back);
    let me = owner(back);
    let (mut theirs, mut links) = (Vec::new(), Vec::new());
    for other in (0..silos.len()).filter(|other| *other != back && successors[*other].is_none()) {
        let (mine, its) = Link::pair(me, owner(other));
        links.push(mine);
        theirs.push((other, its));
    }
    let (endpoint, endpoints) = endpoint(silos.len());
    let (ends, membership) = MembershipEndpoint::pair();
    notifiers.arbiter = ends;
    let successors = successors
        .iter()
        .enumerate()
        .filter_map(|(dead, successor)| Some((owner(dead), owner((*successor)?))))
        .collect();
    let arbiter = ArbiterParts { links, endpoint: Some(endpoint), membership: Some(membership), successors };
    let mut arena = Arena::new();
    let silo = &mut silos[back];
    let made = arena.within(|| {
        let jobs = job_bank(profile, decoders, silo.pipe.table.geometry());
        let health = Arc::new(HealthWord::new());
        let gpu = silo.gpu.clone().map(|(facts, cold_cores)| Gpu { context: None, facts, cold_cores });
        if gpu.is_some() {
            // The supervisor recovers the device, as after a loss.
            health.advance(Health::Online);
        }
        let pipe = Pipe { jobs, health, ..silo.pipe.clone() };
        let by_rounds = profile.input.round_ns.is_some();
        let carries = common.decoders.in_force().main().carries(pipe.jobs.len() as u32, pipe.streams, by_rounds);
        let draws = Draws { faults: &profile.faults, silo: back, epoch };
        let states = &silo.states;
        // It begins without streams: they arrive by moves.
        let (joints, times) = (joints_of(common, &[], pipe.streams), silo.times.clone());
        let parts = PathParts { pipe: &pipe, states, end, arbiter, joints, gpu, draws, times };
        path(profile, decoders, parts, carries, common).map(|path| (pipe, path))
    });
    let (pipe, Path { workers, specs, recovery }) = made.map_err(|error| error.to_string())?;
    arena.seal();
    (silo.pipe, silo.workers) = (pipe, workers);
    let before = std::mem::replace(&mut silo.recovery, recovery);
    silo.recovery.succeed(before);
    // The old path's memory is freed with the last of its blocks.
    silo.path_arena = arena;
    Ok(RebuiltPath { links: theirs, endpoints, specs })
}

fn owner(silo: usize) -> Owner {
    PageSilo::new(silo as u8)
}

/// Sets the page words of `silos[back]` from other silos' tables; it serves no stream yet.
fn restart_pages(silos: &[Silo], back: usize) {
    let tables: Vec<&PageTable> =
        silos.iter().enumerate().filter(|(at, _)| *at != back).map(|(_, silo)| &*silo.pipe.pages).collect();
    let pipe = &silos[back].pipe;
    for page in 0..pipe.pages.len() as u32 {
        let words = tables.iter().map(|table| (table.silo(), table.word(page)));
        // The owner or sender of the page has the newest epoch; otherwise take the newest hint. An
        // outdated hint costs one refusal, as anywhere.
        let Some((of, word)) = words.max_by_key(|(_, word)| (word.epoch(), is_at(*word))) else { continue };
        let owner = if is_at(word) { of } else { word.owner() };
        let owner = if owner == pipe.pages.silo() { of } else { owner };
        pipe.pages.restart(page, owner, word.epoch());
        pipe.watermarks.serves.set(page, 0);
    }
}

fn is_at(word: Word) -> bool {
    word.is_writable() || word.awaits()
}

/// Answers the shots that the dead path of `silo` left in its slots with an error; `written` shots
/// were ever written. Returns how many it answered, and the end where the next dispatcher begins.
pub(super) fn close(pipe: &Pipe, written: u64, now: crate::units::Ticks) -> (u64, DispatchEnd) {
    let (board, silo) = (&pipe.board, pipe.silo);
    let mut end = DispatchEnd::succeed(&pipe.table, board::get(&board.dispatch(silo).position), written);
    let slots = u64::from(pipe.table.geometry().slots);
    let (mut closed, taken) = (0, end.taken());
    for position in end.taken().saturating_sub(slots)..end.taken() {
        closed += u64::from(pipe.close(pipe.table.ticket_at(position), ErrorCode::SiloDied, now));
    }
    while end.taken() < written
        && let Some(arrived) = end.arrived()
    {
        let ticket = end.hold(&arrived, now);
        board::set(&board.slots(silo)[arrived.slot as usize].dispatched, now.0);
        closed += u64::from(pipe.close(ticket, ErrorCode::SiloDied, now));
        end.retire();
    }
    board::add(&board.dispatch(silo).dispatched, end.taken() - taken);
    settle_board(board, silo, end.taken());
    (closed, end)
}

/// Resets the board's words of a dead path, which have no writers any more: nothing is in flight in
/// it.
fn settle_board(board: &Board, silo: usize, taken: u64) {
    let (dispatch, graph) = (board.dispatch(silo), board.graph(silo));
    board::set(&dispatch.position, taken);
    for decoder in 0..board.shape().decoders as usize {
        let block = board.decode(silo, decoder);
        [&block.task, &block.deque_depth, &block.in_lane].into_iter().for_each(|word| board::set(word, 0));
    }
    // Jobs of the dead path: their shots were answered elsewhere. The new path has buffers of its
    // own. A dispatcher that died within a frame has not counted the last jobs that it passed on.
    let counted = board::get(&dispatch.ready_pushed) + board::get(&board.poll(silo).ready_pushed);
    let given = board::get(&graph.refused) + board::get(&graph.answered);
    let passed = counted.max(given);
    board::add(&dispatch.ready_pushed, passed - counted);
    board::set(&graph.jobs, passed);
    board::set(&graph.claims_lost, passed - given);
    board::set(&dispatch.jobs_taken, passed + board::get(&board.poll(silo).jobs_returned));
    let now_none =
        [&graph.window_used, &graph.parked, &graph.oldest, &graph.waiting, &graph.arriving, &graph.held_stream];
    now_none.into_iter().chain(&graph.ready).for_each(|word| board::set(word, 0));
    let poll = board.poll(silo);
    board::set(&poll.ready_depth, 0);
    poll.worker_words.iter().for_each(|word| board::set(word, 0));
    board::set(&poll.idle_mask, mask(board.shape().workers));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::settle_board;
    use crate::board::{self, Board, Place, Shape};

    #[test]
    fn jobs_that_a_dispatcher_passed_on_in_its_last_frame_count_as_passed_on_when_they_are_answered() {
        let shape = Shape { threads: 1, silos: 1, slots: 16, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let (dispatch, poll, graph) = (board.dispatch(0), board.poll(0), board.graph(0));
        for (answered, lost) in [(8, 2), (10, 0), (12, 0)] {
            [(&dispatch.ready_pushed, 4), (&poll.ready_pushed, 6), (&poll.jobs_returned, 1), (&graph.refused, 0)]
                .iter()
                .for_each(|(word, count)| board::set(word, *count));
            board::set(&graph.answered, answered);
            settle_board(&board, 0, 0);
            let passed = board::get(&dispatch.ready_pushed) + board::get(&poll.ready_pushed);
            assert_eq!((passed, board::get(&graph.jobs)), (answered + lost, passed), "{answered} answered");
            assert_eq!(board::get(&graph.claims_lost), lost);
            assert_eq!(board::get(&dispatch.jobs_taken), passed + 1);
        }
    }
}
