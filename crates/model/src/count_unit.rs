//! The unit of a profile's counts, and its name in every output.
//!
//! A profile holds one count for each chunk and epoch, weighted by the source. Counts of one unit
//! can be compared; a mixture of sources has no unit.

use crate::batch::SourceReport;
use crate::words;

/// The unit that a source counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountUnit {
    /// Accesses: each once, or each sample multiplied by the accesses that it represents.
    Accesses,
    /// Accesses that missed a cache.
    Misses,
    /// Samples weighted by the latency that the processor measured.
    Latency,
    /// Samples spread evenly over processor time; most fall where the program waits for memory.
    Time,
    /// Scans that found a page accessed, however often it was accessed.
    Touches,
    /// The unit of a source of another version, of a mixture of sources, or of no source.
    #[default]
    Unknown,
}

impl CountUnit {
    /// Every unit.
    const ALL: [Self; 6] = [
        Self::Accesses,
        Self::Misses,
        Self::Latency,
        Self::Time,
        Self::Touches,
        Self::Unknown,
    ];

    /// The unit that all sources with samples share. `filtered` is true where the program's own
    /// counts are cache misses.
    #[must_use]
    pub fn of(sources: &[SourceReport], filtered: bool) -> Self {
        let mut units = sources
            .iter()
            .filter(|source| source.usable > 0)
            .filter_map(|source| Self::of_source(&source.name, filtered));
        let Some(first) = units.next() else {
            return Self::Unknown;
        };
        match units.all(|unit| unit == first) {
            true => first,
            false => Self::Unknown,
        }
    }

    /// The unit of a source; `None` for a source that reads sizes and observes no accesses.
    /// `filtered` is true where the program's own counts are cache misses.
    #[must_use]
    pub fn of_source(name: &str, filtered: bool) -> Option<Self> {
        Some(match name {
            "instrumented" if filtered => Self::Misses,
            "instrumented" | "memprof" => Self::Accesses,
            "pebs" | "ibs" | "spe" => Self::Latency,
            "timer" => Self::Time,
            "accessed-bits" | "trapped-pages" | "page-faults" | "damon" => Self::Touches,
            "resident-set" | "session-files" => return None,
            _ => Self::Unknown,
        })
    }

    /// True where the counts are time, measured or sampled, and not numbers of accesses.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Latency | Self::Time)
    }

    /// The noun after a share: "takes 99 % of the *time waiting for memory*".
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Misses => "misses",
            Self::Latency | Self::Time => "time waiting for memory",
            Self::Touches => "page touches",
            Self::Unknown => "samples",
        }
    }

    /// The same noun as the title of a column.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Accesses => "Accesses",
            Self::Misses => "Misses",
            Self::Latency | Self::Time => "Time waiting for memory",
            Self::Touches => "Page touches",
            Self::Unknown => "Samples",
        }
    }

    /// The noun for one unit, and the words that follow it.
    const fn unit(self) -> (&'static str, &'static str) {
        match self {
            Self::Accesses => ("access", ""),
            Self::Misses => ("miss", ""),
            Self::Latency => ("weighted sample", " of time waiting for memory"),
            Self::Time => ("sample", " of time waiting for memory"),
            Self::Touches => ("page touch", ""),
            Self::Unknown => ("sample", ""),
        }
    }

    /// The unit in the plural: "*samples of time waiting for memory* for each MiB".
    #[must_use]
    pub fn units(self) -> String {
        let (noun, of) = self.unit();
        words::plural(noun) + of
    }

    /// A number of them: `1 access`, `1,200 samples of time waiting for memory`.
    #[must_use]
    pub fn counted(self, number: u64) -> String {
        let (noun, of) = self.unit();
        words::counted(number, noun) + of
    }

    /// The word used in plans and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Misses => "misses",
            Self::Latency => "latency",
            Self::Time => "time",
            Self::Touches => "touches",
            Self::Unknown => "unknown",
        }
    }

    /// The unit with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::CountUnit;
    use crate::batch::SourceReport;

    /// The unit of sources with the given numbers of usable samples.
    fn unit(sources: &[(&str, u64)], filtered: bool) -> CountUnit {
        let report = |&(name, usable): &(&str, u64)| SourceReport {
            name: name.to_owned(),
            taken: usable,
            usable,
            ..SourceReport::default()
        };
        let reports: Vec<_> = sources.iter().map(report).collect();
        CountUnit::of(&reports, filtered)
    }

    #[test]
    fn sources_of_one_kind_share_a_unit_and_silent_ones_have_no_say() {
        let unit = |sources| unit(sources, false);
        assert_eq!(unit(&[("timer", 9)]), CountUnit::Time);
        assert_eq!(
            unit(&[("pebs", 9), ("spe", 1), ("resident-set", 100)]),
            CountUnit::Latency
        );
        assert_eq!(unit(&[("memprof", 3), ("timer", 0)]), CountUnit::Accesses);
        assert_eq!(unit(&[("instrumented", 3)]), CountUnit::Accesses);
        assert_eq!(unit(&[("damon", 3)]), CountUnit::Touches);
    }

    #[test]
    fn a_mixture_an_unknown_source_and_no_samples_have_no_unit() {
        let sources: [&[(&str, u64)]; 5] = [
            &[("tea-leaves", 3)],
            &[("timer", 9), ("trapped-pages", 1)],
            &[("timer", 9), ("memprof", 1)],
            &[("timer", 0), ("session-files", 4)],
            &[],
        ];
        for sources in sources {
            assert_eq!(unit(sources, false), CountUnit::Unknown, "{sources:?}");
        }
    }

    #[test]
    fn counts_behind_a_cache_filter_are_misses() {
        assert_eq!(unit(&[("instrumented", 3)], true), CountUnit::Misses);
        assert_eq!(unit(&[("timer", 3)], true), CountUnit::Time);
    }

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
