//! A board's words as plain numbers: what a recording keeps, and what a reader of another process's board works on.
//!
//! Owns a copy, never the region. Created on cold threads. Bounds: the board's size, which must
//! match the header's shape to the byte. Never writes to the board that it copies.
//!
//! # Why a copy
//! Boards of ended, stopped and recorded processes are then read alike: [`Image::board`] makes a
//! private board of the copy, which every reader of boards accepts.

use super::layout::{self, Layout, MAGIC};
use super::region::Region;
use super::{Board, BoardError, OwnerState, Place, Shape, get, get_first, set};
use crate::clock::Clock;
use crate::files::{irregular, owner};
use crate::units::{TickRate, Ticks};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

/// Bytes of a word.
const WORD: usize = 8;

/// Why a file is not a board that this program can read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ImageError {
    #[error("board {}: {said}", path.display())]
    Refused { path: PathBuf, said: String },
    #[error("board {}: found {found}, expected {expected}; read it with the version of pinwheel that wrote it", path.display())]
    Foreign { path: PathBuf, found: String, expected: String },
}

impl Board {
    /// Every word of the region, in order.
    pub fn words(&self) -> &[AtomicU64] {
        self.region.section::<AtomicU64>(0, self.layout.bytes / WORD)
    }

    /// The place of one of this board's words in [`Board::words`].
    pub fn place_of(&self, word: &AtomicU64) -> usize {
        let first: *const AtomicU64 = self.words().as_ptr();
        (std::ptr::from_ref(word).addr() - first.addr()) / WORD
    }

    /// The place of the first word of one of this board's blocks.
    pub fn place_of_block<T>(&self, block: &T) -> usize {
        let first: *const AtomicU64 = self.words().as_ptr();
        (std::ptr::from_ref(block).addr() - first.addr()) / WORD
    }

    /// Time of the last activity: the newest heartbeat, or the newest clock pair.
    pub fn last_sign(&self) -> Ticks {
        let heartbeats = self.threads().iter().map(|thread| get(&thread.heartbeat));
        let others = [get(&self.clock().ticks), get(&self.header().start_ticks)];
        Ticks(heartbeats.chain(others).max().unwrap_or(0))
    }
}

/// A board's words at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    shape: Shape,
    words: Vec<u64>,
}

impl Image {
    /// All zero, for a board of `shape`.
    pub fn blank(shape: Shape) -> Image {
        Image { shape, words: vec![0; Layout::of(shape).bytes / WORD] }
    }

    /// A copy of `board`.
    pub fn of(board: &Board) -> Image {
        Image { shape: board.shape(), words: board.words().iter().map(get).collect() }
    }

    /// A copy of the board in a file, and whether its process is alive. Each word is read once: a
    /// record that the process writes meanwhile may be inconsistent; a
    /// [`Follow`](super::follow::Follow) reads records as a whole.
    ///
    /// # Errors
    /// [`ImageError`]: the file cannot be read, or is no board of this version.
    pub fn open(path: &Path) -> Result<(Image, OwnerState), ImageError> {
        let refused = |error: BoardError| ImageError::Refused { path: path.to_owned(), said: error.cause() };
        let foreign = |found: String, expected: String| ImageError::Foreign { path: path.to_owned(), found, expected };
        let (region, owner_state) = Region::open(path).map_err(refused)?;
        let words = region.section::<AtomicU64>(0, region.bytes() / WORD);
        let header = &region.section::<super::HeaderBlock>(0, 1)[0];
        let magic = get_first(&header.magic);
        if magic == 0 {
            let said = match owner_state {
                OwnerState::Alive => "its engine has not completed it yet; try again",
                OwnerState::Dead => "its engine ended before it was complete; there is nothing to read",
            };
            return Err(ImageError::Refused { path: path.to_owned(), said: said.to_owned() });
        }
        if magic != MAGIC {
            return Err(foreign(format!("first word {magic:#x}"), format!("{MAGIC:#x}")));
        }
        let (version, hash) = (get(&header.layout_version), get(&header.layout_hash));
        if (version, hash) != (layout::VERSION, layout::hash()) {
            let expected = format!("layout {} ({:#x})", layout::VERSION, layout::hash());
            return Err(foreign(format!("layout {version} ({hash:#x})"), expected));
        }
        let sizes = header.shape.each_ref().map(get);
        let shape = Shape::from_words(sizes).filter(|shape| Layout::of(*shape).bytes == region.bytes());
        let shape = shape.ok_or_else(|| {
            foreign(format!("{} bytes for sizes {sizes:?}", region.bytes()), "as many as the sizes make".to_owned())
        })?;
        Ok((Image { shape, words: words.iter().map(get).collect() }, owner_state))
    }

