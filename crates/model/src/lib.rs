//! Defines the values that pass between the stages of Isotherm, and its ports: the traits that reach the machine and those of policies.
//!
//! ```text
//! observe --Batch--> profile --Profile--> policy --Plan--> act --Outcome--> report
//! ```
//!
//! Each arrow is a type of this crate. A stage depends on `model` and never on its neighbour. This
//! crate does no I/O, reads no clock and contains no unsafe code. The module that holds a type
//! defines its term: *tier* in [`tier`], *node* in [`movement`], *site* in [`site`], *epoch* and
//! *batch* in [`batch`], *page* in [`page`], *plan* in [`plan`], *unit* in [`watch`], *footprint*
//! in [`footprint`], *hotness* in [`hotness`], the unit of an *access count* in [`count_unit`].
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

#[macro_use]
mod variant_words;
pub mod units;
pub mod words;
pub mod spans;
pub mod sums;
pub mod tier_loads;
pub mod page;
pub mod hotness;
pub mod site;
pub mod calls;
pub mod site_pair;
pub mod code_access;
pub mod shared_bandwidth;
pub mod emulation;
pub mod bandwidth_share;
pub mod loaded_latency;
pub mod tier;
pub mod colour;
pub mod trace;
pub mod count_unit;
pub mod source_kind;
pub mod batch;
pub mod measured_energy;
pub mod outcome;
pub mod move_totals;
pub mod movement;
pub mod stay;
pub mod plan;
pub mod sensitivity_runs;
pub mod isolation_runs;
pub mod profile;
pub mod footprint;
pub mod watch;
pub mod paged;
pub mod port;
