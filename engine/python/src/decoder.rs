//! A model prepared for decoding, and batches of packed shots.
//!
//! Any number of Python threads may decode by one [`Decoder`]. Each call takes a matcher of its own, and the
//! interpreter lock is released while it decodes. Memory: one matcher for each call at the same time, and the answers.
#![expect(clippy::disallowed_types, reason = "a lock for several Python threads, none of which is a hot thread")]

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::packed;
use pinwheel_engine::code::Model;
use pinwheel_engine::decode::{Decoded, Matcher, MatcherModel};
use pinwheel_engine::profile::{self, DecoderKind, Predecoder, Window};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyByteArray;
use pyo3::{Bound, PyResult, Python, pyclass, pymethods};

/// A batch lets the interpreter handle signals (Ctrl-C) this often. It takes the interpreter lock for that.
const SIGNAL_PERIOD: Duration = Duration::from_millis(100);
/// Shots between two looks at the clock.
const SHOTS_PER_LOOK: usize = 256;

/// A model prepared for one decoder.
#[pyclass(frozen, module = "pinwheel._core")]
pub(crate) struct Decoder {
    model: MatcherModel,
    detectors: u32,
    observables: u32,
    /// Words of a shot's detectors and observables.
    words: [usize; 2],
    /// Matchers that no call uses.
    idle: Mutex<Vec<Box<dyn Matcher>>>,
}

/// The answers of a batch.
#[pyclass(frozen, module = "pinwheel._core")]
pub(crate) struct Answers {
    /// Bytes of a shot's packed observables.
    width: usize,
    predictions: Vec<u8>,
    weights: Vec<f64>,
    /// Decibels; not a number where there is none.
    gaps_db: Vec<f64>,
    /// A shot in which no detector fired. Most shots of a small code are such, and all have its answer.
    quiet: Option<usize>,
}

impl Answers {
    /// With memory for `count` shots of `width` bytes of observables.
    fn new(width: usize, count: usize) -> PyResult<Self> {
        let mut new = Self { width, predictions: Vec::new(), weights: Vec::new(), gaps_db: Vec::new(), quiet: None };
        new.predictions
            .try_reserve_exact(count.saturating_mul(width))
            .and_then(|()| new.weights.try_reserve_exact(count))
            .and_then(|()| new.gaps_db.try_reserve_exact(count))
            .map_err(|_| PyMemoryError::new_err(format!("found no memory for the answers of {count} shots")))?;
        Ok(new)
    }

    fn push(&mut self, decoded: Decoded, observables: &[u64]) {
        let mut left = self.width;
        for word in observables {
            let bytes = left.min(8);
            self.predictions.extend_from_slice(&word.to_le_bytes()[..bytes]);
            left -= bytes;
        }
        self.weights.push(decoded.weight.unwrap_or(f64::NAN));
        self.gaps_db.push(decoded.gap.map_or(f64::NAN, |gap| gap * 10.0 / std::f64::consts::LN_10));
    }

    /// Pushes the answer of shot `same` again.
    fn repeat(&mut self, same: usize) {
        self.predictions.extend_from_within(same * self.width..(same + 1) * self.width);
        self.weights.push(self.weights[same]);
        self.gaps_db.push(self.gaps_db[same]);
    }
}

#[pymethods]
impl Decoder {
    /// Prepares the model with the text `dem` for the decoder named `decoder`; `with_gaps`: also for the gap of each
    /// answer to the best one with other observables.
    #[new]
    fn new(py: Python<'_>, dem: PyBackedBytes, decoder: &str, with_gaps: bool) -> PyResult<Self> {
        let kind = match DecoderKind::from_name(decoder) {
            Some(DecoderKind::Matching) => profile::Decoder::Matching,
            Some(DecoderKind::Correlated) => profile::Decoder::Correlated,
            Some(DecoderKind::UnionFind) => profile::Decoder::UnionFind,
            Some(DecoderKind::Lookup) => profile::Decoder::Lookup,
            Some(DecoderKind::Plugin) | None => {
                let expected = "matching, correlated, union-find or lookup";
                return Err(PyValueError::new_err(format!("found decoder {decoder:?}, expected {expected}")));
            }
        };
        py.detach(|| {
            let model = Model::parse(&dem).map_err(|error| error.to_string())?;
            let ready = MatcherModel::of(&model, kind, Predecoder::None, Window::None);
            let ready = if with_gaps { ready.and_then(|ready| ready.with_confidence(&model)) } else { ready };
            Ok(Self {
                model: ready.map_err(|error| error.to_string())?,
                detectors: model.detectors,
                observables: model.observables,
                words: [model.detector_words(), model.observable_words()],
                idle: Mutex::default(),
            })
        })
        .map_err(PyValueError::new_err::<String>)
    }

