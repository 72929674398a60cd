//! Recordings come back as they were taken, whatever happens to their bytes.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "harness")]

use super::frame::{FILE_HEAD_BYTES, FileHead};
use super::{
    Detail, Encoder, Head, Kind, Packer, Tape, entry, pack, picture, pictured, put_varint, take_varint, unzigzag,
    zigzag,
};
use crate::board::deadlines::wrong_or_late;
use crate::board::histogram::Measured;
use crate::board::image::Image;
use crate::board::{Board, Place, Shape, add, set};
use crate::clock::Clock;
use crate::units::{Nanos, TickRate, Ticks};

const SHAPE: Shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 3 };

fn board() -> Board {
    let board = Board::create(SHAPE, Place::Private).unwrap();
    set(&board.header().nanos_per_tick_q32, 1 << 32);
    set(&board.header().start_ticks, 1_000);
    board.header().profile.write("lab");
    board
}

/// Something happens: thread, histogram, slot, stream.
fn live(board: &Board, step: u64) {
    let at = 1_000 + step * 1_000;
    set(&board.thread(0).heartbeat, at);
    add(&board.thread(0).frames, 40);
    board.latency(0).total.record(30_000 + step * 77);
    board.stream_harvest((step % 3) as usize).latency.record(31_000);
    let stamps = &board.slots(0)[(step % 8) as usize];
    set(&stamps.sequence, step);
    for (word, late) in [(&stamps.scheduled, 0), (&stamps.submitted, 3), (&stamps.dispatched, 9)] {
        set(word, at + late);
    }
    if !step.is_multiple_of(3) {
        set(&stamps.harvested, at + 20);
    }
}

#[test]
fn a_picture_comes_back_as_the_board_was() {
    let board = board();
    live(&board, 1);
    let bytes = picture(&board, &Clock::standing(Ticks(5_000), Ticks(1_000), TickRate::NANOS));
    let snapshot = pictured(bytes.clone()).unwrap().unwrap();
    assert_eq!((snapshot.at_ns, snapshot.threads[0].frames), (4_000, 40));
    assert!(pictured(bytes[..FILE_HEAD_BYTES].to_vec()).unwrap().is_none());
    assert!(pictured(bytes[..FILE_HEAD_BYTES - 1].to_vec()).is_err());
}

/// A recording of `snapshots`, its index, and after each what its reader is to have.
fn recording(snapshots: u32, key_every: u32) -> (Vec<u8>, Vec<u8>, Vec<(Ticks, Image)>) {
    recording_at(snapshots, key_every, |number| 2_000 + number * 1_000)
}

/// The same, with snapshots at these ticks.
fn recording_at(snapshots: u32, key_every: u32, ticks: impl Fn(u64) -> u64) -> (Vec<u8>, Vec<u8>, Vec<(Ticks, Image)>) {
    let board = board();
    let mut encoder = Encoder::new(&board);
    let mut bytes = FileHead::new(SHAPE, TickRate::NANOS, Ticks(1_000)).bytes();
    let (mut index, mut expected, mut packer) = (Vec::new(), Vec::new(), Packer::new());
    for number in 0..snapshots {
        live(&board, u64::from(number) + 1);
        let at = Ticks(ticks(u64::from(number)));
        let is_key = number.is_multiple_of(key_every);
        let detail = if number.is_multiple_of(2) { Detail::Full } else { Detail::Thin };
        let raw = if is_key { encoder.key(&board, at) } else { encoder.delta(&board, at, detail) };
        if is_key {
            index.extend_from_slice(&entry(at, bytes.len() as u64));
        }
        let kind = if is_key { Kind::Key } else { Kind::Delta };
        // Both packings, side by side: a reader takes either.
        let head = Head { number, kind, at };
        bytes.extend(if number.is_multiple_of(3) { pack(head, &raw) } else { packer.pack(head, &raw) });
        expected.push((at, encoder.shadow().clone()));
    }
    (bytes, index, expected)
}

#[test]
fn every_moment_comes_back_word_for_word_and_as_the_same_snapshot() {
    let (bytes, _, expected) = recording(25, 10);
    let mut tape = Tape::from_bytes(bytes).unwrap();
    assert_eq!(tape.span(), Some((expected[0].0, expected[24].0)));
    for (at, image) in expected.iter().rev() {
        let moment = tape.at(Ticks(at.0 + 999)).unwrap().unwrap();
        assert_eq!((moment.at, &moment.image), (*at, image));
        let clock = Clock::standing(*at, Ticks(1_000), TickRate::NANOS);
        let then = serde_json::to_value(image.board().unwrap().snapshot(&clock)).unwrap();
        assert_eq!(serde_json::to_value(moment.snapshot().unwrap().unwrap()).unwrap(), then);
    }
    assert_eq!(tape.at(Ticks(0)).unwrap().unwrap().at, expected[0].0, "before the first is the first");
    let mut played = Vec::new();
    tape.play(Ticks(5_000), Ticks(15_000), |moment| played.push((moment.at, moment.image.clone()))).unwrap();
    assert_eq!(played, expected[3..14]);
}

