//! Findings on recorded machines with invented answers of the kernel, and on this machine.

#[path = "support/machine.rs"]
mod machine;

use std::io;
use std::path::Path;

use isotherm_observe::doctor::{Examination, State, examine, examine_with};
use isotherm_observe::live::Source;
use isotherm_observe::probe::{Probe, TimerTrial};
use isotherm_observe::resident::Method;
use isotherm_sys::perf::Event;
use isotherm_sys::userfaultfd::OpenError;
use tempfile::TempDir;

/// A kernel that allows everything, or nothing.
struct Kernel {
    allows: bool,
}

impl Kernel {
    fn answer<T>(&self, value: T) -> io::Result<T> {
        match self.allows {
            true => Ok(value),
            false => Err(io::Error::from_raw_os_error(13)),
        }
    }
}

impl Probe for Kernel {
    fn timer(&self) -> io::Result<TimerTrial> {
        self.answer(TimerTrial {
            samples: 5,
            with_registers: 5,
        })
    }

    fn event(&self, _: &Event) -> io::Result<()> {
        self.answer(())
    }

    fn clear_refs(&self) -> io::Result<()> {
        self.answer(())
    }

    fn page_tables(&self) -> io::Result<Method> {
        self.answer(Method::Read)
    }

    fn userfaultfd(&self) -> Result<(), OpenError> {
        match self.allows {
            true => Ok(()),
            false => Err(OpenError::NoMove),
        }
    }
}

/// A recorded machine and the directory that holds it.
fn recorded(name: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let text = std::fs::read_to_string(path.join(format!("{name}.machine")));
    machine::expand(&text.expect("a machine of this name"), root.path()).expect("expands");
    root
}

fn state<'a>(found: &'a Examination, feature: &str) -> &'a State {
    let finding = found.findings.iter().find(|it| it.feature == feature);
    &finding.expect("it was looked at").state
}

#[test]
fn hardware_comes_before_the_timer_and_the_timer_before_the_rest() {
    let allows = Kernel { allows: true };
    let chosen = |name| examine_with(recorded(name).path(), &allows).chosen();
    assert_eq!(chosen("two-nodes-hmat"), Some(Source::Pebs));
    assert_eq!(chosen("cxl-without-cpus"), Some(Source::Ibs));
    assert_eq!(chosen("one-node"), Some(Source::Timer));
}

#[test]
fn where_nothing_is_allowed_nothing_is_chosen_and_each_line_says_what_helps() {
    let found = examine_with(recorded("two-nodes-hmat").path(), &Kernel { allows: false });
    assert_eq!(found.chosen(), None);
    for finding in &found.findings {
        if let State::Missing { why, remedy } | State::Degraded { why, remedy } = &finding.state {
            assert!(!why.is_empty() && !remedy.is_empty(), "{finding}");
        }
    }
    let paranoid = state(&found, "kernel.perf_event_paranoid");
    assert!(matches!(paranoid, State::Degraded { why, .. } if why.starts_with('4')));
}

#[test]
fn settings_are_read_from_the_recorded_machine() {
    let kernel = Kernel { allows: true };
    let found = examine_with(recorded("cxl-without-cpus").path(), &kernel);
    assert!(matches!(
        state(&found, "transparent huge pages"),
        State::Degraded { .. }
    ));
    let found = examine_with(recorded("two-nodes-hmat").path(), &kernel);
    assert!(
        matches!(state(&found, "address space"), State::Degraded { why, .. } if why.contains("overcommit"))
    );
    let found = examine_with(recorded("no-sysfs").path(), &kernel);
    assert!(matches!(
        state(&found, "transparent huge pages"),
        State::Missing { .. }
    ));
}

#[test]
fn this_machine_is_examined_without_a_panic_and_every_source_is_ranked_once() {
    let found = examine(Path::new("/"));
    for finding in &found.findings {
        println!("{finding}");
    }
    let mut sources: Vec<Source> = found.ranking.iter().map(|it| it.source).collect();
    sources.dedup();
    assert_eq!(sources.len(), 6);
}
