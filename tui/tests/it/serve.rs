//! `pinwheel serve`: consoles over websockets, and what it refuses. A client of the tests' own stands for a browser;
//! a real one is in [`crate::browser`].

use crate::attach::Headless;
use crate::world::{DEADLINE, World, engine, until, word};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::header::{HOST, ORIGIN};
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, HandshakeError, Message, WebSocket};
use vt100::{Parser, Screen};

/// Longest that a test waits for one message before it looks at its condition again.
const PIECE_TIME: Duration = Duration::from_millis(20);
/// What a stopped browser may cost the serving process: less than the megabytes that it does not read.
const GROWTH_KIB_MAX: u64 = 4 << 10;
/// More connections than a server has.
const IDLE: usize = 80;
/// Keys of which the time is measured.
const MEASURED_KEYS: usize = 200;

/// `pinwheel serve`, killed when the test is over.
pub struct Served {
    pub child: Child,
    /// As it is in the first line.
    pub address: String,
    pub token: String,
    pub scheme: String,
}

impl Served {
    /// Starts it with these words besides; what it says to people goes into the file `serve.err`.
    pub fn start(world: &World, words: &str) -> Served {
        Served::start_with(world, words, File::create(world.path("serve.err")).unwrap().into())
    }

    /// As [`Served::start`], with this standard error.
    fn start_with(world: &World, words: &str, said: Stdio) -> Served {
        let mut child = world.command(&format!("serve {words}")).stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((scheme, rest)) = line.trim_end().split_once("://") else {
            panic!("{line:?}, {}", fs::read_to_string(world.path("serve.err")).unwrap_or_default())
        };
        let (address, token) = rest.split_once("/#").unwrap();
        Served { child, address: address.to_owned(), token: token.to_owned(), scheme: scheme.to_owned() }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// A browser with the right token and that size.
    fn view(&self, size: (u16, u16)) -> Viewer<TcpStream> {
        let mut viewer = Viewer::open(self.connect(), &self.address, &self.origin(), size).unwrap();
        viewer.hello(&self.token);
        viewer
    }

    /// Reads a resident size of the process, KiB.
    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes of consoles in browsers that this world has.
fn consoles(world: &World) -> Vec<u32> {
    let (own, browser) = (format!("PINWHEEL_SHM={}", world.path("shm").display()), "PINWHEEL_BROWSER=");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        variables.contains(&own.as_bytes()) && variables.iter().any(|one| one.starts_with(browser.as_bytes()))
    })
    .collect()
}

/// A stand-in for a browser: a websocket, and the screen that its bytes draw.
pub struct Viewer<S> {
    socket: WebSocket<S>,
    parser: Parser,
    size: (u16, u16),
    /// Bytes of the terminal so far.
    bytes: usize,
}

impl Viewer<TcpStream> {
    /// Opens a websocket; else the status of the answer.
    fn open(stream: TcpStream, host: &str, origin: &str, size: (u16, u16)) -> Result<Viewer<TcpStream>, StatusCode> {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let viewer = Viewer::over(stream, host, origin, size)?;
        viewer.socket.get_ref().set_read_timeout(Some(PIECE_TIME)).unwrap();
        Ok(viewer)
    }
}

impl<S: Read + Write> Viewer<S> {
    pub fn over(stream: S, host: &str, origin: &str, (columns, rows): (u16, u16)) -> Result<Viewer<S>, StatusCode> {
        let mut request = "ws://127.0.0.1/socket".into_client_request().unwrap();
        request.headers_mut().insert(HOST, HeaderValue::from_str(host).unwrap());
        request.headers_mut().insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => {
                Ok(Viewer { socket, parser: Parser::new(rows, columns, 0), size: (columns, rows), bytes: 0 })
            }
            Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status()),
            Err(error) => panic!("{error}"),
        }
    }

    pub fn hello(&mut self, token: &str) {
        let (columns, rows) = self.size;
        let hello = serde_json::json!({ "token": token, "columns": columns, "rows": rows });
        self.socket.send(Message::text(hello.to_string())).unwrap();
    }

    pub fn press(&mut self, keys: &str) {
        self.socket.send(Message::binary(keys.as_bytes().to_vec())).unwrap();
    }

    fn resize(&mut self, (columns, rows): (u16, u16)) -> Result<(), Error> {
        self.parser.screen_mut().set_size(rows, columns);
        let size = serde_json::json!({ "columns": columns, "rows": rows });
        self.socket.send(Message::text(size.to_string()))
    }

    /// Takes a message, if one comes soon; `Err`: how the websocket was closed.
    fn take(&mut self) -> Result<(), (u16, String)> {
        match self.socket.read() {
            Ok(Message::Binary(bytes)) => {
                self.bytes += bytes.len();
                self.parser.process(&bytes);
                Ok(())
            }
            Ok(Message::Close(Some(frame))) => {
                // The answer, after which the server ends the connection.
                let _ = self.socket.flush();
                Err((frame.code.into(), frame.reason.to_string()))
            }
            Ok(_) => Ok(()),
            Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
            Err(error) => Err((CloseCode::Abnormal.into(), error.to_string())),
        }
    }

    #[track_caller]
    fn see(&mut self, what: &str, is_so: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !is_so(self.parser.screen()) {
            let taken = self.take();
            let text = self.parser.screen().contents();
            assert!(Instant::now() < end && taken.is_ok(), "no {what} ({taken:?}) on:\n{text}");
        }
    }

    #[track_caller]
    pub fn see_words(&mut self, words: &[&str]) {
        self.see(&format!("{words:?}"), |screen| words.iter().all(|word| screen.contents().contains(word)));
    }

    /// How the server closes the websocket.
    #[track_caller]
    fn closed(&mut self) -> (u16, String) {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.take() {
                Err(close) => return close,
                Ok(()) => assert!(Instant::now() < end, "not closed"),
            }
        }
    }
}

