//! Failover at a feed: the death and return of another silo, or of its own.
//!
//! Owns the shots that come back from a dead silo, and the step of the failover. Part of the feed,
//! on its thread. Bounds: at most one lane's shots come back;
//! [`TAKEOVERS_MAX`](crate::arbiter::requests::TAKEOVERS_MAX) takeovers are requested at a time.
//! Never waits: each frame continues from the events received so far.
//!
//! ```text
//!  at the dead silo's feed             at the feeds of streams that were decoded there
//!  StopWriting: writes no slot;        Died: holds these streams; puts a mark into the lane to the dead silo,
//!    shots stay in their lanes           keeps the shots that come back until the mark does; then every number
//!  SendBack: returns arriving shots      that is neither kept, staged nor still to come has been answered
//!    and marks to their feeds          the successor adopts each stream from that number on ─▶ sends the kept shots,
//!                                        then the stages, then shots directly again
//! ```
//!
//! # Why feed and harvest outlive their silo
//! A feed has its streams' sources, schedules and numbers; a harvester has the answered numbers and
//! the output. They are the engine's ingress and egress: no other role can continue their
//! numbering, and neither touches a page. So a silo dies between ingress and egress, from dispatch
//! to decode; the death of a feed or a harvester ends the run.

use crate::arbiter::requests::EndpointEnds;
use crate::board;
use crate::feed::Feed;
use crate::feed::lane::{Head, LaneIn, LaneOut, Piece, crossing_shots, lane};
use crate::feed::mover::FailingOver;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use crate::hot::{BUDGET_ITEMS, Frame};
use crate::pipe::home;
use crate::units::Ticks;
use pinwheel_edge::slot::table::ReplyTo;
use std::sync::atomic::AtomicU64;

/// Events that can wait: there is one death or one return at a time.
const EVENTS_MAX: usize = 4;

/// An event of a silo that its feeds handle.
pub enum SiloEvent {
    /// This silo's path has died: write no slot.
    StopWriting,
    /// The path of another silo has died.
    Died {
        /// The dead silo.
        dead: usize,
        /// The silo that takes over its streams.
        successor: usize,
    },
    /// Every other feed has acknowledged this silo's death: return the shots that arrive for it.
    SendBack {
        /// The silo that takes over its streams.
        successor: usize,
    },
    /// A silo has restarted.
    Restarted {
        /// The restarted silo, possibly this one.
        silo: usize,
        /// Endpoints to its new arbiter.
        ends: EndpointEnds,
    },
}

/// A feed's reply to a [`SiloEvent`].
pub enum SiloReply {
    /// This feed writes no more slots.
    StoppedWriting {
        /// Slots ever written, including warm-up.
        written: u64,
    },
    /// No further shots go to the dead silo.
    Acknowledged,
    /// The successor decodes every stream of this feed that the dead silo decoded.
    Reassigned {
        /// Number of these streams.
        streams: usize,
    },
    /// The previous endpoints, to be dropped on another thread.
    Linked(EndpointEnds),
}

/// A feed's connection to the silo supervisor.
pub struct SiloEventEndpoint {
    events: MailboxReceiver<SiloEvent>,
    replies: MailboxSender<SiloReply>,
}

impl SiloEventEndpoint {
    /// Both ends.
    pub fn pair() -> ((MailboxSender<SiloEvent>, MailboxReceiver<SiloReply>), SiloEventEndpoint) {
        let ((send_event, events), (replies, take_reply)) = (mailbox(EVENTS_MAX), mailbox(EVENTS_MAX));
        ((send_event, take_reply), SiloEventEndpoint { events, replies })
    }

    fn reply(&mut self, reply: SiloReply) {
        assert!(self.replies.push(reply).is_ok(), "each event is answered once");
    }
}

/// Step of a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No failover.
    Idle,
    /// This silo's path is dead, and the other feeds have not acknowledged it yet.
    StoppedWriting,
    /// A mark is to be put into the lane to the dead silo's feed.
    Mark,
    /// The mark is to come back.
    Return,
    /// The successor is asked to take over the streams.
    TakeOver,
    /// The kept shots are sent.
    SendKept,
}

/// The feed's state of failovers.
pub(super) struct Failover {
    endpoint: SiloEventEndpoint,
    step: Step,
    dead: usize,
    successor: usize,
    /// Whether this silo's path is dead, and whether arriving shots are returned.
    has_stopped: bool,
    sends_back: bool,
    /// Streams that were decoded in the dead silo, and for how many a takeover was requested.
    unassigned: Vec<u32>,
    asked: usize,
    /// Shots that came back: both ends of a lane, and their number for each stream.
    put: LaneIn,
    take: LaneOut,
    kept: Box<[u32]>,
    /// Value last published.
    shown: u64,
}

