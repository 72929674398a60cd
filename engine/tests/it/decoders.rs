//! Decoders by stream, and other decoders while shots are decoded: nothing is lost, and each answer
//! is the one that the decoder it names gives by itself.

use crate::faults::drill;
use crate::rig::{
    LIMIT, assert_nothing_lost, beside_another, config, end, errors, execute, profile, run, sampler, shots, sink,
    switch, total, until,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::board::snapshot::{DecoderShots, Snapshot};
use pinwheel_engine::code::{Model, ShotSet};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::{Command, EndedBy, Engine, Input, Outcome, SiloCommand};
use pinwheel_engine::profile::{
    Deadlines, Decoder, DecoderKind, Decoders, FreeWorker, Predecoder, Profile, Rate, Rescue, ShotOrder, Silos,
    StreamDeadline, StreamDecoder, Window, WindowRounds,
};
use pinwheel_engine::roles::SiloState;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Answers of each decoder to each shot.
type Answers = [Vec<Vec<u64>>; Decoder::BUILT_IN.len()];

/// A set of shots, and what each decoder by itself answers to each of them.
struct Known {
    model: Arc<Model>,
    shots: Arc<ShotSet>,
    /// By the hash of the model.
    by: BTreeMap<String, Answers>,
}

fn data(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("code/src/code/data");
    std::fs::read(directory.join(format!("surf_z_d3_r3_p0.005.{name}"))).unwrap()
}

/// The model of the set with every third mechanism likelier than it was.
fn drifted() -> String {
    let text = String::from_utf8(data("dem")).unwrap();
    let line = |(at, line): (usize, &str)| match line.strip_prefix("error(") {
        Some(rest) if at % 3 == 0 => format!("error(0.2){}\n", &rest[rest.find(')').unwrap() + 1..]),
        _ => format!("{line}\n"),
    };
    text.lines().enumerate().map(line).collect()
}

impl Known {
    fn new() -> Known {
        let model = Arc::new(Model::parse(&data("dem")).unwrap());
        let shots = shots(&data("dets.b8"), model.detectors);
        let mut known = Known { model: Arc::clone(&model), shots, by: BTreeMap::new() };
        let answers = known.learn(&model);
        let [matching, .., union_find, _] = answers;
        assert_ne!(matching, union_find, "the set tells the two apart");
        known
    }

    /// Adds what each decoder answers by `model`.
    fn learn(&mut self, model: &Model) -> &Answers {
        let by = Decoder::BUILT_IN.map(|decoder| {
            let prepared = MatcherModel::of(model, decoder, Predecoder::None, Window::None).unwrap();
            let mut matcher = prepared.matcher();
            let decode = |shot: &[u64]| {
                let mut found = vec![0; model.observable_words()];
                matcher.decode(shot, &mut found).unwrap();
                found
            };
            self.shots.iter().map(decode).collect()
        });
        self.by.entry(format!("{:016x}", model.hash())).or_insert(by)
    }

    /// The shots over and over, `count` in all.
    fn input(&self, count: u64) -> Input {
        self.input_while(move |number| number < count)
    }

    /// The shots over and over, each while `comes` of its number.
    fn input_while(&self, comes: impl Fn(u64) -> bool + Send + 'static) -> Input {
        let (shots, mut next) = (Arc::clone(&self.shots), 0);
        let reader = move |words: &mut [u64]| {
            words.copy_from_slice(shots.shot((next % shots.len() as u64) as usize));
            next += 1;
            Ok(comes(next - 1))
        };
        Input::Stream { model: Arc::clone(&self.model), name: "known".into(), reader: Box::new(reader) }
    }

    /// Compares each answer in `path` with what its decoder answers by its model; returns how many
    /// each decoder gave in each stream, and how many each model gave.
    fn check(&self, path: &Path, streams: u64) -> (BTreeMap<(u64, String), u64>, BTreeMap<String, u64>) {
        let (mut counts, mut models) = (BTreeMap::new(), BTreeMap::new());
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let answer: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| answer[name].as_u64().unwrap();
            if answer["status"] != "ok" && answer["status"] != "rescued" {
                assert!(answer.get("decoder").is_none() && answer.get("model").is_none(), "{line}");
                continue;
            }
            let (name, hash) = (answer["decoder"].as_str().unwrap(), answer["model"].as_str().unwrap());
            let decoder = DecoderKind::from_name(name).unwrap();
            let index = (number("seq") * streams + number("stream")) % self.shots.len() as u64;
            let mut found = vec![0; self.model.observable_words()];
            for bit in answer["observables"].as_array().unwrap() {
                let bit = bit.as_u64().unwrap();
                found[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            assert_eq!(found, self.by[hash][decoder as usize][index as usize], "{line}");
            *counts.entry((number("stream"), name.to_owned())).or_default() += 1;
            *models.entry(hash.to_owned()).or_default() += 1;
        }
        (counts, models)
    }
}

/// Whether each decode worker decodes by what was asked for last.
pub(crate) fn acknowledged(now: &Snapshot) -> bool {
    let workers = now.silos.iter().flat_map(|silo| &silo.graph.workers);
    workers.into_iter().all(|worker| worker.decoder_epoch == now.engine.decoder_epoch_requested)
}

fn ask(engine: &Engine, decoder: Decoder, stream: Option<u32>) -> Result<(), String> {
    let command = Command::Decoder { decoder: decoder.text(), stream };
    execute(engine, command).map(drop).map_err(|refused| refused.to_string())
}

/// The board counts by stream and decoder what the answers say.
fn assert_counted(outcome: &Outcome, counts: &BTreeMap<(u64, String), u64>) {
    let streams = &outcome.snapshot.streams;
    let rows = streams.iter().flat_map(|stream| stream.decoders.iter().map(move |row| (stream.id, row)));
    let shown: BTreeMap<(u64, String), u64> =
        rows.map(|(stream, row)| ((u64::from(stream), row.decoder.name().to_owned()), row.shots)).collect();
    assert_eq!(&shown, counts);
    let all = DecoderShots::sum(streams.iter().flat_map(|stream| &stream.decoders));
    let good = total(&outcome.snapshot, |c| c.answered) - total(&outcome.snapshot, |c| c.errored);
    assert_eq!(all.iter().map(|row| row.shots).sum::<u64>(), good);
}

fn pause_ns(now: &Snapshot) -> u64 {
    let workers = now.silos.iter().flat_map(|silo| &silo.graph.workers);
    workers.map(|worker| worker.decoder_change_ns).max().unwrap_or(0)
}

/// What is changed every 10 ms.
#[derive(Clone, Copy, PartialEq)]
enum Changed {
    Decoders,
    Models,
}

/// The command of the `number`-th change.
fn command(what: Changed, number: usize, drifted: &Path) -> Command {
    let stream = [None, Some(1), None, Some(3), Some(0)][number % 5];
    let file = Some(drifted.display().to_string());
    match what {
        Changed::Decoders => {
            Command::Decoder { decoder: Decoder::BUILT_IN[number % Decoder::BUILT_IN.len()].text(), stream }
        }
        // The first change is of the model; what it replaced comes back by each second one.
        Changed::Models if number % 2 == 1 => Command::Model { file: None, stream: None },
        Changed::Models => Command::Model { file, stream },
    }
}

/// Changes before which the feed is held.
const HELD_CHANGES: u64 = 3;
/// Changes beside shots, at least.
const LIVE_CHANGES: u64 = 10;

/// Runs `count` shots of `profile` while a decoder or the model is changed every 10 ms, for all
/// streams and for one in turn; more shots where a busy machine has made less than [`LIVE_CHANGES`]
/// beside them. Returns the changes and the longest pause seen.
fn changed_every_10_ms(profile: &Profile, what: Changed, count: u64) -> (u64, u64) {
    let (home, mut known) = (beside_another(), Known::new());
    let (path, other) = (home.file("answers.jsonl"), home.file("drifted.dem"));
    std::fs::write(&other, drifted()).unwrap();
    let first = known.by.values().next().unwrap().clone();
    assert_ne!(&first, known.learn(&Model::parse(drifted().as_bytes()).unwrap()), "the set tells the two apart");
    // Relaxed: each change counts by itself.
    let live = Arc::new(AtomicU64::new(0));
    let has_enough = Arc::clone(&live);
    let input = known.input_while(move |number| number < count || has_enough.load(Ordering::Relaxed) < LIVE_CHANGES);
    let mut config = config(profile, input, None);
    config.sink = Some(sink(profile, known.model.observables, None, Some(&path)));
    let engine = Engine::start(config).unwrap();
    let (mut changes, mut pause) = (0, 0);
    let from = Instant::now();
    // However long a change takes beside the run, shots are decoded before and after each of the first ones.
    for _ in 0..HELD_CHANGES {
        execute(&engine, Command::Pause).unwrap();
        execute(&engine, command(what, changes as usize, &other)).unwrap();
        let answered = until(&engine, "the change", acknowledged);
        execute(&engine, Command::Resume).unwrap();
        let before = total(&answered, |c| c.answered);
        until(&engine, "shots after the change", |now| total(now, |c| c.answered) >= before + 100);
        changes += 1;
    }
    while !engine.is_finished() {
        match execute(&engine, command(what, changes as usize, &other)) {
            Ok(_) => {
                changes += 1;
                live.fetch_add(1, Ordering::Relaxed);
            }
            // It drains.
            Err(refused) => assert!(refused.to_string().contains("needs WARMUP or LIVE"), "{refused}"),
        }
        std::thread::park_timeout(Duration::from_millis(10));
        pause = pause.max(pause_ns(&engine.snapshot()));
        assert!(from.elapsed() < LIMIT, "the input never ended");
    }
    let outcome = end(engine);
    assert_eq!((outcome.ended_by, outcome.sink.as_ref()), (EndedBy::Input, Some(&Ok(()))));
    assert_nothing_lost(&outcome);
    assert!(total(&outcome.snapshot, |c| c.submitted) >= count && live.load(Ordering::Relaxed) >= LIVE_CHANGES);
    if total(&outcome.snapshot, |c| c.errored) == 0 {
        assert_eq!(total(&outcome.snapshot, |c| c.out_of_order), 0, "only an error may overtake");
    }
    assert!(acknowledged(&outcome.snapshot), "{:?}", outcome.snapshot.silos[0].graph.workers);
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
    let (counts, models) = known.check(&path, u64::from(profile.input.streams));
    assert_counted(&outcome, &counts);
    match what {
        Changed::Decoders => assert!(counts.len() > profile.input.streams as usize, "{counts:?}"),
        Changed::Models => assert_eq!(models.len(), 2, "{models:?}"),
    }
    eprintln!(
        "{count} shots, {changes} changes, {} ms, longest pause {pause} ns, {} errors, {counts:?}, {models:?}",
        outcome.elapsed_live_ns / 1_000_000,
        total(&outcome.snapshot, |c| c.errored)
    );
    (changes, pause)
}

/// The faults of the drill without a predecoder, so that the decoder alone decides.
fn faulty(free_worker: FreeWorker) -> Profile {
    let mut drill = drill(free_worker);
    (drill.predecoder, drill.input.streams, drill.decoders) = (Predecoder::None, 4, Decoders::Count(2));
    drill.limits.shot_deadline_us = 100_000;
    drill
}

#[test]
fn a_decoder_changed_every_10_ms_loses_nothing_and_each_answer_is_that_of_its_decoder() {
    let mut quick = profile();
    (quick.input.streams, quick.input.rate) = (4, Rate::Hz(20_000.0));
    changed_every_10_ms(&quick, Changed::Decoders, 20_000);
}

#[test]
fn a_decoder_changed_every_10_ms_loses_nothing_under_all_faults() {
    let mut paced = faulty(FreeWorker::AfterCopy);
    paced.input.rate = Rate::Hz(20_000.0);
    changed_every_10_ms(&paced, Changed::Decoders, 20_000);
}

#[test]
fn a_decoder_changed_every_10_ms_loses_nothing_with_deadlines_and_a_rescue_decoder() {
    let mut hasty = profile();
    (hasty.input.streams, hasty.input.rate) = (4, Rate::Hz(20_000.0));
    hasty.deadlines = Deadlines {
        order: ShotOrder::Deadline,
        rescue: Some(Rescue::UnionFind),
        answer_us: None,
        streams: vec![StreamDeadline { stream: 2, answer_us: 30 }],
    };
    changed_every_10_ms(&hasty, Changed::Decoders, 20_000);
}

#[test]
fn shots_are_rescued_refused_and_answered_as_their_deadlines_ask() {
    let (home, known) = (beside_another(), Known::new());
    let path = home.file("answers.jsonl");
    let mut profile = profile();
    (profile.input.streams, profile.decoder) = (8, Decoder::Correlated);
    // However fast the machine decodes, one of these is too near for the own decoder and not for
    // the rescue decoder.
    let answer_us = [1, 25, 50, 100, 200, 400, 2_000];
    let streams = answer_us.into_iter().zip(1..).map(|(answer_us, stream)| StreamDeadline { stream, answer_us });
    profile.deadlines = Deadlines {
        order: ShotOrder::Deadline,
        rescue: Some(Rescue::UnionFind),
        answer_us: None,
        streams: streams.collect(),
    };
    let mut config = config(&profile, known.input(20_000), None);
    config.sink = Some(sink(&profile, known.model.observables, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    let (counts, _) = known.check(&path, 8);
    assert_counted(&outcome, &counts);
    let text = std::fs::read_to_string(&path).unwrap();
    let count = |status: &str| text.matches(&format!("\"status\":\"{status}\"")).count() as u64;
    let streams = &outcome.snapshot.streams;
    let [patient, hasty, ..] = &streams[..] else { panic!("eight streams") };
    assert!(patient.refused == 0 && patient.missed == 0, "{patient:?}");
    assert!(hasty.refused > 2_000 && hasty.missed >= hasty.refused, "{hasty:?}");
    let rescued: u64 = streams.iter().map(|stream| stream.rescued).sum();
    let refused: u64 = streams.iter().map(|stream| stream.refused).sum();
    assert!(rescued > hasty.rescued, "{streams:?}");
    assert_eq!(count("rescued"), rescued);
    assert_eq!(count("deadline_too_near"), refused);
    assert_eq!(errors(&outcome.snapshot, ErrorCode::DeadlineTooNear), refused);
    assert!(outcome.snapshot.silos[0].graph.workers.iter().all(|worker| worker.expected_ns > 0));
    for thread in &outcome.snapshot.threads {
        assert_eq!(thread.memory.allocations, Some(0), "{}: {:?}", thread.name, thread.memory.first_site);
    }
}

#[test]
#[ignore = "a million shots, a minute on two cores"]
fn a_decoder_changed_every_10_ms_loses_nothing_in_a_million_shots_with_faults() {
    let (changes, _) = changed_every_10_ms(&faulty(FreeWorker::AfterDecode), Changed::Decoders, 1_000_000);
    assert!(changes >= 100, "{changes}");
}

#[test]
fn a_model_changed_and_taken_back_every_10_ms_loses_nothing_and_each_answer_is_that_of_its_model() {
    let mut quick = profile();
    (quick.input.streams, quick.input.rate) = (4, Rate::Hz(20_000.0));
    changed_every_10_ms(&quick, Changed::Models, 20_000);
}

#[test]
fn a_model_changed_and_taken_back_every_10_ms_loses_nothing_under_all_faults() {
    let mut paced = faulty(FreeWorker::AfterCopy);
    paced.input.rate = Rate::Hz(20_000.0);
    changed_every_10_ms(&paced, Changed::Models, 20_000);
}

#[test]
#[ignore = "a million shots, half a minute on two cores"]
fn a_model_changed_and_taken_back_every_10_ms_loses_nothing_in_a_million_shots_with_faults() {
    let (changes, _) = changed_every_10_ms(&faulty(FreeWorker::AfterDecode), Changed::Models, 1_000_000);
    assert!(changes >= 100, "{changes}");
}

#[test]
fn streams_of_a_profile_have_decoders_of_their_own_in_every_silo() {
    let (home, known) = (beside_another(), Known::new());
    let path = home.file("answers.jsonl");
    let mut profile = profile();
    (profile.silos, profile.input.streams) = (Silos::Count(2), 5);
    profile.streams = [(3, Decoder::UnionFind), (0, Decoder::Lookup), (4, Decoder::UnionFind)]
        .map(|(stream, decoder)| StreamDecoder { stream, decoder })
        .to_vec();
    let mut config = config(&profile, known.input(5_000), None);
    config.sink = Some(sink(&profile, known.model.observables, None, Some(&path)));
    let outcome = run(config);
    assert_nothing_lost(&outcome);
    let (counts, _) = known.check(&path, 5);
    assert_counted(&outcome, &counts);
    let expected = [(0, "lookup"), (1, "matching"), (2, "matching"), (3, "union-find"), (4, "union-find")];
    assert_eq!(counts, expected.into_iter().map(|(stream, name)| ((stream, name.to_owned()), 1_000)).collect());
    let name = &outcome.snapshot.engine.decoder;
    assert_eq!(name, "sparse-blossom, lookup for 1 of 5 streams, union-find for 2 of 5 streams");
}

#[test]
fn a_profile_switch_changes_the_decoders_and_a_limited_one_gives_them_back() {
    let _home = beside_another();
    let mut first = profile();
    first.input.rate = Rate::Hz(2_000.0);
    let engine = Engine::start(config(&first, sampler(), None)).unwrap();
    until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    let mut next = first.clone();
    next.decoder = Decoder::UnionFind;
    next.streams = vec![StreamDecoder { stream: 2, decoder: Decoder::Lookup }];
    switch(&engine, "other", &next);
    let now = until(&engine, "acknowledgements", acknowledged);
    assert_eq!((now.engine.decoder_epoch_requested, now.engine.profile.as_str()), (2, "other"));
    assert_eq!(now.engine.decoder, "union-find, lookup for 1 of 4 streams");
    assert_eq!((engine.profile().decoder.clone(), &engine.profile().streams), (Decoder::UnionFind, &next.streams));
    let lent = Command::profile("lent", &Profile { decoder: Decoder::Correlated, ..first.clone() }, LENT).unwrap();
    execute(&engine, lent).unwrap();
    assert_eq!(engine.snapshot().engine.decoder, "correlated sparse-blossom");
    let back = until(&engine, "the profile before", |now| now.engine.profile == "other" && acknowledged(now));
    assert_eq!(
        (back.engine.decoder_epoch_requested, back.engine.decoder.as_str()),
        (4, "union-find, lookup for 1 of 4 streams")
    );
    // The spin policy alone changes no decoder.
    let gentle = Profile { spin: pinwheel_engine::profile::SpinPolicy::Lab, ..next };
    switch(&engine, "gentle", &gentle);
    assert_eq!(engine.snapshot().engine.decoder_epoch_requested, 4);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_decoder_that_is_also_that_of_the_rescues_leaves_a_profile_that_a_start_takes() {
    let _home = beside_another();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(2_000.0);
    (profile.deadlines.order, profile.deadlines.rescue) = (ShotOrder::Deadline, Some(Rescue::UnionFind));
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    ask(&engine, Decoder::UnionFind, None).unwrap();
    let now = engine.profile();
    assert_eq!((now.decoder.clone(), now.validate()), (Decoder::UnionFind, Vec::new()));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
    let outcome = run(config(&now, sampler(), Some(100)));
    let notes = &outcome.snapshot.engine.notes;
    assert!(notes.iter().any(|note| note.starts_with("without effect: deadlines.rescue")), "{notes:?}");
}

/// Two operators change the decoders of a stream each, at the same time.
#[test]
fn a_change_of_one_stream_never_takes_back_that_of_another() {
    let _home = beside_another();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(500.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let decoder_of = |stream: u32| {
        let streams = engine.profile().streams.clone();
        streams.into_iter().find(|named| named.stream == stream).map(|named| named.decoder)
    };
    std::thread::scope(|scope| {
        for stream in 0..2 {
            let (engine, decoder_of) = (&engine, &decoder_of);
            scope.spawn(move || {
                for change in 0..2_000 {
                    let decoder = [Decoder::UnionFind, Decoder::Matching][change % 2].clone();
                    if ask(engine, decoder.clone(), Some(stream)).is_ok() {
                        assert_eq!(decoder_of(stream), Some(decoder), "change {change} of stream {stream}");
                    }
                }
            });
        }
    });
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

const LENT: Option<Duration> = Some(Duration::from_secs(1));

#[test]
fn a_decoder_that_cannot_be_used_is_refused_and_the_one_before_stays() {
    let _home = beside_another();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(2_000.0);
    let large = Arc::new(pinwheel_engine::code::bundled_named("surface_d5").unwrap());
    let input = Input::Sampler { model: large, name: "surface_d5".into(), seed: 3 };
    let engine = Engine::start(config(&profile, input, None)).unwrap();
    until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    let refused = |decoder: &str, stream: Option<u32>, why: &str| {
        let command = Command::Decoder { decoder: decoder.to_owned(), stream };
        let said = execute(&engine, command).map(drop).map_err(|refused| refused.to_string());
        assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{said:?}");
    };
    refused("lookup", None, "a look-up table of this model takes 2^");
    refused("lookup", Some(1), "choose another decoder");
    refused("union-find", Some(4), "there is no stream 4; name one from 0 to 3");
    refused(
        "guess",
        None,
        "there is no decoder \"guess\"; name matching, correlated, union-find, lookup or plugin:PATH",
    );
    let other = Profile { decoder: Decoder::Lookup, ..profile.clone() };
    let said = execute(&engine, Command::profile("other", &other, None).unwrap()).map(drop);
    assert!(said.is_err_and(|refused| refused.to_string().contains("a look-up table")));
    let now = engine.snapshot();
    assert_eq!((now.engine.decoder_epoch_requested, now.engine.decoder.as_str()), (1, "sparse-blossom"));
    assert_eq!((now.engine.profile.as_str(), engine.profile().decoder.clone()), ("test", Decoder::Matching));
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let all = DecoderShots::sum(outcome.snapshot.streams.iter().flat_map(|stream| &stream.decoders));
    assert_eq!(all.iter().map(|row| row.decoder).collect::<Vec<_>>(), [DecoderKind::Matching]);
}

#[test]
fn windows_keep_their_decoder() {
    let _home = beside_another();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(500.0);
    profile.window = Window::Some(WindowRounds { commit_rounds: 2, buffer_rounds: 2 });
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    let said = ask(&engine, Decoder::UnionFind, None);
    assert!(said.is_err_and(|said| said.contains("by windows, which keep their decoder")));
    // A profile of whole shots brings its spin policy all the same; its decoder comes at a restart.
    let (other, _) = Profile::load("shared", None).unwrap();
    switch(&engine, "shared", &Profile { decoder: Decoder::Correlated, ..other });
    assert_eq!(
        (engine.snapshot().engine.decoder_epoch_requested, engine.profile().decoder.clone()),
        (1, Decoder::Matching)
    );
    engine.request_drain();
    let outcome = end(engine);
    assert_nothing_lost(&outcome);
    let all = DecoderShots::sum(outcome.snapshot.streams.iter().flat_map(|stream| &stream.decoders));
    assert_eq!(
        all.iter().map(|row| row.decoder).collect::<Vec<_>>(),
        [DecoderKind::Matching],
        "windows name theirs, too"
    );
}

#[test]
fn a_silo_that_is_rebuilt_decodes_by_what_is_in_force() {
    let _home = beside_another();
    let mut profile = profile();
    (profile.silos, profile.input.rate) = (Silos::Count(2), Rate::Hz(2_000.0));
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
    let silo = |command| execute(&engine, Command::Silo { silo: 1, command }).map(drop).unwrap();
    silo(SiloCommand::Kill);
    until(&engine, "the death", |now| now.silos[1].lifecycle.state == SiloState::Dead);
    ask(&engine, Decoder::UnionFind, None).unwrap();
    silo(SiloCommand::Rejoin);
    let now = until(&engine, "the rejoin", |now| now.silos[1].lifecycle.state == SiloState::Live && acknowledged(now));
    assert_eq!(now.engine.decoder, "union-find");
    ask(&engine, Decoder::Correlated, None).unwrap();
    until(&engine, "acknowledgements", acknowledged);
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_model_that_cannot_be_used_is_refused_and_the_one_before_stays() {
    let home = beside_another();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(2_000.0);
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let before = until(&engine, "an answer", |now| total(now, |c| c.answered) > 0).engine;
    let refused = |file: Option<&Path>, stream: Option<u32>, why: &str| {
        let command = Command::Model { file: file.map(|file| file.display().to_string()), stream };
        let said = execute(&engine, command).map(drop).map_err(|refused| refused.to_string());
        assert!(said.as_ref().is_err_and(|said| said.contains(why) && !said.contains('\n')), "{said:?}");
    };
    let written = |name: &str, text: &str| {
        let path = home.file(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let widths = format!("detector D{}\nlogical_observable L0\n", before.detectors - 1);
    refused(None, None, "no change of the model to take back");
    refused(Some(&home.file("missing.dem")), None, "cannot be read");
    refused(Some(&written("text.dem", "errr(0.1) D0\n")), None, "text.dem, line 1, column 1: found");
    refused(
        Some(Path::new("surface_d5")),
        None,
        "detectors 120 instead of 24, observables 1 instead of 1; name a model",
    );
    let triple = written("triple.dem", &format!("error(0.1) D0 D1 D2\n{widths}"));
    refused(Some(&triple), None, "with a part of 3 detectors, expected at most 2");
    refused(Some(Path::new("surface_d3")), Some(4), "there is no stream 4; name one from 0 to 3");
    let now = engine.snapshot().engine;
    assert_eq!((now.decoder_epoch_requested, now.model_hash, &now.model), (1, before.model_hash, &before.model));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn a_predecoder_and_windows_keep_the_model_of_the_start() {
    let _home = beside_another();
    let window = Window::Some(WindowRounds { commit_rounds: 2, buffer_rounds: 2 });
    for (predecoder, window, why) in
        [(Predecoder::Local, Window::None, "predecodes its shots"), (Predecoder::None, window, "by windows")]
    {
        let mut profile = profile();
        (profile.predecoder, profile.window, profile.input.rate) = (predecoder, window, Rate::Hz(500.0));
        let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
        until(&engine, "an answer", |now| total(now, |c| c.answered) > 0);
        let refused = execute(&engine, Command::Model { file: Some("surface_d3".to_owned()), stream: None });
        assert!(refused.is_err_and(|refused| refused.to_string().contains(why)));
        engine.request_drain();
        assert_nothing_lost(&end(engine));
    }
}

#[test]
fn the_board_names_the_models_in_force() {
    let home = beside_another();
    let other = home.file("drifted.dem");
    std::fs::write(&other, drifted()).unwrap();
    let hash = Model::parse(drifted().as_bytes()).unwrap().hash();
    let mut profile = profile();
    profile.input.rate = Rate::Hz(2_000.0);
    let engine = Engine::start(config(&profile, Known::new().input(100_000), None)).unwrap();
    let first = until(&engine, "an answer", |now| total(now, |c| c.answered) > 0).engine;
    let change = |file: Option<&Path>, stream| {
        let file = file.map(|file| file.display().to_string());
        execute(&engine, Command::Model { file, stream }).unwrap();
        until(&engine, "acknowledgements", acknowledged)
    };
    let hashes = |now: &Snapshot| now.streams.iter().map(|stream| stream.model_hash).collect::<Vec<_>>();
    let one = change(Some(&other), Some(2));
    assert_eq!(one.engine.model, format!("{}, {} for stream 2", first.model, other.display()));
    assert_eq!(hashes(&one), [first.model_hash, first.model_hash, hash, first.model_hash]);
    let all = change(Some(&other), None);
    assert_eq!((&all.engine.model, all.engine.model_hash), (&other.display().to_string(), hash));
    assert_eq!(hashes(&all), [hash; 4]);
    assert_eq!(hashes(&change(None, None)), hashes(&one), "the last change is taken back");
    // Another decoder keeps the models.
    ask(&engine, Decoder::UnionFind, None).unwrap();
    assert_eq!(hashes(&until(&engine, "acknowledgements", acknowledged)), hashes(&one));
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}
