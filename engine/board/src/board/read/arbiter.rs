//! The arbiter's block as a picture.

use super::Reader;
use crate::board::layout::ARBITER_ROWS;
use crate::board::snapshot::{ArbiterView, HintName, LeaseView, PageCause, PortView, TransferView, TransitionView};
use crate::board::{ArbiterBlock, get};
use crate::units::Ticks;
use pinwheel_edge::page::{Hint, Response, State, Word};

/// Marks a row in use.
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

impl Reader<'_> {
    pub(super) fn arbiter(&self, silo: usize) -> Option<ArbiterView> {
        let block = self.board.arbiter(silo);
        let pages = get(&block.pages);
        if pages == 0 {
            return None;
        }
        let named = |names: &[&'static str], words: &[std::sync::atomic::AtomicU64]| {
            names.iter().copied().zip(words.iter().map(get)).collect()
        };
        Some(ArbiterView {
            pages,
            states: named(&State::ALL.map(State::name), &block.states),
            counted_age_ns: self.age_ns(&block.counted_ticks),
            decisions: named(&Response::NAMES, &block.decisions),
            forced: get(&block.forced),
            left: get(&block.left),
            arrived: get(&block.arrived),
            kept: get(&block.kept),
            doubted: get(&block.doubted),
            cancels: get(&block.cancels),
            inherited: get(&block.inherited),
            torn: get(&block.torn),
            unheard: get(&block.unheard),
            ports: ports(block),
            transfers_open: get(&block.open_count),
            transfers: (0..ARBITER_ROWS).filter_map(|row| self.transfer(block, row)).collect(),
            leases: (0..ARBITER_ROWS).filter_map(|row| self.lease(block, row)).collect(),
            history_page: get(&block.history_page).checked_sub(1).map(|page| page as u32),
            history: (0..ARBITER_ROWS).filter_map(|row| self.transition(block, row)).collect(),
            decision: block.decision.snapshot(),
            transfer: block.transfer.snapshot(),
        })
    }

    fn transfer(&self, block: &ArbiterBlock, at: usize) -> Option<TransferView> {
        let row = get(&block.open[at]);
        (row & ROW != 0).then(|| {
            let (page, receiver, epoch) = (page_of(row), (row >> 20 & 0x3f) as u8, (row >> 26 & 0x7ff_ffff) as u32);
            let (age_ns, cancels) = (self.age_ns(&block.open_since[at]), get(&block.open_cancels[at]));
            let remedy = (row >> 53 & 1 == 1).then(|| remedy((page, receiver, epoch), age_ns, cancels));
            TransferView { page, receiver, epoch, age_ns, cancels, remedy }
        })
    }

    fn lease(&self, block: &ArbiterBlock, at: usize) -> Option<LeaseView> {
        let row = get(&block.leases[at]);
        (row & ROW != 0).then(|| LeaseView {
            page: page_of(row),
            hint: [HintName::Default, HintName::Lock, HintName::Lease, HintName::Migrate][(row >> 20 & 3) as usize],
            left_ns: self.clock.rate().nanos(Ticks(get(&block.lease_ends[at])).since(self.now)).0,
        })
    }

    fn transition(&self, block: &ArbiterBlock, at: usize) -> Option<TransitionView> {
        let ticks = get(&block.history_at[at]);
        let cause = PageCause::ALL.get(get(&block.history_causes[at]) as usize)?;
        let word = Word::from_bits(get(&block.history_words[at]));
        (ticks != 0).then(|| TransitionView {
            at_ns: self.at_ns(ticks),
            cause: *cause,
            state: word.state().name(),
            owner: word.owner().number(),
            epoch: word.epoch().number(),
        })
    }
}

fn ports(block: &ArbiterBlock) -> Vec<PortView> {
    let port = |silo: usize| PortView {
        silo: silo as u8,
        wins: get(&block.port_wins[silo]),
        refusals: get(&block.port_refusals[silo]),
        age: get(&block.port_ages[silo]),
    };
    (0..block.port_wins.len()).map(port).filter(|port| port.wins + port.refusals > 0).collect()
}

/// What was found of a transfer in doubt, what was expected, what to do.
fn remedy((page, receiver, epoch): (u32, u8, u32), age_ns: u64, cancels: u64) -> String {
    let waits = age_ns / 1_000;
    if age_ns < 10_000_000 {
        return format!(
            "page {page}: granted to silo {receiver} in epoch {epoch}, no ACK for {waits} us, {cancels} CANCELs sent; \
             expected an answer within one frame of that silo: wait, it ends the doubt by itself"
        );
    }
    format!(
        "page {page}: granted to silo {receiver} in epoch {epoch}, no ACK for {waits} us after {cancels} CANCELs; expected \
         its arbiter to answer: look in threads for silo {receiver} (late: it ends the doubt when it runs again; died: end and \
         join its threads, then its heir takes its pages). Nobody writes the page until then; its shots are answered with an error"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{lease_row, open_row};
    use crate::board::snapshot::HintName;
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
        assert_eq!((view.leases[0].page, view.leases[0].hint, view.leases[0].left_ns), (7, HintName::Lock, 400));
        assert_eq!((view.ports.len(), view.ports[0].silo, view.history_page), (1, 2, None));
    }
}
