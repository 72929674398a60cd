//! Tasks, transfers and moves in a trace, as far as snapshots show them.
//!
//! Cold; gets the snapshots in order. Bounded by the content of one snapshot, and [`EMITTED_MAX`]
//! transitions remembered.
//!
//! # What is exact and what is sampled
//! A snapshot shows the tasks, grants and moves under way at its moment. Their beginnings are
//! exact. They end between the last snapshot that shows them and the next one; a slice ends at the
//! last snapshot and says *sampled*. What begins and ends between two snapshots is not in the
//! trace. The transitions of the page whose history the board shows, and the director's last
//! decisions, have times of their own, which are exact; there are as many as the board keeps.

use super::{Trace, counter, slice, us};
use crate::board::snapshot::{ArbiterView, GraphView, MovesView, PlacementView, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Process number of the first silo's tracks.
pub(super) const PROCESS: u32 = 1_000;
/// Track of transfers, moves and decisions.
const EXCHANGE: u64 = 0;
/// Transitions remembered, so that each is written once.
const EMITTED_MAX: usize = 4_096;
/// Two beginnings that are closer than this are the same.
const SAME_NS: u64 = 1_000_000;
/// Note on each sampled slice.
const SAMPLED: &str = "sampled: it lasted at least this long; what began and ended between two snapshots is missing";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SpanKind {
    Task,
    Transfer,
    Move,
}

/// Identifies something under way: kind, silo, and two numbers.
type Key = (SpanKind, u32, u64, u64);

#[derive(Clone, Debug, PartialEq)]
struct OpenSpan {
    name: String,
    from_ns: u64,
    last_ns: u64,
    args: Value,
}

/// What was under way in the previous snapshot, and what has been written.
#[derive(Default)]
pub(super) struct Sampled {
    open: BTreeMap<Key, OpenSpan>,
    transitions: BTreeSet<(u64, u32, u32, u32)>,
    decided: u64,
    ran: BTreeMap<u32, (u64, u64)>,
    failed: BTreeMap<u32, u64>,
}

impl Sampled {
    /// Names of the tracks.
    pub(super) fn names(snapshot: &Snapshot, trace: &mut Trace<'_>) {
        for silo in &snapshot.silos {
            let pid = PROCESS + silo.id;
            let name = |kind: &str, tid: u64, name: &str| json!({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}});
            let process = format!("silo {}: tasks, transfers, moves (sampled ten times a second)", silo.id);
            trace.put(&name("process_name", 0, &process));
            trace.put(&name("thread_name", EXCHANGE, "transfers, moves, decisions"));
            for worker in 0..silo.graph.workers.len() {
                trace.put(&name("thread_name", worker as u64 + 1, &format!("graph worker {worker}")));
            }
        }
    }

    pub(super) fn add_snapshot(&mut self, snapshot: &Snapshot, trace: &mut Trace<'_>) {
        let now_ns = snapshot.at_ns;
        let mut seen = BTreeMap::new();
        for silo in &snapshot.silos {
            tasks(silo.id, &silo.graph, now_ns, &mut seen);
            self.tasks_by_number(silo.id, &silo.graph, now_ns, trace);
            if let Some(arbiter) = &silo.arbiter {
                transfers(silo.id, arbiter, now_ns, &mut seen);
                self.transitions(silo.id, arbiter, trace);
            }
            if let Some(view) = &silo.moves {
                moves(silo.id, view, now_ns, &mut seen);
                self.failure(silo.id, view, now_ns, trace);
            }
        }
        if let Some(placement) = &snapshot.placement {
            self.decisions(placement, now_ns, trace);
        }
        self.follow(seen, trace);
    }

    /// Ends what is still open at the end of the recording.
    pub(super) fn end(&mut self, trace: &mut Trace<'_>) {
        self.follow(BTreeMap::new(), trace);
    }

    /// Writes what was under way and has ended, or was replaced by another with the same key.
    fn follow(&mut self, mut seen: BTreeMap<Key, OpenSpan>, trace: &mut Trace<'_>) {
        for (key, before) in std::mem::take(&mut self.open) {
            match seen.get_mut(&key) {
                Some(now) if now.from_ns.abs_diff(before.from_ns) < SAME_NS => now.from_ns = before.from_ns,
                _ => emit(&key, &before, trace),
            }
        }
        self.open = seen;
    }

    fn tasks_by_number(&mut self, silo: u32, graph: &GraphView, now_ns: u64, trace: &mut Trace<'_>) {
        let pid = PROCESS + silo;
        if let Some((then_ns, ran)) = self.ran.insert(silo, (now_ns, graph.ran)) {
            let rate = graph.ran.saturating_sub(ran) as f64 * 1e9 / now_ns.saturating_sub(then_ns).max(1) as f64;
            trace.put(&counter("tasks/s", pid, now_ns, rate));
        }
        trace.put(&counter("tasks under way", pid, now_ns, graph.window_used as f64));
        for pool in &graph.ready {
            trace.put(&counter(&format!("ready {}", pool.pool), pid, now_ns, pool.depth as f64));
        }
    }

    fn transitions(&mut self, silo: u32, arbiter: &ArbiterView, trace: &mut Trace<'_>) {
        let Some(page) = arbiter.history_page else { return };
        for step in &arbiter.history {
            if !self.transitions.insert((step.at_ns, silo, page, step.cause as u32)) {
                continue;
            }
            let args = json!({"page": page, "state": step.state, "owner": step.owner, "epoch": step.epoch});
            let name = format!("page {page} {}", step.cause.words());
            trace.put(&instant(&name, "arbiter", silo, step.at_ns, &args));
        }
        while self.transitions.len() > EMITTED_MAX {
            self.transitions.pop_first();
        }
    }

    fn failure(&mut self, silo: u32, moves: &MovesView, now_ns: u64, trace: &mut Trace<'_>) {
        let before = self.failed.insert(silo, moves.failed).unwrap_or(0);
        if let Some(failure) = moves.last_failure.as_ref().filter(|_| moves.failed > before) {
            let args =
                json!({"from": failure.from, "to": failure.to, "stage": failure.stage.name(), "why": failure.why});
            let name = format!("move of stream {} given up", failure.stream);
            trace.put(&instant(&name, "move", silo, now_ns.saturating_sub(failure.age_ns), &args));
        }
    }

    fn decisions(&mut self, placement: &PlacementView, now_ns: u64, trace: &mut Trace<'_>) {
        let newest = placement.decisions.iter().map(|decision| decision.number).max().unwrap_or(0);
        for decision in placement.decisions.iter().rev().filter(|decision| decision.number > self.decided) {
            let args = json!({"number": decision.number, "why": decision.why, "from": decision.from, "to": decision.to, "share": decision.share});
            let name = format!("{} stream {}", decision.what, decision.stream);
            let silo = decision.from.or(decision.to).unwrap_or(0);
            trace.put(&instant(&name, "placement", silo, now_ns.saturating_sub(decision.age_ns), &args));
        }
        self.decided = self.decided.max(newest);
    }
}

