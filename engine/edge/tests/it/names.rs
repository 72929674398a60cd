//! The names by which source, `edges.txt` and models refer to each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // What cargo builds is not ours.
            if !path.ends_with("target") {
                walk(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(under: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(under), &mut found);
    found.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// What follows `prefix` in `text`, each time, up to the first character that is not `part_of_it`.
fn all_after<'a>(text: &'a str, prefix: &str, part_of_it: fn(char) -> bool) -> Vec<&'a str> {
    let rests = text.match_indices(prefix).map(|(at, _)| &text[at + prefix.len()..]);
    rests.map(|rest| &rest[..rest.find(|c| !part_of_it(c)).unwrap_or(rest.len())]).collect()
}

fn in_a_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

fn in_an_edge(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '.'
}

fn listed_edges() -> BTreeSet<String> {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("edges.txt")).unwrap();
    list.lines().map(str::to_owned).collect()
}

#[test]
fn edges_txt_lists_the_edges_of_the_source_each_once() {
    let used: Vec<String> = sources("src")
        .iter()
        .flat_map(|text| all_after(text, "edge(\"", in_an_edge).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let distinct: BTreeSet<_> = used.iter().cloned().collect();
    assert_eq!(distinct, listed_edges());
    assert_eq!(distinct.len(), used.len(), "two accesses share a name, so neither is proven alone: {used:?}");
}

/// `module::name` of each model: a test function in `tests/loom/`.
fn models() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let modules = fs::read_to_string(root.join("loom.rs")).unwrap();
    let files = modules.split("#[path = \"").skip(1);
    files
        .flat_map(|item| {
            let (file, rest) = item.split_once('"').unwrap();
            let module = all_after(rest, "mod ", in_a_path)[0].to_owned();
            let text = fs::read_to_string(root.join(file)).unwrap();
            let names = all_after(&text, "#[test]\nfn ", in_a_path).into_iter();
            names.map(|name| format!("{module}::{name}")).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_model_that_the_source_names_exists() {
    let models = models();
    assert!(models.len() >= 25, "the models were not found: {models:?}");
    let mut named = 0;
    for text in sources("src") {
        for name in all_after(&text, "loom_", in_a_path) {
            let name = format!("loom_{}", name.trim_end_matches(':'));
            if !name.contains("::") {
                continue;
            }
            assert!(models.contains(&name), "the source names the model {name}, which is not in tests/loom/");
            named += 1;
        }
    }
    assert!(named >= 20, "only {named} models are named");
}

#[test]
fn every_edge_is_claimed_by_a_model() {
    let text = sources("tests/loom").concat().replace("\n///", "");
    let claims = all_after(&text, "Red without", |c| c != '\n').concat();
    for edge in listed_edges() {
        assert!(claims.contains(&edge), "no model says that it goes red without {edge}");
    }
}

/// The sources of all other crates, without files of tests only.
fn other_sources() -> Vec<PathBuf> {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in ["src", "../tui/src", "lab/stranger/src", "plugins"] {
        let before = files.len();
        walk(&engine.join(folder), &mut files);
        assert!(files.len() > before, "no sources in {folder}");
    }
    for entry in fs::read_dir(engine).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() && !source.starts_with(env!("CARGO_MANIFEST_DIR")) {
            walk(&source, &mut files);
        }
    }
    assert!(files.len() > 300, "the sources were not found: {files:?}");
    files.retain(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
    files
}

#[test]
fn no_other_crate_has_an_ordering_above_relaxed() {
    for path in other_sources() {
        let text = fs::read_to_string(&path).unwrap();
        for above in ["Acquire", "Release", "AcqRel", "SeqCst"] {
            let name = format!("Ordering::{above}");
            assert!(!text.contains(&name), "{} has {name}: no model covers it there", path.display());
        }
        // By another name than these the check would not see them.
        for hidden in ["Ordering::{", "Ordering::*", "Ordering as "] {
            assert!(!text.contains(hidden), "{} has {hidden}: write Ordering::Relaxed in full", path.display());
        }
    }
}

/// Files with read-modify-writes that a shot does not meet: faults, requests of operators, messages
/// of the arbiter, samples of a stack, alarms of which a program is told.
const EXCHANGES_ELSEWHERE: [&str; 9] = [
    "board/fatal.rs",
    "src/board.rs",
    "src/engine.rs",
    "feed/requests.rs",
    "hot/drill_role.rs",
    "hot/mailbox.rs",
    "silo/commands.rs",
    "stack/sample.rs",
    "stall/notify.rs",
];

/// The feature `count-exchanges` sees only this crate's.
#[test]
fn no_other_crate_has_a_read_modify_write_on_the_path_of_a_shot() {
    // No hot thread runs the console, the Python package, the links to other hosts or what tries the engine.
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let is_on_no_path =
        |path: &PathBuf| ["lab", "python", "hosts", "../tui"].iter().any(|none| path.starts_with(engine.join(none)));
    for path in other_sources().iter().filter(|path| !is_on_no_path(path)) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        // Slices have a `swap` too.
        let is_swap = |line: &str| line.contains(".swap(") && line.contains("Relaxed");
        let is_atomic = |line: &&str| line.contains(".compare_exchange") || line.contains(".fetch_") || is_swap(line);
        if let Some(line) = code.lines().find(is_atomic) {
            let is_known = EXCHANGES_ELSEWHERE.iter().any(|known| path.ends_with(known));
            assert!(is_known, "{}: not counted where a shot meets it:{line}", path.display());
        }
    }
}
