//! `pinwheel ctl`: sends a command to a running engine of the same user, and prints the
//! acknowledgement.
//!
//! Runs on the main thread and sends one request. Exit status 0: done and acknowledged by the
//! engine's threads; 1: done, but not acknowledged in time; 2: refused, in one sentence. Waits for
//! one reply; a change of input also waits for the next run, at most [`DRAIN_LIMIT`] and
//! [`BEGIN_LIMIT`].

use super::engines::{self, RunningEngine};
use super::refusal::Refusal;
use super::say::{self, written};
use super::values::{ShadowWanted, decoder, duration, rate_or_max, shadow_wanted};
use super::{hosts, pause};
use clap::{Args as ClapArgs, Subcommand};
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::{self, OwnerState, Phase};
use pinwheel_engine::code::Format;
use pinwheel_engine::engine::{Command, Done, InputSpec, SiloCommand};
use pinwheel_engine::profile::{Decoder, SHADOW_ONE_IN_DEFAULT};
use pinwheel_report::control;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Interval between two reads of a board.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait for the end of the previous run: a profile's longest drain time with a margin.
const DRAIN_LIMIT: Duration = Duration::from_secs(3_700);
/// Longest wait for the next run to appear, and again for it to be live.
const BEGIN_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, ClapArgs)]
pub struct CtlArgs {
    #[command(subcommand)]
    pub verb: Verb,
    /// The engine's process, or its run: a name or a directory [default: the only running engine]
    #[arg(long, value_name = "PID|RUN", global = true)]
    pub to: Option<String>,
    /// Another host, by the engine that shares streams with it: see pinwheel hosts
    #[arg(long, value_name = "NAME", global = true)]
    pub host: Option<String>,
    /// The reason for the command, kept in the run's events
    #[arg(long, value_name = "TEXT", default_value = "", global = true, hide_default_value = true)]
    pub why: String,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print the engine's state
    Status,
    /// Switch the profile: applies the fields that can change live
    Profile {
        /// Name of a profile that the engine knows, or a path that ends in .ron
        #[arg(value_name = "NAME")]
        profile: String,
        /// Return to the current profile after this time: 20m, 90s, 1h
        #[arg(long = "for", value_name = "D", value_parser = duration, allow_hyphen_values = true)]
        lent: Option<Duration>,
    },
    /// Hold the feed: shots in flight finish, no more are accepted
    Pause,
    /// Resume the feed
    Resume,
    /// Change the rate, until a profile changes it again
    Rate {
        /// Total shots per second of all streams, or max
        #[arg(value_name = "HZ|max", value_parser = rate_or_max, allow_hyphen_values = true)]
        hz: f64,
    },
    /// Change the decoder, until a profile with another decoder: each decode worker changes between two
    /// shots. A decoder that cannot decode the model is refused, and the one before stays
    Decoder {
        /// The decoder
        #[arg(value_name = "matching|correlated|union-find|lookup|plugin:PATH", value_parser = decoder)]
        decoder: Decoder,
        /// Only for this stream [default: all streams]
        #[arg(long, value_name = "N")]
        stream: Option<u32>,
    },
    /// Decode by another error model of the same widths: it is checked and compiled first, then each
    /// decode worker changes between two shots. A model that cannot be used is refused, and the one
    /// before stays
    Model {
        /// Detector error model: a file, or a bundled one by name
        #[arg(value_name = "FILE", required_unless_present = "undo", conflicts_with = "undo")]
        file: Option<String>,
        /// Only for this stream [default: all streams]
        #[arg(long, value_name = "N", conflicts_with = "undo")]
        stream: Option<u32>,
        /// Take the last change of models back
        #[arg(long)]
        undo: bool,
    },
    /// Give some of the shots to a second decoder too, on a thread that no shot waits for, and compare its
    /// answers: `ctl shadow union-find`; off ends it. Counts begin anew
    Shadow {
        /// The second decoder, or off
        #[arg(value_name = "matching|correlated|union-find|lookup|off", value_parser = shadow_wanted)]
        wanted: ShadowWanted,
        /// It gets one shot in N [default: 100]
        #[arg(long, value_name = "N")]
        one_in: Option<u32>,
        /// Its error model: a file, or a bundled one by name [default: that of each shot]
        #[arg(long, value_name = "F")]
        model: Option<String>,
    },
    /// Stop the feed, let accepted shots finish, then end
    Drain,
    /// End now: shots in flight are answered with an error
    Stop,
    /// Acknowledge an alarm [default: all active alarms]
    Ack {
        /// Number of the alarm, as status lists it
        #[arg(value_name = "ID", default_value_t = 0, hide_default_value = true)]
        number: u64,
    },
    /// Change the input: the engine drains, the run ends with its report, and the same process
    /// starts a run on the new input. An unusable input is refused before the drain; the command
    /// returns when the new run is live
    Input {
        /// sampler, a file of shots, udp:ADDRESS:PORT, cudaq:ADDRESS:PORT, unix:PATH or shm:NAME
        #[arg(value_name = "FROM")]
        from: String,
        /// Detector error model: a file, or a bundled one by name [default: as before]
        #[arg(long, value_name = "F")]
        dem: Option<String>,
        /// True observables of the shots
        #[arg(long, value_name = "F")]
        observables: Option<String>,
        /// Format of shots and observables: b8, 01 or dets [default: as before]
        #[arg(long, value_name = "b8|01|dets")]
        format: Option<Format>,
    },
    /// Drain, kill or restart a silo: `ctl silo kill 1`
    Silo {
        /// drain: moves its streams to other silos; kill: stops it at once; rejoin: restarts it
        #[arg(value_name = "drain|kill|rejoin", value_parser = silo_command)]
        command: SiloCommand,
        /// Number of the silo
        #[arg(value_name = "SILO")]
        silo: u32,
    },
    /// Move a stream to another silo
    Move {
        /// Number of the stream
        #[arg(value_name = "STREAM")]
        stream: u32,
        /// Number of the silo
        #[arg(value_name = "SILO")]
        silo: u32,
    },
    /// Add a note to the run's events
    Note {
        /// Text of the note
        #[arg(value_name = "TEXT", required = true)]
        text: Vec<String>,
    },
    /// Provoke a stall in the running engine, to check its verdict; only for profiles that spin as
    /// Lab or Shared
    Drill {
        /// long-handler, sleep, page-faults, role-panic (ends the run), device-hang, slow-harvest
        /// or claims-work
        #[arg(value_name = "NAME")]
        drill: String,
        /// Duration [default: the drill's own]: 200ms, 2s
        #[arg(long = "for", value_name = "D", value_parser = duration, allow_hyphen_values = true)]
        span: Option<Duration>,
    },
}

