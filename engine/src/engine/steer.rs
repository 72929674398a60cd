//! State that commands act on: profile, rate, hold of the feed, alarms, drills, actions log.
//!
//! Owns the profile in force, and the profile that returns after a limited switch;
//! [`super::orders`] derives the orders of each thread. Shared by the cold threads that execute
//! commands ([`super::command`]), each of which holds the lock for the few stores and system calls
//! of one command. Never restarts a thread, never touches a shot, never waits for one. Each action
//! is an event of the run and a line on the board, with its actor.

mod decoders;

use super::actor::Actor;
use super::drilling::{DrillRefused, Drilled, Drilling, Ended, LiveDrill};
use super::logger::LogEntry;
use super::orders::SharedOrders;
use super::shadow::{ReadyShadow, ShadowControl};
use super::watchdog::message::WatchdogMessage;
use super::{NoteError, header};
use crate::board::{self, AlarmRow, Board};
use crate::clock::Clock;
use crate::decode::changes::{Change, ChangeRefused, DecoderChanges};
use crate::decode::prepared::Prepared;
use crate::fault::EventCode;
use crate::hot::drill_role::DrillCommand;
use crate::hot::{Flow, Settings};
use crate::profile::{self, OnHangup, Profile, RangeError, Rate, Shadow};
use crate::stall::AlarmRequest;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::spin::Phase;
use std::path::PathBuf;
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
use std::sync::Mutex;
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest limited profile switch: thirty days.
pub const LENT_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Highest rate that can be requested, shots per second.
const RATE_HZ_MAX: f64 = 1e9;

/// Why a command on profile, rate, feed or alarms was refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ApplyError {
    #[error("the engine is in {found}, and this needs WARMUP or LIVE; wait for its end, then start another run")]
    Phase { found: &'static str },
    #[error(
        "rate {found} is not possible: give shots per second above 0 and at most 1e9, or max (auto is measured in \
         warm-up only)"
    )]
    Rate { found: String },
    #[error("live senders set the rate of this run; set it at the sender, or use pause to hold their shots back")]
    Senders,
    #[error("this run has no watchdog and so no alarms; start it with diagnostics: On")]
    NoWatchdog,
    #[error("there is no alarm {number}; use a number from pinwheel ctl status, or none for all active alarms")]
    NoAlarm { number: u64 },
    #[error(transparent)]
    Decoders(#[from] ChangeRefused),
    #[error("profile {name} does not fit the fields of this run that only a restart changes: {error}")]
    Unfit { name: String, error: RangeError },
    #[error("a switch for {found_s} s is not possible: give 1 s to {limit_s} s, or no time for a permanent switch", limit_s = LENT_MAX.as_secs())]
    Lent { found_s: u64 },
}

/// Result of a profile switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switched {
    /// Name of the previous profile.
    pub from: String,
    /// Name of the profile in force.
    pub to: String,
    /// A thread that acknowledges this epoch runs the new profile.
    pub epoch: u64,
    /// A decode worker that acknowledges this epoch decodes by the new profile's decoders; `None`:
    /// they are those of the previous profile.
    pub decoder_epoch: Option<u64>,
    /// Every field that differs; fields that apply at restart keep their value.
    pub changes: Vec<profile::Change>,
    /// The rate in force now, as text.
    pub rate: String,
    /// Time until the previous profile returns; `None`: the switch is permanent.
    pub reverts_in: Option<Duration>,
}

impl Switched {
    /// Text for the actions log, without the actor.
    pub(super) fn words(&self) -> String {
        let Switched { from, to, epoch, reverts_in, .. } = self;
        let lent = reverts_in.map_or_else(String::new, |lent| format!(" for {} s", lent.as_secs()));
        format!("profile {from} to {to}{lent}, epoch {epoch},")
    }
}

/// Source of the shots' rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The engine sets the rate.
    Engine,
    /// Other processes set the rate.
    Senders,
}