#[test]
fn a_recording_across_a_jump_back_of_the_counter_is_searched_by_its_own_time() {
    // Below the ticks of the start, and in the middle of a segment.
    let ticks = |number: u64| if number < 13 { 100_000 + number * 1_000 } else { 500 + (number - 13) * 1_000 };
    let time = |number: u64| if number < 13 { ticks(number) } else { 112_001 + (number - 13) * 1_000 };
    let (bytes, index, expected) = recording_at(30, 5, ticks);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(super::FILE), &bytes).unwrap();
    std::fs::write(folder.path().join(super::INDEX), &index).unwrap();
    for mut tape in [Tape::from_bytes(bytes).unwrap(), Tape::open(folder.path()).unwrap()] {
        assert_eq!(tape.span(), Some((Ticks(time(0)), Ticks(time(29)))));
        for number in 0..30 {
            let moment = tape.at(Ticks(time(number))).unwrap().unwrap();
            assert_eq!((moment.at, &moment.image), (expected[number as usize].0, &expected[number as usize].1));
            assert_eq!(moment.snapshot().unwrap().unwrap().at_ns, time(number) - 1_000, "{number}");
        }
        let mut played = Vec::new();
        tape.play(Ticks(time(10)), Ticks(time(20)), |moment| played.push((moment.at, moment.image.clone()))).unwrap();
        assert_eq!(played, expected[10..=20]);
        let mut cut = Vec::new();
        tape.cut(Nanos(5_000), &mut cut).unwrap();
        let mut cut = Tape::from_bytes(cut).unwrap();
        let (first, last) = cut.span().unwrap();
        assert!(
            (5_000..10_000).contains(&last.since(first).0),
            "the last five and their key snapshot: {first:?} {last:?}"
        );
        assert_eq!(cut.at(last).unwrap().unwrap().image, expected[29].1);
    }
}

#[test]
fn key_snapshots_alone_are_those_of_the_whole_and_a_damaged_one_is_left_out() {
    let (bytes, index, expected) = recording(25, 5);
    let keys = |bytes: Vec<u8>, step: usize| {
        let mut played = Vec::new();
        let mut tape = Tape::from_bytes(bytes).unwrap();
        tape.play_keys(step, |moment| played.push((moment.at, moment.image.clone()))).unwrap();
        played
    };
    let every = |step: usize| expected.iter().step_by(5 * step).cloned().collect::<Vec<_>>();
    assert_eq!(keys(bytes.clone(), 1), every(1));
    assert_eq!(keys(bytes.clone(), 2), every(2));
    let second = u64::from_le_bytes(index[28..36].try_into().unwrap()) as usize;
    let mut damaged = bytes;
    damaged[second + 60] ^= 1;
    let mut left = every(1);
    left.remove(1);
    assert_eq!(keys(damaged, 1), left);
}

#[test]
fn what_the_board_shows_of_threads_stages_and_open_slots_is_what_the_recording_shows() {
    let board = board();
    (1..=9).for_each(|step| live(&board, step));
    let mut encoder = Encoder::new(&board);
    let at = Ticks(20_000);
    let mut bytes = FileHead::new(SHAPE, TickRate::NANOS, Ticks(1_000)).bytes();
    bytes.extend(pack(Head { number: 0, kind: Kind::Key, at }, &encoder.key(&board, at)));
    let replayed = Tape::from_bytes(bytes).unwrap().at(at).unwrap().unwrap().snapshot().unwrap().unwrap();
    let direct = board.snapshot(&Clock::standing(at, Ticks(1_000), TickRate::NANOS));
    let value = |snapshot| serde_json::to_value(snapshot).unwrap();
    assert_eq!(value(replayed), value(direct), "few enough slots: all of them are in the snapshot");
}

