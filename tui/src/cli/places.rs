//! Finds the directories of profiles and runs, inside a checkout and outside.
//!
//! Reads directories, creates none. Bounded by the working directory's ancestors and a checkout's
//! profiles.

use super::refusal::Refusal;
use super::say;
use pinwheel_engine::files;
use pinwheel_report::recorded;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The directories of the process and its user, from the environment.
#[derive(Clone, Debug, Default)]
pub struct UserPaths {
    pub working_dir: PathBuf,
    pub state_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
}

impl UserPaths {
    pub fn of_process() -> UserPaths {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        UserPaths {
            working_dir: std::env::current_dir().unwrap_or_default(),
            state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
            config_home: variable("XDG_CONFIG_HOME"),
        }
    }

    /// Directory of the user's settings; `None` if the environment names none.
    pub fn config(&self) -> Option<PathBuf> {
        let absolute = |dir: &Option<PathBuf>| dir.clone().filter(|dir| dir.is_absolute());
        let home = absolute(&self.home).map(|home| home.join(".config"));
        Some(absolute(&self.config_home).or(home)?.join("pinwheel"))
    }
}

/// The nearest checkout of Pinwheel at or above `from`, if only this user and root may change it,
/// its profiles and the files beside them. Profiles control a run, so another user must not be able
/// to change them.
///
/// # Errors
/// One sentence on what other users may change.
fn checkout(from: &Path) -> Result<Option<&Path>, String> {
    let is_checkout = |dir: &&Path| dir.join("profiles/lab.ron").is_file() && dir.join("engine/Cargo.toml").is_file();
    let Some(root) = from.ancestors().find(is_checkout) else { return Ok(None) };
    let Some(what) = changed_by_others(root) else { return Ok(Some(root)) };
    Err(format!(
        "checkout {}: found that other users may change {what}, expected that only you and root may; its profiles and logs are ignored, use --profiles DIR and --logs DIR to use them anyway",
        root.display()
    ))
}

/// The part of a checkout that other users may change, and which users.
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
        // A dangling link is harmless.
        let Ok(metadata) = path.metadata() else { continue };
        if let Some(what) = files::replaceable_by_others(&path, &metadata) {
            return Some(what);
        }
    }
    None
}

/// The checkout, if it may be used. The first call reports a checkout that may not.
fn usable_checkout(from: &Path) -> Option<&Path> {
    static SAID: Once = Once::new();
    checkout(from).unwrap_or_else(|said| {
        SAID.call_once(|| say::people(&format!("pinwheel: {said}")));
        None
    })
}

/// The directory of profiles: `named`, else the checkout's.
///
/// # Errors
/// If `named` is no directory.
pub fn profiles(named: Option<&Path>, user_paths: &UserPaths) -> Result<Option<PathBuf>, Refusal> {
    match named {
        Some(dir) if dir.is_dir() => Ok(Some(dir.to_owned())),
        Some(dir) => Err(Refusal::unusable(
            format!("--profiles {}", dir.display()),
            if dir.exists() { "a file" } else { "no such directory" },
            "a directory of .ron files",
            "name one, or omit the option to use the built-in profiles",
        )),
        None => Ok(usable_checkout(&user_paths.working_dir).map(|root| root.join("profiles"))),
    }
}

/// The directory of runs: `named`, else the checkout's, else the user's state directory.
///
/// # Errors
/// If none of these exists.
pub fn logs(named: Option<&Path>, user_paths: &UserPaths) -> Result<PathBuf, Refusal> {
    if let Some(dir) = named {
        return Ok(dir.to_owned());
    }
    if let Some(root) = usable_checkout(&user_paths.working_dir) {
        return Ok(root.join("logs"));
    }
    state(user_paths).ok_or_else(|| {
        Refusal::unusable(
            "logs directory",
            "neither $XDG_STATE_HOME nor $HOME set",
            "one of them",
            "name a directory with --logs DIR",
        )
    })
}

/// The file of this host's key; `None` if the environment names no state directory.
pub fn host_key(user_paths: &UserPaths) -> Option<PathBuf> {
    state(user_paths).as_deref().map(recorded::host_key)
}

/// The user's state directory; `None` if the environment names none.
pub fn state(user_paths: &UserPaths) -> Option<PathBuf> {
    recorded::state_directory(user_paths.state_home.as_deref(), user_paths.home.as_deref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{UserPaths, checkout, logs, profiles};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    /// A checkout that only this user may change, independent of the umask.
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
            let user_paths = UserPaths {
                working_dir: from.clone(),
                state_home: Some(PathBuf::from("/state")),
                ..UserPaths::default()
            };
            assert_eq!(profiles(None, &user_paths).unwrap(), None);
            assert_eq!(logs(None, &user_paths).unwrap(), Path::new("/state/pinwheel"));
            set_mode(&path, closed);
        }
        assert_eq!(checkout(&from), Ok(Some(root.path())));
    }

    #[test]
    fn a_checkout_keeps_its_own_runs() {
        let root = made();
        let user_paths = UserPaths { working_dir: root.path().join("tui/src"), ..UserPaths::default() };
        assert_eq!(logs(None, &user_paths).unwrap(), root.path().join("logs"));
        assert_eq!(profiles(None, &user_paths).unwrap(), Some(root.path().join("profiles")));
    }

    #[test]
    fn outside_a_checkout_runs_go_to_the_state_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut user_paths = UserPaths {
            working_dir: dir.path().to_owned(),
            state_home: Some(PathBuf::from("/state")),
            home: Some(PathBuf::from("/home/u")),
            config_home: None,
        };
        assert_eq!(logs(None, &user_paths).unwrap(), Path::new("/state/pinwheel"));
        user_paths.state_home = Some(PathBuf::from("relative"));
        assert_eq!(logs(None, &user_paths).unwrap(), Path::new("/home/u/.local/state/pinwheel"));
        user_paths.home = None;
        assert!(logs(None, &user_paths).unwrap_err().to_string().contains("--logs DIR"));
        assert_eq!(logs(Some(Path::new("here")), &user_paths).unwrap(), Path::new("here"));
        assert_eq!(profiles(None, &user_paths).unwrap(), None);
    }

    #[test]
    fn a_named_directory_of_profiles_must_exist() {
        let said = profiles(Some(Path::new("/no/such")), &UserPaths::default()).unwrap_err().to_string();
        assert!(said.contains("no such directory"), "{said}");
    }
}
