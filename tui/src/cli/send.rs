//! `pinwheel send`: sends a file of shots to a running engine at a fixed rate, and measures the
//! answers.
//!
//! Runs on the main thread and spins while it waits, because it measures. Exit status 1 if a shot
//! was not sent, was lost or was answered with an error. Bounds: the file; [`SHOTS_MAX`] shots, of
//! which each keeps 9 bytes, and its observables with `--predictions`; [`GREETING`] for the engine's
//! welcome, [`LAST_ANSWER`] for an answer or for room to send a shot that is due.
//!
//! # Why times count from the schedule
//! A sender that waits for an answer before it sends the next shot omits exactly the shots that a
//! stalled engine would have delayed. Each shot therefore has a scheduled time; its round trip
//! counts from that time, even if it was sent later.

use super::cudaq::{self, Decoders};
use super::distinct_files::require_distinct;
use super::measurements::read_words;
use super::refusal::Refusal;
use super::say::{self, Print};
use super::shots::{read_set, require_shots};
use super::values::rate_or_max;
use clap::Args as ClapArgs;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::board;
use pinwheel_engine::board::histogram::{Histogram, HistogramBlock};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::{Encoding, Format, Layout, ShotSet, ShotWriter};
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::client::{Client, CudaqClient, CudaqDecoders, connect};
use pinwheel_engine::feed::packet::{Status, Welcome};
use pinwheel_engine::record::Output;
use pinwheel_engine::units::{Nanos, Ticks};
use pinwheel_report::report::grouped;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use zerocopy::FromZeros;

/// Longest wait for an engine's welcome.
const GREETING: Nanos = Nanos(10_000_000_000);
/// Interval between two hellos.
const HELLO_EVERY: Nanos = Nanos(50_000_000);
/// Longest time without an answer in which no shot was sent although one was due, or none was left.
const LAST_ANSWER: Nanos = Nanos(2_000_000_000);
/// Most shots, all laps together.
const SHOTS_MAX: u64 = 1_000_000_000;
/// Default rate.
const RATE_HZ: f64 = 10_000.0;
/// Most shots in flight at rate max.
const WINDOW: u64 = 64;
/// Longest time without an answer in which those shots keep others from being sent: then a socket has lost them.
const LOST_AFTER: Nanos = Nanos(500_000_000);