    /// Number of detectors.
    #[getter]
    fn num_detectors(&self) -> u32 {
        self.detectors
    }

    /// Number of observables.
    #[getter]
    fn num_observables(&self) -> u32 {
        self.observables
    }

    /// Decodes `count` packed shots of `ceil(num_detectors / 8)` bytes each.
    fn decode(&self, py: Python<'_>, shots: PyBackedBytes, count: usize) -> PyResult<Answers> {
        packed::width(&shots, count, self.detectors).map_err(PyValueError::new_err)?;
        let mut answers = Answers::new(self.observables.div_ceil(8) as usize, count)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut matcher = idle.unwrap_or_else(|| self.model.matcher());
        let mut decoded = Ok(());
        while decoded.is_ok() && answers.weights.len() < count {
            decoded = py.detach(|| self.decode_for_a_while(&mut *matcher, &shots, count, &mut answers));
            // Not given back: the next call builds another.
            py.check_signals()?;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(matcher);
        decoded.map(|()| answers).map_err(PyValueError::new_err)
    }
}

impl Decoder {
    /// Decodes the shots that `answers` does not have yet, until all are decoded or [`SIGNAL_PERIOD`] is over.
    fn decode_for_a_while(
        &self,
        matcher: &mut dyn Matcher,
        shots: &[u8],
        count: usize,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let width = self.detectors.div_ceil(8) as usize;
        let (mut syndrome, mut observables) = (vec![0; self.words[0]], vec![0; self.words[1]]);
        #[expect(clippy::disallowed_methods, reason = "paces signals of a caller's thread; no part of a run")]
        let now = Instant::now;
        let end = now() + SIGNAL_PERIOD;
        let first = answers.weights.len();
        for shot in first..count {
            if (shot - first).is_multiple_of(SHOTS_PER_LOOK) && shot > first && now() >= end {
                break;
            }
            let bytes = &shots[shot * width..][..width];
            let is_quiet = bytes.iter().all(|byte| *byte == 0);
            if let Some(same) = answers.quiet.filter(|_| is_quiet) {
                answers.repeat(same);
                continue;
            }
            unpack(bytes, &mut syndrome);
            let decoded = matcher.decode(&syndrome, &mut observables);
            answers.push(decoded.map_err(|error| format!("shot {shot}: {error}"))?, &observables);
            if is_quiet {
                answers.quiet = Some(shot);
            }
        }
        Ok(())
    }
}

/// The words of a packed shot.
fn unpack(bytes: &[u8], words: &mut [u64]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    words.iter_mut().zip(whole).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
    if !rest.is_empty() {
        words[whole.len()] = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
}

#[pymethods]
impl Answers {
    /// Packed observables, `ceil(num_observables / 8)` bytes for each shot.
    fn predictions<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        PyByteArray::new(py, &self.predictions)
    }

    /// Weights of the answers, a float of 64 bits for each shot.
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        floats(py, &self.weights)
    }

    /// Gaps of the answers in decibels, a float of 64 bits for each shot.
    fn gaps_db<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        floats(py, &self.gaps_db)
    }
}

/// The bytes of `floats`.
fn floats<'py>(py: Python<'py>, floats: &[f64]) -> Bound<'py, PyByteArray> {
    let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_ne_bytes()).collect();
    PyByteArray::new(py, &bytes)
}
