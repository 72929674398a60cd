//! The shadow: a second decoder, to which harvest gives a sample of the answered shots, and the thread
//! that compares its answers with those of the path.
//!
//! Owns the reading ends of harvest's samples, the matchers of the shadow and its block of the board. Runs
//! on a cold thread, confined to cold cores, which sleeps until the first shadow begins. Bounds: the
//! samples that wait, beyond which harvest leaves shots out; one matcher for each model in force;
//! [`crate::record::DISAGREEMENTS_MAX`] shots kept. Every chosen shot is counted: compared, not compared
//! for a reason, or left out. No shot waits for it.

use super::cold::{self, ColdThreads};
use super::model_file;
use crate::board::{self, Board};
use crate::clock::Clock;
use crate::code::Model;
use crate::decode::changes::{ChangeRefused, DecoderChanges, NamedModel};
use crate::decode::prepared::Models;
use crate::decode::{Matcher, MatcherModel, ReadyError};
use crate::dispatch::sampled::{AnswerSampleReader, SampledShot};
use crate::profile::{Decoder, DecoderKind, Predecoder, SHADOW_ONE_IN, Shadow, Window};
use crate::record::{Disagreement, Disagreements, KeptAnswer};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

/// Pause while there are no samples.
const NOTHING: Duration = Duration::from_millis(1);
/// Samples of one silo that are taken before the next silo has its turn.
const TURN: usize = 64;

/// Why a shadow is refused; the one before goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ShadowRefused {
    #[error("shadow: {0}")]
    Ready(#[from] ReadyError),
    #[error("shadow: {0}")]
    Model(String),
    #[error("shadow: {0}")]
    Width(#[from] ChangeRefused),
    #[error(
        "a shadow that gets one shot in {found} is not possible; name a number from {} to {}",
        SHADOW_ONE_IN.start(),
        SHADOW_ONE_IN.end()
    )]
    OneIn { found: u32 },
}

/// A shadow, ready to begin.
pub(super) struct ReadyShadow {
    decoder: Decoder,
    one_in: u32,
    /// The one model by which it decodes, if it does not follow the path's.
    own: Option<NamedModel>,
    /// Prepared for the models in force, by their numbers; for `own` under [`OWN`].
    ready: BTreeMap<u16, MatcherModel>,
}

/// The number of a shadow's own model.
const OWN: u16 = u16::MAX;

fn ready_for(model: &Model, decoder: Decoder) -> Result<MatcherModel, ReadyError> {
    if let Decoder::Plugin { .. } = decoder {
        return Err(ReadyError::ShadowPlugin);
    }
    MatcherModel::of(model, decoder, Predecoder::None, Window::None)
}

impl ReadyShadow {
    /// Reads its model, if it has its own, and prepares its decoder. Takes as long as that takes.
    ///
    /// # Errors
    /// [`ShadowRefused`], in one sentence.
    pub(super) fn of(shadow: &Shadow, decoders: &DecoderChanges) -> Result<ReadyShadow, ShadowRefused> {
        let Shadow { decoder, one_in, model } = shadow;
        if !SHADOW_ONE_IN.contains(&u64::from(*one_in)) {
            return Err(ShadowRefused::OneIn { found: *one_in });
        }
        let own = model.as_deref().map(model_file::read).transpose().map_err(ShadowRefused::Model)?;
        let own = own.map(|named| decoders.of_the_shots(&named)).transpose()?;
        let mut ready = BTreeMap::new();
        match &own {
            Some(named) => {
                ready.insert(OWN, ready_for(&named.model, decoder.clone())?);
            }
            None => {
                for of in decoders.models_in_force().all() {
                    ready.insert(of.number, ready_for(&of.model, decoder.clone())?);
                }
            }
        }
        Ok(ReadyShadow { decoder: decoder.clone(), one_in: *one_in, own, ready })
    }
}

/// A message to the shadow's thread.
enum ShadowMessage {
    Begin(Box<ReadyShadow>),
    Off,
    /// All shots are answered.
    End,
}

/// Controls the shadow of one engine; a clone refers to the same.
#[derive(Clone)]
pub(super) struct ShadowControl(Sender<ShadowMessage>);

impl ShadowControl {
    /// Begins with this shadow, or ends the one that is on. Harvest is to give it shots after this call.
    pub(super) fn set(&self, shadow: Option<ReadyShadow>) {
        let message = shadow.map_or(ShadowMessage::Off, |shadow| ShadowMessage::Begin(Box::new(shadow)));
        // A thread that has ended belongs to a run that has ended.
        let _ = self.0.send(message);
    }

    /// Ends its thread once it has compared all samples.
    pub(super) fn end(&self) {
        let _ = self.0.send(ShadowMessage::End);
    }
}

