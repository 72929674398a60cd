//! Shots through shared memory by the clients of `engine/shm`, in C and in Python, and by `pinwheel send`.
//!
//! A client that is killed leaves a shot half written and, as it dies, nonsense in the words that it may
//! write; the one after it must get every answer. The region is written with `pwrite`, which a mapping sees.

use super::datagrams::{most_shots, soft_option};
use super::{Ending, Models, settle, start_live};
use crate::draw::Draw;
use crate::engine::{Engine, PATIENCE};
use crate::faults::Target;
use crate::ledger::{Answer, Ledger};
use crate::profile;
use crate::tally::Tally;
use crate::world::{Hang, Ran, World, tail};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Where a client's words are in the header, and what the header says of the records.
const SESSION_AT: u64 = 256;
const CLIENT_WORDS: u64 = 3;
const HEADER_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    C,
    Python,
    Send,
}

pub fn run(world: &World, models: &mut Models, draw: &mut Draw, tally: &mut Tally) {
    let (model, name) = models.draw(draw);
    let map = draw.one_in(4).then(|| model.soft_map(draw));
    let profile = profile::draw(draw, if map.is_some() { profile::Kind::Soft } else { profile::Kind::Exact }, name);
    let prepared = world.write("profiles/drawn.ron", &profile.text).and_then(|_| soft_option(world, map.as_ref()));
    let option = match prepared {
        Ok(option) => option,
        Err(error) => return tally.violation("the round's files cannot be made", error.to_string()),
    };
    let words =
        format!("run --profile profiles/drawn.ron --dem {name} --input shm:s --logs logs --json --headless{option}");
    let ending = *draw.pick(&[Ending::Term, Ending::Int, Ending::Drain, Ending::Kill]);
    let Some(mut engine) = start_live(world, &words, tally) else { return };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let target = Target::of_clients(world, engine.pid, &profile, &done, 60);
        let own = draw.fork();
        let injector = scope.spawn(move || target.inject(own));
        for session in (0..draw.between(2, 6)).rev() {
            let mut clients = vec![Client::Send];
            clients.extend(world.tree.c_client.as_ref().map(|_| Client::C));
            clients.extend(world.tree.python_client.as_ref().map(|_| Client::Python));
            if clients.len() < 3 {
                tally.not_permitted("no C compiler or no Python".into());
            }
            let client = *draw.pick(&clients);
            let most = most_shots(name, map.is_some()).min(if client == Client::Python { 1_500 } else { 40_000 });
            let count = draw.between(1, most);
            // Some clients of an engine with a map send no soft bytes.
            let own_map = map.as_ref().filter(|_| !draw.one_in(4));
            let shots = model.draw(draw, count as usize, own_map);
            let has_soft = own_map.is_some();
            let mut ledger = Ledger::new(shots.right);
            let killed_after = (session > 0 && draw.one_in(2)).then(|| Duration::from_micros(draw.below(60_000)));
            let written = world.write("shots.b8", &shots.bits).and_then(|_| world.write("soft.b8", &shots.soft));
            if let Err(error) = written {
                tally.violation("the round's files cannot be made", error.to_string());
                break;
            }
            if !serve(world, &mut engine, (client, has_soft), &mut ledger, killed_after, tally) {
                break;
            }
            if killed_after.is_some() && draw.one_in(2) {
                scribble(world, draw);
                tally.fault("stray writes in the region");
            }
        }
        done.store(true, Ordering::Relaxed);
        if let Ok(faults) = injector.join() {
            tally.add(faults);
        }
    });
    super::datagrams::finish(world, &mut engine, ending, profile.may_err, tally);
}

