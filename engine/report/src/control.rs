//! Commands to a running engine over its control socket.
//!
//! Owns the connection. A request blocks its caller. Bounds: [`REPLY_TIMEOUT`] for a reply,
//! [`LONG_REPLY_TIMEOUT`] for one to a command that reads files or prepares decoders, one reply per line of
//! at most [`LINE_BYTES_MAX`].

use crate::unusable::Unusable;
use pinwheel_engine::engine::wire::{LINE_BYTES_MAX, Outcome, Request, read_reply};
use pinwheel_engine::engine::{Command, Done, InputSpec};
use pinwheel_engine::files::{OpenError, shared};
use pinwheel_engine::profile::{self, Decoder, ProfileError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for a reply: above the limit of a command plus its acknowledgement.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The same where files are read or decoders prepared first: a plugin may load for half a minute.
const LONG_REPLY_TIMEOUT: Duration = Duration::from_secs(70);

/// Longest wait for the reply to `command`.
fn reply_timeout(command: &Command) -> Duration {
    match command {
        Command::Input(_)
        | Command::Profile { .. }
        | Command::Decoder { .. }
        | Command::Model { .. }
        | Command::Shadow { .. } => LONG_REPLY_TIMEOUT,
        _ => REPLY_TIMEOUT,
    }
}

/// Why the connection failed: the socket's path, and the system's error.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct WireError {
    path: String,
    error: io::Error,
}

impl WireError {
    /// Whether the engine was silent: it may be frozen, and execute later what it was sent.
    pub fn is_silence(&self) -> bool {
        self.error.kind() == io::ErrorKind::TimedOut
    }

    /// Whether nobody is at the other end any more.
    pub fn is_end(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
        matches!(self.error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof)
    }
}

/// The system's error, in words if nothing came within `limit`.
fn in_words(error: io::Error, limit: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, format!("no reply within {} s", limit.as_secs()))
        }
        _ => error,
    }
}

/// A connection that waits for each reply.
pub struct Wire {
    stream: BufReader<UnixStream>,
    path: String,
}

impl Wire {
    /// Connects to the socket of user `owner` at `path`.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn connect(path: &Path, owner: u32) -> Result<Wire, WireError> {
        let name = path.display().to_string();
        let open = || {
            let stream = shared::connect_of(path, owner, REPLY_TIMEOUT)?;
            stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: OpenError| WireError {
            path: name.clone(),
            error: in_words(error.into(), REPLY_TIMEOUT),
        })?;
        Ok(Wire { stream: BufReader::new(stream), path: name })
    }

    /// Sends a command and waits for its outcome.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn ask(&mut self, command: Command, why: &str) -> Result<Outcome, WireError> {
        let timeout = reply_timeout(&command);
        self.ask_within(command, why, timeout)
    }

    fn ask_within(&mut self, command: Command, why: &str, timeout: Duration) -> Result<Outcome, WireError> {
        let socket = |error: io::Error| WireError { path: self.path.clone(), error: in_words(error, timeout) };
        self.stream.get_ref().set_read_timeout(Some(timeout)).map_err(socket)?;
        let mut line = serde_json::to_vec(&Request::new(command, why)).map_err(|error| socket(error.into()))?;
        line.push(b'\n');
        // A peer that refuses the connection may have closed already: its reply can still be read.
        let sent = self.stream.get_mut().write_all(&line);
        let mut reply = Vec::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut reply);
        match (sent, read) {
            (Err(error), Ok(0)) | (_, Err(error)) => return Err(socket(error)),
            (Ok(()), Ok(0)) => return Err(socket(io::ErrorKind::UnexpectedEof.into())),
            (_, Ok(_)) => {}
        }
        // An unreadable reply, of another version for example, becomes a refusal.
        Ok(read_reply(&reply).unwrap_or_else(Outcome::Refused))
    }
}

/// The same command with absolute paths, and with the text of a profile that is named by a path: the engine's
/// process may have another working directory.
///
/// # Errors
/// [`ProfileError`], if such a profile cannot be used.
pub fn rooted(command: Command) -> Result<Command, ProfileError> {
    Ok(match command {
        Command::Profile { name, text: None, for_s } if name.contains('/') || name.ends_with(".ron") => {
            let (text, origin) = profile::usable_text(&name, None)?;
            Command::Profile { name: origin.name(), text: Some(text), for_s }
        }
        Command::Decoder { decoder, stream } => Command::Decoder { decoder: absolute_decoder(&decoder), stream },
        Command::Model { file, stream } => Command::Model { file: file.as_deref().map(absolute_model), stream },
        Command::Shadow { decoder, one_in, model } => {
            Command::Shadow { decoder, one_in, model: model.as_deref().map(absolute_model) }
        }
        Command::Input(spec) => Command::Input(absolute(spec)),
        command => command,
    })
}

