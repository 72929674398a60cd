//! CUDA-Q's configuration of decoders: YAML with the check matrices of each.
//!
//! Cold code reads it before anything starts. Bounds: those of [`crate::cli::shots::read_text`] and
//! of the engine's models. All decoders of one engine have one model; a configuration with several is
//! refused.
//!
//! | field | what it becomes |
//! |---|---|
//! | `H_sparse`, `error_rate_vec` | the errors of the model, one for each column |
//! | `O_sparse` | the observables that each of them flips |
//! | `D_sparse` | the map from measurements to detectors |
//! | `id` | the decoder's number; its stream is its place in the list |
//! | `type` | the decoder, see [`of_type`] |
//!
//! A sparse matrix lists, for each row, the columns of its ones, then -1. Source: NVIDIA's cudaqx,
//! as of August 2026.

use super::Decoders;
use pinwheel_engine::code::measure::MEASUREMENTS_MAX;
use pinwheel_engine::code::{Measurements, Model};
use pinwheel_engine::decode::MatcherModel;
use pinwheel_engine::profile::{Decoder, Window, WindowRounds};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Budget, Options, Spanned};
use std::collections::BTreeMap;

/// Most columns of a matrix.
const COLUMNS_MAX: u32 = 1 << 22;
/// Probability of each error where the configuration gives none: all are equally probable.
const EVEN_PROBABILITY: f64 = 0.1;

/// The fields of the first reading: what decides whether the others are looked at.
#[derive(Deserialize)]
struct Types {
    decoders: Vec<TypeOf>,
}

#[derive(Deserialize)]
struct TypeOf {
    r#type: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    decoders: Spanned<Vec<Entry>>,
    transport: Option<Transport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transport {
    provider: Option<Spanned<String>>,
    #[serde(rename = "args")]
    _args: Option<IgnoredAny>,
    #[serde(rename = "device_graph")]
    _device_graph: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Spanned<i64>,
    r#type: Spanned<String>,
    block_size: Spanned<u32>,
    syndrome_size: u32,
    #[serde(rename = "H_sparse")]
    h: Spanned<Vec<i64>>,
    #[serde(rename = "O_sparse")]
    o: Spanned<Vec<i64>>,
    #[serde(rename = "D_sparse")]
    d: Spanned<Vec<i64>>,
    #[serde(default)]
    decoder_custom_args: Custom,
    dispatch: Option<Spanned<String>>,
    #[serde(default, rename = "cuda_device_id")]
    _cuda_device_id: Option<IgnoredAny>,
}

/// The arguments of all types that are served.
#[derive(Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields)]
struct Custom {
    error_rate_vec: Option<Vec<f64>>,
    merge_strategy: Option<Merge>,
    lut_error_depth: Option<u32>,
    window_size: Option<u32>,
    step_size: Option<u32>,
    num_syndromes_per_round: Option<u32>,
    num_boundary_syndromes: Option<u32>,
    straddle_start_round: Option<bool>,
    straddle_end_round: Option<bool>,
    inner_decoder_name: Option<String>,
    inner_decoder_params: Option<Box<Custom>>,
}

/// What becomes of two columns with the same ones. The observables are those of the column that is
/// kept.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Merge {
    /// The configuration is refused.
    Disallow,
    /// One error or the other happens, but not both; the first is kept.
    Independent,
    /// The more probable one is kept.
    SmallestWeight,
    /// The first is kept.
    KeepOriginal,
    /// The last is kept.
    Replace,
}

/// The type of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Pymatching,
    Lut,
    SlidingWindow,
}

/// The decoder of ours that serves a type, or what would.
fn of_type(name: &Spanned<String>) -> Result<Type, String> {
    let remedy = match name.value.as_str() {
        "pymatching" => return Ok(Type::Pymatching),
        "multi_error_lut" | "single_error_lut" => return Ok(Type::Lut),
        "sliding_window" => return Ok(Type::SlidingWindow),
        "nv-fusion-decoder" => "write type: pymatching with the same error_rate_vec",
        "chromobius" => "write type: pymatching with a model without columns of three ones",
        "nv-qldpc-decoder" | "trt_decoder" => {
            "give its model with --dem and --m2d, and a decoder of that kind with --decoder plugin:PATH"
        }
        _ => "compare the spelling",
    };
    let expected = "pymatching, multi_error_lut, single_error_lut or sliding_window";
    Err(at(&name.defined, format!("found type {:?}, expected {expected}; {remedy}", name.value)))
}

/// A sentence with its place in the file.
fn at(location: &serde_saphyr::Location, said: impl std::fmt::Display) -> String {
    format!("line {}, column {}: {said}", location.line(), location.column())
}

