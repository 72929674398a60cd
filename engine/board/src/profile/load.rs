//! Loads a profile by name or path and checks it.
//!
//! Owns the embedded profiles and the search for files. Cold; bounded by [`FILE_BYTES_MAX`] and
//! [`ENTRIES_MAX`]. Never writes. Refuses a program to run from a file that other users may change.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::files;
use crate::quote::cut;

use super::alarms::OnAlarm;
use super::check::NAME_BYTES_MAX;
use super::finding::{Finding, ProfileError, from_range, from_ron, unknown_base};
use super::full::bare;
use super::layer::{self, BASE};
use super::locate;
use super::schema::Profile;

/// Largest profile read, bytes: several times an explicit plan of a thousand threads.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most profiles of a directory that are listed, the first by name.
pub const ENTRIES_MAX: usize = 1024;
/// The profile of a start without arguments.
pub const DEFAULT_NAME: &str = "lab";

/// Name of the base in `base:`, and where a profile is named.
const BASE_NAME: &str = "base";
/// The profiles that the binary carries, in the order in which they are listed.
const EMBEDDED: [(&str, &str); 4] = [
    ("prod", include_str!("../../../../profiles/prod.ron")),
    ("lab", include_str!("../../../../profiles/lab.ron")),
    ("shared", include_str!("../../../../profiles/shared.ron")),
    ("drill", include_str!("../../../../profiles/drill.ron")),
];

/// Where a profile came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// The binary itself, under this name.
    Embedded(&'static str),
}

impl Origin {
    /// The profile's name: its file's stem, or the name it is embedded under.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Embedded(name) => (*name).to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Embedded(name) => write!(f, "embedded:{name}"),
        }
    }
}

fn lossy<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}

/// One line of a list of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileEntry {
    /// Name by which it is loaded.
    pub name: String,
    /// Its file; none for an embedded one.
    #[serde(serialize_with = "lossy")]
    pub path: Option<PathBuf>,
    /// Its summary; of an invalid profile, the error.
    pub summary: String,
    /// Whether it can be loaded.
    pub valid: bool,
}

impl Profile {
    /// Loads a profile by name (`DIR/NAME.ron`, else the embedded one) or by path (anything with a `/` or `.ron`).
    ///
    /// # Errors
    /// When nothing has that name, when the file cannot be read, when its text is not a profile in range, and when it
    /// names a program although other users may change the file.
    pub fn load(name_or_path: &str, dir: Option<&Path>) -> Result<(Self, Origin), ProfileError> {
        usable(name_or_path, dir, files::open_named).map(|(profile, found)| (profile, found.origin))
    }

    /// As [`Profile::load`], in a running engine, which waits for no writer of a FIFO: a FIFO is refused.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn load_unwaited(name_or_path: &str, dir: Option<&Path>) -> Result<(Self, Origin), ProfileError> {
        usable(name_or_path, dir, files::open_unnamed).map(|(profile, found)| (profile, found.origin))
    }

    /// Its text in the format of a file, from which it can be loaded again.
    ///
    /// # Errors
    /// If it has values that no valid profile has.
    pub fn to_ron(&self) -> Result<String, ron::Error> {
        ron::ser::to_string_pretty(self, ron::ser::PrettyConfig::new()).map(|text| bare(&text) + "\n")
    }

    /// The values of the fields that a profile leaves out.
    ///
    /// # Panics
    /// If the embedded base is not a valid profile; a test reads it.
    pub fn base() -> Self {
        ron::from_str(BASE).unwrap_or_else(|error| panic!("base.ron: {error}"))
    }

    /// Reads and checks a profile's text; `file` names it in errors. Omitted fields have the base's
    /// values.
    ///
    /// # Errors
    /// When the text is not a profile in range, or names an unknown base.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        let over =
            |base| layer::read(text, &base).map_err(|error| ProfileError::Malformed(from_ron(file, text, &error)));
        // `base` may appear anywhere in the text, so the text is first read over the unnamed base.
        let (mut profile, named) = over(Self::base())?;
        if let Some(name) = named.filter(|name| name != BASE_NAME) {
            let (_, base) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name).ok_or_else(|| {
                let known: Vec<&str> = [BASE_NAME].into_iter().chain(EMBEDDED.map(|(name, _)| name)).collect();
                ProfileError::Malformed(unknown_base(file, text, &name, &known))
            })?;
            profile = over(Self::parse(base, &name)?)?.0;
        }
        let errors = profile.validate();
        if errors.is_empty() {
            return Ok(profile);
        }
        let fields = locate::fields(text);
        let positions = locate::positions(&fields);
        let findings = errors.into_iter().map(|error| from_range(file, &positions, error)).collect();
        Err(ProfileError::OutOfRange(findings))
    }
}

