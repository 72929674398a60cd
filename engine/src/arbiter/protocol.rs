//! Messages between two silos about one page, and their effect at the receiving silo.
//!
//! Runs on the arbiter's thread, and in the model that visits every order of messages
//! (`tests/ownership.rs`). Owns no state beyond the page's word. Bounds: each message causes one
//! reply at most. Resends only when a deadline is checked ([`look`]).
//!
//! # Why
//!
//! *No queue, no memory of requests.* A refused requester asks again. A lost message costs only
//! time: the granter asks until the receiver answers *installed* or *fenced*. Only that answer, or
//! the receiver's death, ends a transfer in doubt.

use crate::arbiter::page::{
    Contended, Due, Epoch, Failed, Grant, How, Moment, PageTable, Receipt, Request, Response, Signals, Silo,
};

/// A message from one silo to another about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// OWNERSHIP_REQ.
    Request(Request),
    /// The refusal of a request.
    Refused(Response),
    /// GRANT, sent with PAGE_DATA.
    Grant(Grant),
    /// The page is installed.
    Ack(Epoch),
    /// The granter has no ACK: answer ACK, or fence the epoch and answer CANCEL_ACK.
    Cancel(Epoch),
    /// The epoch is fenced.
    CancelAck(Epoch),
}

/// Effect of a message at the receiving silo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change that other parts need to know of.
    Nothing,
    /// The page departs: send its bytes with the GRANT.
    Departs(How),
    /// The page has arrived, in this epoch.
    Arrived(Epoch),
    /// The page has left: the route flips to that silo, in this epoch.
    Left(Silo, Epoch),
    /// The page stays: the route points to this silo, in this epoch.
    Kept(Epoch),
    /// The page's owner has refused.
    Refused(Response),
}

/// Result of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// Reply to the sender.
    pub reply: Option<Message>,
    /// Change at this silo.
    pub change: Change,
}

impl Outcome {
    const NOTHING: Outcome = Outcome { reply: None, change: Change::Nothing };

    const fn reply(message: Message) -> Outcome {
        Outcome { reply: Some(message), change: Change::Nothing }
    }

    const fn change(change: Change) -> Outcome {
        Outcome { reply: None, change }
    }
}

/// Handles a message from silo `from` about `page`. `put` installs a grant's bytes.
pub fn receive(
    table: &PageTable,
    page: u32,
    (from, message): (Silo, &Message),
    signals: Signals,
    now: Moment,
    put: impl FnOnce(),
) -> Outcome {
    match *message {
        Message::Request(request) => requested(&request, table.decide(page, &request, signals, now)),
        Message::Refused(response) => refused(table, page, from, response),
        Message::Grant(grant) => receipt(table.install(page, &grant, now, put), grant.epoch),
        Message::Cancel(epoch) => receipt(table.cancel(page, from, epoch), epoch),
        Message::Ack(epoch) => match table.acknowledged(page, from, epoch) {
            Ok(true) => Outcome::change(Change::Left(from, epoch)),
            Ok(false) | Err(Contended) => Outcome::NOTHING,
        },
        Message::CancelAck(epoch) => match table.reclaim(page, Failed::Cancelled { from, epoch }) {
            Ok(true) => Outcome::change(Change::Kept(epoch)),
            Ok(false) | Err(Contended) => Outcome::NOTHING,
        },
    }
}

/// The outcome of a decided request.
pub fn requested(request: &Request, response: Response) -> Outcome {
    match response {
        Response::Granted { epoch, how } if how != How::Here => {
            let grant = Grant { epoch, hint: request.hint, ttl_us: request.ttl_us };
            Outcome { reply: Some(Message::Grant(grant)), change: Change::Departs(how) }
        }
        response => Outcome::reply(Message::Refused(response)),
    }
}

fn refused(table: &PageTable, page: u32, from: Silo, response: Response) -> Outcome {
    let learnt = match response {
        Response::NotOwner { owner, epoch } => Some((owner, epoch)),
        Response::Stale { epoch } => Some((from, epoch)),
        _ => None,
    };
    // A lost race costs one more refusal, which carries the same information.
    if let Some((owner, epoch)) = learnt
        && owner != table.silo()
    {
        let _ = table.learn(page, owner, epoch);
    }
    Outcome::change(Change::Refused(response))
}

fn receipt(receipt: Result<Receipt, Contended>, epoch: Epoch) -> Outcome {
    match receipt {
        Ok(Receipt::Installed) => Outcome { reply: Some(Message::Ack(epoch)), change: Change::Arrived(epoch) },
        Ok(Receipt::Again) => Outcome::reply(Message::Ack(epoch)),
        Ok(Receipt::Fenced) => Outcome::reply(Message::CancelAck(epoch)),
        Ok(Receipt::Dropped) | Err(Contended) => Outcome::NOTHING,
    }
}

/// Checks a page's deadline; returns the message to send and its receiver, if a transfer is in
/// doubt.
pub fn look(table: &PageTable, page: u32, now: Moment) -> Option<(Silo, Message)> {
    match table.due(page, now) {
        Ok(Due::Cancel(to, epoch)) => Some((to, Message::Cancel(epoch))),
        Ok(Due::Nothing | Due::Cooled) | Err(Contended) => None,
    }
}
