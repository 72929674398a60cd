//! Parses the kernel's records of context switches.
//!
//! Pure: bytes in, records out; see "MMAP layout" in `perf_event_open(2)`. Skips records of other
//! kinds; ends at a record whose length is wrong.

/// Bytes at the end of each record: process and thread, time, core.
pub(super) const SAMPLE_BYTES: usize = 24;
const LOST: u32 = 2;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
const IS_OUT: u16 = 1 << 13;
const IS_TAKEN: u16 = 1 << 14;
const HEAD_BYTES: usize = 8;

/// A process and one of its threads.
pub(super) type Task = (u32, u32);

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Switch {
        /// When, by the monotonic clock.
        at_ns: u64,
        /// The thread that lost or got the core.
        task: Task,
        is_out: bool,
        /// It lost the core although it wanted to run.
        is_taken: bool,
        /// The thread that got the core next; `None` if not visible, or if this record is of a
        /// thread that got it.
        next: Option<Task>,
    },
    /// The ring was full.
    Lost,
}

pub(super) fn parse(mut bytes: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    while bytes.len() >= HEAD_BYTES {
        let kind = word(bytes, 0);
        let flags = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let length = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
        if length < HEAD_BYTES || length > bytes.len() {
            break;
        }
        let (record, rest) = bytes.split_at(length);
        bytes = rest;
        let wide = kind == SWITCH_CPU_WIDE;
        match kind {
            LOST => found.push(Record::Lost),
            SWITCH | SWITCH_CPU_WIDE if length >= HEAD_BYTES + SAMPLE_BYTES + 8 * usize::from(wide) => {
                let sample = &record[length - SAMPLE_BYTES..];
                let is_out = flags & IS_OUT != 0;
                found.push(Record::Switch {
                    at_ns: u64::from(word(sample, 8)) | u64::from(word(sample, 12)) << 32,
                    task: (word(sample, 0), word(sample, 4)),
                    is_out,
                    is_taken: is_out && flags & IS_TAKEN != 0,
                    next: (wide && is_out).then(|| (word(record, 8), word(record, 12))),
                });
            }
            _ => {}
        }
    }
    found
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}
