//! Lifecycles of several silos: draining, death, takeover and restart.
//!
//! Owns its ends of the mailboxes to feeds and arbiters, and each silo's state as the board shows
//! it. Runs on the control thread, once a tick; in the simulation, between two steps. Bounds: one
//! death or restart at a time, each of its steps within [`STEP_LIMIT`] of the time in which this
//! process ran. A second death waits for the first; if the first one needs the arbiter that died,
//! the limit ends the run. Never waits: each step checks once. Longer than 500 lines, because it is
//! one sequence, read from fencing to the restart.
//!
//! ```text
//!  LIVE ─ drain ─▶ DRAINING ─ no stream left ─▶ DRAINED ─ rejoin ─▶ LIVE
//!    │ a role of its path died, or was stopped
//!    ▼
//!  DYING: 1 every role of the path has published its death: fenced
//!    │    2 its feed stops writing to the slots
//!    │    3 shots in the slots get an error answer, which is harvested
//!    │    4 arbiters settle its transfers; the successor takes its pages over
//!    │    5 feeds hold its streams
//!    │    6 shots in transit return, and the successor takes the streams over
//!    ▼
//!  DEAD ─ rejoin ─▶ REJOINING: arbiters link to it, feeds use its new arbiter, roles are built ─▶ LIVE
//! ```
//!
//! # Why each step waits for the one before
//! A takeover before the last role is fenced makes two owners. Closing tickets before the feed
//! stops writing misses a ticket. If the successor answered a stream before its last answers are
//! harvested, two harvesters would count one stream. If a shot returned before its feed knew of the
//! death, the feed would send it to the dead silo again.

mod assignment;

use super::connect::SiloNotifiers;
use super::rebuild::{RebuildParts, close, rebuild};
use super::{Common, Silo, SiloCommand, SiloCommands};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::{self, Board};
use crate::commit::arbiter_driver::{MembershipAck, MembershipEvent};
use crate::feed::cross_silo::failover::{SiloEvent, SiloReply};
use crate::hot::{CallGaps, RoleSpec};
use crate::profile::Profile;
use crate::roles::SiloState;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::table::DispatchEnd;
use std::sync::Arc;

/// Longest time for a step of a death or restart during which no feed's failover progresses either:
/// returned shots leave as fast as slots come free, which under overload has no fixed bound.
/// Exceeding it ends the run, so a machine that is merely busy must not reach it.
pub(super) const STEP_LIMIT: Nanos = Nanos::from_millis(10_000);

/// Control of the threads that run the roles.
pub trait PathControl {
    /// Stops the path of `silo` on every thread that runs a role of it.
    fn stop(&mut self, silo: usize);
    /// The proof that the path of `silo` has stopped, if it has; a new [`Fenced`] for each call.
    fn fenced(&self, silo: usize) -> Option<Fenced>;
    /// Why a role of the path of `silo` died, if one has.
    fn died(&self, silo: usize) -> Option<String>;
    /// Builds `specs` in place of the dead path of `silo`.
    fn restart(&mut self, silo: usize, specs: Vec<RoleSpec>);
    /// Result of the restart; `None`: not finished.
    fn restarted(&mut self, silo: usize) -> Option<Result<(), String>>;
}

/// Parts of the supervisor.
pub struct SupervisorParts {
    /// Profile of the silos.
    pub profile: Profile,
    /// Parts that the silos share.
    pub common: Common,
    /// Decode workers of each silo.
    pub decoders: Vec<u32>,
    /// Its ends of the mailboxes, by silo.
    pub notifiers: Vec<SiloNotifiers>,
    /// Commands of operators.
    pub commands: Arc<SiloCommands>,
}

/// Lifecycle of one silo.
struct SiloRecord {
    state: SiloState,
    successor: Option<usize>,
    /// Where its next dispatcher begins.
    end: Option<DispatchEnd>,
    /// Number of paths built.
    epoch: u64,
    /// Streams of its feed that left as it drained or died, each with the silo where it was at the last check.
    /// One that has been back, or that someone has moved since, is not among them.
    away: Vec<(u32, usize)>,
    /// Until when they are asked to return.
    return_until: Ticks,
    /// Progress of its feed's failover at the last check, as on the board.
    failover: u64,
}

/// Step of a death or a restart.
enum Step {
    Fencing,
    StoppingFeed,
    EmptyingSlots { written: u64 },
    TakingOverPages { left: usize },
    NotifyingFeeds { left: usize },
    TakingOverStreams { left: usize, streams: usize },
    Linking { left: usize, specs: Vec<RoleSpec>, endpoints: Vec<crate::arbiter::requests::EndpointEnds> },
    AnnouncingRestart { left: usize, specs: Vec<RoleSpec> },
    BuildingRoles,
}

