//! The process of a plugin that is not trusted.
//!
//! Runs in a process of its own, on its main thread: gets its lane as standard input, loads the plugin,
//! says that it is ready or why not, and decodes one shot after the other. Owns nothing of the engine.
//! Bounds: one shot at a time.
//!
//! A second thread waits for the end of the engine, and then ends this process and those that the plugin has
//! started. The signal that the kernel sends at a parent's death would end this process alone.

use super::lane::{self, STATUS_TEXT, TEXT_WORDS, added, words_of};
use super::library::{self, Handle};
use super::problem::Problem;
use super::{PluginFault, PluginRefused};
use pinwheel_edge::slot::outside::EngineEnd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::Builder;
use std::time::Duration;

/// The subcommand of `pinwheel` that is such a process.
pub const HOST_COMMAND: &str = "plugin-host";

/// Looks for a shot before it sleeps: some tenths of a millisecond.
const LOOKS: u32 = 20_000;
/// One sleep without shots; the first shot after a pause waits for at most that and the system's delay.
const PAUSE: Duration = Duration::from_micros(50);

static HOST: OnceLock<(OsString, Vec<OsString>)> = OnceLock::new();

/// Names the program and arguments that start such a process, before the first plugin: for programs other
/// than `pinwheel`. The number of the engine's process follows as last argument. The first call counts.
///
/// Without it an engine starts its own program with [`HOST_COMMAND`] and that number. A program that does not
/// call [`host`] then would start another engine instead of the plugin.
pub fn set_host(program: OsString, arguments: Vec<OsString>) {
    let _ = HOST.set((program, arguments));
}

/// What starts a process that calls [`host`].
pub(super) fn command() -> Command {
    let (program, arguments) = HOST.get_or_init(|| {
        // This program's own file, even where an update has replaced it.
        let found = std::env::current_exe().ok().filter(|path| path.exists());
        let program = found.map_or_else(|| "/proc/self/exe".into(), OsString::from);
        (program, vec![HOST_COMMAND.into()])
    });
    let mut command = Command::new(program);
    command.args(arguments).arg(std::process::id().to_string());
    command
}

/// Is the process of a plugin for the engine with process number `engine`, until that ends.
///
/// # Errors
///
/// In a sentence, if standard input is no lane: a person has started it.
pub fn host(engine: i32) -> Result<(), String> {
    let stranger = || format!("process {engine} did not start this one; an engine starts it for a decoder plugin");
    let parent = Pid::from_raw(engine).ok_or_else(stranger)?;
    // Before the check: then it is the end of this parent that is waited for.
    let watched = pidfd_open(parent, PidfdFlags::empty());
    if getppid() != Some(parent) {
        return Err(stranger());
    }
    let watched = watched.map_err(|error| format!("the end of the engine cannot be waited for: {error}"))?;
    let lane = lane::open(std::io::stdin());
    let lane = lane.ok_or("standard input has no shots of an engine; an engine starts this for a decoder plugin")?;
    end_with(watched)?;
    let (problem, path, config) = lane.task();
    let mut end = EngineEnd::new(1);
    let mut syndrome = vec![0; problem.detector_words()];
    if end.take(&lane, &mut syndrome).is_none() {
        return Err("the engine's first request is missing".to_owned());
    }
    let mut handle = match ready(&problem, &path, &config) {
        Ok(handle) => handle,
        Err(refused) => {
            let text = refused.to_string();
            let words: Vec<u64> = words_of(&text).take(TEXT_WORDS).collect();
            end.answer(&lane, 0, added(STATUS_TEXT, text.len().min(TEXT_WORDS * 8)), &words);
            return Ok(());
        }
    };
    end.answer(&lane, 0, added(0, 0), &[]);
    let mut looks = 0;
    loop {
        if end.take(&lane, &mut syndrome).is_none() {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                pause();
            }
            continue;
        }
        looks = 0;
        let (status, chosen) = match handle.decode(&problem, &syndrome) {
            Ok(chosen) => (0, chosen),
            Err(fault) => (fault as u8, &[][..]),
        };
        end.answer(&lane, 0, added(status, chosen.len()), chosen);
        if status == PluginFault::PastRoom as u8 {
            // Its memory may be spoiled.
            return Ok(());
        }
    }
}

/// Starts the thread that ends this process and its group with the process `engine`.
fn end_with(engine: OwnedFd) -> Result<(), String> {
    let body = move || {
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&engine, PollFlags::IN)], None));
        let _ = kill_process_group(getpid(), Signal::KILL);
        // It may have left its group.
        let _ = kill_process(getpid(), Signal::KILL);
    };
    #[expect(clippy::disallowed_methods, reason = "a process of its own, without hot threads")]
    let spawned = Builder::new().spawn(body);
    spawned.map(drop).map_err(|error| format!("the end of the engine cannot be waited for: {error}"))
}

fn ready(problem: &Problem, path: &str, config: &str) -> Result<Handle, PluginRefused> {
    let rooted = library::checked(path)?;
    Handle::new(library::load(Path::new(&rooted))?, problem, config)
}

#[expect(clippy::disallowed_methods, reason = "a process of its own, without hot threads")]
fn pause() {
    std::thread::sleep(PAUSE);
}
