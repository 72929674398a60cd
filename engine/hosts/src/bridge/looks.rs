//! What the bridge's thread does ten times a second: it describes its own host, asks the others, places
//! streams, and follows the engine's drain.

use super::events::Event;
use super::{Placed, Worker};
use crate::description::{Description, Load, Offer};
use crate::link::Topic;
use crate::membership::State;
use crate::outgoing::Outgoing;
use crate::placing::{Candidacy, Change, StreamLoad};
use pinwheel_edge::spin::Phase;
use pinwheel_engine::board::snapshot::{Snapshot, SourceState};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two looks.
const EVERY_NS: u64 = 100_000_000;
/// Longest wait for a description.
const DESCRIBE_LIMIT: Duration = Duration::from_millis(400);
/// A stream without shots for this long has no sender here.
const QUIET_NS: u64 = 1_000_000_000;
/// Looks after the source was closed, before no more shots are expected from it.
const LOOKS_AFTER_CLOSE: u32 = 2;
/// Longest time for shots of others that are here, once the engine drains. Own ones have the engine's.
const LEAVE_LIMIT_NS: u64 = 5_000_000_000;

/// What follows a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    End,
}

/// State between looks.
pub(super) struct Looks {
    next_ns: u64,
    /// For each stream: shots accepted, and those of a look on average.
    accepted: Vec<u64>,
    rates: Vec<f64>,
    /// Shots of others: all, and those of a look on average.
    taken_in: u64,
    rate_of_others: f64,
    /// For each stream: when its last shot came; 0: none yet.
    last_ns: Vec<u64>,
    /// When the drain was seen.
    draining_ns: Option<u64>,
    closed: u32,
}

impl Looks {
    pub(super) fn new(streams: u32) -> Looks {
        let streams = streams as usize;
        Looks {
            next_ns: 0,
            accepted: vec![0; streams],
            rates: vec![0.0; streams],
            taken_in: 0,
            rate_of_others: 0.0,
            last_ns: vec![0; streams],
            draining_ns: None,
            closed: 0,
        }
    }

    /// Whether the engine ends.
    pub(super) fn are_last(&self) -> bool {
        self.draining_ns.is_some()
    }

    pub(super) fn are_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Takes the counts of the source's streams.
    fn count(&mut self, snapshot: &Snapshot, now_ns: u64) {
        let Some(source) = snapshot.sources.first() else { return };
        // A mean over some looks: one interval of a slow stream is zero or one shot.
        let mean = |rate: &mut f64, new: u64| *rate += (new as f64 - *rate) / 4.0;
        let mut new = vec![0; self.accepted.len()];
        for stream in &source.streams {
            let at = stream.id as usize;
            new[at] = stream.accepted.saturating_sub(self.accepted[at]);
            self.accepted[at] = stream.accepted;
            if new[at] > 0 {
                self.last_ns[at] = now_ns;
            }
        }
        self.rates.iter_mut().zip(new).for_each(|(rate, new)| mean(rate, new));
        mean(&mut self.rate_of_others, source.taken_in.saturating_sub(self.taken_in));
        self.taken_in = source.taken_in;
    }

    fn has_sender(&self, stream: usize, now_ns: u64) -> bool {
        let last = self.last_ns[stream];
        last > 0 && now_ns.saturating_sub(last) < QUIET_NS
    }

    /// Streams with senders here, and those of them that others decode.
    fn own_and_away(&self, outgoing: &Outgoing, now_ns: u64) -> (u32, u32) {
        let own = (0..self.last_ns.len()).filter(|stream| self.has_sender(*stream, now_ns));
        own.fold((0, 0), |(own, away), stream| (own + 1, away + u32::from(outgoing.at(stream as u32).is_some())))
    }
}

