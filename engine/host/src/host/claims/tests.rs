//! Claims between real processes: this test program, started again as a holder.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::{ClaimError, Claims, Conflict, claimed, conflict_messages, foreign_lock_messages, foreign_locks};

const DIRECTORY: &str = "PINWHEEL_TEST_CLAIMS";
const CORES: &str = "PINWHEEL_TEST_CORES";

/// What a holder process does: claims, says how it went, and stays until its input ends.
#[test]
#[ignore = "the other process of the tests below"]
fn holder_process() {
    let directory = std::env::var(DIRECTORY).unwrap();
    let cores: Vec<u32> = std::env::var(CORES).unwrap().split(',').map(|core| core.parse().unwrap()).collect();
    let claims = Claims::take(Path::new(&directory), &cores);
    let said = match &claims {
        Ok(_) => "held".to_owned(),
        Err(error) => format!("refused {error}"),
    };
    eprintln!("claims: {said}");
    let _ = std::io::stdin().read(&mut [0]);
}

struct Process {
    child: Child,
    said: String,
    _input: ChildStdin,
}

fn process(directory: &Path, cores: &str) -> Process {
    let mut child = start(directory, cores);
    let input = child.stdin.take().unwrap();
    let said = said(&mut child);
    Process { child, said, _input: input }
}

fn start(directory: &Path, cores: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "host::claims::tests::holder_process", "--ignored", "--nocapture"]);
    command.env(DIRECTORY, directory).env(CORES, cores);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn said(child: &mut Child) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.map(Result::unwrap).find_map(|line| line.strip_prefix("claims: ").map(str::to_owned)).unwrap()
}

fn conflict(directory: &Path, cores: &[u32]) -> Conflict {
    match Claims::take(directory, cores) {
        Err(ClaimError::Conflict(conflict)) => conflict,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_core_is_held_by_one_process_and_the_conflict_names_it() {
    let lock_directory = tempfile::tempdir().unwrap();
    let mut holder = process(lock_directory.path(), "3,5");
    assert_eq!(holder.said, "held");
    let found = conflict(lock_directory.path(), &[5, 6]);
    assert_eq!((found.core, found.holder.pid), (5, Some(holder.child.id())));
    assert_eq!(found.holder.user, crate::host::HostFacts::read().unwrap().user);
    assert!(found.holder.since.as_deref().unwrap().ends_with('Z'), "{found}");
    assert!(found.to_string().starts_with(&format!("core 5 is claimed by process {} of ", holder.child.id())));
    let rows: Vec<u32> = claimed(lock_directory.path()).iter().map(|row| row.core).collect();
    assert_eq!(rows, [3, 5]);
    assert_eq!(conflict_messages(&claimed(lock_directory.path())), [format!("core 3,5 left to {}", found.holder)]);
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
}

#[test]
fn a_killed_holder_holds_nothing_and_its_files_stay() {
    let lock_directory = tempfile::tempdir().unwrap();
    let mut holder = process(lock_directory.path(), "1");
    let inode = std::fs::metadata(lock_directory.path().join("cpu1.lock")).unwrap().ino();
    assert_eq!(conflict(lock_directory.path(), &[1]).core, 1);
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    assert_eq!(claimed(lock_directory.path()), []);
    let claims = Claims::take(lock_directory.path(), &[1]).unwrap();
    drop(claims);
    assert_eq!(std::fs::metadata(lock_directory.path().join("cpu1.lock")).unwrap().ino(), inode);
}

#[test]
fn a_refused_claim_holds_nothing_of_what_it_asked_for() {
    let lock_directory = tempfile::tempdir().unwrap();
    let _mine = Claims::take(lock_directory.path(), &[7]).unwrap();
    let mut refused = process(lock_directory.path(), "2,6,7");
    assert!(refused.said.starts_with("refused core 7 is claimed by process "), "{}", refused.said);
    assert_eq!(claimed(lock_directory.path()).iter().map(|row| row.core).collect::<Vec<_>>(), [7]);
    assert_eq!(Claims::take(lock_directory.path(), &[6, 2, 2]).unwrap().cores(), [2, 6]);
    refused.child.kill().unwrap();
    refused.child.wait().unwrap();
}

#[test]
fn of_many_that_compete_exactly_one_wins() {
    let lock_directory = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> = (0..4).map(|_| start(lock_directory.path(), "0,1")).collect();
    let inputs: Vec<ChildStdin> = children.iter_mut().map(|child| child.stdin.take().unwrap()).collect();
    let told: Vec<String> = children.iter_mut().map(said).collect();
    assert_eq!(told.iter().filter(|said| *said == "held").count(), 1, "{told:?}");
    drop(inputs);
    for child in &mut children {
        child.wait().unwrap();
    }
    assert_eq!(claimed(lock_directory.path()), []);
}

#[test]
fn the_directory_is_for_all_users_and_the_files_can_only_be_read() {
    let lock_directory = tempfile::tempdir().unwrap();
    let directory = lock_directory.path().join("shm");
    let _claims = Claims::take(&directory, &[0]).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&directory), mode(&directory.join("cpu0.lock"))), (0o1777, 0o444));
}

