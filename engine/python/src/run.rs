//! What a run left in its directory: report, events, and recording.
//!
//! Only reads, and opens no file of a run that is not its owner's. Bounded by the run's files.

use crate::engine::state;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::files;
use pinwheel_engine::record::tape::TapeError;
use pinwheel_engine::record::{DISAGREEMENT_ANSWERS, DISAGREEMENTS, DISAGREEMENTS_MAX};
use pinwheel_engine::units::{Nanos, Ticks};
use pinwheel_report::evidence::{Evidence, latency};
use pinwheel_report::moment::moment;
use pinwheel_report::page::page;
use pinwheel_report::runs::{self, RunError};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::types::PyByteArray;
use pyo3::{Bound, PyErr, PyResult, Python, pyclass, pymethods};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Largest file of shots or answers of two decoders: as many as are kept, of the widest model.
const DISAGREEMENT_BYTES_MAX: u64 = DISAGREEMENTS_MAX * 16_384;

/// A run.
#[pyclass(frozen, module = "pinwheel._core")]
pub(crate) struct Run {
    evidence: Evidence,
}

fn unreadable(error: RunError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The run of this name in `logs`.
fn named(name: &Path, logs: Option<PathBuf>) -> PyResult<PathBuf> {
    let runs = logs.iter().flat_map(|logs| runs::list(logs)).collect::<Vec<_>>();
    runs::of_name(&runs, &name.to_string_lossy()).cloned().ok_or_else(|| {
        let (name, logs) = (name.display(), logs.unwrap_or_default());
        PyFileNotFoundError::new_err(format!(
            "run {name}: found no such directory, expected a run's, its name in {}, or last",
            logs.display()
        ))
    })
}

#[pymethods]
impl Run {
    /// `path`: a directory, or the name of a run in `logs`; `None`: in the user's state directory.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, logs: Option<PathBuf>) -> PyResult<Run> {
        let path = if path.exists() { path } else { named(&path, logs.or_else(state))? };
        let evidence = py.detach(|| Evidence::of(path, None)).map_err(unreadable)?;
        Ok(Run { evidence })
    }

    /// The run's directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.evidence.dir.clone()
    }

    /// The report, or the same fields of the last recorded board.
    fn report(&self) -> String {
        self.evidence.report.to_string()
    }

    /// Lines of the events, one JSON object each.
    fn events(&self, py: Python<'_>) -> String {
        py.detach(|| runs::events(&self.evidence.dir))
    }

    /// The page as HTML.
    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| page(&self.evidence, |_| ()))
    }

    /// The board `at_s` seconds after the engine's start, or the last one.
    fn board(&self, py: Python<'_>, at_s: Option<f64>) -> PyResult<String> {
        py.detach(|| {
            let dir = &self.evidence.dir;
            let mut tape = runs::open(dir)?;
            let (first, last) = tape.span().ok_or_else(|| runs::empty(dir))?;
            let since = at_s.map(|at_s| tape.tick_at(Nanos((at_s.max(0.0) * 1e9) as u64)));
            let at = since.map_or(last, |at| at.clamp(first, last));
            let found = tape.at(at)?.map(|moment| moment.snapshot()).transpose().map_err(TapeError::from)?;
            let snapshot = found.flatten().ok_or_else(|| runs::empty(dir))?;
            let [from_ns, to_ns] = [first, last].map(|at| tape.since_start(at).0);
            let about = json!({"run": dir.display().to_string(), "at_ns": snapshot.at_ns, "from_ns": from_ns,
                "to_ns": to_ns, "bytes": tape.bytes()});
            Ok(moment(&snapshot, "replay", &about).to_string())
        })
        .map_err(unreadable)
    }

    /// The counters of each recorded board: their names, and a row of unsigned integers of 64 bits for each.
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<(Vec<String>, Bound<'py, PyByteArray>)> {
        let samples = py.detach(|| {
            let mut tape = runs::open(&self.evidence.dir)?;
            let mut samples = Samples::default();
            tape.play(Ticks(0), Ticks(u64::MAX), |moment| {
                moment.snapshot().ok().flatten().iter().for_each(|snapshot| samples.add(snapshot));
            })?;
            Ok(samples)
        });
        let samples = samples.map_err(unreadable)?;
        Ok((samples.names, PyByteArray::new(py, &samples.bytes)))
    }

    /// Shots on which two decoders disagreed, packed, with their number of detectors; and a JSON line for each.
    fn disagreements<'py>(&self, py: Python<'py>) -> (Bound<'py, PyByteArray>, u64, String) {
        let (shots, answers) = py.detach(|| {
            let read = |name| files::read_in(&self.evidence.dir, name, DISAGREEMENT_BYTES_MAX).unwrap_or_default();
            (read(DISAGREEMENTS), String::from_utf8_lossy(&read(DISAGREEMENT_ANSWERS)).into_owned())
        });
        let detectors = self.evidence.count("detectors").unwrap_or(0);
        (PyByteArray::new(py, &shots), detectors, answers)
    }
}

/// The counters of a recording's boards, row by row.
#[derive(Default)]
struct Samples {
    names: Vec<String>,
    bytes: Vec<u8>,
    before: Histogram,
}

impl Samples {
    fn add(&mut self, snapshot: &Snapshot) {
        let all = latency(snapshot);
        let recent = all.since(&self.before);
        self.before = all;
        let quantile = |q| if recent.count() > 0 { recent.quantile_ns(q) } else { 0 };
        let counters = serde_json::to_value(snapshot.totals()).unwrap_or_default();
        let counters = counters.as_object().into_iter().flatten();
        let mut row = vec![("at_ns", snapshot.at_ns), ("p50_ns", quantile(0.5)), ("p99_ns", quantile(0.99))];
        row.extend(counters.filter_map(|(name, value)| Some((name.as_str(), value.as_u64()?))));
        if self.names.is_empty() {
            self.names = row.iter().map(|(name, _)| (*name).to_owned()).collect();
        }
        row.iter().for_each(|(_, value)| self.bytes.extend_from_slice(&value.to_ne_bytes()));
    }
}
