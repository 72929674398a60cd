//! The socket at which programs of the same user ask an engine about its hosts: `hosts.sock` in its run
//! directory.
//!
//! Owns the socket's file, a thread, and one for each client: a question for a host that does not
//! answer holds up nobody else. One line each way. Bounds: [`CLIENTS_MAX`] clients, [`CLIENT_LIMIT`]
//! for a client, [`REPLY_LIMIT`] for a reply, [`LINE_BYTES_MAX`] for a text. Never touches the engine:
//! the bridge's thread answers.

use crate::status::Status;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use pinwheel_engine::files::shared;
use pinwheel_engine::host::neighbours::own_uid;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Name of the socket in a run's directory.
pub const FILE: &str = "hosts.sock";
/// Most clients that have a thread of their own; after that they wait for each other.
const CLIENTS_MAX: usize = 8;
/// After a failed accept: the system has no descriptor or memory for another client.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// A client that sends or reads nothing for this long is dropped.
const CLIENT_LIMIT: Duration = Duration::from_secs(1);
/// Longest wait for a reply: a command to another host, and its acknowledgement.
pub const REPLY_LIMIT: Duration = Duration::from_secs(12);
/// Longest question, bytes, and the longest text of a reply.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Longest line of a reply: JSON in a string of JSON has a backslash before each quotation mark.
const REPLY_BYTES_MAX: usize = 2 * LINE_BYTES_MAX + 64;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// All hosts, as [`crate::status::Status`].
    List,
    /// A line for the control socket of another host's engine, and its reply.
    Command {
        /// The host.
        host: String,
        /// The line.
        line: String,
    },
    /// The board of another host's engine, as JSON.
    Board {
        /// The host.
        host: String,
    },
    /// The same as a recording of one snapshot, in base64: see [`picture`].
    Picture {
        /// The host.
        host: String,
    },
    /// Lets a host decode a stream; `None`: this one. Rules leave the stream alone from then on.
    Move {
        /// Stream.
        stream: u32,
        /// The host.
        host: Option<String>,
    },
    /// Lets the rules place a stream again.
    Release {
        /// Stream.
        stream: u32,
    },
    /// Takes no more shots of others.
    Close,
    /// Takes shots of others again.
    Open,
}

/// What came of it: the reply's text, or why not, one sentence.
pub type Said = Result<String, String>;

/// A question of a client, and where its answer goes.
pub struct Asked {
    /// What is wanted.
    pub wanted: Wanted,
    /// Takes the answer; the client waits [`REPLY_LIMIT`].
    pub answer: Sender<Said>,
}

/// The listening socket.
pub struct LocalSocket {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LocalSocket {
    /// Listens in `run_dir`; hands what clients ask to `ask`, which returns whether it can be answered.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn open(run_dir: &Path, ask: impl Fn(Asked) -> bool + Send + Sync + 'static) -> io::Result<LocalSocket> {
        let path = std::path::absolute(run_dir)?.join(FILE);
        let listener = shared::listen_for_owner(&path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, ask) = (Arc::clone(&stop), Arc::new(ask));
        let thread = spawn("hosts-socket", move || {
            serve_all(listener.incoming(), &stopped, &ask);
        })?;
        Ok(LocalSocket { path, stop, thread: Some(thread) })
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // Relaxed: see where it is read.
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = std::fs::remove_file(&self.path);
        if woken && let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    #[expect(clippy::disallowed_methods, reason = "a cold thread of the bridge")]
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Serves all clients until `stopped`.
fn serve_all(
    incoming: impl Iterator<Item = io::Result<UnixStream>>,
    stopped: &AtomicBool,
    ask: &Arc<impl Fn(Asked) -> bool + Send + Sync + 'static>,
) {
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    for stream in incoming {
        // Relaxed: the connection that wakes this thread comes after the store.
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let Ok(stream) = stream else {
            #[expect(clippy::disallowed_methods, reason = "a cold thread of the bridge")]
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        clients.retain(|client| !client.is_finished());
        let ask = Arc::clone(ask);
        // A client that fails is its own affair.
        let serve = move || drop(serve(&stream, &*ask));
        if clients.len() < CLIENTS_MAX {
            // Without a thread its connection ends.
            clients.extend(spawn("hosts-client", serve));
        } else {
            serve();
        }
    }
    clients.into_iter().for_each(|client| drop(client.join()));
}

fn serve(stream: &UnixStream, ask: &impl Fn(Asked) -> bool) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_LIMIT))?;
    stream.set_write_timeout(Some(CLIENT_LIMIT))?;
    let mut line = Vec::new();
    BufReader::new(stream).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    let said = match serde_json::from_slice(&line) {
        Ok(wanted) => {
            let (answer, answered) = channel();
            if ask(Asked { wanted, answer }) { wait(&answered) } else { Err("this engine is ending".to_owned()) }
        }
        Err(error) => {
            Err(format!("no question about hosts ({error}); use the version of pinwheel that runs the engine"))
        }
    };
    let mut bytes = serde_json::to_vec(&said)?;
    bytes.push(b'\n');
    (&mut &*stream).write_all(&bytes)
}

fn wait(answered: &Receiver<Said>) -> Said {
    answered.recv_timeout(REPLY_LIMIT).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => format!("no answer for {} s", REPLY_LIMIT.as_secs()),
            RecvTimeoutError::Disconnected => "this engine is ending".to_owned(),
        })
    })
}

