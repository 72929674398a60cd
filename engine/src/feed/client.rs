//! The other side of a live source: who sends shots and takes answers.
//!
//! Owns the client's end of a socket. Used by `pinwheel send`, tests and benchmarks, each on a thread of its own; never
//! by the engine. Never blocks. Bounds: one datagram each way at a time.

use super::packet::{
    self, Answered, DATAGRAM_BYTES_MAX, Encoding, PAYLOAD_BYTES_MAX, Part, Position, ROUNDS_MAX, Reply, Welcome,
};
use super::place::Place;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use std::io;

/// An answer, as a client gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Stream.
    pub stream: u32,
    /// The number that the client gave the shot.
    pub sequence: u64,
    /// 0: answered; else why not.
    pub status: u16,
    /// From arrival to answer in the engine, nanoseconds.
    pub latency_ns: u64,
    /// Observables, 64 to a word.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}

/// What shots are sent through.
pub trait Client {
    /// Who listens, once it is known.
    ///
    /// # Errors
    /// The system's refusal.
    fn welcome(&mut self) -> io::Result<Option<Welcome>>;

    /// Sends a shot: `bits` as `b8` has them. `false`: there is no room yet; the same shot has to come again.
    ///
    /// # Errors
    /// The system's refusal.
    fn send(&mut self, stream: u32, sequence: u64, bits: &[u8]) -> io::Result<bool>;

    /// Hands on the answers that are there; returns how many.
    ///
    /// # Errors
    /// The system's refusal.
    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize>;
}

/// Answers that [`Client::receive`] hands on at a time, at most.
pub const RECEIVED_MAX: usize = 64;

#[derive(Debug)]
enum Socket {
    Udp(std::net::UdpSocket),
    #[cfg(target_os = "linux")]
    Unix(std::os::unix::net::UnixDatagram),
}

impl Socket {
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Udp(socket) => socket.send(bytes),
            #[cfg(target_os = "linux")]
            Socket::Unix(socket) => socket.send(bytes),
        }
    }

    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Udp(socket) => socket.recv(bytes),
            #[cfg(target_os = "linux")]
            Socket::Unix(socket) => socket.recv(bytes),
        }
    }
}

/// A client behind a socket.
#[derive(Debug)]
pub struct SocketClient {
    socket: Socket,
    session: u64,
    parts: u32,
    /// Of the shot that found no room for all of them.
    parts_sent: u32,
    welcome: Option<Welcome>,
    out: Vec<u8>,
    part: Vec<u8>,
    incoming: Box<[u8]>,
}

impl SocketClient {
    /// A client of the engine at `place`. `session` grows with each start; each shot goes as so many parts.
    ///
    /// # Errors
    /// The system's refusal, or a place that is no socket here.
    pub fn connect(place: &Place, session: u64, parts: u32) -> io::Result<SocketClient> {
        let socket = match place {
            Place::Udp { at, .. } => {
                let local = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = std::net::UdpSocket::bind(local)?;
                socket.connect(at)?;
                socket.set_nonblocking(true)?;
                Socket::Udp(socket)
            }
            #[cfg(target_os = "linux")]
            Place::Unix(path) => {
                use std::os::linux::net::SocketAddrExt;
                use std::os::unix::net::{SocketAddr, UnixDatagram};
                // A name that the kernel keeps and nobody has to remove; answers come back to it.
                let name = format!("pinwheel-send-{}-{session:x}", std::process::id());
                let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket)
            }
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "no socket on this system")),
        };
        Ok(SocketClient {
            socket,
            session: session.max(1),
            parts: parts.clamp(1, ROUNDS_MAX),
            parts_sent: 0,
            welcome: None,
            out: Vec::new(),
            part: Vec::new(),
            incoming: vec![0; DATAGRAM_BYTES_MAX].into(),
        })
    }

    /// Sends bytes as they are: what no engine should take.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<bool> {
        sent(self.socket.send(bytes))
    }

    /// Sends part `round` of so many of a shot: `bits` as `b8` has the whole of it.
    ///
    /// # Errors
    /// The system's refusal.
    ///
    /// # Panics
    /// If nobody has been welcomed.
    pub fn send_part(&mut self, stream: u32, sequence: u64, bits: &[u8], round: u32) -> io::Result<bool> {
        let welcome = self.welcome.expect("a shot's width is known from the welcome");
        let width = u64::from(welcome.bits);
        let edge = |round: u32| (width * u64::from(round) / u64::from(self.parts)) as u32;
        let (first_bit, end) = (edge(round), edge(round + 1));
        pack(bits, first_bit..end, welcome.encoding, &mut self.part);
        let position = if round + 1 == self.parts { Position::Last } else { Position::Inner };
        let part = Part {
            epoch: welcome.epoch,
            session: self.session,
            sequence,
            stream,
            round,
            position,
            first_bit,
            bits: end - first_bit,
            encoding: welcome.encoding,
            payload: &self.part,
        };
        debug_assert!(self.part.len() <= PAYLOAD_BYTES_MAX, "{} bytes", self.part.len());
        part.encode(&mut self.out);
        sent(self.socket.send(&self.out))
    }
}

