//! What may be done to the engine beside its profile, rate and feed: silos, moves, another input. And what was done, with its
//! effect.
//!
//! Pure, on the console thread. Bounded by [`MEASURED_MAX`] actions whose effect is remembered.
//!
//! # Why a silo's death is typed
//!
//! `y` answers every question, and a hand that answers many of them stops reading. Whoever kills a silo has its shots
//! answered with an error: that takes a word that no habit types.

use super::derived::Derived;
use super::lists::Line;
use super::{Model, Picture};
use crate::theme::Tone;
use crate::widgets::format::count;
use pinwheel_engine::engine::wire::InputSpec;
use pinwheel_engine::engine::{LiveDrill, SiloDeed};

/// Most actions whose effect is remembered.
pub const MEASURED_MAX: usize = 64;
/// So long after an action its effect is read: a second of percentiles that began after it, and the threads' answer.
pub const AFTER_NS: u64 = 3_000_000_000;
/// An event of the log and an action on the board that are no further apart are the same.
const SAME_NS: u64 = 200_000_000;

/// Something that is done to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A silo is drained, killed or brought back.
    Silo {
        /// Which.
        silo: u32,
        /// What.
        deed: SiloDeed,
    },
    /// A stream goes to another silo.
    Move {
        /// Which.
        stream: u32,
        /// Where to.
        to: u32,
    },
    /// A stall or a fault is provoked, for a limited time.
    Drill(LiveDrill),
    /// Shots come from elsewhere.
    Input(InputSpec),
}

impl Deed {
    /// In a few words, as the palette lists it and an answer names it.
    pub fn label(&self) -> String {
        match self {
            Deed::Silo { silo, deed } => format!("{} silo {silo}", deed.name()),
            Deed::Move { stream, to } => format!("move stream {stream} to silo {to}"),
            Deed::Drill(drill) => format!("drill {}", drill.name()),
            Deed::Input(spec) => format!("input {spec}"),
        }
    }

    /// What must be typed before it is done; `None`: a yes is enough.
    pub fn word(&self) -> Option<String> {
        match self {
            Deed::Silo { silo, deed: SiloDeed::Kill } => Some(format!("kill {silo}")),
            Deed::Drill(drill) if drill.ends_the_run() => Some(format!("drill {}", drill.name())),
            Deed::Silo { .. } | Deed::Move { .. } | Deed::Drill(_) | Deed::Input(_) => None,
        }
    }

    /// What it means, for the question.
    pub fn meaning(&self, model: &Model) -> Vec<Line> {
        let open = model.live.picture.as_ref().map_or(0, |picture| picture.derived.open);
        let texts: [(String, Tone); 2] = match self {
            Deed::Silo { silo, deed: SiloDeed::Drain } => [
                (format!("The streams of silo {silo} move to others one by one; none is placed there."), Tone::Plain),
                ("No shot is lost; rejoin brings the silo back.".to_owned(), Tone::Plain),
            ],
            Deed::Silo { silo, deed: SiloDeed::Kill } => [
                (format!("✖ The path of silo {silo} dies: its open shots are answered with an error."), Tone::Bad),
                ("Its streams are decoded by an heir until rejoin builds it anew.".to_owned(), Tone::Bad),
            ],
            Deed::Silo { silo, deed: SiloDeed::Rejoin } => [
                (format!("Silo {silo} comes back: a dead one with a path that is built anew."), Tone::Plain),
                ("Streams come to it as they are placed or moved.".to_owned(), Tone::Plain),
            ],
            Deed::Move { stream, to } => [
                (format!("The shots of stream {stream} wait at the feed until silo {to} has its state."), Tone::Plain),
                ("A lease that holds it elsewhere is broken, in your name.".to_owned(), Tone::Warn),
            ],
            Deed::Drill(drill) => [
                (format!("{}.", drill.what()), Tone::Warn),
                match drill.ends_the_run() {
                    true => ("✖ The engine drains and the run ends.".to_owned(), Tone::Bad),
                    false => {
                        let cause = drill.expected().name();
                        (format!("It ends by itself; an alarm must come and name the cause: {cause}."), Tone::Plain)
                    }
                },
            ],
            Deed::Input(spec) => [
                (
                    format!("The engine drains: {} shots in the path are answered, its report is kept;", count(open)),
                    Tone::Warn,
                ),
                (format!("  then it starts anew on {spec}. This console stays."), Tone::Plain),
            ],
        };
        texts.to_vec()
    }
}

