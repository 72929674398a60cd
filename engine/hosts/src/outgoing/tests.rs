#![allow(clippy::unwrap_used, reason = "harness")]

use super::{Outgoing, UNDER_WAY_MAX, Window};
use crate::message::{Answered, Shot, Widths};
use pinwheel_edge::slot::table::ReplyTo;
use pinwheel_engine::feed::lane::{Head, Piece};
use pinwheel_engine::units::Ticks;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;

const WIDTHS: Widths = Widths { detectors: 1, observables: 1 };

fn head(stream: u32, direct: u64, theirs: u64) -> Head {
    Head {
        stream,
        epoch: 0,
        sequence: direct,
        reply_to: ReplyTo { peer: 1, sequence: theirs },
        arrived: Ticks(0),
        truth_known: false,
        piece: Piece::Whole,
        refused: None,
    }
}

fn answer(shot: &Shot) -> Answered {
    Answered { name: shot.name, error: 0, abstained: false, by: 0, model: 0, observables: vec![shot.detectors[0]] }
}

#[test]
fn a_shot_leaves_when_all_before_it_are_answered_here() {
    let mut outgoing = Outgoing::new(1, WIDTHS);
    outgoing.give(0, "b");
    outgoing.take(head(0, 3, 0), &[9], &[0]);
    assert!(outgoing.next_message("b", 8, |_| 2).is_empty());
    assert_eq!(outgoing.next_message("b", 8, |_| 3).len(), 1);
}

#[test]
fn an_answer_that_overtakes_another_waits_for_it_and_an_answer_after_a_loan_is_dropped() {
    let mut outgoing = Outgoing::new(1, WIDTHS);
    outgoing.give(0, "b");
    (0..3).for_each(|n| outgoing.take(head(0, 0, n), &[n], &[0]));
    let shots = outgoing.next_message("b", 8, |_| 0);
    let mut passed = Vec::new();
    outgoing.answered(vec![answer(&shots[1])], |head, _| passed.push(head.reply_to.sequence));
    assert!(passed.is_empty());
    outgoing.answered(vec![answer(&shots[0])], |head, _| passed.push(head.reply_to.sequence));
    assert_eq!(passed, [0, 1]);
    outgoing.take_back(0);
    outgoing.answered(vec![answer(&shots[2])], |_, _| unreachable!("its loan is over"));
    let mut back = Vec::new();
    outgoing.put_back(|head, _, _| {
        back.push(head.reply_to.sequence);
        true
    });
    assert_eq!(back, [2]);
    assert!(outgoing.is_empty());
}

#[test]
fn a_shot_waits_for_its_turn_since_it_came_and_those_before_it_were_answered_here() {
    let mut outgoing = Outgoing::new(2, WIDTHS);
    let came = |outgoing: &mut Outgoing, at, number| {
        outgoing.take(Head { arrived: Ticks(at), ..head(0, 1, number) }, &[number], &[0]);
    };
    outgoing.give(0, "b");
    came(&mut outgoing, 10, 0);
    assert_eq!(outgoing.longest_wait("b", Ticks(500), |_| 0), Ticks(0), "an earlier one is not answered here");
    assert_eq!(outgoing.longest_wait("b", Ticks(600), |_| 1), Ticks(0), "now it is");
    assert_eq!(outgoing.longest_wait("b", Ticks(650), |_| 1), Ticks(50));
    assert_eq!(outgoing.longest_wait("c", Ticks(650), |_| 1), Ticks(0), "another host");
    assert_eq!(outgoing.next_message("b", 1, |_| 1).len(), 1);
    came(&mut outgoing, 640, 1);
    assert_eq!(outgoing.longest_wait("b", Ticks(650), |_| 1), Ticks(10), "the next shot");
    outgoing.give(0, "c");
    came(&mut outgoing, 660, 2);
    assert_eq!(outgoing.longest_wait("c", Ticks(700), |_| 1), Ticks(0), "behind those that came back");
    assert_eq!(outgoing.longest_wait("c", Ticks(900), |_| 3), Ticks(0), "from now on it may leave");
    assert_eq!(outgoing.longest_wait("c", Ticks(905), |_| 3), Ticks(5));
}

#[test]
fn streams_that_wait_for_a_slow_host_take_turns() {
    let mut outgoing = Outgoing::new(3, WIDTHS);
    for stream in [0, 2] {
        outgoing.give(stream, "b");
        (0..4).for_each(|n| outgoing.take(head(stream, 0, n), &[n], &[0]));
    }
    let mut sent = |limit| -> Vec<(u32, u64)> {
        let shots = outgoing.next_message("b", limit, |_| 0);
        shots.iter().map(|shot| (shot.name.stream, shot.name.number)).collect()
    };
    assert_eq!([sent(3), sent(1), sent(1)], [vec![(0, 0), (2, 0), (0, 1)], vec![(2, 1)], vec![(0, 2)]]);
    assert_eq!(sent(9), [(2, 2), (0, 3), (2, 3)]);
}

#[test]
fn a_slow_host_has_as_many_shots_under_way_as_it_answers_in_half_its_time() {
    const LIMIT_NS: u64 = 100_000_000;
    // Shots under way after some messages, each as large as it may be.
    let after = |took_ns: &dyn Fn(u64) -> u64| {
        let mut window = Window::default();
        for _ in 0..20 {
            match took_ns(window.shots() as u64) {
                took if took > LIMIT_NS => window.failed(),
                took => window.timed(window.shots(), took, LIMIT_NS),
            }
        }
        window.shots()
    };
    let one_by_one = |shot_ns: u64| after(&|shots| shots * shot_ns);
    assert_eq!([2_000, 10_000_000, 80_000_000].map(one_by_one), [UNDER_WAY_MAX, 5, 1]);
    assert_eq!(after(&|_| 30_000_000), UNDER_WAY_MAX, "many workers, each of 30 ms");
    // Few shots that wait behind those of others tell nothing of how many it could answer.
    let mut window = Window(100);
    window.timed(1, LIMIT_NS / 3, LIMIT_NS);
    assert_eq!(window.shots(), 100);
    window.timed(80, LIMIT_NS / 4 * 3, LIMIT_NS);
    assert_eq!(window.shots(), 40);
    window.timed(1, 0, 0);
    assert_eq!(window.shots(), 40, "a link as slow as the limit");
}

