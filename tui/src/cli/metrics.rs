//! `--metrics ADDR`: serves the board as OpenMetrics.
//!
//! Owns the listener and one cold thread, which polls all sockets together and never blocks on one
//! client. Bounds: [`CONNECTIONS_MAX`] connections, of which a new one replaces the oldest that has
//! sent no request yet; [`REQUEST_BYTES_MAX`] of a request; [`CONNECTION_TIME`] for a whole
//! connection, even if its client sends or reads slowly; [`END_TIME`] for the thread to end with
//! the run. Listens on loopback unless the address names another interface. Never writes to the
//! board.
//!
//! ```text
//! accepted ─▶ reads the request ─ complete ─▶ sends the reply ─ sent ─▶ waits for the client's end ─▶ closed
//!                    └──────────── CONNECTION_TIME, or replaced by a new connection ────────────────▶ closed
//! ```

use super::pause;
use super::refusal::Refusal;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::record::metrics;
use pinwheel_engine::units::{Nanos, Ticks};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const CONNECTIONS_MAX: usize = 64;
/// Most connections accepted in one turn: a client whose request arrived with its connection is
/// answered before later connections replace it.
const ACCEPTED_MAX: usize = CONNECTIONS_MAX / 2;
/// Most bytes of a request that are read.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// From a connection's start to its end.
const CONNECTION_TIME: Nanos = Nanos(2_000_000_000);
/// Longest wait for sockets before deadlines and the run's end are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longest wait for the thread at the run's end; a slower thread ends later by itself.
const END_TIME: Duration = Duration::from_millis(500);

/// Parses a port on loopback, or an address with a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|| text.parse().ok()).ok_or_else(|| {
        "expected a port, which only this machine reaches, or an address with a port; write it like 9464 or \
         127.0.0.1:9464"
            .to_owned()
    })
}

/// A running server; dropping it stops it.
pub struct Metrics {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Metrics {
    /// Serves the result of `body` at `address`.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn serve(
        address: SocketAddr,
        clock: Clock,
        body: impl Fn() -> String + Send + 'static,
    ) -> Result<Metrics, Refusal> {
        let refused = |error: &io::Error| {
            let found = format!("an address that cannot be bound ({error})");
            Refusal::unusable(
                format!("--metrics {address}"),
                found,
                "a free port of this machine",
                "name another port; 0 chooses a free one",
            )
        };
        let listener = TcpListener::bind(address).map_err(|error| refused(&error))?;
        listener.set_nonblocking(true).map_err(|error| refused(&error))?;
        let address = listener.local_addr().map_err(|error| refused(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let mut server = Server { listener, connections: Vec::new(), clock, body: Box::new(body) };
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the command line, unpinned")]
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                server.turn();
            }
        });
        let thread = Some(thread.map_err(|error| refused(&error))?);
        Ok(Metrics { stop, thread, address })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        let step = Duration::from_millis(2);
        for _ in 0..END_TIME.as_millis() / step.as_millis() {
            if thread.is_finished() {
                let _ = thread.join();
                return;
            }
            pause(step);
        }
    }
}

/// State of the server's thread.
struct Server {
    listener: TcpListener,
    /// Oldest first.
    connections: Vec<Connection>,
    clock: Clock,
    body: Box<dyn Fn() -> String + Send>,
}

impl Server {
    /// Waits until a socket is ready, at most [`POLL_INTERVAL`], and advances every connection as far as
    /// possible.
    fn turn(&mut self) {
        if self.wait().and_then(|()| self.accept()).is_err() {
            // The system has no resources for another socket or for the wait: pauses before the
            // next attempt.
            pause(POLL_INTERVAL);
        }
        let (now, rate, body) = (self.clock.ticks(), self.clock.rate(), &self.body);
        self.connections.retain_mut(|connection| {
            // An error of a disconnected client needs no report.
            rate.nanos(now.since(connection.begun)) < CONNECTION_TIME && connection.go_on(body).unwrap_or(false)
        });
    }

