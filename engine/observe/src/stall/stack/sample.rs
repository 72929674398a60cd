//! Sampling by signal: the handler copies registers and stack into one preallocated slot.
//!
//! Owns the handler and the slot. [`Sampler`] runs on the watchdog's thread; the handler runs on
//! the sampled thread, at any point of its program. It reads atomics, copies, and stores one word.
//! One request at a time, [`STACK_WORDS`] words. Never locks, allocates, or calls the library.
//!
//! | edge | release site | acquire site | publishes |
//! |---|---|---|---|
//! | K1 | [`Sampler::ask`] `wanted` | handler `wanted` | the bound of the stack |
//! | K2 | handler `done` | [`Sampler::take`] `done` | the copy |
//!
//! Both are Q2 of [`pinwheel_edge::seqlock`]. Model: loom_seqlock::a_request_and_its_answer_do_not_meet.
//!
//! # Why SIGURG
//! The default action ignores it, so a late signal does no harm after the handler is removed.
//! Hardly any program uses it.
//!
//! # Why a thread names the end of its stack itself
//! The end of the mapping that holds the stack is no bound: the system joins mappings of the same rights, and what lies
//! above the stack may be unmapped between the look at the mappings and the copy.
//!
//! # Why the request is claimed
//! The request is withdrawn when the stall ends. If the handler has begun to copy, the watchdog
//! must wait for it; if not, the handler must not begin. So both claim the word by one exchange.

use super::{STACK_WORDS, Sample};
use crate::board::{get, get_first, set, set_last};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const BUSY: u64 = 1 << 63;
/// Bytes of a stack word.
const WORD: u64 = 8;

struct Slot {
    /// The thread that is asked; with [`BUSY`] the one that copies; 0 if there is no request.
    wanted: AtomicU64,
    /// First address above the thread's stack.
    top: AtomicU64,
    /// Number of answers so far.
    done: AtomicU64,
    registers: [AtomicU64; 4],
    count: AtomicU64,
    words: [AtomicU64; STACK_WORDS],
}

static SLOT: Slot = Slot {
    wanted: AtomicU64::new(0),
    top: AtomicU64::new(0),
    done: AtomicU64::new(0),
    registers: [const { AtomicU64::new(0) }; 4],
    count: AtomicU64::new(0),
    words: [const { AtomicU64::new(0) }; STACK_WORDS],
};
/// Set while a sampler of this process uses the slot.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Samples this process's threads. There is one in a process.
#[derive(Debug)]
pub struct Sampler {
    seen: u64,
    asked: Option<u32>,
}

impl Sampler {
    /// Installs the handler; `None` if this process has a sampler already, or the system refuses.
    pub fn install() -> Option<Sampler> {
        if TAKEN.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: an all-zero sigaction is a valid one: no flags, an empty mask, no handler.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = copy as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: `action` is initialised, and its handler is safe at any point of any thread (see
        // `copy`).
        let failed = unsafe { libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()) };
        if failed != 0 {
            TAKEN.store(false, Ordering::Relaxed);
            return None;
        }
        set(&SLOT.wanted, 0);
        Some(Sampler { seen: get(&SLOT.done), asked: None })
    }

    /// From here on this process has no sampler: its signal handlers belong to a program around the engine.
    pub fn forbid() {
        TAKEN.store(true, Ordering::Relaxed);
    }

    /// Asks thread `tid`, whose stack ends below `stack_top`. Returns `false` if a request is
    /// pending or the thread has ended.
    pub fn ask(&mut self, tid: u32, stack_top: u64) -> bool {
        if self.asked.is_some() || get_first(&SLOT.wanted) != 0 {
            return false;
        }
        self.seen = get(&SLOT.done);
        set(&SLOT.top, stack_top);
        // ORDERING: release side of K1, see `set_last`: the handler that finds itself wanted sees
        // the bound.
        set_last(&SLOT.wanted, u64::from(tid));
        let (pid, tid_c) = (std::process::id().cast_signed(), tid.cast_signed());
        // SAFETY: a plain system call with three numbers; the signal has a handler.
        let failed = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid_c, libc::SIGURG) };
        if failed != 0 {
            set(&SLOT.wanted, 0);
            return false;
        }
        self.asked = Some(tid);
        true
    }

    /// The sample; returned once.
    pub fn take(&mut self) -> Option<Sample> {
        self.asked?;
        // ORDERING: acquire side of K2, see `get_first`: the copy is whole.
        if get_first(&SLOT.done) == self.seen {
            return None;
        }
        self.asked = None;
        let count = (get(&SLOT.count) as usize).min(STACK_WORDS);
        let [pc, sp, fp, lr] = [0, 1, 2, 3].map(|at: usize| get(&SLOT.registers[at]));
        Some(Sample { pc, sp, fp, lr, words: SLOT.words[..count].iter().map(get).collect() })
    }

    /// Withdraws the request, because the stall has ended.
    pub fn withdraw(&mut self) {
        let Some(tid) = self.asked.take() else { return };
        // If this fails, the handler copies or has copied. Nobody reads that answer, and the next
        // request is refused until it is complete.
        let _ = SLOT.wanted.compare_exchange(u64::from(tid), 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.withdraw();
        TAKEN.store(false, Ordering::Relaxed);
    }
}

/// Address of the last word of the calling thread's stack; `None` if the system does not tell. Allocates.
pub fn last_stack_word() -> Option<u64> {
    // SAFETY: plain words, which the next call writes.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: the calling thread's own handle, and room for its attributes.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) } != 0 {
        return None;
    }
    let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the call above has made the attributes; they are read here and given back once.
    let failed = unsafe {
        let failed = libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        failed
    };
    (failed == 0).then(|| start.addr() as u64 + bytes as u64 - WORD)
}

