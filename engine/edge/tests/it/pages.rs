//! The page word and its decision: every state with every request, signal and deadline.

use pinwheel_edge::page::{
    Authority, Due, Epoch, Failed, Grant, Hint, How, LEASE_US_MAX, LIVE_US_MAX, Limits, Moment, PageTable, Receipt,
    Request, Response, Role, Routes, Signals, Silo, State, Takeover, Word, WriteBuffer, WriteRefused, at_length,
    begin_write, commit, decide, due, taken_over,
};

const ME: Silo = Silo::new(0);
const ASKS: Silo = Silo::new(1);
const THIRD: Silo = Silo::new(63);
const NOW: Moment = Moment::from_micros((1 << 24) - 5);
const LIMITS: Limits = Limits {
    hot_us: 3,
    lease_us_max: 1_000,
    lock_us_max: 50,
    refusals_max: 2,
    epoch_last: Epoch::new(9),
    ..Limits::SEED
};

fn request(from: Silo, epoch: u32, hint: Hint) -> Request {
    Request { from, epoch: Epoch::new(epoch), hint, ttl_us: 200, refusals: 0, authority: Authority::Port }
}

const DRAINED: Signals = Signals { write_buffer: WriteBuffer::Drained };
const PENDING: Signals = Signals { write_buffer: WriteBuffer::Pending };

/// Every word that a table can hold, with deadlines at, just before, just after and far from `NOW`.
fn words() -> Vec<Word> {
    let mut words = Vec::new();
    for state in State::ALL {
        let owners = match state {
            State::Idle | State::LocalHot | State::Leased => vec![ME],
            _ => vec![ASKS, THIRD],
        };
        for owner in owners {
            for hint in Hint::ALL {
                for epoch in [1, 5, 9] {
                    for ahead_us in [0, 1, 40, LIVE_US_MAX, LIVE_US_MAX + 1, (1 << 24) - 1] {
                        let word = Word::elsewhere(owner, Epoch::new(epoch)).with_state(state).with_hint(hint);
                        let word = word.with_deadline(NOW.plus(ahead_us));
                        words.push(word);
                        match state {
                            State::Idle | State::LocalHot | State::Leased => words.push(word.busy()),
                            _ => words.push(word.exchanging()),
                        }
                    }
                }
            }
        }
    }
    words
}

fn requests() -> Vec<Request> {
    let mut requests = Vec::new();
    for from in [ME, ASKS, THIRD] {
        for hint in Hint::ALL {
            for epoch in [0, 4, 5, 9] {
                for refusals in [0, LIMITS.refusals_max] {
                    for authority in [Authority::Port, Authority::Operator] {
                        for ttl_us in [0, 200, u32::MAX] {
                            requests.push(Request { refusals, authority, ttl_us, ..request(from, epoch, hint) });
                        }
                    }
                }
            }
        }
    }
    requests
}

