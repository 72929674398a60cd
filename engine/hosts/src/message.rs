//! Shots of one host for another, and the answers to them, as bytes.
//!
//! Pure. Numbers are little-endian. Bounds: [`SHOTS_MAX`] shots a message. Bytes that deviate from this
//! page are refused as a whole.
//!
//! ```text
//!  shots:    'P' 'W' 'H' 1 | count u32 | detector words u32 | observable words u32
//!            | the owner's incarnation u64
//!            | count × (stream u32, epoch u32, number u64, 1 if the true observables are known u64,
//!                       detectors u64 × n, true observables u64 × m)
//!  answers:  'P' 'W' 'H' 2 | count u32 | 0 u32 | observable words u32
//!            | count × (stream u32, epoch u32, number u64, error u16, abstained u16, given by u32,
//!                       hash of the model u64, observables u64 × m)
//! ```

/// Most shots of one message.
pub const SHOTS_MAX: usize = 256;
/// Most bytes of a message.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;
const SHOTS: [u8; 4] = [b'P', b'W', b'H', 1];
const ANSWERS: [u8; 4] = [b'P', b'W', b'H', 2];
const HEADER_BYTES: usize = 16;
/// The owner's incarnation, after the header of shots.
const INCARNATION_BYTES: usize = 8;

/// A shot's name between hosts: stream, epoch of the loan, and its number in that epoch, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Stream.
    pub stream: u32,
    /// Counts the times that the owner has given the stream away.
    pub epoch: u32,
    /// Consecutive within the epoch.
    pub number: u64,
}

/// A shot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shot {
    /// Its name.
    pub name: Name,
    /// Detectors.
    pub detectors: Vec<u64>,
    /// True observables, if they are known.
    pub truth: Option<Vec<u64>>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Answered {
    /// The shot.
    pub name: Name,
    /// The engine's error code; 0: none.
    pub error: u16,
    /// Whether its gap is below the run's bound.
    pub abstained: bool,
    /// What gave it; its number of the model is one of the other host.
    pub by: u32,
    /// Hash of the model by which it was decoded; 0: it is an error.
    pub model: u64,
    /// Predicted observables.
    pub observables: Vec<u64>,
}

/// Widths of all shots of an engine, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Widths {
    /// Detectors, with soft bytes.
    pub detectors: usize,
    /// Observables.
    pub observables: usize,
}

impl Widths {
    /// Most shots of one message: as many as [`BYTES_MAX`] holds.
    pub fn shots_max(self) -> usize {
        ((BYTES_MAX - HEADER_BYTES - INCARNATION_BYTES) / self.shot_bytes()).clamp(1, SHOTS_MAX)
    }

    /// Bytes of a shot in a message.
    fn shot_bytes(self) -> usize {
        24 + 8 * (self.detectors + self.observables)
    }
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Malformed {
    #[error("the message has no header of this version; run the same version of pinwheel on both hosts")]
    Header,
    #[error("the message's shots have another width; load the same model on both hosts")]
    Widths,
    #[error("the message's length does not match its number of shots")]
    Length,
    #[error("the message has a value that its field cannot have")]
    Value,
    #[error("the message does not answer each shot of its question, in their order")]
    Shots,
}

/// Bytes of a message of shots; the owner's process started as `incarnation`.
pub fn encode_shots<'a>(incarnation: u64, widths: Widths, shots: impl Iterator<Item = &'a Shot>) -> Vec<u8> {
    let mut bytes = header(SHOTS, widths.detectors, widths.observables);
    bytes.extend_from_slice(&incarnation.to_le_bytes());
    let mut count = 0;
    for shot in shots {
        count += 1;
        put_name(&mut bytes, shot.name);
        bytes.extend_from_slice(&u64::from(shot.truth.is_some()).to_le_bytes());
        put_words(&mut bytes, &shot.detectors, widths.detectors);
        put_words(&mut bytes, shot.truth.as_deref().unwrap_or_default(), widths.observables);
    }
    set_count(&mut bytes, count);
    bytes
}

/// Bytes of a message of answers.
pub fn encode_answers(observable_words: usize, answers: &[Answered]) -> Vec<u8> {
    let mut bytes = header(ANSWERS, 0, observable_words);
    for answer in answers {
        put_name(&mut bytes, answer.name);
        bytes.extend_from_slice(&answer.error.to_le_bytes());
        bytes.extend_from_slice(&u16::from(answer.abstained).to_le_bytes());
        bytes.extend_from_slice(&answer.by.to_le_bytes());
        bytes.extend_from_slice(&answer.model.to_le_bytes());
        put_words(&mut bytes, &answer.observables, observable_words);
    }
    set_count(&mut bytes, answers.len() as u32);
    bytes
}

