//! Plugins through the engine: sound ones answer as they do by themselves, and those that fail, hang, crash
//! or talk nonsense cost the shots that they spoil, each with its error, and nothing else.

use crate::control::Client;
use crate::rig::{Home, assert_nothing_lost, beside_another, config, end, execute, profile, run, shots, sink, until};
use pinwheel_engine::board::Phase;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::code::{Model, Sampler};
use pinwheel_engine::decode::plugin::{PluginFault, host, set_host};
use pinwheel_engine::decode::{DecodeError, Matcher, MatcherModel};
use pinwheel_engine::engine::wire::Outcome;
use pinwheel_engine::engine::{Command, Config, Done, Engine, Input};
use pinwheel_engine::profile::{Decoder, Decoders, Predecoder, Profile, Rate, Window};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Duration;

/// The process of a plugin: the engine of a test starts this test of this binary.
#[test]
#[ignore = "it is the process of a plugin"]
fn a_plugins_process() {
    if let Some(engine) = std::env::args().next_back().and_then(|last| last.parse().ok()) {
        host(engine).unwrap();
    }
}

fn with_host() {
    let arguments = ["plugins::a_plugins_process", "--exact", "--ignored", "--nocapture"].map(Into::into);
    set_host(std::env::current_exe().unwrap().into(), arguments.into());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Compiles a plugin in C.
fn compiled(home: &Home, source: &str, flags: &[&str]) -> PathBuf {
    with_host();
    let library = home.file(&format!("plugin{}.so", flags.join("")));
    let mut cc = process::Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]).args(flags);
    let output = cc.arg("-o").arg(&library).arg(folder().join(source)).output().expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// The plugin in Rust, which cargo builds with the examples.
fn in_rust() -> PathBuf {
    with_host();
    let mut cargo = process::Command::new(env!("CARGO"));
    // Of the whole workspace: then it is what `cargo test --workspace` has built already.
    cargo.args(["build", "--quiet", "--offline", "--workspace", "--example", "union_find_plugin"]);
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
    // A sanitizer's options would reach macros of the compiler, too, which then cannot be loaded.
    if std::env::var("RUSTFLAGS").is_ok_and(|flags| flags.contains("-Zsanitizer")) {
        cargo.env_remove("RUSTFLAGS");
    }
    let output = cargo.arg("--target-dir").arg(&target).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/examples/libunion_find_plugin.so")
}

fn plugin(library: &Path, config: &str, trusted: bool) -> Decoder {
    let (path, config) = (library.display().to_string(), config.to_owned());
    // Only a plugin that never answers is late, however busy the machine is.
    let limit_us = Some(if config == "hang" { 100_000 } else { 10_000_000 });
    Decoder::Plugin { path, config, trusted, limit_us }
}

fn model_of(decoder: Decoder, model: &Model) -> Result<MatcherModel, String> {
    MatcherModel::of(model, decoder, Predecoder::None, Window::None).map_err(|refused| refused.to_string())
}

const BITS: u32 = 12;

/// Twelve detectors, each with a mechanism and an observable of its own.
fn twelve() -> Arc<Model> {
    let text: String = (0..BITS).map(|bit| format!("error(0.1) D{bit} L{bit}\n")).collect();
    Arc::new(Model::parse(text.as_bytes()).unwrap())
}

/// Shot `index` of the runs below: every 25th has detector 0, which makes the plugin misbehave.
fn shot(index: u64) -> u64 {
    (index.wrapping_mul(0x9E37_79B9) >> 7 & 0xffe) | u64::from(index % 25 == 7)
}

