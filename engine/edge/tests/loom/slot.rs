//! Models of slots and tickets: S1, S2, S5, S7, S8, S9.

use loom::thread;
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::table::{
    AnswerTimes, Arrival, Arrived, DispatchEnd, FeedEnd, Geometry, HarvestEnd, ReplyTo, ShotHeader, SlotTable,
    TicketView, table,
};
use pinwheel_edge::slot::word::ErrorCode;
use pinwheel_edge::units::Ticks;
use std::sync::Arc;

/// One slot, one word each of detectors and observables.
pub(crate) fn one_slot() -> (FeedEnd, DispatchEnd, HarvestEnd, Arc<SlotTable>) {
    table(Geometry { slots: 1, detector_words: 1, observable_words: 1 })
}

/// One attempt of the feed; every word of the shot derives from `sequence`.
pub(crate) fn submit(feed: &mut FeedEnd, sequence: u64) -> bool {
    let (scheduled, submitted) = (Ticks(sequence), Ticks(100 * sequence));
    let header = ShotHeader { stream: 0, sequence, scheduled, submitted, reply_to: ReplyTo::default() };
    feed.vacant().map(|vacant| vacant.submit(&header, &[sequence], Some(&[sequence]))).is_some()
}

/// One attempt of dispatch, up to the launch.
pub(crate) fn hold(dispatch: &mut DispatchEnd) -> Option<(Arrived, Ticket)> {
    let arrived = dispatch.arrived()?;
    let ticket = dispatch.hold(&arrived, Ticks(5));
    Some((arrived, ticket))
}

pub(crate) fn times(n: u64) -> AnswerTimes {
    AnswerTimes { arrived: Ticks(0), completed: Ticks(n), decoding: Ticks(n), answered: Ticks(n) }
}

/// One attempt of the harvester: sequence and first observable, or the error.
pub(crate) fn harvest(harvest: &mut HarvestEnd) -> Option<(u64, Result<u64, ErrorCode>)> {
    harvest.begin();
    let answered = harvest.next_answered()?;
    let observable = harvest.observables(&answered)[0].load();
    assert!(answered.has_truth && harvest.truth(&answered)[0].load() == answered.header.sequence);
    assert_eq!(harvest.detectors(&answered)[0].load(), answered.header.sequence);
    harvest.take(&answered);
    Some((answered.header.sequence, answered.error.map_or(Ok(observable), Err)))
}

/// Shot 1 goes through, up to its answer.
fn answer_first_shot(feed: &mut FeedEnd, dispatch: &mut DispatchEnd, table: &SlotTable) {
    assert!(submit(feed, 1));
    let (_, ticket) = hold(dispatch).unwrap();
    dispatch.retire();
    table.claim(ticket).unwrap().answer(&[1], times(1));
}

/// Dispatch reads header and payload of the shot whose rx it saw. Red without S1.release,
/// S1.acquire.
#[test]
fn dispatch_sees_the_whole_shot() {
    loom::model(|| {
        let (mut feed, dispatch, _harvest, table) = one_slot();
        let feeder = thread::spawn(move || assert!(submit(&mut feed, 7)));
        if let Some(arrived) = dispatch.arrived() {
            assert_eq!((arrived.sequence, arrived.submitted), (7, Ticks(700)));
            assert_eq!(table.payload_at(arrived.address).unwrap()[0].load(), 7);
        }
        feeder.join().unwrap();
    });
}

/// Whoever sees a word of a shot that comes by rounds counted reads its bits, and with the last one
/// when that came. Red without S9.release, S9.acquire.
#[test]
fn a_word_is_counted_after_its_bits() {
    loom::model(|| {
        let geometry = Geometry { slots: 1, detector_words: 2, observable_words: 1 };
        let (mut feed, mut dispatch, _harvest, table) = table(geometry);
        let header = ShotHeader {
            stream: 0,
            sequence: 1,
            scheduled: Ticks(1),
            submitted: Ticks(1),
            reply_to: ReplyTo::default(),
        };
        let shot = feed.vacant().unwrap().open(&header, &[7, 0], 1, None);
        let (arrived, ticket) = hold(&mut dispatch).unwrap();
        assert!(arrived.by_rounds);
        let feeder = thread::spawn(move || {
            assert!(feed.extend(shot, 1, &[8]) && feed.complete(shot, Ticks(9)));
        });
        let Arrival::Words(words) = table.arrival(ticket) else { panic!("it is open") };
        for word in 0..words as usize {
            assert_eq!(table.payload(0)[word].load(), 7 + word as u64);
        }
        let last_round = table.last_round(0);
        assert!(words == 2 || last_round == Ticks(0) || last_round == Ticks(9));
        feeder.join().unwrap();
        assert_eq!((table.arrival(ticket), table.last_round(0)), (Arrival::Words(2), Ticks(9)));
    });
}

