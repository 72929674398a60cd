//! Engines of several hosts as one system: who is there, and whose shots are decoded where.
//!
//! ```text
//!  engine ─ lanes ─▶ bridge ─▶ link ─▶ (zenoh) ─▶ link ─▶ bridge ─ lanes ─▶ engine of another host
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`settings`] | a host's name, cluster, addresses and certificates, from a file |
//! | [`description`] | what a host says of itself |
//! | [`membership`] | which hosts there are, and the state of each |
//! | [`message`] | shots and answers between hosts, as bytes |
//! | [`outgoing`] | own shots that others decode |
//! | [`incoming`] | others' shots that this host decodes |
//! | [`placing`] | which host decodes a stream |
//! | [`status`] | the hosts as one of them sees them |
//! | [`local_socket`] | the socket at which local programs ask about them |
//! | `link` (feature `link`) | the zenoh session: presence, questions and answers between hosts |
//! | `bridge` (feature `link`) | the thread between an engine and its hosts |
#![warn(missing_docs, unreachable_pub)]

pub mod settings;
pub mod description;
pub mod membership;
pub mod message;
pub mod outgoing;
pub mod incoming;
pub mod placing;
pub mod status;
pub mod local_socket;
#[cfg(feature = "link")]
pub mod link;
#[cfg(feature = "link")]
pub mod bridge;
