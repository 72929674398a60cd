//! What the console keeps from one start to the next: theme, glyphs, mouse; each list's columns and order.
//!
//! Owns the form of the file, `console.ron` in the user's state directory. Read before the console starts and written
//! after it has ended, on the caller's thread, and only if the user changed something. Bounded by [`BYTES_MAX`] and by the
//! lists there are. Filters are not kept: one that is forgotten hides rows.
//!
//! # Why only what the user changed here
//!
//! An option of the command line or a variable of the environment holds for one start. Were they kept, a theme that a
//! script names once would stay for ever.

use crate::model::lists::{List, Way};
use crate::model::{Model, Mouse};
use crate::theme::{Glyphs, Palette};
use pinwheel_engine::files;
use pinwheel_engine::quote::cut;
use pinwheel_engine::record::Output;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Most bytes of the file.
pub const BYTES_MAX: usize = 64 << 10;
/// What a column without a heading is called.
const UNNAMED: &str = "state";

/// What the user chose at a console, now or in an earlier one; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Colours.
    pub palette: Option<Palette>,
    /// Glyphs.
    pub glyphs: Option<Glyphs>,
    /// Whose the mouse is.
    pub mouse: Option<Mouse>,
}

/// All that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What was chosen for all views.
    pub chosen: Chosen,
    lists: BTreeMap<String, Kept>,
}

/// What is kept of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Kept {
    /// Columns shown or hidden other than by themselves.
    toggled: Vec<String>,
    /// The column that it is sorted by, and which way: `up` or `down`.
    sorted: Option<(String, String)>,
}

/// As it is written down.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    theme: Option<String>,
    glyphs: Option<String>,
    mouse: Option<String>,
    lists: BTreeMap<String, Kept>,
}

/// Where settings are kept, and what was there.
#[derive(Clone, Debug, Default)]
pub struct Keeper {
    /// The file; `None`: nothing is kept.
    pub path: Option<PathBuf>,
    /// What it held.
    pub settings: Settings,
    /// Why it could not be used, in one sentence.
    pub said: Option<String>,
}

impl Keeper {
    /// What the file at `path` holds. One that is not there holds nothing, and one that cannot be used too, and says so.
    pub fn open(path: Option<PathBuf>) -> Keeper {
        let read = path.as_deref().map(read).unwrap_or_else(|| Ok(Settings::default()));
        let (settings, said) = match read {
            Ok(settings) => (settings, None),
            Err(said) => (Settings::default(), Some(said)),
        };
        Keeper { path, settings, said }
    }

    /// Writes down what `model` has now, if that is other than what was there.
    ///
    /// # Errors
    /// One sentence.
    pub fn keep(&self, model: &Model) -> Result<(), String> {
        let now = Settings::of(model);
        match &self.path {
            Some(path) if now != self.settings => write(path, &now),
            _ => Ok(()),
        }
    }
}

impl Settings {
    /// What `model` has that is to be kept.
    fn of(model: &Model) -> Settings {
        let mut lists = BTreeMap::new();
        for list in List::ALL {
            let arranged = model.lists.of(list);
            let name = |column: usize| list.columns().get(column).map(|column| named(column.name));
            let toggled = (0..list.columns().len()).filter(|at| arranged.toggled >> at & 1 == 1).filter_map(name);
            let toggled: Vec<String> = toggled.map(str::to_owned).collect();
            let order = arranged.order.as_ref().map(|order| (order.column, order.way)).or(arranged.wanted);
            let sorted = order.and_then(|(column, way)| Some((name(column)?.to_owned(), spelled(way).to_owned())));
            let kept = Kept { toggled, sorted };
            if kept != Kept::default() {
                lists.insert(list_name(list).to_owned(), kept);
            }
        }
        Settings { chosen: model.chosen, lists }
    }

    /// Arranges the lists of `model` as they were. Columns that there are no more are passed over.
    pub fn arrange(&self, model: &mut Model) {
        model.chosen = self.chosen;
        for list in List::ALL {
            let Some(kept) = self.lists.get(list_name(list)) else { continue };
            let place = |name: &str| list.columns().iter().position(|column| named(column.name) == name);
            let arranged = model.lists.of_mut(list);
            arranged.toggled = kept.toggled.iter().filter_map(|name| place(name)).fold(0, |bits, at| bits | 1 << at);
            arranged.wanted = kept.sorted.as_ref().and_then(|(name, way)| Some((place(name)?, way_of(way)?)));
        }
    }
}