    /// Sizes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The process that its header names.
    pub fn pid(&self) -> u32 {
        let word = std::mem::offset_of!(super::HeaderBlock, pid) / WORD;
        self.words.get(word).map_or(0, |pid| *pid as u32)
    }

    /// The words, to be changed.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// A private board with these words. Its shape and layout words are this program's, whatever the image says.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn board(&self) -> Result<Board, BoardError> {
        let board = Board::create(self.shape, Place::Private)?;
        self.copy_to(&board);
        Ok(board)
    }

    /// Sets the words of `board`, which has this image's shape: many images in turn need one board only.
    ///
    /// # Panics
    /// If `board` has another shape.
    pub fn copy_to(&self, board: &Board) {
        assert_eq!(self.shape, board.shape(), "an image and a board of one shape");
        for (word, value) in board.words().iter().zip(&self.words) {
            set(word, *value);
        }
        for (word, value) in board.header().shape.iter().zip(self.shape.words()) {
            set(word, value);
        }
    }

    /// A clock that stands at `at`, with the start and rate that the image's header names; `None` if it names none.
    pub fn clock(&self, at: Ticks) -> Option<Clock> {
        let word = |place: usize| self.words.get(place).copied().unwrap_or(0);
        let start = std::mem::offset_of!(super::HeaderBlock, start_ticks) / WORD;
        let rate = std::mem::offset_of!(super::HeaderBlock, nanos_per_tick_q32) / WORD;
        Some(Clock::standing(at, Ticks(word(start)), TickRate::from_q32(word(rate))?))
    }

    /// The last moment of which the image has a sign of life: the newest heartbeat, or the newest pair of clocks.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn last_sign(&self) -> Result<Ticks, BoardError> {
        Ok(self.board()?.last_sign())
    }
}

/// A board file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFile {
    /// Where.
    pub path: PathBuf,
    /// Process number in its name.
    pub pid: u32,
    /// User number of its owner.
    pub owner: u32,
}

/// The board files in `directory`, newest first. Omits unreadable files and those that
/// [`strangers`] reports.
pub fn files(directory: &Path) -> Vec<BoardFile> {
    let mut found: Vec<_> = named(directory)
        .filter(|(_, _, metadata)| irregular(metadata).is_none())
        .filter_map(|(path, pid, metadata)| {
            Some((metadata.modified().ok()?, BoardFile { path, pid, owner: owner(&metadata) }))
        })
        .collect();
    found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.path.cmp(&other.1.path)));
    found.into_iter().map(|(_, file)| file).collect()
}

/// Entries of `directory` with a board's name that are not regular files, one sentence each. They
/// are never opened.
pub fn strangers(directory: &Path) -> Vec<String> {
    let mut said: Vec<String> = named(directory)
        .filter_map(|(path, _, metadata)| {
            let (kind, owner) = (irregular(&metadata)?, owner(&metadata));
            Some(format!(
                "{} is ignored: it is a {kind} of user {owner}, and a board is a regular file",
                path.display()
            ))
        })
        .collect();
    said.sort();
    said
}

