//! What came of a load: the silos' counts added up, and the pages at rest compared with what is true.

use super::member::{Member, Tally};
use super::{Shared, Truth};
use crate::arbiter::keeper::Counts;
use crate::arbiter::page::Response;
use crate::board::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// What came of it.
#[derive(Debug)]
pub struct Found {
    /// Decisions taken.
    pub decisions: u64,
    /// Time of one decision, the clock's own reading included.
    pub decision_ns: Histogram,
    /// Decisions by response.
    pub responses: BTreeMap<&'static str, u64>,
    /// Pages that arrived somewhere.
    pub transfers: u64,
    /// From the request that was granted to the page's arrival, at the requester.
    pub transfer_ns: Histogram,
    /// Writes committed.
    pub commits: u64,
    /// Transfers that were not acknowledged in time.
    pub in_doubt: u64,
    /// Messages that met a full ring, or a full frame.
    pub messages_lost: u64,
    /// Broken promises, one sentence each, with the page's history; the first of each silo and the state at the end.
    pub violations: Vec<String>,
}

pub(super) fn sum_up(members: &[Member], shared: &Shared) -> Found {
    let transfers_ns: Vec<u64> = members.iter().flat_map(|member| &member.tally.transfer_ns).copied().collect();
    let sum = |of: fn(&Tally) -> u64| members.iter().map(|member| of(&member.tally)).sum();
    let counted = |of: fn(&Counts) -> u64| members.iter().map(|member| of(member.keeper.counts())).sum::<u64>();
    let mut responses = BTreeMap::new();
    for (number, name) in Response::NAMES.into_iter().enumerate() {
        let count: u64 = members.iter().map(|member| member.keeper.counts().decisions[number]).sum();
        if count > 0 {
            responses.insert(name, count);
        }
    }
    let mut decision_ns = Histogram::default();
    for silo in 0..shared.load.silos {
        decision_ns.merge(&shared.board.arbiter(usize::from(silo)).decision.snapshot());
    }
    Found {
        decisions: responses.values().sum(),
        decision_ns,
        responses,
        transfers: counted(|counts| counts.arrived),
        transfer_ns: Histogram::of(&transfers_ns),
        commits: sum(|tally| tally.commits),
        in_doubt: counted(|counts| counts.doubted),
        messages_lost: members.iter().map(|member| member.floor.lost).sum::<u64>() + counted(|counts| counts.unheard),
        violations: violations(members, shared),
    }
}

fn violations(members: &[Member], shared: &Shared) -> Vec<String> {
    let mut violations: Vec<String> = members.iter().filter_map(|member| member.tally.violation.clone()).collect();
    let silos = usize::from(shared.load.silos);
    if members.len() < silos {
        violations.push(format!("{} of {silos} silos ended by a panic", silos - members.len()));
    }
    violations.extend((0..shared.load.pages).filter_map(|page| at_the_end(members, &shared.truth, page)).take(16));
    violations
}

/// What is wrong with `page` when all has settled.
fn at_the_end(members: &[Member], truth: &[Truth], page: u32) -> Option<String> {
    let owns = |member: &&Member| member.keeper.table().word(page).is_writable();
    let owners: Vec<&Member> = members.iter().filter(owns).collect();
    let last = truth[page as usize].last.load(Ordering::Relaxed);
    let value = |owner: &Member| owner.floor.values[page as usize];
    let wrong = match owners[..] {
        [owner] if value(owner) == last => return None,
        [owner] => format!("page {page} ends with value {}, the last is {last}", value(owner)),
        _ => format!("page {page} ends with {} owners, expected 1", owners.len()),
    };
    Some(members.iter().fold(wrong, |text, member| text + &told(member, page)))
}

/// The last transitions of `page` at one silo.
fn told(member: &Member, page: u32) -> String {
    let history = member.keeper.history(page).rev().take(4);
    let transitions: Vec<String> = history.map(|seen| format!("{} {:?}", seen.cause.words(), seen.word)).collect();
    format!("; silo {}: {}", member.floor.me.number(), transitions.join(" after "))
}
