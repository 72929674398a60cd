//! The session of one decoder: collects measurements to a volume, and keeps the corrections.
//!
//! Owns the decoder's buffer, corrections and state. Pure: calls and answers in, verdicts out, so
//! that tests cover every order. Called by the wire on the feed's thread; never allocates after
//! construction. Bounds: one volume of measurements, [`PARTS_MAX`] parts of it.
//!
//! ```text
//!              enqueue, part           enqueue, last part          answer
//!  collecting ─────────────▶ collecting ─────────────▶ decoding ─────────▶ ready
//!      ▲  ▲                                                │                 │
//!      │  └───── get_corrections that clears, enqueue ─────┼─────────────────┘
//!      │ reset_decoder                                     │ decode failed, or is not to be trusted
//!    failed ◀──── malformed enqueue, more measurements than the volume has room for
//! ```
//!
//! Corrections accumulate: each answer is added, modulo 2, to what is there, until they are cleared.
//! While it decodes, a session takes no call: the wire keeps them in order.

use super::frame::{Call, Function, Status};
use crate::feed::packet::ROUNDS_MAX;
use crate::streams::DecoderState;
use pinwheel_edge::slot::OBSERVABLE_WORDS_MAX;

/// Most parts in which a volume is passed on.
const PARTS_MAX: u32 = ROUNDS_MAX;

/// What follows from a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A reply with this status, without a result.
    Reply(Status),
    /// A reply with the corrections as they were before the call cleared them.
    Corrections([u64; OBSERVABLE_WORDS_MAX]),
    /// The part is to be passed on; then a reply with status 0.
    Part,
    /// As `Part`, but the reply waits for the answer to the volume.
    LastPart,
}

/// A part of a volume, to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumePart<'a> {
    /// Number of the volume, from 0.
    pub volume: u64,
    /// Number of the part, from 0.
    pub part: u32,
    /// Whether it is the last one.
    pub is_last: bool,
    /// Index of its first measurement.
    pub first_bit: u32,
    /// Number of measurements.
    pub bits: u32,
    /// The measurements, eight to a byte.
    pub packed: &'a [u8],
}

/// The session of one decoder.
#[derive(Debug)]
pub struct Session {
    /// Measurements of a volume.
    bits: u32,
    /// Number of corrections.
    observables: u32,
    /// The volume; zero from `filled` on.
    buffer: Box<[u8]>,
    /// Measurements in the buffer.
    filled: u32,
    /// Measurements that were passed on, a multiple of `step`.
    passed_on: u32,
    parts: u32,
    /// Fewest measurements that are passed on before the volume is complete: a multiple of 64.
    step: u32,
    volume: u64,
    state: DecoderState,
    corrections: [u64; OBSERVABLE_WORDS_MAX],
    /// No call came since the last answer.
    is_unread: bool,
}

impl Session {
    /// A session of volumes of `bits` measurements and of `observables` corrections.
    pub fn new(bits: u32, observables: u32) -> Session {
        Session {
            bits,
            observables,
            buffer: vec![0; bits.div_ceil(8) as usize].into(),
            filled: 0,
            passed_on: 0,
            parts: 0,
            step: bits.div_ceil(PARTS_MAX).next_multiple_of(64),
            volume: 0,
            state: DecoderState::Collecting,
            corrections: [0; OBSERVABLE_WORDS_MAX],
            is_unread: false,
        }
    }

    /// Its state.
    pub fn state(&self) -> DecoderState {
        self.state
    }

