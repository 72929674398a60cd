//! The recording of a real engine: how much of a disk it takes, and that any moment of it opens.

use crate::rig::{beside_another, config, end, sampler, total, until};
use pinwheel_engine::board::Phase;
use pinwheel_engine::engine::{Config, Engine};
use pinwheel_engine::profile::{Profile, Rate};
use pinwheel_engine::record::SNAPSHOT_PERIOD;
use pinwheel_engine::record::tape::{FILE, KEY_EVERY, Tape};
use std::path::Path;

/// Bytes that a minute may take of an engine that keeps up.
const MINUTE_BYTES_MAX: f64 = 2e6;
/// And of one that falls behind: its slots are full of shots on their way, each of which a picture has to show.
const BEHIND_BYTES_MAX: f64 = 3e6;
/// An engine that keeps up has fewer shots waiting than come in a twentieth of a second.
const BACKLOG_SHOTS_MAX: u64 = 1_000;
/// Nor does this test know of a machine that it had no look at for longer.
const LOOK_NS_MAX: u64 = 200_000_000;
/// Of a frame's head, and where it says what it is and how long.
const HEAD_BYTES: usize = 32;

/// Numbers and bytes of a recording's frames after `from`: key pictures, pictures, bursts.
fn frames(run: &Path) -> [(u32, usize); 3] {
    let bytes = std::fs::read(run.join(FILE)).unwrap();
    let mut found = [(0, 0); 3];
    let mut at = 72;
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        assert_eq!(&head[..4], b"PWFR");
        let packed = u32::from_le_bytes(head[24..28].try_into().unwrap()) as usize;
        let (count, sum) = &mut found[usize::from(head[8]) - 1];
        *count += 1;
        *sum += HEAD_BYTES + packed;
        at += HEAD_BYTES + packed;
    }
    found
}

/// A short run at the lab's sizes and 20,000 shots a second; a minute of it by its pictures. Bursts
/// come with alarms, which a busy machine has and a quiet one has not.
#[test]
fn a_minute_of_a_real_engine_at_twenty_thousand_shots_a_second_takes_less_than_two_megabytes() {
    let _home = beside_another();
    let folder = tempfile::tempdir().unwrap();
    let (mut lab, _) = Profile::load("lab", None).unwrap();
    lab.input.rate = Rate::Hz(20_000.0);
    // A machine that tests share may fall behind: that is not what is measured.
    lab.limits.shot_deadline_us = 60_000_000;
    let wanted = Config { run_dir: Some(folder.path().to_owned()), ..config(&lab, sampler(), None) };
    let engine = Engine::start(wanted).unwrap();
    let mut last_ns = until(&engine, "Live", |now| now.engine.phase == Phase::Live).at_ns;
    let mut keeps_up = true;
    until(&engine, "pictures", |now| {
        let waiting = total(now, |c| c.scheduled).saturating_sub(total(now, |c| c.submitted));
        keeps_up &= waiting < BACKLOG_SHOTS_MAX && now.at_ns < last_ns + LOOK_NS_MAX;
        last_ns = now.at_ns;
        let kept = now.recorder.frames.saturating_sub(now.recorder.bursts);
        kept > 30 && total(now, |counters| counters.answered) > 5_000
    });
    engine.request_drain();
    end(engine);
    let [keys, pictures, bursts] = frames(folder.path());
    assert!(keys.0 >= 1 && pictures.0 >= 15, "{keys:?} {pictures:?}");
    let each = |(count, bytes): (u32, usize)| bytes as f64 / f64::from(count.max(1));
    let a_minute = 60e9 / SNAPSHOT_PERIOD.0 as f64;
    let by_key = f64::from(KEY_EVERY);
    let minute = each(keys) * a_minute / by_key + each(pictures) * (a_minute - a_minute / by_key);
    eprintln!(
        "RECORDING {:.2} MB a minute{}: {:.0} bytes a picture, {:.0} a key picture; {} bursts of {:.0} beside",
        minute / 1e6,
        if keeps_up { "" } else { ", fallen behind" },
        each(pictures),
        each(keys),
        bursts.0,
        each(bursts)
    );
    assert!(minute < if keeps_up { MINUTE_BYTES_MAX } else { BEHIND_BYTES_MAX }, "{minute}, keeps up: {keeps_up}");
    let mut tape = Tape::open(folder.path()).unwrap();
    let (from, to) = tape.span().unwrap();
    for step in 0..=20 {
        let at = pinwheel_engine::units::Ticks(from.0 + (to.0 - from.0) / 20 * step);
        let moment = tape.at(at).unwrap().unwrap();
        assert!(moment.at <= at && moment.snapshot().unwrap().unwrap().engine.profile == "test");
    }
}
