//! Alarms from counters: late answers, backlog, errors, quarantine, input, rings, roles, clocks,
//! disk, and what runs out soon.
//!
//! Owns the counters of the last [`WINDOW`] readings. The watchdog calls it every 100 ms; it reads
//! plain words of the board. Bounded by the shape, by rules and by sites. Computes values; the
//! rules decide by their limits.

mod reading;
mod trend;

use super::verdict::{Cause, Verdict, joined, times};
use crate::board::alarms::{Confidence, Site};
use crate::board::snapshot::drift_sentence;
use crate::board::{self, Board, Stage};
use crate::fault::FaultCode;
use crate::profile::RuleId;
use crate::roles::RoleKind;
use crate::roles::ThreadState;
use crate::streams::{HealthVerdict, SourceKind};
use crate::units::TickRate;
use pinwheel_edge::slot::word::ErrorCode;
use reading::{CounterReading, SiloReading};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use trend::Trends;

/// Readings in a window of 0.5 s.
const WINDOW: usize = 6;
/// Readings in the short window of 100 ms.
const SHORT: usize = 1;
/// Readings in the window of 200 ms that shows a change that has just begun.
const NEWEST: usize = 2;
/// The board's state of a live source that is open.
const SOURCE_OPEN: u64 = 1;
/// A live source that is silent for this long raises an alarm.
const SILENT_NS: u64 = 1_000_000_000;
/// Readings between two checks of the disk: 2 s.
const DISK_EVERY: u64 = 20;
/// Least free space for a run's directory, MiB.
const FREE_MIB: f64 = 256.0;
/// A wait of this share of the shots' time explains late answers.
const WAITING_PERCENT: f64 = 60.0;

/// The value of a rule at a site, with its explanation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) rule: RuleId,
    pub(super) site: Site,
    /// In the unit of the rule's limit.
    pub(super) value: f64,
    /// How often, where the board counts it.
    pub(super) count: Option<u64>,
    /// Whether it is critical, whatever the rule's severity.
    pub(super) is_worse: bool,
    pub(super) verdict: Verdict,
}

/// What may explain late answers: a recent stall, a role that died, or a device that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecentStall {
    pub(super) cause: Cause,
    pub(super) confidence: Confidence,
    pub(super) who: String,
    /// The silos whose answers it can make late, one bit each.
    pub(super) silos: u64,
    pub(super) sentence: String,
    /// How long it lasted and when it ended, nanoseconds since the start.
    pub(super) took_ns: u64,
    pub(super) ended_ns: u64,
}

impl RecentStall {
    /// The longest part of it that can lie after `from_ns`.
    fn since(&self, from_ns: u64) -> u64 {
        self.took_ns.min(self.ended_ns.saturating_sub(from_ns))
    }
}

/// The rules' counters.
pub(super) struct CounterRules {
    looks: VecDeque<CounterReading>,
    rate: TickRate,
    disk: Option<PathBuf>,
    growing: Vec<u32>,
    free_mib: Option<f64>,
    trends: Trends,
    looked: u64,
    /// See [`CounterRules::shots_hit`].
    shots_hit: u64,
    /// The same at the readings of the window.
    hits: VecDeque<u64>,
}

impl CounterRules {
    /// Rules of an engine with this many silos, whose run is kept in `disk`; `root` has the machine's files.
    pub(super) fn new(rate: TickRate, silos: usize, disk: Option<PathBuf>, root: &Path) -> CounterRules {
        CounterRules {
            looks: VecDeque::new(),
            rate,
            disk,
            growing: vec![0; silos],
            free_mib: None,
            trends: Trends::new(root, rate, silos),
            looked: 0,
            shots_hit: 0,
            hits: VecDeque::new(),
        }
    }

    /// The clock goes on from `now_ns`, which is earlier than before. The last reading stays,
    /// because its counters go on.
    pub(super) fn restart(&mut self, now_ns: u64) {
        self.looks.drain(..self.looks.len().saturating_sub(1));
        self.looks.iter_mut().for_each(|last| last.at_ns = now_ns);
        self.trends.restart();
    }

