//! `pinwheel send`: replays a file of shots to a running engine at its cadence, and measures the answers.
//!
//! Runs on the main thread, alone; spins while it waits, because it measures. Exit status 1 if a shot was not answered, or
//! with an error. Bounds: the file; [`GREETING`] for an engine to say who it is, [`LAST_ANSWER`] for the last answer.
//!
//! # Why times count from the schedule
//! A sender that waits for an answer before it sends the next shot would leave out exactly the shots that a stalled engine
//! would have delayed. Each shot has its time from the start on; its round trip counts from there, however late it went.

use super::args::rate_or_max;
use super::input::read_set;
use super::refusal::Refusal;
use super::{say, written};
use crate::report::grouped;
use clap::Args as ClapArgs;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Format, Layout, ShotSet, ShotWriter};
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::client::{Client, Received, connect};
use pinwheel_engine::feed::packet::Welcome;
use pinwheel_engine::record::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::units::{Nanos, Ticks};
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// Longest wait for an engine to say who it is.
const GREETING: Nanos = Nanos(10_000_000_000);
/// Between two hellos.
const HELLO_EVERY: Nanos = Nanos(50_000_000);
/// Longest wait for an answer after the last shot.
const LAST_ANSWER: Nanos = Nanos(2_000_000_000);
/// Cadence unless told otherwise.
const RATE_HZ: f64 = 10_000.0;
/// At rate max: shots on their way at once.
const WINDOW: u64 = 64;

#[derive(Debug, ClapArgs)]
pub struct SendArgs {
    /// Shots, as the engine's source takes them: detection events, or measurements where it has a map
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The engine's source: udp:ADDRESS:PORT, unix:PATH or shm:NAME
    #[arg(value_name = "ADDR", value_parser = LivePlace::parse)]
    pub place: LivePlace,
    /// Shots per second of all streams together, or max: as fast as 64 of them come back [default: 10000]
    #[arg(long, value_name = "HZ|max", value_parser = rate_or_max, allow_hyphen_values = true)]
    pub rate: Option<f64>,
    /// Format of the file: b8, 01 or dets [default: b8]
    #[arg(long, value_name = "b8|01|dets")]
    pub format: Option<Format>,
    /// Datagrams of each shot
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub parts: u32,
    /// Times that the file is sent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub laps: u32,
    /// Write the observables that came back, one record per shot in the file's order; an unanswered one is zeros
    #[arg(long, value_name = "F")]
    pub predictions: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    sent: u64,
    answered: u64,
    /// Answered with an error.
    errors: u64,
    /// Sent, and no answer in time.
    lost: u64,
    /// Answers that had come before.
    doubled: u64,
    rate_hz: Option<f64>,
    throughput_per_s: f64,
    /// From a shot's time to its answer.
    round_trip_ns: Histogram,
    /// From arrival to answer, as the engine says.
    engine_ns: Histogram,
    epoch: u64,
    streams: u32,
}

pub fn send(args: &SendArgs) -> Result<u8, Refusal> {
    if matches!(args.place, LivePlace::Shm { .. }) && args.parts > 1 {
        let found = "shared memory, where each shot is written whole";
        return Err(Refusal::unusable(format!("--parts {}", args.parts), found, "a socket", "leave --parts out"));
    }
    let clock = Clock::machine();
    // Grows with each start, as sessions have to.
    let session = clock.started_utc().as_nanos() as u64;
    let trouble = |error: &dyn std::fmt::Display| {
        let expected = "an engine's live source there";
        let remedy = format!("start one with: pinwheel run --input {}", args.place);
        Refusal::unusable(args.place.to_string(), error.to_string(), expected, remedy)
    };
    let mut client = reach(args, session, &clock).map_err(|error| trouble(&error))?;
    let welcome = greet(client.as_mut(), &clock).map_err(|error| trouble(&error))?;
    let about = args.file.display().to_string();
    let shots = read_set(&about, &args.file, args.format.unwrap_or(Format::B8), Layout::detectors(welcome.bits))?;
    if shots.is_empty() {
        return Err(Refusal::unusable(about, "no shots", "at least one", "check that the file is whole"));
    }
    let rate_hz = Some(args.rate.unwrap_or(RATE_HZ)).filter(|hz| hz.is_finite());
    let mut run = Run::new(&clock, &shots, &welcome, rate_hz, u64::from(args.laps));
    run.through(client.as_mut()).map_err(|error| trouble(&error))?;
    if let Some(path) = &args.predictions {
        run.write(path)?;
    }
    let report = run.report();
    let status = u8::from(report.lost + report.errors + report.doubled > 0);
    let out = &mut io::stdout().lock();
    Ok(written(if args.json { say::json(out, &report) } else { say::text(out, &text(&report)) }, status))
}

