//! Decoding by a table: the answer of every syndrome of a small model, found in advance.
//!
//! Cold code builds one [`LookupModel`] with the matcher; each worker has a [`Lookup`], which is owned
//! and called by one thread. A shot costs one row of the table for each connected part, allocates
//! nothing and never panics.
//!
//! Connected parts of the graph are independent, so each has a table of its own: two parts of 12
//! detectors take 2 · 2^12 rows, not 2^24. A row holds what the part's syndrome adds to the answer of
//! the shot in which nothing fired. The table is refused if it does not fit a number of bytes.

use std::sync::Arc;

use crate::bits::xor;
use crate::graph::Part;
use crate::matcher::{MatchError, Matched, Matcher};
use crate::model::MatchingModel;

/// Bytes that a table may take unless the caller says otherwise: enough for parts of 22 detectors with
/// up to 64 observables. 20 detectors take 3 s to build, 22 about four times as long.
pub const LOOKUP_BYTES_MAX: usize = 1 << 26;
/// As the weight of a row: nothing explains the syndrome.
const UNEXPLAINED: u64 = i64::MIN as u64;

/// Why there is no table for a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LookupError {
    #[error(
        "a look-up table of this model takes 2^{log2_bytes} bytes, but the limit is {limit}: its largest connected \
         part has {detectors} detectors; choose another decoder"
    )]
    Size {
        /// The bytes of the table, as a power of two, rounded up.
        log2_bytes: u32,
        limit: usize,
        detectors: u32,
    },
    #[error("the matcher gave up on a syndrome of this model; choose another decoder")]
    Declined,
}

/// The table of one graph.
#[derive(Debug)]
pub struct LookupModel {
    matching: Arc<MatchingModel>,
    /// For each part its first row.
    first_rows: Vec<usize>,
    /// Rows of a weight and the observables: what a part's syndrome adds to the empty shot's answer.
    rows: Vec<u64>,
    /// The row of the shot in which nothing fired, for all parts together.
    empty: Vec<u64>,
}

impl LookupModel {
    /// The table of `matching`, of at most `bytes_max` bytes. Takes one matching for each row.
    ///
    /// # Errors
    ///
    /// [`LookupError`]; nothing is built then.
    pub fn new(matching: Arc<MatchingModel>, bytes_max: usize) -> Result<Self, LookupError> {
        let graph = &matching.graph;
        let width = 1 + graph.observable_words;
        let rows = row_count(&graph.parts, width, bytes_max)?;
        let mut matcher = Matcher::new(Arc::clone(&matching));
        let empty = row(&mut matcher, width, [])?;
        let mut model = Self { first_rows: Vec::with_capacity(graph.parts.len()), rows: Vec::new(), empty, matching };
        model.rows.reserve_exact(rows * width);
        for part in &model.matching.graph.parts {
            let detectors = &model.matching.graph.detector_of[part.first as usize..(part.first + part.nodes) as usize];
            model.first_rows.push(model.rows.len() / width);
            for syndrome in 0u64..1 << part.nodes {
                let fired = detectors.iter().enumerate().filter(|&(bit, _)| syndrome >> bit & 1 == 1);
                let mut row = row(&mut matcher, width, fired.map(|(_, &detector)| detector))?;
                if row[0] != UNEXPLAINED {
                    row[0] = row[0].wrapping_sub(model.empty[0]);
                }
                xor(&mut row[1..], &model.empty[1..]);
                model.rows.extend(row);
            }
        }
        Ok(model)
    }

    /// The matching problem.
    pub fn matching(&self) -> &Arc<MatchingModel> {
        &self.matching
    }

    /// Bytes of the table.
    pub const fn bytes(&self) -> usize {
        8 * (self.rows.capacity() + self.empty.capacity() + self.first_rows.capacity())
    }

    /// What `syndrome` of a part adds: weight and observables.
    #[inline]
    fn row(&self, part: usize, syndrome: u32) -> (u64, &[u64]) {
        let width = self.empty.len();
        let at = (self.first_rows[part] + syndrome as usize) * width;
        (self.rows[at], &self.rows[at + 1..at + width])
    }
}

