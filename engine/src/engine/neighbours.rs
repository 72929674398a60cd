//! The cold thread that watches who else wants the hot cores, tells it, and makes way where the profile says so.
//!
//! Owns the look at `/proc` while the engine runs, the rival words of each thread's block, and one note. Runs on a cold
//! thread, confined to cold cores. Bounds: a look at most every [`LOOK`], and never more than a fiftieth of its time;
//! [`TASKS_MAX`](crate::host::pins::TASKS_MAX) threads a look. Touches nobody else's thread.

use super::courtesy::{Holds, Manners, Move, waits_too_long};
use super::orders::SharedOrders;
use super::{cold, header};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::host::neighbours::{Look, Rival, look, own_uid, rivals, user};
use crate::host::pin;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// The rest after a look, in times of its length: a machine of very many threads is looked at less often.
const REST_PER_LOOK: u32 = 50;
/// Whoever had or wanted a core for less than this in a look is part of any machine.
const SHOWN_NS_MIN: u64 = 1_000_000;

/// The running watch; dropping its sender ends it.
pub(super) struct Watching {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watching {
    /// Ends it and waits for it: at most one look.
    pub(super) fn end(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// The watch of one engine.
pub(super) struct Watch {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) orders: SharedOrders,
    /// The core of each hot thread.
    pub(super) cores: Vec<Option<u32>>,
    pub(super) cold_cores: Vec<u32>,
}

impl Watch {
    /// Starts watching; `None` if no thread has a core of which others could be kept.
    pub(super) fn spawn(self) -> io::Result<Option<Watching>> {
        if self.cores.iter().flatten().next().is_none() {
            return Ok(None);
        }
        let (stop, stopped) = channel();
        let thread = cold::spawn("neighbours", move || self.run(&stopped))?;
        Ok(Some(Watching { stop, thread }))
    }

    fn run(self, stopped: &Receiver<()>) {
        // A courtesy to the hot threads; where it is not permitted the scheduler decides.
        let _ = pin::confine_current_thread(&self.cold_cores);
        let (mut manners, mut note) = (Manners::default(), header::Note::default());
        let (mut before, mut rest) = (self.look(), LOOK);
        while stopped.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
            let after = self.look();
            let took = Duration::from_nanos(self.now_ns().saturating_sub(after.at_ns));
            rest = LOOK.max(took * REST_PER_LOOK);
            let rivals = rivals(&before, &after);
            self.show(&rivals);
            self.behave(&mut manners, &mut note, after.at_ns, &rivals);
            before = after;
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.since_start(self.clock.ticks()).0
    }

    fn look(&self) -> Look {
        let cores: Vec<u32> = self.cores.iter().copied().flatten().collect();
        look(Path::new("/"), std::process::id(), &cores, self.now_ns())
    }

    /// Publishes the worst rival of each thread's core.
    fn show(&self, rivals: &[Rival]) {
        for (index, core) in self.cores.iter().enumerate() {
            let here = rivals.iter().filter(|rival| Some(rival.core) == *core);
            let worst = here.max_by_key(|rival| rival.waited_ns + rival.ran_ns);
            let Some(worst) = worst.filter(|rival| rival.waited_ns + rival.ran_ns >= SHOWN_NS_MIN) else { continue };
            let block = self.board.thread(index);
            // A reader in between sees nobody rather than a mixture of two.
            board::set(&block.rival_pid, 0);
            block.rival_user.write(&user(Path::new("/"), worst.pid).unwrap_or_default());
            block.rival_command.write(&worst.command);
            board::set(&block.rival_waited_ns, worst.waited_ns);
            board::set(&block.rival_ran_ns, worst.ran_ns);
            board::set(&block.rival_span_ns, worst.span_ns);
            board::set(&block.rival_seen, self.clock.ticks().0);
            board::add(&block.rival_looks, 1);
            board::set(&block.rival_pid, u64::from(worst.pid));
        }
    }

    fn behave(&self, manners: &mut Manners, note: &mut header::Note, now_ns: u64, rivals: &[Rival]) {
        let mut orders = self.orders.lock();
        let rule = orders.courtesy().cloned();
        let waits = rule.as_ref().and_then(|rule| waits_too_long(rivals, own_uid(), rule));
        let holds = if orders.holds_cores() { Holds::Cores } else { Holds::Nothing };
        match (manners.step(now_ns, rule.as_ref(), waits, holds), waits) {
            (Some(Move::GiveWay), Some(rival)) => {
                let quiet_s = rule.map_or(0, |rule| rule.quiet_s);
                let who = named(rival);
                note.write(&self.board, &format!("courtesy: spin Lab for {who}, until {quiet_s} s are quiet"));
                orders.give_way(&format!("courtesy: {who}"), &self.board);
            }
            (Some(_), _) => {
                orders.resume(&self.board);
                note.write(&self.board, "courtesy: nobody waits any more, back to what the profile says");
            }
            (None, _) => {}
        }
    }
}

/// `make (process 4711, user ada), who waited 312 ms of 1000 ms for core 3`.
fn named(rival: &Rival) -> String {
    let user = user(Path::new("/"), rival.pid).unwrap_or_else(|| "not visible".to_owned());
    let (waited_ms, span_ms) = (rival.waited_ns / 1_000_000, rival.span_ns / 1_000_000);
    let Rival { command, pid, core, .. } = rival;
    format!("{command} (process {pid}, user {user}), who waited {waited_ms} ms of {span_ms} ms for core {core}")
}