/// Runs `count` shots of [`twelve`]; the answers in order: status, observables.
fn answers(home: &Home, profile: &Profile, count: u64) -> (Snapshot, Vec<(String, u64)>) {
    let bytes: Vec<u8> = (0..count).flat_map(|index| (shot(index) as u16).to_le_bytes()).collect();
    let (model, path) = (twelve(), home.file("answers.jsonl"));
    let shots = shots(&bytes, BITS);
    let input = Input::Replay { model, name: "twelve".into(), shots, observables: None };
    let mut config = config(profile, input, None);
    config.sink = Some(sink(profile, BITS, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    let mut found = vec![(String::new(), 0); count as usize];
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        let bits = answer["observables"].as_array().unwrap().iter();
        let observables = bits.map(|bit| 1 << bit.as_u64().unwrap()).sum();
        let place = &mut found[answer["seq"].as_u64().unwrap() as usize];
        *place = (answer["status"].as_str().unwrap().to_owned(), observables);
    }
    (outcome.snapshot, found)
}

fn one_worker(decoder: Decoder) -> Profile {
    let mut profile = profile();
    (profile.decoder, profile.decoders, profile.input.streams) = (decoder, Decoders::Count(1), 1);
    profile.predecoder = Predecoder::None;
    profile
}

#[test]
fn a_plugin_in_c_explains_single_mechanisms_in_process_and_out_of_it() {
    let home = beside_another();
    let library = compiled(&home, "plugins/single_mechanisms.c", &[]);
    for trusted in [true, false] {
        let (snapshot, found) = answers(&home, &one_worker(plugin(&library, "", trusted)), 2_000);
        for (index, answer) in (0..).zip(&found) {
            assert_eq!(answer, &("ok".to_owned(), shot(index)), "shot {index}");
        }
        let place = if trusted { "in this process" } else { "in its own process" };
        assert_eq!(snapshot.engine.decoder, format!("plugin plugin.so {place}"));
        assert_eq!(snapshot.engine.notes.iter().any(|note| note.contains("a plugin decodes on")), trusted);
    }
}

/// The model of the small set with each part of a mechanism as a mechanism of its own.
fn graph_like() -> Model {
    let data = folder().join("code/src/code/data/surf_z_d3_r3_p0.005.dem");
    let text = std::fs::read_to_string(data).unwrap();
    let parts = |line: &str| match line.strip_prefix("error(") {
        Some(rest) => {
            let (probability, effect) = rest.split_once(')').unwrap();
            effect.split('^').map(|part| format!("error({probability}) {part}\n")).collect()
        }
        None => format!("{line}\n"),
    };
    Model::parse(text.lines().map(parts).collect::<String>().as_bytes()).unwrap()
}

/// What each matcher answers to `count` sampled shots.
fn assert_alike(model: &Model, count: u64, ours: &mut dyn Matcher, theirs: &mut dyn Matcher) {
    let mut sampler = Sampler::new(model, 3);
    let (mut detectors, mut truth) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
    let (mut a, mut b) = (truth.clone(), truth.clone());
    for index in 0..count {
        sampler.draw(&mut detectors, &mut truth);
        ours.decode(&detectors, &mut a).unwrap();
        theirs.decode(&detectors, &mut b).unwrap();
        assert_eq!(a, b, "shot {index}: {detectors:x?}");
    }
}

fn a_plugin_in_rust_answers_like_the_library(count: u64) {
    let (model, library) = (graph_like(), in_rust());
    let theirs = MatcherModel::union_find(&model).unwrap();
    for trusted in [true, false] {
        let ours = model_of(plugin(&library, "", trusted), &model).unwrap();
        assert_alike(&model, count, &mut *ours.matcher(), &mut *theirs.matcher());
    }
}

#[test]
fn a_plugin_in_rust_answers_each_shot_like_the_library_called_by_itself() {
    a_plugin_in_rust_answers_like_the_library(10_000);
}

#[test]
#[ignore = "takes a minute"]
fn a_plugin_in_rust_answers_a_million_shots_like_the_library_called_by_itself() {
    a_plugin_in_rust_answers_like_the_library(1_000_000);
}

#[test]
fn a_plugin_that_cannot_be_used_is_refused_in_a_sentence() {
    let home = beside_another();
    let good = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let version = compiled(&home, "tests/plugins/misbehaving.c", &["-DVERSION=2"]);
    let symbol = compiled(&home, "tests/plugins/misbehaving.c", &["-DWITHOUT_DESTROY"]);
    let text = home.file("text.so");
    std::fs::write(&text, "no library").unwrap();
    let open = home.file("open.so");
    std::fs::copy(&good, &open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for trusted in [true, false] {
        let refused = |library: &Path, config: &str, model: &Model| {
            model_of(plugin(library, config, trusted), model).err().expect("it is refused")
        };
        let said = |library: &Path, config: &str, words: &str| {
            let said = refused(library, config, &twelve());
            assert!(said.contains(words), "{said:?} has {words:?}");
        };
        said(&home.file("none.so"), "", "cannot be read: No such file");
        said(&home.file("."), "", "cannot be read: a directory");
        said(&text, "", "cannot be loaded as a shared library");
        said(&open, "", "other users may change it");
        said(&version, "", "has version 2 of the decoder interface, expected 1");
        said(&symbol, "", "has no deq_decoder_destroy");
        said(&good, "refuse", "refuses the model or its configuration: status -1: as its configuration says");
        let other = Model::parse(b"error(0.1) D0 D1\n").unwrap();
        assert!(refused(&good, "", &other).contains("status -2"));
        let certain = Model::parse(b"error(1) D0\n").unwrap();
        assert!(refused(&good, "", &certain).contains("mechanism 0 of the model has probability 1"));
    }
    let said = model_of(plugin(&good, "crash early", false), &twelve()).err().expect("it is refused");
    assert!(said.contains("ended before it was ready"), "{said}");
}

#[test]
fn a_new_build_of_a_trusted_plugin_is_loaded_beside_the_old_one() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let new = compiled(&home, "plugins/single_mechanisms.c", &["-O2"]);
    let model = |config| model_of(plugin(&library, config, true), &twelve());
    let old = model("fail").unwrap();
    std::fs::rename(&new, &library).unwrap();
    let said = model("fail").err().expect("the new build takes no configuration");
    assert!(said.contains("it takes no configuration"), "{said}");
    let new = model("").unwrap();
    let answers = |model: &MatcherModel| model.matcher().decode(&[1], &mut [0]).is_ok();
    assert_eq!((answers(&old), answers(&new)), (false, true));
    std::fs::File::options().append(true).open(&library).unwrap().write_all(b"\0").unwrap();
    let said = model("").err().expect("it is not known which of its code is loaded");
    assert!(said.contains("its file was written to after"), "{said}");
}

/// An engine that ends while the process of a plugin runs, and another one that the plugin has started.
#[test]
#[ignore = "it is an engine that ends"]
fn an_engine_that_ends() {
    if let Ok(library) = std::env::var("PLUGIN_LIBRARY") {
        with_host();
        let model = model_of(plugin(Path::new(&library), "child", false), &twelve()).unwrap();
        // It ends nothing of its own.
        std::mem::forget(model);
    }
}

#[test]
fn what_a_plugin_has_started_ends_with_the_engine() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let fifo = home.file("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let mut engine = process::Command::new(std::env::current_exe().unwrap());
    engine.args(["plugins::an_engine_that_ends", "--exact", "--ignored", "--nocapture"]);
    let status = engine.env("PLUGIN_LIBRARY", &library).env("PLUGIN_FIFO", &fifo).status().unwrap();
    assert!(status.success(), "{status}");
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let has_ended = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&limit));
    assert_eq!(has_ended, Ok(1), "a process still has the FIFO open");
}