/// Whether a profile may have this name; `file` is what it was read from.
///
/// # Errors
/// When it is longer than [`NAME_BYTES_MAX`].
pub fn check_name(name: &str, file: &str) -> Result<(), ProfileError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(ProfileError::Unreadable(Finding {
        file: file.to_owned(),
        line: 0,
        column: 0,
        found: format!("a name of {} bytes", name.len()),
        expected: format!("at most {NAME_BYTES_MAX} bytes"),
        remedy: "give the file a shorter name".to_owned(),
    }))
}

/// The text of a profile as written, with comments, found as [`Profile::load`] finds it.
///
/// # Errors
/// When nothing has that name and when the file cannot be read as text.
pub fn text(name_or_path: &str, dir: Option<&Path>) -> Result<(String, Origin), ProfileError> {
    find(name_or_path, dir, files::open_named).map(|found| (found.text, found.origin))
}

/// The text of a profile that [`Profile::load`] would accept, for an engine that parses it itself.
///
/// # Errors
/// As [`Profile::load`].
pub fn usable_text(name_or_path: &str, dir: Option<&Path>) -> Result<(String, Origin), ProfileError> {
    usable(name_or_path, dir, files::open_named).map(|(_, found)| (found.text, found.origin))
}

/// Opens the file that a profile's path names.
type OpenPath = fn(&Path) -> std::io::Result<File>;

fn usable(name_or_path: &str, dir: Option<&Path>, open: OpenPath) -> Result<(Profile, ProfileSource), ProfileError> {
    let found = find(name_or_path, dir, open)?;
    check_name(&found.origin.name(), &found.origin.to_string())?;
    let profile = Profile::parse(&found.text, &found.origin.to_string())?;
    if let (OnAlarm::Exec(_), Origin::File(path), Some(file)) = (&profile.on_alarm, &found.origin, &found.file)
        && let Some(who) = files::replaceable_by_others(path, file)
    {
        return Err(ProfileError::Untrusted(untrusted(path, &found.text, &who)));
    }
    Ok((profile, found))
}

/// A profile's text, its place, and the owner and mode of the opened file.
struct ProfileSource {
    text: String,
    origin: Origin,
    file: Option<Metadata>,
}

fn find(name_or_path: &str, dir: Option<&Path>, open: OpenPath) -> Result<ProfileSource, ProfileError> {
    let of_file = |path: PathBuf, open: OpenPath| {
        let (text, file) = read(&path, open)?;
        Ok(ProfileSource { text, origin: Origin::File(path), file: Some(file) })
    };
    let is_path = name_or_path.contains(['/', '\\']) || name_or_path.ends_with(".ron");
    if is_path {
        return of_file(PathBuf::from(name_or_path), open);
    }
    if let Some(path) = dir.and_then(|dir| file_in(dir, name_or_path)) {
        return of_file(path, files::open_unnamed);
    }
    [(BASE_NAME, BASE)]
        .iter()
        .chain(&EMBEDDED)
        .find(|(name, _)| *name == name_or_path)
        .map(|(name, text)| ProfileSource { text: (*text).to_owned(), origin: Origin::Embedded(name), file: None })
        .ok_or_else(|| unknown(name_or_path, dir))
}

