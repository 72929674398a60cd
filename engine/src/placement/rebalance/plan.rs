//! What the moves of one snapshot are chosen from: what comes for each silo, with the moves under way, and which streams may go.
//!
//! Part of the rebalancer, on its thread. Bounds: one choice looks at each pair of a silo above the mean and one below it,
//! fullest and emptiest first, and at the streams of the one that gives; it ends with the first pair that has a fitting one.
//!
//! # Why the mean is the goal
//! With more than two silos, closing the gap of the fullest and the emptiest carries one of them past the mean, and what has
//! moved stays there for its lease: eight silos were then never even. So first what carries neither past it is looked for,
//! the largest of it; and only where no such stream is left anywhere, what closes a pair's own gap: the last of a silo that
//! has nothing but large streams.

use super::super::depth::{ENTER, Snapshot};
use super::{GAIN_MIN, StreamLoad, UNEVEN_ENTER, UNEVEN_LEAVE};

/// How far a move may go.
#[derive(Clone, Copy)]
enum Goal {
    /// Neither silo past the mean.
    Mean,
    /// Neither past the other.
    Level,
}

/// The table of one snapshot.
#[derive(Debug)]
pub(super) struct Plan {
    /// By silo, of its fullest queue: what comes for it; `None`: not known.
    demand: Vec<Option<f64>>,
    /// By silo: its streams that may go.
    movable: Vec<Vec<StreamLoad>>,
}

impl Plan {
    pub(super) fn new(silos: usize) -> Plan {
        Plan { demand: vec![None; silos], movable: vec![Vec::new(); silos] }
    }

    /// Takes over a snapshot, with what each stream puts on its silo.
    pub(super) fn fill(&mut self, snapshot: &Snapshot, loads: &[StreamLoad], is_leased: impl Fn(u32) -> bool) {
        for (demand, reading) in self.demand.iter_mut().zip(&snapshot.silos) {
            *demand = reading.known().map(|depth| depth.demand);
        }
        self.movable.iter_mut().for_each(Vec::clear);
        for load in loads.iter().filter(|load| load.may_move && load.share > 0.0 && !is_leased(load.stream)) {
            self.movable[load.silo as usize].push(*load);
        }
    }

    /// A move is under way.
    pub(super) fn shift(&mut self, from: u32, to: u32, share: f64) {
        for (silo, by) in [(from, -share), (to, share)] {
            if let Some(demand) = &mut self.demand[silo as usize] {
                *demand += by;
            }
        }
    }

    /// What comes for `silo`, with the moves under way.
    pub(super) fn demand(&self, silo: u32) -> Option<f64> {
        self.demand[silo as usize]
    }

    /// Of the silo for which the least comes.
    pub(super) fn least(&self) -> Option<f64> {
        self.demand.iter().flatten().copied().min_by(f64::total_cmp)
    }

    /// Takes the stream out that should move next, and says where to; from silos that `gives` allows, between pairs that
    /// `is_free` does.
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

    /// Which stream of the giver closes most of `gap`.
    fn fitting(&self, (from, full): (u32, f64), (_, free): (u32, f64), gap: f64) -> Option<usize> {
        if full - free <= UNEVEN_LEAVE {
            return None;
        }
        let gain = |load: &StreamLoad| gap - (gap - 2.0 * load.share).abs();
        // The taker becomes hot by it only if the giver was far more so.
        let limit = ENTER.max(full - UNEVEN_ENTER);
        let fits = |load: &StreamLoad| free + load.share < limit && gain(load) > GAIN_MIN;
        let fitting = self.movable[from as usize].iter().enumerate().filter(|(_, load)| fits(load));
        fitting.max_by(|one, other| gain(one.1).total_cmp(&gain(other.1))).map(|(at, _)| at)
    }
}
