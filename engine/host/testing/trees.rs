//! Recorded machines for the tests of three crates: a text file each under `testdata/sys`,
//! expanded into a directory.
//!
//! ```text
//! # a comment                     lines before the first path, and lines that begin with a blank after the #
//! == sys/devices/system/cpu/online
//! 0-3                             the content up to the next path
//! == sys/devices/system/cpu/cpu{0-3}/topology/thread_siblings_list
//! {},{+4}                         written for each number: {} is it, {+4} and {-4} are offset from it
//! ```
#![allow(clippy::unwrap_used, reason = "harness")]

use std::path::Path;

use tempfile::TempDir;

/// The recorded machines: name and text.
pub(crate) const MACHINES: [(&str, &str); 5] = [
    ("vm2", include_str!("../testdata/sys/vm2.tree")),
    ("desktop8", include_str!("../testdata/sys/desktop8.tree")),
    ("server64", include_str!("../testdata/sys/server64.tree")),
    ("grace72", include_str!("../testdata/sys/grace72.tree")),
    ("container4", include_str!("../testdata/sys/container4.tree")),
];

/// Expands one of [`MACHINES`].
pub(crate) fn machine(name: &str) -> TempDir {
    let (_, text) = MACHINES.iter().find(|(known, _)| *known == name).unwrap();
    let dir = tempfile::tempdir().unwrap();
    spread(dir.path(), text);
    dir
}

/// Writes one file of a tree.
pub(crate) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn spread(root: &Path, text: &str) {
    for part in text.split("\n== ").skip(1) {
        let (path, content) = part.split_once('\n').unwrap();
        let content = format!("{}\n", content.trim_end());
        match path.split_once('{') {
            None => write(root, path.trim(), &content),
            Some((head, rest)) => {
                let (range, tail) = rest.split_once('}').unwrap();
                let (first, last) = range.split_once('-').unwrap();
                for number in first.parse::<i64>().unwrap()..=last.parse::<i64>().unwrap() {
                    write(root, &format!("{head}{number}{tail}"), &numbered(&content, number));
                }
            }
        }
    }
}

/// `content` with `{}`, `{+n}` and `{-n}` replaced.
fn numbered(content: &str, number: i64) -> String {
    let mut parts = content.split('{');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (offset, rest) = part.split_once('}').unwrap();
        let offset = if offset.is_empty() { 0 } else { offset.parse::<i64>().unwrap() };
        text.push_str(&format!("{}{rest}", number + offset));
    }
    text
}
