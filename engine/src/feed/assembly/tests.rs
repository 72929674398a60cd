use super::{Assembly, Counts, SKIPPED_MAX, Verdict, WINDOW, Width};
use crate::feed::packet::{Encoding, Part, Position};
use crate::units::Ticks;
use proptest::prelude::proptest;

const WIDTH: u32 = 12;

fn assembly() -> Assembly {
    Assembly::new(2, Width { bits: WIDTH, encoding: Encoding::Bits, soft_bytes: 0 }, Ticks(1_000))
}

fn whole(session: u64, sequence: u64) -> Part<'static> {
    let position = Position::Last;
    let (encoding, payload) = (Encoding::Bits, &[0xff, 0x0f][..]);
    Part {
        epoch: 0,
        session,
        sequence,
        stream: 1,
        round: 0,
        position,
        first_bit: 0,
        bits: WIDTH,
        encoding,
        payload,
        soft: &[],
    }
}

/// Round `round` of three, four bits each.
fn third(sequence: u64, round: u32) -> Part<'static> {
    let position = if round == 2 { Position::Last } else { Position::Inner };
    let payload = [&[0x1][..], &[0x2], &[0x3]][round as usize];
    Part { round, position, first_bit: round * 4, bits: 4, payload, ..whole(1, sequence) }
}

#[test]
fn whole_shots_in_order_are_all_taken() {
    let mut assembly = assembly();
    for sequence in 5..2_000 {
        assert_eq!(assembly.accept(&whole(1, sequence), Ticks(sequence)), Verdict::Whole);
        assert_eq!(assembly.bits(1), [0xfff]);
    }
    assert_eq!(assembly.counts(1), Counts::default());
}

#[test]
fn a_part_with_all_bits_is_no_shot_unless_it_is_the_first_and_the_last() {
    let mut assembly = assembly();
    let parts = [Part { position: Position::Inner, ..whole(1, 0) }, Part { round: 1, ..whole(1, 1) }];
    parts.iter().for_each(|part| assert_eq!(assembly.accept(part, Ticks(0)), Verdict::Part));
    assert_eq!(assembly.accept(&whole(1, 2), Ticks(0)), Verdict::Whole);
    assert_eq!(assembly.counts(1), Counts { incomplete: 2, ..Counts::default() });
}

#[test]
fn rounds_make_a_shot_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut assembly = assembly();
        assert_eq!(assembly.accept(&third(0, order[0]), Ticks(0)), Verdict::Part);
        assert_eq!(assembly.accept(&third(0, order[1]), Ticks(0)), Verdict::Part);
        assert_eq!(assembly.accept(&third(0, order[1]), Ticks(0)), Verdict::Duplicate);
        assert_eq!(assembly.accept(&third(0, order[2]), Ticks(0)), Verdict::Whole);
        assert_eq!(assembly.bits(1), [0x321]);
        assert_eq!(assembly.accept(&third(0, 0), Ticks(0)), Verdict::Duplicate, "the shot is complete");
    }
}

#[test]
fn complete_leading_words_are_counted_in_any_order_of_arrival() {
    let mut assembly = Assembly::new(2, Width { bits: 200, encoding: Encoding::Bits, soft_bytes: 0 }, Ticks(1_000));
    let part = |round: u32| {
        let position = if round == 3 { Position::Last } else { Position::Inner };
        Part { round, position, first_bit: round * 50, bits: 50, payload: &[0xff; 7][..], ..whole(1, 4) }
    };
    let mut seen = Vec::new();
    for round in [1, 0, 2, 3] {
        let payload = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03];
        assembly.accept(&Part { payload: &payload, ..part(round) }, Ticks(0));
        seen.push(assembly.open_words(1));
    }
    assert_eq!(seen, [Some(0), Some(1), Some(2), None]);
    assert!(!assembly.take_gave_up(1));
    assembly.accept(&Part { sequence: 5, payload: &[0; 7], ..part(0) }, Ticks(0));
    assembly.accept(&Part { sequence: 6, payload: &[0; 7], ..part(0) }, Ticks(0));
    assert!(assembly.take_gave_up(1) && !assembly.take_gave_up(1));
}

