//! Tests small files of every format, good and bad, in `tests/traces`, and the examples of
//! `docs/traces.md`.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use isotherm_model::profile::Profile;
use isotherm_model::trace::Access;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_trace::{Error, Format, Grain, Trace, accesses, open, profile};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn traces() -> PathBuf {
    root().join("tests/traces")
}

fn opened(name: &str) -> Result<Trace, Error> {
    open(&traces().join(name), None, Grain::default())
}

/// The accesses of a file whose format is detected.
fn all_accesses(name: &str) -> Vec<Access> {
    match opened(name) {
        Ok(Trace::Accesses(accesses)) => accesses.map(|access| access.expect(name)).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

fn whole_profile(name: &str) -> Profile {
    match opened(name) {
        Ok(Trace::Profile(profile)) => *profile,
        other => panic!("{name}: {other:?}"),
    }
}

fn access(time: u64, address: u64, write: bool) -> Access {
    Access {
        time: Nanos(time),
        address,
        write,
    }
}

#[test]
fn text_is_read_with_commas_tabs_and_blanks() {
    assert_eq!(
        all_accesses("accesses.csv"),
        [
            access(0, 0x7f00_0000_1000, false),
            access(500, 0x7f00_0000_1040, false),
            access(1_000, 0x7f00_0000_2000, true),
            access(1_250, 0x7f00_0000_2040, true),
            access(2_500, 0x7f00_0000_1080, false),
        ]
    );
    let tabs = all_accesses("accesses.tsv");
    assert_eq!(tabs[2], access(1_000, 0x7f00_0000_2000, false));
    let blanks = all_accesses("accesses.txt");
    assert_eq!(
        blanks,
        [
            access(0, 0x7f00_0000_1000, false),
            access(1_000, 0x7f00_0000_2000, true)
        ]
    );
}

#[test]
fn perf_script_tells_reads_writes_and_samples_without_address() {
    let Ok(Trace::Accesses(mut read)) = opened("mem-loads.perf-script.txt") else {
        panic!("is a trace");
    };
    let seen: Vec<Access> = read.by_ref().map(|access| access.unwrap()).collect();
    assert_eq!(
        seen,
        [
            access(0, 0x7f00_0000_1000, false),
            access(3_000, 0x7f00_0000_2040, true),
            access(8_000, 0x7f00_0000_1080, false),
        ]
    );
    let tally = read.tally();
    assert_eq!(
        (tally.records, tally.without_address, tally.processes),
        (4, 1, 2)
    );
}

#[test]
fn a_recording_and_its_print_yield_the_same_accesses() {
    let recorded = all_accesses("page-faults.perf.data");
    let printed = all_accesses("page-faults.perf-script.txt");
    assert_eq!((recorded.len(), printed.len()), (30, 30));
    for (recorded, printed) in recorded.iter().zip(&printed) {
        assert_eq!(recorded.address, printed.address);
        assert_eq!(recorded.write, printed.write);
        // The printed time is cut to whole microseconds.
        assert!(recorded.time.0.abs_diff(printed.time.0) < 1_000);
    }
}

#[test]
fn damon_regions_become_heat_by_epoch_and_chunk() {
    let profile = whole_profile("damon.trace.txt");
    assert_eq!(profile.epochs.len(), 2);
    let areas: Vec<u64> = profile
        .extents
        .iter()
        .map(|extent| extent.bytes.0)
        .collect();
    assert_eq!(areas, [4 << 20, 4 << 20]);
    assert_eq!(profile.footprint().0, Bytes(8 << 20));
    // Two chunks of sixteen pages, 19 in the first snapshot and, in one of them, 20 in the second.
    let hot: Vec<u64> = profile
        .heat
        .iter()
        .filter(|heat| heat.epoch.0 == 0)
        .take(2)
        .map(|heat| heat.accesses.0)
        .collect();
    assert_eq!(hot, [16 * 39, 16 * 19]);
    // In the third, a second later, each page of the other area is found accessed twice.
    let late = profile.heat.iter().filter(|heat| heat.epoch.0 == 1);
    let late: Vec<u64> = late.map(|heat| heat.accesses.0).collect();
    assert_eq!((late.len(), late.iter().sum::<u64>()), (64, 2 * 1024));
    let labels: Vec<String> = profile.sites.iter().map(|site| site.label()).collect();
    assert!(
        labels.contains(&"area 0x7f0000000000-0x7f0000400000".to_owned()),
        "{labels:?}"
    );
}

#[test]
fn plain_and_compressed_damo_records_are_the_same_profile() {
    let profile = whole_profile("damo.json");
    assert_eq!(profile, whole_profile("damo.data"));
    // 32 pages found 19 times, 992 once, then 1,024 twice.
    let sum: u64 = profile.heat.iter().map(|heat| heat.accesses.0).sum();
    assert_eq!(sum, 32 * 19 + 992 + 2 * 1024);
    assert_eq!(profile.sources[0].taken, 5);
}

#[test]
fn memprof_sites_have_their_stack_their_bytes_and_their_accesses() {
    let profile = whole_profile("memprof.yaml");
    let mut sites: Vec<(u64, u64, u64)> = profile
        .sites
        .iter()
        .map(|site| {
            let accesses = profile.accesses_by_site()[&site.id].0;
            (site.peak_rss.0, site.requested.0, accesses)
        })
        .collect();
    sites.sort_unstable();
    assert_eq!(
        sites,
        [(4 << 20, 8 << 20, 90_000), (32 << 20, 32 << 20, 10)]
    );
    assert_eq!(profile.span(), Nanos(2_000_000_000));
    let written = whole_profile("memprof.profraw");
    let mut accesses: Vec<u64> = written
        .accesses_by_site()
        .values()
        .map(|count| count.0)
        .collect();
    accesses.sort_unstable();
    assert_eq!(accesses, [1, 1024, 26_476_544]);
    let raw = whole_profile("memprof-raw.yaml");
    assert_eq!(raw.sites[0].label(), "make_hot:+1:21 < main:+3:9");
    assert_eq!(raw.sites[0].peak_rss, Bytes(2048));
}

/// Each bad file and the expected error message; the place comes first.
const BAD: &[(&str, Format, &str)] = &[
    (
        "no-header.csv",
        Format::Text,
        ":1: the first line names no time column; expected a header",
    ),
    (
        "no-unit.csv",
        Format::Text,
        ":1: the time column \"time\" has no unit",
    ),
    (
        "unknown-unit.csv",
        Format::Text,
        ":1: the time column \"time_min\" has no unit",
    ),
    (
        "negative-time.csv",
        Format::Text,
        ":3: the time \"-1\" is negative",
    ),
    (
        "backwards.csv",
        Format::Text,
        ":4: the time 4000 ns is before the 5000 ns of line 3",
    ),
    (
        "huge-time.csv",
        Format::Text,
        ":3: the time \"99999999999\" is too large",
    ),
    (
        "huge-address.csv",
        Format::Text,
        ":2: the address \"0x10000000000000000\" is no number of 64 bits",
    ),
    (
        "negative-address.csv",
        Format::Text,
        ":2: the address \"-4096\" is negative",
    ),
    (
        "missing-value.csv",
        Format::Text,
        ":3: the line has 2 values; expected 3",
    ),
    (
        "unknown-access.csv",
        Format::Text,
        ":2: the access \"x\" is neither",
    ),
    ("empty.csv", Format::Text, ": it holds no access"),
    (
        "one-line.csv",
        Format::Text,
        ":2: the line is longer than 65536 bytes",
    ),
    (
        "no-time.perf-script.txt",
        Format::PerfScript,
        ":2: \"app 71 faults: 7f0000001000\" holds no time",
    ),
    (
        "no-event.perf-script.txt",
        Format::PerfScript,
        ":2: no event follows the time",
    ),
    (
        "no-process.perf-script.txt",
        Format::PerfScript,
        ":2: \"app\" is no process id",
    ),
    (
        "no-addresses.perf-script.txt",
        Format::PerfScript,
        ": no data address in any of 1 sample",
    ),
    (
        "cut-off.perf.data",
        Format::PerfData,
        ": at byte 40: the records (1744 bytes from byte 264) reach beyond",
    ),
    (
        "not-ended.perf.data",
        Format::PerfData,
        ": at byte 40: there are no records",
    ),
    (
        "record-size.perf.data",
        Format::PerfData,
        ": at byte 264: the record has 4 bytes",
    ),
    (
        "huge-event.perf.data",
        Format::PerfData,
        ": at byte 16: an event has 9223372036854775808 bytes",
    ),
    (
        "overflowing-events.perf.data",
        Format::PerfData,
        ": at byte 24: the events (144 bytes from byte",
    ),
    (
        "without-addresses.perf.data",
        Format::PerfData,
        ": no event has data addresses",
    ),
    (
        "tracepoint.perf.data",
        Format::PerfData,
        ": its samples are tracepoints",
    ),
    (
        "compressed.perf.data",
        Format::PerfData,
        ": at byte 264: the records are compressed",
    ),
    (
        "big-endian.perf.data",
        Format::PerfData,
        ": at byte 0: a big-endian machine wrote it",
    ),
    (
        "pipe.perf.data",
        Format::PerfData,
        ": at byte 8: it was written to a pipe",
    ),
    (
        "cut-off.damon.trace.txt",
        Format::DamonTrace,
        ":4: the snapshot that begins here has 2 of its 3 regions",
    ),
    (
        "overlapping.damon.trace.txt",
        Format::DamonTrace,
        ":2: the region 8192-16384 overlaps the one before it",
    ),
    (
        "backwards.damon.trace.txt",
        Format::DamonTrace,
        ":2: the snapshot ends at 1500000000 ns, before",
    ),
    (
        "empty-region.damon.trace.txt",
        Format::DamonTrace,
        ":1: the region 4096-4096 ends before it begins",
    ),
    (
        "huge-region.damon.trace.txt",
        Format::DamonTrace,
        ":1: the region 0-18446744073709551615 is",
    ),
    (
        "negative.damon.trace.txt",
        Format::DamonTrace,
        ":1: the line has no number of accesses",
    ),
    (
        "far-apart.damon.trace.txt",
        Format::DamonTrace,
        ":2: the snapshot at 2500000000 ns ends in epoch",
    ),
    (
        "cut-off.damo.data",
        Format::DamoRecord,
        "the compressed data is damaged or cut off",
    ),
    (
        "cut-off.damo.json",
        Format::DamoRecord,
        "it ends in the middle",
    ),
    (
        "overlapping.damo.json",
        Format::DamoRecord,
        " overlaps the one before it",
    ),
    (
        "negative.damo.json",
        Format::DamoRecord,
        "integer `-19`, expected a whole number",
    ),
    (
        "no-samples.damo.json",
        Format::DamoRecord,
        "null, expected a whole number",
    ),
    (
        "huge.damo.json",
        Format::DamoRecord,
        "\"99999999999999999999\", expected a whole number",
    ),
    (
        "cut-off.memprof.yaml",
        Format::MemProf,
        ":11: the site that begins in line 5 has no AllocCount or TotalSize",
    ),
    (
        "negative.memprof.yaml",
        Format::MemProf,
        ":10: TotalAccessCount is \"-90000\"",
    ),
    (
        "no-size.memprof.yaml",
        Format::MemProf,
        "the site that begins in line 5 has no AllocCount or TotalSize",
    ),
    (
        "huge.memprof.yaml",
        Format::MemProf,
        ":10: TotalAccessCount is \"99999999999999999999\"",
    ),
    ("tangled.memprof.yaml", Format::MemProf, "it is no YAML"),
    (
        "nothing.bin",
        Format::Text,
        ":1: the first line names no time column",
    ),
];

fn first_error(path: &Path, format: Format) -> String {
    match open(path, Some(format), Grain::default()) {
        Ok(Trace::Accesses(mut accesses)) => match accesses.find_map(Result::err) {
            Some(error) => {
                assert!(accesses.next().is_none(), "it goes on after an error");
                error.to_string()
            }
            None => panic!("{} was taken", path.display()),
        },
        Ok(Trace::Profile(_)) => panic!("{} was taken", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_bad_file_is_refused_with_file_place_and_expectation() {
    let directory = traces().join("bad");
    for (name, format, expected) in BAD {
        let path = directory.join(name);
        let error = first_error(&path, *format);
        let said = error.strip_prefix(&path.display().to_string());
        let said = said.unwrap_or_else(|| panic!("{name}: the file is not named: {error}"));
        let found = if expected.starts_with(':') {
            said.starts_with(expected)
        } else {
            said.contains(expected)
        };
        assert!(found, "{name}: {error}");
        assert!(error.contains("expected "), "{name}: {error}");
    }
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.retain(|name| BAD.iter().all(|(known, ..)| known != name));
    assert!(files.is_empty(), "files that no case reads: {files:?}");
}

#[test]
fn a_file_of_no_known_format_and_a_missing_one_are_refused() {
    let error = opened("bad/nothing.bin").unwrap_err().to_string();
    assert!(error.contains("matches no known format"), "{error}");
    let error = opened("missing").unwrap_err().to_string();
    assert!(error.contains("missing: cannot be read"), "{error}");
}

#[test]
fn a_format_that_tells_sums_is_not_read_as_accesses_nor_the_other_way_round() {
    for format in Format::ALL {
        let empty = || Cursor::new(Vec::new());
        let error = if format.has_single_accesses() {
            profile(format, "x", empty(), Grain::default()).map(drop)
        } else {
            accesses(format, "x", empty()).map(drop)
        };
        let error = error.unwrap_err().to_string();
        assert!(error.contains(format.word()), "{error}");
    }
}

/// The first fenced block after each heading "## `word`: ..." of the page.
fn examples() -> Vec<(Format, String)> {
    let page = std::fs::read_to_string(root().join("docs/traces.md")).unwrap();
    let sections = page.split("\n## `").skip(1);
    sections
        .map(|section| {
            let word = section.split('`').next().unwrap_or_default();
            let format = Format::from_word(word).unwrap_or_else(|| panic!("{word}: no format"));
            let block = section.split("\n```").nth(1).expect("has an example");
            let (_, example) = block.split_once('\n').expect("has lines");
            (format, example.to_owned())
        })
        .collect()
}

#[test]
fn every_example_of_the_page_is_of_its_format_and_is_read() {
    let examples = examples();
    let formats: Vec<Format> = examples.iter().map(|(format, _)| *format).collect();
    assert_eq!(formats, Format::ALL);
    for (format, example) in examples {
        // The example of a binary format is the command that makes such a file.
        let made_by = match format {
            Format::PerfData => Some("perf record"),
            Format::MemProfRaw => Some("-fmemory-profile"),
            _ => None,
        };
        if let Some(command) = made_by {
            assert!(example.contains(command), "{example}");
            continue;
        }
        assert_eq!(Format::guess(example.as_bytes()), Some(format), "{example}");
        let source = Cursor::new(example);
        if format.has_single_accesses() {
            let read = accesses(format, "example", source).unwrap();
            let read: Result<Vec<_>, _> = read.collect();
            assert!(read.expect("is read").len() > 1);
        } else {
            let read = profile(format, "example", source, Grain::default()).unwrap();
            assert!(!read.heat.is_empty(), "{}", format.word());
        }
    }
}
