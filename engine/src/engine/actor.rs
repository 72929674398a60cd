//! Who acts on an engine: a user's process at a terminal, an alarm's rule, or a time that is over.
//!
//! Plain data, made once an action on cold threads. Bounds: one short read of `/proc` each. What cannot be seen there is left out, never
//! guessed.

use crate::host::neighbours::{own_uid, user};
use std::path::Path;

/// Longest reason that is kept, characters.
const WHY_CHARS_MAX: usize = 160;

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// As the log of events names it: `operator`, `alarm`, `timer`.
    pub(super) kind: &'static str,
    /// In words.
    pub(super) words: String,
    /// User number and process, for an operator.
    pub(super) numbers: Vec<u64>,
}

impl Actor {
    /// Whoever sits before this process.
    #[must_use]
    pub fn this_process() -> Actor {
        Actor::this_process_for("")
    }

    /// The same, and why in their own words.
    #[must_use]
    pub fn this_process_for(why: &str) -> Actor {
        Actor::operator(own_uid().unwrap_or(0), std::process::id(), why)
    }

    /// Whoever sits before process `pid` of user `uid`; `why` in their own words, if they gave any.
    #[must_use]
    pub fn operator(uid: u32, pid: u32, why: &str) -> Actor {
        let name = user(Path::new("/"), pid).unwrap_or_else(|| format!("user {uid}"));
        let tty = terminal(Path::new("/"), pid).unwrap_or_else(|| "no terminal".to_owned());
        let why: String = why.chars().filter(|letter| !letter.is_control()).take(WHY_CHARS_MAX).collect();
        let why = if why.is_empty() { why } else { format!(": {why}") };
        let words = format!("{name} (uid {uid}, process {pid}, {tty}){why}");
        Actor { kind: "operator", words, numbers: vec![u64::from(uid), u64::from(pid)] }
    }

    /// An alarm's rule, which says this.
    pub(super) fn alarm(sentence: &str) -> Actor {
        Actor { kind: "alarm", words: format!("an alarm: {sentence}"), numbers: Vec::new() }
    }

    /// A time that is over.
    pub(super) fn timer() -> Actor {
        Actor { kind: "timer", words: "itself: the time is over".to_owned(), numbers: Vec::new() }
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }
}

/// The terminal that process `pid` was started from, `pts/3`; `None`: it has none, or cannot be seen.
fn terminal(root: &Path, pid: u32) -> Option<String> {
    let stat = crate::files::read_lossy(root.join(format!("proc/{pid}/stat"))).ok()?;
    // The name before it may hold anything, brackets too. Then: state, parent, group, session, terminal.
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
    use super::{Actor, terminal};
    use crate::host::trees::write;

    #[test]
    fn a_terminal_is_named_as_its_user_knows_it() {
        let folder = tempfile::tempdir().expect("a directory");
        for (number, name) in [(34_819, Some("pts/3")), (136 << 8 | 0x2c | 1 << 20, Some("pts/300")), (0, None)] {
            write(folder.path(), "proc/7/stat", &format!("7 (a b) c) S 1 7 7 {number} 7 0"));
            assert_eq!(terminal(folder.path(), 7).as_deref(), name, "{number}");
        }
        assert_eq!(terminal(folder.path(), 8), None);
    }

    #[test]
    fn an_operator_is_named_with_process_and_reason_and_nothing_that_could_break_a_line() {
        let actor = Actor::operator(0, std::process::id(), "too\nloud");
        assert!(actor.words.contains(&format!("process {}", std::process::id())) && actor.words.ends_with(": tooloud"));
        assert_eq!(actor.numbers, [0, u64::from(std::process::id())]);
    }
}
