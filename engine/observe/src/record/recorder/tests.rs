//! The recorder under virtual time: snapshots, bursts, disks that refuse.
#![allow(clippy::unwrap_used, clippy::disallowed_types, reason = "harness")]

use super::store::Store;
use super::{Recorder, SAMPLE_PERIOD, SNAPSHOT_PERIOD};
use crate::board::alarms::{AlarmRecord, AlarmState, Confidence, Site};
use crate::board::{Board, Place, Shape, add, set};
use crate::clock::Clock;
use crate::profile::{RuleId, Severity};
use crate::record::runs::is_running;
use crate::record::tape::{self, Tape};
use crate::roles::RecorderState;
use crate::units::{Nanos, Ticks};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SHAPE: Shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 2 };

struct Bench {
    nanos: Arc<AtomicU64>,
    board: Arc<Board>,
    recorder: Recorder,
}

fn world() -> (Arc<AtomicU64>, Clock, Arc<Board>) {
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let board = Arc::new(Board::create(SHAPE, Place::Private).unwrap());
    set(&board.header().nanos_per_tick_q32, 1 << 32);
    set(&board.header().start_ticks, clock.start().0);
    (nanos, clock, board)
}

impl Bench {
    fn new(run: Option<&std::path::Path>) -> Bench {
        let (nanos, clock, board) = world();
        let recorder = Recorder::new(Arc::clone(&board), clock, run);
        Bench { nanos, board, recorder }
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.nanos.fetch_add(SAMPLE_PERIOD.0, Ordering::Relaxed);
            set(&self.board.thread(0).heartbeat, self.nanos.load(Ordering::Relaxed));
            add(&self.board.thread(0).frames, 1);
            self.recorder.step();
        }
    }

    fn alarm(&self, severity: Severity) {
        let onset = Ticks(self.nanos.load(Ordering::Relaxed));
        let text = String::new;
        self.board.alarms()[0].publish(&AlarmRecord {
            number: 1,
            rule: RuleId::Heartbeat,
            site: Site::Thread(0),
            severity,
            state: AlarmState::Active,
            first: onset,
            onset,
            last: onset,
            ended: Ticks(0),
            judged: Ticks(0),
            count: 1,
            acknowledged: Ticks(0),
            snoozed_until: Ticks(0),
            confidence: Confidence::Likely,
            incident: 1,
            incident_onset: onset,
            incident_ended: Ticks(0),
            shots_hit: 0,
            incident_severity: severity,
            cause: text(),
            who: text(),
            sentence: "stalled".into(),
            evidence: text(),
            stack: text(),
            culprit: text(),
            runbook: text(),
            consequences: text(),
        });
    }
}

fn fast_span(tape: &mut Tape) -> (u64, u64, usize) {
    let mut seen = Vec::new();
    tape.play_fast(Ticks(0), Ticks(u64::MAX), |at, _| seen.push(at.0 / SAMPLE_PERIOD.0)).unwrap();
    (seen.iter().copied().min().unwrap_or(0), seen.iter().copied().max().unwrap_or(0), seen.len())
}

#[test]
fn there_is_a_snapshot_every_tenth_of_a_second_and_the_shadow_is_what_the_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(Some(folder.path()));
    bench.run(12_345);
    let mut tape = Tape::open(folder.path()).unwrap();
    let mut ticks = Vec::new();
    tape.play(Ticks(0), Ticks(u64::MAX), |moment| ticks.push(moment.at.0)).unwrap();
    assert_eq!(ticks.len(), 124);
    assert!(ticks.windows(2).all(|pair| pair[1] - pair[0] == SNAPSHOT_PERIOD.0));
    assert_eq!(&tape.at(Ticks(u64::MAX)).unwrap().unwrap().image, bench.recorder.encoder.shadow());
    let view = bench.board.snapshot(&bench.recorder.clock).recorder;
    assert_eq!((view.state, view.frames, view.samples, view.trouble), (RecorderState::Disk, 124, 12_345, None));
    assert_eq!(view.bytes, tape.bytes());
    let memory = bench.recorder.recent_recording().tape().unwrap();
    assert_eq!((memory.span(), memory.bytes()), (tape.span(), tape.bytes()));
}

