//! `pinwheel report`: one page of a run for people who were not there.
//!
//! Runs on the main thread; starts no engine. Bounded by the parts that the run left. The file
//! appears only when it is complete.

mod comparison;

use super::compare;
use super::distinct_files::require_distinct;
use super::places::UserPaths;
use super::refusal::Refusal;
use super::runs::{self, RunName};
use super::say;
use super::trace::whole;
use clap::Args as ClapArgs;
use pinwheel_engine::record::runs::MANIFEST;
use pinwheel_engine::record::tape::{FILE, INDEX};
use pinwheel_engine::record::{Output, REPORT};
use pinwheel_report::evidence::{Evidence, name_of};
use pinwheel_report::page::page;
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct ReportArgs {
    #[command(flatten)]
    pub name: RunName,
    /// Write it here; - is standard output [default: report.html in the run's directory]
    #[arg(short, long, value_name = "F|-")]
    pub output: Option<PathBuf>,
    /// Compare it with this run
    #[arg(long, value_name = "RUN")]
    pub with: Option<String>,
}

pub fn report(args: &ReportArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    let logs = args.name.logs.as_deref();
    let run = Evidence::of(runs::find(&args.name.run, logs, user_paths)?, None)?;
    let other = args.with.as_deref().map(|name| runs::find(name, logs, user_paths)).transpose()?;
    let output = args.output.clone().unwrap_or_else(|| run.dir.join("report.html"));
    let read = [FILE, INDEX, MANIFEST, REPORT, "profile.ron", "environment.json", "events.jsonl"];
    let inputs: Vec<PathBuf> = [Some(&run.dir), other.as_ref()]
        .into_iter()
        .flatten()
        .flat_map(|dir| read.map(|name| dir.join(name)))
        .collect();
    let inputs: Vec<_> = inputs.iter().chain([&run.dir]).map(|path| ("the run", path.as_path())).collect();
    require_distinct(&inputs, &[("-o", output.as_path())])?;
    let compared = match other {
        Some(other) => Some((name_of(&other), compare::of_runs(run.dir.clone(), other)?)),
        None => None,
    };
    let text = page(&run, |page| {
        if let Some((other, compared)) = &compared {
            comparison::write(compared, [&name_of(&run.dir), other], page);
        }
    });
    if output == Path::new("-") {
        return Ok(say::written(say::text(&mut std::io::stdout().lock(), &text), 0));
    }
    // A run directory may belong to another user, so links in it are not followed.
    let out = if args.output.is_some() { Output::file(&output, "-o") } else { Output::in_place(&output, "-o") };
    whole(out?, &output, |out| out.write_all(text.as_bytes()).map_err(|error| error.to_string()))?;
    let (kb, path) = (text.len().div_ceil(1_000), output.display());
    say::people(&format!("pinwheel: wrote a page of {kb} kB to {path}; open it in a browser"));
    Ok(0)
}