/// Parses a configuration.
///
/// # Errors
/// A sentence with the place, what was found, what was expected, and what to do.
pub fn parse(text: &str) -> Result<Decoders, String> {
    let types: Types = read(text)?;
    types.decoders.iter().try_for_each(|decoder| of_type(&decoder.r#type).map(drop))?;
    let file: File = read(text)?;
    if let Some(provider) = file.transport.as_ref().and_then(|transport| transport.provider.as_ref())
        && provider.value != "udp"
    {
        let said = format!("found transport {:?}, expected udp; remove the transport", provider.value);
        return Err(at(&provider.defined, said));
    }
    let entries = &file.decoders.value;
    let Some(first) = entries.first() else {
        return Err(at(&file.decoders.defined, "found no decoders, expected at least one; add one"));
    };
    let numbers: Vec<i64> = entries.iter().map(|entry| entry.id.value).collect();
    for (place, entry) in entries.iter().enumerate() {
        if numbers[..place].contains(&entry.id.value) {
            let said = format!("found a second decoder {}, expected each id once; renumber one", entry.id.value);
            return Err(at(&entry.id.defined, said));
        }
        if let Some(dispatch) = entry.dispatch.as_ref().filter(|dispatch| dispatch.value != "host") {
            let said = format!("found dispatch {:?}, expected host; write dispatch: host", dispatch.value);
            return Err(at(&dispatch.defined, said));
        }
        if !entry.has_model_of(first) {
            let said = format!(
                "found decoder {} with another type or model than decoder {}, expected one for all; run an engine for \
                 each, and let clients reach each decoder at the port of its engine (udp-port.{}=PORT)",
                entry.id.value, first.id.value, entry.id.value
            );
            return Err(at(&entry.id.defined, said));
        }
    }
    first.decoders(numbers)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    let mut options = Options::default();
    // The size of the text is bounded; matrices have many numbers.
    let mut budget = Budget::default();
    (budget.max_events, budget.max_nodes, budget.max_total_scalar_bytes) = (usize::MAX, usize::MAX, usize::MAX);
    options.budget = Some(budget);
    options.with_snippet = false;
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let said = error.to_string();
        let said = said.lines().next().unwrap_or_default().trim_end_matches('.');
        let remedy = "compare the file with CUDA-Q's format";
        format!("{said}; {remedy}")
    })
}

/// A sparse matrix, row by row. A one that is listed twice is none.
fn rows(name: &str, sparse: &Spanned<Vec<i64>>, columns: u32) -> Result<Vec<Vec<u32>>, String> {
    let (mut rows, mut row) = (Vec::new(), BTreeMap::<u32, bool>::new());
    for entry in &sparse.value {
        match u32::try_from(*entry) {
            Ok(column) if column < columns => *row.entry(column).or_default() ^= true,
            _ if *entry == -1 => {
                rows.push(
                    std::mem::take(&mut row)
                        .into_iter()
                        .filter_map(|(column, is_one)| is_one.then_some(column))
                        .collect(),
                );
            }
            _ => {
                let row = rows.len();
                let said = format!(
                    "found column {entry} in row {row} of {name}, expected one below {columns}, or -1 at the end of \
                     the row; correct the row"
                );
                return Err(at(&sparse.defined, said));
            }
        }
    }
    if row.is_empty() {
        return Ok(rows);
    }
    Err(at(&sparse.defined, format!("found no -1 after the last row of {name}, expected one after each; add it")))
}

/// An error of the model.
#[derive(Clone, Debug, PartialEq)]
struct Fault {
    column: usize,
    probability: f64,
    observables: Vec<u32>,
}

impl Entry {
    /// Whether both decoders are alike but for their numbers.
    fn has_model_of(&self, other: &Entry) -> bool {
        self.r#type.value == other.r#type.value
            && self.block_size.value == other.block_size.value
            && self.syndrome_size == other.syndrome_size
            && self.h.value == other.h.value
            && self.o.value == other.o.value
            && self.d.value == other.d.value
            && self.decoder_custom_args == other.decoder_custom_args
    }

