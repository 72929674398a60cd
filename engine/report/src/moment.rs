//! The board at one moment as JSON, with the names of a run's report.
//!
//! Pure. Bounded by one snapshot.

use crate::report::{Alarm, Context, Report};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{EndedBy, Outcome};
use pinwheel_engine::roles::ThreadState;
use serde_json::{Value, json};

/// Fields of a report that exist only at the end of a run.
pub const OF_THE_END: [&str; 7] =
    ["exit_status", "ended_by", "elapsed_live_ns", "throughput_per_s", "unanswered", "console_cost", "run_dir"];

/// A moment with the names of a run's report, the whole board, and `about` under the name `kind`.
pub fn moment(snapshot: &Snapshot, kind: &str, about: &Value) -> Value {
    let mut value = report_of(snapshot);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("board".to_owned(), serde_json::to_value(snapshot).unwrap_or_default());
        fields.insert(kind.to_owned(), about.clone());
    }
    value
}

/// The moment of the running engine of process `pid`, seen from outside.
pub fn attached(snapshot: &Snapshot, pid: u32) -> Value {
    let about = json!({"pid": pid, "at_ns": snapshot.at_ns, "silent_ns": silence_ns(snapshot)});
    moment(snapshot, "attach", &about)
}

/// Nanoseconds since the last heartbeat of a hot thread.
pub fn silence_ns(snapshot: &Snapshot) -> u64 {
    let running = snapshot.threads.iter().filter(|thread| thread.state == ThreadState::Running);
    running.map(|thread| thread.heartbeat_age_ns).min().unwrap_or(0)
}

/// A moment with the names of a run's report, without those of the end.
pub fn report_of(snapshot: &Snapshot) -> Value {
    let outcome = Outcome {
        snapshot: snapshot.clone(),
        ended_by: EndedBy::Drained,
        elapsed_live_ns: 0,
        unanswered: Vec::new(),
        sink: None,
        events: None,
        input_error: None,
        counted: Vec::new(),
        environment: None,
        task_times: Vec::new(),
    };
    let mut value = serde_json::to_value(Report::new(&outcome, &Context::default())).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        OF_THE_END.iter().for_each(|name| {
            fields.remove(*name);
        });
        // Conditions that are checked only at the end are left out.
        let alarms: Vec<Alarm> = snapshot.alarms.iter().map(Alarm::logged).collect();
        fields.insert("alarms".to_owned(), serde_json::to_value(alarms).unwrap_or_default());
    }
    value
}
