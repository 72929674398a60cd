//! Synthetic data from outside the board.

use super::SyntheticFaults;
use crate::model::derived::Quantiles;
use crate::model::lookups::{Event, LookupResult, Point};
use pinwheel_engine::host::check::{Row, Verdict};
use pinwheel_engine::host::usage::CoreUse;
use pinwheel_hosts::description::Load;
use pinwheel_hosts::incoming::Counts;
use pinwheel_hosts::membership::State;
use pinwheel_hosts::status::{HostRow, Trip};

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
        LookupResult::Hosts(Ok(hosts(trouble))),
        LookupResult::Log(Ok(vec![
            event(0, "phase", "WARMUP"),
            event(1, "phase", "LIVE"),
            event(2, "note", "pump on"),
            event(2, "operated", "feed held by ada (uid 1000, process 7, pts/3): tea"),
        ])),
        LookupResult::Chart(Ok((points(), (0, 6_000_000_000)))),
    ]
}

/// Three hosts; in trouble one is gone, and one refuses streams.
fn hosts(trouble: SyntheticFaults) -> Vec<HostRow> {
    let is_well = trouble != SyntheticFaults::All;
    let host = |name: &str, state: State, why: &str, max: f64, given: &[u32]| HostRow {
        name: name.to_owned(),
        is_self: name == "lab1",
        state,
        why_not: Some(why.to_owned()).filter(|why| !why.is_empty()),
        version: "0.2.0".to_owned(),
        own: 4,
        streams: 4,
        load: Load { average: max / 2.0, max, backlog_ns: (max * 4e6) as u64 },
        heard_ns: 120_000_000,
        link_ns: (name != "lab1").then_some(Trip { p50: 310_000, p99: 1_900_000 }),
        losses: u64::from(state == State::Gone),
        given: given.to_vec(),
        answered: 48_211 * given.len() as u64,
        taken_back: if state == State::Gone { 17 } else { 0 },
        sent: Counts { shots: 1_204, refused: if is_well { 0 } else { 3 }, full: 0 },
    };
    let lab3 = match is_well {
        true => host("lab3", State::Up, "", 0.06, &[]),
        false => host("lab3", State::Gone, "it is gone", 0.0, &[]),
    };
    vec![host("lab1", State::Up, "", 0.31, &[]), host("lab2", State::Up, "", 0.12, &[2, 5]), lab3]
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
