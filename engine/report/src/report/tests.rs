#![allow(clippy::unwrap_used, reason = "harness")]
use super::{Context, OverflowReport, Report, progress_line};
use crate::sound::sound;
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::board::image::Image;
use pinwheel_engine::board::snapshot::{
    Counters, DecoderShots, DeviceState, ErrorCount, FaultView, MovesView, OutcomeCount, ShadowView,
};
use pinwheel_engine::board::{Board, Place, Shape, set};
use pinwheel_engine::clock::Clock;
use pinwheel_engine::engine::{EndedBy, Outcome};
use pinwheel_engine::fault::FaultCode;
use pinwheel_engine::profile::{DecoderKind, Faults, Profile};
use pinwheel_engine::roles::SiloState;
use pinwheel_engine::streams::HealthVerdict;
use pinwheel_engine::units::{TickRate, Ticks};

fn status(change: impl FnOnce(&mut Outcome)) -> (u8, Vec<&'static str>) {
    let mut outcome = sound();
    change(&mut outcome);
    let report = Report::new(&outcome, &Context::default());
    (report.exit_status, report.alarms.iter().map(|alarm| alarm.alarm).collect())
}

#[test]
fn a_report_has_every_key_that_scripts_rely_on() {
    let report = serde_json::to_value(Report::new(&sound(), &Context::default())).unwrap();
    let has = |value: &serde_json::Value, keys: &str| {
        for key in keys.split_whitespace() {
            assert!(value.get(key).is_some(), "{key}");
        }
    };
    has(
        &report,
        "submitted answered lost duplicated out_of_order errors late deadline_ns logical_errors logical_error_rate
         logical_error_rate_ci95 shots_with_observables joint moves lifecycles ended_by throughput_per_s latency_ns latency_from_submit_ns
         stages console_cost device decoder predecoder profile silos silos_auto threads streams alarms host run_dir",
    );
    has(&report["joint"], "read consistent refused");
    has(&report["latency_ns"], "p50 p90 p99 p999 max");
    has(&report["latency_from_submit_ns"], "p50 p90 p99 p999 max");
    has(&report["stages"]["decode"], "p50 p99 max count");
    has(&report["threads"][0], "name roles core hot frames frame_gap_ns allocations");
    has(&report["threads"][0]["frame_gap_ns"], "p50 p99 p999 max");
    has(&report["timer_lateness_ns"], "p50 p99 max count");
    assert_eq!(report["log"], serde_json::json!({ "written": 9, "dropped": 1, "unkept": 0 }));
    has(&report["clock"], "source degraded pairs utc_steps counter_steps width_ns");
    has(&report["streams"][0], "id answered late errors p99 logical_error_rate input_health");
}

#[test]
fn every_alarm_has_one_shape_whoever_found_it() {
    use crate::synthetic::{SyntheticFaults, snapshot};
    let mut outcome = sound();
    outcome.snapshot.silos[0].counters.answered -= 1;
    outcome.snapshot.threads[0].frames_elsewhere = 1;
    outcome.snapshot.threads[0].core = Some(1);
    let logged = snapshot(100, SyntheticFaults::All).alarms;
    assert!(!logged.is_empty());
    outcome.snapshot.alarms.extend(logged);
    let report = serde_json::to_value(Report::new(&outcome, &Context::default())).unwrap();
    let alarms = report["alarms"].as_array().unwrap();
    let keys = |alarm: &serde_json::Value| alarm.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let found_at_end = alarms.iter().filter(|alarm| alarm["number"].is_null()).count();
    assert!(found_at_end >= 2 && found_at_end < alarms.len(), "{alarms:?}");
    for alarm in alarms {
        assert_eq!(keys(alarm), keys(&alarms[alarms.len() - 1]), "{alarm}");
        for key in ["alarm", "what", "unsound", "rule", "severity", "state", "sentence", "count"] {
            assert!(!alarm[key].is_null(), "{key} of {alarm}");
        }
        let kinds = alarm.as_object().unwrap().iter().zip(alarms[alarms.len() - 1].as_object().unwrap());
        for ((key, one), (_, other)) in kinds.filter(|((_, one), (_, other))| !one.is_null() && !other.is_null()) {
            assert_eq!(std::mem::discriminant(one), std::mem::discriminant(other), "{key}");
        }
    }
    let of = |name: &str| alarms.iter().find(|alarm| alarm["alarm"] == name).unwrap();
    assert_eq!((&of("lost")["severity"], &of("lost")["rule"]), (&"critical".into(), &"end_of_run".into()));
    assert_eq!((&of("affinity_lost")["severity"], &of("lost")["sentence"]), (&"warn".into(), &of("lost")["what"]));
}

