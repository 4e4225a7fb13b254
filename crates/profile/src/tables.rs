//! What the rows of each table are, and how they become columns and rows again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::profile::{EpochSpan, Heat, Resident};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use parquet::data_type::ByteArray;

use crate::column::{Cells, Column, File};
use crate::layout::Table;

type Columns = Vec<(&'static str, Cells)>;

/// A row of one table, to be written.
pub(crate) trait Row: Sized {
    /// Which table.
    const TABLE: Table;
    /// The columns of these rows.
    fn columns(rows: &[Self]) -> Columns;
}

/// A row of one table, as it was read.
pub(crate) trait Stored: Sized {
    /// The rows of this file, or what is wrong with it.
    fn read(file: &File) -> Result<Vec<Self>, String>;
}

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

fn numbers<R>(rows: &[R], value: impl Fn(&R) -> u64) -> Cells {
    Cells::Number(Column::required(rows.iter().map(value).collect()))
}

fn optional_numbers<R>(rows: &[R], value: impl Fn(&R) -> Option<u64>) -> Cells {
    Cells::Number(Column::optional(rows.iter().map(value)))
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

fn text<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> &'a str) -> Cells {
    written_text(rows, |row, to| to.push_str(value(row)))
}

/// A column of texts that are made as they are written.
fn written_text<'a, R>(rows: &'a [R], write: impl Fn(&'a R, &mut String)) -> Cells {
    let mut texts = Texts::default();
    for row in rows {
        texts.push(|to| write(row, to));
    }
    Cells::Text(Column::required(texts.into_cells()))
}

fn optional_text<'a, R>(rows: &'a [R], value: impl Fn(&'a R) -> Option<&'a str>) -> Cells {
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

/// The site of each row as text.
fn sites<R>(rows: &[R], site: impl Fn(&R) -> SiteId) -> Cells {
    written_text(rows, |row, to| {
        // Writing into a String cannot fail.
        let _ = write!(to, "{}", site(row));
    })
}

/// A column in which every row must have a value.
fn required<T>(name: &str, column: Column<T>) -> Result<Vec<T>, String> {
    if column.present.iter().flatten().any(|there| *there == 0) {
        return Err(format!("its column \"{name}\" has empty rows"));
    }
    Ok(column.values)
}

fn read_numbers(file: &File, name: &str) -> Result<Vec<u64>, String> {
    required(name, file.numbers(name)?)
}

/// Numbers of 32 bits: process ids, epochs, lines, tiers.
fn read_small(file: &File, name: &str) -> Result<Vec<u32>, String> {
    let values = read_numbers(file, name)?.into_iter();
    values.map(|value| small(name, value)).collect()
}

fn small(name: &str, value: u64) -> Result<u32, String> {
    u32::try_from(value)
        .map_err(|_| format!("its column \"{name}\" holds {value}, which is too large"))
}

fn read_optional_small(file: &File, name: &str) -> Result<Vec<Option<u32>>, String> {
    let rows = file.numbers(name)?.rows();
    rows.map(|row| row.map(|value| small(name, value)).transpose())
        .collect()
}

/// As [`read_optional_small`], of a column that older files lack.
fn read_later_small(file: &File, name: &str) -> Result<Vec<Option<u32>>, String> {
    match file.has(name) {
        true => read_optional_small(file, name),
        false => Ok(vec![None; file.rows()]),
    }
}

fn utf8(name: &str, value: &ByteArray) -> Result<String, String> {
    value
        .as_utf8()
        .map(str::to_owned)
        .map_err(|_| format!("its column \"{name}\" holds text that is not UTF-8"))
}

fn read_text(file: &File, name: &str) -> Result<Vec<String>, String> {
    let values = required(name, file.text(name)?)?;
    values.iter().map(|value| utf8(name, value)).collect()
}

fn read_optional_text(file: &File, name: &str) -> Result<Vec<Option<String>>, String> {
    let rows = file.text(name)?.rows();
    rows.map(|row| row.map(|value| utf8(name, &value)).transpose())
        .collect()
}

/// As [`read_optional_text`], of a column with few different texts.
fn read_shared_text(file: &File, name: &str) -> Result<Vec<Option<Arc<str>>>, String> {
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

fn read_sites(file: &File) -> Result<Vec<SiteId>, String> {
    let values = required("site", file.text("site")?)?;
    values
        .iter()
        .map(|value| {
            let text = value
                .as_utf8()
                .map_err(|_| "its column \"site\" holds text that is not UTF-8".to_owned())?;
            text.parse()
                .map_err(|e| format!("its column \"site\" is wrong: {e}"))
        })
        .collect()
}

impl Row for MetaRow {
    const TABLE: Table = Table::Meta;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("key", text(rows, |row| &row.key)),
            ("value", text(rows, |row| &row.value)),
        ]
    }
}

impl Stored for MetaRow {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let keys = read_text(file, "key")?;
        let values = read_text(file, "value")?;
        let rows = keys.into_iter().zip(values);
        Ok(rows.map(|(key, value)| Self { key, value }).collect())
    }
}

