//! `DevicesChoice` declares the flags of `isotherm plan --policy cold-set` that describe memory devices, `FitBandwidthArgs` those of
//! `isotherm fit-bandwidth`. `bandwidth` reads a value such as `8GB/s`, also for the file of a bandwidth model.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use isotherm_model::colour::DEVICES_AT_MOST;
use isotherm_model::units::Bytes;
use isotherm_policy::energy::DeviceSet;

use crate::input;

/// The memory devices for plans that colour data.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DevicesChoice {
    /// With --policy cold-set: number of equal memory devices and the bytes that each holds, such as 4x16GiB [default: devices as
    /// large as the fast tier of the emulated pair, as many as hold the footprint; on memory nodes, one for each tier]
    #[arg(long, value_name = "NUMBERxSIZE", value_parser = devices)]
    pub devices: Option<DeviceSet>,
    /// With --policy cold-set: bandwidth that the program needs, such as 8GB/s; hot data gets as many devices as --bandwidth-model
    /// asks for
    #[arg(long, value_name = "BANDWIDTH", value_parser = bandwidth, requires = "bandwidth_model")]
    pub bandwidth: Option<u64>,
    /// With --bandwidth: devices by bandwidth, from `isotherm fit-bandwidth`
    #[arg(long, value_name = "FILE", requires = "bandwidth")]
    pub bandwidth_model: Option<PathBuf>,
}

/// Flags of `isotherm fit-bandwidth`.
#[derive(Debug, Args)]
pub(crate) struct FitBandwidthArgs {
    /// Runs of a load, one a line, as workloads/membench prints them; `-` for standard input
    #[arg(value_name = "RUNS")]
    pub runs: PathBuf,
    /// Work that a number of devices may lose against all devices before it counts as slower
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..100))]
    pub tolerance: u32,
    /// Where to write the model; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "bandwidth.toml")]
    pub output: PathBuf,
}

/// Reads `4x16GiB`.
fn devices(text: &str) -> Result<DeviceSet, String> {
    let read = || {
        let (devices, size) = text.split_once('x')?;
        let devices: u32 = devices.trim().parse().ok()?;
        let capacity: Bytes = input::size(size.trim()).ok()?;
        let is_in_range = (1..=DEVICES_AT_MOST).contains(&devices) && capacity > Bytes::ZERO;
        is_in_range.then_some(DeviceSet { devices, capacity })
    };
    read().ok_or_else(|| {
        format!(
            "\"{text}\" is no set of devices; write 4x16GiB for four of 16 GiB each, at most {DEVICES_AT_MOST}"
        )
    })
}

/// Reads `8GB/s`, in bytes a second.
pub(crate) fn bandwidth(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").map(Bytes::from_str);
    match size {
        Some(Ok(bytes)) => Ok(bytes.0),
        _ => Err(format!(
            "\"{text}\" is no bandwidth; write 8GB/s or 500MiB/s"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{bandwidth, devices};
    use isotherm_model::units::Bytes;

    #[test]
    fn devices_are_a_number_and_a_size() {
        let four = devices("4x16GiB").unwrap();
        assert_eq!((four.devices, four.capacity), (4, Bytes(16 << 30)));
        for text in [
            "4",
            "x16GiB",
            "4x",
            "0x16GiB",
            "4x0B",
            "-1x1GiB",
            "99999999x1GiB",
        ] {
            let error = devices(text).unwrap_err();
            assert!(error.contains("write 4x16GiB"), "{text}: {error}");
        }
    }

    #[test]
    fn a_bandwidth_is_a_size_a_second() {
        assert_eq!(bandwidth("8GB/s"), Ok(8_000_000_000));
        assert!(bandwidth("8GB").is_err() && bandwidth("fast/s").is_err());
    }
}
