//! The control socket: other processes of the same user act on the engine through it.
//!
//! Owns the socket's file, its clients, and the control block's words about them. A cold thread of its own, so that a client that hangs holds
//! up nobody: requests go over a bounded channel to the control thread, which acts between two ticks and answers; the thread
//! here then looks at the board until the hot threads have said so too. Bounds: [`CLIENTS_MAX`] clients, one request of
//! each at a time, [`super::wire::LINE_BYTES_MAX`] a line, [`ORDERS_MAX`] orders on the way, [`SETTLE_LIMIT`] for an
//! acknowledgement, [`INPUT_LIMIT`] for another input. Never blocks on a client, and drops one that does not read for [`client::PATIENCE`].
//!
//! # Why the file and the peer are both checked
//! The file has mode 0600 before anybody can connect, which keeps others out where the directory does not; the peer's
//! number is what the kernel says of who connected, however it got there.

mod act;
mod client;

use super::actor::Actor;
use super::cold::{self, Stop};
use super::wire::{Ask, Outcome};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::host::neighbours::own_uid;
use crate::units::{Nanos, Ticks};
use act::Effect;
use client::{Client, Heard};
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::time::Timespec;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

pub(super) use act::act;

/// Clients at a time.
pub(super) const CLIENTS_MAX: usize = 8;
/// Orders on their way to the control thread.
const ORDERS_MAX: usize = 16;
/// An order that the control thread did not take in by then is not carried out.
const ORDER_LIMIT: Nanos = Nanos(5_000_000_000);
/// Longest wait for another input to be read and checked; then it is not taken.
const INPUT_LIMIT: Nanos = Nanos(60_000_000_000);
/// Longest wait for what the hot threads say to it.
const SETTLE_LIMIT: Nanos = Nanos(2_000_000_000);
/// Between two looks: with nothing to do, and while something is on its way.
const IDLE_MS: i64 = 20;
const BUSY_MS: i64 = 1;
/// Connections that wait to be taken.
const BACKLOG: i32 = 8;
/// The file's name in a run's directory.
pub(super) const FILE: &str = "control.sock";

/// Something to do, on its way to the control thread.
pub(super) struct Order {
    ask: Ask,
    by: Actor,
    /// Not to be carried out after this.
    until: Ticks,
    reply: Sender<Result<Effect, String>>,
}

/// The control thread's end.
pub(super) type Orders = Receiver<Order>;

/// The running socket.
pub(super) struct Running {
    thread: JoinHandle<()>,
}

impl Running {
    /// Waits for it; it has been told to stop.
    pub(super) fn end(self) {
        let _ = self.thread.join();
    }
}

/// A listening socket with its file, which goes with it.
struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    fn open(path: &Path) -> Result<Listener, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        let listener = Listener { socket, path: path.to_owned() };
        // Nobody can connect before `listen`: there is no moment in which others could.
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        net::listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The first of `places` where a socket can be made.
fn open(places: &[PathBuf]) -> Result<Listener, String> {
    let mut said = "no place for it".to_owned();
    for place in places {
        match Listener::open(place) {
            Ok(listener) => return Ok(listener),
            Err(error) => said = format!("{}: {error}", place.display()),
        }
    }
    Err(format!(
        "control socket: found none to be had ({said}), expected one in the run's directory or in $XDG_RUNTIME_DIR; pinwheel ctl and attach --control cannot reach this engine"
    ))
}

/// Where the socket of a run may be: its directory, and the user's directory for such things.
fn places(run_dir: &Path) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let there = runtime.map(|dir| dir.join(format!("pinwheel-{}.sock", std::process::id())));
    // Whoever connects may stand in another directory.
    let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
    std::iter::once(run_dir.join(FILE)).chain(there).collect()
}

/// Opens the socket of the run in `run_dir` and starts its thread. Where there can be none it is said, and the engine
/// runs without.
pub(super) fn spawn(
    run_dir: &Path,
    board: &Arc<Board>,
    clock: &Clock,
    cold_cores: Vec<u32>,
    stop: Stop,
) -> Result<(Running, Orders), String> {
    let listener = open(&places(run_dir))?;
    let (orders, taken) = bounded(ORDERS_MAX);
    board.control().socket.write(&listener.path.display().to_string());
    let (board, clock) = (Arc::clone(board), clock.clone());
    let remote = Remote { listener, clients: Vec::with_capacity(CLIENTS_MAX), orders, board, clock };
    let spawned = cold::spawn("control-socket", move || {
        // A courtesy to the hot threads; where it is not permitted the scheduler decides.
        let _ = crate::host::pin::confine_current_thread(&cold_cores);
        remote.run(&stop);
    });
    let thread = spawned.map_err(|error| format!("found no thread for the control socket ({error}), expected one"))?;
    Ok((Running { thread }, taken))
}

/// What a client waits for.
enum Waiting {
    /// Its next line.
    Line,
    /// The control thread, or who reads another input, for so long, until then.
    Control(Receiver<Result<Effect, String>>, Nanos, Ticks),
    /// The hot threads, since then.
    Threads(Effect, Ticks),
}

struct Remote {
    listener: Listener,
    clients: Vec<(Client, Waiting)>,
    orders: Sender<Order>,
    board: Arc<Board>,
    clock: Clock,
}

