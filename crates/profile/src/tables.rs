//! Defines the columns of each table of a profile: its type of rows has the trait [`Row`], which converts rows to columns and back.

use std::borrow::Cow;
use std::sync::Arc;

use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::isolation_runs::{BandwidthCounter, IsolatedData, IsolationRun};
use isotherm_model::movement::AddressRange;
use isotherm_model::profile::{EpochSpan, Heat, HeatBin, HeatObject, Resident};
use isotherm_model::sensitivity_runs::{FastData, SensitivityRun};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Nanos};

use crate::column::{Cells, File};
use crate::kinds::{Later, Value, written_text};
use crate::layout::Table;

pub(crate) type Columns = Vec<(&'static str, Cells)>;

/// A row of one table.
pub(crate) trait Row: Sized {
    /// The table of these rows.
    const TABLE: Table;
    /// The columns of these rows.
    fn columns(rows: &[&Self]) -> Columns;
    /// The rows of this file, or what is wrong with it.
    fn read(file: &File) -> Result<Vec<Self>, String>;
}

/// One caller of one site.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrameRow<'a> {
    pub(crate) site: SiteId,
    /// Position in the calling context, 0 for the innermost.
    pub(crate) depth: u32,
    pub(crate) frame: Cow<'a, Frame>,
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
/// A table: the name and kind of each column, its value in a row, and the row made of the values. Columns for queries follow from the
/// others, and are not read.
macro_rules! table {
    (
        $table:ident of $type:ty, |$row:ident| { $($name:ident: $kind:ty = $value:expr,)+ } => $made:expr
        $(, for queries |$rows:ident| { $query:ident: $cells:expr })?
    ) => {
        impl Row for $type {
            const TABLE: Table = Table::$table;

            fn columns(rows: &[&Self]) -> Columns {
                let columns = [$((stringify!($name), <$kind>::column(rows, |$row| $value))),+];
                let queries = [$({
                    let $rows = rows;
                    (stringify!($query), $cells)
                })?];
                columns.into_iter().chain(queries).collect()
            }

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

// The frames are in a table of their own.
table!(Sites of Site, |row| {
    site: SiteId = row.id,
    kind: SiteKind = row.kind,
    allocations: u64 = row.allocations,
    requested_bytes: u64 = row.requested.0,
    peak_requested_bytes: u64 = row.peak_requested.0,
    peak_rss_bytes: u64 = row.peak_rss.0,
    first_seen: u32 = row.first_seen,
} => Self {
    id: site,
    kind,
    frames: Arc::default(),
    allocations,
    requested: Bytes(requested_bytes),
    peak_requested: Bytes(peak_requested_bytes),
    peak_rss: Bytes(peak_rss_bytes),
    first_seen,
}, for queries |rows| {
    label: written_text(rows, |row, to| to.push_str(&row.label()))
});

table!(Frames of FrameRow<'_>, |row| {
    site: SiteId = row.site,
    depth: u32 = row.depth,
    module: Arc<str> = &row.frame.module,
    build_id: Option<Arc<str>> = row.frame.build_id.as_deref(),
    offset: u64 = row.frame.offset,
    function: Option<String> = row.frame.function.as_deref(),
    file: Option<String> = row.frame.file.as_deref(),
    line: Option<u32> = row.frame.line,
    // Profiles of the first days lack the columns from here on.
    column: Later<Option<u32>> = row.frame.column,
    function_line: Later<Option<u32>> = row.frame.function_line,
    variable: Later<Option<String>> = row.frame.variable.as_deref(),
} => Self {
    site,
    depth,
    frame: Cow::Owned(Frame {
        module,
        build_id,
        offset,
        function,
        file,
        line,
        column: column.0,
        function_line: function_line.0,
        variable: variable.0,
    }),
});

// A row for each pair of a site and an instruction.
table!(Code of CodeAccess, |row| {
    site: SiteId = row.site,
    module: Arc<str> = &row.code.module,
    build_id: Option<Arc<str>> = row.code.build_id.as_deref(),
    offset: u64 = row.code.offset,
    function: Option<String> = row.code.function.as_deref(),
    file: Option<String> = row.code.file.as_deref(),
    line: Option<u32> = row.code.line,
    column: Option<u32> = row.code.column,
    kind: Option<String> = row.kind.map(AccessKind::word),
    accesses: u64 = row.accesses.0,
    streamed: u64 = row.streamed.0,
    served_by_caches: u64 = row.served.0,
    threads: u32 = row.threads,
    pairs: u64 = row.walk.pairs,
    continued_pairs: u64 = row.walk.continued,
    divisor_bytes: u64 = row.walk.divisor.0,
} => Self {
    site,
    code: Arc::new(Frame {
        module,
        build_id,
        offset,
        function,
        file,
        line,
        column,
        ..Frame::default()
    }),
    // A word of a later version is as none.
    kind: kind.as_deref().and_then(AccessKind::from_word),
    accesses: Accesses(accesses),
    streamed: Accesses(streamed),
    served: Accesses(served_by_caches),
    threads,
    walk: SampleWalk {
        pairs,
        continued: continued_pairs,
        divisor: Bytes(divisor_bytes),
    },
}, for queries |rows| {
    pattern: Option::<String>::column(rows, |row| row.walk.pattern().map(|pattern| pattern.word()))
});

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
    let range = AddressRange {
        start: address,
        bytes,
    };
    let bin = HeatBin::new(Bytes(bin.0), Bytes(bin.1), &range);
    (bytes > Bytes::ZERO).then_some(HeatObject { range, bin })
}

table!(Heat of Heat, |row| {
    epoch: u32 = row.epoch.0,
    pid: u32 = row.process.pid,
    image: u32 = row.process.image,
    site: SiteId = row.site,
    address: u64 = row.address,
    object: Later<u64> = row.object.map_or(0, |object| object.range.start),
    object_bytes: Later<u64> = row.object.map_or(0, |object| object.range.bytes.0),
    bin: Later<u64> = bin_of(row).map_or(0, |bin| bin.start.0),
    bin_bytes: Later<u64> = bin_of(row).map_or(0, |bin| bin.bytes.0),
    accesses: Accesses = row.accesses,
    streamed: Later<Accesses> = row.streamed,
    served_by_caches: Later<Accesses> = row.served,
} => Self {
    epoch: Epoch(epoch),
    process: Process { pid, image },
    site,
    address,
    object: heat_object((object.0, object_bytes.0), (bin.0, bin_bytes.0)),
    accesses,
    streamed: streamed.0,
    served: served_by_caches.0,
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
        Accesses, AddressRange, Bytes, Cells, File, Heat, HeatBin, Row, Table, heat_object,
    };
    use crate::column::{Column, encode};
    use crate::kinds::ACCESSES_AT_MOST;

    const RANGE: AddressRange = AddressRange {
        start: 0x5000,
        bytes: Bytes(1 << 20),
    };

    fn row() -> Heat {
        Heat {
            epoch: super::Epoch(1),
            process: super::Process { pid: 7, image: 0 },
            site: super::SiteId(9),
            address: 0,
            object: heat_object((RANGE.start, RANGE.bytes.0), (8192, 4096)),
            accesses: Accesses(5),
            streamed: Accesses(2),
            served: Accesses(1),
        }
    }

    /// The rows of a file with these columns, or what is wrong with it.
    fn read_again(columns: super::Columns) -> Result<Vec<Heat>, String> {
        let file = encode(Table::Heat, columns).expect("is written");
        Heat::read(&File::open(file.into()).expect("a table"))
    }

    #[test]
    fn a_row_of_heat_has_at_most_the_accesses_that_an_epoch_can_hold() {
        let with = |accesses| Heat { accesses, ..row() };
        let most = with(ACCESSES_AT_MOST);
        for written in [ACCESSES_AT_MOST, Accesses(u64::MAX)] {
            let columns = Heat::columns(&[&with(written)]);
            assert_eq!(read_again(columns), Ok(vec![most]));
        }
        for damaged in ["accesses", "streamed", "served_by_caches"] {
            let mut columns = Heat::columns(&[&row()]);
            let (_, cells) = columns
                .iter_mut()
                .find(|(name, _)| *name == damaged)
                .expect("a column");
            *cells = Cells::Number(Column::required(vec![ACCESSES_AT_MOST.0 + 1]));
            let wrong = read_again(columns).expect_err(damaged);
            assert!(wrong.contains(&format!("\"{damaged}\"")), "{wrong}");
            assert!(wrong.ends_with("which is too large"), "{wrong}");
        }
    }

    #[test]
    fn heat_of_older_profiles_and_bins_that_no_object_has_are_read_without_bins() {
        let read = |columns| read_again(columns).expect("rows");
        let (range, row) = (RANGE, row());
        let bin = |rows: &[Heat]| rows[0].object.and_then(|object| object.bin);
        let columns = || Heat::columns(&[&row]);
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
