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
    let map = std::fs::read_to_string(engine().join("lib.rs")).unwrap();
    let order: Vec<&str> = map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert!(order.len() > 10, "{order:?}");
    let place = |module: &str| order.iter().position(|known| *known == module);
    for (module, path) in sources(&engine()).into_iter().filter(|(module, _)| module != "lib") {
        let own = place(&module).unwrap_or_else(|| panic!("{module} is not on the map"));
        for name in imported(&std::fs::read_to_string(&path).unwrap(), "crate") {
            // The edge crate's units, re-exported; macros and re-exports at the root have no place of their own.
            if name == "units" {
                continue;
            }
            let theirs = place(&name).unwrap_or_else(|| panic!("{}: {name} is not on the map", path.display()));
            assert!(theirs <= own, "{} imports {name}, which is declared after {module}", path.display());
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
    for folder in [engine(), engine().join("../edge/src")] {
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
        for name in imported(&std::fs::read_to_string(&path).unwrap(), "pinwheel_engine") {
            seen += 1;
            assert!(CONSOLE_MAY.contains(&name.as_str()), "{} of {module} imports {name}", path.display());
        }
    }
    assert!(seen > 10, "{seen} imports");
}