/// Entries with a board's name: path, process number in the name, and metadata that follow no link.
fn named(directory: &Path) -> impl Iterator<Item = (PathBuf, u32, std::fs::Metadata)> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("board-")?;
        let pid = number.split('.').next()?.parse().ok()?;
        Some((entry.path(), pid, entry.metadata().ok()?))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Image, files, strangers};
    use crate::board::{Board, OwnerState, Place, Shape, set};
    use crate::units::Ticks;

    const SHAPE: Shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 2 };

    #[test]
    fn a_live_board_is_read_from_its_file_and_comes_back_word_for_word() {
        let folder = tempfile::tempdir().unwrap();
        let board = Board::create(SHAPE, Place::Shared(folder.path().into())).unwrap();
        board.header().profile.write("lab");
        set(&board.thread(1).heartbeat, 77);
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        let path = board.path().unwrap();
        assert!(Image::open(path).unwrap_err().to_string().contains("completed"));
        board.publish();
        let (image, owner_state) = Image::open(path).unwrap();
        assert_eq!((&image, owner_state), (&Image::of(&board), OwnerState::Alive));
        assert_eq!(Image::of(&image.board().unwrap()), image);
        assert_eq!(image.last_sign().unwrap(), Ticks(77));
        let snapshot = image.board().unwrap().snapshot(&image.clock(Ticks(100)).unwrap());
        assert_eq!((snapshot.engine.profile.as_str(), snapshot.at_ns), ("lab", 100));
        assert_eq!(board.place_of(&board.header().pid), 3);
        assert_eq!(files(folder.path())[0].path, path);
    }

    /// As a file of another program may be: sums of such counters are the largest number.
    #[test]
    fn a_board_whose_words_are_the_largest_numbers_is_read() {
        let shape = Shape { silos: 2, decoders: 2, ..SHAPE };
        let board = Board::create(shape, Place::Private).unwrap();
        let head = board.place_of_block(board.thread(0));
        let mut image = Image::of(&board);
        image.words_mut()[head..].fill(u64::MAX);
        let board = image.board().unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        let snapshot = board.snapshot(&Image::of(&board).clock(Ticks(100)).unwrap());
        assert_eq!(snapshot.totals().submitted, u64::MAX);
        let rates = crate::board::deadlines::wrong_or_late(&snapshot.streams).unwrap();
        assert!(rates.iter().all(|at| (at.shots, at.of) == (u64::MAX, u64::MAX)), "{rates:?}");
        let graph = &snapshot.silos[1].graph;
        assert_eq!(graph.workers[0].steals_failed, u64::MAX);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_named_like_a_board_and_is_no_regular_file_is_refused_at_once_and_said() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        mknodat(CWD, place("board-1"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::fs::create_dir(place("board-2")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", place("board-3")).unwrap();
        assert_eq!(files(folder.path()), []);
        let said = strangers(folder.path());
        for (at, kind) in ["FIFO", "directory", "symbolic link"].into_iter().enumerate() {
            let name = format!("board-{}", at + 1);
            assert!(said[at].contains(&name) && said[at].contains(&format!("is a {kind} of user")), "{said:?}");
            let refused = Image::open(&place(&name)).unwrap_err().to_string();
            assert!(refused.contains(&format!("it is a {kind}")), "{refused}");
        }
        // Boards are still made beside them, which looks at every board there.
        assert!(Board::create(SHAPE, Place::Shared(folder.path().into())).is_ok());
    }

    #[test]
    fn what_is_no_board_of_ours_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board-7");
        let mut bytes = vec![0; 8192];
        let said = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Image::open(&path).unwrap_err().to_string()
        };
        assert!(said(b"short").contains("measuring"));
        assert!(said(&bytes).ends_with("its engine ended before it was complete; there is nothing to read"));
        bytes[0] = 1;
        assert!(said(&bytes).contains("first word 0x1, expected 0x"));
        bytes[..8].copy_from_slice(b"PINWHEEL");
        let expected = format!("found layout 0 (0x0), expected layout {} (", super::layout::VERSION);
        assert!(said(&bytes).contains(&expected), "{}", said(&bytes));
        bytes[8..16].copy_from_slice(&super::layout::VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&super::layout::hash().to_le_bytes());
        for sizes in [[0u64; 6], [u64::MAX; 6]] {
            bytes[32..80].copy_from_slice(&sizes.map(u64::to_le_bytes).concat());
            assert!(said(&bytes).contains("as many as the sizes make"));
        }
        assert_eq!(files(folder.path())[0].pid, 7);
    }
}
