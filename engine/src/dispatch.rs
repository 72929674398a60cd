//! Dispatch, poll and harvest: the three roles that move a shot's words along its path.
//!
//! Owns the roles and the two kinds of deadline. Dispatch takes shots in ring order and launches
//! them. Poll claims completions, passes jobs to the ready queue (independent of the decoder) and
//! checks deadlines. Harvest takes the answers, checks that each sequence number is answered once,
//! and measures. Bounds: 64 items a frame each; the ready queue has room for every job, so passing
//! a job on never fails.

mod deadlines;
mod dispatcher;
mod harvester;
mod poller;
pub mod sampled;

pub use dispatcher::Dispatcher;
pub use harvester::{Harvester, HarvesterParts};
pub use poller::Poller;
