//! The result of a load: the silos' counts added up, and the final pages compared with their actual
//! state.

use super::member::{Member, Tally};
use super::{Shared, Truth};
use crate::arbiter::directory::Counts;
use crate::arbiter::page::Response;
use crate::board::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The result of a load.
#[derive(Debug)]
pub struct LoadResult {
    /// Number of decisions.
    pub decisions: u64,
    /// Time of one decision, the clock reading included.
    pub decision_ns: Histogram,
    /// Number of decisions, by response.
    pub responses: BTreeMap<&'static str, u64>,
    /// Number of pages that arrived.
    pub transfers: u64,
    /// From a granted request to the page's arrival at the requester.
    pub transfer_ns: Histogram,
    /// Number of committed writes.
    pub commits: u64,
    /// Number of transfers that were not acknowledged in time.
    pub in_doubt: u64,
    /// Messages lost to a full ring or a full frame.
    pub messages_lost: u64,
    /// Violated invariants, one sentence each, with the page's history; the first of each silo and
    /// the state at the end.
    pub violations: Vec<String>,
}

pub(super) fn sum_up(members: &[Member], shared: &Shared) -> LoadResult {
    let transfers_ns: Vec<u64> = members.iter().flat_map(|member| &member.tally.transfer_ns).copied().collect();
    let sum = |of: fn(&Tally) -> u64| members.iter().map(|member| of(&member.tally)).sum();
    let counted = |of: fn(&Counts) -> u64| members.iter().map(|member| of(member.directory.counts())).sum::<u64>();
    let mut responses = BTreeMap::new();
    for (number, name) in Response::NAMES.into_iter().enumerate() {
        let count: u64 = members.iter().map(|member| member.directory.counts().decisions[number]).sum();
        if count > 0 {
            responses.insert(name, count);
        }
    }
    let mut decision_ns = Histogram::default();
    for silo in 0..shared.load.silos {
        decision_ns.merge(&shared.board.arbiter(usize::from(silo)).decision.snapshot());
    }
    LoadResult {
        decisions: responses.values().sum(),
        decision_ns,
        responses,
        transfers: counted(|counts| counts.arrived),
        transfer_ns: Histogram::of(&transfers_ns),
        commits: sum(|tally| tally.commits),
        in_doubt: counted(|counts| counts.doubted),
        messages_lost: members.iter().map(|member| member.context.lost).sum::<u64>() + counted(|counts| counts.unheard),
        violations: violations(members, shared),
    }
}

fn violations(members: &[Member], shared: &Shared) -> Vec<String> {
    let mut violations: Vec<String> = members.iter().filter_map(|member| member.tally.violation.clone()).collect();
    let silos = usize::from(shared.load.silos);
    if members.len() < silos {
        violations.push(format!("{} of {silos} silos panicked", silos - members.len()));
    }
    violations.extend((0..shared.load.pages).filter_map(|page| at_the_end(members, &shared.truth, page)).take(16));
    violations
}

/// Describes an error in the final state of `page`.
fn at_the_end(members: &[Member], truth: &[Truth], page: u32) -> Option<String> {
    let owns = |member: &&Member| member.directory.table().word(page).is_writable();
    let owners: Vec<&Member> = members.iter().filter(owns).collect();
    let last = truth[page as usize].last.load(Ordering::Relaxed);
    let value = |owner: &Member| owner.context.values[page as usize];
    let wrong = match owners[..] {
        [owner] if value(owner) == last => return None,
        [owner] => format!("page {page} ends with value {}, expected {last}", value(owner)),
        _ => format!("page {page} ends with {} owners, expected 1", owners.len()),
    };
    Some(members.iter().fold(wrong, |text, member| text + &history(member, page)))
}

/// Describes the last transitions of `page` in one silo.
fn history(member: &Member, page: u32) -> String {
    let history = member.directory.history(page).rev().take(4);
    let transitions: Vec<String> = history.map(|seen| format!("{} {:?}", seen.cause.words(), seen.word)).collect();
    format!("; silo {}: {}", member.context.me.number(), transitions.join(" after "))
}
