//! Parses the kernel's records of context switches, forks, new names and tracepoints.
//!
//! Pure: bytes in, records out; see "MMAP layout" in `perf_event_open(2)`. Skips records of other
//! kinds; ends at a record whose length is wrong.

/// Bytes at the end of each record: process and thread, time, core.
pub(super) const SAMPLE_BYTES: usize = 24;
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const FORK: u32 = 7;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
const IS_OUT: u16 = 1 << 13;
const IS_TAKEN: u16 = 1 << 14;
const HEAD_BYTES: usize = 8;

/// A process and one of its threads.
pub(super) type Task = (u32, u32);

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

/// A thread that began, or took a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TaskRecord {
    Fork {
        /// When, by the monotonic clock.
        at_ns: u64,
        task: Task,
        /// The thread that started it.
        parent: Task,
    },
    Name {
        /// When, by the monotonic clock.
        at_ns: u64,
        task: Task,
        command: String,
    },
}

impl TaskRecord {
    pub(super) fn at_ns(&self) -> u64 {
        match self {
            TaskRecord::Fork { at_ns, .. } | TaskRecord::Name { at_ns, .. } => *at_ns,
        }
    }
}

/// The records of forks and names. What was lost is missing.
pub(super) fn parse_tasks(bytes: &[u8]) -> Vec<TaskRecord> {
    let mut found = Vec::new();
    each(bytes, |kind, _, record| {
        let least = HEAD_BYTES + SAMPLE_BYTES + if kind == FORK { 24 } else { 16 };
        if record.len() < least || !matches!(kind, COMM | FORK) {
            return;
        }
        let at_ns = time(&record[record.len() - SAMPLE_BYTES..]);
        found.push(match kind {
            FORK => TaskRecord::Fork {
                at_ns,
                task: (word(record, 8), word(record, 16)),
                parent: (word(record, 12), word(record, 20)),
            },
            _ => {
                let name = &record[16..record.len() - SAMPLE_BYTES];
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                let command = String::from_utf8_lossy(&name[..end]).into_owned();
                TaskRecord::Name { at_ns, task: (word(record, 8), word(record, 12)), command }
            }
        });
    });
    found
}

pub(super) fn parse(bytes: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    each(bytes, |kind, flags, record| {
        let (wide, length) = (kind == SWITCH_CPU_WIDE, record.len());
        match kind {
            LOST => found.push(Record::Lost),
            SWITCH | SWITCH_CPU_WIDE if length >= HEAD_BYTES + SAMPLE_BYTES + 8 * usize::from(wide) => {
                let sample = &record[length - SAMPLE_BYTES..];
                let is_out = flags & IS_OUT != 0;
                found.push(Record::Switch {
                    at_ns: time(sample),
                    task: (word(sample, 0), word(sample, 4)),
                    is_out,
                    is_taken: is_out && flags & IS_TAKEN != 0,
                    next: (wide && is_out).then(|| (word(record, 8), word(record, 12))),
                });
            }
            _ => {}
        }
    });
    found
}

/// A passage of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    At {
        /// When, by the monotonic clock.
        at_ns: u64,
        /// The tracepoint's number.
        id: u16,
        /// The first number of its own: of the interrupt, softirq or vector.
        number: u32,
    },
    /// The ring was full.
    Lost,
}

/// The passages of tracepoints whose records begin with a number.
pub(crate) fn parse_passages(bytes: &[u8]) -> Vec<Passage> {
    /// Of the tracepoint's bytes in the record, and of its number in these; they begin with its id.
    const OWN: usize = HEAD_BYTES + SAMPLE_BYTES + 4;
    const NUMBER: usize = OWN + 8;
    let mut found = Vec::new();
    each(bytes, |kind, _, record| match kind {
        LOST => found.push(Passage::Lost),
        SAMPLE if record.len() >= NUMBER + 4 => found.push(Passage::At {
            at_ns: time(&record[HEAD_BYTES..]),
            id: word(record, OWN) as u16,
            number: word(record, NUMBER),
        }),
        _ => {}
    });
    found
}

/// Calls `take` with kind, flags and bytes of each record, head included.
fn each(mut bytes: &[u8], mut take: impl FnMut(u32, u16, &[u8])) {
    while bytes.len() >= HEAD_BYTES {
        let kind = word(bytes, 0);
        let flags = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let length = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
        if length < HEAD_BYTES || length > bytes.len() {
            break;
        }
        let (record, rest) = bytes.split_at(length);
        bytes = rest;
        take(kind, flags, record);
    }
}

/// The time in the end of a record.
fn time(sample: &[u8]) -> u64 {
    u64::from(word(sample, 8)) | u64::from(word(sample, 12)) << 32
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}