/// Parts of the engine that the thread needs.
pub(super) struct ShadowParts {
    pub(super) board: Arc<Board>,
    pub(super) clock: Clock,
    pub(super) decoders: DecoderChanges,
    /// Of each silo.
    pub(super) samples: Vec<AnswerSampleReader>,
    /// Where disagreements are kept, if the run has a directory.
    pub(super) kept: Option<Disagreements>,
    pub(super) threads: ColdThreads,
}

impl ShadowParts {
    /// Starts the thread. The receiver gets a message at its end.
    pub(super) fn spawn(self) -> io::Result<(ShadowControl, Receiver<()>)> {
        let ((sender, messages), (ends, ended)) = (channel(), channel());
        let threads = self.threads.clone();
        threads.spawn("shadow", move || {
            let ShadowParts { board, clock, decoders, mut samples, kept, .. } = self;
            let mut comparison = Comparison { board, clock, decoders, kept, on: None };
            comparison.run(&mut samples, &messages);
            let _ = ends.send(());
        })?;
        Ok((ShadowControl(sender), ended))
    }
}

/// The thread's state.
struct Comparison {
    board: Arc<Board>,
    clock: Clock,
    decoders: DecoderChanges,
    kept: Option<Disagreements>,
    on: Option<On>,
}

/// The shadow that is on.
struct On {
    decoder: Decoder,
    own: Option<u64>,
    ready: BTreeMap<u16, MatcherModel>,
    /// By the models' numbers; `None`: the decoder refuses the model.
    matchers: BTreeMap<u16, Option<ShadowMatcher>>,
    /// Epoch of the models below.
    epoch: u64,
    models: Models,
}

/// A matcher for one model.
struct ShadowMatcher {
    matching: MatcherModel,
    matcher: Box<dyn Matcher>,
    /// Hash of the model.
    hash: u64,
}

impl Comparison {
    fn run(&mut self, samples: &mut [AnswerSampleReader], messages: &Receiver<ShadowMessage>) {
        loop {
            let message = match &self.on {
                None => messages.recv().map_err(TryRecvError::from),
                Some(_) => messages.try_recv(),
            };
            match message {
                Ok(ShadowMessage::Begin(ready)) => self.begin(*ready, samples),
                Ok(ShadowMessage::Off) => {
                    while self.pass(samples) {}
                    self.end();
                }
                Ok(ShadowMessage::End) | Err(TryRecvError::Disconnected) => {
                    while self.on.is_some() && self.pass(samples) {}
                    return self.flush();
                }
                Err(TryRecvError::Empty) => {}
            }
            if self.on.is_some() && !self.pass(samples) {
                self.flush();
                cold::sleep(NOTHING);
            }
        }
    }

    /// Begins to count for another shadow.
    fn begin(&mut self, ready: ReadyShadow, samples: &mut [AnswerSampleReader]) {
        let ReadyShadow { decoder, one_in, own, ready } = ready;
        let (block, now) = (self.board.shadow(), self.clock.ticks());
        // Shots that were chosen before it begins belong to no count.
        samples.iter_mut().for_each(|reader| while reader.read(|_| ()) {});
        // A reader meanwhile sees no shadow rather than a mixture of two.
        board::set(&block.began, 0);
        for word in [
            &block.ended,
            &block.compared,
            &block.disagreements,
            &block.judged,
            &block.path_wrong,
            &block.shadow_wrong,
            &block.path_errors,
            &block.shadow_errors,
            &block.other_model,
            &block.busy_ticks,
        ] {
            board::set(word, 0);
        }
        block.disagreements_by.iter().for_each(|word| board::set(word, 0));
        block.path_latency.clear();
        block.decode.clear();
        let (sampled, left_out) = self.board.shadow_samples();
        board::set(&block.sampled_before, sampled);
        board::set(&block.left_out_before, left_out);
        board::set(&block.decoder, decoder.kind() as u64);
        board::set(&block.one_in, one_in.into());
        block.model.write(own.as_ref().map_or("", |own| &own.name));
        board::set(&block.began, now.0.max(1));
        let (epoch, models) = (self.decoders.epoch(), self.decoders.models_in_force());
        let own = own.map(|own| own.model.hash());
        self.on = Some(On { decoder, own, ready, matchers: BTreeMap::new(), epoch, models });
    }

    fn end(&mut self) {
        if self.on.take().is_some() {
            board::set(&self.board.shadow().ended, self.clock.ticks().0);
        }
        self.flush();
    }

    /// Compares the samples that are there, at most a turn of each silo. Returns whether there was one.
    fn pass(&mut self, samples: &mut [AnswerSampleReader]) -> bool {
        let began = self.clock.ticks();
        if let Some(on) = &mut self.on {
            on.follow(&self.decoders);
        }
        let mut has_taken = false;
        for reader in samples {
            for _ in 0..TURN {
                if !reader.read(|shot| self.compare(&shot)) {
                    break;
                }
                has_taken = true;
            }
        }
        if has_taken {
            board::add(&self.board.shadow().busy_ticks, self.clock.ticks().since(began).0);
        }
        has_taken
    }

