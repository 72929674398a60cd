//! A thread of somebody else on a hot core: it is shown, and made way for where the profile says so.

use crate::rig::{alone, assert_nothing_lost, config, end, profile, sampler, until};
use pinwheel_edge::spin::SpinPolicy as Runs;
use pinwheel_engine::board::snapshot::{Snapshot, ThreadView};
use pinwheel_engine::engine::Engine;
use pinwheel_engine::host::pin::pin_current_thread;
use pinwheel_engine::profile::{Courtesy, Profile, Rate, SpinPolicy};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// A shell that does nothing as hard as it can; gone with the test.
struct Busy(Child);

impl Busy {
    /// Starts it on `core`, as user `uid`.
    fn on(core: u32, uid: Option<u32>) -> io::Result<Busy> {
        // A child has the cores of the thread that started it.
        let start = move || {
            pin_current_thread(core).map_err(|error| io::Error::other(error.to_string()))?;
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "while :; do :; done"]).current_dir("/").env_clear();
            if let Some(uid) = uid {
                shell.uid(uid);
            }
            shell.spawn().map(Busy)
        };
        std::thread::spawn(start).join().unwrap()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// An engine that never yields, and its first thread with a core of its own; `None`, and why, where there is none.
fn hard(courtesy: Option<Courtesy>) -> Option<(Engine, usize, u32)> {
    let profile = Profile { spin: SpinPolicy::Prod, courtesy, ..profile() };
    let profile =
        Profile { input: pinwheel_engine::profile::Input { rate: Rate::Hz(500.0), ..profile.input }, ..profile };
    let engine = Engine::start(config(&profile, sampler(), None)).unwrap();
    let own = engine.plan().threads.iter().position(|thread| thread.exclusive);
    let found = own.and_then(|index| Some((index, engine.plan().threads[index].core?)));
    match found {
        Some((index, core)) if engine.snapshot().threads[index].pinned => Some((engine, index, core)),
        _ => {
            eprintln!("skipped: no core here that a hot thread has for itself");
            None
        }
    }
}

fn is_shown(thread: &ThreadView, pid: u32) -> bool {
    thread.contended_by.as_ref().is_some_and(|competitor| competitor.pid == pid)
}

fn ends(engine: Engine) {
    engine.request_drain();
    assert_nothing_lost(&end(engine));
}

#[test]
fn another_program_on_a_hot_core_is_shown_with_what_it_waited_and_one_of_ours_is_no_reason_to_yield() {
    let _home = alone();
    let Some((engine, index, core)) = hard(Some(Courtesy { wait_ms: 1, quiet_s: 1 })) else { return };
    let busy = match Busy::on(core, None) {
        Ok(busy) => busy,
        Err(error) => return eprintln!("skipped: no shell to compete with: {error}"),
    };
    let seen = until(&engine, "the competitor", |now| is_shown(&now.threads[index], busy.0.id()));
    let competitor = seen.threads[index].contended_by.clone().unwrap();
    assert!(
        competitor.waited_ns + competitor.ran_ns > 0 && competitor.span_ns >= competitor.waited_ns,
        "{competitor:?}"
    );
    assert!(competitor.samples >= 1 && !competitor.command.is_empty(), "{competitor:?}");
    // The time that the thread stood ready is accounted for; by whom, where the kernel permits records of the core.
    let seen = until(&engine, "the noise", |now| now.threads[index].noise.ready_ns > 0);
    let noise = &seen.threads[index].noise;
    assert!(noise.span_ns >= noise.ready_ns && noise.gap_ns <= noise.polling_ns, "{noise:?}");
    let refusal = seen.threads[index].policy_refusal.as_ref();
    assert!(refusal.is_none_or(|why| !why.contains(&format!("process {},", busy.0.id()))), "{refusal:?}");
    drop(busy);
    ends(engine);
}

#[test]
fn another_users_thread_that_waits_for_a_hot_core_turns_prod_into_lab_and_is_named() {
    let _home = alone();
    let Some((engine, index, core)) = hard(Some(Courtesy { wait_ms: 200, quiet_s: 1 })) else { return };
    let busy = match Busy::on(core, Some(NOBODY)) {
        Ok(busy) => busy,
        Err(error) => return eprintln!("skipped: no process of another user can be started here: {error}"),
    };
    let pid = busy.0.id();
    let gives_way = |now: &Snapshot| {
        let (thread, notes) = (&now.threads[index], &now.engine.notes);
        let is_told = notes.iter().any(|note| note.contains("spin Lab for") && note.contains(&pid.to_string()));
        is_told && thread.policy_refusal.is_some() && thread.policy_acknowledged == Runs::Lab
    };
    let seen = until(&engine, "the courtesy", gives_way);
    let why = seen.threads[index].policy_refusal.clone().unwrap();
    assert!(why.contains(&format!("process {pid},")) && why.contains(&format!("core {core}")), "{why}");
    // Each courtesy that was withdrawn before is two more.
    let epoch = seen.threads[index].epoch_acknowledged;
    assert!(epoch >= 2 && epoch.is_multiple_of(2), "a new request, acknowledged: {epoch}");
    assert_eq!(seen.engine.spin_requested, Runs::Prod, "the profile still says so");
    drop(busy);
    ends(engine);
}
