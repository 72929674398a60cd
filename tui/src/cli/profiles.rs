//! `pinwheel profiles list|show|validate|diff`.
//!
//! Reads profiles, changes none. Exit status 1 if `validate` finds an error in a profile, 2 if a
//! profile cannot be read, or cannot be loaded for another action.

use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::say::{self, written};
use clap::{Args as ClapArgs, Subcommand};
use pinwheel_engine::host::{CoreFacts, HostFacts};
use pinwheel_engine::plan::{Plan, PlanError};
use pinwheel_engine::profile::{
    self, Applies, Change, Finding, Profile, ProfileEntry, ProfileError, THREAD_ROLES_MAX, Threads,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct ProfilesArgs {
    #[command(subcommand)]
    pub action: ProfilesAction,
    /// Directory of profiles [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR", global = true)]
    pub profiles: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List all profiles with their summaries
    List,
    /// Print one profile as it is written
    Show {
        /// Name or path; `base` shows the values of fields that a profile leaves out
        #[arg(value_name = "P")]
        profile: String,
        /// Print all fields with their meaning and unit, also those that the profile leaves out
        #[arg(long)]
        full: bool,
    },
    /// List all errors of one profile
    Validate {
        /// Name or path
        #[arg(value_name = "P")]
        profile: String,
    },
    /// List differing fields, and whether each applies to a running engine or at a restart
    Diff {
        /// Name or path
        #[arg(value_name = "FROM")]
        from: String,
        /// Name or path
        #[arg(value_name = "TO")]
        to: String,
    },
}

/// Output of `validate --json`.
#[derive(Serialize)]
struct Validation<'a> {
    ok: bool,
    errors: &'a [Finding],
}

pub fn profiles(args: &ProfilesArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let dir = places::profiles(args.profiles.as_deref(), user_paths)?;
    let out = &mut io::stdout().lock();
    act(&args.action, args.json, dir.as_deref(), out)
}

fn act(action: &ProfilesAction, json: bool, dir: Option<&Path>, out: &mut dyn io::Write) -> Result<u8, Refusal> {
    match action {
        ProfilesAction::List => {
            let entries = profile::list(dir);
            Ok(written(if json { say::json(out, &entries) } else { say::text(out, &list_text(&entries)) }, 0))
        }
        ProfilesAction::Show { profile, .. } if json => Ok(written(say::json(out, &Profile::load(profile, dir)?.0), 0)),
        ProfilesAction::Show { profile, full: true } => {
            let text = Profile::load(profile, dir)?.0.to_full_text();
            // Every value of a valid profile can be written.
            let text = text.map_err(|error| Refusal::Usage(format!("{profile}: {error}")))?;
            Ok(written(say::text(out, &text), 0))
        }
        ProfilesAction::Show { profile, full: false } => {
            Ok(written(say::text(out, &profile::text(profile, dir)?.0), 0))
        }
        ProfilesAction::Validate { profile } => validate(profile, json, dir, out),
        ProfilesAction::Diff { from, to } => {
            let changes = profile::diff(&Profile::load(from, dir)?.0, &Profile::load(to, dir)?.0);
            Ok(written(if json { say::json(out, &changes) } else { say::text(out, &diff_text(&changes)) }, 0))
        }
    }
}

fn validate(name: &str, json: bool, dir: Option<&Path>, out: &mut dyn io::Write) -> Result<u8, Refusal> {
    let (errors, status): (Vec<Finding>, u8) = match Profile::load(name, dir) {
        Ok((profile, origin)) => (unplannable(&profile, &origin.to_string()).into_iter().collect(), 1),
        Err(error @ (ProfileError::Unknown(_) | ProfileError::Unreadable(_))) if json => (error.findings().to_vec(), 2),
        Err(error @ (ProfileError::Unknown(_) | ProfileError::Unreadable(_))) => return Err(error.into()),
        Err(error) => (error.findings().to_vec(), 1),
    };
    let errors = &errors[..];
    let printed = if json {
        say::json(out, &Validation { ok: errors.is_empty(), errors })
    } else if errors.is_empty() {
        say::text(out, &format!("{name}: sound\n"))
    } else {
        let lines: String = errors.iter().fold(String::new(), |text, error| text + &error.to_string() + "\n");
        say::text(out, &lines)
    };
    Ok(written(printed, if errors.is_empty() { 0 } else { status }))
}

/// Why no machine, or not this one with all its cores, can run the plan. Missing cores are no error of the
/// profile, which may be meant for another machine.
fn unplannable(profile: &Profile, file: &str) -> Option<Finding> {
    let mut host = HostFacts::read().ok()?;
    if let Threads::Explicit(specs) = &profile.threads {
        let core = |core: u32| CoreFacts { core, node: 0, siblings: Vec::new() };
        let listed: BTreeSet<u32> = specs.iter().filter_map(|spec| spec.core).collect();
        host.cores = listed.into_iter().map(core).collect();
    }
    let (found, expected, remedy) = match Plan::make(profile, &host).err()? {
        PlanError::TooManyRoles { thread, found, silos, cores, remedy } => (
            format!("{found} roles on thread {thread} (silos {silos}, hot cores of this machine {cores})"),
            format!("at most {THREAD_ROLES_MAX} on one thread"),
            remedy,
        ),
        error => error.parts(),
    };
    Some(Finding { file: file.to_owned(), line: 0, column: 0, found, expected, remedy })
}

fn list_text(entries: &[ProfileEntry]) -> String {
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for ProfileEntry { name, path, summary, valid } in entries {
        let place = path.as_ref().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        let mark = if *valid { "" } else { "INVALID: " };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<width$}  {mark}{summary}  ({place})");
    }
    text
}

