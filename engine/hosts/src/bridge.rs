//! The thread between an engine and the other hosts of its cluster.
//!
//! Owns the cold end of the engine's bridge, the link, and the tables of members, own and others' shots.
//! Runs on one cold thread; the link's callbacks only put events into its queue and wake it. Bounds: those
//! of the tables, [`LINK_LIMIT`] for an answer to shots, one description of each host under way. Never
//! touches a hot thread but by lanes and rings.
//!
//! | file | holds |
//! |---|---|
//! | [`events`] | what the callbacks put into the queue |
//! | [`looks`] | what is done ten times a second: descriptions, placement, drain |
//! | [`requests`] | what operators and other hosts ask |
//!
//! ```text
//!  engine's lane ─▶ outgoing ─▶ message ─▶ link ─────▶ other host
//!  engine's ring ◀─ outgoing ◀─ answers ◀─ link ◀───── other host
//!  other host ─▶ link ─▶ incoming ─▶ engine's lane … engine's ring ─▶ incoming ─▶ reply
//! ```
//!
//! # Why one late answer takes back every stream of that host
//! A host that answers one message late is hung, cut off or overloaded; its other shots wait for
//! the same reason. All of them are decoded here at once, and the host is given nothing for
//! [`AVOIDED`]. A shot that waits for its turn for [`TURN_LIMIT`] has the same effect: that host
//! answers in time, but fewer shots than come.

mod events;
mod looks;
mod requests;

use crate::description::{Description, Offer, PROTOCOL};
use crate::incoming::Incoming;
use crate::link::{Link, NoAnswer, OpenError, Reply, Topic};
use crate::local_socket::LocalSocket;
use crate::membership::Members;
use crate::message::{self, Answered, Name, Widths};
use crate::outgoing::{Outgoing, Window};
use crate::placing::Placing;
use crate::settings::HostSettings;
use events::{Event, Events, Sent, handlers};
use looks::Looks;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::decode::run_models::RunModels;
use pinwheel_engine::engine::Viewer;
use pinwheel_engine::feed::bridge::{Bridge, others, tag_of};
use pinwheel_engine::feed::lane::{Head, LaneIn, Piece};
use pinwheel_engine::pipe::{Answer, AnsweredBy};
use pinwheel_engine::units::Ticks;
use pinwheel_report::control::ControlSocket;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for the answers to a message of shots.
pub const LINK_LIMIT: Duration = Duration::from_millis(100);
/// Longest wait of a shot for its turn at a host: below the time for which an engine lets a shot
/// wait for a slot.
pub const TURN_LIMIT: Duration = Duration::from_millis(200);
/// A host that failed is given no stream for this long.
pub const AVOIDED: Duration = Duration::from_secs(1);
/// Pause of the thread while shots pass, while streams are away, and else. Events of the link wake it at once.
const BUSY_PAUSE: Duration = Duration::from_micros(20);
const AWAY_PAUSE: Duration = Duration::from_micros(500);
const IDLE_PAUSE: Duration = Duration::from_millis(10);
/// Errors that tell of an engine and not of the shot: another one may answer it.
const OF_THE_ENGINE: [ErrorCode; 8] = [
    ErrorCode::DeviceLost,
    ErrorCode::Drained,
    ErrorCode::WindowFull,
    ErrorCode::PageAway,
    ErrorCode::OverflowDeadline,
    ErrorCode::DroppedOldest,
    ErrorCode::DroppedNew,
    ErrorCode::SiloDied,
];
/// Shots passed within this long.
const RECENT_NS: u64 = 50_000_000;

/// What a bridge connects.
pub struct Ends {
    /// The host's settings.
    pub settings: HostSettings,
    /// The engine's bridge.
    pub bridge: Bridge,
    /// The engine's board.
    pub viewer: Viewer,
    /// The engine's models.
    pub models: RunModels,
    /// The engine's clock.
    pub clock: Clock,
    /// The run's directory, for the socket of local programs.
    pub run_dir: PathBuf,
    /// The engine's control socket, for commands of other hosts.
    pub control: ControlSocket,
    /// Version of the program.
    pub version: String,
}

