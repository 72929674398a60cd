//! Records as a kernel wrote them (Linux 6.18, one core and one thread, three sleeps of a program),
//! and made ones.
#![allow(clippy::unwrap_used, reason = "harness")]

use super::record::{Record, TaskRecord, parse, parse_tasks};
use super::{KEPT_MAX, OtherThread, Scope, Switched, judged};
use crate::clock::{Clock, Correlation};
use std::collections::VecDeque;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// Head and the rest, of one record.
fn raw(kind: u32, flags: u16, rest: &str) -> Vec<u8> {
    let rest = hex(rest);
    let length = u16::try_from(8 + rest.len()).unwrap();
    [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &length.to_le_bytes(), &rest].concat()
}

#[test]
#[cfg(target_endian = "little")]
fn recorded_switches_of_a_thread_and_of_a_core_are_read() {
    let of_thread = [
        raw(14, 0x2000, "7946000079460000c05ed2264b0300000100000000000000"),
        raw(14, 0, "7946000079460000b5926c274b0300000100000000000000"),
    ]
    .concat();
    let at = |at_ns, is_out| Record::Switch { at_ns, task: (18_041, 18_041), is_out, is_taken: false, next: None };
    let (left, back) = (0x034b_26d2_5ec0, 0x034b_276c_92b5);
    assert_eq!(parse(&of_thread), [at(left, true), at(back, false)]);
    let found = judged(18_041, Scope::Thread, &parse(&of_thread).into(), 0, u64::MAX);
    assert_eq!(found, Switched { out_ns: back - left, ..Switched::default() }, "10 ms of sleep, given and not taken");
    let of_core = [
        raw(15, 0x6000, "24000000240000000000000000000000db11a4294b0300000000000000000000"),
        raw(15, 0, "000000000000000024000000240000007917a4294b0300000000000000000000"),
        raw(2, 0, "000000000000000005000000000000000000000000000000"),
        raw(99, 0, "00"),
        raw(15, 0x2000, "000000000000000024000000240000009e2ba4294b0300000000000000000000"),
    ]
    .concat();
    let records = parse(&of_core);
    assert_eq!(records.len(), 4, "what is of no interest is skipped");
    let Record::Switch { task, is_out, is_taken, next, .. } = records[0] else { panic!("{records:?}") };
    assert_eq!((task, is_out, is_taken, next), ((0, 0), true, true, Some((36, 36))));
    assert_eq!(records[2], Record::Lost);
    assert_eq!(parse(&of_core[..60]).len(), 1, "half a record is none");
}

/// `task` loses the core to `next` at `at_ns`, and `next` gets it.
fn switch(records: &mut VecDeque<Record>, at_ns: u64, task: u32, next: u32, is_taken: bool) {
    let pair = |tid: u32| (tid / 10, tid);
    let next = pair(next);
    records.push_back(Record::Switch { at_ns, task: pair(task), is_out: true, is_taken, next: Some(next) });
    records.push_back(Record::Switch { at_ns, task: next, is_out: false, is_taken: false, next: None });
}

#[test]
fn who_had_the_core_meanwhile_is_added_up_inside_the_stall_alone() {
    let mut records = VecDeque::new();
    switch(&mut records, 100, 71, 81, true);
    switch(&mut records, 400, 81, 91, true);
    switch(&mut records, 500, 91, 0, false);
    switch(&mut records, 600, 0, 81, false);
    switch(&mut records, 700, 81, 71, true);
    switch(&mut records, 900, 71, 91, false);
    let found = judged(71, Scope::Core, &records, 200, 650);
    let by = vec![(8, 81, 250), (9, 91, 100)];
    assert_eq!(found, Switched { out_ns: 450, taken_ns: 450, taken: 1, by, is_of_core: true });
    let ended = judged(71, Scope::Core, &records, 0, 1_000);
    assert_eq!((ended.out_ns, ended.taken_ns, ended.taken), (700, 600, 1), "and it still is out at the end");
    assert_eq!(ended.by, [(8, 81, 400), (9, 91, 200)]);
    let idle = Switched { is_of_core: true, ..Switched::default() };
    assert_eq!(judged(71, Scope::Core, &records, 750, 800), idle, "it had its core");
}

#[test]
fn what_was_lost_and_what_is_kept_no_longer_makes_the_account_incomplete() {
    let Some(ring) = super::Ring::of_thread(rustix::thread::gettid().as_raw_nonzero().get() as u32, 4096) else {
        return eprintln!("skipped: this machine permits no switch records");
    };
    let kept = VecDeque::new();
    let mut watched = super::RecordedThread { tid: 71, scope: Scope::Thread, ring, kept, complete_from_ns: 0 };
    let at = |at_ns| Record::Switch { at_ns, task: (7, 71), is_out: true, is_taken: true, next: None };
    watched.keep(vec![at(10), Record::Lost, at(20)]);
    assert_eq!((watched.kept.len(), watched.complete_from_ns), (1, 20));
    watched.keep((0..KEPT_MAX as u64).map(|number| at(30 + number)).collect());
    assert_eq!((watched.kept.len(), watched.complete_from_ns), (KEPT_MAX, 21));
    watched.keep(vec![Record::Lost]);
    assert_eq!(watched.complete_from_ns, u64::MAX, "nothing is known until the next record");
}