fn instant(name: &str, category: &str, silo: u32, at_ns: u64, args: &Value) -> Value {
    json!({"ph": "i", "s": "t", "name": name, "cat": category, "pid": PROCESS + silo, "tid": EXCHANGE, "ts": us(at_ns), "args": args})
}

fn tasks(silo: u32, graph: &GraphView, now_ns: u64, seen: &mut BTreeMap<Key, OpenSpan>) {
    for (worker, task) in
        graph.workers.iter().enumerate().filter_map(|(worker, view)| Some((worker, view.task.as_ref()?)))
    {
        let args = json!({"task": task.id, "stream": task.stream, "seen": SAMPLED});
        let from_ns = now_ns.saturating_sub(task.age_ns);
        let name = task.kernel.to_owned();
        seen.insert((SpanKind::Task, silo, worker as u64, task.id), OpenSpan { name, from_ns, last_ns: now_ns, args });
    }
}

fn transfers(silo: u32, arbiter: &ArbiterView, now_ns: u64, seen: &mut BTreeMap<Key, OpenSpan>) {
    for grant in &arbiter.transfers {
        let args = json!({"receiver": grant.receiver, "epoch": grant.epoch, "cancels": grant.cancels, "seen": SAMPLED});
        let name = format!("transfer of page {} to silo {}", grant.page, grant.receiver);
        let from_ns = now_ns.saturating_sub(grant.age_ns);
        let key = (SpanKind::Transfer, silo, u64::from(grant.page), u64::from(grant.epoch));
        seen.insert(key, OpenSpan { name, from_ns, last_ns: now_ns, args });
    }
}

fn moves(silo: u32, moves: &MovesView, now_ns: u64, seen: &mut BTreeMap<Key, OpenSpan>) {
    for step in &moves.open {
        let args = json!({"stage": step.stage.name(), "seen": SAMPLED});
        let name = format!("move of stream {} from silo {} to {}", step.stream, step.from, step.to);
        let from_ns = now_ns.saturating_sub(step.age_ns);
        let key = (SpanKind::Move, silo, u64::from(step.stream), u64::from(step.to));
        seen.insert(key, OpenSpan { name, from_ns, last_ns: now_ns, args });
    }
}

