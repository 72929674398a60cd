//! Times of tasks, and the trace file that Perfetto opens.
//!
//! Each worker keeps its events. Cold code writes the file (Chrome's trace event format, JSON).

use super::task::TaskId;
use crate::clock::Clock;
use crate::units::Ticks;
use std::io::{self, Write};

/// One run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The task.
    pub task: TaskId,
    /// Its kernel.
    pub kernel: u16,
    /// Its stream.
    pub stream: u32,
    /// Its worker.
    pub worker: u32,
    /// When the body began.
    pub start: Ticks,
    /// When the body ended.
    pub end: Ticks,
}

/// Writes `events` as complete events in microseconds since the clock's start. Each carries the
/// number of its graph (its silo). `kernel` names kernels.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_trace<'a>(
    out: &mut dyn Write,
    clock: &Clock,
    events: impl Iterator<Item = (u32, &'a Event)>,
    kernel: impl Fn(u16) -> &'static str,
) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (index, (graph, event)) in events.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let start_us = clock.since_start(event.start).0 as f64 / 1e3;
        let span_us = clock.rate().nanos(event.end.since(event.start)).0 as f64 / 1e3;
        let (name, worker, task, stream) = (kernel(event.kernel), event.worker, event.task, event.stream);
        write!(
            out,
            "{comma}\n{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":{graph},\"tid\":{worker},\"ts\":{start_us:.3},\
             \"dur\":{span_us:.3},\"args\":{{\"task\":{task},\"stream\":{stream}}}}}"
        )?;
    }
    writeln!(out, "\n]}}")
}
