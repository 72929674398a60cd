//! How long a connection may take: as long as bytes pass, within a limit.
//!
//! Owned by the connection's task. Bytes are counted below TLS, where the other side's pace shows.
//!
//! # Why not one time for all
//! A file of the page comes through a slow line for minutes, and would be cut off in its middle. A
//! reader that takes a byte now and then would hold its place for ever: hence the limit.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, timeout};

/// Bytes that have passed in either direction. Relaxed: a counter that stands alone.
#[derive(Clone, Default)]
pub struct Passed(Arc<AtomicU64>);

impl Passed {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Runs `work` until it ends, no byte passes for `still` (noticed within twice that), or `most`
    /// is over.
    pub async fn bound(&self, work: impl Future, still: Duration, most: Duration) {
        let stands_still = async {
            let mut before = self.0.load(Ordering::Relaxed);
            loop {
                sleep(still).await;
                let now = self.0.load(Ordering::Relaxed);
                if now == before {
                    return;
                }
                before = now;
            }
        };
        tokio::select! {
            _ = timeout(most, work) => {}
            () = stands_still => {}
        }
    }
}

/// A stream whose bytes are counted.
pub struct Counted<S> {
    stream: S,
    passed: Passed,
}

impl<S> Counted<S> {
    pub fn new(stream: S, passed: Passed) -> Counted<S> {
        Counted { stream, passed }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.passed.add(bytes);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.passed.add(into.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Counted, Passed};
    use std::future::poll_fn;
    use std::io::IoSlice;
    use std::pin::Pin;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::net::UnixStream;
    use tokio::time::sleep;

    const STILL: Duration = Duration::from_millis(300);

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    /// How many of `steps` a connection makes, each of which passes a byte after 20 ms, within
    /// `most`.
    fn made(steps: u32, passes: bool, most: Duration) -> u32 {
        let (passed, mut made) = (Passed::default(), 0);
        let work = async {
            for _ in 0..steps {
                sleep(STILL / 15).await;
                passed.add(usize::from(passes));
                made += 1;
            }
        };
        run(passed.bound(work, STILL, most));
        made
    }

    #[test]
    fn a_connection_ends_when_it_stands_still_or_at_its_limit_and_not_while_bytes_pass() {
        let long = STILL * 1_000;
        assert_eq!(made(60, true, long), 60, "four times as long as it may stand still");
        assert!((1..60).contains(&made(60, false, long)), "nothing passes");
        assert!((1..60).contains(&made(60, true, STILL)), "the limit of all");
    }

    #[test]
    fn bytes_count_in_both_directions() {
        run(async {
            let (one, mut other) = UnixStream::pair().unwrap();
            let passed = Passed::default();
            let mut one = Counted::new(one, passed.clone());
            poll_fn(|cx| Pin::new(&mut one).poll_write(cx, &[1; 3])).await.unwrap();
            poll_fn(|cx| Pin::new(&mut one).poll_write_vectored(cx, &[IoSlice::new(&[1; 20])])).await.unwrap();
            assert_eq!(passed.0.load(Ordering::Relaxed), 23);
            poll_fn(|cx| Pin::new(&mut other).poll_write(cx, &[1; 100])).await.unwrap();
            let mut bytes = [0; 200];
            let mut into = ReadBuf::new(&mut bytes);
            poll_fn(|cx| Pin::new(&mut one).poll_read(cx, &mut into)).await.unwrap();
            assert_eq!(passed.0.load(Ordering::Relaxed), 123);
        });
    }
}
