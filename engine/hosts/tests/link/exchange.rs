use crate::cluster::{Asked, Host, SOON, cluster, pair, raw_ask, session, settings};
use pinwheel_hosts::link::{BODY_BYTES_MAX, NoAnswer, Reply, Topic};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A limit that no question of these tests reaches.
const FAR: Duration = Duration::from_secs(30);
/// What "at once" means on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn a_question_is_answered() {
    let (one, two) = pair(|question, reply| reply.send(&[question.body, b" too"].concat()));
    for topic in [Topic::Describe, Topic::Board, Topic::Command, Topic::Shots] {
        assert_eq!(two.ask("one", topic, b"here", FAR), Ok(b"here too".to_vec()));
        assert_eq!(one.questions.recv().unwrap(), Asked { from: "two".to_owned(), topic, body: b"here".to_vec() });
    }
    assert_eq!(one.ask("two", Topic::Board, b"", FAR), Ok(Vec::new()), "also the other way");
}

#[test]
fn a_refused_question_comes_back_with_the_reason() {
    let (_one, two) = pair(|_, reply| reply.refuse("not now"));
    assert_eq!(two.ask("one", Topic::Command, b"", FAR), Err(NoAnswer::Refused("not now".to_owned())));
}

#[test]
fn a_dropped_reply_is_noticed_at_once() {
    let (_one, two) = pair(|_, reply| drop(reply));
    let begun = Instant::now();
    assert_eq!(two.ask("one", Topic::Command, b"", FAR), Err(NoAnswer::Unreachable));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[test]
fn a_question_without_an_answer_times_out_at_its_limit() {
    let (held, replies) = channel();
    let (_one, two) = pair(move |_, reply| held.send(reply).unwrap());
    let (begun, limit) = (Instant::now(), Duration::from_millis(500));
    let answers = two.ask_later("one", Topic::Command, b"", limit);
    assert_eq!(answers.recv_timeout(SOON), Ok(Err(NoAnswer::TimedOut)));
    let took = begun.elapsed();
    assert!(took >= limit && took < limit + AT_ONCE, "{took:?}");
    replies.recv().unwrap().send(b"too late");
    // Its answer follows the late one on the same way.
    let next = two.ask_later("one", Topic::Command, b"", FAR);
    replies.recv().unwrap().send(b"in time");
    assert_eq!(next.recv_timeout(SOON), Ok(Ok(b"in time".to_vec())));
    assert!(answers.try_recv().is_err(), "a late answer is no second one");
}

#[test]
fn a_reply_may_be_sent_later_from_another_thread() {
    let (held, replies) = channel::<Reply>();
    let (_one, two) = pair(move |_, reply| held.send(reply).unwrap());
    let answers = two.ask_later("one", Topic::Command, b"", FAR);
    let reply = replies.recv_timeout(SOON).unwrap();
    std::thread::spawn(move || reply.send(b"later"));
    assert_eq!(answers.recv_timeout(SOON), Ok(Ok(b"later".to_vec())));
}

#[test]
fn questions_in_flight_are_unreachable_when_the_host_ends() {
    let (held, replies) = channel();
    let (one, two) = pair(move |_, reply| held.send(reply).unwrap());
    let answers: Vec<_> = (0..10).map(|_| two.ask_later("one", Topic::Command, b"", FAR)).collect();
    let held: Vec<Reply> = answers.iter().map(|_| replies.recv_timeout(SOON).unwrap()).collect();
    let begun = Instant::now();
    drop(one);
    for answers in answers {
        assert_eq!(answers.recv_timeout(SOON), Ok(Err(NoAnswer::Unreachable)));
        assert!(answers.recv_timeout(Duration::ZERO).is_err());
    }
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    held.into_iter().for_each(|reply| reply.send(b"from a closed link"));
}

#[test]
fn questions_in_flight_are_unreachable_when_the_own_link_ends() {
    let (held, replies) = channel();
    let (_one, two) = pair(move |_, reply| held.send(reply).unwrap());
    let answers = two.ask_later("one", Topic::Command, b"", FAR);
    let _held = replies.recv_timeout(SOON).unwrap();
    drop(two);
    assert_eq!(answers.recv_timeout(SOON), Ok(Err(NoAnswer::Unreachable)));
}

#[test]
fn a_host_that_is_not_there_is_unreachable_at_once() {
    let (one, two) = pair(|_, reply| reply.send(b""));
    let begun = Instant::now();
    assert_eq!(two.ask("three", Topic::Board, b"", FAR), Err(NoAnswer::Unreachable));
    assert_eq!(two.ask("two", Topic::Board, b"", FAR), Err(NoAnswer::Unreachable), "a host is no other host");
    let incarnation = one.link.incarnation();
    drop(one);
    two.misses("one", incarnation);
    assert_eq!(two.ask("one", Topic::Board, b"", FAR), Err(NoAnswer::Unreachable));
    assert!(begun.elapsed() < AT_ONCE + AT_ONCE, "{:?}", begun.elapsed());
}

#[test]
fn garbage_names_are_refused() {
    let (_one, two) = pair(|_, reply| reply.send(b""));
    let long = "a".repeat(65);
    for name in ["", "*", "**", "one/from", "ONE", "on e", "one$*", "../one", "one?x", "ö", "\0", long.as_str()] {
        let answer = two.ask(name, Topic::Board, b"", FAR);
        assert_eq!(answer, Err(NoAnswer::Refused("this is no name of a host".to_owned())), "{name:?}");
    }
}

#[test]
fn the_largest_body_passes_in_both_directions_and_a_larger_one_is_refused() {
    let (one, two) = pair(|question, reply| match question.topic {
        Topic::Shots => reply.send(question.body),
        _ => reply.send(&vec![1; BODY_BYTES_MAX + 1]),
    });
    let largest: Vec<u8> = (0..BODY_BYTES_MAX).map(|index| (index % 251) as u8).collect();
    assert_eq!(two.ask("one", Topic::Shots, &largest, FAR), Ok(largest.clone()));
    assert_eq!(one.questions.try_iter().count(), 1);

    let larger = [largest, vec![1]].concat();
    let refused = NoAnswer::Refused("the question has 4194305 bytes; send at most 4194304".to_owned());
    assert_eq!(two.ask("one", Topic::Shots, &larger, FAR), Err(refused));
    assert!(one.questions.try_recv().is_err());
    let refused = NoAnswer::Refused("the answer has 4194305 bytes; send at most 4194304".to_owned());
    assert_eq!(two.ask("one", Topic::Board, b"", FAR), Err(refused));
}

#[test]
fn the_receiver_refuses_what_a_link_would_not_have_sent() {
    let cluster = cluster();
    let one = Host::open(&settings(&cluster, "one", &[]));
    let speaker = session(&one.link.endpoints(), &serde_json::json!({}));
    let key = |rest: &str| format!("pinwheel/{cluster}/to/one/from/{rest}");
    // The first question waits until the session is connected.
    let begun = Instant::now();
    while raw_ask(&speaker, &key("two/board"), b"hello".to_vec()).as_deref() != Some("hello") {
        assert!(begun.elapsed() < SOON);
    }
    let _positive: Vec<Asked> = one.questions.try_iter().collect();
    for (rest, body, part) in [
        ("two/board", vec![0; BODY_BYTES_MAX + 1], "the question has 4194305 bytes; send at most 4194304"),
        ("two/weather", Vec::new(), "this version knows no topic \"weather\""),
        ("one/board", Vec::new(), "host \"one\" does not allow host \"one\""),
        ("TWO/board", Vec::new(), "a question is from one host, to one host, on one topic"),
        ("*/board", Vec::new(), "a question is from one host, to one host, on one topic"),
    ] {
        let said = raw_ask(&speaker, &key(rest), body).unwrap_or_default();
        assert!(said.contains(part), "{rest}: {said:?}");
    }
    assert!(one.questions.try_recv().is_err(), "no handler was called");
}

#[test]
fn a_thousand_questions_at_once_are_answered_once_each() {
    const COUNT: usize = 1_000;
    let (held, replies) = channel();
    let (_one, two) = pair(move |question, reply| held.send((question.body.to_vec(), reply)).unwrap());
    let (sender, answers) = channel();
    for index in 0..COUNT {
        let sender = sender.clone();
        let answered = Box::new(move |answer| sender.send((index, answer)).unwrap());
        two.link.ask("one", Topic::Shots, index.to_le_bytes().to_vec(), FAR, answered);
    }
    drop(sender);
    // All are in flight at once before the first is answered; the last one first.
    let mut held: Vec<_> = (0..COUNT).map(|_| replies.recv_timeout(SOON).unwrap()).collect();
    while let Some((body, reply)) = held.pop() {
        reply.send(&body);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..COUNT {
        let (index, answer) = answers.recv_timeout(SOON).unwrap();
        assert_eq!(answer, Ok(usize::to_le_bytes(index).to_vec()));
        assert!(seen.insert(index), "{index} was answered twice");
    }
    assert!(answers.recv_timeout(SOON).is_err(), "the handlers are gone, so nothing more can come");
}

#[test]
fn two_hosts_that_ask_each_other_large_questions_both_get_their_answers() {
    const COUNT: usize = 12;
    let (one, two) = pair(|question, reply| reply.send(question.body));
    let body = vec![3; BODY_BYTES_MAX / 2];
    let ask = |host: &Host, name: &str| -> Vec<_> {
        (0..COUNT).map(|_| host.ask_later(name, Topic::Shots, &body, FAR)).collect()
    };
    let (of_one, of_two) = (ask(&one, "two"), ask(&two, "one"));
    for answers in of_one.into_iter().chain(of_two) {
        let answer = answers.recv_timeout(FAR).unwrap();
        assert!(answer.as_ref().is_ok_and(|answer| *answer == body), "{:?}", answer.map(|answer| answer.len()));
    }
}

#[test]
fn an_answer_may_lead_to_the_next_question() {
    let (_one, two) = pair(|question, reply| reply.send(question.body));
    let (sender, answers) = channel();
    let link = Arc::new(two.link);
    let asker = Arc::clone(&link);
    let answered = Box::new(move |first: Result<Vec<u8>, NoAnswer>| {
        let second = Box::new(move |second| sender.send(second).unwrap());
        asker.ask("one", Topic::Board, [first.unwrap(), b"2".to_vec()].concat(), FAR, second);
    });
    link.ask("one", Topic::Board, b"1".to_vec(), FAR, answered);
    assert_eq!(answers.recv_timeout(SOON), Ok(Ok(b"12".to_vec())));
}