impl Worker {
    pub(super) fn look(&mut self, now_ns: u64) -> Next {
        self.looks.next_ns = now_ns + EVERY_NS;
        let snapshot = self.viewer.snapshot();
        self.looks.count(&snapshot, now_ns);
        let phase = snapshot.engine.phase;
        let stopped = self.stop.load(Ordering::Relaxed);
        // A source ends by its count, too: the engine drains when no more shots can come back.
        let is_closed = snapshot.sources.first().is_some_and(|source| source.state == SourceState::Closed);
        let is_ending = stopped || is_closed || matches!(phase, Phase::Drain | Phase::Shutdown);
        if is_ending && self.looks.draining_ns.is_none() {
            self.looks.draining_ns = Some(now_ns);
        }
        let is_held = snapshot.control.held.is_some();
        // A held feed decodes nothing.
        let takes_none = self.looks.are_last() || self.is_closed || is_held;
        self.offer(if takes_none { Offer::Draining } else { Offer::Open });
        let load = load(&snapshot);
        // A host whose load is not known is not idle.
        self.own.load = load.unwrap_or(Load::FULL);
        // An operator may have changed them.
        self.own.model = models(&snapshot);
        (self.own.own, self.own.away) = self.looks.own_and_away(&self.outgoing, now_ns);
        self.own.taken = self.incoming.streams_since(now_ns, QUIET_NS);
        self.ask_descriptions(now_ns);
        if let Some(since) = self.looks.draining_ns {
            let has_ended = stopped || phase == Phase::Shutdown;
            return self.leave(&snapshot, now_ns - since, has_ended);
        }
        if is_held {
            // Shots of all streams wait here, however they are placed.
            (0..self.bridge.routes.streams()).for_each(|stream| self.take_back(stream));
            return Next::GoOn;
        }
        self.take_back_from_unusable(now_ns);
        self.place_as_told(now_ns);
        if load.is_some() {
            self.place(now_ns);
        }
        Next::GoOn
    }

    fn ask_descriptions(&mut self, now_ns: u64) {
        let hosts: Vec<String> = self.members.present().map(str::to_owned).collect();
        for host in hosts {
            let traffic = self.traffic.entry(host.clone()).or_default();
            if std::mem::replace(&mut traffic.is_asked, true) {
                continue;
            }
            let (events, name) = (self.events.sender(), host.clone());
            let answered = Box::new(move |result: Result<Vec<u8>, _>| {
                let description = result.ok().and_then(|bytes| Description::read(&bytes));
                events.send(Event::Described { host: name, description, asked_ns: now_ns });
            });
            self.link.ask(&host, Topic::Describe, Vec::new(), DESCRIBE_LIMIT, answered);
        }
    }

    pub(super) fn take_description(
        &mut self,
        host: &str,
        description: Option<Description>,
        asked_ns: u64,
        now_ns: u64,
    ) {
        self.traffic.entry(host.to_owned()).or_default().is_asked = false;
        if let Some(description) = description {
            self.members.described(host, description, now_ns.saturating_sub(asked_ns), now_ns);
        }
    }

    /// Streams leave a host that is suspect, gone, draining or no longer alike.
    fn take_back_from_unusable(&mut self, now_ns: u64) {
        let names: Vec<String> = self.members.iter().map(|(name, _)| name.to_owned()).collect();
        let unusable = names.iter().filter(|name| self.members.usable(name, &self.own, now_ns).is_err());
        for name in unusable.cloned().collect::<Vec<_>>() {
            self.take_back_all(&name);
        }
    }

    /// A stream that an operator placed goes back to its host when that one can decode it again.
    fn place_as_told(&mut self, now_ns: u64) {
        for stream in 0..self.bridge.routes.streams() {
            let Some(Placed::At(host)) = self.placed[stream as usize].clone() else { continue };
            if !self.is_avoided(&host, now_ns) && self.members.usable(&host, &self.own, now_ns).is_ok() {
                self.give(stream, &host);
            }
        }
    }

