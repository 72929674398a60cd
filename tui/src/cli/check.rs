//! `pinwheel check`: checks this machine against the needs of hot threads and signs the result;
//! verifies kept reports.
//!
//! Claims the hot cores of the plan while it measures them, so that no engine is disturbed; cores
//! that others have claimed are reported as *not visible*. The measurement takes one second.
//! Changes nothing on the machine.

use super::places::{self, UserPaths};
use super::refusal::Refusal;
use super::say::{self, Print};
use clap::Args as ClapArgs;
use pinwheel_engine::board;
use pinwheel_engine::clock::Clock;
use pinwheel_engine::device::cuda;
use pinwheel_engine::files;
use pinwheel_engine::host::HostFacts;
use pinwheel_engine::host::check::report::{Report, SkippedCore, take};
use pinwheel_engine::host::check::sign::HostKey;
use pinwheel_engine::host::check::{Row, Verdict, probe, refuses_strict};
use pinwheel_engine::host::claims::{ClaimError, Claims};
use pinwheel_engine::plan::{Plan, PlanError};
use pinwheel_engine::profile::{DEFAULT_NAME, Profile, Threads};
use pinwheel_engine::quote::cut;
use serde::Serialize;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Largest report file to verify.
const REPORT_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, ClapArgs)]
pub struct CheckArgs {
    /// Exit with status 1 if a row fails
    #[arg(long)]
    pub strict: bool,
    /// Verify the signature of a report kept with --json, instead of checking the machine
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub verify: Option<PathBuf>,
    /// Profile whose plan names the hot cores [default: lab]
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// Directory of profiles [default: the checkout's, else those built in]
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    #[command(flatten)]
    pub print: Print,
}

pub fn check(args: &CheckArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let out = &mut io::stdout().lock();
    if let Some(file) = &args.verify {
        return verify(file, args, user_paths, out);
    }
    let dir = places::profiles(args.profiles.as_deref(), user_paths)?;
    let (profile, _) = Profile::load(args.profile.as_deref().unwrap_or(DEFAULT_NAME), dir.as_deref())?;
    let rows = measure(&profile)?;
    let key = host_key(user_paths);
    let report = Report::new(rows, key.as_ref());
    let status = status(&report.rows, args);
    Ok(args.print.result(out, &report, || text(&report), status))
}

fn status(rows: &[Row], args: &CheckArgs) -> u8 {
    u8::from(args.strict && refuses_strict(rows))
}

/// The rows of this machine for the threads of the profile's plan.
fn measure(profile: &Profile) -> Result<Vec<Row>, Refusal> {
    let clock = Clock::machine();
    let whole = HostFacts::read()?;
    let directory = board::directory();
    let hot = hot_cores(profile, &whole, &directory).map_err(|refused| Refusal::Usage(format!("check: {refused}")))?;
    let (_claims, skipped) = claim(&whole, &directory, &hot);
    let mut rows = take(&whole, &hot, &skipped, probe::SPAN, &clock);
    rows.extend(cuda::rows());
    Ok(rows)
}

/// The hot cores of the profile's plan. A plan that lists its threads keeps its cores, as at a start.
fn hot_cores(profile: &Profile, host: &HostFacts, directory: &Path) -> Result<Vec<u32>, PlanError> {
    if matches!(profile.threads, Threads::Explicit(_)) {
        return Ok(Plan::make(profile, host)?.hot_cores());
    }
    let (free, used) = host.clone().without_used_cores(directory);
    for note in used {
        say::people(&format!("pinwheel: check: {note}"));
    }
    Ok(Plan::make(profile, &free)?.hot_cores())
}

/// Claims the cores to measure; also returns the cores that other processes have claimed.
fn claim(host: &HostFacts, directory: &Path, hot: &[u32]) -> (Vec<Claims>, Vec<SkippedCore>) {
    let (mut held, mut skipped) = (Vec::new(), Vec::new());
    for &core in hot {
        match Claims::take(directory, &host.with_siblings(&[core])) {
            Ok(claims) => held.push(claims),
            Err(ClaimError::Conflict(conflict)) => skipped.push((core, conflict.to_string())),
            // Without a directory of claims, the core is measured without a claim.
            Err(ClaimError::Unavailable { .. }) => {}
        }
    }
    (held, skipped)
}

fn host_key(user_paths: &UserPaths) -> Option<HostKey> {
    let Some(path) = places::host_key(user_paths) else {
        say::people(
            "pinwheel: check: the report is not signed: neither $XDG_STATE_HOME nor $HOME is set; set one of them",
        );
        return None;
    };
    match HostKey::load_or_make(&path) {
        Ok(key) => Some(key),
        Err(error) => {
            say::people(&format!("pinwheel: check: the report is not signed: {error}"));
            None
        }
    }
}

/// A kept report and the result of its verification.
#[derive(Serialize)]
struct Verified {
    #[serde(flatten)]
    report: Report,
    verified: bool,
    this_host: bool,
}