/// Why the hosts cannot be joined.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum JoinError {
    #[error(transparent)]
    Link(#[from] OpenError),
    #[error("{path}: {error}; choose another directory with --logs")]
    LocalSocket { path: PathBuf, error: io::Error },
    #[error("the hosts' thread could not be started ({0}); raise the process limit (ulimit -u)")]
    Thread(io::Error),
    #[error("the hosts' thread ended while it started; the messages above say why")]
    Ended,
}

/// A joined host. Dropping it waits until nothing of other hosts is under way, and leaves.
pub struct Joined {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    endpoints: Vec<String>,
}

impl Joined {
    /// Opens the link and starts the thread. Blocks for about a second: names are unique.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn start(ends: Ends) -> Result<Joined, JoinError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (started, starting) = channel();
        let builder = std::thread::Builder::new().name("hosts".to_owned());
        #[expect(clippy::disallowed_methods, reason = "a cold thread beside the engine's own")]
        let thread = builder.spawn(move || match Worker::open(ends, stopped) {
            Ok(worker) => {
                // The caller may have given up waiting; then the stop is set.
                let _ = started.send(Ok(worker.link.endpoints()));
                worker.run();
            }
            Err(error) => drop(started.send(Err(error))),
        });
        let thread = thread.map_err(JoinError::Thread)?;
        let endpoints = starting.recv().map_err(|_| JoinError::Ended)??;
        Ok(Joined { stop, thread: Some(thread), endpoints })
    }

    /// Addresses at which this host listens.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Relaxed: the thread looks at it ten times a second.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Where an operator placed a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placed {
    Here,
    /// At this host, whenever it can be.
    At(String),
}

/// Figures of one other host.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    answered: u64,
    taken_back: u64,
    /// It is given nothing until then.
    avoided_until_ns: u64,
    window: Window,
    /// A description is under way.
    is_asked: bool,
}

/// Whether an answer of another host, with this error or none, is one for the shot's sender.
fn is_of_shot(error: u16) -> bool {
    error == 0 || ErrorCode::from_number(error).is_some_and(|code| !OF_THE_ENGINE.contains(&code))
}

/// Whether the answer is an error, or by the model that `models` has for the stream, by number and hash. The answer
/// names it by its number at this host then.
fn is_by_own_model(answer: &mut Answered, models: impl Fn(u32) -> (u16, u64)) -> bool {
    let (number, hash) = models(answer.name.stream);
    answer.by = AnsweredBy(answer.by).of_model(number).0;
    answer.error != 0 || answer.model == hash
}

struct Worker {
    settings: HostSettings,
    stop: Arc<AtomicBool>,
    clock: Clock,
    viewer: Viewer,
    models: RunModels,
    control: ControlSocket,
    bridge: Bridge,
    /// `None`: no more shots go to the engine.
    to_engine: Option<LaneIn>,
    /// Answers that found no room in the engine's ring.
    answers: VecDeque<Answer>,
    outgoing: Outgoing,
    incoming: Incoming<Reply>,
    members: Members,
    /// Incarnations of other hosts that have this one's name.
    namesakes: BTreeSet<u64>,
    placing: Placing,
    /// For each stream: where an operator placed it.
    placed: Vec<Option<Placed>>,
    traffic: BTreeMap<String, Traffic>,
    /// An operator wants no shots of others here.
    is_closed: bool,
    own: Description,
    looks: Looks,
    active_ns: u64,
    /// Room for one shot.
    detectors: Vec<u64>,
    observables: Vec<u64>,
    events: Events,
    commands: Arc<requests::Commands>,
    link: Link,
    // Dropped after the queue and the link: its thread may wait for an answer that either still holds.
    _socket: LocalSocket,
}

