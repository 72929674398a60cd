#![allow(clippy::unwrap_used, reason = "harness")]

use proptest::prelude::{Strategy, any, prop, proptest};

use super::super::golden;
use super::*;

fn parse(text: &str) -> Model {
    Model::parse(text.as_bytes()).unwrap()
}

fn refusal(text: &str) -> DemError {
    Model::parse(text.as_bytes()).unwrap_err()
}

fn part(detectors: &[u32], observables: &[u32]) -> Component {
    Component { detectors: detectors.to_vec(), observables: observables.to_vec() }
}

#[test]
fn targets_and_decompositions_are_read() {
    let model = parse("error(0.25) D1 D0 L1 ^ D2 ^ D3 L0\ndetector D5\nlogical_observable L2\n");
    assert_eq!((model.detectors, model.observables), (6, 3));
    assert_eq!(model.errors[0].probability, 0.25);
    assert_eq!(model.errors[0].components, [part(&[0, 1], &[1]), part(&[2], &[]), part(&[3], &[0])]);
    assert_eq!(model.errors[0].effect(), part(&[0, 1, 2, 3], &[0, 1]));
}

#[test]
fn the_hash_names_the_mechanisms_and_not_how_they_are_written() {
    let plain = parse("error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.2) D3 L0");
    let dressed =
        parse("REPEAT 2 {\n error[tag](1e-1) D1 D0\n shift_detectors 1\n}\nerror(0.2) D1 L0\ndetector(1, 2) D0");
    assert_eq!((plain.hash(), &plain.errors), (dressed.hash(), &dressed.errors));
    for other in [
        "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.3) D3 L0",
        "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.2) D3 L1",
        "error(0.1) D0 D1\nerror(0.1) D1 ^ D2\nerror(0.2) D3 L0",
        "error(0.1) D1 D2\nerror(0.1) D0 D1\nerror(0.2) D3 L0",
        "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.2) D3 L0\ndetector D4",
    ] {
        assert_ne!(plain.hash(), parse(other).hash(), "{other}");
    }
}

#[test]
fn an_empty_text_is_a_model_of_nothing() {
    let model = parse(" \r\n# only a remark\n");
    assert_eq!((model.detectors, model.observables, model.errors.len()), (0, 0, 0));
    assert_eq!((model.detector_words(), model.expected_detection_fractions()), (1, vec![]));
}

#[test]
fn tags_remarks_case_and_blanks_mean_nothing() {
    let plain = parse("error(0.1) D0 D1\nrepeat 2 {\nerror(0.2) D2\nshift_detectors(1) 1\n}\n");
    let dressed = parse(
        "  ERROR[a tag, even (this) {]( 1e-1 )\tD0 d1 # remark\r\n\nRepeat[again]  2  {error(0.2) D2\n\
         shift_detectors[x]( 1.0 ) 1\n}",
    );
    assert_eq!(plain, dressed);
}

#[test]
fn nested_repeats_shift_detectors_and_coordinates() {
    let model = parse(
        "detector(0, 5) D0\nrepeat 2 {\n  repeat 3 {\n    error(0.1) D0 D1 L0\n    shift_detectors(0, 0, 1) 1\n  }\n  \
         shift_detectors(10) 2\n}\ndetector(1, 2, 3, 4) D0\n",
    );
    let firsts: Vec<u32> = model.errors.iter().map(|error| error.components[0].detectors[0]).collect();
    assert_eq!(firsts, [0, 1, 2, 5, 6, 7]);
    assert_eq!(model.detectors, 11);
    assert_eq!(model.coordinates[0], [0.0, 5.0]);
    assert_eq!(model.coordinates[10], [21.0, 2.0, 9.0, 4.0]);
    assert!(model.coordinates[5].is_empty());
}

#[test]
fn sixty_four_observables_fit_a_word_and_more_are_allowed() {
    assert_eq!(parse("error(0.1) D0 L63").observable_words(), 1);
    let model = parse("error(0.1) D64 L64");
    assert_eq!((model.observables, model.observable_words(), model.detector_words()), (65, 2, 2));
}

