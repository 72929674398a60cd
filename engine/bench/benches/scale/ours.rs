//! The engine's roles under a [`Case`]: silos of hot threads on the two cores.
//!
//! A role of its own follows the [`Course`] on the thread of harvest: it reads the count of
//! answers, sets the rate, and reads the histogram of latencies.

use super::course::{Course, Step, lower_quartile};
use super::{Case, Form, Found};
use crate::measure::CORES;
use crate::path;
use crate::roles::{NullSilo, ROLES, Setup, checked, silo_of};
use crate::threads::{HotThreads, each, shared_on};
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::board;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::hot::{RoleSpec, Shared};
use pinwheel_engine::roles::RoleKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

pub const DEVICE_WORKERS: u32 = 64;

/// What one silo's course found.
type Report = (f64, f64, Histogram);

/// Measures the silos of `case`, each on its own if there are two.
pub fn run(case: &Case, rate_hz: Option<f64>) -> Found {
    let cores = if case.form == Form::TwoSilos { vec![CORES.here, CORES.there] } else { vec![CORES.here] };
    let silos: Vec<_> = cores.into_iter().map(|core| start(case, core, rate_hz)).collect();
    for (shared, ..) in &silos {
        shared.phase.advance(Phase::Live);
    }
    let reports: Vec<Report> = silos.iter().map(|(.., reports)| reports.recv().unwrap()).collect();
    for (shared, running, _) in silos {
        shared.phase.advance(Phase::Shutdown);
        running.join();
        checked(&shared.board);
    }
    let mut latency = Histogram::of(&[]);
    reports.iter().for_each(|(.., found)| latency.merge(found));
    Found {
        ns_per_shot: 1.0 / reports.iter().map(|(ns, ..)| 1.0 / ns).sum::<f64>(),
        rate_hz: reports.iter().map(|(_, hz, _)| hz).sum(),
        latency_ns: [0.5, 0.99, 0.999].map(|q| latency.quantile_ns(q) as f64),
    }
}

/// Nanoseconds per shot of one silo of `case` on this core, in total and then by role: the lower
/// quartile over windows of each.
pub fn by_role(case: &Case) -> Vec<f64> {
    let windows = path::by_role(silo(case), case.input.shots.len() as u64, case.window);
    let part = |part: usize| lower_quartile(windows.iter().map(|window| window[part]).collect());
    (0..=ROLES.len()).map(part).collect()
}

pub fn silo(case: &Case) -> NullSilo {
    let streams = if case.form == Form::TwoSilos { (case.streams / 2).max(1) } else { case.streams };
    let decoders = if case.form == Form::TwoWorkers { 2 } else { 1 };
    let (slots, matching) = (case.slots, case.matching.clone());
    silo_of(&case.input, &Setup { workers: DEVICE_WORKERS, slots, streams, decoders, matching })
}

type Running = (Shared, HotThreads, Receiver<Report>);

/// Starts a silo whose feed runs on `core`.
fn start(case: &Case, core: u32, rate_hz: Option<f64>) -> Running {
    let mut silo = silo(case);
    let (sender, reports) = channel();
    let mut course = Course::new(case.plan(rate_hz));
    let (block, settings) = (Arc::clone(&silo.board), Arc::clone(&silo.settings));
    let mut before = None;
    let probe = each(move |frame| {
        if frame.phase != Phase::Live {
            return 0;
        }
        let total = &block.latency(0).total;
        match course.step(board::get(&block.harvest(0).answered), frame.now) {
            Step::Continue => {}
            Step::Pace(hz) => settings.set_rate_hz(Some(hz)),
            Step::Count => before = Some(total.snapshot()),
            Step::End => {
                let (ns, hz) = course.found();
                let latency = before.take().map_or_else(|| total.snapshot(), |before| total.snapshot().since(&before));
                // The other end waits for it.
                let _ = sender.send((ns, hz, latency));
            }
        }
        0
    });
    let (mut here, mut there): (Vec<RoleSpec>, Vec<RoleSpec>) = (Vec::new(), Vec::new());
    for spec in silo.specs.drain(..) {
        let is_there = spec.kind == RoleKind::Decode
            && match case.form {
                Form::OneCore | Form::TwoSilos => false,
                Form::OneWorker => true,
                Form::TwoWorkers => spec.index == 1,
            };
        if is_there { &mut there } else { &mut here }.push(spec);
    }
    here.push(probe);
    let shared = shared_on(silo.board);
    let plan = [(CORES.there, there), (core, here)].into_iter().filter(|(_, specs)| !specs.is_empty());
    let running = HotThreads::start(&shared, SpinPolicy::Prod, plan);
    (shared, running, reports)
}
