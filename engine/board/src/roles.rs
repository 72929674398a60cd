//! Roles, tasks, and the states of threads, silos and the recorder.
//!
//! Plain enums, each with its name on screen and in JSON, and its number on the board. Profile,
//! shot path and board all use them, so this module precedes all three.

use serde::{Deserialize, Serialize};

/// A polled function of a silo, in the order in which a shot passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RoleKind {
    /// Writes shots into the rx ring.
    Feed,
    /// Opens tickets and launches workers.
    Dispatch,
    /// Runs the device side of the `sim` device.
    Device,
    /// Claims ready flags and hands jobs to the graph.
    Poll,
    /// Makes tasks of jobs and orders the commits of each stream; runs no task.
    Graph,
    /// Runs tasks: decodes jobs, commits and answers them.
    Decode,
    /// Takes answers out of the tx ring.
    Harvest,
}

pinwheel_edge::names! { RoleKind:
    Feed "feed", Dispatch "dispatch", Device "device", Poll "poll", Graph "graph", Decode "decode",
    Harvest "harvest",
}

impl RoleKind {
    /// The roles that a silo has exactly once, in the order in which a frame runs them when folded.
    pub const RING: [Self; 6] = [Self::Feed, Self::Dispatch, Self::Device, Self::Poll, Self::Graph, Self::Harvest];
}

impl std::fmt::Display for RoleKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The work of a task of the decode pool, by its number there. Shots that are decoded whole are no
/// tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u16)]
pub enum TaskKernel {
    /// Decodes a window of a shot.
    Window = 0,
    /// Returns the buffer of a shot that was answered before its last round arrived.
    Release = 1,
    /// Reads the states of two streams.
    Joint = 2,
}

impl TaskKernel {
    /// Every kernel, by number.
    pub const ALL: [TaskKernel; 3] = [TaskKernel::Window, TaskKernel::Release, TaskKernel::Joint];
}

/// State of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ThreadState {
    /// Planned, not yet started.
    #[default]
    Starting = 0,
    /// In its frame loop.
    Running = 1,
    /// Left its loop normally.
    Finished = 2,
    /// Panicked outside its roles; none of its roles is called again.
    Panicked = 3,
}

/// What a silo is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SiloState {
    /// It takes shots.
    #[default]
    Live,
    /// Its streams move to other silos.
    Draining,
    /// It has no stream, and rejoins at once.
    Drained,
    /// Its path has died; its shots are being answered and its streams taken over.
    Dying,
    /// It is dead, and its streams are decoded elsewhere.
    Dead,
    /// Its path is being rebuilt.
    Rejoining,
}

pinwheel_edge::names! { SiloState:
    Live "live", Draining "draining", Drained "drained", Dying "dying", Dead "dead", Rejoining "rejoining",
}

impl SiloState {
    /// The state of this code; an unknown code reads as dead.
    pub fn from_code(code: u64) -> SiloState {
        usize::try_from(code).ok().and_then(|code| SiloState::ALL.get(code).copied()).unwrap_or(SiloState::Dead)
    }
}

/// Where the flight recorder writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecorderState {
    /// No recorder runs.
    #[default]
    Off,
    /// The recorder writes to disk.
    Disk,
    /// The recorder keeps the last minutes in memory only.
    Memory,
    /// The recorder has ended.
    Ended,
}

impl RecorderState {
    /// Number on the board.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// From the board; an unknown number reads as off.
    pub const fn from_code(code: u64) -> RecorderState {
        match code {
            1 => RecorderState::Disk,
            2 => RecorderState::Memory,
            3 => RecorderState::Ended,
            _ => RecorderState::Off,
        }
    }
}
