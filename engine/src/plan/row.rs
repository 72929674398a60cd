//! A plan as machine-readable output shows it.
//!
//! Cold and pure; bounded by the plan. A refused plan has the same shape, without threads and with the reason.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use crate::plan::{Plan, PlanError, PlannedThread};
use crate::profile::SpinPolicy;

#[derive(Serialize)]
struct Row<'a> {
    threads: Vec<ThreadRow<'a>>,
    cold_cores: &'a [u32],
    unused_cores: &'a [u32],
    notes: &'a [String],
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
}

impl<'a> From<&'a PlannedThread> for ThreadRow<'a> {
    fn from(thread: &'a PlannedThread) -> Self {
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
        }
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { threads, cold_cores, unused_cores, notes } = self;
        let threads = threads.iter().map(ThreadRow::from).collect();
        Row { threads, cold_cores, unused_cores, notes, refused: None }.serialize(serializer)
    }
}

impl Serialize for PlanError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let refused = Some(self.to_string());
        Row { threads: Vec::new(), cold_cores: &[], unused_cores: &[], notes: &[], refused }.serialize(serializer)
    }
}