/// A snapshot has the latencies of a stream once a second, and the number of its answers always.
#[test]
fn rates_at_deadlines_are_those_of_the_answers_whose_latencies_are_recorded() {
    let board = board();
    let (mut encoder, took) = (Encoder::new(&board), Measured::of(3_000_000));
    for number in 0..25 {
        for block in (0..3).map(|stream| board.stream_harvest(stream)) {
            (0..4).for_each(|_| block.latency.record(took.ns()));
            add(&block.wrong_in[took.first_deadline().unwrap()], 1);
            [&block.answered, &block.judged].into_iter().for_each(|word| add(word, 4));
            add(&block.logical_errors, 1);
        }
        let at = Ticks(2_000 + number);
        drop(if number == 0 { encoder.key(&board, at) } else { encoder.delta(&board, at, Detail::Thin) });
        let snapshot = encoder.shadow().board().unwrap().snapshot(&Clock::standing(at, Ticks(1_000), TickRate::NANOS));
        for rate in wrong_or_late(&snapshot.streams).unwrap() {
            let quarters = if rate.deadline_ns < took.ns() { 4 } else { 1 };
            assert_eq!(4 * rate.shots, quarters * rate.of, "snapshot {number}: {rate:?}");
        }
    }
}

#[test]
fn an_alarm_that_is_being_written_stays_as_it_was() {
    let (board, row) = (board(), 3);
    let mut encoder = Encoder::new(&board);
    let seen = |encoder: &Encoder| encoder.shadow().board().unwrap().alarms()[row].sentence.read();
    let write = |number, sentence: &str, meanwhile: &mut dyn FnMut()| {
        board.alarms()[row].lock().write(number, || {
            board.alarms()[row].sentence.write(sentence);
            meanwhile();
        });
    };
    write(1, "first", &mut || ());
    encoder.key(&board, Ticks(1));
    assert_eq!(seen(&encoder), "first");
    write(2, "second", &mut || drop(encoder.delta(&board, Ticks(2), Detail::Full)));
    assert_eq!(seen(&encoder), "first");
    encoder.delta(&board, Ticks(3), Detail::Full);
    assert_eq!(seen(&encoder), "second");
}

#[test]
fn a_recording_that_is_cut_at_any_byte_opens_and_holds_all_that_was_whole() {
    let (bytes, index, expected) = recording(12, 5);
    let folder = tempfile::tempdir().unwrap();
    let mut whole = 0;
    for cut in 0..=bytes.len() {
        let tape = Tape::from_bytes(bytes[..cut].to_vec());
        if cut < FILE_HEAD_BYTES {
            assert!(tape.unwrap_err().to_string().contains("before its first snapshot"));
            continue;
        }
        let mut tape = tape.unwrap();
        if let Some((_, last)) = tape.span() {
            let moment = tape.at(Ticks(u64::MAX)).unwrap().unwrap();
            let place = expected.iter().position(|(at, _)| *at == last).unwrap();
            assert_eq!((moment.at, &moment.image), (last, &expected[place].1), "cut at {cut}");
            assert!(place + 1 >= whole && place <= whole, "cut at {cut}: {place} after {whole}");
            whole = place + 1;
        }
        // The same through a file and an index that is whole although the file is not.
        if cut % 97 == 0 {
            std::fs::write(folder.path().join(super::FILE), &bytes[..cut]).unwrap();
            std::fs::write(folder.path().join(super::INDEX), &index).unwrap();
            assert_eq!(Tape::open(folder.path()).unwrap().span(), tape.span(), "cut at {cut}");
        }
    }
    assert_eq!(whole, expected.len());
}

#[test]
fn a_flipped_byte_loses_only_the_records_that_depend_on_it() {
    let (bytes, index, expected) = recording(15, 5);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(super::INDEX), &index).unwrap();
    for at in (FILE_HEAD_BYTES..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(folder.path().join(super::FILE), &damaged).unwrap();
        let indexed = Tape::open(folder.path()).unwrap();
        for mut tape in [Tape::from_bytes(damaged).unwrap(), indexed] {
            let mut played = 0;
            tape.play(Ticks(0), Ticks(u64::MAX), |moment| {
                assert!(expected.contains(&(moment.at, moment.image.clone())), "byte {at}");
                played += 1;
            })
            .unwrap();
            let readable = (0..15).filter(|step| {
                let wanted = Ticks(2_000 + step * 1_000);
                let moment = tape.at(wanted).unwrap().unwrap();
                let place = expected.iter().position(|(at, _)| *at == moment.at).unwrap();
                assert_eq!(moment.image, expected[place].1, "a moment that is shown is as it was");
                moment.at == wanted
            });
            assert_eq!((readable.count(), played >= 10), (played, true), "byte {at}");
        }
    }
}