fn list_name(list: List) -> &'static str {
    match list {
        List::Threads => "threads",
        List::Slots => "slots",
        List::Workers => "workers",
        List::Streams => "streams",
        List::Rings => "rings",
        List::Alarms => "alarms",
        List::Environment => "environment",
        List::Cores => "cores",
        List::Log => "log",
        List::Actions => "actions",
        List::Compare => "compare",
    }
}

fn named(column: &'static str) -> &'static str {
    if column.is_empty() { UNNAMED } else { column }
}

fn spelled(way: Way) -> &'static str {
    match way {
        Way::Up => "up",
        Way::Down => "down",
    }
}

fn way_of(text: &str) -> Option<Way> {
    [Way::Up, Way::Down].into_iter().find(|way| spelled(*way) == text)
}

const GLYPHS: [(&str, Glyphs); 2] = [("utf-8", Glyphs::Utf8), ("ascii", Glyphs::Ascii)];
const MICE: [(&str, Mouse); 2] = [("on", Mouse::On), ("off", Mouse::Off)];

fn read(path: &Path) -> Result<Settings, String> {
    let refused = |found: String| {
        let path = path.display();
        format!("found {path} {found}, expected the console's settings; they begin anew, remove it or mend it")
    };
    // Nobody named it: a FIFO in its place is not waited for.
    if path.exists() && !path.is_file() {
        return Err(refused("no regular file".to_owned()));
    }
    match files::read_named_text(path, BYTES_MAX as u64) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(refused(format!("not readable ({error})"))),
        Ok(text) => parse(&text).map_err(|said| refused(format!("damaged ({})", cut(&said)))),
    }
}

fn parse(text: &str) -> Result<Settings, String> {
    let Written { theme, glyphs, mouse, lists } = ron::from_str(text).map_err(|error| error.to_string())?;
    let palettes = Palette::ALL.map(|palette| (palette.name(), palette));
    let chosen = Chosen {
        palette: one_of("theme", theme, &palettes)?,
        glyphs: one_of("glyphs", glyphs, &GLYPHS)?,
        mouse: one_of("mouse", mouse, &MICE)?,
    };
    if let Some((_, way)) =
        lists.values().filter_map(|kept| kept.sorted.as_ref()).find(|(_, way)| way_of(way).is_none())
    {
        return Err(format!("order '{way}', not up or down"));
    }
    Ok(Settings { chosen, lists })
}

fn one_of<T: Copy>(what: &str, text: Option<String>, known: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let found = known.iter().find(|(name, _)| *name == text);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    found.map(|(_, value)| Some(*value)).ok_or_else(|| format!("{what} '{text}', not one of {}", names.join(", ")))
}

fn text(settings: &Settings) -> Result<String, String> {
    fn name_of<T: PartialEq>(value: Option<T>, known: &[(&str, T)]) -> Option<String> {
        known.iter().find(|(_, known)| value.as_ref() == Some(known)).map(|(name, _)| (*name).to_owned())
    }
    let written = Written {
        theme: settings.chosen.palette.map(|palette| palette.name().to_owned()),
        glyphs: name_of(settings.chosen.glyphs, &GLYPHS),
        mouse: name_of(settings.chosen.mouse, &MICE),
        lists: settings.lists.clone(),
    };
    ron::ser::to_string_pretty(&written, ron::ser::PrettyConfig::default()).map_err(|error| error.to_string())
}

/// Puts a whole new file in the place of the old one: whoever reads meanwhile sees one of them.
fn write(path: &Path, settings: &Settings) -> Result<(), String> {
    let refused = |error: &dyn std::fmt::Display| {
        let path = path.display();
        format!(
            "found {path} not writable ({error}), expected room to keep the console's settings; --no-settings keeps none"
        )
    };
    let text = text(settings).map_err(|error| refused(&error))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(|error| refused(&error))?;
    let mut output = Output::file(path, "settings").map_err(|error| refused(&error.into_source()))?;
    output.write_all((text + "\n").as_bytes()).and_then(|()| output.commit()).map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests;
