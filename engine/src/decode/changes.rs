//! Changes of decoders and of error models while shots are decoded.
//!
//! Owns what is in force, and the cold ends of two mailboxes for each decode worker: one brings
//! prebuilt matchers, the other brings the worker's old ones back. Cold threads share it; each
//! holds the lock to move a few messages. A worker looks for a message once a call, between two
//! shots, and acknowledges by the epoch on its block of the board. Hot threads neither build nor
//! drop a matcher for a change.
//!
//! ```text
//!  requester: prepare, build (no lock) ─▶ begin ─▶ waiting ──mailbox──▶ worker: swap, acknowledge
//!                                                     ▲                        │
//!                                        step: drop ◀─┴────────mailbox─────────┘ the old ones
//! ```
//!
//! A feed whose stream gets another model gets new counters of its input's health the same way, one stream
//! after the other.
//!
//! Bounds: for each worker one set under way and one that waits. A newer set replaces the one that
//! waits. A worker that has died keeps what it was given until its silo is rebuilt. A run has at most
//! [`MODELS_MAX`] models; of those that are not in force it keeps the names and the one before the last
//! change, which can be taken back.
//!
//! # Why an arena for each set
//! Fresh memory from the system has no pages yet: the first shots after a change would each meet
//! page faults. An arena's pages are there, and go as soon as its last block is dropped.

use super::ReadyError;
use super::prepared::{Matchers, Models, NumberedModel, Prepared};
use crate::code::Model;
use crate::code::health::InputHealth;
use crate::feed::health_changes::{FreshHealth, HealthChanges};
use crate::hot::mailbox::{MailboxReceiver, MailboxSender, mailbox};
use crate::hot::memory::Arena;
use crate::pipe::MODELS_MAX;
use crate::profile::{Predecoder, Profile, Window};
use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Why another decoder or model is refused; what was before stays in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ChangeRefused {
    #[error(
        "this run decodes its shots by windows, which keep their decoder and model to the end; start it again with \
         the others"
    )]
    Windows,
    #[error("there is no stream {stream}; name one from 0 to {last}")]
    Stream { stream: u32, last: u32 },
    #[error(transparent)]
    Ready(#[from] ReadyError),
    #[error(
        "{name} has other widths than the shots of this run: detectors {found_detectors} instead of {detectors}, \
         observables {found_observables} instead of {observables}; name a model of the same experiment"
    )]
    Width { name: String, found_detectors: u32, found_observables: u32, detectors: u32, observables: u32 },
    #[error(
        "this run predecodes its shots by the model of its start; start it again with predecoder: None, or with the \
         other model"
    )]
    Predecoder,
    #[error("this run has had {MODELS_MAX} models, and its answers can name no more; start it again")]
    Models,
    #[error("no change of the model to take back: this run decodes by the model of its start")]
    NoneBefore,
    #[error("another change of decoders or models was made at the same time; try again")]
    Busy,
}

/// A model and its name: a path, or the name of a bundled one.
#[derive(Clone)]
pub struct NamedModel {
    /// The name.
    pub name: String,
    /// The model.
    pub model: Arc<Model>,
}

/// A model that the run has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Its hash.
    pub hash: u64,
    /// Its name.
    pub name: String,
}

impl KnownModel {
    /// Its hash as 16 hexadecimal digits.
    pub fn hash_text(&self) -> String {
        format!("{:016x}", self.hash)
    }
}

/// The epoch of what a run begins with.
const FIRST_EPOCH: u64 = 1;

/// Other models of a change.
struct ModelChange {
    models: Models,
    /// A model that the run has not had before.
    new: Option<KnownModel>,
}

/// Decoders and their matchers, ready to be used.
pub struct Change {
    prepared: Prepared,
    models: Option<ModelChange>,
    built: Vec<Matchers>,
    /// The epoch that was in force when they were built.
    after: u64,
}

impl Change {
    /// The epoch that it may follow.
    pub fn after(&self) -> u64 {
        self.after
    }
}

/// One worker as the cold side sees it.
struct Place {
    silo: usize,
    index: usize,
    sender: MailboxSender<Matchers>,
    returns: MailboxReceiver<Matchers>,
    waiting: Option<Matchers>,
    /// It was sent a set, and has not returned the one before.
    is_under_way: bool,
}

/// One feed as the cold side sees it.
struct FeedPlace {
    /// Its streams, each with the number of the model that its health is judged by.
    streams: Vec<(u32, u16)>,
    sender: MailboxSender<FreshHealth>,
    returns: MailboxReceiver<InputHealth>,
    /// It was sent counters, and has not returned those before.
    is_under_way: bool,
    /// The epoch whose models all its streams have.
    epoch: u64,
}

