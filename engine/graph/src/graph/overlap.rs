//! The last writer and the last readers of each byte: dependencies by overlap.
//!
//! Owns half a cache line for each granule of the registered tensors: its last writer, its last two
//! readers, and a chain of further pieces. Only the submitter uses it. Bounded by the granules and
//! by [`Config::map_entries`](super::Config::map_entries) pieces. A submission that may need more
//! pieces than are free is refused before it changes anything. Entries of retired tasks are dropped
//! when they are found, and by a sweep that visits every granule well before task numbers wrap.
//!
//! # Why
//! The writers of a granule do not overlap: a write cuts the pieces that it covers, so a reader
//! depends on exactly the writers of its bytes. Readers are not cut: a later writer may get an edge
//! to a reader that an earlier write has already waited for, which changes no order. A region
//! within one granule needs one cache line.

use super::predecessors::{Predecessors, WindowState};
use super::region::{Access, Mode, Placed, TensorLayout};

const NIL: u32 = u32::MAX;
/// Granules swept for each 64 submissions: all 2²⁴ within 2²⁹ tasks.
const SWEEP: usize = 2;
/// Granules swept by a submission that finds no room.
const SWEEP_FOR_ROOM: usize = 4_096;

/// Why nothing was inferred.
pub(super) enum InferError<'a> {
    /// The region leaves its tensor.
    Outside(&'a Access),
    /// Too few pieces are free.
    Full,
}

/// Bytes of a granule that one task touched: the task in the low half, above it the first byte and
/// the end.
#[derive(Clone, Copy, Debug)]
struct Span(u64);

impl Span {
    const NONE: Span = Span(0);

    #[inline(always)]
    fn new(task: u32, first: u16, end: u16) -> Span {
        Span(u64::from(task) | u64::from(first) << 32 | u64::from(end) << 48)
    }