#[test]
fn an_alarm_keeps_the_five_seconds_before_it_and_the_five_after_it() {
    let mut bench = Bench::new(None);
    bench.run(20_000);
    bench.alarm(Severity::Warn);
    bench.run(20_000);
    let mut tape = bench.recorder.recent_recording().tape().unwrap();
    let (from, to, samples) = fast_span(&mut tape);
    assert!((20_001 - 7_000..=20_001 - 5_000).contains(&from), "{from}");
    assert!((20_001 + 4_900..=20_001 + 6_100).contains(&to), "{to}");
    assert_eq!(samples as u64, to - from + 1, "each millisecond of it");
    // A moment between two snapshots has the fast words of its own millisecond.
    let moment = tape.at(Ticks(20_033_400_000)).unwrap().unwrap();
    let snapshot = moment.snapshot().unwrap().unwrap();
    assert_eq!((moment.at, snapshot.threads[0].heartbeat_age_ns), (Ticks(20_033_000_000), 0));
    assert_eq!(snapshot.threads[0].frames, 20_032);
}

#[test]
fn a_note_keeps_no_fast_samples() {
    let mut bench = Bench::new(None);
    bench.run(2_000);
    bench.alarm(Severity::Note);
    bench.run(2_000);
    assert_eq!(fast_span(&mut bench.recorder.recent_recording().tape().unwrap()).2, 0);
}

#[test]
fn memory_holds_the_last_ten_minutes_and_no_more() {
    let mut bench = Bench::new(None);
    // A snapshot a step: the steps between would only take the test's time.
    for _ in 0..7_000 {
        bench.nanos.fetch_add(SNAPSHOT_PERIOD.0, Ordering::Relaxed);
        bench.recorder.step();
    }
    let tape = bench.recorder.recent_recording().tape().unwrap();
    let (from, to) = tape.span().unwrap();
    let span_s = (to.0 - from.0) / 1_000_000_000;
    assert!((600..=620).contains(&span_s), "{span_s}");
}

/// A disk with so much room.
struct Disk(Arc<Mutex<usize>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut room = self.0.lock().unwrap();
        *room = room.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_counter_that_goes_back_leaves_a_recorder_that_records_on_and_forgets_what_is_old() {
    let mut bench = Bench::new(None);
    bench.nanos.store(1_000_000_000_000, Ordering::Relaxed);
    bench.run(2_000);
    bench.alarm(Severity::Warn);
    bench.run(1_000);
    bench.nanos.store(100_000_000_000, Ordering::Relaxed);
    let frames = |bench: &Bench| bench.board.snapshot(&bench.recorder.clock).recorder.frames;
    let before = frames(&bench);
    bench.run(20_000);
    assert_eq!(frames(&bench) - before, 200);
    assert!(bench.recorder.recent.len() < 10, "{}", bench.recorder.recent.len());
    let bursts = |bench: &Bench| crate::board::get(&bench.board.recorder().bursts);
    let before = bursts(&bench);
    bench.alarm(Severity::Warn);
    bench.run(10);
    assert_eq!(bursts(&bench), before + 1, "an alarm with an earlier onset is a new one all the same");
}

/// Ticks of key snapshots alone do not show a jump that is shorter than a segment.
#[test]
fn a_recording_across_a_jump_back_is_searched_alike_with_and_without_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(Some(folder.path()));
    bench.run(25_000);
    bench.nanos.fetch_sub(3_000_000_000, Ordering::Relaxed);
    bench.run(25_000);
    let mut indexed = Tape::open(folder.path()).unwrap();
    let mut searched = Tape::from_bytes(std::fs::read(folder.path().join(tape::FILE)).unwrap()).unwrap();
    assert_eq!((indexed.keys(), indexed.span()), (searched.keys(), searched.span()));
    let mut times = Vec::new();
    indexed.play(Ticks(0), Ticks(u64::MAX), |moment| times.push(moment.time())).unwrap();
    assert!(times.len() > 490 && times.is_sorted(), "{times:?}");
    let frames = |tape: &mut Tape, at| tape.at(at).unwrap().unwrap().snapshot().unwrap().unwrap().threads[0].frames;
    let frames: Vec<u64> = times.iter().map(|at| frames(&mut searched, *at)).collect();
    assert!(frames.is_sorted() && *frames.last().unwrap() >= 49_900, "later is later");
}

/// All other words of such a moment would be those of seconds before.
#[test]
fn no_fast_samples_are_laid_over_a_snapshot_whose_successors_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(Some(folder.path()));
    bench.run(12_000);
    bench.alarm(Severity::Warn);
    bench.run(4_000);
    let (file, second) = (folder.path().join(tape::FILE), {
        let index = std::fs::read(folder.path().join(tape::INDEX)).unwrap();
        usize::try_from(u64::from_le_bytes(index[28..36].try_into().unwrap())).unwrap()
    });
    let whole = std::fs::read(file).unwrap();
    let mut damaged = whole.clone();
    damaged[second + 60] ^= 1;
    let found = |bytes: Vec<u8>| {
        let mut tape = Tape::from_bytes(bytes).unwrap();
        let moment = tape.at(tape.tick_at(Nanos(14_050_000_000))).unwrap().unwrap();
        tape.since_start(moment.time()).0 / SAMPLE_PERIOD.0
    };
    assert_eq!(found(whole), 14_050, "a fast sample");
    let last = found(damaged);
    assert!((9_900..10_100).contains(&last), "the last snapshot before the damage: {last}");
}