/// A program in a file that `who` may change.
fn untrusted(path: &Path, text: &str, who: &str) -> Finding {
    let position = locate::position_of(&locate::positions(&locate::fields(text)), "on_alarm");
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Finding {
        file: path.display().to_string(),
        line: position.line,
        column: position.column,
        found: format!("a program to run in on_alarm, and other users may change {who}"),
        expected: "a program only in a profile that no other user may change".to_owned(),
        remedy: format!(
            "make {0} and {1} your own and run chmod go-w on both, or set on_alarm: None",
            path.display(),
            directory.display()
        ),
    }
}

/// All profiles: the embedded ones or the files that replace them, then the other files of `dir` by name.
pub fn list(dir: Option<&Path>) -> Vec<ProfileEntry> {
    names(dir).into_iter().map(|name| entry(name, dir)).collect()
}

/// Names of the profiles that [`list`] reads, in its order.
pub fn names(dir: Option<&Path>) -> Vec<String> {
    let mut names: Vec<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let others = dir.map(names_in).unwrap_or_default().into_iter().filter(|name| !names.contains(name));
    let others: Vec<String> = others.collect();
    names.extend(others);
    names
}

fn entry(name: String, dir: Option<&Path>) -> ProfileEntry {
    let file = dir.and_then(|dir| file_in(dir, &name));
    match Profile::load(&name, dir) {
        Ok((profile, _)) => ProfileEntry { name, path: file, summary: profile.summary, valid: true },
        Err(error) => ProfileEntry { name, path: file, summary: error.to_string(), valid: false },
    }
}

/// The file of the profile `name`. A link that leads nowhere is one: it was meant to replace what
/// is built in.
fn file_in(dir: &Path, name: &str) -> Option<PathBuf> {
    let path = dir.join(format!("{name}.ron"));
    path.symlink_metadata().is_ok().then_some(path)
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return names };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "ron")) {
        let name = path.file_stem().and_then(|name| name.to_str());
        // The files of the console's keys and colours are in the same directory and are not
        // profiles.
        names.extend(name.filter(|name| !["keys", "theme"].contains(name)).map(str::to_owned));
        if names.len() > ENTRIES_MAX {
            names.pop_last();
        }
    }
    names
}

fn read(path: &Path, open: OpenPath) -> Result<(String, Metadata), ProfileError> {
    let unreadable = |found: String, expected: &str, remedy: &str| {
        ProfileError::Unreadable(Finding {
            file: path.display().to_string(),
            line: 0,
            column: 0,
            found,
            expected: expected.to_owned(),
            remedy: remedy.to_owned(),
        })
    };
    let io = |error: std::io::Error| {
        let remedy = "check the path and its permissions; `pinwheel profiles list` shows what there is";
        unreadable(error.to_string(), "a readable profile", remedy)
    };
    let file = open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    let bytes = files::read_up_to(file, FILE_BYTES_MAX).map_err(|error| match error {
        files::OpenError::System(error) => io(error),
        _ => {
            let found = format!("more than {FILE_BYTES_MAX} bytes");
            unreadable(found, "a profile of a few hundred lines", "name a profile, not a data file")
        }
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let found = format!("invalid UTF-8 at offset {}", error.utf8_error().valid_up_to());
        unreadable(found, "a text", "save the file as UTF-8")
    })?;
    Ok((text, metadata))
}

fn unknown(name: &str, dir: Option<&Path>) -> ProfileError {
    let looked = dir.map_or_else(|| "profiles of the program".to_owned(), |dir| dir.display().to_string());
    ProfileError::Unknown(Finding {
        file: looked,
        line: 0,
        column: 0,
        found: format!("no profile {:?}", cut(name)),
        expected: format!("one of {}", names(dir).join(", ")),
        remedy: "name one of these, a path that ends in .ron, or its directory with --profiles DIR".to_owned(),
    })
}
