//! A loaded plugin, and one decoder of it.
//!
//! Owns every call into a plugin. Loads and creates on a cold thread; [`Handle::decode`] runs on a decode
//! worker, or in a process of its own, and allocates nothing itself. A library stays loaded to the end of
//! the process: its code must be there for as long as a thread may hold values that it made. Another build at
//! its path is loaded beside it.
//!
//! # Why not the loader of `deq-decoder-abi`
//! It takes the length that a plugin reports for true and makes a slice of it. Here a plugin that reports
//! more than it was given room for, or writes past its room, is told from a sound one.

use super::problem::Problem;
use super::{PluginFault, PluginRefused};
use crate::files;
use deq_decoder_abi::interface::{
    ABI_VERSION, AbiVersionFn, CapabilitiesFn, CreateFn, DecodeFn, DecodeRequestFn, DestroyFn, LastErrorFn,
    STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_ARG, STATUS_OK, STATUS_PANIC, STATUS_POISONED, SYM_ABI_VERSION,
    SYM_CAPABILITIES, SYM_CREATE, SYM_DECODE, SYM_DECODE_REQUEST, SYM_DESTROY, SYM_LAST_ERROR,
};
use std::error::Error;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::PoisonError;

/// The libraries that this process has loaded, each with its file as it was then.
#[expect(clippy::disallowed_types, reason = "cold: libraries are loaded by cold threads")]
static LOADED: std::sync::Mutex<Vec<(Build, &'static libloading::Library)>> = std::sync::Mutex::new(Vec::new());

/// Words behind a plugin's room for its answer; they show if it wrote past the room.
const GUARD_WORDS: usize = 8;
const GUARD: u64 = 0x5AFE_5AFE_5AFE_5AFE;
/// Most characters of a plugin's own words in a sentence.
const SAID_MAX: usize = 300;

/// The entry points of a loaded plugin.
#[derive(Clone, Copy)]
pub(super) struct Library {
    create: CreateFn,
    decode: DecodeFn,
    destroy: DestroyFn,
    last_error: LastErrorFn,
}

/// Checks who may write the plugin's file; returns its absolute path.
pub(super) fn checked(path: &str) -> Result<PathBuf, PluginRefused> {
    let unusable = |found: String| PluginRefused::File { path: path.to_owned(), found };
    let rooted = std::path::absolute(path).map_err(|error| unusable(error.to_string()))?;
    let opened = files::open_unnamed(&rooted).and_then(|file| file.metadata());
    let metadata = opened.map_err(|error| unusable(error.to_string()))?;
    if let Some(who) = files::replaceable_by_others(&rooted, &metadata) {
        return Err(PluginRefused::Others { path: path.to_owned(), who });
    }
    Ok(rooted)
}

/// A library's file. While it is loaded, no other file gets its number.
#[derive(Clone, Copy, PartialEq)]
struct Build {
    device: u64,
    number: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Build {
    fn is_same_file(&self, other: &Build) -> bool {
        (self.device, self.number) == (other.device, other.number)
    }
}

/// The library in the file that is at `path` now; loads it if it is not loaded yet.
fn library(path: &Path) -> Result<&'static libloading::Library, PluginRefused> {
    let shown = || path.display().to_string();
    let unusable = |error: std::io::Error| PluginRefused::File { path: shown(), found: error.to_string() };
    let file = path.metadata().map_err(unusable)?;
    let modified = (file.mtime(), file.mtime_nsec());
    let build = Build { device: file.dev(), number: file.ino(), bytes: file.size(), modified };
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((before, library)) = loaded.iter().find(|(before, _)| before.is_same_file(&build)) {
        // The pages that were not read yet are the new build's, the others the old one's.
        return if *before == build { Ok(library) } else { Err(PluginRefused::Overwritten { path: shown() }) };
    }
    let not_a_library = |error: libloading::Error| {
        let found = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        PluginRefused::Load { path: shown(), found }
    };
    // SAFETY: runs the library's initialisers. The operator has named this file, and only the operator and
    // root may write it.
    let library = unsafe { libloading::Library::new(spelled(path, loaded.len())) }.map_err(not_a_library)?;
    // Stays loaded.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    loaded.push((build, library));
    Ok(library)
}

/// The same path in a spelling of its own for each library: for a name that it knows the system returns the
/// library that it loaded by that name, even if another file has taken the place of that library's.
fn spelled(path: &Path, loaded: usize) -> PathBuf {
    let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    folder.join("./".repeat(loaded)).join(file)
}

pub(super) fn load(path: &Path) -> Result<Library, PluginRefused> {
    let library = library(path)?;
    let shown = path.display().to_string();
    let missing = |symbol: &[u8]| PluginRefused::Symbol {
        path: shown.clone(),
        symbol: String::from_utf8_lossy(&symbol[..symbol.len() - 1]).into_owned(),
    };
    // SAFETY: the interface gives these symbols these types.
    let (version, create, decode, destroy, last_error) = unsafe {
        (
            *library.get::<AbiVersionFn>(SYM_ABI_VERSION).map_err(|_| missing(SYM_ABI_VERSION))?,
            library.get::<CreateFn>(SYM_CREATE),
            library.get::<DecodeFn>(SYM_DECODE),
            library.get::<DestroyFn>(SYM_DESTROY),
            library.get::<LastErrorFn>(SYM_LAST_ERROR),
        )
    };
    // SAFETY: takes nothing and reads nothing of ours.
    let found = unsafe { version() };
    // Before all else: another version may have other symbols.
    if found != ABI_VERSION {
        return Err(PluginRefused::Version { path: shown, found, expected: ABI_VERSION });
    }
    let loaded = Library {
        create: *create.map_err(|_| missing(SYM_CREATE))?,
        decode: *decode.map_err(|_| missing(SYM_DECODE))?,
        destroy: *destroy.map_err(|_| missing(SYM_DESTROY))?,
        last_error: *last_error.map_err(|_| missing(SYM_LAST_ERROR))?,
    };
    // SAFETY: the symbols are only looked up, and not called.
    let pair = unsafe {
        [
            library.get::<DecodeRequestFn>(SYM_DECODE_REQUEST).is_ok(),
            library.get::<CapabilitiesFn>(SYM_CAPABILITIES).is_ok(),
        ]
    };
    match pair {
        [true, false] => Err(missing(SYM_CAPABILITIES)),
        [false, true] => Err(missing(SYM_DECODE_REQUEST)),
        _ => Ok(loaded),
    }
}

/// One decoder of a plugin, for one thread at a time.
pub(super) struct Handle {
    library: Library,
    handle: *mut c_void,
    /// A syndrome as the plugin gets it.
    syndrome: Box<[u8]>,
    /// Room for each mechanism once, and the guard behind it.
    out: Box<[u64]>,
}

// SAFETY: the interface lets a handle be used by one thread after another, and a `Handle` has one owner.
unsafe impl Send for Handle {}

impl Handle {
    /// Has the plugin prepare itself for `problem`; takes as long as the plugin does.
    pub(super) fn new(library: Library, problem: &Problem, config: &str) -> Result<Handle, PluginRefused> {
        let refused = |found: String| PluginRefused::Create { found };
        let config = CString::new(config).map_err(|_| refused("its configuration has a zero byte".to_owned()))?;
        let config_or_null = if config.is_empty() { null() } else { config.as_ptr() };
        let mut handle = null_mut();
        // SAFETY: pointers and lengths are those of vectors that outlive the call; the offsets are ascending
        // and end at the number of vertices, each of which is below the number of detectors.
        let status = unsafe {
            (library.create)(
                u64::from(problem.detectors),
                problem.edges() as u64,
                problem.probabilities.as_ptr(),
                problem.offsets.as_ptr(),
                problem.vertices.as_ptr(),
                problem.vertices.len(),
                config_or_null,
                &raw mut handle,
            )
        };
        if status != STATUS_OK {
            return Err(refused(format!("status {status}: {}", said(library))));
        }
        if handle.is_null() {
            return Err(refused("no decoder, although it reported success".to_owned()));
        }
        let syndrome = vec![0; problem.syndrome_bytes()].into();
        let mut out = vec![0; problem.edges() + GUARD_WORDS];
        out[problem.edges()..].fill(GUARD);
        Ok(Handle { library, handle, syndrome, out: out.into() })
    }

    /// Decodes one shot: the mechanisms that the plugin has chosen, unchecked.
    pub(super) fn decode(&mut self, problem: &Problem, syndrome: &[u64]) -> Result<&[u64], PluginFault> {
        super::problem::pack(syndrome, &mut self.syndrome);
        let (room, mut length) = (problem.edges(), 0);
        // SAFETY: the handle is live and ours alone; the syndrome has the bytes that its size needs; `out` has
        // room for more than `room` words; `length` outlives the call.
        let status = unsafe {
            (self.library.decode)(
                self.handle,
                u64::from(problem.detectors),
                self.syndrome.as_ptr(),
                self.syndrome.len(),
                self.out.as_mut_ptr(),
                room,
                &raw mut length,
            )
        };
        if self.out[room..] != [GUARD; GUARD_WORDS] {
            self.out[room..].fill(GUARD);
            return Err(PluginFault::PastRoom);
        }
        match status {
            STATUS_OK if length <= room => Ok(&self.out[..length]),
            STATUS_OK => Err(PluginFault::PastRoom),
            STATUS_BUFFER_TOO_SMALL => Err(PluginFault::NoRoom),
            STATUS_INVALID_ARG => Err(PluginFault::Argument),
            STATUS_PANIC => Err(PluginFault::Panicked),
            STATUS_POISONED => Err(PluginFault::Poisoned),
            _ => Err(PluginFault::Failed),
        }
    }

    /// Bytes on the heap, without the plugin's own.
    pub(super) fn bytes_for(problem: &Problem) -> usize {
        problem.syndrome_bytes() + 8 * (problem.edges() + GUARD_WORDS)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `create`, destroyed once, and no call is under way: `self` is not shared.
        unsafe { (self.library.destroy)(self.handle) };
    }
}

/// The plugin's own words on the last failure of this thread.
fn said(library: Library) -> String {
    // SAFETY: takes nothing.
    let text = unsafe { (library.last_error)() };
    if text.is_null() {
        return "it does not say why".to_owned();
    }
    // SAFETY: not null, and the interface has it end with a zero and stay until the next call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let plain = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    plain.take(SAID_MAX).collect()
}
