//! What an automatic plan divides: the cores that hot threads may have, and the roles that share them.

use crate::plan::RoleKind;

use RoleKind::{Device, Dispatch, Feed, Graph, Harvest, Poll};

/// Most decode workers that `Decoders::Auto` gives a silo.
pub(super) const AUTO_DECODERS_MAX: usize = crate::profile::DECODERS_AUTO_MAX as usize;

/// How the ring roles are divided among 1, 2, .. 5 threads. Feed and harvest, the slot's two ends, stay together
/// longest: they touch the same words of it. Graph stays with poll: what it takes up is what that one has just claimed,
/// and a task costs it a tenth of a microsecond.
pub(super) const RING_SPLITS: [&[&[RoleKind]]; 5] = [
    &[&[Feed, Dispatch, Device, Poll, Graph, Harvest]],
    &[&[Feed, Harvest], &[Dispatch, Device, Poll, Graph]],
    &[&[Feed, Harvest], &[Dispatch, Poll, Graph], &[Device]],
    &[&[Feed, Harvest], &[Dispatch], &[Device], &[Poll, Graph]],
    &[&[Feed], &[Dispatch], &[Device], &[Poll, Graph], &[Harvest]],
];

/// How the roles before the graph role are divided among 1, 2, 3 threads of a balanced plan. Graph,
/// the first decode worker and harvest share the next thread.
pub(super) const FRONT_SPLITS: [&[&[RoleKind]]; 3] = [
    &[&[Feed, Dispatch, Device, Poll]],
    &[&[Feed], &[Dispatch, Device, Poll]],
    &[&[Feed], &[Dispatch, Poll], &[Device]],
];
/// The roles after them.
pub(super) const BACK: &[RoleKind] = &[Graph, Harvest];

/// A core that a hot thread may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct HotCore {
    pub(super) core: Option<u32>,
    pub(super) node: u32,
    pub(super) exclusive: bool,
}
