//! The course of a measurement: first shots as fast as they are taken, then at a share of the
//! capacity that was found.
//!
//! Owned by the thread that counts the answers, ours or the peer's. Pure but for the times that it
//! is given. Bounds: the durations and the shots of a [`Plan`].
//!
//! # Why two measures of speed
//! The reported time of a shot is the lower quartile over windows: preemption by other work of the
//! machine makes windows longer. The rate of the second part is a share of the mean, interruptions
//! included: a share of what a machine cannot sustain would say nothing.

use crate::measure::CLOCK;
use pinwheel_engine::units::{Nanos, Ticks};

/// What to measure.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Duration of each of the two parts.
    pub spans: [Nanos; 2],
    /// Shots of a window.
    pub window: u64,
    /// Rate of the second part, as a share of the capacity.
    pub load: f64,
    /// Rate of the second part if another contender has set it, shots per second.
    pub rate_hz: Option<f64>,
    /// Most shots between feed and harvest.
    pub in_flight: u64,
    pub shots: u64,
}

/// What the contender does next.
#[derive(Clone, Copy, PartialEq)]
pub enum Step {
    /// Nothing.
    Continue,
    /// Shots arrive at this rate from now on, shots per second.
    Pace(f64),
    /// Latencies count from now on.
    Count,
    /// The measurement has ended.
    End,
}

enum Stage {
    Unpaced { since: Ticks, until: Ticks },
    Settling { from: u64 },
    Counting { until: Ticks },
    Ended,
}

pub struct Course {
    plan: Plan,
    stage: Option<Stage>,
    window: (u64, Ticks),
    windows: Vec<f64>,
    rate_hz: f64,
}

impl Course {
    /// The course of `plan`; it begins with its first step.
    pub fn new(plan: Plan) -> Course {
        let windows = Vec::with_capacity((plan.shots / plan.window) as usize + 1);
        Course { plan, stage: None, window: (0, Ticks(0)), windows, rate_hz: 0.0 }
    }

    /// Goes on, with `answered` shots by `now`.
    #[inline]
    pub fn step(&mut self, answered: u64, now: Ticks) -> Step {
        let has_ended = answered + 2 * self.plan.in_flight >= self.plan.shots;
        let after = |span: Nanos| now.plus(CLOCK.rate().ticks(span));
        match self.stage {
            None => {
                self.window = (answered, now);
                self.stage = Some(Stage::Unpaced { since: now, until: after(self.plan.spans[0]) });
            }
            Some(Stage::Unpaced { since, until }) => {
                let taken = answered - self.window.0;
                if taken >= self.plan.window {
                    self.windows.push(ns(now.since(self.window.1)) / taken as f64);
                    self.window = (answered, now);
                }
                let is_half = answered >= self.plan.shots / 2;
                if is_half || (now >= until && !self.windows.is_empty()) {
                    let capacity_hz = answered as f64 * 1e9 / ns(now.since(since));
                    self.rate_hz = self.plan.rate_hz.unwrap_or(capacity_hz * self.plan.load);
                    self.stage = Some(Stage::Settling { from: answered });
                    return Step::Pace(self.rate_hz);
                }
            }
            Some(Stage::Settling { from }) if has_ended || answered >= from + self.plan.in_flight => {
                self.stage = Some(Stage::Counting { until: after(self.plan.spans[1]) });
                return Step::Count;
            }
            Some(Stage::Counting { until }) if has_ended || now >= until => {
                self.stage = Some(Stage::Ended);
                return Step::End;
            }
            _ => {}
        }
        Step::Continue
    }

    /// Nanoseconds per shot of the unpaced part, and the rate of the paced one.
    pub fn found(&self) -> (f64, f64) {
        (lower_quartile(self.windows.clone()), self.rate_hz)
    }
}

/// The value that a quarter of `values` lies below.
pub fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 4).copied().unwrap_or(f64::NAN)
}

fn ns(ticks: Ticks) -> f64 {
    CLOCK.rate().nanos(ticks).0 as f64
}
