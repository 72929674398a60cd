//! The collection: blocks of shots on threads, stop rules, rows.
//!
//! Owns the threads while [`collect`] runs; they end with it. The calling thread gives each thread a
//! block, takes its counts, and appends rows. Bounds: two blocks a thread in work, and the counts of
//! finished blocks that wait for an earlier one.
//!
//! # Why blocks count in their order
//! Each block is drawn from a seed of its own, that of the shots before it. Only blocks without a gap
//! before them are counted. So a collection that was killed goes on at its last row and draws no shot
//! twice, and one seed gives the same counts with any number of threads.

use crate::faults::FaultCounts;
use crate::gaps::GapCounts;
use crate::results::Results;
use crate::rows::Row;
use crate::task::{FileShots, Task};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::code::Sampler;
use pinwheel_engine::decode::{DecodeError, Matcher, MatcherModel, ReadyError};
use pinwheel_engine::pipe::gap_db;
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// Most threads.
pub const THREADS_MAX: usize = 1_024;
/// Time between two appends.
const APPEND_EVERY_NS: u64 = 1_000_000_000;
/// Time between two looks at stop rules and progress.
const LOOK: Duration = Duration::from_millis(100);
/// Shots between two looks at the request to stop.
const SHOTS_PER_LOOK: u64 = 64;
/// Blocks in work for each thread.
const BLOCKS_PER_THREAD: usize = 2;

/// When a task is done: as soon as one of them is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Shots of each task.
    pub shots: Option<u64>,
    /// Errors of each task.
    pub errors: Option<u64>,
    /// Time of the whole collection.
    pub time: Option<Duration>,
}

/// One of several collections that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl Shard {
    /// The only one.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Its part of `all`.
    pub fn part(self, all: u64) -> u64 {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        all / count + u64::from(index < all % count)
    }
}

/// How to collect.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Stop rules of all shards together.
    pub limits: Limits,
    /// Number of threads, 1..=[`THREADS_MAX`].
    pub threads: usize,
    /// Seed of all draws. Collections with equal seeds draw equal shots.
    pub seed: u64,
    /// Which part of the work this one does.
    pub shard: Shard,
    /// What else is counted.
    pub count_by: CountBy,
}

/// What shots and errors are counted by, in addition to their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountBy {
    /// By the number of faults of a shot. Shots of files are not.
    pub faults: bool,
    /// By the gap of an answer; those that cannot be decoded count as wrong with a gap of 0 dB.
    pub gaps: bool,
}

/// How far a collection is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Tasks that are done.
    pub done: usize,
    /// All tasks.
    pub tasks: usize,
    /// Shots counted by this process.
    pub shots: u64,
    /// Errors among them.
    pub errors: u64,
    /// Time so far, nanoseconds.
    pub elapsed_ns: u64,
    /// Estimated time left, nanoseconds; `None`: not known yet.
    pub left_ns: Option<u64>,
}

/// Why a collection ended early.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CollectError {
    #[error("found {found}, expected {expected}")]
    Unusable { found: String, expected: String },
    #[error("cannot append rows ({0}); what was counted before is there: free space, and collect again to go on")]
    Append(io::Error),
    #[error("{metadata} by {decoder}: {error}")]
    Task { metadata: String, decoder: String, error: Box<ReadyError> },
    #[error(
        "{metadata} by {decoder}: {error}, and it was not ready again within a minute; what was counted before is \
         there: see that the plugin starts, and collect again to go on"
    )]
    Decoder { metadata: String, decoder: String, error: DecodeError },
    #[error(
        "{metadata} by {decoder}: found a defect of this program while it decoded shots {first} to {last} ({said}), \
         expected counts; what was counted before is there: report it with the model, and collect the other tasks \
         without this one"
    )]
    Panicked {
        metadata: String,
        decoder: String,
        /// First shot of the block, from 0.
        first: u64,
        last: u64,
        said: String,
    },
    #[error("found {0} at the start of a thread, expected {1} threads; collect with fewer: --threads")]
    Thread(io::Error, usize),
}

/// A block of a task.
struct Job {
    task: usize,
    prepared: Arc<Prepared>,
    from: u64,
    shots: u64,
    seed: u64,
}

/// A task that is ready to be decoded.
struct Prepared {
    task: Task,
    decoder: MatcherModel,
    count_by: CountBy,
}

/// A block that no thread could count.
struct Failed {
    task: usize,
    from: u64,
    shots: u64,
    why: Why,
}

enum Why {
    /// Its thread panicked.
    Panicked(String),
    /// It has no decoder any more.
    Decoder(DecodeError),
}

