//! A stalled thread's stack: copied by a signal handler on the thread, unwound and named on another
//! thread.
//!
//! Owns the signal, the one slot that its handler copies into, and the thread that turns addresses
//! into source lines. Bounds: one sample at a time, [`STACK_WORDS`] words, [`FRAMES_MAX`] frames.
//! The handler only copies registers and stack, because `backtrace` locks and allocates. The caller
//! discards a sample that comes after its stall.
//!
//! # Why a separate thread names the lines
//! Reading a program's line tables takes up to some hundred milliseconds. The verdict does not wait
//! for it; the line is added to the alarm later.

#[cfg(target_os = "linux")]
mod sample;
#[cfg(not(target_os = "linux"))]
#[path = "stack/no_sample.rs"]
mod sample;
mod unwind;

pub use sample::{Sampler, last_stack_word};
pub use unwind::{Maps, Symbols};

use std::sync::mpsc::{Receiver, Sender, channel};

/// Most words of stack that are copied: 32 KiB.
pub const STACK_WORDS: usize = 4096;
/// Most frames that are named.
pub const FRAMES_MAX: usize = 24;

/// Registers and stack of a thread at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Instruction pointer.
    pub pc: u64,
    /// Stack pointer: the address of the first word.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register, if there is one.
    pub lr: u64,
    /// The words of the stack.
    pub words: Vec<u64>,
}

/// A stack as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedStack {
    /// Innermost first, `function (file:line)`.
    pub frames: Vec<String>,
    /// The innermost frame of this program's own code, as `file:line`.
    pub culprit: Option<String>,
}

/// Turns samples into text on its own thread, which ends when this is dropped.
pub struct Symbolizer {
    samples: Sender<(u64, Sample)>,
    named: Receiver<(u64, NamedStack)>,
}

impl Symbolizer {
    /// Starts the thread; `None` if the system refuses one. The thread reads the program's tables
    /// at once, so that they are ready when needed.
    #[expect(clippy::disallowed_methods, reason = "cold: reads files")]
    pub fn start() -> Option<Symbolizer> {
        let (samples, taken) = channel::<(u64, Sample)>();
        let (done, named) = channel();
        let body = move || {
            let mut symbols: Option<Symbols> = None;
            while let Ok((ticket, sample)) = taken.recv() {
                let symbols = symbols.get_or_insert_with(Symbols::own);
                if done.send((ticket, symbols.name(&sample))).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("stacks".to_owned()).spawn(body).ok()?;
        Some(Symbolizer { samples, named })
    }

    /// Sends a sample under a number.
    pub fn give(&self, ticket: u64, sample: Sample) {
        // If its thread has ended, the alarm has no stack.
        let _ = self.samples.send((ticket, sample));
    }

    /// The next stack that was named, with its number.
    #[must_use]
    pub fn take(&self) -> Option<(u64, NamedStack)> {
        self.named.try_recv().ok()
    }
}