/// A socket's path is there once its engine is.
fn reach(args: &SendArgs, session: u64, clock: &Clock) -> io::Result<Box<dyn Client>> {
    let from = clock.ticks();
    loop {
        let error = match connect(&args.place, session, args.parts) {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        let is_early = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        if !is_early || clock.rate().nanos(clock.ticks().since(from)) >= GREETING {
            return Err(error);
        }
        std::thread::yield_now();
    }
}

fn greet(client: &mut dyn Client, clock: &Clock) -> io::Result<Welcome> {
    let from = clock.ticks();
    let since = |from: Ticks| clock.rate().nanos(clock.ticks().since(from));
    while since(from) < GREETING {
        if let Some(welcome) = client.welcome()? {
            return Ok(welcome);
        }
        let asked = clock.ticks();
        while since(asked) < HELLO_EVERY {
            client.receive(&mut |_| ())?;
            std::thread::yield_now();
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("no welcome within {} s", GREETING.0 / 1_000_000_000)))
}

/// One replay.
struct Run<'a> {
    clock: &'a Clock,
    records: Vec<Vec<u8>>,
    streams: u64,
    welcome: Welcome,
    rate_hz: Option<f64>,
    shots: u64,
    /// When each shot was to go; at rate max, when it went.
    due: Vec<Ticks>,
    answers: Vec<Option<Received>>,
    round_trips_ns: Vec<u64>,
    engine_ns: Vec<u64>,
    sent: u64,
    answered: u64,
    doubled: u64,
    elapsed: Nanos,
}

