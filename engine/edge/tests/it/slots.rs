//! Slots, tickets and the three ends on one thread.

use crate::{Seeded, panics};
use pinwheel_edge::aligned::{LINE_BYTES, PAGE_BYTES};
use pinwheel_edge::slot::Ticket;
use pinwheel_edge::slot::jobs::{Job, JobBank};
use pinwheel_edge::slot::table::{
    AnswerTimes, Arrival, DispatchEnd, FeedEnd, Geometry, HarvestEnd, ReplyTo, ShotHeader, SlotTable, TicketView, table,
};
use pinwheel_edge::slot::word::{self, ErrorCode};
use pinwheel_edge::slot::workers::bank;
use pinwheel_edge::sync::DataWords;
use pinwheel_edge::units::Ticks;
use std::sync::Arc;

type Ends = (FeedEnd, DispatchEnd, HarvestEnd, Arc<SlotTable>);

fn ends(slots: u32) -> Ends {
    table(Geometry { slots, detector_words: 2, observable_words: 2 })
}

fn header(sequence: u64) -> ShotHeader {
    let reply_to = ReplyTo { peer: !sequence, sequence: sequence + 7 };
    ShotHeader { stream: 3, sequence, scheduled: Ticks(sequence), submitted: Ticks(sequence + 1), reply_to }
}

fn submit(feed: &mut FeedEnd, sequence: u64) -> Option<u32> {
    feed.vacant().map(|vacant| vacant.submit(&header(sequence), &[sequence, !sequence], Some(&[sequence, 0])))
}

fn dispatch_one(dispatch: &mut DispatchEnd) -> Option<Ticket> {
    let arrived = dispatch.arrived()?;
    let ticket = dispatch.hold(&arrived, Ticks(50));
    dispatch.retire();
    Some(ticket)
}

#[test]
fn a_shot_comes_back_with_its_header_times_truth_and_observables() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(4);
    submit(&mut feed, 7).unwrap();
    let arrived = dispatch.arrived().unwrap();
    let payload: Vec<_> = table.payload_at(arrived.address).unwrap().iter().map(|word| word.load()).collect();
    assert_eq!(payload, [7, !7]);
    let ticket = dispatch_one(&mut dispatch).unwrap();
    let times = AnswerTimes { arrived: Ticks(0), completed: Ticks(60), decoding: Ticks(70), answered: Ticks(80) };
    table.claim(ticket).unwrap().answer(&[5], times);
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert_eq!((answered.header, answered.times, answered.error), (header(7), times, None));
    assert_eq!((answered.dispatched, answered.oldest, answered.has_truth), (Ticks(50), true, true));
    assert_eq!(harvest.observables(&answered).iter().map(|word| word.load()).collect::<Vec<_>>(), [5, 0]);
    assert_eq!(harvest.truth(&answered)[0].load(), 7);
}

#[test]
fn a_shot_that_comes_by_rounds_says_what_is_there_until_its_slot_is_anothers() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(2);
    let shot = feed.vacant().unwrap().open(&header(1), &[7, 0], 1, Some(&[1]));
    let arrived = dispatch.arrived().unwrap();
    assert!(arrived.by_rounds && arrived.slot == shot.slot);
    let ticket = dispatch_one(&mut dispatch).unwrap();
    assert_eq!(table.arrival(ticket), Arrival::Words(1));
    assert!(feed.extend(shot, 1, &[8]) && feed.complete(shot, Ticks(90)));
    assert_eq!((table.arrival(ticket), table.last_round(shot.slot)), (Arrival::Words(2), Ticks(90)));
    assert_eq!(table.payload(shot.slot).iter().map(|word| word.load()).collect::<Vec<_>>(), [7, 8]);
    table.claim(ticket).unwrap().answer(&[], AnswerTimes { arrived: Ticks(90), ..AnswerTimes::default() });
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert!(answered.has_truth && answered.times.arrived == Ticks(90));
    harvest.take(&answered);
    // One behind it, then one in its slot: what still comes of it goes nowhere.
    let given_up = feed.vacant().unwrap().open(&header(2), &[0, 0], 0, None);
    assert!(feed.abandon(given_up) && feed.extend(shot, 0, &[9]), "its slot is nobody's yet");
    let second = dispatch_one(&mut dispatch).unwrap();
    assert_eq!(table.arrival(second), Arrival::Abandoned);
    let arrived = submit(&mut feed, 3).and_then(|_| dispatch.arrived()).unwrap();
    assert!(!arrived.by_rounds && arrived.slot == shot.slot);
    assert!(!feed.extend(shot, 0, &[9]) && !feed.complete(shot, Ticks(99)) && !feed.abandon(shot));
    assert_eq!(table.payload(shot.slot)[0].load(), 3);
}

