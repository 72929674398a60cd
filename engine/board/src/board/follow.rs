//! Repeated reading of another process's board.
//!
//! Owns a read-only mapping of the board, and a private copy that each refresh updates. On the
//! reader's thread. Bounds: the board's size for each refresh, the read attempts of a [`Seqlock`]
//! for a record with a sequence number. Never writes to the board that it follows.
//!
//! # Why a copy
//! On read-only pages Rust guarantees relaxed loads only, and readers of a board also use other
//! loads. A copy of words by relaxed loads is an ordinary board, whose words do not change while it
//! is read.

use super::image::{Image, ImageError};
use super::region::Region;
use super::{Board, BoardError, OwnerState, get, set};
use crate::clock::Clock;
use crate::units::Ticks;
use pinwheel_edge::seqlock::Seqlock;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

/// A board of another process.
pub struct Follow {
    path: PathBuf,
    region: Region,
    copy: Board,
    records: Vec<Record>,
}

/// Why a board cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The file is no board of this version.
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
    /// [`FollowError`]: the file cannot be read, or is no board of this version.
    pub fn open(path: &Path) -> Result<Follow, FollowError> {
        let (image, _) = Image::open(path)?;
        let (region, _) = Region::open(path)?;
        let copy = image.board()?;
        let records = Record::all(&copy);
        // The image's words were read one by one: a record counts as present once it was read as a
        // whole.
        for record in &records {
            record.begun.iter().chain([&record.written]).for_each(|word| set(&copy.words()[*word], 0));
        }
        let mut follow = Follow { path: path.to_owned(), region, copy, records };
        follow.refresh();
        Ok(follow)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its process is alive, by the lock that the process holds.
    pub fn owner_state(&self) -> OwnerState {
        self.region.owner_state()
    }

    /// The board as it was at the last [`Follow::refresh`].
    pub fn board(&self) -> &Board {
        &self.copy
    }

    /// Updates the copy. A record with a sequence number that changes during each attempt keeps its
    /// old copy.
    pub fn refresh(&mut self) {
        let (from, to) = (self.words(), self.copy.words());
        // The shape and layout are fixed at the start; later changes of these words are not copied.
        let mut at = std::mem::offset_of!(super::HeaderBlock, started_utc_s) / size_of::<u64>();
        for record in &self.records {
            copy(&from[at..record.words.start], &to[at..record.words.start]);
            at = record.words.end;
        }
        copy(&from[at..], &to[at..]);
        let mut words = Vec::new();
        for record in &self.records {
            let read = record.lock(from).read(|_| {
                words.clear();
                words.extend(from[record.words.clone()].iter().map(get));
            });
            if read.is_some() {
                to[record.words.clone()].iter().zip(&words).for_each(|(to, word)| set(to, *word));
            }
        }
    }

    /// The newest heartbeat or clock pair on the copy.
    pub fn last_sign(&self) -> Ticks {
        self.copy.last_sign()
    }

    /// A clock that shows `at` and counts as the board's engine does; `None`: the engine has not
    /// set its clock yet.
    pub fn clock(&self, at: Ticks) -> Option<Clock> {
        let header = self.copy.header();
        let rate = crate::units::TickRate::from_q32(get(&header.nanos_per_tick_q32))?;
        Some(Clock::standing(at, Ticks(get(&header.start_ticks)), rate))
    }

    fn words(&self) -> &[AtomicU64] {
        let words = self.copy.words().len();
        self.region.section::<AtomicU64>(0, words)
    }
}

/// A record with a sequence number, by the places of its words on the board.
struct Record {
    words: Range<usize>,
    /// `None`: `written` is 0 while it is written.
    begun: Option<usize>,
    written: usize,
}

impl Record {
    /// All of `board`, ascending.
    fn all(board: &Board) -> Vec<Record> {
        fn record<T>(board: &Board, block: &T, begun: Option<&AtomicU64>, written: &AtomicU64) -> Record {
            let first = board.place_of_block(block);
            let words = first..first + size_of::<T>() / size_of::<u64>();
            Record { words, begun: begun.map(|word| board.place_of(word)), written: board.place_of(written) }
        }
        let clock = board.clock();
        // The pair's words lie among other words of the block, which have one writer too and may be
        // copied with it.
        let mut records = vec![record(board, clock, Some(&clock.pairs_begun), &clock.pairs)];
        records.extend(board.alarms().iter().map(|row| record(board, row, Some(&row.begun), &row.versions)));
        let gaps = board.threads().iter().flat_map(|thread| &thread.gaps);
        records.extend(gaps.map(|row| record(board, row, Some(&row.begun), &row.number)));
        records.extend(board.placement().decisions.iter().map(|row| record(board, row, None, &row.number)));
        records.sort_unstable_by_key(|record| record.words.start);
        records
    }

    /// Its sequence lock over `words`, which are the board's or a copy's.
    fn lock<'a>(&self, words: &'a [AtomicU64]) -> Seqlock<'a> {
        let written = &words[self.written];
        self.begun.map_or_else(|| Seqlock::of_one_word(written), |begun| Seqlock::new(&words[begun], written))
    }
}

fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    from.iter().zip(to).for_each(|(from, to)| set(to, get(from)));
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Follow;
    use crate::board::{Board, OwnerState, Place, Shape, set};
    use crate::clock::Correlation;
    use crate::units::{Nanos, Ticks};

    const SHAPE: Shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 2 };

    #[test]
    fn a_board_is_followed_while_it_changes_and_its_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().into())).unwrap();
        board.publish();
        let mut follow = Follow::open(board.path().unwrap()).unwrap();
        assert_eq!((follow.owner_state(), follow.board().header().profile.read().as_str()), (OwnerState::Alive, ""));
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
        assert_eq!(follow.owner_state(), OwnerState::Alive);
        drop(board);
        assert_eq!(follow.owner_state(), OwnerState::Dead);
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

    #[test]
    fn gaps_and_decisions_that_are_being_written_stay_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().into())).unwrap();
        board.publish();
        let decision = |board: &Board| super::get(&board.placement().decisions[3].at);
        board.thread(1).note_gap(Ticks(5), Ticks(6), 0);
        board.placement().decisions[3].lock().write(3, || set(&board.placement().decisions[3].at, 30));
        let mut follow = Follow::open(board.path().unwrap()).unwrap();
        let gap = board.thread(1).gap(1);
        assert_eq!((follow.board().thread(1).gap(1), decision(follow.board())), (gap, 30));
        set(&board.thread(1).gaps[1].begun, 17);
        set(&board.thread(1).gaps[1].start, 1_000);
        board.placement().decisions[3].lock().write(19, || {
            set(&board.placement().decisions[3].at, 190);
            follow.refresh();
        });
        assert_eq!((follow.board().thread(1).gap(1), follow.board().thread(1).gap(17)), (gap, None));
        assert_eq!(decision(follow.board()), 30);
        follow.refresh();
        assert_eq!(decision(follow.board()), 190);
    }
}