    /// All conditions with a value other than zero at `now_ns`.
    pub(super) fn look(&mut self, board: &Board, now_ns: u64, recent: Option<&RecentStall>) -> Vec<Condition> {
        self.looks.push_back(CounterReading::of(board, now_ns, self.rate));
        if self.looks.len() > WINDOW {
            self.looks.pop_front();
        }
        self.count_hits();
        let mut found = Vec::new();
        let (Some(long), Some(now)) = (self.looks.front(), self.looks.back()) else { return found };
        for silo in 0..now.silos.len() {
            standing(board, silo, &now.silos[silo], &mut found);
            self.flowing(board, silo, (long, now), recent, &mut found);
        }
        if let Some(then) = self.looks.len().checked_sub(1 + SHORT).map(|at| &self.looks[at]) {
            claims(board, then, now, &mut found);
            (0..now.silos.len()).for_each(|silo| rings(board, silo, then, now, &mut found));
        }
        engine(board, (self.looks.len() > 1).then_some(long), now, &mut found);
        streams(board, &mut found);
        self.source(board, long, now, &mut found);
        self.grow(&mut found);
        self.disk(board, &mut found);
        self.trends.look(board, now_ns, self.disk.as_deref(), &mut found);
        found
    }

    /// Adds the shots that were hit since the reading before.
    fn count_hits(&mut self) {
        if let Some(then) = self.looks.len().checked_sub(2).map(|at| &self.looks[at])
            && let Some(now) = self.looks.back()
        {
            self.shots_hit += now.hit_since(then);
        }
        self.hits.push_back(self.shots_hit);
        if self.hits.len() > WINDOW {
            self.hits.pop_front();
        }
    }

    /// Shots that were late or answered with an error since the start, and until half a second ago.
    /// An answer with an error may be late as well, so between two readings the larger number
    /// counts: it is at least so many.
    pub(super) fn shots_hit(&self) -> (u64, u64) {
        (self.shots_hit, self.hits.front().copied().unwrap_or(0))
    }

    /// The conditions at the end of a run, whatever their rates: panics, losses, duplicates, errors
    /// of the last window.
    pub(super) fn last(&mut self, board: &Board, now_ns: u64) -> Vec<Condition> {
        let now = CounterReading::of(board, now_ns, self.rate);
        self.shots_hit += self.looks.back().map_or(0, |then| now.hit_since(then));
        let mut found = Vec::new();
        for silo in 0..now.silos.len() {
            standing(board, silo, &now.silos[silo], &mut found);
            if let Some(long) = self.looks.front() {
                errors(silo, long, &now, &mut found);
            }
        }
        engine(board, self.looks.front(), &now, &mut found);
        found
    }

    /// Conditions by rate: late answers, backlog and errors of the window.
    fn flowing(
        &self,
        board: &Board,
        silo: usize,
        (long, now): (&CounterReading, &CounterReading),
        recent: Option<&RecentStall>,
        found: &mut Vec<Condition>,
    ) {
        let (then, new) = (&long.silos[silo], &now.silos[silo]);
        let (answered, late) = (new.answered - then.answered, new.late - then.late);
        let site = Site::Silo(silo as u32, 0);
        let recent = recent.filter(|recent| recent.silos >> silo & 1 != 0);
        if answered >= 20 && late > 0 {
            let share = late as f64 * 100.0 / answered as f64;
            let what = format!("silo {silo}: {late} of {answered} answers late ({share:.0} %)");
            let verdict = self.why_slow(board, silo, &what, (long, now), recent);
            found.push(condition(RuleId::LateAnswers, site, share, Some(new.late), verdict));
        }
        // A drain discards shots that were due and not yet accepted.
        let scheduled = new.scheduled.saturating_sub(then.scheduled);
        let growth = new.backlog().saturating_sub(then.backlog());
        let share = growth as f64 * 100.0 / scheduled.max(1) as f64;
        if share > 1.0 {
            let what =
                format!("silo {silo}: backlog grew by {growth} shots to {} ({share:.0} % of what came)", new.backlog());
            let mut verdict = self.why_slow(board, silo, &what, (long, now), recent);
            if verdict.cause == Cause::Unexplained {
                (verdict.cause, verdict.confidence) = (Cause::Overload, Confidence::Likely);
            }
            found.push(condition(RuleId::Backlog, site, share, None, verdict));
        }
        errors(silo, long, now, found);
    }

