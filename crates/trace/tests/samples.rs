//! Tests larger recordings of real programs from the directory `../shared/samples` beside the
//! repository, against the numbers in its README. Skipped with a message if the directory does not
//! exist.

use std::path::{Path, PathBuf};
use std::process::Command;

use isotherm_model::trace::Access;
use isotherm_trace::{Grain, Trace, open};

/// The sample, unpacked if necessary; `None` if it does not exist.
fn sample(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let path = root.join(name);
    if !path.exists() {
        isotherm_skip::skip!("there is no {}", path.display());
        return None;
    }
    if !name.ends_with(".xz") {
        return Some(path);
    }
    let unpacked = Command::new("xz").arg("-dc").arg(&path).output();
    let Ok(unpacked) = unpacked.as_ref().map(|output| &output.stdout) else {
        isotherm_skip::skip!("there is no xz to unpack {name}");
        return None;
    };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace('/', "-"));
    std::fs::write(&target, unpacked).unwrap();
    Some(target)
}

fn all_accesses(path: &Path) -> Vec<Access> {
    match open(path, None, Grain::default()) {
        Ok(Trace::Accesses(accesses)) => accesses.map(|access| access.unwrap()).collect(),
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// Samples and pages within a range.
fn within(accesses: &[Access], start: u64, end: u64) -> (usize, usize) {
    let inside = accesses.iter().map(|access| access.address);
    let mut pages: Vec<u64> = inside
        .filter(|address| (start..end).contains(address))
        .collect();
    let samples = pages.len();
    pages.iter_mut().for_each(|page| *page /= 4096);
    pages.sort_unstable();
    pages.dedup();
    (samples, pages.len())
}

#[test]
fn page_faults_of_three_objects_are_found_in_the_recording_and_in_its_print() {
    for name in ["own/tri.perf.data", "own/tri.script.txt.xz"] {
        let Some(path) = sample(name) else { return };
        let accesses = all_accesses(&path);
        assert_eq!(accesses.len(), 1_396, "{name}");
        let cold = within(&accesses, 0x7fff_f7d9_0000, 0x7fff_f7dd_0000);
        let warm = within(&accesses, 0x7fff_f7d1_0000, 0x7fff_f7d9_0000);
        let hot = within(&accesses, 0x7fff_f7c1_0000, 0x7fff_f7d1_0000);
        assert_eq!(
            [cold, warm, hot],
            [(64, 64), (256, 128), (1_024, 256)],
            "{name}"
        );
    }
}

#[test]
fn of_twelve_posted_lines_eleven_have_a_data_address() {
    let Some(path) = sample("excerpts/intel_mem_loads.perf-script.txt") else {
        return;
    };
    let Ok(Trace::Accesses(mut accesses)) = open(&path, None, Grain::default()) else {
        panic!("is a trace");
    };
    let addresses: Vec<u64> = accesses
        .by_ref()
        .map(|access| access.unwrap().address)
        .collect();
    assert_eq!(addresses.len(), 11);
    assert!(!addresses.contains(&0x7f0a_aaa0_aae0));
    assert_eq!(accesses.tally().without_address, 1);
}

#[test]
fn all_regions_of_a_damon_recording_are_read_from_each_of_its_forms() {
    for (name, regions) in [
        ("damon/perf.data.script.xz", Some(10_260)),
        ("damon/damon.data", None),
    ] {
        let Some(path) = sample(name) else { return };
        let Ok(Trace::Profile(profile)) = open(&path, None, Grain::default()) else {
            panic!("{name} is a profile");
        };
        assert!(!profile.heat.is_empty(), "{name}");
        let taken = profile.sources[0].taken;
        assert!(
            regions.is_none_or(|regions| taken == regions),
            "{name}: {taken}"
        );
    }
}

#[test]
fn a_recording_of_tracepoints_is_refused_with_the_way_to_read_it() {
    let Some(path) = sample("damon/perf.data.xz") else {
        return;
    };
    let error = open(&path, None, Grain::default()).map(drop).unwrap_err();
    assert!(error.to_string().contains("perf script -i FILE"), "{error}");
}
