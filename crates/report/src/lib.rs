//! Formats the results of Isotherm for people and scripts, as text, JSON or one self-contained HTML page: a [`Report`] of a profile and its
//! plan, and the outputs of the other commands, such as comparisons, differences, simulations and the daemon's status. The tables and words
//! that they consist of are public, too.
//!
//! ```text
//! Profile + Plan --> Summary --+--> text (a terminal's width)
//!                              +--> JSON (schema in docs/formats.md)
//!                              +--> HTML (offline, bounded size)
//! ```
//!
//! Every figure of a report is computed once, in [`summary`]; the three forms only print it, so none contradicts another. Nothing here
//! does I/O: values go in, strings come out.
//!
//! Modules are listed bottom-up: each uses only those above it.
//!
//! ```
//! use isotherm_model::profile::{Meta, Profile};
//! use isotherm_report::Report;
//! let profile = Profile::new(Meta::default());
//! let report = Report::new(&profile, None).named("app.iso", None);
//! assert!(report.text(80).contains("No accesses were seen"));
//! ```
#![forbid(unsafe_code)]

mod json;
pub mod json_line;
mod noise;
pub mod fail_condition;
mod plot;
pub mod shell;
pub mod watch_maps;
pub mod words;
pub mod table;
pub mod capacity_curve;
mod distinct_cuts;
mod location;
mod page;
pub mod energy;
pub mod java;
mod code_lines;
mod sites;
mod code_functions;
pub mod stacks;
mod heat;
mod resident;
pub mod explanation;
pub mod optimizations;
pub mod outcomes;
pub mod page_moves;
pub mod paged_run;
pub mod paged_status;
pub mod fast_memory_need;
pub mod capacity_table;
pub mod parts;
mod rank_test;
pub mod times;
pub mod comparison;
pub mod difference;
pub mod simulation;
pub mod sharing;
pub mod sensitivity;
mod totals;
mod plan;
pub mod summary;
mod next;
mod text;
mod html;
pub mod watch_heat;
pub mod watch_status;

use std::collections::BTreeMap;

use isotherm_model::plan::Plan;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;

use energy::ModelledEnergy;
pub use json::json;
use summary::Summary;

/// A profile, and a plan for it where there is one, ready to be printed.
#[derive(Clone, Debug)]
pub struct Report {
    summary: Summary,
}

impl Report {
    /// Computes every figure.
    #[must_use]
    pub fn new(profile: &Profile, plan: Option<&Plan>) -> Self {
        let summary = Summary::new(profile, plan);
        Self { summary }.named("app.iso", None)
    }

    /// Names the files, so that the commands to run next can be copied as they are.
    #[must_use]
    pub fn named(mut self, profile: &str, plan: Option<&str>) -> Self {
        self.summary.next = next::commands(&self.summary, profile, plan);
        self
    }

    /// Adds sentences that must be seen, such as what could not be read of the profile.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.summary.notes.extend(notes);
        self
    }

    /// Adds the bandwidths of sites, in bytes a second, which the profile's runs in isolation measured.
    #[must_use]
    pub fn with_bandwidths(mut self, bandwidths: &BTreeMap<SiteId, u64>) -> Self {
        for site in &mut self.summary.sites {
            site.bandwidth_bytes_per_second = bandwidths.get(&site.id).copied();
        }
        self
    }

    /// Adds the energy of the run that a power model computed.
    #[must_use]
    pub fn with_energy(mut self, modelled: ModelledEnergy) -> Self {
        for site in &mut self.summary.sites {
            site.modelled_energy_joules = modelled.sites.get(&site.id).copied();
        }
        self.summary.energy.extend(modelled.tiers);
        self
    }

    /// The figures.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The report for a terminal of this width; 60 columns at least are used.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        text::render(&self.summary, columns.max(60))
    }

    /// The report as JSON, documented in `docs/formats.md`, ending in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        json(&self.summary)
    }

    /// The report as one HTML page that needs no network and stays under 5 MB whatever the profile's size.
    #[must_use]
    pub fn html(&self) -> String {
        html::render(&self.summary)
    }
}
