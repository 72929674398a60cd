//! `pinwheel ctl`: acts on a running engine of the same user, and prints what was acknowledged.
//!
//! Runs on the main thread; one request. Exit status 0: done, and the engine's threads said so; 1: done, and they did not
//! in time; 2: refused, in one sentence. Bounded by one reply; another input by [`DRAIN_LIMIT`] and [`BEGIN_LIMIT`], until the
//! next run is live.

use super::args::{duration, rate_or_max};
use super::engines::{self, Found};
use super::refusal::Refusal;
use super::{say, written};
use crate::source::attach::absolute;
use crate::source::attach::line::Wire;
use clap::{Args as ClapArgs, Subcommand};
use pinwheel_engine::board::follow::Follow;
use pinwheel_engine::board::{self, Life, Phase};
use pinwheel_engine::code::Format;
use pinwheel_engine::engine::SiloDeed;
use pinwheel_engine::engine::wire::{Ask, Done, InputSpec, Outcome};
use pinwheel_engine::profile;
use serde_json::json;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Between two looks at a board.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for the end of the run before: a profile's longest grace for a drain, and some.
const DRAIN_LIMIT: Duration = Duration::from_secs(3_700);
/// Longest wait for the next run to be there, and again for it to be live.
const BEGIN_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, ClapArgs)]
pub struct CtlArgs {
    #[command(subcommand)]
    pub verb: Verb,
    /// The engine's process, or its run: a name or a directory [default: the only one there is]
    #[arg(long, value_name = "PID|RUN", global = true)]
    pub to: Option<String>,
    /// Why, in your own words: kept in the run's events
    #[arg(long, value_name = "TEXT", default_value = "", global = true, hide_default_value = true)]
    pub why: String,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// How it stands
    Status,
    /// Switch the profile: what applies live does
    Profile {
        /// Name, among the profiles that the engine knows, or a path that ends in .ron
        #[arg(value_name = "NAME")]
        profile: String,
        /// Give it back after so long: 20m, 90s, 1h
        #[arg(long = "for", value_name = "D", value_parser = duration, allow_hyphen_values = true)]
        lent: Option<Duration>,
    },
    /// Hold the feed: what is under way finishes, nothing more is taken
    Pause,
    /// Let the feed run again
    Resume,
    /// Another rate, until a profile says another
    Rate {
        /// Shots per second of all streams together, or max
        #[arg(value_name = "HZ|max", value_parser = rate_or_max, allow_hyphen_values = true)]
        hz: f64,
    },
    /// Stop the feed, let accepted shots finish, end
    Drain,
    /// End now: what is under way is answered with an error
    Stop,
    /// An alarm was seen [default: all that hold]
    Ack {
        /// Its number, as status lists it
        #[arg(value_name = "ID", default_value_t = 0, hide_default_value = true)]
        number: u64,
    },
    /// Another input: the engine drains, its run ends with its report, and the same process begins one on the new input.
    /// Refused before anything is drained if the input cannot be used; ends when the new run is live
    Input {
        /// sampler, a file of shots, udp:ADDRESS:PORT, unix:PATH or shm:NAME
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
    /// Drain a silo, kill it, or have it come back: `ctl silo kill 1`
    Silo {
        /// drain: its streams move away; kill: its path dies; rejoin: it comes back
        #[arg(value_name = "drain|kill|rejoin", value_parser = deed)]
        deed: SiloDeed,
        /// Which silo
        #[arg(value_name = "SILO")]
        silo: u32,
    },
    /// Have a stream decoded in another silo
    Move {
        /// Which stream
        #[arg(value_name = "STREAM")]
        stream: u32,
        /// Which silo
        #[arg(value_name = "SILO")]
        silo: u32,
    },
    /// Keep a note in the run's events
    Note {
        /// Its words
        #[arg(value_name = "TEXT", required = true)]
        text: Vec<String>,
    },
    /// Provoke a stall in the running engine, to see its verdict: profiles that spin as Lab or Shared only
    Drill {
        /// long-handler, sleep, page-faults, role-panic (ends the run), device-hang, slow-harvest or claims-work
        #[arg(value_name = "NAME")]
        drill: String,
        /// For so long [default: the drill's own time]: 200ms, 2s
        #[arg(long = "for", value_name = "D", value_parser = duration, allow_hyphen_values = true)]
        span: Option<Duration>,
    },
}

/// What becomes of a silo, by its name.
fn deed(text: &str) -> Result<SiloDeed, String> {
    let found = SiloDeed::ALL.into_iter().find(|deed| deed.name() == text);
    found.ok_or_else(|| "expected drain, kill or rejoin".to_owned())
}

pub fn ctl(args: &CtlArgs) -> Result<u8, Refusal> {
    let ask = asked(&args.verb)?;
    let found = engines::find(args.to.as_deref())?;
    let about = format!("engine of process {}", found.pid);
    let socket = found.socket.as_deref().ok_or_else(|| {
        Refusal::unusable(&about, "no control socket", "one in its run directory", "its notes say why it has none")
    })?;
    let refused = |error: &dyn std::fmt::Display| {
        let expected = format!("user {}'s to be open to us", found.uid);
        Refusal::unusable(
            &about,
            format!("its control socket closed ({error})"),
            expected,
            "act as its user, or as root",
        )
    };
    let mut wire = Wire::connect(socket, found.uid).map_err(|error| refused(&error))?;
    match wire.ask(ask, &args.why).map_err(|error| refused(&error))? {
        Outcome::Refused(said) => Err(Refusal::Usage(format!("{about}: {said}"))),
        Outcome::Done(done) => {
            let mut value = serde_json::to_value(&done).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("pid".to_owned(), json!(found.pid));
            }
            let status = written(say::json(&mut io::stdout().lock(), &value), u8::from(!done.is_acknowledged()));
            if matches!(done, Done::Input { .. }) { see_next(&found).map(|next| next.max(status)) } else { Ok(status) }
        }
    }
}

