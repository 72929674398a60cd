//! The director's thread: looks at the silos' queues, decides, and hands decisions on.
//!
//! Owns the desk. Runs on a cold thread, confined to cold cores. Bounds: a look every twentieth of the profile's refresh, and
//! under `Migrate` one at the shots that wait every [`RELIEF_EVERY`] besides.
//! Runs where something is to be decided or shown: with diagnostics, or where there is more than one silo, for streams may move
//! then, and `Migrate` can be switched on live.

use super::cold;
use crate::arbiter::page::{PageTable, State};
use crate::board::Board;
use crate::clock::Clock;
use crate::feed::requests::MoveRequests;
use crate::host::pin;
use crate::hot::Settings;
use crate::placement::decision::Decision;
use crate::placement::desk::{Desk, Hands};
use crate::profile::{Diagnostics, OverflowStrategy, Profile};
use crate::units::Nanos;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Under `Migrate`: from one look at the shots that wait to the next, at most.
const RELIEF_EVERY: Nanos = Nanos::from_millis(10);

/// Hands a decision to who makes the move.
pub(super) type Mover = Box<dyn FnMut(&Decision) -> Result<(), String> + Send>;

/// The running director; dropping its sender ends it.
pub(super) struct Placing {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Placing {
    /// Ends it and waits for it: at most one look.
    pub(super) fn end(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// What a director needs of its engine.
pub(super) struct Directing {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) profile: Profile,
    /// The page words of each silo: what is leased or on its way is not asked for.
    pub(super) pages: Vec<Arc<PageTable>>,
    pub(super) mover: Mover,
    pub(super) moves: Arc<MoveRequests>,
    pub(super) settings: Arc<Settings>,
    pub(super) cold_cores: Vec<u32>,
}

impl Directing {
    /// Starts it; `None` where nothing is to be decided or shown.
    pub(super) fn spawn(self) -> io::Result<Option<Placing>> {
        if self.profile.diagnostics == Diagnostics::Off && self.pages.len() < 2 {
            return Ok(None);
        }
        let (stop, stopped) = channel();
        let thread = cold::spawn("placement", move || self.run(&stopped))?;
        Ok(Some(Placing { stop, thread }))
    }

    fn run(mut self, stopped: &Receiver<()>) {
        // A courtesy to the hot threads; where it is not permitted the scheduler decides.
        let _ = pin::confine_current_thread(&self.cold_cores);
        let Profile { placement, input, .. } = &self.profile;
        let desk = Desk::new(Arc::clone(&self.board), self.clock.clone(), placement.clone());
        let mut desk = input.weights.of(input.streams).iter().fold(desk, |desk, weights| desk.expecting(weights));
        let rest = Duration::from_nanos(desk.look_every().0);
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
                desk.relieve(Hands { at_rest: &at_rest, under_way: &under_way, ask: &mut *self.mover });
            }
            nth += 1;
            if nth >= parts {
                desk.step(Hands { at_rest: &at_rest, under_way: &under_way, ask: &mut *self.mover });
                let often = desk.look_every().0.div_ceil(RELIEF_EVERY.0);
                (nth, parts) = (0, if migrates { often as u32 } else { 1 });
            }
        }
    }
}
