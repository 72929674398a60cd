#![allow(clippy::unwrap_used, reason = "harness")]

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};

use super::super::{flip, golden};
use super::*;

fn read(bytes: &[u8], format: Format, layout: Layout) -> Result<ShotSet, ShotError> {
    ShotSet::read(bytes, format, layout)
}

fn write(set: &ShotSet, format: Format, layout: Layout) -> Vec<u8> {
    let mut writer = ShotWriter::new(Vec::new(), format, layout);
    set.iter().for_each(|shot| writer.write_shot(shot).unwrap());
    writer.finish().unwrap()
}

/// A refusal's shot, place and what was found.
fn refusal(bytes: &[u8], format: Format, layout: Layout) -> (u64, FilePosition, String) {
    match read(bytes, format, layout).unwrap_err() {
        ShotError::Malformed { shot, position, found, expected, remedy } => {
            assert!(!expected.is_empty() && !remedy.is_empty());
            (shot, position, found)
        }
        other => panic!("{other}"),
    }
}

const fn text(line: u64, column: u64) -> FilePosition {
    FilePosition::Text { line, column }
}

#[test]
fn golden_text_and_bytes_say_the_same() {
    let set = golden::committed("surf_z_d3_r3_p0.005");
    let file = |name: &str| std::fs::read(golden::committed_directory().join(name)).unwrap();
    let detectors = Layout::detectors(set.model.detectors);
    let observables = Layout::observables(set.model.observables);
    let detections_text = file("surf_z_d3_r3_p0.005.dets.01");
    assert_eq!(read(&detections_text, Format::Text01, detectors).unwrap(), set.detections);
    assert_eq!(write(&set.detections, Format::Text01, detectors), detections_text);
    assert_eq!(write(&set.detections, Format::B8, detectors), file("surf_z_d3_r3_p0.005.dets.b8"));
    let observables_text = file("surf_z_d3_r3_p0.005.obs.01");
    assert_eq!(read(&observables_text, Format::Text01, observables).unwrap(), set.observables);
    assert_eq!(write(&set.observables, Format::Text01, observables), observables_text);
    assert_eq!(set.detections.len(), 2000);
}

#[test]
fn predictions_are_written_as_pymatching_writes_them() {
    let layout = Layout::observables(10);
    let set = ShotSet { width_bits: 10, words_per_shot: 1, words: vec![0b10_0000_0001, 0], shots: 2 };
    assert_eq!(write(&set, Format::B8, layout), [1, 2, 0, 0]);
    assert_eq!(write(&set, Format::Text01, layout), b"1000000001\n0000000000\n");
    assert_eq!(write(&set, Format::Dets, layout), b"shot L0 L9\nshot\n");
}

#[test]
fn dets_hold_detectors_and_observables_in_one_record() {
    let layout = Layout { detectors: 6, observables: 2, are_measured: false };
    let set = read(b"shot D0 D5 L0\n\n  shot\nshot L1", Format::Dets, layout).unwrap();
    assert_eq!(set.words, [0b0110_0001, 0, 0b1000_0000]);
    assert_eq!(write(&set, Format::Dets, layout), b"shot D0 D5 L0\nshot\nshot L1\n");
}

#[test]
fn dets_of_measurements_name_them_as_stim_does() {
    let layout = Layout::measurements(7);
    let set = read(b"shot M0 M6\nshot\nshot D1\n", Format::Dets, layout).unwrap();
    assert_eq!(set.words, [0b100_0001, 0, 0b10]);
    assert_eq!(write(&set, Format::Dets, layout), b"shot M0 M6\nshot\nshot M1\n");
    assert_eq!(refusal(b"shot M7\n", Format::Dets, layout).2, "M7");
    assert_eq!(refusal(b"shot M1 D1\n", Format::Dets, layout).2, "D1 twice");
}

#[test]
fn a_last_line_needs_no_line_end() {
    assert_eq!(read(b"01\r\n11", Format::Text01, Layout::detectors(2)).unwrap().words, [2, 3]);
}

#[test]
fn truncated_and_misfitting_bytes_are_refused() {
    let layout = Layout::detectors(12);
    assert_eq!(
        refusal(&[1, 0, 2], Format::B8, layout),
        (1, FilePosition::Byte(2), "1 bytes at the end of the file".into())
    );
    assert_eq!(
        refusal(&[1, 0, 2, 16], Format::B8, layout),
        (1, FilePosition::Byte(3), "bits set in the padding".into())
    );
    assert_eq!(refusal(&[0], Format::B8, Layout::detectors(0)).0, 0);
    assert!(read(&[], Format::B8, layout).unwrap().is_empty());
}

/// Shots in another format are the usual reason for bytes that are no whole record.
#[test]
fn bytes_that_are_no_whole_record_may_be_of_another_format() {
    let said = read(b"000000000001\n", Format::B8, Layout::detectors(120)).unwrap_err().to_string();
    assert!(said.contains("--format 01") && said.contains("--m2d") && said.contains("truncated"), "{said}");
}