#[test]
fn the_last_round_of_a_shot_is_not_that_of_the_one_before_in_its_slot() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(1);
    for (by_rounds, arrived) in [(true, Ticks(90)), (false, Ticks(0)), (true, Ticks(0))] {
        let vacant = feed.vacant().unwrap();
        if by_rounds {
            vacant.open(&header(1), &[7, 0], 1, None);
        } else {
            vacant.submit(&header(1), &[7, 0], None);
        }
        let ticket = dispatch_one(&mut dispatch).unwrap();
        table.claim(ticket).unwrap().answer(&[], AnswerTimes { arrived, ..AnswerTimes::default() });
        harvest.begin();
        let answered = harvest.next_answered().unwrap();
        assert_eq!(answered.times.arrived, arrived);
        harvest.take(&answered);
    }
}

#[test]
fn a_thousand_observables_come_back_whole() {
    let (mut feed, mut dispatch, mut harvest, table) =
        table(Geometry { slots: 1, detector_words: 1, observable_words: 16 });
    feed.vacant().unwrap().submit(&header(1), &[1], None);
    let ticket = dispatch_one(&mut dispatch).unwrap();
    let bits: Vec<u64> = (1..=16).map(|word| word << 59 | word).collect();
    table.claim(ticket).unwrap().answer(&bits, AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert!(!answered.has_truth);
    assert_eq!(harvest.observables(&answered).iter().map(|word| word.load()).collect::<Vec<_>>(), bits);
}

#[test]
fn every_error_reaches_the_harvester_and_hides_old_observables() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(1);
    for (sequence, code) in ErrorCode::ALL.into_iter().enumerate() {
        submit(&mut feed, 2 * sequence as u64).unwrap();
        let ticket = dispatch_one(&mut dispatch).unwrap();
        table.claim(ticket).unwrap().answer(&[u64::MAX, u64::MAX], AnswerTimes::default());
        harvest.begin();
        let answered = harvest.next_answered().unwrap();
        harvest.take(&answered);
        submit(&mut feed, 2 * sequence as u64 + 1).unwrap();
        let ticket = dispatch_one(&mut dispatch).unwrap();
        table.claim(ticket).unwrap().fail(code, AnswerTimes::default());
        harvest.begin();
        let answered = harvest.next_answered().unwrap();
        assert_eq!(answered.error, Some(code));
        assert!(harvest.observables(&answered).iter().all(|word| word.load() == 0));
        harvest.take(&answered);
    }
}

#[test]
fn an_answer_and_a_kept_result_say_what_gave_them() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(4);
    submit(&mut feed, 7).unwrap();
    let ticket = dispatch_one(&mut dispatch).unwrap();
    table.claim(ticket).unwrap().answer_after(&[5], AnswerTimes::default(), 0x80_0001, || ());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert_eq!((answered.error, answered.by), (None, 0x80_0001));
    let jobs = JobBank::new(2, 1, 1);
    for result in [Ok(0), Ok(0xFF_FFFF), Err(ErrorCode::SiloDied), Ok(3)] {
        let job = Job::from_number(1);
        jobs.set_decoded(&job, result, Ticks(9));
        assert_eq!(jobs.decoded(&job), (result, Ticks(9)));
    }
}

#[test]
fn an_answer_word_is_no_sentinel_at_any_generation() {
    for generation in [1, 2, 1 << 47, (1 << 48) - 1, u64::MAX] {
        let answer = word::ready(generation, 0);
        assert!(![word::EMPTY, word::IN_FLIGHT].contains(&answer) && word::error_in(answer).is_none());
    }
    assert!(word::error_in(word::IN_FLIGHT).is_none() && word::error_in(word::EMPTY).is_none());
}

#[test]
fn a_payload_address_outside_or_across_the_memory_is_refused() {
    let (_feed, _dispatch, _harvest, table) = ends(4);
    let base = table.payload_address(0);
    let end = table.payload_address(3) + 16;
    assert_eq!(end - base, 4 * 16);
    for address in [0, 1, base - 8, base + 4, base + 1, end - 8, end, end + 8, u64::MAX, u64::MAX - 7] {
        assert!(table.payload_at(address).is_none(), "{address:#x} of {base:#x}..{end:#x}");
    }
    for slot in 0..4 {
        let words = table.payload_at(table.payload_address(slot)).unwrap();
        assert_eq!((words.as_ptr().addr() as u64, words.len()), (base + 16 * u64::from(slot), 2));
    }
}

