//! Reads a recording at any moment, also while it is written.
//!
//! Owns an open file or bytes, the positions of the key snapshots, and the last segment read. On
//! any cold thread. Keeps at most one segment (from one key snapshot to the next) and its successor
//! in memory, each up to [`SEGMENT_BYTES_MAX`]. Damage is not an error: complete frames are read.
//!
//! # Why time is not the counter
//! After a suspend, or on another host, the counter may be less than before: its ticks are not in
//! order, and one tick may be two moments. A recording is searched by its own time, which goes on
//! from the last snapshot before the jump: the counter, and all that it went back before. Times
//! within a snapshot, and those of fast samples, are the counter's.

use super::burst::{FastSet, Next, samples};
use super::frame::{self, FILE_HEAD_BYTES, FRAME_BYTES_MAX, FileHead, Head, Kind, NoFrame};
use super::source::Source;
use super::{FILE, delta, slots};
use crate::board::image::Image;
use crate::board::layout;
use crate::board::snapshot::Snapshot;
use crate::board::{Board, BoardError};
use crate::units::{Nanos, TickRate, Ticks};
use std::path::{Path, PathBuf};

/// Bytes read in one step of a search.
const WINDOW: usize = 1 << 20;
/// Most bytes of a segment that are read, and most that its frames are unpacked to: ten seconds of the largest board
/// take less. Another program may write a file of a few megabytes whose frames unpack to any number of them.
const SEGMENT_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// Bytes of an index entry: tick, offset, checksum.
pub(in crate::record) const ENTRY_BYTES: usize = 20;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TapeError {
    #[error("recording {}: cannot read it ({source}); name the directory of a run", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("recording {}: its first {FILE_HEAD_BYTES} bytes are not the head of a recording; the run ended \
        before its first snapshot, or this is another file", path.display())]
    Headless { path: PathBuf },
    #[error(
        "recording {}: found board layout {version} ({hash:#x}), expected {} ({:#x}); replay it with the version of \
         pinwheel named in its manifest.json",
        path.display(), layout::VERSION, frame::format_hash()
    )]
    Foreign { path: PathBuf, version: u64, hash: u64 },
    #[error(transparent)]
    Board(#[from] BoardError),
}

/// Position of a key snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    at: Ticks,
    offset: u64,
    /// By how much the counter went back before it, all jumps together.
    back: Ticks,
}

impl Key {
    fn time(self) -> Ticks {
        self.at.plus(self.back)
    }
}

/// The time of snapshots that are read one after the other.
#[derive(Clone, Copy, Debug)]
struct Timeline {
    /// Time of the last one.
    last: Ticks,
    /// By how much the counter went back up to then.
    back: Ticks,
}

impl Timeline {
    fn at(key: Key) -> Timeline {
        Timeline { last: key.time(), back: key.back }
    }

    /// The time of the next snapshot, which the counter gives as `at`: after a jump, a tick later than the last.
    fn next(&mut self, at: Ticks) -> Ticks {
        let time = at.plus(self.back);
        if time < self.last {
            self.back = self.back.plus(self.last.since(time)).plus(Ticks(1));
        }
        self.last = at.plus(self.back);
        self.last
    }
}

/// A recorded moment.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The newest tick of its words.
    pub at: Ticks,
    /// The words.
    pub image: Image,
    back: Ticks,
}

impl Moment {
    /// The moment `at` of a board that is not part of a recording.
    pub fn new(at: Ticks, image: Image) -> Moment {
        Moment { at, image, back: Ticks(0) }
    }

    /// When it was, by the recording's time.
    pub fn time(&self) -> Ticks {
        self.at.plus(self.back)
    }

    /// The snapshot that a reader of the board would have seen then.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, BoardError> {
        Ok(self.snapshot_on(&self.image.board()?))
    }

    /// As [`Moment::snapshot`], by way of a board of this shape, whose words it replaces.
    pub fn snapshot_on(&self, board: &Board) -> Option<Snapshot> {
        let clock = self.image.clock(self.at)?;
        self.image.copy_to(board);
        let mut snapshot = board.snapshot(&clock);
        snapshot.at_ns = clock.since_start(self.time()).0;
        Some(snapshot)
    }
}

/// One frame of a segment, unpacked.
#[derive(Debug)]
struct StoredFrame {
    head: Head,
    payload: Vec<u8>,
}

