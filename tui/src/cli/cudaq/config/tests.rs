//! Tests of the configuration, by CUDA-Q's own example and by what is wrong with others.

#![allow(clippy::unwrap_used, reason = "harness")]

use super::parse;
use pinwheel_engine::code::Model;
use pinwheel_engine::profile::{Decoder, Window, WindowRounds};

/// Three measurements that are their own detectors, errors and observables.
const IDENTITY: &str = "decoders:
  - id: 4
    type: pymatching
    block_size: 3
    syndrome_size: 3
    H_sparse: [0, -1, 1, -1, 2, -1]
    O_sparse: [0, -1, 1, -1, 2, -1]
    D_sparse: [0, -1, 1, -1, 2, -1]
    decoder_custom_args:
      error_rate_vec: [0.1, 0.2, 0.5]
      merge_strategy: smallest_weight
";

/// Two rounds of a repetition code of three qubits: two columns flip the same detectors.
const REPETITION: &str = "decoders:
  - id: 0
    type: pymatching
    block_size: 5
    syndrome_size: 2
    H_sparse: [0, 1, 3, 4, -1, 1, 2, 3, -1]
    O_sparse: [0, 3, -1]
    D_sparse: [0, 2, -1, 1, 3, -1]
    decoder_custom_args: {error_rate_vec: [0.1, 0.2, 0.1, 0.3, 0.25]}
";

fn model(text: &str) -> Model {
    Model::parse(text.as_bytes()).unwrap()
}

#[test]
fn matrices_become_a_model_and_a_map() {
    let read = parse(IDENTITY).unwrap();
    assert_eq!((read.numbers.as_slice(), read.decoder, read.window), (&[4][..], Decoder::Matching, Window::None));
    assert_eq!(read.model.errors, model("error(0.1) D0 L0\nerror(0.2) D1 L1\nerror(0.5) D2 L2").errors);
    assert_eq!((read.model.detectors, read.model.observables, read.map.count()), (3, 3, 3));
    let merging = REPETITION.replace("]}", "], merge_strategy: keep_original}");
    let read = parse(&merging).unwrap();
    assert_eq!((read.model.detectors, read.model.observables, read.map.count()), (2, 1, 4));
    let mut detectors = [0];
    read.map.map(&[0b1011], &mut detectors, &mut [0; 1]);
    assert_eq!(detectors, [0b01], "parities of outcomes 0 and 2, and of 1 and 3");
}

#[test]
fn equal_columns_are_merged_as_the_strategy_says() {
    let merged = |strategy: &str| {
        let text = REPETITION.replace("]}", &format!("], merge_strategy: {strategy}}}"));
        parse(&text).map(|read| read.model.errors)
    };
    // Columns 0 and 4 flip detector 0, columns 1 and 3 both; 0 and 3 flip the observable.
    let of = |one: &str, both: &str| model(&format!("error{one}\nerror{both}\nerror(0.1) D1\n")).errors;
    for (strategy, one, both) in [
        ("independent", "(0.3) D0 L0", "(0.38) D0 D1"),
        ("smallest_weight", "(0.25) D0", "(0.3) D0 D1 L0"),
        ("keep_original", "(0.1) D0 L0", "(0.2) D0 D1"),
        ("replace", "(0.25) D0", "(0.3) D0 D1 L0"),
    ] {
        let (found, expected) = (merged(strategy).unwrap(), of(one, both));
        assert_eq!(found.len(), 3);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.components, expected.components, "{strategy}");
            assert!((found.probability - expected.probability).abs() < 1e-12, "{strategy}: {found:?}");
        }
    }
    for said in [merged("disallow"), parse(REPETITION).map(|read| read.model.errors)] {
        assert!(said.unwrap_err().contains("give a merge_strategy"));
    }
}

