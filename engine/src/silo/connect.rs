//! What runs between the silos of one engine: links between arbiters, lanes between feeds, desks between both.
//!
//! Made once, at Init, and handed out by pieces: each silo is wired with its own. Owns nothing afterwards. Bounds: a lane, two
//! letter rings and two errand rings for each ordered pair of silos.

use super::Attached;
use crate::arbiter::errand::desks;
use crate::arbiter::page::Silo;
use crate::code::Model;
use crate::decode::steward::{Heard, Link, Post, Tidings};
use crate::feed::crossing::{Crossing, lanes};
use crate::feed::requests::MoveRequests;
use crate::feed::rescue::{News, NewsDesk, Told as FeedTold};
use crate::hot::post::{Sends, Takes};
use std::sync::Arc;

/// What tells a silo which others live: the ends of who knows.
pub struct Told {
    pub(super) feed: (Sends<News>, Takes<FeedTold>),
    pub(super) steward: (Sends<Tidings>, Takes<Heard>),
}

/// The pieces of each silo, and who tells them of each other.
pub struct Connected {
    /// Each silo is wired with its own.
    pub pieces: Vec<Attached>,
    /// For [`super::Lives`].
    pub told: Vec<Told>,
}

/// The pieces of each of `silos` silos; none where there is a single one.
#[must_use]
pub fn connect(silos: u32, model: &Model, requests: &Arc<MoveRequests>) -> Connected {
    if silos < 2 {
        return Connected { pieces: (0..silos).map(|_| Attached::default()).collect(), told: Vec::new() };
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
    let lanes = lanes(count, model.detector_words(), model.observable_words());
    let pieces = desks(count).into_iter().zip(lanes).zip(links);
    let mut told = Vec::with_capacity(count);
    let pieces = pieces
        .map(|(((desk, arbiter), (outs, ins)), links)| {
            let ((feed, news), (steward, post)) = (NewsDesk::pair(), Post::pair());
            told.push(Told { feed, steward });
            let crossing = Crossing { desk, requests: Arc::clone(requests), outs, ins, news };
            Attached { gpu: None, links, crossing: Some(crossing), desk: Some(arbiter), post: Some(post) }
        })
        .collect();
    Connected { pieces, told }
}
