//! Converts a recording to a trace that Perfetto opens: JSON trace events.
//!
//! Cold and streamed: one snapshot in memory at a time, and the shots and alarms written so far.
//! The trace has stages of threads and pauses in which they did not run (between two snapshots only
//! where fast samples exist), the shots in each snapshot's slots, depths and rates as counters,
//! alarms, and notes. Times are microseconds since the engine's start.
//!
//! ```text
//!   process 1           hot threads: the role that ran, and pauses without a frame
//!   process 2 + silo    one track for each slot: a shot with its stages; counters of the silo
//!   process 1, alarms   one slice for each alarm, from onset to end
//!   process 1000 + silo tasks that ran, grants and moves under way when a snapshot was taken
//! ```

mod sampled;

use super::tape::{Tape, TapeError};
use crate::board::histogram::Histogram;
use crate::board::snapshot::{SiloView, SlotView, Snapshot};
use crate::roles::ThreadState;
use crate::units::Ticks;
use sampled::Sampled;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// A thread without a frame for this long is shown as silent.
const SILENT_NS: u64 = 5_000_000;
/// Two heartbeats that are closer than this are one: its time is the difference of two rounded times.
const SAME_NS: u64 = 1_000;
/// Shots remembered, so that each is written once: more than two snapshots can have in common.
const EMITTED_MAX: usize = 4_096;

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The recording cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The output cannot be written.
    #[error("trace: cannot write the output ({0}); name another file with -o")]
    Output(#[from] io::Error),
}

/// A note of the run: its time in nanoseconds since the engine's start, and its text.
pub type Note = (u64, String);

/// Writes the trace of `tape`; returns the number of events.
///
/// # Errors
/// [`TraceError`], one sentence.
pub fn write(tape: &mut Tape, notes: &[Note], out: &mut dyn Write) -> Result<u64, TraceError> {
    let mut trace = Trace { out, events: 0, error: None };
    trace.text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    let mut emitted = Emitted::default();
    let all = (Ticks(0), Ticks(u64::MAX));
    let board = tape.board().map_err(TapeError::from)?;
    tape.play(all.0, all.1, |moment| emit_snapshot(moment.snapshot_on(&board), &mut emitted, &mut trace))?;
    emitted.alarms(&mut trace);
    emitted.sampled.end(&mut trace);
    let (start, rate) = (tape.start(), tape.rate());
    let mut threads = Threads::default();
    tape.play_fast(all.0, all.1, |at, board| {
        // A sample has only the fast words, so start and rate come from the recording.
        let clock = crate::clock::Clock::standing(at, start, rate);
        threads.sample(&board.snapshot(&clock), &mut trace);
    })?;
    threads.end(&mut trace);
    for (at_ns, text) in notes {
        let row = json!({"ph": "i", "s": "g", "name": "note", "cat": "note", "pid": 1, "tid": 0, "ts": us(*at_ns), "args": {"text": text}});
        trace.put(&row);
    }
    trace.text("\n]}\n");
    trace.error.map_or(Ok(trace.events), |error| Err(error.into()))
}

struct Trace<'a> {
    out: &'a mut dyn Write,
    events: u64,
    error: Option<io::Error>,
}

