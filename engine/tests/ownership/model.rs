//! Three silos and a channel that loses, reorders and doubles, as a state machine for stateright.
//!
//! Every transition of a page runs the production table and protocol on a table restored from the state. Time has no
//! origin: a tick moves one silo's deadline one microsecond nearer, so silos' clocks drift freely and states repeat.
//! Beside the words the state holds what must be true of them: the last committed value, the lease that a holder was
//! promised, the number of refusals. Bounds: messages on the way, epochs, values, one crash.

use pinwheel_engine::arbiter::page::{
    Authority, Epoch, Failed, Hint, How, Limits, Moment, PageTable, Request, Response, Signals, Silo, State, Word,
    WriteBuffer,
};
use pinwheel_engine::arbiter::protocol::{Change, Message, look, receive};
use stateright::{Model, Property};
use std::cell::Cell;

pub const SILOS: usize = 3;
const NOW: Moment = Moment::from_micros(1_000);
const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };

/// A rule of the seed that the design replaces, put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The design's rules.
    Ours,
    /// §4.2: a page being transferred can be granted again.
    NoGuard,
    /// §6: without an ACK in time the state rolls back.
    Rollback,
    /// §4.1: the busy signal is checked, then the page is marked.
    CheckThenMark,
    /// No epochs: any ACK is the awaited one.
    NoEpochs,
    /// §4.2: the lease is set at the old owner.
    LeaseAtOldOwner,
    /// §4.1: a local write makes a leased page hot.
    WriteErasesLease,
    /// §4.1: heat is renewed as long as there are writes.
    EndlessHeat,
    /// §6: a receiver that has not answered in time is dead.
    LateIsDead,
    /// §2: one word for all silos: who asks takes it there, and no message carries the page.
    SharedWord,
    /// §7: LOCK is granted and holds nothing.
    LockHoldsNothing,
    /// §5: LEASE_ACTIVE is one answer, to the holder and to everybody else.
    LeaseActiveIsYours,
    /// §6, of owners: who has been silent for long is dead, and its successor takes its pages.
    SilentIsDead,
    /// Of owners: the dead silo's grants are forgotten with it.
    GrantsDieToo,
}

/// What may happen.
#[derive(Clone, Debug)]
pub struct World {
    pub rule: Rule,
    pub limits: Limits,
    /// Most messages on the way.
    pub net_max: usize,
    /// Most values written; later writes heat only.
    pub values_max: u8,
    /// What each silo asks for; none: it asks for nothing.
    pub asks: [&'static [Hint]; SILOS],
    /// Silos that write what they own.
    pub writers: [bool; SILOS],
    /// Whether messages are lost and doubled.
    pub is_lossy: bool,
    /// Whether silo 1 may crash.
    pub has_crash: bool,
    /// Whether silo 2 asks in the operator's name.
    pub has_operator: bool,
    /// Who takes over from silo 1 when it has crashed.
    pub successor: Option<u8>,
}

impl World {
    pub const LIMITS: Limits = Limits {
        hot_us: 1,
        lease_us_max: 2,
        lock_us_max: 1,
        ack_us: 1,
        resend_us: 1,
        refusals_max: 1,
        epoch_last: Epoch::new(2),
    };

