//! Tests of the counters of recorded machines, each with the events that it can open.

use super::resctrl::Resctrl;
use super::tier_traffic::open_for_tier;
use super::{CounterChoice, CounterEvent, CounterKind, Counting, CumulativeCount, choose, open};
use isotherm_model::emulation::Emulation;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::tier::{Tier, TierIndex, TierKind, Tiers};
use isotherm_model::units::Bytes;
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Builds a machine from files.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

/// A counter that the test sets.
#[derive(Debug)]
struct Set(Rc<Cell<u64>>);

impl CumulativeCount for Set {
    fn value(&mut self) -> io::Result<u64> {
        Ok(self.0.get())
    }
}

const NO_EVENT: i32 = 2;
const FORBIDDEN: i32 = 13;

fn refuse(error: i32) -> impl Fn(&CounterEvent) -> io::Result<Set> {
    move |_| Err(io::Error::from_raw_os_error(error))
}

fn chosen(choice: &CounterChoice<Set>) -> Option<CounterKind> {
    choice.counting.as_ref().map(|(kind, _)| *kind)
}

const IMC: &str = "sys/bus/event_source/devices/uncore_imc_0";

fn imc() -> tempfile::TempDir {
    machine(&[
        (&format!("{IMC}/type"), "24\n"),
        (&format!("{IMC}/cpumask"), "0,16\n"),
        (&format!("{IMC}/format/event"), "config:0-7\n"),
        (&format!("{IMC}/format/umask"), "config:8-15\n"),
        (
            &format!("{IMC}/events/cas_count_read"),
            "event=0x04,umask=0x03\n",
        ),
        (
            &format!("{IMC}/events/cas_count_read.scale"),
            "6.103515625e-5\n",
        ),
        (&format!("{IMC}/events/cas_count_read.unit"), "MiB\n"),
        (&format!("{IMC}/events/clockticks"), "event=0x00\n"),
    ])
}

#[test]
fn a_source_rests_by_its_own_counter_and_where_there_is_none_by_traffic() {
    let root = imc();
    let all = |_: &CounterEvent| Ok(Set(Rc::default()));
    for (method, own) in [
        (ProfilingMethod::TraceSamples, CounterKind::CacheMisses),
        (ProfilingMethod::AccessedBits, CounterKind::TlbMisses),
    ] {
        let best = choose(method, root.path(), &all);
        assert_eq!((chosen(&best), best.why.as_str()), (Some(own), ""));
        // A virtual machine: the processors count nothing, the host passed a controller through.
        let no_misses = |event: &CounterEvent| match event.uncore {
            true => Ok(Set(Rc::default())),
            false => Err(io::Error::from_raw_os_error(NO_EVENT)),
        };
        let next = choose(method, root.path(), &no_misses);
        assert_eq!(chosen(&next), Some(CounterKind::Controllers));
        assert!(next.why.contains("no such event") && next.why.contains(own.word()));
        let none = choose(method, root.path(), &refuse(FORBIDDEN));
        assert_eq!(chosen(&none), None);
        assert!(
            none.why.contains("CAP_PERFMON") && none.why.contains("resctrl"),
            "{}",
            none.why
        );
    }
}

#[test]
fn traffic_is_asked_of_one_processor_a_socket_and_weighs_what_its_scale_says() {
    let root = imc();
    let asked = Rc::new(Cell::new(0));
    let opener = |event: &CounterEvent| {
        assert_eq!((event.kind, event.configs[0]), (24, 0x304));
        assert!(event.uncore && [0, 16].contains(&event.cpu));
        Ok(Set(Rc::clone(&asked)))
    };
    let mut counting = open(CounterKind::Controllers, root.path(), &opener).unwrap();
    asked.set(10);
    assert_eq!(counting.value().unwrap(), 2 * 10 * 64);
    asked.set(u64::MAX);
    assert_eq!(counting.value().unwrap(), u64::MAX, "saturates");
}

