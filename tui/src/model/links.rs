//! Links between rows: slot to worker, worker to thread, thread to alarm, alarm to stack, and so
//! on.
//!
//! Pure, on the console thread. Follows the relations in the picture.

use super::alarms::{place_of, selected};
use super::derived::waiting_ns;
use super::lookups::Event;
use super::{Cursor, Location, Model, View, Zoom, chart, lists};
use crate::effect::Effect;
use pinwheel_engine::board::alarms::Site;
use pinwheel_engine::board::snapshot::{SlotState, Snapshot, WorkerState};
use pinwheel_engine::roles::RoleKind;

/// Target of the link of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    To(Location),
    /// Shows a recorded moment.
    Do(Effect),
}

/// The link of the row under the cursor, or why it has none.
pub fn next(model: &Model) -> Result<Link, String> {
    let nothing = || "the engine has published no snapshot yet; wait for it".to_owned();
    let snapshot = &model.picture().ok_or_else(nothing)?.snapshot;
    match model.view {
        View::Overview => oldest_slot(model),
        View::Slots => from_slot(model, snapshot),
        View::Workers => from_worker(model, snapshot),
        View::Threads => from_thread(model, snapshot),
        View::Alarms => from_alarm(model, snapshot),
        View::Streams => from_stream(model, snapshot),
        View::Rings => from_ring(model, snapshot),
        View::Cores => from_core(model, snapshot),
        View::Sources => Ok(to(model, View::Streams, |cursor| cursor.stream = cursor.source)),
        View::Log => from_event(model.lookups.log.rows().get(model.cursor.event)),
        View::Actions => from_event(lists::actions::at(model, model.cursor.action)),
        View::Environment | View::Hosts | View::Compare => Ok(zoomed(model)),
        View::Chart => {
            let nothing = || "there is no point yet: the recording is being read".to_owned();
            chart::moment(model).map(|at_ns| Link::Do(Effect::LookAt(at_ns))).ok_or_else(nothing)
        }
        View::Placement => Ok(to(model, View::Rings, |_| ())),
        View::Profiles | View::Graph | View::Arbiter | View::Help => {
            Err("this view's rows lead nowhere else; tab goes to the next view".to_owned())
        }
    }
}

fn to(model: &Model, view: View, set: impl FnOnce(&mut Cursor)) -> Link {
    let mut cursor = model.cursor;
    set(&mut cursor);
    Link::To(Location { view, cursor, zoom: Zoom::Both })
}

fn zoomed(model: &Model) -> Link {
    Link::To(Location { view: model.view, cursor: model.cursor, zoom: Zoom::Details })
}

fn oldest_slot(model: &Model) -> Result<Link, String> {
    let silos = model.picture().map(|picture| picture.derived.silos.iter().enumerate()).into_iter().flatten();
    let waits = silos.filter_map(|(silo, derived)| derived.oldest.map(|(slot, age_ns)| (age_ns, silo, slot)));
    let (_, silo, slot) = waits.max().ok_or("no slot waits; no slot to show")?;
    Ok(to(model, View::Slots, |cursor| (cursor.silo, cursor.slot) = (silo, slot)))
}

/// A slot in flight links to its worker; a written or completed one to the thread that processes it
/// next.
fn from_slot(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let silo = snapshot.silos.get(model.cursor.silo).ok_or("there is no silo yet")?;
    let slot = silo.slots.get(model.cursor.slot).ok_or("this ring has no slots")?;
    match (slot.state, slot.worker) {
        (SlotState::InFlight, Some(worker)) => {
            Ok(to(model, View::Workers, |cursor| cursor.worker = usize::from(worker)))
        }
        (SlotState::InFlight, None) => thread_of(model, snapshot, model.cursor.silo, RoleKind::Decode),
        (SlotState::Written, _) => thread_of(model, snapshot, model.cursor.silo, RoleKind::Dispatch),
        (SlotState::Completed, _) => thread_of(model, snapshot, model.cursor.silo, RoleKind::Harvest),
        (SlotState::Idle, _) => Err(format!("slot {} is idle: it holds no shot", model.cursor.slot)),
    }
}

/// A worker links to the thread that claims its outputs or runs it.
fn from_worker(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let silo = snapshot.silos.get(model.cursor.silo).ok_or("there is no silo yet")?;
    let worker = silo.workers.get(model.cursor.worker).ok_or("this silo has no workers")?;
    let role = match worker.state {
        WorkerState::Free => RoleKind::Dispatch,
        WorkerState::Running => RoleKind::Device,
        WorkerState::Claimed | WorkerState::Quarantined => RoleKind::Poll,
    };
    thread_of(model, snapshot, model.cursor.silo, role)
}