impl Step {
    /// The event that the step waits for.
    fn awaited(&self) -> &'static str {
        match self {
            Step::Fencing => "the death of every role of its path",
            Step::StoppingFeed => "its feed to stop writing to the slots",
            Step::EmptyingSlots { .. } => "its last answers to be harvested",
            Step::TakingOverPages { .. } => "every arbiter to settle its pages",
            Step::NotifyingFeeds { .. } => "every feed to acknowledge its death",
            Step::TakingOverStreams { .. } => "its successor to take over its streams",
            Step::Linking { .. } => "every arbiter to link to its new path",
            Step::AnnouncingRestart { .. } => "every feed to acknowledge its restart",
            Step::BuildingRoles => "its roles to be rebuilt",
        }
    }
}

/// A death or a restart in progress.
struct Transition {
    silo: usize,
    step: Step,
    began: Ticks,
    since: Ticks,
}

/// A death, watched until another silo answers one of its streams.
struct WatchedDeath {
    silo: usize,
    died: Ticks,
    /// The streams, with their answers until then.
    streams: Vec<(u32, u64)>,
}

/// Supervises the lifecycles of an engine's silos.
pub struct SiloSupervisor {
    parts: SupervisorParts,
    records: Vec<SiloRecord>,
    transition: Option<Transition>,
    /// By stream: when it was last asked to move.
    asked: Vec<Ticks>,
    watched: Option<WatchedDeath>,
    gaps: CallGaps,
    broken: Option<String>,
}

impl SiloSupervisor {
    /// A supervisor of live silos.
    pub fn new(parts: SupervisorParts) -> SiloSupervisor {
        let record = |_| SiloRecord {
            state: SiloState::Live,
            successor: None,
            end: None,
            epoch: 1,
            away: Vec::new(),
            return_until: Ticks(0),
            failover: 0,
        };
        let records: Vec<SiloRecord> = (0..parts.notifiers.len()).map(record).collect();
        let board = &parts.common.board;
        (0..board.shape().silos as usize).for_each(|silo| board::set(&board.lifecycle(silo).epoch, 1));
        let asked = vec![Ticks(0); parts.profile.input.streams as usize];
        let gaps = CallGaps::of_cold_thread(parts.common.clock.rate());
        SiloSupervisor { parts, records, transition: None, asked, watched: None, gaps, broken: None }
    }

    /// Whether no death and no restart is in progress.
    pub fn is_settled(&self) -> bool {
        self.transition.is_none()
    }

    /// Why the run must end, if it must.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// The commands to silos.
    pub fn commands(&self) -> &Arc<SiloCommands> {
        &self.parts.commands
    }

    /// The state of `silo`.
    pub fn state(&self, silo: usize) -> SiloState {
        self.records.get(silo).map_or(SiloState::Live, |record| record.state)
    }

    /// Advances all lifecycles by one check.
    pub fn step(&mut self, silos: &mut [Silo], hot: &mut impl PathControl, now: Ticks) {
        if self.records.is_empty() || self.broken.is_some() {
            return;
        }
        self.gaps.note(now);
        if self.transition.is_none() {
            self.look_for_deaths(hot, now);
        }
        if self.transition.is_none() {
            self.take_commands(silos, hot, now);
        }
        for silo in 0..self.records.len() {
            self.drain_streams(silo, now);
            self.return_streams(silo, now);
        }
        self.rejoin_pairs(now);
        self.watch(now);
        let Some(mut transition) = self.transition.take() else { return };
        let before = std::mem::discriminant(&transition.step);
        let has_ended = self.advance(&mut transition, silos, hot, now);
        let has_progressed = self.has_progressed();
        if std::mem::discriminant(&transition.step) != before || has_progressed {
            transition.since = now;
        }
        if has_ended {
            return;
        }
        if self.gaps.is_overdue(transition.since, now, self.parts.common.clock.rate().ticks(STEP_LIMIT)) {
            let (silo, limit_ms, step) = (transition.silo, STEP_LIMIT.0 / 1_000_000, transition.step.awaited());
            let feeds = self.failovers();
            self.broken = Some(format!(
                "silo {silo} has waited {limit_ms} ms for {step}{feeds}, which takes a tick or two; look for stalled \
                 threads, or for a second silo that died meanwhile"
            ));
        }
        self.transition = Some(transition);
    }

