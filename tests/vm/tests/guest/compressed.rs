//! Compressed memory: a guest of its own kernel can always have it, which a machine with containers may not.

use std::path::Path;
use std::process::Command;

use isotherm_vm::payload::MODULES;
use serde_json::Value;

use crate::limit::isotherm;
use crate::{GuestTest, on, skip};

pub(crate) const TESTS: &[GuestTest] = &[on!(
    &["two-nodes"],
    compressed_memory_is_set_up_measured_and_removed
)];

const SWAPS: &str = "/proc/swaps";
const DISK: &str = "/sys/block/zram0/disksize";

/// Loads zram and what it needs, in the order of the files' names.
fn load_zram() {
    let load = format!(
        "for module in {MODULES}/*; do xzcat $module > /tmp/module.ko && insmod /tmp/module.ko; done"
    );
    let loaded = Command::new("sh").args(["-c", &load]).output();
    if !Path::new(DISK).exists() {
        skip(&format!("this kernel has no zram: {loaded:?}"));
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).expect("the kernel shows it")
}

fn compressed_memory_is_set_up_measured_and_removed() {
    load_zram();
    let before = text(SWAPS);
    isotherm(&["tiers", "--make-compressed", "256MiB"]);
    assert!(text(SWAPS).contains("/dev/zram0"), "{}", text(SWAPS));
    let measured = isotherm(&["tiers", "--measure", "-o", "/tmp/z.toml", "--json"]);
    let measured: Value = serde_json::from_str(&measured).expect("JSON");
    let swap = &measured["swap"];
    assert_eq!(swap["areas"][0]["medium"], "zram", "{swap}");
    // 32 MiB of pages, of which the kernel may keep a few; half of each is zeroes.
    let costs = |name: &str| swap["costs"][name].as_u64().expect("a number");
    assert!(costs("pages") >= 7_000, "{measured}");
    let (stored, memory) = (costs("stored_bytes"), costs("memory_bytes"));
    assert!(stored >= 7_000 * 4_096, "{swap}");
    assert!((stored * 2 / 5..stored * 2 / 3).contains(&memory), "{swap}");
    isotherm(&["tiers", "--remove-compressed"]);
    assert_eq!(text(SWAPS), before);
    assert_eq!(text(DISK).trim(), "0");
}
