#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "harness")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use proptest::prelude::{Just, Strategy, prop, proptest};

use super::*;
use crate::code::graph::Edge;
use crate::code::{Sampler, bundled_named, flip, ones, words};
use crate::decode::{DecodeError, Matcher, MatcherModel};
use crate::golden;
use crate::predecode::Predecoder as _;

const fn size(commit_rounds: u32, buffer_rounds: u32) -> WindowRounds {
    WindowRounds { commit_rounds, buffer_rounds }
}

fn windowed(model: &Model, commit: u32, buffer: u32) -> WindowMatcher {
    WindowMatcher::new(Arc::new(WindowModel::new(model, size(commit, buffer)).unwrap()))
}

fn whole(model: &Model) -> Box<dyn Matcher> {
    MatcherModel::new(model).unwrap().matcher()
}

fn predecoded(model: &Model, commit: u32, buffer: u32) -> WindowMatcher {
    let ready = WindowModel::new(model, size(commit, buffer)).unwrap().predecoding(Predecoder::Local);
    WindowMatcher::by_rounds(Arc::new(ready))
}

/// Logical errors of whole-shot decoding and of each kind of window, on the same shots; and the
/// shots that only one of the two decoded wrongly.
struct Campaign {
    shots: u32,
    whole: u32,
    windowed: u32,
    only_whole: u32,
    only_windowed: u32,
}

fn campaign(name: &str, sizes: &[(u32, u32)], shots: u32, seed: u64) -> Vec<Campaign> {
    let model = bundled_named(name).unwrap();
    let mut sampler = Sampler::new(&model, seed);
    let mut exact = whole(&model);
    let mut matchers: Vec<WindowMatcher> = sizes.iter().map(|&(c, b)| windowed(&model, c, b)).collect();
    // The first size once more, with predecoded windows.
    matchers.extend(sizes.first().map(|&(c, b)| predecoded(&model, c, b)));
    let mut found: Vec<Campaign> = Vec::new();
    found.resize_with(matchers.len(), || Campaign { shots, whole: 0, windowed: 0, only_whole: 0, only_windowed: 0 });
    let (mut syndrome, mut truth) = (vec![0; model.detector_words()], vec![0; model.observable_words()]);
    let mut answer = truth.clone();
    for _ in 0..shots {
        sampler.draw(&mut syndrome, &mut truth);
        exact.decode(&syndrome, &mut answer).unwrap();
        let whole = answer != truth;
        for (matcher, found) in matchers.iter_mut().zip(&mut found) {
            matcher.decode(&syndrome, &mut answer).unwrap();
            let windowed = answer != truth;
            found.whole += u32::from(whole);
            found.windowed += u32::from(windowed);
            found.only_whole += u32::from(whole && !windowed);
            found.only_windowed += u32::from(windowed && !whole);
        }
    }
    found
}

impl Campaign {
    /// Excess of the windows' errors over whole shots' errors, in standard deviations. The shots
    /// are the same, so only the `n` shots on which the two differ are random, and the difference
    /// has a deviation of `√n`.
    fn sigmas(&self) -> f64 {
        let (above, below) = (f64::from(self.only_windowed), f64::from(self.only_whole));
        (above - below) / (above + below).max(1.0).sqrt()
    }

    fn summary(&self, what: &str) -> String {
        format!(
            "{what}: {} shots, {} logical errors by windows ({} alone), {} as a whole ({} alone), {:+.1} sigma",
            self.shots,
            self.windowed,
            self.only_windowed,
            self.whole,
            self.only_whole,
            self.sigmas()
        )
    }
}

/// With a buffer of the code's distance the difference is noise; with one round it is significant.
fn a_buffer_of_the_distance_is_enough(name: &str, distance: u32, shots: u32) {
    let sizes = [(distance, distance), (distance, 1)];
    let [enough, short, predecoded] = &campaign(name, &sizes, shots, 3)[..] else { panic!("two sizes") };
    for found in [enough, predecoded] {
        assert!(found.sigmas().abs() <= 4.0, "{}", found.summary(name));
    }
    assert!(short.sigmas() > 4.0, "{}", short.summary(name));
    assert!(enough.whole > 100, "too few errors: {}", enough.summary(name));
}

