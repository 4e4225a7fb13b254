//! Renders the section of the report's page on the code that accesses data: a table of lines, with a row for each site that a line
//! accesses, and a table of functions, each with the sites that it accesses most.

use maud::{Markup, html};

use crate::code_functions::{CodeFunction, CodePair, pairs};
use crate::page::{more, name, table};
use crate::summary::Summary;
use crate::table::DataTable;
use crate::words::percent;

/// Rows of a table at most.
const ROWS: usize = 100;

/// The section of both tables.
pub(super) fn section(summary: &Summary) -> Markup {
    let pairs = pairs(&summary.sites);
    let lines = &pairs[..pairs.len().min(ROWS)];
    let lines = lines_table(lines);
    let functions = &summary.functions[..summary.functions.len().min(ROWS)];
    let by_function = DataTable::of(functions)
        .left("Function", |function| name(&function.function))
        .right("Share", |function| percent(function.accesses_share))
        .left("Sites that it accesses", CodeFunction::sites_in_words);
    let unit = summary.totals.counted;
    html! {
        section aria-labelledby="code-title" id="code" {
            h2 id="code-title" { "Code that accesses the data" }
            p {
                "By share of the " (unit.noun()) " of all sites. The pattern is that of successive samples of one instruction in a thread: "
                "in one direction it is a stream, or a stride where each access is to other cache lines; all else is random."
            }
            (table("Code that accesses the data", &lines))
            (more(pairs.len(), ROWS, "line"))
            h3 { "By function" }
            p { "Share of the " (unit.noun()) " of all code, with the sites that each function accesses most." }
            (table("Functions that access the data", &by_function))
            (more(summary.functions.len(), ROWS, "function"))
        }
    }
}

fn lines_table<'a>(lines: &'a [CodePair<'a>]) -> DataTable<'a, CodePair<'a>> {
    DataTable::of(lines)
        .left("Code", |pair| name(&pair.line.text))
        .left("Data allocated in", |pair| name(pair.location))
        .right("Share", |pair| percent(pair.share))
        .left("Does", |pair| pair.line.does())
        .left("Pattern", |pair| pair.line.pattern_in_words())
        .right("Threads", |pair| pair.line.threads)
}