/// The last row that has text, and the longest row's columns.
fn extent(screen: &Screen) -> (usize, usize) {
    let rows: Vec<String> = screen.rows(0, screen.size().1).collect();
    let last = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |at| at + 1);
    (last, rows.iter().map(|row| row.trim_end().chars().count()).max().unwrap_or(0))
}

#[test]
fn browsers_show_the_console_read_only_each_in_its_own_size() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    assert!(served.address.starts_with("127.0.0.1:") && served.token.len() == 32, "{}", served.address);
    let (mut small, mut large) = (served.view((100, 30)), served.view((180, 50)));
    for viewer in [&mut small, &mut large] {
        viewer.see_words(&["LIVE", "READ-ONLY"]);
        viewer.press("H");
        viewer.see_words(&["hold refused", "--control"]);
        viewer.press("W");
        viewer.see_words(&["writing the screen refused"]);
    }
    assert!(world.files().iter().all(|file| !file.ends_with(".txt")), "{:?}", world.files());
    small.press("2");
    small.see_words(&["threads: which is late"]);
    large.see("a picture of its size", |screen| extent(screen).0 == 50 && extent(screen).1 > 150);
    assert!(!large.parser.screen().contents().contains("threads: which is late"));
    large.resize((90, 25)).unwrap();
    large.see("a picture of the new size", |screen| extent(screen).0 == 25);
    small.see("a picture of its size", |screen| extent(screen).0 == 30);
    // `q` ends one console, and the page does not come back by itself.
    small.press("q");
    assert_eq!(small.closed(), (4004, "The console has ended.".to_owned()));
    large.see_words(&["LIVE"]);
    assert_eq!(consoles(&world).len(), 1);
}

#[test]
fn a_command_from_a_browser_is_recorded_with_its_address() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let name = fs::read_dir(world.path("logs")).unwrap().flatten().map(|run| run.path()).find(|path| path.is_dir());
    let served = Served::start(&world, &format!("0 --control --run {}", word(name.unwrap().file_name().unwrap())));
    let mut viewer = served.view((120, 40));
    viewer.see_words(&["LIVE", "ATTACHED"]);
    viewer.press("H");
    viewer.see_words(&["hold the feed?"]);
    viewer.press("y");
    viewer.see_words(&["HELD"]);
    until("an action with its address", || {
        let runs = fs::read_dir(world.path("logs")).unwrap().flatten();
        let events = runs.map(|run| fs::read_to_string(run.path().join("events.jsonl")).unwrap_or_default());
        events.collect::<String>().contains(", in a browser from 127.0.0.1)")
    });
    assert!(
        world.run("ctl status").exits(0).json()["held_by"].as_str().unwrap().contains("in a browser from 127.0.0.1")
    );
}

