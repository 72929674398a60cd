//! The list that compares the marked moment with the one shown.

use super::{Cell, Line, REST, Spec, column, plain};
use crate::model::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::format::{count, number, probability, time};

pub(super) static SPEC: Spec = Spec {
    columns: &[
        column("what", [30, 34, 34], |m, row| on(m, row, |pair| Cell::words(&pair.name))),
        column("at the mark", [13, 16, 16], |m, row| on(m, row, |pair| side(pair.then.as_ref()))),
        column("shown", [13, 16, 16], |m, row| on(m, row, |pair| side(pair.now.as_ref()))),
        column("change", [REST, REST, REST], |m, row| on(m, row, change)),
    ],
    len: |model| model.compared.len(),
    key: |model, row| model.compared.get(row).map_or(0, Pair::key),
    details,
};

/// A named value at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: String,
    /// The value as text.
    pub text: String,
    /// The value as a number, if it is one.
    pub number: Option<f64>,
}

/// A value at both moments; `None`: unknown at that moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    name: String,
    then: Option<Fact>,
    now: Option<Fact>,
}

impl Pair {
    /// The row's key: FNV-1a of the name, so it stays the same while values come and go.
    fn key(&self) -> u64 {
        self.name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }
}

/// The values at the mark and at the moment shown; empty without a mark.
pub fn pairs(model: &Model) -> Vec<Pair> {
    let Some(mark) = &model.mark else { return Vec::new() };
    let then = facts(mark);
    let mut now = model.picture().map(facts).unwrap_or_default();
    let mut pairs: Vec<Pair> = Vec::with_capacity(then.len().max(now.len()));
    for fact in then {
        let place = now.iter().position(|other| other.name == fact.name);
        let other = place.map(|place| now.remove(place));
        pairs.push(Pair { name: fact.name.clone(), then: Some(fact), now: other });
    }
    pairs.extend(now.into_iter().map(|fact| Pair { name: fact.name.clone(), then: None, now: Some(fact) }));
    pairs
}

fn on(model: &Model, row: usize, cell: impl Fn(&Pair) -> Cell) -> Cell {
    model.compared.get(row).map_or_else(Cell::absent, cell)
}

fn side(fact: Option<&Fact>) -> Cell {
    match fact {
        None => Cell::absent(),
        Some(Fact { text, number: Some(number), .. }) => Cell::number(text, *number),
        Some(Fact { text, number: None, .. }) => Cell::words(text),
    }
}

/// A change by this factor or more is shown as a factor, not in percent.
const PERCENT_MAX: f64 = 1_000.0;

/// The change in percent, or in words.
fn change(pair: &Pair) -> Cell {
    let (Some(then), Some(now)) = (&pair.then, &pair.now) else {
        return Cell::words("only on one side").toned(Tone::Warn);
    };
    match (then.number, now.number) {
        (Some(then), Some(now)) if then == now => Cell::number("same", 0.0).toned(Tone::Dim),
        (Some(then), Some(now)) if then != 0.0 => {
            let percent = (now - then) / then * 100.0;
            let tone = if percent.abs() >= 20.0 { Tone::Accent } else { Tone::Plain };
            let text = match percent.abs() < PERCENT_MAX {
                true => format!("{percent:+.0} %"),
                false => format!("{} times", number(now / then)),
            };
            Cell::number(text, percent).toned(tone)
        }
        (Some(_), Some(_)) => Cell::number(format!("from none to {}", now.text), f64::MAX).toned(Tone::Accent),
        _ if then.text == now.text => Cell::words("same").toned(Tone::Dim),
        _ => Cell::words("other").toned(Tone::Accent),
    }
}

fn details(model: &Model, row: usize) -> Vec<Line> {
    let (Some(pair), Some(mark), Some(now)) = (model.compared.get(row), &model.mark, model.picture()) else {
        return Vec::new();
    };
    let said = |fact: &Option<Fact>| fact.as_ref().map_or_else(|| "not known".to_owned(), |fact| fact.text.clone());
    let apart_ns = now.snapshot.at_ns.abs_diff(mark.snapshot.at_ns);
    vec![
        plain(format!("{}: {} at the mark, {} shown", pair.name, said(&pair.then), said(&pair.now))),
        plain(format!(
            "mark at {:.1} s, shown {:.1} s after the start: {} apart",
            mark.snapshot.at_ns as f64 / 1e9,
            now.snapshot.at_ns as f64 / 1e9,
            time(apart_ns)
        )),
        ("Rates and percentiles are of the second before each moment.".to_owned(), Tone::Dim),
    ]
}

