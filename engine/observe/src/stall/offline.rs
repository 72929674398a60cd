//! Detects that a hot thread's core goes offline, and when to pin the thread again.
//!
//! Pure: takes the list of online cores at each baseline, returns what to do. When a core goes
//! offline, the kernel moves its threads, widens their affinity, and leaves it so when the core is
//! back. Tracks one core. An outage between two baselines is not noticed.

/// Whether one thread's core is online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreAvailability {
    /// When the core was first seen offline; `None` while it is online and the thread is pinned to
    /// it.
    since_ns: Option<u64>,
    /// When the last outage ended.
    ended_ns: Option<u64>,
}

/// What has changed since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreChange {
    /// Nothing.
    Same,
    /// The core has gone offline.
    WentOffline,
    /// The core is online again: pin the thread to it.
    IsBack {
        /// How long it was offline, nanoseconds.
        offline_ns: u64,
    },
}

/// Counters may include the outage for this long after its end.
const TELLS_NS: u64 = 300_000_000;

impl CoreAvailability {
    /// Takes the online cores at `now_ns`. An empty list means that they are not visible.
    pub(super) fn look(&mut self, core: u32, online: &[u32], now_ns: u64) -> CoreChange {
        let is_online = online.is_empty() || online.contains(&core);
        match (self.since_ns, is_online) {
            (None, false) => {
                self.since_ns = Some(now_ns);
                CoreChange::WentOffline
            }
            (Some(since_ns), true) => CoreChange::IsBack { offline_ns: now_ns.saturating_sub(since_ns) },
            (None, true) | (Some(_), false) => CoreChange::Same,
        }
    }

    /// Notes that the thread is pinned again.
    pub(super) fn end(&mut self, now_ns: u64) {
        (self.since_ns, self.ended_ns) = (None, Some(now_ns));
    }

    /// Whether the outage may explain what the thread did up to `now_ns`.
    pub(super) fn explains(&self, now_ns: u64) -> bool {
        self.since_ns.is_some() || self.ended_ns.is_some_and(|ended_ns| now_ns < ended_ns + TELLS_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::{CoreAvailability, CoreChange, TELLS_NS};

    #[test]
    fn a_core_offline_is_noticed_once_and_its_return_until_the_thread_is_pinned() {
        let (mut core_availability, both, one) = (CoreAvailability::default(), [0, 1], [0]);
        assert_eq!(core_availability.look(1, &both, 100), CoreChange::Same);
        assert_eq!(core_availability.look(1, &[], 150), CoreChange::Same);
        assert!(!core_availability.explains(150));
        assert_eq!(core_availability.look(1, &one, 200), CoreChange::WentOffline);
        assert_eq!(core_availability.look(1, &one, 300), CoreChange::Same);
        assert!(core_availability.explains(300));
        assert_eq!(core_availability.look(1, &both, 700), CoreChange::IsBack { offline_ns: 500 });
        // The system refused to pin it: asked again at the next look.
        assert_eq!(core_availability.look(1, &both, 800), CoreChange::IsBack { offline_ns: 600 });
        core_availability.end(800);
        assert_eq!(core_availability.look(1, &both, 900), CoreChange::Same);
        assert!(core_availability.explains(900) && !core_availability.explains(800 + TELLS_NS));
        assert_eq!(core_availability.look(1, &one, 1_000), CoreChange::WentOffline);
    }
}
