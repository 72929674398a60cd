//! The control socket: other processes of the same user send commands to the engine through it.
//!
//! Owns the socket's file, its clients, and the socket's words in the control block. Runs on a cold
//! thread of its own, so that a client that hangs delays no other thread. It executes each command,
//! then reads the board until the hot threads have acknowledged. Commands that may take long run on
//! threads of their own, and the other clients need not wait: an engine can be drained while a
//! plugin loads. Bounds: [`CLIENTS_MAX`] clients, one request of each at a time, [`LINE_BYTES_MAX`]
//! a line; see [`super::reply`] for the time limits. Never blocks on a client, and drops one that
//! reads nothing for [`client::SEND_LIMIT`].
//!
//! # Why the file and the peer are both checked
//! The file has mode 0600 before any process can connect, which excludes other users even if the
//! directory does not. The kernel reports the user number of the peer, however the peer reached the
//! socket.

mod client;

use super::actor::Actor;
use super::cold::{self, ColdThreads, Stop};
use super::command::{Command, Executor, Refused, may_operate};
use super::reply::Accepted;
use super::slow_commands::SlowCommands;
use super::wire::{LINE_BYTES_MAX, Outcome};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::files::shared;
use crate::host::neighbours::own_uid;
use crate::units::Ticks;
use client::{Client, Incoming};
use pinwheel_edge::spin::Phase;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};
use rustix::time::Timespec;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most clients at a time.
pub(super) const CLIENTS_MAX: usize = 8;
/// Longest wait for events: without pending work, and with.
const IDLE_MS: i64 = 20;
const BUSY_MS: i64 = 1;
/// Pause between two checks while the engine starts.
const STARTING: Duration = Duration::from_millis(1);
/// Longest wait for the thread at the engine's end: a plugin or a disk may keep it in a command.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);
/// Name of the file in a run's directory.
pub(super) const FILE: &str = "control.sock";

/// The thread of the control socket.
pub(super) struct Running {
    thread: JoinHandle<()>,
}

impl Running {
    /// Waits for the thread to end, after its stop was requested; at most [`LEAVE_LIMIT`].
    pub(super) fn end(self) {
        cold::join(self.thread, LEAVE_LIMIT);
    }
}

/// A listening socket; its file is removed with it.
struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    fn open(path: &Path) -> io::Result<Listener> {
        let listener = Listener { socket: shared::listen_for_owner(path)?, path: path.to_owned() };
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens the socket at the first of `places` that permits it.
fn open(places: &[PathBuf]) -> Result<Listener, String> {
    let mut said = "no directory for it".to_owned();
    for place in places {
        match Listener::open(place) {
            Ok(listener) => return Ok(listener),
            Err(error) => said = format!("{}: {error}", place.display()),
        }
    }
    Err(format!(
        "control socket: could not be opened in the run's directory or in $XDG_RUNTIME_DIR ({said}); pinwheel ctl and \
         attach --control cannot reach this engine"
    ))
}

/// Possible places of a run's socket: the run's directory, then the user's runtime directory.
fn places(run_dir: &Path) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let there = runtime.map(|dir| dir.join(format!("pinwheel-{}.sock", std::process::id())));
    // Absolute, because clients may run in another working directory.
    let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
    std::iter::once(run_dir.join(FILE)).chain(there).collect()
}

/// Opens the socket of the run in `run_dir` and starts its thread. An error is only noted; the
/// engine runs without the socket.
pub(super) fn spawn(
    run_dir: &Path,
    board: &Arc<Board>,
    clock: &Clock,
    executor: Executor,
    threads: &ColdThreads,
    stop: Stop,
) -> Result<Running, String> {
    let listener = open(&places(run_dir))?;
    board.control().socket.write(&listener.path.display().to_string());
    let (board, clock) = (Arc::clone(board), clock.clone());
    let slow = |name| SlowCommands::new(name, executor.clone(), threads.clone());
    let (profiles, decoders) = (slow("profiles"), slow("decoders"));
    let clients = Vec::with_capacity(CLIENTS_MAX);
    let remote = Remote { listener, clients, executor, profiles, decoders, board, clock, accept_failed: false };
    let spawned = threads.spawn("control-socket", move || {
        remote.run(&stop);
    });
    let thread = spawned.map_err(|error| format!("control socket: its thread could not be started ({error})"))?;
    Ok(Running { thread })
}

