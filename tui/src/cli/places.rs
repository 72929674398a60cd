//! Where profiles are read and runs are kept, inside a checkout and outside one.
//!
//! Looks at directories, makes none. Bounded by the working directory's ancestors and a checkout's profiles.

use super::refusal::Refusal;
use super::say;
use pinwheel_engine::files;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// What decides where things are.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub working_dir: PathBuf,
    pub state_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
}

impl Surroundings {
    /// This process's.
    pub fn of_process() -> Surroundings {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Surroundings {
            working_dir: std::env::current_dir().unwrap_or_default(),
            state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
            config_home: variable("XDG_CONFIG_HOME"),
        }
    }

    /// Where this user's settings are; `None` if the environment names no place.
    pub fn config(&self) -> Option<PathBuf> {
        let absolute = |dir: &Option<PathBuf>| dir.clone().filter(|dir| dir.is_absolute());
        let home = absolute(&self.home).map(|home| home.join(".config"));
        Some(absolute(&self.config_home).or(home)?.join("pinwheel"))
    }
}

/// The nearest directory above (or at) `from` that is a checkout of Pinwheel, if nobody but this user and root may
/// change it, its profiles and what lies beside them. Profiles decide what a run does; one of another user's must not.
///
/// # Errors
/// Who else may change what, in a sentence.
fn checkout(from: &Path) -> Result<Option<&Path>, String> {
    let is_checkout = |dir: &&Path| dir.join("profiles/lab.ron").is_file() && dir.join("engine/Cargo.toml").is_file();
    let Some(root) = from.ancestors().find(is_checkout) else { return Ok(None) };
    let Some(what) = changed_by_others(root) else { return Ok(Some(root)) };
    Err(format!(
        "checkout {}: found that other users may change {what}, expected that only you and root may; its profiles and logs are passed over, name them with --profiles DIR and --logs DIR to use them all the same",
        root.display()
    ))
}

/// What of a checkout other users may change, and who.
fn changed_by_others(root: &Path) -> Option<String> {
    let profiles = root.join("profiles");
    let unread = |error: std::io::Error| Some(format!("{} (it cannot be read: {error})", profiles.display()));
    if let Some(what) = files::directory_altered_by_others(root).or(files::directory_altered_by_others(&profiles)) {
        return Some(what);
    }
    let entries = match profiles.read_dir() {
        Ok(entries) => entries,
        Err(error) => return unread(error),
    };
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => return unread(error),
        };
        // A link to nothing holds nothing.
        let Ok(metadata) = path.metadata() else { continue };
        if let Some(what) = files::replaceable_by_others(&path, &metadata) {
            return Some(what);
        }
    }
    None
}

/// The checkout, if there is one to be used; one that is passed over is said once.
fn usable_checkout(from: &Path) -> Option<&Path> {
    static SAID: Once = Once::new();
    checkout(from).unwrap_or_else(|said| {
        SAID.call_once(|| say::people(&format!("pinwheel: {said}")));
        None
    })
}

/// The directory of profiles: the one named, else the checkout's.
///
/// # Errors
/// When the one named is no directory.
pub fn profiles(named: Option<&Path>, around: &Surroundings) -> Result<Option<PathBuf>, Refusal> {
    match named {
        Some(dir) if dir.is_dir() => Ok(Some(dir.to_owned())),
        Some(dir) => Err(Refusal::unusable(
            format!("--profiles {}", dir.display()),
            if dir.exists() { "a file" } else { "no such directory" },
            "a directory of .ron files",
            "name one, or leave it out for the profiles built in",
        )),
        None => Ok(usable_checkout(&around.working_dir).map(|root| root.join("profiles"))),
    }
}

/// The directory of runs: the one named, else the checkout's, else the user's state directory.
///
/// # Errors
/// When there is none of these.
pub fn logs(named: Option<&Path>, around: &Surroundings) -> Result<PathBuf, Refusal> {
    if let Some(dir) = named {
        return Ok(dir.to_owned());
    }
    if let Some(root) = usable_checkout(&around.working_dir) {
        return Ok(root.join("logs"));
    }
    state(around).ok_or_else(|| {
        Refusal::unusable(
            "logs directory",
            "neither $XDG_STATE_HOME nor $HOME set",
            "one of them",
            "name a directory with --logs DIR",
        )
    })
}

