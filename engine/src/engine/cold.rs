//! Cold threads: how they are started, and those for input and output, the sink of answers and the
//! reader of a stream.
//!
//! Each runs on the cores that the plan leaves to cold threads. Sink and reader own files and pipes,
//! so that no hot thread does. Each sleeps briefly while its ring has no work.
//! Bounds: those of the rings. A sink whose reader stops reading blocks the engine, and is not
//! joined at the end of a drain; a reader blocked in its input stays until the process ends.

use super::{Input, ReadShot};
use crate::code::Model;
use crate::decode::changes::DecoderChanges;
use crate::feed::order::InputOrder;
use crate::feed::stage::{Ending, StageFill};
use crate::host::pin;
use crate::pipe::{Answer, home};
use crate::record::{AnswerRecord, AnswerSink};
use pinwheel_edge::ring::{BATCH, broadcast};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sleep of a cold thread without work.
const NOTHING: Duration = Duration::from_micros(500);
/// Pause between two looks at a thread that is to end.
const JOIN_LOOK: Duration = Duration::from_millis(1);

/// Requests the end of cold threads: the sink ends after it has emptied its rings, the reader at
/// once. Relaxed: the word is independent of other memory.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<AtomicU64>);

impl Stop {
    pub(super) fn new() -> Stop {
        Stop(Arc::new(AtomicU64::new(0)))
    }

