//! Two programs: `pinwheel run` for clients of CUDA-Q's decoding server, and its clients.

use crate::world::{Ran, World, engine, golden, patient, word};
use pinwheel_engine::code::{Component, Model};
use pinwheel_engine::feed::cudaq::frame::{self, Call};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// CUDA-Q's own example, for two decoders.
const IDENTITY: &str = "decoders:
  - id: 0
    type: multi_error_lut
    block_size: 3
    syndrome_size: 3
    H_sparse: [0, -1, 1, -1, 2, -1]
    O_sparse: [0, -1, 1, -1, 2, -1]
    D_sparse: [0, -1, 1, -1, 2, -1]
    decoder_custom_args:
      lut_error_depth: 1
  - id: -7
    type: multi_error_lut
    block_size: 3
    syndrome_size: 3
    H_sparse: [0, -1, 1, -1, 2, -1]
    O_sparse: [0, -1, 1, -1, 2, -1]
    D_sparse: [0, -1, 1, -1, 2, -1]
    decoder_custom_args:
      lut_error_depth: 1
";

/// A running server, and its output after the line that tells its ports.
struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    ready: String,
    words: String,
}

impl Server {
    fn start(world: &World, options: &str) -> Server {
        let words = format!("run {} --logs logs --ready-line {options}", patient(world));
        let mut process = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        Server { process, output, ready, words }
    }

    /// The port of a word of the line.
    fn port(&self, name: &str) -> u16 {
        let word = self.ready.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        word.unwrap_or_else(|| panic!("{name} in {:?}", self.ready)).parse().unwrap()
    }

    /// Ends it; the rest of its output.
    fn end(mut self) -> (Ran, String) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (Ran::new(&self.words, self.process.wait_with_output().unwrap()), rest)
    }
}

fn call(socket: &UdpSocket, decoder: i64, call: &Call<'_>) -> (i32, Vec<u8>) {
    let (mut request, mut reply) = (Vec::new(), [0; 256]);
    frame::write_request(1, decoder, call, &mut request);
    socket.send(&request).unwrap();
    let bytes = socket.recv(&mut reply).unwrap();
    let reply = frame::reply(&reply[..bytes]).unwrap();
    (reply.status, reply.result.to_vec())
}

#[test]
fn a_server_tells_its_ports_takes_calls_and_counts_them_as_cuda_qs_does() {
    let _one = engine();
    let world = World::new();
    world.put("decoders.yaml", IDENTITY);
    let server = Server::start(&world, "--cudaq-config decoders.yaml");
    let ports = [0, -7].map(|decoder: i64| server.port(&format!("ring{decoder}")));
    assert_eq!(
        server.ready,
        format!("QEC_DECODING_SERVER_READY port={0} transport=udp ring0={0} ring-7={1}\n", ports[0], ports[1])
    );
    assert_ne!(ports[0], ports[1]);
    for (port, decoder) in ports.into_iter().zip([0, -7]) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        for found in 0..8 {
            assert_eq!(call(&socket, decoder, &Call::Enqueue { bits: 3, packed: &[found] }), (0, vec![]));
            assert_eq!(
                call(&socket, decoder, &Call::Corrections { return_bits: 3, is_clearing: true }),
                (0, vec![found])
            );
        }
        assert_eq!(call(&socket, decoder, &Call::Reset), (0, vec![]));
    }
    let (ran, rest) = server.end();
    ran.exits(143);
    let lines: Vec<&str> = rest.lines().take(4).collect();
    assert_eq!(
        lines[..3],
        [
            "QEC_DECODING_SERVER_RING decoder=0 dispatched=17",
            "QEC_DECODING_SERVER_RING decoder=-7 dispatched=17",
            "QEC_DECODING_SERVER_DISPATCHED count=34"
        ]
    );
    assert!(lines[3].starts_with("QEC_DECODING_SERVER_MAX_CONCURRENT_DECODERS count="), "{rest}");
}

/// The text of a block of the guide's page.
fn of_the_guide(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/docs/src/guide/cudaq.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_guides_program_gets_its_corrections() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not here: the guide's program is not run");
        return;
    }
    let _one = engine();
    let world = World::new();
    world.put("decoders.yaml", of_the_guide("yaml"));
    let program = world.put("client.py", of_the_guide("python"));
    let server = Server::start(&world, "--cudaq-config decoders.yaml");
    let ran = Command::new("python3").arg(program).arg(server.port("port").to_string()).output().unwrap();
    let lines: String = (0..8).map(|found| format!("(0, b'') (0, b'\\x{found:02x}')\n")).collect();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), lines, "{}", String::from_utf8_lossy(&ran.stderr));
    server.end().0.exits(143);
}

/// An error of the golden set's model.
struct Column {
    rate: f64,
    detectors: Vec<u32>,
    observables: Vec<u32>,
}