#[test]
fn silos_add_up() {
    let report = Report::new(&sound(), &Context::default());
    assert_eq!((report.submitted, report.answered, report.lost, report.silos), (1_000, 1_000, 0, 2));
    assert_eq!(report.latency_ns.count(), 1_000);
    assert_eq!(
        report.stages.iter().map(|(name, time)| (*name, time.count())).collect::<Vec<_>>(),
        [("feed", 1_000), ("decode", 1_000)]
    );
    assert_eq!(report.throughput_per_s, Some(500.0));
    assert_eq!(report.dispatch_ns_per_shot, Some(80.0));
    assert_eq!(report.logical_error_rate, Some(0.1));
    let [low, high] = report.logical_error_rate_ci95.unwrap();
    assert!((low - 0.055_23).abs() < 1e-4 && (high - 0.174_37).abs() < 1e-4);
}

#[test]
fn without_observables_the_rate_is_null() {
    let mut outcome = sound();
    for silo in &mut outcome.snapshot.silos {
        silo.counters.shots_with_observables = 0;
        silo.counters.logical_errors = 0;
    }
    let report = serde_json::to_value(Report::new(&outcome, &Context::default())).unwrap();
    assert!(report["logical_error_rate"].is_null() && report["logical_error_rate_ci95"].is_null());
    assert!(report["streams"][0]["logical_error_rate"].is_null() && report["console_cost"].is_null());
}

#[test]
fn a_sound_run_exits_with_0_or_its_signal() {
    assert_eq!(status(|_| ()), (0, vec![]));
    assert_eq!(status(|outcome| outcome.ended_by = EndedBy::Signal(2)), (130, vec![]));
    assert_eq!(status(|outcome| outcome.ended_by = EndedBy::Signal(15)), (143, vec![]));
}

#[test]
fn a_lost_shot_exits_with_1_even_after_a_signal() {
    let lose = |outcome: &mut Outcome| {
        outcome.ended_by = EndedBy::Signal(2);
        outcome.snapshot.silos[1].counters.answered -= 1;
    };
    assert_eq!(status(lose), (1, vec!["lost"]));
}

#[test]
fn unsound_conditions_exit_with_1() {
    assert_eq!(status(|outcome| outcome.snapshot.silos[0].counters.duplicated = 1), (1, vec!["duplicated"]));
    assert_eq!(status(|outcome| outcome.snapshot.silos[0].counters.joint_read = 1), (1, vec!["joint_inconsistent"]));
    let panicked = |outcome: &mut Outcome| {
        let thread = &mut outcome.snapshot.threads[0];
        (thread.roles[0].died_frame, thread.panic_site) = (Some(9), Some("decode/matcher.rs:41".to_owned()));
    };
    assert_eq!(status(panicked), (1, vec!["role_died"]));
    assert_eq!(status(|outcome| outcome.ended_by = EndedBy::Fault), (1, vec!["fault"]));
    assert_eq!(status(|outcome| outcome.sink = Some(Err("full".to_owned()))), (1, vec!["output"]));
    let broken = |outcome: &mut Outcome| {
        let code = FaultCode::InputBroken.number();
        let fault = FaultView { code, name: String::new(), silo: None, count: 1, first_ns: 1, last_ns: 1, detail: 9 };
        outcome.snapshot.faults.push(fault);
    };
    assert_eq!(status(broken), (1, vec!["input_broken"]));
    let bad = |outcome: &mut Outcome| outcome.snapshot.streams[0].input_health.verdict = HealthVerdict::Bad;
    assert_eq!(status(bad), (1, vec!["input_bad"]));
}

