//! Acting on a running engine: profile, rate, the feed's hold, alarms, notes.
//!
//! Owns the profile in force and the one that comes back by itself; what it means for each thread are the orders
//! ([`super::orders`]). Shared by the cold threads that act (console, control, watchdog), each of which holds the lock for
//! the few stores and system calls of one action. Never restarts a thread, never touches a shot, never waits for one. Each
//! action is an event of the run and a line on the board, with who did it.

use super::actor::Actor;
use super::drilling::{DrillRefused, Drilled, Drilling, Ended, LiveDrill};
use super::logger::Said;
use super::orders::SharedOrders;
use super::watchdog::Told;
use super::{NoteError, header};
use crate::board::{self, AlarmRow, Board};
use crate::clock::Clock;
use crate::fault::EventCode;
use crate::hot::provoke::Provocation;
use crate::hot::{Flow, Settings};
use crate::profile::{self, Change, OnHangup, Profile, Rate};
use crate::stall::Request;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::spin::Phase;
use std::path::PathBuf;
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
use std::sync::Mutex;
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time for which a profile is lent: thirty days.
pub const LENT_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Rates that can be asked for, shots per second.
const RATE_HZ_MAX: f64 = 1e9;

/// Why an engine could not be acted on.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Too late.
    #[error("found the engine in {found}, expected WARMUP or LIVE; start it again with the profile you want")]
    Phase {
        /// Its phase.
        found: &'static str,
    },
    /// A rate that cannot be had.
    #[error(
        "found rate {found}, expected shots per second above 0 and at most 1e9, or max; half of the capacity is measured in warm-up only"
    )]
    Rate {
        /// As it was asked for.
        found: String,
    },
    /// Others set the pace.
    #[error(
        "found live senders, expected a sampler or a file; who sends sets the rate, and pause holds their shots back"
    )]
    Senders,
    /// Nobody keeps alarms.
    #[error("found no watchdog in this run, expected one to hear of alarms; start it with diagnostics: On")]
    NoWatchdog,
    /// There is none of that number.
    #[error("found no alarm {number}, expected one of those that pinwheel ctl status lists, or none for all that hold")]
    NoAlarm {
        /// As it was asked for.
        number: u64,
    },
    /// A time that cannot be had.
    #[error("found {found_s} s, expected 1 s to {limit_s} s; leave the time out for a switch that stays", limit_s = LENT_MAX.as_secs())]
    Lent {
        /// As it was asked for.
        found_s: u64,
    },
}

/// What came of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switched {
    /// Name of the profile before.
    pub from: String,
    /// Name of the profile in force.
    pub to: String,
    /// Threads that acknowledge this epoch run it.
    pub epoch: u64,
    /// Every field in which the two differ; those that apply at restart stay as they were.
    pub changes: Vec<Change>,
    /// The rate in force now, in words.
    pub rate: String,
    /// Time until the profile before comes back; `None`: it does not.
    pub reverts_in: Option<Duration>,
}

/// Who sets the pace of shots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The engine.
    Ours,
    /// Other processes.
    Senders,
}

/// What is acted on.
pub(super) struct Reins {
    pub(super) orders: SharedOrders,
    pub(super) board: Arc<Board>,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) pace: Pace,
    /// Where profiles are looked for by name, before those built in.
    pub(super) profiles: Option<PathBuf>,
    /// By which roles take commands of drills; `None`: they take none.
    pub(super) provocation: Option<Arc<Provocation>>,
}

/// A profile that comes back.
struct Revert {
    at: Ticks,
    name: String,
    profile: Arc<Profile>,
}

/// The steering of one engine.
pub(super) struct Steering {
    name: String,
    profile: Arc<Profile>,
    reins: Reins,
    revert: Option<Revert>,
    drilling: Drilling,
    /// The run's own rate: what it was started with. A profile that says `Auto` means this one.
    own_rate: Rate,
    /// The rate that warm-up measured, and how; `None`: it measured none.
    measured: Option<(f64, String)>,
    log: Option<SyncSender<Said>>,
    watchdog: Option<Sender<Told>>,
}

/// The steering, as the engine's cold side shares it.
#[derive(Clone)]
pub(super) struct SharedSteering(
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
    Arc<Mutex<Steering>>,
);