/// Why an engine did not execute a command.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CommandError {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("engine of process {pid}: {said}")]
    Refused { pid: u32, said: String },
}

/// The control socket of an engine.
#[derive(Clone, Debug)]
pub struct ControlSocket {
    /// The engine's process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// The socket, if the engine has one.
    pub path: Option<PathBuf>,
}

impl ControlSocket {
    /// Sends one command with the reason `why`, and waits for its acknowledgement.
    ///
    /// # Errors
    /// [`CommandError`], one sentence; nothing was changed, unless the engine was silent or has ended.
    pub fn execute(&self, command: Command, why: &str) -> Result<Done, CommandError> {
        self.open(command, why).map(|(_, done)| done)
    }

    /// As [`ControlSocket::execute`], and waits `limit` for the reply, whatever the command.
    ///
    /// # Errors
    /// As [`ControlSocket::execute`].
    pub fn execute_within(&self, command: Command, why: &str, limit: Duration) -> Result<Done, CommandError> {
        self.exchange(command, why, limit).map(|(_, done)| done)
    }

    /// As [`ControlSocket::execute`], and keeps the connection for other commands.
    ///
    /// # Errors
    /// As [`ControlSocket::execute`].
    pub fn open(&self, command: Command, why: &str) -> Result<(Wire, Done), CommandError> {
        let timeout = reply_timeout(&command);
        self.exchange(command, why, timeout)
    }

    fn exchange(&self, command: Command, why: &str, timeout: Duration) -> Result<(Wire, Done), CommandError> {
        let (pid, about) = (self.pid, format!("engine of process {}", self.pid));
        let path = self.path.as_deref().ok_or_else(|| {
            let remedy = "the run's notes say why it has none";
            Unusable::new(&about, "no control socket", "one in its run directory", remedy)
        })?;
        let later = match command {
            Command::Status | Command::InForce => "",
            _ => "; it may still execute the command once it goes on",
        };
        let unusable = |error: WireError| {
            if error.is_silence() {
                let remedy = format!("see where with pinwheel dump {pid}{later}");
                return Unusable::new(&about, error.error.to_string(), "one, unless the engine is frozen", remedy);
            }
            if error.is_end() {
                let found = format!("nobody at its control socket ({error})");
                let remedy = "it ends or has ended, or its run directory was removed: see pinwheel postmortem";
                return Unusable::new(&about, found, "a reply", format!("{remedy} {pid}"));
            }
            let found = format!("its control socket refused the connection ({error})");
            let expected = format!("user {}'s to be open to us", self.uid);
            Unusable::new(&about, found, expected, "act as its user, or as root")
        };
        let mut wire = Wire::connect(path, self.uid).map_err(unusable)?;
        match wire.ask_within(command, why, timeout).map_err(unusable)? {
            Outcome::Refused(said) => Err(CommandError::Refused { pid, said }),
            Outcome::Done(done) => Ok((wire, done)),
        }
    }
}

/// The same input with absolute paths.
fn absolute(mut spec: InputSpec) -> InputSpec {
    let rooted = |path: &str| std::path::absolute(path).map_or(path.to_owned(), |path| path.display().to_string());
    let is_address = |from: &str| ["udp:", "cudaq:", "shm:"].iter().any(|kind| from.starts_with(kind));
    let is_no_file = |from: &str| is_address(from) || ["sampler", "-"].contains(&from);
    match spec.from.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => spec.from = format!("unix:{}", rooted(path)),
        Some(_) => {}
        None if is_no_file(&spec.from) => {}
        None => spec.from = rooted(&spec.from),
    }
    spec.dem = spec.dem.as_deref().map(absolute_model);
    spec.observables = spec.observables.map(|path| rooted(&path));
    spec
}

/// The path of a model's file, absolute; a name without a file may be that of a bundled model.
fn absolute_model(name: &str) -> String {
    let rooted = std::path::absolute(name).ok().filter(|path| path.exists());
    rooted.map_or_else(|| name.to_owned(), |path| path.display().to_string())
}

