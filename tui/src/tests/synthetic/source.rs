//! A source that computes its pictures, and records its calls.

use super::{SyntheticFaults, snapshot};
use crate::source::past::Past;
use crate::source::{Offer, Source, offers_of};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::Command;
use pinwheel_engine::profile::Profile;
use std::time::Duration;

/// A source that plays synthetic pictures and records its calls.
#[derive(Clone)]
pub struct Synthetic {
    tenths: u64,
    /// Name of the profile in force, and the profile.
    pub current: (String, Profile),
    /// Profiles applied.
    pub applied: Vec<String>,
    /// Time span of the last profile switch.
    pub lent: Option<Duration>,
    /// Number of drains.
    pub drains: u32,
    /// Notes kept.
    pub notes: Vec<String>,
    /// The other commands.
    pub executed: Vec<Command>,
    /// Reasons, one for each command except notes.
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
            executed: Vec::new(),
            whys: Vec::new(),
        }
    }
}

impl Source for Synthetic {
    fn snapshot(&mut self) -> Option<Snapshot> {
        self.tenths += 1;
        let mut snapshot = snapshot(self.tenths, SyntheticFaults::None);
        let policy = self.current.1.spin;
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

    fn execute(&mut self, command: &Command, why: &str) -> Result<(), String> {
        match command {
            Command::Profile { name, text, for_s } => {
                let profile = Profile::parse(text.as_deref().unwrap_or_default(), name);
                self.current = (name.clone(), profile.map_err(|error| error.to_string())?);
                self.lent = for_s.map(Duration::from_secs);
                self.applied.push(name.clone());
            }
            Command::Drain => self.drains += 1,
            Command::Note { text } => {
                self.notes.push(text.clone());
                return Ok(());
            }
            command => self.executed.push(command.clone()),
        }
        self.whys.push(why.to_owned());
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.drains > 0
    }

    fn offers(&self) -> Vec<Offer> {
        offers_of(None, &self.current.1)
    }

    /// Pictures of every tenth of a second since the start.
    fn past(&mut self, at_ns: u64) -> Result<Past, String> {
        const TENTH_NS: u64 = 100_000_000;
        let start_ns = snapshot(0, SyntheticFaults::None).at_ns;
        let at = (at_ns.saturating_sub(start_ns) / TENTH_NS).clamp(1, self.tenths.max(1));
        let pictures =
            (at.saturating_sub(30).max(1)..=at).map(|tenths| snapshot(tenths, SyntheticFaults::None)).collect();
        let (from_ns, to_ns) = (start_ns + TENTH_NS, start_ns + self.tenths * TENTH_NS);
        Ok(Past { pictures, from_ns, to_ns, notes: vec![(from_ns, "cooled down".to_owned())] })
    }
}
