//! The console's model: its entire state.
//!
//! Owns the model and its parts; `update` alone changes it, `view` reads it. On the console thread.
//! Bounded: one live picture, one frozen and one marked; a minute of samples; [`TRAIL_MAX`] steps
//! back; [`SWITCHES_MAX`] switches.

pub mod alarms;
mod asking;
pub mod chart;
pub mod choices;
pub mod commands;
pub mod derived;
pub mod lookups;
pub mod history;
pub mod leaving;
pub mod links;
pub mod lists;
pub mod measured;
pub mod questions;
pub mod span;
pub mod switch;
pub mod target;
pub mod tour;
pub mod view;

use crate::keymap::bound::Keymap;
use crate::keymap::key::Key;
use crate::keymap::{Action, Scope};
use crate::msg::{ConsoleCost, Finished};
use crate::source::data::{Access, Offer, Ownership};
use crate::source::past::Note;
use crate::theme::Theme;
use chart::Chart;
use choices::Chosen;
use derived::{Derived, Marks};
use history::History;
use lists::{Arrangements, Pair};
use lookups::LookedUp;
use measured::Measured;
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::board::snapshot::{SiloView, Snapshot};
use pinwheel_engine::profile::OnHangup;
use pinwheel_report::moment::silence_ns;
use std::rc::Rc;
use switch::Switch;
use target::Pressed;
use tour::Tour;

pub use asking::{Asked, Overlay};
pub use choices::Mouse;
pub use leaving::Leaving;
pub use view::View;

/// A picture older than this is marked stale, nanoseconds.
pub const STALE_NS: u64 = 500_000_000;
/// Time that a notice stays in the footer, nanoseconds.
pub const NOTICE_NS: u64 = 6_000_000_000;
/// Most steps back.
pub const TRAIL_MAX: usize = 32;
/// Most profile switches kept.
pub const SWITCHES_MAX: usize = 64;

/// A snapshot and the numbers derived from it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The source's snapshot.
    pub snapshot: Snapshot,
    /// Rates, quantiles, depths and ages.
    pub derived: Derived,
    /// Time of the reading, console clock.
    pub received_ns: u64,
}

/// The data of a view: the live picture, or a frozen one.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The picture; `None` before the first.
    pub picture: Option<Rc<Picture>>,
    /// The samples up to the picture.
    pub history: History,
}

/// Cursor positions of all views; clamped to the existing rows on use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Silo shown in slots and workers.
    pub silo: usize,
    pub thread: usize,
    pub slot: usize,
    pub worker: usize,
    pub profile: usize,
    /// First visible row of the arbiter's lists.
    pub arbiter: usize,
    /// First visible row of help.
    pub help: usize,
    /// Stream of the sources view.
    pub source: usize,
    /// First visible silo in the overview.
    pub overview: usize,
    pub alarm: usize,
    /// Stream of the streams view.
    pub stream: usize,
    /// Ring, counted over all silos.
    pub ring: usize,
    /// Row of the environment.
    pub environment: usize,
    pub core: usize,
    pub host: usize,
    /// Event of the log.
    pub event: usize,
    pub action: usize,
    /// Row of the comparison.
    pub fact: usize,
}

/// Division of a view between its list and its details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zoom {
    #[default]
    Both,
    Details,
    List,
}

/// View and cursor before a link was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub view: View,
    pub cursor: Cursor,
    pub zoom: Zoom,
}

/// Longest line of input, characters.
pub const NOTE_MAX: usize = 200;

/// The span of the recorded past and the moment shown. Nanoseconds since the engine's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The moment shown.
    pub at_ns: u64,
    pub notes: Vec<Note>,
}

/// Whether the source is an engine or a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A running engine.
    Live,
    Replay {
        /// When the moment shown was reached, console clock; `None`: the replay is stopped.
        running_since_ns: Option<u64>,
    },
}

/// A sentence in the footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// End of its display, console clock.
    pub until_ns: u64,
    /// Whether it reports success or a refusal.
    pub kind: NoticeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    Done,
    Refused,
}

