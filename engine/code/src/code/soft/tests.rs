#![allow(clippy::unwrap_used, reason = "harness")]
use super::SoftMap;

#[test]
fn a_byte_is_the_odds_in_steps() {
    for (head, byte, odds) in
        [("soft 1", 1, 1.0), ("soft 1", 41, 10.0), ("soft 1 0.5", 41, 100.0), ("soft 1 1", 31, 1e3)]
    {
        let map = SoftMap::parse(&format!("{head}\nS0 0.01 D0 D8")).unwrap();
        let wrong = map.wrong(byte);
        assert!(((1.0 - wrong) / wrong / odds - 1.0).abs() < 1e-9, "{head}, {byte}: {wrong}");
    }
}

#[test]
fn a_map_has_as_many_words_as_its_bytes_fill() {
    for (bytes, words) in [(1, 1), (8, 1), (9, 2)] {
        let lines: String = (0..bytes).map(|byte| format!("S{byte} 0.01 D{byte} # a readout\n")).collect();
        let map = SoftMap::parse(&format!("# of a shot\nsoft {bytes}\n{lines}")).unwrap();
        assert_eq!((map.bytes(), map.words()), (bytes, words));
    }
}

#[test]
fn a_map_that_is_none_is_refused_in_one_sentence() {
    for (text, part) in [
        ("", "an empty map"),
        ("# nothing\n", "an empty map"),
        ("S0 0.01 D0", "begin with how many soft bytes"),
        ("soft 0", "1..=32768"),
        ("soft 32769", "1..=32768"),
        ("soft 2 0", "STEP in dB"),
        ("soft 2 nan", "STEP in dB"),
        ("soft 2 11", "up to 10"),
        ("soft 2 1 1", "soft N STEP"),
        ("soft 2\nS2 0.01 D0", "S below 2"),
        ("soft 2\nD0 0.01 D0", "S below 2"),
        ("soft 2\nS0 D0 D1", "above 0 and below 0.5"),
        ("soft 2\nS0 0.5 D0 D1", "above 0 and below 0.5"),
        ("soft 2\nS0", "above 0 and below 0.5"),
        ("soft 2\nS0 0.1 L0", "name detectors only"),
        ("soft 2\nS0 0.1", "0 detectors"),
        ("soft 2\nS0 0.1 D0 D1 D2", "3 detectors"),
        ("soft 2\nS0 0.1 D0 D1\nS0 0.2 D1 D0", "line 3: found the same readout"),
        ("soft 2\nS0 0.1 D0 D1\nS0 0.2 D2", "no line for S1"),
    ] {
        let said = SoftMap::parse(text).unwrap_err().to_string();
        assert!(said.contains(part) && said.contains("expected") && !said.contains('\n'), "{part}: {said}");
        assert!(!said.contains("line 0"), "{said}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(soft [0-9]{1,3}( [0-9.]{1,3})?\n)?(S[0-9]{0,2} [0-9.]{0,4}( [DL][0-9]{0,10}){0,3}\n){0,6}.{0,9}") {
        if let Ok(map) = SoftMap::parse(&text) {
            proptest::prop_assert!(map.bytes() > 0);
        }
    }
}