#[test]
fn an_address_of_another_slot_is_in_range_and_reads_that_slot() {
    let (mut feed, dispatch, _harvest, table) = ends(2);
    let other = table.payload_address(1);
    feed.vacant().unwrap().submit_at(other, &header(1), &[11, 12], None);
    feed.vacant().unwrap().submit(&header(2), &[21, 22], None);
    let arrived = dispatch.arrived().unwrap();
    assert_eq!((arrived.slot, arrived.address), (0, other));
    assert_eq!(table.payload_at(arrived.address).unwrap()[0].load(), 21);
}

#[test]
fn a_slot_is_vacant_only_after_it_was_harvested() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(1);
    submit(&mut feed, 1).unwrap();
    assert!(feed.vacant().is_none(), "written");
    let arrived = dispatch.arrived().unwrap();
    let ticket = dispatch.hold(&arrived, Ticks(0));
    assert!(feed.vacant().is_none(), "held");
    table.claim(ticket).unwrap().answer(&[1], AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    harvest.take(&answered);
    assert!(feed.vacant().is_none(), "harvested, but dispatch has not touched it last");
    dispatch.retire();
    assert!(feed.vacant().is_some() && table.is_idle(0));
    assert_eq!((feed.submitted(), dispatch.taken(), harvest.tail()), (1, 1, 1));
}

#[test]
fn a_search_that_fell_laps_behind_skips_only_answered_slots() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(4);
    assert_eq!(table.first_open_after(0), 0);
    for position in 0..23 {
        submit(&mut feed, position).unwrap();
        let ticket = dispatch_one(&mut dispatch).unwrap();
        for from in 0..=position {
            let first = table.first_open_after(from);
            // The tickets of the last lap may be open, whichever of them is.
            assert!(first >= from && first <= from.max(position.saturating_sub(3)), "{from} at {position}: {first}");
            assert!(
                position - first < 8,
                "at most a lap and what the slot has not gone through: {first} at {position}"
            );
        }
        table.claim(ticket).unwrap().answer(&[], AnswerTimes::default());
        harvest.begin();
        let answered = harvest.next_answered().unwrap();
        harvest.take(&answered);
    }
}

#[test]
fn a_ticket_is_of_one_generation() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(2);
    for lap in 1..=5 {
        for slot in 0..2 {
            let position = 2 * (lap - 1) + u64::from(slot);
            let ticket = table.ticket_at(position);
            assert_eq!(ticket, Ticket { slot, generation: lap });
            assert_eq!(table.is_open(ticket), TicketView::NotYet);
            assert!(table.claim(ticket).is_none());
            submit(&mut feed, position).unwrap();
            assert_eq!(table.is_open(ticket), TicketView::NotYet, "written is not dispatched");
            assert_eq!(dispatch_one(&mut dispatch), Some(ticket));
            assert_eq!(table.is_open(ticket), TicketView::Open { submitted: Ticks(position + 1) });
            let before = Ticket { slot, generation: lap - 1 };
            assert_eq!(table.is_open(before), TicketView::Closed);
            assert!(table.claim(before).is_none(), "a late answer of the lap before");
            table.claim(ticket).unwrap().answer(&[], AnswerTimes::default());
            assert!(table.claim(ticket).is_none() && table.is_open(ticket) == TicketView::Closed);
            harvest.begin();
            let answered = harvest.next_answered().unwrap();
            harvest.take(&answered);
        }
    }
}

#[test]
fn a_claim_dropped_in_a_panic_answers_decoder_panic() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(1);
    submit(&mut feed, 1).unwrap();
    let ticket = dispatch_one(&mut dispatch).unwrap();
    assert!(panics(|| {
        let _claim = table.claim(ticket).unwrap();
        panic!("a decoder's bug");
    }));
    harvest.begin();
    assert_eq!(harvest.next_answered().unwrap().error, Some(ErrorCode::DecoderPanic));
}

#[test]
fn answers_are_harvested_out_of_order_over_many_laps() {
    let mut seeded = Seeded(0x5eed);
    let (mut feed, mut dispatch, mut harvest, table) = ends(8);
    let (mut open, mut seen, mut out_of_order) = (Vec::new(), vec![0u8; 8_000], 0);
    let mut next = 0u64;
    while seen.contains(&0) {
        while next < seen.len() as u64 && seeded.below(3) > 0 && submit(&mut feed, next).is_some() {
            next += 1;
        }
        while seeded.below(3) > 0 {
            open.extend(dispatch_one(&mut dispatch).map(|ticket| (ticket, dispatch.taken() - 1)));
        }
        while !open.is_empty() && seeded.below(3) > 0 {
            let (ticket, sequence) = open.swap_remove(seeded.below(open.len() as u64) as usize);
            table.claim(ticket).unwrap().answer(&[sequence], AnswerTimes::default());
        }
        harvest.begin();
        while let Some(answered) = harvest.next_answered() {
            let sequence = answered.header.sequence;
            assert_eq!(harvest.observables(&answered)[0].load(), sequence);
            assert_eq!(answered.oldest, sequence == harvest.tail());
            out_of_order += u32::from(!answered.oldest);
            seen[sequence as usize] += 1;
            harvest.take(&answered);
        }
        assert!(feed.submitted() - harvest.tail() <= 8);
    }
    assert!(seen.iter().all(|times| *times == 1) && out_of_order > 100);
    assert!((0..8).all(|slot| table.is_idle(slot)) && harvest.tail() == 8_000);
}