/// The kernel's own word, where it permits it: a thread that sleeps is seen to have given its core
/// away.
#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the sleep is what is recorded")]
fn a_sleep_is_seen_by_the_kernels_own_records() {
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let clock = Clock::machine();
    let before_ns = Correlation::take(&clock).monotonic.0;
    let mut switches = super::Switches::open(&[(tid, None)], &clock);
    if switches.threads[0].is_none() {
        assert!(switches.hidden().unwrap().how.contains("perf_event_paranoid"));
        return eprintln!("skipped: this machine permits no switch records");
    }
    assert_eq!(switches.between(0, before_ns, u64::MAX), None, "nothing is known of the time before");
    let from_ns = Correlation::take(&clock).monotonic.0;
    std::thread::sleep(std::time::Duration::from_millis(20));
    switches.drain(0);
    let found = switches.between(0, from_ns, u64::MAX).unwrap();
    assert!(found.out_ns >= 20_000_000 && found.out_ns > found.taken_ns, "{found:?}");
    assert!(found.by.is_empty() && switches.hidden().unwrap().how.contains("CAP_PERFMON"), "by whom is not visible so");
    switches.reopen(0, tid, None, &clock);
    assert_eq!(switches.between(0, from_ns, u64::MAX), None, "nor of the time before it is opened anew");
    let from_ns = Correlation::take(&clock).monotonic.0;
    std::thread::sleep(std::time::Duration::from_millis(20));
    switches.drain(0);
    assert!(switches.between(0, from_ns, u64::MAX).unwrap().out_ns >= 20_000_000);
}

#[test]
#[cfg(target_endian = "little")]
fn forks_and_names_are_read_and_half_a_record_is_none() {
    let sample = "070000000700000040420f00000000000100000000000000";
    let fork = raw(7, 0, &format!("07000000060000000700000005000000a086010000000000{sample}"));
    let name = raw(3, 0, &format!("0700000007000000677a697000000000{sample}"));
    let bytes = [fork, raw(99, 0, "00"), name].concat();
    let (at_ns, task) = (1_000_000, (7, 7));
    let expected = [
        TaskRecord::Fork { at_ns, task, parent: (6, 5) },
        TaskRecord::Name { at_ns, task, command: "gzip".to_owned() },
    ];
    assert_eq!(parse_tasks(&bytes), expected);
    assert_eq!(parse_tasks(&bytes[..bytes.len() - 1]), expected[..1]);
    assert_eq!(parse_tasks(&raw(3, 0, "0700")), []);
}

#[test]
fn processes_of_one_name_and_parent_are_told_together_with_their_share() {
    let mut switches = super::Switches::default();
    let (shell, first) = (5_000_000, 5_000_001);
    let name =
        |at_ns, tid: u32, command: &str| TaskRecord::Name { at_ns, task: (tid, tid), command: command.to_owned() };
    let fork = |at_ns, tid: u32| TaskRecord::Fork { at_ns, task: (tid, tid), parent: (shell, shell) };
    let mut records = vec![name(1, shell, "sh")];
    (first..first + 48).for_each(|tid| records.extend([fork(2, tid), name(3, tid, "gzip")]));
    switches.names.learn_all(records);
    let mut by: Vec<(u32, u32, u64)> = (first..first + 48).map(|tid| (tid, tid, 2_000_000)).collect();
    by.push((first, first, 1_000_000));
    by.push((7_000_000, 7_000_000, 5_000_000));
    let named = switches.named(&by, &[], 4);
    let told: Vec<(String, u64)> = named.iter().map(|other| (other.who(), other.ran_ns)).collect();
    let all = ("gzip ×48, children of sh (5000000)".to_owned(), 97_000_000);
    assert_eq!(told, [all, ("processes that have ended (7000000)".to_owned(), 5_000_000)]);
    assert!(named.iter().all(|other| other.is_recorded));
    let known = [OtherThread::seen(7_000_000, "cc".to_owned(), 0, false)];
    assert_eq!(switches.named(&by, &known, 4)[1].who(), "cc (7000000)", "seen on the core before");
}

/// The kernel's own word, where it permits it: a process that is gone has its name and its parent.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_is_gone_is_named_by_the_kernels_own_records() {
    let mut names = super::Names::open(&crate::host::online_cores(std::path::Path::new("/")));
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
    names.drain();
    match names.of(child.id(), child.id()) {
        Some(known) => assert_eq!((known.command.as_str(), known.parent), ("true", std::process::id())),
        None => eprintln!("skipped: this machine permits no records of forks"),
    }
}
