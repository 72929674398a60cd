//! Models of the outer ring: U1 to U5.

use loom::thread;
use pinwheel_edge::slot::outside::{ClientEnd, EngineEnd, Outside};
use pinwheel_edge::slot::word;
use pinwheel_edge::sync::{AtomicU64, DataWords};
use std::sync::Arc;

/// One slot, a shot and an answer of one word each.
struct Region {
    rx: [AtomicU64; 1],
    tx: [AtomicU64; 1],
    granted: AtomicU64,
    shot: DataWords,
    answer: DataWords,
}

fn region() -> Arc<Region> {
    let word = || [AtomicU64::new(0)];
    let (shot, answer) = (DataWords::new(1, 1), DataWords::new(1, 1));
    Arc::new(Region { rx: word(), tx: word(), granted: AtomicU64::new(0), shot, answer })
}

impl Region {
    fn outside(&self) -> Outside<'_> {
        Outside { rx: &self.rx, tx: &self.tx, granted: &self.granted }
    }

    /// One attempt of the client.
    fn publish(&self, client: &mut ClientEnd, shot: u64) -> bool {
        let vacant = client.is_vacant(&self.outside());
        if vacant {
            client.publish(&self.outside(), self.shot.record(0), &[shot], 8 * shot);
        }
        vacant
    }

    /// One attempt of the engine: takes a shot, and checks that it is the one announced.
    fn take(&self, engine: &mut EngineEnd) -> Option<u64> {
        let (_, rx) = engine.arrived(&self.outside())?;
        let shot = self.shot.record(0)[0].load();
        assert_eq!(rx, 8 * shot);
        engine.hold(&self.outside());
        Some(shot)
    }

    fn answer(&self, engine: &mut EngineEnd, shot: u64) {
        assert!(engine.answer(&self.outside(), 0, (self.answer.record(0), &[shot]), word::ready(shot)));
    }

    /// One attempt of whoever collects.
    fn collect(&self) -> Option<u64> {
        let mut found = [0];
        let answer = ClientEnd::collect(&self.outside(), 0, self.answer.record(0), &mut found)?;
        assert_eq!(answer, word::ready(found[0]));
        Some(found[0])
    }
}

/// The engine reads the words of the shot whose rx it saw. Red without U1.release, U1.acquire.
#[test]
fn the_engine_sees_the_whole_shot() {
    loom::model(|| {
        let region = region();
        let client = {
            let region = Arc::clone(&region);
            thread::spawn(move || assert!(region.publish(&mut ClientEnd::default(), 7)))
        };
        let taken = region.take(&mut EngineEnd::new(1));
        assert!(taken.is_none_or(|shot| shot == 7));
        client.join().unwrap();
    });
}

/// A client that finds rx given back writes its next shot after the engine has read the last one,
/// and not before that is answered. Red without U2.release, U2.acquire.
#[test]
fn a_client_never_reuses_a_slot_that_is_held() {
    loom::model(|| {
        let region = region();
        let mut client = ClientEnd::default();
        assert!(region.publish(&mut client, 1));
        let engine = {
            let region = Arc::clone(&region);
            thread::spawn(move || assert_eq!(region.take(&mut EngineEnd::new(1)), Some(1)))
        };
        assert!(!region.publish(&mut client, 2));
        engine.join().unwrap();
    });
}

/// The record belongs to the answer that was seen. Red without U3.release, U3.acquire.
#[test]
fn a_client_reads_a_whole_answer() {
    loom::model(|| {
        let region = region();
        assert!(region.publish(&mut ClientEnd::default(), 1));
        let engine = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut engine = EngineEnd::new(1);
                assert_eq!(region.take(&mut engine), Some(1));
                region.answer(&mut engine, 1);
            })
        };
        assert!(region.collect().is_none_or(|found| found == 1));
        engine.join().unwrap();
    });
}

/// A client whose one thread collects while the other publishes: the engine's second answer comes
/// after the first was read. Red without U4.release, U4.acquire, U1.release, U1.acquire.
#[test]
fn an_answer_is_written_after_the_last_was_read() {
    loom::model(|| {
        let region = region();
        let (mut client, mut engine) = (ClientEnd::default(), EngineEnd::new(1));
        assert!(region.publish(&mut client, 1));
        assert_eq!(region.take(&mut engine), Some(1));
        region.answer(&mut engine, 1);
        let collector = {
            let region = Arc::clone(&region);
            thread::spawn(move || assert_eq!(region.collect(), Some(1)))
        };
        let publisher = {
            let region = Arc::clone(&region);
            thread::spawn(move || region.publish(&mut client, 2))
        };
        if let Some(shot) = region.take(&mut engine) {
            assert_eq!(shot, 2);
            region.answer(&mut engine, 2);
        }
        collector.join().unwrap();
        publisher.join().unwrap();
    });
}

/// A new client writes its first shot after the engine has read the last of the one before, and it
/// is not wiped away. Red without U5.release, U5.acquire, U1.release, U1.acquire.
#[test]
fn a_new_client_writes_after_the_last_read() {
    loom::model(|| {
        let region = region();
        assert!(region.publish(&mut ClientEnd::default(), 1));
        let fresh = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut client = ClientEnd::default();
                client.is_granted(&region.outside(), 9) && region.publish(&mut client, 2)
            })
        };
        let mut engine = EngineEnd::new(1);
        assert_eq!(region.take(&mut engine), Some(1));
        engine.grant(&region.outside(), 9);
        let early = region.take(&mut engine);
        if fresh.join().unwrap() {
            assert_eq!(early.or_else(|| region.take(&mut engine)), Some(2));
        }
    });
}
