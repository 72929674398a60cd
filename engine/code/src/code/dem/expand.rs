//! From instructions to a [`Model`]: unrolls repeats, shifts detector indices and coordinates,
//! checks limits.
//!
//! Computes the unrolled size first, so that a huge repeat count is refused at once.

use super::cursor::Position;
use super::parse::{Body, Instruction};
use super::{Component, DETECTORS_MAX, DemError, EXPANDED_MAX, Mechanism, Model};

struct Expander {
    model: Model,
    /// Wide enough for the largest shift, repeated as often as [`EXPANDED_MAX`] allows.
    detector_shift: u128,
    coordinate_shift: Vec<f64>,
    /// By detector; `None`: no line declares it.
    coordinates: Vec<Option<Vec<f64>>>,
}

/// Unrolls a parsed text.
pub(super) fn expand(instructions: &[Instruction]) -> Result<Model, DemError> {
    cost(instructions)?;
    let model = Model {
        detectors: 0,
        observables: 0,
        errors: Vec::new(),
        coordinates: Vec::new(),
        heralds: Vec::new(),
        soft: None,
    };
    let mut expander = Expander { model, detector_shift: 0, coordinate_shift: Vec::new(), coordinates: Vec::new() };
    expander.block(instructions)?;
    let Expander { mut model, coordinates, .. } = expander;
    model.coordinates = coordinates.into_iter().map(Option::unwrap_or_default).collect();
    model.coordinates.resize(model.detectors as usize, Vec::new());
    model.heralds.sort_unstable();
    model.heralds.dedup();
    Ok(model)
}

/// Counts instructions and arguments after unrolling; an error if they exceed [`EXPANDED_MAX`].
fn cost(instructions: &[Instruction]) -> Result<u64, DemError> {
    let mut total: u64 = 0;
    for Instruction { at, body } in instructions {
        let own = match body {
            Body::Error { components, .. } => {
                components.iter().map(|part| 1 + part.detectors.len() + part.observables.len()).sum::<usize>() as u64
            }
            Body::Detector { coordinates, .. } => (1 + coordinates.len()) as u64,
            Body::Observable { .. } => 0,
            Body::Shift { coordinates, .. } => coordinates.len() as u64,
            // Each repetition of an empty body still costs a step.
            Body::Repeat { times, body } => cost(body)?.saturating_add(1).saturating_mul(*times),
        };
        total = total.saturating_add(own).saturating_add(1);
        if total > EXPANDED_MAX {
            let least = if total == u64::MAX { "at least " } else { "" };
            return Err(at.refuse(
                format!("{least}{total} instructions and arguments once repeats are unrolled"),
                format!("at most {EXPANDED_MAX}"),
                "use a model of fewer rounds",
            ));
        }
    }
    Ok(total)
}

impl Expander {
    fn block(&mut self, instructions: &[Instruction]) -> Result<(), DemError> {
        instructions.iter().try_for_each(|instruction| self.instruction(instruction))
    }

    fn instruction(&mut self, Instruction { at, body }: &Instruction) -> Result<(), DemError> {
        match body {
            Body::Error { probability, components, highest: [detector, observable] } => {
                detector.map(|index| self.detector(*at, index)).transpose()?;
                observable.iter().for_each(|&index| self.observable(index));
                self.error(*at, *probability, components)?;
            }
            Body::Detector { coordinates, target, is_herald } => self.declare(*at, coordinates, *target, *is_herald)?,
            Body::Observable { target } => self.observable(*target),
            Body::Shift { coordinates, detectors } => {
                self.detector_shift += u128::from(*detectors);
                let longer = self.coordinate_shift.len().max(coordinates.len());
                self.coordinate_shift.resize(longer, 0.0);
                self.coordinate_shift.iter_mut().zip(coordinates).for_each(|(shift, by)| *shift += by);
            }
            Body::Repeat { times: 0, body } => self.observables_of(body),
            Body::Repeat { times, body } => (0..*times).try_for_each(|_| self.block(body))?,
        }
        Ok(())
    }

    /// Counts the observables that a block names. Stim counts them even if the block is repeated 0 times.
    fn observables_of(&mut self, block: &[Instruction]) {
        for Instruction { body, .. } in block {
            match body {
                Body::Error { highest: [_, Some(index)], .. } | Body::Observable { target: index } => {
                    self.observable(*index);
                }
                Body::Repeat { body, .. } => self.observables_of(body),
                Body::Error { .. } | Body::Detector { .. } | Body::Shift { .. } => {}
            }
        }
    }

    fn error(&mut self, at: Position, probability: f64, components: &[Component]) -> Result<(), DemError> {
        let mut shifted = Vec::with_capacity(components.len());
        for part in components {
            let detectors = part.detectors.iter().map(|&index| self.detector(at, index)).collect::<Result<_, _>>()?;
            shifted.push(Component { detectors, observables: part.observables.clone() });
        }
        self.model.errors.push(Mechanism { probability, components: shifted });
        Ok(())
    }

    /// Declares a detector. As in Stim, its first declaration gives its coordinates.
    fn declare(&mut self, at: Position, coordinates: &[f64], target: u32, is_herald: bool) -> Result<(), DemError> {
        let detector = self.detector(at, target)?;
        if is_herald {
            self.model.heralds.push(detector);
        }
        let index = detector as usize;
        if self.coordinates.len() <= index {
            self.coordinates.resize(index + 1, None);
        }
        let shifts = self.coordinate_shift.iter().copied().chain(std::iter::repeat(0.0));
        let shifted = || coordinates.iter().zip(shifts).map(|(at, by)| at + by).collect();
        self.coordinates[index].get_or_insert_with(shifted);
        Ok(())
    }

    /// Adds a detector to the model; returns its absolute index.
    fn detector(&mut self, at: Position, relative: u32) -> Result<u32, DemError> {
        let absolute = self.detector_shift + u128::from(relative);
        match u32::try_from(absolute) {
            Ok(index) if index < DETECTORS_MAX => {
                self.model.detectors = self.model.detectors.max(index + 1);
                Ok(index)
            }
            _ => Err(at.refuse(
                format!("detector D{absolute}"),
                format!("at most {DETECTORS_MAX} detectors"),
                "check the index, or use a smaller model",
            )),
        }
    }

    /// The parser has refused an index above the limit.
    fn observable(&mut self, index: u32) {
        self.model.observables = self.model.observables.max(index + 1);
    }
}
