//! Lets a test report that this machine cannot run it.
//!
//! A skipped test counts as passed in most runners, and its message is lost there. So each one is also written
//! to the file that `ISOTHERM_SKIPS` names, a line `set<TAB>test<TAB>reason`, and `tests/skip/skips check`
//! compares the lines with `tests/skip/allowed.txt`, the list of tests that a machine may lack. Tests in other
//! languages write the same line.
//!
//! ```
//! fn the_fast_node_is_filled_first() {
//!     let nodes = 1;
//!     if nodes < 2 {
//!         return isotherm_skip::skip!("this machine has {nodes} node with memory");
//!     }
//! }
//! ```

use std::fs::OpenOptions;
use std::io::{self, Write};

/// Skips the test of this thread, with the formatted arguments as the reason.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {
        $crate::record("rust", &$crate::this_test(env!("CARGO_PKG_NAME")), &format!($($reason)+))
    };
}

/// The name of this thread's test, from the thread name that Rust's harness sets, after its package's.
pub fn this_test(package: &str) -> String {
    let thread = std::thread::current();
    format!(
        "{package}::{}",
        thread.name().unwrap_or("a thread without a name")
    )
}

/// Records that a test of a set was skipped.
///
/// # Panics
/// When `ISOTHERM_SKIPS` names a file that cannot be written: the test would count as passed.
pub fn record(set: &str, test: &str, reason: &str) {
    // On standard output itself: the harness discards the prints of a test that passes. A closed output is not
    // a failure.
    let _ = writeln!(io::stdout(), "skipped: {test}: {reason}");
    let Some(path) = std::env::var_os("ISOTHERM_SKIPS") else {
        return;
    };
    let line = line(set, test, reason);
    let written = OpenOptions::new().create(true).append(true).open(&path);
    written
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error: io::Error| panic!("{}: {error}", path.display()));
}

/// One line of the file. Tabs and line ends inside a field are replaced, because they would divide it.
fn line(set: &str, test: &str, reason: &str) -> String {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}\t{}\t{}\n", plain(set), plain(test), plain(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_stays_one_record() {
        assert_eq!(
            line("rust", "a::b", "no\tnodes\nhere"),
            "rust\ta::b\tno nodes here\n"
        );
    }

    #[test]
    fn a_test_is_named_by_its_package_and_path() {
        let expected = "isotherm-skip::tests::a_test_is_named_by_its_package_and_path";
        assert_eq!(this_test(env!("CARGO_PKG_NAME")), expected);
    }
}
