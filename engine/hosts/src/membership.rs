//! Which hosts there are, and what is known of each.
//!
//! Pure: presence, descriptions and the time in, states out. Used by the bridge's thread. Bounds:
//! [`HOSTS_MAX`] hosts; a further one takes the place of one that is gone, or is not taken up.
//!
//! ```text
//!  present ─▶ UP ─── no description for SUSPECT_AFTER ──▶ SUSPECT ── presence withdrawn ─▶ GONE
//!             │ ◀───────────── a description ──────────────┘                               ▲
//!             ├── it says that it drains ─▶ DRAINING ─── presence withdrawn ───────────────┤
//!             └── presence withdrawn (its process ended, or the link was cut) ─────────────┘
//! ```
//!
//! A host that starts again has another incarnation: a row of its own state, under the same name.

use crate::description::{Description, Offer, Unlike};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most hosts of a cluster beside this one.
pub const HOSTS_MAX: usize = 64;
/// Without a description for this long, a host is suspect.
pub const SUSPECT_AFTER_NS: u64 = 500_000_000;
/// Round trips that a host's figures are of.
const TRIPS: usize = 64;

/// State of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It answers.
    Up,
    /// It is connected and does not answer.
    Suspect,
    /// It takes no shots of others.
    Draining,
    /// Its process ended, or the link is cut.
    Gone,
}

impl State {
    /// As people read it.
    pub const fn word(self) -> &'static str {
        match self {
            State::Up => "up",
            State::Suspect => "suspect",
            State::Draining => "draining",
            State::Gone => "gone",
        }
    }
}

/// What is known of one host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The start of its process.
    pub incarnation: u64,
    is_present: bool,
    /// When it was last heard of.
    heard_ns: u64,
    /// Its last description.
    pub description: Option<Description>,
    /// Times that it was gone.
    pub losses: u64,
    trips: [u64; TRIPS],
    trip_count: usize,
}

/// All other hosts, by name.
#[derive(Debug, Default)]
pub struct Members {
    hosts: BTreeMap<String, Host>,
}

impl Members {
    /// A host is present.
    pub fn appeared(&mut self, name: &str, incarnation: u64, now_ns: u64) {
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(name) {
            let gone = self.hosts.iter().filter(|(_, host)| !host.is_present).min_by_key(|(_, host)| host.heard_ns);
            let Some(gone) = gone.map(|(name, _)| name.clone()) else { return };
            self.hosts.remove(&gone);
        }
        let host = self.hosts.entry(name.to_owned()).or_insert_with(|| Host::new(incarnation));
        if host.incarnation != incarnation {
            // Presence of the new process may come before the end of the old one's.
            let losses = host.losses + u64::from(host.is_present);
            *host = Host { losses, ..Host::new(incarnation) };
        }
        if !host.is_present {
            // Its model may be another one by now.
            host.description = None;
        }
        (host.is_present, host.heard_ns) = (true, now_ns);
    }

    /// A host's presence was withdrawn. Returns whether it was known.
    pub fn left(&mut self, name: &str, incarnation: u64) -> bool {
        let Some(host) = self.hosts.get_mut(name).filter(|host| host.incarnation == incarnation) else { return false };
        host.losses += u64::from(host.is_present);
        std::mem::replace(&mut host.is_present, false)
    }

    /// A host has described itself; the question took `trip_ns`.
    pub fn described(&mut self, name: &str, description: Description, trip_ns: u64, now_ns: u64) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        host.description = Some(description);
        host.heard_ns = now_ns;
        host.trips[host.trip_count % TRIPS] = trip_ns;
        host.trip_count += 1;
    }

    /// State of host `name`; `None`: never heard of.
    pub fn state(&self, name: &str, now_ns: u64) -> Option<State> {
        self.hosts.get(name).map(|host| host.state(now_ns))
    }

    /// Whether host `name` may be given shots of a host described by `own`.
    ///
    /// # Errors
    /// [`Unusable`], why not.
    pub fn usable(&self, name: &str, own: &Description, now_ns: u64) -> Result<&Host, Unusable> {
        let host = self.hosts.get(name).ok_or(Unusable::Unknown)?;
        match host.state(now_ns) {
            State::Up => {}
            state => return Err(Unusable::State(state)),
        }
        let Some(description) = &host.description else { return Err(Unusable::State(State::Suspect)) };
        own.alike(description)?;
        Ok(host)
    }

    /// Whether shots of host `name` can be decoded by a host described by `own`. Until it has
    /// described itself, its own look at this host counts.
    ///
    /// # Errors
    /// [`Unlike`], why not.
    pub fn accepts(&self, name: &str, own: &Description) -> Result<(), Unlike> {
        let description = self.hosts.get(name).and_then(|host| host.description.as_ref());
        description.map_or(Ok(()), |said| own.alike(said))
    }

    /// All hosts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Host)> {
        self.hosts.iter().map(|(name, host)| (name.as_str(), host))
    }

    /// Median round trip of a question to host `name`; 0: not measured.
    pub fn trip_ns(&self, name: &str) -> u64 {
        self.hosts.get(name).and_then(Host::trip_ns).map_or(0, |(p50, _)| p50)
    }

    /// Whether host `name` is present.
    pub fn is_present(&self, name: &str) -> bool {
        self.hosts.get(name).is_some_and(|host| host.is_present)
    }

    /// Names of the hosts that are present.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter(|(_, host)| host.is_present).map(|(name, _)| name.as_str())
    }
}

