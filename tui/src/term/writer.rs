//! The thread that writes to the terminal, so that a terminal that nobody reads stops nothing else.
//!
//! Owns the terminal's writing end on a thread of its own; the console thread hands it one frame at a time and takes the
//! emptied buffer back; a byte in a pipe wakes who waits for that. Bounded: one frame under way and one last word, each one write. Never waits for anybody but the
//! terminal, and is left behind when the terminal takes nothing more: the end of the process ends its write.
//!
//! # Why a thread
//!
//! A terminal whose reader has stopped blocks a write for ever, and the console thread is where SIGTERM becomes a drain.
//! Non-blocking writes would need the mode set on the open file that the operator's shell shares, or the terminal opened
//! anew, which a changed user may not do. And frames are skipped before they are drawn, not after: the library sends only
//! what changed since the frame before, so a drawn frame must arrive.

use super::clock::Clock;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// How long a last word may take before the terminal is taken for stuck.
pub const LAST_WORD_MAX: Duration = Duration::from_secs(1);
/// One frame and one last word.
const JOBS_MAX: usize = 2;

enum Job {
    Frame(Vec<u8>),
    Last(Vec<u8>, Sender<()>),
}

/// A frame that has gone out, or could not.
pub struct Written {
    /// Its buffer, emptied.
    pub buffer: Vec<u8>,
    /// How long the terminal took, nanoseconds.
    pub took_ns: u64,
    /// When it was over, console clock.
    pub ended_ns: u64,
}

/// The console thread's end.
pub struct Writer {
    jobs: SyncSender<Job>,
    written: Receiver<(Written, io::Result<()>)>,
    woken: PipeReader,
    state: State,
}

/// Whether a frame is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
}

/// Who may say the last word: any thread, once the writer has it nothing follows.
#[derive(Clone)]
pub struct LastWord(SyncSender<Job>);

/// Whether a last word arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The terminal took it, or is gone: it holds nobody up.
    Yes,
    /// The terminal takes nothing: whoever writes to it now waits for its reader.
    No,
}

impl Writer {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// When the system refuses a thread or a pipe.
    pub fn start(output: impl Write + Send + 'static, clock: Clock) -> io::Result<Writer> {
        let (jobs, todo) = sync_channel(JOBS_MAX);
        let (sent, written) = channel();
        let (woken, wake) = io::pipe()?;
        let mut done = Done { sent, wake };
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it inherits the console thread's cores")]
        Builder::new().name("terminal".to_owned()).spawn(move || write(output, clock, &todo, &mut done))?;
        Ok(Writer { jobs, written, woken, state: State::Idle })
    }

    /// The frame that has gone out since the last call, if one has.
    ///
    /// # Errors
    /// What the terminal answered to it.
    pub fn take_written(&mut self) -> io::Result<Option<Written>> {
        match self.written.try_recv() {
            Ok((written, result)) => {
                self.state = State::Idle;
                result.map(|()| Some(written))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Readable, by a byte for each, after a frame has gone out.
    pub fn woken(&self) -> &PipeReader {
        &self.woken
    }

    /// Whether a frame can be sent.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Hands over a frame. Only when idle: there is room then.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn send(&mut self, frame: Vec<u8>) -> io::Result<()> {
        assert!(self.is_idle(), "one frame at a time");
        self.state = State::Busy;
        self.jobs.try_send(Job::Frame(frame)).map_err(|_gone| io::ErrorKind::BrokenPipe.into())
    }

    /// The right to the last word.
    pub fn last_word(&self) -> LastWord {
        LastWord(self.jobs.clone())
    }
}

impl LastWord {
    /// Says it after the frame under way and waits until it is out, at most [`LAST_WORD_MAX`].
    pub fn say(&self, bytes: Vec<u8>) -> Heard {
        let (heard, out) = channel();
        let sent = self.0.try_send(Job::Last(bytes, heard)).is_ok();
        if sent && out.recv_timeout(LAST_WORD_MAX).is_ok() { Heard::Yes } else { Heard::No }
    }
}

/// The thread's end of what it answers.
struct Done {
    sent: Sender<(Written, io::Result<()>)>,
    wake: PipeWriter,
}

impl Done {
    /// First the answer, then the byte: who is woken finds it. A console that has gone needs neither.
    fn say(&mut self, written: Written, result: io::Result<()>) {
        let _ = self.sent.send((written, result));
        let _ = self.wake.write_all(&[0]);
    }
}

fn write(mut output: impl Write, clock: Clock, todo: &Receiver<Job>, done: &mut Done) {
    while let Ok(job) = todo.recv() {
        match job {
            Job::Frame(mut buffer) => {
                let begun_ns = clock.now_ns();
                let result = output.write_all(&buffer).and_then(|()| output.flush());
                buffer.clear();
                let ended_ns = clock.now_ns();
                done.say(Written { buffer, took_ns: ended_ns - begun_ns, ended_ns }, result);
            }
            Job::Last(bytes, heard) => {
                // A terminal that is gone cannot be restored, and there is nobody to tell.
                let _ = output.write_all(&bytes).and_then(|()| output.flush());
                let _ = heard.send(());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Clock, Heard, Writer};
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;

    /// The next frame that has gone out.
    fn written(writer: &mut Writer) -> io::Result<super::Written> {
        loop {
            if let Some(written) = writer.take_written()? {
                return Ok(written);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_frame_is_one_write_and_its_buffer_comes_back() {
        struct Writes(std::sync::mpsc::Sender<usize>);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.send(bytes.len()).unwrap();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (counted, writes) = std::sync::mpsc::channel();
        let mut writer = Writer::start(Writes(counted), Clock::start()).unwrap();
        writer.send(b"a\nb\nc".to_vec()).unwrap();
        assert!(written(&mut writer).unwrap().buffer.is_empty());
        assert_eq!(writer.last_word().say(b"bye".to_vec()), Heard::Yes);
        assert_eq!(writes.iter().collect::<Vec<_>>(), [5, 3]);
    }

    #[test]
    fn a_reader_that_stops_holds_up_neither_the_sender_nor_the_end() {
        let (output, mut reader) = UnixStream::pair().unwrap();
        let mut writer = Writer::start(output, Clock::start()).unwrap();
        writer.send(vec![b'x'; 8 << 20]).unwrap();
        assert!(!writer.is_idle() && writer.take_written().unwrap().is_none());
        assert_eq!(writer.last_word().say(b"bye".to_vec()), Heard::No);
        let mut all = Vec::new();
        drop(writer);
        reader.read_to_end(&mut all).unwrap();
        assert!(all.ends_with(b"xbye"), "the last word follows the frame once somebody reads again");
    }

    #[test]
    fn a_terminal_that_is_gone_is_an_error_and_no_wait() {
        let (output, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let mut writer = Writer::start(output, Clock::start()).unwrap();
        writer.send(b"frame".to_vec()).unwrap();
        assert!(written(&mut writer).is_err());
        assert_eq!(writer.last_word().say(b"bye".to_vec()), Heard::Yes);
    }
}
