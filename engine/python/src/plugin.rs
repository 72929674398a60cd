//! The process of a decoder plugin. The program of this process is Python, which starts no plugin by itself: it gets a
//! script that calls [`plugin_host`].

use pinwheel_engine::decode::plugin::{host, set_host};
use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult, pyfunction};
use std::path::PathBuf;

/// Names the interpreter and the script that are the process of a plugin.
#[pyfunction]
pub(crate) fn set_plugin_host(python: PathBuf, script: PathBuf) {
    set_host(python.into(), vec![script.into()]);
}

/// Is the process of a plugin for the engine with process number `engine`, until that ends.
#[pyfunction]
pub(crate) fn plugin_host(engine: i32) -> PyResult<()> {
    host(engine).map_err(PyErr::new::<PyRuntimeError, _>)
}
