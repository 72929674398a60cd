//! The environment report of a run: begun before the threads start, completed at the end of Warmup,
//! stored with the run.
//!
//! Runs on the caller's thread at the start ([`look`], for [`START_SPAN`] and the reading of a few
//! files), then on a cold thread of its own until Live. Probes only exclusive hot cores, before any
//! thread of the engine runs on them. Bounded by the hot cores. Never changes the machine and never
//! ends a run; only a strict start can be refused.
//!
//! # Why interrupts are counted during Warmup
//! A device whose interrupts go to a hot core shows during a warm-up, under the engine's own load,
//! and hardly during the probe's 50 ms on an idle machine. A strict start is therefore decided by
//! the other rows; this row is only reported.

use super::cold::{self, ColdThreads};
use super::{Config, StartError, cores::Placed};
use crate::clock::{Clock, CounterError};
use crate::host::HostFacts;
use crate::host::check::probe::START_SPAN;
use crate::host::check::report::{Report, SkippedCore, observe};
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

/// Name of the file in the run's directory.
const FILE: &str = "environment.json";
/// Period of the checks of the phase.
const LOOK: Duration = Duration::from_millis(5);
/// Failed rows that a refusal describes in full.
const SPELT_MAX: usize = 4;

/// Storage and signing key of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportTarget {
    /// The run's directory.
    pub directory: PathBuf,
    /// The host's key, created if missing; `None`: the report is not signed.
    pub key: Option<PathBuf>,
}

/// Result of a run's environment report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EnvironmentResult {
    /// Ids of the failed rows.
    pub fail: Vec<String>,
    /// Ids of the rows with a warning.
    pub warn: Vec<String>,
    /// The report's file; `None` if it could not be written.
    pub file: Option<String>,
    /// Why it was not written or signed, in a sentence.
    #[serde(skip)]
    pub trouble: Option<String>,
}

/// A report whose interrupts are not counted yet.
pub(super) struct Unfinished {
    seen: Observations,
    keep: ReportTarget,
}

/// The clock that the profile permits, on the machine below `root`.
pub(super) fn clock(environment: Environment, root: &Path) -> Result<Clock, CounterError> {
    match environment {
        Environment::Advise => Ok(Clock::machine_at(root)),
        Environment::Strict => Clock::strict_at(root),
    }
}

/// Checks the machine for the threads that are about to start. Does nothing if no report is
/// required.
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
    let seen = observe(host, &hot, &skipped_cores(placed, &hot), START_SPAN, clock);
    if strict == Environment::Strict {
        refuse(&judge(&seen))?;
    }
    Ok(config.environment.take().map(|keep| Unfinished { seen, keep }))
}

/// The hot cores that the probe must leave alone, with the reason.
fn skipped_cores(placed: &Placed, hot: &[u32]) -> Vec<SkippedCore> {
    let ours = placed.plan.claims();
    let others = hot.iter().filter(|core| !ours.contains(core));
    others.map(|&core| (core, "not watched: the core is shared with other work".to_owned())).collect()
}

/// Refuses a strict start if any row failed.
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

/// Completes the report on a cold thread: its result arrives when the engine is Live, or has ended
/// before.
pub(super) fn spawn(
    mut report: Unfinished,
    shared: &Shared,
    threads: &ColdThreads,
) -> io::Result<Receiver<EnvironmentResult>> {
    let (sender, receiver) = channel();
    let (clock, phase) = (shared.clock.clone(), shared.phase.clone());
    threads.spawn("environment", move || {
        let root = Path::new("/");
        let (before, from) = (Interrupts::read(root), clock.ticks());
        while phase.current() < Phase::Live {
            cold::sleep(LOOK);
        }
        let window_ns = clock.rate().nanos(clock.ticks().since(from)).0;
        report.seen.interrupts = before.zip(Interrupts::read(root)).map(|(before, after)| (before, after, window_ns));
        // The receiver is gone if the engine has ended.
        let _ = sender.send(keep(judge(&report.seen), &report.keep));
    })?;
    Ok(receiver)
}