    /// Why answers of a silo are slow: answers that nobody reads, a recent stall, a busy role, what its
    /// shots wait for, or unknown.
    fn why_slow(
        &self,
        board: &Board,
        silo: usize,
        what: &str,
        (long, now): (&CounterReading, &CounterReading),
        recent: Option<&RecentStall>,
    ) -> Verdict {
        let evidence = joined(&reading::stage_lines(long, now));
        let mut pairs = self.looks.iter().zip(self.looks.iter().skip(1));
        if pairs.any(|(then, now)| is_unread(&then.silos[silo], &now.silos[silo])) {
            let sentence = format!("{what}: the reader of the answers took none");
            let (confidence, who) = (Confidence::Likely, String::new());
            return Verdict { cause: Cause::RingFull, sentence, confidence, who, evidence };
        }
        let busiest = self.busiest(board, long, now, None);
        // A role that uses nearly all of its thread's time explains more than a stall. A stall's
        // time is counted in the role that it interrupted, but is not the role's own. If a role has
        // just become slow, most of the last half second is from before.
        let newest = self.looks.len().checked_sub(1 + NEWEST).map(|at| &self.looks[at]);
        let has_most = self.busiest(board, long, now, recent).is_some_and(|(share, _)| share >= 60)
            || newest.is_some_and(|then| self.busiest(board, then, now, recent).is_some_and(|(share, _)| share >= 60));
        if let Some(recent) = recent.filter(|_| !has_most) {
            let sentence = format!("{what}: {}", recent.sentence);
            let who = recent.who.clone();
            return Verdict { cause: recent.cause, sentence, confidence: recent.confidence, who, evidence };
        }
        match busiest.filter(|(share, _)| has_most || *share >= 40) {
            Some((share, busy)) => {
                let each = self.rate.nanos(crate::units::Ticks(busy.ticks / busy.items.max(1))).0;
                let sentence = format!(
                    "{what}: {} on {} takes {share} % of its thread, {:.1} µs an item",
                    busy.role,
                    busy.thread,
                    each as f64 / 1e3
                );
                let confidence = Confidence::Likely;
                Verdict { cause: Cause::SlowStage, sentence, confidence, who: String::new(), evidence }
            }
            None => {
                let waits = waits(&long.silos[silo], &now.silos[silo], board.slots(silo).len() as u64);
                let (cause, confidence) = match waits {
                    Some(_) => (Cause::Overload, Confidence::Likely),
                    None => (Cause::Unexplained, Confidence::Unexplained),
                };
                let why = waits.unwrap_or_else(|| "no stall and no busy role explains it".to_owned());
                Verdict { cause, sentence: format!("{what}: {why}"), confidence, who: String::new(), evidence }
            }
        }
    }

    /// The role with most busy time between two readings, and its share of that time in percent,
    /// without the time of `stall`.
    fn busiest(
        &self,
        board: &Board,
        then: &CounterReading,
        now: &CounterReading,
        stall: Option<&RecentStall>,
    ) -> Option<(u64, reading::Busy)> {
        let span_ns = now.at_ns.saturating_sub(then.at_ns).max(1);
        let busy = reading::busiest(board, then, now)?;
        // An item counts when it is done: of one that took longer, no more than this time.
        let ns = self.rate.nanos(crate::units::Ticks(busy.ticks)).0.min(span_ns);
        let own_ns = ns.saturating_sub(stall.map_or(0, |stall| stall.since(then.at_ns)));
        Some((own_ns * 100 / span_ns, busy))
    }

