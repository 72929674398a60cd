//! Directories of boards, runs, profiles and settings that hold what does not belong there: FIFOs,
//! links, sockets, devices, huge and random files, of this user and of another one.

use super::{Campaign, is_sound, ran};
use crate::world::{World, engine};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// What no command may show or change.
const SECRET: &str = "nobody is to read this";
/// Another user, where the tests run as root.
const OTHER: u32 = 65_534;

const NAMES: [&str; 22] = [
    "shm/board-1",
    "shm/board-1.1",
    "shm/board-4194304",
    "shm/cpu0.lock",
    "shm/cpu1.lock",
    "shm/input-x",
    "logs/20260101-000000/manifest.json",
    "logs/20260101-000000/report.json",
    "logs/20260101-000000/events.jsonl",
    "logs/20260101-000000/recording.pwt",
    "logs/20260101-000000/recording.idx",
    "logs/20260101-000000/profile.ron",
    "logs/20260101-000000/board",
    "logs/20260101-000000/control.sock",
    "logs/20260101-000000",
    "profiles/lab.ron",
    "profiles/x.ron",
    "profiles/keys.ron",
    "state/pinwheel/console.ron",
    "state/pinwheel/host.key",
    "home/.config/pinwheel/keys.ron",
    "out.json",
];

/// Puts something at `path`, whatever was there before stays.
fn put(campaign: &mut Campaign, path: &Path, secret: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.symlink_metadata().is_ok() {
        return;
    }
    match campaign.below(9) {
        0 | 1 => mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap(),
        2 => symlink(secret, path).unwrap(),
        3 => symlink("/dev/zero", path).unwrap(),
        4 => fs::create_dir(path).unwrap(),
        // The path of a socket has at most 108 bytes.
        5 => drop(UnixListener::bind(path)),
        6 => File::create(path).unwrap().set_len(1 << 40).unwrap(),
        7 => {
            let count = campaign.below(20_000);
            fs::write(path, campaign.bytes(count)).unwrap();
        }
        _ => fs::write(path, "\x1b]0;changed title\x07\x1b[2J{}").unwrap(),
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root && campaign.below(2) == 0 && path.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
        chown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
}

#[test]
fn foreign_files_where_ours_belong_are_passed_over_or_refused_and_never_followed() {
    let _one = engine();
    let mut campaign = Campaign::new("directories", "directories", 300);
    for _ in 0..campaign.amount {
        let world = World::new();
        let secret = world.put("elsewhere/secret", SECRET);
        for _ in 0..=campaign.below(8) {
            let name = *campaign.pick(&NAMES);
            // A directory on the way may be something else by now.
            if world.path(name).parent().unwrap().ancestors().all(|above| !above.exists() || above.is_dir()) {
                put(&mut campaign, &world.path(name), &secret);
            }
        }
        let shown = world.files();
        for words in [
            "postmortem --json",
            "postmortem",
            "ctl status",
            "attach --snapshot out.txt",
            "cores",
            "cores --json",
            "replay last --json --logs logs",
            "compare 20260101-000000 20260101-000000 --logs logs",
            "trace 20260101-000000 -o - --logs logs",
            "report 20260101-000000 -o - --logs logs",
            "dump 1 -o bundle",
            "profiles list --profiles profiles",
            "profiles validate x --profiles profiles",
            "run --profile shared --rate 200 --count 10 --logs logs --json",
        ] {
            let ran = ran(&world, words);
            is_sound(&ran, &[0, 1, 2]);
            let told = format!("{}{}", String::from_utf8_lossy(&ran.out), ran.err);
            assert!(!told.contains(SECRET), "{words}: {told}\n{shown:?}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET, "{shown:?}");
        let bundle = world.files().into_iter().filter(|name| name.starts_with("bundle"));
        for name in bundle {
            assert!(!fs::read(world.path(&name)).is_ok_and(|bytes| bytes == SECRET.as_bytes()), "{name}");
        }
    }
    campaign.done();
}