    fn compare(&mut self, shot: &SampledShot<'_>) {
        // A shot that was chosen just before the shadow was switched off for good belongs to no count.
        let Some(on) = &mut self.on else { return };
        let block = self.board.shadow();
        if shot.error != 0 {
            return board::add(&block.path_errors, 1);
        }
        let decoder = on.decoder.kind();
        let Some(found) = on.matcher(shot.by.model(), &self.decoders) else {
            return board::add(&block.other_model, 1);
        };
        let mut observables = [0; OBSERVABLE_WORDS_MAX];
        let observables = &mut observables[..shot.observables.len()];
        let from = self.clock.ticks();
        let decoded = catch_unwind(AssertUnwindSafe(|| found.matcher.decode(shot.detectors, observables).is_ok()));
        let spent = self.clock.rate().nanos(self.clock.ticks().since(from)).0;
        match decoded {
            Ok(true) => {}
            Ok(false) => return board::add(&block.shadow_errors, 1),
            Err(_) => {
                found.matcher = found.matching.matcher();
                return board::add(&block.shadow_errors, 1);
            }
        }
        let hash = found.hash;
        block.path_latency.record(shot.latency_ns);
        block.decode.record(spent);
        if let Some(truth) = shot.truth {
            board::add(&block.path_wrong, (shot.observables != truth).into());
            board::add(&block.shadow_wrong, (*observables != *truth).into());
            board::add(&block.judged, 1);
        }
        if *observables != *shot.observables {
            self.disagree(shot, (decoder, hash), observables, spent);
        }
        board::add(&self.board.shadow().compared, 1);
    }

    /// Counts a shot with two answers, and keeps it.
    fn disagree(&mut self, shot: &SampledShot<'_>, (decoder, hash): (DecoderKind, u64), observables: &[u64], ns: u64) {
        let block = self.board.shadow();
        let on_path = shot.by.decoder();
        board::add(&block.disagreements, 1);
        on_path.into_iter().for_each(|decoder| board::add(&block.disagreements_by[decoder as usize], 1));
        let Some(kept) = &mut self.kept else { return };
        let model = self.decoders.model_hash(shot.by.model()).unwrap_or(0);
        let disagreement = Disagreement {
            stream: shot.stream,
            sequence: shot.sent_as,
            detectors: shot.detectors,
            truth: shot.truth,
            path: KeptAnswer { decoder: on_path.map_or("", DecoderKind::name), model, observables: shot.observables },
            latency_ns: shot.latency_ns,
            shadow: KeptAnswer { decoder: decoder.name(), model: hash, observables },
            decode_ns: ns,
        };
        let result = kept.keep(&disagreement);
        self.note(result.map(|kept| board::set(&self.board.shadow().kept, kept)));
    }

    fn flush(&mut self) {
        if let Some(kept) = &mut self.kept {
            let result = kept.flush();
            self.note(result);
        }
    }

    /// After an error no more is kept.
    fn note(&mut self, result: Result<(), String>) {
        if let Err(said) = result {
            self.board.shadow().trouble.write(&said);
            self.kept = None;
        }
    }
}

impl On {
    /// Follows a change of models: those that are no longer in force are forgotten.
    fn follow(&mut self, decoders: &DecoderChanges) {
        let epoch = decoders.epoch();
        if self.own.is_some() || epoch == self.epoch {
            return;
        }
        (self.epoch, self.models) = (epoch, decoders.models_in_force());
        let models = &self.models;
        let is_in_force = |number: u16| models.all().any(|of| of.number == number);
        self.matchers.retain(|number, _| is_in_force(*number));
        self.ready.retain(|number, _| is_in_force(*number));
    }

    /// The matcher for shots that were answered by the model of this number; `None`: the model is no
    /// longer in force, or the decoder refuses it.
    fn matcher(&mut self, number: u16, decoders: &DecoderChanges) -> Option<&mut ShadowMatcher> {
        let number = if self.own.is_some() { OWN } else { number };
        if !self.matchers.contains_key(&number) {
            let matching = match self.ready.remove(&number) {
                Some(ready) => Some(ready),
                None => {
                    let of = self.models.all().find(|of| of.number == number)?;
                    ready_for(&of.model, self.decoder.clone()).ok()
                }
            };
            let hash = self.own.unwrap_or_else(|| decoders.model_hash(number).unwrap_or(0));
            let found = matching.map(|matching| ShadowMatcher { matcher: matching.matcher(), matching, hash });
            self.matchers.insert(number, found);
        }
        self.matchers.get_mut(&number)?.as_mut()
    }
}