fn diff_text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "no difference\n".to_owned();
    }
    let width = changes.iter().map(|change| change.field.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Change { field, from, to, applies } in changes {
        let when = match applies {
            Applies::Live => "live",
            Applies::Restart => "restart",
        };
        let _ = writeln!(text, "{field:<width$}  {when:<7}  {from} -> {to}");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{ProfilesAction, act};
    use std::fs;
    use std::path::Path;

    fn said(action: &ProfilesAction, json: bool, dir: Option<&Path>) -> (u8, String) {
        let mut out = Vec::new();
        let status = act(action, json, dir, &mut out).unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    fn show(profile: &str, full: bool) -> ProfilesAction {
        ProfilesAction::Show { profile: profile.to_owned(), full }
    }

    #[test]
    fn the_list_has_the_profiles_built_in() {
        let (status, text) = said(&ProfilesAction::List, true, None);
        let entries: serde_json::Value = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> =
            entries.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!((status, names), (0, vec!["prod", "lab", "shared", "drill"]));
        assert!(said(&ProfilesAction::List, false, None).1.contains("built in"));
    }

    #[test]
    fn validate_names_position_and_remedy_and_exits_with_1() {
        let dir = tempfile::tempdir().unwrap();
        let (_, lab) = said(&show("lab", true), false, None);
        fs::write(dir.path().join("bad.ron"), lab.replace("workers: 8,", "workers: 65,")).unwrap();
        let validate = |name: &str| ProfilesAction::Validate { profile: name.to_owned() };
        let (status, text) = said(&validate("bad"), true, Some(dir.path()));
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, found["ok"].as_bool()), (1, Some(false)));
        for key in ["line", "column", "found", "expected", "remedy"] {
            assert!(!found["errors"][0][key].is_null(), "{key} in {text}");
        }
        assert_eq!(said(&validate("lab"), true, None), (0, "{\"ok\":true,\"errors\":[]}\n".to_owned()));
    }

    #[test]
    fn listed_threads_that_no_machine_can_run_are_no_sound_profile() {
        let dir = tempfile::tempdir().unwrap();
        let listed = |threads: &str| {
            fs::write(dir.path().join("mine.ron"), format!("(spin: Prod, threads: Explicit([{threads}]))")).unwrap();
            let validate = ProfilesAction::Validate { profile: "mine".to_owned() };
            let (status, text) = said(&validate, true, Some(dir.path()));
            let found: serde_json::Value = serde_json::from_str(&text).unwrap();
            (status, found["errors"][0].clone())
        };
        let ring = "silo: 0, roles: [Feed, Dispatch, Device, Poll, Graph, Harvest]";
        // Cores that this machine does not have are no error.
        let work = r#"(name: "work", silo: 0, roles: [Decode], core: Some(1001))"#;
        let (status, error) = listed(&format!(r#"(name: "ring", {ring}, core: Some(1000)), {work}"#));
        assert_eq!((status, error), (0, serde_json::Value::Null));
        let (status, error) = listed(&format!(r#"(name: "ring", {ring}, core: Some(1001)), {work}"#));
        assert_eq!((status, error["found"].as_str()), (1, Some("ring and work both on core 1001 under spin Prod")));
        assert_eq!(error["remedy"].as_str(), Some("move one or spin with Lab"));
        let (status, error) = listed(work);
        assert_eq!((status, error["found"].as_str()), (1, Some("no thread with role feed in silo 0")));
        assert_eq!(error["expected"].as_str(), Some("one"));
    }

    #[test]
    fn validate_exits_with_2_for_what_cannot_be_read() {
        for name in ["no-such", "/dev/zero"] {
            let validate = ProfilesAction::Validate { profile: name.to_owned() };
            let (status, text) = said(&validate, true, None);
            assert!(status == 2 && text.starts_with("{\"ok\":false,"), "{status} {text}");
            let mut out = Vec::new();
            let sentence = act(&validate, false, None, &mut out).unwrap_err().to_string();
            assert!(out.is_empty() && sentence.contains("found ") && !sentence.contains('\n'), "{sentence}");
        }
    }

    #[test]
    fn show_prints_a_profile_as_it_is_and_in_full_with_comments_as_a_profile_that_is_the_same() {
        let (_, written) = said(&show("prod", false), false, None);
        assert!(written.contains("base: \"base\"") && !written.contains("drain_grace_s"), "{written}");
        let (_, full) = said(&show("prod", true), false, None);
        assert!(full.contains("late_us: 500, // answers later than this"), "{full}");
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("whole.ron"), &full).unwrap();
        let diff = ProfilesAction::Diff { from: "prod".to_owned(), to: "whole".to_owned() };
        assert_eq!(said(&diff, false, Some(dir.path())), (0, "no difference\n".to_owned()));
        assert_eq!(said(&show("whole", true), false, Some(dir.path())), (0, full));
    }

    #[test]
    fn a_diff_says_what_applies_live() {
        let diff = ProfilesAction::Diff { from: "lab".to_owned(), to: "prod".to_owned() };
        let changes: serde_json::Value = serde_json::from_str(&said(&diff, true, None).1).unwrap();
        let spin = changes.as_array().unwrap().iter().find(|change| change["field"] == "spin").unwrap();
        assert_eq!((spin["applies"].as_str(), spin["from"].as_str()), (Some("live"), Some("Lab")));
        assert!(said(&diff, false, None).1.contains("live"));
    }

    #[test]
    fn a_profile_that_is_not_there_is_refused_in_one_sentence() {
        let refusal = act(&show("no-such", false), false, None, &mut Vec::new()).unwrap_err().to_string();
        assert!(refusal.contains("found no profile \"no-such\"") && !refusal.contains('\n'), "{refusal}");
    }
}
