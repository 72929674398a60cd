//! Computed fields of the arbiter's view.

use crate::board::get;
use crate::board::layout::ArbiterBlock;
use crate::board::reading::Now;
use crate::board::snapshot::{LeaseView, PortView, TransferView, TransitionView};
use pinwheel_edge::page::{Cause, Hint, Word};

/// Marks a used row.
const ROW: u64 = 1 << 54;

/// A transfer's row.
pub fn open_row(page: u32, receiver: u8, epoch: u32, is_in_doubt: bool) -> u64 {
    u64::from(page) | u64::from(receiver) << 20 | u64::from(epoch) << 26 | u64::from(is_in_doubt) << 53 | ROW
}

/// A lease's row.
pub fn lease_row(page: u32, hint: Hint) -> u64 {
    u64::from(page) | (hint as u64) << 20 | ROW
}

fn page_of(row: u64) -> u32 {
    (row & 0xf_ffff) as u32
}

impl ArbiterBlock {
    pub(in crate::board) fn open(&self, at: usize, now: &Now<'_>) -> Option<TransferView> {
        let row = get(&self.open[at]);
        (row & ROW != 0).then(|| {
            let (page, receiver, epoch) = (page_of(row), (row >> 20 & 0x3f) as u8, (row >> 26 & 0x7ff_ffff) as u32);
            let (age_ns, cancels) = (now.age_ns(&self.open_since[at]), get(&self.open_cancels[at]));
            let remedy = (row >> 53 & 1 == 1).then(|| remedy((page, receiver, epoch), age_ns, cancels));
            TransferView { page, receiver, epoch, age_ns, cancels, remedy }
        })
    }

    pub(in crate::board) fn lease(&self, at: usize, now: &Now<'_>) -> Option<LeaseView> {
        let row = get(&self.leases[at]);
        (row & ROW != 0).then(|| LeaseView {
            page: page_of(row),
            hint: Hint::ALL[(row >> 20 & 3) as usize],
            left_ns: now.left_ns(&self.lease_ends[at]),
        })
    }

    pub(in crate::board) fn transition(&self, at: usize, now: &Now<'_>) -> Option<TransitionView> {
        let ticks = get(&self.history_at[at]);
        let cause = Cause::ALL.get(get(&self.history_causes[at]) as usize)?;
        let word = Word::from_bits(get(&self.history_words[at]));
        (ticks != 0).then(|| TransitionView {
            at_ns: now.at_ns(ticks),
            cause: *cause,
            state: word.state().name(),
            owner: word.owner().number(),
            epoch: word.epoch().number(),
        })
    }

    pub(in crate::board) fn ports(&self) -> Vec<PortView> {
        let port = |silo: usize| PortView {
            silo: silo as u8,
            wins: get(&self.port_wins[silo]),
            refusals: get(&self.port_refusals[silo]),
            age: get(&self.port_ages[silo]),
        };
        (0..self.port_wins.len()).map(port).filter(|port| port.wins > 0 || port.refusals > 0).collect()
    }
}

/// Advice for a transfer in doubt.
fn remedy((page, receiver, epoch): (u32, u8, u32), age_ns: u64, cancels: u64) -> String {
    let waits = age_ns / 1_000;
    if age_ns < 10_000_000 {
        return format!(
            "page {page}: granted to silo {receiver} in epoch {epoch}, no ACK for {waits} us, {cancels} CANCELs sent; \
             an answer is expected within one frame of that silo; wait"
        );
    }
    format!(
        "page {page}: granted to silo {receiver} in epoch {epoch}, no ACK for {waits} us after {cancels} CANCELs; expected \
         its arbiter to answer: check the threads of silo {receiver} (late: it answers when it runs again; died: end and \
         join its threads, then its successor takes its pages). Until then no silo writes the page, and its shots are answered with an error"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{lease_row, open_row};
    use crate::board::{Board, Place, Shape, set};
    use crate::clock::Clock;
    use pinwheel_edge::page::{Epoch, Hint};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_transfer_in_doubt_says_what_was_found_what_was_expected_and_what_to_do() {
        let shape = Shape { threads: 1, silos: 2, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        let clock = Clock::virtual_time(Arc::new(AtomicU64::new(50_000_000)));
        assert!(board.snapshot(&clock).silos[1].arbiter.is_none(), "no arbiter runs there");
        let block = board.arbiter(1);
        set(&block.pages, 8);
        set(&block.open[3], open_row((1 << 20) - 1, 63, Epoch::MAX.number(), true));
        set(&block.open[4], open_row(5, 1, 2, false));
        set(&block.open_since[3], 1_000_000);
        set(&block.open_cancels[3], 9);
        set(&block.leases[0], lease_row(7, Hint::Lock));
        set(&block.lease_ends[0], 50_000_400);
        set(&block.port_refusals[2], 4);
        let view = board.snapshot(&clock).silos[1].arbiter.clone().unwrap();
        let [doubt, open] = &view.transfers[..] else { panic!("{:?}", view.transfers) };
        assert_eq!((doubt.page, doubt.receiver, doubt.epoch), ((1 << 20) - 1, 63, Epoch::MAX.number()));
        let remedy = doubt.remedy.as_deref().unwrap();
        for part in ["silo 63", "49000 us after 9 CANCELs", "expected", "join its threads"] {
            assert!(remedy.contains(part), "{remedy}");
        }
        assert_eq!((open.page, open.remedy.as_ref()), (5, None));
        assert_eq!((view.leases[0].page, view.leases[0].hint, view.leases[0].left_ns), (7, Hint::Lock, 400));
        assert_eq!((view.ports.len(), view.ports[0].silo, view.history_page), (1, 2, None));
    }
}
