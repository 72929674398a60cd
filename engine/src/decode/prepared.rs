//! The decoders of a run, prepared: which of them decodes each stream by which error model, and each
//! worker's matchers.
//!
//! Cold code makes a [`Prepared`]; each decode worker has [`Matchers`] of its own, built from it.
//! Bounds: one matcher for each decoder and model that a stream has. A shot finds its matcher by its
//! stream's number; where one serves all streams, by one comparison.

use super::plugin::PluginModel;
use super::rescue::{Choice, Pending, RescueChoice};
use super::{Matcher, MatcherModel, ReadyError};
use crate::code::Model;
use crate::pipe::AnsweredBy;
use crate::profile::{Decoder, Limits, Predecoder, Profile, Rescue, Window};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An error model with its number in the run, which answers carry.
#[derive(Clone)]
pub struct NumberedModel {
    /// The number; that of the start has 0.
    pub number: u16,
    /// The model.
    pub model: Arc<Model>,
}

/// The error models by which a run decodes, all of the same widths.
#[derive(Clone)]
pub struct Models {
    /// Of all streams that are not named.
    pub main: NumberedModel,
    /// Of single streams.
    pub streams: BTreeMap<u32, NumberedModel>,
}

impl Models {
    /// The model of the start, for all streams.
    pub fn of(model: &Arc<Model>) -> Models {
        let main = NumberedModel { number: 0, model: Arc::clone(model) };
        Models { main, streams: BTreeMap::new() }
    }

    /// The model of `stream`.
    pub fn at(&self, stream: u32) -> &NumberedModel {
        self.streams.get(&stream).unwrap_or(&self.main)
    }

    /// All of them; a model that several streams have comes several times.
    pub fn all(&self) -> impl Iterator<Item = &NumberedModel> {
        std::iter::once(&self.main).chain(self.streams.values())
    }

    /// Whether each stream has the same model in both.
    pub(super) fn is_same(&self, other: &Models) -> bool {
        let numbers = |of: &BTreeMap<u32, NumberedModel>| -> Vec<(u32, u16)> {
            of.iter().map(|(stream, of)| (*stream, of.number)).collect()
        };
        self.main.number == other.main.number && numbers(&self.streams) == numbers(&other.streams)
    }
}

/// One decoder, prepared for one model.
#[derive(Clone)]
struct Ready {
    decoder: Decoder,
    model: u16,
    matching: MatcherModel,
    /// What rescues its shots; `None` if nothing does, or if that would be the same decoder.
    rescue: Option<(Rescue, MatcherModel)>,
}

/// The decoders of a run.
#[derive(Clone)]
pub struct Prepared {
    /// The first decodes all streams that are not named.
    all: Vec<Ready>,
    /// By stream: which of `all`; empty if there is only one.
    by_stream: Arc<[u16]>,
}