/// What must hold of one decision, said again from the seed and the design, not from the code.
fn judge(word: Word, request: &Request, signals: Signals) {
    let (response, next) = decide(word, request, signals, &LIMITS, NOW);
    assert_eq!(
        (response, next),
        at_length(word, request, signals, &LIMITS, NOW),
        "the short way: {word:?} {request:?}"
    );
    let left_us = word.deadline().left_us(NOW);
    let is_owned = word.state().is_writable();
    let is_leased = word.state() == State::Leased && left_us > 0;
    let is_hot = word.state() == State::LocalHot && left_us > 0;
    let is_unfinished = word.is_busy() || signals == PENDING;
    let is_forced = request.authority == Authority::Operator;
    let moved = matches!(response, Response::Granted { how: How::Moves | How::Forced, .. });
    let at = || format!("{word:?} {request:?} {signals:?} -> {response:?} {next:?}");

    assert!(word.epoch() <= next.epoch() && next.is_busy() == word.is_busy(), "{}", at());
    if moved {
        assert!(is_owned && !is_unfinished && request.from != ME && request.epoch == word.epoch(), "{}", at());
        assert!(!is_leased || is_forced, "a lease was broken: {}", at());
        assert!(!is_hot || is_forced || request.hint == Hint::Migrate, "heat was ignored: {}", at());
        assert_eq!(matches!(response, Response::Granted { how: How::Forced, .. }), is_leased, "{}", at());
        let expected = (State::Transferring, request.from, word.epoch().number() + 1, request.hint);
        assert_eq!((next.state(), next.owner(), next.epoch().number(), next.hint()), expected, "{}", at());
        assert!(next.is_exchanging() && next.deadline().left_us(NOW) == LIMITS.ack_us, "{}", at());
    } else {
        assert_eq!(word.state().is_writable(), next.state().is_writable(), "{}", at());
        assert_eq!((word.owner(), word.epoch()), (next.owner(), next.epoch()), "{}", at());
    }
    if is_leased && !moved {
        assert_eq!((next.state(), next.deadline()), (State::Leased, word.deadline()), "the lease ends early: {}", at());
    }
    // Whether a request to the owner of this epoch is refused, and how, follows from lease, heat
    // and work alone.
    if is_owned && request.from != ME && request.epoch == word.epoch() && word.epoch() < LIMITS.epoch_last {
        let expected = if is_leased && !is_forced {
            Some(Response::LeaseActive { left_us })
        } else if is_hot && !is_forced && request.hint != Hint::Migrate {
            Some(if request.hint == Hint::Lock { Response::TryAgainSoon } else { Response::Busy })
        } else {
            is_unfinished.then_some(Response::TryLater)
        };
        assert_eq!(expected.is_none(), moved, "{}", at());
        assert!(expected.is_none_or(|expected| expected == response), "{}", at());
        let drains = request.hint == Hint::Migrate || is_forced || request.refusals >= LIMITS.refusals_max;
        if !moved && drains {
            assert!(next.is_draining(), "{}", at());
        }
    }
    if is_owned && request.from == ME {
        assert!(!matches!(response, Response::LeaseActive { .. } | Response::Busy), "{}", at());
        assert_eq!(response == Response::LeaseYours { left_us }, is_leased, "{}", at());
        let begins = next.state() == State::Leased && !is_leased;
        assert!(!begins || request.hint.is_lease() && !word.is_busy() && !word.is_draining(), "{}", at());
        let most_us = if request.hint == Hint::Lock { LIMITS.lock_us_max } else { LIMITS.lease_us_max };
        assert!(!begins || next.deadline().left_us(NOW) <= most_us.min(request.ttl_us), "{}", at());
    }
    match word.state() {
        State::Transferring => {
            let is_receiver = request.from == word.owner() && request.epoch.number() + 1 == word.epoch().number();
            let again = Response::Granted { epoch: word.epoch(), how: How::Again };
            assert_eq!((response, next), (if is_receiver { again } else { Response::TryLater }, word), "{}", at());
        }
        State::InDoubt => assert_eq!((response, next), (Response::InDoubt, word)),
        State::NotOwner => {
            let (owner, epoch) = (word.owner(), word.epoch());
            assert_eq!((response, next), (Response::NotOwner { owner, epoch }, word));
        }
        _ => {}
    }
}

#[test]
fn states_have_the_names_of_the_specification() {
    let names = ["IDLE", "LOCAL_HOT", "LEASED", "TRANSFERRING", "NOT_OWNER", "IN_DOUBT"];
    assert_eq!(State::ALL.map(State::name), names);
}

#[test]
fn every_decision_follows_the_rules() {
    let (words, requests) = (words(), requests());
    for word in &words {
        for request in &requests {
            judge(*word, request, DRAINED);
            judge(*word, request, PENDING);
        }
    }
    assert!(words.len() * requests.len() >= 300_000, "{} x {}", words.len(), requests.len());
}

