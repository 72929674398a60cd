//! What the loader promises: the four profiles load, and whatever is wrong is said with its place.
#![allow(clippy::unwrap_used, reason = "harness")]

use crate::roles::TaskKernel;
use std::path::Path;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{
    AlarmAction, Applies, Deadlines, Decoder, DecoderKind, Device, ENTRIES_MAX, FILE_BYTES_MAX, Finding, Latency,
    Origin, OverflowStrategy, Priority, Profile, ProfileError, Rate, ReadyPolicy, Rescue, RuleId, Severity, ShotOrder,
    Silos, SpinPolicy, StreamDeadline, StreamDecoder, TakesPart, TaskTrace, Window, WindowRounds, applies, list, names,
    text,
};

const NAMES: [&str; 4] = ["prod", "lab", "shared", "drill"];

/// The lab profile with all its fields.
fn lab() -> String {
    Profile::load("lab", None).unwrap().0.to_full_text().unwrap()
}

/// The findings for the lab profile with one piece of its text replaced.
fn findings_with(piece: &str, replacement: &str) -> Vec<Finding> {
    let text = lab();
    assert!(text.contains(piece), "the lab profile no longer has {piece:?}");
    let error = Profile::parse(&text.replacen(piece, replacement, 1), "lab.ron").unwrap_err();
    error.findings().to_vec()
}

fn position_of(piece: &str) -> (u32, u32) {
    let text = lab();
    let before = &text[..text.find(piece).unwrap()];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (u32::try_from(line).unwrap(), u32::try_from(column).unwrap())
}

#[test]
fn the_embedded_profiles_are_sound() {
    for name in NAMES {
        let (profile, origin) = Profile::load(name, None).unwrap();
        assert_eq!(origin, Origin::Embedded(name));
        assert_eq!(profile.validate(), []);
        assert!(text(name, None).unwrap().0.lines().count() <= 25, "{name}");
    }
    assert_eq!(Profile::base().validate(), []);
}

#[test]
fn a_profile_survives_being_written_and_read() {
    for name in NAMES {
        let (profile, _) = Profile::load(name, None).unwrap();
        assert_eq!(Profile::parse(&profile.to_ron().unwrap(), name).unwrap(), profile);
        let full = profile.to_full_text().unwrap();
        assert_eq!(Profile::parse(&full, name).unwrap(), profile);
        // All fields, so that no base shows through, and the comments.
        assert_eq!(ron::from_str::<Profile>(&full).unwrap(), profile);
        assert_eq!(full.matches("//").count(), Profile::base().to_full_text().unwrap().matches("//").count());
    }
}

#[test]
fn a_profile_of_any_values_is_written_with_all_its_fields() {
    let (mut profile, _) = Profile::load("drill", None).unwrap();
    profile.summary = "a \"quoted\" // (text \\ r#None".to_owned();
    let summary = r##"a \"quoted\" // (text \\ r#None"##.to_owned();
    profile.alarms = RuleId::ALL.iter().map(|id| id.bundled()).collect();
    profile.threads = super::Threads::Explicit(vec![super::ThreadSpec {
        name: "hot-0".to_owned(),
        roles: vec![crate::roles::RoleKind::Feed],
        silo: 0,
        core: Some(2),
    }]);
    profile.graph.trace = TaskTrace::Cycles { kernels: vec![TaskKernel::Joint], streams: vec![] };
    profile.window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 7 });
    let (full, short) = (profile.to_full_text().unwrap(), profile.to_ron().unwrap());
    assert_eq!(ron::from_str::<Profile>(&full).unwrap(), profile, "{full}");
    assert_eq!(Profile::parse(&short, "kept.ron").unwrap(), profile, "{short}");
    // As a person writes it; a text stays as it is.
    for text in [&full, &short] {
        assert!(!text.replace(&summary, "").contains("r#") && text.contains(&summary), "{text}");
    }
}

#[test]
fn a_field_that_is_left_out_is_the_bases() {
    let parsed = |text: &str| Profile::parse(text, "mine.ron").unwrap();
    let of = |name: &str| Profile::load(name, None).unwrap().0;
    assert_eq!(parsed("()"), Profile::base());
    assert_eq!(parsed("(base: \"base\")"), Profile::base());
    assert_eq!(parsed("(base: \"drill\")"), of("drill"));
    let mine = parsed("(limits: (late_us: 100), base: \"prod\")");
    let mut expected = of("prod");
    expected.limits.late_us = 100;
    assert_eq!(mine, expected);
    // Ranges are those of the whole: the base's sleep is too long for this limit.
    let error = Profile::parse("(base: \"shared\",\n limits: (heartbeat_ms: 0))", "mine.ron").unwrap_err();
    assert!(error.to_string().contains("spin_budgets.shared_sleep_us"), "{error}");
}

#[test]
fn a_base_is_one_that_the_binary_carries() {
    let said = |text: &str| Profile::parse(text, "mine.ron").unwrap_err().to_string();
    assert_eq!(said("(\n  base: \"labb\",\n)"), "mine.ron:2:9: unknown base \"labb\"; did you mean \"lab\"?");
    let known = "expected one of base, prod, lab, shared, drill";
    assert!(said("(base: \"./other.ron\")").contains(known), "{}", said("(base: \"./other.ron\")"));
    assert_eq!(said("(bsae: \"lab\")"), "mine.ron:1:2: unknown field \"bsae\"; did you mean \"base\"?");
    // Another file of the same directory is none, so the one that is read says it all.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("lab.ron"), "(base: \"lab\", silos: 7)").unwrap();
    std::fs::write(dir.path().join("mine.ron"), "(base: \"lab\")").unwrap();
    assert_eq!(Profile::load("lab", Some(dir.path())).unwrap().0.silos, Silos::Count(7));
    assert_eq!(Profile::load("mine", Some(dir.path())).unwrap().0.silos, Silos::Auto);
}

