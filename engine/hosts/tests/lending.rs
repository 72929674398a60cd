//! Every state of a lent stream: an owner, two hosts, and a network that loses, delays, doubles and reorders.
//!
//! The owner's shots are the production's [`Outgoing`], those at a host its [`Incoming`], and messages their bytes.
//! Modelled beside them is what is on other threads: the counts of the intake (`feed::bridge` of the engine), the
//! lanes and rings to and from the bridge, and engines that decode a stream in its order. Time has no part in it: an
//! answer that is late, or never comes, is a stream that is taken back at that moment.
//!
//! Each rule that keeps a stream in order, or its answers apart, is left out once in [`Rule`]; the model must then
//! find a stream whose answers are wrong. So it cannot pass because it sees too little.

#![allow(clippy::unwrap_used, reason = "harness")]

use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_engine::feed::lane::{Head, Piece};
use pinwheel_engine::pipe::Answer;
use pinwheel_engine::units::Ticks;
use pinwheel_hosts::incoming::Incoming;
use pinwheel_hosts::message::{Answered, Name, Widths, decode_answers, encode_answers, encode_shots};
use pinwheel_hosts::outgoing::Outgoing;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::VecDeque;

const WIDTHS: Widths = Widths { detectors: 1, observables: 1 };
const HOSTS: [&str; 2] = ["b", "c"];
const STREAM: u32 = 0;
const RIGHT: &str = "each shot is answered once, in order, with its own answer";
const ANSWERED: &str = "whatever was lost, each shot is answered once its stream is taken back";
const ONCE: &str = "a host decodes a shot of a loan once";

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    None,
    /// While a shot of a stream is away, the intake sends further ones after it.
    FollowAway,
    /// A shot leaves when all before it are answered here.
    LeaveAfterAnswers,
    /// A shot is put back after the answers that the bridge has taken.
    PutBackAfterAnswers,
    /// A shot is taken in after the answers in the ring.
    TakeInAfterAnswers,
    /// An answer counts in the loan that it names.
    Epochs,
    /// A message whose numbers do not follow on is refused.
    Numbers,
}

/// How far the model goes.
struct Lending {
    without: Rule,
    shots: u64,
    loans: usize,
    /// Most messages on their way.
    on_the_way: usize,
    /// Messages that arrive twice.
    doubled: u8,
    /// Processes of hosts that end and start again.
    restarts: u8,
}