    pub(super) fn stop(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

#[expect(clippy::disallowed_methods, reason = "cold threads wait by sleeping")]
pub(super) fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Waits for a thread to end, at most for `limit`; one that hangs is left behind.
pub(super) fn join(thread: JoinHandle<()>, limit: Duration) {
    for _ in 0..limit.as_millis() {
        if thread.is_finished() {
            let _ = thread.join();
            return;
        }
        sleep(JOIN_LOOK);
    }
}

/// A cold thread that runs until it is to end.
pub(super) struct UntilEnded {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl UntilEnded {
    /// Ends the thread and waits for it: at most one of its rounds.
    pub(super) fn end(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// Starts the engine's cold threads, on the cores planned for them.
#[derive(Clone, Debug)]
pub(super) struct ColdThreads(Arc<Confined>);

#[derive(Debug)]
struct Confined {
    cores: Vec<u32>,
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
    running: Mutex<RunningThreads>,
}

#[derive(Debug, Default)]
struct RunningThreads {
    /// Number of those that have been started and have not ended.
    count: usize,
    /// The system's numbers of those that have begun.
    tids: Vec<u32>,
}

/// A cold thread that has been started; dropping it forgets the thread.
struct Started {
    threads: ColdThreads,
    tid: Option<u32>,
}

impl ColdThreads {
    pub(super) fn new(cores: &[u32]) -> ColdThreads {
        ColdThreads(Arc::new(Confined { cores: cores.to_vec(), running: Default::default() }))
    }

    /// Starts a cold thread.
    ///
    /// # Errors
    /// If the system refuses another thread.
    #[expect(clippy::disallowed_methods, reason = "the engine's cold side starts its threads here")]
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let mut started = Started::new(self);
        std::thread::Builder::new().name(name.to_string()).spawn(move || {
            started.begin();
            // What it holds is dropped before the thread is forgotten.
            body()
        })
    }

    /// Starts a cold thread that runs until it is to end: then `body`'s receiver is disconnected.
    ///
    /// # Errors
    /// If the system refuses another thread.
    pub(super) fn spawn_until_ended(
        &self,
        name: &str,
        body: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> io::Result<UntilEnded> {
        let (stop, stopped) = channel();
        let thread = self.spawn(name, move || body(&stopped))?;
        Ok(UntilEnded { stop, thread })
    }

    /// Whether one has not ended.
    pub(super) fn are_running(&self) -> bool {
        self.running().count > 0
    }

    /// Confines the running threads to their cores once more: the kernel lets them run on others
    /// after one of these was lost.
    pub(super) fn confine_again(&self) {
        for tid in &self.running().tids {
            // If the system refuses, the scheduler decides.
            let _ = pin::confine_thread(*tid, &self.0.cores);
        }
    }

    /// No code panics while it holds the lock.
    fn running(&self) -> MutexGuard<'_, RunningThreads> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    fn new(threads: &ColdThreads) -> Started {
        threads.running().count += 1;
        Started { threads: threads.clone(), tid: None }
    }

    /// Keeps the calling thread off the hot cores; if the system refuses, the scheduler decides.
    fn begin(&mut self) {
        let _ = pin::confine_current_thread(&self.threads.0.cores);
        let tid = pin::thread_id();
        self.threads.running().tids.push(tid);
        self.tid = Some(tid);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let mut running = self.threads.running();
        running.count -= 1;
        running.tids.retain(|tid| Some(*tid) != self.tid);
    }
}

/// Starts the sink's thread, which takes answers from every silo's ring. The receiver yields its
/// result.
pub(super) fn spawn_sink(
    threads: &ColdThreads,
    mut sink: AnswerSink,
    mut taps: Vec<broadcast::Reader<Answer>>,
    order: InputOrder,
    decoders: DecoderChanges,
    stop: Stop,
) -> io::Result<Receiver<Result<(), String>>> {
    let (sender, receiver) = channel();
    // Hashes of the models by number, as far as answers have come by them.
    let mut hashes = Vec::new();
    threads.spawn("answers", move || {
        loop {
            // The flag is read first: answers pushed before it was raised are then taken below.
            let stopped = stop.is_stopped();
            let mut taken = 0;
            for tap in &mut taps {
                taken += tap.drain(BATCH, |answer| {
                    let model = answer.by.model();
                    while hashes.len() <= usize::from(model) {
                        hashes.push(decoders.model_hash(hashes.len() as u16).unwrap_or(0));
                    }
                    sink.accept(&record(&answer, &order, hashes[usize::from(model)]));
                });
            }
            if taken == 0 {
                if stopped {
                    break;
                }
                sink.flush();
                sleep(NOTHING);
            }
        }
        let _ = sender.send(sink.finish());
    })?;
    Ok(receiver)
}

fn record(answer: &Answer, order: &InputOrder, model: u64) -> AnswerRecord {
    AnswerRecord {
        index: order.index(answer.stream, answer.sequence),
        stream: answer.stream,
        sequence: answer.reply_to.sequence,
        error: answer.error.map_or(0, |code| code as u16),
        is_rescued: answer.error.is_none() && answer.by.is_rescued(),
        decoder: answer.by.name().filter(|_| answer.error.is_none()),
        gap_db: answer.by.gap_db().filter(|_| answer.error.is_none()),
        abstained: answer.abstained,
        model,
        latency_ns: answer.latency_ns,
        observables: answer.observables,
    }
}

/// Reads a stream's shots and passes them to the silos.
pub(super) struct Reader {
    fills: Vec<StageFill>,
    order: InputOrder,
    model: Arc<Model>,
    read: ReadShot,
}

impl Reader {
    /// A reader for `fills`, one per silo; `None` if the input is no stream.
    pub(super) fn new(order: InputOrder, input: Input, fills: Vec<StageFill>) -> Option<Reader> {
        match input {
            Input::Stream { model, reader, .. } => Some(Reader { fills, order, model, read: reader }),
            Input::Sampler { .. } | Input::Replay { .. } | Input::Live { .. } => None,
        }
    }

    fn run(mut self, stop: &Stop) -> Option<String> {
        let mut shot = vec![0; self.model.shot_words()];
        let silos = self.fills.len() as u32;
        for index in 0u64.. {
            // A reader that panics would leave the feeds to wait for ever. It is not called again.
            let read = catch_unwind(AssertUnwindSafe(|| (self.read)(&mut shot)));
            let read = read.unwrap_or_else(|_| {
                Err(format!("shot {index}: its reader panicked; standard error has the reason, which is in the reader"))
            });
            match read.and_then(|is_shot| if is_shot { self.checked(index, &shot) } else { Ok(false) }) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.fills.into_iter().for_each(|fill| fill.end(Ending::Broken));
                    return Some(error);
                }
            }
            let silo = home(self.order.stream_at(index), silos);
            while !self.fills[silo].offer(&shot) {
                if stop.is_stopped() {
                    return None;
                }
                sleep(NOTHING);
            }
        }
        self.fills.into_iter().for_each(|fill| fill.end(Ending::End));
        None
    }

    /// Refuses bits that no detector has: hot threads index by them.
    fn checked(&self, index: u64, shot: &[u64]) -> Result<bool, String> {
        if self.model.has_other_bits(shot) {
            let detectors = self.model.detectors;
            return Err(format!(
                "shot {index}: found a bit set beyond its {detectors} detectors, expected 0; clear it in the reader"
            ));
        }
        Ok(true)
    }
}

/// Starts the reader's thread. The receiver yields its error, if any.
pub(super) fn spawn_reader(threads: &ColdThreads, reader: Reader, stop: Stop) -> io::Result<Receiver<Option<String>>> {
    let (sender, receiver) = channel();
    threads.spawn("reader", move || {
        let _ = sender.send(reader.run(&stop));
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "harness")]
    use super::{ColdThreads, InputOrder, Model, ReadShot, Reader, Stop, join};
    use crate::feed::stage::{Staged, stage};
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::spawn;
    use std::time::Duration;

    #[test]
    fn a_thread_that_hangs_is_left_behind() {
        let (held, hangs) = channel::<()>();
        join(spawn(move || hangs.recv().unwrap_or_default()), Duration::from_millis(5));
        // Until here it could not end.
        drop(held);
        join(spawn(|| ()), Duration::from_secs(600));
    }

    #[test]
    fn a_cold_thread_runs_until_it_has_dropped_what_it_holds() {
        struct Held(ColdThreads, Sender<bool>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.1.send(self.0.are_running());
            }
        }
        let (threads, (sender, was_running)) = (ColdThreads::new(&[]), channel());
        let held = Held(threads.clone(), sender);
        threads.spawn("held", move || drop(held)).unwrap().join().unwrap();
        assert_eq!((was_running.recv(), threads.are_running()), (Ok(true), false));
    }

    /// Why reading ended, and what the feed takes.
    fn read(reader: ReadShot) -> (Option<String>, [Staged; 3]) {
        let model = Arc::new(Model::parse(b"error(0.1) D0 D2\n").unwrap());
        let (fill, mut end) = stage(model.shot_words());
        let reader = Reader { fills: vec![fill], order: InputOrder::new(1, None), model, read: reader };
        let said = reader.run(&Stop::new());
        (said, [0; 3].map(|_| end.take(&mut [0])))
    }

    #[test]
    fn a_reader_that_panics_or_sets_a_bit_of_no_detector_ends_its_input_after_the_shots_before() {
        // Two shots that set all detectors, and a third.
        let with_third = |third: fn(&mut [u64])| -> ReadShot {
            let mut count = 0;
            Box::new(move |shot| {
                count += 1;
                shot[0] = 0b111;
                if count == 3 {
                    third(shot);
                }
                Ok(true)
            })
        };
        let panics = with_third(|_| panic!("a reader's defect"));
        let sets_another = with_third(|shot| shot[0] = 0b1000);
        for (reader, expected) in [(panics, "panicked"), (sets_another, "3 detectors")] {
            let (said, taken) = read(reader);
            assert!(said.as_ref().is_some_and(|said| said.contains("shot 2: ") && said.contains(expected)), "{said:?}");
            assert_eq!(taken, [Staged::Shot, Staged::Shot, Staged::Broken]);
        }
    }
}