/// Parts of the engine that commands act on.
pub(super) struct ControlHandles {
    pub(super) orders: SharedOrders,
    pub(super) board: Arc<Board>,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) decoders: DecoderChanges,
    pub(super) shadow: ShadowControl,
    pub(super) pace: Pace,
    /// Directory searched for profiles by name, before the built-in ones.
    pub(super) profiles: Option<PathBuf>,
    /// Passes drill commands to the roles; `None`: the roles take none.
    pub(super) drill_command: Option<Arc<DrillCommand>>,
}

/// A profile that returns when a limited switch ends.
#[derive(Clone)]
struct Revert {
    at: Ticks,
    name: String,
    profile: Arc<Profile>,
    decoders: Prepared,
    /// The switch has ended; the profile's decoders are being prepared.
    is_due: bool,
}

/// Most times that the decoders of a profile that returns are prepared: each other change meanwhile
/// needs another time.
const RETURNS_MAX: usize = 8;

/// The command state of one engine.
pub(super) struct Steering {
    name: String,
    profile: Arc<Profile>,
    handles: ControlHandles,
    revert: Option<Revert>,
    drilling: Drilling,
    /// The rate of the start; `Auto` in a profile means this rate.
    own_rate: Rate,
    /// The rate that warm-up measured, and its origin; `None`: not measured.
    measured: Option<(f64, String)>,
    log: Option<SyncSender<LogEntry>>,
    watchdog: Option<Sender<WatchdogMessage>>,
}

/// The command state, shared by the engine's cold threads.
#[derive(Clone)]
pub(super) struct SharedSteering(
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
    Arc<Mutex<Steering>>,
);

impl SharedSteering {
    pub(super) fn new(name: &str, profile: &Profile, handles: ControlHandles) -> SharedSteering {
        let (name, profile) = (name.to_owned(), Arc::new(profile.clone()));
        let drilling = Drilling::new(handles.drill_command.clone());
        let (revert, measured, log, watchdog) = (None, None, None, None);
        let own_rate = profile.input.rate;
        let steering = Steering { name, profile, handles, revert, drilling, own_rate, measured, log, watchdog };
        steering.show();
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's holder and its cold threads")]
        SharedSteering(Arc::new(Mutex::new(steering)))
    }

    /// A panic under the lock leaves an action half done: its stores remain, and the board shows
    /// them.
    pub(super) fn lock(&self) -> MutexGuard<'_, Steering> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restores the profile of a limited switch that has ended, as [`Steering::step`] has said.
    /// Prepares its decoders without the lock: by another model that takes as long as a start.
    pub(super) fn restore(&self) {
        for turn in 1..=RETURNS_MAX {
            let (revert, other, epoch) = {
                let steering = self.lock();
                let Some(revert) = steering.revert.clone().filter(|revert| revert.is_due) else { return };
                let other = steering.other_decoders(&revert.profile);
                (revert, other, steering.decoder_epoch())
            };
            let prepare =
                |(profile, changes): (Profile, DecoderChanges)| changes.prepare(&profile, Some(&revert.decoders));
            let change = other.map(prepare).transpose();
            let mut steering = self.lock();
            // Another switch came meanwhile.
            if steering.revert.as_ref().is_none_or(|now| (now.at, now.is_due) != (revert.at, true)) {
                return;
            }
            if steering.decoder_epoch() == epoch || turn == RETURNS_MAX {
                return steering.restore(revert, change);
            }
        }
    }
}

impl Steering {
    /// Connects the log of events, for actions, and the watchdog, for its messages.
    pub(super) fn connect(&mut self, log: Option<SyncSender<LogEntry>>, watchdog: Option<Sender<WatchdogMessage>>) {
        (self.log, self.watchdog) = (log, watchdog);
    }

    /// The rate of the start.
    pub(super) fn own_rate(&self) -> Rate {
        self.own_rate
    }

    /// The profile in force.
    pub(super) fn profile(&self) -> Arc<Profile> {
        Arc::clone(&self.profile)
    }

    /// Name of the profile in force.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Name and profile without a limited switch: those that return, or those in force.
    pub(super) fn lasting(&self) -> (String, Arc<Profile>) {
        match &self.revert {
            None => (self.name.clone(), self.profile()),
            // A profile switch leaves the second decoder as it is.
            Some(Revert { name, profile, .. }) => {
                let profile = Profile { shadow: self.profile.shadow.clone(), ..(**profile).clone() };
                (name.clone(), Arc::new(profile))
            }
        }
    }

