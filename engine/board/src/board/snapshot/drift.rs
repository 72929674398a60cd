//! An error that differs from the model, within a stream's view.

use serde::Serialize;

/// An error that has become more or less frequent than the model says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftView {
    /// The detector that it flips, or the lower of two.
    pub detector: u32,
    /// The higher of two.
    pub partner: Option<u32>,
    /// How often it happens, divided by the model's.
    pub ratio: f64,
    /// Since when, nanoseconds from the engine's start.
    pub since_ns: u64,
    /// Shots of the stream that were counted.
    pub shots: u64,
}

/// An error and its change, in words: `edge D12–D15 happens 2.1 times as often as the model says`.
pub fn drift_sentence(detector: u32, partner: Option<u32>, ratio: f64) -> String {
    let which = match partner {
        Some(partner) => format!("edge D{detector}–D{partner}"),
        None => format!("the boundary edge of D{detector}"),
    };
    let digits = if ratio < 0.95 { 2 } else { 1 };
    format!("{which} happens {ratio:.digits$} times as often as the model says")
}

#[cfg(test)]
mod tests {
    use super::drift_sentence;

    #[test]
    fn an_error_that_became_rare_is_not_called_gone() {
        let said = |partner, ratio| drift_sentence(4, partner, ratio);
        assert_eq!(said(Some(7), 3.04), "edge D4–D7 happens 3.0 times as often as the model says");
        assert_eq!(said(None, 0.04), "the boundary edge of D4 happens 0.04 times as often as the model says");
    }
}
