//! Terminal output, collected per frame and counted; and the cost of the console.
//!
//! # Why not a buffered writer
//!
//! The library flushes several times a frame, and a buffered writer that is dropped in a panic
//! writes half a frame over the restored terminal. Here [`Frames::take`] alone hands out a frame,
//! and only a complete one.

use crate::msg::ConsoleCost;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// Bytes reserved for a frame; a full repaint of 200×60 takes about half.
pub const FRAME_BYTES: usize = 64 * 1024;

/// The writing end, for the library.
pub struct Gather(Rc<RefCell<Vec<u8>>>);

/// The reading end, which takes complete frames.
pub struct Frames {
    frame: Rc<RefCell<Vec<u8>>>,
    bytes: u64,
}

pub fn gathered() -> (Gather, Frames) {
    let frame = Rc::new(RefCell::new(Vec::with_capacity(FRAME_BYTES)));
    (Gather(Rc::clone(&frame)), Frames { frame, bytes: 0 })
}

impl Write for Gather {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Does nothing: a frame is sent as a whole.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Frames {
    /// Takes the bytes written since the last call; the next frame is collected in `spare`.
    pub fn take(&mut self, spare: Vec<u8>) -> Vec<u8> {
        let frame = self.frame.replace(spare);
        self.bytes += frame.len() as u64;
        frame
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Sums of the console's cost, and their values at the last reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    draws: u64,
    last: Option<Reading>,
    first_cpu_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at_ns: u64,
    cpu_ns: u64,
    bytes: u64,
    draws: u64,
}

impl Meter {
    pub fn drawn(&mut self) {
        self.draws += 1;
    }

    /// The cost since the last call, and since the start.
    pub fn cost(&mut self, now_ns: u64, cpu_ns: u64, bytes: u64) -> ConsoleCost {
        let first_cpu_ns = *self.first_cpu_ns.get_or_insert(cpu_ns);
        let now = Reading { at_ns: now_ns, cpu_ns, bytes, draws: self.draws };
        let before = self.last.replace(now).unwrap_or(now);
        let seconds = now_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let per_s = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        ConsoleCost {
            cpu_ms_per_s: per_s(cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1e6),
            draws_per_s: per_s((now.draws - before.draws) as f64),
            bytes_per_s: per_s(bytes.saturating_sub(before.bytes) as f64),
            cpu_ms: cpu_ns.saturating_sub(first_cpu_ns) as f64 / 1e6,
            draws: self.draws,
            bytes,
            elapsed_ms: now_ns as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Meter, gathered};
    use std::io::Write;

    #[test]
    fn a_frame_is_whole_however_often_the_library_flushes() {
        let (mut gather, mut frames) = gathered();
        for part in [b"abc".as_slice(), b"de"] {
            gather.write_all(part).unwrap();
            gather.flush().unwrap();
        }
        assert_eq!((frames.take(Vec::new()).as_slice(), frames.bytes()), (b"abcde".as_slice(), 5));
        gather.write_all(b"f").unwrap();
        assert_eq!(frames.take(Vec::new()), b"f");
    }

    #[test]
    fn cost_is_per_second_of_the_time_between_two_readings() {
        let mut meter = Meter::default();
        assert_eq!(meter.cost(1_000_000_000, 5_000_000, 100).cpu_ms_per_s, 0.0);
        meter.drawn();
        let cost = meter.cost(3_000_000_000, 9_000_000, 4_100);
        assert_eq!((cost.cpu_ms_per_s, cost.draws_per_s, cost.bytes_per_s), (2.0, 0.5, 2_000.0));
        assert_eq!((cost.cpu_ms, cost.draws, cost.bytes), (4.0, 1, 4_100));
    }
}
