//! [`encode`] writes, and [`File`] reads, one Parquet file of a profile's table: named columns ([`Column`]) of unsigned numbers or text,
//! some of them optional.
//!
//! Two kinds of column are all that profiles need, and both mean the same in every reader:
//! `UINT_64` and `STRING`. Compression is Snappy. Each file holds a checksum of itself
//! ([`crate::checksum`]), because a changed byte in a page can be a changed number that looks
//! like any other.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::checksum;
use crate::layout::{FORMAT_VERSION, TABLE_KEY, Table, VERSION_KEY};

/// Values of one column. `present` is `None` where every row has one; else it says for each row
/// whether it does (1) or not (0), and `values` holds only those that are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column<T> {
    pub(crate) values: Vec<T>,
    pub(crate) present: Option<Vec<i16>>,
}

impl<T> Column<T> {
    pub(crate) const fn required(values: Vec<T>) -> Self {
        Self {
            values,
            present: None,
        }
    }

    pub(crate) fn optional(rows: impl Iterator<Item = Option<T>>) -> Self {
        let mut values = Vec::new();
        let present = rows
            .map(|row| {
                let there = i16::from(row.is_some());
                values.extend(row);
                there
            })
            .collect();
        Self {
            values,
            present: Some(present),
        }
    }

    /// The rows, absent ones included.
    pub(crate) fn rows(self) -> impl Iterator<Item = Option<T>> {
        let mut values = self.values.into_iter();
        let count = self.present.as_ref().map_or(values.len(), Vec::len);
        (0..count).map(move |row| match &self.present {
            Some(present) if present[row] == 0 => None,
            _ => values.next(),
        })
    }
}

/// A column by kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cells {
    Number(Column<u64>),
    Text(Column<ByteArray>),
}

impl Cells {
    /// As [`Column::present`].
    fn present(&self) -> Option<&[i16]> {
        match self {
            Self::Number(column) => column.present.as_deref(),
            Self::Text(column) => column.present.as_deref(),
        }
    }
}

