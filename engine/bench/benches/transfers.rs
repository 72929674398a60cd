//! A page of 4 KiB moves from one silo's thread to another's, back and forth, compared with two
//! ring hops and a copy.
//!
//! *Ours*: REQ, decision, GRANT with the bytes, installation, by each silo's complete arbiter
//! (ports, wheel, sweep, history, routes, tallies); from the request to the page's arrival, while
//! the ACK is sent. *Peer*: the same two rings, the same bytes, and no decision. Each thread
//! requests the page whenever it does not have it, so the figure covers both directions.

use super::measure::{CLOCK, CORES, Placement, Suite, pin_to};
use pinwheel_edge::page::{Hint, Limits, PageTable, Routes, Signals, Silo, WriteBuffer};
use pinwheel_edge::ring::spsc::{Consumer, Producer, channel};
use pinwheel_engine::arbiter::deadlines::Timebase;
use pinwheel_engine::arbiter::directory::{Context, OwnershipDirectory};
use pinwheel_engine::arbiter::driver::Gva;
use pinwheel_engine::arbiter::protocol::{Change, Message};
use pinwheel_engine::arbiter::retry::BackOff;
use pinwheel_engine::board::histogram::Histogram;
use pinwheel_engine::units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TRANSFERS: u64 = 20_000;
const PARTS: [&str; 3] = ["p50", "p99", "p999"];

/// A page's bytes.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bytes([u64; 512]);

/// One silo's endpoints of the links.
struct End {
    small_out: Producer<Message>,
    small_in: Consumer<Message>,
    large_out: Producer<(Message, Bytes)>,
    large_in: Consumer<(Message, Bytes)>,
}

fn ends() -> [End; 2] {
    let ((small_out, there_small), (large_out, there_large)) = (channel(64), channel(64));
    let ((there_small_out, small_in), (there_large_out, large_in)) = (channel(64), channel(64));
    let there =
        End { small_out: there_small_out, small_in: there_small, large_out: there_large_out, large_in: there_large };
    [End { small_out, small_in, large_out, large_in }, there]
}

/// A silo's bytes and outgoing rings.
struct BenchContext {
    end: End,
    bytes: Box<Bytes>,
    incoming: Box<Bytes>,
}

impl Context for BenchContext {
    fn signals(&self, _: u32) -> Signals {
        Signals { write_buffer: WriteBuffer::Drained }
    }
    fn put(&mut self, _: u32) {
        self.bytes.0.copy_from_slice(&self.incoming.0);
    }
    fn take_over(&mut self, _: u32, _: Silo) {}
    fn send(&mut self, _: Silo, _: u32, message: Message) {
        let is_sent = match message {
            Message::Grant(_) => self.end.large_out.push((message, *self.bytes)).is_ok(),
            _ => self.end.small_out.push(message).is_ok(),
        };
        assert!(is_sent, "one page cannot fill a ring");
    }
    fn ticks(&self) -> Ticks {
        CLOCK.ticks()
    }
}

/// Runs one silo until `arrivals` pages have arrived here and the other silo is done.
fn silo(me: u8, end: End, arrivals: u64, done: &AtomicU64) -> Vec<u64> {
    let (silos, owner) = ([Silo::new(me), Silo::new(1 - me)], |_| Silo::new(0));
    // If the other thread is preempted its ACK is late; the page must not be requested back.
    let limits = Limits { ack_us: 1_000_000, resend_us: 1_000_000, ..Limits::SEED };
    let table = Arc::new(PageTable::new(silos[0], 1, limits, owner));
    let base = Timebase { rate: CLOCK.rate(), start: CLOCK.start() };
    let mut directory = OwnershipDirectory::new(table, Arc::new(Routes::new(1, owner)), base, |_| 0);
    let blank = || Box::new(Bytes([u64::from(me); 512]));
    let mut context = BenchContext { end, bytes: blank(), incoming: blank() };
    let (mut times, mut asked) = (Vec::with_capacity(arrivals as usize), None);
    while (times.len() as u64) < arrivals || done.load(Ordering::Relaxed) < 2 {
        if let Some((message, bytes)) = context.end.large_in.pop() {
            *context.incoming = bytes;
            if matches!(directory.receive(&mut context, 0, silos[1], &message), Change::Arrived(_)) {
                times.extend(asked.take().map(|at| CLOCK.rate().nanos(CLOCK.ticks().since(at)).0));
                if times.len() as u64 == arrivals {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        while let Some(message) = context.end.small_in.pop() {
            if let Change::Refused(_) = directory.receive(&mut context, 0, silos[1], &message) {
                asked = None;
            }
        }
        directory.decide(&mut context);
        directory.look(&mut context);
        let word = directory.table().word(0);
        if asked.is_none() && !word.is_writable() && !word.awaits() && (times.len() as u64) < arrivals {
            asked = Some(CLOCK.ticks());
            let _ = directory.request_ownership(&mut context, Gva(0), (Hint::Default, 0), &BackOff::new(1));
        }
    }
    times
}

/// The same path without a decision: request, copy, send.
fn bare(me: u8, mut end: End, arrivals: u64, done: &AtomicU64) -> Vec<u64> {
    let request = Message::Ack(pinwheel_edge::page::Epoch::default());
    let mut bytes = Box::new(Bytes([u64::from(me); 512]));
    let (mut times, mut asked, mut is_mine) = (Vec::with_capacity(arrivals as usize), None, me == 0);
    while (times.len() as u64) < arrivals || done.load(Ordering::Relaxed) < 2 {
        if let Some((_, incoming)) = end.large_in.pop() {
            bytes.0.copy_from_slice(&incoming.0);
            is_mine = true;
            times.extend(asked.take().map(|at| CLOCK.rate().nanos(CLOCK.ticks().since(at)).0));
            if times.len() as u64 == arrivals {
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
        if is_mine && end.small_in.pop().is_some() {
            assert!(end.large_out.push((request, *bytes)).is_ok());
            is_mine = false;
        }
        if asked.is_none() && !is_mine && (times.len() as u64) < arrivals {
            asked = Some(CLOCK.ticks());
            assert!(end.small_out.push(request).is_ok());
        }
    }
    times
}

fn both(arrivals: u64, run: fn(u8, End, u64, &AtomicU64) -> Vec<u64>) -> Vec<f64> {
    let (done, [here, there]) = (Arc::new(AtomicU64::new(0)), ends());
    let other = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            pin_to(CORES.there);
            run(0, there, arrivals, &done)
        })
    };
    let mut times = run(1, here, arrivals, &done);
    times.extend(other.join().unwrap());
    let times = Histogram::of(&times);
    [0.5, 0.99, 0.999].map(|q| times.quantile_ns(q) as f64).to_vec()
}

pub fn register(suite: &mut Suite) {
    let arrivals = suite.effort.scale(TRANSFERS) / 2;
    let place = (Placement::CrossCore, 9);
    let ours = suite.case("transfer 4 KiB", &PARTS, place, move || both(arrivals, silo));
    let peer = suite.case("two hops and a copy", &PARTS, place, move || both(arrivals, bare));
    for (part, name) in PARTS.iter().enumerate() {
        let figure = format!("transfer/4KiB-{name}");
        suite.figure(figure, "ns", ours.part(part), Some(("2-hops-and-copy", peer.part(part))));
    }
}
