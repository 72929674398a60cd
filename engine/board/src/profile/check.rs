//! The ranges of a profile's fields.
//!
//! Pure and cold: a profile in, every violation out, each with the dotted path of its field, so
//! that a file's loader can add the line and the command line can name its option. Bounded by the
//! profile. Never corrects a value. Longer than 500 lines, because it checks every field, in the
//! schema's order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::alarms::{AlarmAction, OnAlarm};
use super::deadlines::{Deadlines, ShotOrder, StreamDeadline};
use super::placement::{OverflowStrategy, TakesPart};
use super::schema::{
    Courtesy, Decoder, DecoderKind, Decoders, Device, Faults, Graph, Input, IssueGate, KeptRuns, Latency, Limits,
    Predecoder, Priority, Profile, Rate, ReadyPolicy, Source, StartPolicy, StreamDecoder, TaskTrace, ThreadSpec,
    Threads, Window, WindowOverflow, WindowRounds,
};
use super::silos::{SILOS_MAX, Silos};
use super::weights::Weights;
use crate::roles::RoleKind;

/// A field whose value is well formed but out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: found {found}, expected {expected}; {remedy}")]
pub struct RangeError {
    /// The dotted path of the field.
    pub field: String,
    /// The value found.
    pub found: String,
    /// The range expected.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

/// Most device workers of a silo: the bits of its idle mask.
pub const WORKERS_MAX: u32 = 64;
/// Highest number of a CUDA device.
const CUDA_INDEX_MAX: u32 = 63;
/// Most decode workers of a silo.
pub const DECODERS_MAX: u32 = 64;
/// Most threads of an explicit plan.
pub const THREADS_MAX: usize = 1024;
/// Longest name of a profile, bytes: its size on the board.
pub const NAME_BYTES_MAX: usize = 64;
/// Most roles of one thread: the board has a block for each.
pub const THREAD_ROLES_MAX: usize = 64;
/// Most senders or networks that a source names.
pub(super) const ALLOW_MAX: usize = 64;
/// Most commit or buffer rounds of a window.
pub const WINDOW_ROUNDS_MAX: u32 = 10_000;
/// Largest window of the task graph.
pub const WINDOW_TASKS_MAX: u32 = 524_288;
/// Tasks that a graph admits under `Benchmark`.
pub const SLAB_TASKS: u32 = 65_536;
/// Most memory for per-stream queues of ready tasks, bytes.
pub const STREAM_QUEUES_BYTES_MAX: u64 = 1 << 30;

/// Bytes of per-stream queues of ready tasks: all tasks may belong to one stream, and an entry is
/// two words.
pub fn stream_queues_bytes(streams: u32, tasks: u32) -> u64 {
    u64::from(streams).saturating_mul(u64::from(tasks).next_power_of_two()).saturating_mul(16)
}

/// Most decode workers that `Decoders::Auto` gives a silo.
pub const DECODERS_AUTO_MAX: u32 = 8;
/// Range of the shots of which a shadow gets one.
pub const SHADOW_ONE_IN: RangeInclusive<u64> = 1..=1_000_000;
/// Shots of which a shadow gets one unless a number is named: as many as do not slow the path.
pub const SHADOW_ONE_IN_DEFAULT: u32 = 100;
/// Longest thread name, bytes: the system's limit.
pub const THREAD_NAME_BYTES_MAX: usize = 15;

/// Longest runbook of a rule, characters.
const RUNBOOK_MAX: usize = 160;

const MICROSECONDS_MAX: u64 = 60_000_000;
const LATENCY_US_MAX: f64 = 1e6;

impl Profile {
    /// Every field that is out of its range, in the schema's order; empty for a valid profile.
    pub fn validate(&self) -> Vec<RangeError> {
        let mut check = Check { errors: Vec::new() };
        check.head(self);
        let silos = if let Silos::Count(count) = self.silos { count } else { SILOS_MAX };
        check.threads(&self.threads, silos);
        check.sizes(self);
        match &self.device {
            Device::Auto => {}
            Device::None if self.faults.need_device() => {
                let remedy = "set device: Sim(latency: None), or take those faults out";
                check.refuse(
                    "device",
                    "None",
                    "a device, because faults has faults of launches or of role Device",
                    remedy,
                );
            }
            Device::None => {}
            Device::Sim { latency } => check.latency(latency),
            Device::Cuda { index, batch_shots } => check.cuda(*index, *batch_shots),
        }
        check.limits(&self.limits);
        check.input(&self.input);
        check.faults(&self.faults);
        check.priority(self.priority);
        if let Some(Courtesy { wait_ms, quiet_s }) = self.courtesy {
            check.whole("courtesy.wait_ms", wait_ms, 1..=1000, "name a part of each second, in ms");
            check.whole("courtesy.quiet_s", quiet_s, 1..=3600, "name a time in s, at most one hour");
        }
        check.window(self.window);
        if let (Some(period), Window::None) = (self.input.round_ns, self.window) {
            let remedy = "set window: Some((commit_rounds: 5, buffer_rounds: 5)), or round_ns: None";
            check.refuse(
                "input.round_ns",
                period,
                "None while window is None: a whole shot is decoded after its last round",
                remedy,
            );
        }
        let found = match (&self.decoder, self.window) {
            (_, Window::None) => None,
            (Decoder::Correlated, _) => Some("Correlated"),
            (Decoder::Lookup, _) => Some("Lookup"),
            (Decoder::Plugin { .. }, _) => Some("Plugin"),
            _ => None,
        };
        if let Some(found) = found {
            let remedy = "set window: None, or decoder: Matching";
            check.refuse("decoder", found, "Matching unless window is None: it decodes whole shots", remedy);
        }
        if let (Decoder::UnionFind, Window::Stream(_) | Window::Blocks(_)) = (&self.decoder, self.window) {
            let remedy = "set window: None or Some(..), or decoder: Matching";
            check.refuse("decoder", "UnionFind", "Matching where window is Stream or Blocks", remedy);
        }
        check.plugin("decoder", &self.decoder);
        check.streams(self);
        if self.confidence && self.window != Window::None {
            let remedy = "set window: None, or confidence: false";
            check.refuse("confidence", true, "false unless window is None: a window sees a part of a shot", remedy);
        }
        if self.confidence && self.predecoder != Predecoder::None {
            let expected = "false unless predecoder is None: what a predecoder leaves has another gap than the shot";
            check.refuse("confidence", true, expected, "set predecoder: None, or confidence: false");
        }
        if let Some(below) = self.abstain_below {
            check.whole("abstain_below", below, 1..=254, "name a gap in decibels: 10 means ten times as likely");
            if !self.confidence {
                check.refuse("abstain_below", below, "None unless confidence is true", "set confidence: true");
            }
        }
        if let Some(shadow) = &self.shadow {
            let remedy = "100 gives it one shot in a hundred";
            check.whole("shadow.one_in", shadow.one_in, SHADOW_ONE_IN, remedy);
            if shadow.decoder.kind() == DecoderKind::Plugin {
                let expected = "a built-in decoder: only decode workers start plugins again";
                check.refuse("shadow.decoder", "Plugin", expected, "name Matching, Correlated, UnionFind or Lookup");
            }
        }
        check.deadlines(self);
        let KeptRuns { kept_mb, kept_runs } = self.recorder;
        check.whole(
            "recorder.kept_mb",
            kept_mb,
            10..=1_000_000,
            "name a size in megabytes that holds at least one run",
        );
        check.whole("recorder.kept_runs", kept_runs, 1..=10_000, "name at least 1: this run is counted");
        check.alarms(self);
        check.graph(self);
        check.placement(self);
        check.errors
    }

