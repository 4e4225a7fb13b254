//! Tests which tier's bytes the memory controllers count, on recorded machines.

#[path = "../../../tests/machines/expand.rs"]
mod expand;

use std::io;
use std::path::Path;

use isotherm_model::tier::TierIndex;
use isotherm_observe::counters::CounterEvent;
use isotherm_observe::counters::tier_traffic::open_for_tier;

/// The tier that is counted on a machine with the controllers of an Intel server, or why none is.
fn counted(machine: &str) -> Result<TierIndex, String> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let text = std::fs::read_to_string(machines.join(format!("{machine}.machine")));
    let root = tempfile::tempdir().expect("a directory");
    expand::expand(&text.expect("a machine"), root.path()).expect("files");
    let controller = "sys/bus/event_source/devices/uncore_imc_0/\n  type: 24\n  cpumask: 0\n  format/event: config:0-7\n  \
                      format/umask: config:8-15\n  events/cas_count_read: event=0x04,umask=0x03\n";
    expand::expand(controller, root.path()).expect("files");
    let tiers = isotherm_topology::detect(root.path()).expect("tiers");
    let open = |_: &CounterEvent| -> io::Result<()> { Ok(()) };
    open_for_tier(root.path(), &tiers, &open).map(|(tier, _)| tier)
}

#[test]
fn the_controllers_count_dram_before_and_behind_other_memory() {
    for (machine, tier) in [
        ("knl-flat", 1),
        ("xeon-max-flat-snc4", 1),
        ("two-nodes-hmat", 1),
        ("cxl-expander", 0),
        ("optane-kmem", 0),
        ("grace-hopper", 0),
    ] {
        assert_eq!(counted(machine), Ok(TierIndex(tier)), "{machine}");
    }
    let one = counted("two-sockets").expect_err("one tier");
    assert!(one.contains("there are 1"), "{one}");
}
