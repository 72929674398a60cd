//! Models of the outer ring: U1 to U3.

use loom::thread;
use pinwheel_edge::slot::outside::{ClientEnd, EngineEnd, Outside, Record};
use pinwheel_edge::sync::{AtomicU64, DataWords};
use std::sync::Arc;

/// One slot, a shot and an answer of one word each beside their heads.
struct Region {
    heads: [AtomicU64; 2],
    granted: AtomicU64,
    shot: DataWords,
    answer: DataWords,
}

fn region() -> Arc<Region> {
    let word = || AtomicU64::new(0);
    let (shot, answer) = (DataWords::new(1, 1), DataWords::new(1, 1));
    Arc::new(Region { heads: [word(), word()], granted: word(), shot, answer })
}

impl Outside for Region {
    fn shot(&self, slot: usize) -> Record<'_> {
        Record { head: &self.heads[0], words: self.shot.record(slot) }
    }

    fn answer(&self, slot: usize) -> Record<'_> {
        Record { head: &self.heads[1], words: self.answer.record(slot) }
    }

    fn granted(&self) -> &AtomicU64 {
        &self.granted
    }
}

/// One attempt of the engine: takes a shot, and checks that its word belongs to its head.
fn take(engine: &mut EngineEnd, region: &Region) -> Option<u32> {
    let mut found = [0];
    let (slot, shot) = engine.take(region, &mut found)?;
    assert_eq!((slot, u64::from(shot)), (0, found[0]));
    Some(shot)
}

/// One attempt of the client likewise.
fn collect(client: &mut ClientEnd, region: &Region, position: u64) -> Option<u32> {
    let mut found = [0];
    let answer = client.collect(region, position, &mut found)?;
    assert_eq!(u64::from(answer), found[0]);
    Some(answer)
}

fn publish(client: &mut ClientEnd, region: &Region, shot: u32) -> bool {
    client.publish(region, shot, &[u64::from(shot)])
}

fn answer(engine: &mut EngineEnd, region: &Region, shot: u32) {
    assert!(engine.answer(region, 0, shot, &[u64::from(shot)]));
}

/// The engine reads the words of the shot whose turn it saw. Red without U1.release, U1.acquire.
#[test]
fn the_engine_sees_the_whole_shot() {
    loom::model(|| {
        let region = region();
        let client = {
            let region = Arc::clone(&region);
            thread::spawn(move || assert!(publish(&mut ClientEnd::new(1), &region, 7)))
        };
        let taken = take(&mut EngineEnd::new(1), &region);
        assert!(taken.is_none_or(|shot| shot == 7));
        client.join().unwrap();
    });
}

/// The words belong to the answer that was seen. Red without U2.release, U2.acquire.
#[test]
fn a_client_reads_a_whole_answer() {
    loom::model(|| {
        let (region, mut client) = (region(), ClientEnd::new(1));
        assert!(publish(&mut client, &region, 1));
        let engine = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut engine = EngineEnd::new(1);
                assert_eq!(take(&mut engine, &region), Some(1));
                answer(&mut engine, &region, 1);
            })
        };
        assert!(collect(&mut client, &region, 0).is_none_or(|found| found == 1));
        engine.join().unwrap();
    });
}

/// A client that has an answer writes its next shot into the slot after the engine has read the
/// last one, and not before. Red without U2.release, U2.acquire.
#[test]
fn a_shot_is_written_after_the_last_was_read() {
    loom::model(|| {
        let (region, mut client) = (region(), ClientEnd::new(1));
        assert!(publish(&mut client, &region, 1));
        let engine = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut engine = EngineEnd::new(1);
                assert_eq!(take(&mut engine, &region), Some(1));
                // An answer without words: only the shot's can be written too early.
                assert!(engine.answer(&*region, 0, 1, &[]));
            })
        };
        let has_answer = client.collect(&*region, 0, &mut []).is_some();
        assert_eq!(publish(&mut client, &region, 2), has_answer);
        engine.join().unwrap();
    });
}

/// The engine's second answer comes after the client has read the first. Red without U1.release,
/// U1.acquire.
#[test]
fn an_answer_is_written_after_the_last_was_read() {
    loom::model(|| {
        let (region, mut client, mut engine) = (region(), ClientEnd::new(1), EngineEnd::new(1));
        assert!(publish(&mut client, &region, 1));
        assert_eq!(take(&mut engine, &region), Some(1));
        answer(&mut engine, &region, 1);
        let client = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                assert_eq!(collect(&mut client, &region, 0), Some(1));
                // A shot without words: only the answer's can be written too early.
                assert!(client.publish(&*region, 2, &[]));
            })
        };
        if let Some((_, shot)) = engine.take(&*region, &mut []) {
            assert_eq!(shot, 2);
            answer(&mut engine, &region, 2);
        }
        client.join().unwrap();
    });
}

/// A new client writes its first shot after the engine has read the last of the one before, and it
/// is not wiped away. Red without U3.release, U3.acquire, U1.release, U1.acquire.
#[test]
fn a_new_client_writes_after_the_last_read() {
    loom::model(|| {
        let region = region();
        assert!(publish(&mut ClientEnd::new(1), &region, 1));
        let fresh = {
            let region = Arc::clone(&region);
            thread::spawn(move || {
                let mut client = ClientEnd::new(1);
                client.is_granted(&*region, 9) && publish(&mut client, &region, 2)
            })
        };
        let mut engine = EngineEnd::new(1);
        assert_eq!(take(&mut engine, &region), Some(1));
        engine.grant(&*region, 9);
        let early = take(&mut engine, &region);
        if fresh.join().unwrap() {
            assert_eq!(early.or_else(|| take(&mut engine, &region)), Some(2));
        }
    });
}
