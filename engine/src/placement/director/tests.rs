#![allow(clippy::unwrap_used, reason = "harness")]
use super::{Director, Rules, TRIES};
use crate::placement::decision::{Decision, Made, Refusal};
use crate::placement::depth::{QUEUES, Queue, Reading, SiloDepth, Snapshot, Unknown};
use crate::profile::{AllHigh, PlaceBy};
use crate::units::{Nanos, Ticks};

fn even(share: f64) -> Reading {
    Reading::Known(SiloDepth::even(share))
}

fn director(rules: Rules, seed: u64, silos: Vec<Reading>) -> Director {
    let mut director = Director::new(rules, seed);
    director.refresh(&Snapshot { number: 1, taken: Ticks(0), silos }, 100);
    director
}

fn silo(made: &Made) -> u32 {
    match made.decision {
        Decision::Place { silo, .. } => silo,
        other => panic!("{other:?}"),
    }
}

fn by(by: PlaceBy) -> Rules {
    Rules { by, ..Rules::SEED }
}

fn spread(rules: Rules, seed: u64, silos: Vec<Reading>) -> Vec<u32> {
    let mut counts = vec![0; silos.len()];
    let mut director = director(rules, seed, silos);
    for stream in 0..100 {
        counts[silo(&director.place(stream, 0.7)) as usize] += 1;
    }
    counts
}

/// The seed's test, for every draw: 45 %, 63 %, 82 %.
#[test]
fn the_silo_with_the_lowest_utilization_is_selected() {
    for seed in 0..200 {
        for rule in [PlaceBy::BestOfTwo, PlaceBy::LowestAverage] {
            let silos = vec![even(0.45), even(0.63), even(0.82)];
            assert_eq!(silo(&director(by(rule), seed, silos).place(0, 0.7)), 0);
        }
    }
}

/// The seed's test of 100 activations, with statistics that stay as they were: every silo 25 to 45.
#[test]
fn a_hundred_activations_on_stale_statistics_are_spread_over_all_silos() {
    for seed in 0..500 {
        for share in [0.0, 0.3, 0.5] {
            let counts = spread(Rules::SEED, seed, vec![even(share); 3]);
            assert!(counts.iter().all(|count| (25..=45).contains(count)), "seed {seed}, {share}: {counts:?}");
        }
    }
}

#[test]
fn the_seeds_own_rule_sends_all_of_them_to_one_silo() {
    assert_eq!(spread(by(PlaceBy::LowestAverage), 1, vec![even(0.2), even(0.3), even(0.3)]), [100, 0, 0]);
}

#[test]
fn without_the_charge_frozen_statistics_draw_everybody_to_the_emptiest() {
    let silos = || vec![even(0.2), even(0.3), even(0.5)];
    let mut counts = [0; 3];
    for stream in 0..100 {
        // A director of its own each time has charged nothing.
        counts[silo(&director(Rules::SEED, stream, silos()).place(stream as u32, 0.7)) as usize] += 1;
    }
    assert!(counts[0] > 55 && counts[2] == 0, "{counts:?}");
    let charged = spread(Rules::SEED, 1, silos());
    assert!(charged[2] > 5, "{charged:?}");
}

#[test]
fn round_robin_and_random_reach_every_silo() {
    assert_eq!(spread(by(PlaceBy::RoundRobin), 1, vec![even(0.1); 4]), [25; 4]);
    let counts = spread(by(PlaceBy::Random), 1, vec![even(0.1); 3]);
    assert!(counts.iter().all(|count| *count > 15), "{counts:?}");
}

#[test]
fn a_hot_queue_behind_a_low_average_excludes_its_silo() {
    let mut shares = [Some(0.05); QUEUES];
    shares[Queue::Rx as usize] = Some(0.96);
    let hot = Reading::Known(SiloDepth::of(shares));
    assert!(hot.known().unwrap().average < 0.2);
    for seed in 0..50 {
        assert_eq!(silo(&director(Rules::SEED, seed, vec![hot, even(0.6)]).place(0, 0.7)), 1);
        assert_eq!(silo(&director(by(PlaceBy::LowestAverage), seed, vec![hot, even(0.6)]).place(0, 0.7)), 0);
    }
}

#[test]
fn a_backlog_in_time_counts_together_with_depths() {
    let late = SiloDepth { backlog: Nanos::from_millis(900), ..SiloDepth::even(0.30) };
    for seed in 0..50 {
        assert_eq!(silo(&director(Rules::SEED, seed, vec![Reading::Known(late), even(0.35)]).place(0, 0.7)), 1);
    }
}

