//! Detects that a hot thread's core is lost, and when to pin the thread again.
//!
//! Pure: takes the usable cores at each baseline, returns what to do. When a core goes offline or
//! leaves the process's cpuset, the kernel moves its threads, widens their affinity to every core,
//! and mostly leaves it so when the core is back. Of a loss between two baselines only the widened
//! affinity is seen. Tracks one core.

use crate::host::usable::{CoreLoss, UsableCores};

/// Whether one thread can run on its core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreAvailability {
    /// When the loss was first seen; `None` while the thread is pinned to its core.
    lost: Option<(u64, CoreLoss)>,
    /// When the last loss ended.
    ended: Option<(u64, CoreLoss)>,
    /// When pinning was refused last.
    refused_ns: Option<u64>,
}

/// What has changed since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreChange {
    /// Nothing.
    Same,
    /// The core cannot be used any more.
    Lost(CoreLoss),
    /// The core can be used again: pin the thread to it.
    IsBack {
        /// How it was lost.
        loss: CoreLoss,
        /// For how long, nanoseconds.
        away_ns: u64,
        /// Whether pinning was not refused since the core is back.
        is_first_try: bool,
    },
    /// The thread may run on every core though its own was not seen lost: pin the thread again.
    Widened {
        /// Whether pinning was not refused since then.
        is_first_try: bool,
    },
}

/// Counters may include the loss for this long after its end.
const TELLS_NS: u64 = 300_000_000;
/// Time from a refusal to the next try.
const RETRY_NS: u64 = 1_000_000_000;

impl CoreAvailability {
    /// Takes the usable cores at `now_ns`, and those that the thread may use.
    pub(super) fn look(
        &mut self,
        core: u32,
        usable: &UsableCores,
        cores_of_thread: Option<&[u32]>,
        now_ns: u64,
    ) -> CoreChange {
        let is_due = self.refused_ns.is_none_or(|at_ns| now_ns >= at_ns + RETRY_NS);
        let is_first_try = self.refused_ns.is_none();
        match (self.lost, usable.loss(core)) {
            (None, Some(loss)) => {
                self.lost = Some((now_ns, loss));
                CoreChange::Lost(loss)
            }
            (Some(_), Some(_)) => {
                self.refused_ns = None;
                CoreChange::Same
            }
            (Some((since_ns, loss)), None) if is_due => {
                CoreChange::IsBack { loss, away_ns: now_ns.saturating_sub(since_ns), is_first_try }
            }
            (None, None) if !cores_of_thread.is_some_and(|cores| usable.are_all_in(cores)) => {
                self.refused_ns = None;
                CoreChange::Same
            }
            (None, None) if is_due => CoreChange::Widened { is_first_try },
            (_, None) => CoreChange::Same,
        }
    }

    /// Notes that the thread is pinned again.
    pub(super) fn end(&mut self, now_ns: u64) {
        self.ended = self.lost.take().map(|(_, loss)| (now_ns, loss)).or(self.ended);
        self.refused_ns = None;
    }

    /// Notes that the thread could not be pinned again: the next try is in [`RETRY_NS`].
    pub(super) fn refuse(&mut self, now_ns: u64) {
        self.refused_ns = Some(now_ns);
    }

    /// The clock goes on from `now_ns`, which is earlier than before.
    pub(super) fn restart(&mut self, now_ns: u64) {
        let CoreAvailability { lost, ended, refused_ns } = self;
        let times = [lost, ended].into_iter().flatten().map(|(at_ns, _)| at_ns).chain(refused_ns);
        times.for_each(|at_ns| *at_ns = now_ns.min(*at_ns));
    }

    /// The loss that may explain what the thread did up to `now_ns`.
    pub(super) fn explains(&self, now_ns: u64) -> Option<CoreLoss> {
        let ended = self.ended.filter(|(ended_ns, _)| now_ns < ended_ns + TELLS_NS);
        self.lost.or(ended).map(|(_, loss)| loss)
    }
}

/// `went offline` and the like: the predicate of a sentence about the core.
pub(super) fn predicate(loss: CoreLoss) -> &'static str {
    match loss {
        CoreLoss::Offline => "went offline",
        CoreLoss::OutsideCpuset => "left the cpuset of this process",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{CoreAvailability, CoreChange, CoreLoss, RETRY_NS, TELLS_NS};
    use crate::host::usable::UsableCores;
    use crate::trees;

    fn online(cores: &str) -> UsableCores {
        let root = tempfile::tempdir().unwrap();
        trees::write(root.path(), "sys/devices/system/cpu/online", cores);
        UsableCores::read(root.path())
    }

    #[test]
    fn a_core_offline_is_noticed_once_and_its_return_until_the_thread_is_pinned() {
        let (both, one, hidden) = (online("0-1"), online("0"), online(""));
        let mut core = CoreAvailability::default();
        let is_back = |away_ns, is_first_try| CoreChange::IsBack { loss: CoreLoss::Offline, away_ns, is_first_try };
        assert_eq!(core.look(1, &both, None, 100), CoreChange::Same);
        assert_eq!(core.look(1, &hidden, None, 150), CoreChange::Same);
        assert_eq!(core.explains(150), None);
        assert_eq!(core.look(1, &one, None, 200), CoreChange::Lost(CoreLoss::Offline));
        assert_eq!(core.look(1, &one, None, 300), CoreChange::Same);
        assert_eq!(core.explains(300), Some(CoreLoss::Offline));
        assert_eq!(core.look(1, &both, None, 700), is_back(500, true));
        // The system refused to pin it: asked again a second later.
        core.refuse(700);
        assert_eq!(core.look(1, &both, None, 800), CoreChange::Same);
        assert_eq!(core.look(1, &both, None, 700 + RETRY_NS), is_back(500 + RETRY_NS, false));
        let ended_ns = 800 + RETRY_NS;
        core.end(ended_ns);
        assert_eq!(core.look(1, &both, None, ended_ns + 100), CoreChange::Same);
        assert_eq!(core.explains(ended_ns + 100), Some(CoreLoss::Offline));
        assert_eq!(core.explains(ended_ns + TELLS_NS), None);
        assert_eq!(core.look(1, &one, None, ended_ns + 200), CoreChange::Lost(CoreLoss::Offline));
    }

    #[test]
    fn a_thread_that_may_run_on_every_core_lost_its_own_between_two_looks() {
        let (both, hidden) = (online("0-1"), online(""));
        let mut core = CoreAvailability::default();
        for cores in [&[1][..], &[0]] {
            assert_eq!(core.look(1, &both, Some(cores), 100), CoreChange::Same);
        }
        assert_eq!(core.look(1, &hidden, Some(&[0, 1]), 100), CoreChange::Same);
        assert_eq!(core.look(1, &both, Some(&[0, 1]), 200), CoreChange::Widened { is_first_try: true });
        core.refuse(200);
        assert_eq!(core.look(1, &both, Some(&[0, 1]), 300), CoreChange::Same);
        assert_eq!(core.look(1, &both, Some(&[0, 1]), 200 + RETRY_NS), CoreChange::Widened { is_first_try: false });
        core.end(200 + RETRY_NS);
        assert_eq!(core.explains(200 + RETRY_NS), None);
        assert_eq!(core.look(1, &both, Some(&[0, 1]), 300 + RETRY_NS), CoreChange::Widened { is_first_try: true });
    }
}