impl Failover {
    pub(super) fn new(
        endpoint: SiloEventEndpoint,
        streams: u32,
        silos: usize,
        (detectors, observables): (usize, usize),
    ) -> Failover {
        let (put, take) = lane(detectors, observables, crossing_shots(silos));
        let (unassigned, kept) = (Vec::with_capacity(streams as usize), vec![0; streams as usize].into());
        let (has_stopped, sends_back) = (false, false);
        Failover {
            endpoint,
            step: Step::Idle,
            dead: 0,
            successor: 0,
            has_stopped,
            sends_back,
            unassigned,
            asked: 0,
            put,
            take,
            kept,
            shown: 0,
        }
    }

    /// Whether a failover is under way and determines the order of shots.
    pub(super) fn is_on(&self) -> bool {
        self.step != Step::Idle
    }

    fn publish(&mut self, word: &AtomicU64) {
        let at_work = (self.dead as u64) << 8 | (self.unassigned.len() as u64) << 16 | self.take.depth() << 40;
        let now = if self.is_on() { self.step as u64 | at_work } else { 0 };
        if now != std::mem::replace(&mut self.shown, now) {
            board::set(word, now);
        }
    }

    /// As [`Failover::is_on`], for the mover.
    pub(super) fn failing_over(&self) -> FailingOver {
        if self.is_on() { FailingOver::Yes } else { FailingOver::No }
    }

    /// `None`: shots of other feeds go into slots. Otherwise this silo takes none, and the value
    /// says whether they are returned yet.
    pub(super) fn turns_away(&self) -> Option<bool> {
        self.has_stopped.then_some(self.sends_back)
    }
}

impl Feed {
    /// Whether this silo's path is dead.
    pub(in crate::feed) fn has_stopped(&self) -> bool {
        self.crossings.as_ref().is_some_and(|crossings| crossings.failover.has_stopped)
    }

    /// One frame of a failover; returns how many shots were sent.
    pub(super) fn failover(&mut self, frame: &Frame<'_>) -> u32 {
        while let Some(event) = self.crossings.as_mut().and_then(|crossings| crossings.failover.endpoint.events.pop()) {
            self.take_event(event, frame);
        }
        let gone = self.step_failover(frame);
        if let Some(crossings) = &mut self.crossings {
            crossings.failover.publish(&self.board.moves(self.share.silo).failover);
        }
        gone
    }

    fn step_failover(&mut self, frame: &Frame<'_>) -> u32 {
        let Some(crossings) = &mut self.crossings else { return 0 };
        match crossings.failover.step {
            Step::Idle | Step::StoppedWriting | Step::Return => 0,
            Step::Mark => {
                crossings.put_mark(self.share.silo);
                0
            }
            Step::TakeOver => {
                crossings.ask_successor(&self.next);
                0
            }
            Step::SendKept => {
                let mut gone = 0;
                while gone < BUDGET_ITEMS && self.send_kept(frame) {
                    gone += 1;
                }
                self.end_failover();
                gone
            }
        }
    }

    fn take_event(&mut self, event: SiloEvent, frame: &Frame<'_>) {
        let silo = self.share.silo;
        let written = self.end.submitted();
        let Feed { crossings: Some(crossings), share, board, .. } = self else { return };
        let mut flipped = |stream: u32, to: usize| board::set(&board.stream_feed(stream as usize).silo, to as u64);
        match event {
            SiloEvent::StopWriting => {
                crossings.failover.has_stopped = true;
                crossings.failover.step = Step::StoppedWriting;
                for stream in &share.own {
                    if crossings.mover.route(*stream).0 == silo {
                        crossings.mover.hold(*stream);
                    }
                }
                crossings.failover.endpoint.reply(SiloReply::StoppedWriting { written });
            }
            SiloEvent::Died { dead, successor } => {
                crossings.mover.settle_transfer((dead, successor), frame, board.moves(silo), &mut flipped);
                crossings.begin_failover(&share.own, dead, successor, Step::Mark);
                crossings.failover.endpoint.reply(SiloReply::Acknowledged);
            }
            SiloEvent::SendBack { successor } => {
                crossings.failover.sends_back = true;
                crossings.mover.settle_transfer((silo, successor), frame, board.moves(silo), &mut flipped);
                // This feed's own shots went into slots, not into a lane.
                crossings.begin_failover(&share.own, silo, successor, Step::TakeOver);
                crossings.failover.endpoint.reply(SiloReply::Acknowledged);
            }
            SiloEvent::Restarted { silo: back, ends } => {
                let before = crossings.mover.relink(back, ends);
                if back == silo {
                    (crossings.failover.has_stopped, crossings.failover.sends_back) = (false, false);
                }
                crossings.failover.endpoint.reply(SiloReply::Linked(before));
            }
        }
    }

