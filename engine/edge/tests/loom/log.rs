//! Model of the log, over the edges of its lanes.

use loom::thread;
use pinwheel_edge::ring::log;
use pinwheel_edge::units::Ticks;

/// A record is read whole or counted as dropped, and later ones still go through. Red without
/// R1.release, R1.acquire, R2.release, R2.acquire.
#[test]
fn a_record_is_read_or_counted() {
    loom::model(|| {
        let (mut writer, mut reader) = log::channel(1, 1, 7);
        let thread = thread::spawn(move || {
            writer.write(Ticks(1), 10, [1, 2]);
            writer.write(Ticks(2), 20, [3]);
            writer
        });
        let mut read = Vec::new();
        reader.drain(2, |record| read.push(record));
        let _writer = thread.join().unwrap();
        reader.drain(2, |record| read.push(record));
        assert_eq!(read.len() as u64 + reader.dropped(), 2);
        assert_eq!((read[0].code, read[0].thread, read[0].numbers()), (10, 7, &[1, 2][..]));
    });
}
