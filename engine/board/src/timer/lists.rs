//! The wheel's lists of waiting timers.
//!
//! Owns the heads of all lists, the lines they are made of, and the occupancy of each tier. Single owner. Bounds:
//! [`Lists::new`] reserves the lines that any distribution of its timers needs; push, cut and remove touch two lines
//! at most. Never allocates after construction.
//!
//! ```text
//!   head ─▶ line: up to 10 timers ─▶ line: 10 timers ─▶ … ─▶ nothing
//! ```
//!
//! Only the line at the head may be partly filled; it is never empty. A hole is filled with the head's last timer.
//! A head says which line and how much of it is filled, so that a push writes to a line that it need not read.

use super::occupancy::Occupancy;
use crate::units::Ticks;

/// log2 of the slots of a group, and of the groups of a block.
pub(super) const GROUP_BITS: u32 = 8;
/// log2 of the slots of a block.
pub(super) const BLOCK_BITS: u32 = 2 * GROUP_BITS;
/// Slots of a group, and groups of a block.
pub(super) const GROUP: usize = 1 << GROUP_BITS;
pub(super) const BLOCKS: usize = 65_536;
/// First list of the groups; those before are the slots'.
const GROUPS_FROM: usize = GROUP;
/// First list of the blocks.
const BLOCKS_FROM: usize = 2 * GROUP;
const LISTS: usize = BLOCKS_FROM + BLOCKS;
/// Timers in a line: what 256 bytes hold beside the line's own words.
pub(super) const LINE_TIMERS: usize = 10;

#[inline]
pub(super) fn slot_list(slot: u64) -> usize {
    slot as usize % GROUP
}

#[inline]
pub(super) fn group_list(group: u64) -> usize {
    GROUPS_FROM + group as usize % GROUP
}

/// The list of a block.
#[inline]
pub(super) fn block_list(block: u64) -> usize {
    BLOCKS_FROM + block as usize % BLOCKS
}

/// Index of no record.
const NOBODY: u32 = u32::MAX;

/// A timer as it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timer {
    pub deadline: Ticks,
    pub payload: u64,
    pub index: u32,
    pub generation: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    timers: [Timer; LINE_TIMERS],
    list: u32,
    next: Position,
    reserved: u64,
}

const _: () = assert!(size_of::<Line>() == 256);

/// Position of a timer: line × 16 + place in it. A head is the first free position of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position(u32);

impl Position {
    /// Position of a record that is in no list, and head of an empty list. Its place counts as
    /// full.
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

/// Timers at the head of a list, all in one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    line: u32,
    from: u32,
    to: u32,
}

impl Head {
    /// Number of timers.
    pub(super) fn len(self) -> u32 {
        self.to - self.from
    }

    pub(super) fn positions(self) -> impl Iterator<Item = Position> {
        (self.from..self.to).map(move |place| Position(self.line << 4 | place))
    }

    /// Each of them as a head to cut, with its position: the last one first.
    pub(super) fn one_by_one(self) -> impl Iterator<Item = (Head, Position)> {
        let one = move |from: u32| (Head { from, to: from + 1, ..self }, Position(self.line << 4 | from));
        (self.from..self.to).rev().map(one)
    }
}

#[derive(Debug)]
pub(super) struct Lists {
    heads: Box<[Position; LISTS]>,
    lines: Box<[Line]>,
    free: Position,
    slots: Occupancy<{ GROUP / 64 }>,
    groups: Occupancy<{ GROUP / 64 }>,
    blocks: Occupancy<{ BLOCKS / 64 }>,
}

impl Lists {
    /// Room for `timers` in any distribution: each list wastes less than a line, and a line's
    /// timers are stored twice while they move.
    pub(super) fn new(timers: usize) -> Lists {
        let count = timers.min(LISTS) + timers / LINE_TIMERS + LINE_TIMERS + 2;
        let line = Line { timers: [Timer::default(); LINE_TIMERS], list: 0, next: Position::NOWHERE, reserved: 0 };
        let mut lines = vec![line; count].into_boxed_slice();
        for (line, next) in lines.iter_mut().zip(1..count) {
            line.next = Position::start_of(next);
        }
        // A boxed array of this size would be built on the stack first.
        let heads = vec![Position::NOWHERE; LISTS].into_boxed_slice();
        let Ok(heads) = heads.try_into() else { unreachable!("made with that length") };
        Lists {
            heads,
            lines,
            free: Position::start_of(0),
            slots: Occupancy::new(),
            groups: Occupancy::new(),
            blocks: Occupancy::new(),
        }
    }

