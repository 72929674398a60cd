//! Where frames go: the last minutes in memory, and a file for as long as the disk takes them.
//!
//! Owned by the recorder; readers hold a [`LookBack`]. Bounds: [`super::MEMORY_MAX`] and [`super::MEMORY_SPAN`] in memory. The file
//! is written a frame at a time, so that a reader of it is never behind, and locked for as long as its run lives.

use super::super::tape::{self, FileHead};
use super::{MEMORY_MAX, MEMORY_SPAN};
use crate::board::Board;
use crate::board::snapshot::RecorderState;
use crate::clock::Clock;
use crate::record::tape::{Tape, TapeError};
use crate::units::Ticks;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// A file that takes bytes.
pub(in crate::record) type Out = Box<dyn Write + Send>;

/// From a key picture to before the next.
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
            self.segments.push_back(Segment { at, bytes: Vec::new() });
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

/// The last minutes of a running recorder, for a reader on another cold thread.
#[derive(Clone, Debug)]
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
pub struct LookBack {
    memory: Arc<Mutex<Memory>>,
    file: Option<PathBuf>,
}

impl LookBack {
    /// A recording of what is in memory now.
    ///
    /// # Errors
    /// If there is no memory for a board.
    pub fn tape(&self) -> Result<Tape, TapeError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = memory.head.clone();
        bytes.reserve(memory.bytes);
        memory.segments.iter().for_each(|segment| bytes.extend_from_slice(&segment.bytes));
        drop(memory);
        Tape::from_bytes(bytes)
    }

    /// The recording on disk, if there is one: what lies further back than memory.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// What went wrong with the disk.
struct Trouble {
    said: String,
    published: bool,
    taken: bool,
}

/// Memory and disk.
#[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
pub(in crate::record) struct Store {
    memory: Arc<Mutex<Memory>>,
    path: Option<PathBuf>,
    out: Option<Out>,
    index: Option<Out>,
    bytes: u64,
    trouble: Option<Trouble>,
}

impl Store {
    /// Of a run's directory. A place that cannot be written is trouble, not a refusal.
    pub(super) fn open(board: &Board, clock: &Clock, run: Option<&Path>) -> Store {
        let mut store = Store::in_memory(board, clock);
        let Some(run) = run else { return store };
        let path = run.join(tape::FILE);
        match create(&path).and_then(|out| Ok((out, create(&run.join(tape::INDEX))?))) {
            Ok((out, index)) => store.onto(path, Box::new(out), Box::new(index)),
            Err(error) => store.give_up(&path, &error),
        }
        store
    }

    /// With no file.
    #[expect(clippy::disallowed_types, reason = "between the recorder and the console, both cold")]
    pub(in crate::record) fn in_memory(board: &Board, clock: &Clock) -> Store {
        let head = FileHead::new(board.shape(), clock.rate(), clock.start()).bytes();
        let span = clock.rate().ticks(MEMORY_SPAN);
        let memory = Memory { head, segments: VecDeque::new(), bytes: 0, span };
        let memory = Arc::new(Mutex::new(memory));
        Store { memory, path: None, out: None, index: None, bytes: 0, trouble: None }
    }

    /// Writes to `out` from now on.
    pub(in crate::record) fn onto(&mut self, path: PathBuf, out: Out, index: Out) {
        (self.out, self.index) = (Some(out), Some(index));
        let head = self.memory.lock().unwrap_or_else(PoisonError::into_inner).head.clone();
        self.path = Some(path);
        self.write(&head);
    }

    pub(super) fn look_back(&self) -> LookBack {
        LookBack { memory: Arc::clone(&self.memory), file: self.path.clone() }
    }

    /// Keeps a frame; `key`: it is a key picture of that tick.
    pub(super) fn put(&mut self, frame: &[u8], key: Option<Ticks>) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).put(frame, key);
        if let (Some(at), Some(index)) = (key, &mut self.index) {
            // Without an index the recording is searched: nothing is lost with it.
            let _ = index.write_all(&tape::entry(at, self.bytes));
        }
        self.write(frame);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(out) = &mut self.out else { return };
        match out.write_all(bytes) {
            Ok(()) => self.bytes += bytes.len() as u64,
            Err(error) => {
                let path = self.path.clone().unwrap_or_default();
                self.give_up(&path, &error);
            }
        }
    }

    fn give_up(&mut self, path: &Path, error: &io::Error) {
        (self.out, self.index) = (None, None);
        let said = format!(
            "recorder: found {} not writable ({error}), expected room for 2 MB a minute; free some or name another place with --logs DIR; the last ten minutes are kept in memory only",
            path.display()
        );
        self.trouble.get_or_insert(Trouble { said, published: false, taken: false });
    }

    pub(super) fn state(&self) -> RecorderState {
        if self.out.is_some() { RecorderState::Disk } else { RecorderState::Memory }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The trouble, to be published once.
    pub(super) fn news(&mut self) -> Option<String> {
        let trouble = self.trouble.as_mut().filter(|trouble| !trouble.published)?;
        trouble.published = true;
        Some(trouble.said.clone())
    }

    /// The trouble, to be said once.
    pub(super) fn take_trouble(&mut self) -> Option<String> {
        let trouble = self.trouble.as_mut().filter(|trouble| !trouble.taken)?;
        trouble.taken = true;
        Some(trouble.said.clone())
    }
}

fn create(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    // Held for life: retention takes no run whose recording is locked. A file system without locks has none to respect.
    let _ = file.try_lock();
    Ok(file)
}