#[test]
fn at_distance_3_windows_with_a_buffer_of_3_err_as_often_as_whole_shots() {
    a_buffer_of_the_distance_is_enough("surface_d3@r30", 3, 16_000);
}

#[test]
fn at_distance_5_windows_with_a_buffer_of_5_err_as_often_as_whole_shots() {
    a_buffer_of_the_distance_is_enough("surface_d5@r50", 5, 3_000);
}

/// Millions of rounds. The noise is estimated as if the two counts came from different shots: on
/// the same shots the smallest code's 400,000 resolve the cost of the buffer (55,280 against
/// 55,202, 5 deviations of the shots that differ). The others do not: 8,080 against 8,063 of 60,000
/// at d = 5, R = 50; 1,436 against 1,438 of 3,000 at R = 500.
#[test]
#[ignore = "minutes"]
fn a_long_campaign_of_windows_errs_as_often_as_whole_shots() {
    for (name, distance, shots) in [
        ("surface_d3@r30", 3, 400_000),
        ("surface_d3@r300", 3, 20_000),
        ("surface_d5@r50", 5, 60_000),
        ("surface_d5@r500", 5, 3_000),
    ] {
        for (found, how) in campaign(name, &[(distance, distance)], shots, 7).iter().zip(["", " predecoded"]) {
            let summary = found.summary(&format!("{name}{how}"));
            let (windowed, whole) = (f64::from(found.windowed), f64::from(found.whole));
            assert!((windowed - whole).abs() <= 4.0 * (windowed + whole).sqrt(), "{summary}");
            // Print the figures: they are the purpose of the campaign.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{summary}\n").as_bytes());
        }
    }
}

#[test]
fn one_window_over_a_whole_shot_answers_as_whole_shot_decoding_does() {
    for set in golden::all() {
        let rounds = Rounds::new(&set.model).unwrap().count();
        let mut exact = whole(&set.model);
        let sizes = [(rounds, rounds), (rounds, 1), (rounds - 1, 1), (1, rounds)];
        let mut matchers = sizes.map(|(commit, buffer)| windowed(&set.model, commit, buffer));
        let (mut expected, mut found) = (vec![0; set.model.observable_words()], vec![0; set.model.observable_words()]);
        for shot in set.detections.iter() {
            let whole = exact.decode(shot, &mut expected).unwrap();
            for matcher in &mut matchers {
                let one = matcher.decode(shot, &mut found).unwrap();
                assert_eq!(
                    (&found, one.weight.map(f64::to_bits)),
                    (&expected, whole.weight.map(f64::to_bits)),
                    "{}",
                    set.name
                );
            }
        }
    }
}

/// A window over a whole shot is predecoded like the shot, and the windows' result still explains
/// it.
#[test]
fn a_window_is_predecoded_by_the_rule_for_whole_shots() {
    for set in golden::all() {
        let rounds = Rounds::new(&set.model).unwrap().count();
        let (mut exact, mut one) = (whole(&set.model), predecoded(&set.model, rounds, rounds));
        let mut local = Local::new(&set.model).unwrap();
        let fresh = || vec![0; set.model.observable_words()];
        let (mut residual, mut flips, mut expected, mut found) =
            (vec![0; set.model.detector_words()], fresh(), fresh(), fresh());
        let mut resolved = 0;
        for shot in set.detections.iter() {
            resolved += local.predecode(shot, &mut residual, &mut flips).resolved;
            exact.decode(&residual, &mut expected).unwrap();
            expected.iter_mut().zip(&flips).for_each(|(word, by)| *word ^= by);
            one.decode(shot, &mut found).unwrap();
            assert_eq!(found, expected, "{}", set.name);
        }
        assert!(resolved > 100, "{}: the shots contain nothing to predecode", set.name);
    }
}