fn verify(file: &Path, args: &CheckArgs, user_paths: &UserPaths, out: &mut dyn io::Write) -> Result<u8, Refusal> {
    let about = format!("--verify {}", file.display());
    let refused = |found: String| {
        Refusal::unusable(
            &about,
            found,
            "a report kept with check --json, or the environment.json of a run",
            "name another file",
        )
    };
    let text = files::read_named_text(file, REPORT_BYTES_MAX).map_err(|error| refused(error.to_string()))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| refused(cut(&error.to_string()).into_owned()))?;
    let outcome = report.verify();
    let own = places::host_key(user_paths).filter(|path| path.exists());
    let own = own.and_then(|path| HostKey::load_or_make(&path).ok()).map(|key| key.public());
    let this_host = own.is_some() && own == report.key;
    let (status, said) = match (&outcome, this_host) {
        (Err(error), _) => (1, error.to_string()),
        (Ok(()), true) => (status(&report.rows, args), "the signature is valid and from this host".to_owned()),
        (Ok(()), false) => (
            status(&report.rows, args),
            "the signature is valid, but from another host or user; compare the key with that host's".to_owned(),
        ),
    };
    if outcome.is_err() || !args.print.json {
        say::people(&format!("pinwheel: check: {said}"));
    }
    let verified = Verified { report, verified: outcome.is_ok(), this_host };
    Ok(args.print.result(out, &verified, || self::text(&verified.report), status))
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for row in &report.rows {
        let _ = writeln!(text, "{:<11}  {:<18}  {}", row.verdict.name(), row.id, row.found);
        if matches!(row.verdict, Verdict::Warn | Verdict::Fail) {
            let _ = writeln!(text, "{:<13}expected {}: {}", "", row.expected, row.why);
            let _ = writeln!(text, "{:<13}fix: {}", "", row.fix);
        }
    }
    let count = |verdict| report.rows.iter().filter(|row| row.verdict == verdict).count();
    let _ = writeln!(
        text,
        "{} pass, {} warn, {} fail, {} not visible",
        count(Verdict::Pass),
        count(Verdict::Warn),
        count(Verdict::Fail),
        count(Verdict::NotVisible)
    );
    if let Some(key) = &report.key {
        let _ = writeln!(text, "signed by key {key}; keep the report with --json to verify it later");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{CheckArgs, Print, UserPaths, claim, host_key, hot_cores, status, text, verify};
    use pinwheel_engine::host::HostFacts;
    use pinwheel_engine::host::check::report::Report;
    use pinwheel_engine::host::check::{Row, Verdict};
    use pinwheel_engine::host::claims::Claims;
    use pinwheel_engine::profile::{Profile, ThreadSpec, Threads};
    use pinwheel_engine::roles::RoleKind;
    use std::path::Path;

    fn row(verdict: Verdict) -> Row {
        let [id, found, expected, why, fix] = ["swap", "8 KiB", "none", "slow", "swapoff -a"].map(str::to_owned);
        Row { id, found, expected, verdict, why, fix }
    }

    fn args(strict: bool, json: bool) -> CheckArgs {
        CheckArgs { strict, verify: None, profile: None, profiles: None, print: Print { json } }
    }

    fn user_paths(home: &Path) -> UserPaths {
        UserPaths { state_home: Some(home.to_owned()), ..UserPaths::default() }
    }

    #[test]
    fn listed_threads_keep_their_cores_and_one_that_an_engine_has_claimed_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let host = HostFacts::read_at(Path::new("/no/such"), &[900, 901]);
        let spec = |name: &str, roles: &[RoleKind], core| ThreadSpec {
            name: name.to_owned(),
            roles: roles.to_vec(),
            silo: 0,
            core: Some(core),
        };
        let threads = vec![spec("ring", &RoleKind::RING, 900), spec("work", &[RoleKind::Decode], 901)];
        let (lab, _) = Profile::load("lab", None).unwrap();
        let profile = Profile { threads: Threads::Explicit(threads), ..lab };
        let _engine = Claims::take(folder.path(), &[901]).unwrap();
        let hot = hot_cores(&profile, &host, folder.path());
        assert_eq!(hot, Ok(vec![900, 901]));
        let (held, skipped) = claim(&host, folder.path(), &[900, 901]);
        assert_eq!((held.len(), skipped.len(), skipped[0].0), (1, 1, 901), "{skipped:?}");
    }

    #[test]
    fn only_a_strict_check_with_a_failed_row_exits_with_1() {
        for (verdict, strict, expected) in [
            (Verdict::Fail, true, 1),
            (Verdict::Fail, false, 0),
            (Verdict::Warn, true, 0),
            (Verdict::NotVisible, true, 0),
        ] {
            assert_eq!(status(&[row(Verdict::Pass), row(verdict)], &args(strict, false)), expected, "{verdict:?}");
        }
    }

    #[test]
    fn a_kept_report_is_verified_on_its_host_elsewhere_and_not_once_changed() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = host_key(&user_paths(home.path())).unwrap();
        let kept = serde_json::to_string(&Report::new(vec![row(Verdict::Warn)], Some(&key))).unwrap();
        let file = home.path().join("kept.json");
        std::fs::write(&file, &kept).unwrap();
        let told = |user_paths: &UserPaths| {
            let mut out = Vec::new();
            let status = verify(&file, &args(false, true), user_paths, &mut out).unwrap();
            let told: serde_json::Value = serde_json::from_slice(&out).unwrap();
            (status, told["verified"].as_bool().unwrap(), told["this_host"].as_bool().unwrap())
        };
        assert_eq!(told(&user_paths(home.path())), (0, true, true));
        assert_eq!(told(&user_paths(other.path())), (0, true, false));
        std::fs::write(&file, kept.replace("8 KiB", "0 KiB")).unwrap();
        assert_eq!(told(&user_paths(home.path())), (1, false, true));
        std::fs::write(&file, "{}").unwrap();
        let said =
            verify(&file, &args(false, true), &user_paths(home.path()), &mut Vec::new()).unwrap_err().to_string();
        assert!(said.contains("missing field") && said.contains("check --json"), "{said}");
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0, "verifying makes no key");
    }

    #[test]
    fn failed_rows_are_printed_with_the_command_that_fixes_them() {
        let said = text(&Report::new(vec![row(Verdict::Warn), row(Verdict::Pass)], None));
        assert!(said.contains("fix: swapoff -a") && said.contains("1 pass, 1 warn, 0 fail, 0 not visible"), "{said}");
        assert_eq!(said.matches("fix:").count(), 1);
    }
}