/// Waits until the run that follows `before` in its process is live, and prints which it is.
fn see_next(before: &Found) -> Result<u8, Refusal> {
    let about = format!("engine of process {}", before.pid);
    let not_begun = |found: String| {
        let remedy = "its console, or its standard error, says why";
        Refusal::unusable(&about, found, "a run on another input", remedy)
    };
    let gone = || not_begun("its process gone".to_owned());
    let is_there = || engines::is_there(before.pid);
    if !wait(DRAIN_LIMIT, || before.follow.life() == Life::Dead || !is_there()) {
        return Err(not_begun(format!("it draining for {} s", DRAIN_LIMIT.as_secs())));
    }
    let mut next = None;
    wait(BEGIN_LIMIT, || {
        next = engines::after(before.pid, &before.follow);
        next.is_some() || !is_there()
    });
    let mut next = next.ok_or_else(|| {
        if is_there() { not_begun(format!("none within {} s", BEGIN_LIMIT.as_secs())) } else { gone() }
    })?;
    let mut phase = phase_of(&mut next.follow);
    wait(BEGIN_LIMIT, || {
        phase = phase_of(&mut next.follow);
        phase >= Phase::Live || next.follow.life() == Life::Dead
    });
    // What was looked up when the run had just begun may have been named since.
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

/// Looks until something is so; whether it is within `limit`.
#[expect(clippy::disallowed_methods, reason = "the main thread of a request from outside; it runs no engine")]
fn wait(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..limit.as_millis() / LOOK.as_millis() {
        if is_so() {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    is_so()
}

/// How many `unit`s a time is, which may not be a part of one.
fn whole(span: Duration, unit: Duration, expected: &str) -> Result<u64, Refusal> {
    let units = span.as_nanos() / unit.as_nanos();
    let is_whole = units * unit.as_nanos() == span.as_nanos();
    u64::try_from(units)
        .ok()
        .filter(|units| is_whole && *units > 0)
        .ok_or_else(|| Refusal::unusable("--for", format!("{span:?}"), expected, "name another time"))
}

/// What a verb asks for.
fn asked(verb: &Verb) -> Result<Ask, Refusal> {
    Ok(match verb {
        Verb::Status => Ask::Status,
        Verb::Profile { profile, lent } => {
            let for_s =
                lent.map(|lent| whole(lent, Duration::from_secs(1), "1 s or more, in whole seconds")).transpose()?;
            if profile.contains('/') || profile.ends_with(".ron") {
                // The path is ours to follow, not the engine's.
                let (text, origin) = profile::text(profile, None)?;
                profile::Profile::parse(&text, &origin.to_string())?;
                Ask::Profile { name: origin.name(), text: Some(text), for_s }
            } else {
                Ask::Profile { name: profile.clone(), text: None, for_s }
            }
        }
        Verb::Pause => Ask::Pause,
        Verb::Resume => Ask::Resume,
        Verb::Rate { hz } => Ask::Rate { hz: Some(*hz).filter(|hz| hz.is_finite()) },
        Verb::Drain => Ask::Drain,
        Verb::Stop => Ask::Stop,
        Verb::Ack { number } => Ask::Acknowledge { number: *number },
        Verb::Input { from, dem, observables, format } => {
            let format = format.map(|format| format.name().to_owned());
            let (dem, observables) = (dem.clone(), observables.clone());
            Ask::Input(absolute(InputSpec { from: from.clone(), dem, observables, format }))
        }
        Verb::Silo { deed, silo } => Ask::Silo { silo: *silo, deed: *deed },
        Verb::Move { stream, silo } => Ask::Move { stream: *stream, to: *silo },
        Verb::Note { text } => Ask::Note { text: text.join(" ") },
        Verb::Drill { drill, span } => {
            let milli = Duration::from_millis(1);
            let for_ms = span.map(|span| whole(span, milli, "1 ms or more, in whole milliseconds")).transpose()?;
            Ask::Drill { name: drill.clone(), for_ms }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{CtlArgs, InputSpec, SiloDeed, Verb, asked};
    use clap::{FromArgMatches, Subcommand};
    use pinwheel_engine::engine::wire::Ask;

    fn parsed(words: &str) -> Result<Ask, String> {
        let command = Verb::augment_subcommands(clap::Command::new("ctl"));
        let matches = command.try_get_matches_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        let verb = Verb::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        asked(&verb).map_err(|error| error.to_string())
    }

    #[test]
    fn every_verb_is_a_request() {
        let lent = Ask::Profile { name: "shared".to_owned(), text: None, for_s: Some(1_200) };
        assert_eq!(parsed("ctl profile shared --for 20m"), Ok(lent));
        assert_eq!(parsed("ctl rate 500"), Ok(Ask::Rate { hz: Some(500.0) }));
        assert_eq!(parsed("ctl rate max"), Ok(Ask::Rate { hz: None }));
        assert_eq!(parsed("ctl ack"), Ok(Ask::Acknowledge { number: 0 }));
        assert_eq!(parsed("ctl ack 7"), Ok(Ask::Acknowledge { number: 7 }));
        assert_eq!(parsed("ctl silo kill 1"), Ok(Ask::Silo { silo: 1, deed: SiloDeed::Kill }));
        assert_eq!(parsed("ctl move 7 2"), Ok(Ask::Move { stream: 7, to: 2 }));
        let sampler =
            InputSpec { from: "sampler".to_owned(), dem: Some("surface_d3".to_owned()), ..InputSpec::default() };
        assert_eq!(parsed("ctl input sampler --dem surface_d3"), Ok(Ask::Input(sampler)));
        let file = InputSpec::parse("/a.01 --observables /o.01 --format 01").unwrap();
        assert_eq!(parsed("ctl input /a.01 --observables /o.01 --format 01"), Ok(Ask::Input(file)));
        assert_eq!(parsed("ctl note pump on"), Ok(Ask::Note { text: "pump on".to_owned() }));
        for words in ["ctl profile lab --for 1500ms", "ctl drill sleep --for 20us", "ctl drill sleep --for 1.0005s"] {
            assert!(parsed(words).is_err_and(|said| said.contains("in whole")), "{words}");
        }
        let drill = |for_ms| Ok(Ask::Drill { name: "sleep".to_owned(), for_ms });
        assert_eq!((parsed("ctl drill sleep"), parsed("ctl drill sleep --for 200ms")), (drill(None), drill(Some(200))));
        for (words, ask) in [("status", Ask::Status), ("pause", Ask::Pause), ("resume", Ask::Resume)] {
            assert_eq!(parsed(&format!("ctl {words}")), Ok(ask));
        }
        for words in [
            "ctl rate 0",
            "ctl rate auto",
            "ctl profile",
            "ctl profile /no/such.ron",
            "ctl dance",
            "ctl note",
            "ctl silo bury 1",
            "ctl input",
            "ctl input a --format stim",
        ] {
            assert!(parsed(words).is_err(), "{words}");
        }
        let _: fn(&CtlArgs) -> _ = super::ctl;
    }
}