/// Parses the name of a silo command.
fn silo_command(text: &str) -> Result<SiloCommand, String> {
    let found = SiloCommand::ALL.into_iter().find(|command| command.name() == text);
    found.ok_or_else(|| "expected drain, kill or rejoin".to_owned())
}

pub fn ctl(args: &CtlArgs) -> Result<u8, Refusal> {
    let command = control::rooted(command_of(&args.verb)?)?;
    let print = |done: &Done, key: &str, who: Value| {
        let mut value = serde_json::to_value(done).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.insert(key.to_owned(), who);
        }
        written(say::json(&mut io::stdout().lock(), &value), u8::from(!done.is_acknowledged()))
    };
    if let Some(host) = &args.host {
        let done = hosts::execute_at(host, args.to.as_deref(), command, &args.why)?;
        return Ok(print(&done, "host", json!(host)));
    }
    let found = engines::find(args.to.as_deref())?;
    let done = found.control_socket().execute(command, &args.why)?;
    let status = print(&done, "pid", json!(found.pid));
    if matches!(done, Done::Input { .. }) { see_next(&found).map(|next| next.max(status)) } else { Ok(status) }
}

/// Waits until the run that follows `before` in its process is live, and prints it.
fn see_next(before: &RunningEngine) -> Result<u8, Refusal> {
    let about = format!("engine of process {}", before.pid);
    let not_begun = |found: String| {
        let remedy = "its console, or its standard error, says why";
        Refusal::unusable(&about, found, "a run on another input", remedy)
    };
    let gone = || not_begun("no process: it has ended".to_owned());
    let is_there = || engines::is_there(before.pid);
    if !wait(DRAIN_LIMIT, || before.follow.owner_state() == OwnerState::Dead || !is_there()) {
        return Err(not_begun(format!("the engine still draining after {} s", DRAIN_LIMIT.as_secs())));
    }
    let mut next = None;
    wait(BEGIN_LIMIT, || {
        next = engines::after(before.pid, &before.follow);
        next.is_some() || !is_there()
    });
    let mut next = next.ok_or_else(|| {
        if is_there() { not_begun(format!("no run within {} s", BEGIN_LIMIT.as_secs())) } else { gone() }
    })?;
    let mut phase = phase_of(&mut next.follow);
    wait(BEGIN_LIMIT, || {
        phase = phase_of(&mut next.follow);
        phase >= Phase::Live || next.follow.owner_state() == OwnerState::Dead
    });
    // The run directory may have been published only after the run was found.
    let next = engines::find(Some(&before.pid.to_string())).unwrap_or(next);
    let run = next.run_dir.as_deref().and_then(Path::file_name).map(|name| name.display().to_string());
    let value = json!({
        "action": "run", "run": run, "run_dir": next.run_dir.map(|dir| dir.display().to_string()), "pid": next.pid,
        "input": next.follow.board().header().input.read(), "phase": phase.name(),
    });
    Ok(written(say::json(&mut io::stdout().lock(), &value), u8::from(phase != Phase::Live)))
}

