//! The board as OpenMetrics text.
//!
//! A snapshot in, text out. Histograms are given as quantiles. Names begin with `pinwheel_`;
//! units are seconds and bytes, as the format demands.
//!
//! # Why an exposition remembers scheduled shots
//! A scraper takes a counter that goes back for one that began anew, and counts all of it once more. The board's number
//! of scheduled shots goes back: a drain discards those that wait, and a shot that waits in pieces is several until it
//! has a slot. So the largest number so far is given; what waits now has a gauge of its own.

use crate::board::histogram::Histogram;
use crate::board::snapshot::{Counters, Snapshot};
use crate::fault::FaultCode;
use crate::roles::{RecorderState, ThreadState};
use std::cell::RefCell;
use std::fmt::Write;

/// The HTTP content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999)];

/// The expositions of one engine.
#[derive(Debug, Default)]
pub struct Exposition {
    /// Of each silo, the largest number of scheduled shots so far.
    scheduled: RefCell<Vec<u64>>,
}

impl Exposition {
    /// The exposition of `snapshot`, ended by its `# EOF`.
    pub fn text(&self, snapshot: &Snapshot) -> String {
        let mut scheduled = self.scheduled.borrow_mut();
        let silos = scheduled.len().max(snapshot.silos.len());
        scheduled.resize(silos, 0);
        for (most, silo) in scheduled.iter_mut().zip(&snapshot.silos) {
            *most = silo.counters.scheduled.max(*most);
        }
        text(snapshot, &scheduled)
    }
}

fn text(snapshot: &Snapshot, scheduled: &[u64]) -> String {
    let mut page = Page(String::new());
    let engine = &snapshot.engine;
    let about = [("version", engine.version.as_str()), ("profile", &engine.profile), ("input", &engine.input)];
    page.family("pinwheel_engine", "info", "What runs.");
    page.sample("pinwheel_engine_info", &about, 1.0);
    page.family("pinwheel_up_seconds", "gauge", "Time since the engine's start.");
    page.sample("pinwheel_up_seconds", &[], snapshot.at_ns as f64 / 1e9);
    page.family("pinwheel_phase", "gauge", "Phase: 0 init, 1 warm-up, 2 live, 3 drain, 4 shutdown.");
    page.sample("pinwheel_phase", &[], engine.phase as u64 as f64);
    silos(snapshot, scheduled, &mut page);
    threads(snapshot, &mut page);
    streams(snapshot, &mut page);
    page.family("pinwheel_alarms_active", "gauge", "Alarms that hold, by severity.");
    for severity in [crate::profile::Severity::Note, crate::profile::Severity::Warn, crate::profile::Severity::Critical]
    {
        let active = snapshot.alarms.iter().filter(|alarm| alarm.is_active() && alarm.severity == severity).count();
        page.sample("pinwheel_alarms_active", &[("severity", severity.name())], active as f64);
    }
    page.family("pinwheel_faults", "counter", "Faults of the engine, by name.");
    for fault in &snapshot.faults {
        let silo = fault.silo.map(|silo| silo.to_string()).unwrap_or_default();
        // Not what describes the last one, which may have an address: a series keeps its labels.
        let code = FaultCode::ALL.into_iter().find(|code| code.number() == fault.code);
        let name = code.map_or(fault.name.as_str(), |code| code.name());
        page.sample("pinwheel_faults_total", &[("fault", name), ("silo", &silo)], fault.count as f64);
    }
    let recorder = &snapshot.recorder;
    page.family("pinwheel_recorder_bytes", "gauge", "Bytes of this run's recording.");
    page.sample("pinwheel_recorder_bytes", &[], recorder.bytes as f64);
    page.family("pinwheel_recorder_on_disk", "gauge", "1 while the recording goes to disk.");
    page.sample("pinwheel_recorder_on_disk", &[], f64::from(u8::from(recorder.state == RecorderState::Disk)));
    page.0.push_str("# EOF\n");
    page.0
}

fn silos(snapshot: &Snapshot, scheduled: &[u64], page: &mut Page) {
    type Counter = (&'static str, &'static str, fn(&Counters) -> u64);
    let of_silos: Vec<(String, Counters)> = (snapshot.silos.iter().zip(scheduled))
        .map(|(silo, scheduled)| (silo.id.to_string(), Counters { scheduled: *scheduled, ..silo.counters }))
        .collect();
    let counters: &[Counter] = &[
        ("scheduled", "Shots whose time has come.", |c| c.scheduled),
        ("submitted", "Shots taken from the feed's source.", |c| c.submitted),
        ("answered", "Answers harvested, errors included.", |c| c.answered),
        ("errored", "Answers with an error word.", |c| c.errored),
        ("late", "Answers after their deadline.", |c| c.late),
        ("missed", "Shots without an answer by their deadline, where deadlines are set.", |c| c.missed),
        ("refused", "Of the missed: no decoder could have answered by the deadline.", |c| c.refused),
        ("rescued", "Answers by the rescue decoder.", |c| c.rescued),
        ("duplicated", "Answers given a second time.", |c| c.duplicated),
        ("judged", "Answers judged against a true observable.", |c| c.shots_with_observables),
        ("logical_errors", "Of the judged: wrong.", |c| c.logical_errors),
        ("quarantined_workers", "Workers put into quarantine.", |c| c.quarantined),
    ];
    for (name, help, value) in counters {
        page.family(&format!("pinwheel_{name}"), "counter", help);
        for (id, counters) in &of_silos {
            page.sample(&format!("pinwheel_{name}_total"), &[("silo", id)], value(counters) as f64);
        }
    }
    page.family("pinwheel_backlog", "gauge", "Shots whose time has come and that have no slot yet.");
    for silo in &snapshot.silos {
        let backlog = silo.counters.scheduled.saturating_sub(silo.counters.submitted);
        page.sample("pinwheel_backlog", &[("silo", &silo.id.to_string())], backlog as f64);
    }
    page.family("pinwheel_ring_depth", "gauge", "Entries in a ring.");
    for silo in &snapshot.silos {
        let id = silo.id.to_string();
        for ring in &silo.rings {
            page.sample("pinwheel_ring_depth", &[("silo", &id), ("ring", &ring.name)], ring.depth as f64);
        }
    }
    page.family("pinwheel_latency_seconds", "summary", "From scheduled arrival to harvest.");
    for silo in &snapshot.silos {
        page.summary("pinwheel_latency_seconds", &[("silo", &silo.id.to_string())], &silo.latency);
    }
    page.family("pinwheel_stage_seconds", "summary", "Time in each stage.");
    for silo in &snapshot.silos {
        let id = silo.id.to_string();
        for stage in &silo.stages {
            page.summary("pinwheel_stage_seconds", &[("silo", &id), ("stage", stage.name)], &stage.time);
        }
    }
}

