//! Threads: which is late, and under what policy?
//!
//! One row each, in plan order so that rows keep their places; below the list the selected thread
//! in full.

use super::table::{self, Empty, Pointer};
use crate::model::derived::ThreadDerived;
use crate::model::lists::List;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time, time_or_dash};
use crate::widgets::pen::Pen;
use pinwheel_engine::board::snapshot::{EngineView, ThreadView};

/// Text before there is a thread.
const EMPTY: Empty<'_> = Empty {
    why: "No hot thread yet: the engine is making the plan.",
    fill: "Threads appear as they start; no key is needed.",
};

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    table::with_details(model, List::Threads, View::Threads.heading(), EMPTY, pen, |row, pen| {
        if let (Some(thread), Some(derived)) = (picture.snapshot.threads.get(row), picture.derived.threads.get(row)) {
            detail(&picture.snapshot.engine, thread, derived, pen);
        }
    });
}

/// The overview's part: as many rows as fit, in plan order.
pub fn list(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    pen.rule(0, "threads");
    let room = pen.height();
    if picture.snapshot.threads.is_empty() {
        pen.put(1, 1, EMPTY.why, Tone::Warn);
        return;
    }
    let rows: Vec<usize> = (0..picture.snapshot.threads.len()).collect();
    table::table(model, List::Threads, &rows, Pointer::Hidden, &mut pen.rows(0, room));
}

fn detail(engine: &EngineView, thread: &ThreadView, derived: &ThreadDerived, pen: &mut Pen<'_>) {
    pen.rule(0, &format!("{}, thread {}", thread.name, thread.tid));
    let core = match thread.core {
        Some(core) if thread.exclusive => format!("core {core}, alone on it"),
        Some(core) => format!("core {core}, shared"),
        None => "not pinned to a core".to_owned(),
    };
    let pinned = if thread.pinned { "pinned and verified" } else { "not pinned" };
    let priority = thread.priority.found.as_deref().unwrap_or("not visible");
    let stage = thread.stage.map_or("between roles", |stage| stage.name());
    let gap = derived.gap;
    let mut lines = vec![
        format!("{core}, {pinned}; priority {priority}; now {stage}"),
        format!(
            "policy {} asked, {} run; epoch {} of {}",
            thread.policy_requested.name(),
            thread.policy_acknowledged.name(),
            thread.epoch_acknowledged,
            engine.spin_epoch_requested
        ),
        format!(
            "heartbeat {} ago, limit {}; longest silence of the last sample {}",
            time(thread.heartbeat_age_ns),
            time(engine.heartbeat_limit_ns),
            time(derived.silence_ns)
        ),
        format!(
            "frame gaps: p50 {}  p99 {}  p99.9 {}  max {}  (ever {}); {} noisy while polling; {} interrupts",
            time_or_dash(gap.map(|g| g.p50_ns)),
            time_or_dash(gap.map(|g| g.p99_ns)),
            time_or_dash(gap.map(|g| g.p999_ns)),
            time_or_dash(gap.map(|g| g.max_ns)),
            time(thread.frame_gap.max_ns()),
            count(thread.noise.gaps),
            count(thread.noise.interrupts)
        ),
    ];
    lines.extend(noise(thread, derived));
    lines.push(format!(
        "frames {} ({}), {} with work; items {} ({}); yields {}",
        count(thread.frames),
        rate(derived.frames_per_s),
        count(thread.frames_busy),
        count(thread.items),
        rate(derived.items_per_s),
        count(thread.yields)
    ));
    lines.push(memory(thread));
    // Ended roles first: a low screen cuts the rest of the text.
    let mut y = ended_roles(thread, pen);
    for line in [refusals(thread), competitor(thread)].iter().filter(|line| !line.is_empty()) {
        y = pen.put_wrapped(1, y, line, Tone::Warn);
    }
    for line in &lines {
        y = pen.put_wrapped(1, y, line, Tone::Plain);
    }
}

/// What takes its core away: how much, who, and what would mend it.
fn noise(thread: &ThreadView, derived: &ThreadDerived) -> Vec<String> {
    let Some(all) = thread.noise.shares() else {
        return vec!["noise: not measured yet, or diagnostics: Off".to_owned()];
    };
    let now = derived.noise.map_or_else(|| "–".to_owned(), |now| format!("{:.2} %", now.lost() * 100.0));
    // A competitor without a record of it has a line of its own.
    let source = thread.noise.source_text(None, thread.core);
    let lines = [format!("noise: last second {now}; since start {}", all.text()), source];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

fn memory(thread: &ThreadView) -> String {
    let memory = &thread.memory;
    let calls = match memory.allocations {
        None => "allocator calls not visible".to_owned(),
        Some(0) => "no allocator call in Live".to_owned(),
        Some(calls) => format!("{} allocator calls in Live", count(calls)),
    };
    format!(
        "{calls}, {} lent to libraries; off its core in {} frames; memory {} KiB touched, {} locked",
        count(memory.lent),
        count(thread.frames_elsewhere),
        memory.touched_bytes >> 10,
        memory.locked_bytes >> 10
    )
}

/// Why the thread does not run as the profile specifies.
fn refusals(thread: &ThreadView) -> String {
    let priority = thread.priority.why_not.as_ref();
    let priority = priority.map(|why| format!("no priority {}: {why}", thread.priority.asked));
    let both: Vec<String> = thread.policy_refusal.iter().cloned().chain(priority).collect();
    both.join("; ")
}

/// The process that competes for its core.
fn competitor(thread: &ThreadView) -> String {
    let Some(competitor) = &thread.contended_by else { return String::new() };
    let user = if competitor.user.is_empty() { "user not visible" } else { &competitor.user };
    format!(
        "contended by {} ({}, {user}): waited {}, ran {} of {}; {} ago",
        competitor.command,
        competitor.pid,
        time(competitor.waited_ns),
        time(competitor.ran_ns),
        time(competitor.span_ns),
        time(competitor.age_ns)
    )
}

/// The roles that ended, a line each; returns the row after them. Where none of the thread panicked, they
/// ended with their silo.
fn ended_roles(thread: &ThreadView, pen: &mut Pen<'_>) -> u16 {
    let dead = thread.roles.iter().filter_map(|role| role.died_frame.map(|frame| (role, frame)));
    let mut y = 1;
    for (role, frame) in dead {
        let how = if thread.panic_site.is_some() { "panicked" } else { "ended with its silo" };
        let text = format!("✖ {} {} of silo {} {how} in frame {frame}", role.kind, role.index, role.silo);
        pen.put(1, y, &text, Tone::Bad);
        y += 1;
    }
    y
}