    /// Fields that have no effect because of others, for notes at a start. They are no errors: another decoder and
    /// another strategy come live, too, and a profile in force is one that a start takes.
    pub fn without_effect(&self) -> Vec<RangeError> {
        let mut check = Check { errors: Vec::new() };
        let silos = if let Silos::Count(count) = self.silos { count } else { 1 };
        if let Some(every) = self.input.joint_every.filter(|_| self.input.streams <= silos) {
            let found = format!("{every} with streams {} and silos {silos}", self.input.streams);
            let expected = "two streams in one silo, which are measured together";
            check.refuse("input.joint_every", found, expected, "raise input.streams, or set joint_every: None");
        }
        if let Some(rescue) = self.deadlines.rescue.filter(|rescue| rescue.decoder() == Some(self.decoder.kind())) {
            let expected = "a faster decoder than that of all shots";
            let remedy = "choose another rescue decoder, or rescue: None";
            check.refuse("deadlines.rescue", format!("{rescue:?}"), expected, remedy);
        }
        if self.confidence && self.decoder.kind() == DecoderKind::Plugin {
            let expected = "a built-in decoder: a plugin tells no gap, and none of its answers abstains";
            let remedy = "choose another decoder, or set confidence: false";
            check.refuse("confidence", "true with decoder Plugin", expected, remedy);
        }
        if self.placement.overflow.strategy == OverflowStrategy::Migrate && self.placement.streams == TakesPart::Nobody
        {
            let expected = "streams that may move, because overflow.strategy is Migrate";
            check.refuse("placement.streams", "Nobody", expected, "use All, or choose another strategy");
        }
        check.errors
    }
}

struct Check {
    errors: Vec<RangeError>,
}

impl Check {
    fn refuse(&mut self, field: &str, found: impl ToString, expected: impl Into<String>, remedy: impl Into<String>) {
        self.errors.push(RangeError {
            field: field.to_owned(),
            found: found.to_string(),
            expected: expected.into(),
            remedy: remedy.into(),
        });
    }

