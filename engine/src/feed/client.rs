//! The client of a live source: sends shots and receives answers.
//!
//! Owns the client's end of a socket. Used by `pinwheel send`, tests and benchmarks, each on a
//! thread of its own; never by the engine. Never blocks. Bounds: one datagram each way at a time.

mod cudaq;
#[cfg(target_os = "linux")]
mod region;

pub use cudaq::{CudaqClient, CudaqDecoders};
#[cfg(target_os = "linux")]
pub use region::RegionClient;

use super::address::SourceAddress;
use super::packet::{
    self, Answered, DATAGRAM_BYTES_MAX, Encoding, PAYLOAD_BYTES_MAX, Part, Position, ROUNDS_MAX, Reply, Welcome,
};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// An answer, as a client receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Stream.
    pub stream: u32,
    /// The number that the client gave the shot.
    pub sequence: u64,
    /// 0: answered; otherwise the error code.
    pub status: u16,
    /// From arrival to answer in the engine, in nanoseconds.
    pub latency_ns: u64,
    /// Observables, 64 to a word.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}

/// A connection that sends shots and receives answers.
pub trait Client: Send {
    /// The engine's welcome, once it has arrived.
    ///
    /// # Errors
    /// Errors of the system.
    fn welcome(&mut self) -> io::Result<Option<Welcome>>;

    /// Sends a shot, with `bits` in `b8` format. Returns `false` if there is no room yet, or no welcome;
    /// send the same shot again then, or another one by another number.
    ///
    /// # Errors
    /// Errors of the system; `bits` of another length than the welcome says.
    fn send(&mut self, stream: u32, sequence: u64, bits: &[u8]) -> io::Result<bool> {
        self.send_soft(stream, sequence, bits, &[])
    }

    /// As [`Client::send`], with the shot's soft bytes; none if `soft` is empty.
    ///
    /// # Errors
    /// As [`Client::send`]; `soft` of another length than the welcome says, through shared memory.
    fn send_soft(&mut self, stream: u32, sequence: u64, bits: &[u8], soft: &[u8]) -> io::Result<bool>;

    /// Whether parts of the last shot were sent, and others had no room.
    fn has_begun(&self) -> bool {
        false
    }

    /// Passes received answers to `take`; returns how many.
    ///
    /// # Errors
    /// Errors of the system.
    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize>;
}

/// Most answers that [`Client::receive`] passes on in one call.
pub const RECEIVED_MAX: usize = 64;

#[derive(Debug)]
enum Socket {
    Udp(std::net::UdpSocket),
    /// With the path that it is connected to.
    #[cfg(target_os = "linux")]
    Unix(std::os::unix::net::UnixDatagram, std::path::PathBuf),
}

