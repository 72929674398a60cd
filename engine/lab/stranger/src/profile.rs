//! Draws profiles, by the page of profile fields: every field that a run without a GPU can have.

use crate::draw::Draw;

/// A profile, and what its run may do because of it.
#[derive(Debug, Clone)]
pub struct Profile {
    pub text: String,
    pub streams: u64,
    pub silos: u64,
    /// Whether the observables of each `matching` and `lookup` answer are those of a lightest correction.
    pub is_exact: bool,
    /// Whether shots have soft bytes, which no other decoder than `matching` reads.
    pub is_soft: bool,
    /// Whether a watchdog pins a thread again whose core was away.
    pub is_watched: bool,
    /// Whether decoding may begin before a shot's last part is there.
    pub is_by_rounds: bool,
    /// Whether shots may be answered with an error: by injected faults, or by what becomes of a late shot.
    pub may_err: bool,
}

/// What the round needs of its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As many shots a second as possible: no device latency, many slots.
    Fast,
    /// Anything.
    Any,
    /// Anything whose every answer is exact: where answers do not name their decoder.
    Exact,
    /// The same for shots with soft bytes.
    Soft,
}

/// Draws one for a bundled model. No shot misses a deadline unless the profile says so: a loaded machine must not decide.
pub fn draw(draw: &mut Draw, kind: Kind, model: &str) -> Profile {
    let is_fast = kind == Kind::Fast;
    let base = *draw.pick(if is_fast { &["prod", "lab", "base"][..] } else { &["prod", "lab", "base", "shared"][..] });
    let mut fields = vec![format!("base: {base:?}"), "summary: \"drawn by the stranger\"".into()];
    let mut put = |key: &str, value: String| fields.push(format!("{key}: {value}"));
    let silos = if draw.one_in(4) { draw.between(2, 3) } else { 1 };
    let streams = draw.between(silos, if is_fast { 8 } else { 16 });
    put("silos", silos.to_string());
    let slots = if is_fast { 1 << draw.between(9, 13) } else { 1 << draw.between(3, 12) };
    put("slots", format!("{slots}"));
    if !is_fast || draw.one_in(2) {
        put("spin", (*draw.pick(&["Prod", "Lab", "Shared"])).into());
    }
    put("spin_budgets", format!("(lab_spin_us: {}, shared_sleep_us: {})", draw.below(200), draw.between(50, 900)));
    if draw.one_in(3) {
        put("decoders", format!("Count({})", draw.between(1, 3)));
    }
    put("workers", draw.between(1, 16).to_string());
    put("free_worker", (*draw.pick(&["AfterCopy", "AfterDecode"])).into());
    put("threads", (*draw.pick(&["Auto", "Balanced"])).into());
    let is_predecoded = kind == Kind::Any && draw.one_in(8);
    // Windows and streams look at a part of a shot at a time; the answer of blocks has the weight of the whole shot's.
    let distance = if model == "surface_d3" { 3 } else { 5 };
    let window = match (kind, draw.below(6)) {
        (Kind::Any, 0) => format!("Some((commit_rounds: {}, buffer_rounds: {distance}))", draw.between(1, 3)),
        (Kind::Any, 1) => format!("Stream((commit_rounds: {}, buffer_rounds: {distance}))", draw.between(1, 3)),
        (Kind::Any | Kind::Exact, 2) => format!("Blocks({})", draw.between(1, 3)),
        _ => "None".into(),
    };
    let is_predecoded = is_predecoded && (window == "None" || window.starts_with("Some"));
    if is_predecoded {
        put("predecoder", "Local".into());
    }
    let is_whole = window == "None";
    let is_exact = !is_predecoded && (is_whole || window.starts_with("Blocks"));
    let decoder = match kind {
        Kind::Soft => "Matching",
        _ if !is_whole => "Matching",
        Kind::Exact => *draw.pick(&["Matching", "Lookup"]),
        _ => *draw.pick(&["Matching", "Matching", "Lookup", "UnionFind", "Correlated"]),
    };
    // A table is for small models only.
    let decoder = if decoder == "Lookup" && model != "surface_d3" { "Matching" } else { decoder };
    put("decoder", decoder.into());
    put("window", window);
    let may_err = kind == Kind::Any && draw.one_in(5);
    let device = match if is_fast { 0 } else { draw.below(4) } {
        // Faults of launches need a device.
        0 if may_err || draw.one_in(2) => "Sim(latency: None)".into(),
        0 => "None".into(),
        1 => format!("Sim(latency: Fixed(us: {}.0))", draw.between(1, 50)),
        2 => format!("Sim(latency: Uniform(min_us: 1.0, max_us: {}.0))", draw.between(2, 200)),
        _ => format!("Sim(latency: LogNormal(median_us: {}.0, sigma: 0.5))", draw.between(2, 60)),
    };
    put("device", device);
    let launch_deadline_us = 30_000_000;
    put(
        "limits",
        format!(
            "(launch_deadline_us: {launch_deadline_us}, shot_deadline_us: 60000000, late_us: {}, drain_grace_s: 60, \
             heartbeat_ms: {})",
            draw.between(100, 100_000),
            draw.between(5, 500)
        ),
    );
    // A stopped engine is not to refuse what waited for it.
    put("placement", "(overflow: (deadline_ms: 60000))".into());
    put("input", format!("(streams: {streams})"));
    if may_err {
        put(
            "faults",
            format!(
                "(seed: {}, not_started: 0.001, unknown: 0.001, inside_launch: 0.05, decoder_panic: 0.0005, \
                 bad_address: 0.0005, lose_device_every: {})",
                draw.below(1000),
                if draw.one_in(2) { format!("Some({})", draw.between(500, 20_000)) } else { "None".into() }
            ),
        );
    }
    put("hot_allocations", "Count".into());
    put("priority", (*draw.pick(&["Normal", "Normal", "Nice(5)"])).into());
    put("courtesy", (*draw.pick(&["None", "Some((wait_ms: 50, quiet_s: 5))"])).into());
    let is_watched = !draw.one_in(6);
    if !is_watched {
        put("diagnostics", "Off".into());
    }
    put("recorder", format!("(kept_mb: {}, kept_runs: {})", draw.between(10, 100), draw.between(1, 20)));
    put(
        "graph",
        format!(
            "(ready: {}, placement: {}, batch_tasks: {}, window_tasks: {})",
            draw.pick(&["Auto", "Fifo", "FifoPerStream", "WorkSteal"]),
            draw.pick(&["Releaser", "ByStream"]),
            draw.between(1, 64),
            slots + 100 + draw.below(8_000),
        ),
    );
    put("on_hangup", "Detach".into());
    let text = format!("(\n    {},\n)\n", fields.join(",\n    "));
    let (is_soft, is_by_rounds) = (kind == Kind::Soft, !is_whole);
    Profile { text, streams, silos, is_exact, is_soft, is_watched, is_by_rounds, may_err }
}
