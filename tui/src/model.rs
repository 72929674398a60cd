//! All that the console knows.
//!
//! Owns the model and its parts; changed by `update` only, read by `view`. On the console thread. Bounded: one picture, one
//! frozen one and one marked one, a minute of samples, [`TRAIL_MAX`] steps back, [`SWITCHES_MAX`] switches.

pub mod alarms;
mod asking;
pub mod commands;
pub mod deeds;
pub mod derived;
pub mod found;
pub mod history;
pub mod links;
pub mod lists;
pub mod switch;
pub mod target;

use crate::effect::ConsoleEnd;
use crate::keymap::Scope;
use crate::keymap::bound::Keymap;
use crate::msg::{ConsoleCost, Finished};
use crate::settings::Chosen;
use crate::source::past::Note;
use crate::source::{Access, Bond, Offer};
use crate::theme::Theme;
use crate::update::Pressed;
use deeds::Measured;
use derived::{Derived, Marks};
use found::Found;
use history::History;
use lists::{Arrangements, Pair};
use pinwheel_engine::board::SpinPolicy;
use pinwheel_engine::board::snapshot::{Snapshot, ThreadState};
use pinwheel_engine::profile::OnHangup;
use std::rc::Rc;
use switch::Switch;

pub use asking::{Asked, Overlay};

/// A picture older than this is marked stale, nanoseconds.
pub const STALE_NS: u64 = 500_000_000;
/// How long a notice stays in the footer, nanoseconds.
pub const NOTICE_NS: u64 = 6_000_000_000;
/// Most steps that can be gone back.
pub const TRAIL_MAX: usize = 32;
/// Most profile switches remembered.
pub const SWITCHES_MAX: usize = 64;

/// The views, in the order of Tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The data path.
    Overview,
    /// Threads.
    Threads,
    /// Slots and one slot's life.
    Slots,
    /// Device workers.
    Workers,
    /// Profiles.
    Profiles,
    /// The graph that decode workers run.
    Graph,
    /// The arbiter.
    Arbiter,
    /// How full silos are, and which stream should move.
    Placement,
    /// Live sources.
    Sources,
    /// The key table.
    Help,
    /// Alarms.
    Alarms,
    /// Streams.
    Streams,
    /// Rings.
    Rings,
    /// What the machine is like.
    Environment,
    /// Cores and their users.
    Cores,
    /// Events of the run.
    Log,
    /// What was done to the engine.
    Actions,
    /// The mark beside now.
    Compare,
}

impl View {
    /// All, in the order of Tab.
    pub const ALL: [View; 18] = [
        View::Overview,
        View::Threads,
        View::Slots,
        View::Workers,
        View::Profiles,
        View::Graph,
        View::Arbiter,
        View::Placement,
        View::Sources,
        View::Alarms,
        View::Streams,
        View::Rings,
        View::Environment,
        View::Cores,
        View::Log,
        View::Actions,
        View::Compare,
        View::Help,
    ];

    /// The question that the view answers.
    pub fn title(self) -> &'static str {
        match self {
            View::Overview => "overview: is every shot answered, and how fast?",
            View::Threads => "threads: which is late, and under what policy?",
            View::Slots => "slots: which waits longest, and on whom?",
            View::Workers => "workers: which is busy, and with which slot?",
            View::Profiles => "profiles: what would change, and has it arrived?",
            View::Graph => "graph: which task waits longest, and on what?",
            View::Arbiter => "arbiter: who may write which page, and who waits?",
            View::Placement => "placement: which silo is full, and which stream should move?",
            View::Sources => "sources: who sends, how fast, and what is missing?",
            View::Help => "help: which key does what, and what do the signs mean?",
            View::Alarms => "alarms: what is wrong, since when, and why?",
            View::Streams => "streams: which logical qubit is late, or wrong?",
            View::Rings => "rings: which queue is full, and who empties it?",
            View::Environment => "environment: what of this machine costs latency?",
            View::Cores => "cores: who uses which core?",
            View::Log => "log: what happened in this run, and when?",
            View::Actions => "actions: who did what, why, and with what effect?",
            View::Compare => "compare: what is other than at the mark?",
        }
    }
}