/// Signs and writes the report.
fn keep(rows: Vec<Row>, place: &ReportTarget) -> EnvironmentResult {
    let named = |verdict| rows.iter().filter(|row| row.verdict == verdict).map(|row| row.id.clone()).collect();
    let mut found =
        EnvironmentResult { fail: named(Verdict::Fail), warn: named(Verdict::Warn), file: None, trouble: None };
    let key = match place.key.as_deref().map(HostKey::load_or_make) {
        Some(Ok(key)) => Some(key),
        Some(Err(error)) => {
            found.trouble = Some(format!("environment report not signed: {error}"));
            None
        }
        None => {
            let why = "neither $XDG_STATE_HOME nor $HOME is set; set one";
            found.trouble = Some(format!("environment report not signed: {why}"));
            None
        }
    };
    let text = serde_json::to_vec_pretty(&Report::new(rows, key.as_ref()));
    let written = text.map_err(|error| error.to_string()).and_then(|mut text| {
        text.push(b'\n');
        record::write_file(&place.directory, FILE, &text)
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
    use super::{EnvironmentResult, FILE, ReportTarget, clock, keep, refuse};
    use crate::clock::CounterError;
    use crate::host::HostFacts;
    use crate::host::check::report::Report;
    use crate::host::check::{Observations, Row, Verdict, judge};
    use crate::profile::Environment;
    use crate::trees::{machine, write};

    fn rows(name: &str) -> Vec<Row> {
        let dir = machine(name);
        let host = HostFacts::read_recorded(dir.path()).unwrap();
        judge(&Observations::read(dir.path(), &host, &[1]))
    }

    #[test]
    fn a_strict_start_names_the_rows_that_fail_and_their_remedies_in_one_sentence() {
        let rows = rows("vm2");
        let said = refuse(&rows).unwrap_err().to_string();
        assert!(
            said.starts_with("environment Strict: the host check failed: isolcpus: core 1 not in it (sudo sed"),
            "{said}"
        );
        assert!(said.contains("environment: Advise") && !said.contains('\n'), "{said}");
        for row in &rows {
            assert_eq!(said.contains(&row.id), row.verdict == Verdict::Fail, "{}: {said}", row.id);
        }
    }

    #[test]
    fn a_strict_start_is_permitted_without_failed_rows() {
        let sound: Vec<Row> = rows("vm2").into_iter().filter(|row| row.verdict != Verdict::Fail).collect();
        assert!(refuse(&sound).is_ok());
    }

    #[test]
    fn a_refusal_names_all_failed_rows() {
        let mut rows = rows("vm2");
        rows.iter_mut().for_each(|row| row.verdict = Verdict::Fail);
        let said = refuse(&rows).unwrap_err().to_string();
        assert!(rows.iter().all(|row| said.contains(&row.id)), "{said}");
    }

    #[test]
    fn strict_requires_the_counter_and_advise_does_not() {
        let dir = machine("vm2");
        write(dir.path(), "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
        let error = clock(Environment::Strict, dir.path()).unwrap_err();
        assert!(matches!(error, CounterError::Distrusted { .. } | CounterError::NotInvariant), "{error}");
        assert_eq!(clock(Environment::Advise, dir.path()).unwrap().degraded(), Some(&error));
    }

    #[test]
    fn a_stored_report_is_signed_and_a_failure_to_store_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let place = ReportTarget { directory: home.path().to_owned(), key: Some(home.path().join("state/host.key")) };
        let found = keep(rows("vm2"), &place);
        assert!(found.trouble.is_none() && found.fail.contains(&"isolcpus".to_owned()), "{found:?}");
        let kept: Report = serde_json::from_slice(&std::fs::read(home.path().join(FILE)).unwrap()).unwrap();
        assert_eq!(kept.verify(), Ok(()));

        let unsigned = keep(rows("vm2"), &ReportTarget { key: None, ..place });
        assert!(unsigned.file.is_some() && unsigned.trouble.unwrap().contains("not signed"));
        let gone = keep(rows("vm2"), &ReportTarget { directory: home.path().join("gone"), key: None });
        assert!(gone.file.is_none() && gone.trouble.unwrap().contains(FILE));
        assert_eq!(EnvironmentResult { file: None, trouble: None, ..gone }.fail, found.fail);
    }
}