#[test]
fn warnings_alone_exit_with_0() {
    let suspect = |outcome: &mut Outcome| outcome.snapshot.streams[0].input_health.verdict = HealthVerdict::Suspect;
    assert_eq!(status(suspect), (0, vec!["input_suspect"]));
    assert_eq!(status(|outcome| outcome.snapshot.silos[0].device = DeviceState::Lost), (0, vec!["device_lost"]));
    // Killed on request: its roles ended without a panic.
    let killed = |outcome: &mut Outcome| {
        outcome.snapshot.threads[0].roles[0].died_frame = Some(9);
        outcome.snapshot.silos[0].lifecycle.state = SiloState::Dead;
    };
    assert_eq!(status(killed), (0, vec!["silo_dead"]));
}

/// An outcome with two launches past their deadline in silo 0, and three in silo 1.
fn errored() -> Outcome {
    let mut outcome = sound();
    outcome.snapshot.silos[0].counters.errored = 2;
    for (silo, count) in [(0, 2), (1, 3)] {
        let code = ErrorCode::LaunchDeadline as u16;
        outcome.snapshot.silos[silo].errors.push(ErrorCount { code, name: "launch deadline".to_owned(), count });
    }
    outcome
}

#[test]
fn answers_with_errors_exit_with_1_whatever_outputs_were_asked_for() {
    let plain = Report::new(&errored(), &Context::default());
    assert_eq!(plain.exit_status, 1);
    let alarm = plain.alarms.iter().find(|alarm| alarm.alarm == "errored").unwrap();
    assert_eq!(alarm.what, "5 shots were answered with an error: 5 launch_deadline");
    assert!(!plain.to_string().contains(": sound"), "{plain}");
    assert_eq!(serde_json::to_value(&plain).unwrap()["errors"], serde_json::json!({ "5": 5 }));
}

#[test]
fn errors_that_the_profile_injected_exit_with_0_unless_predictions_were_asked() {
    let injected = |set: fn(&mut Faults)| {
        let mut faults = Profile::load("lab", None).unwrap().0.faults;
        set(&mut faults);
        Context { faults: Some(faults), ..Context::default() }
    };
    let status = |context: Context| Report::new(&errored(), &context).exit_status;
    assert_eq!(status(injected(|faults| faults.never_ready = 0.1)), 0);
    assert_eq!(status(injected(|faults| faults.lose_device_every = Some(9))), 0);
    // Other faults do not explain these errors.
    assert_eq!(status(injected(|faults| faults.decoder_panic = 0.1)), 1);
    assert_eq!(status(injected(|_| ())), 1);
    let asked = Context { predictions_asked: true, ..injected(|faults| faults.never_ready = 0.1) };
    let asked = Report::new(&errored(), &asked);
    assert_eq!(asked.exit_status, 1);
    assert!(asked.alarms.iter().any(|alarm| alarm.what.ends_with("their predictions are zeros")));
}

#[test]
fn the_text_shows_nothing_that_was_not_measured() {
    let full = Report::new(&sound(), &Context::default()).to_string();
    for told in ["answered", "Times", "Accuracy", "p99.9", "80 ns per shot", "folded onto one hot thread", ": sound"] {
        assert!(full.contains(told), "{told} in\n{full}");
    }
    let mut outcome = sound();
    for silo in &mut outcome.snapshot.silos {
        silo.counters = Counters::default();
        silo.latency = Histogram::default();
    }
    outcome.elapsed_live_ns = 0;
    let empty = Report::new(&outcome, &Context::default()).to_string();
    assert!(empty.contains("the model predicts 5.000 %"), "input health needs no observables:\n{empty}");
    for untold in ["Times", "Accuracy", "throughput", "ns per shot", "NaN", "inf"] {
        assert!(!empty.contains(untold), "{untold} in\n{empty}");
    }
}

