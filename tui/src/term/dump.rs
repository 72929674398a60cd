//! The screen as text: for the key that writes a file, and for `--snapshot`.
//!
//! Owns the file's name. Bounded by the screen's size.

use crate::model::Model;
use crate::theme::Colour;
use crate::view;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Most files of one second.
const SAME_MOMENT_MAX: u32 = 100;

/// The screen's text, one line per row, without colours.
pub fn text(model: &Model) -> String {
    let mut plain = model.clone();
    plain.theme.colour = Colour::None;
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buffer = Buffer::empty(area);
    view::draw(&plain, area, &mut buffer);
    let mut text = String::new();
    for y in 0..area.height {
        let row: String = (0..area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Writes the screen to a new file in the working directory and returns its name, or an error in
/// one sentence.
pub fn write(model: &Model) -> Result<String, String> {
    let at_ns = model.picture().map_or(0, |picture| picture.snapshot.at_ns);
    let name = |copy: u32| {
        let more = if copy == 0 { String::new() } else { format!("-{copy}") };
        format!("pinwheel-{}-{:.1}s{more}.txt", model.view.name(), at_ns as f64 / 1e9)
    };
    for copy in 0..SAME_MOMENT_MAX {
        let name = name(copy);
        // Never overwrites a file.
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(&name, &error)),
            Ok(mut file) => {
                let written = file.write_all(text(model).as_bytes());
                if written.is_err() {
                    // Remove an incomplete file.
                    let _ = std::fs::remove_file(&name);
                }
                return written.map(|()| name.clone()).map_err(|error| refused(&name, &error));
            }
        }
    }
    Err(format!("there are {SAME_MOMENT_MAX} files like {} already; remove some", name(0)))
}

fn refused(name: &str, error: &std::io::Error) -> String {
    format!("cannot write {name} ({error}); start pinwheel in a writable directory")
}
