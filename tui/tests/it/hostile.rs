//! Hostile input of every kind that the program takes, drawn from a seed.
//!
//! A generator makes one hundredth of its full count, unless `PINWHEEL_HOSTILE_PERCENT` says otherwise;
//! `PINWHEEL_HOSTILE_SEED` (0) chooses what it draws. Each one prints what it did as
//! `HOSTILE name=… amount=… unit=… seed=…`. `.ci/long hostile` runs them with new seeds and adds the amounts up.
//!
//! The claim is the same for each: the program ends with a status that it documents, in time, without a panic, and
//! nothing of the input reaches the terminal as a control character.

mod profiles;
mod recordings;
mod sockets;
mod region;
mod control;
mod screen;
mod directories;

use crate::world::{DEADLINE, Ran, World, until};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Instant;

/// What one generator has to do in this run.
struct Campaign {
    name: &'static str,
    unit: &'static str,
    seed: u64,
    amount: u64,
    random: Xoshiro256PlusPlus,
}

impl Campaign {
    /// One hundredth of `full`, or the share that the environment asks for; at least one.
    fn new(name: &'static str, unit: &'static str, full: u64) -> Campaign {
        let number = |variable: &str, otherwise: u64| {
            std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a whole number"))
        };
        let seed = number("PINWHEEL_HOSTILE_SEED", 0);
        let amount = (full * number("PINWHEEL_HOSTILE_PERCENT", 1)).div_ceil(100).max(1);
        // Two generators of one seed draw different numbers.
        let mixed = name.bytes().fold(seed, |mixed, byte| mixed.wrapping_mul(0x100_0000_01B3) ^ u64::from(byte));
        Campaign { name, unit, seed, amount, random: Xoshiro256PlusPlus::seed_from_u64(mixed) }
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.next_u64() % end.max(1) as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.random.next_u64().to_le_bytes()[0]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// One of them.
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Damages some bytes: overwritten, cut off, inserted, doubled, or set to zero.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + 1 + self.below(64)).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => {
                    let count = 1 + self.below(64);
                    let inserted = self.bytes(count);
                    bytes.splice(at..at, inserted);
                }
                2 if at < end => bytes[at..end].fill(0),
                3 if at < end => bytes[at..end].fill(0xFF),
                4 if at < end => {
                    let doubled = bytes[at..end].to_vec();
                    bytes.splice(at..at, doubled);
                }
                _ if at < end => bytes[at] = self.byte(),
                _ => bytes.push(0x1B),
            }
        }
    }

    /// Says how much was done.
    fn done(self) {
        let Campaign { name, unit, seed, amount, .. } = self;
        eprintln!("HOSTILE name={name} amount={amount} unit={unit} seed={seed}");
    }
}

/// A program under attack. What it prints goes to files, so that a full pipe never stops it.
struct Running {
    child: Child,
    words: String,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    fn start(world: &World, words: &str) -> Running {
        Running::start_as(world, words, world.command(words))
    }

    fn start_as(world: &World, words: &str, mut command: Command) -> Running {
        let (out, err) = (world.path("stdout"), world.path("stderr"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { child: command.spawn().unwrap(), words: words.to_owned(), out, err }
    }

    /// An engine that takes shots until it is told to stop.
    fn engine(world: &World, more: &str) -> Running {
        let profile = crate::world::patient(world);
        let running =
            Running::start(world, &format!("run --json {profile} --rate 500 --duration 1h --logs logs {more}"));
        until("an engine that is live", || world.run("ctl status").status == Some(0));
        running
    }

    fn error_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    fn signal(&self, signal: Signal) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits for its end, which must come in time.
    #[track_caller]
    fn end(mut self) -> Ran {
        let end = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "{}: does not end: {}", self.words, self.error_text());
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        Ran {
            words: self.words.clone(),
            status: status.code(),
            out: fs::read(&self.out).unwrap(),
            err: self.error_text(),
        }
    }

    /// Asks an engine to end; its report must say that no shot was lost.
    #[track_caller]
    fn drained(self) -> serde_json::Value {
        self.signal(Signal::TERM);
        let ran = self.end();
        is_sound(&ran, &[143, 1]);
        let report = ran.json();
        assert_eq!((&report["lost"], &report["duplicated"]), (&0.into(), &0.into()), "{report}");
        report
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
#[track_caller]
fn ran(world: &World, words: &str) -> Ran {
    Running::start(world, words).end()
}

/// No signal, no panic, an expected status, and no control character for the terminal.
#[track_caller]
fn is_sound(ran: &Ran, statuses: &[i32]) {
    let Ran { words, status, out, err } = ran;
    assert!(status.is_some_and(|status| statuses.contains(&status)), "{words}: {status:?}: {err}");
    assert!(!err.contains("panicked"), "{words}: {err}");
    let is_control = |c: char| c.is_control() && !"\n\t".contains(c);
    assert!(!err.contains(is_control), "{words}: {err:?}");
    assert!(!String::from_utf8_lossy(out).contains(is_control), "{words}: {:?}", String::from_utf8_lossy(out));
}