    fn whole(&mut self, field: &str, value: impl Into<u64>, range: RangeInclusive<u64>, remedy: &str) {
        let value = value.into();
        if !range.contains(&value) {
            self.refuse(field, value, format!("{}..={}", range.start(), range.end()), remedy);
        }
    }

    /// Both ends are allowed; not-a-number is outside every range.
    fn real(&mut self, field: &str, value: f64, range: RangeInclusive<f64>, remedy: &str) {
        if !range.contains(&value) {
            self.refuse(field, value, format!("{}..={}", range.start(), range.end()), remedy);
        }
    }

    /// The lower end is 0 and not allowed.
    fn positive(&mut self, field: &str, value: f64, max: f64, remedy: &str) {
        if !(value > 0.0 && value <= max) {
            self.refuse(field, value, format!("above 0, at most {max}"), remedy);
        }
    }

    fn head(&mut self, profile: &Profile) {
        let length = profile.summary.chars().count();
        if !(1..=120).contains(&length) || profile.summary.chars().any(char::is_control) {
            let kind = if profile.summary.chars().any(char::is_control) { ", with control characters" } else { "" };
            let found = format!("{length} characters{kind}");
            self.refuse(
                "summary",
                found,
                "1..=120 printable characters",
                "describe the purpose of the profile in one line",
            );
        }
        let budgets = &profile.spin_budgets;
        let spun = "name a shorter time, in µs";
        self.whole("spin_budgets.lab_spin_us", budgets.lab_spin_us, 0..=1_000_000, spun);
        let field = "spin_budgets.shared_sleep_us";
        self.whole(field, budgets.shared_sleep_us, 1..=100_000, "name a time in this range, in µs");
        let heartbeat_us = u64::from(profile.limits.heartbeat_ms) * 1000;
        if u64::from(budgets.shared_sleep_us) >= heartbeat_us {
            let expected = format!("less than limits.heartbeat_ms, {heartbeat_us} µs");
            self.refuse(
                field,
                budgets.shared_sleep_us,
                expected,
                "name a shorter time: a sleep this long counts as a stall",
            );
        }
        if let Some(cores) = profile.max_cores {
            self.whole("max_cores", cores, 1..=1024, "use None for no limit");
        }
    }

    fn threads(&mut self, threads: &Threads, silos: u32) {
        let Threads::Explicit(specs) = threads else { return };
        if !(1..=THREADS_MAX).contains(&specs.len()) {
            let found = format!("{} threads", specs.len());
            self.refuse(
                "threads",
                found,
                format!("1..={THREADS_MAX} threads"),
                "list threads within this range, or use Auto",
            );
        }
        let mut names = BTreeSet::new();
        for (index, spec) in specs.iter().enumerate() {
            self.thread(index, spec, silos);
            if !names.insert(spec.name.as_str()) {
                let field = format!("threads[{index}].name");
                let found = format!("{:?} for two threads", spec.name);
                self.refuse(&field, found, "a different name for each thread", "rename one of the two");
            }
        }
        // `Decoders::Count` has its own range; `Auto` uses as many as are listed.
        for (silo, found) in listed_decoders(specs) {
            if found > DECODERS_MAX {
                let found = format!("{found} Decode roles in silo {silo}");
                let expected = format!("at most {DECODERS_MAX} in each silo");
                self.refuse("threads", found, expected, "list fewer, or use more silos for more of them");
            }
        }
    }

