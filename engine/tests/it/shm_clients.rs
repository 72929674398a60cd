//! The published side of shared memory: the C header against the engine's offsets, and the example clients against it.

use crate::live::{data, drained, model, start, wait};
use crate::rig::{Home, beside_another, profile, shots};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_engine::code::Model;
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::shm::layout::{
    ANSWER_HEAD_WORDS, HEADER_BYTES, MAGIC, SHOT_HEAD_WORDS, SOFT, VERSION, VERSION_SOFT, client, engine, header,
};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shm")
}

/// Whether Python is there; a test that needs it says so and is over where it is not. A C compiler
/// must be there.
fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: no python3 on this machine");
    }
    found
}

pub(crate) fn compile(source: &Path, program: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"]).arg(folder());
    let output = cc.arg("-o").arg(program).arg(source).output().expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_c_header_has_the_engines_offsets() {
    let fields = [
        ("magic", header::MAGIC),
        ("version", header::VERSION),
        ("region_bytes", header::REGION_BYTES),
        ("slots", header::SLOTS),
        ("shots_at", header::SHOTS_AT),
        ("shot_stride", header::SHOT_STRIDE),
        ("answers_at", header::ANSWERS_AT),
        ("answer_stride", header::ANSWER_STRIDE),
        ("bits", header::BITS),
        ("encoding", header::ENCODING),
        ("streams", header::STREAMS),
        ("observables", header::OBSERVABLES),
        ("soft_bytes", header::SOFT_BYTES),
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
    for value in [
        "PW_MAGIC",
        "PW_VERSION",
        "PW_VERSION_SOFT",
        "PW_SOFT",
        "PW_HEADER_BYTES",
        "sizeof(pw_shot)",
        "sizeof(pw_answer)",
    ] {
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
    let values = [MAGIC, VERSION, VERSION_SOFT, u64::from(SOFT), HEADER_BYTES as u64];
    let expected: Vec<u64> = fields.iter().map(|(_, at)| *at as u64).chain(values).chain(heads).collect();
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
    let h = [header::MAGIC, header::VERSION, header::REGION_BYTES, header::SLOTS];
    let i = [header::SHOTS_AT, header::SHOT_STRIDE, header::ANSWERS_AT, header::ANSWER_STRIDE, header::BITS];
    let j = [header::ENCODING, header::STREAMS, header::OBSERVABLES, header::SOFT_BYTES, engine::EPOCH];
    let k = [engine::HEARTBEAT, engine::STATE, engine::GRANTED, client::SESSION, client::PID, client::HEARTBEAT];
    assert_eq!(rows, [&h[..], &i, &j, &k].concat());
}

/// The engine's own error codes lie in the range that the page names.
#[test]
fn the_page_has_the_range_of_the_engines_codes() {
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let range = page.lines().find(|line| line.contains("the engine's own")).unwrap();
    let (first, last) = range.strip_prefix("| ").and_then(|line| line.split(' ').next()?.split_once('–')).unwrap();
    let (first, last): (u16, u16) = (first.parse().unwrap(), last.parse().unwrap());
    let codes = (0..=u16::MAX).filter(|code| ErrorCode::from_number(*code).is_some());
    let outside: Vec<u16> = codes.filter(|code| !(first..=last).contains(code)).collect();
    assert!(outside.is_empty(), "{outside:?} are outside {first}–{last}");
}

const GOLDEN: &str = "surf_z_d3_r3_p0.005";

/// Runs an example client on `file`, which holds the golden set, and compares each line with the
/// matcher alone.
fn golden(command: &mut Command, home: &Home, model: &Model, file: &Path) {
    let output = command.arg(home.boards().join("input-example")).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(file).unwrap();
    let set = shots(&bytes, model.detectors);
    let mut matcher = MatcherModel::new(model).unwrap().matcher();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), set.len());
    let mut bare = vec![0; 1];
    for (index, line) in text.lines().enumerate() {
        matcher.decode(set.shot(index), &mut bare).unwrap();
        assert_eq!(line, format!("{index} 0 {:x}", bare[0]));
    }
}

/// Runs `test` with the example client in C.
pub(crate) fn in_c(test: fn(Command)) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("send");
    compile(&folder().join("send.c"), &program);
    test(Command::new(program));
}

/// Runs `test` with the example client in Python, if there is one.
pub(crate) fn in_python(test: fn(Command)) {
    if !has_python() {
        return;
    }
    let mut command = Command::new("python3");
    command.arg(folder().join("send.py"));
    test(command);
}

