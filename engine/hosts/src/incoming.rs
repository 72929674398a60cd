//! Shots of other hosts that this engine decodes.
//!
//! Pure: messages in; shots for the engine, and complete answers to messages, out. Used by the bridge's
//! thread. Bounds: [`SHOTS_MAX_OF_OWNER`] shots of one owner, [`UNDER_WAY_MAX`] in the engine at once.
//! Nothing of a message is believed before all of it was checked. A message whose numbers do not follow
//! on is refused as a whole, so that no shot is decoded twice or out of order.

use crate::message::{self, Answered, Malformed, Name, Shot, Widths};
use pinwheel_engine::pipe::Answer;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Most shots of one owner that are here at once.
pub const SHOTS_MAX_OF_OWNER: usize = 1_024;
/// Most shots in the engine at once: as many as its rings for them hold.
pub const UNDER_WAY_MAX: usize = 1_024;

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Refused {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the message names a stream that this engine does not have; give both profiles the same number")]
    Stream,
    #[error("the message was sent before, or an earlier one is missing")]
    Order,
    #[error("too many shots of this host wait here already")]
    Full,
    #[error("this host has not seen yours yet; send again in a moment")]
    Stranger,
    #[error("this host takes no more shots of others")]
    Draining,
}

/// What a host has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Shots taken.
    pub shots: u64,
    /// Messages refused for their bytes, streams or numbers.
    pub refused: u64,
    /// Messages refused for lack of room.
    pub full: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Owner {
    incarnation: u64,
    /// For each stream: epoch, next number, and when its last shot came.
    streams: BTreeMap<u32, (u32, u64, u64)>,
    here: usize,
    counts: Counts,
}

/// A message whose answers are not complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open<R> {
    reply: R,
    from: String,
    missing: usize,
    answers: Vec<Option<Answered>>,
}

/// Shots of all owners. `R` answers a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Incoming<R> {
    widths: Widths,
    streams: u32,
    owners: BTreeMap<String, Owner>,
    open: Vec<Option<Open<R>>>,
    /// For each tag: the message, the place in it, and the shot's name.
    tags: Vec<Option<(usize, usize, Name)>>,
    free_tags: Vec<u32>,
    queue: VecDeque<(usize, usize, Shot)>,
    takes_more: bool,
}

impl<R> Incoming<R> {
    /// Without a shot; the engine has `streams` streams.
    pub fn new(streams: u32, widths: Widths) -> Incoming<R> {
        Incoming {
            widths,
            streams,
            owners: BTreeMap::new(),
            open: Vec::new(),
            tags: Vec::new(),
            free_tags: Vec::new(),
            queue: VecDeque::new(),
            takes_more: true,
        }
    }

    /// Takes no more messages.
    pub fn close(&mut self) {
        self.takes_more = false;
    }

    /// Takes more messages again.
    pub fn reopen(&mut self) {
        self.takes_more = true;
    }