#[derive(Clone, Debug)]
pub struct Model {
    /// Current time, console clock.
    pub now_ns: u64,
    /// Columns and rows.
    pub size: (u16, u16),
    pub theme: Theme,
    pub view: View,
    pub live: Scene,
    /// The frozen scene, and the time of the freeze.
    pub frozen: Option<(Scene, u64)>,
    /// Position of the frozen scene in the past; `None`: the moment of the freeze.
    pub timeline: Option<Timeline>,
    pub mode: Mode,
    pub cursor: Cursor,
    pub overlay: Option<Overlay>,
    /// Profiles on offer; `None` until listed.
    pub offers: Option<Vec<Offer>>,
    /// The last profile switch.
    pub switch: Option<Switch>,
    /// The switches before it, oldest first.
    pub switches: Vec<Switch>,
    pub leaving: Leaving,
    /// Whether the engine has ended.
    pub finished: Finished,
    /// Whether the engine drains when the terminal closes: the engine's setting once it is known.
    pub on_hangup: OnHangup,
    /// Whether this process owns the engine.
    pub ownership: Ownership,
    /// Why no further picture will arrive.
    pub lost: Option<String>,
    pub notice: Option<Notice>,
    /// Measured cost of the console itself.
    pub console_cost: ConsoleCost,
    /// Counters of the last second.
    pub marks: Marks,
    /// The keys in force.
    pub keymap: Rc<Keymap>,
    /// Filters, orders and columns of the lists.
    pub lists: Arrangements,
    /// Division of the view between list and details.
    pub zoom: Zoom,
    /// Rows of the list of alarms.
    pub alarm_rows: alarms::AlarmRows,
    /// The reason for the next action, as written at its question.
    pub why: String,
    /// Effects of observed actions, oldest first.
    pub measured: Vec<Measured>,
    /// Places to return to, the latest last.
    pub trail: Vec<Location>,
    /// The marked picture, to compare with.
    pub mark: Option<Rc<Picture>>,
    /// The values of the comparison, while its view is open.
    pub compared: Vec<Pair>,
    /// Data from outside the board.
    pub lookups: LookedUp,
    /// The user's choices, to be saved.
    pub chosen: Chosen,
    /// Whether the console handles the mouse.
    pub mouse: Mouse,
    /// The last click.
    pub pressed: Option<Pressed>,
    /// The span and cursor of the chart.
    pub chart: Chart,
    /// The tour, while it is under way.
    pub tour: Option<Tour>,
    /// Whether it is shown in a browser, which reaches no file of this machine.
    pub is_served: bool,
}

impl Model {
    /// A console before its first picture.
    pub fn new(theme: Theme, size: (u16, u16), on_hangup: OnHangup) -> Model {
        Model {
            now_ns: 0,
            size,
            theme,
            view: View::Overview,
            live: Scene::default(),
            frozen: None,
            timeline: None,
            mode: Mode::Live,
            cursor: Cursor::default(),
            overlay: None,
            offers: None,
            switch: None,
            leaving: Leaving::No,
            finished: Finished::No,
            on_hangup,
            ownership: Ownership::Own,
            lost: None,
            notice: None,
            console_cost: ConsoleCost::default(),
            marks: Marks::default(),
            switches: Vec::new(),
            keymap: Rc::default(),
            lists: Arrangements::default(),
            zoom: Zoom::Both,
            alarm_rows: alarms::AlarmRows::default(),
            why: String::new(),
            measured: Vec::new(),
            trail: Vec::new(),
            mark: None,
            compared: Vec::new(),
            lookups: LookedUp::default(),
            chosen: Chosen::default(),
            mouse: Mouse::On,
            pressed: None,
            chart: Chart::default(),
            tour: None,
            is_served: false,
        }
    }

    /// The scene that views draw.
    pub fn scene(&self) -> &Scene {
        self.frozen.as_ref().map_or(&self.live, |(scene, _)| scene)
    }

