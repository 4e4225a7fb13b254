//! Tests that DuckDB, Polars and pandas read a profile as this crate does, where Python has them.
//!
//! `ISOTHERM_PYTHON` names another interpreter than `python3`, one of a virtual environment say:
//! `pip install duckdb polars pandas pyarrow` fetches about 150 MB.

mod support;

use std::collections::BTreeMap;
use std::process::Command;

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};
use isotherm_profile::{Existing, Writer, read};
use support::{Random, Scratch, meta, segment, site};

/// A profile of several files a table, with numbers whose sums fit 64 bits.
fn recorded(path: &std::path::Path) -> Profile {
    let mut writer = Writer::create(path, &meta(&mut Random(5)), Existing::Refuse).unwrap();
    let mut first = segment(5, 0, 1);
    first.sites = (0..9).map(|id| site(id, &mut Random(id))).collect();
    writer.record(&first).unwrap();
    for epoch in 1..5 {
        let mut segment = segment(5, epoch, 15_000);
        for heat in &mut segment.heat {
            heat.accesses = Accesses(heat.accesses.0 % 1_000);
        }
        for resident in &mut segment.resident {
            resident.bytes = Bytes(resident.bytes.0 >> 10);
        }
        writer.record(&segment).unwrap();
    }
    writer.finish(Ending::Exited(0), &[]).unwrap();
    read(path).unwrap().0
}

/// The line that `readers.py` must print.
fn expected(profile: &Profile) -> String {
    let sums = profile.accesses_by_site();
    let (hottest, accesses) = sums
        .iter()
        .max_by_key(|(site, accesses)| (accesses.0, std::cmp::Reverse(**site)))
        .unwrap();
    let label = profile.sites.iter().find(|site| site.id == *hottest);
    let mut resident = BTreeMap::new();
    for row in &profile.resident {
        *resident.entry(row.epoch).or_insert(0) += row.bytes.0;
    }
    let frames = profile.sites.iter().flat_map(|site| site.frames.iter());
    let lines = frames.filter(|frame| frame.line.is_some()).count();
    let site = SiteId::to_string(hottest);
    let peak = resident.values().max().unwrap();
    format!(
        "{site}|{}|{}|{peak}|{lines}",
        accesses.0,
        label.unwrap().label()
    )
}

#[test]
fn duckdb_polars_and_pandas_agree_with_us() {
    let scratch = Scratch::new("readers");
    let path = scratch.path("app.iso");
    let expected = expected(&recorded(&path));
    let python = std::env::var("ISOTHERM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers.py");
    for reader in ["duckdb", "polars", "pandas"] {
        let output = match Command::new(&python)
            .args([script, reader])
            .current_dir(scratch.path(""))
            .output()
        {
            Ok(output) => output,
            Err(error) => {
                isotherm_skip::skip!("{reader}: {python}: {error}");
                continue;
            }
        };
        let printed = String::from_utf8(output.stdout).unwrap();
        if let Some(reason) = printed.strip_prefix("absent: ") {
            isotherm_skip::skip!("{reader}: {}", reason.trim_end());
            continue;
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reader}: {complaint}");
        assert_eq!(printed.trim_end_matches('\n'), expected, "{reader}");
    }
}
