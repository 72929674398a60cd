//! The wheel's lists: which timers wait in which slot.
//!
//! Owns the heads of both levels' lists, the lines they are made of, and the occupancy of both levels. Single owner.
//! Bounds: [`Lists::new`] reserves the lines that any distribution of its timers needs; push, take and remove touch
//! two lines at most. Never allocates after construction.
//!
//! ```text
//!   head ─▶ line: up to 13 timers ─▶ line: 13 timers ─▶ … ─▶ nothing
//! ```
//!
//! Only the line at the head may be partly filled; it is never empty. A hole is filled with the head's last timer.
//! A head says which line and how much of it is filled, so that arming a timer writes to a line that it need not read:
//! with many timers that line is in no cache, and a read would be waited for.

use super::occupancy::{LEVEL, Occupancy};

/// Lists of both levels: the inner level's first.
pub(super) const LISTS: usize = 2 * LEVEL;
/// Timers in a line: what 64 bytes hold beside the line's own words.
pub(super) const LINE_TIMERS: usize = 13;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    timers: [u32; LINE_TIMERS],
    list: u32,
    next: Position,
    reserved: u32,
}

const _: () = assert!(size_of::<Line>() == 64);

/// Where a timer stands: line × 16 + place in it. A head is the first position that its line has free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position(u32);

impl Position {
    /// Of a record that waits nowhere, and the head of an empty list. Its place counts as full.
    pub(super) const NOWHERE: Position = Position(u32::MAX);

    fn line(self) -> usize {
        (self.0 >> 4) as usize
    }

    fn place(self) -> usize {
        (self.0 & 15) as usize
    }

    fn start_of(line: usize) -> Position {
        Position((line as u32) << 4)
    }
}

/// Timers taken off a list together.
pub(super) struct Taken {
    timers: [u32; LINE_TIMERS],
    from: usize,
    to: usize,
}

impl Taken {
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.timers[self.from..self.to]
    }
}

/// All lists.
#[derive(Debug)]
pub(super) struct Lists {
    heads: Box<[Position; LISTS]>,
    lines: Box<[Line]>,
    free: Position,
    occupied: [Occupancy; 2],
}

impl Lists {
    /// Room for `timers`, however they are spread: each list wastes less than a line.
    pub(super) fn new(timers: usize) -> Lists {
        let count = timers.min(LISTS) + timers / LINE_TIMERS + 1;
        let line = Line { timers: [0; LINE_TIMERS], list: 0, next: Position::NOWHERE, reserved: 0 };
        let mut lines = vec![line; count].into_boxed_slice();
        for (line, next) in lines.iter_mut().zip(1..count) {
            line.next = Position::start_of(next);
        }
        // A boxed array of this size would be built on the stack first.
        let heads = vec![Position::NOWHERE; LISTS].into_boxed_slice();
        let Ok(heads) = heads.try_into() else { unreachable!("made with that length") };
        Lists { heads, lines, free: Position::start_of(0), occupied: [Occupancy::new(), Occupancy::new()] }
    }

    /// Puts `timer` into `list`.
    #[inline]
    pub(super) fn push(&mut self, list: usize, timer: u32) -> Position {
        let list = list % LISTS;
        let mut at = self.heads[list];
        if at.place() >= LINE_TIMERS {
            at = self.open(list, at);
        }
        self.lines[at.line()].timers[at.place()] = timer;
        self.heads[list] = Position(at.0 + 1);
        at
    }

    fn open(&mut self, list: usize, next: Position) -> Position {
        let start = self.free;
        // In bounds: `new` reserved a line for every list that can be occupied and for every full line.
        let line = &mut self.lines[start.line()];
        self.free = line.next;
        (line.list, line.next) = (list as u32, next);
        if next == Position::NOWHERE {
            self.occupied[list / LEVEL].set(list);
        }
        start
    }