#[test]
fn a_removed_field_is_refused_with_its_replacement() {
    let text = lab().replacen("batch_tasks: 1,", "batch_tasks: 1,\n        map_entries: 16384,", 1);
    let error = Profile::parse(&text, "old.ron").unwrap_err();
    let line = text.lines().position(|line| line.contains("map_entries")).unwrap() + 1;
    let sentence = format!(
        "old.ron:{line}:9: found removed field \"graph.map_entries\", expected none: the map has 16384 entries in every \
         profile; remove it"
    );
    assert_eq!(error.to_string(), sentence);
    // The same name elsewhere is an unknown one.
    let error = Profile::parse("(map_entries: 1)", "old.ron").unwrap_err().to_string();
    assert!(error.starts_with("old.ron:1:2: found unknown field \"map_entries\", expected one of base, "), "{error}");
}

#[test]
fn prod_spins_without_faults_and_drill_has_every_fault() {
    let (prod, _) = Profile::load("prod", None).unwrap();
    assert_eq!(prod.spin, SpinPolicy::Prod);
    let faults = prod.faults;
    let none = [faults.not_started, faults.unknown, faults.never_ready, faults.late_ready, faults.inside_launch];
    assert!(none.iter().all(|&p| p == 0.0) && faults.decoder_panic == 0.0 && faults.bad_address == 0.0);
    assert_eq!(faults.lose_device_every, None);

    let (drill, _) = Profile::load("drill", None).unwrap();
    let faults = drill.faults;
    let all = [faults.not_started, faults.unknown, faults.never_ready, faults.late_ready, faults.inside_launch];
    assert!(all.iter().all(|&p| p > 0.0 && p < 0.1) && faults.decoder_panic > 0.0 && faults.bad_address > 0.0);
    assert!(faults.lose_device_every.is_some());
    assert!(faults.late_by_us > drill.limits.launch_deadline_us, "a late ready flag must miss the launch deadline");
}

#[test]
fn an_unknown_field_is_refused_with_its_place() {
    let found = findings_with("slots: 1024", "slotz: 1024");
    let (line, column) = position_of("slots: 1024");
    assert_eq!((found[0].line, found[0].column), (line, column));
    assert_eq!(found[0].found, "unknown field \"slotz\"");
    let sentence = format!("lab.ron:{line}:{column}: unknown field \"slotz\"; did you mean \"slots\"?");
    assert_eq!(found[0].to_string(), sentence);
    // The fields that are valid in that place: `slots` is none of `limits`.
    let found = Profile::parse("(limits: (slots: 1024))", "mine.ron").unwrap_err().to_string();
    assert!(found.starts_with("mine.ron:1:11: found unknown field \"slots\", expected one of launch_"), "{found}");
}

#[test]
fn a_field_that_stands_outside_of_its_record_is_shown_in_it() {
    let said = |text: &str| Profile::parse(text, "mine.ron").unwrap_err().to_string();
    let rate = "mine.ron:1:2: found unknown field \"rate\", expected it in input; write input: (rate: ..)";
    assert_eq!(said("(rate: Hz(5.0))"), rate);
    assert!(said("(keep_shots: 5)").ends_with("write placement: (overflow: (keep_shots: ..))"));
    // `graph` and `placement` have one.
    assert!(said("(overflow: Stall)").contains("expected one of base, "), "{}", said("(overflow: Stall)"));
}

#[test]
fn a_value_of_another_kind_is_refused_in_the_words_of_a_profile() {
    let said = |text: &str| {
        let error = Profile::parse(text, "mine.ron").unwrap_err();
        (error.findings()[0].found.clone(), error.findings()[0].expected.clone())
    };
    for (text, found) in [
        ("(decoders: 2)", "`2` in decoders"),
        ("(input: (rate: 100.0))", "`100.0` in input.rate"),
        ("(spin: \"Lab\")", "`\"Lab\"` in spin"),
    ] {
        assert_eq!(said(text), (found.to_owned(), "one of the words that it takes, without quotes".to_owned()));
    }
    assert_eq!(said("(confidence: yes)").1, "true or false");
    assert_eq!(said("(limits: None)").1, "fields in round brackets");
    let control = "(summary: \"a\\u{1b}b\")";
    assert_eq!(said(control).0, "3 characters, with control characters in summary");
}

#[test]
fn an_unknown_field_inside_a_variant_is_refused() {
    let found = findings_with("sigma: 0.4", "sigma: 0.4, mode: 3.0");
    assert_eq!(found[0].found, "unknown field \"mode\"");
    let found = findings_with("Sim(latency", "Sim(speed: 1, latency");
    assert_eq!(found[0].found, "unknown field \"speed\"");
}

#[test]
fn a_wrong_type_is_refused_with_field_and_place() {
    let found = findings_with("workers: 8", "workers: \"8\"");
    assert_eq!(found[0].found, "`\"8\"` in workers");
    assert_eq!(found[0].expected, "a whole number, 0 or more");
    let (line, column) = position_of("workers: 8");
    assert_eq!((found[0].line, found[0].column), (line, column + 9));
}

#[test]
fn a_number_that_its_field_cannot_hold_is_shown_whole_with_a_remedy_that_helps() {
    let column = position_of("workers: 8").1 + 9;
    let negative = &findings_with("workers: 8", "workers: -1")[0];
    assert_eq!((negative.found.as_str(), negative.column), ("`-1` in workers", column));
    assert!(negative.remedy.contains("without sign"), "{negative}");
    for (piece, found) in [("workers: 8", "workers: 99999999999"), ("abstain_below: None", "abstain_below: Some(300)")]
    {
        let large = &findings_with(piece, found)[0];
        assert_eq!((large.expected.as_str(), large.remedy.as_str()), ("a smaller number", "lower it"), "{large}");
    }
}

#[test]
fn an_unknown_variant_names_the_known_ones() {
    let found = findings_with("spin: Lab", "spin: Lob");
    assert_eq!(found[0].expected, "one of Prod, Lab, Shared");
    assert_eq!(found[0].line, position_of("spin: Lab").0);
}

