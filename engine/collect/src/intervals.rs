//! Wilson's score interval for a rate (E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209), and Byar's
//! approximation of the Poisson interval for a count (N. E. Breslow, N. E. Day, IARC Sci. Publ. 82
//! (1987) 69).
//!
//! Pure. Never leaves 0..=1, and is sound at zero events, where the textbook interval has no width.

/// The normal quantile that leaves 2.5 % on each side.
const Z_95: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a rate seen as `events` among `trials`; `None` without trials.
pub fn interval_95(events: u64, trials: u64) -> Option<[f64; 2]> {
    if trials == 0 {
        return None;
    }
    let n = trials as f64;
    let rate = events as f64 / n;
    let z2 = Z_95 * Z_95;
    let centre = rate + z2 / (2.0 * n);
    let half = Z_95 * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // Without an event the interval begins at 0, with nothing but events it ends at 1. Rounding would miss both.
    let low = if events == 0 { 0.0 } else { ((centre - half) / scale).max(0.0) };
    let high = if events == trials { 1.0 } else { ((centre + half) / scale).min(1.0) };
    Some([low, high])
}

/// The 95 % interval of the expected number where `events` were counted.
pub fn byar_95(events: u64) -> [f64; 2] {
    let n = events as f64;
    let bound = |n: f64, z: f64| {
        if n == 0.0 { 0.0 } else { n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).max(0.0).powi(3) }
    };
    [bound(n, -Z_95), bound(n + 1.0, Z_95)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{byar_95, interval_95};

    /// Against R's `prop.test(x, n, correct = FALSE)`.
    #[test]
    fn known_intervals_are_met() {
        for (events, trials, low, high) in [
            (0, 10, 0.0, 0.277_53),
            (5, 10, 0.236_59, 0.763_41),
            (10, 100, 0.055_23, 0.174_37),
            (10, 10, 0.722_47, 1.0),
        ] {
            let [found_low, found_high] = interval_95(events, trials).unwrap();
            assert!(
                (found_low - low).abs() < 1e-4 && (found_high - high).abs() < 1e-4,
                "{events}/{trials}: {found_low} {found_high}"
            );
        }
    }

    #[test]
    fn the_interval_begins_at_0_without_events_and_ends_at_1_with_nothing_else() {
        for trials in (1..10_000).chain([1 << 53, u64::MAX]) {
            assert_eq!(interval_95(0, trials).unwrap()[0], 0.0, "{trials}");
            assert_eq!(interval_95(trials, trials).unwrap()[1], 1.0, "{trials}");
        }
    }

    /// Against R's `poisson.test(n)`, which is exact.
    #[test]
    fn counts_have_about_their_exact_interval() {
        for (events, low, high) in [(0, 0.0, 3.689), (1, 0.025, 5.572), (10, 4.795, 18.390), (100, 81.364, 121.627)] {
            let [found_low, found_high] = byar_95(events);
            assert!(
                (found_low - low).abs() < 0.05 && (found_high - high).abs() < 0.05,
                "{events}: {found_low} {found_high}"
            );
        }
    }

    #[test]
    fn there_is_no_interval_without_trials() {
        assert_eq!(interval_95(0, 0), None);
    }
}
