//! Defines [`Value`], a kind of column, and implements it for each type of value: how values are written to a column of a file and read
//! from it. [`Later`] is a value whose column older files lack.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::ops::Range;
use std::sync::Arc;

use isotherm_model::isolation_runs::{BandwidthCounter, IsolatedData};
use isotherm_model::sensitivity_runs::FastData;
use isotherm_model::site::{SiteId, SiteKind};
use isotherm_model::units::Accesses;
use parquet::data_type::ByteArray;

use crate::column::{Cells, Column, File};

/// A kind of column: how its values are written and read.
pub(crate) trait Value: Sized {
    /// A value as a row lends it.
    type Lent<'a>;
    /// The column of these rows.
    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self::Lent<'a>) -> Cells;
    /// The values of the column of this name, or what is wrong with it.
    fn read(file: &File, name: &str) -> Result<Vec<Self>, String>;
}

/// The texts of a column, in one buffer: a text of its own for each of the fifty thousand frames of a large
/// program costs as much as all the rest of writing them. Equal texts in a row are kept once.
#[derive(Default)]
struct Texts {
    buffer: String,
    cells: Vec<Range<usize>>,
}

impl Texts {
    fn push(&mut self, write: impl FnOnce(&mut String)) {
        let start = self.buffer.len();
        write(&mut self.buffer);
        let last = self.cells.last().cloned();
        match last.filter(|last| self.buffer[last.clone()] == self.buffer[start..]) {
            Some(last) => {
                self.buffer.truncate(start);
                self.cells.push(last);
            }
            None => self.cells.push(start..self.buffer.len()),
        }
    }

    fn into_cells(self) -> Vec<ByteArray> {
        let buffer = bytes::Bytes::from(self.buffer);
        let cells = self.cells.into_iter();
        cells.map(|cell| buffer.slice(cell).into()).collect()
    }
}

/// A column of texts that are made as they are written.
pub(crate) fn written_text<'a, R>(rows: &'a [R], write: impl Fn(&'a R, &mut String)) -> Cells {
    let mut texts = Texts::default();
    for row in rows {
        texts.push(|to| write(row, to));
    }
    Cells::Text(Column::required(texts.into_cells()))
}

/// A column in which every row must have a value.
fn required<T>(name: &str, column: Column<T>) -> Result<Vec<T>, String> {
    if column.present.iter().flatten().any(|there| *there == 0) {
        return Err(empty_rows(name));
    }
    Ok(column.values)
}

fn empty_rows(name: &str) -> String {
    format!("its column \"{name}\" has empty rows")
}

impl Value for u64 {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
        Cells::Number(Column::required(rows.iter().map(value).collect()))
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        required(name, file.numbers(name)?)
    }
}

/// Process ids, epochs, lines, tiers; stored as all numbers are.
impl Value for u32 {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
        u64::column(rows, |row| value(row).into())
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let values = u64::read(file, name)?.into_iter();
        values.map(|value| small(name, value)).collect()
    }
}

impl Value for Option<u32> {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
        let values = rows.iter().map(|row| value(row).map(u64::from));
        Cells::Number(Column::optional(values))
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let rows = file.numbers(name)?.rows();
        rows.map(|row| row.map(|value| small(name, value)).transpose())
            .collect()
    }
}

/// Most accesses of one row, where larger counts end: far above what all processors of a machine count in an epoch, and so small that a
/// forged row alone is no value beyond those of plans.
pub(crate) const ACCESSES_AT_MOST: Accesses = Accesses(1 << 56);

impl Value for Accesses {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
        u64::column(rows, |row| value(row).min(ACCESSES_AT_MOST).0)
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let values = u64::read(file, name)?.into_iter().map(Self);
        let possible = |value: Self| match value <= ACCESSES_AT_MOST {
            true => Ok(value),
            false => Err(too_large(name, value.0)),
        };
        values.map(possible).collect()
    }
}

/// A column of text that every row has.
macro_rules! required_text {
    ($($type:ty),*) => {$(
        impl Value for $type {
            type Lent<'a> = &'a str;

            fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> Cells {
                written_text(rows, |row, to| to.push_str(value(row)))
            }

            fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
                let texts = Option::<Self>::read(file, name)?.into_iter();
                texts.collect::<Option<_>>().ok_or_else(|| empty_rows(name))
            }
        }
    )*};
}

