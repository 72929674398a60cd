//! `pinwheel attach ssh:HOST[:RUN]`: the program on that host attaches, in a session of the user's own ssh.
//!
//! Runs on the main thread; owns the child process. There is no protocol between two programs here: the console is the
//! host's own, so no version can differ from its engine's, and only the terminal's bytes cross the link. When the link
//! is cut, the console there loses its terminal and ends, which the engine does not notice; here the terminal is
//! restored, and ssh connects again.

use crate::cli::pause;
use crate::cli::refusal::Refusal;
use crate::cli::say;
use crate::term;
use crate::theme::Theme;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Begins an engine's place on another host.
const SCHEME: &str = "ssh:";
/// Exit status of ssh where ssh itself has failed.
const SSH_FAILED: i32 = 255;
/// Exit statuses of a shell that cannot execute the program, or does not find it.
const NOT_EXECUTED: i32 = 126;
const NOT_FOUND: i32 = 127;
/// What ssh says at first of a user whom the host has let in, and at the end of a session that another ssh's connection
/// carried.
const CONNECTED: [&str; 2] = ["Authenticated to ", "Shared connection to "];
/// From one lost link to the next attempt, seconds: the first and the longest.
const WAIT_S: (u64, u64) = (1, 30);

/// An engine on another host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remote<'a> {
    host: &'a str,
    run: Option<&'a str>,
}