#[test]
fn a_wrong_token_origin_or_host_and_a_ninth_browser_are_refused_and_logged() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    let (address, origin) = (served.address.as_str(), served.origin());
    let said = |part: &str| {
        until(part, || fs::read_to_string(world.path("serve.err")).unwrap().contains(part));
    };
    let open = |host: &str, origin: &str| Viewer::open(served.connect(), host, origin, (80, 24));
    for (host, origin, part) in [
        (address, "http://evil.example", r#"a websocket of origin "http://evil.example""#),
        (address, "null", r#"a websocket of origin "null""#),
        (address, "http://localhost:3000", r#"a websocket of origin "http://localhost:3000""#),
        ("evil.example:7777", "http://evil.example:7777", r#"a request for host "evil.example:7777""#),
    ] {
        assert_eq!(open(host, origin).map(drop), Err(StatusCode::FORBIDDEN), "{host} {origin}");
        said(part);
    }
    for token in ["", "0", &served.token[1..], &"0".repeat(32)] {
        let mut viewer = open(address, &origin).unwrap();
        viewer.hello(token);
        let (code, sentence) = viewer.closed();
        assert!(code == 4001 && sentence.starts_with("The token is wrong;"), "{code} {sentence}");
    }
    said("a wrong token");
    let mut other = open(address, &origin).unwrap();
    other.press("H");
    assert_eq!(other.closed().0, 4000);
    said("a websocket without a token");
    assert_eq!(consoles(&world).len(), 0);
    let mut viewers: Vec<_> = (0..8).map(|_| served.view((80, 24))).collect();
    viewers.iter_mut().for_each(|viewer| viewer.see_words(&["LIVE"]));
    let mut ninth = served.view((80, 24));
    assert_eq!(ninth.closed(), (4002, "8 browsers are connected already; close one of them.".to_owned()));
    said("8 browsers are connected already");
    assert_eq!(consoles(&world).len(), 8);
    // Where one leaves there is room again.
    drop(viewers.pop());
    until("the end of a console", || consoles(&world).len() == 7);
    served.view((80, 24)).see_words(&["LIVE"]);
    // No refusal says the token.
    assert!(!fs::read_to_string(world.path("serve.err")).unwrap().contains(&served.token));
}

#[test]
fn the_end_of_serve_ends_its_consoles_and_not_the_engine() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    for (signal, status) in [(Signal::TERM, Some(143)), (Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut served = Served::start(&world, "0 --control");
        let mut viewers: Vec<_> = (0..2).map(|_| served.view((80, 24))).collect();
        viewers.iter_mut().for_each(|viewer| viewer.see_words(&["LIVE"]));
        // A browser that is in the middle of a request does not hold up the end.
        let mut slow = served.connect();
        slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        kill_process(served.pid(), signal).unwrap();
        assert_eq!(served.child.wait().unwrap().code(), status);
        if status.is_some() {
            assert_eq!(consoles(&world).len(), 0, "{signal:?}");
            assert_eq!(viewers[0].closed(), (1001, "pinwheel serve ends.".to_owned()));
        }
        until("the consoles' end", || consoles(&world).is_empty());
        assert_eq!(world.run("ctl status").exits(0).json()["phase"], "LIVE");
    }
}

#[test]
fn a_browser_that_stops_reading_stops_its_own_console_alone_and_is_cut_off() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    let (mut deaf, mut other) = (served.view((200, 60)), served.view((80, 24)));
    other.see_words(&["LIVE"]);
    deaf.see_words(&["LIVE"]);
    let before_kib = served.resident_kib();
    // Each new size asks for a whole picture.
    deaf.socket.get_ref().set_write_timeout(Some(PIECE_TIME)).unwrap();
    let mut columns = 200;
    until("the end of the browser that does not read", || {
        columns = 399 - columns;
        let _ = deaf.resize((columns, 60));
        other.press(if columns == 200 { "1" } else { "2" });
        let words: &[&str] = if columns == 200 { &["now "] } else { &["threads: which is late"] };
        other.see_words(words);
        consoles(&world).len() == 1
    });
    let grown_kib = served.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < GROWTH_KIB_MAX, "{grown_kib} KiB");
    assert_eq!(world.run("ctl status").exits(0).json()["phase"], "LIVE");
}

#[test]
fn a_browser_without_an_engine_is_told_why_and_the_next_engine_is_shown() {
    let _one = engine();
    let world = World::new();
    let mut first = Headless::start(&world);
    let served = Served::start(&world, "0");
    let mut viewer = served.view((200, 40));
    viewer.see_words(&["LIVE"]);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    viewer.see_words(&["GONE"]);
    viewer.press("q");
    assert_eq!(viewer.closed(), (4004, "The console has ended with exit status 1.".to_owned()));
    let mut viewer = served.view((200, 40));
    viewer.see_words(&["expected a running engine; start one with pinwheel run"]);
    assert_eq!(viewer.closed(), (4004, "The console has ended with exit status 2.".to_owned()));
    until("a line about it", || {
        fs::read_to_string(world.path("serve.err")).unwrap().contains("its console ended with exit status 2")
    });
    let _second = Headless::start(&world);
    served.view((200, 40)).see_words(&["LIVE"]);
}

#[test]
fn idle_connections_hold_up_no_browser() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| served.connect()).collect();
    until("a page", || {
        let mut stream = served.connect();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut answer = Vec::new();
        // A connection beyond the limit is closed at once.
        let _ = stream.write_all(format!("GET / HTTP/1.0\r\nHost: {}\r\n\r\n", served.address).as_bytes());
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.0 200 OK")
    });
    let refused = fs::read_to_string(world.path("serve.err")).unwrap();
    let lines = refused.lines().filter(|line| line.contains("64 connections are open")).count();
    assert!((1..=30).contains(&lines), "{refused}");
    served.view((80, 24)).see_words(&["LIVE"]);
    drop(idle);
}