/// An example client alone with an engine.
fn example(mut command: Command) {
    let home = beside_another();
    let (model, bytes) = (model(GOLDEN), data(&format!("{GOLDEN}.dets.b8")));
    let file = home.file("shots.b8");
    std::fs::write(&file, &bytes).unwrap();
    let (engine, _) = start(&profile(), &model, LivePlace::parse("shm:example").unwrap(), None);
    golden(&mut command, &home, &model, &file);
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.answers_dropped), (shots(&bytes, model.detectors).len() as u64, 0));
}

#[test]
fn the_example_in_c_gets_every_answer() {
    in_c(example);
}

#[test]
fn the_example_in_python_gets_every_answer() {
    in_python(example);
}

#[test]
fn shots_of_c_clients_that_are_killed_by_signal_9_are_answered_once_each() {
    const CLIENTS: u64 = 6;
    let home = beside_another();
    let program = home.file("send");
    compile(&folder().join("send.c"), &program);
    let (model, bytes) = (model(GOLDEN), data(&format!("{GOLDEN}.dets.b8")));
    let (file, long) = (home.file("shots.b8"), home.file("long.b8"));
    std::fs::write(&file, &bytes).unwrap();
    // More shots than a client sends before it is killed, and others than those of the last client.
    let mut others = bytes.clone();
    others.rotate_left(model.detectors.div_ceil(8) as usize);
    std::fs::write(&long, others.repeat(1_000)).unwrap();
    let (engine, _) = start(&profile(), &model, LivePlace::parse("shm:example").unwrap(), None);
    let accepted = || engine.snapshot().sources[0].accepted;
    for client in 1..=CLIENTS {
        let before = accepted();
        let mut sends = Command::new(&program);
        sends.arg(home.boards().join("input-example")).arg(&long).stdout(Stdio::null());
        let mut sends = sends.spawn().unwrap();
        // The ring goes round more than once.
        wait("shots of this client", || accepted() > before + 1_500 + 100 * client);
        sends.kill().unwrap();
        assert_eq!(sends.wait().unwrap().signal(), Some(9));
    }
    let before = accepted();
    golden(&mut Command::new(&program), &home, &model, &file);
    let (_, source) = drained(engine);
    assert_eq!(source.client.map(|client| client.attached), Some(CLIENTS + 1));
    assert!(source.accepted >= before + shots(&bytes, model.detectors).len() as u64, "{source:?}");
    assert!((1..=1_024 * CLIENTS).contains(&source.answers_dropped) && source.malformed == 0, "{source:?}");
    assert!(source.streams.iter().all(|stream| stream.duplicates == 0 && stream.gaps == 0), "{source:?}");
}

/// An example client ends in a sentence with the engine that drains while it has shots left.
fn ended(mut command: Command) {
    let home = beside_another();
    let file = home.file("long.b8");
    std::fs::write(&file, data(&format!("{GOLDEN}.dets.b8")).repeat(1_000)).unwrap();
    let (engine, _) = start(&profile(), &model(GOLDEN), LivePlace::parse("shm:example").unwrap(), None);
    command.arg(home.boards().join("input-example")).arg(&file);
    let client = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait("shots", || engine.snapshot().sources[0].accepted > 100);
    let (_, source) = drained(engine);
    assert_eq!(source.answers_dropped, 0);
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("found the engine's end"), "{said}");
}

#[test]
fn the_example_in_c_ends_with_its_engine() {
    in_c(ended);
}

#[test]
fn the_example_in_python_ends_with_its_engine() {
    in_python(ended);
}

/// The text of an example client's file, as the client of another layout would have it.
fn of_layout(file: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    assert!(text.contains(from), "{file} says {from}");
    text.replace(from, to)
}

/// A client that cannot send `shots` ends at once, in one sentence with these parts.
fn refused(mut command: Command, shots: &[u8], parts: [&str; 2]) {
    let home = beside_another();
    let model = model(GOLDEN);
    let file = home.file("shots.b8");
    std::fs::write(&file, shots).unwrap();
    let (engine, _) = start(&profile(), &model, LivePlace::parse("shm:example").unwrap(), None);
    let output = command.arg(home.boards().join("input-example")).arg(&file).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.trim().lines().count() == 1, "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let (_, source) = drained(engine);
    assert_eq!((source.accepted, source.malformed), (0, 0));
}

