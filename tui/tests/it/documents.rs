//! The documents: what they refer to is there, and what is made from something else is up to date.
//!
//! The reference pages are compared by the unit tests of the command line. `PINWHEEL_UPDATE_DOCS=1`
//! writes what these tests compare.

use crate::golden_recording::golden;
use crate::world::World;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../engine/bench/benches/pages.rs"]
mod pages;

/// Most words of the README.
const README_WORDS_MAX: usize = 900;
/// The screens of the golden recording that the documents show, at a moment when an alarm holds and names its cause.
const PICTURES: [(&str, &str); 2] =
    [("console.svg", "--view overview --size 110x36"), ("alarms.svg", "--view alarms --size 110x24")];
/// How they are drawn, whatever the terminal is.
const LOOKS: &str = "--at 3500ms --glyphs utf-8 --theme dark --colour true";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_skipped = path.file_name().is_some_and(|name| name == "target" || name == "book");
        if path.is_dir() && !is_skipped {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The pages that a person reads.
fn documents() -> Vec<PathBuf> {
    let own = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "engine/shm/README.md",
        "tui/tests/golden/README.md",
    ];
    own.iter().map(|name| root().join(name)).chain(files(&root().join("engine/docs/src"), "md")).collect()
}

#[track_caller]
fn compare(path: &Path, expected: &str) {
    if std::env::var_os("PINWHEEL_UPDATE_DOCS").is_some() {
        fs::write(path, expected).unwrap();
    }
    let remedy = "PINWHEEL_UPDATE_DOCS=1 cargo test -p pinwheel --test it documents";
    assert!(fs::read_to_string(path).unwrap_or_default() == expected, "{} is out of date: {remedy}", path.display());
}

#[test]
fn every_source_file_that_a_document_names_is_there() {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for word in text.split(|c| !is_part(c)) {
            // NAME stands for a name of the reader's choice.
            let is_source = ["engine/", "tui/"].iter().any(|root| word.starts_with(root)) && word.ends_with(".rs");
            let is_there = !is_source || word.contains("NAME") || root().join(word).is_file();
            assert!(is_there, "{}: {word}", path.display());
        }
    }
}

/// Prose without code: no blocks, no spans.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2).collect::<String>();
    blocks.split('`').step_by(2).collect()
}

/// Targets of links and pictures.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let after = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// Names that a link may follow a `#` with.
fn anchors(text: &str) -> BTreeSet<String> {
    let blocks = text.split("\n```").step_by(2).collect::<String>();
    let headings =
        blocks.lines().filter_map(|line| Some(line.trim_start_matches('#')).filter(|rest| rest.len() < line.len()));
    let anchor = |heading: &str| {
        let kept = heading.trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut missing = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let is_there = target.exists();
            let is_named =
                anchor.is_empty() || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
            // The book has its own pages only.
            let book = root().join("engine/docs/src");
            let is_inside = !path.starts_with(&book)
                || target.canonicalize().is_ok_and(|to| to.starts_with(book.canonicalize().unwrap()));
            if !(is_there && is_named && is_inside) {
                missing.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_page_of_the_book_is_in_its_table_of_contents() {
    let book = root().join("engine/docs/src");
    let listed: BTreeSet<PathBuf> =
        links(&fs::read_to_string(book.join("SUMMARY.md")).unwrap()).iter().map(|link| book.join(link)).collect();
    let pages: BTreeSet<PathBuf> =
        files(&book, "md").into_iter().filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages);
}

#[test]
fn the_readme_is_one_page() {
    let words = fs::read_to_string(root().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= README_WORDS_MAX, "{words} words");
}

/// A test of the sources.
struct Test {
    name: String,
    /// The folders, the file and the modules within it that the test lies in.
    places: BTreeSet<String>,
    is_ignored: bool,
}

impl Test {
    /// Whether `path` names it: its name, or the start of its name and `*`, behind some of its
    /// places.
    fn is(&self, path: &str) -> bool {
        let mut parts: Vec<&str> = path.split("::").collect();
        let name = parts.pop().unwrap();
        let is_name = name.strip_suffix('*').map_or(self.name == name, |start| self.name.starts_with(start));
        is_name && parts.iter().all(|place| self.places.contains(*place))
    }
}

/// All tests of the sources.
fn tests() -> Vec<Test> {
    let mut found = Vec::new();
    for path in ["engine", "tui"].iter().flat_map(|folder| files(&root().join(folder), "rs")) {
        let of_path: Vec<String> =
            path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        // Modules around the line, with their columns.
        let mut around: Vec<(usize, String)> = Vec::new();
        let (mut after_test, mut is_ignored) = (false, false);
        for line in fs::read_to_string(&path).unwrap().lines() {
            let column = line.len() - line.trim_start().len();
            let line = line.trim();
            if line == "}" {
                around.retain(|(from, _)| *from < column);
            }
            if let Some(module) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
                around.push((column, module.to_owned()));
            }
            let function = line.strip_prefix("fn ").and_then(|rest| rest.split_once(['(', '<']));
            if let Some((name, _)) = function.filter(|_| after_test) {
                let places = of_path.iter().chain(around.iter().map(|(_, module)| module)).cloned().collect();
                found.push(Test { name: name.to_owned(), places, is_ignored });
            }
            after_test = line.starts_with("#[test]") || after_test && line.starts_with(['#', '/', '"', ')']);
            is_ignored = after_test && (is_ignored || line.starts_with("#[ignore"));
        }
    }
    found
}

#[test]
fn every_test_that_specification_and_security_name_is_there_and_runs() {
    let tests = tests();
    assert!(tests.len() > 1_000, "{} tests", tests.len());
    let texts =
        ["engine/docs/src/SPECIFICATION.md", "SECURITY.md"].map(|path| fs::read_to_string(root().join(path)).unwrap());
    let is_table = |block: &&str| ["| promise |", "| aim |", "| who |"].iter().any(|head| block.starts_with(head));
    let tables = texts.iter().flat_map(|text| text.split("\n\n")).filter(is_table);
    let mut missing = Vec::new();
    let mut named = 0;
    for row in tables.flat_map(|table| table.lines().skip(2)) {
        let enforced = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let paths: Vec<&str> = enforced.split('`').skip(1).step_by(2).collect();
        let may_run_none = ["*pending*", "*not covered*", "`.ci/"].iter().any(|words| enforced.contains(words));
        let mut runs = may_run_none || enforced == "–";
        for path in paths.into_iter().filter(|path| !path.starts_with(".ci/")) {
            named += 1;
            let mut found = tests.iter().filter(|test| test.is(path)).peekable();
            if found.peek().is_none() {
                missing.push(path.to_owned());
            }
            runs |= found.any(|test| !test.is_ignored);
        }
        if !runs {
            missing.push(format!("neither a test that runs nor *pending*: {row}"));
        }
    }
    assert!(named > 250, "{named}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_page_of_benchmarks_is_made_from_the_kept_lines() {
    let docs = root().join("engine/docs");
    for (name, content) in pages::files(&fs::read_to_string(docs.join("bench.txt")).unwrap()) {
        compare(&docs.join("src").join(name), &content);
    }
}

#[test]
fn the_pictures_of_the_console_are_drawn_from_the_golden_recording() {
    let world = World::new();
    let run = golden(&world);
    for (file, screen) in PICTURES {
        let picture = world.run(&format!("replay {run} --svg {screen} {LOOKS}")).exits(0).text();
        compare(&root().join("engine/docs/src").join(file), &picture);
    }
}
