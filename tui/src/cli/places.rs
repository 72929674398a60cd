//! Where profiles are read and runs are kept, inside a checkout and outside one.
//!
//! Looks at directories, makes none. Bounded by the working directory's ancestors.

use super::refusal::Refusal;
use std::path::{Path, PathBuf};

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

/// The nearest directory above (or at) `from` that is a checkout of Pinwheel.
fn checkout(from: &Path) -> Option<&Path> {
    let is_checkout = |dir: &&Path| dir.join("profiles/lab.ron").is_file() && dir.join("engine/Cargo.toml").is_file();
    from.ancestors().find(is_checkout)
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
        None => Ok(checkout(&around.working_dir).map(|root| root.join("profiles"))),
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
    if let Some(root) = checkout(&around.working_dir) {
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
    use super::{Surroundings, logs, profiles};
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_checkout_keeps_its_own_runs() {
        let root = tempfile::tempdir().unwrap();
        for file in ["profiles/lab.ron", "engine/Cargo.toml", "tui/src/main.rs"] {
            fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            fs::write(root.path().join(file), "").unwrap();
        }
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
