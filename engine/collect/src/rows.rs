//! A row of results, as sinter writes it: how often shots of a task were decoded, and how often wrongly.
//!
//! Pure. The texts are those of `sinter.TaskStats`, so that its programs read ours and we read theirs.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};

/// The first line of a file.
pub const HEADER: &str = "     shots,    errors,  discards, seconds,decoder,strong_id,json_metadata,custom_counts";

/// Counts of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Shots, of which `discards` were not decoded.
    pub shots: u64,
    /// Decoded shots of which an observable was predicted wrongly.
    pub errors: u64,
    /// Shots that were not decoded.
    pub discards: u64,
    /// Time of all threads together.
    pub seconds: f64,
    /// Name of the decoder.
    pub decoder: String,
    /// What identifies the task.
    pub strong_id: String,
    /// What people say of the task, as JSON.
    pub metadata: String,
    /// Further counts by name.
    pub counts: BTreeMap<String, u64>,
}

/// Why a text is not a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RowError {
    #[error("found no column {0}, expected {columns}; check that the file is one of results", columns = COLUMNS.join(", "))]
    NoColumn(&'static str),
    #[error("line {line}: found {column} {found:?}, expected {expected}; repair or remove the line")]
    Field {
        /// The line, from 1.
        line: u64,
        column: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("found a line that is not one of a table ({0}), expected rows of sinter; repair or remove the line")]
    Table(String),
}

/// Columns that every file has.
const COLUMNS: [&str; 7] = ["shots", "errors", "discards", "seconds", "decoder", "strong_id", "json_metadata"];
/// A column that newer files have.
const COUNTS: &str = "custom_counts";

/// Reads the rows of a file.
///
/// # Errors
/// The first line or field that is not sinter's.
pub fn parse(text: &[u8]) -> Result<Vec<Row>, RowError> {
    let table = |error: csv::Error| RowError::Table(error.to_string());
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(text);
    let header = reader.headers().map_err(table)?.clone();
    let place = |name: &str| header.iter().position(|column| column == name);
    let mut places = [0; 7];
    for (at, name) in places.iter_mut().zip(COLUMNS) {
        *at = place(name).ok_or(RowError::NoColumn(name))?;
    }
    let counts = place(COUNTS);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(table)?;
        let line = record.position().map_or(0, csv::Position::line);
        let [shots, errors, discards, seconds, decoder, strong_id, metadata] =
            places.map(|at| record.get(at).unwrap_or_default());
        let refused =
            |column, found: &str, expected| RowError::Field { line, column, found: found.to_owned(), expected };
        let whole = |column, text: &str| text.parse().map_err(|_| refused(column, text, "a whole number"));
        let seconds = seconds.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
        let json = serde_json::from_str::<Value>(metadata).is_ok();
        let counted = match counts.and_then(|at| record.get(at)).unwrap_or_default() {
            "" => Ok(BTreeMap::new()),
            text => serde_json::from_str(text).map_err(|_| refused(COUNTS, text, "whole numbers by name, as JSON")),
        };
        let (shots, wrong): (u64, u64) = (whole("shots", shots)?, whole("errors", errors)?);
        let left_out = whole("discards", discards)?;
        if wrong.checked_add(left_out).is_none_or(|counted| counted > shots) {
            return Err(refused("errors", errors, "with the discards at most the shots"));
        }
        rows.push(Row {
            shots,
            errors: wrong,
            discards: left_out,
            seconds: seconds.ok_or_else(|| refused("seconds", record.get(places[3]).unwrap_or_default(), "a time"))?,
            decoder: decoder.to_owned(),
            strong_id: strong_id.to_owned(),
            metadata: json.then(|| metadata.to_owned()).ok_or_else(|| refused("json_metadata", metadata, "JSON"))?,
            counts: counted?,
        });
    }
    Ok(rows)
}

impl Row {
    /// Adds the counts of another row of the same task. A file may have any numbers: sums stay at the largest.
    pub fn add(&mut self, other: &Row) {
        let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
        add(&mut self.shots, other.shots);
        add(&mut self.errors, other.errors);
        add(&mut self.discards, other.discards);
        self.seconds += other.seconds;
        for (name, count) in &other.counts {
            add(self.counts.entry(name.clone()).or_default(), *count);
        }
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Row { shots, errors, discards, seconds, decoder, strong_id, metadata, counts } = self;
        let seconds = match *seconds {
            short if short < 1.0 => format!("{short:.3}"),
            short if short < 10.0 => format!("{short:.2}"),
            long => format!("{long:.1}"),
        };
        let fixed = [decoder, strong_id, metadata].map(|text| quoted(text));
        write!(f, "{shots:>10},{errors:>10},{discards:>10},{seconds:>8},{},{},{},", fixed[0], fixed[1], fixed[2])?;
        if counts.is_empty() {
            return Ok(());
        }
        let counts = Value::Object(counts.iter().map(|(name, count)| (name.clone(), (*count).into())).collect());
        f.write_str(&quoted(&json_text(&counts)))
    }
}