/// Asks the engine of user `owner` whose run directory is `run_dir`.
///
/// # Errors
/// One sentence.
pub fn ask(run_dir: &Path, owner: u32, wanted: &Wanted) -> Said {
    let path = run_dir.join(FILE);
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the run in {} has no other hosts; start it with --hosts FILE", run_dir.display())
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            format!("the engine of the run in {} ended before it answered", run_dir.display())
        }
        io::ErrorKind::ConnectionRefused => format!("the engine of the run in {} has ended", run_dir.display()),
        _ => format!("{}: {error}", path.display()),
    };
    let exchange = || -> io::Result<Said> {
        let mut stream = shared::connect_of(&path, owner, CLIENT_LIMIT)?;
        stream.set_read_timeout(Some(REPLY_LIMIT + CLIENT_LIMIT))?;
        let mut line = serde_json::to_vec(wanted)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut reply = Vec::new();
        BufReader::new(stream).take(REPLY_BYTES_MAX as u64).read_until(b'\n', &mut reply)?;
        Ok(serde_json::from_slice(&reply)?)
    };
    exchange().map_err(refused)?
}

/// The hosts as the engine of user `owner` whose run directory is `run_dir` sees them.
///
/// # Errors
/// One sentence.
pub fn list(run_dir: &Path, owner: u32) -> Result<Status, String> {
    let said = ask(run_dir, owner, &Wanted::List)?;
    serde_json::from_str(&said).map_err(|error| {
        format!("the engine's reply is of another version ({error}); use the version that runs the engine")
    })
}

/// The board of host `host`, as the engine of user `owner` whose run directory is `run_dir` is told: a recording of one
/// snapshot, for `record::tape::pictured`.
///
/// # Errors
/// One sentence.
pub fn picture(run_dir: &Path, owner: u32, host: &str) -> Result<Vec<u8>, String> {
    let said = ask(run_dir, owner, &Wanted::Picture { host: host.to_owned() })?;
    BASE64_STANDARD.decode(said).map_err(|error| format!("host {host} sent no board ({error})"))
}

/// Bytes as the socket's text.
pub fn to_text(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// [`list`] for an engine of this user.
///
/// # Errors
/// One sentence.
pub fn list_own(run_dir: &Path) -> Result<Status, String> {
    list(run_dir, own_uid().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{Asked, FILE, LINE_BYTES_MAX, LocalSocket, Wanted, ask, serve_all};
    use pinwheel_engine::files::our_uid;
    use std::io::{self, Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    #[test]
    fn a_client_that_cannot_be_accepted_does_not_end_the_socket() {
        let (stream, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"\"list\"\n").unwrap();
        let incoming = [Err(io::Error::from(io::ErrorKind::OutOfMemory)), Ok(stream)];
        let answer = |asked: Asked| asked.answer.send(Ok("listed".into())).is_ok();
        serve_all(incoming.into_iter(), &AtomicBool::new(false), &Arc::new(answer));
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert!(said.contains("listed"), "{said}");
    }

    #[test]
    fn a_question_is_answered_nonsense_is_refused_and_the_file_goes_with_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = LocalSocket::open(folder.path(), |asked| {
            let said = match asked.wanted {
                Wanted::Board { host } => Ok(format!("board of {host}")),
                other => Err(format!("{other:?}")),
            };
            asked.answer.send(said).is_ok()
        });
        let socket = socket.unwrap();
        let path = folder.path().join(FILE);
        let owner = std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut stranger = UnixStream::connect(&path).unwrap();
        stranger.write_all(b"hello\n").unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stranger, &mut said).unwrap();
        assert!(said.contains("no question about hosts"), "{said}");
        assert_eq!(ask(folder.path(), owner, &Wanted::Board { host: "b".into() }), Ok("board of b".into()));
        assert_eq!(ask(folder.path(), owner, &Wanted::List), Err("List".into()));
        drop(socket);
        assert!(!path.exists());
        assert!(ask(folder.path(), owner, &Wanted::List).unwrap_err().contains("--hosts"));
    }

    #[test]
    fn an_engine_that_ends_before_its_answer_is_said_to_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join(FILE)).unwrap();
        let run_dir = folder.path().to_owned();
        let asked = std::thread::spawn(move || ask(&run_dir, our_uid(), &Wanted::List));
        let (mut stream, _) = listener.accept().unwrap();
        let _question = stream.read(&mut [0; 64]).unwrap();
        drop(stream);
        assert!(asked.join().unwrap().unwrap_err().ends_with("ended before it answered"));
    }

    #[test]
    fn a_question_for_a_host_that_does_not_answer_holds_up_no_other_question() {
        let folder = tempfile::tempdir().unwrap();
        let (keep, kept) = channel();
        let _socket = LocalSocket::open(folder.path(), move |asked| match asked.wanted {
            Wanted::Board { .. } => keep.send(asked.answer).is_ok(),
            _ => asked.answer.send(Ok("listed".into())).is_ok(),
        });
        let run_dir = folder.path().to_owned();
        let board = std::thread::spawn(move || ask(&run_dir, our_uid(), &Wanted::Board { host: "b".into() }));
        let answer = kept.recv().unwrap();
        assert_eq!(ask(folder.path(), our_uid(), &Wanted::List), Ok("listed".into()));
        answer.send(Ok("its board".into())).unwrap();
        assert_eq!(board.join().unwrap(), Ok("its board".into()));
    }

    #[test]
    fn a_board_of_the_greatest_size_arrives_although_each_of_its_quotation_marks_is_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let board = "\"".repeat(LINE_BYTES_MAX);
        let said = board.clone();
        let _socket = LocalSocket::open(folder.path(), move |asked| asked.answer.send(Ok(said.clone())).is_ok());
        let found = ask(folder.path(), our_uid(), &Wanted::Board { host: "b".into() });
        assert!(found == Ok(board), "{:?}", found.err());
    }
}