#[test]
fn times_of_what_did_not_happen_are_left_out() {
    let mut outcome = sound();
    outcome.snapshot.silos[0].moves = Some(MovesView { asked: 1, failed: 1, ..MovesView::default() });
    outcome.snapshot.silos[0].lifecycle.deaths = 1;
    outcome.snapshot.shadow = Some(ShadowView::default());
    let text = Report::new(&outcome, &Context::default()).to_string();
    for told in ["Moves of streams", "1 failures", "Shadow: "] {
        assert!(text.contains(told), "{told}: {text}");
    }
    for untold in ["median pause", "the longest after", "its decode, p50"] {
        assert!(!text.contains(untold), "{untold}: {text}");
    }
    for (device, is_told) in [("none", false), ("cuda:0", true)] {
        outcome.snapshot.engine.device = device.to_owned();
        outcome.snapshot.silos[0].stages[0].name = "device";
        let text = Report::new(&outcome, &Context::default()).to_string();
        assert_eq!(text.contains("launched to ready flag claimed"), is_told, "{text}");
    }
}

#[test]
fn a_note_and_what_was_not_kept_are_printed_once_and_an_unanswered_shot_with_its_sequence() {
    let mut outcome = sound();
    outcome.unanswered = vec![(3, 17)];
    let notes = vec!["folded onto one hot thread".to_owned(), "ends after 10 s".to_owned()];
    let report = Report::new(&outcome, &Context { notes, ..Context::default() });
    assert_eq!(report.notes, ["folded onto one hot thread", "ends after 10 s"]);
    outcome.snapshot.recorder.trouble = Some("recorder: cannot write".to_owned());
    let trouble = Some("cannot write disagreements.b8".to_owned());
    outcome.snapshot.shadow = Some(ShadowView { trouble, ..ShadowView::default() });
    let report = Report::new(&outcome, &Context::default());
    assert_eq!(report.notes, ["folded onto one hot thread", "recorder: cannot write", "cannot write disagreements.b8"]);
    assert!(report.to_string().contains("stream 3, sequence 17"));
}

/// A note may be of a resource that runs out, or of a thread that still waits for its core.
#[test]
fn notes_are_counted_and_not_called_stalls_that_ended() {
    use crate::synthetic::{SyntheticFaults, snapshot};
    let (mut outcome, synthetic) = (sound(), snapshot(100, SyntheticFaults::All));
    (outcome.snapshot.alarms, outcome.snapshot.incidents) = (synthetic.alarms, synthetic.incidents);
    let text = Report::new(&outcome, &Context::default()).to_string();
    assert!(text.contains("  incidents of severity note: 1; --json has their causes"), "{text}");
}

/// Live inputs may have no true observables.
#[test]
fn answers_that_are_not_to_be_trusted_are_told_without_true_observables_too() {
    let mut outcome = sound();
    outcome.snapshot.engine.abstain_below_db = 10;
    for silo in &mut outcome.snapshot.silos {
        silo.counters = Counters { answered: 500, submitted: 500, abstained: 40, ..Counters::default() };
    }
    let text = Report::new(&outcome, &Context::default()).to_string();
    assert!(text.contains("not trusted") && text.contains("8.00 % of the answers, of a gap below 10 dB"), "{text}");
    assert!(!text.contains("logical errors") && !text.contains("rate, trusted"), "{text}");
}

#[test]
fn a_rate_below_one_a_second_is_not_said_to_be_none() {
    let mut outcome = sound();
    (outcome.snapshot.engine.rate_hz, outcome.elapsed_live_ns) = (Some(0.5), 2_000_000_000_000);
    outcome.snapshot.silos.truncate(1);
    let text = Report::new(&outcome, &Context::default()).to_string();
    assert!(text.contains("0.250/s   0.500/s scheduled"), "{text}");
}

/// Latencies are counted of all answers of a stream together.
#[test]
fn a_decoder_that_gave_every_answer_has_their_latencies_and_of_several_none_has() {
    let row = |decoder, shots| DecoderShots { decoder, shots, shots_with_observables: 0, logical_errors: 0 };
    let decoders = |rows: &[DecoderShots]| {
        let mut outcome = sound();
        outcome.snapshot.streams[0].decoders = rows.to_vec();
        let report = Report::new(&outcome, &Context::default());
        let all = [&report.decoders, &report.streams[0].decoders];
        all.map(|rows| rows.iter().map(|row| (row.p50, row.p99)).collect::<Vec<_>>())
    };
    let [of_run, of_stream] = decoders(&[row(DecoderKind::Matching, 1_000)]);
    assert_eq!(
        (of_run.as_slice(), of_stream.as_slice()),
        (&[(Some(50_000), Some(50_000))][..], &[(Some(50_000), Some(50_000))][..])
    );
    for rows in
        [&[row(DecoderKind::Matching, 999)][..], &[row(DecoderKind::Matching, 900), row(DecoderKind::Lookup, 100)]]
    {
        assert!(decoders(rows).iter().flatten().all(|quantiles| *quantiles == (None, None)), "{rows:?}");
    }
}

