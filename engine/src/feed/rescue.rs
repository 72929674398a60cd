//! Another silo's death and return, and this one's, as its feed sees them.
//!
//! Owns the shots that come back from a dead silo, and what step the rescue is at. Part of the feed, on its thread. Bounds: what a
//! lane holds comes back; [`ADOPTIONS_MAX`](crate::arbiter::errand::ADOPTIONS_MAX) streams are asked for at a time. Never waits: each
//! frame goes on with what has been heard.
//!
//! ```text
//!  at the dead silo's feed          at the feeds of streams that were decoded there
//!  Halt: no slot is written,        Died: its streams are held; a mark goes into the lane to it
//!    what lies in lanes stays         what comes back is kept, until the mark does: then every number that is neither
//!  SendBack: what came for it         kept, staged nor to come has been answered
//!    goes back, marks too             the heir adopts each stream, from that number on ─▶ what was kept goes out, then the
//!                                     stages, then shots directly again
//! ```
//!
//! # Why feed and harvest outlive their silo
//! A feed has the sources of its streams, their schedule and their numbers; a harvester what was answered, and the way out. They are the
//! engine's doors: nobody else can go on with what they promised, and neither touches a page. So a silo dies between its
//! doors, from dispatch to decode; a door that dies ends the run.

use super::Feed;
use super::crossing::crossing_shots;
use super::lane::{Head, LaneIn, LaneOut, Piece, lane};
use super::mover::Rescuing;
use super::requests::home;
use crate::arbiter::errand::DeskEnds;
use crate::board;
use crate::hot::post::{Sends, Takes, post};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::units::Ticks;
use pinwheel_edge::slot::table::ReplyTo;
use std::sync::atomic::AtomicU64;

/// News that wait: there is one death or one return at a time.
const NEWS_MAX: usize = 4;

/// What a feed is told.
pub enum News {
    /// This silo's path has died: no slot is to be written.
    Halt,
    /// Another silo's has.
    Died {
        /// Whose.
        dead: usize,
        /// Who has its streams.
        heir: usize,
    },
    /// Every other feed knows of this silo's death: what came for it goes back.
    SendBack {
        /// Who has its streams.
        heir: usize,
    },
    /// A silo is back.
    Back {
        /// Which; this one, too.
        silo: usize,
        /// Its arbiter is asked by these.
        ends: DeskEnds,
    },
}

/// What it says to that.
pub enum Told {
    /// The slots are left alone; so many shots were ever written.
    Halted {
        /// Warm-up included.
        written: u64,
    },
    /// Nothing more goes to the dead silo.
    Knows,
    /// Every stream of this feed that was decoded there is decoded by its heir.
    Elsewhere {
        /// How many.
        streams: usize,
    },
    /// The ends before, to be dropped elsewhere.
    Welcomed(DeskEnds),
}

/// A feed's end of the way to who knows which silos live.
pub struct NewsDesk {
    takes: Takes<News>,
    tells: Sends<Told>,
}

impl NewsDesk {
    /// Both ends.
    #[must_use]
    pub fn pair() -> ((Sends<News>, Takes<Told>), NewsDesk) {
        let ((tells, takes), (says, hears)) = (post(NEWS_MAX), post(NEWS_MAX));
        ((tells, hears), NewsDesk { takes, tells: says })
    }

    fn say(&mut self, told: Told) {
        assert!(self.tells.push(told).is_ok(), "each piece of news is answered as often as is said");
    }
}

/// How far a rescue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// There is none.
    Rest,
    /// This silo's path is dead, and the others do not know yet.
    Halted,
    /// A mark is to go into the lane to the dead silo's feed.
    Mark,
    /// It is to come back.
    Return,
    /// The heir is asked.
    Adopt,
    /// What was kept goes out.
    GoOut,
}

/// What the feed keeps of it.
pub(super) struct Rescue {
    desk: NewsDesk,
    step: Step,
    dead: usize,
    heir: usize,
    /// This silo's path is dead; what comes for it goes back.
    is_halted: bool,
    sends_back: bool,
    /// Streams that were decoded there, and how many of them are asked for.
    orphans: Vec<u32>,
    asked: usize,
    /// What came back: both ends of a lane; and of each stream how many shots.
    put: LaneIn,
    take: LaneOut,
    kept: Box<[u32]>,
    /// As published last.
    shown: u64,
}

impl Rescue {
    pub(super) fn new(desk: NewsDesk, streams: u32, silos: usize, (detectors, observables): (usize, usize)) -> Rescue {
        let (put, take) = lane(detectors, observables, crossing_shots(silos));
        let (orphans, kept) = (Vec::with_capacity(streams as usize), vec![0; streams as usize].into());
        let (is_halted, sends_back) = (false, false);
        Rescue {
            desk,
            step: Step::Rest,
            dead: 0,
            heir: 0,
            is_halted,
            sends_back,
            orphans,
            asked: 0,
            put,
            take,
            kept,
            shown: 0,
        }
    }

