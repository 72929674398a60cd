//! Computed fields of live sources' views.

use crate::board::get;
use crate::board::layout::{PeerRow, SourceBlock, StreamSourceBlock};
use crate::board::reading::{Now, if_any, one_less};
use crate::board::snapshot::{SourceClient, SourceDecoder, SourceState};
use crate::streams::DecoderState;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Time without a part, or without a heartbeat of the client, after which a source is silent.
const SILENT_NS: u64 = 1_000_000_000;

impl SourceBlock {
    pub(in crate::board) fn client(&self, now: &Now<'_>) -> Option<SourceClient> {
        if_any(&self.attached).map(|attached| SourceClient {
            pid: get(&self.client_pid),
            heartbeat_age_ns: now.age_ns(&self.client_seen),
            attached,
        })
    }

    pub(in crate::board) fn state(&self, now: &Now<'_>) -> SourceState {
        let client = self.client(now);
        let beats = client.is_none_or(|client| client.heartbeat_age_ns < SILENT_NS);
        match (get(&self.state), now.age_if_any(&self.received_ticks)) {
            (0, _) => SourceState::Waiting,
            (1, None) if client.is_none() => SourceState::Unused,
            (1, Some(silent)) if silent < SILENT_NS && beats => SourceState::Flowing,
            (1, _) => SourceState::Silent,
            _ => SourceState::Closed,
        }
    }
}

impl StreamSourceBlock {
    pub(in crate::board) fn decoder(&self) -> Option<SourceDecoder> {
        Some(SourceDecoder {
            state: DecoderState::from_code(get(&self.decoder_state))?,
            number: get(&self.decoder).cast_signed(),
            port: get(&self.port) as u16,
            enqueues: get(&self.enqueues),
            gets: get(&self.gets),
            resets: get(&self.resets),
            ok: get(&self.replies_ok),
            bad_request: get(&self.replies_bad_request),
            internal_error: get(&self.replies_internal_error),
            not_ready: get(&self.replies_not_ready),
            caller: one_less(&self.caller),
        })
    }
}

impl PeerRow {
    pub(in crate::board) fn address(&self) -> String {
        let [high, low] = self.address.each_ref().map(get);
        let port = get(&self.port) as u16;
        match get(&self.family) {
            4 => SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(low as u32)), port).to_string(),
            6 => SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))), port)
                .to_string(),
            _ => self.path.read_if_any().unwrap_or_else(|| "without an address".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use crate::board::snapshot::SourceState;
    use crate::board::{self, Board, Place, Shape};
    use crate::clock::Clock;
    use crate::streams::SourceKind;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_source_is_silent_without_shots_and_heartbeats_of_its_client() {
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