impl Trace<'_> {
    fn put(&mut self, row: &Value) {
        let separator = if self.events == 0 { "" } else { ",\n" };
        self.text(&format!("{separator}{row}"));
        self.events += 1;
    }

    fn text(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn slice(name: &str, (pid, tid): (u32, u64), from_ns: u64, to_ns: u64, args: &Value) -> Value {
    let dur = us(to_ns.saturating_sub(from_ns));
    json!({"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(from_ns), "dur": dur, "args": args})
}

/// What has been written already.
#[derive(Default)]
struct Emitted {
    named: bool,
    shots: BTreeSet<(u64, u32, u32, u64)>,
    /// The newest state of each alarm, by number and onset.
    alarms: BTreeMap<(u64, u64), (u64, String, Value)>,
    answered: BTreeMap<u32, (u64, u64)>,
    /// Frames of each thread and their gaps, at its last snapshot with gaps.
    gaps: BTreeMap<usize, (u64, Histogram)>,
    sampled: Sampled,
}

fn emit_snapshot(snapshot: Option<Snapshot>, emitted: &mut Emitted, trace: &mut Trace<'_>) {
    // The clock was not set yet.
    let Some(snapshot) = snapshot else { return };
    if !emitted.named {
        emitted.named = true;
        names(&snapshot, trace);
        Sampled::names(&snapshot, trace);
    }
    for silo in &snapshot.silos {
        counters(silo, snapshot.at_ns, emitted, trace);
        for (number, slot) in silo.slots.iter().enumerate() {
            shot(silo.id, number, slot, emitted, trace);
        }
    }
    emitted.sampled.add_snapshot(&snapshot, trace);
    for (index, thread) in snapshot.threads.iter().enumerate() {
        let (gaps, name) = (&thread.frame_gap, format!("{} longest gap µs", thread.name));
        if let Some((frames, before)) = emitted.gaps.get(&index) {
            // Only every second snapshot has the gaps: the others know nothing of the frames since.
            if thread.frames > *frames && gaps.count() == before.count() {
                continue;
            }
            trace.put(&counter(&name, 1, snapshot.at_ns, us(gaps.since(before).max_ns())));
        }
        emitted.gaps.insert(index, (thread.frames, gaps.clone()));
    }
    for alarm in &snapshot.alarms {
        let args = json!({"rule": alarm.rule, "severity": alarm.severity, "cause": alarm.cause,
            "who": alarm.who, "incident": alarm.incident, "confidence": alarm.confidence,
            "sentence": alarm.sentence, "evidence": alarm.evidence, "stack": alarm.stack, "thread": alarm.thread});
        let name = format!("{} {}", alarm.rule, alarm.thread.as_deref().unwrap_or(""));
        let end_ns = alarm.ended_ns.unwrap_or(snapshot.at_ns);
        emitted.alarms.insert((alarm.number, alarm.onset_ns), (end_ns, name.trim().to_owned(), args));
    }
}

impl Emitted {
    fn alarms(&self, trace: &mut Trace<'_>) {
        for ((number, onset_ns), (end_ns, name, args)) in &self.alarms {
            let id = format!("alarm-{number}-{onset_ns}");
            let row = |phase: &str, at_ns: u64| json!({"ph": phase, "cat": "alarm", "id": id, "name": name, "pid": 1, "tid": 0, "ts": us(at_ns), "args": args});
            trace.put(&row("b", *onset_ns));
            trace.put(&row("e", (*end_ns).max(*onset_ns)));
        }
    }
}

fn names(snapshot: &Snapshot, trace: &mut Trace<'_>) {
    let name = |kind: &str, pid: u32, tid: u64, name: &str| json!({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}});
    trace.put(&name("process_name", 1, 0, &format!("engine {} ({})", snapshot.engine.pid, snapshot.engine.profile)));
    trace.put(&name("thread_name", 1, 0, "alarms and notes"));
    for (index, thread) in snapshot.threads.iter().enumerate() {
        trace.put(&name("thread_name", 1, index as u64 + 1, &thread.name));
    }
    for silo in &snapshot.silos {
        trace.put(&name("process_name", 2 + silo.id, 0, &format!("silo {}: shots by slot", silo.id)));
    }
}

fn counter(name: &str, pid: u32, at_ns: u64, value: f64) -> Value {
    json!({"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": us(at_ns), "args": {"value": value}})
}

fn counters(silo: &SiloView, at_ns: u64, emitted: &mut Emitted, trace: &mut Trace<'_>) {
    let counts = &silo.counters;
    if let Some((then_ns, before)) = emitted.answered.insert(silo.id, (at_ns, counts.answered)) {
        let rate = counts.answered.saturating_sub(before) as f64 * 1e9 / at_ns.saturating_sub(then_ns).max(1) as f64;
        trace.put(&counter("answered/s", 2 + silo.id, at_ns, rate));
    }
    let backlog = counts.scheduled.saturating_sub(counts.submitted);
    trace.put(&counter("backlog", 2 + silo.id, at_ns, backlog as f64));
    for ring in silo.rings.iter().filter(|ring| ring.name != "tx") {
        trace.put(&counter(&format!("{} depth", ring.name), 2 + silo.id, at_ns, ring.depth as f64));
    }
}

/// Writes a harvested shot as a slice with its stages.
fn shot(silo: u32, number: usize, slot: &SlotView, emitted: &mut Emitted, trace: &mut Trace<'_>) {
    let times = &slot.times;
    let key = (times.submitted_ns, silo, slot.stream, slot.sequence);
    if times.harvested_ns == 0 || !emitted.shots.insert(key) {
        return;
    }
    while emitted.shots.len() > EMITTED_MAX {
        emitted.shots.pop_first();
    }
    let track = (2 + silo, number as u64 + 1);
    let args = json!({"stream": slot.stream, "sequence": slot.sequence, "slot": number, "worker": slot.worker,
        "scheduled_us": us(times.scheduled_ns)});
    let name = format!("{}#{}", slot.stream, slot.sequence);
    trace.put(&slice(&name, track, times.submitted_ns, times.harvested_ns, &args));
    let steps = [
        ("dispatch", times.dispatched_ns),
        ("device", times.completed_ns),
        ("queue", times.decoding_ns),
        ("decode", times.answered_ns),
        ("harvest", times.harvested_ns),
    ];
    let mut from_ns = times.submitted_ns;
    for (stage, to_ns) in steps.into_iter().filter(|(_, to_ns)| *to_ns != 0) {
        trace.put(&slice(stage, track, from_ns, to_ns, &json!({})));
        from_ns = to_ns.max(from_ns);
    }
}

/// Threads by their fast samples: the role that ran, and pauses without a frame.
#[derive(Default)]
struct Threads {
    /// The open slice of each thread: role, start, last sample.
    open: BTreeMap<usize, (String, u64, u64)>,
    /// The last heartbeat of each thread, its last sample, and whether it was running then.
    silent: BTreeMap<usize, (u64, u64, bool)>,
}

impl Threads {
    fn sample(&mut self, snapshot: &Snapshot, trace: &mut Trace<'_>) {
        let now_ns = snapshot.at_ns;
        for (index, thread) in snapshot.threads.iter().enumerate() {
            let track = (1, index as u64 + 1);
            let stage = thread.stage.map_or_else(|| "idle".to_owned(), |role| role.name().to_owned());
            // A gap in the samples ends the slice, because nothing is known of that time.
            let goes_on =
                |(open, _, seen): &(String, u64, u64)| *open == stage && now_ns.saturating_sub(*seen) < 10 * SILENT_NS;
            match self.open.get_mut(&index).filter(|open| goes_on(open)) {
                Some((_, _, seen)) => *seen = now_ns,
                None => {
                    if let Some((name, from_ns, seen_ns)) = self.open.insert(index, (stage, now_ns, now_ns)) {
                        trace.put(&stage_slice(&name, track, from_ns, seen_ns));
                    }
                }
            }
            let beat_ns = now_ns.saturating_sub(thread.heartbeat_age_ns);
            let is_running = thread.state == ThreadState::Running;
            let before = self.silent.get(&index).copied();
            let begun_ns = match before {
                Some((begun_ns, seen_ns, _)) if now_ns >= seen_ns && beat_ns <= begun_ns + SAME_NS => begun_ns,
                // A thread may lose its core between the time of a heartbeat and its writing.
                Some((_, seen_ns, _)) if now_ns >= seen_ns => beat_ns.max(seen_ns),
                // The counter went back.
                _ => beat_ns,
            };
            self.silent.insert(index, (begun_ns, now_ns, is_running));
            match before {
                Some((before_ns, seen_ns, _)) if before_ns != begun_ns && is_silent(before_ns, seen_ns) => {
                    trace.put(&pause_slice(&self.open[&index].0, track, before_ns, seen_ns));
                }
                _ => {}
            }
        }
    }

    /// Writes the slices that are open after the last sample: the stall that the samples were kept
    /// for may last until then.
    fn end(self, trace: &mut Trace<'_>) {
        for (index, (name, from_ns, seen_ns)) in self.open {
            let track = (1, index as u64 + 1);
            trace.put(&stage_slice(&name, track, from_ns, seen_ns));
            match self.silent.get(&index) {
                Some((beat_ns, seen_ns, true)) if is_silent(*beat_ns, *seen_ns) => {
                    trace.put(&pause_slice(&name, track, *beat_ns, *seen_ns));
                }
                _ => {}
            }
        }
    }
}

fn is_silent(beat_ns: u64, seen_ns: u64) -> bool {
    seen_ns.saturating_sub(beat_ns) >= SILENT_NS
}

fn stage_slice(name: &str, track: (u32, u64), from_ns: u64, to_ns: u64) -> Value {
    slice(name, track, from_ns, to_ns, &json!({"seen": "sampled"}))
}

fn pause_slice(role: &str, track: (u32, u64), from_ns: u64, to_ns: u64) -> Value {
    slice("no frame", track, from_ns, to_ns, &json!({"role": role}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Threads, Trace};
    use crate::board::{Board, Place, Shape, set};
    use crate::clock::Clock;
    use crate::record::Recorder;
    use crate::roles::RoleKind;
    use crate::units::{TickRate, Ticks};
    use serde_json::Value;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MS: u64 = 1_000_000;

    /// A board of two threads, and a clock that stands at the first millisecond until it is set.
    fn board_of_two() -> (Arc<AtomicU64>, Clock, Arc<Board>) {
        let nanos = Arc::new(AtomicU64::new(MS));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 2, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        set(&board.header().start_ticks, clock.start().0);
        (nanos, clock, board)
    }

    /// The trace of what was recorded.
    fn traced(recorder: &Recorder) -> Value {
        let (mut tape, mut out) = (recorder.recent_recording().tape().unwrap(), Vec::new());
        super::write(&mut tape, &[], &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_stall_that_lasts_until_the_last_sample_is_a_slice_and_an_ended_thread_is_not_silent() {
        let (nanos, clock, board) = board_of_two();
        let mut recorder = Recorder::new(Arc::clone(&board), clock.clone(), None);
        for step in 1..=500 {
            let now = nanos.fetch_add(MS, Ordering::Relaxed) + MS;
            for (index, state) in [(0, 1), (1, if step > 400 { 2 } else { 1 })] {
                let thread = board.thread(index);
                set(&thread.state, state);
                set(&thread.stage, if step > 400 { RoleKind::Decode as u64 + 1 } else { 0 });
                if step <= 400 {
                    set(&thread.heartbeat, now);
                }
            }
            recorder.step();
        }
        recorder.keep_fast(clock.ticks());
        let trace = traced(&recorder);
        let slices = |tid: u64| {
            let of_thread = |row: &&Value| row["ph"] == "X" && row["pid"] == 1 && row["tid"] == tid;
            let rows = trace["traceEvents"].as_array().unwrap().iter().filter(of_thread);
            let number = |row: &Value, key: &str| row[key].as_f64().unwrap() / 1_000.0;
            rows.map(|row| (row["name"].as_str().unwrap().to_owned(), number(row, "ts"), number(row, "dur")))
                .collect::<Vec<_>>()
        };
        let slice = |name: &str, ts: f64, dur: f64| (name.to_owned(), ts, dur);
        let ended = [slice("idle", 1.0, 399.0), slice("decode", 401.0, 99.0)];
        assert_eq!(slices(2), ended);
        assert_eq!(slices(1), [&ended[..], &[slice("no frame", 400.0, 100.0)]].concat());
    }

    /// A recording has the gaps of a thread in every second snapshot.
    #[test]
    fn the_longest_gap_is_that_since_the_snapshot_before_which_has_gaps() {
        let (nanos, clock, board) = board_of_two();
        (0..2).for_each(|index| board.thread(index).name.write(["moves", "stands"][index]));
        let mut recorder = Recorder::new(Arc::clone(&board), clock.clone(), None);
        for _ in 0..1_000 {
            nanos.fetch_add(MS, Ordering::Relaxed);
            crate::board::add(&board.thread(0).frames, 1);
            board.thread(0).frame_gap.record(2 * MS);
            recorder.step();
        }
        let trace = traced(&recorder);
        let longest_us = |thread: &str| -> Vec<f64> {
            let rows = trace["traceEvents"].as_array().unwrap().iter();
            let of_thread = rows.filter(|row| row["name"] == format!("{thread} longest gap µs"));
            of_thread.map(|row| row["args"]["value"].as_f64().unwrap()).collect()
        };
        assert!(longest_us("moves").len() >= 4, "{:?}", longest_us("moves"));
        assert!(longest_us("moves").iter().all(|gap_us| *gap_us >= 2_000.0), "{:?}", longest_us("moves"));
        assert!(longest_us("stands").len() >= 4 && longest_us("stands").iter().all(|gap_us| *gap_us == 0.0));
    }

    /// The time of a heartbeat is a difference of two rounded times: it differs by a nanosecond from sample to sample.
    #[test]
    fn a_pause_is_one_slice_whatever_the_rate_of_the_counter_and_begins_after_the_one_before_it() {
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let rate = TickRate::from_q32((1 << 32) / 3).unwrap();
        set(&board.header().nanos_per_tick_q32, rate.nanos_per_tick_q32());
        let (mut threads, mut out) = (Threads::default(), Vec::new());
        let mut trace = Trace { out: &mut out, events: 0, error: None };
        let thread = board.thread(0);
        set(&thread.state, 1);
        // The heartbeat of the 50th millisecond is written when the thread runs again, after the 60th.
        for (ms, beat_ms) in (1..=100).map(|ms| (ms, [20, 50, ms][usize::from(ms > 60) + usize::from(ms > 90)])) {
            set(&thread.heartbeat, if ms <= 20 { ms } else { beat_ms } * 3_000_001);
            let clock = Clock::standing(Ticks(ms * 3_000_001 + 1), Ticks(0), rate);
            threads.sample(&board.snapshot(&clock), &mut trace);
        }
        threads.end(&mut trace);
        let rows: Vec<Value> = serde_json::from_str(&format!("[{}]", String::from_utf8(out).unwrap())).unwrap();
        let pauses: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row["name"] == "no frame")
            .map(|row| ["ts", "dur"].map(|key| (row[key].as_f64().unwrap() / 1_000.0).round()).into())
            .collect();
        assert_eq!(pauses, [(20.0, 40.0), (60.0, 30.0)]);
    }
}