required_text!(String, Arc<str>);

impl Value for Option<String> {
    type Lent<'a> = Option<&'a str>;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> Cells {
        let mut texts = Texts::default();
        let mut present = Vec::with_capacity(rows.len());
        for value in rows.iter().map(value) {
            present.push(i16::from(value.is_some()));
            if let Some(value) = value {
                texts.push(|to| to.push_str(value));
            }
        }
        Cells::Text(Column {
            values: texts.into_cells(),
            present: Some(present),
        })
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let rows = file.text(name)?.rows();
        let text = |value| utf8(name, &value).map(str::to_owned);
        rows.map(|row| row.map(text).transpose()).collect()
    }
}

/// Text of a column with few different texts.
impl Value for Option<Arc<str>> {
    type Lent<'a> = Option<&'a str>;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> Cells {
        Option::<String>::column(rows, value)
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let mut known = HashMap::<Vec<u8>, Arc<str>>::new();
        let mut shared = |value: ByteArray| -> Result<Arc<str>, String> {
            if let Some(text) = known.get(value.data()) {
                return Ok(Arc::clone(text));
            }
            let text: Arc<str> = utf8(name, &value)?.into();
            known.insert(value.data().to_vec(), Arc::clone(&text));
            Ok(text)
        };
        let rows = file.text(name)?.rows();
        rows.map(|row| row.map(&mut shared).transpose()).collect()
    }
}

impl Value for SiteId {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], site: impl Fn(&'a R) -> Self) -> Cells {
        written_text(rows, |row, to| push_site(site(row), to))
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        read_words(file, name, str::parse)
    }
}

/// A column of words, each for a variant.
macro_rules! variant_column {
    ($type:ty, $wrong:literal) => {
        impl Value for $type {
            type Lent<'a> = Self;

            fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
                String::column(rows, |row| value(row).word())
            }

            fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
                read_words(file, name, |text| {
                    Self::from_word(text).ok_or_else(|| format!("\"{text}\" {}", $wrong))
                })
            }
        }
    };
}

variant_column!(SiteKind, "is no kind of site");
variant_column!(BandwidthCounter, "counts no bandwidth");

/// A column of sites, or of two words in place of a site.
macro_rules! site_or_word_column {
    ($type:ty, $other:ident = $word:literal) => {
        impl Value for $type {
            type Lent<'a> = Self;

            fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Self) -> Cells {
                written_text(rows, |row, to| match value(row) {
                    Self::Nothing => to.push_str("nothing"),
                    Self::$other => to.push_str($word),
                    Self::Site(site) => push_site(site, to),
                })
            }

            fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
                read_words(file, name, |text| match text {
                    "nothing" => Ok(Self::Nothing),
                    $word => Ok(Self::$other),
                    site => site.parse().map(Self::Site),
                })
            }
        }
    };
}

site_or_word_column!(FastData, All = "all");
site_or_word_column!(IsolatedData, Rest = "rest");

fn push_site(site: SiteId, to: &mut String) {
    // Writing into a String cannot fail.
    let _ = write!(to, "{site}");
}

/// A column of words with a meaning of their own.
fn read_words<T, E: Display>(
    file: &File,
    name: &str,
    value: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, String> {
    let cell = |cell: &ByteArray| {
        value(utf8(name, cell)?).map_err(|e| format!("its column \"{name}\" is wrong: {e}"))
    };
    required(name, file.text(name)?)?.iter().map(cell).collect()
}

/// A value whose column older files lack; it is read as the default there.
pub(crate) struct Later<T>(pub(crate) T);

impl<T: Value + Clone + Default> Value for Later<T> {
    type Lent<'a> = T::Lent<'a>;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> T::Lent<'a>) -> Cells {
        T::column(rows, value)
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let values = match file.has(name) {
            true => T::read(file, name)?,
            false => vec![T::default(); file.rows()],
        };
        Ok(values.into_iter().map(Self).collect())
    }
}

fn small(name: &str, value: u64) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| too_large(name, value))
}

fn too_large(name: &str, value: u64) -> String {
    format!("its column \"{name}\" holds {value}, which is too large")
}

fn utf8<'a>(name: &str, value: &'a ByteArray) -> Result<&'a str, String> {
    let text = value.as_utf8();
    text.map_err(|_| format!("its column \"{name}\" holds text that is not UTF-8"))
}