/// A decoder as commands name it, with the absolute path of its plugin.
fn absolute_decoder(name: &str) -> String {
    match Decoder::from_text(name) {
        Some(Decoder::Plugin { path, config, trusted, limit_us }) => {
            let rooted = std::path::absolute(&path).map_or(path, |rooted| rooted.display().to_string());
            Decoder::Plugin { path: rooted, config, trusted, limit_us }.text()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{
        Command, ControlSocket, InputSpec, Outcome, REPLY_TIMEOUT, Wire, absolute, absolute_decoder, reply_timeout,
    };
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    #[test]
    fn an_engine_of_another_version_refuses_in_a_sentence_that_names_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let owner = std::fs::metadata(&path).unwrap().uid();
        let engine = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            stream.get_mut().write_all(b"{\"version\":1,\"refused\":\"found something else\"}\n").unwrap();
            line
        });
        let outcome = Wire::connect(&path, owner).unwrap().ask(Command::Pause, "").unwrap();
        assert_eq!(engine.join().unwrap(), "{\"version\":2,\"command\":\"pause\",\"why\":\"\"}\n");
        let Outcome::Refused(said) = outcome else { panic!("{outcome:?}") };
        assert!(said.starts_with("found a reply of version 1, expected a reply of version 2"), "{said}");
    }

    #[test]
    fn a_command_that_loads_a_plugin_has_longer_than_a_plugin_may_take() {
        let plugin = Command::Decoder { decoder: "plugin:a.so".to_owned(), stream: None };
        assert!(reply_timeout(&plugin) > Duration::from_secs(32) && reply_timeout(&Command::Status) == REPLY_TIMEOUT);
    }

    #[test]
    fn a_silent_engine_is_not_taken_for_one_that_refuses_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        // Its connections wait, as those of a frozen engine do.
        let _listener = UnixListener::bind(&path).unwrap();
        let uid = std::fs::metadata(&path).unwrap().uid();
        let socket = ControlSocket { pid: 7, uid, path: Some(path) };
        let said = socket.execute(Command::Pause, "").unwrap_err().to_string();
        let expected = "engine of process 7: found no reply within 10 s, expected one, unless the engine is frozen; see \
                        where with pinwheel dump 7; it may still execute the command once it goes on";
        assert_eq!(said, expected);
        let plugin = Command::Decoder { decoder: "plugin:a.so".to_owned(), stream: None };
        let said = socket.execute_within(plugin, "", Duration::from_secs(1)).unwrap_err().to_string();
        assert_eq!(said, expected.replace("10 s", "1 s"), "however long its preparation may take");
    }

    #[test]
    fn an_engine_that_ends_before_its_reply_is_not_taken_for_one_that_refuses_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let uid = std::fs::metadata(&path).unwrap().uid();
        let socket = ControlSocket { pid: 7, uid, path: Some(path.clone()) };
        let engine = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
        });
        let ended = socket.execute(Command::Pause, "").unwrap_err().to_string();
        engine.join().unwrap();
        // The file of a killed engine's socket stays.
        let killed = socket.execute(Command::Pause, "").unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        let gone = socket.execute(Command::Pause, "").unwrap_err().to_string();
        // Whoever connects for longer is told the same.
        assert_eq!(socket.open(Command::Status, "").err().map(|error| error.to_string()), Some(gone.clone()));
        for said in [ended, killed, gone] {
            assert!(said.contains("pinwheel postmortem 7") && !said.contains("act as its user"), "{said}");
        }
    }

    #[test]
    fn only_the_path_of_a_plugin_becomes_absolute() {
        let here = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
        for (text, expected) in [
            ("lookup", "lookup".to_owned()),
            ("plugin:/opt/a.so", "plugin:/opt/a.so".to_owned()),
            ("plugin:a.so", format!("plugin:{here}/a.so")),
            ("trusted-plugin:./b/a.so", format!("trusted-plugin:{here}/b/a.so")),
        ] {
            assert_eq!(absolute_decoder(text), expected);
        }
    }

    #[test]
    fn only_file_names_become_absolute() {
        let here = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
        for (text, expected) in [
            ("sampler", "sampler".to_owned()),
            ("-", "-".to_owned()),
            ("unix:", "unix:".to_owned()),
            ("udp:127.0.0.1:7000", "udp:127.0.0.1:7000".to_owned()),
            ("cudaq:127.0.0.1:7000", "cudaq:127.0.0.1:7000".to_owned()),
            ("shm:fpga0", "shm:fpga0".to_owned()),
            ("unix:in", format!("unix:{here}/in")),
            ("today.b8 --dem surface_d3", format!("{here}/today.b8 --dem surface_d3")),
            ("/a.b8 --dem src/lib.rs --observables o", format!("/a.b8 --dem {here}/src/lib.rs --observables {here}/o")),
        ] {
            assert_eq!(InputSpec::parse(text).map(|spec| absolute(spec).to_string()), Ok(expected));
        }
    }
}