/// A failed reading that scored zero drew everything to a broken silo.
#[test]
fn an_unknown_silo_is_never_chosen_by_any_rule() {
    for rule in [PlaceBy::BestOfTwo, PlaceBy::LowestAverage, PlaceBy::RoundRobin, PlaceBy::Random] {
        let silos = vec![even(0.99), Reading::Unknown(Unknown::New), even(0.98)];
        let mut director = director(by(rule), 3, silos);
        for stream in 0..200 {
            assert_ne!(silo(&director.place(stream, 0.7)), 1, "{rule:?}");
        }
        director.forget();
        let refusal = Decision::Refuse { stream: 7, why: Refusal::NothingKnown };
        assert_eq!(director.place(7, 0.7).decision, refusal);
    }
}

/// With everything above the limit others took index 0.
#[test]
fn with_all_silos_high_the_least_critical_share_the_picks_or_none_takes_it() {
    let silos = || vec![even(0.99), even(0.90), even(0.91), even(0.90)];
    let mut counts = [0; 4];
    for seed in 0..300 {
        let made = director(Rules::SEED, seed, silos()).place(0, 0.7);
        assert!(matches!(made.decision, Decision::Place { is_high: true, .. }), "{made:?}");
        counts[silo(&made) as usize] += 1;
    }
    assert!(counts[0] == 0 && counts[1..].iter().all(|count| *count > 60), "{counts:?}");
    let refuse = Rules { all_high: AllHigh::Refuse, ..Rules::SEED };
    let refusal = Decision::Refuse { stream: 5, why: Refusal::AllHigh };
    assert_eq!(director(refuse, 1, silos()).place(5, 0.7).decision, refusal);
}

/// Round robin and random placed streams in full silos, and best of two refused one whose draws met full silos alone.
/// The lowest average knows no charges: it takes one silo until the next snapshot.
#[test]
fn a_stream_is_refused_if_every_silo_is_high_and_only_then() {
    let lowest = Rules { all_high: AllHigh::Refuse, ..by(PlaceBy::LowestAverage) };
    let refusal = Decision::Refuse { stream: 5, why: Refusal::AllHigh };
    assert_eq!(director(lowest, 1, vec![even(0.9); 2]).place(5, 0.7).decision, refusal);
    for rule in [PlaceBy::BestOfTwo, PlaceBy::RoundRobin, PlaceBy::Random] {
        for seed in 0..20 {
            let refuse = Rules { all_high: AllHigh::Refuse, ..by(rule) };
            let mut director = director(refuse, seed, vec![even(0.75); 20]);
            let is_placed = |made: &Made| matches!(made.decision, Decision::Place { .. });
            let placed = (0..10_000).take_while(|stream| is_placed(&director.place(*stream, 0.7))).count();
            assert!(placed > 0 && placed < 10_000 && director.open_silos().next().is_none(), "{rule:?} {placed}");
        }
    }
}

#[test]
fn a_stream_goes_to_its_preferred_silo_if_that_has_room_and_else_to_another() {
    let mut silos = vec![even(0.6); 40];
    silos[31] = even(0.3);
    for seed in 0..50 {
        assert_eq!(silo(&director(Rules::SEED, seed, silos.clone()).place(0, 0.4)), 31, "{TRIES} draws may miss it");
        let made = director(Rules::SEED, seed, silos.clone()).place(0, 0.1);
        assert!(matches!(made.decision, Decision::Place { is_high: false, .. }));
    }
}

#[test]
fn charges_close_a_silo_before_it_is_full() {
    let mut director = director(Rules::SEED, 1, vec![even(0.78), even(0.10)]);
    let picks: Vec<u32> = (0..60).map(|stream| silo(&director.place(stream, 0.9))).collect();
    assert!(picks.iter().filter(|silo| **silo == 0).count() <= 2, "{picks:?}");
    assert!(director.charge(1) > 0.5);
}

#[test]
fn a_decision_keeps_the_numbers_it_was_made_on() {
    let made = director(Rules::SEED, 1, vec![even(0.2), even(0.4)]).place(3, 0.7);
    let [Some(chosen), Some(other)] = made.on else { panic!("{made:?}") };
    assert_eq!((chosen.silo, chosen.max, other.silo, other.max), (0, 0.2, 1, 0.4));
}
