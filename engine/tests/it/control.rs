//! Acting on a running engine from another process: the socket, what it does, and what it refuses.

use crate::rig::{Home, LIMIT, beside_another, config, end, execute, profile, sampler, total, until};
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::wire::{LINE_BYTES_MAX, Outcome, Request, read_reply};
use pinwheel_engine::engine::{Actor, Command, Config, Done, EndedBy, Engine, InputSpec, Refused, SiloCommand};
use pinwheel_engine::profile::{Device, Profile, Rate, Silos, SpinPolicy};
use pinwheel_engine::record::EventSink;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A client with the patience of a busy machine.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn of(engine: &Engine) -> Client {
        let socket = engine.snapshot().control.socket.expect("a socket");
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        self.0.get_mut().write_all(b"\n").unwrap();
    }

    pub(crate) fn hear(&mut self) -> Outcome {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        read_reply(line.as_bytes()).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    pub(crate) fn send(&mut self, command: Command) {
        self.say(&serde_json::to_string(&Request::new(command, "a test")).unwrap());
    }

    fn ask(&mut self, command: Command) -> Outcome {
        self.send(command);
        self.hear()
    }

    pub(crate) fn done(&mut self, command: Command) -> Done {
        match self.ask(command) {
            Outcome::Done(done) => done,
            Outcome::Refused(said) => panic!("{said}"),
        }
    }

    /// Asks until every thread has acknowledged within the time that a reply waits for them.
    fn acknowledged(&mut self, command: impl Fn() -> Command) -> Done {
        let from = Instant::now();
        loop {
            let done = self.done(command());
            let (Done::Profile { acknowledged, .. }
            | Done::Feed { acknowledged, .. }
            | Done::Alarms { acknowledged, .. }) = done
            else {
                panic!("nothing to acknowledge: {done:?}")
            };
            if acknowledged {
                return done;
            }
            assert!(from.elapsed() < LIMIT, "never acknowledged: {done:?}");
        }
    }

    fn refused(&mut self, command: Command) -> String {
        match self.ask(command) {
            Outcome::Done(done) => panic!("{done:?}"),
            Outcome::Refused(said) => said,
        }
    }
}

fn run_dir(home: &Home) -> PathBuf {
    let run = home.file("run");
    fs::create_dir_all(&run).unwrap();
    run
}

/// An engine with a run directory, live at 2,000 shots a second.
fn start(home: &Home) -> Engine {
    let run = run_dir(home);
    let mut profile = profile();
    profile.input.rate = Rate::Hz(2_000.0);
    let events = Some(EventSink::create(&run.join("events.jsonl")));
    let config = Config { run_dir: Some(run), events, ..config(&profile, sampler(), None) };
    let engine = Engine::start(config).unwrap();
    until(&engine, "Live", |snapshot| total(snapshot, |counters| counters.answered) > 50);
    engine
}

