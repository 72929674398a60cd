//! Checks of memory that another process writes, for stores of any words anywhere: a board in a file, and the region of
//! a shared-memory input. Each panics if something does not hold.

use super::texts::{Bytes, is_said};
use pinwheel_edge::slot::outside::{EngineEnd, turn};
use pinwheel_engine::board::image::Image;
use pinwheel_engine::board::{Board, Place, Shape};
use pinwheel_engine::feed::assembly::{Assembly, Verdict, Width};
use pinwheel_engine::feed::packet::Encoding;
use pinwheel_engine::feed::shm::region::{Region, path_of};
use pinwheel_engine::feed::shm::{layout, part};
use pinwheel_engine::units::Ticks;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A directory, removed when it is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let directory = std::env::temp_dir().join(format!("pinwheel-fuzz-{process}-{thread:?}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        Directory(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A directory of this thread, removed at the thread's end.
pub(super) fn directory() -> PathBuf {
    thread_local! {
        static DIRECTORY: Directory = Directory::new();
    }
    DIRECTORY.with(|directory| directory.0.clone())
}

/// Reads the board in a file as an attached console does.
fn read_board(path: &Path) {
    match Image::open(path) {
        Ok((image, _)) => {
            if let (Ok(board), Some(clock)) = (image.board(), image.clock(Ticks(1 << 40))) {
                let _ = board.last_sign();
                let _ = board.snapshot(&clock);
            }
        }
        Err(said) => is_said(&said.to_string()),
    }
}

/// A board in a file, as another program may have left it.
pub fn any_board_file(bytes: &[u8]) {
    let path = directory().join("board-2");
    std::fs::write(&path, bytes).expect("there is room");
    read_board(&path);
    let _ = std::fs::remove_file(&path);
}

/// A file that holds a sound board.
struct BoardFile {
    file: File,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl BoardFile {
    fn new() -> BoardFile {
        let shape = Shape { threads: 1, silos: 1, slots: 4, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Shared(directory())).expect("there is room");
        board.publish();
        let bytes = std::fs::read(board.path().expect("it is shared")).expect("its own file");
        let path = directory().join("board-1");
        std::fs::write(&path, &bytes).expect("there is room");
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("its own file");
        BoardFile { file, path, bytes }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, at as u64).expect("there is room");
    }
}

/// A sound board, and stores of any words into it.
pub fn any_board(bytes: &[u8]) {
    thread_local! {
        static BOARD: BoardFile = BoardFile::new();
    }
    BOARD.with(|board| {
        let mut bytes = Bytes(bytes);
        let is_cut = bytes.byte() == 255;
        let mut stores = Vec::new();
        while !bytes.is_empty() && stores.len() < 64 {
            let at = bytes.below(board.bytes.len() / 8) * 8;
            board.write(at, &bytes.word().to_le_bytes());
            stores.push(at);
        }
        if is_cut {
            board.file.set_len(stores.first().map_or(0, |at| *at as u64)).expect("a length");
        }
        read_board(&board.path);
        if is_cut {
            board.write(0, &board.bytes);
        }
        stores.iter().for_each(|at| board.write(*at, &board.bytes[*at..at + 8]));
    });
}

const SLOTS: u32 = 8;
const STREAMS: u32 = 3;
const BITS: u32 = 70;
/// Soft bytes that a shot may have.
const SOFT_BYTES: u32 = 13;
/// Names of the two regions, one for each encoding.
const NAMES: [&str; 2] = ["bits", "int32"];

fn regions() -> [(Region, layout::Shape); 2] {
    std::array::from_fn(|number| {
        let encoding = [Encoding::Bits, Encoding::Int32][number];
        let shape = layout::Shape {
            slots: SLOTS,
            bits: BITS,
            encoding,
            streams: STREAMS,
            observables: 1,
            soft_bytes: SOFT_BYTES,
        };
        let _ = std::fs::remove_file(path_of(&directory(), NAMES[number]));
        (Region::create(&directory(), NAMES[number], None, &shape, 5).expect("there is room"), shape)
    })
}

/// The region of a shared-memory input, into which its client stores any words, while the engine takes shots and
/// answers them: the engine takes each slot once, and believes a shot only if its values and padding are sound.
pub fn any_region(bytes: &[u8]) {
    thread_local! {
        static REGIONS: [(Region, layout::Shape); 2] = regions();
    }
    REGIONS.with(|regions| {
        let mut bytes = Bytes(bytes);
        let which = bytes.below(2);
        let (region, shape) = &regions[which];
        let width = Width { bits: BITS, encoding: shape.encoding, soft_bytes: SOFT_BYTES };
        let (mut assembly, mut end) = (Assembly::new(STREAMS, width, Ticks(1_000)), EngineEnd::new(SLOTS as usize));
        let ring = region.outside(shape);
        end.grant(&ring, 1);
        let (mut taken, mut held, mut session) = (0u64, [false; SLOTS as usize], 1);
        let mut shot = vec![0; shape.shot_words() - 1];
        let words = shape.bytes() / 8;
        let mut stored = Vec::new();
        while !bytes.is_empty() {
            match bytes.byte() % 8 {
                0 | 1 => {
                    let at = bytes.below(words) * 8;
                    stored.push((at, region.word(at).load(Ordering::Relaxed)));
                    region.word(at).store(bytes.word(), Ordering::Relaxed);
                }
                // A client that keeps the rules as far as it goes: the shot, then its head.
                2 | 3 => {
                    let (at, stream) = (shape.shot_at(taken as u32 % SLOTS), bytes.word());
                    for word in 1..=bytes.below(shape.shot_words()) {
                        region.word(at + word * 8).store(bytes.word(), Ordering::Relaxed);
                    }
                    region.word(at).store(stream << 32 | u64::from(turn(taken)), Ordering::Relaxed);
                }
                4 | 5 => {
                    let Some((slot, named)) = end.take(&ring, &mut shot) else { continue };
                    let stream = named & !layout::SOFT;
                    assert_eq!(u64::from(slot), taken % u64::from(SLOTS));
                    assert!(!std::mem::replace(&mut held[slot as usize], true), "slot {slot} is held");
                    taken += 1;
                    let Some(part) = part(&shot, (stream, stream != named), session, shape) else { continue };
                    assert_eq!((part.bits, part.stream), (BITS, stream));
                    if stream < STREAMS && assembly.accept(&part, Ticks(taken)) == Verdict::Whole {
                        assert!(assembly.bits(stream)[1] >> (BITS - 64) == 0, "bits beyond the shot");
                    }
                }
                6 => {
                    let slot = bytes.byte();
                    let was_held = held.get_mut(usize::from(slot)).is_some_and(std::mem::take);
                    let record = vec![u64::MAX; shape.answer_words() - 1];
                    assert_eq!(end.answer(&ring, slot.into(), 0, &record), was_held);
                }
                _ => {
                    (session, taken, held) = (session + 1, 0, [false; SLOTS as usize]);
                    end.grant(&ring, session);
                }
            }
        }
        // A client of ours reads the header that is left.
        if stored.iter().any(|(at, _)| *at < layout::HEADER_BYTES) {
            match Region::open(&directory(), NAMES[which]) {
                Ok(Some((region, shape))) => {
                    assert!(shape.is_sound());
                    let last = shape.slots - 1;
                    let ends = [shape.shot_at(last), shape.answer_at(last)];
                    ends.iter().for_each(|at| _ = region.word(*at).load(Ordering::Relaxed));
                }
                Ok(None) => {}
                Err(said) => is_said(&said.to_string()),
            }
        }
        // The next input finds what this one found.
        stored.iter().rev().for_each(|(at, value)| region.word(*at).store(*value, Ordering::Relaxed));
        (shape.shots_at()..shape.bytes()).step_by(8).for_each(|at| region.word(at).store(0, Ordering::Relaxed));
    });
}
