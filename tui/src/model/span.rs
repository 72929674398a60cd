//! A time span as a person types it after a command, and as the console says it.
//!
//! Pure.

use pinwheel_engine::engine::LENT_MAX;
use std::time::Duration;

/// Parses `90s`, `20m`, `2h`: whole numbers above 0, at most [`LENT_MAX`].
pub fn span(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let span = Duration::from_secs(number.checked_mul(seconds)?);
    (!span.is_zero() && span <= LENT_MAX).then_some(span)
}

/// A time span in the form that [`span`] parses.
pub fn said(span: Duration) -> String {
    match span.as_secs() {
        seconds if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::span;
    use pinwheel_engine::engine::LENT_MAX;
    use std::time::Duration;

    #[test]
    fn a_span_is_a_number_with_its_unit_and_at_most_thirty_days() {
        assert_eq!(span("20m"), Some(Duration::from_secs(1_200)));
        assert_eq!(span("720h"), Some(LENT_MAX));
        for text in ["", "m", "0s", "721h", "20", "-1m", "1.5h", "18446744073709551615h", "20µ"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_the_span_panic(typed in "\\PC{0,20}") {
            let _ = span(&typed);
        }
    }
}
