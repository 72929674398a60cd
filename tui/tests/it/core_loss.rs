//! A core that an administrator takes out of the engine's cpuset and puts back, on machines where this test may make a
//! cpuset.

use crate::world::{World, calm_lab_with, drained, only_engine, until};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

/// Where control groups of version 1 have their cpusets.
const MOUNTED: &str = "/sys/fs/cgroup/cpuset";

/// A cpuset with all cores of the one around it.
struct Cpuset(PathBuf);

impl Cpuset {
    /// `None` where this process may not make one.
    fn make() -> Option<Cpuset> {
        let around = PathBuf::from(MOUNTED);
        let cpuset = Cpuset(around.join(format!("pinwheel-test-{}", std::process::id())));
        fs::create_dir(&cpuset.0).ok()?;
        for name in ["cpuset.mems", "cpuset.cpus"] {
            fs::write(cpuset.0.join(name), fs::read(around.join(name)).ok()?).ok()?;
        }
        Some(cpuset)
    }

    fn cores(&self) -> String {
        fs::read_to_string(self.0.join("cpuset.cpus")).unwrap().trim().to_owned()
    }

    fn set_cores(&self, cores: &str) {
        fs::write(self.0.join("cpuset.cpus"), cores).unwrap();
    }

    fn take_in(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The cores that each thread of process `pid` may use, by the thread's name.
fn allowed(pid: u32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let read = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned());
        Some((field("Name:")?, field("Cpus_allowed_list:")?))
    };
    let mut all: Vec<_> = tasks.filter_map(read).collect();
    all.sort();
    all
}

#[test]
fn a_core_that_leaves_the_cpuset_is_released_and_everything_is_as_before_when_it_is_back() {
    let Some(cpuset) = Cpuset::make() else {
        eprintln!("not run: this process may not make a cpuset under {MOUNTED}");
        return;
    };
    let _alone = only_engine();
    let world = World::new();
    world.put("profiles/pinned.ron", calm_lab_with(&[]));
    let words = "run --headless --json --rate 500 --duration 300s --logs logs --profiles profiles --profile pinned";
    let mut running = world.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = running.id();
    until("the control socket", || world.run("ctl status").status == Some(0));
    let (all, before) = (cpuset.cores(), allowed(pid));
    let Some((name, core)) = before.iter().find(|(name, _)| name == "hot-0").filter(|(_, cores)| *cores != all) else {
        eprintln!("not run: no core for a thread of its own among {all}");
        running.kill().unwrap();
        running.wait().unwrap();
        return;
    };
    let is_claimed = || {
        let rows = world.run("cores --json").exits(0).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["core"].as_u64() == core.parse().ok()).unwrap();
        !row["claimed_by"].is_null()
    };
    let events = || {
        let runs = fs::read_dir(world.path("logs")).unwrap().flatten();
        runs.filter_map(|run| fs::read_to_string(run.path().join("events.jsonl")).ok()).collect::<String>()
    };
    assert!(is_claimed());
    // The main thread alone may use every core: it says which these are.
    let on_hot_core = |(name, cores): &&(String, String)| name != "pinwheel" && (cores == core || *cores == all);
    let on_hot_core: Vec<&str> = before.iter().filter(on_hot_core).map(|(name, _)| name.as_str()).collect();
    assert_eq!(on_hot_core, [name]);
    cpuset.take_in(pid);
    let other = before.iter().map(|(_, cores)| cores).find(|cores| *cores != core && **cores != all).unwrap();
    cpuset.set_cores(other);
    until("the claim released", || !is_claimed());
    until("the event", || events().contains(&format!("core {core} left the cpuset of this process: {name} runs on")));
    cpuset.set_cores(&all);
    let is_as_before = |(name, cores): &(String, String)| before.iter().all(|was| was.0 != *name || was.1 == *cores);
    until("every thread on its cores again", || allowed(pid).iter().all(is_as_before));
    until("the claim", is_claimed);
    assert!(events().contains(&format!("{name} is pinned to it again")), "{}", events());
    drained(&world, "ctl drain");
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let report = world.report("logs");
    assert_eq!((report["lost"].as_u64(), report["duplicated"].as_u64()), (Some(0), Some(0)));
    let causes: Vec<&str> = report["alarms"].as_array().unwrap().iter().filter_map(|a| a["cause"].as_str()).collect();
    assert!(causes.contains(&"core outside cpuset"), "{causes:?}");
}
