//! The decoders of a run, prepared: which of them decodes each stream, and each worker's matchers.
//!
//! Cold code makes a [`Prepared`]; each decode worker has [`Matchers`] of its own, built from it.
//! Bounds: one matcher for each decoder that the profile names. A shot finds its matcher by its
//! stream's number; where one decoder serves all streams, by one comparison.

use super::{Matcher, MatcherModel, ReadyError};
use crate::code::Model;
use crate::pipe::AnsweredBy;
use crate::profile::{Decoder, Predecoder, Profile, StreamDecoder, Window};
use std::sync::Arc;

/// The decoders of a run.
#[derive(Clone)]
pub struct Prepared {
    /// The first decodes all streams that are not named.
    all: Vec<(Decoder, MatcherModel)>,
    /// By stream: which of `all`; empty if there is only one.
    by_stream: Arc<[u8]>,
}

impl Prepared {
    /// Prepares `model` for the decoders of `profile`. Those of `ready` are taken from there: they
    /// were prepared for the same model and windows.
    ///
    /// # Errors
    ///
    /// As [`MatcherModel::of`], of the first decoder that is refused.
    pub fn of(model: &Model, profile: &Profile, ready: Option<&Prepared>) -> Result<Prepared, ReadyError> {
        let mut prepared = Prepared { all: Vec::new(), by_stream: Arc::default() };
        let mut place = |decoder: Decoder| -> Result<u8, ReadyError> {
            let all = &mut prepared.all;
            let at = all.iter().position(|(known, _)| *known == decoder);
            if at.is_none() {
                let known = ready.and_then(|ready| ready.all.iter().find(|(known, _)| *known == decoder));
                let matching = match known {
                    Some((_, matching)) => matching.clone(),
                    None => MatcherModel::of(model, decoder, profile.predecoder, profile.window)?,
                };
                all.push((decoder, matching));
            }
            Ok(at.unwrap_or(all.len() - 1) as u8)
        };
        place(profile.decoder)?;
        let mut by_stream = vec![0; profile.input.streams as usize];
        for StreamDecoder { stream, decoder } in &profile.streams {
            by_stream[*stream as usize] = place(*decoder)?;
        }
        if prepared.all.len() > 1 {
            prepared.by_stream = by_stream.into();
        }
        Ok(prepared)
    }

    /// Prepares `model` for one decoder of all streams.
    ///
    /// # Errors
    ///
    /// As [`MatcherModel::of`].
    pub fn one(
        model: &Model,
        decoder: Decoder,
        predecoder: Predecoder,
        window: Window,
    ) -> Result<Prepared, ReadyError> {
        Ok(Prepared::just(decoder, MatcherModel::of(model, decoder, predecoder, window)?))
    }

    /// One decoder of all streams, whose model is prepared.
    #[must_use]
    pub fn just(decoder: Decoder, matching: MatcherModel) -> Prepared {
        Prepared { all: vec![(decoder, matching)], by_stream: Arc::default() }
    }

    /// The model of the decoder of all streams that are not named.
    #[must_use]
    pub fn main(&self) -> &MatcherModel {
        &self.all[0].1
    }

    /// Builds a worker's matchers, of number `epoch`.
    #[must_use]
    pub fn matchers(&self, epoch: u64) -> Matchers {
        let mut all = self.all.iter().map(|(decoder, model)| {
            let (by, matcher) = (AnsweredBy::new(*decoder), model.matcher());
            MatcherOf { matcher, by, model: model.clone() }
        });
        let main = all.next().expect("there is a decoder of the streams that are not named");
        Matchers { main, others: all.collect(), by_stream: Arc::clone(&self.by_stream), epoch }
    }

    /// Bytes of the matchers on the heap: those that all workers share, and those of each worker.
    /// Builds matchers to measure them.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        let shared = self.all.iter().map(|(_, model)| model.bytes()).sum();
        (shared, self.all.iter().map(|(_, model)| model.matcher().bytes()).sum())
    }

    /// Names of the decoders, as reports show them.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = self.main().name().to_owned();
        for (at, (_, model)) in self.all.iter().enumerate().skip(1) {
            let streams = self.by_stream.iter().filter(|of| usize::from(**of) == at).count();
            name.push_str(&format!(", {} for {streams} of {} streams", model.name(), self.by_stream.len()));
        }
        name
    }
}

/// One worker's matcher of one decoder.
struct MatcherOf {
    matcher: Box<dyn Matcher>,
    by: AnsweredBy,
    /// For a matcher that a panic has left half-done.
    model: MatcherModel,
}

/// One worker's matchers.
pub struct Matchers {
    main: MatcherOf,
    others: Box<[MatcherOf]>,
    /// By stream: 0 for `main`, otherwise one more than the place in `others`; empty: all `main`.
    by_stream: Arc<[u8]>,
    pub(super) epoch: u64,
}

impl Matchers {
    #[inline]
    fn at(&mut self, stream: u32) -> &mut MatcherOf {
        match self.by_stream.get(stream as usize) {
            None | Some(0) => &mut self.main,
            Some(place) => &mut self.others[usize::from(*place) - 1],
        }
    }

    /// The matcher for shots of `stream`, and what its answers say of their origin.
    #[inline]
    pub fn of(&mut self, stream: u32) -> (&mut dyn Matcher, AnsweredBy) {
        let found = self.at(stream);
        (&mut *found.matcher, found.by)
    }

    /// What answers say of their origin, of streams that are not named.
    pub(super) fn main(&self) -> AnsweredBy {
        self.main.by
    }

    /// Rebuilds the matcher for shots of `stream`.
    pub(super) fn renew(&mut self, stream: u32) {
        let found = self.at(stream);
        found.matcher = found.model.matcher();
    }
}
