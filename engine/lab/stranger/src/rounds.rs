//! One round: what it draws, runs and checks. A round's draws depend on the seed and on its number alone.

mod console;
mod corrupted;
mod datagrams;
mod region;
mod starved;
mod stream;

use crate::draw::Draw;
use crate::engine::{Engine, Out, PATIENCE, judge_report, report};
use crate::ledger::Ledger;
use crate::model::Model;
use crate::tally::Tally;
use crate::world::{Hang, Ran, Tree, World};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

/// The bundled models that rounds use.
#[derive(Debug)]
pub struct Models {
    pub d3: Model,
    pub d5: Model,
}

impl Models {
    /// A model and its bundled name: the small one three times of four.
    fn draw(&mut self, draw: &mut Draw) -> (&mut Model, &'static str) {
        if draw.one_in(4) { (&mut self.d5, "surface_d5") } else { (&mut self.d3, "surface_d3") }
    }
}

/// What a round is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Hundreds of thousands of shots through standard input or a file.
    Burst,
    /// Fewer, any profile, many faults.
    Stream,
    /// UDP and Unix sockets.
    Datagrams,
    /// Shared memory, by the published clients.
    Region,
    /// Too little of something.
    Starved,
    /// Files that are damaged between runs.
    Corrupted,
    /// The console in a pseudo-terminal.
    Console,
}

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

const KINDS: [Kind; 14] = [
    Kind::Burst,
    Kind::Burst,
    Kind::Burst,
    Kind::Burst,
    Kind::Burst,
    Kind::Stream,
    Kind::Stream,
    Kind::Datagrams,
    Kind::Datagrams,
    Kind::Region,
    Kind::Region,
    Kind::Starved,
    Kind::Corrupted,
    Kind::Console,
];

/// Runs round `number` of `seed`, or one of `kind` if it is given. Returns its name and what it found.
pub fn run(tree: &Tree, models: &mut Models, seed: u64, number: u64, kind: Option<Kind>) -> (String, Tally) {
    let mut draw = Draw::new(seed, number);
    // Each kind once in the first rounds of a run, so that a short run has them all.
    let drawn = *draw.pick(&KINDS);
    let drawn = match kind {
        Some(kind) => kind,
        None if number < 7 => {
            [Kind::Burst, Kind::Datagrams, Kind::Region, Kind::Stream, Kind::Starved, Kind::Corrupted, Kind::Console]
                [number as usize]
        }
        None => drawn,
    };
    let name = drawn.name();
    let mut tally = Tally::default();
    match World::new(tree, &format!("{seed}-{number}")) {
        Err(error) => tally.violation("the round's directories cannot be made", error.to_string()),
        Ok(world) => {
            match drawn {
                Kind::Burst => stream::run(&world, models, &mut draw, &mut tally, true),
                Kind::Stream => stream::run(&world, models, &mut draw, &mut tally, false),
                Kind::Datagrams => datagrams::run(&world, models, &mut draw, &mut tally),
                Kind::Region => region::run(&world, models, &mut draw, &mut tally),
                Kind::Starved => starved::run(&world, &mut draw, &mut tally),
                Kind::Corrupted => corrupted::run(&world, &mut draw, &mut tally),
                Kind::Console => console::run(&world, &mut draw, &mut tally),
            }
            // A run that found no room on the disk may have no page.
            if drawn != Kind::Starved {
                crate::after::pages(&world, &mut tally);
            }
        }
    }
    (name, tally)
}

/// How an engine is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its input ends.
    Input,
    Term,
    Int,
    Drain,
    Stop,
    Kill,
}

impl Ending {
    /// Exit statuses that the documents allow.
    fn statuses(self) -> &'static [i32] {
        match self {
            Ending::Input | Ending::Drain => &[0],
            // The input may have ended before.
            Ending::Term => &[143, 0],
            Ending::Int => &[130, 0],
            // Shots in flight are answered with an error, which makes the run unsound.
            Ending::Stop => &[0, 1],
            Ending::Kill => &[],
        }
    }

    /// Asks the engine to end.
    fn ask(self, world: &World, engine: &Engine, tally: &mut Tally) {
        let ctl =
            |words: &str, tally: &mut Tally| match world.run(&format!("ctl {words} --to {}", engine.pid), PATIENCE) {
                Ok(ran) => {
                    if let Some(trouble) = ran.trouble(&[0, 1, 2]) {
                        tally.violation(format!("ctl {words}: {trouble}"), ran.out);
                    }
                }
                Err(Hang(evidence)) => tally.hang(format!("ctl {words}"), evidence),
            };
        match self {
            Ending::Input => {}
            Ending::Term => drop(engine.signal(Signal::TERM)),
            Ending::Int => drop(engine.signal(Signal::INT)),
            Ending::Kill => drop(engine.signal(Signal::KILL)),
            Ending::Drain => ctl("drain", tally),
            Ending::Stop => ctl("stop", tally),
        }
        if self != Ending::Input {
            tally.fault(&format!("ended by {self:?}").to_lowercase());
        }
    }
}

