//! The harness: interleaves and repeats the cases, each on a pinned thread of its own.
//!
//! Owns the cases of one area and their readings. A repetition runs on a fresh thread pinned to
//! [`Cores::here`], so that no case inherits another's placement; a case that starts threads of its
//! own is not pinned. A bare ping-pong runs before and after a cross-core case; its round trip is
//! printed as the floor. Bounds: repetitions as registered.
//!
//! # Why
//! The core pairs of a virtual machine change between near and far from minute to minute, and so
//! does every cross-core figure: a figure compares medians of repetitions whose two floors agree on
//! the mode, for the mode that is most frequent on both sides.

use pinwheel_engine::clock::Clock;
use pinwheel_engine::host::pin;
use pinwheel_engine::units::Ticks;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Duration of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Every case once or twice, small.
    Quick,
    /// For published figures.
    Full,
}

impl Effort {
    /// `full`, or a fraction of it in a smoke run.
    pub fn scale(self, full: u64) -> u64 {
        match self {
            Effort::Quick => (full / 8).max(1),
            Effort::Full => full,
        }
    }

    fn repetitions(self, full: usize) -> usize {
        match self {
            Effort::Quick => full.min(3),
            Effort::Full => full,
        }
    }
}

/// Placement of a case's threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// One thread.
    OneCore,
    /// Two communicating threads, one on each of [`Cores`].
    CrossCore,
    /// The case places its threads itself.
    Own,
}

/// The two cores that cases use.
pub struct Cores {
    /// The measuring thread's core.
    pub here: u32,
    /// The partner thread's core; the same on a machine with one core.
    pub there: u32,
}

/// The last and the first core that this process may use: the system prefers the first ones.
pub static CORES: LazyLock<Cores> = LazyLock::new(|| {
    let cores = pin::allowed_cores().expect("the system lists the allowed cores");
    Cores { here: *cores.last().unwrap(), there: *cores.first().unwrap() }
});

/// The clock of all measurements.
pub static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::machine);

/// Nanoseconds since `from`, per operation.
pub fn ns_per(from: Ticks, operations: u64) -> f64 {
    CLOCK.rate().nanos(CLOCK.ticks().since(from)).0 as f64 / operations as f64
}

/// Pins the calling thread to `core`.
pub fn pin_to(core: u32) {
    if let Err(error) = pin::pin_current_thread(core) {
        println!("# not pinned: {error}");
    }
}

type Run = Box<dyn FnMut() -> Vec<f64> + Send>;

struct Case {
    name: String,
    parts: Vec<String>,
    placement: Placement,
    repetitions: usize,
    run: Run,
    readings: Vec<Vec<f64>>,
    floors: Vec<f64>,
}

/// A case, and one of its parts.
#[derive(Clone, Copy)]
pub struct Reading {
    case: usize,
    part: usize,
}

impl Reading {
    /// Another part of the same case.
    pub fn part(self, part: usize) -> Reading {
        Reading { part, ..self }
    }

    /// The part that lies `parts` after this one.
    pub fn nth(self, parts: usize) -> Reading {
        self.part(self.part + parts)
    }
}

