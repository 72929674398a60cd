//! Faults of a running engine, one after another, in the order that the seed draws.
//!
//! Runs on a thread of its own beside the round's ingress, until the ingress says that it is done. A
//! fault counts once, whatever it consists of. Every command that it runs has a deadline, and its end is
//! judged: `ctl` returns 0, 1 or 2, a refusal is one sentence, nothing panics.

use crate::draw::Draw;
use crate::engine::PATIENCE;
use crate::profile::Profile;
use crate::tally::Tally;
use crate::terminal::Terminal;
use crate::world::{Hang, Ran, World};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The engine that gets the faults, and what they may do to it.
#[derive(Debug)]
pub struct Target<'a> {
    pub world: &'a World<'a>,
    pub pid: u32,
    /// Whether answers name their decoder, so that any may be taken.
    pub any_decoder: bool,
    /// Whether shots come at a rate of the engine's.
    pub has_rate: bool,
    pub streams: u64,
    pub silos: u64,
    /// Whether shots have soft bytes: only `matching` reads them.
    pub is_soft: bool,
    /// Whether a watchdog pins a thread again whose core was away.
    pub is_watched: bool,
    /// Set by the ingress when the engine is to be left alone.
    pub done: &'a AtomicBool,
    /// Milliseconds for which the reader of answers is to stop reading; the reader takes it.
    pub reader_stops_ms: Option<&'a AtomicU64>,
    /// Mean time between two faults, ms; 0: as many as there is time for.
    pub gap_ms: u64,
}

const FAULTS: [&str; 20] = [
    "sigstop",
    "sigstop",
    "pause",
    "rate",
    "decoder",
    "model",
    "profile",
    "note",
    "refused command",
    "control socket",
    "attach once",
    "attach console",
    "shadow",
    "acknowledge",
    "sighup",
    "replay",
    "silo",
    "move",
    "dump",
    "slow reader",
];

/// Faults of the whole machine, where `--machine-faults` permits them.
const MACHINE_FAULTS: [&str; 2] = ["core offline", "clock step"];

/// Longest time until the threads of a core that is back run on it again, on an emulated processor.
const RETURNED_WITHIN: Duration = Duration::from_secs(20);

/// Keys of a console that only reads.
const KEYS: [&[u8]; 13] = [b"\t", b"1", b"5", b"8", b"9", b"M", b"?", b"\x1b", b"j", b"[", b"f", b"\x1b[A", b":"];

impl<'a> Target<'a> {
    /// An engine whose shots come from clients.
    pub fn of_clients(world: &'a World<'a>, pid: u32, profile: &Profile, done: &'a AtomicBool, gap_ms: u64) -> Self {
        Target {
            world,
            pid,
            any_decoder: false,
            has_rate: false,
            streams: profile.streams,
            silos: profile.silos,
            is_soft: profile.is_soft,
            is_watched: profile.is_watched,
            done,
            reader_stops_ms: None,
            gap_ms,
        }
    }

    /// Injects faults until [`Target::done`].
    pub fn inject(&self, mut draw: Draw) -> Tally {
        let mut tally = Tally::default();
        while !self.done.load(Ordering::Relaxed) {
            let is_of_machine = self.world.tree.machine_faults && draw.one_in(3);
            let fault = *draw.pick(if is_of_machine { &MACHINE_FAULTS[..] } else { &FAULTS[..] });
            let mut own = draw.fork();
            self.one(fault, &mut own, &mut tally);
            let mut left = if self.gap_ms == 0 { 1 } else { draw.below(2 * self.gap_ms) };
            while left > 0 && !self.done.load(Ordering::Relaxed) {
                let step = left.min(20);
                thread::sleep(Duration::from_millis(step));
                left -= step;
            }
        }
        tally
    }