    /// Whether any feed's failover has progressed since the last check.
    fn has_progressed(&mut self) -> bool {
        let board = Arc::clone(&self.parts.common.board);
        let words = (0..).zip(&mut self.records).map(|(silo, record)| {
            let word = board::get(&board.moves(silo).failover);
            std::mem::replace(&mut record.failover, word) != word
        });
        words.fold(false, |any, has_changed| any | has_changed)
    }

    /// The feeds whose failover is not over, and the progress of each, in words.
    fn failovers(&self) -> String {
        let progress = |silo: usize| {
            let word = board::get(&self.board().moves(silo).failover);
            let (step, streams, came_back) = (word & 0xFF, word >> 16 & 0xFF_FFFF, word >> 40);
            (word != 0)
                .then(|| format!("feed {silo} at step {step} with {streams} streams, {came_back} shots came back"))
        };
        let feeds: Vec<String> = (0..self.records.len()).filter_map(progress).collect();
        if feeds.is_empty() { String::new() } else { format!(" ({})", feeds.join("; ")) }
    }

    fn look_for_deaths(&mut self, hot: &mut impl PathControl, now: Ticks) {
        let is_running =
            |record: &SiloRecord| !matches!(record.state, SiloState::Dying | SiloState::Dead | SiloState::Rejoining);
        let died = |silo| hot.died(silo).map(|why| (silo, why));
        if let Some((silo, why)) =
            (0..self.records.len()).filter(|silo| is_running(&self.records[*silo])).find_map(died)
        {
            self.begin_death(silo, &why, hot, now);
        }
    }

    fn take_commands(&mut self, silos: &mut [Silo], hot: &mut impl PathControl, now: Ticks) {
        for silo in 0..self.records.len() {
            let Some(command) = self.parts.commands.take(silo as u32) else { continue };
            // Other silos may have changed since the command was sent.
            if self.parts.commands.check(silo as u32, command).is_err() {
                continue;
            }
            match (command, self.records[silo].state) {
                (SiloCommand::Kill, _) => self.begin_death(silo, "killed on request", hot, now),
                (SiloCommand::Drain, _) => self.enter(silo, SiloState::Draining, "drained on request", now),
                (SiloCommand::Rejoin, SiloState::Dead) => self.begin_return(silo, silos, now),
                (SiloCommand::Rejoin, _) => {
                    self.enter(silo, SiloState::Live, "", now);
                    self.request_return(silo, now);
                }
            }
            if self.transition.is_some() {
                return;
            }
        }
    }

    fn begin_death(&mut self, silo: usize, why: &str, hot: &mut impl PathControl, now: Ticks) {
        let Some(successor) = self.successor_of(silo, hot) else {
            self.broken = Some(format!(
                "silo {silo} died ({why}), and no other silo is live to take its streams; start with more silos"
            ));
            return;
        };
        hot.stop(silo);
        self.note_leaving(silo);
        self.enter(silo, SiloState::Dying, why, now);
        self.records[silo].successor = Some(successor);
        let block = self.board().lifecycle(silo);
        board::add(&block.deaths, 1);
        board::set(&block.successor, successor as u64 + 1);
        self.transition = Some(Transition { silo, step: Step::Fencing, began: now, since: now });
    }

    /// The live silo with the fewest streams; none whose own death is still to be handled.
    fn successor_of(&self, dead: usize, hot: &impl PathControl) -> Option<usize> {
        let is_live = |silo: usize| self.records[silo].state == SiloState::Live && hot.died(silo).is_none();
        let is_candidate = |silo: &usize| *silo != dead && is_live(*silo);
        let candidates = (0..self.records.len()).filter(is_candidate);
        candidates.min_by_key(|silo| (self.streams_of(*silo).count(), *silo))
    }

