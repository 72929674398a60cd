//! Options of the console: colours, glyphs, mouse and keys, from the command line, the environment
//! and the user's files.
//!
//! Reads one file of limited size, writes none.

use super::places::{self, UserPaths};
use super::refusal::Refusal;
use crate::keymap;
use crate::keymap::bound::Keymap;
use crate::model::{Mouse, View};
use crate::settings::SettingsFile;
use crate::term::{self, Delivered};
use crate::theme::{self, Colour, Glyphs, Palette, Theme};
use clap::Args as ClapArgs;
use pinwheel_engine::files;
use pinwheel_engine::profile::{self, OnHangup};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Options of every command with a console.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct ConsoleArgs {
    /// Colours of the console: for a dark or a light background, distinguishable without red and
    /// green, none, or your own of a theme file [default: own if there is such a file, else dark]
    #[arg(long, value_enum, value_name = "THEME")]
    pub theme: Option<Palette>,
    /// File of your own colours, in RON [default: theme.ron in the profiles directory, else in
    /// $XDG_CONFIG_HOME/pinwheel]
    #[arg(long, value_name = "FILE")]
    pub theme_file: Option<PathBuf>,
    /// Number of colours of the terminal [default: from COLORTERM, TERM and NO_COLOR]
    #[arg(long, value_enum, value_name = "DEPTH")]
    pub colour: Option<Colour>,
    /// Glyphs of the console [default: from the locale]
    #[arg(long, value_enum, value_name = "GLYPHS")]
    pub glyphs: Option<Glyphs>,
    /// Mouse events go to the console (on), or to the terminal to select text (off) [default: on]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub mouse: Option<Mouse>,
    /// Neither load nor save settings of the console
    #[arg(long)]
    pub no_settings: bool,
    /// File of keys, in RON [default: keys.ron in the profiles directory, else in
    /// $XDG_CONFIG_HOME/pinwheel]
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

/// The console's first view, and the settings of its engine's profile.
#[derive(Debug, Clone, Copy)]
pub struct FirstScreen {
    pub on_hangup: OnHangup,
    pub view: View,
    /// The profile's theme.
    pub theme: Option<profile::Theme>,
}

impl FirstScreen {
    /// For an engine whose profile is not known.
    pub fn plain(on_hangup: OnHangup, view: View) -> FirstScreen {
        FirstScreen { on_hangup, view, theme: None }
    }
}

impl ConsoleArgs {
    /// The theme without the user's own colours: from the options, else from the environment, read by `variable`.
    fn theme(&self, variable: impl Fn(&str) -> Option<String>) -> Theme {
        let found = Theme::from_variables(variable);
        Theme {
            palette: self.theme.unwrap_or(found.palette),
            colour: self.colour.unwrap_or(found.colour),
            glyphs: self.glyphs.unwrap_or(found.glyphs),
            own: None,
        }
    }

    /// The theme of a screen that is printed: no settings apply, and the user's own colours only if they are named.
    ///
    /// # Errors
    /// If the file of colours cannot be used, or `--theme own` finds none.
    pub fn printed_theme(&self, user_paths: &UserPaths) -> Result<Theme, Refusal> {
        let mut theme = self.theme(|name| std::env::var(name).ok());
        if self.theme_file.is_some() || theme.palette == Palette::Own {
            theme.own = self.own_theme(None, user_paths)?;
            theme.palette = self.theme.unwrap_or(Palette::Own);
        }
        checked(theme)
    }

    /// All options of the console. Command-line options override saved settings, which override the
    /// profile.
    ///
    /// # Errors
    /// If a file of keys or colours cannot be used, or `--theme own` finds none.
    pub fn options(
        &self,
        first: FirstScreen,
        profiles: Option<&Path>,
        user_paths: &UserPaths,
    ) -> Result<term::Options, Refusal> {
        let file = places::state(user_paths).map(|state| state.join("console.ron"));
        let settings = SettingsFile::open(file.filter(|_| !self.no_settings));
        let kept = settings.settings.chosen;
        let mut theme = self.theme(|name| std::env::var(name).ok());
        theme.own = self.own_theme(profiles, user_paths)?;
        if self.theme.is_none() {
            let own = theme.own.map(|_| Palette::Own);
            let named = own.filter(|_| self.theme_file.is_some());
            // What was kept may be a theme file that is gone.
            let kept = kept.palette.filter(|kept| theme.palettes().any(|offered| offered == *kept));
            let chosen = named.or(kept).or(own).or(first.theme.map(palette));
            theme.palette = chosen.unwrap_or(theme.palette);
        }
        let mut theme = checked(theme)?;
        if self.glyphs.is_none() {
            theme.glyphs = kept.glyphs.unwrap_or(theme.glyphs);
        }
        let mouse = self.mouse.or(kept.mouse).unwrap_or_default();
        let FirstScreen { on_hangup, view, .. } = first;
        let keymap = self.keymap(profiles, user_paths)?;
        Ok(term::Options { theme, on_hangup, view, keymap, mouse, settings, is_served: false })
    }

    /// The key bindings: from the named file, else from the first file found, else built in.
    ///
    /// # Errors
    /// If the named file is missing, or a file is no file of keys.
    pub fn keymap(&self, profiles: Option<&Path>, user_paths: &UserPaths) -> Result<Rc<Keymap>, Refusal> {
        let file = Wanted { named: self.keys.as_deref(), name: "keys.ron", what: "keys", option: "--keys" };
        let read = file.read(profiles, user_paths, keymap::file::BYTES_MAX, |text| {
            Keymap::from_text(text).map_err(|error| error.to_string())
        });
        Ok(read?.map(Rc::new).unwrap_or_default())
    }

    /// The user's own colours: from the named file, else from the first file found.
    ///
    /// # Errors
    /// If the named file is missing, or a file is no file of colours.
    fn own_theme(&self, profiles: Option<&Path>, user_paths: &UserPaths) -> Result<Option<theme::file::Own>, Refusal> {
        let named = self.theme_file.as_deref();
        let file = Wanted { named, name: "theme.ron", what: "colours", option: "--theme-file" };
        file.read(profiles, user_paths, theme::file::BYTES_MAX, |text| {
            theme::file::read(text).map_err(|error| error.to_string())
        })
    }
}

/// A file of the console's options.
struct Wanted<'a> {
    /// Given on the command line.
    named: Option<&'a Path>,
    /// Its name in the directories that are searched otherwise.
    name: &'a str,
    what: &'a str,
    option: &'a str,
}

