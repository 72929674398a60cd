//! Loads shots that are measurements, and the map from them to detectors.
//!
//! Runs before anything is started, as `input` does. Cold threads map a file as a whole and
//! standard input shot by shot; hot threads see detection events only. Bounds: the limits of
//! [`super::shots`].

use super::refusal::Refusal;
use super::shots::{BUFFER_BYTES, open_shots, read_set, read_text, read_truth, require_shots};
use pinwheel_engine::code::{
    Encoding, Format, Layout, Measurements, Model, SET_WORDS_MAX, ShotReader, ShotSet, ShotWriter,
};
use pinwheel_engine::engine::Input;
use pinwheel_report::model_file::file_name;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Reads a map, and checks that it matches `model`.
pub fn load(path: &Path, model: &Model) -> Result<Measurements, Refusal> {
    let about = format!("--m2d {}", path.display());
    let text = read_text(&about, path, "a readable map of measurements")?;
    Measurements::parse(&text, model.detectors, model.observables)
        .map_err(|error| Refusal::Content { about, said: error.to_string() })
}

/// Reads a file of measurements as detection events and observables.
pub fn replay(
    model: Arc<Model>,
    map: &Measurements,
    shots: &Path,
    observables: Option<&Path>,
    format: Format,
) -> Result<Input, Refusal> {
    let about = format!("--shots {}", shots.display());
    let outcomes = match map.encoding() {
        Encoding::Bits => read_set(&about, shots, format, Layout::measurements(map.count()))?,
        Encoding::Int32 => read_words(&about, shots, map.count())?,
    };
    require_shots(&about, &outcomes)?;
    let (set, measured) = mapped(&model, map, &outcomes)
        .map_err(|error| Refusal::Content { about: about.clone(), said: error.to_string() })?;
    let truth = match observables {
        Some(path) => Some(read_truth(path, &model, set.len(), format)?),
        None => map.truth_known().then(|| Arc::new(measured)),
    };
    Ok(Input::Replay { model, name: file_name(shots), shots: Arc::new(set), observables: truth })
}

/// Detection events and observables of each shot.
fn mapped(
    model: &Model,
    map: &Measurements,
    outcomes: &ShotSet,
) -> Result<(ShotSet, ShotSet), pinwheel_engine::code::ShotError> {
    let (detectors, observables) = (Layout::detectors(model.detectors), Layout::observables(model.observables));
    let (mut events, mut flips) = (vec![0; detectors.words()], vec![0; observables.words()]);
    let mut shots = ShotWriter::new(Vec::new(), Format::B8, detectors);
    let mut truths = ShotWriter::new(Vec::new(), Format::B8, observables);
    for outcome in outcomes.iter() {
        map.map(outcome, &mut events, &mut flips);
        shots.write_shot(&events)?;
        truths.write_shot(&flips)?;
    }
    let shots = ShotSet::read(shots.finish()?.as_slice(), Format::B8, detectors)?;
    let truths = ShotSet::read(truths.finish()?.as_slice(), Format::B8, observables);
    // A model without observables has no observable records.
    Ok((shots, if model.observables > 0 { truths? } else { ShotSet::read(&[][..], Format::B8, detectors)? }))
}

/// A file of 32-bit words, little-endian, one for each outcome.
pub fn read_words(about: &str, path: &Path, count: u32) -> Result<ShotSet, Refusal> {
    let words = Layout::measurements(count).words().max(1);
    let bytes_max = (SET_WORDS_MAX / words) as u64 * u64::from(count) * 4;
    let file = open_shots(about, path, "a readable file of 32-bit words", bytes_max)?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let layout = Layout::measurements(count);
    let mut writer = ShotWriter::new(Vec::new(), Format::B8, layout);
    let (mut record, mut shot) = (Vec::new(), vec![0; layout.words()]);
    let content = |said: String| Refusal::Content { about: about.to_owned(), said };
    while read_shot_of_words(&mut reader, count, &mut record, &mut shot).map_err(content)? {
        writer.write_shot(&shot).map_err(|error| content(error.to_string()))?;
    }
    let bytes = writer.finish().map_err(|error| content(error.to_string()))?;
    ShotSet::read(bytes.as_slice(), Format::B8, layout).map_err(|error| content(error.to_string()))
}

/// The next shot of `count` words; `false` at the end. `record` is scratch.
fn read_shot_of_words(
    reader: &mut impl Read,
    count: u32,
    record: &mut Vec<u8>,
    shot: &mut [u64],
) -> Result<bool, String> {
    let bytes = 4 * u64::from(count);
    record.clear();
    let read = reader.take(bytes).read_to_end(record);
    match read.map_err(|error| format!("reading failed ({error}); check the disk"))? as u64 {
        0 => return Ok(false),
        found if found < bytes => {
            return Err(format!(
                "found {found} bytes in the last shot, expected {bytes}; check that the file is complete"
            ));
        }
        _ => {}
    }
    shot.fill(0);
    for (outcome, word) in record.as_chunks().0.iter().enumerate() {
        match u32::from_le_bytes(*word) {
            0 => {}
            1 => shot[outcome / 64] |= 1 << (outcome % 64),
            other => return Err(format!("found outcome {other}, expected 0 or 1; write 32-bit words, little-endian")),
        }
    }
    Ok(true)
}

