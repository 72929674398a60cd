//! A signed report: the rows and the host's signature.
//!
//! Cold. Taking a report lasts as long as the probe; bounded by it and by the rows. The signature
//! covers the rows as compact JSON with a fixed order of fields, so a report may be reformatted. A
//! report with any other field is refused, because that field would not be signed.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sign::{self, HostKey, SignatureError};
use super::{Interrupts, Observations, Row, judge, probe};
use crate::clock::{Clock, utc_text};
use crate::host::HostFacts;

/// The report that `pinwheel check` prints and stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The result of each check.
    pub rows: Vec<Row>,
    /// The host's signature of the rows; `None` without a key.
    pub signature: Option<String>,
    /// The public half of the host's key.
    pub key: Option<String>,
}

/// A core that is not measured, and why.
pub type SkippedCore = (u32, String);

impl Report {
    /// Signs `rows`, if there is a key.
    pub fn new(rows: Vec<Row>, key: Option<&HostKey>) -> Report {
        let signature = key.map(|key| key.sign(&canonical(&rows)));
        Report { rows, signature, key: key.map(HostKey::public) }
    }

    /// Checks the signature.
    ///
    /// # Errors
    /// If there is no signature, or it does not match these rows.
    pub fn verify(&self) -> Result<(), SignatureError> {
        let (signature, key) = self.signature.as_deref().zip(self.key.as_deref()).ok_or(SignatureError::Unsigned)?;
        sign::verify(&canonical(&self.rows), signature, key)
    }
}

fn canonical(rows: &[Row]) -> Vec<u8> {
    serde_json::to_vec(rows).expect("rows are strings, which always serialise")
}

/// Checks this machine for hot threads on `hot`, and measures those cores for `span`, except those
/// in `left`.
#[must_use]
pub fn take(host: &HostFacts, hot: &[u32], left: &[SkippedCore], span: Duration, clock: &Clock) -> Vec<Row> {
    let root = Path::new("/");
    let (before, from) = (Interrupts::read(root), clock.ticks());
    let mut seen = observe(host, hot, left, span, clock);
    let window_ns = clock.rate().nanos(clock.ticks().since(from)).0;
    let after = Interrupts::read(root);
    // Interrupts on cores that another engine uses are not ours.
    let any_watched = seen.hot.iter().any(|core| left.iter().all(|(other, _)| other != core));
    seen.interrupts = before.zip(after).filter(|_| any_watched).map(|(before, after)| (before, after, window_ns));
    judge(&seen)
}

/// The observations that [`take`] judges, without interrupts, which the caller counts over a window
/// of its own.
pub fn observe(host: &HostFacts, hot: &[u32], left: &[SkippedCore], span: Duration, clock: &Clock) -> Observations {
    let mut seen = Observations::read(Path::new("/"), host, hot);
    let at = i64::try_from(clock.started_utc().as_secs()).ok().and_then(utc_text);
    seen.machine = seen.machine.zip(at).map(|(machine, at)| format!("{machine}, {at}"));
    let watched: Vec<u32> =
        seen.hot.iter().copied().filter(|core| left.iter().all(|(other, _)| other != core)).collect();
    seen.gaps = probe::run(&watched, span, clock);
    seen.gaps.extend(left.iter().map(|(core, why)| (*core, Err(why.clone()))));
    seen
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Report, take};
    use crate::clock::Clock;
    use crate::host::HostFacts;
    use crate::host::check::Verdict;
    use crate::host::check::sign::{HostKey, SignatureError};
    use std::time::Duration;

    #[test]
    fn a_kept_report_is_verified_and_a_changed_one_is_not() {
        let host = HostFacts::read().unwrap();
        let hot = [host.cores[0].core];
        let rows = take(&host, &hot, &[], Duration::from_millis(5), &Clock::machine());
        assert!(rows.iter().all(|row| !row.id.is_empty() && !row.why.is_empty() && !row.found.is_empty()));
        let home = tempfile::tempdir().unwrap();
        let key = HostKey::load_or_make(&home.path().join("host.key")).unwrap();
        let report = Report::new(rows.clone(), Some(&key));
        let kept = serde_json::to_string_pretty(&report).unwrap();
        let mut read: Report = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.verify(), Ok(()));
        read.rows[1].found.push('!');
        assert_eq!(read.verify(), Err(SignatureError::Broken));
        assert_eq!(Report::new(rows, None).verify(), Err(SignatureError::Unsigned));
    }

    #[test]
    fn a_field_that_is_not_signed_or_comes_twice_is_refused_by_name() {
        let row = r#"{"id":"swap","found":"a","expected":"b","verdict":"pass","why":"c","fix":""}"#;
        let report = |row: &str, more: &str| format!(r#"{{"rows":[{row}],"signature":null,"key":null{more}}}"#);
        assert!(serde_json::from_str::<Report>(&report(row, "")).is_ok());
        for (text, name) in [
            (report(row, r#","approved":true"#), "approved"),
            (report(row, r#","verified":true"#), "verified"),
            (report(row, r#","rows":[]"#), "rows"),
            (report(row, r#","key":"00""#), "key"),
            (report(&row.replacen('{', r#"{"note":{},"#, 1), ""), "note"),
            (report(&row.replacen('{', r#"{"found":"x","#, 1), ""), "found"),
        ] {
            let said = serde_json::from_str::<Report>(&text).unwrap_err().to_string();
            assert!(said.contains(&format!("field `{name}`")), "{name}: {said}");
        }
    }

    #[test]
    fn a_core_that_is_left_alone_is_not_watched() {
        let host = HostFacts::read().unwrap();
        let core = host.cores[0].core;
        let left = [(core, "claimed by somebody".to_owned())];
        let rows = take(&host, &[core], &left, Duration::from_secs(600), &Clock::machine());
        let row = rows.iter().find(|row| row.id == format!("gap_probe_core_{core}")).unwrap();
        assert_eq!((row.verdict, row.found.as_str()), (Verdict::NotVisible, "claimed by somebody"));
    }
}
