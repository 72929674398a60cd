//! A client that speaks the protocol of CUDA-Q's decoding server.
//!
//! Owns one socket. A shot is a `reset_decoder`, an `enqueue_syndromes` for each part and a
//! `get_corrections`; decoders are streams. The reset keeps from a shot what a client before, a lost
//! call or a failed decode left in the decoder. The protocol has no welcome: the client is told what
//! the decoders are, and takes a reply to its first `reset_decoder` for one. Never blocks. Bounds:
//! [`CALLS_MAX`] calls and [`CALLS_BYTES_MAX`] on their way.

use super::{Client, RECEIVED_MAX, Received, Socket, check_width, pack, received_bits, sent};
use crate::clock::Clock;
use crate::feed::cudaq::frame::{self, Call};
use crate::feed::packet::{Encoding, Welcome};
use crate::units::{Nanos, Ticks};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Most calls on their way.
const CALLS_MAX: u32 = 64;
/// Most bytes of calls on their way, unless one alone is longer: they fit the buffer that a system gives a socket, and
/// so do their replies. The system counts about twice as many.
const CALLS_BYTES_MAX: u32 = 64 * 1024;
/// Time without a reply after which those that are missing do not come any more: the server has ended, or started
/// again.
const LOST_AFTER: Nanos = Nanos(500_000_000);

/// A client of CUDA-Q's decoders.
#[derive(Debug)]
pub struct CudaqClient {
    socket: Socket,
    welcome: Welcome,
    is_welcome: bool,
    /// Numbers of the decoders, in the order of the streams.
    decoders: Vec<i64>,
    slot_bytes: u32,
    /// Most calls on their way in such slots.
    calls_max: u32,
    parts: u32,
    /// Calls sent of a shot that had no room for all of them.
    calls_sent: u32,
    id: u32,
    /// Number of the call whose reply came last. Replies come in order.
    replied: u32,
    clock: Clock,
    /// When a call was sent, or a reply came.
    heard: Ticks,
    /// Requests of corrections on their way: number, stream and sequence.
    asked: VecDeque<(u32, u32, u64)>,
    out: Vec<u8>,
    part: Vec<u8>,
    incoming: Box<[u8]>,
}

/// The decoders that a client calls.
#[derive(Clone, Debug)]
pub struct CudaqDecoders {
    /// Their numbers, in the order of the streams.
    pub numbers: Vec<i64>,
    /// Measurements of a volume.
    pub bits: u32,
    /// Corrections of a decoder.
    pub observables: u32,
}

/// Most calls on their way in slots of `slot_bytes`.
fn calls_max(slot_bytes: u32) -> u32 {
    (CALLS_BYTES_MAX / slot_bytes.max(1)).clamp(1, CALLS_MAX)
}

