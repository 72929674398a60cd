//! What a round may leave behind: looked at when all its processes have ended.

use crate::engine::PATIENCE;
use crate::tally::Tally;
use crate::world::{Hang, World, read};
use serde_json::json;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How the engines of the round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// All by themselves or by a signal that they handle.
    Orderly,
    /// Some by signal 9: their board, claim, region and sockets stay for the post-mortem and the next engine.
    Killed,
}

/// Reports processes, locks and files that are left.
pub fn look(world: &World, ends: Ends, tally: &mut Tally) {
    let left = processes(world);
    if !left.is_empty() {
        tally.violation("processes are left", json!(left));
    }
    let locks = read(Path::new("/proc/locks"));
    let Ok(entries) = fs::read_dir(&world.shm) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Ok(found) = entry.metadata() {
            let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
            let place = format!(" {major:02x}:{minor:02x}:{} ", found.ino());
            if locks.contains(&place) {
                tally.violation(format!("a lock is left on {name}"), locks.clone());
            }
        }
        // The locks' files of cores stay; what counts is that nobody holds them.
        let may_stay = name.ends_with(".lock") || ends == Ends::Killed;
        if !may_stay {
            tally.violation(format!("a file is left in the directory of boards: {name}"), json!(null));
        }
    }
    if ends == Ends::Orderly {
        // Sockets of this program's own clients are at the top.
        let own = |path: &String| path.contains("client.sock-") || path.contains("other.sock-");
        for path in sockets(&world.dir, 3).into_iter().filter(|path| !own(path)) {
            tally.violation("a socket is left", json!(path));
        }
    }
}

/// Writes the page of each run: one file that opens without a network, and in which no text of a run is markup.
pub fn pages(world: &World, tally: &mut Tally) {
    for run in fs::read_dir(world.path("logs")).into_iter().flatten().flatten() {
        let words = format!("report {} --logs logs --output page.html", run.file_name().to_string_lossy());
        match world.run(&words, PATIENCE) {
            Err(Hang(evidence)) => tally.hang(words, evidence),
            Ok(ran) => {
                let page = read(&world.path("page.html"));
                let is_whole = page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>");
                if let Some(trouble) = ran.trouble(&[0]).or((!is_whole).then(|| "no whole page".into())) {
                    tally.violation(format!("{words}: {trouble}"), crate::world::tail(&page));
                }
                if page.contains("<script") || page.contains('\u{1b}') {
                    tally.violation(format!("{words}: text of the run is markup in the page"), json!(null));
                }
            }
        }
        let _ = fs::remove_file(world.path("page.html"));
    }
}

/// Processes that were started with this world's directory of boards.
pub fn processes(world: &World) -> Vec<String> {
    let mark = [b"PINWHEEL_SHM=", world.shm.as_os_str().as_bytes()].concat();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == mark)
    })
    .map(|pid| format!("{pid} {}", read(Path::new(&format!("/proc/{pid}/comm"))).trim()))
    .collect()
}

fn sockets(dir: &Path, depth: u32) -> Vec<String> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_socket() => found.push(entry.path().display().to_string()),
            Ok(kind) if kind.is_dir() && depth > 0 => found.extend(sockets(&entry.path(), depth - 1)),
            _ => {}
        }
    }
    found
}
