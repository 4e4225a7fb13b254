//! Tests of the findings on recorded machines with a fake kernel, and on this machine.

#[path = "../../../tests/machines/expand.rs"]
mod machine;

use std::io;
use std::path::Path;

use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;
use isotherm_observe::counters::CounterEvent;
use isotherm_observe::doctor::{
    Examination, FeatureState, best_samples, best_source, examine, examine_with,
};
use isotherm_observe::probe::{EventTrial, Probe};
use isotherm_observe::resident::ResidencyMethod;
use isotherm_sys::perf::PerfEventAttributes;
use isotherm_sys::userfaultfd::OpenError;
use tempfile::TempDir;

/// A kernel that allows everything, or nothing.
struct Kernel {
    allows: bool,
    trial: EventTrial,
}

impl Kernel {
    const fn that_allows(allows: bool) -> Self {
        let trial = EventTrial {
            samples: 6,
            with_registers: 5,
            in_memory: 5,
            with_level: 5,
        };
        Self { allows, trial }
    }
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
    fn sample_cost(&self) -> io::Result<Nanos> {
        self.answer(Nanos(2_000))
    }

    fn event(&self, _: &PerfEventAttributes) -> io::Result<EventTrial> {
        self.answer(self.trial)
    }

    fn counter(&self, _: &CounterEvent) -> io::Result<()> {
        self.answer(())
    }

    fn clear_refs(&self) -> io::Result<()> {
        self.answer(())
    }

    fn page_tables(&self) -> io::Result<ResidencyMethod> {
        self.answer(ResidencyMethod::Read)
    }

    fn userfaultfd(&self) -> Result<(), OpenError> {
        match self.allows {
            true => Ok(()),
            false => Err(OpenError::NoMove),
        }
    }
}

/// Unpacks a recorded machine; the result is its directory.
fn recorded(name: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let text = std::fs::read_to_string(path.join(format!("{name}.machine")));
    machine::expand(&text.expect("a machine of this name"), root.path()).expect("expands");
    root
}

fn state<'a>(found: &'a Examination, feature: &str) -> &'a FeatureState {
    let finding = found.findings.iter().find(|it| it.feature == feature);
    &finding.expect("it was looked at").state
}

#[test]
fn hardware_comes_before_the_timer_and_the_timer_before_the_rest() {
    let allows = Kernel::that_allows(true);
    let chosen = |name| examine_with(recorded(name).path(), &allows).chosen();
    assert_eq!(chosen("two-nodes-hmat"), Some(SourceKind::Pebs));
    assert_eq!(chosen("cxl-without-cpus"), Some(SourceKind::Ibs));
    assert_eq!(chosen("one-node"), Some(SourceKind::Timer));
}

/// A kernel that answers only queries about events.
struct EventsOnly(Kernel);

impl Probe for EventsOnly {
    fn timer(&self) -> io::Result<EventTrial> {
        panic!("the timer is what is left, tried or not")
    }

    fn sample_cost(&self) -> io::Result<Nanos> {
        panic!("the timer is what is left, whatever it costs")
    }

    fn event(&self, event: &PerfEventAttributes) -> io::Result<EventTrial> {
        self.0.event(event)
    }

    fn counter(&self, _: &CounterEvent) -> io::Result<()> {
        panic!("counters are no samples")
    }

    fn clear_refs(&self) -> io::Result<()> {
        panic!("accessed bits are no samples")
    }

    fn page_tables(&self) -> io::Result<ResidencyMethod> {
        panic!("page tables are no samples")
    }

    fn userfaultfd(&self) -> Result<(), OpenError> {
        panic!("trapped pages are no samples")
    }
}

#[test]
fn the_best_samples_are_those_of_the_doctor_and_nothing_else_is_tried_for_them() {
    for allows in [true, false] {
        for name in ["two-nodes-hmat", "cxl-without-cpus", "one-node"] {
            let root = recorded(name);
            let best = best_samples(root.path(), &EventsOnly(Kernel::that_allows(allows)));
            let whole = examine_with(root.path(), &Kernel::that_allows(allows));
            assert_eq!(best, whole.chosen().unwrap_or(SourceKind::Timer), "{name}");
        }
    }
}

