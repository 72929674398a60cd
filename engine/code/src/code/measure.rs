//! From measurements to detection events and observables, by a map that lists the outcomes of each
//! parity.
//!
//! Owns the map's format. Cold code parses it; [`Measurements::map`] runs wherever shots arrive. It
//! allocates nothing and costs one step for each outcome that is 1 and each parity that contains
//! it. Bounds: [`MEASUREMENTS_MAX`], [`TERMS_MAX`]. Refuses a map without a line for each detector.
//!
//! ```text
//! # a comment
//! measurements 24          the outcomes of a shot; "measurements 24 int32": each comes as a 32-bit word of 0 or 1
//! D0 3                     detector 0 is outcome 3
//! D1 3 11                  detector 1 is the parity of outcomes 3 and 11
//! D2 4 12 !                … and is 1 where that parity is 0 (the noiseless circuit measures 1)
//! L0 21 22 23              an observable; all of them, or none
//! ```

use std::collections::BTreeSet;

use crate::quote::cut;

/// Most outcomes of a shot.
pub const MEASUREMENTS_MAX: u32 = 65_536;
/// Most terms of all parities together.
pub const TERMS_MAX: usize = 1 << 24;

/// How measurements or detection events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Eight to a byte.
    Bits,
    /// A 32-bit word of 0 or 1 each.
    Int32,
}

/// Why a map cannot be used. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}found {found}, expected {expected}; {remedy}", of_line(*.line))]
pub struct MapError {
    /// The line, from 1; 0 if a line is missing.
    pub line: usize,
    /// What the line has.
    pub found: String,
    /// What the format allows.
    pub expected: String,
    /// What to do.
    pub remedy: String,
}

/// `line 3: `, or nothing for an error that is in no line.
fn of_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

fn error<T>(
    line: usize,
    found: impl Into<String>,
    expected: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<T, MapError> {
    Err(MapError { line, found: found.into(), expected: expected.into(), remedy: remedy.into() })
}

/// A measurement map for one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurements {
    count: u32,
    encoding: Encoding,
    /// Outcome `m` is in the parities `terms[starts[m]..starts[m + 1]]`: detectors, then
    /// observables.
    starts: Vec<u32>,
    terms: Vec<u32>,
    detectors: u32,
    /// The parities that are 1 in a noiseless shot, as words.
    flipped_detectors: Vec<u64>,
    flipped_observables: Vec<u64>,
    truth_known: bool,
    /// For each word of detectors: how many outcomes from the first on determine all words up to it.
    needed: Vec<u32>,
}

/// One line.
struct Parity {
    output: u32,
    outcomes: BTreeSet<u32>,
    flipped: bool,
}

impl Measurements {
    /// Parses the map of a model with this many detectors and observables.
    ///
    /// # Errors
    /// [`MapError`] at the first wrong line, or for a detector without a line.
    pub fn parse(text: &str, detectors: u32, observables: u32) -> Result<Measurements, MapError> {
        let mut lines = text.lines().enumerate().filter_map(|(number, line)| {
            let said = line.split('#').next().unwrap_or_default().trim();
            (!said.is_empty()).then_some((number + 1, said))
        });
        let (count, encoding) = head(lines.next())?;
        let mut parities: Vec<Option<Parity>> = (0..detectors + observables).map(|_| None).collect();
        let mut terms = 0;
        for (number, line) in lines {
            let parity = parity(number, line, count, (detectors, observables))?;
            terms += parity.outcomes.len();
            if terms > TERMS_MAX {
                return error(number, "more terms", format!("at most {TERMS_MAX} in all"), "split the experiment");
            }
            let place = &mut parities[parity.output as usize];
            if place.is_some() {
                return error(
                    number,
                    format!("a second line {:?}", cut(line)),
                    "one line for each",
                    "remove one of the two",
                );
            }
            *place = Some(parity);
        }
        let missing = parities.iter().take(detectors as usize).position(Option::is_none);
        if let Some(missing) = missing {
            let expected = format!("a line for each of the model's {detectors} detectors");
            return error(0, format!("no line for D{missing}"), expected, "make map and model from one circuit");
        }
        let known = parities.iter().skip(detectors as usize).flatten().count();
        if known != 0 && known != observables as usize {
            let expected = format!("all {observables} observables of the model, or none");
            return error(0, format!("lines for {known} observables"), expected, "add the others");
        }
        let truth_known = observables > 0 && known == observables as usize;
        Ok(Measurements::of(&parities, count, encoding, (detectors, observables), truth_known))
    }

