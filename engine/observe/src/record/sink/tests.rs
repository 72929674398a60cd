#![allow(clippy::unwrap_used, reason = "harness")]
use super::{AnswerRecord, AnswerSink, SinkConfig};
use crate::code::Format;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;
use proptest::prelude::{Just, Strategy, any, proptest};
use std::fs;
use std::path::{Path, PathBuf};

fn name(code: u16) -> &'static str {
    if code == 4 { "launch deadline" } else { "other" }
}

fn record(index: u64, observables: u64, error: u16) -> AnswerRecord {
    let mut words = [0; OBSERVABLE_WORDS_MAX];
    words[0] = observables;
    let (stream, sequence) = ((index % 4) as u32, index / 4);
    let decoder = (index % 2 == 1).then_some("matching");
    AnswerRecord {
        index,
        stream,
        sequence,
        error,
        is_rescued: false,
        decoder,
        gap_db: (index == 6).then_some(7),
        abstained: index == 6,
        model: 0xabc,
        latency_ns: 1_000 + index,
        observables: words,
    }
}

fn config(dir: &Path, format: Format, observables: u32) -> SinkConfig {
    SinkConfig {
        predictions: Some(dir.join("predictions")),
        format,
        answers: Some(dir.join("answers")),
        observables,
        window_shots: 64,
        error_name: name,
    }
}

fn predictions(format: Format, records: &[AnswerRecord]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = AnswerSink::new(&SinkConfig { answers: None, ..config(dir.path(), format, 9) }).unwrap();
    for record in records {
        sink.accept(record);
    }
    sink.finish().unwrap();
    fs::read(dir.path().join("predictions")).unwrap()
}

#[test]
fn each_format_is_what_pymatching_writes() {
    let records = [record(1, 0b1_0000_0001, 0), record(0, 0, 0), record(2, 0b11, 4)];
    assert_eq!(predictions(Format::B8, &records), [0, 0, 1, 1, 0, 0]);
    assert_eq!(predictions(Format::Text01, &records), b"000000000\n100000001\n000000000\n");
    assert_eq!(predictions(Format::Dets, &records), b"shot\nshot L0 L8\nshot\n");
}

#[test]
fn answers_are_lines_in_completion_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = AnswerSink::new(&config(dir.path(), Format::B8, 9)).unwrap();
    for record in [record(5, 0b1_0000_0001, 0), record(6, 1, 0), record(0, 1, 4)] {
        sink.accept(&record);
    }
    sink.finish().unwrap();
    let text = fs::read_to_string(dir.path().join("answers")).unwrap();
    let expected = concat!(
        r#"{"stream":1,"seq":1,"status":"ok","observables":[0,8],"latency_ns":1005,"decoder":"matching","model":"0000000000000abc"}"#,
        "\n",
        r#"{"stream":2,"seq":1,"status":"abstained","observables":[0],"latency_ns":1006,"gap_db":7}"#,
        "\n",
        r#"{"stream":0,"seq":0,"status":"launch deadline","observables":[],"latency_ns":1000}"#,
        "\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_shot_never_answered_is_zeros() {
    assert_eq!(predictions(Format::Text01, &[record(1, 1, 0)]), b"000000000\n100000000\n");
}

#[test]
fn an_unwritable_place_is_refused_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let bad = SinkConfig { answers: Some(dir.path().join("no/such")), ..config(dir.path(), Format::B8, 1) };
    let said = AnswerSink::new(&bad).unwrap_err().to_string();
    assert!(said.starts_with("--answers: cannot write "), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_one_sentence_and_the_other_output_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let full = SinkConfig { answers: Some(PathBuf::from("/dev/full")), ..config(dir.path(), Format::B8, 1) };
    let mut sink = AnswerSink::new(&full).unwrap();
    for index in 0..10_000 {
        sink.accept(&record(index, 1, 0));
    }
    let said = sink.finish().unwrap_err();
    assert!(said.contains("--answers /dev/full") && !said.contains('\n') && !said.contains("--predictions"), "{said}");
    assert_eq!(fs::read(dir.path().join("predictions")).unwrap(), vec![1; 10_000]);
}

#[test]
fn what_was_written_before_a_failure_stays_and_the_error_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), Format::B8, 1);
    let mut sink = AnswerSink::new(&config).unwrap();
    (0..3).for_each(|index| sink.accept(&record(index, 1, 0)));
    let said = |sink: &AnswerSink| sink.answers.as_ref().unwrap().file.refused(&"No space left");
    assert!(said(&sink).ends_with("; the output is incomplete"), "nothing of it is on the disk: {}", said(&sink));
    sink.flush();
    let said = said(&sink);
    drop(sink);
    let (_, partial) = said.split_once("what was written is in ").unwrap();
    assert_eq!(fs::read_to_string(partial).unwrap().lines().count(), 3, "{said}");
    assert!(!dir.path().join("answers").exists() && !dir.path().join("predictions").exists());
}

#[test]
fn an_answer_beyond_the_window_stops_the_predictions_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = AnswerSink::new(&config(dir.path(), Format::B8, 1)).unwrap();
    for index in 1..=64 {
        sink.accept(&record(index, 1, 0));
    }
    let said = sink.finish().unwrap_err();
    assert!(said.contains("shot 64 answered while shot 0"), "{said}");
    assert!(!dir.path().join("predictions").exists() && dir.path().join("answers").exists());
}

fn any_order() -> impl Strategy<Value = (Vec<(u16, u16)>, Vec<usize>)> {
    (1usize..64).prop_flat_map(|shots| {
        let values = proptest::collection::vec((any::<u16>(), 0u16..2), shots);
        (values, Just((0..shots).collect::<Vec<_>>()).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn any_completion_order_gives_the_same_predictions((shots, order) in any_order()) {
        let records: Vec<AnswerRecord> = (0u64..)
            .zip(&shots)
            .map(|(index, &(flips, error))| record(index, u64::from(flips & 0x1ff), error))
            .collect();
        let shuffled: Vec<AnswerRecord> = order.iter().map(|&index| records[index]).collect();
        for format in Format::ALL {
            proptest::prop_assert_eq!(predictions(format, &records), predictions(format, &shuffled));
        }
    }
}