    /// Checks the transition in progress once. Returns whether it has ended.
    fn advance(
        &mut self,
        transition: &mut Transition,
        silos: &mut [Silo],
        hot: &mut impl PathControl,
        now: Ticks,
    ) -> bool {
        let (silo, count) = (transition.silo, self.records.len());
        match &mut transition.step {
            Step::Fencing => {
                if hot.fenced(silo).is_some() {
                    self.notify_feed(silo, SiloEvent::StopWriting);
                    transition.step = Step::StoppingFeed;
                }
            }
            Step::StoppingFeed => {
                if let Some(SiloReply::StoppedWriting { written }) = self.parts.notifiers[silo].feed.1.pop() {
                    let (closed, end) = close(&silos[silo].pipe, written, now);
                    board::add(&self.board().lifecycle(silo).errored, closed);
                    self.records[silo].end = Some(end);
                    transition.step = Step::EmptyingSlots { written };
                }
            }
            Step::EmptyingSlots { written } => {
                // Not by the slots: they are free before their answers are counted.
                if board::get(&self.board().harvest(silo).position) == *written {
                    self.note_streams(silo, transition.began);
                    transition.step = Step::TakingOverPages { left: self.take_over_pages(silo, silos, hot) };
                }
            }
            Step::TakingOverPages { left } => {
                *left -= self.acknowledged(silo, |ack| matches!(ack, MembershipAck::TakenOver { .. }));
                if *left == 0 {
                    let successor = self.records[silo].successor.unwrap_or(silo);
                    (0..count).filter(|other| *other != silo).for_each(|other| {
                        self.notify_feed(other, SiloEvent::Died { dead: silo, successor });
                    });
                    transition.step = Step::NotifyingFeeds { left: count - 1 };
                }
            }
            Step::NotifyingFeeds { left } => {
                let others = (0..count).filter(|other| *other != silo);
                let replied = others
                    .filter(|other| matches!(self.parts.notifiers[*other].feed.1.pop(), Some(SiloReply::Acknowledged)));
                *left -= replied.count();
                if *left == 0 {
                    self.notify_feed(
                        silo,
                        SiloEvent::SendBack { successor: self.records[silo].successor.unwrap_or(silo) },
                    );
                    transition.step = Step::TakingOverStreams { left: count, streams: 0 };
                }
            }
            Step::TakingOverStreams { left, streams } => {
                for other in 0..count {
                    if let Some(SiloReply::Reassigned { streams: of_feed }) = self.next_of_feed(other) {
                        (*left, *streams) = (*left - 1, *streams + of_feed);
                    }
                }
                if *left == 0 {
                    let streams = *streams;
                    self.end_death(transition, streams, now);
                    return true;
                }
            }
            _ => return self.advance_return(transition, hot, now),
        }
        false
    }

    /// The next reply of the feed of `silo`, without acknowledgements.
    fn next_of_feed(&mut self, silo: usize) -> Option<SiloReply> {
        loop {
            match self.parts.notifiers[silo].feed.1.pop()? {
                SiloReply::Acknowledged => {}
                reply => return Some(reply),
            }
        }
    }

    fn advance_return(&mut self, transition: &mut Transition, hot: &mut impl PathControl, now: Ticks) -> bool {
        let (silo, count) = (transition.silo, self.records.len());
        match &mut transition.step {
            Step::Linking { left, specs, endpoints } => {
                *left -= self.acknowledged(silo, |ack| matches!(ack, MembershipAck::Linked(_)));
                if *left == 0 {
                    for (feed, ends) in endpoints.drain(..).enumerate() {
                        self.notify_feed(feed, SiloEvent::Restarted { silo, ends });
                    }
                    let specs = std::mem::take(specs);
                    transition.step = Step::AnnouncingRestart { left: count, specs };
                }
            }
            Step::AnnouncingRestart { left, specs } => {
                let replied = (0..count).filter(|feed| self.parts.notifiers[*feed].feed.1.pop().is_some());
                *left -= replied.count();
                if *left == 0 {
                    hot.restart(silo, std::mem::take(specs));
                    transition.step = Step::BuildingRoles;
                }
            }
            Step::BuildingRoles => match hot.restarted(silo) {
                None => {}
                Some(Ok(())) => {
                    self.end_return(transition, now);
                    return true;
                }
                Some(Err(why)) => {
                    self.broken = Some(format!("silo {silo} could not be rebuilt: {why}"));
                    return true;
                }
            },
            _ => {}
        }
        false
    }

    /// Sends the death to every living arbiter. Returns how many there are.
    fn take_over_pages(&mut self, dead: usize, silos: &[Silo], hot: &mut impl PathControl) -> usize {
        let successor = Owner::new(self.records[dead].successor.unwrap_or(dead) as u8);
        let mut notified = 0;
        for other in 0..self.records.len() {
            if !self.has_arbiter(other) {
                continue;
            }
            let Some(fenced) = hot.fenced(dead) else {
                unreachable!("a fenced silo stays fenced until it is restarted")
            };
            let (dead_pages, states) = (Arc::clone(&silos[dead].pipe.pages), Arc::clone(&silos[dead].states));
            let event = MembershipEvent::Died { fenced, dead_pages, states, successor };
            // The mailbox of an arbiter that died meanwhile may be full; then the step's limit ends
            // the run.
            let _ = self.parts.notifiers[other].arbiter.0.push(event);
            notified += 1;
        }
        notified
    }

