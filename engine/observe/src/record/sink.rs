//! Writes answers: `--predictions` in input order, `--answers` in completion order.
//!
//! Owned and called by one cold thread of the engine. Bounded by the reorder window
//! ([`SinkConfig::window_shots`]) and one buffer per output. Never fails a run: the first error of
//! each output is kept as one sentence, that output stops, and the other goes on. What was written before
//! stays under a hidden name, which the sentence has.

use super::output::{Output, OutputError, is_empty};
use super::reorder::Reorder;
use crate::code::{Format, Layout, ShotWriter, ones};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Extra distance in input order, beyond the number of slots, that two answers may have. Silos take
/// shots independently: while one waits for its oldest shot's deadline, the others may answer this
/// many.
pub const REORDER_SLACK: usize = 1 << 20;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRecord {
    /// Position of the shot in the input, from 0.
    pub index: u64,
    /// Its stream.
    pub stream: u32,
    /// Its sequence number in the stream; the sender's, if a sender gave one.
    pub sequence: u64,
    /// Error code; 0 if it was decoded.
    pub error: u16,
    /// The rescue decoder gave it.
    pub is_rescued: bool,
    /// Name of the decoder that gave it; `None` with an error.
    pub decoder: Option<&'static str>,
    /// How much likelier the observables are than any others, decibels; `None`: not asked for, or an error.
    pub gap_db: Option<u8>,
    /// Whether the answer is not to be trusted, because its gap is below the run's bound.
    pub abstained: bool,
    /// Hash of the error model by which it was decoded; without meaning with an error.
    pub model: u64,
    /// From scheduled arrival to answer, nanoseconds.
    pub latency_ns: u64,
    /// Predicted observable flips, bit-packed; not valid with an error.
    pub observables: [u64; OBSERVABLE_WORDS_MAX],
}

/// What an [`AnswerSink`] writes, and where.
#[derive(Debug, Clone)]
pub struct SinkConfig {
    /// File for predicted observables in input order.
    pub predictions: Option<PathBuf>,
    /// Format of that file.
    pub format: Format,
    /// File for one JSON line per answer; `-` is standard output.
    pub answers: Option<PathBuf>,
    /// Observables of the model, at most 64 × [`OBSERVABLE_WORDS_MAX`].
    pub observables: u32,
    /// Most shots under way at once (slots × silos), plus [`REORDER_SLACK`].
    pub window_shots: usize,
    /// Returns the name of an error code.
    pub error_name: fn(u16) -> &'static str,
}

/// Writes answers; see the module's text.
#[derive(Debug)]
pub struct AnswerSink {
    predictions: Option<Predictions>,
    answers: Option<Answers>,
    words: usize,
    error_name: fn(u16) -> &'static str,
    trouble: Vec<String>,
}

#[derive(Debug)]
struct Predictions {
    file: Named,
    order: Reorder,
    writer: ShotWriter<Output>,
}

#[derive(Debug)]
struct Answers {
    file: Named,
    output: Output,
}

/// What an output is called in an error.
#[derive(Debug)]
struct Named {
    option: &'static str,
    path: PathBuf,
    /// Where it stays if it cannot be finished.
    partial: Option<PathBuf>,
}

impl Named {
    fn of(option: &'static str, path: &Path, output: &Output) -> Named {
        Named { option, path: path.to_owned(), partial: output.partial().map(Path::to_owned) }
    }

    /// That it stops because of `why`, and what is left of it.
    fn stopped(&self, why: &dyn std::fmt::Display) -> String {
        let Named { option, path, partial } = self;
        let left = match partial.as_ref().filter(|partial| !is_empty(partial)) {
            Some(partial) => format!("what was written is in {}", partial.display()),
            None => "the output is incomplete".to_owned(),
        };
        format!("{option} {}: {why}; {left}", path.display())
    }

    fn refused(&self, error: &dyn std::fmt::Display) -> String {
        self.stopped(&format!("cannot write it ({error})"))
    }
}

/// One line of `--answers`.
#[derive(Serialize)]
struct AnswerLine<'a> {
    stream: u32,
    seq: u64,
    status: &'a str,
    observables: &'a [u32],
    latency_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoder: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap_db: Option<u8>,
}

