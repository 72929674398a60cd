//! The supervisor of a plugin: a cold thread that makes its seats, ends them, and makes others in their stead.
//!
//! Owns the processes of plugins that are not trusted, each with those that it started. Creates, starts, waits
//! and ends; decode workers only take a seat out of a mailbox and put one in. Ends with the plugin's model and
//! the last matcher. Bounds: one seat for each matcher, one attempt every [`RETRY`], [`READY_LIMIT`] for a
//! process to get ready.

use super::lane::Lane;
use super::library::{Handle, Library};
use super::problem::Problem;
use super::{PluginRefused, process};
use crate::clock::Clock;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use crate::units::{Nanos, Ticks};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

/// Time for a process to load its plugin and have it prepare itself.
const READY_LIMIT: Nanos = Nanos(30_000_000_000);
/// From a failed attempt to make a seat to the next.
const RETRY: Nanos = Nanos(200_000_000);
/// From one look at mailboxes and processes to the next: a spoiled seat waits that long.
const LOOK: Duration = Duration::from_millis(1);
/// A seat under way in each direction, and one that crosses it.
const SEATS: usize = 2;
/// Most looks at a process's threads to confine them all.
const CONFINE_PASSES: u32 = 8;

/// What a seat is made from.
pub(super) struct Recipe {
    pub(super) problem: Problem,
    pub(super) path: PathBuf,
    pub(super) config: String,
    /// Loaded in this process, if the plugin is trusted: all its seats run the same build.
    pub(super) library: Option<Library>,
}

/// What a matcher decodes by.
pub(super) enum Seat {
    /// A decoder in this process.
    Here(Handle),
    /// A process of its own.
    Apart(Lane),
}

/// A matcher's ends.
pub(super) struct PlaceEnds {
    pub(super) seats: MailboxReceiver<Seat>,
    pub(super) returns: MailboxSender<Seat>,
    pub(super) alive: Arc<()>,
}

enum Order {
    /// A place for a matcher; answered when its seat is there or cannot be made.
    Place(Sender<PlaceEnds>),
    /// The cores of processes.
    Confine(Vec<u32>),
}

/// The cold side's end of the supervisor.
pub(super) struct Supervisor {
    orders: Sender<Order>,
}

impl Supervisor {
    /// Starts the thread and has it make one seat, which the first matcher gets.
    pub(super) fn start(recipe: Arc<Recipe>, clock: Clock) -> Result<Supervisor, PluginRefused> {
        let (orders, taken) = channel();
        let (told, ready) = channel();
        let body = move || {
            let mut bench = Bench { recipe, clock, cores: Vec::new(), spare: None, places: Vec::new(), made: 0 };
            match bench.make() {
                Ok(made) => bench.spare = Some(made),
                Err(refused) => {
                    let _ = told.send(Err(refused));
                    return;
                }
            }
            let _ = told.send(Ok(()));
            bench.run(&taken);
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread: it makes and ends what hot threads must not")]
        let spawned = Builder::new().name("plugin".to_owned()).spawn(body);
        let no_thread = |found: String| PluginRefused::Process { found };
        spawned.map_err(|error| no_thread(format!("cannot be watched: {error}")))?;
        ready.recv().unwrap_or_else(|_| Err(no_thread("was not started: its thread has ended".to_owned())))?;
        Ok(Supervisor { orders })
    }

    /// A place for a matcher, with its seat in the mailbox if one can be made.
    pub(super) fn place(&self) -> PlaceEnds {
        let (reply, ends) = channel();
        let _ = self.orders.send(Order::Place(reply));
        ends.recv().expect("the supervisor runs for as long as its plugin's model")
    }

    /// Has processes, those of now and later ones, run on these cores.
    pub(super) fn confine(&self, cores: &[u32]) {
        let _ = self.orders.send(Order::Confine(cores.to_vec()));
    }
}

/// A process, and where its end is noted.
struct Process {
    child: Child,
    gone: Arc<AtomicBool>,
    number: u64,
}

impl Process {
    /// How it has ended, if it has; it keeps its number until it is waited for. An error afterwards.
    fn end(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), how)
    }

    fn has_ended(&self) -> bool {
        !matches!(self.end(), Ok(None))
    }

    /// Ends it and what it has started, unless it was waited for: another group may have its number then.
    fn end_group(&mut self) {
        if self.end().is_ok() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        // It may have left its group.
        let _ = self.child.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        self.end_group();
        let _ = self.child.wait();
    }
}

/// Has all threads of a process run on these cores; threads that they start run there, too. Where that is
/// refused, they run where the system lets them.
fn confine(process: u32, cores: &[u32]) {
    let mut confined = Vec::new();
    // A thread that is not confined yet may start another one meanwhile.
    for _ in 0..CONFINE_PASSES {
        let before = confined.len();
        for thread in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let number = thread.file_name().to_str().and_then(|number| number.parse().ok());
            if let Some(number) = number.filter(|number| !confined.contains(number)) {
                let _ = crate::host::pin::confine_thread(number, cores);
                confined.push(number);
            }
        }
        if confined.len() == before {
            return;
        }
    }
}

