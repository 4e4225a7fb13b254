//! Defines the columns of each table of a profile: its type of rows has the trait [`Row`], which converts rows to columns and back.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::ops::Range;
use std::sync::Arc;

use isotherm_model::batch::ObjectRange;
use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::isolation_runs::{BandwidthCounter, IsolatedData, IsolationRun};
use isotherm_model::profile::{EpochSpan, Heat, HeatBin, HeatObject, Resident};
use isotherm_model::sensitivity_runs::{FastData, SensitivityRun};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use parquet::data_type::ByteArray;

use crate::column::{Cells, Column, File};
use crate::layout::Table;

pub(crate) type Columns = Vec<(&'static str, Cells)>;

/// A row of one table.
pub(crate) trait Row: Sized {
    /// The table of these rows.
    const TABLE: Table;
    /// The columns of these rows.
    fn columns(rows: &[Self]) -> Columns;
}

/// A row of one table, as it was read.
pub(crate) trait Stored: Sized {
    /// The rows of this file, or what is wrong with it.
    fn read(file: &File) -> Result<Vec<Self>, String>;
}
    /// Position in the calling context, 0 for the innermost.

/// One caller of one site, to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) site: SiteId,
    /// Position in the calling context, 0 for the innermost.
    pub(crate) depth: usize,
    pub(crate) frame: &'a Frame,
}

/// One caller of one site, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrameRow {
    pub(crate) site: SiteId,
    pub(crate) depth: u32,
    pub(crate) frame: Frame,
}

/// One fact of the meta data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetaRow {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// One timed run, with what is the same for all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SensitivityRow {
    /// The start of the recording whose sites these are.
    pub(crate) started: String,
    /// The pair of tiers.
    pub(crate) tiers: String,
    pub(crate) run: SensitivityRun,
}

/// One run with data alone in a tier, with what is the same for all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IsolationRow {
    /// The start of the recording whose sites these are.
    pub(crate) started: String,
    /// The pair of tiers.
    pub(crate) tiers: String,
    pub(crate) counter: BandwidthCounter,
    pub(crate) run: IsolationRun,
}

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
fn written_text<'a, R>(rows: &'a [R], write: impl Fn(&'a R, &mut String)) -> Cells {
    let mut texts = Texts::default();
    for row in rows {
        texts.push(|to| write(row, to));
    }
    Cells::Text(Column::required(texts.into_cells()))
}

/// A column in which every row must have a value.
fn required<T>(name: &str, column: Column<T>) -> Result<Vec<T>, String> {
    if column.present.iter().flatten().any(|there| *there == 0) {
        return Err(format!("its column \"{name}\" has empty rows"));
    }
    Ok(column.values)
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

impl Value for String {
    type Lent<'a> = &'a str;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> Cells {
        written_text(rows, |row, to| to.push_str(value(row)))
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let values = required(name, file.text(name)?)?;
        let text = |value| utf8(name, value).map(str::to_owned);
        values.iter().map(text).collect()
    }
}

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

impl Value for SiteId {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], site: impl Fn(&'a R) -> Self) -> Cells {
        written_text(rows, |row, to| push_site(site(row), to))
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        read_words(file, name, str::parse)
    }
}

impl Value for FastData {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], fast: impl Fn(&'a R) -> Self) -> Cells {
        written_text(rows, |row, to| match fast(row) {
            Self::Nothing => to.push_str("nothing"),
            Self::All => to.push_str("all"),
            Self::Site(site) => push_site(site, to),
        })
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        read_words(file, name, |text| match text {
            "nothing" => Ok(Self::Nothing),
            "all" => Ok(Self::All),
            site => site.parse().map(Self::Site),
        })
    }
}

impl Value for IsolatedData {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], isolated: impl Fn(&'a R) -> Self) -> Cells {
        written_text(rows, |row, to| match isolated(row) {
            Self::Nothing => to.push_str("nothing"),
            Self::Rest => to.push_str("rest"),
            Self::Site(site) => push_site(site, to),
        })
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        read_words(file, name, |text| match text {
            "nothing" => Ok(Self::Nothing),
            "rest" => Ok(Self::Rest),
            site => site.parse().map(Self::Site),
        })
    }
}

impl Value for BandwidthCounter {
    type Lent<'a> = Self;

