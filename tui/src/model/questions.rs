//! Questions before commands: the commands of the palette, the consequences of each, and the words
//! that must be typed to confirm.
//!
//! Pure, on the console thread. Bounded by the silos of the picture.
//!
//! # Why killing a silo takes a typed word
//!
//! `y` answers every question, and an operator who answers many of them stops reading. Killing a
//! silo answers its shots with an error, so it takes a word that nobody types by habit.

use super::lists::Line;
use super::span::{said, span};
use crate::keymap::bound::Keymap;
use crate::keymap::{Action, Scope};
use crate::theme::Tone;
use crate::widgets::format::count;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Command, InputSpec, LiveDrill, MoveRefused, SiloCommand};
use pinwheel_engine::profile::{Decoder, SHADOW_ONE_IN_DEFAULT};
use pinwheel_hosts::local_socket::Wanted;
use std::time::Duration;

/// The word that confirms `command`; `None`: `y` is enough.
pub fn word(command: &Command) -> Option<String> {
    let is_typed = match command {
        Command::Silo { silo, command: SiloCommand::Kill } => return Some(format!("kill {silo}")),
        Command::Drill { name, .. } => LiveDrill::from_name(name).is_some_and(LiveDrill::ends_the_run),
        _ => false,
    };
    is_typed.then(|| command.to_string())
}

/// Why the engine of `snapshot` has no target of `command`; `None`: it has it, or the command needs none.
pub fn missing(command: &Command, snapshot: &Snapshot) -> Option<String> {
    let (stream, silo) = match *command {
        Command::Silo { silo, .. } => (None, Some(silo)),
        Command::Move { stream, to } => (Some(stream), Some(to)),
        Command::Decoder { stream, .. } | Command::Model { stream, .. } => (stream, None),
        _ => (None, None),
    };
    let (streams, silos) = (snapshot.streams.len() as u32, snapshot.silos.len() as u32);
    let no_stream = stream.filter(|stream| *stream >= streams).map(|stream| MoveRefused::NoStream { stream, streams });
    let no_silo = || silo.filter(|silo| *silo >= silos).map(|silo| MoveRefused::NoSilo { silo, silos });
    no_stream.or_else(no_silo).map(|refused| refused.to_string())
}

/// The consequences of `command`; `open` shots are in the path.
pub fn meaning(command: &Command, open: u64, keymap: &Keymap) -> Vec<Line> {
    let plain = |text: &str| (text.to_owned(), Tone::Plain);
    let key = |action| keymap.first_key(Scope::Views, action);
    match command {
        Command::Pause => vec![plain("The feed takes no shots until it is resumed; shots in the path are answered.")],
        Command::Resume => vec![plain("Shots are taken again, at the rate in force.")],
        Command::Drain => vec![
            ("Its feed stops for all clients; accepted shots are answered.".to_owned(), Tone::Warn),
            (
                format!("{} shots are in the path now. {} leaves without ending it.", count(open), key(Action::Quit)),
                Tone::Plain,
            ),
        ],
        Command::Silo { silo, command: SiloCommand::Drain } => vec![
            (
                format!("The streams of silo {silo} move to other silos one by one; no new one is placed there."),
                Tone::Plain,
            ),
            plain("No shot is lost; rejoin brings the silo back."),
        ],
        Command::Silo { silo, command: SiloCommand::Kill } => vec![
            (format!("✖ Silo {silo} stops: its open shots are answered with an error."), Tone::Bad),
            ("A successor decodes its streams until rejoin restarts it.".to_owned(), Tone::Bad),
        ],
        Command::Silo { silo, command: SiloCommand::Rejoin } => vec![
            (format!("Silo {silo} rejoins; a dead silo restarts with a new path."), Tone::Plain),
            plain("Streams are placed on it or moved to it."),
        ],
        Command::Move { stream, to } => vec![
            (format!("The shots of stream {stream} wait at the feed until silo {to} has its state."), Tone::Plain),
            ("A lease that holds the stream elsewhere is revoked, in your name.".to_owned(), Tone::Warn),
        ],
        Command::Decoder { .. } => vec![
            plain("Each decode worker changes its decoder between two shots; no shot is lost."),
            plain("It stays until another is chosen, or a profile with another decoder."),
        ],
        Command::Model { file: Some(_), .. } => vec![
            plain("It is checked first; each decode worker then changes its model between two shots; no shot is lost."),
            plain(&format!("{} takes it back.", key(Action::UndoModel))),
        ],
        Command::Model { file: None, .. } => {
            vec![plain("Shots are decoded by the model before the last change again; once more returns to this one.")]
        }
        Command::Shadow { one_in, .. } => vec![
            (format!("It decodes one shot in {one_in} too, on a thread that no shot waits for."), Tone::Plain),
            plain("The decoders view and the report compare its answers with those of the run."),
        ],
        Command::ShadowOff => vec![plain("Its counts stay in the decoders view and in the report.")],
        Command::Drill { name, for_ms } => {
            let lasts = for_ms
                .map(|ms| (format!("With this command it lasts {}.", said(Duration::from_millis(ms))), Tone::Plain));
            let told = LiveDrill::from_name(name).map_or_else(Vec::new, drill);
            told.into_iter().chain(lasts).collect()
        }
        Command::Input(spec) => vec![
            (
                format!("The engine drains: {} shots in the path are answered, its report is kept;", count(open)),
                Tone::Warn,
            ),
            (format!("  then it restarts on {spec}. This console stays open."), Tone::Plain),
        ],
        _ => Vec::new(),
    }
}