fn events(home: &Home) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(home.file("run/events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_switch_from_another_process_is_acknowledged_by_every_thread_and_gives_back_what_was_lent() {
    let home = beside_another();
    let engine = start(&home);
    let socket = engine.snapshot().control.socket.unwrap();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let before = engine.profile();
    let mut client = Client::of(&engine);
    // So long that what is lent is still lent when the test looks.
    let lent = |for_s| Command::Profile { name: "lab".into(), text: None, for_s: Some(for_s) };
    let Done::Profile { from, to, reverts_in_s, changes, .. } = client.done(lent(600)) else { panic!("a switch") };
    assert_eq!((from.as_str(), to.as_str(), reverts_in_s), ("test", "lab", Some(600)));
    let Done::Profile { epoch, threads, .. } = client.acknowledged(|| lent(600)) else { panic!("a switch") };
    assert!(threads.iter().all(|thread| thread.acknowledged && thread.epoch >= epoch), "{threads:?}");
    assert!(changes.iter().any(|change| change.field == "spin"));
    assert_eq!(engine.profile().spin, SpinPolicy::Lab, "the engine's holder sees what others switched");
    let revert = engine.snapshot().control.revert.expect("it comes back");
    assert!(revert.to == "test" && revert.in_ns <= 600_000_000_000, "{revert:?}");
    client.done(lent(1));
    until(&engine, "what was lent given back", |snapshot| {
        snapshot.engine.profile == "test" && snapshot.control.revert.is_none()
    });
    assert_eq!(engine.profile(), before);
    // The text of a file goes over the socket too, and is checked there.
    let text = Profile { spin: SpinPolicy::Lab, ..(*before).clone() }.to_ron().unwrap();
    client.done(Command::Profile { name: "mine".into(), text: Some(text.clone()), for_s: None });
    let Done::InForce { name, text: in_force } = client.done(Command::InForce) else { panic!("a profile") };
    assert_eq!((name.as_str(), Profile::parse(&in_force, "in force").unwrap()), ("mine", (*engine.profile()).clone()));
    let broken = text.replace("slots: 64", "slots: 0");
    let said = client.refused(Command::Profile { name: "mine".into(), text: Some(broken), for_s: None });
    assert!(said.contains("slots"), "{said}");
    assert!(
        client.refused(Command::Profile { name: "none".into(), text: None, for_s: None }).contains("expected one of")
    );
    let outcome = {
        engine.request_drain();
        end(engine)
    };
    assert_eq!(outcome.ended_by, EndedBy::Drained);
    assert!(!PathBuf::from(socket).exists(), "the socket goes with the engine");
    let operated: Vec<_> = events(&home).into_iter().filter(|event| event["event"] == "operated").collect();
    let own = u64::from(std::process::id());
    assert!(operated.iter().any(|event| event["thread"] == "operator"
        && event["numbers"][1] == own
        && event["text"].as_str().unwrap().contains("profile test to lab for 600 s")
        && event["text"].as_str().unwrap().ends_with(": a test")));
    assert!(
        operated
            .iter()
            .any(|event| event["thread"] == "timer" && event["text"].as_str().unwrap().contains("lab to test"))
    );
}

#[test]
fn a_switch_that_the_fields_of_the_start_do_not_permit_is_refused_and_changes_nothing() {
    let home = beside_another();
    let run = run_dir(&home);
    let mut started = profile();
    started.input.rate = Rate::Hz(2_000.0);
    // Applies at a restart only; the other profile's limits are below it.
    started.deadlines.answer_us = Some(50_000);
    let config = Config { run_dir: Some(run), ..config(&started, sampler(), None) };
    let engine = Engine::start(config).unwrap();
    until(&engine, "Live", |snapshot| total(snapshot, |counters| counters.answered) > 50);
    let mut other = profile();
    (other.limits.launch_deadline_us, other.limits.shot_deadline_us) = (5_000, 20_000);
    assert_eq!(other.validate(), [], "alone it is sound");
    let (before, mut client) = (engine.profile(), Client::of(&engine));
    let text = Some(other.to_ron().unwrap());
    let said = client.refused(Command::Profile { name: "short".into(), text, for_s: Some(600) });
    assert!(said.contains("profile short") && said.contains("deadlines.answer_us"), "{said}");
    assert_eq!(engine.profile(), before);
    let now = engine.snapshot();
    assert!(now.engine.profile == "test" && now.control.revert.is_none(), "{:?}", now.control.revert);
    let Done::InForce { text, .. } = client.done(Command::InForce) else { panic!("a profile") };
    assert!(Profile::parse(&text, "in force").is_ok());
    client.done(Command::Stop);
    end(engine);
}

#[test]
fn a_profile_that_leaves_silos_and_device_to_the_machine_is_in_force_as_written() {
    let _home = beside_another();
    let started = Profile { device: Device::Auto, silos: Silos::Auto, ..profile() };
    let engine = Engine::start(config(&started, sampler(), None)).unwrap();
    assert_eq!(*engine.profile(), started);
    engine.request_drain();
    end(engine);
}

#[test]
fn a_limited_profile_that_cannot_return_says_why_in_the_log_of_actions() {
    let _home = beside_another();
    // No profile file may be without a summary.
    let started = Profile { summary: String::new(), ..profile() };
    let engine = Engine::start(Config { profile: started, ..config(&profile(), sampler(), None) }).unwrap();
    for seconds in [600, 1] {
        let limited = Command::profile("lent", &profile(), Some(Duration::from_secs(seconds))).unwrap();
        execute(&engine, limited).unwrap();
        assert!(seconds == 1 || engine.lasting_profile().0 == "test");
    }
    let said = |now: &Snapshot| now.control.last.as_ref().map_or_else(String::new, |action| action.what.clone());
    let now = until(&engine, "the refusal", |now| said(now).starts_with("profile test does not return: "));
    assert!(said(&now).contains("summary: found 0 characters"), "{}", said(&now));
    assert!(now.engine.profile == "lent" && now.control.revert.is_none(), "{:?}", now.control.revert);
    assert_eq!(engine.lasting_profile(), ("lent".to_owned(), engine.profile()));
    engine.request_drain();
    crate::rig::assert_nothing_lost(&end(engine));
}

#[test]
fn a_held_feed_takes_nothing_until_it_is_let_go_and_a_rate_is_what_was_asked_for() {
    let home = beside_another();
    let engine = start(&home);
    let mut client = Client::of(&engine);
    let Done::Feed { held: true, submitted, .. } = client.acknowledged(|| Command::Pause) else { panic!("held") };
    assert!(engine.snapshot().control.held.is_some_and(|held| held.by.contains("a test")));
    let frames = |snapshot: &Snapshot| snapshot.threads[0].frames;
    let later = frames(&engine.snapshot()) + 2_000;
    let still = until(&engine, "frames", |snapshot| frames(snapshot) > later);
    assert_eq!(total(&still, |counters| counters.submitted), submitted, "nothing is taken while held");
    let Done::Feed { held: false, .. } = client.done(Command::Resume) else { panic!("let go") };
    until(&engine, "shots again", |snapshot| total(snapshot, |counters| counters.submitted) > submitted + 20);
    let Done::Rate { hz: Some(hz), from } = client.done(Command::Rate { hz: Some(500.0) }) else { panic!("a rate") };
    assert_eq!((hz, from.as_str(), engine.profile().input.rate), (500.0, "2000/s", Rate::Hz(500.0)));
    assert_eq!(engine.snapshot().engine.rate_hz, Some(500.0));
    assert!(client.refused(Command::Rate { hz: Some(-1.0) }).contains("above 0"));
    assert!(client.refused(Command::Acknowledge { number: 77 }).contains("alarm 77"));
    let Done::Alarms { .. } = client.acknowledged(|| Command::Acknowledge { number: 0 }) else { panic!("all") };
    client.done(Command::Note { text: "pump\non".into() });
    let Done::Status(status) = client.done(Command::Status) else { panic!("a status") };
    assert_eq!((status.pid, status.rate_hz, status.held_by), (std::process::id(), Some(500.0), None));
    client.done(Command::Drain);
    let outcome = end(engine);
    crate::rig::assert_nothing_lost(&outcome);
    assert!(events(&home).iter().any(|event| event["event"] == "note" && event["text"] == "pumpon"));
}

#[test]
fn one_place_refuses_the_command_of_another_user_and_records_an_own_one() {
    let home = beside_another();
    let engine = start(&home);
    let actions = engine.snapshot().control.actions;
    let stranger = fs::metadata(home.file("run")).unwrap().uid() + 1;
    for command in [Command::Pause, Command::Stop, Command::Status] {
        let refused = engine.execute(command, &Actor::operator(stranger, 1, ""));
        assert!(matches!(refused, Err(Refused::User { found, .. }) if found == stranger), "{refused:?}");
    }
    let now = engine.snapshot();
    assert!(now.control.held.is_none() && now.control.actions == actions && now.engine.phase == Phase::Live);
    engine.execute(Command::Pause, &Actor::this_process("tea")).unwrap();
    let now = engine.snapshot().control;
    let last = now.last.unwrap().what;
    assert!(now.held.is_some() && now.actions == actions + 1, "{last}");
    assert!(last.starts_with("feed held by ") && last.ends_with(": tea"), "{last}");
    let refused = engine.execute(Command::Acknowledge { number: 77 }, &Actor::this_process(""));
    assert!(refused.is_err() && engine.snapshot().control.actions == actions + 1, "what is refused is no action");
    engine.request_drain();
    crate::rig::assert_nothing_lost(&end(engine));
}

#[test]
fn an_engine_that_drains_takes_no_command_that_it_would_not_execute() {
    let _home = beside_another();
    let two = Profile { silos: Silos::Count(2), ..profile() };
    let engine = Engine::start(config(&two, sampler(), None)).unwrap();
    engine.request_drain();
    until(&engine, "a drain", |now| now.engine.phase >= Phase::Drain);
    let silo = |command| Command::Silo { silo: 1, command };
    for command in [silo(SiloCommand::Kill), silo(SiloCommand::Drain), Command::Move { stream: 0, to: 1 }] {
        let refused = execute(&engine, command.clone()).map(drop).map_err(|refused| refused.to_string());
        assert!(refused.is_err_and(|said| said.contains("needs WARMUP or LIVE; wait for its end")), "{command}");
    }
    crate::rig::assert_nothing_lost(&end(engine));
}

#[test]
fn a_drain_is_acknowledged_by_every_thread() {
    // A machine that keeps one of them waiting longer than the reply waits is asked again, with another engine.
    let is_acknowledged = || {
        let home = beside_another();
        let engine = start(&home);
        let Done::End { acknowledged, .. } = Client::of(&engine).done(Command::Drain) else { panic!("a drain") };
        crate::rig::assert_nothing_lost(&end(engine));
        acknowledged
    };
    assert!((0..10).any(|_| is_acknowledged()));
}

#[test]
fn invalid_silent_or_surplus_clients_are_disconnected_and_the_engine_continues() {
    let home = beside_another();
    let engine = start(&home);
    let mut client = Client::of(&engine);
    for (line, part) in [
        ("nonsense", "one JSON object"),
        (r#"{"version":1,"ask":"pause"}"#, "version 1, expected a request of version 2"),
    ] {
        client.say(line);
        assert!(matches!(client.hear(), Outcome::Refused(said) if said.contains(part)), "{line}");
    }
    assert!(engine.snapshot().control.held.is_none());
    // Asks and asks, and reads nothing: its replies fill the socket, then it is gone.
    let mut deaf = Client::of(&engine);
    deaf.0.get_ref().set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    let line = serde_json::to_string(&Request::new(Command::InForce, "")).unwrap() + "\n";
    until(&engine, "the deaf client's end", |snapshot| {
        let _ = deaf.0.get_mut().write_all(line.as_bytes());
        snapshot.control.dropped > 0
    });
    let more: Vec<Client> = (0..7).map(|_| Client::of(&engine)).collect();
    until(&engine, "all of them", |snapshot| snapshot.control.clients == 8);
    assert!(matches!(Client::of(&engine).hear(), Outcome::Refused(said) if said.contains("are connected already")));
    drop(more);
    client.done(Command::Stop);
    let outcome = end(engine);
    assert_eq!(outcome.unanswered, []);
}

#[test]
fn a_model_that_is_a_fifo_is_refused_at_once_and_keeps_no_other_client_waiting() {
    let home = beside_another();
    let engine = start(&home);
    let fifo = home.file("fifo.dem");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut client = Client::of(&engine);
    let said = client.refused(Command::Model { file: Some(fifo.display().to_string()), stream: None });
    assert!(said.contains("cannot be read (a FIFO)"), "{said}");
    client.done(Command::Stop);
    end(engine);
}

#[test]
fn an_input_whose_requester_has_gone_is_withdrawn() {
    let home = beside_another();
    let config = Config { run_dir: Some(run_dir(&home)), takes_inputs: true, ..config(&profile(), sampler(), None) };
    let engine = Engine::start(config).unwrap();
    until(&engine, "Live", |now| now.engine.phase == Phase::Live);
    let mut client = Client::of(&engine);
    client.send(Command::Input(InputSpec { from: "sampler".into(), ..InputSpec::default() }));
    let mut wanted = None;
    until(&engine, "the request", |_| {
        wanted = wanted.take().or_else(|| engine.input_wanted());
        wanted.is_some()
    });
    drop(client);
    let now = until(&engine, "its end", |now| now.control.clients == 0);
    assert_eq!((now.control.requests, now.control.dropped), (0, 0), "nobody reads a reply");
    assert!(!wanted.unwrap().accept("sampler", "sampler"));
    Client::of(&engine).done(Command::Stop);
    end(engine);
}

#[test]
fn a_line_that_is_too_long_is_refused_in_a_sentence_and_its_client_disconnected() {
    let home = beside_another();
    let engine = start(&home);
    let mut client = Client::of(&engine);
    // The engine hangs up in the middle of it.
    let _ = client.0.get_mut().write_all(&vec![b'x'; LINE_BYTES_MAX + (1 << 20)]);
    let Outcome::Refused(said) = client.hear() else { panic!("not refused") };
    assert!(said.contains("more than 3145728 bytes") && said.ends_with("send less text in one request"), "{said}");
    assert!(!client.0.read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0), "nothing else comes");
    assert_eq!(engine.snapshot().control.dropped, 1);
    Client::of(&engine).done(Command::Stop);
    end(engine);
}
