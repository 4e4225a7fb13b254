//! Parses and prints the kernel's lists of processors and nodes, such as `0-3,8,10-11`, and reads such a list from a file; [`online_cpus`]
//! reads that of the online processors.

use std::path::Path;

use crate::sysfs::text;

/// Largest number accepted: beyond any machine, so a broken file cannot use much memory.
const LARGEST: u32 = 1 << 16;

/// Parses a list; None for invalid text. An empty text is an empty list.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last > LARGEST {
            return None;
        }
        numbers.extend(first..=last);
        // A list that names each number once is never longer; one that repeats them grows by a
        // quarter of a megabyte for eight letters.
        if numbers.len() > LARGEST as usize + 1 {
            return None;
        }
    }
    Some(numbers)
}

/// The list in a file; `None` where it cannot be read or is invalid.
#[must_use]
pub fn read(path: &Path) -> Option<Vec<u32>> {
    parse(&text(path)?)
}

/// Prints a list in the kernel's format: `0-2,8`. Consecutive numbers become a range.
#[must_use]
pub fn print(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let words = ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(",")
}

/// The online processors of sysfs under this root; without that file, processor numbers up to the
/// count that this program may use.
#[must_use]
pub fn online_cpus(root: &Path) -> Vec<u32> {
    read(&root.join("sys/devices/system/cpu/online")).unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count as u32).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, print};

    #[test]
    fn a_list_that_repeats_the_largest_range_is_refused_before_it_fills_the_memory() {
        assert_eq!(parse("0-65536").map(|list| list.len()), Some(65_537));
        assert_eq!(parse(&"0-65536,".repeat(1 << 20)), None);
    }

    #[test]
    fn a_list_is_written_with_ranges() {
        assert_eq!(print(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!(print(&[]), "");
        assert_eq!(print(&[u32::MAX]), u32::MAX.to_string());
    }

    #[test]
    fn ranges_and_gaps_are_read_and_nonsense_is_refused() {
        assert_eq!(parse("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse(""), Some(vec![]));
        for text in ["x", "3-1", "0-4294967295", "-", "1-2-3"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
