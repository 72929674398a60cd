//! Task graphs as text: tensors, and tasks with regions and bodies.
//!
//! Pure: RON in, [`GraphSpec`] out. It is checked, so that only its own dependencies can make a run
//! fail. At most [`TASKS_MAX`] tasks. `bundled` makes the bundled graphs.

use crate::graph::{Mode, Pool, Shape};
use crate::quote::cut;
use serde::Deserialize;

/// Most tasks of a graph.
pub const TASKS_MAX: usize = 1 << 20;
/// Most elements of all tensors together, where bodies compute with them: 1 GiB.
pub const ELEMENTS_MAX: u64 = 1 << 28;

/// The body of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Kernel {
    /// Does nothing.
    #[default]
    Empty,
    /// Keeps its core busy for this many nanoseconds.
    Spin(u32),
    /// Copies elements of its first read into its first write, as many as both have.
    Copy,
    /// Adds the product of its first two reads to its first write: tiles of 4-byte floats.
    MultiplyAdd,
}

impl Kernel {
    /// The number that tasks carry.
    pub fn number(self) -> u16 {
        match self {
            Kernel::Empty => 0,
            Kernel::Spin(_) => 1,
            Kernel::Copy => 2,
            Kernel::MultiplyAdd => 3,
        }
    }

    /// The name of a kernel's number.
    pub fn name(number: u16) -> &'static str {
        ["empty", "spin", "copy", "multiply_add"][number as usize % 4]
    }
}

/// A region: the tensor's index in the list, row, column, rows, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Tile(pub u32, pub u32, pub u32, pub u32, pub u32);

impl Tile {
    /// Whether it has elements, all of them of a tensor of this shape.
    fn lies_in(self, shape: &Shape) -> bool {
        let fits =
            |first: u32, count: u32, all: u32| count > 0 && first.checked_add(count).is_some_and(|end| end <= all);
        fits(self.1, self.3, shape.rows) && fits(self.2, self.4, shape.columns)
    }
}

/// A task of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Its body.
    pub kernel: Kernel,
    /// What it reads.
    pub reads: Vec<Tile>,
    /// What it writes.
    pub writes: Vec<Tile>,
    /// What it reads and writes.
    pub updates: Vec<Tile>,
    /// Indices of earlier tasks that it waits for in addition.
    pub after: Vec<u32>,
    /// Its stream.
    pub stream: u32,
    /// Whether a worker of the device's pool must run it.
    pub on_device: bool,
}

impl Row {
    /// Its accesses: reads, updates, writes.
    pub fn accesses(&self) -> impl Iterator<Item = (Tile, Mode)> + '_ {
        let with = |mode: Mode| move |tile: &Tile| (*tile, mode);
        let reads = self.reads.iter().map(with(Mode::In));
        reads.chain(self.updates.iter().map(with(Mode::InOut))).chain(self.writes.iter().map(with(Mode::Out)))
    }

    /// Its pool.
    pub fn pool(&self) -> Pool {
        if self.on_device { Pool::Device } else { Pool::Cpu }
    }
}

#[derive(Deserialize)]
#[serde(rename = "Graph", deny_unknown_fields)]
struct Text {
    name: String,
    /// Rows, columns, bytes of an element, bytes of a granule.
    tensors: Vec<(u32, u32, u32, u32)>,
    tasks: Vec<Row>,
}

/// A task graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSpec {
    /// Its name.
    pub name: String,
    /// Its tensors.
    pub tensors: Vec<Shape>,
    /// Its tasks in the order of submission.
    pub tasks: Vec<Row>,
}

/// Why a text is not a graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GraphSpecError {
    #[error("line {line}, column {column}: {what}; see engine/docs/src/design/task-graph.md for the fields of a graph")]
    Text {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        what: String,
    },
    #[error("tasks: found {found}, expected 1..={TASKS_MAX}; change the list")]
    Tasks { found: usize },
    #[error(
        "tensors: found {found} elements, expected at most {ELEMENTS_MAX} where a task copies or multiplies; make them \
         smaller"
    )]
    Elements { found: u64 },
    #[error("task {task}: found {found}, expected {expected}; change it")]
    Task { task: usize, found: String, expected: String },
}

impl GraphSpec {
    /// Parses a graph.
    ///
    /// # Errors
    /// At the first error.
    pub fn parse(text: &str) -> Result<GraphSpec, GraphSpecError> {
        let text: Text = ron::from_str(text).map_err(|error| {
            let (line, column) = (error.span.start.line, error.span.start.col);
            GraphSpecError::Text { line, column, what: cut(&error.code.to_string()).into_owned() }
        })?;
        let shape = |(rows, columns, element_bytes, granule_bytes): (u32, u32, u32, u32)| Shape {
            rows,
            columns,
            element_bytes,
            granule_bytes,
        };
        let tensors = text.tensors.into_iter().map(shape).collect();
        let spec = GraphSpec { name: text.name, tensors, tasks: text.tasks };
        spec.check()?;
        Ok(spec)
    }