fn phase_of(follow: &mut Follow) -> Phase {
    follow.refresh();
    Phase::from_code(board::get(&follow.board().header().phase))
}

/// Polls until a condition holds; returns whether it did within `limit`.
fn wait(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..limit.as_millis() / POLL_INTERVAL.as_millis() {
        if is_so() {
            return true;
        }
        pause(POLL_INTERVAL);
    }
    is_so()
}

/// A time in whole `unit`s; refuses a fraction.
fn whole(span: Duration, unit: Duration, expected: &str) -> Result<u64, Refusal> {
    let units = span.as_nanos() / unit.as_nanos();
    let is_whole = units * unit.as_nanos() == span.as_nanos();
    u64::try_from(units)
        .ok()
        .filter(|units| is_whole && *units > 0)
        .ok_or_else(|| Refusal::unusable("--for", format!("{span:?}"), expected, "name another time"))
}

fn command_of(verb: &Verb) -> Result<Command, Refusal> {
    Ok(match verb {
        Verb::Status => Command::Status,
        Verb::Profile { profile, lent } => {
            let for_s =
                lent.map(|lent| whole(lent, Duration::from_secs(1), "1 s or more, in whole seconds")).transpose()?;
            Command::Profile { name: profile.clone(), text: None, for_s }
        }
        Verb::Pause => Command::Pause,
        Verb::Resume => Command::Resume,
        Verb::Rate { hz } => Command::Rate { hz: Some(*hz).filter(|hz| hz.is_finite()) },
        Verb::Decoder { decoder, stream } => Command::Decoder { decoder: decoder.text(), stream: *stream },
        Verb::Model { file, stream, .. } => Command::Model { file: file.clone(), stream: *stream },
        Verb::Shadow { wanted: ShadowWanted::By(decoder), one_in, model } => Command::Shadow {
            decoder: decoder.text(),
            one_in: one_in.unwrap_or(SHADOW_ONE_IN_DEFAULT),
            model: model.clone(),
        },
        Verb::Shadow { wanted: ShadowWanted::Off, one_in: None, model: None } => Command::ShadowOff,
        Verb::Shadow { wanted: ShadowWanted::Off, .. } => {
            let found = "off with --one-in or --model";
            return Err(Refusal::unusable("ctl shadow", found, "off alone", "leave the options out"));
        }
        Verb::Drain => Command::Drain,
        Verb::Stop => Command::Stop,
        Verb::Ack { number } => Command::Acknowledge { number: *number },
        Verb::Input { from, dem, observables, format } => {
            let format = format.map(|format| format.name().to_owned());
            let (dem, observables) = (dem.clone(), observables.clone());
            Command::Input(InputSpec { from: from.clone(), dem, observables, format })
        }
        Verb::Silo { command, silo } => Command::Silo { silo: *silo, command: *command },
        Verb::Move { stream, silo } => Command::Move { stream: *stream, to: *silo },
        Verb::Note { text } => Command::Note { text: text.join(" ") },
        Verb::Drill { drill, span } => {
            let milli = Duration::from_millis(1);
            let for_ms = span.map(|span| whole(span, milli, "1 ms or more, in whole milliseconds")).transpose()?;
            Command::Drill { name: drill.clone(), for_ms }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Command, CtlArgs, InputSpec, SiloCommand, Verb, command_of, control};
    use clap::{FromArgMatches, Subcommand};

    fn parsed(words: &str) -> Result<Command, String> {
        let command = Verb::augment_subcommands(clap::Command::new("ctl"));
        let matches = command.try_get_matches_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        let verb = Verb::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        control::rooted(command_of(&verb).map_err(|error| error.to_string())?).map_err(|error| error.to_string())
    }

    #[test]
    fn every_verb_is_a_request() {
        let lent = Command::Profile { name: "shared".to_owned(), text: None, for_s: Some(1_200) };
        assert_eq!(parsed("ctl profile shared --for 20m"), Ok(lent));
        assert_eq!(parsed("ctl rate 500"), Ok(Command::Rate { hz: Some(500.0) }));
        assert_eq!(parsed("ctl rate max"), Ok(Command::Rate { hz: None }));
        let decoder = |stream| Ok(Command::Decoder { decoder: "union-find".to_owned(), stream });
        assert_eq!(parsed("ctl decoder union-find"), decoder(None));
        assert_eq!(parsed("ctl decoder union-find --stream 3"), decoder(Some(3)));
        let model = |file: Option<&str>, stream| Ok(Command::Model { file: file.map(str::to_owned), stream });
        assert_eq!(parsed("ctl model surface_d5 --stream 2"), model(Some("surface_d5"), Some(2)));
        assert_eq!(parsed("ctl model --undo"), model(None, None));
        let shadow = |decoder: &str, one_in, model: Option<&str>| {
            Ok(Command::Shadow { decoder: decoder.to_owned(), one_in, model: model.map(str::to_owned) })
        };
        assert_eq!(parsed("ctl shadow union-find"), shadow("union-find", 100, None));
        assert_eq!(parsed("ctl shadow lookup --one-in 7 --model surface_d3"), shadow("lookup", 7, Some("surface_d3")));
        assert_eq!(parsed("ctl shadow off"), Ok(Command::ShadowOff));
        assert_eq!(parsed("ctl ack"), Ok(Command::Acknowledge { number: 0 }));
        assert_eq!(parsed("ctl ack 7"), Ok(Command::Acknowledge { number: 7 }));
        assert_eq!(parsed("ctl silo kill 1"), Ok(Command::Silo { silo: 1, command: SiloCommand::Kill }));
        assert_eq!(parsed("ctl move 7 2"), Ok(Command::Move { stream: 7, to: 2 }));
        let sampler =
            InputSpec { from: "sampler".to_owned(), dem: Some("surface_d3".to_owned()), ..InputSpec::default() };
        assert_eq!(parsed("ctl input sampler --dem surface_d3"), Ok(Command::Input(sampler)));
        let file = InputSpec::parse("/a.01 --observables /o.01 --format 01").unwrap();
        assert_eq!(parsed("ctl input /a.01 --observables /o.01 --format 01"), Ok(Command::Input(file)));
        assert_eq!(parsed("ctl note pump on"), Ok(Command::Note { text: "pump on".to_owned() }));
        for words in ["ctl profile lab --for 1500ms", "ctl drill sleep --for 20us", "ctl drill sleep --for 1.0005s"] {
            assert!(parsed(words).is_err_and(|said| said.contains("in whole")), "{words}");
        }
        let drill = |for_ms| Ok(Command::Drill { name: "sleep".to_owned(), for_ms });
        assert_eq!((parsed("ctl drill sleep"), parsed("ctl drill sleep --for 200ms")), (drill(None), drill(Some(200))));
        for (words, command) in [("status", Command::Status), ("pause", Command::Pause), ("resume", Command::Resume)] {
            assert_eq!(parsed(&format!("ctl {words}")), Ok(command));
        }
        for words in [
            "ctl rate 0",
            "ctl rate auto",
            "ctl profile",
            "ctl profile /no/such.ron",
            "ctl dance",
            "ctl note",
            "ctl decoder",
            "ctl model",
            "ctl model --undo --stream 3",
            "ctl model a.dem --undo",
            "ctl decoder best",
            "ctl shadow",
            "ctl shadow best",
            "ctl shadow off --one-in 5",
            "ctl shadow lookup --one-in x",
            "ctl decoder lookup --stream all",
            "ctl silo bury 1",
            "ctl input",
            "ctl input a --format stim",
        ] {
            assert!(parsed(words).is_err(), "{words}");
        }
        let _: fn(&CtlArgs) -> _ = super::ctl;
    }
}
