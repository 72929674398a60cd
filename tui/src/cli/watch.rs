//! `pinwheel attach` without a console: prints the screen as text, a list as comma-separated
//! values, or the board as JSON, once or repeatedly.
//!
//! Runs on the main thread; reads the board as often as the console does, so that rates cover one
//! second. Bounded by one snapshot and one screen. Sends no commands; ends with the engine, with
//! its reader, or at a signal.

use super::refusal::Refusal;
use super::say::{self, written};
use super::screen_output::ScreenArgs;
use super::signals::Signals;
use super::{engines, pause};
use crate::effect::Effect;
use crate::model::lists::{self, Headings};
use crate::model::{Mode, Model};
use crate::msg::{Finished, Msg};
use crate::source::lookup::{LookupContext, LookupState, look_up};
use crate::source::{Reply, Source};
use crate::term;
use crate::theme::Theme;
use crate::update::update;
use pinwheel_engine::profile::OnHangup;
use pinwheel_report::format::{Syntax, visible};
use pinwheel_report::moment::attached;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Interval between two reads of the board.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Reads before the first output: one second, which rates and percentiles cover.
const FIRST_LOOKS: u32 = 11;

/// Form of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Screen,
    Picture,
    Values,
    Json,
}

/// Prints once, or each `every` until the engine or the reader ends, or a signal arrives.
///
/// # Errors
/// If the view has no list, the engine has no moment to print, or signal handlers cannot be installed.
pub fn watch(
    source: &mut dyn Source,
    form: Form,
    screen: &ScreenArgs,
    every: Option<Duration>,
    theme: Theme,
) -> Result<u8, Refusal> {
    let (view, list) = screen.what(form == Form::Values)?;
    let signals = Signals::install().map_err(|error| Refusal::signals(&error))?;
    let mut model = Model::new(theme, screen.size.unwrap_or((100, 40)), OnHangup::Detach);
    (model.view, model.ownership, model.mode) = (view, source.ownership(), Mode::Live);
    let mut watched = Watched { model, kept: LookupState::default(), looks: 0, is_new: false, why_empty: None };
    let mut heads = Headings::Shown;
    let between =
        every.map_or(0, |every| u32::try_from(every.as_nanos().div_ceil(POLL_INTERVAL.as_nanos())).unwrap_or(u32::MAX));
    let (mut due, mut said) = (FIRST_LOOKS, None);
    loop {
        let finished = watched.look(source);
        if let Some(signal) = signals.received().or_else(|| signals.hangup()) {
            return Ok(128 + signal as u8);
        }
        if every.is_none() && watched.looks >= due && watched.model.picture().is_none() {
            return Err(engines::without_clock());
        }
        // The final state of an engine that ends is printed once more.
        if watched.is_due(due, every) || finished == Finished::Yes {
            let text = match (form, list) {
                (Form::Values, Some(list)) => lists::csv(&watched.model, list, every.map(|_| watched.at_s()), heads),
                (Form::Json, _) => watched.json(),
                (Form::Picture, _) => term::svg::picture(&watched.model),
                _ => term::dump::text(&watched.model),
            };
            heads = Headings::Hidden;
            let why_empty = watched.why_empty.take().filter(|why| form == Form::Values && said.as_ref() != Some(why));
            if let Some(why) = why_empty {
                say::people(&format!("pinwheel: {why}"));
                said = Some(why);
            }
            let out = &mut io::stdout().lock();
            let shown = visible(&text, if form == Form::Json { Syntax::Json } else { Syntax::Plain });
            match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(0),
                Err(error) => return Ok(written(Err(error), 1)),
                Ok(()) => {}
            }
            due = watched.looks.saturating_add(between);
            watched.is_new = false;
        }
        for reply in source.replies() {
            if let Reply::Refused(said) = reply {
                say::people(&format!("pinwheel: {said}"));
            }
        }
        if let Some(said) = source.lost() {
            say::people(&format!("pinwheel: {said}"));
            return Ok(1);
        }
        if finished == Finished::Yes || every.is_none() && watched.looks >= due {
            return Ok(0);
        }
        pause(POLL_INTERVAL);
    }
}