#[test]
fn a_missing_field_is_named() {
    let found = findings_with("(wait_ms: 100, quiet_s: 30)", "(wait_ms: 100)");
    assert_eq!(found[0].found, "no field `quiet_s`");
}

#[test]
fn a_text_that_stops_early_is_refused() {
    let text = lab();
    let error = Profile::parse(&text[..text.len() / 2], "half.ron").unwrap_err();
    assert!(matches!(error, ProfileError::Malformed(_)));
    assert!(error.to_string().starts_with("half.ron:"), "{error}");
}

#[test]
fn sixty_five_workers_are_refused_with_the_reason() {
    let found = findings_with("workers: 8", "workers: 65");
    let (line, column) = position_of("workers: 8");
    assert_eq!((found[0].line, found[0].column), (line, column + 9));
    assert_eq!(found[0].found, "65 in workers");
    assert_eq!(found[0].expected, "1..=64");
    assert!(found[0].remedy.contains("64-bit mask of idle workers"));
    assert!(Profile::parse(&lab().replacen("workers: 8", "workers: 64", 1), "lab.ron").is_ok());
}

#[test]
fn priorities_are_held_to_what_a_machine_survives() {
    for (priority, expected) in [
        ("Fifo(0)", "1..=50"),
        ("Fifo(51)", "1..=50"),
        ("Nice(0)", "-20..=-1 or 1..=19"),
        ("Nice(20)", "-20..=-1 or 1..=19"),
        ("Nice(-21)", "-20..=-1 or 1..=19"),
    ] {
        let found = findings_with("priority: Normal", &format!("priority: {priority}"));
        assert_eq!(found[0].expected, expected, "{priority}");
        assert_eq!(found[0].line, position_of("priority: Normal").0);
    }
    for priority in [Priority::Fifo(50), Priority::Nice(-20), Priority::Nice(19), Priority::Normal] {
        let profile = Profile { priority, ..Profile::load("lab", None).unwrap().0 };
        assert_eq!(profile.validate(), []);
        assert_eq!(Priority::unpack(priority.pack()), Some(priority));
    }
    assert_eq!(Priority::unpack(0), None);
}

#[test]
fn a_courtesy_is_a_share_of_a_second_and_applies_live() {
    let found = findings_with("wait_ms: 100", "wait_ms: 1001");
    assert_eq!((found[0].expected.as_str(), found[0].line), ("1..=1000", position_of("wait_ms: 100").0));
    assert_eq!(findings_with("quiet_s: 30", "quiet_s: 0")[0].expected, "1..=3600");
    assert_eq!((applies("courtesy"), applies("courtesy.wait_ms")), (Applies::Live, Applies::Live));
    assert_eq!((applies("priority"), applies("environment")), (Applies::Restart, Applies::Restart));
}

#[test]
fn a_window_is_two_numbers_of_rounds_above_0() {
    let with = |window: &str| lab().replacen("window: None,", &format!("window: {window},"), 1);
    let size = |commit_rounds, buffer_rounds| Window::Some(WindowRounds { commit_rounds, buffer_rounds });
    let taken = Profile::parse(&with("Some((commit_rounds: 5, buffer_rounds: 7))"), "lab.ron").unwrap();
    assert_eq!(taken.window, size(5, 7));
    let found = findings_with("window: None,", "window: Some((commit_rounds: 5, buffer_rounds: 0)),");
    assert_eq!((found[0].line, found[0].found.as_str()), (position_of("window: None").0, "0 in window.buffer_rounds"));
    assert_eq!(found[0].expected, "1..=10000");
    let found = findings_with("window: None,", "window: Some((commit_rounds: 5)),");
    assert_eq!(found[0].found, "no field `buffer_rounds`");
    let taken = Profile::parse(&with("Blocks(126)"), "lab.ron").unwrap();
    assert_eq!(taken.window, Window::Blocks(126));
    assert_eq!(findings_with("window: None,", "window: Blocks(0),")[0].expected, "1..=10000");
    let mut profile = taken;
    for decoder in [Decoder::UnionFind, Decoder::Correlated, Decoder::Lookup] {
        profile.decoder = decoder.clone();
        let found = &profile.validate()[0];
        assert_eq!(found.field, "decoder", "{decoder:?}");
    }
}

#[test]
fn a_graph_without_room_for_every_shot_is_refused() {
    // 1,024 slots, 8 workers and, by Auto, up to 8 decoders.
    let found = findings_with("window_tasks: 8192", "window_tasks: 1039");
    assert_eq!(found[0].line, position_of("window_tasks: 8192").0);
    assert!(found[0].expected.starts_with("slots + workers + decoders, 1040, to "), "{}", found[0].expected);
    let found = findings_with("start: Immediate", "start: AfterOrchestration");
    assert_eq!(
        (found[0].line, found[0].expected.as_str()),
        (position_of("start: Immediate").0, "Immediate or Threshold")
    );
    assert_eq!(findings_with("start: Immediate", "start: Threshold(1025)")[0].expected, "1..=1024");
    assert_eq!(findings_with("issue: Open", "issue: Global(0)")[0].expected, "1..=1048576");
    let mut profile = Profile::parse(&lab(), "lab.ron").unwrap();
    (profile.input.streams, profile.graph.window_tasks) = (1_024, 524_288);
    assert_eq!(profile.validate(), []);
    profile.graph.ready = ReadyPolicy::FifoPerStream;
    let found = profile.validate().remove(0).to_string();
    assert!(found.starts_with("graph.ready: found a queue for each of 1024 streams, 8589934592 bytes"), "{found}");
    profile.graph.window_tasks = 8_192;
    assert_eq!(profile.validate(), []);
    profile.graph.trace = TaskTrace::Cycles { kernels: vec![TaskKernel::Joint], streams: vec![1_024] };
    assert_eq!(profile.validate()[0].expected, "0..=1023");
    assert_eq!(findings_with("batch_tasks: 1", "batch_tasks: 0")[0].expected, "1..=4096");
    assert_eq!(applies("graph.ready"), Applies::Restart);
}