/// State of a client's connection.
enum Waiting {
    /// Waits for the client's next line.
    Line,
    /// Waits for the end of a command that is executed on a thread of its own.
    Execution(Receiver<Result<Accepted, Refused>>),
    /// Waits for the result of a command, executed at this time.
    Reply(Accepted, Ticks),
}

struct Remote {
    listener: Listener,
    clients: Vec<(Client, Waiting)>,
    executor: Executor,
    /// Executes changes of the profile.
    profiles: SlowCommands,
    /// Executes changes of decoders and models, in order: of two at a time one would be refused.
    decoders: SlowCommands,
    board: Arc<Board>,
    clock: Clock,
    /// Whether the last connection could not be accepted, for want of a descriptor for one. It is still there, so
    /// the next wait is not for the listener, which would end at once.
    accept_failed: bool,
}

impl Remote {
    fn run(mut self, stop: &Stop) {
        loop {
            // The flag is read first: results of an ending engine are then sent below.
            let stopped = stop.is_stopped();
            self.wait();
            // An engine in Init has no log of actions yet.
            if Phase::from_code(board::get(&self.board.header().phase)) == Phase::Init && !stopped {
                cold::sleep(STARTING);
                continue;
            }
            self.accept();
            self.serve();
            let board = self.board.control();
            board::set(&board.clients, self.clients.len() as u64);
            if stopped && !self.clients.iter().any(|(_, waiting)| matches!(waiting, Waiting::Execution(_))) {
                break;
            }
        }
        self.board.control().socket.write("");
    }

    /// Waits until a client sends something, or a reply may be due.
    fn wait(&self) {
        let busy = self.clients.iter().any(|(client, waiting)| client.has_more() || !matches!(waiting, Waiting::Line));
        let ms = if busy { BUSY_MS } else { IDLE_MS };
        let limit = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
        let listener = (!self.accept_failed).then(|| PollFd::new(&self.listener.socket, PollFlags::IN));
        let mut files: Vec<PollFd<'_>> = listener.into_iter().collect();
        // Clients with a pending reply are not polled: they are not read meanwhile and would only
        // wake the thread.
        let polled =
            self.clients.iter().filter(|(client, waiting)| matches!(waiting, Waiting::Line) && !client.has_unsent());
        files.extend(polled.map(|(client, _)| PollFd::new(client.socket(), PollFlags::IN)));
        let _ = poll(&mut files, Some(&limit));
    }

