//! Synthetic data from outside the board.

use super::SyntheticFaults;
use crate::model::derived::Quantiles;
use crate::model::lookups::{Event, LookupResult, Point};
use pinwheel_engine::host::check::{Row, Verdict};
use pinwheel_engine::host::usage::CoreUse;

/// The results of all look-ups.
pub fn looked_up(trouble: SyntheticFaults) -> Vec<LookupResult> {
    let verdict = if trouble == SyntheticFaults::All { Verdict::Fail } else { Verdict::Pass };
    let row = |id: &str, found: &str, expected: &str, verdict| Row {
        id: id.to_owned(),
        found: found.to_owned(),
        expected: expected.to_owned(),
        verdict,
        why: "a scheduler tick on a hot core is a frame that comes late".to_owned(),
        fix: if verdict == Verdict::Pass { String::new() } else { "boot with nohz_full=1".to_owned() },
    };
    let core = |core: u32| CoreUse {
        core,
        node: 0,
        sibling: None,
        allowed: true,
        claimed_by: None,
        locked_by: None,
        pinned_by: Vec::new(),
        busy: (core > 0).then_some(0.41),
    };
    let event = |number: u64, event: &str, text: &str| Event {
        number,
        utc: format!("2026-01-01T14:00:0{number}.500000000Z"),
        at_ns: Some(number * 1_000_000_000 + 500_000_000),
        thread: "watchdog".to_owned(),
        event: event.to_owned(),
        text: text.to_owned(),
        numbers: vec![number],
    };
    vec![
        LookupResult::Environment(Ok(vec![
            row("nohz_full", "none", "core 1", verdict),
            row("governor", "performance", "performance", Verdict::Pass),
            row("throttling", "no counter", "none in the last minute", Verdict::NotVisible),
        ])),
        LookupResult::Cores(Ok(vec![core(0), core(1)])),
        LookupResult::Log(Ok(vec![
            event(0, "phase", "WARMUP"),
            event(1, "phase", "LIVE"),
            event(2, "note", "pump on"),
            event(2, "operated", "feed held by ada (uid 1000, process 7, pts/3): tea"),
        ])),
        LookupResult::Chart(Ok((points(), (0, 6_000_000_000)))),
    ]
}

/// A rate that falls for a second while latency and backlog rise.
fn points() -> Vec<Point> {
    let point = |tenth: u64| {
        let is_slow = (30..40).contains(&tenth);
        let ns = if is_slow { 3_000_000 } else { 60_000 + 500 * tenth };
        Point {
            from_ns: tenth * 100_000_000,
            to_ns: (tenth + 1) * 100_000_000,
            answered: if is_slow { 4_000.0 } else { 20_000.0 },
            late: if is_slow { 900.0 } else { 0.0 },
            errored: 0.0,
            latency: Some(Quantiles { count: 9, p50_ns: ns / 2, p99_ns: ns, p999_ns: ns, max_ns: 2 * ns }),
            backlog: if is_slow { 1_600 * (tenth - 29) } else { 12 },
        }
    };
    (0..60).map(point).collect()
}