    /// A backlog raises an alarm only if it grew in three windows in a row.
    fn grow(&mut self, found: &mut Vec<Condition>) {
        for (silo, growing) in self.growing.iter_mut().enumerate() {
            let site = Site::Silo(silo as u32, 0);
            let is_growing = found.iter().any(|c| c.rule == RuleId::Backlog && c.site == site);
            *growing = if is_growing && self.looks.len() == WINDOW { *growing + 1 } else { 0 };
            if (*growing as usize) < 3 * WINDOW {
                found.retain(|c| !(c.rule == RuleId::Backlog && c.site == site));
            }
        }
    }

    /// A live source that is silent for a second, or loses shots.
    fn source(&self, board: &Board, long: &CounterReading, now: &CounterReading, found: &mut Vec<Condition>) {
        let block = board.source();
        if SourceKind::from_code(board::get(&block.kind)).is_none() {
            return;
        }
        let name = block.name.read();
        let silent_ns = now.source_at_ns.and_then(|at| now.at_ns.checked_sub(at)).unwrap_or(0);
        if board::get(&block.state) == SOURCE_OPEN && silent_ns > SILENT_NS {
            let sentence =
                format!("{name} is silent for {:.1} s: see its senders in the sources view", silent_ns as f64 / 1e9);
            let seconds = silent_ns as f64 / 1e9;
            found.push(condition(RuleId::Source, Site::Engine(0), seconds, None, plain(Cause::Source, sentence)));
        }
        if now.source_lost > long.source_lost {
            let lost = now.source_lost - long.source_lost;
            let sentence = format!(
                "{name}: {lost} lost in 0.5 s; in all {} datagrams dropped by the system, {} answers not taken",
                board::get(&block.kernel_drops),
                board::get(&block.answers_dropped)
            );
            let (site, all) = (Site::Engine(1), Some(now.source_lost));
            found.push(condition(RuleId::Source, site, lost as f64, all, plain(Cause::Source, sentence)));
        }
    }

    /// Little free space for the run's directory, or a recording that could not be written there: a quota or a defect
    /// refuses writes although there is room.
    fn disk(&mut self, board: &Board, found: &mut Vec<Condition>) {
        if let Some(trouble) = board.recorder().trouble.read_if_any() {
            let verdict = plain(Cause::Records, trouble);
            found.push(condition(RuleId::Disk, Site::Engine(1), FREE_MIB, None, verdict));
        }
        if self.looked.is_multiple_of(DISK_EVERY) {
            self.free_mib = self.disk.as_deref().and_then(reading::free_mib);
        }
        self.looked += 1;
        let Some(free) = self.free_mib.filter(|free| *free < FREE_MIB) else { return };
        let sentence =
            format!("found {free:.0} MiB free where the run is kept, expected {FREE_MIB:.0}; free some space");
        let verdict = plain(Cause::Records, sentence);
        found.push(condition(RuleId::Disk, Site::Engine(0), FREE_MIB - free, None, verdict));
    }
}

/// What the shots of a silo wait for, where that is most of their time, and at least half of its slots are taken from one
/// reading to the other: after a stall, too, shots wait for a while, and then for the stall's reason.
fn waits(then: &SiloReading, now: &SiloReading, slots: u64) -> Option<String> {
    if then.in_path().min(now.in_path()) * 2 < slots {
        return None;
    }
    let (stage, mean_ns, percent) = reading::longest_stage(then, now)?;
    let what = match stage {
        Stage::Feed => "for a slot".to_owned(),
        Stage::Dispatch if now.workers > 0 => format!("for a device worker, of which there are {}", now.workers),
        Stage::Queue => "for a decode worker".to_owned(),
        Stage::Dispatch | Stage::Device | Stage::Decode | Stage::Harvest => return None,
    };
    (percent >= WAITING_PERCENT)
        .then(|| format!("shots wait {:.1} ms {what} ({percent:.0} % of their time)", mean_ns / 1e6))
}

