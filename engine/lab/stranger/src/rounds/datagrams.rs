//! Shots over UDP and over a Unix socket, by a client of this program's own; clients that are killed, and nonsense.
//!
//! The round's thread is the client; another injects faults into the engine. A client sends each shot again
//! after [`REPEAT`] without an answer, by the same sequence number: a datagram may be lost on its way.

use super::{Ending, Models, judge_end, judge_kill, postmortem, start_live};
use crate::after::{Ends, look};
use crate::draw::Draw;
use crate::engine::{Engine, PATIENCE};
use crate::faults::Target;
use crate::ledger::{Answer, Ledger};
use crate::packet::{Part, Reply, hello, reply};
use crate::profile;
use crate::soft::SoftMap;
use crate::tally::Tally;
use crate::world::{Hang, World, threads};
use serde_json::json;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const REPEAT: Duration = Duration::from_secs(2);

/// A datagram socket of either kind, connected to the engine's.
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

/// The engine's place.
enum Place {
    Udp(SocketAddr),
    Unix(PathBuf),
}

impl Place {
    fn draw(world: &World, draw: &mut Draw) -> io::Result<Place> {
        if draw.one_in(2) {
            // Free at this moment; nobody else on this address asks for it by number.
            return Ok(Place::Udp(UdpSocket::bind("127.0.0.1:0")?.local_addr()?));
        }
        Ok(Place::Unix(world.path("shots.sock")))
    }

    fn words(&self) -> String {
        match self {
            Place::Udp(address) => format!("udp:{address}"),
            Place::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    fn connect(&self, own: &Path) -> io::Result<Socket> {
        let socket = match self {
            Place::Udp(address) => {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                socket.connect(address)?;
                let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
                socket.set_nonblocking(true)?;
                Socket::Udp(socket)
            }
            Place::Unix(path) => {
                let socket = UnixDatagram::bind(own)?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket)
            }
        };
        Ok(socket)
    }
}

impl Socket {
    fn send(&self, bytes: &[u8]) -> bool {
        match self {
            Socket::Udp(socket) => socket.send(bytes).is_ok(),
            Socket::Unix(socket) => socket.send(bytes).is_ok(),
        }
    }

