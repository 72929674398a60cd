//! Where streams are decoded: those of a silo that drains leave, those of one that came back are asked to return, and pairs
//! that are read jointly stay together.
//!
//! Part of the lives. Bounds: a stream is asked for at most every [`ASK_EVERY`] while it is not on its way, after a return for
//! [`HOMING`].

use super::Lives;
use crate::arbiter::page::Authority;
use crate::board;
use crate::board::snapshot::SiloState;
use crate::feed::requests::{MoveRequest, home};
use crate::profile::TakesPart;
use crate::units::{Nanos, Ticks};

/// From one wish that a stream moves to the next one for the same.
const ASK_EVERY: Nanos = Nanos::from_millis(200);
/// Streams that come back after a return are asked to for so long.
const HOMING: Nanos = Nanos::from_millis(5_000);

impl Lives {
    /// Streams whose shots go to `silo`.
    pub(super) fn streams_of(&self, silo: usize) -> impl Iterator<Item = u32> + '_ {
        let board = &self.parts.common.board;
        (0..self.asked.len() as u32)
            .filter(move |stream| board::get(&board.stream_feed(*stream as usize).silo) == silo as u64)
    }

    /// The streams of its feed are asked to come back, unless the director decides where streams are.
    pub(super) fn go_home(&mut self, silo: usize, now: Ticks) {
        if self.parts.profile.placement.streams == TakesPart::Nobody {
            self.lives[silo].homing = Some(now.plus(self.parts.common.clock.rate().ticks(HOMING)));
        }
    }

    /// Asks the streams of a silo that drains to leave; once none is there it is drained.
    pub(super) fn empty(&mut self, silo: usize, now: Ticks) {
        if self.lives[silo].state != SiloState::Draining {
            return;
        }
        let streams: Vec<u32> = self.streams_of(silo).collect();
        if streams.is_empty() {
            board::add(&self.board().life(silo).drains, 1);
            let why = self.board().life(silo).why.read();
            self.enter(silo, SiloState::Drained, &why, now);
            return;
        }
        let others: Vec<usize> =
            (0..self.lives.len()).filter(|other| self.lives[*other].state == SiloState::Live).collect();
        if others.is_empty() {
            self.enter(silo, SiloState::Live, "not drained: no other silo is live", now);
            return;
        }
        let (silos, pair) = (self.lives.len() as u32, if self.parts.common.joints.is_some() { 2 } else { 1 });
        for stream in streams {
            // By its place in its feed: evenly, the same at each look, and one for both streams of a pair.
            let nth = (stream / silos / pair) as usize;
            self.ask_move(stream, others[nth % others.len()], now);
        }
    }

    /// Asks the higher stream of each pair that is read jointly to follow the lower one: they move by two moves, of which
    /// one may be given up.
    pub(super) fn reunite(&mut self, now: Ticks) {
        let Some(tally) = self.parts.common.joints.clone() else { return };
        for [low, high] in tally.pairs() {
            let [at, other] = [low, high].map(|stream| board::get(&self.board().stream_feed(*stream as usize).silo));
            if at != other && self.state(at as usize) == SiloState::Live {
                self.ask_move(*high, at as usize, now);
            }
        }
    }

    pub(super) fn bring_home(&mut self, silo: usize, now: Ticks) {
        if self.lives[silo].homing.is_none_or(|until| now >= until) {
            self.lives[silo].homing = None;
            return;
        }
        let (board, silos) = (&self.parts.common.board, self.lives.len() as u32);
        let is_away = |stream: &u32| {
            home(*stream, silos) == silo && board::get(&board.stream_feed(*stream as usize).silo) != silo as u64
        };
        let away: Vec<u32> = (0..self.asked.len() as u32).filter(is_away).collect();
        if away.is_empty() {
            self.lives[silo].homing = None;
        }
        for stream in away {
            self.ask_move(stream, silo, now);
        }
    }

    /// Asks, unless it was asked of late or is on its way; one that finds too many waiting is asked again.
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
