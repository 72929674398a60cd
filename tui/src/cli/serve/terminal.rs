//! A terminal with a program on it: the pseudo-terminal's controlling end, and the process.
//!
//! Owns both. Reads and writes wait without blocking the thread. Whoever drops the controlling end hangs the terminal
//! up; should this process be killed, the system does that, so no program stays behind.

use rustix::io::{Errno, ioctl_fionbio};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::time::timeout;

/// From the hang-up to the program's end; then it is killed.
const HANG_UP_TIME: Duration = Duration::from_secs(2);
/// Least and most columns and rows: a picture costs memory, whatever a browser asks for.
const COLUMNS: (u16, u16) = (2, 1000);
const ROWS: (u16, u16) = (2, 400);

/// A size in characters.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

impl Size {
    fn window(self) -> Winsize {
        let (ws_col, ws_row) = (self.columns.clamp(COLUMNS.0, COLUMNS.1), self.rows.clamp(ROWS.0, ROWS.1));
        Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// A terminal and the program on it.
pub struct Terminal {
    control: AsyncFd<OwnedFd>,
    child: Child,
}

impl Terminal {
    /// Starts `command` on a new terminal. The command makes it its controlling terminal itself.
    ///
    /// # Errors
    /// If the system has no terminal or no process for it.
    pub fn start(mut command: Command, size: Size) -> io::Result<Terminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let control = openpt(flags)?;
        grantpt(&control)?;
        unlockpt(&control)?;
        let end = ioctl_tiocgptpeer(&control, flags)?;
        tcsetwinsize(&end, size.window())?;
        ioctl_fionbio(&control, true)?;
        command.stdin(end.try_clone()?).stdout(end.try_clone()?).stderr(end);
        // The command is dropped here, and with it this process's hold on the program's end.
        let child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        #[expect(deprecated, reason = "an OwnedFd is the one owner of its descriptor; what replaces it is unsafe")]
        let control = AsyncFd::new(control)?;
        Ok(Terminal { control, child })
    }

    /// What the program writes, at least a byte; 0: it has ended.
    ///
    /// # Errors
    /// Those of the system, which no terminal is known to have.
    pub async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.control.readable().await?;
            match ready.try_io(|control| Ok(rustix::io::read(control.get_ref(), &mut *into)?)) {
                // Nobody has the program's end open any more.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(0),
                Ok(read) => return read,
                Err(_would_block) => {}
            }
        }
    }

    /// Types a part of `keys`; how many bytes.
    ///
    /// # Errors
    /// If the program has ended.
    pub async fn write(&self, keys: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.control.writable().await?;
            match ready.try_io(|control| Ok(rustix::io::write(control.get_ref(), keys)?)) {
                Ok(written) => return written,
                Err(_would_block) => {}
            }
        }
    }

    pub fn resize(&self, size: Size) {
        // A terminal whose program has ended has no use for it.
        let _ = tcsetwinsize(self.control.get_ref(), size.window());
    }

    /// Hangs up, and waits for the program's end; kills a program that stays. `None`: the system says no status.
    pub async fn end(self) -> Option<ExitStatus> {
        let Terminal { control, mut child } = self;
        drop(control);
        match timeout(HANG_UP_TIME, child.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => {
                let _ = child.kill().await;
                child.wait().await.ok()
            }
        }
    }
}
