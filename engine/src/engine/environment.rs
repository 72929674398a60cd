//! The environment report of a run: looked at before the threads start, finished when they are warm, kept with the run.
//!
//! Runs on the caller's thread at the start ([`look`], for [`START_SPAN`] and the reading of a few files) and then on a
//! cold thread of its own until Live. Watches only hot cores that are ours alone, while nothing of ours runs on them
//! yet. Bounded by the hot cores. Never changes the machine; never ends a run: only a strict start is refused.
//!
//! # Why interrupts are counted over Warmup
//! A device that is steered at a hot core shows in a window of the length of a warm-up and with the engine's own load on
//! the machine, and hardly in the probe's 50 ms on an idle one. A strict start is therefore refused by the other rows;
//! that one is reported.

use super::{Config, StartError, cold, cores::Placed};
use crate::clock::{Clock, CounterError};
use crate::host::HostFacts;
use crate::host::check::probe::START_SPAN;
use crate::host::check::report::{Left, Report, observe};
use crate::host::check::sign::HostKey;
use crate::host::check::{Interrupts, Observations, Row, Verdict, judge};
use crate::hot::Shared;
use crate::profile::Environment;
use crate::record;
use pinwheel_edge::spin::Phase;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The file in the run's directory.
const FILE: &str = "environment.json";
/// Between two looks at the phase.
const LOOK: Duration = Duration::from_millis(5);
/// Failed rows that a refusal spells out.
const SPELT_MAX: usize = 4;

/// Where a report is kept, and whose key signs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The run's directory.
    pub directory: PathBuf,
    /// The host's key, made if it is not there; `None`: the report is not signed.
    pub key: Option<PathBuf>,
}

/// What a run's environment report said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The rows that failed.
    pub fail: Vec<String>,
    /// The rows that warn.
    pub warn: Vec<String>,
    /// Where the report is; `None` if it could not be kept.
    pub file: Option<String>,
    /// Why it is not there, or not signed, in a sentence.
    #[serde(skip)]
    pub trouble: Option<String>,
}

/// A report without its interrupts.
pub(super) struct Unfinished {
    seen: Observations,
    keep: Keep,
}

/// The clock that the profile allows, on the machine below `root`.
pub(super) fn clock(environment: Environment, root: &Path) -> Result<Clock, CounterError> {
    match environment {
        Environment::Advise => Ok(Clock::machine_at(root)),
        Environment::Strict => Clock::strict_at(root),
    }
}

/// Looks at the machine for the threads that are about to start. Nothing is looked at where nobody wants to know.
pub(super) fn look(
    config: &mut Config,
    host: &HostFacts,
    placed: &Placed,
    clock: &Clock,
) -> Result<Option<Unfinished>, StartError> {
    let strict = config.profile.environment;
    if strict == Environment::Advise && config.environment.is_none() {
        return Ok(None);
    }
    let hot = placed.plan.hot_cores();
    let seen = observe(host, &hot, &left_alone(placed, &hot), START_SPAN, clock);
    if strict == Environment::Strict {
        refuse(&judge(&seen))?;
    }
    Ok(config.environment.take().map(|keep| Unfinished { seen, keep }))
}

/// The hot cores that the probe must not take for itself.
fn left_alone(placed: &Placed, hot: &[u32]) -> Vec<Left> {
    let ours = placed.plan.claims();
    let others = hot.iter().filter(|core| !ours.contains(core));
    others.map(|&core| (core, "not watched: the core is shared with other work".to_owned())).collect()
}

/// A strict start is refused by any failed row.
fn refuse(rows: &[Row]) -> Result<(), StartError> {
    let failed: Vec<&Row> = rows.iter().filter(|row| row.verdict == Verdict::Fail).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let spelt = failed.iter().take(SPELT_MAX).map(|row| format!("{}: {} ({})", row.id, row.found, row.fix));
    let mut spelt: Vec<String> = spelt.collect();
    let others: Vec<&str> = failed.iter().skip(SPELT_MAX).map(|row| row.id.as_str()).collect();
    if !others.is_empty() {
        spelt.push(format!("and {} (see pinwheel check)", others.join(", ")));
    }
    Err(StartError::Environment { failed: spelt.join("; ") })
}

/// Finishes the report on a cold thread: it comes when the engine is Live, or has ended before.
pub(super) fn spawn(mut report: Unfinished, shared: &Shared, cold_cores: Vec<u32>) -> io::Result<Receiver<Found>> {
    let (sender, receiver) = channel();
    let (clock, phase) = (shared.clock.clone(), shared.phase.clone());
    cold::spawn("environment", move || {
        // A courtesy to the hot threads; where it is not permitted the scheduler decides.
        let _ = crate::host::pin::confine_current_thread(&cold_cores);
        let root = Path::new("/");
        let (before, from) = (Interrupts::read(root), clock.ticks());
        while phase.current() < Phase::Live {
            cold::sleep(LOOK);
        }
        let window_ns = clock.rate().nanos(clock.ticks().since(from)).0;
        report.seen.interrupts = before.zip(Interrupts::read(root)).map(|(before, after)| (before, after, window_ns));
        // Nobody is left to tell where the engine is gone.
        let _ = sender.send(keep(judge(&report.seen), &report.keep));
    })?;
    Ok(receiver)
}