    fn thread(&mut self, index: usize, spec: &ThreadSpec, silos: u32) {
        let name = &spec.name;
        let plain = name.chars().all(|c| c.is_ascii_graphic());
        if !(1..=THREAD_NAME_BYTES_MAX).contains(&name.len()) || !plain {
            let expected = format!("1..={THREAD_NAME_BYTES_MAX} ASCII characters without spaces");
            self.refuse(&format!("threads[{index}].name"), format!("{name:?}"), expected, "shorten the name");
        }
        if !(1..=THREAD_ROLES_MAX).contains(&spec.roles.len()) {
            let found = format!("{} roles", spec.roles.len());
            let remedy = match spec.roles.len() {
                0 => "give it a role or remove the thread",
                _ => "move some of its roles to another thread",
            };
            let expected = format!("1..={THREAD_ROLES_MAX} roles");
            self.refuse(&format!("threads[{index}].roles"), found, expected, remedy);
        }
        if spec.silo >= silos {
            let expected = format!("below silos, {silos}");
            self.refuse(
                &format!("threads[{index}].silo"),
                spec.silo,
                expected,
                "name a silo that exists or raise silos",
            );
        }
    }

    fn sizes(&mut self, profile: &Profile) {
        if let Decoders::Count(count) = profile.decoders {
            self.whole("decoders", count, 1..=u64::from(DECODERS_MAX), "use Auto for as many as the cores permit");
        }
        if let Silos::Count(count) = profile.silos {
            self.whole("silos", count, 1..=u64::from(SILOS_MAX), "name at most 64 silos, or Auto (--silos auto)");
        }
        if !profile.slots.is_power_of_two() || !(8..=65536).contains(&profile.slots) {
            self.refuse("slots", profile.slots, "a power of two in 8..=65536", nearest_power(profile.slots));
        }
        let remedy = "use more silos for more workers: each silo has a 64-bit mask of idle workers";
        self.whole("workers", profile.workers, 1..=u64::from(WORKERS_MAX), remedy);
    }

    fn latency(&mut self, latency: &Latency) {
        let remedy = "name a time in µs, at most one second";
        match *latency {
            Latency::None => {}
            Latency::Fixed { us } => self.real("device.latency.us", us, 0.0..=LATENCY_US_MAX, remedy),
            Latency::Uniform { min_us, max_us } => {
                self.real("device.latency.min_us", min_us, 0.0..=LATENCY_US_MAX, remedy);
                self.real("device.latency.max_us", max_us, 0.0..=LATENCY_US_MAX, remedy);
                if min_us > max_us {
                    let expected = format!("at least min_us, {min_us}");
                    self.refuse("device.latency.max_us", max_us, expected, "swap the two");
                }
            }
            Latency::LogNormal { median_us, sigma } => {
                self.positive("device.latency.median_us", median_us, LATENCY_US_MAX, remedy);
                let remedy = "sigma has no unit: 0.4 puts the 99th percentile at 2.5 medians";
                self.real("device.latency.sigma", sigma, 0.0..=3.0, remedy);
            }
        }
    }

    fn limits(&mut self, limits: &Limits) {
        let remedy = "name a time in µs, at most one minute";
        self.whole("limits.launch_deadline_us", limits.launch_deadline_us, 1..=MICROSECONDS_MAX, remedy);
        self.whole("limits.shot_deadline_us", limits.shot_deadline_us, 1..=MICROSECONDS_MAX, remedy);
        if limits.shot_deadline_us < limits.launch_deadline_us {
            let expected = format!("at least limits.launch_deadline_us, {}", limits.launch_deadline_us);
            let remedy = "raise it: the deadline of a shot includes the deadline of its launch";
            self.refuse("limits.shot_deadline_us", limits.shot_deadline_us, expected, remedy);
        }
        self.whole("limits.late_us", limits.late_us, 1..=MICROSECONDS_MAX, remedy);
        self.whole("limits.drain_grace_s", limits.drain_grace_s, 1..=3600, "name a time in s, at most one hour");
        self.whole("limits.heartbeat_ms", limits.heartbeat_ms, 1..=10_000, "10 to 100 ms fits most machines");
    }

    fn input(&mut self, input: &Input) {
        let model = input.source.model();
        if model.trim().is_empty() {
            let remedy = "use \"surface_d5\" for the bundled model, \"surface_d5@r50\" for 50 rounds of it";
            let is_cudaq = matches!(input.source, Source::Cudaq { .. });
            let field = if is_cudaq { "input.source.config" } else { "input.source.model" };
            self.refuse(field, format!("{model:?}"), "a model's name or path", remedy);
        }
        self.source(&input.source);
        if input.m2d.as_ref().is_some_and(|path| path.trim().is_empty()) {
            self.refuse("input.m2d", "no path", "a map's path", "use None if shots are detection events");
        }
        if let Some(period) = input.round_ns {
            self.whole(
                "input.round_ns",
                period,
                100..=1_000_000_000,
                "about 1000 ns is usual for superconducting qubits",
            );
        }
        if let Some(every) = input.joint_every {
            self.whole(
                "input.joint_every",
                every,
                10..=1_000_000,
                "name an interval in this range: each readout stops two streams for some microseconds",
            );
        }
        self.whole("input.streams", input.streams, 1..=1024, "name one stream for each logical qubit");
        if let Rate::Hz(hz) = input.rate {
            self.positive("input.rate", hz, 1e9, "use Max for the highest possible rate");
        }
        self.weights(input);
    }

