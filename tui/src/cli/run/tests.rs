#![allow(clippy::unwrap_used, reason = "harness")]
use super::{POLLS_PER_LINE, RunArgs, RunRequest, WatchedRun, error_name, require_silos, run, watch};
use crate::cli::places::UserPaths;
use crate::source::Reply;
use crate::tests::sound::sound;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::host::{CoreFacts, HostFacts};
use pinwheel_engine::profile::{OnHangup, Profile, Silos};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// An engine that ends after a number of polls, or two polls after a drain was requested.
struct Scripted {
    looks_left: Cell<u32>,
    drains: Cell<u32>,
    looked: Cell<u64>,
    replies: Vec<Reply>,
}

impl WatchedRun for Scripted {
    fn snapshot(&self) -> Option<Snapshot> {
        let mut snapshot = sound().snapshot;
        snapshot.at_ns += self.looked.get();
        self.looked.set(self.looked.get() + 1);
        Some(snapshot)
    }

    fn on_hangup(&self) -> OnHangup {
        OnHangup::Detach
    }

    fn request_drain(&mut self) {
        self.drains.set(self.drains.get() + 1);
        self.looks_left.set(2);
    }

    fn step(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.replies)
    }

    fn is_finished(&self) -> bool {
        let left = self.looks_left.get();
        self.looks_left.set(left.saturating_sub(1));
        left == 0
    }
}

fn scripted(looks: u32) -> Scripted {
    Scripted { looks_left: Cell::new(looks), drains: Cell::new(0), looked: Cell::new(0), replies: Vec::new() }
}

fn watched(looks: u32, signal: Option<i32>) -> (Option<i32>, u32, usize) {
    let mut engine = scripted(looks);
    let mut lines = Vec::new();
    let found = watch(&mut engine, &|_| signal, &mut |line| lines.push(line.to_owned()), &mut || ());
    (found, engine.drains.get(), lines.len())
}

#[test]
fn a_progress_line_is_printed_every_second() {
    assert_eq!(watched(0, None), (None, 0, 0));
    assert_eq!(watched(POLLS_PER_LINE, None), (None, 0, 0));
    assert_eq!(watched(3 * POLLS_PER_LINE + 1, None), (None, 0, 3));
}

#[test]
fn the_result_of_an_input_change_is_printed() {
    let mut engine = scripted(2);
    engine.replies = vec![Reply::Done("shots come from b".to_owned())];
    let mut lines = Vec::new();
    watch(&mut engine, &|_| None, &mut |line| lines.push(line.to_owned()), &mut || ());
    assert_eq!(lines, ["pinwheel: shots come from b"]);
}

#[test]
fn a_signal_requests_one_drain() {
    assert_eq!(watched(u32::MAX, Some(15)), (Some(15), 1, 1));
}

#[test]
fn a_signal_counts_where_its_drain_has_ended_before_the_first_poll() {
    assert_eq!(watched(0, Some(15)), (Some(15), 0, 0));
}

#[test]
fn a_refused_run_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(dir.path().join(name));
    fs::write(dir.path().join("m.dem"), "error(0.1) D0 D1 L0\n").unwrap();
    fs::write(dir.path().join("s"), [3, 2]).unwrap();
    fs::write(dir.path().join("wide"), [3, 0xff]).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let good = RunArgs {
        dem: path("m.dem"),
        shots: path("s"),
        predictions: path("p"),
        logs: path("new/logs"),
        headless: true,
        ..RunArgs::default()
    };
    for bad in [
        RunArgs { shots: path("wide"), ..good.clone() },
        RunArgs { shots: path("missing"), ..good.clone() },
        RunArgs { dem: path("missing"), ..good.clone() },
        RunArgs { predictions: path("no/such/p"), ..good.clone() },
        RunArgs { answers: path("no/such/a"), ..good.clone() },
        RunArgs { logs: path("file"), ..good.clone() },
        RunArgs { profile: Some("no-such".to_owned()), ..good },
    ] {
        let said = run(&bad, &UserPaths::default()).unwrap_err().to_string();
        assert!(said.contains("; ") && !said.contains('\n'), "{said}");
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["file", "m.dem", "s", "wide"], "{said}");
    }
}

#[test]
fn codes_have_names() {
    assert_eq!((error_name(5), error_name(999)), ("launch_deadline", "unknown"));
}

#[test]
fn moves_and_deaths_are_refused_where_auto_is_one_silo() {
    // Core numbers far above those of the test machine.
    let host = |nodes: u32| {
        let mut host = HostFacts::read_at(Path::new("/no/such"), &[]);
        host.cores =
            (0..8 * nodes).map(|core| CoreFacts { core: 900 + core, node: core / 8, siblings: Vec::new() }).collect();
        host
    };
    let (profile, _) = Profile::load("lab", None).unwrap();
    let each = Some(Duration::from_millis(1));
    let of = |args: &RunArgs, nodes: u32| {
        let request = RunRequest::resolve(args, "lab".to_owned(), profile.clone(), true).unwrap();
        require_silos(&request, &host(nodes)).map_err(|refusal| refusal.to_string())
    };
    let moves = RunArgs { move_every: each, ..RunArgs::default() };
    let said = of(&moves, 1).unwrap_err();
    assert!(said.contains("--move-every") && said.contains("one NUMA node") && said.contains("--silos 2"), "{said}");
    assert!(of(&RunArgs { kill_every: each, ..RunArgs::default() }, 1).unwrap_err().contains("--kill-every"));
    assert_eq!(of(&moves, 2), Ok(()));
    assert_eq!(of(&RunArgs { silos: Some(Silos::Count(2)), ..moves }, 1), Ok(()));
    assert_eq!(of(&RunArgs::default(), 1), Ok(()));
}
