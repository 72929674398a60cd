//! When each interrupt and softirq of a core began and ended, by the kernel's tracepoints.
//!
//! Owns the counters and the ring of one core. On the reading thread. Needs a mounted tracefs and CAP_PERFMON. Bounds:
//! [`RING_BYTES`] in the kernel, [`NESTED_MAX`] interrupts inside each other, [`SEGMENTS_MAX`] pieces of time that wait
//! for their gap. When the ring was full, [`Tracepoints::drain`] says so.
//!
//! ```text
//!  softirq ████──────────██████      entry, entry, exit, exit: the time between two passages
//!  timer       ██████████            belongs to the one that began last
//! ```

use super::{Kind, Share};
use crate::files::read_lossy;
use crate::host::check::Interrupts;
use crate::stall::account::Hidden;
use crate::stall::switches::record::{Passage, parse_passages};
use crate::stall::switches::ring::Ring;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Bytes of the ring, a power of two.
const RING_BYTES: usize = 256 << 10;
const NESTED_MAX: usize = 16;
const SEGMENTS_MAX: usize = 1 << 15;
/// Names of the softirqs by number, as the kernel has them in `include/linux/interrupt.h`.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// What a pair of tracepoints tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    /// Interrupts of devices: the number is that of `/proc/interrupts`.
    Device,
    /// Softirqs: the number is that of [`SOFTIRQS`].
    Softirq,
    /// One row of `/proc/interrupts`.
    Row(&'static str),
}

/// Folder and name below `events`, before `_entry` and `_exit`. The kernel permits nobody to record
/// the end of its own work after an interrupt (`irq_work`), with which it writes these records.
const PAIRS: [(&str, &str, Pair); 6] = [
    ("irq", "irq_handler", Pair::Device),
    ("irq", "softirq", Pair::Softirq),
    ("irq_vectors", "local_timer", Pair::Row("LOC")),
    ("irq_vectors", "reschedule", Pair::Row("RES")),
    ("irq_vectors", "call_function", Pair::Row("CAL")),
    ("irq_vectors", "call_function_single", Pair::Row("CAL")),
];

/// Where tracefs is mounted and may be read; `None`: nowhere.
pub(super) fn root() -> Option<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
    places.into_iter().find(|place| id(place, "irq", "softirq_entry").is_some())
}

/// What is not visible without tracepoints.
pub(super) fn hidden() -> Hidden {
    let known = read_lossy("/proc/filesystems").unwrap_or_default();
    let how = match known.contains("tracefs") {
        true => "mount -t tracefs nodev /sys/kernel/tracing, and run as root or with CAP_PERFMON",
        false => "a kernel with CONFIG_EVENT_TRACING",
    };
    Hidden { what: "when each interrupt began and ended", how }
}

/// The number of a tracepoint.
fn id(root: &Path, folder: &str, name: &str) -> Option<u64> {
    read_lossy(root.join("events").join(folder).join(name).join("id")).ok()?.trim().parse().ok()
}

/// A piece of time that belongs to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    source: usize,
    from_ns: u64,
    to_ns: u64,
    /// Whether the source began with it.
    is_first: bool,
}

/// What interrupted the core, and how long it had the core within gaps.
struct Source {
    pair: Pair,
    number: u32,
    in_gaps_ns: u64,
    /// How many of it began in gaps.
    in_gaps: u64,
}

/// Pieces of time by source, from passages in their order.
#[derive(Default)]
struct Pieces {
    sources: Vec<Source>,
    /// Sources that have begun and not ended, and whether the time up to now is their first piece.
    nested: Vec<(usize, bool)>,
    /// Of the last passage.
    at_ns: u64,
    segments: VecDeque<Segment>,
}

/// The tracepoints of one core.
pub(super) struct Tracepoints {
    ring: Ring,
    /// Numbers of the tracepoint that begins, and of the one that ends.
    pairs: Vec<(u16, u16, Pair)>,
    pieces: Pieces,
    core: u32,
}

impl Tracepoints {
    /// Opens the tracepoints of `core` that the kernel has, below `root`; `None`: not permitted.
    pub(super) fn open(root: &Path, core: u32) -> Option<Tracepoints> {
        let numbered = |(folder, name, pair): &(&str, &str, Pair)| {
            let [entry, exit] = ["entry", "exit"].map(|end| id(root, folder, &format!("{name}_{end}")));
            Some((u16::try_from(entry?).ok()?, u16::try_from(exit?).ok()?, *pair))
        };
        let pairs: Vec<(u16, u16, Pair)> = PAIRS.iter().filter_map(numbered).collect();
        let ids: Vec<u64> = pairs.iter().flat_map(|(entry, exit, _)| [u64::from(*entry), u64::from(*exit)]).collect();
        let ring = Ring::of_tracepoints(core, RING_BYTES, &ids)?;
        Some(Tracepoints { ring, pairs, pieces: Pieces::default(), core })
    }