    /// Takes a mark, or a returning shot to keep, from the current lane; `None` if the next entry
    /// is neither.
    pub(super) fn take_for_failover(&mut self) -> Option<bool> {
        let crossings = self.crossings.as_mut()?;
        let (stream, epoch, piece) = crossings.ins[crossings.first].peek()?;
        if piece == Piece::Mark {
            return Some(self.take_mark(stream as usize, epoch));
        }
        let failover = &crossings.failover;
        // Also before the mark is put: a full lane to the dead silo empties only as fast as this
        // feed takes returning shots.
        let is_kept = matches!(failover.step, Step::Mark | Step::Return)
            && home(stream, crossings.silos) == self.share.silo
            && crossings.mover.is_unassigned(stream, failover.dead);
        if !is_kept {
            return None;
        }
        let head = self.take_head()?;
        let crossings = self.crossings.as_mut()?;
        let is_put = crossings.failover.put.put(&head, &self.detectors, &self.observables);
        assert!(is_put, "at most one lane's shots come back");
        crossings.failover.kept[stream as usize] += 1;
        Some(true)
    }

    /// Returns a mark to the feed of silo `of`; consumes it if this is that feed.
    fn take_mark(&mut self, of: usize, returns: u32) -> bool {
        let Some(crossings) = &mut self.crossings else { return false };
        if returns == 0 {
            let goes_back = crossings.failover.turns_away() != Some(false);
            let has_room = crossings.outs[of].as_ref().is_some_and(|lane| lane.room() > 0);
            if !goes_back || !has_room {
                return false;
            }
        }
        let Some(_) = self.take_head() else { return false };
        let Some(crossings) = &mut self.crossings else { return false };
        if returns != 0 {
            assert_eq!(crossings.failover.step, Step::Return, "a mark comes back once");
            crossings.failover.step = Step::TakeOver;
            return true;
        }
        let Some(lane) = &mut crossings.outs[of] else { return false };
        assert!(lane.put(&mark(of, 1), &self.detectors, &self.observables), "there was room");
        true
    }

    /// Sends the oldest kept shot, if there is room.
    fn send_kept(&mut self, frame: &Frame<'_>) -> bool {
        let Feed { crossings: Some(crossings), end, share, board, .. } = self else { return false };
        let Some((stream, ..)) = crossings.failover.take.peek() else { return false };
        let (to, epoch) = crossings.mover.route(stream);
        if to == share.silo {
            if end.vacant().is_none() {
                return false;
            }
        } else if crossings.outs[to].as_ref().is_none_or(|lane| lane.room() == 0) {
            board::add(&board.moves(share.silo).lane_waits, 1);
            return false;
        }
        let taken = crossings.failover.take.take(&mut self.detectors, &mut self.observables);
        let Some(head) = taken else { return false };
        if to == share.silo {
            self.write(&head, frame.ticks());
        } else if let Some(lane) = &mut crossings.outs[to] {
            board::add(&board.moves(share.silo).handed_on, 1);
            assert!(lane.put(&Head { epoch, ..head }, &self.detectors, &self.observables), "there was room");
        }
        true
    }

    fn end_failover(&mut self) {
        let Some(crossings) = &mut self.crossings else { return };
        if crossings.failover.take.depth() > 0 {
            return;
        }
        let streams = crossings.failover.unassigned.len();
        while let Some(stream) = crossings.failover.unassigned.pop() {
            crossings.failover.kept[stream as usize] = 0;
            crossings.mover.release(stream);
        }
        crossings.failover.step = Step::Idle;
        crossings.failover.endpoint.reply(SiloReply::Reassigned { streams });
    }
}

impl super::CrossSilo {
    fn begin_failover(&mut self, own: &[u32], dead: usize, successor: usize, step: Step) {
        let Self { mover, failover, .. } = self;
        for stream in own.iter().filter(|stream| mover.is_unassigned(**stream, dead)) {
            failover.unassigned.push(*stream);
        }
        failover.unassigned.iter().for_each(|stream| mover.hold(*stream));
        (failover.dead, failover.successor, failover.asked, failover.step) = (dead, successor, 0, step);
    }

    fn put_mark(&mut self, silo: usize) {
        let Some(lane) = &mut self.outs[self.failover.dead] else { return };
        // A mark has no words; the record keeps its previous words.
        if lane.put(&mark(silo, 0), &[], &[]) {
            self.failover.step = Step::Return;
        }
    }

    fn ask_successor(&mut self, next: &[u64]) {
        let Self { mover, failover, .. } = self;
        while let Some(stream) = failover.unassigned.get(failover.asked) {
            let waiting = mover.staged(*stream) + u64::from(failover.kept[*stream as usize]);
            if !mover.take_over_stream(*stream, failover.successor, next[*stream as usize] - waiting) {
                break;
            }
            failover.asked += 1;
        }
        if mover.taken_over() == failover.unassigned.len() {
            failover.step = Step::SendKept;
        }
    }
}

/// A mark of the feed of silo `of`; `returns` is 1 on the way back, 0 before.
fn mark(of: usize, returns: u32) -> Head {
    let (sequence, reply_to, arrived) = (0, ReplyTo::default(), Ticks(0));
    let (truth_known, piece, refused) = (false, Piece::Mark, None);
    Head { stream: of as u32, epoch: returns, sequence, reply_to, arrived, truth_known, piece, refused }
}