#[test]
fn placement_limits_are_ordered_and_its_streams_exist() {
    let expected = |from, to| findings_with(from, to)[0].expected.clone();
    assert_eq!(expected("refresh_ms: 1000", "refresh_ms: 5"), "10..=60000");
    assert_eq!(expected("deadline_ms: 1000", "deadline_ms: 0"), "1..=60000");
    assert_eq!(expected("keep_shots: 64", "keep_shots: 0"), "1..=65536");
    for streams in ["Only([4])", "Only([0, 0])"] {
        let found = findings_with("streams: Nobody", &format!("streams: {streams}"));
        let named = |finding: &Finding| finding.expected.starts_with("each stream below input.streams, 4");
        assert!(found.iter().any(named), "{streams}: {found:?}");
    }
    assert_eq!(applies("placement.overflow.strategy"), Applies::Live);
    assert_eq!(applies("placement.by"), Applies::Restart);
}

#[test]
fn a_live_source_is_an_address_a_path_or_a_name() {
    let sampler = "Sampler(model: \"surface_d5\", seed: 1)";
    let with = |source: &str| findings_with(sampler, source);
    for sound in [
        r#"Udp(address: "127.0.0.1:7000", allow: ["10.0.0.0/8", "::1"], model: "surface_d5")"#,
        r#"Cudaq(address: "127.0.0.1:0", allow: [], config: "decoders.yaml", slot_size: 256)"#,
        r#"Unix(path: "/run/shots", model: "surface_d5")"#,
        r#"Shm(name: "fpga-0", group: Some("lab"), model: "surface_d5")"#,
    ] {
        let text = lab().replacen(sampler, sound, 1);
        assert!(Profile::parse(&text, "lab.ron").unwrap().input.source.is_live(), "{sound}");
    }
    for (odd, field) in [
        (r#"Udp(address: "host:7000", allow: [], model: "m")"#, "input.source.address"),
        (r#"Udp(address: "127.0.0.1:7000", allow: ["10.0.0.0/40"], model: "m")"#, "input.source.allow"),
        (r#"Udp(address: "127.0.0.1:7000", allow: ["::ffff:10.0.0.0/24"], model: "m")"#, "input.source.allow"),
        (r#"Cudaq(address: "7000", allow: [], config: "d.yaml", slot_size: 256)"#, "input.source.address"),
        (r#"Cudaq(address: "127.0.0.1:0", allow: ["x"], config: "d.yaml", slot_size: 256)"#, "input.source.allow"),
        (r#"Cudaq(address: "127.0.0.1:0", allow: [], config: "d.yaml", slot_size: 56)"#, "input.source.slot_size"),
        (r#"Cudaq(address: "127.0.0.1:0", allow: [], config: "", slot_size: 256)"#, "input.source.config"),
        (r#"Unix(path: "", model: "m")"#, "input.source.path"),
        (r#"Shm(name: "../x", group: None, model: "m")"#, "input.source.name"),
        (r#"Shm(name: "x", group: Some(""), model: "m")"#, "input.source.group"),
        (r#"Unix(path: "/run/shots", model: " ")"#, "input.source.model"),
    ] {
        let found = with(odd);
        assert_eq!(found.len(), 1, "{odd}: {found:?}");
        assert!(format!("{:?}", found[0]).contains(field), "{odd}: {found:?}");
    }
    for weights in ["Zipf(0.0)", "Zipf(5.0)", "Each([1.0])", "Each([1.0, 0.0, 2.0, 3.0])", "Each([1.0, 1e7, 2.0, 3.0])"]
    {
        let found = findings_with("weights: Even", &format!("weights: {weights}"));
        assert_eq!(found.len(), 1, "{weights}: {found:?}");
    }
    let skewed = lab().replacen("weights: Even", "weights: Each([4.0, 2.0, 1.0, 0.5])", 1);
    let weights = Profile::parse(&skewed, "lab.ron").unwrap().input.weights;
    assert_eq!(weights.of(4), Some(vec![4.0, 2.0, 1.0, 0.5]));
    let together = skewed.replacen("joint_every: None", "joint_every: Some(10)", 1);
    assert!(Profile::parse(&together, "lab.ron").is_err(), "a pair is read after the same number of shots of both");
    assert_eq!(findings_with("m2d: None", "m2d: Some(\"\")").len(), 1);
    assert_eq!(findings_with("joint_every: None", "joint_every: Some(9)").len(), 1);
    let joint = lab().replacen("joint_every: None", "joint_every: Some(10)", 1);
    assert_eq!(Profile::parse(&joint, "lab.ron").unwrap().input.joint_every, Some(10));
    let mapped = lab().replacen("m2d: None", "m2d: Some(\"map.m2d\")", 1);
    assert_eq!(Profile::parse(&mapped, "lab.ron").unwrap().input.m2d.as_deref(), Some("map.m2d"));
}

#[test]
fn a_stream_has_one_decoder_of_its_own_and_exists() {
    let with = |streams: &str| findings_with("streams: []", &format!("streams: [{streams}]"));
    assert_eq!(with("(stream: 4, decoder: UnionFind)")[0].expected, "0..=3");
    let twice = with("(stream: 1, decoder: UnionFind), (stream: 1, decoder: Lookup)");
    assert_eq!((twice.len(), twice[0].found.as_str()), (1, "1 again in streams[1].stream"));
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    profile.streams = vec![StreamDecoder { stream: 1, decoder: Decoder::UnionFind }];
    assert_eq!(profile.validate(), []);
    profile.window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 5 });
    let found = &profile.validate()[0];
    assert_eq!((found.field.as_str(), found.found.as_str()), ("streams[0].decoder", "UnionFind"));
    let value = serde_json::to_value(&profile).unwrap();
    assert_eq!(serde_json::from_value::<Profile>(value).unwrap(), profile);
}

#[test]
fn deadlines_fit_the_limits_the_streams_and_each_other() {
    let (lab, _) = Profile::load("lab", None).unwrap();
    let first = |deadlines: Deadlines| {
        let found = Profile { deadlines, ..lab.clone() }.validate();
        found.first().map_or(String::new(), ToString::to_string)
    };
    let kept = Deadlines { order: ShotOrder::Deadline, rescue: Some(Rescue::UnionFind), ..lab.deadlines.clone() };
    assert_eq!(first(kept.clone()), "");
    assert!(first(Deadlines { order: ShotOrder::Fifo, ..kept.clone() }).contains("set order: Deadline"));
    let late = Deadlines { answer_us: Some(lab.limits.shot_deadline_us + 1), ..kept.clone() };
    assert!(first(late).starts_with("deadlines.answer_us: found"));
    let named = |stream| StreamDeadline { stream, answer_us: 20 };
    assert_eq!(first(Deadlines { streams: vec![named(0), named(3)], ..kept.clone() }), "");
    assert!(first(Deadlines { streams: vec![named(4)], ..kept.clone() }).contains("streams[0].stream: found 4"));
    assert!(first(Deadlines { streams: vec![named(1), named(1)], ..kept.clone() }).contains("1 again"));
    let window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 5 });
    let windows = Profile { window, deadlines: kept.clone(), ..lab.clone() };
    assert!(windows.validate()[0].to_string().contains("only whole shots are decoded by their deadlines"));
    let value = serde_json::to_value(&windows).unwrap();
    assert_eq!(serde_json::from_value::<Profile>(value).unwrap(), windows);
}

#[test]
fn fields_without_effect_are_named_and_are_no_errors() {
    let (lab, _) = Profile::load("lab", None).unwrap();
    let named = |profile: &Profile| {
        assert_eq!(profile.validate(), []);
        profile.without_effect().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(named(&lab), [""; 0]);
    let mut idle = Profile { decoder: Decoder::UnionFind, silos: Silos::Count(2), ..lab.clone() };
    (idle.deadlines.order, idle.deadlines.rescue) = (ShotOrder::Deadline, Some(Rescue::UnionFind));
    idle.placement.overflow.strategy = OverflowStrategy::Migrate;
    (idle.input.streams, idle.input.joint_every) = (2, Some(10));
    let said = [
        "input.joint_every: found 10 with streams 2 and silos 2, expected two streams in one silo, which are \
         measured together; raise input.streams, or set joint_every: None",
        "deadlines.rescue: found UnionFind, expected a faster decoder than that of all shots; choose another rescue \
         decoder, or rescue: None",
        "placement.streams: found Nobody, expected streams that may move, because overflow.strategy is Migrate; use \
         All, or choose another strategy",
    ];
    assert_eq!(named(&idle), said);
    (idle.decoder, idle.input.streams, idle.placement.streams) = (Decoder::Matching, 3, TakesPart::All);
    assert_eq!(named(&idle), [""; 0]);
    let decoder = Decoder::from_text("plugin:a.so").unwrap();
    let said = named(&Profile { confidence: true, decoder, ..lab });
    assert!(said.len() == 1 && said[0].starts_with("confidence: found true with decoder Plugin"), "{said:?}");
}

#[test]
fn a_decoder_has_one_name_and_the_number_of_its_place() {
    for (number, kind) in DecoderKind::ALL.into_iter().enumerate() {
        assert_eq!((kind as usize, DecoderKind::from_name(kind.name())), (number, Some(kind)));
    }
    assert_eq!(DecoderKind::from_name("Matching"), None);
    for (number, decoder) in Decoder::BUILT_IN.into_iter().enumerate() {
        assert_eq!((decoder.kind() as usize, Decoder::from_text(&decoder.text())), (number, Some(decoder)));
    }
    for text in ["plugin:./a decoder.so", "trusted-plugin:/opt/a.so"] {
        assert_eq!(Decoder::from_text(text).unwrap().text(), text);
    }
    for text in ["plugin", "plugin:", "trusted-plugin:", "Plugin:a.so", "Matching"] {
        assert_eq!(Decoder::from_text(text), None, "{text}");
    }
}

#[test]
fn a_plugin_needs_a_path_and_runs_in_a_process_of_its_own_unless_it_is_trusted() {
    let with = |decoder: &str| format!("(base: \"lab\", summary: \"x\", decoder: {decoder})");
    let profile = Profile::parse(&with("Plugin(path: \"a.so\")"), "mine.ron").unwrap();
    let (path, config) = ("a.so".to_owned(), String::new());
    assert_eq!(profile.decoder, Decoder::Plugin { path, config, trusted: false, limit_us: None });
    let full = with("Plugin(path: \"a.so\", config: \"{\\\"k\\\": 1}\", trusted: true, limit_us: Some(50))");
    let mut profile = Profile::parse(&full, "mine.ron").unwrap();
    profile.streams = vec![StreamDecoder { stream: 1, decoder: profile.decoder.clone() }];
    assert_eq!(profile.validate(), []);
    let value = serde_json::to_value(&profile).unwrap();
    assert_eq!(serde_json::from_value::<Profile>(value).unwrap(), profile);
    profile.window = Window::Some(WindowRounds { commit_rounds: 5, buffer_rounds: 5 });
    assert_eq!(profile.validate()[0].found, "Plugin");
    profile.window = Window::None;
    profile.decoder = Decoder::Plugin { path: String::new(), config: String::new(), trusted: false, limit_us: Some(0) };
    let fields: Vec<String> = profile.validate().into_iter().map(|found| found.field).collect();
    assert_eq!(fields, ["decoder.path", "decoder.limit_us"]);
    assert!(Profile::parse(&with("Plugin(pth: \"a.so\")"), "mine.ron").is_err());
    // A start refuses it: no decode worker starts it again.
    let text = "(shadow: Some((decoder: Plugin(path: \"a.so\"), one_in: 100)))";
    let error = Profile::parse(text, "mine.ron").unwrap_err().to_string();
    assert!(error.starts_with("mine.ron:1:25: found Plugin in shadow.decoder, expected a built-in decoder"), "{error}");
}

#[test]
fn numbers_of_any_size_are_refused_in_words() {
    for (slots, nearest) in [(0, 8), (9, 8), (1_100, 1_024), (1_535, 1_024), (1_537, 2_048), (u32::MAX, 65_536)] {
        let error = Profile::parse(&format!("(slots: {slots})"), "mine.ron").unwrap_err().to_string();
        assert!(error.contains(&format!("use {nearest}, the nearest permitted number")), "{slots}: {error}");
    }
    let most = u32::MAX;
    let text = format!("(input: (streams: {most}), graph: (window_tasks: {most}, ready: FifoPerStream))");
    let error = Profile::parse(&text, "mine.ron").unwrap_err();
    assert!(error.findings().iter().any(|found| found.found.contains(&u64::MAX.to_string())), "{error}");
}

#[test]
fn a_gpu_is_auto_or_cuda_with_one_to_sixty_four_shots_a_launch() {
    let sim = "device: Sim(latency: LogNormal(median_us: 120.0, sigma: 0.4))";
    let with = |device: &str| lab().replacen(sim, device, 1);
    assert_eq!(Profile::parse(&with("device: Auto"), "lab.ron").unwrap().device, Device::Auto);
    let cuda = Profile::parse(&with("device: Cuda(index: Some(1), batch_shots: 16)"), "lab.ron").unwrap().device;
    assert_eq!(cuda, Device::Cuda { index: Some(1), batch_shots: 16 });
    for batch_shots in ["0", "65"] {
        let found = findings_with(sim, &format!("device: Cuda(index: None, batch_shots: {batch_shots})"));
        assert_eq!((found.len(), found[0].expected.as_str()), (1, "1..=64"));
    }
    assert_eq!(findings_with(sim, "device: Cuda(index: Some(64), batch_shots: 1)")[0].expected, "0..=63");
    assert_eq!(applies("device.batch_shots"), Applies::Restart);
}

#[test]
fn without_a_device_there_are_no_device_workers_and_no_faults_of_launches() {
    let sim = "device: Sim(latency: LogNormal(median_us: 120.0, sigma: 0.4))";
    let none = Profile::parse(&lab().replacen(sim, "device: None", 1), "lab.ron").unwrap();
    assert_eq!((none.device_workers(), none.device_without_gpu()), (0, Device::None));
    assert_eq!(Profile::load("lab", None).unwrap().0.device_workers(), 8);
    for fault in ["never_ready: 0.1", "lose_device_every: Some(9)", "role_panic: Some((role: Device, after_items: 1))"]
    {
        let text = format!("(device: None, faults: ({fault}))");
        let refusal = Profile::parse(&text, "mine.ron").unwrap_err();
        let found = &refusal.findings()[0];
        assert_eq!((found.found.as_str(), found.line), ("None in device", 1), "{refusal}");
        let allowed = Profile::parse(&text.replace("None, faults", "Auto, faults"), "mine.ron").unwrap();
        assert_eq!(allowed.device_without_gpu(), Device::Sim { latency: Latency::None });
    }
    assert!(Profile::parse("(device: None, faults: (decoder_panic: 0.1))", "mine.ron").is_ok());
}

#[test]
fn all_range_errors_are_reported_each_at_its_field() {
    let text = lab().replacen("slots: 1024", "slots: 1000", 1).replacen("sigma: 0.4", "sigma: 9.0", 1);
    let text = text.replacen("streams: 4", "streams: 0", 1);
    let error = Profile::parse(&text, "lab.ron").unwrap_err();
    let places: Vec<(u32, u32)> = error.findings().iter().map(|f| (f.line, f.column)).collect();
    let after = |piece: &str, skip: u32| (position_of(piece).0, position_of(piece).1 + skip);
    assert_eq!(places, [after("slots: 1024", 7), after("sigma: 0.4", 7), after("streams: 4", 9)]);
    assert!(error.to_string().ends_with("(and 2 more out of range)"), "{error}");
}

#[test]
fn a_profile_in_memory_is_checked_too() {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    profile.input.rate = Rate::Hz(-1.0);
    profile.limits.shot_deadline_us = 1;
    profile.faults.unknown = f64::NAN;
    profile.device = Device::Sim { latency: Latency::Uniform { min_us: 2.0, max_us: 1.0 } };
    let fields: Vec<String> = profile.validate().into_iter().map(|error| error.field).collect();
    assert_eq!(fields, ["device.latency.max_us", "limits.shot_deadline_us", "input.rate", "faults.unknown"]);
}

#[test]
fn faults_that_exclude_each_other_sum_to_one_at_most() {
    let (mut profile, _) = Profile::load("lab", None).unwrap();
    profile.faults.not_started = 0.6;
    profile.faults.late_ready = 0.6;
    assert_eq!(profile.validate()[0].field, "faults");
    profile.faults.late_ready = 0.4;
    assert_eq!(profile.validate(), []);
}

#[test]
fn a_file_of_the_directory_replaces_the_embedded_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("lab.ron"), lab().replacen("silos: Auto,", "silos: 2,", 1)).unwrap();
    std::fs::write(dir.path().join("mine.ron"), lab()).unwrap();
    std::fs::write(dir.path().join("broken.ron"), "(").unwrap();
    let (profile, origin) = Profile::load("lab", Some(dir.path())).unwrap();
    assert_eq!(profile.silos, Silos::Count(2));
    assert_eq!(origin, Origin::File(dir.path().join("lab.ron")));
    assert_eq!(origin.name(), "lab");
    assert_eq!(Profile::load("prod", Some(dir.path())).unwrap().1, Origin::Embedded("prod"));

    let entries = list(Some(dir.path()));
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["prod", "lab", "shared", "drill", "broken", "mine"]);
    let valid: Vec<bool> = entries.iter().map(|entry| entry.valid).collect();
    assert_eq!(valid, [true, true, true, true, false, true]);
    assert_eq!(entries[0].path, None);
    assert_eq!(entries[1].path, Some(dir.path().join("lab.ron")));
}

#[test]
fn files_of_keys_and_colours_beside_profiles_are_no_profiles() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["keys", "theme", "mine"] {
        std::fs::write(dir.path().join(format!("{name}.ron")), "()").unwrap();
    }
    let names: Vec<String> = list(Some(dir.path())).into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["prod", "lab", "shared", "drill", "mine"]);
}

#[test]
fn other_files_of_a_directory_hide_no_profile_and_the_first_by_name_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| std::fs::write(dir.path().join(name), "()").unwrap();
    (0..2 * ENTRIES_MAX).for_each(|number| write(&format!("{number}.txt")));
    (0..ENTRIES_MAX + 10).rev().for_each(|number| write(&format!("p{number:04}.ron")));
    let found = names(Some(dir.path()));
    assert_eq!((found.len(), &*found[NAMES.len()]), (NAMES.len() + ENTRIES_MAX, "p0000"));
    assert_eq!(found.last().unwrap(), "p1023");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_replaced_by_what_is_built_in() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("gone.ron", dir.path().join("prod.ron")).unwrap();
    let said = Profile::load("prod", Some(dir.path())).unwrap_err().to_string();
    assert!(said.contains("prod.ron: found No such file"), "{said}");
    assert!(!list(Some(dir.path()))[0].valid);
}

#[test]
fn an_unknown_name_says_which_there_are() {
    let error = Profile::load("lap", None).unwrap_err();
    let sentence = "profiles of the program: found no profile \"lap\", expected one of prod, lab, shared, drill; \
                    name one of these, a path that ends in .ron, or its directory with --profiles DIR";
    assert_eq!(error.to_string(), sentence);
}

#[test]
fn a_file_that_cannot_be_read_is_refused_in_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.path().join(name), bytes).unwrap();
        Profile::load(&dir.path().join(name).to_string_lossy(), None).unwrap_err()
    };
    assert!(matches!(write("binary.ron", b"(\xff\xfe"), ProfileError::Unreadable(_)));
    let large = vec![b' '; usize::try_from(FILE_BYTES_MAX).unwrap() + 1];
    assert!(write("large.ron", &large).to_string().contains("more than 1048576 bytes"));
    let missing = Profile::load("/nowhere/at/all.ron", None).unwrap_err();
    assert!(missing.to_string().starts_with("/nowhere/at/all.ron: found "), "{missing}");
    assert!(Profile::load(&dir.path().to_string_lossy(), Some(Path::new("/nowhere"))).is_err());
}

