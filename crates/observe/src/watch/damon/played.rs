//! The files of DAMON as ordinary ones, for tests.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::admin::ADMIN;

/// Regions that can be told of.
const REGIONS: usize = 4;

/// A machine with the files of so many kdamonds.
pub(in crate::watch) fn machine(
    kdamonds: usize,
    count: &str,
    operations: &str,
    pid: &str,
) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let admin = root.path().join(ADMIN);
    for number in 0..kdamonds {
        let context = admin.join(format!("{number}/contexts/0"));
        let regions = (0..REGIONS).flat_map(|region| {
            ["schemes/0/tried_regions", "targets/0/regions"]
                .map(|directory| format!("{directory}/{region}"))
        });
        let others = [
            "monitoring_attrs/intervals",
            "monitoring_attrs/nr_regions",
            "schemes/0/access_pattern/sz",
            "schemes/0/access_pattern/nr_accesses",
            "schemes/0/access_pattern/age",
        ];
        for directory in regions.chain(others.map(str::to_owned)) {
            fs::create_dir_all(context.join(directory)).unwrap();
        }
        fs::write(context.join("avail_operations"), operations).unwrap();
        fs::write(admin.join(format!("{number}/pid")), pid).unwrap();
    }
    fs::write(admin.join("nr_kdamonds"), count).unwrap();
    root
}

/// What a file of DAMON holds; nothing where it is not there.
pub(super) fn text(root: &Path, file: &str) -> String {
    fs::read_to_string(root.join(ADMIN).join(file)).unwrap_or_default()
}

/// Has the first kdamond tell these regions and how often each was found accessed.
pub(in crate::watch) fn tell(root: &Path, regions: &[(Range<u64>, u64)]) {
    let tried = root
        .join(ADMIN)
        .join("0/contexts/0/schemes/0/tried_regions");
    for (number, (range, accesses)) in regions.iter().enumerate() {
        let directory = tried.join(number.to_string());
        fs::write(directory.join("start"), range.start.to_string()).unwrap();
        fs::write(directory.join("end"), range.end.to_string()).unwrap();
        fs::write(directory.join("nr_accesses"), accesses.to_string()).unwrap();
    }
}
