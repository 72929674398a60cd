//! Settings that the console keeps between starts: theme, glyphs, mouse, hidden panels; each list's
//! columns and order.
//!
//! Defines the format of `console.ron` in the user's state directory. The file is read before the
//! console starts, and written after it ends if the user changed a setting, on the caller's thread.
//! Bounds: [`BYTES_MAX`] and the number of lists. Filters are not kept, because a forgotten filter
//! hides rows.
//!
//! # Why only changes made in the console are kept
//!
//! An option or an environment variable holds for one start. If it were kept, a theme that a script
//! sets once would stay for all later starts.

use crate::model::Model;
use crate::model::choices::{Chosen, Panel};
use crate::model::lists::{Direction, List};
use clap::ValueEnum;
use pinwheel_engine::files;
use pinwheel_engine::quote::cut;
use pinwheel_engine::record::Output;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Largest settings file, in bytes.
pub const BYTES_MAX: usize = 64 << 10;
/// Name of a column without a heading.
const UNNAMED: &str = "state";

/// All kept settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Settings that hold for all views.
    pub chosen: Chosen,
    lists: BTreeMap<String, ListSettings>,
}

/// Kept settings of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ListSettings {
    /// Columns that the user showed or hid.
    toggled: Vec<String>,
    /// Sort column, and direction: `up` or `down`.
    sorted: Option<(String, String)>,
}

/// The contents of the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileForm {
    theme: Option<String>,
    glyphs: Option<String>,
    mouse: Option<String>,
    /// Panels that the overview leaves out.
    hidden: Vec<String>,
    lists: BTreeMap<String, ListSettings>,
}

/// The settings file and the settings read from it.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// The file; `None` if no settings are kept.
    pub path: Option<PathBuf>,
    /// Settings that the file held.
    pub settings: Settings,
    /// One sentence on why the file could not be used.
    pub said: Option<String>,
}

impl SettingsFile {
    /// Reads the file at `path`. A missing file gives empty settings; so does an unusable file,
    /// with a message.
    pub fn open(path: Option<PathBuf>) -> SettingsFile {
        let read = path.as_deref().map(read).unwrap_or_else(|| Ok(Settings::default()));
        let (settings, said) = match read {
            Ok(settings) => (settings, None),
            Err(said) => (Settings::default(), Some(said)),
        };
        SettingsFile { path, settings, said }
    }

    /// Writes the settings of `model` if they differ from the file's.
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
    /// The settings of `model` to keep.
    fn of(model: &Model) -> Settings {
        let mut lists = BTreeMap::new();
        for list in List::ALL {
            let arranged = model.lists.of(list);
            let name = |column: usize| list.columns().get(column).map(|column| named(column.name));
            let toggled = (0..list.columns().len()).filter(|at| arranged.toggled >> at & 1 == 1).filter_map(name);
            let toggled: Vec<String> = toggled.map(str::to_owned).collect();
            let order = arranged.order.as_ref().map(|order| (order.column, order.direction)).or(arranged.wanted);
            let sorted =
                order.and_then(|(column, direction)| Some((name(column)?.to_owned(), spelled(direction).to_owned())));
            let kept = ListSettings { toggled, sorted };
            if kept != ListSettings::default() {
                lists.insert(list.view().name().to_owned(), kept);
            }
        }
        Settings { chosen: model.chosen, lists }
    }

    /// Restores the list settings in `model`. Ignores unknown columns.
    pub fn arrange(&self, model: &mut Model) {
        model.chosen = self.chosen;
        for list in List::ALL {
            let Some(kept) = self.lists.get(list.view().name()) else { continue };
            let place = |name: &str| list.columns().iter().position(|column| named(column.name) == name);
            let arranged = model.lists.of_mut(list);
            arranged.toggled = kept.toggled.iter().filter_map(|name| place(name)).fold(0, |bits, at| bits | 1 << at);
            arranged.wanted =
                kept.sorted.as_ref().and_then(|(name, direction)| Some((place(name)?, direction_of(direction)?)));
        }
    }
}

fn named(column: &'static str) -> &'static str {
    if column.is_empty() { UNNAMED } else { column }
}

fn spelled(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

fn direction_of(text: &str) -> Option<Direction> {
    [Direction::Up, Direction::Down].into_iter().find(|direction| spelled(*direction) == text)
}

fn read(path: &Path) -> Result<Settings, String> {
    let refused = |found: String| {
        let path = path.display();
        format!("the console's settings file {path} is {found} and is ignored; repair or remove it")
    };
    match files::read_unnamed_text(path, BYTES_MAX as u64) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(refused(format!("not readable ({error})"))),
        Ok(text) => parse(&text).map_err(|said| refused(format!("damaged ({})", cut(&said)))),
    }
}

fn parse(text: &str) -> Result<Settings, String> {
    let FileForm { theme, glyphs, mouse, hidden, lists } = ron::from_str(text).map_err(|error| error.to_string())?;
    let chosen = Chosen {
        palette: one_of("theme", theme)?,
        glyphs: one_of("glyphs", glyphs)?,
        mouse: one_of("mouse", mouse)?,
        // Another version may have other panels.
        hidden: Panel::ALL.map(|panel| hidden.iter().any(|name| name == panel.name())),
    };
    if let Some((_, direction)) =
        lists.values().filter_map(|kept| kept.sorted.as_ref()).find(|(_, direction)| direction_of(direction).is_none())
    {
        return Err(format!("order '{direction}' is not up or down"));
    }
    Ok(Settings { chosen, lists })
}

fn one_of<T: ValueEnum>(what: &str, text: Option<String>) -> Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    let names: Vec<String> = T::value_variants().iter().filter_map(name_of).collect();
    T::from_str(&text, false).map(Some).map_err(|_| format!("{what} '{text}' is not one of {}", names.join(", ")))
}

/// The name as on the command line.
fn name_of<T: ValueEnum>(value: &T) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

fn text(settings: &Settings) -> Result<String, String> {
    let written = FileForm {
        theme: settings.chosen.palette.as_ref().and_then(name_of),
        glyphs: settings.chosen.glyphs.as_ref().and_then(name_of),
        mouse: settings.chosen.mouse.as_ref().and_then(name_of),
        hidden: Panel::ALL
            .into_iter()
            .filter(|panel| settings.chosen.hides(*panel))
            .map(|panel| panel.name().to_owned())
            .collect(),
        lists: settings.lists.clone(),
    };
    ron::ser::to_string_pretty(&written, ron::ser::PrettyConfig::default()).map_err(|error| error.to_string())
}

/// Replaces the file atomically: a concurrent reader sees either the old or the new file.
fn write(path: &Path, settings: &Settings) -> Result<(), String> {
    let refused = |error: &dyn std::fmt::Display| {
        let path = path.display();
        format!("cannot write the console's settings to {path} ({error}); free space there, or use --no-settings")
    };
    let text = text(settings).map_err(|error| refused(&error))?;
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(|error| refused(&error))?;
    let mut output = Output::file(path, "settings").map_err(|error| refused(&error.into_source()))?;
    output.write_all((text + "\n").as_bytes()).and_then(|()| output.commit()).map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests;
