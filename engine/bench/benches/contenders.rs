//! The rings and their peers behind one interface: push, pop, and batches if supported.

use crossbeam_channel::{Receiver, Sender};
use crossbeam_queue::ArrayQueue;
use disruptor::{BusySpin, EventPoller, MultiProducer, MultiProducerBarrier, SingleProducer, SingleProducerBarrier};
use disruptor::{Producer as _, SingleConsumerBarrier};
use pinwheel_edge::queue::fifo::Fifo;
use pinwheel_edge::ring::{line, mpsc, spsc};
use ringbuf::traits::{Consumer as _, Producer as _, Split as _};
use std::sync::Arc;

/// Items of a batch.
pub const BATCH: usize = 64;

/// An item: 8 bytes, or the content of a cache line beside a sequence word.
pub trait Item: Copy + Default + Send + Sync + 'static {
    /// Builds the item of number `number`.
    fn of(number: u64) -> Self;
    /// Its number; panics if the item is torn.
    fn number(&self) -> u64;
}

impl Item for u64 {
    fn of(number: u64) -> u64 {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

/// 56 bytes of content.
#[derive(Clone, Copy, Default)]
pub struct Content([u64; 7]);

/// The same content in a cache line of its own, for rings without sequence words.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Aligned(Content);

impl Item for Content {
    #[inline(always)]
    fn of(number: u64) -> Content {
        Content([number, 1, 2, 3, 4, 5, number])
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        assert_eq!(self.0[0], self.0[6], "an item must not be torn");
        self.0[6]
    }
}

impl Item for Aligned {
    #[inline(always)]
    fn of(number: u64) -> Aligned {
        Aligned(Content::of(number))
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.0.number()
    }
}

/// A kind of queue.
pub trait Contender<T>: 'static {
    /// Its writing end.
    type Tx: Send + 'static;
    /// Its reading end.
    type Rx: Send + 'static;

    /// An empty queue.
    fn make(capacity: usize) -> (Self::Tx, Self::Rx);
    /// Pushes `item`; returns whether there was room.
    fn push(tx: &mut Self::Tx, item: T) -> bool;
    /// Passes one item to `take`, or a batch if the queue cannot pop one; returns the number.
    fn pop(rx: &mut Self::Rx, take: &mut impl FnMut(&T)) -> usize;
}

/// A queue with batches.
pub trait Batches<T>: Contender<T> {
    /// Pushes up to `count` items `of(0)`, `of(1)` … in one batch; returns the number pushed.
    fn push_batch(tx: &mut Self::Tx, count: usize, of: impl Fn(usize) -> T) -> usize;
    /// Passes up to [`BATCH`] items to `take`.
    fn pop_batch(rx: &mut Self::Rx, take: &mut impl FnMut(&T)) -> usize;
}

/// A queue with several producers.
pub trait Many<T>: Contender<T> {
    /// Another writing end.
    fn another(tx: &Self::Tx) -> Self::Tx;
}

fn one<T>(found: Option<T>, take: &mut impl FnMut(&T)) -> usize {
    found.inspect(|item| take(item)).is_some().into()
}

macro_rules! contender {
    ($(#[$doc:meta])* $name:ident, $tx:ty, $rx:ty, $make:expr, |$w:ident, $item:ident| $push:expr, |$r:ident, $take:ident| $pop:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl<T: Item> Contender<T> for $name {
            type Tx = $tx;
            type Rx = $rx;

            fn make(capacity: usize) -> ($tx, $rx) {
                $make(capacity)
            }

            #[inline(always)]
            fn push($w: &mut $tx, $item: T) -> bool {
                $push
            }

            #[inline(always)]
            fn pop($r: &mut $rx, $take: &mut impl FnMut(&T)) -> usize {
                $pop
            }
        }
    };
}

macro_rules! batches {
    ($name:ident, |$w:ident, $count:ident, $of:ident| $push:expr, |$r:ident, $take:ident| $pop:expr) => {
        impl<T: Item> Batches<T> for $name {
            #[inline(always)]
            fn push_batch($w: &mut Self::Tx, $count: usize, $of: impl Fn(usize) -> T) -> usize {
                $push
            }

            #[inline(always)]
            fn pop_batch($r: &mut Self::Rx, $take: &mut impl FnMut(&T)) -> usize {
                $pop
            }
        }
    };
}

contender!(
    /// Ours: separate cursors.
    Spsc, spsc::Producer<T>, spsc::Consumer<T>, spsc::channel,
    |tx, item| tx.push(item).is_ok(),
    |rx, take| one(rx.pop(), take)
);
batches!(Spsc, |tx, count, of| tx.push_each(count, of), |rx, take| rx.drain(BATCH, |item| take(&item)));

contender!(
    /// Ours: a lane for each of two producers.
    Mpsc, mpsc::Producer<T>, mpsc::Consumer<T>, |capacity| mpsc::channel(2, capacity),
    |tx, item| tx.push(item).is_ok(),
    |rx, take| one(rx.pop(), take)
);

contender!(
    /// Ours: a sequence word in each slot's line.
    Line, line::Producer<T>, line::Consumer<T>, line::channel,
    |tx, item| tx.push(item).is_ok(),
    |rx, take| one(rx.pop(), take)
);
batches!(Line, |tx, count, of| tx.push_each(count, of), |rx, take| rx.drain(BATCH, |item| take(&item)));

contender!(
    /// Ours: several producers and consumers.
    SharedFifo, Arc<Fifo<T>>, Arc<Fifo<T>>,
    |capacity| {
        let queue = Arc::new(Fifo::new(capacity));
        (Arc::clone(&queue), queue)
    },
    |tx, item| tx.push(item).is_ok(),
    |rx, take| one(rx.pop(), take)
);

contender!(
    /// `rtrb`.
    Rtrb, rtrb::Producer<T>, rtrb::Consumer<T>, rtrb::RingBuffer::new,
    |tx, item| tx.push(item).is_ok(),
    |rx, take| one(rx.pop().ok(), take)
);
batches!(
    Rtrb,
    |tx, count, of| {
        let room = tx.slots().min(count);
        tx.write_chunk_uninit(room).map_or(0, |chunk| chunk.fill_from_iter((0..room).map(of)))
    },
    |rx, take| {
        let count = rx.slots().min(BATCH);
        rx.read_chunk(count).map_or(0, |chunk| chunk.into_iter().inspect(take).count())
    }
);

contender!(
    /// `ringbuf`.
    Ringbuf, ringbuf::HeapProd<T>, ringbuf::HeapCons<T>, |capacity| ringbuf::HeapRb::new(capacity).split(),
    |tx, item| tx.try_push(item).is_ok(),
    |rx, take| one(rx.try_pop(), take)
);
batches!(Ringbuf, |tx, count, of| tx.push_iter((0..count).map(of)), |rx, take| {
    let mut items = [T::default(); BATCH];
    let count = rx.pop_slice(&mut items);
    items[..count].iter().for_each(take);
    count
});

macro_rules! polled {
    ($rx:ident, $take:ident, $poll:expr) => {
        match $poll {
            Ok(mut events) => (&mut events).into_iter().inspect(|event| $take(event)).count(),
            Err(_) => 0,
        }
    };
}

contender!(
    /// `disruptor`, single producer; its consumer always takes all available items.
    DisruptorSingle, SingleProducer<T, SingleConsumerBarrier>, EventPoller<T, SingleProducerBarrier>,
    |capacity| {
        let (poller, builder) = disruptor::build_single_producer(capacity, T::default, BusySpin).new_event_poller();
        (builder.build(), poller)
    },
    |tx, item| tx.try_publish(|event| *event = item).is_ok(),
    |rx, take| polled!(rx, take, rx.poll())
);
batches!(
    DisruptorSingle,
    |tx, count, of| {
        let filled = tx.try_batch_publish(count, |events| {
            events.zip(0..).for_each(|(event, index)| *event = of(index));
        });
        if filled.is_ok() { count } else { 0 }
    },
    |rx, take| polled!(rx, take, rx.take(BATCH as u64))
);

contender!(
    /// `disruptor`, several producers.
    DisruptorMulti, MultiProducer<T, SingleConsumerBarrier>, EventPoller<T, MultiProducerBarrier>,
    |capacity| {
        let (poller, builder) = disruptor::build_multi_producer(capacity, T::default, BusySpin).new_event_poller();
        (builder.build(), poller)
    },
    |tx, item| tx.try_publish(|event| *event = item).is_ok(),
    |rx, take| polled!(rx, take, rx.poll())
);

contender!(
    /// `crossbeam`'s bounded queue.
    Queue, Arc<ArrayQueue<T>>, Arc<ArrayQueue<T>>,
    |capacity| {
        let queue = Arc::new(ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    },
    |tx, item| ArrayQueue::push(tx, item).is_ok(),
    |rx, take| one(ArrayQueue::pop(rx), take)
);

contender!(
    /// `crossbeam`'s bounded channel.
    Channel, Sender<T>, Receiver<T>, crossbeam_channel::bounded,
    |tx, item| tx.try_send(item).is_ok(),
    |rx, take| one(rx.try_recv().ok(), take)
);

impl<T: Item> Many<T> for Mpsc {
    fn another(tx: &Self::Tx) -> Self::Tx {
        tx.try_clone().expect("the ring was made for two")
    }
}

macro_rules! many {
    ($($name:ident)*) => {$(
        impl<T: Item> Many<T> for $name {
            fn another(tx: &Self::Tx) -> Self::Tx {
                tx.clone()
            }
        }
    )*};
}

many!(DisruptorMulti Queue Channel);
