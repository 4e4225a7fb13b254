//! [`SourceKind`] names the sources that observe accesses, with the profiling method (accessed bits or trace samples) and the unit of each.

use crate::count_unit::CountUnit;

variant_words! {
    /// A profiling method of TMP (Choi et al., "Dancing in the Dark", section II).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ProfilingMethod {
        /// A scan finds a page's accessed bit set: one hit for each page and scan.
        AccessedBits = "accessed-bits",
        /// The access itself is sampled: one hit for each sample.
        TraceSamples = "trace-samples",
    }
}

impl ProfilingMethod {
    /// Its name in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AccessedBits => "accessed bits",
            Self::TraceSamples => "trace samples",
        }
    }
}

variant_words! {
    /// A source of accesses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SourceKind {
        /// Accesses that the program counts itself, because `isotherm-cc --profile` compiled it.
        Instrumented = "instrumented",
        /// Intel's precise load samples.
        Pebs = "pebs",
        /// AMD's instruction-based sampling.
        Ibs = "ibs",
        /// Arm's statistical profiling extension.
        Spe = "spe",
        /// A timer; the interrupted instruction is decoded.
        Timer = "timer",
        /// Accessed bits of the page tables, by mapping: `clear_refs` and `smaps`.
        AccessedBits = "accessed-bits",
        /// Pages that the runtime traps.
        TrappedPages = "trapped-pages",
        /// Page faults: first touches only. Works on every machine; for tests of the sample path.
        PageFaults = "page-faults",
        /// Accessed bits by regions of a process that the kernel's DAMON adapts.
        Damon = "damon",
        /// Accessed bits by regions of all memory.
        DamonPhysical = "damon-paddr",
        /// Accessed bits of single pages, by the kernel's bitmap of idle pages.
        PageIdle = "page-idle",
        /// Accesses to fields that the agent in a Java virtual machine counts, each in the interpreter.
        JavaCounts = "java-counts",
        /// Page faults of pages that the kernel's balancing unmapped: touches, as accessed bits are.
        HintFaults = "hint-faults",
        /// Counts of `MemProf`, a profiler of LLVM.
        MemProf = "memprof",
        /// Accesses of a recorded trace.
        Trace = "trace",
    }
}

impl SourceKind {
    /// The method by which it observes accesses.
    #[must_use]
    pub const fn method(self) -> ProfilingMethod {
        match self {
            Self::AccessedBits
            | Self::Damon
            | Self::DamonPhysical
            | Self::PageIdle
            | Self::HintFaults => ProfilingMethod::AccessedBits,
            Self::Instrumented
            | Self::Pebs
            | Self::Ibs
            | Self::Spe
            | Self::Timer
            | Self::TrappedPages
            | Self::PageFaults
            | Self::JavaCounts
            | Self::MemProf
            | Self::Trace => ProfilingMethod::TraceSamples,
        }
    }

    /// True for events of a processor's performance monitoring unit.
    #[must_use]
    pub const fn is_hardware(self) -> bool {
        matches!(self, Self::Pebs | Self::Ibs | Self::Spe)
    }

    /// True for samples by time, which cannot show whether a cache or memory was waited for: the share that the caches served is estimated.
    /// Scans and traps see no more than a touch of a page, and are left as they are.
    #[must_use]
    pub const fn is_blind_to_caches(self) -> bool {
        matches!(self, Self::Timer)
    }

    /// True for a source that does not observe memory that is fast already: no hit there does not mean no access.
    #[must_use]
    pub const fn sees_slow_only(self) -> bool {
        matches!(self, Self::HintFaults)
    }

    /// The unit of its counts in a profile. `filtered` is true where the program's own counts are cache misses.
    #[must_use]
    pub const fn unit(self, filtered: bool) -> CountUnit {
        match self {
            Self::Instrumented if filtered => CountUnit::Misses,
            Self::Instrumented | Self::JavaCounts | Self::MemProf | Self::Trace => {
                CountUnit::Accesses
            }
            Self::Pebs | Self::Ibs | Self::Spe => CountUnit::Latency,
            Self::Timer => CountUnit::Time,
            Self::AccessedBits
            | Self::TrappedPages
            | Self::PageFaults
            | Self::Damon
            | Self::DamonPhysical
            | Self::PageIdle
            | Self::HintFaults => CountUnit::Touches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SourceKind;

    #[test]
    fn every_source_is_found_by_its_word() {
        for source in SourceKind::ALL {
            assert_eq!(SourceKind::from_word(source.word()), Some(source));
        }
        assert_eq!(SourceKind::from_word("tea-leaves"), None);
    }
}
