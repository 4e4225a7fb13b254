//! Counts the samples of processes that run without the runtime, whose memory has no sites: `WithoutRuntime` makes a warning of them in the
//! report of a live run where they are at least five, and a twentieth of all samples.
//!
//! A launcher that clears its environment starts such processes (`env -i`, `sudo`), and a script whose program is linked statically.

use std::collections::BTreeMap;

use isotherm_model::batch::{ObservedAccess, Process};

use crate::processes::Processes;

/// A warning needs at least `FEWEST` samples, and one of `PART` of all samples: a runtime that is not ready yet, and small helpers, have
/// fewer.
const FEWEST: u64 = 5;
const PART: u64 = 20;

/// The samples of a run, by the process images without a session file at their time.
#[derive(Debug, Default)]
pub(super) struct WithoutRuntime {
    all: u64,
    images: BTreeMap<Process, Image>,
}

/// One such process image.
#[derive(Debug)]
struct Image {
    samples: u64,
    /// The kernel's name of its program; empty where no exec was recorded.
    name: String,
}

impl WithoutRuntime {
    /// Counts the samples of an epoch.
    pub(super) fn count(
        &mut self,
        accesses: &[ObservedAccess],
        processes: &Processes,
        has_file: impl Fn(Process) -> bool,
    ) {
        self.all += accesses.len() as u64;
        for access in accesses {
            let process = access.process;
            if has_file(process) {
                continue;
            }
            let image = self.images.entry(process).or_insert_with(|| Image {
                samples: 0,
                name: processes.name(process.pid).to_owned(),
            });
            image.samples += 1;
        }
    }

    /// A sentence on the images that have no session file by now; empty if they have few samples.
    pub(super) fn warning(&self, has_file: impl Fn(Process) -> bool) -> String {
        let images = self.images.iter();
        let without: Vec<_> = images.filter(|(process, _)| !has_file(**process)).collect();
        let samples: u64 = without.iter().map(|(_, image)| image.samples).sum();
        let most = without.iter().max_by_key(|(_, image)| image.samples);
        let Some((process, image)) = most.filter(|_| samples >= (self.all / PART).max(FEWEST))
        else {
            return String::new();
        };
        let name = match image.name.as_str() {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        let others = match without.len() - 1 {
            0 => String::new(),
            1 => " and 1 other".to_owned(),
            others => format!(" and {others} others"),
        };
        format!(
            "process {}{name}{others} ran without libisotherm.so, so that {samples} of {} samples have no site: the program is linked statically, or \
             it was started with another environment (env -i, sudo, a script that unsets LD_PRELOAD); start it directly",
            process.pid, self.all
        )
    }
}

#[cfg(test)]
mod tests {
    use super::WithoutRuntime;
    use crate::processes::Processes;
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::source_kind::SourceKind;
    use std::path::Path;

    fn samples(process: Process, count: usize) -> Vec<ObservedAccess> {
        let timer = (1, CountUnit::Time);
        vec![ObservedAccess::at((process, 0x1000), SourceKind::Timer, timer); count]
    }

    #[test]
    fn a_program_that_its_launcher_started_without_the_runtime_is_named() {
        let mut processes = Processes::new(7, Path::new("/nonexistent"));
        processes.rename(7, "app".to_owned());
        let (launcher, program) = (Process { pid: 7, image: 0 }, Process { pid: 7, image: 1 });
        let mut without = WithoutRuntime::default();
        let is_launcher = |process| process == launcher;
        without.count(&samples(launcher, 3), &processes, is_launcher);
        assert_eq!(without.warning(is_launcher), "");
        without.count(&samples(program, 97), &processes, is_launcher);
        let warning = without.warning(is_launcher);
        assert!(
            warning.starts_with("process 7 (app) ran without libisotherm.so, so that 97 of 100 "),
            "{warning}"
        );
        assert_eq!(without.warning(|_| true), "", "its file came later");
    }

    #[test]
    fn few_samples_of_small_helpers_make_no_warning() {
        let processes = Processes::new(7, Path::new("/nonexistent"));
        let (program, helper) = (Process { pid: 7, image: 0 }, Process { pid: 8, image: 0 });
        let mut without = WithoutRuntime::default();
        let is_program = |process| process == program;
        without.count(&samples(helper, 4), &processes, is_program);
        assert_eq!(without.warning(is_program), "", "too few");
        without.count(&samples(helper, 30), &processes, is_program);
        without.count(&samples(program, 2_000), &processes, is_program);
        assert_eq!(without.warning(is_program), "", "too small a part");
    }
}
