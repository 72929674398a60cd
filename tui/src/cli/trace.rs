//! `pinwheel trace`: a recording as a trace that Perfetto opens.
//!
//! Runs on the main thread. Bounded by the recording. A file appears whole or not at all.

use super::places::Surroundings;
use super::refusal::Refusal;
use super::runs::{self, RunName};
use super::say;
use clap::Args as ClapArgs;
use pinwheel_engine::record::trace::TraceError;
use pinwheel_engine::record::{hlog, trace};
use std::fs::{self, File};
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

pub fn trace(args: &TraceArgs, around: &Surroundings) -> Result<u8, Refusal> {
    let dir = runs::find(&args.name.run, args.name.logs.as_deref(), around)?;
    let mut tape = runs::open(&dir)?;
    tape.span().ok_or_else(|| runs::empty(&dir))?;
    if let Some(path) = &args.hlog {
        whole(path, |out| hlog::write(&mut tape, out).map_err(|error| error.to_string()))?;
        say::people(&format!("pinwheel: wrote {}", path.display()));
    }
    let notes = runs::notes(&dir, &tape);
    let output = args.output.clone().unwrap_or_else(|| dir.join("trace.json"));
    let mut write = |out: &mut dyn Write| trace::write(&mut tape, &notes, out);
    if output == Path::new("-") {
        return match write(&mut BufWriter::new(say::JsonStream::new(io::stdout().lock()))) {
            Err(TraceError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other.map(|_| 0).map_err(|error| Refusal::Usage(error.to_string())),
        };
    }
    let events = whole(&output, |out| write(out).map_err(|error| error.to_string()))?;
    say::people(&format!("pinwheel: wrote {events} events to {}; open it at ui.perfetto.dev", output.display()));
    Ok(0)
}

/// Writes a file under a hidden name and lets it appear at the end.
pub fn whole<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T, String>) -> Result<T, Refusal> {
    let refused = |error: &io::Error| {
        let about = format!("output {}", path.display());
        Refusal::unusable(
            about,
            format!("it not writable ({error})"),
            "a file that can be made",
            "name another place with -o",
        )
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let hidden = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let mut out = BufWriter::new(File::create(&hidden).map_err(|error| refused(&error))?);
    let written = write(&mut out).and_then(|value| out.flush().map(|()| value).map_err(|error| error.to_string()));
    let kept = written
        .map_err(Refusal::Usage)
        .and_then(|value| fs::rename(&hidden, path).map(|()| value).map_err(|error| refused(&error)));
    if kept.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    kept
}
