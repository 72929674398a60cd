//! `pinwheel attach` without a console: what it would show as text, a list as comma-separated values, or the board as JSON,
//! once or again and again.
//!
//! Runs on the main thread; looks as often as the console does, so that rates are of a second. Bounded by one picture and
//! one screen. Never acts on the engine, and ends with it, with its reader, or at a signal.

use super::looks::LooksArgs;
use super::refusal::Refusal;
use super::replay::moment;
use super::say::Syntax;
use super::signals::Signals;
use super::still::StillArgs;
use super::{say, written};
use crate::effect::Effect;
use crate::model::lists::{self, Heads};
use crate::model::{Mode, Model};
use crate::msg::{Finished, Msg};
use crate::source::Source;
use crate::source::attach::Attach;
use crate::source::beside::{About, Kept, look_up};
use crate::term;
use crate::update::update;
use pinwheel_engine::profile::OnHangup;
use serde_json::json;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Between two looks at the board.
pub const LOOK: Duration = Duration::from_millis(100);
/// Looks before the first is told: a second, of which rates and percentiles are.
const FIRST_LOOKS: u32 = 11;

/// What is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Screen,
    Values,
    Json,
}

/// Tells it once, or each `every`, until the engine, the reader or a signal ends it.
///
/// # Errors
/// When the view has no list, or signals cannot be watched.
pub fn watch(
    source: &mut Attach,
    pid: u32,
    form: Form,
    still: &StillArgs,
    every: Option<Duration>,
    looks: &LooksArgs,
) -> Result<u8, Refusal> {
    let (view, list) = still.what(form == Form::Values)?;
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let theme = looks.theme(|name| std::env::var(name).ok());
    let mut model = Model::new(theme, still.size.unwrap_or((100, 40)), OnHangup::Detach);
    (model.view, model.bond, model.mode) = (view, source.bond(), Mode::Live);
    let mut watched = Watched { model, kept: Kept::default(), looks: 0 };
    let mut heads = Heads::Shown;
    let between =
        every.map_or(0, |every| u32::try_from(every.as_nanos().div_ceil(LOOK.as_nanos())).unwrap_or(u32::MAX));
    let mut due = FIRST_LOOKS;
    loop {
        let finished = watched.look(source);
        if let Some(signal) = signals.received() {
            return Ok(128 + signal as u8);
        }
        // An engine that ends is told once more, as it ended.
        if watched.looks >= due || finished == Finished::Yes {
            let text = match (form, list) {
                (Form::Values, Some(list)) => lists::csv(&watched.model, list, every.map(|_| watched.at_s()), heads),
                (Form::Json, _) => watched.json(pid),
                _ => term::dump::text(&watched.model),
            };
            heads = Heads::Hidden;
            let out = &mut io::stdout().lock();
            let shown = say::visible(&text, if form == Form::Json { Syntax::Json } else { Syntax::Plain });
            match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(0),
                Err(error) => return Ok(written(Err(error), 1)),
                Ok(()) => {}
            }
            due = watched.looks.saturating_add(between);
        }
        if let Some(said) = source.lost() {
            say::people(&format!("pinwheel: {said}"));
            return Ok(1);
        }
        if finished == Finished::Yes || every.is_none() && watched.looks >= due {
            return Ok(0);
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a look from outside; it runs no engine")]
fn pause() {
    std::thread::sleep(LOOK);
}

struct Watched {
    model: Model,
    kept: Kept,
    looks: u32,
}

impl Watched {
    fn look(&mut self, source: &mut Attach) -> Finished {
        self.looks = self.looks.saturating_add(1);
        let now_ns = u64::from(self.looks) * LOOK.as_nanos() as u64;
        let snapshot = source.snapshot().map(Box::new);
        let finished = if source.is_finished() { Finished::Yes } else { Finished::No };
        let mut effects = update(&mut self.model, Msg::Snapshot { now_ns, snapshot, finished });
        if self.looks == 1 {
            effects.extend(update(&mut self.model, Msg::Offers(source.offers())));
        }
        for effect in effects {
            if let Effect::LookUp(wanted) = effect {
                let about = About::of(self.model.picture().map(|picture| &picture.snapshot));
                let brought = look_up(wanted, &about, &mut self.kept);
                update(&mut self.model, Msg::Brought(brought));
            }
        }
        finished
    }

    /// The moment shown, seconds after the engine's start.
    fn at_s(&self) -> f64 {
        self.model.picture().map_or(0.0, |picture| picture.snapshot.at_ns as f64 / 1e9)
    }

    /// The board, a line.
    fn json(&self, pid: u32) -> String {
        let Some(picture) = self.model.picture() else { return String::new() };
        let about = json!({"pid": pid, "at_ns": picture.snapshot.at_ns, "silent_ns": self.model.silence_ns()});
        format!("{}\n", moment(&picture.snapshot, "attach", &about))
    }
}
