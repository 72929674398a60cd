//! The screen as text: into a file at a key, and for `--snapshot`.
//!
//! Owns the file's name. Bounded by the screen's size.

use crate::model::Model;
use crate::theme::Colour;
use crate::view;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Most files of one moment.
const SAME_MOMENT_MAX: u32 = 100;

/// What the screen shows, a line each row, without colours.
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

/// Writes it to a new file in the working directory; its name, or in one sentence why not.
pub fn write(model: &Model) -> Result<String, String> {
    let at_ns = model.picture().map_or(0, |picture| picture.snapshot.at_ns);
    let name = |copy: u32| {
        let more = if copy == 0 { String::new() } else { format!("-{copy}") };
        format!("pinwheel-{}-{:.1}s{more}.txt", crate::keymap::name::view(model.view), at_ns as f64 / 1e9)
    };
    for copy in 0..SAME_MOMENT_MAX {
        let name = name(copy);
        // Never over another file.
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(&name, &error)),
            Ok(mut file) => {
                let written = file.write_all(text(model).as_bytes());
                if written.is_err() {
                    // Half a screen is none.
                    let _ = std::fs::remove_file(&name);
                }
                return written.map(|()| name.clone()).map_err(|error| refused(&name, &error));
            }
        }
    }
    Err(format!("found {SAME_MOMENT_MAX} files like {}, expected room for one more; remove some", name(0)))
}

fn refused(name: &str, error: &std::io::Error) -> String {
    format!("found {name} not writable ({error}), expected a directory to write to; start pinwheel in one")
}
