//! Counters of `perf_event_open` and the ring that the kernel writes their records into.
//!
//! Owns the descriptors and the mapping. On one cold thread. Bounded by its pages; when they are
//! full, the kernel drops records and says so in the next one.
//!
//! ```text
//!  page 0        control: .. data_head u64 at 1024 (the kernel's), data_tail u64 at 1032 (ours)
//!  pages 1..=n   records, round and round
//! ```

use super::SAMPLE_BYTES;
use crate::board;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

/// Of the control page, in bytes.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// Size of the attributes that are used here.
const ATTR_BYTES: u32 = 112;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const CONFIG_DUMMY: u64 = 9;
/// Process and thread, time, core: the end of each record.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7;
/// The tracepoint's own bytes, behind these.
const SAMPLE_RAW: u64 = 1 << 10;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// Sends a counter's records to the ring of another one.
const SET_OUTPUT: libc::c_ulong = 0x2405;

const _: () = assert!(SAMPLE_BYTES == 24);

/// `struct perf_event_attr`, as far as it is used.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == ATTR_BYTES as usize);

/// Open counters with their ring.
pub(crate) struct Ring {
    /// The ring is the first one's.
    counters: Vec<OwnedFd>,
    base: *mut u8,
    /// Bytes of the control page, and of the records behind it.
    control: usize,
    room: usize,
}

// SAFETY: the mapping belongs to this value alone, and only `take`, which has it exclusively,
// touches it.
unsafe impl Send for Ring {}

impl Ring {
    /// Records all switches of `core`.
    pub(super) fn of_core(core: u32, room: usize) -> Option<Ring> {
        Ring::open(-1, i32::try_from(core).ok()?, room, CONTEXT_SWITCH)
    }

    /// Records which threads begin and take a name on `core`.
    pub(super) fn of_tasks(core: u32, room: usize) -> Option<Ring> {
        Ring::open(-1, i32::try_from(core).ok()?, room, COMM | TASK)
    }

    /// Records the switches of thread `tid`.
    pub(super) fn of_thread(tid: u32, room: usize) -> Option<Ring> {
        Ring::open(i32::try_from(tid).ok()?, -1, room, CONTEXT_SWITCH)
    }

    /// Records each passage of these tracepoints on `core`, in their order.
    pub(crate) fn of_tracepoints(core: u32, room: usize, ids: &[u64]) -> Option<Ring> {
        let core = i32::try_from(core).ok()?;
        let open = |id: &u64| {
            let flags = SAMPLE_ID_ALL | USE_CLOCKID;
            let what =
                Attributes { kind: TYPE_TRACEPOINT, config: *id, sample_period: 1, flags, ..Attributes::default() };
            counter(-1, core, &Attributes { sample_type: SAMPLE_TYPE | SAMPLE_RAW, ..what })
        };
        let counters = ids.iter().map(open).collect::<Option<Vec<_>>>()?;
        let ring = Ring::map(counters, room)?;
        let (first, others) = ring.counters.split_first()?;
        // Their records can go there once it is mapped.
        for other in others {
            // SAFETY: two descriptors that this function owns; the kernel checks that their records
            // are alike.
            let sent = unsafe { libc::ioctl(other.as_raw_fd(), SET_OUTPUT, first.as_raw_fd()) };
            if sent != 0 {
                return None;
            }
        }
        Some(ring)
    }

    fn open(tid: i32, core: i32, room: usize, what: u64) -> Option<Ring> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: CONFIG_DUMMY,
            sample_type: SAMPLE_TYPE,
            flags: EXCLUDE_KERNEL | SAMPLE_ID_ALL | USE_CLOCKID | what,
            ..Attributes::default()
        };
        Ring::map(vec![counter(tid, core, &attributes)?], room)
    }

    /// Maps the ring of the first counter, with `room` bytes for records or a page.
    fn map(counters: Vec<OwnedFd>, room: usize) -> Option<Ring> {
        let (control, room) = sizes(room, page_size());
        let bytes = control + room;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the system's choice replaces nothing.
        let base = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, counters.first()?.as_fd(), 0) }.ok()?;
        Some(Ring { counters, base: base.cast(), control, room })
    }

    fn control_word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: aligned and inside the control page, which lasts as long as `self`; the kernel
        // writes it word by word.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// The records since the last call. Frees their space for the kernel.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        // The kernel uses barriers of its own, as perf_event_open(2) says: it writes records before
        // its head, and overwrites none before our tail. No model covers a pair with the kernel.
        let head = board::get_first(self.control_word(DATA_HEAD));
        let tail = board::get(self.control_word(DATA_TAIL));
        let room = self.room;
        let count = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(room);
        let mut out = Vec::with_capacity(count);
        let mut at = tail as usize & (room - 1);
        while out.len() < count {
            let piece = (count - out.len()).min(room - at);
            // SAFETY: `at + piece` lies within the pages after the first; the kernel leaves them
            // alone until `data_tail` moves.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.base.add(self.control + at), piece) });
            at = 0;
        }
        board::set_last(self.control_word(DATA_TAIL), head);
        out
    }
}

/// Bytes of the control page and of the records' pages, on a machine with pages of `page` bytes: 4
/// KiB on x86-64, up to 64 KiB on AArch64.
fn sizes(room: usize, page: usize) -> (usize, usize) {
    assert!(room.is_power_of_two() && page.is_power_of_two(), "positions are masked");
    (page, room.max(page))
}

/// Opens a counter of a thread or of a core, by the monotonic clock.
fn counter(tid: i32, core: i32, attributes: &Attributes) -> Option<OwnedFd> {
    let attributes = Attributes { size: ATTR_BYTES, clock: libc::CLOCK_MONOTONIC, ..*attributes };
    // SAFETY: the attributes are as long as they say and outlive the call; the kernel checks all
    // else.
    let opened =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, core, -1, CLOSE_ON_EXEC) };
    let number = i32::try_from(opened).ok().filter(|number| *number >= 0)?;
    // SAFETY: a descriptor that was just opened and that nobody else knows.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which no reference is left.
        let _ = unsafe { munmap(self.base.cast(), self.control + self.room) };
    }
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn a_ring_has_whole_pages_of_the_machine() {
        assert_eq!(sizes(128 << 10, 4 << 10), (4 << 10, 128 << 10));
        assert_eq!(sizes(128 << 10, 64 << 10), (64 << 10, 128 << 10));
        assert_eq!(sizes(4 << 10, 64 << 10), (64 << 10, 64 << 10));
    }
}