type Made = (Seat, Option<Process>);

/// One matcher as the supervisor sees it.
struct Place {
    seats: MailboxSender<Seat>,
    returns: MailboxReceiver<Seat>,
    alive: Arc<()>,
    process: Option<Process>,
    /// It has no sound seat; when to try to make one.
    wants_at: Option<Ticks>,
    /// Seats given that have not come back: those in the mailbox, and the matcher's.
    given: usize,
}

struct Bench {
    recipe: Arc<Recipe>,
    clock: Clock,
    cores: Vec<u32>,
    /// Made to check the plugin.
    spare: Option<Made>,
    places: Vec<Place>,
    /// Processes so far.
    made: u64,
}

impl Bench {
    fn run(&mut self, orders: &Receiver<Order>) {
        let mut is_ending = false;
        while !is_ending || !self.places.is_empty() {
            match orders.recv_timeout(LOOK) {
                Ok(Order::Place(reply)) => self.place(&reply),
                Ok(Order::Confine(cores)) => self.confine(cores),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    is_ending = true;
                    self.spare = None;
                    std::thread::park_timeout(LOOK);
                }
            }
            self.places.retain(|place| Arc::strong_count(&place.alive) > 1);
            for at in 0..self.places.len() {
                self.look_after(at);
            }
        }
    }

    fn place(&mut self, reply: &Sender<PlaceEnds>) {
        let ((gives, seats), (returns, taken)) = (mailbox(SEATS), mailbox(SEATS));
        let alive = Arc::new(());
        let ends = PlaceEnds { seats, returns, alive: Arc::clone(&alive) };
        let mut place =
            Place { seats: gives, returns: taken, alive, process: None, wants_at: Some(self.clock.ticks()), given: 0 };
        if let Some((seat, process)) = self.spare.take() {
            place.give(seat, process);
        }
        self.places.push(place);
        self.look_after(self.places.len() - 1);
        let _ = reply.send(ends);
    }

    fn confine(&mut self, cores: Vec<u32>) {
        let spare = self.spare.iter().filter_map(|(_, process)| process.as_ref());
        for process in self.places.iter().filter_map(|place| place.process.as_ref()).chain(spare) {
            confine(process.child.id(), &cores);
        }
        self.cores = cores;
    }

    /// Ends what came back, and makes another seat where one is missing.
    fn look_after(&mut self, at: usize) {
        if !self.places[at].wants_seat(self.clock.ticks()) {
            return;
        }
        match self.make() {
            Ok((seat, process)) => self.places[at].give(seat, process),
            // The plugin was sound at the start, so another attempt may succeed.
            Err(_) => self.places[at].wants_at = Some(self.clock.ticks().plus(self.clock.rate().ticks(RETRY))),
        }
    }

    /// Makes a seat.
    fn make(&mut self) -> Result<Made, PluginRefused> {
        let recipe = Arc::clone(&self.recipe);
        if let Some(library) = recipe.library {
            return Ok((Seat::Here(Handle::new(library, &recipe.problem, &recipe.config)?), None));
        }
        self.made += 1;
        let failed = |found: String| PluginRefused::Process { found };
        let no_lane = |error| failed(format!("has no shared memory: {error}"));
        let path = recipe.path.to_string_lossy();
        let (mut lane, file) = Lane::new(&recipe.problem, &path, &recipe.config, self.made).map_err(no_lane)?;
        let mut command = process::command();
        command.stdin(Stdio::from(file)).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: an interrupt from the terminal ends the engine first, which still has shots. And
        // what the plugin starts ends with it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
        let mut process = Process { child, gone: Arc::clone(lane.gone()), number: self.made };
        if !self.cores.is_empty() {
            confine(process.child.id(), &self.cores);
        }
        let (began, limit) = (self.clock.ticks(), self.clock.rate().ticks(READY_LIMIT));
        loop {
            match lane.readiness() {
                Some(Ok(())) => return Ok((Seat::Apart(lane), Some(process))),
                Some(Err(said)) => return Err(PluginRefused::Said { said }),
                None if process.has_ended() => {
                    // It may have answered between the two looks.
                    if let Some(Err(said)) = lane.readiness() {
                        return Err(PluginRefused::Said { said });
                    }
                    process.end_group();
                    let status =
                        process.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    return Err(failed(format!("ended before it was ready ({status})")));
                }
                None if self.clock.ticks().since(began) > limit => {
                    return Err(failed(format!("was not ready after {} s", READY_LIMIT.0 / 1_000_000_000)));
                }
                None => std::thread::park_timeout(LOOK),
            }
        }
    }
}

impl Place {
    /// Ends what came back. Returns whether a seat is to be made now.
    fn wants_seat(&mut self, now: Ticks) -> bool {
        while let Some(seat) = self.returns.pop() {
            self.given -= 1;
            // One that was replaced already: its process is gone.
            let is_of = |lane: &Lane| self.process.as_ref().is_some_and(|process| process.number == lane.number);
            let is_old = matches!(&seat, Seat::Apart(lane) if !is_of(lane));
            if !is_old {
                self.process = None;
                self.wants_at.get_or_insert(now);
            }
        }
        if self.process.as_ref().is_some_and(Process::has_ended) {
            self.process = None;
            self.wants_at.get_or_insert(now);
        }
        // A matcher without shots takes no seat out; processes may end meanwhile.
        self.wants_at.is_some_and(|at| at <= now) && self.given < SEATS
    }