/// Its name, and a function of the number of windows that returns nanoseconds.
pub type Candidate = (&'static str, fn(u64) -> f64);

struct Figure {
    name: String,
    unit: &'static str,
    ours: Reading,
    peer: Option<(&'static str, Reading)>,
    /// The repetitions' value.
    pick: fn(&[f64]) -> f64,
}

/// Cases of one area.
pub struct Suite {
    pub effort: Effort,
    cases: Vec<Case>,
    figures: Vec<Figure>,
}

impl Suite {
    pub fn new(effort: Effort) -> Suite {
        Suite { effort, cases: Vec::new(), figures: Vec::new() }
    }

    /// Adds a case whose repetitions yield one number for each of `parts`.
    pub fn case(
        &mut self,
        name: impl Into<String>,
        parts: &[impl AsRef<str>],
        (placement, repetitions): (Placement, usize),
        run: impl FnMut() -> Vec<f64> + Send + 'static,
    ) -> Reading {
        let repetitions = self.effort.repetitions(repetitions);
        let parts: Vec<String> = parts.iter().map(|part| part.as_ref().to_string()).collect();
        let (readings, floors) = (vec![Vec::new(); parts.len()], Vec::new());
        let run = Box::new(run);
        self.cases.push(Case { name: name.into(), parts, placement, repetitions, run, readings, floors });
        Reading { case: self.cases.len() - 1, part: 0 }
    }

    /// Adds a case for each of `candidates`, and a figure of the first beside each other one.
    pub fn compare(
        &mut self,
        name: &str,
        (placement, repetitions): (Placement, usize),
        windows: u64,
        candidates: &[Candidate],
    ) {
        let mut ours = None;
        for &(which, run) in candidates {
            let run = move || vec![run(windows)];
            let reading = self.case(format!("{name}, {which}"), &["total"], (placement, repetitions), run);
            let ours = *ours.get_or_insert(reading);
            if ours.case != reading.case {
                self.figure(name, "ns/op", ours, Some((which, reading)));
            }
        }
    }

    /// Adds a figure to print.
    pub fn figure(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        ours: Reading,
        peer: Option<(&'static str, Reading)>,
    ) {
        self.figures.push(Figure { name: name.into(), unit, ours, peer, pick: median });
    }

    /// Adds a figure of the least readings, those that other work of the machine disturbed least.
    pub fn least_figure(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        ours: Reading,
        peer: Option<(&'static str, Reading)>,
    ) {
        let pick = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::min);
        self.figures.push(Figure { name: name.into(), unit, ours, peer, pick });
    }

    /// Runs all cases in turn until each has its repetitions; prints them and returns the `BENCH`
    /// lines.
    pub fn run(mut self) -> Vec<String> {
        let rounds = self.cases.iter().map(|case| case.repetitions).max().unwrap_or(0);
        for round in 0..rounds {
            for case in self.cases.iter_mut().filter(|case| round < case.repetitions) {
                case.repeat();
            }
        }
        for case in &self.cases {
            case.print();
        }
        self.figures.iter().map(|figure| self.line(figure)).collect()
    }

    fn line(&self, figure: &Figure) -> String {
        let cases =
            [Some(figure.ours), figure.peer.map(|(_, reading)| reading)].map(|r| r.map(|r| &self.cases[r.case]));
        let shared =
            |mode: Mode| cases.iter().flatten().map(|case| case.of_mode(0, Some(mode)).len()).min().unwrap_or(0);
        let mode =
            [Mode::Near, Mode::Far].into_iter().filter(|mode| shared(*mode) > 0).max_by_key(|mode| shared(*mode));
        let value = |reading: Reading| (figure.pick)(&self.cases[reading.case].of_mode(reading.part, mode));
        let (name, unit, ours) = (&figure.name, figure.unit, value(figure.ours));
        let floors = &self.cases[figure.ours.case].floors;
        let floor = match mode {
            _ if floors.is_empty() => "-".to_string(),
            Some(mode) => format!("{:.0} mode={mode:?}", median(&self.cases[figure.ours.case].floors_of(mode))),
            None => format!("{:.0} mode=Mixed", median(floors)),
        };
        match figure.peer {
            Some((peer, reading)) => {
                let theirs = value(reading);
                let ratio = theirs / ours;
                format!(
                    "BENCH name={name} unit={unit} ours={ours:.2} peer={peer} theirs={theirs:.2} ratio={ratio:.2} floor={floor}"
                )
            }
            None => format!("BENCH name={name} unit={unit} ours={ours:.2} peer=- theirs=- ratio=- floor={floor}"),
        }
    }
}

impl Case {
    fn repeat(&mut self) {
        let floor = |floors: &mut Vec<f64>, placement| {
            if placement == Placement::CrossCore {
                floors.push(ping_pong());
            }
        };
        floor(&mut self.floors, self.placement);
        let (run, placement) = (&mut self.run, self.placement);
        let found = std::thread::scope(|scope| {
            let measured = scope.spawn(move || {
                if placement != Placement::Own {
                    pin_to(CORES.here);
                }
                run()
            });
            measured.join().expect("a case that fails ends the run")
        });
        floor(&mut self.floors, self.placement);
        assert_eq!(found.len(), self.parts.len(), "{} yields one number for each part", self.name);
        for (reading, value) in self.readings.iter_mut().zip(found) {
            reading.push(value);
        }
    }

    fn print(&self) {
        for (index, part) in self.parts.iter().enumerate() {
            for (mode, label) in [(None, "all"), (Some(Mode::Near), "near"), (Some(Mode::Far), "far")] {
                let readings = self.of_mode(index, mode);
                let (least, most) = readings.iter().fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
                let (name, n, median) = (&self.name, readings.len(), median(&readings));
                if n > 0 {
                    println!("{name:<42} {part:<12} {label:<4} min={least:.2} median={median:.2} max={most:.2} n={n}");
                }
            }
        }
    }

    /// A part's readings whose floors before and after agree on `mode`; all readings for `None`.
    fn of_mode(&self, part: usize, mode: Option<Mode>) -> Vec<f64> {
        let is_wanted = |index: usize| mode.is_none() || self.mode(index) == mode;
        self.readings[part].iter().enumerate().filter(|(index, _)| is_wanted(*index)).map(|(_, x)| *x).collect()
    }

    fn floors_of(&self, mode: Mode) -> Vec<f64> {
        self.floors.iter().copied().filter(|floor| Mode::of(*floor) == mode).collect()
    }

    /// The mode of a repetition; `None` if it changed or has no floors.
    fn mode(&self, repetition: usize) -> Option<Mode> {
        let floors = self.floors.get(2 * repetition..2 * repetition + 2)?;
        Some(Mode::of(floors[0])).filter(|mode| *mode == Mode::of(floors[1]))
    }
}

/// Distance of the two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The cores share a cache.
    Near,
    /// The cores share no cache.
    Far,
}

impl Mode {
    fn of(floor_ns: f64) -> Mode {
        if floor_ns < 250.0 { Mode::Near } else { Mode::Far }
    }
}

/// The middle value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Median round trip between the two cores, nanoseconds: the floor of every cross-core case.
pub fn ping_pong() -> f64 {
    const TRIPS: u64 = 2_000;
    let lines = Arc::new((Line::default(), Line::default()));
    let other = Arc::clone(&lines);
    let partner = std::thread::spawn(move || {
        pin_to(CORES.there);
        for trip in 1..=TRIPS {
            while other.0.0.load(Ordering::Acquire) != trip {
                std::hint::spin_loop();
            }
            other.1.0.store(trip, Ordering::Release);
        }
    });
    let caller = std::thread::spawn(move || {
        pin_to(CORES.here);
        let mut trips = Vec::with_capacity(TRIPS as usize);
        for trip in 1..=TRIPS {
            let from = CLOCK.ticks();
            lines.0.0.store(trip, Ordering::Release);
            while lines.1.0.load(Ordering::Acquire) != trip {
                std::hint::spin_loop();
            }
            trips.push(ns_per(from, 1));
        }
        median(&trips)
    });
    partner.join().unwrap();
    caller.join().unwrap()
}
