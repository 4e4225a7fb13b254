//! [`JavaSummary`] has the figures of a Java program as a whole for the report, as JSON, text and HTML: those of Cross-Layer's Table 3 that
//! a profile can provide, the work of the garbage collector and the compilers, and how exactly samples in the heap are attributed to sites.

use isotherm_model::profile::Profile;
use isotherm_model::units::Bytes;
use isotherm_model::words::{grouped, percent, share};
use maud::{Markup, html};
use serde::Serialize;

use crate::page::table;
use crate::table::DataTable;

/// Figures of a Java program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JavaSummary {
    /// Bytes that the program allocated, estimated from the sampled objects.
    pub allocated_bytes: u64,
    /// Places in methods that allocated a sampled object.
    pub allocation_sites: u64,
    /// Allocation sites of a method that has any, on average.
    pub sites_per_method: f64,
    /// Methods that had compiled code at the end.
    pub hot_methods: u64,
    /// Classes of sampled objects.
    pub types: u64,
    /// Samples of the program's threads in compiled Java code, each second.
    pub samples_per_second: f64,
    /// Samples of the threads that collect garbage.
    pub collector_samples: u64,
    /// Samples of the threads that compile methods.
    pub compiler_samples: u64,
    /// Collections that stopped the program.
    pub collections: u64,
    /// Time of all collections together.
    pub collecting_ns: u64,
    /// Samples in the heap whose object was sampled itself: their site is exact.
    pub exact_samples: u64,
    /// Samples in the heap whose site is that of the nearest sampled object of the same class.
    pub by_class_samples: u64,
    /// Samples in the heap whose site is not known.
    pub unattributed_samples: u64,
}

impl JavaSummary {
    /// The figures of a profile; `None` if no Java program was recorded.
    pub(crate) fn of(profile: &Profile) -> Option<Self> {
        let count = |name: &str| {
            let named = profile.counts.iter().filter(|count| count.name == name);
            named.map(|count| count.value).reduce(u64::saturating_add)
        };
        let number = |name| count(name).unwrap_or(0);
        let sites = count("java_allocation_sites")?;
        let seconds = profile.span().0 as f64 / 1e9;
        let rate = |samples: u64| match seconds > 0.0 {
            true => samples as f64 / seconds,
            false => 0.0,
        };
        Some(Self {
            allocated_bytes: number("java_allocated_bytes"),
            allocation_sites: sites,
            sites_per_method: match number("java_allocating_methods") {
                0 => 0.0,
                methods => sites as f64 / methods as f64,
            },
            hot_methods: number("java_compiled_methods"),
            types: number("java_types"),
            samples_per_second: rate(number("java_stack_samples")),
            collector_samples: number("java_collector_samples"),
            compiler_samples: number("java_compiler_samples"),
            collections: number("java_collections"),
            collecting_ns: number("java_collecting_ns"),
            exact_samples: number("java_samples_of_sampled_objects"),
            by_class_samples: number("java_samples_by_class"),
            unattributed_samples: number("java_samples_of_unknown_objects")
                .saturating_add(number("java_late_samples")),
        })
    }

    /// Each figure in words.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let in_heap = self.exact_samples + self.by_class_samples + self.unattributed_samples;
        let part = |samples| {
            let share = percent(share(samples, in_heap));
            format!("{} ({share})", grouped(samples))
        };
        let milliseconds = self.collecting_ns as f64 / 1e6;
        let collections = format!("{}, {milliseconds:.1} ms", grouped(self.collections));
        let per_second = self.samples_per_second.round() as u64;
        vec![
            ("allocated", Bytes(self.allocated_bytes).to_string()),
            ("allocation sites", grouped(self.allocation_sites)),
            ("sites per method", format!("{:.2}", self.sites_per_method)),
            ("hot methods (compiled)", grouped(self.hot_methods)),
            ("types", grouped(self.types)),
            ("samples of Java code/s", grouped(per_second)),
            ("samples of the collector", grouped(self.collector_samples)),
            ("samples of the compilers", grouped(self.compiler_samples)),
            ("collections", collections),
            ("heap samples, exact site", part(self.exact_samples)),
            ("heap samples, by class", part(self.by_class_samples)),
            ("heap samples, no site", part(self.unattributed_samples)),
        ]
    }

    /// The figures for a terminal.
    pub(crate) fn text(&self) -> String {
        figures(&self.rows()).render()
    }

    /// The figures on the page.
    pub(crate) fn section(&self) -> Markup {
        html! {
            section aria-labelledby="java-title" {
                h2 id="java-title" { "Java" }
                (table("Java", &figures(&self.rows())))
            }
        }
    }
}

fn figures<'a>(rows: &'a [(&'static str, String)]) -> DataTable<'a, (&'static str, String)> {
    DataTable::of(rows)
        .left("Java", |(name, _)| *name)
        .right("value", |(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::JavaSummary;
    use isotherm_model::batch::{Count, Epoch};
    use isotherm_model::profile::{EpochSpan, Meta, Profile};
    use isotherm_model::units::Nanos;

    #[test]
    fn a_profile_of_a_java_program_has_the_columns_of_table_3() {
        let mut profile = Profile::new(Meta::default());
        assert_eq!(JavaSummary::of(&profile), None);
        profile.epochs.push(EpochSpan {
            epoch: Epoch(0),
            span: Nanos(2_000_000_000),
        });
        let counts = [
            ("java_allocation_sites", 30),
            ("java_allocating_methods", 12),
            ("java_types", 8),
            ("java_compiled_methods", 700),
            ("java_stack_samples", 3000),
            ("java_samples_of_sampled_objects", 10),
            ("java_samples_by_class", 20),
            ("java_late_samples", 4),
            ("java_samples_of_unknown_objects", 6),
        ];
        profile.counts = counts
            .map(|(name, value)| Count::of_run(name, value))
            .to_vec();
        let summary = JavaSummary::of(&profile).expect("is a Java program");
        assert_eq!((summary.allocation_sites, summary.hot_methods), (30, 700));
        assert_eq!((summary.types, summary.unattributed_samples), (8, 10));
        assert!((summary.sites_per_method - 2.5).abs() < 1e-9);
        assert!((summary.samples_per_second - 1500.0).abs() < 1e-9);
        let text = summary.text();
        for words in ["sites per method", "2.50", "1,500", "20 (50"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