    fn of(
        parities: &[Option<Parity>],
        count: u32,
        encoding: Encoding,
        (detectors, observables): (u32, u32),
        truth_known: bool,
    ) -> Measurements {
        let mut of_outcome: Vec<Vec<u32>> = vec![Vec::new(); count as usize];
        let mut flipped_detectors = vec![0; super::words(detectors)];
        let mut flipped_observables = vec![0; super::words(observables)];
        for parity in parities.iter().flatten() {
            parity.outcomes.iter().for_each(|outcome| of_outcome[*outcome as usize].push(parity.output));
            match parity.output.checked_sub(detectors) {
                _ if !parity.flipped => {}
                None => super::flip(&mut flipped_detectors, parity.output),
                Some(observable) => super::flip(&mut flipped_observables, observable),
            }
        }
        let mut starts = vec![0];
        let mut terms = Vec::new();
        for outputs in of_outcome {
            terms.extend(outputs);
            starts.push(u32::try_from(terms.len()).unwrap_or(u32::MAX));
        }
        let mut needed: Vec<u32> = vec![0; super::words(detectors)];
        for parity in parities[..detectors as usize].iter().flatten() {
            let of_word = &mut needed[parity.output as usize / 64];
            *of_word = parity.outcomes.last().map_or(0, |last| last + 1).max(*of_word);
        }
        for word in 1..needed.len() {
            needed[word] = needed[word].max(needed[word - 1]);
        }
        Measurements {
            count,
            encoding,
            starts,
            terms,
            detectors,
            flipped_detectors,
            flipped_observables,
            truth_known,
            needed,
        }
    }

    /// Leading words of detectors that the first `outcomes` outcomes determine.
    pub fn words_known(&self, outcomes: u32) -> usize {
        self.needed.partition_point(|needed| *needed <= outcomes)
    }

    /// Number of measurement outcomes in a shot.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How they are written.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether the map defines the observables.
    pub fn truth_known(&self) -> bool {
        self.truth_known
    }

    /// Writes the detection events and observables of `outcomes`, packed. Sets words of
    /// `observables` beyond the model's to 0.
    ///
    /// # Panics
    /// If a slice is too short.
    pub fn map(&self, outcomes: &[u64], detectors: &mut [u64], observables: &mut [u64]) {
        detectors.fill(0);
        observables.fill(0);
        detectors[..self.flipped_detectors.len()].copy_from_slice(&self.flipped_detectors);
        observables[..self.flipped_observables.len()].copy_from_slice(&self.flipped_observables);
        for outcome in super::ones(outcomes).take_while(|outcome| *outcome < self.count) {
            let (from, to) = (self.starts[outcome as usize], self.starts[outcome as usize + 1]);
            for output in &self.terms[from as usize..to as usize] {
                match output.checked_sub(self.detectors) {
                    None => super::flip(detectors, *output),
                    Some(observable) => super::flip(observables, observable),
                }
            }
        }
    }
}

