//! A silo on a GPU: dispatch captures and launches its graphs, a supervisor thread watches the rig, and no
//! thread simulates the device.
//!
//! Runs once, at Init, and once at each restart of the silo; the closure runs on the dispatcher's
//! own thread. Owns nothing.
//!
//! # Why a silo restarts without its device
//! The dead path's graphs may still run. They write to memory of their rig, which the new path does
//! not use; but both share the slots, which are registered once. So the supervisor's thread first
//! closes the old rig, in whatever time the device takes. Until the new supervisor has made another
//! rig, the silo runs as after a loss of its device: its shots go to the CPU.
//!
//! # Which rigs are not closed
//! A rig whose graphs never end is never closed: nothing is freed under it, and the silo stays on
//! the CPU. The rig of a dispatch that panicked is not returned, because the state behind a panic
//! is not dropped (see `hot::thread`): each such death leaks a context and its registration. The
//! next rig is then tried beside it; with a driver that does not register the slots twice, the silo
//! stays on the CPU as well.

use super::{Common, DispatchEnds, Gpu, spec};
use crate::board;
use crate::device::Recovery;
use crate::device::cuda::{CudaLauncher, Reports, Rig, Tap, Works, supervise, transits};
use crate::dispatch::Dispatcher;
use crate::hot::{RoleError, RoleSpec};
use crate::pipe::Pipe;
use crate::profile::{Device, Profile};
use crate::roles::RoleKind;
use pinwheel_edge::slot::workers::WorkerBank;
use std::sync::Arc;

/// Dispatch's spec, the recovery with its supervisor, and poll's tap.
pub(super) fn specs(
    profile: &Profile,
    (pipe, bank): (&Pipe, &Arc<WorkerBank>),
    Gpu { context, facts, cold_cores }: Gpu,
    (end, workers, free, to_graph): DispatchEnds,
    recovery: Recovery,
    common: &Common,
) -> (Vec<RoleSpec>, Recovery, Option<Tap>) {
    let batch_shots = match profile.device {
        Device::Cuda { batch_shots, .. } => batch_shots,
        Device::Auto | Device::None | Device::Sim { .. } => 1,
    };
    let works = Works {
        table: Arc::clone(&pipe.table),
        jobs: Arc::clone(&pipe.jobs),
        bank: Arc::clone(bank),
        tables: Arc::new(common.decoding.tables()),
        reports: Arc::new(Reports::new(bank.len())),
        batch_shots,
    };
    board::set(&common.board.device(pipe.silo).is_gpu, 1);
    let (silo, rate, board) = (pipe.silo, common.clock.rate(), Arc::clone(&common.board));
    let (tap, transits) = transits(Arc::clone(&works.reports), rate);
    let (supervisor, lent, introduce) =
        supervise(silo, &facts, works.clone(), Arc::clone(&board), transits, cold_cores);
    let pipe = pipe.clone();
    let dispatch = spec(RoleKind::Dispatch, silo, 0, move |_| {
        let refused = |reason: String| RoleError { role: RoleKind::Dispatch, silo: silo as u32, reason };
        let mail = (Arc::clone(&works.bank), works.batch_shots);
        let capture = |context| Rig::capture(context, works).map_err(|error| refused(error.to_string()));
        let rig = context.map(capture).transpose()?;
        if let Some(rig) = &rig {
            introduce.rig(rig);
        }
        let launcher = CudaLauncher::new(rig, mail, lent, (silo, board, rate));
        Ok(Box::new(Dispatcher::new(pipe, end, workers, launcher, free, to_graph, rate)))
    });
    (vec![dispatch], recovery.renewed_by(Box::new(supervisor)), Some(tap))
}