    fn one(&self, fault: &str, draw: &mut Draw, tally: &mut Tally) {
        match fault {
            "sigstop" => self.stop(draw, tally),
            "pause" => {
                self.ctl("pause", tally);
                thread::sleep(Duration::from_millis(draw.below(60)));
                self.ctl("resume", tally);
                tally.fault("pause");
            }
            "rate" if self.has_rate => {
                self.ctl(&format!("rate {}", draw.between(20_000, 2_000_000)), tally);
                self.ctl("rate max", tally);
                tally.fault("rate");
            }
            "decoder" if !self.is_soft => {
                let any = ["matching", "union-find", "lookup", "correlated"];
                let decoder = *draw.pick(if self.any_decoder { &any[..] } else { &["matching", "lookup"][..] });
                let stream =
                    if draw.one_in(2) { format!(" --stream {}", draw.below(self.streams)) } else { String::new() };
                self.ctl(&format!("decoder {decoder}{stream}"), tally);
                tally.fault("decoder");
            }
            "model" => {
                let change = draw.pick(&["model surface_d3", "model --undo", "model surface_d5"]);
                self.ctl(change, tally);
                tally.fault("model");
            }
            "profile" => {
                let (name, text) = spins(draw);
                let _ = self.world.write(&format!("profiles/{name}"), text);
                self.ctl(&format!("profile profiles/{name} --for {}ms", draw.between(1, 400)), tally);
                tally.fault("profile");
            }
            "note" => {
                let words = *draw.pick(&[
                    "plain",
                    "<script>alert(1)</script>",
                    "\u{1b}[2J",
                    "\u{7}bell",
                    "{\"version\":2}",
                    "\u{202e}reversed",
                ]);
                self.ctl(&format!("note {words}"), tally);
                tally.fault("note");
            }
            "refused command" => self.refused(draw, tally),
            "control socket" => self.socket(draw, tally),
            "attach once" => {
                let view = *draw.pick(&["overview", "threads", "streams", "rings", "alarms"]);
                let form = ["--json".into(), format!("--snapshot --view {view}"), format!("--svg --view {view}")];
                self.any(&format!("attach {} {}", self.pid, draw.pick(&form)), &[0, 1, 2], tally);
                tally.fault("attach");
            }
            "attach console" => self.console(draw, tally),
            "shadow" => {
                let decoder = *draw.pick(&["union-find", "lookup", "matching", "off", "off"]);
                let one_in =
                    if decoder == "off" { String::new() } else { format!(" --one-in {}", draw.between(1, 1000)) };
                self.ctl(&format!("shadow {decoder}{one_in}"), tally);
                tally.fault("shadow");
            }
            "acknowledge" => {
                self.ctl("ack", tally);
                tally.fault("acknowledge");
            }
            "sighup" if self.signal(Signal::HUP) => tally.fault("sighup"),
            "replay" => {
                self.any("replay last --logs logs --at -1s --json", &[0, 1, 2], tally);
                tally.fault("replay of the run in progress");
            }
            "silo" if self.silos > 1 => {
                self.ctl(&format!("silo drain {}", draw.below(self.silos)), tally);
                for silo in 0..self.silos {
                    self.ctl(&format!("silo rejoin {silo}"), tally);
                }
                tally.fault("silo drained");
            }
            "move" if self.silos > 1 => {
                self.ctl(&format!("move {} {}", draw.below(self.streams), draw.below(self.silos)), tally);
                tally.fault("move");
            }
            // It stops the engine for a moment, and makes files.
            "dump" if draw.one_in(4) => {
                let out = self.world.new_path("dump");
                self.any(&format!("dump {} --output {} --json", self.pid, out.display()), &[0, 1, 2], tally);
                let _ = fs::remove_dir_all(out);
                tally.fault("dump");
            }
            "slow reader" => {
                if let Some(stops) = self.reader_stops_ms {
                    stops.store(draw.between(50, 1500), Ordering::Relaxed);
                    tally.fault("slow reader");
                }
            }
            "core offline" => self.core_offline(draw, tally),
            "clock step" => clock_step(draw, tally),
            _ => {}
        }
    }

