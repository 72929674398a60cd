//! Changes of decoders and models, with one worker on the test's own thread.
#![allow(clippy::unwrap_used, reason = "harness")]
use super::super::Ready;
use super::super::by_graph::GraphModel;
use super::super::prepared::{Matchers, Prepared};
use super::super::rescue::Choice;
use super::{Change, ChangeRefused, DecoderChanges, NamedModel, WorkerChanges};
use crate::code::{Model, bundled_named};
use crate::profile::{Deadlines, Decoder, DecoderKind, Predecoder, Profile, Rescue, ShotOrder, StreamDecoder, Window};
use std::sync::{Arc, Weak};

/// One worker on this thread.
struct World {
    profile: Profile,
    changes: DecoderChanges,
    worker: WorkerChanges,
    own: Matchers,
}

impl World {
    fn new() -> World {
        let (profile, _) = Profile::load("lab", None).unwrap();
        let model = Arc::new(bundled_named("surface_d3").unwrap());
        let prepared = Prepared::one(&model, Decoder::Matching, Predecoder::None, Window::None).unwrap();
        let changes = DecoderChanges::new(&model, prepared);
        let mut worker = changes.join(0, 0);
        let (_, own) = worker.first();
        World { profile, changes, worker, own }
    }

    /// Puts `change` into force, as the control thread and the worker do.
    fn take(&mut self, change: Change) {
        let epoch = self.changes.begin(change).unwrap();
        self.worker.exchange(&mut self.own);
        assert_eq!(self.own.epoch, epoch);
        self.changes.step();
    }

    /// What is compiled of the model in force; dead once nothing refers to it.
    fn compiled(&self) -> Weak<GraphModel> {
        let in_force = self.changes.in_force();
        let Ready::Whole(graph) = &in_force.main().0 else { panic!("whole shots") };
        Arc::downgrade(graph)
    }
}

fn other(probability: f64) -> NamedModel {
    let text = format!("error({probability}) D0 D23 L0\n");
    NamedModel { name: format!("{probability}"), model: Arc::new(Model::parse(text.as_bytes()).unwrap()) }
}

#[test]
fn what_another_model_replaces_is_freed_and_its_number_comes_back_with_it() {
    let mut world = World::new();
    let first = world.compiled();
    let mut texts = Vec::new();
    let numbers: Vec<u16> = [0.1, 0.2, 0.1, 0.3]
        .into_iter()
        .map(|probability| {
            let before = world.compiled();
            let named = other(probability);
            texts.push(Arc::downgrade(&named.model));
            world.take(world.changes.prepare_model(&world.profile, &named, None).unwrap());
            drop(named);
            assert!(before.upgrade().is_none(), "{probability}");
            world.own.of(0).1.model()
        })
        .collect();
    assert_eq!((numbers, first.upgrade().is_none()), (vec![1, 2, 1, 3], true));
    let kept: Vec<bool> = texts.iter().map(|text| text.upgrade().is_some()).collect();
    assert_eq!(kept, [false, false, true, true], "the one in force, and the one before it");
    for number in [1, 3, 1] {
        world.take(world.changes.prepare_models_before(&world.profile).unwrap());
        assert_eq!(world.own.of(0).1.model(), number, "the last change is taken back, and then that");
    }
    assert_eq!(world.changes.model_hash(2), Some(other(0.2).model.hash()));
}

#[test]
fn the_model_in_force_named_again_is_no_change_to_take_back() {
    let mut world = World::new();
    for (probability, stream) in [(0.1, None), (0.1, None), (0.1, Some(2)), (0.2, Some(2)), (0.2, Some(2))] {
        world.take(world.changes.prepare_model(&world.profile, &other(probability), stream).unwrap());
    }
    assert_eq!([1, 2].map(|stream| world.own.of(stream).1.model()), [1, 2]);
    world.take(world.changes.prepare_models_before(&world.profile).unwrap());
    assert_eq!([1, 2].map(|stream| world.own.of(stream).1.model()), [1, 1]);
}

#[test]
fn a_change_that_another_came_before_is_refused() {
    let mut world = World::new();
    let to = Profile { decoder: Decoder::UnionFind, ..world.profile.clone() };
    let (one, two) = (world.changes.prepare(&to, None).unwrap(), world.changes.prepare(&to, None).unwrap());
    world.take(one);
    assert_eq!(world.changes.begin(two).unwrap_err(), ChangeRefused::Busy);
}

#[test]
fn a_worker_that_takes_nothing_gets_the_newest_matchers_when_it_does() {
    let mut world = World::new();
    let mut to = world.profile.clone();
    for decoder in [Decoder::UnionFind, Decoder::Correlated, Decoder::Lookup, Decoder::UnionFind] {
        to.decoder = decoder;
        to.streams = vec![StreamDecoder { stream: 1, decoder: Decoder::Lookup }];
        world.changes.begin(world.changes.prepare(&to, None).unwrap()).unwrap();
    }
    // The first is in its mailbox; of the others only the last waits.
    let mut epochs = Vec::new();
    while world.worker.is_waiting() {
        world.worker.exchange(&mut world.own);
        epochs.push(world.own.epoch);
        world.changes.step();
    }
    assert_eq!(epochs, [2, 5]);
    let by = [0, 1, u32::MAX].map(|stream| world.own.of(stream).1.decoder().unwrap());
    assert_eq!(by, [DecoderKind::UnionFind, DecoderKind::Lookup, DecoderKind::UnionFind]);
}

#[test]
fn a_rebuilt_worker_begins_with_what_is_in_force() {
    let world = World::new();
    let to = Profile { decoder: Decoder::UnionFind, ..world.profile.clone() };
    world.changes.begin(world.changes.prepare(&to, None).unwrap()).unwrap();
    let mut again = world.changes.join(0, 0);
    let (_, mut own) = again.first();
    assert_eq!((own.epoch, own.of(0).1.decoder()), (2, Some(DecoderKind::UnionFind)));
    assert!(!again.is_waiting());
}

#[test]
fn each_decoder_and_model_has_the_rescue_decoder_beside_it_except_itself() {
    let mut world = World::new();
    let mut to = world.profile.clone();
    to.deadlines = Deadlines { order: ShotOrder::Deadline, rescue: Some(Rescue::UnionFind), ..to.deadlines };
    (to.decoder, to.streams) = (Decoder::Correlated, vec![StreamDecoder { stream: 1, decoder: Decoder::UnionFind }]);
    world.take(world.changes.prepare(&to, None).unwrap());
    world.take(world.changes.prepare_model(&to, &other(0.1), Some(2)).unwrap());
    let by = |world: &mut World, stream, choice| world.own.chosen(stream, choice).map(|(_, by)| by);
    for (stream, model) in [(0, 0), (2, 1)] {
        let rescue = by(&mut world, stream, Choice::Rescue).unwrap();
        assert_eq!(
            (rescue.decoder(), rescue.model(), rescue.is_rescued()),
            (Some(DecoderKind::UnionFind), model, true)
        );
        let own = by(&mut world, stream, Choice::Own).unwrap();
        assert_eq!((own.decoder(), own.model(), own.is_rescued()), (Some(DecoderKind::Correlated), model, false));
    }
    assert_eq!((by(&mut world, 1, Choice::Rescue), by(&mut world, 0, Choice::Refuse)), (None, None));
    to.deadlines.rescue = Some(Rescue::Predecoder);
    world.take(world.changes.prepare(&to, None).unwrap());
    let rescue = by(&mut world, 1, Choice::Rescue).unwrap();
    assert_eq!((rescue.decoder(), rescue.name()), (None, Some("predecoder")));
}
