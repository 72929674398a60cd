//! Which resource runs out within a minute, by the trend of its last seconds: slots for shots, memory,
//! the disk of the run, and the agreement of UTC with the engine's counter.
//!
//! Owns the last [`SAMPLES`] values of each resource. The watchdog calls it ten times a second; it
//! takes a value of each once a second. Bounded by the silos.
//!
//! # Why a trend is a line and nothing else
//! A file that is deleted, or a burst of shots, changes a value at once and says nothing about the
//! next minute. Only values close to a straight line count: a step alone explains at most three
//! quarters of its own variance by a line, and [`FIT_MIN`] asks for more.

use super::{Condition, FREE_MIB, condition, plain, reading};
use crate::board::alarms::Site;
use crate::board::{self, Board};
use crate::host::memory::{MemoryLeft, memory_left};
use crate::profile::RuleId;
use crate::stall::verdict::Cause;
use crate::units::TickRate;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Values of which a trend is made: ten seconds.
const SAMPLES: usize = 10;
/// Time between two values.
const SAMPLE_NS: u64 = 1_000_000_000;
/// Share of the variance that the line must explain.
const FIT_MIN: f64 = 0.9;
/// Time left from which on it is said, seconds.
const WITHIN_S: f64 = 60.0;
/// Least change within the values of a trend: of the slots, of the disk and memory in MiB, of UTC in ms.
const SLOTS_SHARE_MIN: f64 = 0.05;
const MIB_MIN: f64 = 8.0;
const UTC_MS_MIN: f64 = 0.5;
/// Times of day of another host may differ from ours by this much before records do not match, ms.
const UTC_LIMIT_MS: f64 = 10.0;
const MIB: f64 = (1u64 << 20) as f64;

/// Sites of the rule.
const DISK: Site = Site::Engine(0);
const MEMORY: Site = Site::Engine(1);
const CLOCK: Site = Site::Engine(2);

/// The last values of one resource.
#[derive(Debug, Default)]
struct Trend(VecDeque<(f64, f64)>);

/// A straight line through them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    /// Its value now.
    now: f64,
    /// Its change in a second.
    each_s: f64,
}

impl Trend {
    fn add(&mut self, at_s: f64, value: f64) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((at_s, value));
    }

    /// The line, if there are enough values, they lie close to one, and it changes by `least` or more.
    fn line(&self, least: f64) -> Option<Line> {
        let (count, (first, last)) = (self.0.len() as f64, (self.0.front()?.0, self.0.back()?.0));
        if self.0.len() < SAMPLES {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| self.0.iter().map(of).sum::<f64>() / count;
        let (at, value) = (mean(|sample| sample.0), mean(|sample| sample.1));
        let (mut both, mut times, mut values) = (0.0, 0.0, 0.0);
        for (sample_at, sample_value) in &self.0 {
            let (dt, dv) = (sample_at - at, sample_value - value);
            (both, times, values) = (both + dt * dv, times + dt * dt, values + dv * dv);
        }
        // Of values of one moment this is no number, and nothing below holds.
        let each_s = both / times;
        let is_line = both * both >= FIT_MIN * times * values;
        let line = Line { now: value + each_s * (last - at), each_s };
        (is_line && (each_s * (last - first)).abs() >= least).then_some(line)
    }
}

impl Line {
    /// Seconds until it reaches `limit`, if it does within a minute.
    fn left_s(&self, limit: f64) -> Option<f64> {
        let left_s = (limit - self.now) / self.each_s;
        (0.0..WITHIN_S).contains(&left_s).then_some(left_s)
    }
}

/// The trends of an engine's resources.
#[derive(Debug)]
pub(super) struct Trends {
    root: PathBuf,
    rate: TickRate,
    sampled_ns: Option<u64>,
    slots: Vec<Trend>,
    disk: Trend,
    memory: Trend,
    /// The control group whose memory that is.
    group: Option<String>,
    clock: Trend,
    /// Ticks and UTC from which the clock's values count.
    anchor: Option<(u64, u64)>,
}

impl Trends {
    pub(super) fn new(root: &Path, rate: TickRate, silos: usize) -> Trends {
        Trends {
            root: root.to_owned(),
            rate,
            sampled_ns: None,
            slots: (0..silos).map(|_| Trend::default()).collect(),
            disk: Trend::default(),
            memory: Trend::default(),
            group: None,
            clock: Trend::default(),
            anchor: None,
        }
    }

