//! The placement thread: it runs the placement controller and passes its decisions on.
//!
//! A cold thread, confined to cold cores. Bounds: a sample every twentieth of the profile's refresh
//! period; under `Migrate` also a check for waiting shots every [`RELIEF_EVERY`]. It runs with
//! diagnostics, and also without them if there are several silos, because streams may then move and
//! `Migrate` can be switched on live.

use super::cold::{ColdThreads, UntilEnded};
use crate::arbiter::page::{PageTable, State};
use crate::board::Board;
use crate::clock::Clock;
use crate::feed::requests::MoveRequests;
use crate::hot::Settings;
use crate::placement::controller::{ControllerHandles, PlacementController};
use crate::placement::decision::Decision;
use crate::profile::{Diagnostics, OverflowStrategy, Profile};
use crate::units::Nanos;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Under `Migrate`: longest time between two checks for waiting shots.
const RELIEF_EVERY: Nanos = Nanos::from_millis(10);

/// Begins the move of a decision.
pub(super) type Mover = Box<dyn FnMut(&Decision) -> Result<(), String> + Send>;

/// Parts of the engine that the thread needs.
pub(super) struct Directing {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) profile: Profile,
    /// The page words of each silo: a leased page, or one in transfer, does not move.
    pub(super) pages: Vec<Arc<PageTable>>,
    pub(super) mover: Mover,
    pub(super) moves: Arc<MoveRequests>,
    pub(super) settings: Arc<Settings>,
    pub(super) threads: ColdThreads,
}

impl Directing {
    /// Starts the thread; `None` with diagnostics off and a single silo.
    pub(super) fn spawn(self) -> io::Result<Option<UntilEnded>> {
        if self.profile.diagnostics == Diagnostics::Off && self.pages.len() < 2 {
            return Ok(None);
        }
        let threads = self.threads.clone();
        threads.spawn_until_ended("placement", move |stopped| self.run(stopped)).map(Some)
    }

    fn run(mut self, stopped: &Receiver<()>) {
        let Profile { placement, input, .. } = &self.profile;
        let controller = PlacementController::new(Arc::clone(&self.board), self.clock.clone(), placement.clone());
        let mut controller = input
            .weights
            .of(input.streams)
            .iter()
            .fold(controller, |controller, weights| controller.expecting(weights));
        let rest = Duration::from_nanos(controller.look_every().0);
        let pages = &self.pages;
        let at_rest = |stream: u32, silo: u32| {
            let word = pages[silo as usize].word(stream);
            word.is_writable() && !word.is_exchanging() && word.state() != State::Leased
        };
        let under_way = |stream: u32| self.moves.is_under_way(stream);
        let (mut nth, mut parts) = (0, 1);
        while stopped.recv_timeout(rest / parts) == Err(RecvTimeoutError::Timeout) {
            let migrates = self.settings.overflow_strategy() == OverflowStrategy::Migrate;
            if migrates {
                controller.relieve(ControllerHandles {
                    at_rest: &at_rest,
                    under_way: &under_way,
                    ask: &mut *self.mover,
                });
            }
            nth += 1;
            if nth >= parts {
                controller.step(ControllerHandles { at_rest: &at_rest, under_way: &under_way, ask: &mut *self.mover });
                let often = controller.look_every().0.div_ceil(RELIEF_EVERY.0);
                (nth, parts) = (0, if migrates { often as u32 } else { 1 });
            }
        }
    }
}