    fn signal(&self, signal: Signal) -> bool {
        Pid::from_raw(self.pid as i32).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Stops the process, mostly shortly: longer than any heartbeat once in ten times.
    fn stop(&self, draw: &mut Draw, tally: &mut Tally) {
        if self.signal(Signal::STOP) {
            let ms = if draw.one_in(10) { draw.between(200, 1500) } else { draw.below(40) };
            thread::sleep(Duration::from_millis(ms));
            self.signal(Signal::CONT);
            tally.fault("sigstop");
        }
    }

    /// Takes the last core offline for a moment. Then each thread may use the cores that it might use before.
    fn core_offline(&self, draw: &mut Draw, tally: &mut Tally) {
        let cores = thread::available_parallelism().map_or(2, NonZero::get);
        let online = format!("/sys/devices/system/cpu/cpu{}/online", (cores - 1).max(1));
        let before = self.cores_of_threads();
        if let Err(error) = fs::write(&online, "0") {
            return tally.not_permitted(format!("a core offline: {error}"));
        }
        thread::sleep(Duration::from_millis(draw.between(20, 1_200)));
        if let Err(error) = fs::write(&online, "1") {
            tally.violation("the core did not come back", format!("{online}: {error}"));
        }
        tally.fault("core offline");
        if !self.is_watched {
            return;
        }
        let changed = || -> Vec<String> {
            let now = self.cores_of_threads();
            let both = before.iter().filter_map(|(thread, before)| Some((thread, before, now.get(thread)?)));
            let changed = both.filter(|(_, before, now)| before != now);
            changed.map(|(thread, before, now)| format!("thread {thread}: {before}, now {now}")).collect()
        };
        let back = Instant::now();
        while !changed().is_empty() && !self.done.load(Ordering::Relaxed) {
            if back.elapsed() > RETURNED_WITHIN {
                return tally.violation("threads do not return to their core", changed());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The cores that each thread of the engine may use.
    fn cores_of_threads(&self) -> BTreeMap<String, String> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let cores = threads.filter_map(|thread| {
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some((thread.file_name().to_string_lossy().into_owned(), cores.trim().to_owned()))
        });
        cores.collect()
    }

    fn ctl(&self, words: &str, tally: &mut Tally) -> Option<Ran> {
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        self.any(&format!("ctl {verb} --to {} {rest}", self.pid), &[0, 1, 2], tally)
    }

    fn any(&self, words: &str, statuses: &[i32], tally: &mut Tally) -> Option<Ran> {
        match self.world.run(words, PATIENCE) {
            Ok(ran) => {
                if let Some(trouble) = ran.trouble(statuses) {
                    tally.violation(format!("{words}: {trouble}"), ran.out.clone());
                }
                Some(ran)
            }
            Err(Hang(evidence)) => {
                tally.hang(words, evidence);
                None
            }
        }
    }

    /// Commands that must be refused in one sentence.
    fn refused(&self, draw: &mut Draw, tally: &mut Tally) {
        let garbage = self.world.new_path("garbage.ron");
        let _ =
            fs::write(&garbage, if draw.one_in(2) { draw.bytes(200) } else { b"(base: \"lab\", sping: Lab)".to_vec() });
        let wrong = [
            "rate 0".into(),
            "rate nonsense".into(),
            "profile no-such-profile".into(),
            format!("profile {}", garbage.display()),
            format!("decoder matching --stream {}", self.streams + draw.below(5)),
            format!("model {}", garbage.display()),
            format!("silo kill {}", self.silos + draw.below(70)),
            format!("move {} 0", self.streams + draw.below(9)),
            "ack 4000000".into(),
            "input sampler".into(),
        ];
        let words = draw.pick(&wrong);
        if let Some(ran) = self.ctl(words, tally)
            && ran.code() == 0
        {
            tally.violation(format!("ctl {words} was not refused"), ran.out);
        }
        let _ = fs::remove_file(garbage);
        tally.fault("refused command");
    }

    /// The control socket of the run: bytes that are no commands, half a command, a client that does not read.
    fn socket(&self, draw: &mut Draw, tally: &mut Tally) {
        let Some(path) = control_socket(self.world) else { return };
        let Ok(mut stream) = UnixStream::connect(path) else { return };
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let line = match draw.below(5) {
            0 => draw.bytes(draw.clone().below(5_000) as usize),
            1 => b"{\"version\":2,\"command\":{\"ra".to_vec(),
            2 => b"{\"version\":99,\"command\":\"pause\"}\n".to_vec(),
            3 => b"{\"version\":2,\"command\":{\"rate\":{\"hz\":-1e400}}}\n".to_vec(),
            _ => {
                [b"{\"version\":2,\"command\":{\"note\":\"".to_vec(), vec![b'x'; 100_000], b"\"}}\n".to_vec()].concat()
            }
        };
        let _ = stream.write_all(&line);
        if draw.one_in(2) {
            let _ = stream.read(&mut [0; 512]);
        }
        tally.fault("control socket");
    }

    /// A console on the engine: keys that read, then it is killed or its line is hung up.
    fn console(&self, draw: &mut Draw, tally: &mut Tally) {
        let command = self.world.command(&format!("attach {} --no-settings", self.pid));
        let size = (draw.between(20, 240) as u16, draw.between(5, 70) as u16);
        let Ok((mut terminal, mut child)) = Terminal::start(&command, size) else {
            tally.not_permitted("a pseudo-terminal".into());
            return;
        };
        for _ in 0..draw.below(12) {
            let keys = draw.pick(&KEYS);
            terminal.press(keys);
            if draw.one_in(4) {
                terminal.resize(draw.between(1, 200) as u16, draw.between(1, 80) as u16);
            }
            thread::sleep(Duration::from_millis(draw.below(25)));
        }
        if draw.one_in(2) {
            let _ = child.kill();
        }
        drop(terminal);
        match crate::world::wait(&mut child, PATIENCE) {
            Err(Hang(evidence)) => tally.hang("attach after its terminal was lost", evidence),
            Ok(status) => judge_console(status, tally),
        }
        tally.fault("attach console");
    }
}

/// A console whose terminal was lost, whose engine has ended, or that was killed: no crash, and no panic (101).
fn judge_console(status: ExitStatus, tally: &mut Tally) {
    let is_known = matches!((status.code(), status.signal()), (Some(0..=2 | 129), _) | (_, Some(1 | 9)));
    if !is_known {
        tally.violation("attach in a terminal ended by itself", status.to_string());
    }
}

/// Sets the clock by up to two hours, and back after a moment.
fn clock_step(draw: &mut Draw, tally: &mut Tally) {
    let step = draw.between(1, 7_200) as i64 * if draw.one_in(2) { 1 } else { -1 };
    if let Err(error) = set_clock(step) {
        return tally.not_permitted(format!("a clock step: {error}"));
    }
    thread::sleep(Duration::from_millis(draw.between(20, 800)));
    if let Err(error) = set_clock(-step) {
        tally.violation("the clock was not set back", error.to_string());
    }
    tally.fault("clock step");
}

fn set_clock(seconds: i64) -> rustix::io::Result<()> {
    let now = clock_gettime(ClockId::Realtime);
    clock_settime(ClockId::Realtime, Timespec { tv_sec: now.tv_sec + seconds, tv_nsec: now.tv_nsec })
}

/// A profile that differs in what applies live.
fn spins(draw: &mut Draw) -> (String, String) {
    let spin = *draw.pick(&["Prod", "Lab", "Shared"]);
    let text = format!(
        "(base: \"base\", summary: \"live\", spin: {spin}, spin_budgets: (lab_spin_us: {}, shared_sleep_us: {}), \
         limits: (launch_deadline_us: 30000000, shot_deadline_us: 60000000, late_us: {}), input: (rate: Max), placement: (overflow: (deadline_ms: 60000)))",
        draw.below(300),
        draw.between(1, 2_000),
        draw.between(1, 50_000)
    );
    (format!("live-{}.ron", draw.below(4)), text)
}

/// The control socket of the only run.
fn control_socket(world: &World) -> Option<PathBuf> {
    let runs = fs::read_dir(world.path("logs")).ok()?;
    runs.flatten().map(|run| run.path().join("control.sock")).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::judge_console;
    use crate::tally::Tally;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn a_console_that_panics_or_crashes_is_reported() {
        let found = |status: i32| {
            let mut tally = Tally::default();
            judge_console(ExitStatus::from_raw(status), &mut tally);
            tally.violations.len()
        };
        // Exit statuses 0 and 2, signal 9; then a panic, an abort and a segmentation fault.
        assert_eq!([found(0), found(2 << 8), found(9), found(101 << 8), found(6), found(11)], [0, 0, 0, 1, 1, 1]);
    }
}