/// Runs one client; false if the engine does not go on.
fn serve(
    world: &World,
    engine: &mut Engine,
    (client, has_soft): (Client, bool),
    ledger: &mut Ledger,
    killed_after: Option<Duration>,
    tally: &mut Tally,
) -> bool {
    let region = world.shm.join("input-s");
    let mut command = match (client, &world.tree.c_client, &world.tree.python_client) {
        (Client::C, Some(program), _) => Command::new(program),
        (Client::Python, _, Some(script)) => {
            let mut python = Command::new("python3");
            python.arg(script);
            python
        }
        _ => {
            let option = if has_soft { " --soft soft.b8" } else { "" };
            let mut send =
                world.command(&format!("send shots.b8 shm:s --rate max --predictions predictions.b8 --json{option}"));
            if let Some(after) = killed_after {
                return killed(world, &mut send, after, tally);
            }
            return sent(world, send, ledger, tally);
        }
    };
    command.arg(&region).arg("shots.b8").args(has_soft.then_some("soft.b8"));
    world.dress(&mut command);
    if let Some(after) = killed_after {
        return killed(world, &mut command, after, tally);
    }
    let name = format!("{client:?} client");
    let ran = match world.finish(command, &name, PATIENCE * 2) {
        Ok(ran) => ran,
        Err(Hang(mut evidence)) => {
            evidence["engine"] = crate::world::threads(engine.pid);
            tally.lost += ledger.shots() as u64;
            tally.hang(name, evidence);
            return false;
        }
    };
    if ran.code() != 0 {
        // Both clients give up after a minute or two: under a heavy load that is not the engine's doing, but it is said.
        tally.violation(format!("{name} gave up: {}", tail(&ran.err)), crate::world::threads(engine.pid));
    }
    for line in ran.out.lines() {
        let mut parts = line.split(' ');
        let index = parts.next().and_then(|index| index.parse().ok());
        let status = parts.next().and_then(|status| status.parse::<u64>().ok());
        let flips = parts.next().and_then(|flips| u64::from_str_radix(flips, 16).ok());
        match (index, status, flips) {
            (Some(index), Some(0), Some(flips)) => ledger.answer(index, Answer::Exact(flips & 1 == 1)),
            (Some(index), Some(1..256), _) => ledger.answer(index, Answer::Error),
            _ => tally.violation(format!("{name} got {line}"), ran.err.clone()),
        }
    }
    settle(ledger, if ran.code() == 0 { ledger.shots() as u64 } else { ledger.answered }, &name, tally);
    true
}

/// `pinwheel send` to its end.
fn sent(world: &World, command: Command, ledger: &mut Ledger, tally: &mut Tally) -> bool {
    let ran: Ran = match world.finish(command, "send", PATIENCE * 2) {
        Ok(ran) => ran,
        Err(Hang(evidence)) => {
            tally.lost += ledger.shots() as u64;
            tally.hang("send", evidence);
            return false;
        }
    };
    let report = crate::engine::report(&ran.out).unwrap_or_default();
    let predictions = std::fs::read(world.path("predictions.b8")).unwrap_or_default();
    let is_whole = report["answered"].as_u64() == Some(ledger.shots() as u64) && predictions.len() == ledger.shots();
    if let Some(trouble) = ran.trouble(&[0, 1]).or((!is_whole).then(|| "not all shots were answered".into())) {
        tally.violation(format!("send: {trouble}"), report.clone());
    }
    let has_errors = report["errors"].as_object().is_some_and(|errors| !errors.is_empty());
    for (index, byte) in predictions.iter().enumerate() {
        ledger
            .answer(index as u64, if has_errors { Answer::Other(byte & 1 == 1) } else { Answer::Exact(byte & 1 == 1) });
    }
    settle(ledger, ledger.shots() as u64, "pinwheel send", tally);
    true
}

/// Starts a client and kills it; its shots are answered to nobody.
fn killed(world: &World, command: &mut Command, after: Duration, tally: &mut Tally) -> bool {
    let null = || std::process::Stdio::null();
    match command.stdout(null()).stderr(null()).spawn() {
        Ok(mut child) => {
            thread::sleep(after);
            let _ = child.kill();
            // One that was quicker was not killed.
            if child.wait().is_ok_and(|status| status.signal() == Some(9)) {
                tally.fault("client killed");
            }
        }
        Err(error) => tally.violation("a client does not start", format!("{}: {error}", world.dir.display())),
    }
    true
}

/// Nonsense in everything that a client may write: its words of the header, and the shots' records.
fn scribble(world: &World, draw: &mut Draw) {
    let Ok(region) = OpenOptions::new().read(true).write(true).open(world.shm.join("input-s")) else { return };
    let mut header = [0; 4096];
    if region.read_exact_at(&mut header, 0).is_err() {
        return;
    }
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
    let (slots, shots_at, stride) = (word(24), word(32), word(40));
    for _ in 0..draw.between(1, 3_000) {
        let at = match draw.below(10) {
            0 => SESSION_AT + 8 * draw.below(CLIENT_WORDS),
            1 => HEADER_BYTES - 8 * draw.between(1, 100),
            // A head that looks as if its turn had come.
            2 => shots_at + draw.below(slots.max(1)) * stride,
            _ => shots_at + (draw.below((slots * stride / 8).max(1))) * 8,
        };
        let value = if draw.one_in(2) { draw.next() } else { draw.below(4096) | draw.below(20) << 32 };
        let _ = region.write_all_at(&value.to_le_bytes(), at);
    }
}