    fn column<'a, R>(rows: &'a [R], counter: impl Fn(&'a R) -> Self) -> Cells {
        String::column(rows, |row| counter(row).word())
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        read_words(file, name, |text| {
            Self::from_word(text).ok_or_else(|| format!("\"{text}\" counts no bandwidth"))
        })
    }
}

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

/// A number whose column older files lack; 0 there.
struct Later(u64);

impl Value for Later {
    type Lent<'a> = u64;

    fn column<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> u64) -> Cells {
        u64::column(rows, value)
    }

    fn read(file: &File, name: &str) -> Result<Vec<Self>, String> {
        let values = match file.has(name) {
            true => u64::read(file, name)?,
            false => vec![0; file.rows()],
        };
        Ok(values.into_iter().map(Self).collect())
    }
}

/// A column that older files lack.
fn read_later<T: Clone>(file: &File, name: &str) -> Result<Vec<Option<T>>, String>
where
    Option<T>: Value,
{
    match file.has(name) {
        true => Value::read(file, name),
        false => Ok(vec![None; file.rows()]),
    }
}

fn small(name: &str, value: u64) -> Result<u32, String> {
    u32::try_from(value)
        .map_err(|_| format!("its column \"{name}\" holds {value}, which is too large"))
}

fn utf8<'a>(name: &str, value: &'a ByteArray) -> Result<&'a str, String> {
    let text = value.as_utf8();
    text.map_err(|_| format!("its column \"{name}\" holds text that is not UTF-8"))
}

/// Optional text of a column with few different texts.
pub(crate) fn read_shared_text(file: &File, name: &str) -> Result<Vec<Option<Arc<str>>>, String> {
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

/// A table whose rows are written and read by the same columns: the name and kind of each, its value
/// in a row, and the row made of the values.
macro_rules! table {
    ($table:ident of $type:ty, |$row:ident| { $($name:ident: $kind:ty = $value:expr,)+ } => $made:expr) => {
        impl Row for $type {
            const TABLE: Table = Table::$table;

            fn columns(rows: &[Self]) -> Columns {
                vec![$((stringify!($name), <$kind>::column(rows, |$row: &Self| $value))),+]
            }
        }

        impl Stored for $type {
            fn read(file: &File) -> Result<Vec<Self>, String> {
                $(let mut $name = <$kind>::read(file, stringify!($name))?.into_iter();)+
                // All columns of a file have its number of rows.
                let row = |_| {
                    $(let $name = $name.next()?;)+
                    Some($made)
                };
                Ok((0..file.rows()).map_while(row).collect())
            }
        }
    };
}

table!(Meta of MetaRow, |row| {
    key: String = &row.key,
    value: String = &row.value,
} => Self { key, value });

impl Row for &Site {
    const TABLE: Table = Table::Sites;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("site", SiteId::column(rows, |row| row.id)),
            ("kind", String::column(rows, |row| row.kind.word())),
            ("allocations", u64::column(rows, |row| row.allocations)),
            ("requested_bytes", u64::column(rows, |row| row.requested.0)),
            (
                "peak_requested_bytes",
                u64::column(rows, |row| row.peak_requested.0),
            ),
            ("peak_rss_bytes", u64::column(rows, |row| row.peak_rss.0)),
            ("first_seen", u32::column(rows, |row| row.first_seen)),
            (
                "label",
                written_text(rows, |row, to| to.push_str(&row.label())),
            ),
        ]
    }
}

impl Stored for Site {
    /// The frames are in a table of their own; the label follows from them and is for queries.
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let kinds = String::read(file, "kind")?;
        let allocations = u64::read(file, "allocations")?;
        let requested = u64::read(file, "requested_bytes")?;
        let peak_requested = u64::read(file, "peak_requested_bytes")?;
        let peak_rss = u64::read(file, "peak_rss_bytes")?;
        let first_seen = u32::read(file, "first_seen")?;
        let ids = SiteId::read(file, "site")?.into_iter().enumerate();
        ids.map(|(row, id)| {
            let kind = SiteKind::from_word(&kinds[row])
                .ok_or_else(|| format!("\"{}\" is no kind of site", kinds[row]))?;
            Ok(Self {
                id,
                kind,
                frames: Arc::default(),
                allocations: allocations[row],
                requested: Bytes(requested[row]),
                peak_requested: Bytes(peak_requested[row]),
                peak_rss: Bytes(peak_rss[row]),
                first_seen: first_seen[row],
            })
        })
        .collect()
    }
}