    /// Whether the order of shots is the rescue's matter.
    pub(super) fn is_on(&self) -> bool {
        self.step != Step::Rest
    }

    fn publish(&mut self, word: &AtomicU64) {
        let at_work = (self.dead as u64) << 8 | (self.orphans.len() as u64) << 16 | self.take.depth() << 40;
        let now = if self.is_on() { self.step as u64 | at_work } else { 0 };
        if now != std::mem::replace(&mut self.shown, now) {
            board::set(word, now);
        }
    }

    /// As [`Rescue::is_on`], for the mover.
    pub(super) fn is_rescuing(&self) -> Rescuing {
        if self.is_on() { Rescuing::Yes } else { Rescuing::No }
    }

    /// What a shot of another feed that came for this silo meets: `None`: slots; else whether it goes back now.
    pub(super) fn turns_away(&self) -> Option<bool> {
        self.is_halted.then_some(self.sends_back)
    }
}

impl Feed {
    /// Whether this silo's path is dead.
    pub(super) fn is_halted(&self) -> bool {
        self.crossings.as_ref().is_some_and(|crossings| crossings.rescue.is_halted)
    }

    /// One frame of a rescue; returns how many shots went out.
    pub(super) fn rescue(&mut self, frame: &Frame<'_>) -> u32 {
        while let Some(news) = self.crossings.as_mut().and_then(|crossings| crossings.rescue.desk.takes.pop()) {
            self.take_news(news, frame);
        }
        let gone = self.step_rescue(frame);
        if let Some(crossings) = &mut self.crossings {
            crossings.rescue.publish(&self.board.moves(self.share.silo).rescue);
        }
        gone
    }

    fn step_rescue(&mut self, frame: &Frame<'_>) -> u32 {
        let Some(crossings) = &mut self.crossings else { return 0 };
        match crossings.rescue.step {
            Step::Rest | Step::Halted | Step::Return => 0,
            Step::Mark => {
                crossings.put_mark(self.share.silo);
                0
            }
            Step::Adopt => {
                crossings.ask_heir(&self.next);
                0
            }
            Step::GoOut => {
                let mut gone = 0;
                while gone < BUDGET_ITEMS && self.let_one_out(frame) {
                    gone += 1;
                }
                self.end_rescue();
                gone
            }
        }
    }

    fn take_news(&mut self, news: News, frame: &Frame<'_>) {
        let silo = self.share.silo;
        let written = self.end.submitted();
        let Feed { crossings: Some(crossings), share, board, .. } = self else { return };
        let mut flipped = |stream: u32, to: usize| board::set(&board.stream_feed(stream as usize).silo, to as u64);
        match news {
            News::Halt => {
                crossings.rescue.is_halted = true;
                crossings.rescue.step = Step::Halted;
                for stream in &share.own {
                    if crossings.mover.way(*stream).0 == silo {
                        crossings.mover.hold(*stream);
                    }
                }
                crossings.rescue.desk.say(Told::Halted { written });
            }
            News::Died { dead, heir } => {
                crossings.mover.bereave((dead, heir), frame, board.moves(silo), &mut flipped);
                crossings.begin_rescue(&share.own, dead, heir, Step::Mark);
                crossings.rescue.desk.say(Told::Knows);
            }
            News::SendBack { heir } => {
                crossings.rescue.sends_back = true;
                crossings.mover.bereave((silo, heir), frame, board.moves(silo), &mut flipped);
                // Its own shots went into slots, not into a lane.
                crossings.begin_rescue(&share.own, silo, heir, Step::Adopt);
                crossings.rescue.desk.say(Told::Knows);
            }
            News::Back { silo: back, ends } => {
                let before = crossings.mover.welcome(back, ends);
                if back == silo {
                    (crossings.rescue.is_halted, crossings.rescue.sends_back) = (false, false);
                }
                crossings.rescue.desk.say(Told::Welcomed(before));
            }
        }
    }

    /// Takes a mark, or a shot that comes back to be kept, from the lane in turn; `None`: it is neither.
    pub(super) fn take_for_rescue(&mut self) -> Option<bool> {
        let crossings = self.crossings.as_mut()?;
        let (stream, epoch, piece) = crossings.ins[crossings.first].peek()?;
        if piece == Piece::Mark {
            return Some(self.take_mark(stream as usize, epoch));
        }
        let rescue = &crossings.rescue;
        // Before the mark is put, too: a full lane to the dead silo empties only as fast as what comes back is taken.
        let is_kept = matches!(rescue.step, Step::Mark | Step::Return)
            && home(stream, crossings.silos) == self.share.silo
            && crossings.mover.is_orphan(stream, rescue.dead);
        if !is_kept {
            return None;
        }
        let head = self.take_head()?;
        let crossings = self.crossings.as_mut()?;
        let is_put = crossings.rescue.put.put(&head, &self.detectors, &self.observables);
        assert!(is_put, "no more comes back than a lane holds");
        crossings.rescue.kept[stream as usize] += 1;
        Some(true)
    }