/// The file of this host's key; `None` if the environment names no place for it.
pub fn host_key(around: &Surroundings) -> Option<PathBuf> {
    state(around).map(|state| state.join("host.key"))
}

/// Where this user's things are kept that are no run's; `None` if the environment names no place.
pub fn state(around: &Surroundings) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path is to be ignored.
    let state = around.state_home.as_deref().filter(|dir| dir.is_absolute()).map(Path::to_owned);
    let home = around.home.as_deref().filter(|dir| dir.is_absolute()).map(|home| home.join(".local/state"));
    Some(state.or(home)?.join("pinwheel"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Surroundings, checkout, logs, profiles};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// A checkout that only this user may change, whatever the umask is.
    fn made() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in ["profiles/lab.ron", "engine/Cargo.toml", "tui/src/main.rs"] {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), "").unwrap();
        }
        set_mode(&root.path().join("profiles"), 0o755);
        set_mode(&root.path().join("profiles/lab.ron"), 0o644);
        root
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_checkout_that_others_may_change_is_passed_over_and_what_they_may_change_is_named() {
        let root = made();
        let from = root.path().join("tui/src");
        assert_eq!(checkout(&from), Ok(Some(root.path())));
        fs::write(root.path().join("profiles/keys.ron"), "").unwrap();
        set_mode(&root.path().join("profiles/keys.ron"), 0o644);
        for (part, open, closed) in [
            ("", 0o777, 0o700),
            ("profiles", 0o777, 0o755),
            ("profiles/lab.ron", 0o666, 0o644),
            ("profiles/keys.ron", 0o666, 0o644),
        ] {
            let path = root.path().join(part);
            set_mode(&path, open);
            let said = checkout(&from).unwrap_err();
            let what = path.to_str().unwrap().trim_end_matches('/');
            assert!(said.contains(what) && said.contains("--profiles DIR"), "{said}");
            let around = Surroundings {
                working_dir: from.clone(),
                state_home: Some(PathBuf::from("/state")),
                ..Surroundings::default()
            };
            assert_eq!(profiles(None, &around).unwrap(), None);
            assert_eq!(logs(None, &around).unwrap(), Path::new("/state/pinwheel"));
            set_mode(&path, closed);
        }
        assert_eq!(checkout(&from), Ok(Some(root.path())));
    }

    #[test]
    fn a_checkout_keeps_its_own_runs() {
        let root = made();
        let around = Surroundings { working_dir: root.path().join("tui/src"), ..Surroundings::default() };
        assert_eq!(logs(None, &around).unwrap(), root.path().join("logs"));
        assert_eq!(profiles(None, &around).unwrap(), Some(root.path().join("profiles")));
    }

    #[test]
    fn outside_a_checkout_runs_go_to_the_state_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut around = Surroundings {
            working_dir: dir.path().to_owned(),
            state_home: Some(PathBuf::from("/state")),
            home: Some(PathBuf::from("/home/u")),
            config_home: None,
        };
        assert_eq!(logs(None, &around).unwrap(), Path::new("/state/pinwheel"));
        around.state_home = Some(PathBuf::from("relative"));
        assert_eq!(logs(None, &around).unwrap(), Path::new("/home/u/.local/state/pinwheel"));
        around.home = None;
        assert!(logs(None, &around).unwrap_err().to_string().contains("--logs DIR"));
        assert_eq!(logs(Some(Path::new("here")), &around).unwrap(), Path::new("here"));
        assert_eq!(profiles(None, &around).unwrap(), None);
    }

    #[test]
    fn a_named_directory_of_profiles_must_exist() {
        let said = profiles(Some(Path::new("/no/such")), &Surroundings::default()).unwrap_err().to_string();
        assert!(said.contains("no such directory"), "{said}");
    }
}