    pub fn new(rule: Rule) -> World {
        World {
            rule,
            limits: World::LIMITS,
            net_max: 2,
            values_max: 1,
            asks: [&[Hint::Default], &[Hint::Default], &[Hint::Default]],
            writers: [true; SILOS],
            is_lossy: true,
            has_crash: false,
            has_operator: false,
            successor: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sent {
    pub from: u8,
    pub to: u8,
    pub message: Message,
    /// The page's bytes, beside a GRANT.
    pub value: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub word: Word,
    /// The page's bytes here.
    pub value: u8,
    /// What is left of the lease that this silo was promised.
    pub promised_us: u32,
    /// How often its request was refused.
    pub refusals: u8,
    pub is_dead: bool,
    /// Fenced, with its successor appointed: what it has counts no more.
    pub is_taken_over: bool,
    /// A decision that was checked and is not marked yet, see [`Rule::CheckThenMark`].
    pub checked: Option<(Word, Request)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pages {
    pub nodes: [Node; SILOS],
    pub net: Vec<Sent>,
    /// The last committed value.
    pub last: u8,
    /// What was done against the rules.
    pub broken: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Ask(u8, Hint),
    Lease(u8, Hint),
    Release(u8),
    Begin(u8),
    Commit(u8),
    Deliver(u8),
    Double(u8),
    Lose(u8),
    Tick(u8),
    Mark(u8),
    Crash(u8),
    Bereave(u8, u8),
    Inherit(u8),
}

fn silo(node: usize) -> Silo {
    Silo::new(node as u8)
}

impl World {
    /// The production table of `node`, as it stands.
    fn table(&self, node: usize, word: Word) -> PageTable {
        PageTable::restored(silo(node), self.limits, [word])
    }

    fn send(&self, pages: &mut Pages, sent: Sent) -> Option<()> {
        if let Err(at) = pages.net.binary_search(&sent) {
            pages.net.insert(at, sent);
        }
        (pages.net.len() <= self.net_max).then_some(())
    }

    fn ask(&self, pages: &mut Pages, node: usize, hint: Hint) -> Option<()> {
        let Node { word, refusals, .. } = pages.nodes[node];
        if self.rule == Rule::SharedWord {
            let owner = word.owner().number() as usize;
            let theirs = pages.nodes[owner].word;
            if theirs.state() != State::Idle || theirs.is_busy() {
                return None;
            }
            pages.nodes[owner].word = Word::elsewhere(silo(node), theirs.epoch().next());
            pages.nodes[node].word = Word::owned(silo(node), theirs.epoch().next());
            return Some(());
        }
        let authority = if self.has_operator && node == 2 { Authority::Operator } else { Authority::Port };
        let request = Request { from: silo(node), epoch: word.epoch(), hint, ttl_us: 2, refusals, authority };
        let message = Message::Request(request);
        let to = self.address(pages, word.owner().number());
        (to != node as u8).then(|| self.send(pages, Sent { from: node as u8, to, message, value: 0 }))?
    }

    /// Who answers for a silo: itself, or the successor of one that was taken over.
    fn address(&self, pages: &Pages, to: u8) -> u8 {
        self.successor.filter(|_| pages.nodes[to as usize].is_taken_over).unwrap_or(to)
    }

    /// A message reaches its silo.
    fn deliver(&self, pages: &mut Pages, sent: &Sent) -> Option<()> {
        let (to, from) = (sent.to as usize, Silo::new(sent.from));
        let before = pages.nodes[to].word;
        if let (Rule::CheckThenMark, Message::Request(request)) = (self.rule, sent.message) {
            pages.nodes[to].checked = Some((before, request));
            return Some(());
        }
        let table = self.table(to, self.seen(before, sent));
        let value = Cell::new(pages.nodes[to].value);
        let message = self.received(sent);
        let outcome = receive(&table, 0, (from, &message), DRAINED, NOW, || value.set(sent.value));
        self.settle(pages, to, table.word(0));
        pages.nodes[to].value = value.get();
        match outcome.change {
            Change::Arrived(_) => {
                let Message::Grant(grant) = sent.message else { return None };
                pages.nodes[to].promised_us = self.limits.lease_us(grant.hint, grant.ttl_us);
                pages.nodes[to].refusals = 0;
            }
            Change::Departs(How::Forced) => pages.nodes[to].promised_us = 0,
            Change::Refused(response) => {
                let is_age = !matches!(response, Response::NotOwner { .. } | Response::Stale { .. });
                let refusals = &mut pages.nodes[to].refusals;
                *refusals = (*refusals + u8::from(is_age)).min(self.limits.refusals_max);
                if let (Rule::LeaseActiveIsYours, Response::LeaseActive { left_us }) = (self.rule, response) {
                    pages.nodes[to].promised_us = left_us;
                }
            }
            _ => {}
        }
        self.check_promise(pages, to);
        let Some(message) = outcome.reply else { return Some(()) };
        let value = if matches!(message, Message::Grant(_)) { pages.nodes[to].value } else { 0 };
        self.send(pages, Sent { from: sent.to, to: sent.from, message, value })
    }

    /// The word that a decision sees, or any ACK meets, under the seed's rules.
    fn seen(&self, word: Word, sent: &Sent) -> Word {
        match (self.rule, sent.message) {
            (Rule::NoGuard, Message::Request(request)) if word.state() == State::Transferring => {
                Word::owned(Silo::new(sent.to), request.epoch)
            }
            (Rule::NoEpochs, Message::Ack(epoch)) if word.state().is_exchanging() => {
                word.with_owner(Silo::new(sent.from)).with_epoch(epoch)
            }
            (Rule::EndlessHeat, _) if word.is_draining() => word.with_hint(Hint::Default),
            _ => word,
        }
    }

    fn received(&self, sent: &Sent) -> Message {
        match (self.rule, sent.message) {
            (Rule::LockHoldsNothing, Message::Grant(mut grant)) if grant.hint == Hint::Lock => {
                grant.hint = Hint::Default;
                Message::Grant(grant)
            }
            (Rule::LeaseAtOldOwner, Message::Grant(mut grant)) => {
                grant.hint = Hint::Default;
                Message::Grant(grant)
            }
            (_, message) => message,
        }
    }

    fn settle(&self, pages: &mut Pages, node: usize, word: Word) {
        let word =
            if self.rule == Rule::EndlessHeat && word.is_draining() { word.with_hint(Hint::Default) } else { word };
        pages.nodes[node].word = word;
    }

    /// A promised lease has not ended, and yet the page may be written elsewhere.
    fn check_promise(&self, pages: &mut Pages, node: usize) {
        let Node { word, promised_us, .. } = pages.nodes[node];
        if promised_us > 0 && !word.state().is_writable() {
            pages.broken = Some("a lease was broken early");
        }
    }

    fn begin(&self, pages: &mut Pages, node: usize) -> Option<()> {
        let table = self.table(node, pages.nodes[node].word);
        std::mem::forget(table.begin_write(0).ok()?);
        self.settle(pages, node, table.word(0));
        Some(())
    }

    fn commit(&self, pages: &mut Pages, node: usize) {
        let before = pages.nodes[node].word;
        if !before.state().is_writable() {
            pages.broken = Some("a write while the page was not writable");
        }
        // The write in progress, found again: a table restored from a busy word has no guard of its own.
        let table = self.table(node, before.quiet());
        if let Ok(writing) = table.begin_write(0) {
            writing.commit(NOW);
        }
        let mut word = table.word(0);
        if self.rule == Rule::WriteErasesLease && before.state() == State::Leased {
            word = word.with_state(State::LocalHot).with_hint(Hint::Default).with_deadline(NOW.plus(1));
        }
        self.settle(pages, node, word);
        if pages.last < self.values_max {
            pages.last += 1;
            pages.nodes[node].value = pages.last;
        }
    }

    /// One microsecond passes at `node`.
    fn tick(&self, pages: &mut Pages, node: usize) -> Option<()> {
        let before = pages.nodes[node].word;
        let left_us = before.deadline().left_us(NOW).saturating_sub(1);
        let word = before.with_deadline(if left_us == 0 { Moment::default() } else { NOW.plus(left_us) });
        pages.nodes[node].promised_us = pages.nodes[node].promised_us.saturating_sub(1);
        if self.rule == Rule::Rollback && word.state() == State::Transferring && left_us == 0 {
            self.settle(pages, node, Word::owned(silo(node), word.epoch()));
            return Some(());
        }
        let table = self.table(node, word);
        let sent = look(&table, 0, NOW);
        self.settle(pages, node, table.word(0));
        if self.rule == Rule::LateIsDead && sent.is_some() && before.state() == State::InDoubt {
            // As `Failed::Dead` of a receiver that nobody has fenced: its word as it was last seen.
            self.settle(pages, node, Word::owned(silo(node), word.epoch()));
            return Some(());
        }
        match sent {
            Some((to, message)) => self.send(pages, Sent { from: node as u8, to: to.number(), message, value: 0 }),
            None => Some(()),
        }
    }

    /// A checked decision is marked, whatever the word is by now.
    fn mark(&self, pages: &mut Pages, node: usize) -> Option<()> {
        let (word, request) = pages.nodes[node].checked.take()?;
        let table = self.table(node, word);
        let message = Message::Request(request);
        let outcome = receive(&table, 0, (request.from, &message), DRAINED, NOW, || ());
        let was_busy = pages.nodes[node].word.is_busy();
        let word = table.word(0);
        pages.nodes[node].word = if was_busy { word.busy() } else { word };
        let (to, value) = (request.from.number(), pages.nodes[node].value);
        self.send(pages, Sent { from: node as u8, to, message: outcome.reply?, value })
    }

    fn settle_transfer(&self, pages: &mut Pages, node: usize, dead: usize) -> Option<()> {
        let table = self.table(node, pages.nodes[node].word);
        let failed = Failed::Dead { receiver: silo(dead), last: pages.nodes[dead].word };
        table.reclaim(0, failed).ok()?.then_some(())?;
        self.settle(pages, node, table.word(0));
        Some(())
    }

    /// The successor takes over what silo 1 has left.
    fn take_over(&self, pages: &mut Pages, successor: usize) -> Option<()> {
        let last = pages.nodes[1].word;
        let table = self.table(successor, pages.nodes[successor].word);
        let value = Cell::new(pages.nodes[successor].value);
        if self.rule == Rule::GrantsDieToo && last.awaits() {
            let word = Word::owned(silo(successor), last.epoch().next());
            (pages.nodes[successor].word, pages.nodes[successor].value) = (word, pages.nodes[1].value);
        } else {
            let _ = table.take_over(0, (silo(1), last), NOW, || value.set(pages.nodes[1].value)).ok()?;
            self.settle(pages, successor, table.word(0));
            pages.nodes[successor].value = value.get();
        }
        // A silo that was only silent goes on with what it has.
        pages.nodes[1].is_taken_over = self.rule != Rule::SilentIsDead;
        pages.nodes[1].promised_us = 0;
        Some(())
    }

    fn own_steps(&self, pages: &Pages, node: usize, steps: &mut Vec<Step>) {
        let (at, word) = (node as u8, pages.nodes[node].word);
        let is_owner = word.state().is_writable();
        let asks = |sent: &Sent| sent.from == at && matches!(sent.message, Message::Request(_));
        for hint in self.asks[node] {
            if word.state() == State::NotOwner && !pages.net.iter().any(asks) {
                steps.push(Step::Ask(at, *hint));
            } else if is_owner && hint.is_lease() && word.state() != State::Leased {
                steps.push(Step::Lease(at, *hint));
            }
        }
        if word.state() == State::Leased && pages.nodes[node].promised_us > 0 {
            steps.push(Step::Release(at));
        }
        if word.is_busy() {
            steps.push(Step::Commit(at));
        } else if is_owner && self.writers[node] {
            steps.push(Step::Begin(at));
        }
        let awaits = word.state().is_exchanging() || matches!(word.state(), State::LocalHot | State::Leased);
        if awaits || pages.nodes[node].promised_us > 0 {
            steps.push(Step::Tick(at));
        }
        if pages.nodes[node].checked.is_some() {
            steps.push(Step::Mark(at));
        }
        for dead in (0..SILOS).filter(|dead| pages.nodes[*dead].is_dead) {
            if word.state().is_exchanging() && word.owner() == silo(dead) {
                steps.push(Step::Bereave(at, dead as u8));
            }
        }
    }

    pub fn one_owner(&self, pages: &Pages) -> bool {
        living(pages).filter(|node| node.word.state().is_writable()).count() <= 1
    }

    /// Somebody has the page with its last value, or is about to learn who has.
    pub fn is_kept(&self, pages: &Pages) -> bool {
        let holds = |node: &Node| node.word.state().is_writable() || node.word.state().is_exchanging();
        let owner = living(pages).find(|node| node.word.state().is_writable());
        match owner {
            Some(owner) => owner.value == pages.last,
            None => living(pages).any(|node| holds(node) && node.value == pages.last),
        }
    }
}

/// The silos whose words still count.
fn living(pages: &Pages) -> impl Iterator<Item = &Node> {
    pages.nodes.iter().filter(|node| !node.is_taken_over)
}

impl Model for World {
    type State = Pages;
    type Action = Step;

    fn init_states(&self) -> Vec<Pages> {
        let node = |at: usize| {
            let table = PageTable::new(silo(at), 1, self.limits, |_| silo(0));
            let word = table.word(0);
            Node { word, value: 0, promised_us: 0, refusals: 0, is_dead: false, is_taken_over: false, checked: None }
        };
        vec![Pages { nodes: [node(0), node(1), node(2)], net: Vec::new(), last: 0, broken: None }]
    }

    fn actions(&self, pages: &Pages, steps: &mut Vec<Step>) {
        for node in (0..SILOS).filter(|node| !pages.nodes[*node].is_dead) {
            self.own_steps(pages, node, steps);
        }
        for (at, sent) in pages.net.iter().enumerate() {
            if !pages.nodes[sent.to as usize].is_dead {
                steps.push(Step::Deliver(at as u8));
                if self.is_lossy {
                    steps.push(Step::Double(at as u8));
                }
            }
            if self.is_lossy || pages.nodes[sent.to as usize].is_dead {
                steps.push(Step::Lose(at as u8));
            }
        }
        if self.has_crash && !pages.nodes[1].is_dead {
            steps.push(Step::Crash(1));
        }
        let is_fenced = pages.nodes[1].is_dead || self.rule == Rule::SilentIsDead;
        if let Some(successor) = self.successor.filter(|_| is_fenced && !pages.nodes[1].is_taken_over) {
            steps.push(Step::Inherit(successor));
        }
    }

    fn next_state(&self, before: &Pages, step: Step) -> Option<Pages> {
        let mut pages = before.clone();
        match step {
            Step::Ask(node, hint) => self.ask(&mut pages, node as usize, hint)?,
            Step::Lease(node, hint) => {
                let word = pages.nodes[node as usize].word;
                let (from, epoch) = (Silo::new(node), word.epoch());
                let request = Request { from, epoch, hint, ttl_us: 2, refusals: 0, authority: Authority::Port };
                let table = self.table(node as usize, word);
                if !table.decide(0, &request, DRAINED, NOW).is_granted() {
                    return None;
                }
                self.settle(&mut pages, node as usize, table.word(0));
                pages.nodes[node as usize].promised_us = table.word(0).deadline().left_us(NOW);
            }
            Step::Release(node) => {
                let table = self.table(node as usize, pages.nodes[node as usize].word);
                table.release(0).ok()?;
                self.settle(&mut pages, node as usize, table.word(0));
                pages.nodes[node as usize].promised_us = 0;
            }
            Step::Begin(node) => self.begin(&mut pages, node as usize)?,
            Step::Commit(node) => self.commit(&mut pages, node as usize),
            Step::Deliver(at) => {
                let sent = pages.net.remove(at as usize);
                self.deliver(&mut pages, &sent)?;
            }
            Step::Double(at) => {
                let sent = pages.net[at as usize].clone();
                self.deliver(&mut pages, &sent)?;
            }
            Step::Lose(at) => drop(pages.net.remove(at as usize)),
            Step::Tick(node) => self.tick(&mut pages, node as usize)?,
            Step::Mark(node) => self.mark(&mut pages, node as usize)?,
            Step::Crash(node) => pages.nodes[node as usize].is_dead = true,
            Step::Bereave(node, dead) => self.settle_transfer(&mut pages, node as usize, dead as usize)?,
            Step::Inherit(successor) => self.take_over(&mut pages, successor as usize)?,
        }
        Some(pages)
    }

    fn properties(&self) -> Vec<Property<World>> {
        vec![
            Property::always("one silo may write", |world: &World, pages| world.one_owner(pages)),
            Property::always("the page is kept with its last value", |world: &World, pages| world.is_kept(pages)),
            Property::always("no rule is broken", |_, pages: &Pages| pages.broken.is_none()),
            // What a bounded model must reach, or the rest would hold of nothing.
            Property::sometimes("the page moves twice", |_, pages: &Pages| {
                pages.nodes.iter().any(|node| node.word.state().is_writable() && node.word.epoch() >= Epoch::new(2))
            }),
        ]
    }
}