fn drill(drill: LiveDrill) -> Vec<Line> {
    let ends = match drill.ends_the_run() {
        true => ("✖ The engine drains and the run ends.".to_owned(), Tone::Bad),
        false => {
            let cause = drill.expected().name();
            (format!("It ends by itself; an alarm must name the cause: {cause}."), Tone::Plain)
        }
    };
    vec![(format!("{}.", drill.what()), Tone::Warn), ends]
}

/// The palette's commands: drills, decoders for all streams and for `stream`, and with several silos
/// the commands on silos and on `stream`.
pub fn offered(snapshot: &Snapshot, stream: usize) -> Vec<Command> {
    let drill = |drill: &LiveDrill| Command::Drill { name: drill.name().to_owned(), for_ms: None };
    let mut commands: Vec<Command> = LiveDrill::ALL.iter().map(drill).collect();
    let one = snapshot.streams.get(stream).filter(|_| snapshot.streams.len() > 1).map(|stream| stream.id);
    for of in std::iter::once(None).chain(one.map(Some)) {
        commands.extend(Decoder::BUILT_IN.map(|named| Command::Decoder { decoder: named.text(), stream: of }));
    }
    commands.extend(Decoder::BUILT_IN.map(|named| shadow(named.kind().name(), SHADOW_ONE_IN_DEFAULT, None)));
    if snapshot.shadow.as_ref().is_some_and(|shadow| shadow.is_on) {
        commands.push(Command::ShadowOff);
    }
    let silos: Vec<u32> = snapshot.silos.iter().map(|silo| silo.id).collect();
    if silos.len() < 2 {
        return commands;
    }
    let on_silo = |silo| SiloCommand::ALL.map(|command| Command::Silo { silo, command });
    commands.extend(silos.iter().copied().flat_map(on_silo));
    if let Some(stream) = snapshot.streams.get(stream) {
        let others = silos.iter().filter(|silo| **silo != stream.silo);
        commands.extend(others.map(|to| Command::Move { stream: stream.id, to: *to }));
    }
    commands
}

/// Parses a command: `kill silo 1`, `move stream 3 to silo 0`, `decoder lookup`, `model F.dem`, `shadow lookup`, `input
/// shots.b8`.
pub fn parse(text: &str) -> Option<Command> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["input", ..] => InputSpec::parse(text.trim_start().strip_prefix("input")?).ok().map(Command::Input),
        [verb, "silo", silo] => {
            let command = SiloCommand::ALL.into_iter().find(|command| command.name() == verb)?;
            Some(Command::Silo { silo: silo.parse().ok()?, command })
        }
        ["decoder", name] => decoder(name, None),
        ["decoder", name, "for", "stream", stream] => decoder(name, Some(stream.parse().ok()?)),
        ["model", "undo"] => Some(Command::Model { file: None, stream: None }),
        ["model", file] => Some(Command::Model { file: Some(file.to_owned()), stream: None }),
        ["model", file, "for", "stream", stream] => {
            Some(Command::Model { file: Some(file.to_owned()), stream: Some(stream.parse().ok()?) })
        }
        ["shadow", "off"] => Some(Command::ShadowOff),
        ["shadow", name] => Decoder::from_text(name).map(|_| shadow(name, SHADOW_ONE_IN_DEFAULT, None)),
        ["shadow", name, "1", "in", one_in] => {
            Decoder::from_text(name).and_then(|_| Some(shadow(name, one_in.parse().ok()?, None)))
        }
        ["shadow", name, "1", "in", one_in, "by", model] => {
            Decoder::from_text(name).and_then(|_| Some(shadow(name, one_in.parse().ok()?, Some(model))))
        }
        ["drill", name] => drill_for(name, None),
        ["drill", name, "for", time] => drill_for(name, Some(span(time)?)),
        ["move", "stream", stream, "to", "silo", to] => {
            Some(Command::Move { stream: stream.parse().ok()?, to: to.parse().ok()? })
        }
        _ => None,
    }
}

