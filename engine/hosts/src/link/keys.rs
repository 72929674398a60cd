//! Key expressions: the names under which hosts ask each other and show that they are there.
//!
//! ```text
//! pinwheel/CLUSTER/to/RECEIVER/from/SENDER/TOPIC      a question
//! pinwheel/CLUSTER/present/NAME/INCARNATION           a host is there; the incarnation is hexadecimal
//! ```
//!
//! Pure functions. Bounded by the lengths of names. What arrives is parsed strictly: a key
//! expression with a wildcard, another cluster, an invalid name or a second spelling of an
//! incarnation is none of ours.

use super::Topic;
use crate::settings::is_name;

/// First part of every key expression of this project.
const ROOT: &str = "pinwheel";
/// Topic of the question that a starting host asks: do you see another host of my name? The link
/// answers it itself.
pub(super) const NAMESAKE: &str = "namesake";

/// Builds and reads the key expressions of one host.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    cluster: String,
    own: String,
}

impl Keys {
    pub(super) fn new(cluster: &str, own: &str) -> Keys {
        Keys { cluster: cluster.to_owned(), own: own.to_owned() }
    }

    /// This host's name.
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// A question on topic `word`, from this host to `receiver`.
    pub(super) fn question(&self, receiver: &str, word: &str) -> String {
        self.questions(receiver, &self.own, word)
    }

    /// All questions from `sender` to `receiver`; either may be the wildcard `*`.
    pub(super) fn questions(&self, receiver: &str, sender: &str, word: &str) -> String {
        format!("{ROOT}/{}/to/{receiver}/from/{sender}/{word}", self.cluster)
    }

    /// All questions to this host.
    pub(super) fn inbox(&self) -> String {
        self.questions(&self.own, "*", "*")
    }

    /// Presence of one incarnation of this host.
    pub(super) fn presence(&self, incarnation: u64) -> String {
        format!("{ROOT}/{}/present/{}/{incarnation:x}", self.cluster, self.own)
    }

    /// Presence of every incarnation of host `name`, which may be the wildcard `*`.
    pub(super) fn presences(&self, name: &str) -> String {
        format!("{ROOT}/{}/present/{name}/*", self.cluster)
    }

    /// Sender and topic of a question to this host.
    pub(super) fn sender<'k>(&self, key: &'k str) -> Option<(&'k str, &'k str)> {
        let mut parts = key.split('/');
        let mut next = || parts.next();
        let ours = next() == Some(ROOT) && next() == Some(&self.cluster) && next() == Some("to");
        let ours = ours && next() == Some(&self.own) && next() == Some("from");
        let (sender, word) = (next()?, next()?);
        (ours && is_name(sender) && is_name(word) && next().is_none()).then_some((sender, word))
    }

    /// Name and incarnation of a host that is or was there.
    pub(super) fn present<'k>(&self, key: &'k str) -> Option<(&'k str, u64)> {
        let mut parts = key.split('/');
        let mut next = || parts.next();
        let ours = next() == Some(ROOT) && next() == Some(&self.cluster) && next() == Some("present");
        let (name, digits) = (next()?, next()?);
        let incarnation = u64::from_str_radix(digits, 16).ok()?;
        let spelled = format!("{incarnation:x}") == digits;
        (ours && is_name(name) && spelled && next().is_none()).then_some((name, incarnation))
    }
}

impl Topic {
    /// The topic's word in key expressions.
    pub fn word(self) -> &'static str {
        match self {
            Topic::Describe => "describe",
            Topic::Board => "board",
            Topic::Command => "command",
            Topic::Shots => "shots",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Topic> {
        [Topic::Describe, Topic::Board, Topic::Command, Topic::Shots].into_iter().find(|topic| topic.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::{Keys, Topic};

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let (asker, receiver) = (Keys::new("lab", "a"), Keys::new("lab", "b"));
        for topic in [Topic::Describe, Topic::Board, Topic::Command, Topic::Shots] {
            let key = asker.question("b", topic.word());
            let (sender, word) = receiver.sender(&key).unwrap_or_default();
            assert_eq!((sender, Topic::from_word(word)), ("a", Some(topic)));
            assert_eq!(asker.sender(&key), None, "a question to another host");
        }
    }

    #[test]
    fn a_presence_is_read_as_it_was_written() {
        let keys = Keys::new("lab", "a");
        for incarnation in [0, 1, 0xabc, u64::MAX] {
            assert_eq!(keys.present(&keys.presence(incarnation)), Some(("a", incarnation)));
        }
    }

    #[test]
    fn wildcards_garbage_and_other_clusters_are_not_read() {
        let keys = Keys::new("lab", "a");
        for key in [
            "",
            "/",
            "pinwheel",
            "pinwheel/lab/to/a/from",
            "pinwheel/lab/to/a/from/b",
            "pinwheel/lab/to/*/from/b/board",
            "pinwheel/lab/to/a/from/*/board",
            "pinwheel/lab/to/a/from/b/*",
            "pinwheel/lab/to/a/from/B/board",
            "pinwheel/lab/to/a/from/b/board/more",
            "pinwheel/other/to/a/from/b/board",
            "pinwheel/lab/to/a/from/**",
        ] {
            assert_eq!(keys.sender(key), None, "{key}");
        }
        for key in [
            "",
            "pinwheel/lab/present/b",
            "pinwheel/lab/present/b/",
            "pinwheel/lab/present/b/xyz",
            "pinwheel/lab/present/b/+5",
            "pinwheel/lab/present/b/05",
            "pinwheel/lab/present/b/A",
            "pinwheel/lab/present/B/1",
            "pinwheel/lab/present/b/1/2",
            "pinwheel/other/present/b/1",
            "pinwheel/lab/present/*/1",
            "pinwheel/lab/present/b/10000000000000000",
        ] {
            assert_eq!(keys.present(key), None, "{key}");
        }
    }
}