    fn receive(&self, bytes: &mut [u8]) -> Option<usize> {
        match self {
            Socket::Udp(socket) => socket.recv(bytes).ok(),
            Socket::Unix(socket) => socket.recv(bytes).ok(),
        }
    }
}

pub fn run(world: &World, models: &mut Models, draw: &mut Draw, tally: &mut Tally) {
    let (model, name) = models.draw(draw);
    let map = draw.one_in(4).then(|| model.soft_map(draw));
    let profile = profile::draw(draw, if map.is_some() { profile::Kind::Soft } else { profile::Kind::Exact }, name);
    let place = match Place::draw(world, draw) {
        Ok(place) => place,
        Err(error) => return tally.violation("no address", error.to_string()),
    };
    let prepared = world.write("profiles/drawn.ron", &profile.text).and_then(|_| soft_option(world, map.as_ref()));
    let option = match prepared {
        Ok(option) => option,
        Err(error) => return tally.violation("the round's files cannot be made", error.to_string()),
    };
    let words = format!(
        "run --profile profiles/drawn.ron --dem {name} --input {} --logs logs --json --headless{option}",
        place.words()
    );
    let ending = *draw.pick(&[Ending::Term, Ending::Int, Ending::Drain, Ending::Kill]);
    let Some(mut engine) = start_live(world, &words, tally) else { return };
    let done = AtomicBool::new(false);
    let (mut sessions, most) = (draw.between(1, 6), most_shots(name, map.is_some()));
    let mut is_cut = false;
    thread::scope(|scope| {
        let target = Target::of_clients(world, engine.pid, &profile, &done, 40);
        let own = draw.fork();
        let injector = scope.spawn(move || target.inject(own));
        let mut session_number = 1_000_000 + draw.below(1 << 40);
        while sessions > 0 {
            sessions -= 1;
            session_number += draw.between(1, 1 << 20);
            let count = draw.between(1, most);
            let shots = model.draw(draw, count as usize, map.as_ref());
            let soft_bytes = map.as_ref().map_or(0, |map| map.bytes);
            let mut client = Client {
                world,
                place: &place,
                session: session_number,
                streams: profile.streams,
                shots: &shots.bits,
                soft: &shots.soft,
                soft_bytes,
                bits: model.detectors as u32,
                window: draw.between(1, 200),
                first_sequence: if draw.one_in(2) { 0 } else { draw.below(1 << 50) },
                parts: if draw.one_in(4) { draw.between(2, 4) as u32 } else { 1 },
                // The last client always lives to the end.
                killed_at: (sessions > 0 && draw.one_in(2)).then(|| draw.below(count)),
                nonsense: draw.one_in(2),
            };
            is_cut |= client.killed_at.is_some();
            let mut ledger = Ledger::new(shots.right.clone());
            let is_over = client.send_all(&mut engine, &mut ledger, draw, tally);
            let ingress = if matches!(place, Place::Udp(_)) { "udp" } else { "unix" };
            super::settle(&ledger, ledger.answered, ingress, tally);
            if !is_over {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        if let Ok(faults) = injector.join() {
            tally.add(faults);
        }
    });
    // A client that is killed may leave a shot whose decoding has begun: it ends as `rounds_missing`.
    finish(world, &mut engine, ending, profile.may_err || is_cut && profile.is_by_rounds, tally);
}

/// The option of the map, which is written into the world.
pub fn soft_option(world: &World, map: Option<&SoftMap>) -> io::Result<String> {
    let Some(map) = map else { return Ok(String::new()) };
    world.write("map.soft", &map.text)?;
    Ok(" --soft-map map.soft".into())
}

/// Most shots of a client: those of distance 5 and those with soft bytes take time to judge.
pub fn most_shots(model: &str, is_soft: bool) -> u64 {
    match (model, is_soft) {
        ("surface_d3", false) => 60_000,
        ("surface_d3", true) => 4_000,
        (_, false) => 1_500,
        (_, true) => 100,
    }
}

/// Ends an engine with a live source, and judges its end.
pub fn finish(world: &World, engine: &mut Engine, ending: Ending, may_err: bool, tally: &mut Tally) {
    ending.ask(world, engine, tally);
    match engine.end(PATIENCE) {
        Err(Hang(evidence)) => tally.hang(format!("end by {ending:?}"), evidence),
        Ok(ran) if ending == Ending::Kill => {
            judge_kill(&ran, tally);
            postmortem(world, engine.pid, tally);
            look(world, Ends::Killed, tally);
        }
        Ok(ran) => {
            if let Some(report) = judge_end(&ran, ending, may_err, tally) {
                let source = &report["sources"][0];
                let count = |key: &str| source[key].as_u64().unwrap_or(0);
                if count("accepted") != count("answered") + count("answers_dropped") {
                    tally.violation("the source accepted other shots than it answered or dropped", source.clone());
                }
            }
            look(world, Ends::Orderly, tally);
        }
    }
}

/// One session of a client.
struct Client<'a> {
    world: &'a World<'a>,
    place: &'a Place,
    session: u64,
    streams: u64,
    shots: &'a [u8],
    soft: &'a [u8],
    /// Soft bytes of a shot.
    soft_bytes: usize,
    bits: u32,
    /// Most shots without an answer.
    window: u64,
    first_sequence: u64,
    parts: u32,
    killed_at: Option<u64>,
    /// Whether it also sends datagrams that are no shots, from another socket.
    nonsense: bool,
}

impl Client<'_> {
    /// Sends all shots and waits for all answers; false if the engine does not go on.
    fn send_all(&mut self, engine: &mut Engine, ledger: &mut Ledger, draw: &mut Draw, tally: &mut Tally) -> bool {
        let (socket, other) = match self
            .place
            .connect(&self.world.new_path("client.sock"))
            .and_then(|socket| Ok((socket, self.place.connect(&self.world.new_path("other.sock"))?)))
        {
            Ok(sockets) => sockets,
            Err(error) => {
                tally.violation("a client cannot connect", error.to_string());
                return false;
            }
        };
        if !self.greet(&socket, engine, tally) {
            return false;
        }
        let count = ledger.shots() as u64;
        let mut sent_at: Vec<Option<Instant>> = vec![None; count as usize];
        // The shots from `oldest` to `next` are sent and not all answered.
        let (mut oldest, mut next) = (0u64, 0u64);
        let mut moved_at = Instant::now();
        let mut reply_bytes = vec![0; 4096];
        while ledger.answered < count {
            if self.killed_at.is_some_and(|at| ledger.answered >= at) {
                tally.killed_with_client += next - ledger.answered;
                tally.fault("client killed");
                // A client may be killed between two parts of a shot.
                self.send(&socket, next, draw, true);
                return true;
            }
            let before = (next, ledger.answered);
            while next < count && next - oldest < self.window.max(1) {
                if !self.send(&socket, next, draw, false) {
                    break;
                }
                sent_at[next as usize] = Some(Instant::now());
                next += 1;
            }
            while let Some(read) = socket.receive(&mut reply_bytes) {
                self.take(&reply_bytes[..read], ledger, tally);
            }
            while oldest < next && ledger.has(oldest as usize) {
                oldest += 1;
            }
            if before != (next, ledger.answered) {
                moved_at = Instant::now();
                if self.nonsense && draw.one_in(200) {
                    for _ in 0..draw.between(1, 50) {
                        other.send(&self.nonsense(draw));
                    }
                    while other.receive(&mut reply_bytes).is_some() {}
                    tally.fault("nonsense datagrams");
                }
                continue;
            }
            for index in oldest..next {
                if !ledger.has(index as usize) && sent_at[index as usize].is_some_and(|at| at.elapsed() > REPEAT) {
                    self.send(&socket, index, draw, false);
                    sent_at[index as usize] = Some(Instant::now());
                }
            }
            if moved_at.elapsed() > PATIENCE || engine.has_ended() {
                let (unanswered, first) = ledger.unanswered();
                let evidence = json!({
                    "command": engine.words, "unanswered": unanswered, "first": first, "sent": next,
                    "ended": engine.has_ended(), "threads": threads(engine.pid),
                });
                tally.lost += next - ledger.answered;
                tally.hang("a client waits for its answers", evidence);
                return false;
            }
            thread::sleep(Duration::from_micros(200));
        }
        // An answer that comes again would come soon.
        thread::sleep(Duration::from_millis(2));
        while let Some(read) = socket.receive(&mut reply_bytes) {
            self.take(&reply_bytes[..read], ledger, tally);
        }
        true
    }

    /// Says hello until the engine's welcome.
    fn greet(&self, socket: &Socket, engine: &mut Engine, tally: &mut Tally) -> bool {
        let (from, mut bytes) = (Instant::now(), vec![0; 4096]);
        while from.elapsed() < PATIENCE && !engine.has_ended() {
            socket.send(&hello(self.session));
            for _ in 0..200 {
                if let Some(read) = socket.receive(&mut bytes)
                    && let Some(Reply::Welcome { session, streams, bits, .. }) = reply(&bytes[..read])
                {
                    if (session, u64::from(streams), bits) != (self.session, self.streams, self.bits) {
                        tally.violation("the welcome tells another engine", format!("{:?}", reply(&bytes[..read])));
                    }
                    return true;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
        tally.hang(
            "no welcome",
            json!({ "command": engine.words, "ended": engine.has_ended(), "threads": threads(engine.pid) }),
        );
        false
    }

    /// Sends a shot in its parts, in any order, or only the first of several.
    fn send(&self, socket: &Socket, index: u64, draw: &mut Draw, is_cut: bool) -> bool {
        let stride = self.bits.div_ceil(8) as usize;
        let Some(record) = self.shots.get(index as usize * stride..(index as usize + 1) * stride) else { return false };
        // Parts of whole bytes, so that each is a slice of the record.
        let count = self.parts.min(stride as u32).max(1 + u32::from(is_cut && stride > 1));
        let bytes = stride as u32 / count;
        let mut order: Vec<u32> = (0..count).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, draw.below(at as u64 + 1) as usize);
        }
        let mut datagram = Vec::with_capacity(128);
        for round in order.into_iter().take(if is_cut { 1 } else { count as usize }) {
            let from = round * bytes;
            let to = if round + 1 == count { stride as u32 } else { from + bytes };
            let part = Part {
                epoch: 0,
                session: self.session,
                sequence: self.first_sequence + index / self.streams,
                stream: (index % self.streams) as u32,
                round,
                is_last: round + 1 == count,
                first_bit: from * 8,
                bits: (to * 8).min(self.bits) - from * 8,
                payload: &record[from as usize..to as usize],
                soft: if round + 1 == count { self.soft_of(index) } else { &[] },
            };
            part.encode(&mut datagram);
            if !socket.send(&datagram) {
                return false;
            }
        }
        true
    }

    /// The soft bytes of a shot; none if they all say nothing, of every second shot.
    fn soft_of(&self, index: u64) -> &[u8] {
        let from = index as usize * self.soft_bytes;
        let own = &self.soft[from..from + self.soft_bytes];
        if index.is_multiple_of(2) && own.iter().all(|byte| *byte == 0) { &[] } else { own }
    }

    fn take(&self, bytes: &[u8], ledger: &mut Ledger, tally: &mut Tally) {
        match reply(bytes) {
            Some(Reply::Answer { session, sequence, stream, status, flips }) if session == self.session => {
                let index = sequence
                    .checked_sub(self.first_sequence)
                    .and_then(|number| number.checked_mul(self.streams)?.checked_add(u64::from(stream)))
                    .unwrap_or(u64::MAX);
                match status {
                    0 => ledger.answer(index, Answer::Exact(flips)),
                    1..=255 => ledger.answer(index, Answer::Error),
                    _ => tally.violation("a valid shot was refused", format!("{:?}", reply(bytes))),
                }
            }
            Some(Reply::Answer { .. }) => {
                tally.violation("an answer to another session", format!("{:?}", reply(bytes)))
            }
            Some(Reply::Welcome { .. }) => {}
            None => tally.violation("a datagram that is no answer", format!("{bytes:?}")),
        }
    }

    /// A datagram that is no shot, or one of an older session.
    fn nonsense(&self, draw: &mut Draw) -> Vec<u8> {
        let mut out = Vec::new();
        let payload = draw.bytes(self.bits.div_ceil(8) as usize);
        let part = Part {
            epoch: draw.below(3),
            session: draw.below(1000),
            sequence: draw.next(),
            stream: draw.below(self.streams + 3) as u32,
            round: draw.below(3) as u32,
            is_last: draw.one_in(2),
            first_bit: draw.below(30) as u32,
            bits: draw.below(40) as u32,
            payload: &payload,
            soft: &payload[..draw.below(payload.len() as u64 + 1) as usize],
        };
        part.encode(&mut out);
        match draw.below(4) {
            0 => out.truncate(draw.below(60) as usize),
            1 => {
                let count = draw.below(2_000) as usize;
                out = draw.bytes(count);
            }
            2 => {
                let at = draw.below(out.len() as u64) as usize;
                out[at] = draw.next() as u8;
                // The session stays an old one: a newer one would rightly take the streams.
                out[16..24].fill(0);
            }
            _ => {}
        }
        out
    }
}
