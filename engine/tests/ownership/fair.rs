//! Fair cycles: can a silo ask for ever, in a world that is fair to it, and never own the page?
//!
//! stateright's own check of *eventually* is incomplete, so this one builds the graph of the states
//! in which the silo has not owned the page, and looks for a cycle that is fair: each kind of step
//! that can be taken again and again in the cycle is taken in it (strong fairness). Steps that
//! nobody owes anybody (writes begun, messages lost or doubled, leases taken) may stay away or come
//! as they like. This is the emptiness check of a Streett automaton: split into strongly connected
//! components, remove the states in which an owed step could be taken but never is, and split
//! again.
//!
//! What it cannot see: a transfer that times out each time spends an epoch, which is no cycle. Whether ten microseconds
//! suffice is a matter of measurement.

use super::model::{Node, Pages, Step, World};
use pinwheel_engine::arbiter::protocol::Message;
use stateright::Model;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// A kind of step that fairness owes; `None` for one that nobody owes.
fn owed(pages: &Pages, step: Step) -> Option<u8> {
    match step {
        Step::Ask(node, _) => Some(node),
        Step::Commit(node) => Some(10 + node),
        Step::Tick(node) => Some(20 + node),
        Step::Deliver(at) => {
            let sent = &pages.net[at as usize];
            match sent.message {
                Message::Request(_) => Some(30 + sent.to),
                Message::Refused(_) => Some(40 + sent.to),
                Message::Grant(_) => Some(50 + sent.to),
                Message::Ack(_) => Some(60 + sent.to),
                Message::Cancel(_) => Some(70 + sent.to),
                Message::CancelAck(_) => Some(80 + sent.to),
            }
        }
        _ => None,
    }
}

/// Whether a step pays what is owed. A request that is heard only while a write is in progress has not been heard:
/// nobody can do more than ask again and again, and writes end.
fn pays(pages: &Pages, step: Step) -> bool {
    match step {
        Step::Deliver(at) => {
            let sent = &pages.net[at as usize];
            !matches!(sent.message, Message::Request(_)) || !pages.nodes[sent.to as usize].word.is_busy()
        }
        _ => true,
    }
}

struct Edge {
    owed: Option<u8>,
    is_paid: bool,
    /// `None`: out of the graph, to ownership.
    to: Option<u32>,
}

struct Graph {
    /// The states themselves, to show a cycle by.
    states: Vec<Pages>,
    steps: Vec<Vec<Edge>>,
}

fn fingerprint(pages: &Pages) -> u64 {
    let mut hasher = DefaultHasher::new();
    pages.hash(&mut hasher);
    hasher.finish()
}

/// The states in which silo 1 has not owned the page, up to the last epoch: there the model's world ends.
fn graph(world: &World) -> Graph {
    let mut numbers = std::collections::BTreeMap::new();
    let mut states = world.init_states();
    numbers.insert(fingerprint(&states[0]), 0u32);
    let mut steps: Vec<Vec<Edge>> = Vec::new();
    let mut possible = Vec::new();
    while steps.len() < states.len() {
        let from = states[steps.len()].clone();
        possible.clear();
        world.actions(&from, &mut possible);
        let mut out = Vec::new();
        for step in &possible {
            let Some(to) = world.next_state(&from, *step) else { continue };
            let (owed, is_paid) = (owed(&from, *step), pays(&from, *step));
            let is_spent =
                |node: &Node| node.word.state().is_writable() && node.word.epoch() >= world.limits.epoch_last;
            if to.nodes[1].word.state().is_writable() || to.nodes.iter().any(is_spent) {
                out.push(Edge { owed, is_paid, to: None });
                continue;
            }
            let next = states.len() as u32;
            let number = *numbers.entry(fingerprint(&to)).or_insert(next);
            if number == next {
                states.push(to);
            }
            out.push(Edge { owed, is_paid, to: Some(number) });
        }
        steps.push(out);
    }
    Graph { states, steps }
}

impl Graph {
    /// Strongly connected components of `among`, by Tarjan's algorithm without recursion.
    fn components(&self, among: &BTreeSet<u32>) -> Vec<BTreeSet<u32>> {
        const UNSEEN: u32 = u32::MAX;
        let mut index = vec![UNSEEN; self.steps.len()];
        let mut low = vec![0; self.steps.len()];
        let mut is_open = vec![false; self.steps.len()];
        let (mut open, mut found, mut next) = (Vec::new(), Vec::new(), 0);
        for root in among {
            if index[*root as usize] != UNSEEN {
                continue;
            }
            let mut calls = vec![(*root, 0)];
            while let Some((state, at)) = calls.pop() {
                let s = state as usize;
                if at == 0 {
                    (index[s], low[s], is_open[s]) = (next, next, true);
                    next += 1;
                    open.push(state);
                }
                match self.steps[s].get(at) {
                    Some(edge) => {
                        calls.push((state, at + 1));
                        let Some(to) = edge.to.filter(|to| among.contains(to)) else { continue };
                        if index[to as usize] == UNSEEN {
                            calls.push((to, 0));
                        } else if is_open[to as usize] {
                            low[s] = low[s].min(index[to as usize]);
                        }
                    }
                    None => {
                        if low[s] == index[s] {
                            let from = open.iter().rposition(|other| *other == state).unwrap();
                            let component: BTreeSet<u32> = open.drain(from..).collect();
                            component.iter().for_each(|member| is_open[*member as usize] = false);
                            found.push(component);
                        }
                        if let Some((caller, _)) = calls.last() {
                            low[*caller as usize] = low[*caller as usize].min(low[s]);
                        }
                    }
                }
            }
        }
        found
    }

    /// States of a fair cycle among `among`, if there is one.
    fn fair_cycle(&self, among: BTreeSet<u32>) -> Option<BTreeSet<u32>> {
        let mut rest = vec![among];
        while let Some(among) = rest.pop() {
            for component in self.components(&among) {
                let within = |edge: &Edge| edge.to.is_some_and(|to| component.contains(&to));
                let steps = || component.iter().flat_map(|state| &self.steps[*state as usize]);
                if !steps().any(within) {
                    continue;
                }
                let taken: BTreeSet<u8> =
                    steps().filter(|edge| edge.is_paid && within(edge)).filter_map(|edge| edge.owed).collect();
                let is_owed = |state: &u32| {
                    self.steps[*state as usize].iter().any(|edge| edge.owed.is_some_and(|owed| !taken.contains(&owed)))
                };
                let remaining: BTreeSet<u32> = component.iter().copied().filter(|state| !is_owed(state)).collect();
                if remaining.len() == component.len() {
                    return Some(component);
                }
                rest.push(remaining);
            }
        }
        None
    }
}

/// Number of states, and the size of a fair cycle in which silo 1 never owns the page.
pub fn waiting_for_ever(world: &World) -> (usize, Option<usize>) {
    let graph = graph(world);
    let all = (0..graph.steps.len() as u32).collect();
    let cycle = graph.fair_cycle(all);
    for state in cycle.iter().flatten().take(4) {
        eprintln!("in the cycle: {:?}", graph.states[*state as usize]);
    }
    (graph.steps.len(), cycle.map(|cycle| cycle.len()))
}
