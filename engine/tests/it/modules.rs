//! The map holds: a module imports only modules declared before it, files import each other in no
//! circle, and the console imports only what it may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What every module of the console other than `cli` may import of the engine.
const CONSOLE_MAY: [&str; 15] = [
    "files", "quote", "roles", "streams", "board", "clock", "units", "profile", "plan", "host", "stall", "record",
    "fault", "drill", "engine",
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
    let module = |line| str::strip_prefix(line, "pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';');
    map.lines().filter_map(module).collect()
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
/// The writer of interval logs wants its start as a `SystemTime`: that of the board's header, by its epoch. The link to
/// other hosts knows no engine, and measures how long its questions wait.
const CLOCK_READERS: [(&str, &str); 2] = [("record/hlog.rs", "SystemTime"), ("link/outgoing.rs", "Instant::now")];

/// The code of `text` before its tests, without comments.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// A module's path within its crate; that of the root is empty.
type Module = Vec<String>;

/// The code of every file under `src`, by module.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let module = |path: &Path| {
        let path = path.strip_prefix(src).unwrap().with_extension("");
        let names: Module = path.components().map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        if names == ["lib"] || names == ["main"] { Module::new() } else { names }
    };
    let code = |path: &Path| code_of(&std::fs::read_to_string(path).unwrap());
    sources(src).into_iter().map(|(_, path)| (module(&path), code(&path))).collect()
}

/// The paths that a tree of imports names; an alias goes.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let (mut depth, mut from) = (0, 0);
    for (at, c) in tree.char_indices().chain([(tree.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = tree[from..at].trim();
                from = (at + 1).min(tree.len());
                if let Some((before, group)) = item.split_once('{') {
                    expand(&format!("{prefix}{before}"), group.trim_end().strip_suffix('}').unwrap_or(group), found);
                } else if !item.is_empty() {
                    found.push(format!("{prefix}{}", item.split(" as ").next().unwrap().trim()));
                }
            }
            _ => {}
        }
    }
}

/// What one file names of others.
#[derive(Default)]
struct Names {
    /// Paths that it uses.
    used: Vec<String>,
    /// Paths that it only hands on: `pub use`.
    handed_on: Vec<String>,
}

impl Names {
    fn of(code: &str) -> Names {
        let (mut names, mut rest) = (Names::default(), String::new());
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let line = line.trim_start();
            let (is_public, declared) = match (line.strip_prefix("pub "), line.strip_prefix("pub(")) {
                (Some(declared), _) => (true, declared),
                (_, Some(declared)) => (true, declared.split_once(") ").map_or("", |(_, declared)| declared)),
                _ => (false, line),
            };
            let Some(tree) = declared.strip_prefix("use ") else {
                rest.push_str(line);
                rest.push(' ');
                continue;
            };
            let mut tree = tree.to_owned();
            while !tree.contains(';') {
                tree.push_str(lines.next().unwrap_or(";"));
            }
            let into = if is_public { &mut names.handed_on } else { &mut names.used };
            expand("", tree.split(';').next().unwrap(), into);
        }
        let imported: BTreeSet<String> =
            names.used.iter().filter_map(|path| path.rsplit("::").next()).map(str::to_owned).collect();
        let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        let paths = words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::"));
        // What begins with an imported name is counted by its import.
        let paths = paths.filter(|path| path.split("::").next().is_some_and(|first| !imported.contains(first)));
        names.used.extend(paths.map(str::to_owned));
        names
    }
}

/// `path`, as a file of `module` names it, from the root; `None` if it leads out of the crate.
fn from_root(files: &BTreeMap<Module, Names>, module: &Module, path: &str) -> Option<Module> {
    let mut names: Vec<&str> = path.split("::").filter(|name| !name.is_empty()).collect();
    names.pop_if(|last| *last == "self");
    let mut base = match *names.first()? {
        "crate" => return Some(names[1..].iter().map(|name| (*name).to_owned()).collect()),
        "self" => {
            return Some(module.iter().cloned().chain(names[1..].iter().map(|name| (*name).to_owned())).collect());
        }
        _ => module.clone(),
    };
    let ups = names.iter().take_while(|name| **name == "super").count();
    base.truncate(base.len().saturating_sub(ups));
    base.extend(names[ups..].iter().map(|name| (*name).to_owned()));
    let is_own_child = || base.get(module.len()).is_some() && files.contains_key(&base[..=module.len()]);
    (ups > 0 || is_own_child()).then_some(base)
}