impl Row for &Site {
    const TABLE: Table = Table::Sites;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("site", sites(rows, |row| row.id)),
            ("kind", text(rows, |row| row.kind.word())),
            ("allocations", numbers(rows, |row| row.allocations)),
            ("requested_bytes", numbers(rows, |row| row.requested.0)),
            (
                "peak_requested_bytes",
                numbers(rows, |row| row.peak_requested.0),
            ),
            ("peak_rss_bytes", numbers(rows, |row| row.peak_rss.0)),
            ("first_seen", numbers(rows, |row| row.first_seen.into())),
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
        let kinds = read_text(file, "kind")?;
        let allocations = read_numbers(file, "allocations")?;
        let requested = read_numbers(file, "requested_bytes")?;
        let peak_requested = read_numbers(file, "peak_requested_bytes")?;
        let peak_rss = read_numbers(file, "peak_rss_bytes")?;
        let first_seen = read_small(file, "first_seen")?;
        let ids = read_sites(file)?.into_iter().enumerate();
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
            ("site", sites(rows, |row| row.site)),
            ("depth", numbers(rows, |row| row.depth as u64)),
            ("module", text(rows, |row| &row.frame.module)),
            (
                "build_id",
                optional_text(rows, |row| row.frame.build_id.as_deref()),
            ),
            ("offset", numbers(rows, |row| row.frame.offset)),
            (
                "function",
                optional_text(rows, |row| row.frame.function.as_deref()),
            ),
            ("file", optional_text(rows, |row| row.frame.file.as_deref())),
            (
                "line",
                optional_numbers(rows, |row| row.frame.line.map(u64::from)),
            ),
            (
                "column",
                optional_numbers(rows, |row| row.frame.column.map(u64::from)),
            ),
            (
                "function_line",
                optional_numbers(rows, |row| row.frame.function_line.map(u64::from)),
            ),
            (
                "variable",
                optional_text(rows, |row| row.frame.variable.as_deref()),
            ),
        ]
    }
}

impl Stored for FrameRow {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let depth = read_small(file, "depth")?;
        let offset = read_numbers(file, "offset")?;
        let line = read_optional_small(file, "line")?;
        let modules = read_shared_text(file, "module")?;
        let modules: Option<Vec<Arc<str>>> = modules.into_iter().collect();
        let modules = modules.ok_or("its column \"module\" has empty rows")?;
        let mut build_id = read_shared_text(file, "build_id")?;
        let mut function = read_optional_text(file, "function")?;
        let mut source = read_optional_text(file, "file")?;
        // Profiles of the first days lack the columns from here on.
        let column = read_later_small(file, "column")?;
        let function_line = read_later_small(file, "function_line")?;
        let mut variable = match file.has("variable") {
            true => read_optional_text(file, "variable")?,
            false => vec![None; offset.len()],
        };
        let sites = read_sites(file)?.into_iter().enumerate();
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

impl Row for Extent {
    const TABLE: Table = Table::Extents;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("pid", numbers(rows, |row| row.process.pid.into())),
            ("image", numbers(rows, |row| row.process.image.into())),
            ("site", sites(rows, |row| row.site)),
            ("address", numbers(rows, |row| row.address)),
            ("size_bytes", numbers(rows, |row| row.bytes.0)),
            ("resident_bytes", numbers(rows, |row| row.resident.0)),
            (
                "tier",
                optional_numbers(rows, |row| row.tier.map(|tier| tier.0.into())),
            ),
        ]
    }
}

impl Stored for Extent {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let process = read_processes(file)?;
        let address = read_numbers(file, "address")?;
        let size = read_numbers(file, "size_bytes")?;
        let resident = read_numbers(file, "resident_bytes")?;
        let tier = read_optional_small(file, "tier")?;
        let sites = read_sites(file)?.into_iter().enumerate();
        let rows = sites.map(|(row, site)| Self {
            process: process[row],
            site,
            address: address[row],
            bytes: Bytes(size[row]),
            resident: Bytes(resident[row]),
            tier: tier[row].map(TierIndex),
        });
        Ok(rows.collect())
    }
}