    fn plugin(&mut self, field: &str, decoder: &Decoder) {
        let Decoder::Plugin { path, limit_us, .. } = decoder else { return };
        if path.is_empty() || path.contains('\0') {
            let field = format!("{field}.path");
            self.refuse(&field, format!("{path:?}"), "the path of a shared library", "name the plugin's file");
        }
        if let Some(limit_us) = *limit_us {
            let field = format!("{field}.limit_us");
            self.whole(&field, limit_us, 1..=10_000_000, "name a time in µs, well above the plugin's slowest shot");
        }
    }

    fn streams(&mut self, profile: &Profile) {
        let mut named = BTreeSet::new();
        for (at, StreamDecoder { stream, decoder }) in profile.streams.iter().enumerate() {
            let stream = *stream;
            let field = format!("streams[{at}].stream");
            let last = u64::from(profile.input.streams).saturating_sub(1);
            self.whole(&field, stream, 0..=last, "name a stream below input.streams");
            if !named.insert(stream) {
                self.refuse(&field, format!("{stream} again"), "each stream once", "remove one of the two");
            }
            self.plugin(&format!("streams[{at}].decoder"), decoder);
            if profile.window != Window::None && *decoder != profile.decoder {
                let expected = format!("{:?} as for the others, unless window is None", profile.decoder);
                let remedy = "set window: None, or remove the stream from the list";
                self.refuse(&format!("streams[{at}].decoder"), format!("{decoder:?}"), expected, remedy);
            }
        }
    }

    fn deadlines(&mut self, profile: &Profile) {
        let Deadlines { order, rescue, answer_us, streams } = &profile.deadlines;
        if *order == ShotOrder::Deadline && profile.window != Window::None {
            let expected = "Fifo unless window is None: only whole shots are decoded by their deadlines";
            self.refuse("deadlines.order", "Deadline", expected, "set order: Fifo, or window: None");
        }
        if let (Some(rescue), ShotOrder::Fifo) = (rescue, order) {
            let expected = "None with order: Fifo, which decodes each shot by its decoder";
            self.refuse("deadlines.rescue", format!("{rescue:?}"), expected, "set order: Deadline, or rescue: None");
        }
        let times = 1..=u64::from(profile.limits.shot_deadline_us);
        let remedy = "name a time in µs, at most limits.shot_deadline_us";
        if let Some(answer_us) = *answer_us {
            self.whole("deadlines.answer_us", answer_us, times.clone(), remedy);
        }
        let mut named = BTreeSet::new();
        for (at, &StreamDeadline { stream, answer_us }) in streams.iter().enumerate() {
            let field = format!("deadlines.streams[{at}].stream");
            let last = u64::from(profile.input.streams).saturating_sub(1);
            self.whole(&field, stream, 0..=last, "name a stream below input.streams");
            if !named.insert(stream) {
                self.refuse(&field, format!("{stream} again"), "each stream once", "remove one of the two");
            }
            self.whole(&format!("deadlines.streams[{at}].answer_us"), answer_us, times.clone(), remedy);
        }
    }

    fn weights(&mut self, input: &Input) {
        let field = "input.weights";
        match &input.weights {
            Weights::Even => return,
            Weights::Zipf(exponent) => {
                self.positive(field, *exponent, 4.0, "1.1 is usual; equal rates are the default, Even")
            }
            Weights::Each(weights) => {
                if weights.len() != input.streams as usize {
                    let (found, expected) =
                        (format!("{} weights", weights.len()), format!("one each, {}", input.streams));
                    self.refuse(field, found, expected, "name a weight for each of input.streams, or use Zipf(1.1)");
                }
                let wrong = weights.iter().filter(|weight| !(**weight > 0.0 && **weight <= 1e6));
                let remedy = "each stream needs shots; to drop a stream, lower input.streams";
                wrong.for_each(|weight| self.refuse(field, weight, "above 0, at most 1e6", remedy));
            }
        }
        if input.joint_every.is_some() {
            let expected = "Even while input.joint_every is set: a pair is read after the same number of shots of both";
            self.refuse(field, "streams at unequal rates", expected, "set joint_every: None, or weights: Even");
        }
    }

