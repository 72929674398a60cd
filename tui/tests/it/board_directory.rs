//! The directory of boards: who may be in it, whose locks count there, and what is found in it by which name.

use crate::world::World;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

fn directory(world: &World, mode: u32) {
    fs::create_dir(world.path("shm")).unwrap();
    fs::set_permissions(world.path("shm"), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_plain_lock_on_a_cores_file_takes_no_core_away_and_its_holder_is_named() {
    let world = World::new();
    directory(&world, 0o1777);
    let lock = |core: u64| {
        let path = world.path(&format!("shm/cpu{core}.lock"));
        let file = File::create(path).unwrap();
        file.lock().unwrap();
        file
    };
    let rows = world.run("cores --json").exits(0).json();
    let cores: Vec<u64> = rows.as_array().unwrap().iter().map(|row| row["core"].as_u64().unwrap()).collect();
    let _locks: Vec<File> = cores.iter().map(|core| lock(*core)).collect();
    for row in world.run("cores --json").exits(0).json().as_array().unwrap() {
        assert!(row["claimed_by"].is_null() && row["locked_by"]["pid"] == std::process::id(), "{row}");
    }
    let said = world.run("plan").exits(0).text();
    let (holder, left) = (format!("process {}", std::process::id()), "left to ".to_owned());
    assert!(said.contains(&holder) && said.contains("is no engine"), "{said}");
    assert!(!said.contains(&(left + &holder)), "{said}");
}
