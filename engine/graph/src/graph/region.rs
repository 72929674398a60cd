//! The regions that tasks read and write: tiles of tensors and ranges of bytes.
//!
//! Plain values. A tensor is registered before its graph is compiled and gets a dense number, so
//! finding its granules needs no hashing. Regions are checked against their tensor when they are
//! submitted.

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
    pub(super) shape: Shape,
}

/// A part of a tensor: the seed's key (base, row, column, rows, columns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    pub(super) tensor: u32,
    /// First row.
    pub row: u32,
    /// First column.
    pub column: u32,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
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
    #[must_use]
    #[inline(always)]
    pub fn tile(&self, row: u32, column: u32, rows: u32, columns: u32) -> Region {
        Region { tensor: self.number, row, column, rows, columns }
    }

    /// The whole tensor.
    #[must_use]
    pub fn whole(&self) -> Region {
        self.tile(0, 0, self.shape.rows, self.shape.columns)
    }

    /// `count` elements from `first`, of a tensor with one row.
    #[must_use]
    #[inline(always)]
    pub fn range(&self, first: u32, count: u32) -> Region {
        self.tile(0, first, 1, count)
    }

    /// The shape that it was registered with.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
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
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorLayout {
    pub(super) shape: Shape,
    pub(super) first_granule: u32,
    pub(super) granule_shift: u32,
    pub(super) pitch_bytes: u64,
}

impl TensorLayout {
    /// Whether `region` lies in it and is not empty.
    #[inline(always)]
    pub(super) fn holds(&self, region: &Region) -> bool {
        let fits =
            |first: u32, count: u32, all: u32| count > 0 && u64::from(first) + u64::from(count) <= u64::from(all);
        fits(region.row, region.rows, self.shape.rows) && fits(region.column, region.columns, self.shape.columns)
    }

    /// Its contiguous byte ranges: one for each row, or a single one if the rows are whole.
    #[inline(always)]
    pub(super) fn runs(&self, region: &Region) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (pitch, element) = (self.pitch_bytes, u64::from(self.shape.element_bytes));
        let first = u64::from(region.row) * pitch + u64::from(region.column) * element;
        let row_bytes = u64::from(region.columns) * element;
        let (runs, bytes) =
            if row_bytes == pitch { (1, row_bytes * u64::from(region.rows)) } else { (region.rows, row_bytes) };
        (0..u64::from(runs)).map(move |run| (first + run * pitch, first + run * pitch + bytes))
    }
}
