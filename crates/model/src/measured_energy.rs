//! [`MeasuredEnergy`] is the energy that a counter of the machine measured; a profile keeps it as a count of the whole run.
//!
//! ```text
//! measured_energy_processor_package_0_microjoules
//!                 |         |
//!                 part      counter
//! ```

use crate::batch::Count;

variant_words! {
    /// The part of the machine whose energy a counter measures.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum MeasuredPart {
        /// Memory: RAPL's domain `dram`.
        Memory = "memory",
        /// A processor with all of its cores and caches, and on some machines also the memory.
        Processor = "processor",
        /// Another part, by its name.
        Other = "other",
    }
}

const PREFIX: &str = "measured_energy_";
const UNIT: &str = "_microjoules";

/// Energy of one counter in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredEnergy {
    /// Name of the counter.
    pub counter: String,
    /// The part of the machine that it measures.
    pub part: MeasuredPart,
    /// The energy.
    pub microjoules: u64,
}

impl MeasuredEnergy {
    /// As a count of the run. In the name, everything between letters and digits becomes one `_`.
    #[must_use]
    pub fn to_count(&self) -> Count {
        let is_kept = |c: char| c.is_ascii_alphanumeric();
        let words: Vec<&str> = self.counter.split(|c| !is_kept(c)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Count::of_run(
            format!("{PREFIX}{}_{}{UNIT}", self.part.word(), words.join("_")),
            self.microjoules,
        )
    }

    /// Reads a count; `None` for a count of anything else.
    #[must_use]
    pub fn of_count(count: &Count) -> Option<Self> {
        let name = count.name.strip_prefix(PREFIX)?.strip_suffix(UNIT)?;
        let (part, counter) = name.split_once('_')?;
        Some(Self {
            counter: counter.replace('_', " "),
            part: MeasuredPart::from_word(part)?,
            microjoules: count.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MeasuredEnergy, MeasuredPart};
    use crate::batch::Count;

    #[test]
    fn a_count_keeps_the_part_the_counter_and_the_energy() {
        let energy = MeasuredEnergy {
            counter: "dram of package-0".to_owned(),
            part: MeasuredPart::Memory,
            microjoules: 7,
        };
        let count = energy.to_count();
        assert_eq!(
            count.name,
            "measured_energy_memory_dram_of_package_0_microjoules"
        );
        let read = MeasuredEnergy {
            counter: "dram of package 0".to_owned(),
            ..energy
        };
        assert_eq!(MeasuredEnergy::of_count(&count), Some(read));
    }

    #[test]
    fn other_counts_are_no_energy() {
        for name in ["delay_ns", "measured_energy_light_x_microjoules"] {
            let count = Count::of_run(name, 1);
            assert_eq!(MeasuredEnergy::of_count(&count), None, "{name}");
        }
    }
}
