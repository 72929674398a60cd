//! The terminal and the one loop that reads, updates, acts and draws.
//!
//! Owns the screen, the signals and the console's clock while [`run`] runs, on the caller's thread (the console thread).
//! Bounded: data every [`DATA_NS`], frames as [`pace`] says, at most [`EVENTS_MAX`] events a turn, one frame
//! under way. Never waits for the engine or for the terminal's reader: the source copies, a thread of its own writes, and
//! the loop waits only for keys and for the end of that write, at most until the next data.

mod clock;
pub mod dump;
mod keys;
mod lookup;
pub mod output;
mod pace;
mod screen;
mod signals;
mod writer;

use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::bound::Keymap;
use crate::model::{Model, Mouse, View};
use crate::msg::{ConsoleCost, Finished, Msg};
use crate::settings::Keeper;
use crate::source::beside::About;
use crate::source::{Hold, News, Source};
use crate::theme::Theme;
use crate::update::update;
use clock::Clock;
use lookup::Lookups;
use output::Meter;
use pace::Pace;
use pinwheel_engine::profile::OnHangup;
use screen::Screen;
use signals::Signals;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::Duration;

pub use writer::Heard;

/// Time between two readings of the source, nanoseconds.
pub const DATA_NS: u64 = 100_000_000;
/// Most terminal events taken in one turn.
pub const EVENTS_MAX: usize = 256;
/// Window of the console's own cost, nanoseconds.
const COST_WINDOW_NS: u64 = 1_000_000_000;

/// How to run the console.
#[derive(Clone, Debug)]
pub struct Options {
    /// Looks.
    pub theme: Theme,
    /// What to do when the terminal goes away.
    pub on_hangup: OnHangup,
    /// What to show first.
    pub view: View,
    /// The keys that hold.
    pub keymap: Rc<Keymap>,
    /// Whose the mouse is at first.
    pub mouse: Mouse,
    /// What was kept of earlier starts, and where.
    pub keeper: Keeper,
}

/// How the console went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it returned.
    pub end: ConsoleEnd,
    /// What it cost.
    pub console_cost: ConsoleCost,
    /// Whether the terminal still took what was said last.
    pub heard: Heard,
    /// Why what the user changed could not be kept, in one sentence.
    pub unkept: Option<String>,
}

/// What there is where [`can_show`] says no.
pub const NONE: &str = "no terminal (or TERM unset, or dumb)";

/// Whether standard input and output are a terminal that can show the console. One that TERM does not name, or names `dumb`,
/// has no cursor that could be moved.
pub fn can_show() -> bool {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    is_terminal && moves_its_cursor(std::env::var_os("TERM").as_deref())
}

fn moves_its_cursor(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Why there can be no console.
#[derive(Debug, thiserror::Error)]
pub enum TermError {
    /// The terminal could not be set up or drawn to.
    #[error("the terminal refused {what}: {error}; run with --headless to go without a console")]
    Terminal {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Signals could not be watched.
    #[error("signals cannot be watched: {0}; run with --headless to go without a console")]
    Signals(io::Error),
}

/// Runs the console on `source` until it ends; the terminal is as before when this returns.
///
/// # Errors
/// When the terminal cannot be set up. A terminal that goes away later is not an error: [`ConsoleEnd::HungUp`].
pub fn run(source: &mut dyn Source, options: Options) -> Result<Outcome, TermError> {
    let signals = Signals::watch().map_err(TermError::Signals)?;
    let clock = Clock::start();
    let screen = Screen::open(clock, options.mouse)?;
    let size = screen.size()?;
    let bond = source.bond();
    let mut model = Model {
        view: options.view,
        bond,
        keymap: options.keymap,
        mouse: options.mouse,
        ..Model::new(options.theme, size, options.on_hangup)
    };
    options.keeper.settings.arrange(&mut model);
    if let Some(said) = &options.keeper.said {
        update(&mut model, Msg::Unusable(said.clone()));
    }
    let mut console = Console {
        source,
        model,
        lookups: Lookups::start()
            .map_err(|error| TermError::Terminal { what: "a thread that looks things up", error })?,
        clock,
        screen,
        signals,
        meter: Meter::default(),
        frame: FrameTimes::default(),
    };
    let end = match console.turns() {
        Ok(end) => end,
        Err(error) if is_hangup(&error) => console.hung_up(),
        Err(error) => return Err(TermError::Terminal { what: "a frame or a key", error }),
    };
    let cost = console.meter.cost(console.clock.now_ns(), clock::cpu_ns(), console.screen.bytes());
    let heard = console.screen.close();
    // The terminal is given back first: a disk that hangs holds up nobody's shell but this one.
    let unkept = options.keeper.keep(&console.model).err();
    Ok(Outcome { end, console_cost: cost, heard, unkept })
}

/// A terminal that is gone answers with one of these.
fn is_hangup(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof)
        || error.raw_os_error() == Some(EIO)
}

/// When the next reading and the next frame are due, console clock.
#[derive(Clone, Copy, Debug, Default)]
struct FrameTimes {
    data_due_ns: u64,
    pace: Pace,
    cost_due_ns: u64,
    changed: Changed,
}

/// Whether the model changed since the last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Changed {
    No,
    #[default]
    Yes,
}