impl Wanted<'_> {
    /// What `parse` makes of the file's text. Without a named file: of the first of the profiles
    /// directory's and the user's; `None` if there is neither.
    fn read<T>(
        &self,
        profiles: Option<&Path>,
        user_paths: &UserPaths,
        bytes_max: usize,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let candidates = match self.named {
            Some(named) => vec![named.to_owned()],
            None => profiles
                .into_iter()
                .map(Path::to_owned)
                .chain(user_paths.config())
                .map(|dir| dir.join(self.name))
                .collect(),
        };
        for path in candidates {
            let read = if self.named.is_none() { files::read_unnamed_text } else { files::read_named_text };
            match read(&path, bytes_max as u64) {
                Err(error) if error.kind() == ErrorKind::NotFound && self.named.is_none() => {}
                Err(error) => {
                    return Err(Refusal::unusable(
                        path.display().to_string(),
                        error.to_string(),
                        format!("a file of {} of at most {bytes_max} bytes", self.what),
                        format!("name another with {}", self.option),
                    ));
                }
                Ok(text) => {
                    let refused = |error| Refusal::Usage(format!("{}: {error}", path.display()));
                    return parse(&text).map(Some).map_err(refused);
                }
            }
        }
        Ok(None)
    }
}

/// Refuses the user's own colours where there are none.
fn checked(theme: Theme) -> Result<Theme, Refusal> {
    if theme.palette == Palette::Own && theme.own.is_none() {
        let said = "found no theme.ron, expected one for --theme own; name it with --theme-file";
        return Err(Refusal::Usage(said.to_owned()));
    }
    Ok(theme)
}

