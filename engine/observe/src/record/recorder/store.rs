//! Stores frames: the last minutes in memory, and all of them in a file as long as the disk accepts
//! them.
//!
//! Owned by the recorder; readers hold a [`RecentRecording`]. Memory is bounded by
//! [`super::MEMORY_MAX`] and [`super::MEMORY_SPAN`]. The file is written frame by frame, so that
//! readers are never behind, and stays locked until the run ends, also after an error of the disk.

use super::super::tape::{self, FileHead};
use super::{MEMORY_MAX, MEMORY_SPAN};
use crate::board::Board;
use crate::clock::Clock;
use crate::record::tape::{Tape, TapeError};
use crate::roles::RecorderState;
use crate::units::Ticks;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// An output for bytes.
pub(in crate::record) type Out = Box<dyn Write + Send>;

/// The frames from one key snapshot to the next.
#[derive(Debug)]
struct Segment {
    at: Ticks,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Memory {
    head: Vec<u8>,
    segments: VecDeque<Segment>,
    bytes: usize,
    span: Ticks,
}

impl Memory {
    fn put(&mut self, frame: &[u8], key: Option<Ticks>) {
        if let Some(at) = key {
            // One allocation a segment, about as long as the one before: bytes that grow frame by
            // frame take twice their length of the process's memory.
            let before = self.segments.back_mut().map_or(0, |last| {
                last.bytes.shrink_to_fit();
                last.bytes.len()
            });
            self.segments.push_back(Segment { at, bytes: Vec::with_capacity(before + before / 8) });
            while self.segments.len() > 1
                && (self.bytes > MEMORY_MAX || self.segments.get(1).is_some_and(|next| at.since(next.at) > self.span))
            {
                let gone = self.segments.pop_front().map_or(0, |segment| segment.bytes.len());
                self.bytes -= gone;
            }
        }
        if let Some(last) = self.segments.back_mut() {
            last.bytes.extend_from_slice(frame);
            self.bytes += frame.len();
        }
    }
}

/// The last minutes of a running recorder, readable from another cold thread.
#[derive(Clone, Debug)]
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
pub struct RecentRecording {
    memory: Arc<Mutex<Memory>>,
    file: Option<PathBuf>,
}

impl RecentRecording {
    /// The frames that are in memory now, as a recording.
    ///
    /// # Errors
    /// If there is not enough memory for a board.
    pub fn tape(&self) -> Result<Tape, TapeError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = memory.head.clone();
        bytes.reserve(memory.bytes);
        memory.segments.iter().for_each(|segment| bytes.extend_from_slice(&segment.bytes));
        drop(memory);
        Tape::from_bytes(bytes)
    }

    /// The recording on disk, if there is one; it reaches further back than memory.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

struct DiskError {
    said: String,
    published: bool,
    taken: bool,
}

/// Frames in memory and on disk.
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
pub(in crate::record) struct Store {
    memory: Arc<Mutex<Memory>>,
    path: Option<PathBuf>,
    out: Option<Out>,
    index: Option<Out>,
    /// The recording's file, kept open for its lock: retention removes no run with a locked
    /// recording.
    lock: Option<File>,
    bytes: u64,
    error: Option<DiskError>,
}

impl Store {
    /// Stores into a run's directory. If that cannot be written, stores into memory only.
    pub(super) fn open(board: &Board, clock: &Clock, run: Option<&Path>) -> Store {
        let mut store = Store::in_memory(board, clock);
        let Some(run) = run else { return store };
        let path = run.join(tape::FILE);
        if let Err(error) = store.create_files(run, &path) {
            store.stop_writing(&path, &error);
        }
        store
    }

    fn create_files(&mut self, run: &Path, path: &Path) -> io::Result<()> {
        let out = File::create_new(path)?;
        // Not every file system has locks.
        let _ = out.try_lock();
        // A duplicate has the same lock, which ends when both are closed.
        self.lock = Some(out.try_clone()?);
        let index = File::create_new(run.join(tape::INDEX))?;
        self.write_to(path.to_owned(), Box::new(out), Box::new(index));
        Ok(())
    }

    /// Stores into memory only.
    #[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
    pub(in crate::record) fn in_memory(board: &Board, clock: &Clock) -> Store {
        let head = FileHead::new(board.shape(), clock.rate(), clock.start()).bytes();
        let span = clock.rate().ticks(MEMORY_SPAN);
        let memory = Memory { head, segments: VecDeque::new(), bytes: 0, span };
        let memory = Arc::new(Mutex::new(memory));
        Store { memory, path: None, out: None, index: None, lock: None, bytes: 0, error: None }
    }

    /// Writes to `out` from now on.
    pub(in crate::record) fn write_to(&mut self, path: PathBuf, out: Out, index: Out) {
        (self.out, self.index) = (Some(out), Some(index));
        let head = self.memory.lock().unwrap_or_else(PoisonError::into_inner).head.clone();
        self.path = Some(path);
        self.write(&head);
    }

    pub(super) fn recent_recording(&self) -> RecentRecording {
        RecentRecording { memory: Arc::clone(&self.memory), file: self.path.clone() }
    }

    /// Stores a frame; `key` is the tick of a key snapshot.
    pub(super) fn put(&mut self, frame: &[u8], key: Option<Ticks>) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).put(frame, key);
        if let (Some(at), Some(index)) = (key, &mut self.index) {
            // Without the index readers search the recording; nothing is lost.
            let _ = index.write_all(&tape::entry(at, self.bytes));
        }
        self.write(frame);
    }

    /// Ends the index. Its ticks would be out of order: the counter went back. Readers search the rest.
    pub(super) fn end_index(&mut self) {
        self.index = None;
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(out) = &mut self.out else { return };
        match out.write_all(bytes) {
            Ok(()) => self.bytes += bytes.len() as u64,
            Err(error) => {
                let path = self.path.clone().unwrap_or_default();
                self.stop_writing(&path, &error);
            }
        }
    }

    fn stop_writing(&mut self, path: &Path, error: &io::Error) {
        (self.out, self.index) = (None, None);
        let said = format!(
            "recorder: cannot write {} ({error}); free some space (1 MB a minute) or name another directory \
            with --logs DIR; only the last ten minutes are kept, in memory",
            path.display()
        );
        self.error.get_or_insert(DiskError { said, published: false, taken: false });
    }

    pub(super) fn state(&self) -> RecorderState {
        if self.out.is_some() { RecorderState::Disk } else { RecorderState::Memory }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The error, to publish on the board; returned once.
    pub(super) fn take_unpublished_error(&mut self) -> Option<String> {
        let error = self.error.as_mut().filter(|error| !error.published)?;
        error.published = true;
        Some(error.said.clone())
    }

    /// The error, to report; returned once.
    pub(super) fn take_error(&mut self) -> Option<String> {
        let error = self.error.as_mut().filter(|error| !error.taken)?;
        error.taken = true;
        Some(error.said.clone())
    }
}