impl Lending {
    fn new(without: Rule) -> Lending {
        Lending { without, shots: 3, loans: 2, on_the_way: 2, doubled: 1, restarts: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Message {
    Shots { to: usize, bytes: Vec<u8> },
    Answers { from: usize, bytes: Vec<u8> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host {
    incoming: Incoming<()>,
    /// Shots in its engine: the tag of each, and the word of its detectors.
    engine: VecDeque<(u64, u64)>,
    /// What its process has given to its engine.
    decoded: Vec<Name>,
}

impl Host {
    fn new() -> Host {
        Host { incoming: Incoming::new(1, WIDTHS), engine: VecDeque::new(), decoded: Vec::new() }
    }

    fn has_decoded_twice(&self) -> bool {
        self.decoded.iter().enumerate().any(|(at, name)| self.decoded[..at].contains(name))
    }
}

/// Shots are named by their numbers in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stream {
    submitted: u64,
    answered: u64,
    /// The bridge's route.
    is_away: bool,
    /// The intake's counts.
    direct: u64,
    away: u64,
    /// The lane to the bridge, and the one back.
    leaving: VecDeque<Head>,
    back: VecDeque<u64>,
    /// In the owner's engine, decoded or not.
    here: VecDeque<u64>,
    answered_here: u64,
    /// Other hosts' answers: in the bridge, and in the ring.
    waiting: VecDeque<u64>,
    ring: VecDeque<u64>,
    outgoing: Outgoing,
    /// For each loan: the host.
    loans: Vec<usize>,
    hosts: [Host; 2],
    messages: Vec<Message>,
    doubled: u8,
    restarts: u8,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Submit,
    /// The bridge takes a shot from the lane.
    Leave,
    Give(usize),
    TakeBack,
    Send,
    Deliver(usize),
    Double(usize),
    Lose(usize),
    /// A host's engine answers its oldest shot.
    Decode(usize),
    Restart(usize),
    /// The bridge puts an answer into the ring.
    PassOn,
    PutBack,
    TakeIn,
    /// The link sends an answer of this engine.
    AnswerHere,
    /// The link sends an answer of another host.
    AnswerElsewhere,
}

impl Stream {
    /// What the owner does without any host.
    const AT_HOME: [Step; 6] =
        [Step::Leave, Step::PassOn, Step::PutBack, Step::AnswerElsewhere, Step::TakeIn, Step::AnswerHere];

    fn new() -> Stream {
        Stream {
            submitted: 0,
            answered: 0,
            is_away: false,
            direct: 0,
            away: 0,
            leaving: VecDeque::new(),
            back: VecDeque::new(),
            here: VecDeque::new(),
            answered_here: 0,
            waiting: VecDeque::new(),
            ring: VecDeque::new(),
            outgoing: Outgoing::new(1, WIDTHS),
            loans: Vec::new(),
            hosts: [Host::new(), Host::new()],
            messages: Vec::new(),
            doubled: 0,
            restarts: 0,
            wrong: None,
        }
    }

    /// The sender receives the answer to shot `number`.
    fn answer(&mut self, number: u64) {
        match number {
            number if number < self.answered => self.wrong = Some("a shot was answered twice"),
            number if number > self.answered => self.wrong = Some("an answer overtook another"),
            _ => self.answered += 1,
        }
    }

    fn submit(&mut self, without: Rule) {
        let number = self.submitted;
        self.submitted += 1;
        let follows = self.away > 0 && without != Rule::FollowAway;
        if follows || self.is_away {
            self.leaving.push_back(Head {
                stream: STREAM,
                epoch: 0,
                sequence: self.direct,
                reply_to: ReplyTo { peer: 1, sequence: number },
                arrived: Ticks(0),
                truth_known: false,
                piece: Piece::Whole,
                refused: None,
            });
            self.away += 1;
        } else {
            self.direct += 1;
            self.decode_here(number, without);
        }
    }

    fn decode_here(&mut self, number: u64, without: Rule) {
        self.here.push_back(number);
        // Without the rule, the count is that of the shots that came.
        self.answered_here += u64::from(without == Rule::LeaveAfterAnswers);
    }

    fn leave(&mut self) -> Option<()> {
        let head = self.leaving.pop_front()?;
        self.outgoing.take(head, &[head.reply_to.sequence], &[0]);
        Some(())
    }

    fn take_back(&mut self) {
        self.is_away = false;
        self.outgoing.take_back(STREAM);
    }

    fn give(&mut self, host: usize) {
        self.take_back();
        self.outgoing.give(STREAM, HOSTS[host]);
        self.is_away = true;
        self.loans.push(host);
    }

    /// Sends one shot.
    fn send(&mut self) -> Option<()> {
        let to = HOSTS.iter().position(|host| self.outgoing.at(STREAM) == Some(host))?;
        let answered_here = self.answered_here;
        let shots = self.outgoing.next_message(HOSTS[to], 1, |_| answered_here);
        (!shots.is_empty()).then_some(())?;
        self.put_on_the_way(Message::Shots { to, bytes: encode_shots(1, WIDTHS, shots.iter()) });
        Some(())
    }

    fn put_on_the_way(&mut self, message: Message) {
        self.messages.push(message);
        self.messages.sort_unstable();
    }

    fn deliver(&mut self, message: Message, without: Rule) {
        match message {
            Message::Shots { to, bytes } => self.reach_host(to, &bytes, without),
            Message::Answers { from, bytes } => self.reach_owner(from, &bytes, without),
        }
    }

    fn reach_host(&mut self, to: usize, bytes: &[u8], without: Rule) {
        let host = &mut self.hosts[to];
        if without == Rule::Numbers && host.incoming.is_empty() {
            host.incoming = Incoming::new(1, WIDTHS);
        }
        // A refused message is one that was lost: the owner takes its stream back.
        let _ = host.incoming.offer("a", bytes, (), 0);
        let Host { incoming, engine, decoded } = host;
        incoming.put(|tag, shot| {
            engine.push_back((tag, shot.detectors[0]));
            decoded.push(shot.name);
            true
        });
    }

    fn decode(&mut self, from: usize) -> Option<()> {
        let Host { incoming, engine, .. } = &mut self.hosts[from];
        let (tag, word) = engine.pop_front()?;
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        observables[0] = word;
        let ((), answers) = incoming.answered(tag, &Answer { observables, ..Answer::default() }, 0)?;
        self.put_on_the_way(Message::Answers { from, bytes: encode_answers(WIDTHS.observables, &answers) });
        Some(())
    }

    fn reach_owner(&mut self, from: usize, bytes: &[u8], without: Rule) {
        let mut answers: Vec<Answered> = decode_answers(bytes, WIDTHS.observables).unwrap();
        if without == Rule::Epochs {
            answers.iter_mut().for_each(|answer| answer.name.epoch = self.loans.len() as u32);
        }
        let is_decoder = self.outgoing.at(STREAM) == Some(HOSTS[from]);
        let (waiting, wrong) = (&mut self.waiting, &mut self.wrong);
        self.outgoing.answered(answers, |head, said| {
            if said.observables[0] != head.reply_to.sequence {
                *wrong = Some("a shot has the answer of another");
            }
            if !is_decoder {
                *wrong = Some("a host answered that does not decode the stream");
            }
            waiting.push_back(head.reply_to.sequence);
        });
    }

    fn put_back(&mut self, without: Rule) -> Option<()> {
        if !self.waiting.is_empty() && without != Rule::PutBackAfterAnswers {
            return None;
        }
        let before = self.back.len();
        self.outgoing.put_back(|head, _, _| {
            let has_room = self.back.len() == before;
            if has_room {
                self.back.push_back(head.reply_to.sequence);
            }
            has_room
        });
        (self.back.len() > before).then_some(())
    }

    fn take_in(&mut self, without: Rule) -> Option<()> {
        if !self.ring.is_empty() && without != Rule::TakeInAfterAnswers {
            return None;
        }
        let number = self.back.pop_front()?;
        self.away -= 1;
        self.decode_here(number, without);
        Some(())
    }

    fn answer_here(&mut self, without: Rule) -> Option<()> {
        let number = self.here.pop_front()?;
        self.answered_here += u64::from(without != Rule::LeaveAfterAnswers);
        self.answer(number);
        Some(())
    }

    fn pass_on(&mut self) -> Option<()> {
        self.ring.push_back(self.waiting.pop_front()?);
        Some(())
    }

    fn answer_elsewhere(&mut self) -> Option<()> {
        let number = self.ring.pop_front()?;
        self.away -= 1;
        self.answer(number);
        Some(())
    }

    fn step(&mut self, step: Step, without: Rule) -> Option<()> {
        match step {
            Step::Submit => self.submit(without),
            Step::Leave => self.leave()?,
            Step::Give(host) => self.give(host),
            Step::TakeBack => self.take_back(),
            Step::Send => self.send()?,
            Step::Deliver(at) => {
                let message = self.messages.remove(at);
                self.deliver(message, without);
            }
            Step::Double(at) => {
                self.doubled += 1;
                let message = self.messages[at].clone();
                self.deliver(message, without);
            }
            Step::Lose(at) => drop(self.messages.remove(at)),
            Step::Decode(host) => self.decode(host)?,
            Step::Restart(host) => {
                self.restarts += 1;
                self.hosts[host] = Host::new();
            }
            Step::PassOn => self.pass_on()?,
            Step::PutBack => self.put_back(without)?,
            Step::TakeIn => self.take_in(without)?,
            Step::AnswerHere => self.answer_here(without)?,
            Step::AnswerElsewhere => self.answer_elsewhere()?,
        }
        Some(())
    }

    /// Takes the stream back and lets everything on this host go its way; whether each shot is answered then.
    fn is_answered_in_the_end(&self) -> bool {
        let mut end = self.clone();
        end.take_back();
        while Stream::AT_HOME.into_iter().any(|step| end.step(step, Rule::None).is_some()) {}
        end.answered == end.submitted && end.outgoing.is_empty() && end.away == 0
    }
}

impl Model for Lending {
    type State = Stream;
    type Action = Step;

    fn init_states(&self) -> Vec<Stream> {
        vec![Stream::new()]
    }

    fn actions(&self, stream: &Stream, steps: &mut Vec<Step>) {
        if stream.wrong.is_some() || stream.hosts.iter().any(Host::has_decoded_twice) {
            return;
        }
        steps.extend(Stream::AT_HOME);
        if stream.submitted < self.shots {
            steps.push(Step::Submit);
        }
        let has_room = stream.messages.len() < self.on_the_way;
        if has_room {
            steps.push(Step::Send);
        }
        if stream.outgoing.at(STREAM).is_some() {
            steps.push(Step::TakeBack);
        }
        for (host, name) in HOSTS.iter().enumerate() {
            // The first loan is to the first host: the hosts are alike.
            let may_have_it = stream.loans.len() < self.loans && (host == 0 || !stream.loans.is_empty());
            if may_have_it && stream.outgoing.at(STREAM) != Some(name) {
                steps.push(Step::Give(host));
            }
            if has_room {
                steps.push(Step::Decode(host));
            }
            if stream.restarts < self.restarts && !stream.hosts[host].decoded.is_empty() {
                steps.push(Step::Restart(host));
            }
        }
        for at in 0..stream.messages.len() {
            steps.extend([Step::Deliver(at), Step::Lose(at)]);
            if stream.doubled < self.doubled {
                steps.push(Step::Double(at));
            }
        }
    }

    fn next_state(&self, before: &Stream, step: Step) -> Option<Stream> {
        let mut stream = before.clone();
        stream.step(step, self.without)?;
        Some(stream)
    }

    fn properties(&self) -> Vec<Property<Lending>> {
        vec![
            Property::always(RIGHT, |_, stream: &Stream| stream.wrong.is_none()),
            Property::always(ONCE, |_, stream: &Stream| !stream.hosts.iter().any(Host::has_decoded_twice)),
            Property::always(ANSWERED, |_, stream: &Stream| stream.wrong.is_some() || stream.is_answered_in_the_end()),
            // What the model must reach, or the rest would hold of nothing.
            Property::sometimes("other hosts answer each shot, over a move", |lending: &Lending, stream: &Stream| {
                stream.loans == [0, 1] && stream.answered == lending.shots && stream.answered_here == 0
            }),
        ]
    }
}

/// Visits all states; returns their number.
fn explore(lending: Lending) -> usize {
    let checker = lending.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

/// Finds the shortest way to a state that is wrong.
fn refutes(lending: Lending, property: &'static str) {
    let without = lending.without;
    let checker = lending.checker().finish_when(HasDiscoveries::AnyOf([property].into())).threads(1).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("without {without:?} nothing goes wrong"));
    let wrong = path.last_state().wrong;
    eprintln!("without {without:?}: {wrong:?} after {:?}", path.into_actions());
}

#[test]
fn a_lent_stream_is_answered_once_and_in_order_in_every_state() {
    let three_shots = explore(Lending::new(Rule::None));
    let three_loans = explore(Lending { shots: 2, loans: 3, ..Lending::new(Rule::None) });
    eprintln!("three shots: {three_shots} states; three loans: {three_loans} states");
    assert!(three_shots > 100_000 && three_loans > 100_000);
}

#[test]
fn without_any_of_its_rules_a_stream_is_answered_wrongly() {
    for without in
        [Rule::FollowAway, Rule::LeaveAfterAnswers, Rule::PutBackAfterAnswers, Rule::TakeInAfterAnswers, Rule::Epochs]
    {
        refutes(Lending::new(without), RIGHT);
    }
    refutes(Lending::new(Rule::Numbers), ONCE);
}
