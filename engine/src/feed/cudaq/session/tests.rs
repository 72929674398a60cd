//! Tests of the session, by the protocol's rules.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::{DecoderState, Session, Verdict};
use crate::feed::cudaq::frame::{Call, Function, Status};
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;

const OK: Verdict = Verdict::Reply(Status::Ok);
const BAD: Verdict = Verdict::Reply(Status::BadRequest);
const FAILED: Verdict = Verdict::Reply(Status::InternalError);
const NOT_READY: Verdict = Verdict::Reply(Status::NotReady);

fn words(low: u64) -> [u64; OBSERVABLE_WORDS_MAX] {
    let mut words = [0; OBSERVABLE_WORDS_MAX];
    words[0] = low;
    words
}

fn enqueue(session: &mut Session, bits: u32, packed: &[u8]) -> Verdict {
    session.call(&Call::Enqueue { bits, packed })
}

fn get(session: &mut Session, return_bits: i64, is_clearing: bool) -> Verdict {
    session.call(&Call::Corrections { return_bits, is_clearing })
}

/// Fills a volume of three measurements, and answers it.
fn decoded(session: &mut Session, volume: u64, found: u64) {
    assert_eq!(enqueue(session, 3, &[2]), Verdict::LastPart);
    let part = session.part();
    assert_eq!(
        (part.volume, part.part, part.is_last, part.first_bit, part.bits, part.packed),
        (volume, 0, true, 0, 3, &[2][..])
    );
    assert!(session.answer(volume, Some(&words(found))));
}

#[test]
fn corrections_are_kept_until_they_are_cleared_and_new_measurements_hide_them() {
    let mut session = Session::new(3, 2);
    assert_eq!(get(&mut session, 2, false), NOT_READY);
    decoded(&mut session, 0, 1);
    for _ in 0..2 {
        assert_eq!(get(&mut session, 2, false), Verdict::Corrections(words(1)));
    }
    assert_eq!((enqueue(&mut session, 1, &[1]), get(&mut session, 2, false)), (OK, NOT_READY));
    assert_eq!(enqueue(&mut session, 2, &[0]), Verdict::LastPart);
    session.part();
    // Two volumes add up, modulo 2.
    assert!(session.answer(1, Some(&words(3))));
    assert_eq!(get(&mut session, 2, true), Verdict::Corrections(words(2)));
    assert_eq!((get(&mut session, 2, true), session.state()), (NOT_READY, DecoderState::Collecting));
    decoded(&mut session, 2, 1);
    assert_eq!(get(&mut session, 2, true), Verdict::Corrections(words(1)), "from zero again");
}

#[test]
fn sizes_of_corrections_are_judged_in_the_order_of_the_protocol() {
    let mut session = Session::new(3, 2);
    assert_eq!(
        [get(&mut session, 0, false), get(&mut session, 3, false), get(&mut session, 2, false)],
        [BAD, BAD, NOT_READY]
    );
    session.fail();
    assert_eq!(
        [get(&mut session, -1, false), get(&mut session, 3, false), get(&mut session, 2, true)],
        [BAD, FAILED, FAILED]
    );
}

#[test]
fn a_failed_session_stays_so_until_it_is_reset() {
    let malformed = |function| Call::Malformed(function);
    for failing in [malformed(Function::Enqueue), Call::Enqueue { bits: 4, packed: &[0] }] {
        let mut session = Session::new(3, 2);
        decoded(&mut session, 0, 1);
        let is_malformed = matches!(failing, Call::Malformed(_));
        assert_eq!(session.call(&failing), if is_malformed { BAD } else { OK });
        assert_eq!((get(&mut session, 2, true), get(&mut session, 2, true)), (FAILED, FAILED));
        assert_eq!((enqueue(&mut session, 3, &[2]), session.state()), (OK, DecoderState::Failed));
        assert_eq!((session.call(&Call::Reset), get(&mut session, 2, false)), (OK, NOT_READY));
        decoded(&mut session, 1, 1);
        assert_eq!(get(&mut session, 2, true), Verdict::Corrections(words(1)), "the reset cleared the corrections");
    }
    let mut session = Session::new(3, 2);
    assert_eq!(
        [session.call(&malformed(Function::Corrections)), session.call(&malformed(Function::Reset))],
        [BAD, BAD]
    );
    assert_eq!(session.state(), DecoderState::Collecting);
    enqueue(&mut session, 3, &[2]);
    session.part();
    assert!(session.answer(0, None));
    assert_eq!(get(&mut session, 2, false), FAILED, "the decode failed");
}

#[test]
fn measurements_of_any_chunks_are_passed_on_in_order_and_whole_words() {
    for (bits, chunk) in
        [(1, 1), (64, 64), (65, 1), (200, 7), (200, 64), (200, 200), (1_000, 129), (65_536, 1), (65_536, 1_600)]
    {
        let measured: Vec<bool> = (0..bits).map(|at| (at * at + at / 3) % 5 < 2).collect();
        let mut session = Session::new(bits, 1);
        for volume in 0..2 {
            let (mut found, mut parts) = (vec![false; bits as usize], 0);
            for measured in measured.chunks(chunk) {
                // Bits behind the last one are not zero.
                let mut packed = vec![0xff; measured.len().div_ceil(8)];
                measured
                    .iter()
                    .enumerate()
                    .filter(|(_, one)| !**one)
                    .for_each(|(at, _)| packed[at / 8] &= !(1 << (at % 8)));
                let verdict = enqueue(&mut session, measured.len() as u32, &packed);
                if verdict == OK {
                    continue;
                }
                let part = session.part();
                assert_eq!((part.volume, part.part, part.first_bit % 64), (volume, parts, 0));
                assert_eq!(part.is_last, verdict == Verdict::LastPart);
                assert_eq!(part.packed.len(), part.bits.div_ceil(8) as usize);
                for bit in 0..part.bits {
                    found[(part.first_bit + bit) as usize] = part.packed[bit as usize / 8] >> (bit % 8) & 1 == 1;
                }
                assert!(
                    part.bits.is_multiple_of(8) || part.packed.last().unwrap() >> (part.bits % 8) == 0,
                    "zeros behind it"
                );
                parts += 1;
            }
            assert_eq!(found, measured, "{bits} by {chunk}");
            assert!(parts <= super::PARTS_MAX && session.answer(volume, Some(&words(0))));
        }
    }
}

#[test]
fn a_volume_that_was_passed_on_in_part_is_given_up_once_and_its_answer_is_nobodys() {
    let mut session = Session::new(200, 1);
    let part = [0xff; 16];
    assert_eq!(enqueue(&mut session, 100, &part), Verdict::Part);
    assert_eq!(session.part().bits, 64);
    assert!(!session.takes_given_up());
    assert_eq!(session.call(&Call::Reset), OK);
    assert!(session.takes_given_up() && !session.takes_given_up());
    assert_eq!(enqueue(&mut session, 200, &[0; 25]), Verdict::LastPart);
    let part = session.part();
    assert_eq!((part.volume, part.part, part.packed), (1, 0, &[0; 25][..]), "nothing of the volume before it");
    assert!(!session.answer(0, None) && session.state() == DecoderState::Decoding);
    assert!(session.answer(1, Some(&words(1))) && !session.answer(1, None));
}
