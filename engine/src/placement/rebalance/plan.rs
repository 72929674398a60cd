//! Chooses the moves of one snapshot from each silo's demand, including pending moves, and the streams that may move.
//!
//! Part of the rebalancer, on its thread. Bounds: one choice compares each pair of a silo above the
//! mean and one below it, fullest and emptiest first, and the streams of the fuller silo. It ends
//! with the first pair that has a fitting stream.
//!
//! # Why the mean is the goal
//! With more than two silos, closing the gap between the fullest and the emptiest takes one of them
//! past the mean, and the lease keeps the stream there: eight silos never became even. So the
//! largest stream that takes neither silo past the mean moves first. Only if there is none, a
//! stream that closes a pair's own gap moves: the silo has only large streams left.

use super::super::depth::{ENTER, Snapshot};
use super::{GAIN_MIN, StreamLoad, UNEVEN_ENTER, UNEVEN_LEAVE};

/// How far a move may go.
#[derive(Clone, Copy)]
enum Goal {
    /// Takes neither silo past the mean.
    Mean,
    /// Takes neither silo past the other.
    Level,
}

/// The table of one snapshot.
#[derive(Debug)]
pub(super) struct Plan {
    /// Demand by silo, as a share of its fullest queue; `None`: unknown.
    demand: Vec<Option<f64>>,
    /// Streams that may move, by silo.
    movable: Vec<Vec<StreamLoad>>,
}

impl Plan {
    pub(super) fn new(silos: usize) -> Plan {
        Plan { demand: vec![None; silos], movable: vec![Vec::new(); silos] }
    }

    /// Takes over a snapshot and the streams' loads.
    pub(super) fn fill(&mut self, snapshot: &Snapshot, loads: &[StreamLoad], is_leased: impl Fn(u32) -> bool) {
        for (demand, reading) in self.demand.iter_mut().zip(&snapshot.silos) {
            *demand = reading.known().map(|depth| depth.demand);
        }
        self.movable.iter_mut().for_each(Vec::clear);
        for load in loads.iter().filter(|load| load.may_move && load.share > 0.0 && !is_leased(load.stream)) {
            self.movable[load.silo as usize].push(*load);
        }
    }

    /// Adds a pending move.
    pub(super) fn shift(&mut self, from: u32, to: u32, share: f64) {
        for (silo, by) in [(from, -share), (to, share)] {
            if let Some(demand) = &mut self.demand[silo as usize] {
                *demand += by;
            }
        }
    }

    /// Demand of `silo`, including pending moves.
    pub(super) fn demand(&self, silo: u32) -> Option<f64> {
        self.demand[silo as usize]
    }

    /// The lowest demand of all silos.
    pub(super) fn least(&self) -> Option<f64> {
        self.demand.iter().flatten().copied().min_by(f64::total_cmp)
    }

    /// Removes the stream that should move next, and returns it with its new silo. Only from silos
    /// that `gives` allows, and between pairs that `is_free` allows.
    pub(super) fn take_best(
        &mut self,
        gives: impl Fn(u32) -> bool,
        is_free: impl Fn(u32, u32) -> bool,
    ) -> Option<(StreamLoad, u32)> {
        let known = self.demand.iter().flatten();
        let mean = known.clone().sum::<f64>() / known.count().max(1) as f64;
        let all = || (0..).zip(&self.demand).filter_map(|(silo, demand)| Some((silo, (*demand)?)));
        let mut givers: Vec<(u32, f64)> = all().filter(|(silo, demand)| *demand > mean && gives(*silo)).collect();
        let mut takers: Vec<(u32, f64)> = all().filter(|(_, demand)| *demand < mean).collect();
        givers.sort_by(|one, other| other.1.total_cmp(&one.1));
        takers.sort_by(|one, other| one.1.total_cmp(&other.1));
        let pairs = || givers.iter().flat_map(|giver| takers.iter().map(move |taker| (*giver, *taker)));
        let (from, to, at) = [Goal::Mean, Goal::Level].into_iter().find_map(|goal| {
            pairs().filter(|(giver, taker)| is_free(giver.0, taker.0)).find_map(|(giver, taker)| {
                let gap = match goal {
                    Goal::Mean => 2.0 * (giver.1 - mean).min(mean - taker.1),
                    Goal::Level => giver.1 - taker.1,
                };
                Some((giver.0, taker.0, self.fitting(giver, taker, gap)?))
            })
        })?;
        Some((self.movable[from as usize].swap_remove(at), to))
    }

    /// The stream of `from` that closes most of `gap`, by its index.
    fn fitting(&self, (from, full): (u32, f64), (_, free): (u32, f64), gap: f64) -> Option<usize> {
        if full - free <= UNEVEN_LEAVE {
            return None;
        }
        let gain = |load: &StreamLoad| gap - (gap - 2.0 * load.share).abs();
        // The new silo may become hot only if the old one was much hotter.
        let limit = ENTER.max(full - UNEVEN_ENTER);
        let fits = |load: &StreamLoad| free + load.share < limit && gain(load) > GAIN_MIN;
        let fitting = self.movable[from as usize].iter().enumerate().filter(|(_, load)| fits(load));
        fitting.max_by(|one, other| gain(one.1).total_cmp(&gain(other.1))).map(|(at, _)| at)
    }
}