    fn is_avoided(&self, host: &str, now_ns: u64) -> bool {
        self.traffic.get(host).is_some_and(|traffic| traffic.avoided_until_ns > now_ns)
    }

    fn place(&mut self, now_ns: u64) {
        let mut candidates = Vec::new();
        for (name, _) in self.members.iter() {
            let is_avoided = self.is_avoided(name, now_ns);
            let Ok(host) = self.members.usable(name, &self.own, now_ns) else { continue };
            let Some((description, (trip_ns, _))) = host.description.as_ref().zip(host.trip_ns()) else { continue };
            if !is_avoided {
                candidates
                    .push((name.to_owned(), Candidacy { load: description.load, trip_ns, taken: description.taken }));
            }
        }
        let at = |stream: usize| self.outgoing.at(stream as u32);
        let rates = self.looks.rates.iter().enumerate();
        let here: f64 = rates.filter(|(stream, _)| at(*stream).is_none()).map(|(_, rate)| rate).sum();
        let all = (here + self.looks.rate_of_others).max(1.0);
        let streams: Vec<StreamLoad> = (0..self.looks.rates.len())
            .filter(|stream| self.looks.has_sender(*stream, now_ns))
            .map(|stream| StreamLoad {
                stream: stream as u32,
                share: self.looks.rates[stream] / all,
                is_away: at(stream).is_some(),
                at: at(stream).and_then(|host| candidates.iter().position(|(name, _)| name == host)),
                is_placed: self.placed[stream].is_some(),
            })
            .collect();
        let others: Vec<Candidacy> = candidates.iter().map(|(_, candidacy)| *candidacy).collect();
        match self.placing.change(self.own.load, &others, &streams, now_ns) {
            Some(Change::Give { stream, to }) => {
                let host = candidates[to].0.clone();
                self.give(stream, &host);
            }
            Some(Change::TakeBack { stream }) => self.take_back(stream),
            None => {}
        }
    }

    /// The engine drains: own shots come back, others' are answered, then nothing more goes to the engine.
    fn leave(&mut self, snapshot: &Snapshot, since_ns: u64, has_ended: bool) -> Next {
        (0..self.bridge.routes.streams()).for_each(|stream| self.take_back(stream));
        let is_closed = snapshot.sources.first().is_none_or(|source| source.state == SourceState::Closed);
        self.looks.closed += u32::from(is_closed);
        let has_own = !self.outgoing.is_empty() || !self.answers.is_empty() || self.bridge.shots.depth() > 0;
        let is_over = has_ended || waited_for_others(since_ns, has_own);
        if is_over || self.looks.closed > LOOKS_AFTER_CLOSE && !has_own && !self.incoming.has_queued() {
            // The engine's source ends when this lane does.
            self.to_engine = None;
        }
        if is_over || self.to_engine.is_none() && self.incoming.is_empty() { Next::End } else { Next::GoOn }
    }

    /// State of host `name`.
    pub(super) fn state(&self, name: &str, now_ns: u64) -> State {
        self.members.state(name, now_ns).unwrap_or(State::Gone)
    }
}

/// Whether shots of others are awaited no longer, `since_ns` after the drain was seen. Own ones go back to the engine
/// first, as fast as it takes them: it answers them, by an error after its grace.
fn waited_for_others(since_ns: u64, has_own: bool) -> bool {
    since_ns > LEAVE_LIMIT_NS && !has_own
}

/// Hash of the error models in force.
pub(super) fn models(snapshot: &Snapshot) -> u64 {
    hash_of(snapshot.streams.iter().map(|stream| stream.model_hash)).unwrap_or(snapshot.engine.model_hash)
}

/// The hash of the model of all streams, or where they have several, of these by FNV-1a, which is the same in every
/// version; `None`: no stream.
fn hash_of(streams: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let first = streams.clone().next()?;
    let is_one = streams.clone().all(|hash| hash == first);
    Some(if is_one { first } else { streams.fold(0, |all, hash| (all ^ hash).wrapping_mul(0x100_0000_01b3)) })
}

