//! A viewer: a browser's websocket, and a console on a terminal of its own.
//!
//! One task each. Binary messages are the terminal's bytes, both ways; an empty one says that the server is there.
//! Text messages come from the browser alone: the first has the token and the size, each later one a size.
//!
//! Bounds: [`VIEWERS_MAX`] viewers; [`HELLO_TIME`] for the first message; one message of keys and one piece of output
//! in hand. While the browser does not take that piece, nothing is read from the terminal, and the console there stops
//! as on any terminal that stands still; the engine knows of neither. A browser that takes nothing for [`STALLED_TIME`]
//! or is silent for [`SILENT_PINGS`] pings is cut off.

use super::access::Token;
use super::refusals::Refusals;
use super::terminal::{Size, Terminal};
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use pinwheel_engine::engine::BROWSER_VARIABLE;
use serde::Deserialize;
use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Most viewers at once.
pub const VIEWERS_MAX: usize = 8;
/// Most bytes of a browser's message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Most bytes read from a terminal at once.
const PIECE_BYTES: usize = 16 << 10;
/// From a websocket's start to its first message.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// Longest wait for a browser that does not read.
const STALLED_TIME: Duration = Duration::from_secs(15);
/// Between two pings.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Pings in a row after which a silent browser counts as gone.
const SILENT_PINGS: u32 = 3;
/// Longest wait for the end of another viewer's console: longer than a console that is hung up may take.
const PLACE_TIME: Duration = Duration::from_secs(3);
/// For the browser's part of the websocket's end.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// This program, also when its file was replaced since it was started.
const PROGRAM: &str = "/proc/self/exe";

/// A connection that was let in: from where, and its place among all of them.
#[derive(Clone)]
pub struct Arrival {
    pub peer: SocketAddr,
    /// Held until the console has ended.
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Arrival {
    pub fn new(peer: SocketAddr, permit: OwnedSemaphorePermit) -> Arrival {
        Arrival { peer, _permit: Arc::new(permit) }
    }
}

/// What each viewer is shown.
pub struct Console {
    /// The engine, as `attach` takes it.
    pub run: Option<String>,
    /// Whether its commands are allowed.
    pub control: bool,
}

impl Console {
    fn command(&self, peer: SocketAddr) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg0("pinwheel").args([
            "attach",
            "--own-terminal",
            "--no-settings",
            "--colour",
            "true",
            "--glyphs",
            "utf-8",
        ]);
        command.args(self.control.then_some("--control"));
        command.args(self.run.iter().flat_map(|run| ["--", run]));
        command.env("TERM", "xterm-256color").env(BROWSER_VARIABLE, peer.ip().to_canonical().to_string());
        command
    }
}

pub struct Viewers {
    token: Token,
    console: Console,
    free: Semaphore,
    ending: watch::Receiver<bool>,
    pub refusals: Refusals,
}

/// The browser's first message.
#[derive(Deserialize)]
struct Hello {
    token: String,
    #[serde(flatten)]
    size: Size,
}

/// Why a websocket is closed.
enum End {
    /// The browser has closed it, or is gone.
    Left,
    /// The browser stopped reading or answering; it may come back.
    Silent,
    /// This server ends.
    Ending,
    NoHello,
    WrongToken,
    Full,
    /// The console could not be started.
    NotStarted(io::Error),
    /// The console has ended: `q`, its engine's end, or a refusal that the terminal shows.
    Console(Option<ExitStatus>),
}

impl End {
    /// Code and sentence for the page, of at most 123 bytes. From 4000 on the page does not come back by itself.
    fn close(&self) -> Option<(u16, Cow<'static, str>)> {
        Some(match self {
            End::Left => return None,
            End::Silent => (1008, "The browser did not read.".into()),
            End::Ending => (1001, "pinwheel serve ends.".into()),
            End::NoHello => (4000, "This server expected a token first; reload the page.".into()),
            End::WrongToken => (4001, "The token is wrong; open the address that pinwheel serve printed last.".into()),
            End::Full => (4002, format!("{VIEWERS_MAX} browsers are connected already; close one of them.").into()),
            End::NotStarted(_) => (4003, "The console could not be started; pinwheel serve says why.".into()),
            End::Console(status) => match status.and_then(|status| status.code()) {
                Some(0) => (4004, "The console has ended.".into()),
                Some(code) => (4004, format!("The console has ended with exit status {code}.").into()),
                None => (4004, "The console was killed.".into()),
            },
        })
    }
}

