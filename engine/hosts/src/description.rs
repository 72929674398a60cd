//! What a host says of itself when another asks: JSON, small, renewed for each question.
//!
//! Plain data. Bounds: [`VERSION_BYTES_MAX`].

use serde::{Deserialize, Serialize};

/// Version of the questions between hosts. Hosts of another one share no streams.
pub const PROTOCOL: u32 = 2;
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

/// The load of a host's silos, as its own placement sees them: the largest values of any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Mean utilization of its queues, 0..=1.
    pub average: f64,
    /// Utilization of its fullest queue, 0..=1.
    pub max: f64,
    /// Time to answer the shots that wait.
    pub backlog_ns: u64,
}

impl Load {
    /// Nothing more fits.
    pub const FULL: Load = Load { average: 1.0, max: 1.0, backlog_ns: 0 };
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
    /// Reads what a host says of itself. Of another protocol nothing but its number and the version
    /// need be readable, so that such a host is not taken for one that does not answer.
    pub fn read(bytes: &[u8]) -> Option<Description> {
        #[derive(Deserialize)]
        struct Head {
            protocol: u32,
            version: String,
        }
        let whole: Option<Description> = serde_json::from_slice(bytes).ok();
        let head = || serde_json::from_slice(bytes).ok().filter(|head: &Head| head.protocol != PROTOCOL);
        let of_head = |Head { protocol, version }| Description { protocol, version, ..Description::default() };
        whole.or_else(|| head().map(of_head)).filter(|said| said.version.len() <= VERSION_BYTES_MAX)
    }

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
    use super::{Description, Offer, PROTOCOL, Unlike, VERSION_BYTES_MAX};

    #[test]
    fn a_description_of_another_protocol_is_read_although_its_other_fields_differ() {
        let own = Description { protocol: PROTOCOL, version: "0.2.0".into(), streams: 3, ..Description::default() };
        assert_eq!(Description::read(&serde_json::to_vec(&own).unwrap()), Some(own.clone()));
        let next = PROTOCOL + 1;
        let newer = format!(r#"{{"protocol": {next}, "version": "0.9.0", "offer": "asleep", "lanes": [1]}}"#);
        let newer = Description::read(newer.as_bytes()).unwrap();
        assert_eq!((newer.protocol, newer.version.as_str(), newer.offer), (next, "0.9.0", Offer::Open));
        assert!(matches!(own.alike(&newer), Err(Unlike::Protocol { .. })));
        let long = "1".repeat(VERSION_BYTES_MAX + 1);
        for garbled in [
            "",
            "{}",
            "[2]",
            &format!(r#"{{"protocol": {PROTOCOL}, "version": "0.2.0"}}"#),
            &format!(r#"{{"protocol": {next}, "version": "{long}"}}"#),
        ] {
            assert_eq!(Description::read(garbled.as_bytes()), None, "{garbled}");
        }
    }

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
