//! Where a program under test lives: its own home, boards and logs, none of which it shares.

use pinwheel_engine::profile::Profile;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for anything that is going to happen, on a machine as busy as may be.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// For runs whose drain cannot end well: a shot that a dead role had is answered by nobody.
pub const SHORT_DRAIN: (&str, &str) = ("drain_grace_s: 10,", "drain_grace_s: 1,");

/// Deadlines that no busy machine misses.
const CALM_LAUNCH: &str = "launch_deadline_us: 20000000,";
const CALM_SHOT: (&str, &str) = ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,");
const CALM_WAIT: (&str, &str) = ("            deadline_ms: 1000,", "            deadline_ms: 60000,");

/// Engines that run at a time: each waits more than it computes, and each has boards and claims of its own.
const ENGINES_MAX: usize = 2;

/// How many engines run, and whether somebody else may begin.
static ENGINES: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The right to run engines: a share of [`ENGINES_MAX`].
pub struct Permit(usize);

fn permit(share: usize) -> Permit {
    let (running, ended) = &ENGINES;
    // A test that failed holds nothing that the next one needs.
    let running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let has_no_room = |running: &mut usize| *running + share > ENGINES_MAX;
    *ended.wait_while(running, has_no_room).unwrap_or_else(PoisonError::into_inner) += share;
    Permit(share)
}

impl Drop for Permit {
    fn drop(&mut self) {
        *ENGINES.0.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        ENGINES.1.notify_all();
    }
}

/// For a test that runs an engine, beside another one.
pub fn engine() -> Permit {
    permit(1)
}

/// For a test whose claim is about time, which another engine would take from it.
pub fn only_engine() -> Permit {
    permit(ENGINES_MAX)
}

/// A home far from any checkout.
pub struct World {
    dir: TempDir,
}

impl World {
    pub fn new() -> World {
        World { dir: tempfile::tempdir().unwrap() }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a file there.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// What surrounds the program, on a terminal or off one.
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("HOME", self.path("home")), ("XDG_STATE_HOME", self.path("state")), ("PINWHEEL_SHM", self.path("shm"))]
    }

    /// Puts the profiles `shared` and `lab` into the directory `calm`, where these words name it:
    /// with deadlines that no busy machine misses. An answer with an error makes the exit status 1.
    pub fn put_calm(&self, words: &str) {
        if !words.contains("--profiles calm") {
            return;
        }
        self.put(
            "calm/shared.ron",
            with("shared", &[("launch_deadline_us: 100000,", CALM_LAUNCH), CALM_SHOT, CALM_WAIT]),
        );
        self.put("calm/lab.ron", lab_with(&[("launch_deadline_us: 20000,", CALM_LAUNCH), CALM_SHOT, CALM_WAIT]));
    }

    /// The program with these words; it runs in the world's own directory, so that words may name its files.
    pub fn command(&self, words: &str) -> Command {
        self.put_calm(words);
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinwheel"));
        command.args(words.split_whitespace()).current_dir(self.dir.path()).stdin(Stdio::null());
        command.envs(self.variables());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, words: &str) -> Ran {
        Ran::new(words, self.command(words).output().unwrap())
    }

    /// Every file below the world, boards excepted: those of ended processes stay for the post-mortem.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        list(self.dir.path(), self.dir.path(), &mut found);
        found.sort();
        found
    }

    /// Bytes of `--answers a` so far: hidden until the run has ended.
    pub fn answer_bytes(&self) -> u64 {
        let is_answers = |name: &str| name == "a" || name.starts_with(".a.");
        let files = fs::read_dir(self.dir.path()).unwrap().filter_map(Result::ok);
        let sizes = files.filter(|file| file.file_name().to_str().is_some_and(is_answers));
        sizes.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }

    /// The only run directory's report.
    pub fn report(&self, logs: &str) -> Value {
        // The host's key lies beside them.
        let entries = fs::read_dir(self.path(logs)).unwrap().map(|entry| entry.unwrap().path());
        let runs: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        serde_json::from_slice(&fs::read(runs[0].join("report.json")).unwrap()).unwrap()
    }
}

