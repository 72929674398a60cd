//! The stranger: drives the release binary of Pinwheel as somebody would who has only its README and its book.
//!
//! ```sh
//! cargo run --release --manifest-path engine/lab/stranger/Cargo.toml -- --seed 1 --duration 60s --json
//! ```
//!
//! It runs rounds, one after another, until the time is over. A round draws a profile, an ingress, a model,
//! faults and an end, starts the program, sends shots, injects the faults and checks from outside. The seed
//! and a round's number say what it draws: `--seed N --round K` runs round K again. When things happen is
//! left to the machine, so a violation that depends on time may need several tries.
//!
//! # What counts as lost
//! | ingress | a shot is accepted if | it is lost if |
//! |---|---|---|
//! | standard input, file | the input ended by itself: all; else the report counts it as submitted | `--answers` has no line for it |
//! | UDP, Unix socket | its answer came back | its sender sends it again and again, and gets no answer |
//! | shared memory | its client wrote it | the client ends without an answer to it |
//!
//! An answer with an error code is an answer. A shot whose engine was killed by signal 9 is not lost:
//! `postmortem` tells its end (`killed_with_engine`). A shot whose client was killed is answered to nobody.
//! *Wrong*: a decoded answer of `matching` or `lookup` whose observables no correction of least weight has,
//! computed here from the error model ([`model`]). Other decoders are to agree in nine of ten shots.
//! *Hang*: anything that does not end, or does not go on, within [`engine::PATIENCE`].
//!
//! Exit status 0: sound; 1: a violation; 2: the environment cannot be used. Whatever ends it, its
//! directories and the programs in them go with it ([`leftovers`]).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "harness: it waits for other processes, and is no part of the engine"
)]

mod after;
mod answers;
mod draw;
mod engine;
mod faults;
mod leftovers;
mod ledger;
mod model;
mod packet;
mod profile;
mod rounds;
mod soft;
mod tally;
mod terminal;
mod world;

use leftovers::Remover;
use model::Model;
use rounds::{Kind, Models};
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use tally::Tally;
use world::Tree;

const USAGE: &str = "\
usage: pinwheel-stranger [--seed N] [--duration D] [--json] [--binary PATH] [--round K] [--kind NAME] [--machine-faults]

  --seed N           draws the rounds [default: 1]
  --duration D       begins rounds until then: 60s, 30m, 2h [default: 60s]
  --json             prints one JSON object
  --binary PATH      the program [default: target/release/pinwheel of the tree]
  --round K          runs this round alone
  --kind NAME        only rounds of this kind: burst, stream, datagrams, region, starved, corrupted, console
  --machine-faults   also takes cores offline and sets the clock: disturbs whoever works on the machine
";

#[derive(Debug)]
struct Options {
    seed: u64,
    duration: Duration,
    json: bool,
    binary: Option<PathBuf>,
    round: Option<u64>,
    kind: Option<Kind>,
    machine_faults: bool,
}

fn options() -> Option<Options> {
    let mut options = Options {
        seed: 1,
        duration: Duration::from_secs(60),
        json: false,
        binary: None,
        round: None,
        kind: None,
        machine_faults: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => options.seed = words.next()?.parse().ok()?,
            "--duration" => options.duration = duration(&words.next()?)?,
            "--json" => options.json = true,
            "--binary" => options.binary = Some(words.next()?.into()),
            "--round" => options.round = Some(words.next()?.parse().ok()?),
            "--kind" => options.kind = Some(Kind::from_name(&words.next()?)?),
            "--machine-faults" => options.machine_faults = true,
            _ => return None,
        }
    }
    Some(options)
}

fn duration(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[number.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?))
}

/// Mounts of the rounds belong to a name space of this process, so that none outlives it.
fn enter_own_mounts() {
    const MARK: &str = "PINWHEEL_STRANGER_MOUNTS";
    if rustix::process::geteuid().is_root() && std::env::var_os(MARK).is_none() {
        let is_possible =
            Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success());
        if is_possible && let Ok(own) = std::env::current_exe() {
            // It returns only if it fails: then mounts are refused later, and said.
            let _ = Command::new("unshare")
                .args(["--mount", "--propagation", "private"])
                .arg(own)
                .args(std::env::args_os().skip(1))
                .env(MARK, "1")
                .exec();
        }
    }
}

fn tree(options: &Options) -> Result<(Tree, Models), String> {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let binary = options.binary.clone().unwrap_or_else(|| engine.join("../target/release/pinwheel"));
    let binary = fs::canonicalize(&binary)
        .map_err(|error| format!("{}: {error}; build it: cargo build --release", binary.display()))?;
    let data = engine.join("code/src/code/data");
    let models = Models {
        d3: Model::read(&data.join("surf_z_d3_r3_p0.005.dem"))?,
        d5: Model::read(&data.join("surf_z_d5_r5_p0.005.dem"))?,
    };
    let client = std::env::temp_dir().join(leftovers::prefix(std::process::id()) + "send");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O2", "-D_GNU_SOURCE", "-o"])
        .arg(&client)
        .arg(engine.join("shm/send.c"))
        .status()
        .is_ok_and(|status| status.success());
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    let tree = Tree {
        binary,
        data,
        c_client: compiled.then_some(client),
        python_client: has_python.then(|| engine.join("shm/send.py")),
        machine_faults: options.machine_faults,
    };
    Ok((tree, models))
}

fn main() -> ExitCode {
    if leftovers::removed() {
        return ExitCode::SUCCESS;
    }
    let Some(options) = options() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    enter_own_mounts();
    let _remover = match Remover::start() {
        Ok(remover) => remover,
        Err(error) => {
            eprintln!("pinwheel-stranger: found no process that removes what it leaves ({error}); raise ulimit -u");
            return ExitCode::from(2);
        }
    };
    let (tree, mut models) = match tree(&options) {
        Ok(prepared) => prepared,
        Err(sentence) => {
            eprintln!("pinwheel-stranger: {sentence}");
            return ExitCode::from(2);
        }
    };
    eprintln!("seed {}", options.seed);
    let (from, mut tally) = (Instant::now(), Tally::default());
    for number in options.round.unwrap_or(0).. {
        let began = Instant::now();
        let (name, round) = rounds::run(&tree, &mut models, options.seed, number, options.kind);
        let (shots, faults) = (round.shots, round.faults.values().sum::<u64>());
        let verdict = if round.is_sound() { "sound" } else { "VIOLATION" };
        eprintln!(
            "round {number:4} {name:10} {:6.1} s {shots:8} shots {faults:4} faults  {verdict}",
            began.elapsed().as_secs_f64()
        );
        for violation in &round.violations {
            eprintln!("    {}", violation["what"].as_str().unwrap_or(""));
        }
        tally.add_round(round, options.seed, number, &name);
        if options.round.is_some() || from.elapsed() >= options.duration {
            break;
        }
    }
    if let Some(client) = &tree.c_client {
        let _ = fs::remove_file(client);
    }
    print(&tally, &options);
    ExitCode::from(u8::from(!tally.is_sound()))
}

fn print(tally: &Tally, options: &Options) {
    let found = tally.json(options.seed);
    let text = if options.json { found.to_string() } else { serde_json::to_string_pretty(&found).unwrap_or_default() };
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}
