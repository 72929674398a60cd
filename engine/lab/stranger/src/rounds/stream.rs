//! Shots through standard input or a file; answers through a pipe or a file; faults meanwhile; any end.
//!
//! Threads: one writes shots, one reads answers, one injects faults, the round's own watches. A shot is
//! accepted if the input ended by itself (then all are), else if the report counts it as submitted, or
//! the board of a killed engine does.

use super::datagrams::{most_shots, soft_option};
use super::{Ending, Models, judge_end, judge_kill, postmortem, settle};
use crate::after::{Ends, look};
use crate::answers::parse;
use crate::draw::Draw;
use crate::engine::{Engine, Out, PATIENCE};
use crate::faults::Target;
use crate::ledger::{Answer, Ledger};
use crate::profile::{self, Profile};
use crate::tally::Tally;
use crate::world::{Hang, Ran, World, resident_kb, tail, threads};
use rustix::fs::{FileType, Mode};
use serde_json::json;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Growth of resident memory from a fifteenth of the shots to the last, kB: a byte for each of a million shots is 1,000.
const GROWTH_KB_MAX: i64 = 4_096;
/// The recorder keeps the last ten minutes in memory: what it may grow by in a second, kB, and for how long.
const RECORDED_KB_PER_S: i64 = 30;
const RECORDED_S: u64 = 600;

pub fn run(world: &World, models: &mut Models, draw: &mut Draw, tally: &mut Tally, is_burst: bool) {
    let kind = if is_burst { profile::Kind::Fast } else { profile::Kind::Any };
    let (model, name) = if is_burst { (&mut models.d3, "surface_d3") } else { models.draw(draw) };
    let map = (!is_burst && draw.one_in(5)).then(|| model.soft_map(draw));
    let profile = profile::draw(draw, if map.is_some() { profile::Kind::Soft } else { kind }, name);
    let count =
        if is_burst { draw.between(300_000, 2_000_000) } else { draw.between(1, most_shots(name, map.is_some())) };
    let shots = model.draw(draw, count as usize, map.as_ref());
    // Soft bytes come beside a file of shots.
    let source = match draw.below(5) {
        0 | 1 if map.is_some() => Source::File,
        0 => Source::File,
        1 => Source::Fifo,
        _ if map.is_some() => Source::Fifo,
        _ => Source::Pipe,
    };
    let ending = match draw.below(8) {
        0 => Ending::Term,
        1 => Ending::Int,
        2 => Ending::Drain,
        3 => Ending::Stop,
        4 => Ending::Kill,
        _ => Ending::Input,
    };
    // Where the engine is killed answers in a file would never appear.
    let to_file = ending != Ending::Kill && draw.one_in(4);
    let has_predictions = ending == Ending::Input && draw.one_in(3);
    let prepared = world
        .write("profiles/drawn.ron", &profile.text)
        .and_then(|_| soft_option(world, map.as_ref()))
        .and_then(|option| {
            world.write("soft.b8", &shots.soft)?;
            world.write("shots.b8", if source == Source::Pipe { &[] } else { &shots.bits[..] })?;
            let fed = (source == Source::Fifo).then(|| Fed::start(world)).transpose()?;
            Ok((if map.is_some() { option + " --soft soft.b8" } else { option }, fed))
        });
    let (option, _fed) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return tally.violation("the round's files cannot be made", error.to_string()),
    };
    let words = format!(
        "run --profile profiles/drawn.ron --dem {name} --shots {} --answers {} --rate max --logs logs --json{}{option}",
        match source {
            Source::File => "shots.b8",
            Source::Fifo => "shots.fifo",
            Source::Pipe => "-",
        },
        if to_file { "answers.jsonl" } else { "-" },
        if has_predictions { " --predictions predictions.b8" } else { "" },
    );
    let stdin = if source == Source::Pipe { Stdio::piped() } else { Stdio::null() };
    let mut engine = match Engine::start(world, &words, stdin, if to_file { Out::File } else { Out::Pipe }) {
        Ok(engine) => engine,
        Err(error) => return tally.violation(format!("{words}: not started"), error.to_string()),
    };
    let ingress = match source {
        Source::File => "file",
        Source::Fifo => "fifo",
        Source::Pipe => "standard input",
    };
    let plan = Plan {
        profile: &profile,
        shots: &shots.bits,
        ending,
        end_at: draw.below(count.max(2)),
        gap_ms: if is_burst { 120 } else { 0 },
    };
    let mut ledger = Ledger::new(shots.right);
    let Some((ran, printed)) = drive(world, &mut engine, &mut ledger, &plan, draw.fork(), tally) else { return };
    if to_file {
        match fs::read(world.path("answers.jsonl")) {
            Ok(bytes) => drop(take(&mut ledger, &bytes, plan.profile, true, tally)),
            Err(error) => tally.violation(format!("{words}: no file of answers"), error.to_string()),
        }
    }
    if ending == Ending::Kill && ran.status.signal().is_some() {
        judge_kill(&ran, tally);
        let accepted = postmortem(world, engine.pid, tally).unwrap_or(ledger.answered);
        if accepted < ledger.answered {
            tally.violation(
                format!(
                    "the board of the killed engine has {accepted} submitted, but {} were answered",
                    ledger.answered
                ),
                words.clone(),
            );
        }
        tally.killed_with_engine += accepted.saturating_sub(ledger.answered);
        settle(&ledger, ledger.answered, ingress, tally);
        tally.accepted += accepted.saturating_sub(ledger.answered);
        return look(world, Ends::Killed, tally);
    }
    let ran = if to_file { ran } else { Ran { out: printed, ..ran } };
    let Some(report) =
        judge_end(&ran, if ending == Ending::Kill { Ending::Input } else { ending }, profile.may_err, tally)
    else {
        // Refused, or no report of what it accepted: that is the violation, and no shot is counted.
        return;
    };
    let submitted = report["submitted"].as_u64().unwrap_or(0);
    let is_whole = report["ended_by"] == "input";
    if is_whole && submitted != count {
        tally.violation(format!("{words}: {submitted} of {count} shots were submitted"), report["ended_by"].clone());
    }
    settle(&ledger, if is_whole { count } else { submitted }, ingress, tally);
    if has_predictions && is_whole {
        let size = fs::metadata(world.path("predictions.b8")).map_or(0, |found| found.len());
        if size != count {
            tally.violation(format!("{words}: {size} predictions of {count} shots"), json!(null));
        }
    }
    look(world, Ends::Orderly, tally);
}