/// Later windows see predecoded commits as explained: at the end no event is left.
#[test]
fn predecoded_windows_leave_nothing_unexplained() {
    let model = bundled_named("surface_d5@r40").unwrap();
    let ready = Arc::new(WindowModel::new(&model, size(3, 3)).unwrap().predecoding(Predecoder::Local));
    let mut worker = WindowWorker::new(Arc::clone(&ready));
    let mut sampler = Sampler::new(&model, 8);
    let (mut syndrome, mut truth) = (vec![0; model.detector_words()], [0]);
    let (mut explained, mut fired) = (0, 0);
    for _ in 0..100 {
        sampler.draw(&mut syndrome, &mut truth);
        let (mut carry, mut flips) = (vec![0; ready.carry_words()], [0]);
        worker.begin(&syndrome, &mut carry, &mut flips);
        for index in 0..ready.plan().count() {
            explained += worker.window_predecoded(index, &mut carry, &mut flips).unwrap();
            let committed = ready.rounds.words(ready.plan().window(index).commits);
            assert!(carry[committed].iter().all(|word| *word == 0));
        }
        fired += ones(&syndrome).count() as u32;
    }
    assert!(explained * 10 > fired && explained < fired, "{explained} of {fired} explained by predecoding");
}

#[test]
fn the_last_window_is_warmed_up_without_effect() {
    let model = bundled_named("surface_d5@r40").unwrap();
    for predecoder in [Predecoder::None, Predecoder::Local] {
        let ready = Arc::new(WindowModel::new(&model, size(3, 3)).unwrap().predecoding(predecoder));
        let mut workers = [(); 2].map(|()| WindowWorker::new(Arc::clone(&ready)));
        let mut sampler = Sampler::new(&model, 10);
        let (mut syndrome, mut truth) = (vec![0; model.detector_words()], [0]);
        for _ in 0..100 {
            sampler.draw(&mut syndrome, &mut truth);
            let [warm, cold] = &mut workers;
            let (mut carry, mut flips) = (vec![0; ready.carry_words()], [0]);
            warm.begin(&syndrome, &mut carry, &mut flips);
            for index in 0..ready.plan().count() {
                let (mut carry_cold, mut flips_cold) = (carry.clone(), flips);
                let explained = warm.window_by_rounds(index, &mut carry, &mut flips).unwrap();
                assert_eq!(cold.window_predecoded(index, &mut carry_cold, &mut flips_cold), Ok(explained));
                assert_eq!((&carry, flips), (&carry_cold, flips_cold), "window {index}");
            }
        }
    }
}

#[test]
fn a_windows_work_does_not_depend_on_the_length_of_the_experiment() {
    for (name, distance) in [("surface_d3", 3), ("surface_d5", 5)] {
        let model = |rounds: u32| {
            let model = bundled_named(&format!("{name}@r{rounds}")).unwrap();
            WindowModel::new(&model, size(distance, distance)).unwrap()
        };
        let (short, long) = (model(5 * distance), model(100 * distance));
        assert_eq!((short.plan().count(), long.plan().count()), (5, 100), "{name}");
        // Four forms: the first, the bulk, the last but one (its edges reach the last round), the
        // last.
        assert_eq!((short.forms.len(), long.forms.len()), (4, 4), "{name}");
        // Detectors and edges of the graph of a window, which bound its work.
        let graph_size = |model: &WindowModel, index: u32| {
            let graph = &model.forms[model.windows[index as usize].form].cut.graph;
            (graph.detectors, graph.edges.len())
        };
        let last = |model: &WindowModel| graph_size(model, model.plan().count() - 1);
        assert_eq!((graph_size(&short, 1), last(&short)), (graph_size(&long, 50), last(&long)), "{name}");
        let seen = |model: &WindowModel, index| model.words(index).len();
        assert!((0..100).all(|index| seen(&long, index) <= seen(&short, 1)), "{name}");
    }
}