/// Signs and writes the report.
fn keep(rows: Vec<Row>, place: &Keep) -> Found {
    let named = |verdict| rows.iter().filter(|row| row.verdict == verdict).map(|row| row.id.clone()).collect();
    let mut found = Found { fail: named(Verdict::Fail), warn: named(Verdict::Warn), file: None, trouble: None };
    let key = match place.key.as_deref().map(HostKey::load_or_make) {
        Some(Ok(key)) => Some(key),
        Some(Err(error)) => {
            found.trouble = Some(format!("environment report not signed: {error}"));
            None
        }
        None => {
            let why = "found neither $XDG_STATE_HOME nor $HOME, expected one; set one";
            found.trouble = Some(format!("environment report not signed: {why}"));
            None
        }
    };
    let text = serde_json::to_vec_pretty(&Report::new(rows, key.as_ref()));
    let written = text.map_err(|error| error.to_string()).and_then(|mut text| {
        text.push(b'\n');
        record::keep(&place.directory, FILE, &text)
    });
    match written {
        Ok(()) => found.file = Some(place.directory.join(FILE).display().to_string()),
        Err(said) => found.trouble = Some(said),
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{FILE, Found, Keep, clock, keep, refuse};
    use crate::clock::CounterError;
    use crate::host::HostFacts;
    use crate::host::check::report::Report;
    use crate::host::check::{Observations, Row, Verdict, judge};
    use crate::host::trees::{machine, write};
    use crate::profile::Environment;

    fn rows(name: &str) -> Vec<Row> {
        let dir = machine(name);
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        judge(&Observations::read(dir.path(), &host, &[1]))
    }

    #[test]
    fn a_strict_start_names_the_rows_that_fail_and_their_remedies_in_one_sentence() {
        let rows = rows("vm2");
        let said = refuse(&rows).unwrap_err().to_string();
        assert!(said.starts_with("environment Strict: found isolcpus: core 1 not in it (sudo sed"), "{said}");
        assert!(said.contains("environment: Advise") && !said.contains('\n'), "{said}");
        for row in &rows {
            assert_eq!(said.contains(&row.id), row.verdict == Verdict::Fail, "{}: {said}", row.id);
        }
    }

    #[test]
    fn a_machine_without_a_failed_row_is_started_on() {
        let sound: Vec<Row> = rows("vm2").into_iter().filter(|row| row.verdict != Verdict::Fail).collect();
        assert!(refuse(&sound).is_ok());
    }

    #[test]
    fn more_failed_rows_than_a_sentence_holds_are_still_all_named() {
        let mut rows = rows("vm2");
        rows.iter_mut().for_each(|row| row.verdict = Verdict::Fail);
        let said = refuse(&rows).unwrap_err().to_string();
        assert!(rows.iter().all(|row| said.contains(&row.id)), "{said}");
    }

    #[test]
    fn strict_does_without_no_counter_and_advise_does() {
        let dir = machine("vm2");
        write(dir.path(), "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
        let error = clock(Environment::Strict, dir.path()).unwrap_err();
        assert!(matches!(error, CounterError::Distrusted { .. } | CounterError::NotInvariant), "{error}");
        assert_eq!(clock(Environment::Advise, dir.path()).unwrap().degraded(), Some(&error));
    }

    #[test]
    fn a_kept_report_holds_its_signature_and_one_that_cannot_be_kept_says_so() {
        let home = tempfile::tempdir().unwrap();
        let place = Keep { directory: home.path().to_owned(), key: Some(home.path().join("state/host.key")) };
        let found = keep(rows("vm2"), &place);
        assert!(found.trouble.is_none() && found.fail.contains(&"isolcpus".to_owned()), "{found:?}");
        let kept: Report = serde_json::from_slice(&std::fs::read(home.path().join(FILE)).unwrap()).unwrap();
        assert_eq!(kept.verify(), Ok(()));

        let unsigned = keep(rows("vm2"), &Keep { key: None, ..place });
        assert!(unsigned.file.is_some() && unsigned.trouble.unwrap().contains("not signed"));
        let gone = keep(rows("vm2"), &Keep { directory: home.path().join("gone"), key: None });
        assert!(gone.file.is_none() && gone.trouble.unwrap().contains(FILE));
        assert_eq!(Found { file: None, trouble: None, ..gone }.fail, found.fail);
    }
}