pub(super) fn condition(rule: RuleId, site: Site, value: f64, count: Option<u64>, verdict: Verdict) -> Condition {
    Condition { rule, site, value, count, is_worse: false, verdict }
}

pub(super) fn plain(cause: Cause, sentence: String) -> Verdict {
    Verdict { cause, evidence: sentence.clone(), sentence, confidence: Confidence::Certain, who: String::new() }
}

/// Shots answered with an error between two readings.
fn errors(silo: usize, long: &CounterReading, now: &CounterReading, found: &mut Vec<Condition>) {
    for code in ErrorCode::ALL {
        let at = code as usize;
        let counts = now.silos[silo].errors.get(at).zip(long.silos[silo].errors.get(at));
        if let Some((new, then)) = counts.filter(|(new, then)| new > then) {
            let site = Site::Silo(silo as u32, at as u32);
            let verdict = errored(silo, code, new - then, now);
            found.push(condition(RuleId::Errors, site, (new - then) as f64, Some(*new), verdict));
        }
    }
}

fn errored(silo: usize, code: ErrorCode, count: u64, now: &CounterReading) -> Verdict {
    let hung = now.silos[silo].device_state != 0 || now.silos[silo].is_all_quarantined();
    let (cause, why) = match code {
        ErrorCode::LaunchFailed => (Cause::LaunchesFail, "the device refused the launch"),
        ErrorCode::LaunchUnknown => (Cause::LaunchesFail, "the launch reported an error, and may have run"),
        ErrorCode::DeviceLost => (Cause::DeviceHung, "the device was lost"),
        ErrorCode::LaunchDeadline if hung => (Cause::DeviceHung, "no launch comes back"),
        ErrorCode::LaunchDeadline => (Cause::WorkerLost, "a launch did not come back"),
        _ => (Cause::Errors, FaultCode::Answered(code).name().trim_end_matches(", slot")),
    };
    let shots = if count == 1 { "shot" } else { "shots" };
    plain(cause, format!("silo {silo}: {count} {shots} answered with {}: {why}", code.name()))
}

/// Conditions by state, not by rate.
fn standing(board: &Board, silo: usize, now: &SiloReading, found: &mut Vec<Condition>) {
    let site = Site::Silo(silo as u32, 0);
    let workers = board.shape().workers;
    if now.quarantined > 0 {
        let all = now.is_all_quarantined();
        let cause = if all || now.device_state != 0 { Cause::DeviceHung } else { Cause::WorkerLost };
        let numbers: Vec<String> = now.quarantined_workers().map(|worker| worker.to_string()).collect();
        let sentence = format!(
            "silo {silo}: {} of {workers} workers in quarantine (worker {}): their launches never came back",
            now.quarantined,
            numbers.join(", ")
        );
        found.push(condition(RuleId::Quarantine, site, f64::from(now.quarantined), None, plain(cause, sentence)));
    }
    if now.device_state != 0 {
        let restart = board::get(&board.device(silo).needs_restart_code);
        let doing = if now.device_state == 1 || restart != 0 { "lost" } else { "being brought back" };
        let fallbacks = board::get(&board.dispatch(silo).cpu_fallbacks);
        let mut sentence =
            format!("silo {silo}: device {doing}, no worker answers; {fallbacks} shots predecoded on the CPU");
        if restart != 0 {
            sentence += &format!("; restart the engine: after CUDA error {restart} the driver opens no device in it");
        }
        // A cause of its own, so that the alarm says it although it was raised for a device that might come back.
        let cause = if restart != 0 { Cause::DeviceError } else { Cause::DeviceHung };
        let losses = Some(board::get(&board.dispatch(silo).device_losses));
        found.push(condition(RuleId::DeviceLost, site, 1.0, losses, plain(cause, sentence)));
    }
    if now.duplicated > 0 {
        let sentence =
            format!("silo {silo}: {} shots answered more than once: a defect, please report", now.duplicated);
        let verdict = plain(Cause::Defect, sentence);
        found.push(condition(RuleId::Duplicates, site, now.duplicated as f64, Some(now.duplicated), verdict));
    }
}

