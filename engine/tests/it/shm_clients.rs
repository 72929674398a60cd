//! The published side of shared memory: the C header against the engine's offsets, and the example clients against it.

use crate::live::{data, drained, model, start};
use crate::rig::{alone, profile, shots};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::shm::layout::{
    ANSWER_HEAD_WORDS, HEADER_BYTES, MAGIC, SHOT_HEAD_WORDS, VERSION, client, engine, header,
};
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shm")
}

/// Whether `program` is there; a test that needs it says so and is over where it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: no {program} on this machine");
    }
    found
}

fn compile(source: &Path, program: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"]).arg(folder());
    let output = cc.arg("-o").arg(program).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_c_header_has_the_engines_offsets() {
    if !has("cc") {
        return;
    }
    let fields = [
        ("magic", header::MAGIC),
        ("version", header::VERSION),
        ("region_bytes", header::REGION_BYTES),
        ("slots", header::SLOTS),
        ("rx_at", header::RX_AT),
        ("tx_at", header::TX_AT),
        ("shots_at", header::SHOTS_AT),
        ("shot_stride", header::SHOT_STRIDE),
        ("answers_at", header::ANSWERS_AT),
        ("answer_stride", header::ANSWER_STRIDE),
        ("bits", header::BITS),
        ("encoding", header::ENCODING),
        ("streams", header::STREAMS),
        ("observables", header::OBSERVABLES),
        ("epoch", engine::EPOCH),
        ("engine_heartbeat", engine::HEARTBEAT),
        ("state", engine::STATE),
        ("granted", engine::GRANTED),
        ("session", client::SESSION),
        ("client_pid", client::PID),
        ("client_heartbeat", client::HEARTBEAT),
    ];
    let mut probe = String::from("#include \"pinwheel_shm.h\"\n#include <stdio.h>\nint main(void) {\n");
    for (field, _) in fields {
        probe += &format!("printf(\"%zu\\n\", offsetof(pw_header, {field}));\n");
    }
    for value in ["PW_MAGIC", "PW_VERSION", "PW_HEADER_BYTES", "sizeof(pw_shot)", "sizeof(pw_answer)"] {
        probe += &format!("printf(\"%llu\\n\", (unsigned long long){value});\n");
    }
    probe += "return 0; }\n";
    let place = tempfile::tempdir().unwrap();
    let (source, program) = (place.path().join("probe.c"), place.path().join("probe"));
    std::fs::write(&source, probe).unwrap();
    compile(&source, &program);
    let output = Command::new(&program).output().unwrap();
    let found: Vec<u64> = String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let heads = [SHOT_HEAD_WORDS * 8, ANSWER_HEAD_WORDS * 8].map(|bytes| bytes as u64);
    let expected: Vec<u64> =
        fields.iter().map(|(_, at)| *at as u64).chain([MAGIC, VERSION, HEADER_BYTES as u64]).chain(heads).collect();
    assert_eq!(found, expected);
}

/// Every offset of the page's header table is the engine's.
#[test]
fn the_page_has_the_engines_offsets() {
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let rows: Vec<usize> = page
        .split("## Header")
        .nth(1)
        .and_then(|rest| rest.split("## Records").next())
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    let h = [header::MAGIC, header::VERSION, header::REGION_BYTES, header::SLOTS, header::RX_AT, header::TX_AT];
    let i = [header::SHOTS_AT, header::SHOT_STRIDE, header::ANSWERS_AT, header::ANSWER_STRIDE, header::BITS];
    let j = [header::ENCODING, header::STREAMS, header::OBSERVABLES, engine::EPOCH, engine::HEARTBEAT, engine::STATE];
    let k = [engine::GRANTED, client::SESSION, client::PID, client::HEARTBEAT];
    assert_eq!(rows, [&h[..], &i, &j, &k].concat());
}

/// Runs an example client on a golden set and compares each line with the matcher alone.
fn example(mut command: Command) {
    let alone = alone();
    let name = "surf_z_d3_r3_p0.005";
    let (model, bytes) = (model(name), data(&format!("{name}.dets.b8")));
    let file = alone.file("shots.b8");
    std::fs::write(&file, &bytes).unwrap();
    let (engine, _) = start(&profile(), &model, LivePlace::parse("shm:example").unwrap(), None);
    let output = command.arg(alone.boards().join("input-example")).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let set = shots(&bytes, model.detectors);
    let mut matcher = MatcherModel::new(&model).unwrap().matcher();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), set.len());
    let mut bare = vec![0; 1];
    for (index, line) in text.lines().enumerate() {
        matcher.decode(set.shot(index), &mut bare).unwrap();
        assert_eq!(line, format!("{index} 0 {:x}", bare[0]));
    }
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.answers_dropped), (set.len() as u64, 0));
}

#[test]
fn the_example_in_c_gets_every_answer() {
    if !has("cc") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("send");
    compile(&folder().join("send.c"), &program);
    example(Command::new(program));
}

#[test]
fn the_example_in_python_gets_every_answer() {
    if !has("python3") {
        return;
    }
    let mut command = Command::new("python3");
    command.arg(folder().join("send.py"));
    example(command);
}
