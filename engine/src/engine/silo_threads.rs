//! The hot threads, as the silo supervisor uses them: stops, deaths and restarts of roles.
//!
//! Owns the senders of path changes. Runs on the control thread. Bounds: one path change per thread
//! at a time. Never waits.

use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board, RoleBlock};
use crate::hot::{PathChange, PathChangeSender, RoleSpec, ThreadReport, outlives_path};
use crate::plan::Plan;
use crate::roles::RoleKind;
use crate::silo::PathControl;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

pub(super) struct HotThreads {
    pub(super) board: Arc<Board>,
    pub(super) path_changes: Vec<PathChangeSender>,
    pub(super) reports: Receiver<ThreadReport>,
    /// Roles of each thread: kind, silo, index.
    pub(super) roles: Vec<Vec<(RoleKind, u32, u32)>>,
    /// Threads whose report on their restarted roles is pending.
    pub(super) building: usize,
    /// Why roles cannot be restarted, if so.
    pub(super) unbuilt: Option<String>,
}

impl HotThreads {
    pub(super) fn roles_of(plan: &Plan) -> Vec<Vec<(RoleKind, u32, u32)>> {
        let of = |thread: &crate::plan::PlannedThread| {
            thread.roles.iter().map(|role| (role.kind, role.silo, role.index)).collect()
        };
        plan.threads.iter().map(of).collect()
    }

    /// The roles between feed and harvest of `silo`, with thread and block.
    fn path(&self, silo: usize) -> impl Iterator<Item = (RoleKind, usize, &RoleBlock)> {
        let is_of_path = move |(kind, of, _): &(RoleKind, u32, u32)| *of as usize == silo && !outlives_path(*kind);
        self.roles.iter().enumerate().flat_map(move |(thread, roles)| {
            let blocks = roles.iter().zip(&self.board.thread(thread).roles);
            blocks.filter(move |(role, _)| is_of_path(role)).map(move |((kind, ..), block)| (*kind, thread, block))
        })
    }

    /// Whether a feed or harvest of any silo has died.
    pub(super) fn has_lost_feed_or_harvest(&self) -> bool {
        self.roles.iter().enumerate().any(|(thread, roles)| {
            let blocks = roles.iter().zip(&self.board.thread(thread).roles);
            blocks.into_iter().any(|((kind, ..), block)| outlives_path(*kind) && board::get(&block.died) != 0)
        })
    }
}

impl PathControl for HotThreads {
    fn stop(&mut self, silo: usize) {
        for (caller, roles) in self.path_changes.iter_mut().zip(&self.roles) {
            if roles.iter().any(|(_, of, _)| *of as usize == silo) {
                // A thread that has ended is fenced already.
                let _ = caller.push(PathChange::Stop { silo: silo as u32 });
            }
        }
    }

    fn fenced(&self, silo: usize) -> Option<Fenced> {
        Fenced::died(Owner::new(silo as u8), self.path(silo).map(|(.., block)| block)).ok()
    }

    fn died(&self, silo: usize) -> Option<String> {
        let (kind, thread, _) = self.path(silo).find(|(.., block)| board::get(&block.died) != 0)?;
        let block = self.board.thread(thread);
        let (file, line) = (block.panic_file.read(), board::get(&block.panic_line));
        Some(format!("{} on {} died at {file}:{line}", kind.name(), block.name.read()))
    }

    fn restart(&mut self, silo: usize, mut specs: Vec<RoleSpec>) {
        (self.building, self.unbuilt) = (0, None);
        for (thread, (caller, roles)) in self.path_changes.iter_mut().zip(&self.roles).enumerate() {
            let is_mine = |spec: &mut RoleSpec| {
                let identity = (spec.kind, spec.silo, spec.index);
                spec.silo as usize == silo && roles.contains(&identity)
            };
            let mine: Vec<RoleSpec> = specs.extract_if(.., is_mine).collect();
            if mine.is_empty() {
                continue;
            }
            match caller.push(PathChange::Restart(mine)) {
                Ok(()) => self.building += 1,
                Err(_) => {
                    let name = self.board.thread(thread).name.read();
                    let why =
                        format!("thread {name} has ended and cannot run the restarted roles; start the engine again");
                    self.unbuilt = Some(why);
                }
            }
        }
    }

    fn restarted(&mut self, _silo: usize) -> Option<Result<(), String>> {
        if let Some(why) = self.unbuilt.take() {
            return Some(Err(why));
        }
        while self.building > 0 {
            let report = self.reports.try_recv().ok()?;
            self.building -= 1;
            if let Err(error) = report.result {
                return Some(Err(error.to_string()));
            }
        }
        Some(Ok(()))
    }
}
