//! The run that this process's console operates.
//!
//! On the console thread, which calls it ten times a second and waits for nothing here. What follows a run on another input is
//! [`Succession`]'s.

use super::succession::Succession;
use crate::model::deeds::Deed;
use crate::source::live::Handle;
use crate::source::{Hold, News};
use pinwheel_engine::board::snapshot::Snapshot;
use pinwheel_engine::engine::{Actor, ApplyError};
use pinwheel_engine::profile::{Profile, Rate};
use pinwheel_engine::record::LookBack;
use std::sync::Arc;
use std::time::Duration;

impl Handle for Succession {
    type Refusal = String;

    fn snapshot(&self) -> Option<Snapshot> {
        Succession::snapshot(self)
    }

    fn apply(&mut self, name: &str, next: &Profile, lent: Option<Duration>, why: &str) -> Result<(), String> {
        let switched = self.engine()?.switch(name, next, lent, &Actor::this_process_for(why));
        switched.map(drop).map_err(|error| error.to_string())
    }

    fn profile(&self) -> Option<Arc<Profile>> {
        Succession::profile(self)
    }

    fn request_drain(&mut self, why: &str) {
        Succession::request_drain(self, Some(&Actor::this_process_for(why)));
    }

    fn acknowledge(&self, number: u64) -> Result<(), String> {
        self.engine()?.acknowledge(number).map_err(|error| error.to_string())
    }

    fn snooze(&self, number: u64, span: Duration) -> Result<(), String> {
        self.engine()?.snooze(number, span).map_err(|error| error.to_string())
    }

    fn hold(&self, hold: Hold, why: &str) -> Result<(), String> {
        let by = Actor::this_process_for(why);
        let engine = self.engine()?;
        let done = if hold == Hold::Hold { engine.pause(&by) } else { engine.resume(&by) };
        done.map_err(|error: ApplyError| error.to_string())
    }

    fn set_rate(&self, rate: Rate, why: &str) -> Result<(), String> {
        self.engine()?.set_rate(rate, &Actor::this_process_for(why)).map(drop).map_err(|error| error.to_string())
    }

    fn act(&mut self, deed: &Deed, why: &str) -> Result<(), String> {
        let by = Actor::this_process_for(why);
        match deed {
            Deed::Silo { silo, deed } => {
                self.engine()?.act_on_silo(*silo, *deed, &by).map_err(|refused| refused.to_string())
            }
            Deed::Move { stream, to } => {
                self.engine()?.move_stream_by(*stream, *to, &by).map_err(|refused| refused.to_string())
            }
            Deed::Drill(drill) => {
                self.engine()?.drill(*drill, None, &by).map(drop).map_err(|refused| refused.to_string())
            }
            Deed::Input(spec) => self.ask(spec, by),
        }
    }

    fn news(&mut self) -> Vec<News> {
        self.step()
    }

    fn is_finished(&self) -> bool {
        Succession::is_finished(self)
    }

    fn look_back(&self) -> Option<&LookBack> {
        self.engine().ok()?.look_back()
    }

    fn note(&self, text: &str) -> Result<(), String> {
        self.engine()?.note(text).map_err(|error| error.to_string())
    }
}
