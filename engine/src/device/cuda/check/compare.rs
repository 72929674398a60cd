//! The same work by three methods in the same loop: measures the benefit of graphs and ready words.

use super::line::{Line, Start, described, histogram};
use super::measure::{draw, formatted_times, line};
use super::{Bench, MethodTimes, StepResult};

/// How the end of a shot is detected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// By its ready word.
    Ready,
    /// By querying the stream until the driver reports it idle.
    Query,
}

pub(super) fn compare(bench: &mut Bench<'_>) -> StepResult {
    let methods = [
        ("graph_and_ready_word", Start::Graph, Watch::Ready),
        ("kernel_without_graph", Start::Kernel, Watch::Ready),
        ("graph_and_stream_query", Start::Graph, Watch::Query),
    ];
    let mut said = Vec::new();
    for (name, start, watch) in methods {
        let times = measure(bench, name, start, watch)?;
        said.push(format!(
            "{name}: rx to end {}; call {}",
            formatted_times(&times.rx_to_ready_ns).map_err(|said| format!("{name}: {said}"))?,
            formatted_times(&times.launch_ns)?
        ));
        bench.found.compared.push(times);
    }
    Ok(said.join(" | "))
}

fn measure(bench: &Bench<'_>, name: &'static str, start: Start, watch: Watch) -> Result<MethodTimes, String> {
    let model = &bench.config.large.0;
    let mut line = line(bench, model, 1, 1)?;
    line.start = start;
    let (drawn, whole) = (draw(model, 12), histogram());
    let (began, rounds) = (bench.clock.ticks(), bench.config.scale.rounds / 2);
    for round in 0..rounds {
        if round == rounds / 10 {
            line.launch_ns = histogram();
        }
        let sent = bench.clock.ticks();
        let w = line.send(&drawn[round as usize % drawn.len()]).map_err(described)?.ok_or("no worker is free")?;
        if watch == Watch::Query {
            idle(bench, &line)?;
        }
        line.wait(w)?;
        if round >= rounds / 10 {
            whole.record(bench.ns(sent, bench.clock.ticks()));
        }
        if bench.is_over(began) {
            break;
        }
    }
    Ok(MethodTimes { name, launch_ns: line.launch_ns.snapshot(), rx_to_ready_ns: whole.snapshot() })
}

/// Queries until the stream is idle.
fn idle(bench: &Bench<'_>, line: &Line) -> Result<(), String> {
    let from = bench.clock.ticks();
    while !line.rig.is_stream_idle(0).map_err(described)? {
        if bench.is_over(from) {
            return Err("the stream never became idle".to_owned());
        }
    }
    Ok(())
}