    /// Takes at most `most` timers off the head of `list`, all from one line.
    #[inline]
    pub(super) fn take(&mut self, list: usize, most: usize) -> Taken {
        let list = list % LISTS;
        let head = self.heads[list];
        if head == Position::NOWHERE || most == 0 {
            return Taken { timers: [0; LINE_TIMERS], from: 0, to: 0 };
        }
        let to = head.place().min(LINE_TIMERS);
        let (timers, from) = (self.lines[head.line()].timers, to.saturating_sub(most));
        if from == 0 {
            self.close(list, head.line());
        } else {
            self.heads[list] = Position(head.0 - (to - from) as u32);
        }
        Taken { timers, from, to }
    }

    /// Takes the timer at `position` out; answers with the timer that stands there now, if another moved in.
    #[inline]
    pub(super) fn remove(&mut self, position: Position) -> Option<u32> {
        let list = self.lines[position.line()].list as usize % LISTS;
        let last = Position(self.heads[list].0 - 1);
        let mover = self.lines[last.line()].timers[last.place()];
        if last.place() == 0 {
            self.close(list, last.line());
        } else {
            self.heads[list] = last;
        }
        if position == last {
            return None;
        }
        self.lines[position.line()].timers[position.place()] = mover;
        Some(mover)
    }

    /// Gives the emptied line at the head of `list` back; the next one is full.
    fn close(&mut self, list: usize, line: usize) {
        let next = std::mem::replace(&mut self.lines[line].next, self.free);
        self.free = Position::start_of(line);
        self.heads[list] = next;
        if next == Position::NOWHERE {
            self.occupied[list / LEVEL].clear(list);
        }
    }

    /// Occupancy of the inner level.
    pub(super) fn inner(&self) -> &Occupancy {
        &self.occupied[0]
    }

    /// Occupancy of the outer level.
    pub(super) fn outer(&self) -> &Occupancy {
        &self.occupied[1]
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_TIMERS, LISTS, Lists};

    fn drain(lists: &mut Lists, list: usize) -> Vec<u32> {
        let mut found = Vec::new();
        loop {
            let taken = lists.take(list, LINE_TIMERS);
            if taken.as_slice().is_empty() {
                break;
            }
            found.extend_from_slice(taken.as_slice());
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn a_hole_in_a_full_line_is_filled_from_the_head() {
        let mut lists = Lists::new(40);
        let positions: Vec<_> = (0..30).map(|timer| lists.push(5, timer)).collect();
        assert_eq!(lists.remove(positions[3]), Some(29));
        assert_eq!(lists.remove(positions[28]), None, "the head's last timer leaves no hole");
        assert_eq!(drain(&mut lists, 5), (0..30).filter(|t| *t != 3 && *t != 28).collect::<Vec<_>>());
        assert_eq!(lists.inner().distance(0), None);
    }

    #[test]
    fn lines_suffice_for_one_list_and_for_one_timer_in_each() {
        for timers in [1, 12, 13, 14, 1_000] {
            let mut lists = Lists::new(timers);
            for timer in 0..timers as u32 {
                lists.push(LISTS - 1, timer);
            }
            assert_eq!(drain(&mut lists, LISTS - 1).len(), timers);
            for timer in 0..timers {
                lists.push(timer * 7 % LISTS, timer as u32);
            }
            for timer in 0..timers {
                assert_eq!(drain(&mut lists, timer * 7 % LISTS), [timer as u32]);
            }
        }
    }

    #[test]
    fn fewer_can_be_taken_than_stand_there() {
        let mut lists = Lists::new(10);
        for timer in 0..10 {
            lists.push(1, timer);
        }
        assert_eq!(lists.take(1, 4).as_slice(), [6, 7, 8, 9]);
        assert_eq!(lists.take(1, 0).as_slice(), [0u32; 0]);
        assert_eq!(drain(&mut lists, 1), [0, 1, 2, 3, 4, 5]);
    }
}
