//! The senders of a cluster: one for each stream, which counts each answer and compares it with the
//! decoder alone.
//!
//! A sender has at most [`IN_FLIGHT`] shots on their way. When its engine is killed it goes to the next one
//! and sends again what was not answered: an answer that came is not asked for twice.

use super::UpArgs;
use super::moves::Moves;
use super::processes::Processes;
use crate::cli::pause;
use crate::cli::refusal::Refusal;
use pinwheel_engine::board;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::Model;
use pinwheel_engine::code::sampler::Sampler;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::client::{Client, Received, connect};
use pinwheel_engine::feed::packet::Status;
use pinwheel_engine::units::Ticks;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// Shots of a stream on their way at most: a Unix socket holds ten datagrams.
const IN_FLIGHT: u64 = 8;
/// Different shots that are sent.
const SHOTS: usize = 512;
/// A move's pause is its stream's longest wait for an answer within this time from the command.
const MOVE_WINDOW: Duration = Duration::from_millis(100);
/// Longest wait for an engine's welcome.
const GREETING: Duration = Duration::from_secs(20);
/// Time between two turns of a load.
pub(super) const TURN: Duration = Duration::from_micros(200);

/// What was counted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Totals {
    pub(super) submitted: u64,
    pub(super) answered: u64,
    /// Submitted and not answered.
    pub(super) lost: u64,
    /// Answers to shots that were answered already.
    pub(super) duplicated: u64,
    /// Answers before that of an earlier shot of their stream.
    pub(super) out_of_order: u64,
    /// Answers other than the decoder's alone, and answers to shots of others or to shots that were
    /// not sent.
    pub(super) wrong: u64,
    /// Answers with an error.
    pub(super) errors: u64,
    /// Shots sent again, because their engine was killed before it answered.
    pub(super) sent_again: u64,
}

impl Totals {
    pub(super) fn is_sound(&self) -> bool {
        self.lost + self.duplicated + self.out_of_order + self.wrong + self.errors == 0
    }
}

/// Quantiles of measured times, nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

/// The answers to one sender's shots, by their numbers.
#[derive(Default)]
struct Answers {
    /// All before it were answered, but for `missing`.
    next: u64,
    /// Shots whose successors were answered before them.
    missing: BTreeSet<u64>,
}

impl Answers {
    /// Counts an answer of `stream`, which has sent the shots before `sent`. `is_right`: it is the
    /// decoder's alone.
    fn take(
        &mut self,
        totals: &mut Totals,
        received: &Received,
        (stream, sent): (u32, u64),
        is_right: impl Fn(&Received) -> bool,
    ) {
        if received.stream != stream || received.sequence >= sent {
            totals.wrong += 1;
            return;
        }
        if received.sequence >= self.next {
            totals.out_of_order += u64::from(received.sequence > self.next);
            self.missing.extend(self.next..received.sequence);
            self.next = received.sequence + 1;
        } else if !self.missing.remove(&received.sequence) {
            totals.duplicated += 1;
            return;
        }
        totals.answered += 1;
        if !Status::is_decoded(received.status) {
            totals.errors += 1;
        } else if !is_right(received) {
            totals.wrong += 1;
        }
    }

    /// Whether all shots before `submitted` were answered.
    fn are_complete(&self, submitted: u64) -> bool {
        self.next == submitted && self.missing.is_empty()
    }
}

impl Spread {
    /// `None`: nothing was measured.
    fn of(times: &mut [Duration]) -> Option<Spread> {
        times.sort_unstable();
        let at = |share: f64| {
            let place = ((times.len() as f64 * share) as usize).min(times.len().checked_sub(1)?);
            Some(times[place].as_nanos() as u64)
        };
        Some(Spread { p50: at(0.5)?, p99: at(0.99)?, max: at(1.0)? })
    }
}

/// Longest waits of senders for their next answer, the time between two shots taken off, around commands that move
/// a stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pauses {
    /// Of the stream that moves.
    pub(super) moved: Spread,
    /// Of another stream in the same time, which stays.
    pub(super) stayed: Spread,
}