    /// Whether an address belongs to this machine is checked when it is opened.
    fn source(&mut self, source: &Source) {
        match source {
            Source::Sampler { .. } => {}
            Source::Udp { address, allow, .. } => self.internet(address, allow),
            Source::Cudaq { address, allow, slot_size, .. } => {
                self.internet(address, allow);
                if !(57..=65_507).contains(slot_size) {
                    let remedy = "take 256, as CUDA-Q's ends do, unless a call has more than 1600 measurements";
                    self.refuse("input.source.slot_size", slot_size.to_string(), "57..=65507", remedy);
                }
            }
            Source::Unix { path, .. } => {
                // The size of a socket's address, less the suffix of its temporary name.
                if !(1..=96).contains(&path.len()) {
                    let remedy = "name a shorter path, such as one below /run/user or /tmp";
                    self.refuse("input.source.path", format!("{} bytes", path.len()), "1..=96 bytes", remedy);
                }
            }
            Source::Shm { name, group, .. } => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                if !(1..=32).contains(&name.len()) || !name.chars().all(plain) {
                    let expected = "1..=32 letters, digits, - and _";
                    self.refuse("input.source.name", format!("{name:?}"), expected, "name it like fpga0");
                }
                if group.as_ref().is_some_and(|group| group.is_empty()) {
                    self.refuse("input.source.group", "no name", "a group's name", "use None for this user only");
                }
            }
        }
    }

    /// Address and senders of a source on a network.
    fn internet(&mut self, address: &str, allow: &[String]) {
        if address.parse::<std::net::SocketAddr>().is_err() {
            let remedy = "write it like 127.0.0.1:7000 or [::1]:7000";
            self.refuse("input.source.address", format!("{address:?}"), "an address and a port", remedy);
        }
        if allow.len() > ALLOW_MAX {
            let (found, expected) = (format!("{} entries", allow.len()), format!("at most {ALLOW_MAX}"));
            self.refuse("input.source.allow", found, expected, "name networks, like 10.0.0.0/24");
        }
        for entry in allow.iter().filter(|entry| !is_network(entry)) {
            let remedy = "write it like 10.0.0.7 or 10.0.0.0/24";
            self.refuse("input.source.allow", format!("{entry:?}"), "an address or a network", remedy);
        }
    }

    fn priority(&mut self, priority: Priority) {
        match priority {
            Priority::Normal => {}
            Priority::Nice(nice) if (-20..=19).contains(&nice) && nice != 0 => {}
            Priority::Nice(nice) => self.refuse("priority", nice, "-20..=-1 or 1..=19", "use Normal for 0"),
            Priority::Fifo(level) => {
                let remedy = "name a priority in this range: threads of the kernel need the higher ones";
                self.whole("priority", level, 1..=50, remedy);
            }
        }
    }

    fn faults(&mut self, faults: &Faults) {
        let per_launch = [
            ("faults.not_started", faults.not_started),
            ("faults.unknown", faults.unknown),
            ("faults.never_ready", faults.never_ready),
            ("faults.late_ready", faults.late_ready),
            ("faults.inside_launch", faults.inside_launch),
        ];
        let others = [("faults.decoder_panic", faults.decoder_panic), ("faults.bad_address", faults.bad_address)];
        for (field, value) in per_launch.iter().chain(&others) {
            self.real(field, *value, 0.0..=1.0, "name a probability");
        }
        let sum: f64 = per_launch.iter().map(|(_, value)| value).sum();
        // Five decimal fractions meant to sum to 1 may miss it by a few units in the last place.
        if sum > 1.0 + 1e-9 {
            let expected = "a sum of the five per-launch probabilities of at most 1";
            self.refuse(
                "faults",
                format!("a sum of {sum}"),
                expected,
                "lower some of them: each launch has one outcome",
            );
        }
        self.whole(
            "faults.late_by_us",
            faults.late_by_us,
            0..=MICROSECONDS_MAX,
            "name a time in µs, at most one minute",
        );
        if faults.lose_device_every == Some(0) {
            self.refuse("faults.lose_device_every", 0, "1 or more launches", "use None for never");
        }
        self.whole(
            "faults.recover_after_ms",
            faults.recover_after_ms,
            0..=60_000,
            "name a time in ms, at most one minute",
        );
    }