    /// Reads the passages since the last call. Returns whether none is missing.
    pub(super) fn drain(&mut self) -> bool {
        let mut is_complete = true;
        for passage in parse_passages(&self.ring.take()) {
            let Passage::At { at_ns, id, number } = passage else {
                is_complete = false;
                self.pieces.nested.clear();
                continue;
            };
            let known = self.pairs.iter().find(|(entry, exit, _)| [*entry, *exit].contains(&id));
            if let Some((entry, _, pair)) = known {
                self.pieces.pass(at_ns, *pair, number, id == *entry);
            }
        }
        is_complete
    }

    /// Attributes at most `room_ns` of the gap between these moments of the monotonic clock. Returns how much. Gaps are
    /// asked for in their order.
    pub(super) fn between(&mut self, from_ns: u64, to_ns: u64, room_ns: u64) -> u64 {
        self.pieces.between(from_ns, to_ns, room_ns)
    }

    /// Whether the counter `name` of `/proc/interrupts` or `/proc/softirqs` counts what these tracepoints time.
    pub(super) fn covers(&self, kind: Kind, name: &str) -> bool {
        let id = name.split(' ').next().unwrap_or_default();
        self.pairs.iter().any(|(.., pair)| match pair {
            Pair::Device => kind == Kind::Interrupt && id.bytes().all(|byte| byte.is_ascii_digit()),
            Pair::Softirq => kind == Kind::Softirq,
            // The kernel counts a shoot-down as a call of a function, and by itself.
            Pair::Row(row) => kind != Kind::Softirq && (*row == id || (*row, id) == ("CAL", "TLB")),
        })
    }

    /// The share of each source.
    pub(super) fn shares(&self) -> Vec<Share> {
        let rows = Interrupts::read(Path::new("/"));
        let words: Vec<(String, String)> = rows
            .iter()
            .flat_map(|rows| rows.of_core(self.core))
            .map(|(id, words, _)| (id.to_owned(), format!("{id} {words}")))
            .collect();
        let share = |source: &Source| {
            let (what, id) = match source.pair {
                Pair::Device => (Kind::Interrupt, source.number.to_string()),
                Pair::Row("LOC") => (Kind::Interrupt, "LOC".to_owned()),
                Pair::Row(row) => (Kind::InterProcessor, row.to_owned()),
                Pair::Softirq => {
                    let name = SOFTIRQS.get(source.number as usize).copied();
                    (Kind::Softirq, name.map_or_else(|| source.number.to_string(), str::to_owned))
                }
            };
            let known = words.iter().find(|(row, _)| *row == id).filter(|_| what != Kind::Softirq);
            let who = known.map_or_else(|| id.clone(), |(_, words)| words.clone());
            Share { what, who, ns: source.in_gaps_ns, share: 0.0, count: Some(source.in_gaps) }
        };
        self.pieces.sources.iter().filter(|source| source.in_gaps_ns > 0).map(share).collect()
    }
}

impl Pieces {
    /// Something begins or ends.
    fn pass(&mut self, at_ns: u64, pair: Pair, number: u32, is_entry: bool) {
        if let Some((source, is_first)) = self.nested.last_mut() {
            let segment = Segment { source: *source, from_ns: self.at_ns, to_ns: at_ns, is_first: *is_first };
            *is_first = false;
            self.segments.push_back(segment);
            if self.segments.len() > SEGMENTS_MAX {
                self.segments.pop_front();
            }
        }
        self.at_ns = at_ns;
        // A vector's number says nothing more than its row.
        let number = if matches!(pair, Pair::Row(_)) { 0 } else { number };
        let known = self.sources.iter().position(|source| (source.pair, source.number) == (pair, number));
        let source = known.unwrap_or_else(|| {
            self.sources.push(Source { pair, number, in_gaps_ns: 0, in_gaps: 0 });
            self.sources.len() - 1
        });
        if is_entry {
            if self.nested.len() < NESTED_MAX {
                self.nested.push((source, true));
            }
        } else if let Some(at) = self.nested.iter().rposition(|(begun, _)| *begun == source) {
            // What began after it has ended too; its record was lost.
            self.nested.truncate(at);
        }
    }