fn threads(snapshot: &Snapshot, page: &mut Page) {
    page.family("pinwheel_thread_heartbeat_age_seconds", "gauge", "Age of a hot thread's heartbeat.");
    for thread in snapshot.threads.iter().filter(|thread| thread.state == ThreadState::Running) {
        let age_s = thread.heartbeat_age_ns as f64 / 1e9;
        page.sample("pinwheel_thread_heartbeat_age_seconds", &[("thread", &thread.name)], age_s);
    }
    page.family("pinwheel_thread_frames", "counter", "Frames of a hot thread.");
    for thread in &snapshot.threads {
        page.sample("pinwheel_thread_frames_total", &[("thread", &thread.name)], thread.frames as f64);
    }
    page.family("pinwheel_thread_busy_seconds", "counter", "Time in frames with work.");
    for thread in &snapshot.threads {
        page.sample("pinwheel_thread_busy_seconds_total", &[("thread", &thread.name)], thread.busy_ns as f64 / 1e9);
    }
    page.family("pinwheel_thread_frame_gap_seconds", "summary", "Between the starts of frames.");
    for thread in &snapshot.threads {
        page.summary("pinwheel_thread_frame_gap_seconds", &[("thread", &thread.name)], &thread.frame_gap);
    }
}

fn streams(snapshot: &Snapshot, page: &mut Page) {
    page.family("pinwheel_stream_answered", "counter", "Answers of a stream.");
    for stream in &snapshot.streams {
        page.sample("pinwheel_stream_answered_total", &[("stream", &stream.id.to_string())], stream.answered as f64);
    }
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _always_fits = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let _always_fits = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _always_fits = writeln!(self.0, " {value}");
    }

    fn summary(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        // An empty histogram has no quantiles; zero would be wrong.
        if histogram.count() > 0 {
            for (label, quantile) in QUANTILES {
                let with = [labels, &[("quantile", label)]].concat();
                self.sample(name, &with, histogram.quantile_ns(quantile) as f64 / 1e9);
            }
        }
        self.sample(&format!("{name}_sum"), labels, histogram.sum_ns() as f64 / 1e9);
        self.sample(&format!("{name}_count"), labels, histogram.count() as f64);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::Exposition;
    use crate::board::{Board, Place, Shape, set};
    use crate::clock::Clock;
    use crate::fault::FaultCode;
    use crate::units::{TickRate, Ticks};

    fn board() -> Board {
        let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 1 };
        Board::create(shape, Place::Private).unwrap()
    }

    fn shown(board: &Board, exposition: &Exposition, name: &str) -> Vec<String> {
        let text = exposition.text(&board.snapshot(&Clock::standing(Ticks(9), Ticks(0), TickRate::NANOS)));
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    #[test]
    fn scheduled_shots_never_become_fewer_although_a_drain_discards_those_that_wait() {
        let (board, exposition) = (board(), Exposition::default());
        for (scheduled, most, backlog) in [(10, 10, 6), (4, 10, 0), (12, 12, 8)] {
            set(&board.feed(1).scheduled, scheduled);
            set(&board.feed(1).submitted, 4);
            let all = shown(&board, &exposition, "pinwheel_scheduled_total");
            let first = "pinwheel_scheduled_total{silo=\"0\"} 0".to_owned();
            assert_eq!(all, [first, format!("pinwheel_scheduled_total{{silo=\"1\"}} {most}")]);
            let waiting = shown(&board, &exposition, "pinwheel_backlog{silo=\"1\"}");
            assert_eq!(waiting, [format!("pinwheel_backlog{{silo=\"1\"}} {backlog}")]);
        }
    }

    #[test]
    fn a_fault_keeps_its_series_whichever_client_it_was_last() {
        let board = board();
        let mut names = Vec::new();
        for client in [0x0a00_0001_1f90, 0x0a00_0002_1f91] {
            board.fault(0, FaultCode::RequestsMissing, Ticks(5), client);
            names.extend(shown(&board, &Exposition::default(), "pinwheel_faults_total"));
        }
        let series: Vec<&str> = names.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        assert!(series.len() == 2 && series[0] == series[1] && series[0].contains("CUDA-Q"), "{names:?}");
    }
}
