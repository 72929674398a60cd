//! Checks that no output of a command is one of its inputs or another output.
//!
//! Opens no file, and runs before anything is opened or created. Recognises a file under other
//! spellings, links and hard links.

use super::refusal::Refusal;
use pinwheel_engine::files::{Identity, identity};
use std::path::Path;

/// A file and the option that names it; the path `-` is standard input or output.
pub type Named<'a> = (&'a str, &'a Path);

/// Refuses an output that is an input or another output.
///
/// # Errors
/// One sentence that names both options.
pub fn require_distinct(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<(), Refusal> {
    let is_stream = |path: &Path| path == Path::new("-");
    let mut taken: Vec<(&str, Identity)> = Vec::new();
    for (option, path) in inputs {
        let found = if is_stream(path) { stream(std::io::stdin()) } else { identity(path) };
        // Reading refuses an input that does not exist.
        taken.extend(found.filter(|found| matches!(found, Identity::File(..))).map(|found| (*option, found)));
    }
    let same_as = |taken: &[(&str, Identity)], found: &Identity| {
        taken.iter().find(|(_, had)| had == found).map(|(option, _)| (*option).to_owned())
    };
    // Standard output and standard error may be the same file.
    let redirected: Vec<(&str, Identity)> =
        [("standard output", stream(std::io::stdout())), ("standard error", stream(std::io::stderr()))]
            .into_iter()
            .filter_map(|(name, found)| Some((name, found?)))
            .collect();
    for (name, found) in &redirected {
        if let Some(other) = same_as(&taken, found) {
            return Err(refused(name, &other));
        }
    }
    taken.extend(redirected);
    for (option, path) in outputs.iter().filter(|(_, path)| !is_stream(path)) {
        let Some(found) = identity(path) else { continue };
        if let Some(other) = same_as(&taken, &found) {
            return Err(refused(&format!("{option} {}", path.display()), &other));
        }
        taken.push((option, found));
    }
    Ok(())
}

fn refused(about: &str, other: &str) -> Refusal {
    let remedy = "name another file; links and hard links to one file are that file";
    Refusal::unusable(about, format!("the file of {other}"), "a file of its own", remedy)
}

#[cfg(unix)]
fn stream(stream: impl std::os::fd::AsFd) -> Option<Identity> {
    pinwheel_engine::files::identity_of_stream(stream)
}

#[cfg(not(unix))]
fn stream<T>(_: T) -> Option<Identity> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::require_distinct;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn an_output_equal_to_an_input_or_output_under_any_path_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        fs::write(place("shots"), "x").unwrap();
        symlink("shots", place("link")).unwrap();
        fs::hard_link(place("shots"), place("hard")).unwrap();
        symlink("new", place("dangling")).unwrap();
        let said = |input: &str, one: &str, other: &str| {
            let (input, one, other) = (place(input), place(one), place(other));
            require_distinct(&[("--shots", &input)], &[("--predictions", &one), ("--answers", &other)])
                .map_err(|refusal| refusal.to_string())
        };
        for (input, one, other, part) in [
            ("shots", "shots", "a", "the file of --shots"),
            ("link", "shots", "a", "the file of --shots"),
            ("shots", "a", "hard", "the file of --shots"),
            ("shots", "a", "a", "the file of --predictions"),
            ("shots", "new", "dangling", "the file of --predictions"),
            ("shots", "./new", "../new", ""),
        ] {
            match said(input, one, other) {
                Err(said) => assert!(!part.is_empty() && said.contains(part) && !said.contains('\n'), "{said}"),
                Ok(()) => assert_eq!(part, "", "{input} {one} {other}"),
            }
        }
        let null = Path::new("/dev/null");
        assert!(
            require_distinct(&[("--shots", null)], &[("--predictions", null), ("--answers", Path::new("-"))]).is_ok()
        );
        // A file that does not exist yet is no input.
        let absent = place("absent");
        assert!(require_distinct(&[("--dem", &absent)], &[("--predictions", &absent)]).is_ok());
    }
}
