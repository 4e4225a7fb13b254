//! Act: carries a plan out.
//!
//! Two ways lead into a program. Before it starts, a plan becomes a *configuration file* that the
//! runtime reads once ([`configuration`]). While it runs, a plan becomes *requests* written into its
//! session file, which the runtime obeys ([`requests`]); on real nodes what is there already is moved
//! from outside ([`site_moves`], by [`movement`]). Executors that dry-run, record or limit wrap the
//! same port ([`wrap`]).
#![forbid(unsafe_code)]

pub mod callers;
pub mod configuration;
pub mod movement;
pub mod placement_requests;
pub mod site_moves;
pub mod wrap;