impl Row for Caller<'_> {
    const TABLE: Table = Table::Frames;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("site", SiteId::column(rows, |row| row.site)),
            ("depth", u64::column(rows, |row| row.depth as u64)),
            ("module", String::column(rows, |row| &row.frame.module)),
            (
                "build_id",
                Option::<String>::column(rows, |row| row.frame.build_id.as_deref()),
            ),
            ("offset", u64::column(rows, |row| row.frame.offset)),
            (
                "function",
                Option::<String>::column(rows, |row| row.frame.function.as_deref()),
            ),
            (
                "file",
                Option::<String>::column(rows, |row| row.frame.file.as_deref()),
            ),
            ("line", Option::<u32>::column(rows, |row| row.frame.line)),
            (
                "column",
                Option::<u32>::column(rows, |row| row.frame.column),
            ),
            (
                "function_line",
                Option::<u32>::column(rows, |row| row.frame.function_line),
            ),
            (
                "variable",
                Option::<String>::column(rows, |row| row.frame.variable.as_deref()),
            ),
        ]
    }
}

impl Stored for FrameRow {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let depth = u32::read(file, "depth")?;
        let offset = u64::read(file, "offset")?;
        let line = Option::<u32>::read(file, "line")?;
        let modules = read_shared_text(file, "module")?;
        let modules: Option<Vec<Arc<str>>> = modules.into_iter().collect();
        let modules = modules.ok_or("its column \"module\" has empty rows")?;
        let mut build_id = read_shared_text(file, "build_id")?;
        let mut function = Option::<String>::read(file, "function")?;
        let mut source = Option::<String>::read(file, "file")?;
        // Profiles of the first days lack the columns from here on.
        let column = read_later::<u32>(file, "column")?;
        let function_line = read_later::<u32>(file, "function_line")?;
        let mut variable = read_later::<String>(file, "variable")?;
        let sites = SiteId::read(file, "site")?.into_iter().enumerate();
        let rows = sites.map(|(row, site)| Self {
            site,
            depth: depth[row],
            frame: Frame {
                module: Arc::clone(&modules[row]),
                build_id: build_id[row].take(),
                offset: offset[row],
                function: function[row].take(),
                file: source[row].take(),
                line: line[row],
                column: column[row],
                function_line: function_line[row],
                variable: variable[row].take(),
            },
        });
        Ok(rows.collect())
    }
}

table!(Extents of Extent, |row| {
    pid: u32 = row.process.pid,
    image: u32 = row.process.image,
    site: SiteId = row.site,
    address: u64 = row.address,
    size_bytes: u64 = row.bytes.0,
    resident_bytes: u64 = row.resident.0,
    tier: Option<u32> = row.tier.map(|tier| tier.0),
} => Self {
    process: Process { pid, image },
    site,
    address,
    bytes: Bytes(size_bytes),
    resident: Bytes(resident_bytes),
    tier: tier.map(TierIndex),
});

fn bin_of(heat: &Heat) -> Option<HeatBin> {
    heat.object?.bin
}

/// The object and the bin of a row. A bin that the object cannot have is as none: the chunk still says where the accesses fell.
fn heat_object((address, bytes): (u64, u64), bin: (u64, u64)) -> Option<HeatObject> {
    let bytes = Bytes(bytes);
    let range = ObjectRange { address, bytes };
    let bin = HeatBin::new(Bytes(bin.0), Bytes(bin.1), &range);
    (bytes > Bytes::ZERO).then_some(HeatObject { range, bin })
}

table!(Heat of Heat, |row| {
    epoch: u32 = row.epoch.0,
    pid: u32 = row.process.pid,
    image: u32 = row.process.image,
    site: SiteId = row.site,
    address: u64 = row.address,
    object: Later = row.object.map_or(0, |object| object.range.address),
    object_bytes: Later = row.object.map_or(0, |object| object.range.bytes.0),
    bin: Later = bin_of(row).map_or(0, |bin| bin.start.0),
    bin_bytes: Later = bin_of(row).map_or(0, |bin| bin.bytes.0),
    accesses: u64 = row.accesses.0,
    streamed: Later = row.streamed.0,
    served_by_caches: Later = row.served.0,
} => Self {
    epoch: Epoch(epoch),
    process: Process { pid, image },
    site,
    address,
    object: heat_object((object.0, object_bytes.0), (bin.0, bin_bytes.0)),
    accesses: Accesses(accesses),
    streamed: Accesses(streamed.0),
    served: Accesses(served_by_caches.0),
});

