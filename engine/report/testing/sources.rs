//! A synthetic socket with one sender.

use super::{SHOTS, SyntheticFaults};
use pinwheel_engine::board::snapshot::{SourcePeer, SourceState, SourceStream, SourceView};
use pinwheel_engine::streams::SourceKind;

/// No source without faults; with all faults a socket whose one sender has fallen silent.
pub(super) fn sources(tenths: u64, trouble: SyntheticFaults) -> Vec<SourceView> {
    if trouble == SyntheticFaults::None {
        return Vec::new();
    }
    let accepted = SHOTS * tenths;
    let stream = SourceStream {
        accepted,
        answered: accepted - 7,
        lag: 7,
        accepted_last: accepted + 11,
        answered_last: accepted + 4,
        silent_ns: Some(2_300_000_000),
        gaps: 12,
        duplicates: 3,
        reordered: 2,
        malformed: 1,
        incomplete: 4,
        stale: 5,
        restarts: 1,
        ..SourceStream::default()
    };
    let peer = SourcePeer {
        address: "127.0.0.1:41234".to_owned(),
        silent_ns: 2_300_000_000,
        shots: accepted,
        answers: accepted - 9,
        dropped: 2,
    };
    vec![SourceView {
        kind: SourceKind::Udp,
        name: "udp:127.0.0.1:7000".to_owned(),
        state: SourceState::Silent,
        silent_ns: Some(2_300_000_000),
        epoch: 0x1234_5678_9abc,
        width_bits: 120,
        buffer_bytes: 425_984,
        received: accepted + 40,
        accepted,
        answered: accepted - 9,
        answers_dropped: 2,
        malformed: 6,
        foreign: 8,
        other_epoch: 3,
        unknown_streams: 1,
        kernel_drops: 17,
        errors: 0,
        lane_waits: 5,
        forwarded: 0,
        forwarded_answered: 0,
        taken_in: 0,
        unrecorded: 0,
        decoding_max: 0,
        peers_count: 1,
        peers: vec![peer],
        client: None,
        streams: vec![stream],
    }]
}
