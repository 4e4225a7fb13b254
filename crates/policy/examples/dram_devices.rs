//! Prints the modelled power of DDR4 memory devices, for `bench/run energy`.
//!
//! Each argument is `DEVICES:HOT:READ:WRITTEN`: the number of equal devices of one rank each, how many of them share the traffic evenly,
//! and the bytes read and written a second. The other devices are not accessed. Prints one line for each argument, in milliwatts.

use std::process::ExitCode;

use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::energy::{Activity, DramRank, Residency, Thresholds};

const SECOND: Nanos = Nanos(1_000_000_000);
const LINE: u64 = 64;

fn main() -> ExitCode {
    for argument in std::env::args().skip(1) {
        let numbers: Result<Vec<u64>, _> = argument.split(':').map(str::parse).collect();
        let Ok([devices, hot, read, written]) = numbers.as_deref() else {
            eprintln!(
                "dram_devices: \"{argument}\" is not DEVICES:HOT:READ:WRITTEN in whole numbers"
            );
            return ExitCode::FAILURE;
        };
        println!(
            "{:.3}",
            milliwatts(*devices, (*hot).max(1), *read, *written)
        );
    }
    ExitCode::SUCCESS
}

/// The power of all devices together.
fn milliwatts(devices: u64, hot: u64, read: u64, written: u64) -> f64 {
    let busy = nanojoules(read / hot, written / hot) * hot;
    let asleep = nanojoules(0, 0) * devices.saturating_sub(hot);
    (busy + asleep) as f64 / 1e6
}

/// The energy of one device in a second: each access to a line opens a row.
fn nanojoules(read: u64, written: u64) -> u64 {
    let lines = (read + written) / LINE;
    let activity = Activity {
        read: Bytes(read),
        written: Bytes(written),
        activations: lines,
        residency: Residency::evenly(lines, SECOND, &Thresholds::ROUND),
    };
    DramRank::DDR4.energy(&activity).total().0
}