    /// Directory searched for profiles by name.
    pub(super) fn profiles(&self) -> Option<PathBuf> {
        self.handles.profiles.clone()
    }

    /// The current time of the engine's clock.
    pub(super) fn now(&self) -> Ticks {
        self.handles.clock.ticks()
    }

    pub(super) fn board(&self) -> &Board {
        &self.handles.board
    }

    /// Applies the live fields of `next` as profile `name`; `lent`: only for this time. `change`:
    /// its decoders, if they are others.
    pub(super) fn switch(
        &mut self,
        name: &str,
        next: &Profile,
        lent: Option<Duration>,
        change: Option<Change>,
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
        let decoders_before = self.handles.decoders.in_force();
        let wanted = self.other_decoders(&next).map(|(wanted, _)| wanted);
        let now = with_live_fields(wanted.as_ref().unwrap_or(&before), &next);
        let known = before.validate();
        if let Some(error) = now.validate().into_iter().find(|error| !known.contains(error)) {
            return Err(ApplyError::Unfit { name: name.to_owned(), error });
        }
        let decoder_epoch = match (wanted, change) {
            (None, _) => None,
            (Some(wanted), Some(change)) => Some(self.set_decoders(&wanted, change)?),
            // They were changed after the requester looked.
            (Some(_), None) => return Err(ChangeRefused::Busy.into()),
        };
        let rate_changes = next.input.rate != before.input.rate;
        let ControlHandles { settings, board, clock, orders, .. } = &self.handles;
        settings.set_limits(&now.limits);
        settings.set_overflow(&now.placement.overflow);
        if rate_changes {
            self.apply_rate(now.input.rate, if is_own_rate { "fixed" } else { "profile" });
        }
        let epoch = orders.lock().give(name, &now, board, clock);
        // After the order: a thread that sleeps by the one before is judged by the limit before.
        header::write_limits(board, &now.limits);
        self.notify_watchdog(WatchdogMessage::Rules(now.alarms.clone(), now.on_alarm.clone()));
        // Nested limited switches return to the profile before the first of them.
        let base = self.revert.take().map(|revert| (revert.name, revert.profile, revert.decoders));
        let (base_name, base_profile, decoders) = base.unwrap_or((from.clone(), before, decoders_before));
        self.revert = lent.map(|lent| {
            let span = clock.rate().ticks(Nanos(u64::try_from(lent.as_nanos()).unwrap_or(u64::MAX >> 1)));
            let at = clock.ticks().plus(span);
            Revert { at, name: base_name, profile: base_profile, decoders, is_due: false }
        });
        name.clone_into(&mut self.name);
        self.profile = Arc::new(now);
        self.show();
        let rate = self.rate_words(is_own_rate);
        Ok(Switched { from, to: name.to_owned(), epoch, decoder_epoch, changes, rate, reverts_in: lent })
    }

    /// The rate in force after a switch, as text.
    fn rate_words(&self, is_own: bool) -> String {
        if self.handles.pace == Pace::Senders {
            return "set by its senders".to_owned();
        }
        let rate = match (self.profile.input.rate, &self.measured) {
            (Rate::Hz(hz), _) => format!("{hz}/s"),
            (Rate::Max, _) => "max, as fast as slots come free".to_owned(),
            (Rate::Auto, Some((hz, _))) => format!("{hz:.0}/s"),
            (Rate::Auto, None) => "half of the capacity measured in warm-up".to_owned(),
        };
        let name = &self.name;
        if is_own {
            format!("{rate}: the rate of the start, because profile {name} has rate Auto")
        } else {
            format!("{rate}: from profile {name}")
        }
    }

