//! Cost of an empty frame: the engine's frame loop over roles that do nothing, on its own hot
//! thread.
//!
//! The peer is the smallest replacement loop: the same roles called in turn, one reading of the
//! counter, no catching of panics, no phase, heartbeat, stage, gap histogram or policy. *Busy*
//! roles claim an item each, so that the loop neither waits nor consults its policy; *idle* roles
//! let it pause as the policy `Prod` prescribes, and the peer does the same.

use super::measure::{CLOCK, CORES, Placement, Suite, median, ns_per};
use super::threads::{Each, HotThreads, each, shared};
use pinwheel_edge::spin::{Phase, SpinPolicy};
use pinwheel_engine::hot::{Frame, Role, Scratch};
use pinwheel_engine::units::Ticks;
use std::sync::Arc;
use std::time::Duration;

/// Time of each window of frames, taken in the frames themselves.
struct Probe {
    left: u64,
    from: Ticks,
    found: Arc<std::sync::OnceLock<f64>>,
    readings: Vec<f64>,
}

const WINDOW: u64 = 4_096;
const WINDOWS: usize = 200;

impl Probe {
    fn note(&mut self, now: Ticks) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = WINDOW;
        let span = CLOCK.rate().nanos(now.since(self.from)).0 as f64 / WINDOW as f64;
        self.from = now;
        if self.readings.len() < WINDOWS {
            self.readings.push(span);
        } else if self.found.get().is_none() {
            let _ = self.found.set(median(&self.readings[1..]));
        }
    }
}

/// Does nothing and reports `items` items.
fn empty(items: u32, mut probe: Option<Probe>) -> impl FnMut(&mut Frame<'_>) -> u32 + Send + 'static {
    move |frame| {
        if let Some(probe) = &mut probe {
            probe.note(frame.now);
        }
        items
    }
}

pub fn register(suite: &mut Suite) {
    for (name, items) in [("busy", 1), ("idle", 0)] {
        for count in [1, 6] {
            let own = (Placement::Own, 9);
            let ours = suite.case(format!("frame, {count} {name}"), &["total"], own, move || vec![hot(count, items)]);
            let one = (Placement::OneCore, 9);
            let bare =
                suite.case(format!("bare loop, {count} {name}"), &["total"], one, move || vec![bare(count, items)]);
            suite.figure(format!("frame/{name}_{count}"), "ns/frame", ours, Some(("bare-loop", bare)));
        }
    }
}

/// Nanoseconds per frame of a hot thread with `count` empty roles.
pub fn hot(count: usize, items: u32) -> f64 {
    let shared = shared(1);
    let found = Arc::new(std::sync::OnceLock::new());
    let specs = (0..count)
        .map(|index| {
            let probe = (index == 0).then(|| Probe {
                left: WINDOW,
                from: Ticks(0),
                found: Arc::clone(&found),
                readings: Vec::with_capacity(WINDOWS),
            });
            each(empty(items, probe))
        })
        .collect();
    let running = HotThreads::start(&shared, SpinPolicy::Prod, [(CORES.here, specs)]);
    shared.phase.advance(Phase::Live);
    while found.get().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    shared.phase.advance(Phase::Shutdown);
    running.join();
    *found.get().unwrap()
}

/// Nanoseconds per pass of the smallest loop.
pub fn bare(count: usize, items: u32) -> f64 {
    let mut roles: Vec<Box<dyn Role>> =
        (0..count).map(|_| Box::new(Each(empty(items, None))) as Box<dyn Role>).collect();
    let (mut windows, mut scratch) = (Vec::new(), Scratch::new());
    for _ in 0..WINDOWS {
        let from = CLOCK.ticks();
        for _ in 0..WINDOW {
            let mut frame = Frame::new(&CLOCK, CLOCK.ticks(), Phase::Live, &mut scratch);
            let mut handled = 0;
            for role in std::hint::black_box(&mut roles) {
                handled += role.work(&mut frame).0;
            }
            if handled == 0 {
                std::hint::spin_loop();
            }
        }
        windows.push(ns_per(from, WINDOW));
    }
    median(&windows)
}
