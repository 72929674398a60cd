//! Hosts that are there, and questions that wait for an answer.
//!
//! Owns both tables, each behind one lock that is held for one look-up or change. Any thread uses
//! them. Bounds: [`HOSTS_MAX`] incarnations, [`QUESTIONS_MAX`] questions. Never answers a question
//! while it holds a lock. The presence handler is called under a lock of its own, which keeps the
//! order of the events; it may ask.
//!
//! # Why each question is answered exactly once
//!
//! A question's `answered` lies in the table until somebody takes it out: the answer, the timeout,
//! the host's end, or the link's. Who takes it out calls it; who finds nothing does nothing.

#![expect(clippy::disallowed_types, reason = "threads of zenoh and of callers share the tables; none is hot")]

use super::{Answered, HOSTS_MAX, NoAnswer, Presence, QUESTIONS_MAX};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Handler of presence.
type OnPresence = Box<dyn Fn(Presence) + Send + Sync>;

/// The tables of one link.
pub(super) struct Table {
    state: Mutex<State>,
    announcing: Mutex<Announcing>,
    on_presence: OnPresence,
}

#[derive(Default)]
struct State {
    /// Incarnations by name, in the order in which they came.
    present: BTreeMap<String, Vec<u64>>,
    incarnations: usize,
    questions: BTreeMap<u64, Waiting>,
    question_next: u64,
    is_closed: bool,
}

/// Whether presence is told to the handler. Until the link is open it is only remembered.
#[derive(PartialEq, Eq)]
enum Announcing {
    NotYet,
    Yes,
}

struct Waiting {
    host: String,
    incarnation: u64,
    answered: Answered,
}

/// A question that did not enter the table.
pub(super) struct Turned {
    pub(super) why: NoAnswer,
    pub(super) answered: Answered,
}

impl Table {
    pub(super) fn new(on_presence: OnPresence) -> Table {
        Table { state: Mutex::default(), announcing: Mutex::new(Announcing::NotYet), on_presence }
    }

    /// Enters a question to `host`.
    pub(super) fn enter(&self, host: &str, answered: Answered) -> Result<u64, Turned> {
        let mut state = self.state();
        let Some(incarnation) = state.last(host).filter(|_| !state.is_closed) else {
            return Err(Turned { why: NoAnswer::Unreachable, answered });
        };
        if state.questions.len() >= QUESTIONS_MAX {
            let why = format!("{QUESTIONS_MAX} questions wait for an answer; ask fewer at a time");
            return Err(Turned { why: NoAnswer::Refused(why), answered });
        }
        let id = state.question_next;
        state.question_next += 1;
        state.questions.insert(id, Waiting { host: host.to_owned(), incarnation, answered });
        Ok(id)
    }

