//! The same work in three ways, in the same loop: what graphs and ready words are worth.

use super::line::{Line, Start, histogram, told};
use super::measure::{draw, line, told_times};
use super::{Bench, Seen, Way};

/// How the end of a shot is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// By its ready word.
    Ready,
    /// By asking the driver about the stream until it says that it is idle.
    Query,
}

pub(super) fn compare(bench: &mut Bench<'_>) -> Seen {
    let ways = [
        ("graph_and_ready_word", Start::Graph, Watch::Ready),
        ("kernels_without_graph", Start::Kernels, Watch::Ready),
        ("graph_and_stream_query", Start::Graph, Watch::Query),
    ];
    let mut said = Vec::new();
    for (name, start, watch) in ways {
        let way = measure(bench, name, start, watch)?;
        said.push(format!(
            "{name}: rx to end {}; call {}",
            told_times(&way.rx_to_ready_ns),
            told_times(&way.launch_ns)
        ));
        bench.found.compared.push(way);
    }
    Ok(said.join(" | "))
}

fn measure(bench: &Bench<'_>, name: &'static str, start: Start, watch: Watch) -> Result<Way, String> {
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
        let w = line.send(&drawn[round as usize % drawn.len()]).map_err(told)?.ok_or("no worker is free")?;
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
    Ok(Way { name, launch_ns: line.launch_ns.snapshot(), rx_to_ready_ns: whole.snapshot() })
}

/// Asks until the stream is idle.
fn idle(bench: &Bench<'_>, line: &Line) -> Result<(), String> {
    let from = bench.clock.ticks();
    while !line.rig.is_stream_idle(0).map_err(told)? {
        if bench.is_over(from) {
            return Err("the stream never became idle".to_owned());
        }
    }
    Ok(())
}