impl Failed {
    fn error(self, tasks: &[Task]) -> CollectError {
        let Failed { task, from: first, shots, why } = self;
        let (metadata, decoder) = (tasks[task].metadata.clone(), tasks[task].decoder_name());
        match why {
            Why::Panicked(said) => CollectError::Panicked { metadata, decoder, first, last: first + shots - 1, said },
            Why::Decoder(error) => CollectError::Decoder { metadata, decoder, error },
        }
    }
}

/// The counts of a block.
struct Block {
    task: usize,
    from: u64,
    shots: u64,
    errors: u64,
    ns: u64,
    counts: Counts,
}

/// Counts in addition to the sums.
#[derive(Default)]
struct Counts {
    faults: FaultCounts,
    gaps: GapCounts,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.faults.merge(&other.faults);
        self.gaps.merge(&other.gaps);
    }

    /// As in a row.
    fn named(&self) -> BTreeMap<String, u64> {
        let mut named = self.faults.named();
        named.append(&mut self.gaps.named());
        named
    }
}

/// How far a task is.
struct State {
    /// Shots and errors in the file and counted since.
    shots: u64,
    errors: u64,
    limits: Limits,
    prepared: Option<Arc<Prepared>>,
    /// First shot that no block has.
    next: u64,
    /// Finished blocks that wait for an earlier one.
    waiting: BTreeMap<u64, Block>,
    /// Counts that are not in the file.
    unsaved: Row,
    /// Those in addition to the sums.
    counts: Counts,
    /// Time of the blocks of this process, and their shots.
    ns: u64,
    own_shots: u64,
    own_errors: u64,
}

impl State {
    fn of(task: &Task, at: usize, options: &Options, results: &Results) -> State {
        let counted = results.of(&task.strong_id).cloned().unwrap_or_default();
        let Options { limits, shard, .. } = *options;
        let (shots, errors) = match &task.shots {
            // A file's shots are not split: one shard has them all, and both limits with them.
            Some(files) => {
                let is_here = at as u64 % u64::from(shard.count) == u64::from(shard.index);
                let all = if is_here { files.shots.len() as u64 } else { 0 };
                (Some(limits.shots.map_or(all, |limit| limit.min(all))), limits.errors)
            }
            None => {
                let errors = limits.errors.map(|limit| limit.div_ceil(u64::from(shard.count)));
                (limits.shots.map(|limit| shard.part(limit)), errors)
            }
        };
        State {
            shots: counted.shots,
            errors: counted.errors,
            limits: Limits { shots, errors, time: None },
            prepared: None,
            next: counted.shots,
            waiting: BTreeMap::new(),
            unsaved: Row::default(),
            counts: Counts::default(),
            ns: 0,
            own_shots: 0,
            own_errors: 0,
        }
    }

    fn is_done(&self) -> bool {
        let reached = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        reached(self.limits.shots, self.shots) || reached(self.limits.errors, self.errors)
    }

    /// Whether there are shots that no block has.
    fn has_more(&self) -> bool {
        !self.is_done() && self.next < self.limits.shots.unwrap_or(u64::MAX)
    }

    /// Counts the blocks that have no gap before them.
    fn count(&mut self) {
        while let Some(block) = self.waiting.remove(&self.shots).filter(|_| !self.is_done()) {
            self.shots += block.shots;
            self.errors += block.errors;
            self.own_shots += block.shots;
            self.own_errors += block.errors;
            self.ns += block.ns;
            self.unsaved.shots += block.shots;
            self.unsaved.errors += block.errors;
            self.unsaved.seconds += block.ns as f64 / 1e9;
            self.counts.merge(&block.counts);
        }
        if self.is_done() {
            self.waiting.clear();
        }
    }

    /// The counts that are not in the file.
    fn take_unsaved(&mut self, task: &Task) -> Option<Row> {
        let counted = std::mem::take(&mut self.unsaved);
        let counts = std::mem::take(&mut self.counts).named();
        let (decoder, strong_id) = (task.decoder_name(), task.strong_id.clone());
        (counted.shots > 0).then(|| Row { decoder, strong_id, metadata: task.metadata.clone(), counts, ..counted })
    }

