//! How a run ends when something does not go on: a reader that stops, a device that never answers.

use crate::rig::{
    alone, assert_nothing_lost, beside_another, config, end, errors, profile, run, sampler, sink, total, until,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::engine::{EndedBy, Engine, Outcome};
use pinwheel_engine::profile::Profile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// The grace of these profiles, the engine's own limits for a last harvest, for threads and for the
/// sink to leave, and what a busy machine adds. A drain that heeds no limit never ends here, so
/// that there is room.
pub(crate) const GRACE_AND_LEAVING: Duration = Duration::from_secs(100);

/// A profile whose drain cannot end well: it does not wait for that long.
pub(crate) fn impatient() -> Profile {
    let mut profile = profile();
    profile.limits.drain_grace_s = 1;
    profile
}

/// A pipe with a name that is open at its reading end.
pub(crate) fn pipe(path: &Path) -> File {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Open for both, so that opening waits for nobody.
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Whether a pipe takes nothing more.
fn is_unwritable(pipe: &File) -> bool {
    let mut ends = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut ends, Some(&Timespec::default())).unwrap() == 0
}

/// How often the thread of that name in this process has gone to sleep, if it sleeps now and waits for no turn.
fn asleep(name: &str) -> Option<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let told = |path: &Path, file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_default();
    let task = tasks.into_iter().find(|task| told(task, "comm").trim() == name)?;
    let status = told(&task, "status");
    let line = |head: &str| status.lines().find_map(|line| line.strip_prefix(head)).map(str::trim);
    line("State:").filter(|state| state.starts_with('S')).and(line("voluntary_ctxt_switches:")).map(str::to_owned)
}

/// Answered or listed, nothing twice.
pub(crate) fn assert_accounted_for(outcome: &Outcome) {
    let (answered, submitted) = (total(&outcome.snapshot, |c| c.answered), total(&outcome.snapshot, |c| c.submitted));
    assert_eq!(answered + outcome.unanswered.len() as u64, submitted, "{:?}", outcome.snapshot.silos[0].counters);
    assert_eq!(total(&outcome.snapshot, |c| c.duplicated), 0);
    let mut listed = outcome.unanswered.clone();
    listed.dedup();
    assert_eq!(listed.len(), outcome.unanswered.len(), "a shot is listed twice");
}

/// Asks for a drain and waits; fails if it takes longer than the grace and the engine's own limits.
pub(crate) fn drained(engine: Engine) -> Outcome {
    let from = Instant::now();
    engine.request_drain();
    let outcome = end(engine);
    assert!(from.elapsed() < GRACE_AND_LEAVING, "{:?}", from.elapsed());
    outcome
}

#[test]
fn shutdown_under_back_pressure_ends_within_the_grace() {
    let home = alone();
    let profile = impatient();
    let path = home.file("answers");
    let reader = pipe(&path);
    let mut config = config(&profile, sampler(), None);
    config.sink = Some(sink(&profile, 1, None, Some(&path)));
    let engine = Engine::start(config).unwrap();
    // Nobody reads: pipe, sink, answer ring and slots fill, and then no answer is taken any more.
    let (mut before, mut since_ns) = (None, 0);
    let stuck = until(&engine, "back-pressure", |now| {
        let silo = &now.silos[0];
        let answers = silo.rings.iter().find(|ring| ring.name == "answers").unwrap();
        let is_full = answers.depth >= answers.capacity && silo.counters.slot_waits > 0;
        // Time alone does not tell a sink that had no turn from one that waits for the pipe's
        // reader. The latter sleeps in its call; for an empty ring it sleeps too, but a
        // millisecond, and then it waits for its turn.
        let at_rest = asleep("answers").filter(|_| is_full && is_unwritable(&reader));
        if at_rest.is_none() || at_rest != before {
            (before, since_ns) = (at_rest, now.at_ns);
        }
        before.is_some() && now.at_ns > since_ns + 100_000_000
    });
    assert!(total(&stuck, |c| c.answered) > 0);
    let outcome = drained(engine);
    assert_eq!(outcome.ended_by, EndedBy::Drained);
    assert_accounted_for(&outcome);
    assert!(!outcome.unanswered.is_empty() && outcome.unanswered.len() <= profile.slots as usize);
    let said = outcome.sink.unwrap().unwrap_err();
    assert!(said.contains("some answers are still unwritten"), "{said}");
    drop(reader);
}

fn never_ready() -> Profile {
    let mut profile = impatient();
    profile.workers = 4;
    profile.faults.never_ready = 1.0;
    profile
}

#[test]
fn a_device_that_never_answers_is_drained_with_error_words() {
    let _home = beside_another();
    let engine = Engine::start(config(&never_ready(), sampler(), None)).unwrap();
    until(&engine, "a full ring", |now| {
        let counters = &now.silos[0].counters;
        counters.launched == 4 && counters.slot_waits > 0
    });
    let outcome = drained(engine);
    assert_accounted_for(&outcome);
    // What was launched is answered with an error; what never left rx is listed.
    assert_eq!(errors(&outcome.snapshot, ErrorCode::Drained), 4);
    assert_eq!(outcome.unanswered.len(), 60);
    assert_eq!(outcome.snapshot.silos[0].counters.submitted, 64);
}

#[test]
fn a_device_that_never_answers_is_lost_and_the_cpu_answers() {
    let _home = beside_another();
    let mut profile = never_ready();
    profile.limits.launch_deadline_us = 1_000;
    profile.limits.drain_grace_s = 60;
    profile.faults.recover_after_ms = 5;
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    // A cold thread brings the device back: any number of shots may go by the CPU until it has its turn.
    until(&engine, "a device lost again after its return", |now| {
        let counters = &now.silos[0].counters;
        counters.device_losses > 1 && counters.cpu_fallbacks > 0 && counters.answered > 20_000
    });
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let counters = &outcome.snapshot.silos[0].counters;
    assert_eq!(counters.quarantined, errors(&outcome.snapshot, ErrorCode::LaunchDeadline));
    assert_eq!(counters.answered, counters.cpu_fallbacks + counters.quarantined);
}

#[test]
fn a_dropped_engine_ends_and_removes_its_board() {
    let home = beside_another();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let board = engine.snapshot().engine.board_path.unwrap();
    assert!(Path::new(&board).starts_with(home.boards()) && Path::new(&board).exists());
    drop(engine);
    assert!(!Path::new(&board).exists());
}

#[test]
fn count_duration_and_request_each_end_a_run_under_their_name() {
    let _home = beside_another();
    let profile = profile();
    let by_count = run(config(&profile, sampler(), Some(100)));
    assert_eq!((by_count.ended_by, total(&by_count.snapshot, |c| c.submitted)), (EndedBy::Count, 100));
    let mut timed = config(&profile, sampler(), None);
    timed.duration = Some(Duration::from_millis(30));
    let by_duration = run(timed);
    assert_eq!(by_duration.ended_by, EndedBy::Duration);
    assert!(by_duration.elapsed_live_ns >= 30_000_000);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    engine.request_drain();
    let by_request = end(engine);
    assert_eq!(by_request.ended_by, EndedBy::Drained);
    for outcome in [by_count, by_duration, by_request] {
        assert_nothing_lost(&outcome);
    }
}