/// Whether every finding of an error points into the text.
fn points_inside(text: &str, error: &ProfileError) -> bool {
    let lines: Vec<&str> = if text.is_empty() { vec![""] } else { text.lines().collect() };
    !error.findings().is_empty()
        && error.findings().iter().all(|finding| {
            let line = lines.get(finding.line as usize - 1);
            line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&(finding.column as usize)))
        })
}

/// What a slip of the hand does to a text.
fn mutation() -> impl Strategy<Value = (u8, usize, String)> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        Just("\"".to_owned()),
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just("/*".to_owned()),
        Just("-".to_owned()),
        Just("99999999999".to_owned()),
        Just("\n".to_owned()),
    ];
    (0..3_u8, any::<usize>(), piece)
}

fn mutate(text: &str, (kind, at, piece): (u8, usize, String)) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = at % chars.len();
    match kind {
        0 => drop(chars.splice(at..at, piece.chars())),
        1 => drop(chars.splice(at..=at, piece.chars())),
        _ => chars.truncate(at),
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn arbitrary_text_never_panics_and_is_refused_inside_it(text in any::<String>()) {
        if let Err(error) = Profile::parse(&text, "any.ron") {
            assert!(points_inside(&text, &error), "{error}");
        }
    }

    #[test]
    fn text_of_brackets_and_names_never_panics(text in "[(){}\\[\\],:\"'rs#!/*0-9. \n\\\\]{0,200}") {
        // `()` is a profile: all of it is the base's.
        if let Err(error) = Profile::parse(&text, "any.ron") {
            assert!(points_inside(&text, &error), "{error}");
        }
    }

    #[test]
    fn a_slip_in_a_valid_profile_is_refused_inside_the_file(slip in mutation()) {
        for text in [lab(), text("drill", None).unwrap().0] {
            let text = mutate(&text, slip.clone());
            if let Err(error) = Profile::parse(&text, "lab.ron") {
                assert!(points_inside(&text, &error), "{error}");
            }
        }
    }

    #[test]
    fn deep_nesting_never_overflows(depth in 1..20_000_usize, open in "[(\\[{]") {
        let text = open.repeat(depth);
        let error = Profile::parse(&text, "deep.ron").unwrap_err();
        assert!(points_inside(&text, &error), "{error}");
    }
}

