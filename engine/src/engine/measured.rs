//! The file of a run's measurements, as CUDA-Q's clients sent them: a record for each volume, in the
//! order of their completion.
//!
//! A cold thread writes it from copies that the wire hands over. Bounds: [`BYTES_MAX`]; what comes
//! then, or while the disk does not keep up or refuses, is left out, and the wire counts it. Records
//! are whole, so the file can be decoded again while it grows.

use super::cold::{self, ColdThreads, Stop};
use crate::pipe::samples::{SampleReader, SampleRoom, SampleWriter, samples};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The file's name in the run's directory.
const FILE: &str = "measurements.b8";
/// Most bytes of the file.
const BYTES_MAX: u64 = 1 << 30;
/// Pause while there is nothing to write.
const NOTHING: Duration = Duration::from_millis(20);
/// Words of a block of copies.
const BLOCK_WORDS: usize = 1 << 14;

/// Copies of volumes of `bits` measurements: the wire's end and the thread's end.
pub(super) fn copies(bits: u32) -> (SampleWriter, SampleReader) {
    let words = bits.div_ceil(64) as usize;
    samples(SampleRoom { blocks: 8, records: (BLOCK_WORDS / words.max(1)).clamp(4, 256), words })
}

/// Starts the thread, which ends once it is stopped and has written all copies. The receiver yields
/// when it has.
pub(super) fn spawn(
    threads: &ColdThreads,
    directory: &Path,
    bits: u32,
    mut copies: SampleReader,
    stop: Stop,
) -> io::Result<Receiver<()>> {
    let (sender, ended) = channel();
    let path = directory.join(FILE);
    threads.spawn("measured", move || {
        // Without a file, copies stay where they are, and the wire counts what finds no room.
        if let Ok(file) = File::options().write(true).create_new(true).open(path) {
            let _ = write(BufWriter::new(file), bits, &mut copies, &stop);
        }
        let _ = sender.send(());
    })?;
    Ok(ended)
}

fn write(mut file: BufWriter<File>, bits: u32, copies: &mut SampleReader, stop: &Stop) -> io::Result<()> {
    let bytes = bits.div_ceil(8) as usize;
    let (mut written, mut record) = (0, Vec::with_capacity(bytes + 8));
    loop {
        // Read first: copies that were handed over before it was raised are then taken below.
        let is_last = stop.is_stopped();
        let mut result = Ok(());
        while result.is_ok()
            && written < BYTES_MAX
            && copies.read(|words| {
                record.clear();
                words.iter().for_each(|word| record.extend_from_slice(&word.to_le_bytes()));
                written += bytes as u64;
                if result.is_ok() {
                    result = file.write_all(&record[..bytes]);
                }
            })
        {}
        result.and_then(|()| file.flush())?;
        if is_last || written >= BYTES_MAX {
            return Ok(());
        }
        cold::sleep(NOTHING);
    }
}
