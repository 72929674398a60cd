//! Effects of actions on the engine: latency and load before and after.
//!
//! Pure, on the console thread. Bounded by [`MEASURED_MAX`] actions with known effects.

use super::derived::Derived;
use pinwheel_engine::board::snapshot::Snapshot;

/// Most actions whose effect is kept.
pub const MEASURED_MAX: usize = 64;
/// Time from an action to the measurement of its effect: a full second of percentiles and the
/// threads' acknowledgement.
pub const AFTER_NS: u64 = 3_000_000_000;
/// An event of the log and an action on the board closer than this are the same.
const SAME_NS: u64 = 200_000_000;

/// Figures that show an action's effect, over one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Median latency, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99.9th percentile, nanoseconds.
    pub p999_ns: Option<u64>,
    /// Sum over the hot threads of the share of time with work, in cores.
    pub busy: Option<f64>,
}

impl Facts {
    /// The figures of a moment.
    pub fn of(derived: &Derived) -> Facts {
        let busy: Option<Vec<f64>> = derived.threads.iter().map(|thread| thread.busy).collect();
        Facts {
            p50_ns: derived.latency.map(|latency| latency.p50_ns),
            p999_ns: derived.latency.map(|latency| latency.p999_ns),
            busy: busy.map(|busy| busy.iter().sum()),
        }
    }
}

/// An action that this console has observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// When, nanoseconds after the engine's start.
    pub at_ns: u64,
    /// The action and its author.
    pub what: String,
    /// Figures before it.
    pub before: Facts,
    /// Figures after it; `None`: not measured yet, or another action came first.
    pub after: Option<Facts>,
}

/// Adds the actions that `next` holds and `before` does not.
pub fn measure(measured: &mut Vec<Measured>, before: Option<(&Snapshot, &Derived)>, next: (&Snapshot, &Derived)) {
    let now_ns = next.0.at_ns;
    let control = &next.0.control;
    let known = before.map_or(control.actions, |before| before.0.control.actions);
    if let Some(last) = control.last.as_ref().filter(|_| control.actions > known) {
        if measured.len() == MEASURED_MAX {
            measured.remove(0);
        }
        let before = before.map(|before| Facts::of(before.1)).unwrap_or_default();
        measured.push(Measured { at_ns: last.at_ns, what: last.what.clone(), before, after: None });
    }
    // An action that another one follows within [`AFTER_NS`] has no measurable effect.
    if let Some(last) = measured.last_mut().filter(|last| last.after.is_none() && now_ns >= last.at_ns + AFTER_NS) {
        last.after = Some(Facts::of(next.1));
    }
}

/// The measured effect of the action at `at_ns`.
pub fn measured_at(measured: &[Measured], at_ns: u64) -> Option<&Measured> {
    let near = measured.iter().filter(|measured| measured.at_ns.abs_diff(at_ns) <= SAME_NS);
    near.min_by_key(|measured| measured.at_ns.abs_diff(at_ns))
}

/// Splits an action's text into action, author and reason.
pub fn parts(text: &str) -> (&str, &str, &str) {
    let Some((what, by)) = text.split_once(" by ") else { return (text, "", "") };
    // An operator's name ends with a bracket; the reason follows the colon after it.
    let (who, why) = match by.split_once("): ") {
        Some((who, why)) => (&by[..who.len() + 1], why),
        None if by.ends_with(')') => (by, ""),
        None => by.split_once(": ").unwrap_or((by, "")),
    };
    (what.trim_end_matches([',', ' ']), who, why)
}

#[cfg(test)]
mod tests {
    use super::parts;

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
