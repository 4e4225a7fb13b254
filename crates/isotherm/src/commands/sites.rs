//! `isotherm sites` lists the allocation sites that the compiler pass wrote into a program; `--contexts` is in module `contexts`.

use std::collections::BTreeMap;

use anyhow::Result;
use isotherm_model::site::SiteId;
use isotherm_report::table::DataTable;
use isotherm_symbols::compiled_sites::{self, CompiledSite};
use isotherm_symbols::demangled::demangled;

use super::contexts::SCHEMA_VERSION;
use crate::cli::SitesArgs;
use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};

/// Prints the sites in the order of the source.
///
/// # Errors
/// A file that is not a linked program, or one built by another version of the pass.
pub(crate) fn run(args: &SitesArgs, console: Console) -> Result<()> {
    if args.contexts {
        return super::contexts::run(&args.file, args.json, console);
    }
    let by_id: BTreeMap<SiteId, CompiledSite> = compiled_sites::read(&args.file)?
        .into_values()
        .map(|site| (site.id, site))
        .collect();
    let mut sites: Vec<CompiledSite> = by_id.into_values().collect();
    sites.sort_by(|a, b| (&a.path, a.line, a.column, a.id).cmp(&(&b.path, b.line, b.column, b.id)));
    if args.json {
        let list: Vec<_> = sites.iter().map(to_json).collect();
        let document = serde_json::json!({ "schema_version": SCHEMA_VERSION, "sites": list });
        return print(&format!("{document:#}\n"));
    }
    let shown = args.file.display();
    if sites.is_empty() {
        console.info(&format!(
            "{shown} has no sites of its own; compile it with isotherm-cc or isotherm-c++ to name them. \
             Without it, sites are identified by their callers while the program runs"
        ));
        return Ok(());
    }
    print(&table(&sites).render())?;
    let program = shell_quoting::program(&args.file);
    console.next(&format!("isotherm record -o app.iso -- {program}"));
    Ok(())
}

fn table(sites: &[CompiledSite]) -> DataTable<'_, CompiledSite> {
    let place = |site: &CompiledSite| match site.line {
        Some(line) => format!("{}:{line}", site.path),
        None => site.path.clone(),
    };
    DataTable::of(sites)
        .left("site", |site| site.id)
        .left("calls", |site| demangled(&site.callee))
        .left("place", place)
        .left("function", |site| site.function.clone())
}

fn to_json(site: &CompiledSite) -> serde_json::Value {
    serde_json::json!({
        "site": site.id.to_string(),
        "calls": site.callee,
        "calls_shown": demangled(&site.callee),
        "function": site.function,
        "file": site.path,
        "line": site.line,
        "column": site.column,
    })
}

#[cfg(test)]
mod tests {
    use super::{table, to_json};
    use isotherm_model::site::SiteId;
    use isotherm_symbols::compiled_sites::CompiledSite;

    #[test]
    fn functions_of_cxx_are_called_as_their_authors_call_them_and_the_linkers_name_stays_in_the_json()
     {
        let site = CompiledSite {
            id: SiteId(0xab),
            address: 0x1000,
            callee: "_ZN5space7checkedEm".to_owned(),
            function: "load(int)".to_owned(),
            path: "src/load.cpp".to_owned(),
            line: Some(12),
            column: Some(3),
        };
        assert_eq!(
            table(std::slice::from_ref(&site))
                .cells()
                .next()
                .expect("a row"),
            [
                "00000000000000ab",
                "space::checked",
                "src/load.cpp:12",
                "load(int)"
            ]
        );
        let wanted = serde_json::json!({
            "site": "00000000000000ab",
            "calls": "_ZN5space7checkedEm",
            "calls_shown": "space::checked",
            "function": "load(int)",
            "file": "src/load.cpp",
            "line": 12,
            "column": 3,
        });
        assert_eq!(to_json(&site), wanted);
    }
}
