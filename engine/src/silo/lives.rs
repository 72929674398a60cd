//! The lives of several silos: one is emptied, dies, is inherited, comes back.
//!
//! Owns the ends of what tells feeds and arbiters of each other, and each silo's state as the board shows it. Runs on the
//! control thread, once a tick; in the rehearsal, between two steps. Bounds: one death or one return at a time, each of its steps
//! within [`STEP_LIMIT`]; a second death meanwhile waits for it. Never waits: each step looks once. Longer than 500 lines, because it
//! is one sequence, read from fencing to the return.
//!
//! ```text
//!  LIVE ─ drain ─▶ DRAINING ─ no stream left ─▶ DRAINED ─ rejoin ─▶ LIVE
//!    │ a role of its path died, or is condemned
//!    ▼
//!  DYING: 1 every role of the path has published its death: fenced   2 its feed leaves the slots alone
//!    │    3 what lies in them is answered with an error, and harvested 4 arbiters inherit, its heir every page
//!    │    5 feeds hold its streams                                     6 what was on its way comes back, the heir adopts
//!    ▼
//!  DEAD ─ rejoin ─▶ REJOINING: arbiters have links to it, feeds ask its new arbiter; roles are built ─▶ LIVE
//! ```
//!
//! # Why each step waits for the one before
//! Who inherits before the last role is fenced makes two owners. Who answers tickets before the feed leaves off leaves one out. An heir
//! that answers a stream before its last answers are harvested lets two harvesters count one stream. A shot that comes back
//! before its feed knows why would be sent there again.

mod ways;

use super::connect::Told as Ends;
use super::rebuild::{Among, close, rebuild};
use super::{Common, Silo, SiloDeed, SiloWishes};
use crate::arbiter::fence::Fenced;
use crate::arbiter::page::Silo as Owner;
use crate::board::snapshot::SiloState;
use crate::board::{self, Board};
use crate::decode::steward::{Heard, Tidings};
use crate::feed::requests::MoveRequests;
use crate::feed::rescue::{News, Told};
use crate::hot::RoleSpec;
use crate::profile::Profile;
use crate::units::{Nanos, Ticks};
use pinwheel_edge::slot::table::DispatchEnd;
use std::sync::Arc;

/// Longest time for one step of a death or a return in which no feed's rescue gets on either: what came back goes out as fast as slots
/// come free, which under overload takes as long as it takes. It ends the run: a machine that is merely busy must not reach it.
pub(super) const STEP_LIMIT: Nanos = Nanos::from_millis(10_000);

/// What runs the roles.
pub trait HotSide {
    /// The path of `silo` is to die, on every thread that runs a role of it.
    fn condemn(&mut self, silo: usize);
    /// Whether it has: one [`Fenced`] for each who is told.
    fn fenced(&self, silo: usize) -> Option<Fenced>;
    /// Why a role of the path of `silo` died, in words, if one has.
    fn died(&self, silo: usize) -> Option<String>;
    /// Builds `specs` in the places of the dead path of `silo`.
    fn revive(&mut self, silo: usize, specs: Vec<RoleSpec>);
    /// What came of that; `None`: nothing yet.
    fn revived(&mut self, silo: usize) -> Option<Result<(), String>>;
}

/// What it is made of.
pub struct LivesParts {
    /// What silos are wired by.
    pub profile: Profile,
    /// What they share.
    pub common: Common,
    /// Decode workers of each.
    pub decoders: Vec<u32>,
    /// The ends of what tells them.
    pub told: Vec<Ends>,
    /// What is wished.
    pub wishes: Arc<SiloWishes>,
}

/// One silo's.
struct Life {
    state: SiloState,
    heir: Option<usize>,
    /// Where its next dispatcher begins.
    end: Option<DispatchEnd>,
    /// Paths that were built.
    epoch: u64,
    /// Its streams are asked to come back until then.
    homing: Option<Ticks>,
    /// How far its feed's rescue was at the last look, as the board says it.
    rescue: u64,
}

