//! The values that flow through Isotherm, and the ports (traits) at its edges.
//!
//! ```text
//! observe --Batch--> profile --Profile--> policy --Plan--> act --Outcome--> report
//! ```
//!
//! Each arrow is a type of this crate; a stage depends on `model` and never on its neighbour.
//! Nothing here does I/O, reads a clock or is unsafe. Overloaded words are defined where their type
//! stands: *tier* in [`tier`], *node* in [`movement`], *site* in [`site`], *epoch* and *batch* in [`batch`], *page* in
//! [`page`], *plan* in [`plan`], *unit* in [`watch`], *footprint* in [`footprint`], *hotness* in [`hotness`], what an
//! *access count* counts in [`count_unit`].
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

pub mod units;
pub mod words;
pub mod page;
pub mod calls;
pub mod hotness;
pub mod site;
pub mod tier;
pub mod trace;
pub mod sharing;
pub mod batch;
pub mod count_unit;
pub mod outcome;
pub mod movement;
pub mod plan;
pub mod profile;
pub mod footprint;
pub mod explain;
pub mod plan_text;
pub mod watch;
pub mod port;
