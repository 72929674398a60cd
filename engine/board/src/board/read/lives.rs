//! A silo's life as a picture.

use super::Reader;
use crate::board::get;
use crate::board::snapshot::{LifeView, SiloState};

impl Reader<'_> {
    pub(super) fn life(&self, silo: usize) -> LifeView {
        let block = self.board.life(silo);
        LifeView {
            state: SiloState::from_code(get(&block.state)),
            age_ns: if get(&block.since) == 0 { 0 } else { self.age_ns(&block.since) },
            epoch: get(&block.epoch),
            deaths: get(&block.deaths),
            rejoins: get(&block.rejoins),
            drains: get(&block.drains),
            errored: get(&block.errored),
            heir: get(&block.heir).checked_sub(1).map(|heir| heir as u32),
            left: get(&block.left),
            elsewhere: block.elsewhere.snapshot(),
            answered_elsewhere: block.answered.snapshot(),
            rejoin: block.rejoin.snapshot(),
            why: block.why.read(),
        }
    }
}
