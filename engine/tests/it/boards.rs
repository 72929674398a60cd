//! The board's life: there while the engine runs, gone after it, private where it must be, left by a killed process.
//! And where threads run.

use crate::rig::{
    LIMIT, assert_nothing_lost, beside_another, config, end, look_again, profile, run, sampler, total, until,
};
use pinwheel_engine::board::{self, Phase};
use pinwheel_engine::engine::{Config, Engine};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Set in a process that is to run an engine until it is killed.
const HELPER: &str = "PINWHEEL_TEST_HELPER";

/// The boards in `place`; claims of cores lie beside them, for ever.
pub(crate) fn boards(place: &Path) -> Vec<PathBuf> {
    let is_board = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("board-"));
    let paths = |entries: std::fs::ReadDir| entries.map(|entry| entry.unwrap().path()).filter(is_board).collect();
    std::fs::read_dir(place).map(paths).unwrap_or_default()
}

fn is_locked(board: &Path) -> bool {
    let file: File = OpenOptions::new().read(true).open(board).unwrap();
    match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => panic!("{error}"),
    }
}

#[test]
fn a_board_is_there_while_the_engine_runs_and_gone_after_it_twice_in_one_process() {
    let home = beside_another();
    for _ in 0..2 {
        let engine = Engine::start(config(&profile(), sampler(), Some(2_000))).unwrap();
        let [board] = &boards(&home.boards())[..] else { panic!("one board") };
        assert!(is_locked(board));
        let shown = engine.snapshot().engine;
        assert_eq!((shown.board_path.as_deref(), shown.pid), (board.to_str(), std::process::id()));
        let outcome = end(engine);
        assert_nothing_lost(&outcome);
        assert_eq!(outcome.snapshot.engine.phase, Phase::Shutdown);
        drop(outcome);
        assert_eq!(boards(&home.boards()), [] as [PathBuf; 0]);
    }
}

fn runs_with_a_private_board(place: &Path) {
    let outcome = run(Config { boards: place.to_owned(), ..config(&profile(), sampler(), Some(1_000)) });
    assert_nothing_lost(&outcome);
    let shown = &outcome.snapshot.engine;
    assert_eq!(shown.board_path, None);
    let note = shown.notes.iter().find(|note| note.contains("board not shared")).unwrap();
    assert!(note.contains(place.to_str().unwrap()), "{note}");
}

#[test]
fn an_engine_without_a_place_for_its_board_says_so_and_runs_with_a_private_one() {
    let home = beside_another();
    runs_with_a_private_board(&home.file("no/such/parent"));
    runs_with_a_private_board(Path::new("/proc/pinwheel"));
    let file = home.file("file");
    std::fs::write(&file, b"").unwrap();
    runs_with_a_private_board(&file);
}

#[test]
fn a_killed_process_leaves_its_board_with_a_free_lock() {
    if std::env::var_os(HELPER).is_some() {
        let (boards, _home) = (board::directory(), beside_another());
        let engine = Engine::start(Config { boards, ..config(&profile(), sampler(), None) }).unwrap();
        // Until it is killed; should nobody do it, the limit fails it.
        until(&engine, "the end of this process", |_| false);
        return;
    }
    let home = beside_another();
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "boards::a_killed_process_leaves_its_board_with_a_free_lock"])
        .env(HELPER, "1")
        .env("PINWHEEL_SHM", home.boards())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let from = Instant::now();
    let board = loop {
        if let Some(board) = boards(&home.boards()).pop().filter(|board| is_locked(board)) {
            break board;
        }
        assert!(from.elapsed() < LIMIT && helper.try_wait().unwrap().is_none(), "the helper's board never came");
        look_again();
    };
    helper.kill().unwrap();
    helper.wait().unwrap();
    assert!(board.exists() && !is_locked(&board));
    // The next engine is not disturbed by it, and keeps it for whoever looks.
    assert_nothing_lost(&run(config(&profile(), sampler(), Some(1_000))));
    assert!(board.exists());
}

#[test]
fn a_thread_reported_as_pinned_may_run_only_on_its_core() {
    let _home = beside_another();
    let engine = Engine::start(config(&profile(), sampler(), None)).unwrap();
    let now = until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    for thread in &now.threads {
        let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", thread.tid)).unwrap();
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_string()).unwrap()
        };
        assert_eq!(field("Name:"), thread.name);
        match thread.core {
            Some(core) if thread.pinned => assert_eq!(field("Cpus_allowed_list:"), core.to_string(), "{}", thread.name),
            Some(core) => {
                let said = |note: &String| note.contains(&format!("core {core}"));
                assert!(now.engine.notes.iter().any(said), "{:?}", now.engine.notes);
            }
            None => assert!(!thread.pinned, "{}", thread.name),
        }
    }
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