#[test]
fn each_maker_names_its_units_and_events_otherwise() {
    let asked = |files: &[(&str, &str)]| {
        let root = machine(files);
        let found = super::uncore::find(root.path()).unwrap();
        let of = |one: &CounterEvent| (one.configs[0], one.weight);
        found.iter().map(of).collect::<Vec<_>>()
    };
    let hisilicon = "sys/bus/event_source/devices/hisi_sccl1_ddrc0";
    let arm = asked(&[
        (&format!("{hisilicon}/type"), "31\n"),
        (&format!("{hisilicon}/format/event"), "config:0-31\n"),
        (&format!("{hisilicon}/events/flux_rd"), "event=0x84\n"),
        (&format!("{hisilicon}/events/flux_wr"), "event=0x83\n"),
        (&format!("{hisilicon}/events/flux_rcmd"), "event=0x3\n"),
        ("sys/bus/event_source/devices/hisi_sccl1_hha0/type", "32\n"),
    ]);
    assert_eq!(arm, [(0x84, 32), (0x83, 32)]);
    let client = asked(&[
        ("sys/bus/event_source/devices/uncore_imc/type", "13\n"),
        (
            "sys/bus/event_source/devices/uncore_imc/format/event",
            "config:0-7\n",
        ),
        (
            "sys/bus/event_source/devices/uncore_imc/events/data_reads",
            "event=0x01\n",
        ),
        (
            "sys/bus/event_source/devices/uncore_imc/events/data_writes",
            "event=0x02\n",
        ),
        (
            "sys/bus/event_source/devices/uncore_imc/events/gt_requests",
            "event=0x03\n",
        ),
    ]);
    assert_eq!(client, [(1, 64), (2, 64)]);
    let amd = asked(&[
        ("sys/bus/event_source/devices/amd_umc_0/type", "14\n"),
        (
            "sys/bus/event_source/devices/amd_umc_0/format/event",
            "config:0-7\n",
        ),
        ("sys/bus/event_source/devices/amd_df/type", "15\n"),
    ]);
    assert_eq!(amd, [(0x0a, 64)]);
}

#[test]
fn controllers_that_make_no_sense_are_named() {
    let broken = machine(&[(&format!("{IMC}/events/cas_count_read"), "event=0x04\n")]);
    let lack = open(CounterKind::Controllers, broken.path(), &refuse(NO_EVENT)).unwrap_err();
    assert!(lack.why.contains("uncore_imc_0"), "{}", lack.why);
    let none = open(
        CounterKind::Controllers,
        Path::new("/none"),
        &refuse(NO_EVENT),
    )
    .unwrap_err();
    assert!(none.remedy.contains("intel_uncore"), "{}", none.remedy);
}

/// A machine with DRAM on node 0, and memory without processors on node 1, and its two tiers.
fn two_tiers(dram: u32) -> (tempfile::TempDir, Tiers) {
    let root = imc();
    for (node, cpus) in [(0, "0-31\n"), (1, "\n")] {
        let path = root
            .path()
            .join(format!("sys/devices/system/node/node{node}"));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("cpulist"), cpus).unwrap();
    }
    let pair = Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP);
    let tier = |at: usize, node| Tier {
        kind: TierKind::Nodes(vec![node]),
        ..pair.all()[at].clone()
    };
    let tiers = Tiers::new(vec![tier(0, dram), tier(1, 1 - dram)]).unwrap();
    (root, tiers)
}

#[test]
fn the_controllers_count_the_tier_of_the_nodes_with_processors() {
    let all = |_: &CounterEvent| Ok(Set(Rc::default()));
    for dram in [0, 1] {
        // CXL behind DRAM, and HBM before it.
        let (root, tiers) = two_tiers(dram);
        let (counted, _) = open_for_tier(root.path(), &tiers, &all).expect("a counter");
        assert_eq!(counted, TierIndex(dram));
        let none = open_for_tier(root.path(), &tiers, &refuse(FORBIDDEN)).unwrap_err();
        assert!(none.contains("CAP_PERFMON"), "{none}");
    }
    let (root, tiers) = two_tiers(0);
    let sockets = root.path().join("sys/devices/system/node/node1/cpulist");
    std::fs::write(sockets, "32-63\n").unwrap();
    let none = open_for_tier(root.path(), &tiers, &all).unwrap_err();
    assert!(none.contains("have processors"), "{none}");
    let one = Tiers::new(vec![tiers.all()[0].clone()]).unwrap();
    let none = open_for_tier(root.path(), &one, &all).unwrap_err();
    assert!(none.contains("there are 1"), "{none}");
}

const ROOT: &str = "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes";
const GROUP: &str = "sys/fs/resctrl/batch/mon_data/mon_L3_00/mbm_total_bytes";

