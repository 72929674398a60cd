//! A silo on a GPU: dispatch captures and launches its graphs, a keeper watches it, no thread plays the device.
//!
//! Runs once, at Init, and once at each return of the silo; the closure runs on the dispatcher's own thread. Owns nothing.
//!
//! # Why a silo comes back without its device
//! The dead path's graphs may run still. What they write to is theirs as long as their rig is, and other memory than the new
//! path's; but the slots are one, and registered once. So the rig before is closed first, on its keeper's thread, in
//! whatever time the device takes. Until the new keeper has made another one the silo is as one whose device was lost: its shots
//! go to the CPU.
//!
//! # What is not closed
//! A rig whose graphs never end is never closed: nothing is freed under it, and the silo stays on the CPU. The rig of a dispatch that
//! panicked does not come back, for what a panic leaves is not dropped (see `hot::thread`): each such death leaks a context and
//! its registration. The next rig is then tried beside it, and with a driver that does not register the slots twice the silo
//! stays on the CPU, too.

use super::{Common, Gpu, spec};
use crate::board;
use crate::device::Recovery;
use crate::device::cuda::{CudaLauncher, Reports, Rig, Tap, Works, keep, transits};
use crate::dispatch::{Dispatcher, Pipe, Tombstones};
use crate::hot::{RoleError, RoleSpec};
use crate::profile::{Device, Profile, RoleKind};
use pinwheel_edge::slot::table::DispatchEnd;
use pinwheel_edge::slot::workers::{DispatchWorkers, WorkerBank};
use std::sync::Arc;

/// Dispatch's spec, the recovery with its keeper, and poll's tap.
pub(super) fn specs(
    profile: &Profile,
    (pipe, bank): (&Pipe, &Arc<WorkerBank>),
    Gpu { context, facts, cold_cores }: Gpu,
    (end, workers, tombstones): (DispatchEnd, DispatchWorkers, Tombstones),
    recovery: Recovery,
    common: &Common,
) -> (Vec<RoleSpec>, Recovery, Option<Tap>) {
    let batch_shots = match profile.device {
        Device::Cuda { batch_shots, .. } => batch_shots,
        Device::Auto | Device::Sim { .. } => 1,
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
    let (keeper, lent, introduce) = keep(silo, &facts, works.clone(), Arc::clone(&board), transits, cold_cores);
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
        Ok(Box::new(Dispatcher::new(pipe, end, workers, launcher, tombstones, rate)))
    });
    (vec![dispatch], recovery.renewed_by(Box::new(keeper)), Some(tap))
}