fn head(line: Option<(usize, &str)>) -> Result<(u32, Encoding), MapError> {
    let expected = format!("measurements N, with N in 1..={MEASUREMENTS_MAX}, or measurements N int32");
    let Some((number, line)) = line else {
        return error(0, "an empty map", expected, "make one as engine/docs/src/guide/inputs.md shows");
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let encoding = match words[..] {
        ["measurements", _] => Some(Encoding::Bits),
        ["measurements", _, "int32"] => Some(Encoding::Int32),
        _ => None,
    };
    let count = words.get(1).and_then(|word| word.parse().ok()).filter(|count| (1..=MEASUREMENTS_MAX).contains(count));
    match (encoding, count) {
        (Some(encoding), Some(count)) => Ok((count, encoding)),
        _ => error(number, format!("{:?}", cut(line)), expected, "begin with how many outcomes a shot has"),
    }
}

fn parity(number: usize, line: &str, count: u32, (detectors, observables): (u32, u32)) -> Result<Parity, MapError> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let known = |limit: u32, digits: &str| digits.parse::<u32>().ok().filter(|index| *index < limit);
    let output = match name.split_at_checked(1) {
        Some(("D", digits)) => known(detectors, digits),
        Some(("L", digits)) => known(observables, digits).map(|index| detectors + index),
        _ => None,
    };
    let Some(output) = output else {
        let expected = format!("D below {detectors} or L below {observables}, as the model has");
        return error(number, format!("{:?}", cut(name)), expected, "make map and model from one circuit");
    };
    let (mut outcomes, mut flipped) = (BTreeSet::new(), false);
    for word in words {
        match known(count, word) {
            _ if flipped => return error(number, format!("{:?} after !", cut(word)), "! at the end", "move it there"),
            _ if word == "!" => flipped = true,
            Some(outcome) if outcomes.insert(outcome) => {}
            Some(_) => {
                return error(
                    number,
                    format!("{} twice", cut(word)),
                    "each outcome once",
                    "two equal outcomes cancel: remove both",
                );
            }
            None => {
                let expected = format!("an outcome below {count}, or ! at the end");
                return error(
                    number,
                    format!("{:?}", cut(word)),
                    expected,
                    "count outcomes from 0, in the order measured",
                );
            }
        }
    }
    Ok(Parity { output, outcomes, flipped })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Encoding, Measurements};

    /// A repetition code of three data qubits and two rounds: outcomes 0, 1 and 2, 3 are the two
    /// checks of each round, 4 to 6 the data at the end. The read-out of qubit 2 is inverted: a
    /// noiseless circuit measures 1 there (outcome 6).
    const REPETITION: &str = "measurements 7
        D0 0
        D1 1 # first round: what is measured
        D2 0 2
        D3 1 3
        D4 2 4 5
        D5 3 5 6 !
        L0 6 !";

    fn mapped(outcomes: u64) -> (u64, u64) {
        let map = Measurements::parse(REPETITION, 6, 1).unwrap();
        let (mut detectors, mut observables) = ([u64::MAX; 1], [u64::MAX; 2]);
        map.map(&[outcomes], &mut detectors, &mut observables);
        assert_eq!(observables[1], 0);
        (detectors[0], observables[0])
    }

    #[test]
    fn a_noiseless_shot_has_no_detection_events() {
        assert_eq!(mapped(0b100_0000), (0, 0));
    }

    #[test]
    fn errors_of_the_repetition_code_fire_the_detectors_by_hand() {
        // A measurement error of check 0 in round one: seen, and seen to go away.
        assert_eq!(mapped(0b100_0001), (0b000_101, 0));
        // Qubit 1 flips between the rounds: both checks of round two, and its own outcome.
        assert_eq!(mapped(0b110_1100), (0b001_100, 0));
        // Qubit 2 flips at the end: the last detector and the observable.
        assert_eq!(mapped(0b000_0000), (0b100_000, 1));
    }

    #[test]
    fn every_outcome_alone_flips_the_parities_it_is_in() {
        let map = Measurements::parse(REPETITION, 6, 1).unwrap();
        let lines: Vec<Vec<u32>> = REPETITION
            .lines()
            .skip(1)
            .map(|line| {
                line.split('#').next().unwrap().split_whitespace().filter_map(|word| word.parse().ok()).collect()
            })
            .collect();
        assert!(map.truth_known() && map.count() == 7 && map.encoding() == Encoding::Bits);
        let (none, _) = mapped(0);
        for outcome in 0..7 {
            let (found, flip) = mapped(1 << outcome);
            for (output, line) in lines.iter().enumerate() {
                let is_in = line.contains(&outcome);
                let changed = if output == 6 { flip != 1 } else { (found ^ none) >> output & 1 == 1 };
                assert_eq!(changed, is_in, "outcome {outcome}, line {output}");
            }
        }
    }

    #[test]
    fn a_word_of_detectors_is_known_once_all_outcomes_up_to_it_are() {
        // 130 detectors: the first word needs outcome 70, the second one no more, the third outcome 199.
        let of = |detector: u32| match detector {
            5 => 70,
            129 => 199,
            _ => 0,
        };
        let lines: String = (0..130).map(|detector| format!("D{detector} {}\n", of(detector))).collect();
        let map = Measurements::parse(&format!("measurements 200\n{lines}"), 130, 0).unwrap();
        assert_eq!([0, 70, 71, 199, 200].map(|outcomes| map.words_known(outcomes)), [0, 0, 2, 2, 3]);
    }

    #[test]
    fn a_map_that_does_not_go_with_its_model_is_refused_in_one_sentence() {
        for (text, part) in [
            ("", "an empty map"),
            ("# nothing\n", "an empty map"),
            ("D0 1", "begin with how many"),
            ("measurements 0", "1..=65536"),
            ("measurements 65537", "1..=65536"),
            ("measurements 2 int64", "int32"),
            ("measurements 2\nD2 0", "D below 2"),
            ("measurements 2\nL1 0", "L below 1"),
            ("measurements 2\nD", "D below 2"),
            ("measurements 2\nü0 1", "D below 2"),
            ("measurements 2\nD0 2", "an outcome below 2"),
            ("measurements 2\nD0 -1", "an outcome below 2"),
            ("measurements 2\nD0 1 1", "1 twice"),
            ("measurements 2\nD0 ! 1", "after !"),
            ("measurements 2\nD0 0\nD0 1", "line 3"),
            ("measurements 2\nD1 0", "no line for D0"),
        ] {
            let said = Measurements::parse(text, 2, 1).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains("expected") && !said.contains('\n'), "{part}: {said}");
        }
        let said = Measurements::parse("measurements 2\nD0 0\nD1 1\nL0 0", 2, 2).unwrap_err().to_string();
        assert!(said.contains("lines for 1 observables"), "{said}");
        let map = Measurements::parse("measurements 2 int32\nD0\nD1 1", 2, 2).unwrap();
        assert!(!map.truth_known() && map.encoding() == Encoding::Int32);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(measurements [0-9]{1,3}( int32)?\n)?([DL][0-9]{0,2}( [0-9!]{1,2}){0,4}\n){0,6}.{0,9}") {
            if let Ok(map) = Measurements::parse(&text, 3, 1) {
                let (mut detectors, mut observables) = ([0; 1], [0; 1]);
                map.map(&vec![u64::MAX; map.count().div_ceil(64) as usize], &mut detectors, &mut observables);
                proptest::prop_assert!(detectors[0] < 8 && observables[0] < 2);
            }
        }
    }
}