#[derive(Debug, ClapArgs)]
pub struct SendArgs {
    /// Shots in the form that the engine's source accepts: detection events, or measurements if it
    /// has a map
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The engine's source: udp:ADDRESS:PORT, cudaq:ADDRESS:PORT, unix:PATH or shm:NAME
    #[arg(value_name = "ADDR", value_parser = LivePlace::parse)]
    pub place: LivePlace,
    /// Total shots per second of all streams, or max: with 64 shots in flight [default: 10000]
    #[arg(long, value_name = "HZ|max", value_parser = rate_or_max, allow_hyphen_values = true)]
    pub rate: Option<f64>,
    /// Format of the file: b8, 01 or dets [default: b8; words of 32 bits, if the engine's measurements are such]
    #[arg(long, value_name = "b8|01|dets")]
    pub format: Option<Format>,
    /// Soft bytes of the shots: a second file, with one record for each shot, where the engine has a map of them
    #[arg(long, value_name = "F")]
    pub soft: Option<PathBuf>,
    /// CUDA-Q's configuration of the decoders at cudaq:ADDRESS:PORT, as the server has it
    #[arg(long, value_name = "F")]
    pub cudaq_config: Option<PathBuf>,
    /// Bytes of a datagram at cudaq:ADDRESS:PORT [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(57..=65507), allow_negative_numbers = true)]
    pub cudaq_slot_size: Option<u32>,
    /// Datagrams per shot
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub parts: u32,
    /// Number of times to send the file
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub laps: u32,
    /// Write the returned observables, one record per shot in the file's order; an unanswered shot
    /// is zeros
    #[arg(long, value_name = "F")]
    pub predictions: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

/// Result of a send.
#[derive(Debug, Serialize)]
struct Report {
    sent: u64,
    /// Not sent: the engine took no more shots.
    unsent: u64,
    answered: u64,
    /// Answered with an error.
    errors: u64,
    /// Answered, but not to be trusted: the gap is below the engine's bound.
    abstained: u64,
    /// Sent, but not answered in time.
    lost: u64,
    /// Answers to shots already answered.
    doubled: u64,
    rate_hz: Option<f64>,
    throughput_per_s: f64,
    /// From a shot's scheduled time to its answer.
    round_trip_ns: Histogram,
    /// From arrival to answer, as reported by the engine.
    engine_ns: Histogram,
    epoch: u64,
    streams: u32,
}

pub fn send(args: &SendArgs) -> Result<u8, Refusal> {
    if matches!(args.place, LivePlace::Shm { .. }) && args.parts > 1 {
        let found = "shared memory, where each shot is written whole";
        return Err(Refusal::unusable(format!("--parts {}", args.parts), found, "a socket", "leave --parts out"));
    }
    let predictions = args.predictions.as_deref();
    let outputs: Vec<_> = predictions.iter().map(|path| ("--predictions", *path)).collect();
    let soft_file = args.soft.iter().map(|path| ("--soft", path.as_path()));
    let configuration = args.cudaq_config.iter().map(|path| ("--cudaq-config", path.as_path()));
    let inputs: Vec<_> =
        std::iter::once(("the shots", args.file.as_path())).chain(soft_file).chain(configuration).collect();
    require_distinct(&inputs, &outputs)?;
    let clock = Clock::machine();
    // Session numbers must grow with each start.
    let session = clock.started_utc().as_nanos() as u64;
    let trouble = |error| unreachable(&args.place, &error);
    let decoders = decoders(args)?;
    let mut client = reach(args, decoders.as_ref(), session, &clock).map_err(trouble)?;
    let welcome = greet(client.as_mut(), &clock).map_err(trouble)?;
    let shots = shots_of(&args.file, args.format, &welcome)?;
    let count = shots.len() as u64 * u64::from(args.laps);
    if count > SHOTS_MAX {
        let (found, expected) = (format!("{count} shots in all"), format!("at most {SHOTS_MAX}"));
        return Err(Refusal::unusable(format!("--laps {}", args.laps), found, expected, "send fewer laps"));
    }
    let soft = args.soft.as_deref().map(|path| soft_of(path, args, &welcome, shots.len())).transpose()?;
    let rate_hz = Some(args.rate.unwrap_or(RATE_HZ)).filter(|hz| hz.is_finite());
    let predictions =
        predictions.map(|path| Ok::<_, Refusal>((path, Output::file(path, "--predictions")?))).transpose()?;
    let mut run = Run::new(&clock, (&shots, soft.as_ref()), &welcome, rate_hz, count);
    run.observables = predictions.is_some().then(Vec::new);
    run.through(client.as_mut()).map_err(trouble)?;
    let report = run.report();
    let mut status = u8::from(report.unsent + report.lost + report.errors + report.doubled > 0);
    if let Some((path, output)) = predictions
        && let Err(error) = run.write(output)
    {
        say::people(&format!(
            "pinwheel: --predictions {}: cannot be written ({error}); free space there or name another file",
            path.display()
        ));
        status = 1;
    }
    Ok(args.print.to_stdout(&report, || text(&report), status))
}

/// Why the source at `place` takes no shots of ours.
fn unreachable(place: &LivePlace, error: &io::Error) -> Refusal {
    let (expected, remedy) = match error.kind() {
        // A client's own sentence says all.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            return Refusal::Content { about: place.to_string(), said: error.to_string() };
        }
        io::ErrorKind::AddrInUse => ("no other client there", "end that client, or wait for its end".to_owned()),
        io::ErrorKind::PermissionDenied => ("a source that we may use", "send as the engine's user".to_owned()),
        _ => ("an engine's live source there", format!("start one with: pinwheel run --input {place}")),
    };
    Refusal::unusable(place.to_string(), error.to_string(), expected, remedy)
}

/// The shots of a file, in the form that the engine's source accepts unless a format is named.
fn shots_of(path: &Path, format: Option<Format>, welcome: &Welcome) -> Result<ShotSet, Refusal> {
    let about = path.display().to_string();
    let shots = match (format, welcome.encoding) {
        (None, Encoding::Int32) => read_words(&about, path, welcome.bits)?,
        // Whether they are measurements the engine does not say.
        _ => read_set(&about, path, format.unwrap_or(Format::B8), Layout::measurements(welcome.bits))?,
    };
    require_shots(&about, &shots)?;
    Ok(shots)
}