/// Two hosts that answer late, in any order, or never; streams given and taken back at random; an engine
/// whose intake follows the rules of its bridge.
#[test]
fn each_shot_is_answered_once_and_in_order_whatever_becomes_of_the_hosts() {
    for seed in 0..200 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut world = World::new();
        for step in 0..3_000 {
            world.step(&mut random, step < 2_000);
        }
        while !world.is_done() {
            world.settle();
        }
        for stream in 0..STREAMS {
            assert_eq!(world.answered[stream], world.submitted[stream], "seed {seed}, stream {stream}");
        }
    }
}

const STREAMS: usize = 3;

struct World {
    outgoing: Outgoing,
    submitted: [u64; STREAMS],
    answered: [u64; STREAMS],
    /// The intake's counts, and the shots that the engine decodes.
    direct: [u64; STREAMS],
    away: [u64; STREAMS],
    here: Vec<VecDeque<u64>>,
    answered_here: [u64; STREAMS],
    lane: VecDeque<(Head, u64)>,
    /// Messages on their way, each to a host.
    messages: Vec<Vec<Shot>>,
}

impl World {
    fn new() -> World {
        World {
            outgoing: Outgoing::new(STREAMS as u32, WIDTHS),
            submitted: [0; STREAMS],
            answered: [0; STREAMS],
            direct: [0; STREAMS],
            away: [0; STREAMS],
            here: vec![VecDeque::new(); STREAMS],
            answered_here: [0; STREAMS],
            lane: VecDeque::new(),
            messages: Vec::new(),
        }
    }

    fn submit(&mut self, stream: usize) {
        let number = self.submitted[stream];
        self.submitted[stream] += 1;
        if self.away[stream] > 0 || self.outgoing.at(stream as u32).is_some() {
            self.lane.push_back((head(stream as u32, self.direct[stream], number), number));
            self.away[stream] += 1;
        } else {
            self.direct[stream] += 1;
            self.here[stream].push_back(number);
        }
    }

    fn answer(answered: &mut [u64; STREAMS], stream: usize, number: u64) {
        assert_eq!(answered[stream], number, "once and in order");
        answered[stream] += 1;
    }

    fn answer_here(&mut self, stream: usize) {
        let Some(number) = self.here[stream].pop_front() else { return };
        self.answered_here[stream] += 1;
        World::answer(&mut self.answered, stream, number);
    }

    fn read_lane(&mut self) {
        while let Some((head, number)) = self.lane.pop_front() {
            self.outgoing.take(head, &[number], &[0]);
        }
    }

    fn put_back(&mut self, mut limit: usize) {
        let (here, away) = (&mut self.here, &mut self.away);
        self.outgoing.put_back(|head, _, _| {
            if limit == 0 {
                return false;
            }
            limit -= 1;
            here[head.stream as usize].push_back(head.reply_to.sequence);
            away[head.stream as usize] -= 1;
            true
        });
    }

    fn deliver(&mut self, shots: &[Shot]) {
        let (answered, away) = (&mut self.answered, &mut self.away);
        let answers = shots.iter().rev().map(answer).collect();
        self.outgoing.answered(answers, |head, said| {
            assert_eq!(said.observables[0], head.reply_to.sequence);
            away[head.stream as usize] -= 1;
            World::answer(answered, head.stream as usize, head.reply_to.sequence);
        });
    }

    fn send(&mut self, host: &str, limit: usize) {
        let counts = self.answered_here;
        let shots = self.outgoing.next_message(host, limit, |stream| counts[stream as usize]);
        if !shots.is_empty() {
            self.messages.push(shots);
        }
    }

    fn step(&mut self, random: &mut Xoshiro256PlusPlus, submits: bool) {
        let stream = random.next_u64() as usize % STREAMS;
        let host = if random.next_u64().is_multiple_of(2) { "b" } else { "c" };
        match random.next_u64() % 12 {
            0 => self.outgoing.give(stream as u32, host),
            1 | 2 => {
                self.outgoing.take_back(stream as u32);
            }
            3 | 4 => self.read_lane(),
            5 => self.put_back(random.next_u64() as usize % 4),
            6 => self.answer_here(stream),
            7 => self.send(host, 1 + random.next_u64() as usize % 5),
            8 if !self.messages.is_empty() => {
                let at = random.next_u64() as usize % self.messages.len();
                let shots = self.messages[at].clone();
                // A message may be lost, late, or delivered again.
                match random.next_u64() % 4 {
                    0 => drop(self.messages.swap_remove(at)),
                    1 => {}
                    _ => self.deliver(&shots),
                }
            }
            _ if submits => self.submit(stream),
            _ => {}
        }
    }

    /// Everything is taken back, and the engine answers.
    fn settle(&mut self) {
        (0..STREAMS as u32).for_each(|stream| {
            self.outgoing.take_back(stream);
        });
        self.read_lane();
        self.put_back(usize::MAX);
        (0..STREAMS).for_each(|stream| self.answer_here(stream));
    }

    fn is_done(&self) -> bool {
        self.answered == self.submitted && self.outgoing.is_empty()
    }
}
