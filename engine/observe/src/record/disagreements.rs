//! Shots on which two decoders disagree, in the run's directory: [`DISAGREEMENTS`] with their detectors in
//! Stim's b8 format, and [`DISAGREEMENT_ANSWERS`] with both answers, one JSON line for each shot in the same order.
//!
//! Owned and called by the shadow's thread. Bounded by [`DISAGREEMENTS_MAX`]. The files appear with the
//! first shot, grow while the run goes on, and can be read meanwhile. Never fails a run: after the first
//! error it keeps no more.

use crate::code::{Format, Layout, ShotWriter, ones};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// File of the shots.
pub const DISAGREEMENTS: &str = "disagreements.b8";
/// File of the answers.
pub const DISAGREEMENT_ANSWERS: &str = "disagreements.jsonl";
/// Most shots that are kept of a run.
pub const DISAGREEMENTS_MAX: u64 = 10_000;

/// A shot with two answers.
#[derive(Clone, Copy, Debug)]
pub struct Disagreement<'a> {
    /// Its stream.
    pub stream: u32,
    /// Its sequence number in the stream, as lines of `--answers` have it.
    pub sequence: u64,
    /// Its detectors.
    pub detectors: &'a [u64],
    /// Its true observables, where they are known.
    pub truth: Option<&'a [u64]>,
    /// The answer on the path.
    pub path: KeptAnswer<'a>,
    /// From scheduled arrival to that answer, nanoseconds.
    pub latency_ns: u64,
    /// The answer of the shadow.
    pub shadow: KeptAnswer<'a>,
    /// Time that the shadow decoded, nanoseconds.
    pub decode_ns: u64,
}

/// One of the answers.
#[derive(Clone, Copy, Debug)]
pub struct KeptAnswer<'a> {
    /// Name of the decoder.
    pub decoder: &'static str,
    /// Hash of the error model.
    pub model: u64,
    /// Predicted observables.
    pub observables: &'a [u64],
}

#[derive(Serialize)]
struct AnswersLine {
    stream: u32,
    seq: u64,
    true_observables: Option<Vec<u32>>,
    decoder: &'static str,
    model: String,
    observables: Vec<u32>,
    latency_ns: u64,
    shadow: ShadowAnswer,
}

/// The shadow's part of a line.
#[derive(Serialize)]
struct ShadowAnswer {
    decoder: &'static str,
    model: String,
    observables: Vec<u32>,
    decode_ns: u64,
}

/// The two files of a run.
#[derive(Debug)]
pub struct Disagreements {
    directory: PathBuf,
    detectors: u32,
    files: Option<(ShotWriter<BufWriter<File>>, BufWriter<File>)>,
    kept: u64,
}

impl Disagreements {
    /// Of shots with so many detectors; nothing is written yet.
    pub fn new(directory: &Path, detectors: u32) -> Disagreements {
        Disagreements { directory: directory.to_owned(), detectors, files: None, kept: 0 }
    }

    /// Keeps a shot, unless [`DISAGREEMENTS_MAX`] are kept. Returns how many are kept now.
    ///
    /// # Errors
    /// One sentence, if the files cannot be written.
    pub fn keep(&mut self, shot: &Disagreement<'_>) -> Result<u64, String> {
        if self.kept < DISAGREEMENTS_MAX {
            self.write(shot).map_err(|error| self.sentence(&error))?;
            self.kept += 1;
        }
        Ok(self.kept)
    }

    /// Brings what was kept to the files.
    ///
    /// # Errors
    /// As [`Disagreements::keep`].
    pub fn flush(&mut self) -> Result<(), String> {
        let Some((shots, answers)) = &mut self.files else { return Ok(()) };
        let flushed = shots.flush().and_then(|()| answers.flush());
        flushed.map_err(|error| self.sentence(&error))
    }

    fn sentence(&self, error: &io::Error) -> String {
        format!("cannot write {DISAGREEMENTS} in {} ({error}); the run continues without it", self.directory.display())
    }

    fn write(&mut self, shot: &Disagreement<'_>) -> io::Result<()> {
        let (shots, answers) = match &mut self.files {
            Some(files) => files,
            None => {
                let create = |name| File::create(self.directory.join(name)).map(BufWriter::new);
                let shots = ShotWriter::new(create(DISAGREEMENTS)?, Format::B8, Layout::detectors(self.detectors));
                self.files.insert((shots, create(DISAGREEMENT_ANSWERS)?))
            }
        };
        let detectors = &shot.detectors[..Layout::detectors(self.detectors).words()];
        shots.write_shot(detectors).map_err(io::Error::other)?;
        let flips = |observables: &[u64]| ones(observables).collect::<Vec<u32>>();
        let line = AnswersLine {
            stream: shot.stream,
            seq: shot.sequence,
            true_observables: shot.truth.map(flips),
            decoder: shot.path.decoder,
            model: format!("{:016x}", shot.path.model),
            observables: flips(shot.path.observables),
            latency_ns: shot.latency_ns,
            shadow: ShadowAnswer {
                decoder: shot.shadow.decoder,
                model: format!("{:016x}", shot.shadow.model),
                observables: flips(shot.shadow.observables),
                decode_ns: shot.decode_ns,
            },
        };
        serde_json::to_writer(&mut *answers, &line)?;
        answers.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{DISAGREEMENT_ANSWERS, DISAGREEMENTS, DISAGREEMENTS_MAX, Disagreement, Disagreements, KeptAnswer};
    use std::fs;

    fn shot(number: u64) -> Disagreement<'static> {
        let answer = |decoder, observables| KeptAnswer { decoder, model: 0xab, observables };
        Disagreement {
            stream: 3,
            sequence: number,
            detectors: &[0b101],
            truth: Some(&[1]),
            path: answer("matching", &[1]),
            latency_ns: 900,
            shadow: answer("lookup", &[0]),
            decode_ns: 50,
        }
    }

    #[test]
    fn shots_and_answers_are_kept_in_the_same_order_up_to_a_bound() {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = Disagreements::new(directory.path(), 9);
        kept.flush().unwrap();
        assert!(!directory.path().join(DISAGREEMENTS).exists(), "no file without a shot");
        for number in 0..DISAGREEMENTS_MAX + 5 {
            assert_eq!(kept.keep(&shot(number)), Ok((number + 1).min(DISAGREEMENTS_MAX)));
        }
        kept.flush().unwrap();
        let shots = fs::read(directory.path().join(DISAGREEMENTS)).unwrap();
        assert_eq!(shots.len() as u64, 2 * DISAGREEMENTS_MAX, "nine detectors take two bytes");
        assert_eq!(shots[..4], [0b101, 0, 0b101, 0]);
        let answers = fs::read_to_string(directory.path().join(DISAGREEMENT_ANSWERS)).unwrap();
        assert_eq!(answers.lines().count() as u64, DISAGREEMENTS_MAX);
        let line = r#"{"stream":3,"seq":1,"true_observables":[0],"decoder":"matching","model":"00000000000000ab","observables":[0],"latency_ns":900,"shadow":{"decoder":"lookup","model":"00000000000000ab","observables":[],"decode_ns":50}}"#;
        assert_eq!(answers.lines().nth(1), Some(line));
    }

    #[test]
    fn a_directory_that_is_gone_is_said_and_nothing_counts_as_kept() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let mut kept = Disagreements::new(&gone, 9);
        let said = kept.keep(&shot(0)).unwrap_err();
        assert!(said.contains(DISAGREEMENTS) && said.contains("the run continues"), "{said}");
    }
}
