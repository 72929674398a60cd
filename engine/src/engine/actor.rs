//! The actor of a command: an operator's process, an alarm rule, a timer or the watchdog.
//!
//! Plain data, made once per action on cold threads. Bounds: three short reads of `/proc` each. Facts
//! that `/proc` does not show are left out, never guessed.

use crate::host::neighbours::{own_uid, user};
use std::net::IpAddr;
use std::path::Path;

/// Longest recorded reason, characters.
const WHY_CHARS_MAX: usize = 160;

/// Environment variable with the address of the browser in which a console is shown; `pinwheel serve` sets it.
pub const BROWSER_VARIABLE: &str = "PINWHEEL_BROWSER";

/// The actor of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    kind: Kind,
    words: String,
}

/// The kinds of actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A person or a script, by user number and process: at the engine's own console, an attached
    /// console or `pinwheel ctl`.
    Operator {
        uid: u32,
        pid: u32,
    },
    /// An alarm rule.
    Alarm,
    /// A timer: a limited time has ended.
    Timer,
    Watchdog,
}

impl Kind {
    /// Name in the log of events.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Operator { .. } => "operator",
            Kind::Alarm => "alarm",
            Kind::Timer => "timer",
            Kind::Watchdog => "watchdog",
        }
    }
}

impl Actor {
    /// The operator of this process, with the reason `why`, which may be empty.
    pub fn this_process(why: &str) -> Actor {
        Actor::operator(own_uid().unwrap_or(0), std::process::id(), why)
    }

    /// The operator of process `pid` of user `uid`, with the reason `why`, which may be empty.
    pub fn operator(uid: u32, pid: u32, why: &str) -> Actor {
        let name = user(Path::new("/"), pid).unwrap_or_else(|| format!("user {uid}"));
        let tty = terminal(Path::new("/"), pid).unwrap_or_else(|| "no terminal".to_owned());
        let from = origin(Path::new("/"), pid).unwrap_or_default();
        let why: String = why.chars().filter(|letter| !letter.is_control()).take(WHY_CHARS_MAX).collect();
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let words = format!("{name} (uid {uid}, process {pid}, {tty}{from}){why}");
        Actor { kind: Kind::Operator { uid, pid }, words }
    }

    /// An alarm rule, with the alarm's sentence.
    pub(super) fn alarm(sentence: &str) -> Actor {
        Actor { kind: Kind::Alarm, words: format!("an alarm: {sentence}") }
    }

    /// A timer whose time has ended.
    pub(super) fn timer() -> Actor {
        Actor { kind: Kind::Timer, words: "itself: the time is over".to_owned() }
    }

    pub(super) fn watchdog() -> Actor {
        Actor { kind: Kind::Watchdog, words: "the watchdog".to_owned() }
    }

    /// Description for the log.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Whether this is an operator at the console of the engine's own process.
    pub fn is_own_console(&self) -> bool {
        matches!(self.kind, Kind::Operator { pid, .. } if pid == std::process::id())
    }

    /// The kind of this actor.
    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// User number and process, for an operator.
    pub(super) fn numbers(&self) -> Vec<u64> {
        match self.kind {
            Kind::Operator { uid, pid } => vec![u64::from(uid), u64::from(pid)],
            Kind::Alarm | Kind::Timer | Kind::Watchdog => Vec::new(),
        }
    }
}

/// Where the user of process `pid` is, as that process says: `, in a browser from 10.0.0.5`, or `, over ssh from
/// 10.0.0.5`; `None`: it says neither, or it is another user's. A browser's address comes first: an address of ssh is
/// then that of whoever started `pinwheel serve`.
fn origin(root: &Path, pid: u32) -> Option<String> {
    let environment = crate::files::read_lossy(root.join(format!("proc/{pid}/environ"))).ok()?;
    let address = |name: &str| -> Option<IpAddr> {
        let value = environment.split('\0').find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='))?;
        value.split(' ').next()?.parse().ok()
    };
    let browser = address(BROWSER_VARIABLE).map(|from| format!(", in a browser from {from}"));
    browser.or_else(|| Some(format!(", over ssh from {}", address("SSH_CONNECTION")?)))
}

/// The terminal of process `pid`, `pts/3`; `None`: it has none, or it is not visible.
fn terminal(root: &Path, pid: u32) -> Option<String> {
    let stat = crate::files::read_lossy(root.join(format!("proc/{pid}/stat"))).ok()?;
    // The process name before it may contain brackets. After it: state, parent, group, session,
    // terminal.
    let number: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00);
    match major {
        136..=143 => Some(format!("pts/{}", (major - 136) << 8 | minor)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        4 => Some(format!("ttyS{}", minor - 64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Actor, origin, terminal};
    use crate::trees::write;

    #[test]
    fn terminal_numbers_become_device_names() {
        let folder = tempfile::tempdir().expect("a directory");
        for (number, name) in [(34_819, Some("pts/3")), (136 << 8 | 0x2c | 1 << 20, Some("pts/300")), (0, None)] {
            write(folder.path(), "proc/7/stat", &format!("7 (a b) c) S 1 7 7 {number} 7 0"));
            assert_eq!(terminal(folder.path(), 7).as_deref(), name, "{number}");
        }
        assert_eq!(terminal(folder.path(), 8), None);
    }

    #[test]
    fn who_came_by_ssh_or_in_a_browser_has_an_address_and_what_is_no_address_is_not_repeated() {
        let folder = tempfile::tempdir().expect("a directory");
        for (text, from) in [
            ("A=b\0SSH_CONNECTION=10.0.0.5 50000 10.0.0.1 22\0C=d\0", Some(", over ssh from 10.0.0.5")),
            ("SSH_CONNECTION=fe80::1%eth0 1 ::1 22\0", None),
            ("SSH_CONNECTION=\u{1b}[2J 1 ::1 22\0", None),
            ("XSSH_CONNECTION=10.0.0.5 1 2 3\0", None),
            ("PINWHEEL_BROWSER=::1\0", Some(", in a browser from ::1")),
            ("SSH_CONNECTION=10.0.0.5 1 ::1 22\0PINWHEEL_BROWSER=10.0.0.7\0", Some(", in a browser from 10.0.0.7")),
            ("PINWHEEL_BROWSER=\u{1b}[2J\0", None),
            ("PINWHEEL_BROWSERS=10.0.0.7\0", None),
        ] {
            write(folder.path(), "proc/7/environ", text);
            assert_eq!(origin(folder.path(), 7).as_deref(), from, "{text:?}");
        }
    }

    #[test]
    fn an_operator_is_described_on_one_line_with_process_and_reason() {
        let actor = Actor::operator(0, std::process::id(), "too\nloud");
        assert!(actor.words.contains(&format!("process {}", std::process::id())) && actor.words.ends_with(": tooloud"));
        assert_eq!(actor.numbers(), [0, u64::from(std::process::id())]);
    }
}