/// The handler. Runs on the sampled thread, at any point of its program.
extern "C" fn copy(_signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: a system call without arguments.
    let own = unsafe { libc::syscall(libc::SYS_gettid) }.cast_unsigned();
    // ORDERING: acquire side of K1, see `get_first`.
    if get_first(&SLOT.wanted) != own
        || SLOT.wanted.compare_exchange(own, own | BUSY, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        return;
    }
    // SAFETY: the kernel hands a handler with SA_SIGINFO its thread's context, valid until the
    // handler returns.
    let registers = registers(unsafe { &*context.cast::<libc::ucontext_t>() });
    for (word, value) in SLOT.registers.iter().zip(registers) {
        set(word, value);
    }
    let (sp, top) = (registers[1], get(&SLOT.top));
    let room = top.saturating_sub(sp) / WORD;
    let count = if sp > 0 && sp.is_multiple_of(WORD) { room.min(STACK_WORDS as u64) } else { 0 };
    for at in 0..count {
        let from = std::ptr::with_exposed_provenance::<u64>((sp + at * WORD) as usize);
        // SAFETY: `from` lies between this thread's stack pointer and the end of its stack, which the
        // thread itself has named; aligned as checked. Nobody else writes there while the handler
        // runs on it.
        set(&SLOT.words[at as usize], unsafe { stack_word(from) });
    }
    set(&SLOT.count, count);
    // ORDERING: release side of K2, see `set_last`: whoever sees the number sees the copy.
    set_last(&SLOT.done, get(&SLOT.done) + 1);
    set_last(&SLOT.wanted, 0);
}

/// Reads a word of the interrupted program's frames. An instruction of our own: these are no objects of this function,
/// and a sanitizer would report the gaps that it has put between them.
///
/// # Safety
/// `from` is mapped, readable and aligned.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe fn stack_word(from: *const u64) -> u64 {
    let word;
    // SAFETY: by this function's contract; the instruction only reads.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, qword ptr [{}]", out(reg) word, in(reg) from, options(nostack, readonly, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("ldr {}, [{}]", out(reg) word, in(reg) from, options(nostack, readonly, preserves_flags));
    }
    word
}

/// Never called: no stack pointer is known, so no word is read.
///
/// # Safety
/// None.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn stack_word(_: *const u64) -> u64 {
    0
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let all = &context.uc_mcontext.gregs;
    let [pc, sp, fp] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(|at| all[at as usize].cast_unsigned());
    [pc, sp, fp, 0]
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> [u64; 4] {
    let machine = &context.uc_mcontext;
    [machine.pc, machine.sp, machine.regs[29], machine.regs[30]]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: &libc::ucontext_t) -> [u64; 4] {
    [0; 4]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{STACK_WORDS, Sampler, WORD, last_stack_word};
    use crate::host::pin::thread_id;
    use crate::stall::stack::{Maps, Symbols};
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    #[inline(never)]
    fn spins_in_a_named_place(is_there: &AtomicBool, stop: &AtomicBool) {
        is_there.store(true, Ordering::Relaxed);
        while !stop.load(Ordering::Relaxed) {
            std::hint::black_box(7u64.wrapping_mul(stop as *const _ as u64));
        }
    }

    /// One test for all: the slot is the process's.
    #[test]
    fn a_spinning_threads_stack_names_its_line_and_one_that_was_withdrawn_answers_nothing() {
        let mut sampler = Sampler::install().unwrap();
        assert!(Sampler::install().is_none(), "one user at a time");
        let (is_there, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (sender, ids) = channel();
            let (is_there, stop) = (&is_there, &stop);
            scope.spawn(move || {
                sender.send((thread_id(), last_stack_word().unwrap())).unwrap();
                spins_in_a_named_place(is_there, stop);
            });
            let (tid, last) = ids.recv().unwrap();
            while !is_there.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let top = last + WORD;
            let mapped = || Maps::own().unwrap().end_of(last).unwrap();
            assert!(top <= mapped());
            // The bound was once the end of the mapping. Memory above the stack that was unmapped before the copy then
            // ended the process.
            let above = std::ptr::with_exposed_provenance_mut(top as usize);
            let (rights, bytes) = (ProtFlags::READ | ProtFlags::WRITE, STACK_WORDS * WORD as usize);
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
            // SAFETY: takes only memory that is free; it is given back at once, and nobody has a reference to it.
            if let Ok(follows) = unsafe { mmap_anonymous(above, bytes, rights, flags) } {
                assert!(mapped() >= top);
                // SAFETY: the memory that was taken above.
                unsafe { munmap(follows, bytes) }.unwrap();
            }
            assert!(!sampler.ask(u32::MAX >> 1, top), "no such thread");
            assert!(sampler.ask(tid, top) && !sampler.ask(tid, top), "one at a time");
            let sample = (0..100_000)
                .find_map(|_| {
                    std::thread::park_timeout(std::time::Duration::from_micros(100));
                    sampler.take()
                })
                .unwrap();
            let words = ((top - sample.sp) / WORD).min(STACK_WORDS as u64);
            assert_eq!(sample.words.len() as u64, words, "up to the end of the stack");
            assert!(sampler.take().is_none(), "once");
            stop.store(true, Ordering::Relaxed);
            let named = Symbols::own().name(&sample);
            assert!(named.frames.iter().any(|frame| frame.contains("spins_in_a_named_place")), "{named:?}");
            assert!(named.frames.len() > 2, "{named:?}");
            assert!(named.culprit.unwrap().starts_with("sample.rs:"));
        });
        assert!(sampler.ask(thread_id(), 0));
        sampler.take();
        sampler.withdraw();
        assert!(sampler.take().is_none());
    }
}