#[test]
fn the_index_is_made_anew_where_it_is_missing_or_another_files() {
    let (bytes, index, expected) = recording(30, 5);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(super::FILE), &bytes).unwrap();
    let mut foreign = index.clone();
    foreign[..40].reverse();
    let late: Vec<u8> = entry(Ticks(9), 500).into_iter().chain(entry(Ticks(10), 900)).collect();
    for index in [&index[..], &[], &index[..33], &foreign, &late] {
        std::fs::write(folder.path().join(super::INDEX), index).unwrap();
        let mut tape = Tape::open(folder.path()).unwrap();
        for (at, image) in &expected {
            assert_eq!(&tape.at(*at).unwrap().unwrap().image, image);
        }
    }
}

#[test]
fn a_recording_grows_under_its_reader() {
    let (bytes, _, expected) = recording(12, 5);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(super::FILE);
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let mut tape = Tape::open(folder.path()).unwrap();
    assert!(tape.span().unwrap().1 < expected[11].0);
    std::fs::write(&path, &bytes).unwrap();
    tape.refresh().unwrap();
    assert_eq!(tape.at(expected[11].0).unwrap().unwrap().image, expected[11].1);
    assert_eq!(tape.since_start(tape.tick_at(Nanos(5_000))), Nanos(5_000));
}

#[test]
fn a_recording_of_another_layout_is_refused_in_a_sentence_that_names_both_versions() {
    let ours = FileHead::new(SHAPE, TickRate::NANOS, Ticks(0));
    for head in [FileHead { version: ours.version + 1, ..ours }, FileHead { hash: ours.hash ^ 1, ..ours }] {
        let said = Tape::from_bytes(head.bytes()).unwrap_err().to_string();
        let found = format!("found board layout {} ({:#x})", head.version, head.hash);
        let expected = format!("expected {} ({:#x})", ours.version, ours.hash);
        assert!(said.contains(&found) && said.contains(&expected) && !said.contains('\n'), "{said}");
        assert!(said.contains("manifest.json"), "{said}");
    }
}

#[test]
fn a_recording_of_no_silo_is_refused() {
    let none = FileHead::new(Shape { silos: 0, ..SHAPE }, TickRate::NANOS, Ticks(0));
    assert!(Tape::from_bytes(none.bytes()).unwrap_err().to_string().contains("not the head of a recording"));
}

/// A recording that another program wrote names the same slot a million times.
#[test]
fn a_snapshot_with_more_slots_than_the_board_is_refused_before_their_rows_are_made() {
    let slots = |gaps: &[u64]| {
        let mut payload = Vec::new();
        put_varint(&mut payload, 0);
        put_varint(&mut payload, gaps.len() as u64);
        gaps.iter().for_each(|gap| put_varint(&mut payload, *gap));
        // All columns of two rows: nothing is left over or missing.
        payload.extend([0; 2 * 10]);
        let mut bytes = &payload[..];
        super::slots::decode(&mut Image::blank(SHAPE), 0, Ticks(0), &mut bytes)
    };
    assert_eq!(slots(&[0, 7]), Some(()));
    assert_eq!([slots(&[0, 0]), slots(&[7, 1]), slots(&[3, u64::MAX])], [None; 3]);
    let mut gone = Vec::new();
    [3, 1, 1, 0, 0].into_iter().for_each(|number| put_varint(&mut gone, number));
    assert_eq!(super::slots::decode(&mut Image::blank(SHAPE), 0, Ticks(0), &mut &gone[..]), None);
}

proptest::proptest! {
    #[test]
    fn numbers_come_back_and_bytes_at_random_never_panic(
        value in proptest::prelude::any::<u64>(),
        noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
    ) {
        let mut out = Vec::new();
        put_varint(&mut out, zigzag(value));
        proptest::prop_assert_eq!(take_varint(&mut &out[..]).map(unzigzag), Some(value));
        let mut image = Image::blank(SHAPE);
        let _ = super::delta::apply(&mut image, 0, Ticks(0), &noise);
        let set = super::FastSet::of(&image.board().unwrap());
        let _ = super::burst::samples(&set, Ticks(0), &noise, |_, _| super::burst::Next::Go);
        let mut bytes = FileHead::new(SHAPE, TickRate::NANOS, Ticks(0)).bytes();
        bytes.extend(pack(Head { number: 0, kind: Kind::Key, at: Ticks(5) }, &noise));
        let mut tape = Tape::from_bytes(bytes).unwrap();
        proptest::prop_assert!(tape.at(Ticks(9)).unwrap().is_some());
    }
}
