//! Acknowledgements of commands by hot threads and decode workers, as the board shows them.

use crate::board::{self, Board, RoleBlock, ThreadBlock};
use crate::clock::Clock;
use crate::roles::RoleKind;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::spin::SpinOrder;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Acknowledgement of a hot thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Name of the thread.
    pub name: String,
    /// Its spin policy.
    pub policy: String,
    /// Its epoch.
    pub epoch: u64,
    /// Whether this is the requested epoch or a later one.
    pub acknowledged: bool,
    /// Why it does not run the profile's policy.
    pub refusal: Option<String>,
}

/// Acknowledgement of a decode worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAcknowledged {
    /// Its silo.
    pub silo: u32,
    /// Its number in the silo.
    pub worker: u32,
    /// Epoch of the decoders that it uses.
    pub epoch: u64,
    /// Whether this is the requested epoch or a later one.
    pub acknowledged: bool,
    /// Time between two shots that it spent on its last change.
    pub pause_ns: u64,
}

/// How far a change of decoders or models has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeAcknowledged {
    /// The stream; none: all streams.
    pub stream: Option<u32>,
    /// Epoch of the change.
    pub epoch: u64,
    /// Acknowledgement of each decode worker.
    pub workers: Vec<WorkerAcknowledged>,
    /// Whether all workers have acknowledged.
    pub acknowledged: bool,
    /// Longest time between two shots that a worker spent on the change.
    pub pause_ns: u64,
    /// Time waited for the acknowledgements, milliseconds.
    pub waited_ms: u64,
}

impl fmt::Display for ChangeAcknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, all) = (self.workers.iter().filter(|worker| worker.acknowledged).count(), self.workers.len());
        match self.stream {
            Some(stream) => write!(f, "stream {stream}")?,
            None => f.write_str("all streams")?,
        }
        write!(f, ": acknowledged by {count} of {all} workers, pause {} ns", self.pause_ns)
    }
}

/// Each hot thread's acknowledgement of policy `epoch`.
pub(super) fn acknowledgements(board: &Board, epoch: u64) -> Vec<Acknowledged> {
    let acknowledged = |block: &ThreadBlock| {
        let order = SpinOrder::unpack(board::get(&block.policy_acknowledged));
        let refusal = block.refusal.read();
        Acknowledged {
            name: block.name.read(),
            policy: order.policy.name().to_owned(),
            epoch: order.epoch,
            acknowledged: order.epoch >= epoch,
            refusal: (!refusal.is_empty()).then_some(refusal),
        }
    };
    board.threads().iter().map(acknowledged).collect()
}

/// How far a change of decoders or models has come.
pub(super) fn change_of_workers(
    board: &Board,
    clock: &Clock,
    (stream, epoch): (Option<u32>, u64),
    waited: Nanos,
) -> ChangeAcknowledged {
    let workers = workers_acknowledged(board, clock, epoch);
    let acknowledged = workers.iter().all(|worker| worker.acknowledged);
    let pause_ns = workers.iter().map(|worker| worker.pause_ns).max().unwrap_or(0);
    ChangeAcknowledged { stream, epoch, workers, acknowledged, pause_ns, waited_ms: waited.0 / 1_000_000 }
}

/// The decode workers that run.
pub(super) fn workers_acknowledged(board: &Board, clock: &Clock, epoch: u64) -> Vec<WorkerAcknowledged> {
    let roles = board.threads().iter().flat_map(ThreadBlock::own_roles);
    let of_worker = roles.filter(|role| role.kind() == RoleKind::Decode && board::get(&role.died) == 0);
    let acknowledged = |role: &RoleBlock| {
        let (silo, worker) = (role.silo(), role.index());
        let block = board.decode(silo as usize, worker as usize);
        let found = board::get(&block.decoder_epoch);
        let pause_ns = clock.rate().nanos(Ticks(board::get(&block.decoder_change_ticks))).0;
        WorkerAcknowledged { silo, worker, epoch: found, acknowledged: found >= epoch, pause_ns }
    };
    of_worker.map(acknowledged).collect()
}