/// A snapshot with what was derived from it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What the source said.
    pub snapshot: Snapshot,
    /// What follows from it.
    pub derived: Derived,
    /// When it was read, console clock.
    pub received_ns: u64,
}

/// What a view draws: the live picture, or a frozen one.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The picture; `None` before the first.
    pub picture: Option<Rc<Picture>>,
    /// The past up to it.
    pub history: History,
}

/// Where the cursor is in each view; always clamped to what there is when it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Silo shown in slots and workers.
    pub silo: usize,
    /// Thread.
    pub thread: usize,
    /// Slot.
    pub slot: usize,
    /// Worker.
    pub worker: usize,
    /// Profile.
    pub profile: usize,
    /// First row of the arbiter's lists shown.
    pub arbiter: usize,
    /// First row of help shown.
    pub help: usize,
    /// Stream of the sources view.
    pub source: usize,
    /// First silo shown in the overview.
    pub overview: usize,
    /// Alarm.
    pub alarm: usize,
    /// Stream of the streams view.
    pub stream: usize,
    /// Ring, over all silos.
    pub ring: usize,
    /// Row of the environment.
    pub environment: usize,
    /// Core.
    pub core: usize,
    /// Event of the log.
    pub event: usize,
    /// Action.
    pub action: usize,
    /// Row of the comparison.
    pub fact: usize,
}

/// How much of a view's room its list and its details get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zoom {
    /// Both.
    #[default]
    Both,
    /// The details have it all.
    Details,
    /// The list has it all.
    List,
}

/// Where one was before following a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The view.
    pub view: View,
    /// The cursors.
    pub cursor: Cursor,
    /// The zoom.
    pub zoom: Zoom,
}

/// Longest note, characters.
pub const NOTE_MAX: usize = 200;

/// What of the past can be looked at, and where in it the console is. Nanoseconds since the engine's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// First moment.
    pub from_ns: u64,
    /// Last moment.
    pub to_ns: u64,
    /// The moment shown.
    pub at_ns: u64,
    /// Notes.
    pub notes: Vec<Note>,
}

/// What the console looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A running engine.
    Live,
    /// A recording.
    Replay {
        /// When it was last moved on, console clock; `None`: it stands.
        running_since_ns: Option<u64>,
    },
}

/// How far leaving has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Not asked for.
    No,
    /// Draining since then; ends as said.
    Draining {
        /// Console clock.
        since_ns: u64,
        /// What the console will return.
        end: ConsoleEnd,
    },
}

/// A sentence for the footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What to say.
    pub text: String,
    /// Until when, console clock.
    pub until_ns: u64,
    /// Whether it reports something refused.
    pub kind: NoticeKind,
}

/// Whose the mouse is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    /// The console's: clicks and the wheel mean something here.
    #[default]
    On,
    /// The terminal's own: it selects text.
    Off,
}

impl Mouse {
    /// The other one.
    pub fn other(self) -> Mouse {
        match self {
            Mouse::On => Mouse::Off,
            Mouse::Off => Mouse::On,
        }
    }
}

/// Kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Something was done.
    Done,
    /// Something was refused.
    Refused,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct Model {
    /// Now, console clock.
    pub now_ns: u64,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Looks.
    pub theme: Theme,
    /// The view shown.
    pub view: View,
    /// The live scene.
    pub live: Scene,
    /// The frozen scene, and when it was frozen.
    pub frozen: Option<(Scene, u64)>,
    /// Where in the past the frozen scene is; `None`: it is the moment of the freeze.
    pub timeline: Option<Timeline>,
    /// Live or replay.
    pub mode: Mode,
    /// Cursors.
    pub cursor: Cursor,
    /// Overlay.
    pub overlay: Option<Overlay>,
    /// Profiles on offer; `None` until listed.
    pub offers: Option<Vec<Offer>>,
    /// The last switch.
    pub switch: Option<Switch>,
    /// The switches before it, oldest first.
    pub switches: Vec<Switch>,
    /// Leaving.
    pub leaving: Leaving,
    /// Whether the engine has ended.
    pub finished: Finished,
    /// What to do when the terminal goes away: as the engine says, once it has said so.
    pub on_hangup: OnHangup,
    /// Whose engine is shown.
    pub bond: Bond,
    /// Why no picture will come any more.
    pub lost: Option<String>,
    /// Footer's sentence.
    pub notice: Option<Notice>,
    /// What the console costs.
    pub console_cost: ConsoleCost,
    /// Counters of the last second.
    pub marks: Marks,
    /// The keys that hold.
    pub keymap: Rc<Keymap>,
    /// How lists are arranged.
    pub lists: Arrangements,
    /// What has the room.
    pub zoom: Zoom,
    /// Why the next action is taken, as it was written at its question.
    pub why: String,
    /// Actions that were seen, oldest first.
    pub measured: Vec<Measured>,
    /// Where one came from, the last step last.
    pub trail: Vec<Place>,
    /// The picture to compare with.
    pub mark: Option<Rc<Picture>>,
    /// The mark beside what is shown, while that view is open.
    pub compared: Vec<Pair>,
    /// What was looked up beside the board.
    pub found: Found,
    /// What its user chose, to be kept.
    pub chosen: Chosen,
    /// Whether the mouse is the console's.
    pub mouse: Mouse,
    /// The last click.
    pub pressed: Option<Pressed>,
}