/// Parses a command about hosts: `hosts move 3 lab2`, `hosts move 3 here`, `hosts release 3`, `hosts close`, `hosts
/// open`.
pub fn parse_about_hosts(text: &str) -> Option<Wanted> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["hosts", "move", stream, host] => {
            let host = Some(host.to_owned()).filter(|host| host != "here");
            Some(Wanted::Move { stream: stream.parse().ok()?, host })
        }
        ["hosts", "release", stream] => Some(Wanted::Release { stream: stream.parse().ok()? }),
        ["hosts", "close"] => Some(Wanted::Close),
        ["hosts", "open"] => Some(Wanted::Open),
        _ => None,
    }
}

fn drill_for(name: &str, span: Option<Duration>) -> Option<Command> {
    let for_ms = span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    LiveDrill::from_name(name).map(|_| Command::Drill { name: name.to_owned(), for_ms })
}

fn decoder(name: &str, stream: Option<u32>) -> Option<Command> {
    Decoder::from_text(name).map(|named| Command::Decoder { decoder: named.text(), stream })
}

fn shadow(name: &str, one_in: u32, model: Option<&str>) -> Command {
    Command::Shadow { decoder: name.to_owned(), one_in, model: model.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::{Command, InputSpec, LiveDrill, SiloCommand, Wanted, parse, parse_about_hosts, shadow};

    #[test]
    fn commands_about_hosts_are_those_of_the_command_line() {
        let to = |host: Option<&str>| Some(Wanted::Move { stream: 3, host: host.map(str::to_owned) });
        assert_eq!(parse_about_hosts(" hosts  move 3 lab2"), to(Some("lab2")));
        assert_eq!(parse_about_hosts("hosts move 3 here"), to(None));
        assert_eq!(parse_about_hosts("hosts release 3"), Some(Wanted::Release { stream: 3 }));
        assert_eq!(["hosts close", "hosts open"].map(parse_about_hosts), [Some(Wanted::Close), Some(Wanted::Open)]);
        for text in ["hosts", "hosts move lab2 3", "hosts move 3", "hosts close lab2", "hosts board lab2"] {
            assert_eq!(parse_about_hosts(text), None, "{text}");
        }
    }

    #[test]
    fn commands_are_read_as_they_are_listed() {
        let commands = [
            Command::Silo { silo: 1, command: SiloCommand::Kill },
            Command::Silo { silo: 0, command: SiloCommand::Rejoin },
            Command::Move { stream: 3, to: 2 },
            Command::Decoder { decoder: "union-find".to_owned(), stream: None },
            Command::Decoder { decoder: "lookup".to_owned(), stream: Some(3) },
            Command::Decoder { decoder: "plugin:/opt/mine.so".to_owned(), stream: None },
            Command::Decoder { decoder: "trusted-plugin:mine.so".to_owned(), stream: Some(3) },
            Command::Model { file: None, stream: None },
            Command::Model { file: Some("/models/today.dem".to_owned()), stream: None },
            Command::Model { file: Some("today.dem".to_owned()), stream: Some(3) },
            shadow("union-find", 100, None),
            shadow("lookup", 7, Some("/models/today.dem")),
            Command::ShadowOff,
            Command::Drill { name: LiveDrill::ALL[0].name().to_owned(), for_ms: None },
            Command::Input(InputSpec::parse("udp:127.0.0.1:7000").unwrap_or_default()),
            Command::Input(InputSpec::parse("a file.b8 --dem surface_d3").unwrap_or_default()),
        ];
        for command in commands {
            assert_eq!(parse(&command.to_string()), Some(command));
        }
        for text in [
            "",
            "decoder",
            "decoder best",
            "decoder lookup for stream x",
            "shadow",
            "shadow best",
            "shadow lookup 1 in x",
            "model",
            "model a b",
            "model a for stream x",
            "input",
            "input a --rate 5",
            "kill silo x",
            "bury silo 1",
            "move stream 1",
            "kill silo 1 2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
