//! A graph prepared for matching: what all workers share.
//!
//! Built once by cold code; read by every [`Matcher`](crate::Matcher). Bounded by the graph and the
//! limit on its tables.

use crate::graph::{Edge, Graph, GraphError};
use crate::table::Tables;

/// Bytes that the tables of a model may take unless the caller says otherwise: enough for a rotated
/// surface code of distance and rounds 9.
///
/// # Why no more
///
/// Tables serve clusters of few defects. At distance 13 and p = 0.001 a shot has 38 defects, few of
/// them alone, and tables of 7 MB miss the caches: 9.5 µs a shot instead of 4.9.
pub const TABLE_BYTES_MAX: usize = 1 << 20;

/// A matching problem, ready for matchers.
#[derive(Debug)]
pub struct MatchingModel {
    pub(crate) graph: Graph,
    pub(crate) tables: Tables,
}

impl MatchingModel {
    /// The problem of `detectors` detectors and `edges`, whose observables take `observable_words`
    /// words. Parallel edges may differ in everything; the lightest is used. Tables of distances
    /// take up to [`TABLE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`GraphError`]; it names the edge by its index.
    pub fn new<'a>(
        detectors: u32,
        observable_words: usize,
        edges: impl IntoIterator<Item = Edge<'a>>,
    ) -> Result<Self, GraphError> {
        Self::with_tables(detectors, observable_words, edges, TABLE_BYTES_MAX)
    }

    /// As [`Self::new`], with tables of up to `table_bytes_max` bytes. Connected parts whose tables
    /// do not fit have none: their shots take several times as long. Answers weigh the same.
    ///
    /// # Errors
    ///
    /// [`GraphError`]; it names the edge by its index.
    pub fn with_tables<'a>(
        detectors: u32,
        observable_words: usize,
        edges: impl IntoIterator<Item = Edge<'a>>,
        table_bytes_max: usize,
    ) -> Result<Self, GraphError> {
        let graph = Graph::new(detectors, observable_words, edges)?;
        let tables = Tables::new(&graph, table_bytes_max);
        Ok(Self { graph, tables })
    }

    /// Number of detectors.
    pub fn detectors(&self) -> u32 {
        self.graph.boundary()
    }

    /// Number of edges.
    pub fn edges(&self) -> u32 {
        self.graph.edges()
    }

    /// Words of an answer's observables.
    pub fn observable_words(&self) -> usize {
        self.graph.observable_words
    }

    /// Integer units for each unit of weight: weights are rounded to even multiples of one unit.
    pub fn scale(&self) -> f64 {
        self.graph.scale
    }

    /// Bytes on the heap: the graph, and the tables.
    pub fn bytes(&self) -> usize {
        self.graph.bytes() + self.tables.bytes()
    }
}