#[test]
fn links_and_other_things_of_the_right_name_are_refused() {
    let lock_directory = tempfile::tempdir().unwrap();
    let target = lock_directory.path().join("target");
    std::fs::write(&target, "").unwrap();
    symlink(&target, lock_directory.path().join("cpu0.lock")).unwrap();
    std::fs::create_dir(lock_directory.path().join("cpu1.lock")).unwrap();
    for core in [0, 1] {
        let error = Claims::take(lock_directory.path(), &[core]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("opening {}/cpu{core}.lock failed", lock_directory.path().display())),
            "{error}"
        );
    }
    let link = lock_directory.path().join("link");
    symlink(lock_directory.path(), &link).unwrap();
    let error = Claims::take(&link, &[2]).unwrap_err().to_string();
    assert!(error.contains("opening directory") && error.contains("PINWHEEL_SHM"), "{error}");
}

#[test]
fn a_file_that_was_replaced_is_not_the_one_that_is_held() {
    let lock_directory = tempfile::tempdir().unwrap();
    let first = Claims::take(lock_directory.path(), &[4]).unwrap();
    std::fs::remove_file(lock_directory.path().join("cpu4.lock")).unwrap();
    let second = Claims::take(lock_directory.path(), &[4]).unwrap();
    assert_eq!(conflict(lock_directory.path(), &[4]).core, 4);
    drop((first, second));
    assert!(Claims::take(lock_directory.path(), &[4]).is_ok());
}

#[test]
fn the_holder_of_a_claim_is_shown_with_profile_and_start() {
    use crate::board::{self, Board, Place, Shape};
    let lock_directory = tempfile::tempdir().unwrap();
    let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Shared(lock_directory.path().into())).unwrap();
    board.header().profile.write("prod");
    board::set(&board.header().started_utc_s, 1_700_000_000);
    board.publish();
    let _claims = Claims::take(lock_directory.path(), &[9]).unwrap();
    let holder = conflict(lock_directory.path(), &[9]).holder;
    assert_eq!((holder.pid, holder.profile.as_deref()), (Some(std::process::id()), Some("prod")));
    assert_eq!(holder.since.as_deref(), Some("2023-11-14T22:13:20Z"));
}

/// What another user's plain `flock` is: a lock without an engine. Says so, and stays until its
/// input ends.
#[test]
#[ignore = "the other process of the test below"]
fn plain_lock_process() {
    let file = std::fs::File::open(std::env::var(DIRECTORY).unwrap()).unwrap();
    file.lock().unwrap();
    eprintln!("claims: locked");
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_plain_lock_without_an_engine_behind_it_claims_nothing_and_its_holder_is_named() {
    let lock_directory = tempfile::tempdir().unwrap();
    drop(Claims::take(lock_directory.path(), &[1, 2]).unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "host::claims::tests::plain_lock_process", "--ignored", "--nocapture"]);
    command.env(DIRECTORY, lock_directory.path().join("cpu1.lock"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(said(&mut child), "locked");
    assert_eq!(claimed(lock_directory.path()), []);
    let told = foreign_lock_messages(&foreign_locks(lock_directory.path()));
    assert!(told[0].starts_with(&format!("core 1: process {} ", child.id())) && told.len() == 1, "{told:?}");
    let claims = Claims::take(lock_directory.path(), &[1, 2]).unwrap();
    assert_eq!(claims.cores(), [1, 2]);
    // Another engine is still kept out, also when the plain lock has gone.
    assert_eq!(conflict(lock_directory.path(), &[1]).core, 1);
    assert_eq!(claimed(lock_directory.path()).iter().map(|row| row.core).collect::<Vec<_>>(), [1, 2]);
    child.kill().unwrap();
    child.wait().unwrap();
    let found = conflict(lock_directory.path(), &[1]);
    assert_eq!((found.core, found.holder.pid), (1, Some(std::process::id())));
    drop(claims);
    // A process that another test of this program has just started has copies of the locks until it
    // runs its own program.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !(Claims::take(lock_directory.path(), &[1, 2]).is_ok() && foreign_locks(lock_directory.path()).is_empty()) {
        assert!(std::time::Instant::now() < end, "a lock stayed");
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_engines_marker_is_removed_by_the_next_claim() {
    let lock_directory = tempfile::tempdir().unwrap();
    let mut holder = process(lock_directory.path(), "1");
    let marker = lock_directory.path().join(format!("claim-{}", holder.child.id()));
    assert!(marker.exists());
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    drop(Claims::take(lock_directory.path(), &[2]).unwrap());
    let left = std::fs::read_dir(lock_directory.path()).unwrap().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().contains("claim")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Whoever looks at the claims takes a shared lock for a moment: the console in an engine's
/// process, too.
#[test]
fn a_shared_lock_of_a_process_with_a_board_claims_nothing() {
    use crate::board::{Board, Place, Shape};
    let lock_directory = tempfile::tempdir().unwrap();
    drop(Claims::take(lock_directory.path(), &[4]).unwrap());
    let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
    let board = Board::create(shape, Place::Shared(lock_directory.path().into())).unwrap();
    board.publish();
    let file = std::fs::File::open(lock_directory.path().join("cpu4.lock")).unwrap();
    file.lock_shared().unwrap();
    assert_eq!(claimed(lock_directory.path()), []);
    assert_eq!(foreign_locks(lock_directory.path()).len(), 1, "as long as it lasts it is told");
    assert_eq!(Claims::take(lock_directory.path(), &[4]).unwrap().cores(), [4]);
}
