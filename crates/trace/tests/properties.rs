//! Tests properties that every trace has, in every format.

use std::fmt::Write;
use std::io::Cursor;

use isotherm_model::trace::Access;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_trace::{Format, Grain, accesses, profile};
use proptest::prelude::*;

/// Accesses with the first one at time zero, as readers count.
fn any_trace() -> impl Strategy<Value = Vec<Access>> {
    let step = (0..2_000_000_000_u64, any::<u64>(), any::<bool>());
    prop::collection::vec(step, 1..50).prop_map(|steps| {
        let mut time = 0;
        let access = |(index, (after, address, write)): (usize, (u64, u64, bool))| {
            time += if index == 0 { 0 } else { after };
            Access {
                time: Nanos(time),
                address,
                write,
            }
        };
        steps.into_iter().enumerate().map(access).collect()
    })
}

fn read(format: Format, text: &str) -> Vec<Access> {
    let source = Cursor::new(text.to_owned());
    let accesses = accesses(format, "x", source).expect("is of its format");
    accesses.map(|access| access.expect("is read")).collect()
}

proptest! {
    #[test]
    fn text_is_read_back_whatever_its_separator_unit_and_start(
        trace in any_trace(),
        start in 0..1_000_000_000_u64,
        separator in prop::sample::select(vec![",", "\t", "  ", ", "]),
    ) {
        let mut whole = format!("time_ns{separator}address{separator}access\n");
        let mut decimal = format!("access{separator}address_hex{separator}time_s\r\n");
        for access in &trace {
            let time = start + access.time.0;
            let word = if access.write { "W" } else { "load" };
            writeln!(whole, "{time}{separator}{:#x}{separator}{word}", access.address).unwrap();
            let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
            let address = access.address;
            write!(
                decimal,
                "{word}{separator}{address:x}{separator}{seconds}.{rest:09}\r\n"
            ).unwrap();
        }
        for text in [whole, decimal] {
            prop_assert_eq!(Format::guess(text.as_bytes()), Some(Format::Text));
            prop_assert_eq!(read(Format::Text, &text), trace.clone());
        }
    }

    #[test]
    fn perf_script_is_read_back_with_or_without_symbols_and_processor(trace in any_trace()) {
        let mut bare = String::new();
        let mut full = String::new();
        for access in &trace {
            let (seconds, rest) = (access.time.0 / 1_000_000_000, access.time.0 % 1_000_000_000);
            let address = access.address;
            let event = if access.write { "cpu/mem-stores/P:" } else { "cpu/mem-loads/P:" };
            writeln!(bare, "app 7 {seconds}.{rest:09}: {event} {address:x}").unwrap();
            writeln!(
                full,
                "a b 7/8 [003] {seconds}.{rest:09}: 10 {event} {address:x} x+0x1 5555555551f3 f (/bin/a)"
            ).unwrap();
        }
        let known: Vec<Access> = trace.iter().filter(|access| access.address != 0).copied().collect();
        prop_assume!(known.len() == trace.len());
        prop_assert_eq!(read(Format::PerfScript, &bare), trace.clone());
        prop_assert_eq!(read(Format::PerfScript, &full), trace);
    }

    #[test]
    fn no_access_of_a_damon_region_is_lost_or_invented(
        regions in prop::collection::vec((0..64_u64, 1..200_u64, 0..20_u64), 1..20),
        chunk in 12..21_u32,
    ) {
        let mut text = String::new();
        let (mut at, mut expected) = (1 << 30, 0);
        for (gap, pages, found) in &regions {
            let (start, end) = (at + gap * 4096, at + (gap + pages) * 4096);
            writeln!(
                text,
                "k 1 [000] 1.5: damon_aggregated: target_id=9 nr_regions={} {start}-{end}: {found}",
                regions.len()
            ).unwrap();
            expected += pages * found;
            at = end;
        }
        let grain = Grain { chunk: Bytes(1 << chunk), ..Grain::default() };
        let profile = profile(Format::DamonTrace, "x", Cursor::new(text), grain).unwrap();
        let sum: u64 = profile.heat.iter().map(|heat| heat.accesses.0).sum();
        prop_assert_eq!(sum, expected);
        let pages: u64 = regions.iter().map(|(_, pages, _)| pages * 4096).sum();
        prop_assert_eq!(profile.footprint().0, Bytes(pages));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Format::guess(&bytes);
        for format in Format::ALL {
            let source = Cursor::new(bytes.clone());
            let error = if format.has_single_accesses() {
                accesses(format, "x", source).map(|mut read| read.find_map(Result::err))
            } else {
                profile(format, "x", source, Grain::default()).map(|_| None)
            };
            let error = error.unwrap_or_else(Some);
            prop_assert!(error.is_some_and(|error| error.to_string().starts_with('x')));
        }
    }
}