/// The values of a moment, in a fixed order.
pub fn facts(picture: &Picture) -> Vec<Fact> {
    let mut facts = whole(picture);
    for (silo, derived) in picture.snapshot.silos.iter().zip(&picture.derived.silos) {
        let name = |what: &str| format!("silo {}: {what}", silo.id);
        for (what, value) in ["idle", "written", "in flight", "completed"].into_iter().zip(derived.slots) {
            facts.push(counted(name(&format!("slots {what}")), value as u64));
        }
        facts.push(timed(name("oldest shot"), derived.oldest.map(|(_, age_ns)| age_ns)));
        for (what, value) in ["free", "running", "claimed", "quarantined"].into_iter().zip(derived.workers) {
            facts.push(counted(name(&format!("workers {what}")), value as u64));
        }
        for (stage, times) in silo.stages.iter().zip(&derived.stages) {
            facts.push(timed(name(&format!("{} p50", stage.name)), times.map(|times| times.p50_ns)));
            facts.push(timed(name(&format!("{} p99", stage.name)), times.map(|times| times.p99_ns)));
        }
        for ring in &silo.rings {
            facts.push(counted(name(&format!("{} depth", ring.name)), ring.depth));
            facts.push(counted(name(&format!("{} found full", ring.name)), ring.refusals));
        }
    }
    for (thread, derived) in picture.snapshot.threads.iter().zip(&picture.derived.threads) {
        let name = |what: &str| format!("{}: {what}", thread.name);
        facts.push(worded(name("policy"), thread.policy_acknowledged.name()));
        facts.push(shared(name("busy"), derived.busy));
        facts.push(timed(name("gap p99"), derived.gap.map(|gap| gap.p99_ns)));
        facts.push(timed(name("gap max"), derived.gap.map(|gap| gap.max_ns)));
    }
    facts
}

fn whole(picture: &Picture) -> Vec<Fact> {
    let (derived, totals) = (&picture.derived, &picture.derived.totals);
    let latency = derived.latency;
    let rate = derived.rates.map(|rates| rates.answered);
    let judged = totals.shots_with_observables;
    let wrong = (judged > 0).then(|| totals.logical_errors as f64 / judged as f64);
    vec![
        worded("profile".to_owned(), &picture.snapshot.engine.profile),
        Fact { name: "answered/s".to_owned(), text: rate.map_or_else(dash, number), number: rate },
        counted("backlog".to_owned(), derived.backlog),
        counted("in path".to_owned(), derived.open),
        timed("latency p50".to_owned(), latency.map(|latency| latency.p50_ns)),
        timed("latency p99".to_owned(), latency.map(|latency| latency.p99_ns)),
        timed("latency p99.9".to_owned(), latency.map(|latency| latency.p999_ns)),
        timed("latency max".to_owned(), latency.map(|latency| latency.max_ns)),
        counted("answered".to_owned(), totals.answered),
        counted("late".to_owned(), totals.late),
        counted("errors".to_owned(), totals.errored),
        Fact { name: "logical error rate".to_owned(), text: wrong.map_or_else(dash, probability), number: wrong },
        counted("active incidents".to_owned(), crate::model::alarms::incident_counts(&picture.snapshot).active as u64),
    ]
}

fn dash() -> String {
    "–".to_owned()
}

fn worded(name: String, text: &str) -> Fact {
    Fact { name, text: text.to_owned(), number: None }
}

fn counted(name: String, value: u64) -> Fact {
    Fact { name, text: count(value), number: Some(value as f64) }
}

fn timed(name: String, ns: Option<u64>) -> Fact {
    Fact { name, text: ns.map_or_else(dash, time), number: ns.map(|ns| ns as f64) }
}

fn shared(name: String, share: Option<f64>) -> Fact {
    Fact { name, text: share.map_or_else(dash, |share| format!("{:.0} %", share * 100.0)), number: share }
}

#[cfg(test)]
mod tests {
    use super::{Fact, Pair, change};

    #[test]
    fn what_was_none_is_said_as_the_value_shown() {
        let fact = |text: &str, number| Some(Fact { name: String::new(), text: text.to_owned(), number: Some(number) });
        let told = |then, now| change(&Pair { name: String::new(), then, now }).text;
        assert_eq!(told(fact("0 %", 0.0), fact("35 %", 0.35)), "from none to 35 %");
        assert_eq!(told(fact("0", 0.0), fact("1.0e-3", 0.001)), "from none to 1.0e-3");
        assert_eq!(told(fact("2", 2.0), fact("3", 3.0)), "+50 %");
    }
}