impl<'a> Run<'a> {
    fn new(clock: &'a Clock, shots: &ShotSet, welcome: &Welcome, rate_hz: Option<f64>, laps: u64) -> Run<'a> {
        let bytes = welcome.bits.div_ceil(8) as usize;
        let record = |shot: &[u64]| shot.iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
        let count = shots.len() as u64 * laps;
        Run {
            clock,
            records: shots.iter().map(record).collect(),
            streams: u64::from(welcome.streams.max(1)),
            welcome: *welcome,
            rate_hz,
            shots: count,
            due: Vec::with_capacity(count as usize),
            answers: vec![None; count as usize],
            round_trips_ns: Vec::with_capacity(count as usize),
            engine_ns: Vec::with_capacity(count as usize),
            sent: 0,
            answered: 0,
            doubled: 0,
            elapsed: Nanos(0),
        }
    }

    fn through(&mut self, client: &mut dyn Client) -> io::Result<()> {
        let rate = self.clock.rate();
        let start = self.clock.ticks();
        let every = self.rate_hz.map(|hz| rate.ticks(Nanos(1_000_000_000)).0 as f64 / hz);
        let mut heard = start;
        while self.answered < self.shots {
            let now = self.clock.ticks();
            let is_waiting = self.sent == self.shots;
            if is_waiting && rate.nanos(now.since(heard)) >= LAST_ANSWER {
                break;
            }
            let due = match every {
                Some(every) => start.plus(Ticks((self.sent as f64 * every) as u64)),
                None => now,
            };
            let may_go = match every {
                Some(_) => due <= now,
                None => self.sent - self.answered < WINDOW,
            };
            if !is_waiting && may_go && self.send_next(client, due)? {
                heard = now;
            }
            if self.take(client)? > 0 {
                heard = self.clock.ticks();
            } else if !may_go || is_waiting {
                std::thread::yield_now();
            }
            if every.is_none() && rate.nanos(self.clock.ticks().since(heard)) >= LAST_ANSWER {
                break;
            }
        }
        self.elapsed = rate.nanos(self.clock.ticks().since(start));
        Ok(())
    }

    fn send_next(&mut self, client: &mut dyn Client, due: Ticks) -> io::Result<bool> {
        let record = &self.records[(self.sent % self.records.len() as u64) as usize];
        let (stream, sequence) = ((self.sent % self.streams) as u32, self.sent / self.streams);
        if !client.send(stream, sequence, record)? {
            return Ok(false);
        }
        self.due.push(due);
        self.sent += 1;
        Ok(true)
    }

    fn take(&mut self, client: &mut dyn Client) -> io::Result<usize> {
        let Run { clock, streams, due, answers, round_trips_ns, engine_ns, answered, doubled, .. } = self;
        client.receive(&mut |received| {
            let now = clock.ticks();
            let index = received.sequence.saturating_mul(*streams).saturating_add(u64::from(received.stream));
            let Some(due) = due.get(index as usize) else { return };
            let place = &mut answers[index as usize];
            if place.is_some() {
                *doubled += 1;
                return;
            }
            *place = Some(*received);
            *answered += 1;
            round_trips_ns.push(clock.rate().nanos(now.since(*due)).0);
            engine_ns.push(received.latency_ns);
        })
    }

    fn write(&self, path: &std::path::Path) -> Result<(), Refusal> {
        let layout = Layout::observables(self.welcome.observables);
        let zeros = [0; OBSERVABLE_WORDS_MAX];
        let put = || -> Result<(), String> {
            let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
            for answer in &self.answers {
                let found =
                    answer.as_ref().filter(|answer| answer.status == 0).map_or(&zeros, |answer| &answer.observables);
                writer.write_shot(&found[..layout.words()]).map_err(|error| error.to_string())?;
            }
            let bytes = writer.finish().map_err(|error| error.to_string())?;
            std::fs::write(path, bytes).map_err(|error| error.to_string())
        };
        put().map_err(|error| {
            let about = format!("--predictions {}", path.display());
            Refusal::unusable(about, error.to_string(), "a file that can be written", "name another one")
        })
    }

    fn report(&self) -> Report {
        let errors = self.answers.iter().flatten().filter(|answer| answer.status != 0).count() as u64;
        Report {
            sent: self.sent,
            answered: self.answered,
            errors,
            lost: self.sent - self.answered,
            doubled: self.doubled,
            rate_hz: self.rate_hz,
            throughput_per_s: self.answered as f64 * 1e9 / self.elapsed.0.max(1) as f64,
            round_trip_ns: Histogram::of(&self.round_trips_ns),
            engine_ns: Histogram::of(&self.engine_ns),
            epoch: self.welcome.epoch,
            streams: self.welcome.streams,
        }
    }
}

fn text(report: &Report) -> String {
    let times = |times: &Histogram| {
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|q| times.quantile_ns(q));
        format!("p50 {p50} ns, p90 {p90} ns, p99 {p99} ns, p99.9 {p999} ns, max {} ns", times.max_ns())
    };
    format!(
        "{} sent, {} answered, {} of them with an error, {} lost, {} doubled; {} a second\n  round trip  {}\n  in engine   {}\n",
        grouped(report.sent),
        grouped(report.answered),
        grouped(report.errors),
        grouped(report.lost),
        grouped(report.doubled),
        grouped(report.throughput_per_s as u64),
        times(&report.round_trip_ns),
        times(&report.engine_ns)
    )
}