#[test]
fn a_shot_whose_rounds_are_missing_is_given_up_for_the_next() {
    let mut assembly = assembly();
    assert_eq!(assembly.accept(&third(0, 0), Ticks(0)), Verdict::Part);
    assert_eq!(assembly.accept(&third(1, 0), Ticks(0)), Verdict::Part);
    assert_eq!(assembly.accept(&third(0, 1), Ticks(0)), Verdict::Stale, "a late part takes no place of the next shot");
    assert_eq!([1, 2].map(|round| assembly.accept(&third(1, round), Ticks(0))), [Verdict::Part, Verdict::Whole]);
    assert_eq!(assembly.counts(1), Counts { incomplete: 1, stale: 1, ..Counts::default() });
}

/// Nobody has answered it, unless its rounds were passed on.
#[test]
fn a_shot_that_was_given_up_is_taken_when_it_is_sent_again() {
    for (answers_given_up, expected) in
        [(false, [Verdict::Part, Verdict::Part, Verdict::Whole, Verdict::Duplicate]), (true, [Verdict::Duplicate; 4])]
    {
        let mut assembly = assembly();
        if answers_given_up {
            assembly = assembly.answering_given_up();
        }
        assert_eq!(assembly.accept(&third(0, 0), Ticks(0)), Verdict::Part);
        (0..3).for_each(|round| assert_ne!(assembly.accept(&third(1, round), Ticks(0)), Verdict::Duplicate));
        assert_eq!([0, 1, 2, 1].map(|round| assembly.accept(&third(0, round), Ticks(0))), expected);
        assert_eq!(assembly.accept(&third(1, 0), Ticks(0)), Verdict::Duplicate, "the next one was taken");
        assert_eq!(assembly.counts(1).incomplete, 1);
    }
}

#[test]
fn gaps_duplicates_and_reordering_are_distinguished() {
    let mut assembly = assembly();
    let mut take = |sequence| assembly.accept(&whole(1, sequence), Ticks(0));
    assert_eq!(
        [take(0), take(3), take(3), take(1)],
        [Verdict::Whole, Verdict::Whole, Verdict::Duplicate, Verdict::Whole]
    );
    assert_eq!(take(3 + WINDOW), Verdict::Whole);
    assert_eq!(take(3), Verdict::Stale, "too far behind to be known");
    assert_eq!(take(4), Verdict::Whole, "the oldest number of the window");
    let expected = Counts { gaps: 2 + WINDOW - 1, duplicates: 1, reordered: 2, stale: 1, ..Counts::default() };
    assert_eq!(assembly.counts(1), expected);
}

#[test]
fn a_damaged_sequence_number_is_one_malformed_shot_at_any_position() {
    for damaged in [u64::MAX - 1, 1 << 63, 1 << 32, 300 + SKIPPED_MAX] {
        for place in [0, 1, 2, 50] {
            let mut assembly = assembly();
            let numbers = (0..100).map(|shot| if shot == place { damaged } else { 100 + shot });
            let taken =
                numbers.filter(|number| assembly.accept(&whole(1, *number), Ticks(0)) == Verdict::Whole).count();
            // The first number of a session is recognised as damaged when the second is taken.
            let is_first = place == 0;
            let gaps = u64::from(!is_first);
            assert_eq!(taken, if is_first { 100 } else { 99 }, "{damaged} at {place}");
            assert_eq!(assembly.counts(1), Counts { malformed: 1, gaps, ..Counts::default() }, "{damaged} at {place}");
        }
    }
}

#[test]
fn a_sender_that_skips_far_is_accepted_at_its_second_number() {
    let mut assembly = assembly();
    let mut take = |sequence| assembly.accept(&whole(1, sequence), Ticks(0));
    assert_eq!(
        [take(0), take(1), take(2 + SKIPPED_MAX)],
        [Verdict::Whole; 3],
        "the longest jump that is accepted at once"
    );
    let far = 1 << 40;
    assert_eq!([take(far), take(far), take(3 + SKIPPED_MAX)], [Verdict::Malformed, Verdict::Malformed, Verdict::Whole]);
    assert_eq!(take(far + 1), Verdict::Malformed, "another number arrived between the two");
    assert_eq!([take(far + 2), take(far + 3), take(far + 3)], [Verdict::Whole, Verdict::Whole, Verdict::Duplicate]);
    assert_eq!(take(4 + SKIPPED_MAX), Verdict::Stale);
    let gaps = SKIPPED_MAX + (far + 2) - (4 + SKIPPED_MAX);
    assert_eq!(assembly.counts(1), Counts { gaps, malformed: 3, duplicates: 1, stale: 1, ..Counts::default() });
}

