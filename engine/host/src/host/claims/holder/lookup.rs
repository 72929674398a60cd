//! Looks a holder up: in the kernel's list of locks, in the holder's `/proc` entry and on its
//! board.
//!
//! Cold; reads only. Bounded by the files' limits and by the boards of one directory.

use std::io::Read;
use std::path::Path;

use zerocopy::FromBytes;

use super::Holder;
use crate::board::layout::{self, MAGIC};
use crate::board::{self, HeaderBlock};
use crate::clock::utc_text;
use crate::files;
use crate::files::shared::Locks;
use crate::host::claims::flock::LockFile;
use crate::host::{machine, read_text};

pub(super) fn holder(root: &Path, boards: &Path, file: &LockFile) -> Holder {
    let Some(pid) = Locks::read(root).and_then(|locks| locks.holder_of(file)) else { return Holder::default() };
    let header = board_of(boards, pid);
    let profile = header.as_ref().map(|header| header.profile.read()).filter(|name| !name.is_empty());
    let started = header.as_ref().and_then(|header| i64::try_from(board::get(&header.started_utc_s)).ok());
    let since = started.filter(|&at| at > 0).or_else(|| process_start(root, pid));
    let user = machine::user_of(root, &pid.to_string());
    Holder { pid: Some(pid), user, profile, since: since.and_then(utc_text) }
}

/// Whether process `pid` has a board of this layout in `boards`.
pub(in crate::host::claims) fn has_board(boards: &Path, pid: u32) -> bool {
    board_of(boards, pid).is_some()
}

/// The header of process `pid`'s board, if it has our layout.
fn board_of(boards: &Path, pid: u32) -> Option<HeaderBlock> {
    let prefix = format!("board-{pid}");
    let entries = std::fs::read_dir(boards).ok()?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.strip_prefix(&prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        .collect();
    names.sort_unstable();
    names.iter().find_map(|name| header(&boards.join(name)).filter(|header| board::get(&header.pid) == u64::from(pid)))
}

fn header(path: &Path) -> Option<HeaderBlock> {
    let mut bytes = vec![0; size_of::<HeaderBlock>()];
    files::open(path).ok()?.read_exact(&mut bytes).ok()?;
    let header = HeaderBlock::read_from_bytes(&bytes).ok()?;
    let known = board::get(&header.magic) == MAGIC && board::get(&header.layout_hash) == layout::hash();
    known.then_some(header)
}

/// When a process was started, seconds since 1970.
fn process_start(root: &Path, pid: u32) -> Option<i64> {
    let stat = read_text(&root.join(format!("proc/{pid}/stat")))?;
    // The name in brackets may contain anything; of the fields after it, the start time is the
    // 20th.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let boot = read_text(&root.join("proc/stat"))?;
    let boot: i64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let since_boot_s = ticks / rustix::param::clock_ticks_per_second().max(1);
    boot.checked_add(i64::try_from(since_boot_s).ok()?)
}
