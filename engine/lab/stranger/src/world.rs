//! A round's own directories, and the program run in them.
//!
//! Owned by one round; removed at its end, or by [`leftovers`]. Everything that the program may
//! touch lies below [`World::dir`] on disk or [`World::shm`] in memory. [`World::run`] bounds each
//! command's time; what does not end by then is killed and reported with the states of its threads.

use crate::leftovers;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What every round has of the machine and of the tree.
#[derive(Debug)]
pub struct Tree {
    pub binary: PathBuf,
    /// The directory with the bundled models as `.dem` files.
    pub data: PathBuf,
    /// The C client, compiled; `None` without a compiler.
    pub c_client: Option<PathBuf>,
    /// The Python client's file; `None` without an interpreter.
    pub python_client: Option<PathBuf>,
    /// Whether faults may touch the whole machine: cores, clock.
    pub machine_faults: bool,
}

/// Directories of one round.
#[derive(Debug)]
pub struct World<'a> {
    pub tree: &'a Tree,
    pub dir: PathBuf,
    pub shm: PathBuf,
    files: AtomicU64,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub words: String,
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

/// A command that did not end in time.
#[derive(Debug)]
pub struct Hang(pub Value);

impl Ran {
    /// The exit status, or -1 after a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// What is wrong with how it ended: a signal, a panic, a status that no page names, or a refusal
    /// that is not one sentence.
    pub fn trouble(&self, statuses: &[i32]) -> Option<String> {
        let said = self.err.trim();
        let sentences = said.lines().filter(|line| line.starts_with("pinwheel: ") && !line.contains(" is ignored: "));
        let sentences = sentences.count();
        if let Some(signal) = self.status.signal() {
            return Some(format!("ended by signal {signal}: {}", tail(said)));
        }
        if said.contains("panicked at") {
            return Some(format!("panicked: {}", tail(said)));
        }
        if !statuses.contains(&self.code()) {
            return Some(format!("exit status {}, expected one of {statuses:?}: {}", self.code(), tail(said)));
        }
        // `profiles validate --json` lists mistakes, also that a file is no text.
        let is_listed = sentences == 0 && said.is_empty() && self.out.starts_with("{\"ok\":false,");
        if self.code() == 2 && sentences != 1 && !is_listed {
            return Some(format!("a refusal in {sentences} sentences, expected one: {}", tail(said)));
        }
        None
    }
}

/// The last characters of a long text.
pub fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(600);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[from..]
}

impl<'a> World<'a> {
    pub fn new(tree: &'a Tree, name: &str) -> io::Result<World<'a>> {
        let dir = std::env::temp_dir().join(leftovers::prefix(std::process::id()) + name);
        let memory = Path::new(leftovers::MEMORY);
        let shm = if memory.is_dir() { memory.join(dir.file_name().unwrap_or_default()) } else { dir.join("shm") };
        for directory in [&dir, &shm] {
            let _ = fs::remove_dir_all(directory);
            fs::create_dir_all(directory)?;
        }
        for part in ["home", "run", "logs", "profiles", "out"] {
            fs::create_dir_all(dir.join(part))?;
        }
        Ok(World { tree, dir, shm, files: AtomicU64::new(0) })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A path that no other call returns.
    pub fn new_path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}-{}", self.files.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Removes what a killed engine has left.
    pub fn clear(&self) {
        for directory in [self.shm.clone(), self.path("logs")] {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let _ = (fs::remove_file(entry.path()), fs::remove_dir_all(entry.path()));
            }
        }
    }

    /// The variables that the program is run with.
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("PINWHEEL_SHM", self.shm.clone()),
            ("HOME", self.path("home")),
            ("XDG_STATE_HOME", self.path("home/state")),
            ("XDG_CONFIG_HOME", self.path("home/config")),
            ("XDG_RUNTIME_DIR", self.path("run")),
            ("PATH", std::env::var_os("PATH").unwrap_or_default().into()),
        ]
    }

    /// The program with these words, separated by spaces.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.tree.binary);
        command.args(words.split_whitespace());
        self.dress(&mut command);
        command
    }

    /// Any program in this world: its directory, its variables, nothing to read.
    pub fn dress(&self, command: &mut Command) {
        command.current_dir(&self.dir).env_clear().envs(self.variables()).stdin(Stdio::null());
    }

    /// Runs the program with these words to its end.
    pub fn run(&self, words: &str, limit: Duration) -> Result<Ran, Hang> {
        self.finish(self.command(words), words, limit)
    }

    /// Runs a command to its end, its output in files.
    pub fn finish(&self, mut command: Command, words: &str, limit: Duration) -> Result<Ran, Hang> {
        let (out, err) = (self.new_path("out/out"), self.new_path("out/err"));
        let started = File::create(&out)
            .and_then(|file| Ok((file, File::create(&err)?)))
            .and_then(|(out, err)| command.stdout(out).stderr(err).spawn());
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return Err(Hang(json!({ "command": words, "not_started": error.to_string() }))),
        };
        let status = wait(&mut child, limit).map_err(|mut hang| {
            hang.0["command"] = words.into();
            hang.0["stderr"] = tail(&read(&err)).into();
            hang
        })?;
        let ran = Ran { words: words.into(), status, out: read(&out), err: read(&err) };
        let _ = (fs::remove_file(&out), fs::remove_file(&err));
        Ok(ran)
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        for directory in [&self.dir, &self.shm] {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// A file's text; empty if it cannot be read.
pub fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Waits for a child; after `limit` it is killed, and the states of its threads are the evidence.
pub fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, Hang> {
    let from = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if from.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let evidence = threads(child.id());
                let _ = (child.kill(), child.wait());
                return Err(Hang(json!({ "waited_s": limit.as_secs(), "threads": evidence })));
            }
            Err(error) => return Err(Hang(json!({ "wait": error.to_string() }))),
        }
    }
}

/// Name, state, place in the kernel and processor time of each thread of a process.
pub fn threads(pid: u32) -> Value {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Value::Null };
    let line = |path: PathBuf| {
        let stat = read(&path.join("stat"));
        let (head, fields) = stat.rsplit_once(')').unwrap_or((&stat, ""));
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or("?").to_owned();
        let stack: Vec<String> = read(&path.join("stack")).lines().take(4).map(str::to_owned).collect();
        json!({
            "name": head.split_once('(').map_or("", |parts| parts.1),
            "state": field(0), "wchan": read(&path.join("wchan")), "utime": field(11), "stime": field(12), "stack": stack,
        })
    };
    tasks.flatten().map(|task| line(task.path())).collect()
}

/// Resident memory of a process, kB.
pub fn resident_kb(pid: u32) -> Option<i64> {
    let status = read(Path::new(&format!("/proc/{pid}/status")));
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}
