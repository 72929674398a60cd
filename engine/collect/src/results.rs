//! The file of rows: read, locked, appended, merged.
//!
//! Owns the file while a collection runs; a lock keeps others from writing to it. Bounds: [`BYTES_MAX`]. Each append is
//! one write of whole lines. A process that is killed leaves whole lines, or at most one that is cut off: it was not
//! counted, and is removed by whoever opens the file next.

use crate::rows::{self, HEADER, Row, RowError};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Largest file: some ten million rows.
pub const BYTES_MAX: u64 = 1 << 30;

/// Why a file of results cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ResultsError {
    /// It cannot be opened, read or written.
    #[error("found {0}, expected a file of results; check the path and its permissions")]
    Io(#[from] io::Error),
    #[error(
        "found that another process collects into it, expected a file of its own; name another file, and merge them"
    )]
    InUse,
    #[error("found no ordinary file, expected one; name another")]
    NoFile,
    #[error("found {0} bytes, expected at most {BYTES_MAX}; merge its rows into a new file")]
    TooLarge(u64),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(
        "found columns {0}, expected {expected}; sum its rows into a new file: pinwheel collect merge FILE -o NEW",
        expected = HEADER.replace(' ', "")
    )]
    Columns(String),
    #[error("found the same rows as in {0}, expected each file once; leave one of them out")]
    Twice(String),
}

/// An open file of results.
#[derive(Debug)]
pub struct Results {
    file: File,
    /// The file's path, if [`Results::open`] made the file.
    made: Option<PathBuf>,
    bytes: u64,
    totals: BTreeMap<String, Row>,
    /// Bytes of a line that was cut off, and is removed.
    pub cut_bytes: u64,
}

impl Results {
    /// Opens or creates the file at `path`.
    ///
    /// # Errors
    /// [`ResultsError`]; the file is then as it was.
    pub fn open(path: &Path) -> Result<Results, ResultsError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(ResultsError::NoFile);
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let (mut file, made) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, Some(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (options.create(true).open(path)?, None),
            Err(error) => return Err(error.into()),
        };
        match file.try_lock() {
            // Another collection was refused meanwhile, and has removed the file that it had made.
            Ok(()) if !path.exists() => return Err(ResultsError::InUse),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ResultsError::InUse),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let text = read(&mut file)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let totals = match whole {
            0 if HEADER.as_bytes().starts_with(&text) => BTreeMap::new(),
            0 => return Err(RowError::NoColumn("shots").into()),
            _ => sum(rows_of_ours(&text[..whole])?),
        };
        let cut_bytes = (text.len() - whole) as u64;
        let mut results = Results { file, made, bytes: whole as u64, totals, cut_bytes };
        if cut_bytes > 0 {
            results.file.set_len(results.bytes)?;
        }
        if whole == 0 {
            results.write(&format!("{HEADER}\n"))?;
        }
        Ok(results)
    }

    /// Removes the file if [`Results::open`] made it and it has no row: for a collection that was
    /// refused.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn withdraw(self) -> io::Result<()> {
        match self.made.filter(|_| self.totals.is_empty()) {
            Some(path) => fs::remove_file(path),
            None => Ok(()),
        }
    }

    /// What the file has of a task.
    pub fn of(&self, strong_id: &str) -> Option<&Row> {
        self.totals.get(strong_id)
    }

    /// Appends rows. They count only once this returns.
    ///
    /// # Errors
    /// If the system refuses; the file is then as it was.
    pub fn append(&mut self, rows: &[Row]) -> io::Result<()> {
        self.write(&rows::lines(rows))?;
        for row in rows {
            add(&mut self.totals, row.clone());
        }
        Ok(())
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        let written = self.file.write_all(lines.as_bytes());
        match written {
            Ok(()) => self.bytes += lines.len() as u64,
            // A full disk may have taken a part.
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }
}

fn read(file: &mut File) -> Result<Vec<u8>, ResultsError> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > BYTES_MAX { Err(ResultsError::TooLarge(text.len() as u64)) } else { Ok(text) }
}

/// The rows of a file whose columns are in our order.
fn rows_of_ours(text: &[u8]) -> Result<Vec<Row>, ResultsError> {
    let rows = rows::parse(text)?;
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let names = |header: &str| header.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    if names(&first) == names(HEADER) { Ok(rows) } else { Err(ResultsError::Columns(first.trim().to_owned())) }
}

fn add(totals: &mut BTreeMap<String, Row>, row: Row) {
    match totals.get_mut(&row.strong_id) {
        Some(sum) => sum.add(&row),
        None => drop(totals.insert(row.strong_id.clone(), row)),
    }
}

fn sum(rows: Vec<Row>) -> BTreeMap<String, Row> {
    let mut totals = BTreeMap::new();
    rows.into_iter().for_each(|row| add(&mut totals, row));
    totals
}