/// A sender's longest wait for an answer until a moment.
#[derive(Clone, Copy)]
struct Wait {
    until: Duration,
    longest: Duration,
    is_moved: bool,
}

struct Sender {
    client: Box<dyn Client>,
    /// Place of its engine.
    at: usize,
    /// Whether it returns to the engine of its stream's number once all its shots are answered.
    goes_home: bool,
    /// When its engine was killed, if no answer came since.
    killed: Option<Duration>,
    /// When its last answer came.
    last: Duration,
    wait: Option<Wait>,
    /// Shots submitted, and sent to the present engine: numbers from 0.
    submitted: u64,
    sent: u64,
    answers: Answers,
}

/// All senders.
pub(super) struct Load {
    senders: Vec<Sender>,
    records: Vec<Vec<u8>>,
    predictions: Vec<u64>,
    clock: Clock,
    from: Ticks,
    rate_hz: f64,
    engines: usize,
    totals: Totals,
    moves: Moves,
    /// From a kill to the next answer.
    takeovers: Vec<Duration>,
    /// See [`Pauses`].
    moved: Vec<Duration>,
    stayed: Vec<Duration>,
}

impl Load {
    pub(super) fn new(model: &Model, args: &UpArgs, clock: &Clock, processes: &Processes) -> Result<Load, Refusal> {
        let refused = |error: &dyn std::fmt::Display| {
            Refusal::unusable(format!("--dem {}", args.dem), error.to_string(), "a model to match", "see pinwheel run")
        };
        let matcher = MatcherModel::new(model).map_err(|error| refused(&error))?;
        let (mut matcher, mut sampler) = (matcher.matcher(), Sampler::new(model, 1));
        let (mut detectors, mut truth) = (vec![0; model.shot_words()], vec![0; model.observable_words()]);
        let (mut records, mut predictions) = (Vec::new(), Vec::new());
        for _ in 0..SHOTS {
            sampler.draw(&mut detectors, &mut truth);
            let mut predicted = vec![0; model.observable_words()];
            matcher.decode(&detectors, &mut predicted).map_err(|error| refused(&error))?;
            let bytes = detectors.iter().flat_map(|word| word.to_le_bytes());
            records.push(bytes.take(model.detectors.div_ceil(8) as usize).collect());
            predictions.push(predicted[0]);
        }
        let moves = Moves::new().map_err(|error| {
            Refusal::unusable("cluster up", error.to_string(), "a thread", "raise the process limit (ulimit -u)")
        })?;
        let mut load = Load {
            senders: Vec::new(),
            records,
            predictions,
            clock: clock.clone(),
            from: clock.ticks(),
            rate_hz: args.rate / f64::from(args.streams),
            engines: args.count as usize,
            totals: Totals::default(),
            moves,
            takeovers: Vec::new(),
            moved: Vec::new(),
            stayed: Vec::new(),
        };
        for stream in 0..args.streams {
            let at = processes.living_from(stream as usize).unwrap_or(0);
            let client = load.client(processes, at)?;
            load.senders.push(Sender {
                client,
                at,
                goes_home: false,
                killed: None,
                last: Duration::ZERO,
                wait: None,
                submitted: 0,
                sent: 0,
                answers: Answers::default(),
            });
        }
        load.from = clock.ticks();
        Ok(load)
    }

    /// A client of the engine at place `at`, welcomed.
    fn client(&self, processes: &Processes, at: usize) -> Result<Box<dyn Client>, Refusal> {
        let place = LivePlace::Unix(processes.at(at).socket.clone());
        let refused = |found: String| {
            let name = &processes.at(at).name;
            Refusal::unusable(format!("cluster up: {name}"), found, "an engine that takes shots", "see pinwheel check")
        };
        // A later session of a stream takes over from an earlier one.
        let session = self.clock.started_utc().as_nanos() as u64 + self.elapsed().as_nanos() as u64;
        let mut client =
            connect(&place, &board::directory(), session, 1).map_err(|error| refused(error.to_string()))?;
        let from = self.elapsed();
        while client.welcome().map_err(|error| refused(error.to_string()))?.is_none() {
            if self.elapsed() > from + GREETING {
                return Err(refused("no welcome".to_owned()));
            }
            pause(TURN);
        }
        Ok(client)
    }

