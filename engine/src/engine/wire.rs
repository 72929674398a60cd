//! Messages on the control socket: one JSON object a line, a request and its reply.
//!
//! Owns the messages of both directions and their bounds, for the socket's thread and its clients.
//! Pure. Each message carries [`VERSION`]. A request carries a [`Command`]; a reply reports the
//! result, or refuses the command in one sentence.

use super::command::Command;
use super::reply::Done;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of these messages. Since version 2, requests carry commands as the engine executes them.
/// A message of another version is refused.
pub const VERSION: u32 = 2;
/// Longest line in either direction, bytes: the longest text of a profile, with its escapes.
pub const LINE_BYTES_MAX: usize = 3 << 20;

/// Beginning of the last note of a run that another run follows in the same process. A viewer of
/// the board that reads it then looks for the next board.
pub const GOES_ON: &str = "goes on with another input";

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// The requested command.
    pub command: Command,
    /// The reason, in the operator's words; may be empty.
    #[serde(default)]
    pub why: String,
}

impl Request {
    /// A request of this program's version.
    pub fn new(command: Command, why: &str) -> Request {
        Request { version: VERSION, command, why: why.to_owned() }
    }
}

/// A reply to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// [`VERSION`].
    pub version: u32,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The command was executed.
    Done(Done),
    /// The command was refused, for the reason in this sentence.
    Refused(String),
}

/// Parses the request of a client.
///
/// # Errors
/// One sentence, if it is no request of this version.
pub fn read_request(line: &[u8]) -> Result<Request, String> {
    read(line, "request")
}

/// Parses the reply of an engine.
///
/// # Errors
/// As [`read_request`].
pub fn read_reply(line: &[u8]) -> Result<Outcome, String> {
    read(line, "reply").map(|reply: Reply| reply.outcome)
}

/// Checks the version first, because other versions may have other fields.
fn read<T: DeserializeOwned>(line: &[u8], what: &str) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let message = || -> Result<T, serde_json::Error> { serde_json::from_slice(line) };
    let found = match serde_json::from_slice(line) {
        Ok(Versioned { version: VERSION }) => match message() {
            Ok(message) => return Ok(message),
            Err(error) => format!("an invalid {what} ({error})"),
        },
        Ok(Versioned { version }) => format!("a {what} of version {version}"),
        Err(error) => format!("an invalid {what} ({error})"),
    };
    Err(format!(
        "found {found}, expected a {what} of version {VERSION}, one JSON object a line; use the version of pinwheel \
         that runs the engine"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Reply, Request, VERSION, read_reply, read_request};
    use crate::engine::command::{Command, InputSpec};
    use crate::engine::reply::Done;

    #[test]
    fn requests_and_replies_are_plain_json_lines() {
        let request = |text: &str| read_request(text.as_bytes());
        let text = r#"{"version":2,"command":{"profile":{"name":"shared","text":null,"for_s":60}},"why":"lunch"}"#;
        let command = Command::Profile { name: "shared".to_owned(), text: None, for_s: Some(60) };
        assert_eq!(request(text), Ok(Request::new(command, "lunch")));
        assert_eq!(request(r#"{"version":2,"command":"pause"}"#), Ok(Request::new(Command::Pause, "")));
        let text = r#"{"version":2,"command":{"input":{"from":"sampler","dem":"surface_d3"}}}"#;
        let spec = InputSpec { from: "sampler".to_owned(), dem: Some("surface_d3".to_owned()), ..InputSpec::default() };
        assert_eq!(request(text), Ok(Request::new(Command::Input(spec), "")));
        let done = Outcome::Done(Done::Note { text: "a".to_owned() });
        let text = serde_json::to_string(&Reply { version: VERSION, outcome: done.clone() }).unwrap_or_default();
        assert_eq!(text, r#"{"version":2,"done":{"action":"note","text":"a"}}"#);
        assert_eq!(read_reply(text.as_bytes()), Ok(done));
        let refused = Reply { version: VERSION, outcome: Outcome::Refused("no".to_owned()) };
        assert_eq!(serde_json::to_string(&refused).unwrap_or_default(), r#"{"version":2,"refused":"no"}"#);
    }

    #[test]
    fn a_message_of_another_version_is_refused_with_both_versions() {
        let request = read_request(br#"{"version":1,"ask":"pause"}"#).map(drop);
        let reply = read_reply(br#"{"version":1,"done":{"action":"gone"}}"#).map(drop);
        for (refused, what) in [(request, "request"), (reply, "reply")] {
            let said = refused.expect_err("another version");
            let both = format!("found a {what} of version 1, expected a {what} of version {VERSION}");
            assert!(said.starts_with(&both), "{said}");
        }
        assert!(read_request(b"hello").is_err_and(|said| said.contains("one JSON object a line")));
    }
}
