//! An [`EnergyReading`] is the energy that one counter or sensor has counted since the meter opened; [`EnergySource`] is how it is read.

use isotherm_model::measured_energy::MeasuredPart;

isotherm_model::variant_words! {
    /// The interface that a reading is from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EnergySource {
        /// A counter of powercap: RAPL.
        Powercap = "powercap",
        /// An energy counter of a hwmon driver.
        HwmonEnergy = "hwmon energy",
        /// A power of a hwmon driver, added up over time.
        HwmonPower = "hwmon power",
    }
}

/// Energy of one counter since the meter was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyReading {
    /// Its name: `package-0`, `dram of package-0`, `Esocket0 (amd_energy)`, `DIMM VRD1 power (smpro_hwmon)`.
    pub name: String,
    /// The part of the machine whose energy it counts.
    pub part: MeasuredPart,
    /// The interface by which it is read.
    pub source: EnergySource,
    /// Microjoules; `None` if it vanished or was set back.
    pub microjoules: Option<u64>,
}
