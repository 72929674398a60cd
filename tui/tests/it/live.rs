//! Two programs: an engine with a live source, and `pinwheel send`.

use crate::world::{Ran, World, engine, golden, has_keys, patient, word};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};

/// The golden set through `source`: predictions as the reference's, and an engine that ends in order.
fn golden_through(source: &str, options: &str) {
    let world = World::new();
    let dem = word(&golden("surf_z_d3_r3_p0.005.dem"));
    let words = format!("run --json {} --dem {dem} --streams 3 --input {source} --logs logs", patient(&world));
    let run = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&run);
    let shots = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let sent = world.run(&format!("send {shots} {source} --json --predictions p.b8 {options}"));
    kill_process(pid, Signal::INT).unwrap();
    let ran = Ran::new(&words, run.wait_with_output().unwrap());
    let sent = sent.exits(0).json();
    has_keys(&sent, "sent answered lost round_trip_ns epoch");
    has_keys(&sent["round_trip_ns"], "p50 p90 p99 p999 max");
    let expected = fs::read(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap();
    let shots = expected.len() as u64;
    assert_eq!(["sent", "answered", "lost"].map(|key| sent[key].as_u64()), [Some(shots), Some(shots), Some(0)]);
    let differ = fs::read(world.path("p.b8")).unwrap().iter().zip(&expected).filter(|(a, b)| a != b).count();
    assert!(differ <= 1, "{differ} of {shots}");
    let report = ran.exits(130).json();
    let live = &report["sources"][0];
    assert_eq!([&live["accepted"], &live["answered"], &report["lost"]].map(|n| n.as_u64().unwrap()), [shots, shots, 0]);
    assert_eq!(live["name"].as_str(), Some(source));
    assert_eq!(live["streams"].as_array().unwrap().len(), 3);
}

#[test]
fn the_golden_set_sent_over_udp_is_predicted_as_from_a_file() {
    let _one = engine();
    // A port that was free a moment ago.
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // With 64 on their way at most no buffer overflows, however busy the machine is: UDP would lose what does.
    golden_through(&format!("udp:{at}"), "--rate max --parts 3");
}

#[test]
fn the_documents_client_gets_its_answers() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not here: the page's program is not run");
        return;
    }
    let _one = engine();
    let world = World::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/docs/src/reference/datagrams.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, program) = page.split_once("```python\n").unwrap();
    let program = world.put("client.py", program.split_once("```").unwrap().0);
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dem = word(&golden("surf_z_d3_r3_p0.005.dem"));
    let words = format!("run --json {} --dem {dem} --input udp:{at} --logs logs", patient(&world));
    let run = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It waits until the engine is there.
    let shots = golden("surf_z_d3_r3_p0.005.dets.b8");
    let ran = Command::new("python3").arg(program).arg(at.port().to_string()).arg(shots).output().unwrap();
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let report = Ran::new(&words, run.wait_with_output().unwrap()).exits(130).json();
    let expected = fs::read(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap();
    let flipped = expected.iter().filter(|observables| **observables > 0).count();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(out.starts_with(&format!("{} shots, {flipped} flipped;", expected.len())), "{out}{err}");
    assert_eq!(report["answered"].as_u64(), Some(expected.len() as u64));
}

#[test]
fn the_golden_set_sent_over_a_unix_socket_is_predicted_as_from_a_file() {
    let _one = engine();
    let folder = tempfile::tempdir().unwrap();
    golden_through(&format!("unix:{}", folder.path().join("shots").display()), "--rate 5000");
}

#[test]
fn the_golden_set_sent_through_shared_memory_is_predicted_as_from_a_file() {
    let _one = engine();
    golden_through("shm:golden", "--rate max");
}

#[test]
fn a_send_whose_engine_takes_no_more_shots_ends_and_says_how_many_it_did_not_send() {
    let _one = engine();
    let world = World::new();
    let [dem, shots] = ["surf_z_d3_r3_p0.005.dem", "surf_z_d3_r3_p0.005.dets.b8"].map(|name| word(&golden(name)));
    for (source, rate) in [("unix:shots", "500"), ("unix:shots", "max"), ("shm:ends", "500")] {
        let words = format!("run --json {} --dem {dem} --count 50 --input {source} --logs logs", patient(&world));
        let run = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let refused = world.run(&format!("send {shots} {source} --laps 4294967295")).exits(2).err;
        assert!(refused.contains("at most 1000000000") && refused.trim().lines().count() == 1, "{refused}");
        let sent = world.run(&format!("send {shots} {source} --rate {rate} --predictions p.b8 --json"));
        Ran::new(&words, run.wait_with_output().unwrap()).exits(0);
        let sent = sent.exits(1).json();
        let count = |key: &str| sent[key].as_u64().unwrap();
        // A socket may lose answers for which its reader, on a busy machine, is too late.
        let answered_min = if source.starts_with("shm:") { 50 } else { 1 };
        assert!(count("answered") >= answered_min && count("unsent") > 0, "{source}: {sent}");
        let all = fs::metadata(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap().len();
        let written = fs::metadata(world.path("p.b8")).unwrap().len();
        assert_eq!((count("sent") + count("unsent"), written), (all, all), "{source}: {sent}");
    }
}

#[test]
fn nobody_to_send_to_is_said_in_one_sentence() {
    let world = World::new();
    let shots = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let refused = world.run(&format!("send {shots} unix:{}", world.path("nobody").display())).exits(2);
    assert!(refused.err.contains("pinwheel run --input") && refused.err.trim().lines().count() == 1, "{}", refused.err);
    for place in ["tcp:127.0.0.1:1", "udp:127.0.0.1", "shm:../x"] {
        let refused = world.run(&format!("send {shots} {place}")).exits(2);
        assert!(refused.err.contains("udp:127.0.0.1:7000"), "{}", refused.err);
    }
}
