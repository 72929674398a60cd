//! Helpers shared by the tests of several modules.

pub mod synthetic;