#[test]
fn a_target_named_twice_cancels() {
    assert_eq!(parse("error(0.1) D3 D1 D3 L0 L0 D2").errors[0].components, [part(&[1, 2], &[])]);
}

#[test]
fn zero_probability_is_kept_and_counts_its_detectors() {
    let model = parse("error(0) D7 L1\nerror(1) D0");
    assert_eq!((model.detectors, model.observables, model.errors.len()), (8, 2, 2));
    assert_eq!(model.expected_detection_fractions()[7], 0.0);
    assert_eq!(model.expected_detection_fractions()[0], 1.0);
}

#[test]
fn expected_fractions_follow_parity_not_the_sum() {
    let model = parse("error(0.1) D0\nerror(0.3) D0 D1\nerror(0.2) D1 ^ D1");
    let fractions = model.expected_detection_fractions();
    assert!((fractions[0] - (0.1 * 0.7 + 0.9 * 0.3)).abs() < 1e-15);
    assert!((fractions[1] - 0.3).abs() < 1e-15, "a mechanism that flips D1 in two parts leaves it alone");
}

#[test]
fn what_is_not_a_model_is_refused_with_its_place() {
    for (text, line, column, found) in [
        ("error(0.1) D0\nsplat D1", 2, 1, "'splat'"),
        ("error(1.5) D0", 1, 6, "probability 1.5"),
        ("error(-0.1) D0", 1, 6, "probability -0.1"),
        ("error(nan) D0", 1, 7, "'n'"),
        ("error(1e999) D0", 1, 7, "'1e999'"),
        ("error(0.1, 0.2) D0", 1, 6, "2 arguments"),
        ("error D0", 1, 6, "' '"),
        ("error(0.1 D0", 1, 11, "'D'"),
        ("error(0.1", 1, 10, "the end of the file"),
        ("error(0.1) 5", 1, 12, "the number 5"),
        ("error(0.1) D", 1, 13, "the end of the file"),
        ("error(0.1) D0x", 1, 14, "'x'"),
        ("error(0.1) X3", 1, 12, "'X'"),
        ("error(0.1) ^ D0", 1, 12, "'^'"),
        ("error(0.1) D0 ^ ^ D1", 1, 17, "'^'"),
        ("error(0.1) D0 ^", 1, 15, "'^' as the last target"),
        ("detector(1) L0", 1, 13, "another kind of target"),
        ("logical_observable D0", 1, 20, "another kind of target"),
        ("shift_detectors(1)", 1, 19, "other targets"),
        ("shift_detectors D1", 1, 17, "other targets"),
        ("repeat x {\n}", 1, 8, "'x'"),
        ("repeat 3\nerror(0.1) D0", 1, 9, "the end of the line"),
        ("repeat 3 {\nerror(0.1) D0\n", 1, 11, "a repeat block that is never closed"),
        ("}\n", 1, 1, "'}' without a repeat block"),
        ("error[tag(0.1) D0\n", 1, 6, "a tag that is never closed"),
        ("\u{7f}ELF", 1, 1, "'\\x7f'"),
    ] {
        let error = refusal(text);
        assert_eq!((error.line, error.column, error.found.as_str()), (line, column, found), "{text:?}: {error}");
        assert!(!error.expected.is_empty() && !error.remedy.is_empty());
    }
}