    fn accept(&mut self) {
        for _ in 0..CLIENTS_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let accepted = net::accept_with(&self.listener.socket, flags);
            self.accept_failed = matches!(accepted, Err(error) if error != Errno::AGAIN && error != Errno::CONNABORTED);
            let Ok(socket) = accepted else { return };
            let peer = sockopt::socket_peercred(&socket).ok();
            let peer = peer.map(|peer| (peer.uid.as_raw(), peer.pid.as_raw_nonzero().get().unsigned_abs()));
            let refused = match peer {
                None => Some(
                    "the system does not name the connecting process; connect from a process on this host".to_owned(),
                ),
                // Each command is checked again; a client without permission takes no place.
                Some((uid, _)) => match may_operate(uid, own_uid()) {
                    Err(refused) => Some(refused.to_string()),
                    Ok(()) if self.clients.len() == CLIENTS_MAX => {
                        Some(format!("{CLIENTS_MAX} clients are connected already; close an attached console"))
                    }
                    Ok(()) => None,
                },
            };
            let mut client = Client::new(socket, peer.unwrap_or_default(), self.clock.ticks());
            match refused {
                None => self.clients.push((client, Waiting::Line)),
                Some(said) => {
                    // Sent without waiting: the rest is dropped.
                    client.say(&Outcome::Refused(said));
                    let _ = client.flush(self.clock.ticks(), self.clock.rate());
                    board::add(&self.board.control().dropped, 1);
                }
            }
        }
    }

    fn serve(&mut self) {
        let (now, rate) = (self.clock.ticks(), self.clock.rate());
        let mut clients = std::mem::take(&mut self.clients);
        clients.retain_mut(|(client, waiting)| {
            let next = match std::mem::replace(waiting, Waiting::Line) {
                Waiting::Line => self.serve_request(client, now),
                Waiting::Execution(executed) => Ok(self.check_execution(client, executed, now)),
                // What it asked for and has not been done yet is withdrawn.
                Waiting::Reply(..) if client.has_gone() => Err(client::Closed::ByClient),
                Waiting::Reply(accepted, since) => Ok(self.check_result(client, accepted, since)),
            };
            match next.and_then(|next| client.flush(now, rate).map(|()| next)) {
                Ok(next) => {
                    *waiting = next;
                    true
                }
                Err(client::Closed::ByClient) => false,
                Err(client::Closed::ByEngine) => {
                    board::add(&self.board.control().dropped, 1);
                    false
                }
            }
        });
        self.clients = clients;
    }

    /// Takes and executes a client's next request, if there is one.
    fn serve_request(&mut self, client: &mut Client, now: Ticks) -> Result<Waiting, client::Closed> {
        let request = match client.next_request()? {
            Incoming::Incomplete => return Ok(Waiting::Line),
            Incoming::Invalid(said) => {
                self.answer(client, Outcome::Refused(said));
                return Ok(Waiting::Line);
            }
            Incoming::TooLong => {
                let said = format!(
                    "found a request of more than {LINE_BYTES_MAX} bytes, expected one JSON object a line, of at most \
                     as many; send less text in one request"
                );
                self.answer(client, Outcome::Refused(said));
                // Sent without waiting: the rest is dropped.
                let _ = client.flush(now, self.clock.rate());
                return Err(client::Closed::ByEngine);
            }
            Incoming::Request(request) => request,
        };
        let (uid, pid) = client.peer();
        let (command, by) = (request.command, Actor::operator(uid, pid, &request.why));
        let slow = match &command {
            Command::Profile { .. } => &mut self.profiles,
            Command::Decoder { .. } | Command::Model { .. } | Command::Shadow { .. } => &mut self.decoders,
            _ => {
                let result = self.executor.execute(command, &by);
                return Ok(self.executed(client, result, now));
            }
        };
        let (sender, executed) = channel();
        // A client that has gone needs no result.
        slow.run(move |executor| drop(sender.send(executor.execute(command, &by))));
        Ok(Waiting::Execution(executed))
    }

    /// Checks for the end of a command that is executed on a thread of its own.
    fn check_execution(
        &self,
        client: &mut Client,
        executed: Receiver<Result<Accepted, Refused>>,
        now: Ticks,
    ) -> Waiting {
        match executed.try_recv() {
            Ok(result) => self.executed(client, result, now),
            Err(TryRecvError::Empty) => Waiting::Execution(executed),
            Err(TryRecvError::Disconnected) => {
                let said = "the command panicked, and may be done in part; see the standard error of the engine";
                self.answer(client, Outcome::Refused(said.to_owned()));
                Waiting::Line
            }
        }
    }

    /// A command has been executed, at `now`.
    fn executed(&self, client: &mut Client, result: Result<Accepted, Refused>, now: Ticks) -> Waiting {
        match result {
            Ok(accepted) => self.check_result(client, accepted, now),
            Err(refused) => {
                self.answer(client, Outcome::Refused(refused.to_string()));
                Waiting::Line
            }
        }
    }

    /// Checks for the result of a command that was executed at `since`.
    fn check_result(&self, client: &mut Client, accepted: Accepted, since: Ticks) -> Waiting {
        let waited = self.clock.rate().nanos(self.clock.ticks().since(since));
        let Some(reported) = accepted.report(&self.board, &self.clock, waited) else {
            return Waiting::Reply(accepted, since);
        };
        self.answer(client, reported.map_or_else(Outcome::Refused, Outcome::Done));
        Waiting::Line
    }

    fn answer(&self, client: &mut Client, outcome: Outcome) {
        let block = self.board.control();
        board::add(&block.requests, 1);
        if matches!(outcome, Outcome::Refused(_)) {
            board::add(&block.refused, 1);
        }
        client.say(&outcome);
    }
}