impl FeedPlace {
    /// Takes back the counters before, and sends those of the next stream whose model is another. `fresh`
    /// has counters by the models' numbers.
    fn step(&mut self, models: &Models, fresh: &mut BTreeMap<u16, InputHealth>, epoch: u64) -> Option<InputHealth> {
        let back = self.returns.pop();
        self.is_under_way &= back.is_none();
        if self.is_under_way || self.epoch == epoch {
            return back;
        }
        let count = self.streams.len();
        let is_other = |(_, (stream, number)): &(usize, &mut (u32, u16))| models.at(*stream).number != *number;
        match self.streams.iter_mut().enumerate().find(is_other) {
            Some((own, (stream, number))) => {
                let of = models.at(*stream);
                *number = of.number;
                let health = fresh.entry(of.number).or_insert_with(|| InputHealth::one_of(&of.model, count)).clone();
                // A feed that is gone needs none.
                self.is_under_way = self.sender.push(FreshHealth { own, health }).is_ok();
            }
            None => self.epoch = epoch,
        }
        back
    }
}

struct State {
    epoch: u64,
    prepared: Prepared,
    models: Models,
    /// The models before the last change of models, which taking it back restores.
    models_before: Option<Models>,
    /// Every model that the run has had, by number.
    known: Vec<KnownModel>,
    places: Vec<Place>,
    feeds: Vec<FeedPlace>,
    /// Counters of the input's health at zero, by the models' numbers, while a feed waits for some.
    fresh: BTreeMap<u16, InputHealth>,
    /// Where the processes of plugins run; empty: anywhere.
    plugin_cores: Vec<u32>,
}

/// Changes of decoders and models; a clone refers to the same run.
#[derive(Clone)]
pub struct DecoderChanges {
    model: Arc<Model>,
    #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
    state: Arc<Mutex<State>>,
}

/// A decode worker's ends of its mailboxes, with the decoders that it begins with.
pub struct WorkerChanges {
    /// Until the worker has begun.
    prepared: Option<Prepared>,
    epoch: u64,
    changes: MailboxReceiver<Matchers>,
    returns: MailboxSender<Matchers>,
}

impl DecoderChanges {
    /// `prepared` is in force, for `model`.
    pub fn new(model: &Arc<Model>, prepared: Prepared) -> DecoderChanges {
        let known = vec![KnownModel { hash: model.hash(), name: String::new() }];
        let state = State {
            epoch: FIRST_EPOCH,
            prepared,
            models: Models::of(model),
            models_before: None,
            known,
            places: Vec::new(),
            feeds: Vec::new(),
            fresh: BTreeMap::new(),
            plugin_cores: Vec::new(),
        };
        #[expect(clippy::disallowed_types, reason = "cold: shared by the engine's cold threads")]
        let state = Arc::new(Mutex::new(state));
        DecoderChanges { model: Arc::clone(model), state }
    }

    /// A panic under the lock leaves a change half sent; the next step sends the rest.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ends of worker `index` of `silo`, which begins with what is in force. They replace those
    /// of a worker that ran there before.
    pub fn join(&self, silo: usize, index: usize) -> WorkerChanges {
        let ((sender, changes), (gives, returns)) = (mailbox(1), mailbox(1));
        let mut state = self.lock();
        let place = Place { silo, index, sender, returns, waiting: None, is_under_way: false };
        state.places.retain(|place| (place.silo, place.index) != (silo, index));
        state.places.push(place);
        WorkerChanges { prepared: Some(state.prepared.clone()), epoch: state.epoch, changes, returns: gives }
    }

    /// The ends of the feed of these streams, which begins with the model of the start.
    pub fn join_feed(&self, streams: &[u32]) -> HealthChanges {
        let ((sender, fresh), (gives, returns)) = (mailbox(1), mailbox(1));
        let streams = streams.iter().map(|stream| (*stream, 0)).collect();
        self.lock().feeds.push(FeedPlace { streams, sender, returns, is_under_way: false, epoch: FIRST_EPOCH });
        HealthChanges { fresh, returns: gives }
    }

    /// Has the processes of plugins run on these cores, those of later changes too.
    pub fn confine_plugins(&self, cores: &[u32]) {
        let mut state = self.lock();
        state.plugin_cores = cores.to_vec();
        state.prepared.confine_plugins(cores);
    }

    /// The error models in force.
    pub fn models_in_force(&self) -> Models {
        self.lock().models.clone()
    }

    /// What is in force.
    pub fn in_force(&self) -> Prepared {
        self.lock().prepared.clone()
    }

    /// Epoch of what is in force.
    pub fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// Names the model of the start.
    pub fn name_first(&self, name: &str) {
        name.clone_into(&mut self.lock().known[0].name);
    }