#[test]
fn alarm_rules_are_read_checked_and_refused_with_their_field() {
    let rule = "(id: Heartbeat, severity: Critical, limit: 2.5, hysteresis: 0.5, action: SwitchProfile(\"shared\"), runbook: \"look\")";
    let with = |rules: &str| Profile::parse(&lab().replacen("alarms: []", &format!("alarms: [{rules}]"), 1), "lab.ron");
    let read = with(rule).unwrap();
    assert_eq!((read.alarms[0].id, read.alarms[0].severity), (RuleId::Heartbeat, Severity::Critical));
    assert_eq!(read.alarms[0].action, AlarmAction::SwitchProfile("shared".to_owned()));
    let refused = |rules: &str| with(rules).unwrap_err().findings()[0].found.clone();
    assert!(refused(&format!("{rule}, {rule}")).contains("twice"));
    assert!(refused(&rule.replace("2.5", "-1.0")).contains("-1"));
    assert!(refused(&rule.replace("hysteresis: 0.5", "hysteresis: 1.5")).contains("1.5"));
    assert!(refused(&rule.replace("look", &"l".repeat(161))).contains("161"));
    assert!(refused(&rule.replace("shared", " ")).contains("no name"));
    let other_model = rule.replace("SwitchProfile(\"shared\")", "SwitchModel(\"fitted.dem\")");
    assert_eq!(with(&other_model).unwrap().alarms[0].action, AlarmAction::SwitchModel("fitted.dem".to_owned()));
    assert!(refused(&other_model.replace("fitted.dem", "")).contains("no file"));
    for (field, kept) in [
        ("window: None", "window: Some((commit_rounds: 5, buffer_rounds: 5))"),
        ("predecoder: None", "predecoder: Local"),
    ] {
        let text = lab().replacen("alarms: []", &format!("alarms: [{other_model}]"), 1);
        assert!(text.contains(field), "{field}");
        let error = Profile::parse(&text.replacen(field, kept, 1), "lab.ron").unwrap_err();
        assert!(error.findings().iter().any(|finding| finding.expected.contains("no SwitchModel")), "{error}");
    }
    let found = findings_with("on_alarm: None", "on_alarm: Exec(\"page.sh\")");
    assert!(found[0].found.contains("page.sh") && found[0].remedy.contains("absolute path"), "{found:?}");
    assert_eq!(applies("alarms"), Applies::Live);
    assert_eq!(applies("diagnostics"), Applies::Restart);
}