impl SharedSteering {
    pub(super) fn new(name: &str, profile: &Profile, reins: Reins) -> SharedSteering {
        let (name, profile) = (name.to_owned(), Arc::new(profile.clone()));
        let drilling = Drilling::new(reins.provocation.clone());
        let (revert, measured, log, watchdog) = (None, None, None, None);
        let own_rate = profile.input.rate;
        let steering = Steering { name, profile, reins, revert, drilling, own_rate, measured, log, watchdog };
        steering.show();
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
        SharedSteering(Arc::new(Mutex::new(steering)))
    }

    /// A panic under the lock leaves an action half done: what was stored stands, and the board shows it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Steering> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steering {
    /// From now on actions are written into the log of events, and the watchdog hears of what is for it.
    pub(super) fn connect(&mut self, log: Option<SyncSender<Said>>, watchdog: Option<Sender<Told>>) {
        (self.log, self.watchdog) = (log, watchdog);
    }

    /// The run's own rate.
    pub(super) fn own_rate(&self) -> Rate {
        self.own_rate
    }

    /// The profile in force.
    pub(super) fn profile(&self) -> Arc<Profile> {
        Arc::clone(&self.profile)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where profiles are looked for by name.
    pub(super) fn profiles(&self) -> Option<PathBuf> {
        self.reins.profiles.clone()
    }

    pub(super) fn board(&self) -> &Board {
        &self.reins.board
    }

    /// Puts the fields of `next` that apply live into force, as profile `name`; `lent`: only for that long.
    pub(super) fn switch(
        &mut self,
        name: &str,
        next: &Profile,
        lent: Option<Duration>,
        by: &Actor,
    ) -> Result<Switched, ApplyError> {
        self.open()?;
        if let Some(lent) = lent.filter(|lent| *lent < Duration::from_secs(1) || *lent > LENT_MAX) {
            return Err(ApplyError::Lent { found_s: lent.as_secs() });
        }
        let (from, before) = (self.name.clone(), self.profile());
        let mut next = next.clone();
        let is_own_rate = next.input.rate == Rate::Auto;
        if is_own_rate {
            next.input.rate = self.own_rate;
        }
        let changes = profile::diff(&before, &next);
        let rate_changes = next.input.rate != before.input.rate;
        let mut now = (*before).clone();
        now.summary.clone_from(&next.summary);
        now.spin = next.spin;
        now.spin_budgets.clone_from(&next.spin_budgets);
        now.limits.clone_from(&next.limits);
        now.on_hangup = next.on_hangup;
        now.alarms.clone_from(&next.alarms);
        now.on_alarm.clone_from(&next.on_alarm);
        now.courtesy.clone_from(&next.courtesy);
        now.input.rate = next.input.rate;
        now.placement.overflow = next.placement.overflow;
        let Reins { settings, board, clock, orders, .. } = &self.reins;
        settings.set_limits(&now.limits);
        settings.set_overflow(&now.placement.overflow);
        header::write_limits(board, &now.limits);
        if rate_changes {
            self.apply_rate(now.input.rate, if is_own_rate { "fixed" } else { "profile" });
        }
        let epoch = orders.lock().give(name, &now, board, clock);
        self.tell(Told::Rules(now.alarms.clone(), now.on_alarm.clone()));
        // One that was lent over another one that was lent gives back to what stood before both.
        let base = self.revert.take().map(|revert| (revert.name, revert.profile)).unwrap_or((from.clone(), before));
        self.revert = lent.map(|lent| {
            let span = clock.rate().ticks(Nanos(u64::try_from(lent.as_nanos()).unwrap_or(u64::MAX >> 1)));
            Revert { at: clock.ticks().plus(span), name: base.0, profile: base.1 }
        });
        name.clone_into(&mut self.name);
        self.profile = Arc::new(now);
        self.show();
        let lent_words = lent.map_or_else(String::new, |lent| format!(" for {} s", lent.as_secs()));
        self.note_action(by, &format!("profile {from} to {name}{lent_words}, epoch {epoch}, by {}", by.words));
        let rate = self.rate_words(is_own_rate);
        Ok(Switched { from, to: name.to_owned(), epoch, changes, rate, reverts_in: lent })
    }

    /// The rate in force after a switch, in words.
    fn rate_words(&self, is_own: bool) -> String {
        if self.reins.pace == Pace::Senders {
            return "as its senders send".to_owned();
        }
        let rate = match (self.profile.input.rate, &self.measured) {
            (Rate::Hz(hz), _) => format!("{hz}/s"),
            (Rate::Max, _) => "as fast as slots come free".to_owned(),
            (Rate::Auto, Some((hz, _))) => format!("{hz:.0}/s"),
            (Rate::Auto, None) => "half of what warm-up measures".to_owned(),
        };
        let name = &self.name;
        if is_own {
            format!("{rate}: the run's own, because profile {name} says Auto")
        } else {
            format!("{rate}: as profile {name} says")
        }
    }

    /// Gives back a profile whose time is over, and ends a drill whose time is.
    pub(super) fn step(&mut self, now: Ticks) {
        let phase = Phase::from_code(board::get(&self.reins.board.header().phase));
        match self.drilling.step(now, phase) {
            None => {}
            Some(Ended::Done(drill)) => self.note_action(&Actor::timer(), &format!("drill {} ended", drill.name())),
            Some(Ended::NeverTaken(drill)) => {
                let text = format!("drill {} ended: {} never took it up", drill.name(), drill.role());
                self.note_action(&Actor::timer(), &text);
            }
        }
        if self.revert.as_ref().is_some_and(|revert| now >= revert.at)
            && let Some(revert) = self.revert.take()
            && self.switch(&revert.name, &revert.profile, None, &Actor::timer()).is_err()
        {
            // It drains: what is in force stays to the end.
            self.show();
        }
    }

    /// Holds the feed: what is under way finishes, nothing more is taken.
    pub(super) fn pause(&mut self, by: &Actor) -> Result<(), ApplyError> {
        self.open()?;
        let Reins { settings, board, clock, .. } = &self.reins;
        settings.set_flow(Flow::Held);
        let block = board.control();
        if board::get(&block.held) == 0 {
            board::set(&block.held_since, clock.ticks().0);
        }
        block.held_by.write(&by.words);
        board::set(&block.held, 1);
        self.note_action(by, &format!("feed held by {}", by.words));
        Ok(())
    }

    /// Lets the feed run again.
    pub(super) fn resume(&mut self, by: &Actor) -> Result<(), ApplyError> {
        self.open()?;
        self.reins.settings.set_flow(Flow::Runs);
        board::set(&self.reins.board.control().held, 0);
        self.note_action(by, &format!("feed let go by {}", by.words));
        Ok(())
    }

    /// Another rate, until a profile says another; the one before.
    pub(super) fn set_rate(&mut self, rate: Rate, by: &Actor) -> Result<Rate, ApplyError> {
        self.open()?;
        if self.reins.pace == Pace::Senders {
            return Err(ApplyError::Senders);
        }
        match rate {
            Rate::Hz(hz) if hz > 0.0 && hz <= RATE_HZ_MAX => {}
            Rate::Max => {}
            other => return Err(ApplyError::Rate { found: format!("{other:?}") }),
        }
        let before = self.profile.input.rate;
        let mut now = (*self.profile).clone();
        now.input.rate = rate;
        self.profile = Arc::new(now);
        self.apply_rate(rate, "operator");
        self.note_action(by, &format!("rate {before:?} to {rate:?} by {}", by.words));
        Ok(before)
    }

    /// Whether a drill may be started.
    pub(super) fn may_drill(&self) -> Result<(), DrillRefused> {
        self.drilling.may(&self.name, &self.profile, &self.reins.board).map(drop)
    }

    /// Starts a drill's deed.
    pub(super) fn drill(
        &mut self,
        drill: LiveDrill,
        span: Option<Duration>,
        by: &Actor,
    ) -> Result<Drilled, DrillRefused> {
        let (now, rate) = (self.reins.clock.ticks(), self.reins.clock.rate());
        let ticks = |span: Duration| rate.ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1)));
        let in_force = (self.name.as_str(), &*self.profile);
        let started = self.drilling.start(drill, span, in_force, &self.reins.board, (now, ticks))?;
        self.note_action(by, &format!("{}, by {}", started.words(), by.words));
        Ok(started)
    }

    /// Acknowledges alarm `number`; 0: all that hold. Seen on the board when the watchdog has taken it in.
    pub(super) fn acknowledge(&self, number: u64, by: &Actor) -> Result<(), ApplyError> {
        self.answer(number, Request::Acknowledge(number))?;
        self.note_action(by, &format!("{} acknowledged by {}", named(number), by.words));
        Ok(())
    }

    /// Lets alarm `number` not call for `span`; 0: all that hold.
    pub(super) fn snooze(&self, number: u64, span: Duration, by: &Actor) -> Result<(), ApplyError> {
        let ticks = self.reins.clock.rate().ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1)));
        self.answer(number, Request::Snooze(number, ticks))?;
        self.note_action(by, &format!("{} snoozed for {} s by {}", named(number), span.as_secs(), by.words));
        Ok(())
    }

    fn answer(&self, number: u64, request: Request) -> Result<(), ApplyError> {
        if self.watchdog.is_none() {
            return Err(ApplyError::NoWatchdog);
        }
        let rows = self.reins.board.alarms();
        if number != 0 && !rows.iter().filter_map(AlarmRow::read).any(|alarm| alarm.number == number) {
            return Err(ApplyError::NoAlarm { number });
        }
        self.tell(Told::Asked(request));
        Ok(())
    }

    /// Puts something into the log of events in its own words.
    pub(super) fn say(&self, said: Said) -> Result<(), NoteError> {
        let log = self.log.as_ref().ok_or(NoteError::NoLog)?;
        log.try_send(said).map_err(|_| NoteError::Full)
    }

    /// Writes an action down: on the board, and into the log of events.
    pub(super) fn note_action(&self, by: &Actor, text: &str) {
        let (block, at) = (self.reins.board.control(), self.reins.clock.ticks());
        block.action.write(text);
        board::set(&block.action_ticks, at.0);
        board::add(&block.actions, 1);
        let Some(log) = &self.log else { return };
        let (text, numbers) = (text.to_owned(), by.numbers.clone());
        if log.try_send(Said { at, who: by.kind, code: EventCode::Operated, text, numbers }).is_err() {
            board::add(&block.actions_unlogged, 1);
        }
    }

    /// Whether the engine can still be acted on.
    fn open(&self) -> Result<(), ApplyError> {
        let phase = Phase::from_code(board::get(&self.reins.board.header().phase));
        if phase >= Phase::Drain { Err(ApplyError::Phase { found: phase.name() }) } else { Ok(()) }
    }

    fn tell(&self, told: Told) {
        // A watchdog that has left with the engine wants to know nothing.
        let _ = self.watchdog.as_ref().map(|watchdog| watchdog.send(told));
    }

    /// The rate that Warmup ends with.
    pub(super) fn begin(&mut self, measured: Option<(f64, String)>) {
        self.measured = measured;
        if self.reins.pace == Pace::Senders {
            self.reins.settings.set_rate_hz(None);
            header::write_rate(&self.reins.board, None, "as its senders send");
        }
        self.apply_rate(self.profile.input.rate, "fixed");
    }

    /// `Auto` is what was measured in Warmup, which cannot be repeated live; before that was measured, the rate stays.
    fn apply_rate(&self, rate: Rate, whose: &str) {
        let Reins { settings, board, pace, .. } = &self.reins;
        if *pace == Pace::Senders {
            return;
        }
        match rate {
            Rate::Auto => {
                if let Some((hz, origin)) = &self.measured {
                    settings.set_rate_hz(Some(*hz));
                    header::write_rate(board, Some(*hz), origin);
                }
            }
            Rate::Max => {
                settings.set_rate_hz(None);
                header::write_rate(board, None, &format!("{whose}: as fast as slots come free"));
            }
            Rate::Hz(hz) => {
                settings.set_rate_hz(Some(hz));
                header::write_rate(board, Some(hz), whose);
            }
        }
    }

    /// Writes what comes back and what a hangup means.
    fn show(&self) {
        let block = self.reins.board.control();
        block.revert_to.write(self.revert.as_ref().map_or("", |revert| &revert.name));
        board::set(&block.revert_ticks, self.revert.as_ref().map_or(0, |revert| revert.at.0));
        board::set(&block.drains_on_hangup, u64::from(self.profile.on_hangup == OnHangup::Drain));
    }
}

fn named(number: u64) -> String {
    if number == 0 { "all alarms".to_owned() } else { format!("alarm {number}") }
}
