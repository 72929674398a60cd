//! From the board's words to live sources.

use super::Reader;
use crate::board::layout::PEERS_SHOWN;
use crate::board::snapshot::{SourceClient, SourceKind, SourcePeer, SourceState, SourceStream, SourceView};
use crate::board::{PeerRow, get};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicU64;

/// Without a part, or a beat of its client's heart, for so long, a source is silent.
const SILENT_NS: u64 = 1_000_000_000;

impl Reader<'_> {
    pub(super) fn sources(&self) -> Vec<SourceView> {
        let block = self.board.source();
        let Some(kind) = SourceKind::from_code(get(&block.kind)) else { return Vec::new() };
        let client = (get(&block.attached) > 0).then(|| SourceClient {
            pid: get(&block.client_pid),
            heartbeat_age_ns: self.age_ns(&block.client_seen),
            attached: get(&block.attached),
        });
        let silent_ns = self.age_if_any(&block.received_ticks);
        let beats = client.is_none_or(|client| client.heartbeat_age_ns < SILENT_NS);
        let state = match (get(&block.state), silent_ns) {
            (0, _) => SourceState::Waiting,
            (1, None) if client.is_none() => SourceState::Unused,
            (1, Some(silent)) if silent < SILENT_NS && beats => SourceState::Flowing,
            (1, _) => SourceState::Silent,
            _ => SourceState::Closed,
        };
        let peers_count = get(&block.peers_count);
        let shown = (peers_count as usize).min(PEERS_SHOWN);
        vec![SourceView {
            kind,
            name: block.name.read(),
            state,
            silent_ns,
            epoch: get(&block.epoch),
            width_bits: get(&block.width_bits),
            buffer_bytes: get(&block.buffer_bytes),
            received: get(&block.received),
            accepted: get(&block.accepted),
            answered: get(&block.answered),
            answers_dropped: get(&block.answers_dropped),
            malformed: get(&block.malformed),
            foreign: get(&block.foreign),
            other_epoch: get(&block.other_epoch),
            unknown_streams: get(&block.unknown_streams),
            kernel_drops: get(&block.kernel_drops),
            errors: get(&block.errors),
            lane_waits: get(&block.lane_waits),
            peers_count,
            peers: block.peers[..shown].iter().map(|row| self.peer(row)).collect(),
            client,
            streams: (0..self.board.shape().streams).map(|stream| self.stream_source(stream)).collect(),
        }]
    }

    fn age_if_any(&self, ticks: &AtomicU64) -> Option<u64> {
        (get(ticks) != 0).then(|| self.age_ns(ticks))
    }

    fn peer(&self, row: &PeerRow) -> SourcePeer {
        let [high, low] = [&row.address[0], &row.address[1]].map(get);
        let port = get(&row.port) as u16;
        let address = match get(&row.family) {
            4 => SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(low as u32)), port).to_string(),
            6 => SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))), port)
                .to_string(),
            _ => {
                Some(row.path.read()).filter(|path| !path.is_empty()).unwrap_or_else(|| "without an address".to_owned())
            }
        };
        SourcePeer {
            address,
            silent_ns: self.age_ns(&row.seen),
            shots: get(&row.shots),
            answers: get(&row.answers),
            dropped: get(&row.dropped),
        }
    }

    fn stream_source(&self, stream: u32) -> SourceStream {
        let block = self.board.stream_source(stream as usize);
        // The answers first: the lag is then never negative.
        let answered = get(&block.answered);
        let accepted = get(&block.accepted);
        SourceStream {
            id: stream,
            accepted,
            answered,
            lag: accepted.saturating_sub(answered),
            accepted_last: get(&block.accepted_last),
            answered_last: get(&block.answered_last),
            silent_ns: self.age_if_any(&block.received_ticks),
            gaps: get(&block.gaps),
            duplicates: get(&block.duplicates),
            reordered: get(&block.reordered),
            malformed: get(&block.malformed),
            incomplete: get(&block.incomplete),
            stale: get(&block.stale),
            restarts: get(&block.restarts),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use crate::board::snapshot::{SourceKind, SourceState};
    use crate::board::{self, Board, Place, Shape};
    use crate::clock::Clock;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_source_is_silent_without_parts_and_without_a_beat_of_its_clients_heart() {
        let nanos = Arc::new(AtomicU64::new(1_000));
        let clock = Clock::virtual_time(Arc::clone(&nanos));
        let shape = Shape { threads: 1, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 2 };
        let board = Board::create(shape, Place::Private).unwrap();
        let state = || board.snapshot(&clock).sources.first().map(|source| source.state);
        let after = |ns: u64| {
            nanos.fetch_add(ns, Ordering::Relaxed);
            state()
        };
        assert_eq!(state(), None, "there is none");
        let block = board.source();
        board::set(&block.kind, SourceKind::Shm.code());
        assert_eq!(state(), Some(SourceState::Waiting));
        board::set(&block.state, 1);
        assert_eq!(state(), Some(SourceState::Unused));
        let now = |word: &AtomicU64| board::set(word, nanos.load(Ordering::Relaxed));
        now(&block.received_ticks);
        assert_eq!(after(10), Some(SourceState::Flowing));
        assert_eq!(after(2_000_000_000), Some(SourceState::Silent));
        board::set(&block.attached, 1);
        now(&block.client_seen);
        now(&block.received_ticks);
        assert_eq!(after(10), Some(SourceState::Flowing));
        nanos.fetch_add(2_000_000_000, Ordering::Relaxed);
        now(&block.received_ticks);
        assert_eq!(after(10), Some(SourceState::Silent), "its client's heart stands still");
        let source = &board.snapshot(&clock).sources[0];
        assert_eq!(source.client.unwrap().heartbeat_age_ns, 2_000_000_020);
        board::set(&block.state, 2);
        assert_eq!(state(), Some(SourceState::Closed));
    }
}
