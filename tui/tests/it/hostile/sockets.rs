//! Datagrams that are nearly shots, sent to the program's own socket while it runs.

use super::{Campaign, Running, is_sound};
use crate::world::{World, engine, golden, patient, until, word};
use pinwheel_engine::engine::LivePlace;
use pinwheel_engine::feed::client::connect;
use rustix::process::Signal;
use std::net::{SocketAddr, UdpSocket};

/// Streams of the run.
const STREAMS: u32 = 3;

/// A session of none of those datagrams, older than that of `pinwheel send`.
const OLD_SESSION: u64 = 1000;

/// A datagram with the fields of a shot (`engine/src/feed/packet.rs`), some of them out of range.
fn datagram(campaign: &mut Campaign) -> Vec<u8> {
    let mut bytes = b"PWL1\x01\x01\x01\x00".to_vec();
    let numbers: [u64; 8] = [0, 1, 2, 24, 1 << 20, 1 << 32, u64::MAX - 1, u64::MAX];
    for _ in 0..3 {
        // Epoch 0 is any engine; a session that grows takes the socket from the one before.
        let value = if campaign.below(2) == 0 { campaign.below(4) as u64 } else { *campaign.pick(&numbers) };
        bytes.extend(value.to_le_bytes());
    }
    for most in [6, 4, 30, 40] {
        let value = if campaign.below(8) == 0 { u32::MAX } else { u32::try_from(campaign.below(most)).unwrap() };
        bytes.extend(value.to_le_bytes());
    }
    let payload = campaign.below(17);
    bytes.extend(campaign.bytes(payload));
    match campaign.below(8) {
        0 => bytes.truncate(campaign.below(64)),
        1 | 2 => {
            let at = campaign.below(bytes.len());
            bytes[at] = campaign.byte();
        }
        3 => {
            let count = campaign.below(300);
            bytes = campaign.bytes(count);
        }
        4 => bytes.resize(9_000, 7),
        5 => bytes[5] = 2,
        _ => {}
    }
    bytes
}

/// Sends shots of [`OLD_SESSION`] until each stream has answered one. A stream keeps a newer
/// session for a second after the last datagram of that.
fn take_streams_over(world: &World, at: SocketAddr) {
    let place = LivePlace::Udp { at, allow: Vec::new() };
    let mut client = connect(&place, &world.path("shm"), OLD_SESSION, 1).unwrap();
    let mut bytes = None;
    until("a welcome", || {
        client.receive(&mut |_| ()).unwrap();
        bytes = client.welcome().unwrap().map(|welcome| vec![0; welcome.bits.div_ceil(8) as usize]);
        bytes.is_some()
    });
    let mut waiting: Vec<u32> = (0..STREAMS).collect();
    let mut sequence = 0;
    until("an answer of each stream", || {
        for stream in &waiting {
            client.send(*stream, sequence, bytes.as_ref().unwrap()).unwrap();
        }
        sequence += 1;
        client.receive(&mut |answer| waiting.retain(|stream| *stream != answer.stream)).unwrap();
        waiting.is_empty()
    });
}

#[test]
fn hostile_datagrams_are_counted_and_a_client_after_them_gets_every_answer() {
    let _one = engine();
    let mut campaign = Campaign::new("datagrams", "datagrams", 700_000);
    let world = World::new();
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dem = word(&golden("surf_z_d3_r3_p0.005.dem"));
    let profile = patient(&world);
    let running = Running::start(
        &world,
        &format!("run --json {profile} --dem {dem} --input udp:{at} --streams {STREAMS} --logs logs"),
    );
    until("an engine that is live", || world.run("ctl status").status == Some(0));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(at).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut reply = [0; 16_384];
    for _ in 0..campaign.amount {
        let bytes = datagram(&mut campaign);
        // A refusal of the system (no room for the moment) is one way for a datagram to be lost.
        let _ = socket.send(&bytes);
        while socket.recv(&mut reply).is_ok() {}
    }
    // One of those datagrams may have the newest session of all.
    take_streams_over(&world, at);
    let shots = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let sent = world.run(&format!("send {shots} udp:{at} --rate max --json")).exits(0).json();
    assert_eq!((sent["lost"].as_u64(), &sent["sent"]), (Some(0), &sent["answered"]), "{sent}");
    running.signal(Signal::TERM);
    let ran = running.end();
    is_sound(&ran, &[143, 1]);
    let report = ran.json();
    assert_eq!((&report["lost"], &report["duplicated"]), (&0.into(), &0.into()), "{report}");
    let source = &report["sources"][0];
    assert!(source["malformed"].as_u64().unwrap() > 0, "{source}");
    campaign.done();
}
