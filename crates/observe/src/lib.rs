//! Observes running programs: joins samples, accessed bits, session files and page tables into a batch an epoch for `isotherm record` and
//! `isotherm run`, and into an observation an epoch for the daemon. It also measures memory traffic and energy of the machine, and, for
//! page-out, memory in swap. For `isotherm doctor` it finds which features of a machine work.
//!
//! ```text
//! source    every source of accesses, its budget, and the counter that throttles it
//! live      one run: sources, session files and page tables to a Batch an epoch
//!  |- sessions        all session files: tracked (one image, by isotherm_session), sites
//!  |- java            heaps of Java virtual machines: the site of each access, and what sites hold
//!  |- page_units      the units of an emulated machine, by the tiers of its pages
//!  |- regions         the mappings and variables of a process that ran already, as sites
//!  |- resident        resident pages of ranges
//!  |- paged           memory and swap of processes in units, and what came back from swap
//!  `- processes       the process tree: forks, execs and their times
//! watch     the daemon's processes: sources and page tables to an Observation an epoch
//! counters  memory traffic: misses, controllers, resctrl; the counter that throttles a method
//! energy    joules that the machine measures: RAPL, hwmon
//! promotion_counts   what the kernel's own promotion did
//! limited_groups     control groups of watched processes whose memory is limited
//! doctor    features of this machine and remedies for missing ones; probe tries the kernel
//! ```
//!
//! Input from outside is not trusted: perf records ([`isotherm_sys::perf::record`]), SPE records ([`source::spe`]),
//! session files ([`isotherm_session`]) and the text of smaps ([`source::mapping_bits::parse_smaps`]) may hold any bytes
//! without a panic or an allocation beyond a named bound.
//!
//! File-system root and clock are arguments, so that tests use recorded machines and set clocks.
#![forbid(unsafe_code)]

pub mod clock;
pub mod counters;
pub mod cpu_time;
pub mod doctor;
pub mod energy;
mod extent_changes;
pub mod java;
pub mod limited_groups;
pub mod live;
mod open_files;
mod page_units;
pub mod paged;
mod pending_objects;
pub mod probe;
mod process_usage;
pub mod promotion_counts;
pub mod processes;
mod regions;
pub mod resident;
pub mod sessions;
pub mod sites;
pub mod source;
pub mod tracked;
pub mod watch;