    /// A mark goes back to the feed of silo `of`, unless that is this one.
    fn take_mark(&mut self, of: usize, returns: u32) -> bool {
        let Some(crossings) = &mut self.crossings else { return false };
        if returns == 0 {
            let goes_back = crossings.rescue.turns_away() != Some(false);
            let has_room = crossings.outs[of].as_ref().is_some_and(|lane| lane.room() > 0);
            if !goes_back || !has_room {
                return false;
            }
        }
        let Some(_) = self.take_head() else { return false };
        let Some(crossings) = &mut self.crossings else { return false };
        if returns != 0 {
            assert_eq!(crossings.rescue.step, Step::Return, "a mark comes back once");
            crossings.rescue.step = Step::Adopt;
            return true;
        }
        let Some(lane) = &mut crossings.outs[of] else { return false };
        assert!(lane.put(&mark(of, 1), &self.detectors, &self.observables), "there was room");
        true
    }

    /// Lets the oldest shot that came back go its way, if there is room.
    fn let_one_out(&mut self, frame: &Frame<'_>) -> bool {
        let Feed { crossings: Some(crossings), end, share, board, .. } = self else { return false };
        let Some((stream, ..)) = crossings.rescue.take.peek() else { return false };
        let (to, epoch) = crossings.mover.way(stream);
        if to == share.silo {
            if end.vacant().is_none() {
                return false;
            }
        } else if crossings.outs[to].as_ref().is_none_or(|lane| lane.room() == 0) {
            board::add(&board.moves(share.silo).lane_waits, 1);
            return false;
        }
        let taken = crossings.rescue.take.take(&mut self.detectors, &mut self.observables);
        let Some(head) = taken else { return false };
        if to == share.silo {
            self.write(&head, frame.ticks());
        } else if let Some(lane) = &mut crossings.outs[to] {
            board::add(&board.moves(share.silo).handed_on, 1);
            assert!(lane.put(&Head { epoch, ..head }, &self.detectors, &self.observables), "there was room");
        }
        true
    }

    fn end_rescue(&mut self) {
        let Some(crossings) = &mut self.crossings else { return };
        if crossings.rescue.take.depth() > 0 {
            return;
        }
        let streams = crossings.rescue.orphans.len();
        while let Some(stream) = crossings.rescue.orphans.pop() {
            crossings.rescue.kept[stream as usize] = 0;
            crossings.mover.release(stream);
        }
        crossings.rescue.step = Step::Rest;
        crossings.rescue.desk.say(Told::Elsewhere { streams });
    }
}

impl super::crossing::Crossings {
    fn begin_rescue(&mut self, own: &[u32], dead: usize, heir: usize, step: Step) {
        let Self { mover, rescue, .. } = self;
        for stream in own.iter().filter(|stream| mover.is_orphan(**stream, dead)) {
            rescue.orphans.push(*stream);
        }
        rescue.orphans.iter().for_each(|stream| mover.hold(*stream));
        (rescue.dead, rescue.heir, rescue.asked, rescue.step) = (dead, heir, 0, step);
    }

    fn put_mark(&mut self, silo: usize) {
        let Some(lane) = &mut self.outs[self.rescue.dead] else { return };
        // The words of a mark are nobody's: those of the record are left as they are.
        if lane.put(&mark(silo, 0), &[], &[]) {
            self.rescue.step = Step::Return;
        }
    }

    fn ask_heir(&mut self, next: &[u64]) {
        let Self { mover, rescue, .. } = self;
        while let Some(stream) = rescue.orphans.get(rescue.asked) {
            let waiting = mover.staged(*stream) + u64::from(rescue.kept[*stream as usize]);
            if !mover.adopt(*stream, rescue.heir, next[*stream as usize] - waiting) {
                break;
            }
            rescue.asked += 1;
        }
        if mover.adopted() == rescue.orphans.len() {
            rescue.step = Step::GoOut;
        }
    }
}

/// A mark of the feed of silo `of`, which `returns` to it or not yet.
fn mark(of: usize, returns: u32) -> Head {
    let (sequence, reply_to, arrived) = (0, ReplyTo::default(), Ticks(0));
    let (truth_known, piece, refused) = (false, Piece::Mark, None);
    Head { stream: of as u32, epoch: returns, sequence, reply_to, arrived, truth_known, piece, refused }
}