/// Most runs until another decoder takes the place of a spoiled one between two spoiled shots:
/// beside others its process starts slowly.
const RUNS: usize = 3;

/// The plugin does `what` to each shot with detector 0: those are answered with `status`. If it is for good,
/// so are the shots until another decoder has taken its place. All others are right.
fn spoils(home: &Home, library: &Path, what: &str, trusted: bool, status: &str, for_good: bool) {
    let (mut after, runs) = (Vec::new(), if for_good { RUNS } else { 1 });
    while after.last().is_none_or(|after| *after <= 20) {
        assert!(after.len() < runs, "{what}, trusted {trusted}: {after:?} shots after the first error");
        after.push(right_after_the_first_error(home, library, what, trusted, status, for_good));
    }
}

/// Shots that a run of [`spoils`] answers rightly after its first error.
fn right_after_the_first_error(
    home: &Home,
    library: &Path,
    what: &str,
    trusted: bool,
    status: &str,
    for_good: bool,
) -> u32 {
    let mut profile = one_worker(plugin(library, what, trusted));
    // Slow enough that another decoder takes the place of a spoiled one between two spoiled shots.
    let count = if for_good { 120 } else { 500 };
    if for_good {
        profile.input.rate = Rate::Hz(50.0);
    }
    let (snapshot, found) = answers(home, &profile, count);
    let mut after = 0;
    let mut has_failed = false;
    for (index, (named, observables)) in (0..).zip(&found) {
        let is_spoiled = shot(index) & 1 == 1;
        match named.as_str() {
            "ok" => {
                assert!(!is_spoiled, "{what}: shot {index}");
                assert_eq!(*observables, shot(index), "{what}: shot {index}");
                after += u32::from(has_failed);
            }
            named => {
                // A shot of the warm-up may have spoiled it before the first.
                assert!(is_spoiled || for_good, "{what}: shot {index}");
                assert_eq!((named, *observables), (status, 0), "{what}: shot {index}");
                has_failed = true;
            }
        }
    }
    assert!(has_failed, "{what}, trusted {trusted}");
    for thread in &snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
    after
}