/// How far a death or a return is.
enum Step {
    Fencing,
    Halting,
    Emptying,
    Burying { left: usize },
    Telling { left: usize },
    Adopting { left: usize, streams: usize },
    Welcoming { left: usize, specs: Vec<RoleSpec>, desks: Vec<crate::arbiter::errand::DeskEnds> },
    Attaching { left: usize, specs: Vec<RoleSpec> },
    Building,
}

impl Step {
    /// What is waited for, in words.
    fn name(&self) -> &'static str {
        match self {
            Step::Fencing => "without the death of every role of its path",
            Step::Halting => "with its feed at the slots",
            Step::Emptying => "with answers that are not harvested",
            Step::Burying { .. } => "not looked through by every arbiter",
            Step::Telling { .. } => "unknown to a feed",
            Step::Adopting { .. } => "with streams that its heir has not adopted",
            Step::Welcoming { .. } => "without a link to every arbiter",
            Step::Attaching { .. } => "unknown to a feed again",
            Step::Building => "without its roles",
        }
    }
}

/// What is under way.
struct Course {
    silo: usize,
    step: Step,
    began: Ticks,
    since: Ticks,
}

/// A death that is watched until one of its streams is answered elsewhere.
struct Watched {
    silo: usize,
    died: Ticks,
    /// With their answers until then.
    streams: Vec<(u32, u64)>,
}

/// The lives of an engine's silos.
pub struct Lives {
    parts: LivesParts,
    lives: Vec<Life>,
    course: Option<Course>,
    /// Of each stream: when it was last asked to move.
    asked: Vec<Ticks>,
    watched: Option<Watched>,
    broken: Option<String>,
}

impl Lives {
    /// All live.
    #[must_use]
    pub fn new(parts: LivesParts) -> Lives {
        let life = |_| Life { state: SiloState::Live, heir: None, end: None, epoch: 1, homing: None, rescue: 0 };
        let lives: Vec<Life> = (0..parts.told.len()).map(life).collect();
        let board = &parts.common.board;
        (0..board.shape().silos as usize).for_each(|silo| board::set(&board.life(silo).epoch, 1));
        let asked = vec![Ticks(0); parts.profile.input.streams as usize];
        Lives { parts, lives, course: None, asked, watched: None, broken: None }
    }