impl<'a> Remote<'a> {
    /// Parses `ssh:HOST[:RUN]`, where HOST may have a user and brackets; `None` for another form.
    ///
    /// # Errors
    /// A host that ssh would take as an option, or none.
    pub(super) fn parse(engine: &'a str) -> Option<Result<Remote<'a>, Refusal>> {
        let place = engine.strip_prefix(SCHEME)?;
        let user_end = place.find('@').map_or(0, |at| at + 1);
        let host_end = match place[user_end..].strip_prefix('[').and_then(|inner| inner.find(']')) {
            Some(bracket) => user_end + bracket + 2,
            None => place[user_end..].find(':').map_or(place.len(), |at| user_end + at),
        };
        let (host, rest) = place.split_at(host_end);
        let run = rest.strip_prefix(':').filter(|run| !run.is_empty());
        let is_usable = host.len() > user_end && !host.starts_with('-') && !host.contains(char::is_whitespace);
        let is_whole = rest.is_empty() || rest.starts_with(':');
        if is_usable && is_whole && !host.contains(char::is_control) {
            return Some(Ok(Remote { host, run }));
        }
        let expected = "a host as ssh names it, and a run if there are several";
        Some(Err(Refusal::unusable("attach", engine, expected, "write it like ssh:lab2 or ssh:ann@lab2:RUN")))
    }

    /// ssh's own name of the host: without the brackets, which only separate it from the run.
    fn name(&self) -> String {
        self.host.replace(['[', ']'], "")
    }

    /// The command line for the host's shell: `words` are this program's, whose `engine` becomes the run.
    fn line(&self, program: &str, engine: &str, words: impl Iterator<Item = String>) -> String {
        let words = words.filter(|word| word != engine && word != "--").chain(self.run.map(str::to_owned));
        let words = std::iter::once(program.to_owned()).chain(words);
        words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word that a POSIX shell takes as it is.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What this terminal can show, as options of the console there: ssh passes no more of it on than TERM.
fn terminal_options(words: &[String]) -> Vec<String> {
    let theme = Theme::from_variables(|name| std::env::var(name).ok());
    let mut options = Vec::new();
    for (option, value) in
        [("--colour", theme.colour.to_possible_value()), ("--glyphs", theme.glyphs.to_possible_value())]
    {
        let is_given = words.iter().any(|word| word == option || word.starts_with(&format!("{option}=")));
        if let Some(value) = value.filter(|_| !is_given) {
            options.extend([option.to_owned(), value.get_name().to_owned()]);
        }
    }
    options
}

/// Attaches there, with this program's own options; `program` is what that host calls it.
///
/// # Errors
/// Without ssh, a link that never was, or the program there.
pub(super) fn attach(remote: &Remote, program: &str, engine: &str, has_console: bool) -> Result<u8, Refusal> {
    let words: Result<Vec<String>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let mut words = words.map_err(|word| {
        let remedy = "give the file on that host another name";
        Refusal::unusable("attach", word.display().to_string(), "words in UTF-8 for another host", remedy)
    })?;
    if let Some(at) = words.iter().position(|word| word == "--program") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.retain(|word| !word.starts_with("--program="));
    if has_console {
        words.extend(terminal_options(&words));
    }
    let line = remote.line(program, engine, words.into_iter());
    let (mut wait_s, mut was_connected) = (WAIT_S.0, false);
    loop {
        let link = Link::run(remote, &line, has_console)?;
        match link.code {
            SSH_FAILED => {}
            code @ (NOT_EXECUTED | NOT_FOUND) => {
                let found = match code {
                    NOT_FOUND => format!("no program {program} in the PATH of a command over ssh"),
                    _ => format!("a file {program} that cannot be executed"),
                };
                let remedy = "install it there, or name it with --program PATH";
                return Err(Refusal::unusable(remote.host, found, "pinwheel on that host", remedy));
            }
            code => return Ok(u8::try_from(code).unwrap_or(1)),
        }
        if link.was_connected {
            (was_connected, wait_s) = (true, WAIT_S.0);
            term::give_back();
        }
        if !was_connected || !has_console {
            let remedy = format!("try ssh {} true", remote.name());
            return Err(Refusal::unusable(remote.host, format!("no link ({})", link.said), "one by ssh", remedy));
        }
        let said = link.said;
        say::people(&format!(
            "pinwheel: {}: the link was lost ({said}); the engine goes on. Connecting again in {wait_s} s; Ctrl-C ends.",
            remote.host
        ));
        pause(Duration::from_secs(wait_s));
        wait_s = (wait_s * 2).min(WAIT_S.1);
    }
}

/// How a session of ssh ended.
struct Link {
    /// Its exit status.
    code: i32,
    /// Whether the host had let the user in.
    was_connected: bool,
    /// Its last words.
    said: String,
}

impl Link {
    /// Runs the command line on the host until it ends.
    fn run(remote: &Remote, line: &str, has_console: bool) -> Result<Link, Refusal> {
        let mut ssh = Command::new("ssh");
        // A dead link is noticed within fifteen seconds.
        ssh.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        if has_console {
            // Verbose, it says when the user was let in. Its questions go to the terminal, not here.
            ssh.args(["-t", "-o", "LogLevel=VERBOSE"]).stderr(Stdio::piped());
        } else {
            ssh.arg("-T").stdin(Stdio::null());
        }
        let missing = |error: std::io::Error| {
            Refusal::unusable("attach", format!("no ssh ({error})"), "ssh in PATH", "install OpenSSH's client")
        };
        let mut child = ssh.args(["--", &remote.name(), line]).spawn().map_err(missing)?;
        let mut link = Link { code: 0, was_connected: false, said: "ssh says why above".to_owned() };
        let said =
            child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n').map_while(Result::ok));
        for bytes in said {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            link.was_connected |= CONNECTED.iter().any(|start| text.starts_with(start));
            let is_account = ["Authenticated", "Transferred:", "Bytes per second:", "debug"];
            if !text.is_empty() && !is_account.iter().any(|start| text.starts_with(start)) {
                link.said = text;
            }
        }
        let status = child.wait().map_err(missing)?;
        link.code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::{Remote, quoted};

    fn parsed(text: &str) -> Option<(String, Option<&str>)> {
        Remote::parse(text)?.ok().map(|remote| (remote.name(), remote.run))
    }

    #[test]
    fn a_place_is_a_host_and_perhaps_a_run() {
        assert_eq!(parsed("ssh:lab2"), Some(("lab2".into(), None)));
        assert_eq!(parsed("ssh:ann@lab2:1234"), Some(("ann@lab2".into(), Some("1234"))));
        assert_eq!(parsed("ssh:[fe80::1]:2026-11-24_a"), Some(("fe80::1".into(), Some("2026-11-24_a"))));
        assert_eq!(parsed("ssh:ann@[::1]"), Some(("ann@::1".into(), None)));
        assert_eq!(parsed("ssh:lab2:"), Some(("lab2".into(), None)));
        assert!(Remote::parse("1234").is_none());
    }

    #[test]
    fn a_host_that_ssh_would_take_for_an_option_is_refused() {
        for text in
            ["ssh:", "ssh:-oProxyCommand=touch x", "ssh:ann@", "ssh:a b", "ssh::run", "ssh:a\u{1b}b", "ssh:[::1]x"]
        {
            assert!(matches!(Remote::parse(text), Some(Err(_))), "{text}");
        }
    }

    #[test]
    fn the_run_and_each_option_reach_the_host_as_one_word_each() {
        let remote = Remote { host: "lab2", run: Some("it's $(x)") };
        let words = ["attach", "ssh:lab2:it's $(x)", "--view", "threads"].map(str::to_owned);
        let line = remote.line("pinwheel", "ssh:lab2:it's $(x)", words.into_iter());
        assert_eq!(line, r"pinwheel attach --view threads 'it'\''s $(x)'");
        let words = ["attach", "--", "ssh:lab2", "--colour", "none"].map(str::to_owned);
        let line = Remote { host: "lab2", run: None }.line("pinwheel", "ssh:lab2", words.into_iter());
        assert_eq!(line, "pinwheel attach --colour none");
        assert_eq!(quoted(""), "''");
    }
}
