//! The words by which cold code steers hot threads, and the ring with a process that is not ours.

use pinwheel_edge::slot::health::{Health, HealthWord};
use pinwheel_edge::slot::outside::{ClientEnd, EngineEnd, Outside, Record, turn};
use pinwheel_edge::spin::{Phase, PhaseWord, SpinBudgets, SpinOrder, SpinPolicy, SpinWord};
use pinwheel_edge::sync::{DataWords, MappedWord};

const POLICIES: [SpinPolicy; 3] = [SpinPolicy::Prod, SpinPolicy::Lab, SpinPolicy::Shared];

fn budgets(at: u64) -> SpinBudgets {
    SpinBudgets { lab_spin_ticks: at, shared_spin_ticks: at + 1, shared_sleep_ns: at + 2 }
}

#[test]
fn a_spin_order_keeps_its_policy_and_its_epoch_in_one_word() {
    for (code, policy) in POLICIES.into_iter().enumerate() {
        for epoch in [0, 1, 255, 256, 1 << 55] {
            let order = SpinOrder { policy, epoch };
            assert_eq!(order.pack(), epoch << 8 | code as u64);
            assert_eq!(SpinOrder::unpack(order.pack()), order);
        }
    }
    assert_eq!(SpinPolicy::from_code(3), SpinPolicy::Shared, "an unknown code is the gentlest policy");
    assert_eq!(POLICIES.map(SpinPolicy::name), ["prod", "lab", "shared"]);
}

#[test]
fn a_request_is_seen_with_its_budgets_and_is_not_its_acknowledgement() {
    let word = SpinWord::new(SpinPolicy::Lab, budgets(10));
    let first = SpinOrder { policy: SpinPolicy::Lab, epoch: 1 };
    assert_eq!((word.requested(), word.requested_raw()), ((first, budgets(10)), first.pack()));
    assert_eq!(word.acknowledged(), SpinOrder { policy: SpinPolicy::Lab, epoch: 0 });
    let second = SpinOrder { policy: SpinPolicy::Prod, epoch: 2 };
    word.request(second, budgets(20));
    assert_eq!((word.requested(), word.requested_raw()), ((second, budgets(20)), second.pack()));
    assert_eq!(word.acknowledged().epoch, 0);
    word.acknowledge(first);
    assert_eq!(word.acknowledged(), first);
}

#[test]
fn a_phase_only_advances() {
    let word = PhaseWord::new();
    assert_eq!(word.current(), Phase::Init);
    assert!(!word.advance(Phase::Init));
    assert!(word.advance(Phase::Live) && !word.advance(Phase::Live) && !word.advance(Phase::Warmup));
    assert_eq!(word.current(), Phase::Live);
    let phases = [Phase::Init, Phase::Warmup, Phase::Live, Phase::Drain, Phase::Shutdown];
    for (code, phase) in phases.into_iter().enumerate() {
        assert_eq!(Phase::from_code(code as u64), phase);
    }
    assert_eq!(Phase::from_code(5), Phase::Shutdown);
    assert_eq!(phases.map(Phase::name), ["INIT", "WARMUP", "LIVE", "DRAIN", "SHUTDOWN"]);
}

#[test]
fn the_health_of_a_device_goes_round_one_step_at_a_time() {
    let word = HealthWord::new();
    let states = [Health::Online, Health::Lost, Health::Resetting, Health::Reset, Health::Recovered];
    for state in states.into_iter().chain([Health::Online]) {
        assert_eq!(word.current(), state);
        word.advance(state);
    }
    assert_eq!(word.current(), Health::Lost);
}

/// Four slots, two words a shot and one an answer.
struct Region {
    heads: [MappedWord; 8],
    granted: MappedWord,
    shots: DataWords,
    answers: DataWords,
}

impl Outside for Region {
    fn shot(&self, slot: usize) -> Record<'_> {
        Record { head: &self.heads[slot], words: self.shots.record(slot) }
    }

    fn answer(&self, slot: usize) -> Record<'_> {
        Record { head: &self.heads[4 + slot], words: self.answers.record(slot) }
    }

    fn granted(&self) -> &MappedWord {
        &self.granted
    }
}

fn region() -> Region {
    let heads = std::array::from_fn(|_| MappedWord::new(0));
    Region { heads, granted: MappedWord::new(0), shots: DataWords::new(4, 2), answers: DataWords::new(4, 1) }
}

#[test]
fn a_shot_goes_to_the_engine_and_its_answer_back_over_laps_with_what_the_heads_add() {
    let (region, mut engine, mut client) = (region(), EngineEnd::new(4), ClientEnd::new(4));
    engine.grant(&region, 7);
    assert!(client.is_granted(&region, 7) && !client.is_granted(&region, 8));
    let (mut shot, mut answer) = ([0; 2], [0; 1]);
    assert_eq!(engine.take(&region, &mut shot), None);
    for position in 0..9u64 {
        assert_eq!((turn(position), client.published()), (position as u32 + 1, position));
        assert!(client.is_vacant() && !client.waits(position));
        assert!(client.publish(&region, 100 + position as u32, &[position, !position]));
        assert!(client.waits(position));
        let slot = (position % 4) as u32;
        assert_eq!(engine.take(&region, &mut shot), Some((slot, 100 + position as u32)));
        assert_eq!(shot, [position, !position]);
        assert_eq!(engine.take(&region, &mut shot), None, "once");
        assert_eq!(client.collect(&region, position, &mut answer), None, "no answer yet");
        assert!(engine.answer(&region, slot, 200 + position as u32, &[position << 40]));
        assert!(!engine.answer(&region, slot, 0, &[0]), "once");
        assert_eq!(client.collect(&region, position, &mut answer), Some(200 + position as u32));
        assert_eq!(answer, [position << 40]);
        assert_eq!(client.collect(&region, position, &mut answer), None, "once");
    }
    assert!(!engine.answer(&region, 4, 0, &[0]), "no such slot");
}

#[test]
fn a_full_outer_ring_takes_no_shot_and_a_new_session_begins_with_an_empty_one() {
    let (region, mut engine, mut client) = (region(), EngineEnd::new(4), ClientEnd::new(4));
    engine.grant(&region, 1);
    let mut shot = [0; 2];
    for position in 0..4u64 {
        assert!(client.publish(&region, 0, &[position, 0]));
        assert!(engine.take(&region, &mut shot).is_some());
    }
    assert!(!client.is_vacant() && !client.publish(&region, 0, &[9, 9]));
    assert_eq!((client.published(), shot), (4, [3, 0]));
    // A client that is ahead of itself is waited for: the slot's answer is not out yet.
    region.heads[0].store(u64::from(turn(4)), pinwheel_edge::sync::Ordering::Relaxed);
    assert_eq!(engine.take(&region, &mut shot), None);
    engine.grant(&region, 2);
    assert!(!engine.answer(&region, 0, 0, &[0]), "the last session's shots are nobody's");
    assert_eq!(engine.take(&region, &mut shot), None);
    let mut next = ClientEnd::new(4);
    assert!(next.is_granted(&region, 2) && next.publish(&region, 5, &[6, 7]));
    assert_eq!((engine.take(&region, &mut shot), shot), (Some((0, 5)), [6, 7]));
}
