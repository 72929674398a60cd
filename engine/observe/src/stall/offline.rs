//! A hot thread whose core is taken offline, and pinned again when the core is back.
//!
//! Pure: the list of online cores goes in, once a look of the watchdog, and out comes what to do. The kernel moves the
//! threads of a core that goes offline to others and widens what they may run on, and leaves it so when the core is back.
//! Bounds: one outage of one core. An outage that lies between two looks is not seen.

/// The presence of one thread's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Presence {
    /// When the core was first seen offline; `None`: it is online, and the thread is pinned to it.
    since_ns: Option<u64>,
    /// When the last outage ended.
    ended_ns: Option<u64>,
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing is to be done.
    Same,
    /// The core has gone offline.
    WentOffline,
    /// The core is online after so long: the thread is to be pinned again.
    IsBack {
        /// How long, nanoseconds.
        offline_ns: u64,
    },
}

/// The counters of a look in which the core came back tell of the outage, too; those of the next one may.
const TELLS_NS: u64 = 300_000_000;

impl Presence {
    /// Takes in which cores are online at `now_ns`; an empty list says nothing.
    pub(super) fn look(&mut self, core: u32, online: &[u32], now_ns: u64) -> Look {
        let is_online = online.is_empty() || online.contains(&core);
        match (self.since_ns, is_online) {
            (None, false) => {
                self.since_ns = Some(now_ns);
                Look::WentOffline
            }
            (Some(since_ns), true) => Look::IsBack { offline_ns: now_ns.saturating_sub(since_ns) },
            (None, true) | (Some(_), false) => Look::Same,
        }
    }

    /// The thread is pinned again.
    pub(super) fn end(&mut self, now_ns: u64) {
        (self.since_ns, self.ended_ns) = (None, Some(now_ns));
    }

    /// Whether what a thread did up to `now_ns` may be the outage's doing.
    pub(super) fn explains(&self, now_ns: u64) -> bool {
        self.since_ns.is_some() || self.ended_ns.is_some_and(|ended_ns| now_ns < ended_ns + TELLS_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Presence, TELLS_NS};

    #[test]
    fn a_core_offline_is_noticed_once_and_its_return_until_the_thread_is_pinned() {
        let (mut presence, both, one) = (Presence::default(), [0, 1], [0]);
        assert_eq!(presence.look(1, &both, 100), Look::Same);
        assert_eq!(presence.look(1, &[], 150), Look::Same);
        assert!(!presence.explains(150));
        assert_eq!(presence.look(1, &one, 200), Look::WentOffline);
        assert_eq!(presence.look(1, &one, 300), Look::Same);
        assert!(presence.explains(300));
        assert_eq!(presence.look(1, &both, 700), Look::IsBack { offline_ns: 500 });
        // The system refused to pin it: asked again at the next look.
        assert_eq!(presence.look(1, &both, 800), Look::IsBack { offline_ns: 600 });
        presence.end(800);
        assert_eq!(presence.look(1, &both, 900), Look::Same);
        assert!(presence.explains(900) && !presence.explains(800 + TELLS_NS));
        assert_eq!(presence.look(1, &one, 1_000), Look::WentOffline);
    }
}