impl Worker {
    fn open(ends: Ends, stop: Arc<AtomicBool>) -> Result<Worker, JoinError> {
        let Ends { settings, mut bridge, viewer, models, clock, run_dir, control, version } = ends;
        let (events, sender) = Events::new();
        let incarnation = clock.started_utc().as_nanos() as u64;
        let link = Link::open(&settings, incarnation, handlers(&sender))?;
        let asked = sender.clone();
        let socket = LocalSocket::open(&run_dir, move |question| asked.send(Event::Local(question)));
        let socket = socket.map_err(|error| JoinError::LocalSocket { path: run_dir, error })?;
        let streams = bridge.routes.streams();
        let widths = Widths { detectors: bridge.detector_words, observables: bridge.observable_words };
        let snapshot = viewer.snapshot();
        let own = Description {
            protocol: PROTOCOL,
            version,
            model: looks::models(&snapshot),
            widths: (widths.detectors as u32, widths.observables as u32),
            streams,
            ..Description::default()
        };
        Ok(Worker {
            stop,
            clock,
            viewer,
            models,
            control,
            to_engine: bridge.taken_in.take(),
            bridge,
            answers: VecDeque::new(),
            outgoing: Outgoing::new(streams, widths),
            incoming: Incoming::new(streams, widths),
            members: Members::default(),
            namesakes: BTreeSet::new(),
            placing: Placing::new(streams, incarnation),
            placed: vec![None; streams as usize],
            traffic: BTreeMap::new(),
            is_closed: false,
            own,
            looks: Looks::new(streams),
            active_ns: 0,
            detectors: vec![0; widths.detectors],
            observables: vec![0; widths.observables],
            events,
            commands: Arc::default(),
            link,
            _socket: socket,
            settings,
        })
    }