fn list(root: &Path, dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

/// A program that has ended.
pub struct Ran {
    pub words: String,
    pub status: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ran {
    pub fn new(words: &str, output: Output) -> Ran {
        let Output { status, stdout, stderr } = output;
        Ran { words: words.to_owned(), status: status.code(), out: stdout, err: String::from_utf8(stderr).unwrap() }
    }

    /// Demands an exit status.
    #[track_caller]
    pub fn exits(self, status: i32) -> Ran {
        let Ran { words, err, out, .. } = &self;
        assert_eq!(self.status, Some(status), "{words}: {err}{}", String::from_utf8_lossy(out));
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{}: {error}: {}", self.words, self.err))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

/// Keys of an object.
#[track_caller]
pub fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Whether an object has all these keys.
#[track_caller]
pub fn has_keys(object: &Value, expected: &str) {
    for key in expected.split_whitespace() {
        assert!(object.get(key).is_some(), "no {key} in {:?}", keys(object));
    }
}

/// Looks until something is so; fails after [`DEADLINE`].
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A profile made of lab's text with all fields, some of it replaced; every replacement must find its text.
pub fn lab_with(replacements: &[(&str, &str)]) -> String {
    with("lab", replacements)
}

/// The same, with deadlines that no busy machine misses.
pub fn calm_lab_with(replacements: &[(&str, &str)]) -> String {
    lab_with(&[&[("launch_deadline_us: 20000,", CALM_LAUNCH), CALM_SHOT, CALM_WAIT], replacements].concat())
}

fn with(profile: &str, replacements: &[(&str, &str)]) -> String {
    let mut text = Profile::load(profile, None).unwrap().0.to_full_text().unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// Lab, with a core to spare and all the time a busy machine may take: for claims about results, not about speed.
pub fn patient(world: &World) -> &'static str {
    let text = lab_with(&[
        ("spin: Lab", "spin: Shared"),
        ("launch_deadline_us: 20000,", "launch_deadline_us: 20000000,"),
        ("shot_deadline_us: 1000000,", "shot_deadline_us: 60000000,"),
        ("deadline_ms: 1000,", "deadline_ms: 60000,"),
    ]);
    world.put("patient/patient.ron", text);
    "--profiles patient --profile patient"
}

/// Runs a verb of `ctl` until every thread has acknowledged within the time that it waits for them;
/// status 1 says that some have not, which a busy machine may need more than once.
#[track_caller]
pub fn acknowledged(world: &World, words: &str) -> Value {
    let end = Instant::now() + DEADLINE;
    loop {
        let ran = world.run(words);
        if ran.status != Some(1) {
            let done = ran.exits(0).json();
            assert_eq!(done["acknowledged"], true, "{words}: {done}");
            return done;
        }
        assert!(ran.json()["acknowledged"] == false && Instant::now() < end, "{words}: {}", ran.text());
    }
}

/// Drains the engine by `ctl`; how it ends says whether every thread has acknowledged in time.
#[track_caller]
pub fn drained(world: &World, words: &str) -> Value {
    let ran = world.run(words);
    let done = ran.json();
    assert_eq!(ran.status, Some(i32::from(done["acknowledged"] != true)), "{words}: {done}");
    done
}

/// Runs the program for longer and longer, until `is_seen` says so of what it printed: what takes a
/// few looks of a cold thread is there after a second or two, and on a machine that does not run
/// that thread later.
#[track_caller]
pub fn until_seen<T>(spans: impl IntoIterator<Item = T>, is_seen: impl FnMut(T) -> bool) {
    assert!(spans.into_iter().any(is_seen), "not seen in the longest run either");
}

/// A bundled file of golden data.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/code/src/code/data").join(name).canonicalize().unwrap()
}

/// A path as one word of a command line.
pub fn word(path: &(impl AsRef<OsStr> + ?Sized)) -> String {
    let word = path.as_ref().to_str().unwrap().to_owned();
    assert!(!word.contains(char::is_whitespace), "{word}");
    word
}
