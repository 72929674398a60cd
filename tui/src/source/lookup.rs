//! Data outside the board: files of the run directory, and the users of the machine's cores.
//!
//! Reads only. Called on the look-up thread, so a slow disk does not delay drawing. Bounded by
//! [`TAIL_BYTES`] of events and by the size of the machine.

use super::Ownership;
use super::chart;
use super::effects::{Effects, OpenRecording};
use crate::model::Model;
use crate::model::lookups::{EVENTS_MAX, Event, LookupRequest, LookupResult};
use pinwheel_engine::board;
use pinwheel_engine::files;
use pinwheel_engine::host::check::Row;
use pinwheel_engine::host::check::report::Report;
use pinwheel_engine::host::neighbours::own_uid;
use pinwheel_engine::host::usage::{CoreUse, Times, rows};
use pinwheel_engine::host::{HostFacts, claims, pins};
use pinwheel_engine::quote::cut;
use pinwheel_hosts::local_socket::{self, Wanted};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of events read, from the end.
pub const TAIL_BYTES: u64 = 1 << 20;
/// Largest environment report read.
const REPORT_BYTES_MAX: u64 = 1 << 20;

/// The engine shown, as far as a look-up needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupContext {
    pub run_dir: Option<PathBuf>,
    /// One moment on both clocks: nanoseconds after the engine's start, and since 1970.
    pub moment: Option<(u64, u64)>,
    /// The host that has the engine, its files and its cores; `None`: this machine.
    pub host: Option<String>,
    /// The engine's user; `None`: the user of this process.
    pub owner: Option<u32>,
    /// Whether a recording is shown, not an engine.
    pub is_recorded: bool,
}

impl LookupContext {
    /// The context of the engine that `model` shows.
    pub fn of(model: &Model) -> LookupContext {
        let snapshot = model.picture().map(|picture| &picture.snapshot);
        let (host, owner) = match &model.ownership {
            Ownership::OtherHost(host) => (Some(host.clone()), None),
            Ownership::Attached { uid, .. } => (None, Some(*uid)),
            Ownership::Own => (None, None),
        };
        LookupContext {
            run_dir: snapshot.and_then(|snapshot| snapshot.recorder.run_dir.as_ref()).map(PathBuf::from),
            moment: snapshot.and_then(|snapshot| snapshot.clock.pair.as_ref()).map(|pair| (pair.at_ns, pair.utc_ns)),
            host,
            owner,
            is_recorded: model.is_replay(),
        }
    }

    fn run_dir(&self) -> Result<&Path, String> {
        self.elsewhere()?;
        let none = || "this engine has no run directory; a run has one unless --logs cannot be written".to_owned();
        self.run_dir.as_deref().ok_or_else(none)
    }

    /// The run directory and user of the engine that can be asked about its hosts.
    fn engine(&self) -> Result<(&Path, u32), String> {
        if self.is_recorded {
            return Err(
                "a recording does not hold other hosts; pinwheel hosts shows those of a running engine".to_owned()
            );
        }
        Ok((self.run_dir()?, self.owner.or_else(own_uid).unwrap_or_default()))
    }

    /// Refuses what only the engine's machine has.
    fn elsewhere(&self) -> Result<(), String> {
        let Some(host) = &self.host else { return Ok(()) };
        Err(format!("host {host} has its files and cores; pinwheel attach ssh:HOST opens the console there"))
    }
}

/// State kept between look-ups.
#[derive(Default)]
pub struct LookupState {
    /// The cores' load at the previous look-up.
    load: Option<Times>,
    recording: OpenRecording,
    effects: Effects,
}

pub fn look_up(wanted: LookupRequest, about: &LookupContext, kept: &mut LookupState) -> LookupResult {
    let run_dir = about.run_dir();
    match wanted {
        LookupRequest::Environment => LookupResult::Environment(run_dir.and_then(environment)),
        LookupRequest::Log => LookupResult::Log(run_dir.and_then(|dir| log(dir, about.moment))),
        LookupRequest::Actions => {
            let found = run_dir.and_then(|dir| Ok((dir, log(dir, about.moment)?)));
            let effects = found
                .as_ref()
                .map_or_else(|_| Vec::new(), |(dir, events)| kept.effects.of(&mut kept.recording, dir, events));
            LookupResult::Actions(found.map(|(_, events)| events), effects)
        }
        LookupRequest::Cores => LookupResult::Cores(about.elsewhere().and_then(|()| cores(&mut kept.load))),
        LookupRequest::Hosts => {
            let listed = about.engine().and_then(|(dir, owner)| local_socket::list(dir, owner));
            LookupResult::Hosts(listed.map(|status| status.hosts))
        }
        LookupRequest::Chart { from_ns, to_ns, bins } => LookupResult::Chart(run_dir.and_then(|dir| {
            let tape = kept.recording.of(dir).ok_or_else(|| "this run has no recording yet".to_owned())?;
            chart::points(tape, (from_ns, to_ns), bins)
        })),
    }
}