    /// Checks that every task refers to parts of existing tensors and to earlier tasks, and has the accesses
    /// that its kernel needs.
    pub(super) fn check(&self) -> Result<(), GraphSpecError> {
        if self.tasks.is_empty() || self.tasks.len() > TASKS_MAX {
            return Err(GraphSpecError::Tasks { found: self.tasks.len() });
        }
        for (task, row) in self.tasks.iter().enumerate() {
            let wrong = |found: String, expected: String| Err(GraphSpecError::Task { task, found, expected });
            if let Some((tile, _)) = row.accesses().find(|(tile, _)| tile.0 as usize >= self.tensors.len()) {
                return wrong(format!("tensor {}", tile.0), format!("one of the {} listed", self.tensors.len()));
            }
            if let Some((tile, _)) = row.accesses().find(|(tile, _)| !tile.lies_in(&self.tensors[tile.0 as usize])) {
                let Tile(tensor, row, column, high, wide) = tile;
                let Shape { rows, columns, .. } = self.tensors[tensor as usize];
                let expected = format!("rows and columns of tensor {tensor}, which has {rows} by {columns}");
                return wrong(format!("the region ({tensor}, {row}, {column}, {high}, {wide})"), expected);
            }
            if let Some(after) = row.after.iter().find(|after| **after as usize >= task) {
                return wrong(format!("after task {after}"), "a task before it in the list".to_owned());
            }
            self.check_kernel(task, row)?;
        }
        let elements = |shape: &Shape| u64::from(shape.rows) * u64::from(shape.columns);
        let found = self.tensors.iter().map(elements).fold(0, u64::saturating_add);
        if self.computes() && found > ELEMENTS_MAX { Err(GraphSpecError::Elements { found }) } else { Ok(()) }
    }

    /// Whether a body reads or writes elements.
    pub(super) fn computes(&self) -> bool {
        self.tasks.iter().any(|row| matches!(row.kernel, Kernel::Copy | Kernel::MultiplyAdd))
    }

    fn check_kernel(&self, task: usize, row: &Row) -> Result<(), GraphSpecError> {
        let wrong =
            |found: String, expected: &str| Err(GraphSpecError::Task { task, found, expected: expected.to_owned() });
        let written = row.updates.first().or(row.writes.first());
        let is_floats = row.accesses().all(|(tile, _)| self.tensors[tile.0 as usize].element_bytes == 4);
        match row.kernel {
            Kernel::Empty | Kernel::Spin(_) => Ok(()),
            Kernel::Copy | Kernel::MultiplyAdd if !is_floats => {
                wrong("elements of another size".to_owned(), "elements of 4 bytes for a body that computes")
            }
            Kernel::Copy if row.reads.is_empty() || written.is_none() => {
                wrong("a copy without a read or a write".to_owned(), "one of each")
            }
            Kernel::Copy => Ok(()),
            Kernel::MultiplyAdd => match (&row.reads[..], row.updates.first()) {
                ([a, b, ..], Some(c)) if a.4 == b.3 && a.3 == c.3 && b.4 == c.4 => Ok(()),
                (reads, update) => wrong(
                    format!("multiply-add of {reads:?} into {update:?}"),
                    "two reads of m by k and k by n, and an update of m by n",
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GraphSpec, GraphSpecError, Kernel};

    #[test]
    fn a_graph_is_read_and_what_is_wrong_with_one_is_said() {
        let text = r#"Graph(name: "two", tensors: [(4, 4, 4, 64)], tasks: [
            (kernel: Spin(100), writes: [(0, 0, 0, 2, 2)]),
            (kernel: Copy, reads: [(0, 0, 0, 2, 2)], writes: [(0, 2, 2, 2, 2)], after: [0], stream: 3),
        ])"#;
        let graph = GraphSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((graph.tasks.len(), graph.tasks[0].kernel, graph.tasks[1].stream), (2, Kernel::Spin(100), 3));
        let said = |text: &str| GraphSpec::parse(text).map_err(|error| error.to_string()).expect_err("it is wrong");
        assert!(said(&text.replace("(0, 2, 2, 2, 2)", "(7, 2, 2, 2, 2)")).contains("task 1: found tensor 7"));
        for outside in ["(0, 3, 2, 2, 2)", "(0, 2, 3, 2, 2)", "(0, 2, 2, 0, 2)", "(0, 4294967295, 2, 2, 2)"] {
            let said = said(&text.replace("(0, 2, 2, 2, 2)", outside));
            let expected =
                format!("task 1: found the region {outside}, expected rows and columns of tensor 0, which has 4 by 4");
            assert!(said.starts_with(&expected), "{said}");
        }
        assert!(said(&text.replace("[0]", "[1]")).contains("after task 1, expected a task before it"));
        assert!(said(&text.replace("Copy", "MultiplyAdd")).contains("an update of m by n"));
        assert!(said(&text.replace("(4, 4, 4, 64)", "(65536, 65536, 4, 64)")).contains("found 4294967296 elements"));
        assert!(said("Graph(name: 3)").contains("line 1"));
        let empty = GraphSpec::parse(r#"Graph(name: "none", tensors: [], tasks: [])"#);
        assert_eq!(empty, Err(GraphSpecError::Tasks { found: 0 }));
    }
}