#[test]
fn what_is_kept_of_runs_has_its_range() {
    for kept in ["kept_mb: 9,", "kept_mb: 1000001,"] {
        assert!(findings_with("kept_mb: 5000,", kept)[0].expected.contains("10..=1000000"));
    }
    for runs in ["kept_runs: 0)", "kept_runs: 10001)"] {
        assert!(findings_with("kept_runs: 20)", runs)[0].found.contains(&runs[11..runs.len() - 1]));
    }
    assert_eq!(applies("recorder.kept_runs"), Applies::Restart);
}

#[test]
fn silos_are_auto_or_a_number_and_anything_else_is_refused_with_its_place() {
    let with = |word: &str| Profile::parse(&lab().replacen("silos: Auto", &format!("silos: {word}"), 1), "lab.ron");
    assert_eq!(with("Auto").unwrap().silos, Silos::Auto);
    for count in [1, 64] {
        let profile = with(&count.to_string()).unwrap();
        assert_eq!(profile.silos, Silos::Count(count));
        // As a run keeps it, and as a command shows it.
        assert_eq!(Profile::parse(&profile.to_ron().unwrap(), "kept.ron").unwrap(), profile);
        let json = serde_json::to_value(&profile).unwrap();
        assert_eq!(
            (&json["silos"], &serde_json::from_value::<Profile>(json.clone()).unwrap()),
            (&count.into(), &profile)
        );
    }
    let (line, column) = position_of("Auto, // complete");
    for word in ["Atuo", "\"2\"", "-1", "2.5", "Some(2)", "None", "Count(2)", "4294967296"] {
        let found = &findings_with("silos: Auto", &format!("silos: {word}"))[0];
        assert_eq!((found.line, found.column), (line, column), "{word}: {found}");
        assert!(found.found.contains("in silos") && found.expected.contains("Auto"), "{word}: {found}");
    }
    for word in ["0", "65"] {
        let found = &findings_with("silos: Auto", &format!("silos: {word}"))[0];
        assert_eq!((&*found.found, &*found.expected), (&*format!("{word} in silos"), "1..=64"));
        assert_eq!((found.line, found.column), (line, column), "{word}: {found}");
    }
}

