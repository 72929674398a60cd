//! Checks of messages that other hosts send, for inputs that are any bytes: a message is refused as a whole, or each of
//! its shots is decoded once, in order, and its answers come back together.

use super::texts::Bytes;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_engine::pipe::Answer;
use pinwheel_hosts::description::Description;
use pinwheel_hosts::incoming::{Incoming, SHOTS_MAX_OF_OWNER, UNDER_WAY_MAX};
use pinwheel_hosts::local_socket::Wanted;
use pinwheel_hosts::message::{self, Name, Shot, Widths};
use pinwheel_hosts::status::Status;
use std::collections::{BTreeMap, VecDeque};

const WIDTHS: Widths = Widths { detectors: 2, observables: 1 };
const STREAMS: u32 = 3;
const HOSTS: [&str; 2] = ["lab1", "lab2"];

/// What is known of a host by the messages of it that were taken.
#[derive(Default)]
struct Sent {
    incarnation: u64,
    /// For each stream: epoch, and the next number.
    streams: BTreeMap<u32, (u32, u64)>,
}

impl Sent {
    /// Takes the shots of a message, whose numbers must follow on.
    fn take(&mut self, incarnation: u64, shots: &[Shot]) {
        if self.incarnation != incarnation {
            (self.incarnation, self.streams) = (incarnation, BTreeMap::new());
        }
        for Name { stream, epoch, number } in shots.iter().map(|shot| shot.name) {
            assert!(stream < STREAMS);
            let last = self.streams.insert(stream, (epoch, number + 1));
            match last.filter(|(last, _)| *last == epoch) {
                Some((_, next)) => assert_eq!(number, next),
                None => assert_eq!(number, 0),
            }
            assert!(last.is_none_or(|(last, _)| epoch.wrapping_sub(last) <= u32::MAX / 2));
        }
    }
}

/// Messages, room in the engine, and its answers, in the order that the bytes say.
pub fn any_messages(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Description>(bytes);
    let _ = serde_json::from_slice::<Wanted>(bytes);
    let _ = serde_json::from_slice::<Status>(bytes);
    if let Ok(answers) = message::decode_answers(bytes, WIDTHS.observables) {
        assert_eq!(message::encode_answers(WIDTHS.observables, &answers), bytes);
    }
    let mut bytes = Bytes(bytes);
    let mut incoming: Incoming<usize> = Incoming::new(STREAMS, WIDTHS);
    let (mut sent, mut taken) = (HOSTS.map(|_| Sent::default()), Vec::<(usize, Vec<Name>)>::new());
    let (mut waiting, mut under_way) = (VecDeque::<Name>::new(), Vec::<(u64, Name)>::new());
    let (mut replies, mut is_closed) = (0, false);
    while !bytes.is_empty() {
        match bytes.below(8) {
            0..=3 => {
                let host = bytes.below(HOSTS.len());
                let message = message_of(&mut bytes);
                let known = message::decode_shots(&message, WIDTHS);
                if incoming.offer(HOSTS[host], &message, taken.len(), 0).is_ok() {
                    let (incarnation, shots) = known.expect("what is taken is well-formed");
                    assert!(!is_closed);
                    sent[host].take(incarnation, &shots);
                    let names: Vec<Name> = shots.iter().map(|shot| shot.name).collect();
                    waiting.extend(&names);
                    taken.push((host, names));
                }
            }
            4 | 5 => {
                let mut room = bytes.below(300);
                incoming.put(|tag, shot| {
                    if room == 0 {
                        return false;
                    }
                    room -= 1;
                    assert_eq!(waiting.pop_front(), Some(shot.name));
                    assert!(under_way.iter().all(|(other, _)| *other != tag));
                    under_way.push((tag, shot.name));
                    true
                });
                assert!(under_way.len() <= UNDER_WAY_MAX);
            }
            6 => {
                let count = bytes.below(300).min(under_way.len());
                replies += answered(&mut incoming, &mut under_way, count, &mut bytes, &mut taken);
            }
            _ => {
                is_closed = !is_closed;
                if is_closed { incoming.close() } else { incoming.reopen() }
            }
        }
        // A tag that was not given out, or was answered before.
        assert!(incoming.answered(u64::MAX, &answer(0), 0).is_none());
        assert!(waiting.len() + under_way.len() <= HOSTS.len() * SHOTS_MAX_OF_OWNER);
    }
    while !incoming.is_empty() {
        incoming.put(|tag, shot| {
            assert_eq!(waiting.pop_front(), Some(shot.name));
            under_way.push((tag, shot.name));
            true
        });
        let count = under_way.len();
        replies += answered(&mut incoming, &mut under_way, count, &mut bytes, &mut taken);
    }
    assert_eq!((replies, waiting.len(), under_way.len()), (taken.len(), 0, 0));
}

/// A message: well-formed shots whose names follow on more or less, or any bytes.
fn message_of(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let kind = bytes.byte();
    if kind == 255 {
        let length = usize::from(bytes.byte());
        return bytes.take(length).to_vec();
    }
    let (incarnation, stream, epoch) = (u64::from(kind >> 6), u32::from(kind & 3), u32::from(kind >> 2 & 7));
    let first = u64::from(bytes.byte());
    // Up to one more than a message may have.
    let count = bytes.below(message::SHOTS_MAX + 2) as u64;
    let shot = |number| Shot {
        name: Name { stream, epoch, number },
        detectors: vec![number, 1],
        truth: (number % 2 == 0).then(|| vec![number]),
    };
    let shots: Vec<Shot> = (first..first + count).map(shot).collect();
    message::encode_shots(incarnation, WIDTHS, shots.iter())
}

/// Answers `count` shots, in an order that the bytes say. Returns how many messages are complete by that.
fn answered(
    incoming: &mut Incoming<usize>,
    under_way: &mut Vec<(u64, Name)>,
    count: usize,
    bytes: &mut Bytes<'_>,
    taken: &mut [(usize, Vec<Name>)],
) -> usize {
    let mut complete = 0;
    for _ in 0..count {
        let at = usize::from(bytes.byte()) % under_way.len();
        let (tag, name) = under_way.swap_remove(at);
        if let Some((number, answers)) = incoming.answered(tag, &answer(name.number), 0) {
            assert_eq!(answers.iter().map(|answer| answer.name).collect::<Vec<_>>(), taken[number].1);
            assert!(answers.iter().all(|answer| answer.observables == [answer.name.number]));
            // It is answered once.
            taken[number].1.clear();
            complete += 1;
        }
        assert!(incoming.answered(tag, &answer(0), 0).is_none());
    }
    complete
}

fn answer(value: u64) -> Answer {
    let mut observables = [0; OBSERVABLE_WORDS_MAX];
    observables[0] = value;
    Answer { observables, ..Answer::default() }
}
