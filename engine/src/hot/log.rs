//! A hot thread's end of the log.
//!
//! Owns the writer and the count of records that found no room. Runs on its thread, when something changes. Bounds: the
//! ring's room; a record without room is dropped and counted. Never waits, never formats.

use crate::board::{self, Board};
use crate::fault::EventCode;
use crate::units::Ticks;
use pinwheel_edge::ring::log::Writer;
use std::cell::RefCell;
use std::sync::Arc;

/// One thread's events. In a cell, because a frame is shared by whoever in a role's call has something to say.
pub(super) struct ThreadLog(RefCell<Writer>, Arc<Board>, usize);

impl ThreadLog {
    /// Of hot thread `thread`.
    pub(super) fn new(writer: Writer, board: Arc<Board>, thread: usize) -> ThreadLog {
        ThreadLog(RefCell::new(writer), board, thread)
    }

    /// Appends a record. Cold: events are rare.
    #[cold]
    pub(super) fn write<const N: usize>(&self, at: Ticks, event: EventCode, numbers: [u64; N]) {
        // Borrowed only here, where nothing calls back.
        if let Ok(mut writer) = self.0.try_borrow_mut() {
            writer.write(at, event as u16, numbers);
            board::set(&self.1.thread(self.2).events_dropped, writer.dropped());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::ThreadLog;
    use crate::board::{Board, Place, Shape};
    use crate::clock::Clock;
    use crate::fault::EventCode;
    use crate::hot::{Frame, Scratch};
    use crate::units::Ticks;
    use pinwheel_edge::ring::log;
    use pinwheel_edge::spin::Phase;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn an_event_without_room_is_counted_on_the_board_of_its_thread() {
        let shape = Shape { threads: 2, silos: 1, slots: 1, workers: 1, decoders: 1, streams: 1 };
        let board = Arc::new(Board::create(shape, Place::Private).unwrap());
        let clock = Clock::virtual_time(Arc::new(AtomicU64::new(42)));
        let (writer, mut reader) = log::channel(1, 4, 1);
        let log = ThreadLog::new(writer, Arc::clone(&board), 1);
        let mut scratch = Scratch::new();
        let frame = Frame::new(&clock, Ticks(40), Phase::Live, &mut scratch).logged(Some(&log));
        for number in 0..7 {
            frame.log(EventCode::DrainFinished, [number]);
        }
        let shown = board.snapshot(&clock);
        assert_eq!((shown.threads[0].events_dropped, shown.threads[1].events_dropped, shown.log.dropped), (0, 3, 3));
        let mut read = Vec::new();
        reader.drain(64, |record| read.push((record.ticks, record.code, record.thread, record.numbers()[0])));
        let expected = (0..4).map(|number| (Ticks(42), EventCode::DrainFinished as u16, 1, number));
        assert_eq!(read, expected.collect::<Vec<_>>());
    }
}
