//! A silo's path, built anew behind a dead one.
//!
//! Owns nothing that runs. Runs on a cold thread, once a return. The slots, the page words, the streams' records and the
//! marks of the silo stay where they are, and begin anew; job buffers, device workers, the pool, the arbiter and all rings
//! of the path are made again, in an arena of their own. Bounds: as at the start.

use super::path::{ArbiterParts, Path, PathParts, job_bank, path};
use super::{Common, Profile, connect::Told};
use super::{Draws, Gpu, Owner, Pipe, Silo, joints_of};
use crate::arbiter::errand::{DeskEnds, desk};
use crate::arbiter::page::{PageTable, Silo as PageSilo, Word};
use crate::board::{self, Board};
use crate::decode::carries::Carries;
use crate::decode::steward::{Link, Post};
use crate::hot::RoleSpec;
use crate::hot::memory::Arena;
use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::table::DispatchEnd;
use pinwheel_edge::slot::word::ErrorCode;
use std::sync::Arc;

/// What others are to be handed before the path runs.
pub(super) struct Handed {
    /// Each living silo's link to it.
    pub(super) links: Vec<(usize, Link)>,
    /// Each feed's ends of its arbiter's desk.
    pub(super) desks: Vec<DeskEnds>,
    /// Its roles.
    pub(super) specs: Vec<RoleSpec>,
}

/// What a rebuilt path comes back among.
pub(super) struct Among<'a> {
    pub(super) profile: &'a Profile,
    pub(super) common: &'a Common,
    pub(super) decoders: u32,
    /// Times that it came back.
    pub(super) life: u64,
    /// Of each silo: its heir, if it is dead.
    pub(super) heirs: &'a [Option<usize>],
}

/// Builds the path of `silos[back]` anew, behind `end`.
///
/// # Errors
/// In words, if its graph cannot be had; it could be had at the start.
pub(super) fn rebuild(
    silos: &mut [Silo],
    back: usize,
    (end, told): (DispatchEnd, &mut Told),
    among: &Among<'_>,
) -> Result<Handed, String> {
    let Among { profile, common, decoders, life, heirs } = *among;
    restart_pages(silos, back);
    let me = owner(back);
    let (mut theirs, mut links) = (Vec::new(), Vec::new());
    for other in (0..silos.len()).filter(|other| *other != back && heirs[*other].is_none()) {
        let (mine, its) = Link::pair(me, owner(other));
        links.push(mine);
        theirs.push((other, its));
    }
    let (desk, desks) = desk(silos.len());
    let (ends, post) = Post::pair();
    told.steward = ends;
    let heirs = heirs.iter().enumerate().filter_map(|(dead, heir)| Some((owner(dead), owner((*heir)?)))).collect();
    let arbiter = ArbiterParts { links, desk: Some(desk), post: Some(post), heirs };
    let mut arena = Arena::new();
    let silo = &mut silos[back];
    let made = arena.within(|| {
        let (jobs, ready) = job_bank(profile, decoders, silo.pipe.table.geometry());
        let health = Arc::new(HealthWord::new());
        let gpu = silo.gpu.clone().map(|(facts, cold_cores)| Gpu { context: None, facts, cold_cores });
        if gpu.is_some() {
            // Its keeper brings it back, as after a loss.
            health.advance(Health::Online);
        }
        let pipe = Pipe { jobs, ready, health, ..silo.pipe.clone() };
        let by_rounds = profile.input.round_ns.is_some();
        let carries = Carries::of(&common.decoding.matching, pipe.jobs.len() as u32, by_rounds);
        let draws = Draws { faults: &profile.faults, silo: back, life };
        let states = &silo.states;
        // None of its streams is here: they come by moves.
        let (joints, times) = (joints_of(common, &[], pipe.streams), silo.times.clone());
        let parts = PathParts { pipe: &pipe, states, end, arbiter, joints, gpu, draws, times };
        path(profile, decoders, parts, carries, common).map(|path| (pipe, path))
    });
    let (pipe, Path { workers, specs, recovery }) = made.map_err(|error| error.to_string())?;
    arena.seal();
    (silo.pipe, silo.workers) = (pipe, workers);
    let before = std::mem::replace(&mut silo.recovery, recovery);
    silo.recovery.succeed(before);
    // What is left of the path before goes with the last of its blocks.
    silo.path_arena = arena;
    Ok(Handed { links: theirs, desks, specs })
}

fn owner(silo: usize) -> Owner {
    PageSilo::new(silo as u8)
}

/// The page words of `silos[back]` say what other silos say; it takes no stream yet.
fn restart_pages(silos: &[Silo], back: usize) {
    let tables: Vec<&PageTable> =
        silos.iter().enumerate().filter(|(at, _)| *at != back).map(|(_, silo)| &*silo.pipe.pages).collect();
    let pipe = &silos[back].pipe;
    for page in 0..pipe.pages.len() as u32 {
        let words = tables.iter().map(|table| (table.silo(), table.word(page)));
        // Whoever has it or sends it knows best; else the newest hint. Old news cost a refusal, as anywhere.
        let Some((of, word)) = words.max_by_key(|(_, word)| (word.epoch(), is_at(*word))) else { continue };
        let owner = if is_at(word) { of } else { word.owner() };
        let owner = if owner == pipe.pages.silo() { of } else { owner };
        pipe.pages.restart(page, owner, word.epoch());
        pipe.turns.serves.set(page, 0);
    }
}

fn is_at(word: Word) -> bool {
    word.is_writable() || word.awaits()
}

/// Answers whatever the dead path of `silo` left in its slots, of which `written` were ever written. Returns how many those are, and
/// where the next dispatcher begins.
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

/// The board's words of a dead path, whose writers are no more: nothing is under way in it.
fn settle_board(board: &Board, silo: usize, taken: u64) {
    let (dispatch, graph) = (board.dispatch(silo), board.graph(silo));
    board::set(&dispatch.position, taken);
    let mut given = 0;
    for decoder in 0..board.shape().decoders as usize {
        let block = board.decode(silo, decoder);
        given += board::get(&block.answered) + board::get(&block.claims_lost);
        board::set(&block.task, 0);
        board::set(&block.deque_depth, 0);
    }
    let taken_up = board::get(&graph.jobs);
    // Jobs that died: their shots were answered elsewhere.
    board::set(&graph.claims_lost, taken_up.saturating_sub(board::get(&graph.refused) + given));
    let now_none =
        [&graph.window_used, &graph.parked, &graph.oldest, &graph.waiting, &graph.arriving, &graph.held_stream];
    now_none.into_iter().chain(&graph.ready).for_each(|word| board::set(word, 0));
    let poll = board.poll(silo);
    board::set(&poll.ready_depth, 0);
    poll.worker_words.iter().for_each(|word| board::set(word, 0));
    board::set(&poll.idle_mask, u64::MAX >> (64 - board.shape().workers.clamp(1, 64)));
}