/// The load of the silos: the fullest queues and the longest backlog of any; `None`: no silo's is
/// known.
fn load(snapshot: &Snapshot) -> Option<Load> {
    let Some(placement) = &snapshot.placement else {
        let totals = snapshot.totals();
        let slots: u64 = snapshot.silos.iter().map(|silo| silo.slots.len() as u64).sum();
        let waiting = totals.submitted.saturating_sub(totals.answered);
        let share = waiting as f64 / slots.max(1) as f64;
        return Some(Load { average: share, max: share, backlog_ns: 0 });
    };
    let known = placement.silos.iter().filter(|silo| silo.unknown.is_none());
    known.map(|silo| Load { average: silo.average, max: silo.max, backlog_ns: silo.backlog_ns }).reduce(|one, other| {
        Load {
            average: one.average.max(other.average),
            max: one.max.max(other.max),
            backlog_ns: one.backlog_ns.max(other.backlog_ns),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{LEAVE_LIMIT_NS, Load, Looks, QUIET_NS, hash_of, load, waited_for_others};
    use crate::message::Widths;
    use crate::outgoing::Outgoing;
    use pinwheel_engine::board::{Board, Place, Shape, set};
    use pinwheel_engine::clock::Clock;
    use std::collections::BTreeSet;

    #[test]
    fn a_load_that_no_silo_tells_is_not_known_and_the_longest_backlog_counts() {
        let shape = Shape { threads: 1, silos: 2, slots: 64, workers: 4, decoders: 1, streams: 2 };
        let (board, clock) = (Board::create(shape, Place::Private).unwrap(), Clock::machine());
        let of = || load(&board.snapshot(&clock));
        set(&board.placement().is_on, 1);
        // Not read yet, and silent.
        set(&board.silo_depth(1).state, 4);
        assert_eq!(of(), None);
        for (silo, share, backlog_ns) in [(0, 0.25_f64, 9), (1, 0.75, 5)] {
            let block = board.silo_depth(silo);
            set(&block.state, 1);
            set(&block.queues, 1);
            set(&block.share_bits[0], share.to_bits());
            set(&block.average_bits, share.to_bits());
            set(&block.backlog_ns, backlog_ns);
            let expected =
                [Load { average: 0.25, max: 0.25, backlog_ns: 9 }, Load { average: 0.75, max: 0.75, backlog_ns: 9 }];
            assert_eq!(of(), Some(expected[silo]));
        }
    }

    #[test]
    fn a_stream_that_others_decode_counts_as_away_only_while_it_has_a_sender() {
        let mut outgoing = Outgoing::new(4, Widths { detectors: 1, observables: 1 });
        let mut looks = Looks::new(4);
        outgoing.give(1, "b");
        outgoing.give(3, "b");
        let now = 2 * QUIET_NS;
        // Stream 2 has fallen silent, and stream 3 has never had a shot.
        looks.last_ns = vec![now, now, 1, 0];
        assert_eq!(looks.own_and_away(&outgoing, now), (2, 1));
    }

    #[test]
    fn own_shots_of_a_draining_engine_have_its_grace_and_others_five_seconds() {
        assert!(!waited_for_others(LEAVE_LIMIT_NS, false) && waited_for_others(LEAVE_LIMIT_NS + 1, false));
        assert!(!waited_for_others(u64::MAX, true));
    }

    #[test]
    fn another_model_of_one_stream_is_another_hash() {
        let of = |hashes: [u64; 3]| hash_of(hashes.into_iter());
        assert_eq!(of([7, 7, 7]), Some(7));
        let all = [[7, 7, 7], [7, 8, 7], [7, 7, 8], [7, 8, 8], [8, 7, 7], [7, 9, 7]];
        assert_eq!(all.map(of).into_iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
