//! Tests what a recording keeps of data objects: heat that is finer than a chunk, and no more objects than its memory allows.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use isotherm_model::profile::Profile;
use tempfile::TempDir;

use support::{built, succeeds};

const KIB: u64 = 1 << 10;

/// An array of 8 MiB, of which 512 KiB from 1,000 KiB on are read at random, so often that the places of 16 KiB at both edges, of which half
/// is read, have enough samples.
const FINE: &str = r#"#include <stdio.h>
#include <stdlib.h>
enum { KIB = 1 << 10, COUNT = 8192 * KIB / 8, FROM = 1000 * KIB / 8, HOT = 512 * KIB / 8 };
int main(void) {
    double *array = malloc(COUNT * sizeof(double)), sum = 0;
    for (int i = 0; i < COUNT; i++) array[i] = i;
    unsigned random = 1;
    for (long i = 0; i < 4000000000; i++) {
        random = random * 1664525u + 1013904223u;
        sum += array[FROM + (random >> 8) % HOT];
    }
    printf("%f\n", sum);
    return 0;
}
"#;

/// An array of 4 MiB that is read throughout, beside 300,000 blocks of 256 KiB, more than a recorder keeps. They are never touched,
/// and not made faster than a recorder reads of them. The first 256 KiB of a site share an arena with other sites, and are no data objects if
/// they are several blocks: of blocks of 64 KiB four were neither kept nor folded.
const MANY: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { BLOCKS = 300000, AT_ONCE = 2000, COUNT = (4 << 20) / 8 };
static void *volatile block;
int main(void) {
    double *array = malloc(COUNT * sizeof(double)), sum = 0;
    for (int i = 0; i < COUNT; i++) array[i] = i;
    for (int i = 0; i < BLOCKS; i++) {
        block = malloc(256 << 10);
        if (i % AT_ONCE == 0) usleep(10000);
    }
    unsigned random = 1;
    for (int i = 0; i < 200000000; i++) {
        random = random * 1664525u + 1013904223u;
        sum += array[(random >> 8) % COUNT];
    }
    printf("%f\n", sum);
    return 0;
}
"#;

/// A directory with the program of this source, and its profile.
fn recorded(source: &str) -> (TempDir, Profile) {
    let directory = built(source);
    let record = ["record", "--cache", "0B", "-o", "app.iso", "--", "./app"];
    succeeds(&directory, &record);
    let path = directory.path().join("app.iso");
    let (profile, warnings) = isotherm_profile::read(&path).expect("a profile");
    assert!(warnings.is_empty(), "{warnings:?}");
    (directory, profile)
}

#[test]
fn a_part_may_be_smaller_than_the_chunk_of_the_profile() {
    let (directory, profile) = recorded(FINE);
    assert_eq!(profile.meta.chunk.0, 64 * KIB);
    let in_bins = profile.heat.iter().filter_map(|heat| {
        let bin = heat.object?.bin?;
        assert_eq!(bin.bytes.0, 4 * KIB);
        Some(heat.accesses.0)
    });
    if in_bins.sum::<u64>() < 100 {
        return isotherm_skip::skip!("threads cannot be sampled here");
    }
    let plan = [
        "plan",
        "app.iso",
        "--tiers",
        "emulated:cxl",
        "--fast",
        "1MiB",
        "-o",
        "app.plan",
    ];
    succeeds(&directory, &plan);
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let plan = isotherm_plan_text::read(&text).expect("a plan");
    let parts: Vec<_> = plan
        .assignments
        .iter()
        .flat_map(|site| &site.parts)
        .collect();
    let hot = parts
        .iter()
        .find(|part| part.value * 2 > plan.standing.total);
    let hot = hot.unwrap_or_else(|| panic!("{text}"));
    let (start, end) = (hot.start.0 / KIB, hot.end.0 / KIB);
    assert!(
        (992..=1004).contains(&start) && (1508..=1520).contains(&end),
        "{text}"
    );
}

#[test]
fn more_objects_than_are_told_apart_are_counted_and_reported() {
    let (directory, profile) = recorded(MANY);
    let all = |name: &str| {
        let counts = profile.counts.iter().filter(|count| count.name == name);
        counts.map(|count| count.value).sum::<u64>()
    };
    let (folded, lost) = (all("data_objects_folded"), all("data_objects_lost"));
    // 300,001 objects, of which 262,144 are kept. Where many were overwritten before they were read, none need be folded.
    let too_many = 300_001 - (1 << 18);
    match folded {
        0 => assert!(lost >= too_many, "{lost} lost"),
        _ => assert_eq!(folded + lost, too_many, "{folded} folded, {lost} lost"),
    }
    let known = profile.heat.iter().filter_map(|heat| heat.object);
    assert!(known.clone().all(|object| object.range.bytes.0 >= 64 * KIB));
    let largest = known.map(|object| object.range.bytes.0).max();
    assert!(
        largest.is_none_or(|bytes| bytes == 4096 * KIB),
        "the largest is kept: {largest:?}"
    );
    let report = succeeds(&directory, &["report", "--text", "app.iso"]);
    let text = String::from_utf8(report.stdout).expect("text");
    assert!(
        text.contains("more data objects than a recorder keeps"),
        "{text}"
    );
}
