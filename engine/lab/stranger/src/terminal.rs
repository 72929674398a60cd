//! A pseudo-terminal with a program in it. Its thread reads what the program draws and drops it, so that the program
//! never waits for a terminal, unless the round says that the terminal stands still.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The terminal's side; dropping it hangs the line up.
#[derive(Debug)]
pub struct Terminal {
    master: File,
    /// Bytes drawn so far.
    pub drawn: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts `command` as the session of a new terminal, by `setsid --ctty`.
    pub fn start(command: &Command, size: (u16, u16)) -> io::Result<(Terminal, Child)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let open = || OpenOptions::new().read(true).write(true).open(path);
        tcsetwinsize(&master, Winsize { ws_col: size.0, ws_row: size.1, ws_xpixel: 0, ws_ypixel: 0 })?;
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        if let Some(directory) = command.get_current_dir() {
            session.current_dir(directory);
        }
        session.env_clear();
        session.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        session.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let child =
            session.stdin(Stdio::from(open()?)).stdout(Stdio::from(open()?)).stderr(Stdio::from(open()?)).spawn()?;
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        let master = File::from(master);
        let (drawn, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (mut end, count, stop) = (master.try_clone()?, Arc::clone(&drawn), Arc::clone(&is_over));
        let reader = thread::spawn(move || {
            let mut bytes = [0; 16_384];
            while !stop.load(Ordering::Relaxed) {
                match end.read(&mut bytes) {
                    Ok(read @ 1..) => {
                        count.fetch_add(read as u64, Ordering::Relaxed);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(2)),
                    // The program's side is closed.
                    _ => break,
                }
            }
        });
        Ok((Terminal { master, drawn, is_over, reader: Some(reader) }, child))
    }

    /// Types; false if nobody listens any more.
    pub fn press(&mut self, keys: &[u8]) -> bool {
        self.master.write_all(keys).is_ok()
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let _ = tcsetwinsize(&self.master, Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}