    /// See [`Tracepoints::between`].
    fn between(&mut self, from_ns: u64, to_ns: u64, room_ns: u64) -> u64 {
        let mut room = room_ns;
        while let Some(segment) = self.segments.front().copied() {
            if segment.from_ns >= to_ns {
                break;
            }
            self.segments.pop_front();
            let inside_ns = segment.to_ns.min(to_ns).saturating_sub(segment.from_ns.max(from_ns)).min(room);
            if inside_ns > 0 {
                room -= inside_ns;
                let source = &mut self.sources[segment.source];
                source.in_gaps_ns += inside_ns;
                source.in_gaps += u64::from(segment.is_first);
            }
        }
        room_ns - room
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Kind, Pair, Pieces, Tracepoints};
    use crate::host::pin::{allowed_cores, pin_current_thread};
    use crate::stall::switches::record::{Passage, parse_passages};
    use std::process::Command;
    use std::time::{Duration, Instant};

    const TIMER: Pair = Pair::Row("LOC");

    fn ns(pieces: &Pieces, pair: Pair, number: u32) -> (u64, u64) {
        let found = pieces.sources.iter().find(|source| (source.pair, source.number) == (pair, number));
        found.map_or((0, 0), |source| (source.in_gaps_ns, source.in_gaps))
    }

    #[test]
    fn the_time_between_two_passages_belongs_to_the_one_that_began_last() {
        let mut pieces = Pieces::default();
        for (at_ns, pair, number, is_entry) in [
            (100, Pair::Softirq, 3, true),
            (150, TIMER, 236, true),
            (180, TIMER, 236, false),
            (200, Pair::Softirq, 3, false),
            (900, Pair::Device, 36, true),
            (960, Pair::Device, 36, false),
        ] {
            pieces.pass(at_ns, pair, number, is_entry);
        }
        assert_eq!(pieces.between(90, 205, 115), 100);
        assert_eq!([ns(&pieces, Pair::Softirq, 3), ns(&pieces, TIMER, 0)], [(70, 1), (30, 1)]);
        assert_eq!(pieces.between(910, 2_000, 20), 20, "no more than is to be explained");
        assert_eq!(ns(&pieces, Pair::Device, 36), (20, 1));
        assert_eq!(pieces.between(3_000, 4_000, 1_000), 0);
    }

    #[test]
    fn an_end_without_a_beginning_is_nothing_and_one_that_was_lost_ends_with_what_is_around_it() {
        let mut pieces = Pieces::default();
        pieces.pass(10, TIMER, 0, false);
        pieces.pass(20, Pair::Softirq, 1, true);
        pieces.pass(30, TIMER, 0, true);
        pieces.pass(50, Pair::Softirq, 1, false);
        pieces.pass(90, TIMER, 0, true);
        pieces.pass(95, TIMER, 0, false);
        assert_eq!(pieces.between(0, 100, 100), 35);
        assert_eq!([ns(&pieces, TIMER, 0), ns(&pieces, Pair::Softirq, 1)], [(25, 2), (10, 1)]);
    }

    #[test]
    fn a_record_of_a_tracepoint_is_read_by_its_place() {
        let record = |kind: u32, id: u16, number: u32| {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend([0, 0, 56, 0]);
            bytes.extend([7u32, 8].iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(5_000_000_000u64.to_ne_bytes());
            bytes.extend([1u32, 0, 20].iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(id.to_ne_bytes());
            bytes.extend([0; 6]);
            bytes.extend(number.to_ne_bytes());
            bytes.resize(56, 0);
            bytes
        };
        let all = [record(9, 139, 36), record(14, 1, 1), record(2, 0, 0)].concat();
        let passage = Passage::At { at_ns: 5_000_000_000, id: 139, number: 36 };
        assert_eq!(parse_passages(&all), [passage, Passage::Lost]);
        assert_eq!(parse_passages(&all[..40]), []);
    }

    /// The kernel's own word, where it permits it: a thread that spins is interrupted by the timer.
    #[test]
    fn the_timer_of_a_busy_core_is_seen_by_the_kernels_own_records() {
        let place = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tracefs", "none"]).arg(place.path()).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            return eprintln!("skipped: this user mounts no tracefs");
        }
        let core = *allowed_cores().unwrap().last().unwrap();
        let opened = Tracepoints::open(place.path(), core);
        Command::new("umount").arg(place.path()).status().unwrap();
        let mut tracepoints = opened.expect("who may mount tracefs may open tracepoints");
        std::thread::spawn(move || {
            pin_current_thread(core).unwrap();
            let until = Instant::now() + Duration::from_millis(100);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        })
        .join()
        .unwrap();
        assert!(tracepoints.drain(), "nothing was lost");
        assert!(tracepoints.between(0, u64::MAX, u64::MAX) > 0);
        let shares = tracepoints.shares();
        assert!(shares.iter().any(|share| share.who.starts_with("LOC") && share.ns > 0), "{shares:?}");
        assert!(tracepoints.covers(Kind::Interrupt, "LOC Local timer interrupts"));
        assert!(!tracepoints.covers(Kind::Interrupt, "NMI Non-maskable interrupts"));
    }
}