/// The sums of all files, a row for each task, in the order in which the tasks first appear. `left_out` is told of
/// each file whose last line does not end, and of the bytes of that line: it is not counted.
///
/// # Errors
/// The first file that cannot be used, with its path.
pub fn merged(
    paths: &[impl AsRef<Path>],
    mut left_out: impl FnMut(&str, usize),
) -> Result<Vec<Row>, (String, ResultsError)> {
    let mut texts: Vec<(String, Vec<u8>)> = Vec::new();
    let (mut order, mut totals) = (Vec::new(), BTreeMap::new());
    for path in paths {
        let name = path.as_ref().display().to_string();
        let refused = |error: ResultsError| (name.clone(), error);
        let mut file = File::open(path).map_err(|error| refused(error.into()))?;
        let mut text = read(&mut file).map_err(refused)?;
        // A collection may be writing its last line.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < text.len() {
            left_out(&name, text.len() - whole);
        }
        text.truncate(whole);
        let rows = rows::parse(&text).map_err(|error| refused(error.into()))?;
        // Files without rows are alike, and add nothing.
        if let Some((known, _)) = texts.iter().find(|(_, known)| !rows.is_empty() && *known == text) {
            return Err(refused(ResultsError::Twice(known.clone())));
        }
        for row in rows {
            if !totals.contains_key(&row.strong_id) {
                order.push(row.strong_id.clone());
            }
            add(&mut totals, row);
        }
        texts.push((name, text));
    }
    Ok(order.iter().filter_map(|id| totals.remove(id)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]
    use super::{Results, ResultsError, merged};
    use crate::rows::{HEADER, Row};
    use std::fs;

    fn row(id: &str, shots: u64) -> Row {
        let metadata = r#"{"d":3}"#.to_owned();
        Row { shots, errors: 1, strong_id: id.to_owned(), decoder: "matching".to_owned(), metadata, ..Row::default() }
    }

    #[test]
    fn rows_are_found_again_and_a_line_that_was_cut_off_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.csv");
        let mut results = Results::open(&path).unwrap();
        results.append(&[row("a", 10), row("b", 5)]).unwrap();
        results.append(&[row("a", 7)]).unwrap();
        assert_eq!(results.of("a").unwrap().shots, 17);
        assert!(matches!(Results::open(&path), Err(ResultsError::InUse)));
        drop(results);
        let whole = fs::read_to_string(&path).unwrap();
        assert_eq!(whole.lines().count(), 4);
        for cut in 1..row("a", 7).to_string().len() {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let results = Results::open(&path).unwrap();
            assert_eq!((results.of("a").unwrap().shots, results.of("b").unwrap().shots), (10, 5), "{cut}");
            assert!(results.cut_bytes > 0);
            assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
        }
    }

    #[test]
    fn a_new_file_begins_with_the_header_and_what_is_no_file_of_results_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.csv");
        drop(Results::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEADER}\n"));
        fs::write(&path, "my notes\nabout lunch").unwrap();
        assert!(matches!(Results::open(&path), Err(ResultsError::Row(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "my notes\nabout lunch");
        fs::write(&path, "one line").unwrap();
        assert!(matches!(Results::open(&path), Err(ResultsError::Row(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one line");
        fs::write(&path, &HEADER[..20]).unwrap();
        drop(Results::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{HEADER}\n"));
        assert!(matches!(Results::open(dir.path()), Err(ResultsError::NoFile)));
        let said = Results::open(&dir.path().join("none/r.csv")).unwrap_err().to_string();
        assert!(said.contains("found No such file") && said.contains("; check the path"), "{said}");
    }

    #[test]
    fn files_of_shards_are_summed_by_task_and_the_same_file_twice_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a.csv", "b.csv", "c.csv"].map(|name| dir.path().join(name));
        let write = |at: usize, rows: &[Row]| Results::open(&paths[at]).unwrap().append(rows).unwrap();
        write(0, &[row("x", 1), row("y", 2)]);
        write(1, &[row("z", 4), row("x", 8)]);
        let sums = merged(&paths[..2], |_, _| ()).unwrap();
        let sums: Vec<(&str, u64)> = sums.iter().map(|row| (row.strong_id.as_str(), row.shots)).collect();
        assert_eq!(sums, [("x", 9), ("y", 2), ("z", 4)]);
        fs::copy(&paths[0], &paths[2]).unwrap();
        assert!(matches!(merged(&paths, |_, _| ()), Err((_, ResultsError::Twice(_)))));
    }

    /// Of a file's shots one shard has all, and the files of the others have no row.
    #[test]
    fn several_files_without_rows_are_merged_with_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a.csv", "b.csv", "c.csv"].map(|name| dir.path().join(name));
        Results::open(&paths[0]).unwrap().append(&[row("x", 1)]).unwrap();
        paths[1..].iter().for_each(|path| drop(Results::open(path).unwrap()));
        let sums = merged(&paths, |_, _| ()).unwrap_or_else(|(name, error)| panic!("{name}: {error}"));
        assert_eq!(sums, [row("x", 1)]);
        // A last line without an end may have lost a part of its counts.
        let text = fs::read_to_string(&paths[0]).unwrap() + "   5,    0";
        fs::write(&paths[0], text).unwrap();
        let mut told = Vec::new();
        assert_eq!(merged(&paths, |name, bytes| told.push((name.to_owned(), bytes))).unwrap(), [row("x", 1)]);
        assert_eq!(told, [(paths[0].display().to_string(), 10)]);
    }

    /// Rows are appended in our order of columns.
    #[test]
    fn a_file_with_other_columns_is_merged_but_takes_no_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.csv");
        for (header, line) in [
            // Of an older sinter, and as another program may write it.
            ("shots,errors,discards,seconds,decoder,strong_id,json_metadata", "10,1,0,0.0,matching,a,7"),
            ("strong_id,decoder,shots,errors,discards,seconds,json_metadata,custom_counts", "a,matching,10,1,0,0.0,7,"),
        ] {
            let text = format!("{header}\n{line}\n");
            fs::write(&path, &text).unwrap();
            assert_eq!(merged(&[&path], |_, _| ()).unwrap(), [Row { metadata: "7".to_owned(), ..row("a", 10) }]);
            let said = Results::open(&path).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains("found columns") && said.contains("merge"), "{said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