    /// Passes other decoders on, and ends a drill whose time is over. Returns whether a limited
    /// switch has ended: then [`SharedSteering::restore`] is to be called, on a thread that may
    /// wait.
    pub(super) fn step(&mut self, now: Ticks) -> bool {
        self.handles.decoders.step();
        let phase = Phase::from_code(board::get(&self.handles.board.header().phase));
        match self.drilling.step(now, phase) {
            None => {}
            Some(Ended::Done(drill)) => self.note_action(&Actor::timer(), &format!("drill {} ended", drill.name())),
            Some(Ended::NeverTaken(drill)) => {
                let text = format!("drill {} ended: {} never started it", drill.name(), drill.role());
                self.note_action(&Actor::timer(), &text);
            }
        }
        let Some(revert) = self.revert.as_mut().filter(|revert| now >= revert.at && !revert.is_due) else {
            return false;
        };
        revert.is_due = true;
        true
    }

    /// Restores the profile of a limited switch, with its decoders, or with those in force if
    /// `change` is refused.
    fn restore(&mut self, revert: Revert, change: Result<Option<Change>, ChangeRefused>) {
        self.revert = None;
        let (profile, change) = match change {
            Ok(change) => (revert.profile, change),
            Err(refused) => {
                self.note_action(&Actor::timer(), &format!("profile {}: decoders stay: {refused}", revert.name));
                let Profile { decoder, streams, .. } = (*self.profile).clone();
                (Arc::new(Profile { decoder, streams, ..(*revert.profile).clone() }), None)
            }
        };
        match self.switch(&revert.name, &profile, None, change) {
            Ok(switched) => self.record(&Actor::timer(), &switched.words()),
            Err(refused) => {
                let text = format!("profile {} does not return: {refused}", revert.name);
                self.note_action(&Actor::timer(), &text);
                self.show();
            }
        }
    }

    /// Holds the feed: shots under way finish, and no new ones are taken.
    pub(super) fn pause(&mut self, by: &Actor) -> Result<(), ApplyError> {
        self.open()?;
        let ControlHandles { settings, board, clock, .. } = &self.handles;
        settings.set_flow(Flow::Held);
        let block = board.control();
        if board::get(&block.held) == 0 {
            board::set(&block.held_since, clock.ticks().0);
        }
        block.held_by.write(by.words());
        board::set(&block.held, 1);
        Ok(())
    }

    /// Releases the feed.
    pub(super) fn resume(&mut self) -> Result<(), ApplyError> {
        self.open()?;
        self.handles.settings.set_flow(Flow::Runs);
        board::set(&self.handles.board.control().held, 0);
        Ok(())
    }

    /// Sets the rate until the next profile with a rate; returns the previous rate.
    pub(super) fn set_rate(&mut self, rate: Rate) -> Result<Rate, ApplyError> {
        self.open()?;
        if self.handles.pace == Pace::Senders {
            return Err(ApplyError::Senders);
        }
        match rate {
            Rate::Hz(hz) if hz > 0.0 && hz <= RATE_HZ_MAX => {}
            Rate::Max => {}
            other => return Err(ApplyError::Rate { found: other.to_string() }),
        }
        let before = self.profile.input.rate;
        let mut now = (*self.profile).clone();
        now.input.rate = rate;
        self.profile = Arc::new(now);
        self.apply_rate(rate, "operator");
        Ok(before)
    }

    /// Gives shots to this shadow, or to none.
    pub(super) fn set_shadow(&mut self, shadow: Option<(Shadow, ReadyShadow)>) -> Result<(), ApplyError> {
        self.open()?;
        let (shadow, ready) = shadow.unzip();
        let mut now = (*self.profile).clone();
        let one_in = shadow.as_ref().map(|shadow| shadow.one_in);
        now.shadow = shadow;
        self.profile = Arc::new(now);
        self.handles.shadow.set(ready);
        self.handles.settings.set_shadow(one_in);
        Ok(())
    }

