//! A synthetic arbiter.

use super::{SyntheticFaults, times};
use pinwheel_edge::page::Response;
use pinwheel_edge::page::{Cause, Hint};
use pinwheel_engine::board::snapshot::{ArbiterView, LeaseView, PortView, TransferView, TransitionView};

/// An arbiter under contention; with faults one grant is in doubt.
pub fn arbiter(tenths: u64, trouble: SyntheticFaults) -> ArbiterView {
    let bad = trouble == SyntheticFaults::All;
    let transfer = |page: u32, age_ns, remedy: Option<&str>| TransferView {
        page,
        receiver: 1,
        epoch: 40 + page,
        age_ns,
        cancels: if remedy.is_some() { 1_203 } else { 0 },
        remedy: remedy.map(str::to_owned),
    };
    let doubt = "page 7: granted to silo 1 in epoch 47, no ACK for 12000 us after 1203 CANCELs; expected \
                 its arbiter to answer: check the threads of silo 1 (late: it answers when it runs again; died: end and \
                 join its threads, then its successor takes its pages). Until then no silo writes the page, and its \
                 shots are answered with an error";
    let mut transfers = vec![transfer(3, 1_900, None)];
    transfers.extend(bad.then(|| transfer(7, 12_000_000, Some(doubt))));
    let seen = |i: u64| TransitionView {
        at_ns: tenths * 100_000_000 - 9_000 * (16 - i),
        cause: Cause::ALL[i as usize % 8],
        state: ["TRANSFERRING", "TRANSFERRING", "NOT_OWNER", "IDLE", "IN_DOUBT", "IDLE", "NOT_OWNER", "LEASED"]
            [i as usize % 8],
        owner: (i % 2) as u8,
        epoch: 31 + i as u32,
    };
    ArbiterView {
        pages: 1_024,
        states: vec![
            ("IDLE", 480),
            ("LOCAL_HOT", 21),
            ("LEASED", 2),
            ("TRANSFERRING", 1),
            ("NOT_OWNER", 520 - u64::from(bad)),
            ("IN_DOUBT", u64::from(bad)),
        ],
        counted_age_ns: 81_000_000,
        decisions: Response::NAMES
            .into_iter()
            .enumerate()
            .map(|(i, name)| (name, tenths * (11 - i as u64) * 1_000))
            .collect(),
        forced: u64::from(bad),
        left: tenths * 4_000,
        arrived: tenths * 4_001,
        kept: tenths,
        doubted: tenths + u64::from(bad),
        cancels: tenths + 1_203 * u64::from(bad),
        taken_over: 512 * u64::from(bad),
        torn: u64::from(bad),
        unheard: u64::from(bad),
        ports: vec![
            PortView { silo: 1, wins: tenths * 4_000, refusals: tenths * 900, age: 0 },
            PortView { silo: 2, wins: tenths * 10, refusals: tenths * 7_000, age: 5 },
        ],
        transfers_open: transfers.len() as u64,
        transfers,
        leases: vec![
            LeaseView { page: 12, hint: Hint::Lock, left_ns: 41_000 },
            LeaseView { page: 900, hint: Hint::Lease, left_ns: 3_100_000_000 },
        ],
        history_page: Some(7),
        history: (0..16).map(seen).collect(),
        decision: times(tenths, 31),
        transfer: times(tenths, 2_900),
    }
}