    /// Whether no death and no return is under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.course.is_none()
    }

    /// Why the run cannot go on, if so.
    #[must_use]
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// What is wished of silos.
    #[must_use]
    pub fn wishes(&self) -> &Arc<SiloWishes> {
        &self.parts.wishes
    }

    /// What is asked of streams.
    #[must_use]
    pub fn moves(&self) -> &MoveRequests {
        &self.parts.common.moves
    }

    /// The state of `silo`.
    #[must_use]
    pub fn state(&self, silo: usize) -> SiloState {
        self.lives.get(silo).map_or(SiloState::Live, |life| life.state)
    }

    /// Does what is due now.
    pub fn step(&mut self, silos: &mut [Silo], hot: &mut impl HotSide, now: Ticks) {
        if self.lives.is_empty() || self.broken.is_some() {
            return;
        }
        if self.course.is_none() {
            self.look_for_deaths(hot, now);
        }
        if self.course.is_none() {
            self.take_wishes(silos, hot, now);
        }
        for silo in 0..self.lives.len() {
            self.empty(silo, now);
            self.bring_home(silo, now);
        }
        self.reunite(now);
        self.watch(now);
        let Some(mut course) = self.course.take() else { return };
        let before = std::mem::discriminant(&course.step);
        let is_over = self.advance(&mut course, silos, hot, now);
        let has_got_on = self.has_got_on();
        if std::mem::discriminant(&course.step) != before || has_got_on {
            course.since = now;
        }
        if is_over {
            return;
        }
        if self.parts.common.clock.rate().nanos(now.since(course.since)) > STEP_LIMIT {
            let (silo, limit_ms, step) = (course.silo, STEP_LIMIT.0 / 1_000_000, course.step.name());
            let feeds = self.rescues();
            self.broken = Some(format!(
                "silo {silo} died or came back: found it {step} for {limit_ms} ms{feeds}, expected a tick or two; look for \
                 threads that stand still, or a second silo that died meanwhile"
            ));
        }
        self.course = Some(course);
    }

    /// Whether any feed's rescue has got on since the last look.
    fn has_got_on(&mut self) -> bool {
        let board = Arc::clone(&self.parts.common.board);
        let words = (0..).zip(&mut self.lives).map(|(silo, life)| {
            let word = board::get(&board.moves(silo).rescue);
            std::mem::replace(&mut life.rescue, word) != word
        });
        words.fold(false, |any, has_changed| any | has_changed)
    }

    /// The feeds whose rescue is not over, and how far each is, in words.
    fn rescues(&self) -> String {
        let told = |silo: usize| {
            let word = board::get(&self.board().moves(silo).rescue);
            let (step, streams, came_back) = (word & 0xFF, word >> 16 & 0xFF_FFFF, word >> 40);
            (word != 0)
                .then(|| format!("feed {silo} at step {step} with {streams} streams, {came_back} shots came back"))
        };
        let feeds: Vec<String> = (0..self.lives.len()).filter_map(told).collect();
        if feeds.is_empty() { String::new() } else { format!(" ({})", feeds.join("; ")) }
    }

    fn look_for_deaths(&mut self, hot: &mut impl HotSide, now: Ticks) {
        let lives = |life: &Life| !matches!(life.state, SiloState::Dying | SiloState::Dead | SiloState::Rejoining);
        let died = |silo| hot.died(silo).map(|why| (silo, why));
        if let Some((silo, why)) = (0..self.lives.len()).filter(|silo| lives(&self.lives[*silo])).find_map(died) {
            self.begin_death(silo, &why, hot, now);
        }
    }

    fn take_wishes(&mut self, silos: &mut [Silo], hot: &mut impl HotSide, now: Ticks) {
        for silo in 0..self.lives.len() {
            let Some(deed) = self.parts.wishes.take(silo as u32) else { continue };
            // What became of other silos since it was wished may stand against it.
            if self.parts.wishes.check(silo as u32, deed).is_err() {
                continue;
            }
            match (deed, self.lives[silo].state) {
                (SiloDeed::Kill, _) => self.begin_death(silo, "killed on request", hot, now),
                (SiloDeed::Drain, _) => self.enter(silo, SiloState::Draining, "drained on request", now),
                (SiloDeed::Rejoin, SiloState::Dead) => self.begin_return(silo, silos, now),
                (SiloDeed::Rejoin, _) => {
                    self.enter(silo, SiloState::Live, "", now);
                    self.go_home(silo, now);
                }
            }
            if self.course.is_some() {
                return;
            }
        }
    }

    fn begin_death(&mut self, silo: usize, why: &str, hot: &mut impl HotSide, now: Ticks) {
        let Some(heir) = self.heir_of(silo) else {
            self.broken =
                Some(format!("silo {silo} died ({why}): found no other silo live, expected one to take its streams"));
            return;
        };
        hot.condemn(silo);
        self.enter(silo, SiloState::Dying, why, now);
        self.lives[silo].heir = Some(heir);
        let block = self.board().life(silo);
        board::add(&block.deaths, 1);
        board::set(&block.heir, heir as u64 + 1);
        self.course = Some(Course { silo, step: Step::Fencing, began: now, since: now });
    }

    /// The live silo with the fewest streams.
    fn heir_of(&self, dead: usize) -> Option<usize> {
        let is_candidate = |silo: &usize| *silo != dead && self.lives[*silo].state == SiloState::Live;
        let candidates = (0..self.lives.len()).filter(is_candidate);
        candidates.min_by_key(|silo| (self.streams_of(*silo).count(), *silo))
    }

    /// One look at what is under way; whether it is over.
    fn advance(&mut self, course: &mut Course, silos: &mut [Silo], hot: &mut impl HotSide, now: Ticks) -> bool {
        let (silo, count) = (course.silo, self.lives.len());
        match &mut course.step {
            Step::Fencing => {
                if hot.fenced(silo).is_some() {
                    self.tell_feed(silo, News::Halt);
                    course.step = Step::Halting;
                }
            }
            Step::Halting => {
                if let Some(Told::Halted { written }) = self.parts.told[silo].feed.1.pop() {
                    let (closed, end) = close(&silos[silo].pipe, written, now);
                    board::add(&self.board().life(silo).errored, closed);
                    self.lives[silo].end = Some(end);
                    course.step = Step::Emptying;
                }
            }
            Step::Emptying => {
                let table = &silos[silo].pipe.table;
                if (0..table.geometry().slots).all(|slot| table.is_idle(slot)) {
                    self.note_streams(silo, course.began);
                    course.step = Step::Burying { left: self.bury(silo, silos, hot) };
                }
            }
            Step::Burying { left } => {
                *left -= self.heard(silo, |heard| matches!(heard, Heard::Buried { .. }));
                if *left == 0 {
                    let heir = self.lives[silo].heir.unwrap_or(silo);
                    (0..count).filter(|other| *other != silo).for_each(|other| {
                        self.tell_feed(other, News::Died { dead: silo, heir });
                    });
                    course.step = Step::Telling { left: count - 1 };
                }
            }
            Step::Telling { left } => {
                let knows = (0..count).filter(|other| *other != silo);
                let told = knows.filter(|other| matches!(self.parts.told[*other].feed.1.pop(), Some(Told::Knows)));
                *left -= told.count();
                if *left == 0 {
                    self.tell_feed(silo, News::SendBack { heir: self.lives[silo].heir.unwrap_or(silo) });
                    course.step = Step::Adopting { left: count, streams: 0 };
                }
            }
            Step::Adopting { left, streams } => {
                for other in 0..count {
                    if let Some(Told::Elsewhere { streams: of_feed }) = self.next_of_feed(other) {
                        (*left, *streams) = (*left - 1, *streams + of_feed);
                    }
                }
                if *left == 0 {
                    let streams = *streams;
                    self.end_death(course, streams, now);
                    return true;
                }
            }
            _ => return self.advance_return(course, hot, now),
        }
        false
    }

    /// What the feed of `silo` says next, but for that it has heard.
    fn next_of_feed(&mut self, silo: usize) -> Option<Told> {
        loop {
            match self.parts.told[silo].feed.1.pop()? {
                Told::Knows => {}
                told => return Some(told),
            }
        }
    }

    fn advance_return(&mut self, course: &mut Course, hot: &mut impl HotSide, now: Ticks) -> bool {
        let (silo, count) = (course.silo, self.lives.len());
        match &mut course.step {
            Step::Welcoming { left, specs, desks } => {
                *left -= self.heard(silo, |heard| matches!(heard, Heard::Welcomed(_)));
                if *left == 0 {
                    for (feed, ends) in desks.drain(..).enumerate() {
                        self.tell_feed(feed, News::Back { silo, ends });
                    }
                    let specs = std::mem::take(specs);
                    course.step = Step::Attaching { left: count, specs };
                }
            }
            Step::Attaching { left, specs } => {
                let told = (0..count).filter(|feed| self.parts.told[*feed].feed.1.pop().is_some());
                *left -= told.count();
                if *left == 0 {
                    hot.revive(silo, std::mem::take(specs));
                    course.step = Step::Building;
                }
            }
            Step::Building => match hot.revived(silo) {
                None => {}
                Some(Ok(())) => {
                    self.end_return(course, now);
                    return true;
                }
                Some(Err(why)) => {
                    self.broken = Some(format!("silo {silo} came back: {why}"));
                    return true;
                }
            },
            _ => {}
        }
        false
    }

    /// Tells every arbiter that lives; how many.
    fn bury(&mut self, dead: usize, silos: &[Silo], hot: &mut impl HotSide) -> usize {
        let heir = Owner::new(self.lives[dead].heir.unwrap_or(dead) as u8);
        let mut told = 0;
        for other in 0..self.lives.len() {
            if !self.has_arbiter(other) {
                continue;
            }
            let Some(fenced) = hot.fenced(dead) else { unreachable!("what is fenced stays so until it is revived") };
            let (remains, states) = (Arc::clone(&silos[dead].pipe.pages), Arc::clone(&silos[dead].states));
            let tidings = Tidings::Died { fenced, remains, states, heir };
            // One that has died meanwhile hears nothing: then the step's limit ends the run.
            let _ = self.parts.told[other].steward.0.push(tidings);
            told += 1;
        }
        told
    }

    /// Whether the arbiter of `silo` runs.
    fn has_arbiter(&self, silo: usize) -> bool {
        !matches!(self.lives[silo].state, SiloState::Dying | SiloState::Dead | SiloState::Rejoining)
    }

    /// Answers that the living arbiters gave.
    fn heard(&mut self, of: usize, is_it: impl Fn(&Heard) -> bool) -> usize {
        let mut count = 0;
        for other in (0..self.lives.len()).filter(|other| *other != of) {
            // What they have no more use for is dropped here.
            let heard = self.parts.told[other].steward.1.pop();
            count += usize::from(heard.is_some_and(|heard| is_it(&heard)));
        }
        count
    }

    fn tell_feed(&mut self, silo: usize, news: News) {
        assert!(self.parts.told[silo].feed.0.push(news).is_ok(), "one death or return at a time");
    }

    fn end_death(&mut self, course: &Course, streams: usize, now: Ticks) {
        let silo = course.silo;
        let took = self.parts.common.clock.rate().nanos(now.since(course.began));
        let block = self.board().life(silo);
        board::add(&block.left, streams as u64);
        block.elsewhere.record(took.0);
        let why = block.why.read();
        self.enter(silo, SiloState::Dead, &why, now);
    }

    fn begin_return(&mut self, silo: usize, silos: &mut [Silo], now: Ticks) {
        let Some(end) = self.lives[silo].end.take() else { return };
        self.lives[silo].heir = None;
        self.enter(silo, SiloState::Rejoining, "its path is built anew", now);
        let heirs: Vec<Option<usize>> = self.lives.iter().map(|life| life.heir).collect();
        let LivesParts { profile, common, decoders, told, .. } = &mut self.parts;
        let among = Among { profile, common, decoders: decoders[silo], life: self.lives[silo].epoch, heirs: &heirs };
        match rebuild(silos, silo, (end, &mut told[silo]), &among) {
            Ok(handed) => {
                let left = handed.links.len();
                for (other, link) in handed.links {
                    // As in a burial.
                    let _ = told[other].steward.0.push(Tidings::Back { link });
                }
                let step = Step::Welcoming { left, specs: handed.specs, desks: handed.desks };
                self.course = Some(Course { silo, step, began: now, since: now });
            }
            Err(why) => self.broken = Some(format!("silo {silo} came back: {why}")),
        }
    }

    fn end_return(&mut self, course: &Course, now: Ticks) {
        let silo = course.silo;
        self.lives[silo].epoch += 1;
        let block = self.board().life(silo);
        board::set(&block.epoch, self.lives[silo].epoch);
        board::add(&block.rejoins, 1);
        block.rejoin.record(self.parts.common.clock.rate().nanos(now.since(course.began)).0);
        self.enter(silo, SiloState::Live, "", now);
        self.go_home(silo, now);
    }

    fn enter(&mut self, silo: usize, state: SiloState, why: &str, now: Ticks) {
        self.lives[silo].state = state;
        self.lives[silo].homing = None;
        self.parts.wishes.say(silo as u32, state);
        self.parts.common.moves.say_open(silo as u32, state == SiloState::Live);
        let block = self.board().life(silo);
        block.why.write(why);
        board::set(&block.since, now.0);
        board::set(&block.state, state as u64);
    }

    /// Notes how often the streams of a silo that died were answered.
    fn note_streams(&mut self, silo: usize, died: Ticks) {
        let answered = |stream: u32| (stream, board::get(&self.board().stream_harvest(stream as usize).answered));
        self.watched = Some(Watched { silo, died, streams: self.streams_of(silo).map(answered).collect() });
    }

    /// Looks for the first answer elsewhere.
    fn watch(&mut self, now: Ticks) {
        let board = &self.parts.common.board;
        let Some(Watched { silo, died, streams }) = &self.watched else { return };
        let is_answered =
            |(stream, before): &(u32, u64)| board::get(&board.stream_harvest(*stream as usize).answered) > *before;
        if streams.iter().any(is_answered) {
            board.life(*silo).answered.record(self.parts.common.clock.rate().nanos(now.since(*died)).0);
            self.watched = None;
        }
    }

    fn board(&self) -> &Board {
        &self.parts.common.board
    }
}