fn emit(key: &Key, seen: &OpenSpan, trace: &mut Trace<'_>) {
    let (what, silo, first, second) = *key;
    let pid = PROCESS + silo;
    let category = match what {
        SpanKind::Task => {
            trace.put(&slice(&seen.name, (pid, first + 1), seen.from_ns, seen.last_ns, &seen.args));
            return;
        }
        SpanKind::Transfer => "transfer",
        SpanKind::Move => "move",
    };
    let id = format!("{category}-{silo}-{first}-{second}-{}", seen.from_ns);
    let row = |phase: &str, at_ns: u64| json!({"ph": phase, "cat": category, "id": id, "name": seen.name, "pid": pid, "tid": EXCHANGE, "ts": us(at_ns), "args": seen.args});
    trace.put(&row("b", seen.from_ns));
    trace.put(&row("e", seen.last_ns.max(seen.from_ns)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Key, OpenSpan, PROCESS, Sampled, SpanKind, moves, tasks};
    use crate::board::histogram::Histogram;
    use crate::board::snapshot::{GraphView, GraphWorkerView, MoveView, MovesView, RunningView};
    use crate::record::trace::Trace;
    use crate::streams::MoveStage;
    use serde_json::Value;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;

    fn written(body: impl FnOnce(&mut Trace<'_>)) -> Vec<Value> {
        let mut out = Vec::new();
        body(&mut Trace { out: &mut out, events: 0, error: None });
        serde_json::from_str(&format!("[{}]", String::from_utf8(out).unwrap())).unwrap()
    }

    fn worker(task: Option<(u64, u64)>) -> GraphView {
        let task = task.map(|(id, age_ns)| RunningView { id, kernel: "decode", stream: 3, age_ns });
        let worker = GraphWorkerView { task, ..GraphWorkerView::default() };
        GraphView { workers: vec![worker], ..GraphView::default() }
    }

    #[test]
    fn a_task_in_two_snapshots_is_one_slice_from_its_beginning_to_the_last_of_them_and_says_sampled() {
        let mut sampled = Sampled::default();
        let rows = written(|trace| {
            for (at_ms, task) in
                [(100, Some((7, 20 * MS))), (200, Some((7, 120 * MS))), (300, Some((8, MS))), (400, None)]
            {
                let mut seen: BTreeMap<Key, OpenSpan> = BTreeMap::new();
                tasks(1, &worker(task), at_ms * MS, &mut seen);
                sampled.follow(seen, trace);
            }
        });
        let slices: Vec<_> = rows
            .iter()
            .map(|row| (row["ts"].as_f64().unwrap(), row["dur"].as_f64().unwrap(), &row["args"]["task"]))
            .collect();
        assert_eq!(slices, [(80_000.0, 120_000.0, &Value::from(7)), (299_000.0, 1_000.0, &Value::from(8))]);
        assert_eq!((&rows[0]["pid"], &rows[0]["tid"]), (&Value::from(PROCESS + 1), &Value::from(1)));
        assert!(rows.iter().all(|row| row["args"]["seen"].as_str().unwrap().starts_with("sampled")));
    }

    #[test]
    fn an_open_move_is_traced_with_its_stage_and_a_repeated_move_separately() {
        let none = || Histogram::default();
        let view = |open| MovesView {
            asked: 0,
            needless: 0,
            done: 0,
            failed: 0,
            last_failure: None,
            open,
            staged: 0,
            stage_waits: 0,
            handed_on: 0,
            lane_waits: 0,
            taken_in: 0,
            sent_back: 0,
            pause: none(),
            quiesce: none(),
            transfer: none(),
        };
        let step = |age_ns| MoveView { stream: 5, from: 0, to: 2, stage: MoveStage::Transfer, age_ns };
        let mut sampled = Sampled::default();
        let rows = written(|trace| {
            for (at_ms, age_ms) in [(100, 30), (200, 130), (300, 10)] {
                let mut seen = BTreeMap::new();
                moves(0, &view(vec![step(age_ms * MS)]), at_ms * MS, &mut seen);
                sampled.follow(seen, trace);
            }
            assert!(sampled.open.contains_key(&(SpanKind::Move, 0, 5, 2)));
            sampled.end(trace);
        });
        let emitted: Vec<_> =
            rows.iter().map(|row| (row["ph"].as_str().unwrap(), row["ts"].as_f64().unwrap())).collect();
        assert_eq!(emitted, [("b", 70_000.0), ("e", 200_000.0), ("b", 290_000.0), ("e", 300_000.0)]);
        assert!(rows[0]["name"].as_str().unwrap().contains("stream 5 from silo 0 to 2"));
        assert_eq!(rows[0]["args"]["stage"], "transfer");
    }
}
