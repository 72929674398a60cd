//! The shared region: a client that stores anything anywhere it may.

use super::{Campaign, Running, is_sound};
use crate::world::{World, engine, golden, patient, until, word};
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

/// Offsets of `engine/shm/README.md`.
const HEADER_BYTES: u64 = 4_096;
const SLOTS: u64 = 24;
const SHOTS_AT: u64 = 32;
const SHOT_STRIDE: u64 = 40;
const GRANTED: u64 = 152;
const SESSION: u64 = 256;
const CLIENT_HEARTBEAT: u64 = 272;

#[test]
fn random_stores_over_the_region_disturb_no_later_client_and_no_counter() {
    let _one = engine();
    let mut campaign = Campaign::new("region", "stores", 9_000_000);
    let world = World::new();
    let dem = word(&golden("surf_z_d3_r3_p0.005.dem"));
    let profile = patient(&world);
    let words = format!("run --json {profile} --dem {dem} --input shm:hostile --streams 3 --logs logs");
    let running = Running::start(&world, &words);
    let path = world.path("shm/input-hostile");
    until("a region", || path.is_file() && world.run("ctl status").status == Some(0));
    let region = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let read = |at: u64| {
        let mut word = [0; 8];
        region.read_exact_at(&mut word, at).unwrap();
        u64::from_le_bytes(word)
    };
    let store = |at: u64, value: u64| region.write_all_at(&value.to_le_bytes(), at).unwrap();
    let slots = read(SLOTS);
    let records = read(SHOTS_AT);
    let stride = read(SHOT_STRIDE);
    let words = region.metadata().unwrap().len() / 8;
    store(SESSION, 77);
    until("a grant", || read(GRANTED) == 77);
    for number in 0..campaign.amount {
        // One slot after the other, so that the engine finds shots where it looks for them.
        let slot = number % slots;
        let value = match campaign.below(6) {
            0 => u64::from_le_bytes(campaign.bytes(8).try_into().unwrap()),
            1 => 0,
            // The turn of the first lap or the second, and a stream that is there or nearly.
            2 | 3 => (campaign.below(4) as u64) << 32 | (slot + 1 + campaign.below(2) as u64 * slots),
            4 => u64::MAX - campaign.below(3) as u64,
            _ => campaign.below(130) as u64,
        };
        let any = campaign.below(usize::try_from(words).unwrap()) as u64 * 8;
        let at = match campaign.below(8) {
            0 => CLIENT_HEARTBEAT,
            1 if number % 5_000 == 0 => SESSION,
            // The header's other words stay: a client that comes later has to find its way.
            5..=7 if any >= HEADER_BYTES => any,
            _ => records + slot * stride,
        };
        store(at, value);
    }
    let shots = word(&golden("surf_z_d3_r3_p0.005.dets.b8"));
    let sent = world.run(&format!("send {shots} shm:hostile --rate max --json")).exits(0).json();
    assert_eq!((sent["lost"].as_u64(), &sent["sent"]), (Some(0), &sent["answered"]), "{sent}");
    running.signal(Signal::TERM);
    let ran = running.end();
    is_sound(&ran, &[143, 1]);
    let report = ran.json();
    assert_eq!((&report["lost"], &report["duplicated"]), (&0.into(), &0.into()), "{report}");
    campaign.done();
}
