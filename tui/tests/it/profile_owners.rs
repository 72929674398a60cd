//! Whose profiles are used: those that only this user and root may change.

use crate::world::{World, engine, lab_with};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

const NOBODY: u32 = 65_534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A checkout in the world whose `lab` names a program, and a directory in it.
fn checkout(world: &World) -> PathBuf {
    let exec = lab_with(&[("on_alarm: None", "on_alarm: Exec(\"/bin/true\")")]);
    let lab = world.put("checkout/profiles/lab.ron", exec);
    world.put("checkout/engine/Cargo.toml", "");
    for (path, mode) in
        [(lab.parent().unwrap().parent().unwrap(), 0o755), (lab.parent().unwrap(), 0o755), (&lab, 0o644)]
    {
        set_mode(path, mode);
    }
    world.path("checkout/engine")
}

/// The file of `lab` in `profiles list`, run in `dir`, and what was said.
fn lab_file(world: &World, dir: &Path) -> (Option<String>, String) {
    let ran = world.command("profiles list --json").current_dir(dir).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let lab = listed.as_array().unwrap().iter().find(|entry| entry["name"] == "lab").unwrap().clone();
    (lab["path"].as_str().map(str::to_owned), String::from_utf8(ran.stderr).unwrap())
}

#[test]
fn a_checkout_that_others_may_change_lends_no_profile_and_is_named_once() {
    let world = World::new();
    let inside = checkout(&world);
    let (file, said) = lab_file(&world, &inside);
    assert!(file.unwrap().ends_with("checkout/profiles/lab.ron") && said.is_empty(), "{said}");
    set_mode(&world.path("checkout/profiles"), 0o777);
    let (file, said) = lab_file(&world, &inside);
    assert_eq!(file, None);
    assert!(said.contains("all users may write it") && said.contains("--profiles DIR"), "{said}");
    set_mode(&world.path("checkout/profiles"), 0o755);
    if chown(world.path("checkout"), Some(NOBODY), None).is_err() {
        eprintln!("skipped: another user's checkout, which root alone can make");
        return;
    }
    let (file, said) = lab_file(&world, &inside);
    assert!(file.is_none() && said.contains("user 65534 owns it") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_profile_that_others_may_change_runs_no_program_also_when_it_is_named() {
    let world = World::new();
    checkout(&world);
    let named = "run --headless --count 10 --logs logs --profiles checkout/profiles";
    let by_path = "run --headless --count 10 --logs logs --profile checkout/profiles/lab.ron";
    set_mode(&world.path("checkout/profiles/lab.ron"), 0o666);
    let before = world.files();
    for words in
        [named, by_path, "profiles validate checkout/profiles/lab.ron --json", "ctl profile checkout/profiles/lab.ron"]
    {
        let ran = world.run(words);
        let said = ran.text() + &ran.err;
        assert_ne!(ran.status, Some(0), "{words}: {said}");
        assert!(
            said.contains("a program to run in on_alarm") && said.contains("all users may write it"),
            "{words}: {said}"
        );
    }
    assert_eq!(world.files(), before);
    // The program is nobody else's, but its directory lets others put another file in its place.
    set_mode(&world.path("checkout/profiles/lab.ron"), 0o644);
    set_mode(&world.path("checkout/profiles"), 0o777);
    let said = world.run(by_path).exits(2).err;
    assert!(said.contains("all users may write it") && said.contains("chmod go-w"), "{said}");
}

#[test]
fn another_users_profile_runs_no_program() {
    let world = World::new();
    checkout(&world);
    if chown(world.path("checkout/profiles/lab.ron"), Some(NOBODY), None).is_err() {
        eprintln!("skipped: another user's file, which root alone can make");
        return;
    }
    let said = world.run("run --headless --count 10 --profile checkout/profiles/lab.ron").exits(2).err;
    assert!(said.contains("user 65534 owns it"), "{said}");
}

#[test]
fn the_report_names_the_profiles_file_by_its_path() {
    let _one = engine();
    let world = World::new();
    world.put("p/mine.ron", lab_with(&[("spin: Lab", "spin: Shared")]));
    let ran = world.run("run --json --count 10 --rate 1000 --logs logs --profiles p --profile mine").exits(0);
    assert!(ran.json()["profile_file"].as_str().unwrap().ends_with("/p/mine.ron"), "{}", ran.text());
}
