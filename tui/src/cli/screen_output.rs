//! Prints one moment without a console: a view's screen as text or SVG, or a view's list as CSV.
//!
//! Runs on the main thread; draws the same screen as the console. Bounded by the screen's size and
//! the snapshot.

use super::refusal::Refusal;
use super::say::{self, written};
use crate::effect::Effect;
use crate::model::lists::{self, Headings, List};
use crate::model::{Model, View};
use crate::msg::Msg;
use crate::source::Source;
use crate::source::lookup::{LookupContext, LookupState, look_up};
use crate::source::replay::Replay;
use crate::term;
use crate::theme::Theme;
use crate::update::update;
use clap::Args as ClapArgs;
use pinwheel_engine::profile::OnHangup;
use std::io;

/// Largest screen drawn without a terminal.
const SIZE_MAX: u16 = 1_000;

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(group = clap::ArgGroup::new("screen").args(["snapshot", "svg"]))]
pub struct ScreenArgs {
    /// Print the console's screen as text
    #[arg(long, conflicts_with = "json")]
    pub snapshot: bool,
    /// Print the console's screen as an SVG picture in the theme's colours
    #[arg(long, conflicts_with = "json")]
    pub svg: bool,
    /// Print the view's list as comma-separated values, with every column
    #[arg(long, conflicts_with_all = ["json", "screen"])]
    pub csv: bool,
    /// The console's first view, or the view of --snapshot, --svg and --csv: overview, threads,
    /// streams, rings, alarms … [default: overview; of --csv: threads]
    #[arg(long, value_name = "VIEW", value_parser = view)]
    pub view: Option<View>,
    /// Screen of --snapshot and --svg [default: 100x40]
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = size, requires = "screen")]
    pub size: Option<(u16, u16)>,
}

/// A view by its name.
pub fn view(text: &str) -> Result<View, String> {
    View::ALL.into_iter().find(|view| view.name() == text).ok_or_else(|| {
        let names: Vec<&str> = View::ALL.into_iter().map(View::name).collect();
        format!("expected one of {}; write it like --view threads", names.join(", "))
    })
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed = text.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    let fits = |size: &(u16, u16)| (1..=SIZE_MAX).contains(&size.0) && (1..=SIZE_MAX).contains(&size.1);
    parsed
        .filter(fits)
        .ok_or_else(|| format!("expected columns and rows, 1 to {SIZE_MAX} each; write it like --size 120x40"))
}

impl ScreenArgs {
    /// The view with which a console begins.
    pub fn first_view(&self) -> View {
        self.view.unwrap_or(View::Overview)
    }

    /// Whether anything is to be printed.
    pub fn is_requested(&self) -> bool {
        self.snapshot || self.svg || self.csv
    }

    /// The requested view, and its list for `--csv`.
    ///
    /// # Errors
    /// If values are requested from a view without a list.
    pub fn what(&self, values: bool) -> Result<(View, Option<List>), Refusal> {
        let view = self.view.unwrap_or(if values { View::Threads } else { View::Overview });
        let list = List::of(view);
        if let (true, None) = (values, list) {
            let about = format!("--csv --view {}", view.name());
            let lists = List::ALL.map(|list| list.view().name()).join(", ");
            let expected = format!("one of {lists}");
            return Err(Refusal::unusable(about, "a view without a list", expected, "name one of these"));
        }
        Ok((view, list))
    }

    /// Prints the requested output.
    ///
    /// # Errors
    /// If the recording cannot be read at that moment, or the view has no list.
    pub fn print(&self, mut source: Replay, at_ns: u64, theme: Theme) -> Result<u8, Refusal> {
        let (view, list) = self.what(self.csv)?;
        let mut model = Model::new(theme, self.size.unwrap_or((100, 40)), OnHangup::Drain);
        model.view = view;
        let mut effects = update(&mut model, Msg::Replay(at_ns));
        let past = source.past(at_ns);
        let past = past.map_err(|said| Refusal::Usage(format!("replay: {said}")))?;
        effects.extend(update(&mut model, Msg::Past(Ok(Box::new(past)))));
        for effect in effects {
            if let Effect::LookUp(wanted) = effect {
                let about = LookupContext::of(&model);
                let brought = look_up(wanted, &about, &mut LookupState::default());
                // A screen says it itself.
                if let Some(why) = brought.refusal().filter(|_| self.csv) {
                    say::people(&format!("pinwheel: {why}"));
                }
                update(&mut model, Msg::LookedUp(brought));
            }
        }
        let text = match list.filter(|_| self.csv) {
            Some(list) => lists::csv(&model, list, None, Headings::Shown),
            None if self.svg => term::svg::picture(&model),
            None => term::dump::text(&model),
        };
        Ok(written(say::text(&mut io::stdout().lock(), &text), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::{size, view};
    use crate::model::View;

    #[test]
    fn views_and_sizes_are_named_and_bounded() {
        assert_eq!(view("rings"), Ok(View::Rings));
        assert!(view("ring").is_err_and(|said| said.contains("overview, threads")));
        assert_eq!(size("120x40"), Ok((120, 40)));
        for text in ["", "120", "0x5", "5x0", "1001x5", "-1x5", "axb"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
