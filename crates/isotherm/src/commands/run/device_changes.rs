//! `DeviceChanges` collects, in a run with `--remap`, the bandwidth of the program's memory in each second and the changes of the number of
//! memory devices that hold hot data, for this bandwidth or for the size of hot data, for the summary and a message.

use isotherm_model::words::counted;
use isotherm_pipeline::{AddedDevices, DeviceDecision, RemapSample};
use isotherm_policy::energy::Remap;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct DeviceChanges {
    samples: Vec<RemapSample>,
    added: Vec<AddedDevices>,
}

impl DeviceChanges {
    pub(super) fn note(&mut self, decision: DeviceDecision) {
        self.samples.extend(decision.sample);
        self.added.extend(decision.added);
    }

    fn remaps(&self) -> impl Iterator<Item = &RemapSample> {
        let samples = self.samples.iter();
        samples.filter(|sample| sample.remap != Remap::Stay)
    }

    /// `2 remaps (1 undone), hot data on 1 device at the end`.
    pub(super) fn in_words(&self, devices: u32) -> String {
        let is_undo = |sample: &&RemapSample| matches!(sample.remap, Remap::Undo { .. });
        let (undone, remaps) = (self.remaps().filter(is_undo).count(), self.remaps().count());
        let added = match self.added.len() {
            0 => String::new(),
            times => format!(", devices added {} for its size", counted(times, "time")),
        };
        format!(
            "{} ({undone} undone){added}, hot data on {} at the end",
            counted(remaps, "remap"),
            counted(devices as usize, "device")
        )
    }

    /// The entries of a summary, for hot data on this number of devices at the end: the bandwidth of each second in bytes a second, the
    /// changes for it, and those for the size.
    pub(super) fn to_json(&self, devices: u32) -> Value {
        let samples = self.samples.iter().map(|sample| sample.bandwidth);
        json!({
            "devices": devices,
            "samples": samples.collect::<Vec<_>>(),
            "remaps": self.remaps().map(remap_json).collect::<Vec<_>>(),
            "added": self.added.iter().map(added_json).collect::<Vec<_>>(),
        })
    }
}

fn added_json(added: &AddedDevices) -> Value {
    json!({
        "seconds": added.at.0 as f64 / 1e9,
        "hot_bytes": added.hot.0,
        "from_devices": added.from,
        "to_devices": added.to,
    })
}

fn remap_json(sample: &RemapSample) -> Value {
    let (from, to, is_undo) = match sample.remap {
        Remap::Stay => (0, 0, false),
        Remap::To { from, to } => (from, to, false),
        Remap::Undo { from, to } => (from, to, true),
    };
    json!({
        "seconds": sample.at.0 as f64 / 1e9,
        "bytes_per_second": sample.bandwidth,
        "from_devices": from,
        "to_devices": to,
        "undo": is_undo,
    })
}

#[cfg(test)]
mod tests {
    use super::DeviceChanges;
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_pipeline::{AddedDevices, DeviceDecision, RemapSample};
    use isotherm_policy::energy::Remap;
    use serde_json::json;

    /// The decision after this second of a run.
    fn decision(second: u64, remap: Remap, added: Option<AddedDevices>) -> DeviceDecision {
        let sample = RemapSample {
            at: Nanos(second * 1_000_000_000),
            bandwidth: 100,
            remap,
        };
        DeviceDecision {
            sample: Some(sample),
            added,
        }
    }

    #[test]
    fn each_sample_is_listed_and_each_change_with_its_reason() {
        let mut changes = DeviceChanges::default();
        let added = AddedDevices {
            at: Nanos(3_000_000_000),
            hot: Bytes(4096),
            from: 1,
            to: 2,
        };
        changes.note(decision(1, Remap::To { from: 1, to: 2 }, None));
        changes.note(decision(2, Remap::Undo { from: 2, to: 1 }, None));
        changes.note(decision(3, Remap::Stay, Some(added)));
        changes.note(DeviceDecision::default());
        assert_eq!(
            changes.in_words(2),
            "2 remaps (1 undone), devices added 1 time for its size, hot data on 2 devices at the end"
        );
        let json = changes.to_json(2);
        assert_eq!(json["samples"], json!([100, 100, 100]));
        let remap = |seconds: f64, from: u32, to: u32, is_undo: bool| {
            json!({
                "seconds": seconds,
                "bytes_per_second": 100,
                "from_devices": from,
                "to_devices": to,
                "undo": is_undo,
            })
        };
        assert_eq!(
            json["remaps"],
            json!([remap(1.0, 1, 2, false), remap(2.0, 2, 1, true)])
        );
        assert_eq!(
            json["added"],
            json!([{"seconds": 3.0, "hot_bytes": 4096, "from_devices": 1, "to_devices": 2}])
        );
    }

    #[test]
    fn a_run_that_stayed_on_one_device_says_so() {
        let mut changes = DeviceChanges::default();
        changes.note(decision(1, Remap::Stay, None));
        assert_eq!(
            changes.in_words(1),
            "0 remaps (0 undone), hot data on 1 device at the end"
        );
        assert_eq!(changes.to_json(1)["remaps"], json!([]));
    }
}