#[test]
fn every_write_is_refused_unless_the_silo_owns_the_page_and_nobody_else_writes_it() {
    for word in words() {
        let begun = begin_write(word);
        assert_eq!(begun.is_ok(), word.state().is_writable() && !word.is_busy(), "{word:?}");
        let Ok(busy) = begun else { continue };
        assert_eq!(busy.quiet(), word);
        let done = commit(busy, &LIMITS, NOW);
        let is_leased = word.state() == State::Leased && !word.deadline().has_passed(NOW);
        let is_hot = done.state() == State::LocalHot;
        assert!(!done.is_busy() && (done.owner(), done.epoch()) == (word.owner(), word.epoch()));
        assert_eq!(done.is_draining(), word.is_draining(), "{word:?} {done:?}");
        match (is_leased, word.is_draining()) {
            (true, _) => assert_eq!(done, word, "a write touched the lease"),
            (false, true) => {
                assert!(!is_hot || done.deadline() == word.deadline(), "heat was renewed: {word:?} {done:?}");
            }
            (false, false) => assert!(is_hot && done.deadline() == NOW.plus(LIMITS.hot_us), "{word:?} {done:?}"),
        }
    }
}

#[test]
fn words_give_back_what_was_put_in() {
    for state in State::ALL {
        for (owner, epoch) in [(0, 0), (63, Epoch::MAX.number()), (33, 0x2AA_AAAA)] {
            let word = Word::from_bits(u64::MAX).with_state(state).with_owner(Silo::new(owner));
            let word = word.with_epoch(Epoch::new(epoch)).with_hint(Hint::Lock).with_deadline(NOW).quiet();
            assert_eq!((word.state(), word.owner().number(), word.epoch().number()), (state, owner, epoch));
            assert!((word.hint(), word.deadline(), word.is_busy()) == (Hint::Lock, NOW, false) && word.is_exchanging());
        }
    }
    assert_eq!(Word::from_bits(6).state(), State::InDoubt);
    assert_eq!(Word::from_bits(7).state(), State::InDoubt);
}

#[test]
fn deadlines_hold_across_the_wrap_and_stay_passed_for_half_of_it() {
    for from in [0, 1, (1 << 24) - 1, (1 << 24) - LEASE_US_MAX, 1 << 23] {
        let now = Moment::from_micros(u64::from(from));
        let deadline = now.plus(LEASE_US_MAX);
        assert_eq!(deadline.left_us(now), LEASE_US_MAX);
        assert_eq!(deadline.left_us(now.plus(LEASE_US_MAX - 1)), 1);
        for after_us in [0, 1, 1 << 22, 1 << 23] {
            assert!(deadline.has_passed(now.plus(LEASE_US_MAX).plus(after_us)), "{from} {after_us}");
        }
    }
}

#[test]
fn nobody_else_waits_longer_than_the_refusals_and_one_heat() {
    let mut word = Word::owned(ME, Epoch::default());
    let mut refusals = 0;
    // The owner commits every microsecond and would stay hot for ever.
    for us in 0.. {
        let now = NOW.plus(us);
        word = commit(begin_write(word).unwrap(), &LIMITS, now);
        let request = Request { refusals, ..request(ASKS, 0, Hint::Default) };
        let (response, next) = decide(word, &request, DRAINED, &LIMITS, now);
        word = next;
        match response {
            Response::Busy => refusals += 1,
            granted => {
                assert!(granted.is_granted());
                break;
            }
        }
        assert!(refusals <= LIMITS.refusals_max + LIMITS.hot_us as u8);
    }
}

