//! Restores the terminal and prints the cause when reading a mapped file ends the process.
//!
//! Owns the handlers of SIGBUS and SIGSEGV, and the data needed to restore a terminal. Installed
//! once, on the main thread; runs on the thread that raised the signal, at any point: it reads
//! atomics and calls only `poll`, `write`, `tcsetattr`, `sigaction` and `raise`. Bounded by
//! [`PATIENCE_MS`] for each of two writes. The process then ends by the previous handler: the
//! standard library's, which also reports an overflowed stack.
//!
//! # Why a handler
//! A board, and the shared memory of an input, are files of other processes that this one maps.
//! Their owner can truncate them at any moment, also between a check of the size and the read. The
//! kernel then raises SIGBUS at the read.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest wait for a terminal that accepts no output.
const PATIENCE_MS: i32 = 500;
const TRUNCATED: &[u8] = b"pinwheel: ended by SIGBUS: a file that it maps (a board, or the shared memory of an input) \
    was truncated, which only the file's owner can do; start again with a file that is whole\n";
const DEFECT: &[u8] = b"pinwheel: ended by SIGSEGV: a defect of pinwheel or of a library in it; please report it\n";

/// Modes of the terminal before the change, and the bytes that undo the output to it.
struct Terminal {
    modes: libc::termios,
    bytes: Vec<u8>,
}

static TERMINAL: OnceLock<Terminal> = OnceLock::new();
/// Whether the handler must restore the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Previous actions of SIGBUS and SIGSEGV.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Installs the handlers, once a process.
///
/// # Errors
/// If the system refuses; then such an end does not restore the terminal.
pub fn install() -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid one.
    let mut before: [libc::sigaction; 2] = unsafe { std::mem::zeroed() };
    for (signal, before) in [libc::SIGBUS, libc::SIGSEGV].into_iter().zip(&mut before) {
        // SAFETY: `before` is valid for writing, and no new action is given.
        if unsafe { libc::sigaction(signal, std::ptr::null(), before) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if BEFORE.set(before).is_err() {
        return Ok(());
    }
    // SAFETY: an all-zero sigaction is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = end as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
    // On the other stack: the one in use may have overflowed.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in [libc::SIGBUS, libc::SIGSEGV] {
        // SAFETY: `action` is initialised, and its handler is safe at any point of any thread (see `end`).
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Saves the modes of the terminal at standard input, before they are changed, and the bytes that
/// restore the terminal at standard output. A second terminal of one process is treated as the
/// first.
///
/// # Errors
/// If standard input is no terminal.
pub fn take_terminal(bytes: Vec<u8>) -> io::Result<()> {
    // SAFETY: all bytes zero are a valid termios.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `modes` is valid for writing.
    if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &raw mut modes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    TERMINAL.get_or_init(|| Terminal { modes, bytes });
    // Relaxed: one word; a thread that is hit before it sees the word leaves the terminal
    // unchanged.
    IS_TAKEN.store(true, Ordering::Relaxed);
    Ok(())
}

/// The terminal has been restored; the handler leaves it unchanged.
pub fn release_terminal() {
    IS_TAKEN.store(false, Ordering::Relaxed);
}

/// The handler. Runs on the thread that raised the signal, at any point of its program.
extern "C" fn end(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    if IS_TAKEN.swap(false, Ordering::Relaxed)
        && let Some(terminal) = TERMINAL.get()
    {
        say(libc::STDOUT_FILENO, &terminal.bytes);
        // SAFETY: a system call on a value that lives as long as the process.
        let _ = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const terminal.modes) };
    }
    let (sentence, place) = if signal == libc::SIGBUS { (TRUNCATED, 0) } else { (DEFECT, 1) };
    say(libc::STDERR_FILENO, sentence);
    if let Some(before) = BEFORE.get() {
        // SAFETY: an action that the system gave us for this signal.
        let _ = unsafe { libc::sigaction(signal, &raw const before[place], std::ptr::null_mut()) };
    }
    // SAFETY: the kernel hands over a valid description of the signal.
    let is_sent = unsafe { (*info).si_code } <= 0;
    if is_sent {
        // Nothing in the program raises it again. It comes when this handler returns.
        // SAFETY: a call without pointers.
        let _ = unsafe { libc::raise(signal) };
    }
}

/// Writes the bytes that the reader accepts in time.
fn say(file: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut poll = libc::pollfd { fd: file, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one description, valid for writing.
        if unsafe { libc::poll(&raw mut poll, 1, PATIENCE_MS) } != 1 {
            return;
        }
        // SAFETY: as many bytes as there are.
        let wrote = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(wrote) {
            Ok(wrote @ 1..) => bytes = &bytes[wrote.min(bytes.len())..],
            _ => return,
        }
    }
}
