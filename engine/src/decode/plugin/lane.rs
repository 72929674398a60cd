//! The lane between a decode worker and the process of a plugin: memory that both map.
//!
//! Owns the mapping and its layout; the steps of both ends, with their orderings, are those of
//! [`pinwheel_edge::slot::outside`], of a ring of one slot: here the worker is the client and the plugin's
//! process is the engine. Everything that a process needs (model, path, configuration) is written before the
//! process starts, which orders it. Every word is atomic, so whatever the other process writes, a read
//! returns some value. The memory's size is sealed: the other process cannot take pages away. Bounds: the
//! model, and [`TEXT_WORDS`] for a refusal.
//!
//! ```text
//!  words: header 16 | shot: head, syndrome | answer: head, mechanisms or text | probabilities | offsets
//!         | vertices | path | configuration          each part begins a cache line
//!  head of an answer: turn (32 bits) | count (24 bits) | status (8 bits): 0 fine, a fault's number, 255 text
//! ```

use super::PluginFault;
use super::problem::Problem;
use crate::clock::Clock;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::outside::{ClientEnd, Outside, Record};
use pinwheel_edge::sync::DataWord;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// "PWLANE01" read as a little-endian word.
const MAGIC: u64 = u64::from_le_bytes(*b"PWLANE01");
const HEADER_WORDS: usize = 16;
const LINE_WORDS: usize = 8;
/// How long a worker spins for an answer. Then it sleeps between two looks: where the process has no core
/// of its own, it gets the worker's. A loop of yields would not do: some schedulers (Linux 6.18) let it
/// hold up everybody else on the core for seconds.
const SPIN: Nanos = Nanos(50_000);
const PAUSE: Duration = Duration::from_micros(10);
/// Most that counts of the time from one look to the next: while the machine runs neither the worker nor
/// the process, no plugin is late.
const GAP_MAX: Nanos = Nanos(1_000_000);
/// Words of an answer at least: room for a refusal's text.
pub(super) const TEXT_WORDS: usize = 64;
/// Status of an answer that is the text of a refusal.
pub(super) const STATUS_TEXT: u8 = 255;
/// Most mechanisms of a model: their number travels in 24 bits.
pub(super) const EDGES_MAX: usize = (1 << 24) - 1;

/// What an answer's head says beside its turn.
pub(super) const fn added(status: u8, count: usize) -> u32 {
    (status as u32) << 24 | count as u32
}

/// The sizes in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    detectors: usize,
    edges: usize,
    vertices: usize,
    path_bytes: usize,
    config_bytes: usize,
}

impl Shape {
    fn detector_words(&self) -> usize {
        self.detectors.div_ceil(64).max(1)
    }

    fn answer_words(&self) -> usize {
        self.edges.max(TEXT_WORDS)
    }

    /// Where each part begins, and the end of the last.
    fn places(&self) -> [usize; 8] {
        let sizes = [
            HEADER_WORDS,
            1 + self.detector_words(),
            1 + self.answer_words(),
            self.edges,
            self.edges + 1,
            self.vertices,
            self.path_bytes.div_ceil(8),
            self.config_bytes.div_ceil(8),
        ];
        let mut end = 0;
        sizes.map(|size| {
            end += size.next_multiple_of(LINE_WORDS);
            end
        })
    }

    fn words(&self) -> usize {
        self.places()[7]
    }
}

/// The mapping of a lane.
pub(super) struct Mapping {
    base: NonNull<AtomicU64>,
    words: usize,
    shape: Shape,
    places: [usize; 8],
}

