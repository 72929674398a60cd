//! The metrics endpoint of a run under clients that are slow, idle, or ask otherwise than its documentation says.

use crate::world::{DEADLINE, World, engine, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::spawn;
use std::time::Duration;

/// More than the connections that a server ever had.
const IDLE: usize = 200;
/// Longer than a client that sends a byte at a time may be connected.
const BYTES_MAX: usize = 8_000;

/// A run with the endpoint, killed when the test is over, and its address.
struct Served(Child, String);

impl Served {
    fn start(world: &World) -> Served {
        let words = "run --profile shared --rate 500 --duration 10m --logs logs --headless --metrics 0";
        let mut child = world.command(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let said = lines.find(|line| line.contains("/metrics")).unwrap();
        // Progress lines need a reader.
        spawn(move || lines.for_each(drop));
        Served(child, said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned())
    }

    fn connect(&self) -> TcpStream {
        connect(&self.1)
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE / 2)).unwrap();
    stream
}

#[test]
fn a_metrics_request_with_a_query_or_another_method_is_answered_as_http_has_it() {
    let _one = engine();
    let world = World::new();
    let served = Served::start(&world);
    let metrics = served.ask("GET /metrics?x=y HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("# EOF\n"), "{metrics}");
    let head = served.ask("HEAD /metrics?x=y HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    let post = served.ask("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nx=y");
    assert!(post.starts_with("HTTP/1.1 405") && post.contains("Allow: GET, HEAD"), "{post}");
    assert!(served.ask("GET /other?x=/metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
}

#[test]
fn idle_metrics_clients_hold_up_no_scrape() {
    let _one = engine();
    let world = World::new();
    let served = Served::start(&world);
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| served.connect()).collect();
    assert!(served.ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    drop(idle);
}

#[test]
fn a_metrics_client_that_sends_a_byte_at_a_time_is_cut_off_and_delays_no_end() {
    let _one = engine();
    let world = World::new();
    let mut served = Served::start(&world);
    let (stop, connections, most) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let slow = spawn({
        let (address, stop) = (served.1.clone(), Arc::clone(&stop));
        let (connections, most) = (Arc::clone(&connections), Arc::clone(&most));
        move || {
            while !stop.load(Ordering::Relaxed) {
                let Ok(mut stream) = TcpStream::connect(&address) else { continue };
                connections.fetch_add(1, Ordering::Relaxed);
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) && stream.write_all(b"x").is_ok() {
                    sent += 1;
                    most.fetch_max(sent, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    });
    until("the end of a slow connection", || connections.load(Ordering::Relaxed) > 1);
    assert!(served.ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    world.run("ctl drain").exits(0);
    until("the end of the run", || served.0.try_wait().unwrap().is_some());
    stop.store(true, Ordering::Relaxed);
    slow.join().unwrap();
    let most = most.load(Ordering::Relaxed);
    assert!(most < BYTES_MAX, "one client sent {most} bytes");
}
