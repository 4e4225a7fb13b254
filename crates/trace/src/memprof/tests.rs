//! Tests that the text of `llvm-profdata` becomes sites with bytes and accesses, and that wrong text is refused with its line.

use super::read;
use crate::grain::Grain;
use isotherm_model::profile::Profile;
use isotherm_model::units::{Bytes, Nanos};

const RAW: &str = "MemprofProfile:
  Summary:
    Version: 5
  Records:
  -
    FunctionGUID: 7
    AllocSites:
    -
      Callstack:
      -
        Function: 7
        SymbolName: make_hot
        LineOffset: 1
        Column: 21
        Inline: 0
      -
        Function: 8
        SymbolName: <None>
        LineOffset: 3
        Column: 9
        Inline: 0
      MemInfoBlock:
        AllocCount: 4
        TotalAccessCount: 1000
        TotalSize: 400
        MaxSize: 100
        AllocTimestamp: 10
        DeallocTimestamp: 30
        NumLifetimeOverlaps: 1
";

fn profile(text: &'static str) -> Profile {
    read(text.as_bytes(), "x", Grain::default()).expect("is a profile")
}

fn failed(text: String) -> String {
    let source = std::io::Cursor::new(text);
    let error = read(source, "x", Grain::default()).expect_err("is refused");
    error.to_string()
}

#[test]
fn a_raw_profile_yields_its_site_with_the_most_bytes_that_can_have_been_live() {
    let profile = profile(RAW);
    let site = &profile.sites[0];
    assert_eq!(site.label(), "make_hot:+1:21 < 8:+3:9");
    assert_eq!((site.allocations, site.requested), (4, Bytes(400)));
    assert_eq!(site.peak_rss, Bytes(200));
    assert_eq!(profile.heat[0].accesses.0, 1000);
    assert_eq!(profile.span(), Nanos(20_000_000));
}

const INDEXED: &str = "---
HeapProfileRecords:
  - GUID:            _Z3foov
    AllocSites:
      - Callstack:
          - { Function: _Z3foov, LineOffset: 0, Column: 22, IsInlineFrame: false }
          - { Function: main, LineOffset: 2, Column: 5, IsInlineFrame: false }
        MemInfoBlock:
          TotalSize:                  2000
          AllocCount:                 2
          TotalLifetimeAccessDensity: 400
          TotalLifetime:              4000
    CallSites:
      - Frames:
          - { Function: main, LineOffset: 2, Column: 5, IsInlineFrame: false }
...
";

#[test]
fn accesses_that_were_not_counted_are_estimated_from_their_density_and_said_to_be() {
    let profile = profile(INDEXED);
    assert_eq!(profile.sites.len(), 1);
    // 400 / 100 accesses for a byte and second, 1000 bytes, 2 seconds each.
    assert_eq!(profile.heat[0].accesses.0, 8000);
    let problem = &profile.sources[0].warning;
    assert!(problem.contains("estimated"), "{problem}");
}

#[test]
fn a_site_that_is_printed_twice_counts_once_and_other_numbers_are_added() {
    let (head, record) = RAW.split_once("  Records:\n").unwrap();
    let twice = |second: &str| {
        let text = format!("{head}  Records:\n{record}{second}");
        let source = std::io::Cursor::new(text);
        read(source, "x", Grain::default()).expect("is a profile")
    };
    assert_eq!(twice(record), profile(RAW));
    let other = record.replace("TotalAccessCount: 1000", "TotalAccessCount: 5");
    let accesses = twice(&other)
        .heat
        .iter()
        .map(|heat| heat.accesses.0)
        .sum::<u64>();
    assert_eq!(accesses, 1005);
}

#[test]
fn accesses_are_spread_over_all_chunks_of_a_site() {
    let text = RAW
        .replace("400", "400000")
        .replace("MaxSize: 100", "MaxSize: 100000");
    let source = std::io::Cursor::new(text);
    let grain = Grain {
        chunk: Bytes(65_536),
        ..Grain::default()
    };
    let profile = read(source, "x", grain).unwrap();
    let heat: Vec<u64> = profile.heat.iter().map(|heat| heat.accesses.0).collect();
    assert_eq!(heat, [250, 250, 250, 250]);
}

#[test]
fn each_way_to_be_wrong_names_its_line() {
    let with = |from: &str, to: &str| failed(RAW.replace(from, to));
    for (error, what) in [
        (with("1000", "-1"), "x:24: TotalAccessCount is \"-1\""),
        (
            with("1000", "99999999999999999999"),
            "x:24: TotalAccessCount",
        ),
        (
            with("        TotalSize: 400\n", ""),
            "line 9 has no AllocCount or TotalSize",
        ),
        (with("TotalAccessCount", "Other"), "has no TotalAccessCount"),
        (with("Callstack", "Other"), "has no Callstack"),
        (
            with("AllocSites", "Other"),
            "x: it holds no allocation site",
        ),
        (with("AllocCount: 4", "AllocCount: *here"), "x:2"),
        (failed("a: [1, 2".to_owned()), "no YAML"),
        (failed("- ".repeat(40)), "nested"),
        (failed("[".repeat(1000)), "no YAML"),
        (failed("x".repeat(3 << 20)), "longer than"),
        (failed(String::new()), "no allocation site"),
    ] {
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_site_of_the_largest_size_is_cut_into_few_chunks() {
    let largest = u64::MAX.to_string();
    let text = RAW
        .replace("400", &largest)
        .replace("MaxSize: 100\n", &format!("MaxSize: {largest}\n"));
    let source = std::io::Cursor::new(text);
    let profile = read(source, "x", Grain::default()).unwrap();
    assert_eq!(profile.sites[0].peak_rss, Bytes(u64::MAX));
    assert!(profile.heat.len() <= 1 << 20, "{} rows", profile.heat.len());
}
