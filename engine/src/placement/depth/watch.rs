//! Finds the queues that became too full since the last snapshot, or have room again.
//!
//! Owns which queues are over the limit. Run by the controller for each snapshot. Bounds: one flag
//! for each queue of each silo. Source: seed 003, `WatchAsync`; the hysteresis is DESIGN §9's.

use super::{QUEUES, Queue, Snapshot};

/// A queue is over the limit at this utilization.
pub const ENTER: f64 = 0.80;
/// A queue is under the limit again below this one.
pub const LEAVE: f64 = 0.65;

/// One queue that crossed the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Number of the silo.
    pub silo: u32,
    /// The queue.
    pub queue: Queue,
    /// Its utilization in the snapshot before; `None`: unknown.
    pub old: Option<f64>,
    /// Its utilization now.
    pub new: f64,
    /// Whether it is over the limit now.
    pub is_over: bool,
}

/// The queues over the limit at the last snapshot.
#[derive(Debug)]
pub struct Watch {
    enter: f64,
    leave: f64,
    over: Vec<[bool; QUEUES]>,
    before: Vec<[Option<f64>; QUEUES]>,
}

impl Watch {
    /// For `silos` silos; a queue is over the limit from `enter` until it falls below `leave`.
    ///
    /// # Panics
    /// If `leave` is not below `enter`.
    pub fn new(silos: usize, enter: f64, leave: f64) -> Watch {
        assert!(leave < enter, "a queue that leaves at {leave} cannot enter at {enter}");
        Watch { enter, leave, over: vec![[false; QUEUES]; silos], before: vec![[None; QUEUES]; silos] }
    }

    /// Takes over `snapshot` and calls `each` for each crossing. An unknown silo keeps its flags.
    pub fn step(&mut self, snapshot: &Snapshot, mut each: impl FnMut(Crossing)) {
        for (silo, reading) in snapshot.silos.iter().enumerate().take(self.over.len()) {
            let Some(depth) = reading.known() else {
                self.before[silo] = [None; QUEUES];
                continue;
            };
            for queue in Queue::ALL {
                let at = queue as usize;
                let old = std::mem::replace(&mut self.before[silo][at], depth.utilization[at]);
                let Some(new) = depth.utilization[at] else { continue };
                let was_over = self.over[silo][at];
                let is_over = if was_over { new >= self.leave } else { new >= self.enter };
                self.over[silo][at] = is_over;
                if is_over != was_over {
                    each(Crossing { silo: silo as u32, queue, old, new, is_over });
                }
            }
        }
    }

    /// Whether `queue` of `silo` is over the limit.
    pub fn is_over(&self, silo: usize, queue: Queue) -> bool {
        self.over[silo][queue as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTER, LEAVE, Watch};
    use crate::placement::depth::{QUEUES, Queue, Reading, SiloDepth, Snapshot, Unknown};
    use crate::units::Ticks;

    fn seen(watch: &mut Watch, share: Option<f64>) -> Vec<(Option<f64>, f64, bool)> {
        let depth = |share| {
            let mut shares = [Some(0.1); QUEUES];
            shares[Queue::Rx as usize] = Some(share);
            Reading::Known(SiloDepth::of(shares))
        };
        let reading = share.map_or(Reading::Unknown(Unknown::New), depth);
        let mut crossings = Vec::new();
        let snapshot = Snapshot { number: 1, taken: Ticks(0), silos: vec![reading] };
        watch.step(&snapshot, |crossing| {
            assert_eq!((crossing.silo, crossing.queue), (0, Queue::Rx));
            crossings.push((crossing.old, crossing.new, crossing.is_over));
        });
        crossings
    }

    #[test]
    fn a_crossing_is_reported_once_each_way_and_noise_at_a_limit_is_ignored() {
        let mut watch = Watch::new(1, ENTER, LEAVE);
        assert_eq!(seen(&mut watch, Some(0.79)), []);
        assert_eq!(seen(&mut watch, Some(0.81)), [(Some(0.79), 0.81, true)]);
        for share in [0.79, 0.82, 0.66, 0.9] {
            assert_eq!(seen(&mut watch, Some(share)), [], "{share} is between the limits or still over");
        }
        assert_eq!(seen(&mut watch, Some(0.64)), [(Some(0.9), 0.64, false)]);
        assert_eq!(seen(&mut watch, Some(0.79)), []);
    }

    #[test]
    fn a_silo_in_state_unknown_counts_as_full() {
        let mut watch = Watch::new(1, ENTER, LEAVE);
        assert_eq!(seen(&mut watch, Some(0.9)), [(None, 0.9, true)]);
        assert_eq!(seen(&mut watch, None), []);
        assert!(watch.is_over(0, Queue::Rx));
        assert_eq!(seen(&mut watch, Some(0.1)), [(None, 0.1, false)]);
    }
}