    fn graph(&mut self, profile: &Profile) {
        let graph = &profile.graph;
        let decoders = match (profile.decoders, &profile.threads) {
            (Decoders::Count(count), _) => count,
            (Decoders::Auto, Threads::Auto | Threads::Balanced) => DECODERS_AUTO_MAX,
            (Decoders::Auto, Threads::Explicit(specs)) => listed_decoders(specs).into_values().max().unwrap_or(0),
        };
        // Each job buffer may be a task, and each task needs room in the queue.
        let jobs = u64::from(profile.slots) + u64::from(profile.workers) + u64::from(decoders);
        if !(jobs..=u64::from(WINDOW_TASKS_MAX)).contains(&graph.window_tasks.into()) {
            let expected = format!("slots + workers + decoders, {jobs}, to {WINDOW_TASKS_MAX}");
            let remedy = "raise it, or lower slots: each open shot can be a task";
            self.refuse("graph.window_tasks", graph.window_tasks, expected, remedy);
        }
        self.whole("graph.batch_tasks", graph.batch_tasks, 1..=4_096, "1 resolves each completion at once");
        let kept = "65536 is usual; older events are dropped";
        self.whole("graph.trace_events", graph.trace_events, 1..=1 << 24, kept);
        if let TaskTrace::Cycles { streams, .. } = &graph.trace {
            let most = u64::from(profile.input.streams).saturating_sub(1);
            for stream in streams {
                self.whole("graph.trace", *stream, 0..=most, "name streams from 0 on; an empty list selects all");
            }
        }
        if let IssueGate::Global(permits) | IssueGate::PerStream(permits) | IssueGate::PerPool(permits) = graph.issue {
            self.whole("graph.issue", permits, 1..=1 << 20, "say Open for no limit");
        }
        self.stream_queues(graph, profile.input.streams);
        match graph.start {
            StartPolicy::Immediate => {}
            StartPolicy::Threshold(tasks) => {
                let remedy = "name at most as many as there are slots: no more shots can wait";
                self.whole("graph.start", tasks, 1..=u64::from(profile.slots), remedy);
            }
            StartPolicy::AfterOrchestration => {
                let remedy = "use one of these: a stream of shots has no end to wait for";
                self.refuse("graph.start", "AfterOrchestration", "Immediate or Threshold", remedy);
            }
        }
    }

    fn stream_queues(&mut self, graph: &Graph, streams: u32) {
        let is_benchmark = graph.overflow == WindowOverflow::Benchmark;
        let tasks = if is_benchmark { SLAB_TASKS.max(graph.window_tasks) } else { graph.window_tasks };
        let bytes = stream_queues_bytes(streams, tasks);
        for (field, has_queues) in [
            ("graph.ready", graph.ready == ReadyPolicy::FifoPerStream),
            ("graph.issue", matches!(graph.issue, IssueGate::PerStream(_))),
        ] {
            if has_queues && bytes > STREAM_QUEUES_BYTES_MAX {
                let found = format!("a queue for each of {streams} streams, {bytes} bytes");
                let expected = format!("at most {STREAM_QUEUES_BYTES_MAX} bytes of queues");
                self.refuse(
                    field,
                    found,
                    expected,
                    "lower window_tasks, or use a policy with one queue for all streams",
                );
            }
        }
    }

    fn placement(&mut self, profile: &Profile) {
        let rules = &profile.placement;
        self.whole("placement.refresh_ms", rules.refresh_ms, 10..=60_000, "name a time in ms; 1000 is usual");
        if let TakesPart::Only(streams) = &rules.streams {
            let mut named = BTreeSet::new();
            for stream in streams {
                if *stream >= profile.input.streams || !named.insert(stream) {
                    let expected = format!("each stream below input.streams, {}, once", profile.input.streams);
                    self.refuse("placement.streams", stream, expected, "use All for every stream");
                }
            }
        }
        let wait = "name the longest useful wait in ms; 100 is usual";
        self.whole("placement.overflow.deadline_ms", rules.overflow.deadline_ms, 1..=60_000, wait);
        let keep = "name how many shots may wait at the feed; 64 is usual";
        self.whole("placement.overflow.keep_shots", rules.overflow.keep_shots, 1..=65_536, keep);
    }

    /// Whether the device exists is checked at the start.
    fn cuda(&mut self, index: Option<u32>, batch_shots: u32) {
        let remedy = "name a number that nvidia-smi lists, or None";
        self.whole("device.index", index.unwrap_or(0), 0..=u64::from(CUDA_INDEX_MAX), remedy);
        let remedy = "name the shots of one launch: 1 for the lowest latency, 4 or 16 for a higher rate";
        self.whole("device.batch_shots", batch_shots, 1..=u64::from(WORKERS_MAX), remedy);
    }

