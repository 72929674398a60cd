//! The regions that tasks read and write: tiles of tensors and ranges of bytes.
//!
//! Plain values. A tensor is registered before its graph is compiled and gets a dense number, so
//! finding its granules needs no hashing. A region within one granule, as most are, is checked and
//! placed when it is made; every other one when it is submitted.

/// Largest granule: offsets within one fit in 16 bits.
pub const GRANULE_BYTES_MAX: u32 = 1 << 15;

/// A tensor's shape: rows, one after the other, of columns of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Unit in which accesses are tracked: a power of two near the size of a usual region, at most
    /// [`GRANULE_BYTES_MAX`].
    pub granule_bytes: u32,
}

/// A registered tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(super) number: u32,
    pub(super) layout: TensorLayout,
}

/// A part of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    pub(super) tile: Tile,
    pub(super) placed: Placed,
}

/// The seed's key of a region: base, row, column, rows, columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) tensor: u32,
    pub(super) row: u32,
    pub(super) column: u32,
    pub(super) rows: u32,
    pub(super) columns: u32,
}

/// Where a region lies if that is within one granule of its tensor; else it has no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) granule: u32,
    /// The first byte within the granule in the low half, the end above it.
    pub(super) bytes: u32,
}

/// What a task does with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads it.
    In,
    /// Writes all of it without having read it.
    Out,
    /// Reads and writes it.
    InOut,
}

/// A region and how a task uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The region.
    pub region: Region,
    /// How it is used.
    pub mode: Mode,
}

impl Tensor {
    /// The tile of this many rows and columns at `row`, `column`.
    #[inline(always)]
    pub fn tile(&self, row: u32, column: u32, rows: u32, columns: u32) -> Region {
        let tile = Tile { tensor: self.number, row, column, rows, columns };
        Region { tile, placed: self.layout.placed(&tile) }
    }

    /// The whole tensor.
    pub fn whole(&self) -> Region {
        self.tile(0, 0, self.layout.shape.rows, self.layout.shape.columns)
    }

    /// `count` elements from `first`, of a tensor with one row.
    #[inline(always)]
    pub fn range(&self, first: u32, count: u32) -> Region {
        self.tile(0, first, 1, count)
    }

    /// The shape that it was registered with.
    pub fn shape(&self) -> Shape {
        self.layout.shape
    }
}

impl Region {
    /// An access that reads it.
    #[must_use]
    #[inline(always)]
    pub fn read(self) -> Access {
        Access { region: self, mode: Mode::In }
    }

    /// An access that writes it.
    #[must_use]
    #[inline(always)]
    pub fn write(self) -> Access {
        Access { region: self, mode: Mode::Out }
    }

    /// An access that reads and writes it.
    #[must_use]
    #[inline(always)]
    pub fn update(self) -> Access {
        Access { region: self, mode: Mode::InOut }
    }
}

/// Where a tensor lies among all granules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TensorLayout {
    pub(super) shape: Shape,
    pub(super) first_granule: u32,
    pub(super) granule_shift: u32,
    pub(super) pitch_bytes: u64,
}

impl TensorLayout {
    /// Whether `tile` lies in it and is not empty.
    #[inline(always)]
    pub(super) fn holds(&self, tile: &Tile) -> bool {
        let fits =
            |first: u32, count: u32, all: u32| count > 0 && u64::from(first) + u64::from(count) <= u64::from(all);
        fits(tile.row, tile.rows, self.shape.rows) && fits(tile.column, tile.columns, self.shape.columns)
    }

    /// Where `tile` lies, if that is within one granule.
    #[inline(always)]
    fn placed(&self, tile: &Tile) -> Placed {
        if tile.rows != 1 || !self.holds(tile) {
            return Placed::default();
        }
        let element = u64::from(self.shape.element_bytes);
        let at = u64::from(tile.row) * self.pitch_bytes + u64::from(tile.column) * element;
        let first = at & ((1 << self.granule_shift) - 1);
        let end = first + u64::from(tile.columns) * element;
        if end > 1 << self.granule_shift {
            return Placed::default();
        }
        let granule = self.first_granule + (at >> self.granule_shift) as u32;
        Placed { granule, bytes: (first | end << 16) as u32 }
    }

    /// Its contiguous byte ranges: one for each row, or a single one if the rows are whole.
    #[inline(always)]
    pub(super) fn runs(&self, tile: &Tile) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (pitch, element) = (self.pitch_bytes, u64::from(self.shape.element_bytes));
        let first = u64::from(tile.row) * pitch + u64::from(tile.column) * element;
        let row_bytes = u64::from(tile.columns) * element;
        let (runs, bytes) =
            if row_bytes == pitch { (1, row_bytes * u64::from(tile.rows)) } else { (tile.rows, row_bytes) };
        (0..u64::from(runs)).map(move |run| (first + run * pitch, first + run * pitch + bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::{Placed, Shape, Tensor, TensorLayout};

    #[test]
    fn a_region_is_placed_only_within_one_granule_and_its_tensor() {
        let shape = Shape { rows: 4, columns: 12, element_bytes: 2, granule_bytes: 16 };
        let layout = TensorLayout { shape, first_granule: 7, granule_shift: 4, pitch_bytes: 24 };
        let tensor = Tensor { number: 0, layout };
        let placed = |row, column, rows, columns| tensor.tile(row, column, rows, columns).placed;
        // Row 1 begins in the middle of the second granule.
        assert_eq!(placed(1, 0, 1, 4), Placed { granule: 8, bytes: 8 | 16 << 16 });
        assert_eq!(placed(3, 8, 1, 4), Placed { granule: 12, bytes: 8 | 16 << 16 });
        assert_eq!(tensor.range(0, 8).placed, Placed { granule: 7, bytes: 16 << 16 });
        for none in
            [placed(1, 0, 1, 5), placed(0, 0, 2, 1), placed(0, 11, 1, 2), placed(4, 0, 1, 1), placed(0, 0, 1, 0)]
        {
            assert_eq!(none, Placed::default());
        }
    }
}
