//! Commands that may take as long as a start: those that read a file, or prepare decoders.
//!
//! Owns a thread that executes them in order, started with the first of them; whoever asks goes on at once. Bounds:
//! none of its own: a client of the control socket has one command under way, and an alarm one action.

use super::cold::ColdThreads;
use super::command::Executor;
use std::sync::mpsc::{SendError, Sender, channel};

type Job = Box<dyn FnOnce(&Executor) + Send>;

/// Executes commands on a thread of its own.
pub(super) struct SlowCommands {
    /// Name of the thread.
    name: &'static str,
    executor: Executor,
    threads: ColdThreads,
    /// To the thread; `None` until it is needed.
    jobs: Option<Sender<Job>>,
}

impl SlowCommands {
    /// By `executor`, on a thread called `name` of `threads`.
    pub(super) fn new(name: &'static str, executor: Executor, threads: ColdThreads) -> SlowCommands {
        SlowCommands { name, executor, threads, jobs: None }
    }

    /// Runs `job` after those before it. Without another thread it runs here.
    pub(super) fn run(&mut self, job: impl FnOnce(&Executor) + Send + 'static) {
        let mut job: Job = Box::new(job);
        if let Some(jobs) = &self.jobs {
            match jobs.send(job) {
                Ok(()) => return,
                // A panic has ended the thread.
                Err(SendError(back)) => job = back,
            }
        }
        let (sender, jobs) = channel::<Job>();
        let executor = self.executor.clone();
        let body = move || jobs.iter().for_each(|job| job(&executor));
        self.jobs = self.threads.spawn(self.name, body).ok().map(|_| sender);
        match &self.jobs {
            Some(jobs) => drop(jobs.send(job)),
            None => job(&self.executor),
        }
    }
}
