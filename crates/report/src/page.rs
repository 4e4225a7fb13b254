//! Renders the parts that all HTML pages share: the document, its charts and its tables. A page needs no network, and its security policy
//! permits none: the only scripts that run are those whose hashes the policy names.
//!
//! ```text
//! section.chart  p, div#curve, noscript          one for each chart, in the order of the page
//! script#data    {"curve": {"kind": .., ..}, ..} the figures by the id of the chart
//! script         ECharts
//! script         D3 with d3-flame-graph
//! script         words.js, theme.js, selection.js, flame.js, chart_keys.js; page.js draws each chart by its kind, sorts, filters, copies
//! ```

use base64::prelude::{BASE64_STANDARD, Engine as _};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::table::DataTable;
use crate::words::{clip, counted};

const STYLE: &str = include_str!("../assets/page.css");
/// The scripts of every page. A page is a copy of them, so it carries the notices that their licences ask for.
const SCRIPTS: [&str; 3] = [
    concat!(
        "/*! Licensed under Apache-2.0, www.apache.org/licenses/LICENSE-2.0\n\n",
        include_str!("../assets/echarts.NOTICE"),
        "\n\nIt includes code under these licences.\n\nzrender:\n",
        include_str!("../assets/zrender.LICENSE"),
        "\nD3:\n",
        include_str!("../assets/echarts.LICENSE-d3"),
        "*/\n",
        include_str!("../assets/echarts.min.js"),
    ),
    concat!(
        "/*! d3-flame-graph: Apache-2.0, www.apache.org/licenses/LICENSE-2.0\n\nModules of D3:\n",
        include_str!("../assets/d3.LICENSE"),
        "\nd3-ease:\n",
        include_str!("../assets/d3-ease.LICENSE"),
        "*/\n",
        include_str!("../assets/d3.min.js"),
    ),
    concat!(
        include_str!("../assets/words.js"),
        include_str!("../assets/theme.js"),
        include_str!("../assets/selection.js"),
        include_str!("../assets/flame.js"),
        include_str!("../assets/chart_keys.js"),
        include_str!("../assets/page.js"),
    ),
];

/// Characters of a name at most.
const NAME: usize = 200;

/// A name of bounded length.
pub(crate) fn name(text: &str) -> String {
    clip(text, NAME)
}

/// The document around a body. `charts` has the figures of each chart by its id, with its kind: a
/// function of `page.js`.
pub(crate) fn document(title: &str, body: &Markup, charts: &Value) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script type="application/json" id="data" { (PreEscaped(data(charts))) }
                @for script in SCRIPTS { script { (PreEscaped(script)) } }
            }
        }
    };
    document.into_string()
}

/// Permits the scripts of the page, by their hashes, and its styles, and no request. The charts set styles of elements, so
/// styles have no hashes.
fn policy() -> String {
    let hash = |script| {
        let hash = BASE64_STANDARD.encode(Sha256::digest(script));
        format!("'sha256-{hash}'")
    };
    let hashes = SCRIPTS.map(hash).join(" ");
    format!("default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'")
}

/// The figures as JSON that cannot end the script element that contains it: `<`, `>` and `&` occur in
/// JSON only within strings, where `\u003c` means the same.
fn data(charts: &Value) -> String {
    let json = charts.to_string();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// A section with a chart: its place, its words, a label for readers who do not see it, and the content below it.
pub(crate) fn chart(id: &str, title: &str, words: &str, label: &str, after: &Markup) -> Markup {
    let title_id = format!("{id}-title");
    html! {
        section aria-labelledby=(title_id) {
            h2 id=(title_id) { (title) }
            p { (words) }
            div.chart id=(id) role="img" aria-label=(label) {}
            noscript { p { "The chart needs JavaScript; the tables of this page do not." } }
            (after)
        }
    }
}

/// A paragraph on the rows that a table leaves out, where it shows `shown` of `all` at most.
pub(crate) fn more(all: usize, shown: usize, noun: &str) -> Markup {
    html! {
        @if all > shown { p.small { (counted(all - shown, noun)) " more are in the JSON report." } }
    }
}

/// A table that scrolls where it is wider than the window. Its name differs from that of the section that it may be the table of.
pub(crate) fn scrolled(label: &str, table: &Markup) -> Markup {
    let label = format!("{label}, table");
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A table as HTML, with the rows and columns that it has in a terminal. The first cell of a row names it.
pub(crate) fn table<T>(label: &str, table: &DataTable<'_, T>) -> Markup {
    let classes = table.titles();
    let classes = classes.map(|(_, is_number)| is_number.then_some("n"));
    let classes: Vec<_> = classes.collect();
    let markup = html! {
        table {
            thead {
                tr { @for ((title, _), class) in table.titles().zip(&classes) { th class=[class] scope="col" { (title) } } }
            }
            tbody {
                @for row in table.cells() {
                    tr {
                        th scope="row" { (name(&row[0])) }
                        @for (cell, class) in row.iter().zip(&classes).skip(1) { td class=[class] { (name(cell)) } }
                    }
                }
            }
        }
    };
    scrolled(label, &markup)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_script_of_the_page_ends_its_own_element() {
        for script in super::SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn a_page_carries_the_notices_of_the_code_that_it_copies() {
        let page = super::document("a page", &maud::html! {}, &serde_json::json!({}));
        for holder in [
            "The Apache Software Foundation",
            "Copyright (c) 2017, Baidu Inc.",
            "Copyright 2010-2026 Mike Bostock",
            "Copyright 2001 Robert Penner",
            "this permission notice appear in all copies",
        ] {
            assert!(page.contains(holder), "{holder}");
        }
    }
}
