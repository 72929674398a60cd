//! Assignment of streams to silos: streams of a draining silo leave, those of a restarted silo
//! return, unless someone has moved them since, and jointly read pairs stay together.
//!
//! Part of the supervisor. Bounds: a stream that is not moving is asked to move at most every
//! [`ASK_EVERY`], and after a restart for [`RETURN_FOR`].

use super::SiloSupervisor;
use crate::arbiter::page::Authority;
use crate::board;
use crate::feed::requests::MoveRequest;
use crate::pipe::home;
use crate::roles::SiloState;
use crate::units::{Nanos, Ticks};

/// Interval between two requests to move the same stream.
const ASK_EVERY: Nanos = Nanos::from_millis(200);
/// How long streams are asked to return after a restart.
const RETURN_FOR: Nanos = Nanos::from_millis(5_000);

impl SiloSupervisor {
    /// Streams whose shots go to `silo`.
    pub(super) fn streams_of(&self, silo: usize) -> impl Iterator<Item = u32> + '_ {
        let board = &self.parts.common.board;
        (0..self.asked.len() as u32)
            .filter(move |stream| board::get(&board.stream_feed(*stream as usize).silo) == silo as u64)
    }

    /// Notes the streams of its own feed that leave `silo`, which drains or dies, unless the placement
    /// director decides where they are.
    pub(super) fn note_leaving(&mut self, silo: usize) {
        let (silos, directed) = (self.records.len() as u32, &self.parts.profile.placement.streams);
        let is_noted = |stream: &u32| home(*stream, silos) == silo && !directed.includes(*stream);
        let leaving: Vec<u32> = self.streams_of(silo).filter(is_noted).collect();
        let away = &mut self.records[silo].away;
        away.retain(|(stream, _)| !leaving.contains(stream));
        away.extend(leaving.into_iter().map(|stream| (stream, silo)));
    }

    /// From now on asks the streams that left `silo` to return.
    pub(super) fn request_return(&mut self, silo: usize, now: Ticks) {
        self.records[silo].return_until = now.plus(self.parts.common.clock.rate().ticks(RETURN_FOR));
    }

    /// Asks the streams of a draining silo to leave. Without streams it is drained. A stream that was on its
    /// way to it then is asked to leave, too.
    pub(super) fn drain_streams(&mut self, silo: usize, now: Ticks) {
        let is_draining = self.records[silo].state == SiloState::Draining;
        if !is_draining && self.records[silo].state != SiloState::Drained {
            return;
        }
        let streams: Vec<u32> = self.streams_of(silo).collect();
        if streams.is_empty() && is_draining {
            board::add(&self.board().lifecycle(silo).drains, 1);
            let why = self.board().lifecycle(silo).why.read();
            self.enter(silo, SiloState::Drained, &why, now);
            return;
        }
        let others: Vec<usize> =
            (0..self.records.len()).filter(|other| self.records[*other].state == SiloState::Live).collect();
        if others.is_empty() {
            if is_draining {
                self.enter(silo, SiloState::Live, "not drained: no other silo is live", now);
            }
            return;
        }
        self.note_leaving(silo);
        let (silos, pair) = (self.records.len() as u32, if self.parts.common.joints.is_some() { 2 } else { 1 });
        for stream in streams {
            // By the stream's index in its feed: an even spread, the same at each check, and the
            // same silo for both streams of a pair.
            let nth = (stream / silos / pair) as usize;
            self.ask_move(stream, others[nth % others.len()], now);
        }
    }

    /// Asks the higher stream of each jointly read pair to follow the lower one: they move by two
    /// moves, of which one may be given up.
    pub(super) fn rejoin_pairs(&mut self, now: Ticks) {
        let Some(tally) = self.parts.common.joints.clone() else { return };
        for [low, high] in tally.pairs() {
            let [at, other] = [low, high].map(|stream| board::get(&self.board().stream_feed(*stream as usize).silo));
            if at != other && self.state(at as usize) == SiloState::Live {
                self.ask_move(*high, at as usize, now);
            }
        }
    }

    /// Follows the streams that left `silo`, and asks them to return while it is time for that.
    pub(super) fn return_streams(&mut self, silo: usize, now: Ticks) {
        let is_live = self.records[silo].state == SiloState::Live;
        let mut away = std::mem::take(&mut self.records[silo].away);
        away.retain_mut(|(stream, at)| {
            let now_at = board::get(&self.board().stream_feed(*stream as usize).silo) as usize;
            let before = std::mem::replace(at, now_at);
            if now_at == silo {
                // It has not left yet, or may still; one that has come back is not asked again.
                return before == silo && (!is_live || self.parts.common.moves.is_under_way(*stream));
            }
            // Whoever moved it away from a silo that runs means it.
            before == now_at || before == silo || self.state(before) != SiloState::Live
        });
        if is_live && now < self.records[silo].return_until {
            away.iter().filter(|(_, at)| *at != silo).for_each(|(stream, _)| self.ask_move(*stream, silo, now));
        }
        self.records[silo].away = away;
    }

    /// Requests a move, unless the stream moves already or was asked less than [`ASK_EVERY`] ago. A
    /// request that is refused because too many wait is repeated.
    fn ask_move(&mut self, stream: u32, to: usize, now: Ticks) {
        let asked = &mut self.asked[stream as usize];
        let is_due = *asked == Ticks(0) || self.parts.common.clock.rate().nanos(now.since(*asked)) >= ASK_EVERY;
        if self.parts.common.moves.is_under_way(stream) {
            return;
        }
        let request = MoveRequest { stream, to: to as u32, lease_ms: 0, by: Authority::Port };
        if is_due && self.parts.common.moves.ask(request).is_ok() {
            *asked = now;
        }
    }
}