/// An open recording.
#[derive(Debug)]
pub struct Tape {
    path: PathBuf,
    source: Source,
    head: FileHead,
    fast: FastSet,
    slots_from: usize,
    keys: Vec<Key>,
    /// End of the complete frames found so far, and the time of their last snapshot.
    end: u64,
    timeline: Timeline,
    /// The frames of the last segment read, with the number of its key snapshot and its end at that
    /// time.
    segment: Option<(usize, u64, Vec<StoredFrame>)>,
}

impl Tape {
    /// Opens the recording in a run's directory.
    ///
    /// # Errors
    /// [`TapeError`], one sentence.
    pub fn open(run: &Path) -> Result<Tape, TapeError> {
        let path = if run.is_dir() { run.join(FILE) } else { run.to_owned() };
        let source = Source::open(run).map_err(|source| TapeError::Unreadable { path: path.clone(), source })?;
        let index = source.index(&path);
        Tape::of(path, source, &index)
    }

    /// Reads a recording in memory.
    ///
    /// # Errors
    /// As [`Tape::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Tape, TapeError> {
        Tape::of(PathBuf::from("in memory"), Source::Memory(bytes), &[])
    }

    fn of(path: PathBuf, mut source: Source, index: &[u8]) -> Result<Tape, TapeError> {
        let bytes =
            source.read(0, FILE_HEAD_BYTES).map_err(|source| TapeError::Unreadable { path: path.clone(), source })?;
        let head = FileHead::read(&bytes).ok_or_else(|| TapeError::Headless { path: path.clone() })?;
        if !head.is_readable() {
            return Err(TapeError::Foreign { path, version: head.version, hash: head.hash });
        }
        let board = Image::blank(head.shape).board()?;
        let (fast, slots_from) = (FastSet::of(&board), slots::range(&board).start);
        let end = FILE_HEAD_BYTES as u64;
        let timeline = Timeline { last: head.start, back: Ticks(0) };
        let mut tape = Tape { path, source, head, fast, slots_from, keys: Vec::new(), end, timeline, segment: None };
        tape.load_index(index);
        tape.refresh()?;
        Ok(tape)
    }

    /// Uses the index, as far as it agrees with the file.
    fn load_index(&mut self, index: &[u8]) {
        let length = self.source.length().unwrap_or(0);
        for entry in index.chunks_exact(ENTRY_BYTES) {
            let Some(key) = read_entry(entry) else { break };
            let in_order = self.keys.last().is_none_or(|last| last.offset < key.offset && last.at <= key.at);
            if !in_order || key.offset < self.end || key.offset >= length {
                break;
            }
            self.keys.push(key);
        }
        // The search continues at the last entry. If that is a key snapshot, the index belongs to
        // this file.
        let Some(last) = self.keys.pop() else { return };
        if self.frame_at(last.offset).is_some_and(|head| (head.kind, head.at) == (Kind::Key, last.at)) {
            self.end = last.offset;
            self.timeline.last = self.keys.last().map_or(self.timeline.last, |key| key.at);
        } else {
            self.keys.clear();
        }
    }

    fn frame_at(&mut self, offset: u64) -> Option<Head> {
        let bytes = self.source.read(offset, WINDOW).ok()?;
        match frame::find(&bytes) {
            Ok(found) => Some(found.head),
            Err(NoFrame::Short { wanted }) if wanted > bytes.len() => {
                frame::find(&self.source.read(offset, wanted).ok()?).ok().map(|found| found.head)
            }
            Err(_) => None,
        }
    }

    /// Reads the frames that were written since the last call.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn refresh(&mut self) -> Result<(), TapeError> {
        let mut search = self.end;
        let mut want = WINDOW;
        loop {
            let bytes = self.read(search, want)?;
            let mut at = 0;
            let stuck = loop {
                match frame::find(&bytes[at..]) {
                    Ok(found) => {
                        self.add_frame(found.head, search + at as u64);
                        at += found.bytes;
                        self.end = search + at as u64;
                    }
                    Err(NoFrame::Short { wanted }) if bytes.len() == want => break Some(wanted),
                    // Damage, or a length beyond the end of the file: continue at the next complete
                    // frame.
                    Err(_) => match frame::next_sync(&bytes[at..]) {
                        Some(next) => at += next,
                        None if bytes.len() == want => {
                            at = (bytes.len() - frame::SYNC.len() + 1).max(at + 1);
                            break Some(0);
                        }
                        None => break None,
                    },
                }
            };
            let Some(wanted) = stuck else { return Ok(()) };
            search += at as u64;
            want = WINDOW.max(wanted);
        }
    }

    fn add_frame(&mut self, head: Head, offset: u64) {
        if head.kind == Kind::Burst {
            return;
        }
        self.timeline.next(head.at);
        if head.kind == Kind::Key {
            self.keys.push(Key { at: head.at, offset, back: self.timeline.back });
        }
    }

    fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, TapeError> {
        let path = &self.path;
        self.source.read(offset, length).map_err(|source| TapeError::Unreadable { path: path.clone(), source })
    }

    /// Ticks per nanosecond.
    pub fn rate(&self) -> TickRate {
        self.head.rate
    }

    /// A board for [`Moment::snapshot_on`].
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn board(&self) -> Result<Board, BoardError> {
        Image::blank(self.head.shape).board()
    }

    /// The tick at the engine's start.
    pub fn start(&self) -> Ticks {
        self.head.start
    }

    /// Nanoseconds from the engine's start to this time.
    pub fn since_start(&self, at: Ticks) -> Nanos {
        self.head.rate.nanos(at.since(self.head.start))
    }

    /// The time so long after the engine's start.
    pub fn tick_at(&self, since_start: Nanos) -> Ticks {
        self.head.start.plus(self.head.rate.ticks(since_start))
    }

    /// The times of the first and the last snapshot; `None` without snapshots.
    pub fn span(&self) -> Option<(Ticks, Ticks)> {
        Some((self.keys.first()?.time(), self.timeline.last))
    }

    /// Writes a recording of the last `span`, beginning with the key snapshot before it.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn cut(&mut self, span: Nanos, out: &mut Vec<u8>) -> Result<(), TapeError> {
        out.extend(self.head.bytes());
        let from = Ticks(self.timeline.last.0.saturating_sub(self.head.rate.ticks(span).0));
        let first = self.keys.partition_point(|key| key.time() <= from).saturating_sub(1);
        for number in first..self.keys.len() {
            out.extend(self.segment_bytes(number)?);
        }
        Ok(())
    }

    /// The times of the key snapshots.
    pub fn keys(&self) -> Vec<Ticks> {
        self.keys.iter().map(|key| key.time()).collect()
    }

    /// Bytes of complete frames.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// The newest moment at or before the time `at`; the first one, if all are later; `None` if there is
    /// none.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn at(&mut self, at: Ticks) -> Result<Option<Moment>, TapeError> {
        let after = self.keys.partition_point(|key| key.time() <= at);
        let Some(number) = after.checked_sub(1).or((!self.keys.is_empty()).then_some(0)) else { return Ok(None) };
        let Some(number) = self.load(number)? else { return Ok(None) };
        let key = self.keys[number];
        let at = at.max(key.time());
        let mut timeline = Timeline::at(key);
        let mut moment = Moment { at: key.at, image: Image::blank(self.head.shape), back: key.back };
        let mut expected = None;
        let parts = self.segment.as_ref().map_or(&[][..], |(_, _, parts)| parts);
        for part in parts.iter().filter(|part| part.head.kind != Kind::Burst) {
            let follows = expected.is_none_or(|number| number == part.head.number);
            if timeline.next(part.head.at) > at {
                break;
            }
            // A frame is lost, or its content is not right although its checksum is: another program wrote it. Fast
            // samples would go with words that are older.
            if !follows || delta::apply(&mut moment.image, self.slots_from, part.head.at, &part.payload).is_none() {
                return Ok(Some(moment));
            }
            (moment.at, moment.back) = (part.head.at, timeline.back);
            expected = Some(part.head.number.wrapping_add(1));
        }
        self.apply_fast_samples(number, at.since(moment.back), &mut moment)?;
        Ok(Some(moment))
    }

    /// Applies fast samples up to `until`, by the counter. A burst may be stored behind the next key snapshot, because
    /// it is written when it is full or an alarm comes.
    fn apply_fast_samples(&mut self, number: usize, until: Ticks, moment: &mut Moment) -> Result<(), TapeError> {
        let later = parts_of(&self.segment_bytes(number + 1)?, |kind| kind == Kind::Burst);
        let mut newest: Option<(Ticks, Vec<u64>)> = None;
        let (from, fast) = (moment.at, &self.fast);
        let mut look = |parts: &[StoredFrame]| {
            for part in parts.iter().filter(|part| part.head.kind == Kind::Burst && part.head.at <= until) {
                let _ = samples(fast, part.head.at, &part.payload, |at, words| {
                    if at > until {
                        return Next::Stop;
                    }
                    if at >= from && newest.as_ref().is_none_or(|(best, _)| *best <= at) {
                        newest = Some((at, words.to_vec()));
                    }
                    Next::Go
                });
            }
        };
        look(self.segment.as_ref().map_or(&[][..], |(_, _, parts)| parts));
        look(&later);
        if let Some((at, words)) = newest {
            self.fast.apply_sample(&mut moment.image, &words);
            moment.at = at;
        }
        Ok(())
    }

    /// Reads segment `number`. If its key snapshot is damaged, reads the one before it: an index may name a
    /// key snapshot that a search does not find. Returns the number of the segment, `None` without any.
    fn load(&mut self, mut number: usize) -> Result<Option<usize>, TapeError> {
        while number < self.keys.len() {
            let end = self.segment_end(number);
            if self.segment.as_ref().is_some_and(|(have, until, _)| (*have, *until) == (number, end)) {
                return Ok(Some(number));
            }
            let parts = parts_of(&self.segment_bytes(number)?, |_| true);
            if parts.first().is_some_and(|part| part.head.kind == Kind::Key) {
                self.segment = Some((number, end, parts));
                return Ok(Some(number));
            }
            self.keys.remove(number);
            self.segment = None;
            number = number.saturating_sub(1);
        }
        Ok(None)
    }

    fn segment_end(&self, number: usize) -> u64 {
        self.keys.get(number + 1).map_or(self.end, |next| next.offset)
    }

    fn segment_bytes(&mut self, number: usize) -> Result<Vec<u8>, TapeError> {
        let Some(key) = self.keys.get(number).copied() else { return Ok(Vec::new()) };
        self.read(key.offset, segment_length(key.offset, self.segment_end(number)))
    }

    /// Calls `visit` with every snapshot from `from` to `to`, in order.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn play(&mut self, from: Ticks, to: Ticks, mut visit: impl FnMut(&Moment)) -> Result<(), TapeError> {
        let first = self.keys.partition_point(|key| key.time() <= from).saturating_sub(1);
        for number in first..self.keys.len() {
            let key = self.keys[number];
            if key.time() > to {
                break;
            }
            let bytes = self.segment_bytes(number)?;
            let mut timeline = Timeline::at(key);
            let mut moment = Moment { at: key.at, image: Image::blank(self.head.shape), back: key.back };
            let mut expected = None;
            let parts = parts_of(&bytes, |kind| kind != Kind::Burst);
            // The index names a key snapshot that is damaged: nothing can be made of what follows it.
            if parts.first().is_none_or(|part| part.head.kind != Kind::Key) {
                continue;
            }
            for part in parts {
                if expected.is_some_and(|number| number != part.head.number)
                    || delta::apply(&mut moment.image, self.slots_from, part.head.at, &part.payload).is_none()
                {
                    break;
                }
                (moment.at, expected) = (part.head.at, Some(part.head.number.wrapping_add(1)));
                let time = timeline.next(part.head.at);
                moment.back = timeline.back;
                if (from..=to).contains(&time) {
                    visit(&moment);
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with every `step`th key snapshot, in order. Unpacks no other frame.
    ///
    /// # Errors
    /// If the file can no longer be read.
    ///
    /// # Panics
    /// If `step` is 0.
    pub fn play_keys(&mut self, step: usize, mut visit: impl FnMut(&Moment)) -> Result<(), TapeError> {
        for number in (0..self.keys.len()).step_by(step) {
            let bytes = self.segment_bytes(number)?;
            let Some((head, payload)) =
                frame::find(&bytes).ok().and_then(|found| Some((found.head, found.unpack(&bytes)?)))
            else {
                continue;
            };
            let back = self.keys[number].back;
            let mut moment = Moment { at: head.at, image: Image::blank(self.head.shape), back };
            if delta::apply(&mut moment.image, self.slots_from, head.at, &payload).is_some() {
                visit(&moment);
            }
        }
        Ok(())
    }

    /// Calls `visit` with every fast sample from `from` to `to` by the counter, as a board in which
    /// only the fast words are set.
    ///
    /// # Errors
    /// If the file can no longer be read, or there is not enough memory.
    pub fn play_fast(&mut self, from: Ticks, to: Ticks, mut visit: impl FnMut(Ticks, &Board)) -> Result<(), TapeError> {
        let board = self.board()?;
        for number in 0..self.keys.len() {
            let bytes = self.segment_bytes(number)?;
            for part in parts_of(&bytes, |kind| kind == Kind::Burst) {
                let _ = samples(&self.fast, part.head.at, &part.payload, |at, words| {
                    if (from..=to).contains(&at) {
                        self.fast.show(&board, words);
                        visit(at, &board);
                    }
                    if at > to { Next::Stop } else { Next::Go }
                });
            }
        }
        Ok(())
    }
}

/// Bytes that are read of a segment between these offsets.
fn segment_length(from: u64, to: u64) -> usize {
    usize::try_from(to - from).map_or(SEGMENT_BYTES_MAX, |length| length.min(SEGMENT_BYTES_MAX))
}

/// The complete frames of a segment whose kind is `wanted`.
fn parts_of(segment: &[u8], wanted: impl Fn(Kind) -> bool) -> Vec<StoredFrame> {
    parts_within(segment, SEGMENT_BYTES_MAX, wanted)
}

/// The same, up to the first that makes them more than `bytes_max` together.
fn parts_within(bytes: &[u8], bytes_max: usize, wanted: impl Fn(Kind) -> bool) -> Vec<StoredFrame> {
    let (mut at, mut left, mut parts) = (0, bytes_max, Vec::new());
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match frame::find(rest) {
            Ok(found) => {
                if wanted(found.head.kind) {
                    let Some(more) = left.checked_sub(found.raw_bytes) else { break };
                    if let Some(payload) = found.unpack(rest) {
                        parts.push(StoredFrame { head: found.head, payload });
                        left = more;
                    }
                }
                at += found.bytes;
            }
            Err(_) => match frame::next_sync(rest) {
                Some(next) => at += next,
                None => break,
            },
        }
    }
    parts
}

/// An entry of the index.
pub(in crate::record) fn entry(at: Ticks, offset: u64) -> [u8; ENTRY_BYTES] {
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&at.0.to_le_bytes());
    entry[8..16].copy_from_slice(&offset.to_le_bytes());
    let checksum = crc32fast::hash(&entry[..16]);
    entry[16..].copy_from_slice(&checksum.to_le_bytes());
    entry
}