#[test]
fn a_harvest_pass_returns_an_untaken_answer_again_and_ends_at_what_is_not_dispatched() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(4);
    for sequence in 0..3 {
        submit(&mut feed, sequence).unwrap();
    }
    let first = dispatch_one(&mut dispatch).unwrap();
    let second = dispatch_one(&mut dispatch).unwrap();
    table.claim(second).unwrap().answer(&[], AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert_eq!((answered.slot, answered.oldest), (1, false));
    assert_eq!(harvest.next_answered(), Some(answered), "no room to take it: it stays");
    harvest.take(&answered);
    assert_eq!((harvest.next_answered(), harvest.tail()), (None, 0));
    table.claim(first).unwrap().answer(&[], AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    harvest.take(&answered);
    assert_eq!((answered.slot, harvest.tail(), harvest.next_answered()), (0, 2, None));
}

#[test]
fn an_answer_that_overtook_a_full_ring_is_found_within_a_ring_of_passes_and_the_oldest_at_once() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(1024);
    let tickets: Vec<_> = (0..1024)
        .map(|sequence| {
            submit(&mut feed, sequence).unwrap();
            dispatch_one(&mut dispatch).unwrap()
        })
        .collect();
    for overtook in [1023, 64, 600, 127, 999] {
        table.claim(tickets[overtook]).unwrap().answer(&[], AnswerTimes::default());
        let found = (0..1024 / 64).find_map(|_| {
            harvest.begin();
            harvest.next_answered()
        });
        let answered = found.unwrap();
        assert_eq!((answered.slot as usize, answered.oldest), (overtook, false));
        harvest.take(&answered);
    }
    table.claim(tickets[0]).unwrap().answer(&[], AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    assert_eq!((answered.slot, answered.oldest), (0, true));
    harvest.take(&answered);
    assert_eq!(harvest.tail(), 1);
}

#[test]
fn a_shot_is_held_once_retired_once_and_harvested_once() {
    let (mut feed, mut dispatch, mut harvest, table) = ends(2);
    submit(&mut feed, 0).unwrap();
    submit(&mut feed, 1).unwrap();
    let arrived = dispatch.arrived().unwrap();
    assert!(panics(|| dispatch.retire()), "not held yet: it could never be answered");
    let ticket = dispatch.hold(&arrived, Ticks(0));
    assert!(panics(|| dispatch.hold(&arrived, Ticks(0))), "held twice");
    dispatch.retire();
    assert!(panics(|| dispatch.hold(&arrived, Ticks(0))), "not the shot at the cursor");
    table.claim(ticket).unwrap().answer(&[], AnswerTimes::default());
    harvest.begin();
    let answered = harvest.next_answered().unwrap();
    harvest.take(&answered);
    assert!(panics(|| harvest.take(&answered)), "taken twice");
}

#[test]
fn a_table_of_bad_sizes_is_refused() {
    let bad = [(3, 1, 1), (0, 1, 1), (1 << 17, 1, 1), (4, 0, 1), (4, 4097, 1), (4, 1, 0), (4, 1, 17)];
    for (slots, detector_words, observable_words) in bad {
        assert!(panics(|| table(Geometry { slots, detector_words, observable_words })));
    }
}

#[test]
fn what_a_device_sees_of_two_silos_shares_no_page() {
    let silo = || (ends(4).3, JobBank::new(5, 3, 1), bank(3).words);
    let silos = [silo(), silo()];
    let spans = silos.iter().flat_map(|(table, jobs, workers)| {
        [table.payload_span(), jobs.detectors_span(), jobs.observables_span(), workers.span()]
    });
    let page = PAGE_BYTES as u64;
    let mut pages = std::collections::BTreeSet::new();
    for span in spans {
        assert!(span.address.is_multiple_of(page) && span.bytes > 0, "{span:?}");
        for number in span.address / page..(span.address + span.bytes).div_ceil(page) {
            assert!(pages.insert(number), "{span:?} shares a page");
        }
    }
    assert!(DataWords::new(3, 8).all().as_ptr().addr().is_multiple_of(LINE_BYTES));
}