/// Judges an engine that was not killed; its report.
fn judge_end(ran: &Ran, ending: Ending, may_err: bool, tally: &mut Tally) -> Option<Value> {
    let mut statuses = ending.statuses().to_vec();
    if may_err {
        statuses.push(1);
    }
    let report = report(&ran.out);
    if let Some(trouble) = ran.trouble(&statuses) {
        let alarms = report.as_ref().map_or(Value::Null, |report| report["alarms"].clone());
        let reasons: Vec<Value> = alarms
            .as_array()
            .into_iter()
            .flatten()
            .filter(|alarm| alarm["unsound"] == true)
            .map(|alarm| alarm["what"].clone())
            .collect();
        tally.violation(format!("{}: {trouble}", ran.words), json!(reasons));
    }
    match report {
        None => {
            tally.violation(format!("{}: no report", ran.words), crate::world::tail(&ran.out));
            None
        }
        Some(report) => {
            judge_report(&report, ran.code(), may_err || ending == Ending::Stop, tally);
            Some(report)
        }
    }
}

/// Reports an engine that was to end by signal 9 and ended before that in another way, or had a panic.
fn judge_kill(ran: &Ran, tally: &mut Tally) {
    let trouble = match ran.status.signal() {
        Some(9) if ran.err.contains("panicked at") => "a panic before it was killed",
        Some(9) => return,
        _ => "not ended by the signal that killed it",
    };
    tally.violation(format!("{}: {trouble}: {}", ran.words, ran.status), crate::world::tail(&ran.err));
}

/// The board of an engine that was killed must be readable; how many shots it had accepted.
fn postmortem(world: &World, pid: u32, tally: &mut Tally) -> Option<u64> {
    let words = format!("postmortem {pid} --logs logs --json");
    match world.run(&words, PATIENCE) {
        Err(Hang(evidence)) => tally.hang(words, evidence),
        Ok(ran) => match (ran.trouble(&[0]), serde_json::from_str::<Value>(&ran.out)) {
            (None, Ok(board)) if board["submitted"].is_u64() => return board["submitted"].as_u64(),
            (trouble, _) => tally.violation(
                format!("{words} cannot be read: {}", trouble.unwrap_or_else(|| "no JSON".into())),
                crate::world::tail(&ran.out),
            ),
        },
    }
    None
}

/// Adds a ledger to the tally. `accepted`: shots that the program says it took; all must be answered.
fn settle(ledger: &Ledger, accepted: u64, ingress: &str, tally: &mut Tally) {
    let lost = accepted.saturating_sub(ledger.answered);
    tally.shots += ledger.shots() as u64;
    tally.accepted += accepted;
    tally.answered += ledger.answered;
    tally.errors += ledger.errors;
    tally.lost += lost;
    tally.duplicated += ledger.duplicated;
    tally.wrong += ledger.wrong;
    *tally.ingresses.entry(ingress.into()).or_default() += ledger.shots() as u64;
    if lost + ledger.duplicated + ledger.wrong + ledger.foreign > 0 {
        let (count, first) = ledger.unanswered();
        tally.violation(
            format!(
                "{ingress}: {lost} lost, {} duplicated, {} wrong, {} foreign",
                ledger.duplicated, ledger.wrong, ledger.foreign
            ),
            json!({ "first": ledger.first, "unanswered": count, "unanswered_first": first }),
        );
    }
    // Any decoder that is not exact agrees with an exact one nearly always at this noise.
    if ledger.others >= 2_000 && ledger.others_right * 10 < ledger.others * 9 {
        tally.violation(
            format!("{ingress}: {} of {} predictions of other decoders are right", ledger.others_right, ledger.others),
            Value::Null,
        );
    }
}

/// Starts an engine that takes shots from other processes, and waits until it is live.
fn start_live(world: &World, words: &str, tally: &mut Tally) -> Option<Engine> {
    match Engine::start(world, words, Stdio::null(), Out::File) {
        Err(error) => {
            tally.violation(format!("{words}: not started"), error.to_string());
            None
        }
        Ok(mut engine) => {
            if engine.until_live(world, tally) {
                return Some(engine);
            }
            match engine.end(std::time::Duration::from_secs(1)) {
                Ok(ran) => tally.violation(format!("{words}: ended before it was live"), ran.err + &ran.out),
                Err(Hang(evidence)) => tally.hang(words, evidence),
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KINDS, Kind, judge_kill};
    use crate::tally::Tally;
    use crate::world::Ran;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn a_kind_has_its_name_and_another_name_is_refused() {
        assert!(KINDS.into_iter().all(|kind| Kind::from_name(&kind.name()) == Some(kind)));
        assert_eq!(Kind::from_name("brust"), None);
    }

    #[test]
    fn an_engine_that_crashes_before_it_is_killed_is_reported() {
        let found = |status: i32, err: &str| {
            let status = ExitStatus::from_raw(status);
            let ran = Ran { words: "run".into(), status, out: String::new(), err: err.into() };
            let mut tally = Tally::default();
            judge_kill(&ran, &mut tally);
            tally.violations.len()
        };
        // Signals 9, 11, and exit status 1.
        assert_eq!([found(9, ""), found(11, ""), found(1 << 8, ""), found(9, "panicked at x.rs")], [0, 1, 1, 1]);
    }
}