#[test]
fn a_window_sees_and_changes_its_own_words_only() {
    let model = bundled_named("surface_d5@r40").unwrap();
    let ready = Arc::new(WindowModel::new(&model, size(2, 3)).unwrap());
    let mut worker = WindowWorker::new(Arc::clone(&ready));
    let mut sampler = Sampler::new(&model, 5);
    let (mut syndrome, mut truth) = (vec![0; model.detector_words()], vec![0; 1]);
    let mut exact = WindowMatcher::new(Arc::clone(&ready));
    for _ in 0..50 {
        sampler.draw(&mut syndrome, &mut truth);
        let (mut shot, mut found, mut expected) = (vec![0; ready.carry_words()], [0], [0]);
        worker.begin(&syndrome, &mut shot, &mut found);
        // The rounds arrive one by one: a round that a window must not read has not arrived yet.
        let (mut carry, mut arrived) = (vec![0; shot.len()], 0);
        for index in 0..ready.plan().count() {
            let own = ready.rounds.words(ready.plan().window(index).rounds);
            (arrived..own.end).for_each(|word| carry[word] ^= shot[word]);
            arrived = own.end;
            let before = carry.clone();
            worker.window(index, &mut carry, &mut found).unwrap();
            let touched = ready.words(index);
            assert!(own.start == touched.start && own.end <= touched.end);
            assert!((0..carry.len()).all(|word| touched.contains(&word) || carry[word] == before[word]));
            let committed = ready.rounds.words(ready.plan().window(index).commits);
            assert!(carry[committed].iter().all(|word| *word == 0));
        }
        exact.decode(&syndrome, &mut expected).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn models_that_windows_cannot_decode_are_refused_with_a_reason() {
    let refused = |text: &str, commit, buffer| {
        let model = Model::parse(text.as_bytes()).unwrap();
        MatcherModel::windowed(&model, size(commit, buffer), Predecoder::None).err().unwrap().to_string()
    };
    let timed = "error(0.1) D0 D1\ndetector(0) D0\ndetector(1) D1\n";
    assert!(refused("error(0.1) D0", 1, 1).contains("D0 without a time"));
    assert!(refused(timed, 3, 1).contains("3 commit rounds do not fit the model's 2"));
    assert!(refused(timed, 1, 0).contains("0 buffer rounds do not fit the model's 2"));
    let triple = "error(0.1) D0 D1 D2\ndetector(0) D0\ndetector(0) D1\ndetector(0) D2\n";
    assert!(refused(triple, 1, 1).contains("decompose"));
}

#[test]
fn a_matcher_goes_on_after_a_window_that_cannot_be_matched() {
    // D2 reaches the boundary only through D0, two rounds before.
    let text = "error(0.2) D0 L0\nerror(0.1) D0 D2\nerror(0.1) D1\ndetector(0) D0\ndetector(1) D1\ndetector(2) D2\n";
    let mut matcher = windowed(&Model::parse(text.as_bytes()).unwrap(), 1, 1);
    let mut found = [7];
    assert_eq!(matcher.decode(&[0b100], &mut found), Err(DecodeError::Unmatchable));
    assert_eq!(found, [0]);
    assert_eq!(matcher.decode(&[0b011], &mut found).map(|_| found), Ok([1]));
}

/// Detectors of the models below.
const DETECTORS: u32 = 12;

/// Models with edges across any number of rounds; each detector has its own edge to the boundary,
/// so that any shot is explained.
fn timed_models() -> impl Strategy<Value = String> {
    let times = prop::collection::vec(0u32..5, DETECTORS as usize);
    let edges = prop::collection::vec((0..DETECTORS, 0..DETECTORS, 1u32..100, 0u32..100), 0..30);
    let exits = prop::collection::vec((1u32..100, 0u32..100), DETECTORS as usize);
    (times, edges, exits).prop_map(|(times, edges, exits)| {
        let edges = edges.into_iter().filter(|(a, b, ..)| a != b);
        let edges = edges.map(|(a, b, percent, l)| format!("error({}) D{a} D{b} L{l}\n", f64::from(percent) / 100.0));
        let exits = (0..).zip(exits);
        let exits = exits.map(|(d, (percent, l))| format!("error({}) D{d} L{l}\n", f64::from(percent) / 100.0));
        let times = (0..).zip(times).map(|(d, time)| format!("detector(1, {time}) D{d}\n"));
        edges.chain(exits).chain(times).chain(["logical_observable L99\n".to_owned()]).collect()
    })
}

/// Commits every window of a shot edge by edge, the last one too, and checks the correction against
/// model and shot.
fn explains_each_detection_once(model: &Model, sizes: WindowRounds, syndrome: &[u64]) {
    let graph = Graph::new(model).unwrap();
    let edges: BTreeMap<(u32, Option<u32>), &Edge> = graph.edges.iter().map(|edge| ((edge.a, edge.b), edge)).collect();
    let ready = Arc::new(WindowModel::new(model, sizes).unwrap());
    let detector_at: BTreeMap<u32, u32> = (0..model.detectors).map(|d| (ready.rounds.position(d), d)).collect();
    let mut worker = WindowWorker::new(Arc::clone(&ready));
    let (mut carry, mut observables) = (vec![0; ready.carry_words()], vec![0; model.observable_words()]);
    let mut weight = worker.begin(syndrome, &mut carry, &mut observables);
    let mut committed = BTreeSet::new();
    for index in 0..ready.plan().count() {
        weight += worker.commit_traced(index, &mut carry, &mut observables).unwrap();
        let window = &ready.windows[index as usize];
        let first = u32::try_from(window.words.start * 64).unwrap();
        for commit in
            worker.edges.iter().filter_map(|edge| ready.forms[window.form].cut.commits[*edge as usize].as_ref())
        {
            let mut ends: Vec<u32> = commit.flips.iter().map(|bit| detector_at[&(bit + first)]).collect();
            ends.sort_unstable();
            assert!(committed.insert((ends[0], ends.get(1).copied())), "{ends:?} twice");
        }
    }
    assert!(carry.iter().all(|word| *word == 0), "some events are left unexplained");
    let (mut explained, mut flipped, mut sum) =
        (graph.always_detectors.clone(), graph.always_observables.clone(), graph.always_weight);
    for ends in &committed {
        let edge = edges[ends];
        flip(&mut explained, edge.a);
        edge.b.into_iter().for_each(|b| flip(&mut explained, b));
        flipped.iter_mut().zip(&edge.observables).for_each(|(word, by)| *word ^= by);
        sum += edge.weight;
    }
    assert_eq!((explained, &flipped), (syndrome.to_vec(), &observables));
    assert!((weight - sum).abs() < 1e-9 * sum.abs().max(1.0), "{weight}, {sum}");
}

/// Models in which no two explanations have equal weight, so that a trace finds the path of the
/// matching.
fn untied_models() -> impl Strategy<Value = String> {
    let times = prop::collection::vec(0u32..6, DETECTORS as usize);
    let edges = prop::collection::vec((0..DETECTORS, 0..DETECTORS, 0.01f64..0.45, 0u32..100), 0..30);
    let exits = prop::collection::vec((0.01f64..0.45, 0u32..100), DETECTORS as usize);
    (times, edges, exits).prop_map(|(times, edges, exits)| {
        let edges = edges.into_iter().filter(|(a, b, ..)| a != b);
        let edges = edges.map(|(a, b, chance, l)| format!("error({chance}) D{a} D{b} L{l}\n"));
        let exits = (0..).zip(exits).map(|(d, (chance, l))| format!("error({chance}) D{d} L{l}\n"));
        let times = (0..).zip(times).map(|(d, time)| format!("detector(1, {time}) D{d}\n"));
        edges.chain(exits).chain(times).chain(["logical_observable L99\n".to_owned()]).collect()
    })
}

/// Compares, window by window, the matching's flips with the edges of its trace.
fn flips_what_its_edges_commit(model: &Model, sizes: WindowRounds, syndrome: &[u64]) {
    let ready = Arc::new(WindowModel::new(model, sizes).unwrap());
    let mut worker = WindowWorker::new(Arc::clone(&ready));
    let fresh = || (vec![0; ready.carry_words()], vec![0; model.observable_words()]);
    let ((mut carry, mut flips), (mut traced, mut committed)) = (fresh(), fresh());
    worker.begin(syndrome, &mut carry, &mut flips);
    worker.begin(syndrome, &mut traced, &mut committed);
    for index in 0..ready.plan().count() {
        worker.window(index, &mut carry, &mut flips).unwrap();
        worker.commit_traced(index, &mut traced, &mut committed).unwrap();
        assert_eq!((&carry, &flips), (&traced, &committed), "window {index}");
    }
    assert!(carry.iter().all(|word| *word == 0), "some events are left unexplained");
}

/// Rounds copied one by one as they arrive make up the whole shot, and each window has its words.
#[test]
fn rounds_that_come_one_by_one_make_the_carry_of_the_whole_shot() {
    for (name, commit, buffer) in [("surface_d3@r12", 2, 3), ("surface_d5@r25", 5, 5), ("surface_d3", 4, 4)] {
        let model = bundled_named(name).unwrap();
        let ready = Arc::new(WindowModel::new(&model, size(commit, buffer)).unwrap());
        let worker = WindowWorker::new(Arc::clone(&ready));
        let mut sampler = Sampler::new(&model, 9);
        let (mut syndrome, mut truth) = (vec![0; words(model.detectors)], [0]);
        sampler.draw(&mut syndrome, &mut truth);
        let fresh = || (vec![0; ready.carry_words()], vec![0; model.observable_words()]);
        let ((mut whole, mut flips), (mut carry, mut flipped)) = (fresh(), fresh());
        worker.begin(&syndrome, &mut whole, &mut flips);
        worker.begin_by_rounds(&mut carry, &mut flipped);
        for index in 0..ready.plan().count() {
            let needed = ready.needed_words(index);
            let word = |word: u32| {
                assert!(word < needed, "window {index} reads word {word} of {needed}");
                syndrome[word as usize]
            };
            worker.take_rounds(index, word, &mut carry);
        }
        assert_eq!((carry, flipped), (whole, flips), "{name}");
        let after = ready.words_after_rounds();
        assert!(after.is_sorted() && after.last() == Some(&(syndrome.len() as u32)), "{after:?}");
        // A round has arrived when all of its words have, and the last window waits for all rounds.
        let rounds = Rounds::new(&model).unwrap();
        for (round, words) in (0..).zip(&after) {
            let known = *words == syndrome.len() as u32
                || (0..model.detectors).all(|d| rounds.of(d) <= round || d / 64 >= *words);
            assert!(known, "round {round}: {words} words");
        }
        assert_eq!(ready.needed_words(ready.plan().count() - 1), syndrome.len() as u32);
    }
}

#[test]
fn windows_that_follow_each_other_share_words_of_the_carry() {
    let model = bundled_named("surface_d3@r12").unwrap();
    let carries = WindowModel::new(&model, size(3, 1)).unwrap().carries(1);
    for index in 1..carries.windows() {
        let (before, here) = (carries.region(index - 1), carries.region(index));
        assert!(before.end > here.start, "neighbours overlap: {before:?} {here:?}");
    }
}

proptest! {
    #[test]
    fn every_detection_is_explained_exactly_once(
        (text, commit, buffer, shots) in timed_models().prop_flat_map(|text| {
            let rounds = Rounds::new(&Model::parse(text.as_bytes()).unwrap()).unwrap().count();
            (Just(text), 1..=rounds, 1..=rounds, prop::collection::vec(0u64..1 << DETECTORS, 20))
        })
    ) {
        let model = Model::parse(text.as_bytes()).unwrap();
        for shot in shots {
            explains_each_detection_once(&model, size(commit, buffer), &[shot]);
        }
    }

    #[test]
    fn a_window_flips_what_the_edges_of_its_matching_commit(
        (text, commit, buffer, shots) in untied_models().prop_flat_map(|text| {
            let rounds = Rounds::new(&Model::parse(text.as_bytes()).unwrap()).unwrap().count();
            (Just(text), 1..=rounds, 1..=rounds, prop::collection::vec(0u64..1 << DETECTORS, 20))
        })
    ) {
        let model = Model::parse(text.as_bytes()).unwrap();
        for shot in shots {
            flips_what_its_edges_commit(&model, size(commit, buffer), &[shot]);
        }
    }

    #[test]
    fn every_detection_of_a_surface_code_is_explained_exactly_once(
        commit in 1u32..=13, buffer in 1u32..=13, seed: u64
    ) {
        let model = bundled_named("surface_d3@r12").unwrap();
        let mut sampler = Sampler::new(&model, seed);
        let (mut syndrome, mut truth) = (vec![0; words(model.detectors)], [0]);
        for _ in 0..5 {
            sampler.draw(&mut syndrome, &mut truth);
            explains_each_detection_once(&model, size(commit, buffer), &syndrome);
        }
    }
}

#[test]
fn windows_and_streams_of_many_rounds_are_prepared_in_time_proportional_to_them() {
    let text = "detector(0) D0\nrepeat 150000 {\nerror(0.1) D0 D1\nshift_detectors(1) 1\ndetector(0) D0\n}\n";
    let model = Model::parse(text.as_bytes()).unwrap();
    let began = Instant::now();
    for ready in
        [MatcherModel::windowed(&model, size(1, 1), Predecoder::None), MatcherModel::streamed(&model, size(1, 1))]
    {
        let ready = ready.unwrap();
        assert!(ready.windows() >= 150_000 && ready.carries(1, 1, true).is_some());
    }
    // Two seconds; with the square of the rounds ten minutes.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