/// Where the shots come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    File,
    Fifo,
    Pipe,
}

/// A program that writes the file of shots into a FIFO; killed on drop, if the engine has not read all.
struct Fed(Child);

impl Fed {
    fn start(world: &World) -> io::Result<Fed> {
        let path = world.path("shots.fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let mut command = Command::new("sh");
        world.dress(command.args(["-c", "exec cat shots.b8 >shots.fifo"]));
        Ok(Fed(command.stderr(Stdio::null()).spawn()?))
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// What `drive` needs beside the engine.
struct Plan<'a> {
    profile: &'a Profile,
    shots: &'a [u8],
    ending: Ending,
    /// Answers after which the engine is to end.
    end_at: u64,
    gap_ms: u64,
}

/// Runs all threads until the engine has ended. What it printed behind the answers is the report.
fn drive(
    world: &World,
    engine: &mut Engine,
    ledger: &mut Ledger,
    plan: &Plan,
    draw: Draw,
    tally: &mut Tally,
) -> Option<(Ran, String)> {
    let (stdin, stdout) = (engine.stdin(), engine.stdout());
    let (answered, done, reader_stops_ms) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let is_piped = stdout.is_some();
    thread::scope(|scope| {
        if let Some(mut stdin) = stdin {
            // An engine that ends early closes the pipe: no fault of this thread.
            scope.spawn(move || drop(stdin.write_all(plan.shots)));
        }
        let (answered, done, reader_stops_ms) = (&answered, &done, &reader_stops_ms);
        let reader = stdout.map(|mut stdout| {
            scope.spawn(move || {
                let (mut buffer, mut kept, mut found) = (vec![0; 1 << 16], Vec::new(), Tally::default());
                while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                    kept.extend_from_slice(&buffer[..read]);
                    let used = take(ledger, &kept, plan.profile, false, &mut found);
                    kept.drain(..used);
                    answered.store(ledger.answered, Ordering::Relaxed);
                    let ms = reader_stops_ms.swap(0, Ordering::Relaxed);
                    if ms > 0 && !done.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(ms));
                    }
                }
                (kept, found)
            })
        });
        let target = Target {
            world,
            pid: engine.pid,
            any_decoder: true,
            has_rate: true,
            streams: plan.profile.streams,
            silos: plan.profile.silos,
            is_soft: plan.profile.is_soft,
            is_watched: plan.profile.is_watched,
            done,
            reader_stops_ms: is_piped.then_some(reader_stops_ms),
            gap_ms: plan.gap_ms,
        };
        let injector = scope.spawn(move || {
            thread::sleep(Duration::from_millis(300));
            target.inject(draw)
        });
        let outcome = watch(world, engine, plan, is_piped.then_some(answered), tally);
        done.store(true, Ordering::Relaxed);
        if let Ok(faults) = injector.join() {
            tally.add(faults);
        }
        let (kept, found) = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        tally.add(found);
        outcome.map(|ran| (ran, String::from_utf8_lossy(&kept).into_owned()))
    })
}

