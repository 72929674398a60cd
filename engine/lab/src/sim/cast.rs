//! The roles of several silos, some of which die and are built anew between two steps.
//!
//! Owns the roles and the specs of those to come. A condemned role dies when its turn comes, and one to come is built then: so both
//! happen between any steps of the others, as on threads. Bounds: the roles.

use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board, RoleBlock};
use crate::clock::Clock;
use crate::hot::{Frame, Init, Role, RoleError, RoleSpec, is_door};
use crate::profile::RoleKind;
use crate::silo::HotSide;
use std::sync::Arc;

/// A role's part.
struct Part {
    kind: RoleKind,
    silo: usize,
    index: u32,
    role: Option<Box<dyn Role>>,
    is_condemned: bool,
    next: Option<RoleSpec>,
}

/// All silos' roles.
pub(super) struct Cast {
    board: Arc<Board>,
    clock: Clock,
    parts: Vec<Part>,
}

impl Cast {
    pub(super) fn new(board: &Arc<Board>, clock: &Clock) -> Cast {
        Cast { board: Arc::clone(board), clock: clock.clone(), parts: Vec::new() }
    }

    /// One more.
    pub(super) fn add(&mut self, spec: RoleSpec) -> Result<(), RoleError> {
        let (kind, silo, index) = (spec.kind, spec.silo as usize, spec.index);
        let mut init = Init { clock: &self.clock, board: &self.board };
        let role = Some((spec.build)(&mut init)?);
        self.parts.push(Part { kind, silo, index, role, is_condemned: false, next: None });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    fn block(&self, at: usize) -> &RoleBlock {
        &self.board.thread(0).roles[at]
    }

    /// Part `at` has its turn.
    pub(super) fn play(&mut self, at: usize, frame: &mut Frame<'_>) {
        let part = &mut self.parts[at];
        if part.is_condemned {
            part.is_condemned = false;
            part.role = None;
            board::set_last(&self.block(at).died, 1);
            return;
        }
        if let Some(spec) = part.next.take() {
            let mut init = Init { clock: &self.clock, board: &self.board };
            part.role = Some((spec.build)(&mut init).expect("a role of the stand-in can be built"));
            board::set_last(&self.block(at).died, 0);
            return;
        }
        if let Some(role) = &mut part.role {
            let _ = role.work(frame);
        }
    }

    /// One role of the path of `silo` dies where it stands, as by a panic between two pieces of work; `draw` says which.
    pub(super) fn strike(&mut self, silo: usize, draw: u64) {
        let is_of_path = |at: &usize| self.parts[*at].silo == silo && !is_door(self.parts[*at].kind);
        let path: Vec<usize> = (0..self.parts.len()).filter(is_of_path).collect();
        let at = path[draw as usize % path.len()];
        self.parts[at].role = None;
        board::set_last(&self.block(at).died, 1);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.parts.iter().filter_map(|part| part.role.as_ref()).all(|role| role.is_drained())
    }

    /// Those that are not drained, in words.
    pub(super) fn left(&self) -> String {
        let left = self.parts.iter().filter(|part| part.role.as_ref().is_some_and(|role| !role.is_drained()));
        left.map(|part| format!("{}:{}", part.silo, part.kind.name())).collect::<Vec<_>>().join(" ")
    }

    fn path(&self, silo: usize) -> impl Iterator<Item = usize> {
        (0..self.parts.len()).filter(move |at| self.parts[*at].silo == silo && !is_door(self.parts[*at].kind))
    }
}

impl HotSide for Cast {
    fn condemn(&mut self, silo: usize) {
        let live = |part: &&mut Part| part.silo == silo && !is_door(part.kind) && part.role.is_some();
        self.parts.iter_mut().filter(live).for_each(|part| part.is_condemned = true);
    }

    fn fenced(&self, silo: usize) -> Option<Fenced> {
        Fenced::died(Owner::new(silo as u8), self.path(silo).map(|at| self.block(at))).ok()
    }

    fn died(&self, silo: usize) -> Option<String> {
        let at = self.path(silo).find(|at| board::get(&self.block(*at).died) != 0)?;
        Some(format!("{} was struck", self.parts[at].kind.name()))
    }

    fn revive(&mut self, silo: usize, specs: Vec<RoleSpec>) {
        for spec in specs {
            let is_it = |part: &&mut Part| (part.kind, part.silo, part.index) == (spec.kind, silo, spec.index);
            let part = self.parts.iter_mut().find(is_it).expect("a silo comes back with the roles that it had");
            part.next = Some(spec);
        }
    }

    fn revived(&mut self, silo: usize) -> Option<Result<(), String>> {
        self.path(silo).all(|at| self.parts[at].role.is_some()).then_some(Ok(()))
    }
}
