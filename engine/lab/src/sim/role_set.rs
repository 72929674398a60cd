//! The roles of several silos, some of which end and are rebuilt between two steps.
//!
//! Owns the roles and the specs of roles still to be built. A role marked to stop ends at its next
//! call, and a new one is built at its first: so both happen between any steps of the others, as on
//! threads. Bounded by the number of roles.

use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board, RoleBlock};
use crate::clock::Clock;
use crate::hot::{Frame, Init, Role, RoleError, RoleSpec, outlives_path};
use crate::roles::RoleKind;
use crate::silo::PathControl;
use std::sync::Arc;

/// One role and its state.
struct Part {
    kind: RoleKind,
    silo: usize,
    index: u32,
    role: Option<Box<dyn Role>>,
    is_stopping: bool,
    next: Option<RoleSpec>,
}

/// The roles of all silos.
pub(super) struct RoleSet {
    board: Arc<Board>,
    clock: Clock,
    parts: Vec<Part>,
}

impl RoleSet {
    pub(super) fn new(board: &Arc<Board>, clock: &Clock) -> RoleSet {
        RoleSet { board: Arc::clone(board), clock: clock.clone(), parts: Vec::new() }
    }

    /// Adds and builds a role.
    pub(super) fn add(&mut self, spec: RoleSpec) -> Result<(), RoleError> {
        let (kind, silo, index) = (spec.kind, spec.silo as usize, spec.index);
        let mut init = Init { clock: &self.clock, board: &self.board };
        let role = Some((spec.build)(&mut init)?);
        self.parts.push(Part { kind, silo, index, role, is_stopping: false, next: None });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    fn block(&self, at: usize) -> &RoleBlock {
        &self.board.thread(0).roles[at]
    }

    /// Calls role `at`.
    pub(super) fn call(&mut self, at: usize, frame: &mut Frame<'_>) {
        let part = &mut self.parts[at];
        if part.is_stopping {
            part.is_stopping = false;
            part.role = None;
            board::set_last(&self.block(at).died, 1);
            return;
        }
        if let Some(spec) = part.next.take() {
            let mut init = Init { clock: &self.clock, board: &self.board };
            part.role = Some((spec.build)(&mut init).expect("a role of the simulation can be built"));
            board::set_last(&self.block(at).died, 0);
            return;
        }
        if let Some(role) = &mut part.role {
            let _ = role.work(frame);
        }
    }

    /// Ends one role of the path of `silo` between two pieces of work, as a panic would; `draw`
    /// selects the role.
    pub(super) fn end_one_role(&mut self, silo: usize, draw: u64) {
        let is_of_path = |at: &usize| self.parts[*at].silo == silo && !outlives_path(self.parts[*at].kind);
        let path: Vec<usize> = (0..self.parts.len()).filter(is_of_path).collect();
        let at = path[draw as usize % path.len()];
        self.parts[at].role = None;
        board::set_last(&self.block(at).died, 1);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.parts.iter().filter_map(|part| part.role.as_ref()).all(|role| role.is_drained())
    }

    /// The names of the roles that are not drained.
    pub(super) fn left(&self) -> String {
        let left = self.parts.iter().filter(|part| part.role.as_ref().is_some_and(|role| !role.is_drained()));
        left.map(|part| format!("{}:{}", part.silo, part.kind.name())).collect::<Vec<_>>().join(" ")
    }

    fn path(&self, silo: usize) -> impl Iterator<Item = usize> {
        (0..self.parts.len()).filter(move |at| self.parts[*at].silo == silo && !outlives_path(self.parts[*at].kind))
    }
}

impl PathControl for RoleSet {
    fn stop(&mut self, silo: usize) {
        let live = |part: &&mut Part| part.silo == silo && !outlives_path(part.kind) && part.role.is_some();
        self.parts.iter_mut().filter(live).for_each(|part| part.is_stopping = true);
    }

    fn fenced(&self, silo: usize) -> Option<Fenced> {
        Fenced::died(Owner::new(silo as u8), self.path(silo).map(|at| self.block(at))).ok()
    }

    fn died(&self, silo: usize) -> Option<String> {
        let at = self.path(silo).find(|at| board::get(&self.block(*at).died) != 0)?;
        Some(format!("{} was ended by an injected fault", self.parts[at].kind.name()))
    }

    fn restart(&mut self, silo: usize, specs: Vec<RoleSpec>) {
        for spec in specs {
            let is_it = |part: &&mut Part| (part.kind, part.silo, part.index) == (spec.kind, silo, spec.index);
            let part = self.parts.iter_mut().find(is_it).expect("a silo rejoins with its previous roles");
            part.next = Some(spec);
        }
    }

    fn restarted(&mut self, silo: usize) -> Option<Result<(), String>> {
        self.path(silo).all(|at| self.parts[at].role.is_some()).then_some(Ok(()))
    }
}
