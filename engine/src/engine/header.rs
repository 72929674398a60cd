//! The run's facts on the board: written at Init, and by the cold threads when a fact changes.

use super::orders::Orders;
use super::{Config, Input};
use crate::board::layout::{NOTES_MAX, ROLES_MAX};
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::decode::changes::DecoderChanges;
use crate::plan::Plan;
use crate::profile::{Device, Latency, Limits, NO_DEVICE, Predecoder};
use crate::silo::Common;

pub(super) fn write(board: &Board, clock: &Clock, config: &Config, common: &Common) {
    let header = board.header();
    let model = config.input.model();
    board::set(&header.started_utc_s, clock.started_utc().as_secs());
    board::set(&header.start_ticks, clock.start().0);
    board::set(&header.nanos_per_tick_q32, clock.rate().nanos_per_tick_q32());
    board::set(&header.detectors, u64::from(model.detectors));
    board::set(&header.observables, u64::from(model.observables));
    header.version.write(env!("CARGO_PKG_VERSION"));
    header.label.write(&config.label);
    header.input.write(&config.input.words());
    common.decoders.name_first(match &config.input {
        Input::Sampler { name, .. } => name,
        Input::Replay { .. } | Input::Stream { .. } | Input::Live { .. } => config.profile.input.source.model(),
    });
    write_decoders(board, &common.decoders);
    header.predecoder.write(predecoder_name(config.profile.predecoder));
    header.device.write(&device_name(&config.profile.device));
    write_limits(board, &config.profile.limits);
    board::set(&header.abstain_below_db, config.profile.abstain_below.map_or(0, u64::from));
}

/// Writes the decoders and models in force.
pub(super) fn write_decoders(board: &Board, decoders: &DecoderChanges) {
    let (header, in_force) = (board.header(), decoders.in_force());
    header.decoder.write(&in_force.name());
    let (shared, worker) = in_force.bytes();
    board::set(&header.decoder_shared_bytes, shared as u64);
    board::set(&header.decoder_worker_bytes, worker as u64);
    let (main, streams) = decoders.models();
    let named = streams.iter().map(|(stream, model)| format!(", {} for stream {stream}", model.name));
    header.model.write(&format!("{}{}", main.name, named.collect::<String>()));
    board::set(&header.model_hash, main.hash);
    for stream in 0..board.shape().streams {
        let own = streams.iter().find(|(of, _)| *of == stream);
        let hash = own.map_or(main.hash, |(_, model)| model.hash);
        board::set(&board.stream_harvest(stream as usize).model_hash, hash);
    }
    board::set(&header.decoder_epoch_requested, decoders.epoch());
}

/// Writes the names of the silos' devices.
pub(super) fn write_device(board: &Board, name: &str) {
    board.header().device.write(name);
}

pub(super) fn write_limits(board: &Board, limits: &Limits) {
    let header = board.header();
    board::set(&header.late_ns, u64::from(limits.late_us) * 1_000);
    board::set(&header.heartbeat_limit_ns, u64::from(limits.heartbeat_ms) * 1_000_000);
}

pub(super) fn write_rate(board: &Board, rate_hz: Option<f64>, origin: &str) {
    let header = board.header();
    header.rate_origin.write(origin);
    board::set(&header.rate_hz_bits, rate_hz.unwrap_or(0.0).to_bits());
}

pub(super) fn write_notes(board: &Board, notes: &[String]) {
    let header = board.header();
    for (place, note) in header.notes.iter().zip(notes) {
        place.write(note);
    }
    board::set(&header.notes_count, notes.len().min(NOTES_MAX) as u64);
}

/// A note that a cold thread writes and updates while the engine runs.
#[derive(Debug, Default)]
pub(super) struct Note {
    place: Option<usize>,
}

impl Note {
    /// Writes it after the notes of the start; if there is no room, over the last of them.
    pub(super) fn write(&mut self, board: &Board, text: &str) {
        let header = board.header();
        let count = board::get(&header.notes_count) as usize;
        let place = *self.place.get_or_insert(count.min(NOTES_MAX - 1));
        header.notes[place].write(text);
        board::set(&header.notes_count, count.max(place + 1) as u64);
    }
}

pub(super) fn write_threads(board: &Board, plan: &Plan, orders: &Orders) {
    for (index, planned) in plan.threads.iter().enumerate() {
        let block = board.thread(index);
        block.name.write(&planned.name);
        board::set(&block.planned_core, planned.core.map_or(0, |core| u64::from(core) + 1));
        board::set(&block.planned_exclusive, u64::from(planned.exclusive));
        board::set(&block.roles_count, planned.roles.len().min(ROLES_MAX) as u64);
        for (place, role) in block.roles.iter().zip(&planned.roles) {
            let identity = role.kind as u64 | u64::from(role.silo) << 8 | u64::from(role.index) << 40;
            board::set(&place.identity, identity);
        }
    }
    orders.publish(board);
    orders.publish_priorities(board);
}

fn device_name(device: &Device) -> String {
    match device {
        // Provisional; `devices` writes the actual device later.
        Device::Auto | Device::Cuda { .. } => "cuda".to_string(),
        Device::None => NO_DEVICE.to_string(),
        Device::Sim { latency: Latency::None } => "sim, no latency".to_string(),
        Device::Sim { latency: Latency::Fixed { us } } => format!("sim, {us} µs"),
        Device::Sim { latency: Latency::Uniform { min_us, max_us } } => format!("sim, {min_us} to {max_us} µs"),
        Device::Sim { latency: Latency::LogNormal { median_us, sigma } } => {
            format!("sim, lognormal {median_us} µs, sigma {sigma}")
        }
    }
}

/// The predecoder's name as profiles spell it.
fn predecoder_name(predecoder: Predecoder) -> &'static str {
    match predecoder {
        Predecoder::None => "none",
        Predecoder::Local => "local",
    }
}
