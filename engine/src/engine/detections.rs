//! Files of a run's directory that hold what the drift watch counted: `detections.json` and the models.
//!
//! Makes their names and contents; writes nothing. The drift watch writes them while the run goes on, the
//! run's owner at its end; `pinwheel fit` reads them. Bounded by the counts.

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
    /// Number of shots.
    pub shots: u64,
    /// How often each detector fired.
    pub fired: Vec<u64>,
    /// How often both of each pair did that share a mechanism, in ascending order of the pairs.
    pub together: Vec<u64>,
}

/// Names and contents of the files: the models, then the counts. Empty if nothing was counted.
#[must_use]
pub fn detection_files(counted: &[StreamCounts]) -> Vec<(String, Vec<u8>)> {
    let mut models: Vec<&Arc<Model>> = Vec::new();
    let mut detections = Vec::with_capacity(counted.len());
    for StreamCounts { stream, model, counts, .. } in counted {
        let place = models.iter().position(|known| Arc::ptr_eq(known, model)).unwrap_or_else(|| {
            models.push(model);
            models.len() - 1
        });
        let PairCounts { shots, fired, together } = counts.clone();
        detections.push(StreamDetections { stream: *stream, model: model_name(place), shots, fired, together });
    }
    let mut files: Vec<(String, Vec<u8>)> =
        (models.iter().enumerate()).map(|(place, model)| (model_name(place), model.to_string().into_bytes())).collect();
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