/// Whether the ring of answers was full at both readings, and harvest put nothing into it.
fn is_unread(then: &SiloReading, now: &SiloReading) -> bool {
    then.sink_is_full && now.sink_is_full && then.harvested == now.harvested
}

/// Rings that are full and do not move.
fn rings(board: &Board, silo: usize, then: &CounterReading, now: &CounterReading, found: &mut Vec<Condition>) {
    let (old, new) = (&then.silos[silo], &now.silos[silo]);
    let slots = u64::from(board.shape().slots);
    let span_ms = (now.at_ns - then.at_ns) as f64 / 1e6;
    let mut full = |part: u32, sentence: String| {
        let site = Site::Silo(silo as u32, part);
        found.push(condition(RuleId::RingFull, site, span_ms, None, plain(Cause::RingFull, sentence)));
    };
    // Without a number of milliseconds: the alarm lasts longer than the two readings.
    let is_still = new.harvested == old.harvested;
    if is_unread(old, new) {
        full(1, format!("silo {silo}: the ring of answers is full and does not move: its reader takes none"));
    } else if is_still && new.in_path() >= slots && new.answered_slots > 0 {
        let answered = new.answered_slots;
        full(2, format!("silo {silo}: all {slots} slots are taken, {answered} answered, and harvest takes none"));
    } else if new.dispatched_ever == old.dispatched_ever && new.in_rx_ring() >= slots {
        full(3, format!("silo {silo}: the rx ring is full and dispatch takes none"));
    }
}

/// A role that reports work in every frame and moves nothing (Aeron #2092).
fn claims(board: &Board, then: &CounterReading, now: &CounterReading, found: &mut Vec<Condition>) {
    for (index, (old, new)) in then.threads.iter().zip(&now.threads).enumerate() {
        let (frames, busy) = (new.frames - old.frames, new.frames_busy - old.frames_busy);
        if frames == 0 || busy < frames {
            continue;
        }
        for (old, new) in old.roles.iter().zip(&new.roles) {
            let (items, moved) = (new.items - old.items, new.moved.saturating_sub(old.moved));
            if items >= frames && items > 4 * moved + 64 {
                let span_s = (now.at_ns - then.at_ns) as f64 / 1e9;
                let name = board.thread(index).name.read();
                let role = RoleKind::ALL.get(new.kind).map_or("?", |kind| kind.name());
                let sentence = format!(
                    "{name} has not idled for {:.0} ms: {role} claimed {items} items in {frames} frames and \
                    moved {moved}",
                    span_s * 1e3
                );
                let site = Site::Thread(index as u32);
                found.push(condition(RuleId::NeverIdle, site, span_s, None, plain(Cause::ClaimsWork, sentence)));
            }
        }
    }
}