#[test]
fn the_best_source_is_the_one_that_the_doctor_chooses() {
    for allows in [true, false] {
        for name in ["two-nodes-hmat", "cxl-without-cpus", "one-node"] {
            let (root, kernel) = (recorded(name), Kernel::that_allows(allows));
            let whole = examine_with(root.path(), &kernel);
            assert_eq!(best_source(root.path(), &kernel), whole.chosen(), "{name}");
        }
    }
}

#[test]
fn where_nothing_is_allowed_nothing_is_chosen_and_each_line_says_what_helps() {
    let found = examine_with(
        recorded("two-nodes-hmat").path(),
        &Kernel::that_allows(false),
    );
    assert_eq!(found.chosen(), None);
    for finding in &found.findings {
        if let FeatureState::Missing { why, remedy } | FeatureState::Degraded { why, remedy } =
            &finding.state
        {
            assert!(!why.is_empty() && !remedy.is_empty(), "{finding:?}");
        }
    }
    let paranoid = state(&found, "kernel.perf_event_paranoid");
    assert!(matches!(paranoid, FeatureState::Degraded { why, .. } if why.starts_with('4')));
}

#[test]
fn settings_are_read_from_the_recorded_machine() {
    let kernel = Kernel::that_allows(true);
    let found = examine_with(recorded("cxl-without-cpus").path(), &kernel);
    assert!(matches!(
        state(&found, "transparent huge pages"),
        FeatureState::Degraded { .. }
    ));
    let found = examine_with(recorded("two-nodes-hmat").path(), &kernel);
    assert!(
        matches!(state(&found, "address space"), FeatureState::Degraded { why, .. } if why.contains("overcommit"))
    );
    let found = examine_with(recorded("no-sysfs").path(), &kernel);
    assert!(matches!(
        state(&found, "transparent huge pages"),
        FeatureState::Missing { .. }
    ));
}

#[test]
fn what_counts_the_traffic_of_memory_is_found_and_what_sources_rest_by_is_said() {
    let allows = Kernel::that_allows(true);
    for (name, events) in [("two-sockets", 8), ("nps4", 2), ("grace-hopper", 2)] {
        let found = examine_with(recorded(name).path(), &allows);
        assert!(matches!(
            state(&found, "memory controllers"),
            FeatureState::Available(_)
        ));
        let controllers = found
            .findings
            .iter()
            .find(|it| it.feature == "memory controllers");
        let said = controllers.map_or("", |it| it.state.detail());
        assert_eq!(said, format!("counted by {events} events"), "{name}");
    }
    // A user without the right to open events may still read resctrl, where it is mounted.
    let forbids = Kernel::that_allows(false);
    let found = examine_with(recorded("two-sockets").path(), &forbids);
    assert!(matches!(
        state(&found, "resctrl bandwidth"),
        FeatureState::Available(_)
    ));
    let rests = found
        .findings
        .iter()
        .find(|it| it.feature == "sources that may rest");
    let said = rests.map_or("", |it| it.state.detail());
    assert!(
        said.contains("trace samples by resctrl bandwidth"),
        "{said}"
    );
    let found = examine_with(recorded("nps4").path(), &forbids);
    let rests = state(&found, "sources that may rest");
    assert!(
        matches!(rests, FeatureState::Degraded { why, .. } if why.contains("never")),
        "{rests:?}"
    );
}

#[test]
fn compressed_memory_is_found_and_without_it_the_remedy_fits_the_kernel() {
    let machine = recorded("one-node");
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let found = || examine_with(machine.path(), &Kernel::that_allows(true));
    let remedy = |found: &Examination| match state(found, "compressed memory") {
        FeatureState::Missing { remedy, .. } | FeatureState::Degraded { remedy, .. } => {
            remedy.clone()
        }
        FeatureState::Available(_) => "available".to_owned(),
    };
    assert!(remedy(&found()).contains("modprobe zram"));
    write("sys/block/zram0/mm_stat", "8192 4000 8192 0 0 0 0 0 0\n");
    assert!(remedy(&found()).starts_with("isotherm tiers --make-compressed"));
    let heading = "Filename Type Size Used Priority\n";
    write(
        "proc/swaps",
        &format!("{heading}/dev/sda2 partition 1000 0 -2\n"),
    );
    assert!(remedy(&found()).contains("/sys/module/zswap/parameters/enabled"));
    write(
        "proc/swaps",
        &format!("{heading}/dev/zram0 partition 1000 0 100\n"),
    );
    assert_eq!(remedy(&found()), "available");
}