/// Number of rows of all parts.
fn row_count(parts: &[Part], width: usize, bytes_max: usize) -> Result<usize, LookupError> {
    let detectors = parts.iter().map(|part| part.nodes).max().unwrap_or(0);
    // There are at most 2^29 parts, so this does not overflow.
    let rows: u128 = parts.iter().map(|part| 1u128 << part.nodes.min(64)).sum();
    let bytes = rows * 8 * width as u128;
    if detectors < 32 && bytes <= bytes_max as u128 {
        return Ok(rows as usize);
    }
    let log2_bytes = bytes.next_power_of_two().ilog2() + detectors.saturating_sub(64);
    Err(LookupError::Size { log2_bytes, limit: bytes_max, detectors })
}

/// The matcher's answer, as a row.
fn row(matcher: &mut Matcher, width: usize, fired: impl IntoIterator<Item = u32>) -> Result<Vec<u64>, LookupError> {
    let mut row = vec![0; width];
    row[0] = match matcher.decode(fired, &mut row[1..]) {
        Ok(matched) => matched.units as u64,
        Err(MatchError::Unmatchable { .. }) => UNEXPLAINED,
        Err(_) => return Err(LookupError::Declined),
    };
    Ok(row)
}

/// One worker's decoder.
#[derive(Debug)]
pub struct Lookup {
    model: Arc<LookupModel>,
    /// For each part its fired detectors of the last shot, a bit each.
    syndromes: Vec<u32>,
}

impl Lookup {
    /// A decoder for `model`.
    pub fn new(model: Arc<LookupModel>) -> Self {
        Self { syndromes: vec![0; model.first_rows.len()], model }
    }

    /// The model.
    pub fn model(&self) -> &LookupModel {
        &self.model
    }

    /// Bytes on the heap, without the shared model.
    pub const fn bytes(&self) -> usize {
        4 * self.syndromes.capacity()
    }

    /// Looks up the fired `detectors` (one that is listed twice has not fired), XORs the observables of
    /// their matching into `observables` and returns its weight: what [`Matcher::decode`] says, where
    /// several matchings weigh the same one of them. Words beyond the graph's are left as they are, and
    /// missing ones are dropped.
    ///
    /// # Errors
    ///
    /// [`MatchError::Detector`] and [`MatchError::Unmatchable`]; `observables` is then unchanged.
    pub fn decode(
        &mut self,
        detectors: impl IntoIterator<Item = u32>,
        observables: &mut [u64],
    ) -> Result<Matched, MatchError> {
        // First, because the caller's iterator may have panicked in the last shot.
        self.syndromes.fill(0);
        self.collect(detectors).and_then(|()| self.add_up(observables))
    }

    fn collect(&mut self, detectors: impl IntoIterator<Item = u32>) -> Result<(), MatchError> {
        let graph = &self.model.matching.graph;
        for detector in detectors {
            let Some(&node) = graph.node_of.get(detector as usize) else {
                return Err(MatchError::Detector { detector, detectors: graph.boundary() });
            };
            let part = graph.part_of[node as usize] as usize;
            self.syndromes[part] ^= 1 << (node - graph.parts[part].first);
        }
        Ok(())
    }

    fn add_up(&self, observables: &mut [u64]) -> Result<Matched, MatchError> {
        let Self { model, syndromes } = self;
        let graph = &model.matching.graph;
        let mut units = model.empty[0];
        let fired = || syndromes.iter().copied().enumerate().filter(|&(_, syndrome)| syndrome != 0);
        for (part, syndrome) in fired() {
            let (more, _) = model.row(part, syndrome);
            if more == UNEXPLAINED {
                let node = graph.parts[part].first + syndrome.trailing_zeros();
                return Err(MatchError::Unmatchable { detector: graph.detector_of[node as usize] });
            }
            units = units.wrapping_add(more);
        }
        xor(observables, &model.empty[1..]);
        fired().for_each(|(part, syndrome)| xor(observables, model.row(part, syndrome).1));
        let units = units as i64;
        Ok(Matched { weight: units as f64 / graph.scale, units })
    }
}