/// The decoders at the source, if it has CUDA-Q's protocol.
fn decoders(args: &SendArgs) -> Result<Option<CudaqDecoders>, Refusal> {
    if let (Some(bytes), false) = (args.cudaq_slot_size, matches!(args.place, LivePlace::Cudaq { .. })) {
        let (about, found) = (format!("--cudaq-slot-size {bytes}"), args.place.to_string());
        return Err(Refusal::unusable(about, found, "cudaq:ADDRESS:PORT", "leave it out, or name such a source"));
    }
    match (&args.cudaq_config, &args.place) {
        (Some(path), LivePlace::Cudaq { .. }) => {
            let Decoders { numbers, map, model, .. } = cudaq::read(path)?;
            Ok(Some(CudaqDecoders { numbers, bits: map.count(), observables: model.observables }))
        }
        (None, LivePlace::Cudaq { .. }) => {
            let found = "a source of CUDA-Q's protocol, which does not tell what its decoders are";
            let remedy = "add --cudaq-config with the server's file";
            Err(Refusal::unusable(args.place.to_string(), found, "their configuration", remedy))
        }
        (Some(path), place) => {
            let about = format!("--cudaq-config {}", path.display());
            Err(Refusal::unusable(
                about,
                place.to_string(),
                "cudaq:ADDRESS:PORT",
                "leave it out, or name such a source",
            ))
        }
        (None, _) => Ok(None),
    }
}

/// The soft bytes of the shots, as many as the engine has a map of.
fn soft_of(path: &Path, args: &SendArgs, welcome: &Welcome, shots: usize) -> Result<ShotSet, Refusal> {
    let about = format!("--soft {}", path.display());
    if welcome.soft_bytes == 0 {
        let found = "an engine without a map of soft bytes";
        let remedy = "start it with --soft-map, or leave --soft out";
        return Err(Refusal::unusable(about, found, "one with a map", remedy));
    }
    let layout = Layout::detectors(8 * welcome.soft_bytes);
    let soft = read_set(&about, path, args.format.unwrap_or(Format::B8), layout)?;
    soft.check_len(shots).map_err(|error| Refusal::Content { about, said: error.to_string() })?;
    Ok(soft)
}