    /// Estimated time of one thread until it is done, nanoseconds; `None`: not known.
    fn left_ns(&self, ns_per_shot: f64) -> Option<f64> {
        if self.is_done() {
            return Some(0.0);
        }
        let by_shots = self.limits.shots.map(|limit| (limit - self.shots) as f64);
        let by_errors = self.limits.errors.filter(|_| self.errors > 0);
        let by_errors = by_errors.map(|limit| (limit - self.errors) as f64 * self.shots as f64 / self.errors as f64);
        let left = by_shots.into_iter().chain(by_errors).min_by(f64::total_cmp)?;
        Some(left * if self.own_shots > 0 { self.ns as f64 / self.own_shots as f64 } else { ns_per_shot })
    }
}

/// A task that is there twice: its shots would count twice.
pub fn repeated(tasks: &[Task]) -> Option<&Task> {
    let is_again = |at: &usize| tasks[..*at].iter().any(|before| before.strong_id == tasks[*at].strong_id);
    (0..tasks.len()).find(is_again).map(|at| &tasks[at])
}

/// Refuses what would count wrong, or nothing.
fn check(tasks: &[Task], options: &Options) -> Result<(), CollectError> {
    let refused = |found: String, expected: String| Err(CollectError::Unusable { found, expected });
    let Shard { index, count } = options.shard;
    if index >= count {
        return refused(format!("part {index} of {count}"), "a part below their number".to_owned());
    }
    if !(1..=THREADS_MAX).contains(&options.threads) {
        return refused(format!("{} threads", options.threads), format!("1 to {THREADS_MAX}"));
    }
    if let Some(task) = repeated(tasks) {
        return refused(format!("{} by {} twice", task.metadata, task.decoder_name()), "each task once".to_owned());
    }
    for Task { model, shots, metadata, .. } in tasks {
        let Some(FileShots { shots, observables }) = shots.as_deref() else { continue };
        let found = [shots.width_bits as usize, observables.width_bits as usize, observables.len()];
        let expected = [model.detectors as usize, model.observables as usize, shots.len()];
        if found != expected {
            let say =
                |[bits, flips, shots]: [usize; 3]| format!("{bits} bits, {flips} true observables, {shots} shots");
            return refused(format!("{metadata} with {} of them", say(found)), say(expected));
        }
    }
    Ok(())
}

/// Collects `tasks` until each has reached a limit, the time is over, or `stop` is set. Appends to `results`, and tells
/// `report` of the progress, about ten times a second.
///
/// # Errors
/// [`CollectError`]; what was appended before is in the file.
pub fn collect(
    tasks: &[Task],
    results: &mut Results,
    options: &Options,
    stop: &AtomicBool,
    mut report: impl FnMut(&Progress),
) -> Result<Progress, CollectError> {
    check(tasks, options)?;
    let clock = Clock::machine();
    let states = tasks.iter().enumerate().map(|(at, task)| State::of(task, at, options, results)).collect();
    let (jobs, waiting_jobs) = unbounded::<Job>();
    let (found, blocks) = unbounded();
    // Of the threads alone: blocks in work are dropped at the end.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let started = (0..options.threads).try_for_each(|_| {
            start(scope, waiting_jobs.clone(), found.clone(), &is_over, clock.clone())
                .map_err(|error| CollectError::Thread(error, options.threads))
        });
        drop((waiting_jobs, found));
        let mut collection = Collection { tasks, states, options, jobs, in_work: 0, clock: &clock, appended_ns: 0 };
        let ended = started.and_then(|()| collection.run(&blocks, results, stop, &mut report));
        // Relaxed: the flag has no other memory behind it.
        is_over.store(true, Ordering::Relaxed);
        // Also after an error: what was counted is kept.
        let appended = collection.append(results);
        let progress = ended?;
        appended.map(|()| progress)
    })
}

/// The calling thread's part.
struct Collection<'a> {
    tasks: &'a [Task],
    states: Vec<State>,
    options: &'a Options,
    jobs: Sender<Job>,
    in_work: usize,
    clock: &'a Clock,
    appended_ns: u64,
}

