//! Carries a plan out, for `isotherm run` and the daemon.
//!
//! A plan reaches a program in two ways. Before the program starts, the plan becomes a *configuration
//! file* that the runtime reads once ([`configuration`]). While it runs, the plan becomes *requests*
//! in its session file, which the runtime obeys ([`placement_requests`]); on real nodes existing data is moved
//! from outside ([`site_moves`], by [`movement`]). Executors for dry runs, recording or limits wrap
//! the same port ([`wrap`]).
#![forbid(unsafe_code)]

pub mod callers;
pub mod configuration;
pub mod movement;
pub mod placement_requests;
pub mod site_moves;
pub mod wrap;
