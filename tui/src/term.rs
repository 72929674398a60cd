//! The terminal and the console's loop: it reads, updates, acts and draws.
//!
//! Owns the screen, the signals and the console's clock while [`run`] runs, on the caller's thread
//! (the console thread). Bounded: data every [`DATA_NS`], frames at the rate of [`pace`], at most
//! [`EVENTS_MAX`] events a turn, one frame in progress. Never waits for the engine or for the
//! terminal's reader: the source copies, a separate thread writes, and the loop waits only for keys
//! and for the end of that write, at most until the next data.

mod clock;
pub mod dump;
pub mod keys;
mod lookup;
pub mod output;
mod pace;
mod screen;
mod signals;
pub mod svg;
mod writer;

use crate::effect::{ConsoleEnd, Effect};
use crate::keymap::bound::Keymap;
use crate::model::lookups::LookupResult;
use crate::model::{Leaving, Model, Mouse, View};
use crate::msg::{self, ConsoleCost, Finished, Msg};
use crate::settings::SettingsFile;
use crate::source::Source;
use crate::source::lookup::LookupContext;
use crate::theme::Theme;
use crate::update::update;
use clock::Clock;
use lookup::Lookups;
use output::Meter;
use pace::Pace;
use pinwheel_engine::profile::OnHangup;
use screen::Screen;
use signal_hook::consts::{SIGINT, SIGTERM};
use signals::Signals;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::Duration;

pub use screen::give_back;
pub use writer::Delivered;

/// Time between two readings of the source, nanoseconds.
pub const DATA_NS: u64 = 100_000_000;
/// Most terminal events taken in one turn.
pub const EVENTS_MAX: usize = 256;
/// Window of the console's own cost, nanoseconds.
const COST_WINDOW_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub struct Options {
    pub theme: Theme,
    /// Whether the engine drains when the terminal closes.
    pub on_hangup: OnHangup,
    pub view: View,
    /// The keys in force.
    pub keymap: Rc<Keymap>,
    /// Whether the console handles the mouse at first.
    pub mouse: Mouse,
    /// Settings of earlier starts, and their file.
    pub settings: SettingsFile,
    /// Whether it is shown in a browser.
    pub is_served: bool,
}

#[derive(Debug)]
pub struct Outcome {
    /// Why the console returned.
    pub end: ConsoleEnd,
    /// CPU time, frames and bytes of the console.
    pub console_cost: ConsoleCost,
    /// Whether the terminal took the last write.
    pub delivered: Delivered,
    /// Why the user's settings could not be saved, in one sentence.
    pub unsaved: Option<String>,
    /// The end that the engine was draining for.
    draining: Option<ConsoleEnd>,
    signals: Signals,
}

impl Outcome {
    /// After a lost terminal: the signal that has asked for an end, before or after the console's
    /// last turn. The console's handlers stay until the outcome is dropped, so a caller that goes
    /// on installs its own before it asks.
    pub fn ending_signal(&self) -> Option<i32> {
        let ends = |signal| match signal {
            msg::Signal::Terminate => Some(SIGTERM),
            msg::Signal::Interrupt => Some(SIGINT),
            msg::Signal::Hangup | msg::Signal::Suspend => None,
        };
        match self.draining {
            Some(ConsoleEnd::Terminated) => Some(SIGTERM),
            Some(ConsoleEnd::Interrupted) => Some(SIGINT),
            _ => std::iter::from_fn(|| self.signals.take()).take(signals::WATCHED.len()).find_map(ends),
        }
    }
}

/// Description of the terminal where [`can_show`] returns false.
pub const NONE: &str = "no terminal (or TERM unset, or dumb)";

/// Whether standard input and output are a terminal that can show the console. Without TERM, or
/// with TERM=dumb, a terminal has no movable cursor.
pub fn can_show() -> bool {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    is_terminal && moves_its_cursor(std::env::var_os("TERM").as_deref())
}