impl Socket {
    fn udp(at: SocketAddr) -> io::Result<Socket> {
        let local = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = std::net::UdpSocket::bind(local)?;
        socket.connect(at)?;
        socket.set_nonblocking(true)?;
        Ok(Socket::Udp(socket))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Udp(socket) => socket.send(bytes),
            #[cfg(target_os = "linux")]
            Socket::Unix(socket, path) => match socket.send(bytes) {
                // Its engine has ended: whoever listens there now.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    socket.connect(path)?;
                    socket.send(bytes)
                }
                sent => sent,
            },
        }
    }

    /// The next datagram, put into `room`; `None` if there is none now.
    fn next<'a>(&self, room: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        let received = match self {
            Socket::Udp(socket) => socket.recv(room),
            #[cfg(target_os = "linux")]
            Socket::Unix(socket, _) => socket.recv(room),
        };
        match received {
            Ok(bytes) => Ok(Some(&room[..bytes])),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A client that uses a socket.
#[derive(Debug)]
pub struct SocketClient {
    socket: Socket,
    session: u64,
    parts: u32,
    /// A shot that had no room for all of its parts, and how many were sent.
    begun: ((u32, u64), u32),
    welcome: Option<Welcome>,
    out: Vec<u8>,
    part: Vec<u8>,
    incoming: Box<[u8]>,
}

impl SocketClient {
    /// Connects to the engine at `place`. `session` grows with each start; each shot is sent in
    /// `parts` parts: in more if it does not fit them, and in no more than it has bits.
    ///
    /// # Errors
    /// Errors of the system, or a `place` that is no socket on this system.
    pub fn connect(place: &SourceAddress, session: u64, parts: u32) -> io::Result<SocketClient> {
        let socket = match place {
            SourceAddress::Udp { at, .. } => Socket::udp(*at)?,
            #[cfg(target_os = "linux")]
            SourceAddress::Unix(path) => {
                let socket = std::os::unix::net::UnixDatagram::unbound()?;
                // The system chooses an abstract name, which nobody has to remove; answers come back to it.
                rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new_unnamed())?;
                socket.connect(path)?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket, path.clone())
            }
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such socket")),
        };
        Ok(SocketClient {
            socket,
            session: session.max(1),
            parts: parts.clamp(1, ROUNDS_MAX),
            begun: ((0, 0), 0),
            welcome: None,
            out: Vec::new(),
            part: Vec::new(),
            incoming: vec![0; DATAGRAM_BYTES_MAX].into(),
        })
    }

    /// Sends bytes unchanged, for tests with invalid datagrams.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<bool> {
        sent(self.socket.send(bytes))
    }

    /// Sends part `round` of a shot without soft bytes; `bits` holds the complete shot in `b8` format.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn send_part(&mut self, stream: u32, sequence: u64, bits: &[u8], round: u32) -> io::Result<bool> {
        self.send_soft_part((stream, sequence), bits, &[], round)
    }

    fn send_soft_part(
        &mut self,
        (stream, sequence): (u32, u64),
        bits: &[u8],
        soft: &[u8],
        round: u32,
    ) -> io::Result<bool> {
        let Some(welcome) = self.welcome else { return Ok(false) };
        check_width(bits, welcome.bits)?;
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
            soft: if position == Position::Last { soft } else { &[] },
        };
        debug_assert!(self.part.len() <= PAYLOAD_BYTES_MAX, "{} bytes", self.part.len());
        part.encode(&mut self.out);
        sent(self.socket.send(&self.out))
    }
}

/// Refuses a shot that is not as wide as the engine's.
fn check_width(bits: &[u8], expected_bits: u32) -> io::Result<()> {
    let expected = expected_bits.div_ceil(8) as usize;
    if bits.len() == expected {
        return Ok(());
    }
    let found = bits.len();
    let said =
        format!("found a shot of {found} bytes, expected {expected} for {expected_bits} bits, as the engine has");
    Err(io::Error::new(io::ErrorKind::InvalidInput, said))
}

/// The fewest parts of a shot that fit a datagram each; the last one has the soft bytes, too.
fn fewest_parts(welcome: &Welcome) -> u32 {
    let bytes = packet::payload_bytes(welcome.bits, welcome.encoding);
    let room = PAYLOAD_BYTES_MAX.saturating_sub(welcome.soft_bytes as usize).max(1);
    bytes.div_ceil(room as u64) as u32
}

/// Packs bits `range` of a `b8` record into `out`, from bit 0 on.
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