#[test]
fn misfitting_lines_are_refused() {
    let layout = Layout::detectors(3);
    assert_eq!(refusal(b"010\n0101\n", Format::Text01, layout), (1, text(2, 4), "more than 3 digits".into()));
    assert_eq!(refusal(b"010\n01\n", Format::Text01, layout), (1, text(2, 3), "2 digits on this line".into()));
    assert_eq!(refusal(b"010\n01", Format::Text01, layout), (1, text(2, 3), "2 digits at the end of the file".into()));
    assert_eq!(refusal(b"0x0\n", Format::Text01, layout), (0, text(1, 2), "'x'".into()));
}

#[test]
fn misfitting_dets_are_refused() {
    let layout = Layout { detectors: 3, observables: 1, are_measured: false };
    for (bytes, place, found) in [
        (&b"shot D3\n"[..], text(1, 8), "D3"),
        (b"shot L1\n", text(1, 8), "L1"),
        (b"shot D99999999999999999999\n", text(1, 27), "D99999999999999999999"),
        (b"shot D1 D1\n", text(1, 11), "D1 twice"),
        (b"shot M0\n", text(1, 6), "a measurement, M"),
        (b"shot D\n", text(1, 7), "'D' without an index"),
        (b"shot D0L0\n", text(1, 8), "'L'"),
        (b"\n shoe\n", text(2, 5), "'e'"),
        (b"sh", text(1, 3), "the end of the file"),
        (b"0101\n", text(1, 1), "'0'"),
    ] {
        assert_eq!(refusal(bytes, Format::Dets, layout), (0, place, found.to_owned()));
    }
    let (_, _, found) = refusal(b"shot L0\n", Format::Dets, Layout::detectors(3));
    assert_eq!(found, "L0", "observables in a file of detectors alone");
    let said = read(b"shot D1 L0\n", Format::Dets, Layout::detectors(3)).unwrap_err().to_string();
    assert!(
        said.contains("found L0, expected D indices alone (3 detectors a shot)") && said.contains("--obs_out"),
        "{said}"
    );
}

#[test]
fn an_index_beyond_its_limit_is_named_as_it_is_written() {
    let layout = Layout { detectors: 3, observables: 1, are_measured: false };
    for index in ["4294967295", "4294967296", "4294967297", "18446744073709551616"] {
        for kind in ["D", "L"] {
            let (_, _, found) = refusal(format!("shot {kind}{index}\n").as_bytes(), Format::Dets, layout);
            assert_eq!(found, format!("{kind}{index}"));
        }
    }
    let long = "9".repeat(100);
    let (_, _, found) = refusal(format!("shot D{long}\n").as_bytes(), Format::Dets, layout);
    assert_eq!(found, format!("D{}…", &long[..64]));
}

#[test]
fn a_file_of_another_model_is_refused() {
    let set = golden::committed("surf_z_d5_r5_p0.005");
    let bytes = write(&set.detections, Format::B8, Layout::detectors(120));
    for detectors in [24, 119, 121, 336] {
        let outcome = read(&bytes, Format::B8, Layout::detectors(detectors));
        // 24 divides the file into whole records: that is for input health to find.
        assert_eq!(outcome.is_ok(), detectors == 24, "{detectors}");
    }
    assert!(matches!(set.observables.check_len(1999), Err(ShotError::Count { found: 2000, expected: 1999, .. })));
}

#[test]
fn formats_have_the_names_of_the_command_line() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let said = |name: &str| name.parse::<Format>().unwrap_err();
    assert_eq!(said("B8"), "found format 'B8', expected b8, 01 or dets; name one of these");
    for name in ["r8", "hits", "ptb64"] {
        assert!(said(name).ends_with("expected b8, 01 or dets; convert the file to one of these (stim convert)"));
    }
}

fn sets() -> impl Strategy<Value = (Layout, Vec<Vec<bool>>)> {
    (0u32..150, 0u32..80).prop_filter("a record has bits", |(d, o)| d + o > 0).prop_flat_map(
        |(detectors, observables)| {
            let shot = prop::collection::vec(any::<bool>(), (detectors + observables) as usize);
            prop::collection::vec(shot, 0..8)
                .prop_map(move |shots| (Layout { detectors, observables, are_measured: false }, shots))
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back((layout, shots) in sets()) {
        let mut words = Vec::new();
        for bits in &shots {
            let mut shot = vec![0; layout.words()];
            (0u32..).zip(bits).filter(|(_, bit)| **bit).for_each(|(index, _)| flip(&mut shot, index));
            words.extend(shot);
        }
        let set = ShotSet { width_bits: layout.bits(), words_per_shot: layout.words(), words, shots: shots.len() };
        for format in Format::ALL {
            prop_assert_eq!(&read(&write(&set, format, layout), format, layout).unwrap(), &set);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), width in 0u32..200) {
        for format in Format::ALL {
            let _ = read(&bytes, format, Layout::detectors(width));
        }
    }

    #[test]
    fn arbitrary_text_never_panics(
        words in prop::collection::vec(
            prop::sample::select(vec!["shot", " ", "\n", "D1", "L0", "D", "0", "1", "M2", "\r", "99999999999"]), 0..40,
        ),
        width in 0u32..5,
    ) {
        for format in Format::ALL {
            let layout = Layout { detectors: width, observables: 1, are_measured: width % 2 == 1 };
            let _ = read(words.concat().as_bytes(), format, layout);
        }
    }
}