    /// The measurements of a complete volume, until its answer comes, eight to a byte.
    pub fn volume(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether a client will ask for an answer: it has not come, or no call came since.
    pub fn is_awaited(&self) -> bool {
        self.state == DecoderState::Decoding || self.is_unread
    }

    /// Takes a call.
    ///
    /// # Panics
    /// If the session is decoding.
    pub fn call(&mut self, call: &Call<'_>) -> Verdict {
        assert!(self.state != DecoderState::Decoding, "calls wait until the answer has come");
        self.is_unread = false;
        match *call {
            Call::Enqueue { bits, packed } => self.enqueue(bits, packed),
            Call::Corrections { return_bits, is_clearing } => self.corrections(return_bits, is_clearing),
            Call::Reset => {
                self.empty();
                (self.state, self.corrections) = (DecoderState::Collecting, [0; OBSERVABLE_WORDS_MAX]);
                Verdict::Reply(Status::Ok)
            }
            Call::Malformed(function) => {
                if function == Function::Enqueue {
                    self.fail();
                }
                Verdict::Reply(Status::BadRequest)
            }
        }
    }

    fn enqueue(&mut self, bits: u32, packed: &[u8]) -> Verdict {
        if self.state == DecoderState::Failed {
            return Verdict::Reply(Status::Ok);
        }
        if bits > self.bits - self.filled {
            self.fail();
            return Verdict::Reply(Status::Ok);
        }
        self.append(bits, packed);
        if self.filled == self.bits {
            self.state = DecoderState::Decoding;
            return Verdict::LastPart;
        }
        self.state = DecoderState::Collecting;
        if self.filled - self.passed_on >= self.step { Verdict::Part } else { Verdict::Reply(Status::Ok) }
    }

    /// Appends the first `bits` bits of `packed`.
    fn append(&mut self, bits: u32, packed: &[u8]) {
        let (from, shift) = ((self.filled / 8) as usize, self.filled % 8);
        for (place, byte) in packed[..bits.div_ceil(8) as usize].iter().enumerate() {
            let left = bits - 8 * place as u32;
            let byte = if left < 8 { byte & ((1 << left) - 1) } else { *byte };
            let wide = u16::from(byte) << shift;
            self.buffer[from + place] |= wide as u8;
            if wide > 0xff {
                self.buffer[from + place + 1] |= (wide >> 8) as u8;
            }
        }
        self.filled += bits;
    }

    fn corrections(&mut self, return_bits: i64, is_clearing: bool) -> Verdict {
        if return_bits <= 0 {
            return Verdict::Reply(Status::BadRequest);
        }
        if self.state == DecoderState::Failed {
            return Verdict::Reply(Status::InternalError);
        }
        if return_bits != i64::from(self.observables) {
            return Verdict::Reply(Status::BadRequest);
        }
        if self.state != DecoderState::Ready {
            return Verdict::Reply(Status::NotReady);
        }
        let found = self.corrections;
        if is_clearing {
            (self.state, self.corrections) = (DecoderState::Collecting, [0; OBSERVABLE_WORDS_MAX]);
        }
        Verdict::Corrections(found)
    }

    /// The part to be passed on after [`Verdict::Part`] or [`Verdict::LastPart`]; counts it as passed
    /// on.
    pub fn part(&mut self) -> VolumePart<'_> {
        let (is_last, first_bit, part) = (self.filled == self.bits, self.passed_on, self.parts);
        let whole_steps = self.filled - (self.filled - first_bit) % self.step;
        let to = if is_last { self.bits } else { whole_steps };
        (self.passed_on, self.parts) = (to, part + 1);
        let packed = &self.buffer[(first_bit / 8) as usize..to.div_ceil(8) as usize];
        VolumePart { volume: self.volume, part, is_last, first_bit, bits: to - first_bit, packed }
    }

    /// Whether parts of the present volume were passed on that will not be followed by others.
    /// `true` once for each such volume.
    pub fn takes_given_up(&mut self) -> bool {
        if self.filled > 0 || self.passed_on == 0 {
            return false;
        }
        self.next_volume();
        true
    }

    /// Takes the answer to volume `volume`: the predicted observables, or `None` if there are none
    /// to be trusted. Returns whether a reply waits for it.
    pub fn answer(&mut self, volume: u64, observables: Option<&[u64; OBSERVABLE_WORDS_MAX]>) -> bool {
        // A volume that was given up is answered, too.
        if self.state != DecoderState::Decoding || volume != self.volume {
            return false;
        }
        self.empty();
        self.next_volume();
        self.is_unread = true;
        match observables {
            Some(observables) => {
                self.corrections.iter_mut().zip(observables).for_each(|(sum, word)| *sum ^= word);
                self.state = DecoderState::Ready;
            }
            None => self.state = DecoderState::Failed,
        }
        true
    }

    /// Fails the session, as an error of the decoder does.
    pub fn fail(&mut self) {
        self.empty();
        self.state = DecoderState::Failed;
    }

    fn empty(&mut self) {
        self.buffer[..self.filled.div_ceil(8) as usize].fill(0);
        self.filled = 0;
    }

    fn next_volume(&mut self) {
        (self.volume, self.passed_on, self.parts) = (self.volume + 1, 0, 0);
    }
}

#[cfg(test)]
mod tests;