table!(Resident of Resident, |row| {
    epoch: u32 = row.epoch.0,
    site: SiteId = row.site,
    resident_bytes: u64 = row.bytes.0,
} => Self {
    epoch: Epoch(epoch),
    site,
    bytes: Bytes(resident_bytes),
});

table!(Epochs of EpochSpan, |row| {
    epoch: u32 = row.epoch.0,
    span_ns: u64 = row.span.0,
} => Self {
    epoch: Epoch(epoch),
    span: Nanos(span_ns),
});

table!(Counts of Count, |row| {
    pid: Option<u32> = row.process.map(|process| process.pid),
    image: Option<u32> = row.process.map(|process| process.image),
    name: String = &row.name,
    value: u64 = row.value,
} => Self {
    process: pid.map(|pid| Process {
        pid,
        image: image.unwrap_or_default(),
    }),
    name,
    value,
});

table!(Sources of SourceReport, |row| {
    source: String = &row.name,
    taken_samples: u64 = row.taken,
    usable_samples: u64 = row.usable,
    lost_samples: u64 = row.lost,
    cost_ns: u64 = row.cost.0,
    cost_note: String = &row.cost_note,
    trouble: String = &row.warning,
} => Self {
    name: source,
    taken: taken_samples,
    usable: usable_samples,
    lost: lost_samples,
    cost: Nanos(cost_ns),
    cost_note,
    warning: trouble,
});

table!(Sensitivity of SensitivityRow, |row| {
    started: String = &row.started,
    tiers: String = &row.tiers,
    fast: FastData = row.run.fast,
    round: u32 = row.run.round,
    time_ns: u64 = row.run.time.0,
} => Self {
    started,
    tiers,
    run: SensitivityRun {
        fast,
        round,
        time: Nanos(time_ns),
    },
});

table!(Isolation of IsolationRow, |row| {
    started: String = &row.started,
    tiers: String = &row.tiers,
    counter: BandwidthCounter = row.counter,
    isolated: IsolatedData = row.run.isolated,
    bytes: u64 = row.run.bytes.0,
    time_ns: u64 = row.run.time.0,
} => Self {
    started,
    tiers,
    counter,
    run: IsolationRun {
        isolated,
        bytes: Bytes(bytes),
        time: Nanos(time_ns),
    },
});

#[cfg(test)]
mod tests {
    use super::{
        Bytes, Cells, Column, File, Heat, HeatBin, ObjectRange, Row, Stored, Table, heat_object,
    };
    use crate::column::encode;

    /// The rows of a file with these columns.
    fn read(columns: super::Columns) -> Vec<Heat> {
        let file = encode(Table::Heat, columns).expect("is written");
        let file = File::open(file.into()).expect("a table");
        Heat::read(&file).expect("rows")
    }

    #[test]
    fn heat_of_older_profiles_and_bins_that_no_object_has_are_read_without_bins() {
        let range = ObjectRange {
            address: 0x5000,
            bytes: Bytes(1 << 20),
        };
        let row = Heat {
            epoch: super::Epoch(1),
            process: super::Process { pid: 7, image: 0 },
            site: super::SiteId(9),
            address: 0,
            object: heat_object((range.address, range.bytes.0), (8192, 4096)),
            accesses: super::Accesses(5),
            streamed: super::Accesses(2),
            served: super::Accesses(1),
        };
        let bin = |rows: &[Heat]| rows[0].object.and_then(|object| object.bin);
        let columns = || Heat::columns(&[row]);
        assert_eq!(read(columns()), [row]);
        assert_eq!(bin(&[row]), HeatBin::new(Bytes(8192), Bytes(4096), &range));
        let mut older = columns();
        older.retain(|(name, _)| !name.starts_with("bin"));
        let mut wrong = columns();
        for (name, cells) in &mut wrong {
            if *name == "bin_bytes" {
                *cells = Cells::Number(Column::required(vec![u64::MAX]));
            }
        }
        let whole = Heat {
            object: Some(range.into()),
            ..row
        };
        assert_eq!(read(older), [whole]);
        assert_eq!(read(wrong), [whole]);
    }
}