    /// Starts a drill.
    pub(super) fn drill(&mut self, drill: LiveDrill, span: Option<Duration>) -> Result<Drilled, DrillRefused> {
        let (now, rate) = (self.handles.clock.ticks(), self.handles.clock.rate());
        let ticks = |span: Duration| rate.ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1)));
        let in_force = (self.name.as_str(), &*self.profile);
        self.drilling.start(drill, span, in_force, &self.handles.board, (now, ticks))
    }

    /// Acknowledges alarm `number`; 0: all active alarms. The board shows it once the watchdog has
    /// processed it.
    pub(super) fn acknowledge(&self, number: u64) -> Result<(), ApplyError> {
        self.answer(number, AlarmRequest::Acknowledge(number))
    }

    /// Silences alarm `number` for `span`; 0: all active alarms.
    pub(super) fn snooze(&self, number: u64, span: Duration) -> Result<(), ApplyError> {
        let ticks = self.handles.clock.rate().ticks(Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX >> 1)));
        self.answer(number, AlarmRequest::Snooze(number, ticks))
    }

    fn answer(&self, number: u64, request: AlarmRequest) -> Result<(), ApplyError> {
        if self.watchdog.is_none() {
            return Err(ApplyError::NoWatchdog);
        }
        let rows = self.handles.board.alarms();
        if number != 0 && !rows.iter().filter_map(AlarmRow::read).any(|alarm| alarm.number == number) {
            return Err(ApplyError::NoAlarm { number });
        }
        self.notify_watchdog(WatchdogMessage::Request(request));
        Ok(())
    }

    /// Puts an entry into the log of events.
    pub(super) fn say(&self, entry: LogEntry) -> Result<(), NoteError> {
        let log = self.log.as_ref().ok_or(NoteError::NoLog)?;
        log.try_send(entry).map_err(|_| NoteError::Full)
    }

    /// Records that `by` did `what`.
    pub(super) fn record(&self, by: &Actor, what: &str) {
        self.note_action(by, &format!("{what} by {}", by.words()));
    }

    /// Records an action: on the board, and in the log of events.
    pub(super) fn note_action(&self, by: &Actor, text: &str) {
        let (block, at) = (self.handles.board.control(), self.handles.clock.ticks());
        block.action.write(text);
        board::set(&block.action_ticks, at.0);
        board::add(&block.actions, 1);
        let Some(log) = &self.log else { return };
        let (text, numbers) = (text.to_owned(), by.numbers());
        if log.try_send(LogEntry { at, who: by.kind().name(), code: EventCode::Operated, text, numbers }).is_err() {
            board::add(&block.actions_unlogged, 1);
        }
    }

    /// Whether the engine still accepts commands.
    pub(super) fn open(&self) -> Result<(), ApplyError> {
        let phase = Phase::from_code(board::get(&self.handles.board.header().phase));
        if phase >= Phase::Drain { Err(ApplyError::Phase { found: phase.name() }) } else { Ok(()) }
    }

    fn notify_watchdog(&self, message: WatchdogMessage) {
        // A watchdog that has already ended needs no message.
        let _ = self.watchdog.as_ref().map(|watchdog| watchdog.send(message));
    }

    /// Sets the rate at the end of Warmup.
    pub(super) fn begin(&mut self, measured: Option<(f64, String)>) {
        self.measured = measured;
        if self.handles.pace == Pace::Senders {
            self.handles.settings.set_rate_hz(None);
            header::write_rate(&self.handles.board, None, "set by its senders");
        }
        self.apply_rate(self.profile.input.rate, "fixed");
    }

    /// `Auto` is the rate measured in Warmup, which cannot be repeated live; before the measurement
    /// the rate stays.
    fn apply_rate(&self, rate: Rate, whose: &str) {
        let ControlHandles { settings, board, pace, .. } = &self.handles;
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

    /// Publishes the profile that will return, and the reaction to a hangup.
    fn show(&self) {
        let block = self.handles.board.control();
        block.revert_to.write(self.revert.as_ref().map_or("", |revert| &revert.name));
        board::set(&block.revert_ticks, self.revert.as_ref().map_or(0, |revert| revert.at.0));
        board::set(&block.drains_on_hangup, u64::from(self.profile.on_hangup == OnHangup::Drain));
    }
}

/// `profile` with the fields of `next` that apply live, except decoders.
fn with_live_fields(profile: &Profile, next: &Profile) -> Profile {
    let mut now = profile.clone();
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
    now
}