/// Writes one table as one Parquet file in memory.
pub(crate) fn encode(
    table: Table,
    columns: Vec<(&'static str, Cells)>,
) -> Result<Vec<u8>, ParquetError> {
    let fields = columns
        .iter()
        .map(|(name, cells)| field(name, cells).map(Arc::new))
        .collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.word())
        .with_fields(fields)
        .build()?;
    let note = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("isotherm version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![
            note(VERSION_KEY, FORMAT_VERSION.to_string()),
            note(TABLE_KEY, table.word().to_owned()),
            note(checksum::KEY, checksum::PLACEHOLDER.to_owned()),
        ]))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, cells) in columns {
        let mut writer = group
            .next_column()?
            .ok_or_else(|| ParquetError::General("fewer columns than fields".to_owned()))?;
        let present = cells.present();
        match &cells {
            Cells::Number(column) => {
                let values: Vec<i64> = column.values.iter().map(|v| v.cast_signed()).collect();
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(&values, present, None)?;
            }
            Cells::Text(column) => {
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&column.values, present, None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    let mut bytes = file.into_inner()?;
    checksum::seal(&mut bytes);
    Ok(bytes)
}

fn field(name: &str, cells: &Cells) -> Result<Type, ParquetError> {
    let (physical, logical) = match cells {
        Cells::Number(_) => (Physical::INT64, LogicalType::integer(64, false)),
        Cells::Text(_) => (Physical::BYTE_ARRAY, LogicalType::String),
    };
    let repetition = match cells.present() {
        Some(_) => Repetition::OPTIONAL,
        None => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(Some(logical))
        .with_repetition(repetition)
        .build()
}

/// A file of which only the footer has been read.
pub(crate) struct File {
    reader: SerializedFileReader<Bytes>,
    rows: usize,
}

/// Rows that a byte of a file may stand for at most. Sites and addresses differ within an epoch,
/// so a real row costs a bit at least before compression, and Snappy shrinks by 22 at most; a file
/// that claims more is made to exhaust memory.
const ROWS_PER_BYTE: usize = 1000;

impl File {
    /// Reads the footer and checks what it claims.
    pub(crate) fn open(bytes: Bytes) -> Result<Self, String> {
        let length = bytes.len();
        let whole = checksum::holds(&bytes);
        let reader = SerializedFileReader::new(bytes).map_err(|e| e.to_string())?;
        let claimed = reader.metadata().file_metadata().num_rows();
        let rows = usize::try_from(claimed)
            .ok()
            .filter(|rows| *rows <= length.saturating_mul(ROWS_PER_BYTE))
            .ok_or_else(|| format!("it claims {claimed} rows in {length} bytes"))?;
        let file = Self { reader, rows };
        // A newer version is reported before its contents are judged.
        if whole || file.version() > Some(FORMAT_VERSION) {
            Ok(file)
        } else {
            Err("its contents do not match its checksum".to_owned())
        }
    }

    fn footer(&self) -> &FileMetaData {
        self.reader.metadata().file_metadata()
    }

    fn note(&self, key: &str) -> Option<&str> {
        let mut notes = self.footer().key_value_metadata()?.iter();
        notes.find(|note| note.key == key)?.value.as_deref()
    }

    /// True where the file says that it is this table.
    pub(crate) fn is(&self, table: Table) -> bool {
        self.note(TABLE_KEY) == Some(table.word())
    }

    /// The format version that the file states.
    pub(crate) fn version(&self) -> Option<u64> {
        self.note(VERSION_KEY)?.parse().ok()
    }

    /// Number of rows.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// True where it has a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// The number of the column of this name.
    fn place(&self, name: &str) -> Option<usize> {
        let mut columns = self.footer().schema_descr().columns().iter();
        columns.position(|column| column.path().string() == name)
    }

    /// A column of numbers.
    pub(crate) fn numbers(&self, name: &str) -> Result<Column<u64>, String> {
        let column = self.column::<Int64Type>(name, |reader| match reader {
            ColumnReader::Int64ColumnReader(reader) => Some(reader),
            _ => None,
        })?;
        Ok(Column {
            values: column.values.into_iter().map(i64::cast_unsigned).collect(),
            present: column.present,
        })
    }

    /// A column of text.
    pub(crate) fn text(&self, name: &str) -> Result<Column<ByteArray>, String> {
        self.column::<ByteArrayType>(name, |reader| match reader {
            ColumnReader::ByteArrayColumnReader(reader) => Some(reader),
            _ => None,
        })
    }

    fn column<T: DataType>(
        &self,
        name: &str,
        typed: fn(ColumnReader) -> Option<ColumnReaderImpl<T>>,
    ) -> Result<Column<T::T>, String> {
        let index = self.place(name);
        let index = index.ok_or_else(|| format!("it has no column \"{name}\""))?;
        let description = self.footer().schema_descr().column(index);
        if description.max_rep_level() > 0 || description.max_def_level() > 1 {
            return Err(format!("its column \"{name}\" is nested"));
        }
        let mut column = Column {
            values: Vec::new(),
            present: (description.max_def_level() == 1).then(Vec::new),
        };
        let wrong = |e: ParquetError| format!("its column \"{name}\" is damaged: {e}");
        let mut rows = 0;
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(wrong)?;
            let reader = group.get_column_reader(index).map_err(wrong)?;
            let mut reader =
                typed(reader).ok_or_else(|| format!("its column \"{name}\" has another type"))?;
            // One more than there should be, so that a column that is too long is noticed.
            let (read, _, _) = reader
                .read_records(
                    (self.rows - rows).saturating_add(1),
                    column.present.as_mut(),
                    None,
                    &mut column.values,
                )
                .map_err(wrong)?;
            rows += read;
            if rows > self.rows {
                break;
            }
        }
        match rows == self.rows {
            true => Ok(column),
            false => Err(format!(
                "its column \"{name}\" does not have {} rows",
                self.rows
            )),
        }
    }
}