    /// Puts `timer` into `list`.
    #[inline]
    pub(super) fn push(&mut self, list: usize, timer: Timer) -> Position {
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
            self.mark(list);
        }
        start
    }

    /// At most `most` timers at the head of `list`; `None` if it is empty.
    #[inline]
    pub(super) fn head(&self, list: usize, most: u32) -> Option<Head> {
        let head = self.heads[list];
        let (line, to) = (head.line() as u32, head.place() as u32);
        (head != Position::NOWHERE).then(|| Head { line, from: to.saturating_sub(most), to })
    }

    /// Removes these from `list`. They can be read in place until the next push.
    #[inline]
    pub(super) fn cut(&mut self, list: usize, head: Head) {
        if head.from == 0 {
            self.close(list, head.line as usize);
        } else {
            self.heads[list] = Position(head.line << 4 | head.from);
        }
    }

    /// Removes the timer at `position`; returns the record of the timer moved into its place, if
    /// any.
    #[inline]
    pub(super) fn remove(&mut self, position: Position) -> Option<u32> {
        let list = self.lines[position.line()].list as usize;
        let last = Position(self.heads[list].0 - 1);
        let mover = self.lines[last.line()].timers[last.place()];
        if last.place() == 0 {
            self.close(list, last.line());
        } else {
            self.heads[list] = last;
        }
        if position == last {
            self.wipe(position);
            return None;
        }
        self.lines[position.line()].timers[position.place()] = mover;
        Some(mover.index)
    }

    /// Releases the emptied line at the head of `list`; the next line is full.
    fn close(&mut self, list: usize, line: usize) {
        let next = std::mem::replace(&mut self.lines[line].next, self.free);
        self.free = Position::start_of(line);
        self.heads[list] = next;
        if next == Position::NOWHERE {
            self.unmark(list);
        }
    }

    /// Wipes the place of an expired timer, so that its handle no longer matches.
    #[inline]
    pub(super) fn wipe(&mut self, position: Position) {
        self.lines[position.line()].timers[position.place()].index = NOBODY;
    }

    /// The timer at `position`, or the last timer there, or one of [`NOBODY`] if that timer has
    /// expired.
    #[inline]
    pub(super) fn at(&self, position: Position) -> &Timer {
        &self.lines[position.line()].timers[position.place()]
    }

    fn mark(&mut self, list: usize) {
        match list {
            BLOCKS_FROM.. => self.blocks.set(list - BLOCKS_FROM),
            GROUPS_FROM.. => self.groups.set(list - GROUPS_FROM),
            _ => self.slots.set(list),
        }
    }

    fn unmark(&mut self, list: usize) {
        match list {
            BLOCKS_FROM.. => self.blocks.clear(list - BLOCKS_FROM),
            GROUPS_FROM.. => self.groups.clear(list - GROUPS_FROM),
            _ => self.slots.clear(list),
        }
    }

    /// The first slot from `cursor` on that holds a timer or begins an occupied group or block; `u64::MAX` if none.
    pub(super) fn next_occupied(&self, cursor: u64) -> u64 {
        let (group, block) = (cursor >> GROUP_BITS, cursor >> BLOCK_BITS);
        let slot = self.slots.distance(cursor as usize).map_or(u64::MAX, |d| cursor + d as u64);
        let group = self.groups.distance(group as usize).map_or(u64::MAX, |d| (group + d as u64) << GROUP_BITS);
        let block = self.blocks.distance(block as usize).map_or(u64::MAX, |d| (block + d as u64) << BLOCK_BITS);
        slot.min(group).min(block)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{LINE_TIMERS, LISTS, Lists, Timer};

    fn timer(index: u32) -> Timer {
        Timer { index, ..Timer::default() }
    }

    fn take(lists: &mut Lists, list: usize, most: u32) -> Vec<u32> {
        let head = lists.head(list, most).unwrap();
        lists.cut(list, head);
        head.positions().map(|position| lists.at(position).index).collect()
    }

    fn drain(lists: &mut Lists, list: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while lists.head(list, 1).is_some() {
            found.extend(take(lists, list, LINE_TIMERS as u32));
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn a_hole_in_a_full_line_is_filled_from_the_head() {
        let mut lists = Lists::new(40);
        let positions: Vec<_> = (0..30).map(|index| lists.push(5, timer(index))).collect();
        assert_eq!(lists.remove(positions[3]), Some(29));
        assert_eq!(lists.at(positions[3]).index, 29);
        assert_eq!(lists.remove(positions[28]), None, "the head's last timer leaves no hole");
        assert_eq!(drain(&mut lists, 5), (0..30).filter(|t| *t != 3 && *t != 28).collect::<Vec<_>>());
        assert_eq!(lists.next_occupied(0), u64::MAX);
    }

    #[test]
    fn lines_suffice_for_one_list_and_for_one_timer_in_each() {
        for timers in [1, 9, 10, 11, 1_000, 70_000] {
            let mut lists = Lists::new(timers);
            for index in 0..timers as u32 {
                lists.push(LISTS - 1, timer(index));
            }
            assert_eq!(drain(&mut lists, LISTS - 1).len(), timers);
            for index in 0..timers {
                lists.push(index % LISTS, timer(index as u32));
            }
            let found: usize = (0..timers.min(LISTS)).map(|list| drain(&mut lists, list).len()).sum();
            assert_eq!(found, timers);
        }
    }

    #[test]
    fn fewer_can_be_taken_than_stand_there() {
        let mut lists = Lists::new(10);
        for index in 0..10 {
            lists.push(1, timer(index));
        }
        assert_eq!(take(&mut lists, 1, 4), [6, 7, 8, 9]);
        assert!(lists.head(2, 4).is_none());
        assert_eq!(drain(&mut lists, 1), [0, 1, 2, 3, 4, 5]);
    }
}