/// The file that declares what `path` leads to, behind all files that only hand it on.
fn declaring(files: &BTreeMap<Module, Names>, mut path: Module) -> Module {
    let file_of =
        |path: &Module| (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length])).unwrap_or(0);
    for _ in 0..8 {
        let length = file_of(&path);
        let file = path[..length].to_vec();
        let Some(name) = path.get(length) else { return file };
        let is_it = |handed_on: &&String| handed_on.rsplit("::").next() == Some(name);
        let Some(further) = files.get(&file).and_then(|names| names.handed_on.iter().find(is_it)) else { return file };
        let Some(mut further) = from_root(files, &file, further) else { return file };
        further.extend(path[length + 1..].iter().cloned());
        path = further;
    }
    path[..file_of(&path)].to_vec()
}

/// Files that import each other in a circle, each with those that it imports of them; and what lies
/// between two circles.
///
/// A file may name what lies in its own folder: it is that folder's face, holds its parts and hands
/// them on. So `mod` and `pub use` are no imports, and neither is a parent's use of a child; a
/// child's use of its parent is one. Who imports a name that a file hands on imports the file that
/// declares it.
fn circles(code: &BTreeMap<Module, String>) -> BTreeMap<String, Vec<String>> {
    let files: BTreeMap<Module, Names> = code.iter().map(|(module, code)| (module.clone(), Names::of(code))).collect();
    let mut imports: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, names) in &files {
        let paths = names.used.iter().filter_map(|path| from_root(&files, module, path));
        let others = paths.map(|path| declaring(&files, path)).filter(|other| !other.starts_with(module));
        imports.insert(module.clone(), others.collect());
    }
    loop {
        let wanted: BTreeSet<Module> = imports.values().flatten().cloned().collect();
        let before = imports.len();
        imports.retain(|module, others| !others.is_empty() && wanted.contains(module));
        let left: BTreeSet<Module> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|others| others.retain(|other| left.contains(other)));
        if imports.len() == before && imports.values().all(|others| !others.is_empty()) {
            break;
        }
    }
    let named = |module: &Module| module.join("/");
    imports.iter().map(|(module, others)| (named(module), others.iter().map(named).collect())).collect()
}

#[test]
fn a_cycle_of_files_is_found_through_re_exports() {
    let files = |files: &[(&str, &str)]| {
        let module =
            |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Module>();
        circles(&files.iter().map(|(path, code)| (module(path), (*code).to_owned())).collect())
    };
    let parent_and_child =
        [("a", "mod b;\npub use b::B;\nuse b::{B, C as D};\nfn f() -> b::B {}"), ("a/b", "use super::A;")];
    assert_eq!(files(&parent_and_child), BTreeMap::new());
    let siblings = [("a", ""), ("a/b", "use super::c::{\n    C,\n};"), ("a/c", "fn f() { super::b::B::new() }")];
    assert_eq!(files(&siblings).len(), 2);
    let behind = [("a", "mod b;\npub use b::B;"), ("a/b", "use crate::c::C;"), ("c", "use crate::a::{self, B};")];
    assert_eq!(files(&behind).into_keys().collect::<Vec<_>>(), ["a/b", "c"]);
    assert_eq!(files(&[("a", "use crate::c;"), ("a/b", "use super::A;"), ("c", "use std::a::b;")]), BTreeMap::new());
}

#[test]
fn files_of_a_crate_import_each_other_in_no_circle() {
    for one in crates().into_iter().filter(|one| one.src.is_dir()) {
        let circles = circles(&modules(&one.src));
        assert_eq!(circles, BTreeMap::new(), "{}: move what both files need into a third", one.name);
    }
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