    fn give(&mut self, seat: Seat, process: Option<Process>) {
        self.process = process;
        self.wants_at = None;
        self.given += 1;
        // There is room: no more than that are given.
        let _ = self.seats.push(seat);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, reason = "harness")]
    use super::{
        Arc, Lane, MailboxReceiver, MailboxSender, Ordering, Place, Problem, Process, SEATS, Seat, Ticks, confine,
        mailbox,
    };
    use crate::code::Model;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// The matcher's ends: what it has, and whether that can decode.
    struct Matching {
        seats: MailboxReceiver<Seat>,
        returns: MailboxSender<Seat>,
        seat: Option<Seat>,
    }

    impl Matching {
        /// As a shot does: takes a seat out, and gives back one that it replaces or that has no process.
        fn decodes(&mut self) -> bool {
            if let Some(seat) = self.seats.pop()
                && let Some(old) = self.seat.replace(seat)
            {
                assert!(self.returns.push(old).is_ok());
            }
            let is_sound = matches!(&self.seat, Some(Seat::Apart(lane)) if !lane.gone().load(Ordering::Relaxed));
            if !is_sound && let Some(seat) = self.seat.take() {
                assert!(self.returns.push(seat).is_ok());
            }
            is_sound
        }
    }

    /// What a process of this command has.
    fn made(number: u64, command: &str) -> (Seat, Option<Process>) {
        let problem = Problem::new(&Model::parse(b"error(0.1) D0\n").unwrap()).unwrap();
        let (lane, _) = Lane::new(&problem, "", "", number).unwrap();
        let child = Command::new("sh").args(["-c", command]).spawn().unwrap();
        let process = Process { child, gone: Arc::clone(lane.gone()), number };
        (Seat::Apart(lane), Some(process))
    }

    /// A process with the threads of a test.
    #[test]
    #[ignore = "it is a process of another test"]
    fn a_process_with_threads() {
        if std::env::var_os("PROCESS_WITH_THREADS").is_none() {
            return;
        }
        let thread = std::thread::spawn(std::thread::park);
        println!("ready");
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        thread.thread().unpark();
    }

    #[test]
    fn all_threads_of_a_plugins_process_are_confined() {
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([&format!("{module}::a_process_with_threads"), "--exact", "--ignored", "--nocapture"]);
        command.env("PROCESS_WITH_THREADS", "");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let process = Process { child, gone: Arc::default(), number: 1 };
        assert!(lines.any(|line| line.unwrap().contains("ready")));
        let number = process.child.id();
        let core = crate::host::pin::allowed_cores().unwrap()[0];
        confine(number, &[core]);
        let threads = std::fs::read_dir(format!("/proc/{number}/task")).unwrap();
        let threads: Vec<u32> =
            threads.map(|thread| thread.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        assert!(threads.len() > 1);
        for thread in threads {
            assert_eq!(crate::host::pin::cores_of_thread(thread), Some(vec![core]));
        }
    }

    #[test]
    fn what_a_plugins_process_has_started_ends_with_it() {
        for last in ["exec sleep 600", "exit"] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("sleep 600 & echo; {last}")]).stdout(Stdio::piped()).process_group(0);
            let mut child = command.spawn().unwrap();
            let mut output = child.stdout.take().unwrap();
            let process = Process { child, gone: Arc::default(), number: 1 };
            output.read_exact(&mut [0]).unwrap();
            while last == "exit" && !process.has_ended() {
                std::thread::yield_now();
            }
            drop(process);
            // The output ends when nobody has it open any more.
            let ready = poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&Timespec { tv_sec: 60, tv_nsec: 0 }));
            assert_eq!(ready, Ok(1), "{last}");
            assert_eq!(output.read(&mut [0]).unwrap(), 0, "{last}");
        }
    }

    #[test]
    fn a_matcher_whose_processes_ended_while_it_had_no_shots_gets_a_sound_seat() {
        let ((gives, seats), (returns, taken)) = (mailbox(SEATS), mailbox(SEATS));
        let (alive, wants_at) = (Arc::new(()), Some(Ticks(0)));
        let mut place = Place { seats: gives, returns: taken, alive, process: None, wants_at, given: 0 };
        let mut matching = Matching { seats, returns, seat: None };
        for number in 0..6 {
            if place.wants_seat(Ticks(number)) {
                let (seat, process) = made(number, "exit");
                place.give(seat, process);
            }
            while place.process.as_ref().is_some_and(|process| !process.has_ended()) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let has_decoded = (6..12).any(|number| {
            if place.wants_seat(Ticks(number)) {
                let (seat, process) = made(number, "exec sleep 60");
                place.give(seat, process);
            }
            matching.decodes()
        });
        assert!(has_decoded);
    }
}
