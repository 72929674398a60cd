#![allow(clippy::unwrap_used, reason = "harness")]

use super::{
    Answered, Encoding, ErrorCode, Part, Position, Reply, Request, Status, Welcome, encode_hello, reply, request,
    status_name, write_answer, write_welcome,
};
use proptest::prelude::{any, proptest};

#[test]
fn each_status_but_that_of_an_answer_has_a_name_of_its_own() {
    let numbers = (0..=u16::MAX).filter(|status| status_name(*status).is_some());
    let expected = ErrorCode::ALL.map(|code| code as u16).into_iter().chain(256..=261);
    assert_eq!(numbers.clone().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let names: std::collections::BTreeSet<_> = numbers.clone().filter_map(status_name).collect();
    assert_eq!(names.len(), numbers.count());
    assert_eq!([5, 256, 261].map(status_name), ["launch_deadline", "malformed", "soft"].map(Some));
}

fn a_part(payload: &[u8], bits: u32, encoding: Encoding) -> Part<'_> {
    let (epoch, session, sequence) = (7, 1 << 60, u64::MAX - 1);
    Part {
        epoch,
        session,
        sequence,
        stream: 3,
        round: 2,
        position: Position::Last,
        first_bit: 5,
        bits,
        encoding,
        payload,
        soft: &[],
    }
}

fn encoded(part: &Part<'_>) -> Vec<u8> {
    let mut out = vec![9; 3];
    part.encode(&mut out);
    out
}

#[test]
fn a_part_decodes_as_it_was_encoded() {
    let words = [1, 0, 0, 0, 0, 0, 0, 0];
    for part in [a_part(&[0xff, 0x01], 9, Encoding::Bits), a_part(&words, 2, Encoding::Int32)] {
        assert_eq!(request(&encoded(&part)), Some(Request::Shot(part)));
    }
    let soft = Part { soft: &[0, 255, 7], ..a_part(&[0xff, 0x01], 9, Encoding::Bits) };
    assert_eq!(request(&encoded(&soft)), Some(Request::Shot(soft)));
    let mut hello = Vec::new();
    encode_hello(5, &mut hello);
    assert_eq!(request(&hello), Some(Request::Hello { session: 5 }));
}

