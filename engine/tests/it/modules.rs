//! The map holds: a module imports only modules declared before it, and the console only what it may.

use std::path::{Path, PathBuf};

/// What every module of the console other than `cli` may import of the engine.
const CONSOLE_MAY: [&str; 13] = [
    "files", "quote", "board", "clock", "units", "profile", "plan", "host", "stall", "record", "fault", "drill",
    "engine",
];

fn engine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// A crate of the workspace.
struct Crate {
    /// The folder of its sources.
    src: PathBuf,
    /// Its name in paths.
    name: String,
    /// The crates of this workspace that it depends on, for its tests too, by their names in paths.
    imports: Vec<String>,
}

/// The crates in the order in which the workspace lists them.
fn crates() -> Vec<Crate> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, members) = workspace.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let read = |folder: &str| {
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let value = |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_matches([' ', '=', '"']).to_string());
        let name = manifest.lines().find_map(|line| value(line, "name ")).unwrap().replace('-', "_");
        let imports = manifest.lines().filter(|line| line.starts_with("pinwheel") && line.contains("path = "));
        let imports = imports.map(|line| line.split(' ').next().unwrap().replace('-', "_")).collect();
        Crate { src: root.join(folder).join("src"), name, imports }
    };
    members
        .split(',')
        .map(|folder| folder.trim().trim_matches('"'))
        .filter(|folder| !folder.is_empty())
        .map(read)
        .collect()
}

/// The modules that `map`, the text of a `lib.rs`, declares, in that order.
fn declared(map: &str) -> Vec<&str> {
    map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect()
}

/// What `map` imports of other crates, under their names there.
fn of_other_crates(map: &str) -> Vec<String> {
    let uses = map.lines().map(|line| line.strip_prefix("pub ").unwrap_or(line));
    let uses = uses.filter_map(|line| line.strip_prefix("use ")?.split_once("::"));
    uses.flat_map(|(root, rest)| imported(&format!("{root}::{rest}"), root)).collect()
}

/// Every source file under `folder`, with the module at the root that it belongs to.
fn sources(folder: &Path) -> Vec<(String, PathBuf)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    let module = |path: &PathBuf| {
        let first = path.strip_prefix(folder).unwrap().components().next().unwrap();
        let first = first.as_os_str().to_string_lossy().into_owned();
        first.strip_suffix(".rs").unwrap_or(&first).to_string()
    };
    files.into_iter().map(|path| (module(&path), path)).collect()
}

/// The names that follow `root` and `::` in the code of `text`: one, or those of a group.
fn imported(text: &str, root: &str) -> Vec<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    let name = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let mut names: Vec<String> = Vec::new();
    for (at, _) in code.match_indices(root) {
        let is_whole = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        let Some(rest) = code[at + root.len()..].strip_prefix("::").filter(|_| is_whole) else { continue };
        let Some(group) = rest.strip_prefix('{') else {
            names.push(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = 0;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.push(name(&group[item..at]));
                    item = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn imports_are_found_alone_and_in_groups() {
    let text =
        "use crate::board;\nuse crate::{clock::{Clock, x}, fault};\n// crate::no\nlet a = crate::plan::b; xcrate::no";
    assert_eq!(imported(text, "crate"), ["board", "clock", "fault", "plan"]);
}

#[test]
fn a_module_imports_only_modules_declared_before_it() {
    for one in crates().into_iter().filter(|one| one.src.join("lib.rs").is_file()) {
        let map = std::fs::read_to_string(one.src.join("lib.rs")).unwrap();
        let order = declared(&map);
        assert!(!order.is_empty(), "{} has modules", one.name);
        let others = of_other_crates(&map);
        let place = |module: &str| order.iter().position(|known| *known == module);
        for (module, path) in sources(&one.src).into_iter().filter(|(module, _)| module != "lib") {
            let own = place(&module).unwrap_or_else(|| panic!("{module} is not on the map of {}", one.name));
            for name in imported(&std::fs::read_to_string(&path).unwrap(), "crate") {
                // What another crate has is before everything here.
                if others.contains(&name) {
                    continue;
                }
                let theirs = place(&name).unwrap_or_else(|| panic!("{}: {name} is not on the map", path.display()));
                assert!(theirs <= own, "{} imports {name}, which is declared after {module}", path.display());
            }
        }
    }
}

#[test]
fn a_crate_imports_only_crates_listed_before_it() {
    let crates = crates();
    assert!(crates.len() > 4, "{} crates", crates.len());
    for (own, one) in crates.iter().enumerate() {
        for import in &one.imports {
            let theirs = crates.iter().position(|known| known.name == *import);
            let theirs = theirs.unwrap_or_else(|| panic!("{} imports {import}, which is not listed", one.name));
            assert!(theirs < own, "{} imports {import}, which the workspace lists after it", one.name);
        }
    }
}

/// What reads a clock. Waiting with a limit is none of it.
const CLOCK_READS: [&str; 9] = [
    "Instant::now",
    "SystemTime",
    "clock_gettime",
    "gettimeofday",
    "Timestamp::now",
    "Zoned::now",
    ".elapsed()",
    "_rdtsc",
    "cntvct_el0",
];
/// Files outside `clock` that may: (file, what).
/// The writer of interval logs wants its start as a `SystemTime`: that of the board's header, by its epoch.
const CLOCK_READERS: [(&str, &str); 1] = [("record/hlog.rs", "SystemTime")];

/// The code of `text` before its tests, without comments.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_but_the_clock_reads_a_clock() {
    let mut clocks = 0;
    let engine = |one: &Crate| one.src.is_dir() && one.name != "pinwheel";
    for folder in crates().into_iter().filter(engine).map(|one| one.src) {
        for (module, path) in sources(&folder).into_iter().filter(|(_, path)| !path.ends_with("tests.rs")) {
            let code = code_of(&std::fs::read_to_string(&path).unwrap());
            let file = path.strip_prefix(&folder).unwrap().display().to_string();
            for read in CLOCK_READS.into_iter().filter(|read| code.contains(read)) {
                if module == "clock" {
                    clocks += 1;
                } else {
                    assert!(CLOCK_READERS.contains(&(file.as_str(), read)), "{file} reads a clock: {read}");
                }
            }
        }
    }
    assert!(clocks >= 3, "the clock itself is found: {clocks}");
}

#[test]
fn the_console_imports_of_the_engine_only_what_it_may() {
    let console = engine().join("../../tui/src");
    let mut seen = 0;
    for (module, path) in sources(&console).into_iter().filter(|(module, _)| module != "cli") {
        let text = std::fs::read_to_string(&path).unwrap();
        for name in ["pinwheel_engine", "pinwheel_lab"].into_iter().flat_map(|root| imported(&text, root)) {
            seen += 1;
            assert!(CONSOLE_MAY.contains(&name.as_str()), "{} of {module} imports {name}", path.display());
        }
    }
    assert!(seen > 10, "{seen} imports");
}