    /// Whether shots wait for room in the engine.
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether no shot is here.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.free_tags.len() == self.tags.len()
    }

    /// Streams of others whose shots came within `within_ns`.
    pub fn streams_since(&self, now_ns: u64, within_ns: u64) -> u32 {
        let recent = |last: u64| now_ns.saturating_sub(last) <= within_ns;
        let streams = self.owners.values().flat_map(|owner| owner.streams.values());
        streams.filter(|(_, _, last)| recent(*last)).count() as u32
    }

    /// What each host has sent.
    pub fn counts(&self) -> impl Iterator<Item = (&str, Counts)> {
        self.owners.iter().map(|(name, owner)| (name.as_str(), owner.counts))
    }

    /// Takes a message of host `from`.
    ///
    /// # Errors
    /// [`Refused`], with the message's `reply`; nothing of it was taken.
    pub fn offer(&mut self, from: &str, bytes: &[u8], reply: R, now_ns: u64) -> Result<(), (R, Refused)> {
        let shots = match self.check(from, bytes, now_ns) {
            Ok(shots) => shots,
            Err(refused) => {
                let counts = &mut self.owners.entry(from.to_owned()).or_default().counts;
                match refused {
                    Refused::Full => counts.full += 1,
                    Refused::Malformed(_) | Refused::Stream | Refused::Order => counts.refused += 1,
                    // Nothing is wrong: the host that sent it learns this way that this one is closed.
                    Refused::Stranger | Refused::Draining => {}
                }
                return Err((reply, refused));
            }
        };
        let open =
            Open { reply, from: from.to_owned(), missing: shots.len(), answers: shots.iter().map(|_| None).collect() };
        let number = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[number] = Some(open);
        self.queue.extend(shots.into_iter().enumerate().map(|(place, shot)| (number, place, shot)));
        Ok(())
    }

    /// Checks all of a message, then takes its numbers.
    fn check(&mut self, from: &str, bytes: &[u8], now_ns: u64) -> Result<Vec<Shot>, Refused> {
        if !self.takes_more {
            return Err(Refused::Draining);
        }
        let (incarnation, shots) = message::decode_shots(bytes, self.widths)?;
        if shots.iter().any(|shot| shot.name.stream >= self.streams) {
            return Err(Refused::Stream);
        }
        let owner = self.owners.entry(from.to_owned()).or_default();
        if owner.here + shots.len() > SHOTS_MAX_OF_OWNER {
            return Err(Refused::Full);
        }
        // Another process of the owner counts from the start.
        let is_new = owner.incarnation != incarnation;
        let mut next: BTreeMap<u32, (u32, u64, u64)> = BTreeMap::new();
        for Name { stream, epoch, number } in shots.iter().map(|shot| shot.name) {
            let known = next.get(&stream).or_else(|| owner.streams.get(&stream).filter(|_| !is_new));
            let expected = match known {
                Some((last, next, _)) if *last == epoch => *next,
                Some((last, ..)) if epoch.wrapping_sub(*last) > u32::MAX / 2 => return Err(Refused::Order),
                _ => 0,
            };
            if number != expected {
                return Err(Refused::Order);
            }
            next.insert(stream, (epoch, number + 1, now_ns));
        }
        if is_new {
            owner.streams.clear();
            owner.incarnation = incarnation;
        }
        owner.streams.append(&mut next);
        owner.here += shots.len();
        owner.counts.shots += shots.len() as u64;
        Ok(shots)
    }

    /// Hands shots to `put` with a tag for each, until it refuses one or enough are in the engine.
    pub fn put(&mut self, mut put: impl FnMut(u64, &Shot) -> bool) {
        while let Some((number, place, shot)) = self.queue.front() {
            if self.free_tags.is_empty() && self.tags.len() < UNDER_WAY_MAX {
                self.free_tags.push(self.tags.len() as u32);
                self.tags.push(None);
            }
            let Some(tag) = self.free_tags.last().copied() else { return };
            if !put(u64::from(tag), shot) {
                return;
            }
            self.tags[tag as usize] = Some((*number, *place, shot.name));
            self.free_tags.pop();
            self.queue.pop_front();
        }
    }

    /// Takes the engine's answer to the shot of `tag`, decoded by the model of this hash. Returns the message's
    /// reply and its answers when they are complete.
    pub fn answered(&mut self, tag: u64, answer: &Answer, model: u64) -> Option<(R, Vec<Answered>)> {
        let (number, place, name) = self.tags.get_mut(tag as usize)?.take()?;
        self.free_tags.push(tag as u32);
        let open = self.open[number].as_mut()?;
        open.answers[place] = Some(Answered {
            name,
            error: answer.error.map_or(0, |code| code as u16),
            abstained: answer.abstained,
            by: answer.by.0,
            model: if answer.error.is_none() { model } else { 0 },
            observables: answer.observables[..self.widths.observables].to_vec(),
        });
        open.missing -= 1;
        if open.missing > 0 {
            return None;
        }
        let Open { reply, from, answers, .. } = self.open[number].take()?;
        if let Some(owner) = self.owners.get_mut(&from) {
            owner.here -= answers.len();
        }
        Some((reply, answers.into_iter().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Incoming, Refused, SHOTS_MAX_OF_OWNER, UNDER_WAY_MAX};
    use crate::message::{Name, Shot, Widths, encode_shots};
    use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
    use pinwheel_edge::slot::word::ErrorCode;
    use pinwheel_engine::pipe::Answer;

    const WIDTHS: Widths = Widths { detectors: 1, observables: 1 };

    fn message(incarnation: u64, names: &[(u32, u32, u64)]) -> Vec<u8> {
        let shots: Vec<Shot> = names
            .iter()
            .map(|(stream, epoch, number)| Shot {
                name: Name { stream: *stream, epoch: *epoch, number: *number },
                detectors: vec![*number],
                truth: None,
            })
            .collect();
        encode_shots(incarnation, WIDTHS, shots.iter())
    }

    fn answer(value: u64, error: Option<ErrorCode>) -> Answer {
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        observables[0] = value;
        Answer { error, observables, ..Answer::default() }
    }

    #[test]
    fn a_message_is_answered_when_its_last_shot_is_with_the_answers_in_its_order() {
        let mut incoming = Incoming::new(4, WIDTHS);
        incoming.offer("a", &message(1, &[(0, 1, 0), (3, 1, 0), (0, 1, 1)]), "reply", 0).unwrap();
        let mut tags = Vec::new();
        incoming.put(|tag, shot| {
            tags.push((tag, shot.name.stream));
            true
        });
        assert!(incoming.answered(tags[2].0, &answer(2, None), 7).is_none());
        assert!(incoming.answered(tags[0].0, &answer(0, Some(ErrorCode::DecoderPanic)), 7).is_none());
        assert!(incoming.answered(tags[0].0, &answer(9, None), 7).is_none(), "it has its answer");
        let (reply, answers) = incoming.answered(tags[1].0, &answer(1, None), 8).unwrap();
        assert_eq!(reply, "reply");
        let said: Vec<(u32, u16, u64)> =
            answers.iter().map(|one| (one.name.stream, one.error, one.observables[0])).collect();
        assert_eq!(said, [(0, ErrorCode::DecoderPanic as u16, 0), (3, 0, 1), (0, 0, 2)]);
        assert!(incoming.is_empty());
    }

    #[test]
    fn repeated_missing_older_and_foreign_numbers_are_refused_and_nothing_of_them_is_taken() {
        let mut incoming = Incoming::new(4, WIDTHS);
        let mut offer = |incarnation, names: &[(u32, u32, u64)]| {
            incoming.offer("a", &message(incarnation, names), (), 0).map_err(|((), refused)| refused)
        };
        assert_eq!(offer(1, &[(0, 5, 0), (0, 5, 1)]), Ok(()));
        assert_eq!(offer(1, &[(0, 5, 1)]), Err(Refused::Order), "sent before");
        assert_eq!(offer(1, &[(0, 5, 3)]), Err(Refused::Order), "one is missing");
        assert_eq!(offer(1, &[(0, 4, 0)]), Err(Refused::Order), "an older loan");
        assert_eq!(offer(1, &[(1, 1, 0), (4, 1, 0)]), Err(Refused::Stream));
        assert_eq!(offer(1, &[(1, 1, 0)]), Ok(()), "nothing was taken of the refused one");
        assert_eq!(offer(1, &[(0, 6, 0)]), Ok(()), "the next loan");
        assert_eq!(offer(2, &[(0, 1, 0)]), Ok(()), "another process counts from the start");
        let counts = incoming.counts().next().unwrap().1;
        assert_eq!((counts.shots, counts.refused), (5, 4));
    }

    #[test]
    fn an_owner_that_floods_is_refused_and_another_is_not() {
        let mut incoming = Incoming::new(4, WIDTHS);
        let mut next = 0;
        loop {
            let names: Vec<_> = (next..next + 128).map(|number| (0, 1, number)).collect();
            match incoming.offer("a", &message(1, &names), (), 0) {
                Ok(()) => next += 128,
                Err(((), refused)) => break assert_eq!(refused, Refused::Full),
            }
        }
        assert_eq!(next, SHOTS_MAX_OF_OWNER as u64);
        incoming.offer("b", &message(1, &[(0, 1, 0)]), (), 0).unwrap();
        let mut put = 0;
        incoming.put(|_, _| {
            put += 1;
            true
        });
        assert_eq!(put, UNDER_WAY_MAX);
        incoming.close();
        assert_eq!(incoming.offer("b", &message(1, &[(0, 1, 1)]), (), 0), Err(((), Refused::Draining)));
        assert_eq!(incoming.counts().map(|(_, counts)| counts.full).collect::<Vec<_>>(), [1, 0]);
    }
}