    /// Hash of the model of this number; numbers come with answers. `None`: the run has had none.
    pub fn model_hash(&self, number: u16) -> Option<u64> {
        self.lock().known.get(usize::from(number)).map(|known| known.hash)
    }

    /// Number and hash of the model in force for `stream`.
    pub(super) fn in_force_at(&self, stream: u32) -> (u16, u64) {
        let state = self.lock();
        let number = state.models.at(stream).number;
        (number, state.known[usize::from(number)].hash)
    }

    /// The model of all streams that are not named, and the streams with a model of their own.
    pub fn models(&self) -> (KnownModel, Vec<(u32, KnownModel)>) {
        let state = self.lock();
        let known = |of: &NumberedModel| state.known[usize::from(of.number)].clone();
        let streams = state.models.streams.iter().map(|(stream, of)| (*stream, known(of)));
        (known(&state.models.main), streams.collect())
    }

    /// A model in force that is not the model of the start, if there is one.
    pub fn other_than_first(&self) -> Option<KnownModel> {
        let state = self.lock();
        state.models.all().find(|of| of.number != 0).map(|of| state.known[usize::from(of.number)].clone())
    }

    /// Prepares the decoders of `profile` for the running engine, whose streams and windows it has, and
    /// builds the matchers of all workers, on the calling thread. Takes as long as that takes. What
    /// `ready` has is not prepared again.
    ///
    /// # Errors
    /// [`ChangeRefused`], in one sentence; nothing has changed.
    pub fn prepare(&self, profile: &Profile, ready: Option<&Prepared>) -> Result<Change, ChangeRefused> {
        let last = profile.input.streams - 1;
        if let Some(named) = profile.streams.iter().find(|named| named.stream > last) {
            return Err(ChangeRefused::Stream { stream: named.stream, last });
        }
        let (models, after) = {
            let state = self.lock();
            (state.models.clone(), state.epoch)
        };
        self.build(profile, (&models, None), ready, after)
    }

    /// As [`DecoderChanges::prepare`], for the decoders of `profile`, which are in force, by another
    /// model: of `stream`, or of all streams.
    ///
    /// # Errors
    /// As [`DecoderChanges::prepare`].
    pub fn prepare_model(
        &self,
        profile: &Profile,
        named: &NamedModel,
        stream: Option<u32>,
    ) -> Result<Change, ChangeRefused> {
        let last = profile.input.streams - 1;
        if let Some(stream) = stream.filter(|stream| *stream > last) {
            return Err(ChangeRefused::Stream { stream, last });
        }
        let NamedModel { name, model } = &self.of_the_shots(named)?;
        let hash = model.hash();
        let (mut models, known, after) = {
            let state = self.lock();
            let known = state.known.iter().position(|known| known.hash == hash).ok_or(state.known.len());
            (state.models.clone(), known, state.epoch)
        };
        let (number, new) = match known {
            Ok(number) => (number, None),
            Err(MODELS_MAX..) => return Err(ChangeRefused::Models),
            Err(number) => (number, Some(KnownModel { hash, name: name.clone() })),
        };
        let numbered = NumberedModel { number: number as u16, model: Arc::clone(model) };
        match stream {
            None => models = Models { main: numbered, streams: BTreeMap::new() },
            Some(stream) if models.main.number == numbered.number => {
                models.streams.remove(&stream);
            }
            Some(stream) => {
                models.streams.insert(stream, numbered);
            }
        }
        self.build(profile, (&models, Some(new)), None, after)
    }

    /// A model that has the widths of the run's shots, with the map of their soft bytes, if there is one.
    ///
    /// # Errors
    /// [`ChangeRefused::Width`]; [`ChangeRefused::Ready`] if the map does not belong to the model.
    pub fn of_the_shots(&self, named: &NamedModel) -> Result<NamedModel, ChangeRefused> {
        let NamedModel { name, model } = named;
        let Model { detectors, observables, .. } = *self.model;
        if (model.detectors, model.observables) != (detectors, observables) {
            let (found_detectors, found_observables) = (model.detectors, model.observables);
            let name = name.clone();
            return Err(ChangeRefused::Width { name, found_detectors, found_observables, detectors, observables });
        }
        let Some(map) = &self.model.soft else { return Ok(named.clone()) };
        let model = Model::clone(model).with_soft(Arc::clone(map)).map_err(ReadyError::from)?;
        Ok(NamedModel { name: name.clone(), model: Arc::new(model) })
    }

    /// As [`DecoderChanges::prepare_model`], by the models before the last change of models.
    ///
    /// # Errors
    /// As [`DecoderChanges::prepare`].
    pub fn prepare_models_before(&self, profile: &Profile) -> Result<Change, ChangeRefused> {
        let (models, after) = {
            let state = self.lock();
            (state.models_before.clone().ok_or(ChangeRefused::NoneBefore)?, state.epoch)
        };
        self.build(profile, (&models, Some(None)), None, after)
    }

