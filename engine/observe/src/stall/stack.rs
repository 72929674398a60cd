//! A stalled thread's stack: copied where it stands, unwound and named elsewhere.
//!
//! Owns the signal, the one slot that its handler copies into, and the thread that turns addresses into lines. Bounds:
//! one sample at a time, [`STACK_WORDS`] words of stack, [`FRAMES_MAX`] frames. The handler copies registers and stack and does
//! nothing else: `backtrace` in a handler locks and allocates. A sample that comes after its stall is thrown away by who
//! asked for it.
//!
//! # Why a thread of its own names the lines
//! Reading a program's line tables takes from some to some hundred milliseconds. The verdict does not wait for it: the line
//! comes into the alarm when it is there.

#[cfg(target_os = "linux")]
mod sample;
#[cfg(not(target_os = "linux"))]
#[path = "stack/no_sample.rs"]
mod sample;
mod unwind;

pub use sample::Sampler;
pub use unwind::{Maps, Symbols};

use std::sync::mpsc::{Receiver, Sender, channel};

/// Words of stack that are copied: 32 KiB.
pub const STACK_WORDS: usize = 4096;
/// Frames that are named.
pub const FRAMES_MAX: usize = 24;

/// Registers and stack of a thread at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Where it executes.
    pub pc: u64,
    /// Its stack pointer: the address of the first word.
    pub sp: u64,
    /// Its frame pointer.
    pub fp: u64,
    /// Its link register, where there is one.
    pub lr: u64,
    /// What lies there.
    pub words: Vec<u64>,
}

/// A stack in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Innermost first, `function (file:line)`.
    pub frames: Vec<String>,
    /// The innermost frame of this program's own code, as `file:line`.
    pub culprit: Option<String>,
}

/// Turns samples into lines on a thread of its own; goes with its last sender.
pub struct Namer {
    samples: Sender<(u64, Sample)>,
    named: Receiver<(u64, Named)>,
}

impl Namer {
    /// Starts it; `None` where the system refuses a thread. Reads the program's tables at once, so that they are there
    /// when they are needed.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "cold: reads files")]
    pub fn start() -> Option<Namer> {
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
        Some(Namer { samples, named })
    }

    /// Hands a sample over under a number.
    pub fn give(&self, ticket: u64, sample: Sample) {
        // A namer whose thread has died names nothing: the alarm stays without lines.
        let _ = self.samples.send((ticket, sample));
    }

    /// A stack that has been named meanwhile, with its number.
    #[must_use]
    pub fn take(&self) -> Option<(u64, Named)> {
        self.named.try_recv().ok()
    }
}
