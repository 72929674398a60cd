//! Who called the allocator: addresses taken on the spot, named elsewhere.
//!
//! Owns nothing. [`callers`] runs on the offending thread, once in its life; [`described`] on a cold one. Bounded by
//! [`SITE_FRAMES`].

use crate::board::layout::SITE_FRAMES;

/// Callers named.
const NAMED_MAX: usize = 3;
/// Files of callers that say nothing of the cause: the standard library, the walker, this module.
const MACHINERY: [&str; 5] =
    ["/rustc/", "/backtrace-", "hot/memory/guard.rs", "hot/memory/site.rs", "hot/memory/arena.rs"];

/// The addresses of this call's callers, innermost first; 0 where there are no more.
pub(super) fn callers() -> [usize; SITE_FRAMES] {
    let (mut found, mut count) = ([0; SITE_FRAMES], 0);
    // SAFETY: "unsynchronized" is about symbolising; walking alone shares nothing.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            found[count] = frame.ip() as usize;
            count += 1;
            count < SITE_FRAMES
        });
    }
    found
}

/// The innermost callers outside the machinery of allocation, as `function (file:line)`.
pub fn described(site: &[usize]) -> String {
    let mut named: Vec<String> = Vec::new();
    for &address in site.iter().take_while(|address| **address != 0) {
        // A return address may belong to the line after the call.
        backtrace::resolve((address - 1) as *mut _, |symbol| {
            // Inlined functions carry a bare name, so their file tells what they are; what has no
            // file is no code of ours.
            let (Some(name), Some(path), Some(line)) = (symbol.name(), symbol.filename(), symbol.lineno()) else {
                return;
            };
            let path = path.to_string_lossy();
            if named.len() < NAMED_MAX && !MACHINERY.iter().any(|part| path.contains(part)) {
                let file = path.rsplit('/').next().unwrap_or(&path);
                named.push(format!("{name:#} ({file}:{line})"));
            }
        });
    }
    if named.is_empty() { "a place without symbols".to_owned() } else { named.join(" < ") }
}
