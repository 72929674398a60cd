//! What other hosts and local programs ask of the bridge's thread.

use super::events::Event;
use super::{Placed, Worker};
use crate::description::Offer;
use crate::incoming::{Counts, Refused};
use crate::link::{NoAnswer, Presence, Reply, Topic};
use crate::local_socket::{Asked, Said, Wanted, to_text};
use crate::membership::State;
use crate::status::{HostRow, Status, Trip};
use pinwheel_engine::engine::wire::{Outcome, VERSION, read_request};
use pinwheel_engine::engine::{Command, NOTE_CHARS_MAX};
use pinwheel_report::control::{CommandError, ControlSocket, REPLY_TIMEOUT};
use pinwheel_report::moment;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Commands of other hosts that are executed at the same time.
const COMMANDS_MAX: u32 = 4;
/// Asks for a board as a recording of one snapshot, in base64; without it, as JSON.
const PICTURE: &[u8] = b"picture";
/// Longest wait for another host's reply to a command, and for its board.
const COMMAND_LIMIT: Duration = Duration::from_secs(11);

/// What an operator reads of a second host of this name.
const NAMESAKE: &str =
    "another host has this name; others take the two for one: give each a name of its own, or end it";

/// Commands of other hosts under way.
// Relaxed: a count that stands alone.
#[derive(Debug, Default)]
pub(super) struct Commands(AtomicU32);

impl Worker {
    pub(super) fn take(&mut self, event: Event, now_ns: u64) {
        match event {
            // Another host that has taken this one's name; none of its own is known of it.
            Event::Presence(Presence::Here { name, incarnation }) if name == self.settings.name => {
                self.namesakes.insert(incarnation);
            }
            Event::Presence(Presence::Gone { name, incarnation }) if name == self.settings.name => {
                self.namesakes.remove(&incarnation);
            }
            Event::Presence(Presence::Here { name, incarnation }) => {
                // A new process of a host knows nothing of what the old one was given.
                if self.members.iter().any(|(known, host)| known == name && host.incarnation != incarnation) {
                    self.take_back_all(&name);
                }
                self.members.appeared(&name, incarnation, now_ns);
                self.traffic.entry(name).or_default().is_asked = false;
            }
            Event::Presence(Presence::Gone { name, incarnation }) => {
                if self.members.left(&name, incarnation) {
                    self.take_back_all(&name);
                }
            }
            Event::Question { from, topic, body, reply } => self.answer(&from, topic, &body, reply, now_ns),
            Event::Described { host, description, asked_ns } => {
                self.take_description(&host, description, asked_ns, now_ns);
            }
            Event::Answers { host, shots, sent, result } => {
                self.take_answers((&host, &shots, sent), result, now_ns);
            }
            Event::Local(Asked { wanted, answer }) => self.serve(wanted, answer, now_ns),
        }
    }

    /// Answers another host.
    fn answer(&mut self, from: &str, topic: Topic, body: &[u8], reply: Reply, now_ns: u64) {
        match topic {
            Topic::Describe => reply.send(&serde_json::to_vec(&self.own).unwrap_or_default()),
            Topic::Board if body == PICTURE => reply.send(to_text(&self.viewer.picture()).as_bytes()),
            Topic::Board => {
                let board = moment::attached(&self.viewer.snapshot(), self.control.pid);
                reply.send(board.to_string().as_bytes());
            }
            // The tables are bounded by the hosts that are there.
            Topic::Shots if !self.members.is_present(from) => reply.refuse(&Refused::Stranger.to_string()),
            Topic::Shots => {
                // Models may have changed since that host looked.
                if let Err(unlike) = self.members.accepts(from, &self.own) {
                    return reply.refuse(&unlike.to_string());
                }
                if let Err((reply, refused)) = self.incoming.offer(from, body, reply, now_ns) {
                    reply.refuse(&refused.to_string());
                }
            }
            Topic::Command => self.command(from, body, reply),
        }
    }

