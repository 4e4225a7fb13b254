//! The source `instrumented`: accesses that the program counts itself, because `isotherm-cc --profile`
//! compiled it ([`isotherm_abi::accesses`]).

use std::path::Path;

use isotherm_abi::accesses::{SECTION, VERSION};
use isotherm_model::batch::{Sample, SourceReport};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_sys::files::open_input;
use object::read::ReadCache;
use object::{Object, ObjectSection};

use crate::clock::Clock;
use crate::described::PROGRAM_BYTES;
use crate::perf_source::empty_report;
use crate::sessions::Sessions;
use crate::source::Source;

/// What it costs the program.
const COST: &str = "at one access in 1,024 about 1.1 times the run time, with every access counted 8 to 20 times \
                    (stencil and random updates, 2-core EPYC virtual machine, Linux 6.18)";

/// What it costs with a cache filter.
const FILTERED_COST: &str = "whatever the period about 1.9 to 2.5 times the run time (stencil and random updates, \
                             2-core EPYC virtual machine, Linux 6.18)";

/// Whether a program counts its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// It does not, or is no ELF file.
    None,
    /// It does, by functions that the runtime has.
    Current,
    /// It was built for this version of the functions, which the runtime does not have.
    Other(u32),
}

/// Whether a program or library counts its accesses, and for which version of the runtime.
#[must_use]
pub fn instrumentation(path: &Path) -> Instrumentation {
    match counting_version(path) {
        None => Instrumentation::None,
        Some(VERSION) => Instrumentation::Current,
        Some(other) => Instrumentation::Other(other),
    }
}

/// The first word of the section; all others are the same, because different versions do not link.
fn counting_version(path: &Path) -> Option<u32> {
    let cache = ReadCache::new(open_input(path, PROGRAM_BYTES).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let section = file.section_by_name(SECTION)?;
    let word = section.data().ok()?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*word))
}

/// The counts of all images of a run.
#[derive(Debug)]
pub(crate) struct Instrumented {
    report: SourceReport,
    /// Samples that were counted, but found no room in a batch.
    dropped: u64,
}

impl Instrumented {
    /// Nothing read yet; the program counts what misses a filter of this size, where there is one.
    pub(crate) fn new(filter: Option<Bytes>) -> Self {
        let cost = filter.map_or(COST.to_owned(), |size| {
            format!("{FILTERED_COST}; only accesses that miss a cache filter of {size} in each thread are counted")
        });
        Self {
            report: empty_report(Source::Instrumented.name(), cost),
            dropped: 0,
        }
    }

    /// Adds what was counted since the last call, a sample a page, while there are less than `most`.
    pub(crate) fn read(
        &mut self,
        clock: &dyn Clock,
        sessions: &mut Sessions,
        samples: &mut Vec<Sample>,
        most: usize,
    ) {
        let begin = clock.busy();
        sessions.read_accesses(|process, address, counted| {
            self.report.taken = self.report.taken.saturating_add(counted.samples);
            if samples.len() >= most {
                self.dropped = self.dropped.saturating_add(counted.samples);
                return;
            }
            samples.push(Sample {
                process,
                address,
                weight: counted.accesses,
            });
        });
        self.report.usable = self.report.taken.saturating_sub(self.dropped);
        self.report.lost = sessions.accesses_lost().saturating_add(self.dropped);
        self.report.cost += clock.busy().saturating_sub(begin);
    }

    /// What it has delivered of a program that used this much processor time.
    pub(crate) fn report(&self, cpu: Nanos, a_while: Nanos) -> SourceReport {
        let mut report = self.report.clone();
        if report.taken == 0 && cpu > a_while {
            report.trouble = format!(
                "it delivered nothing although the program used {cpu} of processor time; was the \
                 program compiled with isotherm-cc --profile, and of this version?"
            );
        } else if report.lost > 0 {
            let samples = counted(report.lost, "sample");
            report.trouble = format!("missing for want of room: {samples}");
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::{Instrumentation, Instrumented, instrumentation};
    use isotherm_model::units::Nanos;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn only_a_program_with_the_section_counts() {
        let own = std::env::current_exe().expect("a path");
        for path in [
            &own,
            Path::new("/nonexistent"),
            Path::new("/proc/self/environ"),
        ] {
            assert_eq!(instrumentation(path), Instrumentation::None, "{path:?}");
        }
    }

    /// An object file with the section.
    fn built_for(word: u32) -> Instrumentation {
        let directory = tempfile::tempdir().expect("a directory");
        let [source, path] = ["counts.c", "counts.o"].map(|name| directory.path().join(name));
        let section = isotherm_abi::accesses::SECTION;
        let text =
            format!("const unsigned word __attribute__((section(\"{section}\"))) = {word};\n");
        std::fs::write(&source, text).expect("writes");
        let mut compiler = Command::new("cc");
        let status = compiler.arg("-c").arg(source).arg("-o").arg(&path).status();
        assert!(status.expect("a compiler").success());
        instrumentation(&path)
    }

    #[test]
    fn a_program_that_was_built_for_another_version_is_told_apart() {
        let current = isotherm_abi::accesses::VERSION;
        assert_eq!(built_for(current), Instrumentation::Current);
        assert_eq!(built_for(current - 1), Instrumentation::Other(current - 1));
    }
    #[test]
    fn silence_of_a_busy_program_is_named() {
        let source = Instrumented::new(None);
        let quiet = source.report(Nanos(5), Nanos(10));
        assert_eq!((quiet.trouble.as_str(), quiet.taken), ("", 0));
        let trouble = source.report(Nanos(20), Nanos(10)).trouble;
        assert!(trouble.contains("isotherm-cc --profile"), "{trouble}");
    }
}
