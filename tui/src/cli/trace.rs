//! `pinwheel trace`: writes a recording as a trace that Perfetto opens.
//!
//! Runs on the main thread. A file appears only when it is complete.

use super::distinct_files::require_distinct;
use super::places::UserPaths;
use super::refusal::Refusal;
use super::runs::{self, RunName};
use super::say;
use clap::Args as ClapArgs;
use pinwheel_engine::record::runs::MANIFEST;
use pinwheel_engine::record::tape::{FILE, INDEX};
use pinwheel_engine::record::trace::TraceError;
use pinwheel_engine::record::{Output, hlog, trace};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, ClapArgs)]
pub struct TraceArgs {
    #[command(flatten)]
    pub name: RunName,
    /// Write it here; - is standard output [default: trace.json in the run's directory]
    #[arg(short, long, value_name = "F|-")]
    pub output: Option<PathBuf>,
    /// Write the latency histograms as an HdrHistogram log here
    #[arg(long, value_name = "F")]
    pub hlog: Option<PathBuf>,
}

pub fn trace(args: &TraceArgs, user_paths: &UserPaths) -> Result<u8, Refusal> {
    if args.hlog.as_deref() == Some(Path::new("-")) {
        let remedy = "name a file; only -o takes - for standard output";
        return Err(Refusal::unusable("--hlog -", "standard output", "a file", remedy));
    }
    let dir = runs::find(&args.name.run, args.name.logs.as_deref(), user_paths)?;
    let output = args.output.clone().unwrap_or_else(|| dir.join("trace.json"));
    let inputs = [FILE, INDEX, MANIFEST, "events.jsonl"].map(|name| dir.join(name));
    let inputs: Vec<_> = inputs.iter().chain([&dir]).map(|path| ("the recording", path.as_path())).collect();
    let hlog = args.hlog.iter().map(|path| ("--hlog", path.as_path()));
    require_distinct(&inputs, &hlog.chain([("-o", output.as_path())]).collect::<Vec<_>>())?;
    let mut tape = runs::open(&dir)?;
    tape.span().ok_or_else(|| runs::empty(&dir))?;
    if let Some(path) = &args.hlog {
        whole(Output::file(path, "--hlog")?, path, |out| {
            hlog::write(&mut tape, out).map_err(|error| error.to_string())
        })?;
        say::people(&format!("pinwheel: wrote {}", path.display()));
    }
    let notes = runs::notes(&dir, &tape);
    let mut write = |out: &mut dyn Write| trace::write(&mut tape, &notes, out);
    if output == Path::new("-") {
        let mut out = BufWriter::new(say::JsonStream::new(io::stdout().lock()));
        return match write(&mut out).and_then(|_| Ok(out.flush()?)) {
            Err(TraceError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other.map(|()| 0).map_err(|error| Refusal::Usage(error.to_string())),
        };
    }
    // A run directory may belong to another user, so links in it are not followed.
    let out = if args.output.is_some() { Output::file(&output, "-o") } else { Output::in_place(&output, "-o") };
    let events = whole(out?, &output, |out| write(out).map_err(|error| error.to_string()))?;
    let events = say::counted(events, "event");
    say::people(&format!("pinwheel: wrote {events} to {}; open it at ui.perfetto.dev", output.display()));
    Ok(0)
}

/// Writes a file that appears only when it is complete.
pub fn whole<T>(
    mut out: Output,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, String>,
) -> Result<T, Refusal> {
    let about = format!("output {}", path.display());
    let value = write(&mut out).map_err(|said| Refusal::Content { about: about.clone(), said })?;
    out.commit().map_err(|error| {
        Refusal::unusable(
            about,
            format!("a file that cannot be written ({error})"),
            "a writable file",
            "free space there or name another file",
        )
    })?;
    Ok(value)
}