#[test]
fn a_page_goes_there_and_back_and_its_old_owner_writes_no_more() {
    let tables = [ME, ASKS].map(|silo| PageTable::new(silo, 2, LIMITS, |_| ME));
    let [here, there] = &tables;
    assert_eq!(there.begin_write(1).unwrap_err(), WriteRefused::NotOwner);
    let writing = here.begin_write(1).unwrap();
    assert_eq!(here.begin_write(1).unwrap_err(), WriteRefused::Busy);
    assert_eq!(here.decide(1, &request(ASKS, 0, Hint::Migrate), DRAINED, NOW), Response::TryLater);
    writing.commit(NOW);
    let epoch = Epoch::new(1);
    let granted = here.decide(1, &request(ASKS, 0, Hint::Lock), DRAINED, NOW);
    assert_eq!(granted, Response::Granted { epoch, how: How::Moves }, "drained pages do not heat");
    assert_eq!(here.begin_write(1).unwrap_err(), WriteRefused::Transferring);
    let grant = Grant { epoch, hint: Hint::Lock, ttl_us: 30 };
    assert_eq!(there.install(1, &grant, NOW, || ()), Ok(Receipt::Installed));
    assert_eq!(there.install(1, &grant, NOW, || ()), Ok(Receipt::Again));
    assert_eq!(there.word(1).deadline().left_us(NOW), 30);
    assert_eq!(here.acknowledged(1, THIRD, epoch), Ok(false));
    assert_eq!(here.acknowledged(1, ASKS, epoch), Ok(true));
    assert_eq!(here.acknowledged(1, ASKS, epoch), Ok(false));
    let back = there.decide(1, &request(ME, 1, Hint::Default), DRAINED, NOW);
    assert_eq!(back, Response::LeaseActive { left_us: 30 });
    there.release(1).unwrap();
    assert!(there.decide(1, &request(ME, 1, Hint::Default), DRAINED, NOW).is_granted());
    assert_eq!(here.word(0), Word::owned(ME, Epoch::default()), "another page was touched");
}

#[test]
fn a_transfer_in_doubt_ends_by_the_receivers_word_or_death() {
    let page = || {
        let table = PageTable::new(ME, 1, LIMITS, |_| ME);
        assert!(table.decide(0, &request(ASKS, 0, Hint::Default), DRAINED, NOW).is_granted());
        assert_eq!(table.due(0, NOW.plus(LIMITS.ack_us - 1)), Ok(Due::Nothing));
        assert_eq!(table.due(0, NOW.plus(LIMITS.ack_us)), Ok(Due::Cancel(ASKS, Epoch::new(1))));
        assert_eq!(table.begin_write(0).unwrap_err(), WriteRefused::InDoubt);
        table
    };
    let epoch = Epoch::new(1);
    let receiver = || Word::elsewhere(ME, Epoch::default());
    let installed = Word::owned(ASKS, epoch);
    let passed_on = Word::elsewhere(THIRD, Epoch::new(2)).with_state(State::Transferring).exchanging();
    for (failed, state) in [
        (Failed::Cancelled { from: ASKS, epoch }, State::Idle),
        (Failed::Dead { receiver: ASKS, last: receiver() }, State::Idle),
        (Failed::Dead { receiver: ASKS, last: receiver().with_epoch(epoch).exchanging() }, State::Idle),
        (Failed::Dead { receiver: ASKS, last: installed }, State::NotOwner),
        (Failed::Dead { receiver: ASKS, last: passed_on }, State::NotOwner),
    ] {
        let table = page();
        assert_eq!(table.reclaim(0, Failed::Cancelled { from: THIRD, epoch }), Ok(false));
        assert_eq!(table.reclaim(0, Failed::Cancelled { from: ASKS, epoch: Epoch::default() }), Ok(false));
        assert_eq!((table.reclaim(0, failed), table.word(0).state()), (Ok(true), state), "{failed:?}");
        assert_eq!(table.word(0).epoch(), epoch, "the epoch of a grant is used once");
    }
}

#[test]
fn a_fenced_grant_is_refused_for_ever_and_the_next_one_is_not() {
    let table = PageTable::new(ASKS, 1, LIMITS, |_| ME);
    let grant = |epoch| Grant { epoch: Epoch::new(epoch), hint: Hint::Default, ttl_us: 0 };
    assert_eq!(table.cancel(0, ME, Epoch::new(1)), Ok(Receipt::Fenced));
    assert_eq!(table.cancel(0, ME, Epoch::new(1)), Ok(Receipt::Fenced));
    assert_eq!(table.install(0, &grant(1), NOW, || ()), Ok(Receipt::Dropped));
    assert_eq!(table.install(0, &grant(2), NOW, || ()), Ok(Receipt::Installed));
    assert_eq!(table.cancel(0, ME, Epoch::new(2)), Ok(Receipt::Again));
    assert_eq!(due(table.word(0), &LIMITS, NOW).0, Due::Nothing);
}