    /// Time since the first shot was due.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.clock.rate().nanos(self.clock.ticks().since(self.from)).0)
    }

    /// Sends what is due and takes answers, then pauses.
    pub(super) fn step(&mut self, processes: &Processes) -> Result<(), Refusal> {
        let due = (self.elapsed().as_secs_f64() * self.rate_hz) as u64;
        self.pass(processes, Some(due))?;
        pause(TURN);
        Ok(())
    }

    /// Sends the shots before `due`, or no new ones, and takes answers.
    pub(super) fn pass(&mut self, processes: &Processes, due: Option<u64>) -> Result<(), Refusal> {
        for stream in 0..self.senders.len() {
            self.go_home(stream, processes)?;
            if processes.living_from(self.senders[stream].at) != Some(self.senders[stream].at) {
                self.go_on_elsewhere(stream, processes)?;
            }
            let failed = |error: io::Error| {
                Refusal::unusable(
                    "cluster up",
                    error.to_string(),
                    "a socket to its engine",
                    "see the engine's messages",
                )
            };
            let sender = &mut self.senders[stream];
            let due = due.unwrap_or(sender.submitted);
            while sender.sent < due && sender.sent < sender.answers.next + IN_FLIGHT {
                let record = &self.records[sender.sent as usize % SHOTS];
                if !sender.client.send(stream as u32, sender.sent, record).map_err(failed)? {
                    break;
                }
                sender.sent += 1;
                sender.submitted = sender.submitted.max(sender.sent);
            }
            let (before, sent) = (self.totals.answered, sender.submitted);
            let (totals, answers, predictions) = (&mut self.totals, &mut sender.answers, &self.predictions);
            let is_right =
                |received: &Received| received.observables[0] == predictions[received.sequence as usize % SHOTS];
            let mut take = |received: &Received| answers.take(totals, received, (stream as u32, sent), is_right);
            // An engine that was just killed refuses the socket.
            while sender.client.receive(&mut take).is_ok_and(|count| count > 0) {}
            if self.totals.answered > before {
                self.note_answer(stream);
            }
        }
        Ok(())
    }

    /// The sender's engine was killed: the next one gets what was not answered.
    fn go_on_elsewhere(&mut self, stream: usize, processes: &Processes) -> Result<(), Refusal> {
        let Some(at) = processes.living_from(self.senders[stream].at) else {
            let remedy = "see the engines' messages";
            return Err(Refusal::unusable("cluster up", "no living engine", "at least one", remedy));
        };
        let client = self.client(processes, at)?;
        let sender = &mut self.senders[stream];
        self.totals.sent_again += sender.sent - sender.answers.next;
        (sender.client, sender.at, sender.sent) = (client, at, sender.answers.next);
        Ok(())
    }

    pub(super) fn note_kill(&mut self, place: usize) {
        let now = self.elapsed();
        let theirs = self.senders.iter_mut().filter(|sender| sender.at == place);
        theirs.for_each(|sender| sender.killed = Some(sender.killed.unwrap_or(now)));
    }

    /// Lets the senders that belong to the engine at `place` return to it.
    pub(super) fn send_home(&mut self, place: usize) {
        for (stream, sender) in self.senders.iter_mut().enumerate() {
            sender.goes_home |= stream % self.engines == place && sender.at != place;
        }
    }

    /// Returns a sender to its engine when all that it sent is answered.
    fn go_home(&mut self, stream: usize, processes: &Processes) -> Result<(), Refusal> {
        let (home, sender) = (stream % self.engines, &self.senders[stream]);
        if !sender.goes_home || sender.answers.next != sender.sent || processes.living_from(home) != Some(home) {
            return Ok(());
        }
        let client = self.client(processes, home)?;
        let sender = &mut self.senders[stream];
        (sender.client, sender.at, sender.goes_home) = (client, home, false);
        Ok(())
    }

    fn note_answer(&mut self, stream: usize) {
        let (now, interval) = (self.elapsed(), Duration::from_secs_f64(1.0 / self.rate_hz));
        let sender = &mut self.senders[stream];
        if let Some(killed) = sender.killed.take() {
            self.takeovers.push(now - killed);
        }
        let waited = (now - sender.last).saturating_sub(interval);
        sender.last = now;
        let Some(wait) = &mut sender.wait else { return };
        wait.longest = wait.longest.max(waited);
        if now >= wait.until {
            let waits = if wait.is_moved { &mut self.moved } else { &mut self.stayed };
            waits.push(wait.longest);
            sender.wait = None;
        }
    }

    /// Times from kills to the next answers; `None`: nothing was killed.
    pub(super) fn takeover(&mut self) -> Option<Spread> {
        Spread::of(&mut self.takeovers)
    }

    /// What moves cost; `None`: none was made.
    pub(super) fn pauses(&mut self) -> Option<Pauses> {
        Some(Pauses { moved: Spread::of(&mut self.moved)?, stayed: Spread::of(&mut self.stayed)? })
    }

    /// Has the next host decode the next stream.
    pub(super) fn move_a_stream(&mut self, processes: &Processes) {
        let (until, streams) = (self.elapsed() + MOVE_WINDOW, self.senders.len());
        let moved = self.moves.ask(processes, streams, |stream| self.senders[stream].at);
        let stayed = (moved + streams / 2) % streams;
        for (stream, is_moved) in [(moved, true), (stayed, false)] {
            // The next command may come before the window of the last one ends.
            if self.senders[stream].wait.is_none() {
                self.senders[stream].wait = Some(Wait { until, longest: Duration::ZERO, is_moved });
            }
        }
    }

    /// Moves made since the last call.
    pub(super) fn moves_made(&self) -> u64 {
        self.moves.made()
    }

    /// Sends nothing new and waits for the last answers.
    pub(super) fn finish(&mut self, processes: &Processes, limit: Duration) -> Result<(), Refusal> {
        let until = self.elapsed() + limit;
        let is_done = |senders: &[Sender]| senders.iter().all(|sender| sender.answers.are_complete(sender.submitted));
        while !is_done(&self.senders) && self.elapsed() < until {
            self.pass(processes, None)?;
            pause(TURN);
        }
        Ok(())
    }

    pub(super) fn totals(&self) -> Totals {
        let submitted: u64 = self.senders.iter().map(|sender| sender.submitted).sum();
        Totals { submitted, lost: submitted - self.totals.answered, ..self.totals }
    }

    /// A line of progress.
    pub(super) fn line(&self) -> String {
        let Totals { submitted, answered, duplicated, out_of_order, wrong, errors, .. } = self.totals();
        format!(
            "{:6.1} s  {submitted} submitted  {answered} answered  {} wrong, twice, out of order or with an error",
            self.elapsed().as_secs_f64(),
            duplicated + out_of_order + wrong + errors
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, Received, Totals};

    #[test]
    fn each_answer_counts_once_and_a_shot_that_later_ones_overtook_is_lost_until_its_answer_comes() {
        let (mut answers, mut totals) = (Answers::default(), Totals::default());
        let mut take = |stream, sequence| {
            let received = Received { stream, sequence, status: 0, latency_ns: 0, observables: Default::default() };
            answers.take(&mut totals, &received, (3, 6), |_| true);
            (totals.answered, totals.out_of_order, totals.duplicated, totals.wrong)
        };
        assert_eq!(take(3, 0), (1, 0, 0, 0));
        assert_eq!(take(3, 3), (2, 1, 0, 0), "before those of 1 and 2");
        assert_eq!(take(3, 1), (3, 1, 0, 0));
        assert_eq!(take(3, 1), (3, 1, 1, 0), "twice");
        assert_eq!(take(4, 2), (3, 1, 1, 1), "of another stream");
        assert_eq!(take(3, 6), (3, 1, 1, 2), "not sent yet");
        assert_eq!([take(3, 4), take(3, 5)], [(4, 1, 1, 2), (5, 1, 1, 2)]);
        assert!(!answers.are_complete(6), "2 is lost");
    }
}