/// Conditions of threads and of the engine. `long`: the reading half a second ago; `None`: there is
/// none, and what was counted so far is new. A call of the allocator and a lost event are over when
/// no further one comes: else one of each would explain all later stalls.
fn engine(board: &Board, long: Option<&CounterReading>, now: &CounterReading, found: &mut Vec<Condition>) {
    for (index, thread) in now.threads.iter().enumerate() {
        let (block, site) = (board.thread(index), Site::Thread(index as u32));
        let died = thread.roles.iter().filter(|role| role.died > 0).count();
        // Its silo's others end after the one that panicked.
        if let Some(first) = thread.roles.iter().filter(|role| role.died > 0).min_by_key(|role| role.died) {
            let role = RoleKind::ALL.get(first.kind).map_or("a role", |kind| kind.name());
            let name = block.name.read();
            let sentence = match block.panic_file.read() {
                // This role did not panic: its silo was stopped, or another role of its thread
                // panicked.
                file if file.is_empty() => {
                    format!("{role} on {name} ended with its silo: it is not called until that comes back")
                }
                file if board::get(&block.state) == ThreadState::Panicked as u64 => {
                    let line = board::get(&block.panic_line);
                    format!(
                        "{name} panicked at {file}:{line}, outside its roles: none of its {died} roles is called again"
                    )
                }
                file => {
                    let line = board::get(&block.panic_line);
                    format!("{role} on {name} died at {file}:{line}: it is never called again")
                }
            };
            found.push(condition(RuleId::RoleDied, site, died as f64, Some(died as u64), plain(Cause::Died, sentence)));
        }
        if thread.allocations > long.map_or(0, |long| long.threads[index].allocations) {
            let (calls, by) = (thread.allocations, block.allocation_site.read());
            let by = if by.is_empty() { "a place being looked up".to_owned() } else { by };
            let sentence =
                format!("{}: {calls} calls of the allocator in Live, the first from {by}", block.name.read());
            found.push(condition(
                RuleId::HotAllocation,
                site,
                calls as f64,
                Some(calls),
                plain(Cause::Allocation, sentence),
            ));
        }
    }
    clocks(board, long.unwrap_or(now), now, found);
    let lost = now.events_lost;
    if lost > long.map_or(0, |long| long.events_lost) {
        let sentence = format!("{lost} events are not in the log: found no room, or could not be written");
        found.push(condition(
            RuleId::Events,
            Site::Engine(0),
            lost as f64,
            Some(lost),
            plain(Cause::Records, sentence),
        ));
    }
}

fn clocks(board: &Board, long: &CounterReading, now: &CounterReading, found: &mut Vec<Condition>) {
    let block = board.clock();
    let degraded = block.degraded.read();
    if !degraded.is_empty() {
        let sentence = format!("time is read from {}: {degraded}", block.source.read());
        found.push(condition(RuleId::Clock, Site::Engine(0), 1.0, None, plain(Cause::Clock, sentence)));
    }
    let kinds = [
        ("UTC was set", "latencies come from the counter"),
        ("the tick counter jumped (a suspend, or another host)", "latencies across the jump are wrong"),
    ];
    for (kind, (word, latencies)) in kinds.into_iter().enumerate() {
        let (old, new) = (long.clock_steps[kind], now.clock_steps[kind]);
        if new > old {
            let by_ns = board::get(&block.step_ns[kind]).cast_signed();
            let sentence = format!("{word}, last by {:.3} ms, {}: {latencies}", by_ns as f64 / 1e6, times(new));
            let site = Site::Engine(kind as u32 + 1);
            found.push(condition(RuleId::Clock, site, (new - old) as f64, Some(new), plain(Cause::Clock, sentence)));
        }
    }
}

fn drifted(stream: u32, (detector, partner, ratio): (u32, Option<u32>, f64)) -> Condition {
    let value = ratio.max(1.0 / ratio.max(1e-3));
    let sentence = format!("stream {stream}: {}", drift_sentence(detector, partner, ratio));
    condition(RuleId::ModelDrift, Site::Stream(stream), value, None, plain(Cause::Input, sentence))
}

fn streams(board: &Board, found: &mut Vec<Condition>) {
    for stream in 0..board.shape().streams as usize {
        let feed = board.stream_feed(stream);
        found.extend(feed.drifted().map(|drift| drifted(stream as u32, drift)));
        let (value, word) = match HealthVerdict::from_code(board::get(&feed.verdict)) {
            HealthVerdict::TooFew | HealthVerdict::Good => continue,
            HealthVerdict::Suspect => (1.0, "suspect"),
            HealthVerdict::Bad => (2.0, "bad: wrong model, noise or bit order"),
        };
        let percent = |bits| f64::from_bits(board::get(bits)) * 100.0;
        let sentence = format!(
            "stream {stream}: input {word}; {:.2} % of detectors fire, the model says {:.2} %",
            percent(&feed.found_bits),
            percent(&feed.expected_bits)
        );
        let mut bad =
            condition(RuleId::InputHealth, Site::Stream(stream as u32), value, None, plain(Cause::Input, sentence));
        bad.is_worse = value > 1.0;
        found.push(bad);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod conditions;