/// A deadline that knows a ticket only by its number writes its answer after IN_FLIGHT, and its
/// result after the harvester has read the slot's last one. Red without S2.release, S2.acquire,
/// S7.release, S7.acquire.
#[test]
fn a_claimer_writes_after_the_last_harvest() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        answer_first_shot(&mut feed, &mut dispatch, &table);
        let harvesting = thread::spawn(move || {
            assert_eq!(harvest(&mut harvester), Some((1, Ok(1))));
            harvester
        });
        let deadline = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let claim = table.claim(Ticket { slot: 0, generation: 2 });
                claim.map(|claim| claim.fail(ErrorCode::ShotDeadline, times(2))).is_some()
            })
        };
        let submitted = submit(&mut feed, 2);
        if submitted {
            hold(&mut dispatch).unwrap();
            dispatch.retire();
        }
        let mut harvester = harvesting.join().unwrap();
        let expired = deadline.join().unwrap();
        let expected = expired.then_some((2, Err(ErrorCode::ShotDeadline)));
        assert_eq!(harvest(&mut harvester), expected);
        assert_eq!(table.is_idle(0), !submitted || expired);
    });
}

/// A deadline that finds a ticket open judges it by its own submission, not by that of the shot
/// before. Red without S2.release, S2.view.
#[test]
fn an_open_ticket_shows_its_own_submission() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        answer_first_shot(&mut feed, &mut dispatch, &table);
        assert!(harvest(&mut harvester).is_some());
        let dispatcher = thread::spawn(move || {
            assert!(submit(&mut feed, 2));
            hold(&mut dispatch).unwrap();
        });
        match table.is_open(Ticket { slot: 0, generation: 2 }) {
            TicketView::Open { submitted } => assert_eq!(submitted, Ticks(200)),
            view => assert_eq!(view, TicketView::NotYet),
        }
        dispatcher.join().unwrap();
    });
}

/// Decode, deadline and a claim that unwinds: one of them answers, and that answer is harvested.
/// The CAS on the ticket decides (red when `claim` loads and stores instead); red without
/// S5.release, S5.acquire.
#[test]
fn deadline_and_decode_answer_once() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        assert!(submit(&mut feed, 1));
        let (_, ticket) = hold(&mut dispatch).unwrap();
        let decoder = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.claim(ticket).map(|claim| claim.answer(&[9], times(1))).is_some())
        };
        let panicked = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.claim(ticket).map(drop).is_some())
        };
        let expired = table.claim(ticket).map(|claim| claim.fail(ErrorCode::ShotDeadline, times(1))).is_some();
        let found = harvest(&mut harvester);
        let answers = [
            (decoder.join().unwrap(), Ok(9)),
            (panicked.join().unwrap(), Err(ErrorCode::DecoderPanic)),
            (expired, Err(ErrorCode::ShotDeadline)),
        ];
        let won: Vec<_> = answers.into_iter().filter(|(won, _)| *won).collect();
        assert_eq!(won.len(), 1);
        let harvested = [found, harvest(&mut harvester)].into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(harvested, [(1, won[0].1)]);
        assert_eq!(table.is_open(ticket), TicketView::Closed);
    });
}

/// The harvester reads the result block of the answer it saw. Red without S5.release, S5.acquire.
#[test]
fn harvest_reads_a_whole_answer() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        assert!(submit(&mut feed, 1));
        let (_, ticket) = hold(&mut dispatch).unwrap();
        let answerer = thread::spawn(move || table.claim(ticket).unwrap().answer(&[9], times(3)));
        harvester.begin();
        if let Some(answered) = harvester.next_answered() {
            assert_eq!((answered.error, answered.times), (None, times(3)));
            assert_eq!(harvester.observables(&answered)[0].load(), 9);
        }
        answerer.join().unwrap();
    });
}

/// The feed overwrites header, detectors and truth only after the harvester has read them. Red without
/// S7.release, S7.acquire.
#[test]
fn feed_writes_after_the_last_harvest() {
    loom::model(|| {
        let (mut feed, mut dispatch, mut harvester, table) = one_slot();
        answer_first_shot(&mut feed, &mut dispatch, &table);
        let harvesting = thread::spawn(move || assert_eq!(harvest(&mut harvester), Some((1, Ok(1)))));
        submit(&mut feed, 2);
        harvesting.join().unwrap();
    });
}

/// A slot whose rx reads 0 because dispatch took it is not free: the feed sees IN_FLIGHT. Red
/// without S8.release, S8.acquire.
#[test]
fn feed_never_reuses_a_slot_in_flight() {
    loom::model(|| {
        let (mut feed, mut dispatch, _harvest, _table) = one_slot();
        assert!(submit(&mut feed, 1));
        let dispatcher = thread::spawn(move || {
            hold(&mut dispatch).unwrap();
            dispatch.retire();
        });
        assert!(!submit(&mut feed, 2), "shot 1 was never answered");
        dispatcher.join().unwrap();
    });
}
