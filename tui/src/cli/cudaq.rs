//! CUDA-Q's decoding server, as its scripts see it: the configuration of the decoders, the line that
//! tells their ports, and the counters at the end.
//!
//! Cold. Reads a file before anything starts; formats lines of the board afterwards.

mod config;

use super::refusal::Refusal;
use super::run::args::RunArgs;
use super::shots::read_text;
use pinwheel_engine::board::snapshot::{Snapshot, SourceDecoder};
use pinwheel_engine::code::{Measurements, Model};
use pinwheel_engine::profile::{Decoder, Device, Profile, Source, Window};
use std::path::{Path, PathBuf};

/// Address where none is given: a port of its own for each decoder, as NVIDIA's server has.
const ADDRESS: &str = "127.0.0.1:0";

/// The decoders of a configuration.
#[derive(Debug, PartialEq)]
pub struct Decoders {
    pub model: Model,
    /// From measurements to detectors.
    pub map: Measurements,
    /// Their numbers, in the order of the streams.
    pub numbers: Vec<i64>,
    /// What decodes.
    pub decoder: Decoder,
    /// The windows of a sliding window decoder.
    pub window: Window,
}

pub fn read(path: &Path) -> Result<Decoders, Refusal> {
    let about = format!("--cudaq-config {}", path.display());
    let text = read_text(&about, path, "a readable configuration of decoders")?;
    config::parse(&text).map_err(|said| Refusal::Content { about, said })
}

/// Reads the configuration that the options or the profile name, if any, and applies it to the
/// profile, which the options then change further.
pub fn apply(args: &RunArgs, profile: &mut Profile) -> Result<Option<Decoders>, Refusal> {
    let Some(path) = path(args, profile) else { return Ok(None) };
    let decoders = read(&path)?;
    profile.input.streams = u32::try_from(decoders.numbers.len()).unwrap_or(u32::MAX);
    profile.input.m2d = None;
    (profile.decoder, profile.window) = (decoders.decoder.clone(), decoders.window);
    if args.cudaq_config.is_some() && matches!(profile.device, Device::Sim { .. }) {
        // Clients wait for their decoders, not for a device that is not there.
        profile.device = profile.device_without_gpu();
    }
    let config = path.display().to_string();
    match &mut profile.input.source {
        Source::Cudaq { config: model, .. } => *model = config,
        source => {
            let (address, slot_size) = (ADDRESS.to_owned(), pinwheel_engine::feed::cudaq::frame::SLOT_BYTES);
            *source = Source::Cudaq { address, allow: Vec::new(), config, slot_size };
        }
    }
    Ok(Some(decoders))
}

/// A profile's source has a configuration unless its name is that of a model.
fn path(args: &RunArgs, profile: &Profile) -> Option<PathBuf> {
    let is_replaced = args.dem.is_some() || args.input.is_some() || args.shots.is_some();
    let of_profile = || match &profile.input.source {
        Source::Cudaq { config, .. } if !is_replaced => Some(PathBuf::from(config)),
        _ => None,
    };
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    args.cudaq_config.clone().or_else(|| of_profile().filter(is_yaml))
}

fn decoders(snapshot: &Snapshot) -> Vec<SourceDecoder> {
    snapshot.sources.iter().flat_map(|source| &source.streams).filter_map(|stream| stream.decoder).collect()
}

/// The line that tells that the decoders accept calls, and where; `None`: they do not yet.
pub fn ready_line(snapshot: &Snapshot) -> Option<String> {
    let decoders = decoders(snapshot);
    let mut line = format!("QEC_DECODING_SERVER_READY port={} transport=udp", decoders.first()?.port);
    line.extend(decoders.iter().map(|decoder| format!(" ring{}={}", decoder.number, decoder.port)));
    Some(line)
}

/// The counters at the end, a line each.
pub fn counters(snapshot: &Snapshot) -> String {
    let decoders = decoders(snapshot);
    let calls = |decoder: &SourceDecoder| decoder.enqueues + decoder.gets + decoder.resets;
    let line = |decoder: &SourceDecoder| {
        format!("QEC_DECODING_SERVER_RING decoder={} dispatched={}\n", decoder.number, calls(decoder))
    };
    let total: u64 = decoders.iter().map(calls).sum();
    let most = snapshot.sources.first().map_or(0, |source| source.decoding_max);
    let mut lines: String = decoders.iter().map(line).collect();
    lines += &format!("QEC_DECODING_SERVER_DISPATCHED count={total}\n");
    lines += &format!("QEC_DECODING_SERVER_MAX_CONCURRENT_DECODERS count={most}\n");
    lines
}
