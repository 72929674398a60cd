//! What a hot thread's block says of the thread and its roles.

use crate::board::get;
use crate::board::layout::{RoleBlock, ThreadBlock};
use crate::board::reading::{Now, if_any};
use crate::board::snapshot::{CompetitorView, MemoryView, NoiseView, PriorityView};
use crate::profile::Priority;
use crate::roles::{RoleKind, ThreadState};
use std::sync::atomic::AtomicU64;

impl RoleBlock {
    /// What the role does.
    pub fn kind(&self) -> RoleKind {
        RoleKind::ALL[(get(&self.identity) & 0xff) as usize % RoleKind::ALL.len()]
    }

    /// Silo of the role.
    pub fn silo(&self) -> u32 {
        (get(&self.identity) >> 8) as u32
    }

    /// Number among the silo's decode workers; 0 for other roles.
    pub fn index(&self) -> u32 {
        (get(&self.identity) >> 40) as u32
    }
}

impl ThreadBlock {
    /// The blocks of its roles, in call order; none before they are planned.
    pub fn own_roles(&self) -> &[RoleBlock] {
        &self.roles[..(get(&self.roles_count) as usize).min(self.roles.len())]
    }

    pub(in crate::board) fn state(&self) -> ThreadState {
        match get(&self.state) {
            0 => ThreadState::Starting,
            1 => ThreadState::Running,
            3 => ThreadState::Panicked,
            _ => ThreadState::Finished,
        }
    }

    pub(in crate::board) fn priority(&self) -> PriorityView {
        let named = |word: &AtomicU64| Priority::unpack(get(word)).map(|priority| priority.to_string());
        PriorityView {
            asked: named(&self.priority_asked).unwrap_or_default(),
            found: named(&self.priority_found),
            why_not: self.priority_refusal.read_if_any(),
        }
    }

    pub(in crate::board) fn competitor(&self, now: &Now<'_>) -> Option<CompetitorView> {
        if_any(&self.competitor_pid).map(|pid| CompetitorView {
            pid: pid as u32,
            user: self.competitor_user.read(),
            command: self.competitor_command.read(),
            waited_ns: get(&self.competitor_waited_ns),
            ran_ns: get(&self.competitor_ran_ns),
            span_ns: get(&self.competitor_span_ns),
            age_ns: now.age_ns(&self.competitor_seen),
            samples: get(&self.competitor_samples),
        })
    }

    pub(in crate::board) fn noise(&self, now: &Now<'_>) -> NoiseView {
        NoiseView {
            span_ns: get(&self.noise_span_ns),
            ready_ns: get(&self.noise_ready_ns),
            stolen_ns: get(&self.noise_stolen_ns),
            interrupts: get(&self.noise_interrupts),
            polling_ns: now.span_ns(get(&self.polling_ticks)),
            gaps: get(&self.noise_gaps),
            gap_ns: now.span_ns(get(&self.noise_gap_ticks)),
            longest_gap_ns: now.span_ns(get(&self.noise_gap_longest)),
            taken_by: self.noise_taken_by.read(),
            taken_by_ns: get(&self.noise_taken_ns),
        }
    }

    pub(in crate::board) fn memory(&self) -> MemoryView {
        MemoryView {
            allocations: get(&self.allocations).checked_sub(1),
            lent: get(&self.allocations_lent),
            first_site: self.allocation_site.read_if_any(),
            touched_bytes: get(&self.arena_touched_bytes),
            locked_bytes: get(&self.arena_locked_bytes),
        }
    }
}