#[test]
fn a_successor_gets_only_the_pages_that_the_dead_silo_owned_or_had_granted() {
    let successor = |epoch| Word::elsewhere(ASKS, Epoch::new(epoch));
    let granted = |to, epoch| Word::elsewhere(to, Epoch::new(epoch)).with_state(State::Transferring).exchanging();
    let owned = |epoch| Word::owned(ASKS, Epoch::new(epoch));
    let mine = |epoch| Word::owned(ME, Epoch::new(epoch));
    let whole = Takeover::Owned { is_torn: false };
    let doubt = Takeover::Doubt { receiver: THIRD, epoch: Epoch::new(5) };
    for (word, last, expected, owns) in [
        (successor(3), owned(5), whole, true),
        (successor(5), owned(5).with_state(State::Leased).with_deadline(NOW.plus(900)), whole, true),
        (successor(3), owned(5).busy(), Takeover::Owned { is_torn: true }, true),
        // Granted to the successor, whose GRANT is lost or still on its way.
        (successor(4), granted(ME, 5), whole, true),
        (successor(5).exchanging(), granted(ME, 5), whole, true),
        // Granted to somebody else, who may have it.
        (successor(4), granted(THIRD, 5), doubt, false),
        (successor(4), granted(THIRD, 5).with_state(State::InDoubt), doubt, false),
        (Word::elsewhere(THIRD, Epoch::new(5)), granted(THIRD, 5), Takeover::Nothing, false),
        // Not the dead silo's.
        (successor(3), Word::elsewhere(THIRD, Epoch::new(5)), Takeover::Nothing, false),
        (mine(6), granted(ME, 5), Takeover::Nothing, true),
        (Word::elsewhere(THIRD, Epoch::new(7)), granted(THIRD, 5), Takeover::Nothing, false),
        // The successor had granted the page to the dead, who had not installed it, had it, had passed
        // it on.
        (granted(ASKS, 5), successor(4), Takeover::Returned, true),
        (granted(ASKS, 5), owned(5), whole, true),
        (granted(ASKS, 5), granted(THIRD, 6), Takeover::Doubt { receiver: THIRD, epoch: Epoch::new(6) }, false),
        // And to somebody else, who had passed it on to the dead.
        (granted(THIRD, 5), owned(6), whole, true),
        (granted(THIRD, 7), owned(6), Takeover::Nothing, false),
    ] {
        let (takeover, next) = taken_over(word, ME, ASKS, last, &LIMITS, NOW);
        assert_eq!((takeover, next.is_writable()), (expected, owns), "{word:?} {last:?} -> {next:?}");
        if next.is_writable() && takeover != Takeover::Returned && takeover != Takeover::Nothing {
            assert!(next.epoch() > last.epoch(), "what the dead has sent must be old: {next:?}");
        }
        let twice = taken_over(next, ME, ASKS, last, &LIMITS, NOW);
        assert_eq!(twice, (Takeover::Nothing, next), "taken_over twice: {word:?} {last:?}");
    }
}

#[test]
fn a_route_turns_round_once_for_each_epoch() {
    let routes = Routes::new(2, |_| ME);
    assert!(routes.flip(1, ASKS, Epoch::new(1)) && !routes.flip(1, THIRD, Epoch::new(1)));
    let route = routes.route(1);
    assert_eq!([ME, ASKS, THIRD].map(|silo| route.role(silo)), [Role::Former, Role::Owner, Role::Other]);
    assert!(routes.flip(1, THIRD, Epoch::MAX));
    let route = routes.route(1);
    assert_eq!((route.to, route.from, route.epoch), (THIRD, ASKS, Epoch::MAX));
    assert_eq!((routes.route(0).to, routes.route(0).role(ME)), (ME, Role::Owner));
}