fn read_entry(entry: &[u8]) -> Option<Key> {
    let word = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
    let checksum = u32::from_le_bytes(entry.get(16..20)?.try_into().ok()?);
    (crc32fast::hash(&entry[..16]) == checksum).then_some(Key { at: Ticks(word(0)?), offset: word(8)?, back: Ticks(0) })
}

#[cfg(test)]
mod tests {
    use super::{Head, Kind, SEGMENT_BYTES_MAX, Ticks, frame, parts_within, segment_length};

    /// As another program makes them: a few hundred bytes in the file.
    #[test]
    fn frames_that_unpack_to_more_than_a_segment_are_left_out() {
        let frame = frame::pack(Head { number: 0, kind: Kind::Delta, at: Ticks(0) }, &[0; 10_000]);
        let bytes = frame.repeat(8);
        assert!(bytes.len() < 2_000);
        let unpacked = |most| parts_within(&bytes, most, |_| true).iter().map(|part| part.payload.len()).sum::<usize>();
        assert_eq!([9_999, 10_000, 35_000, 80_000].map(unpacked), [0, 10_000, 30_000, 80_000]);
    }

    /// Two key snapshots and a hole between them, which takes no room on the disk.
    #[test]
    fn a_part_is_read_of_a_segment_that_is_larger_than_any() {
        assert_eq!([segment_length(72, 1 << 40), segment_length(72, u64::MAX)], [SEGMENT_BYTES_MAX; 2]);
        assert_eq!(segment_length(72, 1_072), 1_000);
    }
}