#[test]
fn a_stopped_reader_of_standard_error_stops_no_viewer() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let (reader, mut writer) = std::io::pipe().unwrap();
    // Filled, without a wait for room.
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let mut served = Served::start_with(&world, "0", writer.into());
    for _ in 0..IDLE {
        let mut wrong = Viewer::open(served.connect(), &served.address, &served.origin(), (80, 24)).unwrap();
        wrong.hello("0");
        assert_eq!(wrong.closed().0, 4001);
    }
    served.view((80, 24)).see_words(&["LIVE"]);
    kill_process(served.pid(), Signal::TERM).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(143));
    drop(reader);
}

#[test]
fn a_client_that_closes_its_own_side_gets_its_answer() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    // Its end often arrives before the answer is sent.
    for _ in 0..40 {
        let mut stream = served.connect();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(format!("GET /xterm.mjs HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK") && answer.len() > 100_000, "{}", answer.len());
    }
}

#[test]
fn what_cannot_be_served_is_refused_in_one_sentence_before_it_listens() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap().port();
    world.put("no.pem", "nothing");
    let refused = |words: &str, part: &str| {
        let ran = world.run(words).exits(2);
        assert!(ran.err.contains(part) && ran.err.trim_end().lines().count() == 1, "{words}: {}", ran.err);
        assert!(ran.out.is_empty(), "{words}: {}", ran.text());
    };
    refused("serve", "found none, expected a running engine");
    refused("serve 0.0.0.0:0", "found an address that other machines reach, expected --cert and --key");
    refused("serve lab2:80", "expected a port");
    refused("serve 0 --cert no.pem", "--key");
    let no_certificate =
        if cfg!(feature = "tls") { "found no certificate" } else { "found a program that was built without TLS" };
    refused("serve 0 --cert no.pem --key no.pem", no_certificate);
    refused("serve 0 --cert absent --key no.pem", "--cert absent: found");
    let _one = engine();
    let _engine = Headless::start(&world);
    refused("serve 0 --run absent", "expected one of run absent");
    refused("serve 0 --run ssh:lab2", "expected one of run ssh:lab2");
    refused(&format!("serve {busy}"), "found an address that cannot be bound");
}

/// Prints what a viewer costs and how soon a key is on its screen: figures of the specification.
#[test]
#[ignore = "a measurement of half a minute, for a quiet machine"]
fn bytes_and_keys_of_a_viewer() {
    let _one = engine();
    let world = World::new();
    let _engine = Headless::start(&world);
    let served = Served::start(&world, "0");
    let mut viewer = served.view((200, 60));
    viewer.see_words(&["LIVE"]);
    viewer.socket.get_ref().set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (from, begun) = (viewer.bytes, Instant::now());
    while begun.elapsed() < Duration::from_secs(20) {
        viewer.take().unwrap();
    }
    let rate = (viewer.bytes - from) as f64 / begun.elapsed().as_secs_f64();
    let mut took: Vec<Duration> = (0..MEASURED_KEYS)
        .map(|at| {
            // The console draws at most thirty pictures a second: a key that follows one at once waits for the next.
            let rested = Instant::now();
            while rested.elapsed() < Duration::from_millis(100) {
                viewer.take().unwrap();
            }
            let (key, words) = if at % 2 == 0 { ("2", "threads: which is late") } else { ("3", "slots: which waits") };
            let pressed = Instant::now();
            viewer.press(key);
            viewer.see(words, |screen| screen.contents().contains(words));
            pressed.elapsed()
        })
        .collect();
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{rate:.0} bytes/s at 200x60; {} keys: p50 {:?}, p99 {:?}, longest {:?}; resident {} KiB",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        served.resident_kib()
    );
}