impl Viewers {
    pub fn new(token: Token, console: Console, ending: watch::Receiver<bool>, refusals: Refusals) -> Viewers {
        Viewers { token, console, free: Semaphore::new(VIEWERS_MAX), ending, refusals }
    }

    /// Serves a websocket to its end.
    pub async fn view(&self, mut socket: WebSocket, arrival: Arrival) {
        let end = self.serve(&mut socket, arrival.peer).await;
        let log = |what: std::fmt::Arguments<'_>| self.refusals.log(arrival.peer, what);
        match &end {
            End::Left | End::Silent | End::Ending => {}
            End::NoHello => log(format_args!("a websocket without a token")),
            End::WrongToken => log(format_args!("a wrong token")),
            End::Full => log(format_args!("{VIEWERS_MAX} browsers are connected already")),
            End::NotStarted(error) => log(format_args!("the console could not be started ({error})")),
            End::Console(status) => match status.map(|status| (status.code(), status.signal())) {
                Some((Some(0 | 1), _)) => {}
                Some((Some(code), _)) => log(format_args!("its console ended with exit status {code}")),
                Some((None, Some(signal))) => log(format_args!("its console was ended by signal {signal}")),
                _ => log(format_args!("its console has no exit status")),
            },
        }
        if let Some((code, reason)) = end.close() {
            let frame = CloseFrame { code, reason: reason.as_ref().into() };
            // The browser reads the sentence before the connection ends: what it still sends is read, too.
            let farewell = async {
                socket.send(Message::Close(Some(frame))).await?;
                while socket.recv().await.transpose()?.is_some() {}
                Ok::<_, axum::Error>(())
            };
            let _ = timeout(CLOSE_TIME, farewell).await;
        }
    }

    async fn serve(&self, socket: &mut WebSocket, peer: SocketAddr) -> End {
        let Ok(Some(Ok(Message::Text(text)))) = timeout(HELLO_TIME, socket.recv()).await else { return End::NoHello };
        let Ok(hello) = serde_json::from_str::<Hello>(&text) else { return End::NoHello };
        if !self.token.is(&hello.token) {
            return End::WrongToken;
        }
        // A reloaded page comes back while its last console is still ending.
        let Ok(Ok(_place)) = timeout(PLACE_TIME, self.free.acquire()).await else { return End::Full };
        let terminal = match Terminal::start(self.console.command(peer), hello.size) {
            Ok(terminal) => terminal,
            Err(error) => return End::NotStarted(error),
        };
        let end = self.pass(socket, &terminal).await;
        let status = terminal.end().await;
        end.unwrap_or(End::Console(status))
    }

    /// Passes bytes both ways until one side ends; `None`: the console.
    async fn pass(&self, socket: &mut WebSocket, terminal: &Terminal) -> Option<End> {
        let mut ending = self.ending.clone();
        let mut pings = interval(PING_INTERVAL);
        // After a wait for the browser it gets its time to answer again.
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered = 0;
        let mut piece = vec![0; PIECE_BYTES];
        let mut keys = Bytes::new();
        loop {
            tokio::select! {
                // Further messages wait until the terminal has taken the keys of the last one.
                message = socket.recv(), if keys.is_empty() => {
                    unanswered = 0;
                    match message {
                        Some(Ok(Message::Binary(bytes))) => keys = bytes,
                        Some(Ok(Message::Text(text))) => {
                            if let Ok(size) = serde_json::from_str(&text) {
                                terminal.resize(size);
                            }
                        }
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return Some(End::Left),
                    }
                }
                written = terminal.write(&keys), if !keys.is_empty() => keys = keys.slice(written.ok()?..),
                read = terminal.read(&mut piece) => {
                    let bytes = read.ok().filter(|bytes| *bytes > 0)?;
                    let message = Message::Binary(Bytes::copy_from_slice(&piece[..bytes]));
                    if let Some(end) = send(socket, message).await {
                        return Some(end);
                    }
                }
                _ = pings.tick() => {
                    if unanswered == SILENT_PINGS {
                        return Some(End::Silent);
                    }
                    unanswered += 1;
                    // A page does not see pings: the empty piece says to it that the server is there.
                    for message in [Message::Ping(Bytes::new()), Message::Binary(Bytes::new())] {
                        if let Some(end) = send(socket, message).await {
                            return Some(end);
                        }
                    }
                }
                _ = ending.changed() => return Some(End::Ending),
            }
        }
    }
}

/// Sends a message when the browser takes it; else why the websocket ends.
async fn send(socket: &mut WebSocket, message: Message) -> Option<End> {
    match timeout(STALLED_TIME, socket.send(message)).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some(End::Left),
        Err(_) => Some(End::Silent),
    }
}