impl Model {
    /// A console that has seen nothing yet.
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
            bond: Bond::Own,
            lost: None,
            notice: None,
            console_cost: ConsoleCost::default(),
            marks: Marks::default(),
            switches: Vec::new(),
            keymap: Rc::default(),
            lists: Arrangements::default(),
            zoom: Zoom::Both,
            why: String::new(),
            measured: Vec::new(),
            trail: Vec::new(),
            mark: None,
            compared: Vec::new(),
            found: Found::default(),
            chosen: Chosen::default(),
            mouse: Mouse::On,
            pressed: None,
        }
    }

    /// What views draw.
    pub fn scene(&self) -> &Scene {
        self.frozen.as_ref().map_or(&self.live, |(scene, _)| scene)
    }

    /// The picture that views draw.
    pub fn picture(&self) -> Option<&Picture> {
        self.scene().picture.as_deref()
    }

    /// Age of the picture that views draw, nanoseconds.
    pub fn age_ns(&self) -> u64 {
        self.picture().map_or(0, |picture| self.now_ns.saturating_sub(picture.received_ns))
    }

    /// Whether the picture that views draw is the present.
    pub fn is_fresh(&self) -> bool {
        // A replay is all past, and says so in its header: it is drawn as it looked then.
        let lives = self.lost.is_none() && self.silence_ns() <= STALE_NS;
        self.is_replay() || self.frozen.is_none() && self.age_ns() <= STALE_NS && lives
    }

    /// How long no hot thread of another process has given a sign of life, nanoseconds. Of our own process it is the
    /// watchdog's matter: if all stood still, so did this console.
    pub fn silence_ns(&self) -> u64 {
        let Some(picture) = self.live.picture.as_ref().filter(|_| self.bond != Bond::Own) else { return 0 };
        let running = picture.snapshot.threads.iter().filter(|thread| thread.state == ThreadState::Running);
        running.map(|thread| thread.heartbeat_age_ns).min().unwrap_or(0)
    }

    /// Whether what is shown may only be looked at.
    pub fn is_watching(&self) -> bool {
        matches!(self.bond, Bond::Attached { access: Access::Watch, .. })
    }

    /// Whether this is a recording.
    pub fn is_replay(&self) -> bool {
        self.mode != Mode::Live
    }

    /// Where keys go.
    pub fn scope(&self) -> Scope {
        match (&self.overlay, self.view) {
            (Some(Overlay::Chooser), _) => Scope::Chooser,
            (Some(overlay), _) if overlay.is_written() => Scope::Note,
            (Some(Overlay::Palette(_)), _) => Scope::Palette,
            (Some(Overlay::Filter(_)), _) => Scope::Filter,
            (Some(Overlay::Columns(_)), _) => Scope::Columns,
            (Some(_), _) => Scope::Question,
            (None, View::Profiles) => Scope::Profiles,
            // Among the slots the arrows move the cursor, frozen or not; [ and ] look back everywhere.
            (None, view) if self.frozen.is_some() && view != View::Slots => Scope::Past,
            (None, View::Alarms) => Scope::Alarms,
            (None, View::Placement) => Scope::Placement,
            (None, View::Streams) => Scope::Streams,
            (None, _) => Scope::Views,
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