fn palette(theme: profile::Theme) -> Palette {
    match theme {
        profile::Theme::Dark => Palette::Dark,
        profile::Theme::Light => Palette::Light,
        profile::Theme::ColourBlind => Palette::ColourBlind,
        profile::Theme::Mono => Palette::Mono,
    }
}

/// Reports settings that could not be saved.
pub fn say_unsaved(shown: &term::Outcome) {
    if let Some(said) = shown.unsaved.as_ref().filter(|_| shown.delivered == Delivered::Yes) {
        super::say::people(&format!("pinwheel: {said}"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Colour, ConsoleArgs, FirstScreen, Mouse, OnHangup, Palette, View, profile};
    use crate::cli::places::UserPaths;
    use crate::keymap::bound::Keymap;
    use std::path::PathBuf;

    #[test]
    fn an_option_beats_the_environment() {
        let console = ConsoleArgs { theme: Some(Palette::Light), colour: Some(Colour::True), ..ConsoleArgs::default() };
        let theme = console.theme(|name| (name == "NO_COLOR").then(|| "1".to_owned()));
        assert_eq!((theme.palette, theme.colour), (Palette::Light, Colour::True));
    }

    #[test]
    fn an_option_beats_what_was_kept_and_that_beats_the_profile() {
        let state = tempfile::tempdir().unwrap();
        let user_paths = UserPaths { state_home: Some(state.path().to_owned()), ..UserPaths::default() };
        let first =
            FirstScreen { theme: Some(profile::Theme::Light), ..FirstScreen::plain(OnHangup::Detach, View::Overview) };
        let found = |console: &ConsoleArgs| {
            let options = console.options(first, None, &user_paths).unwrap();
            (options.theme.palette, options.mouse, options.settings.path.is_some())
        };
        let console = ConsoleArgs::default();
        assert_eq!(found(&console), (Palette::Light, Mouse::On, true));
        std::fs::create_dir(state.path().join("pinwheel")).unwrap();
        let kept = "(theme: Some(\"mono\"), mouse: Some(\"off\"))";
        std::fs::write(state.path().join("pinwheel/console.ron"), kept).unwrap();
        assert_eq!(found(&console), (Palette::Mono, Mouse::Off, true));
        let named = ConsoleArgs { theme: Some(Palette::Dark), mouse: Some(Mouse::On), ..ConsoleArgs::default() };
        assert_eq!(found(&named), (Palette::Dark, Mouse::On, true));
        let none = ConsoleArgs { no_settings: true, ..ConsoleArgs::default() };
        assert_eq!(found(&none), (Palette::Light, Mouse::On, false));
    }

    #[test]
    fn a_theme_file_beats_the_profile_and_what_was_kept_or_named_beats_the_file() {
        let (config, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let user_paths = UserPaths {
            config_home: Some(config.path().to_owned()),
            state_home: Some(state.path().to_owned()),
            ..UserPaths::default()
        };
        let first =
            FirstScreen { theme: Some(profile::Theme::Light), ..FirstScreen::plain(OnHangup::Detach, View::Overview) };
        let found = |console: &ConsoleArgs| console.options(first, None, &user_paths).map(|o| o.theme.palette);
        let own = ConsoleArgs { theme: Some(Palette::Own), ..ConsoleArgs::default() };
        let said = found(&own).unwrap_err().to_string();
        assert!(said.contains("found no theme.ron") && said.contains("--theme-file"), "{said}");
        std::fs::create_dir(config.path().join("pinwheel")).unwrap();
        std::fs::write(config.path().join("pinwheel/theme.ron"), "(base: \"dark\", warn: \"light-red\")").unwrap();
        assert_eq!(found(&ConsoleArgs::default()).unwrap(), Palette::Own);
        assert_eq!(found(&own).unwrap(), Palette::Own);
        std::fs::create_dir(state.path().join("pinwheel")).unwrap();
        std::fs::write(state.path().join("pinwheel/console.ron"), "(theme: Some(\"mono\"))").unwrap();
        assert_eq!(found(&ConsoleArgs::default()).unwrap(), Palette::Mono);
        let named = config.path().join("other.ron");
        let file = ConsoleArgs { theme_file: Some(named.clone()), ..ConsoleArgs::default() };
        assert!(found(&file).unwrap_err().to_string().contains("other.ron"), "a named file must be there");
        std::fs::write(&named, "(base: \"dark\", bad: \"#101010\")").unwrap();
        let said = found(&file).unwrap_err().to_string();
        assert!(said.contains("other.ron: bad: '#101010' cannot be read"), "{said}");
        std::fs::write(&named, "(base: \"light\")").unwrap();
        assert_eq!(found(&file).unwrap(), Palette::Own);
        // A printed screen has these colours only if they are named.
        let printed = |console: &ConsoleArgs| console.printed_theme(&user_paths).map(|theme| theme.palette);
        assert_eq!(printed(&file).unwrap(), Palette::Own);
        assert_eq!(printed(&own).unwrap(), Palette::Own);
        assert_ne!(printed(&ConsoleArgs::default()).unwrap(), Palette::Own);
        let dark = ConsoleArgs { theme: Some(Palette::Dark), ..file.clone() };
        assert_eq!((printed(&dark).unwrap(), found(&dark).unwrap()), (Palette::Dark, Palette::Dark));
        // A theme of one's own was chosen, and its file is gone.
        std::fs::write(state.path().join("pinwheel/console.ron"), "(theme: Some(\"own\"))").unwrap();
        std::fs::remove_file(config.path().join("pinwheel/theme.ron")).unwrap();
        assert_eq!(found(&ConsoleArgs::default()).unwrap(), Palette::Light);
        assert!(printed(&own).unwrap_err().to_string().contains("found no theme.ron"));
    }

    #[test]
    fn a_fifo_in_the_place_of_the_keys_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let profiles = tempfile::tempdir().unwrap();
        let path = profiles.path().join("keys.ron");
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let said = ConsoleArgs::default().keymap(Some(profiles.path()), &UserPaths::default()).unwrap_err();
        assert!(said.to_string().contains("found a FIFO"), "{said}");
    }

    #[test]
    fn keys_come_from_the_file_named_then_the_profiles_then_the_user() {
        let (profiles, config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let user_paths = UserPaths { config_home: Some(config.path().to_owned()), ..UserPaths::default() };
        let keys = |console: &ConsoleArgs| console.keymap(Some(profiles.path()), &user_paths);
        let console = ConsoleArgs::default();
        assert_eq!(*keys(&console).unwrap(), Keymap::default());
        std::fs::create_dir(config.path().join("pinwheel")).unwrap();
        let user = r#"{ "views": { "freeze": ["F1"] } }"#;
        std::fs::write(config.path().join("pinwheel/keys.ron"), user).unwrap();
        assert_eq!(*keys(&console).unwrap(), Keymap::from_text(user).unwrap());
        let shared = r#"{ "views": { "freeze": ["F2"] } }"#;
        std::fs::write(profiles.path().join("keys.ron"), shared).unwrap();
        assert_eq!(*keys(&console).unwrap(), Keymap::from_text(shared).unwrap());
        let named = ConsoleArgs { keys: Some(PathBuf::from("/no/such/file")), ..ConsoleArgs::default() };
        assert!(keys(&named).unwrap_err().to_string().contains("/no/such/file"));
        std::fs::write(profiles.path().join("keys.ron"), "nonsense").unwrap();
        let said = keys(&console).unwrap_err().to_string();
        assert!(said.contains("keys.ron") && said.contains("1:1"), "{said}");
    }

    #[test]
    fn endless_keys_are_refused_unread_and_a_long_name_in_them_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.ron");
        let said = |path: &std::path::Path| {
            let console = ConsoleArgs { keys: Some(path.to_owned()), ..ConsoleArgs::default() };
            console.keymap(None, &UserPaths::default()).unwrap_err().to_string()
        };
        assert!(said("/dev/zero".as_ref()).contains("found a device"));
        std::fs::write(&keys, format!("{{\"{}\": {{}}}}", "x".repeat(60_000))).unwrap();
        let cut = said(&keys);
        assert!(cut.contains("bytes omitted") && cut.len() < 1_000, "{} bytes", cut.len());
        std::fs::File::create(&keys).unwrap().set_len(1 << 40).unwrap();
        assert!(said(&keys).contains("more than 65536 bytes"));
    }
}