#[test]
fn a_disk_that_fills_up_is_said_once_and_memory_goes_on() {
    let (nanos, clock, board) = world();
    let mut store = Store::in_memory(&board, &clock);
    let room = Arc::new(Mutex::new(20_000));
    store.write_to("/disk/recording.pwt".into(), Box::new(Disk(Arc::clone(&room))), Box::new(io::sink()));
    let recorder = Recorder::with(Arc::clone(&board), clock.clone(), store);
    let mut bench = Bench { nanos, board, recorder };
    bench.run(60_000);
    let view = bench.board.snapshot(&clock).recorder;
    assert_eq!((view.state, view.frames), (RecorderState::Memory, 600));
    let said = bench.recorder.take_error().unwrap();
    for part in ["/disk/recording.pwt", "cannot write", "--logs DIR", "memory"] {
        assert!(said.contains(part) && !said.contains('\n'), "{said}");
    }
    assert!(said.starts_with(&view.trouble.unwrap()[..60]));
    assert_eq!(bench.recorder.take_error(), None);
    let (from, to) = bench.recorder.recent_recording().tape().unwrap().span().unwrap();
    assert!(to.0 - from.0 >= Nanos(59_000_000_000).0);
}

#[test]
fn a_run_whose_disk_is_full_or_has_no_room_for_an_index_counts_as_running_until_it_ends() {
    for has_index in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let (_, clock, board) = world();
        if has_index {
            std::fs::write(run.join(tape::INDEX), "another's").unwrap();
        }
        let mut store = Store::open(&board, &clock, Some(run));
        let full = Disk(Arc::new(Mutex::new(0)));
        store.write_to(run.join(tape::FILE), Box::new(full), Box::new(io::sink()));
        let mut recorder = Recorder::with(board, clock, store);
        recorder.step();
        assert_eq!(recorder.store.state(), RecorderState::Memory);
        assert!(is_running(run), "{has_index}");
        drop(recorder.finish());
        assert!(!is_running(run), "{has_index}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_leaves_a_recorder_in_memory() {
    let mut bench = Bench::new(Some(std::path::Path::new("/proc/self/no-such-run")));
    bench.run(500);
    assert_eq!(bench.board.snapshot(&bench.recorder.clock).recorder.state, RecorderState::Memory);
    assert!(bench.recorder.finish().unwrap().contains("/proc/self/no-such-run"));
}

#[test]
fn a_minute_takes_less_than_two_megabytes_at_lab_sizes() {
    let shape = Shape { threads: 4, silos: 1, slots: 1024, workers: 8, decoders: 2, streams: 4 };
    let nanos = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::virtual_time(Arc::clone(&nanos));
    let board = Arc::new(Board::create(shape, Place::Private).unwrap());
    let mut recorder = Recorder::new(Arc::clone(&board), clock.clone(), None);
    let mut random = 1u64;
    let mut draw = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut shot, mut last_snapshot) = (0u64, 0);
    while last_snapshot < 600 {
        let now = nanos.fetch_add(SNAPSHOT_PERIOD.0, Ordering::Relaxed);
        for _ in 0..2_000 {
            let stamps = &board.slots(0)[(shot % 1024) as usize];
            let mut at = now + shot % 2_000 * 50_000;
            set(&stamps.sequence, shot / 4);
            for word in [&stamps.scheduled, &stamps.submitted, &stamps.dispatched, &stamps.completed, &stamps.decoding]
            {
                set(word, at);
                at += draw(20_000);
            }
            set(&stamps.answered, at);
            set(&stamps.harvested, if shot % 2_000 > 1_950 { 0 } else { at + 500 });
            let latency = board.latency(0);
            for histogram in [&latency.total, &latency.from_submit].into_iter().chain(&latency.stages) {
                histogram.record(20_000 + draw(150_000));
            }
            board.stream_harvest((shot % 4) as usize).latency.record(20_000 + draw(150_000));
            shot += 1;
        }
        for thread in (0..4).map(|index| board.thread(index)) {
            set(&thread.heartbeat, now + draw(1_000));
            add(&thread.frames, 30_000 + draw(9_000));
            (0..300).for_each(|_| thread.frame_gap.record(200 + draw(9_000)));
        }
        recorder.step();
        last_snapshot += 1;
    }
    let tape = recorder.recent_recording().tape().unwrap();
    let mb = tape.bytes() as f64 / 1e6;
    assert!(mb < 2.0, "{mb:.2} MB");
}
