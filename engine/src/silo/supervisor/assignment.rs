//! Assignment of streams to silos: streams of a draining silo leave, those of a restarted silo
//! return, and jointly read pairs stay together.
//!
//! Part of the supervisor. Bounds: a stream that is not moving is asked to move at most every
//! [`ASK_EVERY`], and after a restart for [`RETURN_FOR`].

use super::SiloSupervisor;
use crate::arbiter::page::Authority;
use crate::board;
use crate::feed::requests::MoveRequest;
use crate::pipe::home;
use crate::profile::TakesPart;
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

    /// Asks the streams of the silo's feed to return, unless the placement director decides where
    /// streams are.
    pub(super) fn request_return(&mut self, silo: usize, now: Ticks) {
        if self.parts.profile.placement.streams == TakesPart::Nobody {
            let (all, silos) = (self.asked.len() as u32, self.records.len() as u32);
            let streams = (0..all).filter(|stream| home(*stream, silos) == silo).collect();
            let until = now.plus(self.parts.common.clock.rate().ticks(RETURN_FOR));
            self.records[silo].returning = (until, streams);
        }
    }

    /// Asks the streams of a draining silo to leave. Without streams it is drained.
    pub(super) fn drain_streams(&mut self, silo: usize, now: Ticks) {
        if self.records[silo].state != SiloState::Draining {
            return;
        }
        let streams: Vec<u32> = self.streams_of(silo).collect();
        if streams.is_empty() {
            board::add(&self.board().lifecycle(silo).drains, 1);
            let why = self.board().lifecycle(silo).why.read();
            self.enter(silo, SiloState::Drained, &why, now);
            return;
        }
        let others: Vec<usize> =
            (0..self.records.len()).filter(|other| self.records[*other].state == SiloState::Live).collect();
        if others.is_empty() {
            self.enter(silo, SiloState::Live, "not drained: no other silo is live", now);
            return;
        }
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

    pub(super) fn return_streams(&mut self, silo: usize, now: Ticks) {
        let (until, mut streams) = std::mem::take(&mut self.records[silo].returning);
        let board = &self.parts.common.board;
        streams.retain(|stream| now < until && board::get(&board.stream_feed(*stream as usize).silo) != silo as u64);
        for stream in &streams {
            self.ask_move(*stream, silo, now);
        }
        self.records[silo].returning = (until, streams);
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