/// Bits `range` of a `b8` record, from bit 0 of `out` on.
fn pack(bits: &[u8], range: std::ops::Range<u32>, encoding: Encoding, out: &mut Vec<u8>) {
    out.clear();
    let bit = |index: u32| bits[index as usize / 8] >> (index % 8) & 1;
    match encoding {
        Encoding::Bits => {
            out.resize((range.len()).div_ceil(8), 0);
            for (place, index) in range.enumerate() {
                out[place / 8] |= bit(index) << (place % 8);
            }
        }
        Encoding::Int32 => range.for_each(|index| out.extend_from_slice(&[bit(index), 0, 0, 0])),
    }
}

/// A full buffer, and a listener that is not there yet, are no errors: the caller tries again.
fn sent(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if is_passing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused)
}

impl Client for SocketClient {
    fn welcome(&mut self) -> io::Result<Option<Welcome>> {
        if self.welcome.is_none() {
            packet::encode_hello(self.session, &mut self.out);
            sent(self.socket.send(&self.out))?;
            self.receive(&mut |_| ())?;
        }
        Ok(self.welcome)
    }

    fn send(&mut self, stream: u32, sequence: u64, bits: &[u8]) -> io::Result<bool> {
        while self.parts_sent < self.parts {
            if !self.send_part(stream, sequence, bits, self.parts_sent)? {
                return Ok(false);
            }
            self.parts_sent += 1;
        }
        self.parts_sent = 0;
        Ok(true)
    }

    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize> {
        let mut count = 0;
        for _ in 0..RECEIVED_MAX {
            let bytes = match self.socket.receive(&mut self.incoming) {
                Ok(bytes) => bytes,
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error),
            };
            match packet::reply(&self.incoming[..bytes]) {
                Some(Reply::Welcome(welcome)) if welcome.session == self.session => self.welcome = Some(welcome),
                Some(Reply::Answer(answered)) if answered.session == self.session => {
                    take(&received(&answered));
                    count += 1;
                }
                _ => {}
            }
        }
        Ok(count)
    }
}

fn received(answered: &Answered<'_>) -> Received {
    let mut observables = [0; OBSERVABLE_WORDS_MAX];
    for (place, byte) in answered.flips.iter().enumerate().take(OBSERVABLE_WORDS_MAX * 8) {
        observables[place / 8] |= u64::from(*byte) << (place % 8 * 8);
    }
    let Answered { stream, sequence, status, latency_ns, .. } = *answered;
    Received { stream, sequence, status, latency_ns, observables }
}

/// A client of the engine at `place`, whatever carries it. `parts`: datagrams of a shot, where there are any.
///
/// # Errors
/// The system's refusal, in words of the place.
pub fn connect(place: &Place, session: u64, parts: u32) -> io::Result<Box<dyn Client>> {
    match place {
        Place::Udp { .. } | Place::Unix(_) => Ok(Box::new(SocketClient::connect(place, session, parts)?)),
        #[cfg(target_os = "linux")]
        Place::Shm { name, .. } => {
            Ok(Box::new(super::shm::client::RegionClient::new(&crate::board::directory(), name, session)))
        }
        #[cfg(not(target_os = "linux"))]
        Place::Shm { .. } => Err(io::Error::new(io::ErrorKind::Unsupported, "no shared memory on this system")),
    }
}