#[test]
fn a_newer_session_takes_over_and_an_older_one_only_after_a_silence() {
    let mut assembly = assembly();
    assert_eq!(assembly.accept(&whole(5, 100), Ticks(0)), Verdict::Whole);
    assert_eq!(assembly.accept(&whole(6, 0), Ticks(1)), Verdict::Whole, "a new session may start at any number");
    assert_eq!(assembly.accept(&whole(5, 101), Ticks(2)), Verdict::Stale);
    assert_eq!(assembly.accept(&whole(6, 0), Ticks(500)), Verdict::Duplicate);
    assert_eq!(assembly.accept(&whole(5, 102), Ticks(1_500)), Verdict::Whole, "the newer session is silent");
    let expected = Counts { restarts: 2, stale: 1, duplicates: 1, ..Counts::default() };
    assert_eq!(assembly.counts(1), expected);
}

#[test]
fn a_part_that_does_not_fit_is_malformed_and_affects_no_other() {
    let mut assembly = assembly();
    let odd = [
        Part { first_bit: 1, ..whole(1, 0) },
        Part { first_bit: u32::MAX, ..whole(1, 0) },
        Part { bits: 8, payload: &[1], ..whole(1, 0) },
        Part { bits: 0, payload: &[], ..third(0, 0) },
        Part { encoding: Encoding::Int32, ..whole(1, 0) },
        Part { round: 1024, ..whole(1, 0) },
        whole(0, 0),
        whole(1, u64::MAX),
        // Above the last part, a second last part, and overlapping parts.
        Part { round: 1, ..third(2, 2) },
    ];
    let last = odd.len() as u64 - 1;
    for part in &odd[..odd.len() - 1] {
        assert_eq!(assembly.accept(part, Ticks(0)), Verdict::Malformed, "{part:?}");
    }
    assert_eq!(assembly.accept(&third(2, 2), Ticks(0)), Verdict::Part);
    assert_eq!(assembly.accept(&odd[odd.len() - 1], Ticks(0)), Verdict::Malformed);
    assert_eq!(assembly.counts(1).malformed, last + 1);
    assert_eq!(assembly.accept(&whole(1, 3), Ticks(0)), Verdict::Whole);
}

#[test]
fn soft_bytes_follow_the_bits_and_those_of_a_shot_before_are_gone() {
    let mut assembly = Assembly::new(2, Width { bits: WIDTH, encoding: Encoding::Bits, soft_bytes: 9 }, Ticks(1_000));
    let soft = &[1, 2, 3, 4, 5, 6, 7, 8, 9][..];
    let packed = [0x0807_0605_0403_0201, 9];
    let whole = |sequence, soft| Part { soft, ..whole(1, sequence) };
    assert_eq!(assembly.accept(&whole(0, soft), Ticks(0)), Verdict::Whole);
    assert_eq!(assembly.bits(1), [0xfff, packed[0], packed[1]]);
    assert_eq!(assembly.accept(&whole(1, &[]), Ticks(0)), Verdict::Whole);
    assert_eq!(assembly.bits(1), [0xfff, 0, 0]);
    // The last part comes first.
    for round in [2, 0, 1] {
        let part = third(2, round);
        let _ = assembly.accept(&Part { soft: if round == 2 { soft } else { &[] }, ..part }, Ticks(0));
    }
    assert_eq!(assembly.bits(1), [0x321, packed[0], packed[1]]);
    let verdicts = [2, 0, 1].map(|round| assembly.accept(&third(3, round), Ticks(0)));
    assert_eq!(verdicts, [Verdict::Part, Verdict::Part, Verdict::Whole]);
    assert_eq!(assembly.bits(1), [0x321, 0, 0]);
    // Another number of soft bytes takes no number of the stream.
    assert_eq!(assembly.accept(&whole(4, &soft[1..]), Ticks(0)), Verdict::Soft);
    assert_eq!(assembly.accept(&whole(4, soft), Ticks(0)), Verdict::Whole);
    assert_eq!(assembly.counts(1), Counts { malformed: 1, ..Counts::default() });
}

proptest! {
    /// For any parts in any order: no number of a session is taken twice.
    #[test]
    fn no_shot_is_taken_twice(parts in proptest::collection::vec((0u64..600, 0u32..4), 1..400)) {
        let mut assembly = assembly();
        let mut taken = std::collections::BTreeSet::new();
        for (sequence, round) in parts {
            let part = if round == 3 { whole(1, sequence) } else { third(sequence, round) };
            if assembly.accept(&part, Ticks(0)) == Verdict::Whole {
                proptest::prop_assert!(taken.insert(sequence));
            }
        }
    }
}