/// Passes a command about hosts to the engine.
pub fn command_hosts(wanted: &Wanted, about: &LookupContext) -> LookupResult {
    LookupResult::HostsCommand(about.engine().and_then(|(dir, owner)| local_socket::ask(dir, owner, wanted)))
}

fn unread(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot read {} ({error}); the engine writes it at the start of the run", path.display())
}

fn environment(dir: &Path) -> Result<Vec<Row>, String> {
    let path = dir.join("environment.json");
    let bytes = files::read_in(dir, "environment.json", REPORT_BYTES_MAX).map_err(|error| unread(&path, &error))?;
    let report: Report = serde_json::from_slice(&bytes).map_err(|error| {
        let said = error.to_string();
        let (path, said) = (path.display(), cut(&said));
        format!("{path} is damaged ({said}); choose another run")
    })?;
    Ok(report.rows)
}

/// The newest events, oldest first.
fn log(dir: &Path, moment: Option<(u64, u64)>) -> Result<Vec<Event>, String> {
    let path = dir.join("events.jsonl");
    let mut file = files::open_in(dir, "events.jsonl").map_err(|error| unread(&path, &error))?;
    let length = file.metadata().map_err(|error| unread(&path, &error))?.len();
    let from = length.saturating_sub(TAIL_BYTES);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).map_err(|error| unread(&path, &error))?;
    file.take(TAIL_BYTES).read_to_end(&mut bytes).map_err(|error| unread(&path, &error))?;
    Ok(events(&bytes, from, moment))
}

/// The events of `bytes`, which begin at offset `from` of the file. A line cut at either end is
/// skipped.
pub fn events(bytes: &[u8], from: u64, moment: Option<(u64, u64)>) -> Vec<Event> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &bytes[..=end]);
    let (mut at, mut events) = (from, Vec::new());
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        events.extend(event(line, at, moment));
        at += line.len() as u64;
    }
    let surplus = events.len().saturating_sub(EVENTS_MAX);
    events.drain(..surplus);
    events
}

fn event(line: &[u8], number: u64, moment: Option<(u64, u64)>) -> Option<Event> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let text = |name: &str| value.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let utc = text("utc");
    let at_ns = moment.zip(unix_ns(&utc)).and_then(|((at_ns, utc_ns), event_ns)| match event_ns >= utc_ns {
        true => at_ns.checked_add(event_ns - utc_ns),
        false => at_ns.checked_sub(utc_ns - event_ns),
    });
    let numbers = value.get("numbers").and_then(|numbers| numbers.as_array());
    let numbers = numbers.into_iter().flatten().filter_map(serde_json::Value::as_u64).collect();
    Some(Event { number, at_ns, thread: text("thread"), event: text("event"), text: text("text"), numbers, utc })
}

/// Nanoseconds since 1970 of `2026-11-22T07:15:33.000000000Z`.
pub fn unix_ns(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1970..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    // Civil calendar counted from March, so that a leap day is the last day of a year (Hinnant).
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted / 400, shifted % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days * 86_400 + hour.min(23) * 3_600 + minute.min(59) * 60 + second.min(60);
    seconds.checked_mul(1_000_000_000)?.checked_add(digits.parse().ok()?)
}

