//! A plan as JSON.
//!
//! Cold and pure; bounded by the plan. A refused plan has the same keys, no threads, and the
//! reason.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::plan::{Plan, PlanError, PlannedSilos, PlannedThread};
use crate::profile::{Priority, SpinPolicy};

#[derive(Serialize)]
struct Row<'a> {
    silos: Option<&'a PlannedSilos>,
    threads: Vec<ThreadRow<'a>>,
    cold_cores: &'a [u32],
    unused_cores: &'a [u32],
    notes: &'a [String],
    spin: Option<SpinPolicy>,
    priority: Option<String>,
    refused: Option<String>,
}

#[derive(Serialize)]
struct ThreadRow<'a> {
    name: &'a str,
    silo: u32,
    silos: BTreeSet<u32>,
    roles: Vec<&'static str>,
    core: Option<u32>,
    node: Option<u32>,
    hot: bool,
    exclusive: bool,
    refuses_prod: Option<&'static str>,
    spin: SpinPolicy,
    priority: String,
    refuses_priority: Option<&'static str>,
}

impl<'a> ThreadRow<'a> {
    fn new(thread: &'a PlannedThread, plan: &Plan) -> Self {
        let spin = thread.spin(plan.spin);
        let refuses_priority = thread.refuses_priority(plan.priority, spin);
        let priority = if refuses_priority.is_some() { Priority::Normal } else { plan.priority };
        Self {
            name: &thread.name,
            silo: thread.silo,
            silos: thread.roles.iter().map(|role| role.silo).collect(),
            roles: thread.roles.iter().map(|role| role.kind.name()).collect(),
            core: thread.core,
            node: thread.node,
            hot: thread.hot(),
            exclusive: thread.exclusive,
            refuses_prod: thread.refuses(SpinPolicy::Prod),
            spin,
            priority: priority.to_string(),
            refuses_priority,
        }
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { silos, threads, cold_cores, unused_cores, notes, spin, priority } = self;
        let threads = threads.iter().map(|thread| ThreadRow::new(thread, self)).collect();
        let (spin, priority) = (Some(*spin), Some(priority.to_string()));
        let (silos, refused) = (Some(silos), None);
        Row { silos, threads, cold_cores, unused_cores, notes, spin, priority, refused }.serialize(serializer)
    }
}

impl Serialize for PlanError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let refused = Some(self.to_string());
        let (silos, threads, spin, priority) = (None, Vec::new(), None, None);
        Row { silos, threads, cold_cores: &[], unused_cores: &[], notes: &[], spin, priority, refused }
            .serialize(serializer)
    }
}
