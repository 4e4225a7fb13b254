//! `ColouredDevices` spreads the hot regions of a Java heap over as many memory devices of an emulated machine as their bandwidth and, with
//! `--device-capacity`, their size need (`isotherm run --java --remap`).
//!
//! ```text
//! bytes served, bytes of hot classes --> DeviceCount --devices--> HeapDevices --> table of the heap, which the runtime reads
//! ```

use std::io;
use std::path::Path;

use isotherm_abi::java_heap;
use isotherm_act::heap_devices::HeapDevices;
use isotherm_console::Console;
use isotherm_model::batch::Batch;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_pipeline::DeviceCount;
use serde_json::Value;

use super::device_changes::DeviceChanges;

#[derive(Debug)]
pub(super) struct ColouredDevices {
    count: DeviceCount,
    changes: DeviceChanges,
    /// `None` before the start, and where the run changes nothing.
    heap: Option<HeapDevices>,
    /// Time of the run.
    now: Nanos,
    /// Why hot objects are on other devices than was decided last.
    failure: Option<io::Error>,
}

impl ColouredDevices {
    pub(super) fn new(count: DeviceCount) -> Self {
        Self {
            count,
            changes: DeviceChanges::default(),
            heap: None,
            now: Nanos::ZERO,
            failure: None,
        }
    }

    /// The virtual machine will share its table in this session directory.
    pub(super) fn started(&mut self, session: &Path) {
        self.heap = Some(HeapDevices::new(&session.join(java_heap::FILE_NAME)));
    }

    /// Decides after an epoch at whose end hot objects have this many bytes.
    pub(super) fn note(&mut self, batch: &Batch, hot: Bytes) {
        self.now = self.now.saturating_add(batch.span);
        self.changes.note(self.count.decide(self.now, batch, hot));
        // A virtual machine that has just started has no table yet: each epoch tries again.
        let set = self.heap.as_mut().map(|it| it.set(self.count.devices()));
        self.failure = set.and_then(Result::err);
    }

    /// Warns where hot objects are on other devices than was decided.
    pub(super) fn say_end(&self, console: Console) {
        if let Some(failure) = &self.failure {
            console.warn(&format!(
                "hot objects stayed on the devices that they were on: the table of the heap cannot be written: {failure}; if \
                 -XX:IsothermHeapTable or -XX:IsothermHeapColors is among the program's options, leave it out"
            ));
        }
    }

    pub(super) fn in_words(&self) -> String {
        self.changes.in_words(self.count.devices())
    }

    /// The entries of the summary, as of a run with `--remap` alone, and the devices that hot objects were on at the end.
    pub(super) fn to_json(&self) -> Value {
        let mut json = self.changes.to_json(self.count.devices());
        json["devices_used"] = self.heap.as_ref().map_or(1, HeapDevices::written).into();
        json
    }
}
