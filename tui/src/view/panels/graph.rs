//! Graph: which task waits longest, and on what? Then fill level, cost per task, and the load of
//! each worker.

use super::{rows_of, shown_silo, which_silo};
use crate::model::derived::SiloDerived;
use crate::model::{Model, Picture, View};
use crate::theme::Tone;
use crate::widgets::format::{count, rate, time};
use crate::widgets::pen::Pen;
use crate::widgets::strip::{depth_tone, gauge};
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::snapshot::{GraphView, GraphWorkerView, ShadowView, WaitsOn};
use pinwheel_engine::profile::DecoderKind;

/// Column of the values.
const VALUE: u16 = 11;
/// Cells of a gauge.
const GAUGE: usize = 8;
/// First row of the costs.
const COSTS: u16 = 9;
/// Column of the comparison with a second decoder, beside the costs.
const SHADOW: u16 = 46;
/// First row of the workers.
const WORKERS: u16 = 14;

pub fn draw(model: &Model, picture: &Picture, pen: &mut Pen<'_>) {
    let x = pen.rule(0, View::Graph.heading());
    let Some((silo, derived)) = shown_silo(model, picture, "Tasks appear with the first shots.", pen) else { return };
    let graph = &silo.graph;
    let right = pen.width().saturating_sub(1);
    pen.put_right(x, right, 0, &format!(" {}; {} ", which_silo(model, silo.id), graph.policy), Tone::Accent);
    oldest(graph, pen);
    held(graph, pen);
    fill(graph, derived, pen);
    costs(graph, pen);
    shadow(picture.snapshot.shadow.as_ref(), pen);
    workers(graph, pen);
}

fn oldest(graph: &GraphView, pen: &mut Pen<'_>) {
    pen.put(1, 1, "oldest", Tone::Dim);
    let Some(oldest) = &graph.oldest else {
        pen.put(VALUE, 1, "no task is in progress", Tone::Good);
        return;
    };
    let on = match (oldest.waits_on, oldest.worker) {
        (WaitsOn::Predecessors(tasks), _) => format!("{tasks} tasks before it"),
        (WaitsOn::Permit(permits), _) => format!("a permit: {permits} are in use; raise graph.issue for more"),
        (WaitsOn::Worker, Some(worker)) => format!("its completion: it runs on decoder {worker}"),
        (WaitsOn::Worker, None) => "a free decoder".to_owned(),
    };
    let text = format!("{}: task {}, {} of stream {}", time(oldest.age_ns), oldest.id, oldest.kernel, oldest.stream);
    pen.put(VALUE, 1, &text, Tone::Plain);
    pen.put(1, 2, "waits on", Tone::Dim);
    pen.put(VALUE, 2, &on, Tone::Accent);
}

fn held(graph: &GraphView, pen: &mut Pen<'_>) {
    pen.put(1, 3, "held up", Tone::Dim);
    match &graph.held {
        None => {
            pen.put(VALUE, 3, "no stream waits for an earlier shot", Tone::Good);
        }
        Some(held) => {
            let text = format!(
                "{}: stream {} waits on its shot {}; {} arrived early",
                time(held.age_ns),
                held.stream,
                held.sequence,
                graph.waiting
            );
            pen.put(VALUE, 3, &text, Tone::Plain);
        }
    }
}

fn fill(graph: &GraphView, derived: &SiloDerived, pen: &mut Pen<'_>) {
    let tone = depth_tone(graph.window_used, graph.window_tasks);
    pen.put(1, 4, "window", Tone::Dim);
    let x = pen.put(VALUE, 4, &gauge(graph.window_used, graph.window_tasks, GAUGE), tone) + 1;
    let text = format!(
        "{} of {} tasks, stalled {} times; ran {}, {}",
        count(graph.window_used),
        count(graph.window_tasks),
        count(graph.window_stalls),
        count(graph.ran),
        rate(derived.tasks_per_s),
    );
    pen.put(x, 4, &text, Tone::Plain);
    for ready in graph.ready.iter().take(1) {
        let tone = depth_tone(ready.depth, ready.capacity);
        pen.put(1, 5, "ready", Tone::Dim);
        let x = pen.put(VALUE, 5, &gauge(ready.depth, ready.capacity, GAUGE), tone) + 1;
        let lanes: u64 = graph.workers.iter().map(|worker| worker.in_lane).sum();
        let text = format!(
            "{} of {} in {}; lanes {} of {}, full {} times",
            count(ready.depth),
            count(ready.capacity),
            ready.pool,
            count(lanes),
            count(graph.lane_shots.saturating_mul(graph.workers.len() as u64)),
            count(graph.lane_waits)
        );
        pen.put(x, 5, &text, Tone::Plain);
    }
    pen.put(1, 6, "gate", Tone::Dim);
    let gate = match graph.permits {
        0 => "open: tasks need no permit".to_owned(),
        permits => format!(
            "{} of {permits} permits in use, {} tasks set aside now, {} ever",
            graph.permits_used,
            count(graph.parked),
            count(graph.gate_waits)
        ),
    };
    pen.put(VALUE, 6, &gate, Tone::Plain);
    let flushes = &graph.flushes;
    pen.put(1, 7, "batches", Tone::Dim);
    let text = format!(
        "full {}, late {}, idle {}, turn's end {}",
        count(flushes.full),
        count(flushes.late),
        count(flushes.idle),
        count(flushes.turn)
    );
    pen.put(VALUE, 7, &text, Tone::Plain);
    pen.put(1, 8, "commits", Tone::Dim);
    let x = pen.put(VALUE, 8, &format!("{} in order, of these", count(graph.committed)), Tone::Plain) + 1;
    let tone = if graph.tombstones == 0 { Tone::Plain } else { Tone::Warn };
    let x = pen.put(x, 8, &format!("{} with an error", count(graph.tombstones)), tone);
    let tone = if graph.refused == 0 { Tone::Plain } else { Tone::Bad };
    pen.put(x, 8, &format!("; {} shots refused", count(graph.refused)), tone);
}

