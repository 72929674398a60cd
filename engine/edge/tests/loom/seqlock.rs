//! Models of the sequence lock and of the publication word: Q1, Q2.

use loom::thread;
use pinwheel_edge::seqlock::{Seqlock, get_first, set_last};
use pinwheel_edge::sync::{AtomicU64, DataWord, Ordering};
use std::sync::Arc;

/// The numbers of a record of two words. Both words hold the record's number.
struct Record {
    begun: AtomicU64,
    written: AtomicU64,
    words: [AtomicU64; 2],
}

type Lock = fn(&Record) -> Seqlock<'_>;

fn two_words(record: &Record) -> Seqlock<'_> {
    Seqlock::new(&record.begun, &record.written)
}

fn one_word(record: &Record) -> Seqlock<'_> {
    Seqlock::of_one_word(&record.written)
}

fn write(record: &Record, lock: Lock, number: u64) {
    lock(record).write(number, || record.words.iter().for_each(|word| word.store(number, Ordering::Relaxed)));
}

/// One attempt: the record's number, if it was read whole.
fn read(record: &Record, lock: Lock) -> Option<u64> {
    let words = || record.words.each_ref().map(|word| word.load(Ordering::Relaxed));
    let (number, words) = lock(record).try_read(|number| (number, words()))?;
    assert!(number == 0 || words == [number; 2], "record {number} with words {words:?}");
    Some(number)
}

fn a_reader_beside_the_writer(lock: Lock) {
    loom::model(move || {
        let word = || AtomicU64::new(0);
        let record = Arc::new(Record { begun: word(), written: word(), words: [word(), word()] });
        write(&record, lock, 1);
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || write(&record, lock, 2))
        };
        let _ = read(&record, lock);
        writer.join().unwrap();
        assert_eq!(read(&record, lock), Some(2));
    });
}

/// A reader beside the writer gets the old record, the new one or none; never words of one under
/// the number of the other. Red without Q1.release, Q1.acquire, Q2.release, Q2.acquire.
#[test]
fn a_record_is_read_whole_or_not_at_all() {
    a_reader_beside_the_writer(two_words);
}

/// The same with one word for both numbers. Red without Q1.release, Q1.acquire, Q2.release,
/// Q2.acquire.
#[test]
fn a_record_with_one_number_is_read_whole_or_not_at_all() {
    a_reader_beside_the_writer(one_word);
}

/// A reader never goes back: after a record it reads the same one or a later one. Logic of one
/// location; no edge is involved.
#[test]
fn a_reader_never_goes_back() {
    loom::model(|| {
        let word = || AtomicU64::new(0);
        let record = Arc::new(Record { begun: word(), written: word(), words: [word(), word()] });
        let writer = {
            let record = Arc::clone(&record);
            thread::spawn(move || write(&record, two_words, 1))
        };
        let number = || two_words(&record).try_read(|number| number);
        if let (Some(first), Some(second)) = (number(), number()) {
            assert!(first <= second);
        }
        writer.join().unwrap();
    });
}

/// A writer that ended in the middle of a record leaves the two numbers different: that record is
/// not read, and the next one is. Logic of the numbers; no edge is involved.
#[test]
fn a_record_that_was_never_completed_is_not_read() {
    loom::model(|| {
        let [begun, written, words] = [2, 1, 7].map(AtomicU64::new);
        let record = Record { begun, written, words: [words, AtomicU64::new(1)] };
        assert_eq!(two_words(&record).read(|number| number), None);
        write(&record, two_words, 3);
        assert_eq!(read(&record, two_words), Some(3));
    });
}

/// Whoever sees the word sees what its writer did before: a board before its magic, a role's last
/// write before its end, callers before their count. Red without Q2.release, Q2.acquire.
#[test]
fn a_publication_word_shows_what_was_written_before_it() {
    loom::model(|| {
        let shared = Arc::new((DataWord::new(0), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.store(1);
                set_last(&shared.1, 1);
            })
        };
        if get_first(&shared.1) == 1 {
            assert_eq!(shared.0.load(), 1);
        }
        writer.join().unwrap();
    });
}

/// A request and its answer, each under a word of its own, as between a sampler and the handler on
/// the sampled thread: the copy is whole, and the next request changes nothing that is still read.
/// Red without Q2.release, Q2.acquire.
#[test]
fn a_request_and_its_answer_do_not_meet() {
    struct Slot {
        wanted: AtomicU64,
        done: AtomicU64,
        bound: DataWord,
        copy: DataWord,
    }
    loom::model(|| {
        let (wanted, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let slot = Arc::new(Slot { wanted, done, bound: DataWord::new(0), copy: DataWord::new(0) });
        let ask = |slot: &Slot, bound: u64| {
            slot.bound.store(bound);
            set_last(&slot.wanted, 1);
        };
        let handler = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                if get_first(&slot.wanted) == 1 {
                    slot.copy.store(slot.bound.load());
                    set_last(&slot.done, 1);
                    set_last(&slot.wanted, 0);
                }
            })
        };
        ask(&slot, 7);
        if get_first(&slot.done) == 1 {
            assert_eq!(slot.copy.load(), 7);
            if get_first(&slot.wanted) == 0 {
                ask(&slot, 8);
            }
        }
        handler.join().unwrap();
    });
}
