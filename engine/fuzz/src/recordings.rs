//! Checks of recordings for inputs that are any bytes: whole files, the frames of a file whose checksums are right, and
//! an index beside a file. Each panics if something does not hold: what cannot be read is left out.

use super::mapped::directory;
use super::texts::{Bytes, is_said};
use pinwheel_engine::board::{Board, Place, Shape, layout, set};
use pinwheel_engine::record::tape::{self, Detail, Encoder, Tape};
use pinwheel_engine::units::Ticks;
use std::path::PathBuf;

const SHAPE: Shape = Shape { threads: 1, silos: 1, slots: 4, workers: 1, decoders: 1, streams: 1 };
/// Version of the encoding of payloads, which is part of a recording's hash.
const FORMAT: u64 = 2;

/// The checksum of a frame: CRC-32 as in PNG.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ (sum & 1).wrapping_neg() & 0xEDB8_8320)
    })
}

/// The head of a file for boards of [`SHAPE`].
fn file_head() -> Vec<u8> {
    let mut head = b"PWTAPE01".to_vec();
    head.extend(layout::VERSION.to_le_bytes());
    head.extend((layout::hash() ^ FORMAT).to_le_bytes());
    SHAPE.words().iter().for_each(|size| head.extend(&size.to_le_bytes()[..4]));
    head.extend((1u64 << 32).to_le_bytes());
    head.extend(1_000u64.to_le_bytes());
    head.extend(checksum(&head).to_le_bytes());
    head.extend([0; 4]);
    head
}

/// What LZ4 makes of bytes in which it finds nothing twice.
fn literals(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![(bytes.len().min(15) as u8) << 4];
    if let Some(mut more) = bytes.len().checked_sub(15) {
        while more >= 255 {
            packed.push(255);
            more -= 255;
        }
        packed.push(more as u8);
    }
    packed.extend(bytes);
    packed
}

/// A frame of `kind` (1 key, 2 difference, 3 burst), packed by LZ4 (0) or Deflate (1).
fn frame(number: u32, kind: u8, packing: u8, at: u64, raw_bytes: u32, packed: &[u8]) -> Vec<u8> {
    let mut frame = b"PWFR".to_vec();
    frame.extend(number.to_le_bytes());
    frame.extend([kind, packing, 0, 0]);
    frame.extend(at.to_le_bytes());
    frame.extend(raw_bytes.to_le_bytes());
    frame.extend((packed.len() as u32).to_le_bytes());
    let sum = checksum(&[&frame[..], packed].concat());
    frame.extend(sum.to_le_bytes());
    frame.extend(packed);
    frame
}

/// Reads each moment of a recording in both ways.
fn read(tape: &mut Tape, keys: usize) {
    for at in tape.keys().into_iter().take(keys) {
        if let Ok(Some(moment)) = tape.at(at) {
            let _ = moment.snapshot();
        }
    }
    if let Some((from, to)) = tape.span() {
        let mut moments = 0;
        let _ = tape.play(from, to, |_| moments += 1);
        let _ = tape.play_fast(from, to, |_, _| moments += 1);
    }
}

/// A recording: each of its moments is a snapshot, or is refused.
pub fn any_recording(bytes: &[u8]) {
    match Tape::from_bytes(bytes.to_vec()) {
        Ok(mut tape) => read(&mut tape, 4),
        Err(said) => is_said(&said.to_string()),
    }
}

/// Frames of any content with the right checksums, as a program makes them that means harm: kind, packing, time,
/// lengths, payload, and the next. They follow a sound key snapshot if the first byte is odd.
pub fn any_frames(bytes: &[u8]) {
    thread_local! {
        static SOUND: [Vec<u8>; 2] = [sample(0), sample(1)];
    }
    let (mut bytes, mut at) = (Bytes(bytes), 2_000u64);
    let first = bytes.byte() & 1;
    let mut file = SOUND.with(|sound| sound[usize::from(first)].clone());
    let mut number = u32::from(first);
    while !bytes.is_empty() && number < 8 {
        let (kind, how) = (bytes.byte() % 4, bytes.byte());
        at = at.wrapping_add(bytes.word());
        let length = bytes.below(1 << 16);
        let payload = bytes.take(length);
        let named = if how & 4 == 0 { number } else { u32::from(how) };
        file.extend(match how % 4 {
            // What the payload says reaches the reader as it is.
            0 | 1 => frame(named, kind, 0, at, payload.len() as u32, &literals(payload)),
            2 => frame(named, kind, 0, at, bytes.word() as u32, payload),
            _ => frame(named, kind, 1, at, bytes.word() as u32, payload),
        });
        number += 1;
    }
    let mut tape = Tape::from_bytes(file).expect("its head is right");
    read(&mut tape, 1);
}

/// A recording of so many snapshots, every other one a key snapshot.
pub(super) fn sample(snapshots: u32) -> Vec<u8> {
    let board = Board::create(SHAPE, Place::Private).expect("there is memory");
    set(&board.header().nanos_per_tick_q32, 1 << 32);
    set(&board.header().start_ticks, 1_000);
    board.header().profile.write("lab");
    let mut encoder = Encoder::new(&board);
    let mut file = file_head();
    for number in 0..snapshots {
        let at = 2_000 + u64::from(number) * 100;
        set(&board.thread(0).heartbeat, at);
        set(&board.slots(0)[0].sequence, at);
        let (kind, raw) = match number % 2 {
            0 => (1, encoder.key(&board, Ticks(at))),
            _ => (2, encoder.delta(&board, Ticks(at), Detail::Full)),
        };
        file.extend(frame(number, kind, 0, at, raw.len() as u32, &literals(&raw)));
    }
    file
}

/// A directory of a run with three key snapshots in its recording.
fn run_directory() -> PathBuf {
    let directory = directory();
    std::fs::write(directory.join(tape::FILE), sample(6)).expect("there is room");
    directory
}

/// An index of any content with the right checksums: it hides snapshots at worst, and invents none.
pub fn any_index(bytes: &[u8]) {
    thread_local! {
        static RUN: PathBuf = run_directory();
    }
    let mut bytes = Bytes(bytes);
    let mut index = Vec::new();
    while !bytes.is_empty() && index.len() < 20 * 16 {
        let mut entry = [bytes.word().to_le_bytes(), bytes.word().to_le_bytes()].concat();
        let sum = checksum(&entry) ^ u32::from(bytes.byte() == 1);
        entry.extend(sum.to_le_bytes());
        index.extend(entry);
    }
    RUN.with(|run| {
        std::fs::write(run.join(tape::INDEX), &index).expect("there is room");
        let mut tape = Tape::open(run).expect("its head is right");
        read(&mut tape, 3);
    });
}