/// Watches memory and progress, and ends the engine when its time has come.
fn watch(
    world: &World,
    engine: &mut Engine,
    plan: &Plan,
    answered: Option<&AtomicU64>,
    tally: &mut Tally,
) -> Option<Ran> {
    let (mut moved_at, mut last, mut asked) = (Instant::now(), (0, 0), plan.ending == Ending::Input);
    let count = (plan.shots.len() as u64).max(1);
    let (mut resident_first, mut resident_last) = (None, None);
    let began = Instant::now();
    while !engine.has_ended() {
        let now = answered.map_or(0, |answered| answered.load(Ordering::Relaxed));
        // Without a pipe the only sign of progress is the time that the processor spends.
        let sign = (now, if answered.is_none() { cpu_ticks(engine.pid) } else { 0 });
        if sign != last {
            (moved_at, last) = (Instant::now(), sign);
        }
        if now > 100_000 && now * 15 > count {
            resident_last = resident_kb(engine.pid).or(resident_last);
            resident_first = resident_first.or(resident_last);
        }
        let is_time =
            if answered.is_some() { now >= plan.end_at } else { moved_at.elapsed() > Duration::from_millis(5) };
        if !asked && is_time && (answered.is_some() || cpu_ticks(engine.pid) > 20 + plan.end_at % 200) {
            plan.ending.ask(world, engine, tally);
            asked = true;
        }
        if moved_at.elapsed() > PATIENCE {
            let evidence = json!({ "command": engine.words, "answered": now, "threads": threads(engine.pid) });
            tally.hang("no progress", evidence);
            let _ = engine.child.kill();
            let _ = engine.child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
    if let (Some(first), Some(last)) = (resident_first, resident_last) {
        tally.resident_growth_kb_max = tally.resident_growth_kb_max.max(last - first);
        let recorded = RECORDED_KB_PER_S * began.elapsed().as_secs().min(RECORDED_S).cast_signed();
        if last - first > GROWTH_KB_MAX + recorded {
            tally.violation(format!("resident memory grew by {} kB", last - first), engine.words.clone());
        }
    }
    match engine.end(PATIENCE) {
        Ok(ran) => Some(ran),
        Err(Hang(evidence)) => {
            tally.hang("end", evidence);
            None
        }
    }
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = crate::world::read(std::path::Path::new(&format!("/proc/{pid}/stat")));
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |parts| parts.1).split_whitespace().collect();
    fields.get(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Takes all whole lines of answers; returns how many bytes they had. The report, which is no answer, stays.
fn take(ledger: &mut Ledger, bytes: &[u8], profile: &Profile, is_all: bool, tally: &mut Tally) -> usize {
    let mut from = 0;
    while let Some(length) = bytes[from..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[from..from + length];
        match parse(line) {
            Some(found) => {
                let answer: Answer = found.answer(profile.is_exact);
                ledger.answer(found.seq.saturating_mul(profile.streams).saturating_add(found.stream), answer);
            }
            None if line.starts_with(b"{\"version\"") && !is_all => return from,
            None => tally.violation("a line of answers cannot be read", tail(&String::from_utf8_lossy(line))),
        }
        from += length + 1;
    }
    from
}
