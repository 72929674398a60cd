//! The client of a shared-memory region, in Rust: for `pinwheel send`, tests and benchmarks.
//!
//! Owns the client's mapping and its end of the ring. One thread. Never waits. Bounds: the slots.

use super::{Client, RECEIVED_MAX, Received, check_width};
use crate::feed::packet::{Encoding, Welcome};
use crate::feed::shm::layout::{ANSWER_HEAD_WORDS, SOFT, STATE_LIVE, Shape, client, engine};
use crate::feed::shm::region::Region;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use pinwheel_edge::slot::outside::ClientEnd;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A client that uses a shared-memory region.
#[derive(Debug)]
pub struct RegionClient {
    directory: PathBuf,
    name: String,
    session: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    region: Region,
    shape: Shape,
    end: ClientEnd,
    is_granted: bool,
    /// The oldest shot whose answer was not read.
    oldest: u64,
    heartbeat: u64,
    shot: Vec<u64>,
    answer: Vec<u64>,
}

impl RegionClient {
    /// A client of region `name`, which may not exist yet.
    pub fn new(directory: &Path, name: &str, session: u64) -> RegionClient {
        RegionClient { directory: directory.to_owned(), name: name.to_owned(), session: session.max(1), open: None }
    }

    /// The region, once it is open, for tests that violate its rules.
    pub fn region(&self) -> Option<(&Region, &Shape)> {
        self.open.as_ref().map(|open| (&open.region, &open.shape))
    }
}

impl Client for RegionClient {
    fn welcome(&mut self) -> io::Result<Option<Welcome>> {
        // What an engine that was killed has left may have been opened: the next engine makes its own.
        self.open.take_if(|open| !open.is_granted && open.region.is_removed());
        if self.open.is_none() {
            let Some((region, shape)) = Region::open(&self.directory, &self.name)? else { return Ok(None) };
            // Relaxed: these words stand alone; U3 has granted the ring to this client.
            region.word(client::PID).store(u64::from(std::process::id()), Ordering::Relaxed);
            region.word(client::SESSION).store(self.session, Ordering::Relaxed);
            self.open = Some(Open::new(region, shape));
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        open.beat();
        let is_live = open.region.word(engine::STATE).load(Ordering::Relaxed) == STATE_LIVE;
        open.is_granted = is_live && open.end.is_granted(&open.region.outside(&open.shape), self.session);
        let Shape { bits, encoding, streams, observables, soft_bytes, .. } = open.shape;
        let epoch = open.region.word(engine::EPOCH).load(Ordering::Relaxed);
        let session = self.session;
        let welcome = Welcome { epoch, session, streams, observables, bits, encoding, soft_bytes };
        Ok(open.is_granted.then_some(welcome))
    }

    fn send_soft(&mut self, stream: u32, sequence: u64, bits: &[u8], soft: &[u8]) -> io::Result<bool> {
        let Some(open) = self.open.as_mut().filter(|open| open.is_granted) else { return Ok(false) };
        check_width(bits, open.shape.bits)?;
        let expected = open.shape.soft_bytes as usize;
        if !soft.is_empty() && soft.len() != expected {
            let found = format!("found {} soft bytes of a shot, expected {expected}, as the region has", soft.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, found));
        }
        open.beat();
        Ok(open.send(stream, sequence, bits, soft))
    }

    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> io::Result<usize> {
        let Some(open) = self.open.as_mut().filter(|open| open.is_granted) else { return Ok(0) };
        open.beat();
        Ok(open.receive(take))
    }
}

impl Open {
    fn new(region: Region, shape: Shape) -> Open {
        Open {
            region,
            end: ClientEnd::new(shape.slots as usize),
            is_granted: false,
            oldest: 0,
            heartbeat: 0,
            shot: vec![0; shape.shot_words() - 1],
            answer: vec![0; shape.answer_words() - 1],
            shape,
        }
    }

    fn beat(&mut self) {
        self.heartbeat += 1;
        self.region.word(client::HEARTBEAT).store(self.heartbeat, Ordering::Relaxed);
    }

    fn send(&mut self, stream: u32, sequence: u64, bits: &[u8], soft: &[u8]) -> bool {
        // Relaxed: a word that stands alone. An engine that drains takes no shot that is written from then on.
        let is_live = self.region.word(engine::STATE).load(Ordering::Relaxed) == STATE_LIVE;
        if !is_live || !self.end.is_vacant() {
            return false;
        }
        self.shot.fill(0);
        self.shot[0] = sequence;
        let (payload, soft_words) = self.shot[1..].split_at_mut(self.shape.payload_words());
        soft.iter().enumerate().for_each(|(at, byte)| soft_words[at / 8] |= u64::from(*byte) << (at % 8 * 8));
        match self.shape.encoding {
            Encoding::Bits => {
                bits.iter().enumerate().for_each(|(at, byte)| payload[at / 8] |= u64::from(*byte) << (at % 8 * 8));
            }
            Encoding::Int32 => (0..self.shape.bits as usize)
                .for_each(|at| payload[at / 2] |= u64::from(bits[at / 8] >> (at % 8) & 1) << (at % 2 * 32)),
        }
        let stream = if soft.is_empty() { stream } else { stream | SOFT };
        self.end.publish(&self.region.outside(&self.shape), stream, &self.shot)
    }

    fn receive(&mut self, take: &mut dyn FnMut(&Received)) -> usize {
        let outside = self.region.outside(&self.shape);
        let (mut count, mut looks) = (0, 0);
        for position in self.oldest..self.end.published() {
            if !self.end.waits(position) {
                continue;
            }
            if count == RECEIVED_MAX || looks == 2 * RECEIVED_MAX {
                break;
            }
            looks += 1;
            let Some(status) = self.end.collect(&outside, position, &mut self.answer) else { continue };
            take(&received(status, &self.answer));
            count += 1;
        }
        while self.oldest < self.end.published() && !self.end.waits(self.oldest) {
            self.oldest += 1;
        }
        count
    }
}

fn received(status: u32, answer: &[u64]) -> Received {
    let mut observables = [0; OBSERVABLE_WORDS_MAX];
    let flips = &answer[ANSWER_HEAD_WORDS - 1..];
    observables[..flips.len()].copy_from_slice(flips);
    Received {
        stream: answer[1] as u32,
        sequence: answer[0],
        status: status as u16,
        latency_ns: answer[2],
        observables,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Client, RegionClient};
    use crate::feed::packet::Encoding;
    use crate::feed::shm::layout::{Shape, engine};
    use crate::feed::shm::region::{Region, path_of};
    use std::sync::atomic::Ordering;

    #[test]
    fn a_client_of_what_a_killed_engine_left_goes_on_to_the_next_engines_region() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { slots: 8, bits: 120, encoding: Encoding::Bits, streams: 4, observables: 1, soft_bytes: 0 };
        let path = path_of(folder.path(), "a");
        let killed = Region::create(folder.path(), "a", None, &shape, 7).unwrap();
        let left = std::fs::read(&path).unwrap();
        drop(killed);
        std::fs::write(&path, left).unwrap();
        let mut client = RegionClient::new(folder.path(), "a", 5);
        let mut epoch = || {
            assert_eq!(client.welcome().unwrap(), None, "no engine grants the ring here");
            client.region().unwrap().0.word(engine::EPOCH).load(Ordering::Relaxed)
        };
        assert_eq!(epoch(), 7);
        let _next = Region::create(folder.path(), "a", None, &shape, 8).unwrap();
        assert_eq!(epoch(), 8);
    }
}