#[test]
fn a_c_client_of_layout_1_is_refused_in_a_sentence_with_both_layouts() {
    let place = tempfile::tempdir().unwrap();
    let header = of_layout("pinwheel_shm.h", "#define PW_VERSION 2", "#define PW_VERSION 1");
    std::fs::write(place.path().join("pinwheel_shm.h"), header).unwrap();
    let source = place.path().join("send.c");
    std::fs::copy(folder().join("send.c"), &source).unwrap();
    let program = place.path().join("send");
    compile(&source, &program);
    refused(Command::new(program), &[0; 3], ["layout 2", "layout 1"]);
}

#[test]
fn a_python_client_of_layout_1_is_refused_in_a_sentence_with_both_layouts() {
    if !has_python() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("send.py");
    std::fs::write(&program, of_layout("send.py", "VERSION, LOW = 2,", "VERSION, LOW = 1,")).unwrap();
    let mut command = Command::new("python3");
    command.arg(program);
    refused(command, &[0; 3], ["layout 2", "layout 1"]);
}

/// A last shot that is cut short is neither filled up nor left out.
#[test]
fn an_example_client_refuses_a_file_that_ends_within_a_shot() {
    let parts = ["found 2 bytes after the last whole shot", "expected shots of 3 bytes"];
    if has_python() {
        let mut command = Command::new("python3");
        command.arg(folder().join("send.py"));
        refused(command, &[0; 8], parts);
    }
    {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("send");
        compile(&folder().join("send.c"), &program);
        refused(Command::new(program), &[0; 8], parts);
    }
}

/// An engine's answers may take longer than a client waits for one of them. Here each shot that is sent takes as much
/// of that time as leaves the shots on their way below it.
#[test]
fn an_example_client_waits_for_the_next_answer_and_not_for_all_of_them() {
    let place = tempfile::tempdir().unwrap();
    if has_python() {
        let text =
            of_layout("send.py", "sent += 1", "sent += 1; time.sent += 1").replace("time.monotonic()", "time.sent");
        let program = place.path().join("send.py");
        std::fs::write(&program, text.replace("import time\n", "import time\ntime.sent = 0\n")).unwrap();
        let mut command = Command::new("python3");
        command.arg(program);
        example(command);
    }
    {
        let text = of_layout("send.c", "sent++", "sent++, spent += 0.05");
        let text = text.replace("return (double)now.tv_sec + (double)now.tv_nsec / 1e9;", "return spent;");
        let (source, program) = (place.path().join("send.c"), place.path().join("send"));
        std::fs::write(&source, text.replace("static double seconds", "static double spent;\nstatic double seconds"))
            .unwrap();
        compile(&source, &program);
        example(Command::new(program));
    }
}

#[test]
fn the_examples_print_more_observables_than_a_word_has() {
    let text: String = (0..70).map(|bit| format!("error(0.1) D{bit} L{bit}\n")).collect();
    let model = Arc::new(Model::parse(text.as_bytes()).unwrap());
    let place = tempfile::tempdir().unwrap();
    let mut commands = Vec::new();
    if has_python() {
        commands.push(Command::new("python3"));
        commands[0].arg(folder().join("send.py"));
    }
    {
        let program = place.path().join("send");
        compile(&folder().join("send.c"), &program);
        commands.push(Command::new(program));
    }
    for mut command in commands {
        let home = beside_another();
        let file = home.file("shots.b8");
        let shots = [[0x11, 0, 0, 0, 0, 0, 0, 0x20, 0x30], [1, 0, 0, 0, 0, 0, 0, 0, 0]];
        std::fs::write(&file, shots.concat()).unwrap();
        let (engine, _) = start(&profile(), &model, LivePlace::parse("shm:example").unwrap(), None);
        let output = command.arg(home.boards().join("input-example")).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0 0 302000000000000011\n1 0 1\n", "{said}");
        drained(engine);
    }
}

#[test]
fn the_example_in_python_says_why_it_cannot_have_a_region() {
    if !has_python() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let cut = place.path().join("input-cut");
    std::fs::write(&cut, "PWSHM001").unwrap();
    for (region, part) in [(place.path().join("none"), "start: pinwheel run"), (cut, "no whole region")] {
        let output =
            Command::new("python3").arg(folder().join("send.py")).arg(region).arg("shots.b8").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.trim().lines().count() == 1 && said.contains(part), "{said}");
    }
}