    fn decoders(&self, numbers: Vec<i64>) -> Result<Decoders, String> {
        let kind = of_type(&self.r#type)?;
        self.check_arguments(kind)?;
        let (columns, detectors) = (self.block_size.value, self.syndrome_size);
        if columns > COLUMNS_MAX {
            let said = format!("found block_size {columns}, expected at most {COLUMNS_MAX}; split the experiment");
            return Err(at(&self.block_size.defined, said));
        }
        let h = rows("H_sparse", &self.h, columns)?;
        let o = rows("O_sparse", &self.o, columns)?;
        let d = rows("D_sparse", &self.d, MEASUREMENTS_MAX)?;
        for (name, matrix, found) in [("H_sparse", &self.h, h.len()), ("D_sparse", &self.d, d.len())] {
            if found != detectors as usize {
                let said =
                    format!("found {found} rows in {name}, expected syndrome_size, {detectors}; correct one of them");
                return Err(at(&matrix.defined, said));
            }
        }
        let faults = self.faults(kind, &h, &o)?;
        let refused = |error: &dyn std::fmt::Display| at(&self.h.defined, error);
        // Before the model's text, which divides by the syndromes of a round.
        let window = if kind == Type::SlidingWindow { self.window()? } else { Window::None };
        let text = model_text(&faults, detectors, o.len(), self.decoder_custom_args.num_syndromes_per_round);
        let model = Model::parse(text.as_bytes()).map_err(|error| refused(&error))?;
        let Some(count) = d.iter().flatten().max().map(|last| last + 1) else {
            let said = "found no measurement in D_sparse, expected those of each detector; add them";
            return Err(at(&self.d.defined, said));
        };
        let map = Measurements::parse(&map_text(&d, count), detectors, model.observables);
        let map = map.map_err(|error| at(&self.d.defined, error))?;
        let decoder = match kind {
            // The table has what matching says; a model that is too large for it is matched.
            Type::Lut if MatcherModel::lookup(&model).is_ok() => Decoder::Lookup,
            _ => Decoder::Matching,
        };
        Ok(Decoders { model, map, numbers, decoder, window })
    }

    /// Refuses arguments that the type does not have.
    fn check_arguments(&self, kind: Type) -> Result<(), String> {
        let custom = &self.decoder_custom_args;
        let windows = [
            ("window_size", custom.window_size.is_some()),
            ("step_size", custom.step_size.is_some()),
            ("num_syndromes_per_round", custom.num_syndromes_per_round.is_some()),
            ("num_boundary_syndromes", custom.num_boundary_syndromes.is_some()),
            ("straddle_start_round", custom.straddle_start_round.is_some()),
            ("straddle_end_round", custom.straddle_end_round.is_some()),
            ("inner_decoder_name", custom.inner_decoder_name.is_some()),
            ("inner_decoder_params", custom.inner_decoder_params.is_some()),
        ];
        let others = [
            ("error_rate_vec", custom.error_rate_vec.is_some() && kind == Type::Lut),
            ("merge_strategy", custom.merge_strategy.is_some() && kind != Type::Pymatching),
            ("lut_error_depth", custom.lut_error_depth.is_some() && kind != Type::Lut),
        ];
        let windows = windows.into_iter().filter(|_| kind != Type::SlidingWindow);
        let Some((name, _)) = others.into_iter().chain(windows).find(|(_, is_given)| *is_given) else { return Ok(()) };
        let said = format!("found {name}, expected arguments of type {}; remove it", self.r#type.value);
        Err(at(&self.r#type.defined, said))
    }

    /// The errors of the model, merged where columns are equal.
    fn faults(&self, kind: Type, h: &[Vec<u32>], o: &[Vec<u32>]) -> Result<BTreeMap<Vec<u32>, Fault>, String> {
        let columns = self.block_size.value as usize;
        let rates = self.rates(columns)?;
        let of_columns = |matrix: &[Vec<u32>]| {
            let mut of_columns: Vec<Vec<u32>> = vec![Vec::new(); columns];
            for (row, ones) in (0..).zip(matrix) {
                ones.iter().for_each(|column| of_columns[*column as usize].push(row));
            }
            of_columns
        };
        let merge = match kind {
            Type::Pymatching => self.decoder_custom_args.merge_strategy.unwrap_or(Merge::Disallow),
            Type::SlidingWindow => self.inner_merge(),
            Type::Lut => Merge::KeepOriginal,
        };
        let mut faults = BTreeMap::new();
        for (column, (ones, observables)) in of_columns(h).into_iter().zip(of_columns(o)).enumerate() {
            let found = ones.len();
            match found {
                1 | 2 => {}
                // No syndrome tells of it, so a table has no use for it.
                0 if kind == Type::Lut => continue,
                _ => {
                    let said = format!(
                        "found {found} ones in column {column} of H_sparse, expected 1 or 2, as matching needs; split \
                         the error into such columns"
                    );
                    return Err(at(&self.h.defined, said));
                }
            }
            let fault = Fault { column, probability: rates[column], observables };
            let Some(earlier) = faults.insert(ones.clone(), fault.clone()) else { continue };
            let first = earlier.column;
            let Some(kept) = merged(merge, earlier, fault) else {
                let said = format!(
                    "found the same ones in columns {first} and {column} of H_sparse, expected different ones; give a \
                     merge_strategy"
                );
                return Err(at(&self.h.defined, said));
            };
            faults.insert(ones, kept);
        }
        Ok(faults)
    }

    fn inner_merge(&self) -> Merge {
        let inner = self.decoder_custom_args.inner_decoder_params.as_ref();
        inner.and_then(|inner| inner.merge_strategy).unwrap_or(Merge::Disallow)
    }

    /// The probability of each column.
    fn rates(&self, columns: usize) -> Result<Vec<f64>, String> {
        let Some(rates) = &self.decoder_custom_args.error_rate_vec else { return Ok(vec![EVEN_PROBABILITY; columns]) };
        if rates.len() != columns {
            let found = rates.len();
            let said =
                format!("found {found} rates in error_rate_vec, expected block_size, {columns}; correct one of them");
            return Err(at(&self.r#type.defined, said));
        }
        match rates.iter().position(|rate| !(*rate > 0.0 && *rate <= 0.5)) {
            None => Ok(rates.clone()),
            Some(column) => {
                let said = format!(
                    "found rate {} of column {column} in error_rate_vec, expected above 0, at most 0.5; correct it",
                    rates[column]
                );
                Err(at(&self.r#type.defined, said))
            }
        }
    }

    /// The windows of a sliding window decoder, in rounds.
    fn window(&self) -> Result<Window, String> {
        let custom = &self.decoder_custom_args;
        let refuse = |said: String| Err(at(&self.r#type.defined, said));
        let needs = |name: &str| format!("found no {name}, expected one for type sliding_window; add it");
        let (Some(size), Some(step)) = (custom.window_size, custom.step_size) else {
            return refuse(needs("window_size and step_size"));
        };
        let Some(per_round) = custom.num_syndromes_per_round.filter(|per_round| *per_round > 0) else {
            return refuse(needs("num_syndromes_per_round"));
        };
        if custom.error_rate_vec.is_none() {
            return refuse(needs("error_rate_vec"));
        }
        if custom.inner_decoder_name.as_deref() != Some("pymatching") {
            let said = "found another inner_decoder_name, expected pymatching; write inner_decoder_name: pymatching";
            return refuse(said.to_owned());
        }
        if custom.num_boundary_syndromes.is_some_and(|count| count > 0)
            || custom.straddle_start_round == Some(true)
            || custom.straddle_end_round == Some(false)
        {
            let said = "found num_boundary_syndromes or straddle_start_round: true or straddle_end_round: false, \
                        expected windows that share the errors at their ends; remove these arguments";
            return refuse(said.to_owned());
        }
        let rounds = self.syndrome_size / per_round;
        if !self.syndrome_size.is_multiple_of(per_round) || !(1..=size).contains(&step) || size > rounds {
            let said = format!(
                "found window_size {size}, step_size {step} and {per_round} of {} syndromes per round, expected whole \
                 rounds and 1 <= step_size <= window_size <= rounds; correct them",
                self.syndrome_size
            );
            return refuse(said);
        }
        match (size == rounds, size - step) {
            (true, _) => Ok(Window::None),
            (false, 0) => {
                let said =
                    "found step_size equal to window_size, expected a smaller one, so that windows overlap; lower it";
                refuse(said.to_owned())
            }
            (false, buffer_rounds) => Ok(Window::Some(WindowRounds { commit_rounds: step, buffer_rounds })),
        }
    }
}

/// The error that stands for two with the same syndrome; `None`: there may be no such two.
fn merged(merge: Merge, first: Fault, second: Fault) -> Option<Fault> {
    match merge {
        Merge::Disallow => None,
        Merge::Independent => {
            let (p, q) = (first.probability, second.probability);
            Some(Fault { probability: p * (1.0 - q) + q * (1.0 - p), ..first })
        }
        Merge::SmallestWeight if second.probability > first.probability => Some(second),
        Merge::SmallestWeight | Merge::KeepOriginal => Some(first),
        Merge::Replace => Some(second),
    }
}

/// The model, as a detector error model's text.
fn model_text(
    faults: &BTreeMap<Vec<u32>, Fault>,
    detectors: u32,
    observables: usize,
    per_round: Option<u32>,
) -> String {
    let mut text = String::new();
    for (ones, fault) in faults {
        text += &format!("error({})", fault.probability);
        text.extend(ones.iter().map(|detector| format!(" D{detector}")));
        text.extend(fault.observables.iter().map(|observable| format!(" L{observable}")));
        text.push('\n');
    }
    for detector in 0..detectors {
        let time = per_round.map(|per_round| format!("({})", detector / per_round));
        text += &format!("detector{} D{detector}\n", time.unwrap_or_default());
    }
    text.extend((0..observables).map(|observable| format!("logical_observable L{observable}\n")));
    text
}

/// The map from measurements to detectors, as its text.
fn map_text(d: &[Vec<u32>], count: u32) -> String {
    let mut text = format!("measurements {count}\n");
    for (detector, measurements) in d.iter().enumerate() {
        text += &format!("D{detector}");
        text.extend(measurements.iter().map(|measurement| format!(" {measurement}")));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