    fn run(mut self) {
        self.events.belong_to_this_thread();
        loop {
            let now_ns = self.now_ns();
            let mut is_busy = false;
            while let Some(event) = self.events.next() {
                is_busy = true;
                let is_long = event.is_long();
                self.take(event, now_ns);
                if is_long {
                    break;
                }
            }
            is_busy |= self.pass_shots(now_ns);
            if self.looks.are_due(now_ns) && self.look(now_ns) == looks::Next::End {
                return;
            }
            if is_busy {
                self.active_ns = now_ns;
                continue;
            }
            let is_away = self.outgoing.away() > 0 || !self.outgoing.is_empty() || !self.incoming.is_empty();
            let pause = match (is_away, now_ns - self.active_ns <= RECENT_NS) {
                (true, true) => BUSY_PAUSE,
                (true, false) => AWAY_PAUSE,
                (false, _) => IDLE_PAUSE,
            };
            std::thread::park_timeout(pause);
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.since_start(self.clock.ticks()).0
    }

    /// Moves shots and answers between the engine and the link; returns whether there were any.
    fn pass_shots(&mut self, now_ns: u64) -> bool {
        let mut is_busy = self.take_leaving();
        while let Some(answer) = self.answers.pop_front() {
            if self.bridge.answered.push(answer).is_err() {
                self.answers.push_front(answer);
                break;
            }
        }
        // The engine may answer a shot that comes back before an answer that still waits here.
        if self.outgoing.has_waiting() && self.answers.is_empty() {
            let to_engine = &mut self.to_engine;
            self.outgoing.put_back(|head, detectors, observables| {
                let is_put = to_engine.as_mut().is_some_and(|lane| lane.put(head, detectors, observables));
                is_busy |= is_put;
                is_put
            });
        }
        if self.outgoing.has_waiting() {
            is_busy |= self.send_messages();
        }
        self.observables.fill(0);
        let (to_engine, nothing, now) = (&mut self.to_engine, &self.observables, self.clock.ticks());
        self.incoming.put(|tag, shot| {
            let head = Head {
                stream: shot.name.stream,
                epoch: 0,
                sequence: 0,
                reply_to: others(tag, shot.name.number),
                arrived: now,
                truth_known: shot.truth.is_some(),
                piece: Piece::Whole,
                refused: None,
            };
            let observables = shot.truth.as_deref().unwrap_or(nothing);
            let is_put = to_engine.as_mut().is_some_and(|lane| lane.put(&head, &shot.detectors, observables));
            is_busy |= is_put;
            is_put
        });
        while let Some(answer) = self.bridge.answers.pop() {
            is_busy = true;
            let model = self.models.hash(answer.by.model()).unwrap_or_default();
            if let Some((reply, answers)) = self.incoming.answered(tag_of(answer.reply_to), &answer, model) {
                reply.send(&message::encode_answers(self.bridge.observable_words, &answers));
            }
        }
        if is_busy {
            self.active_ns = now_ns;
        }
        is_busy
    }

    /// Takes the engine's shots that leave.
    fn take_leaving(&mut self) -> bool {
        let mut is_busy = false;
        while self.outgoing.has_room() {
            let Some(head) = self.bridge.shots.take(&mut self.detectors, &mut self.observables) else { break };
            self.outgoing.take(head, &self.detectors, &self.observables);
            is_busy = true;
        }
        is_busy
    }

    /// Sends what may be sent to the hosts that decode streams of this one.
    fn send_messages(&mut self) -> bool {
        let mut is_busy = false;
        let hosts: Vec<String> = self.members.present().map(str::to_owned).collect();
        for host in hosts {
            let window = self.traffic.get(&host).copied().unwrap_or_default().window.shots();
            let mut under_way = self.outgoing.under_way(&host);
            loop {
                let routes = &self.bridge.routes;
                let limit = self.outgoing.widths().shots_max().min(window.saturating_sub(under_way));
                let shots = self.outgoing.next_message(&host, limit, |stream| routes.answered_here(stream));
                if shots.is_empty() {
                    break;
                }
                is_busy = true;
                under_way += shots.len();
                let sent = Sent { at_ns: self.now_ns(), under_way };
                let body = message::encode_shots(self.link.incarnation(), self.outgoing.widths(), shots.iter());
                let (events, name) = (self.events.sender(), host.clone());
                let shots = shots.into_iter().map(|shot| shot.name).collect();
                let answered = Box::new(move |result| {
                    events.send(Event::Answers { host: name, shots, sent, result });
                });
                self.link.ask(&host, Topic::Shots, body, LINK_LIMIT, answered);
            }
            self.fail_if_slow(&host);
        }
        is_busy
    }

    /// A host that answers in time, and fewer shots than come, fails too: the others would wait
    /// without end.
    fn fail_if_slow(&mut self, host: &str) {
        let (routes, now) = (&self.bridge.routes, self.clock.ticks());
        let wait = self.outgoing.longest_wait(host, now, |stream| routes.answered_here(stream));
        if self.clock.rate().nanos(wait).0 > TURN_LIMIT.as_nanos() as u64 {
            self.fail(host, self.now_ns());
        }
    }

    /// Takes a host's answers to `shots`. One that answers other shots than it was sent fails: the
    /// rest would wait for ever, or another host's shots would have its answers. So does one that
    /// lost or dropped a shot, or decoded it by another model.
    fn take_answers(
        &mut self,
        (host, shots, sent): (&str, &[Name], Sent),
        result: Result<Vec<u8>, NoAnswer>,
        now_ns: u64,
    ) {
        let decoded = result.ok().and_then(|bytes| {
            let mut answers = message::decode_answers_to(shots, &bytes, self.bridge.observable_words).ok()?;
            let models = |stream| self.models.in_force(stream);
            answers
                .iter_mut()
                .all(|answer| is_of_shot(answer.error) && is_by_own_model(answer, models))
                .then_some(answers)
        });
        let Some(decoded) = decoded else {
            self.fail(host, now_ns);
            return;
        };
        let (clock, now, answers) = (&self.clock, self.clock.ticks(), &mut self.answers);
        let mut count = 0;
        self.outgoing.answered(decoded, |head, said| {
            let mut observables = [0; OBSERVABLE_WORDS_MAX];
            let width = said.observables.len().min(OBSERVABLE_WORDS_MAX);
            observables[..width].copy_from_slice(&said.observables[..width]);
            answers.push_back(Answer {
                stream: head.stream,
                sequence: 0,
                reply_to: head.reply_to,
                error: ErrorCode::from_number(said.error),
                by: AnsweredBy(said.by),
                abstained: said.abstained,
                latency_ns: clock.rate().nanos(Ticks(now.0.saturating_sub(head.arrived.0))).0,
                observables,
            });
            count += 1;
        });
        let traffic = self.traffic.entry(host.to_owned()).or_default();
        traffic.answered += count;
        // The link's time is the same however many shots it carries.
        let (trip_ns, took_ns) = (self.members.trip_ns(host), now_ns.saturating_sub(sent.at_ns));
        let limit_ns = (LINK_LIMIT.as_nanos() as u64).saturating_sub(trip_ns);
        traffic.window.timed(sent.under_way, took_ns.saturating_sub(trip_ns), limit_ns);
    }

    /// A host did not answer shots: its streams are decoded here.
    fn fail(&mut self, host: &str, now_ns: u64) {
        self.take_back_all(host);
        let traffic = self.traffic.entry(host.to_owned()).or_default();
        traffic.avoided_until_ns = now_ns + AVOIDED.as_nanos() as u64;
        traffic.window.failed();
    }

    fn take_back_all(&mut self, host: &str) {
        let streams: Vec<u32> = self.outgoing.streams_at(host).collect();
        streams.into_iter().for_each(|stream| self.take_back(stream));
    }

    fn take_back(&mut self, stream: u32) {
        let Some(host) = self.outgoing.at(stream).map(str::to_owned) else { return };
        self.bridge.routes.keep(stream);
        self.traffic.entry(host).or_default().taken_back += self.outgoing.take_back(stream);
    }

    /// Lets `host` decode `stream`.
    fn give(&mut self, stream: u32, host: &str) {
        if self.outgoing.at(stream) == Some(host) {
            return;
        }
        self.take_back(stream);
        self.outgoing.give(stream, host);
        self.bridge.routes.send_away(stream);
    }

    fn takes_shots(&self) -> bool {
        self.own.offer == Offer::Open
    }

    /// Takes shots of others, or none.
    fn offer(&mut self, offer: Offer) {
        self.own.offer = offer;
        match offer {
            Offer::Open => self.incoming.reopen(),
            Offer::Draining => self.incoming.close(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AnsweredBy, ErrorCode, is_by_own_model, is_of_shot};
    use crate::message::{Answered, Name};
    use pinwheel_engine::profile::DecoderKind;

    #[test]
    fn an_error_of_the_other_engine_is_not_the_senders_answer() {
        let of = |code: ErrorCode| is_of_shot(code as u16);
        assert!(is_of_shot(0) && of(ErrorCode::Unmatchable) && of(ErrorCode::DecoderPanic));
        assert!(!of(ErrorCode::SiloDied) && !of(ErrorCode::DroppedNew) && !of(ErrorCode::Drained));
        assert!(!is_of_shot(u16::MAX), "a code that this version does not know");
    }

    /// A host that had had other models named its own by another number: `--answers` had the wrong model then.
    #[test]
    fn an_answer_by_another_model_is_none_and_one_by_the_same_has_this_hosts_number() {
        let answered = |error, model| Answered {
            name: Name { stream: 4, epoch: 1, number: 0 },
            error,
            abstained: false,
            by: AnsweredBy::new(DecoderKind::Matching, 9).with_gap(Some(1.0)).0,
            model,
            observables: vec![1],
        };
        let models = |stream| if stream == 4 { (2, 77) } else { (0, 1) };
        let mut same = answered(0, 77);
        assert!(is_by_own_model(&mut same, models));
        assert_eq!(AnsweredBy(same.by), AnsweredBy::new(DecoderKind::Matching, 2).with_gap(Some(1.0)));
        assert!(!is_by_own_model(&mut answered(0, 1), models) && is_by_own_model(&mut answered(3, 0), models));
    }
}
