//! An error model for a running engine, from a file or bundled.
//!
//! Runs on the requesting cold thread, before any lock is taken. Bounded by [`DEM_BYTES_MAX`] and the
//! limits of [`crate::code`].

use crate::code::{Model, NameError, bundled_named};
use crate::decode::changes::NamedModel;
use crate::files;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a detector error model.
pub const DEM_BYTES_MAX: u64 = 1 << 28;

/// Reads the model `name`: a file, or a bundled model if there is no such file.
///
/// # Errors
/// One sentence.
pub(super) fn read(name: &str) -> Result<NamedModel, String> {
    let path = Path::new(name);
    if !path.exists() {
        match bundled_named(name) {
            Ok(model) => return Ok(NamedModel { name: name.to_owned(), model: Arc::new(model) }),
            Err(NameError::Unknown(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    // A FIFO is refused: whoever waits for its writer serves no other command meanwhile.
    let read = || -> io::Result<Vec<u8>> { Ok(files::read_up_to(files::open_unnamed(path)?, DEM_BYTES_MAX)?) };
    let text =
        read().map_err(|error| format!("model {name} cannot be read ({error}); check the path and its permissions"))?;
    let model = Model::parse(&text).map_err(|error| format!("model {name}, {error}"))?;
    Ok(NamedModel { name: name.to_owned(), model: Arc::new(model) })
}
