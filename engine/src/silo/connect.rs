//! Connections between the silos of one engine: links between arbiters, lanes between feeds,
//! endpoints between both.
//!
//! Made once, at Init; each silo is built with its own part. A restart replaces the parts of one
//! silo. Owns nothing afterwards. Bounds: a lane, two message rings and two request rings for each
//! ordered pair of silos.

use super::Attached;
use crate::arbiter::page::Silo;
use crate::arbiter::requests::endpoints;
use crate::code::Model;
use crate::commit::arbiter_driver::{Link, MembershipAck, MembershipEndpoint, MembershipEvent};
use crate::feed::cross_silo::failover::{SiloEvent, SiloEventEndpoint, SiloReply};
use crate::feed::cross_silo::{CrossSiloParts, lanes};
use crate::feed::requests::MoveRequests;
use crate::hot::mailbox::{MailboxReceiver, MailboxSender};
use std::sync::Arc;

/// The supervisor's ends of the mailboxes to one silo's feed and arbiter.
pub struct SiloNotifiers {
    pub(super) feed: (MailboxSender<SiloEvent>, MailboxReceiver<SiloReply>),
    pub(super) arbiter: (MailboxSender<MembershipEvent>, MailboxReceiver<MembershipAck>),
}

/// The connections of each silo, and the supervisor's ends.
pub struct Connected {
    /// One part for each silo.
    pub pieces: Vec<Attached>,
    /// For [`super::SiloSupervisor`].
    pub notifiers: Vec<SiloNotifiers>,
}

/// The connections of each of `silos` silos; none for a single silo.
pub fn connect(silos: u32, model: &Model, requests: &Arc<MoveRequests>) -> Connected {
    if silos < 2 {
        return Connected { pieces: (0..silos).map(|_| Attached::default()).collect(), notifiers: Vec::new() };
    }
    let count = silos as usize;
    let mut links: Vec<Vec<Link>> = (0..count).map(|_| Vec::with_capacity(count - 1)).collect();
    for low in 0..count {
        for high in low + 1..count {
            let (one, other) = Link::pair(Silo::new(low as u8), Silo::new(high as u8));
            links[low].push(one);
            links[high].push(other);
        }
    }
    let lanes = lanes(count, model.shot_words(), model.observable_words());
    let pieces = endpoints(count).into_iter().zip(lanes).zip(links);
    let mut notifiers = Vec::with_capacity(count);
    let pieces = pieces
        .map(|(((endpoint, arbiter_endpoint), (outs, ins)), links)| {
            let ((feed, events), (arbiter, membership)) = (SiloEventEndpoint::pair(), MembershipEndpoint::pair());
            notifiers.push(SiloNotifiers { feed, arbiter });
            let cross_silo = CrossSiloParts { endpoint, requests: Arc::clone(requests), outs, ins, events };
            Attached {
                gpu: None,
                links,
                cross_silo: Some(cross_silo),
                endpoint: Some(arbiter_endpoint),
                membership: Some(membership),
            }
        })
        .collect();
    Connected { pieces, notifiers }
}
