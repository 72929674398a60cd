//! Moves old boards of ended processes into the directories of their runs.
//!
//! Owns nothing; runs on a cold thread, when a new board is created. Bounds: one board at a time,
//! of its file's size. Never overwrites a file. Ignores boards of other users, whose words must not
//! decide where this process writes.

use super::OwnerState;
use super::image::Image;
use crate::files;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// A board's name in its run's directory.
pub const FILE: &str = "board";
/// What every run's directory holds.
const MANIFEST: &str = "manifest.json";

/// Copies the dead board at `path` into the directory of its run and returns its new path. `None`:
/// the board names no existing directory.
pub(super) fn keep(path: &Path) -> Option<PathBuf> {
    let is_ours = own(path)?;
    let (image, owner_state) = Image::open(path).ok()?;
    let run = PathBuf::from(image.board().ok()?.recorder().run_dir.read());
    if !is_ours || owner_state == OwnerState::Alive || !run.is_absolute() || !run.join(MANIFEST).is_file() {
        return None;
    }
    let kept = run.join(FILE);
    copy(path, &kept).ok().map(|()| kept)
}

/// Removes an incomplete copy, for instance when the disk becomes full.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = OpenOptions::new().write(true).create_new(true).open(to)?;
    let board = files::open_of(from, files::our_uid()).map_err(io::Error::from);
    let copied = board.and_then(|mut board| io::copy(&mut board, &mut copy)).map(drop);
    if copied.is_err() {
        let _ = std::fs::remove_file(to);
    }
    copied
}

#[cfg(unix)]
fn own(path: &Path) -> Option<bool> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::symlink_metadata(path).ok()?.uid() == rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn own(_path: &Path) -> Option<bool> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{FILE, MANIFEST, keep};
    use crate::board::image::Image;
    use crate::board::{Board, OwnerState, Place, Shape};
    use std::fs;

    const SHAPE: Shape = Shape { threads: 1, silos: 1, slots: 2, workers: 1, decoders: 1, streams: 1 };

    #[test]
    fn a_dead_board_is_copied_into_its_run_once_and_a_live_board_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().join("shm"))).unwrap();
        board.recorder().run_dir.write(&run.display().to_string());
        board.publish();
        let dead = folder.path().join("shm/board-1");
        fs::copy(board.path().unwrap(), &dead).unwrap();
        assert_eq!(keep(&dead), None, "that is no run's directory");
        fs::write(run.join(MANIFEST), "{}").unwrap();
        assert_eq!(keep(board.path().unwrap()), None, "it lives");
        assert_eq!(keep(&dead), Some(run.join(FILE)));
        assert_eq!(fs::read(run.join(FILE)).unwrap(), fs::read(&dead).unwrap());
        assert_eq!(Image::open(&run.join(FILE)).unwrap(), (Image::of(&board), OwnerState::Dead));
        assert_eq!(keep(&dead), None, "what is there stays");
    }

    #[test]
    fn all_dead_boards_beyond_the_kept_number_are_copied_into_their_runs() {
        let folder = tempfile::tempdir().unwrap();
        let shm = folder.path().join("shm");
        let board = Board::create(SHAPE, Place::Shared(shm.clone())).unwrap();
        let runs: Vec<_> = (0..6).map(|number| folder.path().join(format!("run{number}"))).collect();
        for (number, run) in runs.iter().enumerate() {
            fs::create_dir(run).unwrap();
            fs::write(run.join(MANIFEST), "{}").unwrap();
            board.recorder().run_dir.write(&run.display().to_string());
            board.publish();
            let dead = shm.join(format!("board-{number}.9"));
            fs::copy(board.path().unwrap(), &dead).unwrap();
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + number as u64);
            fs::File::options().write(true).open(&dead).unwrap().set_modified(at).unwrap();
        }
        drop(Board::create(SHAPE, Place::Shared(shm.clone())).unwrap());
        let moved: Vec<bool> = runs.iter().map(|run| run.join(FILE).is_file()).collect();
        assert_eq!(moved, [true, true, false, false, false, false]);
        assert!(!shm.join("board-0.9").exists() && shm.join("board-5.9").exists());
    }
}