/// Every core, its users, and its load since the previous look-up.
fn cores(load: &mut Option<Times>) -> Result<Vec<CoreUse>, String> {
    let root = Path::new("/");
    let host = HostFacts::read().map_err(|error| error.to_string())?;
    let now = Times::read(root);
    // At the first look-up no interval has passed: the load is unknown, and shown as such.
    let before = load.replace(now.clone()).unwrap_or_else(|| now.clone());
    let directory = board::directory();
    let (claimed, locked) = (claims::claimed(&directory), claims::foreign_locks(&directory));
    let pinned = pins::pins(root, 0);
    Ok(rows(root, &host, (&claimed, &locked), &pinned, (&before, &now)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{LookupContext, LookupState, Ownership, Wanted, command_hosts, events, look_up, own_uid, unix_ns};
    use crate::model::lookups::{LookupRequest, LookupResult};
    use crate::model::{Mode, Model};
    use crate::source::Access;
    use crate::theme::{Colour, Glyphs, Palette, Theme};
    use pinwheel_engine::profile::OnHangup;
    use pinwheel_hosts::local_socket::LocalSocket;

    const LINE: &str = r#"{"utc":"2026-01-01T14:00:01.500000000Z","ticks":7,"thread":"operator","event":"note","text":"pump on","numbers":[1,2]}"#;

    #[test]
    fn moments_are_written_as_the_runs_events_have_them() {
        for text in [
            "1970-01-01T00:00:00.000000000Z",
            "2024-02-29T23:59:59.000000001Z",
            "2025-12-31T00:00:00.500000000Z",
            "2026-03-01T14:00:01.500000000Z",
            "2100-02-28T12:00:00.000000000Z",
        ] {
            assert_eq!(crate::widgets::format::utc(unix_ns(text).unwrap()), text);
        }
    }

    #[test]
    fn moments_are_read_to_the_nanosecond() {
        assert_eq!(unix_ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ns("2026-01-01T14:00:01.500000000Z"), Some(1_767_276_001_500_000_000));
        assert_eq!(unix_ns("2024-02-29T00:00:00.1Z"), Some(1_709_164_800_100_000_000));
        for text in ["", "now", "2026-13-01T00:00:00Z", "2026-01-01", "1969-12-31T23:59:59Z"] {
            assert_eq!(unix_ns(text), None, "{text}");
        }
    }

    #[test]
    fn events_carry_their_moment_and_cut_or_damaged_lines_are_left_out() {
        let bytes = format!("tail of a line\"}}\n{LINE}\n{{\"half");
        let found = events(bytes.as_bytes(), 100, Some((2_000_000_000, 1_767_276_001_000_000_000)));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].at_ns, found[0].number), (Some(2_500_000_000), 117));
        assert_eq!((found[0].event.as_str(), found[0].text.as_str()), ("note", "pump on"));
        assert_eq!(events(bytes.as_bytes(), 0, None)[0].at_ns, None);
    }

    #[test]
    fn what_cannot_be_read_says_so_in_one_sentence() {
        let LookupResult::Log(Err(said)) =
            look_up(LookupRequest::Log, &LookupContext::default(), &mut LookupState::default())
        else {
            panic!("no run")
        };
        assert!(said.contains("this engine has no run directory") && !said.contains('\n'));
        let dir = tempfile::tempdir().unwrap();
        let about = LookupContext { run_dir: Some(dir.path().to_owned()), ..LookupContext::default() };
        let LookupResult::Environment(Err(said)) =
            look_up(LookupRequest::Environment, &about, &mut LookupState::default())
        else {
            panic!("no file")
        };
        assert!(said.contains("environment.json"), "{said}");
        std::fs::write(dir.path().join("events.jsonl"), format!("{LINE}\n")).unwrap();
        let LookupResult::Log(Ok(found)) = look_up(LookupRequest::Log, &about, &mut LookupState::default()) else {
            panic!("a file")
        };
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn hosts_are_asked_of_the_boards_owner_and_never_of_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        let _socket = LocalSocket::open(dir.path(), |asked| asked.answer.send(Ok("moved".to_owned())).is_ok()).unwrap();
        let own = own_uid().unwrap();
        let theme = Theme { palette: Palette::Dark, colour: Colour::Sixteen, glyphs: Glyphs::Utf8, own: None };
        let mut model = Model::new(theme, (80, 24), OnHangup::Detach);
        let asked = |model: &Model| {
            let about = LookupContext { run_dir: Some(dir.path().to_owned()), ..LookupContext::of(model) };
            match command_hosts(&Wanted::Close, &about) {
                LookupResult::HostsCommand(said) => said,
                _ => panic!("another look-up"),
            }
        };
        assert_eq!(asked(&model), Ok("moved".to_owned()));
        model.ownership = Ownership::Attached { pid: 7, uid: own, access: Access::Act };
        assert_eq!(asked(&model), Ok("moved".to_owned()));
        // The socket of another user than the board's is not asked.
        model.ownership = Ownership::Attached { pid: 7, uid: own + 1, access: Access::Act };
        assert!(asked(&model).is_err_and(|said| said.contains(&format!("{}", own + 1))));
        model.mode = Mode::Replay { running_since_ns: None };
        assert!(asked(&model).is_err_and(|said| said.contains("a recording does not hold other hosts")));
    }

    #[test]
    fn the_load_of_cores_needs_two_samples() {
        let mut kept = LookupState::default();
        let LookupResult::Cores(Ok(first)) = look_up(LookupRequest::Cores, &LookupContext::default(), &mut kept) else {
            panic!("cores")
        };
        assert!(!first.is_empty() && kept.load.is_some());
        assert!(first.iter().all(|core| core.busy.is_none()), "nothing has passed yet");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(text in "\\PC{0,80}", from in 0u64..1_000) {
            let _ = events(text.as_bytes(), from, Some((u64::MAX, 0)));
            let _ = unix_ns(&text);
        }
    }
}