/// The socket's path exists once its engine has started, so the connection is retried.
fn reach(
    args: &SendArgs,
    decoders: Option<&CudaqDecoders>,
    session: u64,
    clock: &Clock,
) -> io::Result<Box<dyn Client>> {
    let from = clock.ticks();
    loop {
        let connected = match (&args.place, decoders) {
            (LivePlace::Cudaq { at, slot_bytes, .. }, Some(decoders)) => {
                let slot_bytes = args.cudaq_slot_size.unwrap_or(*slot_bytes);
                let client = CudaqClient::connect(*at, decoders.clone(), slot_bytes, args.parts);
                client.map(|client| Box::new(client) as Box<dyn Client>)
            }
            _ => connect(&args.place, &board::directory(), session, args.parts),
        };
        let error = match connected {
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

struct Run<'a> {
    clock: &'a Clock,
    records: Vec<Vec<u8>>,
    /// The soft bytes of each; none if empty.
    soft: Vec<Vec<u8>>,
    streams: u64,
    welcome: Welcome,
    rate_hz: Option<f64>,
    shots: u64,
    /// Scheduled time of each shot sent; at rate max, the time it was sent.
    due: Vec<Ticks>,
    is_answered: Vec<bool>,
    /// Words of each shot's observables, zeros until it is decoded; `None`: nobody wants them.
    observables: Option<Vec<u64>>,
    /// Shots without an answer, from the first one on that does not count as lost.
    in_flight: u64,
    in_flight_from: usize,
    round_trips_ns: Box<HistogramBlock>,
    engine_ns: Box<HistogramBlock>,
    sent: u64,
    answered: u64,
    errors: u64,
    abstained: u64,
    doubled: u64,
    elapsed: Nanos,
}

impl<'a> Run<'a> {
    fn new(
        clock: &'a Clock,
        (shots, soft): (&ShotSet, Option<&ShotSet>),
        welcome: &Welcome,
        rate_hz: Option<f64>,
        count: u64,
    ) -> Run<'a> {
        let records = |set: &ShotSet| {
            let bytes = set.width_bits.div_ceil(8) as usize;
            let record = |shot: &[u64]| shot.iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
            set.iter().map(record).collect()
        };
        Run {
            clock,
            records: records(shots),
            soft: soft.map(records).unwrap_or_default(),
            streams: u64::from(welcome.streams.max(1)),
            welcome: *welcome,
            rate_hz,
            shots: count,
            due: Vec::new(),
            is_answered: Vec::new(),
            observables: None,
            in_flight: 0,
            in_flight_from: 0,
            round_trips_ns: Box::new(HistogramBlock::new_zeroed()),
            engine_ns: Box::new(HistogramBlock::new_zeroed()),
            sent: 0,
            answered: 0,
            errors: 0,
            abstained: 0,
            doubled: 0,
            elapsed: Nanos(0),
        }
    }

    fn through(&mut self, client: &mut dyn Client) -> io::Result<()> {
        let rate = self.clock.rate();
        let start = self.clock.ticks();
        let every = self.rate_hz.map(|hz| rate.ticks(Nanos(1_000_000_000)).0 as f64 / hz);
        // Of the last answer, and of that or the last shot sent.
        let (mut answered_at, mut heard) = (start, start);
        while self.answered < self.shots {
            // Before the next shot: the system forgets what a Unix socket has not read when it sends to an engine that
            // has ended since.
            let answers = self.take(client)?;
            let now = self.clock.ticks();
            if answers > 0 {
                (answered_at, heard) = (now, now);
            }
            if self.in_flight >= WINDOW && rate.nanos(now.since(heard)) >= LOST_AFTER {
                (self.in_flight, self.in_flight_from) = (0, self.due.len());
            }
            let is_waiting = self.sent == self.shots;
            let due = match every {
                Some(every) => start.plus(Ticks((self.sent as f64 * every) as u64)),
                None => now,
            };
            let may_go = !is_waiting
                && match every {
                    Some(_) => due <= now,
                    None => self.in_flight < WINDOW,
                };
            if may_go && self.send_next(client, due)? {
                heard = now;
            }
            if answers == 0 && !may_go {
                std::thread::yield_now();
            }
            let since = match every {
                _ if is_waiting => heard,
                // A slow rate has no shot due for long.
                Some(_) => heard.max(due),
                // Shots that are sent because others are lost say nothing of the engine.
                None => answered_at,
            };
            if rate.nanos(self.clock.ticks().since(since)) >= LAST_ANSWER {
                break;
            }
        }
        self.elapsed = rate.nanos(self.clock.ticks().since(start));
        Ok(())
    }

    fn send_next(&mut self, client: &mut dyn Client, due: Ticks) -> io::Result<bool> {
        let place = (self.sent % self.records.len() as u64) as usize;
        let (record, soft) = (&self.records[place], self.soft.get(place).map_or(&[][..], Vec::as_slice));
        let (stream, sequence) = ((self.sent % self.streams) as u32, self.sent / self.streams);
        if !client.send_soft(stream, sequence, record, soft)? {
            return Ok(false);
        }
        self.due.push(due);
        self.is_answered.push(false);
        self.in_flight += 1;
        let words = self.words();
        if let Some(observables) = &mut self.observables {
            observables.resize(observables.len() + words, 0);
        }
        self.sent += 1;
        Ok(true)
    }

    /// Words of a shot's observables.
    fn words(&self) -> usize {
        Layout::observables(self.welcome.observables).words()
    }

    fn take(&mut self, client: &mut dyn Client) -> io::Result<usize> {
        let words = self.words();
        client.receive(&mut |received| {
            let now = self.clock.ticks();
            let index = received.sequence.saturating_mul(self.streams).saturating_add(u64::from(received.stream));
            let index = index as usize;
            let Some(due) = self.due.get(index) else { return };
            if std::mem::replace(&mut self.is_answered[index], true) {
                self.doubled += 1;
                return;
            }
            self.answered += 1;
            self.in_flight -= u64::from(index >= self.in_flight_from);
            self.round_trips_ns.record(self.clock.rate().nanos(now.since(*due)).0);
            self.engine_ns.record(received.latency_ns);
            self.abstained += u64::from(received.status == Status::Abstained as u16);
            if !Status::is_decoded(received.status) {
                self.errors += 1;
            } else if let Some(observables) = &mut self.observables {
                observables[index * words..][..words].copy_from_slice(&received.observables[..words]);
            }
        })
    }

    fn write(&self, output: Output) -> Result<(), String> {
        let (layout, words) = (Layout::observables(self.welcome.observables), self.words());
        let (kept, zeros) = (self.observables.as_deref().unwrap_or_default(), [0; OBSERVABLE_WORDS_MAX]);
        let mut writer = ShotWriter::new(output, Format::B8, layout);
        for shot in 0..self.shots as usize {
            let found = kept.get(shot * words..(shot + 1) * words).unwrap_or(&zeros[..words]);
            writer.write_shot(found).map_err(|error| error.to_string())?;
        }
        let output = writer.finish().map_err(|error| error.to_string())?;
        output.commit().map_err(|error| error.to_string())
    }

    fn report(&self) -> Report {
        Report {
            sent: self.sent,
            unsent: self.shots - self.sent,
            answered: self.answered,
            errors: self.errors,
            abstained: self.abstained,
            lost: self.sent - self.answered,
            doubled: self.doubled,
            rate_hz: self.rate_hz,
            throughput_per_s: self.answered as f64 * 1e9 / self.elapsed.0.max(1) as f64,
            round_trip_ns: self.round_trips_ns.snapshot(),
            engine_ns: self.engine_ns.snapshot(),
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
        "{} sent, {} not sent, {} answered, {} of them with an error, {} not to be trusted, {} lost, {} answered twice; {} per second\n  round trip  {}\n  in engine   {}\n",
        grouped(report.sent),
        grouped(report.unsent),
        grouped(report.answered),
        grouped(report.errors),
        grouped(report.abstained),
        grouped(report.lost),
        grouped(report.doubled),
        grouped(report.throughput_per_s as u64),
        times(&report.round_trip_ns),
        times(&report.engine_ns)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{
        Client, Clock, Encoding, Format, Layout, LivePlace, OBSERVABLE_WORDS_MAX, Run, ShotSet, WINDOW, Welcome,
        shots_of, unreachable,
    };
    use pinwheel_engine::feed::client::Received;
    use std::{fs, io};

    /// A network that loses the first shots, and an engine behind it.
    struct Lossy(Vec<Received>);

    impl Client for Lossy {
        fn welcome(&mut self) -> io::Result<Option<Welcome>> {
            Ok(None)
        }

        fn send_soft(&mut self, stream: u32, sequence: u64, _bits: &[u8], _soft: &[u8]) -> io::Result<bool> {
            if sequence >= WINDOW {
                let observables = [0; OBSERVABLE_WORDS_MAX];
                self.0.push(Received { stream, sequence, status: 0, latency_ns: 1, observables });
            }
            Ok(true)
        }

        fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize> {
            Ok(self.0.drain(..).inspect(|answer| take(answer)).count())
        }
    }

    /// Not what helps against a missing engine.
    #[test]
    fn an_engine_that_takes_none_of_our_shots_is_told_from_one_that_is_missing() {
        let place = LivePlace::parse("shm:a").unwrap();
        let said = |kind, text: &str| unreachable(&place, &io::Error::new(kind, text)).to_string();
        let start = "expected an engine's live source there; start one with: pinwheel run --input shm:a";
        assert!(said(io::ErrorKind::NotFound, "nothing").ends_with(start));
        for (kind, remedy) in [(io::ErrorKind::AddrInUse, "end that client"), (io::ErrorKind::PermissionDenied, "user")]
        {
            let said = said(kind, "no");
            assert!(said.contains(remedy) && !said.contains("start one"), "{said}");
        }
        let own = "found a call of 300 bytes, expected at most the slot's 256; send more parts, or larger slots";
        assert_eq!(said(io::ErrorKind::InvalidInput, own), format!("shm:a: {own}"));
    }

    /// They were read as bits: 32 times as many shots.
    #[test]
    fn words_of_measurements_are_sent_as_run_reads_them() {
        let welcome =
            |encoding| Welcome { epoch: 1, session: 1, streams: 1, observables: 1, bits: 8, encoding, soft_bytes: 0 };
        let dir = tempfile::tempdir().unwrap();
        let [words, bits] = ["words", "bits"].map(|name| dir.path().join(name));
        let shots = [0b1000_0001u8, 0b0110_1100];
        fs::write(&bits, shots).unwrap();
        let each = shots.iter().flat_map(|shot| (0..8).flat_map(move |bit| u32::from(shot >> bit & 1).to_le_bytes()));
        fs::write(&words, each.collect::<Vec<u8>>()).unwrap();
        let expected = ShotSet::read(&shots[..], Format::B8, Layout::detectors(8)).unwrap();
        assert_eq!(shots_of(&words, None, &welcome(Encoding::Int32)).unwrap(), expected);
        assert_eq!(shots_of(&bits, Some(Format::B8), &welcome(Encoding::Int32)).unwrap(), expected);
        assert_eq!(shots_of(&bits, None, &welcome(Encoding::Bits)).unwrap(), expected);
    }

    #[test]
    fn shots_that_are_lost_keep_no_others_from_being_sent_at_rate_max() {
        let (clock, set) = (Clock::machine(), ShotSet::read(&[1][..], Format::B8, Layout::detectors(8)).unwrap());
        let (bits, encoding) = (8, Encoding::Bits);
        let welcome = Welcome { epoch: 1, session: 1, streams: 1, observables: 1, bits, encoding, soft_bytes: 0 };
        let mut run = Run::new(&clock, (&set, None), &welcome, None, 1_000);
        run.through(&mut Lossy(Vec::new())).unwrap();
        let report = run.report();
        assert_eq!((report.sent, report.unsent, report.answered, report.lost), (1_000, 0, 1_000 - WINDOW, WINDOW));
    }
}
