//! What a host says of itself when another asks: JSON, small, renewed for each question.
//!
//! Plain data. Bounds: [`VERSION_BYTES_MAX`].

use serde::{Deserialize, Serialize};

/// Version of the questions between hosts. Hosts of another one share no streams.
pub const PROTOCOL: u32 = 1;
/// Longest text of a version that is believed.
pub const VERSION_BYTES_MAX: usize = 64;

/// Whether a host takes shots of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offer {
    /// It does.
    #[default]
    Open,
    /// It drains, or its operator has closed it: it takes none, and its own streams stay.
    Draining,
}

/// The load of a host's fullest silo, as its own placement sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Mean utilization of its queues, 0..=1.
    pub average: f64,
    /// Utilization of its fullest queue, 0..=1.
    pub max: f64,
    /// Time to answer the shots that wait.
    pub backlog_ns: u64,
}

/// A host's description.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// [`PROTOCOL`] of its program.
    pub protocol: u32,
    /// Version of its program.
    pub version: String,
    /// Hash of its error models in force.
    pub model: u64,
    /// Words of a shot's detectors, and of its observables.
    pub widths: (u32, u32),
    /// Streams of its profile.
    pub streams: u32,
    /// Whether it takes shots of others.
    pub offer: Offer,
    /// Its load.
    pub load: Load,
    /// Streams with senders at it.
    pub own: u32,
    /// Of these: streams that others decode.
    pub away: u32,
    /// Streams of others that it decodes.
    pub taken: u32,
}

/// Why two hosts share no streams.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unlike {
    #[error(
        "its program {other} speaks version {theirs} of the hosts' protocol, this one {ours}; run the same version on both"
    )]
    Protocol { other: String, theirs: u32, ours: u32 },
    #[error("its error model has hash {theirs:016x}, this one's {ours:016x}; load the same model on both")]
    Model { theirs: u64, ours: u64 },
    #[error("it has {theirs} streams, this one {ours}; give both profiles the same number")]
    Streams { theirs: u32, ours: u32 },
}

impl Description {
    /// Streams that it decodes, own ones and others'.
    pub fn decoded(&self) -> u32 {
        self.own.saturating_sub(self.away).saturating_add(self.taken)
    }

    /// Whether a host of description `other` can decode shots of this one.
    ///
    /// # Errors
    /// [`Unlike`], the first difference that prevents it.
    pub fn alike(&self, other: &Description) -> Result<(), Unlike> {
        if self.protocol != other.protocol {
            let (theirs, ours) = (other.protocol, self.protocol);
            return Err(Unlike::Protocol { other: other.version.clone(), theirs, ours });
        }
        if (self.model, self.widths) != (other.model, other.widths) {
            return Err(Unlike::Model { theirs: other.model, ours: self.model });
        }
        if self.streams != other.streams {
            return Err(Unlike::Streams { theirs: other.streams, ours: self.streams });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Description, Unlike};

    #[test]
    fn hosts_of_other_models_streams_or_protocols_share_nothing_and_say_why() {
        let own = Description { protocol: 1, model: 7, streams: 3, version: "0.2.0".into(), ..Description::default() };
        assert_eq!(own.alike(&own.clone()), Ok(()));
        let newer = Description { protocol: 2, version: "0.3.0".into(), ..own.clone() };
        let said = own.alike(&newer).unwrap_err().to_string();
        assert!(said.contains("0.3.0") && said.contains("version 2"), "{said}");
        assert_eq!(own.alike(&Description { model: 8, ..own.clone() }), Err(Unlike::Model { theirs: 8, ours: 7 }));
        let wider = Description { widths: (9, 1), ..own.clone() };
        assert!(matches!(own.alike(&wider), Err(Unlike::Model { .. })));
        assert_eq!(own.alike(&Description { streams: 4, ..own.clone() }), Err(Unlike::Streams { theirs: 4, ours: 3 }));
    }
}