/// Each was refused by Stim 1.16, or is read by it as a coordinate 0 that nobody wrote.
#[test]
fn what_stim_does_not_take_is_refused_with_its_place() {
    for (text, line, column, found) in [
        ("detector D3 D4", 1, 13, "a second target"),
        ("detector(1, 2)\nerror(0.1) D0", 1, 15, "the end of the line"),
        ("detector # none", 1, 10, "'#'"),
        ("detector ^", 1, 10, "another kind of target"),
        ("logical_observable L1 L2", 1, 23, "a second target"),
        ("logical_observable", 1, 19, "the end of the file"),
        ("logical_observable() L0", 1, 19, "arguments"),
        ("detector() D5", 1, 10, "')'"),
        ("error (0.1) D0", 1, 6, "' '"),
        ("detector (1) D0", 1, 10, "'('"),
        ("error(0.1)D0", 1, 11, "'D'"),
        ("detector[herald]D0", 1, 17, "'D'"),
        ("repeat 2 {\nerror(0.1) D0 }", 2, 15, "'}' behind an instruction"),
        ("repeat 2\n{\n}", 1, 9, "the end of the line"),
    ] {
        let error = refusal(text);
        assert_eq!((error.line, error.column, error.found.as_str()), (line, column, found), "{text:?}: {error}");
    }
}

#[test]
fn detectors_and_observables_are_as_many_as_stim_counts() {
    for (text, detectors, observables) in [
        ("error(0.1) D0 D7 D7 L5 L5", 8, 6),
        ("repeat 0 {\nerror(0.1) D3 L2\nrepeat 5 {\nlogical_observable L4\n}\n}\nerror(0.1) D0", 1, 5),
        ("repeat 2 {\nerror(0.1) D1 ^ D4 D4\nshift_detectors 2\n}", 7, 0),
    ] {
        let model = parse(text);
        assert_eq!((model.detectors, model.observables), (detectors, observables), "{text}");
        assert_eq!(parse(&model.to_string()).hash(), model.hash(), "{text}");
    }
}

#[test]
fn the_first_declaration_of_a_detector_gives_its_coordinates() {
    let model = parse("detector(1, 2) D0\ndetector(3) D0\ndetector D1\ndetector[herald](4) D1");
    assert_eq!(model.coordinates, [vec![1.0, 2.0], vec![]]);
    assert_eq!(model.heralds, [1]);
    assert_eq!(model.to_string(), "detector(1, 2) D0\ndetector[herald] D1\ndetector D1\n");
}

#[test]
fn every_limit_is_refused_by_its_number() {
    let nested = "repeat 1 {\n".repeat(NESTING_MAX + 1) + &"}\n".repeat(NESTING_MAX + 1);
    for (text, limit) in [
        ("repeat 99999999999999999999999 {\nerror(0.1) D0\n}".to_owned(), u64::MAX),
        (format!("repeat {} {{\nerror(0.1) D0\n}}", u64::MAX), EXPANDED_MAX),
        ("repeat 100000000 {\n}".to_owned(), EXPANDED_MAX),
        (format!("error(0.1) D{DETECTORS_MAX}"), u64::from(DETECTORS_MAX)),
        ("shift_detectors 18446744073709551615\nerror(0.1) D9".to_owned(), u64::from(DETECTORS_MAX)),
        (format!("logical_observable L{OBSERVABLES_MAX}"), u64::from(OBSERVABLES_MAX)),
        (nested, NESTING_MAX as u64),
    ] {
        let error = refusal(&text);
        assert!(error.expected.contains(&format!("at most {limit}")), "{error}");
    }
    let deepest = "repeat 1 {\n".repeat(NESTING_MAX) + "error(0.1) D0\n" + &"}\n".repeat(NESTING_MAX);
    assert_eq!(parse(&deepest).errors.len(), 1);
    assert_eq!(parse(&format!("error(0.1) D{}", DETECTORS_MAX - 1)).detectors, DETECTORS_MAX);
}

