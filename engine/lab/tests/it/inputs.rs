//! The checks of the fuzz targets on inputs that are drawn here: well-formed ones with a few changes. The fuzz targets
//! (`engine/fuzz`) go further, some with the address sanitizer; what they found is among the seeds.

#[path = "../../../fuzz/src/hosts.rs"]
mod hosts;
#[path = "../../../fuzz/src/mapped.rs"]
mod mapped;
#[path = "../../../fuzz/src/recordings.rs"]
mod recordings;
#[path = "../../../fuzz/src/texts.rs"]
mod texts;

use pinwheel_engine::board::{Board, Place, Shape};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::path::Path;

/// Seeds of a target: well-formed inputs, and what was found.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let seeds: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty());
    seeds
}

fn below(random: &mut impl Rng, end: usize) -> usize {
    (random.next_u64() % end.max(1) as u64) as usize
}

/// One to four changes: a bit, a byte, a part that is missing, doubled, from another seed, or cut off at the end.
fn changed(seeds: &[Vec<u8>], random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len());
        let until = (at + 1 + below(random, 16)).min(bytes.len());
        match below(random, 7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(random, 8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'-', b'\n'][below(random, 8)],
            2 => drop(bytes.drain(at.min(until)..until)),
            3 => {
                let part = bytes[at.min(until)..until].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len());
                bytes.splice(at..at, other[from..].iter().copied().take(32).collect::<Vec<_>>());
            }
            5 => bytes.truncate(at),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
    bytes
}

/// `check` of all seeds, and of `count` changed ones.
fn drawn(seeds: &[Vec<u8>], count: usize, check: fn(&[u8])) {
    seeds.iter().for_each(|seed| check(seed));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for _ in 0..count {
        let bytes = changed(seeds, &mut random);
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            eprintln!("{}", bytes.escape_ascii());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn text_and_packets_of_any_content_are_refused_in_words_or_mean_what_they_say() {
    drawn(&seeds("input_dem"), 5_000, texts::any_dem);
    drawn(&seeds("input_shot_file"), 5_000, texts::any_shot_file);
    drawn(&seeds("input_map"), 5_000, texts::any_map);
    drawn(&seeds("input_profile"), 1_000, texts::any_profile);
    drawn(&seeds("input_graph"), 5_000, texts::any_graph);
    drawn(&seeds("input_datagrams"), 10_000, texts::any_datagrams);
    drawn(&seeds("input_calls"), 10_000, texts::any_calls);
    drawn(&seeds("input_hosts"), 5_000, hosts::any_messages);
    drawn(&seeds("input_line"), 10_000, texts::any_line);
    drawn(&seeds("input_reply"), 10_000, texts::any_reply);
}

#[test]
fn recordings_of_any_content_are_read_or_refused() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tui/tests/golden/recording.pwt");
    drawn(&[std::fs::read(golden).unwrap()], 100, recordings::any_recording);
    drawn(&seeds("input_recording"), 100, recordings::any_frames);
    drawn(&seeds("input_index"), 100, recordings::any_index);
}

#[test]
fn boards_of_any_content_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { threads: 2, silos: 1, slots: 8, workers: 2, decoders: 1, streams: 2 };
    let board = Board::create(shape, Place::Shared(folder.path().into())).unwrap();
    board.publish();
    let bytes = std::fs::read(board.path().unwrap()).unwrap();
    drawn(&[bytes], 1_000, mapped::any_board_file);
    drawn(&seeds("input_board"), 1_000, mapped::any_board);
}

#[test]
fn a_client_that_stores_any_words_into_its_region_is_believed_in_nothing_but_sound_shots() {
    drawn(&seeds("input_region"), 5_000, mapped::any_region);
}