    /// The picture that views draw.
    pub fn picture(&self) -> Option<&Picture> {
        self.scene().picture.as_deref()
    }

    /// The silo under the cursor.
    pub fn silo(&self) -> Option<&SiloView> {
        self.picture()?.snapshot.silos.get(self.cursor.silo)
    }

    /// Age of the picture that views draw, nanoseconds.
    pub fn age_ns(&self) -> u64 {
        self.picture().map_or(0, |picture| self.now_ns.saturating_sub(picture.received_ns))
    }

    /// Nanoseconds from the moment shown of the past to the present, or to the end of the replay.
    pub fn behind_ns(&self, line: &Timeline) -> u64 {
        let now_ns = self.live.picture.as_ref().map_or(0, |picture| picture.snapshot.at_ns);
        now_ns.max(line.to_ns).saturating_sub(line.at_ns)
    }

    /// Whether the picture that views draw is current.
    pub fn is_fresh(&self) -> bool {
        // A replay shows only the past, and its header says so: it is drawn like a live picture of
        // its time.
        let recent = self.lost.is_none() && self.silence_ns() <= STALE_NS;
        self.is_replay() || self.frozen.is_none() && self.age_ns() <= STALE_NS && recent
    }

    /// Nanoseconds since the last heartbeat of a hot thread of another process. In this process the
    /// watchdog checks heartbeats: if all threads stopped, so did this console.
    pub fn silence_ns(&self) -> u64 {
        let Some(picture) = self.live.picture.as_ref().filter(|_| self.ownership != Ownership::Own) else { return 0 };
        silence_ns(&picture.snapshot)
    }

    /// Whether the console is read-only.
    pub fn is_watching(&self) -> bool {
        matches!(self.ownership, Ownership::Attached { access: Access::Watch, .. } | Ownership::OtherHost(_))
    }

    /// Whether the source is a recording.
    pub fn is_replay(&self) -> bool {
        self.mode != Mode::Live
    }

    /// The scope of the keys.
    pub fn scope(&self) -> Scope {
        match (&self.overlay, self.view) {
            (Some(Overlay::Chooser), _) => Scope::Chooser,
            (Some(overlay), _) if overlay.is_written() => Scope::Note,
            (Some(Overlay::Palette(_)), _) => Scope::Palette,
            (Some(Overlay::Filter(_)), _) => Scope::Filter,
            (Some(Overlay::Columns(_)), _) => Scope::Columns,
            (Some(_), _) => Scope::Question,
            // In these views the arrows always move the cursor; [ and ] step in time everywhere.
            (None, View::Profiles | View::Help | View::Chart | View::Slots) => self.view_scope(),
            (None, _) if self.frozen.is_some() => Scope::Past,
            (None, _) => self.view_scope(),
        }
    }

    /// The scope of the view's own keys.
    pub fn view_scope(&self) -> Scope {
        match self.view {
            View::Profiles => Scope::Profiles,
            View::Help => Scope::Help,
            View::Chart => Scope::Chart,
            View::Alarms => Scope::Alarms,
            View::Placement => Scope::Placement,
            View::Streams => Scope::Streams,
            _ => Scope::Views,
        }
    }

    /// The action of `key`. In the past the view's own keys hold too, after those of the past; in a
    /// view that needs the arrows itself, before them.
    pub fn action(&self, key: Key) -> Option<Action> {
        let is_past = self.frozen.is_some() && self.overlay.is_none();
        match self.scope() {
            Scope::Past if !self.keymap.binds(Scope::Past, key) => self.keymap.action(self.view_scope(), key),
            scope => {
                let own = self.keymap.action(scope, key);
                own.or_else(|| self.keymap.action(Scope::Past, key).filter(|_| is_past))
            }
        }
    }

    /// The profile in force and its policy, from the live picture.
    pub fn in_force(&self) -> Option<(&str, SpinPolicy)> {
        let engine = &self.live.picture.as_ref()?.snapshot.engine;
        Some((&engine.profile, engine.spin_requested))
    }
}

#[cfg(test)]
mod tests;