#[test]
fn a_number_beyond_its_limit_is_named_as_it_is_written() {
    let long = "9".repeat(100);
    for (text, column, found) in [
        ("error(0.1) D4294967297".to_owned(), 12, "detector D4294967297".to_owned()),
        ("error(0.1) D0 L99999999999".to_owned(), 15, "observable L99999999999".to_owned()),
        ("detector D18446744073709551616".to_owned(), 10, "detector D18446744073709551616".to_owned()),
        ("logical_observable L4294967296".to_owned(), 20, "observable L4294967296".to_owned()),
        ("error(0.1) 99999999999999999999".to_owned(), 12, "the number 99999999999999999999".to_owned()),
        ("shift_detectors 99999999999999999999".to_owned(), 17, "the number 99999999999999999999".to_owned()),
        ("repeat 99999999999999999999 {\n}".to_owned(), 8, "the number 99999999999999999999".to_owned()),
        (format!("error(0.1) D{long}"), 12, format!("detector D{}… (101 characters)", &long[..63])),
        ("error(9007199254740993) D0".to_owned(), 6, "probability 9007199254740993".to_owned()),
    ] {
        let error = refusal(&text);
        assert_eq!((error.line, error.column, error.found), (1, column, found), "{text}");
    }
    let shifted = refusal("shift_detectors 18446744073709551615\nerror(0.1) D9");
    assert_eq!(shifted.found, "detector D18446744073709551624");
    assert_eq!(parse("error(0.1) D00000000000000000000001").detectors, 2);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Model::parse(&text);
    }

    #[test]
    fn arbitrary_words_of_the_language_never_panic_and_keep_indices_below_counts(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "error", "error(0.1)", "detector", "(1,2)", "logical_observable", "shift_detectors", "repeat", "{", "}",
                "\n", "\n", "D0", "D7", "L0", "L65", "^", "3", "4000000000", "[t]", "#", "-1", "D",
            ]),
            0..60,
        ).prop_map(|words| words.join(" "))
    ) {
        if let Ok(model) = Model::parse(words.as_bytes()) {
            let parts = || model.errors.iter().flat_map(|error| &error.components);
            assert!(parts().flat_map(|part| &part.detectors).all(|&index| index < model.detectors));
            assert!(parts().flat_map(|part| &part.observables).all(|&index| index < model.observables));
            assert_eq!(model.coordinates.len(), model.detectors as usize);
            let written = parse(&model.to_string());
            let flips = |model: &Model| model.errors.iter().map(|error| (error.probability, error.effect())).collect::<Vec<_>>();
            assert_eq!((written.detectors, written.observables), (model.detectors, model.observables));
            assert_eq!((flips(&written), written.coordinates), (flips(&model), model.coordinates));
        }
    }
}

#[test]
fn a_written_model_parses_to_itself() {
    for set in golden::all() {
        let written = parse(&set.model.to_string());
        assert!(written == set.model, "{}", set.name);
    }
}

/// Slots, job buffers, matchers and predecoders take their width from here.
#[test]
fn a_model_without_observables_has_a_word_for_them() {
    let none = parse("error(0.1) D0\nerror(0.1) D0 D1\n");
    assert_eq!((none.observables, none.observable_words(), none.detector_words()), (0, 1, 1));
    let neither = parse("error(0.1) L0\n");
    assert_eq!((neither.detectors, neither.detector_words(), neither.observable_words()), (0, 1, 1));
}

#[test]
fn parts_whose_targets_cancel_are_no_parts() {
    for (text, plain) in
        [("error(0.2) D1 ^ D2 D2\n", "error(0.2) D1\n"), ("error(0.1) D0 D0 ^ L1 L1\n", "error(0.1)\n")]
    {
        let model = Model::parse(text.as_bytes()).unwrap();
        let errors = Model::parse(plain.as_bytes()).unwrap().errors;
        assert_eq!(model.errors, errors, "{text}");
        assert_eq!(Model::parse(model.to_string().as_bytes()).unwrap().hash(), model.hash(), "{text}");
    }
}

/// Stim 1.16 reads 63 characters of a number, and refuses the rest.
#[test]
fn numbers_are_written_as_short_as_stim_reads_them() {
    let text = "error(0.00000125) D0\nerror(1.2345678901234568e-60) D0\ndetector(-1e300, 0.5) D0\n";
    assert_eq!(parse(text).to_string(), text);
    let longest = parse(&format!("error({}) D0", f64::MIN_POSITIVE)).to_string();
    assert_eq!(longest, "error(2.2250738585072014e-308) D0\ndetector D0\n");
}
