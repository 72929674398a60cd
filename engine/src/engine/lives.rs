//! The hot threads, as the lives of silos see them: who is condemned, who has died, who is built anew.
//!
//! Owns the callers' ends. Runs on the control thread. Bounds: a call for each thread at a time. Never waits.

use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board, RoleBlock};
use crate::hot::{Call, Caller, RoleSpec, ThreadReport, is_door};
use crate::plan::Plan;
use crate::profile::RoleKind;
use crate::silo::HotSide;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The threads.
pub(super) struct HotThreads {
    pub(super) board: Arc<Board>,
    pub(super) callers: Vec<Caller>,
    pub(super) reports: Receiver<ThreadReport>,
    /// Of each thread its roles: duty, silo, number.
    pub(super) roles: Vec<Vec<(RoleKind, u32, u32)>>,
    /// Threads that have not said yet what they built.
    pub(super) building: usize,
    /// Why roles cannot be built, if so.
    pub(super) unbuilt: Option<String>,
}

impl HotThreads {
    pub(super) fn roles_of(plan: &Plan) -> Vec<Vec<(RoleKind, u32, u32)>> {
        let of = |thread: &crate::plan::PlannedThread| {
            thread.roles.iter().map(|role| (role.kind, role.silo, role.index)).collect()
        };
        plan.threads.iter().map(of).collect()
    }

    /// Blocks of the roles between the doors of `silo`.
    fn path(&self, silo: usize) -> impl Iterator<Item = (RoleKind, usize, &RoleBlock)> {
        let is_of_path = move |(kind, of, _): &(RoleKind, u32, u32)| *of as usize == silo && !is_door(*kind);
        self.roles.iter().enumerate().flat_map(move |(thread, roles)| {
            let blocks = roles.iter().zip(&self.board.thread(thread).roles);
            blocks.filter(move |(role, _)| is_of_path(role)).map(move |((kind, ..), block)| (*kind, thread, block))
        })
    }

    /// Whether a door of some silo has died.
    pub(super) fn has_lost_a_door(&self) -> bool {
        self.roles.iter().enumerate().any(|(thread, roles)| {
            let blocks = roles.iter().zip(&self.board.thread(thread).roles);
            blocks.into_iter().any(|((kind, ..), block)| is_door(*kind) && board::get(&block.died) != 0)
        })
    }
}

impl HotSide for HotThreads {
    fn condemn(&mut self, silo: usize) {
        for (caller, roles) in self.callers.iter_mut().zip(&self.roles) {
            if roles.iter().any(|(_, of, _)| *of as usize == silo) {
                // A thread that has left is fenced by that.
                let _ = caller.push(Call::Condemn { silo: silo as u32 });
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

    fn revive(&mut self, silo: usize, mut specs: Vec<RoleSpec>) {
        (self.building, self.unbuilt) = (0, None);
        for (thread, (caller, roles)) in self.callers.iter_mut().zip(&self.roles).enumerate() {
            let is_mine = |spec: &mut RoleSpec| {
                let identity = (spec.kind, spec.silo, spec.index);
                spec.silo as usize == silo && roles.contains(&identity)
            };
            let mine: Vec<RoleSpec> = specs.extract_if(.., is_mine).collect();
            if mine.is_empty() {
                continue;
            }
            match caller.push(Call::Revive(mine)) {
                Ok(()) => self.building += 1,
                Err(_) => {
                    let name = self.board.thread(thread).name.read();
                    let why =
                        format!("found thread {name} ended, expected it to run the roles; start the engine again");
                    self.unbuilt = Some(why);
                }
            }
        }
    }

    fn revived(&mut self, _silo: usize) -> Option<Result<(), String>> {
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
