//! The control socket and the metrics endpoint: lines that are no requests, and connections that do nothing.

use super::{Campaign, Running};
use crate::world::{World, engine, until};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// No reply is waited for longer.
const PATIENCE: Duration = Duration::from_millis(200);

fn control_socket(world: &World) -> PathBuf {
    let entries = fs::read_dir(world.path("logs")).unwrap().flatten().map(|entry| entry.path().join("control.sock"));
    entries.into_iter().find(|path| path.exists()).expect("a control socket")
}

fn connect(path: &PathBuf) -> UnixStream {
    let mut stream = None;
    until("room for a client", || {
        stream = UnixStream::connect(path).ok();
        stream.is_some()
    });
    let stream = stream.unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One line, or a piece of one.
fn line(campaign: &mut Campaign) -> Vec<u8> {
    let asks = [
        r#"{"version":2,"command":"status"}"#,
        r#"{"version":2,"command":{"rate":{"hz":500.0}},"why":"x"}"#,
        r#"{"version":2,"command":{"rate":{"hz":-1e308}}}"#,
        r#"{"version":2,"command":{"snooze":{"number":18446744073709551615,"for_s":18446744073709551615}}}"#,
        r#"{"version":2,"command":{"acknowledge":{"number":0}}}"#,
        r#"{"version":1,"ask":"status"}"#,
        r#"{"version":2,"command":{"profile":{"name":"../../etc/passwd","text":null,"for_s":null}}}"#,
        r#"{"version":2,"command":{"profile":{"name":"x","text":"((((((((((","for_s":0}}}"#,
    ];
    let mut bytes = campaign.pick(&asks).as_bytes().to_vec();
    match campaign.below(6) {
        0 => {}
        1 => bytes = b"[".repeat(1 + campaign.below(20_000)),
        2 => {
            let count = campaign.below(65_536);
            bytes = campaign.bytes(count);
        }
        3 => bytes.extend(b" ".repeat(campaign.below(200_000))),
        _ => campaign.damage(&mut bytes),
    }
    if campaign.below(5) != 0 {
        bytes.push(b'\n');
    }
    bytes
}

#[test]
fn hostile_control_lines_are_refused_and_the_next_client_is_served() {
    let _one = engine();
    let mut campaign = Campaign::new("control", "bytes", 100_000_000);
    let world = World::new();
    let running = Running::engine(&world, "");
    let path = control_socket(&world);
    let mut left = campaign.amount;
    while left > 0 {
        let mut stream = connect(&path);
        for _ in 0..=campaign.below(8) {
            let bytes = line(&mut campaign);
            // The engine may hang up in the middle of it.
            if stream.write_all(&bytes).is_err() {
                break;
            }
            left = left.saturating_sub(bytes.len() as u64);
            // Some clients never read what they are told.
            if campaign.below(3) == 0 {
                let _ = stream.read(&mut [0; 4_096]);
            }
        }
    }
    until("a status", || world.run("ctl status").status == Some(0));
    running.drained();
    campaign.done();
}

#[test]
fn idle_and_broken_connections_hold_up_neither_a_scrape_nor_the_end() {
    let _one = engine();
    let mut campaign = Campaign::new("connections", "connections", 1_000);
    let world = World::new();
    let running = Running::engine(&world, "--metrics 0");
    let said = running.error_text();
    let metrics = said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    let path = control_socket(&world);
    let mut held_tcp = Vec::new();
    let mut held_unix = Vec::new();
    for _ in 0..campaign.amount {
        if campaign.below(2) == 0 {
            // The listener's own queue may be full for the moment.
            let Ok(mut stream) = TcpStream::connect_timeout(&metrics.parse().unwrap(), PATIENCE) else { continue };
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            let count = campaign.below(2_000);
            let sent = match campaign.below(4) {
                0 => b"GET /metr".to_vec(),
                1 => campaign.bytes(count),
                2 => b"GET /metrics HTTP/1.1\r\n".to_vec(),
                _ => Vec::new(),
            };
            let _ = stream.write_all(&sent);
            held_tcp.push(stream);
        } else {
            held_unix.extend(UnixStream::connect(&path));
        }
        if campaign.below(4) == 0 {
            held_unix.clear();
        }
        if held_tcp.len() > 100 {
            held_tcp.clear();
        }
    }
    let mut reply = String::new();
    until("a scrape beside them", || {
        reply.clear();
        let Ok(mut stream) = TcpStream::connect(&metrics) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").is_ok()
            && stream.read_to_string(&mut reply).is_ok()
            && reply.contains("# EOF")
    });
    drop(held_unix);
    until("a status", || world.run("ctl status").status == Some(0));
    // The other connections are still open.
    running.drained();
    drop(held_tcp);
    campaign.done();
}
