//! Threads: which is late, and under what policy?
//!
//! A row each, in plan order so that rows stay put; below the list the thread under the cursor in full.

use super::{rows_of, scrolled};
use crate::model::derived::ThreadDerived;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time, time_or_dash};
use crate::widgets::pen::Pen;
use crate::widgets::strip::{bar_log, heat};
use pinwheel_engine::board::snapshot::{EngineView, ThreadState, ThreadView};
use pinwheel_engine::profile::RoleKind;

/// Columns of the fields before the strip.
const STRIP_AT: u16 = 32;
/// Rows of the detail pane.
const DETAIL_ROWS: u16 = 9;

/// The view.
pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let height = pen.height();
    let detail = DETAIL_ROWS.min(height / 2);
    list(model, picture, &mut pen.rows(0, height - detail));
    let cursor = model.cursor.thread;
    let mut pen = pen.rows(height - detail, height);
    match (picture.snapshot.threads.get(cursor), picture.derived.threads.get(cursor)) {
        (Some(thread), Some(derived)) => self::detail(&picture.snapshot.engine, thread, derived, &mut pen),
        _ => {
            pen.rule(0, "thread");
        }
    }
}

/// Title and as many rows as there is room for; the overview's part too.
pub fn list(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let snapshot = &picture.snapshot;
    let title = if model.view == View::Threads { View::Threads.title() } else { "threads" };
    pen.rule(0, title);
    let strip_cells = strip_cells(pen.width());
    let headings =
        [(STRIP_AT - 10, "silence"), (STRIP_AT - 1, "past"), (STRIP_AT + strip_cells, "gap p99 busy  roles")];
    for (x, heading) in headings {
        if model.view != View::Threads || x > 50 {
            pen.put(x, 0, &format!(" {heading} "), Tone::Dim);
        }
    }
    if snapshot.threads.is_empty() {
        pen.put(1, 1, "No hot thread yet: the plan is being made. Threads appear as they start.", Tone::Warn);
        return;
    }
    let visible = rows_of(pen, 1);
    let in_view = model.view == View::Threads;
    let cursor = if in_view { model.cursor.thread } else { 0 };
    let first = scrolled(cursor, visible, snapshot.threads.len());
    for (y, i) in (1..).zip(first..snapshot.threads.len()).take(visible) {
        row(model, picture, i, pen, y);
        if in_view && i == cursor {
            pen.highlight(y);
        }
    }
}

fn strip_cells(width: u16) -> u16 {
    match width {
        0..=99 => 10,
        100..=159 => 30,
        _ => 60,
    }
}

fn row(model: &Model, picture: &Picture, i: usize, pen: &mut Pen<'_>, y: u16) {
    let engine = &picture.snapshot.engine;
    let thread = &picture.snapshot.threads[i];
    let Some(derived) = picture.derived.threads.get(i) else { return };
    let mut name = pen.part(1, y, 10, 1);
    name.put(0, 0, &thread.name, Tone::Plain);
    let core = thread.core.map_or_else(|| "c–".to_owned(), |core| format!("c{core:02}"));
    pen.put(11, y, &core, if thread.pinned { Tone::Plain } else { Tone::Dim });
    let (policy, tone) = policy(engine, thread);
    pen.put(15, y, &policy, tone);
    state(engine, thread, pen, y);
    let cells = strip_cells(pen.width());
    let strip: Vec<u64> = model.scene().history.strip(i, usize::from(cells)).collect();
    let first = STRIP_AT + cells - u16::try_from(strip.len()).unwrap_or(cells).min(cells);
    for (x, silence_ns) in (first..).zip(strip) {
        let (glyph, tone) = bar_log(silence_ns, engine.heartbeat_limit_ns);
        pen.dot(x, y, glyph, tone);
    }
    let x = STRIP_AT + cells + 1;
    pen.put(x, y, &time_or_dash(derived.gap.map(|gap| gap.p99_ns)), Tone::Plain);
    let busy = derived.busy.map_or_else(|| "–".to_owned(), |busy| format!("{:3.0}%", busy * 100.0));
    pen.put(x + 7, y, &busy, Tone::Plain);
    roles(thread, pen, x + 14, y);
}

/// Policy as acknowledged; a switch not yet seen is shown as `lab→shared`.
pub fn policy(engine: &EngineView, thread: &ThreadView) -> (String, Tone) {
    let runs = thread.policy_acknowledged.name();
    if thread.policy_refusal.is_some() {
        return (format!("{runs}!"), Tone::Warn);
    }
    if thread.epoch_acknowledged < engine.spin_epoch_requested {
        return (format!("→{}", thread.policy_requested.name()), Tone::Warn);
    }
    (runs.to_owned(), Tone::Good)
}

fn state(engine: &EngineView, thread: &ThreadView, pen: &mut Pen<'_>, y: u16) {
    let (glyph, tone, text) = match thread.state {
        ThreadState::Starting => ('○', Tone::Dim, "starting".to_owned()),
        ThreadState::Finished => ('✔', Tone::Dim, "finished".to_owned()),
        ThreadState::Running => {
            let (glyph, tone) = heat(thread.heartbeat_age_ns, engine.heartbeat_limit_ns);
            (glyph, tone, time(thread.heartbeat_age_ns))
        }
    };
    pen.dot(23, y, glyph, tone);
    pen.part(25, y, STRIP_AT - 26, 1).put(0, 0, &text, tone);
}