    /// Executes another host's command on a thread of its own: the engine may take seconds.
    fn command(&self, from: &str, line: &[u8], reply: Reply) {
        let request = match read_request(line) {
            Ok(request) => request,
            Err(said) => return reply.refuse(&said),
        };
        if self.commands.0.fetch_add(1, Ordering::Relaxed) >= COMMANDS_MAX {
            self.commands.0.fetch_sub(1, Ordering::Relaxed);
            return reply.refuse("too many commands of other hosts are under way; try again");
        }
        let (control, commands) = (self.control.clone(), Arc::clone(&self.commands));
        let why = format!("from host {from}{}{}", if request.why.is_empty() { "" } else { ": " }, request.why);
        // The events keep a note without a reason.
        let command = match request.command {
            Command::Note { text } => Command::Note { text: note(&text, from) },
            command => command,
        };
        let builder = std::thread::Builder::new().name("hosts-command".to_owned());
        let execute = move || {
            let outcome = outcome(&control, command, &why);
            reply.send(json_line(&outcome).as_bytes());
            commands.0.fetch_sub(1, Ordering::Relaxed);
        };
        #[expect(clippy::disallowed_methods, reason = "a cold thread of the bridge")]
        let spawned = builder.spawn(execute);
        if spawned.is_err() {
            // The reply went with the closure: its asker learns that there is no answer.
            self.commands.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Answers a local program.
    fn serve(&mut self, wanted: Wanted, answer: Sender<Said>, now_ns: u64) {
        let said = match wanted {
            Wanted::List => serde_json::to_string(&self.status(now_ns)).map_err(|error| error.to_string()),
            Wanted::Command { host, line } => return self.pass_on(&host, Topic::Command, line.into_bytes(), answer),
            Wanted::Board { host } => return self.pass_on(&host, Topic::Board, Vec::new(), answer),
            Wanted::Picture { host } => return self.pass_on(&host, Topic::Board, PICTURE.to_vec(), answer),
            Wanted::Move { stream, host } => self.place_by_operator(stream, host.as_deref(), now_ns),
            Wanted::Release { stream } => self.stream(stream).map(|stream| {
                self.placed[stream as usize] = None;
                format!("the rules place stream {stream} again")
            }),
            Wanted::Close => {
                self.is_closed = true;
                self.offer(Offer::Draining);
                Ok("this host takes no more shots of others".to_owned())
            }
            Wanted::Open if self.looks.are_last() => {
                Err("this engine drains; it takes no more shots of others".to_owned())
            }
            Wanted::Open => {
                self.is_closed = false;
                if self.viewer.snapshot().control.held.is_some() {
                    // The looks open it.
                    Ok("this host takes shots of others as soon as its feed is held no longer".to_owned())
                } else {
                    self.offer(Offer::Open);
                    Ok("this host takes shots of others".to_owned())
                }
            }
        };
        // A client that has gone needs no answer.
        let _ = answer.send(said);
    }

    fn stream(&self, stream: u32) -> Result<u32, String> {
        let streams = self.bridge.routes.streams();
        let refused = || format!("there is no stream {stream}; the streams are 0 to {}", streams.saturating_sub(1));
        (stream < streams).then_some(stream).ok_or_else(refused)
    }

    fn place_by_operator(&mut self, stream: u32, host: Option<&str>, now_ns: u64) -> Said {
        let stream = self.stream(stream)?;
        let placed = match host.filter(|host| *host != self.settings.name) {
            None => {
                self.take_back(stream);
                Placed::Here
            }
            Some(_) if self.looks.are_last() => {
                return Err("this engine drains; it decodes its own streams to their end".to_owned());
            }
            Some(host) => {
                self.members.usable(host, &self.own, now_ns).map_err(|why| format!("host {host}: {why}"))?;
                self.give(stream, host);
                Placed::At(host.to_owned())
            }
        };
        self.placed[stream as usize] = Some(placed);
        Ok(format!("host {} decodes stream {stream}", host.unwrap_or(&self.settings.name)))
    }

    /// Asks another host for a local program.
    fn pass_on(&self, host: &str, topic: Topic, body: Vec<u8>, answer: Sender<Said>) {
        if host == self.settings.name {
            // A client that has gone needs no answer.
            let _ = answer.send(Err(format!("host {host} is this engine's own; name another host, or none")));
            return;
        }
        let name = host.to_owned();
        let answered = Box::new(move |result: Result<Vec<u8>, NoAnswer>| {
            let said = match result {
                Ok(bytes) => String::from_utf8(bytes).map_err(|_| format!("host {name} sent no text")),
                Err(NoAnswer::Refused(why)) => Err(format!("host {name} refused: {why}")),
                Err(why) => Err(format!("host {name}: {why}; `pinwheel hosts` shows its state")),
            };
            let _ = answer.send(said);
        });
        self.link.ask(host, topic, body, COMMAND_LIMIT, answered);
    }

    fn status(&self, now_ns: u64) -> Status {
        let own = HostRow {
            name: self.settings.name.clone(),
            is_self: true,
            state: if self.takes_shots() { State::Up } else { State::Draining },
            why_not: (!self.namesakes.is_empty()).then(|| NAMESAKE.to_owned()),
            version: self.own.version.clone(),
            own: self.own.own,
            streams: self.own.decoded(),
            load: self.own.load,
            heard_ns: 0,
            link_ns: None,
            losses: 0,
            given: Vec::new(),
            answered: 0,
            taken_back: 0,
            sent: Counts::default(),
        };
        let others = self.members.iter().map(|(name, host)| {
            let said = host.description.clone().unwrap_or_default();
            let traffic = self.traffic.get(name).copied().unwrap_or_default();
            let sent = self.incoming.counts().find(|(owner, _)| *owner == name).map(|(_, counts)| counts);
            HostRow {
                name: name.to_owned(),
                is_self: false,
                state: self.state(name, now_ns),
                why_not: self.members.usable(name, &self.own, now_ns).err().map(|why| why.to_string()),
                own: said.own,
                streams: said.decoded(),
                version: said.version,
                load: said.load,
                heard_ns: host.age_ns(now_ns),
                link_ns: host.trip_ns().map(|(p50, p99)| Trip { p50, p99 }),
                losses: host.losses,
                given: self.outgoing.streams_at(name).collect(),
                answered: traffic.answered,
                taken_back: traffic.taken_back,
                sent: sent.unwrap_or_default(),
            }
        });
        Status { cluster: self.settings.cluster.clone(), hosts: std::iter::once(own).chain(others).collect() }
    }
}

/// A note of host `from`. A long text is cut here, so that the engine does not cut the host's name.
fn note(text: &str, from: &str) -> String {
    let end = format!(" (from host {from})");
    let text: String = text.chars().take(NOTE_CHARS_MAX.saturating_sub(end.len())).collect();
    text + &end
}

fn outcome(control: &ControlSocket, command: Command, why: &str) -> Outcome {
    // The host that asks waits no longer for any command.
    match control.execute_within(command, why, REPLY_TIMEOUT) {
        Ok(done) => Outcome::Done(done),
        Err(CommandError::Refused { said, .. }) => Outcome::Refused(said),
        Err(CommandError::Unusable(unusable)) => Outcome::Refused(unusable.to_string()),
    }
}

/// A reply as the control socket writes it.
fn json_line(outcome: &Outcome) -> String {
    let mut line = serde_json::to_value(outcome).unwrap_or_default();
    if let Some(fields) = line.as_object_mut() {
        fields.insert("version".to_owned(), json!(VERSION));
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::note;
    use pinwheel_engine::engine::NOTE_CHARS_MAX;

    #[test]
    fn a_note_names_its_host_however_long_it_is() {
        assert_eq!(note("pump on", "lab-a"), "pump on (from host lab-a)");
        let long = note(&"ü".repeat(NOTE_CHARS_MAX), "lab-a");
        assert!(long.chars().count() == NOTE_CHARS_MAX && long.ends_with("ü (from host lab-a)"), "{long}");
    }
}