/// The lines of rows.
pub fn lines(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// A field of a table, in quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// `value` as `json.dumps(value, separators=(',', ':'), sort_keys=True)` writes it.
pub fn json_text(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float_text(float),
            None => number.to_string(),
        },
        Value::String(text) => string_text(text),
        Value::Array(all) => format!("[{}]", all.iter().map(json_text).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let field = |(name, value): (&String, &Value)| format!("{}:{}", string_text(name), json_text(value));
            format!("{{{}}}", sorted.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
    }
}

/// Python gives exponents a sign and two digits.
fn float_text(float: f64) -> String {
    let text = format!("{float:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Python escapes what is not ASCII.
fn string_text(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{HEADER, Row, RowError, json_text, parse};
    use serde_json::json;

    /// Printed by sinter 1.16 for these counts.
    const SINTER: &str = concat!(
        "      1000,        42,         3,   0.125,pymatching,9c31,",
        r#""{""d"":9,""p"":1e-05}","{""a,b"":7}""#
    );

    fn row() -> Row {
        Row {
            shots: 1_000,
            errors: 42,
            discards: 3,
            seconds: 0.125,
            decoder: "pymatching".to_owned(),
            strong_id: "9c31".to_owned(),
            metadata: json_text(&json!({"p": 1e-5, "d": 9})),
            counts: [("a,b".to_owned(), 7)].into(),
        }
    }

    #[test]
    fn a_row_is_the_text_of_sinter_and_is_read_again() {
        assert_eq!(row().to_string(), SINTER);
        let text = format!("{HEADER}\n{SINTER}\n{}\n", Row { counts: [].into(), seconds: 12.34, ..row() });
        let read = parse(text.as_bytes()).unwrap();
        assert_eq!(read[0], row());
        assert_eq!((read[1].seconds, read[1].counts.len()), (12.3, 0));
    }

    #[test]
    fn files_of_older_programs_and_in_another_order_are_read() {
        let text = "strong_id,decoder,json_metadata,shots,errors,discards,seconds\nab,x,null,5,1,0,0.5\n";
        let read = parse(text.as_bytes()).unwrap();
        assert_eq!((read[0].shots, read[0].errors, read[0].metadata.as_str()), (5, 1, "null"));
    }

    #[test]
    fn a_wrong_field_is_named_with_its_line() {
        let of = |line: &str| parse(format!("{HEADER}\n{line}\n").as_bytes()).unwrap_err();
        for (line, column) in [
            ("x,0,0,0,a,b,{},", "shots"),
            ("1,-1,0,0,a,b,{},", "errors"),
            ("1,0,0,nan,a,b,{},", "seconds"),
            ("1,0,0,0,a,b,{,", "json_metadata"),
            ("1,0,0,0,a,b,{},7", "custom_counts"),
            ("5,4,2,0,a,b,{},", "errors"),
            ("5,18446744073709551615,1,0,a,b,{},", "errors"),
            ("1,0", "discards"),
        ] {
            assert!(matches!(of(line), RowError::Field { line: 2, column: found, .. } if found == column), "{line}");
        }
        assert_eq!(parse(b"shots,errors\n1,2\n").unwrap_err(), RowError::NoColumn("discards"));
        assert!(parse(b"\xff\xfe,\n\xff").is_err());
    }

    #[test]
    fn numbers_and_letters_are_written_as_python_writes_them() {
        let value = json!({"b": [1, 0.001, 1e16, 1.5e-7, true, null], "a": "é😀\u{1}"});
        assert_eq!(json_text(&value), r#"{"a":"\u00e9\ud83d\ude00\u0001","b":[1,0.001,1e+16,1.5e-07,true,null]}"#);
    }

    #[test]
    fn rows_of_a_task_add_up() {
        let mut sum = row();
        sum.add(&row());
        assert_eq!((sum.shots, sum.errors, sum.discards, sum.counts["a,b"]), (2_000, 84, 6, 14));
        sum.add(&Row { shots: u64::MAX, ..row() });
        assert_eq!(sum.shots, u64::MAX);
    }
}