    fn wait(&self) -> io::Result<()> {
        let wanted = |connection: &Connection| if connection.is_sending() { PollFlags::OUT } else { PollFlags::IN };
        let mut sockets = vec![PollFd::new(&self.listener, PollFlags::IN)];
        sockets.extend(self.connections.iter().map(|connection| PollFd::new(&connection.stream, wanted(connection))));
        match poll(&mut sockets, Timespec::try_from(POLL_INTERVAL).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_MAX {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
                // The client disconnected before the accept.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            if self.connections.len() >= CONNECTIONS_MAX {
                let idle = self.connections.iter().position(|connection| connection.reply.is_none());
                self.connections.remove(idle.unwrap_or(0));
            }
            self.connections.push(Connection { stream, begun: self.clock.ticks(), request: Vec::new(), reply: None });
        }
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    begun: Ticks,
    request: Vec<u8>,
    reply: Option<Reply>,
}

struct Reply {
    bytes: Vec<u8>,
    sent: usize,
}

impl Connection {
    fn is_sending(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.sent < reply.bytes.len())
    }

    /// Advances as far as the socket is ready; returns whether there is more to do.
    fn go_on(&mut self, body: &dyn Fn() -> String) -> io::Result<bool> {
        if self.reply.is_none() {
            let Some(end) = self.read()? else { return Ok(true) };
            match reply(&self.request, end, body) {
                Some(bytes) => self.reply = Some(Reply { bytes, sent: 0 }),
                None => return Ok(false),
            }
        }
        let Some(reply) = &mut self.reply else { return Ok(false) };
        while reply.sent < reply.bytes.len() {
            match self.stream.write(&reply.bytes[reply.sent..]) {
                Ok(0) => return Ok(false),
                Ok(length) => reply.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if reply.sent == reply.bytes.len() {
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        // Closing a socket with unread input would discard the part of the reply that the client
        // has not read.
        let mut unread = [0; 1024];
        match self.stream.read(&mut unread) {
            Ok(0) => Ok(false),
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Err(error),
            _ => Ok(true),
        }
    }

    /// Reads the available part of the request; `None` while it is incomplete.
    fn read(&mut self) -> io::Result<Option<End>> {
        let mut buffer = [0; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Some(End::ByClient)),
                Ok(length) => self.request.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if has_blank_line(&self.request) {
                return Ok(Some(End::Complete));
            }
            if self.request.len() > REQUEST_BYTES_MAX {
                return Ok(Some(End::TooLong));
            }
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The blank line after the head was read.
    Complete,
    /// The client closed its sending side.
    ByClient,
    /// The request exceeded [`REQUEST_BYTES_MAX`].
    TooLong,
}

fn has_blank_line(request: &[u8]) -> bool {
    // A line may end with LF alone (RFC 9112 §2.2).
    request.windows(4).any(|end| end == b"\r\n\r\n") || request.windows(2).any(|end| end == b"\n\n")
}

/// The reply to a request; `None` for an empty request.
fn reply(request: &[u8], end: End, body: &dyn Fn() -> String) -> Option<Vec<u8>> {
    if request.is_empty() {
        return None;
    }
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let said = |text: &str| (TEXT, format!("{text}\n"));
    let (status, (kind, body)) = match words[..] {
        _ if end == End::TooLong => {
            ("431 Request Header Fields Too Large", said(&format!("expected at most {REQUEST_BYTES_MAX} bytes")))
        }
        [method, target, version] if is_http_1(version) => match (method, path(target)) {
            (_, None) => ("400 Bad Request", said("found another target, expected a path such as /metrics")),
            ("GET" | "HEAD", Some("/metrics" | "/")) => ("200 OK", (metrics::CONTENT_TYPE, body())),
            ("GET" | "HEAD", Some(_)) => ("404 Not Found", said("found another path, expected /metrics")),
            _ => ("405 Method Not Allowed", said("found another method, expected GET or HEAD")),
        },
        _ => ("400 Bad Request", said("found another request, expected GET /metrics HTTP/1.1")),
    };
    // RFC 9110 §15.5.6.
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    if words.first() != Some(&"HEAD") {
        bytes.extend_from_slice(body.as_bytes());
    }
    Some(bytes)
}

const TEXT: &str = "text/plain; charset=utf-8";

fn is_http_1(version: &str) -> bool {
    version.strip_prefix("HTTP/1.").is_some_and(|minor| minor.len() == 1 && minor.bytes().all(|b| b.is_ascii_digit()))
}

/// The path of a request's target, without its query: of `/metrics?x=y` and of
/// `http://host/metrics`; `None`: neither form.
fn path(target: &str) -> Option<&str> {
    let absolute = target.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let whole = match absolute {
        true => target[7..].find(['/', '?']).map_or("/", |from| &target[7 + from..]),
        false => target,
    };
    let path = whole.split(['?', '#']).next().unwrap_or_default();
    let path = if path.is_empty() && absolute { "/" } else { path };
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]
    use super::{CONNECTION_TIME, CONNECTIONS_MAX, Clock, End, Metrics, REQUEST_BYTES_MAX, reply};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Longest wait for an expected event.
    const DEADLINE: Duration = Duration::from_secs(120);

    fn replied(request: &str) -> String {
        String::from_utf8(reply(request.as_bytes(), End::Complete, &|| "the metrics".to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn a_query_is_no_part_of_the_path_and_methods_are_as_http_has_them() {
        for (line, status, with_body) in [
            ("GET /metrics HTTP/1.1", "200", true),
            ("GET /metrics?x=y HTTP/1.1", "200", true),
            ("GET /?name[]=a HTTP/1.0", "200", true),
            ("GET http://host:9464/metrics?x HTTP/1.1", "200", true),
            ("GET http://host HTTP/1.1", "200", true),
            ("HEAD /metrics?x=y HTTP/1.1", "200", false),
            ("HEAD /other HTTP/1.1", "404", false),
            ("GET /metricsx HTTP/1.1", "404", true),
            ("GET /metrics/ HTTP/1.1", "404", true),
            ("GET /%6detrics HTTP/1.1", "404", true),
            ("POST /metrics HTTP/1.1", "405", true),
            ("OPTIONS * HTTP/1.1", "400", true),
            ("GET metrics HTTP/1.1", "400", true),
            ("GET /metrics", "400", true),
            ("GET /metrics HTTP/2.0", "400", true),
            ("get /metrics HTTP/1.1", "405", true),
            ("\u{fffd}", "400", true),
        ] {
            let said = replied(&format!("{line}\r\nHost: x\r\n\r\n"));
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {head}");
            assert_eq!(head.contains("Allow: GET, HEAD"), status == "405", "{line}");
            let length: usize = head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            assert!(length > 0 && body.len() == if with_body { length } else { 0 }, "{line}: {said}");
        }
        assert!(reply(b"", End::ByClient, &String::new).is_none(), "nobody asked");
        let long = reply(&[b'x'; REQUEST_BYTES_MAX + 1], End::TooLong, &String::new).unwrap();
        assert!(long.starts_with(b"HTTP/1.1 431 "));
    }

    /// A server with a manual clock.
    fn served() -> (Metrics, Arc<AtomicU64>) {
        let nanos = Arc::new(AtomicU64::new(0));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let address = "127.0.0.1:0".parse().unwrap();
        (Metrics::serve(address, clock, || "the metrics\n".repeat(1 << 20)).unwrap(), nanos)
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    fn scrape(address: SocketAddr) -> String {
        let mut stream = connect(address);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn idle_connections_beyond_the_limit_replace_each_other_and_hold_up_no_scrape() {
        let (server, _) = served();
        let idle: Vec<TcpStream> = (0..3 * CONNECTIONS_MAX).map(|_| connect(server.address())).collect();
        let said = scrape(server.address());
        assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("the metrics\n"), "whole, although it is long");
        assert_eq!((&idle[0]).read(&mut [0; 8]).unwrap(), 0, "the oldest is closed");
    }

    #[test]
    fn a_client_that_sends_or_takes_slowly_has_a_deadline_for_its_whole_request() {
        let (server, nanos) = served();
        let [mut sends, mut takes] = [(); 2].map(|()| connect(server.address()));
        sends.write_all(b"GET /metrics").unwrap();
        takes.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        takes.read_exact(&mut [0; 8]).unwrap();
        // A scrape is answered only after all earlier connections were handled.
        scrape(server.address());
        nanos.store(CONNECTION_TIME.0 - 1, Ordering::Relaxed);
        sends.write_all(b" ").unwrap();
        scrape(server.address());
        nanos.store(CONNECTION_TIME.0, Ordering::Relaxed);
        assert_eq!(sends.read(&mut [0; 8]).unwrap_or(0), 0, "no reply");
        let mut rest = Vec::new();
        let _reset = takes.read_to_end(&mut rest);
        assert!(!rest.is_empty() && rest.len() < 12 << 20, "{}", rest.len());
    }

    #[test]
    fn a_server_ends_although_its_clients_go_on() {
        let (server, _) = served();
        let clients: Vec<TcpStream> = (0..4).map(|_| connect(server.address())).collect();
        clients.iter().for_each(|mut client| client.write_all(b"GET").unwrap());
        let (ended, has_ended) = channel();
        std::thread::spawn(move || {
            drop(server);
            ended.send(()).unwrap();
        });
        assert!(has_ended.recv_timeout(DEADLINE).is_ok());
        drop(clients);
    }
}