/// Standard input of measurements, mapped shot by shot.
pub fn stdin(model: Arc<Model>, map: Measurements, format: Format) -> Input {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, io::stdin());
    let layout = Layout::measurements(map.count());
    let (mut outcomes, mut flips) = (vec![0; layout.words()], vec![0; model.observable_words()]);
    let name = "standard input, measurements".to_owned();
    let said = |error: &dyn std::fmt::Display| format!("--shots -: {error}");
    let reader: pinwheel_engine::engine::ReadShot = match map.encoding() {
        Encoding::Int32 => {
            let mut record = Vec::new();
            Box::new(move |shot| {
                let more = read_shot_of_words(&mut input, map.count(), &mut record, &mut outcomes);
                let more = more.map_err(|error| said(&error))?;
                map.map(&outcomes, shot, &mut flips);
                Ok(more)
            })
        }
        Encoding::Bits => {
            let mut shots = ShotReader::new(input, format, layout);
            Box::new(move |shot| {
                let more = shots.read_shot(&mut outcomes).map_err(|error| said(&error))?;
                map.map(&outcomes, shot, &mut flips);
                Ok(more)
            })
        }
    };
    Input::Stream { model, name, reader }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{load, replay};
    use pinwheel_engine::code::{Format, Model};
    use pinwheel_engine::engine::Input;
    use std::path::Path;
    use std::sync::Arc;

    const MAP: &str = "D0 0\nD1 1\nD2 0 2\nD3 1 3\nD4 2 4 5\nD5 3 5 6 !\nL0 6 !\n";
    const MODEL: &str = "error(0.1) D0 D2\nerror(0.1) D1 D3\nerror(0.1) D4 D5 L0\nerror(0.1) D2 D3\n";

    fn shots(folder: &Path, head: &str, bytes: &[u8]) -> Result<Input, String> {
        let model = Arc::new(Model::parse(MODEL.as_bytes()).unwrap());
        let (map, file) = (folder.join("map"), folder.join("shots"));
        std::fs::write(&map, format!("{head}\n{MAP}")).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let map = load(&map, &model).map_err(|refusal| refusal.to_string())?;
        replay(model, &map, &file, None, Format::B8).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn bits_and_words_of_the_same_measurements_are_the_same_shots() {
        let folder = tempfile::tempdir().unwrap();
        let outcomes = [0b100_0001u8, 0b110_1100, 0];
        let words: Vec<u8> = outcomes
            .iter()
            .flat_map(|shot| (0..7).flat_map(move |bit| u32::from(shot >> bit & 1).to_le_bytes()))
            .collect();
        for (head, bytes) in [("measurements 7", &outcomes[..]), ("measurements 7 int32", &words)] {
            let Ok(Input::Replay { shots, observables, .. }) = shots(folder.path(), head, bytes) else {
                panic!("{head}")
            };
            let found: Vec<u64> = shots.iter().map(|shot| shot[0]).collect();
            assert_eq!(found, [0b000_101, 0b001_100, 0b100_000], "{head}");
            let truth: Vec<u64> = observables.unwrap().iter().map(|shot| shot[0]).collect();
            assert_eq!(truth, [0, 0, 1], "{head}");
        }
    }

    #[test]
    fn dets_of_measurements_are_taken_as_stim_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let model = Arc::new(Model::parse(MODEL.as_bytes()).unwrap());
        let [map, file] = ["map", "shots"].map(|name| folder.path().join(name));
        std::fs::write(&map, format!("measurements 7\n{MAP}")).unwrap();
        std::fs::write(&file, "shot M0 M6\nshot M2 M3 M5 M6\nshot\n").unwrap();
        let map = load(&map, &model).unwrap();
        let Ok(Input::Replay { shots, .. }) = replay(model, &map, &file, None, Format::Dets) else { panic!("refused") };
        assert_eq!(shots.iter().map(|shot| shot[0]).collect::<Vec<_>>(), [0b000_101, 0b001_100, 0b100_000]);
    }

    #[test]
    fn files_that_are_no_measurements_are_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        for (head, bytes, part) in [
            ("measurements 7 int32", &[1, 0, 0, 0][..], "found 4 bytes in the last shot"),
            ("measurements 7 int32", &[0; 28 + 3], "found 3 bytes in the last shot"),
            ("measurements 7 int32", &[0; 28 + 9], "found 9 bytes in the last shot"),
            ("measurements 1 int32", &[2, 0, 0, 0], "an outcome below 1"),
            ("measurements 7 int32", &[2; 28], "found outcome 33686018"),
            ("measurements 7", &[], "no shots"),
            ("measurements 7", &[0x80], "--shots"),
        ] {
            let Err(said) = shots(folder.path(), head, bytes) else { panic!("{part}") };
            assert!(said.contains(part) && said.contains("expected") && !said.contains('\n'), "{part}: {said}");
        }
    }
}
