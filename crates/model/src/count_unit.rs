//! [`CountUnit`] is the unit of the counts of a source, a profile or a plan, and gives its name in every output.
//!
//! A profile holds one count for each chunk and epoch, weighted by the source. Counts of one unit
//! can be compared; a mixture of sources has no unit.

use crate::words;

variant_words! {
    /// The unit that a source counts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CountUnit {
        /// Accesses: each once, or each sample multiplied by the accesses that it represents.
        Accesses = "accesses",
        /// Accesses that missed a cache.
        Misses = "misses",
        /// Samples weighted by the latency that the processor measured.
        Latency = "latency",
        /// Samples spread evenly over processor time; most fall where the program waits for memory.
        Time = "time",
        /// Scans that found a page accessed, however often it was accessed.
        Touches = "touches",
        /// Samples of accesses, each counted once, however many accesses it represents.
        Samples = "samples",
        /// Bytes that memory delivered or took, by a hardware counter or the account of an emulated machine.
        Bytes = "bytes",
        /// Unknown: a source of another version, a mixture of sources, or no source.
        #[default]
        Unknown = "unknown",
    }
}

impl CountUnit {
    /// The noun after a share, that noun as a title, the noun for one unit, and the words that follow the last.
    const fn words(self) -> [&'static str; 4] {
        const WAITING: &str = "time waiting for memory";
        const WAITING_TITLE: &str = "Time waiting for memory";
        const OF_WAITING: &str = " of time waiting for memory";
        match self {
            Self::Accesses => ["accesses", "Accesses", "access", ""],
            Self::Misses => ["misses", "Misses", "miss", ""],
            Self::Latency => [WAITING, WAITING_TITLE, "weighted sample", OF_WAITING],
            Self::Time => [WAITING, WAITING_TITLE, "sample", OF_WAITING],
            Self::Touches => ["page touches", "Page touches", "page touch", ""],
            Self::Samples | Self::Unknown => ["samples", "Samples", "sample", ""],
            Self::Bytes => ["bytes", "Bytes", "byte", ""],
        }
    }

    /// The noun after a share: "takes 99 % of the *time waiting for memory*".
    #[must_use]
    pub const fn noun(self) -> &'static str {
        self.words()[0]
    }

    /// The noun as the title of a column.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.words()[1]
    }

    /// The unit in the plural: "*samples of time waiting for memory* for each MiB".
    #[must_use]
    pub fn units(self) -> String {
        let [.., noun, of] = self.words();
        words::plural(noun) + of
    }

    /// A number of units: `1 access`, `1,200 samples of time waiting for memory`.
    #[must_use]
    pub fn counted(self, number: u64) -> String {
        let [.., noun, of] = self.words();
        words::counted(number, noun) + of
    }
}

#[cfg(test)]
mod tests {
    use super::CountUnit;

    #[test]
    fn samples_by_time_are_never_called_accesses() {
        for unit in [CountUnit::Time, CountUnit::Latency] {
            for text in [unit.noun(), unit.title(), &unit.counted(2)] {
                assert!(
                    text.to_lowercase().contains("time waiting for memory"),
                    "{text}"
                );
            }
        }
        assert_eq!(CountUnit::Accesses.counted(1), "1 access");
        assert_eq!(CountUnit::Misses.counted(2), "2 misses");
    }

    #[test]
    fn every_unit_has_a_word_that_is_read_back() {
        for unit in CountUnit::ALL {
            assert_eq!(CountUnit::from_word(unit.word()), Some(unit));
        }
        assert_eq!(CountUnit::from_word("luck"), None);
    }
}