#[test]
fn bytes_of_control_groups_are_added_whenever_they_come_and_go() {
    let root = machine(&[
        (
            "sys/fs/resctrl/info/L3_MON/mon_features",
            "mbm_total_bytes\n",
        ),
        (ROOT, "1000\n"),
        (
            "sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes",
            "Unavailable\n",
        ),
        // The value that the root's file has already.
        (
            "sys/fs/resctrl/mon_groups/one/mon_data/mon_L3_00/mbm_total_bytes",
            "900\n",
        ),
    ]);
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut counting = open(CounterKind::Resctrl, root.path(), &refuse(FORBIDDEN)).unwrap();
    let mut value = || counting.value().unwrap();
    assert_eq!(value(), 0, "it counts from its opening on");
    write(ROOT, "1500\n");
    write(GROUP, "700\n");
    assert_eq!(value(), 500, "a new group begins with what it has");
    write(GROUP, "900\n");
    assert_eq!(value(), 700);
    std::fs::remove_dir_all(root.path().join("sys/fs/resctrl/batch")).unwrap();
    write(ROOT, "1600\n");
    assert_eq!(value(), 800, "a group that goes takes nothing back");
    write(ROOT, "Error\n");
    assert!(counting.value().is_err());
}

/// AMD's counters are `Unavailable` while another group has the hardware.
#[test]
fn bytes_that_are_counted_while_resctrl_has_no_number_are_not_lost() {
    let root = machine(&[
        (
            "sys/fs/resctrl/info/L3_MON/mon_features",
            "mbm_total_bytes\n",
        ),
        (ROOT, "100\n"),
        ("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "10\n"),
    ]);
    let mut counts = Resctrl::open(root.path()).expect("counts");
    let mut after = |text: &str| {
        std::fs::write(root.path().join(ROOT), text).expect("written");
        counts.value().expect("a number of the other cache")
    };
    assert_eq!(after("130\n"), 30);
    assert_eq!(after("Unavailable\n"), 30);
    assert_eq!(after("Error\n"), 30);
    assert_eq!(after("400\n"), 300);
    // A counter that began anew has no past.
    assert_eq!(after("50\n"), 300);
    assert_eq!(after("60\n"), 310);
}

#[test]
fn resctrl_says_whether_the_kernel_the_mount_or_the_processor_lacks_it() {
    let lack = |root: &Path| open(CounterKind::Resctrl, root, &refuse(NO_EVENT)).unwrap_err();
    assert!(
        lack(Path::new("/none"))
            .remedy
            .contains("CONFIG_X86_CPU_RESCTRL")
    );
    let there = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(there.path().join("sys/fs/resctrl")).unwrap();
    assert!(lack(there.path()).remedy.contains("mount -t resctrl"));
    let allocates_only = machine(&[
        ("sys/fs/resctrl/info/L3_MON/mon_features", "llc_occupancy\n"),
        ("sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "5\n"),
    ]);
    let lack = lack(allocates_only.path());
    assert!(lack.why.contains("llc_occupancy"), "{}", lack.why);
    assert!(
        lack.remedy.contains("bandwidth monitoring"),
        "{}",
        lack.remedy
    );
}

#[test]
fn a_count_that_cannot_be_read_is_an_error_and_no_zero() {
    struct Broken;
    impl CumulativeCount for Broken {
        fn value(&mut self) -> io::Result<u64> {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
    assert!(Counting::Events(vec![(1, Broken)]).value().is_err());
}

#[test]
fn all_events_begin_an_interval_even_where_the_first_had_no_counter() {
    /// Grows by one each time it is read; `value` fails where it has no counter.
    struct Shared {
        count: u64,
        has_counter: bool,
    }
    impl CumulativeCount for Shared {
        fn value(&mut self) -> io::Result<u64> {
            let count = self.begin()?;
            let lost = || io::Error::other("none");
            self.has_counter.then_some(count).ok_or_else(lost)
        }

        fn begin(&mut self) -> io::Result<u64> {
            self.count += 1;
            Ok(self.count)
        }
    }
    let event = |has_counter| Shared {
        count: 0,
        has_counter,
    };
    let mut counting = Counting::Events(vec![(1, event(false)), (64, event(true))]);
    assert!(counting.value().is_err());
    assert_eq!(counting.begin().expect("a count"), 2 + 2 * 64);
}
