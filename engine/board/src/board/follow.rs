//! Another process's board, looked at again and again.
//!
//! Owns a mapping of it for reading only, and a private copy that is refreshed at each look. On the reader's thread. Bounds: the
//! board's size a look, [`TRIES`] for a record under a number. Never writes to the board that it follows.
//!
//! # Why a copy
//! Rust promises no more than relaxed loads on pages that cannot be written, and readers of a board also use others. A copy of
//! words by relaxed loads is a board like any other, whose words nobody changes while it is read.

use super::image::{Image, ImageError};
use super::region::Region;
use super::{AlarmRow, Board, BoardError, Life, get, set};
use crate::clock::Clock;
use crate::units::Ticks;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Copies of one record, until it was not written meanwhile.
const TRIES: u32 = 8;

/// A board of another process.
pub struct Follow {
    path: PathBuf,
    region: Region,
    copy: Board,
}

/// Why a board cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It is no board of this version.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// There is no memory for the copy.
    #[error(transparent)]
    Board(#[from] BoardError),
}

impl Follow {
    /// The board in the file at `path`.
    ///
    /// # Errors
    /// [`FollowError`]: it cannot be read, or is no board of this version.
    pub fn open(path: &Path) -> Result<Follow, FollowError> {
        let (image, _) = Image::open(path)?;
        let (region, _) = Region::open(path)?;
        let mut follow = Follow { path: path.to_owned(), region, copy: image.board()? };
        follow.refresh();
        Ok(follow)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its process lives, by the lock that the process holds.
    #[must_use]
    pub fn life(&self) -> Life {
        self.region.life()
    }

    /// The board as it was at the last [`Follow::refresh`].
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.copy
    }

    /// Copies the board anew. A record under a number that was being written each time stays as it was.
    pub fn refresh(&mut self) {
        let (from, to) = (self.words(), self.copy.words());
        let header = std::mem::offset_of!(super::HeaderBlock, started_utc_s) / size_of::<u64>();
        let records = self.records();
        let mut at = header;
        // What its shape and layout say was settled at the start: a writer that changes them is not followed there.
        for (first, length, ..) in &records {
            copy(&from[at..*first], &to[at..*first]);
            at = first + length;
        }
        copy(&from[at..], &to[at..]);
        for (first, length, begun, whole) in records {
            let (from, to) = (&from[first..first + length], &to[first..first + length]);
            let mut words = vec![0; length];
            for _ in 0..TRIES {
                let number = get(&from[whole]);
                // ORDERING: acquire side of the record's number, see `AlarmRow::publish`; a fence, for the pages can only
                // be read.
                fence(Ordering::Acquire);
                words.iter_mut().zip(from).for_each(|(word, from)| *word = get(from));
                // ORDERING: acquire side of its beginning: a word of the next version shows its number below.
                fence(Ordering::Acquire);
                if get(&from[begun]) == number {
                    (words[begun], words[whole]) = (number, number);
                    to.iter().zip(&words).for_each(|(to, word)| set(to, *word));
                    break;
                }
            }
        }
    }

    /// The newest sign of life on the copy.
    #[must_use]
    pub fn last_sign(&self) -> Ticks {
        self.copy.last_sign()
    }

    /// A clock that stands at `at` and counts as the board's engine does; `None`: it has not set its clock yet.
    #[must_use]
    pub fn clock(&self, at: Ticks) -> Option<Clock> {
        let header = self.copy.header();
        let rate = crate::units::TickRate::from_q32(get(&header.nanos_per_tick_q32))?;
        Some(Clock::standing(at, Ticks(get(&header.start_ticks)), rate))
    }

    fn words(&self) -> &[AtomicU64] {
        let words = self.copy.words().len();
        self.region.section::<AtomicU64>(0, words)
    }

    /// First word, length, and within it the words of the version begun and the version whole; ascending.
    fn records(&self) -> Vec<(usize, usize, usize, usize)> {
        let board = &self.copy;
        let record = |first: usize, length: usize, begun: &AtomicU64, whole: &AtomicU64| {
            (first, length, board.place_of(begun) - first, board.place_of(whole) - first)
        };
        let clock = board.clock();
        let length = size_of::<super::ClockBlock>() / size_of::<u64>();
        // The pair's words lie among others of the block, which have one writer too and may be copied with it.
        let first = board.place_of_block(clock);
        let mut records = vec![record(first, length, &clock.pairs_begun, &clock.pairs)];
        let length = size_of::<AlarmRow>() / size_of::<u64>();
        records.extend(
            board.alarms().iter().map(|row| record(board.place_of_block(row), length, &row.begun, &row.versions)),
        );
        records.sort_unstable();
        records
    }
}

fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    from.iter().zip(to).for_each(|(from, to)| set(to, get(from)));
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Follow;
    use crate::board::{Board, Life, Place, Shape, set};
    use crate::clock::Correlation;
    use crate::units::{Nanos, Ticks};

    const SHAPE: Shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 2 };

    #[test]
    fn a_board_is_followed_while_it_changes_and_its_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().into())).unwrap();
        board.publish();
        let mut follow = Follow::open(board.path().unwrap()).unwrap();
        assert_eq!((follow.life(), follow.board().header().profile.read().as_str()), (Life::Alive, ""));
        assert!(follow.clock(Ticks(0)).is_none(), "its clock is not set");
        board.header().profile.write("lab");
        set(&board.thread(1).frames, 77);
        set(&board.thread(1).heartbeat, 99);
        let pair = Correlation { ticks: Ticks(5), monotonic: Nanos(6), utc: Nanos(7), width: Ticks(8) };
        board.clock().publish(&pair);
        follow.refresh();
        let seen = follow.board();
        assert_eq!((seen.header().profile.read().as_str(), super::get(&seen.thread(1).frames)), ("lab", 77));
        assert_eq!((seen.clock().pair(), follow.last_sign()), (Some(pair), Ticks(99)));
        // A second look at its life takes nothing from the owner, and the owner's end is seen.
        assert_eq!(follow.life(), Life::Alive);
        drop(board);
        assert_eq!(follow.life(), Life::Dead);
        follow.refresh();
        assert_eq!(follow.board().header().profile.read(), "lab", "what was mapped stays");
    }

    #[test]
    fn a_record_that_is_being_written_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().into())).unwrap();
        board.publish();
        let pair = Correlation { ticks: Ticks(5), monotonic: Nanos(6), utc: Nanos(7), width: Ticks(8) };
        board.clock().publish(&pair);
        let mut follow = Follow::open(board.path().unwrap()).unwrap();
        set(&board.clock().pairs_begun, 2);
        set(&board.clock().utc_ns, 1_000);
        follow.refresh();
        assert_eq!(follow.board().clock().pair(), Some(pair));
    }
}