#[test]
fn types_are_served_by_the_decoders_that_give_their_answers() {
    let lut = "      lut_error_depth: 1\n";
    let (head, _) = IDENTITY.split_once("      error_rate_vec").unwrap();
    for (name, arguments) in [("multi_error_lut", lut), ("single_error_lut", "      {}\n")] {
        let text = format!("{}{arguments}", head.replace("pymatching", name));
        assert_eq!(parse(&text).unwrap().decoder, Decoder::Lookup);
    }
    let window_of = |per_round: u32, arguments: &str| {
        let mut text =
            "decoders:\n  - id: 0\n    type: sliding_window\n    block_size: 9\n    syndrome_size: 8\n".to_owned();
        let chain: Vec<String> = (0..8).map(|row| format!("{row}, {}, -1", row + 1)).collect();
        let identity: Vec<String> = (0..8).map(|row| format!("{row}, -1")).collect();
        text += &format!(
            "    H_sparse: [{}]\n    O_sparse: [0, -1]\n    D_sparse: [{}]\n",
            chain.join(", "),
            identity.join(", ")
        );
        text += &format!(
            "    decoder_custom_args: {{error_rate_vec: [{}], inner_decoder_name: pymatching, num_syndromes_per_round: {per_round}{arguments}}}\n",
            ["0.1"; 9].join(", ")
        );
        parse(&text).map(|read| (read.window, read.model.coordinates))
    };
    let window = |arguments: &str| window_of(2, arguments);
    let (found, coordinates) = window(", window_size: 3, step_size: 1").unwrap();
    assert_eq!(found, Window::Some(WindowRounds { commit_rounds: 1, buffer_rounds: 2 }));
    assert_eq!(coordinates.concat(), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    assert_eq!(window(", window_size: 4, step_size: 2").unwrap().0, Window::None);
    for (arguments, part) in [
        ("", "found no window_size"),
        (", window_size: 3, step_size: 3", "so that windows overlap"),
        (", window_size: 5, step_size: 1", "<= rounds"),
        (", window_size: 3, step_size: 1, straddle_end_round: false", "remove these arguments"),
        (", window_size: 3, step_size: 1, merge_strategy: replace", "found merge_strategy"),
    ] {
        assert!(window(arguments).unwrap_err().contains(part), "{arguments}");
    }
    // A round of no syndromes was a division by zero.
    let said = window_of(0, ", window_size: 3, step_size: 1").unwrap_err();
    assert!(said.contains("found no num_syndromes_per_round"), "{said}");
}

#[test]
fn what_cannot_be_served_is_refused_with_its_place() {
    let with = |from: &str, to: &str| {
        assert!(IDENTITY.contains(from));
        IDENTITY.replace(from, to)
    };
    let second = |text: &str| {
        let (_, entry) = IDENTITY.split_once('\n').unwrap();
        format!("{IDENTITY}{}", text.replace("ENTRY", entry))
    };
    for (text, place, part) in [
        (with("pymatching", "chromobius"), "line 3, column 11", "found type \"chromobius\""),
        (
            with("pymatching", "nv-qldpc-decoder").replace("merge_strategy: smallest_weight", "use_sparsity: true"),
            "line 3",
            "--decoder plugin:PATH",
        ),
        (with("type:", "typ:"), "line", "type"),
        (with("block_size: 3", "block_size: 3\n    colour: red"), "line 5", "colour"),
        (with("merge_strategy", "merge_stratgy"), "line 11", "merge_stratgy"),
        (with("smallest_weight", "largest"), "line 11", "largest"),
        (with("syndrome_size: 3", "syndrome_size: 4"), "line 6", "found 3 rows in H_sparse, expected syndrome_size, 4"),
        (with("D_sparse: [0, -1, 1, -1, 2, -1]", "D_sparse: [0, -1, 1, -1]"), "line 8", "found 2 rows in D_sparse"),
        (
            with("H_sparse: [0, -1", "H_sparse: [0, 2, -1").replace("1, -1, 2", "1, 2, -1, 2"),
            "line 6",
            "found 3 ones in column 2",
        ),
        (with("H_sparse: [0, -1", "H_sparse: [-1"), "line 6", "found 0 ones in column 0"),
        (with("block_size: 3", "block_size: 4000000000"), "line 4, column 17", "expected at most 4194304"),
        (
            with("D_sparse: [0, -1", "D_sparse: [65536, -1"),
            "line 8",
            "column 15: found column 65536 in row 0 of D_sparse, expected one below 65536",
        ),
        (
            with("D_sparse: [0, -1, 1, -1, 2, -1]", "D_sparse: [-1, -1, -1]"),
            "line 8",
            "found no measurement in D_sparse",
        ),
        (with("O_sparse: [0, -1", "O_sparse: [3, -1"), "line 7", "found column 3 in row 0 of O_sparse"),
        (with("2, -1]\n    O_", "2]\n    O_"), "line 6", "found no -1"),
        (with("0.5]", "0.6]"), "line 3", "found rate 0.6 of column 2"),
        (with(", 0.5]", "]"), "line 3", "found 2 rates"),
        (with("decoder_custom_args:", "dispatch: device_graph\n    decoder_custom_args:"), "line 9", "expected host"),
        (second("ENTRY"), "line 12", "found a second decoder 4"),
        (
            second("ENTRY").replace("id: 4", "id: 5").replacen("id: 5", "id: 4", 1).replacen("0.2", "0.3", 1),
            "line 12",
            "udp-port.5=PORT",
        ),
        ("decoders: []\n".to_owned(), "line 1", "found no decoders"),
        (format!("{IDENTITY}transport: {{provider: cpu_roce}}\n"), "line 12", "expected udp"),
        (format!("{IDENTITY}more: 1\n"), "line 12", "more"),
        ("decoders: [".to_owned(), "line", ""),
        (String::new(), "line 1", "unexpected end"),
    ] {
        let said = parse(&text).map(|read| read.numbers).unwrap_err();
        assert!(said.contains(place) && said.contains(part) && !said.contains('\n'), "{part}: {said}");
    }
    let both = second("ENTRY").replacen("id: 4", "id: -9", 1);
    assert_eq!(parse(&both).unwrap().numbers, [-9, 4]);
    assert!(parse(&format!("{IDENTITY}transport: {{provider: udp, args: [a], device_graph: false}}\n")).is_ok());
}
