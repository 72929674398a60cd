//! Dependencies: each line of a manifest says why it is there, and `engine/docs/src/dependencies.md` has notes of every
//! crate with `unsafe` code on a hot thread, for the version that is linked.

use std::path::{Path, PathBuf};

/// The crates whose code hot threads run, besides the engine.
const CRATES: [&str; 8] = ["edge", "board", "code", "matching", "graph", "host", "observe", "."];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A line of a manifest that asks for a crate of a registry.
struct Dependency {
    manifest: String,
    name: String,
    /// What stands behind the line's `#`.
    reason: String,
    is_for_tests: bool,
}

fn dependencies(manifest: &str) -> Vec<Dependency> {
    let text = std::fs::read_to_string(root().join(manifest)).unwrap();
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
        } else if section.ends_with("dependencies") && !line.contains("path = ") {
            let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else { continue };
            let reason = line.rsplit_once(" # ").map_or("", |(_, reason)| reason).to_owned();
            let is_for_tests = section.ends_with("dev-dependencies");
            found.push(Dependency { manifest: manifest.to_owned(), name: name.to_owned(), reason, is_for_tests });
        }
    }
    found
}

/// The rows of the page's table number `at` from 0: the crates of each row's first cell, as they stand there.
fn rows(page: &str, at: usize) -> Vec<&str> {
    let table = page.split("\n| crate |").nth(at + 1).unwrap();
    let table = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    table.map(|line| line.split('|').nth(1).unwrap().trim()).collect()
}

fn page() -> String {
    std::fs::read_to_string(root().join("engine/docs/src/dependencies.md")).unwrap()
}

/// The manifests of all packages, of this workspace and of others.
fn manifests() -> Vec<String> {
    let mut folders = vec!["engine".to_owned(), "tui".to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            if name == "Cargo.toml" {
                found.push(path);
            } else if entry.file_type().unwrap().is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn each_dependency_of_each_manifest_says_in_its_line_why_it_is_there() {
    let manifests = manifests();
    for folder in ["engine", "engine/hosts", "engine/lab/stranger", "engine/python", "tui"] {
        let manifest = format!("{folder}/Cargo.toml");
        assert!(manifests.contains(&manifest), "{manifest}: {manifests:?}");
    }
    let all: Vec<Dependency> = manifests.iter().flat_map(|manifest| dependencies(manifest)).collect();
    assert!(all.len() > 60, "found {} lines", all.len());
    for Dependency { manifest, name, reason, .. } in &all {
        assert!(!reason.is_empty(), "{manifest}: {name} has no reason; write it behind the version, after ` # `");
    }
}

#[test]
fn notes_of_crates_on_hot_threads_are_of_the_versions_that_are_linked() {
    let (page, lock) = (page(), std::fs::read_to_string(root().join("Cargo.lock")).unwrap());
    let noted = rows(&page, 0);
    assert!(noted.len() > 5, "found {noted:?}");
    for row in noted {
        let (name, version) = row.split_once(' ').unwrap();
        let name = name.trim_matches('`');
        let linked: Vec<&str> = lock
            .split("\n[[package]]\n")
            .filter_map(|package| package.strip_prefix(&format!("name = \"{name}\"\nversion = \""))?.split('"').next())
            .collect();
        assert_eq!(
            linked,
            [version],
            "engine/docs/src/dependencies.md has notes of {name} {version}, Cargo.lock links {linked:?}: read what changed \
             in the part that runs on a hot thread, then write the new version and what you read",
        );
    }
}

#[test]
fn each_direct_dependency_of_the_engine_is_on_the_page_of_dependencies() {
    let page = page();
    let named: Vec<&str> =
        [0, 1].into_iter().flat_map(|at| rows(&page, at)).flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let linked = CRATES.into_iter().flat_map(|at| dependencies(&format!("engine/{at}/Cargo.toml")));
    for Dependency { manifest, name, .. } in linked.filter(|dependency| !dependency.is_for_tests) {
        assert!(
            named.contains(&name.as_str()),
            "{manifest}: {name} is not in engine/docs/src/dependencies.md: write what of it runs on a hot thread and what \
             you read of its `unsafe` code, or why none of it does",
        );
    }
}