#[test]
fn a_plugins_errors_and_nonsense_are_answered_each_with_its_own_code_and_never_as_a_wrong_answer() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    for trusted in [true, false] {
        for (what, status) in [
            ("fail", "plugin_failed"),
            ("odd status", "plugin_failed"),
            ("argument", "plugin_argument"),
            ("no room", "plugin_no_room"),
            ("no mechanism", "plugin_no_mechanism"),
            ("nothing", "plugin_unexplained"),
            ("other", "plugin_unexplained"),
        ] {
            spoils(&home, &library, what, trusted, status, false);
        }
    }
}

#[test]
fn a_spoiled_plugin_is_made_anew_by_a_cold_thread_and_shots_meanwhile_have_its_code() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    for (what, status) in [
        ("panic", "plugin_panicked"),
        ("poisoned", "plugin_poisoned"),
        ("long", "plugin_past_room"),
        ("longest", "plugin_past_room"),
        ("write past", "plugin_past_room"),
    ] {
        spoils(&home, &library, what, true, status, true);
    }
    spoils(&home, &library, "write past", false, "plugin_past_room", true);
}

#[test]
fn a_hang_or_crash_in_a_process_of_its_own_is_an_error_code_and_a_restart() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    spoils(&home, &library, "hang", false, "plugin_late", true);
    spoils(&home, &library, "crash", false, "plugin_gone", true);
    spoils(&home, &library, "exit", false, "plugin_gone", true);
}

/// As `pinwheel collect` uses it, which has time.
#[test]
fn a_thread_that_may_wait_for_another_process_of_a_plugin_loses_the_shot_of_the_crash_alone() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let mut matcher = model_of(plugin(&library, "crash", false), &twelve()).unwrap().matcher();
    for _ in 0..3 {
        matcher.wait().unwrap();
        let mut observables = [0];
        assert!(matcher.decode(&[6], &mut observables).is_ok() && observables == [6]);
        let lost = matcher.decode(&[1], &mut observables).unwrap_err();
        assert_eq!(lost, DecodeError::Plugin(PluginFault::Gone));
    }
}

#[test]
fn a_plugin_is_taken_live_a_refused_one_leaves_the_decoder_before_and_its_process_ends_with_it() {
    let home = beside_another();
    let library = compiled(&home, "plugins/single_mechanisms.c", &[]);
    let mut profile = one_worker(Decoder::Matching);
    profile.input.rate = Rate::Hz(2_000.0);
    // A plugin named in a command has half of it for a shot, however busy the machine is.
    profile.limits.heartbeat_ms = 10_000;
    let input = Input::Sampler { model: twelve(), name: "twelve".into(), seed: 1 };
    let engine = Engine::start(config(&profile, input, None)).unwrap();
    let ask = |decoder: &Decoder| {
        execute(&engine, Command::Decoder { decoder: decoder.text(), stream: None })
            .map_err(|refused| refused.to_string())
    };
    let said = ask(&plugin(&home.file("none.so"), "", true)).err().unwrap();
    assert!(said.contains("cannot be read"), "{said}");
    assert_eq!(engine.snapshot().engine.decoder, "sparse-blossom");
    for (epoch, trusted) in [(2, true), (3, false)] {
        ask(&plugin(&library, "", trusted)).unwrap();
        let shots = |now: &Snapshot| now.streams[0].decoders.iter().map(|row| row.shots).sum::<u64>();
        let now = until(&engine, "the plugin", |now| now.silos[0].graph.workers[0].decoder_epoch == epoch);
        let before = shots(&now);
        until(&engine, "its answers", |now| shots(now) > before + 100);
    }
    // Of this test: they have loaded its library. The name in brackets has no space here.
    let is_a_child = |stat: &str| stat.split_whitespace().nth(3) == Some(&process::id().to_string());
    let children = || {
        let read = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        let own = all.filter(|path| is_a_child(&read(path, "stat")));
        own.filter(|path| read(path, "maps").contains(library.to_str().unwrap())).count()
    };
    assert!(children() > 0);
    ask(&Decoder::Matching).unwrap();
    until(&engine, "the end of its process", |_| children() == 0);
    execute(&engine, Command::Drain).unwrap();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    assert_eq!(outcome.snapshot.silos[0].errors.len(), 0, "{:?}", outcome.snapshot.silos[0].errors);
}