impl Collection<'_> {
    fn run(
        &mut self,
        blocks: &Receiver<Result<Block, Failed>>,
        results: &mut Results,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Progress, CollectError> {
        let begin = self.clock.ticks();
        let mut reported_ns = 0;
        loop {
            let now_ns = self.clock.rate().nanos(self.clock.ticks().since(begin)).0;
            let is_late = self.options.limits.time.is_some_and(|time| u128::from(now_ns) >= time.as_nanos());
            // Relaxed: see above.
            if is_late || stop.load(Ordering::Relaxed) || self.states.iter().all(State::is_done) {
                let progress = self.progress(now_ns);
                report(&progress);
                return Ok(progress);
            }
            self.give()?;
            match blocks.recv_timeout(LOOK) {
                Ok(Err(failed)) => return Err(failed.error(self.tasks)),
                Ok(Ok(block)) => {
                    self.in_work -= 1;
                    let state = &mut self.states[block.task];
                    state.waiting.insert(block.from, block);
                    state.count();
                }
                Err(RecvTimeoutError::Timeout) => {}
                // No thread ends before the collection is over; if one could, the scope passes its panic on.
                Err(RecvTimeoutError::Disconnected) => return Ok(self.progress(now_ns)),
            }
            if now_ns - self.appended_ns >= APPEND_EVERY_NS {
                self.append(results)?;
                self.appended_ns = now_ns;
            }
            if now_ns - reported_ns >= LOOK.as_nanos() as u64 {
                report(&self.progress(now_ns));
                reported_ns = now_ns;
            }
        }
    }

    /// Gives the threads blocks of the first tasks that have some.
    fn give(&mut self) -> Result<(), CollectError> {
        while self.in_work < self.options.threads * BLOCKS_PER_THREAD {
            let Some(at) = self.states.iter().position(State::has_more) else { return Ok(()) };
            let (task, state) = (&self.tasks[at], &mut self.states[at]);
            let prepared = match &state.prepared {
                Some(prepared) => Arc::clone(prepared),
                None => {
                    let count_by = self.options.count_by;
                    let prepared = task.prepare();
                    let prepared = if count_by.gaps {
                        prepared.and_then(|decoder| decoder.with_confidence(&task.model))
                    } else {
                        prepared
                    };
                    let decoder = prepared.map_err(|error| CollectError::Task {
                        metadata: task.metadata.clone(),
                        decoder: task.decoder_name(),
                        error: Box::new(error),
                    })?;
                    Arc::clone(state.prepared.insert(Arc::new(Prepared { task: task.clone(), decoder, count_by })))
                }
            };
            let left = state.limits.shots.unwrap_or(u64::MAX) - state.next;
            let (from, shots) = (state.next, task.block_shots().min(left));
            let seed = task.block_seed(self.options.seed, self.options.shard.index, from);
            state.next += shots;
            self.in_work += 1;
            // The threads take jobs until this end is dropped.
            let _ = self.jobs.send(Job { task: at, prepared, from, shots, seed });
        }
        Ok(())
    }

    fn append(&mut self, results: &mut Results) -> Result<(), CollectError> {
        let unsaved = self.states.iter_mut().zip(self.tasks);
        let rows: Vec<Row> = unsaved.filter_map(|(state, task)| state.take_unsaved(task)).collect();
        // What is done needs its tables no more.
        self.states.iter_mut().filter(|state| state.is_done()).for_each(|state| state.prepared = None);
        if rows.is_empty() { Ok(()) } else { results.append(&rows).map_err(CollectError::Append) }
    }

    fn progress(&self, elapsed_ns: u64) -> Progress {
        let shots: u64 = self.states.iter().map(|state| state.own_shots).sum();
        let ns: u64 = self.states.iter().map(|state| state.ns).sum();
        let each = if shots > 0 { ns as f64 / shots as f64 } else { f64::NAN };
        let left: Option<f64> = self.states.iter().map(|state| state.left_ns(each)).sum();
        let left = left.filter(|left| left.is_finite()).map(|left| (left / self.options.threads as f64) as u64);
        let time = self.options.limits.time.map(|time| (time.as_nanos() as u64).saturating_sub(elapsed_ns));
        Progress {
            done: self.states.iter().filter(|state| state.is_done()).count(),
            tasks: self.states.len(),
            shots,
            errors: self.states.iter().map(|state| state.own_errors).sum(),
            elapsed_ns,
            left_ns: left.into_iter().chain(time).min(),
        }
    }
}