// SAFETY: shared memory that is accessed only through atomics; nothing in it belongs to one thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(file: impl AsFd, shape: Shape) -> Result<Mapping, Errno> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        let words = shape.words();
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that has these bytes.
        let base = unsafe { mm::mmap(std::ptr::null_mut(), words * 8, prot, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Mapping { base, words, shape, places: shape.places() })
    }

    fn atomics(&self, at: usize, count: usize) -> &[AtomicU64] {
        assert!(at.checked_add(count).is_some_and(|end| end <= self.words), "{count} words at {at} of {}", self.words);
        // SAFETY: in bounds and aligned (the base is a page's). The memory is mapped for as long as `self`,
        // and accessed only as atomics.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), count) }
    }

    fn data(&self, at: usize, count: usize) -> &[DataWord] {
        let words = self.atomics(at, count);
        // SAFETY: a `DataWord` is an `AtomicU64` and nothing else (`repr(transparent)`).
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    fn write(&self, at: usize, values: impl Iterator<Item = u64>, count: usize) {
        self.data(at, count).iter().zip(values).for_each(|(word, value)| word.store(value));
    }

    fn read(&self, at: usize, count: usize) -> Vec<u64> {
        self.data(at, count).iter().map(DataWord::load).collect()
    }

    fn text(&self, at: usize, bytes: usize) -> String {
        let words = self.read(at, bytes.div_ceil(8));
        let all: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).take(bytes).collect();
        String::from_utf8_lossy(&all).into_owned()
    }

    /// What the process of a plugin is to do: its problem, the plugin's path, its configuration.
    pub(super) fn task(&self) -> (Problem, String, String) {
        let Shape { detectors, edges, vertices, path_bytes, config_bytes } = self.shape;
        let [_, _, probabilities, offsets, vertices_at, path, config, _] = self.places;
        let probabilities = self.read(probabilities, edges).into_iter().map(f64::from_bits).collect();
        let offsets = self.read(offsets, edges + 1);
        let vertices = self.read(vertices_at, vertices);
        let problem = Problem::of_parts(detectors as u32, probabilities, offsets, vertices);
        (problem, self.text(path, path_bytes), self.text(config, config_bytes))
    }
}

impl Outside for Mapping {
    fn shot(&self, _slot: usize) -> Record<'_> {
        let at = self.places[0];
        Record { head: &self.atomics(at, 1)[0], words: self.data(at + 1, self.shape.detector_words()) }
    }

    fn answer(&self, _slot: usize) -> Record<'_> {
        let at = self.places[1];
        Record { head: &self.atomics(at, 1)[0], words: self.data(at + 1, self.shape.answer_words()) }
    }

    /// Unused: each process has a lane of its own.
    fn granted(&self) -> &AtomicU64 {
        &self.atomics(HEADER_WORDS - 1, 1)[0]
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping; no reference outlives `self`, by their lifetimes.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.words * 8) };
    }
}

/// The process's end: maps the lane that `file` holds; `None` if it holds none.
pub(super) fn open(file: impl AsFd) -> Option<Mapping> {
    let mut header = [0; HEADER_WORDS * 8];
    if rustix::io::pread(&file, &mut header, 0).ok()? != header.len() {
        return None;
    }
    let mut words = header.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    if words.next()? != MAGIC {
        return None;
    }
    let mut size = || usize::try_from(words.next()?).ok().filter(|size| *size < 1 << 32);
    let (detectors, edges, vertices) = (size()?, size()?, size()?);
    let shape = Shape { detectors, edges, vertices, path_bytes: size()?, config_bytes: size()? };
    let bytes = usize::try_from(fstat(&file).ok()?.st_size).ok()?;
    (bytes == shape.words() * 8).then_some(())?;
    Mapping::of(file, shape).ok()
}

/// The worker's end.
pub(super) struct Lane {
    mapping: Mapping,
    end: ClientEnd,
    /// The supervisor has seen the process end. Relaxed: it publishes nothing; the lane is not used again.
    gone: Arc<AtomicBool>,
    pub(super) number: u64,
}