impl CudaqClient {
    /// Connects to the server at `at`. Each shot is sent in `parts` calls.
    ///
    /// # Errors
    /// Errors of the system, or no decoder.
    pub fn connect(at: SocketAddr, decoders: CudaqDecoders, slot_bytes: u32, parts: u32) -> io::Result<CudaqClient> {
        let CudaqDecoders { numbers, bits, observables } = decoders;
        if numbers.is_empty() {
            let said = "found no decoder, expected one for each stream; name them";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        let streams = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let encoding = Encoding::Bits;
        let welcome = Welcome { epoch: 0, session: 0, streams, observables, bits, encoding, soft_bytes: 0 };
        Ok(CudaqClient {
            socket: Socket::udp(at)?,
            welcome,
            is_welcome: false,
            decoders: numbers,
            slot_bytes,
            calls_max: calls_max(slot_bytes),
            parts: parts.clamp(1, bits.max(1)),
            calls_sent: 0,
            id: 0,
            replied: 0,
            clock: Clock::machine(),
            heard: Ticks(0),
            asked: VecDeque::with_capacity(CALLS_MAX as usize),
            out: Vec::new(),
            part: Vec::new(),
            incoming: vec![0; slot_bytes as usize].into(),
        })
    }

    /// Sends a call in a full slot, as NVIDIA's client does. Returns `false` if there is no room yet.
    fn call(&mut self, decoder: i64, call: &Call<'_>) -> io::Result<bool> {
        if self.id.wrapping_sub(self.replied) >= self.calls_max {
            if self.clock.rate().nanos(self.clock.ticks().since(self.heard)) < LOST_AFTER {
                return Ok(false);
            }
            self.replied = self.id;
        }
        let id = self.id.wrapping_add(1);
        frame::write_request(id, decoder, call, &mut self.out);
        if self.out.len() > self.slot_bytes as usize {
            let said = format!(
                "found a call of {} bytes, expected at most the slot's {}; send more parts, or larger slots",
                self.out.len(),
                self.slot_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        self.out.resize(self.slot_bytes as usize, 0);
        let is_sent = sent(self.socket.send(&self.out))?;
        if is_sent {
            (self.id, self.heard) = (id, self.clock.ticks());
        }
        Ok(is_sent)
    }
}

impl Client for CudaqClient {
    fn welcome(&mut self) -> io::Result<Option<Welcome>> {
        if !self.is_welcome {
            let first = self.decoders[0];
            // Until its server is there, a call has no reply: it is not on its way.
            self.replied = self.id;
            self.call(first, &Call::Reset)?;
            self.receive(&mut |_| ())?;
        }
        Ok(self.is_welcome.then_some(self.welcome))
    }

    fn send_soft(&mut self, stream: u32, sequence: u64, bits: &[u8], _soft: &[u8]) -> io::Result<bool> {
        let Some(decoder) = self.decoders.get(stream as usize).copied() else {
            let said = format!("found stream {stream}, expected one below {}, each a decoder", self.decoders.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        };
        check_width(bits, self.welcome.bits)?;
        let (width, parts) = (u64::from(self.welcome.bits), u64::from(self.parts));
        let edge = |part: u32| (width * u64::from(part) / parts) as u32;
        if self.calls_sent == 0 {
            if !self.call(decoder, &Call::Reset)? {
                return Ok(false);
            }
            self.calls_sent = 1;
        }
        while self.calls_sent <= self.parts {
            let (from, to) = (edge(self.calls_sent - 1), edge(self.calls_sent));
            let mut part = std::mem::take(&mut self.part);
            pack(bits, from..to, Encoding::Bits, &mut part);
            let sent = self.call(decoder, &Call::Enqueue { bits: to - from, packed: &part });
            self.part = part;
            if !sent? {
                return Ok(false);
            }
            self.calls_sent += 1;
        }
        let return_bits = i64::from(self.welcome.observables);
        let sent = self.call(decoder, &Call::Corrections { return_bits, is_clearing: true })?;
        if sent {
            self.asked.push_back((self.id, stream, sequence));
            self.calls_sent = 0;
        }
        Ok(sent)
    }

    /// The status of an answer is that of the protocol.
    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize> {
        let mut count = 0;
        for _ in 0..RECEIVED_MAX {
            let Some(datagram) = self.socket.next(&mut self.incoming)? else { break };
            let Some(reply) = frame::reply(datagram) else { continue };
            (self.is_welcome, self.heard) = (true, self.clock.ticks());
            // Replies to calls that no longer count come late.
            if reply.id.wrapping_sub(self.replied) <= CALLS_MAX {
                self.replied = reply.id;
            }
            // Replies to the other calls tell nothing else; those that are missing do not come any more.
            let Some(place) = self.asked.iter().position(|(id, ..)| *id == reply.id) else { continue };
            let Some((_, stream, sequence)) = self.asked.drain(..=place).next_back() else { continue };
            let status = reply.status as u16;
            take(&Received { stream, sequence, status, latency_ns: 0, observables: received_bits(reply.result) });
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::calls_max;
    use crate::feed::cudaq::frame::{SLOT_BYTES, SLOT_BYTES_MAX};

    /// Of 64 calls of 65,507 bytes the system lost some, or their replies.
    #[test]
    fn calls_on_their_way_and_their_replies_fit_a_sockets_buffer() {
        assert_eq!([SLOT_BYTES, 1_024, 4_096, SLOT_BYTES_MAX].map(calls_max), [64, 64, 16, 1]);
    }
}