    /// `change`: whether `models` are others than those in force, with a model that is new in the run.
    fn build(
        &self,
        profile: &Profile,
        (models, change): (&Models, Option<Option<KnownModel>>),
        ready: Option<&Prepared>,
        after: u64,
    ) -> Result<Change, ChangeRefused> {
        if profile.window != Window::None {
            return Err(ChangeRefused::Windows);
        }
        if change.is_some() && profile.predecoder != Predecoder::None {
            return Err(ChangeRefused::Predecoder);
        }
        let (in_force, workers, plugin_cores) = {
            let state = self.lock();
            (state.prepared.clone(), state.places.len(), state.plugin_cores.clone())
        };
        let ready: Vec<&Prepared> = ready.into_iter().chain([&in_force]).collect();
        let prepared = Prepared::of(models, profile, &ready)?;
        prepared.confine_plugins(&plugin_cores);
        let built = (0..workers).map(|_| matchers(&prepared)).collect();
        let models = change.map(|new| ModelChange { models: models.clone(), new });
        Ok(Change { prepared, models, built, after })
    }

    /// Puts a change into force, and returns its epoch: a worker that acknowledges it decodes by the
    /// new decoders only.
    ///
    /// # Errors
    /// [`ChangeRefused::Busy`] if another change came after [`DecoderChanges::prepare`].
    pub fn begin(&self, change: Change) -> Result<u64, ChangeRefused> {
        let Change { prepared, models, mut built, after } = change;
        let mut state = self.lock();
        if state.epoch != after {
            return Err(ChangeRefused::Busy);
        }
        state.epoch += 1;
        let State { epoch, places, .. } = &mut *state;
        let mut replaced = Vec::with_capacity(places.len());
        for place in places {
            // A silo that was rebuilt meanwhile may have added a worker.
            let mut own = built.pop().unwrap_or_else(|| matchers(&prepared));
            own.epoch = *epoch;
            replaced.push(place.waiting.replace(own));
        }
        let old = std::mem::replace(&mut state.prepared, prepared);
        if let Some(ModelChange { models, new }) = models {
            state.known.extend(new);
            let is_other = !models.is_same(&state.models);
            let before = std::mem::replace(&mut state.models, models);
            if is_other {
                state.models_before = Some(before);
            }
        }
        let epoch = state.epoch;
        drop(state);
        // Their memory is freed here, without the lock.
        drop((old, replaced));
        self.step();
        Ok(epoch)
    }

    /// Sends what waits, and drops what came back. Called by the control thread once a tick.
    pub fn step(&self) {
        let mut state = self.lock();
        let mut back = Vec::new();
        for place in &mut state.places {
            if let Some(old) = place.returns.pop() {
                back.push(old);
                place.is_under_way = false;
            }
            if !place.is_under_way
                && let Some(next) = place.waiting.take()
            {
                // The mailbox is empty, unless its worker is gone: then nobody needs them.
                match place.sender.push(next) {
                    Ok(()) => place.is_under_way = true,
                    Err(unsent) => back.push(unsent),
                }
            }
        }
        let State { feeds, models, fresh, epoch, .. } = &mut *state;
        let health: Vec<InputHealth> = feeds.iter_mut().filter_map(|feed| feed.step(models, fresh, *epoch)).collect();
        if feeds.iter().all(|feed| feed.epoch == *epoch) {
            fresh.clear();
        }
        drop(state);
        // Their memory is freed here, without the lock.
        drop((back, health));
    }
}

/// A set of matchers with memory of its own, which is touched here.
fn matchers(prepared: &Prepared) -> Matchers {
    Arena::new().within(|| prepared.matchers(0))
}

impl WorkerChanges {
    /// What the worker begins with, and its matchers, built for the calling thread. Called once: what is
    /// kept here would not be freed when others take its place.
    pub(super) fn first(&mut self) -> (Prepared, Matchers) {
        let prepared = self.prepared.take().expect("a worker begins once");
        let matchers = prepared.matchers(self.epoch);
        (prepared, matchers)
    }

    /// Whether other matchers have come.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.changes.is_waiting()
    }

    /// Exchanges `own` for the matchers that have come, if they are visible to this thread already.
    pub(super) fn exchange(&mut self, own: &mut Matchers) {
        let Some(new) = self.changes.pop() else { return };
        let old = std::mem::replace(own, new);
        // There is room: the next set comes after this one was taken out. Without a receiver the run
        // is over.
        let _ = self.returns.push(old);
    }
}

#[cfg(test)]
mod tests;
