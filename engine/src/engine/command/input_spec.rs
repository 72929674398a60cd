//! The source of a run's shots, as an operator writes it.
//!
//! Pure. Bounded by the length of the text.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Source of a run's shots, with its files: `shots.b8 --dem surface.dem --observables truth.b8
/// --format b8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSpec {
    /// `sampler`, a file of shots, `udp:ADDRESS:PORT`, `unix:PATH` or `shm:NAME`.
    pub from: String,
    /// The model: a file or the name of a bundled model; none: unchanged.
    #[serde(default)]
    pub dem: Option<String>,
    /// A file of true observables.
    #[serde(default)]
    pub observables: Option<String>,
    /// Format of the files: `b8`, `01` or `dets`; none: unchanged.
    #[serde(default)]
    pub format: Option<String>,
}

impl InputSpec {
    /// Parses the text of an operator.
    ///
    /// # Errors
    /// One sentence: what was found, and what to write.
    pub fn parse(text: &str) -> Result<InputSpec, String> {
        let mut parts = text.trim().split(" --");
        let from = parts.next().unwrap_or_default().trim().to_owned();
        if from.is_empty() || from.starts_with("--") {
            return Err(format!(
                "{text:?} names no input; begin with sampler, a file of shots, udp:ADDRESS:PORT, unix:PATH or shm:NAME"
            ));
        }
        let mut spec = InputSpec { from, ..InputSpec::default() };
        for part in parts {
            let (name, value) = part.trim().split_once([' ', '=']).unwrap_or((part.trim(), ""));
            let place = match name {
                "dem" => &mut spec.dem,
                "observables" => &mut spec.observables,
                "format" => &mut spec.format,
                _ => {
                    return Err(format!("--{name} is not an option of an input; use --dem, --observables or --format"));
                }
            };
            if value.trim().is_empty() || place.is_some() {
                return Err(format!("--{name} is given twice or without a value; write --{name} VALUE once"));
            }
            *place = Some(value.trim().to_owned());
        }
        Ok(spec)
    }
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.from)?;
        for (name, value) in [("dem", &self.dem), ("observables", &self.observables), ("format", &self.format)] {
            if let Some(value) = value {
                write!(f, " --{name} {value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::InputSpec;

    #[test]
    fn an_input_is_written_as_it_is_read() {
        for text in [
            "sampler",
            "a file.b8",
            "sampler --dem surface_d3@r50",
            "udp:127.0.0.1:7000 --dem m.dem",
            "shots of today.01 --dem my model.dem --observables truth.01 --format 01",
        ] {
            assert_eq!(InputSpec::parse(text).map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
        let spaced = InputSpec::parse("  a.b8   --format=dets ");
        assert_eq!(spaced.map(|spec| spec.to_string()).as_deref(), Ok("a.b8 --format dets"));
        for text in ["", "  ", "--dem x", "a --rate 5", "a --dem", "a --dem x --dem y"] {
            assert!(InputSpec::parse(text).is_err(), "{text}");
        }
    }
}