    /// Whether question `id` still waits.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.state().questions.contains_key(&id)
    }

    /// Answers question `id`, unless it was answered before.
    pub(super) fn finish(&self, id: u64, answer: Result<Vec<u8>, NoAnswer>) {
        let waiting = self.state().questions.remove(&id);
        if let Some(waiting) = waiting {
            (waiting.answered)(answer);
        }
    }

    /// Notes that a host is there.
    pub(super) fn came(&self, name: &str, incarnation: u64) {
        let announcing = lock(&self.announcing);
        if self.state().add(name, incarnation) && *announcing == Announcing::Yes {
            (self.on_presence)(Presence::Here { name: name.to_owned(), incarnation });
        }
    }

    /// Notes that a host is gone. Its questions are unreachable. Where it was the last of its name
    /// that came, the one before it is told again: that one has the name now.
    pub(super) fn went(&self, name: &str, incarnation: u64) {
        let unreachable = {
            let announcing = lock(&self.announcing);
            let (was_there, remaining, unreachable) = {
                let mut state = self.state();
                let was_last = state.last(name) == Some(incarnation);
                let was_there = state.remove(name, incarnation);
                let remaining = state.last(name).filter(|_| was_last);
                (was_there, remaining, state.take_questions(|to, of| to == name && of == incarnation))
            };
            if was_there && *announcing == Announcing::Yes {
                (self.on_presence)(Presence::Gone { name: name.to_owned(), incarnation });
                if let Some(incarnation) = remaining {
                    (self.on_presence)(Presence::Here { name: name.to_owned(), incarnation });
                }
            }
            unreachable
        };
        for waiting in unreachable {
            (waiting.answered)(Err(NoAnswer::Unreachable));
        }
    }

    /// Tells the handler about every host that is there, and from now on about each change.
    pub(super) fn announce(&self) {
        let mut announcing = lock(&self.announcing);
        *announcing = Announcing::Yes;
        let present = self.state().present.clone();
        for (name, incarnations) in present {
            for incarnation in incarnations {
                (self.on_presence)(Presence::Here { name: name.clone(), incarnation });
            }
        }
    }

    /// Whether an incarnation of host `name` is there.
    pub(super) fn is_present(&self, name: &str) -> bool {
        self.state().present.contains_key(name)
    }

    /// Names of all hosts that are there.
    pub(super) fn present(&self) -> Vec<String> {
        self.state().present.keys().cloned().collect()
    }

    /// Ends the link: nothing is told any more, waiting and later questions are unreachable.
    pub(super) fn close(&self) {
        *lock(&self.announcing) = Announcing::NotYet;
        let unreachable = {
            let mut state = self.state();
            state.is_closed = true;
            state.take_questions(|_, _| true)
        };
        for waiting in unreachable {
            (waiting.answered)(Err(NoAnswer::Unreachable));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Whether the incarnation is new, and there is room for it.
    fn add(&mut self, name: &str, incarnation: u64) -> bool {
        let is_known = self.present.get(name).is_some_and(|known| known.contains(&incarnation));
        if is_known || self.incarnations >= HOSTS_MAX {
            return false;
        }
        self.present.entry(name.to_owned()).or_default().push(incarnation);
        self.incarnations += 1;
        true
    }

    /// The incarnation of host `name` that came last.
    fn last(&self, name: &str) -> Option<u64> {
        self.present.get(name)?.last().copied()
    }

    /// Whether the incarnation was there.
    fn remove(&mut self, name: &str, incarnation: u64) -> bool {
        let Some(known) = self.present.get_mut(name) else { return false };
        let Some(index) = known.iter().position(|&known| known == incarnation) else { return false };
        known.remove(index);
        if known.is_empty() {
            self.present.remove(name);
        }
        self.incarnations -= 1;
        true
    }

    fn take_questions(&mut self, is_taken: impl Fn(&str, u64) -> bool) -> Vec<Waiting> {
        let taken = self.questions.extract_if(.., |_, waiting| is_taken(&waiting.host, waiting.incarnation));
        taken.map(|(_, waiting)| waiting).collect()
    }
}

/// A handler that panicked leaves the tables as they were before or after its call, so they can
/// still be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{HOSTS_MAX, NoAnswer, Presence, QUESTIONS_MAX, Table};
    use std::sync::mpsc::{Receiver, Sender, channel};

    type Answer = Result<Vec<u8>, NoAnswer>;

    fn table() -> (Table, Receiver<Presence>) {
        let (sender, receiver) = channel();
        let table = Table::new(Box::new(move |presence| sender.send(presence).unwrap()));
        (table, receiver)
    }

    fn enter(table: &Table, host: &str, answers: &Sender<Answer>) -> Result<u64, NoAnswer> {
        let answers = answers.clone();
        table.enter(host, Box::new(move |answer| answers.send(answer).unwrap())).map_err(|turned| turned.why)
    }

    fn here(name: &str, incarnation: u64) -> Presence {
        Presence::Here { name: name.to_owned(), incarnation }
    }

    #[test]
    fn presence_is_told_once_and_only_after_the_announcement() {
        let (table, told) = table();
        table.came("b", 1);
        table.came("c", 1);
        table.went("c", 1);
        assert!(told.try_recv().is_err());
        table.announce();
        table.came("b", 1);
        table.came("b", 2);
        table.went("b", 1);
        table.went("b", 1);
        let gone = Presence::Gone { name: "b".to_owned(), incarnation: 1 };
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [here("b", 1), here("b", 2), gone]);
        assert!(table.is_present("b") && !table.is_present("c"));
        table.close();
        table.went("b", 2);
        assert!(told.try_recv().is_err(), "a closed link tells nothing");
    }

    #[test]
    fn the_end_of_a_host_leaves_the_other_one_of_its_name() {
        let (table, told) = table();
        table.announce();
        // A host hangs and is replaced, goes on, and is ended then.
        [2, 1].iter().for_each(|incarnation| table.came("b", *incarnation));
        table.went("b", 1);
        let gone = |incarnation| Presence::Gone { name: "b".to_owned(), incarnation };
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [here("b", 2), here("b", 1), gone(1), here("b", 2)]);
        table.went("b", 2);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [gone(2)]);
    }

    #[test]
    fn a_question_is_answered_by_the_first_that_takes_it() {
        let (table, _told) = table();
        let (sender, answers) = channel();
        assert_eq!(enter(&table, "b", &sender), Err(NoAnswer::Unreachable));
        table.came("b", 1);
        let id = enter(&table, "b", &sender).unwrap();
        assert!(table.waits(id));
        table.finish(id, Ok(vec![7]));
        table.finish(id, Err(NoAnswer::TimedOut));
        table.went("b", 1);
        table.close();
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Ok(vec![7])]);
        assert_eq!(enter(&table, "b", &sender), Err(NoAnswer::Unreachable));
    }

    #[test]
    fn the_end_of_an_incarnation_ends_only_its_own_questions() {
        let (table, _told) = table();
        let (sender, answers) = channel();
        table.came("b", 1);
        let to_the_first = enter(&table, "b", &sender).unwrap();
        table.came("b", 2);
        let to_the_second = enter(&table, "b", &sender).unwrap();
        table.went("b", 1);
        assert!(!table.waits(to_the_first) && table.waits(to_the_second));
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Err(NoAnswer::Unreachable)]);
    }

    #[test]
    fn both_tables_are_bounded() {
        let (table, told) = table();
        table.announce();
        (0..2 * HOSTS_MAX as u64).for_each(|incarnation| table.came("b", incarnation));
        assert_eq!(told.try_iter().count(), HOSTS_MAX);
        let (sender, _answers) = channel();
        for _ in 0..QUESTIONS_MAX {
            enter(&table, "b", &sender).unwrap();
        }
        assert!(matches!(enter(&table, "b", &sender), Err(NoAnswer::Refused(_))));
    }
}
