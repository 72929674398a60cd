//! `--metrics ADDR`: the board as OpenMetrics, for a scraper.
//!
//! Owns the listener and one cold thread. Bounds: one connection at a time, [`REQUEST_BYTES_MAX`] of a request, [`PATIENCE`] for its
//! reader. Loopback unless an address says otherwise. Never writes to the board; a scraper that hangs holds up scrapers only.

use super::refusal::Refusal;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::record::metrics;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most bytes of a request that are read.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Longest wait for a scraper to send or to take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks for a connection.
const LOOK: Duration = Duration::from_millis(20);

/// A port, of this machine alone, or an address with its port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|| text.parse().ok()).ok_or_else(|| {
        "expected a port, which only this machine reaches, or an address with a port; write it like 9464 or 0.0.0.0:9464".to_owned()
    })
}

/// A server that runs; it stops when it is dropped.
pub struct Metrics {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Metrics {
    /// Serves what `snapshot` says at `address`.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn serve(address: SocketAddr, snapshot: impl Fn() -> Snapshot + Send + 'static) -> Result<Metrics, Refusal> {
        let refused = |error: &io::Error| {
            let found = format!("it not to be had ({error})");
            Refusal::unusable(
                format!("--metrics {address}"),
                found,
                "a free port of this machine",
                "name another; 0 takes any",
            )
        };
        let listener = TcpListener::bind(address).map_err(|error| refused(&error))?;
        listener.set_nonblocking(true).map_err(|error| refused(&error))?;
        let address = listener.local_addr().map_err(|error| refused(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line, unpinned")]
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                match listener.accept() {
                    // A scraper that went away has only itself to tell.
                    Ok((stream, _)) => drop(answer(stream, &snapshot)),
                    Err(_) => pause(),
                }
            }
        });
        let thread = Some(thread.map_err(|error| refused(&error))?);
        Ok(Metrics { stop, thread, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a cold thread that waits for connections")]
fn pause() {
    std::thread::sleep(LOOK);
}

fn answer(mut stream: TcpStream, snapshot: &impl Fn() -> Snapshot) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        match stream.read(&mut buffer)? {
            0 => break,
            length => request.extend_from_slice(&buffer[..length]),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (status, kind, body) = match line.split(' ').collect::<Vec<_>>()[..] {
        ["GET" | "HEAD", "/metrics" | "/", _] => ("200 OK", metrics::CONTENT_TYPE, metrics::text(&snapshot())),
        ["GET" | "HEAD", _, _] => ("404 Not Found", "text/plain", "found another path, expected /metrics\n".to_owned()),
        _ => ("400 Bad Request", "text/plain", "found another request, expected GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !line.starts_with("HEAD") {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}
