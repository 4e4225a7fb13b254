//! A [`MemoryDevice`] is a device that holds memory, with the source that lists it.

use std::fmt;

use isotherm_model::units::Bytes;

/// The source that lists a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceSource {
    /// The firmware's table (SMBIOS type 17).
    Dmi,
    /// A memory controller's driver.
    Edac,
    /// The CXL bus.
    Cxl,
    /// A node, of whose devices nothing is known.
    Node,
    /// A devices file.
    File,
}

impl fmt::Display for DeviceSource {
    /// `DMI`, `devices file`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Dmi => "DMI",
            Self::Edac => "EDAC",
            Self::Cxl => "CXL",
            Self::Node => "node",
            Self::File => "devices file",
        })
    }
}

/// A device that holds memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDevice {
    /// Its name: the locator of a DIMM (`DIMM_A1`), `mem0` of a CXL device, `node 2`.
    pub name: String,
    /// The kind of memory, such as `DDR5`, where it is known.
    pub kind: Option<String>,
    /// Its size.
    pub capacity: Bytes,
    /// Ranks, each of which sleeps by itself, where known.
    pub ranks: Option<u32>,
    /// The node of its memory, where known.
    pub node: Option<u32>,
    /// The source that lists it.
    pub source: DeviceSource,
}
