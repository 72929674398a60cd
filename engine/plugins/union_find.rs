//! A decoder plugin in Rust: our own union-find behind the interface of `deq-decoder-abi`.
//!
//! Takes models whose mechanisms fire one or two detectors. Of mechanisms with the same detectors it
//! answers with the first. Runs wherever its host calls it; after the first shots it allocates nothing.
//!
//! ```sh
//! cargo build --release -p pinwheel-matching --example union_find_plugin
//! pinwheel run --decoder plugin:target/release/examples/libunion_find_plugin.so
//! ```

use deq_decoder_abi::plugin::{DeqDecoder, HypergraphView, OutputBuffer, SyndromeView};
use pinwheel_matching::{Edge, MatchingModel, UnionFind};
use std::collections::BTreeMap;
use std::sync::Arc;

struct UnionFindPlugin {
    decoder: UnionFind,
    /// The mechanism of each edge.
    mechanism_of: Vec<u64>,
}

impl DeqDecoder for UnionFindPlugin {
    fn create(graph: HypergraphView<'_>, config_json: &[u8]) -> Result<Self, String> {
        if !config_json.is_empty() {
            return Err("it takes no configuration".to_owned());
        }
        // By their ends, the boundary last.
        let mut merged: BTreeMap<(u32, u32), (f64, u64)> = BTreeMap::new();
        for (mechanism, (probability, detectors)) in (0..).zip(graph.edges()) {
            let ends = match *detectors {
                [] => continue,
                [a] => (a as u32, u32::MAX),
                [a, b] => (a.min(b) as u32, a.max(b) as u32),
                _ => {
                    return Err(format!(
                        "mechanism {mechanism} fires {} detectors, at most 2 are possible",
                        detectors.len()
                    ));
                }
            };
            let edge = merged.entry(ends).or_insert((0.0, mechanism));
            // Either of them, but not both.
            edge.0 = edge.0 * (1.0 - probability) + probability * (1.0 - edge.0);
        }
        let edges = merged.iter().map(|((a, b), (probability, _))| Edge {
            a: *a,
            b: (*b != u32::MAX).then_some(*b),
            weight: (1.0 - probability).ln() - probability.ln(),
            observables: &[],
        });
        let model = MatchingModel::new(graph.vertex_num as u32, 0, edges).map_err(|error| error.to_string())?;
        let mechanism_of = merged.values().map(|(_, mechanism)| *mechanism).collect();
        Ok(UnionFindPlugin { decoder: UnionFind::new(Arc::new(model)), mechanism_of })
    }

    fn decode(&mut self, syndrome: SyndromeView<'_>, out: &mut OutputBuffer) -> Result<(), String> {
        let fired = syndrome.sparse_indices().map(|detector| detector as u32);
        self.decoder.decode(fired, &mut []).map_err(|error| error.to_string())?;
        self.decoder.edges(|edge| out.push(self.mechanism_of[edge as usize]));
        Ok(())
    }
}

deq_decoder_abi::declare_decoder!(UnionFindPlugin);