impl Prepared {
    /// Prepares `models` for the decoders of `profile`. What `ready` has is taken from there: it was
    /// prepared for models of the same run.
    ///
    /// # Errors
    ///
    /// As [`MatcherModel::of`], of the first decoder that is refused.
    ///
    /// # Panics
    ///
    /// If `profile` or `models` name a stream that the profile does not have.
    pub fn of(models: &Models, profile: &Profile, ready: &[&Prepared]) -> Result<Prepared, ReadyError> {
        // The time that a shot takes is estimated by its bits, all of which are detectors.
        if models.main.model.soft.is_some() && profile.deadlines.are_set() {
            return Err(ReadyError::Soft);
        }
        let mut all: Vec<Ready> = Vec::new();
        // One rescue decoder serves all decoders of a model.
        let rescue_of = |all: &[Ready], decoder: &Decoder, of: &NumberedModel| -> Result<_, ReadyError> {
            let wanted = profile.deadlines.rescue.filter(|rescue| rescue.decoder() != Some(decoder.kind()));
            let Some(rescue) = wanted else { return Ok(None) };
            let of_model = |ready: &&Ready| ready.model == of.number;
            let known = all.iter().chain(ready.iter().flat_map(|ready| &ready.all)).filter(of_model);
            let known = known.filter_map(|ready| ready.rescue.as_ref()).find(|(kind, _)| *kind == rescue);
            Ok(Some(match known {
                Some(known) => known.clone(),
                None => (rescue, MatcherModel::rescue(&of.model, rescue)?),
            }))
        };
        let mut place = |decoder: &Decoder, of: &NumberedModel| -> Result<u16, ReadyError> {
            let is_it = |ready: &&Ready| (&ready.decoder, ready.model) == (decoder, of.number);
            if let Some(at) = all.iter().position(|ready| is_it(&ready)) {
                return Ok(at as u16);
            }
            let known = ready.iter().find_map(|ready| ready.all.iter().find(is_it));
            let matching = match known {
                Some(known) => known.matching.clone(),
                None => {
                    let decoder = with_limit(decoder.clone(), &profile.limits);
                    let plain = MatcherModel::of(&of.model, decoder, profile.predecoder, profile.window)?;
                    if profile.confidence { plain.with_confidence(&of.model)? } else { plain }
                }
            };
            let rescue = rescue_of(&all, decoder, of)?;
            all.push(Ready { decoder: decoder.clone(), model: of.number, matching, rescue });
            Ok((all.len() - 1) as u16)
        };
        place(&profile.decoder, &models.main)?;
        let mut by_stream = vec![0; profile.input.streams as usize];
        let named = profile.streams.iter().map(|named| (named.stream, &named.decoder));
        let of_models = models.streams.keys().map(|stream| (*stream, &profile.decoder));
        // A stream with a decoder of its own has it with its model, too.
        let each: BTreeMap<u32, &Decoder> = of_models.chain(named).collect();
        for (stream, decoder) in each {
            by_stream[stream as usize] = place(decoder, models.at(stream))?;
        }
        let by_stream = if all.len() > 1 { by_stream.into() } else { Arc::default() };
        Ok(Prepared { all, by_stream })
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
        Ok(Prepared::just(decoder.clone(), MatcherModel::of(model, decoder, predecoder, window)?))
    }

    /// One decoder of all streams, whose model is prepared.
    pub fn just(decoder: Decoder, matching: MatcherModel) -> Prepared {
        Prepared { all: vec![Ready { decoder, model: 0, matching, rescue: None }], by_stream: Arc::default() }
    }

    /// As [`Prepared::just`], with a rescue decoder.
    #[cfg(test)]
    pub(crate) fn with_rescue(decoder: Decoder, own: MatcherModel, rescue: Option<(Rescue, MatcherModel)>) -> Prepared {
        Prepared { all: vec![Ready { decoder, model: 0, matching: own, rescue }], by_stream: Arc::default() }
    }

    /// What decodes the streams that are not named.
    pub fn main(&self) -> &MatcherModel {
        &self.all[0].matching
    }

    /// Builds a worker's matchers, of number `epoch`.
    pub fn matchers(&self, epoch: u64) -> Matchers {
        let mut all = self.all.iter().map(|Ready { decoder, model, matching, rescue }| {
            let own = MatcherOf::new(matching, AnsweredBy::new(decoder.kind(), *model));
            let rescue = rescue.as_ref().map(|(rescue, matching)| {
                let by = AnsweredBy::rescue(*rescue, *model);
                MatcherOf::new(matching, by)
            });
            Serving { own, choice: Box::new(RescueChoice::new(rescue.is_some())), rescue }
        });
        let main = all.next().expect("there is a decoder of the streams that are not named");
        Matchers { main, others: all.collect(), by_stream: Arc::clone(&self.by_stream), epoch }
    }

    /// Bytes of the matchers on the heap: those that all workers share, and those of each worker.
    /// Builds matchers to measure them, but none of plugins.
    pub fn bytes(&self) -> (usize, usize) {
        let mut rescues: Vec<(Rescue, u16)> = Vec::new();
        let (mut shared, mut own) = (0, 0);
        for Ready { model, matching, rescue, .. } in &self.all {
            shared += matching.bytes();
            own += matching.matcher_bytes();
            let Some((kind, matching)) = rescue else { continue };
            own += matching.matcher_bytes();
            if !rescues.contains(&(*kind, *model)) {
                rescues.push((*kind, *model));
                shared += matching.bytes();
            }
        }
        (shared, own)
    }

    /// Has the processes of plugins run on these cores only.
    pub fn confine_plugins(&self, cores: &[u32]) {
        self.plugins().for_each(|plugin| plugin.confine(cores));
    }

    /// Whether a plugin decodes on the threads of decode workers.
    pub fn has_trusted_plugin(&self) -> bool {
        self.plugins().any(PluginModel::is_trusted)
    }

    fn plugins(&self) -> impl Iterator<Item = &PluginModel> {
        self.all.iter().filter_map(|ready| ready.matching.plugin())
    }