impl Lane {
    /// A lane with all that its process needs, and the file by which the process gets it. The first request
    /// stands in it: to get ready.
    pub(super) fn new(problem: &Problem, path: &str, config: &str, number: u64) -> Result<(Lane, OwnedFd), Errno> {
        let shape = Shape {
            detectors: problem.detectors as usize,
            edges: problem.edges(),
            vertices: problem.vertices.len(),
            path_bytes: path.len(),
            config_bytes: config.len(),
        };
        if shape.edges > EDGES_MAX {
            return Err(Errno::TOOBIG);
        }
        let file = memfd_create("pinwheel-plugin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        // Room that is missing must be an error here, not a fault signal at a later store.
        fallocate(&file, FallocateFlags::empty(), 0, shape.words() as u64 * 8)?;
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        let mapping = Mapping::of(&file, shape)?;
        let header = [MAGIC, shape.detectors as u64, shape.edges as u64, shape.vertices as u64];
        let lengths = [shape.path_bytes as u64, shape.config_bytes as u64];
        mapping.write(0, header.into_iter().chain(lengths), 6);
        let [_, _, probabilities, offsets, vertices, path_at, config_at, _] = mapping.places;
        mapping.write(probabilities, problem.probabilities.iter().map(|value| value.to_bits()), shape.edges);
        mapping.write(offsets, problem.offsets.iter().copied(), shape.edges + 1);
        mapping.write(vertices, problem.vertices.iter().copied(), shape.vertices);
        mapping.write(path_at, words_of(path), path.len().div_ceil(8));
        mapping.write(config_at, words_of(config), config.len().div_ceil(8));
        let mut end = ClientEnd::new(1);
        assert!(end.publish(&mapping, 0, &[]), "the slot of a new lane is free");
        Ok((Lane { mapping, end, gone: Arc::default(), number }, file))
    }

    /// Where the supervisor notes that the process has ended.
    pub(super) fn gone(&self) -> &Arc<AtomicBool> {
        &self.gone
    }

    /// The answer to the last request, if it is there: status and count.
    fn collect(&mut self) -> Option<(u8, usize)> {
        let position = self.end.published() - 1;
        let added = self.end.collect(&self.mapping, position, &mut [])?;
        Some(((added >> 24) as u8, (added & EDGES_MAX as u32) as usize))
    }

    /// Whether the process is ready, once it says so; or why it refuses.
    pub(super) fn readiness(&mut self) -> Option<Result<(), String>> {
        let (status, count) = self.collect()?;
        let text = || self.mapping.text(self.mapping.places[1] + 1, count.min(TEXT_WORDS * 8));
        Some(if status == STATUS_TEXT { Err(text()) } else { Ok(()) })
    }

    /// Has the process decode a shot: the mechanisms that the plugin has chosen, unchecked. Waits for at most
    /// `limit`.
    pub(super) fn decode(&mut self, syndrome: &[u64], clock: &Clock, limit: Ticks) -> Result<&[DataWord], PluginFault> {
        let (alone, most) = (clock.rate().ticks(SPIN), clock.rate().ticks(GAP_MAX));
        // After a shot without an answer the lane is given back and not used again: the slot is free.
        if self.gone.load(Ordering::Relaxed) || !self.end.publish(&self.mapping, 0, syndrome) {
            return Err(PluginFault::Gone);
        }
        let (mut waited, mut looked) = (Ticks(0), clock.ticks());
        let (status, count) = loop {
            if let Some(found) = self.collect() {
                break found;
            }
            if self.gone.load(Ordering::Relaxed) {
                return Err(PluginFault::Gone);
            }
            let now = clock.ticks();
            waited = Ticks(waited.0 + now.since(looked).0.min(most.0));
            looked = now;
            if waited > limit {
                return Err(PluginFault::Late);
            }
            if waited > alone {
                pause();
            } else {
                std::hint::spin_loop();
            }
        };
        if status != 0 {
            return Err(PluginFault::from_number(status).unwrap_or(PluginFault::Failed));
        }
        if count > self.mapping.shape.edges {
            return Err(PluginFault::PastRoom);
        }
        // They are read before the next shot is published, which hands the words to the process again.
        Ok(&self.mapping.answer(0).words[..count])
    }
}

#[expect(clippy::disallowed_methods, reason = "bounded; the worker has nothing to do until the process answers")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// The bytes of `text`, eight to a word.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.as_bytes().chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Lane, Nanos, PluginFault, Problem, STATUS_TEXT, added, open, words_of};
    use crate::clock::Clock;
    use crate::code::Model;
    use pinwheel_edge::slot::outside::EngineEnd;
    use std::sync::atomic::Ordering;

    fn problem() -> Problem {
        Problem::new(&Model::parse(b"error(0.1) D0 L0\nerror(0.2) D0 D70\n").unwrap()).unwrap()
    }