#[test]
fn a_plugin_that_loads_slowly_keeps_no_other_client_of_the_control_socket_waiting() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let fifo = home.file("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let run = home.file("run");
    std::fs::create_dir(&run).unwrap();
    let input = Input::Sampler { model: twelve(), name: "twelve".into(), seed: 1 };
    let started = Config { run_dir: Some(run), ..config(&one_worker(Decoder::Matching), input, None) };
    let engine = Engine::start(started).unwrap();
    until(&engine, "Live", |now| now.engine.phase == Phase::Live);
    let slow = one_worker(plugin(&library, &format!("wait {}", fifo.display()), false));
    let mut waits = Client::of(&engine);
    waits.send(Command::profile("slow", &slow, None).unwrap());
    let mut other = Client::of(&engine);
    assert!(matches!(other.done(Command::Status), Done::Status(status) if status.profile == "test"));
    assert!(matches!(other.done(Command::Pause), Done::Feed { held: true, .. }));
    // Its process has begun to wait, and now loads.
    let mut writer = None;
    until(&engine, "the plugin", |_| {
        writer = rustix::fs::open(&fifo, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).ok();
        writer.is_some()
    });
    assert!(matches!(waits.hear(), Outcome::Done(Done::Profile { decoders, .. }) if decoders.len() == 1));
    assert!(matches!(other.done(Command::Status), Done::Status(status) if status.profile == "slow"));
    other.done(Command::Stop);
    end(engine);
}

#[test]
fn a_limited_switch_that_ends_waits_for_a_plugin_and_the_engine_does_not() {
    let home = beside_another();
    let library = compiled(&home, "tests/plugins/misbehaving.c", &[]);
    let (gate, other) = (home.file("gate"), home.file("other.dem"));
    std::fs::write(&gate, "").unwrap();
    std::fs::write(&other, (0..BITS).map(|bit| format!("error(0.2) D{bit} L{bit}\n")).collect::<String>()).unwrap();
    let mut slow = one_worker(plugin(&library, &format!("wait {}", gate.display()), false));
    slow.input.rate = Rate::Hz(2_000.0);
    let input = Input::Sampler { model: twelve(), name: "twelve".into(), seed: 1 };
    let engine = Engine::start(config(&slow, input, None)).unwrap();
    until(&engine, "the plugin", |now| now.streams[0].decoders.iter().any(|row| row.shots > 100));
    let lend = |for_s| {
        let quick = Profile { decoder: Decoder::Matching, ..slow.clone() };
        execute(&engine, Command::profile("lent", &quick, Some(Duration::from_secs(for_s))).unwrap()).unwrap();
    };
    lend(600);
    // By another model the plugin of the start has to load anew, which it does once the gate is
    // opened.
    std::fs::remove_file(&gate).unwrap();
    mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    execute(&engine, Command::Model { file: Some(other.display().to_string()), stream: None }).unwrap();
    lend(1);
    let mut opened = None;
    until(&engine, "the plugin's load", |_| {
        execute(&engine, Command::Pause).unwrap();
        opened = rustix::fs::open(&gate, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).ok();
        opened.is_some()
    });
    let back = until(&engine, "the profile of the start", |now| now.engine.profile == "test");
    assert!(back.control.revert.is_none() && back.engine.decoder.starts_with("plugin"), "{}", back.engine.decoder);
    assert_eq!(engine.profile().decoder, slow.decoder);
    execute(&engine, Command::Stop).unwrap();
    end(engine);
}

/// Prints the time of a call, in process and out of it, beside an empty loop.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_call() {
    let home = beside_another();
    let library = compiled(&home, "plugins/single_mechanisms.c", &["-O2"]);
    let (model, mut found) = (twelve(), [0]);
    let mut least = |count: u32, call: &mut dyn FnMut(u64, &mut [u64])| {
        let lap = |_| {
            let from = std::time::Instant::now();
            for index in 0..count {
                call(std::hint::black_box(u64::from(index % 16) << 4), &mut found);
            }
            from.elapsed().as_secs_f64() * 1e9 / f64::from(count)
        };
        (0..40).map(lap).fold(f64::INFINITY, f64::min)
    };
    let empty = least(10_000, &mut |shot, found| found[0] = std::hint::black_box(shot));
    eprintln!("BENCH name=plugins/empty_loop unit=ns/op ours={empty:.1}");
    for (name, decoder) in [
        ("matching", Decoder::Matching),
        ("in_process", plugin(&library, "", true)),
        ("in_its_own_process", plugin(&library, "", false)),
    ] {
        let prepared = model_of(decoder, &model).unwrap();
        let mut matcher = prepared.matcher();
        let ns = least(10_000, &mut |shot, found| assert!(matcher.decode(&[shot], found).is_ok()));
        eprintln!("BENCH name=plugins/{name} unit=ns/op ours={ns:.1}");
        assert!(ns < 1e6, "{name}: {ns} ns");
    }
}