struct Watched {
    model: Model,
    kept: LookupState,
    looks: u32,
    /// Whether a board came since the last output.
    is_new: bool,
    /// Why the last look-up found nothing.
    why_empty: Option<String>,
}

impl Watched {
    /// Whether it is time for an output. A board that was printed is not printed again: that of a host that does not
    /// answer would look like its present state.
    fn is_due(&self, due: u32, every: Option<Duration>) -> bool {
        self.looks >= due && (self.is_new || every.is_none())
    }

    fn look(&mut self, source: &mut dyn Source) -> Finished {
        self.looks = self.looks.saturating_add(1);
        let now_ns = u64::from(self.looks) * POLL_INTERVAL.as_nanos() as u64;
        let snapshot = source.snapshot().map(Box::new);
        self.is_new |= snapshot.is_some();
        let finished = if source.is_finished() { Finished::Yes } else { Finished::No };
        let mut effects = update(&mut self.model, Msg::Snapshot { now_ns, snapshot, finished });
        if self.looks == 1 {
            effects.extend(update(&mut self.model, Msg::Offers(source.offers())));
        }
        for effect in effects {
            if let Effect::LookUp(wanted) = effect {
                let about = LookupContext::of(&self.model);
                let brought = look_up(wanted, &about, &mut self.kept);
                self.why_empty = brought.refusal().map(str::to_owned);
                update(&mut self.model, Msg::LookedUp(brought));
            }
        }
        finished
    }

    /// The printed moment, seconds after the engine's start.
    fn at_s(&self) -> f64 {
        self.model.picture().map_or(0.0, |picture| picture.snapshot.at_ns as f64 / 1e9)
    }

    /// The board as one line of JSON. Its process may be another one than at the start: a host that was started again.
    fn json(&self) -> String {
        let Some(picture) = self.model.picture() else { return String::new() };
        format!("{}\n", attached(&picture.snapshot, picture.snapshot.engine.pid))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{LookupState, Model, OnHangup, Source, Theme, Watched};
    use crate::source::past::Past;
    use pinwheel_engine::board::image::Image;
    use pinwheel_engine::board::snapshot::Snapshot;
    use pinwheel_engine::board::{Board, Place, Shape, set};
    use pinwheel_engine::engine::Command;
    use pinwheel_engine::units::Ticks;
    use std::time::Duration;

    /// A host whose boards come one after the other.
    struct Host(Vec<Option<Snapshot>>);

    impl Source for Host {
        fn snapshot(&mut self) -> Option<Snapshot> {
            self.0.remove(0)
        }

        fn execute(&mut self, _: &Command, _: &str) -> Result<(), String> {
            Err(String::new())
        }

        fn is_finished(&self) -> bool {
            false
        }

        fn past(&mut self, _: u64) -> Result<Past, String> {
            Err(String::new())
        }
    }

    fn seen(pid: u64, at: u64) -> Option<Snapshot> {
        let shape = Shape { threads: 1, silos: 1, slots: 8, workers: 1, decoders: 1, streams: 1 };
        let board = Board::create(shape, Place::Private).unwrap();
        set(&board.header().nanos_per_tick_q32, 1 << 32);
        set(&board.header().pid, pid);
        Some(board.snapshot(&Image::of(&board).clock(Ticks(at)).unwrap()))
    }

    #[test]
    fn a_host_that_does_not_answer_is_not_printed_again_and_one_that_starts_again_is_another_process() {
        let model = Model::new(Theme::from_variables(|_| None), (100, 40), OnHangup::Detach);
        let mut watched = Watched { model, kept: LookupState::default(), looks: 0, is_new: false, why_empty: None };
        let mut host = Host(vec![seen(7, 2_000), None, seen(8, 1_000)]);
        let every = Some(Duration::from_millis(100));
        let mut printed = Vec::new();
        for look in 1..=3 {
            watched.look(&mut host);
            if watched.is_due(look, every) {
                let line: serde_json::Value = serde_json::from_str(&watched.json()).unwrap();
                printed.push((look, line["attach"]["pid"].as_u64().unwrap()));
                watched.is_new = false;
            }
        }
        assert_eq!(printed, [(1, 7), (3, 8)]);
    }
}