fn read_processes(file: &File) -> Result<Vec<Process>, String> {
    let pids = read_small(file, "pid")?.into_iter();
    let images = read_small(file, "image")?;
    let processes = pids.zip(images);
    Ok(processes
        .map(|(pid, image)| Process { pid, image })
        .collect())
}

impl Row for Heat {
    const TABLE: Table = Table::Heat;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("epoch", numbers(rows, |row| row.epoch.0.into())),
            ("pid", numbers(rows, |row| row.process.pid.into())),
            ("image", numbers(rows, |row| row.process.image.into())),
            ("site", sites(rows, |row| row.site)),
            ("address", numbers(rows, |row| row.address)),
            ("accesses", numbers(rows, |row| row.accesses.0)),
        ]
    }
}

impl Stored for Heat {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let epoch = read_small(file, "epoch")?;
        let process = read_processes(file)?;
        let address = read_numbers(file, "address")?;
        let accesses = read_numbers(file, "accesses")?;
        let sites = read_sites(file)?.into_iter().enumerate();
        let rows = sites.map(|(row, site)| Self {
            epoch: Epoch(epoch[row]),
            process: process[row],
            site,
            address: address[row],
            accesses: Accesses(accesses[row]),
        });
        Ok(rows.collect())
    }
}

impl Row for Resident {
    const TABLE: Table = Table::Resident;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("epoch", numbers(rows, |row| row.epoch.0.into())),
            ("site", sites(rows, |row| row.site)),
            ("resident_bytes", numbers(rows, |row| row.bytes.0)),
        ]
    }
}

impl Stored for Resident {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let epoch = read_small(file, "epoch")?;
        let resident = read_numbers(file, "resident_bytes")?;
        let sites = read_sites(file)?.into_iter().enumerate();
        let rows = sites.map(|(row, site)| Self {
            epoch: Epoch(epoch[row]),
            site,
            bytes: Bytes(resident[row]),
        });
        Ok(rows.collect())
    }
}

impl Row for EpochSpan {
    const TABLE: Table = Table::Epochs;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("epoch", numbers(rows, |row| row.epoch.0.into())),
            ("span_ns", numbers(rows, |row| row.span.0)),
        ]
    }
}

impl Stored for EpochSpan {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let spans = read_numbers(file, "span_ns")?;
        let epochs = read_small(file, "epoch")?.into_iter().zip(spans);
        Ok(epochs
            .map(|(epoch, span)| Self {
                epoch: Epoch(epoch),
                span: Nanos(span),
            })
            .collect())
    }
}

impl Row for Count {
    const TABLE: Table = Table::Counts;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            (
                "pid",
                optional_numbers(rows, |row| row.process.map(|p| p.pid.into())),
            ),
            (
                "image",
                optional_numbers(rows, |row| row.process.map(|p| p.image.into())),
            ),
            ("name", text(rows, |row| &row.name)),
            ("value", numbers(rows, |row| row.value)),
        ]
    }
}

impl Stored for Count {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let pid = read_optional_small(file, "pid")?;
        let image = read_optional_small(file, "image")?;
        let value = read_numbers(file, "value")?;
        let names = read_text(file, "name")?.into_iter().enumerate();
        let rows = names.map(|(row, name)| Self {
            process: pid[row].map(|pid| Process {
                pid,
                image: image[row].unwrap_or_default(),
            }),
            name,
            value: value[row],
        });
        Ok(rows.collect())
    }
}

impl Row for SourceReport {
    const TABLE: Table = Table::Sources;

    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("source", text(rows, |row| &row.name)),
            ("taken_samples", numbers(rows, |row| row.taken)),
            ("usable_samples", numbers(rows, |row| row.usable)),
            ("lost_samples", numbers(rows, |row| row.lost)),
            ("cost_ns", numbers(rows, |row| row.cost.0)),
            ("cost_note", text(rows, |row| &row.cost_note)),
            ("trouble", text(rows, |row| &row.warning)),
        ]
    }
}

impl Stored for SourceReport {
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let taken = read_numbers(file, "taken_samples")?;
        let usable = read_numbers(file, "usable_samples")?;
        let lost = read_numbers(file, "lost_samples")?;
        let cost = read_numbers(file, "cost_ns")?;
        let mut cost_note = read_text(file, "cost_note")?;
        let mut trouble = read_text(file, "trouble")?;
        let names = read_text(file, "source")?.into_iter().enumerate();
        let rows = names.map(|(row, name)| Self {
            name,
            taken: taken[row],
            usable: usable[row],
            lost: lost[row],
            cost: Nanos(cost[row]),
            cost_note: std::mem::take(&mut cost_note[row]),
            warning: std::mem::take(&mut trouble[row]),
        });
        Ok(rows.collect())
    }
}