/// A full buffer or a missing listener is no error: the caller tries again.
fn sent(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if is_passing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, NotFound, WouldBlock};
    // A path that is not found is that of an engine that has ended.
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused | NotFound)
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

    fn send_soft(&mut self, stream: u32, sequence: u64, bits: &[u8], soft: &[u8]) -> io::Result<bool> {
        if self.begun.0 != (stream, sequence) {
            self.begun = ((stream, sequence), 0);
        }
        while self.begun.1 < self.parts {
            if !self.send_soft_part((stream, sequence), bits, soft, self.begun.1)? {
                return Ok(false);
            }
            self.begun.1 += 1;
        }
        self.begun.1 = 0;
        Ok(true)
    }

    fn has_begun(&self) -> bool {
        self.begun.1 > 0
    }

    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize> {
        let mut count = 0;
        for _ in 0..RECEIVED_MAX {
            let Some(datagram) = self.socket.next(&mut self.incoming)? else { break };
            match packet::reply(datagram) {
                Some(Reply::Welcome(welcome)) if welcome.session == self.session => {
                    // A part without a bit is none.
                    self.parts = self.parts.max(fewest_parts(&welcome)).min(welcome.bits.max(1));
                    self.welcome = Some(welcome);
                }
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
    let Answered { stream, sequence, status, latency_ns, flips, .. } = *answered;
    Received { stream, sequence, status, latency_ns, observables: received_bits(flips) }
}

fn received_bits(bytes: &[u8]) -> [u64; OBSERVABLE_WORDS_MAX] {
    let mut words = [0; OBSERVABLE_WORDS_MAX];
    for (place, byte) in bytes.iter().enumerate().take(OBSERVABLE_WORDS_MAX * 8) {
        words[place / 8] |= u64::from(*byte) << (place % 8 * 8);
    }
    words
}

/// Connects to the engine at `place` by socket or shared memory, whose regions are in `boards`.
/// `parts`: datagrams of a shot, for a socket; more if it does not fit them.
///
/// # Errors
/// Errors of the system that name the place.
pub fn connect(place: &SourceAddress, boards: &Path, session: u64, parts: u32) -> io::Result<Box<dyn Client>> {
    match place {
        SourceAddress::Udp { .. } | SourceAddress::Unix(_) => {
            Ok(Box::new(SocketClient::connect(place, session, parts)?))
        }
        SourceAddress::Cudaq { .. } => {
            let said = "CUDA-Q's protocol says nothing of a shot's width; give the decoders' configuration";
            Err(io::Error::new(io::ErrorKind::Unsupported, said))
        }
        #[cfg(target_os = "linux")]
        SourceAddress::Shm { name, .. } => Ok(Box::new(RegionClient::new(boards, name, session))),
        #[cfg(not(target_os = "linux"))]
        SourceAddress::Shm { .. } => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no shared memory"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{
        Client, CudaqClient, CudaqDecoders, DATAGRAM_BYTES_MAX, Encoding, Position, SocketClient, SourceAddress,
        Welcome, packet,
    };
    use crate::clock::Clock;
    use crate::feed::cudaq::frame;
    use crate::units::Nanos;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;

    /// An engine's socket, and a client that it has welcomed.
    fn welcomed(parts: u32, bits: u32, encoding: Encoding) -> (UdpSocket, SocketClient) {
        let engine = UdpSocket::bind("127.0.0.1:0").unwrap();
        let place = SourceAddress::Udp { at: engine.local_addr().unwrap(), allow: Vec::new() };
        let mut client = SocketClient::connect(&place, 7, parts).unwrap();
        let mut bytes = vec![0; 2 * DATAGRAM_BYTES_MAX];
        assert!(!client.send(0, 0, &[0]).unwrap(), "no shot before the welcome");
        assert_eq!(client.welcome().unwrap(), None);
        let (_, from) = engine.recv_from(&mut bytes).unwrap();
        let welcome = Welcome { epoch: 1, session: 7, streams: 1, observables: 1, bits, encoding, soft_bytes: 0 };
        let length = packet::write_welcome(&mut bytes, &welcome);
        engine.send_to(&bytes[..length], from).unwrap();
        while client.welcome().unwrap().is_none() {}
        while engine.set_nonblocking(true).is_ok() && engine.recv(&mut bytes).is_ok() {}
        engine.set_nonblocking(false).unwrap();
        (engine, client)
    }

    /// The parts in which a client sends a shot of so many bits, as the engine reads them.
    fn parts_sent(parts: u32, bits: u32, encoding: Encoding) -> u32 {
        let (engine, mut client) = welcomed(parts, bits, encoding);
        let mut bytes = vec![0; 2 * DATAGRAM_BYTES_MAX];
        let mut record = vec![0xff; bits.div_ceil(8) as usize];
        record.last_mut().into_iter().for_each(|last| *last >>= (8 - bits % 8) % 8);
        assert!(client.send_soft(0, 0, &record, &[]).unwrap());
        let (mut next_bit, mut count) = (0, 0);
        loop {
            let length = engine.recv(&mut bytes).unwrap();
            assert!(length <= DATAGRAM_BYTES_MAX, "{length} bytes");
            let packet::Request::Shot(part) = packet::request(&bytes[..length]).unwrap() else { continue };
            assert_eq!(part.first_bit, next_bit);
            (next_bit, count) = (next_bit + part.bits, count + 1);
            if part.position == Position::Last {
                break;
            }
        }
        assert_eq!(next_bit, bits);
        count
    }

    /// 16,384 outcomes of 32 bits are twice what a datagram holds.
    #[test]
    fn a_shot_that_is_wider_than_a_datagram_is_sent_in_parts() {
        assert_eq!(parts_sent(1, 16_384, Encoding::Int32), 2);
    }

    /// Without bits a part is malformed, and the shot is lost.
    #[test]
    fn a_shot_is_sent_in_no_more_parts_than_it_has_bits() {
        assert_eq!(parts_sent(30, 24, Encoding::Bits), 24);
    }

    /// Else its parts would follow those of the shot before, in one shot.
    #[test]
    fn another_shot_after_one_that_had_no_room_for_all_parts_is_sent_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        let engine = UnixDatagram::bind(&path).unwrap();
        let mut client = SocketClient::connect(&SourceAddress::Unix(path), 7, 2).unwrap();
        assert_eq!(client.welcome().unwrap(), None);
        let mut bytes = vec![0; DATAGRAM_BYTES_MAX];
        let (_, from) = engine.recv_from(&mut bytes).unwrap();
        let encoding = Encoding::Bits;
        let welcome = Welcome { epoch: 1, session: 7, streams: 2, observables: 1, bits: 16, encoding, soft_bytes: 0 };
        let length = packet::write_welcome(&mut bytes, &welcome);
        engine.send_to_addr(&bytes[..length], &from).unwrap();
        while client.welcome().unwrap().is_none() {}
        let mut sequence = 0;
        while client.send(0, sequence, &[1, 2]).unwrap() {
            sequence += 1;
        }
        // Room for one datagram at a time, until the second part of a shot has none.
        while !client.has_begun() {
            engine.recv(&mut bytes).unwrap();
            sequence += u64::from(client.send(0, sequence, &[1, 2]).unwrap());
        }
        engine.set_nonblocking(true).unwrap();
        while engine.recv(&mut bytes).is_ok() {}
        assert!(client.send(1, 0, &[3, 4]).unwrap() && !client.has_begun());
        let mut rounds = Vec::new();
        while let Ok(length) = engine.recv(&mut bytes) {
            let Some(packet::Request::Shot(part)) = packet::request(&bytes[..length]) else { continue };
            rounds.push((part.stream, part.round, part.payload.to_vec()));
        }
        assert_eq!(rounds, [(1, 0, vec![3]), (1, 1, vec![4])]);
    }

    #[test]
    fn a_shot_of_another_width_or_of_no_decoder_is_refused_in_a_sentence() {
        let (_engine, mut client) = welcomed(1, 24, Encoding::Bits);
        for other in [&[0; 2][..], &[0; 4]] {
            let said = client.send(0, 0, other).unwrap_err().to_string();
            assert!(said.contains(&format!("{} bytes, expected 3 for 24 bits", other.len())), "{said}");
        }
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let connect = |numbers| {
            let decoders = CudaqDecoders { numbers, bits: 3, observables: 3 };
            CudaqClient::connect(at, decoders, frame::SLOT_BYTES, 1)
        };
        assert!(connect(vec![]).is_err());
        let mut client = connect(vec![7]).unwrap();
        for (stream, bits, expected) in
            [(0, &[][..], "0 bytes, expected 1"), (1, &[0], "stream 1, expected one below 1")]
        {
            let said = client.send(stream, 0, bits).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    /// Calls to a port that nobody has have no replies.
    #[test]
    fn a_client_of_cuda_q_greets_until_its_server_is_there() {
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let decoders = CudaqDecoders { numbers: vec![0], bits: 3, observables: 3 };
        let mut client = CudaqClient::connect(at, decoders, frame::SLOT_BYTES, 1).unwrap();
        for _ in 0..300 {
            assert_eq!(client.welcome().unwrap(), None);
        }
        let server = UdpSocket::bind(at).unwrap();
        // The refusal of an earlier call may come in place of this one.
        (0..2).for_each(|_| assert_eq!(client.welcome().unwrap(), None));
        server.set_nonblocking(true).unwrap();
        let mut bytes = [0; frame::SLOT_BYTES as usize];
        let (length, from) = server.recv_from(&mut bytes).unwrap();
        let request = frame::request(&bytes[..length], frame::SLOT_BYTES).unwrap();
        let mut reply = [0; frame::SLOT_BYTES as usize];
        let length = frame::write_reply(&mut reply, (request.id, 0, frame::Status::Ok), &[], 0, 0);
        server.send_to(&reply[..length], from).unwrap();
        while client.welcome().unwrap().is_none() {}
        assert!(client.send(0, 0, &[5]).unwrap());
        // It ends without a reply to these calls, and another one begins there.
        let mut sequence = 0;
        while client.send(0, sequence + 1, &[5]).unwrap() {
            sequence += 1;
        }
        let clock = Clock::machine();
        let (began, limit) = (clock.ticks(), clock.rate().ticks(Nanos(60_000_000_000)));
        while !client.send(0, sequence + 1, &[5]).unwrap() {
            assert!(clock.ticks().since(began) < limit, "no more than {sequence} shots are sent");
        }
    }
}