/// Starts a thread that decodes blocks until there are no more.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    jobs: Receiver<Job>,
    found: Sender<Result<Block, Failed>>,
    is_over: &'scope AtomicBool,
    clock: Clock,
) -> io::Result<()> {
    std::thread::Builder::new().name("collect".to_owned()).spawn_scoped(scope, move || {
        let mut last: Option<(usize, Worker)> = None;
        for job in jobs {
            // Nothing of a worker that panicked is used again.
            let decoded = catch_unwind(AssertUnwindSafe(|| {
                let mut worker = match last.take() {
                    Some((task, worker)) if task == job.task => worker,
                    _ => Worker::new(&job.prepared),
                };
                let block = worker.decode(&job, is_over, &clock);
                last = Some((job.task, worker));
                block
            }));
            let Job { task, from, shots, .. } = job;
            let failed = |why| Failed { task, from, shots, why };
            let block = match decoded {
                Ok(Ok(block)) => block.map(Ok),
                Ok(Err(error)) => Some(Err(failed(Why::Decoder(error)))),
                Err(payload) => Some(Err(failed(Why::Panicked(said(payload.as_ref()))))),
            };
            // Over, or the caller has left.
            let Some(block) = block else { return };
            if found.send(block).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// The text of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
}

/// What a thread needs for a task.
struct Worker {
    matcher: Box<dyn Matcher>,
    sampler: Option<Sampler>,
    shot: Vec<u64>,
    truth: Vec<u64>,
    predicted: Vec<u64>,
    /// The answer to a shot without a detection event, and its gap.
    quiet: Option<(Vec<u64>, Option<f64>)>,
}

impl Worker {
    fn new(prepared: &Prepared) -> Worker {
        let model = &prepared.task.model;
        let observables = vec![0; model.observable_words()];
        Worker {
            matcher: prepared.decoder.matcher(),
            sampler: prepared.task.shots.is_none().then(|| Sampler::new(model, 0)),
            shot: vec![0; model.detector_words()],
            truth: observables.clone(),
            predicted: observables,
            quiet: None,
        }
    }

    /// The counts of a block; `None` once the collection is over.
    fn decode(&mut self, job: &Job, is_over: &AtomicBool, clock: &Clock) -> Result<Option<Block>, DecodeError> {
        self.matcher.wait()?;
        let begin = clock.ticks();
        let (mut errors, mut counts) = (0, Counts::default());
        if let Some(sampler) = &mut self.sampler {
            sampler.restart(job.seed);
        }
        for shot in job.from..job.from + job.shots {
            // Relaxed: the flag has no other memory behind it.
            if shot % SHOTS_PER_LOOK == 0 && is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let happened = match (&mut self.sampler, &job.prepared.task.shots) {
                (Some(sampler), _) => Some(sampler.draw(&mut self.shot, &mut self.truth)),
                (None, Some(files)) => {
                    // A model without observables has a word for them, and its files have none.
                    let (shot, truth) = (files.shots.shot(shot as usize), files.observables.shot(shot as usize));
                    self.shot[..shot.len()].copy_from_slice(shot);
                    self.truth[..truth.len()].copy_from_slice(truth);
                    None
                }
                (None, None) => None,
            };
            let (is_wrong, gap) = self.is_wrong()?;
            errors += u64::from(is_wrong);
            let count_by = job.prepared.count_by;
            if let Some(happened) = happened.filter(|_| count_by.faults) {
                counts.faults.add(happened, is_wrong);
            }
            if let Some(gap) = gap.filter(|_| count_by.gaps) {
                counts.gaps.add(gap_db(gap), is_wrong);
            }
        }
        let ns = clock.rate().nanos(clock.ticks().since(begin)).0;
        Ok(Some(Block { task: job.task, from: job.from, shots: job.shots, errors, ns, counts }))
    }

    /// Decodes the shot: whether the answer is wrong, and its gap. A shot that cannot be decoded is wrong, with
    /// a gap of 0. An error if no further shot can be decoded.
    fn is_wrong(&mut self) -> Result<(bool, Option<f64>), DecodeError> {
        let is_quiet = self.shot.iter().all(|word| *word == 0);
        if let Some((quiet, gap)) = self.quiet.as_ref().filter(|_| is_quiet) {
            return Ok((*quiet != self.truth, *gap));
        }
        let Ok(decoded) = self.matcher.decode(&self.shot, &mut self.predicted) else {
            self.matcher.wait()?;
            return Ok((true, Some(0.0)));
        };
        if is_quiet {
            self.quiet = Some((self.predicted.clone(), decoded.gap));
        }
        Ok((self.predicted != self.truth, decoded.gap))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{CountBy, Limits, Options, Progress, Shard, collect};
    use crate::results::{Results, merged};
    use crate::rows::Row;
    use crate::task::{FileShots, Task, metadata_of_name};
    use pinwheel_engine::code::{Format, Layout, Model, Sampler, ShotSet, ShotWriter, bundled_named};
    use pinwheel_engine::profile::Decoder;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    fn task(name: &str, decoder: Decoder) -> Task {
        Task::new(Arc::new(bundled_named(name).unwrap()), decoder, None, &metadata_of_name(name))
    }

    fn options(shots: u64, threads: usize) -> Options {
        let limits = Limits { shots: Some(shots), ..Limits::default() };
        Options { limits, threads, seed: 7, shard: Shard::WHOLE, count_by: CountBy::default() }
    }

    fn collected(path: &Path, tasks: &[Task], options: &Options) -> Progress {
        let mut results = Results::open(path).unwrap();
        collect(tasks, &mut results, options, &AtomicBool::new(false), |_| {}).unwrap()
    }

    fn sums(path: &Path) -> Vec<(u64, u64)> {
        merged(&[path], |_, _| ()).unwrap().iter().map(|row| (row.shots, row.errors)).collect()
    }

    /// Wrong answers of the first shots of the first block, by the same parts without this module.
    fn counted_alone(task: &Task, shots: u64) -> u64 {
        let mut sampler = Sampler::new(&task.model, task.block_seed(7, 0, 0));
        let mut matcher = task.prepare().unwrap().matcher();
        let (mut shot, mut truth) = (vec![0; task.model.detector_words()], vec![0; task.model.observable_words()]);
        let mut predicted = truth.clone();
        let mut is_wrong = |_: &u64| {
            sampler.draw(&mut shot, &mut truth);
            matcher.decode(&shot, &mut predicted).unwrap();
            predicted != truth
        };
        (0..shots).filter(&mut is_wrong).count() as u64
    }

    #[test]
    fn a_seed_gives_the_same_counts_with_any_number_of_threads_and_those_of_the_parts_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = [task("surface_d3", Decoder::Matching), task("surface_d3", Decoder::UnionFind)];
        let block = tasks[0].block_shots();
        let mut found = Vec::new();
        for threads in [1, 2, 5] {
            let path = dir.path().join(format!("{threads}.csv"));
            let progress = collected(&path, &tasks, &options(2 * block + 100, threads));
            assert_eq!((progress.done, progress.shots), (2, 2 * (2 * block + 100)));
            found.push(sums(&path));
        }
        assert_eq!((&found[0], &found[0]), (&found[1], &found[2]));
        let path = dir.path().join("one.csv");
        collected(&path, &tasks[..1], &options(1_000, 2));
        assert_eq!(sums(&path), [(1_000, counted_alone(&tasks[0], 1_000))]);
    }

    #[test]
    fn a_collection_that_was_stopped_goes_on_where_it_was_and_counts_no_shot_twice() {
        let dir = tempfile::tempdir().unwrap();
        let (path, whole) = (dir.path().join("parts.csv"), dir.path().join("whole.csv"));
        let tasks = [task("surface_d3", Decoder::Matching)];
        let shots = 16 * tasks[0].block_shots();
        collected(&whole, &tasks, &options(shots, 2));
        // Stopped after each tenth of a second in which a block was counted.
        let mut stops = 0;
        for _ in 0..1_000 {
            let stop = AtomicBool::new(false);
            let mut results = Results::open(&path).unwrap();
            let is_done = collect(&tasks, &mut results, &options(shots, 2), &stop, |progress| {
                stop.store(progress.shots > 0, Ordering::Relaxed);
            });
            if is_done.unwrap().done == 1 {
                break;
            }
            stops += 1;
        }
        assert_eq!(sums(&path), sums(&whole));
        assert!(stops > 0, "it was never stopped");
        assert_eq!(collected(&path, &tasks, &options(shots, 2)).shots, 0, "all is there");
    }

    #[test]
    fn a_limit_of_errors_or_of_time_ends_a_task() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = [task("surface_d3", Decoder::Matching)];
        let limits = Limits { errors: Some(100), ..Limits::default() };
        let path = dir.path().join("errors.csv");
        collected(&path, &tasks, &Options { limits, ..options(0, 2) });
        let [(shots, errors)] = sums(&path)[..] else { panic!() };
        assert!(errors >= 100 && shots % tasks[0].block_shots() == 0, "{errors} {shots}");
        let limits = Limits { time: Some(Duration::from_millis(50)), ..Limits::default() };
        let progress = collected(&dir.path().join("time.csv"), &tasks, &Options { limits, ..options(0, 1) });
        assert!(progress.elapsed_ns >= 50_000_000 && progress.done == 0, "{progress:?}");
    }

    #[test]
    fn shards_share_the_shots_and_draw_different_ones() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = [task("surface_d3", Decoder::Matching)];
        let paths: Vec<_> = (0..3).map(|index| dir.path().join(format!("{index}.csv"))).collect();
        for (index, path) in (0..3).zip(&paths) {
            collected(path, &tasks, &Options { shard: Shard { index, count: 3 }, ..options(50_000, 1) });
        }
        let of_each: Vec<(u64, u64)> = paths.iter().flat_map(|path| sums(path)).collect();
        assert_eq!(of_each.iter().map(|(shots, _)| *shots).collect::<Vec<_>>(), [16_667, 16_667, 16_666]);
        assert!(of_each[0].1 != of_each[1].1 || of_each[1].1 != of_each[2].1, "{of_each:?}");
        let all: Vec<Row> = merged(&paths, |_, _| ()).unwrap();
        assert_eq!((all.len(), all[0].shots), (1, 50_000));
    }

    #[test]
    fn shots_of_files_are_each_decoded_once_by_one_shard() {
        let model = bundled_named("surface_d3").unwrap();
        let set = |layout, bits: &[Vec<u64>]| {
            let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
            bits.iter().for_each(|bits| writer.write_shot(bits).unwrap());
            ShotSet::read(writer.finish().unwrap().as_slice(), Format::B8, layout).unwrap()
        };
        let mut sampler = Sampler::new(&model, 3);
        // More than a block.
        let count = task("surface_d3", Decoder::Matching).block_shots() + 5_000;
        let draws = (0..count).map(|_| {
            let (mut shot, mut truth) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
            sampler.draw(&mut shot, &mut truth);
            (shot, truth)
        });
        let (shots, truth): (Vec<_>, Vec<_>) = draws.unzip();
        let shots = set(Layout::detectors(model.detectors), &shots);
        let observables = set(Layout::observables(model.observables), &truth);
        let files = Arc::new(FileShots { shots, observables });
        let about = metadata_of_name("d=3.dem");
        let tasks = [Task::new(Arc::new(model), Decoder::Matching, Some(files), &about)];
        let dir = tempfile::tempdir().unwrap();
        let paths = ["0.csv", "1.csv"].map(|name| dir.path().join(name));
        for (index, path) in (0..2).zip(&paths) {
            // More than there are, twice.
            let options = Options { shard: Shard { index, count: 2 }, ..options(1_000_000, 2) };
            collected(path, &tasks, &options);
            collected(path, &tasks, &options);
        }
        let [(shots, errors)] = sums(&paths[0])[..] else { panic!() };
        assert!(shots == count && (count / 500..count / 10).contains(&errors), "{errors}");
        assert!(sums(&paths[1]).is_empty());
        // A limit of errors is the whole one, too: no other shard adds to them.
        let limits = Limits { errors: Some(errors), ..Limits::default() };
        let path = dir.path().join("limited.csv");
        collected(&path, &tasks, &Options { limits, shard: Shard { index: 0, count: 4 }, ..options(0, 2) });
        assert_eq!(sums(&path), [(shots, errors)]);
    }

    fn of_files(bits: u32, observables: u32, shots: [usize; 2]) -> Task {
        let model = Model::parse(b"error(0.1) D0 D1\nerror(0.1) D0\n").unwrap();
        let files = FileShots {
            shots: ShotSet::zeros(Layout::detectors(bits), shots[0]),
            observables: ShotSet::zeros(Layout::observables(observables), shots[1]),
        };
        Task::new(Arc::new(model), Decoder::Matching, Some(Arc::new(files)), &metadata_of_name("a.dem"))
    }

    #[test]
    fn shots_of_a_model_without_observables_are_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        collected(&path, &[of_files(2, 0, [3, 3])], &options(10, 1));
        assert_eq!(sums(&path), [(3, 0)]);
    }

    #[test]
    fn what_would_count_wrong_or_nothing_is_refused() {
        let (dir, one) = (tempfile::tempdir().unwrap(), task("surface_d3", Decoder::Matching));
        let shard = |index, count| Options { shard: Shard { index, count }, ..options(10, 1) };
        let mut results = Results::open(&dir.path().join("a.csv")).unwrap();
        let mut refused = |tasks: &[Task], options: &Options| {
            let ended = collect(tasks, &mut results, options, &AtomicBool::new(false), |_| {});
            ended.unwrap_err().to_string()
        };
        assert_eq!(refused(&[], &options(10, 0)), "found 0 threads, expected 1 to 1024");
        assert_eq!(refused(&[], &shard(0, 0)), "found part 0 of 0, expected a part below their number");
        assert!(refused(&[one.clone(), one], &options(10, 1)).contains("by matching twice, expected each task once"));
        for other in [of_files(66, 0, [3, 3]), of_files(2, 1, [3, 3]), of_files(2, 0, [3, 2])] {
            let said = refused(&[other], &options(10, 1));
            assert!(said.contains("of them, expected 2 bits, 0 true observables, 3 shots"), "{said}");
        }
    }

    #[test]
    fn a_model_that_cannot_be_decoded_is_named_and_the_rows_of_those_before_it_are_kept() {
        let model = Model::parse(
            b"error(0.1) D0 D1 D2 L0
",
        )
        .unwrap();
        let undecodable = Task::new(Arc::new(model), Decoder::Matching, None, &metadata_of_name("d=9.dem"));
        let tasks = [task("surface_d3", Decoder::Matching), undecodable];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        let mut results = Results::open(&path).unwrap();
        // As many blocks as are in work at once: the second task is looked at when one of them is done.
        let shots = 2 * tasks[0].block_shots();
        let refused = collect(&tasks, &mut results, &options(shots, 1), &AtomicBool::new(false), |_| {});
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with(r#"{"d":9} by matching: "#), "{said}");
        assert_eq!(sums(&path)[0].0, shots / 2);
    }

    /// The words of the second task's true observables are fewer than its shots, which nothing that reads makes.
    #[test]
    fn a_thread_that_panics_ends_the_collection_with_a_sentence_and_keeps_the_finished_rows() {
        let model = Arc::new(bundled_named("surface_d3").unwrap());
        let (shots, observables) = (Layout::detectors(model.detectors), Layout::observables(model.observables));
        let mut files = FileShots { shots: ShotSet::zeros(shots, 40), observables: ShotSet::zeros(observables, 40) };
        let mut broken = Task::new(model, Decoder::Matching, None, &metadata_of_name("d=4.dem"));
        files.observables.words.truncate(20);
        broken.shots = Some(Arc::new(files));
        let tasks = [task("surface_d3", Decoder::Matching), broken];
        let dir = tempfile::tempdir().unwrap();
        for threads in [1, 2] {
            let path = dir.path().join(format!("{threads}.csv"));
            let mut results = Results::open(&path).unwrap();
            let ended = collect(&tasks, &mut results, &options(500, threads), &AtomicBool::new(false), |_| {});
            let said = ended.unwrap_err().to_string();
            assert!(said.starts_with(r#"{"d":4} by matching: "#) && said.contains("shots 0 to 39"), "{said}");
            drop(results);
            assert!(sums(&path).len() <= 1, "nothing of the task that panicked");
            if threads == 1 {
                assert_eq!(sums(&path)[0].0, 500, "the block that was done before");
            }
        }
    }

    #[test]
    fn counts_by_faults_and_by_gaps_are_in_the_rows_and_add_up_to_the_shots() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        let tasks = [task("surface_d3", Decoder::Matching)];
        let count_by = CountBy { faults: true, gaps: true };
        collected(&path, &tasks, &Options { count_by, ..options(20_000, 2) });
        let row = merged(&[&path], |_, _| ()).unwrap().remove(0);
        let faults = crate::faults::FaultCounts::of_row(&row.counts);
        assert_eq!(faults.shots(), 20_000);
        let rate = faults.rate_at(&tasks[0].model, 1.0);
        assert!((rate.ci95[0]..=rate.ci95[1]).contains(&(row.errors as f64 / 20_000.0)), "{rate:?}");
        let gaps = crate::gaps::GapCounts::of_row(&row.counts);
        let errors: u64 = gaps.each().iter().map(|count| count.errors).sum();
        assert_eq!((gaps.shots(), errors), (20_000, row.errors));
        // An answer of a larger gap is wrong less often.
        let kept = gaps.kept();
        assert!(kept[0].part < 1.0 && kept[0].rate < row.errors as f64 / 20_000.0, "{kept:?}");
    }

    /// Odds of 1 to 9: with a detection event the answer has one fault and the other explanation two, so it is nine
    /// times as likely, 9.5 dB. Without one the other explanation has three, 28.6 dB.
    #[test]
    fn gaps_are_those_of_the_model() {
        let model = Model::parse(b"error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        let tasks = [Task::new(Arc::new(model), Decoder::Matching, None, &metadata_of_name("three.dem"))];
        collected(&path, &tasks, &Options { count_by: CountBy { faults: false, gaps: true }, ..options(10_000, 1) });
        let row = merged(&[&path], |_, _| ()).unwrap().remove(0);
        let found = crate::gaps::GapCounts::of_row(&row.counts).each();
        assert_eq!(found.iter().map(|count| count.gap_db).collect::<Vec<_>>(), [9, 28]);
        let wrong = found[0].errors as f64 / found[0].shots as f64;
        assert!((0.08..0.12).contains(&wrong), "{wrong}");
    }
}