/// The owner's incarnation and the shots of a message.
///
/// # Errors
/// [`Malformed`] for any deviation from this page.
pub fn decode_shots(bytes: &[u8], widths: Widths) -> Result<(u64, Vec<Shot>), Malformed> {
    let mut reader = Reader { rest: bytes };
    let (count, detectors, observables) = reader.header(SHOTS)?;
    if (detectors, observables) != (widths.detectors, widths.observables) {
        return Err(Malformed::Widths);
    }
    let incarnation = reader.u64()?;
    reader.expect(count, widths.shot_bytes())?;
    let mut shots = Vec::with_capacity(count);
    for _ in 0..count {
        let name = reader.name()?;
        let is_known = match reader.u64()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed::Value),
        };
        let (detectors, truth) = (reader.words(detectors)?, reader.words(observables)?);
        shots.push(Shot { name, detectors, truth: is_known.then_some(truth) });
    }
    Ok((incarnation, shots))
}

/// The answers of a message.
///
/// # Errors
/// [`Malformed`] for any deviation from this page.
pub fn decode_answers(bytes: &[u8], observable_words: usize) -> Result<Vec<Answered>, Malformed> {
    let mut reader = Reader { rest: bytes };
    let (count, zero, observables) = reader.header(ANSWERS)?;
    if (zero, observables) != (0, observable_words) {
        return Err(Malformed::Widths);
    }
    reader.expect(count, 32 + 8 * observables)?;
    let mut answers = Vec::with_capacity(count);
    for _ in 0..count {
        let name = reader.name()?;
        let word = reader.u64()?;
        let (error, abstained, by) = (word as u16, (word >> 16) as u16, (word >> 32) as u32);
        if abstained > 1 {
            return Err(Malformed::Value);
        }
        let (model, observables) = (reader.u64()?, reader.words(observables)?);
        answers.push(Answered { name, error, abstained: abstained == 1, by, model, observables });
    }
    Ok(answers)
}

/// The answers of a message to `shots`: one to each, in their order.
///
/// # Errors
/// [`Malformed`] for any deviation.
pub fn decode_answers_to(shots: &[Name], bytes: &[u8], observable_words: usize) -> Result<Vec<Answered>, Malformed> {
    let answers = decode_answers(bytes, observable_words)?;
    let is_to_them = answers.iter().map(|answer| &answer.name).eq(shots);
    is_to_them.then_some(answers).ok_or(Malformed::Shots)
}

