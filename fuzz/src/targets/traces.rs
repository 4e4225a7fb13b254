//! Traces and profiles of other tools, one target a format.

use std::io::Cursor;

use isotherm_model::units::Nanos;
use isotherm_trace::{Error, Format, Grain, accesses, profile};

use super::seeds::Seeds;

/// The name under which the bytes are read.
const FILE: &str = "input";
/// Accesses of one input at most; a line is never shorter than two bytes.
const MOST: usize = 1 << 16;

pub(crate) fn text(data: &[u8]) -> bool {
    yields_accesses(Format::Text, data)
}

pub(crate) fn perf_script(data: &[u8]) -> bool {
    yields_accesses(Format::PerfScript, data)
}

pub(crate) fn perf_data(data: &[u8]) -> bool {
    yields_accesses(Format::PerfData, data)
}

pub(crate) fn damon_trace(data: &[u8]) -> bool {
    yields_a_profile(Format::DamonTrace, data)
}

pub(crate) fn damo_record(data: &[u8]) -> bool {
    yields_a_profile(Format::DamoRecord, data)
}

pub(crate) fn memprof(data: &[u8]) -> bool {
    yields_a_profile(Format::MemProf, data)
}

pub(crate) fn memprof_raw(data: &[u8]) -> bool {
    yields_a_profile(Format::MemProfRaw, data)
}

/// A recording cut to thirty samples, and a packed record: formats that no editor writes.
pub(crate) fn perf_data_seeds() -> Seeds {
    let bytes = include_bytes!("../../../tests/traces/page-faults.perf.data");
    vec![("page-faults", bytes.to_vec())]
}

pub(crate) fn damo_seeds() -> Seeds {
    let bytes = include_bytes!("../../../tests/traces/damo.data");
    vec![("packed", bytes.to_vec())]
}

/// What a small program built by clang 19 wrote.
pub(crate) fn memprof_raw_seeds() -> Seeds {
    let bytes = include_bytes!("../../../tests/traces/memprof.profraw");
    vec![("program", bytes.to_vec())]
}

/// Times begin at zero and never go back, no more is counted than there is, and nothing follows an
/// error.
fn yields_accesses(format: Format, data: &[u8]) -> bool {
    let _ = Format::guess(data);
    let mut read = match accesses(format, FILE, Cursor::new(data.to_vec())) {
        Ok(read) => read,
        Err(error) => return is_explained(&error),
    };
    let (mut last, mut count) = (Nanos::ZERO, 0);
    while let Some(next) = read.next() {
        match next {
            Ok(access) => {
                assert!(access.time >= last && (count > 0 || access.time == Nanos::ZERO));
                last = access.time;
                count += 1;
                assert!(count <= MOST, "more accesses than the input can hold");
            }
            Err(error) => {
                assert!(read.next().is_none());
                return is_explained(&error);
            }
        }
    }
    let tally = read.tally();
    assert_eq!(tally.records, count as u64 + tally.without_address);
    true
}

/// Rows stand in their order and name sites and epochs that are there, and a site's chunks lie on
/// the grid.
fn yields_a_profile(format: Format, data: &[u8]) -> bool {
    let _ = Format::guess(data);
    let source = Cursor::new(data.to_vec());
    let profile = match profile(format, FILE, source, Grain::default()) {
        Ok(profile) => profile,
        Err(error) => return is_explained(&error),
    };
    let is_site = |id| {
        profile
            .sites
            .binary_search_by_key(&id, |site| site.id)
            .is_ok()
    };
    let is_epoch = |epoch| profile.epochs.iter().any(|span| span.epoch == epoch);
    for heat in &profile.heat {
        assert!(heat.accesses.0 > 0 && heat.address.is_multiple_of(profile.meta.chunk.0));
        assert!(is_site(heat.site) && is_epoch(heat.epoch));
    }
    let keys = profile.heat.iter();
    let keys = keys.map(|heat| (heat.epoch, heat.process, heat.address));
    assert!(keys.is_sorted());
    assert!(profile.sites.iter().map(|site| site.id).is_sorted());
    assert!(profile.resident.iter().all(|row| is_site(row.site)));
    true
}

/// A refusal names the file, and what was expected. Always false: the input was not sound.
fn is_explained(error: &Error) -> bool {
    let text = error.to_string();
    assert!(
        text.starts_with(FILE) && text.contains("expected "),
        "{text}"
    );
    false
}