    #[inline(always)]
    fn task(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    fn first(self) -> u16 {
        (self.0 >> 32) as u16
    }

    #[inline(always)]
    fn end(self) -> u16 {
        (self.0 >> 48) as u16
    }

    #[inline(always)]
    fn is_none(self) -> bool {
        self.first() == self.end()
    }

    #[inline(always)]
    fn meets(self, other: Span) -> bool {
        (self.first() < other.end()) & (other.first() < self.end())
    }

    #[inline(always)]
    fn is_within(self, other: Span) -> bool {
        (self.first() >= other.first()) & (self.end() <= other.end())
    }

    /// The parts before and after `cut`.
    fn rests(self, cut: Span) -> [Span; 2] {
        let before = Span::new(self.task(), self.first(), cut.first().min(self.end()).max(self.first()));
        let after = Span::new(self.task(), cut.end().max(self.first()).min(self.end()), self.end());
        [before, after]
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Granule {
    writer: Span,
    readers: [Span; 2],
    more: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
}

#[derive(Clone, Copy)]
struct Piece {
    span: Span,
    role: Role,
    next: u32,
}

/// The map.
pub(super) struct Overlap {
    tensors: Box<[TensorLayout]>,
    granules: Box<[Granule]>,
    pieces: Box<[Piece]>,
    free: u32,
    free_count: u32,
    swept: usize,
}

impl Overlap {
    /// An empty map of `tensors`, which together have so many granules.
    pub(super) fn new(tensors: Box<[TensorLayout]>, granules: usize, pieces: u32) -> Overlap {
        let granule = Granule { writer: Span::NONE, readers: [Span::NONE; 2], more: NIL };
        let piece = |index| Piece {
            span: Span::NONE,
            role: Role::Reader,
            next: if index + 1 < pieces { index + 1 } else { NIL },
        };
        Overlap {
            tensors,
            granules: vec![granule; granules].into_boxed_slice(),
            pieces: (0..pieces).map(piece).collect(),
            free: 0,
            free_count: pieces,
            swept: 0,
        }
    }

    /// Pieces in use.
    pub(super) fn in_use(&self) -> u32 {
        self.pieces.len() as u32 - self.free_count
    }

    /// Most pieces that a task could ever get.
    pub(super) fn pieces(&self) -> u32 {
        self.pieces.len() as u32
    }

    /// Refused submissions after which every granule was swept.
    pub(super) fn attempts_of_a_sweep(&self) -> usize {
        self.granules.len().div_ceil(SWEEP_FOR_ROOM)
    }

    /// Finds the predecessors of task `window.now` from its accesses, and enters the accesses.
    /// Reads are handled first, so that a task does not wait for itself.
    ///
    /// # Errors
    /// A region outside its tensor, or too few pieces; then nothing has changed.
    #[inline(always)]
    pub(super) fn infer<'a>(
        &mut self,
        accesses: &'a [Access],
        window: &WindowState,
        predecessors: &mut Predecessors,
    ) -> Result<(), InferError<'a>> {
        let granules = self.granules.len();
        let is_simple = |access: &Access| {
            let Placed { granule, bytes } = access.region.placed;
            (bytes != 0) & ((granule as usize) < granules)
        };
        if 2 * accesses.len() > self.free_count as usize || !accesses.iter().all(is_simple) {
            return self.infer_any(accesses, window, predecessors);
        }
        let mut written = None;
        let mut writes = 0;
        for access in accesses {
            if access.mode == Mode::In {
                self.touch_placed(access, window, predecessors);
            } else {
                written = Some(access);
                writes += 1;
            }
        }
        if writes > 1 {
            self.write_all(accesses, window, predecessors);
        } else if let Some(access) = written {
            self.touch_placed(access, window, predecessors);
        }
        Ok(())
    }

    /// The writes of a task with several, updates first.
    #[inline(never)]
    fn write_all(&mut self, accesses: &[Access], window: &WindowState, predecessors: &mut Predecessors) {
        for mode in [Mode::InOut, Mode::Out] {
            for access in accesses.iter().filter(|access| access.mode == mode) {
                self.touch_placed(access, window, predecessors);
            }
        }
    }

    #[inline(always)]
    fn touch_placed(&mut self, access: &Access, window: &WindowState, predecessors: &mut Predecessors) {
        let Placed { granule, bytes } = access.region.placed;
        let (granule, span) = (granule as usize, Span(u64::from(bytes) << 32 | u64::from(window.now)));
        match access.mode {
            Mode::In => self.read(granule, span, window, predecessors),
            mode => self.write(granule, span, mode == Mode::InOut, window, predecessors),
        }
    }

    #[inline(never)]
    fn infer_any<'a>(
        &mut self,
        accesses: &'a [Access],
        window: &WindowState,
        predecessors: &mut Predecessors,
    ) -> Result<(), InferError<'a>> {
        let is_outside = |access: &&Access| {
            let tile = &access.region.tile;
            !self.tensors.get(tile.tensor as usize).is_some_and(|placed| placed.holds(tile))
        };
        if let Some(outside) = accesses.iter().find(is_outside) {
            return Err(InferError::Outside(outside));
        }
        if !self.has_room(accesses, window) {
            return Err(InferError::Full);
        }
        for mode in [Mode::In, Mode::InOut, Mode::Out] {
            for access in accesses.iter().filter(|access| access.mode == mode) {
                self.touch(access, window, predecessors);
            }
        }
        Ok(())
    }

    /// Whether the pieces that these accesses may need are free: at most two in each granule.
    fn has_room(&mut self, accesses: &[Access], window: &WindowState) -> bool {
        let needed = |access: &Access| {
            let placed = &self.tensors[access.region.tile.tensor as usize];
            let row_bytes = u64::from(access.region.tile.columns) * u64::from(placed.shape.element_bytes);
            2 * u64::from(access.region.tile.rows) * ((row_bytes >> placed.granule_shift) + 2)
        };
        let needed: u64 = accesses.iter().map(needed).sum();
        if needed <= u64::from(self.free_count) {
            return true;
        }
        self.sweep(SWEEP_FOR_ROOM, window);
        needed <= u64::from(self.free_count)
    }

    fn touch(&mut self, access: &Access, window: &WindowState, predecessors: &mut Predecessors) {
        let placed = self.tensors[access.region.tile.tensor as usize];
        let (shift, size) = (placed.granule_shift, 1u64 << placed.granule_shift);
        for (first, end) in placed.runs(&access.region.tile) {
            let mut at = first;
            while at < end {
                let (granule, offset) = (at >> shift, at & (size - 1));
                let stop = (offset + end - at).min(size);
                let span = Span::new(window.now, offset as u16, stop as u16);
                let granule = placed.first_granule as usize + granule as usize;
                match access.mode {
                    Mode::In => self.read(granule, span, window, predecessors),
                    Mode::InOut => self.write(granule, span, true, window, predecessors),
                    Mode::Out => self.write(granule, span, false, window, predecessors),
                }
                at += stop - offset;
            }
        }
    }

    #[inline(always)]
    fn read(&mut self, granule: usize, span: Span, window: &WindowState, predecessors: &mut Predecessors) {
        let place = &mut self.granules[granule];
        if place.writer.meets(span) {
            predecessors.add_last_access(window, place.writer.task(), true);
        }
        // No `position`, whose branch is as good as random where tasks have several readers.
        let is_free = place.readers.map(|reader| !window.holds(reader.task()));
        let has_free = is_free[0] | is_free[1];
        if has_free {
            place.readers[usize::from(!is_free[0])] = span;
        }
        if place.more != NIL {
            let more = place.more;
            self.meet_writers(more, span, window, predecessors);
        }
        if !has_free {
            self.push(granule, span, Role::Reader);
        }
    }

    fn meet_writers(&self, mut at: u32, span: Span, window: &WindowState, predecessors: &mut Predecessors) {
        while at != NIL {
            let piece = &self.pieces[at as usize];
            if piece.role == Role::Writer && piece.span.meets(span) {
                predecessors.add_last_access(window, piece.span.task(), true);
            }
            at = piece.next;
        }
    }

    #[inline(always)]
    fn write(
        &mut self,
        granule: usize,
        span: Span,
        reads: bool,
        window: &WindowState,
        predecessors: &mut Predecessors,
    ) {
        let place = &mut self.granules[granule];
        let [first, second] = place.readers;
        let is_busy = [place.writer, first, second].iter().fold(place.more != NIL, |is_busy, one| {
            // No `||`: the loads are of one cache line, and cost less than a mispredicted branch.
            is_busy | window.holds(one.task())
        });
        if is_busy || !window.failed.is_empty() {
            self.write_busy(granule, span, reads, window, predecessors);
        } else {
            // Retired readers stay: no task waits for them.
            place.writer = span;
        }
    }

    /// Writes to a granule with accesses that still matter.
    #[inline(never)]
    fn write_busy(
        &mut self,
        granule: usize,
        span: Span,
        reads: bool,
        window: &WindowState,
        predecessors: &mut Predecessors,
    ) {
        let place = &mut self.granules[granule];
        for reader in &mut place.readers {
            if reader.meets(span) & window.holds_earlier(reader.task()) {
                predecessors.add(reader.task(), false);
            }
            *reader = if reader.is_within(span) { Span::NONE } else { *reader };
        }
        let before = place.writer;
        if before.meets(span) {
            predecessors.add_last_access(window, before.task(), reads);
        }
        place.writer = span;
        let is_gone = before.is_within(span) || !matters(before, window);
        if place.more == NIL && is_gone {
            return;
        }
        self.cut(granule, span, reads, window, predecessors);
        if !is_gone {
            self.push_rests(granule, before, span);
        }
    }

    /// Removes `cut`, and what no longer matters, from the chain of a granule.
    #[cold]
    #[inline(never)]
    fn cut(&mut self, granule: usize, cut: Span, reads: bool, window: &WindowState, predecessors: &mut Predecessors) {
        let mut at = std::mem::replace(&mut self.granules[granule].more, NIL);
        while at != NIL {
            let Piece { span, role, next } = self.pieces[at as usize];
            if span.meets(cut) {
                predecessors.add_last_access(window, span.task(), reads && role == Role::Writer);
            }
            let keeps = match role {
                Role::Reader => window.holds(span.task()) && !span.is_within(cut),
                Role::Writer => matters(span, window) && !span.is_within(cut),
            };
            self.give_back(at);
            if keeps && role == Role::Writer && span.meets(cut) {
                self.push_rests(granule, span, cut);
            } else if keeps {
                self.push(granule, span, role);
            }
            at = next;
        }
    }

    fn push_rests(&mut self, granule: usize, span: Span, cut: Span) {
        if !span.meets(cut) {
            self.push(granule, span, Role::Writer);
            return;
        }
        for rest in span.rests(cut) {
            if !rest.is_none() {
                self.push(granule, rest, Role::Writer);
            }
        }
    }

    fn push(&mut self, granule: usize, span: Span, role: Role) {
        let at = self.free;
        assert!(at != NIL, "room for the pieces was checked before");
        let next = self.granules[granule].more;
        let piece = &mut self.pieces[at as usize];
        self.free = piece.next;
        self.free_count -= 1;
        *piece = Piece { span, role, next };
        self.granules[granule].more = at;
    }

    #[inline(always)]
    fn give_back(&mut self, at: u32) {
        self.pieces[at as usize].next = self.free;
        self.free = at;
        self.free_count += 1;
    }

    /// Drops entries of retired tasks; called once for 64 submissions.
    pub(super) fn sweep_some(&mut self, window: &WindowState) {
        self.sweep(SWEEP, window);
    }

    fn sweep(&mut self, count: usize, window: &WindowState) {
        for _ in 0..count.min(self.granules.len()) {
            self.swept = if self.swept + 1 < self.granules.len() { self.swept + 1 } else { 0 };
            let place = &mut self.granules[self.swept];
            if !matters(place.writer, window) {
                place.writer = Span::NONE;
            }
            for reader in &mut place.readers {
                if !window.holds(reader.task()) {
                    *reader = Span::NONE;
                }
            }
            let mut at = std::mem::replace(&mut place.more, NIL);
            while at != NIL {
                let Piece { span, role, next } = self.pieces[at as usize];
                self.give_back(at);
                if window.holds(span.task()) || (role == Role::Writer && matters(span, window)) {
                    self.push(self.swept, span, role);
                }
                at = next;
            }
        }
    }
}

/// Whether a writer is under way or failed.
#[inline(always)]
fn matters(writer: Span, window: &WindowState) -> bool {
    !writer.is_none() && (window.holds(writer.task()) || window.outcome(writer.task()) != 0)
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn a_cut_leaves_what_it_does_not_cover() {
        let span = |first, end| Span::new(1, first, end);
        let rests = |a: Span, b: Span| a.rests(b).map(|rest| (rest.first(), rest.end(), rest.is_none()));
        assert_eq!(rests(span(0, 10), span(4, 6)), [(0, 4, false), (6, 10, false)]);
        assert_eq!(rests(span(4, 10), span(2, 6)), [(4, 4, true), (6, 10, false)]);
        assert_eq!(rests(span(2, 6), span(4, 10)), [(2, 4, false), (6, 6, true)]);
    }
}