fn header(kind: [u8; 4], detectors: usize, observables: usize) -> Vec<u8> {
    let mut bytes = kind.to_vec();
    [0, detectors as u32, observables as u32].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

fn set_count(bytes: &mut [u8], count: u32) {
    bytes[4..8].copy_from_slice(&count.to_le_bytes());
}

fn put_name(bytes: &mut Vec<u8>, name: Name) {
    bytes.extend_from_slice(&name.stream.to_le_bytes());
    bytes.extend_from_slice(&name.epoch.to_le_bytes());
    bytes.extend_from_slice(&name.number.to_le_bytes());
}

/// Puts `width` words, zeros after the given ones.
fn put_words(bytes: &mut Vec<u8>, words: &[u64], width: usize) {
    let padded = words.iter().copied().chain(std::iter::repeat(0)).take(width);
    padded.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn header(&mut self, kind: [u8; 4]) -> Result<(usize, usize, usize), Malformed> {
        if self.rest.len() < HEADER_BYTES || self.rest[..4] != kind {
            return Err(Malformed::Header);
        }
        self.rest = &self.rest[4..];
        let (count, detectors, observables) = (self.u32()? as usize, self.u32()? as usize, self.u32()? as usize);
        if count == 0 || count > SHOTS_MAX {
            return Err(Malformed::Length);
        }
        Ok((count, detectors, observables))
    }

    /// Checks that exactly `count` records of `bytes` are left.
    fn expect(&self, count: usize, bytes: usize) -> Result<(), Malformed> {
        if self.rest.len() == count * bytes { Ok(()) } else { Err(Malformed::Length) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Malformed::Length)?;
        self.rest = rest;
        Ok(*array)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn name(&mut self) -> Result<Name, Malformed> {
        Ok(Name { stream: self.u32()?, epoch: self.u32()?, number: self.u64()? })
    }

    fn words(&mut self, count: usize) -> Result<Vec<u64>, Malformed> {
        (0..count).map(|_| self.u64()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Answered, BYTES_MAX, Malformed, Name, SHOTS_MAX, Shot, Widths};
    use super::{decode_answers, decode_answers_to, decode_shots, encode_answers, encode_shots};

    const WIDTHS: Widths = Widths { detectors: 3, observables: 1 };

    fn shot(number: u64) -> Shot {
        let name = Name { stream: 4, epoch: 2, number };
        Shot { name, detectors: vec![number, !number, 7], truth: number.is_multiple_of(2).then(|| vec![1]) }
    }

    #[test]
    fn shots_and_answers_come_back_as_they_were() {
        let shots: Vec<Shot> = (0..SHOTS_MAX as u64).map(shot).collect();
        let bytes = encode_shots(99, WIDTHS, shots.iter());
        assert_eq!(decode_shots(&bytes, WIDTHS).unwrap(), (99, shots.clone()));
        let answers: Vec<Answered> = shots
            .iter()
            .map(|shot| Answered {
                name: shot.name,
                error: shot.name.number as u16,
                abstained: shot.name.number % 3 == 0,
                by: u32::MAX - shot.name.number as u32,
                model: shot.name.number << 40,
                observables: vec![shot.name.number],
            })
            .collect();
        assert_eq!(decode_answers(&encode_answers(1, &answers), 1).unwrap(), answers);
    }

    #[test]
    fn a_message_of_wide_shots_has_fewer_of_them() {
        assert_eq!(WIDTHS.shots_max(), SHOTS_MAX);
        // A code of distance 31 with a soft byte for each of 30,000 detectors.
        let wide = Widths { detectors: 30_000_usize.div_ceil(64) + 30_000 / 8, observables: 1 };
        let shots = vec![Shot { name: shot(0).name, detectors: vec![1; wide.detectors], truth: None }; SHOTS_MAX];
        let bytes = |count: usize| encode_shots(1, wide, shots[..count].iter()).len();
        assert!(bytes(wide.shots_max()) <= BYTES_MAX && bytes(wide.shots_max() + 1) > BYTES_MAX);
        assert_eq!(Widths { detectors: BYTES_MAX, observables: 1 }.shots_max(), 1, "its refusal says why");
    }

    #[test]
    fn answers_to_other_shots_than_were_asked_are_refused() {
        let name = |number| Name { stream: 4, epoch: 2, number };
        let answer = |name| Answered { name, error: 0, abstained: false, by: 0, model: 0, observables: vec![1] };
        let asked = [name(0), name(1)];
        let read = |names: &[Name]| {
            let answers: Vec<Answered> = names.iter().copied().map(answer).collect();
            decode_answers_to(&asked, &encode_answers(1, &answers), 1).map(|answers| answers.len())
        };
        assert_eq!(read(&asked), Ok(2));
        let of_another_host = [name(0), Name { stream: 5, ..name(1) }];
        for wrong in [&asked[..1], &[name(1), name(0)], &[name(0), name(1), name(2)], &of_another_host] {
            assert_eq!(read(wrong), Err(Malformed::Shots));
        }
    }

    #[test]
    fn a_message_of_another_length_width_or_version_is_refused() {
        let good = encode_shots(1, WIDTHS, [shot(0), shot(1)].iter());
        for cut in 0..good.len() {
            assert!(decode_shots(&good[..cut], WIDTHS).is_err(), "{cut}");
        }
        let longer: Vec<u8> = good.iter().copied().chain([0]).collect();
        assert_eq!(decode_shots(&longer, WIDTHS), Err(Malformed::Length));
        assert_eq!(decode_shots(&good, Widths { detectors: 4, ..WIDTHS }), Err(Malformed::Widths));
        assert_eq!(decode_answers(&good, 1), Err(Malformed::Header));
        let change = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            decode_shots(&bytes, WIDTHS)
        };
        assert_eq!(change(3, 9), Err(Malformed::Header));
        assert_eq!(change(4, 0), Err(Malformed::Length));
        assert_eq!(change(7, 255), Err(Malformed::Length));
        assert_eq!(change(16 + 8 + 16, 2), Err(Malformed::Value));
    }
}
