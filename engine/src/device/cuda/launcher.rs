//! Dispatch's side of the device: rings doorbells and launches graphs.
//!
//! Runs on the dispatcher's thread, to which the rig's context is bound. One driver call for each
//! launch; the hot path makes no other, except two event records for a requested sample. Bounds:
//! one mail for each worker. Never waits, never queries the device.
//!
//! # Meaning of a launch error
//! A driver reports earlier errors at the next call. So only codes about this call ("invalid
//! value", "out of memory") mean that the graph does not run. A sticky code means that the device
//! is lost with all its launches. After any other code the graph may run, and the worker is
//! quarantined. With several shots to a launch no code is certain: a running graph of the group may
//! have taken the mail.

use super::rig::Rig;
use super::supervisor::RigLease;
use crate::board::{self, Board, DeviceBlock};
use crate::device::{Failed, Launch, Launched};
use crate::hot::Frame;
use crate::units::TickRate;
use pinwheel_edge::slot::workers::{Mail, WorkerBank};
use pinwheel_edge::spin::Phase;
use std::sync::Arc;

/// Codes after which the graph certainly does not run.
const NOT_STARTED: [i32; 6] = [1, 2, 3, 201, 400, 701];
/// Codes that every later call of the context returns: the device or its memory is lost for this
/// context.
const STICKY: [i32; 24] = [
    4, 46, 100, 101, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 802, 805, 806, 807, 810, 911,
];

/// The meaning of a code of `cuGraphLaunch`.
pub(super) fn meaning(code: i32) -> Launched {
    match code {
        0 => Launched::Started,
        code if NOT_STARTED.contains(&code) => Launched::NotStarted,
        code if STICKY.contains(&code) => Launched::Lost,
        _ => Launched::Unknown,
    }
}

/// See the header.
pub struct CudaLauncher {
    silo: usize,
    board: Arc<Board>,
    bank: Arc<WorkerBank>,
    batch: usize,
    rig: Option<Box<Rig>>,
    lent: RigLease,
    rate: TickRate,
    /// Bit mask of workers with mail whose graph has not been launched.
    pending: u64,
    /// Workers whose graph could not be launched after their own call had returned.
    failed: Option<Failed>,
}

impl CudaLauncher {
    /// Launches `rig`, which was captured on this thread and is returned through `lent`. `None`: a
    /// rig arrives later.
    pub fn new(
        rig: Option<Rig>,
        (bank, batch_shots): (Arc<WorkerBank>, u32),
        lent: RigLease,
        (silo, board, rate): (usize, Arc<Board>, TickRate),
    ) -> CudaLauncher {
        let (rig, batch) = (rig.map(Box::new), batch_shots as usize);
        CudaLauncher { silo, board, bank, batch, rig, lent, rate, pending: 0, failed: None }
    }

    fn block(&self) -> &DeviceBlock {
        self.board.device(self.silo)
    }

    fn group_mask(&self, group: usize) -> u64 {
        let width = self.batch.min(self.bank.len() - group * self.batch);
        u64::MAX >> (u64::BITS as usize - width) << (group * self.batch)
    }

    /// Launches the graph of `group` for all its pending mail.
    fn start(&mut self, group: usize, frame: &Frame<'_>) -> Launched {
        self.pending &= !self.group_mask(group);
        let Some(rig) = &self.rig else { return Launched::Lost };
        let began = frame.ticks();
        let code = if self.lent.take_sample() {
            let code = rig.launch_timed(group);
            self.lent.sampled();
            code
        } else {
            rig.launch(group)
        };
        let block = self.block();
        if frame.phase != Phase::Warmup {
            block.launch.record(self.rate.nanos(frame.ticks().since(began)).0);
            board::add(&block.launches, 1);
        }
        let launched = meaning(code);
        if launched != Launched::Started {
            board::add(&block.launch_errors, 1);
            board::set(&block.error_code, u64::from(code.unsigned_abs()));
        }
        launched
    }
}

impl Launch for CudaLauncher {
    fn launch(&mut self, worker: usize, mail: Mail, frame: &Frame<'_>) -> Launched {
        if self.rig.is_none() {
            return Launched::Lost;
        }
        self.bank.ring(worker, mail.generation);
        let group = worker / self.batch;
        if self.batch == 1 {
            return self.start(group, frame);
        }
        self.pending |= 1 << worker;
        let mask = self.group_mask(group);
        if self.pending & mask != mask {
            return Launched::Started;
        }
        match self.start(group, frame) {
            Launched::Started => Launched::Started,
            launched => {
                let how = uncertain(launched);
                self.failed = Some(Failed { workers: mask & !(1 << worker), how });
                how
            }
        }
    }

    fn flush(&mut self, frame: &Frame<'_>) -> Option<Failed> {
        if self.failed.is_some() {
            return self.failed.take();
        }
        while self.pending != 0 {
            let group = self.pending.trailing_zeros() as usize / self.batch;
            let workers = self.pending & self.group_mask(group);
            match self.start(group, frame) {
                Launched::Started => {}
                launched => return Some(Failed { workers, how: uncertain(launched) }),
            }
        }
        None
    }

    fn warm_up(&mut self) -> Result<(), String> {
        match &self.rig {
            Some(rig) => rig.upload().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    fn release(&mut self) {
        self.pending = 0;
        if let Some(rig) = self.rig.take() {
            self.lent.give_back(rig);
        }
    }

    fn resume(&mut self) {
        self.rig = self.lent.take_renewed();
        // If binding fails, the next launch reports the error, and the device is lost again.
        if let Some(rig) = &self.rig
            && let Err(failure) = rig.bind()
        {
            board::set(&self.block().error_code, u64::from(failure.code.unsigned_abs()));
        }
    }
}

/// The outcome for a group's graph: an earlier graph may have taken the mail of a launch that did
/// not start.
fn uncertain(launched: Launched) -> Launched {
    if launched == Launched::NotStarted { Launched::Unknown } else { launched }
}

impl Drop for CudaLauncher {
    /// Returns the rig to the cold side, which waits for running graphs.
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_STARTED, STICKY, meaning};
    use crate::device::Launched;

    #[test]
    fn an_unknown_driver_code_leaves_the_launch_undecided() {
        assert_eq!(meaning(0), Launched::Started);
        assert_eq!(meaning(2), Launched::NotStarted);
        assert_eq!(meaning(719), Launched::Lost);
        assert_eq!([meaning(999), meaning(4_321), meaning(-1)], [Launched::Unknown; 3]);
        assert!(NOT_STARTED.iter().all(|code| !STICKY.contains(code)));
    }
}