impl Remote {
    fn run(mut self, stop: &Stop) {
        loop {
            // The flag first: what an ending engine has said is then passed on below.
            let stopped = stop.is_stopped();
            self.wait();
            self.accept();
            self.serve();
            let board = self.board.control();
            board::set(&board.clients, self.clients.len() as u64);
            if stopped {
                break;
            }
        }
        self.board.control().socket.write("");
    }

    /// Until somebody says something, or there may be something to say.
    fn wait(&self) {
        let busy = self.clients.iter().any(|(client, waiting)| client.has_more() || !matches!(waiting, Waiting::Line));
        let ms = if busy { BUSY_MS } else { IDLE_MS };
        let limit = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
        let mut files = vec![PollFd::new(&self.listener.socket, PollFlags::IN)];
        // Who waits for an answer, or has not taken the last, is not heard meanwhile and would only wake the thread.
        let heard = self.clients.iter().filter(|(client, waiting)| matches!(waiting, Waiting::Line) && !client.owes());
        files.extend(heard.map(|(client, _)| PollFd::new(client.socket(), PollFlags::IN)));
        let _ = poll(&mut files, Some(&limit));
    }

    fn accept(&mut self) {
        for _ in 0..CLIENTS_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(socket) = net::accept_with(&self.listener.socket, flags) else { return };
            let peer = sockopt::socket_peercred(&socket).ok();
            let peer = peer.map(|peer| (peer.uid.as_raw(), peer.pid.as_raw_nonzero().get().unsigned_abs()));
            let refused = match peer {
                Some((uid, _)) if !is_permitted(uid) => Some(format!(
                    "found user {uid}, expected user {}, whose engine this is; look without acting by pinwheel attach",
                    own_uid().unwrap_or_default()
                )),
                None => Some("found a peer that the system does not name, expected a process here".to_owned()),
                Some(_) if self.clients.len() == CLIENTS_MAX => {
                    Some(format!("found {CLIENTS_MAX} clients already, expected fewer; close an attached console"))
                }
                Some(_) => None,
            };
            let mut client = Client::new(socket, peer.unwrap_or_default(), self.clock.ticks());
            match refused {
                None => self.clients.push((client, Waiting::Line)),
                Some(said) => {
                    // What it does not take at once is not waited for.
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
                Waiting::Line => self.hear(client, now),
                other => Ok(self.look(client, other, now)),
            };
            match next.and_then(|next| client.flush(now, rate).map(|()| next)) {
                Ok(next) => {
                    *waiting = next;
                    true
                }
                Err(client::Gone::Left) => false,
                Err(client::Gone::Dropped) => {
                    board::add(&self.board.control().dropped, 1);
                    false
                }
            }
        });
        self.clients = clients;
    }

    /// Takes a client's next request, if it has one.
    fn hear(&self, client: &mut Client, now: Ticks) -> Result<Waiting, client::Gone> {
        let request = match client.hear()? {
            Heard::Nothing => return Ok(Waiting::Line),
            Heard::Nonsense(said) => {
                self.answer(client, Outcome::Refused(said));
                return Ok(Waiting::Line);
            }
            Heard::Request(request) => request,
        };
        let (uid, pid) = client.peer();
        let (reply, answer) = bounded(1);
        let limit = if matches!(request.ask, Ask::Input(_)) { INPUT_LIMIT } else { ORDER_LIMIT };
        let until = now.plus(self.clock.rate().ticks(limit));
        let order = Order { ask: request.ask, by: Actor::operator(uid, pid, &request.why), until, reply };
        if self.orders.try_send(order).is_err() {
            let said = format!("found {ORDERS_MAX} requests before this one, expected fewer; try again");
            self.answer(client, Outcome::Refused(said));
            return Ok(Waiting::Line);
        }
        Ok(Waiting::Control(answer, limit, until))
    }

    /// Looks whether what a client waits for has come.
    fn look(&self, client: &mut Client, waiting: Waiting, now: Ticks) -> Waiting {
        match waiting {
            Waiting::Line => Waiting::Line,
            Waiting::Control(answer, limit, until) => match answer.try_recv() {
                Ok(Ok(effect)) => self.look(client, Waiting::Threads(effect, now), now),
                Ok(Err(said)) => {
                    self.answer(client, Outcome::Refused(said));
                    Waiting::Line
                }
                Err(crossbeam_channel::TryRecvError::Empty) if now < until => Waiting::Control(answer, limit, until),
                Err(_) => {
                    let limit_s = limit.0 / 1_000_000_000;
                    let said = format!(
                        "found the engine busy with a start, an end or a large file, expected an answer within {limit_s} s; try again"
                    );
                    self.answer(client, Outcome::Refused(said));
                    Waiting::Line
                }
            },
            Waiting::Threads(effect, since) => {
                let waited = self.clock.rate().nanos(now.since(since));
                match effect.done(&self.board, &self.clock, waited, waited >= SETTLE_LIMIT) {
                    Some(done) => {
                        self.answer(client, Outcome::Done(done));
                        Waiting::Line
                    }
                    None => Waiting::Threads(effect, since),
                }
            }
        }
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

/// The engine's own user, and root, who could do as much without asking.
fn is_permitted(uid: u32) -> bool {
    uid == 0 || own_uid() == Some(uid)
}
