//! Messages between two silos about one page, and what each does at the silo that it reaches.
//!
//! Runs on the arbiter's thread, and in the model that visits every order of them (`tests/ownership.rs`). Owns no
//! state: that is the page's word. Bounds: each message causes one reply at most. Never resends by itself: a look at the
//! deadline does ([`look`]).
//!
//! # Why
//!
//! *No queue, no memory of requests.* Whoever is refused asks again. Whoever loses a message loses time only: the granter
//! asks until the receiver has said *installed* or *fenced*, and nothing but that word, or the receiver's death, ends its
//! doubt.

use crate::arbiter::page::{
    Contended, Due, Epoch, Failed, Grant, How, Moment, PageTable, Receipt, Request, Response, Signals, Silo,
};

/// What one silo tells another about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// OWNERSHIP_REQ.
    Request(Request),
    /// The refusal of a request.
    Refused(Response),
    /// GRANT; PAGE_DATA travels with it.
    Grant(Grant),
    /// The page is installed.
    Ack(Epoch),
    /// The granter doubts: answer ACK, or fence the epoch and answer CANCEL_ACK.
    Cancel(Epoch),
    /// The epoch is fenced.
    CancelAck(Epoch),
}

/// What has changed at the silo that a message reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that anybody else must know of.
    Nothing,
    /// The page departs: copy its bytes beside the GRANT.
    Departs(How),
    /// It has arrived, in this epoch.
    Arrived(Epoch),
    /// It has left: the route flips to that silo, in this epoch.
    Left(Silo, Epoch),
    /// It stays after all: the route is this silo's, in this epoch.
    Kept(Epoch),
    /// Its owner has refused.
    Refused(Response),
}

/// What a message leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// What to send back to whom it came from.
    pub reply: Option<Message>,
    /// What has changed here.
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

/// A message from silo `from` about `page` arrives. `put` puts a grant's bytes in place.
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

/// What the decision of a request leads to.
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
    let news = match response {
        Response::NotOwner { owner, epoch } => Some((owner, epoch)),
        Response::Stale { epoch } => Some((from, epoch)),
        _ => None,
    };
    // A race lost here costs one more refusal, which says the same again.
    if let Some((owner, epoch)) = news
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

/// A look at a page's deadline: what to send to whom, if a transfer is in doubt.
#[must_use]
pub fn look(table: &PageTable, page: u32, now: Moment) -> Option<(Silo, Message)> {
    match table.due(page, now) {
        Ok(Due::Cancel(to, epoch)) => Some((to, Message::Cancel(epoch))),
        Ok(Due::Nothing | Due::Cooled) | Err(Contended) => None,
    }
}
