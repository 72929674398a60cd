//! The compiled part of the Python package `pinwheel`: decoders, engines and runs.
//!
//! The Python files beside it are the interface that people use. They check types and shapes, and turn arrays into the
//! bytes that this part takes. Errors are Python exceptions with the sentences of the program.
//!
//! | module | holds |
//! |---|---|
//! | [`packed`] | checks of packed shots |
//! | [`decoder`] | a model prepared for decoding, and batches of shots |
//! | [`traffic`] | the client of an engine: shots sent, answers received |
//! | [`plugin`] | the process of a decoder plugin |
//! | [`engine`] | an engine in this process, or a running one of another process |
//! | [`run`] | what a run left |
//!
//! Nothing here prints or installs a signal handler. Blocking calls release the interpreter lock.

mod packed;
mod decoder;
mod traffic;
mod plugin;
mod engine;
mod run;

use pinwheel_engine::engine::Allocator;
use pyo3::pymodule;

/// Counts what the engine's hot threads allocate, and lends them memory, as in the program. It sees the allocations of
/// this library only, not those of Python or of other libraries.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::decoder::{Answers, Decoder};
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::plugin::{plugin_host, set_plugin_host};
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::traffic::Received;
}