    /// A worker's lane whose request to get ready was answered, and the process's ends.
    fn lane() -> (Lane, super::Mapping, EngineEnd) {
        let (mut lane, file) = Lane::new(&problem(), "/opt/a decoder.so", "{\"k\": 1}", 1).unwrap();
        let (mapping, mut end) = (open(&file).unwrap(), EngineEnd::new(1));
        assert!(lane.readiness().is_none());
        assert!(end.take(&mapping, &mut []).is_some() && end.answer(&mapping, 0, added(0, 0), &[]));
        assert_eq!(lane.readiness(), Some(Ok(())));
        (lane, mapping, end)
    }

    #[test]
    fn a_process_finds_its_task_in_the_lane() {
        let (_lane, mapping, _) = lane();
        let (found, path, config) = mapping.task();
        let expected = problem();
        assert_eq!((path.as_str(), config.as_str()), ("/opt/a decoder.so", "{\"k\": 1}"));
        assert_eq!((found.detectors, &found.offsets), (71, &expected.offsets));
        assert_eq!((&found.vertices, &found.probabilities), (&expected.vertices, &expected.probabilities));
    }

    #[test]
    fn the_memory_of_a_lane_cannot_be_taken_away_and_other_files_are_no_lanes() {
        let (_lane, file) = Lane::new(&problem(), "", "", 1).unwrap();
        assert!(rustix::fs::ftruncate(&file, 0).is_err());
        let other = tempfile::tempfile().unwrap();
        assert!(open(&other).is_none());
        other.set_len(1 << 20).unwrap();
        assert!(open(&other).is_none());
    }

    #[test]
    fn a_shot_without_an_answer_within_the_limit_is_late_and_one_whose_process_ended_is_gone() {
        let clock = Clock::machine();
        let limit = clock.rate().ticks(Nanos(2_000_000));
        let (mut late, ..) = lane();
        assert_eq!(late.decode(&[0, 0], &clock, limit).err(), Some(PluginFault::Late));
        assert_eq!(late.decode(&[0, 0], &clock, limit).err(), Some(PluginFault::Gone), "the slot is not free again");
        let (mut gone, ..) = lane();
        gone.gone().store(true, Ordering::Relaxed);
        assert_eq!(gone.decode(&[0, 0], &clock, limit).err(), Some(PluginFault::Gone));
    }

    #[test]
    fn a_lane_carries_shots_faults_and_lengths_past_its_room() {
        let clock = Clock::machine();
        let limit = clock.rate().ticks(Nanos(5_000_000_000));
        let (mut lane, mapping, mut end) = lane();
        let answers = [(0, 2), (PluginFault::Unexplained as u8, 0), (99, 0), (0, 3), (0, 0)];
        let process = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for (status, count) in answers {
                let mut syndrome = [0; 2];
                while end.take(&mapping, &mut syndrome).is_none() {
                    std::hint::spin_loop();
                }
                seen.push(syndrome);
                assert!(end.answer(&mapping, 0, added(status, count), &[7, 8]));
            }
            seen
        });
        let mut asked = |shot| {
            let found = lane.decode(&[shot, 64], &clock, limit);
            found.map(|words| words.iter().map(|word| word.load()).collect::<Vec<_>>())
        };
        assert_eq!(asked(1), Ok(vec![7, 8]));
        assert_eq!(asked(2), Err(PluginFault::Unexplained));
        assert_eq!(asked(3), Err(PluginFault::Failed), "a number that is no fault's");
        assert_eq!(asked(4), Err(PluginFault::PastRoom));
        assert_eq!(asked(5), Ok(vec![]));
        assert_eq!(process.join().unwrap(), [[1, 64], [2, 64], [3, 64], [4, 64], [5, 64]]);
    }

    #[test]
    fn a_refusal_is_a_text() {
        let (mut lane, file) = Lane::new(&problem(), "", "", 1).unwrap();
        let (mapping, mut end) = (open(&file).unwrap(), EngineEnd::new(1));
        let said = "it has no table";
        let words: Vec<u64> = words_of(said).collect();
        assert!(end.take(&mapping, &mut []).is_some());
        assert!(end.answer(&mapping, 0, added(STATUS_TEXT, said.len()), &words));
        assert_eq!(lane.readiness(), Some(Err(said.to_owned())));
    }
}
