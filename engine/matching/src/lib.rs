//! Exact minimum-weight perfect matching for decoding, by sparse blossom; union-find, look-up tables.
//!
//! Owns the search for the lightest set of edges that explains the fired detectors of a shot, and for
//! a light one by union-find.
//! Depends on no other crate of the project: a graph is plain data. Cold code builds one
//! [`MatchingModel`] for each error model; each decode worker builds its own [`Matcher`] from it and
//! is its only caller. Memory is bounded by the model and allocated at construction; a shot
//! allocates nothing and never panics.
//!
//! A module imports only modules declared before it; the order below is the order to read in.
//!
//! ```text
//!   edges ─▶ graph ─▶ tables ──┐                      queue   one event for each node and region
//!              │               ├─▶ model (shared)     paths   shortest paths, for tables and edges
//!              └───────────────┘      │               search  regions, trees, blossoms
//!   fired detectors ─────────────▶ matcher ─▶ near: clusters of few defects, from the tables
//!   weights of one shot ──────────────┤        ▲ shortcuts: tables of a shot with lighter edges
//!                                     └─────▶ search: all others
//!   union_find: clusters that grow; another decoder on the same graph, faster and less exact
//!   lookup: the answer of every syndrome of a small graph, in a table
//!   correlated: two matchings; the first makes edges lighter in the second
//!   confidence: a matcher with the two classes of an observable held apart
//!   stream: a search over a ring of rounds, for shots that come round by round
//!   stream::blocks: blocks of rounds that several threads match, and their fusion
//! ```
//!
//! # Sources
//!
//! Higgott and Gidney, *Sparse Blossom* (arXiv:2303.15933): regions that grow on the detector graph,
//! alternating trees, one queued event for each node. Edmonds: blossoms. Delfosse and Nickerson
//! (arXiv:1709.06218), Huang, Newman and Brown (arXiv:2004.04693): union-find. The clusters, the tables,
//! the bounds on memory and the weights for one shot are this crate's own.
#![warn(missing_docs, unreachable_pub)]

pub mod bits;
pub mod graph;
pub mod defects;
pub mod queue;
pub mod paths;
pub mod search;
pub mod table;
pub mod weights;
pub mod shortcuts;
pub mod near;
pub mod model;
pub mod matcher;
pub mod union_find;
pub mod lookup;
pub mod correlated;
pub mod confidence;
pub mod stream;

pub use confidence::{Class, Confidence, ConfidenceError, ConfidenceModel};
pub use correlated::{CorrelatedMatcher, CorrelatedModel, Correlation, CorrelationError};
pub use graph::{Edge, GraphError};
pub use lookup::{LOOKUP_BYTES_MAX, Lookup, LookupError, LookupModel};
pub use matcher::{MatchError, Matched, Matcher};
pub use model::{MatchingModel, TABLE_BYTES_MAX};
pub use stream::blocks::{BlockFusion, BlockMatcher, BlockModel};
pub use stream::{StreamError, StreamMatcher, StreamModel, StreamModelError};
pub use union_find::UnionFind;