/// A part that is refused by its number.
fn refused(part: Part<'_>) -> Option<Request<'_>> {
    Some(Request::Shot(Part { bits: 0, payload: &[], soft: &[], ..part }))
}

#[test]
fn a_shot_with_an_invalid_byte_is_refused_by_its_number_and_what_is_no_shot_is_none() {
    let part = a_part(&[0xff, 0x01], 9, Encoding::Bits);
    let good = encoded(&part);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    // Magic, version, kind: answers are the engine's.
    for none in [with(0, b'Q'), with(4, 2), with(5, 3)] {
        assert_eq!(request(&none), None);
    }
    // Flags, the number of bits (2^32 do not overflow), and a bit behind the last.
    for (at, value) in [(6, 5), (6, 9), (7, 1), (44, 0), (44, 17), (47, 255), (49, 3)] {
        assert_eq!(request(&with(at, value)), refused(part), "{value} at {at}");
    }
    for cut in 0..good.len() {
        assert_eq!(request(&good[..cut]), if cut < 48 { None } else { refused(part) }, "{cut} bytes");
    }
    let soft = encoded(&Part { soft: &[1], ..part });
    assert_eq!(request(&soft[..soft.len() - 1]), refused(part), "the flag and no soft byte");
    let inner = [&soft[..6], &[4], &soft[7..]].concat();
    assert_eq!(request(&inner), refused(Part { position: Position::Inner, ..part }), "in a part that is not the last");
    let int32 = a_part(&[2, 0, 0, 0], 1, Encoding::Int32);
    assert_eq!(request(&encoded(&int32)), refused(int32));
}

#[test]
fn a_hello_has_no_bits_and_no_flags() {
    let mut hello = Vec::new();
    encode_hello(5, &mut hello);
    hello.push(0);
    assert_eq!(request(&hello), None);
    hello.truncate(48);
    for at in [6, 24, 47] {
        hello[at] = 1;
        assert_eq!(request(&hello), None, "byte {at}");
        hello[at] = 0;
    }
    assert!(request(&hello).is_some());
}

#[test]
fn values_are_zero_or_one_in_bits_and_in_words() {
    let taken = |payload: &[u8], bits: u32, encoding: Encoding| {
        let part = a_part(payload, bits, encoding);
        request(&encoded(&part)) == Some(Request::Shot(part))
    };
    assert!(taken(&[0xff], 8, Encoding::Bits), "no padding");
    assert!(taken(&[0xff, 0x01], 9, Encoding::Bits) && !taken(&[0xff, 0x02], 9, Encoding::Bits));
    assert!(taken(&[1, 0, 0, 0], 1, Encoding::Int32));
    for high in 1..4 {
        let mut word = [1, 0, 0, 0];
        word[high] = 1;
        assert!(!taken(&word, 1, Encoding::Int32), "byte {high}");
    }
}

#[test]
fn a_whole_shot_is_one_last_part_from_the_first_bit_on() {
    let whole = Part { round: 0, first_bit: 0, ..a_part(&[0xff, 0x01], 9, Encoding::Bits) };
    assert!(whole.is_whole(9) && !whole.is_whole(10));
    assert!(!Part { round: 1, ..whole }.is_whole(9));
    assert!(!Part { first_bit: 1, ..whole }.is_whole(9));
    assert!(!Part { position: Position::Inner, ..whole }.is_whole(9));
}

#[test]
fn answers_with_observables_are_those_without_an_error_and_those_abstained_from() {
    let decoded: Vec<u16> = (0..300).filter(|status| Status::is_decoded(*status)).collect();
    assert_eq!(decoded, [0, Status::Abstained as u16]);
}

#[test]
fn a_datagram_has_its_fields_where_its_table_says() {
    let part = Part {
        epoch: 0x0807_0605_0403_0201,
        session: 0x1817_1615_1413_1211,
        sequence: 0x2827_2625_2423_2221,
        stream: 0x3433_3231,
        round: 0x4443_4241,
        first_bit: 0x5453_5251,
        ..a_part(&[0xff, 0x01], 9, Encoding::Bits)
    };
    let bytes = encoded(&part);
    assert_eq!(bytes[..8], *b"PWL1\x01\x01\x01\x00");
    let fields = [1..9u8, 0x11..0x19, 0x21..0x29, 0x31..0x35, 0x41..0x45, 0x51..0x55, 9..10];
    assert_eq!(bytes[8..45], fields.into_iter().flatten().collect::<Vec<u8>>());
    assert_eq!(bytes[45..], [0, 0, 0, 0xff, 0x01]);
    assert_eq!(encoded(&a_part(&[1, 0, 0, 0], 1, Encoding::Int32))[6], 3);
    assert_eq!(encoded(&Part { position: Position::Inner, ..part })[6], 0);
    assert_eq!(request(&bytes), Some(Request::Shot(part)));
}

#[test]
fn replies_decode_as_they_were_encoded() {
    let (mut out, flips) = ([0; 64], [0x0300_0000_0000_0001, 2]);
    let answer = Answered {
        epoch: 1,
        session: 2,
        sequence: 3,
        stream: 4,
        status: 0x1ff,
        observables: 66,
        latency_ns: 5,
        flips: &[],
    };
    let bytes = write_answer(&mut out, &answer, &flips);
    let expected = [1, 0, 0, 0, 0, 0, 0, 3, 2];
    assert_eq!(reply(&out[..bytes]), Some(Reply::Answer(Answered { flips: &expected, ..answer })));
    assert_eq!(reply(&out[..bytes - 1]), None);
    let welcome = Welcome {
        epoch: 1,
        session: 2,
        streams: 3,
        observables: 4,
        bits: 120,
        encoding: Encoding::Int32,
        soft_bytes: 145,
    };
    for welcome in [welcome, Welcome { encoding: Encoding::Bits, ..welcome }] {
        let bytes = write_welcome(&mut out, &welcome);
        assert_eq!(reply(&out[..bytes]), Some(Reply::Welcome(welcome)));
    }
    out[5] = 1;
    assert_eq!(reply(&out[..48]), None, "a shot is a sender's");
}

proptest! {
    #[test]
    fn bits_arrive_where_they_belong(first_bit in 0u32..200, bits in 1u32..300, seed in any::<u64>()) {
        let bit = |index: u32| seed.rotate_left(index % 64) >> 7 & 1;
        let mut packed = vec![0; bits.div_ceil(8) as usize];
        let mut words = Vec::new();
        for index in 0..bits {
            packed[index as usize / 8] |= (bit(index) as u8) << (index % 8);
            words.extend_from_slice(&(bit(index) as u32).to_le_bytes());
        }
        for (encoding, payload) in [(Encoding::Bits, &packed), (Encoding::Int32, &words)] {
            let part = Part { first_bit, ..a_part(payload, bits, encoding) };
            let (mut found, mut masks) = ([0u64; 9], [0u64; 9]);
            part.each_word(|word, value, mask| {
                assert_eq!((value & !mask, masks[word] & mask), (0, 0));
                found[word] |= value;
                masks[word] |= mask;
            });
            for index in 0..576u32 {
                let (word, at) = (index as usize / 64, index % 64);
                let inside = (first_bit..first_bit + bits).contains(&index);
                let expected = if inside { bit(index - first_bit) } else { 0 };
                assert_eq!((found[word] >> at & 1, masks[word] >> at & 1), (expected, u64::from(inside)), "{index}");
            }
        }
    }

    #[test]
    fn no_bytes_make_a_parser_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), ours in any::<bool>()) {
        if ours && bytes.len() >= 8 {
            bytes[..5].copy_from_slice(b"PWL1\x01");
        }
        if let Some(Request::Shot(part)) = request(&bytes) {
            part.each_word(|_, _, _| ());
        }
        let _ = reply(&bytes);
    }
}