/// The thread that runs `role` of the silo at `place`, and that silo.
fn thread_of(model: &Model, snapshot: &Snapshot, place: usize, role: RoleKind) -> Result<Link, String> {
    let silo = snapshot.silos.get(place).map(|silo| silo.id);
    let has = |kind| {
        move |thread: &pinwheel_engine::board::snapshot::ThreadView| {
            thread.roles.iter().any(|found| found.kind == kind && Some(found.silo) == silo)
        }
    };
    // No thread runs a GPU: its link leads to the thread of poll, which reads its outputs.
    let found = snapshot.threads.iter().position(has(role));
    let found = found.or_else(|| snapshot.threads.iter().position(has(RoleKind::Poll)));
    let thread = found.ok_or_else(|| format!("no thread runs {} of this silo", role.name()))?;
    Ok(to(model, View::Threads, |cursor| (cursor.silo, cursor.thread) = (place, thread)))
}

fn from_thread(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let index = model.cursor.thread;
    let thread = snapshot.threads.get(index).ok_or("there is no thread yet")?;
    let about = |alarm: &pinwheel_engine::board::snapshot::AlarmView| {
        alarm.thread.as_ref() == Some(&thread.name) || matches!(alarm.site, Site::Thread(at) if at as usize == index)
    };
    let number = snapshot.alarms.iter().find(|alarm| about(alarm)).map(|alarm| alarm.number);
    let alarm = number.and_then(|number| place_of(snapshot, number, model.alarm_rows));
    let alarm = alarm.ok_or_else(|| format!("no alarm is about {}", thread.name))?;
    Ok(to(model, View::Alarms, |cursor| cursor.alarm = alarm))
}

/// An alarm links to its verdict and stack; from there to its thread.
fn from_alarm(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let alarm = selected(model, snapshot).ok_or("there is no alarm")?;
    if model.zoom != Zoom::Details {
        return Ok(zoomed(model));
    }
    match alarm.site {
        Site::Thread(thread) => Ok(to(model, View::Threads, |cursor| cursor.thread = thread as usize)),
        Site::Silo(silo, _) => {
            let silo = snapshot.silos.iter().position(|found| found.id == silo);
            Ok(to(model, View::Workers, |cursor| cursor.silo = silo.unwrap_or(cursor.silo)))
        }
        Site::Stream(stream) => {
            let stream = snapshot.streams.iter().position(|found| found.id == stream);
            Ok(to(model, View::Streams, |cursor| cursor.stream = stream.unwrap_or(cursor.stream)))
        }
        Site::Engine(_) => Err("this alarm is about the engine as a whole".to_owned()),
    }
}

/// A stream links to the slot of its longest waiting shot.
fn from_stream(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let stream = snapshot.streams.get(model.cursor.stream).ok_or("there is no stream yet")?;
    let place = snapshot.silos.iter().position(|silo| silo.id == stream.silo).ok_or("its silo is not on the board")?;
    let slots = snapshot.silos[place].slots.iter().enumerate();
    let waits = slots.filter(|(_, slot)| slot.stream == stream.id && slot.state != SlotState::Idle);
    let (slot, _) = waits
        .max_by_key(|(_, slot)| waiting_ns(slot, snapshot.at_ns))
        .ok_or_else(|| format!("stream {} has no shot in the path at this moment", stream.id))?;
    Ok(to(model, View::Slots, |cursor| (cursor.silo, cursor.slot) = (place, slot)))
}

fn from_ring(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let (silo, ring) = lists::ring_at(model, model.cursor.ring).ok_or("there is no ring yet")?;
    let name = &snapshot.silos[silo].rings[ring].name;
    let role = lists::ring_reader(name).ok_or_else(|| format!("no hot thread empties ring {name}"))?;
    thread_of(model, snapshot, silo, role)
}

fn from_core(model: &Model, snapshot: &Snapshot) -> Result<Link, String> {
    let core = model.lookups.cores.rows().get(model.cursor.core).ok_or("no core was looked at yet")?.core;
    let thread = snapshot.threads.iter().position(|thread| thread.core == Some(core));
    let thread = thread.ok_or_else(|| format!("no hot thread of this engine is planned on core {core}"))?;
    Ok(to(model, View::Threads, |cursor| cursor.thread = thread))
}

/// An event links to its moment.
fn from_event(event: Option<&Event>) -> Result<Link, String> {
    let event = event.ok_or("there is no event")?;
    let at_ns = event.at_ns.ok_or("this event has no time after the engine's start")?;
    Ok(Link::Do(Effect::LookAt(at_ns)))
}