    /// Whether the model allows the window is checked once the model is loaded.
    fn window(&mut self, window: Window) {
        if let Window::Blocks(rounds) = window {
            let remedy = "name several times the code's distance, or use None to decode whole shots";
            self.whole("window", rounds, 1..=u64::from(WINDOW_ROUNDS_MAX), remedy);
        }
        let Some(WindowRounds { commit_rounds, buffer_rounds }) = window.rounds() else { return };
        let remedy = "name as many rounds as the code's distance, or use None to decode whole shots";
        self.whole("window.commit_rounds", commit_rounds, 1..=u64::from(WINDOW_ROUNDS_MAX), remedy);
        self.whole("window.buffer_rounds", buffer_rounds, 1..=u64::from(WINDOW_ROUNDS_MAX), remedy);
    }
}

impl Check {
    fn alarms(&mut self, profile: &Profile) {
        let mut named = BTreeSet::new();
        for (index, rule) in profile.alarms.iter().enumerate() {
            let field = |part: &str| format!("alarms[{index}].{part}");
            if !named.insert(rule.id) {
                let found = format!("{:?} twice", rule.id);
                self.refuse(&field("id"), found, "each rule once", "remove one of the two");
            }
            let remedy = format!("the unit is: {}", rule.id.unit());
            self.real(&field("limit"), rule.limit, 0.0..=1e9, &remedy);
            self.real(
                &field("hysteresis"),
                rule.hysteresis,
                0.0..=1.0,
                "name the share of the limit at which the alarm ends",
            );
            let length = rule.runbook.chars().count();
            if length > RUNBOOK_MAX || rule.runbook.chars().any(char::is_control) {
                let expected = format!("at most {RUNBOOK_MAX} printable characters");
                self.refuse(
                    &field("runbook"),
                    format!("{length} characters"),
                    expected,
                    "write one line of instructions for the operator",
                );
            }
            let action = field("action");
            match &rule.action {
                AlarmAction::SwitchProfile(name) if name.trim().is_empty() => {
                    self.refuse(&action, "no name", "a profile's name", "write SwitchProfile(\"shared\")");
                }
                AlarmAction::SwitchModel(file) if file.trim().is_empty() => {
                    self.refuse(&action, "no file", "a model's file", "write SwitchModel(\"fitted.dem\")");
                }
                AlarmAction::SwitchModel(_) if profile.window != Window::None => {
                    let expected = "no SwitchModel unless window is None: windows keep their model";
                    self.refuse(&action, "SwitchModel", expected, "set window: None, or another action");
                }
                AlarmAction::SwitchModel(_) if profile.predecoder != Predecoder::None => {
                    let expected = "no SwitchModel unless predecoder is None: it keeps the model of the start";
                    self.refuse(&action, "SwitchModel", expected, "set predecoder: None, or another action");
                }
                _ => {}
            }
        }
        if let OnAlarm::Exec(path) = &profile.on_alarm
            && !path.starts_with('/')
        {
            let remedy = "name the program with its absolute path: the engine has no shell";
            self.refuse("on_alarm", format!("{path:?}"), "an absolute path", remedy);
        }
    }
}

/// Decode workers that the listed threads give each silo.
fn listed_decoders(specs: &[ThreadSpec]) -> BTreeMap<u32, u32> {
    let mut decoders = BTreeMap::new();
    for spec in specs {
        for _ in spec.roles.iter().filter(|role| **role == RoleKind::Decode) {
            *decoders.entry(spec.silo).or_default() += 1;
        }
    }
    decoders
}

fn is_network(text: &str) -> bool {
    let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
    base.parse::<std::net::IpAddr>().is_ok_and(|base| {
        let most = if base.is_ipv4() { 32 } else { 128 };
        // The prefix of an IPv4 address that is written as an IPv6 one has at least the bits before it.
        let least = if base.is_ipv6() && base.to_canonical().is_ipv4() { 96 } else { 0 };
        bits.is_none_or(|bits| bits.parse::<u32>().is_ok_and(|bits| (least..=most).contains(&bits)))
    })
}

fn nearest_power(slots: u32) -> String {
    let slots = slots.clamp(8, 65536);
    let (above, below) = (slots.next_power_of_two(), 1 << slots.ilog2());
    let nearest = if slots - below < above - slots { below } else { above };
    format!("use {nearest}, the nearest permitted number")
}
