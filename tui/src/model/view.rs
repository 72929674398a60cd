//! The views by name, each with the question that it answers.

use crate::named::named;

named! {
    /// A view. Tab goes through them in this order.
    pub enum View {
        Overview = "overview", "overview: is every shot answered, and how fast?";
        Threads = "threads", "threads: which is late, and under what policy?";
        Slots = "slots", "slots: which waits longest, and on whom?";
        Workers = "workers", "workers: which is busy, and with which slot?";
        Profiles = "profiles", "profiles: what would change, and has it arrived?";
        Graph = "graph", "graph: which task waits longest, and on what?";
        Arbiter = "arbiter", "arbiter: who may write which page, and who waits?";
        Placement = "placement", "placement: which silo is full, and which stream should move?";
        Sources = "sources", "sources: who sends, how fast, and what is missing?";
        Hosts = "hosts", "hosts: which is up, and who decodes for whom?";
        Alarms = "alarms", "alarms: what is wrong, since when, and why?";
        Streams = "streams", "streams: which logical qubit is late, or wrong?";
        Rings = "rings", "rings: which queue is full, and who empties it?";
        Environment = "environment", "environment: what of this machine costs latency?";
        Cores = "cores", "cores: who uses which core?";
        Log = "log", "log: what happened in this run, and when?";
        Actions = "actions", "actions: who did what, why, and with what effect?";
        Chart = "chart", "chart: how did rate and times change, and when?";
        Compare = "compare", "compare: what is other than at the mark?";
        Help = "help", "help: which key does what, and what do the signs mean?";
    }
}