    /// Names of the decoders, as reports show them.
    pub fn name(&self) -> String {
        let main = &self.all[0];
        let mut name = main.matching.name().to_owned();
        let mut others: Vec<&Decoder> = Vec::new();
        for ready in &self.all[1..] {
            if ready.decoder == main.decoder || others.contains(&&ready.decoder) {
                continue;
            }
            others.push(&ready.decoder);
            let is_its = |of: &&u16| self.all[usize::from(**of)].decoder == ready.decoder;
            let (streams, all) = (self.by_stream.iter().filter(is_its).count(), self.by_stream.len());
            name.push_str(&format!(", {} for {streams} of {all} streams", ready.matching.name()));
        }
        name
    }
}

/// `decoder` with the time limit that a plugin gets if its profile names none: the total deadline of a shot,
/// but no time in which a thread would count as stalled.
fn with_limit(mut decoder: Decoder, limits: &Limits) -> Decoder {
    if let Decoder::Plugin { limit_us: limit_us @ None, .. } = &mut decoder {
        *limit_us = Some(limits.shot_deadline_us.min(limits.heartbeat_ms * 1_000 / 2));
    }
    decoder
}

/// One worker's matcher of one decoder and model.
struct MatcherOf {
    matcher: Box<dyn Matcher>,
    by: AnsweredBy,
    /// For a matcher that a panic has left half-done.
    matching: MatcherModel,
}

impl MatcherOf {
    fn new(matching: &MatcherModel, by: AnsweredBy) -> MatcherOf {
        MatcherOf { matcher: matching.matcher(), by, matching: matching.clone() }
    }
}

/// What serves the shots of some streams on one worker.
struct Serving {
    own: MatcherOf,
    rescue: Option<MatcherOf>,
    /// In a box: matchers are moved when they are exchanged.
    choice: Box<RescueChoice>,
}

/// One worker's matchers.
pub struct Matchers {
    main: Serving,
    others: Box<[Serving]>,
    /// By stream: 0 for `main`, otherwise one more than the place in `others`; empty: all `main`.
    by_stream: Arc<[u16]>,
    pub(super) epoch: u64,
}

impl Matchers {
    #[inline]
    fn at(&mut self, stream: u32) -> &mut Serving {
        match self.by_stream.get(stream as usize) {
            None | Some(0) => &mut self.main,
            Some(place) => &mut self.others[usize::from(*place) - 1],
        }
    }

    /// The matcher for shots of `stream`, and what its answers say of their origin.
    #[inline]
    pub fn of(&mut self, stream: u32) -> (&mut dyn Matcher, AnsweredBy) {
        let own = &mut self.at(stream).own;
        (&mut *own.matcher, own.by)
    }

    /// Chooses what answers a shot of `stream` that has a deadline.
    pub(super) fn choose(&mut self, stream: u32, shot: Pending) -> Choice {
        self.at(stream).choice.choose(shot)
    }

    /// As [`Matchers::of`], of what was chosen; `None` for a refusal.
    pub(super) fn chosen(&mut self, stream: u32, choice: Choice) -> Option<(&mut dyn Matcher, AnsweredBy)> {
        let serving = self.at(stream);
        let chosen = match choice {
            Choice::Own => &mut serving.own,
            Choice::Rescue => serving.rescue.as_mut()?,
            Choice::Refuse => return None,
        };
        Some((&mut *chosen.matcher, chosen.by))
    }

    /// What was chosen for a shot of `stream` with this many detection events has taken `ticks`.
    pub(super) fn note(&mut self, stream: u32, choice: Choice, events: u32, ticks: u64) {
        self.at(stream).choice.note(choice, events, ticks);
    }

    /// Ticks that a usual shot of `stream` is expected to take by its own decoder and by the rescue decoder.
    pub(super) fn expected(&mut self, stream: u32) -> (u64, u64) {
        self.at(stream).choice.expected()
    }

    /// What answers say of their origin, of streams that are not named.
    pub(super) fn main(&self) -> AnsweredBy {
        self.main.own.by
    }

    /// Rebuilds the matchers for shots of `stream`.
    pub(super) fn renew(&mut self, stream: u32) {
        let serving = self.at(stream);
        for of in std::iter::once(&mut serving.own).chain(&mut serving.rescue) {
            if !of.matcher.recover() {
                of.matcher = of.matching.matcher();
            }
        }
    }
}