impl AnswerSink {
    /// Opens the outputs.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if one cannot be opened; no file is left behind.
    ///
    /// # Panics
    ///
    /// If the observables do not fit an [`AnswerRecord`]; callers refuse such models.
    pub fn new(config: &SinkConfig) -> Result<AnswerSink, OutputError> {
        let layout = Layout::observables(config.observables);
        assert!(layout.words() <= OBSERVABLE_WORDS_MAX, "{} observables", config.observables);
        let open_answers = || match &config.answers {
            None => Ok(None),
            Some(path) => {
                let is_stdout = path == Path::new("-");
                let output = if is_stdout { Output::stdout() } else { Output::file(path, "--answers")?.kept() };
                Ok(Some(Answers { file: Named::of("--answers", path, &output), output }))
            }
        };
        // Opening a FIFO waits for its reader. So open it first: a signal meanwhile leaves no
        // hidden file.
        let through = config.answers.as_deref().filter(|path| !Output::appears_whole(path));
        let early = if through.is_some() { open_answers()? } else { None };
        let predictions = match &config.predictions {
            None => None,
            Some(path) => {
                let output = Output::file(path, "--predictions")?.kept();
                let file = Named::of("--predictions", path, &output);
                let writer = ShotWriter::new(output, config.format, layout);
                let order = Reorder::new(config.window_shots, layout.words());
                Some(Predictions { file, order, writer })
            }
        };
        let answers = if early.is_some() { early } else { open_answers()? };
        let error_name = config.error_name;
        Ok(AnswerSink { predictions, answers, words: layout.words(), error_name, trouble: Vec::new() })
    }

    /// Most shots between two answers, if they are put into input order.
    pub fn window_shots(&self) -> Option<usize> {
        self.predictions.as_ref().map(|predictions| predictions.order.window())
    }

    /// Writes one answer.
    pub fn accept(&mut self, record: &AnswerRecord) {
        if let Some(predictions) = &mut self.predictions
            && let Err(said) = predictions.take(record, self.words)
        {
            self.trouble.push(said);
            self.predictions = None;
        }
        if let Some(answers) = &mut self.answers
            && let Err(error) = answers.write(record, self.words, self.error_name)
        {
            self.trouble.push(answers.file.refused(&error));
            self.answers = None;
        }
    }

    /// Flushes the buffered answer lines. Call it when no answer has come for a while.
    pub fn flush(&mut self) {
        if let Some(answers) = &mut self.answers
            && let Err(error) = answers.output.flush()
        {
            self.trouble.push(answers.file.refused(&error));
            self.answers = None;
        }
    }

    /// Writes what is left and renames the files to their final names.
    ///
    /// # Errors
    ///
    /// The errors of the run and of this call, in one sentence.
    pub fn finish(self) -> Result<(), String> {
        let mut trouble = self.trouble;
        if let Some(predictions) = self.predictions {
            trouble.extend(predictions.finish().err());
        }
        if let Some(Answers { file, output }) = self.answers {
            trouble.extend(output.commit().err().map(|error| file.refused(&error)));
        }
        if trouble.is_empty() { Ok(()) } else { Err(trouble.join("; ")) }
    }
}

impl Predictions {
    fn take(&mut self, record: &AnswerRecord, words: usize) -> Result<(), String> {
        let zeros = [0; OBSERVABLE_WORDS_MAX];
        let observables = if record.error == 0 { &record.observables } else { &zeros };
        let Predictions { file, order, writer } = self;
        order
            .insert(record.index, &observables[..words], |shot| writer.write_shot(shot))
            .map_err(|error| file.stopped(&format!("{error}; run with fewer silos or without it")))?
            .map_err(|error| file.refused(&error))
    }

    fn finish(self) -> Result<(), String> {
        let Predictions { file, mut order, mut writer } = self;
        order.finish(|shot| writer.write_shot(shot)).map_err(|error| file.refused(&error))?;
        let output = writer.finish().map_err(|error| file.refused(&error))?;
        output.commit().map_err(|error| file.refused(&error))
    }
}

impl Answers {
    fn write(&mut self, record: &AnswerRecord, words: usize, name: fn(u16) -> &'static str) -> std::io::Result<()> {
        let decoded = record.error == 0;
        let flips: Vec<u32> = if decoded { ones(&record.observables[..words]).collect() } else { Vec::new() };
        let line = AnswerLine {
            stream: record.stream,
            seq: record.sequence,
            status: match (decoded, record.abstained, record.is_rescued) {
                (true, false, false) => "ok",
                (true, true, _) => "abstained",
                (true, false, true) => "rescued",
                (false, ..) => name(record.error),
            },
            observables: &flips,
            latency_ns: record.latency_ns,
            decoder: record.decoder,
            model: record.decoder.map(|_| format!("{:016x}", record.model)),
            gap_db: record.gap_db,
        };
        serde_json::to_writer(&mut self.output, &line)?;
        self.output.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests;