/// The limits of the board's layout that a profile's values can reach.
#[test]
fn a_limit_of_the_board_is_checked_where_a_profile_says_it() {
    let decode = |count: usize| vec!["Decode"; count].join(", ");
    let thread = |name: &str, roles: &str| format!("(name: \"{name}\", roles: [{roles}], silo: 0, core: None)");
    let ring = "Feed, Dispatch, Device, Poll, Graph, Harvest";
    let found = |threads: &[String]| {
        let threads = format!("threads: Explicit([{}])", threads.join(", "));
        Profile::parse(&lab().replacen("threads: Auto", &threads, 1), "lab.ron").err()
    };
    assert_eq!(found(&[thread("ring", ring), thread("a", &decode(40)), thread("b", &decode(24))]), None);
    let many = found(&[thread("ring", ring), thread("a", &decode(40)), thread("b", &decode(25))]).unwrap();
    assert!(
        many.to_string().contains("65 Decode roles in silo 0") && many.to_string().contains("at most 64"),
        "{many}"
    );
    let wide = found(&[thread("ring", &format!("{ring}, {}", decode(59)))]).unwrap();
    assert!(wide.to_string().contains("65 roles in threads[0].roles, expected 1..=64 roles"), "{wide}");
    let dir = tempfile::tempdir().unwrap();
    for (length, is_refused) in [(64, false), (65, true)] {
        let name = "n".repeat(length);
        std::fs::write(dir.path().join(format!("{name}.ron")), lab()).unwrap();
        let error = Profile::load(&name, Some(dir.path())).err().map(|error| error.to_string());
        assert_eq!(error.is_some(), is_refused, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("a name of 65 bytes, expected at most 64 bytes")));
    }
}

#[cfg(unix)]
#[test]
fn a_fifo_among_the_profiles_is_listed_as_invalid_and_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    mknodat(CWD, dir.path().join("x.ron"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let entries = super::list(Some(dir.path()));
    let found = entries.iter().find(|entry| entry.name == "x").unwrap();
    assert!(!found.valid && found.summary.contains("found a FIFO"), "{}", found.summary);
    let named = dir.path().join("x.ron");
    let refused = Profile::load_unwaited(named.to_str().unwrap(), None).unwrap_err().to_string();
    assert!(refused.contains("found a FIFO"), "{refused}");
}