/// A deed by its words: `kill silo 1`, `move stream 3 to silo 0`, `input shots.b8`.
pub fn parse(text: &str) -> Option<Deed> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["input", ..] => InputSpec::parse(text.trim_start().strip_prefix("input")?).ok().map(Deed::Input),
        [verb, "silo", silo] => {
            let deed = SiloDeed::ALL.into_iter().find(|deed| deed.name() == verb)?;
            Some(Deed::Silo { silo: silo.parse().ok()?, deed })
        }
        ["drill", name] => LiveDrill::from_name(name).map(Deed::Drill),
        ["move", "stream", stream, "to", "silo", to] => {
            Some(Deed::Move { stream: stream.parse().ok()?, to: to.parse().ok()? })
        }
        _ => None,
    }
}

/// What an action is judged by: the second before it, and one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Median latency, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: Option<u64>,
    /// Cores that the hot threads keep busy with work, all together.
    pub busy: Option<f64>,
}

impl Facts {
    /// Of a moment.
    pub fn of(derived: &Derived) -> Facts {
        let busy: Option<Vec<f64>> = derived.threads.iter().map(|thread| thread.busy).collect();
        Facts {
            p50_ns: derived.latency.map(|latency| latency.p50_ns),
            p999_ns: derived.latency.map(|latency| latency.p999_ns),
            busy: busy.map(|busy| busy.iter().sum()),
        }
    }
}

/// An action, as this console saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// When, nanoseconds after the engine's start.
    pub at_ns: u64,
    /// What, and by whom.
    pub what: String,
    /// Before it.
    pub before: Facts,
    /// After it; `None`: not yet, or another action came first.
    pub after: Option<Facts>,
}

/// Takes in the actions that `next` tells of and `before` did not.
pub fn measure(measured: &mut Vec<Measured>, before: Option<&Picture>, next: &Picture) {
    let now_ns = next.snapshot.at_ns;
    let control = &next.snapshot.control;
    let known = before.map_or(control.actions, |before| before.snapshot.control.actions);
    if let Some(last) = control.last.as_ref().filter(|_| control.actions > known) {
        if measured.len() == MEASURED_MAX {
            measured.remove(0);
        }
        let before = before.map(|before| Facts::of(&before.derived)).unwrap_or_default();
        measured.push(Measured { at_ns: last.at_ns, what: last.what.clone(), before, after: None });
    }
    // Of one that another one followed at once nothing can be told.
    if let Some(last) = measured.last_mut().filter(|last| last.after.is_none() && now_ns >= last.at_ns + AFTER_NS) {
        last.after = Some(Facts::of(&next.derived));
    }
}

/// What was measured of the action at `at_ns`.
pub fn measured_at(model: &Model, at_ns: u64) -> Option<&Measured> {
    let near = model.measured.iter().filter(|measured| measured.at_ns.abs_diff(at_ns) <= SAME_NS);
    near.min_by_key(|measured| measured.at_ns.abs_diff(at_ns))
}

/// An action's words in their parts: what, by whom, why.
pub fn parts(text: &str) -> (&str, &str, &str) {
    let Some((what, by)) = text.split_once(" by ") else { return (text, "", "") };
    // An operator's name ends with a bracket; what follows the colon after it is the reason.
    let (who, why) = match by.split_once("): ") {
        Some((who, why)) => (&by[..who.len() + 1], why),
        None if by.ends_with(')') => (by, ""),
        None => by.split_once(": ").unwrap_or((by, "")),
    };
    (what.trim_end_matches([',', ' ']), who, why)
}

#[cfg(test)]
mod tests {
    use super::{Deed, InputSpec, LiveDrill, SiloDeed, parse, parts};

    #[test]
    fn deeds_are_read_as_they_are_listed() {
        let deeds = [
            Deed::Silo { silo: 1, deed: SiloDeed::Kill },
            Deed::Silo { silo: 0, deed: SiloDeed::Rejoin },
            Deed::Move { stream: 3, to: 2 },
            Deed::Drill(LiveDrill::ALL[0]),
            Deed::Input(InputSpec::parse("udp:127.0.0.1:7000").unwrap_or_default()),
            Deed::Input(InputSpec::parse("a file.b8 --dem surface_d3").unwrap_or_default()),
        ];
        for deed in deeds {
            assert_eq!(parse(&deed.label()), Some(deed));
        }
        for text in ["", "input", "input a --rate 5", "kill silo x", "bury silo 1", "move stream 1", "kill silo 1 2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_action_says_what_by_whom_and_why() {
        let who = "ada (uid 1000, process 7, pts/3)";
        for (text, expected) in [
            (
                format!("profile lab to prod for 60 s, epoch 2, by {who}: lunch: long"),
                ("profile lab to prod for 60 s, epoch 2", who, "lunch: long"),
            ),
            (format!("feed held by {who}"), ("feed held", who, "")),
            (
                "profile prod to lab, epoch 3, by itself: the time is over".to_owned(),
                ("profile prod to lab, epoch 3", "itself", "the time is over"),
            ),
            ("drill sleep ended".to_owned(), ("drill sleep ended", "", "")),
        ] {
            assert_eq!(parts(&text), expected);
        }
    }
}