fn moves_its_cursor(term: Option<&OsStr>) -> bool {
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Why the console cannot run.
#[derive(Debug, thiserror::Error)]
pub enum TermError {
    #[error("the terminal refused {what}: {error}; use --headless to run without a console")]
    Terminal { what: &'static str, error: io::Error },
    #[error("cannot register signal handlers: {0}; use --headless to run without a console")]
    Signals(io::Error),
}

/// Runs the console on `source` until it ends; the terminal is restored when this returns.
///
/// # Errors
/// When the terminal cannot be set up. A terminal that closes later is not an error:
/// [`ConsoleEnd::HungUp`].
pub fn run(source: &mut dyn Source, options: Options) -> Result<Outcome, TermError> {
    let signals = Signals::watch().map_err(TermError::Signals)?;
    let clock = Clock::start();
    let screen = Screen::open(clock, options.mouse)?;
    let size = screen.size()?;
    let ownership = source.ownership();
    let mut model = Model {
        view: options.view,
        ownership,
        keymap: options.keymap,
        mouse: options.mouse,
        is_served: options.is_served,
        ..Model::new(options.theme, size, options.on_hangup)
    };
    options.settings.settings.arrange(&mut model);
    if let Some(said) = &options.settings.said {
        update(&mut model, Msg::Unusable(said.clone()));
    }
    let mut console = Console {
        source,
        model,
        lookups: Lookups::start().map_err(|error| TermError::Terminal { what: "the look-up thread", error })?,
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
    let delivered = console.screen.close();
    // The terminal is restored first, so that a slow disk does not block the shell.
    let unsaved = options.settings.keep(&console.model).err();
    let draining = match console.model.leaving {
        Leaving::Draining { end, .. } => Some(end),
        Leaving::No => None,
    };
    Ok(Outcome { end, console_cost: cost, delivered, unsaved, draining, signals: console.signals })
}

/// A closed terminal returns one of these errors.
fn is_hangup(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof)
        || error.raw_os_error() == Some(EIO)
}

/// Times of the next reading and of the next frame, console clock.
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
        // One that comes again meanwhile is for the next turn.
        for _ in 0..signals::WATCHED.len() {
            let Some(signal) = self.signals.take() else { break };
            if let Some(end) = self.take(Msg::Signal(signal))? {
                return Ok(Some(end));
            }
        }
        if let Some(brought) = self.lookups.take() {
            self.take(Msg::LookedUp(brought))?;
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
        for reply in self.source.replies() {
            self.take(Msg::Reply(reply))?;
        }
        self.take(Msg::Snapshot { now_ns, snapshot, finished })
    }

    fn keys(&mut self) -> io::Result<Option<ConsoleEnd>> {
        let now_ns = self.clock.now_ns();
        // The end of the write in progress wakes the loop.
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
                Effect::Execute(command, why) => {
                    let result = self.source.execute(&command, &why);
                    let follow = update(&mut self.model, Msg::Executed { command, result });
                    if let Some(end) = self.act(follow)? {
                        return Ok(Some(end));
                    }
                }
                Effect::LookAt(at_ns) => {
                    let past = self.source.past(at_ns).map(Box::new);
                    update(&mut self.model, Msg::Past(past));
                }
                Effect::LookAfter { shown_ns, at_ns } => {
                    let past = self.source.past_after(shown_ns, at_ns).map(Box::new);
                    update(&mut self.model, Msg::Past(past));
                }
                Effect::LookUp(wanted) => {
                    let about = LookupContext::of(&self.model);
                    self.lookups.ask(wanted, about);
                }
                Effect::CommandHosts(wanted) => {
                    let about = LookupContext::of(&self.model);
                    if let Err(why) = self.lookups.command_hosts(wanted, about) {
                        update(&mut self.model, Msg::LookedUp(LookupResult::HostsCommand(Err(why))));
                    }
                }
                Effect::DumpScreen => {
                    let result = dump::write(&self.model);
                    update(&mut self.model, Msg::Dumped(result));
                }
                Effect::Capture(mouse) => self.screen.capture(mouse)?,
                Effect::Copy(text) => self.screen.copy(&text)?,
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

    /// The terminal closed and no signal was seen: the same as SIGHUP.
    fn hung_up(&mut self) -> ConsoleEnd {
        for effect in update(&mut self.model, Msg::Signal(crate::msg::Signal::Hangup)) {
            if let Effect::Execute(command, why) = effect {
                // The terminal that would show an error is closed, and the engine in this process
                // never refuses to drain.
                drop(self.source.execute(&command, &why));
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