    /// Whether the arbiter of `silo` runs.
    fn has_arbiter(&self, silo: usize) -> bool {
        !matches!(self.records[silo].state, SiloState::Dying | SiloState::Dead | SiloState::Rejoining)
    }

    /// Counts the matching acknowledgements of the living arbiters.
    fn acknowledged(&mut self, of: usize, matches: impl Fn(&MembershipAck) -> bool) -> usize {
        let mut count = 0;
        for other in (0..self.records.len()).filter(|other| *other != of) {
            // Dropped here: the parts that they no longer use.
            let ack = self.parts.notifiers[other].arbiter.1.pop();
            count += usize::from(ack.is_some_and(|ack| matches(&ack)));
        }
        count
    }

    fn notify_feed(&mut self, silo: usize, event: SiloEvent) {
        assert!(self.parts.notifiers[silo].feed.0.push(event).is_ok(), "one death or return at a time");
    }

    fn end_death(&mut self, transition: &Transition, streams: usize, now: Ticks) {
        let silo = transition.silo;
        let took = self.parts.common.clock.rate().nanos(now.since(transition.began));
        let block = self.board().lifecycle(silo);
        board::add(&block.left, streams as u64);
        block.elsewhere.record(took.0);
        let why = block.why.read();
        self.enter(silo, SiloState::Dead, &why, now);
    }

    fn begin_return(&mut self, silo: usize, silos: &mut [Silo], now: Ticks) {
        let Some(end) = self.records[silo].end.take() else { return };
        self.records[silo].successor = None;
        self.enter(silo, SiloState::Rejoining, "its path is being rebuilt", now);
        let successors: Vec<Option<usize>> = self.records.iter().map(|record| record.successor).collect();
        let SupervisorParts { profile, common, decoders, notifiers, .. } = &mut self.parts;
        let parts = RebuildParts {
            profile,
            common,
            decoders: decoders[silo],
            epoch: self.records[silo].epoch,
            successors: &successors,
        };
        match rebuild(silos, silo, (end, &mut notifiers[silo]), &parts) {
            Ok(rebuilt) => {
                let left = rebuilt.links.len();
                for (other, link) in rebuilt.links {
                    // As in a takeover, the mailbox of an arbiter that died meanwhile may be full.
                    let _ = notifiers[other].arbiter.0.push(MembershipEvent::Restarted { link });
                }
                let step = Step::Linking { left, specs: rebuilt.specs, endpoints: rebuilt.endpoints };
                self.transition = Some(Transition { silo, step, began: now, since: now });
            }
            Err(why) => self.broken = Some(format!("silo {silo} could not be rebuilt: {why}")),
        }
    }

    fn end_return(&mut self, transition: &Transition, now: Ticks) {
        let silo = transition.silo;
        self.records[silo].epoch += 1;
        let block = self.board().lifecycle(silo);
        board::set(&block.epoch, self.records[silo].epoch);
        board::add(&block.rejoins, 1);
        block.rejoin.record(self.parts.common.clock.rate().nanos(now.since(transition.began)).0);
        self.enter(silo, SiloState::Live, "", now);
        self.request_return(silo, now);
    }

    fn enter(&mut self, silo: usize, state: SiloState, why: &str, now: Ticks) {
        self.records[silo].state = state;
        self.parts.commands.say(silo as u32, state);
        self.parts.common.moves.say_open(silo as u32, state == SiloState::Live);
        let block = self.board().lifecycle(silo);
        block.why.write(why);
        board::set(&block.since, now.0);
        board::set(&block.state, state as u64);
    }

    /// Records how many shots of each stream of a dead silo were answered.
    fn note_streams(&mut self, silo: usize, died: Ticks) {
        let answered = |stream: u32| (stream, board::get(&self.board().stream_harvest(stream as usize).answered));
        self.watched = Some(WatchedDeath { silo, died, streams: self.streams_of(silo).map(answered).collect() });
    }

    /// Checks for the first answer by another silo.
    fn watch(&mut self, now: Ticks) {
        let board = &self.parts.common.board;
        let Some(WatchedDeath { silo, died, streams }) = &self.watched else { return };
        let is_answered =
            |(stream, before): &(u32, u64)| board::get(&board.stream_harvest(*stream as usize).answered) > *before;
        if streams.iter().any(is_answered) {
            board.lifecycle(*silo).answered.record(self.parts.common.clock.rate().nanos(now.since(*died)).0);
            self.watched = None;
        }
    }

    fn board(&self) -> &Board {
        &self.parts.common.board
    }
}

#[cfg(test)]
mod tests;