fn costs(graph: &GraphView, pen: &mut Pen<'_>) {
    pen.rule(COSTS, "cost of a task (a sample is timed)");
    for (x, heading) in [(VALUE, "p50"), (VALUE + 9, "p99"), (VALUE + 18, "max"), (VALUE + 27, "timed")] {
        pen.put(x, COSTS + 1, heading, Tone::Dim);
    }
    let rows: [(&str, &Histogram); 3] = [("submit", &graph.submit), ("wake", &graph.wake), ("release", &graph.release)];
    for (y, (name, times)) in (COSTS + 2..).zip(rows) {
        pen.put(1, y, name, Tone::Dim);
        if times.count() == 0 {
            pen.put(VALUE, y, "–", Tone::Dim);
            continue;
        }
        pen.put(VALUE, y, &time(times.quantile_ns(0.5)), Tone::Plain);
        pen.put(VALUE + 9, y, &time(times.quantile_ns(0.99)), Tone::Plain);
        pen.put(VALUE + 18, y, &time(times.max_ns()), Tone::Plain);
        pen.put(VALUE + 27, y, &count(times.count()), Tone::Plain);
    }
}

/// The comparison with a second decoder, if there is one.
fn shadow(shadow: Option<&ShadowView>, pen: &mut Pen<'_>) {
    let Some(shadow) = shadow else { return };
    let on = if shadow.is_on { "" } else { ", off" };
    let name = shadow.decoder.map_or("", DecoderKind::name);
    pen.put(SHADOW, COSTS, &format!(" shadow {name}, 1 in {}{on} ", count(shadow.one_in)), Tone::Accent);
    let agree = shadow.compared.saturating_sub(shadow.disagreements) as f64 / shadow.compared.max(1) as f64;
    let tone = if shadow.disagreements == 0 { Tone::Plain } else { Tone::Warn };
    let text = format!("{:.3} % of {} agree", agree * 100.0, count(shadow.compared));
    pen.put(SHADOW + 1, COSTS + 1, &text, tone);
    let text = match shadow.shots_with_observables {
        0 => "wrong: not known without truth".to_owned(),
        _ => format!("wrong: run {}, shadow {}", shadow.path_logical_errors, shadow.shadow_logical_errors),
    };
    pen.put(SHADOW + 1, COSTS + 2, &text, Tone::Plain);
    let [p50, p99] = [0.5, 0.99].map(|quantile| time(shadow.decode.quantile_ns(quantile)));
    pen.put(SHADOW + 1, COSTS + 3, &format!("decode p50 {p50} p99 {p99}"), Tone::Plain);
    let cost = format!("{:.1} % of a core, {} left out", shadow.core_share * 100.0, count(shadow.left_out));
    pen.put(SHADOW + 1, COSTS + 4, &cost, if shadow.left_out == 0 { Tone::Plain } else { Tone::Warn });
}

fn workers(graph: &GraphView, pen: &mut Pen<'_>) {
    pen.rule(WORKERS, "decoders");
    for (x, heading) in [(1, "id"), (5, "lane"), (11, "shots"), (20, "tasks"), (28, "stolen"), (38, "runs now")] {
        pen.put(x, WORKERS + 1, heading, Tone::Dim);
    }
    let visible = rows_of(pen, WORKERS + 2);
    for (y, (i, worker)) in (WORKERS + 2..).zip(graph.workers.iter().enumerate()).take(visible) {
        row(i, worker, pen, y);
    }
}

fn row(i: usize, worker: &GraphWorkerView, pen: &mut Pen<'_>, y: u16) {
    pen.put(1, y, &format!("{i:>2}"), Tone::Plain);
    pen.put(5, y, &count(worker.in_lane), Tone::Plain);
    pen.put(11, y, &count(worker.shots), Tone::Plain);
    pen.put(20, y, &count(worker.ran), Tone::Plain);
    pen.put(28, y, &count(worker.stolen), Tone::Plain);
    let x = match &worker.task {
        None => pen.put(38, y, "–", Tone::Dim),
        Some(task) => {
            let text = format!("{} of stream {}, {}", task.kernel, task.stream, time(task.age_ns));
            pen.put(38, y, &text, Tone::Accent)
        }
    };
    if worker.expected_ns > 0 {
        let rescue = match worker.rescue_expected_ns {
            0 => String::new(),
            ns => format!(", a rescue {}", time(ns)),
        };
        let text = format!("a usual shot takes {}{rescue}", time(worker.expected_ns));
        pen.put(x + 2, y, &text, Tone::Dim);
    }
}