    /// The clock went back: what was seen before is on no line with what follows.
    pub(super) fn restart(&mut self) {
        *self = Trends::new(&self.root, self.rate, self.slots.len());
    }

    /// Takes the values if a second has passed, and adds what runs out. `disk` is the run's directory.
    pub(super) fn look(&mut self, board: &Board, now_ns: u64, disk: Option<&Path>, found: &mut Vec<Condition>) {
        if self.sampled_ns.is_none_or(|at_ns| now_ns >= at_ns + SAMPLE_NS) {
            self.sampled_ns = Some(now_ns);
            self.sample(board, now_ns as f64 / 1e9, disk);
        }
        let slots = f64::from(board.shape().slots);
        for (silo, trend) in self.slots.iter().enumerate() {
            let line = trend.line(SLOTS_SHARE_MIN * slots);
            let Some((line, left_s)) = line.and_then(|line| Some((line, line.left_s(slots)?))) else { continue };
            let (taken, each_s) = (line.now, line.each_s);
            let sentence = format!(
                "silo {silo}: {taken:.0} of {slots} slots are taken, {each_s:.1} more each second: all in {left_s:.0} s"
            );
            found.push(running_out(Site::Silo(silo as u32, 0), left_s, sentence));
        }
        // Space that is freed below the limit comes to it from the other side, and runs out of nothing.
        if let Some(line) = self.disk.line(MIB_MIN).filter(|line| line.each_s < 0.0)
            && let Some(left_s) = line.left_s(FREE_MIB)
        {
            let (free, each_s) = (line.now, -line.each_s);
            let sentence = format!(
                "{free:.0} MiB are free where the run is kept, {each_s:.1} less each second: {FREE_MIB:.0} in {left_s:.0} s"
            );
            found.push(running_out(DISK, left_s, sentence));
        }
        if let Some(line) = self.memory.line(MIB_MIN)
            && let Some(left_s) = line.left_s(0.0)
        {
            let of = self.group.as_ref().map_or("the machine".to_owned(), |group| format!("control group {group}"));
            let (free, each_s) = (line.now, -line.each_s);
            let sentence = format!(
                "{free:.0} MiB of memory of {of} are left, {each_s:.1} less each second: none in {left_s:.0} s"
            );
            found.push(running_out(MEMORY, left_s, sentence));
        }
        if let Some(line) = self.clock.line(UTC_MS_MIN) {
            let left_s = UTC_LIMIT_MS / line.each_s.abs();
            if left_s < WITHIN_S {
                let does = if line.each_s > 0.0 { "gains" } else { "loses" };
                let each_s = line.each_s.abs();
                let sentence = format!(
                    "UTC {does} {each_s:.2} ms a second on the engine's counter: {UTC_LIMIT_MS:.0} ms in {left_s:.0} s"
                );
                found.push(running_out(CLOCK, left_s, sentence));
            }
        }
    }

    fn sample(&mut self, board: &Board, at_s: f64, disk: Option<&Path>) {
        for (silo, trend) in self.slots.iter_mut().enumerate() {
            // The consumer's cursor first, so that the difference is not negative.
            let harvested = board::get(&board.harvest(silo).position);
            trend.add(at_s, board::get(&board.feed(silo).position).saturating_sub(harvested) as f64);
        }
        if let Some(free) = disk.and_then(reading::free_mib) {
            self.disk.add(at_s, free);
        }
        if let Some(MemoryLeft { bytes, group }) = memory_left(&self.root) {
            if group != self.group {
                (self.memory, self.group) = (Trend::default(), group);
            }
            self.memory.add(at_s, bytes as f64 / MIB);
        }
        if let Some(pair) = board.clock().pair() {
            let (ticks, utc_ns) = *self.anchor.get_or_insert((pair.ticks.0, pair.utc.0));
            let counted_ns = self.rate.nanos(pair.ticks.since(crate::units::Ticks(ticks))).0;
            let passed_ns = pair.utc.0.wrapping_sub(utc_ns).cast_signed();
            self.clock.add(at_s, passed_ns.wrapping_sub(counted_ns.cast_signed()) as f64 / 1e6);
        }
    }
}

/// The nearer the end, the larger the value.
fn running_out(site: Site, left_s: f64, sentence: String) -> Condition {
    condition(RuleId::RunningOut, site, WITHIN_S - left_s, None, plain(Cause::RunningOut, sentence))
}

#[cfg(test)]
mod tests;