struct Console<'a> {
    source: &'a mut dyn Source,
    model: Model,
    clock: Clock,
    screen: Screen,
    lookups: Lookups,
    signals: Signals,
    meter: Meter,
    frame: FrameTimes,
}

impl Console<'_> {
    fn turns(&mut self) -> io::Result<ConsoleEnd> {
        let mut begin = vec![Effect::ListOffers];
        if let Some(at_ns) = self.source.replay_from() {
            begin.extend(update(&mut self.model, Msg::Replay(at_ns)));
        }
        if let Some(end) = self.act(begin)? {
            return Ok(end);
        }
        loop {
            if let Some(end) = self.turn()? {
                return Ok(end);
            }
        }
    }

    /// One turn: signals, data if due, frame if due, then keys until something is due.
    fn turn(&mut self) -> io::Result<Option<ConsoleEnd>> {
        for signal in self.signals.take() {
            if let Some(end) = self.take(Msg::Signal(signal))? {
                return Ok(Some(end));
            }
        }
        if let Some(brought) = self.lookups.take() {
            self.take(Msg::Brought(brought))?;
        }
        let now_ns = self.clock.now_ns();
        if now_ns >= self.frame.data_due_ns {
            self.frame.data_due_ns = now_ns + DATA_NS;
            if let Some(end) = self.read(now_ns)? {
                return Ok(Some(end));
            }
        }
        if let Some(sent) = self.screen.take_written()? {
            self.frame.pace.sent(sent);
        }
        if self.frame.changed == Changed::Yes && self.screen.is_idle() && now_ns >= self.frame.pace.due_ns() {
            self.draw(now_ns)?;
        }
        self.keys()
    }

    fn read(&mut self, now_ns: u64) -> io::Result<Option<ConsoleEnd>> {
        if now_ns >= self.frame.cost_due_ns {
            self.frame.cost_due_ns = now_ns + COST_WINDOW_NS;
            let cost = self.meter.cost(now_ns, clock::cpu_ns(), self.screen.bytes());
            self.take(Msg::Cost(cost))?;
        }
        let snapshot = self.source.snapshot().map(Box::new);
        let finished = if self.source.is_finished() { Finished::Yes } else { Finished::No };
        if let Some(why) = self.source.lost() {
            self.take(Msg::Lost(why))?;
        }
        for news in self.source.news() {
            self.take(Msg::News(news))?;
        }
        self.take(Msg::Snapshot { now_ns, snapshot, finished })
    }

    fn keys(&mut self) -> io::Result<Option<ConsoleEnd>> {
        let now_ns = self.clock.now_ns();
        // The end of a frame under way wakes the loop.
        let due_ns = match self.frame.changed {
            Changed::Yes if self.screen.is_idle() => self.frame.data_due_ns.min(self.frame.pace.due_ns()),
            _ => self.frame.data_due_ns,
        };
        let mut wait = Duration::from_nanos(due_ns.saturating_sub(now_ns));
        for _ in 0..EVENTS_MAX {
            let Some(event) = keys::next(wait, self.screen.written())? else { break };
            wait = Duration::ZERO;
            let Some(msg) = keys::message(event) else { continue };
            self.take(Msg::Tick { now_ns: self.clock.now_ns() })?;
            if let Some(end) = self.take(msg)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn take(&mut self, msg: Msg) -> io::Result<Option<ConsoleEnd>> {
        self.frame.changed = Changed::Yes;
        let effects = update(&mut self.model, msg);
        self.act(effects)
    }

    fn act(&mut self, effects: Vec<Effect>) -> io::Result<Option<ConsoleEnd>> {
        for effect in effects {
            match effect {
                Effect::ListOffers => {
                    let offers = self.source.offers();
                    update(&mut self.model, Msg::Offers(offers));
                }
                Effect::Apply { name, profile, lent, why } => {
                    let result = self.source.apply(&name, &profile, lent, &why);
                    let follow = update(&mut self.model, Msg::Applied { name, result });
                    if let Some(end) = self.act(follow)? {
                        return Ok(Some(end));
                    }
                }
                Effect::Drain(why) => {
                    if let Err(why) = self.source.drain(&why) {
                        update(&mut self.model, Msg::News(News::Refused(format!("drain refused: {why}"))));
                    }
                }
                Effect::Hold(hold, why) => {
                    let what = if hold == Hold::Hold { "hold of the feed" } else { "release of the feed" }.to_owned();
                    let result = self.source.hold(hold, &why);
                    update(&mut self.model, Msg::Asked { what, result });
                }
                Effect::Rate(rate, why) => {
                    let result = self.source.set_rate(rate, &why);
                    update(&mut self.model, Msg::Asked { what: "another rate".to_owned(), result });
                }
                Effect::Act(deed, why) => {
                    let result = self.source.act(&deed, &why);
                    update(&mut self.model, Msg::Asked { what: deed.label(), result });
                }
                Effect::LookAt(at_ns) => {
                    let past = self.source.past(at_ns).map(Box::new);
                    update(&mut self.model, Msg::Past(past));
                }
                Effect::Note(text) => {
                    let result = self.source.note(&text);
                    update(&mut self.model, Msg::Noted(result));
                }
                Effect::Acknowledge(number) => {
                    let result = self.source.acknowledge(number);
                    update(&mut self.model, Msg::Answered { what: "acknowledged", result });
                }
                Effect::Snooze(number) => {
                    let result = self.source.snooze(number);
                    update(&mut self.model, Msg::Answered { what: "snoozed for ten minutes", result });
                }
                Effect::LookUp(wanted) => {
                    let about = About::of(self.model.picture().map(|picture| &picture.snapshot));
                    self.lookups.ask(wanted, about);
                }
                Effect::DumpScreen => {
                    let result = dump::write(&self.model);
                    update(&mut self.model, Msg::Dumped(result));
                }
                Effect::Capture(mouse) => self.screen.capture(mouse)?,
                Effect::Redraw => self.screen.forget()?,
                Effect::Leave(end) => return Ok(Some(end)),
            }
        }
        Ok(None)
    }

    fn draw(&mut self, now_ns: u64) -> io::Result<()> {
        self.screen.draw(&self.model)?;
        self.meter.drawn();
        self.frame.changed = Changed::No;
        self.frame.pace.drawn(now_ns);
        Ok(())
    }

    /// The terminal is gone without a signal having been seen: the same as SIGHUP.
    fn hung_up(&mut self) -> ConsoleEnd {
        for effect in update(&mut self.model, Msg::Signal(crate::msg::Signal::Hangup)) {
            if let Effect::Drain(why) = effect {
                // There is nobody to tell, and the engine in this process never refuses.
                drop(self.source.drain(&why));
            }
        }
        ConsoleEnd::HungUp
    }
}

#[cfg(test)]
mod tests {
    use super::moves_its_cursor;
    use std::ffi::OsStr;

    #[test]
    fn a_terminal_without_a_name_or_named_dumb_shows_no_console() {
        for (term, expected) in
            [(None, false), (Some(""), false), (Some("dumb"), false), (Some("xterm"), true), (Some("dumber"), true)]
        {
            assert_eq!(moves_its_cursor(term.map(OsStr::new)), expected, "{term:?}");
        }
    }
}
