//! The table of the code that accessed data: a row for each pair of a site and an instruction.

use std::sync::Arc;

use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::site::{Frame, SiteId};
use isotherm_model::units::{Accesses, Bytes};

use crate::column::File;
use crate::layout::Table;
use crate::tables::{Columns, Row, Stored, Value, read_shared_text};

impl Row for &CodeAccess {
    const TABLE: Table = Table::Code;

    fn columns(rows: &[Self]) -> Columns {
        let text = |value: fn(&Frame) -> Option<&str>| {
            Option::<String>::column(rows, move |row| value(&row.code))
        };
        vec![
            ("site", SiteId::column(rows, |row| row.site)),
            ("module", String::column(rows, |row| &row.code.module)),
            ("build_id", text(|code| code.build_id.as_deref())),
            ("offset", u64::column(rows, |row| row.code.offset)),
            ("function", text(|code| code.function.as_deref())),
            ("file", text(|code| code.file.as_deref())),
            ("line", Option::<u32>::column(rows, |row| row.code.line)),
            ("column", Option::<u32>::column(rows, |row| row.code.column)),
            (
                "kind",
                Option::<String>::column(rows, |row| row.kind.map(AccessKind::word)),
            ),
            ("accesses", u64::column(rows, |row| row.accesses.0)),
            ("streamed", u64::column(rows, |row| row.streamed.0)),
            ("served_by_caches", u64::column(rows, |row| row.served.0)),
            ("threads", u32::column(rows, |row| row.threads)),
            ("pairs", u64::column(rows, |row| row.walk.pairs)),
            (
                "continued_pairs",
                u64::column(rows, |row| row.walk.continued),
            ),
            ("divisor_bytes", u64::column(rows, |row| row.walk.divisor.0)),
            (
                "pattern",
                Option::<String>::column(rows, |row| {
                    row.walk.pattern().map(|pattern| pattern.word())
                }),
            ),
        ]
    }
}

impl Stored for CodeAccess {
    /// The pattern follows from the pairs and is for queries.
    fn read(file: &File) -> Result<Vec<Self>, String> {
        let modules = read_shared_text(file, "module")?;
        let modules: Option<Vec<Arc<str>>> = modules.into_iter().collect();
        let modules = modules.ok_or("its column \"module\" has empty rows")?;
        let mut build_id = read_shared_text(file, "build_id")?;
        let offset = u64::read(file, "offset")?;
        let mut function = Option::<String>::read(file, "function")?;
        let mut source = Option::<String>::read(file, "file")?;
        let line = Option::<u32>::read(file, "line")?;
        let column = Option::<u32>::read(file, "column")?;
        let kind = Option::<String>::read(file, "kind")?;
        let accesses = u64::read(file, "accesses")?;
        let streamed = u64::read(file, "streamed")?;
        let served = u64::read(file, "served_by_caches")?;
        let threads = u32::read(file, "threads")?;
        let pairs = u64::read(file, "pairs")?;
        let continued = u64::read(file, "continued_pairs")?;
        let divisor = u64::read(file, "divisor_bytes")?;
        let sites = SiteId::read(file, "site")?.into_iter().enumerate();
        let rows = sites.map(|(row, site)| Self {
            site,
            code: Arc::new(Frame {
                module: Arc::clone(&modules[row]),
                build_id: build_id[row].take(),
                offset: offset[row],
                function: function[row].take(),
                file: source[row].take(),
                line: line[row],
                column: column[row],
                ..Frame::default()
            }),
            // A word of a later version is as none.
            kind: kind[row].as_deref().and_then(AccessKind::from_word),
            accesses: Accesses(accesses[row]),
            streamed: Accesses(streamed[row]),
            served: Accesses(served[row]),
            threads: threads[row],
            walk: SampleWalk {
                pairs: pairs[row],
                continued: continued[row],
                divisor: Bytes(divisor[row]),
            },
        });
        Ok(rows.collect())
    }
}
