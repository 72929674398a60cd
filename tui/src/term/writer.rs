//! The thread that writes to the terminal, so that a terminal without a reader blocks only this
//! thread.
//!
//! Owns the terminal's writing end on a separate thread. The console thread passes it one frame at
//! a time and takes the empty buffer back; a byte in a pipe signals the return. Bounded: one frame
//! and one final write in progress, each a single write. Waits for the terminal only. If the
//! terminal blocks for good, the thread is abandoned, and the end of the process ends its write.
//!
//! # Why a thread
//!
//! A terminal whose reader has stopped blocks a write for ever, and the console thread turns
//! SIGTERM into a drain. Non-blocking writes would need the mode set on the open file that the
//! operator's shell shares, or the terminal reopened, which a changed user may not do. Frames are
//! skipped before they are drawn, not after: the library sends only the differences to the previous
//! frame, so a drawn frame must arrive.

use super::clock::Clock;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// Longest final write; beyond it the terminal counts as stuck.
pub const FINAL_WRITE_MAX: Duration = Duration::from_secs(1);
/// One frame and one final write.
const JOBS_MAX: usize = 2;

enum Job {
    Frame(Vec<u8>),
    Final(Vec<u8>, Sender<()>),
}

/// A frame that has gone out, or has failed.
pub struct Written {
    /// Its buffer, empty.
    pub buffer: Vec<u8>,
    /// Time that the terminal took, nanoseconds.
    pub took_ns: u64,
    /// End of the write, console clock.
    pub ended_ns: u64,
}

/// The console thread's end.
pub struct Writer {
    jobs: SyncSender<Job>,
    written: Receiver<(Written, io::Result<()>)>,
    woken: PipeReader,
    state: State,
}

/// Whether a frame is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Busy,
}

/// The final write, usable from any thread; the writer accepts nothing after it.
#[derive(Clone)]
pub struct FinalWrite(SyncSender<Job>);

/// Whether the final write completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The terminal took it or is closed; later writes do not block.
    Yes,
    /// The terminal takes nothing: a write would block until its reader continues.
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
        #[expect(clippy::disallowed_methods, reason = "a cold thread; it takes_over the console thread's cores")]
        Builder::new().name("pinwheel-screen".to_owned()).spawn(move || write(output, clock, &todo, &mut done))?;
        Ok(Writer { jobs, written, woken, state: State::Idle })
    }

    /// The frame that has gone out since the last call, if any.
    ///
    /// # Errors
    /// The terminal's error on writing it.
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

    /// Readable after a frame has gone out; holds one byte per frame.
    pub fn woken(&self) -> &PipeReader {
        &self.woken
    }

    /// Whether a frame can be sent.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Passes on a frame. Call it only when idle: the queue has room then.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn send(&mut self, frame: Vec<u8>) -> io::Result<()> {
        assert!(self.is_idle(), "one frame at a time");
        self.state = State::Busy;
        self.jobs.try_send(Job::Frame(frame)).map_err(|_gone| io::ErrorKind::BrokenPipe.into())
    }

    pub fn final_write(&self) -> FinalWrite {
        FinalWrite(self.jobs.clone())
    }
}

impl FinalWrite {
    /// Writes `bytes` after the frame in progress and waits for the end, at most
    /// [`FINAL_WRITE_MAX`].
    pub fn send(&self, bytes: Vec<u8>) -> Delivered {
        let (delivered, out) = channel();
        let sent = self.0.try_send(Job::Final(bytes, delivered)).is_ok();
        if sent && out.recv_timeout(FINAL_WRITE_MAX).is_ok() { Delivered::Yes } else { Delivered::No }
    }
}

/// The thread's end of the replies.
struct Done {
    sent: Sender<(Written, io::Result<()>)>,
    wake: PipeWriter,
}

impl Done {
    /// Sends the reply before the byte, so that the woken console finds it. Errors mean that the
    /// console has ended.
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
            Job::Final(bytes, delivered) => {
                // A closed terminal cannot be restored, and the error has no reader.
                let _ = output.write_all(&bytes).and_then(|()| output.flush());
                let _ = delivered.send(());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Clock, Delivered, Writer};
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
        assert_eq!(writer.final_write().send(b"bye".to_vec()), Delivered::Yes);
        assert_eq!(writes.iter().collect::<Vec<_>>(), [5, 3]);
    }

    #[test]
    fn a_reader_that_stops_holds_up_neither_the_sender_nor_the_end() {
        let (output, mut reader) = UnixStream::pair().unwrap();
        let mut writer = Writer::start(output, Clock::start()).unwrap();
        writer.send(vec![b'x'; 8 << 20]).unwrap();
        assert!(!writer.is_idle() && writer.take_written().unwrap().is_none());
        assert_eq!(writer.final_write().send(b"bye".to_vec()), Delivered::No);
        let mut all = Vec::new();
        drop(writer);
        reader.read_to_end(&mut all).unwrap();
        assert!(all.ends_with(b"xbye"), "the final write follows the frame once somebody reads again");
    }

    #[test]
    fn a_terminal_that_is_gone_is_an_error_and_no_wait() {
        let (output, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let mut writer = Writer::start(output, Clock::start()).unwrap();
        writer.send(b"frame".to_vec()).unwrap();
        assert!(written(&mut writer).is_err());
        assert_eq!(writer.final_write().send(b"bye".to_vec()), Delivered::Yes);
    }
}