/// Why a host is given no shots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unusable {
    #[error("no host of this name was seen; `pinwheel hosts` lists them")]
    Unknown,
    #[error("it is {}", match .0 {
        State::Suspect => "suspect: connected, and does not answer",
        State::Draining => "draining: it takes no shots of others",
        State::Gone => "gone: its process ended, or the link is cut",
        State::Up => "up",
    })]
    State(State),
    #[error(transparent)]
    Unlike(#[from] Unlike),
}

impl Host {
    fn new(incarnation: u64) -> Host {
        Host {
            incarnation,
            is_present: false,
            heard_ns: 0,
            description: None,
            losses: 0,
            trips: [0; TRIPS],
            trip_count: 0,
        }
    }

    /// Its state.
    pub fn state(&self, now_ns: u64) -> State {
        if !self.is_present {
            return State::Gone;
        }
        if now_ns.saturating_sub(self.heard_ns) > SUSPECT_AFTER_NS {
            return State::Suspect;
        }
        match self.description.as_ref().map(|description| description.offer) {
            Some(Offer::Draining) => State::Draining,
            Some(Offer::Open) | None => State::Up,
        }
    }

    /// Time since it was last heard of.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.heard_ns)
    }

    /// Round trip of a question, the median and the 99th percentile of the last [`TRIPS`]; `None` before the first.
    pub fn trip_ns(&self) -> Option<(u64, u64)> {
        let mut trips = self.trips[..self.trip_count.min(TRIPS)].to_vec();
        trips.sort_unstable();
        let rank = |percent: usize| (trips.len() * percent).div_ceil(100).checked_sub(1);
        Some((trips[rank(50)?], trips[rank(99)?]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{HOSTS_MAX, Members, SUSPECT_AFTER_NS, State, Unusable};
    use crate::description::{Description, Offer};

    fn described() -> Description {
        Description { protocol: 1, ..Description::default() }
    }

    #[test]
    fn a_silent_host_is_suspect_until_it_describes_itself_again_and_gone_when_its_presence_is_withdrawn() {
        let mut members = Members::default();
        assert_eq!(members.state("b", 0), None);
        members.appeared("b", 1, 10);
        members.described("b", described(), 200, 20);
        assert_eq!(members.state("b", 20 + SUSPECT_AFTER_NS), Some(State::Up));
        assert_eq!(members.state("b", 21 + SUSPECT_AFTER_NS), Some(State::Suspect));
        let later = 40 + SUSPECT_AFTER_NS;
        assert_eq!(members.usable("b", &described(), later).unwrap_err(), Unusable::State(State::Suspect));
        members.described("b", Description { offer: Offer::Draining, ..described() }, 200, later);
        assert_eq!(members.state("b", later), Some(State::Draining));
        members.described("b", described(), 300, later);
        assert_eq!(members.usable("b", &described(), later).unwrap().trip_ns(), Some((200, 300)));
        assert!(members.left("b", 1) && !members.left("b", 1), "once");
        assert_eq!(members.state("b", later), Some(State::Gone));
    }

    #[test]
    fn a_new_process_of_a_host_is_another_incarnation_and_the_end_of_the_old_one_does_not_remove_it() {
        let mut members = Members::default();
        members.appeared("b", 1, 0);
        members.described("b", described(), 1, 0);
        members.appeared("b", 2, 5);
        assert!(members.iter().all(|(_, host)| host.description.is_none() && host.losses == 1));
        assert!(!members.left("b", 1));
        assert_eq!(members.state("b", 6), Some(State::Up));
        // Without a description it is given nothing.
        assert_eq!(members.usable("b", &described(), 6).unwrap_err(), Unusable::State(State::Suspect));
    }

    #[test]
    fn a_host_that_was_cut_off_is_given_nothing_before_it_describes_itself_anew() {
        let mut members = Members::default();
        members.appeared("b", 1, 0);
        members.described("b", described(), 1, 0);
        members.left("b", 1);
        members.appeared("b", 1, 5);
        assert_eq!(members.usable("b", &described(), 6).unwrap_err(), Unusable::State(State::Suspect));
        let other = Description { model: 7, ..described() };
        assert_eq!(members.accepts("b", &other), Ok(()), "nothing is known of it");
        members.described("b", described(), 1, 7);
        assert!(members.usable("b", &described(), 8).is_ok());
        assert!(members.accepts("b", &described()).is_ok() && members.accepts("b", &other).is_err());
    }

    #[test]
    fn a_host_beyond_the_limit_takes_the_place_of_one_that_is_gone_or_none() {
        let mut members = Members::default();
        (0..HOSTS_MAX + 3).for_each(|n| members.appeared(&format!("h{n}"), 1, 0));
        assert_eq!((members.iter().count(), members.is_present("h65")), (HOSTS_MAX, false));
        assert_eq!(members.usable("h65", &described(), 0).unwrap_err(), Unusable::Unknown);
        members.left("h7", 1);
        members.appeared("h65", 1, 1);
        assert_eq!((members.iter().count(), members.state("h7", 1)), (HOSTS_MAX, None));
        assert!(members.is_present("h65"));
    }
}
