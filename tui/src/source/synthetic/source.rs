//! A source that plays pictures by arithmetic, and notes what was asked of it.

use super::{Trouble, snapshot};
use crate::model::deeds::Deed;
use crate::source::past::Past;
use crate::source::{Offer, Source, offers_of};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::profile;
use pinwheel_engine::profile::Profile;
use std::time::Duration;

/// A source that plays the pictures above and notes what was asked of it.
pub struct Synthetic {
    tenths: u64,
    current: (String, Profile),
    /// Profiles applied.
    pub applied: Vec<String>,
    /// For how long the last of them was asked for.
    pub lent: Option<Duration>,
    /// Drains asked for.
    pub drains: u32,
    /// Notes kept.
    pub notes: Vec<String>,
    /// What was done to silos, streams and the input.
    pub deeds: Vec<Deed>,
    /// Reasons given, one for each switch, drain and deed.
    pub whys: Vec<String>,
}

impl Synthetic {
    /// An engine that runs profile lab.
    pub fn new() -> Synthetic {
        let lab = Profile::load("lab", None).unwrap().0;
        Synthetic {
            tenths: 0,
            current: ("lab".to_owned(), lab),
            applied: Vec::new(),
            lent: None,
            drains: 0,
            notes: Vec::new(),
            deeds: Vec::new(),
            whys: Vec::new(),
        }
    }
}

impl Source for Synthetic {
    fn snapshot(&mut self) -> Option<Snapshot> {
        self.tenths += 1;
        let mut snapshot = snapshot(self.tenths, Trouble::None);
        let policy = match self.current.1.spin {
            profile::SpinPolicy::Prod => SpinPolicy::Prod,
            profile::SpinPolicy::Lab => SpinPolicy::Lab,
            profile::SpinPolicy::Shared => SpinPolicy::Shared,
        };
        let epoch = 1 + self.applied.len() as u64;
        snapshot.engine.profile.clone_from(&self.current.0);
        snapshot.engine.spin_requested = policy;
        snapshot.engine.spin_epoch_requested = epoch;
        for thread in &mut snapshot.threads {
            (thread.policy_requested, thread.policy_acknowledged) = (policy, policy);
            thread.epoch_acknowledged = epoch;
        }
        Some(snapshot)
    }

    fn apply(&mut self, name: &str, profile: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.current = (name.to_owned(), profile.clone());
        self.lent = lent;
        self.applied.push(name.to_owned());
        Ok(())
    }

    fn drain(&mut self, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.drains += 1;
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.drains > 0
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        self.whys.push(why.to_owned());
        self.deeds.push(deed.clone());
        Ok(())
    }

    fn offers(&self) -> Vec<Offer> {
        offers_of(None, &self.current.1)
    }

    /// Pictures of every tenth of a second since the start.
    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        const TENTH_NS: u64 = 100_000_000;
        let start_ns = snapshot(0, Trouble::None).at_ns;
        let at = (at_ns.saturating_sub(start_ns) / TENTH_NS).clamp(1, self.tenths.max(1));
        let pictures = (at.saturating_sub(30).max(1)..=at).map(|tenths| snapshot(tenths, Trouble::None)).collect();
        let (from_ns, to_ns) = (start_ns + TENTH_NS, start_ns + self.tenths * TENTH_NS);
        Ok(Past { pictures, from_ns, to_ns, notes: vec![(from_ns, "cooled down".to_owned())] })
    }

    fn note(&mut self, text: &str) -> Result<(), String> {
        self.notes.push(text.to_owned());
        Ok(())
    }
}
