//! How the console looks and which keys it has: options, environment, the user's file of keys.
//!
//! Reads one file, writes none. Bounded by that file's largest size.

use super::places::{self, Surroundings};
use super::refusal::Refusal;
use crate::keymap::bound::Keymap;
use crate::keymap::file::BYTES_MAX;
use crate::model::{Mouse, View};
use crate::settings::Keeper;
use crate::term::{self, Heard};
use crate::theme::{Colour, Glyphs, Palette, Theme};
use clap::{Args as ClapArgs, ValueEnum};
use pinwheel_engine::files;
use pinwheel_engine::profile::{self, OnHangup};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Colours, how many of them, and glyphs.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct LooksArgs {
    /// Colours of the console: for a dark or a light background, told apart without red and green, or none [default: dark]
    #[arg(long, value_enum, value_name = "THEME")]
    pub theme: Option<ThemeName>,
    /// How many colours the terminal has [default: as COLORTERM, TERM and NO_COLOR say]
    #[arg(long, value_enum, value_name = "DEPTH")]
    pub colour: Option<Depth>,
    /// Glyphs of the console [default: as the locale says]
    #[arg(long, value_enum, value_name = "GLYPHS")]
    pub glyphs: Option<GlyphNames>,
    /// Whose the mouse is: the console's (on), or the terminal's to select text [default: on]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub mouse: Option<MouseUse>,
    /// Keep no settings from one start to the next, and use none that were kept
    #[arg(long)]
    pub no_settings: bool,
    /// File of keys, in RON [default: keys.ron in the profiles directory, else in $XDG_CONFIG_HOME/pinwheel]
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThemeName {
    Dark,
    Light,
    ColourBlind,
    Mono,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Depth {
    /// 16 million
    True,
    /// 256
    #[value(name = "256")]
    Indexed,
    /// The sixteen of every terminal
    #[value(name = "16")]
    Sixteen,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GlyphNames {
    #[value(name = "utf-8")]
    Utf8,
    Ascii,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MouseUse {
    On,
    Off,
}

/// What a console shows first, and what its engine's profile says about it.
#[derive(Debug, Clone, Copy)]
pub struct Scenery {
    pub on_hangup: OnHangup,
    pub view: View,
    /// The profile's theme.
    pub theme: Option<profile::Theme>,
}

impl Scenery {
    /// An engine of which no profile is known here.
    pub fn plain(on_hangup: OnHangup, view: View) -> Scenery {
        Scenery { on_hangup, view, theme: None }
    }
}

impl LooksArgs {
    /// The theme: what the options say, else what `variable` of the environment says.
    pub fn theme(&self, variable: impl Fn(&str) -> Option<String>) -> Theme {
        let found = Theme::from_variables(variable);
        let palette = self.theme.map(|theme| match theme {
            ThemeName::Dark => Palette::Dark,
            ThemeName::Light => Palette::Light,
            ThemeName::ColourBlind => Palette::ColourBlind,
            ThemeName::Mono => Palette::Mono,
        });
        let colour = self.colour.map(|depth| match depth {
            Depth::True => Colour::True,
            Depth::Indexed => Colour::Indexed,
            Depth::Sixteen => Colour::Sixteen,
            Depth::None => Colour::None,
        });
        let glyphs = self.glyphs.map(|glyphs| match glyphs {
            GlyphNames::Utf8 => Glyphs::Utf8,
            GlyphNames::Ascii => Glyphs::Ascii,
        });
        Theme {
            palette: palette.unwrap_or(found.palette),
            colour: colour.unwrap_or(found.colour),
            glyphs: glyphs.unwrap_or(found.glyphs),
        }
    }

    /// Everything that the console needs to know before it starts. What an option says beats what was kept of earlier
    /// starts, and that what the profile says.
    ///
    /// # Errors
    /// Those of [`LooksArgs::keymap`].
    pub fn options(
        &self,
        scenery: Scenery,
        profiles: Option<&Path>,
        around: &Surroundings,
    ) -> Result<term::Options, Refusal> {
        let file = places::state(around).map(|state| state.join("console.ron"));
        let keeper = Keeper::open(file.filter(|_| !self.no_settings));
        let kept = keeper.settings.chosen;
        let mut theme = self.theme(|name| std::env::var(name).ok());
        if self.theme.is_none() {
            theme.palette = kept.palette.or(scenery.theme.map(palette)).unwrap_or(theme.palette);
        }
        if self.glyphs.is_none() {
            theme.glyphs = kept.glyphs.unwrap_or(theme.glyphs);
        }
        let mouse = self.mouse.map(|mouse| if mouse == MouseUse::On { Mouse::On } else { Mouse::Off });
        let mouse = mouse.or(kept.mouse).unwrap_or_default();
        let Scenery { on_hangup, view, .. } = scenery;
        Ok(term::Options { theme, on_hangup, view, keymap: self.keymap(profiles, around)?, mouse, keeper })
    }

    /// The keys: of the file named, of the first one that is there, or those built in.
    ///
    /// # Errors
    /// When the file named is not there, or any is no file of keys.
    pub fn keymap(&self, profiles: Option<&Path>, around: &Surroundings) -> Result<Rc<Keymap>, Refusal> {
        let own = profiles.map(|dir| dir.join("keys.ron"));
        let candidates = match &self.keys {
            Some(named) => vec![named.clone()],
            None => own.into_iter().chain(around.config().map(|dir| dir.join("keys.ron"))).collect(),
        };
        for path in candidates {
            // A FIFO that nobody named is not waited for.
            let would_wait = self.keys.is_none() && path.exists() && !path.is_file();
            let read = if would_wait {
                Err(std::io::Error::other("no regular file"))
            } else {
                files::read_named_text(&path, BYTES_MAX as u64)
            };
            match read {
                Err(error) if error.kind() == ErrorKind::NotFound && self.keys.is_none() => {}
                Err(error) => {
                    let expected = format!("a file of keys of at most {BYTES_MAX} bytes");
                    return Err(Refusal::unusable(
                        path.display().to_string(),
                        error.to_string(),
                        expected,
                        "name another with --keys",
                    ));
                }
                Ok(text) => {
                    let keymap = Keymap::from_text(&text);
                    let refused = |error| Refusal::Usage(format!("{}: {error}", path.display()));
                    return keymap.map(Rc::new).map_err(refused);
                }
            }
        }
        Ok(Rc::default())
    }
}

fn palette(theme: profile::Theme) -> Palette {
    match theme {
        profile::Theme::Dark => Palette::Dark,
        profile::Theme::Light => Palette::Light,
        profile::Theme::ColourBlind => Palette::ColourBlind,
        profile::Theme::Mono => Palette::Mono,
    }
}

/// Says what of the user's changes could not be kept, if anybody listens.
pub fn tell_unkept(shown: &term::Outcome) {
    if let Some(said) = shown.unkept.as_ref().filter(|_| shown.heard == Heard::Yes) {
        super::say::people(&format!("pinwheel: {said}"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Depth, LooksArgs, ThemeName};
    use super::{MouseUse, OnHangup, Scenery, View, profile};
    use crate::cli::places::Surroundings;
    use crate::keymap::bound::Keymap;
    use crate::theme::{Colour, Palette};
    use std::path::PathBuf;

    #[test]
    fn an_option_beats_the_environment() {
        let looks = LooksArgs { theme: Some(ThemeName::Light), colour: Some(Depth::True), ..LooksArgs::default() };
        let theme = looks.theme(|name| (name == "NO_COLOR").then(|| "1".to_owned()));
        assert_eq!((theme.palette, theme.colour), (Palette::Light, Colour::True));
    }

    #[test]
    fn an_option_beats_what_was_kept_and_that_beats_the_profile() {
        use crate::model::Mouse;
        let state = tempfile::tempdir().unwrap();
        let around = Surroundings { state_home: Some(state.path().to_owned()), ..Surroundings::default() };
        let scenery =
            Scenery { theme: Some(profile::Theme::Light), ..Scenery::plain(OnHangup::Detach, View::Overview) };
        let found = |looks: &LooksArgs| {
            let options = looks.options(scenery, None, &around).unwrap();
            (options.theme.palette, options.mouse, options.keeper.path.is_some())
        };
        let looks = LooksArgs::default();
        assert_eq!(found(&looks), (Palette::Light, Mouse::On, true));
        std::fs::create_dir(state.path().join("pinwheel")).unwrap();
        let kept = "(theme: Some(\"mono\"), mouse: Some(\"off\"))";
        std::fs::write(state.path().join("pinwheel/console.ron"), kept).unwrap();
        assert_eq!(found(&looks), (Palette::Mono, Mouse::Off, true));
        let named = LooksArgs { theme: Some(ThemeName::Dark), mouse: Some(MouseUse::On), ..LooksArgs::default() };
        assert_eq!(found(&named), (Palette::Dark, Mouse::On, true));
        let none = LooksArgs { no_settings: true, ..LooksArgs::default() };
        assert_eq!(found(&none), (Palette::Light, Mouse::On, false));
    }

    #[test]
    fn a_fifo_in_the_place_of_the_keys_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let profiles = tempfile::tempdir().unwrap();
        let path = profiles.path().join("keys.ron");
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let said = LooksArgs::default().keymap(Some(profiles.path()), &Surroundings::default()).unwrap_err();
        assert!(said.to_string().contains("no regular file"), "{said}");
    }

    #[test]
    fn keys_come_from_the_file_named_then_the_profiles_then_the_user() {
        let (profiles, config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let around = Surroundings { config_home: Some(config.path().to_owned()), ..Surroundings::default() };
        let keys = |looks: &LooksArgs| looks.keymap(Some(profiles.path()), &around);
        let looks = LooksArgs::default();
        assert_eq!(*keys(&looks).unwrap(), Keymap::default());
        std::fs::create_dir(config.path().join("pinwheel")).unwrap();
        let user = r#"{ "views": { "freeze": ["F1"] } }"#;
        std::fs::write(config.path().join("pinwheel/keys.ron"), user).unwrap();
        assert_eq!(*keys(&looks).unwrap(), Keymap::from_text(user).unwrap());
        let shared = r#"{ "views": { "freeze": ["F2"] } }"#;
        std::fs::write(profiles.path().join("keys.ron"), shared).unwrap();
        assert_eq!(*keys(&looks).unwrap(), Keymap::from_text(shared).unwrap());
        let named = LooksArgs { keys: Some(PathBuf::from("/no/such/file")), ..LooksArgs::default() };
        assert!(keys(&named).unwrap_err().to_string().contains("/no/such/file"));
        std::fs::write(profiles.path().join("keys.ron"), "nonsense").unwrap();
        let said = keys(&looks).unwrap_err().to_string();
        assert!(said.contains("keys.ron") && said.contains("expected"), "{said}");
    }

    #[test]
    fn endless_keys_are_refused_unread_and_a_long_name_in_them_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.ron");
        let said = |path: &std::path::Path| {
            let looks = LooksArgs { keys: Some(path.to_owned()), ..LooksArgs::default() };
            looks.keymap(None, &Surroundings::default()).unwrap_err().to_string()
        };
        assert!(said("/dev/zero".as_ref()).contains("found a device"));
        std::fs::write(&keys, format!("{{\"{}\": {{}}}}", "x".repeat(60_000))).unwrap();
        let cut = said(&keys);
        assert!(cut.contains("bytes omitted") && cut.len() < 1_000, "{} bytes", cut.len());
        std::fs::File::create(&keys).unwrap().set_len(1 << 40).unwrap();
        assert!(said(&keys).contains("more than 65536 bytes"));
    }
}
