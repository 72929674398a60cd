//! Commands that the documents show, against the grammar.

#![allow(clippy::unwrap_used, reason = "harness")]

use crate::cli::args::Args;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages that show commands to a person.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let book = root.join("engine/docs/src");
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root.join(name)).into();
    for folder in ["", "design", "guide", "operate", "reference"] {
        let entries = fs::read_dir(book.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    // Commands of a build with another feature.
    pages.retain(|path| cfg!(feature = "hosts") || !path.ends_with("operate/hosts.md"));
    pages.sort();
    pages
}

/// The commands of a page: whole lines of its code blocks, and its inline code with options.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (block, part) in text.split("```").enumerate() {
        let part = part.replace("\\\n", " ");
        if block % 2 == 1 {
            found.extend(part.lines().map(str::trim).filter(|line| line.starts_with("pinwheel ")).map(str::to_owned));
        } else {
            let codes = part.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " "));
            found.extend(codes.filter(|code| code.starts_with("pinwheel ") && code.contains(" --")));
        }
    }
    found
}

/// The words of a command as a shell splits them, without its comment and what it redirects.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), command.trim_start());
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' | '\'' => rest[1..].split_once(first).unwrap_or((&rest[1..], "")),
            '#' => return words,
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        if [">", "<", "|", "&"].contains(&word) {
            return words;
        }
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[test]
fn every_command_that_a_document_shows_is_understood() {
    let (mut shown, mut refused) = (0, Vec::new());
    for page in pages() {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let words = words(&command);
            // Names for what a person fills in, where the grammar wants a value.
            if words.iter().any(|word| ["A..B", "COMMAND"].contains(&word.as_str()) || word.contains('…')) {
                continue;
            }
            shown += 1;
            if let Err(error) = Args::command().try_get_matches_from(&words)
                && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
            {
                refused.push(format!("{}: {command}\n{error}", page.display()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(shown > 60, "{shown} commands found");
}