#[test]
fn progress_covers_only_the_last_second() {
    let (mut earlier, now) = (sound().snapshot, sound().snapshot);
    earlier.at_ns -= 1_000_000_000;
    for silo in &mut earlier.silos {
        silo.counters.answered = 400;
        silo.latency = Histogram::of(&[900_000_000; 0]);
    }
    let line = progress_line(&earlier, &now);
    assert!(line.contains("1,000 answered") && line.contains("200/s") && line.contains("in flight      0"), "{line}");
}

#[test]
fn the_clock_is_printed_only_when_degraded_or_stepped() {
    let mut outcome = sound();
    let plain = Report::new(&outcome, &Context::default());
    assert!(!plain.to_string().contains("Times come") && !plain.to_string().contains("UTC"));
    let json = serde_json::to_value(&plain.clock).unwrap();
    assert_eq!(json["width_ns"], serde_json::Value::Null, "not measured");
    let clock = &mut outcome.snapshot.clock;
    (clock.utc_steps, clock.counter_steps, clock.degraded) = (2, 1, Some("found clocksource \"hpet\"".to_owned()));
    let told = Report::new(&outcome, &Context::default()).to_string();
    for words in ["clocksource \"hpet\"", "UTC was set 2 times", "The counter jumped once"] {
        assert!(told.contains(words), "{words} in\n{told}");
    }
}

#[test]
fn the_environment_is_printed_with_its_failed_rows_and_the_file_of_the_report() {
    let report = Report::new(&sound(), &Context::default());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["environment"]["fail"], serde_json::json!(["isolcpus", "nohz_full"]));
    assert_eq!(json["environment"]["file"], "logs/x/environment.json");
    let text = report.to_string();
    for part in
        ["rows that fail                 2   isolcpus nohz_full", "swap smt", "--verify logs/x/environment.json"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut none = sound();
    none.environment = None;
    let report = Report::new(&none, &Context::default());
    assert!(!report.to_string().contains("Machine") && serde_json::to_value(&report).unwrap()["environment"].is_null());
}

/// As the recording of another program may have them.
#[test]
fn a_board_whose_words_are_the_largest_numbers_has_a_report() {
    let shape = Shape { threads: 2, silos: 2, slots: 8, workers: 2, decoders: 2, streams: 2 };
    let board = Board::create(shape, Place::Private).unwrap();
    let head = board.place_of_block(board.thread(0));
    let mut image = Image::of(&board);
    image.words_mut()[head..].fill(u64::MAX);
    let board = image.board().unwrap();
    set(&board.header().nanos_per_tick_q32, 1 << 32);
    let mut outcome = sound();
    outcome.snapshot = board.snapshot(&Clock::standing(Ticks(100), Ticks(0), TickRate::NANOS));
    let report = Report::new(&outcome, &Context::default());
    assert_eq!(report.submitted, u64::MAX);
    assert!(report.to_string().contains("18,446,744,073,709,551,615") && serde_json::to_value(&report).is_ok());
}

/// A recording of another program may hold any number.
#[test]
fn outcomes_beyond_the_largest_number_are_summed() {
    let full = OutcomeCount { outcome: "waited", count: u64::MAX };
    let mut silo = sound().snapshot.silos.remove(0);
    (silo.overflow.episodes, silo.overflow.outcomes) = (u64::MAX, vec![full]);
    let report = OverflowReport::of(&[silo.clone(), silo]);
    assert_eq!((report.episodes, report.outcomes["waited"]), (u64::MAX, u64::MAX));
}
