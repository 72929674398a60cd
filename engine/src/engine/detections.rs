//! Files of a run's directory that hold what the drift watch counted: `detections.json` and the models.
//!
//! Makes their names and contents; writes nothing. The drift watch writes them while the run goes on, the
//! run's owner at its end; `pinwheel fit` reads them. Bounded by the counts. Counts name the hash of their model:
//! who reads while the run goes on may find the file of the next one.

use crate::code::Model;
use crate::code::drift::Drifted;
use crate::code::pairs::PairCounts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What was counted of a stream.
#[derive(Clone, Debug)]
pub struct StreamCounts {
    /// The stream.
    pub stream: u32,
    /// The model that it is decoded by, and compared with.
    pub model: Arc<Model>,
    /// The error that differs most from the model, if one does at the end.
    pub drifted: Option<Drifted>,
    /// Since it differs; otherwise since the start.
    pub counts: PairCounts,
}

/// The file of the counts: a list of [`StreamDetections`].
pub const DETECTIONS: &str = "detections.json";

/// A stream's counts: since an error has drifted, if one has; otherwise since the stream has its model.
#[derive(Debug, Serialize, Deserialize)]
pub struct StreamDetections {
    /// The stream.
    pub stream: u32,
    /// File of its model in the directory.
    pub model: String,
    /// [`Model::hash`] of its model.
    pub model_hash: u64,
    /// Number of shots.
    pub shots: u64,
    /// How often each detector fired.
    pub fired: Vec<u64>,
    /// How often both of each pair did that share a mechanism, in ascending order of the pairs.
    pub together: Vec<u64>,
}

/// Names and contents of the files: the models, except those that `kept` has at their place, then the counts. Empty
/// if nothing was counted. `kept` has the models of all files then.
#[must_use]
pub fn detection_files(counted: &[StreamCounts], kept: &mut Vec<Arc<Model>>) -> Vec<(String, Vec<u8>)> {
    let mut models: Vec<Arc<Model>> = Vec::new();
    let mut detections = Vec::with_capacity(counted.len());
    for StreamCounts { stream, model, counts, .. } in counted {
        let place = models.iter().position(|known| Arc::ptr_eq(known, model)).unwrap_or_else(|| {
            models.push(Arc::clone(model));
            models.len() - 1
        });
        let PairCounts { shots, fired, together } = counts.clone();
        let (model, model_hash) = (model_name(place), model.hash());
        detections.push(StreamDetections { stream: *stream, model, model_hash, shots, fired, together });
    }
    let is_new =
        |(place, model): &(usize, &Arc<Model>)| kept.get(*place).is_none_or(|before| !Arc::ptr_eq(before, model));
    let new = models.iter().enumerate().filter(is_new);
    let mut files: Vec<(String, Vec<u8>)> =
        new.map(|(place, model)| (model_name(place), model.to_string().into_bytes())).collect();
    *kept = models;
    if !detections.is_empty()
        && let Ok(json) = serde_json::to_vec(&detections)
    {
        files.push((DETECTIONS.to_owned(), json));
    }
    files
}

fn model_name(place: usize) -> String {
    if place == 0 { "model.dem".to_owned() } else { format!("model-{place}.dem") }
}