/// A configuration of the golden set's model: detectors are measurements.
fn golden_configuration(decoders: u32) -> String {
    let model = Model::parse(&fs::read(golden("surf_z_d3_r3_p0.005.dem")).unwrap()).unwrap();
    let parts = model.errors.iter().flat_map(|error| error.components.iter().map(|part| (error.probability, part)));
    let column = |(rate, part): (f64, &Component)| Column {
        rate,
        detectors: part.detectors.clone(),
        observables: part.observables.clone(),
    };
    let columns: Vec<Column> = parts.map(column).collect();
    let sparse = |rows: u32, of: fn(&Column) -> &[u32]| -> String {
        let row = |row: u32| {
            let ones = (0..).zip(&columns).filter(|(_, column)| of(column).contains(&row));
            ones.map(|(column, _): (u32, _)| format!("{column}, ")).collect::<String>() + "-1"
        };
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    };
    let rates: Vec<String> = columns.iter().map(|column| column.rate.to_string()).collect();
    let identity: Vec<String> = (0..model.detectors).map(|detector| format!("{detector}, -1")).collect();
    let entry = |id: u32| {
        format!(
            "  - id: {id}\n    type: pymatching\n    block_size: {}\n    syndrome_size: {}\n    H_sparse: [{}]\n    \
             O_sparse: [{}]\n    D_sparse: [{}]\n    decoder_custom_args: {{merge_strategy: independent, \
             error_rate_vec: [{}]}}\n",
            columns.len(),
            model.detectors,
            sparse(model.detectors, |column| &column.detectors),
            sparse(model.observables, |column| &column.observables),
            identity.join(", "),
            rates.join(", ")
        )
    };
    format!("decoders:\n{}", (0..decoders).map(entry).collect::<String>())
}

#[test]
fn the_golden_set_sent_by_cuda_qs_protocol_is_predicted_as_from_a_file_and_kept_to_be_run_again() {
    let _one = engine();
    let world = World::new();
    world.put("decoders.yaml", golden_configuration(3));
    // A port that was free a moment ago.
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(&world, &format!("--json --cudaq-config decoders.yaml --input cudaq:{at}"));
    assert_eq!((server.port("port"), server.port("ring2")), (at.port(), at.port()));
    let shots = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let sent = world.run(&format!(
        "send {shots} cudaq:{at} --cudaq-config decoders.yaml --json --predictions p.b8 --rate max --parts 4"
    ));
    let (ran, rest) = server.end();
    let run = fs::read_dir(world.path("logs")).unwrap().next().unwrap().unwrap().path();
    let mut kept = fs::read(run.join("measurements.b8")).unwrap();
    let mut sent_bytes = fs::read(golden("surf_z_d3_r3_p0.005.dets.b8")).unwrap();
    let again = format!(
        "run --json --logs again {} --cudaq-config decoders.yaml --shots {} --predictions again.b8",
        patient(&world),
        word(&run.join("measurements.b8"))
    );
    let again = world.run(&again).exits(0).json();
    assert_eq!(again["answered"].as_u64(), Some(sent_bytes.len() as u64 / 3));
    // Decoders complete their volumes in any order.
    for bytes in [&mut kept, &mut sent_bytes] {
        let mut records: Vec<Vec<u8>> = bytes.chunks_exact(3).map(<[u8]>::to_vec).collect();
        records.sort();
        *bytes = records.concat();
    }
    assert!(kept == sent_bytes, "the file has what was sent");
    let sent = sent.exits(0).json();
    let expected = fs::read(golden("surf_z_d3_r3_p0.005.pm.b8")).unwrap();
    let count = Some(expected.len() as u64);
    assert_eq!(["sent", "answered", "lost", "errors"].map(|key| sent[key].as_u64()), [count, count, Some(0), Some(0)]);
    let differ = fs::read(world.path("p.b8")).unwrap().iter().zip(&expected).filter(|(a, b)| a != b).count();
    assert!(differ <= 1, "{differ} of {}", expected.len());
    ran.exits(143);
    let report: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    let source = &report["sources"][0];
    assert_eq!(
        (source["kind"].as_str(), source["accepted"].as_u64(), report["lost"].as_u64()),
        (Some("cudaq"), count, Some(0))
    );
    let calls: u64 = (0..3).map(|stream| source["streams"][stream]["decoder"]["enqueues"].as_u64().unwrap()).sum();
    assert_eq!(Some(calls), count.map(|count| 4 * count));
}

#[test]
fn what_cannot_be_served_is_said_in_one_sentence() {
    let world = World::new();
    world.put("qldpc.yaml", IDENTITY.replace("multi_error_lut", "nv-qldpc-decoder"));
    world.put("decoders.yaml", IDENTITY);
    for (words, part) in [
        ("run --cudaq-config qldpc.yaml", "qldpc.yaml: line 3, column 11: found type \"nv-qldpc-decoder\""),
        ("run --cudaq-config nothing.yaml", "check the path"),
        ("run --headless --ready-line", "--cudaq-config F or --input cudaq:"),
        ("run --cudaq-config decoders.yaml --cudaq-slot-size 20", "--cudaq-slot-size: found 20, expected 57..=65507"),
        ("run --cudaq-config decoders.yaml --input cudaq:0.0.0.0:0", "--allow"),
        ("run --cudaq-config decoders.yaml --dem d", "cannot be used with"),
        ("send decoders.yaml cudaq:127.0.0.1:1", "add --cudaq-config"),
        ("send decoders.yaml udp:127.0.0.1:1 --cudaq-config decoders.yaml", "name such a source"),
        ("send decoders.yaml udp:127.0.0.1:1 --cudaq-slot-size 300", "name such a source"),
    ] {
        let refused =
            world.run(&format!("{words} {}", if words.starts_with("run") { "--logs logs" } else { "" })).exits(2);
        assert!(refused.err.contains(part), "{words}: {}", refused.err);
    }
}