/// Roles in call order, the one that runs and the ones that died marked; abbreviated where they would not fit.
fn roles(thread: &ThreadView, pen: &mut Pen<'_>, mut x: u16, y: u16) {
    let full: usize = thread.roles.iter().map(|role| role.kind.name().len() + 1).sum();
    let fits = full <= usize::from(pen.width().saturating_sub(x));
    for role in &thread.roles {
        let name = if fits { role.kind.name() } else { short(role.kind) };
        let dead = role.died_frame.is_some();
        let text = if dead { format!("✖{name}") } else { name.to_owned() };
        let length = u16::try_from(text.chars().count()).unwrap_or(0);
        if x.saturating_add(length) >= pen.width() {
            pen.put(x.min(pen.width().saturating_sub(1)), y, "…", Tone::Dim);
            return;
        }
        let tone = match (dead, thread.stage == Some(role.kind)) {
            (true, _) => Tone::Bad,
            (false, true) => Tone::Accent,
            (false, false) => Tone::Plain,
        };
        x = pen.put(x, y, &text, tone) + 1;
    }
}

fn short(kind: RoleKind) -> &'static str {
    match kind {
        RoleKind::Feed => "feed",
        RoleKind::Dispatch => "disp",
        RoleKind::Device => "dev",
        RoleKind::Poll => "poll",
        RoleKind::Graph => "grph",
        RoleKind::Decode => "dec",
        RoleKind::Harvest => "harv",
    }
}

fn detail(engine: &EngineView, thread: &ThreadView, derived: &ThreadDerived, pen: &mut Pen<'_>) {
    pen.rule(0, &format!("{}, thread {}", thread.name, thread.tid));
    let core = match thread.core {
        Some(core) if thread.exclusive => format!("core {core}, alone on it"),
        Some(core) => format!("core {core}, shared"),
        None => "no core of its own".to_owned(),
    };
    let pinned = if thread.pinned { "pinned and verified" } else { "not pinned" };
    let priority = thread.priority.found.as_deref().unwrap_or("not visible");
    let stage = thread.stage.map_or("between roles", |stage| stage.name());
    let gap = derived.gap;
    let lines = [
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
            "frame gaps: p50 {}  p99 {}  p99.9 {}  max {}  (ever {})",
            time_or_dash(gap.map(|g| g.p50_ns)),
            time_or_dash(gap.map(|g| g.p99_ns)),
            time_or_dash(gap.map(|g| g.p999_ns)),
            time_or_dash(gap.map(|g| g.max_ns)),
            time(thread.frame_gap.max_ns())
        ),
        format!(
            "frames {} ({}), {} with work; items {} ({}); yields {}",
            count(thread.frames),
            rate(derived.frames_per_s),
            count(thread.frames_busy),
            count(thread.items),
            rate(derived.items_per_s),
            count(thread.yields)
        ),
        memory(thread),
        refusals(thread),
        rival(thread),
    ];
    for (y, line) in (1..).zip(lines) {
        pen.put(1, y, &line, if y >= 7 { Tone::Warn } else { Tone::Plain });
    }
    died(thread, pen);
}

fn memory(thread: &ThreadView) -> String {
    let memory = &thread.memory;
    let calls = match memory.allocations {
        None => "allocator calls not visible".to_owned(),
        Some(0) => "no allocator call in Live".to_owned(),
        Some(calls) => format!("{} allocator calls in Live", count(calls)),
    };
    format!(
        "memory {} KiB touched, {} locked; {calls}, {} lent to libraries; off its core in {} frames",
        memory.touched_bytes >> 10,
        memory.locked_bytes >> 10,
        count(memory.lent),
        count(thread.frames_elsewhere)
    )
}

/// Why it does not run as the profile says.
fn refusals(thread: &ThreadView) -> String {
    let priority = thread.priority.why_not.as_ref();
    let priority = priority.map(|why| format!("no priority {}: {why}", thread.priority.asked));
    let both: Vec<String> = thread.policy_refusal.iter().cloned().chain(priority).collect();
    both.join("; ")
}

/// Who else wanted its core.
fn rival(thread: &ThreadView) -> String {
    let Some(rival) = &thread.contended_by else { return String::new() };
    let user = if rival.user.is_empty() { "user not visible" } else { &rival.user };
    format!(
        "wanted by {} ({}, {user}): waited {}, ran {} of {}; {} ago",
        rival.command,
        rival.pid,
        time(rival.waited_ns),
        time(rival.ran_ns),
        time(rival.span_ns),
        time(rival.age_ns)
    )
}

fn died(thread: &ThreadView, pen: &mut Pen<'_>) {
    let dead = thread.roles.iter().filter_map(|role| role.died_frame.map(|frame| (role, frame)));
    for (y, (role, frame)) in (7..).zip(dead) {
        let text = format!("✖ {} {} of silo {} died in frame {frame}", role.kind, role.index, role.silo);
        pen.put(1, y, &text, Tone::Bad);
    }
}