#[test]
fn kdamonds_that_somebody_has_set_up_are_told_from_none() {
    let allows = Kernel::that_allows(true);
    let root = tempfile::tempdir().expect("a directory");
    let of = |root: &Path| state(&examine_with(root, &allows), "DAMON").clone();
    assert!(
        matches!(of(root.path()), FeatureState::Missing { remedy, .. } if remedy.contains("CONFIG_DAMON_SYSFS"))
    );
    let kdamonds = root.path().join("sys/kernel/mm/damon/admin/kdamonds");
    std::fs::create_dir_all(&kdamonds).expect("makes");
    std::fs::write(kdamonds.join("nr_kdamonds"), "0\n").expect("writes");
    assert!(matches!(of(root.path()), FeatureState::Available(_)));
    std::fs::write(kdamonds.join("nr_kdamonds"), "2\n").expect("writes");
    assert!(
        matches!(of(root.path()), FeatureState::Degraded { why, .. } if why.starts_with("2 kdamonds"))
    );
}

#[test]
fn balancing_that_is_off_is_told_from_a_kernel_without_it() {
    let allows = Kernel::that_allows(true);
    let machine = recorded("two-nodes-hmat");
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let of = |feature: &str, kernel: &Kernel| {
        state(&examine_with(machine.path(), kernel), feature).clone()
    };
    let faults = |kernel: &Kernel| of("hint faults", kernel);
    let _ = std::fs::remove_file(machine.path().join("proc/sys/kernel/numa_balancing"));
    assert!(
        matches!(faults(&allows), FeatureState::Missing { remedy, .. } if remedy.contains("CONFIG_NUMA_BALANCING"))
    );
    write("proc/sys/kernel/numa_balancing", "0\n");
    assert!(
        matches!(faults(&allows), FeatureState::Degraded { remedy, .. } if remedy.contains("numa_balancing=2"))
    );
    write("proc/sys/kernel/numa_balancing", "2\n");
    assert!(matches!(faults(&allows), FeatureState::Available(_)));
    assert!(matches!(
        faults(&Kernel::that_allows(false)),
        FeatureState::Missing { .. }
    ));
    let promotion = || of("promotion by the kernel", &allows);
    assert!(
        matches!(promotion(), FeatureState::Missing { why, remedy } if why.contains("promote_rate_limit") && remedy.contains("debugfs"))
    );
    write(
        "proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
        "65536\n",
    );
    write("sys/kernel/mm/numa/demotion_enabled", "false\n");
    for knob in [
        "hot_threshold_ms",
        "scan_delay_ms",
        "scan_period_min_ms",
        "scan_period_max_ms",
        "scan_size_mb",
    ] {
        assert!(
            matches!(promotion(), FeatureState::Missing { .. }),
            "{knob}"
        );
        write(
            &format!("sys/kernel/debug/sched/numa_balancing/{knob}"),
            "1000\n",
        );
    }
    assert!(matches!(promotion(), FeatureState::Available(_)));
}

#[test]
fn an_event_that_opens_and_tells_nothing_is_not_praised() {
    let root = recorded("two-nodes-hmat");
    for (samples, said) in [(0, "produced no sample"), (9, "none of 9 trial samples")] {
        let trial = EventTrial {
            samples,
            ..EventTrial::default()
        };
        let kernel = Kernel {
            allows: true,
            trial,
        };
        let found = examine_with(root.path(), &kernel);
        let pebs = state(&found, "Intel PEBS");
        assert!(
            matches!(pebs, FeatureState::Degraded { why, .. } if why.contains(said)),
            "{pebs:?}"
        );
    }
}

#[test]
fn this_machine_is_examined_without_a_panic_and_every_source_is_ranked_once() {
    let found = examine(Path::new("/"));
    for finding in &found.findings {
        println!("{finding:?}");
    }
    let mut sources: Vec<SourceKind> = found.ranking.iter().map(|it| it.source).collect();
    sources.dedup();
    assert_eq!(sources.len(), 6);
}
